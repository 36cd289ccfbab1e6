/*
 * Outcomes. A function that can meet a wrong request or a world that fails returns enum status, and
 * puts the sentence for people into a struct error that its caller may leave out. Domain codes know
 * no HTTP and no exit codes; service/ has the one table for each.
 */
#ifndef TICKETPRESS_DOMAIN_STATUS_H
#define TICKETPRESS_DOMAIN_STATUS_H

#define MUST_USE __attribute__((warn_unused_result))

enum status {
    ST_OK,
    ST_INVALID,   /* the input breaks a rule; nothing was done */
    ST_TOO_LARGE, /* the input is over a named limit */
    ST_NOT_FOUND, /* a thing named by the caller does not exist */
    ST_NO_KEY,    /* no signing key of this client is in force */
    ST_BUSY,      /* a bounded queue is full: the same call may work later */
    ST_CANCELLED, /* the owner or a stop cancelled the work before it ended */
    ST_TIMED_OUT, /* the work outlived its deadline */
    ST_NO_MEMORY, /* an allocation failed */
    ST_IO,        /* a file or the operating system failed */
    ST_LIBRARY,   /* a library failed in a way that valid input cannot cause */
    ST_COUNT
};

enum {
    ERROR_TEXT_BYTES_MAX = 512 /* with the terminating zero; longer texts are cut at a character */
};

struct error {
    enum status status;              /* ST_OK while empty */
    char text[ERROR_TEXT_BYTES_MAX]; /* UTF-8, one line, no full stop at its end */
};

/*
 * Note a failure and hand its status back, so that one line can do both.
 *
 * In:      err     may be NULL: then only the status is returned
 *          status  not ST_OK
 * Returns: status
 * Threads: any, on distinct errors
 */
__attribute__((format(printf, 3, 4))) enum status error_set(struct error *err, enum status status,
                                                            const char *format, ...);

/* The stable lower-case name of a status, such as "timed_out", for logs and reports. */
const char *status_name(enum status status);

#endif
