#include "service/resources.h"

#include "tests/support/failing_memory.h"
#include "workers/sign.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTO "/usr/share/fonts/truetype/noto/"
#define SOUND_LAYOUT(name)                                                                         \
    "{\"name\": \"" name "\", \"page_w_mm\": 60, \"page_h_mm\": 60, \"elements\": ["               \
    "{\"type\": \"qr\", \"x_mm\": 5, \"y_mm\": 5, \"side_mm\": 44}]}"

/* ---- fixture: a directory of fonts or layouts ---- */

static char directory[] = "/tmp/test_resources_XXXXXX";
static struct resources resources;

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void setup(void)
{
    cr_assert_eq(sign_start(NULL), ST_OK);
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    DIR *stream = opendir(directory);

    resources_clear(&resources);
    cr_expect(resources.fonts == NULL && resources.layouts.count == 0);
    cr_assert_not_null(stream);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream))
        if (entry->d_type != DT_DIR)
            cr_expect_eq(unlink(path_of(entry->d_name)), 0);
    closedir(stream);
    cr_expect_eq(rmdir(directory), 0);
}

static void file_write(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

static void font_link(const char *font, const char *name)
{
    cr_assert_eq(symlink(font, path_of(name)), 0);
}

static bool has_layout(const char *name)
{
    for (size_t i = 0; i < resources.layouts.count; i++)
        if (strcmp(resources.layouts.layouts[i].layout.name.data, name) == 0)
            return true;
    return false;
}

static void expect_refused(const struct settings *settings, enum status status, const char *what,
                           const char *why)
{
    struct error err = {0};

    cr_expect_eq(resources_load(settings, &resources, &err), status, "%s", err.text);
    cr_expect_eq(err.status, status);
    cr_expect_not_null(strstr(err.text, what), "%s", err.text);
    cr_expect_not_null(strstr(err.text, why), "%s", err.text);
    cr_expect(resources.fonts == NULL && resources.layouts.count == 0 &&
              resources.labels.languages == NULL);
}

/* ---- the program's own ---- */

Test(resources_load, finds_the_programs_own_data, .init = setup, .fini = teardown)
{
    static const char *const BUILT_IN[] = {"classic", "a4", "letter", "a4-4up", "thermal", "badge"};
    struct settings const settings = {0};
    struct error err = {0};

    cr_assert_eq(resources_load(&settings, &resources, &err), ST_OK, "%s", err.text);
    cr_expect_geq(font_set_faces_count(resources.fonts), 2);
    cr_expect_eq(font_metrics(resources.fonts, font_set_face(resources.fonts, FONT_BOLD))->weight,
                 FONT_BOLD);
    for (size_t i = 0; i < sizeof BUILT_IN / sizeof *BUILT_IN; i++)
        cr_expect(has_layout(BUILT_IN[i]), "%s", BUILT_IN[i]);
    cr_expect_geq(resources.labels.languages_count, 11);
}

/* ---- fonts ---- */

Test(resources_load, takes_fonts_instead_of_the_default_list, .init = setup, .fini = teardown)
{
    const char *const paths[] = {NOTO "NotoSans-Bold.ttf"};
    struct settings const settings = {.fonts = {.paths = paths, .count = 1}};

    cr_assert_eq(resources_load(&settings, &resources, NULL), ST_OK);
    cr_assert_eq(font_set_faces_count(resources.fonts), 1);
    cr_expect_str_eq(font_metrics(resources.fonts, 0)->postscript_name, "NotoSans-Bold");
}

Test(resources_load, takes_a_directory_of_fonts_in_the_order_of_their_names, .init = setup,
     .fini = teardown)
{
    const char *const paths[] = {directory, NOTO "NotoSans-Italic.ttf"};
    struct settings const settings = {.fonts = {.paths = paths, .count = 2}};

    font_link(NOTO "NotoSans-Regular.ttf", "b.ttf");
    font_link(NOTO "NotoSans-Bold.ttf", "a.TTF");
    file_write("readme.txt", "no font");
    file_write(".hidden.ttf", "no font");
    cr_assert_eq(resources_load(&settings, &resources, NULL), ST_OK);
    cr_assert_eq(font_set_faces_count(resources.fonts), 3);
    cr_expect_str_eq(font_metrics(resources.fonts, 0)->postscript_name, "NotoSans-Bold");
    cr_expect_str_eq(font_metrics(resources.fonts, 1)->postscript_name, "NotoSans-Regular");
    cr_expect_str_eq(font_metrics(resources.fonts, 2)->postscript_name, "NotoSans-Italic");
}

Test(resources_load, names_the_font_that_it_cannot_use, .init = setup, .fini = teardown)
{
    const char *paths[] = {directory};
    struct settings const settings = {.fonts = {.paths = paths, .count = 1}};

    expect_refused(&settings, ST_INVALID, directory, "holds no .ttf, .otf, .ttc or .otc file");
    file_write("broken.ttf", "no font");
    expect_refused(&settings, ST_INVALID, "broken.ttf", "not an OpenType font");
    paths[0] = "/nowhere/font.ttf";
    expect_refused(&settings, ST_NOT_FOUND, "/nowhere/font.ttf", "No such file");
}

Test(resources_load, takes_as_many_fonts_as_a_set_holds_and_no_more, .init = setup,
     .fini = teardown)
{
    const char *paths[FONT_FACES_MAX + 1];
    struct settings const settings = {.fonts = {.paths = paths, .count = FONT_FACES_MAX + 1}};

    for (size_t i = 0; i <= FONT_FACES_MAX; i++)
        paths[i] = NOTO "NotoSans-Regular.ttf";
    expect_refused(&settings, ST_TOO_LARGE, "fonts", "more than 64 files");
}

/* ---- layouts ---- */

Test(resources_load, adds_a_directory_of_layouts_to_the_built_in_ones, .init = setup,
     .fini = teardown)
{
    struct settings const settings = {.layouts = directory};
    struct layout_list anew = {0};
    size_t built_in;

    cr_assert_eq(resources_load_layouts(&(struct settings){0}, &anew, NULL), ST_OK);
    built_in = anew.count;
    layout_list_clear(&anew);
    file_write("one.json", SOUND_LAYOUT("one"));
    file_write("two.JSON", SOUND_LAYOUT("two"));
    file_write("three.txt", "no layout");
    cr_assert_eq(resources_load(&settings, &resources, NULL), ST_OK);
    cr_expect(has_layout("classic") && has_layout("one") && has_layout("two"));
    cr_expect_eq(resources.layouts.count, built_in + 2);
    cr_assert_eq(resources_load_layouts(&settings, &anew, NULL), ST_OK);
    cr_expect_eq(anew.count, built_in + 2);
    layout_list_clear(&anew);
}

Test(resources_load, names_the_layout_that_is_broken_and_its_place, .init = setup, .fini = teardown)
{
    static const struct {
        const char *text, *why;
    } ROWS[] = {
        {"", "line 1, column 0: ends too early"},
        {"{\n\"name\": \"a\",,}", "line 2, column"},
        {"[]", "the whole text: a layout is an object"},
        {"{\"name\": \"a\", \"name\": \"b\"}", "the same member twice"},
        {"{\"name\": \"a\", \"page_w_mm\": 60, \"page_h_mm\": 60, \"elements\": [1]}",
         "/elements/0: must be an object"},
        {"{\"name\": \"a\", \"page_w_mm\": 60, \"page_h_mm\": 60, \"elements\": [{\"type\": "
         "\"qr\", \"x_mm\": 5, \"y_mm\": 5, \"side_mm\": 20}]}",
         "/elements/0/side_mm: must be at least 39 mm"},
    };
    struct settings const settings = {.layouts = directory};
    struct layout_list anew = {0};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        file_write("broken.json", ROWS[i].text);
        expect_refused(&settings, ST_INVALID, "broken.json", ROWS[i].why);
        cr_expect_eq(resources_load_layouts(&settings, &anew, NULL), ST_INVALID);
        cr_expect_eq(anew.count, 0);
    }
}

