#!/usr/bin/env python3
"""Layouts as operators and clients meet them: files, their schema, `layouts check`, /v1/layouts.

usage: test_layouts.py PROGRAM

The schema and the program must agree on every fixture as far as a schema can tell: what it cannot
tell is listed here, and it must then find nothing. Every fault must come out of `layouts check` on
a line of its own, and stop a service that is to start with it; a running one keeps what it has.
"""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

from service_under_test import FIXTURES, PROBLEM_TYPE, ROOT, Report, Service, batch_of

DATA = ROOT / "service" / "data"
BUILT_IN = sorted((DATA / "layouts").glob("*.json"))
VALID = sorted((FIXTURES / "layouts" / "valid").glob("*.json"))
INVALID = sorted((FIXTURES / "layouts" / "invalid").iterdir())
SCHEMA_PATH = DATA / "layout.schema.json"
SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TIMEOUT_S = 60

# Faults that take arithmetic, other members, or files.
BEYOND_A_SCHEMA = {
    "bad_image",
    "modules_too_small",
    "no_margin",
    "on_quiet_zone",
    "outside_page",
    "outside_sheet",
    "texts_overlap",
    "too_long",
    "too_many",
}
BEYOND_A_SCHEMA_TOO = {"n-up-too-many-tickets", "text-box-too-low", "text-floor-above-size"}


