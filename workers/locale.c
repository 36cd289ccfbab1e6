#include "workers/locale.h"

#include "workers/reserve.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/ubrk.h>
#include <unicode/ucal.h>
#include <unicode/uclean.h>
#include <unicode/udat.h>
#include <unicode/udatpg.h>
#include <unicode/uloc.h>
#include <unicode/unorm2.h>
#include <unicode/unumberformatter.h>
#include <unicode/ustring.h>
#include <unicode/utext.h>

enum {
    TAG_BYTES_MAX = 64,
    ZONE_UNITS_MAX = 65,
    FORMATTED_UNITS_MAX = 256,
    PATTERN_UNITS_MAX = 128,
    MINUS_SIGN = 0x2212,
    NFC_BYTES_MAX = 128 << 20, /* nine times this is still an int32_t */
};

/* Dates, money and line breaks of a language that ICU does not know. */
static const char DEFAULT_LOCALE[] = "en_GB";

static enum status icu_error(UErrorCode code, const char *what, struct error *err)
{
    enum status const st = code == U_MEMORY_ALLOCATION_ERROR ? ST_NO_MEMORY : ST_LIBRARY;

    return error_set(err, st, "%s: %s", what, u_errorName(code));
}

/* ICU must not be called when it might not come back: see workers/reserve.h. */
static enum status check_reserve(struct error *err)
{
    (void)reserve_was_touched();
    return reserve_is_low() ? error_set(err, ST_NO_MEMORY, "ICU's memory") : ST_OK;
}

/* After the calls. */
static void fail_if_touched(UErrorCode *code)
{
    if (reserve_was_touched())
        *code = U_MEMORY_ALLOCATION_ERROR;
}

/* ---- rules ---- */

/* Only characters from U+0300 on can be changed by NFC (UAX 15, section 9). */
static bool is_nfc_for_sure(struct text in)
{
    for (size_t i = 0; i < in.len; i++)
        if ((unsigned char)in.data[i] >= 0xCC)
            return false;
    return true;
}

static enum status utf8_from_units(const UChar *units, int32_t count, struct arena *arena,
                                   struct text *out, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    int32_t len = 0;
    char *data = arena_alloc(arena, (size_t)count * 3 + 1);

    if (data == NULL)
        return error_set(err, ST_NO_MEMORY, "a text");
    u_strToUTF8(data, count * 3 + 1, &len, units, count, &code);
    if (U_FAILURE(code))
        return icu_error(code, "text to UTF-8", err);
    *out = (struct text){.data = data, .len = (size_t)len};
    return ST_OK;
}

static enum status normalise(struct text in, UChar *units, UChar *normal, int32_t capacity,
                             struct arena *arena, struct text *out, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    const UNormalizer2 *nfc = unorm2_getNFCInstance(&code);
    int32_t count = 0;

    u_strFromUTF8(units, capacity, &count, in.data, (int32_t)in.len, &code);
    if (unorm2_isNormalized(nfc, units, count, &code)) {
        *out = in;
        return ST_OK;
    }
    count = unorm2_normalize(nfc, units, count, normal, capacity, &code);
    if (U_FAILURE(code))
        return icu_error(code, "normalisation", err);
    return utf8_from_units(normal, count, arena, out, err);
}

static enum status rule_nfc(struct text in, struct arena *arena, struct text *out,
                            struct error *err)
{
    /* A text grows at most threefold in NFC counted in UTF-16 (UAX 15, table 9), and UTF-16 has no
     * more units than UTF-8 has bytes. */
    size_t const capacity = in.len * 3 + 1;
    UChar *units;
    enum status st;

    if (is_nfc_for_sure(in)) {
        *out = in;
        return ST_OK;
    }
    st = check_reserve(err);
    if (st != ST_OK)
        return st;
    units = in.len <= NFC_BYTES_MAX ? malloc(2 * capacity * sizeof *units) : NULL;
    if (units == NULL)
        return error_set(err, ST_NO_MEMORY, "a text of %zu bytes", in.len);
    st = normalise(in, units, units + capacity, (int32_t)capacity, arena, out, err);
    free(units);
    if (st == ST_OK && reserve_was_touched())
        st = error_set(err, ST_NO_MEMORY, "a text of %zu bytes", in.len);
    return st;
}

