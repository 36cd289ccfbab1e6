#include "service/json_heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES_MIN = 16 * 1024, /* a single ticket's tree */
    CHUNK_BYTES_MAX = 1024 * 1024,
};

/* In front of every block. */
struct json_block {
    size_t bytes;            /* of the block behind this, a multiple of the alignment */
    struct json_block *next; /* while it is freed, in its list */
};

/* In front of a large one. */
struct json_large {
    struct json_large *next;
    struct json_large **link; /* what points to this one */
    struct json_block block;  /* last: the block follows */
};

struct json_chunk {
    struct json_chunk *next;
    size_t bytes; /* this head included */
};

_Static_assert(sizeof(struct json_block) % JSON_HEAP_ALIGNMENT == 0, "blocks stay aligned");
_Static_assert(sizeof(struct json_large) % JSON_HEAP_ALIGNMENT == 0, "blocks stay aligned");
_Static_assert(sizeof(struct json_chunk) % JSON_HEAP_ALIGNMENT == 0, "blocks stay aligned");

static size_t rounded(size_t bytes)
{
    return bytes == 0 ? JSON_HEAP_ALIGNMENT
                      : (bytes + JSON_HEAP_ALIGNMENT - 1) & ~(size_t)(JSON_HEAP_ALIGNMENT - 1);
}

static size_t class_of(size_t rounded_bytes)
{
    return rounded_bytes / JSON_HEAP_ALIGNMENT - 1;
}

static size_t next_chunk_bytes(const struct json_heap *heap)
{
    if (heap->chunks == NULL)
        return CHUNK_BYTES_MIN;
    return heap->chunks->bytes < CHUNK_BYTES_MAX ? heap->chunks->bytes * 2 : CHUNK_BYTES_MAX;
}

static bool has_room(const struct json_heap *heap, size_t rounded_bytes)
{
    return heap->chunks != NULL &&
           heap->chunks->bytes - heap->used_bytes >= sizeof(struct json_block) + rounded_bytes;
}

size_t json_heap_needs(const struct json_heap *heap, size_t bytes)
{
    if (bytes > JSON_HEAP_SMALL_BYTES_MAX)
        return bytes > SIZE_MAX / 2 ? SIZE_MAX : sizeof(struct json_large) + rounded(bytes);
    if (heap->freed[class_of(rounded(bytes))] != NULL)
        return 0;
    return sizeof(struct json_block) + rounded(bytes);
}

static void *alloc_large(struct json_heap *heap, size_t rounded_bytes)
{
    struct json_large *large = malloc(sizeof *large + rounded_bytes);

    if (large == NULL)
        return NULL;
    *large = (struct json_large){
        .next = heap->large, .link = &heap->large, .block = {.bytes = rounded_bytes}};
    if (large->next != NULL)
        large->next->link = &large->next;
    heap->large = large;
    heap->bytes += sizeof *large + rounded_bytes;
    return large + 1;
}

static bool add_chunk(struct json_heap *heap)
{
    size_t const bytes = next_chunk_bytes(heap);
    struct json_chunk *chunk = malloc(bytes);

    if (chunk == NULL)
        return false;
    *chunk = (struct json_chunk){.next = heap->chunks, .bytes = bytes};
    heap->chunks = chunk;
    heap->used_bytes = sizeof *chunk;
    return true;
}

static struct json_block *cut(struct json_heap *heap, size_t rounded_bytes)
{
    char *at = (char *)heap->chunks + heap->used_bytes;
    struct json_block *block = (struct json_block *)(void *)at;

    heap->used_bytes += sizeof *block + rounded_bytes;
    heap->bytes += sizeof *block + rounded_bytes;
    assert(heap->used_bytes <= heap->chunks->bytes);
    block->bytes = rounded_bytes;
    return block;
}

void *json_heap_alloc(struct json_heap *heap, size_t bytes)
{
    struct json_block **freed;
    struct json_block *block;

    if (bytes > SIZE_MAX / 2)
        return NULL;
    if (bytes > JSON_HEAP_SMALL_BYTES_MAX)
        return alloc_large(heap, rounded(bytes));
    freed = &heap->freed[class_of(rounded(bytes))];
    if (*freed != NULL) {
        block = *freed;
        *freed = block->next;
        return block + 1;
    }
    if (!has_room(heap, rounded(bytes)) && !add_chunk(heap))
        return NULL;
    return cut(heap, rounded(bytes)) + 1;
}

static size_t free_large(struct json_heap *heap, struct json_large *large)
{
    size_t const bytes = sizeof *large + large->block.bytes;

    *large->link = large->next;
    if (large->next != NULL)
        large->next->link = large->link;
    heap->bytes -= bytes;
    free(large);
    return bytes;
}

size_t json_heap_free(struct json_heap *heap, void *memory)
{
    struct json_block *block;

    if (memory == NULL)
        return 0;
    block = (struct json_block *)memory - 1;
    if (block->bytes > JSON_HEAP_SMALL_BYTES_MAX)
        return free_large(heap, (struct json_large *)memory - 1);
    block->next = heap->freed[class_of(block->bytes)];
    heap->freed[class_of(block->bytes)] = block;
    return 0;
}

void json_heap_clear(struct json_heap *heap)
{
    while (heap->large != NULL) {
        struct json_large *large = heap->large;

        heap->large = large->next;
        free(large);
    }
    while (heap->chunks != NULL) {
        struct json_chunk *chunk = heap->chunks;

        heap->chunks = chunk->next;
        free(chunk);
    }
    *heap = (struct json_heap){0};
}
