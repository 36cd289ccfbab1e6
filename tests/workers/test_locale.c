#include "workers/locale.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What CLDR puts between numbers and letters. */
#define NBSP  "\u00A0"
#define NNBSP "\u202F"

static struct text_rules rules;
static struct locale_formatter *formatter;
static struct arena arena;

static void setup(void)
{
    struct error err = {0};

    cr_assert_eq(locale_rules(&rules, &err), ST_OK, "%s", err.text);
    cr_assert_eq(locale_formatter_new(&formatter, &err), ST_OK, "%s", err.text);
}

static void teardown(void)
{
    locale_formatter_free(&formatter);
    cr_expect_null(formatter);
    arena_clear(&arena);
}

static struct text text_of(const char *data)
{
    return (struct text){.data = data, .len = strlen(data)};
}

/* ---- rules ---- */

Test(locale_rules, know_the_zones, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name;
        bool is_zone;
    } ROWS[] = {
        {"Europe/Madrid", true},
        {"Europe/Berlin", true},
        {"Asia/Kolkata", true},
        {"Asia/Calcutta", true},
        {"America/Argentina/Buenos_Aires", true},
        {"Pacific/Chatham", true},
        {"UTC", true},
        {"Etc/UTC", true},
        {"Etc/GMT+3", true},
        {"CET", true},
        {"EST5EDT", true},
        {"", false},
        {"BST", false}, /* ICU's is Bangladesh */
        {"IST", false},
        {"PST", false},
        {"SystemV/PST8PDT", false},
        {"Mars/Base", false},
        {"GMT+3", false},
        {"GMT+03:00", false},
        {"+03:00", false},
        {"UTC+3", false},
        {"Etc/Unknown", false},
        {"europe/madrid", false},
        {"Europe/Madrid ", false},
        {" Europe/Madrid", false},
        {"Europe", false},
        {"Europe/M\u00E1drid", false},
        {"Europe/\nMadrid", false},
        {"../../etc/passwd", false},
        {"A/very/long/name/that/no/zone/has/and/that/goes/on/for/many/more/letters", false},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(rules.is_zone(text_of(ROWS[i].name)), ROWS[i].is_zone, "%s", ROWS[i].name);
    cr_expect_not(rules.is_zone((struct text){"UTC\0CET", 7}));
}

