/*
 * OpenType and TrueType font files (ISO/IEC 14496-22) as bytes: which tables a face has, its
 * character map, widths and where each outline lies. Nothing is allocated and nothing is kept but
 * pointers into the file, and no offset that the file gives is followed before it is checked: a
 * broken font is refused or read as blank, never outside of its bytes.
 *
 * Threads: any; a struct sfnt never changes once it is open.
 */
#ifndef TICKETPRESS_WORKERS_SFNT_H
#define TICKETPRESS_WORKERS_SFNT_H

#include "domain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SFNT_CHARACTER_MAX = 0x10FFFF,
    SFNT_HEAD_BYTES = 54,
    SFNT_HHEA_BYTES = 36,
    SFNT_MAXP_BYTES = 32, /* of TrueType outlines; 6 of others */
};

/* Numbers are big-endian. */
static inline uint16_t sfnt_u16(const uint8_t *data)
{
    return (uint16_t)(data[0] << 8 | data[1]);
}

static inline int16_t sfnt_i16(const uint8_t *data)
{
    return (int16_t)sfnt_u16(data);
}

static inline uint32_t sfnt_u32(const uint8_t *data)
{
    return (uint32_t)sfnt_u16(data) << 16 | sfnt_u16(data + 2);
}

/* A part of the file, borrowed. */
struct sfnt_part {
    const uint8_t *data;
    size_t len;
};

struct sfnt {
    struct sfnt_part directory; /* the table records, 16 bytes each */
    struct sfnt_part head, hhea, hmtx, maxp;
    struct sfnt_part loca, glyf; /* of TrueType outlines, else empty */
    struct sfnt_part cff;        /* of compact outlines, else empty */
    struct sfnt_part characters; /* the subtable of cmap in use, from its format on */
    uint32_t glyph_count;        /* 1..65535 */
    uint32_t units_per_em;       /* 16..16384 */
    uint32_t widths_count;       /* 1..glyph_count: the glyphs behind are as wide as the last */
    bool has_long_offsets;       /* in loca */
};

/* How many faces a file holds: more than one in collections, 0 in what is no font. */
uint32_t sfnt_faces_count(const uint8_t *data, size_t len);

/*
 * Open one face of a file.
 *
 * In:      data, len  the whole file, which must outlive *sfnt
 *          member     below sfnt_faces_count
 * Errors:  ST_INVALID  cut short, or without something that setting text and embedding take: the
 *                      tables cmap, head, hhea, hmtx, maxp, and outlines in glyf and loca or in
 *                      CFF; a Unicode character map of format 4 or 12, in order
 */
MUST_USE enum status sfnt_open(const uint8_t *data, size_t len, uint32_t member, struct sfnt *sfnt,
                               struct error *err);

/* A table by its four letters; empty when there is none. */
struct sfnt_part sfnt_table(const uint8_t *data, size_t len, const struct sfnt *sfnt,
                            const char *tag);

/* The glyph of a character; 0 when the face has none. */
uint32_t sfnt_glyph(const struct sfnt *sfnt, uint32_t character);

/*
 * What each glyph is the glyph of: the lowest character that has it, 0 where none has.
 *
 * Out:     characters  room for glyph_count, zeroed on entry
 */
void sfnt_characters(const struct sfnt *sfnt, uint32_t *characters);

/* In units of the face's em; glyph below glyph_count. */
uint32_t sfnt_advance(const struct sfnt *sfnt, uint32_t glyph);
int sfnt_left_bearing(const struct sfnt *sfnt, uint32_t glyph);

/*
 * Where a TrueType outline lies.
 *
 * In:      glyph    below glyph_count
 * Out:     outline  empty for a blank glyph, else 10 bytes or more
 * Returns: false when the face's offsets make no sense
 */
bool sfnt_outline(const struct sfnt *sfnt, uint32_t glyph, struct sfnt_part *outline);

#endif
