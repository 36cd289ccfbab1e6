#include "workers/text.h"

#include "domain/utf8.h"
#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <hb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    UNIT = FONT_EM / FONT_SCALE, /* a thousandth of an em: these fonts use whole ones only */
    WIDE_MPT = 1000000,
    STEP_MPT = 250,
    LEADING_PERCENT = 125,
    TEXT_BYTES_MAX = 4096,
};

#define DOT_BELOW  "\u0323"
#define ACUTE      "\u0301"
#define CIRCUMFLEX "\u0302"
#define ELLIPSIS   0x2026

enum { OVERHANG = 150 }; /* more than the ink of any two letters here stands over, in thousandths */

static const char *const PATHS[] = {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
                                    "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf"};

static struct font_set *fonts;
static struct text_setter *setter;
static struct arena arena;
static struct text_rules rules;

static void setup(void)
{
    struct error err = {0};

    cr_assert_eq(locale_rules(&rules, &err), ST_OK, "%s", err.text);
    cr_assert_eq(font_set_open(PATHS, 2, &fonts, &err), ST_OK, "%s", err.text);
    cr_assert_eq(text_setter_new(fonts, &setter, &err), ST_OK, "%s", err.text);
}

static void teardown(void)
{
    text_setter_free(&setter);
    cr_expect_null(setter);
    font_set_free(&fonts);
    arena_clear(&arena);
}

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

static struct text_block set_in(const char *tag, struct text text, const struct text_fit *fit)
{
    struct text_block block;
    struct error err = {0};

    cr_assert_eq(text_set(setter, text_of(tag), text, fit, &arena, &block, &err), ST_OK, "%s",
                 err.text);
    return block;
}

static struct text_block set(const char *text, const struct text_fit *fit)
{
    return set_in("en-GB", text_of(text), fit);
}

/* One line of regular letters, as wide as it likes. */
static struct text_fit fit_one_line(void)
{
    return (struct text_fit){.width_mpt = WIDE_MPT,
                             .height_mpt = 100000,
                             .size_mpt = 10000,
                             .floor_mpt = 6000,
                             .wrapped_floor_mpt = 5000,
                             .lines_max = 1};
}

/* In thousandths of the em: at 1 pt, in mpt. */
static int32_t width_of(const char *text)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set(text, &fit);

    cr_assert_eq(block.lines_count, 1);
    cr_assert_eq(block.lines[0].width % UNIT, 0);
    return block.lines[0].width / UNIT;
}

static bool line_is(const struct text_line *line, const char *text)
{
    return line->source.len == strlen(text) &&
           memcmp(line->source.data, text, line->source.len) == 0;
}

static uint32_t glyph_of(size_t face, uint32_t code_point)
{
    hb_codepoint_t glyph = 0;

    hb_font_get_nominal_glyph(font_shaper(fonts, face), code_point, &glyph);
    return glyph;
}

/* ---- one line ---- */

Test(text_set, gives_one_line_at_full_size_where_there_is_room, .init = setup, .fini = teardown)
{
    static const char TEXT[] = "Luc\u00EDa Fern\u00E1ndez";
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set(TEXT, &fit);
    int32_t width = 0;

    cr_assert_eq(block.lines_count, 1);
    cr_expect(block.face == 0 && block.size_mpt == 10000 && block.leading_mpt == 12500);
    cr_expect(line_is(&block.lines[0], TEXT) && !block.lines[0].has_ellipsis);
    cr_assert_eq(block.lines[0].glyphs_count, 15);
    for (size_t i = 0; i < 15; i++)
        width += block.lines[0].glyphs[i].advance;
    cr_expect_eq(block.lines[0].width, width);
    cr_expect_eq(block.lines[0].glyphs[0].id, glyph_of(0, 'L'));
    cr_expect_eq(block.lines[0].glyphs[3].id, glyph_of(0, 0xED));
    cr_expect_eq(block.lines[0].glyphs[4].at, 5, "glyphs know their characters by byte");
    cr_expect_eq(block.missing_count, 0);
}

