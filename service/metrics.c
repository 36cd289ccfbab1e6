#include "service/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "ticketpress_"

enum {
    HISTOGRAM_BUCKETS = 16,
    LINE_BYTES_MAX = 400,
    LABELS_BYTES_MAX = 160,
    SECONDS_CHARS_MAX = 31
};

/* ---- the sets of labels ---- */

static const char *const ROUTES[] = {
    [METRICS_ROUTE_BATCHES] = "/v1/batches",
    [METRICS_ROUTE_JOBS] = "/v1/jobs",
    [METRICS_ROUTE_JOB] = "/v1/jobs/{id}",
    [METRICS_ROUTE_JOB_DOCUMENT] = "/v1/jobs/{id}/document",
    [METRICS_ROUTE_JOB_TICKETS] = "/v1/jobs/{id}/tickets",
    [METRICS_ROUTE_JOB_TICKET_DOCUMENT] = "/v1/jobs/{id}/tickets/{ticket_id}/document",
    [METRICS_ROUTE_VERIFY] = "/v1/tokens/verify",
    [METRICS_ROUTE_LAYOUTS] = "/v1/layouts",
    [METRICS_ROUTE_LAYOUT] = "/v1/layouts/{name}",
    [METRICS_ROUTE_LAYOUT_SCHEMA] = "/v1/layout-schema",
    [METRICS_ROUTE_HEALTHZ] = "/healthz",
    [METRICS_ROUTE_READYZ] = "/readyz",
    [METRICS_ROUTE_METRICS] = "/metrics",
    [METRICS_ROUTE_VERSION] = "/version",
    [METRICS_ROUTE_OPENAPI] = "/openapi.json",
    [METRICS_ROUTE_DOCS] = "/docs",
    [METRICS_ROUTE_OTHER] = "other",
};
_Static_assert(sizeof ROUTES / sizeof *ROUTES == METRICS_ROUTES, "a label for each route");

/* Of each set the last word stands for all that are not in it. */
static const char *const METHODS[] = {"GET", "HEAD", "POST", "DELETE", "other"};
static const char *const STATES[] = {"succeeded", "failed", "cancelled", "other"};
static const char *const CAUSES[] = {
    "batch",     "busy",           "cancelled", "draining",     "forbidden", "internal",
    "no_memory", "no_signing_key", "not_found", "peer_gone",    "quota",     "rule_broken",
    "store",     "timed_out",      "too_large", "unauthorized", "other",
};
static const unsigned CODES[] = {100, 200, 202, 204, 206, 304, 400, 401, 403, 404,
                                 405, 406, 408, 409, 410, 411, 412, 413, 414, 415,
                                 416, 417, 422, 429, 431, 500, 501, 503, 505};
enum {
    METHODS_COUNT = sizeof METHODS / sizeof *METHODS,
    STATES_COUNT = sizeof STATES / sizeof *STATES,
    CAUSES_COUNT = sizeof CAUSES / sizeof *CAUSES,
    CODE_NONE = sizeof CODES / sizeof *CODES,
    CODE_OTHER,
    CODES_COUNT,
};

static size_t word_find(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;

    while (i + 1 < count && strcmp(words[i], word) != 0)
        i++;
    return i;
}

static size_t code_find(unsigned code)
{
    size_t i = 0;

    if (code == 0)
        return CODE_NONE;
    while (i < CODE_NONE && CODES[i] != code)
        i++;
    return i < CODE_NONE ? i : CODE_OTHER;
}

static void code_text(size_t index, char text[16])
{
    if (index < CODE_NONE)
        snprintf(text, 16, "%u", CODES[index]);
    else
        snprintf(text, 16, "%s", index == CODE_NONE ? "none" : "other");
}

/* ---- bounds of histograms ---- */

enum { MS = 1000, S = 1000 * MS };

static const uint64_t REQUEST_BOUNDS_US[] = {1 * MS,    5 * MS / 2, 5 * MS,   10 * MS,  25 * MS,
                                             50 * MS,   100 * MS,   250 * MS, 500 * MS, 1 * S,
                                             2500 * MS, 5 * S,      10 * S,   30 * S,   60 * S};
static const uint64_t JOB_BOUNDS_US[] = {10 * MS,  25 * MS, 50 * MS,   100 * MS, 250 * MS,
                                         500 * MS, 1 * S,   2500 * MS, 5 * S,    10 * S,
                                         30 * S,   60 * S,  120 * S,   300 * S,  600 * S};
