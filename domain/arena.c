#include "domain/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARENA_CHUNK_BYTES_MIN = 4096,
    ARENA_CHUNK_BYTES_MAX = 1 << 20, /* chunks double up to this; a larger request gets its own */
};

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) unsigned char data[];
};

void arena_clear(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
    *arena = (struct arena){0};
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *largest = arena->chunks;

    for (struct arena_chunk *c = arena->chunks; c != NULL; c = c->next)
        if (c->capacity > largest->capacity)
            largest = c;
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        if (chunk != largest)
            free(chunk);
    }
    if (largest != NULL) {
        largest->next = NULL;
        largest->used = 0;
        arena->chunks = largest;
        arena->bytes = largest->capacity;
    }
}

void arena_move(struct arena *dst, struct arena *src)
{
    assert(dst->chunks == NULL);
    *dst = *src;
    *src = (struct arena){0};
}

static struct arena_chunk *chunk_new(const struct arena *arena, size_t bytes)
{
    size_t capacity = arena->bytes < ARENA_CHUNK_BYTES_MIN ? ARENA_CHUNK_BYTES_MIN : arena->bytes;
    struct arena_chunk *chunk;

    if (capacity > ARENA_CHUNK_BYTES_MAX)
        capacity = ARENA_CHUNK_BYTES_MAX;
    if (capacity < bytes)
        capacity = bytes;
    chunk = malloc(sizeof *chunk + capacity);
    if (chunk != NULL)
        *chunk = (struct arena_chunk){.capacity = capacity};
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t const align = alignof(max_align_t);
    struct arena_chunk *chunk = arena->chunks;
    void *memory;

    assert(bytes > 0 && bytes <= SIZE_MAX / 4);
    bytes = (bytes + align - 1) / align * align;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) {
        chunk = chunk_new(arena, bytes);
        if (chunk == NULL)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->bytes += chunk->capacity;
    }
    memory = chunk->data + chunk->used;
    chunk->used += bytes;
    return memset(memory, 0, bytes);
}

enum status arena_text_copy(struct arena *arena, const char *data, size_t len, struct text *text,
                            struct error *err)
{
    char *copy = arena_alloc(arena, len + 1);

    if (copy == NULL)
        return error_set(err, ST_NO_MEMORY, "a text of %zu bytes", len);
    if (len > 0)
        memcpy(copy, data, len);
    copy[len] = '\0';
    *text = (struct text){.data = copy, .len = len};
    return ST_OK;
}
