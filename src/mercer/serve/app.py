"""The ASGI application: models over HTTP.

    GET  /                          web pages to try the models
    GET  /v1/models, /v1/models/NAME
    POST /v1/models/NAME:predict    and :VERB for the other methods of a model
    GET  /v2…, POST /v2/models/NAME/infer     Open Inference Protocol v2
    GET  /openapi.json /docs /metrics /health /ready

Starlette routes everything except predictions. Predictions are nearly all requests, so they are recognised first and
handled with the least possible overhead.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import time
import traceback
import urllib.parse
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.serve import kinds, v2
from mercer.serve.batching import Batcher, Full
from mercer.serve.errors import RequestError, require
from mercer.serve.forms import Limits
from mercer.serve.metrics import Metrics
from mercer.serve.schemas import Ask, answer, arrow, describe, dumps, instances_of, loads, npy, openapi, parse
from mercer.serve.store import Loaded, Snapshots, Store

__all__ = ["App", "Security", "app"]

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_JSON = (b"content-type", b"application/json")
_ARROW = b"application/vnd.apache.arrow.stream"
_PROTECTED: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
_INLINE = 1 << 16  # bytes: larger bodies are read on a thread
_PATIENCE = 0.25  # seconds after which a waiting request looks whether its caller is still there
_CODINGS = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}  # content encoding → format of zlib


@dataclass(frozen=True)
class Security:
    """Access control: tokens, hosts and origins.

    Attributes
    ----------
    token : str or None
        Clients must send ``Authorization: Bearer TOKEN``; None disables authentication.
    hosts : tuple of str
        Accepted values of the Host header, without the port; empty for all.
    origins : tuple of str
        Other origins that may send requests (CORS).
    """

    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


@dataclass
class Settings:
    """Settings of queues and limits."""

    limits: Limits = field(default_factory=Limits)
    max_batch: int = 256
    max_delay: float = 0.0
    max_queue: int = 64
    reload_seconds: float = 1.0
    log_requests: bool = False


class App:
    """An ASGI application that serves models; created by :func:`app`."""

    def __init__(
        self,
        models: Mapping[str, Any],
        *,
        security: Security | None = None,
        settings: Settings | None = None,
        metrics: Metrics | None = None,
        log: Callable[..., None] | None = None,
        max_bytes: int | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        require("starlette", "orjson")
        self.security, self.settings = security or Security(), settings or Settings()
        self.log = log or (lambda level, event, **facts: None)
        self.metrics = metrics or Metrics(list(models))
        self.store = Store(models, self._report, max_bytes=max_bytes, snapshots=snapshots)
        self.draining = False
        self.batchers: dict[str, Batcher] = {}
        self._token = None if self.security.token is None else self.security.token.encode()
        self._hosts = frozenset(host.lower() for host in self.security.hosts)
        self._routes = self._make_routes()
        self._begun = False

    def _report(self, event: str, **facts: Any) -> None:
        name = facts.get("model")
        if name in self.metrics.models:
            self.metrics.add(1, "failed loads" if event == "refused" else "loads", name)
        self.log("warning" if event == "refused" else "info", f"model {event}", **facts)

    # ------------------------------------------------------------------ begin and end

    def begin(self) -> None:
        """Load all models and start their queues; raise an error for a file that cannot be served."""
        if self._begun:
            return
        self.store.load_all()
        options = self.settings
        for name in self.store.entries:
            self.batchers[name] = Batcher(
                self._call,
                max_batch=options.max_batch,
                max_delay=options.max_delay,
                max_queue=options.max_queue,
                name=name,
            )
        if options.reload_seconds > 0:
            self.store.watch(options.reload_seconds)
        self._begun = True
        self.metrics.set(1, "ready")

    def end(self) -> None:
        """Stop the threads."""
        self.metrics.set(0, "ready")
        self.store.close()
        for batcher in self.batchers.values():
            batcher.close()

    def _call(self, key: Any, arguments: list[Any]) -> list[Any]:
        """Call a model once for requests with equal options, and return the bodies of the responses."""
        loaded, ask = key
        if isinstance(ask, str):
            return [self._special(loaded, ask, body) for body in arguments]
        return answer(loaded.answers, ask, arguments)

    def _special(self, loaded: Loaded, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        return kinds.SPECIAL_CALLS[verb](loaded.answers.model, body)

    # ------------------------------------------------------------------ ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self.begin()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self.end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        path = scope["path"]
        root = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :] or "/"
        trace: dict[str, Any] = {"model": None, "instances": 0, "batch": 0}
        cors: Headers = []
        status = 500
        try:
            headers = dict(scope["headers"])
            cors = self._admit(scope, headers, path)
            if not self._begun:
                self.begin()  # below a server without lifespan
            if scope["method"] == "POST" and path.startswith(("/v1/models/", "/v2/models/")):
                status = await self._infer(path, headers, scope, receive, send, trace, cors)
            elif scope["method"] == "OPTIONS" and cors:
                status = 204
                await _respond(send, 204, b"", cors)
            else:
                status = await self._route(path, scope, receive, send, cors)
        except RequestError as error:
            status = error.status
            await self._refuse(path, error, send, cors)
            _forget(error)
        except asyncio.CancelledError:
            status = 503
            await self._refuse(path, RequestError(503, "the server is shutting down"), send, cors)
            raise
        except Exception as error:
            status = 500
            reference = secrets.token_hex(4)
            self.log("error", "failure", reference=reference, path=path, error=_traceback(error))
            message = f"internal server error; see {reference} in the server log"
            await self._refuse(path, RequestError(500, message), send, cors)
            _forget(error)
        finally:
            seconds = time.perf_counter() - started
            self.metrics.request(trace["model"], status, seconds, trace["instances"], trace["batch"])
            if self.settings.log_requests:
                self.log(
                    "info",
                    "request",
                    method=scope["method"],
                    path=path[:200],
                    status=status,
                    ms=round(1e3 * seconds, 3),
                    client=(scope.get("client") or ("",))[0],
                    **trace,
                )

    async def _refuse(self, path: str, error: RequestError, send: Send, cors: Headers) -> None:
        if path.startswith("/v2"):
            body: dict[str, Any] = {"error": error.message}
        else:
            body = {"error": {"status": error.status, "message": error.message, **error.more}}
        headers = [_JSON, *error.headers, *cors]
        if error.status in (408, 413):
            headers.append((b"connection", b"close"))  # what is left of the body is not read
        with contextlib.suppress(RuntimeError):  # the answer had begun
            await _respond(send, error.status, dumps(body), headers)

    # ------------------------------------------------------------------ who may ask

    def _admit(self, scope: Scope, headers: dict[bytes, bytes], path: str) -> Headers:
        """Check Host, Origin and token; return the headers for a page of another allowed origin."""
        if self._hosts:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
            if name not in self._hosts:
                raise RequestError(421, "the Host header does not match this server")
        cors: Headers = []
        origin = headers.get(b"origin")
        if origin is not None:
            cors = self._same_or_allowed(origin.decode("latin-1"), headers, scope)
        if self._token is not None and path not in _OPEN and not path.startswith("/static/"):
            if scope["method"] == "OPTIONS" and cors:
                return cors
            given = headers.get(b"authorization", b"")
            if not self._has_token(given):
                what = "wrong" if given else "needed: send Authorization: Bearer TOKEN"
                raise RequestError(401, f"a token is {what}", headers=[(b"www-authenticate", b"Bearer"), *cors])
        return cors

    def _has_token(self, authorization: bytes) -> bool:
        """Return whether this value of the header is the token, if a token is required."""
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

    def _same_or_allowed(self, origin: str, headers: dict[bytes, bytes], scope: Scope) -> Headers:
        if origin in self.security.origins:
            return [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-allow-headers", b"authorization, content-type"),
                (b"access-control-allow-methods", b"GET, POST"),
                (b"vary", b"origin"),
            ]
        own = f"{scope.get('scheme', 'http')}://{headers.get(b'host', b'').decode('latin-1')}"
        if origin.lower() != own.lower():
            raise RequestError(403, "pages of another origin may not send requests to this server")
        return []

    # ------------------------------------------------------------------ predictions

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        body = await self._received(headers, receive)
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding == b"identity":
            return body
        return await asyncio.to_thread(_inflated, body, coding, self.settings.limits.body)

    async def _received(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.settings.limits.body
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > most:
            raise RequestError(413, f"the body has {int(length):,} bytes, at most {most:,} are allowed")
        message = await receive()
        body = message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the client disconnected")
        if not message.get("more_body"):
            if len(body) > most:
                raise RequestError(413, f"the body is too large: at most {most:,} bytes are allowed")
            return body
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "the client disconnected")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise RequestError(413, f"the body is too large: at most {most:,} bytes are allowed")
        return b"".join(parts)

    async def _infer(
        self,
        path: str,
        headers: dict[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
        trace: dict[str, Any],
        cors: Headers,
    ) -> int:
        protocol2 = path.startswith("/v2/")
        if protocol2:
            name, _, rest = path[len("/v2/models/") :].partition("/")
            if not (rest == "infer" or (rest.startswith("versions/") and rest.endswith("/infer"))):
                raise RequestError(404, "this path does not exist")
            verb = "predict"
        else:
            name, _, verb = path[len("/v1/models/") :].partition(":")
            if not verb:
                raise RequestError(405, "use POST with a verb, such as :predict", headers=[(b"allow", b"GET")])
        loaded = self.store.get(name)
        trace["model"] = name
        if protocol2 and rest.startswith("versions/") and rest[9:-6] != loaded.version:
            raise RequestError(404, f"the model {name!r} has the version {loaded.version}")
        batcher = self.batchers[name]
        if batcher.waiting >= batcher.max_queue:
            raise _full()
        body = await self._body(headers, receive)
        read = self._read_v2 if protocol2 else self._read_v1
        asked: Any
        if len(body) > _INLINE:
            key, X, n, asked = await asyncio.to_thread(read, loaded, verb, headers, scope, body)
        else:
            key, X, n, asked = read(loaded, verb, headers, scope, body)
        trace["instances"] = n
        fields = await self._answer(batcher, (loaded, key), X, n, receive, trace)
        write = self._write_v2 if protocol2 else self._write_v1
        long = n > 64 or len(body) > _INLINE or asked is not None
        if long:
            content, kind = await asyncio.to_thread(write, loaded, fields, asked, headers, n)
        else:
            content, kind = write(loaded, fields, asked, headers, n)
        await _respond(send, 200, content, kind + cors if cors else kind)
        return 200

    def overloaded(self, url: bytes, headers: Headers) -> str | None:
        """Return the model of a POST to a path if its queue is full and the response would only be a retry message.

        Many requests arrive in one turn of the event loop, so requests passed to the application are counted here.
        """
        if not url.startswith(b"/v1/models/") or self.settings.log_requests:
            return None
        first, colon, _ = url[len(b"/v1/models/") :].partition(b":")
        name = first.decode("latin-1")
        batcher = self.batchers.get(name) if colon else None
        if batcher is None:
            return None
        if self._token is not None or self.security.origins:
            said = dict(headers)
            if b"origin" in said or not self._has_token(said.get(b"authorization", b"")):
                return None
        if batcher.waiting + batcher.coming >= batcher.max_queue:
            return name
        batcher.expect()
        return None

    def _read_v1(
        self, loaded: Loaded, verb: str, headers: dict[bytes, bytes], scope: Scope, body: bytes
    ) -> tuple[Ask | str, Any, int, Any]:
        answers, limits = loaded.answers, self.settings.limits
        shown = None
        try:
            if verb == "show" or verb in answers.specials:
                request = loads(body)
                if not isinstance(request, dict):
                    raise RequestError(422, "the body must be an object")
                if verb == "show":  # of the page: what another verb answers, and a drawing of it
                    verb = str(request.pop("verb", "predict"))
                    shown, body = request, dumps(request)
                if verb in answers.specials:
                    return verb, request, 1, shown
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
            raw = scope["query_string"]
            query = dict(urllib.parse.parse_qsl(raw.decode("latin-1"), max_num_fields=20)) if raw else {}
            ask, X, n = instances_of(answers, verb, kind, body, query, limits)
            return ask, X, n, shown
        except RequestError as error:
            raise _with_example(error, answers) from None
        except RecursionError:
            raise RequestError(422, "the body is nested too deeply") from None

    def _read_v2(
        self, loaded: Loaded, verb: str, headers: dict[bytes, bytes], scope: Scope, body: bytes
    ) -> tuple[Ask, Any, int, v2.Inference]:
        answers, limits = loaded.answers, self.settings.limits
        length = headers.get(b"inference-header-content-length")
        asked = v2.read(answers, body, None if length is None else length.decode("latin-1"))
        ask = parse(answers, "predict", asked.options)
        instances = asked.instances
        n = len(instances)
        if n == 0:
            raise RequestError(400, "the input is empty")
        if n > limits.instances:
            raise RequestError(413, f"too many instances: {n:,}, at most {limits.instances:,} are allowed")
        values = instances.tolist() if isinstance(instances, np.ndarray) else instances
        return ask, answers.form.read(answers.model, values, limits), n, asked

    async def _answer(
        self, batcher: Batcher, key: Any, X: Any, n: int, receive: Receive, trace: dict[str, Any]
    ) -> dict[str, Any]:
        """Wait for the response up to a time limit; drop the job if the client disconnects."""
        try:
            job = batcher.submit(key, X, n)
        except Full:
            raise _full() from None
        loop = asyncio.get_running_loop()
        future = job.future
        watch: list[asyncio.Task[None]] = []

        async def until_gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            job.dropped = True
            future.cancel()

        def expire() -> None:
            job.dropped = True
            if not future.done():
                future.set_exception(RequestError(504, "the request timed out"))

        def lose_patience() -> None:  # most requests are answered before, and cost one timer
            watch.append(loop.create_task(until_gone()))
            timers.append(loop.call_later(max(0.0, seconds - _PATIENCE), expire))

        seconds = self.settings.limits.seconds
        timers = [loop.call_later(min(_PATIENCE, seconds), lose_patience)]
        try:
            return await future
        except asyncio.CancelledError:
            if job.dropped:
                raise RequestError(400, "the client disconnected") from None
            job.dropped = True
            raise
        except RequestError:
            raise
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            raise _of_model(error, key[0].answers) from None
        finally:
            trace["batch"] = job.batch
            for timer in timers:
                timer.cancel()
            for task in watch:
                task.cancel()

    def _write_v1(
        self, loaded: Loaded, fields: dict[str, Any], asked: Any, headers: dict[bytes, bytes], n: int
    ) -> tuple[bytes, Headers]:
        if asked is not None:
            from mercer.serve import pages

            fields = {"answer": fields, "html": pages.draw(loaded.answers, asked, fields)}
        accept = headers.get(b"accept", b"")
        if b"application/x-npy" in accept:
            return npy(fields), [(b"content-type", b"application/x-npy")]
        if _ARROW in accept:
            return arrow(fields, n), [(b"content-type", _ARROW)]
        body = {"model": loaded.name, "version": loaded.version, **fields}
        return dumps(body), [_JSON]

    def _write_v2(
        self, loaded: Loaded, fields: dict[str, Any], asked: v2.Inference, headers: dict[bytes, bytes], n: int
    ) -> tuple[bytes, Headers]:
        body, length = v2.write(loaded.name, loaded.version, fields, asked)
        if length is None:
            return body, [_JSON]
        kind = (b"content-type", b"application/octet-stream")
        return body, [kind, (b"inference-header-content-length", str(length).encode())]

    # ------------------------------------------------------------------ everything else

    def _make_routes(self) -> Any:
        from starlette.routing import Route, Router

        from mercer.serve import pages

        def get(path: str, answer: Callable[[Any], Any]) -> Any:
            async def endpoint(request: Any) -> Any:
                return answer(request)

            return Route(path, endpoint, methods=["GET"])

        return Router(
            [
                get("/", lambda request: pages.index()),
                get("/docs", lambda request: pages.docs()),
                get("/static/{name}", lambda request: pages.static(request.path_params["name"])),
                get("/favicon.ico", lambda request: pages.static("icon.svg")),
                get("/openapi.json", lambda request: self._json(self._openapi())),
                get("/health", lambda request: self._json({"status": "alive"})),
                get("/ready", lambda request: self._ready()),
                get("/metrics", lambda request: self._metrics()),
                get("/v1/models", lambda request: self._json({"models": self._described()})),
                get("/v1/models/{name}", lambda request: self._json(self._describe(request.path_params["name"]))),
                get("/v2", lambda request: self._json(_server_metadata())),
                get("/v2/health/live", lambda request: self._json({"live": True})),
                get("/v2/health/ready", lambda request: self._ready()),
                get("/v2/models/{name}", lambda request: self._json(self._metadata(request.path_params["name"]))),
                get("/v2/models/{name}/versions/{version}", lambda request: self._versioned(request.path_params)),
                get("/v2/models/{name}/ready", lambda request: self._ready(request.path_params["name"])),
            ],
            redirect_slashes=False,
        )

    async def _route(self, path: str, scope: Scope, receive: Receive, send: Send, cors: Headers) -> int:
        from starlette.exceptions import HTTPException

        seen = 500

        async def protected(message: dict[str, Any]) -> None:
            nonlocal seen
            if message["type"] == "http.response.start":
                seen = message["status"]
                given = {name for name, _ in message["headers"]}
                extra = [pair for pair in (*_PROTECTED, *cors) if pair[0] not in given]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            await self._routes({**scope, "path": path, "root_path": "", "app": self}, receive, protected)
        except HTTPException as error:
            if error.status_code == 405:
                allowed = (error.headers or {}).get("Allow", "GET")
                raise RequestError(405, f"this path takes {allowed}", headers=[(b"allow", allowed.encode())]) from None
            raise RequestError(error.status_code, "this path does not exist") from None
        return seen

    def _json(self, value: Any, status: int = 200) -> Any:
        from starlette.responses import Response

        return Response(dumps(value), status, media_type="application/json")

    def _ready(self, name: str | None = None) -> Any:
        if name is not None:
            self.store.get(name)
        if self.draining:
            return self._json({"ready": False, "reason": "draining"}, 503)
        return self._json({"ready": self.store.ready}, 200 if self.store.ready else 503)

    def _metrics(self) -> Any:
        from starlette.responses import PlainTextResponse

        for name, batcher in self.batchers.items():
            self.metrics.set(batcher.waiting, "queue", name)
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    def _describe(self, name: str) -> dict[str, Any]:
        loaded = self.store.get(name)
        made = describe(name, loaded.answers, loaded.version, self.settings.limits)
        entry = self.store.entries[name]
        if entry.problem:
            made["problem"] = "the new file cannot be served; the previous model stays in use"
        return made

    def _described(self) -> list[dict[str, Any]]:
        made = []
        for name, entry in self.store.entries.items():
            if entry.current is not None:
                answers = entry.current.answers
                facts = {"kind": answers.kind, "version": entry.current.version, "page": answers.page}
                made.append({"name": name, **facts})
        return made

    def _openapi(self) -> dict[str, Any]:
        from mercer import __version__

        loaded = {name: entry.current for name, entry in self.store.entries.items()}
        models = {name: one.answers for name, one in loaded.items() if one is not None}
        return openapi(models, __version__, self.settings.limits)

    def _metadata(self, name: str) -> dict[str, Any]:
        loaded = self.store.get(name)
        return v2.metadata(name, loaded.version, loaded.answers, v2.outputs_of(loaded.answers, loaded.sample))

    def _versioned(self, params: Mapping[str, str]) -> Any:
        metadata = self._metadata(params["name"])
        if params["version"] not in metadata["versions"]:
            raise RequestError(404, f"the model has the version {metadata['versions'][0]}")
        return self._json(metadata)


_OPEN = frozenset(
    {"/", "/docs", "/health", "/ready", "/favicon.ico", "/v2/health/live", "/v2/health/ready"}
)  # without a token: they say nothing of the models


def _full() -> RequestError:
    return RequestError(503, "the queue is full: try again later", headers=[(b"retry-after", b"1")])


def full_answer() -> bytes:
    """Return the complete response for a full queue, which the server sends without calling the application."""
    error = _full()
    body = dumps({"error": {"status": error.status, "message": error.message}})
    headers = [(b"content-length", str(len(body)).encode()), _JSON, *error.headers, *_PROTECTED]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 503 Service Unavailable\r\n" + lines + b"\r\n" + body


def _server_metadata() -> dict[str, Any]:
    from mercer import __version__

    return {"name": "mercer", "version": __version__, "extensions": ["binary_tensor_data"]}


def _inflated(body: bytes, coding: bytes, most: int) -> bytes:
    """Decompress a body up to the size limit."""
    if coding not in _CODINGS:
        raise RequestError(415, "the content encoding is not supported; send gzip, deflate or none")
    reader = zlib.decompressobj(_CODINGS[coding])
    try:
        plain = reader.decompress(body, most + 1)
    except zlib.error:
        raise RequestError(400, "the body is not compressed as its content encoding says") from None
    if len(plain) > most:
        raise RequestError(413, f"the body is too large: at most {most:,} bytes are allowed")
    if not reader.eof:
        raise RequestError(400, "the compressed body is truncated")
    return plain


async def _respond(send: Send, status: int, body: bytes, headers: Headers) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers, *_PROTECTED]})
    await send({"type": "http.response.body", "body": body})


def _with_example(error: RequestError, answers: kinds.Answerer) -> RequestError:
    """Return an error about instances, with an example of the model's input."""
    if error.status != 422:
        return error
    more = {**error.more, "takes": answers.form.says, "example": {"instances": answers.example()}}
    return RequestError(422, error.message, more, error.headers)


