#include "domain/layout.h"

#include "domain/characters.h"
#include "domain/token.h"
#include "domain/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    POINTER_BYTES_MAX = 256,
    CONTENT_BYTES_MAX = 1000,
    STROKE_UM_MIN = 50,
    STROKE_UM_MAX = 10 * UM_PER_MM,
    QUIET_MODULES = 4,    /* on each side; ISO/IEC 18004 clause 9.1 */
    SHOWN_BYTES_MAX = 40, /* of the file's own words in a message */
    UM_PER_INCH = 25400,
    MPT_PER_INCH = 72 * MPT_PER_PT,
};

static const char *const FIELD_NAMES[FIELD_COUNT] = {
    [FIELD_EVENT_NAME] = "event.name",       [FIELD_EVENT_VENUE] = "event.venue",
    [FIELD_EVENT_ADDRESS] = "event.address", [FIELD_EVENT_ORGANIZER] = "event.organizer",
    [FIELD_EVENT_NOTES] = "event.notes",     [FIELD_EVENT_DATE] = "event.date",
    [FIELD_EVENT_TIME] = "event.time",       [FIELD_EVENT_ZONE] = "event.zone",
    [FIELD_EVENT_DOORS] = "event.doors",     [FIELD_TICKET_ID] = "ticket.id",
    [FIELD_TICKET_ORDER] = "ticket.order",   [FIELD_TICKET_HOLDER] = "ticket.holder",
    [FIELD_TICKET_TYPE] = "ticket.type",     [FIELD_TICKET_SECTION] = "ticket.section",
    [FIELD_TICKET_ROW] = "ticket.row",       [FIELD_TICKET_SEAT] = "ticket.seat",
    [FIELD_TICKET_GATE] = "ticket.gate",     [FIELD_TICKET_PRICE] = "ticket.price",
};

/* One reading: where it is and what it found. */
struct reading {
    const struct value_source *source;
    struct layout *layout;
    struct problems *problems;
    struct error *err;
    enum status status;                /* ST_OK until memory runs out */
    const void *object;                /* the object whose members are being read */
    char place[POINTER_BYTES_MAX / 2]; /* its JSON Pointer */
};

