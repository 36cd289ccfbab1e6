#include "service/batch_json.h"

#include "tests/support/table_rules.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#define REQUESTS "fixtures/requests/"

enum { FIXTURES_INVALID_MIN = 60, FIXTURES_VALID_MIN = 15, PATH_BYTES = 512 };

static const struct batch_limits LIMITS = {.tickets_max = 50000};
static struct batch batch;
static struct problems problems;
static struct bytes body;
static struct error err;

static void start_parsing(void)
{
    cr_assert(batch_json_start(PARSE_BYTES_MAX_DEFAULT, NULL) == ST_OK);
}

static void clear_all(void)
{
    batch_clear(&batch);
    problems_clear(&problems);
    bytes_clear(&body);
    err = (struct error){0};
    cr_expect(batch_json_bytes_in_use() == 0);
}

TestSuite(batch_json_read, .init = start_parsing, .fini = clear_all, .timeout = 60);

static enum status read_body(void)
{
    batch_clear(&batch);
    problems_clear(&problems);
    return batch_json_read(&body, &TABLE_RULES, &LIMITS, &batch, &problems, &err);
}

static void put_body(const char *data, size_t len)
{
    bytes_clear(&body);
    cr_assert(bytes_append(&body, data, len, NULL) == ST_OK);
}

static void load_file(const char *path, struct bytes *bytes)
{
    FILE *file = fopen(path, "rb");
    char block[4096];
    size_t len;

    cr_assert(file != NULL, "%s", path);
    bytes_clear(bytes);
    while ((len = fread(block, 1, sizeof block, file)) > 0)
        cr_assert(bytes_append(bytes, block, len, NULL) == ST_OK);
    cr_assert(!ferror(file), "%s", path);
    fclose(file);
}

/* The names in a folder but those that begin with a dot, one visit each; returns how many. */
static size_t walk(const char *folder, void (*visit)(const char *path))
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t count = 0;

    cr_assert(dir != NULL, "%s (tests run in the root of the checkout)", folder);
    while ((entry = readdir(dir)) != NULL) {
        char path[PATH_BYTES];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        visit(path);
        count++;
    }
    closedir(dir);
    return count;
}

/* ---- fixtures ---- */

static void expect_refused(const char *folder)
{
    struct bytes expected = {0};
    struct bytes report = {0};
    char path[PATH_BYTES + 16];

    snprintf(path, sizeof path, "%s/input.json", folder);
    load_file(path, &body);
    snprintf(path, sizeof path, "%s/error.json", folder);
    load_file(path, &expected);
    cr_expect(read_body() == ST_INVALID, "%s is accepted", folder);
    cr_expect(err.status == ST_INVALID && err.text[0] != '\0', "%s", folder);
    cr_expect(batch.tickets == NULL && batch.arena.chunks == NULL, "%s", folder);
    cr_assert(problems_json_write(&problems, &report, NULL) == ST_OK);
    cr_expect(report.len == expected.len && memcmp(report.data, expected.data, report.len) == 0,
              "%s: %.*s", folder, (int)report.len, (const char *)report.data);
    bytes_clear(&report);
    bytes_clear(&expected);
}

Test(batch_json_read, refuses_every_invalid_fixture_with_its_errors)
{
    cr_expect(walk(REQUESTS "invalid/", expect_refused) >= FIXTURES_INVALID_MIN);
}

static void expect_accepted(const char *path)
{
    load_file(path, &body);
    cr_expect(read_body() == ST_OK, "%s: %s", path, err.text);
    cr_expect(problems.count == 0 || batch.tickets_skipped > 0, "%s", path);
}

Test(batch_json_read, accepts_every_valid_fixture)
{
    cr_expect(walk(REQUESTS "valid/", expect_accepted) >= FIXTURES_VALID_MIN);
    expect_accepted(REQUESTS "single.json");
    expect_accepted(REQUESTS "opening-night-500.json");
    cr_expect(batch.tickets_count == 500);
    cr_expect_str_eq(batch.tickets[0].holder.data, "Lucía Fernández");
    cr_expect_str_eq(batch.tickets[499].id.data, "tkt-000500");
}

