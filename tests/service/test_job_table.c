#include "service/job_table.h"

#include "domain/must.h"
#include "service/drain.h"
#include "tests/support/failing_memory.h"
#include "tests/support/ready_press.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SLICE = 2,
    QUEUE_TICKETS_MAX = 20,
    QUEUE_TASKS_MAX = 64,
    JOBS_MAX = 100,
    TTL_MS = 100000,
    TIMEOUT_S = 60,
    GATE_CLIENT = 77,
};

static struct ready_press ready;
static struct job_store *store;
static struct job_table *table;
static struct error err;
static struct problems problems;
static struct gate gate;

/* The ends that the table told of. */
static atomic_size_t ends;
static struct job_record last_end; /* without its document */
static enum status last_status;

static void note_end(void *user, const struct job_record *record, enum status status)
{
    cr_expect_eq(user, &ready);
    cr_expect_eq((record->document != NULL), (record->state == JOB_SUCCEEDED));
    last_end = *record;
    last_end.document = NULL;
    last_status = status;
    atomic_fetch_add(&ends, 1);
}

/* ---- a store that fails when a test says so ---- */

struct faulty {
    struct job_store store; /* first */
    struct job_store_calls calls;
    struct job_store *real;
    atomic_size_t puts_bad, updates_good, updates_bad; /* the next ones; good ones first */
    void (*on_put)(const char *id);                    /* after it; may be NULL */
    void (*on_end)(const char *id);                    /* before the update; likewise */
};
static struct faulty faulty;

static bool take_one(atomic_size_t *left)
{
    if (atomic_load(left) == 0)
        return false;
    atomic_fetch_sub(left, 1);
    return true;
}

static enum status faulty_put(struct job_store *base, struct job_record *record, struct error *e)
{
    enum status st;

    (void)base;
    if (take_one(&faulty.puts_bad))
        return error_set(e, ST_IO, "the disk is full");
    st = faulty.real->calls->put(faulty.real, record, e);
    if (st == ST_OK && faulty.on_put != NULL)
        faulty.on_put(record->id);
    return st;
}

static enum status faulty_update(struct job_store *base, struct job_record *record, struct error *e)
{
    (void)base;
    if (!take_one(&faulty.updates_good) && take_one(&faulty.updates_bad))
        return error_set(e, ST_IO, "the disk is full");
    if (job_state_is_end(record->state) && faulty.on_end != NULL)
        faulty.on_end(record->id);
    return faulty.real->calls->update_move(faulty.real, record, e);
}

static enum status faulty_get(struct job_store *base, const char *id, struct job_record *record,
                              struct error *e)
{
    (void)base;
    return faulty.real->calls->get(faulty.real, id, record, e);
}

static enum status faulty_list(struct job_store *base, const struct job_list_query *query,
                               struct job_record *records, size_t *count, struct error *e)
{
    (void)base;
    return faulty.real->calls->list(faulty.real, query, records, count, e);
}

static enum status faulty_remove(struct job_store *base, const char *id, struct error *e)
{
    (void)base;
    return faulty.real->calls->remove(faulty.real, id, e);
}

static void faulty_sweep(struct job_store *base, int64_t now_ms)
{
    (void)base;
    faulty.real->calls->sweep(faulty.real, now_ms);
}

static bool faulty_was_here(struct job_store *base, const char *client, const char *id)
{
    (void)base;
    return faulty.real->calls->was_here(faulty.real, client, id);
}

static void faulty_open(struct job_store *real)
{
    faulty.real = real;
    faulty.calls = (struct job_store_calls){
        .put = faulty_put,
        .update_move = faulty_update,
        .get = faulty_get,
        .list = faulty_list,
        .remove = faulty_remove,
        .sweep = faulty_sweep,
        .was_here = faulty_was_here,
    };
    faulty.store.calls = &faulty.calls;
}

/* ---- fixture ---- */

struct variant {
    size_t slice_tickets, queue_tasks_max, queue_tickets_max, render_bytes_max, jobs_max;
    uint32_t task_deadline_ms;
};

static void start_with(struct variant variant)
{
    struct job_store_limits const limits = {
        .jobs_max = variant.jobs_max != 0 ? variant.jobs_max : JOBS_MAX,
        .documents_bytes_max = 100000000,
        .gone_ttl_ms = TTL_MS,
    };
    struct job_table_config config = {
        .store = &faulty.store,
        .queue_tickets_max =
            variant.queue_tickets_max != 0 ? variant.queue_tickets_max : QUEUE_TICKETS_MAX,
        .render_bytes_max =
            variant.render_bytes_max != 0 ? variant.render_bytes_max : (size_t)1 << 30,
        .job_ttl_ms = TTL_MS,
        .ended = note_end,
        .user = &ready,
    };

    ready_press_start(
        &ready, &(struct ready_press_config){
                    .threads = 1,
                    .slice_tickets = variant.slice_tickets != 0 ? variant.slice_tickets : SLICE,
                    .queue_tasks_max =
                        variant.queue_tasks_max != 0 ? variant.queue_tasks_max : QUEUE_TASKS_MAX,
                    .task_deadline_ms =
                        variant.task_deadline_ms != 0 ? variant.task_deadline_ms : TIMEOUT_S * 1000,
                });
    cr_assert_eq(job_store_memory_open(&limits, &store, NULL), ST_OK);
    faulty_open(store);
    config.press = ready.press;
    cr_assert_eq(job_table_new(&config, &table, NULL), ST_OK);
}

