/*
 * Who is next: the order in which the pool's tasks are taken. No threads and no clock in here; the
 * pool calls everything under its mutex and brings the time.
 *
 * A lane is a list of turns with one entry for each waiting client, and that entry is the group the
 * client is to be served from; the client's other groups hang on it in a circle. So a take is O(1)
 * and nothing is ever allocated. Finding the client of a group that enters is linear in the clients
 * that wait in its lane, of which there are at most tasks_max.
 */
#ifndef TICKETPRESS_WORKERS_POOL_QUEUE_H
#define TICKETPRESS_WORKERS_POOL_QUEUE_H

#include "workers/pool.h"

struct group_list {
    struct task_group *first, *last;
};

struct lane_queue {
    struct group_list turns;  /* one group a client, in the order they are served */
    struct group_list parked; /* had their turn while too many heavy tasks ran */
    size_t tasks;             /* accepted and not taken */
};

struct pool_queue {
    struct lane_queue lanes[POOL_LANES];
    struct group_list cancelled; /* groups whose queued tasks are not to be run */
    struct group_list ages;      /* groups with a task that could run, oldest first */
    size_t tasks_max;            /* of all lanes together */
    size_t heavy_running, heavy_max;
    unsigned urgent_streak; /* urgent tasks taken in a row while bulk waited */
    bool is_cancelling;     /* nothing is to be run any more */
};

/* threads: the number of threads that will take tasks. */
void pool_queue_init(struct pool_queue *queue, size_t tasks_max, size_t threads);

/*
 * Put a new group in, the last of its client.
 *
 * In:      group  the pool's own members zeroed, tasks pointing to it
 * Errors:  ST_TOO_LARGE, ST_BUSY  as pool_submit_take; group is untouched
 */
MUST_USE enum status pool_queue_put(struct pool_queue *queue, struct task_group *group,
                                    uint64_t now_ms, struct error *err);

/* The next task to run; NULL when none may. pool_queue_run_ended must follow its run. */
struct task *pool_queue_take(struct pool_queue *queue);

/* The next task to complete without running; NULL when there is none. */
struct task *pool_queue_take_cancelled(struct pool_queue *queue);

/*
 * The task no longer occupies its thread. Its group is still alive.
 *
 * Returns: how many tasks may be taken now that could not be taken before; so do the next two
 */
size_t pool_queue_run_ended(struct pool_queue *queue, const struct task *task);

/*
 * A part has ended, with ST_OK or not; if it was the last one, its group's last task becomes ready,
 * to run or to be cancelled. A failure cancels the group.
 */
size_t pool_queue_part_ended(struct pool_queue *queue, struct task_group *group, bool is_ok,
                             uint64_t now_ms);

/* What is queued of the group, now or later, is not to be run. Once is as good as twice. */
size_t pool_queue_cancel(struct pool_queue *queue, struct task_group *group);

/* The same for all groups, now and for ever. */
void pool_queue_cancel_all(struct pool_queue *queue);

/* How long the oldest task that could run has waited; 0 when none waits. */
uint64_t pool_queue_oldest_wait_ms(const struct pool_queue *queue, uint64_t now_ms);

#endif
