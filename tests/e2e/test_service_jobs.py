#!/usr/bin/env python3
"""Jobs and requests beside each other: a ticket does not wait for a large job, a deleted job gives
its workers back, clients get their own documents only, and many batches leave nothing behind.

usage: test_service_jobs.py PROGRAM
"""

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import check_document
from preload import Shims
from service_under_test import END_STATES, Report, Service, batch_of, head_of

TRACE = "trace_threads"
LARGE_TICKETS = 20000
LARGE_BODY_BYTES_MAX = 64 << 20
FREED_PROMISED_MS = 100
FREED_GUARD_MS = 2000
POLL_TIMEOUT_S = 60
AFTER_S = 0.3  # in which nothing more is rendered
CLIENTS = 50
REQUESTS = 4  # of each client, on one connection
CLIENT_TIMEOUT_S = 60
SYMBOLS = 12  # of the clients' documents are decoded
BATCHES = 300
BATCH_TICKETS = 100
BATCHES_WARM = 100  # by then every thread's heap has had its share
KEPT_WARM, KEPT_BATCHES = 40, 120
DESCRIPTOR_LOOKS, DESCRIPTOR_LOOK_S = 20, 0.01
MEMORY_GROWTH_MAX = 1.10
STORE_BYTES_MAX = 2 << 20  # some dozen such documents
JOBS = len(os.sched_getaffinity(0))


def batch_with(prefix, holder, tickets_count):
    """Tickets whose ids and holders are in no other batch."""
    batch = batch_of(tickets_count)
    for number, ticket in enumerate(batch["tickets"], 1):
        ticket["id"] = f"{prefix}-{number:03}"
        ticket["holder"] = f"{holder} {number:03}"
    return batch


# ---- one ticket beside a large job ----


def submit_large(service):
    prefer = {"Prefer": "respond-async"}
    answer = service.call("POST", "/v1/batches", batch_of(LARGE_TICKETS), prefer, timeout_s=60)
    if answer.status != 202:
        raise AssertionError(answer)
    return answer.json()["id"]


def job_of(service, job_id):
    return service.call("GET", f"/v1/jobs/{job_id}").json()


def poll_until(what, look):
    """What look() returns, once it is something; without a rest, since the time counts."""
    deadline = time.monotonic() + POLL_TIMEOUT_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
    raise TimeoutError(what)


def wait_for_progress(service, job_id):
    """The job, once it is in the middle of its tickets."""

    def look():
        job = job_of(service, job_id)
        return job if job["tickets"]["done"] > 0 or job["state"] in END_STATES else None

    return poll_until("the job does not begin", look)


def wait_for_idle(service):
    def look():
        health = service.call("GET", "/healthz").json()
        return health["pool"]["busy"] == 0 and health["jobs"]["running"] == 0

    poll_until("the workers stay busy", look)


def symbols_encoded(shims):
    return sum(line["call"] == "QRcode_encodeData" for line in shims.lines(TRACE))


def test_ticket_beside_job(report, service, job_id, workers):
    job = wait_for_progress(service, job_id)
    began = time.perf_counter()
    answer = service.call("POST", "/v1/batches", batch_of(1))
    took_ms = (time.perf_counter() - began) * 1000
    after = job_of(service, job_id)
    done = after["tickets"]["done"]
    report.check(
        f"a ticket is answered in {took_ms:.1f} ms while a job of {LARGE_TICKETS} runs on "
        f"{workers} workers: {done} of its tickets are done",
        answer.status == 200
        and answer.body.startswith(b"%PDF-")
        and job["state"] == after["state"] == "running"
        and done < LARGE_TICKETS,
        f"{answer} {job} {after}",
    )


