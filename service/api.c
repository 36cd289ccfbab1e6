#include "service/api.h"

#include "domain/must.h"
#include "service/admission.h"
#include "service/answers.h"
#include "service/json_text.h"
#include "service/log.h"
#include "service/token_check.h"
#include "service/waits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    REQUEST_MAGIC = 0x52455155,
    LIST_LIMIT_DEFAULT = 20,
    LIST_LIMIT_MAX = 100,
    TICKETS_LIMIT_DEFAULT = 100,
    TICKETS_LIMIT_MAX = 1000,
    WAIT_S_MAX = 60,
    PEERS_EVERY_TICKS = 20,
    VERIFY_BODY_BYTES_MAX = 4096,
};

struct api {
    struct api_config config;
    struct admission_desk desk;
    struct waits *waits;
    struct http *http;
    bool is_draining;
    size_t open;      /* exchanges; the front end's own count */
    size_t under_way; /* of them, those that were parked */
    uint64_t ticks;
    char id_prefix[17]; /* of request ids: random, so that ids of two runs differ */
    uint64_t id_count;
    struct job_view views[LIST_LIMIT_MAX]; /* of the list that is being answered */
};

/* ---- routes ---- */

struct request;

struct route {
    const char *path; /* "*" stands for one segment */
    enum metrics_route metric;
    unsigned methods; /* bits by enum http_method */
    unsigned scope;   /* of enum client_scope; 0: open to all */
    enum http_turn (*answer)(struct api *api, struct request *request);
    /* After the exchange was parked; NULL where answer never asks for it. */
    void (*start)(struct api *api, struct request *request);
    bool names_job; /* "*" is a job's id */
};

/* What is known of one exchange. */
struct request {
    uint32_t magic;
    struct http_exchange *exchange;
    const struct route *route; /* NULL: none */
    struct text segment;       /* what "*" stood for */
    char id[REQUEST_ID_BYTES_MAX + 1];
    char client[JOB_CLIENT_BYTES_MAX + 1];
    char job_id[JOB_ID_CHARS + 1];
    enum http_method method; /* the one routed by: HEAD as GET */
    bool is_parked;
    bool is_fetch; /* its answer is a job's document */
    /* of a long poll */
    enum job_state state;
    int wait_s;
    struct api *api;
};

static struct request *request_of(struct http_exchange *exchange)
{
    struct request *request = *http_user_data(exchange);

    assert(request == NULL || request->magic == REQUEST_MAGIC);
    return request;
}