Test(text_set, shapes_in_the_face_asked_for, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.face = 1;
    block = set("Ana", &fit);
    cr_expect_eq(block.face, 1);
    cr_expect_eq(block.lines[0].glyphs[0].id, glyph_of(1, 'A'));
    cr_expect_gt(block.lines[0].width, width_of("Ana") * UNIT);
}

Test(text_set, kerns, .init = setup, .fini = teardown)
{
    cr_expect_lt(width_of("AV"), width_of("A") + width_of("V"));
    cr_expect_lt(width_of("To"), width_of("T") + width_of("o"));
}

Test(text_set, places_marks_on_letters_that_have_no_composed_form, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set("x" CIRCUMFLEX, &fit);
    const struct glyph *glyphs = block.lines[0].glyphs;

    cr_assert_eq(block.lines[0].glyphs_count, 2);
    cr_expect_eq(glyphs[0].id, glyph_of(0, 'x'));
    cr_expect(glyphs[1].id == glyph_of(0, 0x302) && glyphs[1].advance == 0);
    cr_expect_neq(glyphs[1].x_offset, 0);
    cr_expect_eq(block.lines[0].width, width_of("x") * UNIT);
    cr_expect_eq(block.missing_count, 0);
}

Test(text_set, gives_a_mark_that_comes_first_something_to_stand_on, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set(ACUTE "a", &fit);

    cr_assert_eq(block.lines[0].glyphs_count, 3);
    cr_expect_eq(block.lines[0].glyphs[0].id, glyph_of(0, 0x25CC));
    cr_expect_eq(block.missing_count, 0);
}

static void expect_same_glyphs(const struct text_block *a, const struct text_block *b,
                               const char *name)
{
    cr_assert(a->lines_count == 1 && b->lines_count == 1, "%s", name);
    cr_assert_eq(a->lines[0].glyphs_count, b->lines[0].glyphs_count, "%s", name);
    cr_expect_eq(a->lines[0].width, b->lines[0].width, "%s", name);
    for (size_t i = 0; i < a->lines[0].glyphs_count; i++) {
        const struct glyph *x = &a->lines[0].glyphs[i], *y = &b->lines[0].glyphs[i];

        cr_expect(x->id == y->id && x->advance == y->advance && x->x_offset == y->x_offset &&
                      x->y_offset == y->y_offset,
                  "%s: glyph %zu", name, i);
    }
}

Test(text_set, draws_the_composed_form_of_what_came_decomposed, .init = setup, .fini = teardown)
{
    static const char *const ROWS[][2] = {
        {"Rene\u0301 Du\u0308rr", "Ren\u00E9 D\u00FCrr"},
        {"Nguye\u0302\u0303n Thi\u0323 A\u0301nh", "Nguy\u1EC5n Th\u1ECB \u00C1nh"},
        {"\u0391\u0313\u0301", "\u1F0C"},
        {"\u0418\u0306", "\u0419"},
        {"I\u0307pek", "\u0130pek"},
    };
    struct text_fit const fit = fit_one_line();

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text nfc = {0};
        struct text_block from_nfc, composed, decomposed;

        cr_assert_eq(rules.nfc(text_of(ROWS[i][0]), &arena, &nfc, NULL), ST_OK);
        from_nfc = set_in("en-GB", nfc, &fit);
        composed = set(ROWS[i][1], &fit);
        decomposed = set(ROWS[i][0], &fit); /* ids are not normalised, but drawn right */
        expect_same_glyphs(&from_nfc, &composed, ROWS[i][1]);
        expect_same_glyphs(&decomposed, &composed, ROWS[i][1]);
    }
}

