#include "workers/sfnt.h"

#include <assert.h>
#include <string.h>

enum {
    HEADER_BYTES = 12,
    RECORD_BYTES = 16,
    COLLECTION_FACES_MAX = 1024,
    GLYPH_HEADER_BYTES = 10,
    EM_MIN = 16, /* OpenType, table head */
    EM_MAX = 16384,
    FORMAT_4_HEADER = 14,
    FORMAT_12_HEADER = 16,
    GROUP_BYTES = 12,
};

/* ---- the file ---- */

static bool has_tag(const uint8_t *data, const char *tag)
{
    return memcmp(data, tag, 4) == 0;
}

static bool is_face(const uint8_t *data)
{
    return sfnt_u32(data) == 0x00010000 || has_tag(data, "true") || has_tag(data, "OTTO");
}

uint32_t sfnt_faces_count(const uint8_t *data, size_t len)
{
    uint32_t count;

    if (len < HEADER_BYTES)
        return 0;
    if (!has_tag(data, "ttcf"))
        return is_face(data) ? 1 : 0;
    count = sfnt_u32(data + 8);
    return count <= COLLECTION_FACES_MAX && len >= HEADER_BYTES + (size_t)count * 4 ? count : 0;
}

/* The part of len bytes at an offset; empty if the file does not reach so far. */
static struct sfnt_part part_at(const uint8_t *data, size_t data_len, size_t offset, size_t len)
{
    if (offset > data_len || len > data_len - offset)
        return (struct sfnt_part){0};
    return (struct sfnt_part){.data = data + offset, .len = len};
}

static enum status find_directory(const uint8_t *data, size_t len, uint32_t member,
                                  struct sfnt *sfnt, struct error *err)
{
    size_t const face =
        has_tag(data, "ttcf") ? sfnt_u32(data + HEADER_BYTES + (size_t)member * 4) : 0;
    struct sfnt_part const header = part_at(data, len, face, HEADER_BYTES);

    if (header.data == NULL)
        return error_set(err, ST_INVALID, "is cut short");
    if (!is_face(header.data))
        return error_set(err, ST_INVALID, "not an OpenType font");
    sfnt->directory =
        part_at(data, len, face + HEADER_BYTES, (size_t)sfnt_u16(header.data + 4) * RECORD_BYTES);
    if (sfnt->directory.data == NULL)
        return error_set(err, ST_INVALID, "is cut short");
    for (size_t at = 0; at < sfnt->directory.len; at += RECORD_BYTES) {
        const uint8_t *record = sfnt->directory.data + at;
        size_t const table_len = sfnt_u32(record + 12);

        if (table_len > 0 && part_at(data, len, sfnt_u32(record + 8), table_len).data == NULL)
            return error_set(err, ST_INVALID, "is cut short");
    }
    return ST_OK;
}

struct sfnt_part sfnt_table(const uint8_t *data, size_t len, const struct sfnt *sfnt,
                            const char *tag)
{
    for (size_t at = 0; at < sfnt->directory.len; at += RECORD_BYTES) {
        const uint8_t *record = sfnt->directory.data + at;

        if (has_tag(record, tag))
            return part_at(data, len, sfnt_u32(record + 8), sfnt_u32(record + 12));
    }
    return (struct sfnt_part){0};
}

/* ---- characters ---- */

/* Format 4: segments of 16-bit characters as four columns, with a gap behind the first. */
struct segment {
    uint32_t first, last;
    uint16_t delta;
    const uint8_t *range; /* where its range offset stands, from which it counts; */
    size_t range_room;    /* bytes from there to the end of the table */
};

static size_t segments_count(const struct sfnt *sfnt)
{
    return sfnt_u16(sfnt->characters.data + 6) / 2;
}

static struct segment segment_at(const struct sfnt *sfnt, size_t index)
{
    size_t const column = segments_count(sfnt) * 2;
    const uint8_t *ends = sfnt->characters.data + FORMAT_4_HEADER;
    const uint8_t *starts = ends + column + 2;
    const uint8_t *range = starts + 2 * column + 2 * index;

