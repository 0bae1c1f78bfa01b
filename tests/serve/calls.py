"""Ask an ASGI application without a server: one request, one answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class Answer:
    """Status, headers and body."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


async def call(
    app: Any, method: str, path: str, body: Any = b"", headers: dict[str, str] | None = None, parts: int = 1
) -> Answer:
    """One request; a body that is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    step = max(1, -(-len(content) // parts))
    chunks = [content[i : i + step] for i in range(0, len(content), step)] or [b""]
    sent: list[dict[str, Any]] = []
    path, _, query = path.partition("?")

    async def receive() -> dict[str, Any]:
        if not chunks:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (k.lower().encode(), v.encode("latin-1")) for k, v in {"host": "localhost", **(headers or {})}.items()
        ],
        "scheme": "http",
        "root_path": "",
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    return Answer(sent)


def ask(
    app: Any, method: str, path: str, body: Any = b"", headers: dict[str, str] | None = None, parts: int = 1
) -> Answer:
    """`call` on an event loop of its own."""
    return asyncio.run(call(app, method, path, body, headers, parts))
