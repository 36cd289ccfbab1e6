#include "service/http.h"

#include "domain/must.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTION_MAGIC = 0x434F4E4E,
    EXCHANGE_MAGIC = 0x45584348,
    TARGET_BYTES_MAX = 8192,
    HEADER_BYTES_MAX = 32 * 1024, /* of one request; the library answers 431 beyond it */
    BACKLOG = 1024,
    TICK_MS = 10, /* also how finely the lag is seen */
    LEFT_EVERY_TICKS = 20,
    LAG_WINDOW_MS = 10000, /* two halves of it are kept */
    OVERRUN_FACTOR = 2, /* a chunked body is read up to this many times its limit to be refused */
    EVENTS_MAX = 32,
    CRLF_BYTES = 2,
};

/* ---- the structs ---- */

/* What a connection is waiting for, each with its own deadline. */
enum connection_phase { PHASE_HEADER, PHASE_BODY, PHASE_ANSWER, PHASE_IDLE };

struct connection {
    uint32_t magic;
    struct http *http;
    int fd;
    enum connection_phase phase;
    int64_t deadline_ms; /* INT64_MAX: none */
    bool is_shut;
    bool is_left; /* at the last look: see is_left_unfinished */
    struct connection *next, *prev;
};

struct http_exchange {
    uint32_t magic;
    struct http *http;
    struct connection *connection;
    struct MHD_Connection *library;
    char *target;                /* raw, zero-terminated */
    const char *received_target; /* where the library has it; for comparing addresses only */
    size_t path_len;
    enum http_method method;
    char method_name[16];
    bool has_head; /* head() was called */
    bool has_body;
    size_t announced;  /* Content-Length; SIZE_MAX: chunked */
    size_t swallowed;  /* bytes beyond the limit */
    bool is_no_memory; /* the body could not be kept */
    bool is_parked;
    struct bytes body;
    size_t counted; /* bytes of it in http.bodies_bytes */
    struct http_answer answer;
    bool has_answer; /* written before the resume that makes it visible */
    unsigned sent_code;
    size_t sent_len;
    int64_t began_us;
    char request_id[HTTP_REQUEST_ID_BYTES_MAX + 1];
    void *user_data;
};

struct listener {
    struct MHD_Daemon *daemon;
    int fd;
    uint16_t port;
};

struct lag {
    uint64_t half_max_us[2]; /* of the present and the last half window */
    int64_t half_began_ms;
    uint64_t count, sum_us;
    uint64_t buckets[HTTP_LAG_BUCKETS];
};

struct http {
    struct http_config config;
    struct listener listeners[HTTP_LISTENERS_MAX];
    size_t listeners_count;
    int epoll_fd, timer_fd, wake_fd;
    int resume_fd; /* the library tells nobody of a resume when it has no thread of its own */
    bool is_leaving;
    struct connection connections; /* head of a ring */
    size_t connections_count;
    size_t parked_count;
    uint64_t ticks;
    size_t bodies_bytes;
    int64_t timer_due_us; /* when the timer should fire next */
    struct lag lag;
};

static int64_t now_us(void)
{
    struct timespec now;

    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t now_ms(void)
{
    return now_us() / 1000;
}

static struct connection *connection_from(void *pointer)
{
    struct connection *connection = pointer;

    assert(connection != NULL && connection->magic == CONNECTION_MAGIC);
    return connection;
}

static struct http_exchange *exchange_from(void *pointer)
{
    struct http_exchange *exchange = pointer;

    assert(exchange != NULL && exchange->magic == EXCHANGE_MAGIC);
    return exchange;
}

/* ---- answers ---- */

void http_answer_clear(struct http_answer *answer)
{
    arena_clear(&answer->arena);
    bytes_clear(&answer->body);
    document_unref(&answer->document);
    *answer = (struct http_answer){0};
}

void http_answer_header(struct http_answer *answer, const char *name, const char *format, ...)
{
    va_list args;
    char *value;
    int len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0 || answer->headers_count == HTTP_HEADERS_MAX)
        return;
    value = arena_alloc(&answer->arena, (size_t)len + 1);
    if (value == NULL)
        return;
    va_start(args, format);
    vsnprintf(value, (size_t)len + 1, format, args);
    va_end(args);
    answer->headers[answer->headers_count].name = name;
    answer->headers[answer->headers_count].value = value;
    answer->headers_count++;
}

