"""Chains by enumeration of every labelling, and (for long ones) by recursions wholly in the log domain."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np


def labellings(length: int, n_labels: int) -> np.ndarray:
    """Every labelling, in lexicographic order, one a row."""
    return np.array(list(itertools.product(range(n_labels), repeat=length)), dtype=int).reshape(
        n_labels**length, length
    )


def score_of(y, nodes, transitions, start, end, edges=None) -> float:
    """The score of one labelling, term by term; the empty one scores 0."""
    if len(y) == 0:
        return 0.0
    total = float(start[y[0]]) + float(end[y[-1]])
    for t, label in enumerate(y):
        total += float(nodes[t][label])
        if t:
            total += float(transitions[y[t - 1]][label])
            if edges is not None:
                total += float(edges[t][y[t - 1]][label])
    return total


def log_sum_exp(x) -> float:
    x = np.asarray(x, dtype=float)
    top = x.max(initial=-np.inf)
    return float(top) if np.isneginf(top) else float(top + np.log(np.exp(x - top).sum()))


class Enumeration:
    """One chain, all of its labellings written out."""

    def __init__(self, nodes, transitions, start, end, edges=None) -> None:
        self.length, self.n_labels = nodes.shape
        self.labellings = labellings(self.length, self.n_labels)
        self.scores = np.array([score_of(y, nodes, transitions, start, end, edges) for y in self.labellings])
        self.log_partition = log_sum_exp(self.scores)
        feasible = np.isfinite(self.log_partition)
        self.probabilities = np.exp(self.scores - self.log_partition) if feasible else np.zeros(len(self.scores))

    def node_marginals(self) -> np.ndarray:
        out = np.zeros((self.length, self.n_labels))
        for y, p in zip(self.labellings, self.probabilities, strict=True):
            for t, label in enumerate(y):
                out[t, label] += p
        return out

    def edge_marginals(self) -> np.ndarray:
        """p(y_{t−1}, y_t) for each t; zeros at t = 0."""
        out = np.zeros((self.length, self.n_labels, self.n_labels))
        for y, p in zip(self.labellings, self.probabilities, strict=True):
            for t in range(1, self.length):
                out[t, y[t - 1], y[t]] += p
        return out

    def entropy(self) -> float:
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    def best(self) -> tuple[np.ndarray, float]:
        return self.labellings[self.scores.argmax()], float(self.scores.max())

    def worst(self) -> tuple[np.ndarray, float]:
        """The worst labelling that is not forbidden."""
        allowed = np.where(np.isneginf(self.scores), np.inf, self.scores)
        return self.labellings[allowed.argmin()], float(allowed.min())

    def k_best_scores(self, k: int) -> np.ndarray:
        """The k highest scores, −inf where there are fewer allowed labellings."""
        found = np.sort(self.scores[~np.isneginf(self.scores)])[::-1][:k]
        return np.concatenate([found, np.full(k - len(found), -np.inf)])


@dataclass
class LogDomain:
    """What the log-domain recursions give."""

    log_partition: float
    nodes: np.ndarray
    edges: np.ndarray
    entropy: float


def log_domain(nodes, transitions, start, end, edges=None) -> LogDomain:
    """Forward-backward with logarithms only, in float64."""
    nodes, transitions, start, end = (np.asarray(x, dtype=float) for x in (nodes, transitions, start, end))
    T, C = nodes.shape
    M = np.broadcast_to(transitions, (T, C, C)) if edges is None else transitions + np.asarray(edges, dtype=float)

    def lse(x: np.ndarray, axis: int) -> np.ndarray:
        top = x.max(axis=axis, keepdims=True)
        top = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            return (top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True))).squeeze(axis)

    alpha, beta = np.empty((T, C)), np.empty((T, C))
    alpha[0] = start + nodes[0]
    for t in range(1, T):
        alpha[t] = lse(alpha[t - 1][:, None] + M[t], 0) + nodes[t]
    beta[-1] = end
    for t in range(T - 1, 0, -1):
        beta[t - 1] = lse(M[t] + (nodes[t] + beta[t])[None, :], 1)
    log_z = float(lse(alpha[-1] + end, 0))

    def normalised(x: np.ndarray) -> np.ndarray:  # position by position: rounding in log Z then does no harm
        p = np.exp(x - x.max())
        return p / p.sum()

    mu, xi = np.empty((T, C)), np.zeros((T, C, C))
    for t in range(T):
        mu[t] = normalised(alpha[t] + beta[t])
        if t:
            xi[t] = normalised(alpha[t - 1][:, None] + M[t] + (nodes[t] + beta[t])[None, :])

    def expected(p: np.ndarray, theta: np.ndarray) -> float:
        return float((p[p > 0] * np.broadcast_to(theta, p.shape)[p > 0]).sum())

    mean = expected(mu, nodes) + expected(mu[0], start) + expected(mu[-1], end) + expected(xi, M)
    return LogDomain(log_z, mu, xi, log_z - mean)


def best_path(nodes, transitions, start, end, edges=None) -> tuple[list[int], float]:
    """Viterbi with back-pointers, in float64; ties go to the lowest label."""
    T = len(nodes)
    delta, back = np.asarray(start + nodes[0], dtype=float), []
    for t in range(1, T):
        M = transitions if edges is None else transitions + edges[t]
        options = delta[:, None] + M
        back.append(options.argmax(axis=0))
        delta = options.max(axis=0) + nodes[t]
    final = delta + end
    path = [int(final.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1], float(final.max())
