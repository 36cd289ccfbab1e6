#include "workers/press.h"

#include "domain/must.h"
#include "workers/deflate.h"
#include "workers/locale.h"
#include "workers/page.h"
#include "workers/pdf.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- a worker's tools ---- */

struct press_worker {
    struct signer *signer;
    struct page_writer *writer;
    struct deflater *deflater;
    struct bytes content; /* one ticket or static part, before it is compressed */
    struct bytes before;  /* likewise what comes before it */
};

enum status press_worker_new(void *fonts, void **worker, struct error *err)
{
    struct press_worker *made = calloc(1, sizeof *made);
    enum status st = made == NULL ? error_set(err, ST_NO_MEMORY, "a worker") : ST_OK;

    if (st == ST_OK)
        st = signer_new(&made->signer, err);
    if (st == ST_OK)
        st = page_writer_new(fonts, &made->writer, err);
    if (st == ST_OK)
        st = deflater_new(&made->deflater, err);
    *worker = made;
    if (st != ST_OK)
        press_worker_free(fonts, worker);
    return st;
}

void press_worker_free(void *fonts, void **worker)
{
    struct press_worker *from = *worker;

    (void)fonts;
    if (from == NULL)
        return;
    signer_free(&from->signer);
    page_writer_free(&from->writer);
    deflater_free(&from->deflater);
    bytes_clear(&from->content);
    bytes_clear(&from->before);
    free(from);
    *worker = NULL;
}

enum status press_worker_verify(void *worker, struct key_store *store, const char *client,
                                const char *text, size_t len, int64_t now_s,
                                enum token_verdict *verdict, struct token_claims *claims,
                                struct error *err)
{
    struct press_worker *from = worker;

    return signer_verify_by_store(from->signer, store, client, text, len, now_s, verdict, claims,
                                  err);
}

/* ---- the press ---- */

struct press {
    atomic_size_t references;
    struct press_config config;
    size_t threads; /* of the pool */
    struct layout_list layouts;
    struct pdf_profile *profile;
    struct page_plan *plans[PRESS_LAYOUTS_MAX][PAGE_DIRECTIONS];
    atomic_uint_least64_t tickets_done;
    atomic_uint_least64_t tickets_timed, timed_us; /* of slices that were printed to their end */
};

void press_layout_clear(struct press_layout *layout)
{
    for (size_t i = 0; layout->images != NULL && i < layout->layout.images_count; i++)
        image_clear(&layout->images[i]);
    free(layout->images);
    layout_clear(&layout->layout);
    *layout = (struct press_layout){0};
}

void layout_list_clear(struct layout_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        press_layout_clear(&list->layouts[i]);
    *list = (struct layout_list){0};
}

static void press_free(struct press *press)
{
    for (size_t i = 0; i < PRESS_LAYOUTS_MAX; i++)
        for (int direction = 0; direction < PAGE_DIRECTIONS; direction++)
            page_plan_free(&press->plans[i][direction]);
    pdf_profile_free(&press->profile);
    layout_list_clear(&press->layouts);
    free(press);
}

/* Every image has a name of its own, whichever layouts are in one document. */
static size_t image_name(size_t layout, size_t image)
{
    return layout * LAYOUT_IMAGES_MAX + image;
}

static enum status make_plans(struct press *press, struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < press->layouts.count; i++) {
        const struct press_layout *from = &press->layouts.layouts[i];
        struct page_images const images = {from->images, image_name(i, 0)};

        for (int direction = 0; direction < PAGE_DIRECTIONS && st == ST_OK; direction++)
            st = page_plan_new(&from->layout, press->config.fonts, images,
                               (enum page_direction)direction, &press->plans[i][direction], err);
    }
    return st;
}

enum status press_new_move(const struct press_config *config, struct layout_list *layouts,
                           struct press **press, struct error *err)
{
    struct press *made = calloc(1, sizeof *made);
    enum status st;

    assert(layouts->count >= 1 && layouts->count <= PRESS_LAYOUTS_MAX);
    assert(config->slice_tickets >= 1 && config->slice_tickets <= PRESS_SLICE_TICKETS_MAX);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the press");
    atomic_init(&made->references, 1);
    made->config = *config;
    made->threads = pool_status(config->pool).threads;
    made->layouts = *layouts;
    st = pdf_profile_new(&made->profile, err);
    if (st == ST_OK)
        st = make_plans(made, err);
    if (st == ST_OK) {
        *layouts = (struct layout_list){0};
        *press = made;
    } else {
        made->layouts = (struct layout_list){0}; /* still the caller's */
        press_free(made);
    }
    return st;
}

struct press *press_ref(struct press *press)
{
    size_t const before = atomic_fetch_add_explicit(&press->references, 1, memory_order_relaxed);

    assert(before > 0);
    return press;
}

void press_unref(struct press **press)
{
    if (*press != NULL &&
        atomic_fetch_sub_explicit(&(*press)->references, 1, memory_order_acq_rel) == 1)
        press_free(*press);
    *press = NULL;
}

