"""Gaussian graphical models: normal vectors whose precision matrix defines the graph.

    p(x) ∝ exp(−½ xᵀ J x + hᵀ x),   mean J⁻¹ h,   covariance J⁻¹

J_ij = 0 means that x_i and x_j are independent given all others: the graph has no such edge. Inference is exact, by one
Cholesky factorisation. Conditioning on evidence selects rows and columns:

    p(x_a | x_b):   J_aa,   h_a − J_ab x_b.

Gibbs sampling draws x_i from N((h_i − Σ_{j≠i} J_ij x_j) / J_ii, 1 / J_ii).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from mercer._validation import check_choice, check_count
from mercer.inference.transitions import ChainState, TransitionKernel

__all__ = ["GaussianGibbs", "GaussianNetwork"]


class GaussianNetwork:
    """A normal distribution over variables with a graph: exact marginals, conditionals and samples.

    Parameters
    ----------
    precision : array of shape (n, n)
        J: symmetric and positive definite.
    potential : array of shape (n,), optional
        h; default: 0, a mean of 0.

    Attributes
    ----------
    mean, covariance : arrays of shape (n,) and (n, n)
    edges : array of shape (n_edges, 2)
        Pairs i < j with J_ij ≠ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import GaussianNetwork
    >>> chain = GaussianNetwork([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]], [1.0, 0.0, 0.0])
    >>> chain.edges.tolist()
    [[0, 1], [1, 2]]
    >>> chain.mean
    array([0.75, 0.5 , 0.25])
    >>> chain.given({1: 2.0}).mean          # of variables 0 and 2, which are independent now
    array([1.5, 1. ])
    """

    def __init__(self, precision: Any, potential: Any = None) -> None:
        J = _real("precision", precision)
        if J.ndim != 2 or J.shape[0] != J.shape[1] or not len(J):
            raise ValueError(f"precision must be a square matrix, got shape {J.shape}")
        if not np.isfinite(J).all():
            raise ValueError("precision must be finite")
        if not _symmetric(J):
            raise ValueError("precision must be symmetric")
        self.precision = 0.5 * (J + J.T)
        h = np.zeros(len(J)) if potential is None else _real("potential", potential)
        if h.shape != (len(J),) or not np.isfinite(h).all():
            raise ValueError(f"potential must hold {len(J)} finite numbers, got shape {h.shape}")
        self.potential = h
        try:
            self._root = cho_factor(self.precision, lower=True)
        except LinAlgError:
            raise ValueError("precision must be positive definite: the density cannot be normalised") from None
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean = cho_solve(self._root, h)
        if not np.isfinite(self.mean).all():
            raise ValueError("the mean is beyond the largest number: precision is too small beside potential")

    @classmethod
    def from_moments(cls, mean: Any, covariance: Any) -> GaussianNetwork:
        """Return the model with this mean and covariance; precision entries that are 0 up to rounding become 0."""
        S = _real("covariance", covariance)
        if not np.isfinite(S).all():
            raise ValueError("covariance must be finite")
        if S.ndim != 2 or S.shape[0] != S.shape[1] or not _symmetric(S):
            raise ValueError(f"covariance must be a symmetric matrix, got shape {S.shape}")
        try:
            root = cho_factor(S, lower=True)
        except LinAlgError:
            raise ValueError("covariance must be positive definite") from None
        J = cho_solve(root, np.eye(len(S)))
        scale = np.sqrt(np.diagonal(J))
        J[np.abs(J) < 1e-12 * np.outer(scale, scale)] = 0.0
        m = _real("mean", mean)
        if m.shape != (len(S),) or not np.isfinite(m).all():
            raise ValueError(f"mean must hold {len(S)} finite numbers, got shape {m.shape}")
        J = 0.5 * (J + J.T)
        return cls(J, J @ m)

    @classmethod
    def from_edges(cls, diagonal: Any, edges: Any, weights: Any, potential: Any = None) -> GaussianNetwork:
        """Return the model whose precision has this diagonal and ``weights`` at the pairs ``edges``."""
        d, e, w = _real("diagonal", diagonal), np.asarray(edges), _real("weights", weights)
        if d.ndim != 1:
            raise ValueError(f"diagonal must hold a number for each variable, got shape {d.shape}")
        e = e.reshape(0, 2).astype(int) if not e.size else e
        if e.ndim != 2 or e.shape[1] != 2 or e.dtype.kind not in "iu" or len(e) != w.size:
            raise ValueError("edges must be pairs of variables, with a weight for each")
        if e.size and (e.min() < 0 or e.max() >= len(d) or (e[:, 0] == e[:, 1]).any()):
            raise ValueError(f"edges must be pairs of different variables among 0 … {len(d) - 1}")
        J = np.diag(d)
        J[e[:, 0], e[:, 1]] = J[e[:, 1], e[:, 0]] = w
        return cls(J, potential)

    @property
    def n_variables(self) -> int:
        """Return the number of variables."""
        return len(self.precision)

    @property
    def covariance(self) -> np.ndarray:
        """Return J⁻¹."""
        return cho_solve(self._root, np.eye(self.n_variables))

    @property
    def edges(self) -> np.ndarray:
        """Return pairs i < j that are dependent given all others."""
        return np.argwhere(np.triu(self.precision, 1) != 0)

    @property
    def log_partition(self) -> float:
        """log ∫ exp(−½ xᵀ J x + hᵀ x) dx."""
        half = float(np.log(np.diagonal(self._root[0])).sum())
        return 0.5 * self.n_variables * float(np.log(2 * np.pi)) - half + 0.5 * float(self.potential @ self.mean)

    def log_density(self, x: Any) -> Any:
        """Return log p(x), of one point or of each row."""
        points = self._points(x)
        value = -0.5 * np.einsum("...i,ij,...j->...", points, self.precision, points) + points @ self.potential
        return value - self.log_partition

    def marginal(self, variables: Iterable[int]) -> GaussianNetwork:
        """Return the marginal distribution of some variables, in the given order."""
        at = self._variables(variables)
        return GaussianNetwork.from_moments(self.mean[at], self.covariance[np.ix_(at, at)])

    def given(self, evidence: Mapping[int, float]) -> GaussianNetwork:
        """Return the conditional distribution of the other variables, in their order, given values of some."""
        at = self._variables(evidence)
        values = np.array([float(evidence[i]) for i in at.tolist()])
        if not np.isfinite(values).all():
            raise ValueError("evidence must be finite")
        rest = np.setdiff1d(np.arange(self.n_variables), at)
        if not len(rest):
            raise ValueError("evidence fixes every variable: nothing is left")
        h = self.potential[rest] - self.precision[np.ix_(rest, at)] @ values
        return GaussianNetwork(self.precision[np.ix_(rest, rest)], h)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Return independent draws, of shape (n_samples, n_variables)."""
        check_count("n_samples", n_samples)
        noise = np.random.default_rng(random_state).standard_normal((self.n_variables, n_samples))
        return self.mean + solve_triangular(self._root[0], noise, lower=True, trans="T").T

    def gibbs(self, scan: str = "systematic") -> GaussianGibbs:
        """Return a Gibbs kernel for :func:`run_chain`."""
        return GaussianGibbs(self, scan)

    def _points(self, x: Any) -> np.ndarray:
        points = _real("x", x)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_variables:
            raise ValueError(f"x must hold {self.n_variables} numbers for each point, got shape {points.shape}")
        if not np.isfinite(points).all():
            raise ValueError("x must be finite")
        return points

    def _variables(self, variables: Iterable[int]) -> np.ndarray:
        given = np.array(list(variables))
        if given.dtype.kind not in "iu" and given.size:
            raise ValueError(f"variables must be integers, got {given.tolist()}")
        at = given.astype(np.int64).ravel()
        if not len(at) or len(np.unique(at)) < len(at) or at.min() < 0 or at.max() >= self.n_variables:
            raise ValueError(f"variables must be different numbers among 0 … {self.n_variables - 1}, got {at.tolist()}")
        return at

    def __repr__(self) -> str:
        return f"GaussianNetwork({self.n_variables} variables, {len(self.edges)} edges)"