/* Three-letter names that ICU keeps for old Java programs. They are no IANA names, and some
 * mislead: its BST is Bangladesh. */
static bool is_java_zone(const char *name)
{
    static const char NAMES[] = " ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST "
                                "MIT NET NST PLT PNT PRT PST SST VST ";
    char spaced[8];

    if (strlen(name) != 3)
        return strncmp(name, "SystemV/", 8) == 0;
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(NAMES, spaced) != NULL;
}

/* ICU takes zone names in ASCII only; false for anything else or too long. */
static bool units_from_ascii(struct text text, UChar *units, size_t units_max)
{
    if (text.len == 0 || text.len >= units_max)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
        units[i] = (UChar)text.data[i];
    }
    units[text.len] = 0;
    return true;
}

static bool rule_is_zone(struct text name)
{
    UErrorCode code = U_ZERO_ERROR;
    UBool is_system = false;
    UChar id[ZONE_UNITS_MAX];
    UChar canonical[ZONE_UNITS_MAX * 2];

    if (!units_from_ascii(name, id, ZONE_UNITS_MAX) || is_java_zone(name.data))
        return false;
    ucal_getCanonicalTimeZoneID(id, (int32_t)name.len, canonical, ZONE_UNITS_MAX * 2, &is_system,
                                &code);
    return U_SUCCESS(code) && is_system && strcmp(name.data, "Etc/Unknown") != 0;
}

/* A tag of private or undetermined language would be written in ICU's root locale, which is meant
 * for nobody. */
static bool rule_is_locale(struct text tag)
{
    UErrorCode code = U_ZERO_ERROR;
    char id[ULOC_FULLNAME_CAPACITY];
    char language[ULOC_LANG_CAPACITY];
    int32_t parsed = 0;

    if (tag.len == 0 || tag.len > TAG_BYTES_MAX)
        return false;
    uloc_forLanguageTag(tag.data, id, (int32_t)sizeof id, &parsed, &code);
    if (U_FAILURE(code) || code == U_STRING_NOT_TERMINATED_WARNING || (size_t)parsed != tag.len)
        return false;
    return uloc_getLanguage(id, language, (int32_t)sizeof language, &code) > 0 && U_SUCCESS(code);
}

enum status locale_is_right_to_left(struct text tag, bool *is_right_to_left, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    char id[ULOC_FULLNAME_CAPACITY];
    enum status const st = check_reserve(err);

    if (st != ST_OK)
        return st;
    uloc_forLanguageTag(tag.data, id, (int32_t)sizeof id, NULL, &code);
    *is_right_to_left = U_SUCCESS(code) && uloc_isRightToLeft(id);
    fail_if_touched(&code); /* when uloc_isRightToLeft, which has no errors, may have told wrong */
    return U_FAILURE(code) ? icu_error(code, "locale", err) : ST_OK;
}

/* ISO 4217, list one, as of 2026: the codes that have a minor unit. (ICU's own list is no help: its
 * digits are CLDR's, which drop those not in use, and its dates have gaps.) */
static const char CURRENCIES[] = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND "
                                 "BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY "
                                 "COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP "
                                 "GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD "
                                 "IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP "
                                 "LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN "
                                 "MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN "
                                 "PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD "
                                 "SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX "
                                 "USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF XPF "
                                 "YER ZAR ZMW ZWG ";

