#include "domain/batch.h"

#include "tests/support/table_rules.h"

#include <assert.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- a tree without JSON ---- */

enum { NODES_MAX = 16 };

struct node {
    const char *name; /* in its object */
    enum value_kind kind;
    struct text text;
    int64_t integer;
    struct node *children; /* of an object or array, children_count of them */
    size_t children_count;
};

static struct value value_of(const struct node *node)
{
    return (struct value){
        .kind = node->kind, .text = node->text, .integer = node->integer, .node = node};
}

static bool node_member_next(const void *object, void **cursor, struct text *name,
                             struct value *value)
{
    const struct node *parent = object;
    struct node *next = *cursor == NULL ? parent->children : (struct node *)*cursor + 1;

    if (parent->children_count == 0 || next == parent->children + parent->children_count)
        return false;
    *cursor = next;
    *name = (struct text){.data = next->name, .len = strlen(next->name)};
    *value = value_of(next);
    return true;
}

static struct node *child_find(const struct node *parent, const char *name)
{
    for (size_t i = 0; i < parent->children_count; i++)
        if (strcmp(parent->children[i].name, name) == 0)
            return &parent->children[i];
    return NULL;
}

static bool node_member(const void *object, const char *name, struct value *value)
{
    const struct node *child = child_find(object, name);

    if (child != NULL)
        *value = value_of(child);
    return child != NULL;
}

static size_t node_array_count(const void *array)
{
    const struct node *node = array;

    return node->children_count;
}

static struct value node_array_at(const void *array, size_t index)
{
    const struct node *node = array;

    return value_of(&node->children[index]);
}

static const struct value_source SOURCE = {
    .member_next = node_member_next,
    .member = node_member,
    .array_count = node_array_count,
    .array_at = node_array_at,
};

/* ---- a batch to break ---- */

static struct node root_nodes[NODES_MAX], event_nodes[NODES_MAX], ticket_nodes[3][NODES_MAX];
static struct node seat_nodes[NODES_MAX], price_nodes[NODES_MAX], tickets[3];
static struct node root, event, seat, price;
static struct batch batch;
static struct problems problems;

static struct node text_node(const char *data)
{
    return (struct node){.kind = VALUE_TEXT, .text = {.data = data, .len = strlen(data)}};
}

static struct node integer_node(int64_t integer)
{
    return (struct node){.kind = VALUE_INTEGER, .integer = integer};
}

static void set(struct node *parent, const char *name, struct node node)
{
    struct node *child = child_find(parent, name);

    if (child == NULL)
        child = &parent->children[parent->children_count++];
    assert(parent->children_count <= NODES_MAX);
    *child = node;
    child->name = name;
}

static void drop(struct node *parent, const char *name)
{
    struct node *child = child_find(parent, name);

    assert(child != NULL);
    *child = parent->children[--parent->children_count];
}

static void make_ticket(size_t i, const char *id)
{
    tickets[i] = (struct node){.kind = VALUE_OBJECT, .children = ticket_nodes[i]};
    set(&tickets[i], "id", text_node(id));
    set(&tickets[i], "holder", text_node("Ana Li"));
    set(&tickets[i], "type", text_node("General"));
}

static void set_tickets(size_t count)
{
    set(&root, "tickets",
        (struct node){.kind = VALUE_ARRAY, .children = tickets, .children_count = count});
}

static void make_batch(void)
{
    root = (struct node){.kind = VALUE_OBJECT, .children = root_nodes};
    event = (struct node){.kind = VALUE_OBJECT, .children = event_nodes};
    seat = (struct node){.kind = VALUE_OBJECT, .children = seat_nodes};
    price = (struct node){.kind = VALUE_OBJECT, .children = price_nodes};
    set(&event, "id", text_node("evt-003"));
    set(&event, "name", text_node("Jazz"));
    set(&event, "venue", text_node("Auditorio"));
    set(&event, "starts_at", text_node("2027-03-21T20:30:00+01:00"));
    set(&event, "timezone", text_node("Europe/Madrid"));
    make_ticket(0, "tkt-1");
    make_ticket(1, "tkt-2");
    make_ticket(2, "tkt-3");
    set_tickets(1);
}

