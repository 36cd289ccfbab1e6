#include "workers/subset.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <hb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FONTS "/usr/share/fonts/truetype/noto/"

enum {
    ROUNDS = 3000, /* of broken fonts */
    GLYPHS_MAX = 65536,
    OUTLINE_BYTES = 40,
};

static uint8_t *data;
static size_t data_len;
static struct sfnt sfnt;
static struct glyph_set glyphs;
static struct bytes file;

static void read_font(const char *path)
{
    FILE *from = fopen(path, "rb");

    cr_assert_not_null(from, "%s", path);
    cr_assert_eq(fseek(from, 0, SEEK_END), 0);
    data_len = (size_t)ftell(from);
    rewind(from);
    data = malloc(data_len);
    cr_assert_not_null(data);
    cr_assert_eq(fread(data, 1, data_len, from), data_len);
    fclose(from);
    cr_assert_eq(sfnt_open(data, data_len, 0, &sfnt, NULL), ST_OK);
}

static void setup(void)
{
    glyphs.words_count = GLYPHS_MAX / 64;
    glyphs.words = calloc(glyphs.words_count, sizeof *glyphs.words);
    cr_assert_not_null(glyphs.words);
    read_font(FONTS "NotoSansHebrew-Regular.ttf");
}

static void clear_file(void)
{
    bytes_clear(&file);
    memset(glyphs.words, 0, glyphs.words_count * sizeof *glyphs.words);
}

static void teardown(void)
{
    bytes_clear(&file);
    glyph_set_clear(&glyphs);
    free(data);
}

/* ---- what is cut ---- */

static void hash_number(uint64_t *hash, float number)
{
    *hash = (*hash ^ (uint64_t)(int64_t)number) * UINT64_C(1099511628211);
}

static void hash_point(hb_draw_funcs_t *funcs, void *hash, hb_draw_state_t *state, float x, float y,
                       void *user)
{
    (void)funcs;
    (void)state;
    (void)user;
    hash_number(hash, x);
    hash_number(hash, y);
}

static void hash_curve(hb_draw_funcs_t *funcs, void *hash, hb_draw_state_t *state, float x1,
                       float y1, float x, float y, void *user)
{
    hash_point(funcs, hash, state, x1, y1, user);
    hash_point(funcs, hash, state, x, y, user);
}

static hb_font_t *font_of(const uint8_t *bytes, size_t len)
{
    hb_blob_t *blob =
        hb_blob_create((const char *)bytes, (unsigned)len, HB_MEMORY_MODE_READONLY, NULL, NULL);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_font_t *font = hb_font_create(face);

    hb_face_destroy(face);
    hb_blob_destroy(blob);
    return font;
}

static uint64_t outline_of(hb_font_t *font, hb_draw_funcs_t *funcs, uint32_t glyph)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    hb_font_get_glyph_shape(font, glyph, funcs, &hash);
    return hash;
}

static void expect_outlines(const char *name)
{
    hb_draw_funcs_t *funcs = hb_draw_funcs_create();
    hb_font_t *whole = font_of(data, data_len);
    hb_font_t *cut = font_of(file.data, file.len);

    hb_draw_funcs_set_move_to_func(funcs, hash_point, NULL, NULL);
    hb_draw_funcs_set_line_to_func(funcs, hash_point, NULL, NULL);
    hb_draw_funcs_set_quadratic_to_func(funcs, hash_curve, NULL, NULL);
    for (uint32_t glyph = 0; glyph_set_next(&glyphs, &glyph); glyph++) {
        cr_assert_eq(outline_of(cut, funcs, glyph), outline_of(whole, funcs, glyph), "%s: glyph %u",
                     name, glyph);
        cr_assert_eq(hb_font_get_glyph_h_advance(cut, glyph),
                     hb_font_get_glyph_h_advance(whole, glyph), "%s: glyph %u", name, glyph);
    }
    hb_font_destroy(whole);
    hb_font_destroy(cut);
    hb_draw_funcs_destroy(funcs);
}

