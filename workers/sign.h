/*
 * Keys and signatures, all of OpenSSL's use in one place. A key ring holds the master secrets; an
 * event key is derived from one of them for one event (HKDF-SHA256, RFC 5869) and is all that a job
 * or a gate needs. Tokens carry the first 16 bytes of HMAC-SHA256 (RFC 2104).
 *
 * A ring is plain data behind a lock (struct key_store): readers copy one secret out, so that a
 * reload can swap the ring at any moment without a torn read and without counting.
 */
#ifndef TICKETPRESS_WORKERS_SIGN_H
#define TICKETPRESS_WORKERS_SIGN_H

#include "domain/arena.h"
#include "domain/status.h"
#include "domain/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_SECRET_BYTES_MIN = 32,
    KEY_SECRET_BYTES_MAX = 128,
    KEY_CLIENT_BYTES_MAX = 64,
    KEYS_MAX = 256, /* a key id is one byte */
    EVENT_KEY_BYTES = 32,
    SHA256_BYTES = 32,
};
#define KEY_VERIFY_FOR_EVER INT64_MAX

struct signing_key {
    uint8_t id;                            /* unique in its ring */
    char client[KEY_CLIENT_BYTES_MAX + 1]; /* whose it is, by the rule for event ids (domain/id.h);
                                              "*" where there is one tenant */
    uint8_t secret[KEY_SECRET_BYTES_MAX];
    size_t secret_len;      /* KEY_SECRET_BYTES_MIN..MAX */
    int64_t sign_from_s;    /* seconds since 1970: signs from this second on */
    int64_t verify_until_s; /* verifies before this second; KEY_VERIFY_FOR_EVER when open */
};

struct key_ring {
    struct signing_key *keys; /* keys_count of them */
    size_t keys_count;        /* 1..KEYS_MAX */
};

/* Zero the secrets and free. */
void key_ring_clear(struct key_ring *ring);

/*
 * The rules of a whole ring: 1..KEYS_MAX keys; ids unique; client names by their rule; secrets long
 * enough and no two alike; verify_until after sign_from; "*" stands alone, never beside named
 * clients (so that no client can sign with a key that all share).
 *
 * Errors:  ST_INVALID  err names the key id and the rule
 */
MUST_USE enum status key_ring_check(const struct key_ring *ring, struct error *err);

/*
 * Add a new random key of KEY_SECRET_BYTES_MIN, for signing from the minute of now_s on, with the
 * next key id (one above the largest, so that an id is not used again soon). An empty ring becomes
 * one of a single key.
 *
 * In:      client  whose key it is; "*" where there is one tenant
 * Errors:  ST_INVALID    no id is left, or a rule of key_ring_check
 *          ST_LIBRARY, ST_NO_MEMORY
 */
MUST_USE enum status key_ring_extend(struct key_ring *ring, const char *client, int64_t now_s,
                                     struct error *err);

/* One event's key: what a job keeps and a gate is given. Zero it with event_key_clear. */
struct event_key {
    uint8_t key_id;
    uint8_t bytes[EVENT_KEY_BYTES];
    char event_id[TOKEN_ID_BYTES_MAX + 1];
    int64_t verify_until_s;
};
void event_key_clear(struct event_key *key);

struct key_store;

/* A store with ring as its content; *ring is moved (left zeroed) on success. Errors: those of
 * key_ring_check, ST_NO_MEMORY. */
MUST_USE enum status key_store_new_move(struct key_ring *ring, struct key_store **store,
                                        struct error *err);
void key_store_free(struct key_store **store);

/*
 * Put another ring in the place of the present one; callers under way see either the old or the
 * new. On error the old ring stays and *ring is untouched. Errors: those of key_ring_check.
 * Threads: any.
 */
MUST_USE enum status key_store_swap_move(struct key_store *store, struct key_ring *ring,
                                         struct error *err);

