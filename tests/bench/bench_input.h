/*
 * What floor and obvious read: the batch, as borrowed texts of a jansson tree, and the signing key.
 * Nothing is validated beyond what keeps the programs from crashing: they are yardsticks, and what
 * the product spends on its rules must show in the comparison.
 */
#ifndef TICKETPRESS_TESTS_BENCH_BENCH_INPUT_H
#define TICKETPRESS_TESTS_BENCH_BENCH_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_ID_BYTES_MAX = 64,
    BENCH_KEY_BYTES = 32,
    BENCH_MAC_BYTES = 16,
    BENCH_DATE_BYTES = 64,
    /* version, key id, flags, issue, two lengths, two ids, two times */
    BENCH_BODY_BYTES_MAX = 4 + 2 + 2 * BENCH_ID_BYTES_MAX + 8,
    BENCH_TOKEN_CHARS_MAX = ((BENCH_BODY_BYTES_MAX + BENCH_MAC_BYTES) * 8 + 5) / 6,
};

struct bench_ticket {
    const char *id;
    const char *order_id; /* this and those below: "" when absent */
    const char *holder;
    const char *type;
    const char *section, *row, *number;
    const char *gate;
    const char *currency;    /* "" when there is no price */
    long long price_amount;  /* minor units */
    uint8_t issue;           /* 0..255 */
    uint32_t valid_from_min; /* since 2020-01-01T00:00Z; 0 when absent */
    uint32_t valid_until_min;
};

struct bench_batch {
    const char *event_id;
    const char *event_name;
    const char *venue;
    char date[BENCH_DATE_BYTES]; /* such as "Sunday 21 March 2027, 20:30" */
    struct bench_ticket *tickets;
    size_t tickets_count; /* 1.. */
    void *tree;           /* owns the texts */
};

/* Parse a batch; ends the process when it is none. */
void bench_batch_read(const char *json, size_t len, struct bench_batch *batch);

void bench_batch_clear(struct bench_batch *batch);

/* A master secret of a key ring file. */
struct bench_key {
    uint8_t id;
    uint8_t secret[128];
    size_t secret_len;
};

/* The key that signs now: the one with the newest sign_from that has passed. */
void bench_key_read(const char *path, struct bench_key *key);

/* HKDF-SHA256 of the secret for one event. */
void bench_event_key(const struct bench_key *key, const char *event_id,
                     uint8_t event_key[BENCH_KEY_BYTES]);

/* The signed part of a ticket's token. Returns its length. */
size_t bench_token_body(uint8_t key_id, const char *event_id, const struct bench_ticket *ticket,
                        uint8_t body[BENCH_BODY_BYTES_MAX]);

/* base64url without padding, zero-terminated. Returns the count of characters. */
size_t bench_base64url(const uint8_t *data, size_t len, char text[BENCH_TOKEN_CHARS_MAX + 1]);

/*
 * Take one character off UTF-8 text and return its WinAnsi (code page 1252) byte, or '?' where
 * it has none. *text must not be at its end.
 */
uint8_t bench_winansi_next(const char **text);

#endif
