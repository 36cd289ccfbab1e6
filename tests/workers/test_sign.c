#include "workers/sign.h"

#include "domain/civil_time.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { NOW_S = 1790000000, DAY_S = 86400, TOKENS = 100 };

static void setup(void)
{
    struct error err = {0};

    cr_assert_eq(sign_start(&err), ST_OK, "%s", err.text);
}

/* ---- helpers ---- */

static struct signing_key key_of(uint8_t id, const char *client, int64_t sign_from_s,
                                 int64_t verify_until_s)
{
    struct signing_key key = {.id = id,
                              .secret_len = KEY_SECRET_BYTES_MIN,
                              .sign_from_s = sign_from_s,
                              .verify_until_s = verify_until_s};

    memset(key.secret, id + 1, key.secret_len);
    snprintf(key.client, sizeof key.client, "%s", client);
    return key;
}

static struct key_ring ring_of(const struct signing_key *keys, size_t count)
{
    struct key_ring ring = {.keys = calloc(count, sizeof *keys), .keys_count = count};

    cr_assert_not_null(ring.keys);
    memcpy(ring.keys, keys, count * sizeof *keys);
    return ring;
}

static struct key_store *store_of(const struct signing_key *keys, size_t count)
{
    struct key_ring ring = ring_of(keys, count);
    struct key_store *store = NULL;
    struct error err = {0};

    cr_assert_eq(key_store_new_move(&ring, &store, &err), ST_OK, "%s", err.text);
    cr_assert_null(ring.keys);
    return store;
}

static struct signer *signer_of(void)
{
    struct signer *signer = NULL;

    cr_assert_eq(signer_new(&signer, NULL), ST_OK);
    return signer;
}

static struct token_claims claims_of(const struct event_key *key, const char *ticket_id)
{
    struct token_claims claims = {.key_id = key->key_id,
                                  .event_id_len = (uint8_t)strlen(key->event_id),
                                  .ticket_id_len = (uint8_t)strlen(ticket_id)};

    memcpy(claims.event_id, key->event_id, claims.event_id_len);
    memcpy(claims.ticket_id, ticket_id, claims.ticket_id_len);
    return claims;
}

static size_t token_of(struct signer *signer, const struct event_key *key, const char *ticket_id,
                       char text[TOKEN_CHARS_MAX + 1])
{
    struct token_claims const claims = claims_of(key, ticket_id);
    size_t len = 0;

    cr_assert_eq(signer_token(signer, key, &claims, text, &len, NULL), ST_OK);
    cr_assert_eq(strlen(text), len);
    return len;
}

static struct event_key event_key_of(struct key_store *store, const char *client,
                                     const char *event_id, int64_t now_s)
{
    struct event_key key;
    struct error err = {0};

    cr_assert_eq(key_store_event_key(store, client, event_id, now_s, &key, &err), ST_OK, "%s",
                 err.text);
    return key;
}

static enum token_verdict verdict_by_store(struct signer *signer, struct key_store *store,
                                           const char *client, const char *text, int64_t now_s)
{
    enum token_verdict verdict = TOKEN_VERDICT_COUNT;
    struct token_claims claims;

    cr_assert_eq(signer_verify_by_store(signer, store, client, text, strlen(text), now_s, &verdict,
                                        &claims, NULL),
                 ST_OK);
    return verdict;
}

static enum token_verdict verdict_by_key(struct signer *signer, const struct event_key *key,
                                         const char *text, size_t len, int64_t now_s)
{
    enum token_verdict verdict = TOKEN_VERDICT_COUNT;
    struct token_claims claims;

    cr_assert_eq(signer_verify(signer, key, text, len, now_s, &verdict, &claims, NULL), ST_OK);
    return verdict;
}

/* ---- the start ---- */

Test(sign_start, can_be_repeated_and_keeps_keys_out_of_core_files, .init = setup)
{
    struct rlimit limit = {1, 1};

    cr_expect_eq(sign_start(NULL), ST_OK);
    cr_expect_eq(prctl(PR_GET_DUMPABLE), 0);
    cr_assert_eq(getrlimit(RLIMIT_CORE, &limit), 0);
    cr_expect_eq(limit.rlim_max, 0);
}

Test(sign_sha256, agrees_with_fips_180_4, .init = setup)
{
    static const uint8_t empty[SHA256_BYTES] = {0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14,
                                                0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
                                                0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c,
                                                0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};
    uint8_t digest[SHA256_BYTES];

    cr_assert_eq(sign_sha256("", 0, digest, NULL), ST_OK);
    cr_expect_arr_eq(digest, empty, sizeof empty);
}

