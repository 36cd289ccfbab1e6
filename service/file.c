#include "service/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES_MIN = 64 * 1024, /* room asked for before each read of an ordinary file */
    TEMPORARY_TRIES_MAX = 100,
    TEMPORARY_NAME_BYTES_MAX = 64,
};

static enum status io_error(const char *path, struct error *err)
{
    enum status const st = errno == ENOENT ? ST_NOT_FOUND : ST_IO;

    return error_set(err, st, "%s: %s", path, strerror(errno));
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* ---- reading ---- */

/* Read until the end or until bytes is full. */
static enum status fill(int fd, const char *path, struct bytes *bytes, bool *is_at_end,
                        struct error *err)
{
    while (bytes->len < bytes->capacity) {
        ssize_t const n = read(fd, bytes->data + bytes->len, bytes->capacity - bytes->len);

        if (n == 0) {
            *is_at_end = true;
            return ST_OK;
        }
        if (n > 0)
            bytes->len += (size_t)n;
        else if (errno != EINTR)
            return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    }
    return ST_OK;
}

static enum status read_to_end(int fd, const char *path, size_t bytes_max, size_t room,
                               struct bytes *bytes, struct error *err)
{
    bool is_at_end = false;
    enum status st = ST_OK;

    while (st == ST_OK && !is_at_end && bytes->len <= bytes_max) {
        st = bytes_reserve(bytes, room, err);
        if (st == ST_OK)
            st = fill(fd, path, bytes, &is_at_end, err);
    }
    if (st == ST_OK && bytes->len > bytes_max)
        st = error_set(err, ST_TOO_LARGE, "%s: more than %zu bytes", path, bytes_max);
    return st;
}

static enum status open_to_read(const char *path, int flags, int *fd, struct stat *info,
                                struct error *err)
{
    *fd = is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | flags);
    if (*fd < 0 || fstat(*fd, info) != 0)
        return io_error(path, err);
    return ST_OK;
}

static void close_read(int fd)
{
    if (fd > STDERR_FILENO)
        close(fd);
}

/* What an open file holds. */
static enum status read_open(int fd, const char *path, const struct stat *info, size_t bytes_max,
                             struct bytes *bytes, struct error *err)
{
    size_t room = READ_BYTES_MIN;

    assert(bytes_max > 0 && bytes_max <= SIZE_MAX / 4);
    /* One byte more than the file says, so that a single read can see its end. */
    if (S_ISREG(info->st_mode) && info->st_size > 0)
        room = (size_t)info->st_size < bytes_max ? (size_t)info->st_size + 1 : bytes_max + 1;
    return read_to_end(fd, path, bytes_max, room, bytes, err);
}

enum status file_read(const char *path, size_t bytes_max, struct bytes *bytes, struct error *err)
{
    struct stat info;
    int fd = -1;
    enum status st = open_to_read(path, 0, &fd, &info, err);

    *bytes = (struct bytes){0};
    if (st == ST_OK)
        st = read_open(fd, path, &info, bytes_max, bytes, err);
    if (st != ST_OK)
        bytes_clear(bytes);
    close_read(fd);
    return st;
}

enum status file_read_ordinary(const char *path, size_t bytes_max, struct bytes *bytes,
                               struct error *err)
{
    struct stat info;
    int fd = -1;
    enum status st = open_to_read(path, O_NONBLOCK, &fd, &info, err); /* of a pipe: at once */

    *bytes = (struct bytes){0};
    if (st == ST_OK && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        st = error_set(err, ST_IO, "%s: Not an ordinary file", path);
    if (st == ST_OK)
        st = read_open(fd, path, &info, bytes_max, bytes, err);
    if (st != ST_OK)
        bytes_clear(bytes);
    close_read(fd);
    return st;
}

static enum status rights_check(const char *path, const struct stat *info, struct error *err)
{
    if (S_ISREG(info->st_mode) && (info->st_mode & S_IRWXO) != 0)
        return error_set(err, ST_INVALID,
                         "%s: holds keys, but its mode %04o is open to everyone (chmod o= would "
                         "close it)",
                         path, (unsigned)info->st_mode & 07777);
    return ST_OK;
}

enum status file_read_secret(const char *path, size_t bytes_max, struct bytes *bytes,
                             struct error *err)
{
    struct stat info;
    int fd = -1;
    enum status st = open_to_read(path, 0, &fd, &info, err);