static void unref_document(void *pointer)
{
    const struct document *document = pointer;

    document_unref(&document);
}

/* The library takes no const buffer but does not write to it. */
static void *unconst(const void *pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* What is sent is the body's or the document's own memory, freed with the response. */
static struct MHD_Response *response_from_body_move(struct http_answer *answer)
{
    struct MHD_Response *response;

    if (answer->document != NULL) {
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            answer->document_len, unconst(answer->document->bytes.data + answer->document_offset),
            unref_document, unconst(answer->document));
        if (response != NULL)
            answer->document = NULL;
    } else if (answer->body.len > 0) {
        response = MHD_create_response_from_buffer_with_free_callback(answer->body.len,
                                                                      answer->body.data, free);
        if (response != NULL)
            answer->body = (struct bytes){0};
    } else {
        static char nothing[1];

        response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    }
    return response;
}

static enum MHD_Result send_answer(struct http_exchange *exchange)
{
    struct http_answer *answer = &exchange->answer;
    size_t const len = answer->document != NULL ? answer->document_len : answer->body.len;
    struct MHD_Response *response = response_from_body_move(answer);
    enum MHD_Result result = MHD_NO;

    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < answer->headers_count; i++)
        MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (exchange->request_id[0] != '\0')
        MHD_add_response_header(response, "X-Request-Id", exchange->request_id);
    if (answer->closes)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD_queue_response(exchange->library, answer->code, response);
    MHD_destroy_response(response);
    exchange->sent_code = answer->code;
    exchange->sent_len = len;
    exchange->connection->phase = PHASE_ANSWER;
    exchange->connection->deadline_ms =
        INT64_MAX; /* the library's time-out sees a stalled reader */
    http_answer_clear(answer);
    return result;
}

/* Make an event descriptor readable. One that cannot count any further is readable already. */
static void notify(int fd)
{
    uint64_t const one = 1;
    ssize_t const written = write(fd, &one, sizeof one);

    MUST(written < 0 && errno != EAGAIN ? errno : 0);
}

void http_answer_move(struct http_exchange *exchange, struct http_answer *answer)
{
    struct http *http = exchange->http;
    struct MHD_Connection *library = exchange->library;
    bool const is_parked = exchange->is_parked;

    assert(!exchange->has_answer && answer->code >= 200 && answer->code <= 599);
    exchange->answer = *answer;
    *answer = (struct http_answer){0};
    exchange->has_answer = true;
    if (is_parked) {
        MHD_resume_connection(library); /* its lock makes the answer visible; then it may be gone */
        notify(http->resume_fd);
    }
}

/* ---- the request ---- */

enum http_method http_method(const struct http_exchange *exchange)
{
    return exchange->method;
}

const char *http_method_name(const struct http_exchange *exchange)
{
    return exchange->method_name;
}

struct text http_path(const struct http_exchange *exchange)
{
    return (struct text){.data = exchange->target, .len = exchange->path_len};
}

struct text http_query(const struct http_exchange *exchange)
{
    const char *query = exchange->target + exchange->path_len;

    if (*query == '?')
        query++;
    return (struct text){.data = query, .len = strlen(query)};
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->library, MHD_HEADER_KIND, name);
}

bool http_has_body(const struct http_exchange *exchange)
{
    return exchange->has_body;
}

size_t http_body_len_announced(const struct http_exchange *exchange)
{
    return exchange->announced;
}

struct bytes *http_body(struct http_exchange *exchange)
{
    return &exchange->body;
}

void **http_user_data(struct http_exchange *exchange)
{
    return &exchange->user_data;
}

void http_set_request_id(struct http_exchange *exchange, const char *id)
{
    snprintf(exchange->request_id, sizeof exchange->request_id, "%s", id);
}

int64_t http_began_us(const struct http_exchange *exchange)
{
    return exchange->began_us;
}

