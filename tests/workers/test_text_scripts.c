#include "workers/text.h"

#include "domain/characters.h"
#include "domain/utf8.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define NOTO "/usr/share/fonts/truetype/noto/"

enum { OVERHANG_MPT = 1500 }; /* more than the ink of any two letters here stands over */
enum { LATIN, HEBREW, ARABIC, THAI, DEVANAGARI, IDEOGRAPHS, SYMBOLS, FACES };
enum { WIDE_MPT = 1000000, TEXT_BYTES_MAX = 4096 };

static const char *const PATHS[FACES] = {
    [LATIN] = NOTO "NotoSans-Regular.ttf",
    [HEBREW] = NOTO "NotoSansHebrew-Regular.ttf",
    [ARABIC] = NOTO "NotoNaskhArabic-Regular.ttf",
    [THAI] = NOTO "NotoSansThai-Regular.ttf",
    [DEVANAGARI] = NOTO "NotoSansDevanagari-Regular.ttf",
    [IDEOGRAPHS] = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    [SYMBOLS] = "/usr/share/fonts/truetype/ancient-scripts/Symbola_hint.ttf",
};

static struct font_set *fonts;
static struct text_setter *setter;
static struct arena arena;

static void setup(void)
{
    struct text_rules rules;
    struct error err = {0};

    cr_assert_eq(locale_rules(&rules, &err), ST_OK, "%s", err.text);
    cr_assert_eq(font_set_open(PATHS, FACES, &fonts, &err), ST_OK, "%s", err.text);
    cr_assert_eq(text_setter_new(fonts, &setter, &err), ST_OK, "%s", err.text);
}

static void teardown(void)
{
    text_setter_free(&setter);
    font_set_free(&fonts);
    arena_clear(&arena);
}

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

static struct text_block set_in(const char *tag, const char *text, const struct text_fit *fit)
{
    struct text_block block;
    struct error err = {0};

    cr_assert_eq(text_set(setter, text_of(tag), text_of(text), fit, &arena, &block, &err), ST_OK,
                 "%s", err.text);
    return block;
}

static struct text_fit fit_one_line(void)
{
    return (struct text_fit){.width_mpt = WIDE_MPT,
                             .height_mpt = 100000,
                             .size_mpt = 10000,
                             .floor_mpt = 6000,
                             .wrapped_floor_mpt = 5000,
                             .lines_max = 1};
}

/* The first character of a glyph that is seen. */
static size_t first_seen(struct text text, size_t at, size_t end)
{
    uint32_t c = 0;

    while (at < end) {
        size_t const len = utf8_decode(text.data + at, text.len - at, &c);

        if (!character_is_bidi_control(c))
            break;
        at += len;
    }
    return at;
}

/* A line's characters from left to right as they are seen, the first of each glyph. */
static const char *seen(const struct text_block *block, size_t line)
{
    static char said[TEXT_BYTES_MAX];
    size_t len = 0;

    for (size_t i = 0; i < block->lines[line].glyphs_count; i++) {
        const struct glyph *glyph = &block->lines[line].glyphs[i];
        size_t const at = first_seen(block->text, glyph->at, glyph->end);
        uint32_t c = 0;
        size_t const bytes = utf8_decode(block->text.data + at, block->text.len - at, &c);

        if (glyph->at == glyph->end) {
            said[len++] = '~'; /* the ellipsis */
            continue;
        }
        memcpy(said + len, block->text.data + at, bytes);
        len += bytes;
    }
    said[len] = '\0';
    return said;
}

static int32_t width_of(const char *text)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const block = set_in("en", text, &fit);

    return (int32_t)((int64_t)block.lines[0].width * 10000 / FONT_EM) + 1;
}

/* ---- the order on a line ---- */

