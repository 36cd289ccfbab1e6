#!/usr/bin/env python3
"""The main job over HTTP: a ticket in one round trip, a batch promised, polled and downloaded.

usage: test_service.py PROGRAM
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import check_document
from service_under_test import END_STATES, FIXTURES, PROBLEM_TYPE, Report, Service, batch_of

HERE = Path(__file__).resolve().parent
OPENING_NIGHT = FIXTURES / "requests" / "opening-night-500.json"
TIMEOUT_S = 120
JUDGED_TICKETS = 60  # of a document that every judge looks at: 500 take them too long
STATES = ["queued", "running", "succeeded"]


def run(*command, text=None):
    return subprocess.run(
        [str(word) for word in command],
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


def curl(service, path, *options):
    """What curl says of one request, as an object."""
    url = f"http://127.0.0.1:{service.port}{path}"
    result = run("curl", "-sS", "--max-time", TIMEOUT_S, "-w", "%{json}", *options, url)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def curl_batch(service, batch_path, headers, answer, *options):
    """A POST as the README shows it; headers and answer are files to write."""
    posted = ["-H", "Content-Type: application/json", "--data-binary", f"@{batch_path}"]
    return curl(service, "/v1/batches", *posted, "-D", headers, "-o", answer, *options)


def headers_of(path):
    lines = path.read_bytes().decode("latin-1").split("\r\n")
    return {name.lower(): value.strip() for name, _, value in (s.partition(":") for s in lines[1:])}


def opening_night(tickets_count):
    batch = json.loads(OPENING_NIGHT.read_text(encoding="utf-8"))
    batch["tickets"] = batch["tickets"][:tickets_count]
    return batch


def write_batch(folder, name, batch):
    path = folder / name
    path.write_text(json.dumps(batch, ensure_ascii=False), encoding="utf-8")
    return path


def ring_of(service):
    return service.folder / "ring.json"


def tickets_listed(service, job_id, limit):
    """All that /tickets says, page by page as the Link headers lead."""
    path = f"/v1/jobs/{job_id}/tickets?limit={limit}"
    tickets = []
    while path is not None:
        answer = service.call("GET", path)
        assert answer.status == 200, answer
        assert len(answer.json()["tickets"]) <= limit, answer
        tickets += answer.json()["tickets"]
        link = answer.header("Link")
        path = re.fullmatch(r'<(\S+)>; rel="next"', link)[1] if link is not None else None
    return tickets


def expect_all_judges(service, batch_path, pdf):
    program = service.program
    result = run(HERE / "check_document.py", program, ring_of(service), batch_path, pdf)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"^ok - ", result.stdout, re.M)) >= 7, result.stdout


def expect_problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.header("Content-Type") == PROBLEM_TYPE, answer
    problem = answer.json()
    assert problem["status"] == status and problem["code"] == code, answer
    assert problem["instance"] == answer.header("X-Request-Id"), answer
    return problem


# ---- one ticket ----------------------------------------------------------------------------------


def one_ticket(service, folder):
    batch = FIXTURES / "requests" / "single.json"
    pdf = folder / "one.pdf"
    said = curl_batch(service, batch, folder / "one.head", pdf)
    assert said["http_code"] == 200 and said["content_type"] == "application/pdf", said
    assert said["num_connects"] == 1 and said["num_redirects"] == 0, said
    assert int(headers_of(folder / "one.head")["content-length"]) == pdf.stat().st_size
    requests = service.wait_for_lines(1, event="request")
    assert [(r["method"], r["status"]) for r in requests] == [("POST", 200)], requests
    assert service.call("GET", "/v1/jobs").json()["jobs"] == []
    expect_all_judges(service, batch, pdf)


# ---- 500 tickets ---------------------------------------------------------------------------------


def poll_to_end(service, job_id):
    """Every answer of a client that polls all the time."""
    deadline = time.monotonic() + TIMEOUT_S
    answers = []
    while time.monotonic() < deadline:
        answer = service.call("GET", f"/v1/jobs/{job_id}")
        assert answer.status == 200, answer
        answers.append(answer.json())
        if answers[-1]["state"] in END_STATES:
            return answers
        time.sleep(0.005)
    raise TimeoutError(f"the job does not end: {answers[-1]}")


def expect_progress(answers, total):
    done = [answer["tickets"]["done"] for answer in answers]
    states = [STATES.index(answer["state"]) for answer in answers]
    assert all(answer["tickets"]["total"] == total for answer in answers), answers[0]
    assert done == sorted(done) and states == sorted(states), (done, states)
    assert any(0 < count < total for count in done), done
    assert answers[-1]["state"] == "succeeded" and done[-1] == total, answers[-1]


def expect_times(job):
    times = [job[name] for name in ("created_at", "started_at", "finished_at", "expires_at")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", t) for t in times), times
    assert times == sorted(times), times


def expect_own_tokens(service, batch, listed):
    """The list has the batch's tickets in their order, each with a token of its own."""
    ids = [ticket["id"] for ticket in batch["tickets"]]
    assert [ticket["id"] for ticket in listed] == ids, [ticket["id"] for ticket in listed[:9]]
    assert [ticket["page"] for ticket in listed] == list(range(1, len(ids) + 1))
    tokens = [ticket["token"] for ticket in listed]
    assert len(set(tokens)) == len(ids), "tokens are not distinct"
    claims = check_document.claims_of(service.program, ring_of(service), tokens)
    for number, (ticket, found) in enumerate(zip(batch["tickets"], claims), 1):
        faults = list(check_document.claim_faults(number, batch["event"], ticket, found))
        assert not faults, faults


