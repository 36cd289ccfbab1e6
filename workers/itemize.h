/*
 * Cutting a text into runs that can be shaped: of one direction (UAX 9), one script (UAX 24) and
 * one face. Fallback goes by grapheme cluster (UAX 29), so that a letter and its marks are always
 * drawn in one face: the first, in the set's order, that has all of its characters, of the first
 * face's weight if there is one.
 */
#ifndef TICKETPRESS_WORKERS_ITEMIZE_H
#define TICKETPRESS_WORKERS_ITEMIZE_H

#include "domain/arena.h"
#include "domain/status.h"
#include "workers/font.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_run {
    uint32_t at, end; /* bytes of the text */
    uint32_t script;  /* ISO 15924, four letters, the first in the highest byte */
    uint16_t face;
    uint8_t level; /* UAX 9; odd: right to left */
    uint8_t base;  /* the level of its paragraph */
};

struct items {
    struct text_run *runs; /* runs_count of them, as written, without a gap */
    size_t runs_count;
    uint8_t *is_boundary; /* by byte: 1 where a line may begin if it must */
};

struct itemizer;

/* One per worker. Borrows the font set. Errors: ST_NO_MEMORY, ST_LIBRARY. */
MUST_USE enum status itemizer_new(const struct font_set *fonts, struct itemizer **itemizer,
                                  struct error *err);
void itemizer_free(struct itemizer **itemizer);

/*
 * Whether a text is one run if one face has all of it: left to right and of Latin, Greek or
 * Cyrillic letters alone, with digits, spaces, marks and punctuation. False when in doubt.
 */
bool itemize_is_plain(struct text text, bool is_right_to_left);

/*
 * In:      text              valid UTF-8; LF ends a paragraph
 *          face              the first to be tried
 *          is_right_to_left  what a paragraph without a letter of either direction is
 * Out:     items             in the arena
 * Errors:  ST_NO_MEMORY, ST_LIBRARY
 */
MUST_USE enum status itemize(struct itemizer *itemizer, struct text text, size_t face,
                             bool is_right_to_left, struct arena *arena, struct items *items,
                             struct error *err);

/* Whether a character is never seen by itself: Default_Ignorable_Code_Point (UAX 44). */
bool itemize_is_ignorable(uint32_t code_point);

/* The face in which one character is drawn where `face` is the first to be tried. */
size_t itemize_face_of(const struct itemizer *itemizer, size_t face, uint32_t code_point);

#endif
