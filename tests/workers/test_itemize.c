#include "workers/itemize.h"

#include "tests/support/failing_memory.h"
#include "workers/locale.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define NOTO "/usr/share/fonts/truetype/noto/"

enum { LATIN, LATIN_BOLD, HEBREW, HEBREW_BOLD, ARABIC, THAI, DEVANAGARI, FACES };

static const char *const PATHS[FACES] = {
    [LATIN] = NOTO "NotoSans-Regular.ttf",
    [LATIN_BOLD] = NOTO "NotoSans-Bold.ttf",
    [HEBREW] = NOTO "NotoSansHebrew-Regular.ttf",
    [HEBREW_BOLD] = NOTO "NotoSansHebrew-Bold.ttf",
    [ARABIC] = NOTO "NotoNaskhArabic-Regular.ttf",
    [THAI] = NOTO "NotoSansThai-Regular.ttf",
    [DEVANAGARI] = NOTO "NotoSansDevanagari-Regular.ttf",
};

static struct font_set *fonts;
static struct itemizer *itemizer;
static struct arena arena;

static void setup(void)
{
    struct text_rules rules;
    struct error err = {0};

    cr_assert_eq(locale_rules(&rules, &err), ST_OK, "%s", err.text);
    cr_assert_eq(font_set_open(PATHS, FACES, &fonts, &err), ST_OK, "%s", err.text);
    cr_assert_eq(itemizer_new(fonts, &itemizer, &err), ST_OK, "%s", err.text);
}

static void teardown(void)
{
    itemizer_free(&itemizer);
    cr_expect_null(itemizer);
    font_set_free(&fonts);
    arena_clear(&arena);
}

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

static struct items items_of(const char *text, size_t face, bool is_right_to_left)
{
    struct items items;
    struct error err = {0};

    cr_assert_eq(itemize(itemizer, text_of(text), face, is_right_to_left, &arena, &items, &err),
                 ST_OK, "%s", err.text);
    return items;
}

/* Runs as their texts with script, face and level: "Dan |Latn0/0 ...". */
static const char *runs_of(const char *text, size_t face, bool is_right_to_left)
{
    static char said[2000];
    struct items const items = items_of(text, face, is_right_to_left);
    uint32_t at = 0;
    size_t len = 0;

    said[0] = '\0';
    for (size_t i = 0; i < items.runs_count; i++) {
        const struct text_run *run = &items.runs[i];

        cr_assert(run->at == at && run->end > at, "%s", text);
        at = run->end;
        len += (size_t)snprintf(said + len, sizeof said - len, "[%.*s]%c%c%c%c f%u l%u ",
                                (int)(run->end - run->at), text + run->at, run->script >> 24,
                                run->script >> 16 & 0xFF, run->script >> 8 & 0xFF,
                                run->script & 0xFF, run->face, run->level);
        cr_assert_lt(len, sizeof said);
    }
    cr_assert_eq(at, strlen(text));
    return said;
}

