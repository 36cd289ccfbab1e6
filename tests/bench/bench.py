#!/usr/bin/env python3
"""Time the press against the floor program and the obvious program.

Every claim is a ratio of programs that took turns in one run: each round starts each program once,
every other round in reverse order, and a ratio is the median of its rounds' ratios. Before anything
is timed the documents are judged: qpdf is silent, each page says what its ticket says, and the QR
symbols of some pages, rendered at 100 dpi, hold the token of their ticket. A program whose document
is wrong gives no figure.

A last group of rows says what text costs: the press prints the same batch with the names of other
scripts, all of them and Latin in turn, and each row is a script's time by that of Latin.

Rows come out as JSON lines, then as a table. Exit 1 when a document is wrong, the press is missing
or a figure is over its limit.
"""

import argparse
import base64
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import platform
import secrets
import statistics
import subprocess
import sys
import tempfile
import typing
import unicodedata

import scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM_TIMEOUT_S = 600
PACKAGES = ["libhpdf-2.3.0", "libqrencode4", "libssl3", "libjansson4", "libdeflate0"]


class Contender(typing.NamedTuple):
    """One that takes turns: a program with its own arguments. The press also gets --workers."""

    name: str
    program: str
    arguments: tuple = ()
    single_runs: int = 200  # of one ticket alone, in each round


CONTENDERS = (
    Contender("press", "press"),
    Contender("floor", "floor"),
    Contender("obvious", "obvious"),
    Contender("obvious embedded", "obvious", ("--embedded",), 20),  # 15 ms a run
)
PRESS = CONTENDERS[0]
LATIN = "Latin"  # the batch as it is: one family of fonts
BATCH_RUNS = 3  # of a batch, in each round
SYMBOLS_CHECKED = 10  # pages of each document, unless --check-all

# What must hold, and what is aimed at, by (tickets in the batch, what the press is compared with);
# None is the press's own time in ms.
LIMITS = {(500, "obvious"): 0.6, (1, None): 1.5}
REACH = {(500, "floor"): 1.25, (500, "obvious"): 1 / 6, (1, None): 1 / 3}


class Wrong(Exception):
    """A document or a program is not what it must be."""


def call(command, stdin=None):
    """The standard output of a command that must succeed."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, timeout=PROGRAM_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Wrong(str(error)) from error
    if done.returncode != 0:
        text = done.stderr.decode(errors="replace").strip()
        raise Wrong(f"{command[0]}: exit {done.returncode}: {text}")
    return done.stdout


# ---- judging documents ----


def minutes(text):
    """Minutes since 2020 of an RFC 3339 time."""
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(when.timestamp() - 1577836800) // 60


def event_key(secret, event_id):
    """HKDF-SHA256 with an empty salt and one block of output."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    info = b"ticketpress/v1/event/" + event_id.encode()
    return hmac.digest(extracted, info + b"\x01", "sha256")


def token(secret, event_id, ticket):
    """The token that a ticket must carry, written from its definition, key id 1."""
    times = [ticket.get("valid_from"), ticket.get("valid_until")]
    flags = sum(bit for bit, time in zip((1, 2), times) if time)
    body = bytes([1, 1, flags, ticket.get("issue", 0)])
    for identifier in (event_id.encode(), ticket["id"].encode()):
        body += bytes([len(identifier)]) + identifier
    for time in filter(None, times):
        body += minutes(time).to_bytes(4, "big")
    mac = hmac.digest(event_key(secret, event_id), body, hashlib.sha256)[:16]
    return base64.urlsafe_b64encode(body + mac).decode().rstrip("=")


def squeeze(text):
    """Text without its white space and marks of direction: lines may break anywhere."""
    text = unicodedata.normalize("NFC", text)
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) != "Cf")


def is_winansi(text):
    """Whether base-14 fonts have all of a text."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def check_text(path, batch):
    """Each page holds its ticket's id and holder (where base-14 fonts can show the name)."""
    pages = call(["pdftotext", "-layout", path, "-"]).decode().split("\f")[:-1]
    if len(pages) != len(batch["tickets"]):
        raise Wrong(f"{path}: {len(pages)} pages for {len(batch['tickets'])} tickets")
    for number, (page, ticket) in enumerate(zip(pages, batch["tickets"]), 1):
        holder = unicodedata.normalize("NFC", ticket["holder"])
        wanted = [ticket["id"]] + ([holder] if is_winansi(holder) else [])
        for text in wanted:
            if squeeze(text) not in squeeze(page):
                raise Wrong(f"{path}: page {number} does not say {text!r}")


