#include "workers/image.h"

#include "workers/deflate.h"

#include <assert.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h> /* needs stdio.h before it */
#include <png.h>

enum {
    OPAQUE = 255,
    WHITE = 255,
    JPEG_BLOCK_BYTES = 4096,
    PNG_SIGNATURE_BYTES = 8,
};

static enum status check_size(uint64_t width, uint64_t height, struct error *err)
{
    if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX || width * height > IMAGE_PIXELS_MAX)
        return error_set(err, ST_TOO_LARGE,
                         "%llu by %llu pixels; at most %d a side and %d together",
                         (unsigned long long)width, (unsigned long long)height, IMAGE_SIDE_MAX,
                         IMAGE_PIXELS_MAX);
    return ST_OK;
}

/* ---- PNG ---- */

/* One file while it is read. libpng leaves by longjmp, so that nothing that must be freed is
 * anywhere but here. */
struct png_reading {
    const uint8_t *rest; /* rest_len bytes that libpng has not taken so far */
    size_t rest_len;
    struct error *err;
    enum status status; /* ST_OK: nothing has gone wrong */
    png_structp png;
    png_infop info;
    uint32_t width, height;
    uint32_t channels; /* 1 or 3, one more with alpha */
    uint8_t *pixels;   /* width * height * channels */
};

static void png_fail(struct png_reading *reading, enum status status, const char *what)
{
    if (reading->status == ST_OK)
        reading->status = error_set(reading->err, status, "PNG: %s", what);
}

__attribute__((noreturn)) static void png_on_error(png_structp png, const char *what)
{
    png_fail(png_get_error_ptr(png), ST_INVALID, what);
    png_longjmp(png, 1);
}

/* The file is refused when it has been read: libpng is not prepared to be left here. */
static void png_on_warning(png_structp png, const char *what)
{
    png_fail(png_get_error_ptr(png), ST_INVALID, what);
}

static png_voidp png_allocate(png_structp png, png_alloc_size_t bytes)
{
    void *memory = malloc(bytes);

    if (memory == NULL)
        png_fail(png_get_mem_ptr(png), ST_NO_MEMORY, "no memory");
    return memory;
}

