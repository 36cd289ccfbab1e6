#include "workers/sfnt.h"

#include <criterion/criterion.h>
#include <hb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FONTS "/usr/share/fonts/truetype/"

enum { TAG_BYTES = 4, DIRECTORY_AT = 12, RECORD_BYTES = 16 };

/* Maps of format 4 alone and of format 12, ems of 1,000 and others, bearings without widths. */
static const char *const PATHS[] = {
    FONTS "noto/NotoSans-Regular.ttf", FONTS "noto/NotoSansHebrew-Regular.ttf",
    FONTS "noto/NotoSansDevanagari-Regular.ttf", FONTS "noto/NotoSansSymbols2-Regular.ttf"};
enum { PATHS_COUNT = sizeof PATHS / sizeof *PATHS };
#define SMALL PATHS[1]

static uint8_t *data;
static size_t data_len;

static void read_font(const char *path)
{
    FILE *file = fopen(path, "rb");

    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    data_len = (size_t)ftell(file);
    rewind(file);
    free(data);
    data = malloc(data_len);
    cr_assert_not_null(data);
    cr_assert_eq(fread(data, 1, data_len, file), data_len);
    fclose(file);
}

static void setup(void)
{
    read_font(SMALL);
}

static void teardown(void)
{
    free(data);
    data = NULL;
}

static struct sfnt open_font(void)
{
    struct sfnt sfnt;
    struct error err = {0};

    cr_assert_eq(sfnt_open(data, data_len, 0, &sfnt, &err), ST_OK, "%s", err.text);
    return sfnt;
}

static hb_font_t *harfbuzz_font(void)
{
    hb_blob_t *blob =
        hb_blob_create((const char *)data, (unsigned)data_len, HB_MEMORY_MODE_READONLY, NULL, NULL);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_font_t *font = hb_font_create(face);

    hb_face_destroy(face);
    hb_blob_destroy(blob);
    return font;
}

static uint8_t *record_of(const char *tag)
{
    size_t at = DIRECTORY_AT;

    while (memcmp(data + at, tag, TAG_BYTES) != 0)
        at += RECORD_BYTES;
    return data + at;
}

static uint8_t *table_of(const char *tag)
{
    return data + sfnt_u32(record_of(tag) + 8);
}

static void set_u16(uint8_t *at, unsigned number)
{
    at[0] = (uint8_t)(number >> 8);
    at[1] = (uint8_t)number;
}

static void set_u32(uint8_t *at, uint32_t number)
{
    set_u16(at, number >> 16);
    set_u16(at + 2, number & 0xFFFF);
}

/* ---- characters and widths ---- */

Test(sfnt_glyph, is_harfbuzzs_for_every_character, .fini = teardown)
{
    for (size_t i = 0; i < PATHS_COUNT; i++) {
        struct sfnt sfnt;
        hb_font_t *font;
        size_t found = 0;

        read_font(PATHS[i]);
        sfnt = open_font();
        font = harfbuzz_font();
        for (uint32_t c = 0; c <= SFNT_CHARACTER_MAX; c++) {
            hb_codepoint_t glyph = 0;

            if (!hb_font_get_nominal_glyph(font, c, &glyph))
                glyph = 0;
            cr_assert_eq(sfnt_glyph(&sfnt, c), glyph, "%s: U+%04X", PATHS[i], c);
            found += glyph != 0;
        }
        cr_expect_gt(found, 80);
        cr_expect_eq(sfnt_glyph(&sfnt, SFNT_CHARACTER_MAX + 1), 0);
        cr_expect_eq(sfnt_glyph(&sfnt, UINT32_MAX), 0);
        hb_font_destroy(font);
    }
}