Test(locale_rules, know_the_locales, .init = setup, .fini = teardown)
{
    static const struct {
        const char *tag;
        bool is_locale;
    } ROWS[] = {
        {"en-GB", true},
        {"es-ES", true},
        {"de", true},
        {"sr-Latn-RS", true},
        {"zh-Hant", true},
        {"es-419", true},
        {"EN-gb", true},
        {"en-u-nu-latn", true},
        {"de-1996", true},
        {"tlh", true},
        {"", false},
        {"und", false},
        {"und-DE", false},
        {"x-private", false},
        {"e", false},
        {"englishlanguage", false},
        {"en_GB", false},
        {"en-GB ", false},
        {"en--GB", false},
        {"en-", false},
        {"en-GB-", false},
        {"en-GB@currency=EUR", false},
        {"es-ES.UTF-8", false},
        {"d\u00E9", false},
        {"../de", false},
        {"en-a-bbbbbbbb-cccccccc-dddddddd-eeeeeeee-ffffffff-gggggggg-hhhhhhhh", false},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(rules.is_locale(text_of(ROWS[i].tag)), ROWS[i].is_locale, "%s", ROWS[i].tag);
    cr_expect_not(rules.is_locale((struct text){"en\0GB", 5}));
}

Test(locale_is_right_to_left, goes_by_the_script, .init = setup, .fini = teardown)
{
    static const struct {
        const char *tag;
        bool expected;
    } ROWS[] = {
        {"ar", true},       {"ar-EG", true},    {"he-IL", true},        {"iw", true},
        {"fa", true},       {"ur-PK", true},    {"ps", true},           {"sd", true},
        {"ug", true},       {"yi", true},       {"dv", true},           {"ckb", true},
        {"ku-Arab", true},  {"az-Arab", true},  {"pa-Arab-PK", true},   {"syr", true},
        {"nqo", true},      {"en", false},      {"en-GB", false},       {"ku", false},
        {"ar-Latn", false}, {"sd-Deva", false}, {"az", false},          {"pa", false},
        {"ja-JP", false},   {"th", false},      {"en-IL", false},       {"he-Latn", false},
        {"en-Arab", true},  {"tlh", false},     {"ar-u-nu-latn", true},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bool is_right_to_left = !ROWS[i].expected;
        struct text const tag = {.data = ROWS[i].tag, .len = strlen(ROWS[i].tag)};

        cr_expect_eq(locale_is_right_to_left(tag, &is_right_to_left, NULL), ST_OK, "%s",
                     ROWS[i].tag);
        cr_expect_eq(is_right_to_left, ROWS[i].expected, "%s", ROWS[i].tag);
    }
}

Test(locale_rules, know_the_minor_units, .init = setup, .fini = teardown)
{
    static const struct {
        const char *code;
        int digits;
    } ROWS[] = {
        {"EUR", 2}, {"USD", 2}, {"GBP", 2},  {"JPY", 0},  {"KRW", 0},  {"ISK", 0},
        {"KWD", 3}, {"TND", 3}, {"CLF", 4},  {"UYW", 4},  {"HUF", 2},  {"IQD", 3},
        {"AED", 2}, {"ZWG", 2}, {"XXX", -1}, {"XAU", -1}, {"DEM", -1}, {"eur", -1},
        {"EU", -1}, {"", -1},   {"E R", -1}, {"UR ", -1}, {"R G", -1},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char code[4] = "";

        memcpy(code, ROWS[i].code, strlen(ROWS[i].code));
        cr_expect_eq(rules.currency_digits(code), ROWS[i].digits, "%s", ROWS[i].code);
    }
}

static const struct {
    const char *name, *in, *out;
} NFC_ROWS[] = {
    {"nothing", "", ""},
    {"ASCII", "Ana Li", "Ana Li"},
    {"Latin-1", "Ren\u00E9", "Ren\u00E9"},
    {"decomposed", "Rene\u0301 Du\u0308rr", "Ren\u00E9 D\u00FCrr"},
    {"two marks", "e\u0302\u0303", "\u1EC5"},
    {"marks in another order", "a\u0323\u0302", "\u1EAD"},
    {"marks to be sorted", "x\u0301\u0323", "x\u0323\u0301"},
    {"no composed form", "x\u0302", "x\u0302"},
    {"a letter of its own", "\u212B", "\u00C5"},
    {"Hangul", "\u1112\u1161\u11AB", "\uD55C"},
    {"the largest growth", "\uFB2C", "\u05E9\u05BC\u05C1"},
    {"beyond the BMP", "\U0001D15E", "\U0001D157\U0001D165"},
};

Test(locale_rules, normalise, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof NFC_ROWS / sizeof *NFC_ROWS; i++) {
        struct text const in = text_of(NFC_ROWS[i].in);
        bool const is_same = strcmp(NFC_ROWS[i].in, NFC_ROWS[i].out) == 0;
        struct text out = {0};

        cr_assert_eq(rules.nfc(in, &arena, &out, NULL), ST_OK, "%s", NFC_ROWS[i].name);
        cr_expect_str_eq(out.data, NFC_ROWS[i].out, "%s", NFC_ROWS[i].name);
        cr_expect_eq(out.len, strlen(NFC_ROWS[i].out), "%s", NFC_ROWS[i].name);
        cr_expect_eq(out.data == in.data, is_same, "%s", NFC_ROWS[i].name);
    }
}

