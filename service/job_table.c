#include "service/job_table.h"

#include "domain/must.h"
#include "service/batch_json.h"
#include "service/drain.h"
#include "service/job_map.h"
#include "service/json_text.h"
#include "workers/sign.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    JOB_ID_RANDOM_BYTES = 16,
    FULL_SHARE = 8, /* with this part of the room taken all threads have work */
};

/* A document that waits to be fetched. */
struct unfetched {
    struct job_node node; /* first: it is found again by it */
    int64_t finished_ms;
    struct unfetched *next, *prev; /* by time of their ends */
};

/* A job from its admission to its end, and beyond while the store is out of reach. */
struct live_job {
    struct job_node node; /* first, likewise */
    struct job_table *table;
    size_t tickets;
    char client[JOB_CLIENT_BYTES_MAX + 1];

    /* Of the admission until it is submitted, then of the press's calls, which follow each other;
     * guarded by the mutex once is_unsaved. */
    struct job_record record;
    struct unfetched *unfetched; /* ready to be put on the list, which must not fail */

    /* Guarded by the table's mutex. */
    struct press_job *press_job; /* NULL before it is submitted and after its end */
    struct job_waiter *waiters;
    enum job_state state; /* JOB_QUEUED or JOB_RUNNING */
    int64_t started_ms;
    bool is_cancelled; /* its press job is to be cancelled as soon as there is one */
    bool is_deleted;   /* its end is JOB_CANCELLED */
    bool is_ending;    /* from here on a DELETE means what is in the store */
    bool is_erased;    /* such a DELETE has come */
    bool has_ended;    /* everybody knows */
    bool is_unsaved;   /* but the store */
    unsigned holds;    /* of the press, then of is_unsaved; of an admission under way */
};

struct job_table {
    struct job_table_config config;
    size_t tickets_max;

    pthread_mutex_t mutex; /* guards the rest */
    struct press *press;
    struct job_map jobs; /* struct live_job */
    size_t jobs_running, jobs_unsaved;
    size_t tickets_queued;   /* of jobs and reserved */
    size_t tickets_reserved; /* without a job */
    size_t waiters;
    bool is_draining;
    struct drain_rate rate;
    uint64_t tickets_before;  /* finished by presses of before, less by this one before it came */
    struct job_map unfetched; /* struct unfetched */
    struct unfetched *unfetched_first, *unfetched_last;
};

static struct live_job *live_from(struct job_node *node)
{
    return (struct live_job *)(void *)node;
}

static struct unfetched *unfetched_from(struct job_node *node)
{
    return (struct unfetched *)(void *)node;
}

static void lock(struct job_table *table)
{
    MUST(pthread_mutex_lock(&table->mutex));
}

