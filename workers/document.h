/*
 * A finished document: immutable, counted, the one thing that several owners may hold at once,
 * since it can be served while it expires. Its bytes are those that the bind wrote; they are never
 * copied.
 */
#ifndef TICKETPRESS_WORKERS_DOCUMENT_H
#define TICKETPRESS_WORKERS_DOCUMENT_H

#include "domain/arena.h"
#include "domain/bytes.h"
#include "workers/sign.h"

#include <stddef.h>
#include <stdint.h>

/* One ticket of a document. */
struct document_ticket {
    size_t page; /* that it stands on, 1..; several may stand on one */
    struct text id;
    struct text token; /* what its QR symbol holds */
};

/* The tickets of a document, in the order of its pages. */
struct document_tickets {
    struct arena arena;           /* owns the texts and the list */
    struct document_ticket *list; /* count of them */
    size_t count;                 /* 1.. */
};

struct document {
    struct bytes bytes; /* never changes, like all of this; freed with the last reference */
    struct document_tickets tickets;
    uint8_t digest[SHA256_BYTES]; /* of the contents: equal documents have equal digests */
};

/*
 * A document with one reference. *bytes and *tickets are moved (left zeroed) on success.
 *
 * Errors:  ST_NO_MEMORY  both are untouched
 */
MUST_USE enum status document_new_move(struct bytes *bytes, struct document_tickets *tickets,
                                       const uint8_t digest[SHA256_BYTES],
                                       const struct document **document, struct error *err);

/* One more reference. Returns its argument. Threads: any. */
const struct document *document_ref(const struct document *document);

/* Drop a reference and NULL it; the last one frees. NULL inside is fine. Threads: any. */
void document_unref(const struct document **document);

#endif
