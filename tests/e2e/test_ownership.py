#!/usr/bin/env python3
"""render writes a document from the very buffer that the bind has filled, and no byte of it is
copied on the way.

usage: test_ownership.py PROGRAM

shims/watch_documents.c watches the places of documents, every copy out of them, and every way out
of the process. shims/spoil_write.c plants copies, which must be caught.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from preload import Shims
from service_under_test import FIXTURES, RING, Report
from test_ownership_http import faults_of, pages_of

WATCH = "watch_documents"
SPOIL = "spoil_write"
RENDER_TIMEOUT_S = 60
BATCHES = [("single.json", 1), ("opening-night-500.json", 500)]


def run(command, env, output):
    """Whatever the program puts on its standard output goes to `output`."""
    done = subprocess.run(
        command,
        stdout=output,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
        timeout=RENDER_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise ValueError(f"exit {done.returncode}: {done.stderr[:500]!r}")
    return done.stdout


def into_pipe(command, _, env):
    return run([*command, "-o", "-"], env, subprocess.PIPE)


def into_redirected_file(command, path, env):
    with path.open("wb") as output:
        run([*command, "-o", "-"], env, output)
    return path.read_bytes()


def into_named_file(command, path, env):
    run([*command, "-o", str(path)], env, subprocess.DEVNULL)
    return path.read_bytes()


WAYS = [
    ("-o - into a pipe", into_pipe),
    ("-o - into a file", into_redirected_file),
    ("-o FILE", into_named_file),
]


def walk(program, way, batch, *spoilers, **settings):
    """The faults that are found on a way, the document, and the notes of its pieces.

    A spoiler stands in front of the watcher, as the program itself does.
    """
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        ring = Path(name) / "ring.json"
        ring.touch(mode=0o600)
        ring.write_bytes(RING.read_bytes())
        command = [str(program), "render", "--signing-keys", str(ring)]
        command += [str(FIXTURES / "requests" / batch)]
        with Shims(*spoilers, WATCH, **settings) as shims:
            document = way(command, Path(name) / "out.pdf", shims.env)
            notes = shims.lines(WATCH)
    pieces = [note for note in notes if note["event"] == "out"]
    faults = list(faults_of(notes, [document]))
    faults += [f"not by write(): {note}" for note in pieces if note["call"] != "write"]
    written = sum(note["len"] for note in pieces)
    if written != len(document):
        faults.append(f"{written} bytes were written of {len(document)}")
    return faults, document, pieces


def check_way(report, program, name, way):
    for batch, tickets in BATCHES:
        faults, document, pieces = walk(program, way, batch)
        report.check(
            f"{name}, {batch}: {len(document)} bytes from the bind's own buffer in "
            f"{len(pieces)} write(s), none copied",
            not faults,
            "\n".join(faults),
        )
        pages = pages_of(document)
        report.check(f"{name}, {batch}: {tickets} page(s)", pages == tickets, f"{pages} pages")


def check_planted(report, program, name, way):
    faults, _, _ = walk(program, way, BATCHES[0][0], SPOIL, SPOIL="memcpy")
    caught = any("copied" in fault and "'memcpy'" in fault for fault in faults)
    report.check(f"{name}: a planted copy by memcpy() is caught", caught, faults)
    caught = any("'stray'" in fault for fault in faults)
    report.check(f"{name}: and that the bytes are written from elsewhere", caught, faults)
    faults, _, _ = walk(program, way, BATCHES[0][0], SPOIL, SPOIL="loop")
    caught = any("'stray'" in fault for fault in faults)
    report.check(f"{name}: a planted copy by hand is caught", caught, faults)


def main(program):
    report = Report()
    for name, way in WAYS:
        check_way(report, program, name, way)
        check_planted(report, program, name, way)
    faults, _, _ = walk(program, into_pipe, BATCHES[0][0], SPOIL)
    report.check("the planting shim alone changes nothing", not faults, "\n".join(faults))
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