def download(service, job, pdf):
    """The document by curl; its HEAD, its ETag and the job's words agree."""
    head = service.call("HEAD", job["links"]["document"])
    said = curl(service, job["links"]["document"], "-o", pdf, "-D", pdf.with_suffix(".head"))
    headers = headers_of(pdf.with_suffix(".head"))
    assert said["http_code"] == 200 and said["content_type"] == "application/pdf", said
    assert head.status == 200 and head.body == b"", head
    for name in ("content-length", "content-type", "etag", "content-disposition"):
        assert headers[name] == head.header(name), (name, headers[name], head)
    assert pdf.stat().st_size == job["document"]["bytes"] == int(headers["content-length"])
    assert headers["etag"] == job["document"]["etag"], headers


def large_batch(service, folder):
    batch = opening_night(500)
    body = folder / "promise.json"
    said = curl_batch(service, OPENING_NIGHT, folder / "promise.head", body)
    headers = headers_of(folder / "promise.head")
    job = json.loads(body.read_text(encoding="utf-8"))
    assert said["http_code"] == 202 and said["content_type"] == "application/json", said
    assert headers["location"] == job["links"]["self"] == f"/v1/jobs/{job['id']}", headers
    assert re.fullmatch(r"[1-9]\d*", headers["retry-after"]), headers
    assert re.fullmatch(r"[a-z2-7]{26}", job["id"]), job
    early = service.call("GET", f"{headers['location']}/document")
    expect_problem(early, 409, "not_ready")

    answers = poll_to_end(service, job["id"])
    expect_progress(answers, 500)
    expect_times(answers[-1])
    download(service, answers[-1], folder / "large.pdf")
    assert check_document.pages_count(folder / "large.pdf") == 500
    faults = list(check_document.text_faults(folder / "large.pdf", batch["tickets"]))
    assert not faults, faults[:5]
    expect_own_tokens(service, batch, tickets_listed(service, job["id"], 170))


def swapped_pages_are_seen(folder):
    tickets = opening_night(500)["tickets"]
    swapped = [*tickets[:250], tickets[251], tickets[250], *tickets[252:]]
    faults = list(check_document.text_faults(folder / "large.pdf", swapped))
    assert any("page 251" in f for f in faults) and any("page 252" in f for f in faults), faults


def judged_batch(service, folder):
    """The tokens that are listed are those that are printed."""
    batch = opening_night(JUDGED_TICKETS)
    path = write_batch(folder, "judged.json", batch)
    answer = service.call("POST", "/v1/batches", path.read_bytes())
    assert answer.status == 202, answer
    job = service.wait_for_end(answer.json()["id"])
    download(service, job, folder / "judged.pdf")
    expect_all_judges(service, path, folder / "judged.pdf")
    listed = tickets_listed(service, job["id"], 100)
    render = check_document.render_mupdf
    printed, faults = check_document.page_tokens(render, folder / "judged.pdf", JUDGED_TICKETS)
    assert not faults, faults
    expected = {ticket["page"]: [ticket["token"]] for ticket in listed}
    assert len(expected) == JUDGED_TICKETS and printed == expected


