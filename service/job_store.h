/*
 * Where jobs live: one small interface, several kinds. A store keeps records and what belongs to
 * them, and decides nothing; service/job_table does that. What put() or update_move() has returned
 * ST_OK for is as durable as the kind can make it.
 *
 * All calls may come from any thread, but close, which must be the last.
 */
#ifndef TICKETPRESS_SERVICE_JOB_STORE_H
#define TICKETPRESS_SERVICE_JOB_STORE_H

#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOB_ID_CHARS =
        26, /* base32 (RFC 4648 section 6, lower case) of 128 random bits and two zero bits */
    JOB_CLIENT_BYTES_MAX = 64,
    JOB_LIST_MAX = 100,
    JOB_GONE_MAX = 100000, /* jobs that are remembered after they went; the newest stay */
};

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_SUCCEEDED, JOB_FAILED, JOB_CANCELLED, JOB_STATES };

/* The name of a state in the API, such as "queued". */
const char *job_state_name(enum job_state state);

static inline bool job_state_is_end(enum job_state state)
{
    return state >= JOB_SUCCEEDED;
}

/* Plain data but for the counted document; times are milliseconds since 1970, 0 while they have not
 * come. */
struct job_record {
    char id[JOB_ID_CHARS + 1];
    char client[JOB_CLIENT_BYTES_MAX + 1];
    uint64_t number; /* rises with each job of this store: the order of lists */
    enum job_state state;
    enum status failure; /* JOB_FAILED: why; else ST_OK */
    size_t tickets_total, tickets_skipped;
    size_t tickets_done; /* at its end; 0 before */
    int64_t created_ms, started_ms, finished_ms;
    int64_t expires_ms;              /* 0 before its end */
    struct bytes problems;           /* JSON text of the array of problems; empty: none */
    char event_name[4 * 300 + 1];    /* for the name of a download */
    const struct document *document; /* JOB_SUCCEEDED; one reference */
};

/* Free and unreference what the record holds; it is left zeroed. */
void job_record_clear(struct job_record *record);

/* dst, which must be zeroed, becomes a copy with a reference of its own. Errors: ST_NO_MEMORY, dst
 * is left zeroed. */
MUST_USE enum status job_record_copy(struct job_record *dst, const struct job_record *src,
                                     struct error *err);

struct job_list_query {
    const char *client; /* NULL: every client's */
    int state;          /* enum job_state; -1: any */
    uint64_t before;    /* only numbers below this; UINT64_MAX: from the newest */
    size_t limit;       /* 1..JOB_LIST_MAX */
};

struct job_store;

struct job_store_calls {
    /* A new job, with an id that the store does not know and no end. The store keeps a copy; it
     * sets record->number. When jobs_max is reached, the oldest finished job goes. Errors: ST_BUSY
     * (nothing finished can go), ST_IO, ST_NO_MEMORY */
    enum status (*put)(struct job_store *store, struct job_record *record, struct error *err);
    /* Another state of a job that is there; *record is moved (left zeroed) on success, untouched on
     * error; its number stays. When documents_bytes_max would be passed, the oldest finished jobs
     * go. Errors: ST_NOT_FOUND, ST_TOO_LARGE (the document alone is over documents_bytes_max),
     * ST_IO, ST_NO_MEMORY */
    enum status (*update_move)(struct job_store *store, struct job_record *record,
                               struct error *err);
    /* A copy into *record, which must be zeroed. Errors: ST_NOT_FOUND (id may be any text),
     * ST_NO_MEMORY, ST_IO; *record is left zeroed */
    enum status (*get)(struct job_store *store, const char *id, struct job_record *record,
                       struct error *err);
    /* Copies, newest first; *count of them in records, which has room for query->limit, zeroed.
     * Less than limit only if there are no more. Errors: ST_NO_MEMORY, ST_IO; *count is 0 and
     * records are left zeroed */
    enum status (*list)(struct job_store *store, const struct job_list_query *query,
                        struct job_record *records, size_t *count, struct error *err);
    /* Erase a job with all that belongs to it, and do not remember it. Errors: ST_NOT_FOUND, ST_IO
     */
    enum status (*remove)(struct job_store *store, const char *id, struct error *err);
    /* Erase what has expired by now. What was there, or had to make room, is remembered until
     * gone_ttl_ms after its expires_ms. */
    void (*sweep)(struct job_store *store, int64_t now_ms);
    /* Whether such a job of this client is remembered; client NULL: of any. */
    bool (*was_here)(struct job_store *store, const char *client, const char *id);
    void (*close)(struct job_store **store);
};

struct job_store {
    const struct job_store_calls *calls;
};

/* The oldest finished job is the one that expires first. */
struct job_store_limits {
    size_t jobs_max;            /* kept at once; 1.. */
    size_t documents_bytes_max; /* of their documents' bytes in all; 1.. */
    int64_t gone_ttl_ms;        /* 0.. */
};

/* The kind that keeps nothing beyond the process. Errors: ST_NO_MEMORY. */
MUST_USE enum status job_store_memory_open(const struct job_store_limits *limits,
                                           struct job_store **store, struct error *err);

#endif