static int64_t now_ms(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- answers ---- */

static void send(const struct request *request, struct http_answer *answer)
{
    http_answer_move(request->exchange, answer);
}

static enum http_turn send_problem(struct request *request, unsigned status, const char *code,
                                   const char *detail, unsigned retry_after_s)
{
    struct http_answer answer = {0};

    answer_problem(&answer, &(struct answer_problem){.status = status,
                                                     .code = code,
                                                     .detail = detail,
                                                     .instance = request->id,
                                                     .retry_after_s = retry_after_s});
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn send_not_found(struct request *request)
{
    if (job_table_was_here(request->api->config.jobs, request->client, request->job_id))
        return send_problem(request, 410, "gone", "the job has expired", 0);
    return send_problem(request, 404, "not_found", "there is no such job", 0);
}

/* A lookup that failed for another reason than that there is nothing. */
static enum http_turn send_lookup_failure(struct request *request, enum status status,
                                          const struct error *err)
{
    if (status == ST_NOT_FOUND)
        return send_not_found(request);
    return send_problem(request, 503, status_name(status), err->text, 1);
}

static enum http_turn send_text(struct request *request, unsigned status, const char *type,
                                struct bytes *text)
{
    struct http_answer answer = {.code = status};

    bytes_move(&answer.body, text);
    http_answer_header(&answer, "Content-Type", "%s", type);
    http_answer_header(&answer, "Cache-Control", "no-store");
    send(request, &answer);
    return HTTP_ANSWERED;
}

/* ---- queries ---- */

/* The value of a parameter; len 0 and data NULL when it is not there. */
static struct text query_value(struct text query, const char *name)
{
    size_t const name_len = strlen(name);
    const char *at = query.data;

    while (*at != '\0') {
        size_t const len = strcspn(at, "&");

        if (len > name_len && at[name_len] == '=' && memcmp(at, name, name_len) == 0)
            return (struct text){.data = at + name_len + 1, .len = len - name_len - 1};
        at += len + (at[len] == '&');
    }
    return (struct text){0};
}

/* Whether every parameter is one of those that the route knows: a misspelt one is not ignored. */
static bool query_is_known(struct text query, const char *const *known)
{
    const char *at = query.data;

    while (*at != '\0') {
        size_t const len = strcspn(at, "&");
        size_t const name_len = strcspn(at, "=&");
        bool is_known = false;

        for (const char *const *name = known; *name != NULL && !is_known; name++)
            is_known = strlen(*name) == name_len && memcmp(at, *name, name_len) == 0;
        if (!is_known)
            return false;
        at += len + (at[len] == '&');
    }
    return true;
}

/* A whole number; fallback when it is not there, false when it is none or out of its range. */
static bool query_number(struct text query, const char *name, uint64_t min, uint64_t max,
                         uint64_t fallback, uint64_t *number)
{
    struct text const value = query_value(query, name);
    uint64_t read = 0;

    *number = fallback;
    if (value.data == NULL)
        return true;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9' || read > UINT64_MAX / 10 - 10)
            return false;
        read = read * 10 + (uint64_t)(value.data[i] - '0');
    }
    *number = read;
    return value.len > 0 && read >= min && read <= max;
}

static enum http_turn send_bad_query(struct request *request, const char *detail)
{
    return send_problem(request, 400, "bad_query", detail, 0);
}

static bool has_query(const struct request *request)
{
    return http_query(request->exchange).len > 0;
}

static enum http_turn send_no_query(struct request *request)
{
    return send_bad_query(request, "there are no query parameters here");
}

/* ---- Prefer (RFC 7240) ---- */

struct preferences {
    bool responds_async;
    int wait_s; /* WAIT_S_NOT_ASKED when there is none; larger ones are cut to WAIT_S_MAX */
};

/* The digits at the start of a text, up to WAIT_S_MAX. */
static int seconds_of(const char *digits)
{
    int seconds = 0;

    for (; *digits >= '0' && *digits <= '9' && seconds <= WAIT_S_MAX; digits++)
        seconds = seconds * 10 + (*digits - '0');
    return seconds < WAIT_S_MAX ? seconds : WAIT_S_MAX;
}

static struct preferences preferences_of(const struct request *request)
{
    struct preferences preferences = {.wait_s = WAIT_S_NOT_ASKED};
    const char *at = http_header(request->exchange, "Prefer");

    while (at != NULL && *at != '\0') {
        at += strspn(at, " \t,;");
        if (strncasecmp(at, "respond-async", 13) == 0 && strchr(" \t,;", at[13]) != NULL)
            preferences.responds_async = true;
        else if (strncasecmp(at, "wait=", 5) == 0 && at[5] >= '0' && at[5] <= '9')
            preferences.wait_s = seconds_of(at + 5);
        at += strcspn(at, ",;");
    }
    return preferences;
}

/* ---- POST /v1/batches ---- */

static enum http_turn answer_batches(struct api *api, struct request *request)
{
    static const char *const KNOWN[] = {"dry_run", NULL};
    uint64_t dry_run;

    (void)api;
    if (!query_is_known(http_query(request->exchange), KNOWN) ||
        !query_number(http_query(request->exchange), "dry_run", 0, 1, 0, &dry_run))
        return send_bad_query(request, "the query may be dry_run=0 or dry_run=1");
    return HTTP_GO_ON;
}

static void start_batch(struct api *api, struct request *request)
{
    struct preferences const preferences = preferences_of(request);
    uint64_t dry_run;
    struct admission_order order = {
        .exchange = request->exchange,
        .instance = request->id,
        .client = request->client,
        .responds_async = preferences.responds_async,
        .wait_s = preferences.wait_s,
    };

    query_number(http_query(request->exchange), "dry_run", 0, 1, 0, &dry_run);
    order.is_dry_run = dry_run == 1;
    admission_start(&api->desk, &order);
}

/* ---- /v1/jobs ---- */

static enum http_turn answer_job_list(struct api *api, struct request *request)
{
    static const char *const KNOWN[] = {"state", "limit", "cursor", NULL};
    struct text const query = http_query(request->exchange);
    struct text const state = query_value(query, "state");
    struct job_list_query list = {.state = -1};
    const char *state_name = NULL;
    uint64_t limit, cursor;
    size_t count = 0;
    struct error err = {0};
    enum status st;
    struct http_answer answer = {0};

    for (int i = 0; i < JOB_STATES; i++) {
        const char *name = job_state_name((enum job_state)i);

        if (state.len == strlen(name) && memcmp(state.data, name, state.len) == 0) {
            list.state = i;
            state_name = name;
        }
    }
    if (!query_is_known(query, KNOWN) || (state.data != NULL && list.state < 0) ||
        !query_number(query, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit) ||
        !query_number(query, "cursor", 1, UINT64_MAX - 1, UINT64_MAX, &cursor))
        return send_bad_query(request, "the query may have state (a job's state), limit (1 to 100) "
                                       "and cursor (from a Link header)");
    list.client = api->config.clients != NULL ? request->client : NULL;
    list.limit = (size_t)limit;
    list.before = cursor;
    st = job_table_list(api->config.jobs, &list, api->views, &count, &err);
    if (st != ST_OK)
        return send_lookup_failure(request, st, &err);
    answer_jobs(&answer, api->views, count,
                count == list.limit ? api->views[count - 1].record.number : 0, state_name);
    for (size_t i = 0; i < count; i++)
        job_record_clear(&api->views[i].record);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn send_job(struct request *request)
{
    struct job_view view = {0};
    struct http_answer answer = {0};
    struct error err = {0};
    enum status const st =
        job_table_view(request->api->config.jobs, request->client, request->job_id, &view, &err);

    if (st != ST_OK)
        return send_lookup_failure(request, st, &err);
    answer_job(&answer, 200, &view, 0);
    job_record_clear(&view.record);
    if (request->wait_s > 0)
        http_answer_header(&answer, "Preference-Applied", "wait");
    send(request, &answer);
    return HTTP_ANSWERED;
}

/* The state that a long poll waits to see changed; false when the job can be answered at once. */
static bool must_wait(struct request *request)
{
    struct job_view view = {0};
    bool is_open;

    if (request->wait_s <= 0 || job_table_view(request->api->config.jobs, request->client,
                                               request->job_id, &view, NULL) != ST_OK)
        return false;
    request->state = view.record.state;
    is_open = !job_state_is_end(view.record.state);
    job_record_clear(&view.record);
    return is_open;
}

static enum http_turn answer_job_get(struct api *api, struct request *request)
{
    static const char *const KNOWN[] = {"wait", NULL};
    struct text const query = http_query(request->exchange);
    int const preferred = preferences_of(request).wait_s;
    uint64_t wait_s;

    (void)api;
    if (!query_is_known(query, KNOWN) ||
        !query_number(query, "wait", 0, WAIT_S_MAX, preferred > 0 ? (uint64_t)preferred : 0,
                      &wait_s))
        return send_bad_query(request, "the query may be wait=S, 0 to 60 seconds");
    request->wait_s = (int)wait_s;
    return must_wait(request) ? HTTP_GO_ON : send_job(request);
}

static void answer_poll(void *user, struct http_exchange *exchange, enum wait_outcome outcome,
                        const char *job_id)
{
    (void)exchange;
    (void)job_id;
    (void)outcome; /* whatever it is, the job's state now is the answer */
    send_job(user);
}

static void start_poll(struct api *api, struct request *request)
{
    struct wait_order const order = {
        .exchange = request->exchange,
        .deadline_ms = now_ms() + request->wait_s * INT64_C(1000),
        .answer = answer_poll,
        .user = request,
    };

    if (waits_for_change(api->waits, &order, request->job_id, request->state, false, NULL) != ST_OK)
        send_job(request);
}

static enum http_turn answer_job_delete(struct api *api, struct request *request)
{
    struct http_answer answer = {.code = 204};
    struct error err = {0};
    enum status const st =
        job_table_delete(api->config.jobs, request->client, request->job_id, &err);

    if (st != ST_OK)
        return send_lookup_failure(request, st, &err);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn answer_job_route(struct api *api, struct request *request)
{
    return request->method == HTTP_DELETE ? answer_job_delete(api, request)
                                          : answer_job_get(api, request);
}

/* The document's record, or the answer to why there is none. */
static bool finished_record(struct request *request, struct job_view *view)
{
    struct error err = {0};
    enum status const st =
        job_table_view(request->api->config.jobs, request->client, request->job_id, view, &err);

    if (st != ST_OK) {
        send_lookup_failure(request, st, &err);
        return false;
    }
    if (view->record.document != NULL)
        return true;
    if (job_state_is_end(view->record.state))
        send_problem(request, 409, "no_document", "the job has ended without a document", 0);
    else
        send_problem(request, 409, "not_ready", "the job has not ended yet", 1);
    job_record_clear(&view->record);
    return false;
}

static enum http_turn answer_document(struct api *api, struct request *request)
{
    struct job_view view = {0};
    struct http_answer answer = {0};

    (void)api;
    if (has_query(request))
        return send_no_query(request);
    if (!finished_record(request, &view))
        return HTTP_ANSWERED;
    request->is_fetch = http_method(request->exchange) != HTTP_HEAD;
    answer_document_take(&answer, &view.record.document);
    job_record_clear(&view.record);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn answer_job_tickets(struct api *api, struct request *request)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct text const query = http_query(request->exchange);
    struct job_view view = {0};
    struct http_answer answer = {0};
    uint64_t limit, cursor;
    size_t total;

    (void)api;
    if (!query_is_known(query, KNOWN) ||
        !query_number(query, "limit", 1, TICKETS_LIMIT_MAX, TICKETS_LIMIT_DEFAULT, &limit) ||
        !query_number(query, "cursor", 0, SIZE_MAX / 2, 0, &cursor))
        return send_bad_query(request, "the query may have limit (1 to 1000) and cursor");
    if (!finished_record(request, &view))
        return HTTP_ANSWERED;
    total = view.record.document->tickets.count;
    if (cursor > total)
        cursor = total;
    answer_tickets(&answer, &view.record, (size_t)cursor,
                   total - (size_t)cursor < limit ? total - (size_t)cursor : (size_t)limit);
    job_record_clear(&view.record);
    send(request, &answer);
    return HTTP_ANSWERED;
}

/* ---- tokens ---- */

static enum http_turn answer_verify(struct api *api, struct request *request)
{
    (void)api;
    if (http_body(request->exchange)->len > VERIFY_BODY_BYTES_MAX)
        return send_problem(request, 413, "too_large", "a token is at most 211 characters", 0);
    return HTTP_GO_ON;
}

static void start_verify(struct api *api, struct request *request)
{
    token_check_start(api->config.pool, api->config.keys, request->exchange, request->client,
                      request->id);
}

/* ---- layouts ---- */

static enum http_turn answer_layout_list(struct api *api, struct request *request)
{
    struct http_answer answer = {0};
    struct press *press;

    if (has_query(request))
        return send_no_query(request);
    press = job_table_press_ref(api->config.jobs);
    answer_layouts(&answer, press_layouts(press));
    press_unref(&press);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn answer_layout_get(struct api *api, struct request *request)
{
    struct http_answer answer = {0};
    struct press *press;
    const struct press_layout *layout;

    if (has_query(request))
        return send_no_query(request);
    press = job_table_press_ref(api->config.jobs);
    layout = press_layout_find(press, request->segment);
    if (layout != NULL)
        answer_layout(&answer, layout);
    press_unref(&press);
    if (layout == NULL)
        return send_problem(request, 404, "not_found", "there is no such layout", 0);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn answer_layout_schema(struct api *api, struct request *request)
{
    struct bytes text = {0};

    if (has_query(request))
        return send_no_query(request);
    if (bytes_append(&text, api->config.layout_schema->data, api->config.layout_schema->len,
                     NULL) != ST_OK)
        return send_problem(request, 503, "no_memory", "no memory for the answer", 1);
    return send_text(request, 200, "application/schema+json", &text);
}

/* ---- the service itself ---- */

static void member_unsigned(struct json_text *json, const char *name, uint64_t value)
{
    json_text_name(json, name);
    json_text_unsigned(json, value);
}

static void put_pool(struct json_text *json, const struct pool_status *pool)
{
    json_text_name(json, "pool");
    json_text_begin_object(json);
    member_unsigned(json, "threads", pool->threads);
    member_unsigned(json, "busy", pool->busy);
    member_unsigned(json, "queued_urgent", pool->queued[POOL_URGENT]);
    member_unsigned(json, "queued_bulk", pool->queued[POOL_BULK]);
    member_unsigned(json, "oldest_wait_ms", pool->oldest_wait_ms);
    member_unsigned(json, "done", pool->done);
    member_unsigned(json, "failed", pool->failed);
    member_unsigned(json, "cancelled", pool->cancelled);
    member_unsigned(json, "timed_out", pool->timed_out);
    member_unsigned(json, "threads_given_up", pool->threads_given_up);
    json_text_end_object(json);
}

static void put_front_end(struct json_text *json, const struct http_status *status)
{
    json_text_name(json, "front_end");
    json_text_begin_object(json);
    member_unsigned(json, "lag_max_us", status->lag_max_us);
    member_unsigned(json, "connections", status->connections);
    member_unsigned(json, "parked", status->parked);
    json_text_end_object(json);
}

static enum http_turn send_json(struct request *request, unsigned status, struct json_text *json,
                                struct bytes *text)
{
    if (json_text_finish(json, NULL) != ST_OK) {
        bytes_clear(text);
        return send_problem(request, 503, "no_memory", "no memory for the answer", 1);
    }
    return send_text(request, status, "application/json", text);
}

static enum http_turn answer_healthz(struct api *api, struct request *request)
{
    struct pool_status const pool = pool_status(api->config.pool);
    struct http_status const front_end = http_status(api->http);
    struct job_table_status const jobs = job_table_status(api->config.jobs);
    struct bytes text = {0};
    struct json_text json = {.out = &text};

    json_text_begin_object(&json);
    json_text_name(&json, "status");
    json_text_chars(&json, api->is_draining ? "draining" : "ok");
    put_pool(&json, &pool);
    put_front_end(&json, &front_end);
    json_text_name(&json, "jobs");
    json_text_begin_object(&json);
    member_unsigned(&json, "running", jobs.jobs_running);
    member_unsigned(&json, "tickets_queued", jobs.tickets_queued);
    json_text_end_object(&json);
    json_text_end_object(&json);
    return send_json(request, 200, &json, &text);
}

static enum http_turn answer_readyz(struct api *api, struct request *request)
{
    struct bytes text = {0};
    struct json_text json = {.out = &text};

    if (api->is_draining)
        return send_problem(request, 503, "draining", "the service is stopping", 1);
    json_text_begin_object(&json);
    json_text_name(&json, "status");
    json_text_chars(&json, "ready");
    json_text_end_object(&json);
    return send_json(request, 200, &json, &text);
}

static enum http_turn answer_metrics(struct api *api, struct request *request)
{
    struct http_status const front_end = http_status(api->http);
    struct job_table_status const jobs = job_table_status(api->config.jobs);
    struct metrics_gauges const gauges = {
        .http_connections = front_end.connections,
        .http_parked_connections = front_end.parked,
        .http_request_bytes_held = front_end.bodies_bytes,
        .front_end_lag = {.counts = front_end.lag_buckets,
                          .buckets_count = HTTP_LAG_BUCKETS,
                          .bound_us = http_lag_bound_us,
                          .sum_us = front_end.lag_sum_us},
        .pool = pool_status(api->config.pool),
        .jobs_running = jobs.jobs_running,
        .queued_tickets = jobs.tickets_queued,
        .log_lines_lost = log_lines_lost(),
    };
    struct bytes text = {0};

    if (metrics_write(api->config.metrics, &gauges, &text, NULL) != ST_OK) {
        bytes_clear(&text);
        return send_problem(request, 503, "no_memory", "no memory for the answer", 1);
    }
    return send_text(request, 200, METRICS_CONTENT_TYPE, &text);
}

static enum http_turn answer_version(struct api *api, struct request *request)
{
    struct bytes text = {0};
    struct json_text json = {.out = &text};

    char hash[2 * SHA256_BYTES + 1];

    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(hash + 2 * i, 3, "%02x", api->config.fonts_hash[i]);
    json_text_begin_object(&json);
    json_text_name(&json, "name");
    json_text_chars(&json, "ticketpress");
    json_text_name(&json, "version");
    json_text_chars(&json, TICKETPRESS_VERSION);
    json_text_name(&json, "fonts");
    json_text_chars(&json, hash);
    json_text_end_object(&json);
    return send_json(request, 200, &json, &text);
}

/* ---- the table of routes ---- */

enum {
    GET_BITS = 1 << HTTP_GET | 1 << HTTP_HEAD,
    POST_BIT = 1 << HTTP_POST,
    DELETE_BIT = 1 << HTTP_DELETE,
};

static const struct route ROUTES[] = {
    {"/v1/batches", METRICS_ROUTE_BATCHES, POST_BIT, SCOPE_RENDER, answer_batches, start_batch,
     false},
    {"/v1/jobs", METRICS_ROUTE_JOBS, GET_BITS, SCOPE_RENDER, answer_job_list, NULL, false},
    {"/v1/jobs/*", METRICS_ROUTE_JOB, GET_BITS | DELETE_BIT, SCOPE_RENDER, answer_job_route,
     start_poll, true},
    {"/v1/jobs/*/document", METRICS_ROUTE_JOB_DOCUMENT, GET_BITS, SCOPE_RENDER, answer_document,
     NULL, true},
    {"/v1/jobs/*/tickets", METRICS_ROUTE_JOB_TICKETS, GET_BITS, SCOPE_RENDER, answer_job_tickets,
     NULL, true},
    {"/v1/tokens/verify", METRICS_ROUTE_VERIFY, POST_BIT, SCOPE_VERIFY, answer_verify, start_verify,
     false},
    {"/v1/layouts", METRICS_ROUTE_LAYOUTS, GET_BITS, SCOPE_RENDER, answer_layout_list, NULL, false},
    {"/v1/layouts/*", METRICS_ROUTE_LAYOUT, GET_BITS, SCOPE_RENDER, answer_layout_get, NULL, false},
    {"/v1/layout-schema", METRICS_ROUTE_LAYOUT_SCHEMA, GET_BITS, 0, answer_layout_schema, NULL,
     false},
    {"/healthz", METRICS_ROUTE_HEALTHZ, GET_BITS, 0, answer_healthz, NULL, false},
    {"/readyz", METRICS_ROUTE_READYZ, GET_BITS, 0, answer_readyz, NULL, false},
    {"/metrics", METRICS_ROUTE_METRICS, GET_BITS, 0, answer_metrics, NULL, false},
    {"/version", METRICS_ROUTE_VERSION, GET_BITS, 0, answer_version, NULL, false},
};

/* Whether a raw path is a route's, whose "*" stands for one segment that is not empty. */
static bool path_matches(const char *pattern, struct text path, struct text *segment)
{
    const char *at = path.data;
    const char *end = path.data + path.len;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            const char *begin = at;

            while (at < end && *at != '/')
                at++;
            *segment = (struct text){.data = begin, .len = (size_t)(at - begin)};
            if (segment->len == 0)
                return false;
        } else if (at == end || *at++ != *pattern) {
            return false;
        }
    }
    return at == end;
}

static const struct route *route_of(struct text path, struct text *segment)
{
    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++)
        if (path_matches(ROUTES[i].path, path, segment))
            return &ROUTES[i];
    return NULL;
}

static void allow_text(unsigned methods, char text[64])
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD", [HTTP_POST] = "POST", [HTTP_DELETE] = "DELETE"};

    text[0] = '\0';
    for (int method = HTTP_GET; method < HTTP_OTHER; method++)
        if (methods & 1U << method)
            snprintf(text + strlen(text), 64 - strlen(text), "%s%s", text[0] == '\0' ? "" : ", ",
                     NAMES[method]);
}

/* ---- what every request goes through ---- */

/* A client's id is taken over if it is plain, so that both logs can be joined. */
static bool is_plain_id(const char *id)
{
    size_t const len = strlen(id);

    return len >= 1 && len <= REQUEST_ID_BYTES_MAX &&
           strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:") == len;
}

static struct request *request_new(struct api *api, struct http_exchange *exchange)
{
    struct request *request = calloc(1, sizeof *request);
    const char *given = http_header(exchange, "X-Request-Id");

    if (request == NULL)
        return NULL;
    request->magic = REQUEST_MAGIC;
    request->api = api;
    request->exchange = exchange;
    request->method = http_method(exchange) == HTTP_HEAD ? HTTP_GET : http_method(exchange);
    if (given != NULL && is_plain_id(given))
        snprintf(request->id, sizeof request->id, "%s", given);
    else
        snprintf(request->id, sizeof request->id, "%s-%llx", api->id_prefix,
                 (unsigned long long)++api->id_count);
    http_set_request_id(exchange, request->id);
    *http_user_data(exchange) = request;
    api->open++;
    return request;
}

static bool is_authorized(struct api *api, struct request *request, unsigned *scopes)
{
    const struct client *client;

    *scopes = SCOPE_ALL;
    if (api->config.clients == NULL)
        return true;
    client = client_from_authorization(api->config.clients,
                                       http_header(request->exchange, "Authorization"));
    if (client == NULL)
        return false;
    snprintf(request->client, sizeof request->client, "%s", client->name);
    *scopes = client->scopes;
    return true;
}

static enum http_turn check_caller(struct api *api, struct request *request)
{
    unsigned scopes;

    if (request->route->scope == 0)
        return HTTP_GO_ON;
    if (!is_authorized(api, request, &scopes)) {
        metrics_count_rejection(api->config.metrics, "unauthorized");
        return send_problem(request, 401, "unauthorized", "a client's key is required", 0);
    }
    if ((scopes & request->route->scope) == 0) {
        metrics_count_rejection(api->config.metrics, "forbidden");
        return send_problem(request, 403, "forbidden", "this client may not do that", 0);
    }
    return HTTP_GO_ON;
}

/* RFC 9110 section 8.3: the type, whatever parameters follow it. */
static bool is_json_type(const char *type)
{
    static const char JSON[] = "application/json";

    return type != NULL && strncasecmp(type, JSON, sizeof JSON - 1) == 0 &&
           strchr("; \t", type[sizeof JSON - 1]) != NULL;
}

static enum http_turn check_body(struct api *api, struct request *request)
{
    const char *coding = http_header(request->exchange, "Content-Encoding");

    if (!is_json_type(http_header(request->exchange, "Content-Type")))
        return send_problem(request, 415, "media_type", "the body must be application/json", 0);
    if (coding != NULL && strcasecmp(coding, "identity") != 0)
        return send_problem(request, 415, "content_coding", "the body must not be encoded", 0);
    if (!http_has_body(request->exchange))
        return send_problem(request, 400, "no_body", "there is no body", 0);
    if (api->is_draining && request->route->start == start_batch) {
        metrics_count_rejection(api->config.metrics, "draining");
        return send_problem(request, 503, "draining", "the service is stopping", 1);
    }
    return HTTP_GO_ON;
}

static enum http_turn send_wrong_method(struct request *request)
{
    struct http_answer answer = {0};
    char allow[64];

    allow_text(request->route->methods, allow);
    answer_problem(&answer, &(struct answer_problem){.status = 405,
                                                     .code = "method_not_allowed",
                                                     .detail = "this method is not offered here",
                                                     .instance = request->id});
    http_answer_header(&answer, "Allow", "%s", allow);
    send(request, &answer);
    return HTTP_ANSWERED;
}

static enum http_turn on_head(void *user, struct http_exchange *exchange)
{
    struct api *api = user;
    struct request *request = request_new(api, exchange);
    enum http_turn turn;

    if (request == NULL) {
        struct http_answer answer = {.code = 503, .closes = true};

        http_answer_move(exchange, &answer);
        return HTTP_ANSWERED;
    }
    request->route = route_of(http_path(exchange), &request->segment);
    if (request->route == NULL)
        return send_problem(request, 404, "no_such_path", "there is nothing at this path", 0);
    if ((request->route->methods & 1U << http_method(exchange)) == 0)
        return send_wrong_method(request);
    turn = check_caller(api, request);
    if (turn == HTTP_GO_ON && request->method == HTTP_POST)
        turn = check_body(api, request);
    else if (turn == HTTP_GO_ON && http_has_body(exchange))
        turn = send_problem(request, 400, "unexpected_body", "this request has no body", 0);
    return turn;
}

static enum http_turn on_request(void *user, struct http_exchange *exchange)
{
    struct request *request = request_of(exchange);

    if (request->route->names_job) {
        if (request->segment.len != JOB_ID_CHARS)
            return send_problem(request, 404, "not_found", "there is no such job", 0);
        memcpy(request->job_id, request->segment.data, JOB_ID_CHARS);
    }
    return request->route->answer(user, request);
}

static void on_start(void *user, struct http_exchange *exchange)
{
    struct api *api = user;
    struct request *request = request_of(exchange);

    api->under_way++;
    request->is_parked = true;
    request->route->start(api, request);
}

static const char *refusal_name(unsigned code)
{
    switch (code) {
    case 413:
    case 414:
        return "too_large";
    case 417:
        return "expectation";
    case 503:
        return "no_memory";
    default:
        return "malformed_request";
    }
}

static void on_refusal(void *user, struct http_exchange *exchange, unsigned code,
                       const char *detail, struct http_answer *answer)
{
    struct request *request = request_of(exchange);

    if (request == NULL)
        request = request_new(user, exchange);
    answer_problem(answer, &(struct answer_problem){
                               .status = code,
                               .code = refusal_name(code),
                               .detail = detail,
                               .instance = request != NULL ? request->id : NULL,
                               .retry_after_s = code == 503 ? 1 : 0,
                           });
}

static uint64_t elapsed_us(const struct http_exchange *exchange)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - http_began_us(exchange));
}

