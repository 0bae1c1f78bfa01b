"""``mercer train auto``: choose an estimator for a file, train and evaluate it; write model and page."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.options import OnError, OnErrorName, Quiet, TableOptions, grouped
from mercer.cli.tasks import HashedTask, Task, Verdict, look_at

HELD_OUT = 0.2


def outputs(file: str, model: str | None, html: str | None) -> tuple[str, str]:
    """Return the paths of model and page: in the working directory, named after the file."""
    base = os.path.basename(os.path.abspath(file)) if file != "-" else "model"
    stem = base.split(".")[0] or "model"
    model = model or f"{stem}.mercer"
    html = html or f"{os.path.splitext(model)[0]}.html"
    for path in (model, html):
        check_writable(path)
    return model, html


@grouped
def train_auto(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Any file of examples or sentences, or a folder with a folder for each class."
        ),
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
    on_error: OnError = OnErrorName.stop,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the choice of held-out rows.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Choose an estimator for a file, train it and show its performance.

    A fifth of the rows is held out, and the estimator learns from the others. The printed figures and the page show its
    performance on the held-out rows. The saved model is the evaluated one; the command that trains on all rows is
    printed.

    [bold]Examples[/bold]
      mercer train auto adult.data.gz
      mercer train auto reviews/ --model reviews.mercer
      mercer train auto table.csv --label price --roles zip=category
    """
    model, html = outputs(file, model, html)
    begun = time.perf_counter()
    with terminal.working(f"reading {shown(file)}"):
        task = look_at(file, None, reading.file_format(), quiet, on_error.value)
    if not quiet:
        terminal.complain("note", f"a {task.kind}, since {shown(file)} is {_what(task)}: {task.why}")
    estimator, verdict = _judged(task, seed)
    import mercer

    mercer.save(estimator, model)
    _write_page(html, task, estimator, verdict, model)
    if not verdict.beats:
        terminal.complain("warning", f"the {task.kind} is no better than {verdict.baseline_name}")
    if not quiet:
        terminal.heading(type(estimator).__name__)
        rows = [("learnt from", _learnt(task, estimator)), *((f"{k}, held out", v) for k, v in verdict.figures)]
        seconds = time.perf_counter() - begun
        rows += [("seconds", f"{seconds:.1f}"), ("model", model), ("page", html), ("on all rows", task.command(model))]
        other = task.alternative(model)
        rows += [("or", other)] if other else []
        terminal.figures(rows)


def _what(task: Task) -> str:
    return {"tagger": "a file of sentences", "segmenter": "a text"}.get(task.kind, "a file of examples")


def _learnt(task: Task, estimator: Any) -> str:
    if isinstance(task, HashedTask):
        passes = estimator.n_iter_
        return f"{estimator.progress_.examples:,} rows in {passes} pass{'es' if passes > 1 else ''}"
    return terminal.count(round(task.n * (1 - HELD_OUT)), "sentence" if task.kind == "tagger" else "passage")


def _judged(task: Task, seed: int) -> tuple[Any, Verdict]:
    """The estimator, and how it does on rows that it has not seen."""
    if isinstance(task, HashedTask) and not task.small:
        with terminal.working("learning"):
            estimator = task.fit_stream()
        return estimator, _progressive(estimator)
    rows, held_out = task.split(HELD_OUT, seed)
    with terminal.working("learning"):
        estimator = task.fit(rows)
    with terminal.working("judging"):
        return estimator, task.judge(estimator, held_out)


def _progressive(estimator: Any) -> Verdict:
    """Of a file that is too long to hold rows out: every row was judged before it was learnt."""
    progress = estimator.progress_
    loss = ("progressive loss", f"{progress.average_loss:.4f}")
    if estimator._numeric_targets:
        return Verdict("loss", 1.0, 0.0, "nothing", [loss])
    right = 1 - progress.average_error
    figures = [("accuracy, each row before it was learnt", f"{right:.4f}"), loss]
    return Verdict("accuracy", right, 0.0, "nothing", figures)


def _write_page(path: str, task: Task, estimator: Any, verdict: Verdict, model: str) -> None:
    from mercer.report import write_page
    from mercer.report.model import model_page
    from mercer.report.portrait import Facts

    facts = [("estimator", f"{type(estimator).__name__}: {task.why}"), ("rows", f"{task.n:,}"), *verdict.figures]
    facts.append(("to train on all rows", task.command(model)))
    blocks = [Facts(facts, "Evaluated on held-out rows"), *verdict.blocks]
    write_page(path, model_page(estimator, title=os.path.basename(model), more=blocks))
