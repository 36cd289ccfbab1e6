#!/usr/bin/env python3
"""Judge a document by what it says, with other people's programs.

usage: check_document.py PROGRAM KEY_RING BATCH.json DOCUMENT.pdf

Every ticket of the batch must be the page of its number: its text, and its QR symbol as two
renderers draw it at 100 dpi and zbar reads it, verified by `PROGRAM verify`. The file itself must
please qpdf, and preflight as PDF/A-1b, with every font embedded and subset. Prints one line
"ok - ..." or "not ok - ..." a check; exit status 1 when one is not ok.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
JOBS = len(os.sched_getaffinity(0))
DPI = 100
TIMEOUT_S = 300
FAULTS_SHOWN = 5
ZBAR = "{http://zbar.sourceforge.net/2008/barcode}"
ZBAR_NOTHING_FOUND = 4


class Report:
    def __init__(self):
        self.failed = 0

    def expect(self, what, faults):
        """One check; it is right when nothing was found to say against it."""
        faults = [str(fault) for fault in faults]
        self.failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} - {what}")
        for fault in faults[:FAULTS_SHOWN]:
            print(f"    {fault}")
        if len(faults) > FAULTS_SHOWN:
            print(f"    and {len(faults) - FAULTS_SHOWN} more")


def run(command, text=None):
    return subprocess.run(
        [str(word) for word in command],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )


def pages_count(pdf):
    found = re.search(r"^Pages:\s+(\d+)$", run(["pdfinfo", pdf]).stdout, re.M)
    return int(found[1]) if found else 0


def qpdf_faults(pdf):
    result = run(["qpdf", "--check", pdf])
    silent = result.returncode == 0 and result.stderr == "" and "WARNING" not in result.stdout
    return [] if silent else (result.stdout + result.stderr).splitlines()


def preflight_faults(*pdfs):
    """Of all files, by one start of the judge."""
    result = run([HERE / "preflight" / "run.sh", *pdfs])
    if result.returncode == 0 and result.stdout == "".join(f"{pdf}: ok\n" for pdf in pdfs):
        return []
    lines = [line for line in result.stdout.splitlines() if not line.endswith(": ok")]
    return lines + result.stderr.splitlines() or [f"status {result.returncode}"]


def font_faults(pdf):
    """The table's columns emb, sub, uni and the two numbers of the object end each line."""
    result = run(["pdffonts", pdf])
    lines = result.stdout.splitlines()[2:]
    if result.returncode != 0 or result.stderr or not lines:
        return result.stderr.splitlines() or ["no font"]
    return [line for line in lines if line.split()[-5:-2] != ["yes", "yes", "yes"]]


def bare(text):
    """Without white space: a line may break anywhere, and a wide gap is drawn as none."""
    return "".join(unicodedata.normalize("NFC", text).split())


def text_faults(pdf, tickets):
    result = run(["pdftotext", "-enc", "UTF-8", pdf, "-"])
    pages = [bare(page) for page in result.stdout.split("\f")]
    for number, ticket in enumerate(tickets, 1):
        page = pages[number - 1] if number <= len(pages) else ""
        for member in ("holder", "id"):
            if bare(ticket[member]) not in page:
                yield f"page {number} does not say {ticket[member]!r}"