Test(sfnt_characters, are_the_lowest_of_each_glyph, .fini = teardown)
{
    for (size_t i = 0; i < PATHS_COUNT; i++) {
        struct sfnt sfnt;
        uint32_t *found, *expected;

        read_font(PATHS[i]);
        sfnt = open_font();
        found = calloc(sfnt.glyph_count, sizeof *found);
        expected = calloc(sfnt.glyph_count, sizeof *expected);
        cr_assert(found != NULL && expected != NULL);
        sfnt_characters(&sfnt, found);
        for (uint32_t c = SFNT_CHARACTER_MAX; c > 0; c--)
            expected[sfnt_glyph(&sfnt, c)] = c;
        expected[0] = 0;
        cr_expect_arr_eq(found, expected, sfnt.glyph_count * sizeof *found, "%s", PATHS[i]);
        free(found);
        free(expected);
    }
}

Test(sfnt_advance, is_harfbuzzs_for_every_glyph, .fini = teardown)
{
    for (size_t i = 0; i < PATHS_COUNT; i++) {
        struct sfnt sfnt;
        hb_font_t *font;

        read_font(PATHS[i]);
        sfnt = open_font();
        font = harfbuzz_font();
        for (uint32_t glyph = 0; glyph < sfnt.glyph_count; glyph++)
            cr_assert_eq((hb_position_t)sfnt_advance(&sfnt, glyph),
                         hb_font_get_glyph_h_advance(font, glyph), "%s: glyph %u", PATHS[i], glyph);
        hb_font_destroy(font);
    }
}

Test(sfnt_left_bearing, is_the_outlines_left_edge, .init = setup, .fini = teardown)
{
    struct sfnt const sfnt = open_font();
    size_t inked = 0;

    for (uint32_t glyph = 0; glyph < sfnt.glyph_count; glyph++) {
        struct sfnt_part outline;

        cr_assert(sfnt_outline(&sfnt, glyph, &outline));
        if (outline.len == 0)
            continue;
        inked++;
        cr_expect_eq(sfnt_left_bearing(&sfnt, glyph), sfnt_i16(outline.data + 2), "%u", glyph);
    }
    cr_expect_gt(inked, 50);
}

Test(sfnt_advance, behind_the_widths_is_the_last_of_them, .init = setup, .fini = teardown)
{
    struct sfnt sfnt;

    set_u16(table_of("hhea") + 34, 3);
    sfnt = open_font();
    cr_expect_eq(sfnt_advance(&sfnt, 3), sfnt_advance(&sfnt, 2));
    cr_expect_eq(sfnt_advance(&sfnt, sfnt.glyph_count - 1), sfnt_advance(&sfnt, 2));
    cr_expect_eq(sfnt_left_bearing(&sfnt, 3), sfnt_i16(table_of("hmtx") + 12));
    sfnt.hmtx.len = 12;
    cr_expect_eq(sfnt_left_bearing(&sfnt, 3), 0, "a bearing that is not there");
}

/* ---- files that are refused ---- */

static void expect_refused(const char *name, const char *reason)
{
    struct sfnt sfnt;
    struct error err = {0};

    cr_expect_eq(sfnt_open(data, data_len, 0, &sfnt, &err), ST_INVALID, "%s", name);
    cr_expect_not_null(strstr(err.text, reason), "%s: %s", name, err.text);
}

