/*
 * The product, timed over the same span as its yardsticks: from the batch's text to the closed
 * file, with the press and its threads standing ready as they do in a service.
 */
#include "workers/press.h"
#include "domain/must.h"
#include "service/batch_json.h"
#include "service/config_json.h"
#include "service/file.h"
#include "service/resources.h"
#include "tests/bench/bench_run.h"
#include "workers/locale.h"

#include <pthread.h>
#include <time.h>

enum {
    QUEUE_TASKS_MAX = 100000,
    TASK_DEADLINE_MS = 60000,
    TICKETS_MAX = 1000000,
    SLICE_TICKETS = 48, /* the setting's default */
};

struct ready_press {
    struct text_rules rules;
    struct resources resources;
    struct key_store *keys;
    struct pool *pool;
    struct press *press;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t ended;
    bool has_ended;
    struct press_result result;
};

static void prepare_keys(struct ready_press *ready, const char *path)
{
    struct key_ring ring = {0};

    bench_require(key_ring_read(path, &ring, NULL) == ST_OK &&
                      key_store_new_move(&ring, &ready->keys, NULL) == ST_OK,
                  "the key ring");
}

static void prepare_press(struct ready_press *ready, size_t workers)
{
    struct pool_config const pool = {
        .threads = workers,
        .queue_tasks_max = QUEUE_TASKS_MAX,
        .task_deadline_ms = TASK_DEADLINE_MS,
        .task_grace_ms = TASK_DEADLINE_MS,
        .threads_given_up_max = 1,
        .context_new = press_worker_new,
        .context_free = press_worker_free,
        .user = ready->resources.fonts,
    };
    struct press_config press = {
        .fonts = ready->resources.fonts,
        .labels = &ready->resources.labels,
        .slice_tickets = SLICE_TICKETS,
    };

    bench_require(pool_start(&pool, &ready->pool, NULL) == ST_OK, "the pool");
    press.pool = ready->pool;
    bench_require(press_new_move(&press, &ready->resources.layouts, &ready->press, NULL) == ST_OK,
                  "the press");
}

static void *press_prepare(const struct bench_job *job)
{
    struct ready_press *ready = calloc(1, sizeof *ready);
    struct settings const settings = {0};

    bench_require(ready != NULL, "memory");
    config_json_start();
    bench_require(batch_json_start(PARSE_BYTES_MAX_DEFAULT, NULL) == ST_OK &&
                      sign_start(NULL) == ST_OK && locale_rules(&ready->rules, NULL) == ST_OK &&
                      resources_load(&settings, &ready->resources, NULL) == ST_OK,
                  "the start");
    MUST(pthread_mutex_init(&ready->mutex, NULL));
    MUST(pthread_cond_init(&ready->ended, NULL));
    prepare_keys(ready, job->keys_path);
    prepare_press(ready, job->workers);
    return ready;
}

static void receive(void *user, struct press_result *result)
{
    struct ready_press *ready = user;

    MUST(pthread_mutex_lock(&ready->mutex));
    ready->result = *result;
    *result = (struct press_result){0};
    ready->has_ended = true;
    MUST(pthread_cond_signal(&ready->ended));
    MUST(pthread_mutex_unlock(&ready->mutex));
}

static void press_batch(struct ready_press *ready, struct batch *batch)
{
    struct press_request request = {.lane = POOL_BULK, .done = receive, .user = ready};
    struct problems problems = {0};
    struct press_job *handle = NULL;

    bench_require(key_store_event_key(ready->keys, NULL, batch->event.id.data, time(NULL),
                                      &request.key, NULL) == ST_OK &&
                      press_submit_move(ready->press, &request, batch, &handle, &problems, NULL) ==
                          ST_OK,
                  "the press");
    MUST(pthread_mutex_lock(&ready->mutex));
    while (!ready->has_ended)
        MUST(pthread_cond_wait(&ready->ended, &ready->mutex));
    ready->has_ended = false;
    MUST(pthread_mutex_unlock(&ready->mutex));
    press_job_release(&handle);
    problems_clear(&problems);
}

static size_t press_run(void *context, const struct bench_job *job)
{
    struct ready_press *ready = context;
    struct bytes const body = {.data = (uint8_t *)job->batch_json,
                               .len = job->batch_json_len,
                               .capacity = job->batch_json_len};
    struct batch_limits const limits = {.tickets_max = TICKETS_MAX};
    struct problems problems = {0};
    struct batch batch = {0};
    size_t tickets_count;

    bench_require(batch_json_read(&body, &ready->rules, &limits, &batch, &problems, NULL) == ST_OK,
                  "the batch");
    problems_clear(&problems);
    tickets_count = batch.tickets_count;
    press_batch(ready, &batch);
    bench_require(ready->result.status == ST_OK &&
                      file_write(job->out_path, &ready->result.document->bytes, NULL) == ST_OK,
                  "the document");
    press_result_clear(&ready->result);
    return tickets_count;
}

static void press_finish(void *context)
{
    struct ready_press *ready = context;

    bench_require(pool_stop(&ready->pool, POOL_STOP_DRAIN), "the stop");
    press_unref(&ready->press);
    key_store_free(&ready->keys);
    resources_clear(&ready->resources);
    MUST(pthread_cond_destroy(&ready->ended));
    MUST(pthread_mutex_destroy(&ready->mutex));
    free(ready);
}

int main(int argc, char **argv)
{
    static const struct bench_program PROGRAM = {
        .name = "press",
        .takes_workers = true,
        .prepare = press_prepare,
        .run = press_run,
        .finish = press_finish,
    };

    return bench_main(&PROGRAM, argc, argv);
}