Test(sign_random, differs_from_call_to_call, .init = setup)
{
    uint8_t a[32] = {0}, b[32] = {0};

    cr_assert_eq(sign_random(a, sizeof a, NULL), ST_OK);
    cr_assert_eq(sign_random(b, sizeof b, NULL), ST_OK);
    cr_expect_neq(memcmp(a, b, sizeof a), 0);
}

/* ---- rings ---- */

Test(key_ring_check, accepts_a_ring_of_every_key_id)
{
    struct signing_key keys[KEYS_MAX];
    struct key_ring const ring = {.keys = keys, .keys_count = KEYS_MAX};

    for (int i = 0; i < KEYS_MAX; i++) {
        keys[i] = key_of((uint8_t)i, "*", 0, KEY_VERIFY_FOR_EVER);
        keys[i].secret[KEY_SECRET_BYTES_MIN - 1] = (uint8_t)(i / 2);
    }
    cr_expect_eq(key_ring_check(&ring, NULL), ST_OK);
}

static void break_nothing(struct signing_key *keys)
{
    (void)keys;
}

static void same_id(struct signing_key *keys)
{
    keys[1].id = keys[0].id;
}

static void same_secret(struct signing_key *keys)
{
    memcpy(keys[1].secret, keys[0].secret, sizeof keys[0].secret);
}

static void prefix_of_secret(struct signing_key *keys)
{
    same_secret(keys);
    keys[1].secret_len++;
}

static void shortest_secret_less_one(struct signing_key *keys)
{
    keys[1].secret_len = KEY_SECRET_BYTES_MIN - 1;
}

static void longest_secret(struct signing_key *keys)
{
    keys[1].secret_len = KEY_SECRET_BYTES_MAX;
}

static void longest_secret_and_one(struct signing_key *keys)
{
    keys[1].secret_len = KEY_SECRET_BYTES_MAX + 1;
}

static void never_verifies(struct signing_key *keys)
{
    keys[1].verify_until_s = keys[1].sign_from_s;
}

static void verifies_for_a_second(struct signing_key *keys)
{
    keys[1].verify_until_s = keys[1].sign_from_s + 1;
}

static void star_beside_a_client(struct signing_key *keys)
{
    strcpy(keys[1].client, "*");
}

static void client_after_star(struct signing_key *keys)
{
    strcpy(keys[0].client, "*");
}

static void no_client(struct signing_key *keys)
{
    keys[1].client[0] = '\0';
}

static void client_with_a_star(struct signing_key *keys)
{
    strcpy(keys[1].client, "a*");
}

static void longest_client(struct signing_key *keys)
{
    memset(keys[1].client, 'c', KEY_CLIENT_BYTES_MAX);
}

static void client_without_end(struct signing_key *keys)
{
    memset(keys[1].client, 'c', sizeof keys[1].client);
}

static const struct {
    const char *name;
    void (*change)(struct signing_key *keys);
    enum status expected;
    const char *text; /* part of the message */
} RING_ROWS[] = {
    {"two clients", break_nothing, ST_OK, ""},
    {"one id twice", same_id, ST_INVALID, "key 1: there are two"},
    {"one secret twice", same_secret, ST_INVALID, "key 2: has the same secret as key 1"},
    {"a secret that begins with another", prefix_of_secret, ST_OK, ""},
    {"a secret too short", shortest_secret_less_one, ST_INVALID, "key 2: the secret has 31"},
    {"the longest secret", longest_secret, ST_OK, ""},
    {"a secret too long", longest_secret_and_one, ST_INVALID, "key 2: the secret has 129"},
    {"verify_until at sign_from", never_verifies, ST_INVALID, "key 2: verify_until"},
    {"verify_until a second later", verifies_for_a_second, ST_OK, ""},
    {"star beside a client", star_beside_a_client, ST_INVALID, "key 2: client \"*\""},
    {"a client beside star", client_after_star, ST_INVALID, "key 2: client \"*\""},
    {"an empty client", no_client, ST_INVALID, "key 2: client"},
    {"a pattern as client", client_with_a_star, ST_INVALID, "key 2: client"},
    {"the longest client", longest_client, ST_OK, ""},
    {"a client too long", client_without_end, ST_INVALID, "key 2: client"},
};

Test(key_ring_check, names_the_key_and_the_rule)
{
    for (size_t i = 0; i < sizeof RING_ROWS / sizeof *RING_ROWS; i++) {
        struct signing_key keys[] = {key_of(1, "alpha", 0, NOW_S), key_of(2, "beta", 0, NOW_S)};
        struct key_ring const ring = {.keys = keys, .keys_count = 2};
        struct error err = {0};

        RING_ROWS[i].change(keys);
        cr_expect_eq(key_ring_check(&ring, &err), RING_ROWS[i].expected, "%s", RING_ROWS[i].name);
        cr_expect_not_null(strstr(err.text, RING_ROWS[i].text), "%s: %s", RING_ROWS[i].name,
                           err.text);
    }
}

