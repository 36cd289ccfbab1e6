/*
 * The render command: a batch file in, one document out, no server. The calling thread reads,
 * submits and waits; the press does the work.
 */
#include "domain/must.h"
#include "service/batch_json.h"
#include "service/commands.h"
#include "service/config_json.h"
#include "service/development_keys.h"
#include "service/file.h"
#include "service/layout_file.h"
#include "service/resources.h"
#include "workers/locale.h"
#include "workers/press.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_EVERY_MS = 100 };

/* Where the press leaves the result, and who waits for it. */
struct outcome {
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t ended;
    bool has_ended;
    struct press_result result;
};

/* Everything that a render needs, in the order in which it is made. */
struct render {
    const struct render_options *options;
    struct resources resources;
    struct text layout_name; /* of the layout to try */
    struct text_rules rules;
    struct event_key key;
    struct batch batch;
    struct problems problems;
    struct pool *pool;
    struct press *press;
    struct outcome outcome;
    enum command_stage stage;
    bool has_hung_threads; /* memory that they use must stay */
};

/* ---- what people see ---- */

static void print_progress(const struct press_job *job, size_t tickets_count)
{
    fprintf(stderr, "\r%zu of %zu tickets", press_job_tickets_done(job), tickets_count);
}

/* ---- keys ---- */

/* The one event key that the batch is signed with, and nothing else of the ring kept. */
static enum status load_key(struct render *render, struct error *err)
{
    const struct render_options *options = render->options;
    struct key_ring ring = {0};
    struct key_store *store = NULL;
    enum status st = options->settings->signing_keys != NULL
                         ? key_ring_read(options->settings->signing_keys, &ring, err)
                         : development_keys_read(options->settings->data, &ring, err);

    if (st == ST_OK)
        st = key_store_new_move(&ring, &store, err);
    if (st == ST_OK)
        st = key_store_event_key(store, options->client, render->batch.event.id.data, time(NULL),
                                 &render->key, err);
    key_store_free(&store);
    key_ring_clear(&ring);
    return st;
}

/* ---- the layout to try ---- */

/* It joins the others, or takes the place of the one that has its name. */
static enum status add_layout(struct layout_list *list, struct press_layout *layout,
                              struct error *err)
{
    size_t i = 0;

    while (i < list->count &&
           strcmp(list->layouts[i].layout.name.data, layout->layout.name.data) != 0)
        i++;
    if (i == PRESS_LAYOUTS_MAX)
        return error_set(err, ST_TOO_LARGE, "layouts: more than %d files", PRESS_LAYOUTS_MAX);
    if (i < list->count)
        press_layout_clear(&list->layouts[i]);
    else
        list->count++;
    list->layouts[i] = *layout;
    *layout = (struct press_layout){0};
    return ST_OK;
}

static enum status load_layout(struct render *render, struct error *err)
{
    struct press_layout layout = {0};
    struct problems problems = {0};
    enum status st;

    if (render->options->layout_path == NULL)
        return ST_OK;
    st = layout_file_load(render->options->layout_path, &layout, &problems, err);
    problems_print(render->options->layout_path, &problems);
    problems_clear(&problems);
    if (st == ST_OK) {
        render->layout_name = layout.layout.name; /* lives in the list, and then in the press */
        st = add_layout(&render->resources.layouts, &layout, err);
    }
    press_layout_clear(&layout);
    return st;
}

static void choose_layout(struct render *render)
{
    if (render->options->layout_path == NULL)
        return;
    render->batch.layout = render->layout_name;
    for (size_t i = 0; i < render->batch.tickets_count; i++)
        render->batch.tickets[i].layout = (struct text){0};
}

/* ---- the batch ---- */

static enum status check_offers(const struct render *render, struct error *err)
{
    if (render->batch.output != OUTPUT_MERGED)
        return error_set(err, ST_INVALID,
                         "%s: /output: render writes one document; \"merged\" asks for it",
                         render->options->batch_path);
    if (render->batch.callback_url.data != NULL)
        fprintf(stderr, "%s: /callback_url: render calls nobody back\n",
                render->options->batch_path);
    return ST_OK;
}

static enum status load_batch(struct render *render, struct error *err)
{
    const struct settings *settings = render->options->settings;
    struct batch_limits const limits = {.tickets_max = (size_t)settings->tickets_max};
    struct bytes body = {0};
    enum status st =
        file_read(render->options->batch_path, (size_t)settings->body_bytes_max, &body, err);

    if (st == ST_OK) {
        render->stage = STAGE_WORK;
        st =
            batch_json_read(&body, &render->rules, &limits, &render->batch, &render->problems, err);
        problems_print(render->options->batch_path, &render->problems);
    }
    bytes_clear(&body);
    if (st == ST_OK)
        choose_layout(render);
    if (st == ST_OK && render->batch.tickets_skipped > 0)
        fprintf(stderr, "%s: %zu tickets left out\n", render->options->batch_path,
                render->batch.tickets_skipped);
    return st == ST_OK ? check_offers(render, err) : st;
}

/* ---- the press ---- */

