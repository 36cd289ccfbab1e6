#include "tests/support/ready_press.h"

#include "domain/must.h"
#include "service/batch_json.h"
#include "service/config_json.h"
#include "tests/support/table_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKET_JSON_BYTES = 512, HEAD_JSON_BYTES = 2048 };

static void require(enum status status, const struct error *err, const char *what)
{
    if (status == ST_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, status_name(status), err->text);
    abort();
}

/* ---- the press ---- */

static void take_press(struct ready_press *ready, struct layout_list *layouts, struct press **press)
{
    struct press_config const config = {
        .pool = ready->pool,
        .fonts = ready->resources.fonts,
        .labels = &ready->resources.labels,
        .slice_tickets = ready->slice_tickets,
    };
    struct error err = {0};

    require(press_new_move(&config, layouts, press, &err), &err, "a press");
}

void ready_press_start(struct ready_press *ready, const struct ready_press_config *config)
{
    struct settings const settings = {0};
    struct pool_config pool = {
        .threads = config->threads,
        .queue_tasks_max = config->queue_tasks_max,
        .task_deadline_ms = config->task_deadline_ms,
        .task_grace_ms = POOL_DEADLINE_MS_MAX,
        .threads_given_up_max = 1,
        .context_new = press_worker_new,
        .context_free = press_worker_free,
    };
    struct error err = {0};

    config_json_start();
    require(sign_start(&err), &err, "signing");
    require(batch_json_start(PARSE_BYTES_MAX_DEFAULT, &err), &err, "parsing");
    require(resources_load(&settings, &ready->resources, &err), &err, "the program's data");
    pool.user = ready->resources.fonts;
    require(pool_start(&pool, &ready->pool, &err), &err, "a pool");
    ready->slice_tickets = config->slice_tickets;
    take_press(ready, &ready->resources.layouts, &ready->press);
}

struct press *ready_press_another(struct ready_press *ready)
{
    struct settings const settings = {0};
    struct layout_list *layouts = calloc(1, sizeof *layouts);
    struct press *press = NULL;
    struct error err = {0};

    if (layouts == NULL)
        abort();
    require(resources_load_layouts(&settings, layouts, &err), &err, "layouts");
    take_press(ready, layouts, &press);
    layout_list_clear(layouts);
    free(layouts);
    return press;
}

void ready_press_stop_pool(struct ready_press *ready)
{
    if (ready->pool != NULL && !pool_stop(&ready->pool, POOL_STOP_DRAIN))
        abort();
}

void ready_press_stop(struct ready_press *ready)
{
    ready_press_stop_pool(ready);
    press_unref(&ready->press);
    resources_clear(&ready->resources);
}

/* ---- batches ---- */

static void append(struct bytes *body, const char *text)
{
    struct error err = {0};

    require(bytes_append(body, text, strlen(text), &err), &err, "a batch");
}

static void append_tickets(struct bytes *body, const struct ready_batch *asked)
{
    for (size_t i = 0; i < asked->tickets_count; i++) {
        char ticket[TICKET_JSON_BYTES];

        snprintf(ticket, sizeof ticket,
                 "%s{\"id\":\"tkt-%06zu\",\"holder\":\"%s\",\"type\":\"General\"}",
                 i > 0 ? "," : "", i + 1, asked->holder != NULL ? asked->holder : "Ada Byron");
        append(body, ticket);
    }
}

void ready_batch_read(const struct ready_batch *asked, struct batch *batch)
{
    struct batch_limits const limits = {.tickets_max = 100000};
    struct problems problems = {0};
    struct bytes body = {0};
    struct error err = {0};
    char head[HEAD_JSON_BYTES];

    snprintf(head, sizeof head,
             "{\"event\":{\"id\":\"evt-001\",\"name\":\"Jazz\",\"venue\":\"Hall\","
             "\"starts_at\":\"2027-03-21T20:30:00+01:00\",\"timezone\":\"Europe/Madrid\"},"
             "\"locale\":\"es-ES\",%s%s%s%s\"tickets\":[",
             asked->options != NULL ? asked->options : "",
             asked->layout != NULL ? "\"layout\":\"" : "",
             asked->layout != NULL ? asked->layout : "", asked->layout != NULL ? "\"," : "");
    append(&body, head);
    append_tickets(&body, asked);
    append(&body, "]}");
    require(batch_json_read(&body, &TABLE_RULES, &limits, batch, &problems, &err), &err,
            problems.listed_count > 0 ? problems.listed[0].pointer.data : "a batch");
    problems_clear(&problems);
    bytes_clear(&body);
}

struct event_key ready_event_key(void)
{
    return (struct event_key){.key_id = 1,
                              .bytes = {1, 2, 3},
                              .event_id = "evt-001",
                              .verify_until_s = KEY_VERIFY_FOR_EVER};
}

/* ---- gates ---- */

static struct gate *gate_from(struct task *task)
{
    return (struct gate *)(void *)task;
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static enum status gate_run(struct task *task, void *context, struct error *err)
{
    struct gate *gate = gate_from(task);

    (void)context;
    (void)err;
    MUST(sem_post(&gate->entered));
    await(&gate->opened);
    return ST_OK;
}

static void gate_done_take(struct task *task, enum status status, const struct error *err)
{
    (void)status;
    (void)err;
    MUST(sem_post(&gate_from(task)->left));
}

/* No gate is held for that long. */
static void gate_given_up(struct task *task, const struct error *err)
{
    (void)task;
    fprintf(stderr, "a gate: %s\n", err->text);
    abort();
}

static void gate_late_take(struct task *task)
{
    (void)task;
}

void gate_submit(struct gate *gate, struct pool *pool, enum pool_lane lane, uint64_t client)
{
    struct task_group *group = &gate->group;
    struct error err = {0};

    *gate = (struct gate){.task = {.run = gate_run,
                                   .done_take = gate_done_take,
                                   .given_up = gate_given_up,
                                   .late_take = gate_late_take}};
    MUST(sem_init(&gate->entered, 0, 0));
    MUST(sem_init(&gate->opened, 0, 0));
    MUST(sem_init(&gate->left, 0, 0));
    gate->parts[0] = &gate->task;
    gate->group =
        (struct task_group){.lane = lane, .client = client, .parts = gate->parts, .parts_count = 1};
    require(pool_submit_take(pool, &group, &err), &err, "a gate");
}

void gate_await(struct gate *gate)
{
    await(&gate->entered);
}

void gate_open(struct gate *gate)
{
    MUST(sem_post(&gate->opened));
    await(&gate->left);
    MUST(sem_destroy(&gate->entered));
    MUST(sem_destroy(&gate->opened));
    MUST(sem_destroy(&gate->left));
}
