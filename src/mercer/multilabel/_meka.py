"""Memory-efficient kernel approximation [Si2017]: K ≈ W L W', with W block-diagonal.

Rows are clustered into blocks. A block has the basis W_s = K(block, landmarks) K(landmarks, landmarks)^−½, so that
W_s W_s' is its Nyström approximation, and the coupling of two blocks is fitted on sampled rows,

    L_st = argmin ‖K(R_s, R_t) − W_s(R_s) L W_t(R_t)'‖.

L need not be positive semi-definite: bases are made orthonormal and negative eigenvalues clipped. Then K ≈ Z diag(e) Z'
with Z'Z = I, and (K + c)⁻¹ has a closed form, so solutions need no iterations. n rows take O(n k) numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import eigh

from mercer.kernel_methods.collections import taken
from mercer.kernels import Kernel

__all__ = ["BlockKernel"]

_SAMPLE = 2000  # rows that blocks are found on
_FLAT = 1e-10


class BlockKernel:
    """A centred kernel matrix by blocks: products, solutions, and kernel values with new rows.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n_rows, n_features)
    n_blocks, rank : int
    random : RandomState
    """

    def __init__(self, kernel: Kernel, X: np.ndarray, n_blocks: int, rank: int, random: np.random.RandomState) -> None:
        self.kernel = kernel
        n = len(X)
        self.centres = _centres(X, min(n_blocks, n), random)
        block = self._blocks(X)
        used = np.unique(block)
        self.centres, block = self.centres[used], np.searchsorted(used, block)
        self.members = [np.flatnonzero(block == s) for s in range(len(used))]
        self.block, self.place = block, np.empty(n, np.int64)
        for rows in self.members:
            self.place[rows] = np.arange(len(rows))
        self.landmarks, self.roots, self.W = [], [], []
        for rows in self.members:
            chosen = rows[random.permutation(len(rows))[: min(rank, len(rows))]]
            marks = taken(X, np.sort(chosen))
            values, vectors = eigh(kernel(marks))
            kept = values > _FLAT * max(float(values[-1]), 1e-300)
            self.landmarks.append(marks)
            self.roots.append(vectors[:, kept] / np.sqrt(values[kept]))
            self.W.append(kernel(taken(X, rows), marks) @ self.roots[-1])
        self.starts = np.concatenate([[0], np.cumsum([W.shape[1] for W in self.W])])
        self.L = self._couplings(X, rank, random)
        self.n = n
        self._decompose()

    def _blocks(self, X: np.ndarray) -> np.ndarray:
        squares = (self.centres**2).sum(axis=1)
        return np.concatenate(
            [(squares - 2 * X[at : at + 4096] @ self.centres.T).argmin(axis=1) for at in range(0, len(X), 4096)]
        )

    def _couplings(self, X: np.ndarray, rank: int, random: np.random.RandomState) -> np.ndarray:
        L = np.eye(int(self.starts[-1]))
        sampled = [np.sort(random.permutation(len(rows))[: 4 * rank]) for rows in self.members]
        inverse = [np.linalg.pinv(W[some], rcond=1e-6) for W, some in zip(self.W, sampled, strict=True)]
        rows = [taken(X, members[some]) for members, some in zip(self.members, sampled, strict=True)]
        for s in range(len(rows)):
            for t in range(s):
                block = inverse[s] @ self.kernel(rows[s], rows[t]) @ inverse[t].T
                L[self.starts[s] : self.starts[s + 1], self.starts[t] : self.starts[t + 1]] = block
                L[self.starts[t] : self.starts[t + 1], self.starts[s] : self.starts[s + 1]] = block.T
        return L

    def _decompose(self) -> None:
        """Eigenvalues e and the basis B with Z = (W − 1 m') B orthonormal: the centred matrix is Z diag(e) Z'."""
        r = int(self.starts[-1])
        gram = np.zeros((r, r))
        sums = np.empty(r)
        for W, a, b in zip(self.W, self.starts[:-1], self.starts[1:], strict=True):
            gram[a:b, a:b] = W.T @ W
            sums[a:b] = W.sum(axis=0)
        self.means = sums / self.n
        gram -= np.outer(sums, self.means)
        values, vectors = eigh(gram)
        kept = values > _FLAT * max(float(values[-1]), 1e-300)
        whiten = vectors[:, kept] / np.sqrt(values[kept])
        root = vectors[:, kept] * np.sqrt(values[kept])
        e, U = eigh(root.T @ self.L @ root)
        positive = e > _FLAT * max(float(e[-1]), 1e-300)
        self.eigenvalues = e[positive]
        self.basis = whiten @ U[:, positive]

    def project(self, V: np.ndarray) -> np.ndarray:
        """Z'V."""
        parts = np.vstack([W.T @ V[rows] for W, rows in zip(self.W, self.members, strict=True)])
        return self.basis.T @ (parts - np.outer(self.means, V.sum(axis=0)))

    def lift(self, C: np.ndarray) -> np.ndarray:
        """Z C."""
        parts = self.basis @ C
        out = np.empty((self.n, C.shape[1]))
        for W, rows, a, b in zip(self.W, self.members, self.starts[:-1], self.starts[1:], strict=True):
            out[rows] = W @ parts[a:b]
        return out - self.means @ parts

    def against(self, other: BlockKernel) -> np.ndarray:
        """Return Z'Z of two matrices, in one pass over the common rows of two blocks."""
        products = -self.n * np.outer(self.means, other.means)
        for W, rows, a, b in zip(self.W, self.members, self.starts[:-1], self.starts[1:], strict=True):
            for t, (V, c, d) in enumerate(zip(other.W, other.starts[:-1], other.starts[1:], strict=True)):
                shared = np.flatnonzero(other.block[rows] == t)
                products[a:b, c:d] += W[shared].T @ V[other.place[rows[shared]]]
        return self.basis.T @ products @ other.basis

    def smooth(self, V: np.ndarray, c: float) -> np.ndarray:
        """K (K + c)⁻¹ V."""
        return self.lift((self.eigenvalues / (self.eigenvalues + c))[:, None] * self.project(V))

    def leverages(self, c: float) -> np.ndarray:
        """Return the diagonal of K (K + c)⁻¹."""
        scaled = self.basis * np.sqrt(self.eigenvalues / (self.eigenvalues + c))
        offset = self.means @ scaled
        out = np.empty(self.n)
        for W, rows, a, b in zip(self.W, self.members, self.starts[:-1], self.starts[1:], strict=True):
            out[rows] = ((W @ scaled[a:b] - offset) ** 2).sum(axis=1)
        return out

    def expansion(self, V: np.ndarray, c: float) -> tuple[list[np.ndarray], np.ndarray]:
        """Return coefficients of kernel values with the landmarks of each block, and offsets, for new rows.

        K(x, ·)(K + c)⁻¹ V for the approximate kernel, centred like the matrix.
        """
        parts = self.basis @ ((self.eigenvalues / (self.eigenvalues + c))[:, None] * self.project(V))
        coefs = [root @ parts[a:b] for root, a, b in zip(self.roots, self.starts[:-1], self.starts[1:], strict=True)]
        return coefs, -self.means @ parts

    def error(self, X: np.ndarray) -> float:
        """Return the relative Frobenius error of the uncentred matrix; it is formed, so only for small n."""
        K, approximate = self.kernel(X), np.empty((self.n, self.n))
        for s, (W, rows) in enumerate(zip(self.W, self.members, strict=True)):
            for t, (V, columns) in enumerate(zip(self.W, self.members, strict=True)):
                L = self.L[self.starts[s] : self.starts[s + 1], self.starts[t] : self.starts[t + 1]]
                approximate[np.ix_(rows, columns)] = W @ L @ V.T
        return float(np.linalg.norm(K - approximate) / np.linalg.norm(K))


def _centres(X: np.ndarray, n_blocks: int, random: np.random.RandomState) -> np.ndarray:
    sample: Any = X[random.permutation(len(X))[:_SAMPLE]]
    if n_blocks == 1:
        return sample.mean(axis=0, keepdims=True)
    centres, labels = kmeans2(sample, n_blocks, minit="++", rng=np.random.default_rng(random.randint(2**31)))
    return centres[np.bincount(labels, minlength=n_blocks) > 0]
