"""Sums over permutations of Gram matrices, by the cheapest of several exact methods.

T(π) = ⟨K, P L Pᵀ⟩ = Σ_ij K_ij L_π(i)π(j)
     = ‖Aᵀ P B‖²          where K = A Aᵀ and L = B Bᵀ have low rank: 2 n r s operations, in one matrix product
q(S) = Sᵀ K S             for 0/1 vectors S: a triangular product, half of a full one

The factors come from a pivoted Cholesky decomposition that stops when the rest of the trace is rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dtrmm

from mercer import _core, _linalg

__all__: list[str] = []

RESIDUAL = 1e-13  # of the trace: what a factor may leave out
CHUNK = 1 << 22  # numbers in a block of gathered rows


def centered(K: np.ndarray) -> np.ndarray:
    """H K H, H = I − 11ᵀ/n: the Gram matrix with the mean as the origin of feature space."""
    rows = K.mean(axis=0)
    C = K - rows[None, :]
    C -= rows[:, None]
    C += rows.mean()
    return C


def low_rank_factor(K: np.ndarray, most: int) -> np.ndarray | None:
    """Return A with K = A Aᵀ up to rounding, with at most ``most`` columns; None if more would be needed."""
    enough = RESIDUAL * max(float(K.trace()), 0.0)
    return _linalg.low_rank_factor(K, most, lambda largest, total: total <= enough)


def permutations(n: int, number: int, rng: np.random.Generator, identity: bool = True) -> np.ndarray:
    """Return rows of random permutations of 0 .. n − 1; the first row is the identity."""
    rows = np.tile(np.arange(n, dtype=np.int32), (number + identity, 1))
    rng.permuted(rows[int(identity) :], axis=1, out=rows[int(identity) :])
    return rows


def products(K: np.ndarray, L: np.ndarray, orders: np.ndarray, threads: int) -> np.ndarray:
    """Return T(π) for each row of ``orders``; K and L are symmetric and positive semi-definite."""
    n = len(K)
    # A product of matrices does some 6 multiplications in the time of one entry of the direct sum.
    most = int(np.sqrt(6.0 * n)) + 1
    A = low_rank_factor(K, most)
    B = low_rank_factor(L, most) if A is not None else None
    if A is not None and B is not None:
        return factor_products(A, B, orders)
    out = np.empty(len(orders))
    K, L = np.ascontiguousarray(K, np.float64), np.ascontiguousarray(L, np.float64)
    # In pieces, so that an interrupt is heard.
    step = max(1, (1 << 29) // max(1, n * n) * threads)
    for start, stop in _pieces(len(orders), step):
        _core.kernels.permuted_products(
            K, L, np.ascontiguousarray(orders[start:stop], np.int32), out[start:stop], threads
        )
    return out


def factor_products(A: np.ndarray, B: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return ‖Aᵀ P B‖² for each row of ``orders``, many in one matrix product."""
    n, s = B.shape
    out = np.empty(len(orders))
    transposed = np.ascontiguousarray(A.T)
    for start, stop in _pieces(len(orders), max(1, CHUNK // max(1, n * s))):
        gathered = B[orders[start:stop].T].reshape(n, (stop - start) * s)  # (rows, permutation · column)
        crossed = (transposed @ gathered).reshape(A.shape[1], stop - start, s)
        out[start:stop] = np.einsum("rps,rps->p", crossed, crossed, dtype=np.float64)
    return out


def quadratic_forms(K: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return sᵀ K s for each row s of S; K is symmetric."""
    n = len(K)
    A = low_rank_factor(K, int(np.sqrt(n)) + 1)
    if A is not None:
        return np.square(S @ A).sum(axis=1)
    lower = np.tril(K)
    lower[np.diag_indices(n)] *= 0.5
    out = np.empty(len(S))
    for start, stop in _pieces(len(S), 256):
        rows = S[start:stop]
        # Fortran's view of a C-ordered S is Sᵀ: lower · Sᵀ, the strict triangle and half the diagonal, twice.
        product = dtrmm(1.0, lower.T, rows.T, lower=0, trans_a=1)
        out[start:stop] = 2.0 * np.einsum("ib,ib->b", rows.T, product)
    return out


def moments(K: np.ndarray, L: np.ndarray) -> tuple[float, float]:
    """Return the mean and variance of T(π) over all permutations, for centred K and L."""
    return moments_from_sums(
        len(K),
        (float(np.trace(K)), float(np.vdot(K, K)), float(np.square(K.diagonal()).sum())),
        (float(np.trace(L)), float(np.vdot(L, L)), float(np.square(L.diagonal()).sum())),
    )


def moments_from_sums(n: int, a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float]:
    """Return the mean and variance of T(π) from (Σ K_ii, Σ K_ij², Σ K_ii²) of both centred matrices; n ≥ 4."""
    mean = a[0] * b[0] / (n - 1)
    spread = [(n - 1) * squares - trace**2 for trace, squares, _ in (a, b)]
    peak = [n * (n + 1) * peaks - (n - 1) * (trace**2 + 2 * squares) for trace, squares, peaks in (a, b)]
    variance = 2 * spread[0] * spread[1] / ((n - 1.0) ** 2 * (n + 1) * (n - 2)) + peak[0] * peak[1] / (
        (n + 1.0) * n * (n - 1) * (n - 2) * (n - 3)
    )
    return mean, max(variance, 0.0)


def _pieces(n: int, step: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, step):
        yield start, min(n, start + step)
