#include "workers/pool.h"

#include "domain/must.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TIMEOUT_S = 30, STEPS_MAX = 64, LETTERS_MAX = 256, FAST_MS = POOL_DEADLINE_MS_MIN };

/* ---- Fixture: tasks that follow a script, and a diary of what happened in which order ---- */

/* Letters in the order in which tasks wrote them. */
struct diary {
    pthread_mutex_t mutex;
    char letters[LETTERS_MAX];
    size_t len;
};

struct step {
    struct task task; /* first: a step is found by its task */

    char letter;         /* written to the diary by run(), if there is a diary */
    char done_letter;    /* the same for the completion; 0: nothing */
    enum status result;  /* what run() returns */
    bool is_silent;      /* run() fails without a reason */
    bool is_asking;      /* run() asks task_should_stop until it says so */
    struct diary *diary; /* may be NULL, as the semaphores */
    sem_t *entered;      /* posted by run() */
    sem_t *gate;         /* run() waits here */
    sem_t *done_entered; /* posted by the completion, whichever it is */
    sem_t *done_gate;    /* the completion waits here */
    sem_t *late;         /* posted by late_take() */
    void (*on_done)(struct step *step);

    atomic_int runs, dones, given_ups, lates;
    enum status status; /* what the completion brought */
    struct error err;
    void *context;
};

static struct step *step_of(struct task *task)
{
    return (struct step *)(void *)task;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        cr_assert_eq(errno, EINTR);
}

static void post_if(sem_t *sem)
{
    if (sem != NULL)
        MUST(sem_post(sem));
}

static void wait_if(sem_t *sem)
{
    if (sem != NULL)
        wait_for(sem);
}

static sem_t sem_closed(void)
{
    sem_t sem;

    MUST(sem_init(&sem, 0, 0));
    return sem;
}

static void diary_write(struct diary *diary, char letter)
{
    if (diary == NULL || letter == 0)
        return;
    MUST(pthread_mutex_lock(&diary->mutex));
    cr_assert(diary->len < LETTERS_MAX - 1);
    diary->letters[diary->len++] = letter;
    MUST(pthread_mutex_unlock(&diary->mutex));
}

static enum status step_run(struct task *task, void *context, struct error *err)
{
    struct step *step = step_of(task);
    enum status st = ST_OK;

    atomic_fetch_add(&step->runs, 1);
    step->context = context;
    diary_write(step->diary, step->letter);
    post_if(step->entered);
    wait_if(step->gate);
    while (step->is_asking && st == ST_OK)
        st = task_should_stop(task, err);
    if (st != ST_OK || step->result == ST_OK)
        return st;
    return step->is_silent ? step->result : error_set(err, step->result, "as the script says");
}

static void step_completed(struct step *step, enum status status, const struct error *err)
{
    void (*on_done)(struct step *) = step->on_done;

    step->status = status;
    if (err != NULL)
        step->err = *err;
    cr_assert_eq(err == NULL, status == ST_OK);
    cr_assert(err == NULL || err->status == status);
    diary_write(step->diary, step->done_letter);
    if (on_done != NULL)
        on_done(step);
    else {
        sem_t *done_gate = step->done_gate;

        post_if(step->done_entered);
        wait_if(done_gate);
    }
}

static void step_done(struct task *task, enum status status, const struct error *err)
{
    atomic_fetch_add(&step_of(task)->dones, 1);
    step_completed(step_of(task), status, err);
}

static void step_given_up(struct task *task, const struct error *err)
{
    atomic_fetch_add(&step_of(task)->given_ups, 1);
    step_completed(step_of(task), ST_TIMED_OUT, err);
}

static void step_late(struct task *task)
{
    atomic_fetch_add(&step_of(task)->lates, 1);
    post_if(step_of(task)->late);
}

/* A group with its steps: parts first, then the last task if there is one. */
struct plan {
    struct task_group group;
    struct task *parts[STEPS_MAX];
    struct step steps[STEPS_MAX + 1];
};

static struct plan *plan_new(enum pool_lane lane, uint64_t client, size_t parts, bool has_last)
{
    struct plan *plan = calloc(1, sizeof *plan);

    cr_assert_not_null(plan);
    cr_assert(parts <= STEPS_MAX);
    for (size_t i = 0; i < parts + has_last; i++) {
        plan->steps[i].task = (struct task){.run = step_run,
                                            .done_take = step_done,
                                            .given_up = step_given_up,
                                            .late_take = step_late};
        if (i < parts)
            plan->parts[i] = &plan->steps[i].task;
    }
    plan->group.lane = lane;
    plan->group.client = client;
    plan->group.parts = plan->parts;
    plan->group.parts_count = parts;
    plan->group.last = has_last ? &plan->steps[parts].task : NULL;
    return plan;
}

/* A plan whose parts all write the letter, and whose last task writes its capital. */
static struct plan *plan_new_lettered(enum pool_lane lane, uint64_t client, size_t parts,
                                      bool has_last, struct diary *diary, char letter)
{
    struct plan *plan = plan_new(lane, client, parts, has_last);

    for (size_t i = 0; i < parts + has_last; i++) {
        plan->steps[i].diary = diary;
        plan->steps[i].letter = i < parts ? letter : (char)(letter - 'a' + 'A');
    }
    return plan;
}

static void submit(struct pool *pool, struct plan *plan)
{
    struct task_group *group = &plan->group;
    struct error err = {0};

    cr_assert_eq(pool_submit_take(pool, &group, &err), ST_OK, "%s", err.text);
    cr_assert_null(group);
}

static struct pool_config config_of(size_t threads)
{
    return (struct pool_config){
        .threads = threads,
        .queue_tasks_max = 4096,
        .task_deadline_ms = POOL_DEADLINE_MS_MAX,
        .task_grace_ms = POOL_DEADLINE_MS_MAX,
        .threads_given_up_max = 1,
    };
}

static struct pool *start_config(const struct pool_config *config)
{
    struct pool *pool = NULL;
    struct error err = {0};

    cr_assert_eq(pool_start(config, &pool, &err), ST_OK, "%s", err.text);
    cr_assert_not_null(pool);
    return pool;
}

static struct pool *start(size_t threads)
{
    struct pool_config config = config_of(threads);

    return start_config(&config);
}

/* A pool that gives up a task after twice FAST_MS. */
static struct pool *start_fast(size_t threads)
{
    struct pool_config config = config_of(threads);

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS;
    return start_config(&config);
}

static void stop(struct pool **pool)
{
    cr_assert(pool_stop(pool, POOL_STOP_DRAIN));
    cr_assert_null(*pool);
}

/* A task in run() that holds one thread until its gate opens. */
struct holder {
    struct plan *plan;
    sem_t entered, gate;
};

