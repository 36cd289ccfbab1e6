/*
 * The answers of the API as bytes: problem details (RFC 9457), jobs, verdicts. Each function fills
 * an empty http_answer; when memory runs out the answer keeps its code and has no body, never half
 * of one.
 */
#ifndef TICKETPRESS_SERVICE_ANSWERS_H
#define TICKETPRESS_SERVICE_ANSWERS_H

#include "domain/problems.h"
#include "domain/token.h"
#include "service/http.h"
#include "service/job_table.h"
#include "workers/press.h"

#include <stddef.h>

/* What went wrong, for machines (code) and people. */
struct answer_problem {
    unsigned status;                 /* HTTP, 400..599 */
    const char *code;                /* snake_case constant, such as "queue_full" */
    const char *detail;              /* one sentence, UTF-8 */
    const char *instance;            /* the request's id */
    const struct problems *problems; /* of a batch; NULL: none */
    struct text errors_json;         /* or such a list as JSON text already; len 0: none */
    unsigned retry_after_s;          /* 0: no Retry-After */
};
void answer_problem(struct http_answer *answer, const struct answer_problem *problem);

/* A whole document: 200 with the bytes of *document, whose reference is moved (NULLed). */
void answer_document_take(struct http_answer *answer, const struct document **document);

/* A job, as GET /v1/jobs/{id} and 202 show it. retry_after_s is left out with 0. */
void answer_job(struct http_answer *answer, unsigned status, const struct job_view *view,
                unsigned retry_after_s);

/* A page of a list; next is the cursor of the page behind it, 0 when there is none. */
void answer_jobs(struct http_answer *answer, const struct job_view *views, size_t count,
                 uint64_t next, const char *state);

/* Tickets first..first+count of a document; more: there are others behind them. */
void answer_tickets(struct http_answer *answer, const struct job_record *record, size_t first,
                    size_t count);

void answer_verdict(struct http_answer *answer, enum token_verdict verdict,
                    const struct token_claims *claims, int64_t now_s);

void answer_dry_run(struct http_answer *answer, size_t tickets_count, size_t bytes_estimate);

/* All layouts, and where their schema is; one of them, with what it has on it. */
void answer_layouts(struct http_answer *answer, const struct layout_list *layouts);
void answer_layout(struct http_answer *answer, const struct press_layout *layout);

/* The reason phrase of a status code (RFC 9110, 15). */
const char *answer_title(unsigned status);

#endif
