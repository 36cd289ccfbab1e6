/*
 * The memory of one JSON tree: blocks cut from chunks, all given back at once. A worker that frees
 * a large tree block by block in malloc's heap holds that heap's lock most of the time, and as it
 * runs at low priority it may be put aside with it, while the front end waits to free a block of
 * its own there. Here no lock is taken but for a chunk.
 *
 * Blocks that are freed are used again for the same size. Threads: one at a time.
 */
#ifndef TICKETPRESS_SERVICE_JSON_HEAP_H
#define TICKETPRESS_SERVICE_JSON_HEAP_H

#include <stddef.h>

enum {
    JSON_HEAP_ALIGNMENT = 16,
    JSON_HEAP_SMALL_BYTES_MAX = 1024, /* larger blocks are taken from malloc and given back alone */
    JSON_HEAP_CLASSES = JSON_HEAP_SMALL_BYTES_MAX / JSON_HEAP_ALIGNMENT,
};

struct json_chunk;
struct json_block;
struct json_large;

/* Zeroed: empty. */
struct json_heap {
    struct json_chunk *chunks;                   /* the one in use first */
    struct json_large *large;                    /* head of a list */
    struct json_block *freed[JSON_HEAP_CLASSES]; /* by size */
    size_t used_bytes;                           /* of the first chunk */
    size_t bytes;                                /* that blocks take, freed small ones too */
};

/* By how much an allocation of so many bytes would raise `bytes`: 0 where a freed block serves.
 * What the heap has from malloc is at most a chunk of 1 MiB, or as much again, above `bytes`. */
size_t json_heap_needs(const struct json_heap *heap, size_t bytes);

/* Returns: a block of that many bytes or more, aligned to JSON_HEAP_ALIGNMENT; NULL: no memory. */
void *json_heap_alloc(struct json_heap *heap, size_t bytes);

/* Returns: by how much `bytes` fell: 0 for a small block. NULL is fine. */
size_t json_heap_free(struct json_heap *heap, void *memory);

/* Give back everything, freed or not. */
void json_heap_clear(struct json_heap *heap);

#endif
