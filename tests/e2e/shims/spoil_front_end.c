/*
 * Plants what must not be: the front end's thread computes, or rests, before each of its answers.
 * SHIM_SPOIL says which: "compute" or "rest".
 */
#include "note.h"

#include <microhttpd.h>
#include <qrencode.h>
#include <time.h>

enum { REST_MS = 120 };

static enum MHD_Result (*next_queue_response)(struct MHD_Connection *, unsigned int,
                                              struct MHD_Response *);

__attribute__((constructor)) static void start(void)
{
    next_function("MHD_queue_response", &next_queue_response);
}

static void spoil(const char *how)
{
    if (strcmp(how, "compute") == 0) {
        static const unsigned char TEXT[] = "planted";

        QRcode_free(QRcode_encodeData(sizeof TEXT - 1, TEXT, 0, QR_ECLEVEL_M));
    } else {
        struct timespec const rest = {.tv_nsec = REST_MS * 1000000L};

        nanosleep(&rest, NULL);
    }
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned int status,
                                   struct MHD_Response *response)
{
    const char *how = getenv("SHIM_SPOIL");

    if (how != NULL)
        spoil(how);
    return next_queue_response(connection, status, response);
}