def check_symbol(path, number, wanted):
    """The QR symbol of one page, rendered at 100 dpi, holds the wanted token."""
    at = str(number)
    image = call(["pdftoppm", "-r", "100", "-gray", "-f", at, "-l", at, path])
    found = call(["zbarimg", "-q", "--nodbus", "--raw", "-Sdisable", "-Sqr.enable", "-"], image)
    if found.decode().split() != [wanted]:
        raise Wrong(f"{path}: the symbol of page {number} holds {found!r}, not {wanted!r}")


def check_document(path, batch, secret, symbols):
    """Judge a whole document; the symbols of at most so many pages, spread evenly."""
    call(["qpdf", "--check", path])
    check_text(path, batch)
    tickets = batch["tickets"]
    step = max(1, len(tickets) // symbols)
    for index in range(0, len(tickets), step):
        wanted = token(secret, batch["event"]["id"], tickets[index])
        check_symbol(path, index + 1, wanted)


# ---- timing ----


class Case:
    """One batch, printed by every contender in turn."""

    def __init__(self, batch, folder, arguments, script=LATIN):
        self.batch = batch
        self.tickets = len(batch["tickets"])
        self.name = f"{self.tickets} ticket" + ("s" if self.tickets != 1 else "")
        self.folder = folder
        self.arguments = arguments
        self.script = script
        self.batch_path = folder / f"batch-{script}-{self.tickets}.json"
        self.batch_path.write_text(json.dumps(batch, ensure_ascii=False), encoding="utf-8")
        self.times = {}  # name of a contender: its median ms in each round
        self.sizes = {}  # name of a contender: bytes of its document

    def document(self, contender):
        """Where a contender writes."""
        name = f"{contender.name.replace(' ', '-')}-{self.script}-{self.tickets}.pdf"
        return self.folder / name

    def run(self, contender, runs):
        """The median ms of one process's runs."""
        program = self.arguments.programs / contender.program
        command = [program, self.batch_path, self.folder / "keys.json", self.document(contender)]
        command += ["--repeat", str(runs), *contender.arguments]
        if contender.program == "press":
            command += ["--workers", str(self.arguments.workers)]
        line = json.loads(call(command))
        if line["program"] != contender.program or line["tickets"] != self.tickets:
            raise Wrong(f"{contender.name}: {line}")
        return line["ms_median"]

    def check(self, contender, secret):
        """Judge what a contender writes."""
        self.run(contender, 1)
        symbols = self.tickets if self.arguments.check_all else SYMBOLS_CHECKED
        check_document(self.document(contender), self.batch, secret, symbols)
        self.sizes[contender.name] = self.document(contender).stat().st_size

    def measure(self, contenders):
        """Let all take turns."""
        self.times = {contender.name: [] for contender in contenders}
        for number in range(self.arguments.rounds):
            for contender in contenders if number % 2 == 0 else contenders[::-1]:
                runs = contender.single_runs if self.tickets == 1 else BATCH_RUNS
                self.times[contender.name].append(self.run(contender, runs))

    def script_row(self, latin):
        """What the press takes for this script, by what it takes for Latin."""
        ours, theirs = self.times[PRESS.name], latin.times[PRESS.name]
        ratios = [one / other for one, other in zip(ours, theirs)]
        return {
            "case": self.name,
            "figure": f"press, {self.script} / {latin.script}",
            "value": round(statistics.median(ratios), 4),
            "low": round(min(ratios), 4),
            "high": round(max(ratios), 4),
            f"{self.script}_ms": round(statistics.median(ours), 4),
            f"{latin.script}_ms": round(statistics.median(theirs), 4),
            f"{self.script}_bytes_per_ticket": self.sizes[PRESS.name] // self.tickets,
        }

    def row(self, subject, against=None):
        """One claim: a ratio, or the subject's ms when it is compared with nothing."""
        values = self.times[subject]
        if against:
            values = [ours / theirs for ours, theirs in zip(values, self.times[against])]
        figure = f"{subject} / {against}" if against else f"{subject}, ms"
        row = {"case": self.name, "figure": figure}
        row["value"] = round(statistics.median(values), 4)
        row["low"], row["high"] = round(min(values), 4), round(max(values), 4)
        for name in filter(None, (subject, against)):
            key = name.replace(" ", "_")
            row[f"{key}_ms"] = round(statistics.median(self.times[name]), 4)
            row[f"{key}_bytes_per_ticket"] = self.sizes[name] // self.tickets
        for key, bounds in (("limit", LIMITS), ("reach", REACH)):
            if subject == "press" and (self.tickets, against) in bounds:
                row[key] = round(bounds[(self.tickets, against)], 4)
        return row

    def rows(self):
        """What is claimed of the press; without it, how far the others are from the floor."""
        names = list(self.times)
        if "press" not in names:
            return [self.row(name, "floor") for name in names if name != "floor"]
        alone = [self.row("press")] if self.tickets == 1 else []
        return alone + [self.row("press", name) for name in names if name != "press"]


# ---- printing ----


def machine():
    """Where and when, and the versions that matter."""
    cpu = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    show = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES]
    versions = dict(line.split() for line in call(show).decode().splitlines())
    cores = len(os.sched_getaffinity(0))
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {
        "date": now,
        "cpu": cpu,
        "cores": cores,
        "kernel": platform.release(),
        "versions": versions,
    }


