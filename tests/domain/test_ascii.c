#include "domain/ascii.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(ascii_equals_any_case, folds_the_letters_of_ascii_and_nothing_else)
{
    static const struct {
        const char *a, *b;
        size_t len;
        bool is_equal;
    } ROWS[] = {
        {"", "", 0, true},           {"https", "HTTPS", 5, true}, {"aZ", "Az", 2, true},
        {"a", "b", 1, false},        {"[", "{", 1, false},        {"@", "`", 1, false},
        {"pt-BR", "pt-PT", 3, true}, {"\xC4", "\xE4", 1, false},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(ascii_equals_any_case(ROWS[i].a, ROWS[i].b, ROWS[i].len), ROWS[i].is_equal,
                     "row %zu", i);
}
