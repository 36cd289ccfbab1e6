#include "service/metrics.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a reader of the exposition format 0.0.4, as strict as our text is ---- */

enum {
    NAME_BYTES = 100,
    LABELS_BYTES = 240,
    FAMILIES_MAX = 60,
    SERIES_MAX = 4000,
};

struct sample {
    char name[NAME_BYTES];
    char labels[LABELS_BYTES]; /* without braces */
    double value;
};

enum type { COUNTER, GAUGE, HISTOGRAM };

struct exposition {
    const char *at;
    char families[FAMILIES_MAX][NAME_BYTES];
    size_t families_count;
    enum type type; /* of the last family */
    struct sample series[SERIES_MAX];
    size_t series_count;
};

static struct exposition text;

/* Of a label set of a histogram, all that is not le. */
static void base_labels(const char *labels, char base[LABELS_BYTES])
{
    const char *le = strstr(labels, "le=\"");
    size_t len = le == NULL ? strlen(labels) : (size_t)(le - labels);

    if (le != NULL && len > 0)
        len--;
    memcpy(base, labels, len);
    base[len] = '\0';
}

static double bound_of(const struct sample *sample)
{
    const char *le = strstr(sample->labels, "le=\"");

    return le == NULL ? -1 : strtod(le + 4, NULL);
}

static const char *family_name(void)
{
    return text.families[text.families_count - 1];
}

/* "_bucket" of family_bucket; NULL when the sample is of another family. */
static const char *suffix_of(const struct sample *sample)
{
    size_t const len = strlen(family_name());

    return strncmp(sample->name, family_name(), len) == 0 ? sample->name + len : NULL;
}

static bool is_same_series(const struct sample *a, const struct sample *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->labels, b->labels) == 0;
}

/* The order of a histogram's samples: buckets, rising, up to +Inf, then sum, then count. */
static const char *histogram_fault(const struct sample *sample, const struct sample *before)
{
    const char *suffix = suffix_of(sample);
    const char *suffix_before = before == NULL ? NULL : suffix_of(before);
    bool const is_first = suffix_before == NULL || strcmp(suffix_before, "_count") == 0;
    char base[LABELS_BYTES], base_before[LABELS_BYTES] = "";

    base_labels(sample->labels, base);
    if (is_first)
        return strcmp(suffix, "_bucket") == 0 && bound_of(sample) >= 0 ? NULL : "no first bucket";
    base_labels(before->labels, base_before);
    if (strcmp(base, base_before) != 0)
        return "other labels within a histogram";
    if (strcmp(suffix, "_bucket") == 0)
        return strcmp(suffix_before, "_bucket") == 0 && bound_of(sample) > bound_of(before) &&
                       sample->value >= before->value
                   ? NULL
                   : "a bucket that does not rise";
    if (strcmp(suffix, "_sum") == 0)
        return strstr(before->labels, "le=\"+Inf\"") != NULL ? NULL : "no bucket +Inf";
    if (strcmp(suffix, "_count") != 0 || strcmp(suffix_before, "_sum") != 0)
        return "no sum before the count";
    return sample->value == before[-1].value ? NULL : "a count that is not the last bucket's";
}

static const char *sample_fault(const struct sample *sample)
{
    const struct sample *before = text.series_count == 0 ? NULL : sample - 1;
    const char *suffix;

    if (text.families_count == 0 || (suffix = suffix_of(sample)) == NULL)
        return "a sample without its family";
    for (const struct sample *other = text.series; other < sample; other++)
        if (is_same_series(other, sample))
            return "a series twice";
    if (sample->value < 0)
        return "a negative value";
    if (text.type == HISTOGRAM)
        return histogram_fault(sample, before);
    if (*suffix != '\0')
        return "a sample without its family";
    return NULL;
}