Test(subset_outlines, keeps_every_outline_and_width, .init = setup, .fini = teardown)
{
    static const char *const NAMES[] = {"NotoSans-Regular.ttf", "NotoSansDevanagari-Bold.ttf",
                                        "NotoSansThai-Regular.ttf", "NotoSansArabic-Regular.ttf"};
    static const uint32_t STEPS[] = {1, 7, 500};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[200];

        snprintf(path, sizeof path, FONTS "%s", NAMES[i]);
        free(data);
        read_font(path);
        for (size_t step = 0; step < sizeof STEPS / sizeof *STEPS; step++) {
            for (uint32_t glyph = 3; glyph < sfnt.glyph_count; glyph += STEPS[step])
                glyph_set_add(&glyphs, glyph);
            cr_assert_eq(subset_outlines(&sfnt, &glyphs, &file, NULL), ST_OK);
            expect_outlines(NAMES[i]);
            clear_file();
        }
    }
}

static uint32_t sum_of(const uint8_t *from, size_t len)
{
    uint32_t sum = 0;

    for (size_t at = 0; at + 4 <= len; at += 4)
        sum += sfnt_u32(from + at);
    return sum;
}

Test(subset_outlines, has_six_tables_in_order_with_their_checksums, .init = setup, .fini = teardown)
{
    static const char *const TAGS[] = {"glyf", "head", "hhea", "hmtx", "loca", "maxp"};

    glyph_set_add(&glyphs, 40);
    cr_assert_eq(subset_outlines(&sfnt, &glyphs, &file, NULL), ST_OK);
    cr_expect_eq(sfnt_u32(file.data), 0x00010000);
    cr_assert_eq(sfnt_u16(file.data + 4), 6);
    cr_expect_eq(file.len % 4, 0);
    cr_expect_eq(sum_of(file.data, file.len), 0xB1B0AFBA);
    for (size_t i = 0; i < 6; i++) {
        const uint8_t *record = file.data + 12 + 16 * i;
        size_t const start = sfnt_u32(record + 8), len = sfnt_u32(record + 12);
        uint32_t sum;

        cr_expect_eq(memcmp(record, TAGS[i], 4), 0);
        cr_assert_leq(start + len, file.len);
        sum = sum_of(file.data + start, (len + 3) / 4 * 4);
        if (i == 1)
            sum -= sfnt_u32(file.data + start + 8);
        cr_expect_eq(sfnt_u32(record + 4), sum, "%s", TAGS[i]);
        if (i == 5)
            cr_expect_eq(sfnt_u16(file.data + start + 4), 41, "no glyph behind the last");
    }
}

Test(subset_outlines, leaves_nothing_when_memory_ends, .init = setup, .fini = teardown)
{
    bool has_failed = true;

    for (size_t call = 1; has_failed; call++) {
        enum status st;

        glyph_set_add(&glyphs, 40);
        failing_memory_start(call);
        st = subset_outlines(&sfnt, &glyphs, &file, NULL);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK);
        cr_expect_eq(file.data == NULL, has_failed);
        clear_file();
    }
}

/* ---- outlines that make no sense ---- */

/* Three glyphs of OUTLINE_BYTES each in a face of their own. */
static uint8_t outlines[3 * OUTLINE_BYTES];

static void make_face(void)
{
    static const uint8_t OFFSETS[] = {
        0, 0, 0, OUTLINE_BYTES / 2, 0, OUTLINE_BYTES, 0, OUTLINE_BYTES / 2 * 3};

    memset(outlines, 0, sizeof outlines); /* without contours: blank */
    sfnt.glyf = (struct sfnt_part){outlines, sizeof outlines};
    sfnt.loca = (struct sfnt_part){OFFSETS, sizeof OFFSETS};
    sfnt.has_long_offsets = false;
    sfnt.glyph_count = 3;
    sfnt.widths_count = 1;
}

static void set_outline(uint32_t glyph, const uint8_t *outline, size_t len)
{
    memcpy(outlines + (size_t)glyph * OUTLINE_BYTES, outline, len);
}

