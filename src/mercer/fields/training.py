"""Stochastic approximation, the training loop of all learners.

    θ ← θ + η_t (gradient(batch, particles) − λ W),    η_t = η / (1 + δ t)

Batches are drawn without replacement. After every epoch the monitor records values, scores held-out data and may write
a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._arrays import is_numpy, on_device_of, to_numpy
from mercer.exceptions import DivergedError
from mercer.learning.checkpoint import array_like, count_of
from mercer.learning.learners import Chains, Learner
from mercer.learning.monitor import Monitor
from mercer.learning.visits import visits

__all__ = ["DivergedError", "Schedule", "approximate", "check_rate"]


def check_rate(rate: Any) -> tuple[float, float]:
    """Return (η, δ) of the steps η / (1 + δ t), from a number or a pair."""
    pair = (rate, 0.0) if isinstance(rate, (int, float)) and not isinstance(rate, bool) else rate
    good = isinstance(pair, (tuple, list)) and len(pair) == 2
    if not good or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in pair):
        raise ValueError(f"learning_rate must be a number or a pair (rate, decay), got {rate!r}")
    if not 0 < pair[0] < np.inf or not 0 <= pair[1] < np.inf:
        raise ValueError(f"learning_rate must be positive and its decay not negative, got {rate!r}")
    return float(pair[0]), float(pair[1])


@dataclass
class Schedule:
    """State and settings of stochastic approximation."""

    rate: float
    decay: float
    batch_size: int
    weight_decay: float = 0.0
    momentum: float = 0.0
    n_decayed: int = 0
    step: int = 0
    epoch: int = 0


def approximate(
    learner: Learner,
    chains: Chains,
    theta: Any,
    data: Any,
    rows: Callable[[Any, np.ndarray], Any],
    schedule: Schedule,
    max_iter: int,
    monitor: Monitor,
    figures: Callable[[Any, int], dict[str, float]],
    resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
    weights: np.ndarray | None = None,
) -> tuple[Any, bool]:
    """Run epochs and return the parameters, and whether Ctrl-C interrupted training.

    Parameters
    ----------
    learner : Learner
    chains : Chains
        Markov chains. Their particles are created here unless a run is resumed.
    theta : array of parameters
    data : matrix of examples
    rows : callable
        Function of (data, row numbers) that returns the states of a batch.
    schedule : Schedule
    max_iter : int
        Epochs.
    monitor : Monitor
    figures : callable
        Function of (θ, epoch) that returns values for the history.
    resumed : state and arrays of an unfinished run, optional
    weights : array of positive numbers, optional
        How often an epoch visits each row.
    """
    n, velocity = data.shape[0], None
    if not chains.particles:
        learner.start(chains, theta)
    if resumed is not None:
        with monitor.restoring():
            state, arrays = resumed
            schedule.step, schedule.epoch = (count_of(state, name) for name in ("step", "epoch"))
            like, place = to_numpy(theta), theta
            theta = on_device_of(place, array_like(arrays, "theta", like))
            velocity = on_device_of(place, array_like(arrays, "velocity", like)) if "velocity" in arrays else None
            chains.restore(arrays, theta)
    good = theta
    try:
        while schedule.epoch < max_iter:
            order = _order(n, chains.keys.seed, schedule.epoch, weights)
            sums: dict[str, list[float]] = {}
            for first in range(0, len(order), schedule.batch_size):
                batch = rows(data, order[first : first + schedule.batch_size])
                gradient = learner.gradient(chains, theta, batch)
                rate = schedule.rate / (1.0 + schedule.decay * schedule.step)
                if schedule.weight_decay:
                    gradient[: schedule.n_decayed] -= schedule.weight_decay * theta[: schedule.n_decayed]
                if schedule.momentum:
                    velocity = gradient if velocity is None else schedule.momentum * velocity + gradient
                    gradient = velocity
                # A new array: learners keep the last one.
                theta = _moved(theta, gradient, rate, keep=bool(schedule.momentum))
                schedule.step += 1
                for name, value in chains.figures.items():
                    sums.setdefault(name, []).append(value)
                if schedule.step % 16 == 0:
                    _check_finite(theta, good, schedule)
            _check_finite(theta, good, schedule)
            good = theta
            schedule.epoch += 1
            row = {name: float(np.mean(values)) for name, values in sums.items()}
            stop = monitor.record(partial(to_numpy, theta), **figures(theta, schedule.epoch), **row)
            state = {"step": schedule.step, "epoch": schedule.epoch}
            monitor.save(state, partial(_arrays, theta, velocity, chains))
            if stop:
                break
    except KeyboardInterrupt:
        return good, True
    return theta, False


def _moved(theta: Any, gradient: Any, rate: float, keep: bool) -> Any:
    if is_numpy(theta) and not keep:
        gradient *= theta.dtype.type(rate)
        gradient += theta
        return gradient
    return theta + (theta.dtype.type(rate) if is_numpy(theta) else rate) * gradient


def _order(n: int, seed: int, epoch: int, weights: np.ndarray | None) -> np.ndarray:
    random = np.random.Generator(np.random.Philox(key=(seed ^ (0x5BF0_3635 * (epoch + 1))) & ((1 << 64) - 1)))
    return random.permutation(n if weights is None else visits(weights, n, random))


def _arrays(theta: Any, velocity: Any, chains: Chains) -> dict[str, np.ndarray]:
    arrays = {"theta": to_numpy(theta), **chains.arrays()}
    if velocity is not None:
        arrays["velocity"] = to_numpy(velocity)
    return arrays


def _check_finite(theta: Any, good: Any, schedule: Schedule) -> None:
    if np.isfinite(float(theta.sum())):
        return
    error = DivergedError(
        f"training diverged in epoch {schedule.epoch + 1} (step {schedule.step}): parameters are no longer finite;"
        f" lower learning_rate (now {schedule.rate:g}). The weights of epoch {schedule.epoch} are kept in the"
        " attribute 'weights' of this error"
    )
    error.weights = {"theta": to_numpy(good)}
    raise error
