/*
 * The API: routes, and what each of them answers. Runs on the front-end thread, where it looks
 * things up and hands work over, and computes nothing: batches and tokens go to the pool.
 */
#ifndef TICKETPRESS_SERVICE_API_H
#define TICKETPRESS_SERVICE_API_H

#include "domain/status.h"
#include "domain/text_rules.h"
#include "service/clients.h"
#include "service/config.h"
#include "service/http.h"
#include "service/job_table.h"
#include "service/metrics.h"
#include "workers/pool.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;

/* All borrowed as long as the API lives. */
struct api_config {
    struct pool *pool;
    struct job_table *jobs;
    struct key_store *keys;
    struct text_rules rules;
    const struct settings *settings;
    const struct client_list *clients; /* NULL: everybody may call */
    struct metrics *metrics;
    const struct bytes *layout_schema; /* JSON */
    uint8_t fonts_hash[SHA256_BYTES];
};

/* Errors: ST_NO_MEMORY, ST_LIBRARY. */
MUST_USE enum status api_new(const struct api_config *config, struct api **api, struct error *err);
/* No exchange may be under way. */
void api_free(struct api **api);

/* Those of http_handlers that are the API's: head, request, start, refusal, done. Their user is the
 * api. */
struct http_handlers api_handlers(void);

/* Whose status /healthz and /metrics show. */
void api_attach(struct api *api, struct http *http);

/* To be called from http_handlers.tick. */
void api_tick(struct api *api, int64_t now_ms);

/* Refuse new batches, and say so in /readyz. */
void api_drain(struct api *api);

/* Answer everybody who waits. */
void api_stop_waiting(struct api *api);

/* Requests that have come in and are not answered, but for those that the API answers at once. */
size_t api_under_way(const struct api *api);

/* All requests that have come in and whose answers have not gone out to their last byte. */
size_t api_open(const struct api *api);

#endif