void press_result_clear(struct press_result *result)
{
    document_unref(&result->document);
    problems_clear(&result->problems);
    *result = (struct press_result){0};
}

/* ---- jobs ---- */

/* A run of neighbouring tickets, and their finished pages. */
struct slice {
    struct task task; /* first: a slice is found again by its task */
    struct press_job *job;
    size_t index;             /* in the job */
    size_t first, count;      /* tickets */
    struct bytes pages;       /* compressed contents, one behind the other */
    size_t *ends;             /* count of them: where each content ends in pages */
    struct bytes tokens;      /* one behind the other */
    size_t *token_ends;       /* count of them */
    struct glyph_set *glyphs; /* one a face */
    struct readings readings;
    struct problems *problems; /* NULL when there are none */
};

/* Where a ticket stands. */
struct place {
    size_t page;     /* 0.. */
    uint32_t cell;   /* of its sheet */
    uint32_t layout; /* index into the press's layouts */
};

struct press_job {
    struct task bind;          /* first, likewise */
    const struct task *runner; /* the task that does all the work; NULL: slices and bind do */
    struct press *press;
    struct press_request request;
    struct batch batch;
    enum page_direction direction;
    struct place *places; /* one a ticket */
    size_t pages_count;
    struct task_group group;
    struct task **parts; /* the slices' tasks */
    struct slice *slices;
    size_t slices_count;
    atomic_size_t tickets_done;

    /* Who still needs this memory: the job itself until it ends, the handle, and each task whose
     * thread was given up. The last one to let go frees it. */
    atomic_size_t holds;

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t told;   /* is_telling has become false */
    bool has_started;
    bool is_telling; /* started() is being called */
    bool has_ended;
    enum status failure; /* of the first slice that failed, by its index; ST_OK: none */
    struct error failure_error;
    size_t failure_slice;

    const struct document *document; /* the bind's own, until the job ends */
    struct problems problems;        /* likewise */
};

static void slice_clear(struct slice *slice, size_t faces_count)
{
    bytes_clear(&slice->pages);
    bytes_clear(&slice->tokens);
    free(slice->ends);
    free(slice->token_ends);
    for (size_t face = 0; face < faces_count && slice->glyphs != NULL; face++)
        glyph_set_clear(&slice->glyphs[face]);
    free(slice->glyphs);
    readings_clear(&slice->readings);
    if (slice->problems != NULL)
        problems_clear(slice->problems);
    free(slice->problems);
}

static void job_free(struct press_job *job)
{
    size_t const faces_count = font_set_faces_count(job->press->config.fonts);

    for (size_t i = 0; i < job->slices_count && job->slices != NULL; i++)
        slice_clear(&job->slices[i], faces_count);
    free(job->slices);
    free(job->parts);
    free(job->places);
    batch_clear(&job->batch);
    event_key_clear(&job->request.key);
    document_unref(&job->document);
    problems_clear(&job->problems);
    MUST(pthread_cond_destroy(&job->told));
    MUST(pthread_mutex_destroy(&job->mutex));
    press_unref(&job->press);
    free(job);
}

static void job_hold(struct press_job *job)
{
    atomic_fetch_add_explicit(&job->holds, 1, memory_order_relaxed);
}

static void job_let_go(struct press_job *job)
{
    if (atomic_fetch_sub_explicit(&job->holds, 1, memory_order_acq_rel) == 1)
        job_free(job);
}

/* ---- glyphs ---- */

static enum status glyph_sets_new(const struct font_set *fonts, struct glyph_set **sets,
                                  struct error *err)
{
    size_t const faces_count = font_set_faces_count(fonts);
    enum status st = ST_OK;

    *sets = calloc(faces_count, sizeof **sets);
    if (*sets == NULL)
        return error_set(err, ST_NO_MEMORY, "sets of glyphs");
    for (size_t face = 0; face < faces_count && st == ST_OK; face++)
        st = glyph_set_init(&(*sets)[face], fonts, face, err);
    return st;
}

static void glyph_sets_free(const struct font_set *fonts, struct glyph_set **sets)
{
    for (size_t face = 0; face < font_set_faces_count(fonts) && *sets != NULL; face++)
        glyph_set_clear(&(*sets)[face]);
    free(*sets);
    *sets = NULL;
}

/* ---- layouts ---- */

