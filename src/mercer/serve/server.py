"""Run the application: sockets, connection timeouts, TLS, several processes, and graceful shutdown.

uvicorn limits neither the time to send a request nor the length of the headers. `Guarded` adds both limits: an
incomplete request gets status 408, too many headers get 431, and a client that does not read its response is
disconnected. `Guarded` also rejects requests to a full queue. `_Whole` writes responses.

With several processes, a parent binds the port and starts each worker as a separate Python process that inherits the
socket. The parent restarts workers that die. Workers exit when the parent exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, ClassVar

from mercer._progress import say
from mercer.serve.app import App, Security, Settings, full_answer
from mercer.serve.errors import require
from mercer.serve.forms import Limits
from mercer.serve.metrics import Metrics
from mercer.serve.store import Snapshots

__all__ = ["Options", "bind", "is_loopback", "serve"]

_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")


@dataclass
class Options:
    """All settings of a server, from the command line."""

    models: dict[str, str]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    token: str | None = None
    hosts: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    certificate: str | None = None
    key: str | None = None
    max_body: int = Limits.body
    max_instances: int = Limits.instances
    max_length: int = Limits.length
    seconds: float = Limits.seconds
    max_batch: int = 256
    max_delay: float = 0.0
    max_queue: int = 64
    reload_seconds: float = 1.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    keep_alive: float = 15.0
    drain_seconds: float = 10.0
    drain_delay: float = 0.0
    max_head: int = 32 << 10
    max_headers: int = 100
    max_connections: int = 1000
    log_requests: bool = False
    max_bytes: int | None = None

    def application(self, metrics: Metrics, snapshots: Snapshots | None, worker: int) -> App:
        """Return the application with these settings."""
        limits = Limits(self.max_body, self.max_instances, self.max_length, self.seconds)
        settings = Settings(
            limits, self.max_batch, self.max_delay, self.max_queue, self.reload_seconds, self.log_requests
        )
        hosts = tuple(self.hosts) or (_NAMES if is_loopback(self.host) else ())
        return App(
            self.models,
            security=Security(self.token, hosts, tuple(self.origins)),
            settings=settings,
            metrics=metrics,
            log=logger(worker),
            max_bytes=self.max_bytes,
            snapshots=snapshots,
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable only from this computer."""
    return host in _NAMES or host.startswith("127.")


def logger(worker: int) -> Callable[..., None]:
    """Return a function that writes one JSON object per line to standard error."""
    lock = threading.Lock()

    def log(level: str, event: str, **facts: Any) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() % 1 * 1000):03d}Z"
        line = json.dumps({"time": moment, "level": level, "event": event, "worker": worker, **facts}, default=str)
        with lock, contextlib.suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")  # in one piece: other processes write to the same place
            sys.stderr.flush()

    return log


# ----------------------------------------------------------------------------------------------------------- deadlines


_LINGER = 2.0  # seconds for which what a refused caller still sends is read and dropped


