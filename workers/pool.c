#include "workers/pool.h"

#include "domain/must.h"
#include "workers/pool_queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    POOL_MAGIC = 0x506f6f6c,
    WORKER_MAGIC = 0x576f726b,
    THREAD_NAME_BYTES = 16, /* with the terminating zero, by Linux */
};
#define NEVER_MS UINT64_MAX

enum worker_state {
    WORKER_STARTING,
    WORKER_READY,
    WORKER_FAILED,  /* could not make its context; it ends */
    WORKER_TELLING, /* given up, and given_up() has not returned yet */
    WORKER_OUT,     /* given up; it owns itself */
};

struct worker {
    unsigned magic;
    struct pool *pool;
    size_t slot;
    pthread_t thread; /* of the thread that starts and joins it */
    void *context;    /* of its own thread */

    /* Guarded by the pool's mutex. */
    enum worker_state state;
    struct task *task; /* in run(); stays when the worker is given up */
    uint64_t deadline_ms;
};

struct pool {
    unsigned magic;
    struct pool_config config;
    pthread_t watchdog;
    pthread_mutex_t mutex;
    pthread_cond_t work;    /* for workers: there may be a task to take, or the end */
    pthread_cond_t watch;   /* for the watchdog: something to do before watch_until_ms */
    pthread_cond_t settled; /* for the starter and the stopper: starting or tasks_open is 0 */
    pthread_cond_t told;    /* for a late worker: its given_up() has returned */

    /* Guarded by the mutex. */
    struct pool_queue queue;
    struct pool_status counts; /* threads, busy, done and the like; the rest is computed */
    size_t tasks_open;         /* accepted, and their completions have not returned */
    size_t starting;           /* workers on their way to ready or failed */
    size_t threads_out;        /* given up and not back */
    uint64_t watch_until_ms;   /* how long the watchdog sleeps */
    uint64_t restart_ms;       /* no replacement before; 0 when the last one went well */
    struct error start_error;  /* of the first worker that failed to start */
    bool is_stopping;          /* refuse groups */
    bool is_over;              /* nothing is open any more: threads end */
    bool is_abandoned;         /* pool_stop has returned: the last thread out frees the pool */

    /* config.threads of them, NULL for a thread that is missing. Filled by the starter, then
     * changed under the mutex by the watchdog, then read by the stopper after the watchdog's end.
     */
    struct worker *slots[];
};

