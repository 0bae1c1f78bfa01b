"""Baselines: codes by a full matrix (LSH) and by two small matrices (bilinear)."""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import numpy as np
from sklearn.utils import check_random_state

from mercer._arrays import on_device_of, to_numpy
from mercer._state.saved import Fields, Floats, ListOf, Number, check_shapes
from mercer._validation import check_choice, check_count, check_weights, thread_count
from mercer.maps.fourier import padded_to
from mercer.retrieval._codes import SignCodes

__all__ = ["BilinearEmbedding", "SignProjection"]


class SignProjection(SignCodes):
    """Binary codes by a dense random projection: b(x) = sign(R x), R with normal entries.

    The classical hash for angles: bits are independent and differ with probability θ/π. Time and memory are O(n_bits ·
    d).

    Parameters
    ----------
    n_bits : int, default=256
        Bits of a code.
    random_state : int, RandomState or None, default=None
        Seed of the directions.
    n_jobs : int, optional
        Not used: the matrix product runs on the threads of the BLAS.

    Attributes
    ----------
    components_ : ndarray of float32 of shape (n_features, n_bits)
        The directions R, transposed.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Charikar2002] M. Charikar. Similarity estimation techniques from rounding algorithms. STOC, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import SignProjection, angle_estimate, hamming_distances
    >>> codes = SignProjection(n_bits=2000, random_state=0).fit_transform(np.eye(3))
    >>> bool(abs(angle_estimate(hamming_distances(codes)[0, 1], 2000) - np.pi / 2) < 0.1)
    True
    """

    saved = SignCodes.saved | Fields(components_=Floats("n_features_in_", "n_bits", single=True))

    def __init__(self, n_bits: int = 256, random_state: Any = None, n_jobs: int | None = None) -> None:
        self.n_bits = n_bits
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> SignProjection:
        """Draw the directions for the number of features of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors; only the number of columns is used.
        y : None
            Not used.

        Returns
        -------
        SignProjection
            Itself.
        """
        bits = check_count("n_bits", self.n_bits)
        thread_count(self.n_jobs)
        X, _ = self._checked(X, reset=True)
        self._forget_copies()
        random = check_random_state(self.random_state)
        self.components_ = random.standard_normal((X.shape[1], bits)).astype(np.float32)
        return self

    def _project(self, X: Any) -> Any:
        return X @ (self.components_ if isinstance(X, np.ndarray) else self._like(X, self._numbers)["components"])

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"components": self.components_}

    def _back(self, signs: np.ndarray) -> np.ndarray:
        return signs @ self.components_.T.astype(np.float64)

    def _check_state(self) -> None:
        super()._check_state()
        self.components_ = self.components_.astype(np.float32, copy=False)


