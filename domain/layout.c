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
    BOX_UM_MIN = 50,
    IMAGE_UM_MIN = UM_PER_MM,
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

static int32_t length_um_from(struct reading *reading, const char *name, int32_t min)
{
    require(reading, name);
    return thousandths(reading, name, min, min, PAGE_SIDE_UM_MAX);
}

static int32_t length_um(struct reading *reading, const char *name)
{
    return length_um_from(reading, name, 0);
}

/* One of a list of words. */
static int word(struct reading *reading, const char *name, const char *const *words, int count,
                int fallback)
{
    struct value value;

    if (!member_of(reading, name, VALUE_TEXT, &value))
        return fallback;
    for (int i = 0; i < count; i++)
        if (text_is(value.text, words[i]))
            return i;
    complain(reading, name, "unknown_value", "\"%s\" is not one of its values, such as \"%s\"",
             shown(value.text).text, words[0]);
    return fallback;
}

static uint32_t count_of(struct reading *reading, const char *name, uint32_t fallback, uint32_t max)
{
    struct value value;

    if (!member_of(reading, name, VALUE_INTEGER, &value))
        return fallback;
    if (value.integer >= 1 && value.integer <= max)
        return (uint32_t)value.integer;
    complain(reading, name, "out_of_range", "must be 1 to %u", max);
    return fallback;
}

static bool truth(struct reading *reading, const char *name)
{
    struct value value;

    return member_of(reading, name, VALUE_BOOL, &value) && value.integer != 0;
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

/* A box of which a member is at fault is left zeroed: it is nowhere, and breaks no other rule. */
static void box_members(struct reading *reading, struct layout_element *element,
                        int32_t side_um_min)
{
    size_t const before = reading->problems->count;
    struct box_um box;

    box.x = length_um(reading, "x_mm");
    box.y = length_um(reading, "y_mm");
    box.w = length_um_from(reading, "w_mm", side_um_min);
    box.h = length_um_from(reading, "h_mm", side_um_min);
    if (reading->problems->count == before)
        element->box = box;
}

static void turns(struct reading *reading, struct layout_element *element)
{
    struct value value;

    if (!member_of(reading, "rotate", VALUE_INTEGER, &value))
        return;
    if (value.integer >= 0 && value.integer < 360 && value.integer % 90 == 0)
        element->quarter_turns = (uint32_t)(value.integer / 90);
    else
        complain(reading, "rotate", "unknown_value", "must be 0, 90, 180 or 270");
}

static void alignment(struct reading *reading, struct layout_element *element,
                      enum layout_align align, enum layout_valign valign)
{
    static const char *const ALIGNS[] = {"start", "center", "end"};
    static const char *const VALIGNS[] = {"top", "middle", "bottom"};

    element->align = (enum layout_align)word(reading, "align", ALIGNS, 3, (int)align);
    element->valign = (enum layout_valign)word(reading, "valign", VALIGNS, 3, (int)valign);
}

static void read_box(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type", "x_mm", "y_mm", "w_mm",
                                        "h_mm", "fill", "when", NULL};

    refuse_others(reading, KNOWN);
    box_members(reading, element, BOX_UM_MIN);
    require(reading, "fill");
    element->color = color(reading, "fill");
}

static void read_line(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type",      "x_mm",    "y_mm",  "w_mm", "h_mm",
                                        "stroke_mm", "dash_mm", "color", "when", NULL};
    size_t before;

    refuse_others(reading, KNOWN);
    before = reading->problems->count;
    box_members(reading, element, 0);
    if (reading->problems->count == before && element->box.w == 0 && element->box.h == 0)
        complain(reading, "", "too_small", "is a line without length");
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
        "rotate",  "when",  NULL};
    static const char *const WEIGHTS[] = {"regular", "bold"};
    size_t const before = reading->problems->count;

    refuse_others(reading, KNOWN);
    box_members(reading, element, 0);
    content(reading, element);
    text_sizes(reading, element);
    if (reading->problems->count == before)
        check_text_box(reading, element);
    element->color = color(reading, "color");
    element->is_bold = word(reading, "weight", WEIGHTS, 2, 0) == 1;
    alignment(reading, element, ALIGN_START, VALIGN_TOP);
    turns(reading, element);
}

/* ---- images ---- */

static bool is_file_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool ends_as_image(struct text file)
{
    static const char *const ENDINGS[] = {".png", ".jpg", ".jpeg"};

    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        size_t const len = strlen(ENDINGS[i]);

        if (file.len > len && memcmp(file.data + file.len - len, ENDINGS[i], len) == 0)
            return true;
    }
    return false;
}

