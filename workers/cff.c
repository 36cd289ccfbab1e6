#include "workers/cff.h"

#include <assert.h>
#include <string.h>

enum {
    HEADER_BYTES = 4,
    OPERATOR_ESCAPE = 12,
    OPERATOR_CHARSET = 15,
    OPERATOR_ROS = OPERATOR_ESCAPE << 8 | 30,
    CHARSETS_PREDEFINED = 3, /* offsets below are numbers of charsets that no CID-keyed face has */
};

/* What is left of a table while it is read from its front to its end. */
static bool take(struct sfnt_part *rest, size_t len, struct sfnt_part *taken)
{
    if (len > rest->len)
        return false;
    *taken = (struct sfnt_part){rest->data, len};
    rest->data += len;
    rest->len -= len;
    return true;
}

static bool take_number(struct sfnt_part *rest, size_t bytes, uint32_t *number)
{
    struct sfnt_part taken;

    if (!take(rest, bytes, &taken))
        return false;
    *number = 0;
    for (size_t i = 0; i < bytes; i++)
        *number = *number << 8 | taken.data[i];
    return true;
}

/* An INDEX (section 5): count, size of offsets, offsets from 1 on, data. Gives its first item. */
static bool take_index(struct sfnt_part *rest, struct sfnt_part *first)
{
    uint32_t count, offset_bytes, offset = 1, second = 1;
    struct sfnt_part offsets, data;

    *first = (struct sfnt_part){0};
    if (!take_number(rest, 2, &count))
        return false;
    if (count == 0)
        return true;
    if (!take_number(rest, 1, &offset_bytes) || offset_bytes < 1 || offset_bytes > 4 ||
        !take(rest, (count + 1) * (size_t)offset_bytes, &offsets))
        return false;
    offsets.data += offset_bytes; /* the first is always 1 */
    offsets.len -= offset_bytes;
    for (uint32_t i = 0; i < count; i++) {
        (void)take_number(&offsets, offset_bytes, &offset);
        second = i == 0 ? offset : second;
    }
    if (offset < 1 || second < 1 || second > offset || !take(rest, offset - 1, &data))
        return false;
    *first = (struct sfnt_part){data.data, second - 1};
    return true;
}

/* An operand of a DICT (section 4); what is no integer counts as 0. */
static bool take_operand(struct sfnt_part *rest, uint32_t first, int64_t *operand)
{
    uint32_t more = 0;

    *operand = 0;
    if (first == 28 || first == 29) {
        if (!take_number(rest, first == 28 ? 2 : 4, &more))
            return false;
        *operand = first == 28 ? (int64_t)(int16_t)more : (int64_t)(int32_t)more;
        return true;
    }
    if (first == 30) { /* a real number ends with a nibble of 15 */
        do
            if (!take_number(rest, 1, &more))
                return false;
        while ((more & 0x0F) != 0x0F && more >> 4 != 0x0F);
        return true;
    }
    if (first >= 247 && first <= 254) {
        if (!take_number(rest, 1, &more))
            return false;
        *operand = first <= 250 ? (int64_t)(first - 247) * 256 + more + 108
                                : -(int64_t)(first - 251) * 256 - more - 108;
        return true;
    }
    *operand = (int64_t)first - 139;
    return first >= 32 && first <= 246;
}

struct top_dict {
    bool has_ros;
    int64_t charset;
};

static bool read_top_dict(struct sfnt_part rest, struct top_dict *dict)
{
    int64_t operand = 0;

    while (rest.len > 0) {
        uint32_t byte, second = 0;

        (void)take_number(&rest, 1, &byte);
        if (byte > 21) {
            if (!take_operand(&rest, byte, &operand))
                return false;
            continue;
        }
        if (byte == OPERATOR_ESCAPE && !take_number(&rest, 1, &second))
            return false;
        if (byte == OPERATOR_ESCAPE)
            byte = byte << 8 | second;
        dict->has_ros = dict->has_ros || byte == OPERATOR_ROS;
        if (byte == OPERATOR_CHARSET)
            dict->charset = operand;
    }
    return true;
}

enum status cff_open(struct sfnt_part table, struct cff *cff, struct error *err)
{
    struct sfnt_part rest = table, header, name, top;
    struct top_dict dict = {0};
    bool is_sound = table.len >= HEADER_BYTES && take(&rest, table.data[2], &header) &&
                    take_index(&rest, &name) && take_index(&rest, &top) &&
                    read_top_dict(top, &dict) && dict.charset >= 0 &&
                    (uint64_t)dict.charset < table.len;

    if (!is_sound)
        return error_set(err, ST_INVALID, "its table CFF makes no sense");
    *cff = (struct cff){.is_cid_keyed = dict.has_ros};
    if (dict.charset >= CHARSETS_PREDEFINED)
        cff->charset =
            (struct sfnt_part){table.data + dict.charset, table.len - (size_t)dict.charset};
    return ST_OK;
}

/* Charsets (section 13): format 0 lists the glyphs from 1 on, formats 1 and 2 runs of them. */
void cff_cids(const struct cff *cff, uint32_t glyph_count, uint16_t *cids)
{
    struct sfnt_part rest = cff->charset;
    uint32_t format = 0, glyph = 1;

    assert(cff->is_cid_keyed);
    memset(cids, 0, glyph_count * sizeof *cids);
    if (!take_number(&rest, 1, &format)) {
        for (glyph = 0; glyph < glyph_count; glyph++)
            cids[glyph] = (uint16_t)glyph;
        return;
    }
    while (glyph < glyph_count) {
        uint32_t first, more = 0;

        if (!take_number(&rest, 2, &first) ||
            (format > 0 && !take_number(&rest, format == 1 ? 1 : 2, &more)))
            return;
        for (uint32_t i = 0; i <= more && glyph < glyph_count; i++)
            cids[glyph++] = (uint16_t)(first + i);
    }
}
