/*
 * Watches where the bytes of documents are. A document is what libharu's cross reference writer has
 * filled, in a row, behind the header "%PDF-": its place is noted when the bind is over. From then
 * on every copy out of it is noted ("copied"), and every piece that goes out of the process:
 * from its place ("out"), or from anywhere else, if a document begins there ("stray").
 *
 * What is copied during the bind, such as a digest's last odd bytes, is the bind's own business.
 */
#include "note.h"

#include <hpdf.h>
#include <hpdf_objects.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { DOCUMENTS_MAX = 64 };

/* A place is taken over when its document was freed. */
static struct place {
    _Atomic uintptr_t begin; /* 0: none */
    _Atomic size_t len;
    atomic_uint number;
} places[DOCUMENTS_MAX];
static atomic_uint places_used; /* places[0..places_used) have been taken at some time */
static atomic_uint documents;   /* counted from 1 */

/* What the thread's bind has filled so far. */
static _Thread_local uintptr_t filled_begin;
static _Thread_local size_t filled_len;

static int notes_fd;
static HPDF_STATUS (*next_write_xref)(HPDF_Xref, HPDF_Stream, HPDF_Encrypt);
static void (*next_free)(void *);
static ssize_t (*next_send)(int, const void *, size_t, int);
static ssize_t (*next_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*next_writev)(int, const struct iovec *, int);
static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_sendfile)(int, int, off_t *, size_t);

__attribute__((constructor)) static void start(void)
{
    notes_fd = note_open("watch_documents.jsonl");
    next_function("HPDF_Xref_WriteToStream", &next_write_xref);
    next_function("send", &next_send);
    next_function("sendmsg", &next_sendmsg);
    next_function("writev", &next_writev);
    next_function("write", &next_write);
    next_function("sendfile64", &next_sendfile);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the headers' names differ */

/* ---- places ---- */

/* The place that has a byte of [begin, begin + len); NULL: none. */
static struct place *place_of(uintptr_t begin, size_t len)
{
    for (unsigned i = 0; i < atomic_load(&places_used); i++) {
        uintptr_t const at = atomic_load(&places[i].begin);

        if (at != 0 && begin < at + atomic_load(&places[i].len) && at < begin + len)
            return &places[i];
    }
    return NULL;
}

static void place_add(uintptr_t begin, size_t len)
{
    unsigned const number = atomic_fetch_add(&documents, 1) + 1;

    note(notes_fd, "{\"event\": \"bind\", \"document\": %u, \"len\": %zu}\n", number, len);
    for (unsigned i = 0; i < DOCUMENTS_MAX; i++) {
        uintptr_t none = 0;
        unsigned used = atomic_load(&places_used);

        if (!atomic_compare_exchange_strong(&places[i].begin, &none, begin))
            continue;
        atomic_store(&places[i].number, number);
        atomic_store(&places[i].len, len);
        while (used < i + 1 && !atomic_compare_exchange_weak(&places_used, &used, i + 1))
            continue;
        return;
    }
    abort(); /* more documents at once than a test should need */
}

void free(void *pointer)
{
    for (unsigned i = 0; i < atomic_load(&places_used); i++)
        if (pointer != NULL && atomic_load(&places[i].begin) == (uintptr_t)pointer) {
            atomic_store(&places[i].len, 0);
            atomic_store(&places[i].begin, 0);
        }
    if (next_free == NULL)
        next_function("free", &next_free);
    next_free(pointer);
}

HPDF_STATUS HPDF_Xref_WriteToStream(HPDF_Xref xref, HPDF_Stream stream, HPDF_Encrypt encrypt)
{
    HPDF_STATUS const status = next_write_xref(xref, stream, encrypt);

    if (filled_begin != 0)
        place_add(filled_begin, filled_len);
    filled_begin = 0;
    return status;
}

/* ---- copies ---- */

static bool is_header(const char *bytes, size_t len)
{
    return len >= 5 && bytes[0] == '%' && bytes[1] == 'P' && bytes[2] == 'D' && bytes[3] == 'F' &&
           bytes[4] == '-';
}

static void note_copy(const char *call, uintptr_t to, const void *from, size_t len)
{
    struct place *place = len == 0 ? NULL : place_of((uintptr_t)from, len);

    if (place != NULL) {
        note(notes_fd,
             "{\"event\": \"copied\", \"document\": %u, \"call\": \"%s\", \"len\": %zu}\n",
             atomic_load(&place->number), call, len);
    } else if (is_header(from, len)) {
        filled_begin = to;
        filled_len = len;
    } else if (filled_begin != 0 && to == filled_begin + filled_len) {
        filled_len += len;
    }
}

/* Volatile, or the compiler makes a call of memcpy() or memmove() out of the loop. */
static void *copy(const char *call, void *to, const void *from, size_t len)
{
    volatile unsigned char *dst = to;
    const volatile unsigned char *src = from;

    note_copy(call, (uintptr_t)to, from, len);
    if ((uintptr_t)to - (uintptr_t)from >= len) { /* forwards, unless dst begins inside of src */
        for (size_t i = 0; i < len; i++)
            dst[i] = src[i];
    } else {
        for (size_t i = len; i > 0; i--)
            dst[i - 1] = src[i - 1];
    }
    return to;
}

void *__memcpy_chk(void *to, const void *from, size_t len, size_t room);
void *__memmove_chk(void *to, const void *from, size_t len, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t len, size_t room);

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    return copy("memcpy", to, from, len);
}

