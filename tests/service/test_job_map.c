#include "service/job_map.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 40000 }; /* more than the map has chains */

static struct job_map map;
static struct job_node *nodes;

static void setup(void)
{
    cr_assert_eq(job_map_init(&map, NULL), ST_OK);
    nodes = calloc(NODES, sizeof *nodes);
    cr_assert_not_null(nodes);
    for (size_t i = 0; i < NODES; i++) {
        snprintf(nodes[i].id, sizeof nodes[i].id, "%zu", i);
        job_map_add(&map, &nodes[i]);
    }
}

static void teardown(void)
{
    job_map_clear(&map);
    free(nodes);
}

Test(job_map_find, finds_each_of_many_and_no_other, .init = setup, .fini = teardown)
{
    cr_expect_eq(map.count, NODES);
    for (size_t i = 0; i < NODES; i++)
        cr_expect_eq(job_map_find(&map, nodes[i].id), &nodes[i], "%zu", i);
    cr_expect_null(job_map_find(&map, "40000"));
    cr_expect_null(job_map_find(&map, ""));
}

Test(job_map_remove, takes_out_one_and_leaves_the_rest, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < NODES; i += 2)
        job_map_remove(&map, &nodes[i]);
    cr_expect_eq(map.count, NODES / 2);
    for (size_t i = 0; i < NODES; i++)
        cr_expect_eq(job_map_find(&map, nodes[i].id), i % 2 == 0 ? NULL : &nodes[i], "%zu", i);
}

Test(job_map_next, visits_each_once_also_while_they_are_removed, .init = setup, .fini = teardown)
{
    struct job_node *node = job_map_next(&map, NULL);
    size_t visits = 0;

    while (node != NULL) {
        struct job_node *next = job_map_next(&map, node);

        job_map_remove(&map, node);
        visits++;
        node = next;
    }
    cr_expect_eq(visits, NODES);
    cr_expect_eq(map.count, 0);
    cr_expect_null(job_map_next(&map, NULL));
}

Test(job_map_init, is_zeroed_without_memory)
{
    failing_memory_start(1);
    cr_expect_eq(job_map_init(&map, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_null(map.buckets);
}

Test(job_map_add, takes_an_id_once, .init = setup, .signal = SIGABRT)
{
    struct job_node again = {.id = "7"};

    job_map_add(&map, &again);
}