    assert(bytes_max > 0 && bytes_max <= SIZE_MAX / 4);
    *bytes = (struct bytes){0};
    if (st == ST_OK)
        st = rights_check(path, &info, err);
    /* All the room at once: growing would leave copies behind. */
    if (st == ST_OK)
        st = read_to_end(fd, path, bytes_max, bytes_max + 1, bytes, err);
    if (st != ST_OK)
        file_secret_clear(bytes);
    close_read(fd);
    return st;
}

enum status file_make_private(int fd, struct error *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0 ||
        (S_ISREG(info.st_mode) && fchmod(fd, info.st_mode & (S_IRUSR | S_IWUSR)) != 0))
        return error_set(err, ST_IO, "keeping a file of keys from others: %s", strerror(errno));
    return ST_OK;
}

void file_secret_clear(struct bytes *bytes)
{
    if (bytes->data != NULL)
        explicit_bzero(bytes->data, bytes->capacity);
    bytes_clear(bytes);
}

/* ---- writing ---- */

static enum status write_all(int fd, const char *path, const struct bytes *document,
                             struct error *err)
{
    size_t at = 0;

    while (at < document->len) {
        ssize_t const n = write(fd, document->data + at, document->len - at);

        if (n >= 0)
            at += (size_t)n;
        else if (errno != EINTR)
            return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    }
    return ST_OK;
}

static enum status write_in_place(const char *path, const struct bytes *document, struct error *err)
{
    int const fd = open(path, O_WRONLY | O_CLOEXEC);
    enum status st;

    if (fd < 0)
        return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    st = write_all(fd, path, document, err);
    if (close(fd) != 0 && st == ST_OK)
        st = error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    return st;
}

/* The directory that path is in, open for the calls that work relative to one. */
static enum status directory_open(const char *path, int *fd, struct error *err)
{
    const char *slash = strrchr(path, '/');
    size_t const len = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *name = len == 0 ? strdup(".") : strndup(path, len);

    if (name == NULL)
        return error_set(err, ST_NO_MEMORY, "the name of a directory");
    *fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(name);
    if (*fd < 0)
        return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    return ST_OK;
}

static const char *name_in_directory(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* Names are tried in turn, because a process that was killed may have left some. */
static int temporary_create(int directory, char name[TEMPORARY_NAME_BYTES_MAX])
{
    int fd = -1;

    for (int i = 0; fd < 0 && i < TEMPORARY_TRIES_MAX; i++) {
        snprintf(name, TEMPORARY_NAME_BYTES_MAX, ".ticketpress-%ld-%d.tmp", (long)getpid(), i);
        fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static enum status write_durably(int fd, const char *path, const struct bytes *document,
                                 struct error *err)
{
    enum status st = write_all(fd, path, document, err);

    if (st == ST_OK && fsync(fd) != 0)
        st = error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    if (close(fd) != 0 && st == ST_OK)
        st = error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    return st;
}

static enum status replace(int directory, const char *path, const struct bytes *document,
                           struct error *err)
{
    char temporary[TEMPORARY_NAME_BYTES_MAX];
    int const fd = temporary_create(directory, temporary);
    enum status st;

    if (fd < 0)
        return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    st = write_durably(fd, path, document, err);
    if (st == ST_OK && renameat(directory, temporary, directory, name_in_directory(path)) != 0)
        st = error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    if (st != ST_OK)
        unlinkat(directory, temporary, 0);
    if (st == ST_OK && fsync(directory) != 0)
        st = error_set(err, ST_IO, "%s: %s", path, strerror(errno));
    return st;
}

enum status file_write(const char *path, const struct bytes *document, struct error *err)
{
    struct stat info;
    int directory = -1;
    enum status st;

    if (is_standard(path))
        return write_all(STDOUT_FILENO, "standard output", document, err);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_in_place(path, document, err);
    st = directory_open(path, &directory, err);
    if (st != ST_OK)
        return st;
    st = replace(directory, path, document, err);
    close(directory);
    return st;
}
