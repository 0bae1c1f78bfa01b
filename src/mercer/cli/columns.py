"""Column files for the commands: with a label column, without one, or either."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mercer.cli.errors import UsageError, settings

if TYPE_CHECKING:
    from mercer.data.readers.conll import Sentence
    from mercer.tagging import Tagger

Labelled = tuple[list["Sentence"], list[list[str]]]


def shown(file: str) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if file == "-" else file


def read_labelled(file: str, n_columns: int | None = None) -> Labelled:
    """Read a file whose last column is the label; return sentences without labels, and the labels.

    With ``n_columns``, the number of columns of a model, the file must have these columns and the label.
    """
    from mercer.data.readers.conll import read_conll

    sentences = read_conll(file)
    if not sentences:
        raise UsageError(f"{shown(file)}: no sentences in this file", "expected one token per line, its label last")
    width = len(sentences[0][0])
    if n_columns is None and width < 2:
        raise UsageError(
            f"{shown(file)}: expected at least 2 columns, found 1",
            "a line holds a token's columns and, last, its label",
        )
    if n_columns is not None and width == n_columns:
        raise UsageError(
            f"{shown(file)}: no labels: expected {n_columns + 1} columns (the {n_columns} of the model "
            f"and the label), found {width}",
            "mercer predict takes files without labels",
        )
    if n_columns is not None and width != n_columns + 1:
        raise UsageError(
            f"{shown(file)}: expected {n_columns + 1} columns (the {n_columns} of the model and the label), "
            f"found {width}"
        )
    X = [[token[:-1] for token in sentence] for sentence in sentences]
    y = [[token[-1] for token in sentence] for sentence in sentences]
    return X, y


def iter_columns(file: str, n_columns: int) -> Iterator[Sentence]:
    """Yield the sentences of a file with the columns of a model, with or without a label column."""
    from mercer.data.readers.conll import iter_conll

    sentences = iter_conll(file)
    first = next(sentences, None)
    if first is None:
        return
    width = len(first[0])
    if width not in (n_columns, n_columns + 1):
        raise UsageError(
            f"{shown(file)}: expected {n_columns} or {n_columns + 1} columns (the {n_columns} of the model, "
            f"with or without a label after them), found {width}"
        )
    yield from itertools.chain([first], sentences)


def batches(sentences: Iterable[Sentence], n_tokens: int) -> Iterator[list[Sentence]]:
    """Group sentences into batches of about ``n_tokens`` tokens."""
    batch: list[Sentence] = []
    size = 0
    for sentence in sentences:
        batch.append(sentence)
        size += len(sentence)
        if size >= n_tokens:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass(frozen=True)
class Line:
    """A line of a column file: a token, or another line that is kept."""

    text: str
    token: tuple[str, ...] | None
    separator: str = " "


def line_batches(file: str, n_columns: int, n_tokens: int, *, more: bool = False) -> Iterator[list[Line]]:
    """Yield lines of a file with the columns of a model and an optional label, in batches of whole sentences.

    Lines that begin with # and differ in their number of columns are comments. With ``more``, any number of columns
    from ``n_columns`` on is allowed.
    """
    from mercer.data.readers.lines import read_lines
    from mercer.exceptions import DataFileError

    batch: list[Line] = []
    size, width, first = 0, 0, 0
    for number, text in enumerate(read_lines(file), 1):
        row = tuple(filter(None, text.replace("\t", " ").split(" ")))
        if not row or (row[0].startswith("#") and len(row) not in ((width,) if width else (n_columns, n_columns + 1))):
            batch.append(Line(text, None))
            if not row and size >= n_tokens:
                yield batch
                batch, size = [], 0
            continue
        if not width:
            width, first = len(row), number
            if more and width < n_columns:
                raise UsageError(
                    f"{shown(file)}: expected at least {n_columns} columns, which the model's template uses, "
                    f"found {width}"
                )
            if not more and width not in (n_columns, n_columns + 1):
                raise UsageError(
                    f"{shown(file)}: expected {n_columns} or {n_columns + 1} columns (the {n_columns} of the model, "
                    f"with or without a label after them), found {width}"
                )
        elif len(row) != width:
            columns = "column" if width == 1 else "columns"
            what = f"expected {width} {columns} as in line {first}, found {len(row)}"
            hint = "sentences are separated by blank lines; columns by spaces or tabs"
            raise DataFileError(shown(file), number, what, hint)
        batch.append(Line(text, row, "\t" if "\t" in text else " "))
        size += 1
    if batch:
        yield batch


def with_ends(lines: list[Line], ends_of: Callable[[list[Sentence]], Iterable[tuple[str, ...]]]) -> Iterator[str]:
    """Yield the lines of sentences, with the result of ``ends_of`` appended to each token."""
    batch: list[Sentence] = [[]]
    for line in lines:
        if line.token is not None:
            batch[-1].append(line.token)
        elif batch[-1] and not line.text.strip():
            batch.append([])
    batch = [sentence for sentence in batch if sentence]
    ends = iter(ends_of(batch) if batch else ())
    for line in lines:
        yield line.text if line.token is None else line.text.rstrip() + line.separator + line.separator.join(next(ends))


def check_tagger(loaded: Any, model: str, jobs: int) -> Tagger:
    """Return a loaded model if it is a tagger that reads column files."""
    from mercer.tagging import Tagger

    if not isinstance(loaded, Tagger):
        raise UsageError(
            f"{model}: expected a tagger, a segmenter, a classifier or a regressor, this is a model of the kind "
            f"{type(loaded).__name__}",
            "use it from Python: mercer.load(path).predict(X)",
        )
    if loaded.template is None:
        raise UsageError(
            f"{model}: this tagger has no template: it was trained on features, not on a column file",
            "use it from Python: mercer.load(path).predict(X)",
        )
    loaded.n_jobs = jobs
    return loaded


def load(model: str) -> Any:
    """Load a model of any kind."""
    import mercer
    from mercer.exceptions import ModelFileError

    try:
        return mercer.load(model, max_bytes=settings.max_bytes)
    except ModelFileError as error:
        what = _looks_like(model)
        if what is None:
            raise
        hint = "mercer train makes models; the model comes first: mercer predict MODEL FILE, mercer inspect MODEL"
        raise UsageError(f"{model}: this is not a model, it looks like {what}", hint) from error


def _looks_like(path: str) -> str | None:
    """What a file is that is no model; None where it begins like one and may be damaged."""
    with open(path, "rb") as file:
        head = file.read(64)
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40:
        return None
    if not head:
        return "an empty file"
    from mercer.data.readers.sniff import sniff
    from mercer.data.readers.source import Source
    from mercer.exceptions import DataFileError

    names = {
        "csv": "a table", "jsonl": "JSON", "text": "labelled texts", "columns": "a column file", "svmlight": "svmlight",
        "vw": "Vowpal Wabbit's format",
    }  # fmt: skip
    try:
        return names.get(sniff(Source(path)).format, "text")
    except DataFileError:
        return "something else"


def n_columns(tagger: Tagger) -> int:
    """Return the number of columns, without the label, of a file for this tagger."""
    assert tagger.template is not None
    return tagger.n_columns_ or tagger.template.n_columns


def check_writable(path: str, *, device: bool = False) -> None:
    """Raise an error before the work if a file (or a device) cannot be written."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise UsageError(f"{path}: cannot write a file here, it is a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        if device:
            return
        raise UsageError(f"{path}: cannot write a file here, it is not a regular file")
    if not os.path.isdir(folder):
        raise UsageError(f"{path}: no such directory to write in: {os.path.dirname(path) or '.'}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: no permission to write in this directory")
