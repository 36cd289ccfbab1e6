#include "service/log.h"

#include "domain/bytes.h"
#include "domain/civil_time.h"
#include "service/json_text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)LOG_LINE_BYTES_MAX <= PIPE_BUF, "a line is atomic in a pipe");

enum { EVENT_BYTES_MAX = 64 };

static const char CUT_TAIL[] = ",\"is_cut\":true}\n";

const char *const LOG_LEVEL_NAMES[LOG_LEVELS + 1] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
};

static struct {
    int fd;     /* -1: none */
    int own_fd; /* the same pipe, opened anew as non-blocking; -1: there is none */
    bool is_socket;
    enum log_level level; /* all so far are set before the threads start */

    atomic_bool is_torn;       /* the last line lacks its end */
    atomic_uint_fast64_t lost; /* since the last line that got through */
    atomic_uint_fast64_t lost_in_all;
} sink = {.fd = -1, .own_fd = -1};

/* ---- fields ---- */

struct log_field log_text(const char *name, struct text text)
{
    return (struct log_field){.name = name, .kind = LOG_FIELD_TEXT, .value.text = text};
}

struct log_field log_chars(const char *name, const char *chars)
{
    return log_text(name, (struct text){.data = chars, .len = strlen(chars)});
}

struct log_field log_integer(const char *name, int64_t integer)
{
    return (struct log_field){.name = name, .kind = LOG_FIELD_INTEGER, .value.integer = integer};
}

struct log_field log_number(const char *name, double number)
{
    return (struct log_field){.name = name, .kind = LOG_FIELD_NUMBER, .value.number = number};
}

/* ---- where lines go ---- */

/* A file description of our own can be non-blocking without the other processes' being so. */
static int open_pipe_anew(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void log_start(int fd, enum log_level level)
{
    struct stat stat = {0};

    assert(fd >= 0);
    assert(level < LOG_LEVELS);
    assert(sink.fd == -1);
    if (fstat(fd, &stat) == 0 && S_ISFIFO(stat.st_mode))
        sink.own_fd = open_pipe_anew(fd);
    sink.is_socket = S_ISSOCK(stat.st_mode);
    sink.level = level;
    sink.fd = sink.own_fd >= 0 ? sink.own_fd : fd;
}

void log_stop(void)
{
    if (sink.own_fd >= 0)
        close(sink.own_fd);
    sink.own_fd = -1;
    sink.fd = -1;
}

bool log_is_on(enum log_level level)
{
    return sink.fd >= 0 && level >= sink.level;
}

uint64_t log_lines_lost(void)
{
    return atomic_load(&sink.lost_in_all);
}

static ssize_t write_some(const uint8_t *data, size_t len)
{
    struct pollfd room = {.fd = sink.fd, .events = POLLOUT};

    if (sink.is_socket)
        return send(sink.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (poll(&room, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return write(sink.fd, data, len);
}

static bool write_all(const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t const n = write_some(data + done, len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (done > 0 && done < len)
        atomic_store(&sink.is_torn, true);
    return done == len;
}

/* ---- a line ---- */

static int64_t now_ms(void)
{
    struct timespec now = {0};
    int64_t ms;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return ms < CIVIL_TIME_MS_MAX ? ms : CIVIL_TIME_MS_MAX;
}

static void put_head(struct json_text *json, enum log_level level, const char *event)
{
    char time[CIVIL_TIME_MS_CHARS + 1];

    civil_time_write_ms(now_ms(), time);
    json_text_name(json, "time");
    json_text_chars(json, time);
    json_text_name(json, "level");
    json_text_chars(json, LOG_LEVEL_NAMES[level]);
    json_text_name(json, "event");
    json_text_chars(json, event);
}

static struct text text_cut(struct text text)
{
    size_t len = LOG_TEXT_BYTES_MAX;

    if (text.len <= LOG_TEXT_BYTES_MAX)
        return text;
    while (len > LOG_TEXT_BYTES_MAX - 3 && ((unsigned char)text.data[len] & 0xC0) == 0x80)
        len--;
    return (struct text){.data = text.data, .len = len};
}

static void put_field(struct json_text *json, const struct log_field *field)
{
    json_text_name(json, field->name);
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        json_text_string(json, text_cut(field->value.text));
        break;
    case LOG_FIELD_INTEGER:
        json_text_integer(json, field->value.integer);
        break;
    case LOG_FIELD_NUMBER:
        json_text_number(json, field->value.number);
        break;
    }
}

/* A field that makes the line too long is taken back; shorter ones behind it may fit. */
static void put_fields(struct json_text *json, const struct log_field *fields, size_t count)
{
    bool is_cut = false;

    for (size_t i = 0; i < count; i++) {
        struct json_text const before = *json;
        size_t const len = json->out->len;

        put_field(json, &fields[i]);
        if (json->status == ST_OK && json->out->len + strlen(CUT_TAIL) > LOG_LINE_BYTES_MAX) {
            *json = before;
            json->out->len = len;
            is_cut = true;
        }
    }
    if (is_cut) {
        json_text_name(json, "is_cut");
        json_text_boolean(json, true);
    }
}

struct line {
    enum log_level level;
    const char *event;
    const struct log_field *fields;
    size_t fields_count;
    uint64_t lost;
    bool is_after_torn; /* begins with a line feed, which ends the torn line */
};

static enum status line_write(const struct line *line, struct bytes *out)
{
    struct json_text json = {.out = out};
    enum status st = ST_OK;

    if (line->is_after_torn)
        st = bytes_append(out, "\n", 1, NULL);
    json_text_begin_object(&json);
    put_head(&json, line->level, line->event);
    if (line->lost > 0) {
        json_text_name(&json, "lines_lost");
        json_text_unsigned(&json, line->lost);
    }
    put_fields(&json, line->fields, line->fields_count);
    json_text_end_object(&json);
    if (st == ST_OK)
        st = json_text_finish(&json, NULL);
    if (st == ST_OK)
        st = bytes_append(out, "\n", 1, NULL);
    assert(out->len <= LOG_LINE_BYTES_MAX);
    return st;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t fields_count)
{
    int const caller_errno = errno;
    struct bytes out = {0};
    struct line line = {
        .level = level, .event = event, .fields = fields, .fields_count = fields_count};

    assert(level < LOG_LEVELS);
    assert(strlen(event) <= EVENT_BYTES_MAX);
    if (!log_is_on(level))
        return;
    line.lost = atomic_exchange(&sink.lost, 0);
    line.is_after_torn = atomic_exchange(&sink.is_torn, false);
    if (line_write(&line, &out) != ST_OK || !write_all(out.data, out.len)) {
        atomic_fetch_add(&sink.lost, line.lost + 1);
        atomic_fetch_add(&sink.lost_in_all, 1);
        if (line.is_after_torn)
            atomic_store(&sink.is_torn, true);
    }
    bytes_clear(&out);
    errno = caller_errno;
}