static void hold(struct holder *holder, struct pool *pool)
{
    holder->entered = sem_closed();
    holder->gate = sem_closed();
    holder->plan = plan_new(POOL_URGENT, 0, 1, false);
    holder->plan->steps[0].entered = &holder->entered;
    holder->plan->steps[0].gate = &holder->gate;
    submit(pool, holder->plan);
    wait_for(&holder->entered);
}

static void let_go(struct holder *holder)
{
    MUST(sem_post(&holder->gate));
}

/* After the pool's end. */
static void expect_once(const struct step *step, int runs, enum status status, int line)
{
    cr_expect_eq(atomic_load(&step->runs), runs, "line %d: runs", line);
    cr_expect_eq(atomic_load(&step->dones), 1, "line %d: completions", line);
    cr_expect_eq(atomic_load(&step->given_ups), 0, "line %d: given up", line);
    cr_expect_eq(step->status, status, "line %d: %s", line, status_name(step->status));
}
#define EXPECT_RAN(step)       expect_once(step, 1, ST_OK, __LINE__)
#define EXPECT_CANCELLED(step) expect_once(step, 0, ST_CANCELLED, __LINE__)

/* ---- pool_start ---- */

struct context_user {
    atomic_int news, frees;
    int fail_from, fail_to; /* the calls of context_new, counted from 1, that fail */
    sem_t *failed;
};

struct context {
    pthread_t thread;
};

static enum status context_new(void *user, void **context, struct error *err)
{
    struct context_user *counts = user;
    int call = atomic_fetch_add(&counts->news, 1) + 1;
    struct context *made;

    if (call >= counts->fail_from && call <= counts->fail_to) {
        post_if(counts->failed);
        return error_set(err, ST_LIBRARY, "no context %d", call);
    }
    made = malloc(sizeof *made);
    cr_assert_not_null(made);
    made->thread = pthread_self();
    *context = made;
    return ST_OK;
}

static void context_free(void *user, void **context)
{
    struct context *freed = *context;

    cr_expect(pthread_equal(freed->thread, pthread_self()));
    free(freed);
    *context = NULL;
    atomic_fetch_add(&((struct context_user *)user)->frees, 1);
}

static struct pool_config config_with_contexts(size_t threads, struct context_user *user)
{
    struct pool_config config = config_of(threads);

    config.context_new = context_new;
    config.context_free = context_free;
    config.user = user;
    return config;
}

Test(pool_start, accepts_both_ends_of_each_range_and_nothing_beyond, .timeout = TIMEOUT_S)
{
    static const struct {
        const char *name;
        struct pool_config config;
        const char *text; /* NULL: accepted */
    } rows[] = {
        {"smallest", {1, 1, 0, 100, 100, 1, NULL, NULL, NULL}, NULL},
        {"largest", {256, SIZE_MAX, 19, 600000, 600000, 64, NULL, NULL, NULL}, NULL},
        {"no thread", {0, 1, 0, 100, 100, 1, NULL, NULL, NULL}, "threads: 0 is not within 1..256"},
        {"threads", {257, 1, 0, 100, 100, 1, NULL, NULL, NULL}, "threads: 257 "},
        {"queue", {1, 0, 0, 100, 100, 1, NULL, NULL, NULL}, "queue_tasks_max: 0 "},
        {"rising", {1, 1, -1, 100, 100, 1, NULL, NULL, NULL}, "nice: -1 is not within 0..19"},
        {"nice", {1, 1, 20, 100, 100, 1, NULL, NULL, NULL}, "nice: 20 "},
        {"short", {1, 1, 0, 99, 100, 1, NULL, NULL, NULL}, "task_deadline_ms: 99 "},
        {"long", {1, 1, 0, 600001, 100, 1, NULL, NULL, NULL}, "task_deadline_ms: 600001 "},
        {"short grace", {1, 1, 0, 100, 99, 1, NULL, NULL, NULL}, "task_grace_ms: 99 "},
        {"long grace", {1, 1, 0, 100, 600001, 1, NULL, NULL, NULL}, "task_grace_ms: 600001 "},
        {"none", {1, 1, 0, 100, 100, 0, NULL, NULL, NULL}, "threads_given_up_max: 0 "},
        {"many", {1, 1, 0, 100, 100, 65, NULL, NULL, NULL}, "threads_given_up_max: 65 "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pool *pool = NULL;
        struct error err = {0};
        enum status st = pool_start(&rows[i].config, &pool, &err);

        cr_expect_eq(st, rows[i].text != NULL ? ST_INVALID : ST_OK, "%s", rows[i].name);
        cr_expect_eq(pool == NULL, rows[i].text != NULL, "%s", rows[i].name);
        if (rows[i].text != NULL)
            cr_expect_eq(strncmp(err.text, rows[i].text, strlen(rows[i].text)), 0, "%s: %s",
                         rows[i].name, err.text);
        else
            stop(&pool);
    }
}

/* The threads of this process whose names start like this. */
static size_t threads_named(const char *start)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;

    cr_assert_not_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300];
        char name[32] = "";
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof name, file) != NULL)
            count += strncmp(name, start, strlen(start)) == 0;
        (void)fclose(file);
    }
    (void)closedir(tasks);
    return count;
}

/* The end of a detached thread can be seen from outside only. */
static void wait_for_workers_left(size_t count)
{
    while (threads_named("press-") != count)
        (void)sched_yield();
}

struct seen {
    struct task task;
    char name[16];
    int nice;
    bool blocks_sigterm, blocks_sigsegv;
};

static enum status see(struct task *task, void *context, struct error *err)
{
    struct seen *seen = (struct seen *)(void *)task;
    sigset_t blocked;

    (void)context;
    (void)err;
    MUST(pthread_getname_np(pthread_self(), seen->name, sizeof seen->name));
    seen->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    MUST(pthread_sigmask(SIG_SETMASK, NULL, &blocked));
    seen->blocks_sigterm = sigismember(&blocked, SIGTERM) == 1;
    seen->blocks_sigsegv = sigismember(&blocked, SIGSEGV) == 1;
    return ST_OK;
}

static void see_done(struct task *task, enum status status, const struct error *err)
{
    (void)task;
    (void)err;
    cr_expect_eq(status, ST_OK);
}

Test(pool_start, names_its_threads_and_lowers_their_priority_only, .timeout = TIMEOUT_S)
{
    static const int nices[] = {0, 7, 19};

    for (size_t i = 0; i < sizeof nices / sizeof *nices; i++) {
        struct seen seen = {.task = {see, see_done, step_given_up, step_late, NULL, false}};
        struct task *parts[] = {&seen.task};
        struct task_group group = {.parts = parts, .parts_count = 1};
        struct task_group *taken = &group;
        struct pool_config config = config_of(1);
        int own = getpriority(PRIO_PROCESS, 0);
        int expected = own + nices[i] > 19 ? 19 : own + nices[i];
        struct holder holder;
        struct pool *pool;

        config.nice = nices[i];
        pool = start_config(&config);
        hold(&holder, pool);
        cr_expect_eq(threads_named("press-0"), 1);
        while (threads_named("watchdog") != 1) /* it names itself, and nobody waits for that */
            (void)sched_yield();
        cr_expect_eq(threads_named("press-"), 1);
        cr_expect_eq(pool_submit_take(pool, &taken, NULL), ST_OK);
        let_go(&holder);
        stop(&pool);
        cr_expect_str_eq(seen.name, "press-0");
        cr_expect_eq(seen.nice, expected, "%d", seen.nice);
        cr_expect_eq(getpriority(PRIO_PROCESS, 0), own);
        cr_expect(seen.blocks_sigterm);
        cr_expect_not(seen.blocks_sigsegv);
        free(holder.plan);
    }
}