static uint64_t clock_ms(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct pool *pool_from(void *arg)
{
    struct pool *pool = arg;

    assert(pool != NULL);
    assert(pool->magic == POOL_MAGIC);
    return pool;
}

static struct worker *worker_from(void *arg)
{
    struct worker *worker = arg;

    assert(worker != NULL);
    assert(worker->magic == WORKER_MAGIC);
    return worker;
}

static void lock(struct pool *pool)
{
    MUST(pthread_mutex_lock(&pool->mutex));
}

static void unlock(struct pool *pool)
{
    MUST(pthread_mutex_unlock(&pool->mutex));
}

/* ---- Completions ---- */

/* Wake who can take what has just become ready: `tasks` of them, to run or to be cancelled. */
static void wake_locked(struct pool *pool, size_t tasks)
{
    if (tasks == 1)
        MUST(pthread_cond_signal(&pool->work));
    else if (tasks > 1)
        MUST(pthread_cond_broadcast(&pool->work));
    if (pool->queue.cancelled.first != NULL)
        MUST(pthread_cond_signal(&pool->watch));
}

static void count_locked(struct pool *pool, enum status status)
{
    switch (status) {
    case ST_OK:
        pool->counts.done++;
        break;
    case ST_CANCELLED:
        pool->counts.cancelled++;
        break;
    case ST_TIMED_OUT:
        pool->counts.timed_out++;
        break;
    default:
        pool->counts.failed++;
    }
}

static void part_ended_locked(struct pool *pool, struct task_group *group, bool is_ok)
{
    wake_locked(pool, pool_queue_part_ended(&pool->queue, group, is_ok, clock_ms()));
}

/*
 * Complete a task through `tell`, which is its done_take or stands for its given_up; the mutex is
 * let go for that call. The group is touched after the call only where a last task that has not
 * completed yet keeps it alive, and before it otherwise.
 */
static void complete_locked(struct pool *pool, struct task *task, enum status status,
                            const struct error *err,
                            void (*tell)(struct task *, enum status, const struct error *))
{
    struct task_group *group = task->group;
    bool is_part = task != group->last;
    bool is_kept_by_last = is_part && group->last != NULL;

    count_locked(pool, status);
    if (is_part && !is_kept_by_last)
        part_ended_locked(pool, group, status == ST_OK);
    unlock(pool);
    tell(task, status, status == ST_OK ? NULL : err);
    lock(pool);
    if (is_kept_by_last)
        part_ended_locked(pool, group, status == ST_OK);
    assert(pool->tasks_open > 0);
    if (--pool->tasks_open == 0)
        MUST(pthread_cond_broadcast(&pool->settled));
}

/* Complete one task that is not to be run. False: there is none. */
static bool complete_cancelled_locked(struct pool *pool)
{
    struct task *task = pool_queue_take_cancelled(&pool->queue);
    struct error err;

    if (task == NULL)
        return false;
    error_set(&err, ST_CANCELLED, "cancelled before it started");
    complete_locked(pool, task, ST_CANCELLED, &err, task->done_take);
    return true;
}

static void cancel_all_locked(struct pool *pool)
{
    pool_queue_cancel_all(&pool->queue);
    for (size_t i = 0; i < pool->config.threads; i++)
        if (pool->slots[i] != NULL && pool->slots[i]->task != NULL)
            (void)pool_queue_cancel(&pool->queue, pool->slots[i]->task->group);
    wake_locked(pool, pool->queue.lanes[POOL_URGENT].tasks + pool->queue.lanes[POOL_BULK].tasks);
}

/* ---- Workers ---- */

/* Run one task. Afterwards the worker may have been given up. */
static void run_locked(struct worker *worker, struct task *task)
{
    struct pool *pool = worker->pool;
    struct error err = {0};
    enum status st;

    worker->task = task;
    worker->deadline_ms = clock_ms() + pool->config.task_deadline_ms;
    pool->counts.busy++;
    if (worker->deadline_ms < pool->watch_until_ms)
        MUST(pthread_cond_signal(&pool->watch));
    unlock(pool);
    st = task->run(task, worker->context, &err);
    assert(st < ST_COUNT);
    if (st != ST_OK && err.status != st)
        error_set(&err, st, "the task gave no reason");
    lock(pool);
    if (worker->state != WORKER_READY)
        return;
    worker->task = NULL;
    pool->counts.busy--;
    wake_locked(pool, pool_queue_run_ended(&pool->queue, task));
    complete_locked(pool, task, st, &err, task->done_take);
}

/* Serve until the pool is over or the worker is given up. */
static void serve_locked(struct worker *worker)
{
    struct pool *pool = worker->pool;

    while (worker->state == WORKER_READY) {
        struct task *task;

        if (complete_cancelled_locked(pool))
            continue;
        task = pool_queue_take(&pool->queue);
        if (task != NULL)
            run_locked(worker, task);
        else if (pool->is_over)
            return;
        else
            MUST(pthread_cond_wait(&pool->work, &pool->mutex));
    }
}

/* Linux keeps a nice value for each thread, setpriority(2), "C library/kernel differences". */
static enum status lower_priority(int nice, struct error *err)
{
    int now;

    errno = 0;
    now = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (now == -1 && errno != 0)
        return error_set(err, ST_IO, "the priority of a thread: %s", strerror(errno));
    if (now + nice > POOL_NICE_MAX)
        nice = POOL_NICE_MAX - now;
    if (nice > 0 && setpriority(PRIO_PROCESS, (id_t)gettid(), now + nice) != 0)
        return error_set(err, ST_IO, "the priority of a thread: %s", strerror(errno));
    return ST_OK;
}

/* What a worker's thread does for itself before it serves. On error there is nothing to undo. */
static enum status worker_prepare(struct worker *worker, struct error *err)
{
    const struct pool_config *config = &worker->pool->config;
    char name[THREAD_NAME_BYTES];
    enum status st;

    assert(worker->slot < POOL_THREADS_MAX);
    (void)snprintf(name, sizeof name, "press-%u", (unsigned)worker->slot);
    MUST(pthread_setname_np(pthread_self(), name));
    st = lower_priority(config->nice, err);
    if (st == ST_OK && config->context_new != NULL)
        st = config->context_new(config->user, &worker->context, err);
    if (st != ST_OK && err->status != st)
        error_set(err, st, "a thread's context: no reason given");
    return st;
}

static void started_locked(struct worker *worker, const struct error *err)
{
    struct pool *pool = worker->pool;

    if (err->status == ST_OK) {
        worker->state = WORKER_READY;
        pool->counts.threads++;
        pool->restart_ms = 0;
    } else {
        worker->state = WORKER_FAILED;
        pool->restart_ms = clock_ms() + POOL_RESTART_PAUSE_MS;
        if (pool->start_error.status == ST_OK)
            pool->start_error = *err;
        MUST(pthread_cond_signal(&pool->watch));
    }
    if (--pool->starting == 0)
        MUST(pthread_cond_broadcast(&pool->settled));
}

static void pool_delete(struct pool *pool)
{
    MUST(pthread_cond_destroy(&pool->told));
    MUST(pthread_cond_destroy(&pool->settled));
    MUST(pthread_cond_destroy(&pool->watch));
    MUST(pthread_cond_destroy(&pool->work));
    MUST(pthread_mutex_destroy(&pool->mutex));
    free(pool);
}

/* A given-up thread has come back and freed what was left with it; it is detached. */
static void leave_late(struct worker *worker)
{
    struct pool *pool = worker->pool;
    bool is_last_of_abandoned;

    free(worker);
    lock(pool);
    pool->threads_out--;
    is_last_of_abandoned = pool->is_abandoned && pool->threads_out == 0;
    unlock(pool);
    if (is_last_of_abandoned)
        pool_delete(pool);
}

static void *worker_main(void *arg)
{
    struct worker *worker = worker_from(arg);
    struct pool *pool = worker->pool;
    struct error err = {0};
    enum status st = worker_prepare(worker, &err);
    bool is_late;

    lock(pool);
    started_locked(worker, &err);
    serve_locked(worker);
    while (worker->state == WORKER_TELLING)
        MUST(pthread_cond_wait(&pool->told, &pool->mutex));
    is_late = worker->state == WORKER_OUT;
    unlock(pool);
    if (is_late)
        worker->task->late_take(worker->task);
    if (st == ST_OK && pool->config.context_free != NULL)
        pool->config.context_free(pool->config.user, &worker->context);
    if (is_late)
        leave_late(worker);
    return NULL;
}

/* Start a thread on which no signal of the process is handled: those are the main thread's. Faults
 * stay deliverable, so that they are reported where they happen. */
static int thread_start(pthread_t *thread, void *(*thread_main)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigset_t before;
    int code;

    MUST(sigfillset(&blocked));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        MUST(sigdelset(&blocked, faults[i]));
    MUST(pthread_sigmask(SIG_SETMASK, &blocked, &before));
    code = pthread_create(thread, NULL, thread_main, arg);
    MUST(pthread_sigmask(SIG_SETMASK, &before, NULL));
    return code;
}

static void slot_set(struct pool *pool, size_t slot, struct worker *worker)
{
    lock(pool);
    pool->slots[slot] = worker;
    pool->starting += worker != NULL;
    unlock(pool);
}

/* EAGAIN says that a resource is short: memory for the stack, or threads of the system. */
static enum status thread_error(int code, struct error *err)
{
    return error_set(err, code == EAGAIN ? ST_NO_MEMORY : ST_IO, "a thread cannot be started: %s",
                     strerror(code));
}

/* Start a worker in an empty slot; it says through started_locked how that went. */
static enum status worker_start(struct pool *pool, size_t slot, struct error *err)
{
    struct worker *worker = calloc(1, sizeof *worker);
    int code;

    if (worker == NULL)
        return error_set(err, ST_NO_MEMORY, "no memory for a thread");
    worker->magic = WORKER_MAGIC;
    worker->pool = pool;
    worker->slot = slot;
    slot_set(pool, slot, worker);
    code = thread_start(&worker->thread, worker_main, worker);
    if (code == 0)
        return ST_OK;
    lock(pool);
    pool->slots[slot] = NULL;
    pool->starting--;
    unlock(pool);
    free(worker);
    return thread_error(code, err);
}

/* Wait for a worker's end and free it. It was not given up. */
static void worker_join(struct worker *worker)
{
    MUST(pthread_join(worker->thread, NULL));
    free(worker);
}

/* ---- The watchdog ---- */

/* The form of a completion, for a task that is given up. */
static void tell_given_up(struct task *task, enum status status, const struct error *err)
{
    assert(status == ST_TIMED_OUT);
    task->given_up(task, err);
}

/* Part from a worker whose task hangs. From here on its thread owns itself, the task's memory and
 * its context; it waits, should it come back now, until given_up() has returned. */
static void give_up_locked(struct pool *pool, struct worker *worker)
{
    struct task *task = worker->task;
    struct error err;

    pool->slots[worker->slot] = NULL;
    worker->state = WORKER_TELLING;
    MUST(pthread_detach(worker->thread));
    pool->threads_out++;
    pool->counts.threads--;
    pool->counts.busy--;
    pool->counts.threads_given_up++;
    wake_locked(pool, pool_queue_run_ended(&pool->queue, task));
    error_set(&err, ST_TIMED_OUT, "the task did not end within %u ms and its thread is given up",
              (unsigned)(pool->config.task_deadline_ms + pool->config.task_grace_ms));
    complete_locked(pool, task, ST_TIMED_OUT, &err, tell_given_up);
    worker->state = WORKER_OUT;
    MUST(pthread_cond_broadcast(&pool->told));
}

/* Mark tasks that are past their deadline. Returns a worker that is past its grace too, or NULL;
 * then *next_ms is when to look again. */
static struct worker *find_hung_locked(struct pool *pool, uint64_t now_ms, uint64_t *next_ms)
{
    for (size_t i = 0; i < pool->config.threads; i++) {
        struct worker *worker = pool->slots[i];
        uint64_t due_ms;

        if (worker == NULL || worker->task == NULL)
            continue;
        due_ms = worker->deadline_ms;
        if (now_ms >= due_ms) {
            atomic_store(&worker->task->is_overdue, true);
            due_ms += pool->config.task_grace_ms;
        }
        if (now_ms >= due_ms)
            return worker;
        if (due_ms < *next_ms)
            *next_ms = due_ms;
    }
    return NULL;
}

static bool is_missing(const struct worker *worker)
{
    return worker == NULL || worker->state == WORKER_FAILED;
}

/* A slot without a worker, or config.threads. */
static size_t find_missing_locked(const struct pool *pool)
{
    size_t slot = 0;

    while (slot < pool->config.threads && !is_missing(pool->slots[slot]))
        slot++;
    return slot;
}

static bool is_deserted_locked(const struct pool *pool)
{
    return pool->counts.threads == 0 && pool->starting == 0;
}

/* Put a fresh worker into a slot; the mutex is let go meanwhile. */
static void replace_locked(struct pool *pool, size_t slot)
{
    struct worker *failed = pool->slots[slot];
    enum status st;

    pool->slots[slot] = NULL;
    unlock(pool);
    if (failed != NULL)
        worker_join(failed);
    st = worker_start(pool, slot, NULL);
    lock(pool);
    if (st != ST_OK)
        pool->restart_ms = clock_ms() + POOL_RESTART_PAUSE_MS;
}

/* Replace what is missing when its time has come. False: nothing to be done before *next_ms. */
static bool restore_strength_locked(struct pool *pool, uint64_t now_ms, uint64_t *next_ms)
{
    size_t slot = find_missing_locked(pool);

    if (slot == pool->config.threads)
        return false;
    if (now_ms >= pool->restart_ms) {
        replace_locked(pool, slot);
        return true;
    }
    /* A stop that drains must not wait for threads that the system does not give. */
    if (pool->is_stopping && is_deserted_locked(pool) && !pool->queue.is_cancelling) {
        cancel_all_locked(pool);
        return true;
    }
    if (pool->restart_ms < *next_ms)
        *next_ms = pool->restart_ms;
    return false;
}

static void watch_until_locked(struct pool *pool, uint64_t until_ms)
{
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    int code;

    pool->watch_until_ms = until_ms;
    if (until_ms == NEVER_MS)
        code = pthread_cond_wait(&pool->watch, &pool->mutex);
    else
        code = pthread_cond_timedwait(&pool->watch, &pool->mutex, &until);
    assert(code == 0 || code == ETIMEDOUT);
}

static void *watchdog_main(void *arg)
{
    struct pool *pool = pool_from(arg);

    MUST(pthread_setname_np(pthread_self(), "watchdog"));
    lock(pool);
    while (!pool->is_over) {
        uint64_t now_ms = clock_ms();
        uint64_t next_ms = NEVER_MS;
        struct worker *hung = find_hung_locked(pool, now_ms, &next_ms);

        if (hung != NULL)
            give_up_locked(pool, hung);
        else if (!complete_cancelled_locked(pool) &&
                 !restore_strength_locked(pool, now_ms, &next_ms))
            watch_until_locked(pool, next_ms);
    }
    unlock(pool);
    return NULL;
}

/* ---- Start and stop ---- */

static enum status check_range(const char *name, int64_t value, int64_t min, int64_t max,
                               struct error *err)
{
    if (value >= min && value <= max)
        return ST_OK;
    return error_set(err, ST_INVALID, "%s: %lld is not within %lld..%lld", name, (long long)value,
                     (long long)min, (long long)max);
}

static int64_t clamp_size(size_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static enum status config_check(const struct pool_config *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value, min, max;
    } rows[] = {
        {"threads", clamp_size(config->threads), 1, POOL_THREADS_MAX},
        {"queue_tasks_max", clamp_size(config->queue_tasks_max), 1, INT64_MAX},
        {"nice", config->nice, 0, POOL_NICE_MAX},
        {"task_deadline_ms", config->task_deadline_ms, POOL_DEADLINE_MS_MIN, POOL_DEADLINE_MS_MAX},
        {"task_grace_ms", config->task_grace_ms, POOL_DEADLINE_MS_MIN, POOL_DEADLINE_MS_MAX},
        {"threads_given_up_max", clamp_size(config->threads_given_up_max), 1,
         POOL_THREADS_GIVEN_UP_MAX},
    };
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof rows / sizeof *rows; i++)
        st = check_range(rows[i].name, rows[i].value, rows[i].min, rows[i].max, err);
    return st;
}