def render_poppler(pdf, pages, folder):
    """Page images of the whole document, each process with a range of the pages."""
    step = max(1, -(-pages // JOBS))
    ranges = [(first, min(first + step - 1, pages)) for first in range(1, pages + 1, step)]
    command = ["pdftoppm", "-q", "-gray", "-r", DPI]
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = [[*command, "-f", a, "-l", b, pdf, folder / "page"] for a, b in ranges]
        return [result.stderr for result in pool.map(run, jobs) if result.returncode != 0]


def render_mupdf(pdf, _pages, folder):
    command = ["mutool", "draw", "-q", "-r", DPI, "-c", "gray", "-F", "pgm"]
    result = run([*command, "-o", folder / "page-%d.pgm", pdf])
    return [] if result.returncode == 0 else [result.stderr]


def symbols_read(images):
    """What zbar reads in each image: path -> texts of all QR symbols found."""
    command = ["zbarimg", "-q", "--nodbus", "--xml", "-Sdisable", "-Sqrcode.enable"]
    shares = [images[i::JOBS] for i in range(JOBS) if images[i::JOBS]]
    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(run, [[*command, *share] for share in shares]))
    symbols = {image: [] for image in images}
    for result in results:
        if result.returncode not in (0, ZBAR_NOTHING_FOUND):
            raise RuntimeError(f"zbarimg: {result.stderr}")
        for source in ElementTree.fromstring(result.stdout).iter(f"{ZBAR}source"):
            texts = [data.text for data in source.iter(f"{ZBAR}data")]
            symbols[Path(source.get("href"))] += texts
    return symbols


def page_tokens(render, pdf, pages):
    """page number -> texts of its symbols, and what the renderer had to say."""
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        faults = render(pdf, pages, Path(name))
        symbols = symbols_read(sorted(Path(name).glob("*.pgm")))
    return {int(path.stem.split("-")[-1]): texts for path, texts in symbols.items()}, faults


def claims_of(program, key_ring, tokens):
    """One line of JSON a token, in their order."""
    result = run([program, "verify", "--signing-keys", key_ring, "-"], "\n".join(tokens) + "\n")
    claims = [json.loads(line) for line in result.stdout.splitlines()]
    if len(claims) != len(tokens):
        raise RuntimeError(f"verify: {len(claims)} answers to {len(tokens)}: {result.stderr}")
    return claims


def claim_faults(number, event, ticket, claims):
    expected = {"valid": True, "event_id": event["id"], "ticket_id": ticket["id"]}
    for member, value in expected.items():
        if claims.get(member) != value:
            yield f"page {number}: {member} is {claims.get(member)!r}, not {value!r}"


def symbol_faults(program, key_ring, batch, tokens):
    """page number -> what is wrong with its symbol, for the pages where something is."""
    faults = {}
    single = {}
    for number in range(1, len(batch["tickets"]) + 1):
        texts = tokens.get(number, [])
        if len(texts) == 1:
            single[number] = texts[0]
        else:
            faults[number] = [f"page {number}: {len(texts)} QR symbols"]
    claims = claims_of(program, key_ring, list(single.values())) if single else []
    for number, answer in zip(single, claims):
        ticket = batch["tickets"][number - 1]
        wrong = list(claim_faults(number, batch["event"], ticket, answer))
        if wrong:
            faults[number] = wrong
    return faults


def check(program, key_ring, batch_path, pdf):
    report = Report()
    batch = json.loads(Path(batch_path).read_text(encoding="utf-8-sig"))
    tickets = batch["tickets"]
    pages = pages_count(pdf)
    count_faults = [] if pages == len(tickets) else [f"{pages} pages"]
    report.expect(f"{len(tickets)} pages, one a ticket", count_faults)
    report.expect("qpdf --check is silent", qpdf_faults(pdf))
    report.expect("preflight finds nothing against PDF/A-1b", preflight_faults(pdf))
    report.expect("every font is embedded, subset and has its characters", font_faults(pdf))
    report.expect("each page says its holder and ticket id", text_faults(pdf, tickets))
    for name, render in (("poppler", render_poppler), ("MuPDF", render_mupdf)):
        tokens, render_faults = page_tokens(render, pdf, pages)
        faults = symbol_faults(program, key_ring, batch, tokens)
        right = len(tickets) - len(faults)
        report.expect(
            f"{right} of {len(tickets)} QR symbols verify as the ticket of their page"
            f" ({name}, {DPI} dpi)",
            render_faults + [line for lines in faults.values() for line in lines],
        )
    return report.failed


def main(arguments):
    if len(arguments) != 4:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    return 1 if check(*arguments) > 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