Test(key_ring_check, refuses_an_empty_ring)
{
    cr_expect_eq(key_ring_check(&(struct key_ring){0}, NULL), ST_INVALID);
}

Test(key_store_new_move, leaves_a_broken_ring_with_its_owner)
{
    struct key_ring ring = {0};
    struct key_store *store = (struct key_store *)&ring;

    ring = ring_of(&(struct signing_key){.id = 1}, 1);
    cr_expect_eq(key_store_new_move(&ring, &store, NULL), ST_INVALID);
    cr_expect_null(store);
    cr_expect_not_null(ring.keys);
    key_ring_clear(&ring);
    cr_expect_null(ring.keys);
    key_store_free(&store);
}

Test(key_store_swap_move, leaves_a_broken_ring_with_its_owner_and_the_old_one_at_work,
     .init = setup)
{
    struct signing_key const good = key_of(1, "*", 0, KEY_VERIFY_FOR_EVER);
    struct key_store *store = store_of(&good, 1);
    struct key_ring broken = ring_of(&(struct signing_key){.id = 2}, 1);
    struct event_key key;

    cr_expect_eq(key_store_swap_move(store, &broken, NULL), ST_INVALID);
    cr_expect_not_null(broken.keys);
    key = event_key_of(store, NULL, "e", NOW_S);
    cr_expect_eq(key.key_id, 1);
    key_ring_clear(&broken);
    key_store_free(&store);
    cr_expect_null(store);
}

Test(key_ring_extend, adds_a_random_key_with_the_next_id, .init = setup)
{
    struct key_ring ring = {0};

    cr_assert_eq(key_ring_extend(&ring, "*", NOW_S, NULL), ST_OK);
    cr_assert_eq(key_ring_extend(&ring, "*", NOW_S + 60, NULL), ST_OK);
    cr_assert_eq(ring.keys_count, 2);
    cr_expect_eq(ring.keys[0].id, 1);
    cr_expect_eq(ring.keys[1].id, 2);
    cr_expect_eq(ring.keys[0].sign_from_s, NOW_S - NOW_S % 60);
    cr_expect_eq(ring.keys[1].verify_until_s, KEY_VERIFY_FOR_EVER);
    cr_expect_eq(ring.keys[1].secret_len, KEY_SECRET_BYTES_MIN);
    cr_expect_neq(memcmp(ring.keys[0].secret, ring.keys[1].secret, KEY_SECRET_BYTES_MIN), 0);
    key_ring_clear(&ring);
}

Test(key_ring_extend, uses_each_id_and_then_no_more, .init = setup)
{
    struct signing_key const last = key_of(255, "*", 0, KEY_VERIFY_FOR_EVER);
    struct key_ring ring = ring_of(&last, 1);

    for (int id = 0; id < 255; id++) { /* above the largest there is none: the smallest free */
        cr_assert_eq(key_ring_extend(&ring, "*", NOW_S, NULL), ST_OK);
        cr_expect_eq(ring.keys[ring.keys_count - 1].id, id);
    }
    cr_expect_eq(key_ring_extend(&ring, "*", NOW_S, NULL), ST_INVALID);
    cr_expect_eq(ring.keys_count, KEYS_MAX);
    key_ring_clear(&ring);
}

