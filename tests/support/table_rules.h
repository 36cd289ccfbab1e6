/*
 * Text rules from small tables, for tests that need no ICU: some composed letters, six time zones,
 * locales by their shape, six currencies. What the invalid requests of fixtures/ say is the same
 * under these and under ICU.
 */
#ifndef TICKETPRESS_TESTS_SUPPORT_TABLE_RULES_H
#define TICKETPRESS_TESTS_SUPPORT_TABLE_RULES_H

#include "domain/text_rules.h"

extern const struct text_rules TABLE_RULES;

#endif
