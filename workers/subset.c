#include "workers/subset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLES = 6,
    DIRECTORY_BYTES = 12 + TABLES * 16,
    NESTING_MAX = 16,    /* of composites in composites; fonts have 2 or 3 */
    SHORT_MAX = 0x1FFFE, /* the largest offset of a short loca, which counts words */
    GLYPH_HEADER_BYTES = 10,
    CHECKSUM_OF_FILE_AT = 8, /* in head */
    OFFSETS_FORMAT_AT = 50,
    WIDTHS_COUNT_AT = 34, /* in hhea */
    GLYPH_COUNT_AT = 4,   /* in maxp */
    HINTING_AT = 14,
};
#define NONE             UINT32_MAX
#define CHECKSUM_OF_FILE UINT32_C(0xB1B0AFBA) /* what a whole file must sum up to */

/* OpenType, table glyf: flags of a point, and of a component. */
enum { POINT_X_SHORT = 0x02, POINT_Y_SHORT = 0x04, POINT_REPEAT = 0x08, POINT_X_SAME = 0x10 };
enum { POINT_Y_SAME = 0x20 };
enum {
    COMPONENT_WORDS = 0x0001,
    COMPONENT_SCALE = 0x0008,
    COMPONENT_MORE = 0x0020,
    COMPONENT_SCALE_XY = 0x0040,
    COMPONENT_MATRIX = 0x0080,
    COMPONENT_HINTED = 0x0100,
};

static bool is_composite(struct sfnt_part outline)
{
    return outline.len > 0 && sfnt_i16(outline.data) < 0;
}

/* ---- components ---- */

struct component {
    uint16_t flags;
    uint16_t glyph;
    size_t len;
};

/* The component at an offset of a composite. False: it is not whole. */
static bool component_at(struct sfnt_part outline, size_t at, struct component *component)
{
    if (outline.len - at < 4)
        return false;
    component->flags = sfnt_u16(outline.data + at);
    component->glyph = sfnt_u16(outline.data + at + 2);
    component->len = 4 + ((component->flags & COMPONENT_WORDS) != 0 ? 4 : 2);
    if ((component->flags & COMPONENT_SCALE) != 0)
        component->len += 2;
    else if ((component->flags & COMPONENT_SCALE_XY) != 0)
        component->len += 4;
    else if ((component->flags & COMPONENT_MATRIX) != 0)
        component->len += 8;
    return outline.len - at >= component->len;
}

/* Add what a glyph is made of. */
static bool add_components(const struct sfnt *from, uint32_t glyph, struct glyph_set *glyphs,
                           bool *has_grown)
{
    struct sfnt_part outline;
    struct component component;
    size_t at = GLYPH_HEADER_BYTES;

    if (!sfnt_outline(from, glyph, &outline))
        return false;
    if (!is_composite(outline))
        return true;
    do {
        if (!component_at(outline, at, &component) || component.glyph >= from->glyph_count)
            return false;
        if (!glyph_set_has(glyphs, component.glyph)) {
            glyph_set_add(glyphs, component.glyph);
            *has_grown = true;
        }
        at += component.len;
    } while ((component.flags & COMPONENT_MORE) != 0);
    return true;
}

static enum status broken(uint32_t glyph, struct error *err)
{
    return error_set(err, ST_INVALID, "its glyph %u makes no sense", glyph);
}

/* Over and over, since a component may stand before what it is a part of. */
static enum status widen(const struct sfnt *from, struct glyph_set *glyphs, struct error *err)
{
    bool has_grown = true;

    glyph_set_add(glyphs, 0);
    for (int nesting = 0; has_grown; nesting++) {
        if (nesting > NESTING_MAX)
            return error_set(err, ST_INVALID, "its glyphs are nested too deeply");
        has_grown = false;
        for (uint32_t glyph = 0; glyph_set_next(glyphs, &glyph); glyph++)
            if (!add_components(from, glyph, glyphs, &has_grown))
                return broken(glyph, err);
    }
    return ST_OK;
}

/* ---- writing ---- */

