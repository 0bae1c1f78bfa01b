"""Dense linear algebra, each routine once.

    pivoted_cholesky      by single columns: kernels.pivoted_cholesky, kernel_methods.IncompleteCholesky, hard margins,
                          low_rank_factor
    pivoted_cholesky_of   of a whole matrix, by LAPACK: coordinates of proportions
    low_rank_factor       relative margins, permutation tests: only if the rank is low
    conjugate_gradients   Newton directions of the mean map, circulant codes with fewer outputs than inputs
    asymmetry             matrices from users: kernels, kernel_methods, classification

K ≈ L Lᵀ: the next pivot is the object with the largest residual K_ii − Σ_c L_ic², and its column

    L_ic = (K_ip − Σ_{d<c} L_id L_pd) / √residual_p

is Gram-Schmidt in feature space. A matrix of rank r is exact after r pivots, from n r of its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

__all__ = ["asymmetry", "conjugate_gradients", "low_rank_factor", "pivoted_cholesky", "pivoted_cholesky_of"]

_TILE = 256
_FLAT = 1e-14  # curvature, relative to the largest met, that counts as none


# ---------------------------------------------------------------------------------------------------- Cholesky


def pivoted_cholesky(
    diagonal: np.ndarray,
    column: Callable[[int], np.ndarray],
    most: int,
    enough: Callable[[float, float], bool],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows L, the pivots, and the sum of the residuals before each pivot and after the last one.

    Stop after ``most`` pivots, when the largest residual and their sum are ``enough``, or when none is positive.
    """
    n = len(diagonal)
    left = np.maximum(np.asarray(diagonal, np.float64), 0.0)
    most = min(most, n)
    rows = np.empty((min(most, 64), n))
    pivots: list[int] = []
    sums = [float(left.sum())]
    while len(pivots) < most:
        pivot = int(np.argmax(left))
        if left[pivot] <= 0 or enough(float(left[pivot]), sums[-1]):
            break
        if len(pivots) == len(rows):
            rows = np.concatenate([rows, np.empty((min(most, 2 * len(rows)) - len(rows), n))])
        done = rows[: len(pivots)]
        new = (column(pivot) - done[:, pivot] @ done) / np.sqrt(left[pivot])
        new[pivots] = 0.0  # they are met exactly; what is there is rounding
        new[pivot] = np.sqrt(left[pivot])
        rows[len(pivots)] = new
        left = np.maximum(left - new**2, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
        sums.append(float(left.sum()))
    return np.ascontiguousarray(rows[: len(pivots)].T), np.array(pivots, np.int64), np.array(sums)


def pivoted_cholesky_of(K: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows L and the pivots of a whole matrix, until no residual is above ``least``."""
    L, pivots, rank, _ = dpstrf(K, tol=least, lower=1)
    order = pivots - 1
    rows = np.empty((len(K), rank))
    rows[order] = np.tril(L[:, :rank])
    return rows, order[:rank]


def low_rank_factor(K: np.ndarray, most: int, enough: Callable[[float, float], bool]) -> np.ndarray | None:
    """L with L Lᵀ = K until the largest residual and their sum are ``enough``; None if ``most`` columns are too few."""
    L = pivoted_cholesky(np.diag(K), lambda p: K[p], most + 1, enough)[0]
    return L if L.shape[1] <= most else None


# ---------------------------------------------------------------------------------------------------- linear systems


def conjugate_gradients(
    product: Callable[[Any], Any],
    right: Any,
    tol: float,
    most: int | None = None,
    *,
    precondition: Callable[[Any], Any] | None = None,
    stepped: Callable[[float], None] | None = None,
) -> Any:
    """Solve a positive semi-definite system from the start 0, to a residual of ``tol`` times the right-hand side.

    Stop earlier after ``most`` steps (default: 20 plus twice the number of unknowns), or where the curvature along a
    direction vanishes. ``right`` and the result of ``product`` are arrays of NumPy or of another library of the array
    API. ``precondition`` solves a similar system. After each step, ``stepped`` is called with the step length along the
    last argument of ``product``. A caller that keeps intermediate results of ``product`` can so update them to the
    solution.
    """
    solution, rest = 0.0 * right, right
    size = float((rest * rest).sum())
    towards, slope = rest, size
    if precondition is not None:
        towards = precondition(rest)
        slope = float((rest * towards).sum())
    direction = towards
    enough, largest = tol**2 * size, 0.0
    for _ in range(2 * len(right) + 20 if most is None else most):
        if size <= enough:
            break
        image = product(direction)
        curve, square = float((direction * image).sum()), float((direction * direction).sum())
        largest = max(largest, curve / square)
        if curve <= _FLAT * largest * square:
            break
        solution = solution + (slope / curve) * direction
        rest = rest - (slope / curve) * image
        if stepped is not None:
            stepped(slope / curve)
        size = float((rest * rest).sum())
        if precondition is None:
            towards, before, slope = rest, slope, size
        elif size <= enough:
            break
        else:
            towards, before = precondition(rest), slope
            slope = float((rest * towards).sum())
        direction = towards + (slope / before) * direction
    return solution


# ---------------------------------------------------------------------------------------------------- symmetry


def asymmetry(K: np.ndarray) -> tuple[float, int, int]:
    """Return the largest |K_ij − K_ji| of a square matrix with its i < j, by tiles: transposed access is slow."""
    largest, where = 0.0, (0, 0)
    for i in range(0, len(K), _TILE):
        for j in range(0, i + 1, _TILE):
            apart = np.abs(K[i : i + _TILE, j : j + _TILE] - K[j : j + _TILE, i : i + _TILE].T)
            if (here := float(apart.max())) > largest:
                r, c = divmod(int(apart.argmax()), apart.shape[1])
                largest, where = here, (min(i + r, j + c), max(i + r, j + c))
    return largest, *where
