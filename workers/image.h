/*
 * Images of layouts: a PNG or JPEG file in, the bytes of a PDF image out. Everything is decided
 * once, when a layout is loaded; what a document needs afterwards is only copied.
 *
 * A PNG of any kind becomes 8-bit grey or RGB samples, compressed; where it is not opaque it is
 * laid on white, for PDF/A-1 knows no transparency and tickets are printed on paper. Its gamma,
 * profile and texts are not read. A JPEG keeps its samples: its coefficients are written anew as a
 * baseline file without comments, pictures of itself or where it was taken; so all of it was read,
 * and no viewer meets what this library did not. Turning by EXIF is not done.
 *
 * A file that libpng or libjpeg has as much as a warning for is refused.
 */
#ifndef TICKETPRESS_WORKERS_IMAGE_H
#define TICKETPRESS_WORKERS_IMAGE_H

#include "domain/bytes.h"
#include "domain/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    IMAGE_FILE_BYTES_MAX = 8 * 1024 * 1024,
    IMAGE_PIXELS_MAX = 16 * 1024 * 1024,
    IMAGE_SIDE_MAX = 32767,
    IMAGE_JPEG_SCANS_MAX = 100, /* a progressive file may repeat itself to no end */
};

/* How the samples are packed, by the names of ISO 32000-1, 7.4. */
enum image_filter { IMAGE_FLATE, IMAGE_DCT };

struct image {
    uint32_t width, height; /* 1..IMAGE_SIDE_MAX samples, at most IMAGE_PIXELS_MAX together */
    uint32_t components;    /* of 8 bits: 1 grey, 3 RGB */
    enum image_filter filter;
    struct bytes data;
};

/*
 * Read a file.
 *
 * In:      data, len  any bytes: what they are is told by how they begin
 * Out:     image      zeroed on entry
 * Errors:  ST_INVALID    neither PNG nor JPEG, damaged, or a JPEG of CMYK
 *          ST_TOO_LARGE  more bytes, pixels or scans than allowed; found before memory is taken
 *          ST_NO_MEMORY  *image is left zeroed in each case
 * Threads: any, on distinct outputs
 */
MUST_USE enum status image_read(const uint8_t *data, size_t len, struct image *image,
                                struct error *err);

void image_clear(struct image *image);

#endif
