#include "domain/id.h"

#include <criterion/criterion.h>
#include <string.h>

#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct id_row {
    const char *name;
    const char *id;
    size_t len; /* 0: strlen(id) */
    bool is_event, is_ticket;
};

static const struct id_row ROWS[] = {
    {"empty", "", 0, false, false},
    {"one letter", "a", 0, true, true},
    {"the longest", SIXTY_FOUR, 0, true, true},
    {"one byte too long", SIXTY_FOUR "0", 0, false, false},
    {"every allowed kind", "AZaz09._:-", 0, true, true},
    {"before A", "@", 0, false, true},
    {"after Z", "[", 0, false, true},
    {"before a", "`", 0, false, true},
    {"after z", "{", 0, false, true},
    {"after colon", ";", 0, false, true},
    {"dot", ".", 0, false, false},
    {"dot dot", "..", 0, false, false},
    {"three dots", "...", 0, true, true},
    {"dot and letter", ".a", 0, true, true},
    {"slash", "a/b", 0, false, false},
    {"backslash", "a\\b", 0, false, false},
    {"space inside", "a b", 0, false, false},
    {"space before", " a", 0, false, false},
    {"space after", "a ", 0, false, false},
    {"NUL", "a\0b", 3, false, false},
    {"line feed", "a\n", 0, false, false},
    {"last of C0", "a\x1f", 0, false, false},
    {"DEL", "a\x7f", 0, false, false},
    {"NEL", "a\xc2\x85", 0, false, false},
    {"no-break space", "a\xc2\xa0", 0, false, false},
    {"ideographic space", "a\xe3\x80\x80", 0, false, false},
    {"letter beyond ASCII", "\xc3\xa9", 0, false, true},
    {"decomposed letter", "e\xcc\x81", 0, false, true},
    {"beyond the BMP", "\xf0\x9f\x8e\xab", 0, false, true},
    {"stray continuation byte", "a\x80", 0, false, false},
    {"cut sequence", "a\xc3", 0, false, false},
    {"overlong slash", "a\xc0\xaf", 0, false, false},
    {"surrogate", "a\xed\xa0\x80", 0, false, false},
    {"beyond U+10FFFF", "a\xf4\x90\x80\x80", 0, false, false},
};

static struct text row_text(const struct id_row *row)
{
    return (struct text){.data = row->id, .len = row->len > 0 ? row->len : strlen(row->id)};
}

Test(id_is_event, allows_some_ascii_only)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(id_is_event(row_text(&ROWS[i])), ROWS[i].is_event, "%s", ROWS[i].name);
}

Test(id_is_ticket, allows_what_can_be_a_path_segment)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(id_is_ticket(row_text(&ROWS[i])), ROWS[i].is_ticket, "%s", ROWS[i].name);
}

Test(id_is_ticket, measures_bytes_not_characters)
{
    static const char sixty_six[] =
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9";

    cr_expect(id_is_ticket((struct text){.data = sixty_six, .len = 64}));
    cr_expect_not(id_is_ticket((struct text){.data = sixty_six, .len = 66}));
}
