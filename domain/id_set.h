/*
 * The ids of one batch and where each was first seen. Ids are compared byte by byte. The hash is
 * SipHash-1-3 keyed by the caller, so that nobody can send ids that all fall into one place.
 */
#ifndef TICKETPRESS_DOMAIN_ID_SET_H
#define TICKETPRESS_DOMAIN_ID_SET_H

#include "domain/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_set_slot;

struct id_set {
    struct id_set_slot *slots;
    size_t slots_count; /* a power of two; 0 while empty */
    size_t ids_count;   /* at most half of slots_count */
    size_t ids_max;
    uint64_t key[2];
};

/*
 * A set for up to ids_max ids, with its memory from the arena.
 *
 * Errors:  ST_NO_MEMORY  *set is left untouched
 */
MUST_USE enum status id_set_init(struct id_set *set, size_t ids_max, const uint64_t key[2],
                                 struct arena *arena, struct error *err);

/*
 * Note an id.
 *
 * In:      id           borrowed until the set's end
 *          index        where it was seen
 * Out:     first_index  where the same bytes were first seen; index itself when they are new
 * Returns: whether the id is new
 */
bool id_set_add(struct id_set *set, struct text id, size_t index, size_t *first_index);

/* SipHash-1-3 of a text (Aumasson and Bernstein, 2012), one compression and three finalisation
 * rounds. */
uint64_t id_set_hash(struct text text, const uint64_t key[2]);

#endif