static void unlock(struct job_table *table)
{
    MUST(pthread_mutex_unlock(&table->mutex));
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    MUST(clock_gettime(clock, &now));
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A moment of a job's life: never before the one before it, however the clock is set. */
static int64_t wall_ms_after(int64_t before_ms)
{
    int64_t const now_ms = clock_us(CLOCK_REALTIME) / 1000;

    return now_ms > before_ms ? now_ms : before_ms;
}

/* ---- the table ---- */

/* The tighter one of the two limits, in tickets. */
static size_t tickets_max_of(const struct job_table_config *config)
{
    size_t const by_bytes = config->render_bytes_max / JOB_TICKET_BYTES;

    return by_bytes < config->queue_tickets_max ? by_bytes : config->queue_tickets_max;
}

enum status job_table_new(const struct job_table_config *config, struct job_table **table,
                          struct error *err)
{
    struct job_table *made = calloc(1, sizeof *made);
    enum status st = made == NULL ? error_set(err, ST_NO_MEMORY, "the table of jobs") : ST_OK;

    assert(config->queue_tickets_max >= 1 && config->render_bytes_max >= JOB_TICKET_BYTES);
    assert(config->job_ttl_ms >= 1);
    if (st == ST_OK)
        st = job_map_init(&made->jobs, err);
    if (st == ST_OK)
        st = job_map_init(&made->unfetched, err);
    if (st != ST_OK) {
        if (made != NULL)
            job_map_clear(&made->jobs);
        free(made);
        return st;
    }
    made->config = *config;
    made->tickets_max = tickets_max_of(config);
    made->press = press_ref(config->press);
    made->rate.noted_us = clock_us(CLOCK_MONOTONIC);
    made->rate.noted_tickets = press_tickets_done(config->press);
    MUST(pthread_mutex_init(&made->mutex, NULL));
    *table = made;
    return ST_OK;
}

static void live_free(struct live_job *live)
{
    assert(live->press_job == NULL && live->waiters == NULL);
    job_record_clear(&live->record);
    free(live->unfetched);
    free(live);
}

static void unfetched_drop(struct job_table *table, struct unfetched *unfetched)
{
    *(unfetched->prev != NULL ? &unfetched->prev->next : &table->unfetched_first) = unfetched->next;
    *(unfetched->next != NULL ? &unfetched->next->prev : &table->unfetched_last) = unfetched->prev;
    job_map_remove(&table->unfetched, &unfetched->node);
    free(unfetched);
}

void job_table_free(struct job_table **table)
{
    struct job_table *from = *table;
    struct job_node *node;

    if (from == NULL)
        return;
    assert(from->jobs_running == 0 && from->waiters == 0);
    while ((node = job_map_next(&from->jobs, NULL)) != NULL) {
        job_map_remove(&from->jobs, node);
        live_free(live_from(node));
    }
    while (from->unfetched_first != NULL)
        unfetched_drop(from, from->unfetched_first);
    job_map_clear(&from->jobs);
    job_map_clear(&from->unfetched);
    press_unref(&from->press);
    MUST(pthread_mutex_destroy(&from->mutex));
    free(from);
    *table = NULL;
}

/* ---- load and rate ---- */

static void note_load_locked(struct job_table *table)
{
    enum drain_load load = DRAIN_IDLE;

    if (table->tickets_queued >= table->tickets_max / FULL_SHARE + 1)
        load = DRAIN_FULL;
    else if (table->tickets_queued > 0)
        load = DRAIN_BUSY;
    drain_rate_note(&table->rate, clock_us(CLOCK_MONOTONIC),
                    table->tickets_before + press_tickets_done(table->press), load);
}

static double rate_locked(const struct job_table *table)
{
    return drain_rate_per_s(&table->rate, press_tickets_per_s(table->press));
}

void job_table_swap_press(struct job_table *table, struct press **press)
{
    struct press *before;

    lock(table);
    before = table->press;
    note_load_locked(table);
    /* What jobs still do on the press of before is not counted: the rate is low for a moment. */
    table->tickets_before = table->rate.noted_tickets - press_tickets_done(*press);
    table->press = *press;
    unlock(table);
    *press = before;
}

struct press *job_table_press_ref(struct job_table *table)
{
    struct press *press;

    lock(table);
    press = press_ref(table->press);
    unlock(table);
    return press;
}

static enum status check_room_locked(const struct job_table *table, size_t tickets,
                                     struct error *err)
{
    bool const is_by_queue = table->tickets_max == table->config.queue_tickets_max;
    const char *setting = is_by_queue ? "queue-tickets-max" : "render-bytes-max";

    if (tickets > table->tickets_max)
        return error_set(err, ST_TOO_LARGE,
                         "%s: %zu tickets at once are more than the %zu that fit", setting, tickets,
                         table->tickets_max);
    if (table->is_draining)
        return error_set(err, ST_BUSY, "the service is about to stop");
    if (tickets > table->tickets_max - table->tickets_queued)
        return error_set(err, ST_BUSY,
                         "%s: %zu tickets are under way, and there is no room for "
                         "%zu more",
                         setting, table->tickets_queued, tickets);
    return ST_OK;
}

static enum status take_room(struct job_table *table, size_t tickets, size_t reserved,
                             struct error *err)
{
    enum status st;

    lock(table);
    st = check_room_locked(table, tickets, err);
    if (st == ST_OK) {
        table->tickets_queued += tickets;
        table->tickets_reserved += reserved;
        note_load_locked(table);
    }
    unlock(table);
    return st;
}

static void give_room_locked(struct job_table *table, size_t tickets)
{
    assert(table->tickets_queued >= tickets);
    table->tickets_queued -= tickets;
    note_load_locked(table);
}

enum status job_table_reserve(struct job_table *table, size_t tickets, struct error *err)
{
    return take_room(table, tickets, tickets, err);
}

void job_table_release(struct job_table *table, size_t tickets)
{
    lock(table);
    assert(table->tickets_reserved >= tickets);
    table->tickets_reserved -= tickets;
    give_room_locked(table, tickets);
    unlock(table);
}

/* ---- waiters ---- */

static void attach_locked(struct live_job *live, struct job_waiter *waiter, bool for_end)
{
    memcpy(waiter->id, live->node.id, sizeof waiter->id);
    waiter->is_for_end = for_end;
    waiter->is_waiting = true;
    waiter->prev = NULL;
    waiter->next = live->waiters;
    if (waiter->next != NULL)
        waiter->next->prev = waiter;
    live->waiters = waiter;
    live->table->waiters++;
}

static void detach_locked(struct live_job *live, struct job_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &live->waiters) = waiter->next;
    if (waiter->next != NULL)
        waiter->next->prev = waiter->prev;
    waiter->is_waiting = false;
    live->table->waiters--;
}

