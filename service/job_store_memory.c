#include "domain/must.h"
#include "service/job_map.h"
#include "service/job_store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_CAPACITY_MIN = 1024,
    SWEEP_JOBS = 256, /* that go under one hold of the lock */
};

struct kept {
    struct job_node node; /* first: a job is found again by it */
    struct job_record record;
    struct kept *next, *prev; /* of the finished ones; next: also of those to be freed */
};

struct kept_list {
    struct kept *first, *last;
};

/* What a list looks at: one a job, by rising number, close together in memory. */
struct row {
    uint64_t number;
    uint64_t client_hash;
    struct kept *kept; /* NULL: the job is gone */
    enum job_state state;
};

struct gone {
    struct job_node node; /* first, likewise */
    char client[JOB_CLIENT_BYTES_MAX + 1];
    int64_t until_ms;
    struct gone *next; /* that went after this one */
};

struct memory_store {
    struct job_store store; /* first: the kind is found again by it */
    struct job_store_limits limits;
    pthread_mutex_t mutex; /* guards the rest */
    struct job_map jobs;   /* struct kept */
    struct row *rows;      /* rows_count of them */
    size_t rows_count, rows_capacity;
    struct kept_list finished; /* by rising expires_ms */
    size_t documents_bytes;
    uint64_t number_last;
    struct job_map gone; /* struct gone */
    struct gone *gone_first, *gone_last;
};

static struct memory_store *memory_from(struct job_store *store)
{
    return (struct memory_store *)(void *)store;
}

static struct kept *kept_from(struct job_node *node)
{
    return (struct kept *)(void *)node;
}

static void lock(struct memory_store *store)
{
    MUST(pthread_mutex_lock(&store->mutex));
}

static void unlock(struct memory_store *store)
{
    MUST(pthread_mutex_unlock(&store->mutex));
}

