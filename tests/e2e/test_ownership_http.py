#!/usr/bin/env python3
"""A document goes to its client from the very buffer that the bind has filled, and no byte of it is
copied on the way.

usage: test_ownership_http.py PROGRAM

shims/watch_documents.c watches the places of documents, every copy out of them, and every way out
of the process. shims/spoil_documents.c plants copies, which must be caught.
"""

import re
import sys
from pathlib import Path

from preload import Shims
from service_under_test import Report, Service, batch_of

WATCH = "watch_documents"
SPOIL = "spoil_documents"
JOB_TICKETS = 500
SYNC_TICKETS = 20
SENDING = {"send", "sendmsg", "writev", "write"}


def pages_of(pdf):
    return len(re.findall(rb"/Type/Page/", pdf))


def document_faults(notes, number, body):
    """What is wrong with the way of one document, which went out whole, once for each body."""
    binds = [note for note in notes if note["event"] == "bind" and note["document"] == number]
    out = [note for note in notes if note["event"] == "out" and note["document"] == number]
    copies = [note for note in notes if note["event"] == "copied" and note["document"] == number]
    if len(binds) != 1:
        yield f"{len(binds)} binds of document {number}"
    elif binds[0]["len"] != len(body):
        yield f"the bind filled {binds[0]['len']} bytes, the client has {len(body)}"
    at = 0
    for note in out:
        if note["call"] not in SENDING or note["offset"] != at % len(body):
            yield f"after {at} bytes of the bind's buffer: {note}"
        at = at + note["len"]
    if at == 0 or at % len(body) != 0:
        yield f"{at} bytes went out of the bind's buffer, the document has {len(body)}"
    yield from (f"copied: {note}" for note in copies[:3])


def faults_of(notes, bodies):
    """bodies: of the documents, in the order of their binds."""
    for number, body in enumerate(bodies, 1):
        if not body.startswith(b"%PDF-"):
            yield f"document {number} is none: {body[:80]!r}"
        yield from document_faults(notes, number, body)
    yield from (str(note) for note in notes if note["event"] in ("stray", "file"))


def single(service):
    answer = service.call("POST", "/v1/batches", batch_of(1))
    return [answer.body]


def small_batch(service):
    answer = service.call("POST", "/v1/batches", batch_of(SYNC_TICKETS))
    return [answer.body]


def job_downloaded_twice(service):
    prefer = {"Prefer": "respond-async"}
    job = service.call("POST", "/v1/batches", batch_of(JOB_TICKETS), prefer).json()
    service.wait_for_end(job["id"])
    first, second = (
        service.call("GET", f"/v1/jobs/{job['id']}/document").body for _ in range(2)
    )
    if first != second:
        raise ValueError("two downloads differ")
    return [first]


WAYS = [
    ("one ticket at once", single, 1),
    (f"{SYNC_TICKETS} tickets at once", small_batch, SYNC_TICKETS),
    (f"a job of {JOB_TICKETS} tickets, downloaded twice", job_downloaded_twice, JOB_TICKETS),
]


def walk(program, way, *spoilers, **settings):
    """The faults that are found on a way, the document and the notes."""
    with Shims(WATCH, *spoilers, **settings) as shims:
        with Service(program, env=shims.env) as service:
            bodies = way(service)
            service.call("GET", "/healthz")  # the thread that answers has noted all before it
        notes = shims.lines(WATCH)
        return list(faults_of(notes, bodies)), bodies[0], notes


def main(program):
    report = Report()
    for name, way, tickets in WAYS:
        faults, body, notes = walk(program, way)
        sends = sum(note["event"] == "out" for note in notes)
        report.check(
            f"{name}: {len(body)} bytes from the bind's own buffer in {sends} pieces, none copied",
            not faults,
            "\n".join(faults),
        )
        pages = pages_of(body)
        report.check(f"{name}: {tickets} pages", pages == tickets, f"{pages} pages")
    faults, _, _ = walk(program, small_batch, SPOIL, SPOIL="memcpy")
    caught = any("copied" in fault and "'memcpy'" in fault for fault in faults)
    report.check("a planted copy by memcpy() is caught", caught, faults)
    caught = any("'stray'" in fault for fault in faults)
    report.check("and that the bytes go out from elsewhere", caught, faults)
    faults, _, _ = walk(program, small_batch, SPOIL, SPOIL="loop")
    caught = any("'stray'" in fault for fault in faults)
    report.check("a planted copy by hand is caught", caught, faults)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
