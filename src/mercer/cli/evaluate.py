"""``mercer evaluate``: evaluate a model on a labelled file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import attributes, classifier, multilabel, proportions, segmenter, terminal
from mercer.cli.columns import check_tagger, load, n_columns, read_labelled
from mercer.cli.errors import UsageError
from mercer.cli.options import FileOptions, OnError, OnErrorName, grouped

if TYPE_CHECKING:
    from mercer.metrics import SpanReport, SpanScore


@grouped
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that mercer train wrote.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Labelled sentences (a column file), a text with blank lines between paragraphs, or examples in the "
            "format of training; also .gz; - for standard input.",
        ),
    ],
    reading: FileOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")] = -1,
    sentences: segmenter.Sentences = segmenter.SentencesName.rules,
    on_error: OnError = OnErrorName.stop,
    bag: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Models of proportions: the column of groups whose shares to print."),
    ] = None,
) -> None:
    """Compare the predictions of a model with the labels of a file.

    Tagger: accuracy of tokens and of whole sentences; for span labels (B-NP, I-NP, O and similar) also precision,
    recall and F1 of the spans, as in the CoNLL scorer. Segmenter: the same for column files; for texts precision,
    recall and F1 of the sentences that start a paragraph, WindowDiff and Pk (lower is better). Classifier: accuracy,
    log loss, precision, recall and F1 of every class, and for few classes a confusion matrix. Regressor: mean errors
    and R². Models of proportions: accuracy on the column --label, and the predicted shares of the groups in the column
    --bag. Models of attributes: accuracy on the column --label. The model remembers how the file was read.

    [bold]Examples[/bold]
      mercer evaluate np.mercer test.conll
      mercer evaluate np.mercer test.conll --json | jq .spans.f1
      mercer evaluate paragraphs.mercer chapter.txt
      mercer evaluate spam.mercer held-out.txt
    """
    loaded = load(model)
    if proportions.is_proportional(loaded):
        proportions.evaluate(loaded, file, reading.label, bag, reading.separator, as_json)
        return
    if attributes.is_attributes(loaded):
        attributes.evaluate(loaded, file, reading.label, reading.separator, as_json)
        return
    if multilabel.is_multilabel(loaded):
        multilabel.evaluate(loaded, file, reading.label, as_json)
        return
    if bag is not None:
        raise UsageError(f"{model}: --bag is for models of proportions, and this is another kind of model")
    for_classifiers = reading.given
    if segmenter.is_segmenter(loaded):
        if for_classifiers:
            raise UsageError(f"{model}: this is a segmenter, and the options are for classifiers")
        loaded.n_jobs = jobs
        with terminal.working(f"evaluating {model}"):
            kind, X, y = segmenter.read(loaded, model, file, sentences.value)
            predicted = loaded.predict(X)
        if kind == "text":
            segmenter.evaluate_text(y, predicted, [len(document) for document in X], as_json)
        else:
            _show_tags(y, predicted, as_json, spans=True)
        return
    if sentences is not segmenter.SentencesName.rules:
        raise UsageError(f"{model}: --sentences is for segmenters of texts, and this is another kind of model")
    if classifier.is_hashed(loaded):
        loaded.n_jobs = jobs
        classifier.evaluate(loaded, file, on_error.value, reading.file_format(), as_json)
        return
    tagger = check_tagger(loaded, model, jobs)
    if for_classifiers:
        raise UsageError(f"{model}: this is a tagger: it reads column files, and the options are for classifiers")
    with terminal.working(f"evaluating {model}"):
        X, y = read_labelled(file, n_columns(tagger))
        predicted = tagger.predict(X)
    from mercer.metrics import is_span_labelling

    _show_tags(y, predicted, as_json, is_span_labelling(y) and is_span_labelling(tagger.classes_.tolist()))


def _show_tags(y: list[list[str]], predicted: Any, as_json: bool, spans: bool) -> None:
    from mercer.metrics import sequence_accuracy, span_report, token_accuracy

    figures: dict[str, Any] = {
        "sentences": len(y),
        "tokens": sum(map(len, y)),
        "token_accuracy": token_accuracy(y, predicted),
        "sentence_accuracy": sequence_accuracy(y, predicted),
    }
    report = span_report(y, predicted) if spans else None
    if as_json:
        print(json.dumps(figures if report is None else {**figures, "spans": _as_json(report)}, indent=2))
        return
    terminal.figures(
        [
            ("sentences", f"{figures['sentences']:,}"),
            ("tokens", f"{figures['tokens']:,}"),
            ("token accuracy", f"{figures['token_accuracy']:.4f}"),
            ("sentence accuracy", f"{figures['sentence_accuracy']:.4f}"),
        ]
    )
    if report is not None:
        print()
        rows = [_row(label or "(no type)", score) for label, score in report.by_label.items()]
        header = ["spans", "precision", "recall", "F1", "true", "predicted", "correct"]
        terminal.table(header, [*rows, _row("all", report)], "lrrrrrr")


def _row(name: str, s: SpanScore | SpanReport) -> list[str]:
    shares = [f"{share:.4f}" for share in (s.precision, s.recall, s.f1)]
    return [name, *shares, *(f"{n:,}" for n in (s.support, s.predicted, s.correct))]


def _as_json(report: SpanReport) -> dict[str, Any]:
    def one(s: SpanScore | SpanReport) -> dict[str, float]:
        names = ("precision", "recall", "f1", "support", "predicted", "correct")
        return {name: getattr(s, name) for name in names}

    return {**one(report), "by_label": {label: one(s) for label, s in report.by_label.items()}}
