#include "service/job_store.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GONE_TTL_MS = 1000, DOCUMENT_BYTES = 100, JOBS_MAX = 4, DOCUMENTS_MAX = 3 };

/* Every test of the interface runs on each kind of store. */
static const struct kind {
    const char *name;
    enum status (*open)(const struct job_store_limits *limits, struct job_store **store,
                        struct error *err);
} KINDS[] = {
    {"memory", job_store_memory_open},
};

static const struct job_store_limits LIMITS = {
    .jobs_max = JOBS_MAX,
    .documents_bytes_max = (size_t)DOCUMENTS_MAX * DOCUMENT_BYTES,
    .gone_ttl_ms = GONE_TTL_MS,
};
static const struct job_store_limits LIMITS_WIDE = {
    .jobs_max = 100000, .documents_bytes_max = SIZE_MAX / 2, .gone_ttl_ms = GONE_TTL_MS};

static const struct kind *kind;
static struct job_store *store;
static struct error err;

/* Run a test's body on a new store of each kind. */
static void on_each_kind(const struct job_store_limits *limits, void (*body)(void))
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        kind = &KINDS[i];
        cr_assert_eq(kind->open(limits, &store, NULL), ST_OK, "%s", kind->name);
        body();
        store->calls->close(&store);
        cr_expect_null(store);
    }
}

static const char *id_of(size_t i)
{
    static char id[JOB_ID_CHARS + 1];

    snprintf(id, sizeof id, "job%0*zu", JOB_ID_CHARS - 3, i);
    return id;
}

static struct job_record record_of(size_t i, const char *client)
{
    struct job_record record = {.tickets_total = i, .created_ms = (int64_t)i};

    snprintf(record.id, sizeof record.id, "%s", id_of(i));
    snprintf(record.client, sizeof record.client, "%s", client);
    return record;
}

static void put(size_t i, const char *client)
{
    struct job_record record = record_of(i, client);

    cr_assert_eq(store->calls->put(store, &record, &err), ST_OK, "%s: %s", kind->name, err.text);
}

static const struct document *document_new(size_t bytes_len)
{
    static const uint8_t DIGEST[SHA256_BYTES] = {7};
    struct bytes bytes = {.data = calloc(1, bytes_len), .len = bytes_len, .capacity = bytes_len};
    struct document_tickets tickets = {.count = 1};
    const struct document *document = NULL;

    tickets.list = arena_alloc(&tickets.arena, sizeof *tickets.list);
    cr_assert(bytes.data != NULL && tickets.list != NULL);
    cr_assert_eq(document_new_move(&bytes, &tickets, DIGEST, &document, NULL), ST_OK);
    return document;
}

static enum status finish_with(size_t i, const char *client, int64_t expires_ms, size_t bytes)
{
    struct job_record record = record_of(i, client);
    enum status st;

    record.state = JOB_SUCCEEDED;
    record.expires_ms = expires_ms;
    record.document = document_new(bytes);
    st = store->calls->update_move(store, &record, &err);
    cr_expect((st == ST_OK) == (record.document == NULL), "%s", kind->name);
    job_record_clear(&record);
    return st;
}

static void finish(size_t i, int64_t expires_ms)
{
    cr_assert_eq(finish_with(i, "", expires_ms, DOCUMENT_BYTES), ST_OK, "%s", kind->name);
}

static bool is_kept(size_t i)
{
    struct job_record record = {0};
    enum status const st = store->calls->get(store, id_of(i), &record, &err);

    cr_expect(st == ST_OK || st == ST_NOT_FOUND, "%s", kind->name);
    job_record_clear(&record);
    return st == ST_OK;
}

static bool was_here(size_t i)
{
    return store->calls->was_here(store, NULL, id_of(i));
}

/* ---- records ---- */

Test(job_state_name, knows_every_state)
{
    static const char *const NAMES[] = {"queued", "running", "succeeded", "failed", "cancelled"};

    for (int state = 0; state < JOB_STATES; state++) {
        cr_expect_str_eq(job_state_name((enum job_state)state), NAMES[state]);
        cr_expect_eq(job_state_is_end((enum job_state)state), state >= 2);
    }
}

