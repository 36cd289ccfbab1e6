#include "service/waits.h"

#include "domain/must.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct wait {
    struct job_waiter waiter; /* first: a wait is found again by it */
    struct waits *waits;
    struct wait_order order;
    struct wait *next, *prev;
    enum wait_outcome outcome; /* while on a list of those let go */
};

/* Lock order: this mutex before the job table's; neither is held while an exchange is answered. */
struct waits {
    struct job_table *jobs;
    pthread_mutex_t mutex; /* guards the rest */
    struct wait ring;      /* head of a circle of all waits */
    size_t count;
};

enum status waits_new(struct job_table *jobs, struct waits **waits, struct error *err)
{
    struct waits *made = calloc(1, sizeof *made);

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the list of waits");
    made->jobs = jobs;
    made->ring.next = made->ring.prev = &made->ring;
    MUST(pthread_mutex_init(&made->mutex, NULL));
    *waits = made;
    return ST_OK;
}

void waits_free(struct waits **waits)
{
    if (*waits == NULL)
        return;
    assert((*waits)->count == 0);
    MUST(pthread_mutex_destroy(&(*waits)->mutex));
    free(*waits);
    *waits = NULL;
}

static void link_locked(struct waits *waits, struct wait *wait)
{
    wait->next = waits->ring.next;
    wait->prev = &waits->ring;
    wait->next->prev = wait;
    wait->prev->next = wait;
    waits->count++;
}

static void unlink_locked(struct waits *waits, struct wait *wait)
{
    wait->prev->next = wait->next;
    wait->next->prev = wait->prev;
    waits->count--;
}

/* Answer and free. The wait is on no list any more. */
static void finish(struct wait *wait, enum wait_outcome outcome)
{
    wait->order.answer(wait->order.user, wait->order.exchange, outcome, wait->waiter.id);
    free(wait);
}

/* The job table's call, on the thread that changed the job. */
static void wake(struct job_waiter *waiter)
{
    struct wait *wait = (struct wait *)(void *)waiter;
    struct waits *waits = wait->waits;

    MUST(pthread_mutex_lock(&waits->mutex));
    unlink_locked(waits, wait);
    MUST(pthread_mutex_unlock(&waits->mutex));
    finish(wait, WAIT_CHANGED);
}

enum status wait_new(struct waits *waits, const struct wait_order *order, struct wait **wait,
                     struct job_waiter **waiter, struct error *err)
{
    struct wait *made = calloc(1, sizeof *made);

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a wait");
    made->waits = waits;
    made->order = *order;
    made->waiter.wake = wake;
    MUST(pthread_mutex_lock(&waits->mutex));
    link_locked(waits, made);
    MUST(pthread_mutex_unlock(&waits->mutex));
    *wait = made;
    *waiter = &made->waiter;
    return ST_OK;
}

void wait_discard(struct wait **wait)
{
    struct waits *waits = (*wait)->waits;

    MUST(pthread_mutex_lock(&waits->mutex));
    unlink_locked(waits, *wait);
    MUST(pthread_mutex_unlock(&waits->mutex));
    free(*wait);
    *wait = NULL;
}

enum status waits_for_change(struct waits *waits, const struct wait_order *order,
                             const char *job_id, enum job_state state, bool for_end,
                             struct error *err)
{
    struct wait *wait = NULL;
    struct job_waiter *waiter;
    enum status st = wait_new(waits, order, &wait, &waiter, err);

    if (st != ST_OK)
        return st;
    if (job_table_wait(waits->jobs, job_id, state, for_end, waiter))
        return ST_OK;
    wait_discard(&wait);
    order->answer(order->user, order->exchange, WAIT_CHANGED, job_id);
    return ST_OK;
}

/* Take a wait off its list, if its wake is not on the way already. */
static bool let_go_locked(struct waits *waits, struct wait *wait, enum wait_outcome outcome,
                          struct wait **gone)
{
    if (!job_table_unwait(waits->jobs, &wait->waiter))
        return false;
    unlink_locked(waits, wait);
    wait->outcome = outcome;
    wait->next = *gone;
    *gone = wait;
    return true;
}

static void finish_all(struct wait *gone)
{
    while (gone != NULL) {
        struct wait *next = gone->next;

        finish(gone, gone->outcome);
        gone = next;
    }
}

void waits_tick(struct waits *waits, int64_t now_ms, bool looks_at_peers)
{
    struct wait *gone = NULL;
    struct wait *next;

    MUST(pthread_mutex_lock(&waits->mutex));
    for (struct wait *wait = waits->ring.next; wait != &waits->ring; wait = next) {
        next = wait->next;
        if (wait->order.deadline_ms <= now_ms)
            let_go_locked(waits, wait, WAIT_LATE, &gone);
        else if (looks_at_peers && http_peer_is_gone(wait->order.exchange))
            let_go_locked(waits, wait, WAIT_PEER_GONE, &gone);
    }
    MUST(pthread_mutex_unlock(&waits->mutex));
    finish_all(gone);
}

void waits_stop(struct waits *waits)
{
    struct wait *gone = NULL;
    struct wait *next;

    MUST(pthread_mutex_lock(&waits->mutex));
    for (struct wait *wait = waits->ring.next; wait != &waits->ring; wait = next) {
        next = wait->next;
        let_go_locked(waits, wait, WAIT_STOPPED, &gone);
    }
    MUST(pthread_mutex_unlock(&waits->mutex));
    finish_all(gone);
}

size_t waits_count(struct waits *waits)
{
    size_t count;

    MUST(pthread_mutex_lock(&waits->mutex));
    count = waits->count;
    MUST(pthread_mutex_unlock(&waits->mutex));
    return count;
}