static const struct {
    const char *first, *second;
    enum status expected;
} EXTEND_ROWS[] = {
    {"alpha", "alpha", ST_OK},
    {"alpha", "beta", ST_OK},
    {"alpha", "*", ST_INVALID},
    {"*", "alpha", ST_INVALID},
    {"alpha", "", ST_INVALID},
    {"alpha", "a b", ST_INVALID},
    {"alpha", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ST_OK},
    {"alpha", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", ST_INVALID},
};

Test(key_ring_extend, keeps_the_rules_of_a_ring, .init = setup)
{
    for (size_t i = 0; i < sizeof EXTEND_ROWS / sizeof *EXTEND_ROWS; i++) {
        struct key_ring ring = {0};

        cr_assert_eq(key_ring_extend(&ring, EXTEND_ROWS[i].first, NOW_S, NULL), ST_OK);
        cr_expect_eq(key_ring_extend(&ring, EXTEND_ROWS[i].second, NOW_S, NULL),
                     EXTEND_ROWS[i].expected, "\"%s\" after \"%s\"", EXTEND_ROWS[i].second,
                     EXTEND_ROWS[i].first);
        key_ring_clear(&ring);
    }
}

/* ---- which key signs ---- */

static const struct {
    const char *name, *client;
    int64_t now_s;
    int key_id; /* -1: none */
} SIGN_ROWS[] = {
    {"before any key", "alpha", NOW_S - 1, -1},
    {"ties go to the larger id, from the first second on", "alpha", NOW_S, 2},
    {"before the next key", "alpha", NOW_S + DAY_S - 1, 2},
    {"the newest wins", "alpha", NOW_S + DAY_S, 3},
    {"the newest has ended, an older one has not", "alpha", NOW_S + 2 * DAY_S, 1},
    {"the last second of all", "alpha", NOW_S + 3 * DAY_S - 1, 1},
    {"after all", "alpha", NOW_S + 3 * DAY_S, -1},
    {"another client has its own", "beta", NOW_S + DAY_S, 9},
    {"a stranger has none", "gamma", NOW_S + DAY_S, -1},
    {"a client by the name of star has none", "*", NOW_S + DAY_S, -1},
    {"the operator may use each", NULL, NOW_S + DAY_S, 9},
};

Test(key_store_event_key, signs_with_the_newest_key_in_force_of_the_client, .init = setup)
{
    struct signing_key const keys[] = {
        key_of(3, "alpha", NOW_S + DAY_S, NOW_S + 2 * DAY_S),
        key_of(2, "alpha", NOW_S, NOW_S + DAY_S),
        key_of(9, "beta", NOW_S + DAY_S, NOW_S + 2 * DAY_S),
        key_of(1, "alpha", NOW_S, NOW_S + 3 * DAY_S),
    };
    struct key_store *store = store_of(keys, 4);

    for (size_t i = 0; i < sizeof SIGN_ROWS / sizeof *SIGN_ROWS; i++) {
        struct event_key key;
        enum status const st =
            key_store_event_key(store, SIGN_ROWS[i].client, "evt", SIGN_ROWS[i].now_s, &key, NULL);

        cr_expect_eq(st, SIGN_ROWS[i].key_id < 0 ? ST_NO_KEY : ST_OK, "%s", SIGN_ROWS[i].name);
        if (st == ST_OK)
            cr_expect_eq(key.key_id, SIGN_ROWS[i].key_id, "%s", SIGN_ROWS[i].name);
    }
    key_store_free(&store);
}

Test(key_store_event_key_by_id, finds_the_keys_of_a_client_only, .init = setup)
{
    struct signing_key const keys[] = {key_of(1, "alpha", 0, 10), key_of(2, "beta", 0, NOW_S)};
    struct key_store *store = store_of(keys, 2);
    struct event_key key;

    cr_expect_eq(key_store_event_key_by_id(store, "alpha", 1, "evt", &key, NULL), ST_OK);
    cr_expect_eq(key.verify_until_s, 10);
    cr_expect_str_eq(key.event_id, "evt");
    cr_expect_eq(key_store_event_key_by_id(store, "alpha", 2, "evt", &key, NULL), ST_NOT_FOUND);
    cr_expect_eq(key.event_id[0], '\0');
    cr_expect_eq(key_store_event_key_by_id(store, NULL, 2, "evt", &key, NULL), ST_OK);
    cr_expect_eq(key_store_event_key_by_id(store, NULL, 3, "evt", &key, NULL), ST_NOT_FOUND);
    event_key_clear(&key);
    cr_expect_eq(key.bytes[0], 0);
    key_store_free(&store);
}

Test(key_store_key_ids, lists_the_keys_that_still_verify)
{
    struct signing_key const keys[] = {key_of(200, "alpha", 0, 100),
                                       key_of(0, "alpha", 50, KEY_VERIFY_FOR_EVER),
                                       key_of(255, "beta", 0, 100)};
    struct key_store *store = store_of(keys, 3);
    uint8_t ids[KEYS_MAX];

    cr_assert_eq(key_store_key_ids(store, NULL, 99, ids), 3);
    cr_expect(ids[0] == 0 && ids[1] == 200 && ids[2] == 255);
    cr_assert_eq(key_store_key_ids(store, NULL, 100, ids), 1);
    cr_expect_eq(ids[0], 0);
    cr_expect_eq(key_store_key_ids(store, "alpha", 99, ids), 2);
    cr_expect_eq(key_store_key_ids(store, "gamma", 99, ids), 0);
    key_store_free(&store);
}

/* ---- tokens ---- */

Test(signer_token, gives_the_same_text_at_every_call_whatever_was_signed_between, .init = setup)
{
    struct signing_key const ring_key = key_of(1, "*", 0, KEY_VERIFY_FOR_EVER);
    struct key_store *store = store_of(&ring_key, 1);
    struct event_key const a = event_key_of(store, NULL, "evt-a", NOW_S);
    struct event_key const b = event_key_of(store, NULL, "evt-b", NOW_S);
    struct signer *signer = signer_of(), *other = signer_of();
    char first[TOKEN_CHARS_MAX + 1], text[TOKEN_CHARS_MAX + 1];

    token_of(signer, &a, "t", first);
    token_of(signer, &a, "u", text);
    cr_expect_str_neq(text, first);
    token_of(signer, &a, "t", text);
    cr_expect_str_eq(text, first);
    token_of(signer, &b, "t", text);
    token_of(signer, &a, "t", text);
    cr_expect_str_eq(text, first);
    token_of(other, &a, "t", text);
    cr_expect_str_eq(text, first);
    signer_free(&signer);
    signer_free(&other);
    cr_expect_null(signer);
    key_store_free(&store);
}

Test(signer_token, refuses_claims_of_another_event, .init = setup, .signal = SIGABRT)
{
    struct event_key const key = {.key_id = 1, .event_id = "a"};
    struct event_key const other = {.key_id = 1, .event_id = "b"};
    struct token_claims const claims = claims_of(&other, "t");
    char text[TOKEN_CHARS_MAX + 1];
    size_t len;

    cr_expect_eq(signer_token(signer_of(), &key, &claims, text, &len, NULL), ST_OK);
}

struct hundred {
    struct signing_key ring_key;
    struct key_store *store;
    struct signer *signer;
    struct event_key key;
    char texts[TOKENS][TOKEN_CHARS_MAX + 1];
    size_t lens[TOKENS];
};

/* A hundred tokens of all lengths modulo 3, with and without times, up to the longest. */
static void hundred_init(struct hundred *hundred)
{
    char event_id[TOKEN_ID_BYTES_MAX + 1] = "evt-003";

    hundred->ring_key = key_of(1, "*", 0, KEY_VERIFY_FOR_EVER);
    hundred->store = store_of(&hundred->ring_key, 1);
    hundred->signer = signer_of();
    hundred->key = event_key_of(hundred->store, NULL, event_id, NOW_S);
    for (int i = 0; i < TOKENS; i++) {
        char ticket_id[TOKEN_ID_BYTES_MAX + 1];
        struct token_claims claims;

        snprintf(ticket_id, sizeof ticket_id, "%0*d", i % TOKEN_ID_BYTES_MAX + 1, i % 10);
        claims = claims_of(&hundred->key, ticket_id);
        claims.issue = (uint8_t)i;
        claims.has_valid_from = (i & 1) != 0;
        claims.has_valid_until = (i & 2) != 0;
        claims.valid_until_min = claims.has_valid_until ? 3800000 : 0;
        cr_assert_eq(signer_token(hundred->signer, &hundred->key, &claims, hundred->texts[i],
                                  &hundred->lens[i], NULL),
                     ST_OK);
        cr_assert_eq(verdict_by_key(hundred->signer, &hundred->key, hundred->texts[i],
                                    hundred->lens[i], NOW_S),
                     TOKEN_OK);
    }
}

static void hundred_clear(struct hundred *hundred)
{
    signer_free(&hundred->signer);
    key_store_free(&hundred->store);
}

static void expect_refused(struct hundred *hundred, const char *text, size_t len, const char *what)
{
    cr_assert_neq(verdict_by_key(hundred->signer, &hundred->key, text, len, NOW_S), TOKEN_OK,
                  "%s: %.*s", what, (int)len, text);
}

Test(signer_verify, refuses_every_bit_flip_of_a_hundred_tokens, .init = setup, .timeout = 60)
{
    struct hundred hundred;

    hundred_init(&hundred);
    for (int i = 0; i < TOKENS; i++) {
        uint8_t bytes[TOKEN_BYTES_MAX];
        char text[TOKEN_CHARS_MAX + 1];
        size_t len = 0;

        cr_assert(base64url_read(hundred.texts[i], hundred.lens[i], bytes, &len));
        for (size_t bit = 0; bit < len * 8; bit++) { /* of the signed bytes and the MAC */
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            expect_refused(&hundred, text, base64url_write(bytes, len, text), "a bit of the bytes");
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        memcpy(text, hundred.texts[i], sizeof text);
        for (size_t bit = 0; bit < hundred.lens[i] * 8; bit++) { /* of the text */
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            expect_refused(&hundred, text, hundred.lens[i], "a bit of the text");
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        }
    }
    hundred_clear(&hundred);
}

Test(signer_verify, refuses_every_truncation_of_a_hundred_tokens, .init = setup, .timeout = 60)
{
    struct hundred hundred;

    hundred_init(&hundred);
    for (int i = 0; i < TOKENS; i++)
        for (size_t len = 0; len < hundred.lens[i]; len++) {
            expect_refused(&hundred, hundred.texts[i], len, "the end cut off");
            expect_refused(&hundred, hundred.texts[i] + hundred.lens[i] - len, len,
                           "the beginning cut off");
        }
    hundred_clear(&hundred);
}

static void swap_chars(char *text, size_t len, char from, char to)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == from)
            text[i] = to;
}

