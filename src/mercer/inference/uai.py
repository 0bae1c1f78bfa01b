"""Files in the UAI format: ``MARKOV`` or ``BAYES``, cardinalities, scopes, tables; and files of evidence.

All numbers are separated by white space; the last variable of a scope changes fastest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mercer import _core
from mercer.inference.graph import FactorGraph

__all__ = ["read_uai", "read_uai_evidence", "write_uai", "write_uai_evidence"]


class _Tokens:
    """Words of a file with their lines."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        self.words = [
            (word.group(), number)
            for number, line in enumerate(text.split("\n"), 1)
            for word in re.finditer(r"\S+", line)
        ]
        self.next = 0
        self.line = 1

    def __len__(self) -> int:
        return len(self.words) - self.next

    def word(self, what: str) -> str:
        if self.next >= len(self.words):
            last = self.words[-1][1] if self.words else 1
            raise ValueError(f"{self.path}:{last}: the file ends where {what} should be")
        word, self.line = self.words[self.next]
        self.next += 1
        return word

    def fail(self, what: str) -> ValueError:
        return ValueError(f"{self.path}:{self.line}: {what}")

    def integer(self, what: str, least: int, below: int = 1 << 31) -> int:
        word = self.word(what)
        try:
            value = int(word)
        except ValueError:
            raise self.fail(f"{what} should be an integer, found {word!r}") from None
        if not least <= value < below:
            raise self.fail(f"{what} should be from {least} to {below - 1}, found {value}")
        return value


def read_bytes(path: str | Path, reader: Callable[[bytes], Any]) -> Any:
    """Return the result of a compiled reader; the file name is put before the line number in errors."""
    content = Path(path).read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError:  # names that differ in such bytes alone are the same name
        content = content.decode(errors="replace").encode()
    try:
        return reader(content)
    except ValueError as error:
        raise ValueError(f"{path}{error}") from None


def read_uai(path: str | Path) -> FactorGraph:
    """Read a model in the UAI format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.inference import FactorGraph, read_uai
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.uai"
    >>> FactorGraph([2, 3], edges=[[0, 1]], pairwise=[[1, 2, 3], [4, 5, 6]]).write_uai(path)
    >>> read_uai(path).factors[0].table
    array([[1., 2., 3.],
           [4., 5., 6.]])
    """
    cards, scope_starts, scopes, table_starts, tables = read_bytes(path, _core.inference.read_uai)
    with np.errstate(divide="ignore"):
        logs = np.log(tables, out=tables)
    return FactorGraph._of_arrays(cards, (scope_starts, scopes, table_starts, logs))


def write_uai(graph: FactorGraph, path: str | Path) -> None:
    """Write a model in the UAI format, as a Markov network.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.inference import FactorGraph, write_uai
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.uai"
    >>> write_uai(FactorGraph([2], unary=[[1, 2]]), path)
    >>> path.read_text().split()
    ['MARKOV', '1', '2', '1', '1', '0', '2', '1', '2']
    """
    lines = ["MARKOV", str(graph.n_variables), " ".join(map(str, graph.cardinalities)), str(graph.n_factors)]
    tables = []
    for scopes, logs in graph.blocks:
        for k, scope in enumerate(scopes):
            lines.append(" ".join(map(str, [len(scope), *scope])))
            values = np.exp(logs[min(k, len(logs) - 1)]).reshape(-1)
            if not np.isfinite(values).all():
                raise ValueError("a potential is too large for a UAI file: its logarithm is above 709")
            tables.append(f"\n{len(values)}\n" + " ".join(f"{value:.17g}" for value in values))
    _write(path, "\n".join([*lines, *tables]) + "\n")


def read_uai_evidence(path: str | Path) -> dict[int, int]:
    """Read a file of evidence: the number of observed variables, then pairs of a variable and its state.

    A leading 1, the number of sets of evidence, is allowed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.inference import read_uai_evidence
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai.evid"
    >>> _ = path.write_text("2 0 1 3 0")
    >>> read_uai_evidence(path)
    {0: 1, 3: 0}
    """
    tokens = _Tokens(path)
    if not len(tokens):
        return {}
    even = len(tokens) % 2 == 0
    if even and tokens.integer("the number of sets of evidence", 0) != 1:
        raise tokens.fail("there should be one set of evidence")
    count = tokens.integer("the number of observed variables", 0)
    if len(tokens) != 2 * count:
        raise tokens.fail(f"{count} observed variables need {2 * count} numbers, found {len(tokens)}")
    evidence: dict[int, int] = {}
    for _ in range(count):
        variable = tokens.integer("an observed variable", 0)
        if variable in evidence:
            raise tokens.fail(f"variable {variable} is observed twice")
        evidence[variable] = tokens.integer(f"the state of variable {variable}", 0)
    return evidence


def write_uai_evidence(evidence: dict[int, int], path: str | Path) -> None:
    """Write a file of evidence.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.inference import write_uai_evidence
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai.evid"
    >>> write_uai_evidence({0: 1, 3: 0}, path)
    >>> path.read_text()
    '2 0 1 3 0\\n'
    """
    pairs: Iterator[Any] = (int(number) for pair in evidence.items() for number in pair)
    _write(path, " ".join(map(str, [len(evidence), *pairs])) + "\n")


def _write(path: str | Path, text: str) -> None:
    """Writes through a temporary file beside it, so that no half of a file is left."""
    target = Path(path)
    temporary = target.with_name(target.name + ".part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
