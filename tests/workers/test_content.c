#include "workers/content.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <hb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED = 0xFF0000, GREY = 0x808080, WHITE = 0xFFFFFF };
enum { UNIT = FONT_EM / FONT_SCALE }; /* of the em of the face, 1,000 */

static const char *const PATHS[] = {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"};

static struct font_set *fonts;
static struct text_setter *setter;
static struct arena arena;
static struct bytes out;
static struct content content;

static void setup(void)
{
    content_init(&content, &out);
}

static void teardown(void)
{
    bytes_clear(&out);
}

static void setup_text(void)
{
    cr_assert_eq(font_set_open(PATHS, 1, &fonts, NULL), ST_OK);
    cr_assert_eq(text_setter_new(fonts, &setter, NULL), ST_OK);
    setup();
}

static void teardown_text(void)
{
    teardown();
    text_setter_free(&setter);
    font_set_free(&fonts);
    arena_clear(&arena);
}

/* What was written since the last call. */
static const char *written(void)
{
    cr_assert_eq(content_status(&content, NULL), ST_OK);
    cr_assert_eq(bytes_append(&out, "", 1, NULL), ST_OK);
    out.len = 0;
    return (const char *)out.data;
}

/* ---- numbers ---- */

Test(content_fill_box, writes_positions_to_a_hundredth, .init = setup, .fini = teardown)
{
    static const struct {
        int32_t mpt;
        const char *number;
    } ROWS[] = {
        {0, "0"},
        {4, "0"},
        {5, ".01"},
        {-4, "0"},
        {-5, "-.01"},
        {10, ".01"},
        {99, ".1"},
        {100, ".1"},
        {104, ".1"},
        {105, ".11"},
        {994, ".99"},
        {995, "1"},
        {1000, "1"},
        {-1000, "-1"},
        {1050, "1.05"},
        {1500, "1.5"},
        {12340, "12.34"},
        {-12345, "-12.35"},
        {100000, "100"},
        {101010, "101.01"},
        {5669291, "5669.29"},
        {-5669291, "-5669.29"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char expected[64];

        content_fill_box(&content, 0, ROWS[i].mpt, 1000, 2000, 3000);
        snprintf(expected, sizeof expected, "%s 1 2 3 re f\n", ROWS[i].number);
        cr_expect_str_eq(written(), expected, "%d", ROWS[i].mpt);
    }
}

/* ---- colours ---- */

Test(content_fill_box, sets_a_colour_only_when_it_changes, .init = setup, .fini = teardown)
{
    static const struct {
        uint32_t color;
        const char *operator;
    } ROWS[] = {
        {0x000000, ""}, /* a stream begins with black */
        {0xFFFFFF, "1 g\n"},    {0xFFFFFF, ""},           {0x808080, ".502 g\n"},
        {0x010101, ".004 g\n"}, {0xFF0000, "1 0 0 rg\n"}, {0x1B2440, ".106 .141 .251 rg\n"},
        {0x1B2440, ""},         {0x00FF00, "0 1 0 rg\n"}, {0x0000FF, "0 0 1 rg\n"},
        {0x000000, "0 g\n"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char expected[64];

        content_fill_box(&content, ROWS[i].color, 0, 0, 1000, 1000);
        snprintf(expected, sizeof expected, "%s0 0 1 1 re f\n", ROWS[i].operator);
        cr_expect_str_eq(written(), expected, "%06X", ROWS[i].color);
    }
}

Test(content_restore, brings_the_colour_before_back, .init = setup, .fini = teardown)
{
    content_fill_box(&content, RED, 0, 0, 1000, 1000);
    content_save(&content);
    content_fill_box(&content, GREY, 0, 0, 1000, 1000);
    content_save(&content);
    content_fill_box(&content, WHITE, 0, 0, 1000, 1000);
    content_restore(&content);
    content_fill_box(&content, GREY, 0, 0, 2000, 1000);
    content_restore(&content);
    content_fill_box(&content, RED, 0, 0, 3000, 1000);
    cr_expect_str_eq(written(), "1 0 0 rg\n0 0 1 1 re f\n"
                                "q\n.502 g\n0 0 1 1 re f\n"
                                "q\n1 g\n0 0 1 1 re f\nQ\n"
                                "0 0 2 1 re f\nQ\n"
                                "0 0 3 1 re f\n");
}

Test(content_restore, without_a_save_is_our_fault, .init = setup, .signal = SIGABRT)
{
    content_restore(&content);
}

Test(content_save, deeper_than_it_says_is_our_fault, .init = setup, .signal = SIGABRT)
{
    for (int i = 0; i <= CONTENT_SAVES_MAX; i++)
        content_save(&content);
}

Test(content_clip_box, lasts_until_the_restore, .init = setup, .fini = teardown)
{
    content_save(&content);
    content_clip_box(&content, 1000, 2000, 3000, 4500);
    content_restore(&content);
    cr_expect_str_eq(written(), "q\n1 2 3 4.5 re W n\nQ\n");
}

Test(content_clip_box, without_a_save_is_our_fault, .init = setup, .signal = SIGABRT)
{
    content_clip_box(&content, 0, 0, 1000, 1000);
}

/* ---- lines ---- */

/* ---- axes, images, and what goes on from another stream ---- */

Test(content_move, turns_the_axes_clockwise, .init = setup, .fini = teardown)
{
    static const char *const ROWS[] = {"q\n1 0 0 1 10 20.5 cm\nQ\n", "q\n0 -1 1 0 10 20.5 cm\nQ\n",
                                       "q\n-1 0 0 -1 10 20.5 cm\nQ\n",
                                       "q\n0 1 -1 0 10 20.5 cm\nQ\n"};

    for (uint32_t turns = 0; turns < 4; turns++) {
        content_save(&content);
        content_move(&content, 10000, 20500, turns);
        content_restore(&content);
        cr_expect_str_eq(written(), ROWS[turns], "%u", turns);
    }
}

Test(content_move, without_a_save_is_our_fault, .init = setup, .signal = SIGABRT)
{
    content_move(&content, 0, 0, 0);
}

Test(content_move, by_a_whole_turn_is_our_fault, .init = setup, .signal = SIGABRT)
{
    content_save(&content);
    content_move(&content, 0, 0, 4);
}

Test(content_image, fills_a_box_and_leaves_the_rest_as_it_was, .init = setup, .fini = teardown)
{
    content_image(&content, 1023, 1000, -2000, 3000, 4250);
    cr_expect_str_eq(written(), "q 3 0 0 4.25 1 -2 cm/I1023 Do Q\n");
}

Test(content_init_saved, may_restore_what_another_stream_saved, .init = setup, .fini = teardown)
{
    content_fill_box(&content, RED, 0, 0, 1000, 1000);
    content_init_saved(&content, &out);
    (void)written();
    content_restore(&content);
    content_fill_box(&content, 0, 0, 0, 1000, 1000);
    cr_expect_str_eq(written(), "Q\n0 0 1 1 re f\n"); /* in the black that a page begins with */
}

/* ---- lines ---- */

Test(content_line, says_all_that_the_last_one_may_have_changed, .init = setup, .fini = teardown)
{
    content_line(&content, &(struct content_line){.color = RED,
                                                  .x1_mpt = 1000,
                                                  .y1_mpt = 2000,
                                                  .x2_mpt = 30500,
                                                  .y2_mpt = 2000,
                                                  .stroke_mpt = 567,
                                                  .dash_mpt = 3400});
    cr_expect_str_eq(written(), "1 0 0 RG .57 w [3.4 ] 0 d 1 2 m 30.5 2 l S\n");
    content_line(&content, &(struct content_line){.x2_mpt = 1000, .stroke_mpt = 1000});
    cr_expect_str_eq(written(), "0 0 0 RG 1 w [] 0 d 0 0 m 1 0 l S\n");
}

/* ---- text ---- */

static struct text_block block_of(const char *text, int32_t width_mpt)
{
    struct text_fit const fit = {.width_mpt = width_mpt,
                                 .height_mpt = 20000,
                                 .size_mpt = 10000,
                                 .floor_mpt = 10000,
                                 .wrapped_floor_mpt = 10000,
                                 .lines_max = 1};
    struct text_block block;

    cr_assert_eq(text_set(setter, (struct text){"en-GB", 5}, (struct text){text, strlen(text)},
                          &fit, &arena, &block, NULL),
                 ST_OK);
    cr_assert_eq(block.lines_count, 1);
    return block;
}

static struct text_line line_of(const char *text, int32_t width_mpt)
{
    return block_of(text, width_mpt).lines[0];
}

static const char *text_written(const char *text)
{
    struct text_block const block = block_of(text, 1000000);

    content_text(&content, fonts, &block, &block.lines[0], 0, 20000, 30000);
    return written();
}

static unsigned glyph_of(uint32_t code_point)
{
    hb_codepoint_t glyph = 0;

    cr_assert(hb_font_get_nominal_glyph(font_shaper(fonts, 0), code_point, &glyph));
    return glyph;
}

Test(content_text, writes_glyphs_as_two_byte_codes, .init = setup_text, .fini = teardown_text)
{
    char expected[100];

    snprintf(expected, sizeof expected, "BT/F0 10 Tf 20 30 Td[<%04X%04X%04X>]TJ ET\n",
             glyph_of('n'), glyph_of('i'), glyph_of('n'));
    cr_expect_str_eq(text_written("nin"), expected);
}

Test(content_text, names_the_face_by_its_number_and_sets_the_colour, .init = setup_text,
     .fini = teardown_text)
{
    const char *const two[] = {PATHS[0], PATHS[0]};
    struct text_block const block = block_of("n", 1000000);
    struct glyph const glyph = {.id = glyph_of('n'), .face = 1, .end = 1, .group_end = 1};
    struct text_line line = block.lines[0];
    struct font_set *set = NULL;
    char expected[100];

    line.glyphs = &glyph;
    cr_assert_eq(font_set_open(two, 2, &set, NULL), ST_OK);
    cr_assert_not_null(font_shaper(set, 1));
    content_text(&content, set, &(struct text_block){.size_mpt = 10500, .text = block.text}, &line,
                 RED, 0, 0);
    snprintf(expected, sizeof expected, "1 0 0 rg\nBT/F1 10.5 Tf 0 0 Td[<%04X>]TJ ET\n",
             glyph_of('n'));
    cr_expect_str_eq(written(), expected);
    font_set_free(&set);
}

Test(content_text, moves_the_pen_where_shaping_does, .init = setup_text, .fini = teardown_text)
{
    struct text_line const line = line_of("AV", 1000000);
    int const kern = font_advance(fonts, 0, glyph_of('A')) - line.glyphs[0].advance;
    char expected[100];

    cr_assert_gt(kern, 0);
    snprintf(expected, sizeof expected, "BT/F0 10 Tf 20 30 Td[<%04X>%d<%04X>]TJ ET\n",
             glyph_of('A'), kern / UNIT, glyph_of('V'));
    cr_expect_str_eq(text_written("AV"), expected);
}

Test(content_text, puts_marks_over_letters_and_takes_the_rise_back, .init = setup_text,
     .fini = teardown_text)
{
    struct text_line const line = line_of("X\u0302", 1000000);
    const struct glyph *mark = &line.glyphs[1];
    const char *text = text_written("X\u0302");

    cr_assert(mark->y_offset > 0 && mark->advance == 0);
    cr_expect_not_null(strstr(text, "Ts["), "%s", text);
    cr_expect_not_null(strstr(text, "]TJ 0 Ts ET\n"), "%s", text);
}

/* Adds up where a viewer has the pen before each glyph, from the codes and numbers of a line. */
static void expect_pen(const struct text_line *line, const char *text, const char *name)
{
    const char *c = strstr(text, "Td[");
    const char *const end = strstr(text, "ET\n");
    bool is_in_array = false, is_in_code = false;
    int64_t actual = 0, wanted = 0;
    size_t glyph = 0;

    cr_assert(c != NULL && end != NULL, "%s", name);
    while (c < end) {
        char *next = NULL;

        if (*c == '/') { /* /Span or a face */
            while (c < end && *c != 'C' && *c != 'f')
                c++;
        } else if (strchr("<>[]", *c) != NULL) {
            is_in_array = *c == '[' || (is_in_array && *c != ']');
            is_in_code = *c++ == '<';
        } else if (is_in_code) {
            char const code[] = {c[0], c[1], c[2], c[3], '\0'};
            uint32_t const id = (uint32_t)strtoul(code, &next, 16);

            cr_assert(next == code + 4 && glyph < line->glyphs_count, "%s", name);
            cr_assert_eq(id, line->glyphs[glyph].id, "%s", name);
            cr_expect_eq(actual * UNIT, wanted + line->glyphs[glyph].x_offset, "%s: glyph %zu",
                         name, glyph);
            actual += font_width(fonts, 0, id);
            wanted += line->glyphs[glyph++].advance;
            c += 4;
        } else if (is_in_array) {
            actual -= strtol(c, &next, 10);
            cr_assert_neq(next, c, "%s: %s", name, c);
            c = next;
        } else {
            c++; /* operators between arrays */
        }
    }
    cr_expect_eq(glyph, line->glyphs_count, "%s", name);
}

Test(content_text, puts_each_glyph_where_shaping_does, .init = setup_text, .fini = teardown_text)
{
    static const char *const ROWS[] = {"AVATAR To Ty", "Nguy\u1EC5n Th\u1ECB \u00C1nh",
                                       "x\u0302y\u0323\u0301 X\u0302", "P. 12, \u0413\u0410\u0422"};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_line const line = line_of(ROWS[i], 1000000);

        expect_pen(&line, text_written(ROWS[i]), ROWS[i]);
    }
}

Test(content_text, gives_the_characters_only_where_glyphs_do_not_read_back, .init = setup_text,
     .fini = teardown_text)
{
    static const struct {
        const char *text;
        const char *characters; /* in UTF-16, in hexadecimal; NULL: they read back */
    } ROWS[] = {
        {"Ana Li", NULL},
        {"Luc\u00EDa Fern\u00E1ndez", NULL},
        {"Nguy\u1EC5n", NULL},
        {"\u1F0C\u03B3\u03B9\u03BF\u03C2", NULL},
        {"x\u0302", NULL},          /* a glyph each */
        {"Rene\u0301", "00650301"}, /* drawn as one é: an id, kept as it was sent */
        {"\u0301a", "0301"},        /* with a circle under it */
        {"A\u200DB", "0041200D"},   /* the joiner leaves no glyph */
        {"\u5C71", "5C71"},         /* a box */
        {"\U0001F3AB", "D83CDFAB"},
        {"a\U0010FFFDb", "DBFFDFFD"},
        {"a\u200Eb\u2068c\u2069", NULL}, /* of controls of direction nothing is left */
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *text = text_written(ROWS[i].text);
        char expected[100];

        if (ROWS[i].characters == NULL) {
            cr_expect_null(strstr(text, "EMC"), "%s: %s", ROWS[i].text, text);
        } else {
            snprintf(expected, sizeof expected, "/Span<</ActualText<FEFF%s>>>BDC ",
                     ROWS[i].characters);
            cr_expect_not_null(strstr(text, expected), "%s: %s", ROWS[i].text, text);
            cr_expect_not_null(strstr(text, "]TJ EMC "), "%s: %s", ROWS[i].text, text);
        }
    }
}

Test(content_text, gives_the_characters_where_the_next_letter_begins_before_a_mark,
     .init = setup_text, .fini = teardown_text)
{
    struct text_block const block = block_of("x\u0302o", 1000000);
    struct text_line line = block.lines[0];
    struct glyph glyphs[3];
    const char *text;

    cr_assert_eq(line.glyphs_count, 3);
    memcpy(glyphs, line.glyphs, sizeof glyphs);
    glyphs[1].group = glyphs[0].group; /* a cluster, as where scripts have them */
    glyphs[0].group_end = glyphs[1].group_end;
    line.glyphs = glyphs;
    for (int kern = 0; kern <= UNIT; kern += UNIT) {
        glyphs[1].x_offset = 0;
        glyphs[2].x_offset = -kern;
        content_text(&content, fonts, &block, &line, 0, 0, 0);
        text = written();
        cr_expect_eq(strstr(text, "/Span<</ActualText<FEFF00780302>>>BDC ") != NULL, kern > 0, "%s",
                     text);
    }
}

Test(content_text, reads_an_ellipsis_back_as_one, .init = setup_text, .fini = teardown_text)
{
    struct text_block block = block_of("Spring Fair", 30000);

    cr_assert(block.lines[0].has_ellipsis);
    content_text(&content, fonts, &block, &block.lines[0], 0, 0, 0);
    cr_expect_eq(strncmp(written(), "BT", 2), 0);
    block = block_of("S\u200Dpring Fair", 30000);
    cr_assert(block.lines[0].has_ellipsis);
    content_text(&content, fonts, &block, &block.lines[0], 0, 0, 0);
    cr_expect_null(strstr(strstr(written(), "EMC"), "BDC"), "the ellipsis itself reads back");
}

/* ---- right to left ---- */

static void setup_scripts(void)
{
    static const char *const SCRIPTS[] = {
        "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
        "/usr/share/fonts/truetype/noto/NotoSansHebrew-Regular.ttf",
        "/usr/share/fonts/truetype/noto/NotoNaskhArabic-Regular.ttf",
        "/usr/share/fonts/truetype/noto/NotoSansArabic-Regular.ttf",
    };

    cr_assert_eq(font_set_open(SCRIPTS, sizeof SCRIPTS / sizeof *SCRIPTS, &fonts, NULL), ST_OK);
    cr_assert_eq(text_setter_new(fonts, &setter, NULL), ST_OK);
    setup();
}

static unsigned glyph_in(size_t face, uint32_t code_point)
{
    hb_codepoint_t glyph = 0;

    cr_assert(hb_font_get_nominal_glyph(font_shaper(fonts, face), code_point, &glyph));
    return glyph;
}

/* The glyphs of a line as they are written. */
static size_t codes_in(const char *text, unsigned *codes, size_t codes_max)
{
    size_t count = 0;

    for (const char *c = strchr(text, '['); c != NULL && count < codes_max; c = strchr(c + 1, '<'))
        if (*c == '<' && c[1] != '<' && c[1] != '/' && strncmp(c, "<FEFF", 5) != 0)
            for (c++; *c != '>' && count < codes_max; c += 4) {
                char const code[] = {c[0], c[1], c[2], c[3], '\0'};

                codes[count++] = (unsigned)strtoul(code, NULL, 16);
            }
    return count;
}

Test(content_text, is_written_in_the_order_in_which_it_is_read, .init = setup_scripts,
     .fini = teardown_text)
{
    unsigned codes[16];
    const char *text = text_written("Dan \u05D3\u05E0\u05D9");

    cr_assert_eq(codes_in(text, codes, 16), 7, "%s", text);
    cr_expect_eq(codes[0], glyph_in(0, 'D'));
    cr_expect_eq(codes[4], glyph_in(1, 0x5D3));
    cr_expect_eq(codes[5], glyph_in(1, 0x5E0));
    cr_expect_eq(codes[6], glyph_in(1, 0x5D9));
    cr_expect_null(strstr(text, "BDC"), "%s", text);
    text = text_written("\u05E9\u05B8\u05DC"); /* the point behind its letter */
    cr_assert_eq(codes_in(text, codes, 16), 3, "%s", text);
    cr_expect(codes[0] == glyph_in(1, 0x5E9) && codes[1] == glyph_in(1, 0x5B8) &&
                  codes[2] == glyph_in(1, 0x5DC),
              "%s", text);
}

Test(content_text, notes_what_joined_forms_read_as, .init = setup_scripts, .fini = teardown_text)
{
    static const char MEEM[] = "\u0645";
    struct readings readings = {0};
    const struct glyph_reading *reading;
    unsigned codes[4];
    const char *text;

    content.readings = &readings;
    text = text_written("\u0645\u062D\u200C"); /* a joiner behind it is no part of a letter */
    cr_assert_eq(codes_in(text, codes, 4), 2, "%s", text);
    cr_expect_not_null(strstr(text, "/Span<</ActualText<FEFF0645>>>BDC ["), "%s", text);
    cr_expect_not_null(strstr(text, "/Span<</ActualText<FEFF062D200C>>>BDC ["), "%s", text);
    reading = readings_find(&readings, 2, codes[0]);
    cr_assert_not_null(reading);
    cr_expect(reading->len == strlen(MEEM) && memcmp(reading->data, MEEM, reading->len) == 0);
    reading = readings_find(&readings, 2, codes[1]);
    cr_expect(reading == NULL || reading->len == 2);
    text_written("Ana \u05D0");
    cr_expect_leq(readings.count, 2, "what characters lead to is not noted");
    readings_clear(&readings);
}

Test(content_text, writes_mirrored_brackets_in_a_font_of_their_own, .init = setup_scripts,
     .fini = teardown_text)
{
    struct readings readings = {0};
    const struct glyph_reading *reading;
    const char *text;

    content.readings = &readings;
    text = text_written("(\u05D0)");
    cr_expect_not_null(strstr(text, "/F0M 10 Tf"), "%s", text);
    reading = readings_find(&readings, 0 | READINGS_MIRRORED, glyph_in(0, ')'));
    cr_assert_not_null(reading);
    cr_expect(reading->len == 1 && reading->data[0] == '(');
    cr_expect_null(readings_find(&readings, 0, glyph_in(0, ')')));
    text = text_written("(a)");
    cr_expect_null(strstr(text, "/F0M"), "%s", text);
    readings_clear(&readings);
}

Test(content_text, parts_an_alef_from_its_lam, .init = setup_scripts, .fini = teardown_text)
{
    struct text_block const block = block_of("\u0644\u0627", 1000000);
    const struct glyph *glyphs = block.lines[0].glyphs;
    const char *text, *move;

    cr_assert(block.lines[0].glyphs_count == 2 && glyphs[0].face == 2 && glyphs[0].advance == 0);
    cr_assert_geq(glyphs[0].x_offset, 0, "it begins at its lam or to the right of it");
    text = text_written("\u0644\u0627");
    move = strstr(text, "EMC /Span");
    cr_assert_not_null(move, "%s", text);
    move = strchr(move, '[');
    cr_expect_eq(strtol(move + 1, NULL, 10),
                 font_width(fonts, 2, glyphs[1].id) + glyphs[1].x_offset / UNIT + 1, "%s", text);
}

Test(content_text, of_a_line_without_glyphs_is_nothing, .init = setup_text, .fini = teardown_text)
{
    struct text_line const line = {.source = {"", 0}};

    content_text(&content, fonts, &(struct text_block){.size_mpt = 10000}, &line, RED, 0, 0);
    cr_expect_str_eq(written(), "");
}

/* ---- the QR symbol ---- */

Test(content_qr, is_one_black_path_on_a_white_plate, .init = setup, .fini = teardown)
{
    struct qr const qr = {.side = 21};
    static const struct qr_rect RECTS[] = {{0, 0, 7, 1}, {20, 3, 1, 18}};

    /* 21 modules and the quiet zone of 8 are 29: at 29 pt a module is one point */
    content_qr(&content, &qr, RECTS, 2, 10000, 100000, 29000);
    cr_expect_str_eq(written(), "1 g\n10 100 29 29 re f\n0 g\n"
                                "q 1 0 0 -1 14 125 cm\n0 0 7 1 re\n20 3 1 18 re\nf Q\n");
}

Test(content_qr, divides_a_side_that_is_no_multiple, .init = setup, .fini = teardown)
{
    struct qr const qr = {.side = 57};

    /* 124724 mpt over 65 modules: 1.918830.. pt */
    content_qr(&content, &qr, NULL, 0, 0, 0, 124724);
    cr_expect_str_eq(written(), "1 g\n0 0 124.72 124.72 re f\n0 g\n"
                                "q 1.91883 0 0 -1.91883 7.67532 117.04868 cm\nf Q\n");
}

/* ---- the end of memory ---- */

static void write_everything(const struct text_block *block)
{
    static const struct qr_rect RECT = {0, 0, 7, 1};
    struct qr const qr = {.side = 21};

    content_save(&content);
    content_fill_box(&content, RED, 0, 0, 1000, 1000);
    content_line(&content, &(struct content_line){.stroke_mpt = 1000});
    content_clip_box(&content, 0, 0, 1000, 1000);
    for (int i = 0; i < 50; i++)
        content_text(&content, fonts, block, &block->lines[0], GREY, 0, 0);
    content_qr(&content, &qr, &RECT, 1, 0, 0, 29000);
    content_restore(&content);
}

Test(content_status, remembers_that_memory_ended, .init = setup_text, .fini = teardown_text)
{
    struct text_block const block = block_of("\u5C71X\u0302", 1000000);
    size_t call = 1;

    for (bool has_failed = true; has_failed; call++) {
        struct error err = {0};
        enum status st;

        bytes_clear(&out);
        content_init(&content, &out);
        failing_memory_start(call);
        write_everything(&block);
        has_failed = failing_memory_stop();
        st = content_status(&content, &err);
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(err.status, st);
    }
    cr_expect_gt(call, 5);
}
