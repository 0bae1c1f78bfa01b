"""Streams of keys in bounded memory: the hashed vector of the stream, and a sketch of counts.

accumulator    Φ̄_j = Σ_{(key, w): bucket(key) = j} sign(key) w
count-min      S[r, h_r(key)] += w,   estimate min_r S[r, h_r(key)] ≥ count
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._state.limits import reserve
from mercer._state.saved import Count, Fields, Floats, Ints, Number, Optional, Saved
from mercer._state.values import Reader, Writer
from mercer._validation import check_count, check_seed
from mercer.maps.columns import hash_keys
from mercer.maps.hashed import check_bits

__all__ = ["CountMinSketch", "HashAccumulator"]


def _as_hashes(hashes: Any) -> np.ndarray:
    array = np.asarray(hashes)
    if array.dtype != np.uint64 or array.ndim != 1:
        raise ValueError(f"hashes must be a uint64 array of one dimension, got {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)


def _as_weights(weights: Any, n: int) -> np.ndarray | None:
    """One weight for each of n keys; None where all are 1."""
    if weights is None or (isinstance(weights, (int, float)) and weights == 1):
        return None
    array = np.asarray(weights)
    if array.dtype.kind not in "iubf":
        raise TypeError(f"weights must be numbers, got an array of dtype {array.dtype}")
    if array.dtype.kind in "iu" and ((array > 2**53).any() or (array < -(2**53)).any()):
        raise ValueError("integer weights must be at most 2^53 in size")
    if array.ndim == 0:
        array = np.broadcast_to(array, (n,))
    if array.shape != (n,):
        raise ValueError(f"weights must be one number or one for each of the {n} keys, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


class _Mass(Count):
    """An integer of up to 127 bits, as text: JSON numbers have fewer."""

    def write(self, value: Any, out: Writer) -> str:
        return str(value)

    def read(self, node: Any, source: Reader) -> int:
        if not isinstance(node, str) or len(node) > 39:
            raise ValueError("the sum of the sizes of all weights is out of range")
        return int(node)


class HashAccumulator(Saved):
    """The hashed vector of a stream of weighted keys, independent of their order and of chunks.

    Memory is 8 bytes per bucket, or 16 once a weight has a fraction. Keys are not stored. Sums are exact: buckets are
    128-bit fixed-point numbers with unit 2^-64. So a stream in any order, split into any chunks and merged from any
    parts, gives the same vector bit for bit. Weights are rounded to the nearest multiple of 2^-64: without change for
    weights of size 2^-12 or more (and for 0 and all integers), and by at most 2^-65 for smaller weights. `value` rounds
    each sum once, so it is the floating-point number nearest to the true sum.

    Parameters
    ----------
    n_bits : int, default=20
        There are 2^n_bits buckets; 1 to 30.
    signed : bool, default=False
        Whether keys get hashed signs.
    seed : int, default=0
        Seed of the hash function.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of `value`; sums are always exact.

    Notes
    -----
    Keys are str (by their UTF-8 bytes), bytes, or integers of 64 bits; "7" and 7 are different keys. The sizes of all
    weights together must stay below 2^63, which is checked before anything is added.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercer.maps import HashAccumulator
    >>> left = HashAccumulator(n_bits=10).update(["cat", "dog", "cat"])
    >>> right = HashAccumulator(n_bits=10).update("dog", 0.5)
    >>> float(left.merge(right).value.sum())
    3.5
    """

    saved = Fields(
        _whole=Ints(lambda model: 1 << model.n_bits, low=None),
        _fraction=Optional(Ints("_whole")),
        _mass=_Mass(most=(1 << 127) - 1),
    )

    def __init__(self, n_bits: int = 20, signed: bool = False, seed: int = 0, dtype: Any = np.float64) -> None:
        self.n_bits = check_bits(n_bits)
        self.signed = bool(signed)
        self.seed = check_seed(seed)
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
            raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
        self._whole = np.zeros(1 << self.n_bits, np.int64)
        self._fraction: np.ndarray | None = None
        self._mass = 0  # Σ |w| in units of 2^-64: no bucket can be larger

    def __repr__(self) -> str:
        return f"HashAccumulator(n_bits={self.n_bits}, signed={self.signed}, seed={self.seed}, dtype={self.dtype.name})"

    def update(self, keys: Any, weights: Any = None) -> HashAccumulator:
        """Add weights to the buckets of keys.

        Parameters
        ----------
        keys : str, bytes, int, or a list, array, series or Arrow column of them
            One key or many.
        weights : float or array of float, optional
            One weight for all keys, or one for each; 1 by default.
        """
        hashes, _ = hash_keys(keys, self.seed)
        return self.update_hashes(hashes, weights)

    def update_hashes(self, hashes: np.ndarray, weights: Any = None) -> HashAccumulator:
        """Update with hashed keys, an array of uint64.

        The hashes are used unchanged; the seed has no effect.
        """
        hashes = _as_hashes(hashes)
        numbers = _as_weights(weights, len(hashes))
        fractional = False
        if numbers is None:
            mass = self._mass + (len(hashes) << 64)
            if mass >= 1 << 127:
                raise ValueError("the sum of the sizes of all weights must stay below 2^63")
        else:
            whole, fraction, fractional = _core.hashing.weigh(numbers, self._mass >> 64, self._mass & (2**64 - 1))
            mass = whole << 64 | fraction
        if fractional and self._fraction is None:
            self._fraction = np.zeros(1 << self.n_bits, np.uint64)
        _core.hashing.add_weights(self._whole, self._fraction, hashes, numbers, self.signed)
        self._mass = mass
        return self

    @property
    def value(self) -> np.ndarray:
        """Return the vector of sums as a new array."""
        return _core.hashing.round_sums(self._whole, self._fraction, self.dtype == np.float32)

    def to_csr(self) -> sp.csr_matrix:
        """Return the vector of sums as a sparse matrix of one row."""
        return sp.csr_matrix(self.value[np.newaxis, :])

    def merge(self, other: HashAccumulator) -> HashAccumulator:
        """Add the sums of another accumulator with the same settings."""
        if not isinstance(other, HashAccumulator):
            raise TypeError(f"expected a HashAccumulator, found {type(other).__name__}")
        for name in ("n_bits", "signed", "seed", "dtype"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(f"{name} differs: {getattr(self, name)} and {getattr(other, name)}")
        if self._mass + other._mass >= 1 << 127:
            raise ValueError("the sum of the sizes of all weights must stay below 2^63")
        carry: Any = 0
        if other._fraction is not None:
            mine = np.zeros(1 << self.n_bits, np.uint64) if self._fraction is None else self._fraction
            self._fraction = mine + other._fraction
            carry = self._fraction < mine
        self._whole = self._whole + other._whole + carry
        self._mass += other._mass
        return self

    @classmethod
    def _make(cls, params: dict[str, Any]) -> HashAccumulator:
        reserve(8 << check_bits(params["n_bits"]), "the buckets")
        return cls(**params)

    def _check_state(self) -> None:
        if self._whole.dtype != np.int64 or (self._fraction is not None and self._fraction.dtype != np.uint64):
            raise ValueError("buckets must be integers of 64 bits, with a sign and without")


class CountMinSketch(Saved):
    """Approximate counts of the keys of a stream, never too low, in fixed memory.

    An estimate exceeds the true count by more than eps · (sum of all counts) with a probability of at most delta, for a
    width of ⌈e / eps⌉ and a depth of ⌈ln(1 / delta)⌉ [Cormode2005]_.

    Parameters
    ----------
    width, depth : int, optional
        Number of cells per row, and number of rows.
    eps, delta : float, optional
        Alternatives to width and depth: the error as a share of the sum of all counts, and the probability of a larger
        error.
    seed : int, default=0
        Seed of the hash functions, which are pairwise independent over the choice of the seed: any two keys are
        assigned to cells of a row independently.
    conservative : bool, default=False
        Raise only the cells that must grow. Estimates are better and still never too low, but depend on the order of
        the stream, and `inner` is not available.

    Attributes
    ----------
    total : float
        The sum of all counts.
    table : ndarray of shape (depth, width)
        The cells.

    Notes
    -----
    Counts are float64: whole numbers are exact up to 2^53, so that chunked, shuffled and merged streams of such counts
    give the same sketch (not with ``conservative``).

    References
    ----------
    .. [Cormode2005] G. Cormode and S. Muthukrishnan. An improved data stream summary: the count-min sketch and its
       applications. Journal of Algorithms 55, 2005.

    Examples
    --------
    >>> from mercer.maps import CountMinSketch
    >>> sketch = CountMinSketch(eps=0.01, delta=0.01).update(["cat", "dog", "cat"]).update("cow", 10)
    >>> sketch.query("cat"), sketch.query(["cow", "ant"]).tolist()
    (2.0, [10.0, 0.0])
    """

    saved = Fields(table=Floats("depth", "width", low=0.0), total=Number(0.0))

    def __init__(
        self,
        width: int | None = None,
        depth: int | None = None,
        *,
        eps: float | None = None,
        delta: float | None = None,
        seed: int = 0,
        conservative: bool = False,
    ) -> None:
        self.width = _size("width", width, "eps", eps, lambda share: math.e / share)
        self.depth = _size("depth", depth, "delta", delta, lambda share: math.log(1.0 / share))
        self.seed = check_seed(seed)
        self.conservative = bool(conservative)
        if self.depth > 1000 or self.width * self.depth > 1 << 34:
            raise ValueError(f"a sketch of {self.depth} x {self.width} cells is too large: take a larger eps or delta")
        self.table = np.zeros((self.depth, self.width))
        self.total = 0.0

    def __repr__(self) -> str:
        return f"CountMinSketch(width={self.width}, depth={self.depth}, seed={self.seed}, total={self.total:g})"

    @property
    def error_bound(self) -> float:
        """Return e / width · total, an error bound that holds with probability at least 1 − exp(−depth)."""
        return math.e / self.width * self.total

    def update(self, keys: Any, weights: Any = None) -> CountMinSketch:
        """Count keys.

        Parameters
        ----------
        keys : str, bytes, int, or a list, array, series or Arrow column of them
            One key or many.
        weights : float or array of float, optional
            Nonnegative counts: one number for all keys, or one for each; 1 by default.
        """
        hashes, _ = hash_keys(keys, self.seed)
        return self.update_hashes(hashes, weights)

    def update_hashes(self, hashes: np.ndarray, weights: Any = None) -> CountMinSketch:
        """Update with hashed keys, an array of uint64."""
        hashes = _as_hashes(hashes)
        numbers = _as_weights(weights, len(hashes))
        _core.hashing.update_sketch(self.table, self.seed, hashes, numbers, self.conservative)
        self.total += float(len(hashes)) if numbers is None else math.fsum(numbers)
        return self

    def query(self, keys: Any) -> Any:
        """Return the estimated count of one key or of many, never below the true count."""
        hashes, one = hash_keys(keys, self.seed)
        estimates = _core.hashing.query_sketch(self.table, self.seed, hashes)
        return float(estimates[0]) if one else estimates

    def inner(self, other: CountMinSketch) -> float:
        """Return an estimate of Σ_key count(key) · other's count(key), never below it.

        It exceeds the truth by more than e / width · total · other.total with a probability of at most exp(−depth).
        """
        self._check_alike(other)
        if self.conservative:
            raise ValueError("conservative sketches have no inner product: it could come out too low")
        return float(np.einsum("rc,rc->r", self.table, other.table).min())

    def merge(self, other: CountMinSketch) -> CountMinSketch:
        """Add the counts of another sketch with the same settings."""
        self._check_alike(other)
        self.table = self.table + other.table
        self.total += other.total
        return self

    def _saved_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("width", "depth", "seed", "conservative")}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> CountMinSketch:
        reserve(8 * check_count("width", params["width"]) * check_count("depth", params["depth"]), "the cells")
        return cls(**params)

    def _check_alike(self, other: CountMinSketch) -> None:
        if not isinstance(other, CountMinSketch):
            raise TypeError(f"expected a CountMinSketch, found {type(other).__name__}")
        for name in ("width", "depth", "seed", "conservative"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(f"{name} differs: {getattr(self, name)} and {getattr(other, name)}")


def _size(name: str, size: Any, share_name: str, share: Any, rule: Any) -> int:
    """A size that is given, or that follows from a share between 0 and 1."""
    if (size is None) == (share is None):
        raise ValueError(f"give {name} or {share_name}, one of them")
    if size is not None:
        return check_count(name, size)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise ValueError(f"{share_name} must be a number between 0 and 1, got {share!r}")
    return max(1, math.ceil(rule(float(share))))
