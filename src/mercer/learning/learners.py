"""Learning energy models with an intractable partition function: estimators of the second term of the gradient.

    p(x; θ) = exp(θ·φ(x)) / Z(θ),    ∂ log-likelihood / ∂θ = E_data[φ] − E_θ[φ]

An `EnergyModel` gives statistics φ, log densities along a path of parameters, and Gibbs sweeps at an inverse
temperature. A `Learner` estimates E_θ[φ] with particles that persist between steps, independently of the model
[Robbins1951]_:

========================  ========================================================================================
`CD`                      sweeps that start at the data [Hinton2002]_
`PCD`                     the same particles go on [Tieleman2008]_
`TemperedTransitions`     excursions to higher temperatures, accepted or rejected as a whole [Neal1996]_
`ParallelTempering`       ladders of temperatures whose neighbours change places
`SMC`                     uniform particles that are brought to θ by reweighting and sweeps
`PSMC`                    particles that are brought from the last θ to the next, some of them replaced [Xiong2014]_
`MCMCML`                  importance weights of particles of an earlier θ [Geyer1991]_
`ParticleFilter`          weights that accumulate until too few particles count [Asuncion2010]_
`Exact`                   a sum over all states
`PseudoLikelihood`        no partition function: each variable given the others [Besag1975]_
========================  ========================================================================================

Variables may form groups (the graphs of a conditional field): separate fields with shared parameters. Each group then
has its own weights, resampling and acceptance: arrays (particles × groups).

PSMC in [Xiong2014]_ starts its temperatures at the end, and weights fresh particles as if they were drawn from the last
θ. Here carried particles follow p(·; (1 − β) θ_t + β θ_{t+1}), and fresh ones follow p(·; θ_{t+1})^β from the uniform
distribution. Each kind is resampled separately.

.. [Asuncion2010] A. Asuncion, Q. Liu, A. Ihler and P. Smyth. Particle filtered MCMC-MLE with connections to contrastive
   divergence. ICML, 2010.
.. [Besag1975] J. Besag. Statistical analysis of non-lattice data. The Statistician 24, 1975.
.. [Geyer1991] C. Geyer. Markov chain Monte Carlo maximum likelihood. Computing Science and Statistics 23, 1991.
.. [Hinton2002] G. Hinton. Training products of experts by minimizing contrastive divergence. Neural Computation 14,
   2002.
.. [Neal1996] R. Neal. Sampling from multimodal distributions using tempered transitions. Statistics and Computing 6,
   1996.
.. [Robbins1951] H. Robbins and S. Monro. A stochastic approximation method. Annals of Mathematical Statistics 22, 1951.
.. [Tieleman2008] T. Tieleman. Training restricted Boltzmann machines using approximations to the likelihood gradient.
   ICML, 2008.
.. [Xiong2014] H. Xiong, S. Szedmak and J. Piater. Towards maximum likelihood: learning undirected graphical models
   using persistent sequential Monte Carlo. ACML, 2014.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mercer._arrays import is_numpy, on_device_of, to_numpy
from mercer._state.values import Codec, register
from mercer._validation import check_count
from mercer.learning.checkpoint import array_like, array_of

__all__ = [
    "CD",
    "LEARNERS",
    "MCMCML",
    "PCD",
    "PSMC",
    "SMC",
    "Chains",
    "EnergyModel",
    "Exact",
    "Keys",
    "Learner",
    "ParallelTempering",
    "ParticleFilter",
    "Path",
    "PseudoLikelihood",
    "TemperedTransitions",
    "anneal",
    "effective_size",
    "next_beta",
    "resample",
    "resolve_learner",
]

MOST_STATES = 1 << 20
"""States that an exact sum goes over."""
_MASK = (1 << 64) - 1
_STEPS = 100_000  # of temperatures in one iteration, beyond which a path is given up


class Keys:
    """A stream of 64-bit keys for counter-based random numbers.

    Parameters
    ----------
    seed : int
    used : int, default=0
        Number of keys already used.
    """

    def __init__(self, seed: int, used: int = 0) -> None:
        self.seed, self.used = int(seed) & _MASK, int(used)

    def next(self) -> int:
        """Return the next key."""
        self.used += 1
        return self.key(self.used)

    def key(self, number: int) -> int:
        """Return the key of a given index."""
        z = (self.seed + 0x9E3779B97F4A7C15 * (number + 1)) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def uniforms(self, *shape: int) -> np.ndarray:
        """Return uniform random numbers of one key."""
        return np.random.Generator(np.random.Philox(key=self.next())).random(shape)


class Path:
    """States with the fields on a straight line between two parameters: β → log densities, and Gibbs sweeps.

    Parameters
    ----------
    model : EnergyModel
    states : array (particles, variables)
    start, end : arrays of parameters
        None is 0.
    log_density : callable
        β → log densities (particles × groups), up to log Z.
    """

    def __init__(
        self, model: EnergyModel, states: Any, start: Any, end: Any, log_density: Callable[[float], Any]
    ) -> None:
        self.model, self.states, self.start, self.end, self._log_density = model, states, start, end, log_density

    def __call__(self, beta: float) -> Any:
        return self._log_density(beta)

    def move(self, beta: float, keys: Keys, backward: bool = False) -> Any:
        """Return the states after a sweep under β end, or after its reversal; for paths from 0."""
        return self.model.sweep(self.states, self.end, keys, beta, backward)

    def advance(self, index: np.ndarray, beta: float, keys: Keys) -> Any:
        """Return the states that ``index`` (particles × groups) chooses, after a sweep at β."""
        states = self.model.take(self.states, index)
        if self.start is None:
            return self.model.sweep(states, self.end, keys, beta)
        return self.model.sweep(states, self.end if beta == 1.0 else self.start + beta * (self.end - self.start), keys)


def log_odds(shares: Any, least: float) -> Any:
    """Return the biases of independent units that are on so often; shares are kept ``least`` away from 0 and 1."""
    shares = np.clip(shares, least, 1.0 - least)
    return np.log(shares / (1.0 - shares))


class EnergyModel(ABC):
    """The model interface of learners. States are arrays (particles × variables), parameters one flat array θ."""

    n_groups: int = 1
    n_values: int = 2  # of a variable whose states are integers
    threads: int = 1

    @abstractmethod
    def uniform(self, n: int, keys: Keys) -> Any:
        """Draw n states at inverse temperature 0."""

    @abstractmethod
    def sweep(self, states: Any, theta: Any, keys: Keys, beta: float = 1.0, backward: bool = False) -> Any:
        """Return the states after a Gibbs sweep that leaves exp(β θ·φ) invariant; ``backward`` is its reversal."""

    @abstractmethod
    def path(self, states: Any, start: Any, end: Any) -> Path:
        """Return the log densities of states under (1 − β) start + β end, as a function of β; None is 0."""

    def sweeps(self, states: Any, theta: Any, keys: Keys, count: int, beta: float = 1.0) -> Any:
        """Return the states after a number of sweeps."""
        for _ in range(count):
            states = self.sweep(states, theta, keys, beta)
        return states

    def excursion(self, states: Any, theta: Any, betas: list[float], keys: Keys) -> tuple[Any, Any]:
        """Return the states after an excursion along inverse temperatures and back, and the log acceptance ratio."""
        log_ratio: Any = 0.0
        path = self.path(states, None, theta)
        for before, after in pairwise(betas):
            log_ratio = log_ratio + path(after) - path(before)
            states = path.move(after, keys)
            path = self.path(states, None, theta)
        for after, before in pairwise(betas[::-1]):
            states = path.move(after, keys, backward=True)
            path = self.path(states, None, theta)
            log_ratio = log_ratio + path(before) - path(after)
        return states, log_ratio

    def anneal(self, states: Any, theta: Any, ess: float, keys: Keys) -> tuple[Any, list[float]] | None:
        """Do what `anneal` does from uniform states with one sweep per temperature, if a model has a faster method."""
        return None

    @abstractmethod
    def statistics(self, states: Any, theta: Any, weights: Any = None) -> Any:
        """Return the mean of φ over particles, like θ; ``weights`` (particles × groups) sum to 1 per group."""

    def exact(self, theta: Any) -> tuple[float, Any]:
        """Return log Z and E[φ] by a sum over all states."""
        raise ValueError(f"{type(self).__name__} has no sum over all states")

    def pseudo_gradient(self, data: Any, theta: Any) -> tuple[float, Any]:
        """Return the mean log pseudo-likelihood of states and its gradient."""
        raise ValueError(f"{type(self).__name__} has no pseudo-likelihood")

    def step(self, states: Any, start: Any, end: Any, before: float, after: float, keys: Keys) -> tuple[Any, Any]:
        """Return log p̃_after − log p̃_before of the states, and the states after a sweep at ``after``."""
        log_density = self.path(states, start, end)
        moved = self.sweep(states, start + after * (end - start), keys)
        return (log_density(after) - log_density(before))[:, 0], moved

    def log_density(self, states: Any, theta: Any) -> Any:
        """Return θ·φ of each particle and group (hidden variables summed out)."""
        return self.path(states, None, theta)(1.0)

    def spread(self, values: Any) -> Any:
        """Return values of groups (particles × groups) for all variables; a single group is broadcast."""
        return values

    def take(self, states: Any, index: np.ndarray) -> Any:
        """Return particle index[s, g] in the variables of each group."""
        if self.n_groups == 1:
            return states[_beside(index[:, 0], states)]
        return np.take_along_axis(states, self.spread(index), axis=0)

    def exchange(self, a: Any, b: Any, change: np.ndarray) -> tuple[Any, Any]:
        """Return both states with the groups exchanged where ``change`` (particles × groups) is true."""
        where = self.spread(_beside(change, a))
        if is_numpy(a):
            return np.where(where, b, a), np.where(where, a, b)
        import torch

        return torch.where(where, b, a), torch.where(where, a, b)


def _beside(values: np.ndarray, like: Any) -> Any:
    if is_numpy(like):
        return values
    import torch

    return torch.as_tensor(np.ascontiguousarray(values), device=like.device)


def _joined(parts: list[Any]) -> Any:
    if is_numpy(parts[0]):
        return np.concatenate(parts)
    import torch

    return torch.cat(parts)


class Chains:
    """Particles: the state that a learner keeps between steps.

    Parameters
    ----------
    model : EnergyModel
    keys : Keys
    n_particles : int
    """

    def __init__(self, model: EnergyModel, keys: Keys, n_particles: int) -> None:
        self.model, self.keys, self.n_particles = model, keys, n_particles
        self.particles: list[Any] = []
        self.theta: Any = None
        self.log_weights: np.ndarray | None = None
        self.age = 0
        self.figures: dict[str, float] = {}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that the next step depends on, for a checkpoint."""
        arrays = {f"particles{i}": to_numpy(part) for i, part in enumerate(self.particles)}
        arrays["age"] = np.array([self.age, self.keys.used], np.int64)
        if self.theta is not None:
            arrays["last"] = to_numpy(self.theta)
        if self.log_weights is not None:
            arrays["log_weights"] = self.log_weights
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], theta: Any) -> None:
        """Restore the result of `arrays`, checked against the current particles and parameters."""
        count = sum(name.startswith("particles") for name in arrays)
        likes = [to_numpy(part) for part in self.particles]
        hidden: Any = getattr(self.model, "hidden_dtype", None)
        n_hidden: int = getattr(self.model, "n_hidden", 0)
        if hidden is not None and count == 2 and len(likes) == 1:  # hidden units, which are kept from the first step on
            likes.append(np.empty((len(likes[0]), n_hidden), hidden))
        if count != len(likes):
            raise ValueError(f"expected {len(likes)} sets of particles, found {count}")
        parts = [array_like(arrays, f"particles{i}", like) for i, like in enumerate(likes)]
        most = self.model.n_values - 1
        for part in parts:
            if part.dtype.kind in "iu" and part.size and not 0 <= part.min() <= part.max() <= most:
                raise ValueError(f"particles must lie between 0 and {most}, found {part.min()} … {part.max()}")
        self.particles = [on_device_of(self.particles[0], part) for part in parts]
        self.age, self.keys.used = (check_count("age", int(number), 0) for number in arrays["age"])
        self.theta = on_device_of(theta, array_like(arrays, "last", to_numpy(theta))) if "last" in arrays else None
        shape = (self.n_particles, self.model.n_groups)
        self.log_weights = array_of(arrays, "log_weights", shape) if "log_weights" in arrays else None


