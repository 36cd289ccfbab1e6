/*
 * Plants what must not be: a document is copied just before it is written. How is said by
 * SHIM_SPOIL: "memcpy", which a shim behind this one sees in memcpy(), or "loop", which shows only
 * by the place that is written from.
 */
#include "note.h"

#include <stdbool.h>
#include <stdint.h>

static ssize_t (*next_write)(int, const void *, size_t);

__attribute__((constructor)) static void start(void)
{
    next_function("write", &next_write);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's names differ */
ssize_t write(int fd, const void *data, size_t len)
{
    const char *how = getenv("SHIM_SPOIL");
    bool const is_document = len >= 5 && strncmp(data, "%PDF-", 5) == 0;
    volatile char *copied = how == NULL || !is_document ? NULL : malloc(len);
    ssize_t gone;

    if (copied == NULL)
        return next_write(fd, data, len);
    if (strcmp(how, "memcpy") == 0) {
        void *(*volatile call_memcpy)(void *, const void *, size_t) = memcpy;

        call_memcpy((void *)(uintptr_t)copied, data, len);
    } else {
        for (size_t i = 0; i < len; i++)
            copied[i] = ((const char *)data)[i];
    }
    gone = next_write(fd, (void *)(uintptr_t)copied, len);
    free((void *)(uintptr_t)copied);
    return gone;
}
