"""A ticketpress service of one's own, and clients that never hang.

    with Service(program, "--workers", "1") as service:
        answer = service.call("POST", "/v1/batches", batch)
        with service.connect() as connection:
            connection.send(b"GET /healthz HTTP/1.1\\r\\nHost: t\\r\\n\\r\\n")
            answer = connection.answer()

Each service has a folder of its own for its data, a copy of the test key ring, and a port that the
system chose. Every wait has a time-out, after which it raises.
"""

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "fixtures"
RING = FIXTURES / "keys" / "test-ring.json"
START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 30
TIMEOUT_S = 10
JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
SANITIZED = bool(os.environ.get("TP_TEST_SANITIZED"))
END_STATES = ("succeeded", "failed", "cancelled")


class Answer:
    """One answer: status, headers in their order, body."""

    def __init__(self, status, headers, body, version="HTTP/1.1"):
        self.status = status
        self.headers = headers
        self.body = body
        self.version = version

    def header(self, name):
        """The value of a header that is there once; None when it is not there."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        if len(values) > 1:
            raise AssertionError(f"{name} is there {len(values)} times")
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]!r}"


class Connection:
    """A raw connection: bytes go out as given, answers are read one by one."""

    def __init__(self, address, timeout_s=TIMEOUT_S):
        self.timeout_s = timeout_s
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Close with a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, to_head=False, timeout_s=None):
        """The next answer, interim ones (1xx) too; None when the connection ends before it.

        Raises TimeoutError when nothing comes, EOFError when it ends in the middle.
        """
        deadline = time.monotonic() + (timeout_s or self.timeout_s)
        while b"\r\n\r\n" not in self.read:
            if not self._more(deadline):
                if self.read:
                    raise EOFError(f"the connection ended in a header: {self.read[:200]!r}")
                return None
        head, _, self.read = self.read.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ")[:2]
        headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        answer = Answer(int(status), headers, b"", version)
        if not to_head and answer.status >= 200 and answer.status not in (204, 304):
            answer.body = self._body(answer, deadline)
        return answer

    def _body(self, answer, deadline):
        length = answer.header("Content-Length")
        if length is None:
            raise AssertionError(f"an answer without Content-Length: {answer}")
        while len(self.read) < int(length):
            if not self._more(deadline):
                raise EOFError(f"the connection ended in a body: {answer}")
        body, self.read = self.read[: int(length)], self.read[int(length) :]
        return body

    def _more(self, deadline):
        """Read what there is; False at the end of the connection."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no answer; so far {self.read[:200]!r}")
        self.socket.settimeout(left_s)
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self.read += data
        return len(data) > 0

    def read_more(self, timeout_s=None):
        """Read what there is, to self.read; False at the end of the connection."""
        return self._more(time.monotonic() + (timeout_s or self.timeout_s))

    def is_open(self):
        """Whether the service still takes requests here: asked by one more."""
        try:
            self.send(b"GET /version HTTP/1.1\r\nHost: probe\r\n\r\n")
            answer = self.answer()
        except (BrokenPipeError, ConnectionResetError):
            return False
        return answer is not None

    def is_ended(self, timeout_s=None):
        """Whether the service ends the connection within the time, without sending more."""
        deadline = time.monotonic() + (timeout_s or self.timeout_s)
        try:
            return not self.read and not self._more(deadline)
        except TimeoutError:
            return False


