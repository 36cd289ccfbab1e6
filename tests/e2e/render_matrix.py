#!/usr/bin/env python3
"""Every built-in layout in every language, to be looked at.

usage: render_matrix.py PROGRAM FOLDER [--layouts NAME,...] [--languages CODE,...] [--dpi N]

For each layout and each fixtures/requests/languages/CODE.json three documents go into FOLDER:
LAYOUT-CODE-full.pdf as the request stands, -longest.pdf with every text as long as it may be, made
of the request's own words, and -least.pdf without anything optional. With --dpi their pages are
drawn, too, as PNG files of the same names.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REQUESTS = ROOT / "fixtures" / "requests" / "languages"
LAYOUTS = ROOT / "service" / "data" / "layouts"
TIMEOUT_S = 120

# Characters, but for ids: bytes. See service/openapi.yaml.
EVENT_CHARACTERS = {"name": 300, "venue": 300, "address": 300, "organizer": 200, "notes": 2000}
TICKET_CHARACTERS = {"holder": 200, "type": 100}
SEAT_CHARACTERS = 50
ID_BYTES = 64
EVENT_OPTIONAL = ("address", "organizer", "notes", "doors_at")
TICKET_REQUIRED = ("id", "holder", "type")


def words_to(text, characters):
    """The text over and over, up to this many characters."""
    repeated = (text + " ") * (characters // (len(text) + 1) + 1)
    return repeated[:characters].rstrip() or text


def id_to(text):
    return (text + "-" + "0123456789" * 7)[:ID_BYTES]


def longest(batch):
    event = batch["event"]
    for member, characters in EVENT_CHARACTERS.items():
        event[member] = words_to(event[member], characters)
    event["id"] = id_to(event["id"])
    ticket = batch["tickets"][0]
    for member, characters in TICKET_CHARACTERS.items():
        ticket[member] = words_to(ticket[member], characters)
    for member in ("id", "order_id"):
        ticket[member] = id_to(ticket[member])
    ticket["seat"] = {k: words_to(v, SEAT_CHARACTERS) for k, v in ticket["seat"].items()}
    ticket["gate"] = words_to(ticket["gate"], SEAT_CHARACTERS)
    ticket["price"]["amount"] = 999_999_999_999
    ticket["valid_from"] = batch["event"]["starts_at"]
    ticket["valid_until"] = "2099-12-31T23:59:00Z"
    batch["tickets"] = [ticket]
    return batch


def least(batch):
    for member in EVENT_OPTIONAL:
        batch["event"].pop(member)
    batch["event"]["venue"] = ""
    batch["tickets"] = [{member: batch["tickets"][0][member] for member in TICKET_REQUIRED}]
    return batch


KINDS = {"full": lambda batch: batch, "longest": longest, "least": least}


def languages():
    return [path.stem for path in sorted(REQUESTS.glob("*.json"))]


def layouts():
    return [path.stem for path in sorted(LAYOUTS.glob("*.json"))]


def batch_of(layout, language, kind):
    text = (REQUESTS / f"{language}.json").read_text(encoding="utf-8")
    return {**KINDS[kind](json.loads(text)), "layout": layout}


def render(program, folder, layout, language, kind):
    """The document of one cell of the matrix."""
    stem = folder / f"{layout}-{language}-{kind}"
    request, pdf = stem.with_suffix(".json"), stem.with_suffix(".pdf")
    request.write_text(json.dumps(batch_of(layout, language, kind)), encoding="utf-8")
    command = [program, "render", "--data", folder / "data", request, "-o", pdf]
    result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{request}: {result.stderr.decode()}")
    return pdf


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layouts", type=lambda s: s.split(","), default=layouts())
    parser.add_argument("--languages", type=lambda s: s.split(","), default=languages())
    parser.add_argument("--dpi")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for layout in args.layouts:
        for language in args.languages:
            for kind in KINDS:
                pdf = render(args.program, args.folder, layout, language, kind)
                if args.dpi is not None:
                    draw = ["pdftoppm", "-r", args.dpi, "-png", pdf, pdf.with_suffix("")]
                    subprocess.run(draw, timeout=TIMEOUT_S, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
