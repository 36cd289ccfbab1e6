/*
 * A key ring swapped while others sign and verify. Two rings take turns; both have key 1, with
 * different secrets. Whatever a reader sees must be wholly of one of them: a derived event key is
 * one of two, and a token made under one ring is either verified or refused for its MAC.
 */
#include "workers/sign.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 4, ROUNDS = 4000, RINGS = 2, NOW_S = 1000, EXTRA_KEYS = 20 };

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                             \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static struct key_store *store;
static struct event_key expected[RINGS]; /* of either ring, derived before the race */
static char tokens[RINGS][TOKEN_CHARS_MAX + 1];
static atomic_int readers_left = READERS;
static atomic_ulong seen[RINGS]; /* how often readers met each ring */
static pthread_barrier_t gate;

/* Rings of different sizes, so that a torn one would be read beyond its end. */
static struct key_ring ring_new(int which)
{
    size_t const count = which == 0 ? 1 : 1 + EXTRA_KEYS;
    struct key_ring ring = {.keys = calloc(count, sizeof *ring.keys), .keys_count = count};

    CHECK(ring.keys != NULL);
    for (size_t i = 0; i < count; i++) {
        struct signing_key *key = &ring.keys[i];

        *key = (struct signing_key){.id = (uint8_t)(i + 1),
                                    .client = "*",
                                    .secret_len = KEY_SECRET_BYTES_MIN,
                                    .sign_from_s = NOW_S - (int64_t)i,
                                    .verify_until_s = KEY_VERIFY_FOR_EVER};
        memset(key->secret, which == 0 ? 0xAA : 0x55, key->secret_len);
        key->secret[0] = (uint8_t)i;
    }
    return ring;
}

static void swap_in(int which)
{
    struct key_ring ring = ring_new(which);

    CHECK(key_store_swap_move(store, &ring, NULL) == ST_OK);
    CHECK(ring.keys == NULL);
}

static void sign_under(int which, struct signer *signer)
{
    struct token_claims claims = {.key_id = 1, .event_id_len = 3, .ticket_id_len = 1};
    size_t len = 0;

    memcpy(claims.event_id, "evt", 3);
    memcpy(claims.ticket_id, "t", 1);
    swap_in(which);
    CHECK(key_store_event_key(store, "any", "evt", NOW_S, &expected[which], NULL) == ST_OK);
    CHECK(expected[which].key_id == 1);
    CHECK(signer_token(signer, &expected[which], &claims, tokens[which], &len, NULL) == ST_OK);
}

static void read_key(void)
{
    struct event_key key;
    int which = 0;

    CHECK(key_store_event_key(store, NULL, "evt", NOW_S, &key, NULL) == ST_OK);
    CHECK(key.key_id == 1);
    while (which < RINGS && memcmp(key.bytes, expected[which].bytes, sizeof key.bytes) != 0)
        which++;
    CHECK(which < RINGS);
    atomic_fetch_add(&seen[which], 1);
}

static void read_ids(void)
{
    uint8_t ids[KEYS_MAX];
    size_t const count = key_store_key_ids(store, NULL, NOW_S, ids);

    CHECK(count == 1 || count == 1 + EXTRA_KEYS);
}

static void verify(struct signer *signer, const char *token)
{
    enum token_verdict verdict = TOKEN_VERDICT_COUNT;
    struct token_claims claims;

    CHECK(signer_verify_by_store(signer, store, NULL, token, strlen(token), NOW_S, &verdict,
                                 &claims, NULL) == ST_OK);
    CHECK(verdict == TOKEN_OK || verdict == TOKEN_BAD_MAC);
}

static void *reader_run(void *unused)
{
    struct signer *signer = NULL;

    CHECK(signer_new(&signer, NULL) == ST_OK);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < ROUNDS; i++) {
        read_key();
        read_ids();
        verify(signer, tokens[i % RINGS]);
    }
    signer_free(&signer);
    atomic_fetch_sub(&readers_left, 1);
    return unused;
}

int main(void)
{
    pthread_t readers[READERS];
    struct signer *signer = NULL;
    struct key_ring first = ring_new(1);
    unsigned long swaps = 0;

    CHECK(sign_start(NULL) == ST_OK);
    CHECK(key_store_new_move(&first, &store, NULL) == ST_OK);
    CHECK(signer_new(&signer, NULL) == ST_OK);
    sign_under(0, signer);
    sign_under(1, signer);
    CHECK(memcmp(expected[0].bytes, expected[1].bytes, EVENT_KEY_BYTES) != 0);
    CHECK(pthread_barrier_init(&gate, NULL, READERS + 1) == 0);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, reader_run, NULL) == 0);
    pthread_barrier_wait(&gate);
    while (atomic_load(&readers_left) > 0)
        swap_in((int)(swaps++ % RINGS));
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_join(readers[i], NULL) == 0);
    CHECK(atomic_load(&seen[0]) + atomic_load(&seen[1]) == (unsigned long)READERS * ROUNDS);
    printf("%lu swaps, %lu and %lu keys of the two rings\n", swaps, atomic_load(&seen[0]),
           atomic_load(&seen[1]));
    signer_free(&signer);
    key_store_free(&store);
    CHECK(pthread_barrier_destroy(&gate) == 0);
    return EXIT_SUCCESS;
}
