/*
 * The document: finished page contents in, one PDF/A-1b file (ISO 19005-1, on PDF 1.4) out. libharu
 * keeps the objects, the cross references and the trailer; what is inside pages and fonts comes
 * ready from elsewhere and is written as it is.
 *
 * The same input gives the same bytes: there are no dates, and the file identifier is a digest of
 * the contents.
 */
#ifndef TICKETPRESS_WORKERS_PDF_H
#define TICKETPRESS_WORKERS_PDF_H

#include "domain/arena.h"
#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/deflate.h"
#include "workers/font.h"
#include "workers/image.h"
#include "workers/readings.h"
#include "workers/sign.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PDF_PAGES_MAX = 1000000,
    PDF_SHEETS_MAX = 64,
};

/* The sRGB colour profile, compressed: made once per process, read by every document. */
struct pdf_profile;

/* Errors: ST_NO_MEMORY, ST_LIBRARY. */
MUST_USE enum status pdf_profile_new(struct pdf_profile **profile, struct error *err);
void pdf_profile_free(struct pdf_profile **profile);

/* Borrowed bytes. */
struct pdf_data {
    const uint8_t *data;
    size_t len;
};

/* One face as a document embeds it. */
struct pdf_font {
    size_t face;                    /* its index in the font set, and N in /FN */
    const struct glyph_set *glyphs; /* what the subset holds */
    struct pdf_data file;           /* the subset; not compressed */
};

/* One image as a document embeds it. */
struct pdf_image {
    size_t name; /* N in /IN */
    const struct image *image;
};

/* What pages of one kind have in common: what is drawn before the ticket in each cell, and what
 * ends the page. Contents are drawn one after the other, in one state of the graphics. */
struct pdf_sheet {
    const struct pdf_data *before; /* cells_count of them: compressed */
    size_t cells_count;            /* 1..: as many as any page fills */
    struct pdf_data after;         /* compressed; data NULL: nothing */
    int32_t page_w_mpt, page_h_mpt;
};

/* The next `count` tickets, in the first cells of a sheet. */
struct pdf_page {
    size_t first, count; /* the first page's first is 0; no ticket is left out between two pages */
    uint32_t sheet;
};

struct pdf_input {
    struct text title;    /* UTF-8 */
    struct text language; /* BCP 47 */
    const struct font_set *set;
    const struct pdf_font *fonts; /* fonts_count of them, by face ascending */
    size_t fonts_count;
    const struct readings *readings; /* of glyphs that no character leads to; NULL: none */
    const struct pdf_image *images;  /* images_count of them, names all different */
    size_t images_count;
    const struct pdf_sheet *sheets; /* sheets_count of them, 1..PDF_SHEETS_MAX */
    size_t sheets_count;
    const struct pdf_data *tickets; /* tickets_count of them: compressed contents */
    size_t tickets_count;
    const struct pdf_page *pages; /* pages_count of them, 1..PDF_PAGES_MAX, in page order */
    size_t pages_count;
};

/*
 * Write a document, once, into one buffer that is made large enough beforehand.
 *
 * Out:     out     empty on entry
 *          digest  SHA-256 of the document up to its trailer; its first half is the /ID
 * Errors:  ST_TOO_LARGE  the document would have 2^31 bytes or more
 *          ST_NO_MEMORY, ST_LIBRARY  *out is left empty in each case
 * Threads: any, on distinct outputs
 */
MUST_USE enum status pdf_write(const struct pdf_input *input, const struct pdf_profile *profile,
                               struct deflater *deflater, struct bytes *out,
                               uint8_t digest[SHA256_BYTES], struct error *err);

#endif
