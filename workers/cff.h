/*
 * What a table CFF (Adobe Technical Note 5176) says of its glyphs' names. In a CID-keyed face each
 * glyph has a number of its own, its CID, beside its place in the face; in a PDF it is the CID that
 * names the glyph, in subsets too, where places change. Outlines are HarfBuzz's affair.
 */
#ifndef TICKETPRESS_WORKERS_CFF_H
#define TICKETPRESS_WORKERS_CFF_H

#include "domain/status.h"
#include "workers/sfnt.h"

#include <stdbool.h>
#include <stdint.h>

struct cff {
    bool is_cid_keyed;
    struct sfnt_part charset; /* from its format on; empty: CIDs are places */
};

/* Errors: ST_INVALID. Threads: any. */
MUST_USE enum status cff_open(struct sfnt_part table, struct cff *cff, struct error *err);

/*
 * The CID of every glyph of a CID-keyed face.
 *
 * Out:     cids  room for glyph_count; 0 for glyphs that the table is too short to name
 */
void cff_cids(const struct cff *cff, uint32_t glyph_count, uint16_t *cids);

#endif
