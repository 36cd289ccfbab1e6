#include "workers/page.h"

#include "domain/utf8.h"
#include "workers/content.h"
#include "workers/locale.h"
#include "workers/qr.h"
#include "workers/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MISSING_GLYPHS_LISTED_MAX = 8, /* of one text; more say nothing new */
    POINTER_BYTES_MAX = 64,
    CUT_STROKE_MPT = 250, /* a hairline, which still comes out of every printer */
    CUT_EDGES_MAX = 2 * LAYOUT_CELLS_MAX,
    /* Of an image as it is drawn: PDF 1.4 knows numbers up to 32,767 (appendix C), here points, and
     * contents are written in hundredths of a point. */
    IMAGE_UM_MAX = 11000 * UM_PER_MM,
    IMAGE_UM_MIN = 10,
};

/* ---- plans ---- */

/* An element with its box in the ticket's coordinates, as its direction has it. */
struct placed {
    const struct layout_element *element;
    size_t face;
    int32_t x_mpt, y_mpt; /* bottom left */
    int32_t w_mpt, h_mpt;
    enum layout_align align; /* start is left, end is right */
    uint32_t quarter_turns;  /* clockwise */
    bool is_mirrored;        /* a line runs from the top right to the bottom left, text likewise */
    const struct image *image; /* LAYOUT_IMAGE */
    size_t image_name;
};

struct page_plan {
    const struct layout *layout;
    bool has_cells;         /* a page is more than one ticket to its edges */
    struct placed *statics; /* statics_count of them, in drawing order */
    struct placed *slots;   /* behind them in the same array; the QR symbol is the last */
    size_t statics_count, slots_count;
    struct placed elements[];
};

static bool element_is_static(const struct layout_element *element)
{
    if (element->kind == LAYOUT_QR || (element->has_when && !field_is_static(element->when)))
        return false;
    for (size_t i = 0; i < element->pieces_count; i++)
        if (!field_is_static(element->pieces[i].field))
            return false;
    return true;
}

/* What an element may colour; of a line, its whole stroke and somewhat more. */
static struct box_um reach_of(const struct layout_element *element)
{
    struct box_um const box = element->box;
    int32_t const by = element->kind == LAYOUT_LINE ? element->stroke_um : 0;

    return (struct box_um){box.x - by, box.y - by, box.w + 2 * by, box.h + 2 * by};
}

/* Whether it matters which of two elements is drawn first. Texts do not cover each other. */
static bool order_matters(const struct layout_element *a, const struct layout_element *b)
{
    return (a->kind != LAYOUT_TEXT || b->kind != LAYOUT_TEXT) &&
           box_overlaps(reach_of(a), reach_of(b));
}

static enum layout_align mirrored_align(enum layout_align align)
{
    return align == ALIGN_START ? ALIGN_END : align == ALIGN_END ? ALIGN_START : align;
}

static struct placed place(const struct page_plan *plan, const struct font_set *fonts,
                           struct page_images images, enum page_direction direction,
                           const struct layout_element *element)
{
    const struct layout_n_up *n_up = &plan->layout->n_up;
    bool const is_mirrored = direction == PAGE_RIGHT_TO_LEFT;
    struct box_um const box = element->box;
    uint32_t const turns = element->quarter_turns;

    return (struct placed){
        .element = element,
        .face = font_set_face(fonts, element->is_bold ? FONT_BOLD : FONT_REGULAR),
        .x_mpt = mpt_from_um(is_mirrored ? n_up->ticket_w_um - box.x - box.w : box.x),
        .y_mpt = mpt_from_um(n_up->ticket_h_um - box.y - box.h),
        .w_mpt = mpt_from_um(box.w),
        .h_mpt = mpt_from_um(box.h),
        .align = is_mirrored ? mirrored_align(element->align) : element->align,
        .quarter_turns = is_mirrored ? (4 - turns) % 4 : turns,
        .is_mirrored = is_mirrored,
        .image = element->kind == LAYOUT_IMAGE ? &images.images[element->image] : NULL,
        .image_name = images.first_name + element->image,
    };
}

enum { PASS_STATICS, PASS_SLOTS, PASS_QR, PASSES };

/* What lies on a slot is drawn with the slots, behind it, even if it is the same on every ticket.
 */
