#include "workers/document.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    struct document document; /* first: a document is found again by its address */
    atomic_size_t references;
};

static struct counted *counted_from(const struct document *document)
{
    union {
        const struct document *shared;
        struct counted *owner;
    } const view = {.shared = document}; /* made here, and not const then */

    return view.owner;
}

enum status document_new_move(struct bytes *bytes, struct document_tickets *tickets,
                              const uint8_t digest[SHA256_BYTES], const struct document **document,
                              struct error *err)
{
    struct counted *made = calloc(1, sizeof *made);

    assert(bytes->len > 0 && tickets->count > 0);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a document");
    bytes_move(&made->document.bytes, bytes);
    made->document.tickets = *tickets;
    *tickets = (struct document_tickets){0};
    memcpy(made->document.digest, digest, SHA256_BYTES);
    atomic_init(&made->references, 1);
    *document = &made->document;
    return ST_OK;
}

const struct document *document_ref(const struct document *document)
{
    size_t const before =
        atomic_fetch_add_explicit(&counted_from(document)->references, 1, memory_order_relaxed);

    assert(before > 0);
    return document;
}

void document_unref(const struct document **document)
{
    struct counted *counted;
    size_t before;

    if (*document == NULL)
        return;
    counted = counted_from(*document);
    *document = NULL;
    before = atomic_fetch_sub_explicit(&counted->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    bytes_clear(&counted->document.bytes);
    arena_clear(&counted->document.tickets.arena);
    free(counted);
}
