#include "tests/bench/bench_input.h"

#include "tests/bench/bench_run.h"

#include <jansson.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>
#include <time.h>

enum { CURRENCY_BYTES_MAX = 3 }; /* ISO 4217 */
#define TOKEN_EPOCH_S 1577836800 /* 2020-01-01T00:00Z */

/* The number of two digits, such as the hours of "+01:00". */
static int two_digits(const char *text)
{
    bool is_number = text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9';

    bench_require(is_number, "the offset of a time");
    return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Seconds since 1970 of an RFC 3339 time; *local, when asked for, is the time as it is written. */
static long long time_parse(const char *text, struct tm *local)
{
    struct tm written = {0};
    long long offset_minutes = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &written);

    bench_require(rest != NULL, "a time of the batch or key ring");
    if (*rest == '+' || *rest == '-') {
        offset_minutes = two_digits(rest + 1) * 60;
        bench_require(rest[3] == ':', "the offset of a time");
        offset_minutes += two_digits(rest + 4);
        if (*rest == '-')
            offset_minutes = -offset_minutes;
    }
    long long written_s = timegm(&written); /* also fills in the day of the week */
    if (local != NULL)
        *local = written;
    return written_s - offset_minutes * 60;
}

static uint32_t minutes_from(const json_t *ticket, const char *name)
{
    const char *text = json_string_value(json_object_get(ticket, name));

    return text != NULL ? (uint32_t)((time_parse(text, NULL) - TOKEN_EPOCH_S) / 60) : 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

static void ticket_read(const json_t *value, struct bench_ticket *ticket)
{
    const json_t *seat = json_object_get(value, "seat");
    const json_t *price = json_object_get(value, "price");

    *ticket = (struct bench_ticket){
        .id = text_of(value, "id"),
        .order_id = text_of(value, "order_id"),
        .holder = text_of(value, "holder"),
        .type = text_of(value, "type"),
        .section = text_of(seat, "section"),
        .row = text_of(seat, "row"),
        .number = text_of(seat, "number"),
        .gate = text_of(value, "gate"),
        .currency = text_of(price, "currency"),
        .price_amount = json_integer_value(json_object_get(price, "amount")),
        .issue = (uint8_t)json_integer_value(json_object_get(value, "issue")),
        .valid_from_min = minutes_from(value, "valid_from"),
        .valid_until_min = minutes_from(value, "valid_until"),
    };
    size_t id_len = strlen(ticket->id);
    bench_require(id_len >= 1 && id_len <= BENCH_ID_BYTES_MAX, "a ticket's id");
    bench_require(strlen(ticket->currency) <= CURRENCY_BYTES_MAX, "a ticket's currency");
}

void bench_batch_read(const char *json, size_t len, struct bench_batch *batch)
{
    json_t *tree = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *event = json_object_get(tree, "event");
    const json_t *tickets = json_object_get(tree, "tickets");
    struct tm starts_at;

    bench_require(event != NULL && json_array_size(tickets) > 0, "the batch");
    *batch = (struct bench_batch){
        .event_id = text_of(event, "id"),
        .event_name = text_of(event, "name"),
        .venue = text_of(event, "venue"),
        .tickets_count = json_array_size(tickets),
        .tree = tree,
    };
    size_t event_id_len = strlen(batch->event_id);
    bench_require(event_id_len >= 1 && event_id_len <= BENCH_ID_BYTES_MAX, "the event's id");
    time_parse(text_of(event, "starts_at"), &starts_at);
    bench_require(strftime(batch->date, sizeof batch->date, "%A %e %B %Y, %H:%M", &starts_at) > 0,
                  "a date");
    batch->tickets = calloc(batch->tickets_count, sizeof *batch->tickets);
    bench_require(batch->tickets != NULL, "memory");
    for (size_t i = 0; i < batch->tickets_count; i++)
        ticket_read(json_array_get(tickets, i), &batch->tickets[i]);
}

void bench_batch_clear(struct bench_batch *batch)
{
    json_t *tree = batch->tree;

    free(batch->tickets);
    json_decref(tree);
    *batch = (struct bench_batch){0};
}

static const char base64url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void secret_decode(const char *text, struct bench_key *key)
{
    uint32_t bits = 0;
    unsigned bits_count = 0;

    key->secret_len = 0;
    for (; *text != '\0'; text++) {
        const char *digit = strchr(base64url_digits, *text);
        bench_require(digit != NULL, "base64url of a secret");
        bits = bits << 6 | (uint32_t)(digit - base64url_digits);
        bits_count += 6;
        if (bits_count >= 8) {
            bench_require(key->secret_len < sizeof key->secret, "the length of a secret");
            bits_count -= 8;
            key->secret[key->secret_len++] = (uint8_t)(bits >> bits_count);
        }
    }
    bench_require(key->secret_len >= 32, "the length of a secret");
}

void bench_key_read(const char *path, struct bench_key *key)
{
    json_t *ring = json_load_file(path, 0, NULL);
    const json_t *keys = json_object_get(ring, "keys"), *newest = NULL;
    long long newest_s = LLONG_MIN, now_s = time(NULL);

    for (size_t i = 0; i < json_array_size(keys); i++) {
        const json_t *candidate = json_array_get(keys, i);
        long long sign_from_s = time_parse(text_of(candidate, "sign_from"), NULL);
        if (sign_from_s <= now_s && sign_from_s >= newest_s) {
            newest = candidate;
            newest_s = sign_from_s;
        }
    }
    bench_require(newest != NULL, "finding a key that signs");
    key->id = (uint8_t)json_integer_value(json_object_get(newest, "id"));
    secret_decode(text_of(newest, "secret"), key);
    json_decref(ring);
}

void bench_event_key(const struct bench_key *key, const char *event_id,
                     uint8_t event_key[BENCH_KEY_BYTES])
{
    char digest[] = "SHA256", info[sizeof "ticketpress/v1/event/" + BENCH_ID_BYTES_MAX];
    uint8_t secret[sizeof key->secret];
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    int info_len = snprintf(info, sizeof info, "ticketpress/v1/event/%s", event_id);

    memcpy(secret, key->secret, sizeof secret);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret, key->secret_len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, (size_t)info_len),
        OSSL_PARAM_construct_end(),
    };
    bench_require(EVP_KDF_derive(context, event_key, BENCH_KEY_BYTES, params) == 1, "HKDF");
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

