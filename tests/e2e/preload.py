"""Preload shims: C files of shims/ that stand between the program and its libraries in a test.

    with Shims("hold_symbols", "trace_threads") as shims:
        with Service(program, env=shims.env) as service:
            ...
            shims.lines("trace_threads")

A shim notes what it sees in a file of its own, one JSON object a line, through note.h.
"""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

SHIMS = Path(__file__).resolve().parent / "shims"
LIBRARIES = ["harfbuzz", "jansson", "libcrypto", "libdeflate", "libmicrohttpd", "libqrencode"]
COMPILE_TIMEOUT_S = 120
WAIT_TIMEOUT_S = 20
POLL_S = 0.002


def compile_shim(source, library):
    flags = subprocess.run(
        ["pkg-config", "--cflags", *LIBRARIES], check=True, capture_output=True, encoding="utf-8"
    ).stdout.split()
    command = [os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-O1", "-g", "-shared"]
    command += ["-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror", *flags, "-o", library, source]
    subprocess.run([str(word) for word in command], check=True, timeout=COMPILE_TIMEOUT_S)


class Shims:
    """The named shims, compiled into a folder that goes away; env has a program load them.

    settings: more of their environment, NAME -> text, as SHIM_NAME.
    """

    def __init__(self, *names, **settings):
        self.names = names
        self.settings = settings
        self.kept = tempfile.TemporaryDirectory(prefix="ticketpress-shims-")
        self.folder = Path(self.kept.name)
        self.held = None

    def __enter__(self):
        try:
            for name in self.names:
                compile_shim(SHIMS / f"{name}.c", self.folder / f"{name}.so")
                self.notes(name).touch()
        except BaseException:
            self.kept.cleanup()
            raise
        (self.folder / "hold").touch()
        return self

    def __exit__(self, *_):
        self.release()
        self.kept.cleanup()

    def notes(self, name):
        return self.folder / f"{name}.jsonl"

    @property
    def env(self):
        env = {"LD_PRELOAD": ":".join(str(self.folder / f"{name}.so") for name in self.names)}
        env["SHIM_FOLDER"] = str(self.folder)
        env.update({f"SHIM_{name}": text for name, text in self.settings.items()})
        # The address sanitizer wants to be the first library, and takes it if it is not.
        env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return env

    def size(self, name):
        return self.notes(name).stat().st_size

    def lines(self, name, since=0):
        """What a shim has noted, from the byte `since` of its file."""
        with self.notes(name).open("rb") as notes:
            notes.seek(since)
            return [json.loads(line) for line in notes if line.endswith(b"\n")]

    def wait_for_lines(self, name, count, since=0, **members):
        """The lines that have all these members, once there are `count` of them."""
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        while True:
            lines = [line for line in self.lines(name, since) if members.items() <= line.items()]
            if len(lines) >= count:
                return lines
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{count} lines {members} of {name} did not come: {lines[-5:]}")
            time.sleep(POLL_S)

    # ---- hold_symbols ----

    def hold(self):
        """From now on, whoever comes to encode a symbol waits until release()."""
        self.held = (self.folder / "hold").open("rb")
        fcntl.flock(self.held, fcntl.LOCK_EX)

    def release(self):
        if self.held is not None:
            self.held.close()
            self.held = None
