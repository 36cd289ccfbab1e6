#include "domain/labels.h"

#include "domain/ascii.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    POINTER_BYTES_MAX = 256,
    LANGUAGE_BYTES_MAX = 64,
    SUBTAG_BYTES_MIN = 2, /* RFC 5646, section 2.1; single letters open extensions */
    SUBTAG_BYTES_MAX = 8,
};

static const char *const LABEL_NAMES[LABEL_COUNT] = {
    [LABEL_HOLDER] = "holder", [LABEL_TYPE] = "type",   [LABEL_SECTION] = "section",
    [LABEL_ROW] = "row",       [LABEL_SEAT] = "seat",   [LABEL_GATE] = "gate",
    [LABEL_PRICE] = "price",   [LABEL_FREE] = "free",   [LABEL_ORDER] = "order",
    [LABEL_TICKET] = "ticket", [LABEL_DOORS] = "doors",
};

const char *label_name(enum label label)
{
    assert(label < LABEL_COUNT);
    return LABEL_NAMES[label];
}

void label_set_clear(struct label_set *set)
{
    arena_clear(&set->arena);
    *set = (struct label_set){0};
}

/* A language, then perhaps a script, a region or variants, all in small letters. */
static bool is_language(struct text tag)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyz";
    size_t at = 0;

    if (tag.len > LANGUAGE_BYTES_MAX)
        return false;
    for (;;) {
        size_t const len = strspn(tag.data + at, allowed);

        if (len < SUBTAG_BYTES_MIN || len > SUBTAG_BYTES_MAX)
            return false;
        at += len;
        if (at == tag.len)
            return true;
        if (tag.data[at++] != '-')
            return false;
        allowed = "abcdefghijklmnopqrstuvwxyz0123456789";
    }
}

static bool is_label(struct text name)
{
    for (int label = 0; label < LABEL_COUNT; label++)
        if (strlen(LABEL_NAMES[label]) == name.len &&
            memcmp(LABEL_NAMES[label], name.data, name.len) == 0)
            return true;
    return false;
}

static void refuse_others(const struct value_source *source, const void *node, struct text tag,
                          struct problems *problems)
{
    void *cursor = NULL;
    struct text name;
    struct value value;

    while (source->member_next(node, &cursor, &name, &value)) {
        char pointer[POINTER_BYTES_MAX];

        if (is_label(name))
            continue;
        snprintf(pointer, sizeof pointer, "/%s", tag.data);
        problems_add(problems, pointer, "unknown_member", "has a word that no ticket uses");
    }
}

static enum status language_read(const struct value_source *source, const void *node,
                                 struct label_set *set, struct label_language *language,
                                 struct problems *problems, struct error *err)
{
    enum status st = ST_OK;

    refuse_others(source, node, language->tag, problems);
    for (int label = 0; label < LABEL_COUNT && st == ST_OK; label++) {
        struct value value;

        if (source->member(node, LABEL_NAMES[label], &value) && value.kind == VALUE_TEXT &&
            value.text.len > 0) {
            st = arena_text_copy(&set->arena, value.text.data, value.text.len,
                                 &language->words[label], err);
        } else {
            char pointer[POINTER_BYTES_MAX];

            snprintf(pointer, sizeof pointer, "/%s/%s", language->tag.data, LABEL_NAMES[label]);
            problems_add(problems, pointer, "missing", "each language has a word for %s",
                         LABEL_NAMES[label]);
        }
    }
    return st;
}

static size_t members_count(const struct value_source *source, struct value object)
{
    void *cursor = NULL;
    struct text name;
    struct value value;
    size_t count = 0;

    while (source->member_next(object.node, &cursor, &name, &value))
        count++;
    return count;
}

static enum status languages_read(const struct value_source *source, struct value root,
                                  struct label_set *set, struct problems *problems,
                                  struct error *err)
{
    void *cursor = NULL;
    struct text name;
    struct value value;
    enum status st = ST_OK;

    while (st == ST_OK && source->member_next(root.node, &cursor, &name, &value)) {
        struct label_language *language = &set->languages[set->languages_count];

        if (value.kind != VALUE_OBJECT || !is_language(name)) {
            problems_add(problems, "", "wrong_type",
                         "a catalogue is an object of languages, each a tag in small letters");
            continue;
        }
        st = arena_text_copy(&set->arena, name.data, name.len, &language->tag, err);
        if (st == ST_OK)
            st = language_read(source, value.node, set, language, problems, err);
        set->languages_count++;
    }
    return st;
}

static const struct label_language *find_tag(const struct label_set *set, const char *tag,
                                             size_t len)
{
    for (size_t i = 0; i < set->languages_count; i++)
        if (set->languages[i].tag.len == len &&
            ascii_equals_any_case(set->languages[i].tag.data, tag, len))
            return &set->languages[i];
    return NULL;
}

enum status label_set_read(const struct value_source *source, struct value root,
                           struct label_set *set, struct problems *problems, struct error *err)
{
    size_t const before = problems->count;
    size_t count;
    enum status st;

    if (root.kind != VALUE_OBJECT) {
        problems_add(problems, "", "wrong_type", "a catalogue is an object of languages");
        return error_set(err, ST_INVALID, "the label catalogue is not an object");
    }
    count = members_count(source, root);
    set->languages = arena_alloc(&set->arena, (count + 1) * sizeof *set->languages);
    st = set->languages == NULL ? error_set(err, ST_NO_MEMORY, "the label catalogue")
                                : languages_read(source, root, set, problems, err);
    if (st == ST_OK && find_tag(set, "en", 2) == NULL)
        problems_add(problems, "/en", "missing", "English is what other languages fall back to");
    if (st == ST_OK && problems->count > before)
        st = error_set(err, ST_INVALID, "the label catalogue breaks its rules");
    if (st != ST_OK)
        label_set_clear(set);
    return st;
}

/* Tags whose words are kept under another: Chinese by the script that the region writes, Norwegian
 * by the form that most write, Hebrew from before 1989. */
static const struct {
    const char *tag, *kept_as;
} ALIASES[] = {
    {"zh-tw", "zh-hant"}, {"zh-hk", "zh-hant"}, {"zh-mo", "zh-hant"}, {"yue", "zh-hant"},
    {"no", "nb"},         {"nn", "nb"},         {"iw", "he"},
};

static const struct label_language *find_tag_or_alias(const struct label_set *set, const char *tag,
                                                      size_t len)
{
    const struct label_language *found = find_tag(set, tag, len);

    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES && found == NULL; i++)
        if (strlen(ALIASES[i].tag) == len && ascii_equals_any_case(ALIASES[i].tag, tag, len))
            found = find_tag(set, ALIASES[i].kept_as, strlen(ALIASES[i].kept_as));
    return found;
}

const struct label_language *label_set_find(const struct label_set *set, struct text locale)
{
    size_t len = locale.len;
    const struct label_language *found = find_tag_or_alias(set, locale.data, len);

    while (found == NULL && len > 0) {
        while (len > 0 && locale.data[--len] != '-')
            continue;
        found = find_tag_or_alias(set, locale.data, len);
    }
    if (found == NULL)
        found = find_tag(set, "en", 2);
    assert(found != NULL);
    return found;
}