    return (struct segment){
        .first = sfnt_u16(starts + 2 * index),
        .last = sfnt_u16(ends + 2 * index),
        .delta = sfnt_u16(starts + column + 2 * index),
        .range = range,
        .range_room = sfnt->characters.len - (size_t)(range - sfnt->characters.data),
    };
}

static uint32_t glyph_in_segment(const struct sfnt *sfnt, const struct segment *segment,
                                 uint32_t character)
{
    size_t const offset = sfnt_u16(segment->range);
    size_t const at = offset + 2 * (size_t)(character - segment->first);
    uint32_t glyph;

    if (offset == 0)
        glyph = (character + segment->delta) & 0xFFFF;
    else if (at + 2 > segment->range_room)
        return 0;
    else if ((glyph = sfnt_u16(segment->range + at)) != 0)
        glyph = (glyph + segment->delta) & 0xFFFF;
    return glyph < sfnt->glyph_count ? glyph : 0;
}

static uint32_t glyph_by_segments(const struct sfnt *sfnt, uint32_t character)
{
    size_t low = 0, high = segments_count(sfnt);

    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        struct segment const segment = segment_at(sfnt, middle);

        if (character > segment.last)
            low = middle + 1;
        else if (character < segment.first)
            high = middle;
        else
            return glyph_in_segment(sfnt, &segment, character);
    }
    return 0;
}

/* Format 12: groups of neighbouring characters with neighbouring glyphs. */
struct group {
    uint32_t first, last, glyph;
};

static size_t groups_count(const struct sfnt *sfnt)
{
    return sfnt_u32(sfnt->characters.data + 12);
}

static struct group group_at(const struct sfnt *sfnt, size_t index)
{
    const uint8_t *data = sfnt->characters.data + FORMAT_12_HEADER + index * GROUP_BYTES;

    return (struct group){sfnt_u32(data), sfnt_u32(data + 4), sfnt_u32(data + 8)};
}

static uint32_t glyph_in_group(const struct sfnt *sfnt, const struct group *group,
                               uint32_t character)
{
    uint64_t const glyph = (uint64_t)group->glyph + (character - group->first);

    return glyph < sfnt->glyph_count ? (uint32_t)glyph : 0;
}

static uint32_t glyph_by_groups(const struct sfnt *sfnt, uint32_t character)
{
    size_t low = 0, high = groups_count(sfnt);

    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        struct group const group = group_at(sfnt, middle);

        if (character > group.last)
            low = middle + 1;
        else if (character < group.first)
            high = middle;
        else
            return glyph_in_group(sfnt, &group, character);
    }
    return 0;
}

static bool has_segments(const struct sfnt *sfnt)
{
    return sfnt_u16(sfnt->characters.data) == 4;
}

uint32_t sfnt_glyph(const struct sfnt *sfnt, uint32_t character)
{
    if (!has_segments(sfnt))
        return glyph_by_groups(sfnt, character);
    return character <= 0xFFFF ? glyph_by_segments(sfnt, character) : 0;
}

/* Runs are in order and do not overlap: characters come in ascending order, each once. */
static void note_character(uint32_t *characters, uint32_t glyph, uint32_t character)
{
    if (glyph != 0 && characters[glyph] == 0)
        characters[glyph] = character;
}

void sfnt_characters(const struct sfnt *sfnt, uint32_t *characters)
{
    if (has_segments(sfnt)) {
        for (size_t i = 0; i < segments_count(sfnt); i++) {
            struct segment const segment = segment_at(sfnt, i);

            for (uint32_t c = segment.first; c <= segment.last; c++)
                note_character(characters, glyph_in_segment(sfnt, &segment, c), c);
        }
        return;
    }
    for (size_t i = 0; i < groups_count(sfnt); i++) {
        struct group const group = group_at(sfnt, i);

        for (uint32_t c = group.first; c <= group.last; c++)
            note_character(characters, glyph_in_group(sfnt, &group, c), c);
    }
}

