/*
 * A request body in, a batch out; problems in, a report out. All of jansson's use for batches is in
 * here: the body is looked over once for its shape (where it ends, how deep it nests, how long its
 * longest token is), parsed under a limit on memory, and read by the rules of domain/batch.h.
 *
 * The limit: whatever parsing allocates, in all threads together, is counted and stays within
 * parse-bytes-max. A JSON tree can be 80 times as large as its text, so the body's length is no
 * measure.
 */
#ifndef TICKETPRESS_SERVICE_BATCH_JSON_H
#define TICKETPRESS_SERVICE_BATCH_JSON_H

#include "domain/batch.h"
#include "domain/bytes.h"
#include "domain/problems.h"
#include "domain/status.h"
#include "domain/text_rules.h"
#include "service/json_text.h"

#include <stddef.h>

enum { BATCH_JSON_DEPTH_MAX = 16 }; /* brackets open at once; the contract needs 4 */

#define PARSE_BYTES_MAX_DEFAULT ((size_t)256 << 20)

/* The code of the one problem, at pointer "", of a body that is no JSON object. */
#define PROBLEM_MALFORMED_JSON "malformed_json"

/*
 * Set up jansson for the whole process: hash seed, counted memory. Before the first thread and
 * before any other use of jansson. What jansson allocates outside of batch_json_read (files of the
 * operator) is counted, too, but never refused.
 *
 * In:      parse_bytes_max  1..
 * Errors:  ST_IO  the operating system has no random bytes
 */
MUST_USE enum status batch_json_start(size_t parse_bytes_max, struct error *err);

/* What jansson holds at this moment, in bytes. Threads: any. */
size_t batch_json_bytes_in_use(void);

/*
 * Read a batch. A leading byte order mark is skipped; bytes behind the object are refused.
 *
 * In:      body          any bytes
 *          limits        id_hash_key is left to this module
 * Out:     batch         zeroed on entry
 *          problems      zeroed or with earlier entries on entry. A body that is no JSON object
 *                        gives one problem, PROBLEM_MALFORMED_JSON, with line and column (from 1;
 *                        columns count code points); otherwise as batch_read
 * Errors:  ST_INVALID    see problems
 *          ST_TOO_LARGE  the body alone needs more than parse-bytes-max
 *          ST_BUSY       it would fit, but not beside what other threads are parsing
 *          ST_NO_MEMORY  *batch is left zeroed in each of these cases
 * Threads: any, on distinct outputs
 */
MUST_USE enum status batch_json_read(const struct bytes *body, const struct text_rules *rules,
                                     const struct batch_limits *limits, struct batch *batch,
                                     struct problems *problems, struct error *err);

/*
 * A tree of jansson's as domain rules see one, for whatever else they read: layouts, labels.
 *
 * In:  node  a json_t, borrowed as long as the value is used
 */
extern const struct value_source json_value_source;
struct value json_value(const void *node);

/*
 * Read the request {"token": "..."}.
 *
 * In:      body   bounded by the caller: it is parsed without the limit on memory
 * Out:     token  the string's bytes, appended; any bytes, since judging them is another's work
 * Errors:  ST_INVALID  no such object, or another member in it
 *          ST_NO_MEMORY
 */
MUST_USE enum status token_json_read(const struct bytes *body, struct bytes *token,
                                     struct error *err);

/*
 * The listed problems as one JSON value, one problem a line:
 *
 *     [
 *     {"pointer":"/event/id","code":"missing","detail":"is required"}
 *     ]
 *
 * and [] when there is none. No memory shows in json->status.
 */
void problems_json_array(struct json_text *json, const struct problems *problems);

/*
 * Append problems as a JSON text:
 *
 *     {"errors":[
 *     {"pointer":"/event/id","code":"missing","detail":"is required"}
 *     ],"count":1}
 *
 * count is of all problems, errors has the first PROBLEMS_LISTED_MAX.
 *
 * Errors:  ST_NO_MEMORY  out may have a part of the text
 */
MUST_USE enum status problems_json_write(const struct problems *problems, struct bytes *out,
                                         struct error *err);

#endif