Test(text_set, shows_each_direction_in_its_order, .init = setup, .fini = teardown)
{
    static const struct {
        const char *text, *seen;
        bool is_right_to_left;
    } ROWS[] = {
        {"Dan", "Dan", false},
        {"דני", "ינד", true},
        {"דני לוי", "יול ינד", true},
        {"Dan דני לוי Levi", "Dan יול ינד Levi", false},
        {"דני Dan Levi לוי", "יול Dan Levi ינד", true},
        {"אולם 12", "12 םלוא", true},
        {"Hall היכל 2, קומה", "Hall המוק ,2 לכיה", false},
        {"Dan (דני) Levi", "Dan (ינד) Levi", false},
        {"דני (VIP) לוי", "יול )VIP( ינד", true}, /* drawn with the glyph of the other one */
        {"Expo 2027 معرض", "Expo 2027 ضرعم", false},
        {"معرض 2027 Expo", "Expo 2027 ضرعم", true},
        {"\u200Fabc", "abc", true},
        {"\u2067abc\u2069 דני", "ינד abc", true}, /* the isolate has no letter of its own */
        {"a \u2067b c\u2069 d", "a b c d", false},
        {"a \u2067b!\u2069 d", "a !b d", false},
        {"\u202Eabc", "cba", false}, /* ids are not cleaned of it */
        {"हिन्दी", "िहनदी", false},
    };
    struct text_fit const fit = fit_one_line();

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set_in("en", ROWS[i].text, &fit);

        cr_expect_str_eq(seen(&block, 0), ROWS[i].seen, "%s: %s", ROWS[i].text, seen(&block, 0));
        cr_expect_eq(block.lines[0].is_right_to_left, ROWS[i].is_right_to_left, "%s", ROWS[i].text);
        cr_expect_eq(block.missing_count, 0, "%s", ROWS[i].text);
    }
}

Test(text_set, mirrors_brackets_from_right_to_left, .init = setup, .fini = teardown)
{
    struct text_fit const fit = fit_one_line();
    struct text_block const mirrored = set_in("he", "(דני)", &fit);
    struct text_block const plain = set_in("en", "()", &fit);

    cr_expect_eq(mirrored.lines[0].glyphs[0].id, plain.lines[0].glyphs[0].id);
    cr_expect_eq(mirrored.lines[0].glyphs[4].id, plain.lines[0].glyphs[1].id);
}

Test(text_set, breaks_before_it_orders, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.lines_max = 3;
    fit.width_mpt = width_of("היכל התרבות") + OVERHANG_MPT;
    block = set_in("he", "היכל התרבות תל אביב Tel Aviv", &fit);
    cr_assert_eq(block.lines_count, 3);
    cr_expect_str_eq(seen(&block, 0), "תוברתה לכיה");
    cr_expect_str_eq(seen(&block, 1), "Tel ביבא לת");
    cr_expect_str_eq(seen(&block, 2), "Aviv");
    for (size_t i = 0; i < 3; i++)
        cr_expect(block.lines[i].is_right_to_left, "%zu", i);
}

Test(text_set, ends_where_the_text_would_go_on, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.width_mpt = width_of("היכל הת") + width_of("\u2026");
    block = set_in("he", "היכל התרבות", &fit);
    cr_expect(block.lines[0].has_ellipsis);
    cr_expect_str_eq(seen(&block, 0), "~לכיה");
    block = set_in("he", "Dan היכל התרבות", &fit);
    cr_expect_str_eq(seen(&block, 0), "Dan יה~");
    cr_expect_leq((int64_t)block.lines[0].width * 10000 / FONT_EM, fit.width_mpt);
}

Test(text_set, joins_letters_and_leaves_them_so_where_a_word_is_broken, .init = setup,
     .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block const apart = set_in("ar", "م ح م د", &fit);
    struct text_block joined = set_in("ar", "محمد", &fit);
    const struct glyph *glyphs = joined.lines[0].glyphs;
    uint32_t const second = glyphs[2].id;

    cr_assert_eq(joined.lines[0].glyphs_count, 4);
    cr_expect_neq(glyphs[3].id, apart.lines[0].glyphs[6].id, "meem is joined");
    cr_expect_neq(glyphs[1].id, glyphs[3].id, "and has another form in the middle");
    fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.lines_max = 4;
    fit.width_mpt = width_of("م");
    joined = set_in("ar", "محمد", &fit);
    cr_assert_gt(joined.lines_count, 1);
    for (size_t i = 0; i < joined.lines_count; i++)
        for (size_t g = 0; g < joined.lines[i].glyphs_count; g++)
            if (joined.lines[i].glyphs[g].at == 2)
                cr_expect_eq(joined.lines[i].glyphs[g].id, second);
}