Test(itemize, cuts_by_direction_script_and_face, .init = setup, .fini = teardown)
{
    static const struct {
        const char *text, *runs;
    } ROWS[] = {
        {"Ana", "[Ana]Latn f0 l0 "},
        {"Ana Ли", "[Ana ]Latn f0 l0 [Ли]Cyrl f0 l0 "},
        {"דני לוי", "[דני לוי]Hebr f2 l1 "},
        {"دان", "[دان]Arab f4 l1 "},
        {"ที่รัก", "[ที่รัก]Thai f5 l0 "},
        {"हिन्दी", "[हिन्दी]Deva f6 l0 "},
        /* what stands between letters of one script stays with them */
        {"דני־לוי", "[דני־לוי]Hebr f2 l1 "},
        /* if their face has it, which this one has not */
        {"דני, לוי", "[דני]Hebr f2 l1 [,]Hebr f0 l1 [ לוי]Hebr f2 l1 "},
        /* a number is read from left to right */
        {"אולם 12", "[אולם ]Hebr f2 l1 [12]Hebr f0 l2 "},
        /* Latin in a Hebrew text, and Hebrew in a Latin one */
        {"דני Dan לוי", "[דני ]Hebr f2 l1 [Dan]Latn f0 l2 [ ]Latn f0 l1 [לוי]Hebr f2 l1 "},
        {"Dan דני Levi", "[Dan ]Latn f0 l0 [דני]Hebr f2 l1 [ ]Hebr f2 l0 [Levi]Latn f0 l0 "},
        /* a closing bracket goes with the opening one */
        {"Dan (דני) Levi", "[Dan (]Latn f0 l0 [דני]Hebr f2 l1 [) Levi]Latn f0 l0 "},
        /* paragraphs have directions of their own */
        {"Dan\nדני", "[Dan\n]Latn f0 l0 [דני]Hebr f2 l1 "},
        /* nothing that is left open reaches the next paragraph */
        {"\u2067a\nb", "[\u2067]Latn f0 l0 [a]Latn f0 l2 [\nb]Latn f0 l0 "},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *runs = runs_of(ROWS[i].text, LATIN, false);

        cr_expect_str_eq(runs, ROWS[i].runs, "%s: %s", ROWS[i].text, runs);
    }
}

Test(itemize, gives_a_paragraph_without_letters_the_direction_asked_for, .init = setup,
     .fini = teardown)
{
    cr_expect_str_eq(runs_of("12 - 5", LATIN, false), "[12 - 5]Zyyy f0 l0 ");
    cr_expect_str_eq(runs_of("12 - 5", LATIN, true),
                     "[12]Zyyy f0 l2 [ - ]Zyyy f0 l1 [5]Zyyy f0 l2 ");
    cr_expect_str_eq(runs_of("a 5", LATIN, true), "[a 5]Latn f0 l0 ");
    cr_expect_eq(items_of("12", LATIN, true).runs[0].base, 1);
    cr_expect_eq(items_of("a", LATIN, true).runs[0].base, 0);
    cr_expect_eq(items_of("\u05D0", LATIN, false).runs[0].base, 1);
}

Test(itemize, prefers_faces_of_the_weight_asked_for, .init = setup, .fini = teardown)
{
    static const struct {
        const char *text;
        size_t face;
        size_t expected;
    } ROWS[] = {
        {"a", LATIN_BOLD, LATIN_BOLD},
        {"\u05D0", LATIN, HEBREW},
        {"\u05D0", LATIN_BOLD, HEBREW_BOLD},
        {"\u0E01", LATIN_BOLD, THAI},
        {"a", THAI, LATIN},
        {"\u5C71", LATIN_BOLD, LATIN_BOLD},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct items const items = items_of(ROWS[i].text, ROWS[i].face, false);

        cr_expect(items.runs_count == 1 && items.runs[0].face == ROWS[i].expected, "%zu: %u", i,
                  items.runs[0].face);
    }
    cr_expect_eq(itemize_face_of(itemizer, LATIN, 0x0E01), THAI);
    cr_expect_eq(itemize_face_of(itemizer, HEBREW_BOLD, 0x05D0), HEBREW_BOLD);
    cr_expect_eq(itemize_face_of(itemizer, LATIN_BOLD, 0x5C71), LATIN_BOLD);
}

Test(itemize, keeps_a_letter_and_its_marks_in_one_face, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name, *text;
        size_t face;
    } ROWS[] = {
        {"a Hebrew point that the first face lacks", "\u05D0\u05B8", HEBREW},
        {"a mark that only the first face has with it", "x\u0302", LATIN},
        {"decomposed, where only the composed form is there", "e\u0301", LATIN},
        {"what draws nothing does not count", "\u05D0\u200D\uFE0F", HEBREW},
        {"a joiner between letters", "\u0643\u200C\u0643", ARABIC},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct items const items = items_of(ROWS[i].text, LATIN, false);

        cr_expect_eq(items.runs_count, 1, "%s", ROWS[i].name);
        cr_expect_eq(items.runs[0].face, ROWS[i].face, "%s", ROWS[i].name);
    }
}