def _real(name: str, values: Any) -> np.ndarray:
    """The values as an array of floats; complex ones and what is no number are refused."""
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, found {array.dtype}")
    return array.astype(float)


def _symmetric(matrix: np.ndarray) -> bool:
    """Whether entries differ from their mirror images by rounding only, in the units of their variables."""
    scale = np.sqrt(np.abs(np.diagonal(matrix)))
    return bool((np.abs(matrix - matrix.T) <= 1e-8 * np.abs(matrix) + 1e-10 * np.outer(scale, scale)).all())


class GaussianGibbs(TransitionKernel):
    """Gibbs sampling of a :class:`GaussianNetwork`: every step draws each variable once.

    Parameters
    ----------
    model : GaussianNetwork
    scan : {"systematic", "random"}, default="systematic"
        Variables in order, or the same number of draws of random variables.
    """

    def __init__(self, model: GaussianNetwork, scan: str = "systematic") -> None:
        if not isinstance(model, GaussianNetwork):
            raise TypeError(f"model must be a GaussianNetwork, got {type(model).__name__}")
        self.model, self.scan = model, check_choice("scan", scan, ("systematic", "random"))

    def target(self, x: Any) -> float:
        """Return log p(x)."""
        return float(self.model.log_density(x))

    def step(self, state: ChainState, random: np.random.Generator) -> ChainState:
        """Return the state after one draw per variable."""
        J, h, n = self.model.precision, self.model.potential, self.model.n_variables
        x = np.array(state.x, dtype=float)
        order = np.arange(n) if self.scan == "systematic" else random.integers(n, size=n)
        noise = random.standard_normal(n)
        for i, z in zip(order.tolist(), noise.tolist(), strict=True):
            rest = h[i] - J[i] @ x + J[i, i] * x[i]
            x[i] = rest / J[i, i] + z / np.sqrt(J[i, i])
        return ChainState(x, self.target(x), state.n_accepted, state.n_proposed)
