#!/usr/bin/python3
"""The built-in layouts hold every language, the longest texts and the fewest, on their papers.

usage: test_built_in_layouts.py PROGRAM

Each of fixtures/requests/languages is printed in every built-in layout as it stands; seven of them,
one a kind of script, also with every text as long as the rules allow and without anything optional
(render_matrix.py). Words must lie inside
the boxes of their layout, over no other word and not on the symbol; nothing may be missing from the
fonts; every symbol must read. What is meant for A4 and Letter must keep its margin on both, however
a program places one on the other unscaled. That each check can fail is shown at the end.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

from document_checks import (
    LAYOUTS,
    MM_PER_INCH,
    ROOT,
    Layout,
    Press,
    Report,
    page_images,
    place_faults,
)
from render_matrix import KINDS, batch_of, languages

NAMES = {"a4", "a4-4up", "badge", "classic", "letter", "thermal"}
MARGIN_MM = 12
A4, LETTER = (210, 297), (215.9, 279.4)
ON_BOTH_PAPERS = {"a4": (A4, LETTER), "a4-4up": (A4, LETTER), "letter": (LETTER, A4)}
INK_DPI = 60
ALL_KINDS = {"en", "es", "de", "ar", "he", "th", "ja"}
# A head of 203 dpi prints dots of 0.125 mm; finer lines than two of them come and go.
THERMAL_STROKE_MM_MIN = 0.25
THERMAL_HEAD_MM = 72
TYPE_PT_MIN = {"a4": 5, "letter": 5, "thermal": 5.5}  # of the longest texts; 4 elsewhere
MM = 1e-6


# ---- files ----


def same_design_faults(layout, other):
    """Elements that differ by more than the way from one page's middle to the other's."""
    across = (other.page_width - layout.page_width) / 2
    down = (other.page_height - layout.page_height) / 2
    moved = json.loads(json.dumps(layout.elements))
    for element in moved:
        element["x_mm"] = round(element["x_mm"] + across, 3)
        element["y_mm"] = round(element["y_mm"] + down, 3)
    for number, (one, two) in enumerate(zip(moved, other.elements, strict=True)):
        if one != two:
            yield f"element {number}: {one} is not {two}"


def thermal_faults(layout):
    """What a head of one colour and coarse dots would not print."""
    edge = (layout.width - THERMAL_HEAD_MM) / 2
    for number, element in enumerate(layout.elements):
        if element["type"] in ("box", "image"):
            yield f"element {number}: an area to be printed black"
        if element["type"] in ("text", "line"):
            if element["color"] != "#000000":
                yield f"element {number}: {element['color']}"
            if element["x_mm"] < edge - MM or element["x_mm"] + element["w_mm"] > 76 + MM:
                yield f"element {number}: outside the head"
        if element.get("stroke_mm", 1) < THERMAL_STROKE_MM_MIN:
            yield f"element {number}: {element['stroke_mm']} mm"


def small_type_faults(layout):
    least = TYPE_PT_MIN.get(layout.name, 4)
    for number, element in enumerate(layout.elements):
        sizes = [element[name] for name in element if name.endswith("_pt")]
        if any(size < least for size in sizes):
            yield f"element {number}: {min(sizes)} pt"


def readme_languages():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"<!-- languages -->(.*?)<!-- /languages -->", text, re.S)[1]
    return [tag.strip().lower() for tag in listed.split(",")]


def check_files(report, layouts, labels):
    report.check("the layouts are those of the README", layouts.keys() == NAMES, layouts.keys())
    report.check("its languages are those of the labels", readme_languages() == sorted(labels))
    no_labels = [tag for tag in languages() if tag not in labels]
    report.check("the languages that are printed here have labels", not no_labels, no_labels)
    differences = same_design_faults(layouts["a4"], layouts["letter"])
    expect(report, "a4 and letter are one design", differences)
    expect(report, "thermal is black on white", thermal_faults(layouts["thermal"]))
    for name, layout in layouts.items():
        expect(report, f"{name}: no type is too small", small_type_faults(layout))


# ---- pages ----


def safe_edges_mm(paper, other):
    """The part of a paper that keeps the margin on the other one, too, when the page is printed
    unscaled with any of its corners or its middle on the other's: left, top, right, bottom."""
    edges = []
    for side, other_side in zip(paper, other):
        lost = max(side - other_side, 0)
        edges.append((lost + MARGIN_MM, side - lost - MARGIN_MM))
    (left, right), (top, bottom) = edges
    return left, top, right, bottom


