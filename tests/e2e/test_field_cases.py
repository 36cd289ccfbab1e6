#!/usr/bin/python3
"""What went wrong for others who print tickets comes out right here, in every built-in layout.

usage: test_field_cases.py PROGRAM

The cases H01 to H22 and H31 of the list of cases from the field, each by its own check; the sizes
of H30 are in test_sizes.py. What each check means is at its function in document_checks.py. That
every check can fail is shown at the end, on documents with planted faults.
"""

import copy
import json
import re
import string
import sys
import tempfile
from pathlib import Path

from check_document import claims_of, font_faults, preflight_faults, qpdf_faults, run
from document_checks import (
    EVENT,
    QUIET_MODULES,
    Press,
    Report,
    accents_dropped,
    expected,
    overlaid,
    overlap_faults,
    page_words,
    place_faults,
    token_of,
)
from surroundings import german_made_in, seen_by_a_program

VIETNAMESE, POLISH, HUNGARIAN, TURKISH = "Nguyễn Thị Ánh", "Łucja Żółć", "Őszi Űr", "İpek Işık"
ACCENT_PAIRS = [
    ("Nguyễn", "Nguyen"),
    ("Nguyễn", "Nguyên"),
    ("Łucja", "Lucja"),
    ("Ő", "O"),
    ("Işık", "Isik"),
    ("Ipek Işık", "İpek Işık"),
]
UNKNOWN = "Ana\ue123"  # for private use
JAPANESE, OTHER_JAPANESE = "山田花子", "川本太郎"
DECOMPOSED, COMPOSED = "Rene\u0301 Du\u0308rr", "René Dürr"
ARABIC, ARABIC_APART = "محمد علي", "م ح م د ع ل ي"
SEPARATED, PLAIN = "Open\u2028Air\r\nNight\tOne", "Open Air Night One"
MARKUP = 'Rock & Roll <Live> "\'90s" (50% \\ off)'
LONG_NAME = ("The Extraordinarily Long Winter Evenings of Chamber Music " * 5)[:260].strip()
LONG_HOLDER = ("Maria Wilhelmina Charlotte " * 5)[:120].strip()
UNBROKEN_NAME, UNBROKEN_HOLDER = "W" * 300, "M" * 200
WORDS = "Extraordinarily long and winding words without end " * 40
LONGEST_EVENT = {
    "name": WORDS[:300].strip(),
    "venue": WORDS[:300].strip(),
    "address": WORDS[:300].strip(),
    "organizer": WORDS[:200].strip(),
    "notes": WORDS[:2000].strip(),
    "doors_at": "2027-03-12T18:45:00+01:00",
    "timezone": "America/Argentina/Buenos_Aires",
}
LONGEST = {
    "id": "{:064}",
    "order_id": "O" * 64,
    "holder": WORDS[:200].strip(),
    "type": WORDS[:100].strip(),
    "seat": {name: WORDS[:50].strip() for name in ("section", "row", "number")},
    "gate": WORDS[:50].strip(),
    "price": {"amount": 10**12, "currency": "KWD"},
}
LOCALES = ["en-GB", "de-DE", "ru-RU", "ar-EG", "th-TH", "ja-JP"]
SAFE_MARGIN_MM = 12
SAFE_PAGES = {"a4": "595.276 x 841.89", "letter": "612 x 792", "a4-4up": "595.276 x 841.89"}
LATIN_FONT = "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"
INVENTED = {"Guest", "null", "NULL", "None", "undefined", "(null)", "NaN"}
OPTIONAL_LABELS = {"Price", "Section", "Row", "Seat", "Gate", "Order", "Doors"}
MODULE_MM_MIN = 0.6
ALPHABET = string.ascii_letters + string.digits + "-_"
SYMBOL_DPI = 300  # where the symbol is measured
EDGE_PX = 3  # of a plate, where what surrounds it may shine through
HAIRLINE_DPI = (97, 133, 150, 211)
DARK, LIGHT = 96, 160  # of 255

