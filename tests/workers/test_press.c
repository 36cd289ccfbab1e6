#include "workers/press.h"

#include "domain/must.h"
#include "service/batch_json.h"
#include "service/config_json.h"
#include "service/resources.h"
#include "tests/support/failing_memory.h"
#include "tests/support/held_calls.h"
#include "tests/support/table_rules.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_S = 120,
    LONG_MS = POOL_DEADLINE_MS_MAX,
    FAST_MS = POOL_DEADLINE_MS_MIN,
    BODY_BYTES_MAX = 4 << 20,
    JOBS_MAX = 8,
};

/* ---- Fixture: a press on a pool, batches, and jobs that are waited for ---- */

struct bench {
    struct resources resources;
    struct pool *pool;
    struct press *press;
    sem_t worker_freed;
};

/* Static, so that what a hung thread still needs is never lost. */
static struct bench bench;

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        cr_assert_eq(errno, EINTR);
}

static void free_worker_and_tell(void *fonts, void **worker)
{
    press_worker_free(fonts, worker);
    MUST(sem_post(&bench.worker_freed));
}

struct bench_config {
    size_t threads, slice_tickets, queue_tasks_max;
    uint32_t deadline_ms;
    const char *layouts; /* directory of more; NULL: built-in only */
};

static struct press *another_press(struct layout_list *layouts, size_t slice_tickets)
{
    struct press_config const config = {
        .pool = bench.pool,
        .fonts = bench.resources.fonts,
        .labels = &bench.resources.labels,
        .slice_tickets = slice_tickets,
    };
    struct press *press = NULL;

    cr_assert_eq(press_new_move(&config, layouts, &press, NULL), ST_OK);
    return press;
}

static void bench_start(struct bench_config config)
{
    struct settings const settings = {.layouts = config.layouts};
    struct error err = {0};
    struct pool_config pool = {
        .threads = config.threads,
        .queue_tasks_max = config.queue_tasks_max > 0 ? config.queue_tasks_max : 100000,
        .task_deadline_ms = config.deadline_ms > 0 ? config.deadline_ms : LONG_MS,
        .task_grace_ms = config.deadline_ms > 0 ? config.deadline_ms : LONG_MS,
        .threads_given_up_max = 1,
        .context_new = press_worker_new,
        .context_free = free_worker_and_tell,
    };

    config_json_start();
    MUST(sem_init(&bench.worker_freed, 0, 0));
    cr_assert_eq(sign_start(&err), ST_OK, "%s", err.text);
    cr_assert_eq(batch_json_start(PARSE_BYTES_MAX_DEFAULT, &err), ST_OK, "%s", err.text);
    cr_assert_eq(resources_load(&settings, &bench.resources, &err), ST_OK, "%s", err.text);
    pool.user = bench.resources.fonts;
    cr_assert_eq(pool_start(&pool, &bench.pool, &err), ST_OK, "%s", err.text);
    bench.press = another_press(&bench.resources.layouts, config.slice_tickets);
}

static void bench_stop(void)
{
    cr_expect(pool_stop(&bench.pool, POOL_STOP_DRAIN));
    press_unref(&bench.press);
    cr_expect_null(bench.press);
    resources_clear(&bench.resources);
}

/* A batch of as many tickets, with whatever members are put before its tickets, such as
 * "\"layout\":\"x\",", and into its second ticket. */
static struct batch batch_of(size_t tickets, const char *members, const char *second)
{
    struct batch_limits const limits = {.tickets_max = 100000};
    struct problems problems = {0};
    struct batch batch = {0};
    struct error err = {0};
    char *text = malloc(BODY_BYTES_MAX);
    struct bytes body = {.data = (uint8_t *)text, .capacity = BODY_BYTES_MAX};

    cr_assert_not_null(text);
    body.len = (size_t)sprintf(text,
                               "{\"event\":{\"id\":\"evt-001\",\"name\":\"Jazz\",\"venue\":\"\","
                               "\"starts_at\":\"2027-03-21T20:30:00+01:00\","
                               "\"timezone\":\"Europe/Madrid\"},%s\"tickets\":[",
                               members);
    for (size_t i = 0; i < tickets; i++)
        body.len += (size_t)sprintf(
            text + body.len, "%s{\"id\":\"t-%zu\",\"holder\":\"Ada Byron\",\"type\":\"All\"%s}",
            i > 0 ? "," : "", i + 1, i == 1 ? second : "");
    body.len += (size_t)sprintf(text + body.len, "]}");
    cr_assert_eq(batch_json_read(&body, &TABLE_RULES, &limits, &batch, &problems, &err), ST_OK,
                 "%s", err.text);
    problems_clear(&problems);
    bytes_clear(&body);
    return batch;
}

