/*
 * What the service counts, and the text that Prometheus scrapes (exposition format 0.0.4). Counting
 * is a few atomic additions, so it may be done anywhere; what other modules know already (queue
 * lengths, connections) is not kept twice but handed in when the text is written.
 *
 * Every label has a fixed set of values, so that no caller of the API can make the text grow: words
 * that are not of the set count as "other". No label and no value is about a person.
 */
#ifndef TICKETPRESS_SERVICE_METRICS_H
#define TICKETPRESS_SERVICE_METRICS_H

#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/pool.h"

#include <stddef.h>
#include <stdint.h>

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_route {
    METRICS_ROUTE_BATCHES,
    METRICS_ROUTE_JOBS,
    METRICS_ROUTE_JOB,
    METRICS_ROUTE_JOB_DOCUMENT,
    METRICS_ROUTE_JOB_TICKETS,
    METRICS_ROUTE_JOB_TICKET_DOCUMENT,
    METRICS_ROUTE_VERIFY,
    METRICS_ROUTE_LAYOUTS,
    METRICS_ROUTE_LAYOUT,
    METRICS_ROUTE_LAYOUT_SCHEMA,
    METRICS_ROUTE_HEALTHZ,
    METRICS_ROUTE_READYZ,
    METRICS_ROUTE_METRICS,
    METRICS_ROUTE_VERSION,
    METRICS_ROUTE_OPENAPI,
    METRICS_ROUTE_DOCS,
    METRICS_ROUTE_OTHER, /* no such path */
    METRICS_ROUTES
};

struct metrics;

/* All counters at 0; NULL: no memory. */
struct metrics *metrics_new(void);
void metrics_free(struct metrics **metrics);

/* ---- counting; any thread ---- */

struct metrics_request {
    enum metrics_route route;
    const char *method;   /* GET, HEAD, POST, DELETE; or any other */
    unsigned code;        /* of the answer; 0: the connection broke first, which counts as "none" */
    uint64_t duration_us; /* from its first byte to the end of the answer */
};
void metrics_count_request(struct metrics *metrics, const struct metrics_request *request);

/*
 * A request that was refused, by its reason: batch (broken rules or JSON), busy, cancelled,
 * draining, forbidden, internal, no_memory, no_signing_key, not_found, peer_gone, quota,
 * rule_broken, store, timed_out, too_large, unauthorized.
 */
void metrics_count_rejection(struct metrics *metrics, const char *cause);

/* A document that was made, of a job or at once. */
void metrics_count_document(struct metrics *metrics, size_t tickets, size_t bytes);

/* A job that has ended: succeeded, failed or cancelled, so long after it was created. */
void metrics_count_job(struct metrics *metrics, const char *state, uint64_t duration_us);

/* ---- the text ---- */

/* Counts of durations, the upper bounds included. */
struct metrics_histogram {
    const uint64_t *counts;              /* buckets_count of them, not cumulative */
    size_t buckets_count;                /* 1.. */
    uint64_t (*bound_us)(size_t bucket); /* rising; not asked for the last, which has none */
    uint64_t sum_us;
};

struct metrics_gauges {
    size_t http_connections, http_parked_connections;
    size_t http_request_bytes_held;
    struct metrics_histogram front_end_lag;
    struct pool_status pool;
    size_t jobs_running;
    size_t queued_tickets;
    uint64_t log_lines_lost;
};

/*
 * Append the text. Series by route, method and code are there once they have counted something, all
 * others from the start.
 *
 * Errors:  ST_NO_MEMORY  out has a part of it
 * Threads: any; a count made meanwhile may be in it or not, but a histogram always adds up
 */
MUST_USE enum status metrics_write(const struct metrics *metrics,
                                   const struct metrics_gauges *gauges, struct bytes *out,
                                   struct error *err);

#endif
