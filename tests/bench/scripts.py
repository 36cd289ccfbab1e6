"""The batch of an opening night, with the names of other scripts.

Each holder and the event's own texts are replaced, by names of about the same length; everything
else stays: ids, prices, seats, locale and layout. What a script costs is then the only difference.
"""

import itertools
import typing


class Names(typing.NamedTuple):
    event: str
    venue: str
    given: str
    family: str
    join: str = " "
    family_first: bool = False


SCRIPTS = {
    "Vietnamese": Names(
        "Liên hoan nhạc jazz mùa xuân",
        "Nhà hát lớn thành phố",
        "Thị Ánh|Quốc Đạt|Thị Hương|Hữu Phước|Minh Tuấn|Ngọc Bích|Đức Thắng",
        "Nguyễn|Trần|Đặng|Phạm|Hoàng|Vũ|Bùi|Đỗ|Hồ",
        family_first=True,
    ),
    "Greek": Names(
        "Ανοιξιάτικο φεστιβάλ τζαζ",
        "Μέγαρο Μουσικής",
        "Γιώργος|Ελένη|Δημήτρης|Αικατερίνη|Νίκος|Χρυσούλα|Σπύρος",
        "Παπαδόπουλος|Οικονόμου|Γεωργίου|Βλάχος|Αντωνίου|Μακρή|Ζαφειρίου",
    ),
    "Cyrillic": Names(
        "Весенний джазовый фестиваль",
        "Большой концертный зал",
        "Алексей|Наталья|Юрий|Светлана|Дмитрий|Ольга|Фёдор",
        "Кузнецов|Щербакова|Иваненко|Соловьёв|Мельник|Журавлёва|Царёв",
    ),
    "Hebrew": Names(
        "פסטיבל הג׳אז של האביב",
        "היכל התרבות",
        "יעל|אברהם|נועה|דוד|תמר|יונתן|רחל",
        "כהן|לוי|מזרחי|פרץ|ביטון|אברהמי|שפירא",
    ),
    "Arabic": Names(
        "مهرجان الجاز الربيعي",
        "قاعة النيل الكبرى",
        "محمد|فاطمة|عبد الرحمن|ليلى|يوسف|خديجة|طارق",
        "المصري|الحسيني|بن سعيد|القاضي|الشريف|حداد|النجار",
    ),
    "Thai": Names(
        "เทศกาลดนตรีแจ๊สฤดูใบไม้ผลิ",
        "หอประชุมใหญ่",
        "สมชาย|กัญญา|ณัฐพล|พิมพ์ใจ|อนุชา|ศิริพร|ธีรเดช",
        "ศรีสุข|วงศ์สวัสดิ์|จันทร์เพ็ญ|บุญเรือง|ทองดี|รัตนกุล|สุวรรณ",
    ),
    "Devanagari": Names(
        "वसंत जैज़ महोत्सव",
        "राष्ट्रीय सभागार",
        "अनीता|राजेश|प्रिया|विक्रम|कृष्णा|सुनीता|ज्ञानेश",
        "शर्मा|वर्मा|श्रीवास्तव|मिश्रा|पाटिल|द्विवेदी|चौधरी",
    ),
    "Chinese": Names(
        "春季爵士音乐节国际专场演出",
        "上海大剧院中剧场",
        "小明|丽华|建国|雨婷|志强|美玲|子轩",
        "王|李|张|欧阳|陈|司马|赵|黄|周",
        join="",
        family_first=True,
    ),
    "Japanese": Names(
        "春のジャズフェスティバル",
        "東京文化会館大ホール",
        "花子|太郎|さくら|健一|美咲|ユウキ|翔太",
        "山田|川本|佐々木|小林|渡辺|長谷川|斎藤",
        family_first=True,
    ),
    "Korean": Names(
        "봄 재즈 페스티벌 특별 공연",
        "예술의전당 콘서트홀",
        "민준|서연|지훈|하은|도윤|수빈|현우",
        "김|이|박|최|정|강|남궁|황보|조",
        join="",
        family_first=True,
    ),
}


def holders(names):
    """Names without end, given and family names in all combinations."""
    given, family = names.given.split("|"), names.family.split("|")
    for i in itertools.count():
        parts = [given[i % len(given)], family[(i + i // len(given)) % len(family)]]
        yield names.join.join(reversed(parts) if names.family_first else parts)


def batch_in(script, batch):
    """The batch in another script."""
    names = SCRIPTS[script]
    event = {**batch["event"], "name": names.event, "venue": names.venue}
    tickets = [
        {**ticket, "holder": holder} for ticket, holder in zip(batch["tickets"], holders(names))
    ]
    return {**batch, "event": event, "tickets": tickets}
