#include "domain/characters.h"
#include "domain/clean_text.h"

#include <criterion/criterion.h>

struct row {
    uint32_t code_point;
    bool white_space, control, noncharacter, bidi_override, invisible;
};

static const struct row ROWS[] = {
    {.code_point = 0x0000, .control = true},
    {.code_point = 0x0008, .control = true},
    {.code_point = 0x0009, .control = true, .white_space = true},
    {.code_point = 0x000D, .control = true, .white_space = true},
    {.code_point = 0x000E, .control = true},
    {.code_point = 0x001F, .control = true},
    {.code_point = 0x0020, .white_space = true},
    {.code_point = 0x0021},
    {.code_point = 0x007E},
    {.code_point = 0x007F, .control = true},
    {.code_point = 0x0085, .control = true, .white_space = true},
    {.code_point = 0x009F, .control = true},
    {.code_point = 0x00A0, .white_space = true},
    {.code_point = 0x00A1},
    {.code_point = 0x00AD, .invisible = true},
    {.code_point = 0x1680, .white_space = true},
    {.code_point = 0x1FFF},
    {.code_point = 0x2000, .white_space = true},
    {.code_point = 0x200A, .white_space = true},
    {.code_point = 0x200B, .invisible = true},
    {.code_point = 0x200F, .invisible = true},
    {.code_point = 0x2010},
    {.code_point = 0x2028, .white_space = true},
    {.code_point = 0x2029, .white_space = true},
    {.code_point = 0x202A, .bidi_override = true, .invisible = true},
    {.code_point = 0x202E, .bidi_override = true, .invisible = true},
    {.code_point = 0x202F, .white_space = true},
    {.code_point = 0x2030},
    {.code_point = 0x205F, .white_space = true},
    {.code_point = 0x2066, .invisible = true},
    {.code_point = 0x2069, .invisible = true},
    {.code_point = 0x3000, .white_space = true},
    {.code_point = 0x3001},
    {.code_point = 0xFDCF},
    {.code_point = 0xFDD0, .noncharacter = true},
    {.code_point = 0xFDEF, .noncharacter = true},
    {.code_point = 0xFDF0},
    {.code_point = 0xFEFF, .invisible = true},
    {.code_point = 0xFFFD},
    {.code_point = 0xFFFE, .noncharacter = true},
    {.code_point = 0xFFFF, .noncharacter = true},
    {.code_point = 0x1F3AB},
    {.code_point = 0x1FFFE, .noncharacter = true},
    {.code_point = 0x10FFFD},
    {.code_point = 0x10FFFF, .noncharacter = true},
};

Test(character_is_white_space, and_the_other_classes_hold_at_their_borders)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct row *row = &ROWS[i];
        uint32_t const c = row->code_point;

        cr_expect(character_is_white_space(c) == row->white_space, "white space U+%04X", c);
        cr_expect(character_is_control(c) == row->control, "control U+%04X", c);
        cr_expect(character_is_noncharacter(c) == row->noncharacter, "noncharacter U+%04X", c);
        cr_expect(character_is_bidi_override(c) == row->bidi_override, "override U+%04X", c);
        cr_expect(character_is_bidi_control(c) || !row->bidi_override, "control U+%04X", c);
        cr_expect(character_is_invisible(c) == row->invisible, "invisible U+%04X", c);
        cr_expect(character_is_refused(c) ==
                      (row->control || row->noncharacter || row->bidi_override),
                  "refused U+%04X", c);
    }
}

Test(character_is_bidi_control, has_marks_embeddings_and_isolates)
{
    static const uint32_t FIRST_AND_LAST[][2] = {
        {0x061C, 0x061C}, {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069}};

    for (size_t i = 0; i < sizeof FIRST_AND_LAST / sizeof *FIRST_AND_LAST; i++) {
        uint32_t const first = FIRST_AND_LAST[i][0], last = FIRST_AND_LAST[i][1];

        cr_expect_not(character_is_bidi_control(first - 1), "U+%04X", first - 1);
        for (uint32_t c = first; c <= last; c++)
            cr_expect(character_is_bidi_control(c), "U+%04X", c);
        cr_expect_not(character_is_bidi_control(last + 1), "U+%04X", last + 1);
    }
}
