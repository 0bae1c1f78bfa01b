"""Printing: results to standard output, plain if it is not a terminal; everything else to standard error."""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

_STYLES = {
    "error": "bold red", "warning": "bold yellow", "hint": "bold cyan", "note": "bold cyan", "interrupted": "bold",
}  # fmt: skip


def make_streams_robust() -> None:
    """Replace characters that the terminal cannot encode by question marks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def say(*parts: str | tuple[str, str]) -> None:
    """Print a line to standard output; a part may be (text, style)."""
    Console(highlight=False).print(Text.assemble(*parts), soft_wrap=True)


def complain(kind: str, message: str = "") -> None:
    """Print ``kind: message`` to standard error."""
    line = Text.assemble((f"{kind}:" if message else kind, _STYLES[kind]), f" {message}" if message else "")
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show a progress indicator on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextlib.contextmanager
def warnings_at_the_end() -> Iterator[None]:
    """Hold back warnings until the block has ended."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def is_watched() -> bool:
    """Return whether standard error is a terminal, so that progress is useful."""
    return Console(stderr=True).is_terminal


def heading(text: str) -> None:
    """Print a highlighted line."""
    say((text, "bold"))


def figures(rows: Iterable[tuple[str, object]]) -> None:
    """Print named values, one per line."""
    shown = [(name, str(value)) for name, value in rows]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        say("  ", (f"{name:{width}}", "dim"), "  ", value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    """Print a table; ``align`` has one of l and r for each column."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (f"{cell:{'<' if a == 'l' else '>'}{w}}" for cell, a, w in zip(cells, align, widths, strict=True))
        return ("  " + "  ".join(padded)).rstrip()

    say((line(header), "dim"))
    for row in rows:
        say(line(row))


def prose(command: Callable[..., object]) -> str:
    """Return a command's help from its docstring, with the lines of paragraphs joined."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(p if "\n  " in p else p.replace("\n", " ") for p in paragraphs)


def count(n: int, noun: str) -> str:
    """``1 sentence``, ``2,000 sentences``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