Test(pool_start, makes_and_frees_each_context_on_its_own_thread, .timeout = TIMEOUT_S)
{
    struct context_user user = {0};
    struct pool_config config = config_with_contexts(5, &user);
    struct pool *pool = start_config(&config);
    struct plan *plan = plan_new(POOL_BULK, 1, 1, false);

    cr_expect_eq(atomic_load(&user.news), 5);
    cr_expect_eq(pool_status(pool).threads, 5);
    submit(pool, plan);
    stop(&pool);
    cr_expect_not_null(plan->steps[0].context);
    cr_expect_eq(atomic_load(&user.frees), 5);
    free(plan);
}

Test(pool_start, fails_with_the_reason_of_context_new_and_leaves_nothing, .timeout = TIMEOUT_S)
{
    for (int failing = 1; failing <= 3; failing++) {
        struct context_user user = {.fail_from = failing, .fail_to = failing};
        struct pool_config config = config_with_contexts(3, &user);
        struct pool *pool = NULL;
        struct error err = {0};
        char text[32];

        (void)snprintf(text, sizeof text, "no context %d", failing);
        cr_expect_eq(pool_start(&config, &pool, &err), ST_LIBRARY);
        cr_expect_null(pool);
        cr_expect_str_eq(err.text, text);
        cr_expect_eq(atomic_load(&user.news), 3);
        cr_expect_eq(atomic_load(&user.frees), 2);
        cr_expect_eq(threads_named("press-"), 0);
    }
}

/* Threads to come get a stack that does not fit into the address space, or the usual one again. */
static void forbid_threads(bool is_forbidden)
{
    static size_t usual;
    pthread_attr_t attr;

    MUST(pthread_getattr_default_np(&attr));
    if (usual == 0)
        MUST(pthread_attr_getstacksize(&attr, &usual));
    MUST(pthread_attr_setstacksize(&attr, is_forbidden ? (size_t)1 << 50 : usual));
    MUST(pthread_setattr_default_np(&attr));
    MUST(pthread_attr_destroy(&attr));
}

Test(pool_start, fails_when_the_system_gives_no_thread, .timeout = TIMEOUT_S)
{
    struct pool_config config = config_of(2);
    struct pool *pool = NULL;
    struct error err = {0};

    forbid_threads(true);
    cr_expect_eq(pool_start(&config, &pool, &err), ST_NO_MEMORY);
    cr_expect_null(pool);
    cr_expect_not_null(strstr(err.text, "thread"));
    forbid_threads(false);
    pool = start_config(&config);
    stop(&pool);
}

/* ---- pool_submit_take ---- */

Test(pool_submit_take, nulls_the_group_and_completes_each_task_once, .timeout = TIMEOUT_S)
{
    struct pool *pool = start(4);
    struct plan *plan = plan_new(POOL_BULK, 1, 40, true);

    submit(pool, plan);
    stop(&pool);
    for (size_t i = 0; i < 41; i++)
        EXPECT_RAN(&plan->steps[i]);
    free(plan);
}

Test(pool_submit_take, returns_the_group_when_the_queue_is_full, .timeout = TIMEOUT_S)
{
    struct pool_config config = config_of(1);
    struct plan *fits = plan_new(POOL_BULK, 1, 7, true);
    struct plan *refused = plan_new(POOL_URGENT, 2, 2, true);
    struct plan *exact = plan_new(POOL_URGENT, 2, 1, true);
    struct task_group *group = &refused->group;
    struct error err = {0};
    struct holder holder;
    struct pool *pool;

    config.queue_tasks_max = 10;
    pool = start_config(&config);
    hold(&holder, pool);
    submit(pool, fits);
    cr_expect_eq(pool_submit_take(pool, &group, &err), ST_BUSY);
    cr_expect_eq(group, &refused->group);
    cr_expect_eq(err.status, ST_BUSY);
    submit(pool, exact);
    cr_expect_eq(pool_status(pool).queued[POOL_BULK], 8);
    cr_expect_eq(pool_status(pool).queued[POOL_URGENT], 2);
    let_go(&holder);
    stop(&pool);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(atomic_load(&refused->steps[i].dones), 0);
    EXPECT_RAN(&exact->steps[1]);
    free(fits);
    free(refused);
    free(exact);
    free(holder.plan);
}

Test(pool_submit_take, takes_a_refused_group_later, .timeout = TIMEOUT_S)
{
    struct pool_config config = config_of(1);
    struct plan *first = plan_new(POOL_BULK, 1, 1, false);
    struct plan *second = plan_new(POOL_BULK, 1, 1, false);
    struct task_group *group = &second->group;
    sem_t done = sem_closed();
    struct holder holder;
    struct pool *pool;

    config.queue_tasks_max = 1;
    first->steps[0].done_entered = &done;
    pool = start_config(&config);
    hold(&holder, pool);
    submit(pool, first);
    cr_expect_eq(pool_submit_take(pool, &group, NULL), ST_BUSY);
    let_go(&holder);
    wait_for(&done);
    submit(pool, second);
    stop(&pool);
    EXPECT_RAN(&second->steps[0]);
    free(first);
    free(second);
    free(holder.plan);
}

Test(pool_submit_take, refuses_for_good_what_never_fits, .timeout = TIMEOUT_S)
{
    struct pool_config config = config_of(1);
    struct plan *large = plan_new(POOL_BULK, 1, 4, true);
    struct plan *largest = plan_new(POOL_BULK, 1, 3, true);
    struct task_group *group = &large->group;
    struct pool *pool;

    config.queue_tasks_max = 4;
    pool = start_config(&config);
    cr_expect_eq(pool_submit_take(pool, &group, NULL), ST_TOO_LARGE);
    cr_expect_eq(group, &large->group);
    submit(pool, largest);
    stop(&pool);
    EXPECT_RAN(&largest->steps[3]);
    free(large);
    free(largest);
}

static struct pool *follow_pool;
static struct plan *follow_plan;
static enum status follow_status;

static void submit_follower(struct step *step)
{
    struct task_group *group = &follow_plan->group;

    (void)step;
    follow_status = pool_submit_take(follow_pool, &group, NULL);
}