static struct batch plain_batch(size_t tickets)
{
    return batch_of(tickets, "", "");
}

/* A job and its end. */
struct run {
    struct press_job *job;
    struct press_result result;
    struct problems problems; /* of the submission */
    struct error err;
    sem_t ended;
    atomic_int starts, ends;
    int starts_at_end; /* starts when the end came */
    int *order;        /* of ends, over several runs; may be NULL */
    int place;
};

static void run_started(void *user)
{
    struct run *run = user;

    atomic_fetch_add(&run->starts, 1);
}

static void run_ended(void *user, struct press_result *result)
{
    struct run *run = user;

    run->result = *result;
    *result = (struct press_result){0};
    run->starts_at_end = atomic_load(&run->starts);
    if (run->order != NULL)
        run->place = (*run->order)++;
    atomic_fetch_add(&run->ends, 1);
    MUST(sem_post(&run->ended));
}

static struct event_key key_of_event(void)
{
    return (struct event_key){.key_id = 1,
                              .bytes = {1, 2, 3},
                              .event_id = "evt-001",
                              .verify_until_s = KEY_VERIFY_FOR_EVER};
}

static enum status submit(struct run *run, enum pool_lane lane, struct batch *batch)
{
    struct press_request const request = {.lane = lane,
                                          .key = key_of_event(),
                                          .started = run_started,
                                          .done = run_ended,
                                          .user = run};

    MUST(sem_init(&run->ended, 0, 0));
    return press_submit_move(bench.press, &request, batch, &run->job, &run->problems, &run->err);
}

static void submit_well(struct run *run, struct batch batch)
{
    cr_assert_eq(submit(run, POOL_BULK, &batch), ST_OK, "%s", run->err.text);
    cr_assert_null(batch.tickets);
    cr_assert_null(batch.arena.chunks);
}

static void await(struct run *run)
{
    wait_for(&run->ended);
    cr_expect_eq(run->ends, 1);
    cr_expect_eq((run->result.status == ST_OK), (run->result.document != NULL));
    cr_expect_eq(run->result.error.status, run->result.status);
}

static void run_clear(struct run *run)
{
    press_job_release(&run->job);
    cr_expect_null(run->job);
    press_result_clear(&run->result);
    cr_expect_null(run->result.document);
    problems_clear(&run->problems);
    MUST(sem_destroy(&run->ended));
}

/* From its batch to its end. */
static void run_through(struct run *run, struct batch batch)
{
    submit_well(run, batch);
    await(run);
}

static void expect_works_on(void)
{
    struct run run = {0};

    run_through(&run, plain_batch(3));
    cr_expect_eq(run.result.status, ST_OK, "%s", run.result.error.text);
    run_clear(&run);
}

static bool same_bytes(const struct document *a, const struct document *b)
{
    return a->bytes.len == b->bytes.len && memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0;
}

/* ---- press_new_move ---- */

Test(press_new_move, moves_the_layouts_or_leaves_them_when_memory_ends, .timeout = TIMEOUT_S)
{
    struct layout_list layouts;
    struct press *press = NULL;
    struct press_config config = {0};
    size_t failures = 0;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    config = (struct press_config){.pool = bench.pool,
                                   .fonts = bench.resources.fonts,
                                   .labels = &bench.resources.labels,
                                   .slice_tickets = 1};
    cr_assert_eq(resources_load_layouts(&(struct settings){0}, &bench.resources.layouts, NULL),
                 ST_OK);
    layouts = bench.resources.layouts;
    for (size_t call = 1; press == NULL; call++) {
        enum status st;

        failing_memory_start(call);
        st = press_new_move(&config, &bench.resources.layouts, &press, NULL);
        failures += failing_memory_stop();
        cr_assert_eq(st, press == NULL ? ST_NO_MEMORY : ST_OK);
        if (press == NULL)
            cr_assert_arr_eq(&layouts, &bench.resources.layouts, sizeof layouts);
    }
    cr_expect_gt(failures, 2);
    cr_expect_eq(bench.resources.layouts.count, 0);
    press_unref(&press);
    cr_expect_null(press);
    press_unref(&press);
    bench_stop();
}

