/*
 * QR symbols (ISO/IEC 18004) for tokens: byte mode, the smallest version that fits, the mask with
 * the lowest penalty. A symbol is kept as rows of bits, which is what drawing wants.
 */
#ifndef TICKETPRESS_WORKERS_QR_H
#define TICKETPRESS_WORKERS_QR_H

#include "domain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qr_level { QR_LEVEL_L, QR_LEVEL_M, QR_LEVEL_Q, QR_LEVEL_H };

enum {
    QR_SIDE_MAX = 177, /* modules, version 40 */
    QR_ROW_WORDS = (QR_SIDE_MAX + 63) / 64,
    QR_QUIET_MODULES = 4, /* ISO/IEC 18004 clause 9.1 */
};

struct qr {
    int side;                                 /* 21..177 modules, without quiet zone */
    uint64_t rows[QR_SIDE_MAX][QR_ROW_WORDS]; /* bit x%64 of word x/64 is column x; 1 = dark */
};

/*
 * Encode a text as one symbol.
 *
 * In:      data, len  1.. bytes, any values
 *          level      error correction
 * Out:     qr         written whole on success
 * Errors:  ST_TOO_LARGE  needs more than version 40
 *          ST_NO_MEMORY
 *          ST_LIBRARY
 * Threads: any, on distinct outputs
 */
MUST_USE enum status qr_encode(const void *data, size_t len, enum qr_level level, struct qr *qr,
                               struct error *err);

static inline bool qr_is_dark(const struct qr *qr, int x, int y)
{
    return (qr->rows[y][x / 64] >> (x % 64)) & 1;
}

/* A rectangle of dark modules; the origin is the symbol's top left module. */
struct qr_rect {
    uint8_t x, y, width, height;
};

/*
 * Cover the dark modules with rectangles that do not overlap: runs in a row, grown downwards while
 * the rows below hold the same run.
 *
 * Out:     rects  room for QR_RECTS_MAX
 * Returns: how many were written
 */
enum { QR_RECTS_MAX = QR_SIDE_MAX * ((QR_SIDE_MAX + 1) / 2) };
size_t qr_rects(const struct qr *qr, struct qr_rect *rects);

#endif
