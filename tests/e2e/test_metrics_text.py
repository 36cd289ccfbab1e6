#!/usr/bin/env python3
"""What /metrics says pleases promtool, and its counters are what clients have counted.

usage: test_metrics_text.py PROGRAM
"""

import collections
import json
import re
import subprocess
import sys
import time

from service_under_test import Report, Service, batch_of, post_of

TIMEOUT_S = 60
COUNTED_WITHIN_S = 5
CLIENTS = [
    {"name": "all", "key": "a" * 32, "scopes": ["render", "verify", "admin"]},
    {"name": "verifier", "key": "v" * 32, "scopes": ["verify"]},
]
ALL, VERIFIER = ({"Authorization": f"Bearer {client['key']}"} for client in CLIENTS)
SMALL = ("--queue-tickets-max", 2000, "--body-bytes-max", 1 << 20, "--tickets-max", 5000,
         "--body-timeout-ms", 1000)
SAMPLE = re.compile(r'ticketpress_(\w+)(?:\{(.*)\})? (\S+)')


def promtool(text):
    return subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          timeout=TIMEOUT_S, check=False)


def expect_pleased(text):
    """Not even a hint: promtool prints those and ends with 3."""
    result = promtool(text)
    said = result.stdout + result.stderr
    assert result.returncode == 0 and said == b"", (result.returncode, said.decode())


def planted_faults_are_seen(text):
    for old, new in ((b"# HELP ticketpress_tickets_total ", b"# "),
                     (b'le="+Inf"', b'le="x"'),
                     (b"tickets_total counter\n", b"tickets_total gauge\n"),
                     (b"_tickets_total", b"_tickets")):
        fault = text.replace(old, new)
        assert fault != text and promtool(fault).returncode != 0, new


class Traffic:
    """Sends requests of all kinds and counts what came back."""

    def __init__(self, service):
        self.service = service
        self.answers = collections.Counter()  # (method, route, code)
        self.documents = []  # sizes
        self.tickets = 0
        self.jobs = collections.Counter()  # state
        self.refused = collections.Counter()  # cause

    def call(self, method, route, body=None, headers=None, query="", path=None, cause=None):
        headers = {**ALL, **(headers or {})}
        answer = self.service.call(method, (path or route) + query, body, headers, TIMEOUT_S)
        self.answers[method, route, answer.status] += 1
        if cause is not None:
            self.refused[cause] += 1
        return answer

    def document(self, tickets_count, size):
        self.tickets += tickets_count
        self.documents.append(size)

    def batch(self, tickets_count, prefer):
        return self.call("POST", "/v1/batches", batch_of(tickets_count), {"Prefer": prefer})

    def at_once(self, tickets_count):
        answer = self.batch(tickets_count, "wait=60")
        assert answer.status == 200, answer
        self.document(tickets_count, len(answer.body))
        if tickets_count > 1:  # a single ticket is none
            self.jobs["succeeded"] += 1

    def job(self, tickets_count):
        """Promised, polled, listed, downloaded, erased."""
        answer = self.batch(tickets_count, "respond-async")
        assert answer.status == 202, answer
        path = answer.header("Location")
        route = "/v1/jobs/{id}"
        while True:
            job = self.call("GET", route, path=path, query="?wait=30").json()
            if job["state"] not in ("queued", "running"):
                break
        assert job["state"] == "succeeded", job
        self.jobs["succeeded"] += 1
        self.document(tickets_count, job["document"]["bytes"])
        for method in ("HEAD", "GET"):
            self.call(method, f"{route}/document", path=f"{path}/document")
        tickets = self.call("GET", f"{route}/tickets", path=f"{path}/tickets").json()["tickets"]
        self.call("POST", "/v1/tokens/verify", {"token": tickets[0]["token"]})
        self.call("POST", "/v1/tokens/verify", {"token": "no token"})
        assert self.call("DELETE", route, path=path).status == 204
        assert self.call("GET", route, path=path).status == 404

    def cancelled_job(self):
        path = self.batch(2000, "respond-async").header("Location")
        full = self.call("POST", "/v1/batches", batch_of(2000), cause="busy")
        assert full.status == 503, full
        assert self.call("DELETE", "/v1/jobs/{id}", path=path).status == 204
        self.jobs["cancelled"] += 1

    def refused_batches(self):
        route = "/v1/batches"
        rows = [
            (422, {"body": batch_of(0), "cause": "batch"}),
            (400, {"body": b"{", "cause": "batch"}),
            (413, {"body": batch_of(2001), "cause": "too_large"}),
            (413, {"body": b" " * (1 << 20) + b" "}),
            (415, {"body": b"{}", "headers": {"Content-Type": "text/plain"}}),
            (401, {"body": b"{}", "headers": {"Authorization": "Bearer x"}, "cause": "unauthorized"}),
            (403, {"body": b"{}", "headers": VERIFIER, "cause": "forbidden"}),
            (400, {"body": batch_of(1), "query": "?dry_run=7"}),
        ]
        for status, row in rows:
            answer = self.call("POST", route, **row)
            assert answer.status == status, (status, answer)
        assert self.call("POST", route, batch_of(9), query="?dry_run=1").status == 200
        assert self.call("PUT", route, b"").status == 405
        self.answers["other", route, 405] = self.answers.pop(("PUT", route, 405))

    def small_things(self):
        for route in ("/healthz", "/readyz", "/version", "/metrics", "/v1/jobs"):
            for method in ("GET", "HEAD"):
                assert self.call(method, route).status == 200
        assert self.call("POST", "/healthz", b"{}").status == 405
        for path in ("/", "/nowhere", "/v1/jobs/"):
            assert self.call("GET", "other", path=path).status == 404
        for path in ("/v1/jobs/x", f"/v1/jobs/{'a' * 26}"):
            assert self.call("GET", "/v1/jobs/{id}", path=path).status == 404
        assert self.call("GET", "/v1/jobs", query="?limit=0").status == 400

    def half_a_request(self):
        """Its client goes away in the middle of the body: counted as answered by nothing."""
        key = f"Authorization: {ALL['Authorization']}"
        with self.service.connect() as connection:
            connection.send(post_of(b"{}" * 100, key)[:-50])
        self.answers["POST", "/v1/batches", "none"] += 1

    def all_kinds(self):
        self.small_things()
        for count in (1, 1, 2, 50):
            self.at_once(count)
        self.job(51)
        self.job(500)
        self.refused_batches()
        self.half_a_request()
        self.cancelled_job()