Test(itemize, lets_lines_begin_with_whole_letters_only, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name, *text;
        size_t begins[4]; /* bytes; 0 ends */
    } ROWS[] = {
        {"letters", "abc", {1, 2}},
        {"marks", "a\u0302\u0323b", {5}},
        {"an emoji family", "\U0001F469\u200D\U0001F4BBa", {11}},
        {"a flag", "\U0001F1E9\U0001F1EAa", {8}},
        {"Thai marks", "\u0E19\u0E49\u0E33\u0E01", {9}},
        {"a Devanagari conjunct", "\u0915\u094D\u0937\u0924", {9}},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct items const items = items_of(ROWS[i].text, LATIN, false);
        size_t next = 0;

        cr_expect(items.is_boundary[0]);
        for (size_t at = 1; at < strlen(ROWS[i].text); at++) {
            bool const expected = at == ROWS[i].begins[next];

            cr_expect_eq(items.is_boundary[at], expected, "%s: byte %zu", ROWS[i].name, at);
            next += expected;
        }
    }
}

Test(itemize, takes_more_brackets_than_it_remembers, .init = setup, .fini = teardown)
{
    static char text[1000];

    memset(text, '(', 400);
    memset(text + 400, ')', 400);
    memcpy(text + 800, "\u05D0", sizeof "\u05D0");
    cr_expect_gt(items_of(text, LATIN, false).runs_count, 1);
}

Test(itemize, says_when_memory_ends, .init = setup, .fini = teardown)
{
    enum { CHUNK_BYTES = 4096, UNIT_BYTES = 16 };
    size_t failures = 0;

    for (size_t left = 0; left < CHUNK_BYTES; left += UNIT_BYTES) {
        struct items items;
        bool has_failed;
        enum status st;

        arena_clear(&arena);
        cr_assert_not_null(arena_alloc(&arena, CHUNK_BYTES - left));
        failing_memory_start(1);
        st = itemize(itemizer, text_of("Dan \u05D3\u05E0\u05D9 Levi"), LATIN, false, &arena, &items,
                     NULL);
        has_failed = failing_memory_stop();
        failures += has_failed;
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "%zu bytes left", left);
    }
    cr_expect_gt(failures, 10);
}

Test(itemizer_new, says_when_memory_ends, .init = setup, .fini = teardown)
{
    struct itemizer *made = NULL;
    bool has_failed;

    failing_memory_start(1);
    cr_expect_eq(itemizer_new(fonts, &made, NULL), ST_NO_MEMORY);
    has_failed = failing_memory_stop();
    cr_expect(has_failed && made == NULL);
    itemizer_free(&made);
}

Test(itemize_is_plain, of_one_of_three_scripts_with_what_they_share)
{
    static const struct {
        const char *text;
        bool is_plain, is_plain_in_right_to_left;
    } ROWS[] = {
        {"", true, false},
        {"Ana Li", true, true},
        {"12 - 5", true, false},
        {"\u20AC45.00", true, false},
        {"Nguy\u1EC5n Th\u1ECB \u00C1nh", true, true},
        {"\u1F0C\u03B3\u03B9\u03BF\u03C2", true, true},
        {"\u0424\u0451\u0434\u043E\u0440", true, true},
        {"x\u0302 \u2013 \u201Cy\u201D\u2026", true, true},
        {"A\u0410", false, false}, /* Latin and Cyrillic */
        {"A\u0391", false, false}, /* Latin and Greek */
        {"\u05D0", false, false},
        {"\u0627", false, false},
        {"\u0E01", false, false},
        {"\u5C71", false, false},
        {"\U0001F3AB", false, false},
        {"A\u00ADB", false, false},
        {"A\u200DB", false, false},
        {"A\u200E", false, false},
        {"A\u2066", false, false},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        cr_expect_eq(itemize_is_plain(text_of(ROWS[i].text), false), ROWS[i].is_plain, "%zu", i);
        cr_expect_eq(itemize_is_plain(text_of(ROWS[i].text), true),
                     ROWS[i].is_plain_in_right_to_left, "%zu", i);
    }
}
