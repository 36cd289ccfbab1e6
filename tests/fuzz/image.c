/*
 * Any bytes as an image of a layout: no crash, no leak, and what is accepted is what a document can
 * embed. Files of more pixels than a fuzzer has time for are left alone.
 */
#include "workers/image.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image = {0};
    struct error error = {0};
    enum status const st = image_read(data, size, &image, &error);

    if (st == ST_OK) {
        require(image.width >= 1 && image.width <= IMAGE_SIDE_MAX);
        require(image.height >= 1 && image.height <= IMAGE_SIDE_MAX);
        require((uint64_t)image.width * image.height <= IMAGE_PIXELS_MAX);
        require(image.components == 1 || image.components == 3);
        require(image.data.len > 0);
    } else {
        require(st == ST_INVALID || st == ST_TOO_LARGE);
        require(image.data.data == NULL && error.text[0] != '\0');
    }
    image_clear(&image);
    return 0;
}
