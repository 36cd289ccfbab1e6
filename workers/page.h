/*
 * Pages: a layout compiled once into a static part and slots, and the writing of both. The static
 * part (art, labels, what the event says) is one content stream a document, shared by every page;
 * the slots are what differs from ticket to ticket.
 */
#ifndef TICKETPRESS_WORKERS_PAGE_H
#define TICKETPRESS_WORKERS_PAGE_H

#include "domain/batch.h"
#include "domain/bytes.h"
#include "domain/labels.h"
#include "domain/layout.h"
#include "domain/problems.h"
#include "workers/font.h"

#include <stdint.h>

struct page_plan;

/* Compile a layout for a font set. Both are borrowed as long as the plan lives; the plan never
 * changes. Errors: ST_NO_MEMORY. */
MUST_USE enum status page_plan_new(const struct layout *layout, const struct font_set *fonts,
                                   struct page_plan **plan, struct error *err);
void page_plan_free(struct page_plan **plan);

const struct layout *page_plan_layout(const struct page_plan *plan);

/* What all pages of one document have in common; borrowed during each call. */
struct page_job {
    const struct batch *batch;
    const struct label_language *labels;
    struct glyph_set *glyphs;  /* one a face: the glyphs that were drawn are added */
    struct problems *problems; /* missing glyphs are added, with pointers into the request */
};

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
 * Write one ticket's slots, its QR symbol last.
 *
 * In:      token  what the symbol holds, 1.. characters
 * Out, Errors: as above
 */
MUST_USE enum status page_write_ticket(struct page_writer *writer, const struct page_plan *plan,
                                       const struct page_job *job, const struct ticket *ticket,
                                       struct text token, struct bytes *out, struct error *err);

#endif