Test(signer_verify, refuses_every_other_spelling_of_a_hundred_tokens, .init = setup, .timeout = 60)
{
    static const char *const added[] = {"=", "==", "\n", "\r\n", " ", "\t", "A", "\0", "."};
    struct hundred hundred;

    hundred_init(&hundred);
    for (int i = 0; i < TOKENS; i++) {
        size_t const len = hundred.lens[i];
        char text[TOKEN_CHARS_MAX + 8];

        memcpy(text, hundred.texts[i], len);
        for (int c = 0; c < 256; c++) {
            text[len - 1] = (char)c;
            if (text[len - 1] != hundred.texts[i][len - 1])
                expect_refused(&hundred, text, len, "another last character");
        }
        for (size_t a = 0; a < sizeof added / sizeof *added; a++) {
            size_t const added_len = strlen(added[a]) > 0 ? strlen(added[a]) : 1;

            memcpy(text, hundred.texts[i], len);
            memcpy(text + len, added[a], added_len);
            expect_refused(&hundred, text, len + added_len, "something added at the end");
            memcpy(text, added[a], added_len);
            memcpy(text + added_len, hundred.texts[i], len);
            expect_refused(&hundred, text, len + added_len, "something added at the beginning");
        }
        for (int alphabet = 0; alphabet < 2; alphabet++) {
            memcpy(text, hundred.texts[i], len);
            swap_chars(text, len, alphabet == 0 ? '-' : '_', alphabet == 0 ? '+' : '/');
            if (memcmp(text, hundred.texts[i], len) != 0)
                expect_refused(&hundred, text, len, "the other alphabet");
        }
    }
    hundred_clear(&hundred);
}

