"""Ranking losses by their definitions: all pairs, all rankings, all labellings. Slow and obviously right."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np


def pair_loss(s, y, groups=None, squared=False):
    """Σ over pairs of a group with y_i > y_j of the (squared) hinge, and its gradient."""
    groups = np.zeros(len(s)) if groups is None else groups
    value, gradient = 0.0, np.zeros(len(s))
    for i, j in product(range(len(s)), repeat=2):
        if groups[i] == groups[j] and y[i] > y[j]:
            hinge = max(0.0, 1.0 - (s[i] - s[j]))
            value += hinge**2 if squared else hinge
            slope = (2 * hinge if squared else 1.0) if hinge > 0 else 0.0
            gradient[i] -= slope
            gradient[j] += slope
    return value, gradient


def pairwise_error(y, s, groups=None):
    """Share of pairs in the wrong order, ties half."""
    groups = np.zeros(len(s)) if groups is None else groups
    wrong = total = 0.0
    for i, j in product(range(len(s)), repeat=2):
        if groups[i] == groups[j] and y[i] > y[j]:
            total += 1
            wrong += 1.0 if s[i] < s[j] else 0.5 if s[i] == s[j] else 0.0
    return wrong / total


def average_precision(ranking, y):
    """Mean over relevant examples of the precision at their places."""
    hits, total = 0, 0.0
    for place, i in enumerate(ranking, 1):
        if y[i]:
            hits += 1
            total += hits / place
    return total / hits


def swapped_share(ranking, y):
    """Share of (relevant, other) pairs in the wrong order."""
    place = {i: k for k, i in enumerate(ranking)}
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] and not y[j]]
    return sum(place[i] > place[j] for i, j in pairs) / len(pairs)


def interleavings(s, y):
    """Rankings in which the relevant examples, and the others, are sorted by score."""
    relevant = sorted((i for i in range(len(y)) if y[i]), key=lambda i: -s[i])
    other = sorted((i for i in range(len(y)) if not y[i]), key=lambda i: -s[i])
    for places in combinations(range(len(y)), len(relevant)):
        a, b = iter(relevant), iter(other)
        yield [next(a) if k in places else next(b) for k in range(len(y))]


def ranking_loss(s, y, measure, rankings=None):
    """max over rankings of Δ − Σ over swapped pairs of (s_i − s_j) / (P N), and the gradients of all maximisers."""
    rankings = permutations(range(len(y))) if rankings is None else rankings
    P = int(np.sum(y))
    N = len(y) - P
    best, slopes = -np.inf, []
    for ranking in rankings:
        cost = swapped_share(ranking, y) if measure == "roc-area" else 1.0 - average_precision(ranking, y)
        slope, others = np.zeros(len(y)), []
        for i in ranking:
            if not y[i]:
                others.append(i)
            else:
                for j in others:
                    slope[i] -= 1.0 / (P * N)
                    slope[j] += 1.0 / (P * N)
        best, slopes = _better(best, slopes, cost + slope @ s, slope)
    return best, slopes


def f1_loss(s, y):
    """max over all 2^n labellings of 1 − F1 − Σ over flipped labels of ±s_i / 2P, and all maximisers' gradients."""
    n = len(y)
    best, slopes = -np.inf, []
    for labels in product([0, 1], repeat=n):
        r = np.array(labels)
        both, size = int((r * y).sum()), int(r.sum() + np.sum(y))
        cost = 1.0 - (2 * both / size if size else 1.0)
        slope = (r - np.asarray(y)) / (2 * max(1, int(np.sum(y))))
        best, slopes = _better(best, slopes, cost + slope @ s, slope)
    return best, slopes


def _better(best, slopes, value, slope):
    if value > best + 1e-12:
        return value, [slope]
    return (best, [*slopes, slope]) if value > best - 1e-12 else (best, slopes)


def label_ranking_loss(F, parts):
    """Σ_i |A(y_i)|⁻¹ Σ_G max(0, max over (u, v) in G of 1 − (f_u − f_v)); parts[i] is a list of lists of edges."""
    total = 0.0
    for f, graphs in zip(F, parts, strict=True):
        for graph in graphs:
            total += max(0.0, *(1.0 - (f[u] - f[v]) for u, v in graph)) / len(graphs)
    return total


def optimum_of_planes(groups, C, dimension):
    """min ½‖w‖² + C Σ over groups of max over its planes (a, b) of b + ⟨a, w⟩, as a quadratic program over (w, ξ)."""
    from scipy.optimize import minimize

    n = len(groups)
    rows = [(a, b, k) for k, planes in enumerate(groups) for a, b in planes]
    A = np.array([np.concatenate([-np.asarray(a), np.eye(n)[k]]) for a, b, k in rows])
    b = np.array([b for _, b, _ in rows])
    result = minimize(
        lambda z: 0.5 * z[:dimension] @ z[:dimension] + C * z[dimension:].sum(),
        np.zeros(dimension + n),
        jac=lambda z: np.concatenate([z[:dimension], np.full(n, C)]),
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 1000},
    )
    assert result.success, result.message
    return float(result.fun), result.x[:dimension]


def planes(X, y, measure):
    """All planes (a, b) of a group's loss: one for each ranking or labelling (with a constant feature for f1)."""
    n, P = len(y), int(np.sum(y))
    found = [(np.zeros(X.shape[1]), 0.0)]
    if measure == "f1":
        for labels in product([0, 1], repeat=n):
            r = np.array(labels)
            size = int(r.sum()) + P
            found.append(((r - y) / (2 * max(1, P)) @ X, 1.0 - (2 * int((r * y).sum()) / size if size else 1.0)))
        return found
    for ranking in permutations(range(n)):
        slope, others = np.zeros(n), []
        for i in ranking:
            if y[i]:
                slope[i] -= len(others) / (P * (n - P))
                slope[others] += 1.0 / (P * (n - P))
            else:
                others.append(i)
        cost = swapped_share(ranking, y) if measure == "roc-area" else 1.0 - average_precision(ranking, y)
        found.append((slope @ X, cost))
    return found
