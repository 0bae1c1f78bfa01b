"""Display of results in notebooks: one hook, so that the packages below ``mercer.report`` do not import it.

``mercer.report.views`` renders a value. It is imported when a notebook first displays one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Displayed"]


class Displayed:
    """A result that notebooks show as tables and charts instead of its ``repr``."""

    def _repr_html_(self) -> str:
        return str(import_module("mercer.report.views").html_of(self))

    def plot(self) -> Any:
        """Return the picture that notebooks show, as :class:`mercer.report.Html`; write it into a page of your own."""
        return import_module("mercer.report.views").html_of(self)
