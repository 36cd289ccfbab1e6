#!/usr/bin/env python3
"""The arrows of the source: service -> workers -> domain, each library in its files only.

usage: test_arrows.py [PROGRAM]

Reads every #include of the product. A header that is in no table here is refused: a new library, or
a new header of the system in domain/, is a decision, and this file is where it is written down. The
rules are first shown to catch planted breaks.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

MAY_INCLUDE = {
    "domain": ["domain"],
    "workers": ["workers", "domain"],
    "service": ["service", "workers", "domain"],
}

# architecture.md section 6: a pattern of the headers, and the only files that may include them.
LIBRARIES = [
    (r"jansson\.h", ["service/batch_json.c", "service/config_json.c"]),
    (r"openssl/.*", ["workers/sign.c"]),
    (r"qrencode\.h", ["workers/qr.c"]),
    (r"libdeflate\.h|zlib\.h", ["workers/deflate.c"]),
    (r"hb(-.*)?\.h", ["workers/text.c", "workers/font.c", "workers/locale.c"]),
    (r"unicode/.*", ["workers/itemize.c", "workers/locale.c"]),
    (r"hpdf.*\.h|lcms2.*\.h", ["workers/pdf.c"]),
    (r"png\.h|jpeglib\.h|jerror\.h", ["workers/image.c"]),
    (r"setjmp\.h", ["workers/image.c"]),
    (r"microhttpd\.h", ["service/http.c"]),
    (r"sqlite3\.h", ["service/job_store_sqlite.c"]),
    (r"hiredis/.*", ["service/job_store_redis.c"]),
    (r"curl/.*", ["service/callback.c"]),
]

# domain/ is data and rules: nothing that reaches threads, sockets, files or clocks. Of stdio.h it
# may only write into memory; must.h says its last words on stderr.
DOMAIN_HEADERS = """assert.h ctype.h errno.h float.h inttypes.h iso646.h limits.h math.h stdalign.h
    stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h""".split()
DOMAIN_REFUSED = re.compile(
    r"\b(FILE|stdin|stdout|stderr|_Thread_local)\b"
    r"|\b((?:secure_)?getenv|setenv|putenv|system|_?exit|_Exit|atexit|time|clock|s?rand|v?f?printf"
    r"|v?f?scanf|fopen|freopen|tmpfile|remove|rename|f?puts|f?putc|putchar|f?getc|getchar|perror"
    r"|strerror|strtok|setlocale)[ \t\n]*\("
)
DOMAIN_REFUSED_EXCEPT = {"domain/must.h": {"fprintf", "stderr"}}

# Headers of ISO C and POSIX that workers/ and service/ may use.
SYSTEM_HEADERS = """assert.h ctype.h dirent.h errno.h fcntl.h float.h getopt.h inttypes.h limits.h
    locale.h malloc.h math.h pthread.h sched.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h
    stddef.h stdint.h stdio.h stdlib.h string.h strings.h sys/file.h sys/mman.h sys/prctl.h
    sys/random.h sys/resource.h sys/stat.h sys/syscall.h sys/types.h sys/uio.h time.h
    unistd.h""".split()

# The edge of the process is service/: workers/ never meets a socket.
SOCKET_HEADER = r"(arpa|netinet)/.*|(netdb|poll)\.h|sys/(epoll|eventfd|signalfd|socket|timerfd|un)\.h"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
COMPUTED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[^<\" \t]", re.M)
COMMENT_OR_TEXT = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S
)


def without_comments(text):
    return COMMENT_OR_TEXT.sub(lambda m: " " if m[0].startswith("/") else m[0], text)


def without_texts(text):
    return COMMENT_OR_TEXT.sub(" ", text)


def own_header_faults(path, header, root):
    folder = header.split("/")[0]
    if folder not in MAY_INCLUDE[path.split("/")[0]]:
        yield f'{path} includes "{header}": against the arrows'
    elif not (root / header).is_file():
        yield f'{path} includes "{header}": not a file by its path from the root'


def foreign_header_faults(path, header):
    for pattern, allowed in LIBRARIES:
        if re.fullmatch(pattern, header):
            if path not in allowed:
                yield f"{path} includes <{header}>: only {' and '.join(allowed)} may"
            return
    folder = path.split("/")[0]
    if folder == "domain" and header not in DOMAIN_HEADERS:
        yield f"{path} includes <{header}>: domain/ may not"
    elif re.fullmatch(SOCKET_HEADER, header):
        if folder != "service":
            yield f"{path} includes <{header}>: only service/ may"
    elif folder != "domain" and header not in SYSTEM_HEADERS:
        yield f"{path} includes <{header}>: in no table of this test"


def file_faults(path, root):
    text = without_comments((root / path).read_text(encoding="utf-8"))
    if COMPUTED.search(text):
        yield f"{path}: an include by macro cannot be judged"
    for mark, header in INCLUDE.findall(text):
        if mark == '"':
            yield from own_header_faults(path, header, root)
        else:
            yield from foreign_header_faults(path, header)
    if path.startswith("domain/"):
        words = {a or b for a, b in DOMAIN_REFUSED.findall(without_texts(text))}
        for word in sorted(words - DOMAIN_REFUSED_EXCEPT.get(path, set())):
            yield f"{path} says {word}: domain/ may not"


def product_files(root):
    patterns = [f"{folder}/**/*.[ch]" for folder in MAY_INCLUDE]
    return sorted(str(p.relative_to(root)) for pattern in patterns for p in root.glob(pattern))


def tree_faults(root):
    return [fault for path in product_files(root) for fault in file_faults(path, root)]


# name, file, its text, what the fault must say ("" for none)
PLANTED = [
    ("domain includes workers", "domain/a.c", '#include "workers/b.h"', "against the arrows"),
    ("domain includes service", "domain/a.c", '#include "service/c.h"', "against the arrows"),
    ("workers include service", "workers/b.c", ' # include  "service/c.h"', "against the arrows"),
    ("a header of tests", "service/c.c", '#include "tests/support/t.h"', "against the arrows"),
    ("by a path from the folder", "workers/b.c", '#include "b.h"', "against the arrows"),
    ("by a header that is not there", "workers/b.c", '#include "domain/no.h"', "not a file"),
    ("domain includes jansson", "domain/a.c", "#include <jansson.h>", "batch_json.c"),
    ("the wrong file includes OpenSSL", "workers/qr.c", "#include <openssl/evp.h>", "sign.c"),
    ("a header includes a library", "workers/sign.h", "#include <openssl/evp.h>", "sign.c"),
    ("HarfBuzz in service", "service/c.c", "#include <hb-subset.h>", "text.c"),
    ("ICU in pdf", "workers/pdf.c", "#include <unicode/unorm2.h>", "locale.c"),
    ("a library of no table", "workers/b.c", "#include <zstd.h>", "in no table"),
    ("threads in domain", "domain/a.c", "#include <pthread.h>", "domain/ may not"),
    ("a clock in domain", "domain/a.c", "#include <time.h>", "domain/ may not"),
    ("sockets in domain", "domain/a.c", "#include <sys/socket.h>", "domain/ may not"),
    ("sockets in workers", "workers/b.c", "#include <poll.h>", "only service/ may"),
    ("sockets in service", "service/c.c", "#include <sys/socket.h>", ""),
    ("a call in domain", "domain/a.c", "int f(void) { return system (0); }", "says system"),
    ("a file in domain", "domain/a.c", "#include <stdio.h>\nint f(FILE *a);", "says FILE"),
    ("a quote as a character", "domain/a.c", "char a = '\"'; int b = system(0);", "says system"),
    ("memory in domain", "domain/a.c", "#include <stdio.h>\nint (*f)(char *) = vsnprintf;", ""),
    ("an include by macro", "workers/b.c", "#include HEADER", "by macro"),
    ("a library in its file", "workers/sign.c", "#include <openssl/evp.h>", ""),
    ("a comment", "domain/a.c", "/*\n#include <pthread.h>\n*/ // time(0)", ""),
    ("a text", "domain/a.c", 'const char *a = "/* time(0) and /";', ""),
    ("along the arrows", "service/c.c", '#include "workers/b.h"\n#include "domain/a.h"', ""),
]


def planted_is_judged(path, text, expected):
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        root = Path(name)
        for header in ("domain/a.h", "workers/b.h", "service/c.h", "tests/support/t.h", path):
            (root / header).parent.mkdir(parents=True, exist_ok=True)
            (root / header).write_text("")
        (root / path).write_text(f"{text}\n")
        faults = tree_faults(root)
        return len(faults) == 1 and expected in faults[0] if expected else not faults


def report(what, faults):
    print(f"{'not ok' if faults else 'ok'} - {what}")
    for fault in faults:
        print(f"    {fault}")
    return bool(faults)


def main():
    wrong = [name for name, *case in PLANTED if not planted_is_judged(*case)]
    failed = report(f"{len(PLANTED)} planted includes are judged rightly", wrong)
    files = product_files(ROOT)
    faults = tree_faults(ROOT) if files else ["no source file was found"]
    failed += report(f"the includes of {len(files)} files keep the arrows", faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
