/*
 * Comparing words of the standards, which are ASCII and take no notice of case (URI schemes,
 * language tags), in any locale of the process.
 */
#ifndef TICKETPRESS_DOMAIN_ASCII_H
#define TICKETPRESS_DOMAIN_ASCII_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the first len bytes of both are the same but for the case of A to Z. */
bool ascii_equals_any_case(const char *a, const char *b, size_t len);

#endif
