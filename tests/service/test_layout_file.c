#include "service/layout_file.h"

#include "service/config_json.h"
#include "tests/support/failing_memory.h"
#include "workers/image.h"
#include "workers/sign.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INVALID "fixtures/layouts/invalid"
#define VALID   "fixtures/layouts/valid"
#define IMAGES  "fixtures/layouts/valid/images/"

enum { INVALID_MIN = 80, VALID_MIN = 8 };

/* ---- fixture: what is loaded, and a directory to load it from ---- */

static struct press_layout layout;
static struct problems problems;
static struct error err;
static char directory[] = "/tmp/test_layout_file_XXXXXX";

static void setup(void)
{
    cr_assert_eq(sign_start(NULL), ST_OK);
}

static void clear(void)
{
    press_layout_clear(&layout);
    problems_clear(&problems);
    err = (struct error){0};
}

static enum status load(const char *path)
{
    clear();
    return layout_file_load(path, &layout, &problems, &err);
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void setup_directory(void)
{
    setup();
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown_directory(void)
{
    unlink(path_of("a.json"));
    unlink(path_of("logo.png"));
    unlink(path_of("other.png"));
    cr_expect_eq(rmdir(directory), 0);
    clear();
}

static void file_write(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

static void image_link(const char *image, const char *name)
{
    char target[PATH_MAX], root[PATH_MAX / 2];

    cr_assert_not_null(getcwd(root, sizeof root));
    snprintf(target, sizeof target, "%s/" IMAGES "%s", root, image);
    unlink(path_of(name));
    cr_assert_eq(symlink(target, path_of(name)), 0);
}

/* ---- fixtures ---- */

/* Call visit with each entry of a directory whose name ends so. Returns how many there were. */
static size_t walk(const char *folder, const char *ending, void (*visit)(const char *path))
{
    DIR *stream = opendir(folder);
    size_t count = 0;

    cr_assert_not_null(stream, "%s", folder);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        size_t const len = strlen(entry->d_name);
        char path[PATH_MAX];

        if (entry->d_name[0] == '.' || len < strlen(ending) ||
            strcmp(entry->d_name + len - strlen(ending), ending) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        visit(path);
        count++;
    }
    closedir(stream);
    return count;
}

static void expect_problem(const char *folder, size_t i, const json_t *expected)
{
    const char *pointer = json_string_value(json_object_get(expected, "pointer"));
    const char *code = json_string_value(json_object_get(expected, "code"));

    cr_assert_lt(i, problems.listed_count, "%s", folder);
    cr_expect_str_eq(problems.listed[i].pointer.data, pointer, "%s: %s", folder,
                     problems.listed[i].pointer.data);
    cr_expect_str_eq(problems.listed[i].code, code, "%s: %s", folder, problems.listed[i].code);
}

static void expect_refused(const char *folder)
{
    char path[PATH_MAX];
    json_t *report, *errors, *detail;

    snprintf(path, sizeof path, "%s/error.json", folder);
    report = json_load_file(path, 0, NULL);
    errors = json_object_get(report, "errors");
    detail = json_object_get(report, "detail");
    snprintf(path, sizeof path, "%s/layout.json", folder);
    cr_assert_not_null(errors, "%s", folder);
    cr_expect_eq(load(path), ST_INVALID, "%s: %s", folder, err.text);
    cr_expect_eq(err.status, ST_INVALID, "%s", folder);
    cr_expect_eq(strncmp(err.text, path, strlen(path)), 0, "%s: %s", folder, err.text);
    cr_expect(layout.layout.arena.chunks == NULL && layout.images == NULL, "%s", folder);
    cr_expect_eq(problems.count, json_array_size(errors), "%s: %zu", folder, problems.count);
    for (size_t i = 0; i < json_array_size(errors); i++)
        expect_problem(folder, i, json_array_get(errors, i));
    if (detail != NULL)
        cr_expect_not_null(strstr(err.text, json_string_value(detail)), "%s: %s", folder, err.text);
    json_decref(report);
}

Test(layout_file_load, refuses_every_invalid_fixture_at_its_place_by_its_rule, .init = setup,
     .fini = clear)
{
    cr_expect_geq(walk(INVALID, "", expect_refused), INVALID_MIN);
}

static void expect_accepted(const char *path)
{
    static const uint8_t NONE[SHA256_BYTES];

    cr_assert_eq(load(path), ST_OK, "%s", err.text);
    cr_expect_eq(problems.count, 0);
    cr_expect_neq(memcmp(layout.hash, NONE, sizeof NONE), 0);
    cr_expect_eq(layout.images != NULL, layout.layout.images_count > 0, "%s", path);
    for (size_t i = 0; i < layout.layout.images_count; i++)
        cr_expect(layout.images[i].width > 0 && layout.images[i].data.len > 0, "%s", path);
    cr_expect_not(layout.is_built_in);
}

Test(layout_file_load, accepts_every_valid_fixture_and_every_built_in_layout, .init = setup,
     .fini = clear)
{
    cr_expect_geq(walk(VALID, ".json", expect_accepted), VALID_MIN);
    cr_expect_geq(walk("service/data/layouts", ".json", expect_accepted), 1);
}

Test(layout_file_load, decodes_each_file_once_in_the_order_of_its_first_use, .init = setup,
     .fini = clear)
{
    cr_assert_eq(load(VALID "/photos.json"), ST_OK, "%s", err.text);
    cr_assert_eq(layout.layout.images_count, 3);
    cr_expect_str_eq(layout.layout.images[0].file.data, "images/rgb8.png");
    cr_expect_str_eq(layout.layout.images[1].file.data, "images/rgb.jpg");
    cr_expect_str_eq(layout.layout.images[2].file.data, "images/rgb8-alpha.png");
    cr_expect(layout.images[0].filter == IMAGE_FLATE && layout.images[1].filter == IMAGE_DCT);
    cr_expect_eq(layout.layout.elements[4].image, 0);
}

/* ---- the hash ---- */

#define LOGO       "{\"type\": \"image\", \"x_mm\": 1, \"y_mm\": 50, \"w_mm\": 9, \"h_mm\": 9, \"file\": "
#define HEAD(name) "{\"name\": \"" name "\", \"page_w_mm\": 60, \"page_h_mm\": 60, \"elements\": ["
#define QR         "{\"type\": \"qr\", \"x_mm\": 5, \"y_mm\": 5, \"side_mm\": 44}"

static void load_text(const char *text, uint8_t hash[SHA256_BYTES])
{
    file_write("a.json", text);
    cr_assert_eq(load(path_of("a.json")), ST_OK, "%s", err.text);
    memcpy(hash, layout.hash, SHA256_BYTES);
}

Test(layout_file_load, hashes_what_is_said_and_not_how, .init = setup_directory,
     .fini = teardown_directory)
{
    static const struct {
        const char *text;
        bool is_equal;
    } ROWS[] = {
        {HEAD("a") QR ", " LOGO "\"logo.png\"}]}", true},
        {HEAD("a") QR ",\n\t" LOGO "\"logo\\u002epng\"}]}\n", true},
        {"{\"$schema\": \"s\", \"elements\": [" QR "," LOGO
         "\"logo.png\"}], \"page_h_mm\": 60, \"page_w_mm\": 60, \"name\": \"a\"}",
         true},
        {HEAD("b") QR ", " LOGO "\"logo.png\"}]}", false},
        {HEAD("a") LOGO "\"logo.png\"}, " QR "]}", false},
        {HEAD("a") QR ", " LOGO "\"other.png\"}]}", false},
        {HEAD("a") QR "]}", false},
    };
    uint8_t first[SHA256_BYTES], hash[SHA256_BYTES];

    image_link("rgb8.png", "logo.png");
    image_link("rgb8.png", "other.png");
    load_text(ROWS[0].text, first);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        load_text(ROWS[i].text, hash);
        cr_expect_eq(memcmp(first, hash, sizeof hash) == 0, ROWS[i].is_equal, "%zu", i);
    }
    image_link("rgb16.png", "logo.png");
    load_text(ROWS[0].text, hash);
    cr_expect_neq(memcmp(first, hash, sizeof hash), 0, "an image was exchanged");
}

/* ---- failures ---- */

Test(layout_file_load, names_the_file_that_it_cannot_read, .init = setup_directory,
     .fini = teardown_directory)
{
    cr_expect_eq(load(path_of("none.json")), ST_NOT_FOUND);
    cr_expect_not_null(strstr(err.text, "none.json: No such file"), "%s", err.text);
    cr_expect_eq(load(directory), ST_IO);
    cr_expect_not_null(strstr(err.text, directory), "%s", err.text);
    cr_expect_eq(problems.count, 0);
}

Test(layout_file_load, takes_a_file_as_large_as_it_says_and_no_larger, .init = setup_directory,
     .fini = teardown_directory)
{
    char *text = malloc(CONFIG_FILE_BYTES_MAX + 2);
    size_t const len = strlen(HEAD("a") QR "]}");

    cr_assert_not_null(text);
    memset(text, ' ', CONFIG_FILE_BYTES_MAX + 1);
    memcpy(text, HEAD("a") QR "]}", len);
    text[CONFIG_FILE_BYTES_MAX] = '\0';
    file_write("a.json", text);
    cr_expect_eq(load(path_of("a.json")), ST_OK, "%s", err.text);
    text[CONFIG_FILE_BYTES_MAX] = ' ';
    text[CONFIG_FILE_BYTES_MAX + 1] = '\0';
    file_write("a.json", text);
    cr_expect_eq(load(path_of("a.json")), ST_TOO_LARGE);
    free(text);
}

Test(layout_file_load, tells_which_image_it_cannot_use_and_why, .init = setup, .fini = clear)
{
    static const struct {
        const char *fixture, *why;
    } ROWS[] = {
        {INVALID "/image-not-there/", "logo.png: No such file"},
        {INVALID "/image-a-directory/", "logo.png: Is a directory"},
        {INVALID "/image-no-image/", "logo.png: "},
        {INVALID "/image-cut/", "logo.png: PNG: "},
        {INVALID "/image-too-many-pixels/", "logo.png: "},
    };

    cr_expect_eq(load(INVALID "/image-too-long-or-thin/layout.json"), ST_INVALID);
    cr_expect_not_null(strstr(err.text, "/elements/1: is too long or too thin for its image: 1 by "
                                        "32000 pixels would become 50.00 by 1600000.00 mm"),
                       "%s", err.text);

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char path[PATH_MAX], why[PATH_MAX];

        snprintf(path, sizeof path, "%slayout.json", ROWS[i].fixture);
        snprintf(why, sizeof why, "/elements/2/file: %s%s", ROWS[i].fixture, ROWS[i].why);
        cr_expect_eq(load(path), ST_INVALID);
        cr_expect_not_null(strstr(err.text, why), "%s", err.text);
    }
}

Test(layout_file_load, leaves_nothing_when_memory_ends, .init = setup, .fini = clear)
{
    bool has_failed = true;
    size_t call = 1;

    config_json_start();
    for (; has_failed; call++) {
        enum status st;

        clear();
        failing_memory_start(call);
        st = layout_file_load(VALID "/photos.json", &layout, &problems, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu: %s", call, err.text);
        cr_expect_eq(problems.count, 0);
        cr_expect_eq(layout.layout.elements == NULL, has_failed);
        cr_expect_eq(layout.images == NULL, has_failed);
    }
    cr_expect_gt(call, 10);
}
