#include "service/admission.h"

#include "domain/must.h"
#include "service/answers.h"
#include "service/batch_json.h"
#include "service/json_text.h"
#include "workers/press.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FIRST_POLL_S = 1,            /* when a client should ask for a new job first */
    DOCUMENT_BYTES_BASE = 16384, /* of an estimate: fonts, static parts, frame */
    DOCUMENT_BYTES_TICKET = 1600,
};

struct admission {
    struct task task; /* first: an admission is found again by its task */
    struct task *parts[1];
    struct task_group group;
    struct admission_desk *desk;
    struct admission_order order; /* its texts are the copies below */
    char instance[REQUEST_ID_BYTES_MAX + 1];
    char client[JOB_CLIENT_BYTES_MAX + 1];
    struct bytes body;
    /* Set by whoever answers the exchange, or hands it to a wait: after that it may be gone. A task
     * that hung and was given up must not answer it again when it comes back. */
    atomic_flag is_answered;
};

static struct admission *admission_from(struct task *task)
{
    return (struct admission *)(void *)task;
}

static void admission_free(struct admission *admission)
{
    bytes_clear(&admission->body);
    free(admission);
}

static int64_t now_ms(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- answers ---- */

static void send(struct admission *admission, struct http_answer *answer)
{
    if (atomic_flag_test_and_set(&admission->is_answered))
        http_answer_clear(answer);
    else
        http_answer_move(admission->order.exchange, answer);
}

/* What a failure means to the client, by its status. */
static const struct {
    unsigned status;
    const char *code;
} FAILURES[ST_COUNT] = {
    [ST_OK] = {500, "internal"},           [ST_INVALID] = {422, "rule_broken"},
    [ST_TOO_LARGE] = {413, "too_large"},   [ST_NOT_FOUND] = {404, "not_found"},
    [ST_NO_KEY] = {403, "no_signing_key"}, [ST_BUSY] = {503, "busy"},
    [ST_CANCELLED] = {503, "cancelled"},   [ST_TIMED_OUT] = {503, "timed_out"},
    [ST_NO_MEMORY] = {503, "no_memory"},   [ST_IO] = {503, "store"},
    [ST_LIBRARY] = {503, "internal"},
};

static unsigned retry_after(const struct admission *admission, unsigned status, size_t tickets)
{
    return status == 503 ? job_table_retry_after_s(admission->desk->jobs, tickets) : 0;
}

static void send_failure(struct admission *admission, enum status status, const struct error *err,
                         const struct problems *problems, size_t tickets)
{
    struct http_answer answer = {0};

    answer_problem(&answer,
                   &(struct answer_problem){
                       .status = FAILURES[status].status,
                       .code = FAILURES[status].code,
                       .detail = err->text,
                       .instance = admission->order.instance,
                       .problems = problems != NULL && problems->count > 0 ? problems : NULL,
                       .retry_after_s = retry_after(admission, FAILURES[status].status, tickets),
                   });
    metrics_count_rejection(admission->desk->metrics, FAILURES[status].code);
    send(admission, &answer);
}

/* A body that is no JSON is 400 and not 422. */
static void send_broken_batch(struct admission *admission, const struct error *err,
                              const struct problems *problems)
{
    struct http_answer answer = {0};
    bool const is_malformed =
        problems->listed_count > 0 && strcmp(problems->listed[0].code, PROBLEM_MALFORMED_JSON) == 0;

    answer_problem(&answer,
                   &(struct answer_problem){
                       .status = is_malformed ? 400 : 422,
                       .code = is_malformed ? PROBLEM_MALFORMED_JSON : "rule_broken",
                       .detail = is_malformed ? problems->listed[0].detail.data : err->text,
                       .instance = admission->order.instance,
                       .problems = problems,
                   });
    metrics_count_rejection(admission->desk->metrics, "batch");
    send(admission, &answer);
}

/* ---- answers to those who waited ---- */

/* What the wait needs when the admission is over. */
struct waited {
    struct job_table *jobs;
    char client[JOB_CLIENT_BYTES_MAX + 1];
    char instance[REQUEST_ID_BYTES_MAX + 1];
    const char *preference; /* a constant for Preference-Applied; NULL: none was asked for */
};

static void answer_vanished(struct http_answer *answer, const struct waited *waited)
{
    answer_problem(answer, &(struct answer_problem){
                               .status = 503,
                               .code = "cancelled",
                               .detail = "the job was cancelled before it ended",
                               .instance = waited->instance,
                               .retry_after_s = 1,
                           });
}

static void answer_failed(struct http_answer *answer, const struct waited *waited,
                          const struct job_record *record)
{
    unsigned const status = FAILURES[record->failure].status;

    answer_problem(
        answer, &(struct answer_problem){
                    .status = status,
                    .code = FAILURES[record->failure].code,
                    .detail = "the batch could not be rendered",
                    .instance = waited->instance,
                    .errors_json = {(const char *)record->problems.data, record->problems.len},
                    .retry_after_s = status == 503 ? job_table_retry_after_s(waited->jobs, 0) : 0,
                });
}

/* The document of a job that nobody was promised by its id: delivered, and erased. */
static void answer_ended(struct http_answer *answer, const struct waited *waited,
                         struct job_view *view)
{
    if (view->record.state == JOB_SUCCEEDED)
        answer_document_take(answer, &view->record.document);
    else
        answer_failed(answer, waited, &view->record);
    if (job_table_delete(waited->jobs, waited->client, view->record.id, NULL) != ST_OK)
        return; /* it expires by itself */
}

static void answer_waited(void *user, struct http_exchange *exchange, enum wait_outcome outcome,
                          const char *job_id)
{
    struct waited *waited = user;
    struct http_answer answer = {0};
    struct job_view view = {0};
    enum status const st = job_table_view(waited->jobs, waited->client, job_id, &view, NULL);

    if (outcome == WAIT_PEER_GONE || outcome == WAIT_STOPPED) {
        /* Nobody was promised anything, and nobody is there, or soon will not be. */
        if (job_table_delete(waited->jobs, waited->client, job_id, NULL) != ST_OK)
            answer.closes = true;
        answer_vanished(&answer, waited);
        answer.closes = true;
    } else if (st != ST_OK || view.record.state == JOB_CANCELLED) {
        answer_vanished(&answer, waited);
    } else if (job_state_is_end(view.record.state)) {
        answer_ended(&answer, waited, &view);
    } else {
        answer_job(&answer, 202, &view, FIRST_POLL_S);
    }
    if (waited->preference != NULL && answer.code < 300)
        http_answer_header(&answer, "Preference-Applied", "%s", waited->preference);
    job_record_clear(&view.record);
    free(waited);
    http_answer_move(exchange, &answer);
}

/* ---- jobs ---- */

/* What is small and waited for goes first; a large batch does not, however much its client waits.
 */
static enum pool_lane lane_of(const struct admission *admission, int64_t for_ms,
                              size_t tickets_count)
{
    size_t const small = (size_t)admission->desk->settings->sync_tickets_max;

    return for_ms > 0 && tickets_count <= small ? POOL_URGENT : POOL_BULK;
}

/* Clients are told apart by name; the pool takes turns by number. */
static uint64_t client_key(const char *client)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *client != '\0'; client++)
        hash = (hash ^ (unsigned char)*client) * UINT64_C(1099511628211);
    return hash;
}

