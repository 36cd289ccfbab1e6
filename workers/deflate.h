/*
 * Compression in the zlib format (RFC 1950), which PDF calls FlateDecode. One deflater is kept by
 * each worker and used over and over: setting one up costs more than compressing a page.
 */
#ifndef TICKETPRESS_WORKERS_DEFLATE_H
#define TICKETPRESS_WORKERS_DEFLATE_H

#include "domain/bytes.h"
#include "domain/status.h"

#include <stddef.h>

struct deflater;

enum deflate_effort {
    DEFLATE_FAST,  /* page contents: many and small */
    DEFLATE_SMALL, /* what is written once per document or process */
    DEFLATE_EFFORTS
};

/* Errors: ST_NO_MEMORY. */
MUST_USE enum status deflater_new(struct deflater **deflater, struct error *err);
void deflater_free(struct deflater **deflater);

/*
 * Compress and append.
 *
 * In:      data, len  any bytes
 * Out:     out        the zlib stream is appended
 * Errors:  ST_NO_MEMORY  *out keeps its earlier contents
 * Threads: one deflater, one thread
 */
MUST_USE enum status deflate_append(struct deflater *deflater, enum deflate_effort effort,
                                    const void *data, size_t len, struct bytes *out,
                                    struct error *err);

#endif
