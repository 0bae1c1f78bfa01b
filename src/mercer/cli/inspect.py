"""``mercer inspect``: show the content of a model file, or of a file of a graphical model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import classifier, examples, multilabel, proportions, segmenter, terminal
from mercer.cli.columns import check_writable, load, n_columns, read_labelled, shown
from mercer.cli.errors import UsageError
from mercer.cli.promises import promised

if TYPE_CHECKING:
    from mercer.report.portrait import Block, Curves, Matrix, Weights

_WHOLE_TABLE = 12  # labels; with more, a table of all pairs is no longer read but searched
_NETWORKS = (".bif", ".uai")


def inspect(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model file; or a graphical model in the formats .bif or .uai.")
    ],
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Number of features for each label.")] = 10,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="L",
            help="Only this label. With --data and a model of label sets or of proportions: the column of labels, or "
            "the XML file that names them.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A labelled file that the model has not seen: shows confusion, calibration, the examples most "
            "wrong, bounds on the error. Of taggers, segmenters, classifiers, regressors, label sets and proportions; "
            'of other structured models: .jsonl with lines {"x": …, "y": …}, .npz with X and y, or bracketed trees.',
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="PATH",
            help="Write a page with charts here instead: one file that needs no network.",
        ),
    ] = None,
) -> None:
    """Show the settings and the learnt content of a model.

    All kinds of models have a page: the top features of each label, transitions, support objects, tables, the history
    of training. With --data the page also shows the performance of the model on a file.

    [bold]Examples[/bold]
      mercer inspect np.mercer
      mercer inspect np.mercer --label B-NP --top 20
      mercer inspect spam.mercer --data held-out.csv --html spam.html
      mercer inspect alarm.bif --html alarm.html
    """
    if html is not None:
        check_writable(html)
    if model.lower().endswith(_NETWORKS):
        _inspect_network(model, html, label, data)
        return
    loaded = load(model)
    tables = multilabel.is_multilabel(loaded) or proportions.is_proportional(loaded)
    column = label if tables and data is not None else None
    label = None if column is not None else label
    _check_label(loaded, model, label)
    more = [] if data is None else _examined(loaded, model, data, top, column)
    title = os.path.basename(model)
    if html is not None:
        from mercer.report.model import model_page

        _write(html, model_page(loaded, title=title, top=top, label=label, more=more))
        return
    from mercer.report.portrait import Facts, portrait

    facts, *blocks = portrait(loaded, top, label)
    assert isinstance(facts, Facts)
    terminal.heading(f"{model}: {type(loaded).__name__}")
    terminal.figures([("file", f"{os.path.getsize(model) / 1e6:,.1f} MB"), *facts.rows])
    _print([*more, *blocks], top, label)


def _check_label(model: Any, path: str, label: str | None) -> None:
    if label is None:
        return
    known = [str(name) for name in model.classes_.tolist()] if hasattr(model, "classes_") else []
    if label not in known:
        hint = f"its labels: {', '.join(known)}" if known else "it has no labels"
        raise UsageError(f"{path}: no label {label!r} in this model", hint)


def _write(path: str, page: str) -> None:
    from mercer.report import write_page

    write_page(path, page)
    terminal.say("page written to ", path)


def _inspect_network(path: str, html: str | None, label: str | None, data: str | None) -> None:
    if label is not None or data is not None:
        raise UsageError(f"{path}: --label and --data are for trained models, and this is a graphical model")
    from mercer.inference import read_uai
    from mercer.inference.bif import read_bif
    from mercer.report.portrait import Facts
    from mercer.report.views import network_blocks, network_page

    network = read_bif(path) if path.lower().endswith(".bif") else read_uai(path)
    if html is not None:
        _write(html, network_page(network, title=os.path.basename(path)))
        return
    facts, *blocks = network_blocks(network)
    assert isinstance(facts, Facts)
    terminal.heading(f"{path}: {type(network).__name__}")
    terminal.figures(facts.rows)
    _print(blocks, 0, None)


# ------------------------------------------------------------------------------------------------------------ printing


def _print(blocks: Iterable[Block], top: int, label: str | None) -> None:
    from mercer.report.portrait import Curves, Facts, Listing, Matrix, Pictures, Weights

    for block in blocks:
        if isinstance(block, Weights):
            _print_weights(block)
            continue
        print()
        if isinstance(block, Facts):
            if block.title:
                terminal.heading(block.title.lower())
            terminal.figures(block.rows)
        elif isinstance(block, Listing):
            terminal.heading(f"{block.title.lower()}{f' ({block.note})' if block.note else ''}")
            terminal.table(block.header, block.rows, block.align)
        elif isinstance(block, Matrix):
            _print_matrix(block, top, label)
        elif isinstance(block, Pictures):
            terminal.heading(block.title.lower())
            terminal.say(f"  {len(block.values)} pictures: --html PATH shows them")
        else:
            assert isinstance(block, Curves)
            _print_curves(block)


def _print_weights(block: Weights) -> None:
    if not block.lists:
        print()
        terminal.say(f"  {block.note or 'no weights'}")
    for label, pairs in block.lists.items():
        print()
        terminal.heading(label or block.title.lower())
        positive = [(name, f"{weight:+.4f}") for name, weight in pairs if weight > 0 or not label]
        if positive:
            terminal.table(["feature", "weight"], positive, "lr")
        else:
            terminal.say("  no feature speaks for this label")


def _print_matrix(block: Matrix, top: int, label: str | None) -> None:
    title = block.title.lower() if len(block.rows) != 2 or block.rows[0] != "first" else "first and last label"
    if max(len(block.rows), len(block.columns)) <= _WHOLE_TABLE and label is None:
        axes = f" (rows {block.row_axis}, columns {block.column_axis})" if block.row_axis and block.column_axis else ""
        terminal.heading(f"{title}{axes}")
        shown_as = _weight if block.diverging else _share
        rows = [[name, *map(shown_as, values)] for name, values in zip(block.rows, block.values, strict=True)]
        terminal.table(["", *block.columns], rows, "l" + "r" * len(block.columns))
        return
    if not block.diverging and block.rows == block.columns:
        _print_confusion(block, top, label)
        return
    pairs = [
        (float(block.values[i, j]), f"{a} → {b}")
        for i, a in enumerate(block.rows)
        for j, b in enumerate(block.columns)
        if label is None or label in (a, b)
    ]
    forbidden = sum(not math.isfinite(value) for value, _ in pairs)
    known = sorted((pair for pair in pairs if math.isfinite(pair[0])), key=lambda pair: -pair[0])
    most = max(1, top)
    few = known if len(known) <= 2 * most else known[:most] + known[-most:]
    terminal.heading(f"{title} ({len(few)} strongest of {len(known)}{f', {forbidden} forbidden' if forbidden else ''})")
    terminal.table(["from → to", "value"], [(name, f"{value:+.4f}") for value, name in few], "lr")


def _print_confusion(block: Matrix, top: int, label: str | None) -> None:
    """The pairs of different labels that are confused most."""
    pairs = [
        (float(block.values[i, j]), a, b)
        for i, a in enumerate(block.rows)
        for j, b in enumerate(block.columns)
        if i != j and block.values[i, j] > 0 and (label is None or label in (a, b))
    ]
    few = sorted(pairs, key=lambda pair: -pair[0])[: max(1, top)]
    terminal.heading(f"{block.title.lower()} ({len(few)} of {len(pairs)} pairs)")
    terminal.table([block.row_axis, block.column_axis, "share"], [(a, b, _share(v)) for v, a, b in few], "llr")


def _print_curves(block: Curves) -> None:
    """A few points of each series: enough to see where it goes."""
    terminal.heading(f"{block.title.lower()}: {block.y} by {block.x}")
    for name, (x, y) in block.series.items():
        places = sorted({round(k * (len(x) - 1) / 7) for k in range(8)}) if len(x) > 8 else range(len(x))
        points = "  ".join(f"{x[k]:.4g}: {y[k]:.4g}" for k in places)
        terminal.say("  ", (f"{name}  ", "dim") if len(block.series) > 1 else "", points)


def _share(value: float) -> str:
    return f"{value:.3f}"


def _weight(value: float) -> str:
    return f"{value:+.2f}" if math.isfinite(value) else "–"


# ------------------------------------------------------------------------------------------------------ held-out data


def _examined(model: Any, path: str, file: str, top: int, label: str | None) -> list[Block]:
    """How the model does on a file."""
    from mercer.tagging import Tagger

    with terminal.working(f"reading {shown(file)}"):
        if classifier.is_hashed(model):
            return _examined_lines(model, file, top)
        if proportions.is_proportional(model):
            return proportions.examine(model, file, label, top)
        if multilabel.is_multilabel(model):
            return multilabel.examine(model, file, label, top)
        if examples.takes(model, file):
            return examples.examine(model, file, top)
        if segmenter.is_segmenter(model):
            return segmenter.examine(model, path, file, top)
        if isinstance(model, Tagger) and model.template is not None:
            from mercer.report.examined import examined_tags

            X, y = read_labelled(file, n_columns(model))
            probable = getattr(model.loss, "name", model.loss) == "log"
            marginals = model.predict_marginals(X) if probable else None
            predicted = model.predict(X)
            wrong = [list(a) != list(b) for a, b in zip(predicted, y, strict=True)]
            blocks = examined_tags(X, y, predicted, marginals, model.classes_.tolist(), top)
            return [*blocks, promised("sentences", wrong, model, X, y)]
    raise UsageError(
        f"{path}: --data needs a model that reads files, and this is a {type(model).__name__}",
        'structured models take lines {"x": …, "y": …} (.jsonl) or arrays X and y (.npz); in Python, '
        "mercer.report.examined compares predictions with labels",
    )


def _examined_lines(model: Any, file: str, top: int) -> list[Block]:
    import numpy as np

    from mercer.data.readers.excerpts import excerpts
    from mercer.data.readers.source import Source
    from mercer.online.files import ReadReport, labelled_blocks, outputs_of
    from mercer.online.formats import FileFormat
    from mercer.report.examined import examined, examined_numbers

    truths, answers, sure, of_truth, labelled = [], [], [], [], []
    numeric, probable = model._numeric_targets, getattr(model, "loss", "") in ("log", "hybrid")
    for block in labelled_blocks(model, file, FileFormat(), "raise", report=ReadReport()):
        truth, _, known = outputs_of(model, block)
        labelled.append(known)
        if numeric or not probable:
            answers.append(np.asarray(model.predict(block))[known])
        else:
            p = model.predict_proba(block)[known]
            place = {c: i for i, c in enumerate(model.classes_.tolist())}
            at = np.array([place.get(t, -1) for t in truth[known].tolist()], np.int64)
            answers.append(model.classes_[p.argmax(axis=1)])
            sure.append(p.max(axis=1))
            of_truth.append(np.where(at >= 0, p[np.arange(len(p)), at], 0.0))
        truths.append(truth[known])
    if not sum(map(len, truths)):
        raise UsageError(f"{shown(file)}: no labelled examples in this file")
    places = np.flatnonzero(np.concatenate(labelled))
    source = Source(file, model.file_format_.encoding)
    text = excerpts(source, model.file_format_, sum(map(len, labelled)))
    where = None if text is None else lambda k: text(int(places[k]))
    truth, answer = np.concatenate(truths), np.concatenate(answers)
    if numeric:
        return examined_numbers(truth, answer, where, top)
    blocks = examined(
        truth.astype(str), answer.astype(str), confidence=np.concatenate(sure) if sure else None,
        of_truth=np.concatenate(of_truth) if of_truth else None, shown=where, worst=top,
    )  # fmt: skip
    return [*blocks, promised("labels", truth.astype(str) != answer.astype(str))]