static size_t document_bytes(const struct job_record *record)
{
    return record->document != NULL ? record->document->bytes.len : 0;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* ---- rows ---- */

/* The first row whose number is not below this one. */
static size_t rows_seek(const struct memory_store *store, uint64_t number)
{
    size_t low = 0;
    size_t high = store->rows_count;

    while (low < high) {
        size_t const middle = low + (high - low) / 2;

        if (store->rows[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct row *row_of(const struct memory_store *store, const struct kept *kept)
{
    struct row *row = &store->rows[rows_seek(store, kept->record.number)];

    assert(row->kept == kept);
    return row;
}

static void rows_compact(struct memory_store *store)
{
    size_t count = 0;

    for (size_t i = 0; i < store->rows_count; i++)
        if (store->rows[i].kept != NULL)
            store->rows[count++] = store->rows[i];
    store->rows_count = count;
}

/* Room for one more: by forgetting the rows of jobs that went when they are half of all, else by
 * doubling. */
static enum status rows_reserve(struct memory_store *store, struct error *err)
{
    size_t const capacity =
        store->rows_capacity == 0 ? ROWS_CAPACITY_MIN : 2 * store->rows_capacity;
    struct row *rows;

    if (store->rows_count < store->rows_capacity)
        return ST_OK;
    if (store->rows_count > 0 && store->jobs.count <= store->rows_count / 2) {
        rows_compact(store);
        return ST_OK;
    }
    rows = realloc(store->rows, capacity * sizeof *rows);
    if (rows == NULL)
        return error_set(err, ST_NO_MEMORY, "a list of %zu jobs", capacity);
    store->rows = rows;
    store->rows_capacity = capacity;
    return ST_OK;
}

/* ---- finished jobs ---- */

/* Nearly always the last: they finish in the order in which they expire, unless the clock was set
 * back. */
static void finished_add(struct memory_store *store, struct kept *kept)
{
    struct kept_list *list = &store->finished;
    struct kept *before = list->last;

    while (before != NULL && before->record.expires_ms > kept->record.expires_ms)
        before = before->prev;
    kept->prev = before;
    kept->next = before != NULL ? before->next : list->first;
    *(kept->prev != NULL ? &kept->prev->next : &list->first) = kept;
    *(kept->next != NULL ? &kept->next->prev : &list->last) = kept;
}

static void finished_remove(struct memory_store *store, struct kept *kept)
{
    struct kept_list *list = &store->finished;

    *(kept->prev != NULL ? &kept->prev->next : &list->first) = kept->next;
    *(kept->next != NULL ? &kept->next->prev : &list->last) = kept->prev;
    kept->next = kept->prev = NULL;
}

/* ---- jobs that went ---- */

static void forget_first(struct memory_store *store)
{
    struct gone *gone = store->gone_first;

    store->gone_first = gone->next;
    if (store->gone_first == NULL)
        store->gone_last = NULL;
    job_map_remove(&store->gone, &gone->node);
    free(gone);
}

/* Without memory it is not remembered, and found no more, as a job that never was. */
static void remember(struct memory_store *store, const struct job_record *record)
{
    struct gone *gone = calloc(1, sizeof *gone);

    if (gone == NULL)
        return;
    memcpy(gone->node.id, record->id, sizeof gone->node.id);
    memcpy(gone->client, record->client, sizeof gone->client);
    gone->until_ms = record->expires_ms + store->limits.gone_ttl_ms;
    job_map_add(&store->gone, &gone->node);
    *(store->gone_last != NULL ? &store->gone_last->next : &store->gone_first) = gone;
    store->gone_last = gone;
    if (store->gone.count > JOB_GONE_MAX)
        forget_first(store);
}

/* Take a job out of everything, onto the list of those that are freed outside of the lock. */
static void bury(struct memory_store *store, struct kept *kept, struct kept **dead)
{
    row_of(store, kept)->kept = NULL;
    job_map_remove(&store->jobs, &kept->node);
    if (job_state_is_end(kept->record.state))
        finished_remove(store, kept);
    store->documents_bytes -= document_bytes(&kept->record);
    kept->next = *dead;
    *dead = kept;
}

static void bury_oldest(struct memory_store *store, struct kept **dead)
{
    struct kept *oldest = store->finished.first;

    bury(store, oldest, dead);
    remember(store, &oldest->record);
}

static void free_dead(struct kept *dead)
{
    while (dead != NULL) {
        struct kept *next = dead->next;

        job_record_clear(&dead->record);
        free(dead);
        dead = next;
    }
}

/* ---- the calls ---- */

static enum status kept_new(const struct job_record *record, struct kept **kept, struct error *err)
{
    struct kept *made = calloc(1, sizeof *made);
    enum status st = made == NULL ? error_set(err, ST_NO_MEMORY, "a job")
                                  : job_record_copy(&made->record, record, err);

    if (st != ST_OK) {
        free(made);
        return st;
    }
    memcpy(made->node.id, record->id, sizeof made->node.id);
    *kept = made;
    return ST_OK;
}

static void enrol_locked(struct memory_store *store, struct kept *kept)
{
    kept->record.number = ++store->number_last;
    store->rows[store->rows_count++] = (struct row){.number = kept->record.number,
                                                    .client_hash = hash_text(kept->record.client),
                                                    .kept = kept,
                                                    .state = kept->record.state};
    job_map_add(&store->jobs, &kept->node);
}

static enum status memory_put(struct job_store *base, struct job_record *record, struct error *err)
{
    struct memory_store *store = memory_from(base);
    struct kept *kept = NULL;
    struct kept *dead = NULL;
    enum status st = kept_new(record, &kept, err);

    assert(!job_state_is_end(record->state) && record->document == NULL);
    if (st != ST_OK)
        return st;
    lock(store);
    st = rows_reserve(store, err);
    if (st == ST_OK && store->jobs.count >= store->limits.jobs_max) {
        if (store->finished.first != NULL)
            bury_oldest(store, &dead);
        else
            st = error_set(err, ST_BUSY, "store-jobs-max: %zu jobs are kept and none has ended",
                           store->jobs.count);
    }
    if (st == ST_OK) {
        enrol_locked(store, kept);
        record->number = kept->record.number;
    } else {
        dead = kept;
    }
    unlock(store);
    free_dead(dead);
    return st;
}

static void update_locked(struct memory_store *store, struct kept *kept, struct job_record *record,
                          struct kept **dead)
{
    struct job_record const before = kept->record;

    if (job_state_is_end(before.state))
        finished_remove(store, kept);
    store->documents_bytes -= document_bytes(&before);
    while (store->documents_bytes + document_bytes(record) > store->limits.documents_bytes_max)
        bury_oldest(store, dead);
    store->documents_bytes += document_bytes(record);
    kept->record = *record;
    kept->record.number = before.number;
    row_of(store, kept)->state = record->state;
    if (job_state_is_end(record->state))
        finished_add(store, kept);
    *record = before;
}

static enum status memory_update_move(struct job_store *base, struct job_record *record,
                                      struct error *err)
{
    struct memory_store *store = memory_from(base);
    struct job_node *node;
    struct kept *dead = NULL;

    assert(record->document == NULL || record->state == JOB_SUCCEEDED);
    if (document_bytes(record) > store->limits.documents_bytes_max)
        return error_set(err, ST_TOO_LARGE, "store-bytes-max: a document of %zu bytes",
                         document_bytes(record));
    lock(store);
    node = job_map_find(&store->jobs, record->id);
    if (node != NULL)
        update_locked(store, kept_from(node), record, &dead);
    unlock(store);
    if (node == NULL)
        return error_set(err, ST_NOT_FOUND, "no such job");
    job_record_clear(record); /* what was there before */
    free_dead(dead);
    return ST_OK;
}

static enum status memory_get(struct job_store *base, const char *id, struct job_record *record,
                              struct error *err)
{
    struct memory_store *store = memory_from(base);
    struct job_node *node;
    enum status st;

    lock(store);
    node = job_map_find(&store->jobs, id);
    st = node != NULL ? job_record_copy(record, &kept_from(node)->record, err)
                      : error_set(err, ST_NOT_FOUND, "no such job");
    unlock(store);
    return st;
}

static bool is_wanted(const struct row *row, const struct job_list_query *query,
                      uint64_t client_hash)
{
    return row->kept != NULL && (query->state < 0 || query->state == (int)row->state) &&
           (query->client == NULL || (row->client_hash == client_hash &&
                                      strcmp(row->kept->record.client, query->client) == 0));
}

/* The newest job before `before` that is asked for; *is_there: there is one. */
static enum status copy_next(struct memory_store *store, const struct job_list_query *query,
                             uint64_t before, struct job_record *record, bool *is_there,
                             struct error *err)
{
    uint64_t const client_hash = query->client != NULL ? hash_text(query->client) : 0;
    enum status st = ST_OK;
    size_t row;

    lock(store);
    row = rows_seek(store, before);
    while (row > 0 && !is_wanted(&store->rows[row - 1], query, client_hash))
        row--;
    *is_there = row > 0;
    if (row > 0)
        st = job_record_copy(record, &store->rows[row - 1].kept->record, err);
    unlock(store);
    return st;
}

/* The lock is held for one copy at a time: a hundred records may be megabytes. */
static enum status memory_list(struct job_store *base, const struct job_list_query *query,
                               struct job_record *records, size_t *count, struct error *err)
{
    uint64_t before = query->before;
    bool is_there = true;
    size_t copied = 0;
    enum status st = ST_OK;

    assert(query->limit >= 1 && query->limit <= JOB_LIST_MAX);
    while (copied < query->limit && st == ST_OK) {
        st = copy_next(memory_from(base), query, before, &records[copied], &is_there, err);
        if (st != ST_OK || !is_there)
            break;
        before = records[copied++].number;
    }
    while (st != ST_OK && copied > 0)
        job_record_clear(&records[--copied]);
    *count = copied;
    return st;
}

static enum status memory_remove(struct job_store *base, const char *id, struct error *err)
{
    struct memory_store *store = memory_from(base);
    struct kept *dead = NULL;
    struct job_node *node;

    lock(store);
    node = job_map_find(&store->jobs, id);
    if (node != NULL)
        bury(store, kept_from(node), &dead);
    unlock(store);
    free_dead(dead);
    return node != NULL ? ST_OK : error_set(err, ST_NOT_FOUND, "no such job");
}

static void memory_sweep(struct job_store *base, int64_t now_ms)
{
    struct memory_store *store = memory_from(base);
    size_t count;

    do {
        struct kept *dead = NULL;

        lock(store);
        for (count = 0; count < SWEEP_JOBS && store->finished.first != NULL &&
                        store->finished.first->record.expires_ms <= now_ms;
             count++)
            bury_oldest(store, &dead);
        for (; count < SWEEP_JOBS && store->gone_first != NULL &&
               store->gone_first->until_ms <= now_ms;
             count++)
            forget_first(store);
        unlock(store);
        free_dead(dead);
    } while (count == SWEEP_JOBS);
}

static bool memory_was_here(struct job_store *base, const char *client, const char *id)
{
    struct memory_store *store = memory_from(base);
    const struct gone *gone;
    bool was_here;

    lock(store);
    gone = (const struct gone *)(const void *)job_map_find(&store->gone, id);
    was_here = gone != NULL && (client == NULL || strcmp(gone->client, client) == 0);
    unlock(store);
    return was_here;
}

static void memory_close(struct job_store **base)
{
    struct memory_store *store;

    if (*base == NULL)
        return;
    store = memory_from(*base);
    for (size_t i = 0; i < store->rows_count; i++) {
        if (store->rows[i].kept != NULL) {
            store->rows[i].kept->next = NULL;
            free_dead(store->rows[i].kept);
        }
    }
    while (store->gone_first != NULL)
        forget_first(store);
    free(store->rows);
    job_map_clear(&store->jobs);
    job_map_clear(&store->gone);
    MUST(pthread_mutex_destroy(&store->mutex));
    free(store);
    *base = NULL;
}

static const struct job_store_calls MEMORY_CALLS = {
    .put = memory_put,
    .update_move = memory_update_move,
    .get = memory_get,
    .list = memory_list,
    .remove = memory_remove,
    .sweep = memory_sweep,
    .was_here = memory_was_here,
    .close = memory_close,
};

enum status job_store_memory_open(const struct job_store_limits *limits, struct job_store **store,
                                  struct error *err)
{
    struct memory_store *made = calloc(1, sizeof *made);
    enum status st;

    assert(limits->jobs_max >= 1 && limits->documents_bytes_max >= 1 && limits->gone_ttl_ms >= 0);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a store of jobs");
    made->store.calls = &MEMORY_CALLS;
    made->limits = *limits;
    st = job_map_init(&made->jobs, err);
    if (st == ST_OK)
        st = job_map_init(&made->gone, err);
    if (st != ST_OK) {
        job_map_clear(&made->jobs);
        free(made);
        return st;
    }
    MUST(pthread_mutex_init(&made->mutex, NULL));
    *store = &made->store;
    return ST_OK;
}