static enum status read_batch(void)
{
    struct batch_limits const limits = {.tickets_max = 2};

    set(&root, "event", event);
    if (seat.children_count > 0)
        set(&tickets[0], "seat", seat);
    if (price.children_count > 0)
        set(&tickets[0], "price", price);
    batch_clear(&batch);
    problems_clear(&problems);
    return batch_read(&SOURCE, value_of(&root), &TABLE_RULES, &limits, &batch, &problems, NULL);
}

static void clear_batch(void)
{
    batch_clear(&batch);
    problems_clear(&problems);
}

static void expect_one_problem(const char *pointer, const char *code)
{
    cr_expect(problems.count == 1, "%s: %zu problems", pointer, problems.count);
    cr_assert(problems.listed_count >= 1, "%s %s", pointer, code);
    cr_expect_str_eq(problems.listed[0].pointer.data, pointer);
    cr_expect_str_eq(problems.listed[0].code, code, "%s", pointer);
    cr_expect(batch.arena.chunks == NULL && batch.tickets == NULL, "%s", pointer);
}

TestSuite(batch_read, .init = make_batch, .fini = clear_batch);

/* ---- success ---- */

Test(batch_read, fills_in_the_defaults)
{
    cr_assert(read_batch() == ST_OK && problems.count == 0);
    cr_expect_str_eq(batch.locale.data, "en-GB");
    cr_expect_str_eq(batch.layout.data, "classic");
    cr_expect(batch.output == OUTPUT_MERGED && batch.on_invalid == ON_INVALID_REJECT);
    cr_expect(batch.on_missing_glyph == ON_MISSING_GLYPH_REPORT);
    cr_expect(batch.callback_url.data == NULL && batch.event.notes.data == NULL);
    cr_expect(batch.tickets_count == 1 && batch.tickets_skipped == 0);
    cr_expect(!batch.event.has_doors_at && batch.event.starts_at_s == 1805657400);
    cr_expect(!batch.tickets[0].has_seat && batch.tickets[0].price_currency[0] == '\0');
    cr_expect(!batch.tickets[0].has_valid_from && !batch.tickets[0].has_valid_until);
}

Test(batch_read, takes_every_member)
{
    const struct ticket *ticket;

    set(&root, "locale", text_node("es-ES"));
    set(&root, "layout", text_node("a4-4up"));
    set(&root, "output", text_node("per_ticket"));
    set(&root, "on_missing_glyph", text_node("reject"));
    set(&root, "callback_url", text_node("https://booking.example/hooks"));
    set(&event, "address", text_node("Paseo 1"));
    set(&event, "doors_at", text_node("2027-03-21T19:45:00+01:00"));
    set(&event, "organizer", text_node("Escena Viva"));
    set(&event, "notes", text_node("One\r\nTwo"));
    set(&seat, "row", text_node("A"));
    set(&price, "amount", integer_node(4500));
    set(&price, "currency", text_node("EUR"));
    set(&tickets[0], "order_id", text_node("ord-1"));
    set(&tickets[0], "gate", text_node("3"));
    set(&tickets[0], "issue", integer_node(7));
    set(&tickets[0], "layout", text_node("badge"));
    set(&tickets[0], "valid_from", text_node("2020-01-01T00:01:00Z"));
    set(&tickets[0], "valid_until", text_node("2020-01-01T00:02:00Z"));
    cr_assert(read_batch() == ST_OK && problems.count == 0);
    ticket = &batch.tickets[0];
    cr_expect_str_eq(batch.locale.data, "es-ES");
    cr_expect_str_eq(batch.layout.data, "a4-4up");
    cr_expect(batch.output == OUTPUT_PER_TICKET);
    cr_expect(batch.on_missing_glyph == ON_MISSING_GLYPH_REJECT);
    cr_expect_str_eq(batch.callback_url.data, "https://booking.example/hooks");
    cr_expect_str_eq(batch.event.address.data, "Paseo 1");
    cr_expect(batch.event.has_doors_at && batch.event.doors_at_s == 1805654700);
    cr_expect_str_eq(batch.event.organizer.data, "Escena Viva");
    cr_expect_str_eq(batch.event.notes.data, "One\nTwo");
    cr_expect(ticket->has_seat && ticket->section.data == NULL && ticket->number.data == NULL);
    cr_expect_str_eq(ticket->row.data, "A");
    cr_expect_str_eq(ticket->gate.data, "3");
    cr_expect_str_eq(ticket->order_id.data, "ord-1");
    cr_expect_str_eq(ticket->layout.data, "badge");
    cr_expect(ticket->price_amount == 4500 && ticket->issue == 7);
    cr_expect_str_eq(ticket->price_currency, "EUR");
    cr_expect(ticket->has_valid_from && ticket->valid_from_min == 1);
    cr_expect(ticket->has_valid_until && ticket->valid_until_min == 2);
}