def is_over(row):
    """Whether a row breaks its limit."""
    return "limit" in row and row["value"] > row["limit"]


def table(rows):
    """The rows as aligned text."""
    lines = [("case", "figure", "value", "low", "high", "limit", "reach", "ms", "")]
    for row in rows:
        ms = "  ".join(f"{key[:-3]} {row[key]:.3f}" for key in row if key.endswith("_ms"))
        note = "OVER ITS LIMIT" if is_over(row) else ""
        numbers = [f"{row[key]:.3f}" if key in row else "-" for key in lines[0][2:7]]
        lines.append((row["case"], row["figure"], *numbers, ms, note))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines
    )


def arguments_parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bench")
    parser.add_argument(
        "--batch",
        type=pathlib.Path,
        default=ROOT / "fixtures/requests/opening-night-500.json",
    )
    parser.add_argument("--rounds", type=int, default=7, help="5 or more")
    parser.add_argument("--workers", type=int, default=1, help="of the press")
    parser.add_argument("--check-all", action="store_true", help="decode every page's symbol")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="write the JSON lines")
    arguments = parser.parse_args()
    if arguments.rounds < 5:
        parser.error("--rounds: a median of fewer than 5 says nothing")
    return arguments


def measure(arguments, folder):
    """All rows of one run."""
    batch = json.loads(arguments.batch.read_text(encoding="utf-8"))
    secret = secrets.token_bytes(32)
    key = {"id": 1, "client": "*", "sign_from": "2020-01-01T00:00:00Z"}
    key["secret"] = base64.urlsafe_b64encode(secret).decode().rstrip("=")
    (folder / "keys.json").touch(mode=0o600)  # the press reads no ring that is open to others
    (folder / "keys.json").write_text(json.dumps({"keys": [key]}), encoding="utf-8")
    contenders = [each for each in CONTENDERS if (arguments.programs / each.program).exists()]
    rows = []
    for tickets in (batch["tickets"], batch["tickets"][:1]):
        case = Case({**batch, "tickets": tickets}, folder, arguments)
        for contender in contenders:
            case.check(contender, secret)
        case.measure(contenders)
        rows += case.rows()
    if PRESS in contenders:
        rows += measure_scripts(arguments, folder, batch, secret)
    return rows


def measure_scripts(arguments, folder, batch, secret):
    """A row for each script: the press alone, every script and Latin in turn."""
    batches = {LATIN: batch, **{each: scripts.batch_in(each, batch) for each in scripts.SCRIPTS}}
    cases = [Case(of, folder, arguments, script) for script, of in batches.items()]
    for case in cases:
        case.check(PRESS, secret)
        case.times[PRESS.name] = []
    for number in range(arguments.rounds):
        for case in cases if number % 2 == 0 else cases[::-1]:
            case.times[PRESS.name].append(case.run(PRESS, BATCH_RUNS))
    return [case.script_row(cases[0]) for case in cases[1:]]


def main():
    """Measure, print, judge."""
    arguments = arguments_parse()
    # Memory where there is such a place: the disk is not what is measured.
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        try:
            about = {**machine(), "workers": arguments.workers, "rounds": arguments.rounds}
            rows = measure(arguments, pathlib.Path(folder))
        except (Wrong, OSError) as wrong:
            print(f"bench: {wrong}", file=sys.stderr)
            return 1
    lines = "".join(json.dumps(each) + "\n" for each in [about, *rows])
    print(lines + "\n" + table(rows))
    if arguments.save:
        arguments.save.write_text(lines, encoding="utf-8")
    if not (arguments.programs / "press").exists():
        print(f"bench: no press in {arguments.programs}", file=sys.stderr)
        return 1
    return 1 if any(map(is_over, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