/* Take off those who wait for less than the end, or all; returned as a list by next. From here on
 * they cannot stop waiting. */
static struct job_waiter *detach_all_locked(struct live_job *live, bool is_end)
{
    struct job_waiter *detached = NULL;
    struct job_waiter *next;

    for (struct job_waiter *waiter = live->waiters; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->is_for_end && !is_end)
            continue;
        detach_locked(live, waiter);
        waiter->next = detached;
        detached = waiter;
    }
    return detached;
}

/* A waiter's memory may go with its wake. */
static void wake_all(struct job_waiter *waiters)
{
    while (waiters != NULL) {
        struct job_waiter *next = waiters->next;

        waiters->wake(waiters);
        waiters = next;
    }
}

static struct live_job *find_locked(const struct job_table *table, const char *id)
{
    struct job_node *node = job_map_find(&table->jobs, id);

    return node != NULL ? live_from(node) : NULL;
}

bool job_table_wait(struct job_table *table, const char *id, enum job_state state, bool for_end,
                    struct job_waiter *waiter)
{
    struct live_job *live;
    bool waits;

    lock(table);
    live = find_locked(table, id);
    waits = live != NULL && !live->has_ended && (for_end || live->state == state);
    if (waits)
        attach_locked(live, waiter, for_end);
    unlock(table);
    return waits;
}

bool job_table_unwait(struct job_table *table, struct job_waiter *waiter)
{
    bool was_waiting;

    lock(table);
    was_waiting = waiter->is_waiting;
    if (was_waiting)
        detach_locked(find_locked(table, waiter->id), waiter);
    unlock(table);
    return was_waiting;
}

/* ---- problems ---- */

/* Append the entries of one JSON array to another. On error *array is as it was. */
static enum status array_append(struct bytes *array, const struct bytes *more, struct error *err)
{
    enum status st;

    assert(more->len >= 2 && more->data[0] == '[');
    if (array->len == 0)
        return bytes_append(array, more->data, more->len, err);
    assert(array->data[array->len - 1] == ']');
    st = bytes_reserve(array, more->len, err);
    if (st != ST_OK)
        return st;
    array->len--;
    if (array->data[array->len - 1] == '\n')
        array->len--;
    array->data[array->len++] = ',';
    return bytes_append(array, more->data + 1, more->len - 1, err); /* there is room */
}

/* What the press found, behind what the admission left out. Without memory it is lost: a job ends
 * in any case. */
static void note_problems(struct job_record *record, const struct press_result *result)
{
    struct problems problems = {0};
    struct bytes array = {0};
    struct json_text json = {.out = &array};

    if (record->state == JOB_FAILED)
        problems_add(&problems, "", status_name(result->status), "%s", result->error.text);
    problems_append_copy(&problems, &result->problems);
    if (problems.count > 0) {
        enum status st;

        problems_json_array(&json, &problems);
        st = json_text_finish(&json, NULL);
        if (st == ST_OK)
            st = array_append(&record->problems, &array, NULL);
        (void)st;
    }
    bytes_clear(&array);
    problems_clear(&problems);
}

/* ---- how a job goes ---- */

static struct job_store *store_of(const struct job_table *table)
{
    return table->config.store;
}

