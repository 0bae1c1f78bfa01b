"""Warnings that any part of the package may give; a filter on one of these classes silences it everywhere."""

from __future__ import annotations

__all__ = ["DataScaleWarning"]


class DataScaleWarning(UserWarning):
    """The units of the data do not fit the model: rescale the columns, or choose a kernel's width by the data."""
