/*
 * Plants what must not be: a document is copied on its way into its answer. How is said by
 * SHIM_SPOIL: "memcpy", which a shim in front of memcpy() sees, or "loop", which shows
 * only by the place that is sent from.
 */
#include "note.h"

#include <microhttpd.h>

static struct MHD_Response *(*next_create)(size_t, void *, MHD_ContentReaderFreeCallback, void *);

__attribute__((constructor)) static void start(void)
{
    next_function("MHD_create_response_from_buffer_with_free_callback_cls", &next_create);
}

/* What was copied is not freed: the test's program soon ends. */
struct MHD_Response *MHD_create_response_from_buffer_with_free_callback_cls(
    size_t len, void *data, MHD_ContentReaderFreeCallback call, void *user)
{
    const char *how = getenv("SHIM_SPOIL");
    volatile char *copied = how == NULL ? NULL : malloc(len);

    if (copied == NULL)
        return next_create(len, data, call, user);
    if (strcmp(how, "memcpy") == 0) {
        void *(*volatile call_memcpy)(void *, const void *, size_t) = memcpy;

        call_memcpy((void *)(uintptr_t)copied, data, len);
    } else {
        for (size_t i = 0; i < len; i++)
            copied[i] = ((const char *)data)[i];
    }
    return next_create(len, (void *)(uintptr_t)copied, call, user);
}
