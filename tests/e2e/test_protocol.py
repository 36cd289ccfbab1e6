#!/usr/bin/env python3
"""What the service makes of bytes: requests well-formed, careless, hostile and slow.

usage: test_protocol.py PROGRAM

Each row of the tables is one connection: the bytes that go out, the answers that must come back, in
their order, whether the connection lives on, and how many requests reached a route (which is told
by the log). Whatever a row smuggles would show as a further answer, or as a further request.

Answers are the service's own, application/problem+json when they are errors, but for the rows that
are marked LIBRARY: those libmicrohttpd 0.9.75 makes before the service hears of the request.
"""

import json
import sys
import time

from service_under_test import (
    JSON_TYPE,
    PROBLEM_TYPE,
    Report,
    Service,
    batch_of,
    head_of,
    post_of,
)

BODY_BYTES_MAX = 16384
# The library's own time-out is that for idleness: long enough for none of it to hide behind.
HEADER_TIMEOUT_S, BODY_TIMEOUT_S, IDLE_TIMEOUT_S = 0.6, 0.8, 4.0
LATE_S = 1.0  # after a deadline the connection is gone
OPTIONS = [
    *("--workers", 1, "--body-bytes-max", BODY_BYTES_MAX),
    *("--header-timeout-ms", int(HEADER_TIMEOUT_S * 1000)),
    *("--body-timeout-ms", int(BODY_TIMEOUT_S * 1000)),
    *("--idle-timeout-ms", int(IDLE_TIMEOUT_S * 1000)),
]

KEPT, CLOSED = "kept", "closed"
SERVICE, LIBRARY = "by the service", "by the library"
HALF_CLOSE = object()  # among the pieces of a row; a number there is a pause in seconds

JSON_HEADER = f"Content-Type: {JSON_TYPE}"
CHUNKED = "Transfer-Encoding: chunked"
ONE = json.dumps(batch_of(1)).encode()
LENGTH = f"Content-Length: {len(ONE)}"
NEXT = head_of("GET", "/version", "X-Request-Id: smuggled")


def get(target="/version", *headers, **options):
    return head_of("GET", target, *headers, **options)


def post(*headers, **options):
    return head_of("POST", "/v1/batches", JSON_HEADER, *headers, **options)


def lines(*parts):
    return b"".join(part + b"\r\n" for part in parts) + b"\r\n"


def chunks(body, size, extension=b"", trailer=b""):
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    data = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts)
    return data + b"0\r\n" + trailer + b"\r\n"


class Row:
    """ends_within_s: of a connection that is closed, from its last answer on."""

    def __init__(self, name, sent, statuses, end, routed, made=SERVICE, ends_within_s=None):
        self.name = name
        self.pieces = sent if isinstance(sent, list) else [sent]
        self.statuses = statuses
        self.end = end
        self.routed = routed
        self.made = made
        self.ends_within_s = ends_within_s or max(HEADER_TIMEOUT_S, BODY_TIMEOUT_S) + LATE_S


def refused(name, sent, status=400, routed=0):
    """Answered with an error and closed, nothing behind it read."""
    return Row(name, [sent + NEXT], [status], CLOSED, routed)


def refused_by_library(name, sent, status=400, routed=0):
    return Row(name, [sent + NEXT], [status], CLOSED, routed, LIBRARY)


def taken(name, sent, status=200):
    """Answered, and so is the request behind it."""
    return Row(name, [sent + NEXT], [status, 200], KEPT, 2)