# ------------------------------------------------------------------------------------------------ sequential steps


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max(axis=0))
    return weights / weights.sum(axis=0)


def effective_size(log_weights: Any) -> float:
    """Return (Σ w)² / (S Σ w²), between 1/S and 1; with groups, the mean over groups.

    Examples
    --------
    >>> import numpy as np
    >>> effective_size(np.zeros((4, 1))), effective_size(np.array([[0.0], [-1000.0]]))
    (1.0, 0.5)
    """
    if is_numpy(log_weights):
        weights = np.exp(log_weights - log_weights.max(axis=0))
        return float(np.mean(weights.sum(axis=0) ** 2 / (len(weights) * (weights**2).sum(axis=0))))
    weights = (log_weights - log_weights.max(0).values).exp()
    return float((weights.sum(0) ** 2 / (len(weights) * (weights**2).sum(0))).mean())


def next_beta(log_density: Callable[[float], Any], beta: float, ess: float, guess: float = 0.1) -> float:
    """Return the inverse temperature at the end of the longest step whose effective sample size is at least ``ess``.

    Parameters
    ----------
    log_density : callable
        β → log densities (particles × groups).
    beta : float
        Current inverse temperature of the particles.
    ess : float
        Minimum share, in (0, 1).
    guess : float, default=0.1
        Step length to try first, after the whole remaining range.

    Returns
    -------
    float
        At most 1. A step longer by 1 % has a smaller effective sample size.

    Examples
    --------
    >>> import numpy as np
    >>> energies = np.linspace(0.0, 10.0, 50)[:, None]
    >>> stop = next_beta(lambda beta: -beta * energies, 0.0, 0.9)
    >>> 0.1 < stop < 0.2
    True
    """
    if hasattr(log_density, "sizes"):
        return _next_of_many(log_density.sizes, beta, ess, guess)
    here = log_density(beta)

    def size(step: float) -> float:
        return effective_size(log_density(min(beta + step, 1.0)) - here)

    if size(1.0 - beta) >= ess:
        return 1.0
    low, high, step = 0.0, 1.0 - beta, min(guess, 0.5 * (1.0 - beta))
    target = -math.log(ess)
    while high > 1.01 * low:
        left = size(step)
        if left >= ess:
            low = step
        else:
            high = step
        # −log ESS grows like the square of a short step: the root of that law, kept inside the bracket.
        proposal = step * math.sqrt(target / max(-math.log(max(left, 1e-300)), 1e-12))
        proposal *= 0.999 if left < ess else 1.004
        inside = 1.0001 * low < proposal < 0.9999 * high and proposal < 8.0 * step
        step = proposal if inside else math.sqrt(low * high) if low > 0 else 0.3 * high
        if high < 1e-12:
            break
    return min(1.0, beta + max(low, 1e-12))