def test_delete(report, service, shims, job_id, workers):
    began = time.perf_counter()
    answer = service.call("DELETE", f"/v1/jobs/{job_id}")
    wait_for_idle(service)
    freed_ms = (time.perf_counter() - began) * 1000
    word = "within" if freed_ms <= FREED_PROMISED_MS else "NOT within"
    report.check(
        f"DELETE frees {workers} workers in {freed_ms:.1f} ms, {word} the promised "
        f"{FREED_PROMISED_MS} ms",
        answer.status == 204 and freed_ms < FREED_GUARD_MS,
        answer,
    )
    job = job_of(service, job_id)
    report.check(
        f"the job is cancelled after {job['tickets']['done']} tickets",
        job["state"] == "cancelled" and 0 < job["tickets"]["done"] < LARGE_TICKETS,
        job,
    )
    answer = service.call("GET", f"/v1/jobs/{job_id}/document")
    report.check("it has no document", answer.status == 409, answer)
    before = symbols_encoded(shims)
    time.sleep(AFTER_S)
    report.check(
        f"nothing more is rendered: {before} symbols in all",
        symbols_encoded(shims) == before and 0 < before < LARGE_TICKETS,
        f"{before} {symbols_encoded(shims)}",
    )
    answer = service.call("DELETE", f"/v1/jobs/{job_id}")
    gone = service.call("GET", f"/v1/jobs/{job_id}")
    report.check(
        "a second DELETE erases it", (answer.status, gone.status) == (204, 404), f"{answer} {gone}"
    )


def test_large_job(report, program, workers):
    options = ["--workers", workers, "--body-bytes-max", LARGE_BODY_BYTES_MAX]
    with Shims(TRACE) as shims, Service(program, *options, env=shims.env) as service:
        job_id = submit_large(service)
        test_ticket_beside_job(report, service, job_id, workers)
        test_delete(report, service, shims, job_id, workers)


# ---- many clients ----


class Client:
    """One connection for all of its requests, each with a ticket of its own."""

    def __init__(self, service, number):
        self.service = service
        self.number = number
        self.tickets = []
        self.documents = []

    def run(self):
        connection = http.client.HTTPConnection(*self.service.address, timeout=CLIENT_TIMEOUT_S)
        with contextlib.closing(connection):
            connection.connect()
            first_socket = connection.sock
            for request in range(REQUESTS):
                name = f"{self.number:02}-{request}"
                batch = batch_with(f"own-{name}", f"Holder{name}", 1)
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/v1/batches", json.dumps(batch), headers)
                response = connection.getresponse()
                body = response.read()
                if response.status != 200 or connection.sock is not first_socket:
                    raise AssertionError(f"client {name}: {response.status} {body[:300]!r}")
                self.tickets.append(batch["tickets"][0])
                self.documents.append(body)
        return self


def text_of(pdf):
    result = subprocess.run(
        ["pdftotext", "-enc", "UTF-8", pdf, "-"], capture_output=True, timeout=60, check=True
    )
    return check_document.bare(result.stdout.decode())


def text_faults(path, ticket):
    """It names its own ticket and no other's."""
    text = text_of(path)
    ids = set(re.findall(r"own-\d\d-\d-\d{3}", text))
    holders = set(re.findall(r"Holder\d\d-\d\d{3}", text))
    expected = {ticket["id"]}, {check_document.bare(ticket["holder"])}
    if (ids, holders) != expected:
        yield f"{path.name}: {ids} {holders}, not {expected}"


def symbol_faults(service, path, ticket):
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        check_document.render_poppler(path, 1, Path(folder))
        images = list(Path(folder).glob("*.pgm"))
        tokens = [text for texts in check_document.symbols_read(images).values() for text in texts]
    if len(tokens) != 1:
        yield f"{path.name}: {len(tokens)} symbols"
        return
    verdict = service.call("POST", "/v1/tokens/verify", {"token": tokens[0]}).json()
    if not verdict["valid"] or verdict["ticket_id"] != ticket["id"]:
        yield f"{path.name}: {verdict}, not {ticket['id']}"


def write_documents(clients, folder):
    """path -> the ticket that it is to hold."""
    documents = {}
    for client in clients:
        for request, (ticket, body) in enumerate(zip(client.tickets, client.documents)):
            path = folder / f"{client.number:02}-{request}.pdf"
            path.write_bytes(body)
            documents[path] = ticket
    return documents


