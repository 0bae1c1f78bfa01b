"""Markov chains for user-defined targets: kernels with a state and a step, and their runner.

A kernel leaves its target p invariant: p(y) = Σ_x T(y | x) p(x). Detailed balance, p(x) T(y | x) = p(y) T(x | y), is
enough for that, and Metropolis-Hastings has it for any proposal q, accepting with probability

    min(1, p(y) q(x | y) / (p(x) q(y | x))).

The chain must also reach every state (ergodicity), which depends on the proposal. The target is a function that returns
the logarithm of a density up to a constant, over states of any kind: vectors, assignments, graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import check_count
from mercer.inference.diagnostics import effective_sample_size

__all__ = ["ChainState", "Cycle", "MarkovChain", "Metropolis", "MixedKernel", "TransitionKernel", "run_chain"]


@dataclass(frozen=True)
class ChainState:
    """The state of a chain.

    Attributes
    ----------
    x : object
        The point.
    log_density : float
        Log-density at the point, up to a constant.
    n_accepted, n_proposed : int
        Counts over all steps so far.
    """

    x: Any
    log_density: float
    n_accepted: int = 0
    n_proposed: int = 0


class TransitionKernel(ABC):
    """A Markov kernel: ``state = kernel.init(x)``, then ``state = kernel.step(state, generator)`` repeatedly.

    A user-defined kernel implements ``target`` and a ``step`` that leaves it invariant.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import ChainState, TransitionKernel, run_chain
    >>> class FairCoin(TransitionKernel):
    ...     def target(self, x):
    ...         return 0.0
    ...     def step(self, state, random):
    ...         return ChainState(int(random.integers(2)), 0.0)
    >>> bool(abs(run_chain(FairCoin(), 0, 4000, random_state=0).samples.mean() - 0.5) < 0.05)
    True
    """

    @abstractmethod
    def target(self, x: Any) -> float:
        """Return the log-density at x, up to a constant; −inf if x is impossible."""

    @abstractmethod
    def step(self, state: ChainState, random: np.random.Generator) -> ChainState:
        """Return the next state."""

    def init(self, x: Any) -> ChainState:
        """Return the initial state of a chain.

        Raise ValueError if the target is −inf or not a number: the initial density must be positive.
        """
        value = _density(self.target, x)
        if np.isneginf(value):
            raise ValueError("start has probability 0: begin where the target is positive")
        return ChainState(x, value)


class Metropolis(TransitionKernel):
    """Metropolis-Hastings: propose a point, and accept it with a probability that keeps the target invariant.

    Parameters
    ----------
    log_density : callable
        x → the logarithm of the target density, up to a constant; −inf where x is impossible.
    propose : callable, optional
        ``propose(x, generator)`` → a point, drawn from a symmetric proposal, or a pair of a point y and
        log q(x | y) − log q(y | x). Default: x plus normal noise.
    scale : float or array, default=1.0
        Standard deviation of the noise of the default proposal, for each coordinate.

    References
    ----------
    .. [Hastings1970] W. K. Hastings. Monte Carlo sampling methods using Markov chains and their applications.
       Biometrika 57, 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import Metropolis, run_chain
    >>> walk = Metropolis(lambda x: -0.5 * float(x @ x), scale=2.0)     # a standard normal density
    >>> chain = run_chain(walk, np.zeros(1), 5000, burn_in=100, random_state=0)
    >>> bool(abs(chain.samples.std() - 1.0) < 0.1), 0.3 < chain.acceptance < 0.7
    (True, True)
    """

    def __init__(
        self,
        log_density: Callable[[Any], float],
        propose: Callable[[Any, np.random.Generator], Any] | None = None,
        *,
        scale: Any = 1.0,
    ) -> None:
        if not callable(log_density):
            raise TypeError(f"log_density must be callable, got {type(log_density).__name__}")
        if propose is not None and not callable(propose):
            raise TypeError(f"propose must be callable, got {type(propose).__name__}")
        self.log_density, self.propose = log_density, propose
        self.scale = np.asarray(scale, dtype=float)
        if not np.isfinite(self.scale).all() or not (self.scale > 0).all():
            raise ValueError(f"scale must be positive, got {scale!r}")

    def target(self, x: Any) -> float:
        """Return the log-density at x."""
        return self.log_density(x)

    def step(self, state: ChainState, random: np.random.Generator) -> ChainState:
        """Return the proposed state, or the old one."""
        y, ratio = self._proposed(state.x, random)
        value = _density(self.target, y)
        if np.isnan(ratio):
            raise ValueError("propose gave log_ratio = NaN")
        accepted = bool(np.log(random.random()) < value - state.log_density + ratio)
        x, value = (y, value) if accepted else (state.x, state.log_density)
        return ChainState(x, value, state.n_accepted + accepted, state.n_proposed + 1)

    def _proposed(self, x: Any, random: np.random.Generator) -> tuple[Any, float]:
        if self.propose is None:
            at = np.asarray(x, dtype=float)
            return at + self.scale * random.standard_normal(at.shape), 0.0
        proposal = self.propose(x, random)
        if isinstance(proposal, tuple) and len(proposal) == 2:
            return proposal[0], float(proposal[1])
        return proposal, 0.0


class Cycle(TransitionKernel):
    """Apply all kernels in turn in every step; they must have the same target, which stays invariant.

    Parameters
    ----------
    kernels : sequence of TransitionKernel
    """

    def __init__(self, kernels: Sequence[TransitionKernel]) -> None:
        self.kernels = _checked(kernels)

    def target(self, x: Any) -> float:
        """Return the log-density at x, of the first kernel."""
        return self.kernels[0].target(x)

    def step(self, state: ChainState, random: np.random.Generator) -> ChainState:
        """Return the state after a step of every kernel."""
        for kernel in self.kernels:
            state = kernel.step(state, random)
        return state


class MixedKernel(TransitionKernel):
    """Apply a random kernel in every step: random scan instead of a cycle.

    Parameters
    ----------
    kernels : sequence of TransitionKernel
        Kernels with the same target.
    weights : sequence of float, optional
        Probabilities of the kernels; default: equal.
    """

    def __init__(self, kernels: Sequence[TransitionKernel], weights: Sequence[float] | None = None) -> None:
        self.kernels = _checked(kernels)
        n = len(self.kernels)
        self.weights = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float)
        if self.weights.shape != (n,) or not (self.weights >= 0).all() or not np.isclose(self.weights.sum(), 1.0):
            raise ValueError(f"weights must hold {n} probabilities that sum to 1")

    def target(self, x: Any) -> float:
        """Return the log-density at x, of the first kernel."""
        return self.kernels[0].target(x)

    def step(self, state: ChainState, random: np.random.Generator) -> ChainState:
        """Return the state after a step of the kernel drawn."""
        return self.kernels[int(random.choice(len(self.kernels), p=self.weights))].step(state, random)


@dataclass(frozen=True)
class MarkovChain:
    """The result of :func:`run_chain`.

    Attributes
    ----------
    samples : array of shape (n_samples, …), or list where points are no arrays of one shape
    log_density : array of shape (n_samples,)
    acceptance : float
        Share of the proposals that were accepted; NaN for kernels that propose nothing.
    effective_sample_size : float
        Effective sample size of the log-density; NaN if it never changes.
    state : ChainState
        The last state: another run can continue from ``state.x``.
    """

    samples: Any
    log_density: np.ndarray
    acceptance: float
    effective_sample_size: float
    state: ChainState


def run_chain(
    kernel: TransitionKernel,
    start: Any,
    n_samples: int = 1000,
    *,
    burn_in: int = 0,
    thin: int = 1,
    random_state: Any = None,
) -> MarkovChain:
    """Run a Markov chain and return its samples.

    Parameters
    ----------
    kernel : TransitionKernel
    start : object
        The first point; the target must be positive there.
    n_samples : int, default=1000
    burn_in : int, default=0
        Steps before the first sample.
    thin : int, default=1
        Steps from one sample to the next.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    chain : MarkovChain
    """
    if not isinstance(kernel, TransitionKernel):
        raise TypeError(f"kernel must be a TransitionKernel, got {type(kernel).__name__}")
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_count(name, value, least)
    random = np.random.default_rng(random_state)
    state = kernel.init(start)
    points, values = [], np.empty(n_samples)
    for _ in range(burn_in):
        state = kernel.step(state, random)
    for k in range(n_samples):
        for _ in range(thin):
            state = kernel.step(state, random)
        points.append(np.copy(state.x) if isinstance(state.x, np.ndarray) else state.x)
        values[k] = state.log_density
    acceptance = state.n_accepted / state.n_proposed if state.n_proposed else float("nan")
    return MarkovChain(_stacked(points), values, acceptance, float(effective_sample_size(values[None])), state)


def _stacked(points: list[Any]) -> Any:
    if all(isinstance(p, (int, float, np.generic)) for p in points):
        return np.array(points)
    shaped = all(isinstance(p, np.ndarray) for p in points) and len({p.shape for p in points}) == 1
    return np.stack(points) if shaped else points


def _density(target: Callable[[Any], float], x: Any) -> float:
    value = float(target(x))
    if np.isnan(value) or np.isposinf(value):
        raise ValueError(f"the target gave {value}: a log-density must be a number, or −inf where x is impossible")
    return value


def _checked(kernels: Sequence[TransitionKernel]) -> list[TransitionKernel]:
    listed = list(kernels)
    if not listed:
        raise ValueError("kernels must hold one kernel or more")
    for kernel in listed:
        if not isinstance(kernel, TransitionKernel):
            raise TypeError(f"kernels must be TransitionKernels, got {type(kernel).__name__}")
    return listed