Test(press_ref, keeps_a_press_until_the_last_reference_goes, .timeout = TIMEOUT_S)
{
    struct press *second;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    second = press_ref(bench.press);
    cr_expect_eq(second, bench.press);
    press_unref(&second);
    cr_expect_null(second);
    expect_works_on();
    bench_stop();
}

/* ---- press_submit_move: success ---- */

Test(press_submit_move, prints_a_page_for_each_ticket_in_order, .timeout = TIMEOUT_S)
{
    struct event_key const key = key_of_event();
    struct signer *signer = NULL;
    struct run run = {0};
    const struct document_tickets *tickets;

    bench_start((struct bench_config){.threads = 2, .slice_tickets = 2});
    run_through(&run, plain_batch(5));
    cr_assert_eq(run.result.status, ST_OK, "%s", run.result.error.text);
    cr_expect_eq(run.result.tickets_done, 5);
    cr_expect_eq(press_job_tickets_done(run.job), 5);
    cr_expect_eq(press_tickets_done(bench.press), 5);
    cr_expect_eq(run.result.problems.count, 0);
    cr_expect_eq(memcmp(run.result.document->bytes.data, "%PDF-1.4\n", 9), 0);
    tickets = &run.result.document->tickets;
    cr_assert_eq(tickets->count, 5);
    cr_assert_eq(signer_new(&signer, NULL), ST_OK);
    for (size_t i = 0; i < 5; i++) {
        enum token_verdict verdict = TOKEN_OK;
        struct token_claims claims = {0};
        char id[16];

        snprintf(id, sizeof id, "t-%zu", i + 1);
        cr_expect_str_eq(tickets->list[i].id.data, id);
        cr_assert_eq(signer_verify(signer, &key, tickets->list[i].token.data,
                                   tickets->list[i].token.len, 0, &verdict, &claims, NULL),
                     ST_OK);
        cr_expect_eq(verdict, TOKEN_OK);
        cr_expect_eq(claims.ticket_id_len, strlen(id));
        cr_expect_eq(memcmp(claims.ticket_id, id, strlen(id)), 0);
    }
    signer_free(&signer);
    run_clear(&run);
    bench_stop();
}

/* The tickets of a run stand on these pages; 0 ends the list. */
static void expect_pages(const struct run *run, const size_t *pages)
{
    const struct document_tickets *tickets = &run->result.document->tickets;

    for (size_t i = 0; i < tickets->count; i++)
        cr_expect_eq(tickets->list[i].page, pages[i], "ticket %zu: page %zu", i,
                     tickets->list[i].page);
    cr_expect_eq(pages[tickets->count], 0);
}

#define FIXTURES "fixtures/layouts/valid"

Test(press_submit_move, fills_sheets_by_neighbours_of_one_layout, .timeout = TIMEOUT_S)
{
    static const struct {
        const char *name, *layout, *second;
        size_t tickets;
        size_t pages[12];
    } ROWS[] = {
        {"one to a page", "classic", "", 3, {1, 2, 3}},
        {"a full sheet", "sheet-4up", "", 4, {1, 1, 1, 1}},
        {"one more", "sheet-4up", "", 5, {1, 1, 1, 1, 2}},
        {"three sheets", "sheet-4up", "", 9, {1, 1, 1, 1, 2, 2, 2, 2, 3}},
        {"another between", "sheet-4up", ",\"layout\":\"classic\"", 7, {1, 2, 3, 3, 3, 3, 4}},
        {"another sheet between", "sheet-4up", ",\"layout\":\"label-2up\"", 4, {1, 2, 3, 3}},
        {"the same by name", "label-2up", ",\"layout\":\"label-2up\"", 3, {1, 1, 2}},
    };

    bench_start((struct bench_config){.threads = 2, .slice_tickets = 2, .layouts = FIXTURES});
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct run run = {0};
        char members[64];

        snprintf(members, sizeof members, "\"layout\":\"%s\",", ROWS[i].layout);
        run_through(&run, batch_of(ROWS[i].tickets, members, ROWS[i].second));
        cr_assert_eq(run.result.status, ST_OK, "%s: %s", ROWS[i].name, run.result.error.text);
        expect_pages(&run, ROWS[i].pages);
        run_clear(&run);
    }
    bench_stop();
}