/* The press's call when a worker takes up the first ticket. */
static void job_started(void *user)
{
    struct live_job *live = user;
    struct job_table *table = live->table;
    struct job_record started = {0};
    struct job_waiter *waiters;
    enum status st;

    live->record.state = JOB_RUNNING;
    live->record.started_ms = wall_ms_after(live->record.created_ms);
    st = job_record_copy(&started, &live->record, NULL);
    if (st == ST_OK)
        st = store_of(table)->calls->update_move(store_of(table), &started, NULL);
    if (st != ST_OK) /* views know better, and the end is still to come */
        job_record_clear(&started);
    lock(table);
    live->state = JOB_RUNNING;
    live->started_ms = live->record.started_ms;
    waiters = detach_all_locked(live, false);
    unlock(table);
    wake_all(waiters);
}

/* ---- the end of a job ---- */

static void fill_end(struct live_job *live, struct press_result *result, bool is_deleted)
{
    struct job_record *record = &live->record;

    if (is_deleted || result->status == ST_CANCELLED)
        record->state = JOB_CANCELLED;
    else
        record->state = result->status == ST_OK ? JOB_SUCCEEDED : JOB_FAILED;
    record->failure = record->state == JOB_FAILED ? result->status : ST_OK;
    record->tickets_done = result->tickets_done;
    record->finished_ms =
        wall_ms_after(record->started_ms != 0 ? record->started_ms : record->created_ms);
    record->expires_ms = record->finished_ms + live->table->config.job_ttl_ms;
    if (record->state == JOB_SUCCEEDED) {
        record->document = result->document;
        result->document = NULL;
    }
    note_problems(record, result);
}

/* What is told of an end: the record without its problems. */
struct ending {
    struct job_record record;
    enum status status;
    bool is_saved;
};

/* A job that the store does not know any more was erased while it ended. */
static enum status save(struct live_job *live, struct ending *ending, struct error *err)
{
    struct job_store *store = store_of(live->table);
    enum status st;

    document_unref(&ending->record.document);
    ending->record = live->record;
    ending->record.problems = (struct bytes){0};
    if (ending->record.document != NULL)
        ending->record.document = document_ref(ending->record.document);
    st = store->calls->update_move(store, &live->record, err);
    ending->is_saved = st == ST_OK || st == ST_NOT_FOUND;
    return st;
}

/* When the store cannot keep the document, the job has failed for that; when it cannot keep even
 * this, the table has to. */
static void save_or_fail(struct live_job *live, struct ending *ending)
{
    struct press_result lost = {.tickets_done = live->record.tickets_done};

    lost.status = save(live, ending, &lost.error);
    if (ending->is_saved)
        return;
    if (live->record.state == JOB_SUCCEEDED) {
        ending->status = lost.status;
        document_unref(&live->record.document);
        fill_end(live, &lost, false);
    }
    lost.status = save(live, ending, NULL);
}

static void unfetched_add_locked(struct job_table *table, struct live_job *live)
{
    struct unfetched *added = live->unfetched;

    live->unfetched = NULL;
    memcpy(added->node.id, live->node.id, sizeof added->node.id);
    job_map_add(&table->unfetched, &added->node);
    added->prev = table->unfetched_last;
    *(added->prev != NULL ? &added->prev->next : &table->unfetched_first) = added;
    table->unfetched_last = added;
}

static void unfetched_drop_locked(struct job_table *table, const char *id)
{
    struct job_node *node = job_map_find(&table->unfetched, id);

    if (node != NULL)
        unfetched_drop(table, unfetched_from(node));
}

void job_table_fetched(struct job_table *table, const char *id)
{
    lock(table);
    unfetched_drop_locked(table, id);
    unlock(table);
}

/* Returns whether the job is to be freed, outside of the lock. */
static bool let_go_locked(struct live_job *live)
{
    assert(live->holds > 0);
    return --live->holds == 0;
}

/* What is to be done outside of the lock when a job has left. */
struct farewell {
    struct job_waiter *waiters;
    struct press_job *press_job;
    bool is_last; /* the job's memory goes */
};

static struct farewell leave_locked(struct live_job *live)
{
    struct job_table *table = live->table;
    struct farewell farewell = {.press_job = live->press_job};

