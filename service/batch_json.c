#include "service/batch_json.h"

#include "service/config_json.h"
#include "service/json_heap.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- the gate: jansson's memory ---- */

/*
 * One parse by one thread. The first refusal is final: jansson 2.14 does not look whether its
 * buffer for the current token could grow, and would go on with a token that lacks its end. With
 * every later allocation refused as well, that token is dropped before anybody reads it (see
 * also struct feed).
 */
struct parse {
    struct json_heap heap;
    enum status refusal; /* ST_OK, ST_TOO_LARGE, ST_BUSY or ST_NO_MEMORY */
};

static struct {
    size_t bytes_max;
    uint64_t id_hash_key[2];
    atomic_size_t bytes;
} gate; /* all but bytes is set before the threads start */

static _Thread_local struct parse *current_parse; /* NULL outside of batch_json_read */

static enum status gate_judge(const struct parse *parse, size_t wanted, size_t all_bytes)
{
    if (parse->heap.bytes + wanted > gate.bytes_max)
        return ST_TOO_LARGE;
    return all_bytes > gate.bytes_max ? ST_BUSY : ST_OK;
}

/* Every byte that a heap has from malloc is counted at the gate. */
static void *parse_malloc(struct parse *parse, size_t bytes)
{
    size_t wanted;
    void *block = NULL;

    if (parse->refusal != ST_OK)
        return NULL;
    wanted = json_heap_needs(&parse->heap, bytes);
    parse->refusal = gate_judge(parse, wanted, atomic_fetch_add(&gate.bytes, wanted) + wanted);
    if (parse->refusal == ST_OK) {
        block = json_heap_alloc(&parse->heap, bytes);
        parse->refusal = block != NULL ? ST_OK : ST_NO_MEMORY;
    }
    if (block == NULL)
        atomic_fetch_sub(&gate.bytes, wanted);
    return block;
}

static void parse_clear(struct parse *parse)
{
    atomic_fetch_sub(&gate.bytes, parse->heap.bytes);
    json_heap_clear(&parse->heap);
}

/* Outside of a parse memory is for the operator's files, key rings among them. */
static void *gate_malloc(size_t bytes)
{
    return current_parse != NULL ? parse_malloc(current_parse, bytes) : config_json_malloc(bytes);
}

static void gate_free(void *block)
{
    if (current_parse != NULL)
        atomic_fetch_sub(&gate.bytes, json_heap_free(&current_parse->heap, block));
    else
        config_json_free(block);
}

enum status batch_json_start(size_t parse_bytes_max, struct error *err)
{
    assert(parse_bytes_max > 0);
    gate.bytes_max = parse_bytes_max;
    json_set_alloc_funcs(gate_malloc, gate_free);
    json_object_seed(0);
    if (getrandom(gate.id_hash_key, sizeof gate.id_hash_key, 0) != sizeof gate.id_hash_key)
        return error_set(err, ST_IO, "random bytes for hashing: %s", strerror(errno));
    return ST_OK;
}

size_t batch_json_bytes_in_use(void)
{
    return atomic_load(&gate.bytes);
}

static enum status refusal_error(const struct parse *parse, struct error *err)
{
    switch (parse->refusal) {
    case ST_TOO_LARGE:
        return error_set(err, ST_TOO_LARGE,
                         "parsing the batch needs more than %zu bytes (parse-bytes-max)",
                         gate.bytes_max);
    case ST_BUSY:
        return error_set(err, ST_BUSY, "other batches are using the memory for parsing");
    default:
        return error_set(err, ST_NO_MEMORY, "the JSON tree of a batch");
    }
}

/* ---- places in the body ---- */

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static enum status malformed(struct problems *problems, struct error *err, struct text body,
                             size_t at, const char *reason)
{
    size_t line = 1;
    size_t column = 1;

    for (size_t i = 0; i < at && i < body.len; i++) {
        line += body.data[i] == '\n';
        column = body.data[i] == '\n' ? 1 : column + !is_continuation(body.data[i]);
    }
    problems_add(problems, "", PROBLEM_MALFORMED_JSON, "line %zu, column %zu: %s", line, column,
                 reason);
    return error_set(err, ST_INVALID, "the batch is not JSON: line %zu, column %zu: %s", line,
                     column, reason);
}

/* ---- the first look ---- */

/*
 * What is learnt of a body before it is parsed. As long as the text is valid JSON, this walk and
 * the parser see the same strings and brackets; where they part, the parser has met an error.
 */
