#include "domain/batch.h"

#include "domain/ascii.h"
#include "domain/characters.h"
#include "domain/civil_time.h"
#include "domain/clean_text.h"
#include "domain/id.h"
#include "domain/id_set.h"
#include "domain/token.h"
#include "domain/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    POINTER_NAME_BYTES_MAX = 100, /* of a member's name in a pointer, before escaping */
    POINTER_BYTES_MAX = 512,      /* /tickets, an index, one member of the contract, one other */
    QUOTE_CHARS_MAX = 40,         /* of a value in a detail */
    QUOTE_BYTES_MAX = QUOTE_CHARS_MAX * UTF8_SEQUENCE_BYTES_MAX + sizeof "...",
    MEMBERS_MAX = 32, /* of one object in the contract: the bits of `seen` */
};

#define TEXT_OF(literal) ((struct text){.data = (literal), .len = sizeof(literal) - 1})

void batch_clear(struct batch *batch)
{
    arena_clear(&batch->arena);
    *batch = (struct batch){0};
}

void batch_move(struct batch *dst, struct batch *src)
{
    assert(dst->arena.chunks == NULL && dst->tickets == NULL);
    *dst = *src;
    *src = (struct batch){0};
}

static bool text_equals(struct text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* ---- where the reader is ---- */

/* A JSON Pointer (RFC 6901) that grows and shrinks with the descent into the tree. */
struct pointer {
    char text[POINTER_BYTES_MAX];
    size_t len;
};

static void pointer_put(struct pointer *pointer, const char *data, size_t len)
{
    assert(pointer->len + len < sizeof pointer->text);
    memcpy(pointer->text + pointer->len, data, len);
    pointer->len += len;
    pointer->text[pointer->len] = '\0';
}

/* Section 3: "~" is written "~0" and "/" is written "~1". */
static void pointer_put_escaped(struct pointer *pointer, char byte)
{
    if (byte == '~')
        pointer_put(pointer, "~0", 2);
    else if (byte == '/')
        pointer_put(pointer, "~1", 2);
    else
        pointer_put(pointer, &byte, 1);
}

/* Go into a member; returns the length to come back to. */
static size_t pointer_push(struct pointer *pointer, struct text name)
{
    size_t const mark = pointer->len;
    size_t const shown = utf8_prefix(name, POINTER_NAME_BYTES_MAX);

    pointer_put(pointer, "/", 1);
    for (size_t i = 0; i < shown; i++)
        pointer_put_escaped(pointer, name.data[i]);
    if (shown < name.len)
        pointer_put(pointer, "...", 3);
    return mark;
}

static size_t pointer_push_index(struct pointer *pointer, size_t index)
{
    size_t const mark = pointer->len;
    char digits[24];
    int const len = snprintf(digits, sizeof digits, "/%zu", index);

    pointer_put(pointer, digits, (size_t)len);
    return mark;
}

static void pointer_pop(struct pointer *pointer, size_t mark)
{
    assert(mark <= pointer->len);
    pointer->len = mark;
    pointer->text[mark] = '\0';
}

/* ---- one reading of a batch ---- */

struct reader {
    const struct value_source *source;
    const struct text_rules *rules;
    const struct batch_limits *limits;
    struct batch *batch;
    struct problems *problems;
    struct error *err;
    struct pointer pointer;
    struct arena scratch;
    struct id_set ticket_ids;
    size_t ticket_index;    /* of the ticket that is being read */
    size_t faults;          /* found in this reading */
    size_t faults_left_out; /* those of tickets that on_invalid "skip" left out */
    bool leaves_out;        /* on_invalid is "skip" */
    enum status status;     /* ST_OK, or what ended the reading: ST_NO_MEMORY */
};

__attribute__((format(printf, 3, 4))) static void fault(struct reader *r, const char *code,
                                                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    problems_add_v(r->problems, r->pointer.text, code, format, args);
    va_end(args);
    r->faults++;
}

/* A value of the request for a detail: bounded, on one line, nothing that acts on a terminal. */
struct quote {
    char text[QUOTE_BYTES_MAX];
};

static struct quote quote_of(struct text text)
{
    struct quote quote = {0};
    size_t len = 0;
    size_t at = 0;

    for (int chars = 0; at < text.len && chars < QUOTE_CHARS_MAX; chars++) {
        uint32_t code_point = 0;
        size_t const bytes = utf8_decode(text.data + at, text.len - at, &code_point);
        bool const is_shown = bytes > 0 && !character_is_refused(code_point) &&
                              code_point != 0x2028 && code_point != 0x2029;

        if (is_shown)
            memcpy(quote.text + len, text.data + at, bytes);
        else
            quote.text[len] = '?';
        len += is_shown ? bytes : 1;
        at += bytes > 0 ? bytes : 1;
    }
    if (at < text.len)
        memcpy(quote.text + len, "...", 3);
    return quote;
}

static const char *kind_name(enum value_kind kind)
{
    static const char *const NAMES[] = {
        [VALUE_NULL] = "null",        [VALUE_BOOL] = "true or false",
        [VALUE_INTEGER] = "a number", [VALUE_REAL] = "a number with a fraction or exponent",
        [VALUE_TEXT] = "a text",      [VALUE_ARRAY] = "an array",
        [VALUE_OBJECT] = "an object",
    };

    assert((size_t)kind < sizeof NAMES / sizeof *NAMES);
    return NAMES[kind];
}

static bool expect_kind(struct reader *r, const struct value *value, enum value_kind kind)
{
    if (value->kind == kind)
        return true;
    fault(r, "wrong_type", "must be %s, not %s",
          kind == VALUE_INTEGER ? "a whole number" : kind_name(kind), kind_name(value->kind));
    return false;
}

static void note_status(struct reader *r, enum status status)
{
    assert(status == ST_OK || status == ST_NO_MEMORY);
    if (r->status == ST_OK)
        r->status = status;
}

/* ---- objects ---- */

struct field {
    const char *name;
    void (*read)(struct reader *r, const struct field *field, const struct value *value,
                 void *record);
    bool is_required;
    bool may_be_empty;
    size_t text_offset; /* of the struct text in its record, where the field is a text */
    size_t len_max;     /* characters of a text, bytes of a name */
};

struct field_table {
    const struct field *fields;
    size_t count;
};

#define FIELD_TABLE(array)                                                                         \
    ((struct field_table){.fields = (array), .count = sizeof(array) / sizeof *(array)})

static size_t field_find(struct field_table table, struct text name)
{
    size_t i = 0;

    while (i < table.count && (strlen(table.fields[i].name) != name.len ||
                               memcmp(table.fields[i].name, name.data, name.len) != 0))
        i++;
    return i;
}

static void read_member(struct reader *r, struct field_table table, struct text name,
                        const struct value *value, void *record, uint32_t *seen)
{
    size_t const mark = pointer_push(&r->pointer, name);
    size_t const i = field_find(table, name);

    if (i == table.count) {
        fault(r, "unknown_member", "there is no member \"%s\" here", quote_of(name).text);
    } else {
        *seen |= UINT32_C(1) << i;
        table.fields[i].read(r, &table.fields[i], value, record);
    }
    pointer_pop(&r->pointer, mark);
}

static void report_missing(struct reader *r, struct field_table table, uint32_t seen)
{
    for (size_t i = 0; i < table.count; i++) {
        const struct field *field = &table.fields[i];

        if (field->is_required && (seen >> i & 1) == 0) {
            size_t const mark = pointer_push(
                &r->pointer, (struct text){.data = field->name, .len = strlen(field->name)});

            fault(r, "missing", "is required");
            pointer_pop(&r->pointer, mark);
        }
    }
}

static void read_object(struct reader *r, struct field_table table, const struct value *value,
                        void *record)
{
    void *cursor = NULL;
    uint32_t seen = 0;
    struct text name;
    struct value member;

    assert(table.count <= MEMBERS_MAX);
    if (!expect_kind(r, value, VALUE_OBJECT))
        return;
    while (r->status == ST_OK && r->source->member_next(value->node, &cursor, &name, &member))
        read_member(r, table, name, &member, record, &seen);
    if (r->status == ST_OK)
        report_missing(r, table, seen);
}

static struct text *field_text(const struct field *field, void *record)
{
    return (void *)((char *)record + field->text_offset);
}

/* ---- texts ---- */

static void read_cleaned(struct reader *r, const struct field *field, const struct cleaned *cleaned,
                         struct text *text)
{
    size_t const chars = utf8_count(cleaned->text);

    if (cleaned->verdict == CLEAN_BAD_UTF8)
        fault(r, "bad_character", "is not valid UTF-8");
    else if (cleaned->verdict == CLEAN_BAD_CHARACTER)
        fault(r, "bad_character", "must not have the character U+%04" PRIX32,
              cleaned->bad_code_point);
    else if (cleaned->verdict == CLEAN_BLANK && field->is_required && !field->may_be_empty)
        fault(r, "empty", "must not be empty or blank");
    else if (cleaned->verdict == CLEAN_BLANK && field->may_be_empty)
        *text = TEXT_OF("");
    else if (chars > field->len_max)
        fault(r, "too_long", "has %zu characters, at most %zu are allowed", chars, field->len_max);
    else
        *text = cleaned->text;
}

static void read_text(struct reader *r, const struct field *field, const struct value *value,
                      void *record, enum clean_lines lines)
{
    struct cleaned cleaned;

    if (!expect_kind(r, value, VALUE_TEXT))
        return;
    note_status(r, text_clean(value->text, lines, r->rules, &r->batch->arena, &cleaned, r->err));
    if (r->status == ST_OK)
        read_cleaned(r, field, &cleaned, field_text(field, record));
}

static void read_line(struct reader *r, const struct field *field, const struct value *value,
                      void *record)
{
    read_text(r, field, value, record, CLEAN_ONE_LINE);
}

static void read_notes(struct reader *r, const struct field *field, const struct value *value,
                       void *record)
{
    read_text(r, field, value, record, CLEAN_KEEP_LINES);
}

/* ---- names: texts that are taken byte by byte ---- */

static void keep_copy(struct reader *r, struct text from, struct text *to)
{
    note_status(r, arena_text_copy(&r->batch->arena, from.data, from.len, to, r->err));
}

static bool name_has_length(struct reader *r, const struct value *value, size_t bytes_max)
{
    if (!expect_kind(r, value, VALUE_TEXT))
        return false;
    if (value->text.len == 0)
        fault(r, "empty", "must not be empty");
    else if (value->text.len > bytes_max)
        fault(r, "too_long", "has %zu bytes, at most %zu are allowed", value->text.len, bytes_max);
    else
        return true;
    return false;
}

static bool is_ascii_alphanumeric(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_of_event_id(uint32_t c)
{
    return is_ascii_alphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '-';
}

static bool is_of_id(uint32_t c)
{
    return !character_is_refused(c) && !character_is_white_space(c) && c != '/' && c != '\\';
}

static bool is_of_layout_name(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool name_has_characters(struct reader *r, struct text name, bool (*is_allowed)(uint32_t))
{
    size_t at = 0;

    while (at < name.len) {
        uint32_t code_point;
        size_t const bytes = utf8_decode(name.data + at, name.len - at, &code_point);

        if (bytes == 0) {
            fault(r, "bad_character", "is not valid UTF-8");
            return false;
        }
        if (!is_allowed(code_point)) {
            fault(r, "bad_character", "must not have the character U+%04" PRIX32, code_point);
            return false;
        }
        at += bytes;
    }
    return true;
}

static bool id_is_right(struct reader *r, const struct value *value, bool (*is_allowed)(uint32_t))
{
    if (!name_has_length(r, value, ID_BYTES_MAX) ||
        !name_has_characters(r, value->text, is_allowed))
        return false;
    if (text_equals(value->text, ".") || text_equals(value->text, "..")) {
        fault(r, "bad_id", "must not be \".\" or \"..\"");
        return false;
    }
    assert(id_is_ticket(value->text));
    return true;
}

static void read_event_id(struct reader *r, const struct field *field, const struct value *value,
                          void *record)
{
    struct event *event = record;

    (void)field;
    if (id_is_right(r, value, is_of_event_id)) {
        assert(id_is_event(value->text));
        keep_copy(r, value->text, &event->id);
    }
}

static void read_order_id(struct reader *r, const struct field *field, const struct value *value,
                          void *record)
{
    struct ticket *ticket = record;

    (void)field;
    if (id_is_right(r, value, is_of_id))
        keep_copy(r, value->text, &ticket->order_id);
}

static void read_ticket_id(struct reader *r, const struct field *field, const struct value *value,
                           void *record)
{
    struct ticket *ticket = record;
    size_t first;

    (void)field;
    if (!id_is_right(r, value, is_of_id))
        return;
    keep_copy(r, value->text, &ticket->id);
    if (r->status == ST_OK && !id_set_add(&r->ticket_ids, ticket->id, r->ticket_index, &first))
        fault(r, "duplicate_id", "is the same as /tickets/%zu/id", first);
}

static void read_layout(struct reader *r, const struct field *field, const struct value *value,
                        void *record)
{
    if (name_has_length(r, value, field->len_max) &&
        name_has_characters(r, value->text, is_of_layout_name))
        keep_copy(r, value->text, field_text(field, record));
}

static void read_timezone(struct reader *r, const struct field *field, const struct value *value,
                          void *record)
{
    if (!name_has_length(r, value, field->len_max))
        return;
    if (r->rules->is_zone(value->text))
        keep_copy(r, value->text, field_text(field, record));
    else
        fault(r, "unknown_zone", "\"%s\" is not a time zone of the IANA database",
              quote_of(value->text).text);
}

static void read_locale(struct reader *r, const struct field *field, const struct value *value,
                        void *record)
{
    if (!name_has_length(r, value, field->len_max))
        return;
    if (r->rules->is_locale(value->text))
        keep_copy(r, value->text, field_text(field, record));
    else
        fault(r, "unknown_locale", "\"%s\" is not a locale by BCP 47, such as en-GB",
              quote_of(value->text).text);
}

/* ---- words ---- */

static const char *const OUTPUT_WORDS[] = {
    [OUTPUT_MERGED] = "merged",
    [OUTPUT_PER_ORDER] = "per_order",
    [OUTPUT_PER_TICKET] = "per_ticket",
};
static const char *const ON_INVALID_WORDS[] = {
    [ON_INVALID_REJECT] = "reject",
    [ON_INVALID_SKIP] = "skip",
};
static const char *const ON_MISSING_GLYPH_WORDS[] = {
    [ON_MISSING_GLYPH_REPORT] = "report",
    [ON_MISSING_GLYPH_REJECT] = "reject",
};

#define WORD_READ(r, value, words) word_read(r, value, words, sizeof(words) / sizeof *(words))

/* The place of a word in its list. After a fault: 0, the default. */
static unsigned word_read(struct reader *r, const struct value *value, const char *const *words,
                          unsigned count)
{
    char list[64] = "";

    if (!expect_kind(r, value, VALUE_TEXT))
        return 0;
    for (unsigned i = 0; i < count; i++) {
        size_t const len = strlen(list);

        if (text_equals(value->text, words[i]))
            return i;
        snprintf(list + len, sizeof list - len, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
    }
    fault(r, "unknown_value", "must be one of %s", list);
    return 0;
}

static void read_output(struct reader *r, const struct field *field, const struct value *value,
                        void *record)
{
    struct batch *batch = record;

    (void)field;
    batch->output = (enum batch_output)WORD_READ(r, value, OUTPUT_WORDS);
}

static void read_on_invalid(struct reader *r, const struct field *field, const struct value *value,
                            void *record)
{
    struct batch *batch = record;

    (void)field;
    batch->on_invalid = (enum on_invalid)WORD_READ(r, value, ON_INVALID_WORDS);
}

static void read_on_missing_glyph(struct reader *r, const struct field *field,
                                  const struct value *value, void *record)
{
    struct batch *batch = record;

    (void)field;
    batch->on_missing_glyph = (enum on_missing_glyph)WORD_READ(r, value, ON_MISSING_GLYPH_WORDS);
}

/* ---- numbers and money ---- */

static bool read_integer(struct reader *r, const struct value *value, int64_t max, int64_t *number)
{
    if (!expect_kind(r, value, VALUE_INTEGER))
        return false;
    if (value->integer < 0 || value->integer > max) {
        fault(r, "out_of_range", "must be within 0 and %" PRId64, max);
        return false;
    }
    *number = value->integer;
    return true;
}

static void read_issue(struct reader *r, const struct field *field, const struct value *value,
                       void *record)
{
    struct ticket *ticket = record;
    int64_t issue;

    (void)field;
    if (read_integer(r, value, UINT8_MAX, &issue))
        ticket->issue = (uint8_t)issue;
}

static void read_amount(struct reader *r, const struct field *field, const struct value *value,
                        void *record)
{
    struct ticket *ticket = record;

    (void)field;
    (void)read_integer(r, value, PRICE_AMOUNT_MAX, &ticket->price_amount);
}

static bool is_currency_shape(struct text code)
{
    for (size_t i = 0; i < code.len; i++)
        if (code.data[i] < 'A' || code.data[i] > 'Z')
            return false;
    return code.len == 3;
}

static void read_currency(struct reader *r, const struct field *field, const struct value *value,
                          void *record)
{
    struct ticket *ticket = record;
    char code[4] = "";

    (void)field;
    if (!expect_kind(r, value, VALUE_TEXT))
        return;
    if (is_currency_shape(value->text))
        memcpy(code, value->text.data, 3);
    if (code[0] != '\0' && r->rules->currency_digits(code) >= 0)
        memcpy(ticket->price_currency, code, sizeof code);
    else
        fault(r, "unknown_currency", "\"%s\" is not a currency of ISO 4217, such as EUR",
              quote_of(value->text).text);
}

static const struct field PRICE_FIELDS[] = {
    {.name = "amount", .read = read_amount, .is_required = true},
    {.name = "currency", .read = read_currency, .is_required = true},
};

static void read_price(struct reader *r, const struct field *field, const struct value *value,
                       void *record)
{
    (void)field;
    read_object(r, FIELD_TABLE(PRICE_FIELDS), value, record);
}

/* ---- times ---- */

static bool read_time(struct reader *r, const struct value *value, struct civil_time *time)
{
    enum civil_time_fault time_fault;

    if (!expect_kind(r, value, VALUE_TEXT))
        return false;
    time_fault = civil_time_read(value->text, time);
    if (time_fault == CIVIL_TIME_OK)
        return true;
    fault(r, "bad_time", "\"%s\": %s", quote_of(value->text).text,
          civil_time_fault_reason(time_fault));
    return false;
}

static void read_starts_at(struct reader *r, const struct field *field, const struct value *value,
                           void *record)
{
    struct event *event = record;
    struct civil_time time;

    (void)field;
    if (read_time(r, value, &time))
        event->starts_at_s = time.seconds;
}

static void read_doors_at(struct reader *r, const struct field *field, const struct value *value,
                          void *record)
{
    struct event *event = record;
    struct civil_time time;

    (void)field;
    event->has_doors_at = read_time(r, value, &time);
    if (event->has_doors_at)
        event->doors_at_s = time.seconds;
}

_Static_assert((CIVIL_TIME_SECONDS_MAX - TOKEN_EPOCH_S) / 60 <= UINT32_MAX,
               "every moment that can be written fits a token");

/* A minute of the token. */
static bool read_minute(struct reader *r, const struct value *value, uint32_t *minute)
{
    struct civil_time time;

    if (!read_time(r, value, &time))
        return false;
    if (time.seconds % 60 != 0 || time.has_fraction) {
        fault(r, "not_whole_minute", "must be a whole minute");
        return false;
    }
    if (time.seconds < TOKEN_EPOCH_S) {
        fault(r, "out_of_range", "must not be before 2020-01-01T00:00:00Z");
        return false;
    }
    *minute = (uint32_t)((time.seconds - TOKEN_EPOCH_S) / 60);
    return true;
}

static void read_valid_from(struct reader *r, const struct field *field, const struct value *value,
                            void *record)
{
    struct ticket *ticket = record;

    (void)field;
    ticket->has_valid_from = read_minute(r, value, &ticket->valid_from_min);
}

static void read_valid_until(struct reader *r, const struct field *field, const struct value *value,
                             void *record)
{
    struct ticket *ticket = record;

    (void)field;
    ticket->has_valid_until = read_minute(r, value, &ticket->valid_until_min);
}

static void check_window(struct reader *r, const struct ticket *ticket)
{
    if (ticket->has_valid_from && ticket->has_valid_until &&
        ticket->valid_until_min <= ticket->valid_from_min) {
        size_t const mark = pointer_push(&r->pointer, TEXT_OF("valid_until"));

        fault(r, "bad_window", "must be after valid_from");
        pointer_pop(&r->pointer, mark);
    }
}

/* ---- the callback's URL (RFC 3986, of which only https with a plain host is let in) ---- */

static bool is_of_url(char c)
{
    return c > 0x20 && c < 0x7F && strchr("\"<>\\^`{|}#", c) == NULL;
}

static size_t host_length(const char *host)
{
    size_t len = 0;

    if (host[0] != '[') {
        while (is_ascii_alphanumeric((unsigned char)host[len]) || host[len] == '.' ||
               host[len] == '-')
            len++;
        return len;
    }
    len = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
    return len > 1 && host[len] == ']' ? len + 1 : 0;
}

/* The length of ":port" with a port of 1..65535; 0 when there is none or it is wrong. */
static size_t port_length(const char *rest)
{
    unsigned port = 0;
    size_t len = 1;

    if (rest[0] != ':')
        return 0;
    for (; len <= 5 && rest[len] >= '0' && rest[len] <= '9'; len++)
        port = port * 10 + (unsigned)(rest[len] - '0');
    return port >= 1 && port <= 65535 ? len : 0;
}

/* url is zero-terminated and has no other zero. */
static bool url_is_right(const char *url)
{
    static const char SCHEME[] = "https://";
    const char *rest = url + strlen(SCHEME);
    size_t host;

    for (const char *c = url; *c != '\0'; c++)
        if (!is_of_url(*c))
            return false;
    if (!ascii_equals_any_case(url, SCHEME, strlen(SCHEME)))
        return false;
    host = host_length(rest);
    if (host == 0)
        return false;
    rest += host;
    rest += port_length(rest);
    return *rest == '\0' || *rest == '/' || *rest == '?';
}

static void read_callback_url(struct reader *r, const struct field *field,
                              const struct value *value, void *record)
{
    struct batch *batch = record;

    if (!name_has_length(r, value, field->len_max))
        return;
    keep_copy(r, value->text, &batch->callback_url);
    if (r->status == ST_OK && (strlen(batch->callback_url.data) != value->text.len ||
                               !url_is_right(batch->callback_url.data)))
        fault(r, "bad_url",
              "must be a URL such as https://booking.example/hooks/tickets, "
              "without user or fragment");
}

/* ---- the parts ---- */

#define LINE(type, member, json_name, chars_max)                                                   \
    .name = (json_name), .read = read_line, .text_offset = offsetof(struct type, member),          \
    .len_max = (chars_max)

static const struct field SEAT_FIELDS[] = {
    {LINE(ticket, section, "section", SEAT_CHARS_MAX)},
    {LINE(ticket, row, "row", SEAT_CHARS_MAX)},
    {LINE(ticket, number, "number", SEAT_CHARS_MAX)},
};

static void read_seat(struct reader *r, const struct field *field, const struct value *value,
                      void *record)
{
    struct ticket *ticket = record;

    (void)field;
    read_object(r, FIELD_TABLE(SEAT_FIELDS), value, record);
    ticket->has_seat =
        ticket->section.data != NULL || ticket->row.data != NULL || ticket->number.data != NULL;
}

static const struct field TICKET_FIELDS[] = {
    {.name = "id", .read = read_ticket_id, .is_required = true},
    {.name = "order_id", .read = read_order_id},
    {LINE(ticket, holder, "holder", HOLDER_CHARS_MAX), .is_required = true},
    {LINE(ticket, type, "type", TYPE_CHARS_MAX), .is_required = true},
    {.name = "seat", .read = read_seat},
    {LINE(ticket, gate, "gate", GATE_CHARS_MAX)},
    {.name = "price", .read = read_price},
    {.name = "issue", .read = read_issue},
    {.name = "valid_from", .read = read_valid_from},
    {.name = "valid_until", .read = read_valid_until},
    {.name = "layout",
     .read = read_layout,
     .text_offset = offsetof(struct ticket, layout),
     .len_max = LAYOUT_NAME_BYTES_MAX},
};

static void read_ticket(struct reader *r, size_t index, const struct value *value,
                        struct ticket *ticket)
{
    size_t const mark = pointer_push_index(&r->pointer, index);

    *ticket = (struct ticket){.request_index = index};
    r->ticket_index = index;
    read_object(r, FIELD_TABLE(TICKET_FIELDS), value, ticket);
    check_window(r, ticket);
    pointer_pop(&r->pointer, mark);
}

static enum status tickets_start(struct reader *r, size_t count)
{
    r->batch->tickets = arena_alloc(&r->batch->arena, count * sizeof *r->batch->tickets);
    if (r->batch->tickets == NULL)
        return error_set(r->err, ST_NO_MEMORY, "%zu tickets", count);
    return id_set_init(&r->ticket_ids, count, r->limits->id_hash_key, &r->scratch, r->err);
}

static void read_all_tickets(struct reader *r, const void *array, size_t count)
{
    struct batch *batch = r->batch;

    for (size_t i = 0; i < count && r->status == ST_OK; i++) {
        size_t const faults_before = r->faults;
        struct value const value = r->source->array_at(array, i);

        read_ticket(r, i, &value, &batch->tickets[batch->tickets_count]);
        if (r->faults == faults_before) {
            batch->tickets_count++;
        } else if (r->leaves_out) {
            batch->tickets_skipped++;
            r->faults_left_out += r->faults - faults_before;
        }
    }
    if (r->leaves_out && batch->tickets_count == 0 && r->status == ST_OK)
        fault(r, "no_tickets_left", "every ticket has a fault");
}

static void read_tickets(struct reader *r, const struct field *field, const struct value *value,
                         void *record)
{
    size_t count;

    (void)field;
    (void)record;
    if (!expect_kind(r, value, VALUE_ARRAY))
        return;
    count = r->source->array_count(value->node);
    if (count == 0) {
        fault(r, "empty", "must have at least one ticket");
    } else if (count > r->limits->tickets_max) {
        fault(r, "too_many", "has %zu tickets, at most %zu are allowed (tickets-max)", count,
              r->limits->tickets_max);
    } else {
        note_status(r, tickets_start(r, count));
        read_all_tickets(r, value->node, count);
    }
}

static const struct field EVENT_FIELDS[] = {
    {.name = "id", .read = read_event_id, .is_required = true},
    {LINE(event, name, "name", EVENT_NAME_CHARS_MAX), .is_required = true},
    {LINE(event, venue, "venue", VENUE_CHARS_MAX), .is_required = true, .may_be_empty = true},
    {LINE(event, address, "address", ADDRESS_CHARS_MAX)},
    {.name = "starts_at", .read = read_starts_at, .is_required = true},
    {.name = "doors_at", .read = read_doors_at},
    {.name = "timezone",
     .read = read_timezone,
     .is_required = true,
     .text_offset = offsetof(struct event, timezone),
     .len_max = ZONE_BYTES_MAX},
    {LINE(event, organizer, "organizer", ORGANIZER_CHARS_MAX)},
    {.name = "notes",
     .read = read_notes,
     .text_offset = offsetof(struct event, notes),
     .len_max = NOTES_CHARS_MAX},
};

static void read_event(struct reader *r, const struct field *field, const struct value *value,
                       void *record)
{
    struct batch *batch = record;

    (void)field;
    read_object(r, FIELD_TABLE(EVENT_FIELDS), value, &batch->event);
}

static const struct field BATCH_FIELDS[] = {
    {.name = "event", .read = read_event, .is_required = true},
    {.name = "locale",
     .read = read_locale,
     .text_offset = offsetof(struct batch, locale),
     .len_max = LOCALE_BYTES_MAX},
    {.name = "layout",
     .read = read_layout,
     .text_offset = offsetof(struct batch, layout),
     .len_max = LAYOUT_NAME_BYTES_MAX},
    {.name = "tickets", .read = read_tickets, .is_required = true},
    {.name = "output", .read = read_output},
    {.name = "on_invalid", .read = read_on_invalid},
    {.name = "on_missing_glyph", .read = read_on_missing_glyph},
    {.name = "callback_url", .read = read_callback_url, .len_max = CALLBACK_URL_BYTES_MAX},
};

/* Members come in any order, and what a ticket's fault means must be known before the first. */
static bool leaves_tickets_out(const struct value_source *source, const struct value *root)
{
    struct value value;

    return root->kind == VALUE_OBJECT && source->member(root->node, "on_invalid", &value) &&
           value.kind == VALUE_TEXT && text_equals(value.text, ON_INVALID_WORDS[ON_INVALID_SKIP]);
}

enum status batch_read(const struct value_source *source, struct value root,
                       const struct text_rules *rules, const struct batch_limits *limits,
                       struct batch *batch, struct problems *problems, struct error *err)
{
    struct reader r = {
        .source = source,
        .rules = rules,
        .limits = limits,
        .batch = batch,
        .problems = problems,
        .err = err,
        .leaves_out = leaves_tickets_out(source, &root),
    };

    assert(limits->tickets_max > 0);
    assert(batch->arena.chunks == NULL && batch->tickets == NULL);
    batch->locale = TEXT_OF("en-GB");
    batch->layout = TEXT_OF("classic");
    read_object(&r, FIELD_TABLE(BATCH_FIELDS), &root, batch);
    arena_clear(&r.scratch);
    if (r.status == ST_OK && r.faults > r.faults_left_out)
        r.status = error_set(err, ST_INVALID, "the batch breaks %zu rule%s", r.faults,
                             r.faults == 1 ? "" : "s");
    if (r.status != ST_OK)
        batch_clear(batch);
    assert((r.status == ST_OK) == (batch->tickets_count > 0));
    return r.status;
}
