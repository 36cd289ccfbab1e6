#include "service/resources.h"

#include "service/config_json.h"
#include "service/file.h"
#include "service/layout_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FONT_LIST_BYTES_MAX = 64 * 1024 };

/* ---- where the data is ---- */

/* From the program's directory, installed or built; benchmarks are built one directory deeper. */
static const char *const DATA_PLACES[] = {"../share/ticketpress", "../../share/ticketpress"};

static enum status program_directory(char directory[PATH_MAX], struct error *err)
{
    ssize_t const len = readlink("/proc/self/exe", directory, PATH_MAX - 1);
    char *slash;

    if (len <= 0)
        return error_set(err, ST_IO, "/proc/self/exe: %s", strerror(errno));
    directory[len] = '\0';
    slash = strrchr(directory, '/');
    assert(slash != NULL);
    *slash = '\0';
    return ST_OK;
}

static enum status find_data(char data[PATH_MAX], struct error *err)
{
    char program[PATH_MAX];
    struct stat info;
    enum status st = program_directory(program, err);

    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < sizeof DATA_PLACES / sizeof *DATA_PLACES; i++) {
        int const len = snprintf(data, PATH_MAX, "%s/%s", program, DATA_PLACES[i]);

        if (len > 0 && len < PATH_MAX && stat(data, &info) == 0 && S_ISDIR(info.st_mode))
            return ST_OK;
    }
    return error_set(err, ST_NOT_FOUND, "the program's data is neither at %s nor at %s from %s",
                     DATA_PLACES[0], DATA_PLACES[1], program);
}

static enum status join_path(const char *directory, const char *name, char path[PATH_MAX],
                             struct error *err)
{
    int const len = snprintf(path, PATH_MAX, "%s/%s", directory, name);

    if (len < 0 || len >= PATH_MAX)
        return error_set(err, ST_INVALID, "%s: the path is too long", directory);
    return ST_OK;
}

/* ---- directories ---- */

struct names {
    struct dirent **entries;
    int count;
};

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By name, so that the order is the same on every machine. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status names_read(const char *directory, struct names *names, struct error *err)
{
    names->count = scandir(directory, &names->entries, is_visible, by_bytes);
    if (names->count >= 0)
        return ST_OK;
    names->count = 0;
    return error_set(err,
                     errno == ENOENT   ? ST_NOT_FOUND
                     : errno == ENOMEM ? ST_NO_MEMORY
                                       : ST_IO,
                     "%s: %s", directory, strerror(errno));
}

static void names_clear(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entries[i]);
    free(names->entries);
    *names = (struct names){0};
}

static bool ends_with(const char *name, const char *ending)
{
    size_t const len = strlen(name);
    size_t const ending_len = strlen(ending);

    return len >= ending_len && strcasecmp(name + len - ending_len, ending) == 0;
}

/* ---- fonts ---- */

struct font_paths {
    char *paths[FONT_FACES_MAX];
    size_t count;
};

static void font_paths_clear(struct font_paths *fonts)
{
    for (size_t i = 0; i < fonts->count; i++)
        free(fonts->paths[i]);
    fonts->count = 0;
}

static enum status font_paths_add(struct font_paths *fonts, const char *path, struct error *err)
{
    if (fonts->count == FONT_FACES_MAX)
        return error_set(err, ST_TOO_LARGE, "fonts: more than %d files", FONT_FACES_MAX);
    fonts->paths[fonts->count] = strdup(path);
    if (fonts->paths[fonts->count] == NULL)
        return error_set(err, ST_NO_MEMORY, "the list of fonts");
    fonts->count++;
    return ST_OK;
}

static bool is_font_name(const char *name)
{
    static const char *const ENDINGS[] = {".ttf", ".otf", ".ttc", ".otc"};

    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
        if (ends_with(name, ENDINGS[i]))
            return true;
    return false;
}

static enum status add_font_directory(struct font_paths *fonts, const char *directory,
                                      struct error *err)
{
    struct names names = {0};
    size_t const before = fonts->count;
    enum status st = names_read(directory, &names, err);

    for (int i = 0; i < names.count && st == ST_OK; i++) {
        char path[PATH_MAX];

        if (!is_font_name(names.entries[i]->d_name))
            continue;
        st = join_path(directory, names.entries[i]->d_name, path, err);
        if (st == ST_OK)
            st = font_paths_add(fonts, path, err);
    }
    names_clear(&names);
    if (st == ST_OK && fonts->count == before)
        st = error_set(err, ST_INVALID, "fonts: %s holds no .ttf, .otf, .ttc or .otc file",
                       directory);
    return st;
}

static enum status add_font_path(struct font_paths *fonts, const char *path, struct error *err)
{
    struct stat info;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return add_font_directory(fonts, path, err);
    return font_paths_add(fonts, path, err);
}

/* One path a line; empty lines and lines that begin with # are skipped. */
static enum status add_default_fonts(struct font_paths *fonts, const char *data, struct error *err)
{
    char path[PATH_MAX];
    struct bytes list = {0};
    char *rest;
    enum status st = join_path(data, "fonts.list", path, err);

    if (st == ST_OK)
        st = file_read(path, FONT_LIST_BYTES_MAX, &list, err);
    if (st == ST_OK)
        st = bytes_append(&list, "", 1, err);
    rest = st == ST_OK ? (char *)list.data : NULL;
    for (char *line; st == ST_OK && (line = strsep(&rest, "\n")) != NULL;)
        if (line[0] != '\0' && line[0] != '#')
            st = font_paths_add(fonts, line, err);
    bytes_clear(&list);
    return st;
}

