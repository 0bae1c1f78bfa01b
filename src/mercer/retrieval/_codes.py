"""Packed codes: layout, distances and their estimates, and the base class of all embeddings.

A code of k bits is stored in ⌈k / 8⌉ bytes in the layout of `numpy.packbits`: bit j in byte j // 8, the first bit of a
byte is the highest, padded with zeros. A bit is 1 if the projection is ≥ 0 (sign(0) = +1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from mercer._arrays import Copies, as_rows, by_rows, compiled, is_tensor, to_numpy
from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Saved
from mercer._validation import check_count, check_positive, check_weights

__all__: list[str] = []

BLOCK_BYTES = 1 << 26  # of projections held at a time


def pack_codes(signs: Any) -> Any:
    """Pack signs or booleans into codes.

    Parameters
    ----------
    signs : array of shape (n, n_bits)
        A bit is 1 if a value is ≥ 0, or True in a boolean array.

    Returns
    -------
    array of uint8 of shape (n, ⌈n_bits / 8⌉)
        The first bit is the highest bit of the first byte, as in `numpy.packbits`. A tensor gives a tensor on the same
        device.

    Examples
    --------
    >>> from mercer.retrieval import pack_codes
    >>> pack_codes([[1.0, -1.0, 0.0]])
    array([[160]], dtype=uint8)
    """
    if on_device(signs):
        return _packed_tensor(signs)
    array, back = as_numpy(signs)
    values = np.asarray(array)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"signs must be a matrix with at least one column, got shape {values.shape}")
    if values.dtype == bool:
        return back(np.packbits(values, axis=1))
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError("signs must be finite real numbers or truth values")
    return back(np.packbits(values >= 0, axis=1))


def _packed_tensor(signs: Any) -> Any:
    from mercer.retrieval import _tensors

    if signs.ndim != 2 or signs.shape[1] == 0:
        raise ValueError(f"signs must be a matrix with at least one column, got shape {tuple(signs.shape)}")
    if str(signs.dtype) == "torch.bool":
        return _tensors.pack(signs.to(dtype=_tensors.torch.int8) - 1)
    if signs.is_complex() or not bool(signs.isfinite().all()):
        raise ValueError("signs must be finite real numbers or truth values")
    return _tensors.pack(signs)


def unpack_codes(codes: Any, n_bits: int) -> Any:
    """Unpack codes into signs −1 and +1.

    Parameters
    ----------
    codes : array of uint8 of shape (n, ⌈n_bits / 8⌉)
        Packed codes.
    n_bits : int
        Bits of a code.

    Returns
    -------
    array of int8 of shape (n, n_bits)
        The signs. A tensor gives a tensor on the same device.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.retrieval import unpack_codes
    >>> unpack_codes(np.array([[160]], np.uint8), 3)
    array([[ 1, -1,  1]], dtype=int8)
    """
    check_count("n_bits", n_bits)
    if on_device(codes):
        from mercer.retrieval import _tensors

        return _tensors.unpack(_tensors.device_codes("codes", codes, n_bits), n_bits)
    packed = checked_codes("codes", codes, n_bits)
    return as_numpy(codes)[1]((2 * np.unpackbits(packed, axis=1, count=n_bits) - 1).astype(np.int8))


def checked_codes(name: str, codes: Any, n_bits: int) -> np.ndarray:
    """Return contiguous packed codes of ``n_bits`` bits; padding bits must be zero."""
    array = as_numpy(codes)[0] if is_tensor(codes) else np.asarray(codes)
    if array.ndim == 1 and array.dtype == np.uint8:
        raise ValueError(f"{name} must be a matrix with a code in each row; for one code use {name}[None, :]")
    if array.dtype != np.uint8 or array.ndim != 2:
        raise ValueError(f"{name} must be a matrix of packed codes (uint8), got {array.dtype} of shape {array.shape}")
    width = -(-n_bits // 8)
    if array.shape[1] != width:
        raise ValueError(f"{name} must have {width} bytes ({n_bits} bits) a row, got {array.shape[1]}")
    if n_bits % 8 and array.size and (array[:, -1] & (0xFF >> n_bits % 8)).any():
        raise ValueError(f"{name} have bits after bit {n_bits}: is n_bits right, is the order that of numpy.packbits?")
    return np.ascontiguousarray(array)


def to_words(codes: np.ndarray) -> np.ndarray:
    """Return rows of bytes as rows of 64-bit words, padded with zeros."""
    width = -(-codes.shape[1] // 8) * 8
    if codes.shape[1] != width:
        filled = np.zeros((len(codes), width), np.uint8)
        filled[:, : codes.shape[1]] = codes
        codes = filled
    return np.ascontiguousarray(codes).view(np.uint64)


def hamming_distances(A: Any, B: Any = None) -> Any:
    """Return the distances of all pairs of codes: the number of bits in which they differ.

    Parameters
    ----------
    A : array of uint8 of shape (n, bytes)
        Packed codes.
    B : array of uint8 of shape (m, bytes), optional
        Other codes; by default A itself.

    Returns
    -------
    ndarray of int32 of shape (n, m)
        Distances. For the nearest ones only, use `HammingIndex`.

    Examples
    --------
    >>> from mercer.retrieval import hamming_distances, pack_codes
    >>> hamming_distances(pack_codes([[1, 1, -1], [1, -1, 1]]))
    array([[0, 2],
           [2, 0]], dtype=int32)
    """
    if on_device(A) or on_device(B):
        _same_device(A, A if B is None else B)
    array, back = as_numpy(A)
    first = np.asarray(array)
    second = first if B is None else np.asarray(as_numpy(B)[0])
    for name, array in (("A", first), ("B", second)):
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] == 0:
            given = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{name} must be a matrix of packed codes (uint8), got {given}")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"A and B must have equally long codes, got {first.shape[1]} and {second.shape[1]} bytes")
    a, b = to_words(first), to_words(second)
    out = np.empty((len(a), len(b)), np.int32)
    rows = max(1, BLOCK_BYTES // (8 * max(1, b.size)))
    for start in range(0, len(a), rows):
        differ = a[start : start + rows, None, :] ^ b[None, :, :]
        # NumPy 1 cannot count bits: there they are unpacked.
        has_count = hasattr(np, "bitwise_count")
        counts = np.bitwise_count(differ) if has_count else np.unpackbits(differ.view(np.uint8), axis=2)
        out[start : start + rows] = counts.sum(axis=2, dtype=np.int32)
    return back(out)


def angle_estimate(distances: Any, n_bits: int) -> np.ndarray:
    """Convert Hamming distances to angles: θ = π · distance / n_bits.

    Parameters
    ----------
    distances : array of int
        Hamming distances of codes by sign projections.
    n_bits : int
        Bits of a code.

    Returns
    -------
    ndarray
        Estimates of the angles, in radians. Unbiased for random projections.

    Examples
    --------
    >>> from mercer.retrieval import angle_estimate
    >>> angle_estimate([0, 64, 128], 128).round(2)
    array([0.  , 1.57, 3.14])
    """
    bits = check_count("n_bits", n_bits)
    counts = np.asarray(distances, dtype=np.float64)
    if counts.size and not (counts.min() >= 0 and counts.max() <= bits):
        raise ValueError(f"distances must lie between 0 and n_bits = {bits}")
    return counts * (np.pi / bits)


def hamming_variance(theta: float, n_bits: int) -> float:
    """Return the variance of the share of differing bits with independent projections: (θ/π)(1 − θ/π) / k.

    Parameters
    ----------
    theta : float
        Angle of the two vectors, between 0 and π.
    n_bits : int
        Bits k of a code.

    Returns
    -------
    float
        The variance.

    Examples
    --------
    >>> import math
    >>> from mercer.retrieval import hamming_variance
    >>> hamming_variance(math.pi / 2, 100)
    0.0025
    """
    if not 0 <= theta <= math.pi:
        raise ValueError(f"theta must lie between 0 and π, got {theta!r}")
    share = theta / math.pi
    return share * (1 - share) / check_count("n_bits", n_bits)


def circulant_variance_bound(theta: float, n_bits: int, rho: float, delta: float) -> float:
    """Return a bound of this variance for circulant projections: that of independent ones + 8 ρ √ln(8k²/δ).

    It holds with probability 1 − δ over the signs D, for unit vectors with entries of at most ρ. The published bound
    has 4k² in the logarithm, from a one-sided tail; both sides give 8k².

    Parameters
    ----------
    theta : float
        Angle of the two vectors, between 0 and π.
    n_bits : int
        Bits k of a code.
    rho : float
        Largest absolute entry of the two unit vectors, in (0, 1).
    delta : float
        Probability, over the signs, that the bound fails, in (0, 1).

    Returns
    -------
    float
        The bound. It is loose: above 1 unless ρ is tiny.

    Examples
    --------
    >>> from mercer.retrieval import circulant_variance_bound, hamming_variance
    >>> circulant_variance_bound(1.0, 64, 0.01, 0.1) > hamming_variance(1.0, 64)
    True
    """
    for name, value in (("rho", rho), ("delta", delta)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return hamming_variance(theta, n_bits) + 8 * rho * math.sqrt(math.log(8 * n_bits**2 / delta))


def recall_at(found: Any, neighbours: Any, ks: Any = (1, 10, 100)) -> dict[int, float]:
    """Return the recall of a search: the share of true neighbours among the first k results.

    Parameters
    ----------
    found : array of shape (n_queries, n_found)
        Ids of a search result, nearest first.
    neighbours : array of shape (n_queries, n_true)
        Ids of the true neighbours.
    ks : iterable of int, default=(1, 10, 100)
        Numbers of results to evaluate; at most ``n_found``.

    Returns
    -------
    dict of int to float
        k to the mean over the queries.

    Examples
    --------
    >>> from mercer.retrieval import recall_at
    >>> recall_at([[3, 1, 2], [0, 2, 1]], [[1], [0]], ks=(1, 2))
    {1: 0.5, 2: 1.0}
    """
    got, true = np.asarray(found), np.asarray(neighbours)
    if got.ndim != 2 or true.ndim != 2 or len(got) != len(true) or len(got) == 0 or true.shape[1] == 0:
        shapes = f"{got.shape} and {true.shape}"
        raise ValueError(f"found and neighbours must be matrices with a row for each query, got {shapes}")
    hit = np.stack([np.isin(row, wanted) for row, wanted in zip(got, true, strict=True)])
    result = {}
    for k in ks:
        if check_count("ks", k) > got.shape[1]:
            raise ValueError(f"ks must not exceed the {got.shape[1]} ids found for each query, got {k}")
        result[int(k)] = float(hit[:, :k].sum(axis=1).mean() / true.shape[1])
    return result


# ------------------------------------------------------------------------------------------------ arrays of other kinds


def as_numpy(X: Any) -> tuple[np.ndarray, Any]:
    """Return X as a NumPy array, copied only from a device, and a function that converts results back."""
    if not is_tensor(X):
        return X, lambda array: array
    import torch

    if X.layout != torch.strided:
        raise TypeError("a sparse tensor is not supported here: use X.to_dense()")
    return X.detach().cpu().numpy(), lambda array: torch.from_numpy(np.ascontiguousarray(array)).to(X.device)


def on_device(X: Any) -> bool:
    """Return whether X is a tensor outside CPU memory, which the compiled loops cannot read."""
    return is_tensor(X) and X.device.type != "cpu"


SPARSE_HINT = (
    "a projection of it is dense: reduce it first, for example with mercer.maps.RandomProjection or sklearn's "
    "TruncatedSVD, or use X.toarray()"
)


def _same(array: Any) -> Any:
    return array


class SignCodes(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base class of the embeddings x ↦ sign(P x). Subclasses implement ``_project`` (X Pᵀ) and ``_back`` (B P)."""

    n_bits: int
    n_jobs: int | None
    saved = Fields(n_features_in_=Count(1))
    _linear = True  # codes stand for directions

    def _checked(self, X: Any, reset: bool) -> tuple[Any, Any]:
        """X as a finite contiguous matrix of float32 or float64, and the way back to its kind.

        Tensors in the memory of the processor become NumPy arrays, for the compiled loops; on a device they stay there.
        """
        if sp.issparse(X):
            raise TypeError(f"X is sparse, and {SPARSE_HINT}")
        if on_device(X):
            return as_rows(self, X.detach(), reset, SPARSE_HINT).contiguous(), lambda codes: codes
        array, back = as_numpy(X)
        finite = reset or not self._looks_itself()
        options: dict[str, Any] = {"dtype": [np.float32, np.float64], "order": "C", "ensure_all_finite": finite}
        return validate_data(self, array, reset=reset, **options), back

    def _training_rows(self, X: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """The rows of positive weight in double precision, and their weights."""
        X, _ = self._checked(X, reset=True)
        rows = to_numpy(X).astype(np.float64, copy=False)
        weights = check_weights(sample_weight, len(rows))
        if weights is None:
            return rows, np.ones(len(rows))
        used = weights > 0
        return rows[used], weights[used]

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def _project(self, X: Any) -> Any:
        """X Pᵀ for a NumPy array or a tensor."""
        raise NotImplementedError

    def _back(self, signs: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _looks_itself(self) -> bool:
        """Whether ``_project`` and ``_codes`` refuse NaN and infinity themselves, on the way."""
        return False

    def _width(self) -> int:
        """Numbers that a row takes on the way to its projection."""
        return 3 * (self.n_features_in_ + self.n_bits)

    def _fused(self, X: Any) -> Any:
        """Packed codes by a kernel that takes X as it is and looks at it itself; None where there is none for X."""
        return None

    def _codes(self, X: Any) -> Any:
        """Packed codes, in blocks of rows."""
        if not isinstance(X, np.ndarray):
            from mercer.retrieval import _tensors

            return by_rows(lambda rows: _tensors.pack(self._project(rows)), X, self._width())
        out = np.empty((len(X), -(-self.n_bits // 8)), np.uint8)
        rows, core = max(1, BLOCK_BYTES // (X.itemsize * max(self.n_bits, X.shape[1]))), compiled()
        for start in range(0, len(X), rows):
            values = np.ascontiguousarray(self._project(X[start : start + rows]))
            if core is None:
                out[start : start + rows] = np.packbits(values >= 0, axis=1)
            else:
                core.pack_signs(values, out[start : start + rows])
        return out

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_bits // 8)  # columns of packed codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Any, packed: bool = True) -> Any:
        """Return the codes of the rows of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors. float32 stays float32, and is faster; integers become float64. A torch tensor is processed on its
            device and gives a tensor there.
        packed : bool, default=True
            Eight bits per byte, in the layout of `numpy.packbits`; otherwise signs −1 and +1 as int8.

        Returns
        -------
        array of uint8 of shape (n, ⌈n_bits / 8⌉), or of int8 of shape (n, n_bits)
            The codes.
        """
        self._check_fitted()
        codes, back = self._fused(X), _same
        if codes is None:
            X, back = self._checked(X, reset=False)
            codes = self._codes(X)
        return back(codes if packed else unpack_codes(codes, self.n_bits))

    def project(self, X: Any) -> Any:
        """Return the real projections, whose signs are the codes.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Vectors.

        Returns
        -------
        array of shape (n, n_bits)
            Projections, of the type of X.
        """
        self._check_fitted()
        X, back = self._checked(X, reset=False)
        if not isinstance(X, np.ndarray):
            return by_rows(self._project, X, self._width())
        return back(np.ascontiguousarray(self._project(X)))

    @available_if(lambda self: self._linear)
    def inverse_transform(self, codes: Any) -> Any:
        """Return the directions of codes: Pᵀ b, scaled to length 1.

        Codes do not keep lengths. For random projections Pᵀ sign(P x) has the direction of x on average.

        Parameters
        ----------
        codes : array of uint8 of shape (n, ⌈n_bits / 8⌉)
            Packed codes.

        Returns
        -------
        ndarray of shape (n, n_features)
            Unit vectors.
        """
        self._check_fitted()
        array, back = as_numpy(codes)
        vectors = self._back(unpack_codes(array, self.n_bits).astype(np.float64))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return back(vectors / np.where(lengths > 0, lengths, 1))

    def asymmetric_scores(self, X: Any, codes: Any) -> Any:
        """Return the scores of real queries against codes: Σ_j (P x)_j b_j, more accurate than Hamming distances.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            Queries.
        codes : array of uint8 of shape (n, ⌈n_bits / 8⌉)
            Packed codes.

        Returns
        -------
        array of shape (n_queries, n)
            Scores, higher for nearer codes; of the type of X.
        """
        self._check_fitted()
        _same_device(X, codes)
        X, back = self._checked(X, reset=False)
        if not isinstance(X, np.ndarray):
            return self._tensor_scores(X, codes)
        packed = checked_codes("codes", codes, self.n_bits)
        projected = self._project(X)
        out = np.empty((len(X), len(packed)), X.dtype)
        rows = max(1, BLOCK_BYTES // (X.itemsize * self.n_bits))
        for start in range(0, len(packed), rows):
            bits = np.unpackbits(packed[start : start + rows], axis=1, count=self.n_bits).astype(X.dtype)
            out[:, start : start + rows] = projected @ (2 * bits - 1).T
        return back(out)

    def asymmetric_distances(self, X: Any, codes: Any) -> Any:
        """Return the distances of real queries to codes: the sum of |(P x)_j| over bits unlike sign((P x)_j).

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            Queries.
        codes : array of uint8 of shape (n, ⌈n_bits / 8⌉)
            Packed codes.

        Returns
        -------
        array of shape (n_queries, n)
            Distances ≥ 0, which rank codes as `asymmetric_scores` does; of the type of X.
        """
        scores = self.asymmetric_scores(X, codes)
        projected = self.project(X)
        total = abs(projected).sum(axis=1)[:, None]
        return ((total - scores) / 2).clip(0)

    def _tensor_scores(self, X: Any, codes: Any) -> Any:
        """Scores on a device: codes in blocks, as signs of the type of X."""
        from mercer.retrieval import _tensors

        packed = _tensors.device_codes("codes", codes, self.n_bits)
        projected = by_rows(self._project, X, self._width())
        if packed.shape[0] == 0:
            return projected[:, :0]

        def scores(block: Any) -> Any:
            return _tensors.signs(block, self.n_bits, X.dtype) @ projected.T

        return by_rows(scores, packed, 2 * self.n_bits + X.shape[0]).T.contiguous()

    def _check_complete(self) -> None:
        self._check_fitted()

    def _check_state(self) -> None:
        check_count("n_bits", self.n_bits)


def _same_device(X: Any, codes: Any) -> None:
    """Vectors and codes that are used together lie in the same place."""
    places = [str(array.device) if is_tensor(array) else "cpu" for array in (X, codes)]
    if places[0] != places[1]:
        raise ValueError(f"X is on {places[0]} and codes on {places[1]}: move one of them")


def check_optional_positive(name: str, value: Any) -> float:
    """Return zero or a positive finite number."""
    return 0.0 if value == 0 and not isinstance(value, bool) else check_positive(name, value)
