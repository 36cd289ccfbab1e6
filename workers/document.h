/*
 * A finished document: immutable, counted, the one thing that several owners may hold at once,
 * since it can be served while it expires. Its bytes are those that the bind wrote; they are never
 * copied.
 */
#ifndef TICKETPRESS_WORKERS_DOCUMENT_H
#define TICKETPRESS_WORKERS_DOCUMENT_H

#include "domain/bytes.h"
#include "workers/sign.h"

#include <stddef.h>
#include <stdint.h>

struct document {
    struct bytes bytes;           /* never changes; freed with the last reference */
    size_t pages_count;           /* 1.. */
    uint8_t digest[SHA256_BYTES]; /* of the contents: equal documents have equal digests */
};

/*
 * A document of these bytes with one reference. *bytes is moved (left zeroed) on success.
 *
 * Errors:  ST_NO_MEMORY  *bytes is untouched
 */
MUST_USE enum status document_new_move(struct bytes *bytes, size_t pages_count,
                                       const uint8_t digest[SHA256_BYTES],
                                       const struct document **document, struct error *err);

/* One more reference. Returns its argument. Threads: any. */
const struct document *document_ref(const struct document *document);

/* Drop a reference and NULL it; the last one frees. NULL inside is fine. Threads: any. */
void document_unref(const struct document **document);

#endif
