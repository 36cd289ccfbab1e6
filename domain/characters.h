/*
 * The few classes of Unicode 15 characters that the rules of a batch speak of. Small fixed tables:
 * the classes are stable by Unicode's policies or have not changed for years.
 */
#ifndef TICKETPRESS_DOMAIN_CHARACTERS_H
#define TICKETPRESS_DOMAIN_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Property White_Space. */
bool character_is_white_space(uint32_t code_point);

/* General category Cc: C0, DELETE and C1. */
bool character_is_control(uint32_t code_point);

/* U+FDD0..U+FDEF and the last two code points of each plane. */
bool character_is_noncharacter(uint32_t code_point);

/*
 * The bidirectional embeddings and overrides U+202A..U+202E: they can make a text read as another
 * one. Isolates (U+2066..U+2069) and marks (U+200E, U+200F, U+061C) cannot and are not among them.
 */
bool character_is_bidi_override(uint32_t code_point);

/* Property Bidi_Control: the above, isolates and marks. */
bool character_is_bidi_control(uint32_t code_point);

/* Draws nothing by itself though it is not White_Space: zero-width, joining, filling and formatting
 * characters. A text of these and white space only is blank on the page. */
bool character_is_invisible(uint32_t code_point);

#endif
