"""What a page says and shows, box by box: the press as a program, its layouts, words and pixels.

    with tempfile.TemporaryDirectory() as folder:
        press = Press(program, folder)
        sheet = press.sheet({"a": {"holder": "Nguyễn"}, "b": {"holder": "Nguyen"}})
        differ = sheet.pixels("classic", "a", "ticket.holder") != sheet.pixels(...)

A sheet is one document with each of its tickets in each of the layouts, so that one start of the
program and one of each judge serve many checks. Boxes are in mm from the page's top left corner, as
in layouts.
"""

import datetime
import functools
import html
import json
import os
import re
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops, ImageDraw

from check_document import JOBS, run, symbols_read
from service_under_test import FIXTURES, RING, ROOT, Report  # noqa: F401

sys.path.insert(0, str(FIXTURES))
import make_token_vectors  # noqa: E402

LAYOUTS = ROOT / "service" / "data" / "layouts"
RENDER_TIMEOUT_S = 120
MM_PER_INCH = 25.4
PT_PER_MM = 72 / MM_PER_INCH
RIGHT_TO_LEFT = {"ar", "fa", "he", "ur"}
KEY_ID = 2  # of the test ring: the newest
PIXEL_DIFFERENCE = 48  # of 255: less is the smoothing of an edge
QUIET_MODULES = 4
OVERLAP_EM_MAX = 0.3  # of two glyphs: kerning in any of the faces is less
LINE_EM_MIN = 0.6  # between two baselines of which one's letters could touch the other's

EVENT = {
    "id": "evt-1",
    "name": "Spring Fair",
    "venue": "Hall 2",
    "starts_at": "2027-03-12T19:30:00+01:00",
    "timezone": "Europe/Berlin",
}
TICKET = {"holder": "Ana Li", "type": "General", "price": {"amount": 2500, "currency": "EUR"}}

# ISO/IEC 18004 table 7: bytes that versions 1, 2, ... hold in byte mode.
QR_BYTES = {
    "L": [17, 32, 53, 78, 106, 134, 154, 192, 230],
    "M": [14, 26, 42, 62, 84, 106, 122, 152, 180, 213],
    "Q": [11, 20, 32, 46, 60, 74, 86, 108, 130, 151, 177, 203, 241],
    "H": [7, 14, 24, 34, 44, 58, 64, 84, 98, 119, 137, 155, 177, 194, 220],
}


class Box(NamedTuple):
    x: float
    y: float
    w: float
    h: float

    def moved(self, x, y):
        return Box(self.x + x, self.y + y, self.w, self.h)

    def grown(self, by):
        return Box(self.x - by, self.y - by, self.w + 2 * by, self.h + 2 * by)

    def mirrored(self, width):
        return self._replace(x=width - self.x - self.w)

    def holds(self, x, y):
        return self.x <= x <= self.x + self.w and self.y <= y <= self.y + self.h

    def overlap(self, other):
        """How far two boxes reach into each other, across and down; 0 when they do not."""
        w = min(self.x + self.w, other.x + other.w) - max(self.x, other.x)
        h = min(self.y + self.h, other.y + other.h) - max(self.y, other.y)
        return (w, h) if w > 0 and h > 0 else (0, 0)

    def pixels(self, dpi):
        """The box as PIL crops: every pixel that it touches."""
        scale = dpi / MM_PER_INCH
        left, top = int(self.x * scale), int(self.y * scale)
        return (
            left,
            top,
            -int(-(self.x + self.w) * scale) + 1,
            -int(-(self.y + self.h) * scale) + 1,
        )


# ---- layouts ----


