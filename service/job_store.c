#include "service/job_store.h"

#include <assert.h>

static const char *const STATE_NAMES[] = {
    [JOB_QUEUED] = "queued", [JOB_RUNNING] = "running",     [JOB_SUCCEEDED] = "succeeded",
    [JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled",
};
_Static_assert(sizeof STATE_NAMES / sizeof *STATE_NAMES == JOB_STATES, "a name for each state");

const char *job_state_name(enum job_state state)
{
    assert(state < JOB_STATES);
    return STATE_NAMES[state];
}

void job_record_clear(struct job_record *record)
{
    bytes_clear(&record->problems);
    document_unref(&record->document);
    *record = (struct job_record){0};
}

enum status job_record_copy(struct job_record *dst, const struct job_record *src, struct error *err)
{
    struct bytes problems = {0};
    enum status st = bytes_append(&problems, src->problems.data, src->problems.len, err);

    assert(dst->problems.data == NULL && dst->document == NULL);
    if (st != ST_OK)
        return st;
    *dst = *src;
    dst->problems = problems;
    if (src->document != NULL)
        dst->document = document_ref(src->document);
    return ST_OK;
}