/* A half-closed peer cannot be told from one that has gone; both get no work started. */
bool http_peer_is_gone(const struct http_exchange *exchange)
{
    struct pollfd state = {.fd = exchange->connection->fd, .events = POLLRDHUP};

    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* ---- hygiene ---- */

/* RFC 9110 section 5.6.2. */
static bool is_token_char(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_token_char(text[i]))
            return false;
    return len > 0;
}

/*
 * What the header of one request comes to.
 *
 * The library hands out its own buffer, in which it has put zeros for each colon, CR and LF. Where
 * its texts lie therefore tells what it does not: that a text ended at a NUL, that a folded line
 * was put into its header's name, that a line ended with a bare LF, or that one without a name was
 * taken for the header's end. (Two of them stay unseen, each as the header's last line alone: a NUL
 * before its CR LF, and a colon and nothing else.)
 */
struct framing {
    const char *fault; /* NULL: none; the rule that is broken */
    unsigned lengths, codings, hosts;
    const char *length, *coding, *host;
    const char *line; /* where the next one begins */
};

/* CR LF, with zeros in their places. */
static bool is_line_end(const char *at)
{
    return at[0] == '\0' && at[1] == '\0';
}

/* The request line, between whose parts there is one space. */
static bool is_first_line_whole(struct framing *framing, const struct http_exchange *exchange,
                                const char *method, const char *version)
{
    const char *target = exchange->received_target;
    const char *end = version + strlen(version);

    framing->line = end + CRLF_BYTES;
    return method + strlen(method) + 1 == target &&
           target + strlen(exchange->target) + 1 == version && is_line_end(end);
}

/* A header, which has white space behind its colon only. */
static bool is_line_whole(struct framing *framing, const char *name, size_t name_len,
                          const char *value, size_t value_len)
{
    bool const is_next = name == framing->line;
    const char *begin = name + name_len + 1;

    framing->line = value + value_len + CRLF_BYTES;
    return is_next && begin + strspn(begin, " \t") == value && is_line_end(value + value_len);
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == '\x7f';
}

static enum MHD_Result look_at_header(void *user, enum MHD_ValueKind kind, const char *name,
                                      size_t name_len, const char *value, size_t value_len)
{
    struct framing *framing = user;

    (void)kind;
    if (!is_token(name, name_len))
        framing->fault = "a header's name is no token (RFC 9110, 5.1)";
    for (size_t i = 0; i < value_len; i++)
        if (is_control(value[i]))
            framing->fault = "a header's value has a control character (RFC 9110, 5.5)";
    if (!is_line_whole(framing, name, name_len, value, value_len) && framing->fault == NULL)
        framing->fault = "a line is folded, has a NUL or ends without CR LF (RFC 9112, 2.2 and 5)";
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        framing->lengths++;
        framing->length = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->codings++;
        framing->coding = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        framing->hosts++;
        framing->host = value;
    }
    return MHD_YES;
}

static bool is_digits(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* RFC 3986 section 3.2: a name or an address, and a port; or nothing. */
static bool is_host(const char *text)
{
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%"
                             "!$&'()*+,;=:[]")] == '\0';
}