Test(text_set, uses_the_languages_own_letter_forms, .init = setup, .fini = teardown)
{
    static const char CEDILLA[] = "\u015F"; /* Romanian readers want a comma below */
    struct text_fit const fit = fit_one_line();
    static const struct {
        const char *tag;
        bool has_own_form;
    } ROWS[] = {{"en-GB", false}, {"ro", true},    {"RO-md", true},
                {"tlh", false},   {"ro-RO", true}, {"longest-Latn", false},
                {"ro-Latn", true}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set_in(ROWS[i].tag, text_of(CEDILLA), &fit);

        cr_expect_eq(block.lines[0].glyphs[0].id != glyph_of(0, 0x15F), ROWS[i].has_own_form, "%s",
                     ROWS[i].tag);
    }
}

/* ---- shrinking ---- */

Test(text_set, keeps_full_size_up_to_the_boxs_width, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.width_mpt = width_of("Ana Li") * 10; /* at 10 pt exactly */
    block = set("Ana Li", &fit);
    cr_expect_eq(block.size_mpt, 10000);
    fit.width_mpt--;
    block = set("Ana Li", &fit);
    cr_expect_eq(block.size_mpt, 10000 - STEP_MPT);
}

Test(text_set, shrinks_one_line_to_the_floor_and_not_below, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.width_mpt = width_of("Ana Li") * 6;
    block = set("Ana Li", &fit);
    cr_expect(block.size_mpt == 6000 && !block.lines[0].has_ellipsis);
    fit.width_mpt--; /* one line only, so the wrapped floor is the last resort */
    block = set("Ana Li", &fit);
    cr_expect(block.size_mpt == 6000 - STEP_MPT && block.lines_count == 1);
    fit.width_mpt = width_of("Ana Li") * 5;
    block = set("Ana Li", &fit);
    cr_expect(block.size_mpt == 5000 && !block.lines[0].has_ellipsis);
    fit.width_mpt--;
    block = set("Ana Li", &fit);
    cr_expect(block.size_mpt == 5000 && block.lines[0].has_ellipsis);
}

Test(text_set, prefers_one_small_line_to_two_large_ones, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 5;
    fit.width_mpt = width_of("Spring Fair") * 6;
    block = set("Spring Fair", &fit);
    cr_expect(block.lines_count == 1 && block.size_mpt == 6000);
}

/* ---- wrapping ---- */

Test(text_set, wraps_below_the_floor_at_the_largest_size, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 2;
    fit.floor_mpt = 10000;
    fit.width_mpt = width_of("Spring") * 8; /* the longest word, at 8 pt */
    block = set("Spring Fair", &fit);
    cr_assert_eq(block.lines_count, 2);
    cr_expect_eq(block.size_mpt, 8000);
    cr_expect(line_is(&block.lines[0], "Spring") && line_is(&block.lines[1], "Fair"));
    cr_expect_eq(block.lines[0].width, width_of("Spring") * UNIT,
                 "the space at the end counts for nothing");
}

Test(text_set, has_as_many_lines_as_the_box_is_high_for, .init = setup, .fini = teardown)
{
    /* ascent and descent are 1.362 em, lines 1.25 em apart */
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 40;
    fit.size_mpt = fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.width_mpt = width_of("one") * 10 + 1;
    fit.height_mpt = 13620 + 2 * 12500;
    block = set("one two six ten", &fit);
    cr_expect(block.lines_count == 3 && block.lines[2].has_ellipsis);
    fit.height_mpt--;
    block = set("one two six ten", &fit);
    cr_expect(block.lines_count == 2 && block.lines[1].has_ellipsis);
    fit.height_mpt = 1; /* one line is always set */
    block = set("one two six ten", &fit);
    cr_expect(block.lines_count == 1 && block.lines[0].has_ellipsis);
    fit.height_mpt = 100000;
    fit.lines_max = 2;
    block = set("one two six ten", &fit);
    cr_expect(block.lines_count == 2 && block.lines[1].has_ellipsis);
    fit.lines_max = 4;
    block = set("one two six ten", &fit);
    cr_expect(block.lines_count == 4 && !block.lines[3].has_ellipsis);
}