Test(pool_submit_take, works_from_a_completion, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 1, false);
    sem_t done = sem_closed();

    follow_plan = plan_new(POOL_BULK, 1, 1, false);
    follow_plan->steps[0].done_entered = &done;
    plan->steps[0].on_done = submit_follower;
    follow_pool = start(1);
    submit(follow_pool, plan);
    wait_for(&done);
    stop(&follow_pool);
    cr_expect_eq(follow_status, ST_OK);
    EXPECT_RAN(&follow_plan->steps[0]);
    free(plan);
    free(follow_plan);
}

Test(pool_submit_take, is_busy_from_the_first_moment_of_a_stop, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 1, false);
    struct pool *pool = follow_pool = start(1);
    struct holder holder;

    follow_plan = plan_new(POOL_BULK, 1, 1, false);
    plan->steps[0].on_done = submit_follower;
    hold(&holder, pool);
    submit(pool, plan);
    /* The completion that submits comes during the stop only: the thread is held until then. */
    holder.plan->steps[0].is_asking = true;
    let_go(&holder);
    cr_expect(pool_stop(&pool, POOL_STOP_NOW));
    cr_expect_eq(follow_status, ST_BUSY);
    EXPECT_CANCELLED(&plan->steps[0]);
    cr_expect_eq(atomic_load(&follow_plan->steps[0].dones), 0);
    free(plan);
    free(follow_plan);
    free(holder.plan);
}

Test(pool_submit_take, aborts_on_a_task_without_completion, .timeout = TIMEOUT_S, .signal = SIGABRT)
{
    struct pool *pool = start(1);
    struct plan *plan = plan_new(POOL_BULK, 1, 1, false);

    plan->steps[0].task.done_take = NULL;
    submit(pool, plan);
}

/* The owner of a group whose memory goes with the final completion. */
static void free_plan_of(struct step *step)
{
    struct plan *plan = (struct plan *)(void *)step->task.group;
    sem_t *done = step->done_entered;

    free(plan);
    post_if(done);
}

Test(pool_submit_take, touches_nothing_after_the_final_completion, .timeout = TIMEOUT_S)
{
    enum { ROUNDS = 200 };
    struct pool *pool = start(4);
    sem_t done = sem_closed();

    for (int i = 0; i < ROUNDS; i++) {
        size_t parts = (size_t)i % 5 + 1;
        struct plan *plan = plan_new(POOL_BULK, (uint64_t)i % 3, parts, true);

        plan->group.last_is_heavy = i % 2 == 0;
        plan->steps[i % (int)parts].result = i % 4 == 0 ? ST_LIBRARY : ST_OK;
        plan->steps[parts].on_done = free_plan_of;
        plan->steps[parts].done_entered = &done;
        submit(pool, plan);
    }
    for (int i = 0; i < ROUNDS; i++)
        wait_for(&done);
    stop(&pool);
}

/* ---- The order of tasks: one thread, held while the groups are submitted ---- */

/* Run the plans in a pool of one thread and say in which order their tasks ran. */
static const char *order_of(struct diary *diary, struct plan **plans, size_t plans_count)
{
    struct pool *pool = start(1);
    struct holder holder;

    hold(&holder, pool);
    for (size_t i = 0; i < plans_count; i++)
        submit(pool, plans[i]);
    let_go(&holder);
    stop(&pool);
    for (size_t i = 0; i < plans_count; i++)
        free(plans[i]);
    free(holder.plan);
    return diary->letters;
}

Test(pool_order, serves_clients_in_turn_and_their_groups_in_turn, .timeout = TIMEOUT_S)
{
    struct diary diary = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct plan *plans[] = {
        plan_new_lettered(POOL_BULK, 1, 4, false, &diary, 'a'),
        plan_new_lettered(POOL_BULK, 1, 2, false, &diary, 'b'),
        plan_new_lettered(POOL_BULK, 2, 3, false, &diary, 'x'),
        plan_new_lettered(POOL_BULK, 3, 1, false, &diary, 'z'),
    };

    cr_expect_str_eq(order_of(&diary, plans, 4), "axzbxaxbaa");
}

Test(pool_order, runs_a_ready_last_task_as_the_next_of_its_client, .timeout = TIMEOUT_S)
{
    struct diary diary = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct plan *plans[] = {
        plan_new_lettered(POOL_BULK, 1, 2, true, &diary, 'a'),
        plan_new_lettered(POOL_BULK, 1, 5, false, &diary, 'b'),
        plan_new_lettered(POOL_BULK, 1, 4, false, &diary, 'c'),
    };

    cr_expect_str_eq(order_of(&diary, plans, 3), "abcaAbcbcbcb");
}

Test(pool_order, lets_an_urgent_task_overtake_a_long_bulk_group, .timeout = TIMEOUT_S)
{
    enum { BULK_TASKS = 20 };
    struct diary diary = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct plan *bulk = plan_new_lettered(POOL_BULK, 1, BULK_TASKS, true, &diary, 'b');
    struct plan *urgent = plan_new_lettered(POOL_URGENT, 2, 1, false, &diary, 'u');
    sem_t entered = sem_closed();
    sem_t gate = sem_closed();
    struct pool *pool = start(1);

    bulk->steps[4].entered = &entered;
    bulk->steps[4].gate = &gate;
    submit(pool, bulk);
    wait_for(&entered);
    submit(pool, urgent);
    MUST(sem_post(&gate));
    stop(&pool);
    cr_expect_str_eq(diary.letters, "bbbbbubbbbbbbbbbbbbbbB");
    free(bulk);
    free(urgent);
}

Test(pool_order, keeps_one_pick_in_eight_for_bulk, .timeout = TIMEOUT_S)
{
    struct diary diary = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct plan *plans[] = {
        plan_new_lettered(POOL_BULK, 1, 4, false, &diary, 'b'),
        plan_new_lettered(POOL_URGENT, 2, 20, false, &diary, 'u'),
    };

    cr_expect_str_eq(order_of(&diary, plans, 2), "uuuuuuubuuuuuuubuuuuuubb");
}

Test(pool_order, starts_the_last_task_after_every_completion_has_returned, .timeout = TIMEOUT_S)
{
    struct pool *pool = start(2);
    struct plan *plan = plan_new(POOL_BULK, 1, 2, true);
    struct plan *other = plan_new(POOL_BULK, 1, 1, false);
    sem_t completing = sem_closed();
    sem_t completion_gate = sem_closed();
    sem_t done = sem_closed();

    plan->steps[0].done_entered = &completing;
    plan->steps[0].done_gate = &completion_gate;
    plan->steps[1].done_entered = &done;
    other->steps[0].done_entered = &done;
    submit(pool, plan);
    wait_for(&completing);
    wait_for(&done);
    submit(pool, other);
    wait_for(&done);
    /* The thread that is free has picked since, and did not pick the last task. */
    cr_expect_eq(pool_status(pool).queued[POOL_BULK], 1);
    cr_expect_eq(atomic_load(&plan->steps[2].runs), 0);
    MUST(sem_post(&completion_gate));
    stop(&pool);
    EXPECT_RAN(&plan->steps[2]);
    free(plan);
    free(other);
}

