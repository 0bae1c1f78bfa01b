"""Decoding of pairwise models as a linear program over the local polytope.

    max Σ_a ⟨θ_a, μ_a⟩ + Σ_ab ⟨θ_ab, μ_ab⟩
    over μ ≥ 0,  Σ_k μ_a(k) = 1,  Σ_l μ_ab(k, l) = μ_a(k),  Σ_k μ_ab(k, l) = μ_b(l)

The value bounds the best score from above. On trees the solution is integral: the best labelling itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.inference.graph import FactorGraph
from mercer.inference.relaxation import local_polytope


class LPSolution(NamedTuple):
    """The solution of the linear program.

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
    """Decode a pairwise model on any graph by linear programming.

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
    graph = FactorGraph(np.full(n, K), unary=nodes, log=True)
    if len(ends):
        graph.add_factors(ends, pairs, log=True)
    mu, mu_pairs, value = local_polytope(graph.compiled)
    integral = bool((np.minimum(mu, 1 - mu) < 1e-6).all() and (np.minimum(mu_pairs, 1 - mu_pairs) < 1e-6).all())
    mu = mu.reshape(n, K)
    return LPSolution(value, mu.argmax(axis=1), mu, mu_pairs.reshape(-1, K, K), integral)
