#!/usr/bin/env python3
"""What the API answers: every body is of its Content-Type, every error a problem of one form.

usage: test_http_answers.py PROGRAM
"""

import base64
import json
import sys
import time

from service_under_test import (
    FIXTURES,
    JSON_TYPE,
    PROBLEM_TYPE,
    RING,
    Connection,
    Report,
    Service,
    batch_of,
    head_of,
)

REQUESTS = FIXTURES / "requests"
VECTORS = json.loads((FIXTURES / "token-vectors.json").read_text(encoding="utf-8"))
PROBLEM_MEMBERS = {"type", "title", "status", "code", "detail", "instance"}
LIST_MEMBERS = {"errors", "errors_count"}
TITLES = {
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    422: "Unprocessable Content",
    503: "Service Unavailable",
}
BODY_BYTES_MAX = 1 << 20
NO_JOB = "/v1/jobs/" + 26 * "a"
# Verified here without a gate, so without its event, and by keys that do not retire.
GATE_ONLY_REASONS = ("wrong_event", "key_retired")


def check_form(answer):
    """Whatever it is, its body is what Content-Type says."""
    kind = answer.header("Content-Type")
    assert answer.header("X-Request-Id"), answer
    if answer.status == 204:
        assert kind is None and answer.body == b"", answer
    elif kind == "application/pdf":
        assert answer.status == 200, answer
        assert answer.body.startswith(b"%PDF-") and answer.body.endswith(b"%%EOF\n"), answer
    elif kind == JSON_TYPE:
        assert answer.status in (200, 202), answer
        assert isinstance(answer.json(), dict), answer
    else:
        assert kind == PROBLEM_TYPE, answer
        check_problem(answer)
    return answer


def check_problem(answer):
    problem = answer.json()
    assert problem.keys() - LIST_MEMBERS == PROBLEM_MEMBERS, problem
    assert problem["type"] == "about:blank", problem
    assert problem["status"] == answer.status, answer
    assert problem["title"] == TITLES[answer.status], answer
    assert problem["instance"] == answer.header("X-Request-Id"), answer
    assert problem["code"] and problem["detail"], answer
    assert (answer.header("Retry-After") is not None) == (
        answer.status == 503 or problem["code"] == "not_ready"
    ), answer