Test(pool_order, runs_heavy_last_tasks_on_all_threads_but_one, .timeout = TIMEOUT_S)
{
    static const struct {
        size_t threads, heavy_max;
    } rows[] = {{1, 1}, {2, 1}, {3, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum { HEAVY = 4 };
        struct pool *pool = start(rows[i].threads);
        struct plan *heavy[HEAVY];
        struct plan *other = plan_new(POOL_BULK, 9, 3, true);
        sem_t entered = sem_closed();
        sem_t gate = sem_closed();
        sem_t done = sem_closed();

        for (size_t k = 0; k < HEAVY; k++) {
            heavy[k] = plan_new(POOL_BULK, k % 2, 1, true);
            heavy[k]->group.last_is_heavy = true;
            heavy[k]->steps[1].entered = &entered;
            heavy[k]->steps[1].gate = &gate;
            submit(pool, heavy[k]);
        }
        for (size_t k = 0; k < rows[i].heavy_max; k++)
            wait_for(&entered);
        other->steps[3].done_entered = &done;
        submit(pool, other);
        /* With a thread to spare, others pass although more heavy tasks are ready. */
        if (rows[i].threads > rows[i].heavy_max) {
            wait_for(&done);
            cr_expect_eq(sem_trywait(&entered), -1, "%zu threads", rows[i].threads);
            cr_expect_eq(pool_status(pool).queued[POOL_BULK], HEAVY - rows[i].heavy_max);
        }
        for (size_t k = 0; k < HEAVY; k++)
            MUST(sem_post(&gate));
        stop(&pool);
        for (size_t k = 0; k < HEAVY; k++) {
            EXPECT_RAN(&heavy[k]->steps[1]);
            free(heavy[k]);
        }
        free(other);
    }
}

/* ---- Failures ---- */

Test(pool_failure, leaves_the_thread_working, .timeout = TIMEOUT_S)
{
    struct context_user user = {0};
    struct pool_config config = config_with_contexts(1, &user);
    struct plan *failing = plan_new(POOL_BULK, 1, 1, false);
    struct plan *silent = plan_new(POOL_BULK, 1, 1, false);
    struct plan *good = plan_new(POOL_BULK, 1, 1, false);
    struct pool *pool = start_config(&config);
    sem_t done = sem_closed();
    struct pool_status status;

    failing->steps[0].result = ST_LIBRARY;
    silent->steps[0].result = ST_IO;
    silent->steps[0].is_silent = true;
    good->steps[0].done_entered = &done;
    submit(pool, failing);
    submit(pool, silent);
    submit(pool, good);
    wait_for(&done);
    status = pool_status(pool);
    cr_expect_eq(status.failed, 2);
    cr_expect_eq(status.done, 1);
    cr_expect_eq(status.threads, 1);
    cr_expect_eq(atomic_load(&user.news), 1);
    stop(&pool);
    expect_once(&failing->steps[0], 1, ST_LIBRARY, __LINE__);
    cr_expect_str_eq(failing->steps[0].err.text, "as the script says");
    expect_once(&silent->steps[0], 1, ST_IO, __LINE__);
    cr_expect_str_eq(silent->steps[0].err.text, "the task gave no reason");
    EXPECT_RAN(&good->steps[0]);
    free(failing);
    free(silent);
    free(good);
}

Test(pool_failure, cancels_the_rest_of_the_group_after_its_own_completion, .timeout = TIMEOUT_S)
{
    struct diary diary = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct plan *plan = plan_new(POOL_BULK, 1, 5, true);
    struct pool *pool = start(2);
    sem_t entered = sem_closed();
    sem_t gate = sem_closed();

    for (size_t i = 0; i < 6; i++) {
        plan->steps[i].diary = &diary;
        plan->steps[i].done_letter = i == 1 ? 'f' : 'c';
    }
    plan->steps[5].done_letter = 'L';
    plan->steps[0].is_asking = true; /* runs on the other thread until it is told to stop */
    plan->steps[0].entered = &entered;
    plan->steps[1].result = ST_LIBRARY;
    plan->steps[1].gate = &gate;
    submit(pool, plan);
    wait_for(&entered);
    MUST(sem_post(&gate));
    stop(&pool);
    expect_once(&plan->steps[0], 1, ST_CANCELLED, __LINE__);
    expect_once(&plan->steps[1], 1, ST_LIBRARY, __LINE__);
    for (size_t i = 2; i < 6; i++)
        EXPECT_CANCELLED(&plan->steps[i]);
    cr_expect_str_eq(diary.letters, "fccccL");
    free(plan);
}

Test(pool_failure, cancels_the_rest_of_a_group_without_a_last_task, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 4, false);
    struct pool *pool = start(1);

    plan->steps[1].result = ST_NO_MEMORY;
    submit(pool, plan);
    stop(&pool);
    EXPECT_RAN(&plan->steps[0]);
    expect_once(&plan->steps[1], 1, ST_NO_MEMORY, __LINE__);
    EXPECT_CANCELLED(&plan->steps[2]);
    EXPECT_CANCELLED(&plan->steps[3]);
    free(plan);
}

/* ---- pool_cancel ---- */

Test(pool_cancel, completes_queued_tasks_without_running_them, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 6, true);
    struct plan *other = plan_new(POOL_BULK, 1, 1, false);
    struct pool *pool = start(1);
    sem_t done = sem_closed();
    struct holder holder;

    plan->steps[6].done_entered = &done;
    hold(&holder, pool);
    submit(pool, plan);
    submit(pool, other);
    pool_cancel(pool, &plan->group);
    /* The only worker is held: the watchdog completes them. */
    wait_for(&done);
    cr_expect_eq(pool_status(pool).cancelled, 7);
    cr_expect_eq(pool_status(pool).queued[POOL_BULK], 1);
    let_go(&holder);
    stop(&pool);
    for (size_t i = 0; i < 7; i++)
        EXPECT_CANCELLED(&plan->steps[i]);
    EXPECT_RAN(&other->steps[0]);
    free(plan);
    free(other);
    free(holder.plan);
}

Test(pool_cancel, stops_a_running_task_and_the_rest_of_its_group, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 3, true);
    struct pool *pool = start(1);
    sem_t entered = sem_closed();

    plan->steps[1].is_asking = true;
    plan->steps[1].entered = &entered;
    submit(pool, plan);
    wait_for(&entered);
    pool_cancel(pool, &plan->group);
    pool_cancel(pool, &plan->group);
    stop(&pool);
    EXPECT_RAN(&plan->steps[0]);
    expect_once(&plan->steps[1], 1, ST_CANCELLED, __LINE__);
    cr_expect_str_eq(plan->steps[1].err.text, "cancelled while it ran");
    EXPECT_CANCELLED(&plan->steps[2]);
    EXPECT_CANCELLED(&plan->steps[3]);
    free(plan);
}