/* ---- limits: the largest accepted, the smallest refused ---- */

static const struct {
    struct node *parent;
    const char *name;
    const char *pointer;
    const char *unit; /* repeated max times */
    size_t max;
} LENGTHS[] = {
    {&event, "id", "/event/id", "e", ID_BYTES_MAX},
    {&event, "name", "/event/name", "ñ", EVENT_NAME_CHARS_MAX},
    {&event, "name", "/event/name", "n\u0303", EVENT_NAME_CHARS_MAX}, /* counted after NFC */
    {&event, "venue", "/event/venue", "ễ", VENUE_CHARS_MAX},
    {&event, "address", "/event/address", "\U0001F3AB", ADDRESS_CHARS_MAX},
    {&event, "organizer", "/event/organizer", "o", ORGANIZER_CHARS_MAX},
    {&event, "notes", "/event/notes", "n", NOTES_CHARS_MAX},
    {&root, "layout", "/layout", "l", LAYOUT_NAME_BYTES_MAX},
    {&tickets[0], "id", "/tickets/0/id", "t", ID_BYTES_MAX},
    {&tickets[0], "id", "/tickets/0/id", "é", ID_BYTES_MAX / 2}, /* counted in bytes */
    {&tickets[0], "order_id", "/tickets/0/order_id", "o", ID_BYTES_MAX},
    {&tickets[0], "holder", "/tickets/0/holder", "Ł", HOLDER_CHARS_MAX},
    {&tickets[0], "type", "/tickets/0/type", "t", TYPE_CHARS_MAX},
    {&tickets[0], "gate", "/tickets/0/gate", "g", GATE_CHARS_MAX},
    {&tickets[0], "layout", "/tickets/0/layout", "-", LAYOUT_NAME_BYTES_MAX},
    {&seat, "section", "/tickets/0/seat/section", "s", SEAT_CHARS_MAX},
    {&seat, "row", "/tickets/0/seat/row", "r", SEAT_CHARS_MAX},
    {&seat, "number", "/tickets/0/seat/number", "n", SEAT_CHARS_MAX},
};

static void repeat(char *out, size_t out_size, const char *unit, size_t count)
{
    size_t const len = strlen(unit);

    assert(len * count < out_size);
    for (size_t i = 0; i < count; i++)
        memcpy(out + i * len, unit, len);
    out[len * count] = '\0';
}

Test(batch_read, counts_characters_of_texts_and_bytes_of_names)
{
    static char text[4096];

    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        make_batch();
        repeat(text, sizeof text, LENGTHS[i].unit, LENGTHS[i].max);
        set(LENGTHS[i].parent, LENGTHS[i].name, text_node(text));
        cr_expect(read_batch() == ST_OK, "%s of %zu", LENGTHS[i].pointer, LENGTHS[i].max);
        repeat(text, sizeof text, LENGTHS[i].unit, LENGTHS[i].max + 1);
        set(LENGTHS[i].parent, LENGTHS[i].name, text_node(text));
        cr_expect(read_batch() == ST_INVALID, "%s", LENGTHS[i].pointer);
        expect_one_problem(LENGTHS[i].pointer, "too_long");
    }
}

Test(batch_read, bounds_the_callback_url)
{
    static char url[CALLBACK_URL_BYTES_MAX + 2] = "https://booking.example/";
    size_t const start = strlen(url);

    memset(url + start, 'c', CALLBACK_URL_BYTES_MAX - start);
    set(&root, "callback_url", text_node(url));
    cr_expect(read_batch() == ST_OK);
    url[CALLBACK_URL_BYTES_MAX] = 'c';
    set(&root, "callback_url", text_node(url));
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/callback_url", "too_long");
}

