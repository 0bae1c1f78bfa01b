"""Published baselines: iterative quantization, spectral hashing, codes of shift-invariant kernels."""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from mercer._state.saved import Fields, Floats, Ints, ListOf, Number
from mercer._validation import check_count, check_positive, thread_count
from mercer.retrieval._codes import SignCodes
from mercer.retrieval.projections import polar

__all__ = ["IterativeQuantization", "ShiftInvariantHashing", "SpectralHashing"]

_NEIGHBOR = 50  # whose mean distance is the width of the kernel of ShiftInvariantHashing
_LOOKED_AT = 1000  # rows whose neighbours are looked for
_TERMS = 200  # of the series of `ShiftInvariantHashing.expected_share`


class IterativeQuantization(SignCodes):
    """Binary codes by principal components, rotated towards their signs (ITQ).

    min over B, R of ‖B − V R‖², V the first ``n_bits`` principal components of the centred rows, R orthogonal. The
    method alternates between B = sign(V R) and R, the solution of a Procrustes problem [Gong2011]_. Learning takes
    O(n d² + d³) time, a code O(n_bits · d).

    Parameters
    ----------
    n_bits : int, default=64
        Bits of a code, at most the number of features and the number of training rows.
    max_iter : int, default=50
        Rounds of the alternation.
    random_state : int, RandomState or None, default=None
        Seed of the first rotation.
    n_jobs : int, optional
        Not used: the matrix products run on the threads of the BLAS.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    components_ : ndarray of shape (n_features, n_bits)
        Rotated principal components; their columns are orthonormal.
    history_ : list of float
        ‖B − V R‖² / n before the first round and after each; it never rises.
    n_iter_ : int
        Rounds of the alternation.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Gong2011] Y. Gong and S. Lazebnik. Iterative quantization: a Procrustean approach to learning binary codes.
       CVPR, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import IterativeQuantization
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> model = IterativeQuantization(n_bits=8, random_state=0).fit(X)
    >>> model.transform(X).shape, model.history_[-1] < model.history_[0]
    ((200, 1), True)
    """

    version = 2  # n_iter is max_iter
    saved = SignCodes.saved | Fields(
        mean_=Floats("n_features_in_"),
        components_=Floats("n_features_in_", "n_bits"),
        history_=ListOf(Number(finite=False)),
    )

    def __init__(
        self, n_bits: int = 64, max_iter: int = 50, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.n_bits = n_bits
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IterativeQuantization:
        """Learn the components and their rotation.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors.
        y : None
            Not used.
        sample_weight : array of n numbers of at least 0, optional
            A vector of weight 2 counts as two.

        Returns
        -------
        IterativeQuantization
            Itself.
        """
        bits = check_count("n_bits", self.n_bits)
        rounds = check_count("max_iter", self.max_iter)
        thread_count(self.n_jobs)
        rows, weights = self._training_rows(X, sample_weight)
        most = min(rows.shape)
        if bits > most:
            what = "features" if most == rows.shape[1] else "rows of positive weight"
            raise ValueError(
                f"n_bits must be at most {most}, the number of {what}, got {bits}: for longer codes use"
                " CirculantEmbedding or SpectralHashing"
            )
        self.mean_, axes = principal_axes(rows, weights, bits)
        V = (rows - self.mean_) @ axes
        R = polar(check_random_state(self.random_state).standard_normal((bits, bits)))
        total = float(weights.sum())
        fixed = bits + float(weights @ np.square(V).sum(axis=1)) / total
        values = V @ R
        self.history_ = [fixed - 2 * float(weights @ np.abs(values).sum(axis=1)) / total]
        weighted = V * (weights / total)[:, None]
        for _ in range(rounds):
            R = polar(weighted.T @ np.where(values >= 0, 1.0, -1.0))
            values = V @ R
            self.history_.append(fixed - 2 * float(weights @ np.abs(values).sum(axis=1)) / total)
        self.components_ = axes @ R
        self._forget_copies()
        return self

    @property
    def n_iter_(self) -> int:
        return len(self.history_) - 1

    def _project(self, X: Any) -> Any:
        kept = self._like(X, self._numbers)
        return (X - kept["mean"]) @ kept["components"]

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean_, "components": self.components_}

    def _back(self, signs: np.ndarray) -> np.ndarray:
        return signs @ self.components_.T