Test(pool_cancel, cancels_a_last_task_whose_parts_all_went_well, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 1, true);
    struct pool *pool = start(1);
    sem_t entered = sem_closed();
    sem_t gate = sem_closed();

    plan->steps[0].entered = &entered;
    plan->steps[0].gate = &gate;
    submit(pool, plan);
    wait_for(&entered);
    pool_cancel(pool, &plan->group);
    MUST(sem_post(&gate));
    stop(&pool);
    EXPECT_RAN(&plan->steps[0]);
    EXPECT_CANCELLED(&plan->steps[1]);
    free(plan);
}

static pthread_mutex_t owner_mutex = PTHREAD_MUTEX_INITIALIZER;

static void complete_under_owner_mutex(struct step *step)
{
    MUST(pthread_mutex_lock(&owner_mutex));
    MUST(pthread_mutex_unlock(&owner_mutex));
    free_plan_of(step);
}

Test(pool_cancel, may_hold_the_lock_that_the_last_completion_takes, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 2, true);
    struct pool *pool = start(1);
    sem_t entered = sem_closed();
    sem_t gate = sem_closed();
    sem_t done = sem_closed();

    plan->steps[2].entered = &entered;
    plan->steps[2].gate = &gate;
    plan->steps[2].done_entered = &done;
    plan->steps[2].on_done = complete_under_owner_mutex;
    MUST(pthread_mutex_lock(&owner_mutex));
    submit(pool, plan);
    wait_for(&entered);
    MUST(sem_post(&gate));
    pool_cancel(pool, &plan->group);
    pool_cancel(pool, &plan->group);
    MUST(pthread_mutex_unlock(&owner_mutex));
    wait_for(&done);
    stop(&pool);
}

/* ---- task_should_stop ---- */

Test(task_should_stop, says_that_the_deadline_has_passed, .timeout = TIMEOUT_S)
{
    struct pool_config config = config_of(1);
    struct plan *plan = plan_new(POOL_BULK, 1, 1, true);
    sem_t done = sem_closed();
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    pool = start_config(&config);
    plan->steps[0].is_asking = true;
    plan->steps[1].done_entered = &done;
    submit(pool, plan);
    wait_for(&done);
    cr_expect_eq(pool_status(pool).timed_out, 1);
    cr_expect_eq(pool_status(pool).threads_given_up, 0);
    stop(&pool);
    expect_once(&plan->steps[0], 1, ST_TIMED_OUT, __LINE__);
    cr_expect_eq(plan->steps[0].lates, 0);
    EXPECT_CANCELLED(&plan->steps[1]);
    free(plan);
}

Test(task_should_stop, is_quiet_before_the_deadline_and_without_a_cause)
{
    struct task_group group = {.parts_count = 1};
    struct task task = {.group = &group};
    struct error err = {0};

    cr_expect_eq(task_should_stop(&task, &err), ST_OK);
    cr_expect_eq(err.status, ST_OK);
    atomic_store(&group.is_cancelled, true);
    cr_expect_eq(task_should_stop(&task, NULL), ST_CANCELLED);
    atomic_store(&task.is_overdue, true);
    cr_expect_eq(task_should_stop(&task, &err), ST_TIMED_OUT);
}

/* ---- The watchdog ---- */

/* A task hangs at its gate until it is given up; its completion posts `done`. */
struct hanging {
    struct plan *plan;
    sem_t entered, gate, done, late;
};

static void hang_step(struct hanging *hanging, size_t parts, bool has_last, size_t hung)
{
    struct step *step;

    hanging->entered = sem_closed();
    hanging->gate = sem_closed();
    hanging->done = sem_closed();
    hanging->late = sem_closed();
    hanging->plan = plan_new(POOL_BULK, 1, parts, has_last);
    step = &hanging->plan->steps[hung];
    step->entered = &hanging->entered;
    step->gate = &hanging->gate;
    step->done_entered = &hanging->done;
    step->late = &hanging->late;
}

static void expect_given_up_once(struct step *step, int lates)
{
    cr_expect_eq(atomic_load(&step->runs), 1);
    cr_expect_eq(atomic_load(&step->given_ups), 1);
    cr_expect_eq(atomic_load(&step->dones), 0);
    cr_expect_eq(atomic_load(&step->lates), lates);
    cr_expect_eq(step->status, ST_TIMED_OUT);
}

/* All threads run a task at once: none is missing. */
static void expect_full_strength(struct pool *pool, size_t threads)
{
    struct plan *plan = plan_new(POOL_URGENT, 5, threads, false);
    sem_t entered = sem_closed();
    sem_t gate = sem_closed();

    for (size_t i = 0; i < threads; i++) {
        plan->steps[i].entered = &entered;
        plan->steps[i].gate = &gate;
        plan->steps[i].done_entered = &entered;
    }
    submit(pool, plan);
    for (size_t i = 0; i < threads; i++)
        wait_for(&entered);
    cr_expect_eq(pool_status(pool).threads, threads);
    cr_expect_eq(pool_status(pool).busy, threads);
    for (size_t i = 0; i < threads; i++)
        MUST(sem_post(&gate));
    for (size_t i = 0; i < threads; i++)
        wait_for(&entered);
    free(plan);
}