LENGTHS = [
    refused("length and chunked", post("Content-Length: 5", CHUNKED) + b"0\r\n\r\n"),
    refused("chunked and length", post(CHUNKED, "Content-Length: 5") + b"0\r\n\r\n"),
    refused("chunked and length 0", post(CHUNKED, "Content-Length: 0") + chunks(ONE, 64)),
    refused("coding gzip", post("Transfer-Encoding: gzip") + ONE),
    refused("coding gzip, chunked", post("Transfer-Encoding: gzip, chunked") + chunks(ONE, 64)),
    refused("coding chunked, gzip", post("Transfer-Encoding: chunked, gzip") + chunks(ONE, 64)),
    refused("coding chunked, chunked", post("Transfer-Encoding: chunked, chunked")),
    refused("coding chunked in two headers", post(CHUNKED, CHUNKED) + chunks(ONE, 64)),
    refused("coding chunked and identity", post(CHUNKED, "Transfer-Encoding: identity")),
    refused("coding identity", post("Transfer-Encoding: identity") + ONE),
    refused("coding xchunked", post("Transfer-Encoding: xchunked") + chunks(ONE, 64)),
    refused("coding in quotes", post('Transfer-Encoding: "chunked"') + chunks(ONE, 64)),
    refused("coding with a space behind it", post("Transfer-Encoding: chunked ")),
    refused("coding behind a vertical tab", post("Transfer-Encoding: \x0bchunked")),
    refused("coding empty", post("Transfer-Encoding:") + ONE),
    refused("coding with a space before the colon", post("Transfer-Encoding : chunked")),
    refused("coding on a folded line", post("Transfer-Encoding:\r\n chunked") + chunks(ONE, 64)),
    refused("coding chunked in HTTP/1.0", post(CHUNKED, version="HTTP/1.0") + chunks(ONE, 64)),
    taken("coding Chunked, in any case", post("Transfer-Encoding: Chunked") + chunks(ONE, 64)),
    refused("two lengths, equal", post(LENGTH, LENGTH) + ONE),
    refused("two lengths, different", post(LENGTH, "Content-Length: 0") + ONE),
    refused("two lengths, one in lower case", post(LENGTH, "content-length: 0") + ONE),
    refused_by_library("two lengths in one header", post("Content-Length: 5, 5") + b"12345"),
    refused_by_library("a length with a plus", post("Content-Length: +5") + b"12345"),
    refused_by_library("a length with a minus", post("Content-Length: -5") + b"12345"),
    refused_by_library("a length with a space behind it", post("Content-Length: 5 ") + b"12345"),
    refused_by_library("a length with a space within", post("Content-Length: 4 2") + b"12345"),
    refused_by_library("a length in hexadecimal", post("Content-Length: 0x5") + b"12345"),
    refused_by_library("a length and a letter", post("Content-Length: 5a") + b"12345"),
    refused_by_library("a length with a fraction", post("Content-Length: 5.0") + b"12345"),
    refused_by_library("an empty length", post("Content-Length:") + b"12345"),
    refused_by_library("a length beyond 64 bits", post("Content-Length: " + 25 * "9"), 413),
    refused("a length of 2^64 - 1", post("Content-Length: 18446744073709551615"), 413, 1),
    refused("a length of 2^63", post("Content-Length: 9223372036854775808"), 413, 1),
    refused("a length with a space before the colon", post(f"Content-Length : {len(ONE)}") + ONE),
    refused("a length folded into another header", post("X-A: b\r\n Content-Length: 5") + b"12345"),
    taken("a length with zeros before it", post("Content-Length: 005") + b"{   }", 422),
]

HEADERS = [
    refused("a name with a space behind it", get("/version", "X-A : b")),
    refused("a name with a space in it", get("/version", "X A: b")),
    refused("a name with a control character", get("/version", b"X\x01A: b")),
    refused("a name with brackets", get("/version", "X(A): b")),
    refused("a name beyond ASCII", get("/version", "X-\u00e9: b")),
    refused("no name", get("/version", ": b")),
    refused("no name, and headers behind it", get("/version", ": b", LENGTH)),
    refused("no name, and a request behind it", get("/version", ": b", "GET /healthz HTTP/1.1")),
    refused_by_library("a line without a colon", get("/version", "junk")),
    refused_by_library("a NUL in a name", get("/version", b"X\x00A: b")),
    refused("a NUL in a value", get("/version", b"X-A: b\x00c")),
    refused("a NUL at a value's end", get("/version", b"X-A: b\x00", "X-B: c")),
    refused("a NUL behind the length", post(LENGTH.encode() + b"\x00", "X-B: c") + ONE),
    refused("a control character in a value", get("/version", b"X-A: b\x01c")),
    refused("DEL in a value", get("/version", b"X-A: b\x7fc")),
    refused("a bare CR in a value", get("/version", b"X-A: b\rContent-Length: 5")),
    refused("CR CR LF", get("/version", b"X-A: b\r")),
    refused("a bare LF between headers", get("/version", "X-A: b\nX-B: c")),
    refused("a bare LF behind the request line", b"GET /version HTTP/1.1\nHost: a\r\n\r\n"),
    refused("a bare LF as the empty line", b"GET /version HTTP/1.1\r\nHost: a\r\n\n"),
    refused("a folded line", get("/version", "X-A: b\r\n c")),
    refused("a folded line with a tab", get("/version", "X-A: b\r\n\tc")),
    refused("a folded line with a colon", get("/version", "X-A: b\r\n c: d")),
    refused("a first header that is folded", lines(b"GET /version HTTP/1.1", b" X: b", b"Host: a")),
    taken("an empty value", get("/version", "X-A:")),
    taken("white space before a value", get("/version", "X-A: \t b")),
    taken("a value beyond ASCII", get("/version", b"X-A: \xe9")),
    taken("50 headers", get("/version", *[f"X-{i}: b" for i in range(50)])),
    taken("a header of 16,000 bytes", get("/version", "X-A: " + 16000 * "b")),
    refused_by_library("a header of 40,000 bytes", get("/version", "X-A: " + 40000 * "b"), 431),
    refused_by_library("5,000 headers", get("/version", *["X-A: b"] * 5000), 431),
    refused("no Host", get(host=None)),
    refused("no Host in HTTP/1.2", get(host=None, version="HTTP/1.2")),
    refused("two Hosts", get("/version", "Host: b")),
    refused("a Host with a space", get(host="a b")),
    refused("a Host with a slash", get(host="a/b")),
    refused("a Host with a user", get(host="a@b")),
    taken("an empty Host", get(host="")),
    taken("a Host with an IPv6 address", get(host="[::1]:8080")),
]