def paper_faults(name, image):
    """Ink too near to an edge of either paper."""
    left, top, right, bottom = safe_edges_mm(*ON_BOTH_PAPERS[name])
    scale = INK_DPI / MM_PER_INCH
    dark = ImageChops.invert(image).point(lambda v: 255 * (v > 8))
    ink = [edge / scale for edge in dark.getbbox()]
    # A pixel that is touched counts as inked: half a millimetre at this resolution.
    near = 1 / scale
    if ink[0] < left - near or ink[1] < top - near:
        yield f"{name}: ink from {ink[0]:.1f}, {ink[1]:.1f} mm"
    if ink[2] > right + near or ink[3] > bottom + near:
        yield f"{name}: ink to {ink[2]:.1f}, {ink[3]:.1f} mm"


def sheet_of(press, language, kind, locale=None):
    batch = batch_of("classic", language, kind)
    ticket = {key: v for key, v in batch["tickets"][0].items() if key != "id"}
    without = {"price": None, **({"id": "{:064}"} if kind == "longest" else {})}
    event = {"venue": None, **batch["event"]}
    return press.sheet({"a": {**without, **ticket}}, event=event, locale=locale or batch["locale"])


def words_out_of_place(sheet):
    for name, (first, last) in sheet.first_last.items():
        for page in range(first, last + 1):
            words = sheet.words()[page - 1]
            faults = place_faults(words, sheet.layouts[name], 0.0, sheet.is_mirrored)
            yield from (f"{name}: {fault}" for fault in faults)


def cut_short(sheet):
    """Words that end with an ellipsis."""
    for number, words in enumerate(sheet.words(), 1):
        yield from (f"page {number}: {word.text}" for word in words if word.text.endswith("…"))


def check_labels(report, press, tags):
    """The words of languages that no event is printed in here, beside an English one."""
    for tag in tags:
        sheet = sheet_of(press, "en", "full", locale=tag)
        expect(report, f"labels of {tag}: none is cut short", cut_short(sheet))


def check_sheet(report, sheet, what):
    missing = [line for line in sheet.said if "missing_glyph" in line]
    expect(report, f"{what}: no glyph is missing", missing)
    expect(report, f"{what}: words lie in their boxes", words_out_of_place(sheet))
    expect(report, f"{what}: no glyph lies over another", sheet.glyph_faults())
    expect(report, f"{what}: symbols read at 100 dpi", sheet.symbol_faults(100))
    faults = []
    for name in ON_BOTH_PAPERS:
        page = sheet.places[name, "a"][0]
        faults += paper_faults(name, page_images(sheet.pdf, INK_DPI, page, page)[0])
    expect(report, f"{what}: whole on A4 and on Letter", faults)


def expect(report, what, faults):
    faults = list(faults)
    report.check(what, not faults, "\n".join(map(str, faults[:5])))


# ---- planted faults ----


def altered(layout, folder, alter):
    data = json.loads(json.dumps(layout.data))
    alter(data)
    path = folder / "altered.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return Layout(path)


def check_planted(report, press, folder):
    def seen(what, faults):
        report.check(f"planted: {what}", bool(list(faults)))

    def moved(data):
        data["elements"][5]["x_mm"] += 0.01

    def coloured(data):
        next(each for each in data["elements"] if "color" in each)["color"] = "#000001"

    def thin(data):
        next(each for each in data["elements"] if "stroke_mm" in each)["stroke_mm"] = 0.2

    def small(data):
        next(each for each in data["elements"] if "floor_pt" in each)["floor_pt"] = 4.9

    layouts = press.layouts
    seen(
        "a4 with one element moved",
        same_design_faults(altered(layouts["a4"], folder, moved), layouts["letter"]),
    )
    seen("thermal in another colour", thermal_faults(altered(layouts["thermal"], folder, coloured)))
    seen("thermal with a hairline", thermal_faults(altered(layouts["thermal"], folder, thin)))
    seen("small type", small_type_faults(altered(layouts["a4"], folder, small)))
    scale = INK_DPI / MM_PER_INCH
    full = Image.new("L", tuple(round(side * scale) for side in A4), 255)
    full.paste(0, tuple(round(edge * scale) for edge in safe_edges_mm(A4, LETTER)))
    report.check("a page that is full to its margins", not list(paper_faults("a4", full)))
    step = round(2 * scale)
    for what, across, down in (("right", 1, 0), ("left", -1, 0), ("down", 0, 1), ("up", 0, -1)):
        moved_page = ImageChops.offset(full, across * step, down * step)
        seen(f"a page that lies too far {what}", paper_faults("a4", moved_page))


def main(program):
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        press = Press(program, Path(name))
        labels = json.loads((LAYOUTS.parent / "labels.json").read_text(encoding="utf-8"))
        check_files(report, press.layouts, labels)
        for language in languages():
            for kind in KINDS if language in ALL_KINDS else ("full",):
                sheet, what = sheet_of(press, language, kind), f"{language}, {kind}"
                check_sheet(report, sheet, what)
                if kind != "longest":
                    expect(report, f"{what}: nothing is cut short", cut_short(sheet))
        check_labels(report, press, sorted(labels.keys() - set(languages())))
        check_planted(report, press, Path(name))
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
