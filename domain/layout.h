/*
 * A layout: what stands where on a ticket, as plain data, with the rules that it must keep. Lengths
 * are micrometres from the ticket's top left corner. Where elements overlap, the later in the file
 * lies on the earlier; the QR symbol with its white plate is always last, so that nothing can lie
 * on it.
 *
 * A ticket is a whole page, or one cell of a sheet (struct layout_n_up).
 *
 * Text contents are pieces: literal text and fields such as {event.name} or {label.holder}.
 *
 * service/data/layout.schema.json says the same to programs and describes each member; the test of
 * the schema holds the two together.
 *
 * The codes of problems:
 *   missing, unknown_member, wrong_type, out_of_range   as in domain/batch.h
 *   unknown_value      none of the words that the member allows
 *   unknown_field      braces around what is no field
 *   bad_character      a control character or noncharacter in a content
 *   too_long           a content of too many pieces
 *   bad_name           of the layout
 *   bad_color
 *   bad_file           of an image: not a relative path of plain names that ends as PNG or JPEG do
 *   too_many           images of different files
 *   outside_page       an element, with a line's whole stroke, reaches over the ticket's edge
 *   outside_sheet      the cells of an n_up do not fit the page
 *   no_margin          around an n_up's cells for its cut marks
 *   too_small          a text's box is narrower or lower than its smallest letters; a line without
 *                      length
 *   modules_too_small  of the QR symbol, with the longest token
 *   one_qr             there is none, or more than one
 *   on_quiet_zone      a text or line overlaps the QR symbol's box
 *   texts_overlap      two texts' boxes overlap by more than LAYOUT_OVERLAP_UM_MAX each way
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
    LAYOUT_IMAGES_MAX = 16, /* different files */
    LAYOUT_FILE_BYTES_MAX = 100,
    LAYOUT_CELLS_MAX = 64, /* tickets on a sheet */
    LAYOUT_CUT_MARK_UM = 3 * UM_PER_MM,
    LAYOUT_CUT_CLEAR_UM = UM_PER_MM,
    LAYOUT_OVERLAP_UM_MAX = UM_PER_MM / 2, /* less than the leading of a text that can be read */
    LAYOUT_MODULE_UM = 600,     /* 0.35 and 0.4 mm never read at 100 dpi, 0.6 mm always did */
    LAYOUT_MODULE_UM_MIN = 400, /* for layouts that ask for it and are printed finely */
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

/* What stands in braces for a field, such as "event.name"; not of FIELD_LITERAL and FIELD_LABEL. */
const char *layout_field_name(enum field field);

struct layout_piece {
    enum field field;
    enum label label;    /* FIELD_LABEL */
    struct text literal; /* FIELD_LITERAL */
};

enum layout_element_kind { LAYOUT_BOX, LAYOUT_LINE, LAYOUT_TEXT, LAYOUT_QR, LAYOUT_IMAGE };
enum layout_align { ALIGN_START, ALIGN_CENTER, ALIGN_END };
enum layout_valign { VALIGN_TOP, VALIGN_MIDDLE, VALIGN_BOTTOM };
enum layout_qr_level { LAYOUT_QR_L, LAYOUT_QR_M, LAYOUT_QR_Q, LAYOUT_QR_H };

/* How an image comes into its box; the first two keep its proportions. */
enum layout_fit {
    FIT_CONTAIN, /* as large as the box allows, placed by align and valign */
    FIT_COVER,   /* as small as fills the box, placed by align and valign, cut off at its edges */
    FIT_STRETCH  /* exactly the box */
};

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
    size_t image;                  /* index into the layout's images */
    enum layout_fit fit;
    /* Texts and images, 0..3, clockwise. The box is the place on the ticket as it is seen; what
     * stands in it is set as if the box were upright, w and h changing places at 1 and 3, and then
     * turned, so that align start is the top at 1 and the bottom at 3. */
    uint32_t quarter_turns;
};

/* A file that image elements name; what it shows is decoded and kept elsewhere. */
struct layout_image {
    struct text file; /* relative to the layout's own directory: a-z A-Z 0-9 . _ - / and no "..",
                         1..LAYOUT_FILE_BYTES_MAX bytes; ends with .png, .jpg or .jpeg */
};

/* Tickets on a sheet, row by row from the top left. A layout without n_up has one cell: its page.
 */
struct layout_n_up {
    uint32_t columns, rows;     /* 1.., at most LAYOUT_CELLS_MAX cells */
    int32_t ticket_w_um;        /* of a cell */
    int32_t ticket_h_um;        /* elements lie in a cell, and are measured from its corner */
    int32_t margin_x_um;        /* from the sheet's left edge to the first column */
    int32_t margin_y_um;        /* from its top edge to the first row */
    int32_t gap_x_um, gap_y_um; /* between cells */
    bool has_cut_marks;         /* lines of LAYOUT_CUT_MARK_UM that continue each cell's edges
                                   into the sheet's margins, LAYOUT_CUT_CLEAR_UM from the
                                   outermost cells; there is room for them on all four sides */
};

struct layout {
    struct arena arena;
    struct text name;
    int32_t page_w_um, page_h_um; /* the sheet */
    struct layout_n_up n_up;
    int32_t module_um_min; /* LAYOUT_MODULE_UM_MIN..LAYOUT_MODULE_UM; no module is smaller */
    struct layout_element *elements; /* elements_count of them; exactly one is a QR symbol */
    size_t elements_count;
    struct layout_image *images; /* images_count of them, files all different, each one used */
    size_t images_count;         /* 0..LAYOUT_IMAGES_MAX */
};

void layout_clear(struct layout *layout);

/* Tickets on a full sheet, 1..LAYOUT_CELLS_MAX. */
size_t layout_cells(const struct layout *layout);

/* Where the ticket in a cell, 0..layout_cells - 1, lies on its sheet. */
struct box_um layout_cell(const struct layout *layout, size_t cell);

/* The side of a module of the QR symbol when it holds the longest token, rounded down: the smallest
 * there will be. */
int32_t layout_module_um(const struct layout *layout);

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