def tokens_are_judged(service):
    """By the service as by the program, and a changed one is refused."""
    job = service.call("POST", "/v1/batches", batch_of(2), {"Prefer": "respond-async"}).json()
    service.wait_for_end(job["id"])
    token = tickets_listed(service, job["id"], 10)[1]["token"]
    verdict = service.call("POST", "/v1/tokens/verify", {"token": token}).json()
    by_program = check_document.claims_of(service.program, ring_of(service), [token])[0]
    assert verdict["valid"] is True and verdict["ticket_id"] == "tkt-000002", verdict
    assert verdict == by_program, (verdict, by_program)
    changed = token[:-1] + ("A" if token[-1] != "A" else "Q")
    verdict = service.call("POST", "/v1/tokens/verify", {"token": changed}).json()
    assert verdict["valid"] is False and verdict["reason"], verdict


# ---- synchronous or not --------------------------------------------------------------------------


def post(service, tickets_count, prefer=None, query=""):
    headers = {"Prefer": prefer} if prefer is not None else {}
    started = time.monotonic()
    answer = service.call("POST", f"/v1/batches{query}", batch_of(tickets_count), headers, TIMEOUT_S)
    return answer, time.monotonic() - started


def expect_document(answer, pages, applied=None):
    assert answer.status == 200 and answer.header("Content-Type") == "application/pdf", answer
    assert answer.header("Preference-Applied") == applied, answer
    with tempfile.NamedTemporaryFile(suffix=".pdf") as pdf:
        pdf.write(answer.body)
        pdf.flush()
        assert check_document.pages_count(pdf.name) == pages


def expect_promise(service, answer, applied=None):
    assert answer.status == 202, answer
    assert answer.header("Preference-Applied") == applied, answer
    assert answer.header("Location") and answer.header("Retry-After"), answer
    assert service.wait_for_end(answer.json()["id"])["state"] == "succeeded"


def size_decides(service):
    expect_document(post(service, 50)[0], 50)
    expect_promise(service, post(service, 51)[0])


def respond_async(service):
    for count in (1, 50):
        expect_promise(service, post(service, count, "respond-async")[0], "respond-async")
    expect_promise(service, post(service, 1, "wait=10, respond-async")[0], "respond-async")


def wait_is_kept(service):
    for count in (1, 2, 500):
        expect_document(post(service, count, "wait=60")[0], count, "wait")


def wait_ends(service):
    """20,000 tickets take one worker longer than a second."""
    answer, took_s = post(service, 20000, "wait=1")
    assert 1 <= took_s < 5, took_s
    expect_promise(service, answer, "wait")
    expect_promise(service, post(service, 2000, "wait=0")[0], "wait")


def slow_small_batch(program):
    with Service(program, "--workers", 1, "--sync-tickets-max", 1000, "--sync-wait-ms", 1) as service:
        expect_promise(service, post(service, 1000)[0])


def nothing_is_synchronous(program):
    with Service(program, "--sync-tickets-max", 0) as service:
        expect_promise(service, post(service, 1)[0])


# ---- waiting polls -------------------------------------------------------------------------------


def timed_poll(service, job_id, query="", headers=None):
    started = time.monotonic()
    answer = service.call("GET", f"/v1/jobs/{job_id}{query}", None, headers, TIMEOUT_S)
    assert answer.status == 200, answer
    return answer, time.monotonic() - started


def polls_wait_for_a_change(service):
    """Running for some seconds: a short wait ends first, then the end is what ends a long one."""
    job_id = post(service, 20000)[0].json()["id"]
    deadline = time.monotonic() + TIMEOUT_S
    while timed_poll(service, job_id)[0].json()["state"] == "queued":
        assert time.monotonic() < deadline, "it does not start"
    answer, took_s = timed_poll(service, job_id, "?wait=1")
    assert answer.json()["state"] == "running" and 1 <= took_s < 3, (took_s, answer)
    assert timed_poll(service, job_id)[1] < 1
    answer, took_s = timed_poll(service, job_id, "", {"Prefer": "wait=60"})
    assert answer.json()["state"] == "succeeded" and took_s < 55, (took_s, answer)
    assert answer.header("Preference-Applied") == "wait", answer
    answer, took_s = timed_poll(service, job_id, "?wait=60")
    assert answer.json()["state"] == "succeeded" and took_s < 1, (took_s, answer)


