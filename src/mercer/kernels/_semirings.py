"""Semirings of weights, and sums over paths with cycles: E* = I + E + E² + …"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["RINGS", "gather", "solve_part", "strong_parts"]


class Real:
    """(R, +, ×): weights of paths add up."""

    zero, one = 0.0, 1.0

    @staticmethod
    def add(a: float, b: float) -> float:
        return a + b

    @staticmethod
    def times(a: float, b: float) -> float:
        return a * b

    @staticmethod
    def star(M: np.ndarray, states: str) -> np.ndarray:
        """I + M + M² + …"""
        radius = float(np.abs(np.linalg.eigvals(np.abs(M))).max())
        if radius >= 1.0 - 1e-12:
            raise ValueError(
                f"the epsilon cycle through {states} diverges: the spectral radius of its weights is {radius:.6g}, and "
                "must be below 1"
            )
        return np.asarray(np.linalg.inv(np.eye(len(M)) - M))


class Tropical:
    """(R ∪ {∞}, min, +): the lightest path counts."""

    zero, one = math.inf, 0.0

    @staticmethod
    def add(a: float, b: float) -> float:
        return min(a, b)

    @staticmethod
    def times(a: float, b: float) -> float:
        return a + b

    @staticmethod
    def star(M: np.ndarray, states: str) -> np.ndarray:
        """Return the weights of the lightest paths between all states."""
        D = np.minimum(M, np.where(np.eye(len(M), dtype=bool), 0.0, math.inf))
        for k in range(len(D)):
            D = np.minimum(D, D[:, k : k + 1] + D[k : k + 1, :])
        if (np.diag(D) < 0).any():
            raise ValueError(f"the epsilon cycle through {states} diverges: going round it has a negative weight")
        return D


RINGS: dict[str, Any] = {"real": Real, "tropical": Tropical}


def gather(ring: Any, row: dict[Any, float], key: Any, weight: float) -> None:
    row[key] = ring.add(row[key], weight) if key in row else weight


def strong_parts(after: list[dict[int, float]]) -> list[list[int]]:
    """Strongly connected parts, each before those that lead to it (Tarjan's algorithm, with a stack of its own)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    parts: list[list[int]] = []
    for root in range(len(after)):
        if root in index:
            continue
        path = [(root, iter(after[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while path:
            p, targets = path[-1]
            for q in targets:
                if q not in index:
                    index[q] = low[q] = len(index)
                    open_nodes.append(q)
                    is_open.add(q)
                    path.append((q, iter(after[q])))
                    break
                if q in is_open:
                    low[p] = min(low[p], index[q])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[p])
                if low[p] == index[p]:
                    part: list[int] = []
                    while not part or part[-1] != p:
                        part.append(open_nodes.pop())
                        is_open.discard(part[-1])
                    parts.append(part)
    return parts


def solve_part(
    ring: Any, part: list[int], silent: list[dict[int, float]], rows: list[dict[Any, float]], names: list[Any]
) -> None:
    """Rows of E* applied to the arcs, for the states of one part; those of later parts are known."""
    inside = {p: i for i, p in enumerate(part)}
    for p in part:
        for q, w in silent[p].items():
            if q not in inside:
                for key, v in rows[q].items():
                    gather(ring, rows[p], key, ring.times(w, v))
    if len(part) == 1 and part[0] not in silent[part[0]]:
        return
    M = np.full((len(part), len(part)), ring.zero)
    for p in part:
        for q, w in silent[p].items():
            if q in inside:
                M[inside[p], inside[q]] = w
    shown = ", ".join(repr(names[p]) for p in sorted(part)[:5]) + (", …" if len(part) > 5 else "")
    star = ring.star(M, f"state {shown}" if len(part) == 1 else f"states {shown}")
    known = {p: dict(rows[p]) for p in part}
    for p in part:
        rows[p].clear()
        for q in part:
            w = float(star[inside[p], inside[q]])
            if w != ring.zero:
                for key, v in known[q].items():
                    gather(ring, rows[p], key, ring.times(w, v))
