/*
 * The front end: libmicrohttpd behind one thread of ours. It moves bytes and computes nothing: it
 * bounds and checks what comes in (RFC 9112, and what the library lets through), collects a body
 * into one owned buffer, and either has the answer at once or parks the connection until another
 * thread brings it.
 *
 * A request's way: head() when its header is complete, request() when its body is, then either an
 * answer from request() itself, or start(), called when the connection is parked, after which any
 * thread may answer, once.
 *
 * Connections have deadlines of our own for header, body and idleness, because the library's
 * time-out counts silence only.
 */
#ifndef TICKETPRESS_SERVICE_HTTP_H
#define TICKETPRESS_SERVICE_HTTP_H

#include "domain/arena.h"
#include "domain/bytes.h"
#include "domain/status.h"
#include "workers/document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_REQUEST_ID_BYTES_MAX = 64,
    HTTP_HEADERS_MAX = 24, /* of an answer */
    HTTP_LISTENERS_MAX = 16,
    HTTP_LAG_BUCKETS = 12,
};

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_DELETE, HTTP_OTHER };

/* An answer while it is put together. Zeroed is empty; cleared by whoever still has it. */
struct http_answer {
    unsigned code; /* 200..599 */
    struct arena arena;
    struct {
        const char *name;
        const char *value;       /* printable ASCII */
    } headers[HTTP_HEADERS_MAX]; /* headers_count of them, without Content-Length */
    size_t headers_count;
    bool closes;       /* the connection ends behind it */
    struct bytes body; /* owned; or */
    const struct document
        *document; /* one reference: served from its own memory, or a part of it: */
    size_t document_offset, document_len;
};
void http_answer_clear(struct http_answer *answer);

/* Add a header; name must be a constant. Left out when there is no memory or no room for it. */
__attribute__((format(printf, 3, 4))) void
http_answer_header(struct http_answer *answer, const char *name, const char *format, ...);

struct http_exchange;

/* ---- the request; borrowed for the exchange ---- */

enum http_method http_method(const struct http_exchange *exchange);
const char *http_method_name(const struct http_exchange *exchange);
struct text http_path(const struct http_exchange *exchange);  /* raw, without the query */
struct text http_query(const struct http_exchange *exchange); /* raw, behind the "?" */
/* The value of a header, NULL if it is not there. Valid until start() returns; on the front-end
 * thread only. */
const char *http_header(const struct http_exchange *exchange, const char *name);
bool http_has_body(const struct http_exchange *exchange); /* announced by its header */
/* The body announced by Content-Length; SIZE_MAX for a chunked one, 0 for none. */
size_t http_body_len_announced(const struct http_exchange *exchange);
struct bytes *http_body(struct http_exchange *exchange); /* to read, or to move out */

/* The user's own pointer, NULL at first; what it points to is freed by done(). */
void **http_user_data(struct http_exchange *exchange);

/* The id that goes out as X-Request-Id with whatever answer there will be; 1..64 printable ASCII.
 */
void http_set_request_id(struct http_exchange *exchange, const char *id);

/* When the first byte of the request was seen, by CLOCK_MONOTONIC. */
int64_t http_began_us(const struct http_exchange *exchange);

/* Whether the other side has closed its connection or its sending half. Threads: any, while parked.
 */
bool http_peer_is_gone(const struct http_exchange *exchange);

/*
 * Answer. On the front-end thread inside head() or request(); on any thread, once, after start()
 * began. *answer is moved (left zeroed). After it returns the exchange may be gone.
 */
void http_answer_move(struct http_exchange *exchange, struct http_answer *answer);

/* ---- the server ---- */

enum http_turn {
    HTTP_ANSWERED, /* http_answer_move was called */
    HTTP_GO_ON,    /* head(): wants the body. request(): park it, then call start() */
};

/* All called on the front-end thread; none may block. */
struct http_handlers {
    /* The header is complete and well-formed. Answering here ends the connection when a body would
     * follow. */
    enum http_turn (*head)(void *user, struct http_exchange *exchange);
    /* The request is complete. */
    enum http_turn (*request)(void *user, struct http_exchange *exchange);
    /* The connection is parked. */
    void (*start)(void *user, struct http_exchange *exchange);
    /* A request that broke a rule here is to be answered with this code; detail is one sentence. */
    void (*refusal)(void *user, struct http_exchange *exchange, unsigned code, const char *detail,
                    struct http_answer *answer);
    /* The answer with this code was sent (is_sent), or the connection broke; the exchange goes
     * away. Of an exchange that was parked is_sent says nothing. */
    void (*done)(void *user, struct http_exchange *exchange, unsigned code, size_t body_len,
                 bool is_sent);
    /* Some hundred times a second, and whenever http_wake was called. */
    void (*tick)(void *user, int64_t now_ms);
    /* The watched descriptor can be read. */
    void (*readable)(void *user);
};

struct http_config {
    const char *const
        *listen; /* listen_count of them, 1..HTTP_LISTENERS_MAX: host:port or [v6]:port */
    size_t listen_count;
    size_t connections_max, connections_per_address_max; /* in all; 1.. */
    uint32_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
    size_t body_bytes_max;   /* of one request */
    size_t bodies_bytes_max; /* of all requests together; beyond it 503 */
    int watched_fd;          /* for readable(); -1: none */
    struct http_handlers handlers;
    void *user;      /* of head, request, start, refusal and done */
    void *loop_user; /* of tick and readable */
};

struct http;

/*
 * Listen, without serving yet.
 *
 * Errors:  ST_INVALID  an address is none; err names it
 *          ST_IO       it cannot be listened on
 *          ST_NO_MEMORY
 */
MUST_USE enum status http_open(const struct http_config *config, struct http **http,
                               struct error *err);

/* The port that a listener got, for those that asked for port 0. */
uint16_t http_port(const struct http *http, size_t listener);

/* Serve on the calling thread until http_leave. */
void http_serve(struct http *http);

/* Have tick() called soon. Threads: any. Async-signal-safe. */
void http_wake(struct http *http);

/* From a handler: stop listening; requests under way go on. */
void http_quiesce(struct http *http);

/* From a handler: make http_serve return. Every parked exchange must have been answered. */
void http_leave(struct http *http);

void http_close(struct http **http);

struct http_status {
    size_t connections, parked;
    size_t bodies_bytes; /* held for requests under way */
    uint64_t lag_max_us; /* of the last ten seconds: how late the thread's own timer ran */
    uint64_t lag_count, lag_sum_us;
    uint64_t lag_buckets[HTTP_LAG_BUCKETS]; /* counts of lags up to http_lag_bound_us(i), not
                                               cumulative */
};
/* Threads: the front end's. */
struct http_status http_status(struct http *http);
uint64_t http_lag_bound_us(size_t bucket); /* UINT64_MAX for the last */

#endif
