#!/usr/bin/env python3
"""Hostile JSON: every error is told with its place, nothing is written, memory stays within bounds.

usage: test_hostile_json.py PROGRAM
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from service_under_test import FIXTURES, RING, Report

MIB = 1 << 20
PARSE_BYTES_MAX = 256 * MIB  # what the program takes by itself
OTHER_BYTES_MAX = 200 * 10**6  # what it may hold beside
BODY_BYTES_MAX = 8 * MIB
LISTED_MAX = 100
TIMEOUT_S = 60
MARK = b"\xef\xbb\xbf"
SINGLE = (FIXTURES / "requests" / "single.json").read_bytes()
EVENT_NAMES = ["id", "name", "venue", "starts_at", "timezone"]
TICKET_NAMES = ["id", "holder", "type"]
TOO_DEEP = "nested too deeply, at most 16 levels are allowed"
TWICE = "the member has been given before"
NOT_UTF8 = "not valid UTF-8"
HALF = "the text has an escape of half a surrogate pair"
NUL_NAME = "a member's name must not have the character U+0000"
TOO_LARGE = "the number is too large"
ENDS = "the batch ends too early"
BEHIND = "there is more text after the end of the batch"
EMPTY = "the body is empty"
NO_OBJECT = "a batch is a JSON object and begins with {"

# Bodies that are no JSON object: name, body, line, column, why.
MALFORMED = [
    ("arrays 17 deep", b'{"a":' + b"[" * 16 + b"]" * 16 + b"}", 1, 21, TOO_DEEP),
    ("objects 17 deep", b'{"a":' * 17 + b"1" + b"}" * 17, 1, 81, TOO_DEEP),
    ("a million brackets", b'{"a":' + b"[" * 10**6, 1, 21, TOO_DEEP),
    ("a member twice", b'{"event":1,\n "event":2}', 2, 2, TWICE),
    ("a member twice, once escaped", b'{"event":1,\n "\\u0065vent":2}', 2, 2, TWICE),
    ("a ticket's member twice", b'{"tickets":[{"id":"a",\n\n"id":"b"}]}', 3, 1, TWICE),
    ("a byte that UTF-8 never has", b'{"a":"\xff"}', 1, 7, NOT_UTF8),
    ("an overlong slash", b'{"a":"\xc0\xaf"}', 1, 7, NOT_UTF8),
    ("a surrogate in UTF-8", b'{"a":"\xed\xa0\x80"}', 1, 7, NOT_UTF8),
    ("beyond U+10FFFF", b'{"a":"\xf4\x90\x80\x80"}', 1, 7, NOT_UTF8),
    ("half a character at the end", b'{"a":"\xc3', 1, 7, NOT_UTF8),
    ("a high surrogate alone", b'{"a":"\\ud800"}', 1, 6, HALF),
    ("a low surrogate alone", b'{"a":"\\udc00"}', 1, 6, HALF),
    ("U+0000 in a member's name", b'{"event":1,\n"a\\u0000b":1}', 2, 1, NUL_NAME),
    ("an integer beyond 2^63 - 1", b'{"a":9223372036854775808}', 1, 6, TOO_LARGE),
    ("an integer below -2^63", b'{"a":-9223372036854775809}', 1, 6, TOO_LARGE),
    ("an integer of a million digits", b'{"a":' + b"9" * 10**6 + b"}", 1, 6, TOO_LARGE),
    ("1e400", b'{"a":1e400}', 1, 6, TOO_LARGE),
    ("a truncated object", b'{"event":{', 1, 11, ENDS),
    ("a truncated text", b'{"event":"', 1, 11, ENDS),
    ("a byte behind the batch", b'{"event":1}\n x', 2, 2, BEHIND),
    ("a second batch behind the first", b"{}\n{}", 2, 1, BEHIND),
    ("no bytes at all", b"", 1, 1, EMPTY),
    ("a byte order mark alone", MARK, 1, 1, EMPTY),
    ("an array", b"[]", 1, 1, NO_OBJECT),
    ("a text", b'"batch"', 1, 1, NO_OBJECT),
    ("a number", b"12", 1, 1, NO_OBJECT),
    ("null", b"null", 1, 1, NO_OBJECT),
]


class Outcome:
    """What one run of the program has left."""

    def __init__(self, wait_status, rss_bytes, output, errors, files):
        self.wait_status = wait_status
        self.rss_bytes = rss_bytes
        self.output = output
        self.errors = errors
        self.files = files

    def faults(self, parse_bytes_max):
        """What is wrong with a refusal, whatever was wrong with the batch."""
        if os.WIFSIGNALED(self.wait_status):
            yield f"ended by signal {os.WTERMSIG(self.wait_status)}"
        elif os.WEXITSTATUS(self.wait_status) != 1:
            yield f"exit {os.WEXITSTATUS(self.wait_status)} instead of 1"
        if self.output:
            yield f"on standard output: {self.output[:80]!r}"
        if self.files:
            yield f"files left: {self.files}"
        if self.rss_bytes > parse_bytes_max + OTHER_BYTES_MAX:
            yield f"{self.rss_bytes} bytes of memory"


def run(program, body, *options):
    """A child's peak of memory begins with ours at its birth, so ours must be small."""
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        folder = Path(name)
        (folder / "ring.json").touch(mode=0o600)
        (folder / "ring.json").write_bytes(RING.read_bytes())
        (folder / "batch").write_bytes(body)
        (folder / "out").mkdir()
        command = [program, "render", "--signing-keys", "ring.json", *options]
        command += ["batch", "-o", "out/out.pdf"]
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [str(word) for word in command], cwd=folder, stdout=out, stderr=err
            )
            timer = threading.Timer(TIMEOUT_S, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        return Outcome(
            status,
            usage.ru_maxrss * 1024,
            (folder / "stdout").read_bytes(),
            (folder / "stderr").read_text(encoding="utf-8").splitlines(),
            [path.name for path in (folder / "out").iterdir()],
        )


def batch_with(ticket=None, **event):
    """A batch of one ticket, some of whose members are other ones."""
    batch = json.loads(SINGLE)
    batch["event"].update(event)
    batch["tickets"][0].update(ticket or {})
    return json.dumps(batch).encode()


def missing(pointers):
    return [f"{pointer}: missing: is required" for pointer in pointers]


def empty_members(tickets_count):
    """An empty event and empty tickets, and the errors of that."""
    body = b'{"event":{},"tickets":[' + b",".join([b"{}"] * tickets_count) + b"]}"
    pointers = [f"/event/{name}" for name in EVENT_NAMES]
    pointers += [f"/tickets/{i}/{name}" for i in range(tickets_count) for name in TICKET_NAMES]
    return body, missing(pointers)


def many_faults():
    """A batch that breaks many rules at once, and the errors of that."""
    batch = json.loads(SINGLE)
    ticket = batch["tickets"][0]
    del batch["event"]["venue"]
    batch["event"]["id"] = 7
    batch["a/b~c"] = 1
    batch["tickets"] = [
        {**ticket, "holder": "a\0b"},
        ticket,
        "none",
        {**ticket, "id": "other", "price": {"amount": -1, "currency": "GBP"}},
    ]
    return json.dumps(batch).encode(), [
        "/event/venue: missing: is required",
        "/event/id: wrong_type:",
        "/a~1b~0c: unknown_member:",
        "/tickets/0/holder: bad_character: must not have the character U+0000",
        "/tickets/1/id: duplicate_id:",
        "/tickets/2: wrong_type:",
        "/tickets/3/price/amount: out_of_range:",
    ]


NUL_VALUE = "bad_character: must not have the character U+0000"
BROKEN_RULES = [  # name, body, beginnings of the errors
    ("U+0000 in an event's name", batch_with(name="a\0b"), [f"/event/name: {NUL_VALUE}"]),
    ("U+0000 in an id", batch_with({"id": "\0"}), [f"/tickets/0/id: {NUL_VALUE}"]),
    ("2^63 - 1 as a time", batch_with(starts_at=2**63 - 1), ["/event/starts_at: wrong_type:"]),
    (
        "2^63 - 1 as a price",
        batch_with({"price": {"amount": 2**63 - 1, "currency": "GBP"}}),
        ["/tickets/0/price/amount: out_of_range:"],
    ),
    ("7 empty tickets", *empty_members(7)),
    ("a byte order mark, and faults behind it", *(lambda b, e: (MARK + b, e))(*empty_members(1))),
    ("many faults of many kinds", *many_faults()),
]


class Hostile:
    """The checks."""

    def __init__(self, program):
        self.program = program
        self.report = Report()

    def refused(self, name, body, expected, *options, parse_bytes_max=PARSE_BYTES_MAX):
        """expected: the beginning of each line on standard error, in any order, and no other."""
        outcome = run(self.program, body, *options)
        faults = list(outcome.faults(parse_bytes_max))
        lines = list(outcome.errors)
        for beginning in expected:
            line = next((line for line in lines if line.startswith(beginning)), None)
            if line is None:
                faults.append(f"not told: {beginning}")
            else:
                lines.remove(line)
        faults += [f"told without need: {line}" for line in lines[:3]]
        name = f"{name}: refused, {outcome.rss_bytes >> 20} MiB"
        self.report.check(name, not faults, "\n".join(faults))

    def check_malformed(self):
        for name, body, line, column, reason in MALFORMED:
            place = f"line {line}, column {column}: {reason}"
            expected = [f"batch: malformed_json: {place}"]
            expected += [f"ticketpress: the batch is not JSON: {place}"]
            self.refused(name, body, expected)

    def check_broken_rules(self):
        for name, body, errors in BROKEN_RULES:
            expected = [f"batch: {error}" for error in errors]
            count = f"{len(errors)} rule{'' if len(errors) == 1 else 's'}"
            self.refused(name, body, expected + [f"ticketpress: the batch breaks {count}"])

    def check_more_than_listed(self):
        body, errors = empty_members(200)
        expected = [f"batch: {error}" for error in errors[:LISTED_MAX]]
        expected += [f"batch: and {len(errors) - LISTED_MAX} more"]
        self.refused(
            f"{len(errors)} faults, of which {LISTED_MAX} are listed",
            body,
            expected + [f"ticketpress: the batch breaks {len(errors)} rules"],
        )

    def check_accepted(self):
        outcome = run(self.program, MARK + SINGLE)
        is_right = outcome.wait_status == 0 and outcome.files == ["out.pdf"]
        self.report.check("a byte order mark is accepted", is_right, outcome.errors)

    def check_blow_up(self):
        count = BODY_BYTES_MAX // 3 - 10
        for name in ("{}", "[]"):
            text = b'{"tickets":[' + f"{name},".encode() * (count - 1) + name.encode() + b"]}"
            for option, limit in (("256MiB", PARSE_BYTES_MAX), ("16MiB", 16 * MIB)):
                self.refused(
                    f"{len(text)} bytes of {name},{name},... at {option}",
                    text,
                    [
                        f"ticketpress: parsing the batch needs more than {limit} bytes "
                        "(parse-bytes-max)"
                    ],
                    "--parse-bytes-max",
                    option,
                    parse_bytes_max=limit,
                )

    def run(self):
        self.check_malformed()
        self.check_broken_rules()
        self.check_more_than_listed()
        self.check_accepted()
        self.check_blow_up()
        return self.report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(Hostile(Path(sys.argv[1]).resolve()).run())