static struct pool *pool_new(const struct pool_config *config)
{
    struct pool *pool = calloc(1, sizeof *pool + config->threads * sizeof(struct worker *));
    pthread_condattr_t monotonic;

    if (pool == NULL)
        return NULL;
    pool->magic = POOL_MAGIC;
    pool->config = *config;
    pool->watch_until_ms = NEVER_MS;
    pool_queue_init(&pool->queue, config->queue_tasks_max, config->threads);
    MUST(pthread_mutex_init(&pool->mutex, NULL));
    MUST(pthread_condattr_init(&monotonic));
    MUST(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC));
    MUST(pthread_cond_init(&pool->work, NULL));
    MUST(pthread_cond_init(&pool->watch, &monotonic));
    MUST(pthread_cond_init(&pool->settled, NULL));
    MUST(pthread_cond_init(&pool->told, NULL));
    MUST(pthread_condattr_destroy(&monotonic));
    return pool;
}

static enum status start_workers(struct pool *pool, struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < pool->config.threads; i++)
        st = worker_start(pool, i, err);
    lock(pool);
    while (pool->starting > 0)
        MUST(pthread_cond_wait(&pool->settled, &pool->mutex));
    if (st == ST_OK && pool->start_error.status != ST_OK)
        st = error_set(err, pool->start_error.status, "%s", pool->start_error.text);
    unlock(pool);
    return st;
}

