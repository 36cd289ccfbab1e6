#include "domain/arena.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

static bool is_all(const unsigned char *data, size_t len, unsigned char value)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != value)
            return false;
    return true;
}

Test(arena_alloc, gives_zeroed_aligned_memory_of_its_own)
{
    static const size_t SIZES[] = {1, 15, 16, 17, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 3};
    unsigned char *blocks[sizeof SIZES / sizeof *SIZES];
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        blocks[i] = arena_alloc(&arena, SIZES[i]);
        cr_assert(blocks[i] != NULL && (uintptr_t)blocks[i] % alignof(max_align_t) == 0);
        cr_expect(is_all(blocks[i], SIZES[i], 0), "%zu", SIZES[i]);
        memset(blocks[i], (int)i + 1, SIZES[i]);
    }
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        cr_expect(is_all(blocks[i], SIZES[i], (unsigned char)(i + 1)), "%zu", SIZES[i]);
    arena_clear(&arena);
    cr_expect(arena.chunks == NULL && arena.bytes == 0);
}

Test(arena_alloc, is_never_asked_for_nothing, .signal = SIGABRT)
{
    struct arena arena = {0};

    (void)arena_alloc(&arena, 0);
}

Test(arena_reset, keeps_the_largest_chunk_for_equal_work)
{
    struct arena arena = {0};
    size_t bytes;

    for (int i = 0; i < 100; i++)
        cr_assert(arena_alloc(&arena, 1000) != NULL);
    arena_reset(&arena);
    bytes = arena.bytes;
    cr_expect(bytes >= 4096 && arena.chunks != NULL);
    for (size_t used = 0; used + 1008 <= bytes; used += 1008) {
        unsigned char *block = arena_alloc(&arena, 1000);

        cr_expect(is_all(block, 1000, 0));
        memset(block, 0xFF, 1000);
    }
    cr_expect(arena.bytes == bytes);
    arena_clear(&arena);
}

Test(arena_reset, does_nothing_to_an_empty_arena)
{
    struct arena arena = {0};

    arena_reset(&arena);
    cr_expect(arena.chunks == NULL && arena.bytes == 0);
}

Test(arena_move, hands_the_memory_on)
{
    struct arena src = {0};
    struct arena dst = {0};
    char *block = arena_alloc(&src, 4);

    cr_assert(block != NULL);
    memcpy(block, "Ana", 4);
    arena_move(&dst, &src);
    cr_expect(src.chunks == NULL && src.bytes == 0);
    arena_clear(&src);
    cr_expect_str_eq(block, "Ana");
    arena_clear(&dst);
}

Test(arena_move, wants_an_empty_destination, .signal = SIGABRT)
{
    struct arena src = {0};
    struct arena dst = {0};

    (void)arena_alloc(&dst, 1);
    arena_move(&dst, &src);
}

Test(arena_text_copy, copies_bytes_and_ends_with_zero)
{
    static const struct {
        const char *data;
        size_t len;
    } ROWS[] = {{"Ana Li", 6}, {"Ana\0Li", 6}, {"Ana Li", 3}, {"", 0}, {NULL, 0}};
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text text = {0};

        cr_assert(arena_text_copy(&arena, ROWS[i].data, ROWS[i].len, &text, NULL) == ST_OK);
        cr_expect(text.len == ROWS[i].len && text.data[text.len] == '\0' &&
                  text.data != ROWS[i].data);
        cr_expect(ROWS[i].len == 0 || memcmp(text.data, ROWS[i].data, text.len) == 0);
    }
    arena_clear(&arena);
}
