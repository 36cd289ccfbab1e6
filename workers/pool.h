/*
 * The pool: a fixed number of threads and one bounded set of queues. Its one big idea: work arrives
 * in groups. A group is a fork and a join: its parts may run on any threads at once, and its last
 * task, if it has one, becomes ready when every part has ended well. A job is a group of slices and
 * a bind; a single task is a group of one part. A group is accepted whole or not at all, and
 * submitting never blocks.
 *
 * Two lanes: urgent goes first, but one pick in POOL_BULK_SHARE is kept for bulk when both wait.
 * Within a lane clients are served in turn, and within a client its groups in turn, one task a
 * turn.
 *
 * Each task completes exactly once: through its done_take, on a worker after it ran, or with
 * ST_CANCELLED on whatever thread finds it queued and not to be run (its group was cancelled, a
 * part failed, the pool stops); or through its given_up, when its thread hangs past deadline and
 * grace. The last task of a group completes after every part's completion has returned, and the
 * pool touches neither group nor tasks once the final completion of a group has begun.
 *
 * Lock order: the pool's mutex is the only lock here. No callback is called under it, so callbacks
 * may take their own locks and may submit and cancel.
 */
#ifndef TICKETPRESS_WORKERS_POOL_H
#define TICKETPRESS_WORKERS_POOL_H

#include "domain/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct task;
struct task_group;

enum pool_lane { POOL_URGENT, POOL_BULK, POOL_LANES };

enum {
    POOL_THREADS_MAX = 256,
    POOL_BULK_SHARE = 8,
    POOL_DEADLINE_MS_MIN = 100, /* task_deadline_ms and task_grace_ms, upper end 600,000 */
    POOL_DEADLINE_MS_MAX = 600000,
};

struct task {
    /* Set by the owner before the group is submitted, never changed after. */

    /* Does the work on a worker thread. context is that worker's own (see pool_config). A status
     * other than ST_OK fails the whole group; err says why. */
    enum status (*run)(struct task *task, void *context, struct error *err);

    /* The completion after run() returned, or instead of it. The task's memory is the owner's
     * again. err is NULL with ST_OK. */
    void (*done_take)(struct task *task, enum status status, const struct error *err);

    /* The completion of a task whose thread is given up (ST_TIMED_OUT), called by the watchdog
     * while run() still hangs: it passes the status on and touches nothing that run() may touch.
     * The memory stays with the hung thread. */
    void (*given_up)(struct task *task, const struct error *err);

    /* After given_up only: called on the hung thread when run() returns after all, to free what was
     * left with it. It may never come to that. */
    void (*late_take)(struct task *task);

    /* The pool's own, from here on. */
    struct task_group *group;
    struct task *next;
};

struct task_group {
    /* Set by the owner. The group's memory must last until each of its tasks has completed (and,
     * for a task that was given up, until its late_take). */
    enum pool_lane lane;
    uint64_t client;     /* round-robin key; the same value for all groups of one client */
    struct task **parts; /* parts_count of them, run in this order as threads come free */
    size_t parts_count;  /* 1.. */
    struct task
        *last; /* may be NULL; runs when all parts ended ST_OK, else completes ST_CANCELLED */
    bool last_is_heavy; /* at most threads-1 (but one at least) heavy last tasks run at once */

    /* The pool's own, from here on. */
    atomic_bool is_cancelled;
    size_t parts_next, parts_done;
    bool has_failed;
    struct task_group *next;
    void *queue;
};

struct pool_config {
    size_t threads;         /* 1..POOL_THREADS_MAX */
    size_t queue_tasks_max; /* tasks accepted and not yet started; 1.. */
    int nice;               /* 0..19: how far worker threads stand below their process */
    uint32_t task_deadline_ms, task_grace_ms;
    size_t threads_given_up_max; /* 1..64 */
    /* Each worker's own context, made on its own thread and freed there. NULL: no context. An error
     * fails pool_start, or, in a replacement thread, counts the thread as lost and is tried again
     * at the watchdog's next round. */
    enum status (*context_new)(void *user, void **context, struct error *err);
    void (*context_free)(void *user, void **context);
    void *user;
};

struct pool_status {
    size_t threads;                              /* alive and not given up */
    size_t busy;                                 /* running a task now */
    size_t queued[POOL_LANES];                   /* tasks accepted and not started */
    uint64_t oldest_wait_ms;                     /* of the queued; 0 when none */
    uint64_t done, failed, cancelled, timed_out; /* tasks completed, by outcome, since the start */
    uint64_t threads_given_up;
    bool is_over_given_up_max; /* more than threads_given_up_max were given up: drain */
};

/*
 * Start the threads.
 *
 * Errors:  ST_INVALID    a member of config is out of its range; err names it
 *          ST_NO_MEMORY, ST_IO  no memory, no thread
 *          any status of context_new
 *          Nothing is left behind in each case.
 */
MUST_USE enum status pool_start(const struct pool_config *config, struct pool **pool,
                                struct error *err);

/*
 * Hand a group to the pool, which owns its tasks until each has completed.
 *
 * In:      *group  filled in; NULLed on success
 * Errors:  ST_BUSY       the queue has no room for all of it, or the pool stops; *group is still
 * the caller's and none of its tasks will complete Threads: any
 */
MUST_USE enum status pool_submit_take(struct pool *pool, struct task_group **group,
                                      struct error *err);

/*
 * Ask a group to end early: queued tasks complete with ST_CANCELLED without running, before this
 * returns or soon after; running ones see task_should_stop(). The group must still be alive: a
 * caller that cannot know holds its own lock against its last completion.
 */
void pool_cancel(struct pool *pool, struct task_group *group);

/*
 * What work must ask from time to time, at least once a ticket.
 *
 * Returns: ST_OK, or ST_CANCELLED (its group was cancelled or the pool stops) or ST_TIMED_OUT (its
 *          deadline has passed) with err filled: run() then returns that status at once
 */
MUST_USE enum status task_should_stop(const struct task *task, struct error *err);

struct pool_status pool_status(struct pool *pool);

enum pool_stop_mode {
    POOL_STOP_DRAIN, /* run what is queued, then stop */
    POOL_STOP_NOW,   /* complete what is queued with ST_CANCELLED, ask running tasks to stop */
};

/*
 * Stop and free the pool. New groups are refused from the first moment; returns when every accepted
 * task has completed and every thread that was not given up has ended.
 *
 * Returns: true when all memory is free. false when a given-up thread is still out: its memory and
 * the pool's remain, and the process must end by _exit after its flushes.
 */
MUST_USE bool pool_stop(struct pool **pool, enum pool_stop_mode mode);

#endif