static enum status start_watchdog(struct pool *pool, struct error *err)
{
    int code = thread_start(&pool->watchdog, watchdog_main, pool);

    return code == 0 ? ST_OK : thread_error(code, err);
}

/* No task is open: let all threads go. */
static void end_threads(struct pool *pool, bool has_watchdog)
{
    lock(pool);
    pool->is_over = true;
    MUST(pthread_cond_broadcast(&pool->work));
    MUST(pthread_cond_signal(&pool->watch));
    unlock(pool);
    if (has_watchdog)
        MUST(pthread_join(pool->watchdog, NULL));
    for (size_t i = 0; i < pool->config.threads; i++)
        if (pool->slots[i] != NULL)
            worker_join(pool->slots[i]);
}

enum status pool_start(const struct pool_config *config, struct pool **pool, struct error *err)
{
    enum status st = config_check(config, err);
    struct pool *made;

    assert(pool != NULL);
    assert((config->context_new == NULL) == (config->context_free == NULL));
    if (st != ST_OK)
        return st;
    made = pool_new(config);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "no memory for the pool");
    st = start_workers(made, err);
    if (st == ST_OK)
        st = start_watchdog(made, err);
    if (st != ST_OK) {
        end_threads(made, false);
        pool_delete(made);
        return st;
    }
    *pool = made;
    return ST_OK;
}