_Static_assert(sizeof REQUEST_BOUNDS_US / sizeof(uint64_t) == HISTOGRAM_BUCKETS - 1, "one each");
_Static_assert(sizeof JOB_BOUNDS_US / sizeof(uint64_t) == HISTOGRAM_BUCKETS - 1, "one each");

static uint64_t request_bound_us(size_t bucket)
{
    return REQUEST_BOUNDS_US[bucket];
}

static uint64_t job_bound_us(size_t bucket)
{
    return JOB_BOUNDS_US[bucket];
}

/* ---- counting ---- */

struct histogram {
    atomic_uint_fast64_t counts[HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t sum_us;
};

struct metrics {
    atomic_uint_fast64_t requests[METRICS_ROUTES][METHODS_COUNT][CODES_COUNT];
    struct histogram request_durations[METRICS_ROUTES];
    struct histogram job_durations;
    atomic_uint_fast64_t jobs[STATES_COUNT];
    atomic_uint_fast64_t rejections[CAUSES_COUNT];
    atomic_uint_fast64_t tickets;
    atomic_uint_fast64_t document_bytes;
};

struct metrics *metrics_new(void)
{
    return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics **metrics)
{
    free(*metrics);
    *metrics = NULL;
}

/* Nothing is ordered by a counter, so relaxed is enough. */
static void count(atomic_uint_fast64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static uint64_t counted(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void histogram_count(struct histogram *histogram, const uint64_t *bounds_us, uint64_t us)
{
    size_t bucket = 0;

    while (bucket < HISTOGRAM_BUCKETS - 1 && us > bounds_us[bucket])
        bucket++;
    count(&histogram->counts[bucket], 1);
    count(&histogram->sum_us, us);
}

void metrics_count_request(struct metrics *metrics, const struct metrics_request *request)
{
    size_t const method = word_find(METHODS, METHODS_COUNT, request->method);

    assert(request->route < METRICS_ROUTES);
    count(&metrics->requests[request->route][method][code_find(request->code)], 1);
    histogram_count(&metrics->request_durations[request->route], REQUEST_BOUNDS_US,
                    request->duration_us);
}

void metrics_count_rejection(struct metrics *metrics, const char *cause)
{
    count(&metrics->rejections[word_find(CAUSES, CAUSES_COUNT, cause)], 1);
}

void metrics_count_document(struct metrics *metrics, size_t tickets, size_t bytes)
{
    count(&metrics->tickets, tickets);
    count(&metrics->document_bytes, bytes);
}

void metrics_count_job(struct metrics *metrics, const char *state, uint64_t duration_us)
{
    count(&metrics->jobs[word_find(STATES, STATES_COUNT, state)], 1);
    histogram_count(&metrics->job_durations, JOB_BOUNDS_US, duration_us);
}

/* ---- the text ---- */

/* The text as it grows, one family of series after another. */
struct scrape {
    struct bytes *out;
    enum status status; /* sticky */
    struct error *err;
    const char *name; /* of the family, without prefix */
};

__attribute__((format(printf, 2, 3))) static void put(struct scrape *scrape, const char *format,
                                                      ...)
{
    char line[LINE_BYTES_MAX + 1];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert(len >= 0 && len <= LINE_BYTES_MAX);
    if (scrape->status == ST_OK)
        scrape->status = bytes_append(scrape->out, line, (size_t)len, scrape->err);
}

static void begin_family(struct scrape *scrape, const char *name, const char *type,
                         const char *help)
{
    scrape->name = name;
    put(scrape, "# HELP " PREFIX "%s %s\n", name, help);
    put(scrape, "# TYPE " PREFIX "%s %s\n", name, type);
}

/* Exact, and without a locale's decimal point: 2500 is "0.0025". */
static void seconds_text(uint64_t us, char text[SECONDS_CHARS_MAX + 1])
{
    size_t len =
        (size_t)snprintf(text, SECONDS_CHARS_MAX + 1, "%" PRIu64 ".%06" PRIu64, us / S, us % S);

    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    text[len] = '\0';
}

static void put_sample(struct scrape *scrape, const char *label, const char *value, uint64_t number)
{
    put(scrape, PREFIX "%s{%s=\"%s\"} %" PRIu64 "\n", scrape->name, label, value, number);
}

static void put_single(struct scrape *scrape, const char *name, const char *type, uint64_t number,
                       const char *help)
{
    begin_family(scrape, name, type, help);
    put(scrape, PREFIX "%s %" PRIu64 "\n", name, number);
}

static void put_gauge(struct scrape *scrape, const char *name, uint64_t number, const char *help)
{
    put_single(scrape, name, "gauge", number, help);
}

static void put_counter(struct scrape *scrape, const char *name, uint64_t number, const char *help)
{
    put_single(scrape, name, "counter", number, help);
}

/* labels is "" or ends with a comma; the sum and the count are of what the buckets hold. */
static void put_histogram(struct scrape *scrape, const char *labels,
                          const struct metrics_histogram *histogram)
{
    size_t const labels_len = strlen(labels);
    char braces[LABELS_BYTES_MAX + 1] = "";
    char seconds[SECONDS_CHARS_MAX + 1];
    uint64_t sum = 0;

    assert(histogram->buckets_count > 0);
    if (labels_len > 0)
        snprintf(braces, sizeof braces, "{%.*s}", (int)labels_len - 1, labels);
    for (size_t i = 0; i < histogram->buckets_count; i++) {
        bool const is_last = i == histogram->buckets_count - 1;

        sum += histogram->counts[i];
        if (!is_last)
            seconds_text(histogram->bound_us(i), seconds);
        put(scrape, PREFIX "%s_bucket{%sle=\"%s\"} %" PRIu64 "\n", scrape->name, labels,
            is_last ? "+Inf" : seconds, sum);
    }
    seconds_text(histogram->sum_us, seconds);
    put(scrape, PREFIX "%s_sum%s %s\n", scrape->name, braces, seconds);
    put(scrape, PREFIX "%s_count%s %" PRIu64 "\n", scrape->name, braces, sum);
}

struct snapshot {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t sum_us;
};

static struct snapshot snapshot_of(const struct histogram *histogram)
{
    struct snapshot snapshot = {.sum_us = counted(&histogram->sum_us)};

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        snapshot.counts[i] = counted(&histogram->counts[i]);
        snapshot.count += snapshot.counts[i];
    }
    return snapshot;
}

static void put_snapshot(struct scrape *scrape, const char *labels, const struct snapshot *snapshot,
                         uint64_t (*bound_us)(size_t bucket))
{
    put_histogram(scrape, labels,
                  &(struct metrics_histogram){.counts = snapshot->counts,
                                              .buckets_count = HISTOGRAM_BUCKETS,
                                              .bound_us = bound_us,
                                              .sum_us = snapshot->sum_us});
}

/* ---- families ---- */

static void put_requests_of(struct scrape *scrape, const struct metrics *metrics, size_t route,
                            size_t method)
{
    for (size_t code = 0; code < CODES_COUNT; code++) {
        uint64_t const number = counted(&metrics->requests[route][method][code]);
        char text[16];

        code_text(code, text);
        if (number > 0)
            put(scrape, PREFIX "%s{method=\"%s\",route=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                scrape->name, METHODS[method], ROUTES[route], text, number);
    }
}

static void put_requests(struct scrape *scrape, const struct metrics *metrics)
{
    begin_family(scrape, "http_requests_total", "counter",
                 "Requests answered, by method, route and status code.");
    for (size_t route = 0; route < METRICS_ROUTES; route++)
        for (size_t method = 0; method < METHODS_COUNT; method++)
            put_requests_of(scrape, metrics, route, method);
    begin_family(scrape, "http_request_duration_seconds", "histogram",
                 "Time from a request's first byte to the end of its answer.");
    for (size_t route = 0; route < METRICS_ROUTES; route++) {
        struct snapshot const snapshot = snapshot_of(&metrics->request_durations[route]);
        char labels[LABELS_BYTES_MAX + 1];

        snprintf(labels, sizeof labels, "route=\"%s\",", ROUTES[route]);
        if (snapshot.count > 0)
            put_snapshot(scrape, labels, &snapshot, request_bound_us);
    }
}

static void put_front_end(struct scrape *scrape, const struct metrics_gauges *gauges)
{
    put_gauge(scrape, "http_connections", gauges->http_connections, "Connections open.");
    put_gauge(scrape, "http_parked_connections", gauges->http_parked_connections,
              "Connections that wait for their answer without being polled.");
    put_gauge(scrape, "http_request_bytes_held", gauges->http_request_bytes_held,
              "Memory of request bodies under way.");
    begin_family(scrape, "front_end_lag_seconds", "histogram",
                 "How late the front-end thread's own timer ran.");
    put_histogram(scrape, "", &gauges->front_end_lag);
}

static void put_pool_tasks(struct scrape *scrape, const struct pool_status *pool)
{
    static const char *const LANES[] = {[POOL_URGENT] = "urgent", [POOL_BULK] = "bulk"};
    _Static_assert(sizeof LANES / sizeof *LANES == POOL_LANES, "a label for each lane");

    begin_family(scrape, "pool_queued_tasks", "gauge", "Tasks that wait for a thread, by lane.");
    for (size_t lane = 0; lane < POOL_LANES; lane++)
        put_sample(scrape, "lane", LANES[lane], pool->queued[lane]);
    begin_family(scrape, "pool_tasks_total", "counter", "Tasks completed, by outcome.");
    put_sample(scrape, "outcome", "done", pool->done);
    put_sample(scrape, "outcome", "failed", pool->failed);
    put_sample(scrape, "outcome", "cancelled", pool->cancelled);
    put_sample(scrape, "outcome", "timed_out", pool->timed_out);
}

static void put_pool(struct scrape *scrape, const struct pool_status *pool)
{
    char seconds[SECONDS_CHARS_MAX + 1];

    put_gauge(scrape, "pool_threads", pool->threads, "Threads of the pool that are alive.");
    put_gauge(scrape, "pool_threads_busy", pool->busy, "Threads of the pool that run a task.");
    put_pool_tasks(scrape, pool);
    begin_family(scrape, "pool_oldest_wait_seconds", "gauge",
                 "Longest wait of the tasks that could run now.");
    seconds_text(pool->oldest_wait_ms * MS, seconds);
    put(scrape, PREFIX "%s %s\n", scrape->name, seconds);
    put_counter(scrape, "pool_threads_given_up_total", pool->threads_given_up,
                "Threads given up because their task hung.");
}

static void put_words(struct scrape *scrape, const char *label, const char *const *words,
                      const atomic_uint_fast64_t *counters, size_t words_count)
{
    for (size_t i = 0; i < words_count; i++)
        put_sample(scrape, label, words[i], counted(&counters[i]));
}

static void put_jobs(struct scrape *scrape, const struct metrics *metrics,
                     const struct metrics_gauges *gauges)
{
    struct snapshot const durations = snapshot_of(&metrics->job_durations);

    begin_family(scrape, "jobs_total", "counter", "Jobs ended, by the state they ended in.");
    put_words(scrape, "state", STATES, metrics->jobs, STATES_COUNT);
    begin_family(scrape, "job_duration_seconds", "histogram",
                 "Time from a job's creation to its end.");
    put_snapshot(scrape, "", &durations, job_bound_us);
    put_gauge(scrape, "jobs_running", gauges->jobs_running, "Jobs admitted and not ended.");
    put_gauge(scrape, "queued_tickets", gauges->queued_tickets, "Tickets admitted and not done.");
}

static void put_documents(struct scrape *scrape, const struct metrics *metrics)
{
    put_counter(scrape, "tickets_total", counted(&metrics->tickets),
                "Tickets in the documents made.");
    put_counter(scrape, "documents_bytes_total", counted(&metrics->document_bytes),
                "Size of the documents made.");
    begin_family(scrape, "rejections_total", "counter", "Requests refused, by cause.");
    put_words(scrape, "cause", CAUSES, metrics->rejections, CAUSES_COUNT);
}

enum status metrics_write(const struct metrics *metrics, const struct metrics_gauges *gauges,
                          struct bytes *out, struct error *err)
{
    struct scrape scrape = {.out = out, .err = err};

    put_requests(&scrape, metrics);
    put_front_end(&scrape, gauges);
    put_pool(&scrape, &gauges->pool);
    put_jobs(&scrape, metrics, gauges);
    put_documents(&scrape, metrics);
    put_counter(&scrape, "log_lines_lost_total", gauges->log_lines_lost,
                "Log lines that nobody read in time.");
    begin_family(&scrape, "build_info", "gauge", "The version that runs; always 1.");
    put_sample(&scrape, "version", TICKETPRESS_VERSION, 1);
    return scrape.status;
}
