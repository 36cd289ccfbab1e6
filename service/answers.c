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
        member_number(&json, "page", i + 1);
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
