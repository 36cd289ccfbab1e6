#include "workers/readings.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <string.h>

#define TEXT_OF(string)                                                                            \
    (struct text)                                                                                  \
    {                                                                                              \
        .data = (string), .len = sizeof(string) - 1                                                \
    }

static struct readings readings;

static void teardown(void)
{
    readings_clear(&readings);
    cr_expect(readings.list == NULL && readings.count == 0);
}

static bool reads(size_t face, uint32_t glyph, const char *text)
{
    const struct glyph_reading *reading = readings_find(&readings, face, glyph);

    return reading != NULL && reading->len == strlen(text) &&
           memcmp(reading->data, text, reading->len) == 0;
}

Test(readings_add, keeps_the_first_of_each_glyph, .fini = teardown)
{
    cr_expect_null(readings_find(&readings, 0, 7));
    cr_assert_eq(readings_add(&readings, 1, 7, TEXT_OF("b"), NULL), ST_OK);
    cr_assert_eq(readings_add(&readings, 0, 7, TEXT_OF("a"), NULL), ST_OK);
    cr_assert_eq(readings_add(&readings, 0, 65535, TEXT_OF("fi"), NULL), ST_OK);
    cr_assert_eq(readings_add(&readings, 0, 7, TEXT_OF("c"), NULL), ST_OK);
    cr_expect_eq(readings.count, 3);
    cr_expect(reads(0, 7, "a") && reads(1, 7, "b") && reads(0, 65535, "fi"));
    cr_expect_null(readings_find(&readings, 0, 8));
    cr_expect_null(readings_find(&readings, 2, 7));
}

Test(readings_add, leaves_out_what_is_empty_or_too_long, .fini = teardown)
{
    static const char LONG[] = "abcdefghijklmnopqrstuvwxyz";

    cr_assert_eq(sizeof LONG - 1, READING_BYTES_MAX);
    cr_assert_eq(readings_add(&readings, 0, 1, TEXT_OF(""), NULL), ST_OK);
    cr_assert_eq(readings_add(&readings, 0, 2, TEXT_OF("abcdefghijklmnopqrstuvwxyz."), NULL),
                 ST_OK);
    cr_expect_eq(readings.count, 0);
    cr_assert_eq(readings_add(&readings, 0, 3, TEXT_OF(LONG), NULL), ST_OK);
    cr_expect(reads(0, 3, LONG));
}

Test(readings_add, keeps_no_more_than_its_limit, .fini = teardown)
{
    for (uint32_t glyph = 0; glyph <= READINGS_MAX; glyph++)
        cr_assert_eq(readings_add(&readings, 0, READINGS_MAX - glyph, TEXT_OF("a"), NULL), ST_OK);
    cr_expect_eq(readings.count, READINGS_MAX);
    cr_expect_null(readings_find(&readings, 0, 0));
    cr_expect(reads(0, 1, "a"));
}

Test(readings_add, says_when_memory_ends, .fini = teardown)
{
    bool has_failed;

    failing_memory_start(1);
    cr_expect_eq(readings_add(&readings, 0, 1, TEXT_OF("a"), NULL), ST_NO_MEMORY);
    has_failed = failing_memory_stop();
    cr_expect(has_failed && readings.count == 0);
}

Test(readings_unite, adds_what_is_new, .fini = teardown)
{
    struct readings more = {0};

    cr_assert_eq(readings_add(&readings, 0, 1, TEXT_OF("a"), NULL), ST_OK);
    cr_assert_eq(readings_add(&more, 0, 1, TEXT_OF("b"), NULL), ST_OK);
    cr_assert_eq(readings_add(&more, 0, 2, TEXT_OF("c"), NULL), ST_OK);
    cr_assert_eq(readings_unite(&readings, &more, NULL), ST_OK);
    cr_expect(reads(0, 1, "a") && reads(0, 2, "c"));
    readings_clear(&more);
}