Test(press_submit_move, gives_sheets_the_same_bytes_however_they_are_sliced, .timeout = TIMEOUT_S)
{
    static const struct bench_config ROWS[] = {
        {.threads = 1, .slice_tickets = 100, .layouts = FIXTURES},
        {.threads = 4, .slice_tickets = 1, .layouts = FIXTURES},
        {.threads = 2, .slice_tickets = 3, .layouts = FIXTURES},
    };
    uint8_t digest[SHA256_BYTES];

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct run run = {0};

        bench_start(ROWS[i]);
        run_through(&run, batch_of(21, "\"layout\":\"sheet-4up\",", ",\"layout\":\"images\""));
        cr_assert_eq(run.result.status, ST_OK, "%s", run.result.error.text);
        if (i == 0)
            memcpy(digest, run.result.document->digest, sizeof digest);
        cr_expect_arr_eq(run.result.document->digest, digest, sizeof digest, "row %zu", i);
        run_clear(&run);
        bench_stop();
    }
}

Test(press_submit_move, says_that_a_job_starts_once_and_before_its_end, .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 4, .slice_tickets = 1});
    run_through(&run, plain_batch(20));
    cr_expect_eq(run.starts, 1);
    cr_expect_eq(run.starts_at_end, 1);
    run_clear(&run);
    bench_stop();
}

Test(press_submit_move, gives_the_same_bytes_whoever_did_the_work, .timeout = TIMEOUT_S)
{
    static const struct {
        const char *name;
        size_t threads, slice_tickets;
    } ROWS[] = {
        {"one worker, one slice", 1, 1000},
        {"one worker, a slice a ticket", 1, 1},
        {"four workers, a slice a ticket", 4, 1},
        {"four workers, uneven slices", 4, 7},
    };
    const struct document *first = NULL;

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct run before = {0};
        struct run run = {0};

        bench_start((struct bench_config){.threads = ROWS[i].threads,
                                          .slice_tickets = ROWS[i].slice_tickets});
        if (i % 2 == 1) /* what was printed before leaves no trace */
            run_through(&before, batch_of(9, "\"locale\":\"de-DE\",",
                                          ",\"price\":{\"amount\":1,\"currency\":\"JPY\"}"));
        run_through(&run, plain_batch(30));
        cr_assert_eq(run.result.status, ST_OK);
        if (first == NULL)
            first = document_ref(run.result.document);
        cr_expect(same_bytes(first, run.result.document), "%s", ROWS[i].name);
        cr_expect_arr_eq(first->digest, run.result.document->digest, SHA256_BYTES);
        run_clear(&run);
        if (i % 2 == 1)
            run_clear(&before);
        bench_stop();
    }
    document_unref(&first);
}

Test(press_submit_move, takes_a_ticket_s_own_layout, .timeout = TIMEOUT_S)
{
    struct run run = {0};
    struct run plain = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    run_through(&run, batch_of(3, "", ",\"layout\":\"classic\""));
    run_through(&plain, plain_batch(3));
    cr_assert_eq(run.result.status, ST_OK, "%s", run.result.error.text);
    cr_expect(same_bytes(run.result.document, plain.result.document));
    run_clear(&plain);
    run_clear(&run);
    bench_stop();
}

/* ---- press_submit_move: lanes ---- */

Test(press_submit_move, lets_an_urgent_ticket_overtake_a_job_of_20000, .timeout = TIMEOUT_S)
{
    struct run bulk = {0};
    struct run urgent = {0};
    struct batch one;
    int order = 1;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 48});
    one = plain_batch(1);
    bulk.order = urgent.order = &order;
    held_calls_hold(HELD_QR_ENCODE, 1);
    submit_well(&bulk, plain_batch(20000));
    held_calls_await(HELD_QR_ENCODE);
    cr_assert_eq(submit(&urgent, POOL_URGENT, &one), ST_OK);
    held_calls_release(HELD_QR_ENCODE);
    await(&urgent);
    press_job_cancel(bulk.job);
    await(&bulk);
    cr_expect_eq(urgent.result.status, ST_OK);
    cr_expect_eq(urgent.place, 1);
    cr_expect_eq(bulk.result.status, ST_CANCELLED);
    cr_expect_lt(bulk.result.tickets_done, 20000);
    run_clear(&urgent);
    run_clear(&bulk);
    bench_stop();
}