class _Lingering:
    """A transport that closes without truncating the response.

    Closing a socket with unread bytes resets the connection, and the client may never see the error. So the transport
    first shuts down its writing side, drops further input, and closes the socket when the client is done or after a
    timeout.
    """

    def __init__(self, transport: Any, unread: Callable[[], bool], loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._unread, self._loop = transport, unread, loop
        self.write, self.abort, self.ended = transport.write, transport.abort, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def forget(self) -> None:
        """Release the protocol when the connection is lost, so that neither waits for garbage collection."""
        self._unread = bool

    def is_closing(self) -> bool:
        return self.ended or self._transport.is_closing()

    def close(self) -> None:
        if self.ended:
            return
        if self._unread() and self._transport.can_write_eof() and not self._transport.is_closing():
            self.ended = True
            try:
                self._transport.write_eof()
            except OSError:  # the caller has reset the connection meanwhile
                self._transport.close()
                return
            with contextlib.suppress(RuntimeError):
                self._transport.resume_reading()
            self._loop.call_later(_LINGER, self._transport.close)
        else:
            self._transport.close()


def guarded(
    options: Options, metrics: Metrics, full: Callable[[bytes, Any], str | None] = lambda url, headers: None
) -> Any:
    """Return the protocol class of connections, with limits on time and size.

    ``full`` takes path and headers and returns the model if its queue is full. Such a request is answered here, at a
    fraction of the cost in the application. Under overload these are most requests.
    """
    import httptools
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

    refusal, keep_alive = full_answer(), max(1.0, options.keep_alive)

    class Guarded(HttpToolsProtocol):
        """Connections with timeouts."""

        open: int = 0
        sweeper: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            self.in_head, self.in_body, self.refused = True, False, 0
            self.overloaded: str | None = None
            self.head_bytes = 0  # that came of a head which is not complete
            self.ended = self.begun = False  # a request, in the data that came last; and another one after it
            self.idle = 0.0  # since when the caller may ask again, with nothing under way
            lingering: Any = _Lingering(transport, lambda: self.in_body or self.head_bytes > 0, self.loop)
            self.lingering = lingering
            super().connection_made(lingering)
            self.since = self.stalled = self.loop.time()
            metrics.set(len(self.connections), "connections")
            if len(self.connections) > options.max_connections:
                self.refuse(503, "too many connections", (b"retry-after: 1\r\n",))
            if Guarded.sweeper is None or Guarded.sweeper.cancelled() or Guarded.sweeper.when() < self.since - 5:
                Guarded.sweeper = self.loop.call_later(0.5, Guarded.sweep, self.connections, self.loop)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.lingering.forget()
            metrics.set(len(self.connections), "connections")

        @staticmethod
        def sweep(connections: Any, loop: asyncio.AbstractEventLoop) -> None:
            """Close connections that have waited too long; runs twice a second while there are connections."""
            now = loop.time()
            for one in list(connections):
                if isinstance(one, Guarded):
                    one.look(now)
            again = loop.call_later(0.5, Guarded.sweep, connections, loop) if connections else None
            Guarded.sweeper = again

        def look(self, now: float) -> None:
            """Close this connection if its client is too slow."""
            if self.transport.is_closing():
                if now - self.since > options.head_seconds + options.body_seconds + _LINGER:
                    self.transport.abort()
                return
            if self.flow.write_paused:
                if now - self.stalled > options.body_seconds:
                    self.transport.abort()
                return
            self.stalled = now
            if self.idle:
                if now - self.idle > keep_alive:
                    self.transport.close()
            elif self.cycle is not None and not self.cycle.response_complete and not self.in_body:
                return  # the caller waits for us
            elif self.in_head and now - self.since > options.head_seconds:
                self.refuse(408, "the request did not arrive in time")
            elif self.in_body and now - self.since > options.body_seconds:
                self.refuse(408, "the body of the request did not arrive in time")

        def refuse(self, status: int, message: str, more: tuple[bytes, ...] = ()) -> None:
            """Respond and close without calling the application."""
            self.refused, self.head_bytes = status, self.head_bytes or 1
            started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
            if not self.transport.is_closing():
                if not started:
                    body = json.dumps({"error": {"status": status, "message": message}}).encode()
                    length = b"content-length: " + str(len(body)).encode() + b"\r\n"
                    kind = b"content-type: application/json\r\nx-content-type-options: nosniff\r\n"
                    head = (STATUS_LINE[status], kind, length, b"connection: close\r\n", *more, b"\r\n")
                    self.transport.write(b"".join((*head, body)))
                self.transport.close()
            if self.cycle is not None and not self.cycle.response_complete:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            metrics.request(None, status, 0.0, 0)

        def send_400_response(self, msg: str) -> None:
            if not self.refused:
                self.refuse(400, "this is not a valid HTTP request")

        def data_received(self, data: bytes) -> None:
            if self.refused or self.lingering.ended:
                return
            if self.in_head and self.head_bytes == 0:
                self.since = self.loop.time()
            self.idle, self.ended = 0.0, False
            super().data_received(data)
            if self.in_head and not self.refused:
                if self.ended:  # how much of the data is of the next head is not known, `on_header` counts it
                    self.head_bytes = int(self.begun)
                else:
                    self.head_bytes += len(data)
                if self.head_bytes > options.max_head:
                    self.refuse(431, "the headers are too long")

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.in_head, self.seen, self.begun, self.idle = True, 0, True, 0.0

        def on_url(self, url: bytes) -> None:
            super().on_url(url)
            if len(self.url) > 8192:
                self.refuse(431, "the path is too long")
                raise httptools.HttpParserError("too long")

        def on_header(self, name: bytes, value: bytes) -> None:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
            self.seen += len(name) + len(value)
            if len(self.headers) > options.max_headers or self.seen > options.max_head:
                self.refuse(431, "there are too many headers, or they are too long")
                raise httptools.HttpParserError("too many headers")

        def on_headers_complete(self) -> None:
            self.in_head, self.in_body, self.head_bytes = False, True, 0
            self.since = self.loop.time()
            idle = self.cycle is None or self.cycle.response_complete
            plain = self.parser.get_method() == b"POST" and not self.expect_100_continue
            kept = self.parser.should_keep_alive() and self.parser.get_http_version() == "1.1"
            if idle and plain and kept:
                self.overloaded = full(self.url, self.headers)
            if self.overloaded is None:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self.overloaded is None:
                super().on_body(body)

        def on_message_complete(self) -> None:
            if self.overloaded is None:
                super().on_message_complete()
                if self.cycle is not None and self.cycle.response_complete:  # before all of the body was there
                    self.idle = self.loop.time()
            else:
                self.transport.write(refusal)
                metrics.request(self.overloaded, 503, 0.0, 0)
                self.overloaded = None
                self.server_state.total_requests += 1
                self.idle = self.loop.time()
            self.in_head, self.in_body, self.ended, self.begun = True, False, True, False
            self.since, self.head_bytes = self.loop.time(), 0

        def on_response_complete(self) -> None:
            """Do the same as uvicorn, without a timer for every response: the sweep closes idle connections."""
            if self.pipeline or self.transport.is_closing():
                super().on_response_complete()
                return
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self.idle = self.loop.time()

        def _should_upgrade(self) -> bool:
            return False

        def _unsupported_upgrade_warning(self) -> None:
            self.refuse(400, "connections cannot be upgraded")

    return Guarded


# ------------------------------------------------------------------------------------------------------ whole answers


_HEADS = 64  # of sets of headers; those of predictions are always the same


class _Whole:
    """ASGI `send` for responses in one piece: one write, with headers that are checked and joined once.

    uvicorn writes the head and the body of a response separately: two system calls, two packets, two wake-ups of the
    client. uvicorn still handles all other cases: chunked responses, HEAD, connection headers, and clients that
    disconnected or do not read.
    """

    heads: ClassVar[dict[tuple[tuple[bytes, bytes], ...], bytes | None]] = {}

    def __init__(self, cycle: Any, statuses: dict[int, bytes]) -> None:
        self.cycle, self.statuses = cycle, statuses
        self.start: Any = None

    async def __call__(self, message: Any) -> None:
        cycle = self.cycle
        if message["type"] == "http.response.start" and not cycle.response_started:
            self.start = message  # nothing is written yet: what fails now can still be answered with 500
            return
        start = self.start
        if start is None:
            await cycle.send(message)
            return
        self.start = None
        body = message.get("body", b"")
        plain = message["type"] == "http.response.body" and not message.get("more_body")
        head = self.head(start, len(body)) if plain else None
        if head is None:
            await cycle.send(start)
            await cycle.send(message)
            return
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(head + body)
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def head(self, start: Any, size: int) -> bytes | None:
        """Return status and headers as bytes; None if uvicorn must send this response."""
        cycle, headers = self.cycle, start["headers"]
        if cycle.disconnected or cycle.flow.write_paused or cycle.scope["method"] == "HEAD" or not headers:
            return None
        name, length = headers[0]
        if name != b"content-length" or length != b"%d" % size:
            return None
        others = tuple(headers[1:])
        try:
            lines = self.heads[others]
        except KeyError:
            lines = _joined(others)
            if len(self.heads) >= _HEADS:  # some answers have a header of their own, such as a length
                self.heads.clear()
            self.heads[others] = lines
        if lines is None:
            return None
        own = b"".join([name + b": " + value + b"\r\n" for name, value in cycle.default_headers])
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        return b"%b%bcontent-length: %b\r\n%b%b" % (self.statuses[start["status"]], own, length, lines, end)


def _joined(headers: tuple[tuple[bytes, bytes], ...]) -> bytes | None:
    """Return the headers as bytes; None if they concern the connection or are invalid."""
    for name, value in headers:
        if name.lower() in (b"connection", b"transfer-encoding", b"content-length"):
            return None
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return None  # uvicorn says what is wrong
    return b"".join([name.lower() + b": " + value + b"\r\n" for name, value in headers])


_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")


def whole(application: App) -> Callable[..., Any]:
    """Return the application for uvicorn, with responses written in one piece."""
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        cycle = getattr(send, "__self__", None)
        await application(scope, receive, send if cycle is None else _Whole(cycle, STATUS_LINE))

    return answer


# --------------------------------------------------------------------------------------------------------- one process


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise an OSError that names address and port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: asyncio sends small answers at once (TCP_NODELAY) only then, and accepted sockets inherit it.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"{error.strerror or error} (try another --port)", f"{host}:{port}") from None
    sock.listen(2048)
    sock.setblocking(False)
    return sock


