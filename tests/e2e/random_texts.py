"""Names as nobody would think of them: letters of every script, marks, emoji, mixed directions.

    texts = Texts(random.Random(1))
    name = texts.text(200)      # 1 to 200 code points, neither refused nor blank

The same seed gives the same texts: characters come from fixed tables, not from what a version of
Unicode has assigned since.
"""

import unicodedata


def span(first, last):
    return [chr(code_point) for code_point in range(first, last + 1)]


# Letters, and marks that may follow them.
SCRIPTS = {
    "Latin": (
        span(0x41, 0x5A)
        + span(0x61, 0x7A)
        + span(0xC0, 0xD6)
        + span(0xD8, 0xF6)
        + span(0xF8, 0x17F),
        [],
    ),
    "Vietnamese": (span(0x1EA0, 0x1EF9) + span(0x61, 0x7A), []),
    "Latin with marks": (
        span(0x61, 0x7A),
        span(0x300, 0x304) + span(0x306, 0x30C) + ["\u0323", "\u0331"],
    ),
    "Greek": (
        span(0x391, 0x3A1) + span(0x3A3, 0x3C9) + span(0x1F00, 0x1F07) + span(0x1F80, 0x1F87),
        [],
    ),
    "Cyrillic": (span(0x400, 0x45F) + span(0x490, 0x4A3), ["\u0301"]),
    "Hebrew": (span(0x5D0, 0x5EA), span(0x5B0, 0x5B9) + ["\u05bc", "\u05c1"]),
    "Arabic": (span(0x621, 0x63A) + span(0x641, 0x64A) + list("پچژگکی"), span(0x64B, 0x652)),
    "Thai": (span(0xE01, 0xE2E) + list("ะาเแโไ"), list("ัิีึืุู่้๊๋์")),
    "Devanagari": (span(0x905, 0x914) + span(0x915, 0x939), span(0x93E, 0x94D) + ["\u0902"]),
    "Armenian": (span(0x531, 0x556) + span(0x561, 0x586), []),
    "Georgian": (span(0x10D0, 0x10F0), []),
    "Ethiopic": (span(0x1200, 0x1206) + span(0x1210, 0x1246), []),
    "Bengali": (span(0x995, 0x9A8) + span(0x9AA, 0x9B0), ["\u09be", "\u09bf", "\u09c1", "\u09cd"]),
    "Gurmukhi": (span(0xA15, 0xA28), ["\u0a3e", "\u0a3f", "\u0a41", "\u0a4d"]),
    "Gujarati": (span(0xA95, 0xAA8), ["\u0abe", "\u0abf", "\u0ac1", "\u0acd"]),
    "Tamil": (list("கஙசஞடணதநனபமயரறலளழவ"), ["\u0bbe", "\u0bbf", "\u0bc6", "\u0bcd"]),
    "Telugu": (span(0xC15, 0xC28), ["\u0c3e", "\u0c3f", "\u0c41", "\u0c4d"]),
    "Kannada": (span(0xC95, 0xCA8), ["\u0cbe", "\u0cbf", "\u0cc1", "\u0ccd"]),
    "Malayalam": (span(0xD15, 0xD28), ["\u0d3e", "\u0d3f", "\u0d46", "\u0d4d"]),
    "Sinhala": (span(0xD9A, 0xDA5), ["\u0dcf", "\u0dd2", "\u0dd4", "\u0dca"]),
    "Lao": (list("ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອຮະາ"), span(0xEB4, 0xEB9) + span(0xEC8, 0xECB)),
    "Khmer": (span(0x1780, 0x17A2), ["\u17b6", "\u17b7", "\u17bb", "\u17c1", "\u17d2\u1780"]),
    "Myanmar": (span(0x1000, 0x1021), ["\u102c", "\u102d", "\u102f", "\u1031", "\u1039\u1000"]),
    "Tibetan": (span(0xF40, 0xF47) + span(0xF49, 0xF69), ["\u0f71", "\u0f72", "\u0f74", "\u0fb2"]),
    "Han": (span(0x4E00, 0x9FA5), []),
    "Kana": (span(0x3041, 0x3093) + span(0x30A1, 0x30F4), []),
    "Hangul": (span(0xAC00, 0xD7A3), []),
}
EMOJI = "😀 🎟 🎭 🎶 ❤️ ☺️ 👩‍🎤 👨‍👩‍👧 👍🏽 🇪🇸 🇯🇵 1️⃣ ⭐ ☀ ♥".split()
SIGNS = list(".,:;-–—/&()[]<>\"'’“”«»!?¿¡#%*+=@§°·…0123456789") + list("٠١٢٣٤٥٦٧٨٩") + list("、。「」")
# Isolates open and close as they like; marks and joiners stand where they do nothing, too.
CONTROLS = list("\u200e\u200f\u061c\u2066\u2067\u2068\u2069\u200c\u200d\u00ad\u200b\u2060")
SPACES = list("    \u00a0\u3000\u2009")
MARKS_MAX = 8  # on one letter, now and then


class Texts:
    """Random texts, by a generator that the caller has seeded."""

    def __init__(self, random):
        self.random = random

    def word(self, script, letters):
        """So many letters of a script, marks upon some."""
        base, marks = SCRIPTS[script]
        word = []
        for _ in range(letters):
            word.append(self.random.choice(base))
            if marks and self.random.random() < 0.3:
                word.append(self.random.choice(marks))
        return "".join(word)

    def stacked(self):
        """A letter under more marks than any language has."""
        letter = self.random.choice(SCRIPTS[self.random.choice(list(SCRIPTS))][0])
        marks = span(0x300, 0x315) + span(0x316, 0x333)
        return letter + "".join(self.random.choices(marks, k=self.random.randint(1, MARKS_MAX)))

    def piece(self):
        """A word, or what stands between words."""
        kind = self.random.random()
        if kind < 0.70:
            return self.word(self.random.choice(list(SCRIPTS)), self.random.randint(1, 12))
        if kind < 0.80:
            return self.random.choice(EMOJI)
        if kind < 0.90:
            return "".join(self.random.choices(SIGNS, k=self.random.randint(1, 4)))
        return self.stacked() if kind < 0.93 else self.random.choice(CONTROLS)

    def mixture(self, length):
        """Pieces of all kinds, with and without spaces between them."""
        text = ""
        while len(text) < length:
            text += self.piece() + (
                self.random.choice(SPACES) if self.random.random() < 0.6 else ""
            )
        return text

    def name(self, length):
        """Words of one script, as most names are."""
        script = self.random.choice(list(SCRIPTS))
        text = self.word(script, self.random.randint(2, 10))
        while len(text) < length:
            text += " " + self.word(script, self.random.randint(2, 10))
        return text

    def text(self, length_max):
        """A text of 1 to so many code points after NFC, most of them short."""
        reach = length_max if self.random.random() < 0.3 else min(length_max, 30)
        length = self.random.randint(1, reach)
        text = self.name(length) if self.random.random() < 0.4 else self.mixture(length)
        text = unicodedata.normalize("NFC", text)[:length]
        # One letter is enough not to be blank.
        if not any(unicodedata.category(character)[0] in "LNS" for character in text):
            text = self.random.choice(SCRIPTS["Han"][0]) + text[1:]
        return unicodedata.normalize("NFC", text)