Test(subset_outlines, names_the_glyph_that_makes_no_sense, .init = setup, .fini = teardown)
{
    enum { LEN = 24 };
    /* Behind the header of 10 bytes: the last points of contours, instructions, flags. */
    static const struct {
        const char *name;
        uint8_t outline[LEN];
    } ROWS[] = {
        {"more contours than bytes", {0, 100}},
        {"more instructions than bytes", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200}},
        {"more points than bytes", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}},
        {"flags repeated too often", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x38, 200}},
        {"a component that there is not", {0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0}},
        {"components without end",
         {0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 2, 0, 0, 0, 0x20, 0, 2, 0, 0, 0, 0x20}},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct error err = {0};

        make_face();
        memset(outlines + OUTLINE_BYTES, i == 5 ? 0x20 : 0, OUTLINE_BYTES);
        set_outline(1, ROWS[i].outline, LEN);
        glyph_set_add(&glyphs, 1);
        cr_expect_eq(subset_outlines(&sfnt, &glyphs, &file, &err), ST_INVALID, "%s", ROWS[i].name);
        cr_expect_str_eq(err.text, "its glyph 1 makes no sense", "%s", ROWS[i].name);
        cr_expect_null(file.data);
        clear_file();
    }
}

Test(subset_outlines, goes_round_a_circle_of_components_once, .init = setup, .fini = teardown)
{
    static const uint8_t OF_2[] = {0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0};
    static const uint8_t OF_1[] = {0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0};

    make_face();
    set_outline(1, OF_2, sizeof OF_2);
    set_outline(2, OF_1, sizeof OF_1);
    glyph_set_add(&glyphs, 2);
    cr_expect_eq(subset_outlines(&sfnt, &glyphs, &file, NULL), ST_OK);
    cr_expect(glyph_set_has(&glyphs, 1) && glyph_set_has(&glyphs, 0));
}

/* Composites, each of which is a part of the one behind it. */
Test(subset_outlines, refuses_what_is_nested_too_deeply, .init = setup, .fini = teardown)
{
    enum { DEPTH_MAX = 16, COUNT = DEPTH_MAX + 4, BYTES = 16 };
    static uint8_t chain[COUNT * BYTES], offsets[(COUNT + 1) * 2];
    struct error err = {0};

    make_face();
    for (size_t i = 0; i <= COUNT; i++) {
        offsets[2 * i + 1] = (uint8_t)(i * BYTES / 2);
        if (i < 2 || i == COUNT)
            continue;
        chain[i * BYTES] = chain[i * BYTES + 1] = 0xFF;
        chain[i * BYTES + 13] = (uint8_t)(i - 1);
    }
    sfnt.glyf = (struct sfnt_part){chain, sizeof chain};
    sfnt.loca = (struct sfnt_part){offsets, sizeof offsets};
    sfnt.glyph_count = COUNT;
    glyph_set_add(&glyphs, DEPTH_MAX + 1);
    cr_expect_eq(subset_outlines(&sfnt, &glyphs, &file, NULL), ST_OK);
    clear_file();
    glyph_set_add(&glyphs, DEPTH_MAX + 2);
    cr_expect_eq(subset_outlines(&sfnt, &glyphs, &file, &err), ST_INVALID);
    cr_expect_str_eq(err.text, "its glyphs are nested too deeply");
}

/* Under the address sanitizer every byte read outside of the font is a failure. */
Test(subset_outlines, never_reads_outside_of_a_broken_font, .init = setup, .fini = teardown,
     .timeout = 60)
{
    uint8_t *whole = malloc(data_len);
    unsigned ends[3] = {0};

    cr_assert_not_null(whole);
    memcpy(whole, data, data_len);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t state = round * 2654435761U + 12345;

        memcpy(data, whole, data_len);
        for (int change = 0; change < 8; change++) {
            state = state * 1664525U + 1013904223U;
            /* half of them in the first kilobyte, where the directory and small tables are */
            data[(state >> 8) % (change % 2 == 0 ? data_len : 1024)] = (uint8_t)(state >> 3);
        }
        if (sfnt_faces_count(data, data_len) != 1 ||
            sfnt_open(data, data_len, 0, &sfnt, NULL) != ST_OK) {
            ends[0]++;
            continue;
        }
        for (uint32_t glyph = 0; glyph < sfnt.glyph_count; glyph += 3)
            glyph_set_add(&glyphs, glyph);
        for (uint32_t c = 0; c <= 0xFFFF; c += 17)
            cr_assert_lt(sfnt_glyph(&sfnt, c), sfnt.glyph_count);
        ends[subset_outlines(&sfnt, &glyphs, &file, NULL) == ST_OK ? 1 : 2]++;
        clear_file();
    }
    cr_expect(ends[0] > 100 && ends[1] > 100 && ends[2] > 100, "%u, %u, %u", ends[0], ends[1],
              ends[2]);
    free(whole);
}
