#!/usr/bin/env python3
"""Ask a service for /healthz in an open loop, and say how long each answer took.

usage: pinger.py PORT PER_SECOND SECONDS

SECONDS 0: until standard input ends. Prints one JSON line: {"ms": [...], "other_answers": N}. Time
counts from when a request was due, so that one which waited for a late answer before it counts that
wait too. It is a program of its own: what its user computes meanwhile does not count.
"""

import contextlib
import json
import select
import socket
import subprocess
import sys
import time

TIMEOUT_S = 30
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: ping\r\n\r\n"


def answer_is_right(connection):
    """Read one answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return False
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return False
        body += more
    return lines[0].startswith(b"http/1.1 200 ")


def must_end():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def ping(port, per_second, seconds):
    taken_ms = []
    other_answers = 0
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    started = time.monotonic()
    while True:
        due = started + len(taken_ms) / per_second
        if due - started >= seconds if seconds > 0 else must_end():
            break
        early_s = due - time.monotonic()
        if early_s > 0:
            time.sleep(early_s)
        connection.sendall(REQUEST)
        other_answers += not answer_is_right(connection)
        taken_ms.append((time.monotonic() - due) * 1000)
    return {"ms": taken_ms, "other_answers": other_answers}


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


class Pings:
    """What a pinger has found, in words that can be compared."""

    def __init__(self, result):
        self.count = len(result["ms"])
        self.other_answers = result["other_answers"]
        self.p50_ms = round(percentile(result["ms"], 50), 2)
        self.p99_ms = round(percentile(result["ms"], 99), 2)
        self.max_ms = round(max(result["ms"]), 2)

    def __str__(self):
        return f"p50 {self.p50_ms} ms, p99 {self.p99_ms} ms, max {self.max_ms} ms of {self.count}"


@contextlib.contextmanager
def pinging(port, per_second=100):
    """Ping for as long as the block runs; a list that has the Pings afterwards."""
    command = [sys.executable, __file__, str(port), str(per_second), "0"]
    found = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield found
        output, _ = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        raise RuntimeError(f"the pinger ended with status {process.returncode}")
    found.append(Pings(json.loads(output)))


def main(arguments):
    if len(arguments) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    port, per_second, seconds = map(int, arguments)
    print(json.dumps(ping(port, per_second, seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
