#include "workers/sign.h"

#include "domain/id.h"
#include "domain/must.h"

#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Part of the contract with every gate: a change here makes all printed tickets worthless. */
#define EVENT_KEY_INFO "ticketpress/v1/event/"

_Static_assert((int)TOKEN_MAC_BYTES <= (int)SHA256_BYTES, "a token carries the head of an HMAC");

/* The algorithms, fetched once by sign_start: a fetch costs more than the signature itself and
 * serialises threads. Read only from then on; they live as long as the process. */
static struct {
    EVP_MAC *hmac;
    EVP_KDF *hkdf;
    EVP_MD *sha256;
} algorithms;

/* What OpenSSL says of its latest failure in this thread. */
static enum status library_error(const char *call, struct error *err)
{
    unsigned long const code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    enum status st = ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ? ST_NO_MEMORY : ST_LIBRARY;

    error_set(err, st, "OpenSSL: %s: %s", call, reason != NULL ? reason : "no reason given");
    ERR_clear_error();
    return st;
}

/* ---- primitives ---- */

struct span {
    const void *data; /* NULL when len is 0 */
    size_t len;
};

/* OpenSSL's parameters have no const, though it only reads these. */
static OSSL_PARAM octets(const char *name, struct span span)
{
    union {
        const void *in;
        void *out;
    } data = {.in = span.data};

    return OSSL_PARAM_construct_octet_string(name, data.out, span.len);
}

static OSSL_PARAM digest_sha256(const char *name)
{
    static char sha256[] = "SHA256";

    return OSSL_PARAM_construct_utf8_string(name, sha256, 0);
}

struct hkdf_input {
    struct span ikm, salt, info;
};

static enum status hkdf_sha256(const struct hkdf_input *input, uint8_t *out, size_t out_len,
                               struct error *err)
{
    EVP_KDF_CTX *ctx;
    OSSL_PARAM params[5], *p = params;
    enum status st = ST_OK;

    assert(algorithms.hkdf != NULL);
    *p++ = digest_sha256(OSSL_KDF_PARAM_DIGEST);
    *p++ = octets(OSSL_KDF_PARAM_KEY, input->ikm);
    *p++ = octets(OSSL_KDF_PARAM_INFO, input->info);
    if (input->salt.len > 0)
        *p++ = octets(OSSL_KDF_PARAM_SALT, input->salt);
    *p = OSSL_PARAM_construct_end();
    ctx = EVP_KDF_CTX_new(algorithms.hkdf);
    if (ctx == NULL || EVP_KDF_derive(ctx, out, out_len, params) != 1)
        st = library_error("EVP_KDF_derive", err);
    EVP_KDF_CTX_free(ctx);
    return st;
}

enum status sign_random(uint8_t *data, size_t len, struct error *err)
{
    assert(len <= INT32_MAX);
    if (RAND_priv_bytes(data, (int)len) != 1)
        return library_error("RAND_priv_bytes", err);
    return ST_OK;
}

enum status sign_sha256(const void *data, size_t len, uint8_t digest[SHA256_BYTES],
                        struct error *err)
{
    unsigned digest_len = 0;

    assert(algorithms.sha256 != NULL);
    if (EVP_Digest(data, len, digest, &digest_len, algorithms.sha256, NULL) != 1)
        return library_error("EVP_Digest", err);
    assert(digest_len == SHA256_BYTES);
    return ST_OK;
}

/* ---- key rings ---- */

void key_ring_clear(struct key_ring *ring)
{
    if (ring->keys != NULL)
        OPENSSL_cleanse(ring->keys, ring->keys_count * sizeof *ring->keys);
    free(ring->keys);
    *ring = (struct key_ring){0};
}

/* One above the largest, so that the ids of removed keys are not used again while others are left;
 * else the smallest that is free; -1: there is none. */
static int next_key_id(const struct key_ring *ring)
{
    bool is_used[KEYS_MAX] = {false};
    int largest = 0;

    for (size_t i = 0; i < ring->keys_count; i++) {
        is_used[ring->keys[i].id] = true;
        if (ring->keys[i].id > largest)
            largest = ring->keys[i].id;
    }
    if (largest + 1 < KEYS_MAX)
        return largest + 1;
    for (int id = 0; id < KEYS_MAX; id++)
        if (!is_used[id])
            return id;
    return -1;
}

