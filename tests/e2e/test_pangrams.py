#!/usr/bin/python3
"""A line of every script looks as HarfBuzz's own hb-view draws it, and reads as it was written.

usage: test_pangrams.py PROGRAM

Both draw the same text in the same font file at the same size: the first of the default fonts that
has all of its letters. Compared are the pixels, up to a step of one. The bound is so tight that each
text is refused when any one of its accents is missing.

Two things that readers cannot do are not asked of them. Poppler turns round the characters of one
cluster from right to left: Hebrew and Arabic are copied without points and lam-alef. MuPDF knows no
/ActualText, without which a Devanagari vowel sign that stands before its consonant is read there.
Tibetan is not among the lines, since hb-view cuts the tops off its vowel signs.
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
DISTANCE_PX_MAX = 10  # 2 at most where all is there, 21 or more where a point is missing
HB_VIEW_TIMEOUT_S = 60


class Pangram(NamedTuple):
    script: str
    locale: str
    text: str
    close: tuple = ()  # texts with one part less, where a script has no accents
    copied: str = ""  # what is tried by copying, where it is not the text
    readers: tuple = ("poppler", "MuPDF")


PANGRAMS = [
    Pangram("Vietnamese", "vi-VN", "Do bạch kim rất quý nên sẽ dùng để lắp vô xương"),
    Pangram("Polish", "pl-PL", "Pchnąć w tę łódź jeża lub ośm skrzyń fig"),
    Pangram("Hungarian", "hu-HU", "Egy hűtlen vejét fülöncsípő dühös mexikói úr"),
    Pangram("Turkish", "tr-TR", "Pijamalı hasta yağız şoföre çabucak güvendi İIı"),
    Pangram("Latin with marks of its own", "en-GB", "x\u0323\u0302y\u0331 q\u0303a\u030b\u0325"),
    Pangram("Greek", "el-GR", "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία ἐᾷ ᾧ ὕδωρ Ἆ"),
    Pangram("Russian", "ru-RU", "Съешь ещё этих мягких французских булок да выпей чаю й"),
    Pangram("Ukrainian", "uk-UA", "Жебракують філософи при ґанку церкви в Гадячі їхнє є"),
    Pangram(
        "Hebrew",
        "he-IL",
        "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ",
        copied="בראשית ברא אלהים את השמים ואת הארץ",
    ),
    Pangram(
        "Arabic",
        "ar-EG",
        "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت",
        copied="صف خلق خود كمثل الشمس إذ بزغت يحظى الضجيع بها معطار",
    ),
    Pangram("Persian", "fa-IR", "پژمان گفت چای ژاله را بیاورید که گرم است آ"),
    Pangram("Urdu", "ur-PK", "ٹھنڈ میں ایک قحط زدہ گاؤں سے گذرتے وقت ڑے"),
    Pangram("Thai", "th-TH", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่ากว่าบรรดาฝูงสัตว์"),
    Pangram(
        "Devanagari",
        "hi-IN",
        "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा श्रीराम",
        readers=("poppler",),
    ),
    Pangram("Bengali", "bn-BD", "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার", readers=()),
    Pangram("Gurmukhi", "pa-IN", "ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ", readers=()),
    Pangram("Gujarati", "gu-IN", "પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો", readers=()),
    Pangram("Tamil", "ta-IN", "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே", readers=()),
    Pangram("Telugu", "te-IN", "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును", readers=()),
    Pangram("Kannada", "kn-IN", "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ", readers=()),
    Pangram("Malayalam", "ml-IN", "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും", readers=()),
    Pangram("Sinhala", "si-LK", "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත", readers=()),
    Pangram("Lao", "lo-LA", "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ", readers=()),
    Pangram("Khmer", "km-KH", "មនុស្សទាំងអស់កើតមកមានសេរីភាព", readers=()),
    Pangram("Myanmar", "my-MM", "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာ", readers=()),
    Pangram("Armenian", "hy-AM", "Բոլոր մարդիկ ծնվում են ազատ", ("Բոլոր մարղիկ ծնվում են ազատ",)),
    Pangram(
        "Georgian",
        "ka-GE",
        "ყველა ადამიანი იბადება თავისუფალი",
        ("ყველა აღამიანი იბადება თავისუფალი",),
    ),
    Pangram("Ethiopic", "am-ET", "የሰው ልጅ ሁሉ ሲወለድ ነጻና", ("የሰው ልጅ ሁሉ ሲወለደ ነጻና",)),
    Pangram(
        "Chinese, simplified",
        "zh-CN",
        "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏",
        ("天地玄黄字宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏",),
    ),
    Pangram(
        "Chinese, traditional",
        "zh-TW",
        "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏",
        ("天地玄黃字宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏",),
    ),
    Pangram("Japanese", "ja-JP", "色は匂へど散りぬるを我が世誰ぞ常ならむパピプペポ"),
    Pangram(
        "Korean",
        "ko-KR",
        "다람쥐 헌 쳇바퀴에 타고파 키스의 고유조건은 입술",
        ("다람쥐 헌 쳇바퀴에 티고파 키스의 고유조건은 입술",),
    ),
    Pangram("Emoji", "en-GB", "😀🎭🎶🎟❤☀⭐☂", ("😀🎭🎵🎟❤☀⭐☂",)),
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
    command = ["hb-view", "-O", "png", "--font-size", f"{size_px:g}", "--margin", "100"]
    command += ["--language", pangram.locale, font, pangram.text]
    done = subprocess.run(command, capture_output=True, check=True, timeout=HB_VIEW_TIMEOUT_S)
    return ink_of(Image.open(io.BytesIO(done.stdout)).convert("L"))


# ---- the test ----


def check_copied(report, sheet, layout, pangram):
    """What is copied from the page is what was written."""
    text = pangram.copied or pangram.text
    page, _ = sheet.places[layout.name, text]
    commands = {
        "poppler": ["pdftotext", "-enc", "UTF-8", "-f", page, "-l", page, sheet.pdf, "-"],
        "MuPDF": ["mutool", "draw", "-q", "-F", "txt", sheet.pdf, page],
    }
    for reader in pangram.readers:
        said = bare(run(commands[reader]).stdout)
        is_right = said == expected(text)
        report.check(f"{pangram.script}: copied by {reader}", is_right, f"{said}\n{text}")


def check_pangram(press, report, layout, pangram):
    font = font_for(pangram.text)
    if not report.check(f"{pangram.script}: a default font has all of it", font is not None):
        return
    texts = [pangram.text, *accents_dropped(pangram.text), *pangram.close]
    tickets = {text: {"holder": text} for text in [*texts, pangram.copied or pangram.text]}
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
    case = f"{pangram.script}: {len(distances)} texts with one part less are refused"
    case += f", the nearest with {distances[nearest]} pixels"
    report.check(case, distances[nearest] > DISTANCE_PX_MAX, nearest)
    check_copied(report, sheet, layout, pangram)


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