class Api:
    """A service's API, each of whose answers is looked at."""

    def __init__(self, service):
        self.service = service
        self.seen = set()  # statuses of problems

    def call(self, *arguments):
        answer = check_form(self.service.call(*arguments))
        if answer.header("Content-Type") == PROBLEM_TYPE:
            self.seen.add(answer.status)
        return answer

    def expect(self, status, *arguments, code=None):
        answer = self.call(*arguments)
        assert answer.status == status, answer
        assert code is None or answer.json()["code"] == code, answer
        return answer

    def post(self, batch, target="/v1/batches", **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", target, batch, names)

    def new_job(self, tickets_count=2):
        answer = self.post(batch_of(tickets_count), Prefer="respond-async")
        assert answer.status == 202, answer
        return answer.json()["id"]

    def finished_job(self, tickets_count=2):
        job_id = self.new_job(tickets_count)
        assert self.service.wait_for_end(job_id)["state"] == "succeeded"
        return job_id


# ---- batches -------------------------------------------------------------------------------------


def check_invalid(api, folder):
    """The same errors as the library's tests and the command line have for it."""
    body = (folder / "input.json").read_bytes()
    report = json.loads((folder / "error.json").read_text(encoding="utf-8"))
    with Connection(api.service.address) as connection:
        # In a chunk, so that an empty body comes as far as any other.
        head = head_of(
            "POST", "/v1/batches", f"Content-Type: {JSON_TYPE}", "Transfer-Encoding: chunked"
        )
        chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        connection.send(head + chunk + b"0\r\n\r\n")
        answer = check_form(connection.answer())
    is_malformed = report["errors"][0]["code"] == "malformed_json"
    assert answer.status == (400 if is_malformed else 422), answer
    problem = answer.json()
    assert problem["code"] == ("malformed_json" if is_malformed else "rule_broken"), problem
    assert problem["errors"] == report["errors"], (problem["errors"], report["errors"])
    assert problem["errors_count"] == report["count"], problem


def check_valid(api, path):
    batch = json.loads(path.read_text(encoding="utf-8-sig"))
    not_offered = ["/output"] if batch.get("output", "merged") != "merged" else []
    not_offered += ["/callback_url"] if "callback_url" in batch else []
    answer = api.post(path.read_bytes())
    if not_offered:
        assert answer.status == 422, answer
        errors = [(error["pointer"], error["code"]) for error in answer.json()["errors"]]
        assert errors == [(pointer, "not_offered") for pointer in not_offered], answer
    else:
        assert answer.status == 200 and answer.header("Content-Type") == "application/pdf", answer


def check_dry_run(api):
    before = api.service.metrics()["ticketpress_tickets_total"]
    for count in (1, 60):
        answer = api.post(batch_of(count), "/v1/batches?dry_run=1")
        assert answer.status == 200, answer
        estimate = answer.json()
        assert estimate["tickets"] == count and estimate["bytes_estimate"] > 1000, estimate
    broken = api.post(batch_of(2, locale=7), "/v1/batches?dry_run=1")
    assert broken.status == 422 and broken.json()["errors"], broken
    assert api.service.metrics()["ticketpress_tickets_total"] == before
    assert api.post(batch_of(1), "/v1/batches?dry_run=0").header("Content-Type") != JSON_TYPE
    assert api.call("POST", "/v1/batches?dry_run=2", batch_of(1)).status == 400


def check_respond_async(api):
    answer = api.post(batch_of(1), Prefer="respond-async")
    job = answer.json()
    assert answer.status == 202 and job["state"] in ("queued", "running", "succeeded"), answer
    assert answer.header("Location") == job["links"]["self"] == f"/v1/jobs/{job['id']}", answer
    assert int(answer.header("Retry-After")) >= 1, answer
    assert answer.header("Preference-Applied") == "respond-async", answer
    assert api.service.wait_for_end(job["id"])["state"] == "succeeded"


def check_sizes(api):
    """At most sync-tickets-max are answered at once, whatever the preference is not."""
    assert api.post(batch_of(50)).status == 200
    assert api.post(batch_of(51)).status == 202


def check_wait(api):
    long_enough = api.post(batch_of(60), Prefer="wait=30")
    assert long_enough.status == 200, long_enough
    assert long_enough.header("Preference-Applied") == "wait", long_enough
    too_short = api.post(batch_of(3000), Prefer="wait=0")
    assert too_short.status == 202, too_short
    assert too_short.header("Preference-Applied") == "wait", too_short
    one = api.post(batch_of(1), Prefer="foo, wait=5; bar")
    assert one.status == 200 and one.header("Preference-Applied") == "wait", one


def run_batches(api, report):
    folders = sorted((REQUESTS / "invalid").iterdir())
    report.check("there are invalid requests", len(folders) >= 150, len(folders))
    for folder in folders:
        report.run(f"invalid: {folder.name}", check_invalid, api, folder)
    for path in sorted((REQUESTS / "valid").glob("*.json")):
        report.run(f"valid: {path.stem}", check_valid, api, path)
    report.run("dry_run renders nothing", check_dry_run, api)
    report.run("Prefer: respond-async", check_respond_async, api)
    report.run("sync-tickets-max", check_sizes, api)
    report.run("Prefer: wait", check_wait, api)


# ---- jobs ----------------------------------------------------------------------------------------


def check_job(api):
    job = api.service.wait_for_end(api.new_job(3))
    assert job["tickets"] == {"total": 3, "done": 3, "skipped": 0}, job
    assert job["created_at"] <= job["started_at"] <= job["finished_at"] < job["expires_at"], job
    document = api.call("GET", job["links"]["document"])
    assert document.header("Content-Type") == job["document"]["type"] == "application/pdf"
    assert len(document.body) == job["document"]["bytes"]
    assert document.header("ETag") == job["document"]["etag"]
    assert document.header("Content-Disposition").startswith("attachment;")


def check_long_poll(api):
    began = time.monotonic()
    job_id = api.new_job(2000)
    states = [api.call("GET", f"/v1/jobs/{job_id}?wait=20").json()["state"] for _ in range(2)]
    assert states[-1] == "succeeded" or states[-1] == "running", states
    assert api.service.wait_for_end(job_id)["state"] == "succeeded"
    by_header = api.call("GET", f"/v1/jobs/{job_id}", None, {"Prefer": "wait=20"})
    assert by_header.header("Preference-Applied") == "wait", by_header
    assert time.monotonic() - began < 20


def pages_of(api, target, name):
    """All entries of a list, page after page by its Link headers, and how many pages there were."""
    entries, pages_count = [], 0
    while target is not None:
        answer = api.expect(200, "GET", target)
        entries += answer.json()[name]
        pages_count += 1
        link = answer.header("Link")
        assert link is None or link.endswith('; rel="next"'), link
        target = link[1 : link.index(">")] if link is not None else None
    return entries, pages_count


def check_job_list(api):
    job_ids = [api.finished_job() for _ in range(5)]
    listed, pages_count = pages_of(api, "/v1/jobs?limit=2", "jobs")
    ids = [job["id"] for job in listed]
    assert ids[:5] == job_ids[::-1], "newest first"
    assert len(set(ids)) == len(ids) and pages_count >= 3, (ids, pages_count)
    succeeded, _ = pages_of(api, "/v1/jobs?state=succeeded&limit=3", "jobs")
    assert [job["id"] for job in succeeded][:5] == job_ids[::-1]
    assert api.expect(200, "GET", "/v1/jobs?state=failed").json()["jobs"] == []


def check_ticket_list(api):
    job_id = api.finished_job(250)
    tickets, pages_count = pages_of(api, f"/v1/jobs/{job_id}/tickets", "tickets")
    assert pages_count == 3, pages_count
    assert [ticket["id"] for ticket in tickets] == [f"tkt-{i:06}" for i in range(1, 251)]
    assert [ticket["page"] for ticket in tickets] == list(range(1, 251))
    assert len({ticket["token"] for ticket in tickets}) == 250
    small, pages_count = pages_of(api, f"/v1/jobs/{job_id}/tickets?limit=7", "tickets")
    assert small == tickets and pages_count == 36, pages_count
    beyond = api.expect(200, "GET", f"/v1/jobs/{job_id}/tickets?cursor=250").json()
    assert beyond == {"total": 250, "tickets": []}, beyond
    verdict = api.expect(200, "POST", "/v1/tokens/verify", {"token": tickets[41]["token"]}).json()
    assert verdict["valid"] and verdict["ticket_id"] == "tkt-000042", verdict


def check_delete(api):
    job_id = api.finished_job()
    api.expect(204, "DELETE", f"/v1/jobs/{job_id}")
    for target in ("", "/document", "/tickets"):
        answer = api.call("GET", f"/v1/jobs/{job_id}{target}")
        assert answer.status in (404, 410), answer
    assert api.call("DELETE", f"/v1/jobs/{job_id}").status in (404, 410)


def check_cancel(api):
    job_id = api.new_job(3000)
    api.expect(204, "DELETE", f"/v1/jobs/{job_id}")
    answer = api.call("GET", f"/v1/jobs/{job_id}?wait=10")
    assert answer.status in (404, 410) or answer.json()["state"] == "cancelled", answer


def check_not_ready(api):
    job_id = api.new_job(3000)
    api.expect(409, "GET", f"/v1/jobs/{job_id}/document", code="not_ready")
    api.expect(409, "GET", f"/v1/jobs/{job_id}/tickets", code="not_ready")
    api.expect(204, "DELETE", f"/v1/jobs/{job_id}")


def run_jobs(api, report):
    report.run("a job and its document", check_job, api)
    report.run("a long poll", check_long_poll, api)
    report.run("the list of jobs, page by page", check_job_list, api)
    report.run("the list of tickets, page by page", check_ticket_list, api)
    report.run("DELETE of a finished job", check_delete, api)
    report.run("DELETE of a running job", check_cancel, api)
    report.run("a document before its time: 409", check_not_ready, api)


# ---- tokens --------------------------------------------------------------------------------------


def check_good_token(api, vector):
    verdict = api.expect(200, "POST", "/v1/tokens/verify", {"token": vector["token"]}).json()
    assert verdict["valid"] is True, verdict
    for member in ("event_id", "ticket_id", "issue", "key_id"):
        assert verdict[member] == vector[member], (member, verdict)
    for member in ("valid_from", "valid_until"):
        assert (member in verdict) == (vector[f"{member}_minutes"] is not None), verdict


def check_bad_token(api, vector):
    verdict = api.expect(200, "POST", "/v1/tokens/verify", {"token": vector["token"]}).json()
    assert verdict == {"valid": False, "reason": vector["reason"]}, verdict


def ring_of(secrets):
    """A key ring of {id: secret} whose keys do not retire."""
    return {
        "keys": [
            {"id": key_id, "client": "*", "secret": secret, "sign_from": f"{year}-01-01T00:00:00Z"}
            for year, (key_id, secret) in enumerate(sorted(secrets.items()), 2020)
        ]
    }


def check_bad_request(api, body, status):
    answer = api.call("POST", "/v1/tokens/verify", body)
    assert answer.status == status and answer.header("Content-Type") == PROBLEM_TYPE, answer


def run_good_tokens(program, report):
    secrets = {
        vector["key_id"]: base64.urlsafe_b64encode(bytes.fromhex(vector["master_secret_hex"]))
        .decode()
        .rstrip("=")
        for vector in VECTORS["good"]
    }
    with Service(program, "--workers", 1, ring=ring_of(secrets)) as service:
        for vector in VECTORS["good"]:
            report.run(f"good token: {vector['name']}", check_good_token, Api(service), vector)


def run_bad_tokens(api, report):
    for vector in VECTORS["bad"]:
        if vector["reason"] not in GATE_ONLY_REASONS:
            name = f"bad token: {vector['name']}: {vector['reason']}"
            report.run(name, check_bad_token, api, vector)
    nul = {"token": VECTORS["good"][0]["token"] + "\0", "reason": "bad_length"}
    report.run("bad token: a good one and a NUL", check_bad_token, api, nul)
    for name, body, status in [
        ("no JSON", b"token", 422),
        ("an array", b"[]", 422),
        ("no token", b"{}", 422),
        ("a number", b'{"token": 7}', 422),
        ("a member more", b'{"token": "AQ", "event_id": "e"}', 422),
        ("the token twice", b'{"token": "AQ", "token": "AQ"}', 422),
        ("bytes behind it", b'{"token": "AQ"} x', 422),
        ("5 kB", json.dumps({"token": 5000 * "A"}).encode(), 413),
    ]:
        report.run(f"verify with {name}: {status}", check_bad_request, api, body, status)


# ---- one problem of each kind --------------------------------------------------------------------


def run_refusals(api, report):
    batch = json.dumps(batch_of(1)).encode()
    text = {"Content-Type": "text/plain"}
    gzip = {"Content-Encoding": "gzip"}
    large = BODY_BYTES_MAX * b" " + b"{"
    for status, code, arguments in [
        (400, "malformed_request", ("GET", "/%zz")),
        (400, "malformed_json", ("POST", "/v1/batches", b"{")),
        (400, "no_body", ("POST", "/v1/batches", b"")),
        (400, "unexpected_body", ("GET", "/v1/jobs", b"{}")),
        (400, "bad_query", ("GET", "/v1/jobs?limit=x")),
        (404, "no_such_path", ("GET", "/v1")),
        (404, "not_found", ("GET", NO_JOB)),
        (404, "not_found", ("GET", f"{NO_JOB}/document")),
        (404, "not_found", ("GET", f"{NO_JOB}/tickets")),
        (404, "not_found", ("DELETE", NO_JOB)),
        (404, "not_found", ("GET", "/v1/jobs/short")),
        (405, "method_not_allowed", ("PUT", "/v1/batches", batch)),
        (413, "too_large", ("POST", "/v1/batches", large)),
        (414, "too_large", ("GET", "/v1/jobs?" + 9000 * "a")),
        (415, "media_type", ("POST", "/v1/batches", batch, text)),
        (415, "content_coding", ("POST", "/v1/batches", batch, gzip)),
        (417, "expectation", ("GET", "/version", None, {"Expect": "100-continue"})),
        (422, "rule_broken", ("POST", "/v1/batches", b"{}")),
    ]:
        name = f"{status} {code}: {' '.join(str(a)[:40] for a in arguments[:2])}"
        report.run(name, lambda s=status, c=code, a=arguments: api.expect(s, *a, code=c))


def check_gone(program):
    """A job that had to make room is remembered."""
    with Service(program, "--workers", 1, "--store-jobs-max", 2) as service:
        api = Api(service)
        jobs = [api.finished_job() for _ in range(4)]
        deadline = time.monotonic() + 10
        while api.call("GET", f"/v1/jobs/{jobs[0]}").status == 200:
            assert time.monotonic() < deadline, "the oldest job is still there"
            time.sleep(0.1)
        for target in ("", "/document", "/tickets"):
            api.expect(410, "GET", f"/v1/jobs/{jobs[0]}{target}", code="gone")
        api.expect(200, "GET", f"/v1/jobs/{jobs[-1]}/document")


def check_busy(program):
    """A full queue says when to come again, and what was admitted ends."""
    with Service(program, "--workers", 1, "--queue-tickets-max", 3000) as service:
        api = Api(service)
        job_id = api.new_job(3000)
        busy = api.expect(503, "POST", "/v1/batches", batch_of(3000), code="busy")
        assert 1 <= int(busy.header("Retry-After")) <= 60, busy
        assert service.wait_for_end(job_id)["state"] == "succeeded"
        assert api.post(batch_of(3000)).status == 202


def check_draining(program):
    with Service(program, "--workers", 1) as service:
        api = Api(service)
        api.expect(200, "GET", "/readyz")
        job_id = api.new_job(3000)
        service.signal(15)
        service.wait_for_line(event="draining")
        api.expect(503, "GET", "/readyz", code="draining")
        api.expect(503, "POST", "/v1/batches", batch_of(1), code="draining")
        assert api.expect(200, "GET", "/healthz").json()["status"] == "draining"
        assert service.wait_for_end(job_id)["state"] == "succeeded"
        api.expect(200, "GET", f"/v1/jobs/{job_id}/document")
        assert service.wait() == 0


def main():
    program = sys.argv[1]
    report = Report()
    lasting = json.loads(RING.read_text(encoding="utf-8"))
    for key in lasting["keys"]:
        key.pop("verify_until", None)
    with Service(program, "--body-bytes-max", BODY_BYTES_MAX, ring=lasting) as service:
        api = Api(service)
        run_refusals(api, report)
        run_batches(api, report)
        run_jobs(api, report)
        run_bad_tokens(api, report)
        wanted = {400, 404, 405, 409, 413, 414, 415, 417, 422}
        report.check("each kind of problem was seen", api.seen >= wanted, wanted - api.seen)
        errors = service.log(level="error")
        report.check("no fault in the log", not errors and not service.other_lines, errors)
        report.check("SIGTERM ends it with status 0", service.stop() == 0)
    run_good_tokens(program, report)
    report.run("410 for a job that had to make room", check_gone, program)
    report.run("503 for a full queue", check_busy, program)
    report.run("503 while it drains", check_draining, program)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