static enum status key_make(const char *client, int id, int64_t now_s, struct signing_key *key,
                            struct error *err)
{
    if (strlen(client) > KEY_CLIENT_BYTES_MAX)
        return error_set(err, ST_INVALID, "client: longer than %d bytes", KEY_CLIENT_BYTES_MAX);
    *key = (struct signing_key){.id = (uint8_t)id,
                                .secret_len = KEY_SECRET_BYTES_MIN,
                                .sign_from_s = now_s - now_s % 60,
                                .verify_until_s = KEY_VERIFY_FOR_EVER};
    memcpy(key->client, client, strlen(client));
    return sign_random(key->secret, key->secret_len, err);
}

enum status key_ring_extend(struct key_ring *ring, const char *client, int64_t now_s,
                            struct error *err)
{
    int const id = next_key_id(ring);
    struct key_ring extended = {0};
    enum status st;

    if (id < 0)
        return error_set(err, ST_INVALID, "the key ring is full: %d keys", KEYS_MAX);
    extended.keys = calloc(ring->keys_count + 1, sizeof *extended.keys);
    if (extended.keys == NULL)
        return error_set(err, ST_NO_MEMORY, "a key ring");
    extended.keys_count = ring->keys_count + 1;
    if (ring->keys_count > 0)
        memcpy(extended.keys, ring->keys, ring->keys_count * sizeof *ring->keys);
    key_ring_clear(ring);
    *ring = extended;
    st = key_make(client, id, now_s, &ring->keys[ring->keys_count - 1], err);
    return st == ST_OK ? key_ring_check(ring, err) : st;
}

void event_key_clear(struct event_key *key)
{
    OPENSSL_cleanse(key, sizeof *key);
}

static bool is_for_all(const struct signing_key *key)
{
    return strcmp(key->client, "*") == 0;
}

static bool is_client_name(const char client[KEY_CLIENT_BYTES_MAX + 1])
{
    size_t const len = strnlen(client, KEY_CLIENT_BYTES_MAX + 1);

    return id_is_event((struct text){.data = client, .len = len});
}

static enum status key_check(const struct signing_key *key, struct error *err)
{
    if (!is_for_all(key) && !is_client_name(key->client))
        return error_set(err, ST_INVALID,
                         "key %d: client is neither \"*\" nor 1 to %d of A-Z a-z 0-9 . _ : -",
                         key->id, KEY_CLIENT_BYTES_MAX);
    if (key->secret_len < KEY_SECRET_BYTES_MIN || key->secret_len > KEY_SECRET_BYTES_MAX)
        return error_set(err, ST_INVALID, "key %d: the secret has %zu bytes, not %d to %d", key->id,
                         key->secret_len, KEY_SECRET_BYTES_MIN, KEY_SECRET_BYTES_MAX);
    if (key->verify_until_s <= key->sign_from_s)
        return error_set(err, ST_INVALID, "key %d: verify_until is not after sign_from", key->id);
    return ST_OK;
}

/* A shared secret would let the gates of one key's tickets make the other's. */
static bool has_same_secret(const struct signing_key *a, const struct signing_key *b)
{
    return a->secret_len == b->secret_len &&
           CRYPTO_memcmp(a->secret, b->secret, a->secret_len) == 0;
}

static enum status pair_check(const struct signing_key *a, const struct signing_key *b,
                              struct error *err)
{
    if (a->id == b->id)
        return error_set(err, ST_INVALID, "key %d: there are two of this id", b->id);
    if (is_for_all(a) != is_for_all(b))
        return error_set(err, ST_INVALID,
                         "key %d: client \"*\" and named clients in one ring (see key %d)", b->id,
                         a->id);
    if (has_same_secret(a, b))
        return error_set(err, ST_INVALID, "key %d: has the same secret as key %d", b->id, a->id);
    return ST_OK;
}

enum status key_ring_check(const struct key_ring *ring, struct error *err)
{
    enum status st = ST_OK;

    if (ring->keys_count < 1 || ring->keys_count > KEYS_MAX)
        return error_set(err, ST_INVALID, "a key ring has 1 to %d keys, not %zu", KEYS_MAX,
                         ring->keys_count);
    for (size_t i = 0; st == ST_OK && i < ring->keys_count; i++) {
        st = key_check(&ring->keys[i], err);
        for (size_t j = 0; st == ST_OK && j < i; j++)
            st = pair_check(&ring->keys[j], &ring->keys[i], err);
    }
    return st;
}