/* Stop after all late threads were let go: once they have left, all memory is free. */
static void stop_after_late(struct pool **pool, size_t threads)
{
    expect_full_strength(*pool, threads);
    wait_for_workers_left(threads);
    stop(pool);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

Test(pool_watchdog, gives_up_a_hung_task_and_takes_it_back_late, .timeout = TIMEOUT_S)
{
    struct context_user user = {0};
    struct pool_config config = config_with_contexts(2, &user);
    struct hanging hanging;
    uint64_t before_ms = now_ms();
    struct pool_status status;
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS + 50;
    pool = start_config(&config);
    hang_step(&hanging, 1, false, 0);
    submit(pool, hanging.plan);
    wait_for(&hanging.done);
    cr_expect_geq(now_ms() - before_ms, 2 * FAST_MS + 50);
    expect_full_strength(pool, 2);
    status = pool_status(pool);
    cr_expect_eq(status.threads_given_up, 1);
    cr_expect_eq(status.timed_out, 1);
    cr_expect_eq(atomic_load(&user.news), 3);
    cr_expect_eq(atomic_load(&user.frees), 0);
    cr_expect_eq(atomic_load(&hanging.plan->steps[0].lates), 0);
    MUST(sem_post(&hanging.gate));
    wait_for(&hanging.late);
    stop_after_late(&pool, 2);
    expect_given_up_once(&hanging.plan->steps[0], 1);
    cr_expect_not_null(strstr(hanging.plan->steps[0].err.text, "250 ms"));
    cr_expect_eq(atomic_load(&user.frees), 3);
    free(hanging.plan);
}

/* The thread hangs on when the process of the test ends: what it holds must not look like a leak.
 */
static void stop_while_one_hangs_for_ever(enum pool_stop_mode mode)
{
    static struct hanging hanging;
    struct context_user user = {0};
    struct pool_config config = config_with_contexts(2, &user);
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS;
    pool = start_config(&config);
    hang_step(&hanging, 1, false, 0);
    submit(pool, hanging.plan);
    wait_for(&hanging.entered);
    cr_expect_not(pool_stop(&pool, mode));
    cr_expect_null(pool);
    expect_given_up_once(&hanging.plan->steps[0], 0);
    cr_expect_eq(atomic_load(&user.news) - atomic_load(&user.frees), 1);
    wait_for_workers_left(1);
}

Test(pool_watchdog, gives_up_a_task_that_never_returns_in_a_drain, .timeout = TIMEOUT_S)
{
    stop_while_one_hangs_for_ever(POOL_STOP_DRAIN);
}

Test(pool_watchdog, gives_up_a_task_that_never_returns_in_a_stop_at_once, .timeout = TIMEOUT_S)
{
    stop_while_one_hangs_for_ever(POOL_STOP_NOW);
}

/* A task that hangs until its given_up() is under way, and says when run() is about to return. */
struct returning {
    struct task task;
    sem_t gate, late;
    atomic_int tid, lates, lates_while_told;
    atomic_bool is_returning;
};

static enum status returning_run(struct task *task, void *context, struct error *err)
{
    struct returning *returning = (struct returning *)(void *)task;

    (void)context;
    atomic_store(&returning->tid, gettid());
    wait_for(&returning->gate);
    atomic_store(&returning->is_returning, true);
    return error_set(err, ST_LIBRARY, "nobody hears this");
}

/* The kernel's letter for what a thread does; 0 when it is gone. */
static char thread_state(int tid)
{
    char path[64];
    char state = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    (void)fclose(file);
    return state;
}

/* Returns when the thread sleeps behind run(), or has gone further than it may. */
static void returning_given_up(struct task *task, const struct error *err)
{
    struct returning *returning = (struct returning *)(void *)task;

    cr_expect_eq(err->status, ST_TIMED_OUT);
    MUST(sem_post(&returning->gate));
    while (!atomic_load(&returning->is_returning))
        (void)sched_yield();
    while (atomic_load(&returning->lates) == 0 && thread_state(atomic_load(&returning->tid)) == 'R')
        (void)sched_yield();
    atomic_store(&returning->lates_while_told, atomic_load(&returning->lates));
}

static void returning_late(struct task *task)
{
    struct returning *returning = (struct returning *)(void *)task;

    atomic_fetch_add(&returning->lates, 1);
    MUST(sem_post(&returning->late));
}

Test(pool_watchdog, lets_a_late_thread_wait_for_the_end_of_given_up, .timeout = TIMEOUT_S)
{
    struct returning returning = {
        .task = {returning_run, step_done, returning_given_up, returning_late, NULL, false},
        .gate = sem_closed(),
        .late = sem_closed(),
    };
    struct task *parts[] = {&returning.task};
    struct task_group group = {.parts = parts, .parts_count = 1};
    struct task_group *taken = &group;
    struct pool *pool = start_fast(1);

    cr_assert_eq(pool_submit_take(pool, &taken, NULL), ST_OK);
    wait_for(&returning.late);
    stop_after_late(&pool, 1);
    cr_expect_eq(atomic_load(&returning.lates_while_told), 0);
    cr_expect_eq(atomic_load(&returning.lates), 1);
}

Test(pool_watchdog, cancels_the_group_of_a_part_that_is_given_up, .timeout = TIMEOUT_S)
{
    struct hanging hanging;
    struct pool *pool = start_fast(1);
    sem_t done = sem_closed();

    hang_step(&hanging, 3, true, 1);
    hanging.plan->steps[3].done_entered = &done;
    submit(pool, hanging.plan);
    wait_for(&done);
    EXPECT_RAN(&hanging.plan->steps[0]);
    expect_given_up_once(&hanging.plan->steps[1], 0);
    EXPECT_CANCELLED(&hanging.plan->steps[2]);
    EXPECT_CANCELLED(&hanging.plan->steps[3]);
    MUST(sem_post(&hanging.gate));
    wait_for(&hanging.late);
    stop_after_late(&pool, 1);
    free(hanging.plan);
}

Test(pool_watchdog, frees_the_place_of_a_heavy_task_that_is_given_up, .timeout = TIMEOUT_S)
{
    struct hanging hanging;
    struct pool *pool = start_fast(2);
    struct plan *heavy = plan_new(POOL_BULK, 1, 1, true);
    sem_t done = sem_closed();

    hang_step(&hanging, 1, true, 1);
    hanging.plan->group.last_is_heavy = true;
    heavy->group.last_is_heavy = true;
    heavy->steps[1].done_entered = &done;
    submit(pool, hanging.plan);
    wait_for(&hanging.entered);
    submit(pool, heavy);
    wait_for(&done);
    wait_for(&hanging.done);
    MUST(sem_post(&hanging.gate));
    wait_for(&hanging.late);
    stop_after_late(&pool, 2);
    expect_given_up_once(&hanging.plan->steps[1], 1);
    EXPECT_RAN(&heavy->steps[1]);
    free(hanging.plan);
    free(heavy);
}

Test(pool_watchdog, tries_again_when_a_replacement_has_no_context, .timeout = TIMEOUT_S)
{
    sem_t failed = sem_closed();
    struct context_user user = {.fail_from = 2, .fail_to = 3, .failed = &failed};
    struct pool_config config = config_with_contexts(1, &user);
    struct plan *plan = plan_new(POOL_BULK, 1, 1, false);
    struct hanging hanging;
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS;
    pool = start_config(&config);
    hang_step(&hanging, 1, false, 0);
    submit(pool, hanging.plan);
    wait_for(&failed);
    cr_expect_eq(pool_status(pool).threads, 0);
    submit(pool, plan);
    wait_for(&failed);
    expect_full_strength(pool, 1);
    cr_expect_eq(atomic_load(&user.news), 4);
    MUST(sem_post(&hanging.gate));
    wait_for(&hanging.late);
    stop_after_late(&pool, 1);
    EXPECT_RAN(&plan->steps[0]);
    free(plan);
    free(hanging.plan);
}

Test(pool_watchdog, says_when_more_threads_are_given_up_than_allowed, .timeout = TIMEOUT_S)
{
    struct hanging hanging[2];
    struct pool *pool = start_fast(1);

    for (size_t i = 0; i < 2; i++) {
        hang_step(&hanging[i], 1, false, 0);
        submit(pool, hanging[i].plan);
        wait_for(&hanging[i].done);
        cr_expect_eq(pool_status(pool).threads_given_up, i + 1);
        cr_expect_eq(pool_status(pool).is_over_given_up_max, i == 1);
    }
    for (size_t i = 0; i < 2; i++) {
        MUST(sem_post(&hanging[i].gate));
        wait_for(&hanging[i].late);
    }
    stop_after_late(&pool, 1);
    for (size_t i = 0; i < 2; i++)
        free(hanging[i].plan);
}

/* ---- pool_stop ---- */

Test(pool_stop, drains_what_is_queued, .timeout = TIMEOUT_S)
{
    struct plan *plans[3] = {plan_new(POOL_BULK, 1, 9, true), plan_new(POOL_BULK, 2, 9, true),
                             plan_new(POOL_URGENT, 1, 9, true)};
    struct pool *pool = start(2);

    for (size_t i = 0; i < 3; i++)
        submit(pool, plans[i]);
    cr_expect(pool_stop(&pool, POOL_STOP_DRAIN));
    cr_expect_null(pool);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 10; k++)
            EXPECT_RAN(&plans[i]->steps[k]);
        free(plans[i]);
    }
}