static void start(void)
{
    start_with((struct variant){0});
}

static void stop(void)
{
    ready_press_stop_pool(&ready);
    job_table_free(&table);
    cr_expect_null(table);
    store->calls->close(&store);
    ready_press_stop(&ready);
    problems_clear(&problems);
}

/* Its tests start with settings of their own. */
TestSuite(job_table_limits, .fini = stop, .timeout = TIMEOUT_S);

#define TABLE_SUITE(name) TestSuite(name, .init = start, .fini = stop, .timeout = TIMEOUT_S)

/* Hold the only thread. */
static void close_gate(void)
{
    gate_submit(&gate, ready.pool, POOL_BULK, GATE_CLIENT);
    gate_await(&gate);
}

/* ---- waiters ---- */

struct waiting {
    struct job_waiter waiter; /* first: it is found again by it */
    sem_t woken;
    atomic_int wakes;
};

static void wake(struct job_waiter *waiter)
{
    struct waiting *waiting = (struct waiting *)(void *)waiter;

    atomic_fetch_add(&waiting->wakes, 1);
    MUST(sem_post(&waiting->woken));
}

static void waiting_init(struct waiting *waiting)
{
    *waiting = (struct waiting){.waiter = {.wake = wake}};
    MUST(sem_init(&waiting->woken, 0, 0));
}

static void await_wake(struct waiting *waiting)
{
    while (sem_wait(&waiting->woken) != 0)
        continue;
}

/* ---- jobs ---- */

struct asked {
    struct ready_batch batch;
    const char *client;
    const char *problems; /* of the admission */
    struct waiting *waiting;
};

static enum status admit(const struct asked *asked, char id[JOB_ID_CHARS + 1])
{
    struct job_order order = {
        .client = asked->client != NULL ? asked->client : "",
        .lane = POOL_BULK,
        .client_key = 1,
        .key = ready_event_key(),
    };
    struct batch batch = {0};
    size_t const tickets = asked->batch.tickets_count;
    enum status st;

    ready_batch_read(&asked->batch, &batch);
    if (asked->problems != NULL)
        cr_assert_eq(bytes_append(&order.problems, asked->problems, strlen(asked->problems), NULL),
                     ST_OK);
    st = job_table_admit_move(table, &order, &batch,
                              asked->waiting != NULL ? &asked->waiting->waiter : NULL, id,
                              &problems, &err);
    cr_expect_eq(batch.tickets_count, st == ST_OK ? 0 : tickets, "moved on success only");
    cr_expect_eq((order.problems.data != NULL), (st != ST_OK && asked->problems != NULL));
    bytes_clear(&order.problems);
    batch_clear(&batch);
    return st;
}

static void admit_tickets(size_t tickets_count, char id[JOB_ID_CHARS + 1])
{
    struct asked const asked = {.batch = {.tickets_count = tickets_count}};

    cr_assert_eq(admit(&asked, id), ST_OK, "%s", err.text);
}

/* Admit, and wait for the end. */
static void admit_to_its_end(struct asked asked, char id[JOB_ID_CHARS + 1])
{
    struct waiting waiting;

    waiting_init(&waiting);
    asked.waiting = &waiting;
    cr_assert_eq(admit(&asked, id), ST_OK, "%s", err.text);
    await_wake(&waiting);
}

static void view(const char *id, struct job_view *seen)
{
    *seen = (struct job_view){0};
    cr_assert_eq(job_table_view(table, "", id, seen, &err), ST_OK, "%s", err.text);
}

static enum job_state state_of(const char *id)
{
    struct job_view seen;
    enum job_state state;

    view(id, &seen);
    state = seen.record.state;
    job_record_clear(&seen.record);
    return state;
}

static bool is_found(const char *client, const char *id)
{
    struct job_view seen = {0};
    enum status const st = job_table_view(table, client, id, &seen, NULL);

    cr_expect(st == ST_OK || st == ST_NOT_FOUND);
    cr_expect(st == ST_OK || seen.record.id[0] == '\0');
    job_record_clear(&seen.record);
    return st == ST_OK;
}

/* Wait for the end of a job that is under way, or has come to it. */
static void await_end(const char *id)
{
    struct waiting waiting;

    waiting_init(&waiting);
    if (job_table_wait(table, id, JOB_QUEUED, true, &waiting.waiter))
        await_wake(&waiting);
}

static void expect_idle(void)
{
    struct job_table_status const status = job_table_status(table);

    cr_expect(status.jobs_running == 0 && status.tickets_queued == 0 && status.waiters == 0);
}

static size_t jobs_listed(void)
{
    struct job_list_query const query = {
        .client = NULL, .state = -1, .before = UINT64_MAX, .limit = JOB_LIST_MAX};
    struct job_view *views = calloc(JOB_LIST_MAX, sizeof *views);
    size_t count = 0;

    cr_assert_not_null(views);
    cr_assert_eq(job_table_list(table, &query, views, &count, &err), ST_OK);
    for (size_t i = 0; i < count; i++)
        job_record_clear(&views[i].record);
    free(views);
    return count;
}

