#!/usr/bin/python3
"""The symbol of every built-in layout reads as people hold and print it, with any token.

usage: test_qr_reading.py PROGRAM

Each layout is printed with the shortest and with the longest token that the rules allow, in a
language read from the left and one read from the right. Every symbol must read at 100 dpi upright,
upside down and askew by 15 degrees. Thermal paper is drawn at the 203 dpi of its head in black and
white only, and then with every dark dot grown by one to all sides, as heat spreads in it. That the
judge can be displeased is shown with modules that the rules refuse, and with heat that spreads
further.
"""

import sys
import tempfile
from pathlib import Path

from PIL import ImageFilter

from check_document import symbols_read
from document_checks import MM_PER_INCH, Press, Report, page_images, token_of

ID_BYTES_MAX = 64
TOKEN_CHARACTERS_MAX = 211
DPI, HEAD_DPI = 100, 203
LOCALES = {"en": "en-GB", "ar": "ar-EG"}
EVENTS = {"shortest": {"id": "e"}, "longest": {"id": "e" * ID_BYTES_MAX}}
TICKETS = {
    "shortest": {"id": "{}"},  # numbered by the sheet
    "longest": {
        "id": f"{{:0{ID_BYTES_MAX}}}",
        "valid_from": "2027-03-12T18:00:00Z",
        "valid_until": "2027-03-13T02:00:00Z",
    },
}
TURNS = {"upright": 0, "upside down": 180, "askew": 15, "askew the other way": -15}
ONE_DOT = 3  # the side of the square of dots that one dot grows to
THREE_DOTS = 7


def turned(image, degrees):
    return image.rotate(degrees, resample=3, expand=True, fillcolor=255) if degrees else image


def grown(image, side):
    """The image with every dark dot grown to a square of that many."""
    return image.filter(ImageFilter.MinFilter(side))


class Reading:
    """Images that zbar has still to read, and what it must find."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.expected = {}

    def add(self, what, image, token):
        self.count += 1
        path = self.folder / f"{self.count}.pgm"
        image.save(path)
        self.expected[path] = (what, token)

    def misread(self):
        """By what was to be read: what was found instead."""
        found = symbols_read(list(self.expected))
        return {
            what: found[path]
            for path, (what, token) in self.expected.items()
            if found[path] != [token]
        }


def plate_of(sheet, name, dpi, is_mono=False):
    """The one ticket's symbol with half a centimetre of what is around it."""
    box = sheet.box(name, "a", sheet.layouts[name].qr()).grown(5)
    layout = sheet.layouts[name]
    left, top = max(box.x, 0), max(box.y, 0)
    right, bottom = (
        min(box.x + box.w, layout.page_width),
        min(box.y + box.h, layout.page_height),
    )
    page = sheet.places[name, "a"][0]
    image = page_images(sheet.pdf, dpi, page, page)[0]
    if is_mono:
        image = image.point(lambda v: 255 * (v >= 128))
    scale = dpi / MM_PER_INCH
    return image.crop(tuple(round(edge * scale) for edge in (left, top, right, bottom)))


def read_all(press, report, folder):
    reading = Reading(folder)
    whats = []
    for kind, ticket in TICKETS.items():
        for language, locale in LOCALES.items():
            sheet = press.sheet({"a": ticket}, event=EVENTS[kind], locale=locale)
            for name in press.layouts:
                token = token_of(sheet.event, sheet.tickets[name, "a"])
                if kind == "longest":
                    assert len(token) == TOKEN_CHARACTERS_MAX, token
                plate = plate_of(sheet, name, DPI)
                for turn, degrees in TURNS.items():
                    whats.append(f"{name}, {language}, {kind} token, {turn}")
                    reading.add(whats[-1], turned(plate, degrees), token)
                if name == "thermal":
                    plate = plate_of(sheet, name, HEAD_DPI, is_mono=True)
                    whats.append(f"{name}, {language}, {kind} token, dots of its head")
                    reading.add(whats[-1], plate, token)
                    whats.append(f"{name}, {language}, {kind} token, dots grown by one")
                    reading.add(whats[-1], grown(plate, ONE_DOT), token)
    misread = reading.misread()
    for what in whats:
        report.check(what, what not in misread, str(misread.get(what)))


def planted(press, report, folder):
    """Faults that must be seen."""
    folder.mkdir()
    reading = Reading(folder)
    sheet = press.sheet({"a": TICKETS["longest"]}, event=EVENTS["longest"])
    token = token_of(sheet.event, sheet.tickets["thermal", "a"])
    plate = plate_of(sheet, "thermal", DPI)
    small = plate.resize((plate.width // 2, plate.height // 2), resample=4)
    reading.add("modules of 0.36 mm", small, token)
    plate = plate_of(sheet, "thermal", HEAD_DPI, is_mono=True)
    reading.add("dots grown by three", grown(plate, THREE_DOTS), token)
    reading.add("another token", plate, token[:-1] + "_")
    misread = reading.misread()
    for what in ("modules of 0.36 mm", "dots grown by three", "another token"):
        report.check(f"planted: {what}", what in misread)


def main(program):
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        press = Press(program, Path(name))
        read_all(press, report, Path(name))
        planted(press, report, Path(name) / "planted")
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