static void choose_passes(const struct layout *layout, uint8_t passes[LAYOUT_ELEMENTS_MAX])
{
    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *element = &layout->elements[i];

        passes[i] = element->kind == LAYOUT_QR   ? PASS_QR
                    : element_is_static(element) ? PASS_STATICS
                                                 : PASS_SLOTS;
        for (size_t below = 0; below < i && passes[i] == PASS_STATICS; below++)
            if (passes[below] == PASS_SLOTS && order_matters(&layout->elements[below], element))
                passes[i] = PASS_SLOTS;
    }
}

static bool layout_has_cells(const struct layout *layout)
{
    struct box_um const cell = layout_cell(layout, 0);

    return layout_cells(layout) > 1 || cell.x != 0 || cell.y != 0 || cell.w != layout->page_w_um ||
           cell.h != layout->page_h_um;
}

enum status page_plan_new(const struct layout *layout, const struct font_set *fonts,
                          struct page_images images, enum page_direction direction,
                          struct page_plan **plan, struct error *err)
{
    struct page_plan *made =
        calloc(1, sizeof *made + layout->elements_count * sizeof made->elements[0]);
    uint8_t passes[LAYOUT_ELEMENTS_MAX] = {0};
    size_t count = 0;

    assert(layout->elements_count <= LAYOUT_ELEMENTS_MAX);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "layout %s", layout->name.data);
    made->layout = layout;
    made->has_cells = layout_has_cells(layout);
    choose_passes(layout, passes);
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = 0; i < layout->elements_count; i++)
            if (passes[i] == pass)
                made->elements[count++] =
                    place(made, fonts, images, direction, &layout->elements[i]);
        if (pass == PASS_STATICS)
            made->statics_count = count;
    }
    assert(count == layout->elements_count);
    made->statics = made->elements;
    made->slots = made->elements + made->statics_count;
    made->slots_count = count - made->statics_count;
    *plan = made;
    return ST_OK;
}

void page_plan_free(struct page_plan **plan)
{
    free(*plan);
    *plan = NULL;
}

const struct layout *page_plan_layout(const struct page_plan *plan)
{
    return plan->layout;
}

/* ---- writers ---- */

struct page_writer {
    const struct font_set *fonts;
    struct text_setter *setter;
    struct locale_formatter *locale;
    struct arena arena; /* one page's texts */
    struct qr qr;
    struct qr_rect rects[QR_RECTS_MAX];
};

enum status page_writer_new(const struct font_set *fonts, struct page_writer **writer,
                            struct error *err)
{
    struct page_writer *made = calloc(1, sizeof *made);
    enum status st;

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a page writer");
    made->fonts = fonts;
    st = text_setter_new(fonts, &made->setter, err);
    if (st == ST_OK)
        st = locale_formatter_new(&made->locale, err);
    if (st == ST_OK)
        *writer = made;
    else
        page_writer_free(&made);
    return st;
}

void page_writer_free(struct page_writer **writer)
{
    if (*writer == NULL)
        return;
    text_setter_free(&(*writer)->setter);
    locale_formatter_free(&(*writer)->locale);
    arena_clear(&(*writer)->arena);
    free(*writer);
    *writer = NULL;
}

/* One page, or static part, while it is written. */
struct writing {
    struct page_writer *writer;
    const struct page_job *job;
    const struct ticket *ticket; /* NULL in the static part */
    struct text token;
    struct content content;
    struct error *err;
};

/* ---- fields ---- */

static enum status moment(struct writing *writing, int64_t at_s, enum locale_moment what,
                          struct text *text)
{
    const struct batch *batch = writing->job->batch;

    return locale_moment(writing->writer->locale, batch->locale, batch->event.timezone, at_s, what,
                         &writing->writer->arena, text, writing->err);
}

static enum status price(struct writing *writing, struct text *text)
{
    const struct ticket *ticket = writing->ticket;

    if (ticket->price_currency[0] == '\0')
        return ST_OK;
    if (ticket->price_amount == 0) {
        *text = writing->job->labels->words[LABEL_FREE];
        return ST_OK;
    }
    return locale_money(writing->writer->locale, writing->job->batch->locale, ticket->price_amount,
                        ticket->price_currency, &writing->writer->arena, text, writing->err);
}

