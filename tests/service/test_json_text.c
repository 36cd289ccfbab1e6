#include "service/json_text.h"

#include "domain/utf8.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bytes out;
static struct json_text json;

static void setup(void)
{
    json = (struct json_text){.out = &out};
}

static void teardown(void)
{
    bytes_clear(&out);
}

TestSuite(json_text, .init = setup, .fini = teardown);

static void expect_text(const char *expected)
{
    cr_expect(json_text_finish(&json, NULL) == ST_OK);
    cr_expect(out.len == strlen(expected) && memcmp(out.data, expected, out.len) == 0,
              "%.*s\nis not\n%s", (int)out.len, (const char *)out.data, expected);
    teardown();
    setup();
}

/* ---- structure ---- */

Test(json_text, puts_commas_between_members_and_elements)
{
    json_text_begin_object(&json);
    json_text_name(&json, "a");
    json_text_begin_array(&json);
    json_text_integer(&json, 1);
    json_text_begin_array(&json);
    json_text_end_array(&json);
    json_text_begin_object(&json);
    json_text_end_object(&json);
    json_text_null(&json);
    json_text_end_array(&json);
    json_text_name(&json, "b");
    json_text_begin_object(&json);
    json_text_name(&json, "c");
    json_text_boolean(&json, true);
    json_text_end_object(&json);
    json_text_name(&json, "d");
    json_text_boolean(&json, false);
    json_text_end_object(&json);
    expect_text("{\"a\":[1,[],{},null],\"b\":{\"c\":true},\"d\":false}");
}

Test(json_text, breaks_lines_where_asked)
{
    json_text_begin_array(&json);
    json_text_break_line(&json);
    json_text_begin_object(&json);
    json_text_break_line(&json);
    json_text_name(&json, "a");
    json_text_break_line(&json);
    json_text_integer(&json, 1);
    json_text_end_object(&json);
    json_text_break_line(&json);
    json_text_integer(&json, 2);
    json_text_break_line(&json);
    json_text_end_array(&json);
    expect_text("[\n{\n\"a\":\n1},\n2\n]");
}

Test(json_text, writes_behind_what_is_there)
{
    cr_assert(bytes_append(&out, "head ", 5, NULL) == ST_OK);
    json_text_null(&json);
    expect_text("head null");
}

Test(json_text, nests_to_its_depth)
{
    for (int i = 0; i < JSON_TEXT_DEPTH_MAX; i++)
        json_text_begin_array(&json);
    for (int i = 0; i < JSON_TEXT_DEPTH_MAX; i++)
        json_text_end_array(&json);
    expect_text("[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]");
}

/* ---- values ---- */

#define TEXT(literal)                                                                              \
    {                                                                                              \
        .data = (literal), .len = sizeof(literal) - 1                                              \
    }

