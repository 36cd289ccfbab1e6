/*
 * Pages: a layout compiled once into a static part and slots, and the writing of both. The static
 * part (art, labels, what the event says) is written once a document, and shared by every page; the
 * slots are what differs from ticket to ticket. Neither knows where on a sheet its ticket lies:
 * what is written before each cell moves the origin there, and holds the static part.
 *
 * For scripts that run from right to left a layout is compiled as its own reflection: each box lies
 * where a mirror would show it, start and end change sides, and what is turned is turned the other
 * way; but no text, image or symbol is itself reflected. Cells keep their order.
 */
#ifndef TICKETPRESS_WORKERS_PAGE_H
#define TICKETPRESS_WORKERS_PAGE_H

#include "domain/batch.h"
#include "domain/bytes.h"
#include "domain/labels.h"
#include "domain/layout.h"
#include "domain/problems.h"
#include "workers/font.h"
#include "workers/image.h"
#include "workers/readings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_plan;

/* The images of a layout, in its order, and their names in every document: /I<first_name> and on.
 */
struct page_images {
    const struct image *images; /* NULL: it has none */
    size_t first_name;
};

enum page_direction { PAGE_LEFT_TO_RIGHT, PAGE_RIGHT_TO_LEFT, PAGE_DIRECTIONS };

/*
 * Compile a layout for a font set. The plan never changes.
 *
 * In:      layout, fonts  borrowed as long as the plan lives
 *          images         one for each image of the layout, in its order; what they show is
 * borrowed likewise Errors:  ST_NO_MEMORY
 */
MUST_USE enum status page_plan_new(const struct layout *layout, const struct font_set *fonts,
                                   struct page_images images, enum page_direction direction,
                                   struct page_plan **plan, struct error *err);
void page_plan_free(struct page_plan **plan);

const struct layout *page_plan_layout(const struct page_plan *plan);

/* What all pages of one document have in common; borrowed during each call. */
struct page_job {
    const struct batch *batch;
    const struct label_language *labels;
    struct glyph_set *glyphs;  /* one a face: the glyphs that were drawn are added */
    struct readings *readings; /* what glyphs read as that no character leads to is added */
    struct problems *problems; /* missing glyphs are added, with pointers into the request */
};

/*
 * How large an image is drawn in its element's box, in um as the picture itself stands, whatever
 * turns it. Whether that is a size that a PDF file can say: what covers a box may be far longer
 * than it, and what it contains far thinner.
 */
bool page_image_size(const struct layout_element *element, const struct image *image, int64_t *w_um,
                     int64_t *h_um);

struct page_writer;

/* One per worker: what it needs over and over. Errors: ST_NO_MEMORY, ST_LIBRARY. */
MUST_USE enum status page_writer_new(const struct font_set *fonts, struct page_writer **writer,
                                     struct error *err);
void page_writer_free(struct page_writer **writer);

/*
 * Write the static part.
 *
 * Out:     out     operators are appended, not compressed; graphics state is left as it was
 * Errors:  ST_NO_MEMORY, ST_LIBRARY; a missing glyph is a problem, not an error
 */
MUST_USE enum status page_write_static(struct page_writer *writer, const struct page_plan *plan,
                                       const struct page_job *job, struct bytes *out,
                                       struct error *err);

/*
 * Write what comes before the ticket in a cell: the end of the cell before it or, in front of the
 * first, the cut marks; the move to its place; the static part. A ticket that is a whole page has
 * the static part alone.
 *
 * In:      cell     0..layout_cells - 1
 *          statics  as page_write_static made it
 * Out:     out      operators are appended; the static part's end leaves a cell open
 * Errors:  ST_NO_MEMORY
 */
MUST_USE enum status page_write_before(const struct page_plan *plan, size_t cell,
                                       const struct bytes *statics, struct bytes *out,
                                       struct error *err);

/* Write what comes behind the last ticket of a page, on which a cell is open. Nothing is appended
 * where a ticket is a whole page. Errors: ST_NO_MEMORY. */
MUST_USE enum status page_write_after(const struct page_plan *plan, struct bytes *out,
                                      struct error *err);

/*
 * Write one ticket's slots, its QR symbol last.
 *
 * In:      token  what the symbol holds, 1.. characters
 * Out, Errors: as above
 */
MUST_USE enum status page_write_ticket(struct page_writer *writer, const struct page_plan *plan,
                                       const struct page_job *job, const struct ticket *ticket,
                                       struct text token, struct bytes *out, struct error *err);

#endif