Test(text_set, ends_paragraphs_at_line_feeds, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 10;
    block = set("Doors 19:00\n\nNo re-entry\n", &fit);
    cr_assert_eq(block.lines_count, 3);
    cr_expect(line_is(&block.lines[0], "Doors 19:00"));
    cr_expect(block.lines[1].glyphs_count == 0 && block.lines[1].source.len == 0);
    cr_expect(line_is(&block.lines[2], "No re-entry"));
    cr_expect_eq(block.missing_count, 0, "a line feed is no missing character");
    cr_expect_eq(block.size_mpt, 10000);
    for (size_t i = 0; i < block.lines_count; i++)
        for (size_t g = 0; g < block.lines[i].glyphs_count; g++)
            cr_expect_neq(block.lines[i].glyphs[g].id, 0);
}

Test(text_set, cuts_paragraphs_that_do_not_fit, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 2;
    block = set("one\ntwo\nthree", &fit);
    cr_assert_eq(block.lines_count, 2);
    cr_expect(line_is(&block.lines[1], "two") && block.lines[1].has_ellipsis);
}

/* ---- words longer than the box ---- */

Test(text_set, breaks_a_word_longer_than_the_box, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 3;
    fit.size_mpt = fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.width_mpt = width_of("nnn") * 10;
    block = set("nnnnnnn nn", &fit);
    cr_assert_eq(block.lines_count, 3);
    cr_expect(line_is(&block.lines[0], "nnn") && line_is(&block.lines[1], "nnn"));
    cr_expect(line_is(&block.lines[2], "n") && block.lines[2].has_ellipsis);
    fit.lines_max = 4;
    block = set("nnnnnnn nn", &fit);
    cr_assert_eq(block.lines_count, 4);
    cr_expect(line_is(&block.lines[2], "n") && line_is(&block.lines[3], "nn"));
}

Test(text_set, shrinks_before_it_breaks_a_word, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.lines_max = 9;
    fit.floor_mpt = 10000;
    fit.width_mpt = (width_of("Donaudampfschiff") + OVERHANG) * 7;
    block = set("Donaudampfschiff Ahoi", &fit);
    cr_expect_eq(block.size_mpt, 7000);
    cr_expect(line_is(&block.lines[0], "Donaudampfschiff"));
}

Test(text_set, makes_room_for_ink_beyond_the_advances, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block = set("jj", &fit);
    int64_t const ink =
        (int64_t)block.lines[0].before + block.lines[0].width + block.lines[0].behind;

    cr_expect_gt(block.lines[0].before, 50 * UNIT, "the tail of a j");
    cr_expect_eq(block.lines[0].behind, 0);
    fit.width_mpt = (int32_t)(ink * fit.size_mpt / FONT_EM) + 1;
    block = set("jj", &fit);
    cr_expect_eq(block.size_mpt, fit.size_mpt, "the ink fits");
    fit.width_mpt -= 2;
    block = set("jj", &fit);
    cr_expect_lt(block.size_mpt, fit.size_mpt, "though the advances would");
}

Test(text_set, keeps_marks_on_their_letters_where_it_breaks_and_cuts, .init = setup,
     .fini = teardown)
{
    static const char LETTER[] = "x" DOT_BELOW CIRCUMFLEX;
    struct text_fit fit = fit_one_line();
    char text[20 * (sizeof LETTER - 1) + 1] = "";

    for (size_t i = 0; i < 20; i++)
        memcpy(text + i * strlen(LETTER), LETTER, strlen(LETTER));
    fit.size_mpt = fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    for (int32_t width = width_of("x") * 30; width < width_of("x") * 90; width += 700) {
        for (uint32_t lines = 1; lines <= 4; lines++) {
            struct text_block block;

            fit.width_mpt = width;
            fit.lines_max = lines;
            block = set(text, &fit);
            for (size_t i = 0; i < block.lines_count; i++) {
                cr_assert_eq(block.lines[i].source.len % strlen(LETTER), 0, "%d, %u: line %zu",
                             width, lines, i);
                cr_assert_eq(block.lines[i].source.data[0], 'x');
            }
        }
    }
}