/* Whether the runs of characters are inside of the table, in order and apart from each other. */
static bool has_sound_segments(const struct sfnt *sfnt)
{
    int64_t last = -1;

    if (sfnt->characters.len < FORMAT_4_HEADER ||
        sfnt->characters.len < FORMAT_4_HEADER + 2 + segments_count(sfnt) * 8)
        return false;
    for (size_t i = 0; i < segments_count(sfnt); i++) {
        struct segment const segment = segment_at(sfnt, i);

        if (segment.first <= last || segment.last < segment.first)
            return false;
        last = segment.last;
    }
    return true;
}

static bool has_sound_groups(const struct sfnt *sfnt)
{
    int64_t last = -1;

    if (sfnt->characters.len < FORMAT_12_HEADER ||
        (sfnt->characters.len - FORMAT_12_HEADER) / GROUP_BYTES < groups_count(sfnt))
        return false;
    for (size_t i = 0; i < groups_count(sfnt); i++) {
        struct group const group = group_at(sfnt, i);

        if (group.first <= last || group.last < group.first || group.last > SFNT_CHARACTER_MAX)
            return false;
        last = group.last;
    }
    return true;
}

/* The subtable of one platform and encoding, to the end of cmap; empty when there is none. */
static struct sfnt_part find_subtable(struct sfnt_part cmap, unsigned platform, unsigned encoding)
{
    size_t const count = cmap.len >= 4 ? sfnt_u16(cmap.data + 2) : 0;

    for (size_t i = 0; i < count && 4 + (i + 1) * 8 <= cmap.len; i++) {
        const uint8_t *record = cmap.data + 4 + i * 8;
        size_t const offset = sfnt_u32(record + 4);

        if (sfnt_u16(record) == platform && sfnt_u16(record + 2) == encoding &&
            offset + 2 <= cmap.len)
            return part_at(cmap.data, cmap.len, offset, cmap.len - offset);
    }
    return (struct sfnt_part){0};
}

static enum status find_characters(struct sfnt_part cmap, struct sfnt *sfnt, struct error *err)
{
    /* Those of all planes first, in HarfBuzz's order, so that both see the same characters. */
    static const struct {
        uint16_t platform, encoding;
    } ORDER[] = {{3, 10}, {0, 6}, {0, 4}, {3, 1}, {0, 3}, {0, 2}, {0, 1}, {0, 0}};
    bool is_sound = false;

    for (size_t i = 0; i < sizeof ORDER / sizeof *ORDER && sfnt->characters.data == NULL; i++)
        sfnt->characters = find_subtable(cmap, ORDER[i].platform, ORDER[i].encoding);
    if (sfnt->characters.data != NULL && sfnt_u16(sfnt->characters.data) == 4)
        is_sound = has_sound_segments(sfnt);
    else if (sfnt->characters.data != NULL && sfnt_u16(sfnt->characters.data) == 12)
        is_sound = has_sound_groups(sfnt);
    if (!is_sound)
        return error_set(err, ST_INVALID, "has no Unicode character map of format 4 or 12");
    return ST_OK;
}

/* ---- opening ---- */

static enum status find_tables(const uint8_t *data, size_t len, struct sfnt *sfnt,
                               struct error *err)
{
    struct {
        const char *tag;
        struct sfnt_part *part;
        size_t bytes_min;
    } const tables[] = {
        {"head", &sfnt->head, SFNT_HEAD_BYTES},
        {"hhea", &sfnt->hhea, SFNT_HHEA_BYTES},
        {"hmtx", &sfnt->hmtx, 4},
        {"maxp", &sfnt->maxp, 6},
        {"glyf", &sfnt->glyf, 0},
        {"loca", &sfnt->loca, 4},
    };
    size_t const all = sizeof tables / sizeof *tables;

    sfnt->cff = sfnt_table(data, len, sfnt, "CFF ");
    for (size_t i = 0; i < (sfnt->cff.len > 0 ? all - 2 : all); i++) {
        *tables[i].part = sfnt_table(data, len, sfnt, tables[i].tag);
        if (tables[i].part->data == NULL)
            return error_set(err, ST_INVALID, "has no table %s%s", tables[i].tag,
                             tables[i].bytes_min == 0 ? ", nor CFF" : "");
        if (tables[i].part->len < tables[i].bytes_min)
            return error_set(err, ST_INVALID, "its table %s is too short", tables[i].tag);
    }
    return ST_OK;
}

