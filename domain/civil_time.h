/*
 * Dates and times as a batch and an answer write them: RFC 3339 with a real calendar date and a
 * known offset. Everything inside the program is seconds, or milliseconds, since
 * 1970-01-01T00:00Z, leap seconds not counted. No clock and no time zone is read here.
 */
#ifndef TICKETPRESS_DOMAIN_CIVIL_TIME_H
#define TICKETPRESS_DOMAIN_CIVIL_TIME_H

#include "domain/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* 9999-12-31T23:59:59Z, the last second that can be written. The first is second 0. */
#define CIVIL_TIME_SECONDS_MAX INT64_C(253402300799)
#define CIVIL_TIME_MS_MAX      (CIVIL_TIME_SECONDS_MAX * 1000 + 999)

enum {
    CIVIL_TIME_CHARS = 20,    /* 2027-03-21T19:30:00Z */
    CIVIL_TIME_MS_CHARS = 24, /* 2027-03-21T19:30:00.250Z */
};

struct civil_time {
    int64_t seconds;   /* 0..CIVIL_TIME_SECONDS_MAX */
    bool has_fraction; /* a fraction of a second other than zero was given, and is left out */
};

enum civil_time_fault {
    CIVIL_TIME_OK,
    CIVIL_TIME_BAD_SHAPE,    /* not YYYY-MM-DDThh:mm:ss[.fraction](Z|+hh:mm|-hh:mm) */
    CIVIL_TIME_NO_OFFSET,    /* right but for a missing offset: the instant is not known */
    CIVIL_TIME_NO_SUCH_DATE, /* such as February 30 */
    CIVIL_TIME_NO_SUCH_TIME, /* such as 24:00:00 */
    CIVIL_TIME_LEAP_SECOND,  /* second 60: no clock of this program knows it */
    CIVIL_TIME_BAD_OFFSET,   /* beyond 23:59 */
    CIVIL_TIME_OUT_OF_RANGE, /* before 1970 or after 9999, in UTC */
    CIVIL_TIME_FAULT_COUNT
};

/* What is wrong, as a part of a sentence for people; "" for CIVIL_TIME_OK. */
const char *civil_time_fault_reason(enum civil_time_fault fault);

/*
 * Read one RFC 3339 date-time: the whole text, nothing before or after it. `t` and `z` may be
 * small, as the RFC's grammar has it; a space in place of `T` is refused. "-00:00" is UTC.
 *
 * Out:     time   set only when the result is CIVIL_TIME_OK
 */
MUST_USE enum civil_time_fault civil_time_read(struct text text, struct civil_time *time);

/*
 * Write a point in time as RFC 3339 in UTC: to the second, the rest of it cut off, and to the
 * millisecond.
 *
 * In:      ms    0..CIVIL_TIME_MS_MAX
 * Out:     text  always of the same length, zero-terminated
 */
void civil_time_write(int64_t ms, char text[CIVIL_TIME_CHARS + 1]);
void civil_time_write_ms(int64_t ms, char text[CIVIL_TIME_MS_CHARS + 1]);

#endif