def samples_of(text):
    """{(name, labels): value}"""
    samples = {}
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert (name, labels) not in samples, line
            samples[name, labels] = float(value)
    return samples


def expected_samples(traffic):
    expected = {("tickets_total", None): traffic.tickets,
                ("documents_bytes_total", None): sum(traffic.documents),
                ("job_duration_seconds_count", None): sum(traffic.jobs.values())}
    for (method, route, code), count in traffic.answers.items():
        labels = f'method="{method}",route="{route}",code="{code}"'
        expected["http_requests_total", labels] = count
    for state in ("succeeded", "failed", "cancelled", "other"):
        expected["jobs_total", f'state="{state}"'] = traffic.jobs[state]
    for cause in ("batch", "busy", "too_large", "unauthorized", "forbidden", "draining", "other"):
        expected["rejections_total", f'cause="{cause}"'] = traffic.refused[cause]
    return expected


def faults_of(traffic, text):
    samples = samples_of(text)
    expected = expected_samples(traffic)
    faults = [f"{key}: {samples.get(key)}, not {value}" for key, value in expected.items()
              if samples.get(key) != value]
    counted = {key for key in samples if key[0] == "http_requests_total"}
    return faults + [f"{key}: {samples[key]}, never sent" for key in counted - expected.keys()]


def scrape(traffic):
    """A scrape is counted when it has been sent, so it does not say itself."""
    answer = traffic.service.call("GET", "/metrics")
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8", answer
    return answer.body


def counters_agree(traffic):
    """An answer is counted after its last byte, which its client may have before."""
    deadline = time.monotonic() + COUNTED_WITHIN_S
    while True:
        text = scrape(traffic)
        faults = faults_of(traffic, text)
        if not faults:
            break
        traffic.answers["GET", "/metrics", 200] += 1
        if time.monotonic() > deadline:
            raise AssertionError("\n".join(faults))
        time.sleep(0.1)
    traffic.answers["GET", "/metrics", 200] += 1
    return text


def histograms_are_sums(traffic):
    samples = samples_of(scrape(traffic))
    routes = collections.Counter()
    for (name, labels), value in samples.items():
        if name == "http_requests_total":
            routes[re.search(r'route="(.*?)"', labels)[1]] += value
    for route, count in routes.items():
        name, labels = "http_request_duration_seconds", f'route="{route}"'
        buckets = [value for (n, l), value in samples.items()
                   if n == f"{name}_bucket" and l.startswith(labels + ",")]
        assert buckets == sorted(buckets) and buckets[-1] == count, (route, buckets, count)
        assert samples[f"{name}_count", labels] == count, route
        assert samples[f"{name}_sum", labels] > 0, route


def gauges_come_to_rest(traffic):
    samples = samples_of(scrape(traffic))
    for name in ("jobs_running", "queued_tickets", "http_parked_connections", "pool_threads_busy",
                 "http_request_bytes_held", "log_lines_lost_total", "pool_threads_given_up_total"):
        assert samples[name, None] == 0, (name, samples[name, None])
    assert samples["http_connections", None] >= 1
    assert samples["pool_tasks_total", 'outcome="timed_out"'] == 0


def says_nothing_personal(traffic):
    text = scrape(traffic).decode()
    batch = batch_of(1)
    for secret in (batch["tickets"][0]["holder"], batch["tickets"][0]["id"], batch["event"]["name"],
                   *(client["key"] for client in CLIENTS)):
        assert secret not in text and secret not in json.dumps(traffic.service.lines), secret


def main(program):
    report = Report()
    with Service(program, "--workers", 1, *SMALL, clients=CLIENTS) as service:
        traffic = Traffic(service)
        text = scrape(traffic)
        traffic.answers["GET", "/metrics", 200] += 1
        report.run("promtool likes the metrics of a service that just started", expect_pleased, text)
        report.run("promtool sees planted faults", planted_faults_are_seen, text)
        report.run("traffic of all kinds", traffic.all_kinds)
        report.run("every counter agrees with what was sent", counters_agree, traffic)
        report.run("promtool likes them after that", expect_pleased, scrape(traffic))
        report.run("histograms hold each request once", histograms_are_sums, traffic)
        report.run("gauges come to rest", gauges_come_to_rest, traffic)
        report.run("nothing personal or secret is in them, or in the log", says_nothing_personal,
                   traffic)
        report.check("the service stops", service.stop() == 0 and not service.other_lines,
                     service.other_lines)
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
