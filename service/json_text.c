#include "service/json_text.h"

#include "domain/civil_time.h"
#include "domain/utf8.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_CHARS_MAX = 31 };

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

static void put(struct json_text *json, const char *data, size_t len)
{
    if (json->status == ST_OK)
        json->status = bytes_append(json->out, data, len, NULL);
}

static void put_chars(struct json_text *json, const char *chars)
{
    put(json, chars, strlen(chars));
}

static void put_line_break(struct json_text *json)
{
    if (json->breaks_line)
        put_chars(json, "\n");
    json->breaks_line = false;
}

/* ---- strings (RFC 8259 section 7) ---- */

/* Besides what JSON asks for: DELETE and the C1 controls, which terminals obey. */
static bool needs_escape(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == '"' ||
           code_point == '\\';
}

static void put_escape(struct json_text *json, uint32_t code_point)
{
    char escape[8];

    if (code_point == '"' || code_point == '\\')
        snprintf(escape, sizeof escape, "\\%c", (char)code_point);
    else
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code_point);
    put_chars(json, escape);
}

static void put_string(struct json_text *json, struct text text)
{
    size_t done = 0; /* up to here all is written; what lies between here and at is plain */
    size_t at = 0;

    put_chars(json, "\"");
    while (at < text.len) {
        uint32_t code_point = 0;
        size_t const len = utf8_decode(text.data + at, text.len - at, &code_point);

        if (len > 0 && !needs_escape(code_point)) {
            at += len;
            continue;
        }
        put(json, text.data + done, at - done);
        if (len > 0)
            put_escape(json, code_point);
        else
            put_chars(json, REPLACEMENT);
        at += len > 0 ? len : 1;
        done = at;
    }
    if (at > done)
        put(json, text.data + done, at - done);
    put_chars(json, "\"");
}

/* ---- brackets and commas ---- */

/* Before each member's name and each element. */
static void separate(struct json_text *json)
{
    assert(json->depth > 0 || !json->levels[0].has_values);
    if (json->levels[json->depth].has_values)
        put_chars(json, ",");
    put_line_break(json);
    json->levels[json->depth].has_values = true;
}

static void begin_value(struct json_text *json)
{
    assert(json->levels[json->depth].is_object == json->is_named);
    if (json->is_named)
        put_line_break(json);
    else
        separate(json);
    json->is_named = false;
}

static void put_value(struct json_text *json, const char *chars)
{
    begin_value(json);
    put_chars(json, chars);
}

static void begin(struct json_text *json, bool is_object)
{
    assert(json->depth < JSON_TEXT_DEPTH_MAX);
    put_value(json, is_object ? "{" : "[");
    json->depth++;
    json->levels[json->depth].is_object = is_object;
    json->levels[json->depth].has_values = false;
}

static void end(struct json_text *json, bool is_object)
{
    assert(json->depth > 0);
    assert(json->levels[json->depth].is_object == is_object);
    assert(!json->is_named);
    put_line_break(json);
    put_chars(json, is_object ? "}" : "]");
    json->depth--;
}

void json_text_begin_object(struct json_text *json)
{
    begin(json, true);
}

void json_text_end_object(struct json_text *json)
{
    end(json, true);
}

void json_text_begin_array(struct json_text *json)
{
    begin(json, false);
}

void json_text_end_array(struct json_text *json)
{
    end(json, false);
}

void json_text_name(struct json_text *json, const char *name)
{
    assert(json->levels[json->depth].is_object);
    assert(!json->is_named);
    separate(json);
    put_string(json, (struct text){.data = name, .len = strlen(name)});
    put_chars(json, ":");
    json->is_named = true;
}

void json_text_break_line(struct json_text *json)
{
    json->breaks_line = true;
}

/* ---- values ---- */

void json_text_string(struct json_text *json, struct text text)
{
    begin_value(json);
    put_string(json, text);
}

void json_text_chars(struct json_text *json, const char *chars)
{
    json_text_string(json, (struct text){.data = chars, .len = strlen(chars)});
}

void json_text_integer(struct json_text *json, int64_t number)
{
    char text[NUMBER_CHARS_MAX + 1];

    snprintf(text, sizeof text, "%" PRId64, number);
    put_value(json, text);
}

void json_text_unsigned(struct json_text *json, uint64_t number)
{
    char text[NUMBER_CHARS_MAX + 1];

    snprintf(text, sizeof text, "%" PRIu64, number);
    put_value(json, text);
}

/* %g writes what JSON calls a number, for the process stays in the locale "C". */
void json_text_number(struct json_text *json, double number)
{
    char text[NUMBER_CHARS_MAX + 1] = "null";

    for (int digits = DBL_DIG; isfinite(number) && digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (!islessgreater(strtod(text, NULL), number))
            break;
    }
    put_value(json, text);
}

void json_text_boolean(struct json_text *json, bool is_true)
{
    put_value(json, is_true ? "true" : "false");
}

void json_text_null(struct json_text *json)
{
    put_value(json, "null");
}

void json_text_time(struct json_text *json, int64_t ms)
{
    char text[CIVIL_TIME_CHARS + 1];

    civil_time_write(ms, text);
    json_text_chars(json, text);
}

void json_text_raw(struct json_text *json, struct text value)
{
    assert(value.len > 0);
    begin_value(json);
    put(json, value.data, value.len);
}

enum status json_text_finish(const struct json_text *json, struct error *err)
{
    assert(json->depth == 0);
    assert(json->levels[0].has_values);
    return json->status == ST_OK ? ST_OK : error_set(err, json->status, "a JSON text");
}
