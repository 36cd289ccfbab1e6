#!/usr/bin/env python3
"""The documents of the press please every judge, and no judge can be pleased by a planted fault.

usage: test_documents.py PROGRAM
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REQUESTS = ROOT / "fixtures" / "requests"
TIMEOUT_S = 300
SMALL_TICKETS = 3
# How qpdf writes what preflight accepts and a byte pattern can find.
SPELLING = ["--stream-data=uncompress", "--newline-before-endstream", "--object-streams=disable"]

# Compact outlines, named and CID-keyed, the second from the middle of a collection.
OPENTYPE = Path("/usr/share/fonts/opentype")
COMPACT_FONTS = {
    "EB Garamond": OPENTYPE / "ebgaramond/EBGaramond12-Regular.otf",
    "Noto Sans CJK SC": OPENTYPE / "noto/NotoSansCJK-Regular.ttc#2",
}

COUNT, PREFLIGHT, TEXT, SYMBOLS = "pages, one a ticket", "preflight", "each page says", "QR symbols"


def run(*command):
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, timeout=TIMEOUT_S, check=False)


def must_run(*command):
    result = run(*command)
    if result.returncode != 0:
        raise RuntimeError(f"{command}: {result.returncode} {result.stderr.decode()}")
    return result.stdout


class Bench:
    """A folder with a key ring, a small batch and its document."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.keys = self.new_keys("keys.json")
        batch = json.loads((REQUESTS / "opening-night-500.json").read_text(encoding="utf-8"))
        batch["tickets"] = batch["tickets"][:SMALL_TICKETS]
        self.batch = folder / "batch.json"
        self.batch.write_text(json.dumps(batch), encoding="utf-8")
        self.pdf = self.render(self.batch, "small.pdf")
        self.plain = folder / "plain.pdf"
        must_run("qpdf", *SPELLING, self.pdf, self.plain)

    def new_keys(self, name):
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(must_run(self.program, "keygen"))
        return path

    def render(self, batch, name, *options):
        pdf = self.folder / name
        must_run(self.program, "render", "--signing-keys", self.keys, *options, batch, "-o", pdf)
        return pdf

    def refused(self, pdf, keys=None, batch=None):
        """The checks that are not ok, and everything that was printed."""
        command = [ROOT / "tests/e2e/check_document.py", self.program]
        result = run(*command, keys or self.keys, batch or self.batch, pdf)
        text = result.stdout.decode() + result.stderr.decode()
        lines = re.findall(r"^not ok - (.*)$", text, re.M)
        if (result.returncode == 0) != (not lines):
            lines.append(f"status {result.returncode}")
        return lines, text

    def with_pages(self, pages):
        pdf = self.folder / "pages.pdf"
        must_run("qpdf", *SPELLING, self.pdf, "--pages", ".", pages, "--", pdf)
        return pdf

    def with_bytes(self, pattern, replacement):
        """Every match replaced by as many bytes, so that no offset moves."""
        old = self.plain.read_bytes()
        new, count = re.subn(pattern, lambda m: replacement.ljust(len(m[0])), old, flags=re.S)
        if count == 0 or len(new) != len(old):
            raise RuntimeError(f"{pattern!r}: {count} matches")
        pdf = self.folder / "bytes.pdf"
        pdf.write_bytes(new)
        return pdf


def report(what, is_right, text=""):
    print(f"{'ok' if is_right else 'not ok'} - {what}")
    for line in [] if is_right else text.splitlines()[-20:]:
        print(f"    {line}")
    return not is_right


def expect_refused(bench, what, pdf, judges, saying="", **other):
    """These judges refuse, in these words, and no other does."""
    lines, text = bench.refused(pdf, **other)
    unexpected = [line for line in lines if not any(judge in line for judge in judges)]
    silent = [judge for judge in judges if not any(judge in line for line in lines)]
    return report(what, not unexpected and not silent and saying in text, text)


def expect_accepted(bench, what, pdf, **other):
    lines, text = bench.refused(pdf, **other)
    return report(what, not lines, text)


def main(program):
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        bench = Bench(Path(program).resolve(), Path(name))
        for request in ("single.json", "opening-night-500.json"):
            batch = REQUESTS / request
            pdf = bench.render(batch, "full.pdf")
            failed += expect_accepted(bench, f"{request} pleases all judges", pdf, batch=batch)
        failed += expect_accepted(bench, f"{SMALL_TICKETS} tickets please all judges", bench.pdf)
        failed += expect_accepted(bench, "so they do uncompressed", bench.plain)
        for font, path in COMPACT_FONTS.items():
            pdf = bench.render(bench.batch, "compact.pdf", "--fonts", path)
            failed += expect_accepted(bench, f"{SMALL_TICKETS} tickets in {font} do, too", pdf)
            kinds = must_run("pdffonts", pdf).decode().count("CID Type 0C")
            failed += report(f"{font} is embedded with compact outlines", kinds == 1)
        failed += expect_refused(
            bench, "two pages in each other's place", bench.with_pages("2,1,3"), [TEXT, SYMBOLS]
        )
        failed += expect_refused(
            bench, "a page lost", bench.with_pages("1,2"), [COUNT, TEXT, SYMBOLS]
        )
        failed += expect_refused(
            bench, "another ring's keys", bench.pdf, [SYMBOLS], keys=bench.new_keys("other.json")
        )
        # ICC.1 section 7.2: the profile's version is at byte 8, between its CMM and its class.
        version = rb"(?<=lcms)\x02\x10(?=\x00\x00mntr)"
        planted = [
            ("a version 4 profile", version, b"\x04\x40", "Invalid version of the ICCProfile"),
            ("fonts without CIDSet", rb"/CIDSet \d+ 0 R", b"", "The CIDSet entry is missing"),
            ("no output intent", rb"/OutputIntents", b"/XutputIntents", "without Color Profile"),
        ]
        for what, pattern, replacement, saying in planted:
            pdf = bench.with_bytes(pattern, replacement)
            failed += expect_refused(bench, what, pdf, [PREFLIGHT], saying)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
