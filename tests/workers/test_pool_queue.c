#include "workers/pool_queue.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 12, PARTS_MAX = 40, ORDER_MAX = 256 };

/* A group whose tasks are never run: only the order in which they are taken matters. */
struct entry {
    struct task_group group;
    struct task tasks[PARTS_MAX + 1];
    struct task *parts[PARTS_MAX];
    char letter;
};

static struct entry *entry_init(struct entry *entry, char letter, enum pool_lane lane,
                                uint64_t client, size_t parts, bool has_last)
{
    *entry = (struct entry){.letter = letter};
    for (size_t i = 0; i < PARTS_MAX + 1; i++)
        entry->tasks[i].group = &entry->group;
    for (size_t i = 0; i < parts; i++)
        entry->parts[i] = &entry->tasks[i];
    entry->group.lane = lane;
    entry->group.client = client;
    entry->group.parts = entry->parts;
    entry->group.parts_count = parts;
    entry->group.last = has_last ? &entry->tasks[parts] : NULL;
    return entry;
}

static void put(struct pool_queue *queue, struct entry *entry)
{
    cr_assert_eq(pool_queue_put(queue, &entry->group, 0, NULL), ST_OK);
}

/* The letter of the task's group, as a capital for its last task. */
static char letter_of(const struct task *task)
{
    const struct entry *entry = (const struct entry *)(const void *)task->group;

    return (char)(task == task->group->last ? entry->letter - 'a' + 'A' : entry->letter);
}

static void end(struct pool_queue *queue, struct task *task)
{
    (void)pool_queue_run_ended(queue, task);
    if (task != task->group->last)
        (void)pool_queue_part_ended(queue, task->group, true, 0);
}

/* Take up to `max` tasks, ending each before the next is taken. */
static const char *take_order(struct pool_queue *queue, size_t max, char order[ORDER_MAX])
{
    size_t len = 0;

    for (struct task *task; len < max && (task = pool_queue_take(queue)) != NULL;) {
        cr_assert(len < ORDER_MAX - 1);
        order[len++] = letter_of(task);
        end(queue, task);
    }
    order[len] = '\0';
    return order;
}

static const char *take_cancelled_order(struct pool_queue *queue, char order[ORDER_MAX])
{
    size_t len = 0;

    for (struct task *task; (task = pool_queue_take_cancelled(queue)) != NULL;) {
        cr_assert(len < ORDER_MAX - 1);
        order[len++] = letter_of(task);
        if (task != task->group->last)
            (void)pool_queue_part_ended(queue, task->group, false, 0);
    }
    order[len] = '\0';
    return order;
}

Test(pool_queue_put, counts_all_tasks_of_both_lanes_against_the_limit)
{
    struct pool_queue queue;
    struct entry first, refused, exact, large;
    struct error err = {0};

    pool_queue_init(&queue, 6, 1);
    put(&queue, entry_init(&first, 'a', POOL_BULK, 1, 2, true));
    entry_init(&refused, 'b', POOL_URGENT, 1, 3, true);
    cr_expect_eq(pool_queue_put(&queue, &refused.group, 0, &err), ST_BUSY);
    cr_expect_str_eq(err.text, "the queue has 3 of 6 places left and 4 are needed");
    put(&queue, entry_init(&exact, 'c', POOL_URGENT, 1, 2, true));
    entry_init(&large, 'd', POOL_BULK, 1, 6, true);
    cr_expect_eq(pool_queue_put(&queue, &large.group, 0, &err), ST_TOO_LARGE);
    cr_expect_str_eq(err.text, "the work has 7 tasks and the queue 6 places");
    cr_expect_eq(queue.lanes[POOL_BULK].tasks, 3);
    cr_expect_eq(queue.lanes[POOL_URGENT].tasks, 3);
}

