/*
 * Setting text: shaping with HarfBuzz, breaking into lines and fitting into a box. A paragraph is
 * cut into runs of one direction (UAX 9), one script (UAX 24) and one face. Each grapheme cluster
 * is drawn in the first face that has all of its characters, and one that none has as U+FFFD of
 * the first face, and reported. Controls of direction act within their text only.
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
    uint32_t at, end; /* the bytes of the text that it stands for, with others of the same */
    uint32_t group, group_end; /* the same, or those of all glyphs that make up one letter with it:
                                  these may stand in another order than they are read in */
    uint16_t face;             /* in the font set */
    bool is_right_to_left;     /* its run; on the line its text goes on to the left of it */
    bool is_missing;           /* it stands in for characters that no face has */
};

struct text_line {
    const struct glyph *glyphs; /* glyphs_count of them, left to right as they are seen */
    size_t glyphs_count;
    int32_t width;       /* sum of the advances */
    int32_t top, bottom; /* how far ink reaches from the baseline, FONT_EM to the em; 0 at least */
    int32_t before, behind; /* how far beyond the advances' left and right end; 0 at least */
    struct text source; /* the characters that the line shows, as written, without the ellipsis */
    bool has_ellipsis;  /* it ends in one, where its text would go on: it was cut short */
    bool is_right_to_left; /* its paragraph */
};

struct text_block {
    size_t face;             /* the first, as asked for */
    int32_t size_mpt;        /* thousandths of a point */
    int32_t leading_mpt;     /* from baseline to baseline */
    struct text text;        /* what was set; glyphs count their bytes in it */
    struct text_line *lines; /* lines_count of them, top to bottom */
    size_t lines_count;      /* 0 only for an empty text */
    const uint32_t *missing; /* missing_count code points that no face has, in text order */
    size_t missing_count;
};

struct text_fit {
    size_t face;                          /* the first; others are tried in the set's order */
    bool is_right_to_left;                /* of a paragraph without a letter of either direction */
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
 * ellipsis at that size. Words longer than the box are broken between grapheme clusters. No line is
 * wider than the box, and the lines with their ink are no higher, except that one line is always
 * set.
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
