#include "workers/deflate.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdlib.h>

static const int LEVELS[DEFLATE_EFFORTS] = {[DEFLATE_FAST] = 1, [DEFLATE_SMALL] = 6};

struct deflater {
    struct libdeflate_compressor *compressors[DEFLATE_EFFORTS];
};

enum status deflater_new(struct deflater **deflater, struct error *err)
{
    struct deflater *made = calloc(1, sizeof *made);

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a compressor");
    for (int effort = 0; effort < DEFLATE_EFFORTS; effort++) {
        made->compressors[effort] = libdeflate_alloc_compressor(LEVELS[effort]);
        if (made->compressors[effort] == NULL) {
            deflater_free(&made);
            return error_set(err, ST_NO_MEMORY, "a compressor");
        }
    }
    *deflater = made;
    return ST_OK;
}

void deflater_free(struct deflater **deflater)
{
    if (*deflater == NULL)
        return;
    for (int effort = 0; effort < DEFLATE_EFFORTS; effort++)
        libdeflate_free_compressor((*deflater)->compressors[effort]);
    free(*deflater);
    *deflater = NULL;
}

enum status deflate_append(struct deflater *deflater, enum deflate_effort effort, const void *data,
                           size_t len, struct bytes *out, struct error *err)
{
    struct libdeflate_compressor *compressor = deflater->compressors[effort];
    size_t bound = libdeflate_zlib_compress_bound(compressor, len);
    size_t written;
    enum status st = bytes_reserve(out, bound, err);

    if (st != ST_OK)
        return st;
    written = libdeflate_zlib_compress(compressor, data, len, out->data + out->len, bound);
    assert(written > 0); /* the bound is enough by its contract */
    out->len += written;
    return ST_OK;
}
