"""A server as its callers see it: two processes on loopback; slow and hostile callers; a worker that is killed."""

from __future__ import annotations

import asyncio
import errno
import gc
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("httptools", reason="the extra serve is not installed")

import mercer
from mercer.cli import app as command
from mercer.serve import Client, ServerError, app
from mercer.serve.app import App, Security
from mercer.serve.server import Options, _Lingering, _Whole, bind, collecting_little, guarded, whole
from mercer.tagging import Tagger

X = [["Ada", "wrote", "programs"], ["Bob", "saw", "Ada"], ["The", "cat", "saw", "Bob"]] * 4
Y = [["B", "O", "O"], ["B", "O", "B"], ["O", "O", "O", "B"]] * 4
OTHER = [["P" if tag == "B" else "N" for tag in tags] for tags in Y]
BODY = json.dumps({"instances": X[:1]}).encode()

SERVER = """
import json, sys
from mercer.serve.server import Options, serve
options = Options(**json.loads(sys.argv[1]))
raise SystemExit(serve(options, lambda url: print(url, flush=True)))
"""


pytestmark = pytest.mark.slow  # three processes start


class Running:
    """A server process."""

    def __init__(self, path: Path, **options: Any) -> None:
        said = {"models": {"tagger": str(path)}, "port": 0, **options}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, json.dumps(said)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip().rstrip("/")
        assert self.url, self.process.stderr.read().decode()  # type: ignore[union-attr]
        self.port = int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def said(self, data: bytes) -> bytes:
        """What comes back for raw bytes until the server closes."""
        with self.connect() as sock:
            sock.sendall(data)
            parts = []
            while chunk := sock.recv(65536):
                parts.append(chunk)
        return b"".join(parts)

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "tagger.mercer"
    mercer.save(Tagger(C=10.0).fit(X, Y), path)
    return path


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Running]:
    running = Running(model, workers=2, reload_seconds=0.1, head_seconds=0.6, body_seconds=0.6, max_body=100_000)
    yield running
    status, log = running.end()
    assert status == 0
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"model loaded", "ended"} <= {line["event"] for line in lines}
    assert "Traceback" not in log


@contextmanager
def in_this_process(model: Path, wrap: Any = whole, **options: Any) -> Iterator[tuple[App, int]]:
    """An application with guarded connections, on a thread, and its port."""
    import uvicorn

    application = app({"tagger": str(model)}, reload_seconds=0, origins=["https://a.example"][: options.pop("cors", 0)])
    application.begin()
    application.full = application.overloaded  # tests may put another one there
    protocol = guarded(
        Options(models={}, **options), application.metrics, lambda url, headers: application.full(url, headers)
    )
    sock = bind("127.0.0.1", 0)
    config = uvicorn.Config(wrap(application), http=protocol, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        yield application, sock.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
        application.end()


def request(path: str, head: str = "", body: bytes = BODY) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n" + head.encode() + b"\r\n" + body


def test_predictions_over_a_connection_that_is_kept(server: Running) -> None:
    with Client(server.url) as client:
        assert client.ready()
        assert client.predict("tagger", X[:3]) == Y[:3]
        answer = client.ask("tagger", X[:1], probabilities=True)
        assert np.allclose(np.sum(answer["probabilities"], axis=-1), 1.0)
        assert client.models()[0]["kind"] == "Tagger"
        assert client.model("tagger")["input"]["form"] == "sequences"
        with pytest.raises(ServerError, match="404: there is no model 'x'"):
            client.predict("x", X)
        with pytest.raises(ServerError, match=r"instances\[0\] must be") as caught:
            client.predict("tagger", ["Ada"])
        assert caught.value.answer["example"]


def test_requests_in_one_packet_are_answered_in_their_order(server: Running) -> None:
    keep = request("/v1/models/tagger:predict").replace(b"Connection: close\r\n", b"")
    said = server.said(keep + keep + request("/v1/models/x:predict"))
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert said.rindex(b"HTTP/1.1 404") > said.rindex(b"HTTP/1.1 200 OK")


def test_callers_that_do_not_finish_their_request_are_cut_off(server: Running) -> None:
    """Nothing at all, half a header, half a body, a byte now and then."""
    begun = time.monotonic()
    socks = [server.connect() for _ in range(3)]
    socks[1].sendall(b"POST /v1/models/tagger:predict HTTP/1.1\r\nHost: loc")
    socks[2].sendall(request("/v1/models/tagger:predict")[:-5])
    with server.connect() as slow:
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: 1":
            slow.sendall(bytes([byte]))
            time.sleep(0.03)
        assert slow.recv(65536).startswith(b"HTTP/1.1 408")
    for sock in socks:
        assert b"408" in sock.recv(65536)
        assert sock.recv(65536) == b""
        sock.close()
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        (request("/v1/models/tagger:predict", body=b" " * 200_000), b"413"),
        (request("/v1/models/tagger:predict", "Origin: http://evil.example\r\n"), b"403"),
        (request("/v1/models/tagger:predict").replace(b"localhost", b"evil.example"), b"421"),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /static/%2e%2e%2fapp.py HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"400"),
    ],
)  # fmt: skip
def test_hostile_requests_get_a_status(server: Running, data: bytes, status: bytes) -> None:
    said = server.said(data)
    assert said.startswith(b"HTTP/1.1 " + status), said[:200]
    assert b"Traceback" not in said


