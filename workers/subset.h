/*
 * Cutting TrueType faces down for embedding: the outlines of some glyphs under their own ids,
 * without hinting, and the six tables that a PDF viewer reads (ISO 32000-1, 9.9). One pass over the
 * mapped file into one block of memory.
 */
#ifndef TICKETPRESS_WORKERS_SUBSET_H
#define TICKETPRESS_WORKERS_SUBSET_H

#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/font.h"
#include "workers/sfnt.h"

/*
 * Cut a face down to some glyphs and what they are composed of, .notdef always among them.
 *
 * In:      from    with TrueType outlines
 * Out:     file    zeroed on entry; a TrueType file with the tables glyf, head, hhea, hmtx, loca,
 *                  maxp, and with no glyph behind the last of the set
 *          glyphs  widened to all glyphs that the file holds
 * Errors:  ST_INVALID    an outline makes no sense; err names the glyph
 *          ST_NO_MEMORY  *file is left empty in both cases
 * Threads: any
 */
MUST_USE enum status subset_outlines(const struct sfnt *from, struct glyph_set *glyphs,
                                     struct bytes *file, struct error *err);

#endif
