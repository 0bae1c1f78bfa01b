"""Quadratic programs over a simplex, for bundle methods and for mixtures of labellings (`proportions.convex`).

    max ⟨b, a⟩ − ½ aᵀ G a   over   a ≥ 0, Σ a = total

by an active-set method that starts from the last solution. Between two calls one plane is added, or the curvature
changes a little, so a few steps on a small face are enough.
"""

from __future__ import annotations

import numpy as np


def simplex_qp(G: np.ndarray, b: np.ndarray, total: float = 1.0, start: np.ndarray | None = None) -> np.ndarray:
    """Return the maximiser, always feasible and optimal up to rounding.

    Parameters
    ----------
    G : array of shape (m, m), positive semi-definite
    b : array of shape (m,)
    total : float
    start : array of at most m numbers, optional
        Start: a point with the right sum, or a part of one.

    Examples
    --------
    >>> import numpy as np
    >>> simplex_qp(np.eye(3), np.array([1.0, 1.0, -5.0]))
    array([0.5, 0.5, 0. ])
    """
    m = len(b)
    a = np.zeros(m)
    if start is not None and len(start) and start.sum() > 0:
        a[: len(start)] = np.maximum(start, 0.0)
        a *= total / a.sum()
    else:
        a[int(np.argmax(b - 0.5 * total * np.diagonal(G)))] = total
    ridge = max(1e-13 * float(np.trace(G)) / m, 1e-200)
    gradient = b - G @ a
    free = a > 0
    for _ in range(50 * m + 50):
        face = np.flatnonzero(free)
        target, price = _on_face(G, b, face, total, ridge)
        step = target - a[face]
        shrinking = step < 0
        # As far as the first multiplier that would become negative.
        room = np.where(shrinking, a[face] / np.where(shrinking, -step, 1.0), np.inf)
        length = float(room.min(initial=np.inf))
        if length < 1.0:
            a[face] = np.maximum(a[face] + length * step, 0.0)
            blocked = face[int(np.argmin(room))]
            a[blocked] = 0.0
            free[blocked] = False
            if not free.any():  # rounding took the last one: begin again from the best corner
                blocked = int(np.argmax(gradient))
                a[blocked], free[blocked] = total, True
            continue
        a[face] = target
        gradient = b - G @ a
        outside = np.where(free, -np.inf, gradient)
        best = int(np.argmax(outside))
        if outside[best] <= price + 1e-12 * max(1.0, abs(price), float(np.abs(b).max(initial=0.0))):
            break
        free[best] = True
    return a * (total / a.sum())


def _on_face(G: np.ndarray, b: np.ndarray, face: np.ndarray, total: float, ridge: float) -> tuple[np.ndarray, float]:
    """The maximiser over the affine hull of a face, and the multiplier of the sum."""
    k = len(face)
    system = np.empty((k + 1, k + 1))
    system[:k, :k] = G if k == len(G) else G[face][:, face]
    system.flat[: k * (k + 1) : k + 2] += ridge
    scale = max(1.0, float(np.abs(system[:k, :k]).max()))
    system[k, :k] = system[:k, k] = scale  # keeps the rows of one size
    system[k, k] = 0.0
    right = np.append(b[face], total * scale)
    try:
        solution = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return solution[:k], float(solution[k] * scale)
