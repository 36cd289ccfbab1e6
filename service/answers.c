#include "service/answers.h"

#include "domain/civil_time.h"
#include "service/batch_json.h"
#include "service/json_text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned status;
    const char *title;
} TITLES[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {500, "Internal Server Error"},
    {503, "Service Unavailable"},
};

const char *answer_title(unsigned status)
{
    for (size_t i = 0; i < sizeof TITLES / sizeof *TITLES; i++)
        if (TITLES[i].status == status)
            return TITLES[i].title;
    return "Error";
}

/* Give the text to the answer under its media type, if it was finished. */
static void give_json(struct http_answer *answer, unsigned status, const char *type,
                      struct json_text *json)
{
    answer->code = status;
    if (json_text_finish(json, NULL) == ST_OK)
        http_answer_header(answer, "Content-Type", "%s", type);
    else
        bytes_clear(&answer->body);
}

static void member_chars(struct json_text *json, const char *name, const char *value)
{
    json_text_name(json, name);
    json_text_chars(json, value);
}

static void member_number(struct json_text *json, const char *name, uint64_t value)
{
    json_text_name(json, name);
    json_text_unsigned(json, value);
}

static void member_time(struct json_text *json, const char *name, int64_t ms)
{
    if (ms == 0)
        return;
    json_text_name(json, name);
    json_text_time(json, ms);
}

void answer_problem(struct http_answer *answer, const struct answer_problem *problem)
{
    struct json_text json = {.out = &answer->body};

    assert(problem->status >= 400);
    json_text_begin_object(&json);
    member_chars(&json, "type", "about:blank");
    member_chars(&json, "title", answer_title(problem->status));
    member_number(&json, "status", problem->status);
    member_chars(&json, "code", problem->code);
    member_chars(&json, "detail", problem->detail);
    if (problem->instance != NULL)
        member_chars(&json, "instance", problem->instance);
    if (problem->problems != NULL) {
        json_text_name(&json, "errors");
        problems_json_array(&json, problem->problems);
        member_number(&json, "errors_count", problem->problems->count);
    } else if (problem->errors_json.len > 0) {
        json_text_name(&json, "errors");
        json_text_raw(&json, problem->errors_json);
    }
    json_text_end_object(&json);
    give_json(answer, problem->status, "application/problem+json", &json);
    if (problem->retry_after_s > 0)
        http_answer_header(answer, "Retry-After", "%u", problem->retry_after_s);
    if (problem->status == 401)
        http_answer_header(answer, "WWW-Authenticate", "Bearer");
}

/* ---- documents ---- */

static void etag_of(const struct document *document, char text[2 * SHA256_BYTES + 3])
{
    char *at = text;

    *at++ = '"';
    for (size_t i = 0; i < SHA256_BYTES; i++)
        at += sprintf(at, "%02x", document->digest[i]);
    memcpy(at, "\"", 2);
}

void answer_document_take(struct http_answer *answer, const struct document **document)
{
    char etag[2 * SHA256_BYTES + 3];

    answer->code = 200;
    answer->document = *document;
    answer->document_len = (*document)->bytes.len;
    *document = NULL;
    etag_of(answer->document, etag);
    http_answer_header(answer, "Content-Type", "application/pdf");
    http_answer_header(answer, "Content-Disposition", "attachment; filename=\"tickets.pdf\"");
    http_answer_header(answer, "ETag", "%s", etag);
    http_answer_header(answer, "Cache-Control", "private, no-store");
}

/* ---- jobs ---- */

static void put_document_member(struct json_text *json, const struct job_record *record)
{
    char etag[2 * SHA256_BYTES + 3];

    if (record->document == NULL)
        return;
    etag_of(record->document, etag);
    json_text_name(json, "document");
    json_text_begin_object(json);
    member_number(json, "bytes", record->document->bytes.len);
    member_chars(json, "type", "application/pdf");
    member_chars(json, "etag", etag);
    json_text_end_object(json);
}

static void put_links(struct json_text *json, const struct job_record *record)
{
    char link[64];

    json_text_name(json, "links");
    json_text_begin_object(json);
    snprintf(link, sizeof link, "/v1/jobs/%s", record->id);
    member_chars(json, "self", link);
    if (record->document != NULL) {
        snprintf(link, sizeof link, "/v1/jobs/%s/document", record->id);
        member_chars(json, "document", link);
        snprintf(link, sizeof link, "/v1/jobs/%s/tickets", record->id);
        member_chars(json, "tickets", link);
    }
    json_text_end_object(json);
}

