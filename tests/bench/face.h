/*
 * The face of the ticket that floor and obvious both draw, so that they put the same things on the
 * page: A6, points from the lower left corner.
 */
#ifndef TICKETPRESS_TESTS_BENCH_FACE_H
#define TICKETPRESS_TESTS_BENCH_FACE_H

#define FACE_WIDTH_PT  297.638f /* 105 mm */
#define FACE_HEIGHT_PT 419.528f /* 148 mm */
#define FACE_MODULE_PT 2.25f    /* 0.79 mm */

enum {
    FACE_LEFT_PT = 24,
    FACE_RIGHT_COLUMN_PT = 160,
    FACE_RULE_Y_PT = 326,
    FACE_RULE_WIDTH_PT = 250,
    FACE_QR_X_PT = 24,
    FACE_QR_TOP_PT = 192, /* leaves 57 modules, version 10, above the ticket's id */
    FACE_LABEL_SIZE_PT = 7,
    FACE_LABEL_ABOVE_PT = 14, /* a label's base line above its value's */
};

enum face_slot_name {
    FACE_EVENT,
    FACE_VENUE,
    FACE_DATE,
    FACE_EVENT_SLOTS, /* the slots before this one are the same on every page */
    FACE_HOLDER = FACE_EVENT_SLOTS,
    FACE_TYPE,
    FACE_PRICE,
    FACE_SEAT,
    FACE_GATE,
    FACE_ORDER,
    FACE_ID,
    FACE_SLOTS,
};

enum { FACE_TEXT_BYTES_MAX = 1024 };

struct face_slot {
    const char *label; /* "" for none */
    int x_pt, y_pt;    /* of the value */
    int size_pt;
    int is_bold;
};

static const struct face_slot face_slots[FACE_SLOTS] = {
    [FACE_EVENT] = {"", FACE_LEFT_PT, 376, 16, 1},
    [FACE_VENUE] = {"", FACE_LEFT_PT, 356, 11, 0},
    [FACE_DATE] = {"", FACE_LEFT_PT, 338, 11, 0},
    [FACE_HOLDER] = {"HOLDER", FACE_LEFT_PT, 296, 12, 1},
    [FACE_TYPE] = {"TYPE", FACE_LEFT_PT, 266, 10, 0},
    [FACE_PRICE] = {"PRICE", FACE_RIGHT_COLUMN_PT, 266, 10, 0},
    [FACE_SEAT] = {"SEAT", FACE_LEFT_PT, 236, 10, 0},
    [FACE_GATE] = {"GATE", FACE_RIGHT_COLUMN_PT, 236, 10, 0},
    [FACE_ORDER] = {"ORDER", FACE_LEFT_PT, 206, 10, 0},
    [FACE_ID] = {"", FACE_LEFT_PT, 40, 9, 0},
};

#endif