static enum status read_numbers(struct sfnt *sfnt, struct error *err)
{
    size_t const offset_bytes = sfnt_u16(sfnt->head.data + 50) != 0 ? 4 : 2;

    sfnt->units_per_em = sfnt_u16(sfnt->head.data + 18);
    sfnt->has_long_offsets = offset_bytes == 4;
    sfnt->glyph_count = sfnt_u16(sfnt->maxp.data + 4);
    sfnt->widths_count = sfnt_u16(sfnt->hhea.data + 34);
    if (sfnt->units_per_em < EM_MIN || sfnt->units_per_em > EM_MAX)
        return error_set(err, ST_INVALID, "its em has %u units; %d to %d are allowed",
                         sfnt->units_per_em, EM_MIN, EM_MAX);
    if (sfnt->glyph_count == 0)
        return error_set(err, ST_INVALID, "has no glyphs");
    if (sfnt->widths_count == 0 || sfnt->widths_count > sfnt->glyph_count ||
        sfnt->hmtx.len < (size_t)sfnt->widths_count * 4)
        return error_set(err, ST_INVALID, "its table hmtx is too short");
    if (sfnt->cff.len == 0 &&
        (sfnt->loca.len / offset_bytes <= sfnt->glyph_count || sfnt->maxp.len < SFNT_MAXP_BYTES))
        return error_set(err, ST_INVALID, "its table %s is too short",
                         sfnt->maxp.len < SFNT_MAXP_BYTES ? "maxp" : "loca");
    return ST_OK;
}

enum status sfnt_open(const uint8_t *data, size_t len, uint32_t member, struct sfnt *sfnt,
                      struct error *err)
{
    struct sfnt_part cmap;
    enum status st;

    assert(member < sfnt_faces_count(data, len));
    *sfnt = (struct sfnt){0};
    st = find_directory(data, len, member, sfnt, err);
    if (st == ST_OK)
        st = find_tables(data, len, sfnt, err);
    if (st == ST_OK)
        st = read_numbers(sfnt, err);
    if (st != ST_OK)
        return st;
    cmap = sfnt_table(data, len, sfnt, "cmap");
    if (cmap.data == NULL)
        return error_set(err, ST_INVALID, "has no table cmap");
    return find_characters(cmap, sfnt, err);
}

/* ---- glyphs ---- */

uint32_t sfnt_advance(const struct sfnt *sfnt, uint32_t glyph)
{
    size_t const index = glyph < sfnt->widths_count ? glyph : sfnt->widths_count - 1;

    assert(glyph < sfnt->glyph_count);
    return sfnt_u16(sfnt->hmtx.data + 4 * index);
}

int sfnt_left_bearing(const struct sfnt *sfnt, uint32_t glyph)
{
    size_t const at = glyph < sfnt->widths_count ? 4 * (size_t)glyph + 2
                                                 : 2 * ((size_t)sfnt->widths_count + glyph);

    assert(glyph < sfnt->glyph_count);
    return at + 2 <= sfnt->hmtx.len ? sfnt_i16(sfnt->hmtx.data + at) : 0;
}

bool sfnt_outline(const struct sfnt *sfnt, uint32_t glyph, struct sfnt_part *outline)
{
    const uint8_t *offsets = sfnt->loca.data;
    size_t start, end;

    assert(glyph < sfnt->glyph_count && sfnt->cff.len == 0);
    if (sfnt->has_long_offsets) {
        start = sfnt_u32(offsets + 4 * (size_t)glyph);
        end = sfnt_u32(offsets + 4 * (size_t)glyph + 4);
    } else {
        start = (size_t)sfnt_u16(offsets + 2 * (size_t)glyph) * 2;
        end = (size_t)sfnt_u16(offsets + 2 * (size_t)glyph + 2) * 2;
    }
    if (start > end || end > sfnt->glyf.len || (start < end && end - start < GLYPH_HEADER_BYTES))
        return false;
    *outline = part_at(sfnt->glyf.data, sfnt->glyf.len, start, end - start);
    return true;
}