def wait_has_its_range(service):
    job_id = post(service, 51)[0].json()["id"]
    assert service.wait_for_end(job_id)["state"] == "succeeded"
    for wait in ("0", "60"):
        assert timed_poll(service, job_id, f"?wait={wait}")[0].status == 200
    for wait in ("61", "-1", "", "1.5", "a"):
        expect_problem(service.call("GET", f"/v1/jobs/{job_id}?wait={wait}"), 400, "bad_query")


# ---- dry run -------------------------------------------------------------------------------------


def dry_run(service):
    before = service.metrics()["ticketpress_tickets_total"]
    answer, _ = post(service, 500, query="?dry_run=1")
    assert answer.status == 200 and answer.header("Content-Type") == "application/json", answer
    estimate = answer.json()
    assert set(estimate) == {"tickets", "bytes_estimate"} and estimate["tickets"] == 500, estimate
    assert service.metrics()["ticketpress_tickets_total"] == before
    job = service.wait_for_end(post(service, 500)[0].json()["id"])
    assert 0.5 < estimate["bytes_estimate"] / job["document"]["bytes"] < 2, (estimate, job)
    assert post(service, 1, query="?dry_run=0")[0].header("Content-Type") == "application/pdf"
    for query in ("?dry_run=2", "?dry_run=", "?dry-run=1"):
        expect_problem(post(service, 1, query=query)[0], 400, "bad_query")


def dry_run_says_all_errors(service):
    batch = batch_of(4)
    batch["tickets"][1]["holder"] = "x" * 5000
    batch["tickets"][3]["price"] = {"amount": 100, "currency": "???"}
    answer = service.call("POST", "/v1/batches?dry_run=1", batch)
    problem = expect_problem(answer, 422, "rule_broken")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/tickets/1/holder", "/tickets/3/price/currency"], problem
    assert all(error["code"] and error["detail"] for error in problem["errors"]), problem


def dry_run_knows_the_layouts(service):
    answer = service.call("POST", "/v1/batches?dry_run=1", batch_of(1, layout="no-such-layout"))
    problem = expect_problem(answer, 422, "rule_broken")
    assert [error["pointer"] for error in problem["errors"]] == ["/layout"], problem


# ---- the end -------------------------------------------------------------------------------------


def leaves_nothing(service):
    """Nothing runs, listens or holds the port after a stop."""
    post(service, 500)
    started = time.monotonic()
    assert service.stop() == 0, service.other_lines
    assert time.monotonic() - started < 20
    assert not Path(f"/proc/{service.pid}").exists()
    try:
        socket.create_connection(service.address, 1).close()
    except ConnectionRefusedError:
        return
    raise AssertionError("something listens still")


def main(program):
    report = Report()
    # One worker and small slices: progress is there to be seen, and a long job is long.
    with Service(program, "--workers", 1, "--slice-tickets", 8) as service, \
            tempfile.TemporaryDirectory(prefix="ticketpress-") as name:
        folder = Path(name)
        report.run("curl has one ticket in one round trip", one_ticket, service, folder)
        report.run("500 tickets are promised, polled and downloaded", large_batch, service, folder)
        report.run("pages that changed places would be seen", swapped_pages_are_seen, folder)
        report.run(f"{JUDGED_TICKETS} tickets please every judge", judged_batch, service, folder)
        report.run("listed tokens verify, changed ones do not", tokens_are_judged, service)
        report.run("50 tickets are answered at once, 51 promised", size_decides, service)
        report.run("respond-async is always a promise", respond_async, service)
        report.run("wait=60 brings a document of any size", wait_is_kept, service)
        report.run("wait=1 becomes a promise after a second", wait_ends, service)
        report.run("polls wait for a change", polls_wait_for_a_change, service)
        report.run("a poll waits 0 to 60 seconds", wait_has_its_range, service)
        report.run("a dry run counts and renders nothing", dry_run, service)
        report.run("a dry run says all errors at once", dry_run_says_all_errors, service)
        report.run("a dry run knows the layouts", dry_run_knows_the_layouts, service)
        report.run("a stopped service leaves nothing behind", leaves_nothing, service)
        report.check("nothing but JSON was logged", not service.other_lines, service.other_lines)
    report.run("a small batch that is late becomes a promise", slow_small_batch, program)
    report.run("sync-tickets-max 0 promises a single ticket", nothing_is_synchronous, program)
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
