/*
 * A batch of tickets as plain data, and every rule that it must keep. The rules read a tree of
 * values through struct value_source, so that this file knows no JSON library: service/batch_json
 * shows the tree, and a test may show one of its own. All faults are found in one pass, each with
 * its JSON Pointer.
 *
 * Texts of one line: CR, LF, TAB, U+2028 and U+2029, and any run of them, become one space. Notes:
 * CR LF, CR, U+2028 and U+2029 become LF, TAB becomes a space. Nothing else is changed but by NFC.
 * Refused in both: other control characters, noncharacters, and the bidirectional embeddings and
 * overrides U+202A..U+202E, which can make a ticket read as another one; isolates and direction
 * marks are kept. A text that shows nothing (white space and invisible characters only) is empty:
 * refused where a text is required, absent where it is optional (address, organizer, notes, gate
 * and the parts of a seat; a seat without parts is absent). Everything else that is optional is
 * left out or right: "" or null is refused.
 *
 * Ids are kept byte by byte; a ticket's id is taken by the first ticket that has it, whether or not
 * that ticket is otherwise right.
 *
 * The codes of problems, stable for programs to act on:
 *   missing           a required member is not there
 *   unknown_member    a member that the contract does not have
 *   wrong_type        another kind of value, null among them
 *   empty             a text that shows nothing, an id of no bytes, no tickets
 *   too_long          more characters (texts) or bytes (ids, names, URLs) than allowed
 *   too_many          more tickets than tickets_max
 *   bad_character     a character that is refused here; the detail names its code point
 *   bad_id            "." or ".."
 *   duplicate_id      an earlier ticket has the same id; the detail names its place
 *   unknown_value     none of the words that the member allows
 *   unknown_zone, unknown_locale, unknown_currency
 *   out_of_range      a number, or a moment before 2020 for valid_from and valid_until
 *   bad_time          not a date and time by RFC 3339 with an offset; the detail says why
 *   not_whole_minute  valid_from or valid_until with seconds
 *   bad_window        valid_until is not after valid_from
 *   bad_url           not an https URL of a host
 *   no_tickets_left   on_invalid is "skip" and every ticket has a fault
 */
#ifndef TICKETPRESS_DOMAIN_BATCH_H
#define TICKETPRESS_DOMAIN_BATCH_H

#include "domain/arena.h"
#include "domain/problems.h"
#include "domain/status.h"
#include "domain/text_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ID_BYTES_MAX = 64,          /* event, ticket and order ids */
    EVENT_NAME_CHARS_MAX = 300, /* characters are Unicode code points after NFC */
    VENUE_CHARS_MAX = 300,
    ADDRESS_CHARS_MAX = 300,
    ORGANIZER_CHARS_MAX = 200,
    NOTES_CHARS_MAX = 2000,
    ZONE_BYTES_MAX = 64,
    LOCALE_BYTES_MAX = 64,
    LAYOUT_NAME_BYTES_MAX = 64,
    HOLDER_CHARS_MAX = 200,
    TYPE_CHARS_MAX = 100,
    SEAT_CHARS_MAX = 50, /* section, row and number each */
    GATE_CHARS_MAX = 50,
    CALLBACK_URL_BYTES_MAX = 2000,
};
#define PRICE_AMOUNT_MAX INT64_C(1000000000000) /* minor units */

enum batch_output { OUTPUT_MERGED, OUTPUT_PER_ORDER, OUTPUT_PER_TICKET };
enum on_invalid { ON_INVALID_REJECT, ON_INVALID_SKIP };
enum on_missing_glyph { ON_MISSING_GLYPH_REPORT, ON_MISSING_GLYPH_REJECT };

/* Absent optional texts have data == NULL. All texts are NFC but the ids, which are kept as sent.
 */
struct event {
    struct text id;
    struct text name;
    struct text venue; /* required, may be empty */
    struct text address;
    struct text timezone;
    struct text organizer;
    struct text notes;   /* lines end with a single LF */
    int64_t starts_at_s; /* seconds since 1970-01-01T00:00Z, leap seconds not counted */
    int64_t doors_at_s;
    bool has_doors_at;
};

struct ticket {
    struct text id;
    struct text order_id;
    struct text holder;
    struct text type;
    struct text section, row, number; /* of the seat */
    struct text gate;
    struct text layout;     /* this ticket's own layout, else the batch's */
    int64_t price_amount;   /* 0..PRICE_AMOUNT_MAX minor units */
    char price_currency[4]; /* ISO 4217, three capitals; "" when there is no price */
    uint8_t issue;
    bool has_seat, has_valid_from, has_valid_until;
    uint32_t valid_from_min, valid_until_min; /* minutes since 2020-01-01T00:00Z */
    size_t request_index;                     /* its place in the request's "tickets" */
};

struct batch {
    struct arena arena; /* owns every text below */
    struct event event;
    struct text locale; /* BCP 47 */
    struct text layout;
    struct text callback_url;
    enum batch_output output;
    enum on_invalid on_invalid;
    enum on_missing_glyph on_missing_glyph;
    struct ticket *tickets; /* tickets_count of them, in request order */
    size_t tickets_count;   /* 1.. in a batch that was accepted */
    size_t tickets_skipped; /* left out by on_invalid "skip" */
};

/* Free the contents; the struct is left zeroed. */
void batch_clear(struct batch *batch);

/* dst, which must be zeroed, takes the contents; src is left zeroed. */
void batch_move(struct batch *dst, struct batch *src);

/* ---- the tree that the rules read ---- */

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_ARRAY,
    VALUE_OBJECT
};

struct value {
    enum value_kind kind;
    struct text text; /* VALUE_TEXT: valid UTF-8; may hold U+0000, so go by its length */
    int64_t integer;  /* VALUE_INTEGER; VALUE_BOOL: 0 or 1 */
    double real;      /* VALUE_REAL */
    const void *node; /* the source's own handle */
};

/* Borrowed access to one tree. Objects have no duplicate members. */
struct value_source {
    /* Members in the order of the text. *cursor is NULL at the first call; false: no more. */
    bool (*member_next)(const void *object, void **cursor, struct text *name, struct value *value);
    bool (*member)(const void *object, const char *name, struct value *value); /* by name */
    size_t (*array_count)(const void *array);
    struct value (*array_at)(const void *array, size_t index);
};

struct batch_limits {
    size_t tickets_max; /* 1.. */
    /* Secret and random where ids come from strangers (see domain/id_set.h); changes no result. */
    uint64_t id_hash_key[2];
};

/*
 * Read a whole batch by the rules of the contract.
 *
 * In:      source, root  the tree
 *          rules, limits borrowed
 * Out:     batch         zeroed on entry; on success owns copies of all texts
 *          problems      zeroed or with earlier entries on entry; every broken rule is added, in
 *                        the order of the text; the pointer of a missing member is where it
 *                        belongs. Unknown names are cut in pointers after 100 bytes, with "..."
 * Errors:  ST_INVALID    rules are broken (see problems); with on_invalid "skip" faults inside a
 *                        ticket only leave that ticket out, unless none is left: so problems may
 *                        have entries with ST_OK too
 *          ST_NO_MEMORY  *batch is left zeroed in each of these cases
 * Threads: any, on distinct outputs
 */
MUST_USE enum status batch_read(const struct value_source *source, struct value root,
                                const struct text_rules *rules, const struct batch_limits *limits,
                                struct batch *batch, struct problems *problems, struct error *err);

#endif
