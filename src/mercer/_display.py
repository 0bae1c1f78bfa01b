"""How results show themselves in notebooks: one hook, so that what lies below ``mercer.report`` need not know it.

What a value looks like is said in ``mercer.report.views``, which is imported when a notebook asks.
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
