#include "service/serve.h"

#include "domain/must.h"
#include "service/api.h"
#include "service/batch_json.h"
#include "service/config_json.h"
#include "service/development_keys.h"
#include "service/http.h"
#include "service/job_store.h"
#include "service/job_table.h"
#include "service/log.h"
#include "service/metrics.h"
#include "service/resources.h"
#include "workers/locale.h"
#include "workers/press.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    SWEEP_EVERY_MS = 1000,
    CLOSE_WITHIN_MS = 10000, /* for answers that are being sent when the stop comes to its end */
    STOP_WITHIN_MS = 1000,   /* after a second signal */
    MAPPED_BYTES_MIN = 256 * 1024,
    BODIES_PARTS = 4, /* request bodies may hold a quarter of render-bytes-max */
};

enum stage { STAGE_SERVING, STAGE_DRAINING, STAGE_CLOSING, STAGE_STOPPING };

/* Everything that a service is made of, in the order in which it is made. */
struct service {
    const struct serve_options *options;
    int signal_fd;
    struct text_rules rules;
    struct resources resources;
    struct key_store *keys;
    struct client_list clients;
    struct metrics *metrics;
    struct pool *pool;
    struct press *press; /* of the start; the job table has the one in force */
    struct job_store *store;
    struct job_table *jobs;
    struct api *api;
    struct http *http;

    enum stage stage;
    int64_t stage_since_ms;
    int64_t idle_since_ms; /* while draining: no job has run since; 0: some do */
    int64_t swept_ms;
    bool reload_is_wanted; /* the front end's own; a reload that runs may have read too early */
    atomic_bool is_reloading;
};

/* ---- reloading ---- */

/* Runs on the pool: files are read and layouts compiled there. */
struct reload {
    struct task task; /* first */
    struct task *parts[1];
    struct task_group group;
    struct service *service;
};

static enum status read_ring(const struct settings *settings, struct key_ring *ring,
                             struct error *err)
{
    return settings->signing_keys != NULL ? key_ring_read(settings->signing_keys, ring, err)
                                          : development_keys_read(settings->data, ring, err);
}

static enum status reload_keys(struct service *service, struct error *err)
{
    struct key_ring ring = {0};
    enum status st = read_ring(service->options->settings, &ring, err);

    if (st == ST_OK)
        st = key_store_swap_move(service->keys, &ring, err);
    key_ring_clear(&ring);
    return st;
}

static struct press_config press_config_of(const struct service *service)
{
    return (struct press_config){
        .pool = service->pool,
        .fonts = service->resources.fonts,
        .labels = &service->resources.labels,
        .slice_tickets = (size_t)service->options->settings->slice_tickets,
    };
}

static enum status reload_layouts(struct service *service, struct error *err)
{
    struct press_config const config = press_config_of(service);
    struct layout_list *layouts = calloc(1, sizeof *layouts);
    struct press *press = NULL;
    enum status st = layouts == NULL
                         ? error_set(err, ST_NO_MEMORY, "layouts")
                         : resources_load_layouts(service->options->settings, layouts, err);

    if (st == ST_OK)
        st = press_new_move(&config, layouts, &press, err);
    if (st == ST_OK)
        job_table_swap_press(service->jobs, &press); /* jobs under way keep theirs */
    press_unref(&press);
    if (layouts != NULL)
        layout_list_clear(layouts);
    free(layouts);
    return st;
}

static void log_reload(const char *what, enum status status, const struct error *err)
{
    if (status == ST_OK)
        log_write(LOG_INFO, "reloaded", LOG_FIELDS(log_chars("what", what)));
    else
        log_write(LOG_ERROR, "reload_failed",
                  LOG_FIELDS(log_chars("what", what), log_chars("error", err->text)));
}

static enum status reload_run(struct task *task, void *worker, struct error *err)
{
    struct service *service = ((struct reload *)(void *)task)->service;
    struct error fault = {0};
    enum status st = reload_keys(service, &fault);

    (void)worker;
    (void)err;
    log_reload("signing-keys", st, &fault);
    st = reload_layouts(service, &fault);
    log_reload("layouts", st, &fault);
    return ST_OK;
}

static void reload_end(struct task *task)
{
    struct reload *reload = (struct reload *)(void *)task;

    atomic_store(&reload->service->is_reloading, false);
    free(reload);
}

static void reload_done_take(struct task *task, enum status status, const struct error *err)
{
    if (status != ST_OK)
        log_reload("everything", status, err);
    reload_end(task);
}

static void reload_given_up(struct task *task, const struct error *err)
{
    (void)task;
    log_reload("everything", ST_TIMED_OUT, err);
}

