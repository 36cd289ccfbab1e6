#!/usr/bin/python3
"""Random tickets in every built-in layout: whatever their texts are, each page keeps its order.

usage: test_random_tickets.py PROGRAM

1,000 tickets, or 10,000 where TP_TEST_LONG is set. No word lies over another, no ink lies outside
of the texts' boxes, each ticket has one symbol that reads as its token, and the files please qpdf
and preflight. At the end the judges are shown documents in which a text stands elsewhere.
"""

import copy
import functools
import os
import random
import re
import sys
import tempfile

from check_document import font_faults, preflight_faults, qpdf_faults
from document_checks import Press, Report, box_of, ink_outside, overlaid
from random_texts import Texts

IS_LONG = bool(os.environ.get("TP_TEST_LONG"))
TICKETS = 10_000 if IS_LONG else 1_000
TICKETS_A_DOCUMENT = 250
SEED = 20270321
DPI = 100
PLANTED_MM = 3  # by how much boxes are moved so that ink must lie outside
LOCALES = (
    "en-GB ar-EG th-TH ja-JP he-IL de-DE hi-IN zh-CN tr-TR ko-KR fa-IR es-ES pl-PL el-GR ru-RU"
)
ZONES = ["Europe/Madrid", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia", "UTC"]
CURRENCIES = ["EUR", "JPY", "KWD", "USD", "INR", "KRW", "ILS", "EGP"]


class Tickets:
    """Random batches; the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.texts = Texts(self.random)

    def some(self, **lengths):
        """Members of random texts, each there or not."""
        return {
            name: self.texts.text(length)
            for name, length in lengths.items()
            if self.random.random() < 0.7
        }

    def event(self):
        event = {"name": self.texts.text(300), "venue": self.texts.text(300)}
        event |= self.some(address=300, organizer=200, notes=2000)
        event["timezone"] = self.random.choice(ZONES)
        day, hour = self.random.randint(1, 28), self.random.randint(0, 23)
        event["starts_at"] = f"2027-{self.random.randint(1, 12):02}-{day:02}T{hour:02}:30:00Z"
        if self.random.random() < 0.5:
            event["doors_at"] = event["starts_at"].replace(":30:00", ":15:00")
        return event

    def ticket(self):
        ticket = {"holder": self.texts.text(200), "type": self.texts.text(100)}
        ticket |= self.some(gate=50)
        seat = self.some(section=50, row=50, number=50)
        ticket |= {"seat": seat} if seat else {}
        amount = self.random.choice([0, 1, 2500, 10**12])
        ticket["price"] = {"amount": amount, "currency": self.random.choice(CURRENCIES)}
        if self.random.random() < 0.3:
            del ticket["price"]
        if self.random.random() < 0.5:
            ticket["order_id"] = "O" * self.random.randint(1, 64)
        ticket["id"] = self.random.choice(["T-{}", "{:064}", "ÄÖ東-{}"])
        return ticket


def without_texts(data):
    data["elements"] = [each for each in data["elements"] if each["type"] != "text"]


class Judge:
    """Whether all ink lies in its boxes; shift_mm moves the boxes away from where they are."""

    def __init__(self, press):
        self.press = press
        self.shift_mm = 0
        self.bare_folder = press.folder / "bare"
        self.bare = press.altered_layouts(self.bare_folder, "bare", without_texts)

    @functools.cache
    def background(self, name, tickets, is_mirrored):
        """A page of a layout with so many tickets, without their texts."""
        bare = {f"bare-{name}": self.bare[f"bare-{name}"]}
        options = ["--layouts", self.bare_folder]
        locale = "ar-EG" if is_mirrored else "en-GB"
        blank = {str(number): {} for number in range(tickets)}
        sheet = self.press.sheet(blank, *options, layouts=bare, locale=locale)
        return sheet.images(DPI)[0]

    def ink_faults(self, sheet):
        """Pages with ink outside of the boxes."""
        for name, (first, last) in sheet.first_last.items():
            cells = len(sheet.layouts[name].cells())
            for page in range(first, last + 1):
                tickets = min(cells, len(sheet.keys) - cells * (page - first))
                background = self.background(name, tickets, sheet.is_mirrored)
                boxes = ink_boxes(self.press.layouts[name], sheet.is_mirrored)
                boxes = [box.moved(self.shift_mm, self.shift_mm) for box in boxes]
                count = ink_outside(sheet.images(DPI)[page - 1], background, boxes, DPI)
                if count > 0:
                    yield f"{name}, page {page}: {count} pixels of ink outside of the boxes"


@functools.cache
def ink_boxes(layout, is_mirrored):
    """Where a page may differ from the bare one: texts, symbols, and what is drawn at times."""
    boxes = [*layout.texts(), layout.qr()]
    boxes += [box_of(each).grown(0.5) for each in layout.elements if "when" in each]
    return [layout.placed(box, cell, is_mirrored) for cell in layout.cells() for box in boxes]


def faults_of(sheet, judge):
    """What each judge has to say against a document."""
    return {
        "no ink outside of the boxes": list(judge.ink_faults(sheet)),
        "no glyph over another": list(sheet.glyph_faults()),
        "each symbol reads as its ticket's token": list(sheet.symbol_faults(DPI)),
        "qpdf --check is silent, fonts are embedded": [
            *qpdf_faults(sheet.pdf),
            *font_faults(sheet.pdf),
        ],
    }


def check_random(press, report, judge):
    made = Tickets(SEED)
    each = TICKETS_A_DOCUMENT // len(press.layouts)
    locales = LOCALES.split()
    pdfs = []
    for number in range(-(-TICKETS // (each * len(press.layouts)))):
        tickets = {str(i): made.ticket() for i in range(each)}
        locale = locales[number % len(locales)]
        sheet = press.sheet(tickets, event=made.event(), locale=locale)
        pdfs.append(sheet.pdf)
        what = f"document {number + 1}, {len(sheet.tickets)} tickets, {locale}"
        for name, faults in faults_of(sheet, judge).items():
            report.check(f"{what}: {name}", not faults, "\n".join(faults[:5]))
        sheet.rendered.clear()  # a hundred megabytes
    faults = preflight_faults(*pdfs)
    report.check("preflight finds nothing in all documents", not faults, "\n".join(faults[:5]))


def check_planted(press, report, judge):
    """The judges, where another event's document is laid over one, and its boxes are moved."""
    sheet = press.sheet({"a": {"holder": "W" * 60}})
    other = press.sheet({"a": {"holder": "Bert Moor"}}, event={"id": "evt-2"})
    right = faults_of(sheet, judge)
    report.check("control: nothing is wrong with the one", not any(right.values()), right)
    over = copy.copy(sheet)
    over.pdf, over.rendered = overlaid(sheet.pdf, other.pdf), {}
    judge.shift_mm = PLANTED_MM
    found = faults_of(over, judge)
    for name in list(found)[:3]:
        by_layout = {layout for layout in press.layouts if layout in str(found[name])}
        pages = len(set(re.findall(r"page (\d+)", str(found[name]))))
        is_found = by_layout == set(press.layouts) or pages == len(press.layouts)
        report.check(f"planted: not {name}, in each layout", is_found, found[name][:5])


def main(program):
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        press = Press(program, folder)
        judge = Judge(press)
        check_random(press, report, judge)
        check_planted(press, report, judge)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
