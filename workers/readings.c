#include "workers/readings.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void readings_clear(struct readings *readings)
{
    free(readings->list);
    *readings = (struct readings){0};
}

static uint32_t key_of(const struct glyph_reading *reading)
{
    return (uint32_t)reading->face << 16 | reading->glyph;
}

/* Where a key is, or would be. */
static size_t place_of(const struct readings *readings, uint32_t key)
{
    size_t first = 0, end = readings->count;

    while (first < end) {
        size_t const middle = first + (end - first) / 2;

        if (key_of(&readings->list[middle]) < key)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static enum status make_room(struct readings *readings, struct error *err)
{
    size_t const max = readings->max == 0 ? 32 : 2 * readings->max;
    struct glyph_reading *list;

    if (readings->count < readings->max)
        return ST_OK;
    list = realloc(readings->list, max * sizeof *list);
    if (list == NULL)
        return error_set(err, ST_NO_MEMORY, "readings of glyphs");
    readings->list = list;
    readings->max = max;
    return ST_OK;
}

enum status readings_add(struct readings *readings, size_t face, uint32_t glyph, struct text text,
                         struct error *err)
{
    struct glyph_reading reading = {.face = (uint16_t)face, .glyph = (uint16_t)glyph};
    size_t place;
    enum status st;

    assert(face <= UINT16_MAX && glyph <= UINT16_MAX);
    if (text.len == 0 || text.len > READING_BYTES_MAX || readings->count >= READINGS_MAX)
        return ST_OK;
    place = place_of(readings, key_of(&reading));
    if (place < readings->count && key_of(&readings->list[place]) == key_of(&reading))
        return ST_OK;
    st = make_room(readings, err);
    if (st != ST_OK)
        return st;
    reading.len = (uint8_t)text.len;
    memcpy(reading.data, text.data, text.len);
    memmove(&readings->list[place + 1], &readings->list[place],
            (readings->count - place) * sizeof reading);
    readings->list[place] = reading;
    readings->count++;
    return ST_OK;
}

enum status readings_unite(struct readings *dst, const struct readings *src, struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < src->count && st == ST_OK; i++) {
        const struct glyph_reading *reading = &src->list[i];

        st = readings_add(dst, reading->face, reading->glyph,
                          (struct text){reading->data, reading->len}, err);
    }
    return st;
}

const struct glyph_reading *readings_find(const struct readings *readings, size_t face,
                                          uint32_t glyph)
{
    uint32_t const key = (uint32_t)face << 16 | glyph;
    size_t const place = place_of(readings, key);

    if (place == readings->count || key_of(&readings->list[place]) != key)
        return NULL;
    return &readings->list[place];
}