/* Hold a job of two slices between them: it runs, with SLICE tickets done. The gate is closed. */
static void admit_half_done(char id[JOB_ID_CHARS + 1], struct waiting *for_start)
{
    struct gate first;

    gate_submit(&first, ready.pool, POOL_BULK, GATE_CLIENT);
    gate_await(&first);
    admit_tickets(2 * (size_t)SLICE, id);
    gate_submit(&gate, ready.pool, POOL_BULK, GATE_CLIENT);
    if (for_start != NULL)
        cr_expect(job_table_wait(table, id, JOB_QUEUED, false, &for_start->waiter));
    gate_open(&first);
    gate_await(&gate);
}

/* ---- admission ---- */

TABLE_SUITE(job_table_admit_move);

Test(job_table_admit_move, brings_a_batch_to_its_document)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    admit_to_its_end((struct asked){.batch = {.tickets_count = 5}}, id);
    view(id, &seen);
    cr_expect_eq(strlen(id), JOB_ID_CHARS);
    cr_expect_eq(strspn(id, "abcdefghijklmnopqrstuvwxyz234567"), JOB_ID_CHARS);
    cr_expect_not_null(strchr("aeimquy4", id[JOB_ID_CHARS - 1]), "two zero bits end it");
    cr_expect_str_eq(seen.record.id, id);
    cr_expect_str_eq(seen.record.event_name, "Jazz");
    cr_expect(seen.record.state == JOB_SUCCEEDED && seen.record.failure == ST_OK);
    cr_expect(seen.record.tickets_total == 5 && seen.tickets_done == 5);
    cr_expect_eq(seen.record.document->tickets.count, 5);
    cr_expect_eq(seen.record.problems.len, 0);
    cr_expect(seen.record.created_ms > 0 && seen.record.started_ms >= seen.record.created_ms);
    cr_expect_geq(seen.record.finished_ms, seen.record.started_ms);
    cr_expect_eq(seen.record.expires_ms, seen.record.finished_ms + TTL_MS);
    cr_expect_eq(atomic_load(&ends), 1);
    cr_expect(last_status == ST_OK && last_end.state == JOB_SUCCEEDED);
    job_record_clear(&seen.record);
    expect_idle();
}

Test(job_table_admit_move, gives_each_job_an_id_of_its_own)
{
    char a[JOB_ID_CHARS + 1];
    char b[JOB_ID_CHARS + 1];

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, a);
    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, b);
    cr_expect_str_neq(a, b);
}

Test(job_table_admit_move, refuses_an_unknown_layout_with_its_pointer)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting;
    struct asked const asked = {
        .batch = {.tickets_count = 1, .layout = "no-such"}, .problems = "[]", .waiting = &waiting};

    waiting_init(&waiting);
    cr_expect_eq(admit(&asked, id), ST_INVALID);
    cr_assert_eq(problems.count, 1);
    cr_expect_str_eq(problems.listed[0].pointer.data, "/layout");
    cr_expect_eq(jobs_listed(), 0);
    cr_expect_not(job_table_unwait(table, &waiting.waiter), "it does not wait");
    cr_expect_eq(atomic_load(&waiting.wakes), 0);
    cr_expect_eq(atomic_load(&ends), 0);
    expect_idle();
}

Test(job_table_admit_move, refuses_what_never_fits_by_the_name_of_the_setting)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const asked = {.batch = {.tickets_count = QUEUE_TICKETS_MAX + 1}};

    cr_expect_eq(admit(&asked, id), ST_TOO_LARGE);
    cr_expect_not_null(strstr(err.text, "queue-tickets-max"), "%s", err.text);
    admit_to_its_end((struct asked){.batch = {.tickets_count = QUEUE_TICKETS_MAX}}, id);
    expect_idle();
}

Test(job_table_limits, counts_memory_as_well)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const asked = {.batch = {.tickets_count = 3}};

    start_with((struct variant){.render_bytes_max = 3 * (size_t)JOB_TICKET_BYTES - 1});
    cr_expect_eq(job_table_status(table).tickets_max, 2);
    cr_expect_eq(admit(&asked, id), ST_TOO_LARGE);
    cr_expect_not_null(strstr(err.text, "render-bytes-max"), "%s", err.text);
    admit_to_its_end((struct asked){.batch = {.tickets_count = 2}}, id);
}

Test(job_table_admit_move, is_busy_when_the_queue_is_full)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const one = {.batch = {.tickets_count = 1}};

    close_gate();
    admit_tickets(QUEUE_TICKETS_MAX - 1, id);
    cr_expect_eq(job_table_retry_after_s(table, 1), 1);
    admit_tickets(1, id);
    cr_expect_eq(admit(&one, id), ST_BUSY);
    cr_expect_not_null(strstr(err.text, "queue-tickets-max"), "%s", err.text);
    cr_expect_eq(job_table_status(table).tickets_queued, QUEUE_TICKETS_MAX);
    cr_expect_eq(jobs_listed(), 2);
    gate_open(&gate);
    await_end(id);
    cr_expect_eq(admit(&one, id), ST_OK, "its room came back");
}

Test(job_table_limits, is_busy_when_the_store_is_full)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const one = {.batch = {.tickets_count = 1}};

    start_with((struct variant){.jobs_max = 1});
    close_gate();
    admit_tickets(1, id);
    cr_expect_eq(admit(&one, id), ST_BUSY);
    cr_expect_not_null(strstr(err.text, "store-jobs-max"), "%s", err.text);
    cr_expect_eq(job_table_status(table).tickets_queued, 1);
    gate_open(&gate);
}

