/*
 * Setting text: shaping with HarfBuzz, breaking into lines and fitting into a box. Text runs from
 * left to right in one face; a character that the face lacks is drawn as its .notdef box and
 * reported.
 *
 * A fitted block is glyphs and positions only. How they are written to a page is workers/page.c's
 * affair.
 */
#ifndef TICKETPRESS_WORKERS_TEXT_H
#define TICKETPRESS_WORKERS_TEXT_H

#include "domain/arena.h"
#include "domain/status.h"
#include "workers/font.h"
#include "workers/locale.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct glyph {
    uint32_t id;      /* in its face */
    int32_t advance;  /* FONT_EM to the em, like the offsets */
    int32_t x_offset; /* of the drawn glyph from the pen, which it does not move */
    int32_t y_offset; /* upwards */
    uint32_t at;      /* byte offset of its first character in the text */
};

struct text_line {
    const struct glyph *glyphs; /* glyphs_count of them, left to right */
    size_t glyphs_count;
    int32_t width;      /* sum of the advances */
    struct text source; /* the characters that the line shows, without the ellipsis */
    bool has_ellipsis;  /* its last glyphs are an ellipsis: the text was cut short */
};

struct text_block {
    size_t face;
    int32_t size_mpt;        /* thousandths of a point */
    int32_t leading_mpt;     /* from baseline to baseline */
    struct text_line *lines; /* lines_count of them, top to bottom */
    size_t lines_count;      /* 0 only for an empty text */
    const uint32_t *missing; /* missing_count code points that the face lacks, in text order */
    size_t missing_count;
};

struct text_fit {
    size_t face;
    int32_t width_mpt, height_mpt;        /* of the box */
    int32_t size_mpt;                     /* at most; this order: size >= floor, wrapped_floor */
    int32_t floor_mpt, wrapped_floor_mpt; /* see domain/layout.h */
    uint32_t lines_max;                   /* 1.. */
};

struct text_setter;

/* One per worker. Borrows the font set. Errors: ST_NO_MEMORY, ST_LIBRARY. */
MUST_USE enum status text_setter_new(const struct font_set *fonts, struct text_setter **setter,
                                     struct error *err);
void text_setter_free(struct text_setter **setter);

/*
 * Set a text into a box: on one line at full size; else on one line, shrunk down to floor; else on
 * up to lines_max lines, as large as they fit, down to wrapped_floor; else cut short with an
 * ellipsis at that size. Words longer than the box are broken. No line is wider than the box, and
 * the lines are no higher, except that one line is always set.
 *
 * In:      tag    BCP 47, for the language's letter forms and line breaks
 *          text   valid UTF-8 in NFC, any length; LF ends a paragraph
 * Out:     block  in the arena, borrowing text
 * Errors:  ST_NO_MEMORY, ST_LIBRARY
 */
MUST_USE enum status text_set(struct text_setter *setter, struct text tag, struct text text,
                              const struct text_fit *fit, struct arena *arena,
                              struct text_block *block, struct error *err);

#endif
