#include "domain/utf8.h"

#include <criterion/criterion.h>

struct row {
    const char *name;
    struct text text;
    uint32_t code_point;
    size_t bytes; /* 0: refused */
};

#define ROW(row_name, literal, value, length)                                                      \
    {                                                                                              \
        (row_name), {.data = (literal), .len = sizeof(literal) - 1}, (value), (length)             \
    }

static const struct row ROWS[] = {
    ROW("nothing", "", 0, 0),
    ROW("zero", "\0", 0, 1),
    ROW("last of one byte", "\x7F", 0x7F, 1),
    ROW("continuation alone", "\x80", 0, 0),
    ROW("overlong of two bytes", "\xC1\xBF", 0, 0),
    ROW("first of two bytes", "\xC2\x80", 0x80, 2),
    ROW("last of two bytes", "\xDF\xBF", 0x7FF, 2),
    ROW("two bytes cut", "\xDF", 0, 0),
    ROW("two bytes broken", "\xDF\x41", 0, 0),
    ROW("overlong of three bytes", "\xE0\x9F\xBF", 0, 0),
    ROW("first of three bytes", "\xE0\xA0\x80", 0x800, 3),
    ROW("before the surrogates", "\xED\x9F\xBF", 0xD7FF, 3),
    ROW("first surrogate", "\xED\xA0\x80", 0, 0),
    ROW("last surrogate", "\xED\xBF\xBF", 0, 0),
    ROW("behind the surrogates", "\xEE\x80\x80", 0xE000, 3),
    ROW("last of three bytes", "\xEF\xBF\xBF", 0xFFFF, 3),
    ROW("three bytes cut", "\xEF\xBF", 0, 0),
    ROW("three bytes broken", "\xEF\xBF\xC0", 0, 0),
    ROW("overlong of four bytes", "\xF0\x8F\xBF\xBF", 0, 0),
    ROW("first of four bytes", "\xF0\x90\x80\x80", 0x10000, 4),
    ROW("last of all", "\xF4\x8F\xBF\xBF", 0x10FFFF, 4),
    ROW("behind the last", "\xF4\x90\x80\x80", 0, 0),
    ROW("four bytes cut", "\xF0\x90\x80", 0, 0),
    ROW("no such first byte", "\xF5\x80\x80\x80", 0, 0),
    ROW("byte FF", "\xFF", 0, 0),
    ROW("only the first of two", "\xC3\xA9z", 0xE9, 2),
};

Test(utf8_decode, takes_valid_sequences_and_nothing_else)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct row *row = &ROWS[i];
        uint32_t code_point = 0xBAD;
        size_t const bytes = utf8_decode(row->text.data, row->text.len, &code_point);

        cr_expect(bytes == row->bytes, "%s: %zu bytes", row->name, bytes);
        cr_expect(code_point == (row->bytes > 0 ? row->code_point : 0xBAD), "%s", row->name);
    }
}

Test(utf8_is_valid, judges_the_whole_text)
{
    cr_expect(utf8_is_valid((struct text){0}));
    cr_expect(utf8_is_valid((struct text){.data = "a\0é\xF0\x9F\x8E\xAB", .len = 8}));
    cr_expect(!utf8_is_valid((struct text){.data = "a\0é\xF0\x9F\x8E\xAB", .len = 7}));
    cr_expect(!utf8_is_valid((struct text){.data = "ab\xE9", .len = 3}));
}

Test(utf8_count, counts_code_points)
{
    cr_expect(utf8_count((struct text){0}) == 0);
    cr_expect(utf8_count((struct text){.data = "aéễ\xF0\x9F\x8E\xAB", .len = 10}) == 4);
}

Test(utf8_prefix, never_ends_inside_a_sequence)
{
    static const size_t EXPECTED[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    struct text const text = {.data = "aéễ\xF0\x9F\x8E\xAB", .len = 10};

    for (size_t max = 0; max < sizeof EXPECTED / sizeof *EXPECTED; max++)
        cr_expect(utf8_prefix(text, max) == EXPECTED[max], "%zu", max);
}