/* Fields that are texts as they stand: where the text is, and the member that it came from. */
static const struct text *plain_field(const struct writing *writing, enum field field)
{
    const struct event *event = &writing->job->batch->event;
    const struct ticket *ticket = writing->ticket;

    switch (field) {
    case FIELD_EVENT_NAME:
        return &event->name;
    case FIELD_EVENT_VENUE:
        return &event->venue;
    case FIELD_EVENT_ADDRESS:
        return &event->address;
    case FIELD_EVENT_ORGANIZER:
        return &event->organizer;
    case FIELD_EVENT_NOTES:
        return &event->notes;
    case FIELD_TICKET_ID:
        return &ticket->id;
    case FIELD_TICKET_ORDER:
        return &ticket->order_id;
    case FIELD_TICKET_HOLDER:
        return &ticket->holder;
    case FIELD_TICKET_TYPE:
        return &ticket->type;
    case FIELD_TICKET_SECTION:
        return &ticket->section;
    case FIELD_TICKET_ROW:
        return &ticket->row;
    case FIELD_TICKET_SEAT:
        return &ticket->number;
    case FIELD_TICKET_GATE:
        return &ticket->gate;
    default:
        return NULL;
    }
}

/* The text of a field; absent (len 0) where the ticket has none. */
static enum status field_text(struct writing *writing, enum field field, struct text *text)
{
    const struct event *event = &writing->job->batch->event;
    const struct text *plain = plain_field(writing, field);

    *text = (struct text){.data = ""};
    if (plain != NULL) {
        if (plain->len > 0)
            *text = *plain;
        return ST_OK;
    }
    switch (field) {
    case FIELD_EVENT_DATE:
        return moment(writing, event->starts_at_s, LOCALE_DATE, text);
    case FIELD_EVENT_TIME:
        return moment(writing, event->starts_at_s, LOCALE_TIME, text);
    case FIELD_EVENT_ZONE:
        return moment(writing, event->starts_at_s, LOCALE_ZONE, text);
    case FIELD_EVENT_DOORS:
        return event->has_doors_at ? moment(writing, event->doors_at_s, LOCALE_TIME, text) : ST_OK;
    case FIELD_TICKET_PRICE:
        return price(writing, text);
    default:
        assert(false); /* literals and labels are no fields */
        return ST_OK;
    }
}

static enum status piece_text(struct writing *writing, const struct layout_piece *piece,
                              struct text *text)
{
    switch (piece->field) {
    case FIELD_LITERAL:
        *text = piece->literal;
        return ST_OK;
    case FIELD_LABEL:
        *text = writing->job->labels->words[piece->label];
        return ST_OK;
    default:
        return field_text(writing, piece->field, text);
    }
}

/* ---- texts ---- */

/* An element's content, and what its pieces came to. */
struct composed {
    struct text text; /* empty when the element is to be left out */
    struct text parts[LAYOUT_PIECES_MAX];
};

/*
 * UAX 9, 2.4: what a field holds is isolated, so that it is ordered by its own letters and none of
 * it, not even a control that it leaves open, reaches its neighbours.
 */
struct isolation {
    size_t opened, closed; /* controls to be set before and behind the field; both 0: none */
};

static struct isolation isolation_of(struct text text)
{
    struct isolation isolation = {.opened = 1};
    size_t depth = 0;
    uint32_t c = 0;

    for (size_t at = 0; at < text.len;) {
        at += utf8_decode(text.data + at, text.len - at, &c);
        if (c >= 0x2066 && c <= 0x2068) /* LRI, RLI, FSI */
            depth++;
        else if (c == 0x2069 && depth > 0) /* PDI */
            depth--;
        else if (c == 0x2069)
            isolation.opened++;
    }
    isolation.closed = 1 + depth;
    return isolation;
}

/* Whether a text may have letters from right to left, or controls: nothing below U+0580 is one. */
static bool may_turn(struct text text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] >= 0xD6)
            return true;
    return false;
}

static bool needs_isolation(const struct layout_element *element, const struct composed *composed,
                            bool is_right_to_left)
{
    bool needs = is_right_to_left;

    for (size_t i = 0; i < element->pieces_count && !needs; i++)
        needs = may_turn(composed->parts[i]);
    return needs;
}

static void append_text(struct text text, char *joined, size_t *len)
{
    memcpy(joined + *len, text.data, text.len);
    *len += text.len;
}