/* The file under way: its block is as large as it can get. */
struct writing {
    const struct sfnt *from;
    const struct glyph_set *glyphs;
    uint32_t glyph_count;  /* of the file */
    uint32_t widths_count; /* those behind are as wide as the last */
    uint32_t *offsets;     /* of outlines in glyf, glyph_count + 1 of them */
    uint32_t broken_glyph; /* the first that was not whole, or NONE */
    struct bytes *file;
};

/* Where one of the file's tables lies. */
struct table {
    size_t start, len;
};

static void put(struct writing *writing, const uint8_t *data, size_t len)
{
    assert(writing->file->capacity - writing->file->len >= len);
    if (len > 0)
        memcpy(writing->file->data + writing->file->len, data, len);
    writing->file->len += len;
}

static void put_u16(struct writing *writing, uint32_t number)
{
    put(writing, (const uint8_t[]){(uint8_t)(number >> 8), (uint8_t)number}, 2);
}

static void set_u16(uint8_t *data, uint32_t number)
{
    data[0] = (uint8_t)(number >> 8);
    data[1] = (uint8_t)number;
}

static void set_u32(uint8_t *data, uint32_t number)
{
    set_u16(data, number >> 16);
    set_u16(data + 2, number);
}

static void put_zeros_to(struct writing *writing, size_t multiple)
{
    while (writing->file->len % multiple != 0)
        put(writing, (const uint8_t[]){0}, 1);
}

/* The bytes of a simple outline's flags and coordinates, from an offset on; 0: it is not whole. */
static size_t points_len(struct sfnt_part outline, size_t start, size_t points)
{
    size_t at = start, coordinates = 0;

    while (points > 0) {
        size_t times = 1;
        unsigned flags;

        if (at >= outline.len)
            return 0;
        flags = outline.data[at++];
        if ((flags & POINT_REPEAT) != 0) {
            if (at >= outline.len)
                return 0;
            times += outline.data[at++];
        }
        if (times > points)
            return 0;
        points -= times;
        coordinates += times * ((flags & POINT_X_SHORT) != 0 ? 1 : (flags & POINT_X_SAME) ? 0 : 2);
        coordinates += times * ((flags & POINT_Y_SHORT) != 0 ? 1 : (flags & POINT_Y_SAME) ? 0 : 2);
    }
    return coordinates <= outline.len - at ? at + coordinates - start : 0;
}

/* A simple outline: ends of contours, instructions, points. */
static bool put_simple(struct writing *writing, struct sfnt_part outline)
{
    size_t const contours = sfnt_u16(outline.data);
    size_t const instructions = GLYPH_HEADER_BYTES + 2 * contours;
    size_t points, start, len;

    if (contours == 0)
        return true; /* blank */
    if (outline.len < instructions + 2)
        return false;
    points = (size_t)sfnt_u16(outline.data + instructions - 2) + 1;
    start = instructions + 2 + sfnt_u16(outline.data + instructions);
    len = start < outline.len ? points_len(outline, start, points) : 0;
    if (len == 0)
        return false;
    put(writing, outline.data, instructions);
    put_u16(writing, 0);
    put(writing, outline.data + start, len);
    return true;
}

/* A composite: components, then instructions, which are left out. */
static void put_composite(struct writing *writing, struct sfnt_part outline)
{
    struct component component;
    size_t at = GLYPH_HEADER_BYTES;
    bool is_whole;

    put(writing, outline.data, GLYPH_HEADER_BYTES);
    do {
        is_whole = component_at(outline, at, &component);
        assert(is_whole); /* widen() has been here */
        put_u16(writing, component.flags & ~(unsigned)COMPONENT_HINTED);
        put(writing, outline.data + at + 2, component.len - 2);
        at += component.len;
    } while ((component.flags & COMPONENT_MORE) != 0);
}

static bool put_outline(struct writing *writing, uint32_t glyph)
{
    struct sfnt_part outline;
    bool is_whole = sfnt_outline(writing->from, glyph, &outline);

    if (!is_whole || outline.len == 0)
        return is_whole;
    if (is_composite(outline))
        put_composite(writing, outline);
    else
        is_whole = put_simple(writing, outline);
    put_zeros_to(writing, 2); /* offsets count words */
    return is_whole;
}