/*
 * The event key that signs now: of the keys that client may use, the one with the newest sign_from
 * that has passed and whose verify_until has not. Ties: the larger key id.
 *
 * In:      client    NULL: the operator, who may use every key; else a key's client must equal it
 *                    or be "*"
 *          event_id  1..TOKEN_ID_BYTES_MAX bytes
 * Out:     key       left zeroed on error
 * Errors:  ST_NO_KEY  there is none
 *          ST_LIBRARY, ST_NO_MEMORY
 * Threads: any
 */
MUST_USE enum status key_store_event_key(struct key_store *store, const char *client,
                                         const char *event_id, int64_t now_s, struct event_key *key,
                                         struct error *err);

/*
 * As above for one key id, whether or not it still signs or verifies (for verification, and for
 * gates).
 *
 * Errors:  ST_NOT_FOUND  the client has no key of that id
 *          ST_LIBRARY, ST_NO_MEMORY
 */
MUST_USE enum status key_store_event_key_by_id(struct key_store *store, const char *client,
                                               uint8_t key_id, const char *event_id,
                                               struct event_key *key, struct error *err);

/* The ids of all keys whose verify_until has not passed, ascending. Returns their count. Threads:
 * any. */
size_t key_store_key_ids(struct key_store *store, const char *client, int64_t now_s,
                         uint8_t ids[KEYS_MAX]);

/*
 * A signer: one keyed HMAC context, kept keyed from one call to the next. One per worker.
 */
struct signer;

MUST_USE enum status signer_new(struct signer **signer, struct error *err);
void signer_free(struct signer **signer);

/*
 * Sign a ticket.
 *
 * In:      key       the signer is keyed anew only when this differs from the last call's
 *          claims    key_id and event_id must equal key's
 * Out:     text      the token, zero-terminated
 *          text_len  up to TOKEN_CHARS_MAX
 * Errors:  ST_LIBRARY, ST_NO_MEMORY
 * Threads: one signer, one thread
 */
MUST_USE enum status signer_token(struct signer *signer, const struct event_key *key,
                                  const struct token_claims *claims, char text[TOKEN_CHARS_MAX + 1],
                                  size_t *text_len, struct error *err);

/*
 * Judge a token under one event's key: canonical form, key id, event, MAC (compared in constant
 * time), and the key's verify_until against now_s.
 *
 * Out:     claims   filled when *verdict is TOKEN_OK
 * Errors:  ST_LIBRARY, ST_NO_MEMORY, with a *verdict other than TOKEN_OK; a token that is refused
 *          is no error
 */
MUST_USE enum status signer_verify(struct signer *signer, const struct event_key *key,
                                   const char *text, size_t len, int64_t now_s,
                                   enum token_verdict *verdict, struct token_claims *claims,
                                   struct error *err);

/* The same under a ring: the key is found by the token's key id among those that client may use. */
MUST_USE enum status signer_verify_by_store(struct signer *signer, struct key_store *store,
                                            const char *client, const char *text, size_t len,
                                            int64_t now_s, enum token_verdict *verdict,
                                            struct token_claims *claims, struct error *err);

/*
 * Make ready; everything below and above that computes needs it. Run before any thread is started;
 * once is enough. Fetches the algorithms and asks for known answers: HMAC-SHA256 on a context that
 * is keyed once and used twice (broken before OpenSSL 3.0.3), HKDF, SHA-256. Also keeps keys out of
 * core files (RLIMIT_CORE 0, PR_SET_DUMPABLE 0).
 *
 * Errors:  ST_LIBRARY    an answer is wrong or an algorithm missing: nothing may be signed
 *          ST_NO_MEMORY
 *          ST_IO         core files cannot be forbidden
 */
MUST_USE enum status sign_start(struct error *err);

/* Up to INT32_MAX random bytes for keys and ids, from a generator that the operating system seeds.
 * Errors: ST_LIBRARY. */
MUST_USE enum status sign_random(uint8_t *data, size_t len, struct error *err);

/* SHA-256 (FIPS 180-4). Errors: ST_LIBRARY. */
MUST_USE enum status sign_sha256(const void *data, size_t len, uint8_t digest[SHA256_BYTES],
                                 struct error *err);

/* Whether two secrets of len bytes are equal, in a time that tells nothing of where they differ. */
bool sign_equals(const void *a, const void *b, size_t len);

#endif
