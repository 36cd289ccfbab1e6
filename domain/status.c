#include "domain/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const STATUS_NAMES[] = {
    [ST_OK] = "ok",
    [ST_INVALID] = "invalid",
    [ST_TOO_LARGE] = "too_large",
    [ST_NOT_FOUND] = "not_found",
    [ST_NO_KEY] = "no_key",
    [ST_BUSY] = "busy",
    [ST_CANCELLED] = "cancelled",
    [ST_TIMED_OUT] = "timed_out",
    [ST_NO_MEMORY] = "no_memory",
    [ST_IO] = "io",
    [ST_LIBRARY] = "library",
};
_Static_assert(sizeof STATUS_NAMES / sizeof *STATUS_NAMES == ST_COUNT, "a name for each status");

/* Shorten a text that vsnprintf cut so that it does not end inside a UTF-8 sequence. */
static void cut_at_character(char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0xC0)
        text[start - 1] = '\0';
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    assert(status != ST_OK && status < ST_COUNT);
    if (err != NULL) {
        va_list args;
        int len;

        va_start(args, format);
        len = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        if (len < 0)
            err->text[0] = '\0';
        if (len >= (int)sizeof err->text)
            cut_at_character(err->text, sizeof err->text - 1);
        err->status = status;
    }
    return status;
}

const char *status_name(enum status status)
{
    assert(status < ST_COUNT);
    return STATUS_NAMES[status];
}
