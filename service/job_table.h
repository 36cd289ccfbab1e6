/*
 * Jobs: what is promised, what runs, who waits. It joins the store (records that last) with the
 * press (work under way): a job is put before it is promised, submitted, followed to its end, and
 * its document kept until it expires. Every state change wakes those who wait for it, exactly once
 * each.
 *
 * A job is queued until a worker takes up its first ticket, then running.
 *
 * Lock order: the table's mutex before a press job's and the pool's; never held while the store
 * works, while a waiter is woken or while a document goes.
 */
#ifndef TICKETPRESS_SERVICE_JOB_TABLE_H
#define TICKETPRESS_SERVICE_JOB_TABLE_H

#include "domain/batch.h"
#include "domain/status.h"
#include "service/job_store.h"
#include "workers/press.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_table;

struct job_table_config {
    struct press *press;      /* the table takes a reference of its own */
    struct job_store *store;  /* borrowed */
    size_t queue_tickets_max; /* of jobs that have not ended; 1.. */
    size_t render_bytes_max;  /* their memory, at JOB_TICKET_BYTES each; JOB_TICKET_BYTES.. */
    int64_t job_ttl_ms;       /* 1.. */
    /* Called with each job's end, on any thread, before its waiters: for metrics and the log. The
     * record has no problems. status is why it ended so, also when a cancelled one had met another
     * trouble first. May be NULL. */
    void (*ended)(void *user, const struct job_record *record, enum status status);
    void *user;
};

enum {
    JOB_TICKET_BYTES = 15 * 1024, /* measured while binding */
    JOB_FETCH_MS = 60000,         /* in which a client that polls has come for its document */
};

/* Errors: ST_NO_MEMORY. */
MUST_USE enum status job_table_new(const struct job_table_config *config, struct job_table **table,
                                   struct error *err);
/* To be called when the pool has stopped, so that all jobs have ended; nobody waits any more. */
void job_table_free(struct job_table **table);

/* Another press for jobs from now on: *press changes places with the one of before, references and
 * all. */
void job_table_swap_press(struct job_table *table, struct press **press);

/* The press of now, with a reference for the caller. */
struct press *job_table_press_ref(struct job_table *table);

struct job_order {
    const char *client; /* 0..JOB_CLIENT_BYTES_MAX bytes; "" where there are no clients */
    enum pool_lane lane;
    uint64_t client_key; /* round-robin */
    struct event_key key;
    struct bytes problems; /* JSON text of the array of what on_invalid "skip" left out, or empty;
                              moved on success */
};

/* Somebody who wants to know of a job's next change. Its memory must last until wake is called or
 * job_table_unwait returns true. */
struct job_waiter {
    /* Called once, on any thread, when what was waited for has come or the job is gone; never when
     * job_table_unwait has returned true. It may view, delete and wait. */
    void (*wake)(struct job_waiter *waiter);
    void *user;
    /* the table's own */
    struct job_waiter *next, *prev;
    char id[JOB_ID_CHARS + 1];
    bool is_waiting;
    bool is_for_end;
};

/*
 * Admit a batch as a job: durable when this returns ST_OK.
 *
 * In:      batch   moved on success
 *          waiter  NULL, or waits for the end from the start, so that no change is missed; it may
 * be woken, and gone, before this returns Out:     id Errors:  ST_INVALID    an unknown layout;
 * problems has its pointer ST_TOO_LARGE  it will never fit; err names the setting ST_BUSY queue,
 * memory budget, pool or store is full, or the table drains ST_IO, ST_NO_MEMORY, ST_LIBRARY In all
 * these cases nothing was admitted, and waiter is not woken
 */
MUST_USE enum status job_table_admit_move(struct job_table *table, struct job_order *order,
                                          struct batch *batch, struct job_waiter *waiter,
                                          char id[JOB_ID_CHARS + 1], struct problems *problems,
                                          struct error *err);

struct job_view {
    struct job_record record; /* a copy; cleared by job_record_clear */
    size_t tickets_done;      /* by now */
};

/* The job as it is now, in a zeroed view. A job of another client is not found; client NULL: any
 * client's. Errors: ST_NOT_FOUND, ST_NO_MEMORY, ST_IO; *view is left zeroed. */
MUST_USE enum status job_table_view(struct job_table *table, const char *client, const char *id,
                                    struct job_view *view, struct error *err);

/* Newest first; count of them in views, which has room for query->limit, zeroed. Less than limit
 * only if there are no more. Errors: ST_NO_MEMORY, ST_IO; *count is 0. */
MUST_USE enum status job_table_list(struct job_table *table, const struct job_list_query *query,
                                    struct job_view *views, size_t *count, struct error *err);

/* Whether a job of this client (NULL: any) has expired or had to make room (410 rather than 404).
 */
bool job_table_was_here(struct job_table *table, const char *client, const char *id);

/*
 * Wait for the job to leave `state`, which it must have been seen in; for_end: for its end.
 *
 * Returns: false when that has happened already, or there is no such job: wake is not called. true:
 *          it may have been called already
 */
bool job_table_wait(struct job_table *table, const char *id, enum job_state state, bool for_end,
                    struct job_waiter *waiter);

/* Stop waiting. Returns: true: wake was not and will not be called; false: it was, or is being, or
 * will be at once: only for a waiter whose memory lasts beyond that. */
bool job_table_unwait(struct job_table *table, struct job_waiter *waiter);

/*
 * Cancel a job that has not ended: it ends soon, and as JOB_CANCELLED, whatever it was about to end
 * as. Erase one that has. client NULL: any client's. Errors: ST_NOT_FOUND (also for other clients'
 * jobs), ST_NO_MEMORY, ST_IO.
 */
MUST_USE enum status job_table_delete(struct job_table *table, const char *client, const char *id,
                                      struct error *err);

/* Note that the job's document was fetched (see documents_unfetched). */
void job_table_fetched(struct job_table *table, const char *id);

/* Take tickets into the budget for a batch that is rendered without a job. Errors: ST_TOO_LARGE,
 * ST_BUSY, as for a job. */
MUST_USE enum status job_table_reserve(struct job_table *table, size_t tickets, struct error *err);
void job_table_release(struct job_table *table, size_t tickets);

struct job_table_status {
    size_t jobs_running; /* admitted and not ended */
    size_t jobs_unsaved; /* ended, but the store was out of reach: tried again by each sweep */
    /* Of jobs that succeeded within JOB_FETCH_MS, and nobody has fetched or erased them so far. */
    size_t documents_unfetched;
    size_t tickets_queued; /* of jobs that have not ended, and reserved ones */
    size_t tickets_max;    /* of them at once: the tighter one of the two limits */
    double tickets_per_s;  /* finished, over the last seconds of work; 0 while unknown */
    size_t waiters;
};
struct job_table_status job_table_status(struct job_table *table);

/* Seconds until `tickets` more will find room, from the measured rate and from what each job has
 * left (see drain.h); 1..3600. */
unsigned job_table_retry_after_s(struct job_table *table, size_t tickets);

/* Refuse new jobs and reservations from now on. */
void job_table_drain(struct job_table *table);

/* Cancel every job that runs (for a stop at once). */
void job_table_cancel_all(struct job_table *table);

/* Let expired jobs go, and save what could not be saved; from time to time. */
void job_table_sweep(struct job_table *table, int64_t now_ms);

#endif