Test(resources_load, waits_for_no_pipe_among_the_layouts, .init = setup, .fini = teardown,
     .timeout = 30)
{
    struct settings const settings = {.layouts = directory};

    cr_assert_eq(mkfifo(path_of("pipe.json"), 0600), 0);
    expect_refused(&settings, ST_IO, "pipe.json", "Not an ordinary file");
}

Test(resources_load, refuses_two_layouts_of_one_name, .init = setup, .fini = teardown)
{
    struct settings const settings = {.layouts = directory};

    file_write("mine.json", SOUND_LAYOUT("classic"));
    expect_refused(&settings, ST_INVALID, "mine.json", "another layout is called \"classic\" too");
}

Test(resources_load, names_the_directory_that_it_cannot_read, .init = setup, .fini = teardown)
{
    struct settings settings = {.layouts = "/nowhere/layouts"};

    expect_refused(&settings, ST_NOT_FOUND, "/nowhere/layouts", "No such file");
    file_write("file", "");
    settings.layouts = path_of("file");
    expect_refused(&settings, ST_IO, directory, "Not a directory");
}

Test(resources_load, takes_as_many_layouts_as_a_press_holds_and_no_more, .init = setup,
     .fini = teardown)
{
    struct settings const settings = {.layouts = directory};
    struct layout_list anew = {0};
    size_t built_in;
    char name[32], text[400];

    cr_assert_eq(resources_load_layouts(&(struct settings){0}, &anew, NULL), ST_OK);
    built_in = anew.count;
    layout_list_clear(&anew);
    for (size_t i = built_in; i <= PRESS_LAYOUTS_MAX; i++) {
        if (i == PRESS_LAYOUTS_MAX) {
            cr_expect_eq(resources_load_layouts(&settings, &anew, NULL), ST_OK);
            cr_expect_eq(anew.count, PRESS_LAYOUTS_MAX);
            layout_list_clear(&anew);
        }
        snprintf(name, sizeof name, "%zu.json", i);
        snprintf(text, sizeof text,
                 "{\"name\": \"l-%zu\", \"page_w_mm\": 60, \"page_h_mm\": 60, \"elements\": "
                 "[{\"type\": \"qr\", \"x_mm\": 5, \"y_mm\": 5, \"side_mm\": 44}]}",
                 i);
        file_write(name, text);
    }
    expect_refused(&settings, ST_TOO_LARGE, "layouts", "more than 64 files");
}

/* ---- the end of memory ---- */

Test(resources_load, leaves_nothing_when_memory_ends, .init = setup, .fini = teardown)
{
    struct settings const settings = {.layouts = directory};
    bool has_failed = true;
    size_t call = 1;

    file_write("one.json", SOUND_LAYOUT("one"));
    for (; has_failed; call++) {
        struct error err = {0};
        enum status st;

        failing_memory_start(call);
        st = resources_load(&settings, &resources, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu: %s", call, err.text);
        cr_expect_eq(resources.fonts == NULL, has_failed);
        cr_expect_eq(resources.layouts.count == 0, has_failed);
        resources_clear(&resources);
    }
    cr_expect_gt(call, 8);
}