static enum status join(struct writing *writing, const struct layout_element *element, size_t bytes,
                        bool is_right_to_left, struct composed *composed)
{
    static const struct text FSI = {"\xE2\x81\xA8", 3}, PDI = {"\xE2\x81\xA9", 3};
    bool const isolates = needs_isolation(element, composed, is_right_to_left);
    struct isolation isolations[LAYOUT_PIECES_MAX] = {{0}};
    char *joined;
    size_t len = 0;

    for (size_t i = 0; i < element->pieces_count && isolates; i++)
        if (element->pieces[i].field != FIELD_LITERAL && composed->parts[i].len > 0) {
            isolations[i] = isolation_of(composed->parts[i]);
            bytes += (isolations[i].opened + isolations[i].closed) * FSI.len;
        }
    joined = arena_alloc(&writing->writer->arena, bytes + 1);
    if (joined == NULL)
        return error_set(writing->err, ST_NO_MEMORY, "a text");
    for (size_t i = 0; i < element->pieces_count; i++) {
        for (size_t j = 0; j < isolations[i].opened; j++)
            append_text(FSI, joined, &len);
        append_text(composed->parts[i], joined, &len);
        for (size_t j = 0; j < isolations[i].closed; j++)
            append_text(PDI, joined, &len);
    }
    composed->text = (struct text){.data = joined, .len = len};
    return ST_OK;
}

/* Put the pieces together. A content whose every field is absent is left out, with its labels. */
static enum status compose(struct writing *writing, const struct layout_element *element,
                           bool is_right_to_left, struct composed *composed)
{
    size_t fields = 0, fields_present = 0, bytes = 0;

    for (size_t i = 0; i < element->pieces_count; i++) {
        enum field const field = element->pieces[i].field;
        enum status st = piece_text(writing, &element->pieces[i], &composed->parts[i]);

        if (st != ST_OK)
            return st;
        if (field != FIELD_LITERAL && field != FIELD_LABEL) {
            fields++;
            fields_present += composed->parts[i].len > 0;
        }
        bytes += composed->parts[i].len;
    }
    composed->text = (struct text){0};
    if (fields > 0 && fields_present == 0)
        return ST_OK;
    if (element->pieces_count == 1) {
        composed->text = composed->parts[0];
        return ST_OK;
    }
    return join(writing, element, bytes, is_right_to_left, composed);
}

static bool text_has(struct text text, uint32_t wanted)
{
    uint32_t code_point = 0;
    size_t len;

    while ((len = utf8_decode(text.data, text.len, &code_point)) > 0) {
        if (code_point == wanted)
            return true;
        text.data += len;
        text.len -= len;
    }
    return false;
}

/* The request's member that a field's characters come from: what is written for a moment or as a
 * label depends on the locale, and literal text is the layout's. */
static void pointer_of(const struct writing *writing, enum field field,
                       char pointer[POINTER_BYTES_MAX])
{
    static const char *const MEMBERS[FIELD_COUNT] = {
        [FIELD_EVENT_NAME] = "/event/name",
        [FIELD_EVENT_VENUE] = "/event/venue",
        [FIELD_EVENT_ADDRESS] = "/event/address",
        [FIELD_EVENT_ORGANIZER] = "/event/organizer",
        [FIELD_EVENT_NOTES] = "/event/notes",
        [FIELD_EVENT_DATE] = "/locale",
        [FIELD_EVENT_TIME] = "/locale",
        [FIELD_EVENT_ZONE] = "/locale",
        [FIELD_EVENT_DOORS] = "/locale",
        [FIELD_LABEL] = "/locale",
        [FIELD_LITERAL] = "/layout",
        [FIELD_TICKET_ID] = "/id",
        [FIELD_TICKET_ORDER] = "/order_id",
        [FIELD_TICKET_HOLDER] = "/holder",
        [FIELD_TICKET_TYPE] = "/type",
        [FIELD_TICKET_SECTION] = "/seat/section",
        [FIELD_TICKET_ROW] = "/seat/row",
        [FIELD_TICKET_SEAT] = "/seat/number",
        [FIELD_TICKET_GATE] = "/gate",
        [FIELD_TICKET_PRICE] = "/price",
    };

    if (field_is_static(field))
        snprintf(pointer, POINTER_BYTES_MAX, "%s", MEMBERS[field]);
    else
        snprintf(pointer, POINTER_BYTES_MAX, "/tickets/%zu%s", writing->ticket->request_index,
                 MEMBERS[field]);
}

static void report_missing(struct writing *writing, const struct layout_element *element,
                           const struct composed *composed, uint32_t code_point)
{
    char pointer[POINTER_BYTES_MAX] = "";

    for (size_t i = 0; i < element->pieces_count && pointer[0] == '\0'; i++)
        if (text_has(composed->parts[i], code_point))
            pointer_of(writing, element->pieces[i].field, pointer);
    problems_add(writing->job->problems, pointer, "missing_glyph",
                 "U+%04X is in none of the fonts; U+FFFD is drawn for it", code_point);
}

