#include "service/token_check.h"

#include "service/admission.h"
#include "service/answers.h"
#include "service/batch_json.h"
#include "workers/press.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct token_check {
    struct task task; /* first: a check is found again by its task */
    struct task *parts[1];
    struct task_group group;
    struct key_store *keys;
    struct http_exchange *exchange;
    struct bytes body;
    char client[KEY_CLIENT_BYTES_MAX + 1];
    char instance[REQUEST_ID_BYTES_MAX + 1];
    atomic_flag is_answered;
};

static struct token_check *check_from(struct task *task)
{
    return (struct token_check *)(void *)task;
}

static void check_free(struct token_check *check)
{
    bytes_clear(&check->body);
    free(check);
}

static void send(struct token_check *check, struct http_answer *answer)
{
    if (atomic_flag_test_and_set(&check->is_answered))
        http_answer_clear(answer);
    else
        http_answer_move(check->exchange, answer);
}

static void send_failure(struct token_check *check, unsigned status, const char *code,
                         const char *detail)
{
    struct http_answer answer = {0};

    answer_problem(&answer, &(struct answer_problem){.status = status,
                                                     .code = code,
                                                     .detail = detail,
                                                     .instance = check->instance,
                                                     .retry_after_s = status == 503 ? 1 : 0});
    send(check, &answer);
}

static enum status check_run(struct task *task, void *worker, struct error *err)
{
    struct token_check *check = check_from(task);
    const char *client = check->client[0] != '\0' ? check->client : NULL;
    int64_t const now_s = time(NULL);
    struct http_answer answer = {0};
    struct token_claims claims;
    enum token_verdict verdict;
    struct bytes token = {0};
    struct error fault = {0};
    enum status st = token_json_read(&check->body, &token, &fault);

    if (st == ST_INVALID) {
        send_failure(check, 422, "rule_broken", fault.text);
        return ST_OK;
    }
    if (st == ST_OK)
        st = press_worker_verify(worker, check->keys, client, (const char *)token.data, token.len,
                                 now_s, &verdict, &claims, err);
    if (st == ST_OK) {
        answer_verdict(&answer, verdict, &claims, now_s);
        send(check, &answer);
    }
    bytes_clear(&token);
    return st;
}

static void check_done_take(struct task *task, enum status status, const struct error *err)
{
    struct token_check *check = check_from(task);

    if (status != ST_OK)
        send_failure(check, 503, status_name(status), err->text);
    check_free(check);
}

static void check_given_up(struct task *task, const struct error *err)
{
    send_failure(check_from(task), 503, status_name(ST_TIMED_OUT), err->text);
}

static void check_late_take(struct task *task)
{
    check_free(check_from(task));
}

void token_check_start(struct pool *pool, struct key_store *keys, struct http_exchange *exchange,
                       const char *client, const char *instance)
{
    struct token_check refused = {.exchange = exchange};
    struct token_check *check = calloc(1, sizeof *check);
    struct task_group *group;
    struct error err = {0};

    if (check == NULL) {
        send_failure(&refused, 503, "no_memory", "no memory for a verification");
        return;
    }
    check->task = (struct task){.run = check_run,
                                .done_take = check_done_take,
                                .given_up = check_given_up,
                                .late_take = check_late_take};
    check->parts[0] = &check->task;
    check->group =
        (struct task_group){.lane = POOL_URGENT, .parts = check->parts, .parts_count = 1};
    check->keys = keys;
    check->exchange = exchange;
    snprintf(check->client, sizeof check->client, "%s", client);
    snprintf(check->instance, sizeof check->instance, "%s", instance);
    bytes_move(&check->body, http_body(exchange));
    group = &check->group;
    if (pool_submit_take(pool, &group, &err) != ST_OK) {
        send_failure(check, 503, "busy", err.text);
        check_free(check);
    }
}
