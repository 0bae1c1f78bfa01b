"""``mercer inspect``: what is in a model file."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import classifier, proportions, segmenter, terminal
from mercer.cli.columns import check_writable, load
from mercer.cli.errors import Mistake

if TYPE_CHECKING:
    from mercer.tagging import Tagger

_WHOLE_TABLE = 12  # labels; with more, a table of all pairs is no longer read but searched


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many features of each label.")] = 10,
    label: Annotated[str | None, typer.Option(metavar="L", help="Only this label.")] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="PATH",
            help="Write a page with charts here instead: one file that needs no network.",
        ),
    ] = None,
) -> None:
    """Show what a model is and what it has learnt.

    [bold]Examples[/bold]
      mercer inspect np.mercer
      mercer inspect np.mercer --label B-NP --top 20
      mercer inspect np.mercer --html np.html
    """
    if html is not None:
        check_writable(html)
    loaded = load(model)
    from mercer.tagging import Tagger

    if segmenter.is_segmenter(loaded):
        segmenter.check_label(loaded, model, label)
        if html is None:
            segmenter.show(loaded, model, top, label)
            return
        from mercer.report.model import segmenter_page

        _write(html, segmenter_page(loaded, title=os.path.basename(model), top=top))
        return
    if not isinstance(loaded, Tagger):
        if html is not None or label is not None:
            raise Mistake(
                f"{model}: --html and --label are for taggers and segmenters, this is a model of the kind "
                f"{type(loaded).__name__}"
            )
        if proportions.is_proportional(loaded):
            proportions.show(loaded, model, top)
            return
        (classifier.show if classifier.is_hashed(loaded) else _show_parameters)(loaded, model)
        return
    if label is not None and label not in map(str, loaded.classes_.tolist()):
        raise Mistake(
            f"{model}: no label {label!r} in this model",
            f"its labels: {', '.join(map(str, loaded.classes_))}",
        )
    if html is not None:
        from mercer.report.model import tagger_page

        _write(html, tagger_page(loaded, title=os.path.basename(model), top=top))
        return
    _show_summary(loaded, model)
    wanted = [c for c in loaded.classes_.tolist() if label is None or str(c) == label]
    _show_transitions(loaded, wanted, top)
    for each in wanted:
        _show_features(loaded, each, top)


def _write(path: str, page: str) -> None:
    from mercer.report import write_page

    write_page(path, page)
    terminal.say("page written to ", path)


def _show_parameters(model: Any, path: str) -> None:
    terminal.heading(f"{path}: {type(model).__name__}")
    rows: list[tuple[str, object]] = [(name, value) for name, value in model.get_params(deep=False).items()]
    if hasattr(model, "classes_"):
        rows.append(("labels", ", ".join(map(str, model.classes_.tolist()))))
    terminal.figures(rows)


def _show_summary(tagger: Tagger, path: str) -> None:
    from mercer.report.model import tagger_figures

    terminal.heading(f"{path}: Tagger")
    terminal.figures([("file", f"{os.path.getsize(path) / 1e6:,.1f} MB"), *tagger_figures(tagger)])


def _show_features(tagger: Tagger, label: Any, top: int) -> None:
    print()
    terminal.heading(str(label))
    rows = [(name, f"{weight:+.4f}") for name, weight in tagger.top_features(top, label=label) if weight > 0]
    if rows:
        terminal.table(["feature", "weight"], rows, "lr")
    else:
        terminal.say("  no feature speaks for this label")


def _show_transitions(tagger: Tagger, wanted: list[Any], top: int) -> None:
    labels, weights = tagger.classes_.tolist(), tagger.transitions_
    print()
    if len(wanted) == len(labels) <= _WHOLE_TABLE:
        terminal.heading("transitions (from the label on the left to the one above; start and end of a sentence)")
        rows = [["start", *map(_weight, tagger.start_), ""]]
        for i, label in enumerate(labels):
            rows.append([str(label), *map(_weight, weights[i]), _weight(tagger.end_[i])])
        terminal.table(["", *map(str, labels), "end"], rows, "l" + "r" * (len(labels) + 1))
        return
    pairs = [
        (float(weights[i, j]), f"{a} → {b}")
        for i, a in enumerate(labels)
        for j, b in enumerate(labels)
        if math.isfinite(weights[i, j]) and (a in wanted or b in wanted)
    ]
    pairs.sort(key=lambda pair: -pair[0])
    n_forbidden = sum(
        not math.isfinite(weights[i, j]) and (a in wanted or b in wanted)
        for i, a in enumerate(labels)
        for j, b in enumerate(labels)
    )
    few = pairs if len(pairs) <= 2 * top else pairs[:top] + pairs[-top:]
    forbidden = f", {n_forbidden} forbidden" if n_forbidden else ""
    terminal.heading(f"transitions ({len(few)} strongest of {len(pairs)}{forbidden})")
    terminal.table(["from → to", "weight"], [(name, f"{weight:+.4f}") for weight, name in few], "lr")


def _weight(value: float) -> str:
    return f"{value:+.2f}" if math.isfinite(value) else "–"
