"""``mercer tune``: a cross-validated search over settings, for every kind of model that a file can train."""

from __future__ import annotations

import os
import time
import warnings
from enum import StrEnum
from typing import Annotated, Any

import typer

from mercer.cli import searched, terminal
from mercer.cli.auto import outputs
from mercer.cli.columns import shown
from mercer.cli.errors import UsageError
from mercer.cli.options import OnError, OnErrorName, Quiet, TableOptions, grouped
from mercer.cli.tasks import HashedTask, Task, look_at


class KindName(StrEnum):
    """Kinds of models."""

    classifier = "classifier"
    regressor = "regressor"
    tagger = "tagger"
    segmenter = "segmenter"
    multilabel = "multilabel"
    proportions = "proportions"
    field = "field"


_OTHERS = "Label sets, groups, bits"


@grouped
def tune(
    given: Annotated[
        list[str],
        typer.Argument(metavar="[KIND] FILE", help="A file as for mercer train, perhaps after its kind."),
    ],
    reading: TableOptions,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="PATH", help="Where to write the model. Default: FILE.mercer.", show_default=False
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="PATH", help="Where to write the page. Default: FILE.html.", show_default=False),
    ] = None,
    kind: Annotated[
        KindName | None, typer.Option(help="Kind of model to train. Default: chosen by the file.", show_default=False)
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Number of folds, each held out once.")] = 5,
    on_error: OnError = OnErrorName.stop,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Label sets: their column, or the XML file of an ARFF file. Means --kind multilabel.",
            rich_help_panel=_OTHERS,
        ),
    ] = None,
    bag: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Groups with known shares: the column of groups.", rich_help_panel=_OTHERS),
    ] = None,
    proportions: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Groups with known shares: the table of shares. Means --kind proportions.",
            rich_help_panel=_OTHERS,
        ),
    ] = None,
    hidden: Annotated[
        int, typer.Option(metavar="N", min=0, help="Field: number of hidden units.", rich_help_panel=_OTHERS)
    ] = 256,
    above: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Field: numbers above this count as 1, others as 0.",
            rich_help_panel=_OTHERS,
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the folds.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Search settings by cross-validation and train with the best ones.

    Every setting is fitted N times, each time on all folds but one, and scored on the held-out fold. The setting with
    the best mean score wins, but it replaces the defaults only if it is better by more than the standard error of the
    difference. The model is then trained on all rows. The score of the chosen setting is slightly optimistic, because
    it was used for the choice.

    [bold]Examples[/bold]
      mercer tune mail.txt --model spam.mercer
      mercer tune tagger train.conll --folds 3
      mercer tune photos.csv --labels tags
      mercer tune people.csv --bag district --proportions votes.csv
      mercer tune votes.npy --kind field --hidden 0
    """
    *kinds, file = given
    if kinds:  # as in mercer train classifier FILE
        if len(kinds) > 1 or kinds[0] not in list(KindName) or kind not in (None, kinds[0]):
            raise UsageError(f"one file is tuned, got {', '.join(map(shown, given))}")
        kind = KindName(kinds[0])
    model, html = outputs(file, model, html)
    name = _kind(kind, labels, bag, proportions)
    with terminal.working(f"reading {shown(file)}"):
        task: Task
        if name == "multilabel":
            task = searched.LabelSetTask(file, labels)
        elif name == "proportions":
            assert bag is not None
            assert proportions is not None
            task = searched.ShareTask(file, bag, proportions, reading.label, seed)
        elif name == "field":
            task = searched.FieldTask(file, hidden, above, seed)
        else:
            task = look_at(file, name, reading.file_format(), quiet, on_error.value)
    if isinstance(task, HashedTask) and not task.small:
        raise UsageError(
            f"{shown(file)}: too long for several folds in memory", "take a part of it, such as its first lines"
        )
    begun = time.perf_counter()
    candidates = task.candidates()
    scores, name = _scores(task, candidates, min(folds, task.n), seed, quiet)
    best, clear = _chosen(scores)
    import numpy as np

    with terminal.working("learning from all rows"):
        estimator = task.fit(np.arange(task.n), **dict(candidates[best]))
    import mercer

    mercer.save(estimator, model)
    _write_page(html, task, estimator, candidates, scores, best, name, model)
    if quiet:
        return
    means = scores.mean(axis=1)
    terminal.heading(type(estimator).__name__)
    terminal.figures(
        [
            ("settings tried", f"{len(candidates)} on {scores.shape[1]} folds"),
            (f"{name} of the defaults", f"{means[0]:.4f}"),
            (f"{name} of the chosen", f"{means[best]:.4f}"),
            ("chosen", _told(candidates[best]) + ("" if clear else " (no other is clearly better)")),
            ("seconds", f"{time.perf_counter() - begun:.1f}"),
            ("model", model),
            ("page", html),
        ]
    )


def _kind(kind: KindName | None, labels: str | None, bag: str | None, proportions: str | None) -> str | None:
    """The kind that was asked for, or that options of one kind name."""
    named = "multilabel" if labels is not None else "proportions" if (bag or proportions) is not None else None
    if kind is None or named is None or kind.value == named:
        name = named if kind is None else kind.value
    else:
        raise UsageError(f"{'--labels' if named == 'multilabel' else '--bag'} is for --kind {named}, not {kind.value}")
    if name == "proportions" and (bag is None or proportions is None):
        missing = "--bag" if bag is None else "--proportions"
        raise UsageError(f"{missing} is missing", "groups need --bag COLUMN and --proportions TABLE")
    return name


def _scores(task: Task, candidates: list[dict[str, Any]], folds: int, seed: int, quiet: bool) -> tuple[Any, str]:
    """Scores of all candidates on all folds, and what is scored."""
    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold

    groups = task.groups()
    least = 0 if groups is None else min(np.unique(groups, return_counts=True)[1])
    kind = StratifiedKFold if least >= folds else KFold
    splits = list(kind(folds, shuffle=True, random_state=seed).split(np.zeros(task.n), groups))
    scores, name = np.zeros((len(candidates), folds)), "score"
    for i, settings in enumerate(candidates):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about models that are thrown away; the last one warns
            for j, (rows, held_out) in enumerate(splits):
                verdict = task.judge(task.fit(rows, **dict(settings)), held_out, brief=True)
                scores[i, j], name = verdict.value, verdict.name
        if not quiet:
            from mercer._progress import say

            score = f"{name} {scores[i].mean():.4f} ± {_error(scores[i]):.4f}"
            say(f"{i + 1:>3} of {len(candidates)}  {score}  {_told(settings)}")
    return scores, name


def _error(values: Any) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def _chosen(scores: Any) -> tuple[int, bool]:
    """The candidate with the best mean, if it beats the defaults by more than the standard error of the difference."""
    best = int(scores.mean(axis=1).argmax())
    difference = scores[best] - scores[0]
    if best and difference.mean() > _error(difference):
        return best, True
    return 0, False


def _told(settings: dict[str, Any]) -> str:
    said = (f"{name}={value}" for name, value in settings.items() if name != "annealing")  # it goes with init
    return ", ".join(said) or "the defaults"


def _write_page(
    path: str,
    task: Task,
    estimator: Any,
    candidates: list[dict[str, Any]],
    scores: Any,
    best: int,
    name: str,
    model: str,
) -> None:
    from mercer.report import write_page
    from mercer.report.model import model_page
    from mercer.report.portrait import Block, Facts, Listing

    means = scores.mean(axis=1)
    order = sorted(range(len(candidates)), key=lambda i: -means[i])
    rows = [
        [_told(candidates[i]) + (" ←" if i == best else ""), f"{means[i]:.4f}", f"{_error(scores[i]):.4f}"]
        for i in order
    ]
    facts = [
        ("chosen", _told(candidates[best])),
        (name, f"{means[best]:.4f}"),
        (f"{name} of the defaults", f"{means[0]:.4f}"),
    ]
    blocks: list[Block] = [
        Facts(facts, "Search"),
        Listing("Settings", ["settings", name, "standard error"], rows, "lrr"),
    ]
    write_page(path, model_page(estimator, title=os.path.basename(model), more=blocks))
