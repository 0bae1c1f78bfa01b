"""``mercer train field``: a random field of rows of bits, from an array or a table of numbers."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

_LEARNING = "Learning"
_RUNNING = "Running"
_QUICK_UNITS = 14  # of the smaller layer: an exact sum at every epoch costs little


# Spelled out here, not taken from the estimators: the help must not import them. A test compares the names.
class FieldLearnerName(StrEnum):
    """Names of learners."""

    cd = "cd"
    pcd = "pcd"
    tempered = "tempered"
    parallel_tempering = "parallel-tempering"
    smc = "smc"
    psmc = "psmc"
    mcmcml = "mcmcml"
    particle_filter = "particle-filter"
    exact = "exact"
    pseudo_likelihood = "pseudo-likelihood"


def train_field(
    file: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Rows of numbers: .npy, or .csv (also .gz; a first line of names is skipped)."
        ),
    ],
    model: Annotated[str, typer.Option("--model", "-m", metavar="PATH", help="Where to write the model.")],
    hidden: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of hidden units. 0: none, with interactions between all pairs of columns instead.",
        ),
    ] = 256,
    above: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Numbers above this count as 1, others as 0. Default: rows must hold 0 and 1.",
            show_default=False,
        ),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Held-out rows: training keeps the weights with the highest likelihood on them, with early stopping.",
        ),
    ] = None,
    learner: Annotated[
        FieldLearnerName | None,
        typer.Option(
            help="How the gradient is estimated; see the guide. Default: pcd, or psmc without hidden units.",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Passes over the rows.", rich_help_panel=_LEARNING, show_default=False),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(metavar="X", help="Step size.", rich_help_panel=_LEARNING, show_default=False),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Rows per step.", rich_help_panel=_LEARNING, show_default=False),
    ] = None,
    particles: Annotated[
        int, typer.Option(metavar="N", min=2, help="Number of particles of the learner.", rich_help_panel=_LEARNING)
    ] = 200,
    likelihood_every: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            rich_help_panel=_LEARNING,
            help="Estimate the likelihood every N epochs. 0: only if an exact sum is fast. Default: ten times in "
            "all, or at every epoch if an exact sum is fast.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Save a checkpoint here, and resume from it if training was killed.",
            rich_help_panel=_RUNNING,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Seed of all random numbers.", rich_help_panel=_RUNNING)
    ] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.", rich_help_panel=_RUNNING)] = -1,
) -> None:
    """Train a random field: a density of rows of bits, with hidden units (RBM) or without.

    [bold]Examples[/bold]
      mercer train field digits.npy -m digits.mercer --hidden 500 --above 127
      mercer train field votes.csv -m votes.mercer --hidden 0
      mercer inspect digits.mercer --html digits.html
    """
    check_writable(model)
    X = _rows(file, above)
    held_out = None if dev is None else _rows(dev, above)
    from mercer._state.registry import save
    from mercer.fields import RBM, BoltzmannMachine

    settings: dict[str, Any] = {
        "n_particles": particles,
        "random_state": seed,
        "n_jobs": jobs,
        "verbose": int(terminal.is_watched()),
    }
    given = {
        "learner": learner and learner.value, "max_iter": max_iter, "learning_rate": learning_rate,
        "batch_size": batch_size,
    }  # fmt: skip
    settings.update({name: value for name, value in given.items() if value is not None})
    estimator: Any = RBM(hidden, **settings) if hidden else BoltzmannMachine(**settings)
    if likelihood_every is None:
        quick = min(X.shape[1], hidden or X.shape[1]) <= _QUICK_UNITS
        likelihood_every = 0 if quick else max(1, estimator._epochs(-(-len(X) // estimator.batch_size)) // 10)
    estimator.set_params(likelihood_every=likelihood_every)
    try:
        estimator.fit(X, dev=held_out, checkpoint=checkpoint)
    except (ValueError, FloatingPointError) as error:
        hint = "--above X makes bits of numbers" if "must hold 0 and 1" in str(error) and above is None else ""
        raise UsageError(f"{shown(file)}: {error}", hint) from error
    save(estimator, model)
    history = estimator.history_
    rows = [
        ("rows", f"{X.shape[0]:,}"),
        ("columns", f"{X.shape[1]:,}"),
        ("epochs", f"{estimator.n_iter_:,}{' (interrupted)' if estimator.interrupted_ else ''}"),
        ("seconds", f"{history['seconds'][-1] if history.get('seconds') else 0.0:.2f}"),
    ]
    for name, title in (("log_likelihood", "log-likelihood of a row"), ("dev_score", "log-likelihood, held out")):
        if history.get(name) and history[name][-1] == history[name][-1]:
            rows.append((title, f"{max(history[name]) if name == 'dev_score' else history[name][-1]:.3f}"))
    rows.append(("model", f"{model} ({os.path.getsize(model) / 1e6:,.1f} MB)"))
    terminal.figures(rows)


def _rows(path: str, above: float | None) -> np.ndarray:
    """The numbers of a file, as bits where a threshold is given."""
    import numpy as np

    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file")
    try:
        if path.lower().endswith(".npy"):
            rows = np.load(path, allow_pickle=False)
        else:
            rows = _table(path)
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", "expected rows of numbers: .npy or .csv") from error
    if rows.dtype.kind not in "biuf":
        raise UsageError(f"{path}: expected numbers, found {rows.dtype}")
    if rows.ndim > 2:
        rows = rows.reshape(len(rows), -1)  # images
    if rows.ndim != 2 or 0 in rows.shape:
        raise UsageError(f"{path}: expected rows of numbers, found an array of shape {rows.shape}")
    if above is None:
        return rows
    if not np.isfinite(rows).all():
        raise UsageError(f"{path}: holds NaN or infinite numbers")
    return (rows > above).astype(np.uint8)


def _table(path: str) -> np.ndarray:
    import gzip

    import numpy as np

    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    if not lines:
        raise ValueError("the file is empty")
    separator = "\t" if "\t" in lines[0] else "," if "," in lines[0] else None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        cells = line.strip().split(separator)
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            if number > 1:
                raise ValueError(f"line {number}: expected numbers, found {line.strip()[:60]!r}") from None
            continue  # names of columns
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(f"line {number}: {len(rows[-1])} numbers, but {len(rows[0])} in the first row")
    return np.array(rows)