void *memmove(void *to, const void *from, size_t len)
{
    return copy("memmove", to, from, len);
}

void *mempcpy(void *restrict to, const void *restrict from, size_t len)
{
    return (char *)copy("mempcpy", to, from, len) + len;
}

void *__memcpy_chk(void *to, const void *from, size_t len, size_t room)
{
    if (len > room)
        abort();
    return copy("memcpy", to, from, len);
}

void *__memmove_chk(void *to, const void *from, size_t len, size_t room)
{
    if (len > room)
        abort();
    return copy("memmove", to, from, len);
}

void *__mempcpy_chk(void *to, const void *from, size_t len, size_t room)
{
    if (len > room)
        abort();
    return (char *)copy("mempcpy", to, from, len) + len;
}

/* ---- ways out ---- */

/* What is read of the piece is what has gone out of it: not more than was there. */
static void note_out(const char *call, const void *piece, size_t len)
{
    struct place *place = len == 0 ? NULL : place_of((uintptr_t)piece, len);

    if (place != NULL)
        note(notes_fd,
             "{\"event\": \"out\", \"document\": %u, \"call\": \"%s\", \"offset\": %td, "
             "\"len\": %zu}\n",
             atomic_load(&place->number), call,
             (ptrdiff_t)((uintptr_t)piece - atomic_load(&place->begin)), len);
    else if (is_header(piece, len))
        note(notes_fd, "{\"event\": \"stray\", \"call\": \"%s\", \"len\": %zu}\n", call, len);
}

static void note_pieces(const char *call, const struct iovec *pieces, size_t count, ssize_t gone)
{
    for (size_t i = 0; i < count && gone > 0; i++) {
        size_t const len = (ssize_t)pieces[i].iov_len < gone ? pieces[i].iov_len : (size_t)gone;

        note_out(call, pieces[i].iov_base, len);
        gone -= (ssize_t)len;
    }
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    struct iovec const piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    ssize_t const gone = next_send(fd, data, len, flags);

    note_pieces("send", &piece, 1, gone);
    return gone;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t const gone = next_sendmsg(fd, message, flags);

    note_pieces("sendmsg", message->msg_iov, message->msg_iovlen, gone);
    return gone;
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    ssize_t const gone = next_writev(fd, pieces, count);

    note_pieces("writev", pieces, (size_t)count, gone);
    return gone;
}

ssize_t write(int fd, const void *data, size_t len)
{
    struct iovec const piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    ssize_t const gone = next_write(fd, data, len);

    note_pieces("write", &piece, 1, gone);
    return gone;
}

/* From a file: no buffer to look at. */
ssize_t sendfile64(int to, int from, off_t *offset, size_t len)
{
    ssize_t const gone = next_sendfile(to, from, offset, len);

    if (gone > 0)
        note(notes_fd, "{\"event\": \"file\", \"call\": \"sendfile\", \"len\": %zd}\n", gone);
    return gone;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t len)
{
    return sendfile64(to, from, offset, len);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