Test(job_table_limits, is_busy_when_the_pool_is_full)
{
    char id[JOB_ID_CHARS + 1];
    char refused[JOB_ID_CHARS + 1];
    struct asked const one = {.batch = {.tickets_count = 1}};

    start_with((struct variant){.queue_tasks_max = 2});
    close_gate();
    admit_tickets(1, id); /* a slice and a bind */
    cr_expect_eq(admit(&one, refused), ST_BUSY);
    cr_expect_not(is_found("", refused));
    cr_expect_eq(job_table_status(table).tickets_queued, 1);
    gate_open(&gate);
    await_end(id);
    cr_expect_eq(atomic_load(&ends), 1);
}

Test(job_table_admit_move, is_busy_while_it_drains)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const one = {.batch = {.tickets_count = 1}};

    close_gate();
    admit_tickets(1, id);
    job_table_drain(table);
    cr_expect_eq(admit(&one, id + 0), ST_BUSY);
    cr_expect_eq(job_table_reserve(table, 1, &err), ST_BUSY);
    gate_open(&gate);
    ready_press_stop_pool(&ready);
    cr_expect_eq(atomic_load(&ends), 1, "what was admitted ends");
}

Test(job_table_admit_move, admits_nothing_that_the_store_cannot_keep)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting;
    struct asked const asked = {
        .batch = {.tickets_count = 1}, .problems = "[]", .waiting = &waiting};

    waiting_init(&waiting);
    atomic_store(&faulty.puts_bad, 1);
    cr_expect_eq(admit(&asked, id), ST_IO);
    cr_expect_eq(atomic_load(&waiting.wakes), 0);
    cr_expect_eq(jobs_listed(), 0);
    expect_idle();
}

Test(job_table_admit_move, admits_nothing_without_memory)
{
    struct batch batch = {0};
    struct waiting waiting;
    char id[JOB_ID_CHARS + 1];
    enum status st = ST_NO_MEMORY;
    size_t failures = 0;

    waiting_init(&waiting);
    ready_batch_read(&(struct ready_batch){.tickets_count = 3}, &batch);
    close_gate(); /* so that all allocations are the admission's */
    for (size_t call = 1;; call++) {
        struct job_order order = {.client = "", .lane = POOL_BULK, .key = ready_event_key()};

        failing_memory_start(call);
        st = job_table_admit_move(table, &order, &batch, &waiting.waiter, id, &problems, &err);
        if (!failing_memory_stop())
            break;
        failures++;
        cr_expect_eq(st, ST_NO_MEMORY, "call %zu: %s", call, status_name(st));
        cr_expect_eq(batch.tickets_count, 3);
        expect_idle();
        cr_assert_lt(failures, 1000);
    }
    cr_expect_gt(failures, 5);
    cr_expect_eq(st, ST_OK);
    gate_open(&gate);
    await_wake(&waiting);
    cr_expect_eq(state_of(id), JOB_SUCCEEDED);
    cr_expect_eq(atomic_load(&ends), 1);
}

/* ---- views ---- */

TABLE_SUITE(job_table_view);

Test(job_table_view, shows_a_job_on_its_way)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    close_gate();
    admit_tickets(1, id);
    view(id, &seen);
    cr_expect(seen.record.state == JOB_QUEUED && seen.tickets_done == 0);
    cr_expect(seen.record.started_ms == 0 && seen.record.expires_ms == 0);
    job_record_clear(&seen.record);
    gate_open(&gate);
    await_end(id);
    cr_expect_eq(state_of(id), JOB_SUCCEEDED);
}

Test(job_table_view, shows_how_far_a_job_has_come)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    admit_half_done(id, NULL);
    view(id, &seen);
    cr_expect(seen.record.state == JOB_RUNNING && seen.tickets_done == SLICE);
    cr_expect(seen.record.started_ms >= seen.record.created_ms && seen.record.finished_ms == 0);
    cr_expect_null(seen.record.document);
    job_record_clear(&seen.record);
    gate_open(&gate);
}

Test(job_table_view, finds_a_job_for_its_own_client_only)
{
    char id[JOB_ID_CHARS + 1];

    close_gate();
    cr_assert_eq(admit(&(struct asked){.batch = {.tickets_count = 1}, .client = "a"}, id), ST_OK);
    for (int round = 0; round < 2; round++) {
        cr_expect(is_found("a", id) && is_found(NULL, id));
        cr_expect(!is_found("b", id) && !is_found("", id) && !is_found(NULL, "nothing"));
        if (round == 0) {
            gate_open(&gate);
            await_end(id);
        }
    }
}

/* ---- how jobs fail ---- */

TABLE_SUITE(job_table_problems);

static void expect_problems(const char *id, const char *expected)
{
    struct job_view seen;

    view(id, &seen);
    cr_expect(seen.record.problems.len == strlen(expected) &&
                  memcmp(seen.record.problems.data, expected, strlen(expected)) == 0,
              "%.*s", (int)seen.record.problems.len, (const char *)seen.record.problems.data);
    job_record_clear(&seen.record);
}

#define NOBODY_CAN_WRITE "\xF4\x8F\xBF\xBD" /* U+10FFFD, for private use */