static const struct {
    struct node *parent;
    const char *name;
    const char *pointer;
    int64_t min, max;
} RANGES[] = {
    {&tickets[0], "issue", "/tickets/0/issue", 0, 255},
    {&price, "amount", "/tickets/0/price/amount", 0, PRICE_AMOUNT_MAX},
};

Test(batch_read, takes_numbers_within_their_range)
{
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++) {
        int64_t const right[] = {RANGES[i].min, RANGES[i].max};
        int64_t const wrong[] = {RANGES[i].min - 1, RANGES[i].max + 1, INT64_MIN, INT64_MAX};

        set(&price, "amount", integer_node(1));
        set(&price, "currency", text_node("EUR"));
        for (size_t j = 0; j < 2; j++) {
            set(RANGES[i].parent, RANGES[i].name, integer_node(right[j]));
            cr_expect(read_batch() == ST_OK, "%s", RANGES[i].pointer);
        }
        for (size_t j = 0; j < 4; j++) {
            set(RANGES[i].parent, RANGES[i].name, integer_node(wrong[j]));
            cr_expect(read_batch() == ST_INVALID, "%s", RANGES[i].pointer);
            expect_one_problem(RANGES[i].pointer, "out_of_range");
        }
        make_batch();
    }
}

Test(batch_read, takes_one_ticket_up_to_the_limit)
{
    set_tickets(2);
    cr_expect(read_batch() == ST_OK && batch.tickets_count == 2);
    cr_expect(batch.tickets[1].request_index == 1);
    set_tickets(3);
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/tickets", "too_many");
    set_tickets(0);
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/tickets", "empty");
}

static const struct {
    const char *from, *until, *pointer, *code; /* code NULL: right */
} WINDOWS[] = {
    {"2020-01-01T00:00:00Z", "2020-01-01T00:01:00Z", NULL, NULL},
    {"2027-01-01T01:00:00+01:00", "2027-01-01T00:01:00Z", NULL, NULL},
    {"2020-01-01T00:00:00Z", "9999-12-31T23:59:00Z", NULL, NULL},
    {"2020-01-01T00:59:00+01:00", NULL, "/tickets/0/valid_from", "out_of_range"},
    {"2027-01-01T00:00:01Z", NULL, "/tickets/0/valid_from", "not_whole_minute"},
    {NULL, "2027-01-01T00:00:00.1Z", "/tickets/0/valid_until", "not_whole_minute"},
    {NULL, "2027-01-01T00:00:00.0Z", NULL, NULL},
    {NULL, "soon", "/tickets/0/valid_until", "bad_time"},
    {"2027-01-01T00:01:00Z", "2027-01-01T00:01:00Z", "/tickets/0/valid_until", "bad_window"},
    {"2027-01-01T00:02:00Z", "2027-01-01T00:01:00Z", "/tickets/0/valid_until", "bad_window"},
};

Test(batch_read, takes_windows_of_whole_minutes)
{
    for (size_t i = 0; i < sizeof WINDOWS / sizeof *WINDOWS; i++) {
        bool const is_right = WINDOWS[i].code == NULL;

        make_batch();
        if (WINDOWS[i].from != NULL)
            set(&tickets[0], "valid_from", text_node(WINDOWS[i].from));
        if (WINDOWS[i].until != NULL)
            set(&tickets[0], "valid_until", text_node(WINDOWS[i].until));
        cr_expect(read_batch() == (is_right ? ST_OK : ST_INVALID), "row %zu", i);
        if (!is_right)
            expect_one_problem(WINDOWS[i].pointer, WINDOWS[i].code);
    }
}