/* From the front end, at once or with the first tick after the one that runs. */
static void reload_if_wanted(struct service *service)
{
    struct reload *reload;
    struct task_group *group;
    struct error err = {0};
    enum status st = ST_OK;

    if (!service->reload_is_wanted || atomic_exchange(&service->is_reloading, true))
        return;
    service->reload_is_wanted = false;
    reload = calloc(1, sizeof *reload);
    if (reload == NULL) {
        atomic_store(&service->is_reloading, false);
        log_reload("everything", error_set(&err, ST_NO_MEMORY, "a reload"), &err);
        return;
    }
    reload->task = (struct task){.run = reload_run,
                                 .done_take = reload_done_take,
                                 .given_up = reload_given_up,
                                 .late_take = reload_end};
    reload->parts[0] = &reload->task;
    reload->group =
        (struct task_group){.lane = POOL_URGENT, .parts = reload->parts, .parts_count = 1};
    reload->service = service;
    group = &reload->group;
    st = pool_submit_take(service->pool, &group, &err);
    if (st != ST_OK) {
        log_reload("everything", st, &err);
        reload_end(&reload->task);
    }
}

/* ---- stopping ---- */

static int64_t now_ms(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void enter(struct service *service, enum stage stage)
{
    static const char *const NAMES[] = {[STAGE_SERVING] = "serving",
                                        [STAGE_DRAINING] = "draining",
                                        [STAGE_CLOSING] = "closing",
                                        [STAGE_STOPPING] = "stopping"};

    service->stage = stage;
    service->stage_since_ms = now_ms();
    log_write(LOG_INFO, NAMES[stage], NULL, 0);
}

static void begin_drain(struct service *service)
{
    job_table_drain(service->jobs);
    api_drain(service->api);
    enter(service, STAGE_DRAINING);
}

static void begin_close(struct service *service)
{
    http_quiesce(service->http);
    api_stop_waiting(service->api);
    enter(service, STAGE_CLOSING);
}

static void begin_stop(struct service *service)
{
    job_table_drain(service->jobs);
    api_drain(service->api);
    job_table_cancel_all(service->jobs);
    http_quiesce(service->http);
    api_stop_waiting(service->api);
    enter(service, STAGE_STOPPING);
}

/* Jobs have ended, and whoever wants their documents has them or has had the time to fetch them. */
static bool is_drained(struct service *service, int64_t now)
{
    struct job_table_status const jobs = job_table_status(service->jobs);

    if (jobs.jobs_running > 0 || api_under_way(service->api) > 0) {
        service->idle_since_ms = 0;
        return false;
    }
    if (service->idle_since_ms == 0)
        service->idle_since_ms = now;
    return jobs.documents_unfetched == 0 ||
           now - service->idle_since_ms >= service->options->settings->drain_linger_ms;
}

/* A hung task may hold a connection parked, with which the library must not be stopped. */
static void leave_or_end(struct service *service, int64_t within_ms, int64_t now)
{
    bool const is_late = now - service->stage_since_ms >= within_ms;
    bool const may_cut = service->stage == STAGE_STOPPING || is_late;

    if (api_under_way(service->api) == 0 && (may_cut || api_open(service->api) == 0)) {
        http_leave(service->http);
    } else if (is_late) {
        log_write(LOG_WARN, "ended_with_requests_under_way",
                  LOG_FIELDS(log_integer("requests", (int64_t)api_under_way(service->api))));
        fflush(NULL);
        _exit(EXIT_OK);
    }
}

static void on_tick(void *user, int64_t now)
{
    struct service *service = user;

    api_tick(service->api, now);
    reload_if_wanted(service);
    if (now - service->swept_ms >= SWEEP_EVERY_MS) {
        struct timespec wall;

        MUST(clock_gettime(CLOCK_REALTIME, &wall));
        job_table_sweep(service->jobs, (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000);
        service->swept_ms = now;
    }
    switch (service->stage) {
    case STAGE_SERVING:
        if (pool_status(service->pool).is_over_given_up_max)
            begin_drain(service);
        break;
    case STAGE_DRAINING:
        if (is_drained(service, now))
            begin_close(service);
        break;
    case STAGE_CLOSING:
        leave_or_end(service, CLOSE_WITHIN_MS, now);
        break;
    case STAGE_STOPPING:
        leave_or_end(service, STOP_WITHIN_MS, now);
        break;
    }
}

static void on_signal(void *user)
{
    struct service *service = user;
    struct signalfd_siginfo info;

    while (read(service->signal_fd, &info, sizeof info) == sizeof info) {
        log_write(LOG_INFO, "signal", LOG_FIELDS(log_integer("signal", (int64_t)info.ssi_signo)));
        if (info.ssi_signo == SIGHUP)
            service->reload_is_wanted = true;
        else if (service->stage == STAGE_SERVING)
            begin_drain(service);
        else if (service->stage != STAGE_STOPPING)
            begin_stop(service);
    }
    reload_if_wanted(service);
}

/* ---- starting ---- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

static enum status check_listen(const struct serve_options *options, struct error *err)
{
    const struct path_list *listen = &options->settings->listen;

    if (listen->count > HTTP_LISTENERS_MAX)
        return error_set(err, ST_INVALID, "listen: more than %d addresses", HTTP_LISTENERS_MAX);
    if (options->is_insecure || options->settings->client_keys != NULL)
        return ST_OK;
    for (size_t i = 0; i < listen->count; i++)
        if (!is_loopback(listen->paths[i]))
            return error_set(err, ST_INVALID,
                             "listen: %s is not loopback: give --client-keys, or "
                             "--insecure-no-auth to let everybody in",
                             listen->paths[i]);
    return ST_OK;
}

/*
 * Large blocks (request bodies, documents) are mapped one by one. Left alone, glibc soon takes them
 * from its heaps: then a body is copied while it grows, and the worker that frees it gives the
 * pages back under the lock of the front end's own heap, at a worker's priority.
 */
static void keep_heaps_small(void)
{
    mallopt(M_MMAP_THRESHOLD,
            MAPPED_BYTES_MIN); /* other allocators, a sanitizer's, know no such thing */
}

/* As many descriptors as the system lets us have: connections need one each. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit); /* where that fails, fewer connections are taken */
    }
}

