/*
 * Four threads count while another scrapes. What was counted must all be there in the end, and each
 * scrape on the way must add up.
 */
#include "service/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNTERS = 4,
    ROUNDS = 20000,
    TICKETS = 3,
    BYTES = 1000,
    DURATION_US = 1500,
    SERIES_BYTES = 160
};
enum { SUM_S = COUNTERS * ROUNDS / 1000 * DURATION_US / 1000 };

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                             \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static struct metrics *metrics;
static atomic_int counters_left = COUNTERS;
static pthread_barrier_t gate;

static void *counter_run(void *unused)
{
    static const struct metrics_request REQUEST = {
        .route = METRICS_ROUTE_BATCHES, .method = "POST", .code = 200, .duration_us = DURATION_US};

    pthread_barrier_wait(&gate);
    for (int i = 0; i < ROUNDS; i++) {
        metrics_count_request(metrics, &REQUEST);
        metrics_count_rejection(metrics, "busy");
        metrics_count_document(metrics, TICKETS, BYTES);
        metrics_count_job(metrics, "failed", DURATION_US);
    }
    atomic_fetch_sub(&counters_left, 1);
    return unused;
}

static uint64_t lag_bound_us(size_t bucket)
{
    return bucket + 1;
}

static void scrape(struct bytes *out)
{
    static const uint64_t LAG_COUNTS[] = {0, 0};
    static const struct metrics_gauges GAUGES = {
        .front_end_lag = {.counts = LAG_COUNTS, .buckets_count = 2, .bound_us = lag_bound_us}};

    bytes_clear(out);
    CHECK(metrics_write(metrics, &GAUGES, out, NULL) == ST_OK);
    CHECK(bytes_append(out, "", 1, NULL) == ST_OK);
}

/* 0 where there is no such series yet. */
static uint64_t value_of(const struct bytes *out, const char *series)
{
    char line[SERIES_BYTES];
    const char *at;

    snprintf(line, sizeof line, "\n%s ", series);
    at = strstr((const char *)out->data, line);
    return at == NULL ? 0 : strtoull(at + strlen(line), NULL, 10);
}

static void check_on_the_way(const struct bytes *out)
{
    static const char BUCKET[] =
        "ticketpress_http_request_duration_seconds_bucket{route=\"/v1/batches\",le=\"+Inf\"}";
    static const char COUNT[] =
        "ticketpress_http_request_duration_seconds_count{route=\"/v1/batches\"}";

    CHECK(value_of(out, BUCKET) == value_of(out, COUNT));
    CHECK(value_of(out, COUNT) <= (uint64_t)COUNTERS * ROUNDS);
}

static const struct {
    const char *series;
    uint64_t a_round; /* of one thread */
} EXPECTED[] = {
    {"ticketpress_http_requests_total{method=\"POST\",route=\"/v1/batches\",code=\"200\"}", 1},
    {"ticketpress_http_request_duration_seconds_bucket{route=\"/v1/batches\",le=\"0.001\"}", 0},
    {"ticketpress_http_request_duration_seconds_bucket{route=\"/v1/batches\",le=\"0.0025\"}", 1},
    {"ticketpress_http_request_duration_seconds_count{route=\"/v1/batches\"}", 1},
    {"ticketpress_rejections_total{cause=\"busy\"}", 1},
    {"ticketpress_tickets_total", TICKETS},
    {"ticketpress_documents_bytes_total", BYTES},
    {"ticketpress_jobs_total{state=\"failed\"}", 1},
    {"ticketpress_job_duration_seconds_count", 1},
};

static void check_the_end(const struct bytes *out)
{
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        uint64_t const value = value_of(out, EXPECTED[i].series);
        uint64_t const expected = EXPECTED[i].a_round * COUNTERS * ROUNDS;

        if (value != expected)
            fprintf(stderr, "%s%" PRIu64 ", not %" PRIu64 "\n", EXPECTED[i].series, value,
                    expected);
        CHECK(value == expected);
    }
    CHECK(value_of(out, "ticketpress_job_duration_seconds_sum") == SUM_S);
}

int main(void)
{
    pthread_t counters[COUNTERS];
    struct bytes out = {0};
    unsigned scrapes = 0;

    metrics = metrics_new();
    CHECK(metrics != NULL);
    CHECK(pthread_barrier_init(&gate, NULL, COUNTERS + 1) == 0);
    for (int i = 0; i < COUNTERS; i++)
        CHECK(pthread_create(&counters[i], NULL, counter_run, NULL) == 0);
    pthread_barrier_wait(&gate);
    for (; atomic_load(&counters_left) > 0; scrapes++) {
        scrape(&out);
        check_on_the_way(&out);
    }
    for (int i = 0; i < COUNTERS; i++)
        CHECK(pthread_join(counters[i], NULL) == 0);
    scrape(&out);
    check_the_end(&out);
    printf("%d rounds of %d threads, %u scrapes\n", ROUNDS, COUNTERS, scrapes);
    bytes_clear(&out);
    metrics_free(&metrics);
    CHECK(pthread_barrier_destroy(&gate) == 0);
    return EXIT_SUCCESS;
}
