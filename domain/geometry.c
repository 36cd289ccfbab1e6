#include "domain/geometry.h"

int32_t mpt_from_um(int32_t um)
{
    int64_t const numerator = (int64_t)um * 72 * MPT_PER_PT;
    int64_t const denominator = 25400;
    int64_t const half = um < 0 ? -denominator / 2 : denominator / 2;

    return (int32_t)((numerator + half) / denominator);
}

bool box_is_inside(struct box_um inner, struct box_um outer)
{
    return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.w <= outer.x + outer.w &&
           inner.y + inner.h <= outer.y + outer.h;
}

bool box_overlaps(struct box_um a, struct box_um b)
{
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