static const struct {
    const char *url;
    bool is_right;
} URLS[] = {
    {"https://booking.example", true},
    {"HTTPS://booking.example/", true},
    {"https://booking.example?a=1", true},
    {"https://booking.example:1/x", true},
    {"https://booking.example:65535", true},
    {"https://127.0.0.1/x", true},
    {"https://[2001:db8::1]:8443/x", true},
    {"https://booking.example/%20?a=b&c=%23", true},
    {"http://booking.example/", false},
    {"https:/booking.example/", false},
    {"//booking.example/", false},
    {"https://", false},
    {"https:///x", false},
    {"https://?x", false},
    {"https://booking.example:/x", false},
    {"https://booking.example:0/x", false},
    {"https://booking.example:65536/x", false},
    {"https://booking.example:000001/x", false},
    {"https://booking.example:8a/x", false},
    {"https://user@booking.example/", false},
    {"https://user:secret@booking.example/", false},
    {"https://booking.example/#x", false},
    {"https://booking.example/a b", false},
    {"https://booking.example/a\nb", false},
    {"https://booking.example\\x", false},
    {"https://b\u00FCcher.example/", false},
    {"https://[2001:db8::1/x", false},
    {"https://[]/x", false},
    {"https://[::1]x", false},
};

Test(batch_read, takes_https_urls_with_a_plain_host)
{
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        set(&root, "callback_url", text_node(URLS[i].url));
        cr_expect(read_batch() == (URLS[i].is_right ? ST_OK : ST_INVALID), "%s", URLS[i].url);
        if (!URLS[i].is_right)
            expect_one_problem("/callback_url", "bad_url");
    }
}

/* ---- ids ---- */

static const struct {
    const char *id;
    const char *ticket_code, *event_code; /* NULL: right */
} IDS[] = {
    {"a", NULL, NULL},
    {"A.z_0:-", NULL, NULL},
    {"...", NULL, NULL},
    {"\u00C4\u00D6-1", NULL, "bad_character"},
    {"a+b", NULL, "bad_character"},
    {"", "empty", "empty"},
    {".", "bad_id", "bad_id"},
    {"..", "bad_id", "bad_id"},
    {"a b", "bad_character", "bad_character"},
    {" a", "bad_character", "bad_character"},
    {"a\u00A0", "bad_character", "bad_character"},
    {"a\u3000", "bad_character", "bad_character"},
    {"a\u2028", "bad_character", "bad_character"},
    {"a\tb", "bad_character", "bad_character"},
    {"a\x7F", "bad_character", "bad_character"},
    {"a/b", "bad_character", "bad_character"},
    {"a\\b", "bad_character", "bad_character"},
    {"\u202Ea", "bad_character", "bad_character"},
    {"\uFFFE", "bad_character", "bad_character"},
    {"\xFF", "bad_character", "bad_character"},
};

static void expect_id(struct node *parent, const char *name, const char *pointer, const char *id,
                      const char *code)
{
    make_batch();
    set(parent, name, text_node(id));
    cr_expect(read_batch() == (code == NULL ? ST_OK : ST_INVALID), "%s \"%s\"", pointer, id);
    if (code != NULL)
        expect_one_problem(pointer, code);
}

Test(batch_read, judges_ids_byte_by_byte)
{
    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        expect_id(&event, "id", "/event/id", IDS[i].id, IDS[i].event_code);
        expect_id(&tickets[0], "id", "/tickets/0/id", IDS[i].id, IDS[i].ticket_code);
        expect_id(&tickets[0], "order_id", "/tickets/0/order_id", IDS[i].id, IDS[i].ticket_code);
    }
}

Test(batch_read, keeps_ids_as_they_were_sent)
{
    set(&tickets[0], "id", text_node("A\u0308-1"));
    set(&tickets[1], "id", text_node("\u00C4-1"));
    set_tickets(2);
    cr_assert(read_batch() == ST_OK);
    cr_expect_str_eq(batch.tickets[0].id.data, "A\u0308-1");
    cr_expect_str_eq(batch.tickets[1].id.data, "\u00C4-1");
}

Test(batch_read, names_the_first_ticket_of_an_id)
{
    set(&tickets[1], "id", text_node("tkt-1"));
    set_tickets(2);
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/tickets/1/id", "duplicate_id");
    cr_expect_str_eq(problems.listed[0].detail.data, "is the same as /tickets/0/id");
}

/* ---- each kind of member is refused as another kind ---- */