Test(signer_verify, says_which_check_failed, .init = setup)
{
    struct signing_key const keys[] = {key_of(1, "*", 0, NOW_S), key_of(2, "*", 1, NOW_S)};
    struct key_store *store = store_of(keys, 2);
    struct signer *signer = signer_of();
    struct event_key one, two, other_event;
    char text[TOKEN_CHARS_MAX + 1];
    size_t len;

    cr_assert_eq(key_store_event_key_by_id(store, NULL, 1, "evt", &one, NULL), ST_OK);
    cr_assert_eq(key_store_event_key_by_id(store, NULL, 2, "evt", &two, NULL), ST_OK);
    cr_assert_eq(key_store_event_key_by_id(store, NULL, 1, "evt2", &other_event, NULL), ST_OK);
    len = token_of(signer, &one, "t", text);
    cr_expect_eq(verdict_by_key(signer, &one, text, len, NOW_S - 1), TOKEN_OK);
    cr_expect_eq(verdict_by_key(signer, &one, text, len, NOW_S), TOKEN_KEY_RETIRED);
    cr_expect_eq(verdict_by_key(signer, &two, text, len, NOW_S - 1), TOKEN_UNKNOWN_KEY);
    cr_expect_eq(verdict_by_key(signer, &other_event, text, len, NOW_S - 1), TOKEN_WRONG_EVENT);
    memcpy(one.bytes, two.bytes, sizeof one.bytes);
    cr_expect_eq(verdict_by_key(signer, &one, text, len, NOW_S - 1), TOKEN_BAD_MAC);
    signer_free(&signer);
    key_store_free(&store);
}

Test(signer_verify, lets_no_event_key_pass_another_events_ticket, .init = setup)
{
    struct signing_key const ring_key = key_of(1, "*", 0, KEY_VERIFY_FOR_EVER);
    struct key_store *store = store_of(&ring_key, 1);
    struct signer *signer = signer_of();
    struct event_key const mine = event_key_of(store, NULL, "evt-1", NOW_S);
    struct event_key const theirs = event_key_of(store, NULL, "evt-10", NOW_S);
    struct event_key forged = mine;
    char text[TOKEN_CHARS_MAX + 1];
    size_t len;

    cr_expect_neq(memcmp(mine.bytes, theirs.bytes, sizeof mine.bytes), 0);
    /* Who holds the key of evt-1 makes a ticket that says evt-10. */
    strcpy(forged.event_id, "evt-10");
    len = token_of(signer, &forged, "t", text);
    cr_expect_eq(verdict_by_key(signer, &theirs, text, len, NOW_S), TOKEN_BAD_MAC);
    cr_expect_eq(verdict_by_key(signer, &mine, text, len, NOW_S), TOKEN_WRONG_EVENT);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S), TOKEN_BAD_MAC);
    signer_free(&signer);
    key_store_free(&store);
}