static bool says(const char *id, const char *text)
{
    struct job_view seen;
    bool is_there;

    view(id, &seen);
    cr_assert_eq(bytes_append(&seen.record.problems, "", 1, NULL), ST_OK);
    is_there = strstr((const char *)seen.record.problems.data, text) != NULL;
    job_record_clear(&seen.record);
    return is_there;
}

Test(job_table_problems, keeps_those_of_the_admission)
{
    char id[JOB_ID_CHARS + 1];

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}, .problems = "[\n{\"a\":1}\n]"},
                     id);
    expect_problems(id, "[\n{\"a\":1}\n]");
}

Test(job_table_problems, appends_those_of_the_press)
{
    char id[JOB_ID_CHARS + 1];

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1, .holder = NOBODY_CAN_WRITE},
                                    .problems = "[\n{\"a\":1}\n]"},
                     id);
    cr_expect_eq(state_of(id), JOB_SUCCEEDED);
    cr_expect(says(id, "[\n{\"a\":1},\n{\"pointer\":\"/tickets/0/holder\","));
    admit_to_its_end((struct asked){.batch = {.tickets_count = 1, .holder = NOBODY_CAN_WRITE}}, id);
    cr_expect(says(id, "[\n{\"pointer\":\"/tickets/0/holder\","));
}

Test(job_table_problems, begins_with_why_a_job_failed)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1,
                                              .holder = NOBODY_CAN_WRITE,
                                              .options = "\"on_missing_glyph\":\"reject\","}},
                     id);
    view(id, &seen);
    cr_expect(seen.record.state == JOB_FAILED && seen.record.failure == ST_INVALID);
    cr_expect_null(seen.record.document);
    cr_expect(seen.record.expires_ms > 0 && seen.record.finished_ms > 0);
    job_record_clear(&seen.record);
    cr_expect(says(id, "[\n{\"pointer\":\"\",\"code\":\"invalid\",\"detail\":\""));
    cr_expect(says(id, "{\"pointer\":\"/tickets/0/holder\","));
    cr_expect(last_status == ST_INVALID && last_end.state == JOB_FAILED);
}

Test(job_table_limits, tell_of_a_deadline)
{
    enum { MANY = 2000 };
    char id[JOB_ID_CHARS + 1];

    start_with((struct variant){.slice_tickets = PRESS_SLICE_TICKETS_MAX,
                                .queue_tickets_max = MANY,
                                .task_deadline_ms = POOL_DEADLINE_MS_MIN});
    admit_to_its_end((struct asked){.batch = {.tickets_count = MANY}}, id);
    cr_expect_eq(state_of(id), JOB_FAILED);
    cr_expect(says(id, "\"code\":\"timed_out\""));
    cr_expect_eq(last_status, ST_TIMED_OUT);
    expect_idle();
}

/* ---- a store that fails at the end ---- */

TABLE_SUITE(job_table_end);

Test(job_table_end, is_a_failure_when_the_document_cannot_be_kept)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    atomic_store(&faulty.updates_good, 1); /* its start */
    atomic_store(&faulty.updates_bad, 1);
    admit_to_its_end((struct asked){.batch = {.tickets_count = 2}}, id);
    view(id, &seen);
    cr_expect(seen.record.state == JOB_FAILED && seen.record.failure == ST_IO);
    cr_expect(seen.record.document == NULL && seen.tickets_done == 2);
    job_record_clear(&seen.record);
    cr_expect(says(id, "\"code\":\"io\",\"detail\":\"the disk is full\""));
    cr_expect(last_status == ST_IO && last_end.state == JOB_FAILED);
    cr_expect_eq(job_table_status(table).documents_unfetched, 0);
}

static void admit_unsaved(char id[JOB_ID_CHARS + 1])
{
    atomic_store(&faulty.updates_good, 1);
    atomic_store(&faulty.updates_bad, 3);
    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, id);
    cr_expect_eq(state_of(id), JOB_FAILED, "views know");
    cr_expect_eq(job_table_status(table).jobs_unsaved, 1);
    expect_idle();
}

static enum job_state stored_state(const char *id)
{
    struct job_record record = {0};
    enum job_state state;

    cr_assert_eq(store->calls->get(store, id, &record, NULL), ST_OK);
    state = record.state;
    job_record_clear(&record);
    return state;
}

Test(job_table_end, is_kept_until_the_store_can_keep_it)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting;

    admit_unsaved(id);
    waiting_init(&waiting);
    cr_expect_not(job_table_wait(table, id, JOB_RUNNING, true, &waiting.waiter));
    job_table_sweep(table, 0);
    cr_expect_eq(stored_state(id), JOB_RUNNING, "the store fails once more");
    cr_expect_eq(job_table_status(table).jobs_unsaved, 1);
    job_table_sweep(table, 0);
    cr_expect_eq(stored_state(id), JOB_FAILED);
    cr_expect_eq(job_table_status(table).jobs_unsaved, 0);
    cr_expect_eq(state_of(id), JOB_FAILED);
    cr_expect_eq(atomic_load(&ends), 1);
}

Test(job_table_end, can_be_erased_before_the_store_knows_of_it)
{
    char id[JOB_ID_CHARS + 1];

    admit_unsaved(id);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK);
    cr_expect_not(is_found(NULL, id));
    cr_expect_eq(job_table_status(table).jobs_unsaved, 0);
}