struct survey {
    const char *fault; /* NULL: none so far */
    size_t fault_at;
    size_t token_bytes_max; /* of strings with their quotes, numbers and words */
    size_t depth;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_structure(char c)
{
    return c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',';
}

/* The end of the token that begins at `at`, or of the body. */
static size_t token_end(struct text body, size_t at)
{
    size_t end = at + 1;

    if (body.data[at] != '"') {
        while (end < body.len && !is_space(body.data[end]) && !is_structure(body.data[end]) &&
               body.data[end] != '"')
            end++;
        return end;
    }
    while (end < body.len && body.data[end] != '"')
        end += body.data[end] == '\\' ? 2 : 1;
    return end < body.len ? end + 1 : body.len;
}

static void survey_bracket(struct survey *survey, char c)
{
    bool const opens = c == '{' || c == '[';

    if (opens && survey->depth == BATCH_JSON_DEPTH_MAX)
        survey->fault = "nested too deeply, at most 16 levels are allowed";
    else if (opens)
        survey->depth++;
    else if (c == '}' || c == ']')
        survey->depth--;
}
_Static_assert(BATCH_JSON_DEPTH_MAX == 16, "named in a message");

/* The root's bracket, at `at`, and all up to its end. */
static size_t survey_root(struct survey *survey, struct text body, size_t at)
{
    do {
        size_t end = at + 1;

        survey->fault_at = at;
        if (is_structure(body.data[at])) {
            survey_bracket(survey, body.data[at]);
        } else if (!is_space(body.data[at])) {
            end = token_end(body, at);
            if (end - at > survey->token_bytes_max)
                survey->token_bytes_max = end - at;
        }
        at = end;
    } while (at < body.len && survey->depth > 0 && survey->fault == NULL);
    return at;
}

static size_t skip_space(struct text body, size_t at)
{
    while (at < body.len && is_space(body.data[at]))
        at++;
    return at;
}

static struct survey survey_body(struct text body)
{
    struct survey survey = {0};
    size_t const start = skip_space(body, 0);
    size_t end;

    survey.fault_at = start;
    if (start == body.len) {
        survey.fault = "the body is empty";
    } else if (body.data[start] != '{') {
        survey.fault = "a batch is a JSON object and begins with {";
    } else {
        end = skip_space(body, survey_root(&survey, body, start));
        if (survey.fault == NULL && survey.depth == 0 && end < body.len) {
            survey.fault = "there is more text after the end of the batch";
            survey.fault_at = end;
        }
    }
    return survey;
}

/* ---- parsing ---- */

/*
 * What jansson is given to read: ["<padding>",<body>] with a padding as long as the body's longest
 * token. It makes jansson's token buffer grow once, at the start, where a refusal is harmless;
 * later it never has to grow, and so never fails where nobody looks (see struct parse).
 */
struct feed {
    struct text body;
    size_t padding_bytes;
    size_t at; /* of all that is fed */
};

static const char FEED_HEAD[] = "[\"";
static const char FEED_MIDDLE[] = "\",";
static const char FEED_TAIL[] = "]";

static size_t feed_body_start(const struct feed *feed)
{
    return strlen(FEED_HEAD) + feed->padding_bytes + strlen(FEED_MIDDLE);
}

/* Copy what lies at `at` in a part of the feed that begins at *start, and advance *start past it.
 */
static size_t feed_part(size_t at, size_t *start, struct text part, char *out, size_t out_len)
{
    size_t const from = *start;
    size_t len = 0;

    *start += part.len;
    if (at >= from && at < from + part.len) {
        len = part.len - (at - from) < out_len ? part.len - (at - from) : out_len;
        if (part.data != NULL)
            memcpy(out, part.data + (at - from), len);
        else
            memset(out, ' ', len);
    }
    return len;
}

/* json_load_callback_t: 0 is the end. */
static size_t feed_read(void *out, size_t out_len, void *data)
{
    struct feed *feed = data;
    struct text const parts[] = {
        {.data = FEED_HEAD, .len = strlen(FEED_HEAD)},
        {.data = NULL, .len = feed->padding_bytes},
        {.data = FEED_MIDDLE, .len = strlen(FEED_MIDDLE)},
        feed->body,
        {.data = FEED_TAIL, .len = strlen(FEED_TAIL)},
    };
    size_t len = 0;
    size_t start = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && len == 0; i++)
        len = feed_part(feed->at, &start, parts[i], out, out_len);
    feed->at += len;
    return len;
}

/* Where the fault lies, from jansson's position, which is behind the last byte that it took. */
enum fault_place { AT_LAST_BYTE, AT_LAST_TOKEN, AT_NEXT_BYTE };

/* Our words for jansson's, by its code and the beginning of its text. */
struct parse_reason {
    enum json_error_code code;
    const char *text;
    enum fault_place place;
    const char *reason;
};