Test(sfnt_open, refuses_numbers_that_make_no_sense, .fini = teardown)
{
    static const struct {
        const char *tag;
        size_t at;
        unsigned number;
        const char *reason;
    } ROWS[] = {
        {"head", 18, 15, "its em has 15 units"},
        {"head", 18, 16385, "its em has 16385 units"},
        {"maxp", 4, 0, "no glyphs"},
        {"maxp", 4, 65535, "loca is too short"},
        {"hhea", 34, 0, "hmtx is too short"},
        {"hhea", 34, 60000, "hmtx is too short"},
        {"cmap", 2, 0, "no Unicode character map"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        setup();
        set_u16(table_of(ROWS[i].tag) + ROWS[i].at, ROWS[i].number);
        expect_refused(ROWS[i].reason, ROWS[i].reason);
    }
}

Test(sfnt_open, refuses_tables_that_are_too_short, .fini = teardown)
{
    static const struct {
        const char *tag;
        uint32_t len;
        const char *reason;
    } ROWS[] = {
        {"head", 53, "head is too short"}, {"hhea", 35, "hhea is too short"},
        {"hmtx", 3, "hmtx is too short"},  {"hmtx", 40, "hmtx is too short"},
        {"maxp", 5, "maxp is too short"},  {"maxp", 31, "maxp is too short"},
        {"loca", 3, "loca is too short"},  {"loca", 40, "loca is too short"},
        {"cmap", 3, "no Unicode"},         {"cmap", 30, "no Unicode"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        setup();
        set_u32(record_of(ROWS[i].tag) + 12, ROWS[i].len);
        expect_refused(ROWS[i].reason, ROWS[i].reason);
    }
}

Test(sfnt_open, refuses_tables_that_are_elsewhere, .init = setup, .fini = teardown)
{
    set_u32(record_of("glyf") + 8, UINT32_MAX);
    expect_refused("an offset behind the file", "cut short");
    setup();
    set_u32(record_of("glyf") + 12, (uint32_t)data_len);
    expect_refused("a length behind the file", "cut short");
    setup();
    set_u16(data + 4, 60000);
    expect_refused("a directory behind the file", "cut short");
}

/* Where the map in use lies. */
static uint8_t *map_of(const char *path, unsigned format)
{
    struct sfnt sfnt;

    read_font(path);
    sfnt = open_font();
    cr_assert_eq(sfnt_u16(sfnt.characters.data), format);
    return data + (sfnt.characters.data - data);
}

Test(sfnt_open, refuses_segments_out_of_order, .fini = teardown)
{
    set_u16(map_of(SMALL, 4) + 14, 0xFFF0);
    expect_refused("the first ends behind the others", "no Unicode character map");
    set_u16(map_of(SMALL, 4) + 6, 0xFFFE);
    expect_refused("more segments than bytes", "no Unicode character map");
    set_u16(map_of(SMALL, 4), 6);
    expect_refused("another format", "no Unicode character map");
}

Test(sfnt_open, refuses_groups_out_of_order, .fini = teardown)
{
    set_u32(map_of(PATHS[3], 12) + 16 + 4, SFNT_CHARACTER_MAX + 1);
    expect_refused("a character that there is not", "no Unicode character map");
    set_u32(map_of(PATHS[3], 12) + 12, UINT32_MAX);
    expect_refused("more groups than bytes", "no Unicode character map");
}

Test(sfnt_outline, of_offsets_that_make_no_sense_is_none, .init = setup, .fini = teardown)
{
    struct sfnt sfnt = open_font();
    struct sfnt_part outline;
    uint8_t const falling[] = {0, 8, 0, 0, 0xFF, 0xFF, 0, 2};
    uint8_t const long_ones[] = {0, 0, 0, 0, 0, 0, 0, 10, 0xFF, 0xFF, 0xFF, 0xFF};

    sfnt.loca = (struct sfnt_part){falling, sizeof falling};
    sfnt.has_long_offsets = false;
    sfnt.glyph_count = 3;
    cr_expect_not(sfnt_outline(&sfnt, 0, &outline), "its end before its start");
    cr_expect_not(sfnt_outline(&sfnt, 1, &outline), "its end behind the table");
    sfnt.loca = (struct sfnt_part){long_ones, sizeof long_ones};
    sfnt.has_long_offsets = true;
    cr_expect(sfnt_outline(&sfnt, 0, &outline) && outline.len == 10);
    cr_expect_not(sfnt_outline(&sfnt, 1, &outline));
}

Test(sfnt_faces_count, is_zero_of_what_is_no_font, .init = setup, .fini = teardown)
{
    static const uint8_t COLLECTION[] = {'t', 't', 'c', 'f', 0, 1, 0, 0, 0, 0,
                                         0,   2,   0,   0,   0, 0, 0, 0, 0, 0};

    cr_expect_eq(sfnt_faces_count(data, data_len), 1);
    cr_expect_eq(sfnt_faces_count(data, 11), 0);
    cr_expect_eq(sfnt_faces_count((const uint8_t *)"<html>no font", 13), 0);
    cr_expect_eq(sfnt_faces_count(COLLECTION, sizeof COLLECTION), 2);
    cr_expect_eq(sfnt_faces_count(COLLECTION, sizeof COLLECTION - 1), 0);
}