NAMES = [VIETNAMESE, POLISH, HUNGARIAN, TURKISH]
HOLDERS = [*NAMES, JAPANESE, OTHER_JAPANESE, DECOMPOSED, COMPOSED, ARABIC, ARABIC_APART]


def holders():
    names = list(HOLDERS)
    for pair in ACCENT_PAIRS:
        names += pair
    for name in NAMES:
        names += accents_dropped(name)
    return dict.fromkeys(names)


def darken(data):
    """A dark box over the whole of a layout's page, below all that stands on it."""
    box = {"type": "box", "x_mm": 0, "y_mm": 0, "fill": "#10151f"}
    ticket = data.get("n_up", {})
    box["w_mm"] = ticket.get("ticket_w_mm", data["page_w_mm"])
    box["h_mm"] = ticket.get("ticket_h_mm", data["page_h_mm"])
    data["elements"] = [box] + [each for each in data["elements"] if each["type"] != "box"]


NOT_EMBEDDED = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R
/Resources<</Font<</F 5 0 R>>>>>> endobj
4 0 obj <</Length 24>> stream
BT /F 9 Tf (Ana) Tj ET
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Size 6/Root 1 0 R>>
"""


# ---- symbols as pixels ----


class Symbol:
    """The modules of a QR symbol as they are drawn, measured."""

    def __init__(self, plate, dpi):
        self.plate = plate
        inner = plate.point(lambda v: 255 * (v < 128))
        inner = inner.crop((EDGE_PX, EDGE_PX, plate.width - EDGE_PX, plate.height - EDGE_PX))
        self.ink = tuple(edge + EDGE_PX for edge in inner.getbbox())  # of what is dark
        left, top, right, bottom = self.ink
        self.side_px = right - left
        row = plate.crop((left, top + 1, right, top + 2)).tobytes()
        # The finder pattern, seven dark modules, begins the first row.
        finder_px = next(i for i, v in enumerate(row) if v >= 128)
        self.modules = round(self.side_px / (finder_px / 7))
        self.module_mm = self.side_px / self.modules / dpi * 25.4
        self.is_square = abs((right - left) - (bottom - top)) <= 1

    def light_in_finders(self):
        """Pixels that are not dark in the dark squares of three by three modules."""
        left, top, _, _ = self.ink
        module_px = self.side_px / self.modules
        count = 0
        far = self.modules - 7
        for column, row in ((0, 0), (far, 0), (0, far)):
            edges = [left + (column + 2) * module_px, top + (row + 2) * module_px]
            edges += [edges[0] + 3 * module_px, edges[1] + 3 * module_px]
            inner = (int(edges[0]) + 2, int(edges[1]) + 2, int(edges[2]) - 1, int(edges[3]) - 1)
            count += sum(self.plate.crop(inner).histogram()[DARK:])
        return count

    def quiet_faults(self):
        """Pixels of the quiet zone, four modules around the symbol, that are not white."""
        left, top, right, bottom = self.ink
        reach = int(QUIET_MODULES * self.side_px / self.modules) - EDGE_PX + 1
        zone = self.plate.crop((left - reach, top - reach, right + reach, bottom + reach))
        zone.paste(255, (reach - 1, reach - 1, reach + right - left + 1, reach + bottom - top + 1))
        return sum(zone.histogram()[:255])


# ---- cases ----


class Cases:
    """The cases, by the sheets that they share."""

    def __init__(self, program, folder):
        self.press = Press(program, folder)
        self.report = Report()
        self.folder = folder
        self.sheets = {}

    def run(self):
        names = [name for name in dir(self) if re.fullmatch(r"h\d\d", name)]
        planted = [name for name in dir(self) if name.startswith("planted_")]
        for name in [*names, "every_sheet", *planted]:
            self.report.run(f"{name}: each check was made", getattr(self, name))
        return self.report.status

    def check(self, case, is_right, details=""):
        self.report.check(case, is_right, details)

    def expect(self, case, faults):
        """A check that is right when there is nothing to say against it."""
        faults = list(faults)
        self.check(case, not faults, "\n".join(map(str, faults[:5])))

    def sheet(self, key, tickets=None, *options, **members):
        """The sheet of that key, printed when it is asked for first."""
        if key not in self.sheets:
            self.sheets[key] = self.press.sheet(tickets or {"a": {}}, *options, **members)
        return self.sheets[key]

    @property
    def holders(self):
        tickets = {name: {"holder": name} for name in holders()}
        return self.sheet("holders", tickets)

    def named(self, name):
        """A sheet of an event of that name."""
        return self.sheet(f"event {name}", event={"name": name})

    def layouts_with(self, *fields):
        for name, layout in self.press.layouts.items():
            if all(layout.has(field) for field in fields):
                yield name

    def expect_text(self, case, sheet, key, field, text):
        """TXT, in each layout that shows the field."""
        for name in self.layouts_with(field):
            said = sheet.text(name, key, field)
            self.check(f"{case}: TXT {text!r} ({name})", expected(text) in said, f"{said!r}")

    def expect_differ(self, case, sheet, a, b, field, other=None):
        """PIX a|b, in each layout that shows the field."""
        for name in self.layouts_with(field):
            count = sheet.difference(name, a, b, field, other)
            self.check(f"{case} ({name})", count > 0, "no difference")

    def expect_same(self, case, sheet, a, b, field, other=None):
        """PIX a=b, in each layout that shows the field."""
        for name in self.layouts_with(field):
            count = sheet.difference(name, a, b, field, other)
            self.check(f"{case} ({name})", count == 0, f"{count} pixels differ")

    # ---- text ----

    def h01(self):
        sheet = self.holders
        for name in NAMES:
            self.expect_text("H01", sheet, name, "ticket.holder", name)
            for layout in self.layouts_with("ticket.holder"):
                alike = [
                    dropped
                    for dropped in accents_dropped(name)
                    if sheet.difference(layout, name, dropped, "ticket.holder") == 0
                ]
                self.expect(f"H01: PIX {name} without one accent ({layout})", alike)
        for a, b in ACCENT_PAIRS:
            self.expect_differ(f"H01: PIX {a}|{b}", sheet, a, b, "ticket.holder")

    def h02(self):
        sheet = self.holders
        self.expect_text("H02", sheet, JAPANESE, "ticket.holder", JAPANESE)
        case = f"H02: PIX {JAPANESE}|{OTHER_JAPANESE}"
        self.expect_differ(case, sheet, JAPANESE, OTHER_JAPANESE, "ticket.holder")
        self.expect("H02: the default fonts have all these letters", sheet.said)
        missing = self.sheet("a letter missing", {"a": {"holder": UNKNOWN}, "b": {"holder": "Ana"}})
        self.seen("H02: a letter that no font has", missing.said, "missing_glyph: U+E123")
        case = "H02: PIX of a letter that no font has | nothing"
        self.expect_differ(case, missing, "a", "b", "ticket.holder")
        said = self.refusal(ticket={"holder": UNKNOWN}, on_missing_glyph="reject")
        self.seen("H02: the letter is refused where that is asked for", said, "U+E123")
        festival, other = self.named("春の祭り"), self.named("秋の踊り")
        self.expect_text("H02", festival, "a", "event.name", "春の祭り")
        self.expect_differ("H02: PIX 春の祭り|秋の踊り", festival, "a", "a", "event.name", other)

    def h03(self):
        sheet = self.holders
        case = "H03: PIX of a name in pieces = composed"
        self.expect_same(case, sheet, DECOMPOSED, COMPOSED, "ticket.holder")
        self.expect_text("H03", sheet, DECOMPOSED, "ticket.holder", COMPOSED)

    def h04(self):
        sheet = self.holders
        self.expect_text("H04", sheet, ARABIC, "ticket.holder", ARABIC)
        case = "H04: PIX of joined letters | the same apart"
        self.expect_differ(case, sheet, ARABIC, ARABIC_APART, "ticket.holder")
        for locale in ("en-GB", "ar-EG"):
            mixed = self.sheet(f"mixed {locale}", event={"name": "Expo 2027 معرض"}, locale=locale)
            self.expect_text(f"H04 {locale}", mixed, "a", "event.name", "Expo 2027 معرض")

    def h05(self):
        separated, plain = self.named(SEPARATED), self.named(PLAIN)
        self.expect_text("H05", separated, "a", "event.name", PLAIN)
        self.expect_same("H05: PIX = plain spaces", separated, "a", "a", "event.name", plain)
        for control in "\u0007\u001b\u0085":
            said = self.refusal(event={"name": f"Open{control}Air"})
            is_named = any("/event/name: bad_character" in line for line in said)
            self.check(f"H05: U+{ord(control):04X} is refused by its path", is_named, said)

    def h06(self):
        sheet = self.named(MARKUP)
        self.expect_text("H06", sheet, "a", "event.name", MARKUP)
        title = re.search(r"^Title:\s+(.*)$", run(["pdfinfo", sheet.pdf]).stdout, re.M)
        self.check("H06: the title as sent", title is not None and title[1] == MARKUP, title)
        self.expect("H06: CHK", qpdf_faults(sheet.pdf))

    # ---- layout ----

    def h07(self):
        sheets = {
            "words": (LONG_NAME, LONG_HOLDER),
            "unbroken": (UNBROKEN_NAME, UNBROKEN_HOLDER),
        }
        for key, (name, holder) in sheets.items():
            tickets = {"a": {"holder": holder}, "b": {"holder": holder}}
            sheet = self.sheet(f"long {key}", tickets, event={"name": name})
            self.expect_text(f"H07 {key}", sheet, "a", "event.name", name[:14])
            self.expect_text(f"H07 {key}", sheet, "a", "ticket.holder", holder[:10])
            self.expect(f"H07 {key}: BOX", sheet.box_faults())
            self.expect(f"H07 {key}: QR 100", sheet.symbol_faults(100))
            pages = f"{sheet.pages} pages"
            self.check(f"H07 {key}: one page a ticket", len(sheet.words()) == sheet.pages, pages)
            for layout in self.press.layouts:
                places = self.symbol(sheet, layout).ink, self.symbol(self.plain, layout).ink
                is_same = places[0] == places[1]
                self.check(f"H07 {key}: the symbol has not moved ({layout})", is_same, places)

        for locale in LOCALES:
            sheet = self.sheet(
                f"longest {locale}", {"a": LONGEST}, event=LONGEST_EVENT, locale=locale
            )
            self.expect(f"H07 all texts at their longest, {locale}: BOX", sheet.box_faults())
            self.expect(
                f"H07 all texts at their longest, {locale}: QR 100", sheet.symbol_faults(100)
            )

    def h08(self):
        for what, holder in (("empty", ""), ("blank", "   "), ("missing", None)):
            said = self.refusal(
                ticket={"holder": holder} if holder is not None else {}, drop="holder"
            )
            is_named = any("/tickets/0/holder: " in line for line in said)
            self.check(f"H08: a holder {what} is refused by its path", is_named, said)
        said = self.refusal(ticket={"holder": None})
        is_named = any("/tickets/0/holder: wrong_type" in line for line in said)
        self.check("H08: a holder null is refused by its path", is_named, said)
        sheet = self.sheet("bare", {"a": {"price": None}})
        for name in self.press.layouts:
            page, _ = sheet.places[name, "a"]
            words = {word.text.strip(":") for word in sheet.words()[page - 1]}
            odd = words & (INVENTED | OPTIONAL_LABELS)
            self.check(f"H08: nothing invented, no label alone ({name})", not odd, odd)

    def h09(self):
        sheet = self.plain
        for name in SAFE_PAGES.keys() & self.press.layouts.keys():
            first, last = sheet.first_last[name]
            info = run(["pdfinfo", "-f", first, "-l", last, sheet.pdf]).stdout
            sizes = set(re.findall(r"^Page +\d+ size: +([\d.]+ x [\d.]+) pts", info, re.M))
            self.check(f"H09: page size ({name})", sizes == {SAFE_PAGES[name]}, sizes)
            margins = {name: SAFE_MARGIN_MM}
            faults = [fault for fault in sheet.box_faults(margins) if fault.startswith(f"{name},")]
            self.expect(f"H09: BOX with 12 mm ({name})", faults)
            image = sheet.images(72)[first - 1]
            edge = int(SAFE_MARGIN_MM / 25.4 * 72) - 1
            image.paste(255, (edge, edge, image.width - edge, image.height - edge))
            self.check(
                f"H09: 12 mm without ink ({name})",
                image.histogram()[255] == image.width * image.height,
            )
        for name, layout in self.press.layouts.items():
            symbol = self.symbol(sheet, name)
            right = layout.qr().w * symbol.modules / (symbol.modules + 2 * QUIET_MODULES)
            side = symbol.side_px / SYMBOL_DPI * 25.4
            self.check(
                f"H09: the symbol has its size ({name})",
                abs(side / right - 1) < 0.02,
                (side, right),
            )

    # ---- the symbol ----

    @property
    def plain(self):
        return self.sheet("plain", {"a": {}, "b": {}, "c": {}, "d": {}})

    def symbol(self, sheet, name, key="a", dpi=SYMBOL_DPI):
        return Symbol(sheet.crop(name, key, self.press.layouts[name].qr(), dpi), dpi)

    def h10(self):
        folder = self.folder / "dark"
        dark = self.press.altered_layouts(folder, "dark", darken)
        sheet = self.sheet("dark", {"a": {}}, "--layouts", folder, layouts=dark)
        for name, layout in dark.items():
            plate = layout.qr()
            around = sheet.crop(name, "a", plate.grown(0.5), SYMBOL_DPI)
            corner = around.getpixel((0, 0))
            self.check(f"H10: control: the page is dark ({name})", corner < DARK, corner)
            count = Symbol(sheet.crop(name, "a", plate, SYMBOL_DPI), SYMBOL_DPI).quiet_faults()
            self.check(f"H10: a white plate ({name})", count == 0, f"{count} pixels")
        for dpi in (100, 72):
            self.expect(f"H10: QR {dpi} on dark pages", sheet.symbol_faults(dpi))
        for name in self.press.layouts:
            count = self.symbol(self.plain, name).quiet_faults()
            self.check(f"H10: a white plate ({name})", count == 0, f"{count} pixels")

    def h11(self):
        window = {"valid_from": "2027-03-12T17:00:00Z", "valid_until": "2027-03-13T02:00:00Z"}
        sizes = {
            60: (10, {"id": "{:013}"}),
            120: (10, {"id": "{:058}"}),
            200: (64, {"id": "{:064}"}),
            211: (64, {"id": "{:064}", **window}),
        }
        for length, (event_bytes, ticket) in sizes.items():
            sheet = self.sheet(f"token {length}", {"a": ticket}, event={"id": "E" * event_bytes})
            self.expect(f"H11: QR 100 with {length} characters", sheet.symbol_faults(100))
            for name, layout in self.press.layouts.items():
                token = token_of(sheet.event, sheet.tickets[name, "a"])
                assert len(token) == length, len(token)
                symbol = self.symbol(sheet, name)
                right = layout.modules(token)
                case = f"H11: the smallest version for {length} ({name})"
                self.check(case, symbol.modules == right, f"{symbol.modules}, not {right}")
                at_least = layout.qr_element().get("module_mm_min", MODULE_MM_MIN)
                case = f"H11: modules of {at_least} mm or more with {length} ({name})"
                self.check(case, symbol.module_mm >= at_least * 0.99, symbol.module_mm)

    def h12(self):
        for dpi in HAIRLINE_DPI:
            self.expect(f"H12: QR {dpi}", self.plain.symbol_faults(dpi))
            for name in self.press.layouts:
                count = self.symbol(self.plain, name, dpi=dpi).light_in_finders()
                self.check(f"H12: no hairline at {dpi} dpi ({name})", count == 0, f"{count} pixels")

    def h13(self):
        sheet = self.sheet("not ASCII", {"a": {"id": "ÄÖ-{}", "holder": "Noël Übel"}})
        self.expect("H13: QR 100", sheet.symbol_faults(100))
        for place, texts in sheet.symbols(100).items():
            is_ascii = all(set(text) <= set(ALPHABET) for text in texts)
            self.check(f"H13: the symbol is ASCII ({place[0]})", is_ascii, texts)
        claims = claims_of(
            self.press.program, self.press.ring, sum(sheet.symbols(100).values(), [])
        )
        ids = [claim.get("ticket_id") for claim in claims]
        right = [ticket["id"] for ticket in sheet.tickets.values()]
        self.check("H13: the tokens name the ids", ids == right, ids)

    def h14(self):
        for name, layout in self.press.layouts.items():
            ticket = self.plain.tickets[name, "a"]
            said = self.plain.text(name, "a", "ticket.id")
            self.check(f"H14: TXT has the ticket's id ({name})", ticket["id"] in said, said)
            plate = layout.qr()
            under = plate._replace(y=plate.y + plate.h - 1, h=15)
            is_under = any(box.overlap(under)[0] > 5 for box in layout.texts("ticket.id"))
            self.check(f"H14: the id stands under the symbol ({name})", is_under)

    def h15(self):
        tickets = {f"T-{i}": {"order_id": "ord-1"} for i in range(1, 5)}
        sheet = self.sheet("an order", tickets)
        self.expect("H15: each ticket has its own token", sheet.symbol_faults(100))
        tokens = sum(sheet.symbols(100).values(), [])
        self.check("H15: all tokens are different", len(set(tokens)) == len(sheet.tickets))

    # ---- tokens ----

    def h16(self):
        sheet = self.plain
        token = token_of(sheet.event, next(iter(sheet.tickets.values())))
        edited = {
            token[:i] + letter + token[i + 1 :]
            for i in range(len(token))
            for letter in ALPHABET
            if letter != token[i]
        }
        claims = claims_of(self.press.program, self.press.ring, [token, *sorted(edited)])
        self.check("H16: control: the token verifies", claims[0]["valid"] is True, claims[0])
        accepted = [claim for claim in claims[1:] if claim["valid"] is not False]
        self.expect(f"H16: all {len(edited)} edits of a character are refused", accepted)

    def h17(self):
        ring = json.loads(self.press.ring.read_text(encoding="utf-8"))
        first, second = ring["keys"]
        first.pop("verify_until")
        old = self.with_keys("old", [first])
        tokens = sum(old.sheet({"a": {}}).symbols(100).values(), [])
        new = self.with_keys("new", [first, second])
        new_tokens = sum(new.sheet({"a": {}}).symbols(100).values(), [])
        claims = claims_of(new.program, new.ring, tokens + new_tokens)
        right = [1] * len(tokens) + [2] * len(new_tokens)
        ids = [claim.get("key_id") if claim["valid"] else claim for claim in claims]
        self.check(
            "H17: old documents verify beside new ones, which have the new key", ids == right, ids
        )
        unknown = claims_of(old.program, old.ring, new_tokens)
        self.expect(
            "H17: a key that the ring does not have is refused", [c for c in unknown if c["valid"]]
        )

    def with_keys(self, name, keys):
        folder = self.folder / name
        folder.mkdir()
        press = Press(self.press.program, folder)
        press.ring.write_text(json.dumps({"keys": keys}), encoding="utf-8")
        return press

    # ---- money and time ----

    def h18(self):
        prices = {
            "JPY": (1500, "¥1,500"),
            "KRW": (1500, "₩1,500"),
            "EUR": (1500, "€15.00"),
            "KWD": (1234, "1.234"),
        }
        tickets = {
            code: {"price": {"amount": amount, "currency": code}}
            for code, (amount, _) in prices.items()
        }
        sheet = self.sheet("prices", tickets)
        for code, (_, text) in prices.items():
            self.expect_text("H18", sheet, code, "ticket.price", text)
        for name in self.layouts_with("ticket.price"):
            said = sheet.text(name, "JPY", "ticket.price")
            self.check(f"H18: yen without decimals ({name})", "." not in said, said)

    def h19(self):
        free = {"price": {"amount": 0, "currency": "EUR"}}
        for locale, word in (("en-GB", "Free"), ("de-DE", "Kostenlos"), ("fr-FR", "Gratuit")):
            sheet = self.sheet(
                f"free {locale}", {"free": free, "none": {"price": None}}, locale=locale
            )
            self.expect_text(f"H19 {locale}", sheet, "free", "ticket.price", word)
            for name in self.layouts_with("ticket.price"):
                said = sheet.text(name, "free", "ticket.price")
                self.check(
                    f"H19 {locale}: no amount ({name})", not re.search(r"\d|NaN", said), said
                )
                said = sheet.text(name, "none", "ticket.price")
                self.check(f"H19 {locale}: no price, no line ({name})", said == "", said)

    def h20(self):
        event = {"starts_at": "2027-11-19T12:30:00Z"}
        for zone, midnight in (("UTC", "00:00"), ("Asia/Tokyo", "09:00")):
            seen = seen_by_a_program({"TZ": zone})
            self.check(f"H20: control: it is {zone}", seen.endswith(f" {midnight}"), seen)
            sheet = self.sheet(f"in {zone}", event=event, env={"TZ": zone})
            self.expect_text(f"H20 in {zone}", sheet, "a", "event.time", "13:30")
        documents = [self.sheets[f"in {zone}"].pdf.read_bytes() for zone in ("UTC", "Asia/Tokyo")]
        self.check("H20: the same bytes in both zones", documents[0] == documents[1])

    def h21(self):
        for starts_at, time in (
            ("2027-03-27T19:00:00Z", "20:00"),
            ("2027-03-28T19:00:00Z", "21:00"),
        ):
            sheet = self.sheet(starts_at, event={"starts_at": starts_at})
            self.expect_text(f"H21 {starts_at}", sheet, "a", "event.time", time)

    def h22(self):
        for what, zone, code in (
            ("missing", None, "missing"),
            ("unknown", "Mars/Base", "unknown_zone"),
        ):
            said = self.refusal(event={"timezone": zone})
            is_named = any(f"/event/timezone: {code}" in line for line in said)
            self.check(f"H22: a zone {what} is refused by its path", is_named, said)
        event = {"timezone": "Asia/Kolkata", "starts_at": "2027-03-12T19:30:00+01:00"}
        sheet = self.sheet("Kolkata", event=event)
        for name in self.layouts_with("event.time"):
            said = sheet.text(name, "a", "event.time") + sheet.text(name, "a", "event.zone")
            is_right = "00:00" in said and re.search(r"IST|\+0?5:30", said)
            self.check(f"H22: the time of Kolkata with its label ({name})", is_right, said)

    def h31(self):
        locales = self.folder / "locales"
        locales.mkdir()
        german = german_made_in(locales)
        seen = seen_by_a_program(german)
        self.check("H31: control: the German locale is in force", seen.startswith("1,5 "), seen)
        sheet = self.sheet("German", {"a": {}}, env=german)
        other = self.sheet("C", {"a": {}}, env={"LC_ALL": "C"})
        is_same = sheet.pdf.read_bytes() == other.pdf.read_bytes()
        self.check("H31: the same bytes as in the C locale", is_same)
        boxes = re.findall(rb"/MediaBox ?\[(.*?)\]", sheet.pdf.read_bytes())
        is_plain = bool(boxes) and not any(b"," in box for box in boxes)
        self.check("H31: page sizes without a comma", is_plain, boxes[:3])
        self.expect("H31: CHK", qpdf_faults(sheet.pdf))

    # ---- all ----

    def every_sheet(self):
        for key, sheet in self.sheets.items():
            self.expect(
                f"BOX, CHK, FNT: {key}",
                [*sheet.box_faults(), *qpdf_faults(sheet.pdf), *font_faults(sheet.pdf)],
            )
        pdfs = [sheet.pdf for sheet in self.sheets.values()]
        self.expect("preflight finds nothing in all sheets", preflight_faults(*pdfs))

    # ---- no check is blind ----

    def seen(self, what, faults, saying=""):
        """A fault is found, and called by its name."""
        faults = [str(fault) for fault in faults]
        self.check(what, any(saying in fault for fault in faults), faults[:3])

    def planted_words(self):
        """BOX, where another document is laid over one."""
        sheet = self.press.sheet({"a": {}})
        both = overlaid(sheet.pdf, self.press.sheet({"a": {"holder": "Bert Moor"}}).pdf)
        pages = page_words(both, 1, sheet.pages)
        for (name, layout), words in zip(self.press.layouts.items(), pages):
            self.seen(f"planted: a word over another ({name})", overlap_faults(words), "lies over")
            fewer = copy.copy(layout)
            fewer.elements = [
                each for each in layout.elements if "{ticket.holder}" not in each.get("content", "")
            ]
            self.seen(
                f"planted: a word in no box ({name})", place_faults(words, fewer), "no text's box"
            )
            wide = place_faults(words, layout, margin_mm=layout.width / 4)
            self.seen(f"planted: a word in the margin ({name})", wide, "over the margin")
            word = words[0]._replace(box=layout.qr().grown(-15).moved(*layout.cells()[0]))
            self.seen(
                f"planted: a word on the symbol ({name})", place_faults([word], layout), "QR symbol"
            )

    def planted_pixels(self):
        """PIX, with fonts that have none of the letters."""
        tickets = {name: {"holder": name} for name in (JAPANESE, OTHER_JAPANESE)}
        sheet = self.press.sheet(tickets, "--fonts", LATIN_FONT)
        self.seen("planted: letters that no font has", sheet.said, "missing_glyph: U+5C71")
        for name in self.layouts_with("ticket.holder"):
            count = sheet.difference(name, JAPANESE, OTHER_JAPANESE, "ticket.holder")
            self.check(f"planted: boxes are all alike ({name})", count == 0, f"{count} pixels")

    def planted_symbols(self):
        plain = self.plain
        event, plain.event = plain.event, {**plain.event, "id": "evt-2"}
        self.seen("planted: the token of another event", plain.symbol_faults(100), "instead of")
        plain.event = event
        name = min(self.press.layouts, key=lambda each: self.press.layouts[each].qr().w)
        plate = self.symbol(plain, name).plate
        symbol = Symbol(plate.copy(), SYMBOL_DPI)
        left, top, _, _ = symbol.ink
        module_px = symbol.side_px / symbol.modules
        middle = int(left + 3.5 * module_px)
        symbol.plate.paste(255, (middle, top, middle + 1, top + int(7 * module_px)))
        self.check("planted: a hairline", symbol.light_in_finders() > 0)
        symbol.plate.putpixel((int(left - 2 * module_px), top), 254)
        self.check("planted: a speck on the quiet zone", symbol.quiet_faults() == 1)
        half = Symbol(plate.resize((plate.width // 2, plate.height // 2)), SYMBOL_DPI)
        self.check("planted: modules of half the size", half.module_mm < MODULE_MM_MIN)

    def planted_files(self):
        bare_font = self.folder / "bare-font.pdf"
        bare_font.write_bytes(NOT_EMBEDDED)
        self.seen("planted: a font that is not embedded", font_faults(bare_font), "Helvetica")
        torn = self.folder / "torn.pdf"
        torn.write_bytes(self.plain.pdf.read_bytes()[:-200])
        self.seen("planted: the end of a file lost", qpdf_faults(torn), "torn.pdf")
        self.seen(
            "planted: the same by preflight", preflight_faults(self.plain.pdf, torn), "torn.pdf"
        )

    def refusal(self, event=None, ticket=None, drop=None, **members):
        """What the program says to a batch that it must refuse."""
        base = {"id": "T-1", "holder": "Ana Li", "type": "General"}
        base.pop(drop, None)
        event = {name: v for name, v in {**EVENT, **(event or {})}.items() if v is not None}
        tickets = [{**base, **(ticket or {})}]
        return self.press.refusal({"event": event, "tickets": tickets, **members})


def main(program):
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        return Cases(program, Path(folder)).run()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
