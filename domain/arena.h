/*
 * An arena: many small allocations with one lifetime. Memory comes in chunks, is handed out in
 * order and is freed, or kept for reuse, all at once.
 */
#ifndef TICKETPRESS_DOMAIN_ARENA_H
#define TICKETPRESS_DOMAIN_ARENA_H

#include "domain/status.h"

#include <stddef.h>

/* Text in UTF-8. Not owned: it lives in an arena or in the program. data[len] is 0; NULL when
 * absent. */
struct text {
    const char *data;
    size_t len; /* bytes */
};

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t bytes;               /* capacity of all chunks */
};

/* Free everything; the arena is left zeroed and may be used again. */
void arena_clear(struct arena *arena);

/* Forget everything but keep the largest chunk, so that equal work needs no further allocation. */
void arena_reset(struct arena *arena);

/* dst, which must be empty, takes the memory; src is left zeroed. */
void arena_move(struct arena *dst, struct arena *src);

/* Memory of `bytes` bytes (1 or more), zeroed, aligned for any type; NULL when there is none. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* A zero-terminated copy of len bytes. Errors: ST_NO_MEMORY, *text is left untouched. */
MUST_USE enum status arena_text_copy(struct arena *arena, const char *data, size_t len,
                                     struct text *text, struct error *err);

#endif