Test(signer_verify_by_store, verifies_an_old_key_after_rotation_until_it_retires, .init = setup)
{
    struct signing_key keys[] = {key_of(1, "*", 0, KEY_VERIFY_FOR_EVER),
                                 key_of(2, "*", NOW_S, KEY_VERIFY_FOR_EVER)};
    struct key_store *store = store_of(keys, 1);
    struct signer *signer = signer_of();
    struct event_key key = event_key_of(store, NULL, "evt", NOW_S);
    struct key_ring rotated;
    char text[TOKEN_CHARS_MAX + 1];

    token_of(signer, &key, "t", text);
    keys[0].verify_until_s = NOW_S + DAY_S;
    rotated = ring_of(keys, 2);
    cr_assert_eq(key_store_swap_move(store, &rotated, NULL), ST_OK);
    cr_expect_null(rotated.keys);
    key = event_key_of(store, NULL, "evt", NOW_S);
    cr_expect_eq(key.key_id, 2);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S), TOKEN_OK);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S + DAY_S - 1), TOKEN_OK);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S + DAY_S), TOKEN_KEY_RETIRED);
    rotated = ring_of(&keys[1], 1);
    cr_assert_eq(key_store_swap_move(store, &rotated, NULL), ST_OK);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S), TOKEN_UNKNOWN_KEY);
    signer_free(&signer);
    key_store_free(&store);
}

Test(signer_verify_by_store, answers_for_the_keys_of_the_client_only, .init = setup)
{
    struct signing_key const keys[] = {key_of(1, "alpha", 0, KEY_VERIFY_FOR_EVER),
                                       key_of(2, "beta", 0, KEY_VERIFY_FOR_EVER)};
    struct key_store *store = store_of(keys, 2);
    struct signer *signer = signer_of();
    struct event_key const alpha = event_key_of(store, "alpha", "evt", NOW_S);
    struct event_key const beta = event_key_of(store, "beta", "evt", NOW_S);
    char text[TOKEN_CHARS_MAX + 1];

    cr_expect_eq(alpha.key_id, 1);
    cr_expect_eq(beta.key_id, 2);
    cr_expect_neq(memcmp(alpha.bytes, beta.bytes, sizeof alpha.bytes), 0);
    token_of(signer, &alpha, "t", text);
    cr_expect_eq(verdict_by_store(signer, store, "alpha", text, NOW_S), TOKEN_OK);
    cr_expect_eq(verdict_by_store(signer, store, "beta", text, NOW_S), TOKEN_UNKNOWN_KEY);
    cr_expect_eq(verdict_by_store(signer, store, NULL, text, NOW_S), TOKEN_OK);
    signer_free(&signer);
    key_store_free(&store);
}

/* ---- the published vectors ---- */

static const char *member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    cr_assert_not_null(text, "%s", name);
    return text;
}

static size_t hex_read(const char *hex, uint8_t *out, size_t out_max)
{
    size_t const len = strlen(hex) / 2;

    cr_assert(len <= out_max);
    for (size_t i = 0; i < len; i++) {
        char const digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        char *end;

        out[i] = (uint8_t)strtoul(digits, &end, 16);
        cr_assert_eq(*end, '\0', "%s", hex);
    }
    return len;
}

static void minutes_member(const json_t *vector, const char *name, bool *has, uint32_t *minutes)
{
    const json_t *value = json_object_get(vector, name);

    *has = json_is_integer(value);
    *minutes = *has ? (uint32_t)json_integer_value(value) : 0;
}

/* The vector's own secret, alone in a ring under the vector's key id. */
static struct key_store *store_of_vector(const json_t *vector)
{
    struct signing_key key = key_of((uint8_t)json_integer_value(json_object_get(vector, "key_id")),
                                    "*", 0, KEY_VERIFY_FOR_EVER);

    key.secret_len = hex_read(member(vector, "master_secret_hex"), key.secret, sizeof key.secret);
    return store_of(&key, 1);
}

static struct token_claims claims_of_vector(const json_t *vector, const struct event_key *key)
{
    struct token_claims claims = claims_of(key, member(vector, "ticket_id"));

    claims.issue = (uint8_t)json_integer_value(json_object_get(vector, "issue"));
    minutes_member(vector, "valid_from_minutes", &claims.has_valid_from, &claims.valid_from_min);
    minutes_member(vector, "valid_until_minutes", &claims.has_valid_until, &claims.valid_until_min);
    return claims;
}

