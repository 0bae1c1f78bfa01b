"""Errors and warnings of all modules; a filter on a warning silences it everywhere."""

from __future__ import annotations

from typing import Any

__all__ = ["DataFileError", "DataScaleWarning"]


class DataScaleWarning(UserWarning):
    """The units of the data do not fit the model: rescale the columns, or choose a kernel's width by the data."""


class DataFileError(ValueError):
    """A malformed file: names the file, the line and the error.

    Parameters
    ----------
    file : str
        Name of the file, as the person gave it.
    line : int
        Line number, counted from 1.
    what : str
        What was expected and what was found.
    hint : str, default=""
        A second sentence that helps to repair the file.

    Examples
    --------
    >>> from mercer.data import DataFileError
    >>> raise DataFileError("broken.conll", 1203, "expected 3 columns as in line 1, found 2")
    Traceback (most recent call last):
        ...
    mercer.exceptions.DataFileError: broken.conll:1203: expected 3 columns as in line 1, found 2
    """

    def __init__(self, file: str, line: int, what: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file = file
        self.line = line
        self.what = what
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:  # so that a worker process can hand the error back
        return type(self), (self.file, self.line, self.what, self.hint)
