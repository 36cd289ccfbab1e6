#include "workers/pool_queue.h"

#include <assert.h>

/* The list and age links behave alike; a list is used with one of the two only. */
enum link_kind { LINK_LIST, LINK_AGE };

static struct group_link *link_of(struct task_group *group, enum link_kind kind)
{
    return kind == LINK_LIST ? &group->list : &group->age;
}

static void list_append(struct group_list *list, struct task_group *group, enum link_kind kind)
{
    *link_of(group, kind) = (struct group_link){.prev = list->last};
    if (list->last != NULL)
        link_of(list->last, kind)->next = group;
    else
        list->first = group;
    list->last = group;
}

static void list_remove(struct group_list *list, struct task_group *group, enum link_kind kind)
{
    struct group_link *link = link_of(group, kind);

    if (link->prev != NULL)
        link_of(link->prev, kind)->next = link->next;
    else
        list->first = link->next;
    if (link->next != NULL)
        link_of(link->next, kind)->prev = link->prev;
    else
        list->last = link->prev;
    *link = (struct group_link){0};
}

/* heir takes the place of group in a list of places. */
static void list_replace(struct group_list *list, struct task_group *group, struct task_group *heir)
{
    heir->list = group->list;
    if (heir->list.prev != NULL)
        heir->list.prev->list.next = heir;
    else
        list->first = heir;
    if (heir->list.next != NULL)
        heir->list.next->list.prev = heir;
    else
        list->last = heir;
    group->list = (struct group_link){0};
}

static size_t tasks_of(const struct task_group *group)
{
    return group->parts_count + (group->last != NULL);
}

static bool is_last_next(const struct task_group *group)
{
    return group->last != NULL && group->parts_next == group->parts_count &&
           group->parts_done == group->parts_count;
}

static bool is_ready(const struct task_group *group)
{
    return group->parts_next < group->parts_count || is_last_next(group);
}

static struct task *take_from_group(struct pool_queue *queue, struct task_group *group)
{
    struct task *task;

    assert(is_ready(group));
    assert(queue->lanes[group->lane].tasks > 0);
    task = is_last_next(group) ? group->last : group->parts[group->parts_next];
    group->parts_next++;
    queue->lanes[group->lane].tasks--;
    return task;
}

static struct task_group *find_client(const struct lane_queue *lane, uint64_t client)
{
    struct task_group *group = lane->turns.first;

    while (group != NULL && group->client != client)
        group = group->list.next;
    return group;
}

static void enter_ring(struct lane_queue *lane, struct task_group *group, bool is_next_of_client)
{
    struct task_group *next = find_client(lane, group->client);

    if (next == NULL) {
        group->ring = (struct group_link){.next = group, .prev = group};
        group->place = GROUP_ON_TURN;
        list_append(&lane->turns, group, LINK_LIST);
        return;
    }
    group->ring = (struct group_link){.next = next, .prev = next->ring.prev};
    group->ring.prev->ring.next = group;
    next->ring.prev = group;
    group->place = GROUP_BEHIND;
    if (is_next_of_client) {
        list_replace(&lane->turns, next, group);
        next->place = GROUP_BEHIND;
        group->place = GROUP_ON_TURN;
    }
}

/* Take the group out of its client's circle; with another group in it the client keeps its turn. */
static void leave_ring(struct lane_queue *lane, struct task_group *group)
{
    struct task_group *next = group->ring.next;
    struct task_group *prev = group->ring.prev;
    struct task_group *heir = next != group ? next : NULL;

    assert(next != NULL);
    assert(prev != NULL);
    if (group->place == GROUP_ON_TURN && heir != NULL) {
        list_replace(&lane->turns, group, heir);
        heir->place = GROUP_ON_TURN;
    } else if (group->place == GROUP_ON_TURN) {
        list_remove(&lane->turns, group, LINK_LIST);
    }
    prev->ring.next = next;
    next->ring.prev = prev;
    group->ring = (struct group_link){0};
    group->place = GROUP_NOWHERE;
}

/* The client of this group has been served: it goes to the end, with its next group in front. */
static void pass_turn(struct lane_queue *lane, struct task_group *group)
{
    struct task_group *next = group->ring.next;

    assert(group->place == GROUP_ON_TURN && lane->turns.first == group);
    list_remove(&lane->turns, group, LINK_LIST);
    group->place = GROUP_BEHIND;
    next->place = GROUP_ON_TURN;
    list_append(&lane->turns, next, LINK_LIST);
}

static void park(struct lane_queue *lane, struct task_group *group)
{
    leave_ring(lane, group);
    list_append(&lane->parked, group, LINK_LIST);
    group->place = GROUP_PARKED;
}

static bool may_run_heavy(const struct pool_queue *queue)
{
    return queue->heavy_running < queue->heavy_max;
}

static struct task *take_parked(struct pool_queue *queue, struct lane_queue *lane)
{
    struct task_group *group = lane->parked.first;

    list_remove(&lane->parked, group, LINK_LIST);
    list_remove(&queue->ages, group, LINK_AGE);
    group->place = GROUP_NOWHERE;
    return take_from_group(queue, group);
}

static struct task *take_turn(struct pool_queue *queue, struct lane_queue *lane)
{
    struct task_group *group = lane->turns.first;
    struct task *task = take_from_group(queue, group);

    pass_turn(lane, group);
    if (!is_ready(group)) {
        leave_ring(lane, group);
        list_remove(&queue->ages, group, LINK_AGE);
    }
    return task;
}