def _next_of_many(sizes: Callable[[float, list[float]], list[float]], beta: float, ess: float, guess: float) -> float:
    """The same where many lengths are tried at once, as a GPU does without waiting in between."""
    rest = 1.0 - beta
    low, high = 0.0, rest
    tried = [rest, *(min(guess * 3.0 ** (k / 8.0), rest) for k in range(-8, 9))]
    while high > 1.01 * low:
        left = sizes(beta, tried)
        if left[0] >= ess and tried[0] == rest:
            return 1.0
        low = max([low, *(step for step, size in zip(tried, left, strict=True) if size >= ess)])
        high = min(high, *(step for step, size in zip(tried, left, strict=True) if size < ess and step > low), high)
        if high < 1e-12:
            break
        if low == 0.0:
            tried = [high * 0.5**k for k in range(1, 18)]
        else:
            tried = [low * (high / low) ** (k / 18.0) for k in range(1, 18)]
    return min(1.0, beta + max(low, 1e-12))


def resample(log_weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return the resampled particle indices of each group, by systematic resampling.

    Parameters
    ----------
    log_weights : array (particles, groups)
    uniforms : array (groups,)
        One number in [0, 1) for each group.

    Examples
    --------
    >>> import numpy as np
    >>> resample(np.log([[0.5], [0.25], [0.25], [1e-9]]), np.array([0.5]))[:, 0].tolist()
    [0, 0, 1, 2]
    """
    size, groups = log_weights.shape
    sums = np.cumsum(_normalised(log_weights), axis=0)
    sums /= sums[-1]
    places = (np.arange(size)[:, None] + uniforms) / size
    shift = np.arange(groups)
    flat = np.searchsorted((sums + shift).T.ravel(), (places + shift).T.ravel(), side="right")
    return np.minimum(flat.reshape(groups, size).T - shift * size, size - 1)


def anneal(
    model: EnergyModel, states: Any, start: Any, end: Any, ess: float, steps: int, keys: Keys
) -> tuple[Any, list[float]]:
    """Anneal particles from one parameter to another, at temperatures chosen by the effective sample size.

    Parameters
    ----------
    model : EnergyModel
    states : array (particles, variables)
        Draws from the field with the parameter ``start`` (None: uniform).
    start, end : arrays of parameters
    ess : float
        Minimum effective sample size of a step, as a share.
    steps : int
        Gibbs sweeps at each temperature.
    keys : Keys

    Returns
    -------
    states : array
        Particles with equal weights.
    betas : list of float
        The inverse temperatures after 0.
    """
    if start is None and steps == 1:
        annealed = model.anneal(states, end, ess, keys)
        if annealed is not None:
            return annealed
    betas: list[float] = []
    beta, length = 0.0, 0.1
    while beta < 1.0:
        path = model.path(states, start, end)
        stop = next_beta(path, beta, ess, length)
        weights = to_numpy(path(stop) - path(beta)).astype(np.float64, copy=False)
        states = path.advance(resample(weights, keys.uniforms(model.n_groups)), stop, keys)
        length, beta = stop - beta, stop
        betas.append(beta)
        theta = end if start is None or beta == 1.0 or steps == 1 else start + beta * (end - start)
        states = model.sweeps(states, theta, keys, steps - 1, beta if start is None else 1.0)
        if len(betas) > _STEPS:
            raise FloatingPointError(f"more than {_STEPS} temperatures were needed: the parameters have diverged")
    return states, betas


# ------------------------------------------------------------------------------------------------ learners


class Learner(ABC):
    """An estimator of the log-likelihood gradient. It holds only settings; `Chains` holds the state."""

    name: ClassVar[str]
    exact: ClassVar[bool] = False

    def start(self, chains: Chains, theta: Any) -> None:
        """Make the particles."""
        chains.particles = [chains.model.uniform(chains.n_particles, chains.keys)]
        chains.theta = theta

    def gradient(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return E_data[φ] − E_θ[φ], the second term by particles."""
        return chains.model.statistics(data, theta) - self.negative(chains, theta, data)

    @abstractmethod
    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return an estimate of E_θ[φ] and move the particles."""

    def to_json(self) -> dict[str, Any]:
        """Return name and settings as plain data."""
        return {"name": self.name, **vars(self)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def _share(name: str, value: Any, *, zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (0 if zero else 1e-9) <= value < 1:
        raise ValueError(f"{name} must be a number from {0 if zero else 'above 0'} to below 1, got {value!r}")
    return float(value)


class CD(Learner):
    """Estimate by a few sweeps from the data: biased, but quick and with little variance.

    Parameters
    ----------
    steps : int, default=1
        Gibbs sweeps.

    Examples
    --------
    >>> from mercer.fields import RBM, learners
    >>> RBM(learner=learners.CD(steps=5)).learner
    CD(steps=5)
    """

    name = "cd"

    def __init__(self, steps: int = 1) -> None:
        self.steps = check_count("steps", steps)

    def start(self, chains: Chains, theta: Any) -> None:
        """Return no particles: nothing persists between steps."""

    def gradient(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return E_data[φ] − E[φ] after a few sweeps."""
        if self.steps == 1 and hasattr(chains.model, "contrast"):
            return chains.model.contrast(data, theta, chains.keys)
        return super().gradient(chains, theta, data)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return the mean of φ after a few sweeps from the data."""
        return chains.model.statistics(chains.model.sweeps(data, theta, chains.keys, self.steps), theta)


class PCD(Learner):
    """Estimate by particles that persist between steps.

    Parameters
    ----------
    steps : int, default=1
        Gibbs sweeps at each step.

    Examples
    --------
    >>> from mercer.fields import BoltzmannMachine, learners
    >>> BoltzmannMachine(learner=learners.PCD(10)).learner
    PCD(steps=10)
    """

    name = "pcd"

    def __init__(self, steps: int = 1) -> None:
        self.steps = check_count("steps", steps)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Move the particles and return their mean of φ."""
        if self.steps == 1 and hasattr(chains.model, "persist"):
            chains.particles, mean = chains.model.persist(chains.particles, theta, chains.keys)
            return mean
        chains.particles[0] = chains.model.sweeps(chains.particles[0], theta, chains.keys, self.steps)
        return chains.model.statistics(chains.particles[0], theta)


class TemperedTransitions(Learner):
    """Estimate by particles that make excursions to higher temperatures, after an ordinary sweep.

    Parameters
    ----------
    n_temperatures : int, default=10
        Number of steps up the ladder, and down again.
    lowest : float, default=0.9
        Inverse temperature at the top.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.TemperedTransitions(20)
    TemperedTransitions(n_temperatures=20, lowest=0.9)
    """

    name = "tempered"

    def __init__(self, n_temperatures: int = 10, lowest: float = 0.9) -> None:
        self.n_temperatures = check_count("n_temperatures", n_temperatures)
        self.lowest = _share("lowest", lowest, zero=True)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Sweep, make an excursion, and return the mean of φ."""
        model, keys = chains.model, chains.keys
        states = model.sweep(chains.particles[0], theta, keys)
        betas = np.linspace(1.0, self.lowest, self.n_temperatures + 1)
        moved, log_ratio = model.excursion(states, theta, betas.tolist(), keys)
        ratio = to_numpy(log_ratio)
        accepted = np.log(np.maximum(keys.uniforms(*ratio.shape), 1e-300)) < ratio
        chains.figures["acceptance"] = float(accepted.mean())
        chains.particles[0], _ = model.exchange(states, moved, accepted)
        return model.statistics(chains.particles[0], theta)


class ParallelTempering(Learner):
    """Estimate by the coldest particles of temperature ladders, with swaps between neighbours.

    Parameters
    ----------
    n_temperatures : int, default=10
        Temperatures of a ladder; every particle has one.
    lowest : float, default=0.0
        Inverse temperature of the hottest particles.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.ParallelTempering()
    ParallelTempering(n_temperatures=10, lowest=0.0)
    """

    name = "parallel-tempering"

    def __init__(self, n_temperatures: int = 10, lowest: float = 0.0) -> None:
        self.n_temperatures = check_count("n_temperatures", n_temperatures, 2)
        self.lowest = _share("lowest", lowest, zero=True)

    def start(self, chains: Chains, theta: Any) -> None:
        """Make a particle of each temperature."""
        chains.particles = [chains.model.uniform(chains.n_particles, chains.keys) for _ in range(self.n_temperatures)]

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Sweep at all temperatures, exchange, and return the mean of φ of the coldest."""
        if getattr(chains.model, "tempers_rows", False):
            return self._side_by_side(chains, theta)
        model, keys, states = chains.model, chains.keys, chains.particles
        betas = np.linspace(1.0, self.lowest, self.n_temperatures)
        for h, beta in enumerate(betas.tolist()):
            states[h] = model.sweep(states[h], theta, keys, beta)
        accepted = []
        for h in range(len(betas) - 1):
            cold, warm = float(betas[h]), float(betas[h + 1])
            first, second = model.path(states[h], None, theta), model.path(states[h + 1], None, theta)
            ratio = to_numpy(first(warm) - first(cold) + second(cold) - second(warm))
            change = np.log(np.maximum(keys.uniforms(*ratio.shape), 1e-300)) < ratio
            accepted.append(change.mean())
            states[h], states[h + 1] = model.exchange(states[h], states[h + 1], change)
        chains.figures["acceptance"] = float(np.mean(accepted))
        return model.statistics(states[0], theta)

    def _side_by_side(self, chains: Chains, theta: Any) -> Any:
        """The same with all temperatures in one array, for models whose rows may have a β each; pairs take turns."""
        model, keys, n = chains.model, chains.keys, chains.n_particles
        betas = _beside(np.repeat(np.linspace(1.0, self.lowest, self.n_temperatures), n).astype(np.float32), theta)
        states = model.sweep(_joined(chains.particles), theta, keys, betas[:, None])
        first, accepted = chains.age % 2, 0.0
        chains.age += 1
        pairs = (self.n_temperatures - first) // 2
        if pairs:
            rows = slice(first * n, (first + 2 * pairs) * n)
            block, own = states[rows].reshape(pairs, 2, n, -1), betas[rows].reshape(pairs, 2, n)
            path, other = model.path(states[rows], None, theta), own[:, [1, 0]].reshape(-1, 1)
            gain = (path(other) - path(own.reshape(-1, 1))).reshape(pairs, 2, n).sum(1)
            change = to_numpy(gain) > np.log(np.maximum(keys.uniforms(pairs, n), 1e-300))
            accepted = float(change.mean())
            swap = _beside(change, theta)[:, None, :, None]
            states[rows] = (swap * block[:, [1, 0]] + ~swap * block).reshape(2 * pairs * n, -1)
        chains.figures["acceptance"] = accepted
        chains.particles = [states[h * n : (h + 1) * n] for h in range(self.n_temperatures)]
        return model.statistics(chains.particles[0], theta)


class SMC(Learner):
    """Estimate by particles that move from the uniform distribution to θ in every step.

    Parameters
    ----------
    ess : float, default=0.9
        Effective sample size of a step between temperatures, as a share of the particles.
    steps : int, default=1
        Gibbs sweeps at each temperature.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.SMC()
    SMC(ess=0.9, steps=1)
    """

    name = "smc"

    def __init__(self, ess: float = 0.9, steps: int = 1) -> None:
        self.ess, self.steps = _share("ess", ess), check_count("steps", steps)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Anneal uniform particles and return their mean of φ."""
        model, keys = chains.model, chains.keys
        fresh = model.uniform(chains.n_particles, keys)
        chains.particles[0], betas = anneal(model, fresh, None, theta, self.ess, self.steps, keys)
        chains.figures["n_temperatures"] = len(betas)
        return model.statistics(chains.particles[0], theta)


class PSMC(Learner):
    """Estimate by particles that move from the last θ to the next; some are replaced in each step.

    Parameters
    ----------
    ess : float, default=0.9
        Effective sample size of a step between temperatures, as a share of the particles. It determines the number of
        temperatures.
    refresh : float, default=0.5
        Share of the particles that start from the uniform distribution at each step. 0 keeps all particles, which is
        much faster but never finds modes that no particle has reached.
    steps : int, default=1
        Gibbs sweeps at each temperature.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.PSMC(refresh=0.0)
    PSMC(ess=0.9, refresh=0.0, steps=1)
    """

    name = "psmc"

    def __init__(self, ess: float = 0.9, refresh: float = 0.5, steps: int = 1) -> None:
        self.ess, self.refresh = _share("ess", ess), _share("refresh", refresh, zero=True)
        self.steps = check_count("steps", steps)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Bring carried and fresh particles to θ and return their mean of φ."""
        model, keys = chains.model, chains.keys
        fresh = round(self.refresh * chains.n_particles)
        # Which particles are replaced must not depend on their places, which resampling sorts.
        order = np.argsort(keys.uniforms(chains.n_particles), kind="stable")[fresh:]
        kept = chains.particles[0][_beside(order, chains.particles[0])]
        kept, betas = anneal(model, kept, chains.theta, theta, self.ess, self.steps, keys)
        parts, count = [kept], len(betas)
        if fresh:
            drawn = model.uniform(fresh, keys)
            drawn, betas = anneal(model, drawn, None, theta, self.ess, self.steps, keys)
            parts.append(drawn)
            count = max(count, len(betas))
        chains.particles[0], chains.theta = _joined(parts), theta
        chains.figures["n_temperatures"] = count
        return model.statistics(chains.particles[0], theta)


class MCMCML(Learner):
    """Estimate by importance weights of particles that were drawn for an earlier θ.

    Parameters
    ----------
    reset : int, default=10
        Number of steps after which particles are drawn for the current θ.
    steps : int, default=20
        Gibbs sweeps for such a draw.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.MCMCML()
    MCMCML(reset=10, steps=20)
    """

    name = "mcmcml"

    def __init__(self, reset: int = 10, steps: int = 20) -> None:
        self.reset, self.steps = check_count("reset", reset), check_count("steps", steps)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return the weighted mean of φ; redraw the particles every ``reset`` steps."""
        model = chains.model
        if chains.age % self.reset == 0:
            chains.particles[0] = model.sweeps(chains.particles[0], theta, chains.keys, self.steps)
            chains.theta = theta
        chains.age += 1
        log_density = model.path(chains.particles[0], chains.theta, theta)
        weights = to_numpy(log_density(1.0) - log_density(0.0)).astype(np.float64, copy=False)
        chains.figures["ess"] = effective_size(weights)
        return model.statistics(chains.particles[0], theta, _normalised(weights))


class ParticleFilter(Learner):
    """Estimate by particles reweighted as θ changes; they are resampled and moved if the effective size is low.

    Parameters
    ----------
    ess : float, default=0.5
        Effective sample size, as a share, below which particles are resampled.
    steps : int, default=1
        Gibbs sweeps after that.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.ParticleFilter()
    ParticleFilter(ess=0.5, steps=1)
    """

    name = "particle-filter"

    def __init__(self, ess: float = 0.5, steps: int = 1) -> None:
        self.ess, self.steps = _share("ess", ess), check_count("steps", steps)

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Reweight, perhaps resample and sweep, and return the weighted mean of φ."""
        model, keys = chains.model, chains.keys
        if chains.log_weights is None:
            chains.log_weights = np.zeros((chains.n_particles, model.n_groups))
        log_density = model.path(chains.particles[0], chains.theta, theta)
        chains.log_weights = chains.log_weights + to_numpy(log_density(1.0) - log_density(0.0))
        chains.theta = theta
        chains.figures["ess"] = size = effective_size(chains.log_weights)
        if size < self.ess:
            index = resample(chains.log_weights, keys.uniforms(model.n_groups))
            chains.particles[0] = model.sweeps(model.take(chains.particles[0], index), theta, keys, self.steps)
            chains.log_weights = np.zeros_like(chains.log_weights)
        return model.statistics(chains.particles[0], theta, _normalised(chains.log_weights))


class Exact(Learner):
    """Sum over all states: for small models, and as a reference.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.Exact()
    Exact()
    """

    name = "exact"
    exact = True

    def start(self, chains: Chains, theta: Any) -> None:
        """Return no particles: nothing persists between steps."""

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return E_θ[φ]."""
        return chains.model.exact(theta)[1]


class PseudoLikelihood(Learner):
    """Maximise the likelihood of each variable given the others, without a partition function.

    Examples
    --------
    >>> from mercer.fields import learners
    >>> learners.PseudoLikelihood()
    PseudoLikelihood()
    """

    name = "pseudo-likelihood"
    exact = True

    def start(self, chains: Chains, theta: Any) -> None:
        """Return no particles: nothing persists between steps."""

    def gradient(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Return the gradient of the mean log pseudo-likelihood."""
        value, gradient = chains.model.pseudo_gradient(data, theta)
        chains.figures["pseudo_likelihood"] = value
        return gradient

    def negative(self, chains: Chains, theta: Any, data: Any) -> Any:
        """Raise an error: there is no second term."""
        raise NotImplementedError


LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (
        CD,
        PCD,
        TemperedTransitions,
        ParallelTempering,
        SMC,
        PSMC,
        MCMCML,
        ParticleFilter,
        Exact,
        PseudoLikelihood,
    )
}


def resolve_learner(learner: str | Learner, **settings: Any) -> Learner:
    """Return a learner by its name with default settings, or the object itself.

    Examples
    --------
    >>> resolve_learner("psmc", ess=0.8, refresh=0.0)
    PSMC(ess=0.8, refresh=0.0, steps=1)
    """
    if isinstance(learner, Learner):
        return learner
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise ValueError(f"learner must be a Learner or one of {', '.join(map(repr, LEARNERS))}, got {learner!r}")
    made = LEARNERS[learner]
    known = made.__init__.__code__.co_varnames[1 : made.__init__.__code__.co_argcount] if vars(made()) else ()
    return made(**{name: value for name, value in settings.items() if name in known})


def learner_from_json(node: Any) -> Learner:
    """Return the learner that `Learner.to_json` describes."""
    if not isinstance(node, dict) or node.get("name") not in LEARNERS:
        raise ValueError(f"unknown learner {node!r}")
    return LEARNERS[node["name"]](**{name: value for name, value in node.items() if name != "name"})


register(
    Learner,
    Codec(
        "learner",
        lambda learner, out: {"of": learner.to_json()},
        lambda node, source: learner_from_json(node["of"]),
    ),
)