/* RFC 9112 section 6: a message has one length, told in one way. */
static void check_framing(struct framing *framing, const char *version)
{
    if (framing->fault != NULL)
        return;
    if (!is_line_end(framing->line))
        framing->fault = "the header does not end with an empty line (RFC 9112, 2.1)";
    else if (framing->codings > 0 && framing->lengths > 0)
        framing->fault = "Transfer-Encoding and Content-Length together (RFC 9112, 6.1)";
    else if (framing->codings > 1)
        framing->fault = "more than one Transfer-Encoding (RFC 9112, 6.1)";
    else if (framing->codings == 1 && strcasecmp(framing->coding, "chunked") != 0)
        framing->fault = "a transfer coding other than chunked (RFC 9112, 6.1)";
    else if (framing->codings == 1 && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        framing->fault = "chunked in HTTP/1.0 (RFC 9112, 6.1)";
    else if (framing->lengths > 1)
        framing->fault = "more than one Content-Length (RFC 9112, 6.3)";
    else if (framing->lengths == 1 && !is_digits(framing->length))
        framing->fault = "a Content-Length that is no number (RFC 9110, 8.6)";
    else if (framing->hosts > 1)
        framing->fault = "more than one Host (RFC 9112, 3.2)";
    else if (framing->hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        framing->fault = "no Host (RFC 9112, 3.2)";
    else if (framing->hosts == 1 && !is_host(framing->host))
        framing->fault = "a Host that is none (RFC 9112, 3.2)";
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* RFC 9112 section 3.2.1: the origin form, in visible ASCII, percent signs only before two digits.
 */
static const char *target_fault(const char *target)
{
    if (target[0] != '/')
        return "the target is not in origin form (RFC 9112, 3.2.1)";
    for (const char *c = target; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return "the target has a character that must be percent-encoded (RFC 3986, 2)";
        if (*c == '#')
            return "the target has a fragment (RFC 9112, 3.2.1)";
        if (*c == '%' && (!is_hex(c[1]) || !is_hex(c[2])))
            return "a percent sign without two hexadecimal digits (RFC 3986, 2.1)";
        if (*c == '%' && c[1] == '0' && c[2] == '0')
            return "%00 in the target";
    }
    return NULL;
}

static const char *read_framing(struct http_exchange *exchange, const char *method,
                                const char *version)
{
    struct framing framing = {.fault = target_fault(exchange->target)};
    unsigned long long length = 0;

    if (!is_first_line_whole(&framing, exchange, method, version) && framing.fault == NULL)
        framing.fault = "the request line has a NUL, needless spaces or no CR LF (RFC 9112, 3)";
    if (!is_token(method, strlen(method)) || strlen(method) >= sizeof exchange->method_name)
        framing.fault = "the method is no token, or longer than 15 characters (RFC 9110, 9.1)";
    MHD_get_connection_values_n(exchange->library, MHD_HEADER_KIND, look_at_header, &framing);
    check_framing(&framing, version);
    if (framing.fault != NULL)
        return framing.fault;
    if (framing.lengths == 1) {
        errno = 0;
        length = strtoull(framing.length, NULL, 10);
        if (errno != 0 || length >= SIZE_MAX)
            length = SIZE_MAX - 1;
    }
    exchange->announced = framing.codings == 1 ? SIZE_MAX : (size_t)length;
    exchange->has_body = framing.codings == 1 || length > 0;
    return NULL;
}

/* RFC 9110 section 10.1.1. Without a body the library would take the next request for it. */
static bool is_expectation_met(const struct http_exchange *exchange, const char *version)
{
    const char *expected = http_header(exchange, MHD_HTTP_HEADER_EXPECT);

    if (expected == NULL || strcmp(version, MHD_HTTP_VERSION_1_0) == 0)
        return true;
    return exchange->has_body && strcasecmp(expected, "100-continue") == 0;
}

static enum http_method method_from_name(const char *name)
{
    static const struct {
        const char *name;
        enum http_method method;
    } METHODS[] = {
        {"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}, {"DELETE", HTTP_DELETE}};

    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (strcmp(name, METHODS[i].name) == 0)
            return METHODS[i].method;
    return HTTP_OTHER;
}

/* ---- the library's calls ---- */

static enum MHD_Result refuse(struct http_exchange *exchange, unsigned code, const char *detail)
{
    const struct http_config *config = &exchange->http->config;
    struct http_answer answer = {0};

    config->handlers.refusal(config->user, exchange, code, detail, &answer);
    answer.closes = true;
    http_answer_move(exchange, &answer);
    return send_answer(exchange);
}

/* The first call for a request: its header is complete. */
static enum MHD_Result take_head(struct http_exchange *exchange, const char *method,
                                 const char *version)
{
    const struct http_config *config = &exchange->http->config;
    const char *fault;

    exchange->has_head = true;
    exchange->method = method_from_name(method);
    snprintf(exchange->method_name, sizeof exchange->method_name, "%s", method);
    if (strlen(exchange->target) > TARGET_BYTES_MAX)
        return refuse(exchange, MHD_HTTP_URI_TOO_LONG, "the target is longer than 8192 bytes");
    fault = read_framing(exchange, method, version);
    if (fault != NULL)
        return refuse(exchange, MHD_HTTP_BAD_REQUEST, fault);
    if (!is_expectation_met(exchange, version))
        return refuse(exchange, MHD_HTTP_EXPECTATION_FAILED,
                      "nothing but 100-continue can be expected, and only with a body");
    if (config->handlers.head(config->user, exchange) == HTTP_ANSWERED) {
        if (exchange->has_body) {
            exchange->answer.closes = true; /* or the body would be read as the next request */
            return send_answer(exchange);
        }
        return MHD_YES; /* sent in the second call, which lets the connection live on */
    }
    if (exchange->announced != SIZE_MAX && exchange->announced > config->body_bytes_max)
        return refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE,
                      "the body is larger than body-bytes-max");
    exchange->connection->phase = PHASE_BODY;
    exchange->connection->deadline_ms =
        exchange->has_body ? now_ms() + config->body_timeout_ms : INT64_MAX;
    return MHD_YES;
}

/* Bytes of the body. What cannot be kept is read up to a bound, so that the answer can still be
 * given. */
static enum MHD_Result take_body(struct http_exchange *exchange, const char *data, size_t *len)
{
    struct http *http = exchange->http;
    size_t const max = http->config.body_bytes_max;

    if (exchange->has_answer || exchange->is_no_memory || exchange->swallowed > 0 ||
        *len > max - exchange->body.len) {
        exchange->swallowed += *len;
        if (exchange->swallowed > max * (OVERRUN_FACTOR - 1) + HEADER_BYTES_MAX)
            return MHD_NO;
    } else if (http->bodies_bytes + *len > http->config.bodies_bytes_max ||
               bytes_append(&exchange->body, data, *len, NULL) != ST_OK) {
        /* Let go of the part that is here, or many that grow side by side would all be refused. */
        exchange->is_no_memory = true;
        bytes_clear(&exchange->body);
        http->bodies_bytes -= exchange->counted;
        exchange->counted = 0;
    } else {
        http->bodies_bytes += *len;
        exchange->counted += *len;
    }
    *len = 0;
    return MHD_YES;
}

/* The last call: the request is complete. */
static enum MHD_Result take_request(struct http_exchange *exchange)
{
    struct http *http = exchange->http;
    const struct http_config *config = &http->config;

    exchange->connection->phase = PHASE_ANSWER;
    exchange->connection->deadline_ms = INT64_MAX;
    if (exchange->is_no_memory)
        return refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "no memory for the body beside those of other requests");
    if (exchange->swallowed > 0)
        return refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE,
                      "the body is larger than body-bytes-max");
    if (config->handlers.request(config->user, exchange) == HTTP_ANSWERED)
        return send_answer(exchange);
    MHD_suspend_connection(exchange->library); /* before any other thread can know of it */
    exchange->is_parked = true;
    http->parked_count++;
    config->handlers.start(config->user, exchange);
    return MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *library, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **context)
{
    struct http_exchange *exchange = *context;

    (void)user;
    (void)url; /* decoded and cut at %00: the raw target is the one that counts */
    if (exchange == NULL)
        return MHD_NO; /* there was no memory for it */
    exchange = exchange_from(exchange);
    exchange->library = library;
    if (!exchange->has_head)
        return take_head(exchange, method, version);
    if (*data_len > 0)
        return take_body(exchange, data, data_len);
    if (exchange->is_parked) { /* called again because it was resumed */
        exchange->is_parked = false;
        exchange->http->parked_count--;
    }
    if (exchange->has_answer)
        return send_answer(exchange);
    return take_request(exchange);
}

/* The request line is complete. The result becomes the request's context. */
static void *on_target(void *user, const char *target, struct MHD_Connection *library)
{
    struct http *http = user;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(library, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = connection_from(info->socket_context);
    struct http_exchange *exchange;

    if (connection->phase == PHASE_IDLE) {
        connection->phase = PHASE_HEADER;
        connection->deadline_ms = now_ms() + http->config.header_timeout_ms;
    }
    exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return NULL;
    exchange->target = strndup(target, TARGET_BYTES_MAX + 1);
    if (exchange->target == NULL) {
        free(exchange);
        return NULL;
    }
    exchange->magic = EXCHANGE_MAGIC;
    exchange->received_target = target;
    exchange->http = http;
    exchange->connection = connection;
    exchange->library = library;
    exchange->path_len = strcspn(exchange->target, "?");
    exchange->began_us = now_us();
    return exchange;
}

static void on_completed(void *user, struct MHD_Connection *library, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http *http = user;
    struct http_exchange *exchange = *context;

    (void)library;
    if (exchange == NULL)
        return;
    exchange = exchange_from(exchange);
    *context = NULL;
    if (exchange->is_parked)
        http->parked_count--;
    http->bodies_bytes -= exchange->counted;
    exchange->connection->phase = PHASE_IDLE;
    /* Behind its last request, one who has closed its sending half need not be waited for. */
    exchange->connection->deadline_ms =
        now_ms() + (http_peer_is_gone(exchange) ? 0 : http->config.idle_timeout_ms);
    http->config.handlers.done(http->config.user, exchange, exchange->sent_code, exchange->sent_len,
                               code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    http_answer_clear(&exchange->answer);
    bytes_clear(&exchange->body);
    free(exchange->target);
    exchange->magic = 0;
    free(exchange);
}

static void on_connection(void *user, struct MHD_Connection *library, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = user;
    struct connection *connection;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context == NULL)
            return;
        connection = connection_from(*context);
        connection->prev->next = connection->next;
        connection->next->prev = connection->prev;
        connection->magic = 0;
        free(connection);
        *context = NULL;
        http->connections_count--;
        return;
    }
    connection = calloc(1, sizeof *connection);
    MUST(connection == NULL ? ENOMEM : 0);
    *connection = (struct connection){
        .magic = CONNECTION_MAGIC,
        .http = http,
        .fd = MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
        .phase = PHASE_HEADER,
        .deadline_ms = now_ms() + http->config.header_timeout_ms,
        .next = http->connections.next,
        .prev = &http->connections,
    };
    connection->next->prev = connection;
    connection->prev->next = connection;
    *context = connection;
    http->connections_count++;
}

/* ---- deadlines and lag ---- */

/*
 * A client that closes right behind a part of its request: the library reads that part, takes the
 * socket for empty, and is not told of the end again, since its epoll is edge-triggered.
 */
static bool is_left_unfinished(struct connection *connection)
{
    bool const was_left = connection->is_left;
    char unread;

    connection->is_left =
        (connection->phase == PHASE_HEADER || connection->phase == PHASE_BODY) &&
        recv(connection->fd, &unread, sizeof unread, MSG_PEEK | MSG_DONTWAIT) == 0;
    return was_left && connection->is_left; /* the library may still be at what it has read */
}

/* Shutting a socket down has the library notice its end and close it in its own time. */
static void shut_late_connections(struct http *http)
{
    int64_t const now = now_ms();
    bool const looks_at_ends = http->ticks++ % LEFT_EVERY_TICKS == 0;

    for (struct connection *c = http->connections.next; c != &http->connections; c = c->next) {
        if (c->is_shut || (c->deadline_ms > now && !(looks_at_ends && is_left_unfinished(c))))
            continue;
        c->is_shut = true;
        shutdown(c->fd, SHUT_RDWR);
    }
}

static const uint64_t LAG_BOUNDS_US[HTTP_LAG_BUCKETS] = {
    100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000, UINT64_MAX};

uint64_t http_lag_bound_us(size_t bucket)
{
    assert(bucket < HTTP_LAG_BUCKETS);
    return LAG_BOUNDS_US[bucket];
}

static void note_lag(struct http *http, uint64_t lag_us)
{
    struct lag *lag = &http->lag;
    int64_t const now = now_ms();
    size_t bucket = 0;

    if (now - lag->half_began_ms >= LAG_WINDOW_MS / 2) {
        lag->half_max_us[1] = lag->half_max_us[0];
        lag->half_max_us[0] = 0;
        lag->half_began_ms = now;
    }
    if (lag_us > lag->half_max_us[0])
        lag->half_max_us[0] = lag_us;
    while (lag_us > LAG_BOUNDS_US[bucket])
        bucket++;
    lag->buckets[bucket]++;
    lag->count++;
    lag->sum_us += lag_us;
}

/* One expiry at a time, so that the next is due from when this one was handled. */
static void arm_timer(struct http *http)
{
    struct itimerspec const in = {.it_value = {.tv_nsec = TICK_MS * 1000000L}};

    MUST(timerfd_settime(http->timer_fd, 0, &in, NULL));
    http->timer_due_us = now_us() + TICK_MS * 1000;
}

static void take_tick(struct http *http)
{
    int64_t const late_us = now_us() - http->timer_due_us;
    uint64_t expiries;

    if (read(http->timer_fd, &expiries, sizeof expiries) < 0)
        return;
    note_lag(http, late_us > 0 ? (uint64_t)late_us : 0);
    shut_late_connections(http);
    http->config.handlers.tick(http->config.loop_user, now_ms());
    arm_timer(http);
}

struct http_status http_status(struct http *http)
{
    const struct lag *lag = &http->lag;
    struct http_status status = {
        .connections = http->connections_count,
        .parked = http->parked_count,
        .bodies_bytes = http->bodies_bytes,
        .lag_max_us =
            lag->half_max_us[0] > lag->half_max_us[1] ? lag->half_max_us[0] : lag->half_max_us[1],
        .lag_count = lag->count,
        .lag_sum_us = lag->sum_us,
    };

    memcpy(status.lag_buckets, lag->buckets, sizeof status.lag_buckets);
    return status;
}

/* ---- listening ---- */

/* host:port or [v6]:port, in numbers or names. */
static enum status resolve(const char *address, struct addrinfo **found, struct error *err)
{
    struct addrinfo const hints = {
        .ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    char host[256];
    size_t len = colon == NULL ? 0 : (size_t)(colon - address);
    const char *begin = address;
    int code;

    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        begin++;
        len -= 2;
    }
    if (colon == NULL || len == 0 || len >= sizeof host || !is_digits(colon + 1))
        return error_set(err, ST_INVALID, "listen: \"%s\" is not host:port or [v6]:port", address);
    memcpy(host, begin, len);
    host[len] = '\0';
    code = getaddrinfo(host, colon + 1, &hints, found);
    if (code != 0)
        return error_set(err, ST_INVALID, "listen: %s: %s", address, gai_strerror(code));
    return ST_OK;
}

static int listening_socket(const struct addrinfo *at)
{
    int const yes = 1;
    int const fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        (at->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0) ||
        bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Both families keep the port at one place. */
static uint16_t port_of(int fd)
{
    struct sockaddr_in6 address = {0};
    socklen_t len = sizeof address;

    _Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                       offsetof(struct sockaddr_in6, sin6_port),
                   "the port of either");
    MUST(getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? 0 : errno);
    return ntohs(address.sin6_port);
}

static enum status watch(struct http *http, int fd, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return error_set(err, ST_IO, "epoll: %s", strerror(errno));
    return ST_OK;
}

static enum status start_daemon(struct http *http, struct listener *listener, struct error *err)
{
    const struct http_config *config = &http->config;
    unsigned const flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;

    listener->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, listener->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)config->connections_max,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)config->connections_per_address_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((config->idle_timeout_ms + 999) / 1000),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES_MAX, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (listener->daemon == NULL)
        return error_set(err, ST_IO, "listen: libmicrohttpd could not start: %s", strerror(errno));
    return watch(http, MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                 err);
}

