#!/usr/bin/python3
"""Documents are small, and carry each font once (H30 of the cases from the field).

usage: test_sizes.py PROGRAM

In every built-in layout: one Latin ticket, one with Chinese, Japanese and Korean, 100 tickets
against one, and the 500 of an opening night.
"""

import json
import sys
import tempfile
from collections import Counter

from check_document import font_faults, run
from document_checks import FIXTURES, Press, Report

KB = 1000
LATIN_BYTES_MAX = 30 * KB
CJK_BYTES_MAX = 60 * KB
TICKET_BYTES_MAX = 2.5 * KB  # in a batch
OPENING_NIGHT = FIXTURES / "requests" / "opening-night-500.json"
LATIN = {"holder": "Nguyễn Thị Ánh", "type": "Łucja Żółć", "gate": "İpek Işık"}
CJK = {"holder": "山田花子 王小明 김민준", "type": "一般 普通 일반", "gate": "東口"}


def fonts_of(pdf):
    """The names of a document's fonts, without the tags of their subsets."""
    lines = run(["pdffonts", pdf]).stdout.splitlines()[2:]
    return Counter(line.split()[0].split("+")[-1] for line in lines)


def document(press, name, tickets, event=None):
    """The path of a document of these tickets, in one layout."""
    sheet = press.sheet(tickets, layouts={name: press.layouts[name]}, event=event)
    return sheet.pdf


def check_one(press, report, name):
    """A ticket alone, by what it is written in."""
    latin = document(press, name, {"a": LATIN})
    event = {"name": "春の祭り", "venue": "서울 예술의전당", "address": "上海市黄浦区人民大道三百号"}
    cjk = document(press, name, {"a": CJK}, event)
    for what, pdf, bytes_max in (("Latin", latin, LATIN_BYTES_MAX), ("CJK", cjk, CJK_BYTES_MAX)):
        size = pdf.stat().st_size
        is_small = size <= bytes_max
        report.check(f"a {what} ticket has {size} bytes of {bytes_max} ({name})", is_small)
        faults = font_faults(pdf)
        report.check(f"a {what} ticket's fonts are subsets ({name})", not faults, faults)


def check_many(press, report, name):
    """100 tickets add pages to a document, and no font."""
    ones = document(press, name, {"a": CJK})
    hundred = document(press, name, {str(number): CJK for number in range(100)})
    added = hundred.stat().st_size - ones.stat().st_size
    is_small = added <= 99 * TICKET_BYTES_MAX
    report.check(f"99 tickets more add {added} bytes ({name})", is_small)
    fonts = fonts_of(ones), fonts_of(hundred)
    report.check(f"and no font ({name})", fonts[0] == fonts[1], fonts)
    once = set(fonts[1].values()) == {1}
    report.check(f"each of {len(fonts[1])} fonts is there once ({name})", once, fonts[1])


def check_opening_night(press, report, name):
    batch = json.loads(OPENING_NIGHT.read_text(encoding="utf-8"))
    batch["layout"] = name
    pdf, _ = press.print(batch)
    each = pdf.stat().st_size / len(batch["tickets"])
    what = f"{len(batch['tickets'])} tickets have {each:.0f} bytes each ({name})"
    report.check(what, each <= TICKET_BYTES_MAX)
    once = set(fonts_of(pdf).values()) == {1}
    report.check(f"and each font once ({name})", once, fonts_of(pdf))


def check_planted(press, report, folder):
    """Two documents in one have their fonts twice, and 500 of them are not small."""
    name = next(iter(press.layouts))
    one = document(press, name, {"a": LATIN})
    other = document(press, name, {"a": {**LATIN, "holder": "Ana Li"}})
    twice = f"{folder}/twice.pdf"
    run(["qpdf", "--empty", "--pages", one, other, "--", twice])
    pages = run(["pdffonts", twice]).stdout
    report.check("planted: fonts that are there twice", 2 in fonts_of(twice).values(), pages)
    report.check(
        "planted: documents of one are no small tickets", one.stat().st_size > TICKET_BYTES_MAX
    )


def main(program):
    report = Report()
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        press = Press(program, folder)
        for name in press.layouts:
            check_one(press, report, name)
            check_many(press, report, name)
            check_opening_night(press, report, name)
        check_planted(press, report, folder)
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
