#!/usr/bin/env python3
"""Opening night: does /healthz stay quick while 500-ticket batches keep every core busy?

usage: opening_night.py PROGRAM [SECONDS]

An open loop of 100 requests a second, latency from when each was due: at rest, with a batch every 2
seconds, and with two batches always in flight; SECONDS each, 30. Each batch is posted, waited for
and downloaded by a client at the workers' priority: it has a machine of its own on the night, and
here it must not be what is late. Prints one JSON line a case, then a table beside the figures of
others on this kind of machine. Exit status 0 unless an answer was wrong: the figures are for the
reader, who knows what else the machine did.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

from pinger import pinging  # noqa: E402  pylint: disable=wrong-import-position
from service_under_test import FIXTURES, Service  # noqa: E402  pylint: disable=wrong-import-position

BATCH = (FIXTURES / "requests" / "opening-night-500.json").read_bytes()
SECONDS = 30
EVERY_S = 2
TIMEOUT_S = 60
CLIENT_NICE = 10

# p99 in ms of the same scenario: others were measured earlier, on two cores as well.
CASES = ["rest", "every 2 s", "two in flight"]
OTHERS = [
    ("Node.js, main thread", ["2.1 to 2.3", "1,413 to 1,459", ""]),
    ("Node.js, pool", ["2.1 to 2.3", "3.6 to 3.9", "4.0 to 5.6"]),
    ("Go server", ["1.5", "5", "25"]),
]


class Batches:
    """Posts batches until told to stop."""

    def __init__(self, service, every_s):
        self.service = service
        self.every_s = every_s  # 0: the next as soon as one has ended
        self.must_stop = threading.Event()
        self.took_ms = []
        self.faults = []

    def one(self):
        started = time.monotonic()
        answer = self.service.call("POST", "/v1/batches", BATCH, timeout_s=TIMEOUT_S)
        if answer.status != 202:
            raise AssertionError(f"{answer}")
        job = self.service.wait_for_end(answer.json()["id"])
        document = self.service.call("GET", job["links"]["document"], timeout_s=TIMEOUT_S)
        if job["state"] != "succeeded" or len(document.body) != job["document"]["bytes"]:
            raise AssertionError(f"{job}")
        self.service.call("DELETE", job["links"]["self"])
        self.took_ms.append((time.monotonic() - started) * 1000)

    def run(self):
        due = time.monotonic()
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), CLIENT_NICE)  # this thread's
        try:
            while not self.must_stop.is_set():
                self.one()
                due += self.every_s
                self.must_stop.wait(max(0, due - time.monotonic()) if self.every_s > 0 else 0)
        except (AssertionError, OSError, KeyError, ValueError) as fault:
            self.faults.append(str(fault))


def measure(service, case, seconds, clients):
    threads = [threading.Thread(target=client.run) for client in clients]
    with pinging(service.port) as pings:
        for thread in threads:
            thread.start()
        time.sleep(seconds)
    for client in clients:
        client.must_stop.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
    took = sorted(ms for client in clients for ms in client.took_ms)
    found = {
        "case": case,
        "p50_ms": pings[0].p50_ms,
        "p99_ms": pings[0].p99_ms,
        "max_ms": pings[0].max_ms,
        "pings": pings[0].count,
        "batches": len(took),
        "batch_p50_ms": round(took[len(took) // 2], 1) if took else None,
        "load_average": round(os.getloadavg()[0], 2),
        "faults": [f for c in clients for f in c.faults] + ["wrong answer"] * pings[0].other_answers,
    }
    print(json.dumps(found), flush=True)
    return found


def print_table(results):
    print(f"\n{'p99 of /healthz, ms':<24}" + "".join(f"{case:>18}" for case in CASES))
    print(f"{'ticketpress':<24}" + "".join(f"{found['p99_ms']:>18}" for found in results))
    for name, figures in OTHERS:
        print(f"{name:<24}" + "".join(f"{figure:>18}" for figure in figures))
    rest = results[0]["p99_ms"]
    for found in results[1:]:
        print(f"{found['case']}: {found['p99_ms'] / rest:.2f}x the p99 at rest, p50 {found['p50_ms']} ms,"
              f" max {found['max_ms']} ms; {found['batches']} batches, {found['batch_p50_ms']} ms each")


def main(program, seconds=SECONDS):
    seconds = int(seconds)
    with Service(program) as service:
        Batches(service, 0).one()  # whatever is done once is done
        results = [
            measure(service, CASES[0], seconds, []),
            measure(service, CASES[1], seconds, [Batches(service, EVERY_S)]),
            measure(service, CASES[2], seconds, [Batches(service, 0), Batches(service, 0)]),
        ]
    print_table(results)
    return 1 if any(found["faults"] for found in results) else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
