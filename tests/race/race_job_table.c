/*
 * Jobs under way while others look, wait, give up waiting, delete, list and sweep. What went in
 * must come out: every admitted job ends once, every waiter is woken once or has stopped waiting
 * for good, no ticket's room is lost, and a client that polls never sees a job go backwards.
 */
#include "service/job_table.h"

#include "domain/must.h"
#include "tests/support/ready_press.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORKERS = 3,
    CLIENTS = 4,
    JOBS_A_CLIENT = 600,
    TICKETS_MAX = 5,
    SLICE = 2,
    QUEUE_TICKETS_MAX = 12,
    WAITERS_A_JOB = 4,
    LIST_LIMIT = 20,
};

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                             \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static struct ready_press ready;
static struct job_store *store;
static struct job_table *table;
static atomic_size_t admitted, ended, refused;
static atomic_size_t waits_begun, waits_woken, waits_stopped;
static atomic_size_t outcomes[JOB_STATES];
static atomic_int clients_left = CLIENTS;

struct waiting {
    struct job_waiter waiter; /* first: it is found again by it */
    atomic_int wakes;
};

/* What belongs to one thread that admits. */
struct client {
    char name[JOB_CLIENT_BYTES_MAX + 1];
    uint32_t random;
};

static uint32_t draw(struct client *client, uint32_t below)
{
    client->random = client->random * UINT32_C(1664525) + UINT32_C(1013904223);
    return (client->random >> 8) % below;
}

static void note_end(void *user, const struct job_record *record, enum status status)
{
    (void)user;
    CHECK(job_state_is_end(record->state));
    CHECK((record->state == JOB_SUCCEEDED) == (status == ST_OK));
    CHECK(record->finished_ms >= record->created_ms && record->expires_ms > record->finished_ms);
    atomic_fetch_add(&outcomes[record->state], 1);
    atomic_fetch_add(&ended, 1);
}

