#include "domain/civil_time.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const char *const FAULT_REASONS[] = {
    [CIVIL_TIME_OK] = "",
    [CIVIL_TIME_BAD_SHAPE] = "it must look like 2027-03-21T20:30:00+01:00 (RFC 3339)",
    [CIVIL_TIME_NO_OFFSET] = "it needs an offset such as +01:00, or Z, at its end",
    [CIVIL_TIME_NO_SUCH_DATE] = "there is no such date",
    [CIVIL_TIME_NO_SUCH_TIME] = "there is no such time of day",
    [CIVIL_TIME_LEAP_SECOND] = "second 60, a leap second, cannot be used",
    [CIVIL_TIME_BAD_OFFSET] = "there is no such offset",
    [CIVIL_TIME_OUT_OF_RANGE] = "it must be within the years 1970 to 9999 in UTC",
};
_Static_assert(sizeof FAULT_REASONS / sizeof *FAULT_REASONS == CIVIL_TIME_FAULT_COUNT,
               "a reason for each fault");

const char *civil_time_fault_reason(enum civil_time_fault fault)
{
    assert(fault < CIVIL_TIME_FAULT_COUNT);
    return FAULT_REASONS[fault];
}

enum { SECONDS_A_MINUTE = 60, SECONDS_AN_HOUR = 3600, SECONDS_A_DAY = 86400 };

/* The fields of the grammar (RFC 3339 section 5.6), read but not judged. */
struct fields {
    int year, month, day;
    int hour, minute, second;
    int offset_sign, offset_hour, offset_minute;
    bool has_fraction;
    bool has_offset;
};

struct scan {
    const char *at;
    const char *end;
};

