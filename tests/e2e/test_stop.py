#!/usr/bin/env python3
"""SIGTERM loses nothing that was promised, a second one stops at once, SIGHUP reloads.

usage: test_stop.py PROGRAM [CYCLES]

CYCLES: how many times a service is stopped in the middle of its work; 10, 50 where
TP_TEST_LONG is set, and 3 where a sanitizer looks at it.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from service_under_test import (
    PROBLEM_TYPE,
    RING,
    ROOT,
    SANITIZED,
    Report,
    Service,
    batch_of,
    head_of,
    post_of,
)

IS_LONG = bool(os.environ.get("TP_TEST_LONG"))
CYCLES = 3 if SANITIZED else 50 if IS_LONG else 10
CLASSIC = ROOT / "service" / "data" / "layouts" / "classic.json"
TIMEOUT_S = 60
JOBS = 3
JOB_TICKETS = 1500
WAITED_TICKETS = 2500  # of the synchronous request: more than a job, so that it is not done early
LONG_JOB_TICKETS = 20000
JOBS_TO_CANCEL, JOB_TO_CANCEL_TICKETS = 8, 500
SIGNAL_AFTER_S_MAX = 0.1
LINGER_S = 5  # drain-linger-ms: a stop that takes as long did not see the last download
AT_ONCE_S = 5  # for "at once", on a busy machine
WAITED_BODY = json.dumps(batch_of(WAITED_TICKETS)).encode()


def health(service):
    return service.call("GET", "/healthz").json()


def wait_until(what, is_so, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() >= deadline:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.002)


def promise(service, tickets_count):
    answer = service.call("POST", "/v1/batches", batch_of(tickets_count), {"Prefer": "respond-async"})
    assert answer.status == 202, answer
    return answer.json()["id"]


def expect_whole_pdf(answer):
    assert answer is not None and answer.status == 200, answer
    assert answer.header("Content-Type") == "application/pdf", answer
    assert answer.body.startswith(b"%PDF-") and answer.body.rstrip().endswith(b"%%EOF"), answer


def expect_refused(answer):
    assert answer.status == 503 and answer.header("Content-Type") == PROBLEM_TYPE, answer
    assert answer.json()["code"] == "draining" and int(answer.header("Retry-After")) >= 1, answer


def expect_clean_log(service):
    faults = service.log(level="error") + service.log(level="warn") + service.other_lines
    assert not faults, faults


# ---- one signal ----------------------------------------------------------------------------------


def serves_while_draining(service, jobs):
    assert service.call("GET", "/readyz").status == 503
    assert health(service)["status"] == "draining"
    expect_refused(service.call("POST", "/v1/batches", batch_of(1)))
    expect_refused(service.call("POST", "/v1/batches", batch_of(500)))
    for job_id in jobs:
        assert service.call("GET", f"/v1/jobs/{job_id}").status == 200


def download_all(service, jobs):
    """Each as soon as it is there, by a client of its own: as pollers do."""
    documents = {}

    def fetch(job_id):
        job = service.wait_for_end(job_id, TIMEOUT_S)
        documents[job_id] = (job, service.call("GET", f"/v1/jobs/{job_id}/document"))

    threads = [threading.Thread(target=fetch, args=(job_id,)) for job_id in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(documents) == len(jobs), f"{len(documents)} of {len(jobs)} documents"
    for job, document in documents.values():
        assert job["state"] == "succeeded" and job["tickets"]["done"] == JOB_TICKETS, job
        expect_whole_pdf(document)
        assert len(document.body) == job["document"]["bytes"], document


def stop_in_the_middle(program, after_s):
    """A cycle; whether the synchronous request was under way when the signal came."""
    with Service(program, "--tickets-max", 50000) as service:
        jobs = [promise(service, JOB_TICKETS) for _ in range(JOBS)]
        with service.connect(TIMEOUT_S) as waiting:
            waiting.send(post_of(WAITED_BODY, "Prefer: wait=60"))
            # The batch is in when there is one job more than those promised, or they have ended.
            wait_until("the request is admitted", lambda: service.metrics()["ticketpress_jobs_running"]
                       + len(service.log(event="job")) > JOBS)
            time.sleep(after_s)
            service.signal(signal.SIGTERM)
            service.wait_for_line(event="draining")
            was_under_way = not service.log(event="request", route="/v1/batches", status=200)
            serves_while_draining(service, jobs)
            expect_whole_pdf(waiting.answer())
        started = time.monotonic()
        download_all(service, jobs)
        assert service.wait(TIMEOUT_S) == 0, service.other_lines
        assert time.monotonic() - started < LINGER_S, "it lingered with nothing to wait for"
        assert service.lines[-1]["event"] == "stopped", service.lines[-1]
        expect_clean_log(service)
        return was_under_way


def stop_again_and_again(program, cycles, found):
    chance = random.Random(cycles)
    for cycle in range(1, cycles + 1):
        after_s = chance.uniform(0, SIGNAL_AFTER_S_MAX)
        try:
            found["under_way"] += stop_in_the_middle(program, after_s)
        except (AssertionError, OSError, EOFError) as fault:
            raise AssertionError(f"stop {cycle}, {after_s:.3f} s later: {fault}") from fault


def an_idle_service_stops_at_once(program):
    with Service(program) as service:
        expect_whole_pdf(service.call("POST", "/v1/batches", batch_of(1)))
        started = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - started < AT_ONCE_S
        expect_clean_log(service)


def stop_waits_for_a_download(program):
    """drain-linger-ms is for those who have yet to come, and no longer."""
    with Service(program, "--drain-linger-ms", 1500) as service:
        job_id = promise(service, 51)
        service.wait_for_end(job_id)
        started = time.monotonic()
        service.signal(signal.SIGTERM)
        service.wait_for_line(event="draining")
        assert service.call("GET", f"/v1/jobs/{job_id}").json()["state"] == "succeeded"
        assert service.wait() == 0
        assert 1.5 <= time.monotonic() - started < 1.5 + AT_ONCE_S
        expect_clean_log(service)


def a_slow_download_is_whole(program):
    """Most of a large document is still to be sent when everything else is done."""
    with Service(program) as service:
        job_id = promise(service, LONG_JOB_TICKETS)
        length = service.wait_for_end(job_id)["document"]["bytes"]
        with service.connect(TIMEOUT_S) as slow:
            slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            slow.send(head_of("GET", f"/v1/jobs/{job_id}/document"))
            parts = [slow.socket.recv(4096)]
            service.signal(signal.SIGTERM)
            service.wait_for_line(event="closing")
            time.sleep(0.5)  # so that a service which does not wait has gone
            while parts[-1]:
                parts.append(slow.socket.recv(1 << 20))
        head, _, body = b"".join(parts).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and len(body) == length, (head, len(body), length)
        assert service.wait() == 0
        expect_clean_log(service)


def crossing_requests(service, answers):
    """One client after the other until nobody listens; an answer is whole, or there is none."""
    body = json.dumps(batch_of(1)).encode()
    while True:
        try:
            with service.connect() as connection:
                connection.send(post_of(body))
                answer = connection.answer()
        except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
            return
        if answer is None:
            return
        answers.append(answer)


def a_signal_crosses_requests(program):
    with Service(program) as service:
        answers = []
        threads = [threading.Thread(target=crossing_requests, args=(service, answers))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until("there is traffic", lambda: len(answers) > 20)
        assert service.stop() == 0
        for thread in threads:
            thread.join(TIMEOUT_S)
        assert not any(thread.is_alive() for thread in threads)
        for answer in answers:
            if answer.status == 200:
                expect_whole_pdf(answer)
            else:
                assert answer.json()["code"] in ("draining", "busy"), answer
                assert answer.status == 503 and int(answer.header("Retry-After")) >= 1, answer
        expect_clean_log(service)


def a_long_poll_is_answered(program):
    """It hears of the end of a job that ends while the service drains."""
    with Service(program, "--workers", 1, "--drain-linger-ms", 500) as service:
        job_id = promise(service, 5000)
        with service.connect(TIMEOUT_S) as waiting:
            wait_until("it runs", lambda: service.call("GET", f"/v1/jobs/{job_id}").json()["state"]
                       == "running")
            waiting.send(b"GET /v1/jobs/%s?wait=60 HTTP/1.1\r\nHost: t\r\n\r\n" % job_id.encode())
            wait_until("it waits", lambda: health(service)["front_end"]["parked"] == 1)
            service.signal(signal.SIGTERM)
            answer = waiting.answer()
            assert answer.status == 200 and answer.json()["state"] == "succeeded", answer
        assert service.wait() == 0
        expect_clean_log(service)


# ---- two signals ---------------------------------------------------------------------------------


def a_second_signal_stops_at_once(program):
    with Service(program, "--workers", 1) as service:
        jobs = [promise(service, LONG_JOB_TICKETS) for _ in range(JOBS)]
        with service.connect(TIMEOUT_S) as waiting, service.connect(TIMEOUT_S) as polling:
            waiting.send(post_of(WAITED_BODY, "Prefer: wait=60"))
            polling.send(b"GET /v1/jobs/%s?wait=60 HTTP/1.1\r\nHost: t\r\n\r\n" % jobs[-1].encode())
            wait_until("both wait", lambda: health(service)["front_end"]["parked"] == 2)
            service.signal(signal.SIGTERM)
            service.wait_for_line(event="draining")
            assert health(service)["jobs"]["running"] >= JOBS
            started = time.monotonic()
            service.signal(signal.SIGTERM)
            status = service.wait()
            took_s = time.monotonic() - started
            assert status == 0 and took_s < AT_ONCE_S, (status, took_s, service.other_lines)
            expect_told(waiting.answer())
            expect_told(polling.answer())
        service.wait_for_line(event="stopping")
        assert not service.log(event="job", state="succeeded", tickets=LONG_JOB_TICKETS)
        assert not service.other_lines, service.other_lines


def a_second_signal_ends_many_jobs(program):
    """All workers are inside of jobs, and tell of their ends while the service is taken down."""
    for gap_s in (0, 0.02, 0.1):
        with Service(program, "--workers", 4) as service:
            for _ in range(JOBS_TO_CANCEL):
                promise(service, JOB_TO_CANCEL_TICKETS)
            service.signal(signal.SIGTERM)
            time.sleep(gap_s)
            service.signal(signal.SIGTERM)
            status = service.wait()
            assert status == 0 and service.log(event="stopped"), (status, service.other_lines)


def expect_told(answer):
    """Cut off or told so; never a document, and never half of one."""
    if answer is not None and answer.status == 200:
        assert answer.json()["state"] in ("queued", "running", "cancelled"), answer
    else:
        assert answer is None or answer.status in (202, 503), answer


def an_interrupt_is_a_stop_too(program):
    with Service(program) as service:
        service.signal(signal.SIGINT)
        assert service.wait() == 0
        expect_clean_log(service)


# ---- reload --------------------------------------------------------------------------------------


class Reloads:
    """A service whose files are changed."""

    def __init__(self, service, layouts):
        self.service = service
        self.layouts = layouts

    def reload(self):
        """SIGHUP; what each part came to."""
        seen = len(self.service.log(event="reloaded")) + len(self.service.log(event="reload_failed"))
        self.service.signal(signal.SIGHUP)

        def new_lines():
            lines = self.service.log(event="reloaded") + self.service.log(event="reload_failed")
            return lines if len(lines) >= seen + 2 else None

        wait_until("both parts are reloaded", new_lines)
        lines = sorted(new_lines(), key=lambda line: line["time"])[-2:]
        return {line["what"]: line["event"] for line in lines}

    def write_ring(self, text):
        (self.service.folder / "ring.json").write_text(text, encoding="utf-8")

    def write_layout(self, name, text=None):
        layout = json.loads(CLASSIC.read_text(encoding="utf-8"))
        layout["name"] = name
        path = self.layouts / f"{name}.json"
        path.write_text(json.dumps(layout) if text is None else text, encoding="utf-8")

    def token(self):
        job_id = promise(self.service, 1)
        assert self.service.wait_for_end(job_id)["state"] == "succeeded"
        return self.service.call("GET", f"/v1/jobs/{job_id}/tickets").json()["tickets"][0]["token"]

    def key_of(self, token):
        verdict = self.service.call("POST", "/v1/tokens/verify", {"token": token}).json()
        return verdict["key_id"] if verdict["valid"] else verdict["reason"]

    def layout_status(self, name):
        return self.service.call("POST", "/v1/batches", batch_of(1, layout=name)).status


BOTH = {"signing-keys": "reloaded", "layouts": "reloaded"}
NO_KEYS = {"signing-keys": "reload_failed", "layouts": "reloaded"}
NO_LAYOUTS = {"signing-keys": "reloaded", "layouts": "reload_failed"}
NEW_KEY = {"id": 7, "client": "*", "secret": "Q" * 42 + "Q", "sign_from": "2026-01-01T00:00:00Z"}


def ring_with(*keys, without=()):
    ring = json.loads(RING.read_text(encoding="utf-8"))
    ring["keys"] = [key for key in ring["keys"] if key["id"] not in without] + list(keys)
    return json.dumps(ring)


def keys_are_reloaded(reloads):
    before = reloads.token()
    old_key = reloads.key_of(before)
    assert old_key != NEW_KEY["id"], old_key
    reloads.write_ring(ring_with(NEW_KEY))
    assert reloads.key_of(reloads.token()) == old_key, "read without a signal"
    assert reloads.reload() == BOTH
    assert reloads.key_of(reloads.token()) == NEW_KEY["id"]
    assert reloads.key_of(before) == old_key
    reloads.write_ring(ring_with(NEW_KEY, without=(old_key,)))
    assert reloads.reload() == BOTH
    assert reloads.key_of(before) == "unknown_key", reloads.key_of(before)


def broken_rings_are_left(reloads):
    rings = ("", "{", ring_with(NEW_KEY, NEW_KEY), ring_with({**NEW_KEY, "secret": "short"}), "[]")
    for ring in rings:
        reloads.write_ring(ring)
        assert reloads.reload() == NO_KEYS, ring
        assert reloads.key_of(reloads.token()) == NEW_KEY["id"], ring
    failed = reloads.service.log(event="reload_failed", what="signing-keys")
    assert len(failed) == len(rings) and all("ring.json" in line["error"] for line in failed), failed
    assert NEW_KEY["secret"] not in json.dumps(reloads.service.lines)
    os.remove(reloads.service.folder / "ring.json")
    assert reloads.reload() == NO_KEYS
    (reloads.service.folder / "ring.json").touch(mode=0o600)
    reloads.write_ring(ring_with(NEW_KEY))
    assert reloads.reload() == BOTH


def layouts_are_reloaded(reloads):
    assert (reloads.layout_status("first"), reloads.layout_status("second")) == (200, 422)
    reloads.write_layout("second")
    assert reloads.layout_status("second") == 422, "read without a signal"
    assert reloads.reload() == BOTH
    assert (reloads.layout_status("first"), reloads.layout_status("second")) == (200, 200)
    os.remove(reloads.layouts / "first.json")
    assert reloads.reload() == BOTH
    assert (reloads.layout_status("first"), reloads.layout_status("second")) == (422, 200)


def broken_layouts_are_left(reloads):
    for text in ("", "{", '{"name": "third"}', "[]"):
        reloads.write_layout("third", text)
        os.remove(reloads.layouts / "second.json")
        assert reloads.reload() == NO_LAYOUTS, text
        assert (reloads.layout_status("second"), reloads.layout_status("third")) == (200, 422), text
        reloads.write_layout("second")
    failed = reloads.service.log(event="reload_failed", what="layouts")
    assert len(failed) == 4 and all("third.json" in line["error"] for line in failed), failed
    reloads.write_layout("third")
    assert reloads.reload() == BOTH
    assert reloads.layout_status("third") == 200


def reloads_disturb_nobody(reloads):
    """A job keeps the keys and layouts that it was accepted with; requests go on."""
    job_id = promise(reloads.service, 5000)
    for _ in range(10):
        reloads.service.signal(signal.SIGHUP)
        assert reloads.layout_status("second") == 200
    assert reloads.service.wait_for_end(job_id)["state"] == "succeeded"


def the_last_signal_counts(reloads):
    """What was changed before a signal is read, also when it meets a reload that runs."""
    for name in ("fourth", "fifth", "sixth"):
        reloads.service.signal(signal.SIGHUP)
        time.sleep(0.001)
        reloads.write_layout(name)
        reloads.service.signal(signal.SIGHUP)
        wait_until(f"{name} is known", lambda name=name: reloads.layout_status(name) == 200)
        os.remove(reloads.layouts / f"{name}.json")
    assert reloads.service.stop() == 0
    assert not reloads.service.other_lines, reloads.service.other_lines


def test_reloads(report, program):
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name, contextlib.ExitStack() as stack:
        layouts = Path(name)
        shutil.copy(CLASSIC, layouts / "first.json")
        reloads = Reloads(None, layouts)
        reloads.write_layout("first")
        reloads.service = stack.enter_context(Service(program, "--layouts", layouts))
        report.run("SIGHUP brings new signing keys", keys_are_reloaded, reloads)
        report.run("a broken key ring leaves the old one", broken_rings_are_left, reloads)
        report.run("SIGHUP brings new layouts", layouts_are_reloaded, reloads)
        report.run("a broken layout leaves the old ones", broken_layouts_are_left, reloads)
        report.run("reloads disturb no job and no request", reloads_disturb_nobody, reloads)
        report.run("a signal amid a reload is not lost", the_last_signal_counts, reloads)


def main(program, cycles=CYCLES):
    report = Report()
    found = {"under_way": 0}
    report.run(f"{cycles} stops amid 3 jobs and a synchronous request lose nothing",
               stop_again_and_again, program, int(cycles), found)
    report.check(f"the request was under way in {found['under_way']} of them",
                 found["under_way"] >= int(cycles) * 9 // 10)
    report.run("an idle service stops at once", an_idle_service_stops_at_once, program)
    report.run("a stop waits for a download", stop_waits_for_a_download, program)
    report.run("a stop lets a slow download end", a_slow_download_is_whole, program)
    report.run("a stop answers whoever it crosses", a_signal_crosses_requests, program)
    report.run("a stop answers a long poll", a_long_poll_is_answered, program)
    report.run("a second signal stops at once", a_second_signal_stops_at_once, program)
    report.run("a second signal ends many jobs", a_second_signal_ends_many_jobs, program)
    report.run("SIGINT is a stop too", an_interrupt_is_a_stop_too, program)
    test_reloads(report, program)
    return report.status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