static enum status open_listener(struct http *http, const char *address, struct error *err)
{
    struct listener *listener = &http->listeners[http->listeners_count];
    struct addrinfo *found = NULL;
    enum status st = resolve(address, &found, err);

    if (st != ST_OK)
        return st;
    *listener = (struct listener){.fd = listening_socket(found)};
    freeaddrinfo(found);
    if (listener->fd < 0)
        return error_set(err, ST_IO, "listen: %s: %s", address, strerror(errno));
    http->listeners_count++;
    listener->port = port_of(listener->fd);
    return start_daemon(http, listener, err);
}

enum status http_open(const struct http_config *config, struct http **http, struct error *err)
{
    struct http *made = calloc(1, sizeof *made);
    enum status st = ST_OK;

    assert(config->listen_count >= 1 && config->listen_count <= HTTP_LISTENERS_MAX);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the front end");
    made->config = *config;
    made->connections.next = made->connections.prev = &made->connections;
    made->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    made->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    made->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    made->resume_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made->epoll_fd < 0 || made->timer_fd < 0 || made->wake_fd < 0 || made->resume_fd < 0)
        st = error_set(err, ST_IO, "the front end: %s", strerror(errno));
    if (st == ST_OK)
        st = watch(made, made->timer_fd, err);
    if (st == ST_OK)
        st = watch(made, made->wake_fd, err);
    if (st == ST_OK)
        st = watch(made, made->resume_fd, err);
    if (st == ST_OK && config->watched_fd >= 0)
        st = watch(made, config->watched_fd, err);
    for (size_t i = 0; i < config->listen_count && st == ST_OK; i++)
        st = open_listener(made, config->listen[i], err);
    if (st == ST_OK)
        *http = made;
    else
        http_close(&made);
    return st;
}