Test(pool_stop, cancels_at_once_what_is_queued_and_what_runs, .timeout = TIMEOUT_S)
{
    struct plan *running = plan_new(POOL_BULK, 1, 2, true);
    struct plan *queued = plan_new(POOL_URGENT, 1, 3, true);
    struct pool *pool = start(1);
    sem_t entered = sem_closed();

    running->steps[0].is_asking = true;
    running->steps[0].entered = &entered;
    submit(pool, running);
    wait_for(&entered);
    submit(pool, queued);
    cr_expect(pool_stop(&pool, POOL_STOP_NOW));
    cr_expect_null(pool);
    expect_once(&running->steps[0], 1, ST_CANCELLED, __LINE__);
    EXPECT_CANCELLED(&running->steps[1]);
    EXPECT_CANCELLED(&running->steps[2]);
    for (size_t i = 0; i < 4; i++)
        EXPECT_CANCELLED(&queued->steps[i]);
    free(running);
    free(queued);
}

Test(pool_stop, cancels_a_last_task_that_becomes_ready_during_the_stop, .timeout = TIMEOUT_S)
{
    struct plan *plan = plan_new(POOL_BULK, 1, 1, true);
    struct plan *queued = plan_new(POOL_BULK, 1, 1, false);
    struct pool *pool = start(1);
    sem_t completing = sem_closed();
    sem_t cancelled = sem_closed();

    /* The watchdog completes `queued` during the stop, and only that lets the part's completion,
     * which is neither queued nor running, return. */
    plan->steps[0].done_entered = &completing;
    plan->steps[0].done_gate = &cancelled;
    queued->steps[0].done_entered = &cancelled;
    submit(pool, plan);
    wait_for(&completing);
    submit(pool, queued);
    cr_expect(pool_stop(&pool, POOL_STOP_NOW));
    EXPECT_RAN(&plan->steps[0]);
    EXPECT_CANCELLED(&plan->steps[1]);
    EXPECT_CANCELLED(&queued->steps[0]);
    free(plan);
    free(queued);
}

Test(pool_stop, returns_false_and_its_memory_goes_with_the_late_thread, .timeout = TIMEOUT_S)
{
    struct context_user user = {0};
    struct pool_config config = config_with_contexts(2, &user);
    struct hanging hanging[2];
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS;
    pool = start_config(&config);
    for (size_t i = 0; i < 2; i++) {
        hang_step(&hanging[i], 1, false, 0);
        submit(pool, hanging[i].plan);
        wait_for(&hanging[i].entered);
    }
    cr_expect_not(pool_stop(&pool, POOL_STOP_NOW));
    cr_expect_null(pool);
    for (size_t i = 0; i < 2; i++) {
        MUST(sem_post(&hanging[i].gate));
        wait_for(&hanging[i].late);
        expect_given_up_once(&hanging[i].plan->steps[0], 1);
    }
    wait_for_workers_left(0);
    cr_expect_eq(atomic_load(&user.frees), atomic_load(&user.news));
    for (size_t i = 0; i < 2; i++)
        free(hanging[i].plan);
}

Test(pool_stop, cancels_the_rest_when_no_thread_is_left_to_drain, .timeout = TIMEOUT_S)
{
    struct context_user user = {.fail_from = 2, .fail_to = INT32_MAX};
    struct pool_config config = config_with_contexts(1, &user);
    struct plan *plan = plan_new(POOL_BULK, 1, 2, true);
    struct hanging hanging;
    struct pool *pool;

    config.task_deadline_ms = FAST_MS;
    config.task_grace_ms = FAST_MS;
    pool = start_config(&config);
    hang_step(&hanging, 1, false, 0);
    submit(pool, hanging.plan);
    submit(pool, plan);
    cr_expect_not(pool_stop(&pool, POOL_STOP_DRAIN));
    for (size_t i = 0; i < 3; i++)
        EXPECT_CANCELLED(&plan->steps[i]);
    MUST(sem_post(&hanging.gate));
    wait_for(&hanging.late);
    wait_for_workers_left(0);
    free(plan);
    free(hanging.plan);
}

/* ---- pool_status ---- */

Test(pool_status, counts_what_waits_runs_and_has_ended, .timeout = TIMEOUT_S)
{
    struct pool *pool = start(2);
    struct plan *plan = plan_new(POOL_BULK, 1, 3, true);
    struct plan *failing = plan_new(POOL_URGENT, 1, 1, false);
    sem_t done = sem_closed();
    struct holder holders[2];
    struct pool_status status;

    failing->steps[0].result = ST_IO;
    plan->steps[3].done_entered = &done;
    hold(&holders[0], pool);
    hold(&holders[1], pool);
    status = pool_status(pool);
    cr_expect_eq(status.threads, 2);
    cr_expect_eq(status.busy, 2);
    cr_expect_eq(status.queued[POOL_URGENT] + status.queued[POOL_BULK], 0);
    cr_expect_eq(status.oldest_wait_ms, 0);
    submit(pool, plan);
    submit(pool, failing);
    status = pool_status(pool);
    cr_expect_eq(status.queued[POOL_URGENT], 1);
    cr_expect_eq(status.queued[POOL_BULK], 4);
    for (uint64_t from_ms = now_ms(); now_ms() - from_ms < 3;)
        (void)sched_yield();
    cr_expect_geq(pool_status(pool).oldest_wait_ms, 2);
    cr_expect_lt(pool_status(pool).oldest_wait_ms, TIMEOUT_S * 1000);
    let_go(&holders[0]);
    wait_for(&done);
    status = pool_status(pool);
    cr_expect_eq(status.done, 5);
    cr_expect_eq(status.failed, 1);
    cr_expect_eq(status.cancelled + status.timed_out + status.threads_given_up, 0);
    cr_expect_eq(status.busy, 1);
    cr_expect_eq(status.oldest_wait_ms, 0);
    cr_expect_not(status.is_over_given_up_max);
    let_go(&holders[1]);
    stop(&pool);
    free(plan);
    free(failing);
    free(holders[0].plan);
    free(holders[1].plan);
}
