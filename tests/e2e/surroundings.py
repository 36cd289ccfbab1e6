"""Environments of a server: locales and time zones, and a way to show that they are in force."""

import os
import subprocess
import sys

TIMEOUT_S = 60
GERMAN = "de_DE.UTF-8"
CONTROL = """
import locale, time
locale.setlocale(locale.LC_ALL, "")
print(locale.format_string("%.1f", 1.5), time.strftime("%H:%M", time.localtime(0)))
"""


def seen_by_a_program(env):
    """How 1.5 and the first moment of 1970 are written under an environment."""
    command = [sys.executable, "-c", CONTROL]
    done = subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, **env}, timeout=TIMEOUT_S
    )
    return done.stdout.decode().strip()


def german_made_in(folder):
    """The environment that has the German locale, which is compiled into the folder."""
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / GERMAN)]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return {"LC_ALL": GERMAN, "LOCPATH": str(folder)}