/* Offsets of the glyphs that were left out are those of the next one: they are blank. */
static void put_glyf(struct writing *writing)
{
    size_t const start = writing->file->len;

    for (uint32_t glyph = 0; glyph < writing->glyph_count; glyph++) {
        writing->offsets[glyph] = (uint32_t)(writing->file->len - start);
        if (glyph_set_has(writing->glyphs, glyph) && !put_outline(writing, glyph) &&
            writing->broken_glyph == NONE)
            writing->broken_glyph = glyph;
    }
    writing->offsets[writing->glyph_count] = (uint32_t)(writing->file->len - start);
}

static bool has_long_offsets(const struct writing *writing)
{
    return writing->offsets[writing->glyph_count] > SHORT_MAX;
}

static void put_loca(struct writing *writing)
{
    size_t const bytes = has_long_offsets(writing) ? 4 : 2;
    uint8_t *at = writing->file->data + writing->file->len;

    writing->file->len += (writing->glyph_count + 1) * bytes;
    assert(writing->file->len <= writing->file->capacity);
    for (uint32_t glyph = 0; glyph <= writing->glyph_count; glyph++, at += bytes)
        if (bytes == 4)
            set_u32(at, writing->offsets[glyph]);
        else
            set_u16(at, writing->offsets[glyph] / 2);
}

static uint32_t advance_of(const struct writing *writing, uint32_t glyph)
{
    return glyph_set_has(writing->glyphs, glyph) ? sfnt_advance(writing->from, glyph) : 0;
}

/* Glyphs at the end that are as wide as the one before them need no width of their own. */
static uint32_t widths_needed(const struct writing *writing)
{
    uint32_t count = writing->glyph_count;

    while (count > 1 && advance_of(writing, count - 1) == advance_of(writing, count - 2))
        count--;
    return count;
}

/* Widths with left bearings, then bearings alone. */
static void put_hmtx(struct writing *writing)
{
    uint8_t *const start = writing->file->data + writing->file->len;
    size_t const widths = writing->widths_count;
    size_t const len = 2 * (widths + writing->glyph_count);

    writing->file->len += len;
    assert(writing->file->len <= writing->file->capacity);
    memset(start, 0, len);
    for (uint32_t glyph = 0; glyph_set_next(writing->glyphs, &glyph); glyph++) {
        uint8_t *const at = start + (glyph < widths ? 4 * (size_t)glyph : 2 * (widths + glyph) - 2);

        if (glyph < widths)
            set_u16(at, sfnt_advance(writing->from, glyph));
        set_u16(at + 2, (uint16_t)sfnt_left_bearing(writing->from, glyph));
    }
}

/* Two fields are set when the tables behind it are known. */
static void put_head(struct writing *writing)
{
    uint8_t *const head = writing->file->data + writing->file->len;

    put(writing, writing->from->head.data, SFNT_HEAD_BYTES);
    set_u32(head + CHECKSUM_OF_FILE_AT, 0);
}

static void put_hhea(struct writing *writing)
{
    uint8_t *const hhea = writing->file->data + writing->file->len;

    put(writing, writing->from->hhea.data, SFNT_HHEA_BYTES);
    set_u16(hhea + WIDTHS_COUNT_AT, writing->widths_count);
}

static void put_maxp(struct writing *writing)
{
    uint8_t *const maxp = writing->file->data + writing->file->len;

    put(writing, writing->from->maxp.data, SFNT_MAXP_BYTES);
    set_u16(maxp + GLYPH_COUNT_AT, writing->glyph_count);
    memset(maxp + HINTING_AT, 0, 14); /* zones to size of instructions */
    set_u16(maxp + HINTING_AT, 1);    /* without twilight */
}

/* ---- the file ---- */

enum { GLYF, HEAD, HHEA, HMTX, LOCA, MAXP }; /* in the directory, by tag */
static const char *const TAGS[TABLES] = {"glyf", "head", "hhea", "hmtx", "loca", "maxp"};

