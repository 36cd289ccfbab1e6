#include "service/json_heap.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

static struct json_heap heap;

static void check_alloc(size_t bytes)
{
    size_t const before = heap.bytes;
    size_t const needs = json_heap_needs(&heap, bytes);
    unsigned char *block = json_heap_alloc(&heap, bytes);

    cr_assert(block != NULL, "%zu bytes", bytes);
    cr_expect((uintptr_t)block % JSON_HEAP_ALIGNMENT == 0, "%zu bytes", bytes);
    cr_expect(heap.bytes == before + needs, "%zu bytes: said %zu, took %zu", bytes, needs,
              heap.bytes - before);
    memset(block, 0xA5, bytes); /* for the address sanitizer and valgrind */
}

Test(json_heap_alloc, serves_every_size_and_says_before_what_it_takes)
{
    for (size_t bytes = 0; bytes <= 3 * JSON_HEAP_SMALL_BYTES_MAX; bytes++)
        check_alloc(bytes);
    check_alloc((size_t)20 << 20);
    json_heap_clear(&heap);
    cr_expect(heap.bytes == 0 && heap.chunks == NULL && heap.large == NULL);
}

Test(json_heap_alloc, refuses_what_no_machine_has)
{
    cr_expect(json_heap_needs(&heap, SIZE_MAX) == SIZE_MAX);
    cr_expect(json_heap_alloc(&heap, SIZE_MAX) == NULL);
    cr_expect(heap.bytes == 0);
}

Test(json_heap_alloc, keeps_blocks_apart)
{
    enum { BLOCKS = 5000 };
    static unsigned char *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = json_heap_alloc(&heap, 8 + i % 1500);
        memset(blocks[i], (int)(i % 251), 8 + i % 1500);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < 8 + i % 1500; at++)
            cr_assert(blocks[i][at] == i % 251, "block %zu, byte %zu", i, at);
    json_heap_clear(&heap);
}

Test(json_heap_free, lets_a_small_block_serve_again)
{
    void *first = json_heap_alloc(&heap, 40);
    size_t const bytes = heap.bytes;

    cr_expect(json_heap_free(&heap, first) == 0 && heap.bytes == bytes);
    cr_expect(json_heap_needs(&heap, 48) == 0, "the same size when rounded");
    cr_expect(json_heap_needs(&heap, 49) > 0);
    cr_expect(json_heap_alloc(&heap, 33) == first);
    cr_expect(json_heap_alloc(&heap, 33) != first);
    json_heap_clear(&heap);
}

Test(json_heap_free, gives_a_large_block_back_at_once)
{
    static const size_t ORDER[] = {1, 0, 2}; /* the middle, the last taken, the first */
    void *large[3];

    for (size_t i = 0; i < 3; i++)
        large[2 - i] = json_heap_alloc(&heap, JSON_HEAP_SMALL_BYTES_MAX + 1);
    for (size_t i = 0; i < 3; i++) {
        size_t const before = heap.bytes;
        size_t const freed = json_heap_free(&heap, large[ORDER[i]]);

        cr_expect(freed > JSON_HEAP_SMALL_BYTES_MAX && heap.bytes == before - freed);
    }
    cr_expect(heap.bytes == 0 && heap.large == NULL);
}

Test(json_heap_free, takes_null)
{
    cr_expect(json_heap_free(&heap, NULL) == 0);
}