Test(pool_queue_take, follows_lanes_clients_and_groups)
{
    static const struct {
        const char *name;
        const char *groups; /* each: letter, lane, client, parts, last or not */
        const char *order;
    } rows[] = {
        {"nothing", "", ""},
        {"one group", "ab13L", "aaaA"},
        {"two groups of a client", "ab13. bb12.", "ababa"},
        {"two clients", "ab14. bb22.", "ababaa"},
        {"a client with two groups gets one turn", "ab13. bb13. cb23.", "acbcacbab"},
        {"a last task is its client's next", "ab11L bb14. cb14.", "aAbcbcbcbc"},
        {"a last task waits for its client's turn", "ab11L bb23.", "abAbb"},
        {"urgent goes first", "ab13. uu23.", "uuuaaa"},
        {"one in eight is bulk", "ab14. uu29L vu39.", "uvuvuvuavuvuvuvauvuvUaa"},
        {"a client in both lanes", "ab12. uu12.", "uuaa"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct entry entries[GROUPS_MAX];
        char order[ORDER_MAX];
        struct pool_queue queue;
        size_t count = 0;

        pool_queue_init(&queue, 100, 1);
        for (const char *at = rows[i].groups; *at != '\0'; at += at[5] == ' ' ? 6 : 5)
            put(&queue, entry_init(&entries[count++], at[0], at[1] == 'u' ? POOL_URGENT : POOL_BULK,
                                   (uint64_t)(at[2] - '0'), (size_t)(at[3] - '0'), at[4] == 'L'));
        cr_expect_str_eq(take_order(&queue, ORDER_MAX, order), rows[i].order, "%s: %s",
                         rows[i].name, order);
        cr_expect_eq(queue.lanes[POOL_URGENT].tasks + queue.lanes[POOL_BULK].tasks, 0);
    }
}

Test(pool_queue_take, keeps_the_last_task_until_all_parts_have_ended)
{
    struct pool_queue queue;
    struct entry entry;
    struct task *first, *second;

    pool_queue_init(&queue, 10, 2);
    put(&queue, entry_init(&entry, 'a', POOL_BULK, 1, 2, true));
    first = pool_queue_take(&queue);
    second = pool_queue_take(&queue);
    cr_assert_not_null(second);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_eq(pool_queue_part_ended(&queue, second->group, true, 0), 0);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_eq(pool_queue_part_ended(&queue, first->group, true, 0), 1);
    cr_expect_eq(pool_queue_take(&queue), entry.group.last);
    cr_expect_null(pool_queue_take(&queue));
}

Test(pool_queue_take, parks_heavy_tasks_and_lets_others_pass)
{
    enum { HEAVY = 4 };
    struct pool_queue queue;
    struct entry heavy[HEAVY], other;
    struct task *running[2];
    char order[ORDER_MAX];

    pool_queue_init(&queue, 100, 3);
    for (size_t i = 0; i < HEAVY; i++) {
        put(&queue,
            entry_init(&heavy[i], (char)('a' + i), i == 3 ? POOL_URGENT : POOL_BULK, i, 1, true));
        heavy[i].group.last_is_heavy = true;
    }
    cr_expect_str_eq(take_order(&queue, 1, order), "d");
    running[0] = pool_queue_take(&queue);
    cr_expect_eq(running[0], heavy[3].group.last);
    cr_expect_str_eq(take_order(&queue, 3, order), "abc");
    running[1] = pool_queue_take(&queue);
    cr_expect_eq(running[1], heavy[0].group.last);
    cr_expect_null(pool_queue_take(&queue));
    put(&queue, entry_init(&other, 'o', POOL_BULK, 9, 1, true));
    cr_expect_str_eq(take_order(&queue, ORDER_MAX, order), "oO");
    cr_expect_eq(pool_queue_run_ended(&queue, running[0]), 1);
    cr_expect_str_eq(take_order(&queue, ORDER_MAX, order), "BC");
    cr_expect_eq(pool_queue_run_ended(&queue, running[1]), 0);
    cr_expect_eq(queue.heavy_running, 0);
}

Test(pool_queue_take, is_not_held_up_when_a_parked_group_is_cancelled)
{
    struct pool_queue queue;
    struct entry heavy[3];
    struct task *running;
    char order[ORDER_MAX];

    pool_queue_init(&queue, 100, 1);
    for (size_t i = 0; i < 3; i++) {
        put(&queue, entry_init(&heavy[i], (char)('a' + i), POOL_BULK, i, 1, true));
        heavy[i].group.last_is_heavy = true;
    }
    cr_expect_str_eq(take_order(&queue, 3, order), "abc");
    running = pool_queue_take(&queue);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_eq(heavy[1].group.place, GROUP_PARKED);
    cr_expect_eq(pool_queue_cancel(&queue, &heavy[1].group), 1);
    cr_expect_str_eq(take_cancelled_order(&queue, order), "B");
    (void)pool_queue_run_ended(&queue, running);
    cr_expect_str_eq(take_order(&queue, ORDER_MAX, order), "C");
}

Test(pool_queue_cancel, takes_a_group_out_wherever_it_waits)
{
    /* Three groups of one client and one of another; the row's group is cancelled after so many
     * takes, then the rest is taken. */
    static const struct {
        const char *name;
        size_t takes, cancelled;
        const char *order, *cancelled_order;
    } rows[] = {
        {"on turn, others behind", 0, 0, "bxcxbc", "aaA"},
        {"behind", 0, 1, "axcxaAc", "bb"},
        {"the last behind", 0, 2, "axbxaAb", "cc"},
        {"alone", 0, 3, "abcaAbc", "xx"},
        {"partly taken", 1, 0, "xbxcbc", "aA"},
        {"on turn after a turn", 2, 1, "cxaAc", "bb"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct entry entries[4];
        struct pool_queue queue;
        char order[ORDER_MAX];

        pool_queue_init(&queue, 100, 1);
        for (size_t k = 0; k < 3; k++)
            put(&queue, entry_init(&entries[k], (char)('a' + k), POOL_BULK, 1, 2, k == 0));
        put(&queue, entry_init(&entries[3], 'x', POOL_BULK, 2, 2, false));
        (void)take_order(&queue, rows[i].takes, order);
        (void)pool_queue_cancel(&queue, &entries[rows[i].cancelled].group);
        cr_expect_eq(pool_queue_cancel(&queue, &entries[rows[i].cancelled].group), 0);
        cr_expect_str_eq(take_order(&queue, ORDER_MAX, order), rows[i].order, "%s: %s",
                         rows[i].name, order);
        cr_expect_str_eq(take_cancelled_order(&queue, order), rows[i].cancelled_order, "%s: %s",
                         rows[i].name, order);
        cr_expect_eq(queue.lanes[POOL_BULK].tasks, 0, "%s", rows[i].name);
        cr_expect_null(queue.ages.first, "%s", rows[i].name);
    }
}

Test(pool_queue_part_ended, cancels_the_group_of_a_failed_part)
{
    struct pool_queue queue;
    struct entry entry;
    struct task *running[2];
    char order[ORDER_MAX];

    pool_queue_init(&queue, 10, 2);
    put(&queue, entry_init(&entry, 'a', POOL_BULK, 1, 4, true));
    running[0] = pool_queue_take(&queue);
    running[1] = pool_queue_take(&queue);
    cr_expect_eq(pool_queue_part_ended(&queue, running[0]->group, false, 0), 2);
    cr_expect(atomic_load(&entry.group.is_cancelled));
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_str_eq(take_cancelled_order(&queue, order), "aa");
    cr_expect_eq(pool_queue_part_ended(&queue, running[1]->group, true, 0), 1);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_str_eq(take_cancelled_order(&queue, order), "A");
}

Test(pool_queue_cancel_all, leaves_nothing_to_run_and_lets_nothing_become_ready)
{
    struct pool_queue queue;
    struct entry running, queued, urgent;
    struct task *task;
    char order[ORDER_MAX];

    pool_queue_init(&queue, 100, 1);
    put(&queue, entry_init(&running, 'r', POOL_BULK, 1, 1, true));
    put(&queue, entry_init(&queued, 'q', POOL_BULK, 1, 2, true));
    task = pool_queue_take(&queue);
    put(&queue, entry_init(&urgent, 'u', POOL_URGENT, 1, 1, false));
    pool_queue_cancel_all(&queue);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_str_eq(take_cancelled_order(&queue, order), "qquQ");
    end(&queue, task);
    cr_expect_null(pool_queue_take(&queue));
    cr_expect_str_eq(take_cancelled_order(&queue, order), "R");
}

Test(pool_queue_oldest_wait_ms, is_that_of_the_oldest_group_that_could_run)
{
    struct pool_queue queue;
    struct entry first, second;
    struct task *task;

    pool_queue_init(&queue, 100, 2);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 1000), 0);
    entry_init(&first, 'a', POOL_BULK, 1, 1, true);
    entry_init(&second, 'b', POOL_BULK, 1, 1, false);
    cr_assert_eq(pool_queue_put(&queue, &first.group, 1000, NULL), ST_OK);
    cr_assert_eq(pool_queue_put(&queue, &second.group, 1300, NULL), ST_OK);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 1500), 500);
    task = pool_queue_take(&queue);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 1500), 200);
    (void)pool_queue_part_ended(&queue, task->group, true, 1600);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 2000), 700);
    (void)pool_queue_cancel(&queue, &second.group);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 2000), 400);
    (void)pool_queue_take(&queue);
    cr_expect_eq(pool_queue_oldest_wait_ms(&queue, 2000), 0);
}