/* Before the first thread, so that all of them leave these signals to the front end. */
static enum status take_signals(struct service *service, struct error *err)
{
    sigset_t signals;

    MUST(sigemptyset(&signals));
    MUST(sigaddset(&signals, SIGTERM));
    MUST(sigaddset(&signals, SIGINT));
    MUST(sigaddset(&signals, SIGHUP));
    MUST(pthread_sigmask(SIG_BLOCK, &signals, NULL));
    signal(SIGPIPE, SIG_IGN);
    service->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (service->signal_fd < 0)
        return error_set(err, ST_IO, "signals: %s", strerror(errno));
    return ST_OK;
}

static enum status load_keys(struct service *service, struct error *err)
{
    const struct settings *settings = service->options->settings;
    struct key_ring ring = {0};
    enum status st = read_ring(settings, &ring, err);

    if (st == ST_OK)
        st = key_store_new_move(&ring, &service->keys, err);
    key_ring_clear(&ring);
    if (st == ST_OK && settings->client_keys != NULL)
        st = client_list_read(settings->client_keys, &service->clients, err);
    return st;
}

static enum status start_pool(struct service *service, struct error *err)
{
    const struct settings *settings = service->options->settings;
    struct pool_config const config = {
        .threads = (size_t)settings->workers,
        /* a task for each ticket at worst, and one for each request that waits to be admitted */
        .queue_tasks_max = (size_t)(settings->queue_tickets_max + settings->connections_max) * 2,
        .nice = (int)settings->worker_nice,
        .task_deadline_ms = (uint32_t)settings->task_deadline_ms,
        .task_grace_ms = (uint32_t)settings->task_grace_ms,
        .threads_given_up_max = (size_t)settings->threads_given_up_max,
        .context_new = press_worker_new,
        .context_free = press_worker_free,
        .user = service->resources.fonts,
    };
    struct press_config press;
    enum status st = pool_start(&config, &service->pool, err);

    if (st != ST_OK)
        return st;
    press = press_config_of(service);
    return press_new_move(&press, &service->resources.layouts, &service->press, err);
}

static void on_job_end(void *user, const struct job_record *record, enum status status)
{
    struct service *service = user;

    metrics_count_job(service->metrics, job_state_name(record->state),
                      (uint64_t)(record->finished_ms - record->created_ms) * 1000);
    if (record->document != NULL)
        metrics_count_document(service->metrics, record->document->tickets.count,
                               record->document->bytes.len);
    log_write(LOG_INFO, "job",
              LOG_FIELDS(log_chars("job", record->id),
                         log_chars("state", job_state_name(record->state)),
                         log_chars("status", status_name(status)),
                         log_integer("tickets", (int64_t)record->tickets_total),
                         log_integer("ms", record->finished_ms - record->created_ms)));
    http_wake(service->http);
}

static enum status start_jobs(struct service *service, struct error *err)
{
    const struct settings *settings = service->options->settings;
    struct job_store_limits const limits = {
        .jobs_max = (size_t)settings->store_jobs_max,
        .documents_bytes_max = (size_t)settings->store_bytes_max,
        .gone_ttl_ms = settings->gone_ttl_s * 1000,
    };
    enum status st = job_store_memory_open(&limits, &service->store, err);
    struct job_table_config const config = {
        .press = service->press,
        .store = service->store,
        .queue_tickets_max = (size_t)settings->queue_tickets_max,
        .render_bytes_max = (size_t)settings->render_bytes_max,
        .job_ttl_ms = settings->job_ttl_s * 1000,
        .ended = on_job_end,
        .user = service,
    };