Test(text_set, breaks_thai_between_words, .init = setup, .fini = teardown)
{
    struct text_fit fit = fit_one_line();
    struct text_block block;

    fit.floor_mpt = fit.wrapped_floor_mpt = 10000;
    fit.lines_max = 4;
    fit.width_mpt = width_of("งานแสดงดน"); /* in the middle of the third word */
    block = set_in("th", "งานแสดงดนตรี", &fit);
    cr_assert_eq(block.lines_count, 2);
    cr_expect_eq(block.lines[0].source.len, strlen("งานแสดง"));
    cr_expect_eq(block.lines[1].source.len, strlen("ดนตรี"));
}

/* ---- glyphs and their characters ---- */

Test(text_set, groups_what_makes_up_one_letter, .init = setup, .fini = teardown)
{
    static const struct {
        const char *text;
        size_t groups; /* of different characters */
    } ROWS[] = {
        {"דני", 3},  {"שָׁלוֹם", 4}, {"น้ำ", 1},       {"हिन्दी", 2},
        {"محمد", 4}, {"مُحَمَّد", 4}, {"山田花子", 4}, {"\U0001F469\u200D\U0001F4BB", 1},
    };
    struct text_fit const fit = fit_one_line();

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set_in("en", ROWS[i].text, &fit);
        size_t groups = 0, bytes = 0;

        for (size_t g = 0; g < block.lines[0].glyphs_count; g++) {
            const struct glyph *glyph = &block.lines[0].glyphs[g];
            bool is_new = true;

            cr_assert(glyph->group <= glyph->at && glyph->at < glyph->end &&
                          glyph->end <= glyph->group_end,
                      "%s: %zu", ROWS[i].text, g);
            for (size_t h = 0; h < g; h++)
                is_new = is_new && block.lines[0].glyphs[h].group != glyph->group;
            groups += is_new;
            bytes += is_new ? glyph->group_end - glyph->group : 0;
        }
        cr_expect_eq(groups, ROWS[i].groups, "%s: %zu", ROWS[i].text, groups);
        cr_expect_eq(bytes, strlen(ROWS[i].text), "%s", ROWS[i].text);
    }
}

Test(text_set, draws_nothing_for_what_is_not_seen, .init = setup, .fini = teardown)
{
    static const char *const ROWS[] = {"\u05D0\u200E", "\u2067\u05D0\u2069", "\u061C\u05D0",
                                       "\u05D0\uFE0F", "\u05D0\u200D",       "\u05D0\u00AD",
                                       "\u05D0\u2060", "\uFEFF\u05D0"};
    struct text_fit const fit = fit_one_line();

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set_in("he", ROWS[i], &fit);

        cr_expect(block.lines[0].glyphs_count == 1 && block.missing_count == 0, "%zu: %zu glyphs",
                  i, block.lines[0].glyphs_count);
    }
}

/* ---- whatever the text ---- */

static uint32_t random_below(uint64_t *random, uint32_t limit)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % limit;
}

static uint32_t random_character(uint64_t *random)
{
    static const uint32_t RANGES[][2] = {
        {'a', 26},      {' ', 1},      {'0', 10},     {'(', 2},      {'\n', 1},    {0x300, 0x46},
        {0x5D0, 27},    {0x5B0, 20},   {0x620, 0x30}, {0x64B, 8},    {0x660, 10},  {0xE01, 58},
        {0xE40, 15},    {0x901, 0x4C}, {0x94D, 1},    {0x4E00, 500}, {0x3042, 80}, {0xAC00, 100},
        {0x1F300, 200}, {0x200C, 4},   {0x2066, 4},   {0x202A, 5},   {0x61C, 1},   {0xFE0F, 1},
        {0x1F3FB, 5},   {0x1F1E6, 26}, {0xF40, 80},   {0x1000, 80},  {0x1780, 80}, {0x10FFFD, 1},
        {' ', 1},       {'A', 26},
    };
    uint32_t const range = random_below(random, sizeof RANGES / sizeof *RANGES);

    return RANGES[range][0] + random_below(random, RANGES[range][1]);
}