static void wake(struct job_waiter *waiter)
{
    struct waiting *waiting = (struct waiting *)(void *)waiter;
    struct job_view view = {0};

    /* As the service does: look at the job from here. */
    if (job_table_view(table, NULL, waiter->id, &view, NULL) == ST_OK)
        CHECK(view.record.state != JOB_QUEUED);
    job_record_clear(&view.record);
    atomic_fetch_add(&waits_woken, 1);
    CHECK(atomic_fetch_add(&waiting->wakes, 1) == 0);
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Either it was woken, or it never will be. */
static void settle(struct waiting *waiting, bool gives_up)
{
    if (gives_up && job_table_unwait(table, &waiting->waiter)) {
        CHECK(atomic_load(&waiting->wakes) == 0);
        atomic_fetch_add(&waits_stopped, 1);
        return;
    }
    while (atomic_load(&waiting->wakes) == 0)
        pause_briefly();
}

/* ---- one job ---- */

static bool admit(struct client *client, struct waiting *waiting, char id[JOB_ID_CHARS + 1])
{
    struct job_order order = {
        .client = client->name,
        .lane = draw(client, 3) == 0 ? POOL_URGENT : POOL_BULK,
        .client_key = draw(client, 2),
        .key = ready_event_key(),
    };
    struct ready_batch const asked = {.tickets_count = 1 + draw(client, TICKETS_MAX)};
    struct problems problems = {0};
    struct batch batch = {0};
    enum status st;

    ready_batch_read(&asked, &batch);
    st = job_table_admit_move(table, &order, &batch, waiting != NULL ? &waiting->waiter : NULL, id,
                              &problems, NULL);
    CHECK(st == ST_OK || st == ST_BUSY);
    CHECK((st == ST_OK) == (batch.tickets_count == 0));
    atomic_fetch_add(st == ST_OK ? &admitted : &refused, 1);
    if (st == ST_BUSY)
        CHECK(job_table_retry_after_s(table, asked.tickets_count) >= 1);
    batch_clear(&batch);
    problems_clear(&problems);
    return st == ST_OK;
}

struct last_look {
    enum job_state state;
    size_t tickets_done;
    bool is_deleted; /* so it is cancelled, or gone */
};

/* Returns whether the job is still there. */
static bool look(const struct client *client, const char *id, struct last_look *last)
{
    struct job_view view = {0};
    enum status const st = job_table_view(table, client->name, id, &view, NULL);

    CHECK(st == ST_OK || st == ST_NOT_FOUND);
    if (st == ST_OK) {
        CHECK(view.record.state >= last->state);
        CHECK(view.tickets_done >= last->tickets_done);
        CHECK(!last->is_deleted || view.record.state != JOB_SUCCEEDED);
        CHECK((view.record.document != NULL) == (view.record.state == JOB_SUCCEEDED));
        last->state = view.record.state;
        last->tickets_done = view.tickets_done;
    }
    job_record_clear(&view.record);
    return st == ST_OK;
}

static void wait_for(const char *id, enum job_state state, bool for_end, struct waiting *waiting)
{
    if (job_table_wait(table, id, state, for_end, &waiting->waiter))
        atomic_fetch_add(&waits_begun, 1);
    else
        atomic_store(&waiting->wakes, 1); /* nobody will */
}

static void follow(struct client *client, const char *id)
{
    struct waiting waitings[WAITERS_A_JOB];
    struct last_look last = {0};

    for (size_t i = 0; i < WAITERS_A_JOB; i++) {
        waitings[i] = (struct waiting){.waiter = {.wake = wake}};
        wait_for(id, last.state, i % 2 == 0, &waitings[i]);
        look(client, id, &last);
    }
    if (draw(client, 4) == 0)
        last.is_deleted = job_table_delete(table, client->name, id, NULL) == ST_OK;
    while (draw(client, 3) != 0 && look(client, id, &last))
        pause_briefly();
    for (size_t i = 0; i < WAITERS_A_JOB; i++)
        settle(&waitings[i], draw(client, 2) == 0);
    look(client, id, &last);
    if (draw(client, 3) == 0)
        job_table_fetched(table, id);
}

/* Wait from the start; then erase the job from another state than it may be in. */
static void admit_and_await(struct client *client)
{
    struct waiting waiting = {.waiter = {.wake = wake}};
    char id[JOB_ID_CHARS + 1];

    if (!admit(client, &waiting, id)) {
        CHECK(!job_table_unwait(table, &waiting.waiter) && atomic_load(&waiting.wakes) == 0);
        pause_briefly();
        return;
    }
    atomic_fetch_add(&waits_begun, 1);
    if (draw(client, 4) == 0)
        CHECK(job_table_delete(table, client->name, id, NULL) != ST_NO_MEMORY);
    settle(&waiting, draw(client, 4) == 0);
}

static void *client_run(void *arg)
{
    struct client *client = arg;

    for (int i = 0; i < JOBS_A_CLIENT; i++) {
        char id[JOB_ID_CHARS + 1];

        if (draw(client, 2) == 0)
            admit_and_await(client);
        else if (admit(client, NULL, id))
            follow(client, id);
        else
            pause_briefly();
    }
    atomic_fetch_sub(&clients_left, 1);
    return NULL;
}

/* ---- those who look at all jobs ---- */

static void list_all(void)
{
    struct job_list_query const query = {
        .client = NULL, .state = -1, .before = UINT64_MAX, .limit = LIST_LIMIT};
    struct job_view views[LIST_LIMIT] = {0};
    uint64_t before = query.before;
    size_t count = 0;

    CHECK(job_table_list(table, &query, views, &count, NULL) == ST_OK);
    for (size_t i = 0; i < count; i++) {
        CHECK(views[i].record.number < before);
        before = views[i].record.number;
        CHECK(views[i].tickets_done <= views[i].record.tickets_total);
        job_record_clear(&views[i].record);
    }
}

static void *observer_run(void *unused)
{
    while (atomic_load(&clients_left) > 0) {
        struct job_table_status const status = job_table_status(table);
        struct press *press = job_table_press_ref(table);

        CHECK(status.tickets_queued <= QUEUE_TICKETS_MAX && status.tickets_per_s >= 0);
        list_all();
        job_table_sweep(table, 0);
        if (job_table_reserve(table, 1, NULL) == ST_OK)
            job_table_release(table, 1);
        job_table_swap_press(table, &press); /* for itself, or for nothing */
        press_unref(&press);
        pause_briefly();
    }
    return unused;
}

/* ---- the race ---- */

static void start(void)
{
    struct job_store_limits const limits = {
        .jobs_max = 12, .documents_bytes_max = 2000000, .gone_ttl_ms = 1};
    struct job_table_config config = {
        .queue_tickets_max = QUEUE_TICKETS_MAX,
        .render_bytes_max = (size_t)1 << 30,
        .job_ttl_ms = 100000,
        .ended = note_end,
    };

    ready_press_start(&ready, &(struct ready_press_config){.threads = WORKERS,
                                                           .slice_tickets = SLICE,
                                                           .queue_tasks_max = 1000,
                                                           .task_deadline_ms = 60000});
    CHECK(job_store_memory_open(&limits, &store, NULL) == ST_OK);
    config.press = ready.press;
    config.store = store;
    CHECK(job_table_new(&config, &table, NULL) == ST_OK);
}

static void run(void)
{
    pthread_t threads[CLIENTS + 1];
    struct client clients[CLIENTS];

    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.random = (uint32_t)i + 1};
        snprintf(clients[i].name, sizeof clients[i].name, "client-%zu", i);
        CHECK(pthread_create(&threads[i], NULL, client_run, &clients[i]) == 0);
    }
    CHECK(pthread_create(&threads[CLIENTS], NULL, observer_run, NULL) == 0);
    for (size_t i = 0; i < CLIENTS + 1; i++)
        MUST(pthread_join(threads[i], NULL));
}

int main(void)
{
    struct job_table_status status;

    start();
    run();
    job_table_drain(table);
    job_table_cancel_all(table);
    ready_press_stop_pool(&ready);
    status = job_table_status(table);
    CHECK(status.jobs_running == 0 && status.tickets_queued == 0 && status.waiters == 0);
    CHECK(atomic_load(&ended) == atomic_load(&admitted));
    CHECK(atomic_load(&waits_woken) + atomic_load(&waits_stopped) == atomic_load(&waits_begun));
    job_table_free(&table);
    store->calls->close(&store);
    ready_press_stop(&ready);
    printf("%zu jobs admitted, %zu refused, %zu succeeded, %zu cancelled; %zu waits, %zu stopped\n",
           atomic_load(&admitted), atomic_load(&refused), atomic_load(&outcomes[JOB_SUCCEEDED]),
           atomic_load(&outcomes[JOB_CANCELLED]), atomic_load(&waits_begun),
           atomic_load(&waits_stopped));
    CHECK(atomic_load(&outcomes[JOB_SUCCEEDED]) > 0 && atomic_load(&outcomes[JOB_CANCELLED]) > 0);
    CHECK(atomic_load(&outcomes[JOB_FAILED]) == 0);
    CHECK(atomic_load(&waits_stopped) > 0 && atomic_load(&refused) > 0);
    return EXIT_SUCCESS;
}
