"""The client: repeats what may be repeated, waits as it is told, and says what the server said."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from mercer.serve import Client, ServerError


class Script(BaseHTTPRequestHandler):
    """Answers by a list of statuses.

    "drop" closes the connection without a word, "reset" resets it, and "half" closes it within the answer.
    """

    protocol_version = "HTTP/1.1"
    answers: list[Any]
    seen: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body))
        answer = self.answers.pop(0)
        if answer == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if answer in ("reset", "half"):  # as the kernel ends the connections of a process that is killed
            if answer == "half":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            else:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()
            self.wfile.close()
            self.connection.close()
            self.close_connection = True
            return
        said = {"predictions": [1]} if answer == 200 else {"error": {"message": f"no {answer}", "example": 3}}
        content = json.dumps(said).encode() if answer != "garbage" else b"<html>"
        self.send_response(answer if answer != "garbage" else 500)
        self.send_header("Content-Length", str(len(content)))
        if answer == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def script() -> Iterator[type[Script]]:
    handler = type("Handler", (Script,), {"answers": [], "seen": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda request, client_address: None  # connections that we reset
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield handler
    server.shutdown()
    server.server_close()


def test_busy_servers_and_lost_connections_are_asked_again(script: Any) -> None:
    script.answers += [503, "drop", 504, 200]
    with Client(script.url, backoff=0.001, token="secret") as client:
        assert client.predict("m", [[1]]) == [1]
    assert len(script.seen) == 4
    path, headers, body = script.seen[-1]
    assert (path, headers["Authorization"]) == ("/v1/models/m:predict", "Bearer secret")
    assert json.loads(body) == {"instances": [[1]]}


@pytest.mark.parametrize("end", ["drop", "reset", "half"])
def test_a_connection_that_ends_with_its_server_is_asked_again(script: Any, end: str) -> None:
    """At once where it was kept; with a pause where a new one ends as well; as often as it is told."""
    script.answers += [200, end, 200, end, end, 200]
    with Client(script.url, backoff=0.2) as client:
        assert client.predict("m", [[1]]) == [1]
        begun = time.monotonic()
        assert client.predict("m", [[2]]) == [1]
        assert time.monotonic() - begun < 0.1
        begun = time.monotonic()
        assert client.predict("m", [[3]]) == [1]
        assert time.monotonic() - begun > 0.2 * 2 * 0.5
    assert [json.loads(body)["instances"][0][0] for _, _, body in script.seen] == [1, 2, 2, 3, 3, 3]
    script.answers += [end] * 3
    with Client(script.url, backoff=0.001, retries=2) as client, pytest.raises(ServerError, match="cannot be reached"):
        client.predict("m", [[4]])
    assert script.answers == []


def test_errors_of_the_request_are_not_repeated(script: Any) -> None:
    script.answers += [422, 503, 503, 503, "garbage"]
    with Client(script.url, backoff=0.001, retries=2) as client:
        with pytest.raises(ServerError, match="422: no 422") as caught:
            client.predict("m", [[1]])
        assert (caught.value.status, caught.value.answer["example"]) == (422, 3)
        with pytest.raises(ServerError, match="503: no 503"):
            client.predict("m", [[1]])
        with pytest.raises(ServerError, match="500: the server answered with status 500"):
            client.predict("m", [[1]])


def test_arrays_go_as_they_are_in_memory(script: Any) -> None:
    script.answers += [200, 200]
    with Client(script.url) as client:
        client.ask("m", np.eye(2), probabilities=True, outputs=["entropy"])
        client.predict("m", [np.float64(1.5), np.arange(2)])
    path, headers, body = script.seen[0]
    assert path == "/v1/models/m:predict?probabilities=true&outputs=entropy"
    assert headers["Content-Type"] == "application/x-npy"
    assert body.startswith(b"\x93NUMPY")
    assert json.loads(script.seen[1][2]) == {"instances": [1.5, [0, 1]]}


def test_a_server_that_is_not_there_is_an_error_that_says_so() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", retries=1, backoff=0.001)
    with pytest.raises(ServerError, match="cannot be reached"):
        client.models()
    assert not client.ready()


def test_arguments_are_checked() -> None:
    for wrong in ({"url": "localhost:80"}, {"url": "ftp://x"}, {"retries": -1}, {"timeout": 0}, {"backoff": None}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Client(**{"url": "http://localhost", **wrong})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="instances must be JSON values"):
        Client("http://localhost", retries=0).predict("m", [object()])