Test(job_record_copy, has_its_own_text_and_reference)
{
    struct job_record record = record_of(1, "box-office");
    struct job_record copy = {0};

    record.document = document_new(DOCUMENT_BYTES);
    cr_assert_eq(bytes_append(&record.problems, "[1]", 3, NULL), ST_OK);
    cr_assert_eq(job_record_copy(&copy, &record, NULL), ST_OK);
    cr_expect_neq(copy.problems.data, record.problems.data);
    job_record_clear(&record);
    cr_expect(record.document == NULL && record.problems.data == NULL && record.id[0] == '\0');
    cr_expect_str_eq(copy.id, id_of(1));
    cr_expect_str_eq(copy.client, "box-office");
    cr_expect_eq(copy.document->bytes.len, DOCUMENT_BYTES);
    cr_expect_arr_eq(copy.problems.data, "[1]", 3);
    job_record_clear(&copy);
}

Test(job_record_copy, leaves_nothing_without_memory)
{
    struct job_record record = record_of(1, "");
    struct job_record copy = {0};

    cr_assert_eq(bytes_append(&record.problems, "[1]", 3, NULL), ST_OK);
    failing_memory_start(1);
    cr_expect_eq(job_record_copy(&copy, &record, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect(copy.id[0] == '\0' && copy.problems.data == NULL);
    job_record_clear(&record);
}

/* ---- put, get ---- */

static void expect_put_and_got(void)
{
    struct job_record record = record_of(7, "box-office");
    struct job_record got = {0};

    cr_assert_eq(bytes_append(&record.problems, "[2]", 3, NULL), ST_OK);
    snprintf(record.event_name, sizeof record.event_name, "Jazz");
    cr_expect_eq(store->calls->put(store, &record, &err), ST_OK);
    cr_expect_gt(record.number, 0);
    cr_expect_eq(store->calls->get(store, id_of(7), &got, &err), ST_OK);
    cr_expect(got.number == record.number && got.state == JOB_QUEUED && got.tickets_total == 7);
    cr_expect_str_eq(got.client, "box-office");
    cr_expect_str_eq(got.event_name, "Jazz");
    cr_expect(got.problems.len == 3 && got.problems.data != record.problems.data);
    job_record_clear(&record);
    job_record_clear(&got);
}

Test(job_store_put, keeps_a_copy_that_get_finds)
{
    on_each_kind(&LIMITS, expect_put_and_got);
}

static void expect_unknown_ids_are_not_found(void)
{
    static const char *const IDS[] = {"", "x", "job00000000000000000000002",
                                      "job000000000000000000000011", "JOB00000000000000000000001"};
    struct job_record record = {0};

    put(1, "");
    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        cr_expect_eq(store->calls->get(store, IDS[i], &record, &err), ST_NOT_FOUND, "%s", IDS[i]);
        cr_expect_eq(store->calls->remove(store, IDS[i], &err), ST_NOT_FOUND, "%s", IDS[i]);
        cr_expect_not(store->calls->was_here(store, NULL, IDS[i]), "%s", IDS[i]);
    }
    cr_expect(is_kept(1));
}

Test(job_store_get, knows_no_other_ids)
{
    on_each_kind(&LIMITS, expect_unknown_ids_are_not_found);
}

static void expect_busy_when_nothing_has_ended(void)
{
    struct job_record record = record_of(JOBS_MAX + 1, "");

    for (size_t i = 1; i <= JOBS_MAX; i++)
        put(i, "");
    cr_expect_eq(store->calls->put(store, &record, &err), ST_BUSY, "%s", kind->name);
    cr_expect_not_null(strstr(err.text, "store-jobs-max"), "%s", err.text);
    cr_expect_not(is_kept(JOBS_MAX + 1));
    finish(2, 50);
    put(JOBS_MAX + 1, "");
    cr_expect(is_kept(1) && !is_kept(2) && is_kept(3) && is_kept(JOBS_MAX + 1));
    cr_expect(was_here(2), "a job that made room is remembered");
}

Test(job_store_put, lets_the_oldest_finished_go_at_the_cap_and_nothing_else)
{
    on_each_kind(&LIMITS, expect_busy_when_nothing_has_ended);
}

static void expect_the_one_that_expires_first_goes(void)
{
    for (size_t i = 1; i <= JOBS_MAX; i++)
        put(i, "");
    finish(3, 40); /* the clock was set back afterwards */
    finish(1, 20);
    finish(2, 30);
    put(5, "");
    cr_expect(!is_kept(1) && is_kept(2) && is_kept(3));
    put(6, "");
    cr_expect(!is_kept(2) && is_kept(3));
    put(7, "");
    cr_expect(!is_kept(3) && is_kept(4));
}

Test(job_store_put, lets_them_go_in_the_order_in_which_they_expire)
{
    on_each_kind(&LIMITS, expect_the_one_that_expires_first_goes);
}

static void expect_nothing_left_without_memory(void)
{
    struct job_record record = record_of(1, "");
    enum status st = ST_NO_MEMORY;
    size_t failures = 0;

    cr_assert_eq(bytes_append(&record.problems, "[3]", 3, NULL), ST_OK);
    for (size_t call = 1;; call++) {
        failing_memory_start(call);
        st = store->calls->put(store, &record, &err);
        if (!failing_memory_stop())
            break;
        failures++;
        cr_expect_eq(st, ST_NO_MEMORY, "%s: call %zu", kind->name, call);
        cr_expect_not(is_kept(1));
    }
    cr_expect_eq(st, ST_OK);
    cr_expect_gt(failures, 0);
    cr_expect(is_kept(1));
    job_record_clear(&record);
}

Test(job_store_put, keeps_nothing_without_memory)
{
    on_each_kind(&LIMITS, expect_nothing_left_without_memory);
}

/* ---- update ---- */

static void expect_moved(void)
{
    struct job_record record = record_of(1, "");
    struct job_record got = {0};

    put(1, "");
    record.state = JOB_RUNNING;
    record.started_ms = 5;
    record.number = 99;
    cr_assert_eq(bytes_append(&record.problems, "[4]", 3, NULL), ST_OK);
    cr_expect_eq(store->calls->update_move(store, &record, &err), ST_OK);
    cr_expect(record.id[0] == '\0' && record.problems.data == NULL);
    cr_expect_eq(store->calls->get(store, id_of(1), &got, &err), ST_OK);
    cr_expect(got.state == JOB_RUNNING && got.started_ms == 5 && got.problems.len == 3);
    cr_expect_neq(got.number, 99, "%s: the number stays", kind->name);
    job_record_clear(&got);
    finish(1, 50);
    cr_expect_eq(store->calls->get(store, id_of(1), &got, &err), ST_OK);
    cr_expect(got.state == JOB_SUCCEEDED && got.document->bytes.len == DOCUMENT_BYTES);
    job_record_clear(&got);
    finish(1, 60);
    cr_expect(is_kept(1));
}

Test(job_store_update_move, puts_the_record_in_the_place_of_the_old_one)
{
    on_each_kind(&LIMITS, expect_moved);
}

static void expect_unknown_is_untouched(void)
{
    cr_expect_eq(finish_with(1, "", 50, DOCUMENT_BYTES), ST_NOT_FOUND, "%s", kind->name);
}

Test(job_store_update_move, leaves_the_record_of_an_unknown_job_untouched)
{
    on_each_kind(&LIMITS, expect_unknown_is_untouched);
}

static void expect_documents_within_their_bytes(void)
{
    for (size_t i = 1; i <= JOBS_MAX; i++)
        put(i, "");
    for (size_t i = 1; i <= DOCUMENTS_MAX; i++)
        finish(i, (int64_t)(10 * i));
    cr_expect(is_kept(1), "%s: all of documents_bytes_max may be used", kind->name);
    cr_expect_eq(finish_with(4, "", 40, 1), ST_OK);
    cr_expect(!is_kept(1) && is_kept(2) && is_kept(3) && is_kept(4));
    cr_expect(was_here(1));
    cr_expect_eq(finish_with(4, "", 50, LIMITS.documents_bytes_max), ST_OK);
    cr_expect(!is_kept(2) && !is_kept(3) && is_kept(4), "%s: its own is no obstacle", kind->name);
}

Test(job_store_update_move, lets_the_oldest_documents_go)
{
    on_each_kind(&LIMITS, expect_documents_within_their_bytes);
}

static void expect_too_large(void)
{
    put(1, "");
    put(2, "");
    finish(2, 10);
    cr_expect_eq(finish_with(1, "", 50, LIMITS.documents_bytes_max + 1), ST_TOO_LARGE);
    cr_expect_not_null(strstr(err.text, "store-bytes-max"), "%s", err.text);
    cr_expect(is_kept(1) && is_kept(2), "%s: nothing went for it", kind->name);
}

Test(job_store_update_move, refuses_a_document_that_never_fits)
{
    on_each_kind(&LIMITS, expect_too_large);
}

/* ---- remove ---- */

static void expect_removed(void)
{
    put(1, "");
    put(2, "");
    finish(2, 10);
    cr_expect_eq(store->calls->remove(store, id_of(1), &err), ST_OK);
    cr_expect_eq(store->calls->remove(store, id_of(2), &err), ST_OK);
    cr_expect_eq(store->calls->remove(store, id_of(2), &err), ST_NOT_FOUND);
    cr_expect(!is_kept(1) && !is_kept(2) && !was_here(1) && !was_here(2));
    for (size_t i = 3; i < 3 + JOBS_MAX; i++)
        put(i, "");
}

Test(job_store_remove, erases_without_remembering)
{
    on_each_kind(&LIMITS, expect_removed);
}

/* ---- list ---- */

static size_t list(const struct job_list_query *query, struct job_record *records)
{
    size_t count = 999;

    cr_assert_eq(store->calls->list(store, query, records, &count, &err), ST_OK, "%s", kind->name);
    return count;
}

/* What is listed, as text: the jobs' tickets_total. */
static const char *listed(const struct job_list_query *query)
{
    static char text[256];
    struct job_record records[JOB_LIST_MAX] = {0};
    size_t const count = list(query, records);
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%zu ", records[i].tickets_total);
        job_record_clear(&records[i]);
    }
    return text;
}

