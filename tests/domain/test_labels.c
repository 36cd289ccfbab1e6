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

Test(label_set_find, goes_by_the_language_and_falls_back_to_english)
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
        {"ja-JP", "Free"},
        {"tlh", "Free"},
        {"e", "Free"},
        {"deu", "Free"},
        {"d", "Free"},
    };
    struct label_set set = {0};

    catalogue_read(&set);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_str_eq(label_set_find(&set, text_of(ROWS[i].locale))->words[LABEL_FREE].data,
                         ROWS[i].free, "%s", ROWS[i].locale);
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
    cr_assert_eq(read_text("{'abcdefgh': " ALL ", " ENGLISH "}", &set, &problems, NULL), ST_OK);
    cr_assert_eq(set.languages_count, 2);
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
