"""Slow and obvious forms of what kernel tests and canonical correlations compute, and a Gaussian kernel for them."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from mercer.kernels import Kernel


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


class Grams(Kernel):
    """⟨counts of all substrings of up to n characters⟩, by dictionaries."""

    def __init__(self, n=2):
        self.n = n

    def _prepare(self, X):
        counted = []
        for x in X:
            counts = {}
            for length in range(1, self.n + 1):
                for i in range(len(x) - length + 1):
                    counts[x[i : i + length]] = counts.get(x[i : i + length], 0) + 1
            counted.append(counts)
        return counted

    def _gram(self, A, B, work):
        C = A if B is None else B
        columns = {}
        for counts in [*A, *C]:
            for s in counts:
                columns.setdefault(s, len(columns))
        F, G = np.zeros((len(A), len(columns))), np.zeros((len(C), len(columns)))
        for M, rows in ((F, A), (G, C)):
            for i, counts in enumerate(rows):
                for s, number in counts.items():
                    M[i, columns[s]] = number
        return F @ G.T

    def _diag(self, A, work):
        return np.array([float(sum(v * v for v in counts.values())) for counts in A])


def cca_by_svd(X, Y):
    """Canonical correlations: singular values of Q_Xᵀ Q_Y for orthonormal bases of the centred views."""
    Q, P = (np.linalg.qr(Z - Z.mean(axis=0))[0] for Z in (X, Y))
    return np.linalg.svd(Q.T @ P, compute_uv=False)


def kernel_cca_by_eigenvalues(Ks, ridge):
    """Eigenvalues of the blocks K_u K_v against diag(K_v² + κ K_v), by the printed problem itself; Ks are centred."""
    from scipy.linalg import eigvals

    J, n = len(Ks), len(Ks[0])
    A, B = np.zeros((J * n, J * n)), np.zeros((J * n, J * n))
    for u in range(J):
        for v in range(J):
            block = slice(u * n, (u + 1) * n), slice(v * n, (v + 1) * n)
            if u == v:
                B[block] = Ks[u] @ Ks[u] + ridge * Ks[u] + 1e-9 * np.eye(n)
            else:
                A[block] = Ks[u] @ Ks[v]
    return np.sort(eigvals(A, B).real)[::-1] / (J - 1)


def lemma_sides(projections):
    """Σ_{i,j} ‖P_i − P_j‖² and Σ_j ‖P_j − mean‖² (spec 001 C21)."""
    mean = np.mean(projections, axis=0)
    pairs = sum(np.square(P - Q).sum() for P in projections for Q in projections)
    return float(pairs), float(sum(np.square(P - mean).sum() for P in projections))