class Layout:
    """A layout as its file has it: where its texts and its symbol stand."""

    def __init__(self, path):
        self.data = json.loads(Path(path).read_text(encoding="utf-8"))
        self.name = self.data["name"]
        self.page_width, self.page_height = self.data["page_w_mm"], self.data["page_h_mm"]
        ticket = self.data.get("n_up", {})
        self.width = ticket.get("ticket_w_mm", self.page_width)
        self.height = ticket.get("ticket_h_mm", self.page_height)
        self.elements = self.data["elements"]

    def cells(self):
        """Where the tickets of a page stand, row by row: the corner of each."""
        n_up = self.data.get("n_up")
        if n_up is None:
            return [(0, 0)]
        across = places(self.page_width, n_up, "x", "w", n_up["columns"])
        down = places(self.page_height, n_up, "y", "h", n_up["rows"])
        return [(x, y) for y in down for x in across]

    def placed(self, box, cell, is_mirrored):
        """Where a box of the layout stands on the page, for the ticket in a cell."""
        return (box.mirrored(self.width) if is_mirrored else box).moved(*cell)

    def texts(self, field=None):
        """The boxes of the texts that show a field, or of all."""
        wanted = "" if field is None else "{" + field + "}"
        texts = [each for each in self.elements if each["type"] == "text"]
        return [box_of(each) for each in texts if wanted in each["content"]]

    def has(self, field):
        return bool(self.texts(field))

    def qr(self):
        """The white plate: the symbol with its quiet zone."""
        return box_of(self.qr_element())

    def qr_element(self):
        return next(each for each in self.elements if each["type"] == "qr")

    def modules(self, token):
        """On a side of the smallest symbol that holds a token."""
        sizes = QR_BYTES[self.qr_element().get("level", "M")]
        return 17 + 4 * next(v for v, size in enumerate(sizes, 1) if len(token) <= size)


def places(page_mm, n_up, axis, side, count):
    """Where the columns or rows of a sheet begin."""
    step = n_up[f"ticket_{side}_mm"] + n_up.get(f"gap_{axis}_mm", 0)
    free = page_mm - step * count + n_up.get(f"gap_{axis}_mm", 0)
    margin = n_up.get(f"margin_{axis}_mm", free / 2)
    return [margin + number * step for number in range(count)]


def box_of(element):
    if element["type"] == "qr":
        return Box(element["x_mm"], element["y_mm"], element["side_mm"], element["side_mm"])
    return Box(*(element[f"{name}_mm"] for name in "xywh"))


def built_in_layouts(folder=LAYOUTS):
    """By name, in the order of their names."""
    layouts = [Layout(path) for path in sorted(folder.glob("*.json"))]
    return {layout.name: layout for layout in layouts}


# ---- pages ----


def page_images(pdf, dpi, first=1, last=None, box=None, is_grey=True):
    """A range of pages, or a box of each, as poppler draws them."""
    command = ["pdftoppm", "-q", "-r", dpi, "-f", first]
    command += ["-gray"] if is_grey else []
    command += ["-l", last] if last is not None else []
    if box is not None:
        left, top, right, bottom = box.pixels(dpi)
        command += ["-x", left, "-y", top, "-W", right - left, "-H", bottom - top]
    done = subprocess.run(
        [str(word) for word in [*command, pdf]],
        capture_output=True,
        timeout=RENDER_TIMEOUT_S,
        check=True,
    )
    return images_of(done.stdout)


def images_of(data):
    """The images of concatenated PGM or PPM files, of a byte a sample."""
    images, at = [], 0
    while at < len(data):
        header = re.match(rb"(P5|P6)\s+(\d+)\s+(\d+)\s+255\s", data[at : at + 64])
        mode, size = {b"P5": "L", b"P6": "RGB"}[header[1]], (int(header[2]), int(header[3]))
        at += len(header[0])
        end = at + size[0] * size[1] * len(mode)
        images.append(Image.frombytes(mode, size, data[at:end]))
        at = end
    return images