static void good_vector_check(struct signer *signer, const json_t *vector)
{
    const char *name = member(vector, "name");
    struct key_store *store = store_of_vector(vector);
    struct event_key const key = event_key_of(store, NULL, member(vector, "event_id"), NOW_S);
    struct token_claims const claims = claims_of_vector(vector, &key);
    uint8_t expected[TOKEN_BODY_BYTES_MAX], body[TOKEN_BODY_BYTES_MAX];
    size_t const body_len = hex_read(member(vector, "body_hex"), expected, sizeof expected);
    char text[TOKEN_CHARS_MAX + 1];
    size_t len = 0;

    cr_expect_eq(token_body_write(&claims, body), body_len, "%s", name);
    cr_expect_arr_eq(body, expected, body_len, "%s", name);
    hex_read(member(vector, "event_key_hex"), expected, sizeof expected);
    cr_expect_arr_eq(key.bytes, expected, sizeof key.bytes, "%s", name);
    cr_assert_eq(signer_token(signer, &key, &claims, text, &len, NULL), ST_OK);
    cr_expect_str_eq(text, member(vector, "token"), "%s", name);
    cr_expect_eq(verdict_by_store(signer, store, NULL, member(vector, "token"), NOW_S), TOKEN_OK,
                 "%s", name);
    key_store_free(&store);
}

static json_t *vectors_load(void)
{
    json_error_t error;
    json_t *root = json_load_file("fixtures/token-vectors.json", 0, &error);

    cr_assert_not_null(root, "%s", error.text);
    return root;
}

Test(token_vectors, good_ones_are_made_and_verified, .init = setup)
{
    struct signer *signer = signer_of();
    json_t *root = vectors_load();
    const json_t *good = json_object_get(root, "good");

    cr_assert(json_array_size(good) >= 15);
    for (size_t i = 0; i < json_array_size(good); i++)
        good_vector_check(signer, json_array_get(good, i));
    json_decref(root);
    signer_free(&signer);
}

enum { GATE_KEYS_MAX = 4 };

struct gate {
    struct event_key keys[GATE_KEYS_MAX];
    size_t keys_count;
};

static int64_t seconds_of(const char *text)
{
    struct civil_time time = {0};

    cr_assert_eq(civil_time_read((struct text){.data = text, .len = strlen(text)}, &time),
                 CIVIL_TIME_OK, "%s", text);
    return time.seconds;
}

static struct gate gate_of(const json_t *root)
{
    const json_t *keys = json_object_get(json_object_get(root, "gate"), "keys");
    const char *event_id = member(json_object_get(root, "gate"), "event_id");
    struct gate gate = {.keys_count = json_array_size(keys)};

    cr_assert(gate.keys_count > 0 && gate.keys_count <= GATE_KEYS_MAX);
    for (size_t i = 0; i < gate.keys_count; i++) {
        const json_t *entry = json_array_get(keys, i);
        const char *key = member(entry, "key");
        const char *until = json_string_value(json_object_get(entry, "verify_until"));
        size_t len = 0;

        cr_assert_eq(strlen(key), (EVENT_KEY_BYTES * 8 + 5) / 6);
        cr_assert(base64url_read(key, strlen(key), gate.keys[i].bytes, &len));
        gate.keys[i].key_id = (uint8_t)json_integer_value(json_object_get(entry, "key_id"));
        gate.keys[i].verify_until_s = until != NULL ? seconds_of(until) : KEY_VERIFY_FOR_EVER;
        snprintf(gate.keys[i].event_id, sizeof gate.keys[i].event_id, "%s", event_id);
    }
    return gate;
}

/* A gate with several keys judges by the one that the token names, if it has it. */
static const struct event_key *gate_key(const struct gate *gate, const char *token)
{
    struct token_parts parts;

    if (token_read(token, strlen(token), &parts) == TOKEN_OK)
        for (size_t i = 0; i < gate->keys_count; i++)
            if (gate->keys[i].key_id == parts.claims.key_id)
                return &gate->keys[i];
    return &gate->keys[0];
}

Test(token_vectors, bad_ones_are_refused_for_their_reasons, .init = setup)
{
    bool is_met[TOKEN_VERDICT_COUNT] = {[TOKEN_OK] = true};
    struct signer *signer = signer_of();
    json_t *root = vectors_load();
    struct gate const gate = gate_of(root);
    const json_t *bad = json_object_get(root, "bad");

    for (size_t i = 0; i < json_array_size(bad); i++) {
        const json_t *vector = json_array_get(bad, i);
        const char *token = member(vector, "token");
        enum token_verdict const verdict = verdict_by_key(
            signer, gate_key(&gate, token), token, strlen(token), seconds_of(member(vector, "at")));

        cr_expect_str_eq(token_verdict_name(verdict), member(vector, "reason"), "%s",
                         member(vector, "name"));
        is_met[verdict] = true;
    }
    for (int i = 0; i < TOKEN_VERDICT_COUNT; i++)
        cr_expect(is_met[i], "no vector is refused as %s",
                  token_verdict_name((enum token_verdict)i));
    json_decref(root);
    signer_free(&signer);
}
