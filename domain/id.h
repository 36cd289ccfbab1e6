/*
 * Which byte strings may name an event, a ticket or an order. One rule for the batch that brings an
 * id and for the token that carries it, so that whatever can be printed can also be verified. Ids
 * are compared byte by byte and are never normalised, trimmed or changed in case.
 */
#ifndef TICKETPRESS_DOMAIN_ID_H
#define TICKETPRESS_DOMAIN_ID_H

#include "domain/arena.h"

#include <stdbool.h>

/* 1..ID_BYTES_MAX bytes of A-Z a-z 0-9 . _ : - and neither "." nor "..". */
bool id_is_event(struct text id);

/*
 * Also the rule for order ids: 1..ID_BYTES_MAX bytes of valid UTF-8 without control characters
 * (general category Cc), white space (property White_Space of Unicode 15), `/` or `\`, and neither
 * "." nor "..".
 */
bool id_is_ticket(struct text id);

#endif