static enum status load_fonts(const struct settings *settings, const char *data,
                              struct font_set **set, struct error *err)
{
    struct font_paths fonts = {0};
    enum status st = ST_OK;

    if (settings->fonts.count == 0)
        st = add_default_fonts(&fonts, data, err);
    for (size_t i = 0; i < settings->fonts.count && st == ST_OK; i++)
        st = add_font_path(&fonts, settings->fonts.paths[i], err);
    if (st == ST_OK && fonts.count == 0)
        st = error_set(err, ST_INVALID, "fonts: the list is empty");
    if (st == ST_OK)
        st = font_set_open((const char *const *)fonts.paths, fonts.count, set, err);
    font_paths_clear(&fonts);
    return st;
}

/* ---- layouts ---- */

static enum status add_layout(struct layout_list *list, const char *path, bool is_built_in,
                              struct error *err)
{
    struct press_layout *layout = &list->layouts[list->count];
    struct problems problems = {0};
    enum status st;

    if (list->count == PRESS_LAYOUTS_MAX)
        return error_set(err, ST_TOO_LARGE, "layouts: more than %d files", PRESS_LAYOUTS_MAX);
    st = layout_file_load(path, layout, &problems, err);
    problems_clear(&problems);
    if (st != ST_OK)
        return st;
    layout->is_built_in = is_built_in;
    list->count++;
    for (size_t i = 0; i + 1 < list->count; i++)
        if (strcmp(list->layouts[i].layout.name.data, layout->layout.name.data) == 0)
            return error_set(err, ST_INVALID, "%s: another layout is called \"%s\" too", path,
                             layout->layout.name.data);
    return ST_OK;
}

/* Nobody waits for what a pipe among the layouts may never say. */
static enum status refuse_pipe(const char *path, struct error *err)
{
    struct stat info;

    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return error_set(err, ST_IO, "%s: Not an ordinary file", path);
    return ST_OK; /* whatever else is wrong, reading it tells */
}

static enum status add_layouts(struct layout_list *list, const char *directory, bool is_built_in,
                               struct error *err)
{
    struct names names = {0};
    enum status st = names_read(directory, &names, err);

    for (int i = 0; i < names.count && st == ST_OK; i++) {
        char path[PATH_MAX];

        if (!ends_with(names.entries[i]->d_name, ".json"))
            continue;
        st = join_path(directory, names.entries[i]->d_name, path, err);
        if (st == ST_OK)
            st = refuse_pipe(path, err);
        if (st == ST_OK)
            st = add_layout(list, path, is_built_in, err);
    }
    names_clear(&names);
    return st;
}

static enum status load_layouts(const struct settings *settings, const char *data,
                                struct layout_list *list, struct error *err)
{
    char path[PATH_MAX];
    enum status st = join_path(data, "layouts", path, err);

    if (st == ST_OK)
        st = add_layouts(list, path, true, err);
    if (st == ST_OK && settings->layouts != NULL)
        st = add_layouts(list, settings->layouts, false, err);
    return st;
}

static enum status load_labels(const char *data, struct label_set *labels, struct error *err)
{
    char path[PATH_MAX];
    struct problems problems = {0};
    enum status st = join_path(data, "labels.json", path, err);

    if (st == ST_OK)
        st = label_file_read(path, labels, &problems, err);
    problems_clear(&problems);
    return st;
}

static enum status load_layout_schema(const char *data, struct bytes *schema, struct error *err)
{
    char path[PATH_MAX];
    enum status st = join_path(data, "layout.schema.json", path, err);

    return st == ST_OK ? file_read(path, CONFIG_FILE_BYTES_MAX, schema, err) : st;
}

enum status resources_load_fonts(const struct settings *settings, struct font_set **fonts,
                                 struct error *err)
{
    char data[PATH_MAX];
    enum status st = find_data(data, err);

    return st == ST_OK ? load_fonts(settings, data, fonts, err) : st;
}

enum status resources_load_layouts(const struct settings *settings, struct layout_list *layouts,
                                   struct error *err)
{
    char data[PATH_MAX];
    enum status st = find_data(data, err);

    if (st == ST_OK)
        st = load_layouts(settings, data, layouts, err);
    if (st != ST_OK)
        layout_list_clear(layouts);
    return st;
}

enum status resources_load(const struct settings *settings, struct resources *resources,
                           struct error *err)
{
    char data[PATH_MAX];
    enum status st = find_data(data, err);

    if (st == ST_OK)
        st = load_fonts(settings, data, &resources->fonts, err);
    if (st == ST_OK)
        st = load_labels(data, &resources->labels, err);
    if (st == ST_OK)
        st = load_layouts(settings, data, &resources->layouts, err);
    if (st == ST_OK)
        st = load_layout_schema(data, &resources->layout_schema, err);
    if (st != ST_OK)
        resources_clear(resources);
    return st;
}

void resources_clear(struct resources *resources)
{
    font_set_free(&resources->fonts);
    label_set_clear(&resources->labels);
    layout_list_clear(&resources->layouts);
    bytes_clear(&resources->layout_schema);
    *resources = (struct resources){0};
}