uint16_t http_port(const struct http *http, size_t listener)
{
    assert(listener < http->listeners_count);
    return http->listeners[listener].port;
}

/* ---- serving ---- */

void http_wake(struct http *http)
{
    notify(http->wake_fd);
}

/* How long to sleep at most, by the library's own timers; -1: until something happens. */
static int wait_ms(const struct http *http)
{
    unsigned MHD_LONG_LONG least = INT_MAX;

    for (size_t i = 0; i < http->listeners_count; i++) {
        unsigned MHD_LONG_LONG timeout;

        if (MHD_get_timeout(http->listeners[i].daemon, &timeout) == MHD_YES && timeout < least)
            least = timeout;
    }
    return (int)least;
}

static void take_event(struct http *http, int fd)
{
    uint64_t count;

    if (fd == http->timer_fd) {
        take_tick(http);
    } else if (fd == http->wake_fd) {
        if (read(http->wake_fd, &count, sizeof count) > 0)
            http->config.handlers.tick(http->config.loop_user, now_ms());
    } else if (fd == http->config.watched_fd) {
        http->config.handlers.readable(http->config.loop_user);
    } /* else the library's, which is run in any case */
}

static void forget_resumes(struct http *http)
{
    uint64_t count;

    MUST(read(http->resume_fd, &count, sizeof count) < 0 && errno != EAGAIN ? errno : 0);
}

