/*
 * Holds the pool's threads: who comes to encode a QR symbol waits while the test has the file
 * "hold" locked. It notes who is held.
 */
#include "note.h"

#include <pthread.h>
#include <qrencode.h>
#include <sys/file.h>

enum { THREAD_NAME_BYTES = 16 };

static int notes_fd;
static char hold_path[NOTE_PATH_BYTES];
static QRcode *(*next_encode)(int, const unsigned char *, int, QRecLevel);

__attribute__((constructor)) static void start(void)
{
    notes_fd = note_open("hold_symbols.jsonl");
    shim_path(hold_path, "hold");
    next_function("QRcode_encodeData", &next_encode);
}

/* A lock belongs to its open file: each call opens its own. */
static void wait_for_release(void)
{
    int const fd = open(hold_path, O_RDONLY | O_CLOEXEC);
    char name[THREAD_NAME_BYTES];

    if (fd < 0)
        abort();
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
        if (pthread_getname_np(pthread_self(), name, sizeof name) != 0)
            abort();
        note(notes_fd, "{\"event\": \"held\", \"thread\": \"%s\"}\n", name);
        if (flock(fd, LOCK_SH) != 0)
            abort();
    }
    close(fd);
}

QRcode *QRcode_encodeData(int size, const unsigned char *data, int version, QRecLevel level)
{
    wait_for_release();
    return next_encode(size, data, version, level);
}
