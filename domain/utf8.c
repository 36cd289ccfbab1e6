#include "domain/utf8.h"

/* One row of Table 3-7: which second bytes may follow a range of first bytes. Third and fourth
 * bytes are 80..BF throughout. */
struct sequence_rule {
    uint8_t first_low, first_high;
    uint8_t second_low, second_high;
    uint8_t bytes;
};

static const struct sequence_rule SEQUENCE_RULES[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static const struct sequence_rule *rule_of(uint8_t first)
{
    for (size_t i = 0; i < sizeof SEQUENCE_RULES / sizeof *SEQUENCE_RULES; i++)
        if (first >= SEQUENCE_RULES[i].first_low && first <= SEQUENCE_RULES[i].first_high)
            return &SEQUENCE_RULES[i];
    return NULL;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t utf8_decode(const char *data, size_t len, uint32_t *code_point)
{
    const uint8_t *bytes = (const uint8_t *)data;
    const struct sequence_rule *rule;
    uint32_t value;

    if (len == 0)
        return 0;
    if (bytes[0] < 0x80) {
        *code_point = bytes[0];
        return 1;
    }
    rule = rule_of(bytes[0]);
    if (rule == NULL || len < rule->bytes || bytes[1] < rule->second_low ||
        bytes[1] > rule->second_high)
        return 0;
    value = bytes[0] & (0x7Fu >> rule->bytes);
    for (size_t i = 1; i < rule->bytes; i++) {
        if (!is_continuation(bytes[i]))
            return 0;
        value = value << 6 | (bytes[i] & 0x3Fu);
    }
    *code_point = value;
    return rule->bytes;
}

bool utf8_is_valid(struct text text)
{
    size_t at = 0;

    while (at < text.len) {
        uint32_t code_point;
        size_t const bytes = utf8_decode(text.data + at, text.len - at, &code_point);

        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

size_t utf8_count(struct text text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !is_continuation((uint8_t)text.data[i]);
    return count;
}

size_t utf8_prefix(struct text text, size_t bytes_max)
{
    size_t len = bytes_max;

    if (text.len <= bytes_max)
        return text.len;
    while (len > 0 && is_continuation((uint8_t)text.data[len]))
        len--;
    return len;
}
