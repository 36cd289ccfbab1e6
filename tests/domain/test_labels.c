#include "domain/labels.h"

#include "service/batch_json.h"
#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* All labels but the last, which is left to the case. */
#define MOST                                                                                       \
    "'holder': 'a', 'type': 'b', 'section': 'c', 'row': 'd', 'seat': 'e', 'gate': 'f', "           \
    "'price': 'g', 'free': 'h', 'order': 'i', 'ticket': 'j'"
#define ALL     "{" MOST ", 'doors': 'k'}"
#define ENGLISH "'en': " ALL

static enum status read_text(const char *text, struct label_set *set, struct problems *problems,
                             struct error *err)
{
    char json[4096];
    json_t *root;
    enum status st;

    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    root = json_loads(json, JSON_DECODE_ANY, NULL);
    cr_assert_not_null(root, "%s", text);
    st = label_set_read(&json_value_source, json_value(root), set, problems, err);
    json_decref(root);
    return st;
}

static void catalogue_read(struct label_set *set)
{
    json_t *root = json_load_file("service/data/labels.json", JSON_REJECT_DUPLICATES, NULL);
    struct problems problems = {0};

    cr_assert_not_null(root);
    cr_assert_eq(label_set_read(&json_value_source, json_value(root), set, &problems, NULL), ST_OK);
    json_decref(root);
}

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

/* ---- the catalogue of the program ---- */

Test(label_set_read, finds_every_word_of_every_language)
{
    struct label_set set = {0};

    catalogue_read(&set);
    cr_expect_geq(set.languages_count, 11);
    for (size_t i = 0; i < set.languages_count; i++)
        for (int label = 0; label < LABEL_COUNT; label++) {
            struct text const word = set.languages[i].words[label];

            cr_expect(word.len > 0 && word.len <= 40 && word.data[word.len] == '\0', "%s: %s",
                      set.languages[i].tag.data, label_name((enum label)label));
        }
    label_set_clear(&set);
    cr_expect(set.languages == NULL && set.languages_count == 0);
}

/* What the built-in layouts promise to print: a word more or less in a language is a word that a
 * ticket prints in another. */
Test(label_set_read, finds_every_language_that_is_promised)
{
    static const char LANGUAGES[] =
        "en es de fr it pt pt-br nl pl tr el ru uk cs hu ro sv da nb fi "
        "vi ar he hi th ja zh zh-hant ko";
    struct label_set set = {0};
    size_t count = 0;

    catalogue_read(&set);
    for (const char *at = LANGUAGES; *at != '\0'; count++) {
        size_t const len = strcspn(at, " ");

        cr_assert_lt(count, set.languages_count);
        cr_expect(set.languages[count].tag.len == len &&
                      memcmp(set.languages[count].tag.data, at, len) == 0,
                  "%s", set.languages[count].tag.data);
        cr_expect_eq(label_set_find(&set, (struct text){at, len}), &set.languages[count], "%s",
                     set.languages[count].tag.data);
        at += len + (at[len] == ' ');
    }
    cr_expect_eq(count, set.languages_count);
    label_set_clear(&set);
}

/* A word copied from English into a language of another script was forgotten. */
Test(label_set_read, finds_words_in_the_languages_own_letters)
{
    static const char *const TAGS[] = {"el", "ru", "uk", "ar",      "he", "hi",
                                       "th", "ja", "zh", "zh-hant", "ko"};
    struct label_set set = {0};

    catalogue_read(&set);
    for (size_t i = 0; i < sizeof TAGS / sizeof *TAGS; i++) {
        const struct label_language *language = label_set_find(&set, text_of(TAGS[i]));

        for (int label = 0; label < LABEL_COUNT; label++)
            for (size_t at = 0; at < language->words[label].len; at++)
                cr_expect((unsigned char)language->words[label].data[at] >= 0x80 ||
                              strchr(" .", language->words[label].data[at]) != NULL,
                          "%s: %s", TAGS[i], language->words[label].data);
    }
    label_set_clear(&set);
}

Test(label_set_find, goes_by_the_longest_beginning_and_falls_back_to_english)
{
    static const struct {
        const char *locale, *free;
    } ROWS[] = {
        {"en-GB", "Free"},
        {"en", "Free"},
        {"es-ES", "Gratis"},
        {"es", "Gratis"},
        {"es-419", "Gratis"},
        {"DE-de", "Kostenlos"},
        {"de-AT", "Kostenlos"},
        {"fr-CA", "Gratuit"},
        {"el-GR", "\u0394\u03C9\u03C1\u03B5\u03AC\u03BD"},
        {"de-u-nu-latn", "Kostenlos"},
        {"ar-EG", "\u0645\u062C\u0627\u0646\u064A"},
        {"he-IL", "\u05D7\u05D9\u05E0\u05DD"},
        {"iw-IL", "\u05D7\u05D9\u05E0\u05DD"},
        {"hi-IN", "\u0928\u093F\u0903\u0936\u0941\u0932\u094D\u0915"},
        {"th-TH-u-ca-gregory", "\u0E1F\u0E23\u0E35"},
        {"ja-JP", "\u7121\u6599"},
        {"ko", "\uBB34\uB8CC"},
        {"zh", "\u514D\u8D39"},
        {"zh-CN", "\u514D\u8D39"},
        {"zh-Hans", "\u514D\u8D39"},
        {"zh-Hans-HK", "\u514D\u8D39"},
        {"zh-SG", "\u514D\u8D39"},
        {"zh-Hant", "\u514D\u8CBB"},
        {"zh-Hant-HK", "\u514D\u8CBB"},
        {"ZH-HANT-CN", "\u514D\u8CBB"},
        {"zh-TW", "\u514D\u8CBB"},
        {"zh-HK", "\u514D\u8CBB"},
        {"zh-MO", "\u514D\u8CBB"},
        {"zh-tw-u-nu-hanidec", "\u514D\u8CBB"},
        {"yue-HK", "\u514D\u8CBB"},
        {"nb-NO", "Gratis"},
        {"no", "Gratis"},
        {"nn-NO", "Gratis"},
        {"pt-PT", "Gr\u00E1tis"},
        {"tlh", "Free"},
        {"e", "Free"},
        {"deu", "Free"},
        {"d", "Free"},
        {"zh-hantx", "\u514D\u8D39"},
        {"x", "Free"},
        {"-", "Free"},
        {"--de", "Free"},
    };
    struct label_set set = {0};

    catalogue_read(&set);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_str_eq(label_set_find(&set, text_of(ROWS[i].locale))->words[LABEL_FREE].data,
                         ROWS[i].free, "%s", ROWS[i].locale);
    label_set_clear(&set);
}