    return st == ST_OK ? job_table_new(&config, &service->jobs, err) : st;
}

static enum status start_api(struct service *service, struct error *err)
{
    struct api_config config = {
        .pool = service->pool,
        .jobs = service->jobs,
        .keys = service->keys,
        .rules = service->rules,
        .settings = service->options->settings,
        .clients = service->clients.count > 0 ? &service->clients : NULL,
        .metrics = service->metrics,
        .layout_schema = &service->resources.layout_schema,
    };

    enum status st = font_set_hash(service->resources.fonts, config.fonts_hash, err);

    return st == ST_OK ? api_new(&config, &service->api, err) : st;
}

static enum status start_http(struct service *service, struct error *err)
{
    const struct settings *settings = service->options->settings;
    struct http_config config = {
        .listen = settings->listen.paths,
        .listen_count = settings->listen.count,
        .connections_max = (size_t)settings->connections_max,
        .connections_per_address_max = (size_t)settings->connections_per_address_max,
        .header_timeout_ms = (uint32_t)settings->header_timeout_ms,
        .body_timeout_ms = (uint32_t)settings->body_timeout_ms,
        .idle_timeout_ms = (uint32_t)settings->idle_timeout_ms,
        .body_bytes_max = (size_t)settings->body_bytes_max,
        .bodies_bytes_max = (size_t)(settings->render_bytes_max / BODIES_PARTS),
        .watched_fd = service->signal_fd,
        .handlers = api_handlers(),
        .user = service->api,
        .loop_user = service,
    };
    enum status st;

    config.handlers.tick = on_tick;
    config.handlers.readable = on_signal;
    st = http_open(&config, &service->http, err);
    if (st == ST_OK)
        api_attach(service->api, service->http);
    return st;
}

static enum status start_all(struct service *service, struct error *err)
{
    const struct settings *settings = service->options->settings;
    enum status st = check_listen(service->options, err);

    raise_descriptor_limit();
    keep_heaps_small();
    if (st == ST_OK)
        st = take_signals(service, err);
    if (st == ST_OK)
        st = batch_json_start((size_t)settings->parse_bytes_max, err);
    if (st == ST_OK)
        st = locale_rules(&service->rules, err);
    if (st == ST_OK)
        st = resources_load(settings, &service->resources, err);
    if (st == ST_OK)
        st = load_keys(service, err);
    if (st == ST_OK && (service->metrics = metrics_new()) == NULL)
        st = error_set(err, ST_NO_MEMORY, "metrics");
    if (st == ST_OK)
        st = start_pool(service, err);
    if (st == ST_OK)
        st = start_jobs(service, err);
    if (st == ST_OK)
        st = start_api(service, err);
    return st == ST_OK ? start_http(service, err) : st;
}

static void log_ready(const struct service *service)
{
    const struct settings *settings = service->options->settings;

    for (size_t i = 0; i < settings->listen.count; i++)
        log_write(LOG_INFO, "listening",
                  LOG_FIELDS(log_chars("address", settings->listen.paths[i]),
                             log_integer("port", http_port(service->http, i))));
    log_write(LOG_INFO, "ready",
              LOG_FIELDS(log_chars("version", TICKETPRESS_VERSION),
                         log_integer("workers", settings->workers)));
}

/* In reverse. Returns false when hung threads still use what is left. */
static bool stop_all(struct service *service)
{
    /* The pool first: jobs that it cancels still tell the front end of their end. */
    if (service->pool != NULL && !pool_stop(&service->pool, POOL_STOP_NOW))
        return false;
    http_close(&service->http);
    api_free(&service->api);
    job_table_free(&service->jobs);
    if (service->store != NULL)
        service->store->calls->close(&service->store);
    press_unref(&service->press);
    metrics_free(&service->metrics);
    client_list_clear(&service->clients);
    key_store_free(&service->keys);
    resources_clear(&service->resources);
    if (service->signal_fd >= 0)
        close(service->signal_fd);
    return true;
}

enum exit_code command_serve(const struct serve_options *options)
{
    struct service *service = calloc(1, sizeof *service);
    struct error err = {0};
    enum exit_code code = EXIT_OK;

    MUST(service == NULL ? ENOMEM : 0);
    service->options = options;
    service->signal_fd = -1;
    log_start(STDERR_FILENO, (enum log_level)options->settings->log_level);
    if (start_all(service, &err) == ST_OK) {
        log_ready(service);
        http_serve(service->http);
    } else {
        code = command_fail(&err, STAGE_SETUP);
    }
    if (!stop_all(service)) {
        fflush(NULL);
        _exit((int)code);
    }
    free(service);
    log_write(LOG_INFO, "stopped", NULL, 0);
    log_stop();
    return code;
}