/* ---- press_submit_move: refusals ---- */

/* A refused batch must be the same to the last byte. */
static void expect_refused(struct run *run, struct batch *batch, enum status expected)
{
    struct batch const before = *batch;
    struct ticket const first = batch->tickets[0];

    cr_expect_eq(submit(run, POOL_BULK, batch), expected, "%s", run->err.text);
    cr_expect_eq(run->err.status, expected);
    cr_expect_null(run->job);
    cr_expect_arr_eq(batch, &before, sizeof before);
    cr_expect_arr_eq(batch->tickets, &first, sizeof first);
    cr_expect_eq(run->ends, 0);
}

Test(press_submit_move, gives_the_batch_back_when_the_queue_is_full, .timeout = TIMEOUT_S)
{
    struct run held = {0};
    struct run refused = {0};
    struct batch batch;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1, .queue_tasks_max = 4});
    batch = plain_batch(3);
    held_calls_hold(HELD_QR_ENCODE, 1);
    submit_well(&held, plain_batch(2));
    held_calls_await(HELD_QR_ENCODE);
    expect_refused(&refused, &batch, ST_BUSY);
    held_calls_release(HELD_QR_ENCODE);
    await(&held);
    run_clear(&held);
    run_clear(&refused);
    refused = (struct run){0};
    run_through(&refused, batch); /* the very batch that was refused */
    cr_expect_eq(refused.result.status, ST_OK);
    run_clear(&refused);
    bench_stop();
}

Test(press_submit_move, refuses_what_will_never_fit, .timeout = TIMEOUT_S)
{
    struct run run = {0};
    struct batch batch;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1, .queue_tasks_max = 4});
    batch = plain_batch(4);
    expect_refused(&run, &batch, ST_TOO_LARGE);
    batch_clear(&batch);
    run_clear(&run);
    bench_stop();
}

Test(press_submit_move, names_each_unknown_layout, .timeout = TIMEOUT_S)
{
    static const struct {
        const char *name, *members, *second;
        size_t count;
        const char *pointer, *detail;
    } ROWS[] = {
        {"the batch's", "\"layout\":\"none\",", "", 1, "/layout", "no layout is called \"none\""},
        {"a ticket's", "", ",\"layout\":\"classik\"", 1, "/tickets/1/layout",
         "no layout is called \"classik\""},
        {"both", "\"layout\":\"classi\",", ",\"layout\":\"classic2\"", 2, "/layout",
         "no layout is called \"classi\""},
    };

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct run run = {0};
        struct batch batch = batch_of(3, ROWS[i].members, ROWS[i].second);

        expect_refused(&run, &batch, ST_INVALID);
        cr_assert_eq(run.problems.count, ROWS[i].count, "%s", ROWS[i].name);
        cr_expect_str_eq(run.problems.listed[0].pointer.data, ROWS[i].pointer);
        cr_expect_str_eq(run.problems.listed[0].code, "unknown_layout");
        cr_expect_str_eq(run.problems.listed[0].detail.data, ROWS[i].detail);
        batch_clear(&batch);
        run_clear(&run);
    }
    bench_stop();
}

Test(press_submit_move, leaves_the_batch_when_memory_ends, .timeout = TIMEOUT_S)
{
    struct batch batch;
    size_t call = 1;
    bool has_failed = true;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    batch = plain_batch(3);
    for (; has_failed; call++) {
        struct batch const before = batch;
        struct run run = {0};
        enum status st;

        failing_memory_start(call);
        st = submit(&run, POOL_BULK, &batch);
        has_failed = failing_memory_stop();
        if (st == ST_OK) { /* the job itself may have met the end of memory */
            await(&run);
            cr_expect(run.result.status == ST_OK || run.result.status == ST_NO_MEMORY);
            batch = plain_batch(3);
        } else {
            cr_assert_eq(st, ST_NO_MEMORY);
            cr_expect_null(run.job);
            cr_expect_arr_eq(&batch, &before, sizeof before);
        }
        run_clear(&run);
    }
    cr_expect_gt(call, 3);
    batch_clear(&batch);
    bench_stop();
}

/* ---- how jobs fail ---- */

