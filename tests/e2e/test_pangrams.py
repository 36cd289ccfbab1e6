#!/usr/bin/python3
"""A line of Latin, Greek and Cyrillic looks as HarfBuzz's own hb-view draws it, and reads as it was written.

usage: test_pangrams.py PROGRAM

Both draw the same text in the same font file at the same size: the first of the default fonts that
has all of its letters. Compared are the pixels, up to a step of one. The bound is so tight that each
text is refused when any one of its accents is missing.
"""

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops, ImageFilter

from check_document import run
from document_checks import (
    FIXTURES,
    ROOT,
    Layout,
    Press,
    Report,
    accents_dropped,
    bare,
    expected,
)

LAYOUTS = FIXTURES / "layouts" / "valid"
FONTS_LIST = ROOT / "service" / "data" / "fonts.list"
DPI = 288
DISTANCE_PX_MAX = 20  # an accent missing is 60 or more
HB_VIEW_TIMEOUT_S = 60


class Pangram(NamedTuple):
    script: str
    locale: str
    text: str
    close: tuple = ()  # texts with one part less, where a script has no accents


PANGRAMS = [
    Pangram("Vietnamese", "vi-VN", "Do bạch kim rất quý nên sẽ dùng để lắp vô xương"),
    Pangram("Polish", "pl-PL", "Pchnąć w tę łódź jeża lub ośm skrzyń fig"),
    Pangram("Hungarian", "hu-HU", "Egy hűtlen vejét fülöncsípő dühös mexikói úr"),
    Pangram("Turkish", "tr-TR", "Pijamalı hasta yağız şoföre çabucak güvendi İIı"),
    Pangram("Latin with marks of its own", "en-GB", "x\u0323\u0302y\u0331 q\u0303a\u030b\u0325"),
    Pangram("Greek", "el-GR", "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία ἐᾷ ᾧ ὕδωρ Ἆ"),
    Pangram("Russian", "ru-RU", "Съешь ещё этих мягких французских булок да выпей чаю й"),
    Pangram("Ukrainian", "uk-UA", "Жебракують філософи при ґанку церкви в Гадячі їхнє є"),
]


def default_fonts():
    lines = FONTS_LIST.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def font_for(text):
    """The first default font that has all of a text; None when there is no such font."""
    for font in default_fonts():
        glyphs = run(
            ["hb-shape", "--no-positions", "--no-clusters", "--no-glyph-names", font, text]
        )
        if "0" not in glyphs.stdout.strip(" []\n").split("|"):
            return font
    return None


# ---- pixels ----


def ink_of(image):
    """The part of a grey image that is not white."""
    box = image.point(lambda v: 255 * (v < 128)).getbbox()
    return image.point(lambda v: 255 * (v < 128)).crop(box)


def missing_pixels(a, b):
    """Ink of a that b does not have, nor any of its neighbours."""
    return ImageChops.subtract(a, b.filter(ImageFilter.MaxFilter(3))).histogram()[255]


def distance_px(a, b):
    """Between two images of ink, laid on each other by their top left corners."""
    size = (max(a.width, b.width) + 2, max(a.height, b.height) + 2)
    spread = []
    for image in (a, b):
        spread.append(Image.new("L", size))
        spread[-1].paste(image, (1, 1))
    return missing_pixels(*spread) + missing_pixels(*reversed(spread))


def ink_by_hb_view(font, pangram, size_pt):
    """The text as HarfBuzz's own program draws it."""
    size_px = size_pt * DPI / 72
    command = ["hb-view", "-O", "png", "--font-size", f"{size_px:g}", "--margin", "20"]
    command += ["--language", pangram.locale, font, pangram.text]
    done = subprocess.run(command, capture_output=True, check=True, timeout=HB_VIEW_TIMEOUT_S)
    return ink_of(Image.open(io.BytesIO(done.stdout)).convert("L"))


# ---- the test ----


def check_copied(report, sheet, pangram):
    """What is copied from the page is what was written, for two readers."""
    wanted = expected(pangram.text)
    page = ["-f", 1, "-l", 1]
    for reader, command in (
        ("poppler", ["pdftotext", "-enc", "UTF-8", *page, sheet.pdf, "-"]),
        ("MuPDF", ["mutool", "draw", "-q", "-F", "txt", sheet.pdf, "1"]),
    ):
        said = bare(run(command).stdout)
        report.check(f"{pangram.script}: copied by {reader}", said == wanted, f"{said}\n{wanted}")


def check_pangram(press, report, layout, pangram):
    font = font_for(pangram.text)
    if not report.check(f"{pangram.script}: a default font has all of it", font is not None):
        return
    texts = [pangram.text, *accents_dropped(pangram.text), *pangram.close]
    tickets = {text: {"holder": text} for text in texts}
    options = ["--layouts", LAYOUTS, "--fonts", font]
    layouts = {layout.name: layout}
    sheet = press.sheet(tickets, *options, layouts=layouts, locale=pangram.locale)
    size_pt = layout.elements[0]["size_pt"]
    wanted = ink_by_hb_view(font, pangram, size_pt)
    box = layout.texts("ticket.holder")[0]
    distances = {
        text: distance_px(ink_of(sheet.crop(layout.name, text, box, DPI)), wanted)
        for text in dict.fromkeys(texts)
    }
    distance = distances.pop(pangram.text)
    case = f"{pangram.script}: drawn as by hb-view in {Path(font).name}, {distance} pixels differ"
    report.check(case, distance <= DISTANCE_PX_MAX and not sheet.said, sheet.said)
    nearest = min(distances, key=distances.get)
    case = f"{pangram.script}: {len(distances)} texts with one mark less are refused"
    case += f", the nearest with {distances[nearest]} pixels"
    report.check(case, distances[nearest] > DISTANCE_PX_MAX, nearest)
    check_copied(report, sheet, pangram)


def main(program):
    report = Report()
    layout = Layout(LAYOUTS / "pangram.json")
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        press = Press(program, folder)
        for pangram in PANGRAMS:
            check_pangram(press, report, layout, pangram)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
