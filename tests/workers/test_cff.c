#include "workers/cff.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TABLE_BYTES = 40, CHARSET_AT = 30, GLYPHS = 6 };

/* Header, an empty Name INDEX, a Top DICT INDEX of one item of 12 bytes, then a charset. */
static uint8_t table[TABLE_BYTES];

static void make_table(const uint8_t *charset, size_t len)
{
    static const uint8_t HEAD[] = {1,   0,   4, 1, 0, 0, 0, 1, 1, 1, 13,
                                   140, 140, 0, 0, 0, 0, 0, 0, 0, 0};
    /* ROS: two strings and a number; the charset's offset as a short integer */
    static const uint8_t DICT[] = {140, 141, 139, 12, 30, 28, 0, CHARSET_AT, 15, 139, 139, 17};

    memset(table, 0, sizeof table);
    memcpy(table, HEAD, sizeof HEAD);
    memcpy(table + 11, DICT, sizeof DICT);
    memcpy(table + CHARSET_AT, charset, len);
}

static struct sfnt_part part_of(size_t len)
{
    return (struct sfnt_part){table, len};
}

Test(cff_cids, are_read_from_each_format)
{
    static const struct {
        const char *name;
        uint8_t charset[10];
        uint16_t cids[GLYPHS];
    } ROWS[] = {
        {"a list", {0, 0, 7, 0, 9, 1, 0, 0, 2, 0}, {0, 7, 9, 256, 2, 0}},
        {"short runs", {1, 0, 10, 2, 1, 0, 9}, {0, 10, 11, 12, 256, 257}},
        {"long runs", {2, 0, 10, 0, 1, 2, 0, 0, 9}, {0, 10, 11, 512, 513, 514}},
        {"a run over the last number", {1, 0xFF, 0xFE, 200}, {0, 65534, 65535, 0, 1, 2}},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct cff cff;
        uint16_t cids[GLYPHS] = {1, 1, 1, 1, 1, 1};
        /* the list ends with the table: its last glyph has no name */
        size_t const len = i == 0 ? CHARSET_AT + 9 : TABLE_BYTES;

        make_table(ROWS[i].charset, sizeof ROWS[i].charset);
        cr_assert_eq(cff_open(part_of(len), &cff, NULL), ST_OK, "%s", ROWS[i].name);
        cr_expect(cff.is_cid_keyed);
        cff_cids(&cff, GLYPHS, cids);
        cr_expect_arr_eq(cids, ROWS[i].cids, sizeof cids, "%s", ROWS[i].name);
    }
}

Test(cff_cids, are_places_without_a_charset)
{
    struct cff cff;
    uint16_t cids[3];

    make_table((const uint8_t[]){0}, 1);
    table[18] = 0;
    cr_assert_eq(cff_open(part_of(TABLE_BYTES), &cff, NULL), ST_OK);
    cff_cids(&cff, 3, cids);
    cr_expect(cids[0] == 0 && cids[1] == 1 && cids[2] == 2);
}

Test(cff_open, tells_named_glyphs_from_numbered_ones)
{
    struct cff cff;

    make_table((const uint8_t[]){0}, 1);
    table[15] = 7; /* the second byte of the operator ROS: now it is another one */
    cr_assert_eq(cff_open(part_of(TABLE_BYTES), &cff, NULL), ST_OK);
    cr_expect_not(cff.is_cid_keyed);
}

Test(cff_open, refuses_what_is_cut_short_or_makes_no_sense)
{
    static const struct {
        const char *name;
        size_t at;
        uint8_t byte;
    } ROWS[] = {
        {"a header behind the table", 2, 200},
        {"offsets of nine bytes", 8, 9},
        {"an item behind the table", 10, 200},
        {"an item that ends before it begins", 10, 0},
        {"no operand", 11, 255},
        {"a charset behind the table", 18, 200},
    };
    struct cff cff;

    for (size_t len = 0; len <= CHARSET_AT; len++) {
        make_table((const uint8_t[]){0}, 1);
        cr_expect_eq(cff_open(part_of(len), &cff, NULL), ST_INVALID, "%zu bytes", len);
    }
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        make_table((const uint8_t[]){0}, 1);
        table[ROWS[i].at] = ROWS[i].byte;
        cr_expect_eq(cff_open(part_of(TABLE_BYTES), &cff, NULL), ST_INVALID, "%s", ROWS[i].name);
    }
}
