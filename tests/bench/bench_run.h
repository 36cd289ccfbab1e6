/*
 * What every program of the benchmark has in common: its arguments, one warm-up, the repeated
 * measurement and the one JSON line that bench.py reads.
 *
 *     PROGRAM BATCH.json KEYFILE OUT.pdf [--repeat N] [--embedded] [--workers N]
 *
 * Timed, in process and by the wall: from the first byte of the batch parsed to the last byte of
 * OUT.pdf written and the file closed, with all set-up that a document needs (fonts, event key).
 * Not timed: reading BATCH.json and KEYFILE, and what a process sets up once (prepare).
 */
#ifndef TICKETPRESS_TESTS_BENCH_BENCH_RUN_H
#define TICKETPRESS_TESTS_BENCH_BENCH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BENCH_RUNS_MAX = 100000,
    BENCH_WORKERS_MAX = 256,
};

struct bench_job {
    char *batch_json; /* batch_json_len bytes, zero-terminated */
    size_t batch_json_len;
    const char *keys_path;
    const char *out_path;
    size_t workers;   /* 1..BENCH_WORKERS_MAX */
    bool is_embedded; /* draw with embedded fonts instead of base-14 ones */
};

struct bench_program {
    const char *name;
    bool takes_embedded, takes_workers; /* whether it has the option of that name */
    /* Once, before the clock starts; returns what run and finish get as context. May be NULL. */
    void *(*prepare)(const struct bench_job *job);
    /* The timed work. Returns the count of tickets in the document. */
    size_t (*run)(void *context, const struct bench_job *job);
    void (*finish)(void *context); /* may be NULL */
};

/* A benchmark has no use for a run that went wrong: say what did, and end the process. */
static inline void bench_require(bool is_ok, const char *what)
{
    if (!is_ok) {
        fprintf(stderr, "bench: %s failed\n", what);
        _exit(EXIT_FAILURE);
    }
}

/*
 * The whole of main: parse the arguments, warm up once, measure, print the line.
 *
 * Returns: the exit code; 2 when the arguments are wrong
 */
int bench_main(const struct bench_program *program, int argc, char **argv);

/* A whole file as zero-terminated text, from malloc; ends the process when it cannot be read. */
char *bench_file_read(const char *path, size_t *len);

#endif