static void on_done(void *user, struct http_exchange *exchange, unsigned code, size_t body_len,
                    bool is_sent)
{
    struct api *api = user;
    struct request *request = request_of(exchange);
    uint64_t const took_us = elapsed_us(exchange);

    if (request == NULL)
        return;
    api->open--;
    if (request->is_fetch && is_sent) /* a broken download is asked for again */
        job_table_fetched(api->config.jobs, request->job_id);
    if (request->is_parked)
        api->under_way--;
    metrics_count_request(api->config.metrics,
                          &(struct metrics_request){.route = request->route != NULL
                                                                 ? request->route->metric
                                                                 : METRICS_ROUTE_OTHER,
                                                    .method = http_method_name(exchange),
                                                    .code = code,
                                                    .duration_us = took_us});
    log_write(LOG_INFO, "request",
              LOG_FIELDS(log_chars("request", request->id),
                         log_chars("method", http_method_name(exchange)),
                         log_chars("route", request->route != NULL ? request->route->path : "none"),
                         log_chars("job", request->job_id), log_chars("client", request->client),
                         log_integer("status", code), log_integer("bytes", (int64_t)body_len),
                         log_integer("us", (int64_t)took_us)));
    request->magic = 0;
    *http_user_data(exchange) = NULL;
    free(request);
}