/* Names between single slashes, none of which begins with a dot: nothing leads out of the layout's
 * directory, and no hidden file is read. */
static bool is_image_file(struct text file)
{
    bool is_first = true; /* character of a name */

    if (file.len > LAYOUT_FILE_BYTES_MAX || !ends_as_image(file))
        return false;
    for (size_t i = 0; i < file.len; i++) {
        char const c = file.data[i];

        if (c == '/' ? is_first : !is_file_name_char(c) || (is_first && c == '.'))
            return false;
        is_first = c == '/';
    }
    return true;
}

/* The index of the image of a file; one more image when it is named for the first time. */
static size_t image_of_file(struct reading *reading, struct text file)
{
    struct layout *layout = reading->layout;

    for (size_t i = 0; i < layout->images_count; i++)
        if (text_is(file, layout->images[i].file.data))
            return i;
    if (layout->images_count == LAYOUT_IMAGES_MAX) {
        complain(reading, "file", "too_many", "more than %d different images", LAYOUT_IMAGES_MAX);
        return 0;
    }
    if (layout->images == NULL)
        layout->images = arena_alloc(&layout->arena, LAYOUT_IMAGES_MAX * sizeof *layout->images);
    if (layout->images == NULL)
        reading->status = error_set(reading->err, ST_NO_MEMORY, "a layout");
    else
        reading->status = arena_text_copy(&layout->arena, file.data, file.len,
                                          &layout->images[layout->images_count].file, reading->err);
    return reading->status == ST_OK ? layout->images_count++ : 0;
}

static void read_image(struct reading *reading, struct layout_element *element)
{
    static const char *const KNOWN[] = {"type", "x_mm",  "y_mm",   "w_mm",   "h_mm", "file",
                                        "fit",  "align", "valign", "rotate", "when", NULL};
    static const char *const FITS[] = {"contain", "cover", "stretch"};
    struct value value;

    refuse_others(reading, KNOWN);
    box_members(reading, element, IMAGE_UM_MIN);
    element->fit = (enum layout_fit)word(reading, "fit", FITS, 3, FIT_CONTAIN);
    alignment(reading, element, ALIGN_CENTER, VALIGN_MIDDLE);
    turns(reading, element);
    require(reading, "file");
    if (!member_of(reading, "file", VALUE_TEXT, &value))
        return;
    if (is_image_file(value.text))
        element->image = image_of_file(reading, value.text);
    else
        complain(reading, "file", "bad_file",
                 "must be 1 to %d of a-z A-Z 0-9 . _ - and / between names, none of which begins "
                 "with a dot, and end with .png, .jpg or .jpeg",
                 LAYOUT_FILE_BYTES_MAX);
}

/* ---- the symbol ---- */

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
    size_t const before = reading->problems->count;
    struct box_um box;
    int32_t modules, module_um_min;

    refuse_others(reading, KNOWN);
    box.x = length_um(reading, "x_mm");
    box.y = length_um(reading, "y_mm");
    box.w = box.h = length_um(reading, "side_mm");
    element->qr_level = LEVEL_OF[word(reading, "level", LEVELS, 4, 0)];
    if (reading->problems->count > before)
        return;
    element->box = box;
    modules = layout_qr_side_max(element->qr_level) + 2 * QUIET_MODULES;
    module_um_min = reading->layout->module_um_min;
    if (element->box.w < modules * module_um_min)
        complain(reading, "side_mm", "modules_too_small",
                 "must be at least %g mm: the longest token has %d modules with its quiet zone, of "
                 "%g mm each",
                 modules * module_um_min / 1000.0, modules, module_um_min / 1000.0);
}

/* ---- elements ---- */

/* What an element may colour. */
static struct box_um ink_of(const struct layout_element *element)
{
    struct box_um ink = element->box;
    int32_t const half = (element->stroke_um + 1) / 2;

    if (element->kind != LAYOUT_LINE || (ink.w == 0 && ink.h == 0))
        return ink;
    if (element->box.h > 0 || element->box.w == 0) {
        ink.x -= half;
        ink.w += 2 * half;
    }
    if (element->box.w > 0) {
        ink.y -= half;
        ink.h += 2 * half;
    }
    return ink;
}

