/*
 * The pool under many threads, for the thread sanitizer. First its counters: 4 threads hand in
 * 100,000 tasks each, and exactly 400,000 must be counted as done. Then chaos with a fixed seed:
 * pools are started, fed from several threads and from completions, groups are cancelled, tasks
 * fail and hang, and the pool is stopped in both ways in the middle of it all. What is checked:
 * every accepted task completes exactly once, a last task after all parts, and no refused task
 * ever. Exit status 0 when all of it holds.
 */
#include "domain/must.h"
#include "workers/pool.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SUBMITTERS = 4,
    COUNTED_GROUPS = 1000, /* of each submitter */
    COUNTED_PARTS = 100,

    ROUNDS = 60,
    ROUND_SUBMITTERS = 3,
    ROUND_SUBMITS = 80, /* of each submitter */
    PARTS_MAX = 6,
    TABLE_SLOTS = 32,
    HANGS_A_ROUND = 2,
    CLIENTS = 4,
};

static atomic_ulong faults;

static void fault(const char *what)
{
    atomic_fetch_add(&faults, 1);
    (void)fprintf(stderr, "fault: %s\n", what);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

/* ---- Counters ---- */

struct counted {
    struct task_group group;
    struct task tasks[COUNTED_PARTS];
    struct task *parts[COUNTED_PARTS];
    atomic_size_t open;
    sem_t *ended;
};

struct counting {
    struct pool *pool;
    pthread_t thread;
    uint64_t client;
};

static atomic_ulong counted_runs;

static enum status counted_run(struct task *task, void *context, struct error *err)
{
    (void)task;
    (void)context;
    (void)err;
    atomic_fetch_add(&counted_runs, 1);
    return ST_OK;
}

static void counted_done(struct task *task, enum status status, const struct error *err)
{
    struct counted *counted = (struct counted *)(void *)task->group;

    if (status != ST_OK || err != NULL)
        fault("a counted task did not end well");
    if (atomic_fetch_sub(&counted->open, 1) == 1)
        MUST(sem_post(counted->ended));
}

static void never_given_up(struct task *task, const struct error *err)
{
    (void)task;
    (void)err;
    fault("a task that does not hang was given up");
}

static void never_late(struct task *task)
{
    (void)task;
    fault("a task that was not given up came back late");
}

static void counted_submit(struct counting *counting, struct counted *counted)
{
    struct task_group *group = &counted->group;

    for (size_t i = 0; i < COUNTED_PARTS; i++) {
        counted->tasks[i] = (struct task){.run = counted_run,
                                          .done_take = counted_done,
                                          .given_up = never_given_up,
                                          .late_take = never_late};
        counted->parts[i] = &counted->tasks[i];
    }
    *group = (struct task_group){.lane = (enum pool_lane)(counting->client % POOL_LANES),
                                 .client = counting->client,
                                 .parts = counted->parts,
                                 .parts_count = COUNTED_PARTS};
    atomic_store(&counted->open, COUNTED_PARTS);
    if (pool_submit_take(counting->pool, &group, NULL) != ST_OK)
        fault("a group was refused although there is room");
}

static void *counting_main(void *arg)
{
    struct counting *counting = arg;
    struct counted *counted = calloc(1, sizeof *counted);
    sem_t ended;

    if (counted == NULL)
        abort();
    MUST(sem_init(&ended, 0, 0));
    counted->ended = &ended;
    for (int i = 0; i < COUNTED_GROUPS; i++) {
        counted_submit(counting, counted);
        wait_for(&ended);
    }
    free(counted);
    MUST(sem_destroy(&ended));
    return NULL;
}

static void count(void)
{
    const struct pool_config config = {.threads = 4,
                                       .queue_tasks_max = SUBMITTERS * COUNTED_PARTS,
                                       .task_deadline_ms = POOL_DEADLINE_MS_MAX,
                                       .task_grace_ms = POOL_DEADLINE_MS_MAX,
                                       .threads_given_up_max = 1};
    const uint64_t expected = (uint64_t)SUBMITTERS * COUNTED_GROUPS * COUNTED_PARTS;
    struct counting counting[SUBMITTERS] = {0};
    struct pool_status status;
    struct pool *pool = NULL;

    if (pool_start(&config, &pool, NULL) != ST_OK)
        abort();
    for (size_t i = 0; i < SUBMITTERS; i++) {
        counting[i] = (struct counting){.pool = pool, .client = i};
        MUST(pthread_create(&counting[i].thread, NULL, counting_main, &counting[i]));
    }
    for (size_t i = 0; i < SUBMITTERS; i++)
        MUST(pthread_join(counting[i].thread, NULL));
    status = pool_status(pool);
    printf("counted: %lu runs, %llu done of %llu\n", atomic_load(&counted_runs),
           (unsigned long long)status.done, (unsigned long long)expected);
    if (status.done != expected || atomic_load(&counted_runs) != expected)
        fault("the pool's counter is not the number of tasks");
    if (status.failed + status.cancelled + status.timed_out + status.busy != 0)
        fault("other counters moved");
    if (!pool_stop(&pool, POOL_STOP_DRAIN))
        fault("a thread is still out");
}

/* ---- Chaos ---- */

struct job;

struct job_task {
    struct task task;
    struct job *job;
    atomic_int completions;
    enum status result;
    bool is_hanging;
    sem_t told; /* posted by given_up: a hanging task hangs exactly until then */
};

struct job {
    struct task_group group;
    struct task *parts[PARTS_MAX];
    struct job_task tasks[PARTS_MAX + 1];
    size_t tasks_count;
    struct round *round;
    uint64_t seed;
    size_t slot;            /* in the round's table; TABLE_SLOTS: not in it */
    atomic_size_t open;     /* tasks not completed; the table knows the job until 0 */
    atomic_size_t memories; /* tasks whose memory is not ours again */
};

/* One life of a pool, and what went in and came out. */
struct round {
    struct pool *pool;
    pthread_mutex_t table_mutex; /* held over pool_cancel, and taken by each last completion */
    struct job *table[TABLE_SLOTS];
    atomic_bool is_over;
    atomic_int hangs_left;
    atomic_ulong accepted, refused, completed, cancels, given_up, late, by_status[ST_COUNT];
    sem_t late_came;
};

struct submitter {
    struct round *round;
    pthread_t thread;
    uint64_t seed;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static bool one_in(uint64_t *seed, uint64_t n)
{
    return next_random(seed) % n == 0;
}

static void submit_random(struct round *round, uint64_t seed);

static struct job_task *job_task_of(struct task *task)
{
    return (struct job_task *)(void *)task;
}

static void job_memory_back(struct job *job)
{
    if (atomic_fetch_sub(&job->memories, 1) != 1)
        return;
    for (size_t i = 0; i < job->tasks_count; i++)
        MUST(sem_destroy(&job->tasks[i].told));
    free(job);
}

static void job_leave_table(struct job *job)
{
    struct round *round = job->round;

    MUST(pthread_mutex_lock(&round->table_mutex));
    if (job->slot < TABLE_SLOTS)
        round->table[job->slot] = NULL;
    MUST(pthread_mutex_unlock(&round->table_mutex));
}

static void check_all_parts_completed(const struct job *job)
{
    for (size_t i = 0; i < job->group.parts_count; i++)
        if (atomic_load(&job->tasks[i].completions) != 1)
            fault("a last task completed before a part");
}

static void job_completed(struct job_task *task, enum status status)
{
    struct job *job = task->job;

    if (atomic_fetch_add(&task->completions, 1) != 0)
        fault("a task completed twice");
    if (&task->task == job->group.last)
        check_all_parts_completed(job);
    atomic_fetch_add(&job->round->completed, 1);
    atomic_fetch_add(&job->round->by_status[status], 1);
    if (atomic_fetch_sub(&job->open, 1) == 1)
        job_leave_table(job);
}

static enum status job_run(struct task *task, void *context, struct error *err)
{
    struct job_task *job_task = job_task_of(task);
    enum status st = ST_OK;

    (void)context;
    if (job_task->is_hanging)
        wait_for(&job_task->told);
    for (int i = 0; i < 20 && st == ST_OK; i++)
        st = task_should_stop(task, err);
    return st != ST_OK ? st : job_task->result;
}

static void job_done(struct task *task, enum status status, const struct error *err)
{
    struct job_task *job_task = job_task_of(task);
    struct job *job = job_task->job;
    uint64_t seed = job->seed ^ (uint64_t)(job_task - job->tasks + 1) * 0x9E3779B97F4A7C15U;

    if ((err == NULL) != (status == ST_OK))
        fault("a completion without a reason");
    if (one_in(&seed, 16))
        submit_random(job->round, next_random(&seed));
    job_completed(job_task, status);
    job_memory_back(job);
}

static void job_given_up(struct task *task, const struct error *err)
{
    struct job_task *job_task = job_task_of(task);

    if (err == NULL || err->status != ST_TIMED_OUT || !job_task->is_hanging)
        fault("given up without a cause");
    atomic_fetch_add(&job_task->job->round->given_up, 1);
    job_completed(job_task, ST_TIMED_OUT);
    MUST(sem_post(&job_task->told));
}

static void job_late(struct task *task)
{
    struct job *job = job_task_of(task)->job;
    struct round *round = job->round;

    if (atomic_load(&job_task_of(task)->completions) != 1)
        fault("late before it was given up");
    job_memory_back(job);
    atomic_fetch_add(&round->late, 1);
    MUST(sem_post(&round->late_came));
}

static struct job *job_new(struct round *round, uint64_t seed)
{
    struct job *job = calloc(1, sizeof *job);
    size_t parts = next_random(&seed) % PARTS_MAX + 1;
    bool has_last = !one_in(&seed, 3);

    if (job == NULL)
        abort();
    job->round = round;
    job->slot = TABLE_SLOTS;
    job->tasks_count = parts + has_last;
    for (size_t i = 0; i < job->tasks_count; i++) {
        job->tasks[i].task = (struct task){
            .run = job_run, .done_take = job_done, .given_up = job_given_up, .late_take = job_late};
        job->tasks[i].job = job;
        job->tasks[i].result = one_in(&seed, 25) ? ST_LIBRARY : ST_OK;
        job->tasks[i].is_hanging = one_in(&seed, 40) && atomic_fetch_sub(&round->hangs_left, 1) > 0;
        MUST(sem_init(&job->tasks[i].told, 0, 0));
        if (i < parts)
            job->parts[i] = &job->tasks[i].task;
    }
    job->group = (struct task_group){
        .lane = one_in(&seed, 2) ? POOL_URGENT : POOL_BULK,
        .client = next_random(&seed) % CLIENTS,
        .parts = job->parts,
        .parts_count = parts,
        .last = has_last ? &job->tasks[parts].task : NULL,
        .last_is_heavy = one_in(&seed, 2),
    };
    job->seed = next_random(&seed);
    atomic_store(&job->open, job->tasks_count);
    atomic_store(&job->memories, job->tasks_count);
    return job;
}

static void job_refused(struct job *job)
{
    atomic_fetch_add(&job->round->refused, 1);
    for (size_t i = 0; i < job->tasks_count; i++)
        if (atomic_load(&job->tasks[i].completions) != 0)
            fault("a refused task completed");
    atomic_store(&job->memories, 1);
    job_memory_back(job);
}

/* The table's mutex is held over the submit, so that the job is in the table before its last
 * completion looks for it there. */
static void submit_random(struct round *round, uint64_t seed)
{
    struct job *job = job_new(round, seed | 1);
    struct task_group *group = &job->group;
    size_t slot = 0;
    size_t tasks_count = job->tasks_count;
    enum status st;

    MUST(pthread_mutex_lock(&round->table_mutex));
    while (slot < TABLE_SLOTS && round->table[slot] != NULL)
        slot++;
    job->slot = slot;
    st = pool_submit_take(round->pool, &group, NULL);
    if (st == ST_OK) {
        atomic_fetch_add(&round->accepted, tasks_count);
        if (slot < TABLE_SLOTS)
            round->table[slot] = job;
    }
    MUST(pthread_mutex_unlock(&round->table_mutex));
    if ((st == ST_OK) != (group == NULL))
        fault("a group is neither taken nor given back");
    if (st != ST_OK)
        job_refused(job);
}

static void cancel_random(struct round *round, uint64_t *seed)
{
    struct job *job;

    MUST(pthread_mutex_lock(&round->table_mutex));
    job = round->table[next_random(seed) % TABLE_SLOTS];
    if (job != NULL) {
        pool_cancel(round->pool, &job->group);
        atomic_fetch_add(&round->cancels, 1);
    }
    MUST(pthread_mutex_unlock(&round->table_mutex));
}

static void *submitter_main(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < ROUND_SUBMITS; i++) {
        submit_random(submitter->round, next_random(&submitter->seed));
        if (one_in(&submitter->seed, 4))
            cancel_random(submitter->round, &submitter->seed);
        if (one_in(&submitter->seed, 16) && pool_status(submitter->round->pool).busy > 4)
            fault("more busy threads than threads");
    }
    return NULL;
}

/* Cancels through the whole of the stop. */
static void *canceller_main(void *arg)
{
    struct submitter *canceller = arg;

    while (!atomic_load(&canceller->round->is_over)) {
        if (one_in(&canceller->seed, 64))
            cancel_random(canceller->round, &canceller->seed);
        (void)sched_yield();
    }
    return NULL;
}

static void round_start(struct round *round, uint64_t *seed)
{
    const struct pool_config config = {.threads = next_random(seed) % 4 + 1,
                                       .queue_tasks_max = next_random(seed) % 200 + 8,
                                       .nice = 1,
                                       .task_deadline_ms = POOL_DEADLINE_MS_MIN,
                                       .task_grace_ms = 20 * POOL_DEADLINE_MS_MIN,
                                       .threads_given_up_max = 1};

    MUST(pthread_mutex_init(&round->table_mutex, NULL));
    MUST(sem_init(&round->late_came, 0, 0));
    atomic_store(&round->hangs_left, one_in(seed, 6) ? HANGS_A_ROUND : 0);
    if (pool_start(&config, &round->pool, NULL) != ST_OK)
        abort();
}

/* The round's own pointer to the pool stays for completions and cancels during the stop. */
static void round_stop(struct round *round, enum pool_stop_mode mode)
{
    struct pool *pool = round->pool;
    bool is_all_back = pool_stop(&pool, mode);

    if (!is_all_back && atomic_load(&round->given_up) == 0)
        fault("a thread is out that was not given up");
    if (atomic_load(&round->accepted) != atomic_load(&round->completed))
        fault("accepted and completed tasks differ");
    for (size_t i = 0; i < TABLE_SLOTS; i++)
        if (round->table[i] != NULL)
            fault("a job has not ended");
    for (unsigned long i = atomic_load(&round->given_up); i > 0; i--)
        wait_for(&round->late_came);
    if (atomic_load(&round->late) != atomic_load(&round->given_up))
        fault("late tasks and those given up differ");
}

struct totals {
    unsigned long accepted, refused, completed, cancels, given_up, by_status[ST_COUNT];
};

static void totals_add(struct totals *totals, struct round *round)
{
    totals->accepted += atomic_load(&round->accepted);
    totals->refused += atomic_load(&round->refused);
    totals->completed += atomic_load(&round->completed);
    totals->cancels += atomic_load(&round->cancels);
    totals->given_up += atomic_load(&round->given_up);
    for (size_t i = 0; i < ST_COUNT; i++)
        totals->by_status[i] += atomic_load(&round->by_status[i]);
}

static void round_run(uint64_t *seed, enum pool_stop_mode mode, struct totals *totals)
{
    struct round *round = calloc(1, sizeof *round);
    struct submitter submitters[ROUND_SUBMITTERS];
    struct submitter canceller;

    if (round == NULL)
        abort();
    round_start(round, seed);
    for (size_t i = 0; i < ROUND_SUBMITTERS; i++) {
        submitters[i] = (struct submitter){.round = round, .seed = next_random(seed)};
        MUST(pthread_create(&submitters[i].thread, NULL, submitter_main, &submitters[i]));
    }
    canceller = (struct submitter){.round = round, .seed = next_random(seed)};
    MUST(pthread_create(&canceller.thread, NULL, canceller_main, &canceller));
    for (size_t i = 0; i < ROUND_SUBMITTERS; i++)
        MUST(pthread_join(submitters[i].thread, NULL));
    round_stop(round, mode);
    atomic_store(&round->is_over, true);
    MUST(pthread_join(canceller.thread, NULL));
    totals_add(totals, round);
    MUST(sem_destroy(&round->late_came));
    MUST(pthread_mutex_destroy(&round->table_mutex));
    free(round);
}

static void chaos(void)
{
    uint64_t seed = 20250607;
    struct totals totals = {0};

    for (int i = 0; i < ROUNDS; i++)
        round_run(&seed, i % 2 == 0 ? POOL_STOP_DRAIN : POOL_STOP_NOW, &totals);
    printf("chaos: %d stops, %lu cancels, %lu groups refused, %lu tasks accepted, %lu completed:\n",
           ROUNDS, totals.cancels, totals.refused, totals.accepted, totals.completed);
    for (size_t i = 0; i < ST_COUNT; i++)
        if (totals.by_status[i] != 0)
            printf("  %s %lu\n", status_name((enum status)i), totals.by_status[i]);
    printf("  of them given up %lu\n", totals.given_up);
    if (totals.given_up == 0 || totals.refused == 0 || totals.cancels == 0)
        fault("the chaos left something out");
}

int main(void)
{
    count();
    chaos();
    printf("%lu faults\n", atomic_load(&faults));
    return atomic_load(&faults) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
