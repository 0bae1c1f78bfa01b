"""Slow and obvious forms of what kernel tests and canonical correlations compute, and a Gaussian kernel for them."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from mercer.kernels import Kernel


class Gaussian(Kernel):
    """exp(−γ ‖x − z‖²), with random Fourier features as its map."""

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def _prepare(self, X):
        return np.asarray(X, float).reshape(len(X), -1)

    def _gram(self, A, B, work):
        C = A if B is None else B
        K = (A**2).sum(1)[:, None] + (C**2).sum(1)[None, :] - 2 * A @ C.T
        K = np.exp(-self.gamma * np.maximum(K, 0.0))
        if B is None:
            K = (K + K.T) / 2
            np.fill_diagonal(K, 1.0)
        return K

    def _diag(self, A, work):
        return np.ones(len(A))


class FourierGaussian(Gaussian):
    """The same with random Fourier features."""

    def approximate(self, n_components=100, random_state=None):
        return Fourier(self.gamma, n_components, random_state)


class Fourier:
    def __init__(self, gamma, n_components, random_state):
        self.gamma, self.n_components, self.random_state = gamma, n_components, random_state

    def fit(self, X):
        rng = np.random.default_rng(self.random_state)
        d = np.asarray(X).reshape(len(X), -1).shape[1]
        self.W = (np.sqrt(2 * self.gamma) * rng.normal(size=(d, self.n_components))).astype(np.float32)
        self.b = rng.uniform(0, 2 * np.pi, self.n_components).astype(np.float32)
        return self

    def transform(self, X):
        Z = np.asarray(X, np.float32).reshape(len(X), -1) @ self.W
        Z += self.b
        np.cos(Z, out=Z)
        Z *= np.float32(np.sqrt(2 / self.n_components))
        return Z


def hsic_biased(K, L):
    """The mean of K̃ L̃ over all pairs, K̃ by explicit means."""
    n = len(K)
    H = np.eye(n) - 1 / n
    return float(np.trace(H @ K @ H @ L) / n**2)


def hsic_unbiased(K, L):
    """The U-statistic by its sums over distinct indices."""
    n = len(K)
    pairs = trios = quads = 0.0
    for i, j in permutations(range(n), 2):
        pairs += K[i, j] * L[i, j]
    for i, j, k in permutations(range(n), 3):
        trios += K[i, j] * L[i, k]
    for i, j, k, q in permutations(range(n), 4):
        quads += K[i, j] * L[k, q]
    n2, n3, n4 = n * (n - 1), n * (n - 1) * (n - 2), n * (n - 1) * (n - 2) * (n - 3)
    return pairs / n2 + quads / n4 - 2 * trios / n3


def mmd(K, m, unbiased):
    """The three sums of the discrepancy, term by term; K of the pooled sample, the first m rows of X."""
    N = len(K)
    n = N - m
    xx = sum(K[i, j] for i in range(m) for j in range(m) if i != j or not unbiased)
    yy = sum(K[i, j] for i in range(m, N) for j in range(m, N) if i != j or not unbiased)
    xy = sum(K[i, j] for i in range(m) for j in range(m, N))
    if unbiased:
        return xx / (m * (m - 1)) + yy / (n * (n - 1)) - 2 * xy / (m * n)
    return xx / m**2 + yy / n**2 - 2 * xy / (m * n)