Test(locale_rules, normalise_long_texts_that_grow, .init = setup, .fini = teardown)
{
    enum { COUNT = 20000 };
    char *in = malloc(COUNT * 3 + 1);
    struct text out = {0};

    cr_assert_not_null(in);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(in + i * 3, "\uFB2C", 3);
    in[COUNT * 3] = '\0';
    cr_assert_eq(rules.nfc((struct text){in, COUNT * 3}, &arena, &out, NULL), ST_OK);
    cr_expect_eq(out.len, COUNT * 6);
    free(in);
}

Test(locale_rules, normalise_says_when_memory_ends, .init = setup, .fini = teardown)
{
    bool has_failed = true;

    for (size_t call = 1; has_failed; call++) {
        struct text out = {0};
        enum status st;

        arena_clear(&arena);
        failing_memory_start(call);
        st = rules.nfc(text_of("e\u0301"), &arena, &out, NULL);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
    }
    /* Longer than any body may be: refused before a length overflows. */
    cr_expect_eq(
        rules.nfc((struct text){"\u0301", (size_t)1 << 40}, &arena, &(struct text){0}, NULL),
        ST_NO_MEMORY);
}

/* ---- dates and times ---- */

enum {
    MARCH_21_2027 = 1805657400,    /* 2027-03-21T19:30:00Z, a Sunday before the clocks change */
    MARCH_27_2027_19 = 1806174000, /* 19:00Z; the clocks change the night after */
    MARCH_28_2027_19 = 1806260400,
    JULY_1_2027 = 1814443200,      /* 12:00Z */
    NOVEMBER_19_2027 = 1826627400, /* 12:30Z */
};

static const struct {
    const char *tag, *zone;
    int64_t at_s;
    const char *date, *time, *label;
} MOMENTS[] = {
    {"en-GB", "Europe/Madrid", MARCH_21_2027, "Sunday, 21 March 2027", "20:30", "CET"},
    {"es-ES", "Europe/Madrid", MARCH_21_2027, "domingo, 21 de marzo de 2027", "20:30", "CET"},
    {"de-DE", "Europe/Berlin", MARCH_21_2027, "Sonntag, 21. M\u00E4rz 2027", "20:30", "MEZ"},
    {"fr-FR", "Europe/Paris", MARCH_21_2027, "dimanche 21 mars 2027", "20:30", "UTC+01:00"},
    {"en-GB", "Europe/Madrid", JULY_1_2027, "Thursday, 1 July 2027", "14:00", "CEST"},
    {"de-DE", "Europe/Berlin", JULY_1_2027, "Donnerstag, 1. Juli 2027", "14:00", "MESZ"},
    {"en-GB", "Europe/London", JULY_1_2027, "Thursday, 1 July 2027", "13:00", "BST"},
    {"en-GB", "Europe/London", MARCH_21_2027, "Sunday, 21 March 2027", "19:30", "GMT"},
    {"en-GB", "Asia/Kolkata", MARCH_21_2027, "Monday, 22 March 2027", "01:00", "GMT+05:30"},
    {"es-ES", "Asia/Kolkata", MARCH_21_2027, "lunes, 22 de marzo de 2027", "1:00", "GMT+05:30"},
    {"en-US", "America/New_York", MARCH_21_2027, "Sunday, March 21, 2027", "3:30" NNBSP "PM",
     "EDT"},
    {"en-GB", "UTC", MARCH_21_2027, "Sunday, 21 March 2027", "19:30", "UTC"},
    {"en-GB", "Pacific/Chatham", MARCH_21_2027, "Monday, 22 March 2027", "09:15", "GMT+13:45"},
    /* H20: the venue's time, not the server's */
    {"en-GB", "Europe/Berlin", NOVEMBER_19_2027, "Friday, 19 November 2027", "13:30", "CET"},
    /* H21: the offset of the event's day */
    {"en-GB", "Europe/Berlin", MARCH_27_2027_19, "Saturday, 27 March 2027", "20:00", "CET"},
    {"en-GB", "Europe/Berlin", MARCH_28_2027_19, "Sunday, 28 March 2027", "21:00", "CEST"},
    /* a language that ICU does not know */
    {"tlh", "Europe/Madrid", MARCH_21_2027, "Sunday, 21 March 2027", "20:30", "CET"},
    {"zz-ZZ", "Europe/Madrid", MARCH_21_2027, "Sunday, 21 March 2027", "20:30", "CET"},
    /* the epoch, before it, and far away */
    {"en-GB", "UTC", 0, "Thursday, 1 January 1970", "00:00", "UTC"},
    {"en-GB", "UTC", -1, "Wednesday, 31 December 1969", "23:59", "UTC"},
    {"en-GB", "UTC", INT64_C(253402300799), "Friday, 31 December 9999", "23:59", "UTC"},
};

