#include "domain/civil_time.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static enum civil_time_fault read_text(const char *text, struct civil_time *time)
{
    return civil_time_read((struct text){.data = text, .len = strlen(text)}, time);
}

static const struct {
    const char *text;
    int64_t seconds;
    bool has_fraction;
} RIGHT[] = {
    {"1970-01-01T00:00:00Z", 0, false},
    {"1969-12-31T23:00:00-01:00", 0, false},
    {"1970-01-01T00:00:01z", 1, false},
    {"1970-01-01t00:00:00Z", 0, false},
    {"2000-02-29T12:00:00Z", 951825600, false},
    {"2016-12-31T23:59:59Z", 1483228799, false},
    {"2020-01-01T00:00:00Z", 1577836800, false},
    {"2027-03-21T20:30:00+01:00", 1805657400, false},
    {"2027-03-21T19:30:00-00:00", 1805657400, false},
    {"2027-03-22T01:00:00+05:30", 1805657400, false},
    {"2027-03-21T19:30:00.0Z", 1805657400, false},
    {"2027-03-21T19:30:00.000000000000000000000000000001Z", 1805657400, true},
    {"2027-03-21T19:30:00.5+00:00", 1805657400, true},
    {"2028-02-29T23:59:59+23:59", 1835395259, false},
    {"2100-03-01T00:00:00Z", 4107542400, false},
    {"9999-12-31T23:59:59Z", CIVIL_TIME_SECONDS_MAX, false},
};

Test(civil_time_read, gives_seconds_since_1970)
{
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        struct civil_time time = {.seconds = -1};

        cr_expect(read_text(RIGHT[i].text, &time) == CIVIL_TIME_OK, "%s", RIGHT[i].text);
        cr_expect(time.seconds == RIGHT[i].seconds, "%s: %lld", RIGHT[i].text,
                  (long long)time.seconds);
        cr_expect(time.has_fraction == RIGHT[i].has_fraction, "%s", RIGHT[i].text);
    }
}

static const struct {
    const char *text;
    enum civil_time_fault fault;
} WRONG[] = {
    {"", CIVIL_TIME_BAD_SHAPE},
    {"2027", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30Z", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21 19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {" 2027-03-21T19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00Z ", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00ZZ", CIVIL_TIME_BAD_SHAPE},
    {"2027-3-21T19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {"27-03-21T19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {"+2027-03-21T19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {"12027-03-21T19:30:00Z", CIVIL_TIME_BAD_SHAPE},
    {"20270321T193000Z", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00.Z", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00,5Z", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00+0100", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00+01", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00+01:000", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00 +01:00", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00Europe/Madrid", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00\u22120100", CIVIL_TIME_BAD_SHAPE},
    {"2027-03-21T19:30:00", CIVIL_TIME_NO_OFFSET},
    {"2027-03-21T19:30:00.5", CIVIL_TIME_NO_OFFSET},
    {"2027-00-21T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-13-21T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-03-00T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-03-32T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-04-31T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-02-29T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2100-02-29T19:30:00Z", CIVIL_TIME_NO_SUCH_DATE},
    {"2027-03-21T24:00:00Z", CIVIL_TIME_NO_SUCH_TIME},
    {"2027-03-21T19:60:00Z", CIVIL_TIME_NO_SUCH_TIME},
    {"2027-03-21T19:30:61Z", CIVIL_TIME_NO_SUCH_TIME},
    {"2027-03-21T24:00:60Z", CIVIL_TIME_NO_SUCH_TIME},
    {"2016-12-31T23:59:60Z", CIVIL_TIME_LEAP_SECOND},
    {"2017-01-01T00:59:60.5+01:00", CIVIL_TIME_LEAP_SECOND},
    {"2027-03-21T19:30:00+24:00", CIVIL_TIME_BAD_OFFSET},
    {"2027-03-21T19:30:00+01:60", CIVIL_TIME_BAD_OFFSET},
    {"1969-12-31T23:59:59Z", CIVIL_TIME_OUT_OF_RANGE},
    {"1970-01-01T00:59:59+01:00", CIVIL_TIME_OUT_OF_RANGE},
    {"0000-02-29T00:00:00Z", CIVIL_TIME_OUT_OF_RANGE},
    {"9999-12-31T23:59:59-00:01", CIVIL_TIME_OUT_OF_RANGE},
};

Test(civil_time_read, refuses_everything_else_with_its_reason)
{
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct civil_time time = {.seconds = -1};
        enum civil_time_fault const fault = read_text(WRONG[i].text, &time);

        cr_expect(fault == WRONG[i].fault, "\"%s\": %d", WRONG[i].text, (int)fault);
        cr_expect(time.seconds == -1, "%s", WRONG[i].text);
    }
}

Test(civil_time_read, goes_by_the_length_of_the_text)
{
    struct civil_time time;

    cr_expect(civil_time_read((struct text){.data = "2027-03-21T19:30:00Z+", .len = 20}, &time) ==
              CIVIL_TIME_OK);
    cr_expect(civil_time_read((struct text){.data = "2027-03-21T19:30:00Z\0", .len = 21}, &time) ==
              CIVIL_TIME_BAD_SHAPE);
    cr_expect(civil_time_read((struct text){0}, &time) == CIVIL_TIME_BAD_SHAPE);
}

Test(civil_time_read, knows_every_day_from_1970_to_9999)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = 0;

    for (int year = 1970; year <= 9999; year++)
        for (int month = 1; month <= 12; month++) {
            bool const is_leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
            int const last = DAYS[month - 1] + (month == 2 && is_leap);
            struct civil_time time = {0};
            char text[40];

            snprintf(text, sizeof text, "%04d-%02d-%02dT00:00:00Z", year, month, last);
            day += last;
            cr_assert(read_text(text, &time) == CIVIL_TIME_OK, "%s", text);
            cr_assert(time.seconds == (day - 1) * 86400, "%s", text);
            snprintf(text, sizeof text, "%04d-%02d-%02dT00:00:00Z", year, month, last + 1);
            cr_assert(read_text(text, &time) == CIVIL_TIME_NO_SUCH_DATE, "%s", text);
        }
}

