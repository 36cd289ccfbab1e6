#include "workers/deflate.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 200000 };

static struct deflater *deflater;

static void setup(void)
{
    cr_assert_eq(deflater_new(&deflater, NULL), ST_OK);
}

static void teardown(void)
{
    deflater_free(&deflater);
    cr_expect_null(deflater);
}

/* Page contents look alike: numbers and operators. */
static void text_fill(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text[i] = "0123456789. reTJ\n<>"[(i * i + i / 7) % 19];
}

/* The zlib stream at `from` in out holds exactly these bytes. */
static void expect_inflates(const struct bytes *out, size_t from, const void *data, size_t len,
                            const char *name)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    char *inflated = malloc(len + 1);
    size_t inflated_len = 0;

    cr_assert(decompressor != NULL && inflated != NULL);
    cr_expect_eq(libdeflate_zlib_decompress(decompressor, out->data + from, out->len - from,
                                            inflated, len + 1, &inflated_len),
                 LIBDEFLATE_SUCCESS, "%s", name);
    cr_expect(inflated_len == len && (len == 0 || memcmp(inflated, data, len) == 0), "%s", name);
    free(inflated);
    libdeflate_free_decompressor(decompressor);
}

Test(deflate_append, gives_zlib_streams_of_any_length, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name;
        size_t len;
    } ROWS[] = {{"nothing", 0}, {"one byte", 1}, {"a block", 65535}, {"more", TEXT_BYTES}};
    char *text = malloc(TEXT_BYTES);

    cr_assert_not_null(text);
    text_fill(text, TEXT_BYTES);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        for (int effort = 0; effort < DEFLATE_EFFORTS; effort++) {
            struct bytes out = {0};

            cr_assert_eq(deflate_append(deflater, (enum deflate_effort)effort, text, ROWS[i].len,
                                        &out, NULL),
                         ST_OK, "%s", ROWS[i].name);
            expect_inflates(&out, 0, text, ROWS[i].len, ROWS[i].name);
            bytes_clear(&out);
        }
    }
    free(text);
}

Test(deflate_append, keeps_what_was_there_and_the_same_input_gives_the_same_bytes, .init = setup,
     .fini = teardown)
{
    static const char TEXT[] = "BT/F0 12 Tf 10 20 Td[<0001>]TJ ET\n";
    struct bytes out = {0};
    size_t first;

    cr_assert_eq(bytes_append(&out, "before", 6, NULL), ST_OK);
    cr_assert_eq(deflate_append(deflater, DEFLATE_FAST, TEXT, sizeof TEXT, &out, NULL), ST_OK);
    first = out.len;
    cr_assert_eq(deflate_append(deflater, DEFLATE_FAST, TEXT, sizeof TEXT, &out, NULL), ST_OK);
    cr_expect_arr_eq(out.data, "before", 6);
    expect_inflates(&out, first, TEXT, sizeof TEXT, "the second");
    cr_assert_eq(out.len - first, first - 6);
    cr_expect_arr_eq(out.data + 6, out.data + first, first - 6);
    bytes_clear(&out);
}

Test(deflate_append, small_is_smaller_than_fast, .init = setup, .fini = teardown)
{
    char *text = malloc(TEXT_BYTES);
    struct bytes fast = {0}, small = {0};

    cr_assert_not_null(text);
    text_fill(text, TEXT_BYTES);
    cr_assert_eq(deflate_append(deflater, DEFLATE_FAST, text, TEXT_BYTES, &fast, NULL), ST_OK);
    cr_assert_eq(deflate_append(deflater, DEFLATE_SMALL, text, TEXT_BYTES, &small, NULL), ST_OK);
    cr_expect_lt(small.len, fast.len);
    bytes_clear(&fast);
    bytes_clear(&small);
    free(text);
}

Test(deflate_append, keeps_the_earlier_contents_when_memory_ends, .init = setup, .fini = teardown)
{
    struct bytes out = {0};
    struct error err = {0};
    char text[1000] = {0};

    cr_assert_eq(bytes_append(&out, "before", 6, NULL), ST_OK);
    failing_memory_start(1);
    cr_expect_eq(deflate_append(deflater, DEFLATE_FAST, text, sizeof text, &out, &err),
                 ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_eq(err.status, ST_NO_MEMORY);
    cr_assert_eq(out.len, 6);
    cr_expect_arr_eq(out.data, "before", 6);
    bytes_clear(&out);
}

Test(deflater_new, leaves_nothing_when_memory_ends)
{
    struct deflater *made = NULL;

    failing_memory_start(1);
    cr_expect_eq(deflater_new(&made, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_null(made);
}

Test(deflater_free, takes_null)
{
    struct deflater *none = NULL;

    deflater_free(&none);
    cr_expect_null(none);
}