def test_a_replaced_model_serves_within_moments(server: Running, model: Path) -> None:
    with Client(server.url) as client:
        before = model.read_bytes()
        mercer.save(Tagger(C=10.0).fit(X, OTHER), model)
        until = time.monotonic() + 60
        seen = 0
        while seen < 20 and time.monotonic() < until:  # of both processes
            found = client.predict("tagger", X[:1])
            assert found in (Y[:1], OTHER[:1])
            seen = seen + 1 if found == OTHER[:1] else 0
            client.close()  # the next request may go to the other process
        assert seen == 20
        model.write_bytes(before[:-10])
        time.sleep(0.5)
        assert client.predict("tagger", X[:1]) == OTHER[:1]
        model.write_bytes(before)


def test_a_killed_worker_comes_back_and_callers_notice_nothing(server: Running) -> None:
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(children) == 2
    asking, found = threading.Barrier(9), []

    def ask() -> None:
        with Client(server.url, retries=8) as client:
            client.predict("tagger", X[:1])
            asking.wait(60)
            found.extend(client.predict("tagger", X[:1]) for _ in range(60))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    with Client(server.url, retries=8) as client:
        asking.wait(60)
        time.sleep(0.02)
        os.kill(int(children[0]), signal.SIGKILL)
        for _ in range(30):
            assert client.predict("tagger", X[:1]) in (Y[:1], OTHER[:1])
        for thread in threads:
            thread.join(60)
        assert len(found) == 8 * 60
        assert all(one in (Y[:1], OTHER[:1]) for one in found)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
            if all(f'mercer_worker_ready{{worker="{k}"}} 1' in text for k in range(2)):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the worker did not come back")
        counted = [line for line in text.splitlines() if line.startswith("mercer_requests_total") and '"200"' in line]
        assert float(counted[0].rpartition(" ")[2]) >= 30  # those of the killed worker count on


def test_requests_to_a_full_queue_are_answered_before_the_application(model: Path) -> None:
    """With 503 and Retry-After, in their order, over a connection that goes on; only where nothing else decides."""
    with in_this_process(model) as (application, port):
        batcher = application.batchers["tagger"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def status(path: str = "/v1/models/tagger:predict") -> int:
            connection.request("POST", path, BODY)
            answer = connection.getresponse()
            answer.read()
            assert (answer.status == 503) == (answer.getheader("retry-after") == "1")
            return answer.status

        assert status() == 200
        kept = connection.sock
        batcher.waiting += batcher.max_queue
        assert [status(), status("/v1/models/x:predict"), status()] == [503, 404, 503]
        connection.request("GET", "/v1/models/tagger")  # what does not wait in the queue is answered
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["kind"]) == (200, "Tagger")
        batcher.waiting -= batcher.max_queue
        assert status() == 200
        assert connection.sock is kept
        assert 'status="503"' in application.metrics.text()
        batcher.waiting += batcher.max_queue
        for token, origin, refused in (
            *((b"Bearer t", b"", True), (b"Bearer x", b"", False), (b"", b"", False)),
            *((b"Bearer t", b"https://a.example", False), (b"Bearer t", b"https://b.example", False)),
        ):
            asked = App({"tagger": str(model)}, security=Security(token="t", origins=("https://a.example",)))
            asked.batchers = application.batchers
            headers = [(b"authorization", token)] * bool(token) + [(b"origin", origin)] * bool(origin)
            found = asked.overloaded(b"/v1/models/tagger:predict", headers)
            assert found == ("tagger" if refused else None), (token, origin)
        batcher.waiting -= batcher.max_queue
        assert asked.overloaded(b"/v1/models/tagger:predict", [(b"authorization", b"Bearer x")]) is None
        assert batcher.coming == 0  # whoever may not ask takes no place
        connection.close()