static uint8_t *id_put(uint8_t *end, const char *id)
{
    size_t len = strlen(id);

    *end++ = (uint8_t)len;
    return mempcpy(end, id, len);
}

static uint8_t *minutes_put(uint8_t *end, uint32_t minutes)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *end++ = (uint8_t)(minutes >> shift);
    return end;
}

size_t bench_token_body(uint8_t key_id, const char *event_id, const struct bench_ticket *ticket,
                        uint8_t body[BENCH_BODY_BYTES_MAX])
{
    uint8_t *end = body;
    int flags = (ticket->valid_from_min != 0 ? 1 : 0) | (ticket->valid_until_min != 0 ? 2 : 0);

    *end++ = 1;
    *end++ = key_id;
    *end++ = (uint8_t)flags;
    *end++ = ticket->issue;
    end = id_put(end, event_id);
    end = id_put(end, ticket->id);
    if (ticket->valid_from_min != 0)
        end = minutes_put(end, ticket->valid_from_min);
    if (ticket->valid_until_min != 0)
        end = minutes_put(end, ticket->valid_until_min);
    return (size_t)(end - body);
}

size_t bench_base64url(const uint8_t *data, size_t len, char text[BENCH_TOKEN_CHARS_MAX + 1])
{
    char *end = text;
    size_t i = 0;

    for (; i + 3 <= len; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
        *end++ = base64url_digits[bits >> 18];
        *end++ = base64url_digits[bits >> 12 & 63];
        *end++ = base64url_digits[bits >> 6 & 63];
        *end++ = base64url_digits[bits & 63];
    }
    if (i < len) {
        uint32_t bits = (uint32_t)data[i] << 16 | (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0);
        *end++ = base64url_digits[bits >> 18];
        *end++ = base64url_digits[bits >> 12 & 63];
        if (i + 1 < len)
            *end++ = base64url_digits[bits >> 6 & 63];
    }
    *end = '\0';
    return (size_t)(end - text);
}

/* The code points of bytes 0x80 to 0x9F; 0 where code page 1252 has none. */
static const uint16_t winansi_high[32] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178,
};

static uint32_t code_point_next(const char **text)
{
    uint8_t lead = (uint8_t) * (*text)++;

    if (lead < 0x80)
        return lead;
    uint32_t code_point = lead < 0xE0 ? lead & 0x1F : lead < 0xF0 ? lead & 0x0F : lead & 0x07;
    while (((uint8_t) * *text & 0xC0) == 0x80)
        code_point = code_point << 6 | ((uint8_t) * (*text)++ & 0x3F);
    return code_point;
}

uint8_t bench_winansi_next(const char **text)
{
    uint32_t code_point = code_point_next(text);

    if (code_point < 0x80 || (code_point >= 0xA0 && code_point <= 0xFF))
        return (uint8_t)code_point;
    for (size_t i = 0; i < sizeof winansi_high / sizeof *winansi_high; i++) {
        if (winansi_high[i] == code_point)
            return (uint8_t)(0x80 + i);
    }
    return '?';
}