/* Minor units that are not 2. */
static const struct {
    int digits;
    const char *currencies;
} MINOR_UNITS[] = {
    {0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF "},
    {3, "BHD IQD JOD KWD LYD OMR TND "},
    {4, "CLF UYW "},
};

/* Lists are codes of three letters and a space each. */
static bool is_listed(const char *list, const char code[4])
{
    for (; *list != '\0'; list += 4)
        if (memcmp(list, code, 3) == 0)
            return true;
    return false;
}

static int rule_currency_digits(const char code[4])
{
    if (strlen(code) != 3 || !is_listed(CURRENCIES, code))
        return -1;
    for (size_t i = 0; i < sizeof MINOR_UNITS / sizeof *MINOR_UNITS; i++)
        if (is_listed(MINOR_UNITS[i].currencies, code))
            return MINOR_UNITS[i].digits;
    return 2;
}

enum status locale_rules(struct text_rules *rules, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;

    u_setMemoryFunctions(NULL, reserve_malloc, reserve_realloc, reserve_free, &code);
    u_init(&code);
    uloc_setDefault(DEFAULT_LOCALE, &code);
    fail_if_touched(&code);
    if (U_FAILURE(code))
        return icu_error(code, "ICU data", err);
    *rules = (struct text_rules){
        .nfc = rule_nfc,
        .is_zone = rule_is_zone,
        .is_locale = rule_is_locale,
        .currency_digits = rule_currency_digits,
    };
    return ST_OK;
}

/* ---- formatters ---- */

/* The first two are enum locale_moment's; the rest are the parts that a zone's label is chosen
 * from. */
enum { MOMENT_ZONE_NAME = LOCALE_ZONE, MOMENT_OFFSET_SHORT, MOMENT_OFFSET_LONG, MOMENT_FORMATS };

struct locale_formatter {
    char id[ULOC_FULLNAME_CAPACITY]; /* ICU's name of the locale that all below belong to */
    struct text tag;                 /* the tag it was made from, in tag_data */
    char tag_data[TAG_BYTES_MAX + 1];
    UDateFormat *moments[MOMENT_FORMATS]; /* for moments_zone; NULL until they are needed */
    UChar moments_zone[ZONE_UNITS_MAX];
    UBreakIterator *breaker; /* NULL until it is needed */
    UNumberFormatter *money; /* for money_currency; NULL until it is needed */
    char money_currency[4];
    UFormattedNumber *money_result;
};

enum status locale_formatter_new(struct locale_formatter **formatter, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    struct locale_formatter *made = check_reserve(err) == ST_OK ? calloc(1, sizeof *made) : NULL;

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a formatter");
    made->money_result = unumf_openResult(&code);
    fail_if_touched(&code);
    if (U_FAILURE(code)) {
        unumf_closeResult(made->money_result);
        free(made);
        return icu_error(code, "a formatter", err);
    }
    *formatter = made;
    return ST_OK;
}

static void forget_moments(struct locale_formatter *formatter)
{
    for (int i = 0; i < MOMENT_FORMATS; i++) {
        udat_close(formatter->moments[i]);
        formatter->moments[i] = NULL;
    }
    formatter->moments_zone[0] = 0;
}

static void forget_locale(struct locale_formatter *formatter)
{
    forget_moments(formatter);
    ubrk_close(formatter->breaker);
    unumf_close(formatter->money);
    formatter->breaker = NULL;
    formatter->money = NULL;
    formatter->money_currency[0] = '\0';
    formatter->tag = (struct text){0};
}

void locale_formatter_free(struct locale_formatter **formatter)
{
    if (*formatter == NULL)
        return;
    forget_locale(*formatter);
    unumf_closeResult((*formatter)->money_result);
    free(*formatter);
    *formatter = NULL;
}

static enum status use_locale(struct locale_formatter *formatter, struct text tag,
                              struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    enum status const st = check_reserve(err);

    assert(tag.len >= 1 && tag.len <= TAG_BYTES_MAX);
    if (st != ST_OK)
        return st;
    if (formatter->tag.len == tag.len && memcmp(formatter->tag_data, tag.data, tag.len) == 0)
        return ST_OK;
    forget_locale(formatter);
    uloc_forLanguageTag(tag.data, formatter->id, (int32_t)sizeof formatter->id, NULL, &code);
    if (U_FAILURE(code))
        return icu_error(code, "locale", err);
    memcpy(formatter->tag_data, tag.data, tag.len);
    formatter->tag = (struct text){.data = formatter->tag_data, .len = tag.len};
    return ST_OK;
}

/* ---- dates and times ---- */

/* The locale's own pattern for a set of date fields. */
static int32_t pattern_for(const char *locale, const UChar *skeleton, UChar *pattern,
                           UErrorCode *code)
{
    UDateTimePatternGenerator *generator = udatpg_open(locale, code);
    int32_t count = 0;

    if (U_SUCCESS(*code))
        count = udatpg_getBestPattern(generator, skeleton, -1, pattern, PATTERN_UNITS_MAX, code);
    udatpg_close(generator);
    return count;
}

static UDateFormat *open_moment(const struct locale_formatter *formatter, int which,
                                UErrorCode *code)
{
    static const UChar *const SKELETONS[] = {[LOCALE_DATE] = u"yMMMMEEEEd", [LOCALE_TIME] = u"jm"};
    static const UChar *const PATTERNS[] = {
        [MOMENT_ZONE_NAME] = u"z", [MOMENT_OFFSET_SHORT] = u"O", [MOMENT_OFFSET_LONG] = u"OOOO"};
    UChar best[PATTERN_UNITS_MAX];
    const UChar *pattern = best;
    int32_t count = -1;

    if (which == LOCALE_DATE || which == LOCALE_TIME)
        count = pattern_for(formatter->id, SKELETONS[which], best, code);
    else
        pattern = PATTERNS[which];
    return U_FAILURE(*code) ? NULL
                            : udat_open(UDAT_PATTERN, UDAT_PATTERN, formatter->id,
                                        formatter->moments_zone, -1, pattern, count, code);
}

static int32_t format_moment(struct locale_formatter *formatter, int which, int64_t at_s,
                             UChar *units, UErrorCode *code)
{
    if (formatter->moments[which] == NULL)
        formatter->moments[which] = open_moment(formatter, which, code);
    if (U_FAILURE(*code))
        return 0;
    return udat_format(formatter->moments[which], (double)at_s * 1000.0, units, FORMATTED_UNITS_MAX,
                       NULL, code);
}

static int32_t format_zone(struct locale_formatter *formatter, int64_t at_s, UChar *units,
                           UErrorCode *code)
{
    UChar offset[FORMATTED_UNITS_MAX];
    int32_t count = format_moment(formatter, MOMENT_ZONE_NAME, at_s, units, code);
    int32_t const offset_count = format_moment(formatter, MOMENT_OFFSET_SHORT, at_s, offset, code);

    /* Where the short name is only the short offset (GMT+5:30), the long one reads better. */
    if (U_SUCCESS(*code) && count == offset_count && u_memcmp(units, offset, count) == 0)
        count = format_moment(formatter, MOMENT_OFFSET_LONG, at_s, units, code);
    /* Some locales write an offset with the minus of mathematics, which text faces often lack; the
     * others write it so. */
    for (int32_t i = 0; U_SUCCESS(*code) && i < count; i++)
        if (units[i] == MINUS_SIGN)
            units[i] = '-';
    return count;
}

static enum status use_zone(struct locale_formatter *formatter, struct text zone, struct error *err)
{
    UChar units[ZONE_UNITS_MAX];

    if (!units_from_ascii(zone, units, ZONE_UNITS_MAX))
        return error_set(err, ST_LIBRARY, "a zone name that no rule would let pass");
    if (u_strcmp(units, formatter->moments_zone) != 0) {
        forget_moments(formatter);
        u_strcpy(formatter->moments_zone, units);
    }
    return ST_OK;
}

enum status locale_moment(struct locale_formatter *formatter, struct text tag, struct text zone,
                          int64_t at_s, enum locale_moment what, struct arena *arena,
                          struct text *text, struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    UChar units[FORMATTED_UNITS_MAX];
    int32_t count;
    enum status st = use_locale(formatter, tag, err);

    if (st == ST_OK)
        st = use_zone(formatter, zone, err);
    if (st != ST_OK)
        return st;
    count = what == LOCALE_ZONE ? format_zone(formatter, at_s, units, &code)
                                : format_moment(formatter, what, at_s, units, &code);
    fail_if_touched(&code);
    if (U_FAILURE(code))
        return icu_error(code, "a date", err);
    return utf8_from_units(units, count, arena, text, err);
}

/* ---- money ---- */

static enum status use_currency(struct locale_formatter *formatter, const char currency[4],
                                struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    char ascii[64];
    UChar skeleton[64];
    int const digits = rule_currency_digits(currency);
    int len;

    if (formatter->money != NULL && strcmp(formatter->money_currency, currency) == 0)
        return ST_OK;
    assert(digits >= 0 && digits <= 4);
    unumf_close(formatter->money);
    len = snprintf(ascii, sizeof ascii, "currency/%s precision-integer", currency);
    if (digits > 0)
        len = snprintf(ascii, sizeof ascii, "currency/%s .%.*s", currency, digits, "0000");
    u_charsToUChars(ascii, skeleton, len);
    formatter->money = unumf_openForSkeletonAndLocale(skeleton, len, formatter->id, &code);
    if (U_FAILURE(code)) {
        unumf_close(formatter->money);
        formatter->money = NULL;
        return icu_error(code, "money", err);
    }
    memcpy(formatter->money_currency, currency, sizeof formatter->money_currency);
    return ST_OK;
}

enum status locale_money(struct locale_formatter *formatter, struct text tag, int64_t amount,
                         const char currency[4], struct arena *arena, struct text *text,
                         struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    char decimal[40];
    UChar units[FORMATTED_UNITS_MAX];
    int32_t count = 0;
    int len;
    enum status st = use_locale(formatter, tag, err);

    if (st == ST_OK)
        st = use_currency(formatter, currency, err);
    if (st != ST_OK)
        return st;
    /* As decimal text, never as a binary fraction. */
    len = snprintf(decimal, sizeof decimal, "%llde-%d", (long long)amount,
                   rule_currency_digits(currency));
    unumf_formatDecimal(formatter->money, decimal, len, formatter->money_result, &code);
    count = unumf_resultToString(formatter->money_result, units, FORMATTED_UNITS_MAX, &code);
    fail_if_touched(&code);
    if (U_FAILURE(code))
        return icu_error(code, "money", err);
    return utf8_from_units(units, count, arena, text, err);
}

/* ---- line breaks ---- */

static enum status collect_breaks(UBreakIterator *breaker, struct text text, struct arena *arena,
                                  struct locale_break **breaks, size_t *count, struct error *err)
{
    struct locale_break *list = arena_alloc(arena, (text.len + 1) * sizeof *list);
    size_t listed = 0;

    if (list == NULL)
        return error_set(err, ST_NO_MEMORY, "line breaks");
    ubrk_first(breaker);
    /* ICU's own status would call every break between Thai words mandatory in a paragraph that ends
     * with a line feed. */
    for (int32_t at = ubrk_next(breaker); at != UBRK_DONE; at = ubrk_next(breaker)) {
        bool const is_after_feed = text.data[at - 1] == '\n';

        assert(listed <= text.len);
        list[listed++] = (struct locale_break){
            .offset = (size_t)at, .is_mandatory = is_after_feed && (size_t)at < text.len};
    }
    *breaks = list;
    *count = listed;
    return ST_OK;
}

enum status locale_breaks(struct locale_formatter *formatter, struct text tag, struct text text,
                          struct arena *arena, struct locale_break **breaks, size_t *count,
                          struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    UText utext = UTEXT_INITIALIZER;
    enum status st = use_locale(formatter, tag, err);

    if (st != ST_OK)
        return st;
    if (formatter->breaker == NULL)
        formatter->breaker = ubrk_open(UBRK_LINE, formatter->id, NULL, 0, &code);
    utext_openUTF8(&utext, text.data, (int64_t)text.len, &code);
    if (U_SUCCESS(code))
        ubrk_setUText(formatter->breaker, &utext, &code);
    fail_if_touched(&code);
    if (U_SUCCESS(code))
        st = collect_breaks(formatter->breaker, text, arena, breaks, count, err);
    else
        st = icu_error(code, "line breaks", err);
    utext_close(&utext);
    return st;
}