static const struct {
    int64_t ms;
    const char *text;
} WRITTEN[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {1, "1970-01-01T00:00:00.001Z"},
    {86399999, "1970-01-01T23:59:59.999Z"},
    {86400000, "1970-01-02T00:00:00.000Z"},
    {951782399999, "2000-02-28T23:59:59.999Z"},
    {951825600000, "2000-02-29T12:00:00.000Z"},
    {1609459199000, "2020-12-31T23:59:59.000Z"},
    {1805657400250, "2027-03-21T19:30:00.250Z"},
    {CIVIL_TIME_MS_MAX, "9999-12-31T23:59:59.999Z"},
};

Test(civil_time_write_ms, writes_milliseconds)
{
    for (size_t i = 0; i < sizeof WRITTEN / sizeof *WRITTEN; i++) {
        char text[CIVIL_TIME_MS_CHARS + 1];

        civil_time_write_ms(WRITTEN[i].ms, text);
        cr_expect_str_eq(text, WRITTEN[i].text);
    }
}

Test(civil_time_write, cuts_the_milliseconds_off)
{
    for (size_t i = 0; i < sizeof WRITTEN / sizeof *WRITTEN; i++) {
        char expected[CIVIL_TIME_CHARS + 1], text[CIVIL_TIME_CHARS + 1];

        snprintf(expected, sizeof expected, "%.19sZ", WRITTEN[i].text);
        civil_time_write(WRITTEN[i].ms, text);
        cr_expect_str_eq(text, expected);
    }
}

Test(civil_time_write, is_the_inverse_of_read_on_every_day)
{
    for (int64_t seconds = 86399; seconds <= CIVIL_TIME_SECONDS_MAX; seconds += 86400) {
        struct civil_time time = {0};
        char text[CIVIL_TIME_CHARS + 1];

        civil_time_write(seconds * 1000, text);
        cr_assert(read_text(text, &time) == CIVIL_TIME_OK, "%s", text);
        cr_assert(time.seconds == seconds, "%s", text);
    }
}

Test(civil_time_write, asserts_its_first_second, .signal = SIGABRT)
{
    char text[CIVIL_TIME_CHARS + 1];

    civil_time_write(-1, text);
}

Test(civil_time_write_ms, asserts_its_last_millisecond, .signal = SIGABRT)
{
    char text[CIVIL_TIME_MS_CHARS + 1];

    civil_time_write_ms(CIVIL_TIME_MS_MAX + 1, text);
}

Test(civil_time_fault_reason, has_words_for_each)
{
    cr_expect_str_empty(civil_time_fault_reason(CIVIL_TIME_OK));
    for (enum civil_time_fault f = CIVIL_TIME_BAD_SHAPE; f < CIVIL_TIME_FAULT_COUNT; f++)
        cr_expect_str_not_empty(civil_time_fault_reason(f));
}
