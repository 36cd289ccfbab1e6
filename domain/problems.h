/*
 * What is wrong with a batch or was noticed while it was rendered: each entry names its place by a
 * JSON Pointer (RFC 6901), the rule by a stable code and the particulars by a sentence. The first
 * PROBLEMS_LISTED_MAX are kept, the rest only counted.
 */
#ifndef TICKETPRESS_DOMAIN_PROBLEMS_H
#define TICKETPRESS_DOMAIN_PROBLEMS_H

#include "domain/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    PROBLEMS_LISTED_MAX = 100,
    PROBLEM_DETAIL_BYTES_MAX = 500, /* longer sentences are cut at a character */
};

struct problem {
    struct text pointer; /* "" is the whole document */
    const char *code;    /* snake_case, from the program's own constants, such as "too_long" */
    struct text detail;  /* UTF-8, one line */
};

struct problems {
    struct arena arena;
    struct problem listed[PROBLEMS_LISTED_MAX];
    size_t listed_count; /* 0..PROBLEMS_LISTED_MAX */
    size_t count;        /* all that were noted, listed or not */
    bool is_incomplete;  /* an entry or its text was lost for want of memory */
};

/* Free the entries; the struct is left zeroed and may be used again. */
void problems_clear(struct problems *problems);

/*
 * Note one problem. Never fails: what cannot be kept is counted. pointer and the formatted detail
 * are copied; code must be a constant.
 */
__attribute__((format(printf, 4, 5))) void problems_add(struct problems *problems,
                                                        const char *pointer, const char *code,
                                                        const char *format, ...);

/* The same with the arguments of a caller that has a format of its own. */
__attribute__((format(printf, 4, 0))) void problems_add_v(struct problems *problems,
                                                          const char *pointer, const char *code,
                                                          const char *format, va_list args);

/* Append copies of all of src's entries, and its count, to dst. */
void problems_append_copy(struct problems *dst, const struct problems *src);

#endif