Test(job_table_end, that_the_store_never_kept_is_freed)
{
    char id[JOB_ID_CHARS + 1];

    admit_unsaved(id);
}

/* ---- waiting ---- */

TABLE_SUITE(job_table_wait);

Test(job_table_wait, is_woken_once_for_the_start_and_once_for_the_end)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting start_waiting;
    struct waiting end_waiting;
    struct waiting next_waiting;

    waiting_init(&start_waiting);
    waiting_init(&end_waiting);
    waiting_init(&next_waiting);
    admit_half_done(id, &start_waiting);
    cr_expect_eq(atomic_load(&start_waiting.wakes), 1);
    cr_expect_not(job_table_wait(table, id, JOB_QUEUED, false, &next_waiting.waiter),
                  "it is not queued any more");
    cr_expect(job_table_wait(table, id, JOB_RUNNING, false, &next_waiting.waiter));
    cr_expect(job_table_wait(table, id, JOB_RUNNING, true, &end_waiting.waiter));
    cr_expect_eq(job_table_status(table).waiters, 2);
    cr_expect_not(job_table_unwait(table, &start_waiting.waiter));
    gate_open(&gate);
    await_wake(&next_waiting);
    await_wake(&end_waiting);
    ready_press_stop_pool(&ready);
    cr_expect_eq(atomic_load(&start_waiting.wakes), 1);
    cr_expect_eq(atomic_load(&next_waiting.wakes), 1);
    cr_expect_eq(atomic_load(&end_waiting.wakes), 1);
    expect_idle();
}

Test(job_table_wait, does_not_wait_for_what_has_come_or_never_will)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting;

    waiting_init(&waiting);
    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, id);
    cr_expect_not(job_table_wait(table, id, JOB_RUNNING, false, &waiting.waiter));
    cr_expect_not(job_table_wait(table, id, JOB_RUNNING, true, &waiting.waiter));
    cr_expect_not(job_table_wait(table, "nothing", JOB_QUEUED, true, &waiting.waiter));
    cr_expect_eq(atomic_load(&waiting.wakes), 0);
}

TABLE_SUITE(job_table_unwait);

Test(job_table_unwait, leaves_the_others_waiting)
{
    enum { COUNT = 5 };
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting[COUNT];

    close_gate();
    admit_tickets(1, id);
    for (size_t i = 0; i < COUNT; i++) {
        waiting_init(&waiting[i]);
        cr_expect(job_table_wait(table, id, JOB_QUEUED, i % 2 == 0, &waiting[i].waiter));
    }
    for (size_t i = 0; i < COUNT; i += 2) { /* the first, one between, the last */
        cr_expect(job_table_unwait(table, &waiting[i].waiter));
        cr_expect_not(job_table_unwait(table, &waiting[i].waiter));
    }
    cr_expect_eq(job_table_status(table).waiters, 2);
    gate_open(&gate);
    ready_press_stop_pool(&ready);
    for (size_t i = 0; i < COUNT; i++)
        cr_expect_eq(atomic_load(&waiting[i].wakes), i % 2 == 0 ? 0 : 1, "%zu", i);
}

/* ---- delete ---- */

TABLE_SUITE(job_table_delete);

Test(job_table_delete, cancels_a_queued_job)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;
    struct waiting waiting;

    waiting_init(&waiting);
    close_gate();
    admit_tickets(3, id);
    cr_expect(job_table_wait(table, id, JOB_QUEUED, true, &waiting.waiter));
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK, "again while it ends, or erased");
    gate_open(&gate);
    await_wake(&waiting);
    ready_press_stop_pool(&ready);
    cr_expect_eq(atomic_load(&waiting.wakes), 1);
    cr_expect(last_end.state == JOB_CANCELLED && last_status == ST_CANCELLED);
    if (is_found("", id)) {
        view(id, &seen);
        cr_expect(seen.record.state == JOB_CANCELLED && seen.record.started_ms == 0);
        cr_expect(seen.record.problems.len == 0 && seen.record.expires_ms > 0);
        job_record_clear(&seen.record);
    }
    expect_idle();
}

Test(job_table_delete, cancels_a_running_job)
{
    char id[JOB_ID_CHARS + 1];
    struct job_view seen;

    admit_half_done(id, NULL);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK);
    gate_open(&gate);
    await_end(id);
    view(id, &seen);
    cr_expect(seen.record.state == JOB_CANCELLED && seen.tickets_done == SLICE);
    cr_expect(seen.record.failure == ST_OK && seen.record.document == NULL);
    job_record_clear(&seen.record);
    cr_expect_eq(atomic_load(&ends), 1);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK, "erased");
    cr_expect_not(is_found("", id));
}

Test(job_table_delete, erases_a_finished_job)
{
    char id[JOB_ID_CHARS + 1];

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, id);
    cr_expect_eq(job_table_status(table).documents_unfetched, 1);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_OK);
    cr_expect_not(is_found("", id));
    cr_expect_not(job_table_was_here(table, NULL, id));
    cr_expect_eq(job_table_status(table).documents_unfetched, 0);
    cr_expect_eq(job_table_delete(table, "", id, &err), ST_NOT_FOUND);
}

