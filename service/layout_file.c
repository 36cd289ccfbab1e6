#include "service/layout_file.h"

#include "service/config_json.h"
#include "service/file.h"
#include "workers/image.h"
#include "workers/page.h"
#include "workers/sign.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_BYTES_MAX = 64 };

/* The place of a file that the layout names. */
static enum status path_beside(const char *layout_path, struct text file, char path[PATH_MAX],
                               struct error *err)
{
    const char *slash = strrchr(layout_path, '/');
    int const directory_len = slash != NULL ? (int)(slash - layout_path) + 1 : 0;
    int const len = snprintf(path, PATH_MAX, "%.*s%s", directory_len, layout_path, file.data);

    if (len < 0 || len >= PATH_MAX)
        return error_set(err, ST_INVALID, "the path is too long");
    return ST_OK;
}

/* Read one image, and note what its file was by 32 bytes more of the content. */
static enum status load_image(const char *path, struct image *image, struct bytes *content,
                              struct error *err)
{
    struct bytes file = {0};
    struct error fault = {0};
    uint8_t digest[SHA256_BYTES];
    enum status st = file_read_ordinary(path, IMAGE_FILE_BYTES_MAX, &file, err);

    if (st == ST_OK) {
        st = image_read(file.data, file.len, image, &fault);
        if (st != ST_OK)
            error_set(err, st, "%s: %s", path, fault.text);
    }
    if (st == ST_OK)
        st = sign_sha256(file.data, file.len, digest, err);
    if (st == ST_OK)
        st = bytes_append(content, digest, sizeof digest, err);
    bytes_clear(&file);
    return st;
}

static void note_bad_image(const struct layout *layout, size_t image, const char *what,
                           struct problems *problems)
{
    char pointer[POINTER_BYTES_MAX];
    size_t i = 0;

    while (layout->elements[i].kind != LAYOUT_IMAGE || layout->elements[i].image != image)
        i++;
    assert(i < layout->elements_count);
    snprintf(pointer, sizeof pointer, "/elements/%zu/file", i);
    problems_add(problems, pointer, "bad_image", "%s", what);
}

/* What an image looks like is known when it has been read: whether each place suits it. */
static void check_sizes(const struct press_layout *layout, struct problems *problems)
{
    for (size_t i = 0; i < layout->layout.elements_count; i++) {
        const struct layout_element *element = &layout->layout.elements[i];
        const struct image *image = &layout->images[element->image];
        char pointer[POINTER_BYTES_MAX];
        int64_t w_um, h_um;

        if (element->kind != LAYOUT_IMAGE || image->width == 0 ||
            page_image_size(element, image, &w_um, &h_um))
            continue;
        snprintf(pointer, sizeof pointer, "/elements/%zu", i);
        problems_add(problems, pointer, "bad_image",
                     "is too long or too thin for its image: %u by %u pixels would become %.2f by "
                     "%.2f mm",
                     image->width, image->height, (double)w_um / UM_PER_MM,
                     (double)h_um / UM_PER_MM);
    }
}

/* All images, so that all faults are found at once. A failure of ours ends it. */
static enum status load_images(const char *layout_path, struct press_layout *layout,
                               struct bytes *content, struct problems *problems, struct error *err)
{
    size_t const before = problems->count;

    layout->images = calloc(layout->layout.images_count, sizeof *layout->images);
    if (layout->images == NULL)
        return error_set(err, ST_NO_MEMORY, "%s: its images", layout_path);
    for (size_t i = 0; i < layout->layout.images_count; i++) {
        char path[PATH_MAX];
        struct error fault = {0};
        enum status st = path_beside(layout_path, layout->layout.images[i].file, path, &fault);

        if (st == ST_OK)
            st = load_image(path, &layout->images[i], content, &fault);
        if (st == ST_NO_MEMORY || st == ST_LIBRARY)
            return error_set(err, st, "%s", fault.text);
        if (st != ST_OK)
            note_bad_image(&layout->layout, i, fault.text, problems);
    }
    check_sizes(layout, problems);
    return problems->count > before ? error_set(err, ST_INVALID, "an image cannot be used") : ST_OK;
}

enum status layout_file_load(const char *path, struct press_layout *layout,
                             struct problems *problems, struct error *err)
{
    size_t const before = problems->listed_count;
    struct bytes content = {0};
    enum status st = layout_file_read(path, &layout->layout, &content, problems, err);

    if (st == ST_OK && layout->layout.images_count > 0)
        st = load_images(path, layout, &content, problems, err);
    if (st == ST_OK)
        st = sign_sha256(content.data, content.len, layout->hash, err);
    if (st == ST_INVALID && before < problems->listed_count)
        st = file_problem_error(path, &problems->listed[before], err);
    bytes_clear(&content);
    if (st != ST_OK)
        press_layout_clear(layout);
    return st;
}