static void read_element(struct reading *reading, struct layout_element *element)
{
    static const char *const TYPES[] = {"box", "line", "text", "qr", "image"};
    static void (*const READERS[])(struct reading *, struct layout_element *) = {
        [LAYOUT_BOX] = read_box, [LAYOUT_LINE] = read_line,   [LAYOUT_TEXT] = read_text,
        [LAYOUT_QR] = read_qr,   [LAYOUT_IMAGE] = read_image,
    };
    const struct layout_n_up *n_up = &reading->layout->n_up;
    struct box_um const ticket = {.w = n_up->ticket_w_um, .h = n_up->ticket_h_um};
    size_t const before = reading->problems->count;

    require(reading, "type");
    element->kind = (enum layout_element_kind)word(reading, "type", TYPES, 5, 0);
    if (reading->problems->count > before)
        return; /* the type says which members there may be */
    READERS[element->kind](reading, element);
    when(reading, element);
    if (!box_is_inside(ink_of(element), ticket))
        complain(reading, "", "outside_page", "reaches outside the ticket");
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
        bool const is_refused = element->kind == LAYOUT_TEXT || element->kind == LAYOUT_LINE;

        snprintf(reading->place, sizeof reading->place, "/elements/%zu", i);
        if (is_refused && box_overlaps(ink_of(element), qr->box))
            complain(reading, "", "on_quiet_zone", "overlaps the QR symbol and its quiet zone");
    }
    reading->place[0] = '\0';
}

static struct box_um inset(struct box_um box, int32_t um)
{
    return (struct box_um){box.x + um, box.y + um, box.w - 2 * um, box.h - 2 * um};
}

