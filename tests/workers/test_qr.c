#include "workers/qr.h"

#include "domain/layout.h"
#include "domain/token.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <qrencode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 4, VERSIONS = 40, BYTES_MAX = 2953 };

static const struct {
    const char *name;
    enum qr_level level;
    enum layout_qr_level layout_level;
    QRecLevel reference;
    size_t bytes_max; /* of version 40 in byte mode, ISO/IEC 18004 table 7 */
} ROWS[LEVELS] = {
    {"L", QR_LEVEL_L, LAYOUT_QR_L, QR_ECLEVEL_L, 2953},
    {"M", QR_LEVEL_M, LAYOUT_QR_M, QR_ECLEVEL_M, 2331},
    {"Q", QR_LEVEL_Q, LAYOUT_QR_Q, QR_ECLEVEL_Q, 1663},
    {"H", QR_LEVEL_H, LAYOUT_QR_H, QR_ECLEVEL_H, 1273},
};

/* Text like a token's, another one for each seed. */
static void text_fill(char *text, size_t len, unsigned seed)
{
    static const char ALPHABET[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t i = 0; i < len; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = ALPHABET[seed >> 16 & 63];
    }
}

/* ---- qr_encode ---- */

Test(qr_encode, agrees_with_libqrencode_module_for_module)
{
    static const size_t LENGTHS[] = {1, 14, 50, 62, 63, 70, 106, 211, 500, 1273};
    char text[BYTES_MAX];
    struct qr qr;

    for (size_t row = 0; row < LEVELS; row++) {
        for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
            int const len = (int)LENGTHS[i];
            QRcode *reference;
            size_t wrong = 0;

            text_fill(text, LENGTHS[i], (unsigned)(row * 100 + i));
            reference = QRcode_encodeData(len, (unsigned char *)text, 0, ROWS[row].reference);
            cr_assert_not_null(reference);
            memset(&qr, 0xFF, sizeof qr); /* what was there before must not show */
            cr_assert_eq(qr_encode(text, LENGTHS[i], ROWS[row].level, &qr, NULL), ST_OK);
            cr_assert_eq(qr.side, reference->width, "%s %d", ROWS[row].name, len);
            for (int y = 0; y < qr.side; y++)
                for (int x = 0; x < qr.side; x++)
                    wrong += qr_is_dark(&qr, x, y) != (reference->data[y * qr.side + x] & 1);
            cr_expect_eq(wrong, 0, "%s %d: %zu modules", ROWS[row].name, len, wrong);
            QRcode_free(reference);
        }
    }
}

Test(qr_encode, takes_any_byte_values)
{
    static const unsigned char BYTES[] = {0, 255, 0, '\n', 128, 0};
    QRcode *reference = QRcode_encodeData(sizeof BYTES, BYTES, 0, QR_ECLEVEL_M);
    struct qr qr;

    cr_assert_not_null(reference);
    cr_assert_eq(qr_encode(BYTES, sizeof BYTES, QR_LEVEL_M, &qr, NULL), ST_OK);
    cr_assert_eq(qr.side, 21);
    for (int y = 0; y < qr.side; y++)
        for (int x = 0; x < qr.side; x++)
            cr_assert_eq(qr_is_dark(&qr, x, y), reference->data[y * qr.side + x] & 1);
    QRcode_free(reference);
}

Test(qr_encode, holds_what_version_40_holds_and_not_a_byte_more)
{
    char text[BYTES_MAX + 1];
    struct qr qr = {0};

    text_fill(text, sizeof text, 1);
    for (size_t row = 0; row < LEVELS; row++) {
        struct error err = {0};

        cr_expect_eq(qr_encode(text, ROWS[row].bytes_max, ROWS[row].level, &qr, NULL), ST_OK, "%s",
                     ROWS[row].name);
        cr_expect_eq(qr.side, QR_SIDE_MAX, "%s", ROWS[row].name);
        cr_expect_eq(qr_encode(text, ROWS[row].bytes_max + 1, ROWS[row].level, &qr, &err),
                     ST_TOO_LARGE, "%s", ROWS[row].name);
        cr_expect(strstr(err.text, "bytes") != NULL && err.status == ST_TOO_LARGE);
    }
}

Test(qr_encode, refuses_a_length_that_libqrencode_could_not_take)
{
    static char text[1];
    struct qr qr;

    cr_expect_eq(qr_encode(text, (size_t)INT_MAX + 1, QR_LEVEL_L, &qr, NULL), ST_TOO_LARGE);
    cr_expect_eq(qr_encode(text, SIZE_MAX, QR_LEVEL_L, &qr, NULL), ST_TOO_LARGE);
}