static size_t name_len(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

/* One name="value"; text.at is behind it. */
static const char *read_label(void)
{
    size_t const name = name_len(text.at);
    size_t value;

    if (name == 0 || strncmp(text.at + name, "=\"", 2) != 0)
        return "a broken label";
    text.at += name + 2;
    value = strcspn(text.at, "\"\\\n");
    if (value == 0 || text.at[value] != '"')
        return "a broken label value";
    text.at += value + 1;
    return NULL;
}

static const char *read_labels(struct sample *sample)
{
    const char *first = text.at + 1;
    const char *fault = NULL;

    if (*text.at != '{')
        return NULL;
    do {
        text.at++;
        fault = read_label();
    } while (fault == NULL && *text.at == ',');
    if (fault != NULL)
        return fault;
    if (*text.at != '}')
        return "labels without an end";
    snprintf(sample->labels, sizeof sample->labels, "%.*s", (int)(text.at - first), first);
    text.at++;
    return NULL;
}

static const char *read_sample(void)
{
    struct sample *sample = &text.series[text.series_count];
    size_t const len = name_len(text.at);
    const char *fault;
    char *end;

    if (text.series_count == SERIES_MAX)
        return "too many series";
    *sample = (struct sample){0};
    snprintf(sample->name, sizeof sample->name, "%.*s", (int)len, text.at);
    text.at += len;
    fault = read_labels(sample);
    if (fault != NULL)
        return fault;
    if (text.at[0] != ' ' || text.at[1] < '0' || text.at[1] > '9')
        return "no value";
    sample->value = strtod(text.at + 1, &end);
    if (*end != '\n')
        return "no value";
    text.at = end + 1;
    fault = sample_fault(sample);
    text.series_count++;
    return fault;
}

static const char *last_family_fault(void)
{
    const struct sample *last = &text.series[text.series_count];

    if (text.families_count == 0 || text.type != HISTOGRAM || text.series_count == 0 ||
        suffix_of(last - 1) == NULL)
        return NULL;
    return strcmp(suffix_of(last - 1), "_count") == 0 ? NULL : "a histogram without its count";
}

static const char *read_type(const char *name)
{
    static const char *const TYPES[] = {"counter", "gauge", "histogram"};
    char line[NAME_BYTES + 30];

    for (enum type type = COUNTER; type <= HISTOGRAM; type++) {
        snprintf(line, sizeof line, "# TYPE %s %s\n", name, TYPES[type]);
        if (strncmp(text.at, line, strlen(line)) == 0) {
            text.at += strlen(line);
            text.type = type;
            return NULL;
        }
    }
    return "no TYPE behind HELP";
}

static const char *read_family(void)
{
    const char *fault = last_family_fault();
    const char *help = text.at + strlen("# HELP ");
    size_t const len = name_len(help);
    char *name;
    bool is_total;

    if (fault != NULL)
        return fault;
    if (text.families_count == FAMILIES_MAX)
        return "too many families";
    name = text.families[text.families_count];
    snprintf(name, NAME_BYTES, "%.*s", (int)len, help);
    for (size_t i = 0; i < text.families_count; i++)
        if (strcmp(text.families[i], name) == 0)
            return "a family twice";
    if (strncmp(name, "ticketpress_", 12) != 0)
        return "a name without the prefix";
    if (help[len] != ' ' || help[len + 1] == '\n')
        return "no words in HELP";
    text.at = strchr(help, '\n') + 1;
    fault = read_type(name);
    if (fault != NULL)
        return fault;
    text.families_count++;
    is_total = len > 6 && strcmp(name + len - 6, "_total") == 0;
    return is_total == (text.type == COUNTER) ? NULL : "_total and counter do not agree";
}

/* NULL, or the first fault; text then has what was read. */
static const char *read_exposition(const char *from)
{
    const char *fault = NULL;

    text.families_count = 0;
    text.series_count = 0;
    text.at = from;
    if (*from == '\0' || from[strlen(from) - 1] != '\n')
        return "no line feed at the end";
    while (*text.at != '\0' && fault == NULL)
        fault = strncmp(text.at, "# HELP ", 7) == 0 ? read_family() : read_sample();
    return fault != NULL ? fault : last_family_fault();
}

/* -1: there is no such series. */
static double value_of(const char *name, const char *labels)
{
    for (size_t i = 0; i < text.series_count; i++)
        if (strcmp(text.series[i].name + strlen("ticketpress_"), name) == 0 &&
            strcmp(text.series[i].labels, labels) == 0)
            return text.series[i].value;
    return -1;
}

#define HEAD           "# HELP ticketpress_a A.\n# TYPE ticketpress_a gauge\n"
#define HISTOGRAM_HEAD "# HELP ticketpress_h H.\n# TYPE ticketpress_h histogram\n"
#define BUCKETS        "ticketpress_h_bucket{le=\"1\"} 2\nticketpress_h_bucket{le=\"+Inf\"} 3\n"

static const struct {
    const char *text;
    const char *fault;
} READER_ROWS[] = {
    {HEAD "ticketpress_a 1\n", NULL},
    {HEAD "ticketpress_a{b=\"c\"} 1.5\nticketpress_a{b=\"d\",e=\"{f}\"} 2\n", NULL},
    {HISTOGRAM_HEAD BUCKETS "ticketpress_h_sum 4\nticketpress_h_count 3\n", NULL},
    {"", "no line feed at the end"},
    {HEAD "ticketpress_a 1", "no line feed at the end"},
    {"ticketpress_a 1\n", "a sample without its family"},
    {HEAD "ticketpress_b 1\n", "a sample without its family"},
    {HEAD "ticketpress_ab 1\n", "a sample without its family"},
    {"# HELP ticketpress_a A.\nticketpress_a 1\n", "no TYPE behind HELP"},
    {"# TYPE ticketpress_a gauge\nticketpress_a 1\n", "no value"},
    {"# HELP ticketpress_a \n# TYPE ticketpress_a gauge\n", "no words in HELP"},
    {"# HELP a A.\n# TYPE a gauge\n", "a name without the prefix"},
    {"# HELP ticketpress_a A.\n# TYPE ticketpress_a counter\n", "_total and counter do not agree"},
    {HEAD HEAD, "a family twice"},
    {HEAD "ticketpress_a 1\nticketpress_a 1\n", "a series twice"},
    {HEAD "ticketpress_a -1\n", "no value"},
    {HEAD "ticketpress_a\n", "no value"},
    {HEAD "ticketpress_a \n", "no value"},
    {HEAD "ticketpress_a 1 2\n", "no value"},
    {HEAD "ticketpress_a{b=c} 1\n", "a broken label"},
    {HEAD "ticketpress_a{b=\"\"} 1\n", "a broken label value"},
    {HEAD "ticketpress_a{b=\"c\"x} 1\n", "labels without an end"},
    {HISTOGRAM_HEAD BUCKETS, "a histogram without its count"},
    {HISTOGRAM_HEAD BUCKETS HEAD, "a histogram without its count"},
    {HISTOGRAM_HEAD "ticketpress_h_sum 4\n", "no first bucket"},
    {HISTOGRAM_HEAD "ticketpress_h_bucket{le=\"1\"} 2\nticketpress_h_bucket{le=\"2\"} 1\n",
     "a bucket that does not rise"},
    {HISTOGRAM_HEAD "ticketpress_h_bucket{le=\"2\"} 1\nticketpress_h_bucket{le=\"1\"} 2\n",
     "a bucket that does not rise"},
    {HISTOGRAM_HEAD "ticketpress_h_bucket{le=\"1\"} 2\nticketpress_h_sum 4\n", "no bucket +Inf"},
    {HISTOGRAM_HEAD BUCKETS "ticketpress_h_count 3\n", "no sum before the count"},
    {HISTOGRAM_HEAD BUCKETS "ticketpress_h_sum 4\nticketpress_h_count 2\n",
     "a count that is not the last bucket's"},
    {HISTOGRAM_HEAD BUCKETS "ticketpress_h_sum{b=\"c\"} 4\n", "other labels within a histogram"},
};

Test(read_exposition, refuses_each_fault)
{
    for (size_t i = 0; i < sizeof READER_ROWS / sizeof *READER_ROWS; i++) {
        const char *fault = read_exposition(READER_ROWS[i].text);

        if (READER_ROWS[i].fault == NULL)
            cr_expect_null(fault, "%s: %s", READER_ROWS[i].text, fault);
        else
            cr_expect(fault != NULL && strcmp(fault, READER_ROWS[i].fault) == 0, "%s: %s",
                      READER_ROWS[i].text, fault == NULL ? "no fault" : fault);
    }
}

/* ---- the text of some metrics ---- */

static struct metrics *metrics;
static struct bytes out;

static const uint64_t LAG_COUNTS[] = {5, 0, 2, 1};

static uint64_t lag_bound_us(size_t bucket)
{
    static const uint64_t BOUNDS_US[] = {100, 2500, 1000000};

    cr_assert(bucket < 3, "the last has no bound");
    return BOUNDS_US[bucket];
}

static struct metrics_gauges gauges = {
    .http_connections = 3,
    .http_parked_connections = 2,
    .http_request_bytes_held = 4096,
    .front_end_lag = {.counts = LAG_COUNTS,
                      .buckets_count = 4,
                      .bound_us = lag_bound_us,
                      .sum_us = 3000001},
    .pool = {.threads = 4,
             .busy = 1,
             .queued = {[POOL_URGENT] = 7, [POOL_BULK] = 8},
             .oldest_wait_ms = 1250,
             .done = 10,
             .failed = 11,
             .cancelled = 12,
             .timed_out = 13,
             .threads_given_up = 14},
    .jobs_running = 15,
    .queued_tickets = 16,
    .log_lines_lost = 17,
};

static void setup(void)
{
    metrics = metrics_new();
    cr_assert_not_null(metrics);
}

static void teardown(void)
{
    metrics_free(&metrics);
    cr_expect_null(metrics);
    bytes_clear(&out);
}

TestSuite(metrics_write, .init = setup, .fini = teardown);
TestSuite(metrics_count, .init = setup, .fini = teardown);

static const char *write_text(void)
{
    bytes_clear(&out);
    cr_assert(metrics_write(metrics, &gauges, &out, NULL) == ST_OK);
    cr_assert(bytes_append(&out, "", 1, NULL) == ST_OK);
    return (const char *)out.data;
}

static void scrape(void)
{
    const char *fault = read_exposition(write_text());

    cr_assert_null(fault, "%s before: %.200s", fault, text.at);
}

static void request(enum metrics_route route, const char *method, unsigned code,
                    uint64_t duration_us)
{
    metrics_count_request(
        metrics, &(struct metrics_request){
                     .route = route, .method = method, .code = code, .duration_us = duration_us});
}

static const char *const FAMILIES[] = {"http_requests_total",
                                       "http_request_duration_seconds",
                                       "http_connections",
                                       "http_parked_connections",
                                       "http_request_bytes_held",
                                       "front_end_lag_seconds",
                                       "pool_threads",
                                       "pool_threads_busy",
                                       "pool_queued_tasks",
                                       "pool_tasks_total",
                                       "pool_oldest_wait_seconds",
                                       "pool_threads_given_up_total",
                                       "jobs_total",
                                       "job_duration_seconds",
                                       "jobs_running",
                                       "queued_tickets",
                                       "tickets_total",
                                       "documents_bytes_total",
                                       "rejections_total",
                                       "log_lines_lost_total",
                                       "build_info"};

Test(metrics_write, has_every_family_from_the_start)
{
    scrape();
    cr_assert_eq(text.families_count, sizeof FAMILIES / sizeof *FAMILIES);
    for (size_t i = 0; i < text.families_count; i++)
        cr_expect_str_eq(text.families[i] + strlen("ticketpress_"), FAMILIES[i]);
}

static const struct {
    const char *name, *labels;
    double value;
} GAUGE_ROWS[] = {
    {"http_connections", "", 3},
    {"http_parked_connections", "", 2},
    {"http_request_bytes_held", "", 4096},
    {"front_end_lag_seconds_bucket", "le=\"0.0001\"", 5},
    {"front_end_lag_seconds_bucket", "le=\"0.0025\"", 5},
    {"front_end_lag_seconds_bucket", "le=\"1\"", 7},
    {"front_end_lag_seconds_bucket", "le=\"+Inf\"", 8},
    {"front_end_lag_seconds_sum", "", 3.000001},
    {"front_end_lag_seconds_count", "", 8},
    {"pool_threads", "", 4},
    {"pool_threads_busy", "", 1},
    {"pool_queued_tasks", "lane=\"urgent\"", 7},
    {"pool_queued_tasks", "lane=\"bulk\"", 8},
    {"pool_oldest_wait_seconds", "", 1.25},
    {"pool_tasks_total", "outcome=\"done\"", 10},
    {"pool_tasks_total", "outcome=\"failed\"", 11},
    {"pool_tasks_total", "outcome=\"cancelled\"", 12},
    {"pool_tasks_total", "outcome=\"timed_out\"", 13},
    {"pool_threads_given_up_total", "", 14},
    {"jobs_running", "", 15},
    {"queued_tickets", "", 16},
    {"log_lines_lost_total", "", 17},
    {"build_info", "version=\"" TICKETPRESS_VERSION "\"", 1},
    {"jobs_total", "state=\"succeeded\"", 0},
    {"jobs_total", "state=\"failed\"", 0},
    {"jobs_total", "state=\"cancelled\"", 0},
    {"job_duration_seconds_count", "", 0},
    {"tickets_total", "", 0},
    {"documents_bytes_total", "", 0},
    {"rejections_total", "cause=\"busy\"", 0},
};

Test(metrics_write, shows_what_it_is_given)
{
    scrape();
    for (size_t i = 0; i < sizeof GAUGE_ROWS / sizeof *GAUGE_ROWS; i++)
        cr_expect_eq(value_of(GAUGE_ROWS[i].name, GAUGE_ROWS[i].labels), GAUGE_ROWS[i].value,
                     "%s{%s}", GAUGE_ROWS[i].name, GAUGE_ROWS[i].labels);
}

Test(metrics_write, says_so_when_memory_runs_out)
{
    uint8_t place = 0;
    struct bytes full = {.data = &place, .len = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};
    struct error err = {0};

    cr_expect(metrics_write(metrics, &gauges, &full, &err) == ST_NO_MEMORY);
    cr_expect(err.status == ST_NO_MEMORY);
    cr_expect_eq(place, 0);
}

/* The largest values and the longest labels of all: each line finds room. */
Test(metrics_write, has_room_for_the_largest_numbers)
{
    for (enum metrics_route route = 0; route < METRICS_ROUTES; route++)
        request(route, "DELETE", 505, UINT64_MAX);
    metrics_count_document(metrics, SIZE_MAX, SIZE_MAX);
    metrics_count_job(metrics, "succeeded", UINT64_MAX);
    scrape();
    cr_expect_not_null(
        strstr((const char *)out.data, "ticketpress_documents_bytes_total 18446744073709551615\n"));
    cr_expect_not_null(strstr((const char *)out.data,
                              "ticketpress_job_duration_seconds_sum 18446744073709.551615\n"));
}

/* ---- counting ---- */

Test(metrics_count, tells_requests_by_method_route_and_code)
{
    request(METRICS_ROUTE_BATCHES, "POST", 202, 1000);
    request(METRICS_ROUTE_BATCHES, "POST", 202, 1001);
    request(METRICS_ROUTE_BATCHES, "POST", 503, 60000000);
    request(METRICS_ROUTE_BATCHES, "PATCH", 405, 60000001);
    request(METRICS_ROUTE_JOB, "GET", 299, 0);
    request(METRICS_ROUTE_JOB, "HEAD", 0, 0);
    scrape();
    cr_expect_eq(
        value_of("http_requests_total", "method=\"POST\",route=\"/v1/batches\",code=\"202\""), 2);
    cr_expect_eq(
        value_of("http_requests_total", "method=\"POST\",route=\"/v1/batches\",code=\"503\""), 1);
    cr_expect_eq(
        value_of("http_requests_total", "method=\"other\",route=\"/v1/batches\",code=\"405\""), 1);
    cr_expect_eq(
        value_of("http_requests_total", "method=\"GET\",route=\"/v1/jobs/{id}\",code=\"other\""),
        1);
    cr_expect_eq(
        value_of("http_requests_total", "method=\"HEAD\",route=\"/v1/jobs/{id}\",code=\"none\""),
        1);
    cr_expect_eq(
        value_of("http_requests_total", "method=\"GET\",route=\"/v1/batches\",code=\"202\""), -1);
}

static const struct {
    const char *le;
    double count;
} DURATION_ROWS[] = {{"0.001", 1}, {"0.0025", 2}, {"30", 2}, {"60", 3}, {"+Inf", 4}};

Test(metrics_count, puts_a_duration_on_its_bound_into_that_bucket)
{
    request(METRICS_ROUTE_OTHER, "GET", 404, 1000);
    request(METRICS_ROUTE_OTHER, "GET", 404, 1001);
    request(METRICS_ROUTE_OTHER, "GET", 404, 60000000);
    request(METRICS_ROUTE_OTHER, "GET", 404, 60000001);
    scrape();
    for (size_t i = 0; i < sizeof DURATION_ROWS / sizeof *DURATION_ROWS; i++) {
        char labels[LABELS_BYTES];

        snprintf(labels, sizeof labels, "route=\"other\",le=\"%s\"", DURATION_ROWS[i].le);
        cr_expect_eq(value_of("http_request_duration_seconds_bucket", labels),
                     DURATION_ROWS[i].count, "%s", labels);
    }
    cr_expect_eq(value_of("http_request_duration_seconds_sum", "route=\"other\""), 120.002002);
    cr_expect_eq(value_of("http_request_duration_seconds_count", "route=\"other\""), 4);
    cr_expect_eq(value_of("http_request_duration_seconds_count", "route=\"/healthz\""), -1);
}

Test(metrics_count, has_every_route_under_a_label_of_its_own)
{
    for (enum metrics_route route = 0; route < METRICS_ROUTES; route++)
        request(route, "GET", 200, 1);
    scrape();
    cr_expect_eq(value_of("http_requests_total", "method=\"GET\",route=\"/docs\",code=\"200\""), 1);
}

Test(metrics_count, counts_documents_jobs_and_rejections)
{
    metrics_count_document(metrics, 500, 948690);
    metrics_count_document(metrics, 1, 10);
    metrics_count_job(metrics, "succeeded", 600000000);
    metrics_count_job(metrics, "failed", 600000001);
    metrics_count_job(metrics, "cancelled", 10000);
    metrics_count_job(metrics, "running", 0);
    metrics_count_rejection(metrics, "batch");
    metrics_count_rejection(metrics, "unauthorized");
    metrics_count_rejection(metrics, "batc");
    metrics_count_rejection(metrics, "");
    scrape();
    cr_expect_eq(value_of("tickets_total", ""), 501);
    cr_expect_eq(value_of("documents_bytes_total", ""), 948700);
    cr_expect_eq(value_of("jobs_total", "state=\"succeeded\""), 1);
    cr_expect_eq(value_of("jobs_total", "state=\"failed\""), 1);
    cr_expect_eq(value_of("jobs_total", "state=\"cancelled\""), 1);
    cr_expect_eq(value_of("jobs_total", "state=\"other\""), 1);
    cr_expect_eq(value_of("job_duration_seconds_bucket", "le=\"0.01\""), 2);
    cr_expect_eq(value_of("job_duration_seconds_bucket", "le=\"600\""), 3);
    cr_expect_eq(value_of("job_duration_seconds_bucket", "le=\"+Inf\""), 4);
    cr_expect_eq(value_of("rejections_total", "cause=\"batch\""), 1);
    cr_expect_eq(value_of("rejections_total", "cause=\"unauthorized\""), 1);
    cr_expect_eq(value_of("rejections_total", "cause=\"other\""), 2);
}

Test(metrics_count, asserts_a_route_that_there_is, .signal = SIGABRT)
{
    request(METRICS_ROUTES, "GET", 200, 1);
}
