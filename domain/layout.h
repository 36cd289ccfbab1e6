/*
 * A layout: what stands where on a ticket, as plain data, with the rules that it must keep. Lengths
 * are micrometres from the page's top left corner. First comes what is the same on every ticket,
 * then what is not, each in the order of the file; the QR symbol with its white plate is always
 * last, so that nothing can lie on it.
 *
 * Text contents are pieces: literal text and fields such as {event.name} or {label.holder}.
 *
 * The codes of problems:
 *   missing, unknown_member, wrong_type, out_of_range   as in domain/batch.h
 *   unknown_value      none of the words that the member allows
 *   unknown_field      braces around what is no field
 *   bad_character      a control character or noncharacter in a content
 *   too_long           a content of too many pieces
 *   bad_name           of the layout
 *   bad_color
 *   outside_page       an element reaches over the page's edge
 *   too_small          a text's box is narrower or lower than its smallest letters
 *   modules_too_small  of the QR symbol, with the longest token
 *   one_qr             there is none, or more than one
 *   on_quiet_zone      a text or line overlaps the QR symbol's box
 */
#ifndef TICKETPRESS_DOMAIN_LAYOUT_H
#define TICKETPRESS_DOMAIN_LAYOUT_H

#include "domain/arena.h"
#include "domain/batch.h"
#include "domain/geometry.h"
#include "domain/labels.h"
#include "domain/problems.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAYOUT_ELEMENTS_MAX = 200,
    LAYOUT_PIECES_MAX = 32,
    LAYOUT_LINES_MAX = 40,
    LAYOUT_MODULE_UM_MIN = 600, /* 0.35 and 0.4 mm never read at 100 dpi, 0.6 mm always did */
    LAYOUT_SIZE_MPT_MIN = 4000,
    LAYOUT_SIZE_MPT_MAX = 200000,
};

/* What a piece of content stands for. */
enum field {
    FIELD_LITERAL,
    FIELD_LABEL,
    FIELD_EVENT_NAME,
    FIELD_EVENT_VENUE,
    FIELD_EVENT_ADDRESS,
    FIELD_EVENT_ORGANIZER,
    FIELD_EVENT_NOTES,
    FIELD_EVENT_DATE,  /* starts_at's day, in the venue's zone and the batch's locale */
    FIELD_EVENT_TIME,  /* starts_at's time of day */
    FIELD_EVENT_ZONE,  /* the zone's label at that moment */
    FIELD_EVENT_DOORS, /* doors_at's time of day */
    FIELD_TICKET_ID,   /* from here on fields that differ from ticket to ticket */
    FIELD_TICKET_ORDER,
    FIELD_TICKET_HOLDER,
    FIELD_TICKET_TYPE,
    FIELD_TICKET_SECTION,
    FIELD_TICKET_ROW,
    FIELD_TICKET_SEAT,
    FIELD_TICKET_GATE,
    FIELD_TICKET_PRICE,
    FIELD_COUNT
};

/* Whether a field's text is the same on every ticket of a batch. */
static inline bool field_is_static(enum field field)
{
    return field < FIELD_TICKET_ID;
}

struct layout_piece {
    enum field field;
    enum label label;    /* FIELD_LABEL */
    struct text literal; /* FIELD_LITERAL */
};

enum layout_element_kind { LAYOUT_BOX, LAYOUT_LINE, LAYOUT_TEXT, LAYOUT_QR };
enum layout_align { ALIGN_START, ALIGN_CENTER, ALIGN_END };
enum layout_valign { VALIGN_TOP, VALIGN_MIDDLE, VALIGN_BOTTOM };
enum layout_qr_level { LAYOUT_QR_L, LAYOUT_QR_M, LAYOUT_QR_Q, LAYOUT_QR_H };

struct layout_element {
    enum layout_element_kind kind;
    struct box_um box; /* a line runs from its top left to its bottom right corner */
    uint32_t color;    /* 0xRRGGBB: fill, stroke or text */
    bool has_when;     /* drawn only when the field `when` has a text */
    enum field when;
    int32_t stroke_um, dash_um; /* lines; dash 0: solid */
    /* texts: one line at size, shrunk to floor; then wrapped, shrunk to wrapped_floor; then cut
     * short with an ellipsis */
    struct layout_piece *pieces; /* pieces_count of them */
    size_t pieces_count;
    bool is_bold;
    int32_t size_mpt, floor_mpt, wrapped_floor_mpt;
    uint32_t lines_max;
    enum layout_align align;
    enum layout_valign valign;
    enum layout_qr_level qr_level; /* the box holds symbol and quiet zone */
};

struct layout {
    struct arena arena;
    struct text name;
    int32_t page_w_um, page_h_um;
    struct layout_element *elements; /* elements_count of them; exactly one is a QR symbol */
    size_t elements_count;
};

void layout_clear(struct layout *layout);

/*
 * Read a layout by its rules.
 *
 * Out:     layout      zeroed on entry; owns copies of all texts on success
 *          problems    every broken rule, with the JSON Pointer of its member, or of its element
 *                      where several members are at fault or one is unknown
 * Errors:  ST_INVALID  see problems
 *          ST_NO_MEMORY  *layout is left zeroed in both cases
 */
MUST_USE enum status layout_read(const struct value_source *source, struct value root,
                                 struct layout *layout, struct problems *problems,
                                 struct error *err);

/* The modules on a side of the symbol that the longest token needs at a level (ISO/IEC 18004 table
 * 7). */
int layout_qr_side_max(enum layout_qr_level level);

#endif