/* ---- the store ---- */

struct key_store {
    pthread_mutex_t lock;
    /* Guarded by lock: */
    struct key_ring ring;
};

enum status key_store_new_move(struct key_ring *ring, struct key_store **store, struct error *err)
{
    enum status st = key_ring_check(ring, err);
    struct key_store *made;

    *store = NULL;
    if (st != ST_OK)
        return st;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the key store");
    MUST(pthread_mutex_init(&made->lock, NULL));
    made->ring = *ring;
    *ring = (struct key_ring){0};
    *store = made;
    return ST_OK;
}

void key_store_free(struct key_store **store)
{
    if (*store == NULL)
        return;
    key_ring_clear(&(*store)->ring);
    MUST(pthread_mutex_destroy(&(*store)->lock));
    free(*store);
    *store = NULL;
}

enum status key_store_swap_move(struct key_store *store, struct key_ring *ring, struct error *err)
{
    enum status st = key_ring_check(ring, err);
    struct key_ring old;

    if (st != ST_OK)
        return st;
    MUST(pthread_mutex_lock(&store->lock));
    old = store->ring;
    store->ring = *ring;
    MUST(pthread_mutex_unlock(&store->lock));
    *ring = (struct key_ring){0};
    key_ring_clear(&old);
    return ST_OK;
}

static bool may_use(const char *client, const struct signing_key *key)
{
    return client == NULL || is_for_all(key) || strcmp(client, key->client) == 0;
}

static bool signs_at(const struct signing_key *key, int64_t now_s)
{
    return key->sign_from_s <= now_s && now_s < key->verify_until_s;
}

static bool is_newer(const struct signing_key *a, const struct signing_key *b)
{
    if (a->sign_from_s != b->sign_from_s)
        return a->sign_from_s > b->sign_from_s;
    return a->id > b->id;
}

static const struct signing_key *newest_locked(const struct key_store *store, const char *client,
                                               int64_t now_s)
{
    const struct signing_key *newest = NULL;

    for (size_t i = 0; i < store->ring.keys_count; i++) {
        const struct signing_key *key = &store->ring.keys[i];

        if (may_use(client, key) && signs_at(key, now_s) &&
            (newest == NULL || is_newer(key, newest)))
            newest = key;
    }
    return newest;
}

static const struct signing_key *by_id_locked(const struct key_store *store, const char *client,
                                              uint8_t key_id)
{
    for (size_t i = 0; i < store->ring.keys_count; i++)
        if (store->ring.keys[i].id == key_id && may_use(client, &store->ring.keys[i]))
            return &store->ring.keys[i];
    return NULL;
}

/* On error *out is left zeroed, with no part of a key in it. */
static enum status event_key_derive(const struct signing_key *key, const char *event_id,
                                    struct event_key *out, struct error *err)
{
    char info[sizeof EVENT_KEY_INFO + TOKEN_ID_BYTES_MAX] = EVENT_KEY_INFO;
    size_t const event_id_len = strnlen(event_id, TOKEN_ID_BYTES_MAX + 1);
    struct hkdf_input const input = {
        .ikm = {key->secret, key->secret_len},
        .info = {info, sizeof EVENT_KEY_INFO - 1 + event_id_len},
    };
    enum status st;

    assert(event_id_len > 0 && event_id_len <= TOKEN_ID_BYTES_MAX);
    memcpy(info + sizeof EVENT_KEY_INFO - 1, event_id, event_id_len);
    *out = (struct event_key){.key_id = key->id, .verify_until_s = key->verify_until_s};
    memcpy(out->event_id, event_id, event_id_len);
    st = hkdf_sha256(&input, out->bytes, sizeof out->bytes, err);
    if (st != ST_OK)
        event_key_clear(out);
    return st;
}

static bool newest_copy(struct key_store *store, const char *client, int64_t now_s,
                        struct signing_key *copy)
{
    const struct signing_key *found;

    MUST(pthread_mutex_lock(&store->lock));
    found = newest_locked(store, client, now_s);
    if (found != NULL)
        *copy = *found;
    MUST(pthread_mutex_unlock(&store->lock));
    return found != NULL;
}

static bool by_id_copy(struct key_store *store, const char *client, uint8_t key_id,
                       struct signing_key *copy)
{
    const struct signing_key *found;

