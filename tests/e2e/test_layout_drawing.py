#!/usr/bin/python3
"""Layouts as they are drawn: sheets, images, turns and mirrors, judged by the pixels of a page.

usage: test_layout_drawing.py PROGRAM

The layouts are those of fixtures/layouts/valid whose pictures are four quarters: red and green above,
blue and white below (fixtures/make_images.py).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from check_document import font_faults, preflight_faults, qpdf_faults
from document_checks import (
    Box,
    Layout,
    Press,
    box_of,
    differing_pixels,
    page_images,
    page_words,
    token_of,
)
from service_under_test import FIXTURES, Report, Service

LAYOUTS = FIXTURES / "layouts" / "valid"
DPI = 100
MM_PER_INCH = 25.4
RED, GREEN, BLUE, WHITE = (0xC8, 0x1E, 0x28), (0, 0x80, 0x40), (0x20, 0x40, 0xC0), (255, 255, 255)
QUARTERS = [RED, GREEN, BLUE, WHITE]  # left and right above, left and right below
HALF_GREEN = (0x7F, 0xBF, 0x9F)  # over white
BACKGROUND = (0xE0, 0xE0, 0xE0)
PNG_TOLERANCE, JPEG_TOLERANCE = 1, 12
TICKETS_OF_SHEETS = 5


def grey(level):
    return (level, level, level)


PICTURES = {
    "grey1.png": [grey(0), grey(255), grey(0), grey(255)],
    "grey8-transparent.png": [grey(0), grey(255), grey(170), grey(255)],
    "grey16-alpha.png": [grey(0), grey(170), grey(170), grey(255)],
    "palette8-alpha.png": [RED, HALF_GREEN, BLUE, WHITE],
    "rgb8-alpha.png": [RED, HALF_GREEN, BLUE, WHITE],
    "rgb16-alpha.png": [RED, HALF_GREEN, BLUE, WHITE],
}


def layout_of(name):
    return Layout(LAYOUTS / f"{name}.json")


class Drawing:
    def __init__(self, program, folder):
        self.program = program
        self.press = Press(program, folder)
        self.report = Report()
        self.printed = []

    def sheet(self, name, tickets, *options, **members):
        """A document of one layout; tickets by key, 1 on."""
        keyed = {number: ticket for number, ticket in enumerate(tickets, 1)}
        options = ["--layouts", LAYOUTS, *options]
        sheet = self.press.sheet(keyed, *options, layouts={name: layout_of(name)}, **members)
        self.printed.append(sheet.pdf)
        return sheet

    # ---- sheets ----

    def sheets_are_filled_in_order(self):
        sheet = self.sheet("sheet-4up", [{"holder": f"Ana {i}"} for i in "ABCDE"])
        assert sheet.pages == 2
        assert not list(sheet.symbol_faults(DPI)), list(sheet.symbol_faults(DPI))
        assert len({texts[0] for texts in sheet.symbols(DPI).values()}) == TICKETS_OF_SHEETS
        for key in range(1, TICKETS_OF_SHEETS + 1):
            said = sheet.text("sheet-4up", key, "ticket.holder")
            assert said == f"Ana{'ABCDE'[key - 1]}", said

    def nothing_is_in_the_cells_that_are_left(self):
        sheet = self.sheet("sheet-4up", [{}] * TICKETS_OF_SHEETS)
        layout = sheet.layouts["sheet-4up"]
        page = page_images(sheet.pdf, DPI, 2, 2)[0]
        for cell in layout.cells()[1:]:
            box = Box(0, 0, layout.width, layout.height).moved(*cell).grown(0.5)
            assert page.crop(box.pixels(DPI)).getextrema() == (255, 255), f"ink in {cell}"

    def cut_marks_lie_beyond_the_tickets(self):
        sheet = self.sheet("sheet-4up", [{}] * TICKETS_OF_SHEETS)
        layout = sheet.layouts["sheet-4up"]
        for page in page_images(sheet.pdf, 300):
            marks = 0
            for x, y in layout.cells():
                for edge_x in (x, x + layout.width):
                    marks += is_dark(page, edge_x, 13.5, 300) + is_dark(page, edge_x, 283.5, 300)
                for edge_y in (y, y + layout.height):
                    marks += is_dark(page, 10, edge_y, 300) + is_dark(page, 200, edge_y, 300)
            assert marks == 32, f"{marks} of 32 marks: 8 lines, each met by two cells, on 4 sides"
            gap = Box(103.4, 16.5, 3.2, 264)
            assert page.crop(gap.pixels(300)).getextrema() == (255, 255), "ink between tickets"

    def a_layout_change_begins_a_sheet(self):
        names = ["sheet-4up", "sheet-4up", "label-2up", "images", "label-2up", "sheet-4up"]
        tickets = [
            {"id": f"T-{i}", "holder": "Ana", "type": "All", "layout": name}
            for i, name in enumerate(names)
        ]
        event = {
            "id": "evt-1",
            "name": "Fair",
            "venue": "Hall",
            "starts_at": "2027-03-12T19:30:00+01:00",
            "timezone": "Europe/Berlin",
        }
        batch = {"event": event, "tickets": tickets}
        pdf, _ = self.press.print(batch, "--layouts", LAYOUTS)
        self.printed.append(pdf)
        pages = [[w.text for w in words if w.text[:2] == "T-"] for words in page_words(pdf, 1, 99)]
        assert pages == [["T-0", "T-1"], ["T-2"], ["T-3"], ["T-4"], ["T-5"]], pages
        with Service(self.program, "--layouts", LAYOUTS) as service:
            prefer = {"Prefer": "respond-async"}
            job = service.call("POST", "/v1/batches", json.dumps(batch).encode(), prefer).json()
            service.wait_for_end(job["id"])
            listed = service.call("GET", f"/v1/jobs/{job['id']}/tickets").json()["tickets"]
        assert [ticket["page"] for ticket in listed] == [1, 1, 2, 3, 4, 5], listed
        assert [t["token"] for t in listed] == [token_of(event, ticket) for ticket in tickets]

    def the_bytes_are_the_same_however_cut(self):
        documents = set()
        for options in (
            ["--workers", 1, "--slice-tickets", 1],
            ["--workers", 4, "--slice-tickets", 3],
            ["--workers", 4, "--slice-tickets", 1000],
        ):
            sheet = self.sheet("sheet-4up", [{}] * 30, *options)
            documents.add(sheet.pdf.read_bytes())
        assert len(documents) == 1, f"{len(documents)} different documents"

    # ---- images ----

    def images_show_their_samples(self):
        page = self.page_of("images", [{}])
        for element in layout_of("images").elements:
            if element["type"] != "image" or element["y_mm"] >= 60:
                continue
            name = Path(element["file"]).name
            tolerance = JPEG_TOLERANCE if name.endswith("jpg") else PNG_TOLERANCE
            expected = PICTURES.get(name, QUARTERS)
            expect_quarters(page, box_of(element), expected, tolerance, name)

    def images_come_into_their_boxes(self):
        page = self.page_of("images", [{}])
        fitted = [
            (Box(10, 60, 18, 12), QUARTERS, "contained at the start"),
            (Box(60, 60, 18, 12), QUARTERS, "contained at the end"),
            (Box(10, 80, 12, 8), QUARTERS, "contained at the top"),
            (Box(46, 104, 12, 8), QUARTERS, "contained at the foot"),
            (Box(154, 60, 32, 12), QUARTERS, "stretched"),
            # The picture is 32 by 21.3 mm here, and its middle is seen.
            (Box(82, 60, 32, 12), QUARTERS, "covering the width"),
            # It is 48 by 32 mm here: the left quarters fill 24 mm of the box's 12 when at its
            # start, and alignment is in the middle, where all four meet.
            (Box(82, 80, 12, 32), QUARTERS, "covering the height"),
        ]
        for box, expected, name in fitted:
            expect_quarters(page, box, expected, PNG_TOLERANCE, name)
        for x, y in [(32, 66), (55, 66), (16, 100), (52, 90)]:
            assert is_near(pixel(page, x, y), BACKGROUND, 1), f"{x}, {y}: {pixel(page, x, y)}"
        for x, y in [(80.5, 66), (115.5, 66), (95.5, 96), (88, 79.3)]:  # cut off at the box's edge
            assert is_near(pixel(page, x, y), WHITE, 1), f"{x}, {y}: {pixel(page, x, y)}"

    def an_image_may_hang_on_a_member(self):
        with_gate, without = self.pages_of("images", [{"gate": "3"}, {}])
        assert is_near(pixel(with_gate, 166, 84), RED, 1)
        assert is_near(pixel(without, 166, 84), WHITE, 1)

    def images_are_embedded_once_and_where_they_are_used(self):
        sheet = self.sheet("images", [{}] * 3)
        listed = images_of_pdf(sheet.pdf)
        files = {e["file"] for e in layout_of("images").elements if e["type"] == "image"}
        encodings = {row[10]: row[8] for row in listed}
        expected = ["jpeg" if name.endswith("jpg") else "image" for name in files]
        assert sorted(encodings.values()) == sorted(expected), encodings
        plain, _ = self.press.print(
            {**sheet.batch, "tickets": [{**sheet.batch["tickets"][0], "layout": "classic"}]},
            "--layouts",
            LAYOUTS,
        )
        assert images_of_pdf(plain) == []

    def planted_pictures_are_seen(self):
        """Reflected, turned, moved by half, left out: each picture must be judged as wrong."""
        page = self.page_of("images", [{}])
        box = next(box_of(e) for e in layout_of("images").elements if "rgb8.png" in e.get("file", ""))
        where = box.pixels(DPI)
        picture = page.crop(where)
        planted = {
            "reflected": picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
            "upside down": picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
            "turned": picture.rotate(180),
            "moved": picture.crop((picture.width // 2, 0, picture.width * 3 // 2, picture.height)),
            "left out": Image.new("RGB", picture.size, WHITE),
        }
        for name, wrong in planted.items():
            spoilt = page.copy()
            spoilt.paste(wrong, where[:2])
            try:
                expect_quarters(spoilt, box, QUARTERS, PNG_TOLERANCE, name)
            except AssertionError:
                continue
            raise AssertionError(f"{name}: not seen")

    # ---- turns ----

    def images_turn_clockwise(self):
        page = self.page_of("turns", [{}])
        # Of a picture of 30 by 20, or 13.3 by 20 where it stands upright in its box of 40 by 20.
        turned = [
            (Box(10, 75, 30, 20), [RED, GREEN, BLUE, WHITE]),
            (Box(68.3, 75, 13.3, 20), [BLUE, RED, WHITE, GREEN]),
            (Box(110, 75, 30, 20), [WHITE, BLUE, GREEN, RED]),
            (Box(158.3, 75, 13.3, 20), [GREEN, WHITE, RED, BLUE]),
        ]
        for number, (box, expected) in enumerate(turned):
            expect_quarters(page, box, expected, PNG_TOLERANCE, f"{90 * number} degrees")

    def texts_turn_as_pictures_do(self):
        sheet = self.sheet("turns", [{"holder": "Åsa Quigley"}])
        layout = sheet.layouts["turns"]
        crops = [sheet.crop("turns", 1, box, 288) for box in layout.texts("ticket.holder")]
        for number, crop in enumerate(crops):
            assert crop.getextrema()[0] < 64, f"{90 * number} degrees: no ink"
        assert similar(crops[2].rotate(180), crops[0])
        assert similar(crops[3].rotate(180), crops[1])
        assert not similar(crops[2], crops[0])
        # Read from the side where the head lies, the first letter is on the left and on top.
        upright = crops[1].rotate(90, expand=True)
        ink = upright.point(lambda v: 255 * (v < 128)).getbbox()
        assert ink[0] < 16 and ink[1] < 64, f"the ink of 90 degrees is at {ink}"

    # ---- from right to left ----

    def mirrored_layouts_show_nothing_reflected(self, locale):
        sheet = self.sheet("images", [{"gate": "3"}], locale=locale)
        page = page_images(sheet.pdf, DPI, is_grey=False)[0]
        assert not list(sheet.symbol_faults(DPI)), list(sheet.symbol_faults(DPI))
        plate = sheet.box("images", 1, sheet.layouts["images"].qr())
        assert plate.x == 150, plate
        for element in sheet.layouts["images"].elements:
            if element["type"] == "image" and element["y_mm"] < 60:
                name = Path(element["file"]).name
                tolerance = JPEG_TOLERANCE if name.endswith("jpg") else PNG_TOLERANCE
                box = sheet.box("images", 1, box_of(element))
                expect_quarters(page, box, PICTURES.get(name, QUARTERS), tolerance, name)
        expect_quarters(page, Box(172, 60, 18, 12), QUARTERS, 1, "contained at the start: right")
        expect_quarters(page, Box(122, 60, 18, 12), QUARTERS, 1, "contained at the end: left")

    def mirrored_texts_begin_at_the_right(self, locale):
        sheet = self.sheet("turns", [{}], locale=locale)
        ids = [word for word in sheet.words()[0] if word.text == "T-0001"]
        assert len(ids) == 1 and abs(ids[0].box.x + ids[0].box.w - 140) < 0.5, ids
        page = page_images(sheet.pdf, DPI, is_grey=False)[0]
        turned = [
            (Box(160, 75, 30, 20), [RED, GREEN, BLUE, WHITE]),
            (Box(118.3, 75, 13.3, 20), [GREEN, WHITE, RED, BLUE]),
            (Box(60, 75, 30, 20), [WHITE, BLUE, GREEN, RED]),
            (Box(28.3, 75, 13.3, 20), [BLUE, RED, WHITE, GREEN]),
        ]
        for number, (box, expected) in enumerate(turned):
            expect_quarters(page, box, expected, PNG_TOLERANCE, f"mirror of {90 * number} degrees")

    def mirrored_sheets_keep_the_order_of_cells(self):
        sheet = self.sheet("sheet-4up", [{}] * 3, locale="he")
        self.printed.remove(sheet.pdf)
        assert not list(sheet.symbol_faults(DPI)), list(sheet.symbol_faults(DPI))

    # ---- all that was printed ----

    def documents_are_right(self):
        pdfs = sorted(set(self.printed))
        faults = [line for pdf in pdfs for line in qpdf_faults(pdf) + font_faults(pdf)]
        assert not faults, faults[:5]
        faults = preflight_faults(*pdfs)
        assert not faults, faults[:5]

    # ----

    def pages_of(self, name, tickets):
        sheet = self.sheet(name, tickets)
        return page_images(sheet.pdf, DPI, is_grey=False)

    def page_of(self, name, tickets):
        return self.pages_of(name, tickets)[0]

    def run(self):
        check = self.report.run
        check("five tickets fill a sheet of four and begin one", self.sheets_are_filled_in_order)
        check("cells without a ticket are white", self.nothing_is_in_the_cells_that_are_left)
        check("cut marks lie beyond the tickets", self.cut_marks_lie_beyond_the_tickets)
        check("another layout begins a sheet, as pages say", self.a_layout_change_begins_a_sheet)
        check("sheets are the same however cut", self.the_bytes_are_the_same_however_cut)
        check("images show their samples", self.images_show_their_samples)
        check("planted pictures are seen", self.planted_pictures_are_seen)
        check("images come into their boxes", self.images_come_into_their_boxes)
        check("an image may hang on a member", self.an_image_may_hang_on_a_member)
        check("images are embedded once", self.images_are_embedded_once_and_where_they_are_used)
        check("images turn clockwise", self.images_turn_clockwise)
        check("texts turn as pictures do", self.texts_turn_as_pictures_do)
        for locale in ("he", "ar-EG"):
            name = f"{locale}: boxes are mirrored, pictures and symbols are not"
            check(name, self.mirrored_layouts_show_nothing_reflected, locale)
            name = f"{locale}: texts begin at the right, and turn the other way"
            check(name, self.mirrored_texts_begin_at_the_right, locale)
        check("mirrored sheets keep their order", self.mirrored_sheets_keep_the_order_of_cells)
        check("qpdf and preflight find nothing", self.documents_are_right)
        return self.report.status


# ---- pixels ----


def pixel(page, x_mm, y_mm, dpi=DPI):
    return page.getpixel((int(x_mm * dpi / MM_PER_INCH), int(y_mm * dpi / MM_PER_INCH)))


def is_near(color, expected, tolerance):
    return all(abs(a - b) <= tolerance for a, b in zip(color, expected))


def is_dark(page, x_mm, y_mm, dpi):
    """Whether there is ink within a pixel or two of a point."""
    x, y = int(x_mm * dpi / MM_PER_INCH), int(y_mm * dpi / MM_PER_INCH)
    return page.crop((x - 2, y - 2, x + 3, y + 3)).getextrema()[0] < 128


def expect_quarters(page, box, expected, tolerance, name):
    """The middle of each quarter has its colour."""
    for number, color in enumerate(expected):
        x = box.x + box.w * (0.25 + 0.5 * (number % 2))
        y = box.y + box.h * (0.25 + 0.5 * (number // 2))
        shown = pixel(page, x, y)
        assert is_near(shown, color, tolerance), f"{name}, quarter {number}: {shown}, not {color}"


def similar(a, b):
    """But for the smoothing of edges, and for a pixel or two that a crop may be off."""
    width, height = min(a.width, b.width) - 8, min(a.height, b.height) - 8
    middle = b.crop((4, 4, 4 + width, 4 + height))
    moved = [a.crop((x, y, x + width, y + height)) for x in range(2, 7) for y in range(2, 7)]
    ink = sum(middle.histogram()[:128])
    return min(differing_pixels(each, middle) for each in moved) < ink / 8


def images_of_pdf(pdf):
    """Rows of pdfimages -list: page, number, type, width, height, colour, ..., encoding, ..., object."""
    done = subprocess.run(["pdfimages", "-list", pdf], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()[2:]]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        return Drawing(arguments[0], Path(folder)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
