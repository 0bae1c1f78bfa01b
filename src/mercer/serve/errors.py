"""Errors of requests: a status, and a message that tells the client how to correct the request."""

from __future__ import annotations

from typing import Any

__all__ = ["MissingExtraError", "RequestError", "require"]


class RequestError(Exception):
    """Raised for a rejected request.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        Description of the error. It reveals nothing about the server.
    more : dict
        Further fields of the response, such as an example of the model's input.
    headers : list of (bytes, bytes)
        Further headers of the response, such as ``Retry-After``.
    """

    def __init__(
        self,
        status: int,
        message: str,
        more: dict[str, Any] | None = None,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.more, self.headers = status, message, more or {}, headers or []


class MissingExtraError(ImportError):
    """Raised if a library of the ``serve`` extra is not installed."""


def require(*modules: str) -> None:
    """Raise an error that names the extra if a module cannot be imported."""
    import importlib.util

    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"serving needs {', '.join(missing)}: pip install 'mercer[serve]'")
