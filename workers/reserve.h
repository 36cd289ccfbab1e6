/*
 * Memory for libraries that cannot do without. ICU 72 and lcms2 2.14 read through null pointers
 * where some of their allocations fail, which would end the process with all its jobs. So they
 * allocate through these functions: from the heap, and when that gives nothing, from a reserve that
 * lets their calls come to their ends. Who calls them asks before whether the reserve is low, and
 * fails in good order then.
 *
 * The functions have the form that u_setMemoryFunctions takes; context is not used. Threads: any.
 */
#ifndef TICKETPRESS_WORKERS_RESERVE_H
#define TICKETPRESS_WORKERS_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RESERVE_BYTES = 8 << 20, /* touched only when the heap has ended */
    /* Opening all formatters of a locale takes less than 1 MiB: several threads may be inside of
     * calls when the reserve gets low. */
    RESERVE_LOW_BYTES = RESERVE_BYTES / 2,
};

/* As malloc, realloc and free, with bytes from 1 on; reserve_free takes what malloc made, too. */
void *reserve_malloc(const void *context, size_t bytes);
void *reserve_realloc(const void *context, void *memory, size_t bytes);
void reserve_free(const void *context, void *memory);

/* Whether less than RESERVE_LOW_BYTES are left, and the heap has ended still. */
bool reserve_is_low(void);

/* Whether this thread has taken from the reserve since it last asked: what it was doing should fail
 * then, although it went well, so that the reserve is soon whole again. */
bool reserve_was_touched(void);

/* Bytes of the reserve that are in use, with what it takes to keep the books. */
size_t reserve_bytes_used(void);

#endif
