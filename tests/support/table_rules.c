#include "tests/support/table_rules.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *decomposed;
    const char *composed;
} COMPOSITIONS[] = {
    {"e\u0301", "\u00E9"},
    {"u\u0308", "\u00FC"},
    {"o\u0308", "\u00F6"},
    {"n\u0303", "\u00F1"},
};

/* The composed form of what begins at `at`, or NULL. */
static const char *composed_at(struct text in, size_t at, size_t *len)
{
    for (size_t i = 0; i < sizeof COMPOSITIONS / sizeof *COMPOSITIONS; i++) {
        *len = strlen(COMPOSITIONS[i].decomposed);
        if (in.len - at >= *len && memcmp(in.data + at, COMPOSITIONS[i].decomposed, *len) == 0)
            return COMPOSITIONS[i].composed;
    }
    return NULL;
}

static enum status table_nfc(struct text in, struct arena *arena, struct text *out,
                             struct error *err)
{
    char *copy = arena_alloc(arena, in.len + 1);
    size_t len = 0;

    if (copy == NULL)
        return error_set(err, ST_NO_MEMORY, "NFC of %zu bytes", in.len);
    for (size_t at = 0; at < in.len;) {
        size_t taken = 1;
        const char *composed = composed_at(in, at, &taken);
        size_t const written = composed != NULL ? strlen(composed) : 1;

        memcpy(copy + len, composed != NULL ? composed : in.data + at, written);
        len += written;
        at += composed != NULL ? taken : 1;
    }
    *out = (struct text){.data = copy, .len = len};
    return ST_OK;
}

static bool table_is_zone(struct text name)
{
    static const char *const ZONES[] = {"Europe/Madrid", "Europe/Berlin", "Asia/Kolkata",
                                        "Asia/Tokyo",    "Europe/London", "UTC"};

    for (size_t i = 0; i < sizeof ZONES / sizeof *ZONES; i++)
        if (strlen(ZONES[i]) == name.len && memcmp(ZONES[i], name.data, name.len) == 0)
            return true;
    return false;
}

/* A language of two or three letters, then subtags of one to eight letters and digits. */
static bool table_is_locale(struct text tag)
{
    size_t subtag = 0;
    size_t subtag_len = 0;

    for (size_t i = 0; i < tag.len; i++) {
        unsigned char const c = (unsigned char)tag.data[i];

        if (c == '-') {
            if (subtag_len < (subtag == 0 ? 2u : 1u))
                return false;
            subtag++;
            subtag_len = 0;
        } else if (c >= 0x80 || (subtag == 0 ? !isalpha(c) : !isalnum(c)) ||
                   ++subtag_len > (subtag == 0 ? 3u : 8u)) {
            return false;
        }
    }
    return subtag_len >= (subtag == 0 ? 2u : 1u);
}

static int table_currency_digits(const char code[4])
{
    static const struct {
        const char *code;
        int digits;
    } CURRENCIES[] = {{"EUR", 2}, {"USD", 2}, {"GBP", 2}, {"JPY", 0}, {"KRW", 0}, {"KWD", 3}};

    for (size_t i = 0; i < sizeof CURRENCIES / sizeof *CURRENCIES; i++)
        if (strcmp(code, CURRENCIES[i].code) == 0)
            return CURRENCIES[i].digits;
    return -1;
}

const struct text_rules TABLE_RULES = {
    .nfc = table_nfc,
    .is_zone = table_is_zone,
    .is_locale = table_is_locale,
    .currency_digits = table_currency_digits,
};
