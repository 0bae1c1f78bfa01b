"""What goes wrong with a request: a status, and a message that says what the caller can put right."""

from __future__ import annotations

from typing import Any

__all__ = ["MissingExtraError", "RequestError", "require"]


class RequestError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        What is wrong with the request. It says nothing about the machine.
    more : dict
        Further fields of the answer, such as an example of what the model takes.
    headers : list of (bytes, bytes)
        Further headers of the answer, such as ``Retry-After``.
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
    """A library of the ``serve`` extra is not installed."""


def require(*modules: str) -> None:
    """Raise an error that names the extra, unless all modules can be imported."""
    import importlib.util

    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"serving needs {', '.join(missing)}: pip install 'mercer[serve]'")
