"""Emission distributions of hidden states: counts, normal vectors, mixtures of normals.

An emission computes log p(x_t | state), estimates maximum a posteriori parameters from expected counts, and draws
samples. The pseudo-counts `smoothing` are a Dirichlet prior on probabilities. For (co)variances they act as additional
positions with the variance of all data,

    log prior(Σ) = −½ smoothing (log |Σ| + tr Σ⁻¹ Σ_all) + const,

so no variance collapses, and expectation maximisation increases likelihood × prior. A column that is constant over all
data has variance 1 in every state, so it does not affect the states.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from mercer import _em
from mercer._state.saved import Fields, Floats, Saved
from mercer._validation import check_choice, check_count

COVARIANCES = ("diag", "full", "spherical")


class Multinomial(Saved):
    """Features are counts from a distribution of the state; one feature per position is the categorical case."""

    saved = Fields(probabilities=Floats(None, None))

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    def start(
        self, matrix: Any, offsets: np.ndarray, n_states: int, turn: int, random: np.random.Generator
    ) -> np.ndarray | None:
        """Return initial responsibilities, or None after drawing parameters at random."""
        responsibilities = _em.of_counts(matrix, offsets, n_states, turn, random)
        if responsibilities is None:
            total = np.asarray(matrix.sum(axis=0), dtype=float).ravel()
            self.from_counts(_em.random_counts(total, n_states, random))
        return responsibilities

    def maximize(self, matrix: Any, responsibilities: np.ndarray) -> None:
        """Set the maximum a posteriori parameters."""
        self.from_counts(np.asarray(matrix.T @ responsibilities))

    def from_counts(self, counts: np.ndarray) -> None:
        """Set the parameters from expected counts (features, states)."""
        totals = counts.T + self.smoothing
        self.probabilities = totals / totals.sum(axis=1, keepdims=True)

    @staticmethod
    def symbols(matrix: Any) -> np.ndarray | None:
        """Return the single feature of each position, or None if a position has several or none."""
        if not hasattr(matrix, "indptr") or matrix.nnz != matrix.shape[0] or (np.diff(matrix.indptr) != 1).any():
            return None
        return None if (matrix.data != 1).any() else np.ascontiguousarray(matrix.indices, np.int32)

    def log_probabilities(self, matrix: Any) -> np.ndarray:
        """Return log p(x_t | state) for all positions and states, without the multinomial coefficient."""
        impossible = self.probabilities == 0
        logs = np.log(np.where(impossible, 1.0, self.probabilities))
        log_p = np.ascontiguousarray(np.asarray(matrix @ logs.T, dtype=float))
        if impossible.any():
            log_p[np.asarray(matrix @ impossible.T.astype(float)) > 0] = -np.inf
        return log_p

    def gradients(self, matrix: Any, responsibilities: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the gradients of log p with respect to the logits of the probabilities, one row per sequence."""
        if sp.issparse(matrix):
            n, V, read = len(offsets) - 1, self.probabilities.shape[1], matrix.tocoo()
            owner = np.repeat(np.arange(n), np.diff(offsets))
            counts = sp.csr_array((read.data, (owner[read.row] * V + read.col, read.row)), (n * V, matrix.shape[0]))
            used = np.swapaxes((counts @ responsibilities).reshape(n, V, -1), 1, 2)
            return (used - used.sum(axis=2, keepdims=True) * self.probabilities).reshape(n, -1)
        rows = []
        for a, b in pairwise(offsets.tolist()):
            counts = np.asarray(matrix[a:b].T @ responsibilities[a:b], dtype=float).T
            rows.append((counts - counts.sum(axis=1, keepdims=True) * self.probabilities).ravel())
        return np.array(rows).reshape(len(rows), self.probabilities.size)

    def parameters(self) -> np.ndarray:
        """Return the logits, the parameters of `gradients`."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities).ravel()

    def log_prior(self) -> float:
        """Return the log-density of the prior up to a constant."""
        return self.smoothing * float(np.log(self.probabilities[self.probabilities > 0]).sum())

    def draw(self, states: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw one feature for each of the states."""
        cumulated = np.cumsum(self.probabilities, axis=1)
        drawn = (random.random(len(states))[:, None] > cumulated[states]).sum(axis=1)
        return np.minimum(drawn, self.probabilities.shape[1] - 1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all parameters."""
        return {"emission": self.probabilities}

    def restore(self, arrays: dict[str, np.ndarray], n_states: int, n_features: int) -> None:
        """Restore the parameters from the result of `arrays`."""
        self.probabilities = checked(arrays["emission"], (n_states, n_features))
        if (self.probabilities < 0).any() or not np.allclose(self.probabilities.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError("expected probabilities of emission that sum to 1 in each state")


class Mixture(Saved):
    """Vectors from a mixture of normal distributions in each state; one component is the Gaussian case.

    ``weights`` (states, components), ``means`` (states, components, d), ``covariances`` (states, components, …):
    variances for "diag", matrices for "full", single variances for "spherical".
    """

    saved = Fields(weights=Floats(), means=Floats(), covariances=Floats(), pooled=Floats())

    def __init__(self, smoothing: float, covariance: str, n_components: int) -> None:
        self.smoothing = smoothing
        self.covariance = covariance
        self.n_components = n_components
        self._kept: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def prepare(self, matrix: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Compute the variance of all data, towards which the pseudo-counts shrink."""
        self.constant = np.ptp(matrix, axis=0) == 0
        away = matrix - np.average(matrix, axis=0, weights=weights)
        spread = np.where(self.constant, 1.0, np.average(away**2, axis=0, weights=weights))
        if self.covariance == "spherical" and not self.constant.all():
            spread[self.constant] = 0.0
        self.pooled = spread
        if self.covariance == "full":  # of columns that are sums of others, too, the matrix can be inverted
            shares = np.full(len(matrix), 1.0 / len(matrix)) if weights is None else weights / weights.sum()
            self.pooled = (away * shares[:, None]).T @ away
            self.pooled[np.diag_indices(len(spread))] = spread * (1.0 + 1e-6)

    def keep(self, matrix: np.ndarray) -> None:
        """Precompute statistics of the data that all iterations need."""
        self._kept = (matrix, *_moments(matrix, matrix.mean(axis=0)))

    def start(
        self, matrix: np.ndarray, offsets: np.ndarray, n_states: int, turn: int, random: np.random.Generator
    ) -> np.ndarray:
        """Return initial responsibilities; equal means would be a saddle point."""
        return _em.of_vectors(matrix, offsets, n_states, turn, random)

    def split(self, matrix: np.ndarray, responsibilities: np.ndarray, random: np.random.Generator) -> None:
        """Initialise the components of every state by clusters of its positions."""
        M = self.n_components
        if M == 1:
            self._from_shares(matrix, responsibilities[:, :, None])
            return
        points = _em.standardised(matrix)
        shares = np.zeros((*responsibilities.shape, M))
        for s, weights in enumerate(responsibilities.T):
            shares[:, s] = np.eye(M)[_em.clusters(points, M, random, weights + 1e-12)]
        self._from_shares(matrix, responsibilities[:, :, None] * shares)

    def maximize(self, matrix: np.ndarray, responsibilities: np.ndarray) -> None:
        """Set the maximum a posteriori parameters, given the component responsibilities of the current parameters."""
        if self.n_components == 1:
            self._from_shares(matrix, responsibilities[:, :, None])
            return
        logs = self._component_logs(matrix)
        shares = np.exp(logs - logsumexp(logs, axis=2, keepdims=True))
        self._from_shares(matrix, responsibilities[:, :, None] * shares)

    def _from_shares(self, matrix: np.ndarray, shares: np.ndarray) -> None:
        n, S, M = shares.shape
        flat = shares.reshape(n, S * M)
        count = flat.sum(axis=0) + 1e-12
        self.weights = count.reshape(S, M) + self.smoothing
        self.weights /= self.weights.sum(axis=1, keepdims=True)
        extra = self.smoothing
        # Moments about the centre of the data: little is lost to cancellation.
        centre, powers = self._powers(matrix)
        d = matrix.shape[1]
        if self.covariance == "full":
            away = flat.T @ powers[:, d : 2 * d] / count[:, None]
            covariances = np.empty((S * M, d, d))
            for c in range(S * M):
                rest = powers[:, d : 2 * d] - away[c]
                covariances[c] = ((flat[:, c, None] * rest).T @ rest + extra * self.pooled) / (count[c] + extra)
            covariances[:, self.constant, self.constant] = 1.0
            self.means = (away + centre).reshape(S, M, -1)
            self.covariances = covariances.reshape(S, M, d, d)
            return
        sums = flat.T @ powers
        away = sums[:, d : 2 * d] / count[:, None]
        self.means = (away + centre).reshape(S, M, -1)
        second = sums[:, :d] / count[:, None] - away**2
        variances = (count[:, None] * np.maximum(second, 0.0) + extra * self.pooled) / (count[:, None] + extra)
        if self.covariance == "spherical":
            variances = variances.mean(axis=1, keepdims=True)
        else:
            variances[:, self.constant] = 1.0
        self.covariances = variances.reshape(S, M, -1)

    def log_probabilities(self, matrix: np.ndarray) -> np.ndarray:
        """Return log p(x_t | state) for all positions and states."""
        logs = self._component_logs(matrix)
        return np.ascontiguousarray(logs[:, :, 0] if self.n_components == 1 else logsumexp(logs, axis=2))

    def _component_logs(self, matrix: np.ndarray) -> np.ndarray:
        """Return the log of weight × density, (positions, states, components)."""
        S, M, d = self.means.shape
        if self.covariance != "full":
            return self._diagonal_logs(matrix).reshape(len(matrix), S, M)
        squares, spread = self._full_squares(matrix)
        squares *= -0.5
        squares += np.log(self.weights).ravel() - 0.5 * (spread + d * np.log(2 * np.pi))
        return squares.reshape(len(matrix), S, M)

    def _diagonal_logs(self, matrix: np.ndarray) -> np.ndarray:
        """Compute −½ Σ_k (x_k − μ_k)² / σ²_k + const as one product of (x², x, 1) with the parameters."""
        d = self.means.shape[2]
        centre, powers = self._powers(matrix)
        variances = np.broadcast_to(self.covariances, self.means.shape).reshape(-1, d)
        means = self.means.reshape(-1, d) - centre
        peaks = np.log(self.weights).ravel() - 0.5 * (np.log(variances).sum(axis=1) + d * np.log(2 * np.pi))
        rest = peaks - 0.5 * (means**2 / variances).sum(axis=1)
        logs = powers @ np.concatenate([-0.5 / variances.T, (means / variances).T, rest[None]])
        return np.minimum(logs, peaks, out=logs)

    def _powers(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._kept is not None and self._kept[0] is matrix:
            return self._kept[1:]
        return _moments(matrix, self.means.mean(axis=(0, 1)))  # whatever else is asked about, a position has one answer

    def release(self) -> None:
        """Release the data."""
        self._kept = None

    def gradients(self, matrix: np.ndarray, responsibilities: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the gradients of log p by logits of weights, means and (co)variances, one row per sequence.

        Variances are parametrised by their logarithms, covariance matrices by their entries on and above the diagonal.
        """
        S, M, d = self.means.shape
        logs = self._component_logs(matrix)
        shares = responsibilities[:, :, None] * np.exp(logs - logsumexp(logs, axis=2, keepdims=True))
        rows = []
        for a, b in pairwise(offsets.tolist()):
            gamma, x = shares[a:b], matrix[a:b]
            counts = gamma.sum(axis=0)
            away = np.einsum("tsm,tsmd->smd", gamma, x[:, None, None, :] - self.means)
            parts = [counts - counts.sum(axis=1, keepdims=True) * self.weights] if M > 1 else []
            if self.covariance == "full":
                inverse = np.linalg.inv(self.covariances)
                parts.append(np.einsum("smde,sme->smd", inverse, away))
                rest = x[:, None, None, :] - self.means
                scatter = np.einsum("tsm,tsmd,tsme->smde", gamma, rest, rest)
                change = 0.5 * (inverse @ scatter @ inverse - counts[..., None, None] * inverse)
                change = change + np.triu(change, 1)  # an entry beside the diagonal stands in two places
                parts.append(change[:, :, *np.triu_indices(d)])
            else:
                parts.append(away / self.covariances)
                squares = np.einsum("tsm,tsmd->smd", gamma, (x[:, None, None, :] - self.means) ** 2)
                slope = 0.5 * (squares / self.covariances - counts[..., None])
                parts.append(slope.sum(axis=2) if self.covariance == "spherical" else slope)
            rows.append(np.concatenate([part.ravel() for part in parts]))
        inner = {"diag": d, "full": d * (d + 1) // 2, "spherical": 1}[self.covariance]
        return np.array(rows).reshape(len(rows), S * M * (d + inner + (M > 1)))

    def parameters(self) -> np.ndarray:
        """Return the parameters of `gradients`."""
        d = self.means.shape[2]
        spread = self.covariances[:, :, *np.triu_indices(d)] if self.covariance == "full" else np.log(self.covariances)
        logits = [np.log(self.weights)] if self.means.shape[1] > 1 else []
        return np.concatenate([part.ravel() for part in (*logits, self.means, spread)])

    def _full_squares(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d = self.means.shape[2]
        roots = np.linalg.cholesky(self.covariances.reshape(-1, d, d))
        squares = np.empty((len(matrix), len(roots)))
        for c, (root, mean) in enumerate(zip(roots, self.means.reshape(-1, d), strict=True)):
            squares[:, c] = (solve_triangular(root, (matrix - mean).T, lower=True) ** 2).sum(axis=0)
        return squares, 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)

    def log_prior(self) -> float:
        """Return the log-density of the prior up to a constant."""
        value = float(np.log(self.weights).sum()) if self.n_components > 1 else 0.0
        if self.covariance == "full":
            _, spread = np.linalg.slogdet(self.covariances)
            pull = np.trace(np.linalg.solve(self.covariances, self.pooled), axis1=-2, axis2=-1)
            return self.smoothing * (value - 0.5 * float((spread + pull).sum()))
        variances = np.broadcast_to(self.covariances, self.means.shape)
        return self.smoothing * (value - 0.5 * float((np.log(variances) + self.pooled / variances).sum()))

    def draw(self, states: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw a vector for each of the states."""
        d = self.means.shape[2]
        cumulated = np.cumsum(self.weights, axis=1)
        component = np.minimum(
            (random.random(len(states))[:, None] > cumulated[states]).sum(axis=1), self.n_components - 1
        )
        noise = random.standard_normal((len(states), d))
        if self.covariance == "full":
            noise = np.einsum("tij,tj->ti", np.linalg.cholesky(self.covariances)[states, component], noise)
        else:
            noise = noise * np.sqrt(self.covariances[states, component])
        return self.means[states, component] + noise

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all parameters."""
        return {"weights": self.weights, "means": self.means, "covariances": self.covariances, "pooled": self.pooled}

    def restore(self, arrays: dict[str, np.ndarray], n_states: int, n_features: int) -> None:
        """Restore the parameters from the result of `arrays`."""
        check_choice("covariance", self.covariance, COVARIANCES)
        S, M, d = n_states, check_count("n_components", self.n_components), n_features
        inner = {"diag": (d,), "full": (d, d), "spherical": (1,)}[self.covariance]
        self.weights = checked(arrays["weights"], (S, M))
        self.means = checked(arrays["means"], (S, M, d))
        self.covariances = checked(arrays["covariances"], (S, M, *inner))
        self.pooled = checked(arrays["pooled"], (d, d) if self.covariance == "full" else (d,))


def checked(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of parameters after checking that it is finite and has the given shape."""
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"expected a finite array of shape {shape}, found {array.shape}")
    return np.asarray(array, np.float64)


def _moments(matrix: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centre, and the columns (x − centre)², x − centre, 1."""
    away = matrix - centre
    return centre, np.concatenate([away**2, away, np.ones((len(matrix), 1))], axis=1)