Test(press_submit_move, fails_the_job_of_a_failed_slice_and_works_on, .timeout = TIMEOUT_S)
{
    static const struct {
        const char *name;
        enum held_call call;
        size_t nth;
        size_t tickets_done; /* by one worker */
    } ROWS[] = {
        {"the first ticket", HELD_QR_ENCODE, 1, 0},
        {"in the middle", HELD_QR_ENCODE, 5, 4},
        {"the last ticket", HELD_QR_ENCODE, 9, 8},
        {"the bind", HELD_PDF_WRITE, 1, 9},
    };

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 2});
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct run run = {0};

        held_calls_fail(ROWS[i].call, ROWS[i].nth, ST_LIBRARY);
        run_through(&run, plain_batch(9));
        cr_expect_eq(run.result.status, ST_LIBRARY, "%s", ROWS[i].name);
        cr_expect_str_eq(run.result.error.text, "as the test says");
        cr_expect_eq(run.result.tickets_done, ROWS[i].tickets_done, "%s: %zu", ROWS[i].name,
                     run.result.tickets_done);
        run_clear(&run);
        expect_works_on();
    }
    bench_stop();
}

Test(press_submit_move, gives_the_reason_of_the_slice_not_of_those_that_it_stopped,
     .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 2, .slice_tickets = 1});
    held_calls_hold(HELD_QR_ENCODE, 1);
    submit_well(&run, plain_batch(50));
    held_calls_await(HELD_QR_ENCODE);
    held_calls_fail(HELD_QR_ENCODE, 3, ST_NO_MEMORY); /* on the other thread */
    for (struct pool_status status = {0}; status.failed == 0;)
        status = pool_status(bench.pool);
    held_calls_release(HELD_QR_ENCODE);
    await(&run);
    cr_expect_eq(run.result.status, ST_NO_MEMORY);
    cr_expect_str_eq(run.result.error.text, "as the test says");
    run_clear(&run);
    bench_stop();
}

Test(press_job_cancel, stops_at_the_next_ticket, .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 100});
    held_calls_hold(HELD_QR_ENCODE, 7);
    submit_well(&run, plain_batch(100));
    held_calls_await(HELD_QR_ENCODE);
    cr_expect_eq(press_job_tickets_done(run.job), 6);
    press_job_cancel(run.job);
    press_job_cancel(run.job);
    held_calls_release(HELD_QR_ENCODE);
    await(&run);
    cr_expect_eq(run.result.status, ST_CANCELLED);
    cr_expect_eq(run.result.tickets_done, 7); /* the one that was under way is its last */
    press_job_cancel(run.job);                /* after the end: nothing */
    run_clear(&run);
    expect_works_on();
    bench_stop();
}

Test(press_job_cancel, ends_a_job_that_waits, .timeout = TIMEOUT_S)
{
    struct run held = {0};
    struct run waiting = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    held_calls_hold(HELD_QR_ENCODE, 1);
    submit_well(&held, plain_batch(1));
    held_calls_await(HELD_QR_ENCODE);
    submit_well(&waiting, plain_batch(3));
    press_job_cancel(waiting.job);
    await(&waiting); /* while the only worker is held */
    cr_expect_eq(waiting.result.status, ST_CANCELLED);
    cr_expect_eq(waiting.starts, 0);
    held_calls_release(HELD_QR_ENCODE);
    await(&held);
    cr_expect_eq(held.result.status, ST_OK);
    run_clear(&held);
    run_clear(&waiting);
    bench_stop();
}

Test(press_job_release, may_come_before_the_end, .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    held_calls_hold(HELD_QR_ENCODE, 1);
    submit_well(&run, plain_batch(3));
    held_calls_await(HELD_QR_ENCODE);
    press_job_release(&run.job);
    cr_expect_null(run.job);
    press_job_release(&run.job);
    held_calls_release(HELD_QR_ENCODE);
    await(&run);
    cr_expect_eq(run.result.status, ST_OK);
    run_clear(&run);
    bench_stop();
}

/* ---- threads that hang ---- */

static void expect_given_up(struct run *run)
{
    struct pool_status status;

    await(run);
    cr_expect_eq(run->result.status, ST_TIMED_OUT);
    cr_expect_eq(run->result.error.status, ST_TIMED_OUT);
    cr_expect_null(run->result.document);
    expect_works_on(); /* by a thread that has taken the place of the hung one */
    status = pool_status(bench.pool);
    cr_expect_eq(status.threads, 1);
    cr_expect_eq(status.threads_given_up, 1);
}