    live->press_job = NULL;
    live->has_ended = true;
    farewell.waiters = detach_all_locked(live, true);
    table->jobs_running--;
    give_room_locked(table, live->tickets);
    if (live->is_unsaved) {
        table->jobs_unsaved++;
    } else {
        job_map_remove(&table->jobs, &live->node);
        farewell.is_last = let_go_locked(live);
    }
    return farewell;
}

/* The press's call at a job's end, on one of its threads or the watchdog. */
static void job_done(void *user, struct press_result *result)
{
    struct live_job *live = user;
    struct job_table *table = live->table;
    const struct job_table_config *config = &table->config;
    struct ending ending = {0};
    struct farewell farewell;
    bool is_deleted;

    lock(table);
    live->is_ending = true;
    is_deleted = live->is_deleted;
    unlock(table);
    ending.status = is_deleted && result->status == ST_OK ? ST_CANCELLED : result->status;
    fill_end(live, result, is_deleted);
    save_or_fail(live, &ending);
    lock(table);
    if (ending.record.state == JOB_SUCCEEDED && !live->is_erased) {
        live->unfetched->finished_ms = ending.record.finished_ms;
        unfetched_add_locked(table, live);
    }
    live->is_unsaved = !ending.is_saved;
    farewell = leave_locked(live);
    unlock(table);
    press_result_clear(result);
    press_job_release(&farewell.press_job);
    if (farewell.is_last)
        live_free(live);
    if (config->ended != NULL)
        config->ended(config->user, &ending.record, ending.status);
    job_record_clear(&ending.record);
    wake_all(farewell.waiters);
}

/* ---- admission ---- */

