"""Partition functions of random fields: exact, by annealing from both sides, by sequential Monte Carlo.

    log Z ≈ log Z₀ + log mean_s Π_k p̃_{β_{k+1}}(x_k) / p̃_{β_k}(x_k),   β_0 = 0 … β_K = 1

The logarithm of the mean is below log Z on average (a lower bound in expectation). The same run backwards, from draws
of the model, ends above it [Burda2015]. If the effective sample size is small, a single chain dominates the mean. So
every result has its effective sample size, and a result below ten chains has no value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mercer._arrays import to_numpy
from mercer._validation import check_choice, check_count
from mercer.exceptions import UnreliableEstimateError
from mercer.learning.learners import Keys, anneal, next_beta, resample

__all__ = ["LogPartition", "UnreliableEstimateError", "log_partition"]

METHODS = ("exact", "ais", "reverse-ais", "smc")
LEAST = 10.0
"""Chains that must count, for a point value."""
_BURN_IN = 200  # sweeps before a run backwards where the model cannot be drawn from exactly


@dataclass(frozen=True)
class LogPartition:
    """An estimate of log Z. ``float(result)`` is its value.

    Attributes
    ----------
    method : str
    ess : float
        Effective sample size, in chains; infinite for an exact sum.
    error : float
        Standard error of the value.
    lower, upper : float
        Lower and upper bounds in expectation from annealing; −∞ and ∞ if that side was not requested.
    n_temperatures, n_chains : int
    exact_start : bool
        Whether a run backwards began with exact draws of the model; otherwise with sweeps from the particles of
        training, and ``upper`` is no bound where these had not converged.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.fields import RBM, log_partition
    >>> X = np.random.default_rng(0).integers(0, 2, (50, 6))
    >>> model = RBM(n_hidden=3, max_iter=5, random_state=0).fit(X)
    >>> exact = log_partition(model, "exact")
    >>> estimate = log_partition(model, "reverse-ais", n_temperatures=200, random_state=0)
    >>> abs(estimate.value - float(exact)) < 0.05
    True
    """

    method: str
    ess: float
    error: float
    lower: float
    upper: float
    n_temperatures: int = 0
    n_chains: int = 0
    exact_start: bool = True
    point: float = field(default=np.nan, repr=False)

    @property
    def value(self) -> float:
        """The estimate of log Z.

        Raises
        ------
        UnreliableEstimateError
            If the effective sample size is below ten chains.
        """
        if self.ess < min(LEAST, 0.5 * self.n_chains):
            upper = f" and {self.upper:.6g}" if np.isfinite(self.upper) else ""
            raise UnreliableEstimateError(
                f"log Z by {self.method!r} has an effective sample size of {self.ess:.1f} of {self.n_chains} chains"
                f" (at least {LEAST:g} are needed for a value); it lies {'between' if upper else 'probably above'}"
                f" {self.lower:.6g}{upper}: raise n_temperatures (now {self.n_temperatures}) or n_chains"
            )
        return self.point

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        reliable = self.ess >= min(LEAST, 0.5 * self.n_chains)
        value = f"{self.point:.6g} ± {self.error:.2g}" if reliable else "unreliable"
        sizes = f", ess={self.ess:.3g} of {self.n_chains}" if self.n_chains else ""
        return f"LogPartition({value}, {self.method!r}{sizes}, lower={self.lower:.6g}, upper={self.upper:.6g})"


def log_partition(
    model: Any,
    method: str = "ais",
    *,
    n_temperatures: int = 1000,
    n_chains: int = 100,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LogPartition:
    """Estimate the logarithm of the partition function of a fitted random field.

    Parameters
    ----------
    model : RBM or BoltzmannMachine
    method : {"exact", "ais", "reverse-ais", "smc"}, default="ais"
        ``"exact"`` sums over all states (of the smaller layer), ``"ais"`` is annealed importance sampling
        [Salakhutdinov2008]_, ``"reverse-ais"`` runs it from both ends and gives a bracket [Burda2015]_, ``"smc"``
        resamples at temperatures chosen by the effective sample size.
    n_temperatures : int, default=1000
        Number of temperatures of annealing; ``"smc"`` chooses its own.
    n_chains : int, default=100
    random_state : int or None
        Seed. None takes the one of the model.
    n_jobs : int or None
        Threads. The result does not depend on it.

    Returns
    -------
    LogPartition

    Raises
    ------
    ValueError
        If an exact sum has too many states.

    References
    ----------
    .. [Salakhutdinov2008] R. Salakhutdinov and I. Murray. On the quantitative analysis of deep belief networks. ICML,
       2008.
    .. [Burda2015] Y. Burda, R. Grosse and R. Salakhutdinov. Accurate and conservative estimates of MRF log-likelihood
       using reverse annealing. AISTATS, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.fields import BoltzmannMachine, log_partition
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 4))
    >>> model = BoltzmannMachine(learner="exact", max_iter=5).fit(X)
    >>> result = log_partition(model, "exact")
    >>> result.error, result.lower == result.upper == float(result)
    (0.0, True)
    """
    check_choice("method", method, METHODS)
    if not hasattr(model, "_known_log_z"):
        raise TypeError(f"model must be an RBM or a BoltzmannMachine, got {type(model).__name__}")
    energy, theta, data, particles = model._field(n_jobs)
    seed = model._seed() if random_state is None else check_count("random_state", random_state, 0)
    return estimate(
        energy,
        theta,
        method,
        check_count("n_temperatures", n_temperatures),
        check_count("n_chains", n_chains, 2),
        Keys(seed),
        data,
        particles,
    )


def estimate(
    energy: Any,
    theta: Any,
    method: str,
    n_temperatures: int,
    n_chains: int,
    keys: Keys,
    data: Any = None,
    particles: Any = None,
) -> LogPartition:
    """Estimate log Z of an energy model; ``data`` gives the base distribution, ``particles`` start a run backwards."""
    if method == "exact":
        value = energy.exact(theta)[0]
        return LogPartition(method, np.inf, 0.0, value, value, point=value)
    start = energy.base(data, theta)
    zero = energy.base_log_z(start)
    if method == "smc":
        return _sequential(energy, start, theta, zero, n_chains, keys)
    betas = np.linspace(0.0, 1.0, n_temperatures + 1).tolist()
    forward = _run(energy, energy.base_draws(n_chains, start, keys), start, theta, betas, keys)
    point, error, ess = _summary(forward)
    lower, upper, exact_start = point + zero, np.inf, True
    if method == "reverse-ais":
        draws, exact_start = _draws(energy, theta, n_chains, keys, particles)
        backward = _run(energy, draws, start, theta, betas[::-1], keys)
        other, _, other_ess = _summary(backward)
        upper, ess = zero - other, min(ess, other_ess)
    return LogPartition(method, ess, error, lower, upper, n_temperatures, n_chains, exact_start, lower)


def _run(energy: Any, states: Any, start: Any, end: Any, betas: list[float], keys: Keys) -> np.ndarray:
    total: Any = 0.0
    for before, after in pairwise(betas):
        ratio, states = energy.step(states, start, end, before, after, keys)
        total = total + ratio
    return to_numpy(total).astype(np.float64, copy=False)


def _summary(log_weights: np.ndarray) -> tuple[float, float, float]:
    """The logarithm of the mean, its standard error and the effective sample size, in chains."""
    n = len(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    error = float(weights.std(ddof=1) / weights.mean() / np.sqrt(n))
    return float(logsumexp(log_weights) - np.log(n)), error, float(weights.sum() ** 2 / (weights**2).sum())


def _draws(energy: Any, theta: Any, n: int, keys: Keys, particles: Any) -> tuple[Any, bool]:
    try:
        energy.check_exact()
    except ValueError:
        states = energy.uniform(n, keys)
        if particles is not None and len(particles):
            states = particles[np.arange(n) % len(particles)]
        else:
            states, _ = anneal(energy, states, None, theta, 0.9, 1, keys)
        for _ in range(_BURN_IN):
            states = energy.sweep(states, theta, keys)
        return states, False
    return energy.exact_draws(n, theta, keys), True


def _sequential(energy: Any, start: Any, end: Any, total: float, n: int, keys: Keys, ess: float = 0.9) -> LogPartition:
    states, beta, length, variance, steps, least = energy.base_draws(n, start, keys), 0.0, 0.1, 0.0, 0, float(n)
    while beta < 1.0:
        log_density = energy.path(states, start, end)
        stop = next_beta(log_density, beta, ess, length)
        weights = to_numpy(log_density(stop) - log_density(beta)).astype(np.float64)
        gain, error, size = _summary(weights[:, 0])
        total, variance, least, steps = total + gain, variance + error**2, min(least, size), steps + 1
        states = energy.take(states, resample(weights, keys.uniforms(1)))
        length, beta = stop - beta, stop
        states = energy.sweep(states, start + beta * (end - start), keys)
    return LogPartition("smc", least, float(np.sqrt(variance)), total, np.inf, steps, n, point=total)