static enum status prepare_order(struct admission *admission, const struct batch *batch,
                                 const struct problems *problems, struct job_order *order,
                                 struct error *err)
{
    const char *client = admission->order.client;
    struct json_text json = {.out = &order->problems};
    enum status st = key_store_event_key(admission->desk->keys, client[0] != '\0' ? client : NULL,
                                         batch->event.id.data, time(NULL), &order->key, err);

    order->client = client;
    order->client_key = client_key(client);
    if (st != ST_OK || problems->count == 0)
        return st;
    problems_json_array(&json, problems);
    return json_text_finish(&json, err);
}

/* How long the client is kept waiting: negative for not at all. */
static int64_t wait_ms(const struct admission *admission, size_t tickets_count)
{
    const struct admission_order *order = &admission->order;

    if (order->responds_async)
        return -1;
    if (order->wait_s != WAIT_S_NOT_ASKED)
        return order->wait_s * INT64_C(1000);
    if (tickets_count > (size_t)admission->desk->settings->sync_tickets_max)
        return -1;
    return admission->desk->settings->sync_wait_ms;
}

static void admit_and_promise(struct admission *admission, struct job_order *order,
                              struct batch *batch, struct problems *problems)
{
    struct job_table *jobs = admission->desk->jobs;
    size_t const tickets_count = batch->tickets_count;
    char id[JOB_ID_CHARS + 1];
    struct http_answer answer = {0};
    struct job_view view = {0};
    struct error err = {0};
    enum status st = job_table_admit_move(jobs, order, batch, NULL, id, problems, &err);

    if (st == ST_OK)
        st = job_table_view(jobs, order->client, id, &view, &err);
    if (st != ST_OK) {
        send_failure(admission, st, &err, problems, tickets_count);
        return;
    }
    answer_job(&answer, 202, &view, FIRST_POLL_S);
    if (admission->order.responds_async)
        http_answer_header(&answer, "Preference-Applied", "respond-async");
    job_record_clear(&view.record);
    send(admission, &answer);
}

