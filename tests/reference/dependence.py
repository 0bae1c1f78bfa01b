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


def kernel_cca_by_eigenvalues(K, L, ridge):
    """Eigenvalues of [[0, KL], [LK, 0]] against diag(K² + κ K, L² + κ L), by the problem itself; both are centred."""
    from scipy.linalg import block_diag, eigvals

    none, little = np.zeros_like(K), 1e-9 * np.eye(len(K))
    A = np.block([[none, K @ L], [L @ K, none]])
    B = block_diag(K @ K + ridge * K + little, L @ L + ridge * L + little)
    return np.sort(eigvals(A, B).real)[::-1]


def agreement_by_search(features, ridge, n_components, starts=20, seed=0):
    """The largest Σ_{u≠v} tr(W_uᵀ F_uᵀ F_v W_v) with W_vᵀ (F_vᵀ F_v + κ I) W_v = I in each view, by quasi-Newton steps.

    W_v = A L⁻ᵀ with L Lᵀ = Aᵀ (F_vᵀ F_v + κ I) A for any A, from random starts; the features are centred.
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import minimize

    metrics = [F.T @ F + ridge * np.eye(F.shape[1]) for F in features]
    ends = np.cumsum([0, *(F.shape[1] * n_components for F in features)])

    def agreement(a):
        projected = []
        for v, (F, metric) in enumerate(zip(features, metrics, strict=True)):
            A = a[ends[v] : ends[v + 1]].reshape(F.shape[1], n_components)
            L = np.linalg.cholesky(A.T @ metric @ A)
            projected.append(F @ solve_triangular(L, A.T, lower=True).T)
        total = sum(projected)
        return float(np.square(total).sum() - sum(np.square(P).sum() for P in projected))

    rng = np.random.default_rng(seed)
    best = -np.inf
    for _ in range(starts):
        found = minimize(lambda a: -agreement(a), rng.normal(size=ends[-1]), method="L-BFGS-B", options={"gtol": 1e-9})
        best = max(best, -found.fun)
    return best


def lemma_sides(projections):
    """Σ_{i,j} ‖P_i − P_j‖² and Σ_j ‖P_j − mean‖²."""
    mean = np.mean(projections, axis=0)
    pairs = sum(np.square(P - Q).sum() for P in projections for Q in projections)
    return float(pairs), float(sum(np.square(P - mean).sum() for P in projections))