static void put_job(struct json_text *json, const struct job_view *view)
{
    const struct job_record *record = &view->record;

    json_text_begin_object(json);
    member_chars(json, "id", record->id);
    member_chars(json, "state", job_state_name(record->state));
    json_text_name(json, "tickets");
    json_text_begin_object(json);
    member_number(json, "total", record->tickets_total);
    member_number(json, "done", view->tickets_done);
    member_number(json, "skipped", record->tickets_skipped);
    json_text_end_object(json);
    member_time(json, "created_at", record->created_ms);
    member_time(json, "started_at", record->started_ms);
    member_time(json, "finished_at", record->finished_ms);
    member_time(json, "expires_at", record->expires_ms);
    json_text_name(json, "problems");
    if (record->problems.len > 0) {
        json_text_raw(json,
                      (struct text){(const char *)record->problems.data, record->problems.len});
    } else {
        json_text_begin_array(json);
        json_text_end_array(json);
    }
    put_document_member(json, record);
    put_links(json, record);
    json_text_end_object(json);
}

void answer_job(struct http_answer *answer, unsigned status, const struct job_view *view,
                unsigned retry_after_s)
{
    struct json_text json = {.out = &answer->body};

    put_job(&json, view);
    give_json(answer, status, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
    if (status == 202)
        http_answer_header(answer, "Location", "/v1/jobs/%s", view->record.id);
    if (retry_after_s > 0)
        http_answer_header(answer, "Retry-After", "%u", retry_after_s);
}

void answer_jobs(struct http_answer *answer, const struct job_view *views, size_t count,
                 uint64_t next, const char *state)
{
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    json_text_name(&json, "jobs");
    json_text_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        put_job(&json, &views[i]);
    json_text_end_array(&json);
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
    if (next > 0)
        http_answer_header(answer, "Link", "</v1/jobs?limit=%zu%s%s&cursor=%llu>; rel=\"next\"",
                           count, state != NULL ? "&state=" : "", state != NULL ? state : "",
                           (unsigned long long)next);
}

void answer_tickets(struct http_answer *answer, const struct job_record *record, size_t first,
                    size_t count)
{
    const struct document *document = record->document;
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    member_number(&json, "total", document->tickets.count);
    json_text_name(&json, "tickets");
    json_text_begin_array(&json);
    for (size_t i = first; i < first + count; i++) {
        json_text_begin_object(&json);
        json_text_name(&json, "id");
        json_text_string(&json, document->tickets.list[i].id);
        member_number(&json, "page", document->tickets.list[i].page);
        json_text_name(&json, "token");
        json_text_string(&json, document->tickets.list[i].token);
        json_text_end_object(&json);
    }
    json_text_end_array(&json);
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
    if (first + count < document->tickets.count)
        http_answer_header(answer, "Link",
                           "</v1/jobs/%s/tickets?limit=%zu&cursor=%zu>; rel=\"next\"", record->id,
                           count, first + count);
}

/* ---- verdicts ---- */

/* A token's minutes go beyond the year 9999, where RFC 3339 ends. */
static void member_minute(struct json_text *json, const char *name, bool is_there, uint32_t minute)
{
    int64_t const ms = (TOKEN_EPOCH_S + (int64_t)minute * 60) * 1000;

    if (!is_there)
        return;
    json_text_name(json, name);
    json_text_time(json, ms < CIVIL_TIME_MS_MAX ? ms : CIVIL_TIME_MS_MAX);
}

static bool is_in_window(const struct token_claims *claims, int64_t now_s)
{
    int64_t const minute_s = 60;

    if (claims->has_valid_from && now_s < TOKEN_EPOCH_S + claims->valid_from_min * minute_s)
        return false;
    return !claims->has_valid_until || now_s < TOKEN_EPOCH_S + claims->valid_until_min * minute_s;
}

void answer_verdict(struct http_answer *answer, enum token_verdict verdict,
                    const struct token_claims *claims, int64_t now_s)
{
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    json_text_name(&json, "valid");
    json_text_boolean(&json, verdict == TOKEN_OK);
    if (verdict == TOKEN_OK) {
        member_chars(&json, "event_id", claims->event_id);
        member_chars(&json, "ticket_id", claims->ticket_id);
        member_number(&json, "issue", claims->issue);
        member_number(&json, "key_id", claims->key_id);
        member_minute(&json, "valid_from", claims->has_valid_from, claims->valid_from_min);
        member_minute(&json, "valid_until", claims->has_valid_until, claims->valid_until_min);
        json_text_name(&json, "in_window");
        json_text_boolean(&json, is_in_window(claims, now_s));
    } else {
        member_chars(&json, "reason", token_verdict_name(verdict));
    }
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
}

void answer_dry_run(struct http_answer *answer, size_t tickets_count, size_t bytes_estimate)
{
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    member_number(&json, "tickets", tickets_count);
    member_number(&json, "bytes_estimate", bytes_estimate);
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
}

/* ---- layouts ---- */

static void member_mm(struct json_text *json, const char *name, int32_t um)
{
    json_text_name(json, name);
    json_text_number(json, (double)um / UM_PER_MM);
}

static void member_boolean(struct json_text *json, const char *name, bool is_true)
{
    json_text_name(json, name);
    json_text_boolean(json, is_true);
}

static void member_digest(struct json_text *json, const char *name,
                          const uint8_t digest[SHA256_BYTES])
{
    char text[2 * SHA256_BYTES + 1];

    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    member_chars(json, name, text);
}

/* The members that the list has of each. */
static void put_layout_members(struct json_text *json, const struct press_layout *from)
{
    const struct layout *layout = &from->layout;
    int32_t const module_um = layout_module_um(layout);
    char link[sizeof "/v1/layouts/" + LAYOUT_NAME_BYTES_MAX];

    json_text_name(json, "name");
    json_text_string(json, layout->name);
    member_boolean(json, "built_in", from->is_built_in);
    member_mm(json, "page_w_mm", layout->page_w_um);
    member_mm(json, "page_h_mm", layout->page_h_um);
    member_number(json, "tickets_per_page", layout_cells(layout));
    member_mm(json, "module_mm", module_um);
    member_boolean(json, "has_small_modules", module_um < LAYOUT_MODULE_UM);
    member_digest(json, "sha256", from->hash);
    snprintf(link, sizeof link, "/v1/layouts/%s", layout->name.data);
    json_text_name(json, "links");
    json_text_begin_object(json);
    member_chars(json, "self", link);
    json_text_end_object(json);
}

void answer_layouts(struct http_answer *answer, const struct layout_list *layouts)
{
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    json_text_name(&json, "layouts");
    json_text_begin_array(&json);
    for (size_t i = 0; i < layouts->count; i++) {
        json_text_begin_object(&json);
        put_layout_members(&json, &layouts->layouts[i]);
        json_text_end_object(&json);
    }
    json_text_end_array(&json);
    json_text_name(&json, "links");
    json_text_begin_object(&json);
    member_chars(&json, "schema", "/v1/layout-schema");
    json_text_end_object(&json);
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
}

static void note_used(const struct layout *layout, bool is_used[FIELD_COUNT],
                      bool is_label_used[LABEL_COUNT])
{
    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *element = &layout->elements[i];

        for (size_t p = 0; p < element->pieces_count; p++) {
            is_used[element->pieces[p].field] = true;
            if (element->pieces[p].field == FIELD_LABEL)
                is_label_used[element->pieces[p].label] = true;
        }
        if (element->has_when)
            is_used[element->when] = true;
    }
}