static uint32_t checksum(const uint8_t *data, size_t len)
{
    uint32_t sum = 0;

    assert(len % 4 == 0);
    for (size_t at = 0; at < len; at += 4)
        sum += sfnt_u32(data + at);
    return sum;
}

static void set_directory(struct bytes *file, const struct table tables[TABLES])
{
    static const uint8_t HEADER[] = {0, 1, 0, 0, 0, TABLES, 0, 64, 0, 2, 0, 32}; /* of six tables */

    memcpy(file->data, HEADER, sizeof HEADER);
    for (size_t i = 0; i < TABLES; i++) {
        uint8_t *record = file->data + sizeof HEADER + 16 * i;
        const struct table *table = &tables[i];

        memcpy(record, TAGS[i], 4);
        set_u32(record + 4, checksum(file->data + table->start, (table->len + 3) / 4 * 4));
        set_u32(record + 8, (uint32_t)table->start);
        set_u32(record + 12, (uint32_t)table->len);
    }
    set_u32(file->data + tables[HEAD].start + CHECKSUM_OF_FILE_AT,
            CHECKSUM_OF_FILE - checksum(file->data, file->len));
}

/* Small tables first: they compress a little better so. */
static enum status put_file(struct writing *writing, struct error *err)
{
    static const struct {
        size_t table;
        void (*put)(struct writing *writing);
    } ORDER[TABLES] = {{MAXP, put_maxp}, {HHEA, put_hhea}, {HEAD, put_head},
                       {HMTX, put_hmtx}, {GLYF, put_glyf}, {LOCA, put_loca}};
    struct table tables[TABLES];

    writing->file->len = DIRECTORY_BYTES;
    for (size_t i = 0; i < TABLES; i++) {
        struct table *const table = &tables[ORDER[i].table];

        table->start = writing->file->len;
        ORDER[i].put(writing);
        table->len = writing->file->len - table->start;
        put_zeros_to(writing, 4);
    }
    if (writing->broken_glyph != NONE)
        return broken(writing->broken_glyph, err);
    set_u16(writing->file->data + tables[HEAD].start + OFFSETS_FORMAT_AT,
            has_long_offsets(writing));
    set_directory(writing->file, tables);
    return ST_OK;
}

/* An upper bound, padding included. */
static size_t bytes_needed(const struct writing *writing)
{
    size_t bytes = DIRECTORY_BYTES + SFNT_HEAD_BYTES + SFNT_HHEA_BYTES + SFNT_MAXP_BYTES;

    bytes += TABLES * 3 + (size_t)writing->glyph_count * 8 + 4;
    for (uint32_t glyph = 0; glyph_set_next(writing->glyphs, &glyph); glyph++) {
        struct sfnt_part outline = {0};

        if (sfnt_outline(writing->from, glyph, &outline))
            bytes += outline.len + 1;
    }
    return bytes;
}

static uint32_t last_of(const struct glyph_set *glyphs)
{
    uint32_t last = 0;

    for (uint32_t glyph = 0; glyph_set_next(glyphs, &glyph); glyph++)
        last = glyph;
    return last;
}

enum status subset_outlines(const struct sfnt *from, struct glyph_set *glyphs, struct bytes *file,
                            struct error *err)
{
    struct writing writing = {.from = from, .glyphs = glyphs, .broken_glyph = NONE, .file = file};
    enum status st = widen(from, glyphs, err);

    assert(file->capacity == 0 && from->cff.len == 0);
    if (st != ST_OK)
        return st;
    writing.glyph_count = last_of(glyphs) + 1;
    writing.widths_count = widths_needed(&writing);
    writing.offsets = malloc((writing.glyph_count + 1) * sizeof *writing.offsets);
    if (writing.offsets == NULL)
        return error_set(err, ST_NO_MEMORY, "a font subset");
    st = bytes_reserve(file, bytes_needed(&writing), err);
    if (st == ST_OK)
        st = put_file(&writing, err);
    free(writing.offsets);
    if (st != ST_OK)
        bytes_clear(file);
    return st;
}