/* RFC 4648 section 6, in lower case and without padding. */
static void write_base32(const uint8_t data[JOB_ID_RANDOM_BYTES], char text[JOB_ID_CHARS + 1])
{
    static const char ALPHABET[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned pending = 0;
    unsigned bits = 0;
    size_t len = 0;

    for (size_t i = 0; i < JOB_ID_RANDOM_BYTES; i++) {
        pending = (pending << 8 | data[i]) & 0xFFF;
        for (bits += 8; bits >= 5; bits -= 5)
            text[len++] = ALPHABET[pending >> (bits - 5) & 31];
    }
    text[len++] = ALPHABET[pending << (5 - bits) & 31];
    assert(len == JOB_ID_CHARS);
    text[len] = '\0';
}

static enum status new_id(char id[JOB_ID_CHARS + 1], struct error *err)
{
    uint8_t random[JOB_ID_RANDOM_BYTES];
    enum status const st = sign_random(random, sizeof random, err);

    if (st == ST_OK)
        write_base32(random, id);
    return st;
}

static void fill_record(struct job_record *record, const struct live_job *live,
                        const struct batch *batch)
{
    const struct text *name = &batch->event.name;

    memcpy(record->id, live->node.id, sizeof record->id);
    memcpy(record->client, live->client, sizeof record->client);
    record->state = JOB_QUEUED;
    record->tickets_total = batch->tickets_count;
    record->tickets_skipped = batch->tickets_skipped;
    record->created_ms = wall_ms_after(0);
    assert(name->len < sizeof record->event_name);
    if (name->len > 0)
        memcpy(record->event_name, name->data, name->len);
}

static enum status live_new(struct job_table *table, const struct job_order *order,
                            const struct batch *batch, struct live_job **live, struct error *err)
{
    struct live_job *made = calloc(1, sizeof *made);
    enum status st;

    assert(strlen(order->client) <= JOB_CLIENT_BYTES_MAX);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a job");
    made->unfetched = calloc(1, sizeof *made->unfetched);
    st = made->unfetched == NULL ? error_set(err, ST_NO_MEMORY, "a job")
                                 : new_id(made->node.id, err);
    if (st != ST_OK) {
        live_free(made);
        return st;
    }
    made->table = table;
    made->tickets = batch->tickets_count;
    snprintf(made->client, sizeof made->client, "%s", order->client);
    fill_record(&made->record, made, batch);
    made->holds = 2;
    *live = made;
    return ST_OK;
}

static void enrol(struct live_job *live, struct job_waiter *waiter)
{
    struct job_table *table = live->table;

    lock(table);
    job_map_add(&table->jobs, &live->node);
    table->jobs_running++;
    if (waiter != NULL)
        attach_locked(live, waiter, true);
    unlock(table);
}

/* Nothing came of it: as if it had never been, but for those who found it in a list and wait. */
static void strike(struct live_job *live, struct job_waiter *waiter)
{
    struct job_table *table = live->table;
    struct farewell farewell;

    lock(table);
    if (waiter != NULL)
        detach_locked(live, waiter);
    farewell = leave_locked(live);
    farewell.is_last = let_go_locked(live);
    unlock(table);
    assert(farewell.is_last && farewell.press_job == NULL);
    live_free(live);
    wake_all(farewell.waiters);
}

/* The press has the job, and may have ended it already. */
static void keep_handle(struct live_job *live, struct press_job *press_job)
{
    struct job_table *table = live->table;
    bool is_last;

    lock(table);
    if (!live->has_ended) {
        live->press_job = press_job;
        press_job = NULL;
        if (live->is_cancelled)
            press_job_cancel(live->press_job);
    }
    is_last = let_go_locked(live);
    unlock(table);
    press_job_release(&press_job);
    if (is_last)
        live_free(live);
}

static enum status submit(struct live_job *live, const struct job_order *order, struct batch *batch,
                          struct problems *problems, struct error *err)
{
    struct press_request const request = {
        .lane = order->lane,
        .client = order->client_key,
        .key = order->key,
        .started = job_started,
        .done = job_done,
        .user = live,
    };
    struct press *press = job_table_press_ref(live->table);
    struct press_job *press_job = NULL;
    enum status const st = press_submit_move(press, &request, batch, &press_job, problems, err);

    if (st == ST_OK)
        keep_handle(live, press_job);
    press_unref(&press);
    return st;
}

/* A job that was put but never promised: should the store fail to remove it, nobody knows its id.
 */
static enum status put_and_submit(struct live_job *live, struct job_order *order,
                                  struct batch *batch, struct problems *problems, struct error *err)
{
    struct job_store *store = store_of(live->table);
    enum status st;

    bytes_move(&live->record.problems, &order->problems);
    st = store->calls->put(store, &live->record, err);
    if (st == ST_OK) {
        st = submit(live, order, batch, problems, err);
        if (st != ST_OK)
            (void)store->calls->remove(store, live->node.id, NULL);
    }
    if (st != ST_OK)
        bytes_move(&order->problems, &live->record.problems);
    return st;
}

enum status job_table_admit_move(struct job_table *table, struct job_order *order,
                                 struct batch *batch, struct job_waiter *waiter,
                                 char id[JOB_ID_CHARS + 1], struct problems *problems,
                                 struct error *err)
{
    size_t const tickets = batch->tickets_count;
    struct live_job *live = NULL;
    enum status st = take_room(table, tickets, 0, err);

    if (st != ST_OK)
        return st;
    st = live_new(table, order, batch, &live, err);
    if (live == NULL) {
        lock(table);
        give_room_locked(table, tickets);
        unlock(table);
        return st;
    }
    memcpy(id, live->node.id, sizeof live->node.id);
    enrol(live, waiter);
    st = put_and_submit(live, order, batch, problems, err);
    if (st != ST_OK)
        strike(live, waiter);
    return st;
}

/* ---- views ---- */

/* What the table knows better than the store; *is_live: anything. */
static enum status overlay(struct job_table *table, struct job_view *view, bool *is_live,
                           struct error *err)
{
    const struct live_job *live;
    struct job_record end = {0};
    enum status st = ST_OK;

    lock(table);
    live = find_locked(table, view->record.id);
    *is_live = live != NULL;
    if (live != NULL && live->is_unsaved)
        st = job_record_copy(&end, &live->record, err);
    if (live != NULL && live->state == JOB_RUNNING) {
        view->record.state = JOB_RUNNING;
        view->record.started_ms = live->started_ms;
    }
    if (live != NULL && live->press_job != NULL)
        view->tickets_done = press_job_tickets_done(live->press_job);
    unlock(table);
    if (job_state_is_end(end.state)) {
        job_record_clear(&view->record);
        view->record = end;
    }
    return st;
}

/* A job is live until the store has its end: when it is not live any more, the store is asked
 * again. On error the view is as the store had it. */
static enum status complete_view(struct job_table *table, struct job_view *view, struct error *err)
{
    struct job_store *store = store_of(table);
    enum status st = ST_OK;

    if (!job_state_is_end(view->record.state)) {
        struct job_record again = {0};
        bool is_live;

        st = overlay(table, view, &is_live, err);
        if (!is_live)
            st = store->calls->get(store, view->record.id, &again, err);
        if (!is_live && st == ST_OK) {
            job_record_clear(&view->record);
            view->record = again;
        }
    }
    if (job_state_is_end(view->record.state))
        view->tickets_done = view->record.tickets_done;
    return st;
}

static void view_clear(struct job_view *view)
{
    job_record_clear(&view->record);
    *view = (struct job_view){0};
}

enum status job_table_view(struct job_table *table, const char *client, const char *id,
                           struct job_view *view, struct error *err)
{
    struct job_store *store = store_of(table);
    enum status st = store->calls->get(store, id, &view->record, err);

    if (st == ST_OK && client != NULL && strcmp(view->record.client, client) != 0)
        st = error_set(err, ST_NOT_FOUND, "no such job");
    if (st == ST_OK)
        st = complete_view(table, view, err);
    if (st != ST_OK)
        view_clear(view);
    return st;
}

enum status job_table_list(struct job_table *table, const struct job_list_query *query,
                           struct job_view *views, size_t *count, struct error *err)
{
    struct job_store *store = store_of(table);
    struct job_record *records = calloc(query->limit, sizeof *records);
    enum status st = records == NULL ? error_set(err, ST_NO_MEMORY, "a list of jobs") : ST_OK;
    size_t found = 0;

    if (st == ST_OK)
        st = store->calls->list(store, query, records, &found, err);
    for (size_t i = 0; i < found; i++)
        views[i].record = records[i];
    free(records);
    for (size_t i = 0; i < found && st == ST_OK; i++) {
        st = complete_view(table, &views[i], err);
        if (st == ST_NOT_FOUND) /* erased by now, but it was there when the list was made */
            st = ST_OK;
    }
    for (size_t i = 0; i < found && st != ST_OK; i++)
        view_clear(&views[i]);
    *count = st == ST_OK ? found : 0;
    return st;
}

bool job_table_was_here(struct job_table *table, const char *client, const char *id)
{
    return store_of(table)->calls->was_here(store_of(table), client, id);
}

/* ---- cancelling and erasing ---- */

static void cancel_locked(struct live_job *live)
{
    live->is_cancelled = true;
    if (live->press_job != NULL)
        press_job_cancel(live->press_job);
}

/* Forget a job that the store did not know the end of. Returns what is to be freed, or NULL. */
static struct live_job *forget_unsaved_locked(struct job_table *table, const char *id)
{
    struct live_job *live = find_locked(table, id);

    if (live == NULL || !live->is_unsaved)
        return NULL;
    job_map_remove(&table->jobs, &live->node);
    table->jobs_unsaved--;
    return let_go_locked(live) ? live : NULL;
}

/* What has ended, or is so far on the way to its end that it cannot be cancelled. */
static enum status erase(struct job_table *table, const char *client, const char *id,
                         struct error *err)
{
    struct job_store *store = store_of(table);
    struct job_record record = {0};
    struct live_job *dead = NULL;
    enum status st = store->calls->get(store, id, &record, err);

    if (st == ST_OK && client != NULL && strcmp(record.client, client) != 0)
        st = error_set(err, ST_NOT_FOUND, "no such job");
    job_record_clear(&record);
    if (st == ST_OK)
        st = store->calls->remove(store, id, err);
    if (st != ST_OK)
        return st;
    lock(table);
    unfetched_drop_locked(table, id);
    dead = forget_unsaved_locked(table, id);
    unlock(table);
    if (dead != NULL)
        live_free(dead);
    return ST_OK;
}

enum status job_table_delete(struct job_table *table, const char *client, const char *id,
                             struct error *err)
{
    struct live_job *live;
    bool is_cancelled = false;

    lock(table);
    live = find_locked(table, id);
    if (live != NULL && (client == NULL || strcmp(live->client, client) == 0)) {
        is_cancelled = !live->is_ending;
        live->is_deleted = live->is_deleted || is_cancelled;
        live->is_erased = live->is_erased || !is_cancelled;
        if (is_cancelled)
            cancel_locked(live);
    }
    unlock(table);
    return is_cancelled ? ST_OK : erase(table, client, id, err);
}

void job_table_drain(struct job_table *table)
{
    lock(table);
    table->is_draining = true;
    unlock(table);
}

void job_table_cancel_all(struct job_table *table)
{
    lock(table);
    for (struct job_node *node = job_map_next(&table->jobs, NULL); node != NULL;
         node = job_map_next(&table->jobs, node))
        cancel_locked(live_from(node));
    unlock(table);
}

/* ---- from time to time ---- */

/* A copy of a job that the store does not know the end of; false: there is none, or no memory. */
static bool copy_unsaved(struct job_table *table, struct job_record *record)
{
    struct job_node *node = NULL;
    bool is_there = false;

    lock(table);
    if (table->jobs_unsaved > 0)
        node = job_map_next(&table->jobs, NULL);
    while (node != NULL && !live_from(node)->is_unsaved)
        node = job_map_next(&table->jobs, node);
    if (node != NULL)
        is_there = job_record_copy(record, &live_from(node)->record, NULL) == ST_OK;
    unlock(table);
    return is_there;
}

/* Returns whether it is worth while to try another one. */
static bool save_unsaved(struct job_table *table)
{
    struct job_store *store = store_of(table);
    struct job_record record = {0};
    struct live_job *dead = NULL;
    char id[JOB_ID_CHARS + 1];
    enum status st;

    if (!copy_unsaved(table, &record))
        return false;
    memcpy(id, record.id, sizeof id);
    st = store->calls->update_move(store, &record, NULL);
    job_record_clear(&record);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return false;
    lock(table);
    dead = forget_unsaved_locked(table, id);
    unlock(table);
    if (dead != NULL)
        live_free(dead);
    return true;
}

void job_table_sweep(struct job_table *table, int64_t now_ms)
{
    store_of(table)->calls->sweep(store_of(table), now_ms);
    lock(table);
    while (table->unfetched_first != NULL &&
           table->unfetched_first->finished_ms <= now_ms - JOB_FETCH_MS)
        unfetched_drop(table, table->unfetched_first);
    unlock(table);
    while (save_unsaved(table))
        continue;
}

struct job_table_status job_table_status(struct job_table *table)
{
    struct job_table_status status;

    lock(table);
    note_load_locked(table);
    status = (struct job_table_status){
        .jobs_running = table->jobs_running,
        .jobs_unsaved = table->jobs_unsaved,
        .documents_unfetched = table->unfetched.count,
        .tickets_queued = table->tickets_queued,
        .tickets_max = table->tickets_max,
        .tickets_per_s = rate_locked(table),
        .waiters = table->waiters,
    };
    unlock(table);
    return status;
}

/* The first of the map are as good a sample as any: ids are random. */
static void sample_jobs_locked(const struct job_table *table, struct drain_forecast *forecast)
{
    for (struct job_node *node = job_map_next(&table->jobs, NULL);
         node != NULL && forecast->jobs_count < DRAIN_JOBS_MAX;
         node = job_map_next(&table->jobs, node)) {
        const struct live_job *live = live_from(node);
        size_t const done = live->press_job != NULL ? press_job_tickets_done(live->press_job) : 0;

        if (!live->has_ended)
            forecast->jobs[forecast->jobs_count++] =
                (struct drain_job){.tickets_left = live->tickets - done, .tickets = live->tickets};
    }
}

unsigned job_table_retry_after_s(struct job_table *table, size_t tickets)
{
    struct drain_forecast forecast = {0};
    size_t needed;

    lock(table);
    note_load_locked(table);
    needed = tickets < table->tickets_max ? tickets : table->tickets_max;
    needed = needed > table->tickets_max - table->tickets_queued
                 ? needed - (table->tickets_max - table->tickets_queued)
                 : 0;
    forecast.jobs_all = table->jobs_running;
    forecast.tickets_ahead = table->tickets_reserved;
    forecast.slice_tickets = press_slice_tickets(table->press);
    forecast.tickets_per_s = rate_locked(table);
    sample_jobs_locked(table, &forecast);
    unlock(table);
    return drain_wait_s(&forecast, needed);
}