static void put_used(struct json_text *json, const struct layout *layout)
{
    bool is_used[FIELD_COUNT] = {false};
    bool is_label_used[LABEL_COUNT] = {false};

    note_used(layout, is_used, is_label_used);
    json_text_name(json, "fields");
    json_text_begin_array(json);
    for (int field = FIELD_LABEL + 1; field < FIELD_COUNT; field++)
        if (is_used[field])
            json_text_chars(json, layout_field_name((enum field)field));
    json_text_end_array(json);
    json_text_name(json, "labels");
    json_text_begin_array(json);
    for (int label = 0; label < LABEL_COUNT; label++)
        if (is_label_used[label])
            json_text_chars(json, label_name((enum label)label));
    json_text_end_array(json);
}

static void put_images(struct json_text *json, const struct layout *layout)
{
    json_text_name(json, "images");
    json_text_begin_array(json);
    for (size_t i = 0; i < layout->images_count; i++)
        json_text_string(json, layout->images[i].file);
    json_text_end_array(json);
}

void answer_layout(struct http_answer *answer, const struct press_layout *layout)
{
    const struct layout_n_up *n_up = &layout->layout.n_up;
    struct json_text json = {.out = &answer->body};

    json_text_begin_object(&json);
    put_layout_members(&json, layout);
    json_text_name(&json, "n_up");
    json_text_begin_object(&json);
    member_number(&json, "columns", n_up->columns);
    member_number(&json, "rows", n_up->rows);
    member_mm(&json, "ticket_w_mm", n_up->ticket_w_um);
    member_mm(&json, "ticket_h_mm", n_up->ticket_h_um);
    member_boolean(&json, "cut_marks", n_up->has_cut_marks);
    json_text_end_object(&json);
    put_used(&json, &layout->layout);
    put_images(&json, &layout->layout);
    json_text_end_object(&json);
    give_json(answer, 200, "application/json", &json);
    http_answer_header(answer, "Cache-Control", "no-store");
}
