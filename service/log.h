/*
 * The log: one JSON object a line.
 *
 *     {"time":"2027-03-21T19:30:00.250Z","level":"info","event":"request","status":200}
 *
 * Each line is given to the system whole, in one call and with at most LOG_LINE_BYTES_MAX bytes, so
 * that lines of several threads and processes do not mix in a pipe. Logging never fails and never
 * waits for whoever reads the log: a line that a pipe, a socket or a terminal has no room for is
 * lost, and the next one that gets through says how many were. (A regular file is written to as
 * fast as its file system allows; so is a pipe that cannot be opened anew through /proc, in the
 * rare case that two threads race for its last room. The descriptor given need not be
 * non-blocking, and is not made so: it may be shared with other processes.)
 *
 * Callers never log a name, a token, a key, a batch's text or anything else of a person; ids of
 * requests, jobs and clients are what a line goes by.
 */
#ifndef TICKETPRESS_SERVICE_LOG_H
#define TICKETPRESS_SERVICE_LOG_H

#include "domain/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_LINE_BYTES_MAX = 4096, /* with its line feed: what a pipe takes whole (PIPE_BUF) */
    LOG_TEXT_BYTES_MAX = 1024, /* of one value; longer ones are cut at a character */
};

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVELS };

/* "debug" to "error", and NULL behind them. */
extern const char *const LOG_LEVEL_NAMES[LOG_LEVELS + 1];

struct log_field {
    const char *name; /* snake_case constant; not time, level, event, lines_lost or is_cut */
    enum log_field_kind { LOG_FIELD_TEXT, LOG_FIELD_INTEGER, LOG_FIELD_NUMBER } kind;
    union {
        struct text text; /* any bytes, borrowed for the call; see json_text_string */
        int64_t integer;
        double number;
    } value;
};

struct log_field log_text(const char *name, struct text text);
struct log_field log_chars(const char *name, const char *chars);
struct log_field log_integer(const char *name, int64_t integer);
struct log_field log_number(const char *name, double number);

/* Some fields and their count, as log_write takes them. */
#define LOG_FIELDS(...)                                                                            \
    (const struct log_field[]){__VA_ARGS__},                                                       \
        sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field)

/*
 * Log lines of `level` and above to a descriptor, which stays the caller's. Before it, and after
 * log_stop, lines go nowhere. SIGPIPE must be ignored.
 *
 * Threads: before others log, after they have ended
 */
void log_start(int fd, enum log_level level);
void log_stop(void);

/* Whether lines of this level are written: for callers whose fields cost something. */
bool log_is_on(enum log_level level);

/*
 * Write a line.
 *
 * In:      event   snake_case constant of at most 64 bytes
 *          fields  in their order behind the event; those that do not fit into the line are left
 *                  out, and "is_cut":true says so. NULL with a count of 0
 * Threads: any. errno is kept.
 */
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t fields_count);

/* Lines lost so far: no room, no memory, or the system refused. Threads: any. */
uint64_t log_lines_lost(void);

#endif