Test(batch_read, refuses_null_and_other_kinds_everywhere)
{
    static const char *const ROOT[] = {"event",  "locale",     "layout",           "tickets",
                                       "output", "on_invalid", "on_missing_glyph", "callback_url"};
    static const char *const EVENT[] = {"id",       "name",     "venue",     "address", "starts_at",
                                        "doors_at", "timezone", "organizer", "notes"};
    static const char *const TICKET[] = {"id",         "order_id",    "holder", "type",
                                         "seat",       "gate",        "price",  "issue",
                                         "valid_from", "valid_until", "layout"};
    static const struct {
        struct node *parent;
        const char *prefix;
        const char *const *names;
        size_t count;
    } PARTS[] = {
        {&event, "/event/", EVENT, sizeof EVENT / sizeof *EVENT},
        {&tickets[0], "/tickets/0/", TICKET, sizeof TICKET / sizeof *TICKET},
    };
    static const enum value_kind WRONG[] = {VALUE_NULL, VALUE_BOOL, VALUE_REAL, VALUE_ARRAY};
    struct batch_limits const limits = {.tickets_max = 2};

    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < PARTS[p].count; i++)
            for (size_t k = 0; k < 4; k++) {
                char pointer[64];

                make_batch();
                set(PARTS[p].parent, PARTS[p].names[i], (struct node){.kind = WRONG[k]});
                snprintf(pointer, sizeof pointer, "%s%s", PARTS[p].prefix, PARTS[p].names[i]);
                cr_expect(read_batch() == ST_INVALID);
                expect_one_problem(pointer, "wrong_type");
            }
    for (size_t i = 0; i < sizeof ROOT / sizeof *ROOT; i++) {
        char pointer[64];

        make_batch();
        set(&root, "event", event);
        set(&root, ROOT[i], (struct node){.kind = VALUE_NULL});
        problems_clear(&problems);
        snprintf(pointer, sizeof pointer, "/%s", ROOT[i]);
        cr_expect(batch_read(&SOURCE, value_of(&root), &TABLE_RULES, &limits, &batch, &problems,
                             NULL) == ST_INVALID);
        expect_one_problem(pointer, "wrong_type");
    }
}

Test(batch_read, refuses_a_root_that_is_no_object)
{
    struct batch_limits const limits = {.tickets_max = 2};
    struct error err = {0};

    cr_expect(batch_read(&SOURCE, (struct value){.kind = VALUE_ARRAY, .node = &root}, &TABLE_RULES,
                         &limits, &batch, &problems, &err) == ST_INVALID);
    expect_one_problem("", "wrong_type");
    cr_expect_str_eq(err.text, "the batch breaks 1 rule");
}

Test(batch_read, names_what_is_missing)
{
    static const char *const EVENT[] = {"id", "name", "venue", "starts_at", "timezone"};
    static const char *const TICKET[] = {"id", "holder", "type"};
    char pointer[64];

    for (size_t i = 0; i < sizeof EVENT / sizeof *EVENT; i++) {
        make_batch();
        drop(&event, EVENT[i]);
        snprintf(pointer, sizeof pointer, "/event/%s", EVENT[i]);
        cr_expect(read_batch() == ST_INVALID);
        expect_one_problem(pointer, "missing");
    }
    for (size_t i = 0; i < sizeof TICKET / sizeof *TICKET; i++) {
        make_batch();
        drop(&tickets[0], TICKET[i]);
        snprintf(pointer, sizeof pointer, "/tickets/0/%s", TICKET[i]);
        cr_expect(read_batch() == ST_INVALID);
        expect_one_problem(pointer, "missing");
    }
}

Test(batch_read, refuses_unknown_members_with_an_escaped_pointer)
{
    set(&tickets[0], "a/b~c", text_node("x"));
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/tickets/0/a~1b~0c", "unknown_member");
}

Test(batch_read, cuts_long_unknown_names_in_pointers)
{
    static char name[5000];
    static char slashes[300];
    char pointer[320];

    repeat(name, sizeof name, "/", 2000);
    repeat(slashes, sizeof slashes, "~1", 100);
    snprintf(pointer, sizeof pointer, "/event/%s...", slashes);
    set(&event, name, text_node("x"));
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem(pointer, "unknown_member");
}

