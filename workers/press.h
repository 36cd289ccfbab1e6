/*
 * The press: a batch in, one document out, on the pool's threads. The batch is cut into slices of
 * tickets; each slice is one task (sign, encode the symbol, lay out, compress); the task behind the
 * last slice binds their pages into the document. Which thread did what never shows in the bytes.
 *
 * Pages are in the order of the batch. Where a layout has several tickets to a sheet, neighbours of
 * that layout fill it cell by cell; another layout begins a new page. Layouts are mirrored for a
 * batch whose locale is written from right to left.
 */
#ifndef TICKETPRESS_WORKERS_PRESS_H
#define TICKETPRESS_WORKERS_PRESS_H

#include "domain/batch.h"
#include "domain/labels.h"
#include "domain/layout.h"
#include "domain/problems.h"
#include "workers/document.h"
#include "workers/font.h"
#include "workers/image.h"
#include "workers/pool.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PRESS_LAYOUTS_MAX = 64,
    PRESS_SLICE_TICKETS_MAX = 1000,
};

/* A worker's own tools, as pool_config's context_new and context_free make them; their user is the
 * struct font_set. */
enum status press_worker_new(void *fonts, void **worker, struct error *err);
void press_worker_free(void *fonts, void **worker);

/* Judge a token with a worker's own signer: see signer_verify_by_store. */
MUST_USE enum status press_worker_verify(void *worker, struct key_store *store, const char *client,
                                         const char *text, size_t len, int64_t now_s,
                                         enum token_verdict *verdict, struct token_claims *claims,
                                         struct error *err);

/* Counted, since jobs keep the press that accepted them, with its layouts, when another takes over.
 */
struct press;

/* Borrowed as long as the press lives, but for the layouts. */
struct press_config {
    struct pool *pool; /* with the worker functions above */
    const struct font_set *fonts;
    const struct label_set *labels;
    size_t slice_tickets; /* 1..PRESS_SLICE_TICKETS_MAX */
};

/* A layout with what goes with it. */
struct press_layout {
    struct layout layout;
    struct image *images;       /* layout.images_count of them, in its order; NULL: it has none */
    uint8_t hash[SHA256_BYTES]; /* of its content, and of its images' files: not of where it was,
                                   how its text was spaced, or what stood in it in which order */
    bool is_built_in;
};
void press_layout_clear(struct press_layout *layout);

/* The layouts of a press. */
struct layout_list {
    struct press_layout layouts[PRESS_LAYOUTS_MAX]; /* count of them, names all different */
    size_t count;                                   /* 1.. */
};
void layout_list_clear(struct layout_list *list);

/* A press with one reference; *layouts is moved (left zeroed) on success. Errors: ST_NO_MEMORY,
 * ST_LIBRARY; *layouts is untouched. */
MUST_USE enum status press_new_move(const struct press_config *config, struct layout_list *layouts,
                                    struct press **press, struct error *err);

/* One more reference. Returns its argument. Threads: any. */
struct press *press_ref(struct press *press);

/* Drop a reference and NULL it; the last one frees. NULL inside is fine. A job holds one until it
 * has ended and its hung threads, if any, have come back. Threads: any. */
void press_unref(struct press **press);

/* How a job ended. */
struct press_result {
    enum status status;              /* ST_OK: there is a document */
    struct error error;              /* empty when ST_OK */
    const struct document *document; /* one reference, the receiver's */
    struct problems problems;        /* the receiver's; also with ST_OK, such as missing glyphs */
    size_t tickets_done;             /* of which the pages were finished */
};
void press_result_clear(struct press_result *result);

struct press_request {
    enum pool_lane lane;
    uint64_t client;      /* round-robin key */
    struct event_key key; /* what this batch is signed with; copied */

    /* NULL, or called on a worker when the first ticket is taken up: at most once, and it has
     * returned before done is called. It must be brief. */
    void (*started)(void *user);

    /* The end of the job, exactly once, on a worker or the pool's watchdog. The receiver moves out
     * what it keeps and clears the rest. It may submit, cancel and release. */
    void (*done)(void *user, struct press_result *result);
    void *user;
};

/*
 * Whether all layouts of a batch are known: the same answer that submitting it would give.
 *
 * Out:     problems  each unknown layout, with its pointer
 * Errors:  ST_INVALID
 * Threads: any
 */
MUST_USE enum status press_check_layouts(const struct press *press, const struct batch *batch,
                                         struct problems *problems, struct error *err);

/* Its layouts, borrowed as long as the press lives. Threads: any. */
const struct layout_list *press_layouts(const struct press *press);
/* The one of a name, likewise; NULL: none. */
const struct press_layout *press_layout_find(const struct press *press, struct text name);

struct press_job;

/*
 * Accept a batch.
 *
 * In:      batch  as batch_read made it; moved (left zeroed) on success
 * Out:     job    a handle to watch and cancel with, to be released; the job does not depend on it
 *          problems  an unknown layout, with its pointer
 * Errors:  ST_INVALID    a layout is not known
 *          ST_TOO_LARGE  more slices than the pool's queue will ever hold
 *          ST_BUSY       the pool's queue is full or it stops
 *          ST_NO_MEMORY  *batch is untouched and done is not called, in each case
 * Threads: any
 */
MUST_USE enum status press_submit_move(struct press *press, const struct press_request *request,
                                       struct batch *batch, struct press_job **job,
                                       struct problems *problems, struct error *err);

/*
 * Print a whole batch inside a task that runs already, on its thread: the short way for a single
 * ticket.
 *
 * In:      task    the caller's own, whose deadline and cancellation count
 *          worker  its context, as press_worker_new made it
 *          key     what the batch is signed with
 *          batch   moved (left zeroed) unless a layout is unknown or there is no memory for a job
 * Out:     result  as the done callback gets it; its status is the function's
 *          problems  an unknown layout, with its pointer
 */
enum status press_print(struct press *press, const struct task *task, void *worker,
                        const struct event_key *key, struct batch *batch,
                        struct press_result *result, struct problems *problems);

/* Tickets whose pages are finished. Threads: any. */
size_t press_job_tickets_done(const struct press_job *job);

/* Ask the job to end at the next ticket; no effect once it has ended. Threads: any. */
void press_job_cancel(struct press_job *job);

/* Let the handle go and NULL it. Threads: any. */
void press_job_release(struct press_job **job);

/* Tickets whose pages were finished, of all jobs since the start. Threads: any. */
uint64_t press_tickets_done(const struct press *press);

/* Tickets that all threads would print in a second if they did nothing else, by the time it has
 * taken so far; 0: none was printed. Threads: any. */
double press_tickets_per_s(const struct press *press);

/* Tickets that a job has done when its turn passes to the next one. */
size_t press_slice_tickets(const struct press *press);

#endif
