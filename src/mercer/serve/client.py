"""HTTP client with persistent connections, retries with back-off, and the server's error messages."""

from __future__ import annotations

import http.client
import io
import json
import random
import ssl
import threading
import time
import urllib.parse
from typing import Any

import numpy as np

__all__ = ["Client", "ServerError"]

_AGAIN = frozenset({502, 503, 504})
_LOST = (ConnectionError, http.client.HTTPException, TimeoutError, ssl.SSLError, OSError)


class ServerError(Exception):
    """The server rejected a request, or could not be reached.

    Attributes
    ----------
    status : int or None
        The HTTP status; None if there was no response.
    answer : dict
        Body of the response, which may contain an example of the model's input.

    Examples
    --------
    >>> from mercer.serve import ServerError
    >>> ServerError(404, "there is no model 'x'").status
    404
    """

    def __init__(self, status: int | None, message: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message if status is None else f"{status}: {message}")
        self.status, self.answer = status, answer or {}


class Client:
    """A client of a server that ``mercer serve`` runs. It may be used from several threads.

    Predictions change nothing on the server, so the client retries if the server is busy (503), the connection is lost,
    or the request times out. The pauses grow exponentially, with random jitter. If a persistent connection is lost, for
    example because its worker process was killed, the first retry is immediate: other workers listen on the same port.

    Parameters
    ----------
    url : str
        Address of the server, such as ``"http://localhost:8000"``.
    token : str, optional
        The server's token.
    timeout : float, default=30
        Seconds to wait for a response.
    retries : int, default=4
        Maximal number of retries.
    backoff : float, default=0.1
        Seconds before the first retry; doubled each time, up to 5.
    context : ssl.SSLContext, optional
        For https, such as one that trusts the certificate of your server.

    Examples
    --------
    >>> from mercer.serve import Client
    >>> client = Client("http://localhost:8000")
    >>> client.predict("tagger", [["Ada", "wrote", "programs"]])  # doctest: +SKIP
    [['B-PER', 'O', 'O']]
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        backoff: float = 0.1,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and contain a host, got {url!r}")
        if type(retries) is not int or retries < 0:
            raise ValueError(f"retries must be a whole number of at least 0, got {retries!r}")
        for name, value in (("timeout", timeout), ("backoff", backoff)):
            if not isinstance(value, (int, float)) or not value > 0:
                raise ValueError(f"{name} must be a positive number of seconds, got {value!r}")
        self.url, self.timeout, self.retries, self.backoff = url.rstrip("/"), timeout, retries, backoff
        self._host, self._port, self._https = parts.hostname, parts.port, parts.scheme == "https"
        self._root = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._context = context
        self._own = threading.local()

    def models(self) -> list[dict[str, Any]]:
        """Return name, kind and version of every model."""
        return self._json("GET", "/v1/models")["models"]

    def model(self, name: str) -> dict[str, Any]:
        """Return the input and output format of a model, with an example."""
        return self._json("GET", f"/v1/models/{_quoted(name)}")

    def ready(self) -> bool:
        """Return whether the server responds and every model is loaded."""
        try:
            return self._once("GET", "/ready", None, {})[0] == 200
        except _LOST:
            return False

    def predict(self, model: str, instances: Any) -> list[Any]:
        """Return the predictions for instances.

        Parameters
        ----------
        model : str
            The name of the model.
        instances : list, or array of shape (n, d)
            Instances in the form that the model's ``predict`` takes. Arrays of numbers are sent as binary data.

        Returns
        -------
        list
            One prediction for each instance.
        """
        return self.ask(model, instances)["predictions"]

    def ask(self, model: str, instances: Any, *, verb: str = "predict", **options: Any) -> dict[str, Any]:
        """Return the complete response to a request with options.

        Parameters
        ----------
        model : str
            The name of the model.
        instances : list, or array of shape (n, d)
        verb : str, default="predict"
            Another method of the model, such as ``"transform"``.
        **options
            ``probabilities=True``, ``scores=True``, ``k_best=3``, ``explain=5``, ``outputs=["entropy"]``.

        Returns
        -------
        dict
            ``predictions``, and the results of the options.
        """
        path = f"/v1/models/{_quoted(model)}:{_quoted(verb)}"
        if isinstance(instances, np.ndarray) and instances.dtype.kind in "fiub" and instances.ndim >= 2:
            buffer = io.BytesIO()
            np.save(buffer, instances, allow_pickle=False)
            query = urllib.parse.urlencode({name: _worded(value) for name, value in options.items()})
            return self._json("POST", f"{path}?{query}" if query else path, buffer.getvalue(), "application/x-npy")
        body = json.dumps({"instances": instances, **options}, default=_plain, allow_nan=False).encode()
        return self._json("POST", path, body)

    def call(self, model: str, verb: str, **fields: Any) -> dict[str, Any]:
        """Return the response of a verb with special fields: ``register``, ``nearest`` or ``shares``.

        Parameters
        ----------
        model : str
        verb : str
        **fields
            Such as ``source=…, target=…`` for ``"register"``.
        """
        body = json.dumps(fields, default=_plain, allow_nan=False).encode()
        return self._json("POST", f"/v1/models/{_quoted(model)}:{_quoted(verb)}", body)

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------ one request, and again

    def _json(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        headers = {} if body is None else {"Content-Type": kind}
        last = ServerError(None, "no answer")
        for attempt in range(self.retries + 1):
            pause = min(5.0, self.backoff * 2**attempt) * random.uniform(0.5, 1.0)
            kept = getattr(self._own, "connection", None) is not None
            try:
                status, content, after = self._once(method, path, body, headers)
            except _LOST as error:
                self.close()
                if kept and not isinstance(error, TimeoutError):
                    pause = 0.0  # the next attempt has a connection of its own
                last = ServerError(None, f"{self.url} cannot be reached: {error or type(error).__name__}")
            else:
                try:
                    answer = json.loads(content)
                except ValueError:
                    answer = {}
                if status == 200:
                    return answer
                said = answer.get("error", {}) if isinstance(answer, dict) else {}
                said = {"message": said} if isinstance(said, str) else said
                last = ServerError(status, said.get("message", f"the server answered with status {status}"), said)
                if status not in _AGAIN:
                    raise last
                pause = max(pause, min(after, 5.0) * random.uniform(0.2, 1.0))
            if attempt < self.retries:
                time.sleep(pause)
        raise last

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes, float]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            if self._https:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self.timeout, context=self._context
                )
            else:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)
            self._own.connection = connection
        try:
            connection.request(method, self._root + path, body, {**self._headers, **headers})
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        after = response.getheader("Retry-After", "0")
        return response.status, content, float(after) if after.isdecimal() else 0.0


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _worded(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"instances must be JSON values or arrays, found {type(value).__name__}")