void http_serve(struct http *http)
{
    struct epoll_event events[EVENTS_MAX];

    arm_timer(http);
    while (!http->is_leaving) {
        int const count = epoll_wait(http->epoll_fd, events, EVENTS_MAX, wait_ms(http));

        MUST(count < 0 && errno != EINTR ? errno : 0);
        forget_resumes(http); /* before the library runs: what comes later wakes it again */
        for (size_t i = 0; i < http->listeners_count; i++)
            MHD_run(http->listeners[i].daemon);
        for (int i = 0; i < count; i++)
            take_event(http, events[i].data.fd);
    }
}

void http_quiesce(struct http *http)
{
    for (size_t i = 0; i < http->listeners_count; i++) {
        struct listener *listener = &http->listeners[i];

        if (listener->fd < 0)
            continue;
        MHD_quiesce_daemon(listener->daemon);
        close(listener->fd);
        listener->fd = -1;
    }
}

void http_leave(struct http *http)
{
    http->is_leaving = true;
}

void http_close(struct http **http)
{
    struct http *from = *http;

    if (from == NULL)
        return;
    for (size_t i = 0; i < from->listeners_count; i++) {
        if (from->listeners[i].daemon != NULL)
            MHD_stop_daemon(from->listeners[i].daemon); /* closes the socket if it still has it */
        else if (from->listeners[i].fd >= 0)
            close(from->listeners[i].fd);
    }
    if (from->wake_fd >= 0)
        close(from->wake_fd);
    if (from->resume_fd >= 0)
        close(from->resume_fd);
    if (from->timer_fd >= 0)
        close(from->timer_fd);
    if (from->epoll_fd >= 0)
        close(from->epoll_fd);
    free(from);
    *http = NULL;
}