static void report_all_missing(struct writing *writing, const struct layout_element *element,
                               const struct composed *composed, const struct text_block *block)
{
    size_t listed = 0;

    for (size_t i = 0; i < block->missing_count && listed < MISSING_GLYPHS_LISTED_MAX; i++) {
        bool is_repeated = false;

        for (size_t j = 0; j < i && !is_repeated; j++)
            is_repeated = block->missing[j] == block->missing[i];
        if (is_repeated)
            continue;
        report_missing(writing, element, composed, block->missing[i]);
        listed++;
    }
}

static int32_t mpt_from_units(int64_t units, int32_t size_mpt, int64_t em)
{
    return (int32_t)(units * size_mpt / em);
}

/* The first baseline moved as little as keeps what is drawn inside the box: scripts reach further
 * than the ascent and descent of the first face. What is higher than the box keeps its top. */
static int32_t with_ink_inside(const struct placed *placed, const struct text_block *block,
                               int32_t baseline)
{
    const struct text_line *first = &block->lines[0];
    const struct text_line *last = &block->lines[block->lines_count - 1];
    int32_t const between = (int32_t)(block->lines_count - 1) * block->leading_mpt;
    int32_t const highest =
        placed->y_mpt + placed->h_mpt - mpt_from_units(first->top, block->size_mpt, FONT_EM);
    int32_t const lowest =
        placed->y_mpt + between - mpt_from_units(last->bottom, block->size_mpt, FONT_EM);

    if (baseline < lowest)
        baseline = lowest;
    return baseline < highest ? baseline : highest;
}

/*
 * The first baseline by the first face, so that lines of the same kind stand alike. Its whole
 * ascent and descent stay inside the box, and stacked accents with them; in the middle the capitals
 * are centred as far as that allows, which is what the eye sees.
 */
static int32_t first_baseline(const struct placed *placed, const struct font_metrics *metrics,
                              const struct text_block *block)
{
    int32_t const ascent = mpt_from_units(metrics->ascent, block->size_mpt, FONT_SCALE);
    int32_t const descent = mpt_from_units(-metrics->descent, block->size_mpt, FONT_SCALE);
    int32_t const cap = mpt_from_units(metrics->cap_height, block->size_mpt, FONT_SCALE);
    int32_t const between = (int32_t)(block->lines_count - 1) * block->leading_mpt;
    int32_t const top = placed->y_mpt + placed->h_mpt - ascent;
    int32_t const middle = placed->y_mpt + (placed->h_mpt - cap + between) / 2;

    switch (placed->element->valign) {
    case VALIGN_MIDDLE:
        return middle < top ? middle : top;
    case VALIGN_BOTTOM:
        return placed->y_mpt + descent + between;
    default:
        return top;
    }
}

/* Where the alignment puts a line, but that ink beyond its advances stays inside the box. */
static int32_t line_start(const struct placed *placed, const struct text_block *block,
                          const struct text_line *line)
{
    int32_t const slack = placed->w_mpt - mpt_from_units(line->width, block->size_mpt, FONT_EM);
    int32_t const least = mpt_from_units(line->before, block->size_mpt, FONT_EM);
    int32_t const most = slack - mpt_from_units(line->behind, block->size_mpt, FONT_EM);
    int32_t start = placed->align == ALIGN_END      ? slack
                    : placed->align == ALIGN_CENTER ? slack / 2
                                                    : 0;

    if (start > most)
        start = most;
    if (start < least)
        start = least;
    return placed->x_mpt + start;
}

/* Whether a line is wider than the box, or its ink above or below it. */
static bool leaves_box(const struct placed *placed, const struct text_block *block,
                       const struct text_line *line, int32_t y)
{
    int32_t const size = block->size_mpt;

    int64_t const width = (int64_t)line->before + line->width + line->behind;

    return mpt_from_units(width, size, FONT_EM) > placed->w_mpt ||
           y + mpt_from_units(line->top, size, FONT_EM) > placed->y_mpt + placed->h_mpt ||
           y + mpt_from_units(line->bottom, size, FONT_EM) < placed->y_mpt;
}

static void draw_line_of_text(struct writing *writing, const struct placed *placed,
                              const struct text_block *block, const struct text_line *line,
                              int32_t y)
{
    const struct font_set *fonts = writing->writer->fonts;
    int32_t const x = line_start(placed, block, line);
    bool const is_clipped = leaves_box(placed, block, line, y);

    if (is_clipped) {
        content_save(&writing->content);
        content_clip_box(&writing->content, placed->x_mpt, placed->y_mpt, placed->w_mpt,
                         placed->h_mpt);
    }
    content_text(&writing->content, fonts, block, line, placed->element->color, x, y);
    if (is_clipped)
        content_restore(&writing->content);
}