/* The only worker hangs in `call` and comes back when the job is long over. */
static void hang_and_come_back(enum held_call call)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 2, .deadline_ms = FAST_MS});
    held_calls_hold(call, 1);
    submit_well(&run, plain_batch(6));
    expect_given_up(&run);
    run_clear(&run);
    held_calls_release(call);
    wait_for(&bench.worker_freed); /* it has freed the job; all that is left to it is to leave */
    if (!pool_stop(&bench.pool, POOL_STOP_DRAIN))
        cr_log_info("the thread had not left yet: it frees the pool");
    cr_expect_eq(run.ends, 1);
    press_unref(&bench.press);
    resources_clear(&bench.resources);
}

Test(press_submit_move, gives_up_a_hung_slice_whose_thread_comes_back_later, .timeout = TIMEOUT_S)
{
    hang_and_come_back(HELD_QR_ENCODE);
}

Test(press_submit_move, gives_up_a_hung_bind_whose_thread_comes_back_later, .timeout = TIMEOUT_S)
{
    hang_and_come_back(HELD_PDF_WRITE);
}

/* Nothing that the thread may touch is freed: it is still reachable from its stack, so that the
 * sanitizer is silent, and `bench` keeps the rest. */
static void hang_for_ever(enum held_call call)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 2, .deadline_ms = FAST_MS});
    held_calls_hold(call, 1);
    submit_well(&run, plain_batch(6));
    expect_given_up(&run);
    run_clear(&run);
    cr_expect_not(pool_stop(&bench.pool, POOL_STOP_NOW));
    press_unref(&bench.press);
}

Test(press_submit_move, gives_up_a_slice_that_never_ends, .timeout = TIMEOUT_S)
{
    hang_for_ever(HELD_QR_ENCODE);
}

Test(press_submit_move, gives_up_a_bind_that_never_ends, .timeout = TIMEOUT_S)
{
    hang_for_ever(HELD_PDF_WRITE);
}

/* ---- missing glyphs ---- */

/* U+F0000 and U+10FFFD are for private use: no font has them. */
#define MISSING_TWICE ",\"gate\":\"\\udb80\\udc00 \\udbff\\udffd\""

Test(press_submit_move, reports_missing_glyphs_and_prints, .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 1});
    run_through(&run, batch_of(3, "", MISSING_TWICE));
    cr_assert_eq(run.result.status, ST_OK, "%s", run.result.error.text);
    cr_assert_eq(run.result.problems.count, 2);
    cr_expect_str_eq(run.result.problems.listed[0].pointer.data, "/tickets/1/gate");
    cr_expect_str_eq(run.result.problems.listed[0].code, "missing_glyph");
    cr_expect_eq(strncmp(run.result.problems.listed[0].detail.data, "U+F0000 ", 8), 0);
    cr_expect_eq(strncmp(run.result.problems.listed[1].detail.data, "U+10FFFD ", 9), 0);
    run_clear(&run);
    bench_stop();
}

Test(press_submit_move, refuses_missing_glyphs_on_demand_and_lists_all, .timeout = TIMEOUT_S)
{
    struct run run = {0};

    bench_start((struct bench_config){.threads = 2, .slice_tickets = 1});
    run_through(&run, batch_of(3, "\"on_missing_glyph\":\"reject\",", MISSING_TWICE));
    cr_expect_eq(run.result.status, ST_INVALID);
    cr_expect_null(run.result.document);
    cr_expect_not_null(strstr(run.result.error.text, "2 characters"));
    cr_assert_eq(run.result.problems.count, 2);
    run_clear(&run);
    run = (struct run){0};
    run_through(&run, batch_of(3, "\"on_missing_glyph\":\"reject\",", ""));
    cr_expect_eq(run.result.status, ST_OK);
    run_clear(&run);
    bench_stop();
}

