#include "domain/characters.h"

#include <stddef.h>

struct range {
    uint32_t first, last;
};

static const struct range WHITE_SPACE[] = {
    {0x0009, 0x000D}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00A0, 0x00A0}, {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
};

static const struct range INVISIBLE[] = {
    {0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x061C, 0x061C},   {0x115F, 0x1160},
    {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F},   {0x202A, 0x202E},
    {0x2060, 0x206F}, {0x2800, 0x2800}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

static bool is_in(uint32_t code_point, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code_point <= ranges[i].last)
            return code_point >= ranges[i].first;
    return false;
}

bool character_is_white_space(uint32_t code_point)
{
    return is_in(code_point, WHITE_SPACE, sizeof WHITE_SPACE / sizeof *WHITE_SPACE);
}

bool character_is_control(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7F && code_point <= 0x9F);
}

bool character_is_noncharacter(uint32_t code_point)
{
    return (code_point >= 0xFDD0 && code_point <= 0xFDEF) || (code_point & 0xFFFE) == 0xFFFE;
}

bool character_is_bidi_override(uint32_t code_point)
{
    return code_point >= 0x202A && code_point <= 0x202E;
}

bool character_is_bidi_control(uint32_t code_point)
{
    return character_is_bidi_override(code_point) || code_point == 0x061C || code_point == 0x200E ||
           code_point == 0x200F || (code_point >= 0x2066 && code_point <= 0x2069);
}

bool character_is_invisible(uint32_t code_point)
{
    return is_in(code_point, INVISIBLE, sizeof INVISIBLE / sizeof *INVISIBLE);
}
