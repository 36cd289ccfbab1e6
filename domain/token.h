/*
 * The token: what the QR symbol of a ticket holds. One base64url string (RFC 4648 section 5,
 * without padding) of
 *
 *     version(1 byte, 0x01) key_id(1) flags(1) issue(1) len(1) event_id len(1) ticket_id
 *     [valid_from(4)] [valid_until(4)] mac(16)
 *
 * with times in minutes since 2020-01-01T00:00Z, big endian. This module knows the layout and the
 * one canonical spelling; workers/sign makes and checks the MAC. Every other spelling is refused,
 * each for its reason.
 */
#ifndef TICKETPRESS_DOMAIN_TOKEN_H
#define TICKETPRESS_DOMAIN_TOKEN_H

#include "domain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKEN_VERSION = 1,
    TOKEN_MAC_BYTES = 16,
    TOKEN_ID_BYTES_MAX = 64,
    TOKEN_BODY_BYTES_MIN = 4 + 1 + 1 + 1 + 1,
    TOKEN_BODY_BYTES_MAX = 4 + 1 + TOKEN_ID_BYTES_MAX + 1 + TOKEN_ID_BYTES_MAX + 4 + 4,
    TOKEN_BYTES_MAX = TOKEN_BODY_BYTES_MAX + TOKEN_MAC_BYTES,
    TOKEN_CHARS_MAX = (TOKEN_BYTES_MAX * 8 + 5) / 6, /* 211 */
};

/* 2020-01-01T00:00Z in seconds since 1970: minute 0 of a token. */
#define TOKEN_EPOCH_S INT64_C(1577836800)

struct token_claims {
    uint8_t key_id;
    uint8_t issue;
    uint8_t event_id_len;  /* 1..TOKEN_ID_BYTES_MAX */
    uint8_t ticket_id_len; /* 1..TOKEN_ID_BYTES_MAX */
    char event_id[TOKEN_ID_BYTES_MAX + 1];
    char ticket_id[TOKEN_ID_BYTES_MAX + 1];
    bool has_valid_from, has_valid_until;
    uint32_t valid_from_min, valid_until_min;
};

/*
 * Why a token is refused. The text is judged first, then its bytes from left to right, then the
 * window, the key and the MAC: the first fault met is the reason.
 */
enum token_verdict {
    TOKEN_OK,
    TOKEN_BAD_LENGTH,     /* empty, too long, or a length that no base64url text has */
    TOKEN_BAD_CHARACTER,  /* outside A-Z a-z 0-9 - _ */
    TOKEN_NOT_CANONICAL,  /* an unused trailing bit is set */
    TOKEN_BAD_VERSION,    /* not TOKEN_VERSION */
    TOKEN_BAD_FLAGS,      /* a flag that has no meaning is set */
    TOKEN_BAD_ID,         /* an id that no batch may have (domain/id.h) */
    TOKEN_TRUNCATED,      /* ends before its fields and MAC do */
    TOKEN_TRAILING_BYTES, /* more bytes than its fields and MAC */
    TOKEN_BAD_WINDOW,     /* valid_until is not after valid_from */
    TOKEN_UNKNOWN_KEY,    /* no key of that id, or none that the caller may use */
    TOKEN_KEY_RETIRED,    /* the key's verify_until has passed */
    TOKEN_WRONG_EVENT,    /* the event key at hand is another event's */
    TOKEN_BAD_MAC,
    TOKEN_VERDICT_COUNT
};

/* The stable name of a verdict, such as "bad_mac"; "ok" for TOKEN_OK. */
const char *token_verdict_name(enum token_verdict verdict);

/*
 * Write the signed part of a token.
 *
 * In:      claims  ids within their lengths; of two times, valid_until is the later
 * Out:     body    TOKEN_BODY_BYTES_MIN..MAX bytes
 * Returns: the length of body
 */
size_t token_body_write(const struct token_claims *claims, uint8_t body[TOKEN_BODY_BYTES_MAX]);

/*
 * Spell body and MAC as text.
 *
 * Out:     text    zero-terminated
 * Returns: its length, at most TOKEN_CHARS_MAX
 */
size_t token_text_write(const uint8_t *body, size_t body_len, const uint8_t mac[TOKEN_MAC_BYTES],
                        char text[TOKEN_CHARS_MAX + 1]);

struct token_parts {
    struct token_claims claims;
    uint8_t body[TOKEN_BODY_BYTES_MAX];
    size_t body_len;
    uint8_t mac[TOKEN_MAC_BYTES];
};

/*
 * Take a token apart. Says nothing of who made it: the MAC is still to be checked.
 *
 * In:      text, len  any bytes
 * Out:     parts      filled when the verdict is TOKEN_OK
 * Returns: TOKEN_OK or one of the verdicts up to TOKEN_BAD_WINDOW
 * Threads: any
 */
MUST_USE enum token_verdict token_read(const char *text, size_t len, struct token_parts *parts);

/*
 * Plain base64url (RFC 4648 section 5) without padding, as the token uses it; also for keys in
 * files.
 *
 * base64url_write: text has room for (len * 8 + 5) / 6 + 1 bytes; returns the characters written.
 * base64url_read:  data has room for len * 6 / 8 bytes; false unless the text is canonical.
 */
size_t base64url_write(const uint8_t *data, size_t len, char *text);
MUST_USE bool base64url_read(const char *text, size_t len, uint8_t *data, size_t *data_len);

#endif
