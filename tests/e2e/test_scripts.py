#!/usr/bin/python3
"""What is copied from a page is what was written, for scripts and directions that meet on one line.

usage: test_scripts.py PROGRAM

In the default fonts, for poppler and MuPDF. What is between the two is not asked: poppler turns round
the characters of one cluster from right to left and what stands at the seams of directions, MuPDF
goes by glyphs alone and leaves out what joins them. Controls of direction are not compared.
"""

import sys
import tempfile

from check_document import run
from document_checks import FIXTURES, Layout, Press, Report, bare, expected

LAYOUTS = FIXTURES / "layouts" / "valid"

POPPLER, MUPDF = "poppler", "MuPDF"
BOTH = (POPPLER, MUPDF)

# what it shows, the locale, the texts, and the readers that give them back
ROWS = [
    ("Hebrew", "he-IL", ["דני לוי", "ירושלים", "רחוב הרצל"], BOTH),
    ("Hebrew and a number", "he-IL", ["אולם 12", "שורה 7 מושב 14"], BOTH),
    ("Hebrew and Latin", "he-IL", ["דני Dan לוי", "פסטיבל Jazz בתל אביב"], BOTH),
    ("Hebrew in Latin", "en-GB", ["Dan Cohen-Levi דני Smith", "The house of אבא in London"], BOTH),
    ("brackets from right to left", "he-IL", ["דני (לוי) כהן"], BOTH),
    ("Arabic", "ar-EG", ["محمد علي", "فاطمة الزهراء", "معرض القاهرة الدولي"], BOTH),
    ("lam-alef", "ar-EG", ["السلام", "لا إله إلا", "الأحد والإثنين"], (MUPDF,)),
    ("Arabic digits", "ar-EG", ["قاعة ٢٠٢٧", "صف ١٤"], BOTH),
    ("Arabic and Latin", "ar-EG", ["معرض Expo الدولي في القاهرة"], BOTH),
    ("vowel points", "ar-EG", ["مُحَمَّد", "صِف خَلقَ"], (MUPDF,)),
    ("Urdu", "ur-PK", ["ٹھنڈ میں ایک", "گاؤں سے"], BOTH),
    ("Thai", "th-TH", ["ปู่เป็นที่รัก", "ศรีสุข วงศ์", "ญี่ปุ่น"], BOTH),
    ("sara am", "th-TH", ["น้ำ กำ จำปี"], (POPPLER,)),
    ("Devanagari", "hi-IN", ["प्रीति क्षत्रिय", "हिन्दी", "राष्ट्रीय कार्ड"], (POPPLER,)),
    ("Devanagari in the order of its glyphs", "hi-IN", ["राम", "नमस्ते", "समारोह"], BOTH),
    ("Bengali", "bn-BD", ["ঢাকা", "অমর একুশে"], (POPPLER,)),
    ("Tamil", "ta-IN", ["தமிழ் சங்கம்"], (POPPLER,)),
    ("Japanese", "ja-JP", ["山田花子", "春の祭り", "東京ドーム"], BOTH),
    ("Chinese", "zh-CN", ["王小明", "北京国家大剧院"], BOTH),
    ("Korean", "ko-KR", ["김민수", "서울 예술의전당"], BOTH),
    ("scripts beside one another", "en-GB", ["Ana 山田 Фёдор Ἀλέξ हम"], BOTH),
    ("emoji", "en-GB", ["Ana 🎉 Li ☎"], BOTH),
    ("joined emoji", "en-GB", ["Ana 👩\u200d💻 Li"], (POPPLER,)),
    ("marks without a letter of their own", "en-GB", ["x\u0302y\u0323\u0301 X\u0302"], BOTH),
]


def command_of(reader, pdf, page):
    if reader == POPPLER:
        return ["pdftotext", "-enc", "UTF-8", "-f", page, "-l", page, pdf, "-"]
    return ["mutool", "draw", "-q", "-F", "txt", pdf, page]


def copied_faults(sheet, layout, text, readers):
    """What readers do not give back of a text."""
    page, _ = sheet.places[layout.name, text]
    for reader in readers:
        said = bare(run(command_of(reader, sheet.pdf, page)).stdout)
        if said != expected(text):
            yield f"{reader} says {said!a} of {text!a}"


def main(program):
    report = Report()
    layout = Layout(LAYOUTS / "pangram.json")
    layouts = {layout.name: layout}
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as folder:
        press = Press(program, folder)
        for name, locale, texts, readers in ROWS:
            tickets = {text: {"holder": text} for text in texts}
            sheet = press.sheet(tickets, "--layouts", LAYOUTS, layouts=layouts, locale=locale)
            faults = list(sheet.said)
            for text in texts:
                faults += copied_faults(sheet, layout, text, readers)
            case = f"{name}: {len(texts)} texts are copied by {' and '.join(readers)}"
            report.check(case, not faults, "\n".join(faults))
    return report.status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