bool pool_stop(struct pool **pool, enum pool_stop_mode mode)
{
    struct pool *stopped = pool_from(*pool);
    bool is_all_back;

    *pool = NULL;
    lock(stopped);
    assert(!stopped->is_stopping);
    stopped->is_stopping = true;
    if (mode == POOL_STOP_NOW)
        cancel_all_locked(stopped);
    MUST(pthread_cond_signal(&stopped->watch));
    while (stopped->tasks_open > 0)
        MUST(pthread_cond_wait(&stopped->settled, &stopped->mutex));
    unlock(stopped);
    end_threads(stopped, true);
    lock(stopped);
    is_all_back = stopped->threads_out == 0;
    stopped->is_abandoned = !is_all_back;
    unlock(stopped);
    if (is_all_back)
        pool_delete(stopped);
    return is_all_back;
}

/* ---- Groups ---- */

static void task_adopt(struct task *task, struct task_group *group)
{
    assert(task->run != NULL);
    assert(task->done_take != NULL);
    assert(task->given_up != NULL);
    assert(task->late_take != NULL);
    task->group = group;
    atomic_init(&task->is_overdue, false);
}

/* Reset what is the pool's own in a group and its tasks. */
static void group_adopt(struct task_group *group)
{
    assert(group->lane < POOL_LANES);
    assert(group->parts_count > 0);
    atomic_init(&group->is_cancelled, false);
    group->parts_next = 0;
    group->parts_done = 0;
    group->place = GROUP_NOWHERE;
    for (size_t i = 0; i < group->parts_count; i++)
        task_adopt(group->parts[i], group);
    if (group->last != NULL)
        task_adopt(group->last, group);
}