static void expect_lists(void)
{
    static const struct {
        const char *name;
        struct job_list_query query;
        const char *expected;
    } ROWS[] = {
        {"all", {NULL, -1, UINT64_MAX, JOB_LIST_MAX}, "6 4 3 2 1 "},
        {"limited", {NULL, -1, UINT64_MAX, 2}, "6 4 "},
        {"one client's", {"a", -1, UINT64_MAX, 10}, "6 4 2 "},
        {"one client's, limited", {"a", -1, UINT64_MAX, 2}, "6 4 "},
        {"of the empty name", {"", -1, UINT64_MAX, 10}, ""},
        {"of an unknown client", {"c", -1, UINT64_MAX, 10}, ""},
        {"of a state", {NULL, JOB_SUCCEEDED, UINT64_MAX, 10}, "4 1 "},
        {"of a state and a client", {"b", JOB_SUCCEEDED, UINT64_MAX, 10}, "1 "},
        {"of a state that none has", {NULL, JOB_FAILED, UINT64_MAX, 10}, ""},
        {"of nothing", {NULL, -1, 1, 10}, ""},
    };

    for (size_t i = 1; i <= 6; i++)
        put(i, i % 2 == 0 ? "a" : "b");
    cr_assert_eq(store->calls->remove(store, id_of(5), &err), ST_OK);
    cr_assert_eq(finish_with(4, "a", 10, 1), ST_OK);
    cr_assert_eq(finish_with(1, "b", 10, 1), ST_OK);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_expect_str_eq(listed(&ROWS[i].query), ROWS[i].expected, "%s: %s", kind->name,
                         ROWS[i].name);
}