Test(layout_qr_side_max, is_the_side_of_the_longest_token)
{
    char text[TOKEN_CHARS_MAX];
    struct qr qr = {0};

    text_fill(text, sizeof text, 7);
    for (size_t row = 0; row < LEVELS; row++) {
        cr_assert_eq(qr_encode(text, sizeof text, ROWS[row].level, &qr, NULL), ST_OK);
        cr_expect_eq(qr.side, layout_qr_side_max(ROWS[row].layout_level), "%s", ROWS[row].name);
    }
}

/* ---- qr_rects ---- */

static struct qr_rect rects[QR_RECTS_MAX];

/* Each dark module under exactly one rectangle, each light one under none. */
static void expect_covered(const struct qr *qr, const char *name)
{
    static uint8_t layers[QR_SIDE_MAX][QR_SIDE_MAX];
    size_t const count = qr_rects(qr, rects);
    size_t wrong = 0;

    cr_assert_leq(count, QR_RECTS_MAX, "%s", name);
    memset(layers, 0, sizeof layers);
    for (size_t i = 0; i < count; i++) {
        cr_assert(rects[i].width > 0 && rects[i].height > 0, "%s", name);
        cr_assert(rects[i].x + rects[i].width <= qr->side, "%s", name);
        cr_assert(rects[i].y + rects[i].height <= qr->side, "%s", name);
        for (int y = 0; y < rects[i].height; y++)
            for (int x = 0; x < rects[i].width; x++)
                layers[rects[i].y + y][rects[i].x + x]++;
    }
    for (int y = 0; y < qr->side; y++)
        for (int x = 0; x < qr->side; x++)
            wrong += layers[y][x] != qr_is_dark(qr, x, y);
    cr_expect_eq(wrong, 0, "%s: %zu modules", name, wrong);
}

Test(qr_rects, cover_the_dark_modules_once_in_each_version)
{
    char text[BYTES_MAX];
    bool is_seen[VERSIONS + 1] = {false};
    struct qr qr = {0};

    for (size_t len = 1; len <= BYTES_MAX; len += len < 300 ? 3 : 9) {
        enum qr_level const level = len <= 1273 ? (enum qr_level)(len % LEVELS) : QR_LEVEL_L;
        char name[32];

        text_fill(text, len, (unsigned)len);
        cr_assert_eq(qr_encode(text, len, level, &qr, NULL), ST_OK);
        snprintf(name, sizeof name, "%zu bytes at %s", len, ROWS[level].name);
        expect_covered(&qr, name);
        is_seen[(qr.side - 17) / 4] = true;
    }
    for (int version = 1; version <= VERSIONS; version++)
        cr_expect(is_seen[version], "version %d", version);
}

/* Symbols that no token gives: the extremes of what has to be covered. */
static bool is_dark_in(int pattern, int x, int y)
{
    switch (pattern) {
    case 0:
        return false;
    case 1:
        return true;
    case 2:
        return (x + y) % 2 == 0;
    case 3:
        return x % 2 == 0;
    case 4:
        return y % 2 == 0;
    default:
        return (x * 7 + y * 13 + x * y) % 3 == 0;
    }
}

Test(qr_rects, need_no_more_room_than_they_say)
{
    static const struct {
        const char *name;
        size_t count; /* of rectangles at the largest side; 0: any */
    } PATTERNS[] = {{"light", 0},
                    {"dark", 1},
                    {"a chess board", QR_SIDE_MAX * QR_SIDE_MAX / 2 + 1},
                    {"columns", (QR_SIDE_MAX + 1) / 2},
                    {"rows", (QR_SIDE_MAX + 1) / 2},
                    {"a mixture", 0}};

    for (int pattern = 0; pattern < (int)(sizeof PATTERNS / sizeof *PATTERNS); pattern++) {
        struct qr qr = {.side = QR_SIDE_MAX};

        for (int y = 0; y < qr.side; y++)
            for (int x = 0; x < qr.side; x++)
                qr.rows[y][x / 64] |= (uint64_t)is_dark_in(pattern, x, y) << (x % 64);
        expect_covered(&qr, PATTERNS[pattern].name);
        if (PATTERNS[pattern].count > 0)
            cr_expect_eq(qr_rects(&qr, rects), PATTERNS[pattern].count, "%s",
                         PATTERNS[pattern].name);
    }
}

Test(qr_rects, grow_downwards_so_that_a_finder_pattern_takes_few)
{
    struct qr qr;
    size_t runs = 0;

    cr_assert_eq(qr_encode("A", 1, QR_LEVEL_M, &qr, NULL), ST_OK);
    for (int y = 0; y < qr.side; y++)
        for (int x = 0; x < qr.side; x++)
            runs += qr_is_dark(&qr, x, y) && (x == 0 || !qr_is_dark(&qr, x - 1, y));
    cr_expect_lt(qr_rects(&qr, rects), runs);
    /* The first symbol row begins with the finder pattern's upper edge. */
    cr_expect(rects[0].x == 0 && rects[0].y == 0 && rects[0].width == 7 && rects[0].height == 1);
}