Test(text_set, always_goes_on_even_in_a_box_without_width, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.width_mpt = 0;
    fit.lines_max = 40;
    block = set("Ana Li", &fit);
    cr_expect(block.lines_count >= 5 && block.lines_count <= 40);
    cr_expect(line_is(&block.lines[0], "A"));
}

/* ---- cutting short ---- */

Test(text_set, ends_with_an_ellipsis_what_does_not_fit, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;
    const struct text_line *line;

    fit.width_mpt = (width_of("Spring Fa") + width_of("\u2026")) * 5 + 4;
    block = set("Spring Fair Festival", &fit);
    line = &block.lines[0];
    cr_assert(block.lines_count == 1 && line->has_ellipsis && block.size_mpt == 5000);
    cr_expect(line_is(line, "Spring Fa"), "%.*s", (int)line->source.len, line->source.data);
    cr_expect_eq(line->glyphs[line->glyphs_count - 1].id, glyph_of(0, ELLIPSIS));
    cr_expect_leq(line->width * 5, fit.width_mpt * UNIT);
}

Test(text_set, puts_no_space_before_the_ellipsis, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.width_mpt = (width_of("Spring ") + width_of("\u2026")) * 5 + 4;
    block = set("Spring Fair Festival", &fit);
    cr_expect(block.lines[0].has_ellipsis && line_is(&block.lines[0], "Spring"));
}

/* ---- missing characters ---- */

Test(text_set, reports_what_the_face_lacks_by_code_point, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set("A\u5C71b \U0001F3AB\u5C71", &fit);

    cr_assert_eq(block.missing_count, 3);
    cr_expect_eq(block.missing[0], 0x5C71);
    cr_expect_eq(block.missing[1], 0x1F3AB);
    cr_expect_eq(block.missing[2], 0x5C71);
    cr_expect(block.lines[0].glyphs[1].is_missing && !block.lines[0].glyphs[2].is_missing);
    cr_expect_neq(block.lines[0].glyphs[1].id, 0, "PDF/A lets no .notdef be shown");
    cr_expect_gt(block.lines[0].glyphs[1].advance, 0, "the substitute is visible");
    cr_expect(line_is(&block.lines[0], "A\u5C71b \U0001F3AB\u5C71"));
}

Test(text_set, takes_the_substitute_itself_for_what_it_is, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set("A\uFFFD?", &fit);

    cr_expect_eq(block.missing_count, 0);
}

Test(text_set, gives_each_substitute_room_of_its_own, .init = setup, .fini = teardown)
{
    /* a mark; one on another missing letter; what a variation selector follows */
    static const char *const ROWS[] = {"A\u302A", "A\u5C71\u302A", "A\u2764\uFE0F"};
    struct text_fit const fit = fit_one_line();
    uint32_t const id = set("\uFFFD", &fit).lines[0].glyphs[0].id;

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set(ROWS[i], &fit);

        cr_expect_eq(block.missing_count, block.lines[0].glyphs_count - 1, "%s", ROWS[i]);
        for (size_t g = 1; g < block.lines[0].glyphs_count; g++) {
            const struct glyph *glyph = &block.lines[0].glyphs[g];

            cr_expect(glyph->id == id && glyph->is_missing && glyph->advance > 0 &&
                          glyph->x_offset == 0 && glyph->y_offset == 0,
                      "%s: %zu", ROWS[i], g);
        }
    }
}

Test(text_set, reports_what_was_cut_off_too, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.width_mpt = width_of("Spring") * 5;
    block = set("Spring Fair Festival \u5C71", &fit);
    cr_expect(block.lines[0].has_ellipsis && block.missing_count == 1 &&
              block.missing[0] == 0x5C71);
}

