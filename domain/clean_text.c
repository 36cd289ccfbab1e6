#include "domain/clean_text.h"

#include "domain/characters.h"
#include "domain/utf8.h"

#include <assert.h>
#include <string.h>

bool character_is_refused(uint32_t code_point)
{
    return character_is_control(code_point) || character_is_noncharacter(code_point) ||
           character_is_bidi_override(code_point);
}

static bool is_separator(uint32_t code_point)
{
    return code_point == '\t' || code_point == '\n' || code_point == '\r' || code_point == 0x2028 ||
           code_point == 0x2029;
}

struct survey {
    enum clean_verdict verdict;
    uint32_t bad_code_point;
    bool is_ascii;
};

static struct survey survey_text(struct text raw)
{
    struct survey survey = {.verdict = CLEAN_BLANK, .is_ascii = true};
    size_t at = 0;

    while (at < raw.len) {
        uint32_t code_point;
        size_t const bytes = utf8_decode(raw.data + at, raw.len - at, &code_point);

        if (bytes == 0)
            return (struct survey){.verdict = CLEAN_BAD_UTF8};
        at += bytes;
        survey.is_ascii = survey.is_ascii && bytes == 1;
        if (is_separator(code_point))
            continue;
        if (character_is_refused(code_point))
            return (struct survey){.verdict = CLEAN_BAD_CHARACTER, .bad_code_point = code_point};
        if (!character_is_white_space(code_point) && !character_is_invisible(code_point))
            survey.verdict = CLEAN_OK;
    }
    return survey;
}

static size_t decode_valid(struct text text, size_t at, uint32_t *code_point)
{
    size_t const bytes = utf8_decode(text.data + at, text.len - at, code_point);

    assert(bytes > 0);
    return bytes;
}

/* The end of the separator that spans at..end: CR LF is one; in one line, so is every run. */
static size_t separator_end(struct text text, size_t at, size_t end, enum clean_lines lines)
{
    uint32_t code_point;

    if (lines == CLEAN_KEEP_LINES)
        return text.data[at] == '\r' && end < text.len && text.data[end] == '\n' ? end + 1 : end;
    while (end < text.len) {
        size_t const bytes = decode_valid(text, end, &code_point);

        if (!is_separator(code_point))
            break;
        end += bytes;
    }
    return end;
}

/* Write a valid text with its separators settled; never longer than it was. */
static size_t settle_separators(struct text raw, enum clean_lines lines, char *out)
{
    size_t len = 0;
    size_t at = 0;

    while (at < raw.len) {
        uint32_t code_point;
        size_t end = at + decode_valid(raw, at, &code_point);

        if (is_separator(code_point)) {
            out[len++] = lines == CLEAN_ONE_LINE || code_point == '\t' ? ' ' : '\n';
            end = separator_end(raw, at, end, lines);
        } else {
            memcpy(out + len, raw.data + at, end - at);
            len += end - at;
        }
        at = end;
    }
    return len;
}

enum status text_clean(struct text raw, enum clean_lines lines, const struct text_rules *rules,
                       struct arena *arena, struct cleaned *cleaned, struct error *err)
{
    struct survey const survey = survey_text(raw);
    struct text text;
    char *copy;

    *cleaned = (struct cleaned){.verdict = survey.verdict, .bad_code_point = survey.bad_code_point};
    if (survey.verdict != CLEAN_OK)
        return ST_OK;
    copy = arena_alloc(arena, raw.len + 1);
    if (copy == NULL)
        return error_set(err, ST_NO_MEMORY, "a text of %zu bytes", raw.len);
    text = (struct text){.data = copy, .len = settle_separators(raw, lines, copy)};
    copy[text.len] = '\0';
    cleaned->text = text;
    return survey.is_ascii ? ST_OK : rules->nfc(text, arena, &cleaned->text, err);
}