    MUST(pthread_mutex_lock(&store->lock));
    found = by_id_locked(store, client, key_id);
    if (found != NULL)
        *copy = *found;
    MUST(pthread_mutex_unlock(&store->lock));
    return found != NULL;
}

/* Derivation happens outside the lock, from a copy of the secret that is wiped at once. */
enum status key_store_event_key(struct key_store *store, const char *client, const char *event_id,
                                int64_t now_s, struct event_key *key, struct error *err)
{
    struct signing_key copy;
    enum status st;

    *key = (struct event_key){0};
    if (!newest_copy(store, client, now_s, &copy))
        return error_set(err, ST_NO_KEY, "no signing key of this client is in force");
    st = event_key_derive(&copy, event_id, key, err);
    OPENSSL_cleanse(&copy, sizeof copy);
    return st;
}

enum status key_store_event_key_by_id(struct key_store *store, const char *client, uint8_t key_id,
                                      const char *event_id, struct event_key *key,
                                      struct error *err)
{
    struct signing_key copy;
    enum status st;

    *key = (struct event_key){0};
    if (!by_id_copy(store, client, key_id, &copy))
        return error_set(err, ST_NOT_FOUND, "this client has no key %d", key_id);
    st = event_key_derive(&copy, event_id, key, err);
    OPENSSL_cleanse(&copy, sizeof copy);
    return st;
}

size_t key_store_key_ids(struct key_store *store, const char *client, int64_t now_s,
                         uint8_t ids[KEYS_MAX])
{
    bool is_listed[KEYS_MAX] = {false};
    size_t count = 0;

    MUST(pthread_mutex_lock(&store->lock));
    for (size_t i = 0; i < store->ring.keys_count; i++) {
        const struct signing_key *key = &store->ring.keys[i];

        is_listed[key->id] = may_use(client, key) && now_s < key->verify_until_s;
    }
    MUST(pthread_mutex_unlock(&store->lock));
    for (int id = 0; id < KEYS_MAX; id++)
        if (is_listed[id])
            ids[count++] = (uint8_t)id;
    return count;
}

/* ---- the signer ---- */

struct signer {
    EVP_MAC_CTX *ctx;
    bool is_keyed;
    uint8_t key[EVENT_KEY_BYTES]; /* what ctx is keyed with */
};

enum status signer_new(struct signer **signer, struct error *err)
{
    OSSL_PARAM const params[] = {digest_sha256(OSSL_MAC_PARAM_DIGEST), OSSL_PARAM_construct_end()};
    struct signer *made = calloc(1, sizeof *made);
    enum status st = ST_OK;

    assert(algorithms.hmac != NULL);
    *signer = NULL;
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a signer");
    made->ctx = EVP_MAC_CTX_new(algorithms.hmac);
    if (made->ctx == NULL || EVP_MAC_CTX_set_params(made->ctx, params) != 1)
        st = library_error("EVP_MAC_CTX_new", err);
    if (st == ST_OK)
        *signer = made;
    else
        signer_free(&made);
    return st;
}

void signer_free(struct signer **signer)
{
    if (*signer == NULL)
        return;
    EVP_MAC_CTX_free((*signer)->ctx);
    OPENSSL_cleanse(*signer, sizeof **signer);
    free(*signer);
    *signer = NULL;
}

/* Ready for a new message. Keying costs two hash blocks, which a batch under one key saves. */
static enum status signer_begin(struct signer *signer, const uint8_t key[EVENT_KEY_BYTES],
                                struct error *err)
{
    bool const is_same =
        signer->is_keyed && CRYPTO_memcmp(signer->key, key, sizeof signer->key) == 0;
    int const is_done = is_same ? EVP_MAC_init(signer->ctx, NULL, 0, NULL)
                                : EVP_MAC_init(signer->ctx, key, EVENT_KEY_BYTES, NULL);

    signer->is_keyed = is_done == 1;
    if (!signer->is_keyed)
        return library_error("EVP_MAC_init", err);
    if (!is_same)
        memcpy(signer->key, key, sizeof signer->key);
    return ST_OK;
}

static enum status signer_mac(struct signer *signer, const uint8_t key[EVENT_KEY_BYTES],
                              const void *data, size_t len, uint8_t mac[SHA256_BYTES],
                              struct error *err)
{
    enum status st = signer_begin(signer, key, err);
    size_t mac_len = 0;