static void expect_moment(size_t row, enum locale_moment what, const char *expected)
{
    struct text text = {0};
    struct error err = {0};

    cr_assert_eq(locale_moment(formatter, text_of(MOMENTS[row].tag), text_of(MOMENTS[row].zone),
                               MOMENTS[row].at_s, what, &arena, &text, &err),
                 ST_OK, "%s %s: %s", MOMENTS[row].tag, MOMENTS[row].zone, err.text);
    cr_expect_str_eq(text.data, expected, "%s %s: %s", MOMENTS[row].tag, MOMENTS[row].zone,
                     text.data);
    cr_expect_eq(text.len, strlen(expected));
}

static void expect_all_moments(void)
{
    for (size_t i = 0; i < sizeof MOMENTS / sizeof *MOMENTS; i++) {
        expect_moment(i, LOCALE_DATE, MOMENTS[i].date);
        expect_moment(i, LOCALE_TIME, MOMENTS[i].time);
        expect_moment(i, LOCALE_ZONE, MOMENTS[i].label);
    }
}

Test(locale_moment, is_the_venues_in_the_batchs_locale, .init = setup, .fini = teardown)
{
    expect_all_moments();
}

Test(locale_moment, does_not_depend_on_what_was_asked_before, .init = setup, .fini = teardown)
{
    for (size_t i = sizeof MOMENTS / sizeof *MOMENTS; i-- > 0;) {
        expect_moment(i, LOCALE_ZONE, MOMENTS[i].label);
        expect_moment(i, LOCALE_DATE, MOMENTS[i].date);
        expect_moment(i, LOCALE_TIME, MOMENTS[i].time);
    }
}

/* The environment is that of the test's own process; ICU reads it when it is first asked. */
static void setup_in_japan(void)
{
    setenv("LC_ALL", "ja_JP.UTF-8", 1);
    setenv("TZ", "Asia/Tokyo", 1);
    tzset();
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C.UTF-8");
    setup();
}

Test(locale_moment, does_not_depend_on_the_servers_locale_and_zone, .init = setup_in_japan,
     .fini = teardown)
{
    expect_all_moments();
}

