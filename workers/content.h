/*
 * Content streams: the operators of ISO 32000-1 (annex A) that a ticket needs, written as text by
 * integer arithmetic, so that neither locale nor rounding mode can change a byte. Positions are
 * thousandths of a point, to the right and up from the origin in force, which is the page's bottom
 * left corner until content_move, and are written to a hundredth.
 *
 * Running out of memory is remembered: check content_status once, at the end.
 */
#ifndef TICKETPRESS_WORKERS_CONTENT_H
#define TICKETPRESS_WORKERS_CONTENT_H

#include "domain/bytes.h"
#include "workers/font.h"
#include "workers/qr.h"
#include "workers/readings.h"
#include "workers/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTENT_SAVES_MAX = 3 };

struct content {
    struct bytes *out; /* borrowed; operators are appended */
    uint32_t color;    /* the fill colour in force, 0xRRGGBB; a stream begins with black */
    uint32_t saved_colors[CONTENT_SAVES_MAX];
    int saves;                 /* that were not restored, 0..CONTENT_SAVES_MAX */
    struct readings *readings; /* borrowed; what glyphs read as is noted here; NULL: nowhere */
    bool is_out_of_memory;
};

void content_init(struct content *content, struct bytes *out);

/* The same for a stream that goes on where another has saved and not restored. */
void content_init_saved(struct content *content, struct bytes *out);

/* Errors: ST_NO_MEMORY, if any operator could not be written. */
MUST_USE enum status content_status(const struct content *content, struct error *err);

/* Keep what is set between the two from what follows; pairs may be nested CONTENT_SAVES_MAX deep.
 */
void content_save(struct content *content);
void content_restore(struct content *content);

/* Draw nothing outside a box until the save before it is restored. */
void content_clip_box(struct content *content, int32_t x_mpt, int32_t y_mpt, int32_t w_mpt,
                      int32_t h_mpt);

/* Until the save before it is restored, measure from x, y, in axes that are turned clockwise by
 * quarters, 0..3. */
void content_move(struct content *content, int32_t x_mpt, int32_t y_mpt, uint32_t quarter_turns);

void content_fill_box(struct content *content, uint32_t color, int32_t x_mpt, int32_t y_mpt,
                      int32_t w_mpt, int32_t h_mpt);

struct content_line {
    uint32_t color;
    int32_t x1_mpt, y1_mpt, x2_mpt, y2_mpt;
    int32_t stroke_mpt, dash_mpt; /* dash 0: solid */
};
void content_line(struct content *content, const struct content_line *line);

/*
 * One line of a block with its baseline's left end at x, y. Glyphs are written as two-byte codes of
 * font /F<face>, or /F<face>M where a bracket is mirrored, in the order in which they are read:
 * those of a run from right to left one to the left of the other. Where reading them back would not
 * give the characters, these are given as /ActualText, for as few glyphs as can be.
 */
void content_text(struct content *content, const struct font_set *fonts,
                  const struct text_block *block, const struct text_line *line, uint32_t color,
                  int32_t x_mpt, int32_t y_mpt);

/* The document's image /I<name>, drawn into a box to its edges. */
void content_image(struct content *content, size_t name, int32_t x_mpt, int32_t y_mpt,
                   int32_t w_mpt, int32_t h_mpt);

/*
 * A QR symbol in a square whose bottom left corner is x, y: a white plate, and on it, leaving a
 * quiet zone of QR_QUIET_MODULES on each side, all dark modules as one path filled once, so that no
 * viewer shows seams.
 *
 * In:  rects, count  from qr_rects
 */
void content_qr(struct content *content, const struct qr *qr, const struct qr_rect *rects,
                size_t count, int32_t x_mpt, int32_t y_mpt, int32_t side_mpt);

#endif