/* ---- life ---- */

static enum status make_id_prefix(struct api *api, struct error *err)
{
    uint8_t random[8];
    enum status st = sign_random(random, sizeof random, err);

    for (size_t i = 0; i < sizeof random && st == ST_OK; i++)
        snprintf(api->id_prefix + 2 * i, 3, "%02x", random[i]);
    return st;
}

enum status api_new(const struct api_config *config, struct api **api, struct error *err)
{
    struct api *made = calloc(1, sizeof *made);
    enum status st;

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the API");
    made->config = *config;
    st = make_id_prefix(made, err);
    if (st == ST_OK)
        st = waits_new(config->jobs, &made->waits, err);
    made->desk = (struct admission_desk){
        .pool = config->pool,
        .jobs = config->jobs,
        .waits = made->waits,
        .keys = config->keys,
        .rules = config->rules,
        .settings = config->settings,
        .metrics = config->metrics,
    };
    if (st == ST_OK)
        *api = made;
    else
        free(made);
    return st;
}

void api_free(struct api **api)
{
    if (*api == NULL)
        return;
    waits_free(&(*api)->waits);
    free(*api);
    *api = NULL;
}

struct http_handlers api_handlers(void)
{
    return (struct http_handlers){
        .head = on_head,
        .request = on_request,
        .start = on_start,
        .refusal = on_refusal,
        .done = on_done,
    };
}

void api_attach(struct api *api, struct http *http)
{
    api->http = http;
}

void api_tick(struct api *api, int64_t now)
{
    waits_tick(api->waits, now, api->ticks++ % PEERS_EVERY_TICKS == 0);
}

void api_drain(struct api *api)
{
    api->is_draining = true;
}

void api_stop_waiting(struct api *api)
{
    waits_stop(api->waits);
}

size_t api_under_way(const struct api *api)
{
    return api->under_way;
}

size_t api_open(const struct api *api)
{
    return api->open;
}