Test(job_store_list, is_newest_first_of_what_is_asked_for)
{
    on_each_kind(&LIMITS_WIDE, expect_lists);
}

static void expect_pages_hold_each_job_once(void)
{
    enum { COUNT = 6000, KEPT_EVERY = 3, PAGE = 99 };
    struct job_record records[PAGE] = {0};
    struct job_list_query query = {NULL, -1, UINT64_MAX, PAGE};
    size_t expected = COUNT;
    size_t count;

    for (size_t i = 1; i <= COUNT; i++) {
        put(i, "");
        if (i % KEPT_EVERY != 0) /* most go, so that the store tidies up */
            cr_assert_eq(store->calls->remove(store, id_of(i), &err), ST_OK);
    }
    do {
        count = list(&query, records);
        for (size_t i = 0; i < count; i++, expected -= KEPT_EVERY) {
            cr_expect_eq(records[i].tickets_total, expected, "%s", kind->name);
            query.before = records[i].number;
            job_record_clear(&records[i]);
        }
    } while (count == PAGE);
    cr_expect_eq(expected, 0, "%s", kind->name);
}

Test(job_store_list, pages_through_all_jobs)
{
    on_each_kind(&LIMITS_WIDE, expect_pages_hold_each_job_once);
}

static void expect_empty_list_without_memory(void)
{
    static const struct job_list_query QUERY = {NULL, -1, UINT64_MAX, 10};
    struct job_record records[10] = {0};
    size_t count = 9;

    for (size_t i = 1; i <= 3; i++) {
        struct job_record record = record_of(i, "");

        cr_assert_eq(bytes_append(&record.problems, "[5]", 3, NULL), ST_OK);
        cr_assert_eq(store->calls->put(store, &record, &err), ST_OK);
        job_record_clear(&record);
    }
    failing_memory_start(3);
    cr_expect_eq(store->calls->list(store, &QUERY, records, &count, &err), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_eq(count, 0);
    for (size_t i = 0; i < 10; i++)
        cr_expect(records[i].problems.data == NULL && records[i].id[0] == '\0', "%zu", i);
}

Test(job_store_list, is_empty_without_memory)
{
    on_each_kind(&LIMITS, expect_empty_list_without_memory);
}

/* ---- sweep, was_here ---- */

static void expect_swept(void)
{
    put(1, "a");
    put(2, "a");
    put(3, "b");
    cr_assert_eq(finish_with(1, "a", 100, 1), ST_OK);
    cr_assert_eq(finish_with(2, "a", 101, 1), ST_OK);
    store->calls->sweep(store, 99);
    cr_expect(is_kept(1) && !was_here(1), "%s: just before", kind->name);
    store->calls->sweep(store, 100);
    cr_expect(!is_kept(1) && was_here(1) && is_kept(2) && !was_here(2), "%s: at once", kind->name);
    store->calls->sweep(store, 100 + GONE_TTL_MS - 1);
    cr_expect(was_here(1) && was_here(2) && is_kept(3), "%s: what has no end stays", kind->name);
    store->calls->sweep(store, 100 + GONE_TTL_MS);
    cr_expect(!was_here(1) && was_here(2), "%s: forgotten", kind->name);
    cr_expect(store->calls->was_here(store, "a", id_of(2)));
    cr_expect_not(store->calls->was_here(store, "b", id_of(2)), "%s: others' jobs", kind->name);
}

Test(job_store_sweep, erases_what_has_expired_and_remembers_it_for_a_time)
{
    on_each_kind(&LIMITS, expect_swept);
}

static void expect_many_swept(void)
{
    enum { COUNT = 1000 };

    for (size_t i = 1; i <= COUNT; i++) {
        put(i, "");
        cr_assert_eq(finish_with(i, "", 10, 1), ST_OK);
    }
    store->calls->sweep(store, 10);
    for (size_t i = 1; i <= COUNT; i++)
        cr_expect(!is_kept(i) && was_here(i), "%s: %zu", kind->name, i);
}

Test(job_store_sweep, erases_all_of_them_at_once)
{
    on_each_kind(&LIMITS_WIDE, expect_many_swept);
}

static void expect_newest_remembered(void)
{
    for (size_t i = 1; i <= JOB_GONE_MAX + 2; i++) {
        put(i, "");
        finish(i, (int64_t)i);
        store->calls->sweep(store, (int64_t)i);
        if (i == GONE_TTL_MS / 2)
            cr_expect(was_here(1));
    }
    cr_expect_not(was_here(2));
    cr_expect(was_here(3));
    cr_expect(was_here(JOB_GONE_MAX + 2));
}

Test(job_store_was_here, remembers_a_bounded_number)
{
    static const struct job_store_limits LIMITS_LONG = {
        .jobs_max = 1, .documents_bytes_max = 1000, .gone_ttl_ms = INT64_C(1) << 40};

    on_each_kind(&LIMITS_LONG, expect_newest_remembered);
}

/* ---- open ---- */

Test(job_store_open, leaves_nothing_without_memory)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        size_t failures = 0;

        for (size_t call = 1;; call++, failures++) {
            enum status st;

            failing_memory_start(call);
            st = KINDS[i].open(&LIMITS, &store, NULL);
            if (!failing_memory_stop())
                break;
            cr_expect_eq(st, ST_NO_MEMORY);
            cr_expect_null(store);
        }
        cr_expect_gt(failures, 0);
        store->calls->close(&store);
    }
}