/* Fitting keeps texts inside their boxes. What is left are piles of combining marks and characters
 * wider than a box, and these are cut off at its edge. */
static void draw_block(struct writing *writing, const struct placed *placed,
                       const struct text_block *block)
{
    const struct font_metrics *metrics = font_metrics(writing->writer->fonts, block->face);
    int32_t y = 0;

    if (block->lines_count > 0)
        y = with_ink_inside(placed, block, first_baseline(placed, metrics, block));
    for (size_t i = 0; i < block->lines_count; i++, y -= block->leading_mpt) {
        const struct text_line *line = &block->lines[i];

        for (size_t g = 0; g < line->glyphs_count; g++)
            glyph_set_add(&writing->job->glyphs[line->glyphs[g].face], line->glyphs[g].id);
        draw_line_of_text(writing, placed, block, line, y);
    }
}

static enum status draw_text(struct writing *writing, const struct placed *placed)
{
    const struct layout_element *element = placed->element;
    struct text_fit const fit = {
        .face = placed->face,
        .is_right_to_left = placed->is_mirrored,
        .width_mpt = placed->w_mpt,
        .height_mpt = placed->h_mpt,
        .size_mpt = element->size_mpt,
        .floor_mpt = element->floor_mpt,
        .wrapped_floor_mpt = element->wrapped_floor_mpt,
        .lines_max = element->lines_max,
    };
    struct composed composed;
    struct text_block block;
    enum status st = compose(writing, element, placed->is_mirrored, &composed);

    if (st == ST_OK)
        st = text_set(writing->writer->setter, writing->job->batch->locale, composed.text, &fit,
                      &writing->writer->arena, &block, writing->err);
    if (st != ST_OK)
        return st;
    report_all_missing(writing, element, &composed, &block);
    draw_block(writing, placed, &block);
    return ST_OK;
}

/* ---- the other elements ---- */

static enum status draw_qr(struct writing *writing, const struct placed *placed)
{
    static const enum qr_level LEVELS[] = {
        [LAYOUT_QR_L] = QR_LEVEL_L,
        [LAYOUT_QR_M] = QR_LEVEL_M,
        [LAYOUT_QR_Q] = QR_LEVEL_Q,
        [LAYOUT_QR_H] = QR_LEVEL_H,
    };
    struct page_writer *writer = writing->writer;
    enum status st = qr_encode(writing->token.data, writing->token.len,
                               LEVELS[placed->element->qr_level], &writer->qr, writing->err);

    if (st == ST_OK)
        content_qr(&writing->content, &writer->qr, writer->rects,
                   qr_rects(&writer->qr, writer->rects), placed->x_mpt, placed->y_mpt,
                   placed->w_mpt);
    return st;
}

static void draw_line(struct writing *writing, const struct placed *placed)
{
    const struct layout_element *element = placed->element;
    int32_t const left = placed->x_mpt;
    int32_t const right = left + placed->w_mpt;

    content_line(&writing->content, &(struct content_line){
                                        .color = element->color,
                                        .x1_mpt = placed->is_mirrored ? right : left,
                                        .y1_mpt = placed->y_mpt + placed->h_mpt,
                                        .x2_mpt = placed->is_mirrored ? left : right,
                                        .y2_mpt = placed->y_mpt,
                                        .stroke_mpt = mpt_from_um(element->stroke_um),
                                        .dash_mpt = mpt_from_um(element->dash_um),
                                    });
}

/* The size of an image in a box of w by h: both sides by the factor of the one that decides. */
static void fit_image(enum layout_fit fit, const struct image *image, int64_t *w, int64_t *h)
{
    int64_t const by_width = *w * image->height;
    int64_t const by_height = *h * image->width;
    bool const width_decides = fit == FIT_CONTAIN ? by_width <= by_height : by_width > by_height;

    if (fit == FIT_STRETCH)
        return;
    if (width_decides)
        *h = by_width / image->width;
    else
        *w = by_height / image->height;
}

bool page_image_size(const struct layout_element *element, const struct image *image, int64_t *w_um,
                     int64_t *h_um)
{
    bool const is_upright = element->quarter_turns % 2 == 0;

    *w_um = is_upright ? element->box.w : element->box.h;
    *h_um = is_upright ? element->box.h : element->box.w;
    fit_image(element->fit, image, w_um, h_um);
    return *w_um >= IMAGE_UM_MIN && *w_um <= IMAGE_UM_MAX && *h_um >= IMAGE_UM_MIN &&
           *h_um <= IMAGE_UM_MAX;
}

