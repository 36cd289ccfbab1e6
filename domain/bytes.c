#include "domain/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_CAPACITY_MIN = 256 };

void bytes_clear(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

void bytes_move(struct bytes *dst, struct bytes *src)
{
    assert(dst->capacity == 0);
    *dst = *src;
    *src = (struct bytes){0};
}

enum status bytes_reserve(struct bytes *bytes, size_t more, struct error *err)
{
    size_t capacity = bytes->capacity < BYTES_CAPACITY_MIN ? BYTES_CAPACITY_MIN : bytes->capacity;
    uint8_t *data;

    if (more <= bytes->capacity - bytes->len)
        return ST_OK;
    if (more > SIZE_MAX / 2 - bytes->len)
        return error_set(err, ST_NO_MEMORY, "a buffer of %zu + %zu bytes", bytes->len, more);
    while (capacity < bytes->len + more)
        capacity *= 2;
    data = realloc(bytes->data, capacity);
    if (data == NULL)
        return error_set(err, ST_NO_MEMORY, "a buffer of %zu bytes", capacity);
    bytes->data = data;
    bytes->capacity = capacity;
    return ST_OK;
}

enum status bytes_append(struct bytes *bytes, const void *data, size_t len, struct error *err)
{
    enum status st = bytes_reserve(bytes, len, err);

    if (st == ST_OK && len > 0) {
        memcpy(bytes->data + bytes->len, data, len);
        bytes->len += len;
    }
    return st;
}