Test(locale_moment, says_when_memory_ends, .init = setup, .fini = teardown)
{
    struct text text = {0};

    failing_memory_start(1);
    cr_expect_eq(locale_moment(formatter, text_of("en-GB"), text_of("UTC"), 0, LOCALE_DATE, &arena,
                               &text, NULL),
                 ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    expect_moment(0, LOCALE_DATE, MOMENTS[0].date);
}

Test(locale_moment, refuses_a_zone_that_no_rule_lets_pass, .init = setup, .fini = teardown)
{
    struct text text = {0};

    cr_expect_eq(locale_moment(formatter, text_of("en-GB"), text_of("\u00E9"), 0, LOCALE_DATE,
                               &arena, &text, NULL),
                 ST_LIBRARY);
    cr_expect_eq(locale_moment(formatter, text_of("en-GB"), text_of(""), 0, LOCALE_DATE, &arena,
                               &text, NULL),
                 ST_LIBRARY);
}

Test(locale_moment, without_a_locale_is_our_fault, .init = setup, .signal = SIGABRT)
{
    struct text text = {0};

    (void)!locale_moment(formatter, text_of(""), text_of("UTC"), 0, LOCALE_DATE, &arena, &text,
                         NULL);
}

/* ---- money ---- */

static const struct {
    const char *tag;
    int64_t amount;
    const char *currency, *text;
} PRICES[] = {
    {"en-GB", 4500, "EUR", "\u20AC45.00"},
    {"es-ES", 4500, "EUR", "45,00" NBSP "\u20AC"},
    {"de-DE", 4500, "EUR", "45,00" NBSP "\u20AC"},
    {"fr-FR", 4500, "EUR", "45,00" NBSP "\u20AC"},
    {"de-DE", 123456, "EUR", "1.234,56" NBSP "\u20AC"},
    {"fr-FR", 123456, "EUR", "1" NNBSP "234,56" NBSP "\u20AC"},
    {"en-GB", 1500, "JPY", "JP\u00A51,500"},
    {"de-DE", 1500, "JPY", "1.500" NBSP "\u00A5"},
    {"en-GB", 1500, "KRW", "\u20A91,500"},
    {"fr-FR", 1500, "KRW", "1" NNBSP "500" NBSP "\u20A9"},
    {"en-GB", 1234, "KWD", "KWD" NBSP "1.234"},
    {"es-ES", 1234, "KWD", "1,234" NBSP "KWD"},
    {"de-DE", 1234, "KWD", "1,234" NBSP "KWD"},
    {"en-GB", 2599, "USD", "US$25.99"},
    {"en-US", 2599, "USD", "$25.99"},
    {"es-ES", 2599, "USD", "25,99" NBSP "US$"},
    {"de-DE", 2599, "USD", "25,99" NBSP "$"},
    {"fr-FR", 2599, "USD", "25,99" NBSP "$US"},
    {"en-GB", 1, "EUR", "\u20AC0.01"},
    {"en-GB", 10, "EUR", "\u20AC0.10"},
    {"en-GB", 1, "JPY", "JP\u00A51"},
    {"en-GB", 1, "CLF", "CLF" NBSP "0.0001"},
    {"en-GB", 100, "HUF", "HUF" NBSP "1.00"},
    {"en-GB", INT64_C(1000000000000), "EUR", "\u20AC10,000,000,000.00"},
    {"en-GB", INT64_C(999999999999), "EUR", "\u20AC9,999,999,999.99"},
    {"tlh", 4500, "EUR", "\u20AC45.00"},
};

static void expect_all_prices(void)
{
    for (size_t i = 0; i < sizeof PRICES / sizeof *PRICES; i++) {
        struct text text = {0};
        char currency[4];

        snprintf(currency, sizeof currency, "%s", PRICES[i].currency);
        cr_assert_eq(locale_money(formatter, text_of(PRICES[i].tag), PRICES[i].amount, currency,
                                  &arena, &text, NULL),
                     ST_OK);
        cr_expect_str_eq(text.data, PRICES[i].text, "%s %s: %s", PRICES[i].tag, PRICES[i].currency,
                         text.data);
    }
}

Test(locale_money, has_the_currencys_digits_and_the_locales_signs, .init = setup, .fini = teardown)
{
    expect_all_prices();
}

Test(locale_money, does_not_depend_on_the_servers_locale, .init = setup_in_japan, .fini = teardown)
{
    expect_all_prices();
}

Test(locale_money, says_when_memory_ends, .init = setup, .fini = teardown)
{
    struct text text = {0};

    failing_memory_start(1);
    cr_expect_eq(locale_money(formatter, text_of("en-GB"), 1, "EUR", &arena, &text, NULL),
                 ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
}

/* ---- every language that labels are written in ---- */

static void expect_text(struct text text, const json_t *expected, const char *tag)
{
    cr_assert(json_is_string(expected), "%s", tag);
    cr_expect(text.len == json_string_length(expected) &&
                  memcmp(text.data, json_string_value(expected), text.len) == 0,
              "%s: \"%s\", not \"%s\"", tag, text.data, json_string_value(expected));
}

static void expect_written(const char *tag, const char *zone, enum locale_moment what,
                           const json_t *expected)
{
    struct text text = {0};

    cr_assert_eq(locale_moment(formatter, text_of(tag), text_of(zone), MARCH_21_2027, what, &arena,
                               &text, NULL),
                 ST_OK);
    expect_text(text, expected, tag);
}

/* Named by currency and minor units, such as "JPY 1500". */
static void expect_priced(const char *tag, const char *money, const json_t *expected)
{
    struct text text = {0};
    char currency[4];

    snprintf(currency, sizeof currency, "%s", money);
    cr_assert_eq(locale_money(formatter, text_of(tag), strtoll(money + sizeof currency, NULL, 10),
                              currency, &arena, &text, NULL),
                 ST_OK);
    expect_text(text, expected, tag);
}

/* A moment of 2027-03-21T19:30Z: its date and time in Madrid, its label in four zones, one without
 * whole hours; and money of three, two and no decimals, with and without thousands. */
static void expect_golden_locales(void)
{
    json_t *locales = json_load_file("fixtures/golden/locales.json", JSON_REJECT_DUPLICATES, NULL);
    const char *tag, *name;
    json_t *locale, *expected;

    cr_assert_geq(json_object_size(locales), 32);
    json_object_foreach(locales, tag, locale)
    {
        cr_assert_eq(json_object_size(locale), 4, "%s", tag);
        expect_written(tag, "Europe/Madrid", LOCALE_DATE, json_object_get(locale, "date"));
        expect_written(tag, "Europe/Madrid", LOCALE_TIME, json_object_get(locale, "time"));
        cr_expect_eq(json_object_size(json_object_get(locale, "zones")), 4, "%s", tag);
        json_object_foreach(json_object_get(locale, "zones"), name, expected)
            expect_written(tag, name, LOCALE_ZONE, expected);
        cr_expect_eq(json_object_size(json_object_get(locale, "money")), 4, "%s", tag);
        json_object_foreach(json_object_get(locale, "money"), name, expected)
            expect_priced(tag, name, expected);
    }
    json_decref(locales);
}

Test(locale_formatter, writes_every_language_as_its_readers_do, .init = setup, .fini = teardown)
{
    expect_golden_locales();
}

Test(locale_formatter, writes_every_language_so_on_any_server, .init = setup_in_japan,
     .fini = teardown)
{
    expect_golden_locales();
}

/* Numbers are the locale's own, and the tag may ask for others, or for another calendar. */
Test(locale_formatter, writes_the_digits_and_the_calendar_of_the_tag, .init = setup,
     .fini = teardown)
{
    static const struct {
        const char *tag, *time, *date;
    } ROWS[] = {
        {"ar-EG", "\u0668:\u0663\u0660 \u0645",
         "\u0627\u0644\u0623\u062D\u062F\u060C "
         "\u0662\u0661 \u0645\u0627\u0631\u0633 \u0662\u0660\u0662\u0667"},
        {"ar-EG-u-nu-latn", "8:30 \u0645",
         "\u0627\u0644\u0623\u062D\u062F\u060C 21 \u0645\u0627\u0631\u0633 2027"},
        {"ar-AE", "8:30 \u0645",
         "\u0627\u0644\u0623\u062D\u062F\u060C 21 \u0645\u0627\u0631\u0633 2027"},
        {"ar-SA-u-ca-gregory-nu-latn", "8:30 \u0645",
         "\u0627\u0644\u0623\u062D\u062F\u060C 21 \u0645\u0627\u0631\u0633 2027"},
        {"en-GB-u-hc-h12", "8:30" NNBSP "pm", "Sunday, 21 March 2027"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text text = {0};

        cr_assert_eq(locale_moment(formatter, text_of(ROWS[i].tag), text_of("Europe/Madrid"),
                                   MARCH_21_2027, LOCALE_TIME, &arena, &text, NULL),
                     ST_OK);
        cr_expect_str_eq(text.data, ROWS[i].time, "%s: %s", ROWS[i].tag, text.data);
        cr_assert_eq(locale_moment(formatter, text_of(ROWS[i].tag), text_of("Europe/Madrid"),
                                   MARCH_21_2027, LOCALE_DATE, &arena, &text, NULL),
                     ST_OK);
        cr_expect_str_eq(text.data, ROWS[i].date, "%s: %s", ROWS[i].tag, text.data);
    }
}

Test(locale_formatter_new, says_when_memory_ends)
{
    struct locale_formatter *made = NULL;

    failing_memory_start(1);
    cr_expect_eq(locale_formatter_new(&made, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_null(made);
    locale_formatter_free(&made);
}

/* ---- line breaks ---- */

/* Expected as the text with | where a line may and / where it must begin. */
static const char *const BREAKS[] = {
    "Ana",
    "Ana |Li",
    "Ana  |Li ",
    "Spring-|Fair",
    "1/2",
    "Open\n/Air",
    "Open\n/\n/Air\n",
    "\n",
    "Men\u00FC |\u00E0 |la |carte",
    "non\u00A0breaking",
    "e\u0301 |x\u0323\u0302 |z",
    "\u5C71|\u7530|\u82B1|\u5B50",
    "(Hall |2)",
    /* Thai, which puts no spaces between words, before a line feed and without one */
    "\u0E44\u0E21\u0E48|\u0E2D\u0E19\u0E38\u0E0D\u0E32\u0E15\n/\u0E43\u0E2B\u0E49",
    "\u0E01\u0E23\u0E38\u0E13\u0E32|\u0E41\u0E2A\u0E14\u0E07",
    "\u5C71\u3002|\u7530\n/\u7530",
};

static void expect_breaks(const char *marked)
{
    char plain[64];
    size_t len = 0, next = 0, count = 0;
    struct locale_break *breaks = NULL;
    struct locale_break expected[64];

    for (const char *c = marked; *c != '\0'; c++) {
        bool const is_after_space = c > marked && (c[-1] == '\n' || c[-1] == ' ');

        if (*c == '|' || (*c == '/' && is_after_space))
            expected[next++] = (struct locale_break){len, *c == '/'};
        else
            plain[len++] = *c;
    }
    plain[len] = '\0';
    expected[next++] = (struct locale_break){len, false};
    cr_assert_eq(locale_breaks(formatter, text_of("en-GB"), (struct text){plain, len}, &arena,
                               &breaks, &count, NULL),
                 ST_OK);
    cr_assert_eq(count, next, "%s: %zu", marked, count);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(breaks[i].offset, expected[i].offset, "%s: %zu", marked, i);
        cr_expect_eq(breaks[i].is_mandatory, expected[i].is_mandatory, "%s: %zu", marked, i);
    }
}

Test(locale_breaks, are_where_a_line_may_or_must_begin, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof BREAKS / sizeof *BREAKS; i++)
        expect_breaks(BREAKS[i]);
}

Test(locale_breaks, of_nothing_are_none, .init = setup, .fini = teardown)
{
    struct locale_break *breaks = NULL;
    size_t count = 1;

    cr_expect_eq(
        locale_breaks(formatter, text_of("en-GB"), text_of(""), &arena, &breaks, &count, NULL),
        ST_OK);
    cr_expect_eq(count, 0);
}

Test(locale_breaks, say_when_memory_ends, .init = setup, .fini = teardown)
{
    struct locale_break *breaks = NULL;
    size_t count = 0;

    failing_memory_start(1);
    cr_expect_eq(
        locale_breaks(formatter, text_of("en-GB"), text_of("a b"), &arena, &breaks, &count, NULL),
        ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
}