static struct waited *waited_new(const struct admission *admission)
{
    struct waited *waited = calloc(1, sizeof *waited);

    if (waited == NULL)
        return NULL;
    waited->jobs = admission->desk->jobs;
    snprintf(waited->client, sizeof waited->client, "%s", admission->order.client);
    snprintf(waited->instance, sizeof waited->instance, "%s", admission->order.instance);
    if (admission->order.wait_s != WAIT_S_NOT_ASKED)
        waited->preference = "wait";
    return waited;
}

static void admit_and_wait(struct admission *admission, struct job_order *order,
                           struct batch *batch, int64_t for_ms, struct problems *problems)
{
    size_t const tickets_count = batch->tickets_count;
    struct wait_order const wait_order = {
        .exchange = admission->order.exchange,
        .deadline_ms = now_ms() + for_ms,
        .answer = answer_waited,
        .user = waited_new(admission),
    };
    char id[JOB_ID_CHARS + 1];
    struct wait *wait = NULL;
    struct job_waiter *waiter;
    struct error err = {0};
    enum status st = ST_OK;

    if (atomic_flag_test_and_set(&admission->is_answered)) { /* given up in the meantime */
        free(wait_order.user);
        return;
    }
    if (wait_order.user == NULL)
        st = error_set(&err, ST_NO_MEMORY, "a wait");
    if (st == ST_OK)
        st = wait_new(admission->desk->waits, &wait_order, &wait, &waiter, &err);
    if (st == ST_OK)
        st = job_table_admit_move(admission->desk->jobs, order, batch, waiter, id, problems, &err);
    if (st == ST_OK)
        return; /* from here on the exchange is the wait's, and may be gone */
    if (wait != NULL)
        wait_discard(&wait);
    free(wait_order.user);
    atomic_flag_clear(&admission->is_answered);
    send_failure(admission, st, &err, problems, tickets_count);
}

/* ---- a single ticket ---- */

static void send_printed(struct admission *admission, struct press_result *result,
                         const struct problems *problems)
{
    struct http_answer answer = {0};

    if (result->status != ST_OK) {
        send_failure(admission, result->status, &result->error,
                     result->problems.count > 0 ? &result->problems : problems, 1);
        return;
    }
    metrics_count_document(admission->desk->metrics, 1, result->document->bytes.len);
    answer_document_take(&answer, &result->document);
    if (result->problems.count > 0)
        http_answer_header(&answer, "Ticketpress-Problems", "%zu", result->problems.count);
    if (admission->order.wait_s != WAIT_S_NOT_ASKED)
        http_answer_header(&answer, "Preference-Applied", "wait");
    send(admission, &answer);
}

static void print_here(struct admission *admission, void *worker, const struct event_key *key,
                       struct batch *batch, struct problems *problems)
{
    struct job_table *jobs = admission->desk->jobs;
    size_t const tickets_count = batch->tickets_count;
    struct press_result result = {0};
    struct press *press;
    struct error err = {0};
    enum status st = job_table_reserve(jobs, tickets_count, &err);

    if (st != ST_OK) {
        send_failure(admission, st, &err, NULL, tickets_count);
        return;
    }
    press = job_table_press_ref(jobs);
    press_print(press, &admission->task, worker, key, batch, &result, problems);
    press_unref(&press);
    job_table_release(jobs, tickets_count);
    send_printed(admission, &result, problems);
    press_result_clear(&result);
}

/* ---- the task ---- */

/* Whatever would refuse the batch refuses it here, but for the room of the moment. */
static void send_dry_run(struct admission *admission, const struct batch *batch,
                         struct problems *problems)
{
    struct press *press = job_table_press_ref(admission->desk->jobs);
    struct http_answer answer = {0};
    struct error err = {0};
    enum status const st = press_check_layouts(press, batch, problems, &err);

    press_unref(&press);
    if (st != ST_OK) {
        send_failure(admission, st, &err, problems, batch->tickets_count);
        return;
    }
    answer_dry_run(&answer, batch->tickets_count,
                   DOCUMENT_BYTES_BASE + batch->tickets_count * DOCUMENT_BYTES_TICKET);
    send(admission, &answer);
}

/* What the contract names and this service does not do is refused, not ignored. */
static enum status check_offers(const struct batch *batch, struct problems *problems,
                                struct error *err)
{
    size_t const before = problems->count;

    if (batch->output != OUTPUT_MERGED)
        problems_add(problems, "/output", "not_offered", "only \"merged\" is offered");
    if (batch->callback_url.data != NULL)
        problems_add(problems, "/callback_url", "not_offered", "callbacks are not offered");
    if (problems->count > before)
        return error_set(err, ST_INVALID, "the batch asks for what is not offered");
    return ST_OK;
}