Test(text_set, does_not_report_what_draws_nothing, .init = setup, .fini = teardown)
{
    /* joiners, isolates and marks of direction, a soft hyphen, a byte order mark */
    static const char *const ROWS[] = {"A\u200DB",      "A\u200CB", "\u2066A\u2069",
                                       "A\u200E\u200F", "A\u00ADB", "A\uFEFFB",
                                       "A\u200BB",      "A\u2060B", "A B\nC"};
    struct text_fit fit = fit_one_line();

    fit.lines_max = 2;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(set(ROWS[i], &fit).missing_count, 0, "%zu", i);
}

/* A line feed has no glyph, whatever HarfBuzz took out in front of it. */
Test(text_set, draws_no_line_feed_behind_what_is_never_seen, .init = setup, .fini = teardown)
{
    static const char *const ROWS[] = {
        "\u0627\u2068A\u2069\nB", "\u0627\u2068A\u2069\n", "\u05D0\u2068A\u2069 \nB",
        "\u0627\u200B\nB",        "\u2067\u05D0\u2060\nB", "\u05D0\u00AD\n\u05D1",
    };
    struct text_fit fit = fit_one_line();

    for (uint32_t lines_max = 1; lines_max <= 2; lines_max++) {
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            struct text_block block;

            fit.lines_max = lines_max;
            block = set(ROWS[i], &fit);
            for (size_t m = 0; m < block.missing_count; m++)
                cr_expect(block.missing[m] == 0x627 || block.missing[m] == 0x5D0 ||
                              block.missing[m] == 0x5D1,
                          "%zu: U+%04X", i, block.missing[m]);
            for (size_t line = 0; line < block.lines_count; line++)
                for (size_t g = 0; g < block.lines[line].glyphs_count; g++)
                    cr_expect_neq(block.lines[line].glyphs[g].id, 0, "%zu", i);
        }
    }
}

Test(text_set, reports_the_missing_one_and_not_what_was_taken_out, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set("\u2068A\u2069\u5C71 \u202E\u2069\u5C72", &fit);

    cr_assert_eq(block.missing_count, 2);
    cr_expect(block.missing[0] == 0x5C71 && block.missing[1] == 0x5C72);
}

Test(text_set, loses_no_mark_that_stands_on_a_space, .init = setup, .fini = teardown)
{
    /* Under an Arabic letter HarfBuzz makes one of a space and the marks on it. */
    static const char *const ROWS[] = {"a " ACUTE, "\u0645 " ACUTE, "\u0645 " DOT_BELOW ACUTE,
                                       "\u0645 \u064E"};
    struct text_fit const fit = fit_one_line();

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set(ROWS[i], &fit);

        cr_expect(line_is(&block.lines[0], ROWS[i]), "%zu", i);
    }
}

/* ---- the edges ---- */

Test(text_set, of_nothing_has_no_line, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set("", &fit);

    cr_expect(block.lines_count == 0 && block.missing_count == 0);
}

Test(text_set, of_blanks_draws_nothing, .init = setup, .fini = teardown)
{
    static const char *const ROWS[] = {" ", "   ", "\n", "\n\n", " \n "};
    struct text_fit fit = fit_one_line();

    fit.lines_max = 9;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set(ROWS[i], &fit);

        for (size_t line = 0; line < block.lines_count; line++)
            cr_expect_eq(block.lines[line].glyphs_count, 0, "%zu", i);
    }
}

