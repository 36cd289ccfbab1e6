/*
 * Owned byte buffers: a request body, a file, a page content, a finished document. One owner at a
 * time; a move leaves the source zeroed, so that clearing it is right on every path.
 */
#ifndef TICKETPRESS_DOMAIN_BYTES_H
#define TICKETPRESS_DOMAIN_BYTES_H

#include "domain/status.h"

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;   /* from malloc; NULL when capacity is 0 */
    size_t len;      /* 0..capacity */
    size_t capacity; /* bytes that data has room for */
};

/* Free the contents; the struct is left zeroed and may be used again. */
void bytes_clear(struct bytes *bytes);

/* dst, which must be empty (capacity 0), takes the contents; src is left zeroed. */
void bytes_move(struct bytes *dst, struct bytes *src);

/*
 * Room for at least `more` bytes behind len, growing by doubling.
 *
 * Errors:  ST_NO_MEMORY  the contents are untouched
 */
MUST_USE enum status bytes_reserve(struct bytes *bytes, size_t more, struct error *err);

/*
 * Append a copy of len bytes.
 *
 * Errors:  ST_NO_MEMORY  the contents are untouched
 */
MUST_USE enum status bytes_append(struct bytes *bytes, const void *data, size_t len,
                                  struct error *err);

#endif