__attribute__((format(printf, 4, 5))) static void
complain(struct reading *reading, const char *member, const char *code, const char *format, ...)
{
    char pointer[POINTER_BYTES_MAX];
    char detail[POINTER_BYTES_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    snprintf(pointer, sizeof pointer, "%s%s%s", reading->place, member[0] == '\0' ? "" : "/",
             member);
    problems_add(reading->problems, pointer, code, "%s", detail);
}

/* The file's own words as a message can show them. */
struct shown {
    char text[SHOWN_BYTES_MAX + 1];
};

static struct shown shown(struct text text)
{
    struct shown shown = {""};
    size_t const len = utf8_prefix(text, SHOWN_BYTES_MAX);

    for (size_t i = 0; i < len; i++)
        shown.text[i] = (unsigned char)text.data[i] < 0x20 ? '?' : text.data[i];
    return shown;
}

static bool text_is(struct text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* ---- members ---- */

/* Whether a member is there with the kind asked for; a complaint if it is there with another. */
static bool member_of(struct reading *reading, const char *name, enum value_kind kind,
                      struct value *value)
{
    static const char *const KINDS[] = {"null",     "true or false", "a whole number", "a number",
                                        "a string", "an array",      "an object"};

    if (!reading->source->member(reading->object, name, value))
        return false;
    if (kind == VALUE_REAL && value->kind == VALUE_INTEGER) {
        value->real = (double)value->integer;
        return true;
    }
    if (value->kind != kind) {
        complain(reading, name, "wrong_type", "must be %s", KINDS[kind]);
        return false;
    }
    return true;
}

/* A number times 1,000 as an integer: millimetres to micrometres, points to thousandths. */
static int32_t thousandths(struct reading *reading, const char *name, int32_t fallback, int32_t min,
                           int32_t max)
{
    struct value value;
    double scaled;

    if (!member_of(reading, name, VALUE_REAL, &value))
        return fallback;
    scaled = value.real * 1000.0;
    if (!(scaled >= min && scaled <= max)) {
        complain(reading, name, "out_of_range", "must be %g to %g", min / 1000.0, max / 1000.0);
        return fallback;
    }
    return (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
}

static void require(struct reading *reading, const char *name)
{
    struct value value;

    if (!reading->source->member(reading->object, name, &value))
        complain(reading, name, "missing", "is required");
}

static int32_t length_um(struct reading *reading, const char *name)
{
    require(reading, name);
    return thousandths(reading, name, 0, 0, PAGE_SIDE_UM_MAX);
}

/* One of a list of words; the first is the default. */
static int word(struct reading *reading, const char *name, const char *const *words, int count)
{
    struct value value;

    if (!member_of(reading, name, VALUE_TEXT, &value))
        return 0;
    for (int i = 0; i < count; i++)
        if (text_is(value.text, words[i]))
            return i;
    complain(reading, name, "unknown_value", "\"%s\" is not one of its values, such as \"%s\"",
             shown(value.text).text, words[0]);
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static uint32_t color(struct reading *reading, const char *name)
{
    struct value value;
    uint32_t rgb = 0;

    if (!member_of(reading, name, VALUE_TEXT, &value))
        return 0;
    for (size_t i = 1; i < value.text.len && i <= 6; i++) {
        int const digit = hex_digit(value.text.data[i]);

        if (digit < 0)
            goto bad;
        rgb = rgb << 4 | (uint32_t)digit;
    }
    if (value.text.len == 7 && value.text.data[0] == '#')
        return rgb;
bad:
    complain(reading, name, "bad_color", "a colour is # and six digits 0-9 a-f");
    return 0;
}

/* Refuse members that are not on the list, which ends with NULL. */
static void refuse_others(struct reading *reading, const char *const *known)
{
    void *cursor = NULL;
    struct text name;
    struct value value;

    while (reading->source->member_next(reading->object, &cursor, &name, &value)) {
        bool is_known = false;

        for (const char *const *k = known; *k != NULL && !is_known; k++)
            is_known = text_is(name, *k);
        if (!is_known)
            complain(reading, "", "unknown_member", "\"%s\" is not known here", shown(name).text);
    }
}

/* ---- contents ---- */

static bool field_from_name(struct text name, struct layout_piece *piece)
{
    for (int field = FIELD_EVENT_NAME; field < FIELD_COUNT; field++) {
        if (text_is(name, FIELD_NAMES[field])) {
            piece->field = (enum field)field;
            return true;
        }
    }
    if (name.len < 6 || memcmp(name.data, "label.", 6) != 0)
        return false;
    for (int label = 0; label < LABEL_COUNT; label++) {
        if (text_is((struct text){name.data + 6, name.len - 6}, label_name((enum label)label))) {
            *piece = (struct layout_piece){.field = FIELD_LABEL, .label = (enum label)label};
            return true;
        }
    }
    return false;
}

static void piece_add(struct reading *reading, struct layout_element *element,
                      struct layout_piece piece)
{
    if (element->pieces_count == LAYOUT_PIECES_MAX)
        complain(reading, "content", "too_long", "more than %d pieces", LAYOUT_PIECES_MAX);
    else
        element->pieces[element->pieces_count++] = piece;
}

/* Take the literal before the next field, or the field, off the front of rest. */
static void piece_next(struct reading *reading, struct layout_element *element, struct text *rest)
{
    const char *open = memchr(rest->data, '{', rest->len);
    struct layout_piece piece = {.field = FIELD_LITERAL};
    size_t len = open == NULL ? rest->len : (size_t)(open - rest->data);

    if (len > 0) {
        reading->status =
            arena_text_copy(&reading->layout->arena, rest->data, len, &piece.literal, reading->err);
        if (reading->status == ST_OK)
            piece_add(reading, element, piece);
    } else {
        const char *close = memchr(rest->data, '}', rest->len);

        len = close == NULL ? rest->len : (size_t)(close - rest->data) + 1;
        if (close != NULL && field_from_name((struct text){rest->data + 1, len - 2}, &piece))
            piece_add(reading, element, piece);
        else
            complain(reading, "content", "unknown_field", "\"%s\" is no field",
                     shown((struct text){rest->data, len}).text);
    }
    rest->data += len;
    rest->len -= len;
}

/* Line feeds are kept: a content may have several lines. */
static bool is_drawable(struct text text)
{
    uint32_t code_point = 0;

    for (size_t at = 0; at < text.len;) {
        size_t const len = utf8_decode(text.data + at, text.len - at, &code_point);

        if (len == 0 || character_is_noncharacter(code_point) ||
            (character_is_control(code_point) && code_point != '\n'))
            return false;
        at += len;
    }
    return true;
}

static void content(struct reading *reading, struct layout_element *element)
{
    struct value value;

    require(reading, "content");
    if (!member_of(reading, "content", VALUE_TEXT, &value))
        return;
    if (value.text.len == 0 || value.text.len > CONTENT_BYTES_MAX) {
        complain(reading, "content", "out_of_range", "must be 1 to %d bytes", CONTENT_BYTES_MAX);
        return;
    }
    if (!is_drawable(value.text)) {
        complain(reading, "content", "bad_character", "has a control character or noncharacter");
        return;
    }
    element->pieces =
        arena_alloc(&reading->layout->arena, LAYOUT_PIECES_MAX * sizeof *element->pieces);
    if (element->pieces == NULL)
        reading->status = error_set(reading->err, ST_NO_MEMORY, "a layout");
    while (reading->status == ST_OK && value.text.len > 0)
        piece_next(reading, element, &value.text);
}

static void when(struct reading *reading, struct layout_element *element)
{
    struct value value;
    struct layout_piece piece = {0};

    if (!member_of(reading, "when", VALUE_TEXT, &value))
        return;
    if (!field_from_name(value.text, &piece) || piece.field == FIELD_LABEL) {
        complain(reading, "when", "unknown_field", "\"%s\" is no field", shown(value.text).text);
        return;
    }
    element->has_when = true;
    element->when = piece.field;
}

/* ---- elements ---- */

static void box_members(struct reading *reading, struct layout_element *element)
{
    element->box.x = length_um(reading, "x_mm");
    element->box.y = length_um(reading, "y_mm");
    element->box.w = length_um(reading, "w_mm");
    element->box.h = length_um(reading, "h_mm");
}

static void read_box(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type", "x_mm", "y_mm", "w_mm",
                                        "h_mm", "fill", "when", NULL};

    refuse_others(reading, KNOWN);
    box_members(reading, element);
    require(reading, "fill");
    element->color = color(reading, "fill");
}

static void read_line(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type",      "x_mm",    "y_mm",  "w_mm", "h_mm",
                                        "stroke_mm", "dash_mm", "color", "when", NULL};

    refuse_others(reading, KNOWN);
    box_members(reading, element);
    require(reading, "stroke_mm");
    element->stroke_um = thousandths(reading, "stroke_mm", 0, STROKE_UM_MIN, STROKE_UM_MAX);
    element->dash_um = thousandths(reading, "dash_mm", 0, 0, STROKE_UM_MAX);
    element->color = color(reading, "color");
}

static void text_sizes(struct reading *reading, struct layout_element *element)
{
    struct value value;

    require(reading, "size_pt");
    element->size_mpt = thousandths(reading, "size_pt", LAYOUT_SIZE_MPT_MAX, LAYOUT_SIZE_MPT_MIN,
                                    LAYOUT_SIZE_MPT_MAX);
    element->floor_mpt =
        thousandths(reading, "floor_pt", element->size_mpt, LAYOUT_SIZE_MPT_MIN, element->size_mpt);
    element->wrapped_floor_mpt = thousandths(reading, "wrapped_floor_pt", element->floor_mpt,
                                             LAYOUT_SIZE_MPT_MIN, element->size_mpt);
    element->lines_max = 1;
    if (member_of(reading, "lines_max", VALUE_INTEGER, &value)) {
        if (value.integer >= 1 && value.integer <= LAYOUT_LINES_MAX)
            element->lines_max = (uint32_t)value.integer;
        else
            complain(reading, "lines_max", "out_of_range", "must be 1 to %d", LAYOUT_LINES_MAX);
    }
}

/* A box that could not even hold one letter at the smallest size. */
static void check_text_box(struct reading *reading, const struct layout_element *element)
{
    int64_t const letter_um = (int64_t)element->wrapped_floor_mpt * UM_PER_INCH / MPT_PER_INCH;

    if (element->box.w < letter_um || element->box.h < letter_um)
        complain(reading, "", "too_small", "is narrower or lower than its smallest letters");
}

static void read_text(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {
        "type",    "x_mm",  "y_mm",     "w_mm",  "h_mm",   "content",          "weight",
        "size_pt", "color", "floor_pt", "align", "valign", "wrapped_floor_pt", "lines_max",
        "when",    NULL};
    static const char *const WEIGHTS[] = {"regular", "bold"};
    static const char *const ALIGNS[] = {"start", "center", "end"};
    static const char *const VALIGNS[] = {"top", "middle", "bottom"};
    size_t const before = reading->problems->count;

    refuse_others(reading, KNOWN);
    box_members(reading, element);
    content(reading, element);
    text_sizes(reading, element);
    if (reading->problems->count == before)
        check_text_box(reading, element);
    element->color = color(reading, "color");
    element->is_bold = word(reading, "weight", WEIGHTS, 2) == 1;
    element->align = (enum layout_align)word(reading, "align", ALIGNS, 3);
    element->valign = (enum layout_valign)word(reading, "valign", VALIGNS, 3);
}

int layout_qr_side_max(enum layout_qr_level level)
{
    /* Versions 9, 10, 13 and 15 are the first to hold 211 bytes. */
    static const int SIDES[] = {
        [LAYOUT_QR_L] = 53, [LAYOUT_QR_M] = 57, [LAYOUT_QR_Q] = 69, [LAYOUT_QR_H] = 77};

    _Static_assert(TOKEN_CHARS_MAX == 211, "the versions are those of the longest token");
    return SIDES[level];
}

static void read_qr(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type", "x_mm", "y_mm", "side_mm", "level", NULL};
    static const char *const LEVELS[] = {"M", "L", "Q", "H"};
    static const enum layout_qr_level LEVEL_OF[] = {LAYOUT_QR_M, LAYOUT_QR_L, LAYOUT_QR_Q,
                                                    LAYOUT_QR_H};
    size_t before;
    int modules;

    refuse_others(reading, KNOWN);
    element->box.x = length_um(reading, "x_mm");
    element->box.y = length_um(reading, "y_mm");
    before = reading->problems->count;
    element->box.w = element->box.h = length_um(reading, "side_mm");
    if (reading->problems->count > before)
        return;
    element->qr_level = LEVEL_OF[word(reading, "level", LEVELS, 4)];
    modules = layout_qr_side_max(element->qr_level) + 2 * QUIET_MODULES;
    if (element->box.w / modules < LAYOUT_MODULE_UM_MIN)
        complain(reading, "side_mm", "modules_too_small",
                 "must be at least %.1f mm: the longest token has %d modules with its quiet zone, "
                 "of 0.6 mm each",
                 modules * LAYOUT_MODULE_UM_MIN / 1000.0, modules);
}

static void read_element(struct reading *reading, struct layout_element *element)
{
    static const char *const TYPES[] = {"box", "line", "text", "qr"};
    static void (*const READERS[])(struct reading *, struct layout_element *) = {
        [LAYOUT_BOX] = read_box,
        [LAYOUT_LINE] = read_line,
        [LAYOUT_TEXT] = read_text,
        [LAYOUT_QR] = read_qr,
    };
    struct box_um const page = {.w = reading->layout->page_w_um, .h = reading->layout->page_h_um};
    size_t const before = reading->problems->count;

    require(reading, "type");
    element->kind = (enum layout_element_kind)word(reading, "type", TYPES, 4);
    if (reading->problems->count > before)
        return; /* the type says which members there may be */
    READERS[element->kind](reading, element);
    when(reading, element);
    if (!box_is_inside(element->box, page))
        complain(reading, "", "outside_page", "reaches outside the page");
}

static void read_elements(struct reading *reading, struct value elements)
{
    size_t const count = reading->source->array_count(elements.node);

    if (count == 0 || count > LAYOUT_ELEMENTS_MAX) {
        complain(reading, "elements", "out_of_range", "must hold 1 to %d elements",
                 LAYOUT_ELEMENTS_MAX);
        return;
    }
    reading->layout->elements =
        arena_alloc(&reading->layout->arena, count * sizeof *reading->layout->elements);
    if (reading->layout->elements == NULL) {
        reading->status = error_set(reading->err, ST_NO_MEMORY, "a layout");
        return;
    }
    for (size_t i = 0; i < count && reading->status == ST_OK; i++) {
        struct value value = reading->source->array_at(elements.node, i);

        snprintf(reading->place, sizeof reading->place, "/elements/%zu", i);
        reading->object = value.node;
        if (value.kind == VALUE_OBJECT)
            read_element(reading, &reading->layout->elements[i]);
        else
            complain(reading, "", "wrong_type", "must be an object");
    }
    reading->layout->elements_count = count;
    reading->place[0] = '\0';
}

/* ---- rules across elements ---- */

static void check_qr(struct reading *reading)
{
    const struct layout *layout = reading->layout;
    const struct layout_element *qr = NULL;

    for (size_t i = 0; i < layout->elements_count; i++) {
        if (layout->elements[i].kind != LAYOUT_QR)
            continue;
        if (qr != NULL)
            complain(reading, "elements", "one_qr", "a ticket has one QR symbol, not more");
        qr = &layout->elements[i];
    }
    if (qr == NULL) {
        complain(reading, "elements", "one_qr", "a ticket needs its QR symbol");
        return;
    }
    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *element = &layout->elements[i];
        bool const is_ink = element->kind == LAYOUT_TEXT || element->kind == LAYOUT_LINE;

        snprintf(reading->place, sizeof reading->place, "/elements/%zu", i);
        if (is_ink && box_overlaps(element->box, qr->box))
            complain(reading, "", "on_quiet_zone", "overlaps the QR symbol and its quiet zone");
    }
    reading->place[0] = '\0';
}

static void read_name(struct reading *reading)
{
    struct value value;

    require(reading, "name");
    if (!member_of(reading, "name", VALUE_TEXT, &value))
        return;
    if (value.text.len == 0 || value.text.len > LAYOUT_NAME_BYTES_MAX ||
        strspn(value.text.data, "abcdefghijklmnopqrstuvwxyz0123456789-") != value.text.len)
        complain(reading, "name", "bad_name", "must be 1 to %d of a-z 0-9 -",
                 LAYOUT_NAME_BYTES_MAX);
    else
        reading->status = arena_text_copy(&reading->layout->arena, value.text.data, value.text.len,
                                          &reading->layout->name, reading->err);
}

static void read_root(struct reading *reading)
{
    static const char *const KNOWN[] = {"name", "page_w_mm", "page_h_mm", "elements", NULL};
    struct layout *layout = reading->layout;
    struct value elements;

    refuse_others(reading, KNOWN);
    read_name(reading);
    require(reading, "page_w_mm");
    require(reading, "page_h_mm");
    layout->page_w_um =
        thousandths(reading, "page_w_mm", PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MIN, PAGE_SIDE_UM_MAX);
    layout->page_h_um =
        thousandths(reading, "page_h_mm", PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MIN, PAGE_SIDE_UM_MAX);
    require(reading, "elements");
    if (reading->status == ST_OK && member_of(reading, "elements", VALUE_ARRAY, &elements))
        read_elements(reading, elements);
    if (reading->status == ST_OK && layout->elements_count > 0)
        check_qr(reading);
}

enum status layout_read(const struct value_source *source, struct value root, struct layout *layout,
                        struct problems *problems, struct error *err)
{
    size_t const before = problems->count;
    struct reading reading = {
        .source = source,
        .layout = layout,
        .problems = problems,
        .err = err,
        .object = root.node,
    };

    assert(layout->elements == NULL);
    if (root.kind == VALUE_OBJECT)
        read_root(&reading);
    else
        complain(&reading, "", "wrong_type", "a layout is an object");
    if (reading.status == ST_OK && problems->count > before)
        reading.status =
            error_set(err, ST_INVALID, "the layout has %zu faults", problems->count - before);
    if (reading.status != ST_OK)
        layout_clear(layout);
    return reading.status;
}

void layout_clear(struct layout *layout)
{
    arena_clear(&layout->arena);
    *layout = (struct layout){0};
}