def address(options: Options, sock: socket.socket) -> str:
    """Return the URL of the page."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http{'s' if options.certificate else ''}://{host}:{sock.getsockname()[1]}/"


_YOUNG = 20_000  # containers made before the collector looks; by default 700, and a full queue of requests holds more


@contextlib.contextmanager
def collecting_little() -> Iterator[None]:
    """Exclude objects loaded so far (mostly libraries) from garbage collection: 130,000 objects, 50 ms per collection.

    Requests create no reference cycles. With the default thresholds every burst of requests starts a collection, and
    collections took 18 % of the CPU time under overload. Models that are loaded later are collected as usual.
    """
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:  # nobody else wants it so
            gc.unfreeze()


def run(
    options: Options, sock: socket.socket, application: App, metrics: Metrics, on_start: Callable[[], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish running requests and exit."""
    require("uvicorn", "httptools")
    import uvicorn

    config = uvicorn.Config(
        whole(application),
        http=guarded(options, metrics, application.overloaded),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, int(options.keep_alive)),
        timeout_graceful_shutdown=max(1, int(options.drain_seconds)),
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        backlog=2048,
    )

    class Draining(uvicorn.Server):
        """Report not ready before it stops listening."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if application.draining:
                self.should_exit = self.force_exit = True
                return
            application.draining = True
            application.log("info", "draining")
            if options.drain_delay > 0:
                asyncio.get_running_loop().call_later(options.drain_delay, self.stop)
            else:
                self.should_exit = True

        def stop(self) -> None:
            self.should_exit = True

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_start()

    import logging
    import warnings

    warnings.simplefilter("ignore")  # of models about their inputs: callers cannot see them, and logs would fill
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    server = Draining(config)
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: application.store.look_now())
    try:
        with collecting_little():
            server.run(sockets=[sock])
    finally:
        application.end()
        application.log("info", "ended")


def serve(options: Options, on_start: Callable[[str], None] = lambda url: None) -> int:
    """Run a server until it is stopped.

    Parameters
    ----------
    options : Options
    on_start : callable
        Called with the address when the server accepts requests.

    Returns
    -------
    int
        The exit status.
    """
    require("starlette", "orjson", "uvicorn", "httptools")
    for path in options.models.values():
        os.stat(path)  # a missing file is named before anything starts
    if not is_loopback(options.host) and options.token is None:
        logger(0)("warning", "every client that reaches this address can use the models", host=options.host)
    sock = bind(options.host, options.port)
    try:
        if options.workers > 1:
            return _Parent(options, sock, on_start).run()
        metrics = Metrics(list(options.models))
        application = options.application(metrics, None, 0)
        application.begin()
        run(options, sock, application, metrics, lambda: on_start(address(options, sock)))
        return 0
    finally:
        sock.close()


# --------------------------------------------------------------------------------------------------- several processes


class _Parent:
    """Start workers, restart workers that die, and stop them."""

    def __init__(self, options: Options, sock: socket.socket, on_start: Callable[[str], None]) -> None:
        self.options, self.sock, self.on_start = options, sock, on_start
        self.log = logger(-1)
        self.ending = False
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self.begun: dict[int, float] = {}

    def run(self) -> int:
        options = self.options
        self.snapshots = Snapshots.create(list(options.models.values()))
        with tempfile.TemporaryFile() as shared:
            shared.truncate(Metrics.bytes_of(list(options.models), options.workers))
            self.shared = shared.fileno()
            self.metrics = Metrics(list(options.models), options.workers, 0, self.shared)
            before = {sig: signal.signal(sig, self._told) for sig in (signal.SIGTERM, signal.SIGINT)}
            if hasattr(signal, "SIGHUP"):
                before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._forward)
            try:
                for k in range(options.workers):
                    self._start(k)
                return self._supervise()
            finally:
                self._end()
                self.snapshots.remove()
                for sig, handler in before.items():
                    signal.signal(sig, handler)

    def _start(self, k: int) -> None:
        said = {
            "options": asdict(self.options),
            "socket": self.sock.fileno(),
            "shared": self.shared,
            "snapshots": str(self.snapshots.folder),
            "worker": k,
        }
        code = "from mercer.serve.server import _worker; raise SystemExit(_worker())"
        worker = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=(self.sock.fileno(), self.shared)
        )
        assert worker.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(said).encode() + b"\n")
            worker.stdin.flush()  # kept open: its end tells the worker that the parent is gone
        self.workers[k], self.begun[k] = worker, time.monotonic()

    def _told(self, sig: int, frame: Any) -> None:
        self.ending = True
        self._forward(signal.SIGTERM, frame)

    def _forward(self, sig: int, frame: Any) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.send_signal(sig)

    def _ready(self) -> int:
        place = self.metrics._places[("ready",)]
        return int(self.metrics.table[:, place].sum())

    def _supervise(self) -> int:
        announced, failures = False, 0
        while not self.ending:
            time.sleep(0.05)
            if not announced and self._ready() == self.options.workers:
                announced = True
                self.on_start(address(self.options, self.sock))
            for k, worker in list(self.workers.items()):
                status = worker.poll()
                if status is None or self.ending:
                    continue
                if not announced:
                    return status if status > 0 else 1
                failures = failures + 1 if time.monotonic() - self.begun[k] < 5 else 0
                self.log("error", "worker ended", number=k, status=status)
                self.metrics.table[k, self.metrics._places[("ready",)]] = 0
                if failures:
                    time.sleep(min(5.0, 0.1 * 2**failures))
                self._start(k)
        return 0

    def _end(self) -> None:
        until = time.monotonic() + self.options.drain_seconds + self.options.drain_delay + 5
        self._forward(signal.SIGTERM, None)
        for worker in self.workers.values():
            try:
                worker.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            if worker.stdin is not None:
                with contextlib.suppress(OSError):
                    worker.stdin.close()


def _worker() -> int:
    """Run one of several processes; its settings arrive as a line of JSON on standard input."""
    said = json.loads(sys.stdin.buffer.readline())
    options = Options(**said["options"])
    sock = socket.socket(fileno=said["socket"])
    k = int(said["worker"])
    metrics = Metrics(list(options.models), options.workers, k, said["shared"])
    application = options.application(metrics, Snapshots(said["snapshots"]), k)
    try:
        application.begin()
    except (OSError, ValueError) as error:
        say(f"error: {error}")
        return 2

    def until_alone() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):  # ends when the parent does; sys.stdin would be locked at the end of this process
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=until_alone, name="mercer-parent", daemon=True).start()
    run(options, sock, application, metrics, lambda: None)
    return 0
