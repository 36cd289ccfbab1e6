/*
 * JSON out: a writer that appends to a buffer and keeps track of brackets, commas and names. Calls
 * follow the text from left to right:
 *
 *     struct json_text json = {.out = &bytes};
 *
 *     json_text_begin_object(&json);
 *     json_text_name(&json, "tickets");
 *     json_text_integer(&json, 500);
 *     json_text_end_object(&json);
 *     st = json_text_finish(&json, err);
 *
 * No call but the last returns a status: when memory has run out the calls after it write nothing.
 * Whatever the values are, the text is valid JSON (RFC 8259) in valid UTF-8 and holds no byte that
 * a terminal would obey. A call that does not fit the grammar (a value without a name in an object,
 * a second root, a bracket too many) is a fault of ours and fails an assert.
 */
#ifndef TICKETPRESS_SERVICE_JSON_TEXT_H
#define TICKETPRESS_SERVICE_JSON_TEXT_H

#include "domain/arena.h"
#include "domain/bytes.h"
#include "domain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_TEXT_DEPTH_MAX = 16 }; /* brackets open at once */

struct json_text {
    /* Set by the caller, the rest zeroed. May hold other text already. */
    struct bytes *out;
    enum status status; /* ST_OK, or ST_NO_MEMORY from the first failure on */

    /* The writer's own, from here on. */
    size_t depth; /* brackets open */
    struct {
        bool is_object;
        bool has_values;
    } levels[JSON_TEXT_DEPTH_MAX + 1]; /* the first is outside of the root */
    bool is_named;                     /* a member's name waits for its value */
    bool breaks_line;
};

void json_text_begin_object(struct json_text *json);
void json_text_end_object(struct json_text *json);
void json_text_begin_array(struct json_text *json);
void json_text_end_array(struct json_text *json);

/* The name of an object's next member; each is given once an object. */
void json_text_name(struct json_text *json, const char *name);

/* Any bytes: each that is not part of valid UTF-8 is written as U+FFFD. {NULL, 0} is "". */
void json_text_string(struct json_text *json, struct text text);
/* The same for a zero-terminated text. */
void json_text_chars(struct json_text *json, const char *chars);

void json_text_integer(struct json_text *json, int64_t number);
void json_text_unsigned(struct json_text *json, uint64_t number);
/* In the fewest digits that read back as the same number; null when it is not finite. */
void json_text_number(struct json_text *json, double number);
void json_text_boolean(struct json_text *json, bool is_true);
void json_text_null(struct json_text *json);

/* A point in time as RFC 3339 has it, UTC, in whole seconds (see civil_time_write). */
void json_text_time(struct json_text *json, int64_t ms);

/* One value that is JSON already: 1 byte or more, copied as it is. */
void json_text_raw(struct json_text *json, struct text value);

/* Break the line before the next value, name or closing bracket: layout for people. */
void json_text_break_line(struct json_text *json);

/*
 * The end: exactly one value has been written, and every bracket is closed.
 *
 * Errors:  ST_NO_MEMORY  out has a part of the text, that may end anywhere
 */
MUST_USE enum status json_text_finish(const struct json_text *json, struct error *err);

#endif
