#include "domain/token.h"

#include "domain/batch.h"
#include "domain/id.h"

#include <assert.h>
#include <string.h>

enum {
    FLAG_VALID_FROM = 1,
    FLAG_VALID_UNTIL = 2,
    FLAGS_ALL = FLAG_VALID_FROM | FLAG_VALID_UNTIL,
};

_Static_assert((int)TOKEN_ID_BYTES_MAX == (int)ID_BYTES_MAX, "every id of a batch fits a token");
_Static_assert(TOKEN_ID_BYTES_MAX <= UINT8_MAX, "an id's length is one byte");

static const char *const VERDICT_NAMES[] = {
    [TOKEN_OK] = "ok",
    [TOKEN_BAD_LENGTH] = "bad_length",
    [TOKEN_BAD_CHARACTER] = "bad_character",
    [TOKEN_NOT_CANONICAL] = "not_canonical",
    [TOKEN_BAD_VERSION] = "bad_version",
    [TOKEN_BAD_FLAGS] = "bad_flags",
    [TOKEN_BAD_ID] = "bad_id",
    [TOKEN_TRUNCATED] = "truncated",
    [TOKEN_TRAILING_BYTES] = "trailing_bytes",
    [TOKEN_BAD_WINDOW] = "bad_window",
    [TOKEN_UNKNOWN_KEY] = "unknown_key",
    [TOKEN_KEY_RETIRED] = "key_retired",
    [TOKEN_WRONG_EVENT] = "wrong_event",
    [TOKEN_BAD_MAC] = "bad_mac",
};
_Static_assert(sizeof VERDICT_NAMES / sizeof *VERDICT_NAMES == TOKEN_VERDICT_COUNT,
               "a name for each verdict");

const char *token_verdict_name(enum token_verdict verdict)
{
    assert(verdict < TOKEN_VERDICT_COUNT);
    return VERDICT_NAMES[verdict];
}

/* ---- base64url ---- */

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64url_write(const uint8_t *data, size_t len, char *text)
{
    uint32_t bits = 0;
    unsigned bits_count = 0; /* of bits, those not yet written */
    size_t text_len = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | data[i];
        bits_count += 8;
        while (bits_count >= 6) {
            bits_count -= 6;
            text[text_len++] = DIGITS[bits >> bits_count & 63];
        }
    }
    if (bits_count > 0)
        text[text_len++] = DIGITS[bits << (6 - bits_count) & 63];
    text[text_len] = '\0';
    assert(text_len == (len * 8 + 5) / 6);
    return text_len;
}

/* -1: not a digit of base64url. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

static enum token_verdict text_read(const char *text, size_t len, uint8_t *data, size_t *data_len)
{
    uint32_t bits = 0;
    unsigned bits_count = 0; /* of bits, those not yet in data */
    size_t n = 0;

    if (len % 4 == 1)
        return TOKEN_BAD_LENGTH;
    for (size_t i = 0; i < len; i++) {
        int const value = digit_value(text[i]);

        if (value < 0)
            return TOKEN_BAD_CHARACTER;
        bits = bits << 6 | (uint32_t)value;
        bits_count += 6;
        if (bits_count >= 8) {
            bits_count -= 8;
            data[n++] = (uint8_t)(bits >> bits_count);
        }
    }
    if ((bits & ((UINT32_C(1) << bits_count) - 1)) != 0)
        return TOKEN_NOT_CANONICAL;
    *data_len = n;
    return TOKEN_OK;
}

bool base64url_read(const char *text, size_t len, uint8_t *data, size_t *data_len)
{
    return text_read(text, len, data, data_len) == TOKEN_OK;
}

/* ---- writing ---- */

static size_t id_write(const char *id, uint8_t id_len, uint8_t *out)
{
    assert(id_len > 0 && id_len <= TOKEN_ID_BYTES_MAX);
    out[0] = id_len;
    memcpy(out + 1, id, id_len);
    return 1 + (size_t)id_len;
}

static size_t minutes_write(uint32_t minutes, uint8_t *out)
{
    out[0] = (uint8_t)(minutes >> 24);
    out[1] = (uint8_t)(minutes >> 16);
    out[2] = (uint8_t)(minutes >> 8);
    out[3] = (uint8_t)minutes;
    return 4;
}

static bool has_empty_window(const struct token_claims *claims)
{
    return claims->has_valid_from && claims->has_valid_until &&
           claims->valid_until_min <= claims->valid_from_min;
}

size_t token_body_write(const struct token_claims *claims, uint8_t body[TOKEN_BODY_BYTES_MAX])
{
    size_t len = 0;

    assert(!has_empty_window(claims));
    body[len++] = TOKEN_VERSION;
    body[len++] = claims->key_id;
    body[len++] = (uint8_t)((claims->has_valid_from ? FLAG_VALID_FROM : 0) |
                            (claims->has_valid_until ? FLAG_VALID_UNTIL : 0));
    body[len++] = claims->issue;
    len += id_write(claims->event_id, claims->event_id_len, body + len);
    len += id_write(claims->ticket_id, claims->ticket_id_len, body + len);
    if (claims->has_valid_from)
        len += minutes_write(claims->valid_from_min, body + len);
    if (claims->has_valid_until)
        len += minutes_write(claims->valid_until_min, body + len);
    assert(len >= TOKEN_BODY_BYTES_MIN && len <= TOKEN_BODY_BYTES_MAX);
    return len;
}