static void admit(struct admission *admission, void *worker, struct batch *batch,
                  struct problems *problems)
{
    struct job_order order = {0};
    struct error err = {0};
    int64_t const for_ms = wait_ms(admission, batch->tickets_count);
    enum status st;

    st = prepare_order(admission, batch, problems, &order, &err);
    order.lane = lane_of(admission, for_ms, batch->tickets_count);
    if (st != ST_OK)
        send_failure(admission, st, &err, NULL, batch->tickets_count);
    else if (admission->order.is_dry_run)
        send_dry_run(admission, batch, problems);
    else if (for_ms < 0)
        admit_and_promise(admission, &order, batch, problems);
    else if (batch->tickets_count == 1)
        print_here(admission, worker, &order.key, batch, problems);
    else
        admit_and_wait(admission, &order, batch, for_ms, problems);
    event_key_clear(&order.key);
    bytes_clear(&order.problems);
}

static void parse_and_admit(struct admission *admission, void *worker)
{
    const struct admission_desk *desk = admission->desk;
    struct batch_limits const limits = {.tickets_max = (size_t)desk->settings->tickets_max};
    struct problems problems = {0};
    struct batch batch = {0};
    struct error err = {0};
    enum status st =
        batch_json_read(&admission->body, &desk->rules, &limits, &batch, &problems, &err);

    bytes_clear(&admission->body); /* the batch has all that it said */
    if (st == ST_OK)
        st = check_offers(&batch, &problems, &err);
    if (st == ST_OK)
        admit(admission, worker, &batch, &problems);
    else if (st == ST_INVALID)
        send_broken_batch(admission, &err, &problems);
    else
        send_failure(admission, st, &err, &problems, 0);
    batch_clear(&batch);
    problems_clear(&problems);
}

static enum status admission_run(struct task *task, void *worker, struct error *err)
{
    struct admission *admission = admission_from(task);

    (void)err;
    if (http_peer_is_gone(admission->order.exchange)) {
        struct http_answer answer = {.closes = true};

        /* Only one who has closed no more than its sending half will read it. */
        answer_problem(&answer, &(struct answer_problem){
                                    .status = 503,
                                    .code = "peer_gone",
                                    .detail = "the connection was closed before the work began",
                                    .instance = admission->order.instance,
                                });
        metrics_count_rejection(admission->desk->metrics, "peer_gone");
        send(admission, &answer);
        return ST_OK;
    }
    parse_and_admit(admission, worker);
    return ST_OK;
}

static void admission_done_take(struct task *task, enum status status, const struct error *err)
{
    struct admission *admission = admission_from(task);

    if (status != ST_OK)
        send_failure(admission, status, err, NULL, 0);
    admission_free(admission);
}

static void admission_given_up(struct task *task, const struct error *err)
{
    send_failure(admission_from(task), ST_TIMED_OUT, err, NULL, 0);
}

static void admission_late_take(struct task *task)
{
    admission_free(admission_from(task));
}

static void refuse(struct admission_desk *desk, const struct admission_order *order,
                   enum status status, const struct error *err)
{
    struct admission refused = {.desk = desk, .order = *order};

    send_failure(&refused, status, err, NULL, 0);
}

void admission_start(struct admission_desk *desk, const struct admission_order *order)
{
    struct admission *admission = calloc(1, sizeof *admission);
    struct task_group *group;
    struct error err = {0};
    enum status st;

    if (admission == NULL) {
        refuse(desk, order, error_set(&err, ST_NO_MEMORY, "an admission"), &err);
        return;
    }
    admission->task = (struct task){.run = admission_run,
                                    .done_take = admission_done_take,
                                    .given_up = admission_given_up,
                                    .late_take = admission_late_take};
    admission->parts[0] = &admission->task;
    admission->group = (struct task_group){.lane = POOL_URGENT,
                                           .client = client_key(order->client),
                                           .parts = admission->parts,
                                           .parts_count = 1};
    admission->desk = desk;
    admission->order = *order;
    snprintf(admission->instance, sizeof admission->instance, "%s", order->instance);
    snprintf(admission->client, sizeof admission->client, "%s", order->client);
    admission->order.instance = admission->instance; /* a hung task may outlive its exchange */
    admission->order.client = admission->client;
    bytes_move(&admission->body, http_body(order->exchange));
    group = &admission->group;
    st = pool_submit_take(desk->pool, &group, &err);
    if (st != ST_OK) {
        send_failure(admission, st, &err, NULL, 0);
        admission_free(admission);
    }
}
