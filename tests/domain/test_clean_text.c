#include "domain/clean_text.h"
#include "tests/support/table_rules.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct {
    const char *name;
    enum clean_lines lines;
    const char *raw;
    const char *clean;
} CLEANED[] = {
    {"plain", CLEAN_ONE_LINE, "Ana Li", "Ana Li"},
    {"spaces are kept", CLEAN_ONE_LINE, "  Ana  Li ", "  Ana  Li "},
    {"tab", CLEAN_ONE_LINE, "Ana\tLi", "Ana Li"},
    {"line feed", CLEAN_ONE_LINE, "Ana\nLi", "Ana Li"},
    {"carriage return", CLEAN_ONE_LINE, "Ana\rLi", "Ana Li"},
    {"both", CLEAN_ONE_LINE, "Ana\r\nLi", "Ana Li"},
    {"line separator", CLEAN_ONE_LINE, "Ana\u2028Li", "Ana Li"},
    {"paragraph separator", CLEAN_ONE_LINE, "Ana\u2029Li", "Ana Li"},
    {"a run is one space", CLEAN_ONE_LINE, "Ana\n\n\t\u2028\r\nLi", "Ana Li"},
    {"spaces do not join a run", CLEAN_ONE_LINE, "Ana\n \nLi", "Ana   Li"},
    {"at the ends", CLEAN_ONE_LINE, "\nAna\n", " Ana "},
    {"two apart", CLEAN_ONE_LINE, "a\nb\nc", "a b c"},
    {"composed", CLEAN_ONE_LINE, "Rene\u0301\tDu\u0308rr", "René Dürr"},
    {"isolates and marks", CLEAN_ONE_LINE, "\u2067א\u2069\u200E\u200F",
     "\u2067א\u2069\u200E\u200F"},
    {"private use", CLEAN_ONE_LINE, "\uE000", "\uE000"},
    {"lines", CLEAN_KEEP_LINES, "a\nb\n", "a\nb\n"},
    {"empty lines", CLEAN_KEEP_LINES, "a\n\nb", "a\n\nb"},
    {"all kinds of lines", CLEAN_KEEP_LINES, "a\r\nb\rc\u2028d\u2029e", "a\nb\nc\nd\ne"},
    {"carriage returns first", CLEAN_KEEP_LINES, "a\r\r\nb", "a\n\nb"},
    {"carriage return last", CLEAN_KEEP_LINES, "a\r", "a\n"},
    {"tab in lines", CLEAN_KEEP_LINES, "a\t\tb", "a  b"},
};

Test(text_clean, settles_separators_and_composes)
{
    for (size_t i = 0; i < sizeof CLEANED / sizeof *CLEANED; i++) {
        struct text const raw = {.data = CLEANED[i].raw, .len = strlen(CLEANED[i].raw)};
        struct arena arena = {0};
        struct cleaned cleaned;

        cr_assert(text_clean(raw, CLEANED[i].lines, &TABLE_RULES, &arena, &cleaned, NULL) == ST_OK);
        cr_expect(cleaned.verdict == CLEAN_OK, "%s", CLEANED[i].name);
        cr_expect_str_eq(cleaned.text.data, CLEANED[i].clean, "%s", CLEANED[i].name);
        cr_expect(cleaned.text.len == strlen(CLEANED[i].clean), "%s", CLEANED[i].name);
        arena_clear(&arena);
    }
}

#define RAW(literal)                                                                               \
    {                                                                                              \
        .data = (literal), .len = sizeof(literal) - 1                                              \
    }

static const struct {
    const char *name;
    struct text raw;
    enum clean_verdict verdict;
    uint32_t bad_code_point;
} JUDGED[] = {
    {"nothing", {0}, CLEAN_BLANK, 0},
    {"spaces", RAW("   "), CLEAN_BLANK, 0},
    {"separators", RAW("\r\n\t\u2028\u2029"), CLEAN_BLANK, 0},
    {"other white space", RAW("\u00A0\u1680\u2000\u202F\u205F\u3000"), CLEAN_BLANK, 0},
    {"invisible characters", RAW("\u200B\u2060\uFEFF\u00AD\u3164"), CLEAN_BLANK, 0},
    {"zero", RAW("Ana\0Li"), CLEAN_BAD_CHARACTER, 0},
    {"bell", RAW("Ana\aLi"), CLEAN_BAD_CHARACTER, 7},
    {"vertical tab", RAW("Ana\vLi"), CLEAN_BAD_CHARACTER, 0x0B},
    {"delete", RAW("\x7F"), CLEAN_BAD_CHARACTER, 0x7F},
    {"next line", RAW("a\xC2\x85"), CLEAN_BAD_CHARACTER, 0x85},
    {"noncharacter", RAW("\uFDD0"), CLEAN_BAD_CHARACTER, 0xFDD0},
    {"override", RAW("\u202E"), CLEAN_BAD_CHARACTER, 0x202E},
    {"the first of two", RAW("\u202D\a"), CLEAN_BAD_CHARACTER, 0x202D},
    {"not UTF-8", RAW("Ana\xE9"), CLEAN_BAD_UTF8, 0},
};

Test(text_clean, judges_what_is_blank_and_what_is_refused)
{
    for (size_t i = 0; i < sizeof JUDGED / sizeof *JUDGED; i++)
        for (int lines = CLEAN_ONE_LINE; lines <= CLEAN_KEEP_LINES; lines++) {
            struct arena arena = {0};
            struct cleaned cleaned;

            cr_assert(text_clean(JUDGED[i].raw, (enum clean_lines)lines, &TABLE_RULES, &arena,
                                 &cleaned, NULL) == ST_OK);
            cr_expect(cleaned.verdict == JUDGED[i].verdict, "%s: %d", JUDGED[i].name,
                      (int)cleaned.verdict);
            cr_expect(cleaned.bad_code_point == JUDGED[i].bad_code_point, "%s", JUDGED[i].name);
            arena_clear(&arena);
        }
}
