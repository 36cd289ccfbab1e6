#include "domain/id_set.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { IDS = 10000 };

static const uint64_t KEY[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

Test(id_set_add, finds_each_id_where_it_was_first_seen)
{
    struct arena arena = {0};
    struct id_set set = {0};
    char(*ids)[16] = arena_alloc(&arena, IDS * sizeof *ids);
    size_t first = 0;

    cr_assert(ids != NULL && id_set_init(&set, IDS, KEY, &arena, NULL) == ST_OK);
    for (size_t i = 0; i < IDS; i++) {
        snprintf(ids[i], sizeof ids[i], "tkt-%06zu", i);
        cr_assert(id_set_add(&set, text_of(ids[i]), i, &first) && first == i);
    }
    for (size_t i = 0; i < IDS; i++)
        cr_assert(!id_set_add(&set, text_of(ids[i]), IDS + i, &first) && first == i);
    arena_clear(&arena);
}

Test(id_set_add, goes_by_bytes_alone)
{
    static const char *const DIFFERENT[] = {"a", "A", "a\x01", "aa", "\u00C4", "A\u0308"};
    struct arena arena = {0};
    struct id_set set = {0};
    size_t first;

    cr_assert(id_set_init(&set, 6, KEY, &arena, NULL) == ST_OK);
    for (size_t i = 0; i < sizeof DIFFERENT / sizeof *DIFFERENT; i++)
        cr_expect(id_set_add(&set, text_of(DIFFERENT[i]), i, &first), "%zu", i);
    arena_clear(&arena);
}

Test(id_set_add, holds_one_id_in_the_smallest_set)
{
    struct arena arena = {0};
    struct id_set set = {0};
    size_t first = 0;

    cr_assert(id_set_init(&set, 1, KEY, &arena, NULL) == ST_OK);
    cr_expect(id_set_add(&set, text_of("a"), 7, &first) && first == 7);
    cr_expect(!id_set_add(&set, text_of("a"), 8, &first) && first == 7);
    arena_clear(&arena);
}

Test(id_set_add, takes_no_more_ids_than_were_said, .signal = SIGABRT)
{
    struct arena arena = {0};
    struct id_set set = {0};
    size_t first;

    cr_assert(id_set_init(&set, 1, KEY, &arena, NULL) == ST_OK);
    (void)id_set_add(&set, text_of("a"), 0, &first);
    (void)id_set_add(&set, text_of("b"), 1, &first);
}

/* The input of the SipHash paper's vector, and a text whose value CPython's own hash gives, too. */
Test(id_set_hash, is_siphash_1_3)
{
    static const uint64_t NO_KEY[2] = {0, 0};
    char counting[15];

    for (size_t i = 0; i < sizeof counting; i++)
        counting[i] = (char)i;
    cr_expect(id_set_hash((struct text){.data = counting, .len = sizeof counting}, KEY) ==
              UINT64_C(0xd320d86d2a519956));
    cr_expect(id_set_hash(text_of("abcdefghijklmno12345"), NO_KEY) ==
              UINT64_C(1062695121898223316));
}

Test(id_set_hash, depends_on_every_byte_and_on_the_key)
{
    static const uint64_t OTHER_KEY[2] = {1, 2};
    uint64_t seen[17];
    char data[] = "abcdefghijklmnop";

    for (size_t len = 0; len <= 16; len++) {
        struct text const text = {.data = data, .len = len};

        seen[len] = id_set_hash(text, KEY);
        cr_expect(seen[len] != id_set_hash(text, OTHER_KEY), "%zu", len);
        for (size_t i = 0; i < len; i++) {
            data[i] ^= 1;
            cr_expect(id_set_hash(text, KEY) != seen[len], "byte %zu of %zu", i, len);
            data[i] ^= 1;
        }
        for (size_t i = 0; i < len; i++)
            cr_expect(seen[i] != seen[len], "%zu and %zu", i, len);
    }
}
