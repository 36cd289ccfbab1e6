#!/usr/bin/env python3
"""The front end never computes: it answers as quickly when every worker is held or busy as at rest,
and what computes runs on the pool's threads.

usage: test_front_end.py PROGRAM

shims/hold_symbols.c holds the workers, shims/trace_threads.c notes who computes, and
shims/spoil_front_end.c plants a front end that rests or computes, which must be caught.
"""

import contextlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from preload import Shims
from service_under_test import PROBLEM_TYPE, Report, Service, batch_of, head_of, post_of

HOLD, TRACE, SPOIL = "hold_symbols", "trace_threads", "spoil_front_end"
WORKERS = 2
ROUNDS = 200  # of each request, for one figure
ROUNDS_BUSY_MAX = 2000
RESTING_ROUNDS = 10
SLOWER_MAX = 10  # times
FLOOR_MS = 5.0  # nothing is slow below it: the machine is shared
LAG_PROMISED_US = 5000
LAG_GUARD_US = 10 * LAG_PROMISED_US
LATE_SHARE_MAX = 0.25
BODY_BYTES_MAX = 32 << 20
HOSTILE_BYTES = 20 << 20
NAMES = 400000  # of an object: what takes the longest to parse
POST_TIMEOUT_S = 60
EARLIER_TICKETS = 100
HELD_TICKETS = 400
LINGER_MS = 60000
KEY = "a-client-of-the-front-end-test"
AUTHORIZATION = f"Authorization: Bearer {KEY}"
PRESS_THREAD = re.compile(r"press-\d+")

# What computes: each must be seen, and on the pool's threads only.
COMPUTING = {
    "parsing": {"json_load_callback", "json_loadb"},
    "signing": {"EVP_MAC_update"},
    "encoding symbols": {"QRcode_encodeData"},
    "shaping": {"hb_shape"},
    "compressing": {"libdeflate_zlib_compress"},
    "composing": {"HPDF_Xref_WriteToStream"},
}


def start(program, shims=None, *options):
    """A service with one client, which has every scope, and workers that are never given up."""
    clients = [{"name": "front", "key": KEY, "scopes": ["render", "verify", "admin"]}]
    options += ("--workers", WORKERS, "--task-deadline-ms", 600000)
    options += ("--body-bytes-max", BODY_BYTES_MAX, "--drain-linger-ms", LINGER_MS)
    return Service(program, *options, clients=clients, env=shims.env if shims else None)