Test(text_set, says_when_memory_ends_at_every_step, .init = setup, .fini = teardown)
{
    enum { CHUNK_BYTES = 4096, UNIT_BYTES = 16 };
    struct text_fit fit = fit_one_line();
    size_t failures = 0, left = 0;

    fit.width_mpt = 20000;
    fit.lines_max = 2;
    /* With a little more left in the arena's chunk each time, a later step needs a new one. */
    for (; left < CHUNK_BYTES; left += UNIT_BYTES) {
        struct text_block block;
        bool has_failed;
        enum status st;

        arena_clear(&arena);
        cr_assert_not_null(arena_alloc(&arena, CHUNK_BYTES - left));
        failing_memory_start(1);
        st = text_set(setter, text_of("en-GB"), text_of("Spring Fair \u5C71 Festival"), &fit,
                      &arena, &block, NULL);
        has_failed = failing_memory_stop();
        failures += has_failed;
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "%zu bytes left", left);
    }
    cr_expect_gt(failures, 20);
}

Test(text_setter_new, leaves_nothing_when_memory_ends, .init = setup, .fini = teardown)
{
    bool has_failed = true;

    for (size_t call = 1; has_failed; call++) {
        struct text_setter *made = NULL;
        enum status st;

        failing_memory_start(call);
        st = text_setter_new(fonts, &made, NULL);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(made == NULL, has_failed);
        text_setter_free(&made);
    }
}

Test(text_set, without_a_line_is_our_fault, .init = setup, .signal = SIGABRT)
{
    struct text_fit fit = fit_one_line();

    fit.lines_max = 0;
    set("Ana", &fit);
}

/* ---- whatever the text ---- */

struct random {
    uint64_t state;
};

static uint32_t random_below(struct random *random, uint32_t limit)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random->state >> 33) % limit;
}

static bool is_mark(uint32_t code_point)
{
    return code_point >= 0x300 && code_point < 0x370;
}

static uint32_t random_character(struct random *random)
{
    static const struct {
        uint32_t first, count, weight;
    } RANGES[] = {
        {'a', 26, 30},     {'A', 26, 6},    {0xC0, 0x140, 10}, {0x1EA0, 0x5A, 14},
        {0x391, 17, 4},    {0x3B1, 25, 8},  {0x1F00, 6, 2},    {0x410, 0x40, 12},
        {0x300, 0x46, 12}, {'-', 1, 2},     {'0', 10, 3},      {' ', 1, 18},
        {'\n', 1, 1},      {0x5C71, 50, 1}, {0x2E3A, 2, 1},    {0xA0, 1, 1},
    };
    uint32_t total = 0, drawn;
    size_t range = 0;

    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        total += RANGES[i].weight;
    drawn = random_below(random, total);
    while (drawn >= RANGES[range].weight)
        drawn -= RANGES[range++].weight;
    return RANGES[range].first + random_below(random, RANGES[range].count);
}

static struct text random_text(struct random *random, char buffer[TEXT_BYTES_MAX])
{
    uint32_t const count = 1 + random_below(random, 1 + random_below(random, 400));
    size_t len = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t const c = random_character(random);

        if (c < 0x80) {
            buffer[len++] = (char)c;
        } else if (c < 0x800) {
            buffer[len++] = (char)(0xC0 | c >> 6);
            buffer[len++] = (char)(0x80 | (c & 0x3F));
        } else {
            buffer[len++] = (char)(0xE0 | c >> 12);
            buffer[len++] = (char)(0x80 | (c >> 6 & 0x3F));
            buffer[len++] = (char)(0x80 | (c & 0x3F));
        }
    }
    buffer[len] = '\0';
    return (struct text){buffer, len};
}

/* No character of these faces is wider than 2.84 em. */
static struct text_fit random_fit(struct random *random)
{
    int32_t const size = 4000 + (int32_t)random_below(random, 20000);
    int32_t const floor = 4000 + (int32_t)random_below(random, (uint32_t)size - 3999);
    int32_t const wrapped = 4000 + (int32_t)random_below(random, (uint32_t)size - 3999);

