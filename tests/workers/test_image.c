#include "workers/image.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> /* needs stdio.h before it */

/* The picture of fixtures/make_images.py: red, green, blue and white quarters. */
enum { WIDTH = 24, HEIGHT = 16, FILE_MAX = 8192 };

struct file {
    uint8_t data[FILE_MAX];
    size_t len;
};

static void file_load(const char *name, struct file *file)
{
    char path[256];
    FILE *from;

    snprintf(path, sizeof path, "fixtures/layouts/valid/images/%s", name);
    from = fopen(path, "rb");
    cr_assert_not_null(from, "%s", path);
    file->len = fread(file->data, 1, sizeof file->data, from);
    cr_assert(file->len > 0 && file->len < sizeof file->data, "%s", path);
    fclose(from);
}

/* ---- what comes out ---- */

static void samples_of(const struct image *image, uint8_t *samples, const char *name)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    size_t const len = (size_t)WIDTH * HEIGHT * image->components;

    cr_assert_not_null(decompressor);
    cr_assert_eq(libdeflate_zlib_decompress(decompressor, image->data.data, image->data.len,
                                            samples, len, NULL),
                 LIBDEFLATE_SUCCESS, "%s", name);
    libdeflate_free_decompressor(decompressor);
}

/* Each quarter is of one colour, 0xRRGGBB or 0xGG, throughout. */
static void expect_quarters(const struct image *image, const uint32_t quarters[4], const char *name)
{
    uint8_t samples[WIDTH * HEIGHT * 3];

    samples_of(image, samples, name);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        for (uint32_t x = 0; x < WIDTH; x++) {
            const uint8_t *at = samples + ((size_t)y * WIDTH + x) * image->components;
            uint32_t color = 0;

            for (uint32_t c = 0; c < image->components; c++)
                color = color << 8 | at[c];
            cr_assert_eq(color, quarters[2 * (y >= HEIGHT / 2) + (x >= WIDTH / 2)],
                         "%s: %06X at %u, %u", name, color, x, y);
        }
    }
}