static bool text_equals(struct text a, struct text b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* The index of a layout by name; layouts_count when there is none. */
static size_t find_layout(const struct press *press, struct text name)
{
    size_t i = 0;

    while (i < press->layouts.count && !text_equals(press->layouts.layouts[i].layout.name, name))
        i++;
    return i;
}

static const struct page_plan *plan_of(const struct press_job *job, size_t layout)
{
    return job->press->plans[layout][job->direction];
}

const struct layout_list *press_layouts(const struct press *press)
{
    return &press->layouts;
}

const struct press_layout *press_layout_find(const struct press *press, struct text name)
{
    size_t const i = find_layout(press, name);

    return i < press->layouts.count ? &press->layouts.layouts[i] : NULL;
}

enum status press_check_layouts(const struct press *press, const struct batch *batch,
                                struct problems *problems, struct error *err)
{
    size_t const before = problems->count;

    if (find_layout(press, batch->layout) == press->layouts.count)
        problems_add(problems, "/layout", "unknown_layout", "no layout is called \"%s\"",
                     batch->layout.data);
    for (size_t i = 0; i < batch->tickets_count; i++) {
        const struct ticket *ticket = &batch->tickets[i];
        char pointer[64];

        if (ticket->layout.len == 0 || find_layout(press, ticket->layout) < press->layouts.count)
            continue;
        snprintf(pointer, sizeof pointer, "/tickets/%zu/layout", ticket->request_index);
        problems_add(problems, pointer, "unknown_layout", "no layout is called \"%s\"",
                     ticket->layout.data);
    }
    if (problems->count > before)
        return error_set(err, ST_INVALID, "a layout is not known");
    return ST_OK;
}

/* ---- slices ---- */

static struct slice *slice_from(struct task *task)
{
    return (struct slice *)(void *)task;
}

static struct token_claims claims_of(const struct press_job *job, const struct ticket *ticket)
{
    struct token_claims claims = {
        .key_id = job->request.key.key_id,
        .issue = ticket->issue,
        .event_id_len = (uint8_t)job->batch.event.id.len,
        .ticket_id_len = (uint8_t)ticket->id.len,
        .has_valid_from = ticket->has_valid_from,
        .has_valid_until = ticket->has_valid_until,
        .valid_from_min = ticket->valid_from_min,
        .valid_until_min = ticket->valid_until_min,
    };

    assert(job->batch.event.id.len <= TOKEN_ID_BYTES_MAX && ticket->id.len <= TOKEN_ID_BYTES_MAX);
    memcpy(claims.event_id, job->batch.event.id.data, job->batch.event.id.len);
    memcpy(claims.ticket_id, ticket->id.data, ticket->id.len);
    return claims;
}

static enum status print_ticket(struct press_worker *worker, struct slice *slice,
                                const struct page_job *pages, size_t index, struct error *err)
{
    const struct press_job *job = slice->job;
    const struct ticket *ticket = &job->batch.tickets[index];
    struct token_claims const claims = claims_of(job, ticket);
    const struct page_plan *plan = plan_of(job, job->places[index].layout);
    char token[TOKEN_CHARS_MAX + 1];
    size_t token_len;
    enum status st =
        signer_token(worker->signer, &job->request.key, &claims, token, &token_len, err);

    worker->content.len = 0;
    if (st == ST_OK)
        st = page_write_ticket(worker->writer, plan, pages, ticket, (struct text){token, token_len},
                               &worker->content, err);
    if (st == ST_OK)
        st = deflate_append(worker->deflater, DEFLATE_FAST, worker->content.data,
                            worker->content.len, &slice->pages, err);
    if (st == ST_OK)
        st = bytes_append(&slice->tokens, token, token_len, err);
    return st;
}

static enum status print_tickets(struct slice *slice, struct press_worker *worker,
                                 const struct page_job *pages, struct error *err)
{
    struct press_job *job = slice->job;
    enum status st = ST_OK;

    for (size_t i = 0; i < slice->count && st == ST_OK; i++) {
        st = task_should_stop(job->runner != NULL ? job->runner : &slice->task, err);
        if (st == ST_OK)
            st = print_ticket(worker, slice, pages, slice->first + i, err);
        slice->ends[i] = slice->pages.len;
        slice->token_ends[i] = slice->tokens.len;
        if (st == ST_OK) {
            atomic_fetch_add_explicit(&job->tickets_done, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&job->press->tickets_done, 1, memory_order_relaxed);
        }
    }
    return st;
}

static enum status keep_problems(struct slice *slice, struct problems *problems, struct error *err)
{
    if (problems->count == 0)
        return ST_OK;
    slice->problems = calloc(1, sizeof *slice->problems);
    if (slice->problems == NULL)
        return error_set(err, ST_NO_MEMORY, "a list of problems");
    problems_append_copy(slice->problems, problems);
    return ST_OK;
}

static uint64_t now_us(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void note_time(const struct slice *slice, uint64_t began_us)
{
    struct press *press = slice->job->press;

    atomic_fetch_add_explicit(&press->timed_us, now_us() - began_us, memory_order_relaxed);
    atomic_fetch_add_explicit(&press->tickets_timed, slice->count, memory_order_relaxed);
}

static enum status print_slice(struct slice *slice, struct press_worker *worker, struct error *err)
{
    const struct press_job *job = slice->job;
    const struct press_config *config = &job->press->config;
    uint64_t const began_us = now_us();
    struct problems problems = {0};
    enum status st = glyph_sets_new(config->fonts, &slice->glyphs, err);

    slice->ends = calloc(slice->count, sizeof *slice->ends);
    slice->token_ends = calloc(slice->count, sizeof *slice->token_ends);
    if (st == ST_OK && (slice->ends == NULL || slice->token_ends == NULL))
        st = error_set(err, ST_NO_MEMORY, "a slice");
    if (st == ST_OK)
        st = print_tickets(slice, worker,
                           &(struct page_job){
                               .batch = &job->batch,
                               .labels = label_set_find(config->labels, job->batch.locale),
                               .glyphs = slice->glyphs,
                               .readings = &slice->readings,
                               .problems = &problems,
                           },
                           err);
    if (st == ST_OK)
        st = keep_problems(slice, &problems, err);
    if (st == ST_OK)
        note_time(slice, began_us);
    problems_clear(&problems);
    return st;
}

/* Whoever comes first says that the job has started. A slice whose thread was given up may come
 * here after the job's end, when it must not call any more. */
static void tell_started(struct press_job *job)
{
    bool is_first;

    if (job->request.started == NULL)
        return;
    MUST(pthread_mutex_lock(&job->mutex));
    is_first = !job->has_started && !job->has_ended;
    if (is_first)
        job->has_started = job->is_telling = true;
    MUST(pthread_mutex_unlock(&job->mutex));
    if (!is_first)
        return;
    job->request.started(job->request.user);
    MUST(pthread_mutex_lock(&job->mutex));
    job->is_telling = false;
    MUST(pthread_cond_signal(&job->told));
    MUST(pthread_mutex_unlock(&job->mutex));
}

static enum status slice_run(struct task *task, void *context, struct error *err)
{
    struct slice *slice = slice_from(task);

    tell_started(slice->job);
    return print_slice(slice, context, err);
}

/* ---- the bind ---- */

static struct press_job *job_from(struct task *task)
{
    return (struct press_job *)(void *)task;
}

/* What the pages of one layout share, compressed. */
struct sheet_contents {
    struct bytes before[LAYOUT_CELLS_MAX], after;
    struct pdf_data views[LAYOUT_CELLS_MAX]; /* of before */
};

/* Everything that the bind makes and drops again. */
struct binding {
    struct press_job *job;
    struct press_worker *worker;
    struct error *err;
    struct glyph_set *glyphs; /* one a face: of the whole document */
    struct readings readings; /* likewise */
    struct pdf_data *tickets; /* one a ticket */
    struct pdf_page *pages;
    struct pdf_sheet sheets[PDF_SHEETS_MAX];
    struct sheet_contents *sheet_contents[PDF_SHEETS_MAX];
    size_t sheet_of_layout[PRESS_LAYOUTS_MAX]; /* index + 1; 0: not used so far */
    size_t sheets_count;
    struct pdf_image *images;
    size_t images_count;
    struct pdf_font *fonts;
    struct bytes *font_files; /* one a face */
    size_t fonts_count;
};
_Static_assert((int)PRESS_LAYOUTS_MAX <= (int)PDF_SHEETS_MAX, "sheets for each layout");

static enum status deflate_shared(struct binding *binding, const struct bytes *from,
                                  struct bytes *out)
{
    return deflate_append(binding->worker->deflater, DEFLATE_SMALL, from->data, from->len, out,
                          binding->err);
}

/* What comes before the ticket in each cell that is filled on any page, and what comes after all.
 */
static enum status write_sheet(struct binding *binding, const struct page_plan *plan,
                               struct pdf_sheet *sheet, struct sheet_contents *contents)
{
    struct press_worker *worker = binding->worker;
    struct bytes *plain = &worker->before;
    enum status st = ST_OK;

    for (size_t cell = 0; cell < sheet->cells_count && st == ST_OK; cell++) {
        plain->len = 0;
        st = page_write_before(plan, cell, &worker->content, plain, binding->err);
        if (st == ST_OK)
            st = deflate_shared(binding, plain, &contents->before[cell]);
        contents->views[cell] =
            (struct pdf_data){contents->before[cell].data, contents->before[cell].len};
    }
    plain->len = 0;
    if (st == ST_OK)
        st = page_write_after(plan, plain, binding->err);
    if (st == ST_OK && plain->len > 0)
        st = deflate_shared(binding, plain, &contents->after);
    sheet->before = contents->views;
    sheet->after = (struct pdf_data){contents->after.data, contents->after.len};
    return st;
}

static void bind_images(struct binding *binding, size_t layout)
{
    const struct press_layout *from = &binding->job->press->layouts.layouts[layout];

    for (size_t i = 0; i < from->layout.images_count; i++)
        binding->images[binding->images_count++] =
            (struct pdf_image){.name = image_name(layout, i), .image = &from->images[i]};
}

static enum status bind_sheet(struct binding *binding, size_t layout, size_t cells_count)
{
    struct press_job *job = binding->job;
    const struct page_plan *plan = plan_of(job, layout);
    struct page_job const pages = {
        .batch = &job->batch,
        .labels = label_set_find(job->press->config.labels, job->batch.locale),
        .glyphs = binding->glyphs,
        .readings = &binding->readings,
        .problems = &job->problems,
    };
    struct pdf_sheet *sheet = &binding->sheets[binding->sheets_count];
    struct sheet_contents *contents = calloc(1, sizeof *contents);
    struct bytes *content = &binding->worker->content;
    enum status st;

    if (contents == NULL)
        return error_set(binding->err, ST_NO_MEMORY, "a document's sheets");
    *sheet = (struct pdf_sheet){
        .cells_count = cells_count,
        .page_w_mpt = mpt_from_um(page_plan_layout(plan)->page_w_um),
        .page_h_mpt = mpt_from_um(page_plan_layout(plan)->page_h_um),
    };
    binding->sheet_contents[binding->sheets_count++] = contents;
    binding->sheet_of_layout[layout] = binding->sheets_count;
    bind_images(binding, layout);
    content->len = 0;
    st = page_write_static(binding->worker->writer, plan, &pages, content, binding->err);
    return st == ST_OK ? write_sheet(binding, plan, sheet, contents) : st;
}

/* In the order in which the layouts are met. */
static enum status bind_sheets(struct binding *binding)
{
    const struct press_job *job = binding->job;
    size_t cells_counts[PRESS_LAYOUTS_MAX] = {0};
    size_t images_max = 0;
    enum status st = ST_OK;

    for (size_t i = 0; i < job->batch.tickets_count; i++) {
        const struct place *place = &job->places[i];

        if (cells_counts[place->layout] == 0)
            images_max += job->press->layouts.layouts[place->layout].layout.images_count;
        if (cells_counts[place->layout] < place->cell + 1U)
            cells_counts[place->layout] = place->cell + 1U;
    }
    binding->images = calloc(images_max + 1, sizeof *binding->images);
    if (binding->images == NULL)
        return error_set(binding->err, ST_NO_MEMORY, "a document's images");
    for (size_t i = 0; i < job->batch.tickets_count && st == ST_OK; i++) {
        size_t const layout = job->places[i].layout;

        if (binding->sheet_of_layout[layout] == 0)
            st = bind_sheet(binding, layout, cells_counts[layout]);
    }
    assert(binding->images_count <= images_max);
    return st;
}

static void bind_tickets(struct binding *binding)
{
    const struct press_job *job = binding->job;
    size_t ticket = 0;

    for (size_t s = 0; s < job->slices_count; s++) {
        const struct slice *slice = &job->slices[s];
        size_t begin = 0;

        for (size_t i = 0; i < slice->count; i++, ticket++) {
            binding->tickets[ticket] =
                (struct pdf_data){slice->pages.data + begin, slice->ends[i] - begin};
            begin = slice->ends[i];
        }
    }
}

static enum status bind_pages(struct binding *binding)
{
    const struct press_job *job = binding->job;
    enum status const st = bind_sheets(binding);

    if (st != ST_OK)
        return st;
    binding->tickets = calloc(job->batch.tickets_count, sizeof *binding->tickets);
    binding->pages = calloc(job->pages_count, sizeof *binding->pages);
    if (binding->tickets == NULL || binding->pages == NULL)
        return error_set(binding->err, ST_NO_MEMORY, "a document's pages");
    bind_tickets(binding);
    for (size_t i = 0; i < job->batch.tickets_count; i++) {
        const struct place *place = &job->places[i];
        struct pdf_page *page = &binding->pages[place->page];

        if (place->cell == 0)
            *page = (struct pdf_page){
                .first = i, .sheet = (uint32_t)binding->sheet_of_layout[place->layout] - 1};
        page->count++;
    }
    return ST_OK;
}

static enum status bind_fonts(struct binding *binding)
{
    const struct font_set *fonts = binding->job->press->config.fonts;
    size_t const faces_count = font_set_faces_count(fonts);
    enum status st = ST_OK;

    binding->fonts = calloc(faces_count, sizeof *binding->fonts);
    binding->font_files = calloc(faces_count, sizeof *binding->font_files);
    if (binding->fonts == NULL || binding->font_files == NULL)
        return error_set(binding->err, ST_NO_MEMORY, "a document's fonts");
    for (size_t face = 0; face < faces_count && st == ST_OK; face++) {
        struct bytes *file = &binding->font_files[face];

        if (glyph_set_is_empty(&binding->glyphs[face]))
            continue;
        st = font_subset(fonts, face, &binding->glyphs[face], file, binding->err);
        binding->fonts[binding->fonts_count++] = (struct pdf_font){
            .face = face,
            .glyphs = &binding->glyphs[face],
            .file = {file->data, file->len},
        };
    }
    return st;
}

/* In slice order, so that they are the same whichever thread found them. */
static enum status gather_slices(struct binding *binding)
{
    struct press_job *job = binding->job;
    enum status st = ST_OK;

    for (size_t s = 0; s < job->slices_count && st == ST_OK; s++) {
        const struct slice *slice = &job->slices[s];

        for (size_t face = 0; face < font_set_faces_count(job->press->config.fonts); face++)
            glyph_set_unite(&binding->glyphs[face], &slice->glyphs[face]);
        if (slice->problems != NULL)
            problems_append_copy(&job->problems, slice->problems);
        st = readings_unite(&binding->readings, &slice->readings, binding->err);
    }
    return st;
}

static enum status list_ticket(const struct slice *slice, size_t index,
                               struct document_tickets *tickets, struct error *err)
{
    size_t const begin = index == 0 ? 0 : slice->token_ends[index - 1];
    struct document_ticket *ticket = &tickets->list[tickets->count++];
    const struct text *id = &slice->job->batch.tickets[slice->first + index].id;
    enum status st = arena_text_copy(&tickets->arena, id->data, id->len, &ticket->id, err);

    ticket->page = slice->job->places[slice->first + index].page + 1;
    if (st == ST_OK)
        st = arena_text_copy(&tickets->arena, (const char *)slice->tokens.data + begin,
                             slice->token_ends[index] - begin, &ticket->token, err);
    return st;
}

static enum status list_tickets(const struct press_job *job, struct document_tickets *tickets,
                                struct error *err)
{
    enum status st = ST_OK;

    tickets->list = arena_alloc(&tickets->arena, job->batch.tickets_count * sizeof *tickets->list);
    if (tickets->list == NULL)
        return error_set(err, ST_NO_MEMORY, "a document's tickets");
    for (size_t s = 0; s < job->slices_count && st == ST_OK; s++)
        for (size_t i = 0; i < job->slices[s].count && st == ST_OK; i++)
            st = list_ticket(&job->slices[s], i, tickets, err);
    return st;
}

static enum status bind_document(struct binding *binding)
{
    struct press_job *job = binding->job;
    struct pdf_input const input = {
        .title = job->batch.event.name,
        .language = job->batch.locale,
        .set = job->press->config.fonts,
        .fonts = binding->fonts,
        .fonts_count = binding->fonts_count,
        .readings = &binding->readings,
        .images = binding->images,
        .images_count = binding->images_count,
        .sheets = binding->sheets,
        .sheets_count = binding->sheets_count,
        .tickets = binding->tickets,
        .tickets_count = job->batch.tickets_count,
        .pages = binding->pages,
        .pages_count = job->pages_count,
    };
    struct bytes bytes = {0};
    struct document_tickets tickets = {0};
    uint8_t digest[SHA256_BYTES];
    enum status st = pdf_write(&input, job->press->profile, binding->worker->deflater, &bytes,
                               digest, binding->err);

    if (st == ST_OK)
        st = list_tickets(job, &tickets, binding->err);
    if (st == ST_OK)
        st = document_new_move(&bytes, &tickets, digest, &job->document, binding->err);
    bytes_clear(&bytes);
    arena_clear(&tickets.arena);
    return st;
}

static void sheet_contents_free(struct sheet_contents *contents)
{
    for (size_t cell = 0; cell < LAYOUT_CELLS_MAX; cell++)
        bytes_clear(&contents->before[cell]);
    bytes_clear(&contents->after);
    free(contents);
}

static void binding_clear(struct binding *binding)
{
    const struct font_set *fonts = binding->job->press->config.fonts;

    glyph_sets_free(fonts, &binding->glyphs);
    readings_clear(&binding->readings);
    for (size_t i = 0; i < binding->sheets_count; i++)
        sheet_contents_free(binding->sheet_contents[i]);
    for (size_t i = 0; i < font_set_faces_count(fonts) && binding->font_files != NULL; i++)
        bytes_clear(&binding->font_files[i]);
    free(binding->font_files);
    free(binding->fonts);
    free(binding->images);
    free(binding->tickets);
    free(binding->pages);
}

static enum status refuse_missing_glyphs(const struct press_job *job, struct error *err)
{
    if (job->problems.count == 0 || job->batch.on_missing_glyph != ON_MISSING_GLYPH_REJECT)
        return ST_OK;
    return error_set(err, ST_INVALID,
                     "%zu characters are in none of the fonts, and on_missing_glyph is \"reject\"",
                     job->problems.count);
}

static enum status bind_job(struct press_job *job, struct press_worker *worker, struct error *err)
{
    struct binding binding = {.job = job, .worker = worker, .err = err};
    enum status st = glyph_sets_new(job->press->config.fonts, &binding.glyphs, err);

    if (st == ST_OK)
        st = gather_slices(&binding);
    if (st == ST_OK)
        st = bind_pages(&binding);
    if (st == ST_OK)
        st = task_should_stop(job->runner != NULL ? job->runner : &job->bind, err);
    if (st == ST_OK)
        st = refuse_missing_glyphs(job, err);
    if (st == ST_OK)
        st = bind_fonts(&binding);
    if (st == ST_OK)
        st = bind_document(&binding);
    binding_clear(&binding);
    return st;
}

static enum status bind_run(struct task *task, void *context, struct error *err)
{
    return bind_job(job_from(task), context, err);
}

/* ---- how jobs end ---- */

/* Remember why the job will fail. Of several causes the one of the earliest slice counts, and a
 * cancellation only when there is no other. */
static void note_failure(struct press_job *job, size_t slice, enum status status,
                         const struct error *err)
{
    bool is_first;

    MUST(pthread_mutex_lock(&job->mutex));
    is_first = job->failure == ST_OK || (job->failure == ST_CANCELLED && status != ST_CANCELLED) ||
               (status != ST_CANCELLED && slice < job->failure_slice);
    if (is_first) {
        job->failure = status;
        job->failure_error = *err;
        job->failure_slice = slice;
    }
    MUST(pthread_mutex_unlock(&job->mutex));
}

static void mark_ended(struct press_job *job)
{
    MUST(pthread_mutex_lock(&job->mutex));
    while (job->is_telling)
        MUST(pthread_cond_wait(&job->told, &job->mutex));
    job->has_ended = true;
    MUST(pthread_mutex_unlock(&job->mutex));
}

static void slice_done_take(struct task *task, enum status status, const struct error *err)
{
    struct slice *slice = slice_from(task);

    if (status != ST_OK)
        note_failure(slice->job, slice->index, status, err);
}

static void slice_given_up(struct task *task, const struct error *err)
{
    struct slice *slice = slice_from(task);

    job_hold(slice->job); /* the hung thread's, dropped in late_take */
    note_failure(slice->job, slice->index, ST_TIMED_OUT, err);
}

static void slice_late_take(struct task *task)
{
    job_let_go(slice_from(task)->job);
}

/* The bind's completion comes after all others' and is the job's end. */
static void bind_done_take(struct task *task, enum status status, const struct error *err)
{
    struct press_job *job = job_from(task);
    struct press_result result = {.status = status, .document = job->document};

    job->document = NULL;
    result.problems = job->problems;
    job->problems = (struct problems){0};
    if (status != ST_OK) {
        note_failure(job, SIZE_MAX, status, err);
        result.status = job->failure;
        result.error = job->failure_error;
    }
    mark_ended(job);
    result.tickets_done = press_job_tickets_done(job);
    job->request.done(job->request.user, &result);
    press_result_clear(&result);
    job_let_go(job);
}

static void bind_given_up(struct task *task, const struct error *err)
{
    struct press_job *job = job_from(task);
    struct press_result result = {.status = ST_TIMED_OUT, .error = *err};

    mark_ended(job); /* the job's own hold is the hung thread's now */
    result.tickets_done = press_job_tickets_done(job);
    job->request.done(job->request.user, &result);
    press_result_clear(&result);
}

static void bind_late_take(struct task *task)
{
    job_let_go(job_from(task));
}

/* ---- submitting ---- */

static void plan_slices(struct press_job *job, size_t tickets_count, size_t slice_tickets)
{
    for (size_t i = 0; i < job->slices_count; i++) {
        struct slice *slice = &job->slices[i];
        size_t const left = tickets_count - i * slice_tickets;

        *slice = (struct slice){
            .task = {.run = slice_run,
                     .done_take = slice_done_take,
                     .given_up = slice_given_up,
                     .late_take = slice_late_take},
            .job = job,
            .index = i,
            .first = i * slice_tickets,
            .count = left < slice_tickets ? left : slice_tickets,
        };
        job->parts[i] = &slice->task;
    }
    job->bind = (struct task){.run = bind_run,
                              .done_take = bind_done_take,
                              .given_up = bind_given_up,
                              .late_take = bind_late_take};
}

/* Neighbours of one layout share sheets, in the order of the batch; another layout begins a new
 * sheet. */
static void plan_pages(struct press_job *job, const struct batch *batch)
{
    for (size_t i = 0; i < batch->tickets_count; i++) {
        const struct ticket *ticket = &batch->tickets[i];
        const struct place *last = i > 0 ? &job->places[i - 1] : NULL;
        size_t const layout =
            find_layout(job->press, ticket->layout.len > 0 ? ticket->layout : batch->layout);
        size_t const cells = layout_cells(&job->press->layouts.layouts[layout].layout);
        bool const has_room = last != NULL && last->layout == layout && last->cell + 1U < cells;

        job->pages_count += !has_room;
        job->places[i] = (struct place){
            .page = job->pages_count - 1,
            .cell = has_room ? last->cell + 1U : 0,
            .layout = (uint32_t)layout,
        };
    }
}

static enum status job_allocate(struct press_job *job, size_t tickets_count, struct error *err)
{
    job->slices = calloc(job->slices_count, sizeof *job->slices);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is what is meant */
    job->parts = calloc(job->slices_count, sizeof *job->parts);
    job->places = calloc(tickets_count, sizeof *job->places);
    if (job->slices == NULL || job->parts == NULL || job->places == NULL)
        return error_set(err, ST_NO_MEMORY, "a job of %zu tickets", tickets_count);
    return ST_OK;
}

/* The batch is read, and not kept so far. */
static enum status job_new(struct press *press, const struct press_request *request,
                           const struct batch *batch, size_t slice_tickets, struct press_job **job,
                           struct error *err)
{
    struct press_job *made = calloc(1, sizeof *made);
    bool is_right_to_left = false;
    enum status st;

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a job");
    made->press = press_ref(press);
    made->request = *request;
    made->slices_count = (batch->tickets_count + slice_tickets - 1) / slice_tickets;
    MUST(pthread_mutex_init(&made->mutex, NULL));
    MUST(pthread_cond_init(&made->told, NULL));
    st = job_allocate(made, batch->tickets_count, err);
    if (st == ST_OK)
        st = locale_is_right_to_left(batch->locale, &is_right_to_left, err);
    if (st != ST_OK) {
        job_free(made);
        return st;
    }
    made->direction = is_right_to_left ? PAGE_RIGHT_TO_LEFT : PAGE_LEFT_TO_RIGHT;
    plan_pages(made, batch);
    plan_slices(made, batch->tickets_count, slice_tickets);
    made->group = (struct task_group){
        .lane = request->lane,
        .client = request->client,
        .parts = made->parts,
        .parts_count = made->slices_count,
        .last = &made->bind,
        .last_is_heavy = made->slices_count > 1,
    };
    atomic_init(&made->holds, 2); /* the job's own and the handle's */
    *job = made;
    return ST_OK;
}

enum status press_submit_move(struct press *press, const struct press_request *request,
                              struct batch *batch, struct press_job **job,
                              struct problems *problems, struct error *err)
{
    struct press_job *made = NULL;
    struct task_group *group;
    enum status st = press_check_layouts(press, batch, problems, err);

    assert(batch->tickets_count >= 1 && request->done != NULL);
    if (st == ST_OK)
        st = job_new(press, request, batch, press->config.slice_tickets, &made, err);
    if (st != ST_OK)
        return st;
    batch_move(&made->batch, batch);
    group = &made->group;
    *job = made; /* before any thread can end the job and use the handle */
    st = pool_submit_take(press->config.pool, &group, err);
    if (st != ST_OK) {
        *job = NULL;
        batch_move(batch, &made->batch);
        job_free(made);
    }
    return st;
}

enum status press_print(struct press *press, const struct task *task, void *worker,
                        const struct event_key *key, struct batch *batch,
                        struct press_result *result, struct problems *problems)
{
    struct press_request request = {.key = *key};
    struct press_job *job = NULL;
    enum status st = press_check_layouts(press, batch, problems, &result->error);

    if (st == ST_OK)
        st = job_new(press, &request, batch, batch->tickets_count, &job, &result->error);
    event_key_clear(&request.key);
    if (st == ST_OK) {
        batch_move(&job->batch, batch);
        job->runner = task;
        st = print_slice(&job->slices[0], worker, &result->error);
    }
    if (st == ST_OK)
        st = bind_job(job, worker, &result->error);
    result->status = st;
    if (job != NULL) {
        result->tickets_done = press_job_tickets_done(job);
        result->document = job->document;
        result->problems = job->problems;
        job->document = NULL;
        job->problems = (struct problems){0};
        job_free(job);
    }
    return st;
}

size_t press_job_tickets_done(const struct press_job *job)
{
    return atomic_load_explicit(&job->tickets_done, memory_order_relaxed);
}

void press_job_cancel(struct press_job *job)
{
    /* Under the lock the bind cannot complete, so that the group is alive; completions of slices do
     * not come from this call while it is held, because the pool hands them to its own threads. */
    MUST(pthread_mutex_lock(&job->mutex));
    if (!job->has_ended)
        pool_cancel(job->press->config.pool, &job->group);
    MUST(pthread_mutex_unlock(&job->mutex));
}

void press_job_release(struct press_job **job)
{
    if (*job != NULL)
        job_let_go(*job);
    *job = NULL;
}

uint64_t press_tickets_done(const struct press *press)
{
    return atomic_load_explicit(&press->tickets_done, memory_order_relaxed);
}

double press_tickets_per_s(const struct press *press)
{
    uint64_t const us = atomic_load_explicit(&press->timed_us, memory_order_relaxed);
    uint64_t const tickets = atomic_load_explicit(&press->tickets_timed, memory_order_relaxed);

    return us > 0 ? (double)(tickets * press->threads) / ((double)us / 1e6) : 0;
}

size_t press_slice_tickets(const struct press *press)
{
    return press->config.slice_tickets;
}