Test(batch_json_read, composes_names_and_settles_separators)
{
    expect_accepted(REQUESTS "valid/name-decomposed.json");
    cr_expect_str_eq(batch.tickets[0].holder.data, "René Dürr");
    expect_accepted(REQUESTS "valid/separators.json");
    cr_expect_str_eq(batch.event.name.data, "Open Air Night One");
    cr_expect_str_eq(batch.event.notes.data, "One\nTwo\nThree\nFour Five\n");
    cr_expect_str_eq(batch.tickets[0].holder.data, "Ana Li");
    expect_accepted(REQUESTS "valid/ids-not-ascii.json");
    cr_expect_str_eq(batch.tickets[1].id.data, "A\u0308O\u0308-1");
}

Test(batch_json_read, keeps_the_problems_of_tickets_left_out)
{
    expect_accepted(REQUESTS "valid/skip-two-of-four.json");
    cr_expect(batch.tickets_count == 2 && batch.tickets_skipped == 2 && problems.count == 2);
    cr_expect(batch.tickets[1].request_index == 3);
}

/* ---- hostile bodies ---- */

Test(batch_json_read, takes_a_body_of_no_bytes)
{
    cr_expect(read_body() == ST_INVALID && problems.count == 1);
    cr_expect_str_eq(problems.listed[0].code, PROBLEM_MALFORMED_JSON);
    cr_expect_str_eq(problems.listed[0].detail.data, "line 1, column 1: the body is empty");
}

Test(batch_json_read, refuses_every_proper_prefix_of_a_batch)
{
    struct bytes whole = {0};

    load_file(REQUESTS "single.json", &whole);
    while (whole.data[whole.len - 1] == '\n')
        whole.len--;
    for (size_t len = 0; len < whole.len; len++) {
        put_body((const char *)whole.data, len);
        cr_expect(read_body() == ST_INVALID, "%zu bytes", len);
        cr_expect(problems.count == 1 && strcmp(problems.listed[0].code, "malformed_json") == 0,
                  "%zu bytes", len);
    }
    bytes_clear(&whole);
}

Test(batch_json_read, counts_nesting_outside_of_strings_only)
{
    static const char BRACKETS[] = "{\"x\":\"[[[[[[[[[[[[[[[[[[[[[\\\"{{{{{{{{{{{{{{{\"}";

    put_body(BRACKETS, strlen(BRACKETS));
    cr_expect(read_body() == ST_INVALID);
    cr_expect_str_eq(problems.listed[0].code, "unknown_member");
}

/* {"x":[{},{},...]}: 79 bytes of tree for each byte of text. */
static void put_blow_up(size_t objects)
{
    bytes_clear(&body);
    cr_assert(bytes_append(&body, "{\"x\":[{}", 8, NULL) == ST_OK);
    for (size_t i = 1; i < objects; i++)
        cr_assert(bytes_append(&body, ",{}", 3, NULL) == ST_OK);
    cr_assert(bytes_append(&body, "]}", 2, NULL) == ST_OK);
}

Test(batch_json_read, bounds_the_memory_of_a_tree_that_blows_up)
{
    put_blow_up(100000);
    cr_expect(read_body() == ST_INVALID); /* the member is unknown, but there was room */
    cr_assert(batch_json_start((size_t)4 << 20, NULL) == ST_OK);
    cr_expect(read_body() == ST_TOO_LARGE);
    cr_expect(strstr(err.text, "parse-bytes-max") != NULL, "%s", err.text);
    cr_expect(problems.count == 0 && batch.arena.chunks == NULL);
    cr_expect(batch_json_bytes_in_use() == 0);
    expect_accepted(REQUESTS "single.json");
}

/*
 * Tokens that jansson 2.14 cannot bear to see cut: the first that is longer than its buffer of 16
 * bytes, of each kind. A number or a word ends only at the byte behind it, which is then unsaved.
 */
static const char *const LONG_TOKENS[] = {
    "{\"a\": 1.2345678901234567890123e+10}", "{\"a\": 123456789012345678}",
    "{\"a\": truefalsetruefalsetrue}",       "{\"a\": \"a text of more than sixteen bytes\"}",
    "{\"a\": \"\\u00e9\\u00e9\\u00e9\"}",    "{\"a-name-of-more-than-sixteen-bytes\": 1}",
};

/* Read the body with ever more memory until there is enough; returns how much that is. */
static size_t read_with_growing_limit(size_t step, enum status expected)
{
    enum { LIMIT_MAX = 100000 };
    enum status st = ST_TOO_LARGE;
    size_t limit = 0;

    while (st == ST_TOO_LARGE && limit < LIMIT_MAX) {
        limit += step;
        cr_assert(batch_json_start(limit, NULL) == ST_OK);
        st = read_body();
        cr_expect(batch_json_bytes_in_use() == 0, "limit %zu", limit);
    }
    cr_expect(st == expected, "limit %zu: %s", limit, err.text);
    return limit;
}