static void outcome_init(struct outcome *outcome)
{
    pthread_condattr_t attributes;

    MUST(pthread_mutex_init(&outcome->mutex, NULL));
    MUST(pthread_condattr_init(&attributes));
    MUST(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    MUST(pthread_cond_init(&outcome->ended, &attributes));
    MUST(pthread_condattr_destroy(&attributes));
}

static void outcome_clear(struct outcome *outcome)
{
    press_result_clear(&outcome->result);
    MUST(pthread_cond_destroy(&outcome->ended));
    MUST(pthread_mutex_destroy(&outcome->mutex));
}

/* The press's call at the end of the job, on one of its threads. */
static void receive(void *user, struct press_result *result)
{
    struct outcome *outcome = user;

    MUST(pthread_mutex_lock(&outcome->mutex));
    outcome->result = *result;
    *result = (struct press_result){0};
    outcome->has_ended = true;
    MUST(pthread_cond_signal(&outcome->ended));
    MUST(pthread_mutex_unlock(&outcome->mutex));
}

static struct timespec after_ms(long ms)
{
    struct timespec at;

    MUST(clock_gettime(CLOCK_MONOTONIC, &at));
    at.tv_nsec += ms * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Wait for the end, but not long. Returns whether it has come. */
static bool await_briefly(struct outcome *outcome)
{
    struct timespec const at = after_ms(PROGRESS_EVERY_MS);
    int code = 0;
    bool has_ended;

    MUST(pthread_mutex_lock(&outcome->mutex));
    while (!outcome->has_ended && code == 0)
        code = pthread_cond_timedwait(&outcome->ended, &outcome->mutex, &at);
    MUST(code == ETIMEDOUT ? 0 : code);
    has_ended = outcome->has_ended;
    MUST(pthread_mutex_unlock(&outcome->mutex));
    return has_ended;
}

/* The press must not wait for a terminal: nothing is printed under the lock that its call needs. */
static void await_end(struct outcome *outcome, const struct press_job *job, size_t tickets_count)
{
    bool const shows_progress = isatty(STDERR_FILENO) == 1;

    while (!await_briefly(outcome))
        if (shows_progress)
            print_progress(job, tickets_count);
    if (shows_progress) {
        print_progress(job, tickets_count);
        fputc('\n', stderr);
    }
}

static enum status start_press(struct render *render, struct error *err)
{
    const struct settings *settings = render->options->settings;
    struct pool_config const pool = {
        .threads = (size_t)settings->workers,
        .queue_tasks_max =
            (size_t)settings->tickets_max + 1, /* one batch, cut as finely as can be */
        .nice = (int)settings->worker_nice,
        .task_deadline_ms = (uint32_t)settings->task_deadline_ms,
        .task_grace_ms = (uint32_t)settings->task_grace_ms,
        .threads_given_up_max = (size_t)settings->threads_given_up_max,
        .context_new = press_worker_new,
        .context_free = press_worker_free,
        .user = render->resources.fonts,
    };
    struct press_config press = {
        .fonts = render->resources.fonts,
        .labels = &render->resources.labels,
        .slice_tickets = (size_t)settings->slice_tickets,
    };
    enum status st = pool_start(&pool, &render->pool, err);

    press.pool = render->pool;
    return st == ST_OK ? press_new_move(&press, &render->resources.layouts, &render->press, err)
                       : st;
}

static enum status run_job(struct render *render, struct error *err)
{
    struct press_request request = {
        .lane = POOL_BULK,
        .key = render->key,
        .done = receive,
        .user = &render->outcome,
    };
    size_t const tickets_count = render->batch.tickets_count;
    struct problems problems = {0};
    struct press_job *job = NULL;
    enum status st =
        press_submit_move(render->press, &request, &render->batch, &job, &problems, err);

    event_key_clear(&request.key);
    problems_print(render->options->batch_path, &problems);
    problems_clear(&problems);
    if (st != ST_OK)
        return st;
    await_end(&render->outcome, job, tickets_count);
    press_job_release(&job);
    problems_print(render->options->batch_path, &render->outcome.result.problems);
    if (render->outcome.result.status != ST_OK)
        *err = render->outcome.result.error;
    return render->outcome.result.status;
}

static enum status render_all(struct render *render, struct error *err)
{
    enum status st = batch_json_start((size_t)render->options->settings->parse_bytes_max, err);

    if (st == ST_OK)
        st = locale_rules(&render->rules, err);
    if (st == ST_OK)
        st = resources_load(render->options->settings, &render->resources, err);
    if (st == ST_OK)
        st = load_layout(render, err);
    if (st == ST_OK)
        st = load_batch(render, err);
    if (st == ST_OK) {
        render->stage = STAGE_SETUP;
        st = load_key(render, err);
    }
    if (st == ST_OK)
        st = start_press(render, err);
    if (st == ST_OK) {
        render->stage = STAGE_WORK;
        st = run_job(render, err);
    }
    if (st == ST_OK)
        st = file_write(render->options->output_path, &render->outcome.result.document->bytes, err);
    return st;
}

static void render_clear(struct render *render)
{
    if (render->pool != NULL)
        render->has_hung_threads = !pool_stop(&render->pool, POOL_STOP_NOW);
    if (render->has_hung_threads)
        return;
    press_unref(&render->press);
    resources_clear(&render->resources);
    batch_clear(&render->batch);
    problems_clear(&render->problems);
    event_key_clear(&render->key);
    outcome_clear(&render->outcome);
}

enum exit_code command_render(const struct render_options *options)
{
    struct render render = {.options = options, .stage = STAGE_SETUP};
    struct error err = {0};
    enum exit_code code;

    outcome_init(&render.outcome);
    code = render_all(&render, &err) == ST_OK ? EXIT_OK : command_fail(&err, render.stage);
    render_clear(&render);
    if (render.has_hung_threads) {
        fflush(NULL);
        _exit((int)code);
    }
    return code;
}