def _of_model(error: Exception, answers: kinds.Answerer) -> RequestError:
    """Return the model's error message about its input as a response."""
    message = str(error).splitlines()[0][:500] if str(error) else "the model rejects this input"
    return _with_example(RequestError(422, message), answers)


def _forget(error: BaseException | None) -> None:
    """Empty the frames of an error that was answered: they hold the request, it holds the error, and nobody looks for
    cycles often (`server.collecting_little`)."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__context__


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error))[-4000:]


def app(
    models: Mapping[str, Any] | Iterable[str],
    *,
    token: str | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    limits: Limits | None = None,
    max_batch: int = 256,
    max_delay: float = 0.0,
    max_queue: int = 64,
    reload_seconds: float = 1.0,
    max_bytes: int | None = None,
) -> App:
    """Return an ASGI application that serves models.

    Run it with your own server: ``uvicorn module:application``. The command ``mercer serve`` adds timeouts for slow
    clients, limits on headers, TLS and several processes.

    Parameters
    ----------
    models : mapping of names to fitted models or paths, or paths
        For paths without names, the stem is the name. Files are watched and reloaded when they are replaced.
    token : str, optional
        Clients must send it as ``Authorization: Bearer TOKEN``.
    hosts : iterable of str
        Accepted values of the Host header; by default all.
    origins : iterable of str
        Other origins that may send requests (CORS); by default none.
    limits : Limits, optional
        Limits on bytes, instances and seconds of a request.
    max_batch : int, default=256
        Maximal number of instances in one batch.
    max_delay : float, default=0
        Seconds that a request may wait to be batched with others. At 0, requests that already wait in the queue are
        still batched.
    max_queue : int, default=64
        Maximal number of waiting requests per model; more are rejected with status 503.
    reload_seconds : float, default=1
        Interval between checks for replaced files; 0 disables the checks.
    max_bytes : int, optional
        As in :func:`mercer.load`.

    Returns
    -------
    App
        An ASGI application.

    Examples
    --------
    >>> from mercer.classification import LinearClassifier
    >>> from mercer.serve import app
    >>> model = LinearClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> application = app({"size": model})
    >>> sorted(application.store.entries)
    ['size']
    """
    from mercer.serve.store import model_names

    named = models if isinstance(models, Mapping) else model_names([str(path) for path in models])
    for name, value in (("max_batch", max_batch), ("max_queue", max_queue)):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    for name, seconds in (("max_delay", max_delay), ("reload_seconds", reload_seconds)):
        if not isinstance(seconds, (int, float)) or not 0 <= seconds < 3600:
            raise ValueError(f"{name} must be a number of seconds from 0 to 3600, got {seconds!r}")
    settings = Settings(limits or Limits(), max_batch, max_delay, max_queue, reload_seconds)
    security = Security(token, tuple(hosts), tuple(origins))
    return App(named, security=security, settings=settings, max_bytes=max_bytes)