TARGETS = [
    refused("%00", get("/version%00")),
    refused("%00 and more", get("/version%00.html")),
    refused("%00 in the query", get("/v1/jobs?state=%00")),
    refused("%zz", get("/%zz")),
    refused("a percent sign at the end", get("/version%")),
    refused("a percent sign and one digit", get("/version%2")),
    refused("a NUL", b"GET /version\x00x HTTP/1.1\r\nHost: a\r\n\r\n"),
    refused("a NUL in the method", b"GET\x00 /version HTTP/1.1\r\nHost: a\r\n\r\n"),
    refused("a control character", b"GET /version\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    refused("a target beyond ASCII", b"GET /version\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"),
    refused("a space in the target", get("/version x")),
    refused("two spaces before the target", get(" /version")),
    refused("two spaces behind the target", get("/version ")),
    refused("a fragment", get("/version#top")),
    refused("absolute form", get("http://test/version")),
    refused("authority form", head_of("CONNECT", "test:443")),
    refused("asterisk form", head_of("OPTIONS", "*")),
    refused("no slash", get("version")),
    refused("a target of 8,193 bytes", get("/version?" + 8184 * "a"), 414),
    taken("a target of 8,192 bytes", get("/version?" + 8183 * "a")),
    refused_by_library("a target of 40,000 bytes", get("/" + 40000 * "a"), 414),
]

NOT_FOUND = [
    Row(f"{target} is nothing", [get(target) + NEXT], [404, 200], KEPT, 1)
    for target in [
        "/",
        "/v1",
        "/v1/jobs/",
        "/v1/jobs//document",
        "/v1%2fjobs",
        "/v1%2Fjobs",
        "/versi%6fn",
        "/v1/../version",
        "/..",
        "/../../etc/passwd",
        "/./version",
        "/%2e%2e/version",
        "//version",
        "/version/",
        "/version;a=b",
        "/VERSION",
        "/v1\\jobs",
    ]
]

QUERIES = [
    Row(f"query of {target}", [get(target) + NEXT], [400, 200], KEPT, 2)
    for target in [
        "/v1/jobs?colour=red",
        "/v1/jobs?limit=0",
        "/v1/jobs?limit=101",
        "/v1/jobs?limit=1x",
        "/v1/jobs?limit=",
        "/v1/jobs?limit=99999999999999999999",
        "/v1/jobs?state=unknown",
        "/v1/jobs?cursor=-1",
        "/v1/jobs/aaaaaaaaaaaaaaaaaaaaaaaaaa?wait=61",
        "/v1/jobs/aaaaaaaaaaaaaaaaaaaaaaaaaa/document?page=1",
        "/v1/jobs/aaaaaaaaaaaaaaaaaaaaaaaaaa/tickets?limit=1001",
    ]
] + [
    taken("a query where none is known is let pass", get("/version?a=b")),
    Row(
        "an unknown query of a batch",
        [post_of(ONE, target="/v1/batches?dryrun=1") + NEXT],
        [400, 200],
        KEPT,
        2,
    ),
]

METHODS = [
    Row(f"{method} where it is not offered", [head_of(method, target) + NEXT], [405, 200], KEPT, 2)
    for method, target in [
        ("PUT", "/version"),
        ("PATCH", "/v1/jobs"),
        ("OPTIONS", "/v1/jobs"),
        ("TRACE", "/healthz"),
        ("CONNECT", "/healthz"),
        ("BREW", "/healthz"),
        ("get", "/version"),
        ("Get", "/version"),
        ("POST", "/version"),
        ("DELETE", "/v1/jobs"),
        ("GET", "/v1/batches"),
    ]
] + [
    Row("PUT with a body", [head_of("PUT", "/v1/batches", LENGTH) + ONE + NEXT], [405], CLOSED, 1),
    refused("a method that is no token", head_of("G{T", "/version")),
    refused("a method of 300 letters", head_of(300 * "A", "/version")),
]

VERSIONS = [
    Row("HTTP/1.0 ends", [get(version="HTTP/1.0") + NEXT], [200], CLOSED, 1),
    Row("HTTP/1.0 without Host", [get(version="HTTP/1.0", host=None)], [200], CLOSED, 1),
    taken("HTTP/1.0 keep-alive", get("/version", "Connection: keep-alive", version="HTTP/1.0")),
    taken("HTTP/1.0 Keep-Alive", get("/version", "Connection: Keep-Alive", version="HTTP/1.0")),
    Row("HTTP/1.0 POST", [post(LENGTH, version="HTTP/1.0") + ONE], [200], CLOSED, 1),
    taken("HTTP/1.1 lives on", get()),
    taken("HTTP/1.2 is taken for 1.1", get(version="HTTP/1.2")),
    Row("Connection: close", [get("/version", "Connection: close") + NEXT], [200], CLOSED, 1),
    Row("Connection: Close", [get("/version", "Connection: Close") + NEXT], [200], CLOSED, 1),
    Row("Connection: TE, close", [get("/version", "Connection: TE, close")], [200], CLOSED, 1),
    taken("an upgrade is not taken up", get("/version", "Connection: Upgrade", "Upgrade: h2c")),
    taken("an empty line before a request", b"\r\n" + get()),
    refused_by_library("HTTP/0.9", b"GET /version\r\n"),
    refused_by_library("HTTP/0.9 by name", get(version="HTTP/0.9"), 505),
    refused_by_library("HTTP/2.0", get(version="HTTP/2.0"), 505),
    refused_by_library("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    refused_by_library("HTTP/1", get(version="HTTP/1")),
    refused_by_library("HTTP/1.10", get(version="HTTP/1.10")),
    refused_by_library("http/1.1", get(version="http/1.1")),
    refused_by_library("HTTP/1.1 and a NUL", get(version="HTTP/1.1\x00")),
    Row("a TLS hello", [bytes.fromhex("16030102000100") + 64 * b"\1"], [], CLOSED, 0),
]

CHUNKS = [
    taken("chunks of 3 bytes", post(CHUNKED) + chunks(ONE, 3)),
    taken("chunks with an extension", post(CHUNKED) + chunks(ONE, 64, b";a=b")),
    taken("chunks with a quoted extension", post(CHUNKED) + chunks(ONE, 64, b';a="b;c"')),
    taken("trailers", post(CHUNKED) + chunks(ONE, 64, trailer=b"X-T: v\r\n")),
    taken("a length as trailer", post(CHUNKED) + chunks(ONE, 64, trailer=b"Content-Length: 9\r\n")),
    taken("a size with zeros before it", post(CHUNKED) + b"0005\r\n{   }\r\n000\r\n\r\n", 422),
    taken("no chunk", post(CHUNKED) + b"0\r\n\r\n", 400),
    Row(
        "a chunked body at its limit",
        [post(CHUNKED) + chunks(BODY_BYTES_MAX * b" ", 1000) + NEXT],
        [400, 200],
        KEPT,
        2,
    ),
    Row(
        "a chunked body one byte beyond its limit",
        [post(CHUNKED) + chunks(BODY_BYTES_MAX * b" " + b"x", 1000) + NEXT],
        [413],
        CLOSED,
        1,
    ),
    Row(
        "a chunked body of twice its limit",
        [post(CHUNKED) + chunks(2 * BODY_BYTES_MAX * b" ", 1000) + NEXT],
        [413],
        CLOSED,
        1,
    ),
    # There the library leaves no way to answer (it takes none while a body arrives).
    Row(
        "a chunked body without end", [post(CHUNKED) + chunks(2**20 * b" ", 4096)], [], CLOSED, 1
    ),
    Row("a chunk of 2^64 - 1 bytes", [post(CHUNKED) + 16 * b"f" + b"\r\nx"], [], CLOSED, 1),
    refused_by_library("a size beyond 64 bits", post(CHUNKED) + 17 * b"f" + b"\r\nx", 413, 1),
    refused_by_library("bytes behind a chunk", post(CHUNKED) + b"3\r\nabcd\r\n0\r\n\r\n", 400, 1),
] + [
    refused_by_library(
        f"a chunk's size of {size!r}", post(CHUNKED) + size + b"\r\nabc\r\n0\r\n\r\n", 400, 1
    )
    for size in [b"xyz", b"-3", b"+3", b"0x3", b" 3", b"3 ", b"", b"3\rabc"]
]

BODIES = [
    taken("a body", post(LENGTH) + ONE),
    Row("a length at its limit", [post_of(BODY_BYTES_MAX * b" ") + NEXT], [400, 200], KEPT, 2),
    Row("a length one beyond it", [post_of(BODY_BYTES_MAX * b" " + b"x") + NEXT], [413], CLOSED, 1),
    Row("20 MB that keep coming", [post_of(20_000_000 * b" ")], [413], CLOSED, 1),
    Row("too large, nothing sent", [post("Content-Length: 20000000")], [413], CLOSED, 1),
    taken("no body", post(), 400),
    taken("a body of length 0", post("Content-Length: 0"), 400),
    Row("GET with a body", [get("/version", "Content-Length: 5") + b"12345"], [400], CLOSED, 1),
    Row("GET with chunks", [get("/version", CHUNKED) + chunks(NEXT, 999)], [400], CLOSED, 1),
    taken("GET with a length of 0", get("/version", "Content-Length: 0")),
    Row(
        "DELETE with a body",
        [head_of("DELETE", f"/v1/jobs/{26 * 'a'}", "Content-Length: 5") + b"12345"],
        [400],
        CLOSED,
        1,
    ),
    taken("a type with a charset", post_of(ONE).replace(b"json\r", b"json; charset=utf-8\r")),
    taken("a type in capitals", post_of(ONE).replace(b"application/json", b"Application/JSON")),
    Row("an unknown path with a body", [post_of(ONE, target="/v2") + NEXT], [404], CLOSED, 0),
] + [
    Row(
        f"a type of {kind}", [head_of("POST", "/v1/batches", *kind, LENGTH) + ONE], [415], CLOSED, 1
    )
    for kind in [
        [],
        ["Content-Type:"],
        ["Content-Type: text/json"],
        ["Content-Type: application/jsonx"],
        ["Content-Type: application/json", "Content-Encoding: gzip"],
        ["Content-Type: application/json", "Content-Encoding: br"],
    ]
]

EXPECTATIONS = [
    Row(
        "100-continue",
        [post("Expect: 100-continue", LENGTH), 0.1, ONE + NEXT],
        [100, 200, 200],
        KEPT,
        2,
    ),
    Row(
        "100-continue for chunks",
        [post("Expect: 100-Continue", CHUNKED), 0.1, chunks(ONE, 64) + NEXT],
        [100, 200, 200],
        KEPT,
        2,
    ),
    Row(
        "100-continue, too large",
        [post("Expect: 100-continue", "Content-Length: 99999999")],
        [413],
        CLOSED,
        1,
    ),
    Row(
        "100-continue, wrong type",
        [head_of("POST", "/v1/batches", "Expect: 100-continue", LENGTH)],
        [415],
        CLOSED,
        1,
    ),
    refused("100-continue without a body", get("/version", "Expect: 100-continue"), 417),
    refused("100-continue with length 0", post("Expect: 100-continue", "Content-Length: 0"), 417),
    refused("another expectation", post("Expect: 200-ok", LENGTH) + ONE, 417),
    Row(
        "100-continue of HTTP/1.0 is ignored",
        [post("Expect: 100-continue", LENGTH, version="HTTP/1.0") + ONE],
        [200],
        CLOSED,
        1,
    ),
]

PIPELINES = [
    Row("3 pipelined", [get() + get("/healthz") + get()], 3 * [200], KEPT, 3),
    Row("3 batches pipelined", [3 * post_of(ONE)], 3 * [200], KEPT, 3),
    Row("a batch between two", [get() + post_of(ONE) + get("/nowhere")], [200, 200, 404], KEPT, 2),
    Row("a refused one ends the line", [get() + get("/%zz") + get()], [200, 400], CLOSED, 1),
    Row("3 pipelined, then half-closed", [3 * get(), HALF_CLOSE], 3 * [200], CLOSED, 3),
]

# Half a close while a request or its body is incomplete is found at the deadline at the latest.
PACE = [
    Row("a request byte by byte", [bytes([b]) for b in get()], [200], KEPT, 1),
    Row("a body byte by byte", [post(LENGTH)] + [bytes([b]) for b in ONE], [200], KEPT, 1),
    Row("a header in two parts", [get()[:9], 0.2, get()[9:] + NEXT], [200, 200], KEPT, 2),
    Row("a body in two parts", [post_of(ONE)[:-9], 0.3, ONE[-9:] + NEXT], [200, 200], KEPT, 2),
    Row("nothing sent", [], [], CLOSED, 0),
    Row("a header that does not end", [get()[:-2]], [], CLOSED, 0),
    Row("a header that drips", 9 * [get()[:1], HEADER_TIMEOUT_S / 8], [], CLOSED, 0),
    Row("a second header that does not end", [get() + get()[:-2]], [200], CLOSED, 1),
    Row("a body that does not end", [post_of(ONE)[:-1]], [], CLOSED, 1),
    Row("a body that drips", [post(LENGTH)] + 9 * [b"{", BODY_TIMEOUT_S / 8], [], CLOSED, 1),
    Row("chunks that do not end", [post(CHUNKED) + chunks(ONE, 64)[:-2]], [], CLOSED, 1),
    Row(
        "idle after an answer", [get()], [200], CLOSED, 1, ends_within_s=IDLE_TIMEOUT_S + LATE_S
    ),
    Row("half-closed after the request", [get(), HALF_CLOSE], [200], CLOSED, 1),
    Row("half-closed in the header", [get()[:9], HALF_CLOSE], [], CLOSED, 0),
    Row("half-closed in the body", [post_of(ONE)[:-9], HALF_CLOSE], [], CLOSED, 1),
    Row("half-closed at once", [HALF_CLOSE], [], CLOSED, 0),
]

TABLES = {
    "lengths": LENGTHS,
    "headers": HEADERS,
    "targets": TARGETS,
    "no such path": NOT_FOUND,
    "queries": QUERIES,
    "methods": METHODS,
    "versions": VERSIONS,
    "chunks": CHUNKS,
    "bodies": BODIES,
    "Expect": EXPECTATIONS,
    "pipelines": PIPELINES,
    "pace": PACE,
}


# ---- running rows --------------------------------------------------------------------------------


def send_pieces(connection, pieces):
    """A service that has had enough may close while we send: its answer is read all the same."""
    try:
        for piece in pieces:
            if piece is HALF_CLOSE:
                connection.half_close()
            elif isinstance(piece, float):
                time.sleep(piece)
            else:
                connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass


def expect_answer(answer, status, made):
    assert answer is not None, f"the connection ended; {status} was to come"
    assert answer.status == status, f"{status} was to come: {answer}"
    assert (answer.header("X-Request-Id") is not None) == (
        status != 100 and made == SERVICE or status < 300 and status != 100
    ), answer
    if status < 400:
        return
    if made == LIBRARY:
        assert answer.header("Content-Type") is None, answer
        return
    assert answer.header("Content-Type") == PROBLEM_TYPE, answer
    problem = answer.json()
    assert problem["status"] == status and problem["instance"] == answer.header("X-Request-Id")
    assert (status == 405) == (answer.header("Allow") is not None), answer


def expect_end(connection, row):
    if row.end == KEPT:
        assert connection.is_open(), "the connection was closed"
        return
    if row.made == LIBRARY:
        connection.read = b""  # for a bad length, libmicrohttpd sends its header twice
        while connection.read_more(row.ends_within_s):
            connection.read = b""
        return
    assert connection.is_ended(row.ends_within_s), f"it goes on: {connection.read[:300]!r}"


def routed_since(service, before, sentinel):
    """Requests that reached a route, once all that came before the sentinel are logged."""
    service.call("GET", "/nowhere", headers={"X-Request-Id": sentinel})
    service.wait_for_line(request=sentinel)
    lines_since = service.log(event="request")[before:]
    return [line for line in lines_since if line["route"] != "none"]


def run_row(service, row, sentinel):
    before = len(service.log(event="request"))
    with service.connect() as connection:
        send_pieces(connection, row.pieces)
        for status in row.statuses:
            expect_answer(connection.answer(), status, row.made)
        expect_end(connection, row)
    routed = routed_since(service, before, sentinel)
    count = len(routed) - (row.end == KEPT)  # is_open asks once more
    assert count == row.routed, f"{row.routed} were to reach a route: {routed}"


def run_tables(program, report):
    with Service(program, *OPTIONS) as service:
        for title, table in TABLES.items():
            for row in table:
                made = "" if row.made == SERVICE else f" ({row.made})"
                name = f"{title}: {row.name}: {row.statuses} {row.end}{made}"
                report.run(name, run_row, service, row, f"after-row-{id(row)}")
        report.run("all of this leaves no connection behind", expect_no_connection, service)
        report.check("and no fault in the log", not service.log(level="error"))
        report.check("and SIGTERM ends it with status 0", service.stop() == 0)
        report.check("with log lines only", not service.other_lines, service.other_lines)


def expect_no_connection(service):
    """But for the one that asks."""
    deadline = time.monotonic() + IDLE_TIMEOUT_S + LATE_S
    while service.metrics()["ticketpress_http_connections"] > 1:
        assert time.monotonic() < deadline, "connections are left"
        time.sleep(0.05)


# ---- what needs more than a row ------------------------------------------------------------------


def headers_to_compare(answer):
    changing = ("date", "x-request-id", "content-length")
    return sorted((k, v) for k, v in answer.headers if k.lower() not in changing)


def check_head(service, target, changes_length=False):
    """HEAD has GET's status and headers, no body, and leaves the connection usable."""
    with service.connect() as connection:
        connection.send(head_of("GET", target))
        with_get = connection.answer()
        connection.send(head_of("HEAD", target))
        with_head = connection.answer(to_head=True)
        assert with_head.status == with_get.status, (with_get, with_head)
        assert headers_to_compare(with_head) == headers_to_compare(with_get)
        same_length = with_head.header("Content-Length") == with_get.header("Content-Length")
        assert same_length or changes_length, (with_get, with_head)
        assert connection.is_open(), "the connection was closed"


def check_allow(service, method, target, allow):
    answer = service.call(method, target)
    assert answer.status == 405 and answer.header("Allow") == allow, answer


def check_request_id(service, given, is_kept):
    for target in ("/version", "/nowhere", "/%zz"):
        answer = service.call("GET", target, headers={"X-Request-Id": given})
        told = answer.header("X-Request-Id")
        assert (told == given) == is_kept and told, answer
        assert target == "/version" or answer.json()["instance"] == told, answer
        service.wait_for_line(event="request", request=told)


def check_no_echo(service):
    """A compressed body is refused without a byte of it in the answer or the log."""
    body = bytes([31, 139, 8, 0]) + b"PLANTED-IN-THE-BODY" * 3
    headers = {"Content-Encoding": "gzip", "Content-Type": JSON_TYPE}
    answer = service.call("POST", "/v1/batches", body, headers)
    assert answer.status == 415 and b"PLANTED" not in answer.body, answer
    assert "PLANTED" not in json.dumps(service.log()) + "".join(service.other_lines)


def check_interim_answer(service):
    """100 comes before the body was sent, and at once."""
    with service.connect() as connection:
        began = time.monotonic()
        connection.send(post("Expect: 100-continue", LENGTH))
        assert connection.answer().status == 100
        assert time.monotonic() - began < HEADER_TIMEOUT_S
        connection.send(ONE)
        assert connection.answer().status == 200


def run_details(program, report):
    with Service(program, *OPTIONS) as service:
        job = service.call("POST", "/v1/batches", batch_of(2), {"Prefer": "respond-async"}).json()
        service.wait_for_end(job["id"])
        link = f"/v1/jobs/{job['id']}"
        for target in ["/version", "/readyz", "/v1/jobs", link, f"{link}/document"]:
            report.run(f"HEAD of {target.replace(job['id'], 'ID')}", check_head, service, target)
        report.run("HEAD of tickets", check_head, service, f"{link}/tickets")
        report.run("HEAD of nothing", check_head, service, "/nowhere", True)
        report.run("HEAD where only POST is offered", check_head, service, "/v1/batches", True)
        for target in ["/healthz", "/metrics"]:
            report.run(f"HEAD of {target}", check_head, service, target, True)
        for method, target, allow in [
            ("PUT", "/v1/batches", "POST"),
            ("PUT", "/v1/jobs", "GET, HEAD"),
            ("PUT", link, "GET, HEAD, DELETE"),
            ("DELETE", f"{link}/document", "GET, HEAD"),
            ("GET", "/v1/tokens/verify", "POST"),
            ("OPTIONS", "/metrics", "GET, HEAD"),
        ]:
            name = f"Allow for {method} {target.replace(job['id'], 'ID')}: {allow}"
            report.run(name, check_allow, service, method, target, allow)
        for given, is_kept in [
            ("abc-DEF_0.9:x", True),
            (64 * "a", True),
            (65 * "a", False),
            ("with space", False),
            ('with"quote', False),
            ("", False),
        ]:
            word = "taken over" if is_kept else "replaced"
            name = f"X-Request-Id {given!r} is {word}"
            report.run(name, check_request_id, service, given, is_kept)
        report.run("a gzip body is not echoed", check_no_echo, service)
        report.run("100 Continue comes at once", check_interim_answer, service)


# ---- clients that go away ------------------------------------------------------------------------


def hold_worker(service):
    """Have the only worker busy with one slice of a thousand tickets."""
    answer = service.call("POST", "/v1/batches", batch_of(3000))
    assert answer.status == 202, answer
    deadline = time.monotonic() + 10
    while service.call("GET", "/healthz").json()["pool"]["busy"] == 0:
        assert time.monotonic() < deadline
    return answer.json()["id"]


def check_gone(service, leave):
    """A request whose client has gone is not begun: it costs a look, and nothing is rendered."""
    before = service.metrics()
    job = hold_worker(service)
    connection = service.connect()
    connection.send(post_of(ONE))
    deadline = time.monotonic() + 10
    while service.metrics()["ticketpress_http_parked_connections"] == 0:
        assert time.monotonic() < deadline
    leave(connection)
    end = service.wait_for_end(job)
    assert end["state"] == "succeeded", end
    after = service.metrics()
    gone = 'ticketpress_rejections_total{cause="peer_gone"}'
    assert after[gone] == before[gone] + 1, (before[gone], after[gone])
    tickets = "ticketpress_tickets_total"
    assert after[tickets] == before[tickets] + 3000, (before[tickets], after[tickets])
    connection.close()


def check_cancelled(service):
    """A batch that is waited for ends with its client."""
    cancelled = 'ticketpress_jobs_total{state="cancelled"}'
    before = service.metrics()
    with service.connect() as connection:
        connection.send(post_of(json.dumps(batch_of(5000)).encode(), "Prefer: wait=30"))
        deadline = time.monotonic() + 10
        while service.metrics()["ticketpress_jobs_running"] == 0:
            assert time.monotonic() < deadline, "the job was not admitted"
    while service.metrics()[cancelled] == before[cancelled]:
        assert time.monotonic() < deadline, "the job was not cancelled"
        time.sleep(0.02)
    assert service.metrics()["ticketpress_tickets_total"] == before["ticketpress_tickets_total"]


def run_departures(program, report):
    with Service(program, "--workers", 1, "--slice-tickets", 1000) as service:
        for name, leave in [
            ("closes", lambda connection: connection.close()),
            ("resets", lambda connection: connection.reset()),
            ("half-closes", lambda connection: connection.half_close()),
        ]:
            report.run(f"a client that {name} while it waits", check_gone, service, leave)
        report.run("a batch that is waited for ends with its client", check_cancelled, service)
        report.run("nobody is left parked", expect_none_parked, service)


def expect_none_parked(service):
    deadline = time.monotonic() + 10
    while service.metrics()["ticketpress_http_parked_connections"] > 0:
        assert time.monotonic() < deadline, "connections are left"
        time.sleep(0.05)


# ---- who may call, and how often -----------------------------------------------------------------

CLIENTS = [
    {"name": "box-office", "key": "box-office-key-0123456789", "scopes": ["render"]},
    {"name": "gate", "key": "gate-key-0123456789abcdef", "scopes": ["verify"]},
]


def check_caller(service, headers, status):
    with service.connect() as connection:
        length = f"Content-Length: {len(ONE)}"
        connection.send(head_of("POST", "/v1/batches", JSON_HEADER, length, *headers) + ONE + NEXT)
        answer = connection.answer()
        expect_answer(answer, status, SERVICE)
        assert (answer.header("WWW-Authenticate") == "Bearer") == (status == 401), answer
        if status == 200:
            assert connection.is_open()
        else:
            assert connection.is_ended(), "the body might be read as a request"


def run_callers(program, report):
    render, verify = (f"Authorization: Bearer {client['key']}" for client in CLIENTS)
    with Service(program, "--workers", 1, clients=CLIENTS) as service:
        for name, headers, status in [
            ("the right key", [render], 200),
            ("the scheme in lower case", [render.replace("Bearer", "bearer")], 200),
            ("no key", [], 401),
            ("another scheme", [render.replace("Bearer", "Basic")], 401),
            ("an empty key", ["Authorization: Bearer "], 401),
            ("a key cut short", [render[:-1]], 401),
            ("a key and more", [render + "x"], 401),
            ("a key in the query's place", ["X-Api-Key: " + CLIENTS[0]["key"]], 401),
            ("a key without the scope", [verify], 403),
        ]:
            report.run(f"caller with {name}: {status}", check_caller, service, headers, status)
        for target in ["/healthz", "/readyz", "/metrics", "/version"]:
            status = service.call("GET", target).status
            report.check(f"{target} asks for no key", status == 200, status)
        log = json.dumps(service.log()) + "".join(service.other_lines)
        report.check("no key is in the log", not any(c["key"] in log for c in CLIENTS))


def check_limit(service, limit):
    connections = [service.connect() for _ in range(limit)]
    for connection in connections:
        connection.send(get())
        assert connection.answer().status == 200
    with service.connect() as one_more:
        send_pieces(one_more, [get()])
        assert one_more.is_ended(), "it was served"
    connections.pop().close()
    deadline = time.monotonic() + 10
    while True:  # the place comes free when the service has seen the close
        with service.connect() as instead:
            send_pieces(instead, [get()])
            if instead.answer() is not None:
                break
        assert time.monotonic() < deadline, "no place came free"
    for connection in connections:
        assert connection.is_open()
        connection.close()


def run_limits(program, report):
    with Service(program, "--workers", 1, "--connections-per-address-max", 4) as service:
        report.run("the fifth connection of an address is closed", check_limit, service, 4)


def main():
    program = sys.argv[1]
    report = Report()
    rows = sum(len(table) for table in TABLES.values())
    report.check(f"{rows} rows", rows >= 150)
    run_tables(program, report)
    run_details(program, report)
    run_departures(program, report)
    run_callers(program, report)
    run_limits(program, report)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