Test(job_table_delete, does_not_find_what_others_have)
{
    char id[JOB_ID_CHARS + 1];

    close_gate();
    cr_assert_eq(admit(&(struct asked){.batch = {.tickets_count = 1}, .client = "a"}, id), ST_OK);
    cr_expect_eq(job_table_delete(table, "b", id, &err), ST_NOT_FOUND);
    cr_expect_eq(job_table_delete(table, "", "nothing", &err), ST_NOT_FOUND);
    gate_open(&gate);
    await_end(id);
    cr_expect_eq(last_end.state, JOB_SUCCEEDED);
    cr_expect_eq(job_table_delete(table, "b", id, &err), ST_NOT_FOUND);
    cr_expect_eq(job_table_delete(table, NULL, id, &err), ST_OK);
}

static void delete_now(const char *id)
{
    cr_expect_eq(job_table_delete(table, "", id, NULL), ST_OK);
}

Test(job_table_delete, cancels_a_job_that_the_press_does_not_have_yet)
{
    char id[JOB_ID_CHARS + 1];
    struct waiting waiting;

    waiting_init(&waiting);
    close_gate();
    faulty.on_put = delete_now;
    cr_assert_eq(admit(&(struct asked){.batch = {.tickets_count = 1}, .waiting = &waiting}, id),
                 ST_OK);
    await_wake(&waiting); /* with the only thread still held */
    cr_expect_eq(state_of(id), JOB_CANCELLED);
    gate_open(&gate);
}

Test(job_table_delete, erases_a_job_that_is_just_about_to_end)
{
    char id[JOB_ID_CHARS + 1];

    faulty.on_end = delete_now;
    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, id);
    cr_expect_not(is_found("", id));
    cr_expect_eq(atomic_load(&ends), 1);
    cr_expect_eq(job_table_status(table).documents_unfetched, 0);
    cr_expect_eq(job_table_status(table).jobs_unsaved, 0);
    expect_idle();
}

TABLE_SUITE(job_table_cancel_all);

Test(job_table_cancel_all, ends_every_job)
{
    enum { COUNT = 5 };
    char ids[COUNT][JOB_ID_CHARS + 1];

    close_gate();
    for (size_t i = 0; i < COUNT; i++)
        admit_tickets(2, ids[i]);
    job_table_cancel_all(table);
    gate_open(&gate);
    for (size_t i = 0; i < COUNT; i++) {
        await_end(ids[i]);
        cr_expect_eq(state_of(ids[i]), JOB_CANCELLED);
    }
    expect_idle();
}

/* ---- lists ---- */

TABLE_SUITE(job_table_list);

Test(job_table_list, shows_jobs_as_they_are_now)
{
    static const struct job_list_query QUERY = {
        .client = "", .state = -1, .before = UINT64_MAX, .limit = 10};
    struct job_view views[10] = {0};
    char ids[3][JOB_ID_CHARS + 1];
    size_t count = 0;

    admit_to_its_end((struct asked){.batch = {.tickets_count = 3}}, ids[0]);
    admit_half_done(ids[1], NULL);
    admit_tickets(1, ids[2]);
    cr_expect_eq(job_table_list(table, &QUERY, views, &count, &err), ST_OK);
    cr_assert_eq(count, 3);
    for (size_t i = 0; i < count; i++)
        cr_expect_str_eq(views[i].record.id, ids[2 - i]);
    cr_expect(views[0].record.state == JOB_QUEUED && views[0].tickets_done == 0);
    cr_expect(views[1].record.state == JOB_RUNNING && views[1].tickets_done == SLICE);
    cr_expect(views[2].record.state == JOB_SUCCEEDED && views[2].tickets_done == 3);
    for (size_t i = 0; i < count; i++)
        job_record_clear(&views[i].record);
    gate_open(&gate);
}

Test(job_table_list, finds_running_jobs_by_their_state)
{
    static const struct job_list_query QUERY = {
        .client = NULL, .state = JOB_RUNNING, .before = UINT64_MAX, .limit = 10};
    struct job_view views[10] = {0};
    char ids[2][JOB_ID_CHARS + 1];
    size_t count = 0;

    admit_half_done(ids[0], NULL);
    admit_tickets(1, ids[1]);
    cr_expect_eq(job_table_list(table, &QUERY, views, &count, &err), ST_OK);
    cr_assert_eq(count, 1);
    cr_expect_str_eq(views[0].record.id, ids[0]);
    job_record_clear(&views[0].record);
    gate_open(&gate);
}

/* ---- the budget ---- */

TABLE_SUITE(job_table_reserve);

Test(job_table_reserve, takes_room_from_jobs)
{
    char id[JOB_ID_CHARS + 1];
    struct asked const two = {.batch = {.tickets_count = 2}};

    cr_expect_eq(job_table_reserve(table, QUEUE_TICKETS_MAX + 1, &err), ST_TOO_LARGE);
    cr_expect_eq(job_table_reserve(table, QUEUE_TICKETS_MAX, &err), ST_OK);
    cr_expect_eq(job_table_reserve(table, 1, &err), ST_BUSY);
    cr_expect_eq(admit(&two, id), ST_BUSY);
    job_table_release(table, 1);
    cr_expect_eq(admit(&two, id), ST_BUSY);
    job_table_release(table, 1);
    cr_expect_eq(admit(&two, id), ST_OK);
    job_table_release(table, QUEUE_TICKETS_MAX - 2);
}

TABLE_SUITE(job_table_retry_after_s);