/* Each text that overlaps an earlier one. Whatever is in them, no text is set over another. */
static void check_texts(struct reading *reading)
{
    const struct layout *layout = reading->layout;

    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *text = &layout->elements[i];
        size_t earlier = 0;

        while (earlier < i && (layout->elements[earlier].kind != LAYOUT_TEXT ||
                               !box_overlaps(inset(text->box, LAYOUT_OVERLAP_UM_MAX),
                                             layout->elements[earlier].box)))
            earlier++;
        if (text->kind != LAYOUT_TEXT || earlier == i)
            continue;
        snprintf(reading->place, sizeof reading->place, "/elements/%zu", i);
        complain(reading, "", "texts_overlap", "overlaps the text of /elements/%zu", earlier);
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

/* ---- pages and sheets ---- */

static void read_page(struct reading *reading)
{
    struct layout *layout = reading->layout;

    require(reading, "page_w_mm");
    require(reading, "page_h_mm");
    layout->page_w_um =
        thousandths(reading, "page_w_mm", PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MIN, PAGE_SIDE_UM_MAX);
    layout->page_h_um =
        thousandths(reading, "page_h_mm", PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MIN, PAGE_SIDE_UM_MAX);
    layout->n_up = (struct layout_n_up){
        .columns = 1,
        .rows = 1,
        .ticket_w_um = layout->page_w_um,
        .ticket_h_um = layout->page_h_um,
    };
}

/* All cells with the gaps between them. */
static struct box_um grid_of(const struct layout_n_up *n_up)
{
    return (struct box_um){
        .x = n_up->margin_x_um,
        .y = n_up->margin_y_um,
        .w = (int32_t)n_up->columns * (n_up->ticket_w_um + n_up->gap_x_um) - n_up->gap_x_um,
        .h = (int32_t)n_up->rows * (n_up->ticket_h_um + n_up->gap_y_um) - n_up->gap_y_um,
    };
}

static void check_grid(struct reading *reading, const struct layout_n_up *n_up)
{
    struct box_um const sheet = {.w = reading->layout->page_w_um, .h = reading->layout->page_h_um};
    int32_t const around = LAYOUT_CUT_MARK_UM + LAYOUT_CUT_CLEAR_UM;
    struct box_um grid = grid_of(n_up);

    if (n_up->columns * n_up->rows > LAYOUT_CELLS_MAX)
        complain(reading, "", "out_of_range", "more than %d tickets on a sheet", LAYOUT_CELLS_MAX);
    if (!box_is_inside(grid, sheet)) {
        complain(reading, "", "outside_sheet",
                 "the tickets reach outside the page: they take %g x "
                 "%g mm with their gaps",
                 grid.w / 1000.0, grid.h / 1000.0);
        return;
    }
    grid =
        (struct box_um){grid.x - around, grid.y - around, grid.w + 2 * around, grid.h + 2 * around};
    if (n_up->has_cut_marks && !box_is_inside(grid, sheet))
        complain(reading, "cut_marks", "no_margin", "need %g mm around the tickets",
                 around / 1000.0);
}

static void grid_members(struct reading *reading, struct layout_n_up *n_up)
{
    static const char *const KNOWN[] = {"columns",     "rows",        "ticket_w_mm", "ticket_h_mm",
                                        "margin_x_mm", "margin_y_mm", "gap_x_mm",    "gap_y_mm",
                                        "cut_marks",   NULL};
    const struct layout *layout = reading->layout;
    struct box_um grid;

    refuse_others(reading, KNOWN);
    require(reading, "columns");
    require(reading, "rows");
    n_up->columns = count_of(reading, "columns", 1, LAYOUT_CELLS_MAX);
    n_up->rows = count_of(reading, "rows", 1, LAYOUT_CELLS_MAX);
    n_up->ticket_w_um = length_um_from(reading, "ticket_w_mm", PAGE_SIDE_UM_MIN);
    n_up->ticket_h_um = length_um_from(reading, "ticket_h_mm", PAGE_SIDE_UM_MIN);
    n_up->gap_x_um = thousandths(reading, "gap_x_mm", 0, 0, PAGE_SIDE_UM_MAX);
    n_up->gap_y_um = thousandths(reading, "gap_y_mm", 0, 0, PAGE_SIDE_UM_MAX);
    grid = grid_of(n_up);
    n_up->margin_x_um =
        thousandths(reading, "margin_x_mm", (layout->page_w_um - grid.w) / 2, 0, PAGE_SIDE_UM_MAX);
    n_up->margin_y_um =
        thousandths(reading, "margin_y_mm", (layout->page_h_um - grid.h) / 2, 0, PAGE_SIDE_UM_MAX);
    n_up->has_cut_marks = truth(reading, "cut_marks");
}

static void read_n_up(struct reading *reading)
{
    const void *root = reading->object;
    size_t const before = reading->problems->count;
    struct layout_n_up n_up = {0};
    struct value value;

    if (!member_of(reading, "n_up", VALUE_OBJECT, &value))
        return;
    snprintf(reading->place, sizeof reading->place, "/n_up");
    reading->object = value.node;
    grid_members(reading, &n_up);
    if (reading->problems->count == before)
        check_grid(reading, &n_up);
    if (reading->problems->count == before)
        reading->layout->n_up = n_up;
    reading->object = root;
    reading->place[0] = '\0';
}

static void read_root(struct reading *reading)
{
    static const char *const KNOWN[] = {"$schema", "name",          "page_w_mm", "page_h_mm",
                                        "n_up",    "module_mm_min", "elements",  NULL};
    struct layout *layout = reading->layout;
    struct value value;

    refuse_others(reading, KNOWN);
    (void)member_of(reading, "$schema", VALUE_TEXT, &value); /* for editors */
    read_name(reading);
    read_page(reading);
    read_n_up(reading);
    layout->module_um_min = thousandths(reading, "module_mm_min", LAYOUT_MODULE_UM,
                                        LAYOUT_MODULE_UM_MIN, LAYOUT_MODULE_UM);
    require(reading, "elements");
    if (reading->status == ST_OK && member_of(reading, "elements", VALUE_ARRAY, &value))
        read_elements(reading, value);
    if (reading->status == ST_OK && layout->elements_count > 0)
        check_qr(reading);
    if (reading->status == ST_OK)
        check_texts(reading);
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

/* ---- questions ---- */

const char *layout_field_name(enum field field)
{
    assert(field > FIELD_LABEL && field < FIELD_COUNT);
    return FIELD_NAMES[field];
}

size_t layout_cells(const struct layout *layout)
{
    return (size_t)layout->n_up.columns * layout->n_up.rows;
}

struct box_um layout_cell(const struct layout *layout, size_t cell)
{
    const struct layout_n_up *n_up = &layout->n_up;
    int32_t const column = (int32_t)(cell % n_up->columns);
    int32_t const row = (int32_t)(cell / n_up->columns);

    assert(cell < layout_cells(layout));
    return (struct box_um){
        .x = n_up->margin_x_um + column * (n_up->ticket_w_um + n_up->gap_x_um),
        .y = n_up->margin_y_um + row * (n_up->ticket_h_um + n_up->gap_y_um),
        .w = n_up->ticket_w_um,
        .h = n_up->ticket_h_um,
    };
}

int32_t layout_module_um(const struct layout *layout)
{
    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *element = &layout->elements[i];

        if (element->kind == LAYOUT_QR)
            return element->box.w / (layout_qr_side_max(element->qr_level) + 2 * QUIET_MODULES);
    }
    assert(false); /* a layout has a symbol */
    return 0;
}