enum status pool_submit_take(struct pool *pool, struct task_group **group, struct error *err)
{
    struct task_group *taken = *group;
    enum status st;

    group_adopt(taken);
    lock(pool);
    if (pool->is_stopping)
        st = error_set(err, ST_BUSY, "the pool stops");
    else
        st = pool_queue_put(&pool->queue, taken, clock_ms(), err);
    if (st == ST_OK) {
        size_t tasks = taken->parts_count + (taken->last != NULL);

        pool->tasks_open += tasks;
        wake_locked(pool, tasks);
        *group = NULL;
    }
    unlock(pool);
    return st;
}

void pool_cancel(struct pool *pool, struct task_group *group)
{
    lock(pool);
    wake_locked(pool, pool_queue_cancel(&pool->queue, group));
    unlock(pool);
}

enum status task_should_stop(const struct task *task, struct error *err)
{
    assert(task->group != NULL);
    if (atomic_load(&task->is_overdue))
        return error_set(err, ST_TIMED_OUT, "the task ran longer than its deadline allows");
    if (atomic_load(&task->group->is_cancelled))
        return error_set(err, ST_CANCELLED, "cancelled while it ran");
    return ST_OK;
}

struct pool_status pool_status(struct pool *pool)
{
    struct pool_status status;

    lock(pool);
    status = pool->counts;
    for (size_t i = 0; i < POOL_LANES; i++)
        status.queued[i] = pool->queue.lanes[i].tasks;
    status.oldest_wait_ms = pool_queue_oldest_wait_ms(&pool->queue, clock_ms());
    status.is_over_given_up_max = status.threads_given_up > pool->config.threads_given_up_max;
    unlock(pool);
    return status;
}
