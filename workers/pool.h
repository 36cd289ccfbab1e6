/*
 * The pool: a fixed number of threads and one bounded set of queues. Its one big idea: work arrives
 * in groups. A group is a fork and a join: its parts may run on any threads at once, and its last
 * task, if it has one, becomes ready when every part has ended well. A job is a group of slices and
 * a bind; a single task is a group of one part. A group is accepted whole or not at all, and
 * submitting never blocks.
 *
 * Two lanes: urgent goes first, but one pick in POOL_BULK_SHARE is kept for bulk when both wait.
 * Within a lane clients are served in turn, and within a client its groups in turn, one task a
 * turn; a last task that becomes ready is its client's next.
 *
 * Each task completes exactly once: through its done_take, on a worker after it ran, or with
 * ST_CANCELLED on a worker or the watchdog when it is queued and not to be run (its group was
 * cancelled, a part failed, the pool stops); or through its given_up, when its thread hangs past
 * deadline and grace. The last task of a group completes after every part's completion has
 * returned, and the pool touches neither group nor tasks once the final completion of a group has
 * begun (in a group without a last task: once the completion of each of its parts has begun).
 *
 * A part that fails cancels the rest of its group, running parts included. In a group with a last
 * task the failed part's completion has returned before any other task ends because of it; without
 * one that order is open, so ST_CANCELLED must not hide a better reason that comes after it.
 *
 * Lock order: the pool's mutex is the innermost lock. No callback is called under it, so callbacks
 * may take their own locks and may submit and cancel; submit, cancel and status call no callback,
 * so their callers may hold locks that callbacks take. Completions run unwatched: they must not
 * hang.
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
    POOL_NICE_MAX = 19,
    POOL_DEADLINE_MS_MIN = 100, /* of task_deadline_ms and of task_grace_ms */
    POOL_DEADLINE_MS_MAX = 600000,
    POOL_THREADS_GIVEN_UP_MAX = 64,
    POOL_RESTART_PAUSE_MS = 100, /* before a replacement thread that failed to start is retried */
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
     * The memory stays with the hung thread. err is never NULL. */
    void (*given_up)(struct task *task, const struct error *err);

    /* After given_up has returned: called on the hung thread when run() returns after all, to free
     * what was left with it. It may never come to that. It may come before the completions of the
     * group's other tasks, and after pool_stop. */
    void (*late_take)(struct task *task);

    /* The pool's own, from here on. */
    struct task_group *group;
    atomic_bool is_overdue; /* its deadline has passed while it ran */
};

/* Where a group waits (workers/pool_queue.h). */
enum group_place {
    GROUP_NOWHERE,   /* no task of it is ready to be taken */
    GROUP_ON_TURN,   /* the next of its client */
    GROUP_BEHIND,    /* in its client's ring, not the next */
    GROUP_PARKED,    /* its heavy last task waits for another to end */
    GROUP_CANCELLED, /* its queued tasks wait to be completed without running */
};

struct group_link {
    struct task_group *next, *prev;
};

struct task_group {
    /* Set by the owner. The group's memory must last until each of its tasks has completed (and,
     * for a task that was given up, until its late_take). */
    enum pool_lane lane;
    uint64_t client;     /* round-robin key; the same value for all groups of one client */
    struct task **parts; /* parts_count of them, run in this order as threads come free */
    size_t parts_count;  /* 1.. */
    struct task *last;   /* may be NULL; runs if all parts ended ST_OK, else it is cancelled */
    bool last_is_heavy;  /* at most threads-1 (but one at least) heavy last tasks run at once */

    /* The pool's own, from here on. */
    atomic_bool is_cancelled;
    size_t parts_next; /* parts taken; parts_count + 1 when the last task is taken too */
    size_t parts_done; /* parts completed; counted only if there is a last task */
    uint64_t ready_since_ms;
    enum group_place place;
    struct group_link ring; /* the waiting groups of its client, a circle */
    struct group_link list; /* the list that place names */
    struct group_link age;  /* all groups with a task that is ready to run, oldest first */
};

struct pool_config {
    size_t threads;         /* 1..POOL_THREADS_MAX */
    size_t queue_tasks_max; /* tasks accepted and not yet started; 1.. */
    int nice; /* 0..POOL_NICE_MAX: how far worker threads stand below the thread that starts them */
    uint32_t task_deadline_ms, task_grace_ms; /* POOL_DEADLINE_MS_MIN..MAX each */
    size_t threads_given_up_max;              /* 1..POOL_THREADS_GIVEN_UP_MAX */
    /* Each worker's own context, made on its own thread and freed there; both NULL: no context. An
     * error fails pool_start; in a replacement thread it leaves the pool one thread short, and the
     * watchdog tries again after POOL_RESTART_PAUSE_MS. */
    enum status (*context_new)(void *user, void **context, struct error *err);
    void (*context_free)(void *user, void **context);
    void *user; /* must last as long as the pool's memory */
};

struct pool_status {
    size_t threads;            /* alive and not given up */
    size_t busy;               /* in run() now; not those given up */
    size_t queued[POOL_LANES]; /* tasks accepted and not started */
    /* Of the tasks that could run now: for a part since it was submitted, for a last task since its
     * parts have ended. 0 when none waits. */
    uint64_t oldest_wait_ms;
    /* Tasks by outcome since the start; each is counted just before its completion is called. */
    uint64_t done, failed, cancelled, timed_out;
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
 * Errors:  ST_TOO_LARGE  more tasks than queue_tasks_max: it will never fit
 *          ST_BUSY       the queue has no room for all of it now, or the pool stops
 *          In both cases *group is still the caller's and none of its tasks will complete.
 * Threads: any
 */
MUST_USE enum status pool_submit_take(struct pool *pool, struct task_group **group,
                                      struct error *err);

/*
 * Ask a group to end early: its queued tasks complete with ST_CANCELLED without running, soon and
 * on another thread; running ones see task_should_stop(). Once it was accepted a group may be
 * cancelled at any time and more than once, as long as it is alive: a caller that cannot know holds
 * its own lock against the group's last completion, which also holds off the end of pool_stop.
 *
 * Threads: any
 */
void pool_cancel(struct pool *pool, struct task_group *group);

/*
 * What work must ask from time to time, at least once a ticket.
 *
 * Returns: ST_OK, or ST_TIMED_OUT (its deadline has passed) or else ST_CANCELLED (its group was
 *          cancelled, another part failed, or the pool stops at once) with err filled: run() then
 *          returns that status at once
 * Threads: the one that is in run() of this task
 */
MUST_USE enum status task_should_stop(const struct task *task, struct error *err);

/* One consistent view. Threads: any. */
struct pool_status pool_status(struct pool *pool);

enum pool_stop_mode {
    POOL_STOP_DRAIN, /* run what is queued, then stop; as below when no thread is left to run it */
    POOL_STOP_NOW,   /* complete what is queued with ST_CANCELLED, ask running tasks to stop */
};

/*
 * Stop and free the pool. New groups are refused from the first moment; returns when every accepted
 * task has completed (hanging ones are given up in their time) and every thread that was not given
 * up has ended.
 *
 * In:      *pool  NULLed; no thread but those in callbacks may call a function of the pool any more
 * Returns: true when all memory is free. false when a given-up thread is still out: its memory and
 *          the pool's remain until the last such thread comes back, if ever, so the process must
 *          end by _exit after its flushes.
 * Threads: any but the pool's own
 */
MUST_USE bool pool_stop(struct pool **pool, enum pool_stop_mode mode);

#endif