size_t token_text_write(const uint8_t *body, size_t body_len, const uint8_t mac[TOKEN_MAC_BYTES],
                        char text[TOKEN_CHARS_MAX + 1])
{
    uint8_t bytes[TOKEN_BYTES_MAX];

    assert(body_len >= TOKEN_BODY_BYTES_MIN && body_len <= TOKEN_BODY_BYTES_MAX);
    memcpy(bytes, body, body_len);
    memcpy(bytes + body_len, mac, TOKEN_MAC_BYTES);
    return base64url_write(bytes, body_len + TOKEN_MAC_BYTES, text);
}

/* ---- reading ---- */

struct reader {
    const uint8_t *data;
    size_t len;
    size_t at; /* 0..len: the next byte */
};

static bool has(const struct reader *reader, size_t bytes)
{
    return reader->len - reader->at >= bytes;
}

static enum token_verdict header_read(struct reader *reader, struct token_claims *claims)
{
    uint8_t flags;

    assert(has(reader, 1)); /* two characters at least */
    if (reader->data[reader->at++] != TOKEN_VERSION)
        return TOKEN_BAD_VERSION;
    if (!has(reader, 3))
        return TOKEN_TRUNCATED;
    claims->key_id = reader->data[reader->at++];
    flags = reader->data[reader->at++];
    claims->issue = reader->data[reader->at++];
    if ((flags & ~FLAGS_ALL) != 0)
        return TOKEN_BAD_FLAGS;
    claims->has_valid_from = (flags & FLAG_VALID_FROM) != 0;
    claims->has_valid_until = (flags & FLAG_VALID_UNTIL) != 0;
    return TOKEN_OK;
}

static enum token_verdict id_read(struct reader *reader, bool (*is_allowed)(struct text id),
                                  char id[TOKEN_ID_BYTES_MAX + 1], uint8_t *id_len)
{
    uint8_t len;

    if (!has(reader, 1))
        return TOKEN_TRUNCATED;
    len = reader->data[reader->at++];
    if (len == 0 || len > TOKEN_ID_BYTES_MAX)
        return TOKEN_BAD_ID;
    if (!has(reader, len))
        return TOKEN_TRUNCATED;
    memcpy(id, reader->data + reader->at, len);
    id[len] = '\0';
    *id_len = len;
    reader->at += len;
    return is_allowed((struct text){.data = id, .len = len}) ? TOKEN_OK : TOKEN_BAD_ID;
}

static enum token_verdict minutes_read(struct reader *reader, uint32_t *minutes)
{
    const uint8_t *in = reader->data + reader->at;

    if (!has(reader, 4))
        return TOKEN_TRUNCATED;
    *minutes = (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
    reader->at += 4;
    return TOKEN_OK;
}

static enum token_verdict body_read(struct reader *reader, struct token_claims *claims)
{
    enum token_verdict verdict = header_read(reader, claims);

    if (verdict == TOKEN_OK)
        verdict = id_read(reader, id_is_event, claims->event_id, &claims->event_id_len);
    if (verdict == TOKEN_OK)
        verdict = id_read(reader, id_is_ticket, claims->ticket_id, &claims->ticket_id_len);
    if (verdict == TOKEN_OK && claims->has_valid_from)
        verdict = minutes_read(reader, &claims->valid_from_min);
    if (verdict == TOKEN_OK && claims->has_valid_until)
        verdict = minutes_read(reader, &claims->valid_until_min);
    return verdict;
}

enum token_verdict token_read(const char *text, size_t len, struct token_parts *parts)
{
    uint8_t bytes[TOKEN_BYTES_MAX];
    struct reader reader = {.data = bytes};
    struct token_parts read = {0};
    enum token_verdict verdict;

    if (len == 0 || len > TOKEN_CHARS_MAX)
        return TOKEN_BAD_LENGTH;
    verdict = text_read(text, len, bytes, &reader.len);
    if (verdict == TOKEN_OK)
        verdict = body_read(&reader, &read.claims);
    if (verdict != TOKEN_OK)
        return verdict;
    if (!has(&reader, TOKEN_MAC_BYTES))
        return TOKEN_TRUNCATED;
    if (has(&reader, TOKEN_MAC_BYTES + 1))
        return TOKEN_TRAILING_BYTES;
    if (has_empty_window(&read.claims))
        return TOKEN_BAD_WINDOW;
    read.body_len = reader.at;
    memcpy(read.body, bytes, read.body_len);
    memcpy(read.mac, bytes + read.body_len, TOKEN_MAC_BYTES);
    *parts = read;
    return TOKEN_OK;
}
