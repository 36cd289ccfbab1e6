/*
 * Lengths and boxes of a page. Layouts are measured in micrometres, pages are written in
 * thousandths of a PostScript point; both as integers, so that a page is the same bytes on every
 * machine. A box's origin is its top left corner and y grows downwards.
 */
#ifndef TICKETPRESS_DOMAIN_GEOMETRY_H
#define TICKETPRESS_DOMAIN_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    UM_PER_MM = 1000,
    MPT_PER_PT = 1000,
    PAGE_SIDE_UM_MIN = 20 * UM_PER_MM,
    PAGE_SIDE_UM_MAX = 2000 * UM_PER_MM,
};

struct box_um {
    int32_t x, y, w, h;
};

/* Thousandths of a point (1 pt = 25.4 mm / 72), rounded to the nearest. */
int32_t mpt_from_um(int32_t um);

bool box_is_inside(struct box_um inner, struct box_um outer);

/* Whether two boxes share more than an edge. */
bool box_overlaps(struct box_um a, struct box_um b);

#endif