class SpectralHashing(SignCodes):
    """Binary codes by the signs of eigenfunctions of a box (spectral hashing).

    b(x) = sign cos(π m (v_i − a_i) / (b_i − a_i)) for principal components v_i of x, which lie between a_i and b_i on
    the training rows. The pairs (i, m) are those of the ``n_bits`` smallest m / (b_i − a_i): the eigenfunctions of the
    Laplacian of a uniform distribution on the box that vary least [Weiss2008]_. Codes may have more bits than features.

    Parameters
    ----------
    n_bits : int, default=64
        Bits of a code.
    n_jobs : int, optional
        Not used: the matrix products run on the threads of the BLAS.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    axes_ : ndarray of shape (n_features, n_axes)
        Principal components, at most ``n_bits``.
    low_, range_ : ndarray of shape (n_axes,)
        a_i and b_i − a_i.
    axis_, mode_ : ndarray of int of shape (n_bits,)
        i and m of each bit.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Weiss2008] Y. Weiss, A. Torralba and R. Fergus. Spectral hashing. NIPS, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import SpectralHashing
    >>> X = np.random.default_rng(0).uniform(size=(200, 2)) * [4.0, 1.5]
    >>> model = SpectralHashing(n_bits=4).fit(X)
    >>> model.axis_.tolist(), model.mode_.tolist()
    ([0, 0, 1, 0], [1, 2, 1, 3])
    """

    saved = SignCodes.saved | Fields(
        mean_=Floats("n_features_in_"),
        axes_=Floats("n_features_in_", None),
        low_=Floats(lambda model: model.axes_.shape[1]),
        range_=Floats(lambda model: model.axes_.shape[1], low=0.0),
        axis_=Ints("n_bits", below=lambda model: model.axes_.shape[1]),
        mode_=Ints("n_bits", low=1),
    )
    _linear = False

    def __init__(self, n_bits: int = 64, n_jobs: int | None = None) -> None:
        self.n_bits = n_bits
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralHashing:
        """Learn the principal components, their ranges, and the smoothest eigenfunctions.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors.
        y : None
            Not used.
        sample_weight : array of n numbers of at least 0, optional
            A vector of weight 2 counts as two in the principal components.

        Returns
        -------
        SpectralHashing
            Itself.
        """
        bits = check_count("n_bits", self.n_bits)
        thread_count(self.n_jobs)
        rows, weights = self._training_rows(X, sample_weight)
        self.mean_, axes = principal_axes(rows, weights, min(bits, *rows.shape))
        V = (rows - self.mean_) @ axes
        low, span = V.min(axis=0), np.ptp(V, axis=0)
        wide = span > 1e-10 * max(float(span.max()), np.finfo(float).tiny)
        if not wide.any():
            raise ValueError("X must have rows that differ: all of them are equal")
        self.axes_, self.low_, self.range_ = axes[:, wide], low[wide], span[wide]
        frequencies = np.arange(1, bits + 1)[:, None] / self.range_[None, :]  # a row for each m
        chosen = np.argsort(frequencies, axis=None, kind="stable")[:bits]
        modes, self.axis_ = np.unravel_index(chosen, frequencies.shape)
        self.mode_ = modes + 1
        self._forget_copies()
        return self

    def _project(self, X: Any) -> Any:
        xp, kept = array_api_compat.array_namespace(X), self._like(X, self._numbers)
        values = (X - kept["mean"]) @ kept["axes"] - kept["low"]
        return xp.cos(values[:, kept["axis"]] * kept["omega"])

    def _numbers(self) -> dict[str, np.ndarray]:
        omega = np.pi * self.mode_ / self.range_[self.axis_]
        return {"mean": self.mean_, "axes": self.axes_, "low": self.low_, "axis": self.axis_, "omega": omega}

    def _check_state(self) -> None:
        super()._check_state()
        if self.axes_.shape[1] == 0 or not (self.range_ > 0).all():
            raise ValueError("range_ must hold positive numbers, one for each axis")