    return (struct text_fit){.face = random_below(random, 2),
                             .width_mpt = 3 * wrapped + (int32_t)random_below(random, 250000),
                             .height_mpt = 2 * wrapped + (int32_t)random_below(random, 80000),
                             .size_mpt = size,
                             .floor_mpt = floor,
                             .wrapped_floor_mpt = wrapped,
                             .lines_max = 1 + random_below(random, 12)};
}

static void expect_within_box(const struct text_block *block, const struct text_fit *fit,
                              unsigned round)
{
    const struct font_metrics *metrics = font_metrics(fonts, fit->face);
    int64_t const height =
        (int64_t)(metrics->ascent - metrics->descent) * block->size_mpt / FONT_SCALE +
        (int64_t)(block->lines_count - 1) * block->leading_mpt;

    cr_assert(block->lines_count >= 1 && block->lines_count <= fit->lines_max, "%u", round);
    cr_assert(block->lines_count == 1 || height <= fit->height_mpt, "%u", round);
    cr_assert(block->size_mpt <= fit->size_mpt, "%u", round);
    cr_assert(block->size_mpt >= fit->wrapped_floor_mpt || block->size_mpt >= fit->floor_mpt, "%u",
              round);
    cr_assert_geq(block->leading_mpt, block->size_mpt * LEADING_PERCENT / 100);
    for (size_t i = 0; i < block->lines_count; i++) {
        const struct text_line *line = &block->lines[i];
        int64_t width = 0;

        for (size_t g = 0; g < line->glyphs_count; g++)
            width += line->glyphs[g].advance;
        cr_assert_eq(width, line->width, "%u", round);
        cr_assert_leq(width * block->size_mpt, (int64_t)fit->width_mpt * FONT_EM, "%u, line %zu",
                      round, i);
    }
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] != ' ' && text.data[i] != '\n')
            return false;
    return true;
}

/* The lines are the text, in order, but for blanks between them and what an ellipsis stands for. */
static void expect_whole(const struct text_block *block, struct text text, unsigned round)
{
    size_t at = 0;

    for (size_t i = 0; i < block->lines_count; i++) {
        const struct text_line *line = &block->lines[i];
        size_t const first = (size_t)(line->source.data - text.data);
        uint32_t code_point = 0;

        cr_assert(first >= at && first + line->source.len <= text.len, "%u", round);
        cr_assert(is_blank((struct text){text.data + at, first - at}), "%u, line %zu", round, i);
        at = first + line->source.len;
        cr_assert(!line->has_ellipsis || i + 1 == block->lines_count, "%u", round);
        if (line->source.len > 0 && at < text.len &&
            !is_blank((struct text){text.data + at - 1, 1})) {
            utf8_decode(text.data + at, text.len - at, &code_point);
            cr_assert_not(is_mark(code_point), "%u, line %zu: a mark is torn off", round, i);
        }
        if (line->has_ellipsis)
            return;
    }
    cr_assert(is_blank((struct text){text.data + at, text.len - at}), "%u", round);
}

Test(text_set, never_leaves_its_box_nor_loses_a_character, .init = setup, .fini = teardown,
     .timeout = 60)
{
    static char buffer[TEXT_BYTES_MAX];
    struct random random = {2027};

    for (unsigned round = 0; round < 4000; round++) {
        struct text const text = random_text(&random, buffer);
        struct text_fit const fit = random_fit(&random);
        struct text_block const block = set_in(round % 2 == 0 ? "en-GB" : "vi", text, &fit);

        expect_within_box(&block, &fit, round);
        expect_whole(&block, text, round);
        arena_reset(&arena);
    }
}

Test(text_set, gives_the_same_block_whatever_was_set_before, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const first = set("Luc\u00EDa Fern\u00E1ndez", &fit);
    struct text_block second;

    set_in("ar", text_of("\u0645\u062D\u0645\u062F"), &fit);
    set_in("ro", text_of("\u015F\n\u015F"), &fit);
    second = set("Luc\u00EDa Fern\u00E1ndez", &fit);
    expect_same_glyphs(&first, &second, "set again");
}
