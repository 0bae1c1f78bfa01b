"""``mercer evaluate``: how well a model labels a file whose labels are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import load_tagger, n_columns, read_labelled

if TYPE_CHECKING:
    from mercer.metrics import SpanReport, SpanScore


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that mercer train wrote.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Labelled sentences: a column file (also .gz), or - for standard input."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Compare a model's labels with those of a file.

    Prints the share of tokens and of whole sentences labelled right. For span labels (B-NP, I-NP, O and their
    kin) also precision, recall and F1 of the spans, as the scorer of CoNLL counts them.

    [bold]Examples[/bold]
      mercer evaluate np.mercer test.conll
      mercer evaluate np.mercer test.conll --json | jq .spans.f1
    """
    tagger = load_tagger(model, jobs)
    with terminal.working(f"evaluating {model}"):
        X, y = read_labelled(file, n_columns(tagger))
        predicted = tagger.predict(X)
    from mercer.metrics import is_span_labelling, sequence_accuracy, span_report, token_accuracy

    found: dict[str, Any] = {
        "sentences": len(y),
        "tokens": sum(map(len, y)),
        "token_accuracy": token_accuracy(y, predicted),
        "sentence_accuracy": sequence_accuracy(y, predicted),
    }
    spans = None
    if is_span_labelling(y) and is_span_labelling(tagger.classes_.tolist()):
        spans = span_report(y, predicted)
    if as_json:
        print(json.dumps(found if spans is None else {**found, "spans": _as_json(spans)}, indent=2))
        return
    terminal.figures(
        [
            ("sentences", f"{found['sentences']:,}"),
            ("tokens", f"{found['tokens']:,}"),
            ("token accuracy", f"{found['token_accuracy']:.4f}"),
            ("sentence accuracy", f"{found['sentence_accuracy']:.4f}"),
        ]
    )
    if spans is not None:
        print()
        rows = [_row(label or "(no type)", score) for label, score in spans.by_label.items()]
        header = ["spans", "precision", "recall", "F1", "true", "predicted", "correct"]
        terminal.table(header, [*rows, _row("all", spans)], "lrrrrrr")


def _row(name: str, s: SpanScore | SpanReport) -> list[str]:
    shares = [f"{share:.4f}" for share in (s.precision, s.recall, s.f1)]
    return [name, *shares, *(f"{n:,}" for n in (s.support, s.predicted, s.correct))]


def _as_json(report: SpanReport) -> dict[str, Any]:
    def one(s: SpanScore | SpanReport) -> dict[str, float]:
        names = ("precision", "recall", "f1", "support", "predicted", "correct")
        return {name: getattr(s, name) for name in names}

    return {**one(report), "by_label": {label: one(s) for label, s in report.by_label.items()}}