Test(label_set_find, knows_a_regions_own_words)
{
    struct label_set set = {0};

    catalogue_read(&set);
    cr_expect_str_eq(label_set_find(&set, text_of("pt-BR"))->words[LABEL_TICKET].data,
                     "Ingresso n\u00BA");
    cr_expect_str_eq(label_set_find(&set, text_of("pt-AO"))->words[LABEL_TICKET].data,
                     "Bilhete n.\u00BA");
    label_set_clear(&set);
}

Test(label_name, is_another_one_for_each_label)
{
    for (int a = 0; a < LABEL_COUNT; a++)
        for (int b = 0; b < a; b++)
            cr_expect_str_neq(label_name((enum label)a), label_name((enum label)b));
}

/* ---- broken catalogues ---- */

static const struct {
    const char *json, *pointer, *code;
} FAULTS[] = {
    {"[]", "", "wrong_type"},
    {"1", "", "wrong_type"},
    {"{}", "/en", "missing"},
    {"{'es': " ALL "}", "/en", "missing"},
    {"{" ENGLISH ", 'es': 1}", "", "wrong_type"},
    {"{" ENGLISH ", 'es': []}", "", "wrong_type"},
    {"{" ENGLISH ", 'e': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'abcdefghi': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es-ES': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es-': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", '-es': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es_es': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es--es': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es-u-nu': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es-abcdefghi': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", '419': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefgh': " ALL "}",
     "", "wrong_type"},
    {"{" ENGLISH ", 'ES': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", '': " ALL "}", "", "wrong_type"},
    {"{" ENGLISH ", 'es': {" MOST "}}", "/es/doors", "missing"},
    {"{" ENGLISH ", 'es': {" MOST ", 'doors': ''}}", "/es/doors", "missing"},
    {"{" ENGLISH ", 'es': {" MOST ", 'doors': 1}}", "/es/doors", "missing"},
    {"{" ENGLISH ", 'es': {" MOST ", 'doors': 'k', 'Doors': 'k'}}", "/es", "unknown_member"},
    {"{" ENGLISH ", 'es': {" MOST ", 'doors': 'k', 'door': 'k'}}", "/es", "unknown_member"},
};

Test(label_set_read, names_the_place_and_the_rule_of_each_fault)
{
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        struct label_set set = {0};
        struct problems problems = {0};
        struct error err = {0};

        cr_expect_eq(read_text(FAULTS[i].json, &set, &problems, &err), ST_INVALID, "%s",
                     FAULTS[i].json);
        cr_expect(err.status == ST_INVALID && set.languages == NULL && set.arena.chunks == NULL);
        cr_assert_eq(problems.count, 1, "%s: %zu", FAULTS[i].json, problems.count);
        cr_expect_str_eq(problems.listed[0].pointer.data, FAULTS[i].pointer, "%s", FAULTS[i].json);
        cr_expect_str_eq(problems.listed[0].code, FAULTS[i].code, "%s", FAULTS[i].json);
        problems_clear(&problems);
    }
}

Test(label_set_read, accepts_what_is_just_right)
{
    struct label_set set = {0};
    struct problems problems = {0};

    problems_add(&problems, "/earlier", "earlier", "is no fault of this catalogue");
    cr_assert_eq(
        read_text("{'abcdefgh': " ALL ", " ENGLISH ", 'es-419': " ALL
                  ", 'es-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefgh-abcdefg': " ALL "}",
                  &set, &problems, NULL),
        ST_OK);
    cr_assert_eq(set.languages_count, 4);
    cr_expect_str_eq(set.languages[0].words[LABEL_HOLDER].data, "a");
    cr_expect_str_eq(set.languages[0].words[LABEL_DOORS].data, "k");
    cr_expect_eq(label_set_find(&set, text_of("tlh")), &set.languages[1]);
    label_set_clear(&set);
    problems_clear(&problems);
}

Test(label_set_read, leaves_nothing_when_memory_ends)
{
    json_t *root = json_load_file("service/data/labels.json", 0, NULL);
    bool has_failed = true;
    size_t call = 1;

    cr_assert_not_null(root);
    for (; has_failed; call++) {
        struct label_set set = {0};
        struct problems problems = {0};
        enum status st;

        failing_memory_start(call);
        st = label_set_read(&json_value_source, json_value(root), &set, &problems, NULL);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(set.languages == NULL, has_failed);
        label_set_clear(&set);
    }
    cr_expect_gt(call, 2);
    json_decref(root);
}