class ShiftInvariantHashing(SignCodes):
    """Binary codes whose distances follow a Gaussian kernel (SKLSH).

    b(x) = sign(cos(⟨w, x⟩ + β) + t) with normal w of variance 2γ, β uniform in [0, 2π) and t in [−1, 1]
    [Raginsky2009]_. The expected share of bits in which two codes differ is a function of k(x, x′) =
    exp(−γ ‖x − x′‖²): see `expected_share`.

    Parameters
    ----------
    n_bits : int, default=256
        Bits of a code.
    gamma : float or "neighbors", default="neighbors"
        γ of the kernel. "neighbors": 1 / (2 s²), with s the mean distance of a training row to its 50th neighbour,
        estimated from at most 1,000 rows.
    random_state : int, RandomState or None, default=None
        Seed of the directions, shifts and thresholds, and of the sampled rows.
    n_jobs : int, optional
        Not used: the matrix products run on the threads of the BLAS.

    Attributes
    ----------
    gamma_ : float
        γ.
    components_ : ndarray of shape (n_features, n_bits)
        The directions w.
    shifts_, thresholds_ : ndarray of shape (n_bits,)
        β and t.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Raginsky2009] M. Raginsky and S. Lazebnik. Locality-sensitive binary codes from shift-invariant kernels.
       NIPS, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import ShiftInvariantHashing, hamming_distances
    >>> X = np.array([[0.0, 0.0], [0.6, 0.8]])
    >>> model = ShiftInvariantHashing(4000, gamma=0.5, random_state=0).fit(X)
    >>> share = hamming_distances(model.transform(X))[0, 1] / 4000
    >>> bool(abs(share - model.expected_share(1.0)) < 0.03)
    True
    """

    saved = SignCodes.saved | Fields(
        gamma_=Number(),
        components_=Floats("n_features_in_", "n_bits"),
        shifts_=Floats("n_bits", low=0.0, high=2 * math.pi),
        thresholds_=Floats("n_bits", low=-1.0, high=1.0),
    )
    _linear = False

    def __init__(
        self,
        n_bits: int = 256,
        gamma: float | str = "neighbors",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.gamma = gamma
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> ShiftInvariantHashing:
        """Draw the directions, shifts and thresholds; choose γ if it is not given.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors. With a number for ``gamma``, only their columns are counted.
        y : None
            Not used.

        Returns
        -------
        ShiftInvariantHashing
            Itself.
        """
        bits = check_count("n_bits", self.n_bits)
        thread_count(self.n_jobs)
        if isinstance(self.gamma, str) and self.gamma != "neighbors":
            raise ValueError(f"gamma must be a number above 0 or 'neighbors', got {self.gamma!r}")
        rows, _ = self._training_rows(X, None)
        random = check_random_state(self.random_state)
        drawn = random.standard_normal((rows.shape[1], bits))
        self.shifts_ = random.uniform(0.0, 2 * np.pi, bits)
        self.thresholds_ = random.uniform(-1.0, 1.0, bits)
        if isinstance(self.gamma, str):
            self.gamma_ = _neighbor_gamma(rows, random)
        else:
            self.gamma_ = check_positive("gamma", self.gamma)
        self.components_ = drawn * math.sqrt(2 * self.gamma_)
        self._forget_copies()
        return self

    def expected_share(self, distances: Any) -> np.ndarray:
        """Return the expected share of bits in which the codes of two vectors differ.

        (8/π²) Σ_m (1 − exp(−γ m² r²)) / (4m² − 1) for vectors at Euclidean distance r. It rises from 0 to 4/π².

        Parameters
        ----------
        distances : array of numbers of at least 0
            Euclidean distances r.

        Returns
        -------
        ndarray
            Shares, of the shape of ``distances``.
        """
        self._check_fitted()
        r = np.asarray(distances, np.float64)
        if not (r >= 0).all():
            raise ValueError("distances must be numbers of at least 0")
        # Σ 1 / (4m² − 1) = 1/2: only the sum with the kernel is cut, and its terms vanish where r does not.
        m2 = np.arange(1, _TERMS + 1) ** 2.0
        kernels = np.exp(-self.gamma_ * r[..., None] ** 2 * m2)
        rest = (0.5 - (1 / (4 * m2 - 1)).sum()) * kernels[..., -1]
        return (8 / np.pi**2) * (0.5 - (kernels / (4 * m2 - 1)).sum(axis=-1) - rest)

    def _project(self, X: Any) -> Any:
        xp, kept = array_api_compat.array_namespace(X), self._like(X, self._numbers)
        return xp.cos(X @ kept["components"] + kept["shifts"]) + kept["thresholds"]

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"components": self.components_, "shifts": self.shifts_, "thresholds": self.thresholds_}


def principal_axes(X: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the rows and their first k principal axes as columns, with a positive largest entry each."""
    n, d = X.shape
    mean = weights @ X / weights.sum()
    centred = (X - mean) * np.sqrt(weights / weights.max())[:, None]
    largest = float(np.abs(centred).max(initial=0.0))
    centred /= largest if largest > 0 else 1.0
    if n >= d:
        axes = eigh(centred.T @ centred, subset_by_index=(d - k, d - 1))[1][:, ::-1]
    else:
        axes = np.linalg.svd(centred, full_matrices=False)[2][:k].T
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(k)])
    return mean, np.ascontiguousarray(axes * np.where(signs == 0, 1.0, signs))


def _neighbor_gamma(X: np.ndarray, random: np.random.RandomState) -> float:
    if len(X) > _LOOKED_AT:
        X = X[random.permutation(len(X))[:_LOOKED_AT]]
    if len(X) > 1:
        place = min(_NEIGHBOR, len(X) - 1)  # each row is its own first
        width = float(np.partition(cdist(X, X), place, axis=1)[:, place].mean())
        if width > 0:
            return 1 / (2 * width**2)
    raise ValueError("gamma='neighbors' needs rows that differ: give a number")
