/*
 * UTF-8 as Unicode defines it (Table 3-7 of the Unicode Standard): no overlong forms, no
 * surrogates, nothing above U+10FFFF. Works on bytes with a length, so U+0000 is a character like
 * any other.
 */
#ifndef TICKETPRESS_DOMAIN_UTF8_H
#define TICKETPRESS_DOMAIN_UTF8_H

#include "domain/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_SEQUENCE_BYTES_MAX = 4 };

/*
 * The first code point of data.
 *
 * In:      data, len  any bytes
 * Out:     code_point U+0000..U+10FFFF without surrogates; set only when the result is not 0
 * Returns: the length of its sequence, 1..4; 0 when data is empty or does not begin with a
 *          complete, valid sequence
 */
size_t utf8_decode(const char *data, size_t len, uint32_t *code_point);

/* Whether text is valid UTF-8 from end to end; the empty text is. */
bool utf8_is_valid(struct text text);

/* The number of code points of a valid text. */
size_t utf8_count(struct text text);

/* The length of the longest prefix of a valid text that has at most bytes_max bytes and does not
 * end inside a sequence. */
size_t utf8_prefix(struct text text, size_t bytes_max);

#endif