def test_requests_of_one_turn_of_the_event_loop_are_refused_before_the_application(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue counts them before they are in it; those that it has no place for cost little."""
    module = sys.modules["mercer.serve.app"]
    late, made = [], module._full
    with in_this_process(model) as (application, port):
        monkeypatch.setattr(module, "_full", lambda: late.append(1) or made())
        batcher, answers = application.batchers["tagger"], application.store.get("tagger").answers
        go = threading.Event()

        def slow(verb: str, X: Any) -> Any:
            go.wait(60)
            return answers.model.predict(X)

        object.__setattr__(answers, "ask", slow)
        batcher.max_queue = 5
        socks = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(40)]
        for sock in socks:
            sock.sendall(KEPT)
        until = time.monotonic() + 30
        while "503" not in application.metrics.text() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        go.set()
        statuses = Counter(answers_of(sock, 1)[0][0] for sock in socks)
        for sock in socks:
            sock.close()
        assert (statuses, late) == ({200: 5, 503: 35}, [])
        assert (batcher.waiting, batcher.coming) == (0, 0)


def answers_of(sock: socket.socket, n: int) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of so many answers over a connection."""
    file, found = sock.makefile("rb"), []
    for _ in range(n):
        status = int(file.readline().split()[1])
        headers = {}
        while line := file.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name] = value
        found.append((status, headers, file.read(int(headers["content-length"]))))
    return found


KEPT = request("/v1/models/tagger:predict").replace(b"Connection: close\r\n", b"")
CHUNKED = (
    KEPT.partition(b"Content-Length")[0]
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:]))
    + b"0\r\n\r\n"
)


