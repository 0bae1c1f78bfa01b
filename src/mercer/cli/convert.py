"""``mercer convert``: convert a file of examples to a store, which is read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import shown
from mercer.cli.errors import UsageError

if TYPE_CHECKING:
    from mercer.data.store import Store
    from mercer.data.templates import Template


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Examples: a column file or a csv file (also .gz), or - for standard input."
        ),
    ],
    folder: Annotated[str, typer.Argument(metavar="STORE", help="The folder to write, or to append to.")],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of a csv file that holds the label. Default: label, else the last."
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Features of a column file, as for [bold]mercer train tagger[/bold]."),
    ] = None,
    n_bits: Annotated[
        int,
        typer.Option(
            "--n-bits", metavar="N", help="Hash the features of a column file into 2^N columns; 0 keeps names."
        ),
    ] = 0,
    size: Annotated[int, typer.Option(metavar="N", min=1, help="Number of examples per piece.")] = 8192,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Convert a file of examples to a store: a folder for training piece by piece, in bounded memory.

    A column file (one token per line, its label last) becomes sequences with features. A csv file becomes rows if all
    columns but the label are numbers, or texts if there is one other column.

    [bold]Examples[/bold]
      mercer convert train.conll.gz train.store
      mercer convert data.csv.gz data.store --label class
      mercer train tagger --store train.store --model np.mercer
    """
    store = write_store(file, folder, label=label, template=template, n_bits=n_bits, size=size, quiet=quiet)
    if not quiet:
        terminal.heading("store")
        terminal.figures(
            [
                ("examples", f"{store.n_examples:,}"),
                ("kind", store.kind),
                ("pieces", f"{len(store):,}"),
                ("size", f"{store.nbytes / 1e6:,.1f} MB"),
                ("folder", folder),
            ]
        )


def write_store(
    file: str,
    folder: str,
    *,
    label: str | None = None,
    template: str | None = None,
    n_bits: int = 0,
    size: int = 8192,
    quiet: bool = False,
) -> Store:
    """Write the examples of a file to a store, piece by piece."""
    from mercer._progress import Pace, say
    from mercer.data.readers.sniff import sniff
    from mercer.data.readers.source import Source
    from mercer.data.store import Store

    store, pace = Store(folder), Pace(1.0)

    def done(n: int) -> None:
        if not quiet and terminal.is_watched() and pace.due():
            say(f"{n:,} examples in {len(store)} pieces, {store.nbytes / 1e6:,.1f} MB")

    columns = file == "-" or sniff(Source(file, None)).format == "columns"
    if columns:
        if label is not None:
            raise UsageError("--label is for csv files; a column file has its labels last")
        sentences, chosen = _sentences(file, template)
        store.extend(sentences, size, done=done, template=chosen, n_bits=n_bits)
    else:
        rows, kind = _rows(file, label)
        store.extend(rows, size, done=done, kind=kind)
    if not len(store):
        raise UsageError(f"{shown(file)}: no examples in this file")
    return store


def _sentences(file: str, name: str | None) -> tuple[Iterator[tuple[Any, Any]], Template]:
    from mercer.data.readers.conll import iter_conll
    from mercer.data.templates import Template, default_template

    sentences = iter_conll(file)
    first = next(sentences, None)
    if first is None:
        raise UsageError(f"{shown(file)}: no sentences in this file", "expected one token per line, its label last")
    width = len(first[0])
    if width < 2:
        raise UsageError(f"{shown(file)}: expected columns and a label after them, found {width} column")
    chosen = default_template(width - 1) if name is None else Template.load(name)
    if chosen.n_columns > width - 1:
        raise UsageError(
            f"the template uses column {chosen.n_columns - 1}, but {shown(file)} has {width - 1} before the label"
        )
    pairs = (([token[:-1] for token in one], [token[-1] for token in one]) for one in chain([first], sentences))
    return pairs, chosen


def _rows(file: str, label: str | None) -> tuple[Iterator[tuple[Any, Any]], str]:
    import csv

    reader = csv.reader(_lines(file))
    header = next(reader, None)
    first = next(reader, None)
    if header is None or first is None:
        raise UsageError(f"{shown(file)}: no examples in this file", "expected csv with a header")
    place = _label_place(header, label, file)
    others = [i for i in range(len(header)) if i != place]
    numeric = all(_is_number(first[i]) for i in others)
    if not numeric and len(others) != 1:
        raise UsageError(
            f"{shown(file)}: columns that are not numbers, and more than one of them",
            "a store takes numbers, or one column of text; mercer train classifier reads such a file as it is",
        )

    def examples() -> Iterator[tuple[Any, Any]]:
        for number, row in enumerate(chain([first], reader), 2):
            if len(row) != len(header):
                raise UsageError(f"{shown(file)}:{number}: {len(row)} cells, the header has {len(header)}")
            if not numeric:
                yield row[others[0]], row[place]
                continue
            try:
                yield [float(row[i]) for i in others], row[place]
            except ValueError:
                raise UsageError(f"{shown(file)}:{number}: expected numbers beside the label") from None

    return examples(), "rows" if numeric else "texts"


def _lines(file: str) -> Iterator[str]:
    from mercer.data.readers.lines import decoded_lines, open_source

    with ExitStack() as stack:
        yield from decoded_lines(*open_source(file, stack))


def _label_place(header: list[str], label: str | None, file: str) -> int:
    names = [name.strip() for name in header]
    if label is not None:
        if label not in names:
            raise UsageError(f"{shown(file)}: no column {label!r}; there are {', '.join(names)}")
        return names.index(label)
    return next((names.index(name) for name in ("label", "target", "class", "y") if name in names), len(names) - 1)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