Test(batch_json_read, stays_whole_wherever_memory_ends)
{
    for (size_t i = 0; i < sizeof LONG_TOKENS / sizeof *LONG_TOKENS; i++) {
        put_body(LONG_TOKENS[i], strlen(LONG_TOKENS[i]));
        cr_expect(read_with_growing_limit(1, ST_INVALID) > 100, "%s", LONG_TOKENS[i]);
    }
    load_file(REQUESTS "single.json", &body);
    cr_expect(read_with_growing_limit(8, ST_OK) > 1000);
}

/* ---- two threads ---- */

static sem_t holder_is_parsing, holder_may_end;

/* Called in the middle of a parse, with its tree in memory. */
static bool is_zone_after_a_while(struct text name)
{
    sem_post(&holder_is_parsing);
    sem_wait(&holder_may_end);
    return TABLE_RULES.is_zone(name);
}

static void *hold_memory(void *status)
{
    struct text_rules slow = TABLE_RULES;
    static struct problems held_problems;
    struct batch held = {0};
    struct bytes single = {0};

    slow.is_zone = is_zone_after_a_while;
    load_file(REQUESTS "single.json", &single);
    *(enum status *)status = batch_json_read(&single, &slow, &LIMITS, &held, &held_problems, NULL);
    batch_clear(&held);
    problems_clear(&held_problems);
    bytes_clear(&single);
    return NULL;
}

Test(batch_json_read, is_busy_while_others_hold_the_memory)
{
    enum status held = ST_COUNT;
    pthread_t holder;

    cr_assert(sem_init(&holder_is_parsing, 0, 0) == 0 && sem_init(&holder_may_end, 0, 0) == 0);
    cr_assert(batch_json_start(12 * 1024, NULL) == ST_OK);
    expect_accepted(REQUESTS "single.json");
    cr_assert(pthread_create(&holder, NULL, hold_memory, &held) == 0);
    sem_wait(&holder_is_parsing);
    cr_expect(batch_json_bytes_in_use() > 3 * 1024);
    cr_assert(batch_json_start(batch_json_bytes_in_use() + 1024, NULL) == ST_OK);
    cr_expect(read_body() == ST_BUSY, "%s", err.text);
    sem_post(&holder_may_end);
    pthread_join(holder, NULL);
    cr_expect(held == ST_OK);
    expect_accepted(REQUESTS "single.json");
}

/* ---- the report ---- */

Test(problems_json_write, escapes_what_json_and_terminals_need)
{
    static const char EXPECTED[] =
        "{\"errors\":[\n"
        "{\"pointer\":\"/a\\\"\\\\\\u0001\\u007f\",\"code\":\"empty\",\"detail\":\"caf\u00E9\"},\n"
        "{\"pointer\":\"\",\"code\":\"missing\",\"detail\":\"\"}\n"
        "],\"count\":2}\n";
    struct bytes out = {0};

    problems_add(&problems, "/a\"\\\x01\x7F", "empty", "café");
    problems_add(&problems, "", "missing", "%s", "");
    cr_assert(problems_json_write(&problems, &out, NULL) == ST_OK);
    cr_expect(out.len == strlen(EXPECTED) && memcmp(out.data, EXPECTED, out.len) == 0, "%.*s",
              (int)out.len, (const char *)out.data);
    bytes_clear(&out);
    problems_clear(&problems);
}

Test(problems_json_write, reports_nothing_as_an_empty_list)
{
    static const char EXPECTED[] = "{\"errors\":[],\"count\":0}\n";
    struct bytes out = {0};

    cr_assert(problems_json_write(&problems, &out, NULL) == ST_OK);
    cr_expect(out.len == strlen(EXPECTED) && memcmp(out.data, EXPECTED, out.len) == 0);
    bytes_clear(&out);
}

Test(problems_json_write, counts_what_it_does_not_list)
{
    struct bytes out = {0};

    for (int i = 0; i < PROBLEMS_LISTED_MAX + 1; i++)
        problems_add(&problems, "/x", "empty", "x");
    cr_assert(problems_json_write(&problems, &out, NULL) == ST_OK);
    cr_assert(bytes_append(&out, "", 1, NULL) == ST_OK);
    cr_expect(strstr((const char *)out.data, "],\"count\":101}\n") != NULL);
    bytes_clear(&out);
    problems_clear(&problems);
}