/* Where what is not as large as its box begins, by its alignment: a share of what is left over,
 * which is less than nothing where a box is covered. */
static int32_t begin_of(int32_t begin, int32_t slack, int halves)
{
    return begin + (int32_t)((int64_t)slack * halves / 2);
}

static void draw_image(struct writing *writing, const struct placed *placed)
{
    static const int ALIGN_HALVES[] = {[ALIGN_START] = 0, [ALIGN_CENTER] = 1, [ALIGN_END] = 2};
    static const int VALIGN_HALVES[] = {[VALIGN_TOP] = 2, [VALIGN_MIDDLE] = 1, [VALIGN_BOTTOM] = 0};
    bool const is_cut = placed->element->fit == FIT_COVER;
    int64_t w = placed->w_mpt, h = placed->h_mpt;
    int32_t w_mpt, h_mpt;

    fit_image(placed->element->fit, placed->image, &w, &h);
    assert(w <= INT32_MAX && h <= INT32_MAX); /* page_image_size has agreed */
    w_mpt = (int32_t)w;
    h_mpt = (int32_t)h;
    if (is_cut) {
        content_save(&writing->content);
        content_clip_box(&writing->content, placed->x_mpt, placed->y_mpt, placed->w_mpt,
                         placed->h_mpt);
    }
    content_image(
        &writing->content, placed->image_name,
        begin_of(placed->x_mpt, placed->w_mpt - w_mpt, ALIGN_HALVES[placed->align]),
        begin_of(placed->y_mpt, placed->h_mpt - h_mpt, VALIGN_HALVES[placed->element->valign]),
        w_mpt, h_mpt);
    if (is_cut)
        content_restore(&writing->content);
}

static enum status draw_upright(struct writing *writing, const struct placed *placed)
{
    switch (placed->element->kind) {
    case LAYOUT_BOX:
        content_fill_box(&writing->content, placed->element->color, placed->x_mpt, placed->y_mpt,
                         placed->w_mpt, placed->h_mpt);
        return ST_OK;
    case LAYOUT_LINE:
        draw_line(writing, placed);
        return ST_OK;
    case LAYOUT_TEXT:
        return draw_text(writing, placed);
    case LAYOUT_QR:
        return draw_qr(writing, placed);
    case LAYOUT_IMAGE:
        draw_image(writing, placed);
        return ST_OK;
    }
    return ST_OK;
}

/* In axes of its own, which begin at the corner of the box that is its lower left one once the page
 * is turned so that it is upright. */
static enum status draw_turned(struct writing *writing, const struct placed *placed)
{
    uint32_t const turns = placed->quarter_turns;
    struct placed upright = *placed;
    enum status st;

    upright.x_mpt = upright.y_mpt = 0;
    if (turns % 2 == 1) {
        upright.w_mpt = placed->h_mpt;
        upright.h_mpt = placed->w_mpt;
    }
    content_save(&writing->content);
    content_move(&writing->content, placed->x_mpt + (turns >= 2 ? placed->w_mpt : 0),
                 placed->y_mpt + (turns == 1 || turns == 2 ? placed->h_mpt : 0), turns);
    st = draw_upright(writing, &upright);
    content_restore(&writing->content);
    return st;
}

static enum status draw(struct writing *writing, const struct placed *placed)
{
    const struct layout_element *element = placed->element;

    if (element->has_when) {
        struct text text;
        enum status st = field_text(writing, element->when, &text);

        if (st != ST_OK || text.len == 0)
            return st;
    }
    return placed->quarter_turns == 0 ? draw_upright(writing, placed)
                                      : draw_turned(writing, placed);
}

static enum status draw_all(struct writing *writing, const struct placed *elements, size_t count)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = draw(writing, &elements[i]);
    arena_reset(&writing->writer->arena);
    return st == ST_OK ? content_status(&writing->content, writing->err) : st;
}

enum status page_write_static(struct page_writer *writer, const struct page_plan *plan,
                              const struct page_job *job, struct bytes *out, struct error *err)
{
    struct writing writing = {.writer = writer, .job = job, .err = err};
    enum status st;

    content_init(&writing.content, out);
    writing.content.readings = job->readings;
    content_save(&writing.content);
    st = draw_all(&writing, plan->statics, plan->statics_count);
    content_restore(&writing.content);
    return st == ST_OK ? content_status(&writing.content, err) : st;
}

