/*
 * What shims have in common: one line of JSON a note, appended to the file SHIM.jsonl in the folder
 * that SHIM_FOLDER names, and the function that a shim stands in front of.
 */
#ifndef TICKETPRESS_TESTS_E2E_SHIMS_NOTE_H
#define TICKETPRESS_TESTS_E2E_SHIMS_NOTE_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOTE_BYTES_MAX = 256, NOTE_PATH_BYTES = 512 };

static inline void shim_path(char path[NOTE_PATH_BYTES], const char *name)
{
    const char *folder = getenv("SHIM_FOLDER");

    if (folder == NULL || snprintf(path, NOTE_PATH_BYTES, "%s/%s", folder, name) >= NOTE_PATH_BYTES)
        abort();
}

static inline int note_open(const char *name)
{
    char path[NOTE_PATH_BYTES];
    int fd;

    shim_path(path, name);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    return fd;
}

/* One line, in one write, which no shim of write() sees. */
__attribute__((format(printf, 2, 3))) static inline void note(int fd, const char *format, ...)
{
    char line[NOTE_BYTES_MAX];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len < 0 || len >= (int)sizeof line || syscall(SYS_write, fd, line, (size_t)len) != len)
        abort();
}

/* Store the next function of this name behind a pointer to it. */
static inline void next_function(const char *name, void *pointer)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        abort();
    memcpy(pointer, &found, sizeof found); /* ISO C has no cast from data to functions */
}

#endif