    if (st != ST_OK)
        return st;
    if (EVP_MAC_update(signer->ctx, data, len) != 1 ||
        EVP_MAC_final(signer->ctx, mac, &mac_len, SHA256_BYTES) != 1) {
        signer->is_keyed = false;
        return library_error("EVP_MAC_final", err);
    }
    assert(mac_len == SHA256_BYTES);
    return ST_OK;
}

enum status signer_token(struct signer *signer, const struct event_key *key,
                         const struct token_claims *claims, char text[TOKEN_CHARS_MAX + 1],
                         size_t *text_len, struct error *err)
{
    uint8_t body[TOKEN_BODY_BYTES_MAX];
    uint8_t mac[SHA256_BYTES];
    size_t body_len;
    enum status st;

    assert(claims->key_id == key->key_id);
    assert(strcmp(claims->event_id, key->event_id) == 0);
    body_len = token_body_write(claims, body);
    st = signer_mac(signer, key->bytes, body, body_len, mac, err);
    if (st == ST_OK)
        *text_len = token_text_write(body, body_len, mac, text);
    return st;
}

/* A key that parts may be judged by, whatever its MAC. */
static enum token_verdict key_verdict(const struct event_key *key, const struct token_parts *parts,
                                      int64_t now_s)
{
    if (parts->claims.key_id != key->key_id)
        return TOKEN_UNKNOWN_KEY;
    if (now_s >= key->verify_until_s)
        return TOKEN_KEY_RETIRED;
    if (strcmp(parts->claims.event_id, key->event_id) != 0)
        return TOKEN_WRONG_EVENT;
    return TOKEN_OK;
}

static enum status parts_verify(struct signer *signer, const struct event_key *key,
                                const struct token_parts *parts, int64_t now_s,
                                enum token_verdict *verdict, struct error *err)
{
    uint8_t mac[SHA256_BYTES];
    enum status st;

    *verdict = key_verdict(key, parts, now_s);
    if (*verdict != TOKEN_OK)
        return ST_OK;
    st = signer_mac(signer, key->bytes, parts->body, parts->body_len, mac, err);
    if (st != ST_OK || CRYPTO_memcmp(mac, parts->mac, TOKEN_MAC_BYTES) != 0)
        *verdict = TOKEN_BAD_MAC;
    OPENSSL_cleanse(mac, sizeof mac); /* after a forgery this is the MAC it lacked */
    return st;
}

enum status signer_verify(struct signer *signer, const struct event_key *key, const char *text,
                          size_t len, int64_t now_s, enum token_verdict *verdict,
                          struct token_claims *claims, struct error *err)
{
    struct token_parts parts;
    enum status st;

    *verdict = token_read(text, len, &parts);
    if (*verdict != TOKEN_OK)
        return ST_OK;
    st = parts_verify(signer, key, &parts, now_s, verdict, err);
    if (*verdict == TOKEN_OK)
        *claims = parts.claims;
    return st;
}

enum status signer_verify_by_store(struct signer *signer, struct key_store *store,
                                   const char *client, const char *text, size_t len, int64_t now_s,
                                   enum token_verdict *verdict, struct token_claims *claims,
                                   struct error *err)
{
    struct token_parts parts;
    struct signing_key copy;
    struct event_key key;
    enum status st;

    *verdict = token_read(text, len, &parts);
    if (*verdict != TOKEN_OK)
        return ST_OK;
    *verdict = TOKEN_UNKNOWN_KEY;
    if (!by_id_copy(store, client, parts.claims.key_id, &copy))
        return ST_OK;
    st = event_key_derive(&copy, parts.claims.event_id, &key, err);
    OPENSSL_cleanse(&copy, sizeof copy);
    if (st == ST_OK)
        st = parts_verify(signer, &key, &parts, now_s, verdict, err);
    event_key_clear(&key);
    if (*verdict == TOKEN_OK)
        *claims = parts.claims;
    return st;
}

/* ---- the start ---- */

static bool is_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

/* RFC 4231, test cases 1 and 2, with the keys filled up with zeros to the size of an event key,
 * which HMAC does itself with any key below a block. */
