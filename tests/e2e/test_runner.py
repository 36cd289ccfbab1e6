#!/usr/bin/env python3
"""tests/run counts what passed and cannot be green over a planted fault.

usage: test_runner.py [PROGRAM]

A small tree with this project's Makefile and runner is built, once clean and once with each fault.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 200

CLEAN = {
    "domain/sum.h": "int sum(int a, int b);\n",
    "domain/sum.c": '#include "domain/sum.h"\n\nint sum(int a, int b)\n{\n    return a + b;\n}\n',
    "service/main.c": "int main(void)\n{\n    return 0;\n}\n",
    "tests/domain/test_sum.c": """#include "domain/sum.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

Test(sum, adds)
{
    cr_expect(sum(1, 2) == 3);
}

Test(sum, aborts, .signal = SIGABRT)
{
    abort();
}
""",
    "tests/race/count.c": """#include <pthread.h>
#include <stdatomic.h>

static atomic_int count;

static void *add(void *unused)
{
    count++;
    return unused;
}

int main(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, &add, NULL) != 0)
        return 1;
    count++;
    return pthread_join(thread, NULL) != 0 || count != 2;
}
""",
    "tests/fuzz/replay_main.c": (ROOT / "tests/fuzz/replay_main.c").read_text(),
    "tests/fuzz/byte.c": """#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return len > 0 && data[0] == 'x';
}
""",
    "tests/fuzz/corpus/byte/a": "a",
    # Sanitizers are for those that use service_under_test: the word is enough.
    "tests/e2e/test_it.sh": """#!/bin/sh
# service_under_test
"$1"
echo 'ok - it works'
echo 'ok - twice'
""",
}

UNIT = CLEAN["tests/domain/test_sum.c"]
RACE = CLEAN["tests/race/count.c"]
LEAK = """
__attribute__((noinline)) static void lose(volatile size_t bytes)
{
    char *volatile block = malloc(bytes);

    block[0] = 1;
}

Test(sum, leaks)
{
    for (size_t i = 1; i < 9; i++)
        lose(i);
}
"""
OVERFLOW = """
Test(sum, overflows)
{
    volatile int big = 2147483647;

    cr_expect(sum(big, 1) != 0);
}
"""
LEAKING_MAIN = """#include <stdlib.h>

__attribute__((noinline)) static void lose(volatile size_t bytes)
{
    char *volatile block = malloc(bytes);

    if (block != NULL)
        block[0] = 1;
}

int main(void)
{
    for (size_t i = 1; i < 9; i++)
        lose(i);
    return 0;
}
"""

# name, part, file, its text (None: the file is taken away), the last line expected
CASES = [
    ("all is well: unit tests and their silence", "unit-asan", "", "", "3 passed, 0 failed"),
    ("all is well: races", "race-tsan", "", "", "1 passed, 0 failed"),
    ("all is well: races, addresses", "race-asan", "", "", "1 passed, 0 failed"),
    ("all is well: corpus", "fuzz-replay", "", "", "1 passed, 0 failed"),
    ("all is well: programs", "e2e", "", "", "2 passed, 0 failed"),
    ("all is well: programs, addresses", "e2e-asan", "", "", "3 passed, 0 failed"),
    ("all is well: programs, races", "e2e-tsan", "", "", "3 passed, 0 failed"),
    ("all is well: format", "format", "", "", "1 passed, 0 failed"),
    ("a wrong sum", "unit-asan", "tests/domain/test_sum.c",
     UNIT.replace("== 3", "== 4"), "2 passed, 1 failed"),
    ("a leak", "unit-asan", "tests/domain/test_sum.c", UNIT + LEAK, "3 passed, 1 failed"),
    ("undefined behaviour", "unit-asan", "tests/domain/test_sum.c",
     UNIT + OVERFLOW, "3 passed, 1 failed"),
    ("no unit test", "unit-asan", "tests/domain/test_sum.c",
     "typedef int nothing;\n", "0 passed, 1 failed"),
    ("a source that does not compile", "unit-asan", "domain/sum.c", "int\n", "0 passed, 1 failed"),
    ("a warning", "unit-asan", "domain/sum.c",
     CLEAN["domain/sum.c"].replace("{", "{\n    int unused;\n"), "0 passed, 1 failed"),
    ("a race", "race-tsan", "tests/race/count.c",
     RACE.replace("atomic_int", "int"), "0 passed, 1 failed"),
    ("a wrong count", "race-asan", "tests/race/count.c",
     RACE.replace("!= 2", "!= 3"), "0 passed, 1 failed"),
    ("no race program", "race-tsan", "tests/race/count.c", None, "0 passed, 1 failed"),
    ("an input that does harm", "fuzz-replay", "tests/fuzz/corpus/byte/a", "x",
     "0 passed, 1 failed"),
    ("a target without inputs", "fuzz-replay", "tests/fuzz/corpus/byte/a", None,
     "0 passed, 1 failed"),
    ("a check that is not ok", "e2e", "tests/e2e/test_it.sh",
     "#!/bin/sh\necho 'ok - a'\necho 'not ok - b'\n", "1 passed, 1 failed"),
    ("a script that ends early", "e2e", "tests/e2e/test_it.sh",
     "#!/bin/sh\necho 'ok - a'\nexit 3\n", "1 passed, 1 failed"),
    ("a script that says nothing", "e2e", "tests/e2e/test_it.sh",
     "#!/bin/sh\n", "0 passed, 1 failed"),
    ("a program that leaks", "e2e-asan", "service/main.c", LEAKING_MAIN, "2 passed, 1 failed"),
    ("a program with a race", "e2e-tsan", "service/main.c",
     RACE.replace("atomic_int", "int"), "2 passed, 1 failed"),
    ("a program without a race that is seen", "e2e-tsan", "service/main.c", RACE,
     "3 passed, 0 failed"),
    ("another layout of the text", "format", "domain/sum.c",
     "int sum(int a,int b){return a+b;}\n", "0 passed, 1 failed"),
    ("a part that is not there", "no-such-part", "", "", "0 passed, 1 failed"),
]


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")
    (root / path).chmod(0o755 if path.endswith(".sh") else 0o644)


def run_part(root, part):
    """What the runner printed; its status is added where it does not agree with the last line."""
    clean = {k: v for k, v in os.environ.items() if not re.fullmatch(r"MAKE.*|MFLAGS", k)}
    result = subprocess.run(
        [root / "tests/run", part],
        cwd=root,
        env=clean,
        capture_output=True,
        timeout=TIMEOUT_S,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    lines = (result.stdout + result.stderr).splitlines() or [""]
    if (result.returncode == 0) != lines[-1].endswith(" 0 failed"):
        lines.append(f"status {result.returncode}")
    return lines


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        root = Path(name)
        for path, text in CLEAN.items():
            write(root, path, text)
        for path in ("Makefile", ".clang-format", "tests/run", "tests/race/tsan.supp"):
            shutil.copy(ROOT / path, root / path)
        for what, part, path, text, expected in CASES:
            if text is None:
                (root / path).unlink()
            elif path:
                write(root, path, text)
            lines = run_part(root, part)
            is_right = lines[-1] == expected
            failed += not is_right
            print(f"{'ok' if is_right else 'not ok'} - {what}: {expected}")
            for line in [] if is_right else lines:
                print(f"    {line}")
            if path:
                write(root, path, CLEAN[path])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