static bool scan_char(struct scan *scan, char wanted)
{
    if (scan->at == scan->end || *scan->at != wanted)
        return false;
    scan->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool scan_number(struct scan *scan, int digits, int *number)
{
    int value = 0;

    for (int i = 0; i < digits; i++, scan->at++) {
        if (scan->at == scan->end || !is_digit(*scan->at))
            return false;
        value = value * 10 + (*scan->at - '0');
    }
    *number = value;
    return true;
}

static bool scan_date(struct scan *scan, struct fields *f)
{
    return scan_number(scan, 4, &f->year) && scan_char(scan, '-') &&
           scan_number(scan, 2, &f->month) && scan_char(scan, '-') &&
           scan_number(scan, 2, &f->day) && (scan_char(scan, 'T') || scan_char(scan, 't'));
}

/* time-secfrac, which may be left out: "." and at least one digit. */
static bool scan_fraction(struct scan *scan, struct fields *f)
{
    const char *first;

    if (!scan_char(scan, '.'))
        return true;
    for (first = scan->at; scan->at < scan->end && is_digit(*scan->at); scan->at++)
        if (*scan->at != '0')
            f->has_fraction = true;
    return scan->at > first;
}

static bool scan_clock(struct scan *scan, struct fields *f)
{
    return scan_number(scan, 2, &f->hour) && scan_char(scan, ':') &&
           scan_number(scan, 2, &f->minute) && scan_char(scan, ':') &&
           scan_number(scan, 2, &f->second) && scan_fraction(scan, f);
}

/* time-offset; its absence is left for the caller to name. */
static bool scan_offset(struct scan *scan, struct fields *f)
{
    f->has_offset = scan->at < scan->end;
    if (!f->has_offset || scan_char(scan, 'Z') || scan_char(scan, 'z'))
        return scan->at == scan->end;
    if (scan_char(scan, '+'))
        f->offset_sign = 1;
    else if (scan_char(scan, '-'))
        f->offset_sign = -1;
    else
        return false;
    return scan_number(scan, 2, &f->offset_hour) && scan_char(scan, ':') &&
           scan_number(scan, 2, &f->offset_minute) && scan->at == scan->end;
}

static bool is_leap_year(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of_month(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && is_leap_year(year) ? 29 : DAYS[month - 1];
}

static enum civil_time_fault fields_check(const struct fields *f)
{
    if (!f->has_offset)
        return CIVIL_TIME_NO_OFFSET;
    if (f->month < 1 || f->month > 12 || f->day < 1 || f->day > days_of_month(f->year, f->month))
        return CIVIL_TIME_NO_SUCH_DATE;
    if (f->second == 60 && f->hour <= 23 && f->minute <= 59)
        return CIVIL_TIME_LEAP_SECOND;
    if (f->hour > 23 || f->minute > 59 || f->second > 59)
        return CIVIL_TIME_NO_SUCH_TIME;
    if (f->offset_hour > 23 || f->offset_minute > 59)
        return CIVIL_TIME_BAD_OFFSET;
    return CIVIL_TIME_OK;
}

/* Days from 0001-01-01 to the first day of a year, in the Gregorian calendar. */
static int64_t days_before_year(int year)
{
    int64_t const past = year - 1;

    return past * 365 + past / 4 - past / 100 + past / 400;
}

static int64_t fields_seconds(const struct fields *f)
{
    int64_t days = days_before_year(f->year) - days_before_year(1970) + f->day - 1;
    int64_t const offset =
        f->offset_sign * (f->offset_hour * SECONDS_AN_HOUR + f->offset_minute * SECONDS_A_MINUTE);

    for (int month = 1; month < f->month; month++)
        days += days_of_month(f->year, month);
    return days * SECONDS_A_DAY + f->hour * SECONDS_AN_HOUR + f->minute * SECONDS_A_MINUTE +
           f->second - offset;
}

enum civil_time_fault civil_time_read(struct text text, struct civil_time *time)
{
    struct scan scan = {.at = text.data, .end = text.data + text.len};
    struct fields f = {0};
    enum civil_time_fault fault;
    int64_t seconds;

    if (text.len == 0 || !scan_date(&scan, &f) || !scan_clock(&scan, &f) || !scan_offset(&scan, &f))
        return CIVIL_TIME_BAD_SHAPE;
    fault = fields_check(&f);
    if (fault != CIVIL_TIME_OK)
        return fault;
    seconds = fields_seconds(&f);
    if (seconds < 0 || seconds > CIVIL_TIME_SECONDS_MAX)
        return CIVIL_TIME_OUT_OF_RANGE;
    *time = (struct civil_time){.seconds = seconds, .has_fraction = f.has_fraction};
    return CIVIL_TIME_OK;
}

/* ---- writing ---- */

/* The year that a day lies in; days count from 0001-01-01. */
static int year_of_day(int64_t days)
{
    int year = (int)(days / 366) + 1; /* never too late, and 21 years too early at most */

    while (days_before_year(year + 1) <= days)
        year++;
    return year;
}

/* Date and time of day of a second since 1970, in UTC. */
static struct fields fields_of_seconds(int64_t seconds)
{
    int64_t const day = seconds / SECONDS_A_DAY + days_before_year(1970);
    int const second_of_day = (int)(seconds % SECONDS_A_DAY);
    struct fields f = {.year = year_of_day(day), .month = 1};

    f.day = (int)(day - days_before_year(f.year)) + 1;
    while (f.day > days_of_month(f.year, f.month)) {
        f.day -= days_of_month(f.year, f.month);
        f.month++;
    }
    f.hour = second_of_day / SECONDS_AN_HOUR;
    f.minute = second_of_day % SECONDS_AN_HOUR / SECONDS_A_MINUTE;
    f.second = second_of_day % SECONDS_A_MINUTE;
    return f;
}

static void put_digits(char *text, int count, int number)
{
    for (int i = count - 1; i >= 0; i--, number /= 10)
        text[i] = (char)('0' + number % 10);
    assert(number == 0);
}

/* What both forms begin with. */
static void put_date_and_clock(int64_t seconds, char *text)
{
    static const char SHAPE[] = "0000-00-00T00:00:00";
    struct fields const f = fields_of_seconds(seconds);

    memcpy(text, SHAPE, strlen(SHAPE));
    put_digits(text, 4, f.year);
    put_digits(text + 5, 2, f.month);
    put_digits(text + 8, 2, f.day);
    put_digits(text + 11, 2, f.hour);
    put_digits(text + 14, 2, f.minute);
    put_digits(text + 17, 2, f.second);
}

void civil_time_write(int64_t ms, char text[CIVIL_TIME_CHARS + 1])
{
    assert(ms >= 0 && ms <= CIVIL_TIME_MS_MAX);
    put_date_and_clock(ms / 1000, text);
    memcpy(text + CIVIL_TIME_CHARS - 1, "Z", 2);
}

void civil_time_write_ms(int64_t ms, char text[CIVIL_TIME_MS_CHARS + 1])
{
    assert(ms >= 0 && ms <= CIVIL_TIME_MS_MAX);
    put_date_and_clock(ms / 1000, text);
    memcpy(text + CIVIL_TIME_MS_CHARS - 5, ".000Z", 6);
    put_digits(text + CIVIL_TIME_MS_CHARS - 4, 3, (int)(ms % 1000));
}