static const struct parse_reason PARSE_REASONS[] = {
    {json_error_duplicate_key, "", AT_LAST_TOKEN, "the member has been given before"},
    {json_error_numeric_overflow, "", AT_LAST_TOKEN, "the number is too large"},
    {json_error_invalid_utf8, "", AT_NEXT_BYTE, "not valid UTF-8"},
    {json_error_null_byte_in_key, "", AT_LAST_TOKEN,
     "a member's name must not have the character U+0000"},
    {json_error_invalid_syntax, "control character", AT_NEXT_BYTE, "a control character in a text"},
    {json_error_invalid_syntax, "unexpected newline", AT_NEXT_BYTE, "a line ends inside a text"},
    {json_error_invalid_syntax, "invalid escape", AT_LAST_BYTE, "JSON has no such escape"},
    {json_error_invalid_syntax, "invalid Unicode", AT_LAST_TOKEN,
     "the text has an escape of half a surrogate pair"},
    {json_error_invalid_syntax, "string or '}'", AT_LAST_TOKEN,
     "a member's name in quotes or } is expected"},
    {json_error_invalid_syntax, "':'", AT_LAST_TOKEN, ": is expected"},
    {json_error_invalid_syntax, "'}'", AT_LAST_TOKEN, ", or } is expected"},
    {json_error_invalid_syntax, "']'", AT_LAST_TOKEN, ", or ] is expected"},
    {json_error_unknown, "", AT_LAST_TOKEN, "no JSON value is written like this"},
};

/* The last row when there is none of its own. */
static const struct parse_reason *parse_reason_find(const json_error_t *error)
{
    const struct parse_reason *row = PARSE_REASONS;

    while (row->code != json_error_unknown &&
           (row->code != json_error_code(error) ||
            strncmp(error->text, row->text, strlen(row->text)) != 0))
        row++;
    return row;
}

static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

/* The start of the token that ends with the byte at `last`. */
static size_t token_start(struct text body, size_t last)
{
    size_t at = last;

    while (at > 0 && is_continuation(body.data[at]))
        at--;
    if (body.data[at] != '"') {
        while (at > 0 && is_of_word(body.data[at]) && is_of_word(body.data[at - 1]))
            at--;
        return at;
    }
    /* A quote inside a string has a backslash before it; nothing else outside has. */
    do
        at--;
    while (at > 0 && (body.data[at] != '"' || body.data[at - 1] == '\\'));
    return at;
}

static enum status parse_fault(const struct feed *feed, const json_error_t *error,
                               struct problems *problems, struct error *err)
{
    const struct parse_reason *reason = parse_reason_find(error);
    size_t const taken = (size_t)error->position - feed_body_start(feed);
    size_t at = reason->place == AT_NEXT_BYTE ? taken : taken - 1;

    if (at >= feed->body.len)
        return malformed(problems, err, feed->body, feed->body.len, "the batch ends too early");
    if (reason->place == AT_LAST_TOKEN)
        at = token_start(feed->body, at);
    return malformed(problems, err, feed->body, at, reason->reason);
}

/* *tree is the whole feed's array, in the parse's heap; its item 1 is the batch. */
static enum status parse_body(struct feed *feed, json_t **tree, struct problems *problems,
                              struct error *err)
{
    json_error_t error;

    *tree = json_load_callback(feed_read, feed, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (current_parse->refusal != ST_OK)
        return refusal_error(current_parse, err);
    if (*tree == NULL)
        return parse_fault(feed, &error, problems, err);
    assert(json_array_size(*tree) == 2);
    return ST_OK;
}

/* ---- the tree, as the rules see it ---- */

/* jansson's iterators take no const object, though they change nothing. */
static json_t *node_of(const void *node)
{
    return (json_t *)(uintptr_t)node;
}

static struct value value_of(const json_t *node)
{
    struct value value = {.kind = VALUE_NULL, .node = node};

    switch (json_typeof(node)) {
    case JSON_OBJECT:
        value.kind = VALUE_OBJECT;
        break;
    case JSON_ARRAY:
        value.kind = VALUE_ARRAY;
        break;
    case JSON_STRING:
        value.kind = VALUE_TEXT;
        value.text =
            (struct text){.data = json_string_value(node), .len = json_string_length(node)};
        break;
    case JSON_INTEGER:
        value.kind = VALUE_INTEGER;
        value.integer = json_integer_value(node);
        break;
    case JSON_REAL:
        value.kind = VALUE_REAL;
        value.real = json_real_value(node);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value.kind = VALUE_BOOL;
        value.integer = json_is_true(node);
        break;
    case JSON_NULL:
        break;
    }
    return value;
}

static bool tree_member_next(const void *object, void **cursor, struct text *name,
                             struct value *value)
{
    *cursor = *cursor == NULL ? json_object_iter(node_of(object))
                              : json_object_iter_next(node_of(object), *cursor);
    if (*cursor == NULL)
        return false;
    *name = (struct text){.data = json_object_iter_key(*cursor),
                          .len = json_object_iter_key_len(*cursor)};
    *value = value_of(json_object_iter_value(*cursor));
    return true;
}

static bool tree_member(const void *object, const char *name, struct value *value)
{
    const json_t *node = json_object_get(object, name);

    if (node != NULL)
        *value = value_of(node);
    return node != NULL;
}

static size_t tree_array_count(const void *array)
{
    return json_array_size(array);
}

static struct value tree_array_at(const void *array, size_t index)
{
    return value_of(json_array_get(array, index));
}

const struct value_source json_value_source = {
    .member_next = tree_member_next,
    .member = tree_member,
    .array_count = tree_array_count,
    .array_at = tree_array_at,
};

struct value json_value(const void *node)
{
    return value_of(node);
}

/* ---- a whole body ---- */

static struct text body_text(const struct bytes *body)
{
    static const char BYTE_ORDER_MARK[] = "\xEF\xBB\xBF";
    size_t const mark = strlen(BYTE_ORDER_MARK);
    struct text text = {.data = (const char *)body->data, .len = body->len};

