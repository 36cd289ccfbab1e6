/*
 * A pool and a press with the program's own data, ready for batches, and gates to hold the pool's
 * threads. Whatever fails here ends the process: it is not what a test is about.
 */
#ifndef TICKETPRESS_TESTS_SUPPORT_READY_PRESS_H
#define TICKETPRESS_TESTS_SUPPORT_READY_PRESS_H

#include "domain/batch.h"
#include "service/resources.h"
#include "workers/pool.h"
#include "workers/press.h"
#include "workers/sign.h"

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

struct ready_press_config {
    size_t threads, slice_tickets, queue_tasks_max;
    uint32_t task_deadline_ms;
};

struct ready_press {
    struct resources resources;
    struct pool *pool;
    struct press *press;
    size_t slice_tickets;
};

void ready_press_start(struct ready_press *ready, const struct ready_press_config *config);
/* Stops the pool first; all that it has accepted is done. */
void ready_press_stop(struct ready_press *ready);
/* The pool alone. */
void ready_press_stop_pool(struct ready_press *ready);

/* Another press on the same pool, with one reference for the caller. */
struct press *ready_press_another(struct ready_press *ready);

struct ready_batch {
    size_t tickets_count;
    const char *layout;  /* NULL: the default */
    const char *holder;  /* NULL: one whom all fonts can write */
    const char *options; /* more members of the batch, with a comma behind each; NULL: none */
};

/* A batch of event "evt-001", into a zeroed struct. */
void ready_batch_read(const struct ready_batch *asked, struct batch *batch);

/* A key for such a batch. */
struct event_key ready_event_key(void);

/* A task that holds one thread of a pool. */
struct gate {
    struct task task; /* first: a gate is found again by it */
    struct task *parts[1];
    struct task_group group;
    sem_t entered, opened, left;
};

/* Have the gate hold a thread when the client's turn comes in this lane. */
void gate_submit(struct gate *gate, struct pool *pool, enum pool_lane lane, uint64_t client);
/* Wait until it does. */
void gate_await(struct gate *gate);
/* Let the thread go; the gate is gone when this returns. */
void gate_open(struct gate *gate);

#endif