def test_clients(report, program):
    with Service(program) as service, tempfile.TemporaryDirectory() as folder:
        clients = [Client(service, number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as threads:
            list(threads.map(Client.run, clients))
        documents = write_documents(clients, Path(folder))
        with ThreadPoolExecutor(JOBS) as threads:
            pairs = threads.map(lambda item: list(text_faults(*item)), documents.items())
            faults = [fault for found in pairs for fault in found]
        report.check(
            f"{len(documents)} documents of {CLIENTS} clients at once name their own ticket only",
            not faults and len(documents) == CLIENTS * REQUESTS,
            "\n".join(faults[:5]),
        )
        sample = list(documents.items())[:: len(documents) // SYMBOLS]
        faults = [fault for item in sample for fault in symbol_faults(service, *item)]
        report.check(
            f"{len(sample)} of their symbols verify as that ticket", not faults, "\n".join(faults)
        )
        (path, _), (_, other) = list(documents.items())[:2]
        report.check(
            "another client's document is caught",
            list(text_faults(path, other)) and list(symbol_faults(service, path, other)),
        )


# ---- many batches ----


def memory_kib(service):
    status = Path(f"/proc/{service.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)[1])


def descriptors(service):
    """The least of some looks: a connection that is being closed has one too."""
    counts = []
    for _ in range(DESCRIPTOR_LOOKS):
        counts.append(len(os.listdir(f"/proc/{service.pid}/fd")))
        time.sleep(DESCRIPTOR_LOOK_S)
    return min(counts)


def run_batches(service, first, last):
    """Every other one comes as a job, whose document is downloaded by its link and stays."""
    for number in range(first, last):
        batch = batch_with(f"b{number:03}", f"Batch{number:03}", BATCH_TICKETS)
        prefer = "respond-async" if number % 2 == 0 else "wait=30"
        answer = service.call("POST", "/v1/batches", batch, {"Prefer": prefer}, timeout_s=60)
        if answer.status == 202:
            job = service.wait_for_end(answer.json()["id"])
            answer = service.call("GET", job["links"]["document"])
        if answer.status != 200 or not answer.body.startswith(b"%PDF-"):
            raise AssertionError(f"batch {number}: {answer}")


# The address sanitizer keeps freed memory back: little enough of it for the measure.
SMALL_QUARANTINE = {
    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
    + ":quarantine_size_mb=8:thread_local_quarantine_size_kb=64"
}


class Growth:
    """Memory and descriptors of a service after so many batches, and after so many."""

    def __init__(self, service, warm, last):
        run_batches(service, 0, warm)
        self.memory_before_kib, self.descriptors_before = memory_kib(service), descriptors(service)
        run_batches(service, warm, last)
        self.memory_kib, self.descriptors = memory_kib(service), descriptors(service)

    def is_flat(self):
        return self.memory_kib <= self.memory_before_kib * MEMORY_GROWTH_MAX


def test_batches(report, program):
    with Service(program, "--store-bytes-max", STORE_BYTES_MAX, env=SMALL_QUARANTINE) as service:
        growth = Growth(service, BATCHES_WARM, BATCHES)
        kept = service.call("GET", "/v1/jobs?limit=100").json()["jobs"]
    report.check(
        f"memory after {BATCHES} batches of {BATCH_TICKETS}: {growth.memory_kib} KiB, after "
        f"{BATCHES_WARM} {growth.memory_before_kib} KiB",
        growth.is_flat(),
    )
    report.check(
        f"descriptors: {growth.descriptors}, {growth.descriptors_before} before",
        growth.descriptors == growth.descriptors_before,
    )
    kept_bytes = sum(job["document"]["bytes"] for job in kept)
    report.check(
        f"the store keeps the {len(kept)} newest documents, {kept_bytes} bytes",
        0 < kept_bytes <= STORE_BYTES_MAX and len(kept) < BATCHES_WARM,
    )


def test_growth(report, program):
    """The measure can fail: by a store that keeps all, and by connections that stay."""
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(Service(program, env=SMALL_QUARANTINE))
        growth = Growth(service, KEPT_WARM, KEPT_BATCHES)
        connection = stack.enter_context(service.connect())
        connection.send(head_of("GET", "/healthz"))
        connection.answer()
        more = descriptors(service)
    report.check(
        f"a store that keeps all is caught: {growth.memory_before_kib} to {growth.memory_kib} KiB",
        not growth.is_flat(),
    )
    report.check("a connection that stays is caught", more == growth.descriptors + 1, f"{more}")


def main(program):
    report = Report()
    for workers in (1, 2):
        report.run(
            f"a large job on {workers} workers", test_large_job, report, program, workers
        )
    report.run("many clients", test_clients, report, program)
    report.run("many batches", test_batches, report, program)
    report.run("the measure", test_growth, report, program)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
