#include "service/log.h"

#include "domain/civil_time.h"
#include "domain/utf8.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CAPTURE_BYTES = 1 << 18, TIMEOUT_S = 20, LINES_TO_FILL_MAX = 100000 };

static int reader = -1;
static int writer = -1;
static char captured[CAPTURE_BYTES + 1];

static void open_pipe(void)
{
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe(ends), 0);
    reader = ends[0];
    writer = ends[1];
    cr_assert_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void open_socket(void)
{
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    reader = ends[0];
    writer = ends[1];
    cr_assert_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void open_file(void)
{
    char path[] = "/tmp/test_log_XXXXXX";

    writer = mkstemp(path);
    reader = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(writer >= 0 && reader >= 0);
    cr_assert_eq(unlink(path), 0);
}

static void close_both(void)
{
    log_stop();
    if (reader >= 0)
        close(reader);
    close(writer);
}

TestSuite(log_start, .init = open_pipe, .fini = close_both, .timeout = TIMEOUT_S);
TestSuite(log_write, .init = open_pipe, .fini = close_both, .timeout = TIMEOUT_S);

/* All that was written since the last call. */
static const char *capture(void)
{
    size_t len = 0;
    ssize_t n;

    while (len < CAPTURE_BYTES && (n = read(reader, captured + len, CAPTURE_BYTES - len)) > 0)
        len += (size_t)n;
    captured[len] = '\0';
    return captured;
}

/* What follows the time in the one line that was written. */
static const char *capture_line(void)
{
    static const char HEAD[] = "{\"time\":\"2027-03-21T19:30:00.250Z\"";
    const char *line = capture();
    size_t const len = strlen(line);

    cr_assert(len > strlen(HEAD) && line[len - 1] == '\n', "%s", line);
    cr_expect(strchr(line, '\n') == line + len - 1, "%s", line);
    captured[len - 1] = '\0';
    return line + strlen(HEAD);
}

static size_t lines_count(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* ---- lines ---- */

Test(log_write, writes_one_object_a_line)
{
    static const char BYTES[] = "a\"\n\x1B[m\xFF\xC3\xA9";

    log_start(writer, LOG_INFO);
    log_write(LOG_INFO, "started", NULL, 0);
    cr_expect_str_eq(capture_line(), ",\"level\":\"info\",\"event\":\"started\"}");
    log_write(LOG_ERROR, "request",
              LOG_FIELDS(log_chars("route", "/v1/batches"), log_integer("status", 200),
                         log_integer("least", INT64_MIN), log_number("ms", 1.5),
                         log_text("bytes", (struct text){.data = BYTES, .len = sizeof BYTES - 1})));
    cr_expect_str_eq(capture_line(),
                     ",\"level\":\"error\",\"event\":\"request\",\"route\":\"/v1/batches\","
                     "\"status\":200,\"least\":-9223372036854775808,\"ms\":1.5,"
                     "\"bytes\":\"a\\\"\\u000a\\u001b[m\xEF\xBF\xBD\xC3\xA9\"}");
    cr_expect_eq(log_lines_lost(), 0);
}

static int64_t clock_s(void)
{
    struct timespec now;

    cr_assert_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
    return now.tv_sec;
}

Test(log_write, begins_with_the_time)
{
    struct civil_time time = {0};
    int64_t const before = clock_s();
    const char *line;

    log_start(writer, LOG_INFO);
    log_write(LOG_INFO, "started", NULL, 0);
    line = capture();
    cr_assert_eq(strncmp(line, "{\"time\":\"", 9), 0);
    cr_assert_eq(line[9 + CIVIL_TIME_MS_CHARS], '"');
    cr_assert(civil_time_read((struct text){.data = line + 9, .len = CIVIL_TIME_MS_CHARS}, &time) ==
              CIVIL_TIME_OK);
    cr_expect(before <= time.seconds && time.seconds <= clock_s());
}

Test(log_write, keeps_errno)
{
    log_start(writer, LOG_INFO);
    errno = EDOM;
    log_write(LOG_INFO, "a", NULL, 0);
    cr_expect_eq(errno, EDOM);
    close(reader);
    reader = -1;
    log_write(LOG_INFO, "a", NULL, 0);
    cr_expect_eq(errno, EDOM);
    cr_expect_eq(log_lines_lost(), 1);
}

/* ---- levels ---- */

Test(log_start, lets_its_level_and_those_above_through)
{
    for (enum log_level from = LOG_DEBUG; from < LOG_LEVELS; from++) {
        log_start(writer, from);
        for (enum log_level level = LOG_DEBUG; level < LOG_LEVELS; level++) {
            char expected[80];

            log_write(level, "a", NULL, 0);
            cr_expect_eq(log_is_on(level), level >= from);
            snprintf(expected, sizeof expected, ",\"level\":\"%s\",\"event\":\"a\"}",
                     LOG_LEVEL_NAMES[level]);
            if (level >= from)
                cr_expect_str_eq(capture_line(), expected);
            else
                cr_expect_str_empty(capture());
        }
        log_stop();
    }
    cr_expect_null(LOG_LEVEL_NAMES[LOG_LEVELS]);
}

Test(log_start, begins_and_stop_ends_the_log)
{
    log_write(LOG_ERROR, "a", NULL, 0);
    cr_expect_not(log_is_on(LOG_ERROR));
    log_start(writer, LOG_DEBUG);
    log_stop();
    log_write(LOG_ERROR, "a", NULL, 0);
    cr_expect_str_empty(capture());
    cr_expect_eq(log_lines_lost(), 0);
}

Test(log_start, leaves_the_descriptor_as_it_is)
{
    int const flags = fcntl(writer, F_GETFL);

    log_start(writer, LOG_DEBUG);
    cr_expect_eq(fcntl(writer, F_GETFL), flags);
    log_stop();
    cr_expect_eq(fcntl(writer, F_GETFL), flags);
}

/* ---- limits ---- */

static char long_text[2 * LOG_LINE_BYTES_MAX];

static struct log_field long_field(const char *name, size_t len)
{
    return log_text(name, (struct text){.data = long_text, .len = len});
}

Test(log_write, cuts_a_long_text_at_a_character)
{
    static const struct {
        size_t ascii; /* before a character of 3 bytes */
        size_t expected;
    } ROWS[] = {
        {LOG_TEXT_BYTES_MAX, LOG_TEXT_BYTES_MAX},
        {LOG_TEXT_BYTES_MAX - 1, LOG_TEXT_BYTES_MAX - 1},
        {LOG_TEXT_BYTES_MAX - 2, LOG_TEXT_BYTES_MAX - 2},
        {LOG_TEXT_BYTES_MAX - 3, LOG_TEXT_BYTES_MAX},
    };

    log_start(writer, LOG_INFO);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        static const char HEAD[] = ",\"level\":\"info\",\"event\":\"a\",\"x\":\"";
        const char *line;

        memset(long_text, 'x', sizeof long_text);
        memcpy(long_text + ROWS[i].ascii, "\xE2\x82\xAC", 3);
        log_write(LOG_INFO, "a", LOG_FIELDS(long_field("x", ROWS[i].ascii + 3)));
        line = capture_line();
        cr_expect_eq(strlen(line), strlen(HEAD) + ROWS[i].expected + strlen("\"}"), "row %zu", i);
        cr_expect(utf8_is_valid((struct text){.data = line, .len = strlen(line)}));
        cr_expect_null(strstr(line, "\xEF\xBF\xBD"), "row %zu", i);
    }
}

/* A text of one control character takes six bytes: the worst that can be. */
Test(log_write, keeps_within_the_bytes_of_a_line)
{
    log_start(writer, LOG_INFO);
    memset(long_text, '\x01', sizeof long_text);
    for (size_t len = 0; len <= LOG_TEXT_BYTES_MAX; len++) {
        const char *line;
        bool is_whole;

        log_write(
            LOG_INFO, "a",
            LOG_FIELDS(log_integer("first", 1), long_field("x", len), log_integer("last", 2)));
        line = capture();
        cr_assert(strlen(line) <= LOG_LINE_BYTES_MAX, "%zu", strlen(line));
        cr_assert_eq(lines_count(line), 1);
        cr_assert_not_null(strstr(line, "\"first\":1"));
        is_whole = strstr(line, "\"x\":\"") != NULL && strstr(line, "\"last\":2") != NULL;
        cr_assert_eq(is_whole, strstr(line, ",\"is_cut\":true}") == NULL, "%zu", len);
    }
    cr_expect_not_null(strstr(captured, "\"first\":1,\"last\":2,\"is_cut\":true}\n"));
}

Test(log_write, fills_a_line_to_its_last_byte)
{
    size_t longest = 0;

    log_start(writer, LOG_INFO);
    memset(long_text, 'x', sizeof long_text);
    for (size_t len = 0; len <= LOG_TEXT_BYTES_MAX; len++) {
        size_t line_len;

        log_write(LOG_INFO, "a",
                  LOG_FIELDS(long_field("a", LOG_TEXT_BYTES_MAX),
                             long_field("b", LOG_TEXT_BYTES_MAX),
                             long_field("c", LOG_TEXT_BYTES_MAX), long_field("d", len),
                             long_field("e", LOG_TEXT_BYTES_MAX)));
        line_len = strlen(capture());
        longest = line_len > longest ? line_len : longest;
    }
    cr_expect_eq(longest, LOG_LINE_BYTES_MAX);
}

/* ---- readers that do not read ---- */

static void fill_until_a_line_is_lost(void)
{
    size_t written = 0;

    log_start(writer, LOG_INFO);
    while (log_lines_lost() == 0 && written < LINES_TO_FILL_MAX) {
        log_write(LOG_INFO, "a", LOG_FIELDS(log_integer("n", (int64_t)written)));
        written++;
    }
    cr_assert_eq(log_lines_lost(), 1);
    log_write(LOG_INFO, "a", LOG_FIELDS(long_field("x", LOG_TEXT_BYTES_MAX)));
    cr_expect_eq(log_lines_lost(), 2);
    cr_expect_eq(lines_count(capture()), written - 1);
    log_write(LOG_INFO, "b", NULL, 0);
    cr_expect_str_eq(capture_line(), ",\"level\":\"info\",\"event\":\"b\",\"lines_lost\":2}");
    log_write(LOG_INFO, "b", NULL, 0);
    cr_expect_str_eq(capture_line(), ",\"level\":\"info\",\"event\":\"b\"}");
    cr_expect_eq(log_lines_lost(), 2);
}

Test(log_write, loses_a_line_rather_than_wait_for_a_pipe)
{
    fill_until_a_line_is_lost();
}

Test(log_write, loses_a_line_rather_than_wait_for_a_socket, .init = open_socket)
{
    fill_until_a_line_is_lost();
}

Test(log_write, counts_what_nobody_can_read)
{
    log_start(writer, LOG_INFO);
    close(reader);
    reader = -1;
    log_write(LOG_INFO, "a", NULL, 0);
    log_write(LOG_INFO, "a", NULL, 0);
    log_write(LOG_DEBUG, "a", NULL, 0);
    cr_expect_eq(log_lines_lost(), 2);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(log_write, ends_a_torn_line_before_the_next, .init = open_file)
{
    enum { TORN_BYTES = 50 };
    const char *text;

    signal(SIGXFSZ, SIG_IGN);
    log_start(writer, LOG_INFO);
    limit_files(TORN_BYTES);
    log_write(LOG_INFO, "a", NULL, 0);
    log_write(LOG_INFO, "a", NULL, 0);
    limit_files(RLIM_INFINITY);
    log_write(LOG_INFO, "b", NULL, 0);
    log_write(LOG_INFO, "c", NULL, 0);
    text = capture();
    cr_assert(strlen(text) > TORN_BYTES);
    cr_expect_eq(strchr(text, '\n'), text + TORN_BYTES);
    cr_expect_eq(strncmp(text + TORN_BYTES, "\n{\"time\":", 9), 0);
    cr_expect_not_null(strstr(text, "\"event\":\"b\",\"lines_lost\":2}\n{\"time\":"));
    cr_expect_eq(lines_count(text), 3);
}

/* ---- contracts ---- */

Test(log_write, asserts_a_short_event, .signal = SIGABRT)
{
    log_write(LOG_INFO, "12345678901234567890123456789012345678901234567890123456789012345", NULL,
              0);
}

Test(log_start, asserts_that_it_is_not_started_twice, .signal = SIGABRT)
{
    log_start(writer, LOG_INFO);
    log_start(writer, LOG_INFO);
}