class BilinearEmbedding(SignCodes):
    """Binary codes by two small matrices: x as a matrix Z, b(x) = sign(R₁ᵀ Z R₂).

    Time O(d √k), memory O(d + k) for k bits. x is reshaped to a nearly square Z, with zeros at the end if d has no two
    factors near its root; likewise k.

    Parameters
    ----------
    n_bits : int, default=256
        Bits of a code.
    method : {"random", "learned"}, default="random"
        Normal matrices, or orthogonal matrices with projections as close to their signs as possible, by alternating
        optimisation of bits and matrices.
    max_iter : int, default=10
        Rounds of learning.
    random_state : int, RandomState or None, default=None
        Seed of the matrices.
    n_jobs : int, optional
        Not used: the matrix products run on the threads of the BLAS.

    Attributes
    ----------
    left_ : ndarray of shape (d₁, k₁)
        R₁.
    right_ : ndarray of shape (d₂, k₂)
        R₂.
    history_ : list of float
        For a learned embedding: the mean of ``|R₁ᵀ Z R₂|`` over rows, summed over bits; it never falls.
    n_iter_ : int
        Rounds of learning; 1 for random matrices, which are drawn once.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Gong2013] Y. Gong, S. Kumar, H. Rowley and S. Lazebnik. Learning binary codes for high-dimensional data using
       bilinear projections. CVPR, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import BilinearEmbedding
    >>> X = np.random.default_rng(0).normal(size=(5, 100))
    >>> BilinearEmbedding(n_bits=64, random_state=0).fit_transform(X).shape
    (5, 8)
    """

    version = 2  # n_iter is max_iter
    saved = SignCodes.saved | Fields(
        left_=Floats(None, None), right_=Floats(None, None), history_=ListOf(Number(finite=False))
    )

    def __init__(
        self,
        n_bits: int = 256,
        method: str = "random",
        max_iter: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BilinearEmbedding:
        """Draw the two matrices and, with ``method="learned"``, fit them to X.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors. A random embedding only counts their columns.
        y : None
            Not used.
        sample_weight : array of n numbers of at least 0, optional
            For learned matrices: a vector of weight 2 counts as two.

        Returns
        -------
        BilinearEmbedding
            Itself.
        """
        bits = check_count("n_bits", self.n_bits)
        check_choice("method", self.method, ("random", "learned"))
        rounds = check_count("max_iter", self.max_iter)
        thread_count(self.n_jobs)
        X, _ = self._checked(X, reset=True)
        weights = check_weights(sample_weight, X.shape[0])
        self._forget_copies()
        random = check_random_state(self.random_state)
        (d1, d2), (k1, k2) = near_square(X.shape[1]), near_square(bits)
        self.left_, self.right_ = random.standard_normal((d1, k1)), random.standard_normal((d2, k2))
        self.history_: list[float] = []
        if self.method == "learned":
            self.left_, self.right_ = polar(self.left_), polar(self.right_)
            xp = array_api_compat.array_namespace(X)
            rows = xp.astype(X, xp.float64, copy=False)
            if weights is not None:  # bits do not change with the length of a vector, and sums are linear in it
                rows = rows * on_device_of(X, weights / weights.mean())[:, None]
            Z = self._matrices(rows)
            for _ in range(rounds):
                self._improve(Z)
            self._forget_copies()
        return self

    @property
    def n_iter_(self) -> int:
        return max(1, len(self.history_) - 1)

    def _matrices(self, X: Any) -> Any:
        d1, d2 = len(self.left_), len(self.right_)
        xp = array_api_compat.array_namespace(X)
        return xp.reshape(padded_to(xp, X, d1 * d2), (X.shape[0], d1, d2))

    def _bits(self, Z: Any) -> Any:
        """R₁ᵀ Z R₂ of every row, the values beyond ``n_bits`` left out."""
        xp, kept = array_api_compat.array_namespace(Z), self._like(Z, self._numbers)
        values = xp.matmul(xp.matmul(kept["left"].T, Z), kept["right"])
        return xp.reshape(values, (Z.shape[0], -1))[:, : self.n_bits]

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"left": self.left_, "right": self.right_}

    def _improve(self, Z: Any) -> None:
        """One round: bits, then the two matrices that agree with them most (orthogonal Procrustes problems)."""
        xp = array_api_compat.array_namespace(Z)
        k1, k2 = self.left_.shape[1], self.right_.shape[1]
        values = self._bits(Z)
        if not self.history_:
            self.history_.append(self._agreement(values))
        ones = xp.ones_like(values)
        B = padded_to(xp, xp.where(values >= 0, ones, -ones), k1 * k2)
        signs = xp.reshape(B, (Z.shape[0], k1, k2))
        right = self._like(Z, self._numbers)["right"]
        self.left_ = polar(to_numpy(xp.tensordot(xp.matmul(Z, right), signs, axes=([0, 2], [0, 2]))))
        left = on_device_of(Z, self.left_)
        self.right_ = polar(to_numpy(xp.tensordot(xp.matmul(left.T, Z), signs, axes=([0, 1], [0, 1]))))
        self._forget_copies()
        self.history_.append(self._agreement(self._bits(Z)))

    @staticmethod
    def _agreement(values: Any) -> float:
        return float(abs(values).sum(axis=1).mean())

    def _project(self, X: Any) -> Any:
        return self._bits(self._matrices(X))

    def _back(self, signs: np.ndarray) -> np.ndarray:
        k1, k2 = self.left_.shape[1], self.right_.shape[1]
        B = np.zeros((len(signs), k1 * k2))
        B[:, : self.n_bits] = signs
        Z = np.matmul(np.matmul(self.left_, B.reshape(-1, k1, k2)), self.right_.T)
        return Z.reshape(len(signs), -1)[:, : self.n_features_in_]

    def _check_state(self) -> None:
        super()._check_state()
        rows, bits = (self.left_.shape[i] * self.right_.shape[i] for i in (0, 1))
        if self.n_features_in_ > rows or self.n_bits > bits:
            raise ValueError("left_ and right_ are too small for the numbers of features and bits")
        (d1, d2), (k1, k2) = near_square(self.n_features_in_), near_square(self.n_bits)
        check_shapes(self, left_=(d1, k1), right_=(d2, k2))


def near_square(n: int) -> tuple[int, int]:
    """Return two factors near √n with product n, or slightly above n if there are none."""
    root = math.isqrt(n)
    for a in range(root, root // 2, -1):
        if n % a == 0:
            return a, n // a
    a = root if root * root == n else root + 1
    return a, -(-n // a)


def polar(A: np.ndarray) -> np.ndarray:
    """Return the matrix with orthonormal columns (or rows, if these are fewer) that is nearest to A."""
    u, _, vt = np.linalg.svd(A, full_matrices=False)
    return u @ vt