static void png_release(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void png_take(png_structp png, png_bytep data, size_t len)
{
    struct png_reading *reading = png_get_io_ptr(png);

    if (len > reading->rest_len)
        png_error(png, "the file ends too early");
    memcpy(data, reading->rest, len);
    reading->rest += len;
    reading->rest_len -= len;
}

/* Each chunk must be whole, also those that are not used; of these none is unpacked. */
static void png_set_rules(struct png_reading *reading)
{
    png_set_read_fn(reading->png, reading, png_take);
    png_set_user_limits(reading->png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    png_set_chunk_malloc_max(reading->png, IMAGE_FILE_BYTES_MAX);
    png_set_crc_action(reading->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(reading->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* Whatever the file's depth and palette: 8 bits of grey or RGB, with alpha if any is not opaque. */
static int png_ask_for_bytes(struct png_reading *reading)
{
    int const passes = png_set_interlace_handling(reading->png);

    png_set_expand(reading->png);
    png_set_scale_16(reading->png);
    png_read_update_info(reading->png, reading->info);
    reading->channels = png_get_channels(reading->png, reading->info);
    assert(png_get_bit_depth(reading->png, reading->info) == 8);
    return passes;
}

static void png_read_pixels(struct png_reading *reading, int passes)
{
    size_t const row_bytes = png_get_rowbytes(reading->png, reading->info);

    assert(row_bytes == (size_t)reading->width * reading->channels);
    reading->pixels = calloc(reading->height, row_bytes);
    if (reading->pixels == NULL) {
        png_fail(reading, ST_NO_MEMORY, "no memory");
        return;
    }
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < reading->height; y++)
            png_read_row(reading->png, reading->pixels + y * row_bytes, NULL);
    png_read_end(reading->png, NULL);
}

static void png_decode(struct png_reading *reading)
{
    reading->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reading, png_on_error,
                                            png_on_warning, reading, png_allocate, png_release);
    if (reading->png != NULL)
        reading->info = png_create_info_struct(reading->png);
    if (reading->info == NULL) {
        png_fail(reading, ST_NO_MEMORY, "no memory");
        return;
    }
    if (setjmp(png_jmpbuf(reading->png)) != 0) /* NOLINT(cert-err52-cpp): libpng's only way */
        return;
    png_set_rules(reading);
    png_read_info(reading->png, reading->info);
    reading->width = png_get_image_width(reading->png, reading->info);
    reading->height = png_get_image_height(reading->png, reading->info);
    if (reading->status == ST_OK)
        reading->status = check_size(reading->width, reading->height, reading->err);
    if (reading->status == ST_OK)
        png_read_pixels(reading, png_ask_for_bytes(reading));
}

/* Lay the pixels on white, in place: the alpha of each goes, and those behind it move up. */
static void lay_on_white(struct png_reading *reading)
{
    size_t const pixels_count = (size_t)reading->width * reading->height;
    uint32_t const colors = reading->channels - 1;
    const uint8_t *from = reading->pixels;
    uint8_t *to = reading->pixels;

    for (size_t i = 0; i < pixels_count; i++, from += reading->channels) {
        uint32_t const alpha = from[colors];

        for (uint32_t c = 0; c < colors; c++)
            *to++ = (uint8_t)((from[c] * alpha + WHITE * (OPAQUE - alpha) + OPAQUE / 2) / OPAQUE);
    }
    reading->channels = colors;
}

static enum status deflate_pixels(const struct png_reading *reading, struct bytes *out,
                                  struct error *err)
{
    struct deflater *deflater = NULL;
    enum status st = deflater_new(&deflater, err);

    if (st == ST_OK)
        st = deflate_append(deflater, DEFLATE_SMALL, reading->pixels,
                            (size_t)reading->width * reading->height * reading->channels, out, err);
    deflater_free(&deflater);
    return st;
}

static enum status read_png(const uint8_t *data, size_t len, struct image *image, struct error *err)
{
    struct png_reading reading = {.rest = data, .rest_len = len, .err = err};
    enum status st;

    png_decode(&reading);
    st = reading.status;
    if (st == ST_OK && reading.channels % 2 == 0)
        lay_on_white(&reading);
    if (st == ST_OK)
        st = deflate_pixels(&reading, &image->data, err);
    if (st == ST_OK) {
        image->width = reading.width;
        image->height = reading.height;
        image->components = reading.channels;
        image->filter = IMAGE_FLATE;
    }
    png_destroy_read_struct(&reading.png, &reading.info, NULL);
    free(reading.pixels);
    return st;
}

/* ---- JPEG ---- */

/* One file while it is read and written anew. libjpeg leaves by longjmp, too. */
struct jpeg_reading {
    struct jpeg_error_mgr handler; /* first: a reading is found again by it */
    struct jpeg_destination_mgr destination;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
    jmp_buf left;
    struct bytes *out;
    uint8_t block[JPEG_BLOCK_BYTES]; /* on its way to out */
    struct error *err;
    enum status status;
};

static struct jpeg_reading *jpeg_reading_from(j_common_ptr common)
{
    return (struct jpeg_reading *)(void *)common->err;
}

__attribute__((noreturn)) static void jpeg_leave(struct jpeg_reading *reading, enum status status)
{
    reading->status = status;
    longjmp(reading->left, 1); /* NOLINT(cert-err52-cpp): libjpeg's only way */
}

__attribute__((noreturn)) static void jpeg_on_error(j_common_ptr common)
{
    struct jpeg_reading *reading = jpeg_reading_from(common);
    char what[JMSG_LENGTH_MAX];

    common->err->format_message(common, what);
    jpeg_leave(reading,
               error_set(reading->err,
                         common->err->msg_code == JERR_OUT_OF_MEMORY ? ST_NO_MEMORY : ST_INVALID,
                         "JPEG: %s", what));
}

/* Levels from 0 on are remarks; below are warnings that data is damaged. */
static void jpeg_on_message(j_common_ptr common, int level)
{
    if (level < 0)
        jpeg_on_error(common);
}

static void jpeg_on_progress(j_common_ptr common)
{
    struct jpeg_reading *reading = jpeg_reading_from(common);

    if (reading->from.input_scan_number > IMAGE_JPEG_SCANS_MAX)
        jpeg_leave(reading, error_set(reading->err, ST_TOO_LARGE, "JPEG: more than %d scans",
                                      IMAGE_JPEG_SCANS_MAX));
}

static void jpeg_empty_block(struct jpeg_reading *reading)
{
    reading->destination.next_output_byte = reading->block;
    reading->destination.free_in_buffer = sizeof reading->block;
}

static void jpeg_begin_out(j_compress_ptr to)
{
    jpeg_empty_block(jpeg_reading_from((j_common_ptr)to));
}

static void jpeg_append(struct jpeg_reading *reading, size_t len)
{
    enum status st = bytes_append(reading->out, reading->block, len, reading->err);

    if (st != ST_OK)
        jpeg_leave(reading, st);
    jpeg_empty_block(reading);
}

/* The whole block counts, whatever free_in_buffer says (libjpeg.txt, "Compressed data handling").
 */
static boolean jpeg_flush_block(j_compress_ptr to)
{
    jpeg_append(jpeg_reading_from((j_common_ptr)to), JPEG_BLOCK_BYTES);
    return TRUE;
}

static void jpeg_end_out(j_compress_ptr to)
{
    struct jpeg_reading *reading = jpeg_reading_from((j_common_ptr)to);

    jpeg_append(reading, sizeof reading->block - reading->destination.free_in_buffer);
}

static void jpeg_check_header(struct jpeg_reading *reading)
{
    const struct jpeg_decompress_struct *from = &reading->from;
    enum status st = check_size(from->image_width, from->image_height, reading->err);

    if (st == ST_OK && from->jpeg_color_space != JCS_GRAYSCALE &&
        from->jpeg_color_space != JCS_YCbCr && from->jpeg_color_space != JCS_RGB)
        st = error_set(reading->err, ST_INVALID,
                       "JPEG: its colours are neither grey nor RGB, perhaps CMYK");
    if (st != ST_OK)
        jpeg_leave(reading, st);
}

static void jpeg_transcode(struct jpeg_reading *reading, const uint8_t *data, size_t len)
{
    jvirt_barray_ptr *coefficients;

    if (setjmp(reading->left) != 0) /* NOLINT(cert-err52-cpp) */
        return;
    jpeg_create_decompress(&reading->from);
    jpeg_create_compress(&reading->to);
    jpeg_mem_src(&reading->from, data, (unsigned long)len);
    jpeg_read_header(&reading->from, TRUE);
    jpeg_check_header(reading);
    reading->from.progress = &reading->progress;
    coefficients = jpeg_read_coefficients(&reading->from);
    jpeg_copy_critical_parameters(&reading->from, &reading->to);
    reading->to.dest = &reading->destination;
    reading->to.optimize_coding = TRUE;
    reading->to.arith_code = FALSE; /* PDF knows Huffman coding only */
    jpeg_write_coefficients(&reading->to, coefficients);
    jpeg_finish_compress(&reading->to);
    jpeg_finish_decompress(&reading->from);
}

static enum status read_jpeg(const uint8_t *data, size_t len, struct image *image,
                             struct error *err)
{
    struct jpeg_reading reading = {
        .out = &image->data,
        .err = err,
        .progress.progress_monitor = jpeg_on_progress,
        .destination = {.init_destination = jpeg_begin_out,
                        .empty_output_buffer = jpeg_flush_block,
                        .term_destination = jpeg_end_out},
    };

    reading.from.err = reading.to.err = jpeg_std_error(&reading.handler);
    reading.handler.error_exit = jpeg_on_error;
    reading.handler.emit_message = jpeg_on_message;
    jpeg_transcode(&reading, data, len);
    if (reading.status == ST_OK) {
        image->width = reading.from.image_width;
        image->height = reading.from.image_height;
        image->components = (uint32_t)reading.from.num_components;
        image->filter = IMAGE_DCT;
    }
    jpeg_destroy_compress(&reading.to);
    jpeg_destroy_decompress(&reading.from);
    return reading.status;
}

/* ---- either ---- */

enum status image_read(const uint8_t *data, size_t len, struct image *image, struct error *err)
{
    enum status st;

    assert(image->data.capacity == 0);
    if (len > IMAGE_FILE_BYTES_MAX)
        return error_set(err, ST_TOO_LARGE, "an image of %zu bytes; at most %d", len,
                         IMAGE_FILE_BYTES_MAX);
    if (len >= PNG_SIGNATURE_BYTES && png_sig_cmp(data, 0, PNG_SIGNATURE_BYTES) == 0)
        st = read_png(data, len, image, err);
    else if (len >= 3 && data[0] == 0xFF && data[1] == 0xD8 && data[2] == 0xFF)
        st = read_jpeg(data, len, image, err);
    else
        st = error_set(err, ST_INVALID, "it is neither a PNG nor a JPEG file");
    if (st != ST_OK)
        image_clear(image);
    assert((st == ST_OK) == (image->components == 1 || image->components == 3));
    return st;
}

void image_clear(struct image *image)
{
    bytes_clear(&image->data);
    *image = (struct image){0};
}
