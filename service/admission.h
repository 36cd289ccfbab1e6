/*
 * The way of a batch from its body to its answer: one task on the pool's urgent lane that parses,
 * checks and admits. A single ticket is printed there and then; a small batch becomes a job whose
 * end is waited for; a large one a job that is promised with 202.
 */
#ifndef TICKETPRESS_SERVICE_ADMISSION_H
#define TICKETPRESS_SERVICE_ADMISSION_H

#include "domain/status.h"
#include "domain/text_rules.h"
#include "service/config.h"
#include "service/http.h"
#include "service/job_table.h"
#include "service/metrics.h"
#include "service/waits.h"
#include "workers/pool.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stdint.h>

/* All borrowed, and the same for every batch. */
struct admission_desk {
    struct pool *pool;
    struct job_table *jobs;
    struct waits *waits;
    struct key_store *keys;
    struct text_rules rules;
    const struct settings *settings;
    struct metrics *metrics;
};

enum {
    WAIT_S_NOT_ASKED = -1,
    REQUEST_ID_BYTES_MAX = 64,
};

/* What the request asked for besides its body. Texts are borrowed as long as the exchange lives. */
struct admission_order {
    struct http_exchange *exchange; /* parked */
    const char *instance;           /* the request's id */
    const char *client;             /* "" where there are no clients */
    bool is_dry_run;
    bool responds_async; /* Prefer: respond-async (RFC 7240, 4.1) */
    int wait_s;          /* Prefer: wait=S (4.3), 0..60, or WAIT_S_NOT_ASKED */
};

/*
 * Begin. The exchange is answered once, on whatever thread comes to it; its body is moved away. On
 * the front-end thread; does not block.
 */
void admission_start(struct admission_desk *desk, const struct admission_order *order);

#endif