def call(service, method, path, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return service.call(method, path, body, {"Authorization": f"Bearer {KEY}", **headers})


def submit(service, tickets_count):
    answer = call(service, "POST", "/v1/batches", batch_of(tickets_count), Prefer="respond-async")
    if answer.status != 202:
        raise AssertionError(answer)
    return answer.json()["id"]


# ---- requests whose time counts ----


def requests_of(done_id, polled_id):
    """name -> bytes, status. None of them needs a worker."""
    document = f"/v1/jobs/{done_id}/document"
    return {
        "healthz": (head_of("GET", "/healthz"), 200),
        "a poll": (head_of("GET", f"/v1/jobs/{polled_id}", AUTHORIZATION), 200),
        "the jobs": (head_of("GET", "/v1/jobs", AUTHORIZATION), 200),
        "a download": (head_of("GET", document, AUTHORIZATION), 200),
        "401": (head_of("GET", document), 401),
        "404": (head_of("GET", "/v1/jobs/aaaaaaaaaaaaaaaaaaaaaaaaaa", AUTHORIZATION), 404),
        "405": (head_of("DELETE", "/healthz"), 405),
        "413": (
            head_of(
                "POST",
                "/v1/batches",
                AUTHORIZATION,
                "Content-Type: application/json",
                f"Content-Length: {BODY_BYTES_MAX + 1}",
            ),
            413,
        ),
        "415": (
            head_of(
                "POST",
                "/v1/batches",
                AUTHORIZATION,
                "Content-Type: text/plain",
                "Content-Length: 0",
            ),
            415,
        ),
    }


DRAIN_REQUESTS = {
    "503 to a batch": (post_of(b"{}", AUTHORIZATION), 503),
    "503 of readyz": (head_of("GET", "/readyz"), 503),
}


def time_of(service, request, status):
    """Milliseconds from the connect to the answer's last byte."""
    began = time.perf_counter()
    with service.connect() as connection:
        connection.send(request)
        answer = connection.answer()
    took_ms = (time.perf_counter() - began) * 1000
    if answer is None or answer.status != status:
        raise AssertionError(f"not {status} but {answer} to {request[:200]!r}")
    if status >= 400 and answer.header("Content-Type") != PROBLEM_TYPE:
        raise AssertionError(f"not a problem: {answer}")
    return took_ms


class Subject:
    """A service, and requests to it."""

    def __init__(self, service, requests):
        self.service = service
        self.requests = requests
        self.times = {name: [] for name in requests}

    def measure(self, name):
        request, status = self.requests[name]
        self.times[name].append(time_of(self.service, request, status))

    def median_ms(self, name):
        return statistics.median(self.times[name])

    def p95_ms(self, name):
        return statistics.quantiles(self.times[name], n=20)[-1]


def is_quick(figure_ms, rest_ms):
    return figure_ms <= max(SLOWER_MAX * rest_ms, FLOOR_MS)


def compare(subject, rest, goes_on):
    """The same requests to both in turn, so that what disturbs the machine disturbs both."""
    rounds = 0
    while goes_on(rounds):
        rounds += 1
        for name in subject.requests:
            subject.measure(name)
            rest.measure(name)


def report_figures(report, state, subject, rest, goes_on=lambda rounds: rounds < ROUNDS):
    lag = Lag(subject.service)
    compare(subject, rest, goes_on)
    for name, times in subject.times.items():
        now_ms, rest_ms = subject.median_ms(name), rest.median_ms(name)
        report.check(
            f"{name} {state}: {now_ms:.2f} ms, at rest {rest_ms:.2f} ms (medians of {len(times)}; "
            f"p95 {subject.p95_ms(name):.2f} and {rest.p95_ms(name):.2f} ms)",
            is_quick(now_ms, rest_ms),
        )
    report.check(f"front-end lag {state}: {lag}", lag.is_small())


class Lag:
    """How late the front end's own timer runs, from here on."""

    def __init__(self, service):
        self.service = service
        self.began_s = time.monotonic()
        self.began_late_s = self.late_s()

    def late_s(self):
        return self.service.metrics()["ticketpress_front_end_lag_seconds_sum"]

    def max_us(self):
        return self.service.call("GET", "/healthz").json()["front_end"]["lag_max_us"]

    def late_share(self):
        """The part of the time for which it was late."""
        return (self.late_s() - self.began_late_s) / (time.monotonic() - self.began_s)

    def is_small(self):
        """One late tick is not the front end's doing where others use the machine too."""
        return self.max_us() < LAG_GUARD_US or self.late_share() < LATE_SHARE_MAX

    def __str__(self):
        word = "within" if self.max_us() < LAG_PROMISED_US else "NOT within"
        return (
            f"{self.max_us() / 1000:.2f} ms at most, {word} the promised "
            f"{LAG_PROMISED_US / 1000:.0f} ms, late for {self.late_share():.1%} of the time"
        )


# ---- hostile bodies ----


def filled(begin, piece, end):
    return begin + piece * ((HOSTILE_BYTES - len(begin) - len(end)) // len(piece)) + end


def hostile_bodies():
    names = b",".join(b'"%07d":0' % number for number in range(NAMES))
    return {
        "nested": filled(b"[", b"[", b""),
        "empty lists": filled(b"[", b"[],", b"0]"),
        "one text of escapes": filled(b'{"event":"', rb"\ud83d\udca9", b'"}'),
        "names, all different": b"{" + names + b"}",
        "one number": filled(b"[1", b"1", b"]"),
    }


class Posts:
    """curl, posting each file in turn: another process, whose work is not this one's."""

    def __init__(self, service, paths):
        url = f"http://127.0.0.1:{service.port}/v1/batches"
        options = ["-sS", "-m", str(POST_TIMEOUT_S), "-w", "%{http_code} %{content_type}\\n"]
        options += ["-o", "/dev/null", "-H", AUTHORIZATION, "-H", "Content-Type: application/json"]
        options += ["-H", "Expect:"]
        command = ["curl"]
        for path in paths:
            command += [*options, "--data-binary", f"@{path}", url, "--next"]
        self.process = subprocess.Popen(
            command[:-1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def is_running(self):
        return self.process.poll() is None

    def answers(self):
        text, _ = self.process.communicate(timeout=5 * POST_TIMEOUT_S)
        return text.decode().splitlines()


@contextlib.contextmanager
def hostile_files():
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        paths = {}
        for number, (name, body) in enumerate(hostile_bodies().items()):
            paths[name] = Path(folder) / f"{number}.json"
            paths[name].write_bytes(body)
        yield paths


def are_refused(answers, count):
    """Each was answered, by a problem that blames the body."""
    right = re.compile(rf"(400|413|422) {re.escape(PROBLEM_TYPE)}")
    return len(answers) == count and all(right.fullmatch(answer) for answer in answers)


# ---- quickness ----


def earlier_job(service):
    """A job that has ended, whose document nobody has fetched."""
    job_id = submit(service, EARLIER_TICKETS)
    service.wait_for_line(event="job", job=job_id)
    return job_id


def hold_all(report, shims, service):
    """Hold every worker in the middle of a ticket; the job that they are held in."""
    shims.hold()
    since = shims.size(HOLD)
    job_id = submit(service, HELD_TICKETS)
    shims.wait_for_lines(HOLD, WORKERS, since, event="held")
    expect_held(report, service, job_id)
    return job_id


def expect_held(report, service, job_id):
    health = service.call("GET", "/healthz").json()
    job = call(service, "GET", f"/v1/jobs/{job_id}").json()
    report.check(
        f"{health['pool']['busy']} of {WORKERS} workers are held, no ticket is done",
        health["pool"]["busy"] == WORKERS and job["tickets"]["done"] == 0,
        f"{health} {job}",
    )


def wait_for_parked(service):
    deadline = time.monotonic() + POST_TIMEOUT_S
    while service.call("GET", "/healthz").json()["front_end"]["parked"] == 0:
        if time.monotonic() > deadline:
            raise TimeoutError("the body did not arrive")


def test_parsing(report, service, rest, paths):
    state = "while hostile bodies are parsed"
    job_id, rest_id = earlier_job(service), earlier_job(rest)
    subject = Subject(service, requests_of(job_id, job_id))
    with Posts(service, paths.values()) as posts:
        report_figures(
            report,
            state,
            subject,
            Subject(rest, requests_of(rest_id, rest_id)),
            lambda rounds: rounds < ROUNDS_BUSY_MAX and posts.is_running(),
        )
        answers = posts.answers()
    size_mib = sum(path.stat().st_size for path in paths.values()) >> 20
    is_right = are_refused(answers, len(paths))
    report.check(f"the {len(paths)} bodies, {size_mib} MiB, are refused", is_right, answers)


def test_held(report, shims, service, rest, path):
    job_id, rest_id = earlier_job(service), earlier_job(rest)
    held_id = hold_all(report, shims, service)

    def report_all(state):
        subject = Subject(service, requests_of(job_id, held_id))
        report_figures(report, state, subject, Subject(rest, requests_of(rest_id, rest_id)))

    report_all("with every worker held")
    with Posts(service, [path]) as posts:
        wait_for_parked(service)
        report_all("with a hostile body waiting too")
        test_draining(report, service, rest)
        expect_held(report, service, held_id)
        shims.release()
        answers = posts.answers()
    report.check("the body is refused when a worker is free", are_refused(answers, 1), answers)


def test_draining(report, service, rest):
    """The other one stays as long, because of its document that nobody has fetched."""
    earlier_job(rest)
    for draining in (service, rest):
        draining.signal(signal.SIGTERM)
        draining.wait_for_line(event="draining")
    state = "while it drains with every worker held"
    report_figures(report, state, Subject(service, DRAIN_REQUESTS), Subject(rest, DRAIN_REQUESTS))


def test_quickness(report, program):
    with contextlib.ExitStack() as stack:
        paths = stack.enter_context(hostile_files())
        shims = stack.enter_context(Shims(HOLD))
        service = stack.enter_context(start(program, shims))
        rest = stack.enter_context(start(program))
        test_parsing(report, service, rest, paths)
        test_held(report, shims, service, rest, paths["nested"])


# ---- threads ----


def thread_faults(lines):
    for what, calls in COMPUTING.items():
        seen = [line for line in lines if line["call"] in calls]
        others = {line["thread"] for line in seen if not PRESS_THREAD.fullmatch(line["thread"])}
        if not seen:
            yield f"{what} was never seen"
        if others:
            yield f"{what} on {', '.join(sorted(others))}"


def use_everything(service):
    """Every call that has work for the pool."""
    call(service, "POST", "/v1/batches", batch_of(1))
    call(service, "POST", "/v1/batches", batch_of(20))
    call(service, "POST", "/v1/batches?dry_run=1", batch_of(20))
    call(service, "POST", "/v1/batches", b'{"event": ')
    job_id = submit(service, 200)
    service.wait_for_end(job_id, headers={"Authorization": f"Bearer {KEY}"})
    call(service, "GET", f"/v1/jobs/{job_id}/document")
    tickets = call(service, "GET", f"/v1/jobs/{job_id}/tickets").json()["tickets"]
    verdict = call(service, "POST", "/v1/tokens/verify", {"token": tickets[0]["token"]}).json()
    if not verdict["valid"]:
        raise AssertionError(verdict)
    service.signal(signal.SIGHUP)
    service.wait_for_line(event="reloaded", what="layouts")


def trace(program, *spoilers, **settings):
    with Shims(*spoilers, TRACE, **settings) as shims, start(program, shims) as service:
        since = shims.size(TRACE)
        use_everything(service)
        return shims.lines(TRACE, since)


def test_trace(report, program):
    lines = trace(program)
    faults = list(thread_faults(lines))
    for what, calls in COMPUTING.items():
        count = sum(line["call"] in calls for line in lines)
        fault = [fault for fault in faults if fault.startswith(what)]
        report.check(f"{what} runs on the pool's threads only: {count} calls", not fault, fault)
    faults = list(thread_faults(trace(program, SPOIL, SPOIL="compute")))
    caught = len(faults) == 1 and faults[0].startswith("encoding symbols on ")
    report.check("a front end that computes is caught", caught, faults)
    report.check("so is work that is not seen", len(list(thread_faults([]))) == len(COMPUTING))


# ---- the measure ----


def test_resting(report, program):
    """The measure can fail."""
    requests = {"healthz": (head_of("GET", "/healthz"), 200)}
    with contextlib.ExitStack() as stack:
        shims = stack.enter_context(Shims(SPOIL, SPOIL="rest"))
        resting = Subject(stack.enter_context(start(program, shims)), requests)
        rest = Subject(stack.enter_context(Service(program)), requests)
        lag = Lag(resting.service)
        compare(resting, rest, lambda rounds: rounds < RESTING_ROUNDS)
        figure_ms = resting.median_ms("healthz")
        report.check(
            f"a front end that rests is caught: {figure_ms:.1f} ms, lag {lag}",
            not is_quick(figure_ms, rest.median_ms("healthz")) and not lag.is_small(),
        )


def main(program):
    report = Report()
    report.run("quick answers", test_quickness, report, program)
    report.run("threads traced", test_trace, report, program)
    report.run("a resting front end", test_resting, report, program)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
