/*
 * What ICU knows: normal forms, zones, currencies, and how a locale writes dates, times and money.
 * Never the process's own locale or zone: every call names both.
 */
#ifndef TICKETPRESS_WORKERS_LOCALE_H
#define TICKETPRESS_WORKERS_LOCALE_H

#include "domain/arena.h"
#include "domain/status.h"
#include "domain/text_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The rules of domain/text_rules.h by ICU's data and ISO 4217. Takes the process's own locale out
 * of ICU too, which would else write languages that it does not know in that one: so call this
 * first, before any formatter is made and any thread is started.
 *
 * Errors:  ST_LIBRARY  ICU's data is missing
 */
MUST_USE enum status locale_rules(struct text_rules *rules, struct error *err);

/*
 * Whether a locale is written from right to left: by its script, or that which its language is
 * mostly written in.
 *
 * In:      tag  BCP 47, by the rules above
 * Errors:  ST_LIBRARY, ST_NO_MEMORY
 * Threads: any
 */
MUST_USE enum status locale_is_right_to_left(struct text tag, bool *is_right_to_left,
                                             struct error *err);

/* A language that ICU does not know is written as en-GB. */
enum locale_moment { LOCALE_DATE, LOCALE_TIME, LOCALE_ZONE };

/* A formatter keeps what it opened for the last locale, zone and currency. One per worker. */
struct locale_formatter;

MUST_USE enum status locale_formatter_new(struct locale_formatter **formatter, struct error *err);
void locale_formatter_free(struct locale_formatter **formatter);

/*
 * A moment in a zone, as a locale writes it: the full date with its day of the week; the time of
 * day in the locale's usual clock; or the zone's short name, where the locale has one (CET), else
 * its offset (GMT+05:30, GMT-04:00).
 *
 * In:      tag   BCP 47; zone IANA name; both by the rules above
 *          at_s  seconds since 1970
 * Out:     text  in the arena, NFC
 * Errors:  ST_LIBRARY, ST_NO_MEMORY
 */
MUST_USE enum status locale_moment(struct locale_formatter *formatter, struct text tag,
                                   struct text zone, int64_t at_s, enum locale_moment what,
                                   struct arena *arena, struct text *text, struct error *err);

/*
 * Money with the currency's ISO 4217 digits and the locale's symbol and separators: JPY 1500 is
 * JP¥1,500 in en-GB, KWD 1234 is KWD 1.234.
 *
 * In:      amount    minor units, 0 or more
 *          currency  three capitals, by the rules above
 * Out, Errors: as above
 */
MUST_USE enum status locale_money(struct locale_formatter *formatter, struct text tag,
                                  int64_t amount, const char currency[4], struct arena *arena,
                                  struct text *text, struct error *err);

/* ---- line breaks ---- */

struct locale_break {
    size_t offset;     /* byte offset at which a new line may begin, or the text's length */
    bool is_mandatory; /* it must: the text before it ends with a line feed */
};

/*
 * The places where a text may be broken into lines (Unicode Standard Annex 14), in order; the last
 * is the end of the text.
 *
 * Out:     breaks  in the arena, count of them
 */
MUST_USE enum status locale_breaks(struct locale_formatter *formatter, struct text tag,
                                   struct text text, struct arena *arena,
                                   struct locale_break **breaks, size_t *count, struct error *err);

#endif