Test(press_submit_move, lists_problems_in_the_order_of_the_tickets, .timeout = TIMEOUT_S)
{
    static const size_t THREADS[] = {1, 4};

    for (size_t i = 0; i < sizeof THREADS / sizeof *THREADS; i++) {
        struct run run = {0};
        struct batch batch;

        bench_start((struct bench_config){.threads = THREADS[i], .slice_tickets = 3});
        batch = plain_batch(150);
        for (size_t t = 0; t < 150; t++)
            batch.tickets[t].holder = (struct text){.data = "\xF3\xB0\x80\x80", .len = 4};
        run_through(&run, batch);
        cr_assert_eq(run.result.status, ST_OK);
        cr_expect_eq(run.result.problems.count, 150);
        cr_assert_eq(run.result.problems.listed_count, PROBLEMS_LISTED_MAX);
        for (size_t p = 0; p < PROBLEMS_LISTED_MAX; p++) {
            char pointer[64];

            snprintf(pointer, sizeof pointer, "/tickets/%zu/holder", p);
            cr_expect_str_eq(run.result.problems.listed[p].pointer.data, pointer);
        }
        run_clear(&run);
        bench_stop();
    }
}

/* ---- press_print ---- */

struct printing {
    struct task task; /* first: a printing is found by its task */
    struct task *parts[1];
    struct task_group group;
    struct batch batch;
    struct press_result result;
    struct problems problems;
    sem_t ended;
};

static struct printing *printing_of(struct task *task)
{
    return (struct printing *)(void *)task;
}

static enum status printing_run(struct task *task, void *worker, struct error *err)
{
    struct printing *printing = printing_of(task);
    struct event_key const key = key_of_event();
    enum status const st = press_print(bench.press, task, worker, &key, &printing->batch,
                                       &printing->result, &printing->problems);

    return st == ST_OK ? st : error_set(err, st, "%s", printing->result.error.text);
}

static void printing_done(struct task *task, enum status status, const struct error *err)
{
    cr_expect_eq(status, printing_of(task)->result.status);
    cr_expect_eq(err == NULL, status == ST_OK);
    MUST(sem_post(&printing_of(task)->ended));
}

static void printing_given_up(struct task *task, const struct error *err)
{
    (void)task;
    cr_assert_fail("%s", err->text);
}

static void printing_late(struct task *task)
{
    (void)task;
    cr_assert_fail("it was not given up");
}

static void print(struct printing *printing, struct batch batch)
{
    struct task_group *group = &printing->group;

    *printing = (struct printing){
        .task = {.run = printing_run,
                 .done_take = printing_done,
                 .given_up = printing_given_up,
                 .late_take = printing_late},
        .group = {.lane = POOL_URGENT, .parts = printing->parts, .parts_count = 1},
        .batch = batch,
    };
    printing->parts[0] = &printing->task;
    MUST(sem_init(&printing->ended, 0, 0));
    cr_assert_eq(pool_submit_take(bench.pool, &group, NULL), ST_OK);
    wait_for(&printing->ended);
}

static void printing_clear(struct printing *printing)
{
    batch_clear(&printing->batch);
    press_result_clear(&printing->result);
    problems_clear(&printing->problems);
}

Test(press_print, gives_what_a_job_gives, .timeout = TIMEOUT_S)
{
    struct printing printing;
    struct run run = {0};

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 2});
    print(&printing, plain_batch(5));
    cr_assert_eq(printing.result.status, ST_OK, "%s", printing.result.error.text);
    cr_expect_null(printing.batch.tickets);
    cr_expect_eq(printing.result.tickets_done, 5);
    run_through(&run, plain_batch(5));
    cr_expect(same_bytes(printing.result.document, run.result.document));
    run_clear(&run);
    printing_clear(&printing);
    bench_stop();
}

Test(press_print, fails_with_the_reason_and_the_problems, .timeout = TIMEOUT_S)
{
    struct printing printing;

    bench_start((struct bench_config){.threads = 1, .slice_tickets = 2});
    print(&printing, batch_of(3, "\"layout\":\"none\",", ""));
    cr_expect_eq(printing.result.status, ST_INVALID);
    cr_expect_eq(printing.problems.count, 1);
    cr_expect_not_null(printing.batch.tickets); /* still the caller's */
    printing_clear(&printing);
    held_calls_fail(HELD_QR_ENCODE, 2, ST_LIBRARY);
    print(&printing, plain_batch(3));
    cr_expect_eq(printing.result.status, ST_LIBRARY);
    cr_expect_null(printing.result.document);
    cr_expect_str_eq(printing.result.error.text, "as the test says");
    printing_clear(&printing);
    bench_stop();
}
