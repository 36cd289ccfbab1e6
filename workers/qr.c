#include "workers/qr.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <qrencode.h>
#include <string.h>

static const QRecLevel LEVELS[] = {
    [QR_LEVEL_L] = QR_ECLEVEL_L,
    [QR_LEVEL_M] = QR_ECLEVEL_M,
    [QR_LEVEL_Q] = QR_ECLEVEL_Q,
    [QR_LEVEL_H] = QR_ECLEVEL_H,
};

static enum status status_from_errno(int code, size_t len, struct error *err)
{
    switch (code) {
    case ERANGE:
        return error_set(err, ST_TOO_LARGE, "a QR symbol cannot hold %zu bytes", len);
    case ENOMEM:
        return error_set(err, ST_NO_MEMORY, "a QR symbol");
    default:
        return error_set(err, ST_LIBRARY, "libqrencode: %s", strerrordesc_np(code));
    }
}

/* libqrencode gives one byte a module, of which bit 0 is the colour. */
static void rows_from_modules(struct qr *qr, const unsigned char *modules)
{
    memset(qr->rows, 0, sizeof qr->rows);
    for (int y = 0; y < qr->side; y++)
        for (int x = 0; x < qr->side; x++)
            qr->rows[y][x / 64] |= (uint64_t)(modules[y * qr->side + x] & 1) << (x % 64);
}

enum status qr_encode(const void *data, size_t len, enum qr_level level, struct qr *qr,
                      struct error *err)
{
    QRcode *code;

    assert(len > 0);
    if (len > INT_MAX)
        return status_from_errno(ERANGE, len, err);
    errno = 0;
    code = QRcode_encodeData((int)len, data, 0, LEVELS[level]);
    if (code == NULL)
        return status_from_errno(errno, len, err);
    assert(code->width <= QR_SIDE_MAX);
    qr->side = code->width;
    rows_from_modules(qr, code->data);
    QRcode_free(code);
    return ST_OK;
}

/* Whether row y is dark from x over width modules and light on both sides of them. */
static bool is_run(const struct qr *qr, int y, int x, int width)
{
    if (x > 0 && qr_is_dark(qr, x - 1, y))
        return false;
    if (x + width < qr->side && qr_is_dark(qr, x + width, y))
        return false;
    for (int i = x; i < x + width; i++)
        if (!qr_is_dark(qr, i, y))
            return false;
    return true;
}

size_t qr_rects(const struct qr *qr, struct qr_rect *rects)
{
    size_t count = 0;

    for (int y = 0; y < qr->side; y++) {
        for (int x = 0; x < qr->side;) {
            int width = 0;
            int height = 1;

            while (x + width < qr->side && qr_is_dark(qr, x + width, y))
                width++;
            if (width == 0) {
                x++;
                continue;
            }
            if (y == 0 || !is_run(qr, y - 1, x, width)) { /* else a rectangle from above has it */
                while (y + height < qr->side && is_run(qr, y + height, x, width))
                    height++;
                rects[count++] =
                    (struct qr_rect){(uint8_t)x, (uint8_t)y, (uint8_t)width, (uint8_t)height};
            }
            x += width;
        }
    }
    return count;
}