def program_run(program, *words, **options):
    return subprocess.run(
        [str(program), *(str(word) for word in words)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        **options,
    )


# ---- the schema ----------------------------------------------------------------------------------


def schema_places(layout):
    """Where the schema has something to say, as the program's JSON Pointers would have it."""
    places = set()
    for error in VALIDATOR.iter_errors(layout):
        place = "".join(f"/{step}" for step in error.absolute_path)
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            places |= {f"{place}/{name}" for name in missing}
        else:
            places.add(place)
    return places


def check_schema_itself():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def described(schema, path=""):
    """Every member of every object of the schema: its path and its description, through a $ref."""
    for name, member in schema.get("properties", {}).items():
        if "$ref" in member and "description" not in member:
            member = SCHEMA["$defs"][member["$ref"].split("/")[-1]]
        yield f"{path}/{name}", member
    for name, definition in schema.get("$defs", {}).items():
        yield from described(definition, f"{path}/$defs/{name}")


def check_descriptions():
    for path, member in described(SCHEMA):
        if path.endswith("/type"):
            continue
        assert len(member.get("description", "")) > 10, path
        if member.get("type") in ("number", "integer") and "enum" not in member:
            assert "minimum" in member and "maximum" in member, path


def check_by_schema(layout):
    errors = list(VALIDATOR.iter_errors(layout))
    assert not errors, errors[:3]


def check_accepted_by_schema(path):
    check_by_schema(json.loads(path.read_text(encoding="utf-8")))


def check_every_member_is_used():
    """The fixtures show every member of the schema at least once, and so does every value."""
    used = set()
    for path in VALID:
        layout = json.loads(path.read_text(encoding="utf-8"))
        used |= {f"/{name}" for name in layout}
        used |= {f"/$defs/n_up/{name}" for name in layout.get("n_up", {})}
        for element in layout["elements"]:
            used |= {f"/$defs/{element['type']}/{name}" for name in element}
    known = {path for path, _ in described(SCHEMA)}
    assert used == known, (used ^ known)


def check_refused_by_schema(folder):
    report = json.loads((folder / "error.json").read_text(encoding="utf-8"))
    layout = json.loads((folder / "layout.json").read_text(encoding="utf-8"))
    told = {
        error["pointer"]
        for error in report["errors"]
        if error["code"] not in BEYOND_A_SCHEMA and folder.name not in BEYOND_A_SCHEMA_TOO
    }
    found = schema_places(layout)
    assert found == told, (found, told)


def test_schema(report):
    report.run("the schema is one", check_schema_itself)
    report.run("the schema describes every member, and bounds every number", check_descriptions)
    report.run("the valid fixtures have every member of the schema", check_every_member_is_used)
    for path in BUILT_IN + VALID:
        report.run(f"the schema accepts {path.name}", check_accepted_by_schema, path)
    for folder in INVALID:
        if not folder.name.startswith("malformed"):
            name = f"the schema sees what it can of {folder.name}"
            report.run(name, check_refused_by_schema, folder)


# ---- layouts check -------------------------------------------------------------------------------


def check_told(program, folder):
    """One line a fault: file, pointer, rule, sentence; nothing else; exit 1."""
    path = folder / "layout.json"
    expected = json.loads((folder / "error.json").read_text(encoding="utf-8"))
    done = program_run(program, "layouts", "check", path)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and done.stdout == "", done
    if not expected["errors"]:
        assert len(lines) == 1 and lines[0].startswith(f"{path}: "), lines
        assert expected["detail"] in lines[0], lines
        return
    assert len(lines) == len(expected["errors"]), lines
    for line, error in zip(lines, expected["errors"]):
        place = f"{error['pointer']}: " if error["pointer"] else ""
        begin = f"{path}: {place}{error['code']}: "
        assert line.startswith(begin) and len(line) > len(begin), (line, begin)


def check_ok_lines(program):
    done = program_run(program, "layouts", "check", *BUILT_IN, *VALID)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == "", done
    assert len(lines) == len(BUILT_IN) + len(VALID), lines
    for path, line in zip(BUILT_IN + VALID, lines):
        layout = json.loads(path.read_text(encoding="utf-8"))
        assert line.startswith(f'{path}: ok: "{layout["name"]}", '), line
        assert f"{layout['page_w_mm']:g} x {layout['page_h_mm']:g} mm" in line, line
    by_name = {path.stem: line for path, line in zip(BUILT_IN + VALID, lines)}
    assert by_name["sheet-of-eight-labels"].endswith(
        "8 tickets a page, modules of 0.5 mm (below 0.6), 0 images"
    )
    assert by_name["each-member"].endswith("1 ticket a page, modules of 0.676 mm, 1 image")


def check_mixed(program):
    """Each file is told of, whatever the others are; the exit is that of the worst."""
    bad = FIXTURES / "layouts" / "invalid" / "qr-twice" / "layout.json"
    done = program_run(program, "layouts", "check", VALID[0], bad, VALID[1])
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 2, done
    done = program_run(program, "layouts", "check", "/nowhere.json", VALID[0])
    assert done.returncode == 2 and "/nowhere.json: No such file" in done.stderr, done
    assert len(done.stdout.splitlines()) == 1, done


def check_usage(program):
    for words in [["layouts"], ["layouts", "check"], ["layouts", "list", VALID[0]]]:
        done = program_run(program, *words)
        assert done.returncode == 2 and done.stdout == "" and done.stderr != "", done


def check_sample(program):
    """The README's layout, and what it says that the program says of it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = readme.split("<!-- layout -->\n")[1].split("<!-- /layout -->")[0]
    check_by_schema(json.loads(text))
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "stub.json").write_text(text, encoding="utf-8")
        done = program_run(program.resolve(), "layouts", "check", "stub.json", cwd=name)
    assert done.returncode == 0 and f"\n    {done.stdout}" in readme, done


def test_check(report, program):
    for folder in INVALID:
        report.run(f"layouts check tells of {folder.name}", check_told, program, folder)
    report.run("layouts check has a line for each sound layout", check_ok_lines, program)
    report.run("the README's layout is sound", check_sample, program)
    report.run("layouts check goes through all files", check_mixed, program)
    report.run("layouts check refuses other words", check_usage, program)


# ---- render --layout -----------------------------------------------------------------------------


def page_size(pdf):
    info = program_run("pdfinfo", pdf).stdout
    line = next(line for line in info.splitlines() if line.startswith("Page size:"))
    words = line.split()
    return float(words[2]), float(words[4])


def check_tried(program, folder):
    batch = folder / "batch.json"
    pdf = folder / "out.pdf"
    tickets = batch_of(2, layout="no-such-layout")
    tickets["tickets"][1]["layout"] = "classic"
    batch.write_text(json.dumps(tickets), encoding="utf-8")
    words = ["render", "--data", folder, batch, "-o", pdf, "--layout"]
    done = program_run(program, *words, FIXTURES / "layouts" / "valid" / "least.json")
    assert done.returncode == 0, done
    assert page_size(pdf) == (110.551, 110.551), page_size(pdf)
    pages = program_run("pdfinfo", pdf).stdout
    assert "Pages:           2" in pages, pages
    mine = json.loads((DATA / "layouts" / "classic.json").read_text(encoding="utf-8"))
    mine["page_h_mm"] = 160
    path = folder / "mine.json"
    path.write_text(json.dumps(mine), encoding="utf-8")
    done = program_run(program, *words, path)
    assert done.returncode == 0 and abs(page_size(pdf)[1] - 160 / 25.4 * 72) < 0.01, done
    bad = FIXTURES / "layouts" / "invalid" / "several" / "layout.json"
    done = program_run(program, *words, bad)
    assert done.returncode == 2 and f"{bad}: /elements/1/color: bad_color: " in done.stderr, done
    assert len(done.stderr.splitlines()) == 8, done


def test_render(report, program):
    with tempfile.TemporaryDirectory() as name:
        report.run("render --layout prints all tickets with it", check_tried, program, Path(name))


# ---- /v1/layouts ---------------------------------------------------------------------------------


def check_list(service):
    answer = service.call("GET", "/v1/layouts")
    assert answer.status == 200 and answer.header("Content-Type") == "application/json", answer
    listed = {layout["name"]: layout for layout in answer.json()["layouts"]}
    files = {}
    for path in BUILT_IN + VALID:
        layout = json.loads(path.read_text(encoding="utf-8"))
        files[layout["name"]] = (layout, path in BUILT_IN)
    assert set(listed) == set(files), set(listed) ^ set(files)
    for name, (layout, is_built_in) in files.items():
        shown = listed[name]
        n_up = layout.get("n_up", {"columns": 1, "rows": 1})
        symbol = next(e for e in layout["elements"] if e["type"] == "qr")
        modules = {"L": 61, "M": 65, "Q": 77, "H": 85}[symbol.get("level", "M")]
        assert shown["built_in"] is is_built_in, shown
        assert shown["page_w_mm"] == layout["page_w_mm"], shown
        assert shown["page_h_mm"] == layout["page_h_mm"], shown
        assert shown["tickets_per_page"] == n_up["columns"] * n_up["rows"], shown
        assert abs(shown["module_mm"] - symbol["side_mm"] / modules) <= 0.001, shown
        assert shown["has_small_modules"] is (shown["module_mm"] < 0.6), shown
        assert len(bytes.fromhex(shown["sha256"])) == 32, shown
        assert shown["links"]["self"] == f"/v1/layouts/{name}", shown
    assert len({shown["sha256"] for shown in listed.values()}) == len(listed)
    assert answer.json()["links"] == {"schema": "/v1/layout-schema"}


def check_hash(service):
    """The README's word on the hash, computed anew."""
    path = FIXTURES / "layouts" / "valid" / "under-the-symbol.json"
    layout = json.loads(path.read_text(encoding="utf-8"))
    content = json.dumps(layout, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    photo = (path.parent / "images" / "rgb.jpg").read_bytes()
    digest = hashlib.sha256(content + hashlib.sha256(photo).digest()).hexdigest()
    assert service.call("GET", "/v1/layouts/under-the-symbol").json()["sha256"] == digest


def check_one(service):
    listed = service.call("GET", "/v1/layouts").json()["layouts"]
    for shown in listed:
        one = service.call("GET", shown["links"]["self"]).json()
        assert shown.items() <= one.items(), (shown, one)
    one = service.call("GET", "/v1/layouts/each-member").json()
    assert one["n_up"] == {
        "columns": 1,
        "rows": 1,
        "ticket_w_mm": 100,
        "ticket_h_mm": 150,
        "cut_marks": False,
    }
    assert one["labels"] == ["seat"] and one["images"] == ["images/rgb8.png"], one
    assert one["fields"] == [
        "event.name",
        "event.venue",
        "event.organizer",
        "event.doors",
        "ticket.id",
        "ticket.holder",
        "ticket.section",
        "ticket.row",
        "ticket.seat",
        "ticket.gate",
    ], one
    assert service.call("GET", "/v1/layouts/sheet-of-four").json()["n_up"]["cut_marks"] is True


def check_schema_answer(service):
    answer = service.call("GET", "/v1/layout-schema")
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/schema+json", answer
    assert answer.body == SCHEMA_PATH.read_bytes()


def check_refusals(service):
    for method, target, status, code in [
        ("GET", "/v1/layouts/none", 404, "not_found"),
        ("GET", "/v1/layouts/Classic", 404, "not_found"),
        ("GET", "/v1/layouts/class%69c", 404, "not_found"),
        ("GET", "/v1/layouts/" + 26 * "a", 404, "not_found"),
        ("GET", "/v1/layouts/", 404, "no_such_path"),
        ("GET", "/v1/layouts/classic/x", 404, "no_such_path"),
        ("GET", "/v1/layouts?limit=1", 400, "bad_query"),
        ("GET", "/v1/layouts/classic?x=1", 400, "bad_query"),
        ("GET", "/v1/layout-schema?x", 400, "bad_query"),
        ("POST", "/v1/layouts", 405, "method_not_allowed"),
        ("DELETE", "/v1/layouts/classic", 405, "method_not_allowed"),
        ("PUT", "/v1/layout-schema", 405, "method_not_allowed"),
    ]:
        answer = service.call(method, target)
        assert answer.status == status and answer.json()["code"] == code, (target, answer)
        assert answer.header("Content-Type") == PROBLEM_TYPE, (target, answer)
        if status == 405:
            assert answer.header("Allow") == "GET, HEAD", answer


def check_head(service):
    for target in ["/v1/layouts", "/v1/layouts/classic", "/v1/layout-schema"]:
        whole, head = service.call("GET", target), service.call("HEAD", target)
        assert head.status == 200 and head.body == b"", head
        for name in ["Content-Type", "Content-Length"]:
            assert head.header(name) == whole.header(name), (target, name)


def check_scopes(program):
    clients = [
        {"name": "box-office", "key": 32 * "a", "scopes": ["render"]},
        {"name": "gate", "key": 32 * "b", "scopes": ["verify"]},
    ]
    with Service(program, clients=clients) as service:
        for target in ["/v1/layouts", "/v1/layouts/classic"]:
            for key, status in [(32 * "a", 200), (32 * "b", 403), (32 * "c", 401), (None, 401)]:
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                assert service.call("GET", target, headers=headers).status == status, target
        assert service.call("GET", "/v1/layout-schema").status == 200


def test_service(report, program):
    with tempfile.TemporaryDirectory() as name:
        layouts = Path(name)
        shutil.copytree(FIXTURES / "layouts" / "valid", layouts, dirs_exist_ok=True)
        with Service(program, "--layouts", layouts) as service:
            report.run("GET /v1/layouts lists all", check_list, service)
            report.run("a layout's hash is what the README says", check_hash, service)
            report.run("GET /v1/layouts/{name} tells of one", check_one, service)
            report.run("GET /v1/layout-schema is the schema", check_schema_answer, service)
            report.run("what is asked wrongly is refused", check_refusals, service)
            report.run("HEAD is GET without the body", check_head, service)
            report.run("a broken file leaves the old layouts", check_reloads, service, layouts)
    report.run("layouts are for clients that render", check_scopes, program)


# ---- starting and reloading ----------------------------------------------------------------------


def reload(service):
    """SIGHUP; the log's line of the layouts."""
    seen = len(service.log(what="layouts"))
    service.signal(signal.SIGHUP)
    return service.wait_for_lines(seen + 1, what="layouts")[-1]


def hash_of(service, name):
    return service.call("GET", f"/v1/layouts/{name}").json().get("sha256")


def check_reloads(service, layouts):
    before = service.call("GET", "/v1/layouts").json()
    logo = layouts / "images" / "rgb8.png"
    good = logo.read_bytes()
    for text, why in [(good[:50], "PNG"), (b"", "rgb8.png"), (None, "No such file")]:
        if text is None:
            logo.unlink()
        else:
            logo.write_bytes(text)
        line = reload(service)
        assert line["event"] == "reload_failed" and why in line["error"], line
        assert "each-member.json: /elements/5/file: " in line["error"], line
        assert service.call("GET", "/v1/layouts").json() == before
        assert service.call("POST", "/v1/batches", batch_of(1, layout="images")).status == 200
    logo.write_bytes((layouts / "images" / "rgb16.png").read_bytes())
    assert reload(service)["event"] == "reloaded"
    after = service.call("GET", "/v1/layouts").json()
    changed = {
        old["name"] for old, new in zip(before["layouts"], after["layouts"]) if old != new
    }
    users = [path for path in VALID if "images/rgb8.png" in path.read_text(encoding="utf-8")]
    assert changed == {path.stem for path in users} >= {"photos"}, changed
    shutil.copy(FIXTURES / "layouts" / "invalid" / "qr-twice" / "layout.json", layouts / "z.json")
    line = reload(service)
    assert line["event"] == "reload_failed" and "z.json: /elements: " in line["error"], line
    assert service.call("GET", "/v1/layouts").json() == after
    (layouts / "z.json").unlink()
    (layouts / "least.json").unlink()
    assert reload(service)["event"] == "reloaded"
    assert service.call("GET", "/v1/layouts/least").status == 404


def check_start_is_refused(program, folder):
    """A directory of good layouts with one that is not."""
    expected = json.loads((folder / "error.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        layouts = Path(name) / "layouts"
        shutil.copytree(FIXTURES / "layouts" / "valid", layouts)
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.copytree(entry, layouts / entry.name)
            elif entry.name != "error.json":
                shutil.copy(entry, layouts / entry.name)
        words = ["serve", "--listen", "127.0.0.1:0", "--data", name, "--layouts", layouts]
        done = program_run(program, *words)
    place = expected["errors"][0]["pointer"] if expected["errors"] else expected["detail"]
    assert done.returncode == 2, done
    assert f"{layouts}/layout.json: {place}" in done.stderr or (
        not expected["errors"] and place in done.stderr
    ), done.stderr


def test_starts(report, program):
    names = ["malformed-comma", "qr-modules-too-small", "image-cut", "n-up-beyond-the-sheet", "several"]
    for name in names:
        folder = FIXTURES / "layouts" / "invalid" / name
        report.run(f"no start with {name}", check_start_is_refused, program, folder)


def main(program):
    report = Report()
    test_schema(report)
    test_check(report, program)
    test_render(report, program)
    test_service(report, program)
    test_starts(report, program)
    return report.status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
