/*
 * The font set: faces mapped and checked at the start of the process, shaped with and cut into
 * subsets by any number of threads. Glyph ids are the face's own, and the code by which a page
 * names a glyph does not depend on the subset, so that a page can be written before it is known
 * which glyphs the whole document needs.
 *
 * What shaping takes beside the file is made when a face is first asked for its shaper, so that a
 * long list of faces costs those who do not use it nothing. If memory ends there, the next one who
 * asks tries again.
 *
 * Client bytes never reach a font parser: faces come from the operator's list only.
 */
#ifndef TICKETPRESS_WORKERS_FONT_H
#define TICKETPRESS_WORKERS_FONT_H

#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FONT_FACES_MAX = 64,
    FONT_FILE_BYTES_MAX = 64 << 20,
    FONT_GLYPHS_MAX = 65535,
    /* Units to the em of glyphs, whatever the face's own em is (a divisor of this in practice), so
     * that glyphs of several faces stand in one line. */
    FONT_EM = 256000,
    FONT_SCALE = 1000, /* PDF glyph space: a thousand units to the em (ISO 32000-1, 9.2.4) */
};

/*
 * Where memory ends, HarfBuzz goes on with what it has (a table is taken for empty, a set of glyphs
 * stays as it is), and not every function of it can tell. malloc() tells, in errno (POSIX), which
 * HarfBuzz leaves alone: watch, call HarfBuzz, ask. Threads: each for itself.
 */
void font_memory_watch(void);
bool font_memory_has_ended(void);

/* How a face's glyphs are drawn: by table glyf (TrueType) or by table CFF (compact). */
enum font_outlines { FONT_GLYF, FONT_CFF };

enum font_weight { FONT_REGULAR, FONT_BOLD, FONT_WEIGHTS };

struct font_set;
struct hb_font_t;

/* What a PDF font descriptor says of a face (ISO 32000-1, 9.8), in thousandths of an em. */
struct font_metrics {
    char postscript_name[64]; /* letters, digits and '-' only */
    int ascent, descent;      /* descent is negative */
    int cap_height, x_height;
    int bbox[4]; /* left, bottom, right, top */
    int italic_angle;
    int stem_v;
    enum font_weight weight;
    enum font_outlines outlines;
    uint32_t units_per_em;
    uint32_t glyph_count; /* 1..FONT_GLYPHS_MAX */
};

/*
 * Open faces from files, in their order of preference.
 *
 * In:      paths   count of them, 1..FONT_FACES_MAX; TrueType or OpenType; of a collection
 *                  "FILE#N" is member N, from 0 on, and "FILE" the first
 * Errors:  ST_INVALID    a file is no such font, or cut short, or has no such member; err names it
 *                        and the fault
 *          ST_NOT_FOUND, ST_IO  a file cannot be opened or mapped; err names it
 *          ST_TOO_LARGE  a file is over FONT_FILE_BYTES_MAX
 *          ST_NO_MEMORY
 */
MUST_USE enum status font_set_open(const char *const *paths, size_t count, struct font_set **set,
                                   struct error *err);
void font_set_free(struct font_set **set);

/*
 * What the faces are, in their order: the same text set in sets with the same hash gives the same
 * glyphs. Of each file its size, its directory, which holds the sums of all tables, and its table
 * head, which says when and as what it was made, are hashed: the rest of 15 MB would be read at
 * every start for this alone.
 *
 * Errors:  ST_LIBRARY, ST_NO_MEMORY
 * Threads: any, after sign_start
 */
MUST_USE enum status font_set_hash(const struct font_set *set, uint8_t hash[SHA256_BYTES],
                                   struct error *err);

size_t font_set_faces_count(const struct font_set *set);

/* The first face of that weight, else the first face. Returns: an index below the count. */
size_t font_set_face(const struct font_set *set, enum font_weight weight);

const struct font_metrics *font_metrics(const struct font_set *set, size_t face);

/* Whether the face's character map has a code point. */
bool font_has(const struct font_set *set, size_t face, uint32_t code_point);

/* A glyph's advance, FONT_EM to the em. */
int font_advance(const struct font_set *set, size_t face, uint32_t glyph);

/* The same in thousandths of the em, rounded: what a PDF's widths say. */
int font_width(const struct font_set *set, size_t face, uint32_t glyph);

/* For shaping, in workers/text.c; scaled to FONT_EM. Immutable, borrowed from the set. The first
 * call for a face takes a fraction of a millisecond. NULL: memory has ended, and who watches is
 * told. Threads: any. */
struct hb_font_t *font_shaper(const struct font_set *set, size_t face);

/* ---- of faces whose shaper was had ---- */

/* How far a glyph's ink reaches from its origin, FONT_EM to the em; all 0 without ink. */
struct glyph_reach {
    int32_t top, bottom; /* upwards; bottom is negative below the baseline */
    int32_t left, right; /* to the right; left is negative before the origin */
};
struct glyph_reach font_reach(const struct font_set *set, size_t face, uint32_t glyph);

/* The lowest code point that the face's character map leads to this glyph; 0 when there is none. */
uint32_t font_code_point(const struct font_set *set, size_t face, uint32_t glyph);

/* The CID by which a page names a glyph (ISO 32000-1, 9.7.4.2): in CID-keyed faces what the face
 * calls it, else its id. */
uint32_t font_cid(const struct font_set *set, size_t face, uint32_t glyph);

/* ---- sets of glyphs ---- */

/* The glyphs of one face that something needs: a bitmap by glyph id. */
struct glyph_set {
    uint64_t *words;    /* words_count of them; NULL while empty */
    size_t words_count; /* fixed by the face: (glyph_count + 63) / 64 */
};

/* Room for the glyphs of a face. Errors: ST_NO_MEMORY. */
MUST_USE enum status glyph_set_init(struct glyph_set *glyphs, const struct font_set *set,
                                    size_t face, struct error *err);
void glyph_set_clear(struct glyph_set *glyphs);
void glyph_set_add(struct glyph_set *glyphs, uint32_t glyph);
bool glyph_set_has(const struct glyph_set *glyphs, uint32_t glyph);
/* Go to the first glyph of the set from *glyph on. False: there is none. */
bool glyph_set_next(const struct glyph_set *glyphs, uint32_t *glyph);
bool glyph_set_is_empty(const struct glyph_set *glyphs);
void glyph_set_unite(struct glyph_set *dst, const struct glyph_set *src); /* of the same face */

/*
 * Cut a face whose shaper was had down to some glyphs and what they are composed of, .notdef always
 * among them.
 *
 * Out:     file    as PDF embeds it: of FONT_GLYF a TrueType file without hinting, names and layout
 *                  tables, of FONT_CFF the table CFF alone, without hinting
 *          glyphs  widened to all glyphs that the file holds
 * Errors:  ST_INVALID    an outline makes no sense; err names font and glyph
 *          ST_LIBRARY    a face with FONT_CFF could not be cut; HarfBuzz does not say why
 *          ST_NO_MEMORY  *file is left empty in all cases
 * Threads: any
 */
MUST_USE enum status font_subset(const struct font_set *set, size_t face, struct glyph_set *glyphs,
                                 struct bytes *file, struct error *err);

#endif
