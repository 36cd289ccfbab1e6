/*
 * What glyphs read as that no character leads to: joined forms, ligatures, conjuncts. Noted while
 * pages are written, for the maps from which readers without /ActualText copy text. The first
 * reading of a glyph stays.
 */
#ifndef TICKETPRESS_WORKERS_READINGS_H
#define TICKETPRESS_WORKERS_READINGS_H

#include "domain/arena.h"
#include "domain/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    READING_BYTES_MAX = 26, /* of UTF-8; what is longer is not kept */
    READINGS_MAX = 4096,    /* more are not kept */
    /* Added to a face: its glyphs as they are read where characters are mirrored. A document has
     * the font twice then, under two names, with a map for each. */
    READINGS_MIRRORED = 0x8000,
};

struct glyph_reading {
    uint16_t face, glyph;
    uint8_t len;
    char data[READING_BYTES_MAX];
};

struct readings {
    struct glyph_reading *list; /* count of them, by face and glyph ascending */
    size_t count, max;
};

void readings_clear(struct readings *readings);

/* Note a reading unless the glyph has one. In: text valid UTF-8. Errors: ST_NO_MEMORY. */
MUST_USE enum status readings_add(struct readings *readings, size_t face, uint32_t glyph,
                                  struct text text, struct error *err);

/* Add what another set has. Errors: ST_NO_MEMORY. */
MUST_USE enum status readings_unite(struct readings *dst, const struct readings *src,
                                    struct error *err);

/* Returns: the reading, valid until the next is added; NULL: none. */
const struct glyph_reading *readings_find(const struct readings *readings, size_t face,
                                          uint32_t glyph);

#endif