static struct task *take_from_lane(struct pool_queue *queue, struct lane_queue *lane)
{
    if (lane->parked.first != NULL && may_run_heavy(queue))
        return take_parked(queue, lane);
    /* Each group is parked once at most, so this costs O(1) a group over its life. */
    while (lane->turns.first != NULL && lane->turns.first->last_is_heavy &&
           is_last_next(lane->turns.first) && !may_run_heavy(queue))
        park(lane, lane->turns.first);
    return lane->turns.first != NULL ? take_turn(queue, lane) : NULL;
}

static bool is_waiting(const struct pool_queue *queue, enum pool_lane lane)
{
    return queue->lanes[lane].turns.first != NULL ||
           (queue->lanes[lane].parked.first != NULL && may_run_heavy(queue));
}

static void append_cancelled(struct pool_queue *queue, struct task_group *group)
{
    assert(group->place == GROUP_NOWHERE);
    list_append(&queue->cancelled, group, LINK_LIST);
    group->place = GROUP_CANCELLED;
}

void pool_queue_init(struct pool_queue *queue, size_t tasks_max, size_t threads)
{
    assert(tasks_max > 0);
    assert(threads > 0);
    *queue = (struct pool_queue){
        .tasks_max = tasks_max,
        .heavy_max = threads > 1 ? threads - 1 : 1,
    };
}

enum status pool_queue_put(struct pool_queue *queue, struct task_group *group, uint64_t now_ms,
                           struct error *err)
{
    struct lane_queue *lane = &queue->lanes[group->lane];
    size_t tasks = queue->lanes[POOL_URGENT].tasks + queue->lanes[POOL_BULK].tasks;

    assert(tasks <= queue->tasks_max);
    assert(!queue->is_cancelling);
    if (tasks_of(group) > queue->tasks_max)
        return error_set(err, ST_TOO_LARGE, "the work has %zu tasks and the queue %zu places",
                         tasks_of(group), queue->tasks_max);
    if (tasks_of(group) > queue->tasks_max - tasks)
        return error_set(err, ST_BUSY, "the queue has %zu of %zu places left and %zu are needed",
                         queue->tasks_max - tasks, queue->tasks_max, tasks_of(group));
    lane->tasks += tasks_of(group);
    group->ready_since_ms = now_ms;
    enter_ring(lane, group, false);
    list_append(&queue->ages, group, LINK_AGE);
    return ST_OK;
}

struct task *pool_queue_take(struct pool_queue *queue)
{
    bool is_bulk_due = queue->urgent_streak >= POOL_BULK_SHARE - 1;
    enum pool_lane lane = is_bulk_due ? POOL_BULK : POOL_URGENT;
    struct task *task = take_from_lane(queue, &queue->lanes[lane]);

    if (task == NULL) {
        lane = is_bulk_due ? POOL_URGENT : POOL_BULK;
        task = take_from_lane(queue, &queue->lanes[lane]);
    }
    if (task == NULL)
        return NULL;
    if (lane == POOL_BULK || !is_waiting(queue, POOL_BULK))
        queue->urgent_streak = 0;
    else if (!is_bulk_due)
        queue->urgent_streak++;
    if (task == task->group->last && task->group->last_is_heavy)
        queue->heavy_running++;
    assert(queue->heavy_running <= queue->heavy_max);
    return task;
}

struct task *pool_queue_take_cancelled(struct pool_queue *queue)
{
    struct task_group *group = queue->cancelled.first;
    struct task *task;

    if (group == NULL)
        return NULL;
    task = take_from_group(queue, group);
    if (!is_ready(group)) {
        list_remove(&queue->cancelled, group, LINK_LIST);
        group->place = GROUP_NOWHERE;
    }
    return task;
}

size_t pool_queue_run_ended(struct pool_queue *queue, const struct task *task)
{
    if (task != task->group->last || !task->group->last_is_heavy)
        return 0;
    assert(queue->heavy_running > 0);
    queue->heavy_running--;
    return queue->lanes[POOL_URGENT].parked.first != NULL ||
           queue->lanes[POOL_BULK].parked.first != NULL;
}

size_t pool_queue_part_ended(struct pool_queue *queue, struct task_group *group, bool is_ok,
                             uint64_t now_ms)
{
    size_t ready = is_ok ? 0 : pool_queue_cancel(queue, group);

    if (group->last == NULL)
        return ready;
    assert(group->parts_done < group->parts_count);
    group->parts_done++;
    if (!is_last_next(group))
        return ready;
    if (queue->is_cancelling || atomic_load(&group->is_cancelled)) {
        append_cancelled(queue, group);
        return 1;
    }
    group->ready_since_ms = now_ms;
    enter_ring(&queue->lanes[group->lane], group, true);
    list_append(&queue->ages, group, LINK_AGE);
    return 1;
}

size_t pool_queue_cancel(struct pool_queue *queue, struct task_group *group)
{
    struct lane_queue *lane = &queue->lanes[group->lane];

    atomic_store(&group->is_cancelled, true);
    if (group->place == GROUP_NOWHERE || group->place == GROUP_CANCELLED)
        return 0;
    if (group->place == GROUP_PARKED) {
        list_remove(&lane->parked, group, LINK_LIST);
        group->place = GROUP_NOWHERE;
    } else {
        leave_ring(lane, group);
    }
    list_remove(&queue->ages, group, LINK_AGE);
    append_cancelled(queue, group);
    return is_last_next(group) ? 1 : group->parts_count - group->parts_next;
}

void pool_queue_cancel_all(struct pool_queue *queue)
{
    queue->is_cancelling = true;
    while (queue->ages.first != NULL)
        (void)pool_queue_cancel(queue, queue->ages.first);
}

uint64_t pool_queue_oldest_wait_ms(const struct pool_queue *queue, uint64_t now_ms)
{
    return queue->ages.first != NULL ? now_ms - queue->ages.first->ready_since_ms : 0;
}