def by_ranges(pages, function, *arguments):
    """What a function finds for each page, given ranges of pages, with all cores."""
    step = max(1, -(-pages // JOBS))
    with ThreadPoolExecutor(JOBS) as pool:
        parts = pool.map(
            lambda first: function(*arguments, first, min(first + step - 1, pages)),
            range(1, pages + 1, step),
        )
        return [page for part in parts for page in part]


class Word(NamedTuple):
    text: str
    box: Box  # its letters' advances by the face's ascent and descent


def page_words(pdf, first, last):
    """The words of each page of a range."""
    command = ["pdftotext", "-bbox", "-enc", "UTF-8", "-f", first, "-l", last, pdf, "-"]
    found = run(command).stdout
    pattern = r'<word xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax="(.+?)">(.*?)</word>'
    pages = []
    for page in found.split("<page ")[1:]:
        words = []
        for *edges, text in re.findall(pattern, page, re.S):
            left, top, right, bottom = (float(edge) / PT_PER_MM for edge in edges)
            words.append(Word(html.unescape(text), Box(left, top, right - left, bottom - top)))
        pages.append(words)
    return pages


class Glyph(NamedTuple):
    """One that moves the pen, upright, by what the page's content says of it."""

    text: str
    x: float  # in pt, as the rest
    baseline: float  # from the page's top, as MuPDF sees it
    width: float
    size: float


def page_glyphs(pdf, first, last):
    """The glyphs of each page of a range: no reader's idea of words comes between."""
    trace = run(["mutool", "trace", pdf, f"{first}-{last}"]).stdout
    pages = [[] for _ in range(first, last + 1)]
    page, right, down, size = [], 0.0, 0.0, 0.0
    for line in TRACE_LINE.finditer(trace):
        number, moved, scale, text, x, y, advance = line.groups()
        if number:
            page = pages[int(number) - first]
        elif moved:
            right, down = (float(part) for part in moved.split())
        elif scale:
            size = float(scale)
        elif advance != "0" and not all(unicodedata.combining(c) for c in html.unescape(text)):
            at = right + float(x), down - float(y)
            page.append(Glyph(html.unescape(text), *at, float(advance) * size, size))
    return pages


TRACE_LINE = re.compile(
    r'<page number="(\d+)"'
    r'|<fill_text .*transform="1 0 0 -1 (\S+ \S+)"'
    r'|<span .*trm="(\S+) 0 0 \S+"'
    r'|<g unicode="(.*?)" .*x="(.*?)" y="(.*?)" adv="(.*?)"/>'
)


def cropped_texts(pdf, box, first, last):
    """What each page of a range says in a box."""
    dpi = 288
    left, top, right, bottom = box.pixels(dpi)
    area = ["-x", left, "-y", top, "-W", right - left, "-H", bottom - top]
    command = ["pdftotext", "-enc", "UTF-8", "-r", dpi, "-f", first, "-l", last, *area, pdf, "-"]
    return run(command).stdout.split("\f")


BIDI_CONTROLS = dict.fromkeys(
    map(ord, "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)


def bare(text):
    """A text as extraction can be compared: no white space, and no marks of direction."""
    return "".join(text.translate(BIDI_CONTROLS).split())


def expected(text):
    """What a page must say of a text, as bare() gives it."""
    return bare(unicodedata.normalize("NFC", text))


UNDRESSED = {"Ł": "L", "ł": "l", "ı": "i", "đ": "d"}  # letters that have no decomposition


def accents_dropped(text):
    """The text with one accent less, for each of its accents."""
    parts = unicodedata.normalize("NFD", text)
    for i, part in enumerate(parts):
        if unicodedata.combining(part) or unicodedata.category(part) in ("Mn", "Mc"):
            yield unicodedata.normalize("NFC", parts[:i] + parts[i + 1 :])
        elif part in UNDRESSED:
            yield unicodedata.normalize("NFC", parts[:i] + UNDRESSED[part] + parts[i + 1 :])


# ---- checks: each gives what is wrong ----


def overlap_faults(words):
    """BOX: words of a page that lie over each other."""
    faults = []
    # A word's box reaches from line to line, and over the next in Arabic; letters fill its middle.
    inner = [
        (word, word.box._replace(y=word.box.y + word.box.h / 4, h=word.box.h / 2)) for word in words
    ]
    inner.sort(key=lambda each: each[1].y)
    for i, (word, box) in enumerate(inner):
        for other, other_box in inner[i + 1 :]:
            if other_box.y > box.y + box.h:
                break
            # Poppler takes an Arabic letter that joins nothing, and is kerned, for a word.
            kerning = min(word.box.h, other.box.h) / 20
            if box.overlap(other_box)[0] > kerning:
                faults.append(f"{word.text!r} lies over {other.text!r}")
    return faults


def glyph_faults(glyphs):
    """BOX, of single glyphs: those that begin well before the one to their left has ended, and lines
    that lie in each other."""
    rows = {}
    for glyph in glyphs:
        rows.setdefault(round(glyph.baseline, 2), []).append(glyph)
    for row in rows.values():
        row.sort(key=lambda glyph: glyph.x)
        yield from row_faults(row)
    baselines = sorted(rows)
    for upper, lower in zip(baselines, baselines[1:]):
        for a in rows[upper]:
            near = [b for b in rows[lower] if lower - upper < LINE_EM_MIN * min(a.size, b.size)]
            yield from (f"{a} lies in the line of {b}" for b in near if is_over(a, b))


def row_faults(row):
    """Glyphs of one baseline, from left to right, that are set over each other."""
    for left, right in zip(row, row[1:]):
        if is_over(left, right):
            yield f"{left} lies over {right}"


def is_over(left, right):
    """Whether two glyphs share more than kerning or a ligature's parts do."""
    reach = min(left.x + left.width, right.x + right.width) - max(left.x, right.x)
    return reach > OVERLAP_EM_MAX * min(left.size, right.size)


def place_faults(words, layout, margin_mm=0.0, is_mirrored=False):
    """BOX: words of a page that lie in no text's box, in the margin or on a symbol."""
    texts, symbols = layout_boxes(layout, is_mirrored)
    page = Box(0, 0, layout.page_width, layout.page_height).grown(-margin_mm)
    for word in words:
        x, y = word.box.x + word.box.w / 2, word.box.y + word.box.h / 2
        if not any(box.grown(0.1).holds(x, y) for box in texts):
            yield f"{word.text!r} lies in no text's box"
        if not (page.holds(word.box.x, y) and page.holds(word.box.x + word.box.w, y)):
            yield f"{word.text!r} reaches over the margin"
        if any(
            word.box.overlap(symbol)[0] > 0.1
            for symbol in symbols
            if symbol.grown(-0.1).holds(x, y)
        ):
            yield f"{word.text!r} lies on the QR symbol"


@functools.cache
def layout_boxes(layout, is_mirrored=False):
    """All boxes of texts on a page, and those of the symbols."""

    def on_page(boxes):
        return [layout.placed(box, cell, is_mirrored) for cell in layout.cells() for box in boxes]

    return on_page(layout.texts()), on_page([layout.qr()])


def ink_outside(image, background, boxes, dpi, tolerance_px=1):
    """BOX: the count of pixels that differ from the background, yet lie in no box."""
    difference = ImageChops.difference(image, background)
    outside = difference.point(lambda v: 255 * (v >= PIXEL_DIFFERENCE))
    draw = ImageDraw.Draw(outside)
    for box in boxes:
        left, top, right, bottom = box.pixels(dpi)
        left, top = left - tolerance_px, top - tolerance_px
        draw.rectangle((left, top, right + tolerance_px - 1, bottom + tolerance_px - 1), fill=0)
    return outside.histogram()[255]


def differing_pixels(a, b):
    """PIX: of two images of one size; the pixels of the larger when they are not."""
    if a.size != b.size:
        return max(a.width * a.height, b.width * b.height)
    counts = ImageChops.difference(a, b).histogram()
    return sum(counts[PIXEL_DIFFERENCE:])


def token_of(event, ticket):
    """What the symbol must hold, written from the token's definition."""
    minutes = {}
    for name in ("valid_from", "valid_until"):
        if name in ticket:
            minutes[name] = minutes_of(ticket[name])
    body = make_token_vectors.body(
        event["id"], ticket["id"], KEY_ID, ticket.get("issue", 0), **minutes
    )
    return make_token_vectors.token(body, KEY_ID, event["id"])


def overlaid(pdf, other):
    """A document with another's pages over its own: what no layout can be made to print."""
    both = pdf.with_name(f"{pdf.stem}-{other.stem}.pdf")
    done = run(["qpdf", pdf, "--overlay", other, "--", both])
    if done.returncode != 0:
        raise ValueError(f"qpdf: {done.stderr}")
    return both


def minutes_of(time):
    """Minutes since 2020 of an RFC 3339 time."""
    when = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    return int(when.timestamp() - 1577836800) // 60


# ---- the press ----


class Refused(Exception):
    """The program printed no document; `lines` is what it said."""

    def __init__(self, lines):
        super().__init__("\n".join(lines[:5]))
        self.lines = lines


class Press:
    """`ticketpress render` with the test ring, and a folder for what it prints."""

    def __init__(self, program, folder):
        self.program = Path(program).resolve()
        self.folder = Path(folder)
        self.layouts = built_in_layouts()
        self.ring = self.folder / "ring.json"
        self.ring.touch(mode=0o600)
        self.ring.write_bytes(RING.read_bytes())
        self.documents = []

    def print(self, batch, *options, env=None):
        """The path of a batch's document, and the lines that the program said."""
        pdf = self.folder / f"{len(self.documents)}.pdf"
        source = pdf.with_suffix(".json")
        source.write_text(json.dumps(batch), encoding="utf-8")
        command = [self.program, "render", "--signing-keys", self.ring, *options, source, "-o", pdf]
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **(env or {})},
            timeout=RENDER_TIMEOUT_S,
            check=False,
        )
        lines = done.stderr.splitlines()
        if done.returncode < 0:
            raise RuntimeError(f"the program ended by signal {-done.returncode}: {lines}")
        if done.returncode != 0:
            raise Refused(lines)
        self.documents.append(pdf)
        return pdf, lines

    def altered_layouts(self, folder, prefix, alter):
        """The built-in layouts under other names, each with its data altered by a function."""
        folder.mkdir()
        layouts = {}
        for layout in self.layouts.values():
            data = json.loads(json.dumps(layout.data))
            data["name"] = f"{prefix}-{layout.name}"
            alter(data)
            path = folder / f"{data['name']}.json"
            path.write_text(json.dumps(data), encoding="utf-8")
            layouts[data["name"]] = Layout(path)
        return layouts

    def refusal(self, batch):
        """What the program says to a batch that it must not print; [] when it prints it."""
        try:
            self.print(batch)
        except Refused as refused:
            return refused.lines
        return []

    def sheet(self, tickets, *options, event=None, layouts=None, env=None, **members):
        """One document of all tickets, by key, in all layouts."""
        layouts = self.layouts if layouts is None else layouts
        return Sheet(self, tickets, event or {}, layouts, options, env, members)


class Sheet:
    """A printed document of several tickets in several layouts. Their ids are numbered: T-{:04}."""

    def __init__(self, press, tickets, event, layouts, options, env, members):
        self.layouts = layouts
        self.keys = list(tickets)
        self.event = {name: v for name, v in {**EVENT, **event}.items() if v is not None}
        self.tickets = {}
        self.rendered = {}
        self.places = {}  # (layout's name, key): page from 1, and the cell's offset
        self.first_last = {}  # layout's name: its pages
        page = 0
        for layout in layouts.values():
            cells = layout.cells()
            for number, (key, changed) in enumerate(tickets.items()):
                ticket = {"id": "T-{:04}", **TICKET, **changed}
                ticket = {name: value for name, value in ticket.items() if value is not None}
                ticket["id"] = ticket["id"].format(len(self.tickets) + 1)
                self.tickets[layout.name, key] = {**ticket, "layout": layout.name}
                place = (page + number // len(cells) + 1, cells[number % len(cells)])
                self.places[layout.name, key] = place
            first, page = page + 1, page + -(-len(tickets) // len(cells))
            self.first_last[layout.name] = (first, page)
        self.pages = page
        self.is_mirrored = members.get("locale", "en-GB").split("-")[0] in RIGHT_TO_LEFT
        self.batch = {"event": self.event, "tickets": list(self.tickets.values()), **members}
        self.pdf, self.said = press.print(self.batch, *options, env=env)
        self.folder = press.folder

    def box(self, name, key, box):
        """Where a box of a layout stands for a ticket."""
        return self.layouts[name].placed(box, self.places[name, key][1], self.is_mirrored)

    def images(self, dpi):
        """All pages; from then on crops at that resolution are cut from these."""
        if dpi not in self.rendered:
            self.rendered[dpi] = by_ranges(self.pages, page_images, self.pdf, dpi)
        return self.rendered[dpi]

    @functools.cache
    def words(self):
        return by_ranges(self.pages, page_words, self.pdf)

    def glyph_faults(self):
        """BOX, of single glyphs, over all pages."""
        pages = by_ranges(self.pages, page_glyphs, self.pdf)
        for number, glyphs in enumerate(pages, 1):
            for fault in glyph_faults(glyphs):
                yield f"page {number}: {fault}"

    def crop(self, name, key, box, dpi, is_grey=True):
        """What a ticket shows in a box of its layout."""
        first, last = self.first_last[name]
        if dpi in self.rendered and is_grey:
            page = self.rendered[dpi][self.places[name, key][0] - 1]
            return page.crop(self.box(name, key, box).pixels(dpi))
        crops = self.crops(dpi, first, last, self.box(name, key, box), is_grey)
        return crops[self.places[name, key][0] - first]

    @functools.cache
    def crops(self, dpi, first, last, box, is_grey):
        return page_images(self.pdf, dpi, first, last, box, is_grey)

    def pixels(self, name, key, field, dpi=150):
        """The text area of a field: of each of its boxes an image."""
        return [self.crop(name, key, box, dpi) for box in self.layouts[name].texts(field)]

    def difference(self, name, a, b, field, other=None):
        """PIX: pixels that differ between two tickets' text areas; b may be in another sheet."""
        pairs = zip(self.pixels(name, a, field), (other or self).pixels(name, b, field))
        return sum(differing_pixels(*pair) for pair in pairs)

    def text(self, name, key, field):
        """TXT: what a ticket says in a field's boxes, without white space."""
        page, _ = self.places[name, key]
        first, last = self.first_last[name]
        boxes = [self.box(name, key, box) for box in self.layouts[name].texts(field)]
        return "".join(bare(self.cropped(box, first, last)[page - first]) for box in boxes)

    @functools.cache
    def cropped(self, box, first, last):
        return cropped_texts(self.pdf, box, first, last)

    @functools.cache
    def symbols(self, dpi):
        """QR: (layout's name, key) -> texts of the symbols in the ticket's part of the page."""
        images = {}
        for name, key in self.places:
            plate = self.layouts[name].qr().grown(1)
            path = self.folder / f"symbol-{dpi}-{len(images)}.pgm"
            self.crop(name, key, plate, dpi).save(path)
            images[path] = (name, key)
        return {images[path]: texts for path, texts in symbols_read(list(images)).items()}

    def symbol_faults(self, dpi, names=None):
        """QR: tickets whose symbol does not read as their token, byte for byte."""
        for place, texts in self.symbols(dpi).items():
            expected = token_of(self.event, self.tickets[place])
            if texts != [expected] and (names is None or place[0] in names):
                yield f"{place}: {texts} instead of {expected}"

    def box_faults(self, margins=None):
        """BOX: over all pages."""
        for name, (first, last) in self.first_last.items():
            for page in range(first, last + 1):
                words = self.words()[page - 1]
                margin = (margins or {}).get(name, 0.0)
                faults = place_faults(words, self.layouts[name], margin, self.is_mirrored)
                for fault in [*overlap_faults(words), *faults]:
                    yield f"{name}, page {page}: {fault}"