Test(batch_read, quotes_values_without_what_acts_on_a_terminal)
{
    set(&event, "timezone", text_node("\x1B[31m\u202E\u2028é\xFF"));
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/event/timezone", "unknown_zone");
    cr_expect_str_eq(problems.listed[0].detail.data,
                     "\"?[31m??é?\" is not a time zone of the IANA database");
}

Test(batch_read, takes_an_empty_venue_and_drops_blank_options)
{
    set(&event, "venue", text_node(" \t"));
    set(&event, "address", text_node(""));
    set(&event, "notes", text_node("\n\n"));
    set(&seat, "row", text_node(" "));
    set(&tickets[0], "gate", text_node("\u00A0"));
    cr_assert(read_batch() == ST_OK && problems.count == 0);
    cr_expect(batch.event.venue.data != NULL && batch.event.venue.len == 0);
    cr_expect(batch.event.address.data == NULL && batch.event.notes.data == NULL);
    cr_expect(!batch.tickets[0].has_seat && batch.tickets[0].row.data == NULL);
    cr_expect(batch.tickets[0].gate.data == NULL);
}

/* ---- no memory ---- */

static enum status nfc_without_memory(struct text in, struct arena *arena, struct text *out,
                                      struct error *err)
{
    (void)in;
    (void)arena;
    (void)out;
    return error_set(err, ST_NO_MEMORY, "NFC");
}

Test(batch_read, stops_when_memory_ends)
{
    struct batch_limits const limits = {.tickets_max = 2};
    struct text_rules rules = TABLE_RULES;
    struct error err = {0};

    rules.nfc = nfc_without_memory;
    set(&event, "name", text_node("Fête"));
    drop(&event, "venue");
    set(&root, "event", event);
    cr_expect(batch_read(&SOURCE, value_of(&root), &rules, &limits, &batch, &problems, &err) ==
              ST_NO_MEMORY);
    cr_expect(err.status == ST_NO_MEMORY && problems.count == 0);
    cr_expect(batch.arena.chunks == NULL && batch.tickets == NULL && batch.locale.data == NULL);
}

/* ---- on_invalid ---- */

Test(batch_read, leaves_faulty_tickets_out_when_asked)
{
    set(&root, "on_invalid", text_node("skip"));
    drop(&tickets[0], "holder");
    set(&tickets[0], "issue", integer_node(256));
    set_tickets(2);
    cr_assert(read_batch() == ST_OK);
    cr_expect(batch.tickets_count == 1 && batch.tickets_skipped == 1);
    cr_expect(batch.tickets[0].request_index == 1);
    cr_expect(problems.count == 2);
    cr_expect_str_eq(problems.listed[0].pointer.data, "/tickets/0/issue");
    cr_expect_str_eq(problems.listed[1].pointer.data, "/tickets/0/holder");
}

Test(batch_read, fails_when_no_ticket_is_left)
{
    set(&root, "on_invalid", text_node("skip"));
    set(&tickets[0], "holder", text_node(""));
    cr_expect(read_batch() == ST_INVALID && problems.count == 2);
    cr_expect_str_eq(problems.listed[1].pointer.data, "/tickets");
    cr_expect_str_eq(problems.listed[1].code, "no_tickets_left");
    cr_expect(batch.arena.chunks == NULL);
}

Test(batch_read, fails_for_faults_outside_tickets_even_when_asked_to_skip)
{
    set(&root, "on_invalid", text_node("skip"));
    set(&event, "name", text_node(""));
    cr_expect(read_batch() == ST_INVALID);
    expect_one_problem("/event/name", "empty");
}

/* ---- moves ---- */

Test(batch_move, leaves_the_source_zeroed, .init = make_batch)
{
    struct batch dst = {0};

    cr_assert(read_batch() == ST_OK);
    batch_move(&dst, &batch);
    cr_expect(batch.tickets == NULL && batch.arena.chunks == NULL && batch.locale.data == NULL);
    cr_expect_str_eq(dst.event.name.data, "Jazz");
    batch_clear(&dst);
    cr_expect(dst.tickets == NULL && dst.arena.chunks == NULL);
}

Test(batch_move, wants_an_empty_destination, .init = make_batch, .signal = SIGABRT)
{
    struct batch src = {0};

    if (read_batch() == ST_OK)
        batch_move(&batch, &src);
}