Test(image_read, makes_grey_or_rgb_of_every_kind_of_png)
{
    static const struct {
        const char *name;
        uint32_t components;
        uint32_t quarters[4];
    } ROWS[] = {
        {"grey1.png", 1, {0x00, 0xFF, 0x00, 0xFF}},
        {"grey2.png", 1, {0x00, 0x55, 0xAA, 0xFF}},
        {"grey4.png", 1, {0x00, 0x55, 0xAA, 0xFF}},
        {"grey8.png", 1, {0x00, 0x55, 0xAA, 0xFF}},
        {"grey16.png", 1, {0x00, 0x55, 0xAA, 0xFF}},
        {"grey8-transparent.png", 1, {0x00, 0xFF, 0xAA, 0xFF}},
        {"rgb8.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"rgb16.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"rgb8-transparent.png", 3, {0xC81E28, 0xFFFFFF, 0x2040C0, 0xFFFFFF}},
        {"rgb8-interlaced.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"rgb8-texts.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"palette1.png", 3, {0xC81E28, 0x008040, 0xC81E28, 0x008040}},
        {"palette4.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"palette8-interlaced.png", 3, {0xC81E28, 0x008040, 0x2040C0, 0xFFFFFF}},
        {"palette8-alpha.png", 3, {0xC81E28, 0x7FBF9F, 0x2040C0, 0xFFFFFF}},
        {"grey8-alpha.png", 1, {0x00, 0xAA, 0xAA, 0xFF}},
        {"grey16-alpha.png", 1, {0x00, 0xAA, 0xAA, 0xFF}},
        {"rgb8-alpha.png", 3, {0xC81E28, 0x7FBF9F, 0x2040C0, 0xFFFFFF}},
        {"rgb16-alpha.png", 3, {0xC81E28, 0x7FBF9F, 0x2040C0, 0xFFFFFF}},
        {"rgb8-alpha-interlaced.png", 3, {0xC81E28, 0x7FBF9F, 0x2040C0, 0xFFFFFF}},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct file file = {.len = 0};
        struct image image = {0};
        struct error error = {0};

        file_load(ROWS[i].name, &file);
        cr_assert_eq(image_read(file.data, file.len, &image, &error), ST_OK, "%s: %s", ROWS[i].name,
                     error.text);
        cr_expect_eq(image.width, WIDTH, "%s", ROWS[i].name);
        cr_expect_eq(image.height, HEIGHT, "%s", ROWS[i].name);
        cr_expect_eq(image.filter, IMAGE_FLATE, "%s", ROWS[i].name);
        cr_assert_eq(image.components, ROWS[i].components, "%s", ROWS[i].name);
        expect_quarters(&image, ROWS[i].quarters, ROWS[i].name);
        image_clear(&image);
        cr_expect_null(image.data.data, "%s", ROWS[i].name);
    }
}

/* ---- JPEG ---- */

struct jpeg_kind {
    const char *name;
    J_COLOR_SPACE from, to; /* of the samples and of the file */
    int components;
    bool is_progressive, is_arithmetic;
    int scans; /* 0: as the library does it */
    enum status expected;
    uint32_t expected_components;
};

/* A grey picture in very small steps: each scan brings one bit of one coefficient. */
static void ask_for_scans(struct jpeg_compress_struct *to, jpeg_scan_info *scans, int count)
{
    for (int i = 0; i < count; i++) {
        int const coefficient = i / 2;
        int const bit = i % 2;

        scans[i] = (jpeg_scan_info){
            .comps_in_scan = 1, .Ss = coefficient, .Se = coefficient, .Ah = bit, .Al = 1 - bit};
    }
    to->scan_info = scans;
    to->num_scans = count;
}

/* The picture as a JPEG of a kind; grey levels where there is one component. */
static void jpeg_make(const struct jpeg_kind *kind, struct file *file)
{
    struct jpeg_error_mgr handler;
    struct jpeg_compress_struct to = {.err = jpeg_std_error(&handler)};
    jpeg_scan_info scans[IMAGE_JPEG_SCANS_MAX + 1];
    unsigned char *made = NULL;
    unsigned long made_len = 0;

    jpeg_create_compress(&to);
    jpeg_mem_dest(&to, &made, &made_len);
    to.image_width = WIDTH;
    to.image_height = HEIGHT;
    to.input_components = kind->components;
    to.in_color_space = kind->from;
    jpeg_set_defaults(&to);
    jpeg_set_colorspace(&to, kind->to);
    if (kind->is_progressive)
        jpeg_simple_progression(&to);
    if (kind->scans > 0)
        ask_for_scans(&to, scans, kind->scans);
    to.arith_code = kind->is_arithmetic;
    jpeg_start_compress(&to, TRUE);
    for (int y = 0; y < HEIGHT; y++) {
        JSAMPLE row[WIDTH * 4];
        JSAMPROW rows[] = {row};

        for (int i = 0; i < WIDTH * kind->components; i++)
            row[i] = (JSAMPLE)(y * 16);
        jpeg_write_scanlines(&to, rows, 1);
    }
    jpeg_finish_compress(&to);
    cr_assert_lt(made_len, sizeof file->data);
    memcpy(file->data, made, made_len);
    file->len = made_len;
    free(made);
    jpeg_destroy_compress(&to);
}

static bool has_marker(const struct bytes *jpeg, uint8_t marker)
{
    for (size_t i = 0; i + 1 < jpeg->len; i++)
        if (jpeg->data[i] == 0xFF && jpeg->data[i + 1] == marker)
            return true;
    return false;
}

static void expect_baseline(const struct bytes *jpeg, const char *name)
{
    static const uint8_t BEGIN[] = {0xFF, 0xD8, 0xFF}, END[] = {0xFF, 0xD9};

    cr_assert(jpeg->len > 100, "%s", name);
    cr_expect_arr_eq(jpeg->data, BEGIN, sizeof BEGIN, "%s", name);
    cr_expect_arr_eq(jpeg->data + jpeg->len - sizeof END, END, sizeof END, "%s", name);
    cr_expect(has_marker(jpeg, 0xC0), "%s: SOF0", name);
    cr_expect(!has_marker(jpeg, 0xC2) && !has_marker(jpeg, 0xC9), "%s: SOF2, SOF9", name);
}

/* What was written anew is read again as it is: nothing is lost, and nothing is left to leave out.
 */
static void expect_settled(const struct image *image, const char *name)
{
    struct image again = {0};

    cr_assert_eq(image_read(image->data.data, image->data.len, &again, NULL), ST_OK, "%s", name);
    cr_expect_eq(again.data.len, image->data.len, "%s", name);
    cr_expect_arr_eq(again.data.data, image->data.data, image->data.len, "%s", name);
    image_clear(&again);
}

Test(image_read, writes_a_jpeg_anew_as_baseline_or_refuses_it)
{
    static const struct jpeg_kind ROWS[] = {
        {"grey", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, false, false, 0, ST_OK, 1},
        {"YCbCr", JCS_RGB, JCS_YCbCr, 3, false, false, 0, ST_OK, 3},
        {"RGB", JCS_RGB, JCS_RGB, 3, false, false, 0, ST_OK, 3},
        {"progressive", JCS_RGB, JCS_YCbCr, 3, true, false, 0, ST_OK, 3},
        {"arithmetic", JCS_RGB, JCS_YCbCr, 3, false, true, 0, ST_OK, 3},
        {"most scans", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, true, false, IMAGE_JPEG_SCANS_MAX, ST_OK,
         1},
        {"too many scans", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, true, false, IMAGE_JPEG_SCANS_MAX + 1,
         ST_TOO_LARGE, 0},
        {"CMYK", JCS_CMYK, JCS_CMYK, 4, false, false, 0, ST_INVALID, 0},
        {"YCCK", JCS_CMYK, JCS_YCCK, 4, false, false, 0, ST_INVALID, 0},
        {"two components", JCS_UNKNOWN, JCS_UNKNOWN, 2, false, false, 0, ST_INVALID, 0},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct file file = {.len = 0};
        struct image image = {0};

        jpeg_make(&ROWS[i], &file);
        cr_expect_eq(image_read(file.data, file.len, &image, NULL), ROWS[i].expected, "%s",
                     ROWS[i].name);
        cr_expect_eq(image.components, ROWS[i].expected_components, "%s", ROWS[i].name);
        if (ROWS[i].expected != ST_OK)
            continue;
        cr_expect(image.filter == IMAGE_DCT && image.width == WIDTH && image.height == HEIGHT, "%s",
                  ROWS[i].name);
        expect_baseline(&image.data, ROWS[i].name);
        expect_settled(&image, ROWS[i].name);
        image_clear(&image);
    }
}

/* ---- what is refused ---- */

/* A PNG header of a size, with nothing behind it. */
static void header_of_size(uint32_t width, uint32_t height, struct file *file)
{
    uint32_t const sides[] = {width, height};
    uint32_t crc;

    file_load("rgb8.png", file);
    for (size_t i = 0; i < 8; i++)
        file->data[16 + i] = (uint8_t)(sides[i / 4] >> (24 - 8 * (i % 4)));
    crc = libdeflate_crc32(0, file->data + 12, 17);
    for (size_t i = 0; i < 4; i++)
        file->data[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

Test(image_read, refuses_a_size_before_it_takes_memory)
{
    static const struct {
        const char *name;
        uint32_t width, height;
        enum status expected;
    } ROWS[] = {
        {"most pixels", 4096, 4096, ST_INVALID}, /* its rows are missing, no more */
        {"one row more", 4096, 4097, ST_TOO_LARGE},
        {"longest side", IMAGE_SIDE_MAX, 1, ST_INVALID},
    };
    struct file file;
    struct image image = {0};
    struct error error = {0};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        header_of_size(ROWS[i].width, ROWS[i].height, &file);
        cr_expect_eq(image_read(file.data, file.len, &image, &error), ROWS[i].expected, "%s: %s",
                     ROWS[i].name, error.text);
        cr_expect_null(image.data.data, "%s", ROWS[i].name);
    }
    header_of_size(IMAGE_SIDE_MAX + 1, 1, &file);
    cr_expect_neq(image_read(file.data, file.len, &image, &error), ST_OK);
    file_load("bomb.png", &file);
    cr_expect_eq(image_read(file.data, file.len, &image, &error), ST_TOO_LARGE);
    cr_expect_not_null(strstr(error.text, "32767 by 32767 pixels"), "%s", error.text);
}

Test(image_read, refuses_a_file_of_one_byte_too_many)
{
    uint8_t *data = calloc(1, IMAGE_FILE_BYTES_MAX + 1);
    struct image image = {0};
    struct error error = {0};

    cr_assert_not_null(data);
    cr_expect_eq(image_read(data, IMAGE_FILE_BYTES_MAX, &image, &error), ST_INVALID);
    cr_expect_eq(image_read(data, IMAGE_FILE_BYTES_MAX + 1, &image, &error), ST_TOO_LARGE);
    free(data);
}

Test(image_read, refuses_what_is_no_image)
{
    static const char *const ROWS[] = {
        "", "\x89", "\x89PNG\r\n\x1a", "\xFF\xD8", "\xFF\xD8\xFF", "GIF89a", "<svg/>", "%PDF-1.4"};
    struct image image = {0};
    struct error error = {0};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_eq(image_read((const uint8_t *)ROWS[i], strlen(ROWS[i]), &image, &error),
                     ST_INVALID, "%zu: %s", i, error.text);
}

Test(image_read, refuses_every_cut_file)
{
    static const char *const NAMES[] = {"rgb8.png", "palette8-alpha.png", "rgb8-texts.png",
                                        "rgb.jpg", "progressive.jpg"};
    struct image image = {0};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct file file = {.len = 0};

        file_load(NAMES[i], &file);
        for (size_t len = 0; len < file.len; len++)
            cr_assert_eq(image_read(file.data, len, &image, NULL), ST_INVALID, "%s cut to %zu",
                         NAMES[i], len);
    }
}

/* A PNG is covered by checksums, so that any change of it is noticed. */
Test(image_read, refuses_a_png_with_any_bit_changed)
{
    static const char *const NAMES[] = {"grey4.png", "rgb16-alpha.png", "palette8-alpha.png",
                                        "rgb8-alpha-interlaced.png", "rgb8-texts.png"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct file file = {.len = 0};

        file_load(NAMES[i], &file);
        for (size_t bit = 0; bit < file.len * 8; bit++) {
            struct image image = {0};
            struct error error = {0};

            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            cr_expect_eq(image_read(file.data, file.len, &image, &error), ST_INVALID,
                         "%s, bit %zu of byte %zu", NAMES[i], bit % 8, bit / 8);
            cr_expect(error.text[0] != '\0');
            image_clear(&image);
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

/* A JPEG has no checksums: a changed one may be another picture, but never anything worse. */
Test(image_read, refuses_a_changed_jpeg_or_makes_a_whole_one)
{
    static const char *const NAMES[] = {"rgb.jpg", "progressive.jpg"};
    size_t refused = 0;

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct file file = {.len = 0};

        file_load(NAMES[i], &file);
        for (size_t at = 0; at < file.len; at++) {
            for (int change = 1; change < 256; change <<= 1) {
                struct image image = {0};
                enum status st;

                file.data[at] ^= (uint8_t)change;
                st = image_read(file.data, file.len, &image, NULL);
                cr_assert(st == ST_OK || st == ST_INVALID || st == ST_TOO_LARGE, "%s: byte %zu",
                          NAMES[i], at);
                if (st == ST_OK)
                    expect_baseline(&image.data, NAMES[i]);
                refused += st != ST_OK;
                image_clear(&image);
                file.data[at] ^= (uint8_t)change;
            }
        }
    }
    cr_expect_gt(refused, 1000, "%zu refused", refused);
}

Test(image_read, leaves_nothing_where_memory_ends)
{
    static const char *const NAMES[] = {"rgb8-alpha-interlaced.png", "palette8-alpha.png",
                                        "rgb.jpg"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct file file = {.len = 0};
        size_t call = 0;
        bool has_failed;

        file_load(NAMES[i], &file);
        do {
            struct image image = {0};
            struct error error = {0};
            enum status st;

            failing_memory_start(++call);
            st = image_read(file.data, file.len, &image, &error);
            has_failed = failing_memory_stop();
            cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "%s, call %zu: %s", NAMES[i], call,
                         error.text);
            cr_expect_eq(st == ST_OK, image.data.data != NULL, "%s, call %zu", NAMES[i], call);
            image_clear(&image);
        } while (has_failed && call < 1000);
        cr_expect_gt(call, 1, "%s", NAMES[i]);
    }
}