static void append_utf8(char *text, size_t *len, uint32_t c)
{
    static const unsigned char HEADS[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int const bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    text[(*len)++] = (char)(bytes == 1 ? c : HEADS[bytes] | c >> 6 * (bytes - 1));
    for (int i = bytes - 2; i >= 0; i--)
        text[(*len)++] = (char)(0x80 | (c >> 6 * i & 0x3F));
}

static void random_text(uint64_t *random, char text[TEXT_BYTES_MAX])
{
    uint32_t const count = 1 + random_below(random, 1 + random_below(random, 200));
    size_t len = 0;
    uint32_t c = random_character(random);

    for (uint32_t i = 0; i < count; i++) {
        if (random_below(random, 3) == 0) /* else the same or a neighbour: words of one script */
            c = random_character(random);
        append_utf8(text, &len, c);
    }
    text[len] = '\0';
}

static void expect_right(const struct text_block *block, const struct text_fit *fit, unsigned round)
{
    const char *at = block->text.data;

    cr_assert(block->lines_count <= fit->lines_max, "%u", round);
    for (size_t i = 0; i < block->lines_count; i++) {
        const struct text_line *line = &block->lines[i];
        uint32_t const from = (uint32_t)(line->source.data - block->text.data);
        int64_t width = 0;

        cr_assert(line->source.data >= at, "%u", round);
        at = line->source.data + line->source.len;
        cr_assert(at <= block->text.data + block->text.len && utf8_is_valid(line->source), "%u",
                  round);
        for (size_t g = 0; g < line->glyphs_count; g++) {
            const struct glyph *glyph = &line->glyphs[g];

            width += glyph->advance;
            cr_assert(glyph->face < FACES &&
                          glyph->id < font_metrics(fonts, glyph->face)->glyph_count,
                      "%u", round);
            cr_assert(glyph->group >= from && glyph->group_end <= from + line->source.len,
                      "%u: %s: line %zu glyph %zu: %u..%u of %u..%zu", round, block->text.data, i,
                      g, glyph->group, glyph->group_end, from, from + line->source.len);
        }
        cr_assert_eq(width, line->width, "%u", round);
        cr_assert(width * block->size_mpt <= (int64_t)fit->width_mpt * FONT_EM ||
                      line->glyphs[0].group == line->glyphs[line->glyphs_count - 1].group,
                  "%u: line %zu leaves its box", round, i);
    }
}

Test(text_set, sets_any_mixture_inside_its_box, .init = setup, .fini = teardown, .timeout = 60)
{
    static char text[TEXT_BYTES_MAX];
    static const char *const TAGS[] = {"en", "he", "ar", "th", "hi", "ja"};
    uint64_t random = 2027;

    for (unsigned round = 0; round < 3000; round++) {
        struct text_fit const fit = {
            .is_right_to_left = random_below(&random, 2) == 1,
            .width_mpt = 60000 + (int32_t)random_below(&random, 300000),
            .height_mpt = 10000 + (int32_t)random_below(&random, 80000),
            .size_mpt = 12000,
            .floor_mpt = 8000,
            .wrapped_floor_mpt = 6000,
            .lines_max = 1 + random_below(&random, 6),
        };
        struct text_block block;

        random_text(&random, text);
        block = set_in(TAGS[round % 6], text, &fit);
        expect_right(&block, &fit, round);
        arena_reset(&arena);
    }
}

Test(text_set, keeps_the_ink_of_lines_apart, .init = setup, .fini = teardown)
{
    static const char *const ROWS[] = {
        "ปู่ ญี่ปุ่น ก็", "हिन्दी र्‍टॄ क्ष्मि", "مُحَمَّدٍ إِلَّا", "Ẫg Ắy"};
    struct text_fit fit = fit_one_line();

    fit.lines_max = 4;
    fit.floor_mpt = 12000;
    fit.width_mpt = 20000;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text_block const block = set_in("th", ROWS[i], &fit);

        for (size_t l = 1; l < block.lines_count; l++) {
            int64_t const between =
                (int64_t)block.lines[l].top - (int64_t)block.lines[l - 1].bottom;

            cr_expect_leq(between * block.size_mpt / FONT_EM, block.leading_mpt, "%s", ROWS[i]);
        }
    }
}