static const struct {
    struct text text;
    const char *json;
} STRINGS[] = {
    {{NULL, 0}, "\"\""},
    {TEXT("Row 7"), "\"Row 7\""},
    {TEXT("\"\\/"), "\"\\\"\\\\/\""},
    {TEXT("\b\f\n\r\t"), "\"\\u0008\\u000c\\u000a\\u000d\\u0009\""},
    {TEXT("\0\x1F\x20"), "\"\\u0000\\u001f \""},
    {TEXT("~\x7F"), "\"~\\u007f\""},
    {TEXT("\xC2\x80\xC2\x9F\xC2\xA0"), "\"\\u0080\\u009f\xC2\xA0\""},
    {TEXT("Zo\xC3\xAB \xE2\x82\xAC \xF0\x9F\x8E\xAB"),
     "\"Zo\xC3\xAB \xE2\x82\xAC \xF0\x9F\x8E\xAB\""},
    {TEXT("a\xFF"), "\"a\xEF\xBF\xBD\""},
    {TEXT("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {TEXT("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {TEXT("\xED\xA0\x80."), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD.\""},
    {TEXT("\xE2\""), "\"\xEF\xBF\xBD\\\"\""},
};

Test(json_text, escapes_strings)
{
    for (size_t i = 0; i < sizeof STRINGS / sizeof *STRINGS; i++) {
        json_text_string(&json, STRINGS[i].text);
        expect_text(STRINGS[i].json);
    }
}

Test(json_text, goes_by_the_length_of_a_string)
{
    json_text_string(&json, (struct text){.data = "ab\xE2\x82\xAC", .len = 3});
    expect_text("\"ab\xEF\xBF\xBD\"");
}

Test(json_text, escapes_names_too)
{
    json_text_begin_object(&json);
    json_text_name(&json, "\"");
    json_text_chars(&json, "x\n");
    json_text_end_object(&json);
    expect_text("{\"\\\"\":\"x\\u000a\"}");
}

Test(json_text, is_valid_utf8_and_plain_for_any_two_bytes)
{
    for (unsigned pair = 0; pair <= 0xFFFF; pair++) {
        char const bytes[] = {(char)(pair >> 8), (char)pair};
        size_t controls = 0;

        json_text_string(&json, (struct text){.data = bytes, .len = 2});
        for (size_t i = 0; i < out.len; i++)
            controls += out.data[i] < 0x20 || out.data[i] == 0x7F;
        cr_assert_eq(controls, 0, "%04x", pair);
        cr_assert(utf8_is_valid((struct text){.data = (const char *)out.data, .len = out.len}),
                  "%04x", pair);
        teardown();
        setup();
    }
}

Test(json_text, writes_integers_to_both_ends)
{
    json_text_begin_array(&json);
    json_text_integer(&json, INT64_MIN);
    json_text_integer(&json, 0);
    json_text_integer(&json, INT64_MAX);
    json_text_unsigned(&json, 0);
    json_text_unsigned(&json, UINT64_MAX);
    json_text_end_array(&json);
    expect_text("[-9223372036854775808,0,9223372036854775807,0,18446744073709551615]");
}

static const struct {
    double number;
    const char *json;
} NUMBERS[] = {
    {0, "0"},
    {1, "1"},
    {-2.5, "-2.5"},
    {0.1, "0.1"},
    {0.1 + 0.2, "0.30000000000000004"},
    {1e300, "1e+300"},
    {123456789012345678.0, "1.2345678901234568e+17"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {(double)NAN, "null"},
    {(double)INFINITY, "null"},
    {-(double)INFINITY, "null"},
};

Test(json_text, writes_numbers_that_read_back)
{
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        json_text_number(&json, NUMBERS[i].number);
        expect_text(NUMBERS[i].json);
    }
}

Test(json_text, writes_times_and_raw_values)
{
    json_text_begin_array(&json);
    json_text_time(&json, 1805657400999);
    json_text_raw(&json, (struct text)TEXT("{\"a\": 1}"));
    json_text_raw(&json, (struct text)TEXT("2"));
    json_text_end_array(&json);
    expect_text("[\"2027-03-21T19:30:00Z\",{\"a\": 1},2]");
}

/* ---- no memory ---- */

Test(json_text, keeps_the_first_failure)
{
    struct error err = {0};

    json_text_begin_array(&json);
    json.status = ST_NO_MEMORY;
    json_text_chars(&json, "x\n\xFF");
    json_text_end_array(&json);
    cr_expect_eq(out.len, 1);
    cr_expect(json_text_finish(&json, &err) == ST_NO_MEMORY);
    cr_expect(err.status == ST_NO_MEMORY);
}

Test(json_text, notices_that_its_buffer_cannot_grow)
{
    uint8_t place = 0;
    struct bytes full = {.data = &place, .len = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};

    json.out = &full;
    json_text_null(&json);
    cr_expect(json.status == ST_NO_MEMORY);
    cr_expect_eq(place, 0);
}

/* ---- what does not fit the grammar ---- */

Test(json_text, asserts_one_root, .signal = SIGABRT)
{
    json_text_null(&json);
    json_text_null(&json);
}

Test(json_text, asserts_a_bound_on_depth, .signal = SIGABRT)
{
    for (int i = 0; i <= JSON_TEXT_DEPTH_MAX; i++)
        json_text_begin_array(&json);
}

Test(json_text, asserts_a_name_before_a_member, .signal = SIGABRT)
{
    json_text_begin_object(&json);
    json_text_null(&json);
}

Test(json_text, asserts_no_name_in_an_array, .signal = SIGABRT)
{
    json_text_begin_array(&json);
    json_text_name(&json, "a");
}

Test(json_text, asserts_a_value_behind_a_name, .signal = SIGABRT)
{
    json_text_begin_object(&json);
    json_text_name(&json, "a");
    json_text_end_object(&json);
}

Test(json_text, asserts_one_name_a_member, .signal = SIGABRT)
{
    json_text_begin_object(&json);
    json_text_name(&json, "a");
    json_text_name(&json, "b");
}

Test(json_text, asserts_brackets_that_match, .signal = SIGABRT)
{
    json_text_begin_array(&json);
    json_text_end_object(&json);
}

Test(json_text, asserts_no_bracket_too_many, .signal = SIGABRT)
{
    json_text_end_array(&json);
}

Test(json_text, asserts_closed_brackets_at_its_end, .signal = SIGABRT)
{
    json_text_begin_array(&json);
    cr_expect(json_text_finish(&json, NULL) == ST_OK);
}

Test(json_text, asserts_a_value_at_its_end, .signal = SIGABRT)
{
    cr_expect(json_text_finish(&json, NULL) == ST_OK);
}

Test(json_text, asserts_a_raw_value_that_is_there, .signal = SIGABRT)
{
    json_text_raw(&json, (struct text){0});
}