class Service:
    """A running service. Options are added to those that make it private.

    clients: of its --client-keys, [{"name", "key", "scopes"}]; ring: its key ring, as an object.
    """

    def __init__(self, program, *options, clients=None, ring=None, env=None):
        self.program = str(program)
        self.options = [str(option) for option in options]
        self.clients = clients
        self.ring = ring if ring is not None else json.loads(RING.read_text(encoding="utf-8"))
        self.env = env or {}
        self.stack = contextlib.ExitStack()
        self.process = None
        self.port = None
        self.lines = []  # of the log, as objects
        self.other_lines = []  # whatever else came on stderr
        self.log_changed = threading.Condition()
        self.reader = None

    # ---- life ----

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, fault, *_):
        try:
            if SANITIZED and fault is None and self.process.poll() is None:
                self._stop_at_once()
        finally:
            self.kill()

    def _stop_at_once(self):
        """A sanitizer looks for leaks when a process ends by itself."""
        self.signal(signal.SIGTERM)
        self.wait_for_line(event="draining")
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, f"the service ended with status {status}: {self.other_lines[-40:]}"

    def start(self):
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        ring = self.folder / "ring.json"
        ring.touch(mode=0o600)
        ring.write_text(json.dumps(self.ring), encoding="utf-8")
        (self.folder / "data").mkdir(mode=0o700)
        command = [self.program, "serve", "--listen", "127.0.0.1:0"]
        command += ["--data", str(self.folder / "data"), "--signing-keys", str(ring)]
        if self.clients is not None:
            command += ["--client-keys", str(self._client_file())]
        self.process = subprocess.Popen(
            command + self.options,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **self.env},
        )
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.port = self.wait_for_line(START_TIMEOUT_S, event="listening")["port"]
        self.wait_for_line(START_TIMEOUT_S, event="ready")
        return self

    def _client_file(self):
        path = self.folder / "clients.json"
        path.touch(mode=0o600)
        entries = [
            {
                "name": client["name"],
                "key_sha256": hashlib.sha256(client["key"].encode()).hexdigest(),
                "scopes": client["scopes"],
            }
            for client in self.clients
        ]
        path.write_text(json.dumps({"clients": entries}), encoding="utf-8")
        return path

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout_s=STOP_TIMEOUT_S):
        """The exit status, once the process has ended and its log is read."""
        status = self.process.wait(timeout=timeout_s)
        self.reader.join(timeout=TIMEOUT_S)
        return status

    def stop(self, timeout_s=STOP_TIMEOUT_S):
        """SIGTERM; the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self):
        """End it whatever it does, and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=TIMEOUT_S)
        if self.reader is not None:
            self.reader.join(timeout=TIMEOUT_S)
            self.process.stderr.close()
        self.stack.close()

    # ---- log ----

    def _read_log(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace")
            with self.log_changed:
                try:
                    self.lines.append(json.loads(text))
                except ValueError:
                    self.other_lines.append(text)
                self.log_changed.notify_all()
        with self.log_changed:
            self.log_changed.notify_all()

    def log(self, **members):
        """The lines so far that have all these members."""
        with self.log_changed:
            return [line for line in self.lines if members.items() <= line.items()]

    def wait_for_lines(self, count, timeout_s=TIMEOUT_S, **members):
        """The lines that have all these members, once there are `count` of them."""
        deadline = time.monotonic() + timeout_s
        with self.log_changed:
            while True:
                found = [line for line in self.lines if members.items() <= line.items()]
                if len(found) >= count:
                    return found
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self.reader.is_alive():
                    raise TimeoutError(
                        f"{count} lines {members} did not come; status {self.process.poll()}, "
                        f"log {self.lines[-5:]} {self.other_lines[-20:]}"
                    )
                self.log_changed.wait(min(left_s, 0.5))

    def wait_for_line(self, timeout_s=TIMEOUT_S, **members):
        return self.wait_for_lines(1, timeout_s, **members)[0]

    # ---- clients ----

    def connect(self, timeout_s=TIMEOUT_S):
        return Connection(self.address, timeout_s)

    def call(self, method, path, body=None, headers=None, timeout_s=TIMEOUT_S):
        """One request on a connection of its own. A body that is no bytes goes out as JSON."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", JSON_TYPE)
        connection = http.client.HTTPConnection(*self.address, timeout=timeout_s)
        try:
            # One who has heard enough may answer and close before all is sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    def metrics(self):
        """What /metrics says: {'name{labels}': value}."""
        text = self.call("GET", "/metrics").body.decode()
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def wait_for_end(self, job_id, timeout_s=60, headers=None):
        """The job, once it is in an end state."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            job = self.call("GET", f"/v1/jobs/{job_id}?wait=5", headers=headers).json()
            if job["state"] in END_STATES:
                return job
        raise TimeoutError(f"job {job_id} did not end: {job}")


def batch_of(tickets_count, **members):
    """A batch of so many tickets, as an object."""
    batch = json.loads((FIXTURES / "requests" / "single.json").read_text(encoding="utf-8"))
    ticket = batch["tickets"][0]
    batch["tickets"] = [{**ticket, "id": f"tkt-{i:06}"} for i in range(1, tickets_count + 1)]
    batch.update(members)
    return batch


def head_of(method, target, *headers, version="HTTP/1.1", host="test"):
    """The bytes of a request's head; headers are whole lines, as str or bytes."""
    lines = [f"{method} {target} {version}".encode()]
    lines += [] if host is None else [f"Host: {host}".encode()]
    lines += [header if isinstance(header, bytes) else header.encode() for header in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def post_of(body, *headers, target="/v1/batches"):
    """The bytes of a whole POST of JSON."""
    length = f"Content-Length: {len(body)}"
    return head_of("POST", target, f"Content-Type: {JSON_TYPE}", length, *headers) + body


class Report:
    """Prints the lines that are counted, and remembers whether all went well."""

    def __init__(self):
        self.failed = 0

    def check(self, name, is_right, details=""):
        print(f"{'ok' if is_right else 'not ok'} - {name}", flush=True)
        if not is_right:
            self.failed += 1
            for line in str(details).splitlines():
                print(f"    {line}", flush=True)
        return is_right

    def run(self, name, function, *arguments):
        """A check that is right when the function returns, and wrong when it raises."""
        try:
            function(*arguments)
        except (AssertionError, OSError, EOFError, ValueError, KeyError, TypeError) as fault:
            return self.check(name, False, f"{type(fault).__name__}: {fault}")
        return self.check(name, True)

    @property
    def status(self):
        return 1 if self.failed > 0 else 0