Test(job_table_retry_after_s, is_an_honest_number_from_the_start)
{
    char id[JOB_ID_CHARS + 1];

    cr_expect_eq(job_table_retry_after_s(table, 1), 1);
    cr_expect_eq(job_table_retry_after_s(table, SIZE_MAX), 1, "all the room is free");
    close_gate();
    admit_tickets(QUEUE_TICKETS_MAX, id);
    cr_expect_eq(job_table_retry_after_s(table, 1), 1);
    gate_open(&gate);
    await_end(id);
    cr_expect_gt(job_table_status(table).tickets_per_s, 0);
}

/* With nothing finished so far the rate is a guess, so the answers are exact. */
Test(job_table_limits, say_when_there_will_be_room)
{
    enum { ROOM = 10 * DRAIN_TICKETS_PER_S_GUESS, LARGE = ROOM - DRAIN_TICKETS_PER_S_GUESS };
    char id[JOB_ID_CHARS + 1];

    start_with((struct variant){.queue_tickets_max = ROOM, .queue_tasks_max = 2 * (size_t)ROOM});
    close_gate();
    admit_tickets(LARGE, id);
    cr_expect_eq(job_table_retry_after_s(table, ROOM - LARGE), 1, "there is room");
    cr_expect_eq(job_table_retry_after_s(table, ROOM - LARGE + 1), 9, "the whole job must end");
    cr_assert_eq(job_table_reserve(table, ROOM - LARGE, &err), ST_OK);
    cr_expect_eq(job_table_retry_after_s(table, ROOM - LARGE), 1, "what is reserved goes first");
    cr_expect_eq(job_table_retry_after_s(table, ROOM - LARGE + 1), 10);
    cr_expect_eq(job_table_retry_after_s(table, SIZE_MAX), 10);
    job_table_release(table, ROOM - LARGE);
    job_table_cancel_all(table);
    gate_open(&gate);
}

/* ---- fetched, sweep ---- */

TABLE_SUITE(job_table_fetched);

Test(job_table_fetched, counts_documents_that_somebody_may_come_for)
{
    char ids[3][JOB_ID_CHARS + 1];
    int64_t finished_ms;

    for (size_t i = 0; i < 3; i++)
        admit_to_its_end((struct asked){.batch = {.tickets_count = 1}}, ids[i]);
    cr_expect_eq(job_table_status(table).documents_unfetched, 3);
    job_table_fetched(table, ids[1]);
    job_table_fetched(table, ids[1]);
    job_table_fetched(table, "nothing");
    cr_expect_eq(job_table_status(table).documents_unfetched, 2);
    finished_ms = last_end.finished_ms;
    job_table_sweep(table, finished_ms + JOB_FETCH_MS - 10000);
    cr_expect_eq(job_table_status(table).documents_unfetched, 2);
    job_table_sweep(table, finished_ms + JOB_FETCH_MS);
    cr_expect_eq(job_table_status(table).documents_unfetched, 0);
    cr_expect(is_found("", ids[0]));
}

TABLE_SUITE(job_table_sweep);

Test(job_table_sweep, lets_expired_jobs_go)
{
    char id[JOB_ID_CHARS + 1];

    admit_to_its_end((struct asked){.batch = {.tickets_count = 1}, .client = "a"}, id);
    job_table_sweep(table, last_end.expires_ms - 1);
    cr_expect(is_found("a", id) && !job_table_was_here(table, "a", id));
    job_table_sweep(table, last_end.expires_ms);
    cr_expect(!is_found("a", id) && job_table_was_here(table, "a", id));
    cr_expect(!job_table_was_here(table, "b", id) && job_table_was_here(table, NULL, id));
}

/* ---- another press ---- */

TABLE_SUITE(job_table_swap_press);

Test(job_table_swap_press, lets_jobs_end_on_the_press_that_took_them)
{
    struct press *press = ready_press_another(&ready);
    struct press *const another = press;
    struct press *now;
    char ids[2][JOB_ID_CHARS + 1];

    admit_half_done(ids[0], NULL);
    job_table_swap_press(table, &press);
    cr_expect_eq(press, ready.press);
    press_unref(&press);
    now = job_table_press_ref(table);
    cr_expect_eq(now, another);
    press_unref(&now);
    admit_tickets(2, ids[1]);
    gate_open(&gate);
    for (size_t i = 0; i < 2; i++) {
        await_end(ids[i]);
        cr_expect_eq(state_of(ids[i]), JOB_SUCCEEDED);
    }
    cr_expect_geq(job_table_status(table).tickets_per_s, 0);
}

/* ---- new ---- */

Test(job_table_new, leaves_nothing_without_memory, .timeout = TIMEOUT_S)
{
    size_t failures = 0;
    struct job_table_config config;

    start();
    job_table_free(&table);
    config = (struct job_table_config){.press = ready.press,
                                       .store = store,
                                       .queue_tickets_max = 1,
                                       .render_bytes_max = JOB_TICKET_BYTES,
                                       .job_ttl_ms = 1};
    for (size_t call = 1;; call++, failures++) {
        enum status st;

        failing_memory_start(call);
        st = job_table_new(&config, &table, NULL);
        if (!failing_memory_stop())
            break;
        cr_expect_eq(st, ST_NO_MEMORY);
        cr_expect_null(table);
    }
    cr_expect_gt(failures, 0);
    stop();
}
