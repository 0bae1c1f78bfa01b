"""Decoding of pairwise models as a linear program over the local polytope (spec 000 S39).

    max Σ_a ⟨θ_a, μ_a⟩ + Σ_ab ⟨θ_ab, μ_ab⟩
    over μ ≥ 0,  Σ_k μ_a(k) = 1,  Σ_l μ_ab(k, l) = μ_a(k),  Σ_k μ_ab(k, l) = μ_b(l)

The value bounds the best score from above. On trees the solution is integral: the best labelling itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array


class LPSolution(NamedTuple):
    """What the linear program found.

    Attributes
    ----------
    value : float
        An upper bound of the best score; the best score where ``integral``.
    labels : int array of shape (n_nodes,)
        The label with the most weight at each node.
    nodes : array of shape (n_nodes, n_labels)
    edges : array of shape (n_edges, n_labels, n_labels)
    integral : bool
        Whether all weights are 0 or 1.
    """

    value: float
    labels: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray
    integral: bool


def lp_inference(node_scores: np.ndarray, edge_scores: np.ndarray, edges: Sequence[tuple[int, int]]) -> LPSolution:
    """Decodes a pairwise model on any graph by linear programming.

    Parameters
    ----------
    node_scores : array of shape (n_nodes, n_labels)
    edge_scores : array of shape (n_edges, n_labels, n_labels)
        Scores of (label of the first node, label of the second).
    edges : sequence of (a, b)

    Examples
    --------
    >>> import numpy as np
    >>> found = lp_inference(np.array([[1.0, 0.0], [0.0, 0.2]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), [(0, 1)])
    >>> found.labels, round(found.value, 6), found.integral
    (array([0, 0]), 2.0, True)
    """
    from scipy.optimize import linprog

    nodes, pairs = np.asarray(node_scores, dtype=float), np.asarray(edge_scores, dtype=float)
    if nodes.ndim != 2 or not nodes.size:
        raise ValueError(f"node_scores must have shape (n_nodes, n_labels), got {nodes.shape}")
    n, K = nodes.shape
    ends = np.asarray(edges, dtype=int).reshape(-1, 2)
    if pairs.shape != (len(ends), K, K):
        raise ValueError(f"edge_scores must have shape ({len(ends)}, {K}, {K}), got {pairs.shape}")
    if not np.isfinite(nodes).all() or not np.isfinite(pairs).all():
        raise ValueError("scores must be finite")
    if len(ends) and (ends.min() < 0 or ends.max() >= n or (ends[:, 0] == ends[:, 1]).any()):
        raise ValueError(f"an edge must join two different nodes between 0 and {n - 1}")
    matrix, right = _constraints(n, K, ends)
    scores = np.concatenate([nodes.ravel(), pairs.ravel()])
    found = linprog(-scores, A_eq=matrix, b_eq=right, bounds=(0, 1), method="highs")
    if found.status != 0:
        raise ValueError(f"the linear program was not solved: {found.message}")
    mu, mu_pairs = found.x[: n * K].reshape(n, K), found.x[n * K :].reshape(-1, K, K)
    integral = bool((np.minimum(found.x, 1 - found.x) < 1e-6).all())
    return LPSolution(float(-found.fun), mu.argmax(axis=1), mu, mu_pairs, integral)


def _constraints(n: int, K: int, ends: np.ndarray) -> tuple[coo_array, np.ndarray]:
    """Normalised nodes, and edges consistent with both of their ends."""
    rows = [np.repeat(np.arange(n), K)]
    columns, values = [np.arange(n * K)], [np.ones(n * K)]
    row = n
    for e, pair in enumerate(ends):
        block = n * K + e * K * K + np.arange(K * K).reshape(K, K)
        for side, node in enumerate(pair):
            for k in range(K):
                summed = block[k] if side == 0 else block[:, k]
                rows.append(np.full(K + 1, row))
                columns.append(np.append(summed, node * K + k))
                values.append(np.append(np.ones(K), -1.0))
                row += 1
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
                       shape=(row, n * K + len(ends) * K * K))  # fmt: skip
    return matrix, np.concatenate([np.ones(n), np.zeros(row - n)])