@pytest.mark.parametrize("first", [KEPT, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("cut", [20, 100, -30, -1])
def test_the_body_of_a_refused_request_is_not_the_next_request(model: Path, first: bytes, cut: int) -> None:
    """Wherever the request is cut, and whatever becomes of the queue meanwhile."""
    with in_this_process(model) as (application, port):
        batcher = application.batchers["tagger"]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            batcher.waiting += batcher.max_queue
            sock.sendall(first[:cut])
            time.sleep(0.1)
            decided = cut != 20  # after the headers
            batcher.waiting -= batcher.max_queue if decided else 0
            sock.sendall(first[cut:])
            if not decided:
                time.sleep(0.1)
                batcher.waiting -= batcher.max_queue
            sock.sendall(KEPT + KEPT.replace(b"tagger:", b"x:") + first)
            found = answers_of(sock, 4)
        assert [status for status, _, _ in found] == [503, 200, 404, 200]
        assert found[0][1]["retry-after"] == "1"
        assert json.loads(found[3][2])["predictions"] == Y[:1]
        assert batcher.waiting == 0


def test_answers_in_one_piece_are_those_of_uvicorn(model: Path) -> None:
    close, old = b"Connection: close\r\n", b" HTTP/1.0\r\n"
    page = b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n"
    other = b"Origin: https://a.example\r\nContent-Length"
    asked = [
        *(KEPT, KEPT.replace(b"tagger:", b"x:"), request("/v1/models/tagger:predict", body=b"{")),
        *(page, page.replace(b"GET", b"HEAD"), page.replace(b"\r\n\r\n", b"\r\n" + close + b"\r\n")),
        *(KEPT.replace(b" HTTP/1.1\r\n", old), KEPT.replace(b"Content-Length", other), page.replace(b"/models", b"/x")),
        KEPT.replace(b"POST", b"OPTIONS").replace(b"Content-Length", other),
        KEPT.replace(b"Content-Length", b"Expect: 100-continue\r\nContent-Length"),
        KEPT.replace(b"tagger:predict", b"tagger:show"),
    ]
    said: list[list[tuple[bytes, list[bytes], bytes]]] = []
    for wrap in (whole, lambda application: application):
        said.append([])
        with in_this_process(model, wrap, cors=1) as (_, port):
            for data in asked:
                with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    parts = []
                    while chunk := sock.recv(65536):
                        parts.append(chunk)
                head, _, body = b"".join(parts).partition(b"\r\n\r\n")
                first, *headers = head.split(b"\r\n")
                said[-1].append((first, sorted(h for h in headers if not h.startswith(b"date")), body))
    assert said[0] == said[1]
    assert len({first for first, _, _ in said[0]}) >= 5


class Cycle:
    """What uvicorn knows of one request, with what it was given to send."""

    response_started = response_complete = disconnected = False
    keep_alive = waiting_for_100_continue = True

    def __init__(self, method: str = "GET", paused: bool = False) -> None:
        self.scope, self.flow = {"method": method}, types.SimpleNamespace(write_paused=paused)
        self.written: list[bytes] = []
        self.sent: list[Any] = []
        self.transport = types.SimpleNamespace(write=self.written.append, close=lambda: None)
        self.message_event, self.default_headers = asyncio.Event(), [(b"date", b"today")]
        self.on_response = lambda: None

    async def send(self, message: Any) -> None:
        self.sent.append(message)


@pytest.mark.parametrize(
    ("headers", "body", "cycle"),
    [
        ([(b"connection", b"close")], {}, {}),
        ([(b"transfer-encoding", b"chunked")], {}, {}),
        ([(b"x", b"a\r\nset-cookie: b")], {}, {}),
        ([(b"x:y", b"a")], {}, {}),
        ([(b"x", b"a")], {"more_body": True}, {}),
        ([(b"x", b"a")], {"body": b"longer than it said"}, {}),
        ([(b"x", b"a")], {}, {"method": "HEAD"}),
        ([(b"x", b"a")], {}, {"paused": True}),
    ],
)
def test_what_is_no_plain_answer_is_left_to_uvicorn(headers: Any, body: Any, cycle: Any) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2"), *headers]}
    end = {"type": "http.response.body", "body": b"ok", **body}

    async def run(cycle: Cycle, *messages: Any) -> Cycle:
        send = _Whole(cycle, {200: b"HTTP/1.1 200 OK\r\n"})
        for message in messages:
            await send(message)
        return cycle

    for _ in range(2):  # the second time, what is known of the headers is remembered
        left = asyncio.run(run(Cycle(**cycle), start, end))
        assert (left.sent, left.written) == ([start, end], [])
    plain = {**start, "headers": [(b"content-length", b"2"), (b"x", b"a")]}
    taken = asyncio.run(run(Cycle(), plain, {**end, "body": b"ok", "more_body": False}))
    assert taken.sent == []
    assert taken.written == [b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 2\r\nx: a\r\n\r\nok"]


def test_an_answer_that_fails_before_its_body_is_replaced_by_the_error() -> None:
    cycle = Cycle()
    send = _Whole(cycle, {200: b"HTTP/1.1 200 OK\r\n", 500: b"HTTP/1.1 500 Internal Server Error\r\n"})

    async def run() -> None:
        for status in (200, 500):
            headers = [(b"content-length", b"2")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            assert not cycle.response_started
        await send({"type": "http.response.body", "body": b"no"})

    asyncio.run(run())
    assert cycle.sent == []
    assert [data[:12] for data in cycle.written] == [b"HTTP/1.1 500"]
    assert cycle.response_complete


@pytest.mark.parametrize("size", [20_000, 40_000, 64 << 10, 200_000])
def test_bodies_do_not_count_as_headers(model: Path, size: int) -> None:
    """In whatever pieces they come, and several over a connection."""
    body = json.dumps({"instances": X[:1], "filler": " " * size}).encode()
    data = request("/v1/models/tagger:predict", body=body).replace(b"Connection: close\r\n", b"")
    with in_this_process(model) as (_, port), socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        for _ in range(3):
            sock.sendall(data)
            assert {status for status, _, _ in answers_of(sock, 1)} <= {200, 422}
        sock.sendall(data + KEPT)
        assert [status for status, _, _ in answers_of(sock, 2)][1] == 200


def test_a_kept_connection_may_rest_before_a_request_in_pieces(model: Path) -> None:
    with (
        in_this_process(model, head_seconds=0.5) as (_, port),
        socket.create_connection(("127.0.0.1", port), timeout=60) as sock,
    ):
        for _ in range(2):
            sock.sendall(KEPT[:30])
            time.sleep(0.2)
            sock.sendall(KEPT[30:])
            assert answers_of(sock, 1)[0][0] == 200
            time.sleep(1.2)


def test_a_request_behind_a_refused_one_is_not_idle(model: Path) -> None:
    with in_this_process(model, keep_alive=1.0) as (application, port):
        answers, first = application.store.get("tagger").answers, []
        real = application.overloaded

        def slow(verb: str, X: Any) -> Any:
            time.sleep(2.2)
            return answers.model.predict(X)

        def full(url: bytes, headers: Any) -> str | None:  # for the first request
            first.append(url)
            return "tagger" if len(first) == 1 else real(url, headers)

        object.__setattr__(answers, "ask", slow)
        application.full = full
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            sock.sendall(KEPT + KEPT)
            assert [status for status, _, _ in answers_of(sock, 2)] == [503, 200]


def test_an_answer_before_the_body_leaves_an_idle_connection(model: Path) -> None:
    """Not one whose next request is late: that would be answered, unasked, with 408."""
    data = KEPT.replace(b"tagger:", b"x:")
    cut = data.index(b"\r\n\r\n") + 4
    with (
        in_this_process(model, head_seconds=0.5) as (_, port),
        socket.create_connection(("127.0.0.1", port), timeout=60) as sock,
    ):
        sock.sendall(data[:cut])
        assert answers_of(sock, 1)[0][0] == 404
        sock.sendall(data[cut:])
        time.sleep(1.5)
        sock.sendall(KEPT)
        assert answers_of(sock, 1)[0][0] == 200


def test_a_long_prediction_is_not_taken_for_a_slow_caller(model: Path) -> None:
    with in_this_process(model, head_seconds=0.3, body_seconds=0.3) as (application, port):
        answers = application.store.get("tagger").answers

        def slow(verb: str, X: Any) -> Any:
            time.sleep(1.5)
            return answers.model.predict(X)

        object.__setattr__(answers, "ask", slow)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            sock.sendall(KEPT)
            assert answers_of(sock, 1)[0][0] == 200


def test_idle_connections_are_closed_after_a_while(model: Path) -> None:
    """Neither at once nor with an answer; after an answer as after a refusal, and not while they are used."""
    with in_this_process(model, keep_alive=1.0, head_seconds=60.0) as (application, port):
        batcher = application.batchers["tagger"]
        for refused in (False, True):
            batcher.waiting += refused * batcher.max_queue
            with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
                begun = time.monotonic()
                for _ in range(3):
                    sock.sendall(KEPT)
                    assert answers_of(sock, 1)[0][0] == (503 if refused else 200)
                    time.sleep(0.6)
                last = time.monotonic() - 0.6
                assert sock.recv(100) == b""
                assert time.monotonic() - last > 0.9
                assert time.monotonic() - begun < 30


def test_requests_and_connections_leave_no_cycles_behind(model: Path) -> None:
    """The server lets the collector of cycles run rarely, so what requests hold must go without it."""
    with in_this_process(model) as (application, port):
        answers = application.store.get("tagger").answers

        def picky(verb: str, X: Any) -> Any:
            if len(X) == 2:
                raise ValueError("two are too many")
            return answers.model.predict(X)

        object.__setattr__(answers, "ask", picky)
        two = json.dumps({"instances": X[:2]}).encode()

        def ask(n: int) -> None:
            for _ in range(n):
                for path, body, status in (
                    ("/v1/models/tagger:predict", BODY, 200),
                    ("/v1/models/tagger:predict", b"{", 400),
                    ("/v1/models/tagger:predict", two, 422),
                    ("/v1/models/x:predict", BODY, 404),
                ):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    connection.request("POST", path, body)
                    answer = connection.getresponse()
                    answer.read()
                    connection.close()
                    assert answer.status == status
            time.sleep(0.1)

        ask(2)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            ask(10)
            gc.collect()
            left = Counter(type(one).__name__ for one in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left["Guarded"] + left["RequestResponseCycle"] + left["coroutine"] + left["Job"] == 0, left
        assert left.total() <= 40 * 10  # the transports of asyncio, of four connections each time


def test_the_collector_of_cycles_is_as_before_once_the_server_has_ended() -> None:
    mine, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
    try:
        with collecting_little():
            assert gc.get_freeze_count() > 0
            assert gc.get_threshold()[0] > 700
            assert gc.isenabled()
        assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)
    finally:
        gc.set_threshold(*mine)
        if frozen:
            gc.freeze()


def test_a_connection_that_its_caller_reset_is_closed_all_the_same() -> None:
    """With ``write_eof`` raising, the answer would count as a failure of the server, and the sweep would end."""

    class Reset:
        closed = 0

        def close(self) -> None:
            self.closed += 1

        def write_eof(self) -> None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

        def can_write_eof(self) -> bool:
            return True

        def is_closing(self) -> bool:
            return bool(self.closed)

        write = abort = resume_reading = close

    transport = Reset()
    lingering = _Lingering(transport, lambda: True, asyncio.new_event_loop())
    lingering.close()
    lingering.close()
    assert (transport.closed, lingering.is_closing()) == (1, True)
    lingering._loop.close()


def test_small_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY on sockets that name their protocol; others wait 40 ms for an acknowledgement."""
    with bind("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificate, is not installed")
def test_encrypted_connections_and_an_orderly_end(model: Path, tmp_path: Path) -> None:
    """What has begun is answered after SIGTERM, what comes later finds nobody, and the status is 0."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *curve.split(), *names], check=True, capture_output=True)
    running = Running(model, certificate=str(certificate), key=str(key))
    assert running.url.startswith("https://")
    assert b"HTTP/1.1 200" not in running.said(request("/v1/models/tagger:predict"))
    trusted = ssl.create_default_context(cafile=certificate)
    whole = request("/v1/models/tagger:predict")
    with trusted.wrap_socket(running.connect(), server_hostname="localhost") as sock:
        sock.sendall(whole[:-10])
        with trusted.wrap_socket(running.connect(), server_hostname="localhost") as other:  # the first was read by then
            other.sendall(whole)
            assert other.recv(65536).startswith(b"HTTP/1.1 200 OK")
        running.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                running.connect().close()
            except OSError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("the server still listens")
        sock.sendall(whole[-10:])
        parts = []
        while chunk := sock.recv(65536):
            parts.append(chunk)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert json.loads(body)["predictions"] == Y[:1]
    _, log = running.process.communicate(timeout=60)
    assert running.process.returncode == 0, log.decode()


def test_the_command_refuses_what_cannot_be_served(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Running
) -> None:
    bad = tmp_path / "bad.mercer"
    bad.write_bytes(b"x" * 100)
    short = tmp_path / "token"
    short.write_text("abc\n")
    for args, message in (
        ([str(model), "--host", "0.0.0.0"], "give --token-file"),
        ([str(model), "--port", str(server.port)], f"127.0.0.1:{server.port}: address already in use"),
        ([str(tmp_path / "no.mercer")], "no.mercer: no such file"),
        ([str(bad), "--port", "0"], "is not a model file"),
        ([str(model), str(model)], "two models are called 'tagger'"),
        ([str(model), "--certificate", str(bad)], "belong together"),
        ([str(model), "--token-file", str(short)], "at least 16"),
    ):
        assert command.main(["serve", *args]) == (1 if "already" in message else 2), args
        assert message in " ".join(capsys.readouterr().err.split()), args


def test_without_the_extra_the_command_names_it(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "uvicorn" else found(name, *a))
    assert command.main(["serve", str(model)]) == 2
    assert "pip install 'mercer[serve]'" in " ".join(capsys.readouterr().err.split())
