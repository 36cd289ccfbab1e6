#include "service/development_keys.h"

#include "service/config_json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum status path_error(const char *path, struct error *err)
{
    return error_set(err, ST_IO, "%s: %s", path, strerror(errno));
}

static enum status print_ring(int fd, const char *path, struct error *err)
{
    struct key_ring ring = {0};
    FILE *out = fdopen(fd, "w");
    enum status st;

    if (out == NULL) {
        close(fd);
        return path_error(path, err);
    }
    st = key_ring_extend(&ring, "*", time(NULL), err);
    if (st == ST_OK)
        st = key_ring_print(out, &ring, err);
    key_ring_clear(&ring);
    if (st == ST_OK && (fflush(out) != 0 || fsync(fd) != 0))
        st = path_error(path, err);
    if (fclose(out) != 0 && st == ST_OK)
        st = path_error(path, err);
    return st;
}

/*
 * Written beside and linked to its name, so that nobody ever reads half a ring, and of two
 * processes that start at once both use the first one's.
 */
static enum status make_ring(const char *path, struct error *err)
{
    char beside[PATH_MAX];
    int fd;
    enum status st;

    if (snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid()) >= (int)sizeof beside)
        return error_set(err, ST_INVALID, "%s: the path is too long", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return path_error(beside, err);
    st = print_ring(fd, beside, err);
    if (st == ST_OK && link(beside, path) != 0 && errno != EEXIST)
        st = path_error(path, err);
    unlink(beside);
    return st;
}

enum status development_keys_read(const char *data, struct key_ring *ring, struct error *err)
{
    char path[PATH_MAX];
    enum status st = ST_OK;

    if (snprintf(path, sizeof path, "%s/" DEVELOPMENT_KEYS_FILE, data) >= (int)sizeof path)
        return error_set(err, ST_INVALID, "%s: the path is too long", data);
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return path_error(data, err);
    if (access(path, F_OK) != 0)
        st = make_ring(path, err);
    if (st == ST_OK)
        st = key_ring_read(path, ring, err);
    if (st == ST_OK)
        fprintf(stderr, "warning: no --signing-keys: using the development key in %s\n", path);
    return st;
}