static const struct hmac_answer {
    uint8_t key[EVENT_KEY_BYTES];
    const char *data;
    uint8_t mac[SHA256_BYTES];
} HMAC_ANSWERS[] = {
    {.key = {0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
             0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b},
     .data = "Hi There",
     .mac = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf,
             0xce, 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83,
             0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7}},
    {.key = {'J', 'e', 'f', 'e'},
     .data = "what do ya want for nothing?",
     .mac = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
             0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
             0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43}},
};

/* Each answer twice in a row: the second comes from a context that keeps its key. */
static enum status hmac_check(struct error *err)
{
    struct signer *signer = NULL;
    enum status st = signer_new(&signer, err);

    for (size_t i = 0; st == ST_OK && i < 2 * sizeof HMAC_ANSWERS / sizeof *HMAC_ANSWERS; i++) {
        const struct hmac_answer *answer = &HMAC_ANSWERS[i / 2];
        uint8_t mac[SHA256_BYTES];

        st = signer_mac(signer, answer->key, answer->data, strlen(answer->data), mac, err);
        if (st == ST_OK && !is_equal(mac, answer->mac, sizeof mac))
            st = error_set(err, ST_LIBRARY, "HMAC-SHA256 gives a wrong answer");
    }
    signer_free(&signer);
    return st;
}

enum { HKDF_ANSWER_BYTES = 42 };

/* RFC 5869, test cases 1 and 3. */
static enum status hkdf_check(struct error *err)
{
    static const uint8_t ikm[] = {0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
                                  0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b};
    static const uint8_t salt[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                   0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c};
    static const uint8_t info[] = {0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9};
    static const struct {
        struct hkdf_input input;
        uint8_t okm[HKDF_ANSWER_BYTES];
    } answers[] = {
        {.input = {.ikm = {ikm, sizeof ikm},
                   .salt = {salt, sizeof salt},
                   .info = {info, sizeof info}},
         .okm = {0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f,
                 0x64, 0xd0, 0x36, 0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a,
                 0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf, 0x34,
                 0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65}},
        {.input = {.ikm = {ikm, sizeof ikm}},
         .okm = {0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f, 0x71, 0x5f, 0x80,
                 0x2a, 0x06, 0x3c, 0x5a, 0x31, 0xb8, 0xa1, 0x1f, 0x5c, 0x5e, 0xe1,
                 0x87, 0x9e, 0xc3, 0x45, 0x4e, 0x5f, 0x3c, 0x73, 0x8d, 0x2d, 0x9d,
                 0x20, 0x13, 0x95, 0xfa, 0xa4, 0xb6, 0x1a, 0x96, 0xc8}},
    };
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof answers / sizeof *answers; i++) {
        uint8_t okm[HKDF_ANSWER_BYTES];

        st = hkdf_sha256(&answers[i].input, okm, sizeof okm, err);
        if (st == ST_OK && !is_equal(okm, answers[i].okm, sizeof okm))
            st = error_set(err, ST_LIBRARY, "HKDF-SHA256 gives a wrong answer");
    }
    return st;
}

/* FIPS 180-4, the example of one block. */
static enum status sha256_check(struct error *err)
{
    static const uint8_t answer[SHA256_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                                 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                                 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                                 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t digest[SHA256_BYTES];
    enum status st = sign_sha256("abc", 3, digest, err);

    if (st == ST_OK && !is_equal(digest, answer, sizeof digest))
        st = error_set(err, ST_LIBRARY, "SHA-256 gives a wrong answer");
    return st;
}

static enum status algorithms_fetch(struct error *err)
{
    if (algorithms.hmac == NULL)
        algorithms.hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (algorithms.hkdf == NULL)
        algorithms.hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (algorithms.sha256 == NULL)
        algorithms.sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (algorithms.hmac == NULL || algorithms.hkdf == NULL || algorithms.sha256 == NULL)
        return library_error("fetching HMAC, HKDF and SHA256", err);
    return ST_OK;
}

static enum status core_files_forbid(struct error *err)
{
    if (setrlimit(RLIMIT_CORE, &(struct rlimit){0}) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
        return error_set(err, ST_IO, "keeping keys out of core files: %s", strerror(errno));
    return ST_OK;
}

enum status sign_start(struct error *err)
{
    enum status st = core_files_forbid(err);

    if (st == ST_OK)
        st = algorithms_fetch(err);
    if (st == ST_OK)
        st = sha256_check(err);
    if (st == ST_OK)
        st = hmac_check(err);
    if (st == ST_OK)
        st = hkdf_check(err);
    return st;
}

bool sign_equals(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}
