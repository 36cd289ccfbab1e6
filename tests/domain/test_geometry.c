#include "domain/geometry.h"

#include <criterion/criterion.h>

Test(mpt_from_um, rounds_to_the_nearest)
{
    static const struct {
        int32_t um, mpt;
    } ROWS[] = {
        {0, 0},
        {25400, 72000},
        {-25400, -72000},
        {1000, 2835}, /* 2834.65 */
        {1, 3},       /* 2.83 */
        {-1, -3},
        {3, 9}, /* 8.50 */
        {127, 360},
        {105000, 297638},
        {148000, 419528},
        {PAGE_SIDE_UM_MAX, 5669291},
        {-PAGE_SIDE_UM_MAX, -5669291},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(mpt_from_um(ROWS[i].um), ROWS[i].mpt, "%d um gives %d", ROWS[i].um,
                     mpt_from_um(ROWS[i].um));
}

Test(mpt_from_um, is_off_by_half_a_thousandth_at_most)
{
    for (int32_t um = -3000; um <= 3000; um++) {
        int64_t const off = (int64_t)mpt_from_um(um) * 254 - (int64_t)um * 720; /* times 254 */

        cr_assert(off >= -127 && off <= 127, "%d um", um);
        cr_assert_eq(mpt_from_um(-um), -mpt_from_um(um), "%d um", um);
    }
}

static const struct {
    const char *name;
    struct box_um a, b;
    bool is_inside, overlaps;
} PAIRS[] = {
    {"the same", {10, 10, 20, 20}, {10, 10, 20, 20}, true, true},
    {"well inside", {12, 12, 5, 5}, {10, 10, 20, 20}, true, true},
    {"out at the left", {9, 10, 20, 20}, {10, 10, 20, 20}, false, true},
    {"out at the top", {10, 9, 20, 20}, {10, 10, 20, 20}, false, true},
    {"out at the right", {10, 10, 21, 20}, {10, 10, 20, 20}, false, true},
    {"out at the bottom", {10, 10, 20, 21}, {10, 10, 20, 20}, false, true},
    {"left of it, edges touch", {0, 10, 10, 20}, {10, 10, 20, 20}, false, false},
    {"left of it, by one over", {0, 10, 11, 20}, {10, 10, 20, 20}, false, true},
    {"above it, edges touch", {10, 0, 20, 10}, {10, 10, 20, 20}, false, false},
    {"above it, by one over", {10, 0, 20, 11}, {10, 10, 20, 20}, false, true},
    {"right of it, edges touch", {30, 10, 5, 5}, {10, 10, 20, 20}, false, false},
    {"below it, edges touch", {10, 30, 5, 5}, {10, 10, 20, 20}, false, false},
    {"corners touch", {0, 0, 10, 10}, {10, 10, 20, 20}, false, false},
    {"a level line through it", {0, 15, 50, 0}, {10, 10, 20, 20}, false, true},
    {"a level line on its edge", {0, 10, 50, 0}, {10, 10, 20, 20}, false, false},
    {"the largest page",
     {0, 0, PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MAX},
     {0, 0, PAGE_SIDE_UM_MAX, PAGE_SIDE_UM_MAX},
     true,
     true},
};

Test(box_is_inside, knows_each_edge)
{
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        cr_expect_eq(box_is_inside(PAIRS[i].a, PAIRS[i].b), PAIRS[i].is_inside, "%s",
                     PAIRS[i].name);
}

Test(box_overlaps, is_more_than_an_edge_in_common)
{
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        cr_expect_eq(box_overlaps(PAIRS[i].a, PAIRS[i].b), PAIRS[i].overlaps, "%s", PAIRS[i].name);
        cr_expect_eq(box_overlaps(PAIRS[i].b, PAIRS[i].a), PAIRS[i].overlaps, "%s the other way",
                     PAIRS[i].name);
    }
}
