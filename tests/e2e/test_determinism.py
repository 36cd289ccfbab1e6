#!/usr/bin/env python3
"""The same batch under the same keys gives the same bytes, however it is cut and wherever it is
printed.

usage: test_determinism.py PROGRAM

The German locale, which writes 1,5 for 1.5, is made here and shown to be in force: in the way that
every program sees it, and by a shim that switches it on inside of the program.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from preload import Shims
from service_under_test import FIXTURES, RING, Report, Service, batch_of
from surroundings import german_made_in, seen_by_a_program

BATCH = FIXTURES / "requests" / "opening-night-500.json"
TICKETS = 500
RENDER_TIMEOUT_S = 60
CUTS = [
    (
        f"{workers} worker(s), slices of {slice_tickets}",
        ["--workers", workers, "--slice-tickets", slice_tickets],
    )
    for workers in ("1", "4")
    for slice_tickets in ("1", "7", "1000")
]


def render(program, ring, batch, *options, env=None):
    """The document's bytes."""
    command = [program, "render", "--signing-keys", ring, *options, batch, "-o", "-"]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=RENDER_TIMEOUT_S,
    )
    if done.returncode != 0 or not done.stdout.startswith(b"%PDF-"):
        raise ValueError(f"exit {done.returncode}: {done.stderr[:500]!r}")
    return done.stdout


def printed_after_another(program):
    """The batch's document from a service that has printed another batch on the same threads."""
    with Service(program, "--workers", "2") as service:
        other = service.call("POST", "/v1/batches", batch_of(20, locale="de-DE"))
        if other.status != 200 or not other.body.startswith(b"%PDF-"):
            raise ValueError(f"the other batch: {other}")
        prefer = {"Prefer": "respond-async"}
        job = service.call("POST", "/v1/batches", BATCH.read_bytes(), prefer).json()
        service.wait_for_end(job["id"])
        return service.call("GET", f"/v1/jobs/{job['id']}/document").body


class Determinism:
    """The checks, all against the first document that was printed."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.report = Report()
        self.ring = folder / "ring.json"
        self.ring.touch(mode=0o600)
        self.ring.write_bytes(RING.read_bytes())
        self.expected = self.render()

    def render(self, *options, batch=BATCH, env=None):
        return render(self.program, self.ring, batch, *options, env=env)

    def same(self, name, document):
        lengths = f"{len(document)} bytes instead of {len(self.expected)}, or others"
        self.report.check(f"the same bytes: {name}", document == self.expected, lengths)

    def check_cuts(self):
        self.same("a second time", self.render())
        for name, options in CUTS:
            self.same(name, self.render(*options))

    def check_locale(self):
        (self.folder / "locales").mkdir()
        german = german_made_in(self.folder / "locales")
        seen = seen_by_a_program(german)
        self.report.check("control: the German locale is in force", seen.startswith("1,5 "), seen)
        self.same("in a German environment", self.render(env=german))
        with Shims("use_locale") as shims:
            document = self.render(env={**german, **shims.env})
            notes = shims.lines("use_locale")
        forced = {note["written"] for note in notes} == {"1,5"}
        self.report.check("control: the program itself writes 1,5 by the shim", forced, notes)
        self.same("with the German locale switched on inside of the program", document)

    def check_time_zones(self):
        for zone, midnight in (("Asia/Tokyo", "09:00"), ("UTC", "00:00")):
            seen = seen_by_a_program({"TZ": zone})
            self.report.check(f"control: it is {zone}", seen.endswith(" " + midnight), seen)
            self.same(f"in {zone}", self.render(env={"TZ": zone}))

    def check_planted_difference(self):
        batch = json.loads(BATCH.read_text(encoding="utf-8"))
        batch["tickets"][-1]["holder"] += "a"
        changed = self.folder / "changed.json"
        changed.write_text(json.dumps(batch), encoding="utf-8")
        differs = self.render(batch=changed) != self.expected
        self.report.check("a letter more in the last ticket's name gives other bytes", differs)

    def run(self):
        pages = self.expected.count(b"/Type/Page/")
        self.report.check(f"the document has {TICKETS} pages", pages == TICKETS, f"{pages}")
        self.check_cuts()
        self.check_locale()
        self.check_time_zones()
        self.same("over HTTP, after another batch", printed_after_another(self.program))
        self.check_planted_difference()
        return self.report.status


def main(program):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketpress-")))
        return Determinism(program, folder).run()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