    if (text.len >= mark && memcmp(text.data, BYTE_ORDER_MARK, mark) == 0)
        text = (struct text){.data = text.data + mark, .len = text.len - mark};
    return text;
}

static enum status read_tree(const json_t *tree, const struct text_rules *rules,
                             const struct batch_limits *limits, struct batch *batch,
                             struct problems *problems, struct error *err)
{
    struct batch_limits const keyed = {
        .tickets_max = limits->tickets_max,
        .id_hash_key = {gate.id_hash_key[0], gate.id_hash_key[1]},
    };

    return batch_read(&json_value_source, value_of(json_array_get(tree, 1)), rules, &keyed, batch,
                      problems, err);
}

enum status batch_json_read(const struct bytes *body, const struct text_rules *rules,
                            const struct batch_limits *limits, struct batch *batch,
                            struct problems *problems, struct error *err)
{
    struct text const text = body_text(body);
    struct survey const survey = survey_body(text);
    struct feed feed = {.body = text, .padding_bytes = survey.token_bytes_max};
    struct parse parse = {0};
    json_t *tree = NULL;
    enum status st;

    assert(gate.bytes_max > 0 && current_parse == NULL);
    if (survey.fault != NULL)
        return malformed(problems, err, text, survey.fault_at, survey.fault);
    current_parse = &parse;
    st = parse_body(&feed, &tree, problems, err);
    if (st == ST_OK)
        st = read_tree(tree, rules, limits, batch, problems, err);
    current_parse = NULL;
    parse_clear(&parse); /* and with it the tree */
    return st;
}

/* ---- the report ---- */

static void put_problem(struct json_text *json, const struct problem *problem)
{
    json_text_begin_object(json);
    json_text_name(json, "pointer");
    json_text_string(json, problem->pointer);
    json_text_name(json, "code");
    json_text_chars(json, problem->code);
    json_text_name(json, "detail");
    json_text_string(json, problem->detail);
    json_text_end_object(json);
}

void problems_json_array(struct json_text *json, const struct problems *problems)
{
    json_text_begin_array(json);
    for (size_t i = 0; i < problems->listed_count; i++) {
        json_text_break_line(json);
        put_problem(json, &problems->listed[i]);
    }
    if (problems->listed_count > 0)
        json_text_break_line(json);
    json_text_end_array(json);
}

enum status problems_json_write(const struct problems *problems, struct bytes *out,
                                struct error *err)
{
    struct json_text json = {.out = out};
    enum status st;

    json_text_begin_object(&json);
    json_text_name(&json, "errors");
    problems_json_array(&json, problems);
    json_text_name(&json, "count");
    json_text_unsigned(&json, problems->count);
    json_text_end_object(&json);
    st = json_text_finish(&json, err);
    return st == ST_OK ? bytes_append(out, "\n", 1, err) : st;
}

/* ---- a token to be judged ---- */

enum status token_json_read(const struct bytes *body, struct bytes *token, struct error *err)
{
    json_error_t error = {0};
    json_t *root = json_loadb((const char *)body->data, body->len,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    const json_t *value = json_object_get(root, "token");
    enum status st;

    if (root == NULL && json_error_code(&error) == json_error_out_of_memory)
        st = error_set(err, ST_NO_MEMORY, "a token's request");
    else if (root == NULL)
        st = error_set(err, ST_INVALID, "line %d, column %d: not JSON", error.line, error.column);
    else if (!json_is_string(value) || json_object_size(root) != 1)
        st = error_set(err, ST_INVALID,
                       "the body must be an object with the string \"token\" alone");
    else
        st = bytes_append(token, json_string_value(value), json_string_length(value), err);
    json_decref(root);
    return st;
}
