"""``mercer train classifier`` and ``regressor``: hashed models from files of any size; prediction, evaluation and
display."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.errors import Stopped, UsageError, as_options
from mercer.cli.options import (
    FileOptions,
    L1Ratio,
    Limit,
    OnError,
    OnErrorName,
    Penalty,
    PenaltyName,
    Quiet,
    grouped,
)

if TYPE_CHECKING:
    from mercer.online.files import ReadReport
    from mercer.online.formats import FileFormat

_FEW_CLASSES = 12  # with more, a table of all pairs is no longer read but searched
_MANY_CLASSES = 100


# Spelled out here, not taken from the estimator: the help must not import it. A test compares the names.
class ClassifierLoss(StrEnum):
    """Losses of classifiers."""

    log = "log"
    hinge = "hinge"
    hybrid = "hybrid"
    squared_hinge = "squared-hinge"


class RegressorLoss(StrEnum):
    """Losses of regressors."""

    squared = "squared"
    quantile = "quantile"
    huber = "huber"
    poisson = "poisson"


class LabelHashingName(StrEnum):
    """Where the weights of many classes are."""

    joint = "joint"
    separate = "separate"
    two_stage = "two-stage"


class SolverName(StrEnum):
    """Rules of learning."""

    adagrad = "adagrad"
    ftrl = "ftrl"
    sgd = "sgd"


class AnalyzerName(StrEnum):
    """What the features of a text are."""

    word = "word"
    char = "char"
    char_wb = "char_wb"


class CountsName(StrEnum):
    """What repeats of a word are worth."""

    sqrt = "sqrt"
    linear = "linear"


_FEATURES = "Features"
_LEARNING = "Learning"
_RUNNING = "Running"

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Training examples (also compressed), a folder with a folder for each class, or - for standard input.",
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", metavar="PATH", help="Where to write the model.")]
Dev = Annotated[str | None, typer.Option(metavar="FILE", help="Held-out examples: their score is printed at the end.")]
NBits = Annotated[
    int, typer.Option("--n-bits", metavar="N", help="The model has 2^N weights.", rich_help_panel=_FEATURES)
]
Ngrams = Annotated[
    str,
    typer.Option(
        metavar="N-M",
        help="Use n-grams of N to M words (or characters) of a text as features.",
        rich_help_panel=_FEATURES,
    ),
]
AnalyzerOption = Annotated[
    AnalyzerName,
    typer.Option(help="Features of a text: words, characters, or characters within words.", rich_help_panel=_FEATURES),
]
KeepCase = Annotated[
    bool, typer.Option("--keep-case", help="Distinguish upper and lower case.", rich_help_panel=_FEATURES)
]
Counts = Annotated[
    CountsName,
    typer.Option(help="The value of a word that occurs c times in a text: √c, or c itself.", rich_help_panel=_FEATURES),
]
Solver = Annotated[
    SolverName,
    typer.Option(
        help="adagrad: a learning rate for each weight. ftrl: the same with exact zeros under --penalty l1 --alpha "
        "10. sgd: plain stochastic gradient descent.",
        rich_help_panel=_LEARNING,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Factor of the penalty. Default: 1e-5 for sgd, 0 otherwise.",
        rich_help_panel=_LEARNING,
        show_default=False,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate",
        metavar="X",
        help="Default: the solver's.",
        rich_help_panel=_LEARNING,
        show_default=False,
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Passes over the file, in its order. Default: one, and several over a small file, shuffled.",
        rich_help_panel=_LEARNING,
        show_default=False,
    ),
]
CheckpointPath = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="PATH",
        help="Save the state of training here every few seconds; after a crash the same command resumes from it.",
        rich_help_panel=_RUNNING,
        show_default=False,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="1 reads and learns alternately, otherwise in parallel. The result is the same.",
        rich_help_panel=_RUNNING,
    ),
]


@dataclass
class HashedOptions(FileOptions):
    """Options of the file format, the features, and the training."""

    on_error: OnError = OnErrorName.stop
    limit: Limit = None
    n_bits: NBits = 22
    ngrams: Ngrams = "1-1"
    analyzer: AnalyzerOption = AnalyzerName.word
    keep_case: KeepCase = False
    counts: Counts = CountsName.sqrt
    solver: Solver = SolverName.adagrad
    penalty: Penalty = PenaltyName.l2
    alpha: Alpha = None
    l1_ratio: L1Ratio = 0.5
    learning_rate: Rate = None
    max_iter: MaxIter = None
    checkpoint: CheckpointPath = None
    jobs: Jobs = -1
    quiet: Quiet = False

    def hasher(self) -> Any:
        """Return the hasher for texts."""
        from mercer.maps import TextHasher

        least, dash, most = self.ngrams.partition("-")
        if not least.isdecimal() or (dash and not most.isdecimal()) or not 1 <= int(least) <= int(most or least) <= 64:
            raise UsageError(f"--ngrams must be a number or two, such as 2 or 1-2, got {self.ngrams!r}")
        ngrams = int(least), int(most or least)
        return TextHasher(analyzer=self.analyzer.value, ngrams=ngrams, lowercase=not self.keep_case)

    def parameters(self) -> dict[str, Any]:
        """Return the common parameters of classifiers and regressors."""
        return {
            "n_bits": self.n_bits, "solver": self.solver.value, "alpha": self.alpha, "l1_ratio": self.l1_ratio,
            "penalty": None if self.penalty is PenaltyName.none else self.penalty.value,
            "learning_rate": self.learning_rate, "max_iter": "auto" if self.max_iter is None else self.max_iter,
            "hasher": self.hasher(), "counts": self.counts.value, "n_jobs": self.jobs,
            "verbose": int(terminal.is_watched() and not self.quiet),
        }  # fmt: skip


@grouped
def train_classifier(
    file: File,
    model: Model,
    options: HashedOptions,
    dev: Dev = None,
    loss: Annotated[
        ClassifierLoss,
        typer.Option(
            help="log gives probabilities; hinge learns only from mistakes and near-misses.", rich_help_panel=_LEARNING
        ),
    ] = ClassifierLoss.log,
    label_hashing: Annotated[
        LabelHashingName,
        typer.Option(
            "--label-hashing",
            help="More than two classes: one hash table for all (joint, two-stage), or one for each (separate).",
            rich_help_panel=_LEARNING,
        ),
    ] = LabelHashingName.joint,
    multilabel: Annotated[
        bool,
        typer.Option(
            "--multilabel",
            help="A line has any number of labels, with commas between them: a tree of labels (HashedLabelSets).",
            rich_help_panel=_LEARNING,
        ),
    ] = False,
) -> None:
    """Train a classifier: a label for every line of a file, however long the file is.

    Features are hashed: the model has a fixed size and needs no vocabulary, for any number of words and classes. Each
    line is read, scored, learnt and discarded; a terminal shows the running loss at powers of two. Ctrl-C stops and
    saves the model trained so far.

    [bold]Examples[/bold]
      mercer train classifier mail.txt --model spam.mercer
      mercer train classifier news.csv --text title --text body --label topic --model news.mercer --ngrams 1-2
      mercer train classifier clicks.vw.gz --model clicks.mercer --max-iter 3 --dev held-out.vw
      mercer train classifier visits.jsonl --columns rest --label paid --model visits.mercer
      mercer train classifier tagged.txt --multilabel --model tags.mercer
      zcat huge.txt.gz | mercer train classifier - --format text --model m.mercer --on-error skip
    """
    check_writable(model)
    if multilabel:
        others = {
            "--loss": loss is not ClassifierLoss.log, "--label-hashing": label_hashing is not LabelHashingName.joint,
            "--dev": dev is not None,
        }  # fmt: skip
        _train_label_sets(file, model, others, options)
        return
    from mercer.online import HashedClassifier

    estimator = HashedClassifier(loss=loss.value, label_hashing=label_hashing.value, **options.parameters())
    _train(estimator, file, model, dev, options)


def _train_label_sets(file: str, model: str, others: dict[str, bool], options: HashedOptions) -> None:
    """Label sets from a file: the tree of labels has no other losses and rules of learning."""
    others |= {
        "--solver": options.solver is not SolverName.adagrad, "--penalty": options.penalty is not PenaltyName.l2,
        "--alpha": options.alpha is not None, "--l1-ratio": options.l1_ratio != 0.5,
        "--checkpoint": options.checkpoint is not None, "--on-error": options.on_error is not OnErrorName.stop,
    }  # fmt: skip
    wrong = [option for option, was_given in others.items() if was_given]
    if wrong:
        raise UsageError(f"{wrong[0]} has no meaning with --multilabel", "leave it out")
    if file == "-":
        raise UsageError("--multilabel reads the file several times: standard input will not do")
    import time

    import mercer
    from mercer.multilabel import HashedLabelSets

    start = time.perf_counter()
    passes = 3 if options.max_iter is None else options.max_iter
    rate = 0.5 if options.learning_rate is None else options.learning_rate
    estimator = HashedLabelSets(
        options.n_bits, passes, learning_rate=rate, hasher=options.hasher(), n_jobs=options.jobs
    )
    with terminal.working(f"learning from {shown(file)}"):
        estimator.fit_file(file, options.file_format(), limit=options.limit)
    mercer.save(estimator, model)
    if options.quiet:
        return
    terminal.figures(
        [
            ("examples", f"{estimator.n_examples_ // passes:,}, {passes} times"),
            ("labels", f"{len(estimator.classes_):,}"),
            ("seconds", f"{time.perf_counter() - start:.2f}"),
            ("model", f"{model} (HashedLabelSets)"),
        ]
    )


@grouped
def train_regressor(
    file: File,
    model: Model,
    options: HashedOptions,
    dev: Dev = None,
    loss: Annotated[
        RegressorLoss,
        typer.Option(
            help="squared: means. quantile: see --quantile. huber: outliers count less. poisson: counts.",
            rich_help_panel=_LEARNING,
        ),
    ] = RegressorLoss.squared,
    quantile: Annotated[
        float, typer.Option(metavar="X", help="Which quantile, between 0 and 1.", rich_help_panel=_LEARNING)
    ] = 0.5,
) -> None:
    """Train a regressor: a number for every line of a file.

    Files are as for a classifier, with a number in place of the label.

    [bold]Examples[/bold]
      mercer train regressor prices.csv --label price --model prices.mercer
      mercer train regressor ratings.jsonl --text review --label stars --model stars.mercer
    """
    check_writable(model)
    from mercer.online import HashedRegressor

    estimator = HashedRegressor(loss=loss.value, quantile=quantile, **options.parameters())
    _train(estimator, file, model, dev, options)


def _train(estimator: Any, file: str, model: str, dev: str | None, options: HashedOptions) -> None:
    if dev == "-" == file:
        raise UsageError("FILE and --dev cannot both be standard input")
    if dev not in (None, "-") and not os.path.exists(dev):
        raise UsageError(f"{dev}: no such file to score")
    import time

    start = time.perf_counter()
    estimator._say = teller(options.quiet)
    with terminal.working(f"learning from {shown(file)}") if not estimator.verbose else _nothing():
        estimator.fit_file(
            file, options.file_format(), on_error=options.on_error.value, limit=options.limit,
            checkpoint=options.checkpoint,
        )  # fmt: skip
    del estimator._say
    seconds = time.perf_counter() - start
    import mercer

    mercer.save(estimator, model)
    if estimator.interrupted_:
        terminal.complain("interrupted", f"the model trained so far is saved to {model}")
    show_skipped(file, estimator.skipped_)
    if not options.quiet:
        _summarise(estimator, dev, model, seconds)
    if estimator.interrupted_:
        raise Stopped


def teller(quiet: bool = False) -> Any:
    """Return a function that reports findings about a file on standard error, in terms of command-line options."""
    return lambda kind, message: None if quiet and kind == "note" else terminal.complain(kind, as_options(message))


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


def show_skipped(file: str, report: ReadReport) -> None:
    if not report.n_skipped:
        return
    line, what = report.skipped[0]
    count = terminal.count(report.n_skipped, "malformed line")
    terminal.complain("warning", f"{shown(file)}: skipped {count}; the first: line {line}: {what}")


def _show_report(file: str, report: ReadReport) -> None:
    """Malformed lines, and what the model had never seen."""
    show_skipped(file, report)
    if report.unseen():
        terminal.complain("warning", f"{shown(file)}: {report.unseen()}")


def _show_unknown(file: str, model: Any, pairs: Counter[tuple[Any, Any]]) -> None:
    """Labels that the model does not have, and the one that was probably meant."""
    known = [str(c) for c in model.classes_.tolist()]
    unknown: Counter[str] = Counter()
    for (truth, _), n in pairs.items():
        if str(truth) not in known:
            unknown[str(truth)] += n
    if not unknown:
        return
    name, n = unknown.most_common(1)[0]
    near = next((c for c in known if c.strip(" .").lower() == name.strip(" .").lower()), None)
    more = f"; {name!r} differs from {near!r} by case, spaces or a full stop only" if near else ""
    count = terminal.count(sum(unknown.values()), "example")
    what = f"{count} with labels that training did not have, such as {name!r}{more}"
    terminal.complain("warning", f"{shown(file)}: {what}")


def _summarise(estimator: Any, dev: str | None, model: str, seconds: float) -> None:
    classifier = not estimator._numeric_targets
    terminal.heading("classifier" if classifier else "regressor")
    progress = estimator.progress_
    rows: list[tuple[str, object]] = [("examples", f"{progress.examples:,}")]
    if classifier:
        label = estimator.file_format_.label
        if isinstance(label, str) and estimator.file_format_.format in ("csv", "jsonl"):
            rows.append(("label", label))
        names = [str(c) for c in estimator.classes_.tolist()]
        listed = ", ".join(names) if sum(map(len, names)) < 80 else ", ".join(names[:5]) + ", …"
        rows.append(("classes", f"{len(names):,}: {listed}"))
        rows.append(("passes", f"{estimator.n_iter_:,}"))
    rows.append(("progressive loss", f"{estimator.progressive_loss_:.6f}"))
    if classifier:
        rows.append(("progressive error", f"{progress.average_error:.4f}"))
    rows += [("weights", f"{estimator.model_bytes_ / 1e6:,.1f} MB"), ("seconds", f"{seconds:.2f}")]
    if dev is not None:
        name = f"{'accuracy' if classifier else 'R²'} on {shown(dev)}"
        rows.append((name, f"{estimator.score_file(dev):.4f}"))
    rows.append(("model", f"{model} ({os.path.getsize(model) / 1e6:,.1f} MB)"))
    terminal.figures(rows)


# ---------------------------------------------------------------------------------------------- predict


def is_hashed(model: Any) -> bool:
    """Return whether a loaded model is one of these."""
    from mercer.online import HashedClassifier, HashedRegressor

    return isinstance(model, HashedClassifier | HashedRegressor)


def predict(model: Any, file: str, output: str, proba: bool, top: int | None, on_error: str, said: FileFormat) -> None:
    """Write a line for every example of a file."""
    if model._numeric_targets and (proba or top is not None):
        raise UsageError("--proba and --top are for classifiers: this model is a regressor")
    if proba and model.loss not in ("log", "hybrid"):
        raise UsageError(f"--proba needs a model with the loss log or hybrid, this one has {model.loss}")
    model._say = teller()
    model.predict_file(file, output, said, proba=proba, top=top, on_error=on_error)


# ---------------------------------------------------------------------------------------------- evaluate


def evaluate(model: Any, file: str, on_error: str, said: FileFormat, as_json: bool) -> None:
    """Compare predictions with the labels of a file."""
    model._say = teller()
    figures = (
        _regression_figures(model, file, on_error, said)
        if model._numeric_targets
        else _figures(model, file, on_error, said)
    )
    if as_json:
        print(json.dumps(figures, indent=2, allow_nan=False))
        return
    names = ("examples", "unlabelled", "unknown labels", "skipped lines")
    optional = {"unlabelled", "unknown_labels", "skipped_lines"}
    rows: list[tuple[str, object]] = []
    for name in names:
        key = name.replace(" ", "_")
        if figures[key] or key not in optional:
            rows.append((name, f"{figures[key]:,}"))
    for key, value in figures.items():
        if isinstance(value, float):
            rows.append((key.replace("_", " "), f"{value:.4f}"))
    terminal.figures(rows)
    if "classes" in figures:
        _show_classes(figures)


def _blocks(model: Any, file: str, on_error: str, said: FileFormat) -> tuple[Any, ReadReport]:
    from mercer.online.files import ReadReport, labelled_blocks

    report = ReadReport()
    return labelled_blocks(model, file, said, on_error, report=report), report


def _figures(model: Any, file: str, on_error: str, said: FileFormat) -> dict[str, Any]:
    import numpy as np

    from mercer.online.files import outputs_of

    blocks, report = _blocks(model, file, on_error, said)
    pairs: Counter[tuple[Any, Any]] = Counter()
    place = {c: i for i, c in enumerate(model.classes_.tolist())}
    log_loss, n_scored, unlabelled, weight, right = 0.0, 0.0, 0, 0.0, 0.0
    probable = model.loss in ("log", "hybrid")
    with terminal.working(f"evaluating {shown(file)}"):
        for block in blocks:
            truth, weights, known = outputs_of(model, block)
            unlabelled += int((~known).sum())
            if probable:
                p = model.predict_proba(block)
                predicted = model.classes_[p.argmax(axis=1)]
                seen = np.flatnonzero(known & np.array([t in place for t in truth], dtype=bool))
                at = p[seen, [place[truth[i]] for i in seen]] if len(seen) else np.empty(0)
                log_loss -= float(weights[seen] @ np.log(np.maximum(at, 1e-300)))
                n_scored += float(weights[seen].sum())
            else:
                predicted = model.predict(block)
            pairs.update(zip(truth[known].tolist(), predicted[known].tolist(), strict=True))
            weight += float(weights[known].sum())
            right += float(weights[known] @ (truth == predicted)[known])
    if not pairs or weight == 0:
        raise UsageError(
            f"{shown(file)}: no labelled examples in this file", "mercer predict takes files without labels"
        )
    figures: dict[str, Any] = {
        "examples": sum(pairs.values()),
        "unlabelled": unlabelled,
        "unknown_labels": sum(n for (t, _), n in pairs.items() if t not in place),
        "skipped_lines": report.n_skipped,
        "accuracy": right / weight,
    }
    classes = _class_figures(pairs)
    for mean in ("precision", "recall", "f1"):
        figures[f"macro_{mean}"] = math.fsum(c[mean] for c in classes.values()) / len(classes)
    if probable and n_scored:
        figures["log_loss"] = log_loss / n_scored
    _show_report(file, report)
    _show_unknown(file, model, pairs)
    names = sorted(classes, key=str)
    confusion = None
    if len(classes) <= _FEW_CLASSES:
        confusion = [[pairs.get((t, q), 0) for q in names] for t in names]
    return {**figures, "classes": {str(c): classes[c] for c in names}, "confusion": confusion}


def _class_figures(pairs: Counter[tuple[Any, Any]]) -> dict[Any, dict[str, float]]:
    """Precision, recall and F1 of every label that is true or predicted somewhere."""
    true: Counter[Any] = Counter()
    predicted: Counter[Any] = Counter()
    for (t, q), n in pairs.items():
        true[t] += n
        predicted[q] += n
    out = {}
    for c in true.keys() | predicted.keys():
        correct = pairs.get((c, c), 0)
        out[c] = {
            "precision": correct / predicted[c] if predicted[c] else 0.0,
            "recall": correct / true[c] if true[c] else 0.0,
            "f1": 2 * correct / (true[c] + predicted[c]),
            "support": true[c],
            "predicted": predicted[c],
        }
    return out


def _show_classes(figures: dict[str, Any]) -> None:
    classes: dict[str, dict[str, Any]] = figures["classes"]
    names = sorted(classes, key=lambda c: (-classes[c]["support"], c))[:_MANY_CLASSES]
    print()
    rows = [
        [
            c,
            *(f"{classes[c][f]:.4f}" for f in ("precision", "recall", "f1")),
            f"{classes[c]['support']:,}",
            f"{classes[c]['predicted']:,}",
        ]
        for c in (names if len(classes) > _MANY_CLASSES else classes)
    ]
    terminal.table(["class", "precision", "recall", "F1", "true", "predicted"], rows, "lrrrrr")
    if len(classes) > _MANY_CLASSES:
        terminal.say(f"  … and {len(classes) - _MANY_CLASSES:,} classes with fewer examples; --json has all")
    if figures["confusion"] is not None:
        print()
        terminal.heading("true label on the left, predicted label above")
        rows = [[c, *(f"{n:,}" for n in counts)] for c, counts in zip(classes, figures["confusion"], strict=True)]
        terminal.table(["", *classes], rows, "l" + "r" * len(classes))


def _regression_figures(model: Any, file: str, on_error: str, said: FileFormat) -> dict[str, Any]:
    import numpy as np

    from mercer.online.files import outputs_of

    blocks, report = _blocks(model, file, on_error, said)
    n, unlabelled, sums = 0, 0, np.zeros(5)  # weight, Σ|e|, Σe², Σy, Σy²
    with terminal.working(f"evaluating {shown(file)}"):
        for block in blocks:
            y, w, known = outputs_of(model, block)
            unlabelled += int((~known).sum())
            y, w, e = y[known], w[known], (y - model.predict(block))[known]
            n += len(y)
            sums += [w.sum(), w @ np.abs(e), w @ e**2, w @ y, w @ y**2]
    if not sums[0]:
        raise UsageError(
            f"{shown(file)}: no examples with targets in this file", "mercer predict takes files without targets"
        )
    _show_report(file, report)
    spread = sums[4] - sums[3] ** 2 / sums[0]
    counts = {"examples": n, "unlabelled": unlabelled, "unknown_labels": 0, "skipped_lines": report.n_skipped}
    figures = {
        "mean_absolute_error": float(sums[1] / sums[0]),
        "root_mean_squared_error": float(np.sqrt(sums[2] / sums[0])),
    }
    return {**counts, **figures, **({"r2": float(1 - sums[2] / spread)} if spread > 0 else {})}
