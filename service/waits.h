/*
 * Parked requests that wait for a job: small batches for their document, long polls for a change.
 * Each is answered exactly once: by the job's change, by its deadline, or because its client has
 * gone.
 */
#ifndef TICKETPRESS_SERVICE_WAITS_H
#define TICKETPRESS_SERVICE_WAITS_H

#include "domain/status.h"
#include "service/http.h"
#include "service/job_table.h"

#include <stddef.h>
#include <stdint.h>

enum wait_outcome {
    WAIT_CHANGED,   /* the job did what was waited for, or is gone */
    WAIT_LATE,      /* the deadline came first */
    WAIT_PEER_GONE, /* nobody is there to answer; the exchange must be answered all the same */
    WAIT_STOPPED,   /* waits_stop */
};

struct wait_order {
    struct http_exchange *exchange;
    int64_t deadline_ms; /* by CLOCK_MONOTONIC */
    /* Answers the exchange, once, on the thread that found the outcome. */
    void (*answer)(void *user, struct http_exchange *exchange, enum wait_outcome outcome,
                   const char *job_id);
    void *user;
};

struct waits;
struct wait;

MUST_USE enum status waits_new(struct job_table *jobs, struct waits **waits, struct error *err);
/* No wait may be left. */
void waits_free(struct waits **waits);

/*
 * Prepare to wait for a job that is about to be admitted: its waiter goes into
 * job_table_admit_move, after whose success the wait is nobody's but its own.
 *
 * Errors: ST_NO_MEMORY
 */
MUST_USE enum status wait_new(struct waits *waits, const struct wait_order *order,
                              struct wait **wait, struct job_waiter **waiter, struct error *err);

/* The job was not admitted: forget the wait without an answer, and NULL it. */
void wait_discard(struct wait **wait);

/*
 * Wait for a job that is there to leave a state (for_end: to end). Answers at once when it has.
 *
 * Errors: ST_NO_MEMORY; the exchange is still to be answered
 */
MUST_USE enum status waits_for_change(struct waits *waits, const struct wait_order *order,
                                      const char *job_id, enum job_state state, bool for_end,
                                      struct error *err);

/* Let go those whose deadline has come, and, where looks_at_peers, those whose client has gone. */
void waits_tick(struct waits *waits, int64_t now_ms, bool looks_at_peers);

/* Let go all of them. */
void waits_stop(struct waits *waits);

/* Threads: any. */
size_t waits_count(struct waits *waits);

#endif