enum status page_write_ticket(struct page_writer *writer, const struct page_plan *plan,
                              const struct page_job *job, const struct ticket *ticket,
                              struct text token, struct bytes *out, struct error *err)
{
    struct writing writing = {
        .writer = writer, .job = job, .ticket = ticket, .token = token, .err = err};

    content_init(&writing.content, out);
    writing.content.readings = job->readings;
    return draw_all(&writing, plan->slots, plan->slots_count);
}

/* ---- sheets ---- */

struct edges {
    int32_t at_mpt[CUT_EDGES_MAX];
    size_t count;
};

/* Edges come in order; where two cells touch, their common one is cut once. */
static void add_edge(struct edges *edges, int32_t at_mpt)
{
    if (edges->count == 0 || edges->at_mpt[edges->count - 1] != at_mpt)
        edges->at_mpt[edges->count++] = at_mpt;
}

static void cut_mark(struct content *content, int32_t x1_mpt, int32_t y1_mpt, int32_t x2_mpt,
                     int32_t y2_mpt)
{
    content_line(content, &(struct content_line){.x1_mpt = x1_mpt,
                                                 .y1_mpt = y1_mpt,
                                                 .x2_mpt = x2_mpt,
                                                 .y2_mpt = y2_mpt,
                                                 .stroke_mpt = CUT_STROKE_MPT});
}

/* Beyond the outermost cells, what continues the edges of all. */
static void draw_cut_marks(struct content *content, const struct layout *layout)
{
    int32_t const clear_mpt = mpt_from_um(LAYOUT_CUT_CLEAR_UM);
    int32_t const end_mpt = mpt_from_um(LAYOUT_CUT_CLEAR_UM + LAYOUT_CUT_MARK_UM);
    struct edges columns = {.count = 0}, rows = {.count = 0};

    for (uint32_t column = 0; column < layout->n_up.columns; column++) {
        struct box_um const cell = layout_cell(layout, column);

        add_edge(&columns, mpt_from_um(cell.x));
        add_edge(&columns, mpt_from_um(cell.x + cell.w));
    }
    for (uint32_t row = 0; row < layout->n_up.rows; row++) {
        struct box_um const cell = layout_cell(layout, (size_t)row * layout->n_up.columns);

        add_edge(&rows, mpt_from_um(layout->page_h_um - cell.y));
        add_edge(&rows, mpt_from_um(layout->page_h_um - cell.y - cell.h));
    }
    for (size_t i = 0; i < columns.count; i++) {
        int32_t const x = columns.at_mpt[i];
        int32_t const top = rows.at_mpt[0], bottom = rows.at_mpt[rows.count - 1];

        cut_mark(content, x, top + clear_mpt, x, top + end_mpt);
        cut_mark(content, x, bottom - clear_mpt, x, bottom - end_mpt);
    }
    for (size_t i = 0; i < rows.count; i++) {
        int32_t const y = rows.at_mpt[i];
        int32_t const left = columns.at_mpt[0], right = columns.at_mpt[columns.count - 1];

        cut_mark(content, left - clear_mpt, y, left - end_mpt, y);
        cut_mark(content, right + clear_mpt, y, right + end_mpt, y);
    }
}

static void begin_cell(const struct layout *layout, size_t cell, struct bytes *out,
                       struct content *content)
{
    struct box_um const box = layout_cell(layout, cell);

    if (cell == 0) {
        content_init(content, out);
        if (layout->n_up.has_cut_marks)
            draw_cut_marks(content, layout);
    } else {
        content_init_saved(content, out);
        content_restore(content);
    }
    content_save(content);
    content_move(content, mpt_from_um(box.x), mpt_from_um(layout->page_h_um - box.y - box.h), 0);
}

enum status page_write_before(const struct page_plan *plan, size_t cell,
                              const struct bytes *statics, struct bytes *out, struct error *err)
{
    struct content content;
    enum status st = ST_OK;

    assert(cell < layout_cells(plan->layout));
    if (plan->has_cells) {
        begin_cell(plan->layout, cell, out, &content);
        st = content_status(&content, err);
    }
    return st == ST_OK ? bytes_append(out, statics->data, statics->len, err) : st;
}

enum status page_write_after(const struct page_plan *plan, struct bytes *out, struct error *err)
{
    struct content content;

    if (!plan->has_cells)
        return ST_OK;
    content_init_saved(&content, out);
    content_restore(&content);
    return content_status(&content, err);
}
