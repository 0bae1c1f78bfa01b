"""Run a solver for an estimator: defaults, progress, history."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._validation import check_count
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning, ModelFileError
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.checkpoint import fingerprint as fingerprint_of
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.solvers import Result, Solver, resolve_solver


def _options(method: Solver) -> str:
    """The settings of a solver, which are part of what a run is."""
    plain = (str, int, float, bool, type(None))
    return "".join(f" {name}={value!r}" for name, value in sorted(vars(method).items()) if isinstance(value, plain))


def train(
    risk: Any,
    *,
    solver: str | Solver,
    C: float,
    penalty: Penalty | None = None,
    w0: np.ndarray | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    warn: bool = True,
    evaluate: Callable[[np.ndarray], float] | None = None,
    patience: int = 10,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    fingerprint: Callable[[], str] | None = None,
) -> tuple[Result, dict[str, list[float]]]:
    """Minimise ``penalty(w) + C · risk(w)``; return the result and the history.

    A run that ends too early raises a :class:`ConvergenceWarning`. An exception during training has the history in its
    attribute ``history``. With ``evaluate`` the weights with the best score are kept (see :class:`Monitor`). With
    ``checkpoint`` a killed run resumes, if its ``fingerprint`` of data and settings, its ``random_state`` and its
    ``w0`` are the same.
    """
    penalty = penalty or Penalty()
    method = resolve_solver(solver, getattr(risk, "loss", None), penalty)
    method.check(risk, penalty)
    max_iter = method.default_max_iter if max_iter is None else check_count("max_iter", max_iter, 0)
    tol = method.default_tol if tol is None else check_tol(tol)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    if (data := fingerprint) is not None:
        fingerprint = lambda: data() + _options(method)  # noqa: E731
    monitor = Monitor(
        verbose=verbose,
        max_iter=max_iter,
        evaluate=evaluate,
        patience=check_count("patience", patience),
        checkpoint=checkpoint,
    )
    resumed = None
    try:
        if fingerprint is not None and checkpoint is not None:
            resumed = monitor.resume(fingerprint_of((fingerprint(), seed_state(random_state)), [w0]), risk.n_weights)
        with monitor:
            result = method.minimize(
                risk,
                penalty,
                float(C),
                w0,
                max_iter=max_iter,
                tol=tol,
                monitor=monitor,
                random_state=random_state,
                resumed=resumed,
            )
        if resumed is not None and not np.isfinite(result.w).all():
            raise ModelFileError(f"{monitor.source}: resuming from this checkpoint gave weights that are not finite")
    except Exception as error:
        error.history = monitor.history  # type: ignore[attr-defined]
        raise
    finally:
        if checkpoint is not None:
            checkpoint.release()
    if warn and not result.converged:
        message = f"training was {result.message}" if result.interrupted else result.message
        warn_caller(message, ConvergenceWarning)
    if checkpoint is not None and not result.interrupted:
        checkpoint.close()
    return result, monitor.history


def one_pass(
    risk: Any,
    solver: Solver,
    penalty: Penalty,
    C: float,
    w0: np.ndarray | None,
    random_state: Any,
    state: dict[str, Any],
) -> tuple[Result, dict[str, list[float]]]:
    """Make one pass of an online solver from the last weights and ``state``; return the result and the history."""
    solver.check(risk, penalty)
    monitor = Monitor(verbose=0, max_iter=1)
    with monitor:
        result = solver.minimize(
            risk, penalty, C, w0, max_iter=1, tol=0.0, monitor=monitor, random_state=random_state, state=state
        )
    return result, monitor.history


def seed_state(random_state: Any) -> Any:
    """Return the state of a generator as plain data: two runs with the same state draw the same numbers."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state.bit_generator.state
    if isinstance(random_state, np.random.RandomState):
        return [part.tolist() if isinstance(part, np.ndarray) else part for part in random_state.get_state()]
    return repr(random_state)


def history_to_json(history: dict[str, list[float]]) -> dict[str, list[float | None]]:
    """Return a history as plain data; None for missing values.

    Elapsed seconds are left out, so that equal trainings give equal files.
    """
    return {
        name: [x if np.isfinite(x) else None for x in values] for name, values in history.items() if name != "seconds"
    }


def history_from_json(data: dict[str, list[float | None]]) -> dict[str, list[float]]:
    """Return the history from :func:`history_to_json`, with NaN for None and for the seconds."""
    if not isinstance(data, dict):
        raise ValueError("the history must be an object of lists")
    history = {str(name): [np.nan if x is None else float(x) for x in values] for name, values in data.items()}
    if history:
        history["seconds"] = [np.nan] * max(len(values) for values in history.values())
    return history


def check_tol(tol: Any) -> float:
    """Return a finite number of at least 0."""
    if isinstance(tol, bool) or not isinstance(tol, (int, float)) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number of at least 0, got {tol!r}")
    return float(tol)
