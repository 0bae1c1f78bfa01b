"""Kernels of sets of hashable elements, of objects with their own kernel, or of vectors that span a subspace.

|A ∩ B| = Σ_{a ∈ A, b ∈ B} 1[a = b]                      Intersection; with counts Σ_e a_e b_e or Σ_e min(a_e, b_e)
m(A, B) / (m(A, A) + m(B, B) − m(A, B))                  Jaccard, m any of the three
(1 / |A||B|) Σ_{a ∈ A, b ∈ B} k(a, b)                    SetMean: the inner product of the means in feature space
Π_i cos² θ_i,   Σ_i cos² θ_i,   Σ_{S, T} det(A_S B_Tᵀ)²     Subspace, θ the principal angles of the spans

The 64-bit key of an element depends only on its value, so sets from different processes can be compared. Python's
``hash`` of a string differs between processes. The double sum counts a pair for every repeat, so it equals |A ∩ B| for
sets only. For multisets, ``counts`` selects the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count, check_sparse
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.algebra import Together, _Bags
from mercer.kernels.base import Kernel, Work, check_kernel, mirrored, require_positive_definite

__all__ = ["Intersection", "Jaccard", "SetMean", "Subspace"]

COUNTS = ("set", "product", "min")
_FLOATS = (float, np.floating)
MANY_LEVELS = 8  # different counts of an element from which on pairs are cheaper than levels
MAX_LEVELS = 1 << 28  # entries of explicit features
TILE = 1 << 11  # elements on a side of the matrices of elements that are held at once
TEXT, BYTES, NUMBER, LARGE, NONE, TUPLE, SET = range(1, 8)  # seeds: elements of different kinds have different keys


# ---------------------------------------------------------------------------------------------------- elements


def element_key(element: Any) -> int:
    """Return the 64-bit key of a hashable element, equal in all processes and for elements that are equal in Python.

    The key is computed from the UTF-8 bytes of strings, the value of integers (also True and 2.0), the shortest decimal
    form of other floats, and the keys of the parts of tuples and frozensets.

    Examples
    --------
    >>> from mercer.kernels.sets import element_key
    >>> element_key(2) == element_key(2.0), element_key("2") == element_key(2), element_key((1, "a")) % 1000
    (True, False, 71)
    """
    if isinstance(element, str):
        return _core.hashing.feature_hash(element.encode("utf-8", "surrogatepass"), TEXT)
    if isinstance(element, bytes):
        return _core.hashing.feature_hash(element, BYTES)
    if isinstance(element, (Integral, np.bool_)) or (isinstance(element, _FLOATS) and float(element).is_integer()):
        number = int(element)
        if -(1 << 63) <= number < 1 << 63:
            return int(_core.hashing.hash_keys([number], NUMBER)[0])
        return _core.hashing.feature_hash(str(number).encode(), LARGE)
    if isinstance(element, _FLOATS) and not np.isnan(element):
        return _core.hashing.feature_hash(repr(float(element)).encode(), LARGE)
    if element is None:
        return _core.hashing.feature_hash(b"", NONE)
    if isinstance(element, tuple):
        return _core.hashing.feature_hash(b"".join(element_key(part).to_bytes(8, "little") for part in element), TUPLE)
    if isinstance(element, frozenset):
        parts = sorted(element_key(part) for part in element)
        return _core.hashing.feature_hash(b"".join(part.to_bytes(8, "little") for part in parts), SET)
    raise ValueError(
        f"an element must be a string, bytes, a number, None, or a tuple or frozenset of such, got {element!r} of type "
        f"{type(element).__name__}"
    )


def element_keys(elements: list[Any]) -> np.ndarray:
    """Return the keys of many elements; strings or integers of one type are hashed in one call."""
    kinds = set(map(type, elements))
    if kinds == {str}:
        try:
            return _core.hashing.hash_keys(elements, TEXT)
        except (UnicodeError, ValueError):
            pass  # a lone surrogate: one by one
    elif kinds == {int}:
        try:
            return _core.hashing.hash_numbers(np.array(elements, np.int64).view(np.uint64), NUMBER)
        except OverflowError:
            pass
    table: dict[Any, int] = {}
    for element in elements:
        if element not in table:
            table[element] = element_key(element)
    return np.array([table[element] for element in elements], np.uint64)


def keyed_sets(X: Any, counts: str) -> KeyedRows:
    """Return sets as rows of element keys, with values 1 (``counts="set"``) or the counts."""
    if sp.issparse(X):
        X = sp.csr_matrix(check_sparse("X", X))
        lengths, weights = np.diff(X.indptr), np.asarray(X.data, np.float64)
        keys = _core.hashing.hash_numbers(X.indices.astype(np.int64).view(np.uint64), NUMBER)
    else:
        read = [_elements(i, x) for i, x in enumerate(X)]
        lengths = np.array([len(elements) for elements, _ in read], np.int64)
        keys = _keys_of_sets([elements for elements, _ in read])
        weights = np.array([w for _, given in read for w in given], np.float64)
    return _stacked(lengths, keys, weights, counts)


def _keys_of_sets(sets: list[list[Any]]) -> np.ndarray:
    try:
        return element_keys([element for elements in sets for element in elements])
    except (TypeError, ValueError):
        for i, elements in enumerate(sets):  # again, to say which one it was
            try:
                element_keys(elements)
            except TypeError as error:
                raise ValueError(f"set {i}: {error}: use tuples and frozensets in place of lists and sets") from error
            except ValueError as error:
                raise ValueError(f"set {i}: {error}") from error
        raise


def _elements(i: int, x: Any) -> tuple[list[Any], list[float]]:
    """Elements of a set and their counts."""
    if isinstance(x, (str, bytes)):
        raise ValueError(f"set {i} is one string: pass its words, x.split(), or its characters, list(x)")
    if isinstance(x, Mapping):
        try:
            weights = [float(w) for w in x.values()]
        except (TypeError, ValueError) as error:
            raise ValueError(f"set {i}: the values of a mapping are counts, and must be numbers: {error}") from error
        return list(x), weights
    if isinstance(x, np.ndarray):
        if x.ndim != 1:
            raise ValueError(f"set {i} must be a list of elements, got an array of shape {x.shape}")
        x = x.tolist()
    if not isinstance(x, Iterable):
        raise ValueError(f"set {i} must be a set, a list or a mapping of elements to counts, got {type(x).__name__}")
    elements = list(x)
    return elements, [1.0] * len(elements)


def _stacked(lengths: np.ndarray, keys: np.ndarray, weights: np.ndarray, counts: str) -> KeyedRows:
    """Elements in ascending order of keys, those that repeat once, with the sum of their counts."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"set {rows[at]}: counts must be finite numbers of at least 0, got {weights[at]}")
    kept = weights > 0
    rows, keys, weights = rows[kept], keys[kept], weights[kept]
    order = np.lexsort((keys, rows))
    rows, keys, weights = rows[order], keys[order], weights[order]
    first = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1])]) if len(rows) else rows
    values = np.add.reduceat(weights, first) if len(rows) else weights
    sizes = np.bincount(rows[first], minlength=len(lengths)) if len(rows) else np.zeros(len(lengths), np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return KeyedRows(offsets, keys[first], np.ones(len(first)) if counts == "set" else values)


# ---------------------------------------------------------------------------------------------------- Σ min


def _minimum_sums(A: KeyedRows, B: KeyedRows | None) -> np.ndarray:
    """Σ_e min(a_e, b_e) of all pairs: by levels, but element by element where one has many different counts."""
    stacks = [A] if B is None else [A, B]
    tables = matrices(stacks)
    many = _different_values(tables) > MANY_LEVELS
    made, widths = _levels([_some_columns(stack, M, ~many) for stack, M in zip(stacks, tables, strict=True)])
    K = np.asarray((made[0].multiply(widths).tocsr() @ made[-1].T).todense(), np.float64)
    left, right = tables[0].tocsc(), tables[-1].tocsc()
    for column in np.flatnonzero(many):
        a, b = (slice(M.indptr[column], M.indptr[column + 1]) for M in (left, right))
        common = np.minimum.outer(left.data[a], right.data[b])
        if common.shape == K.shape:  # all sets have it: rows are in order
            K += common
        else:
            K[np.ix_(left.indices[a], right.indices[b])] += common
    return mirrored(K) if B is None else K


def _different_values(tables: list[Any]) -> np.ndarray:
    """For each column of all tables together, how many different values it holds."""
    column, value = (np.concatenate([getattr(M, part) for M in tables]) for part in ("indices", "data"))
    order = np.lexsort((value, column))
    column, value = column[order], value[order]
    new = np.r_[True, (np.diff(column) != 0) | (np.diff(value) != 0)] if len(order) else np.zeros(0, bool)
    return np.bincount(column[new], minlength=tables[0].shape[1])


def _some_columns(stack: KeyedRows, table: Any, wanted: np.ndarray) -> KeyedRows:
    kept = wanted[table.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])
    return KeyedRows(ends[stack.offsets], stack.keys[kept], stack.values[kept])


def _levels(stacks: list[KeyedRows]) -> tuple[list[Any], np.ndarray]:
    """0/1 matrices and widths with Σ_c widths[c] M[i, c] N[j, c] = Σ_e min(a_e, b_e), for all rows of the stacks.

    The counts that an element has anywhere, t₁ < t₂ < …, are its levels: min(a, b) is the sum of the steps t_l −
    t_{l−1} up to the level that both have reached.
    """
    columns = [M.indices for M in matrices(stacks)]
    column, value = np.concatenate(columns), np.concatenate([stack.values for stack in stacks])
    order = np.lexsort((value, column))
    new_column = np.r_[True, np.diff(column[order]) != 0] if len(order) else np.zeros(0, bool)
    new_level = new_column | np.r_[True, np.diff(value[order]) != 0] if len(order) else new_column
    level = np.empty(len(order), np.int64)
    level[order] = np.cumsum(new_level) - 1
    tops, starts = value[order][new_level], new_column[new_level]
    widths = tops - np.where(starts, 0.0, np.r_[0.0, tops[:-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(tops)), 0)) if len(tops) else np.zeros(0, np.int64)
    made, at = [], 0
    for stack in stacks:
        last = level[at : at + len(stack.values)]
        at += len(last)
        reached = last - first[last] + 1
        ends = np.concatenate([[0], np.cumsum(reached)])
        if ends[-1] > MAX_LEVELS:
            raise ValueError(f"the features have {ends[-1]} entries, too many to list: use the Gram matrix")
        indices = np.arange(ends[-1]) - np.repeat(ends[:-1], reached) + np.repeat(first[last], reached)
        made.append(
            sp.csr_matrix(
                (np.ones(len(indices)), indices, ends[stack.offsets]), shape=(len(stack), max(1, len(widths)))
            )
        )
    return made, widths if len(widths) else np.zeros(1)


class _Overlap(Kernel):
    """What `Intersection` and `Jaccard` share: the three ways to count what two sets have in common."""

    counts: str

    def _check_params(self) -> None:
        check_choice("counts", self.counts, COUNTS)

    def _common(self, A: KeyedRows, B: KeyedRows | None, work: Work) -> np.ndarray:
        if self.counts != "min":
            return A.gram(B, work)
        return np.asarray(_minimum_sums(A, B), work.dtype)

    def _sizes(self, A: KeyedRows) -> np.ndarray:
        if self.counts != "min":
            return A.diag()
        ends = np.concatenate([[0.0], np.cumsum(A.values)])
        if np.all(A.values == np.rint(A.values)) and ends[-1] < 2**53:
            return ends[A.offsets[1:]] - ends[A.offsets[:-1]]
        return np.array([float(row.sum()) for row in np.split(A.values, A.offsets[1:-1])]) if len(A) else np.zeros(0)


class Intersection(_Overlap):
    """The number of elements that two sets have in common, ``|A ∩ B|``.

    A set is a Python set, a list, a 1-D array or any other iterable of elements (a list may repeat an element), or a
    mapping of elements to counts; the collection may also be a sparse matrix of counts, whose columns are the
    elements. Elements are strings, bytes, numbers, None, or tuples and frozensets of these. Elements are equal if they
    are equal in Python. They are compared by 64-bit keys (`mercer.kernels.sets.element_key`), which are the same in all
    processes; two different elements share a key with probability 2⁻⁶⁴. The empty set has the value 0 with all sets.

    Parameters
    ----------
    counts : {"set", "product", "min"}, default="set"
        How elements count: each element once; by products of counts Σ_e a_e b_e, the inner product of bags of words; or
        by the size of the multiset intersection, Σ_e min(a_e, b_e).

    Examples
    --------
    >>> from mercer.kernels import Intersection
    >>> A, B = "the dog and the cat".split(), "the cat the cat".split()
    >>> [Intersection(counts).pair(A, B) for counts in ("set", "product", "min")]
    [2.0, 6.0, 3.0]
    """

    has_features = True

    def __init__(self, counts: str = "set") -> None:
        self.counts = counts

    def _prepare(self, X: Any) -> KeyedRows:
        return keyed_sets(X, self.counts)

    def _gram(self, A: KeyedRows, B: KeyedRows | None, work: Work) -> np.ndarray:
        return self._common(A, B, work)

    def _diag(self, A: KeyedRows, work: Work) -> np.ndarray:
        return self._sizes(A)

    def _features(self, parts: list[KeyedRows]) -> list[Any]:
        if self.counts != "min":
            return matrices(parts)
        made, widths = _levels(parts)
        return [M.multiply(np.sqrt(widths)).tocsr() for M in made]


class Jaccard(_Overlap):
    """The share of elements that two sets have in common, ``|A ∩ B| / |A ∪ B|``: the Jaccard or Tanimoto coefficient.

    In general it is m(A, B) / (m(A, A) + m(B, B) − m(A, B)) with a kernel m of `Intersection`, and it is positive
    definite for each of them. Two empty sets have the value 1, an empty and a nonempty set 0. This keeps the kernel
    positive definite: an empty set acts like a set with one element of its own.

    Parameters
    ----------
    counts : {"set", "product", "min"}, default="set"
        How elements count, as in `Intersection`: ``"product"`` is Tanimoto's coefficient of vectors of counts,
        ``"min"`` the weighted coefficient Σ_e min(a_e, b_e) / Σ_e max(a_e, b_e).

    Examples
    --------
    >>> from mercer.kernels import Jaccard
    >>> Jaccard().pair({"a", "b", "c"}, {"b", "c", "d"})
    0.5
    >>> Jaccard("min").pair({"a": 3, "b": 1}, {"a": 1, "b": 1})
    0.5
    >>> Jaccard().pair(set(), set())
    1.0
    """

    def __init__(self, counts: str = "set") -> None:
        self.counts = counts

    def _prepare(self, X: Any) -> Together:
        rows = keyed_sets(X, self.counts)
        return Together((rows, self._sizes(rows)))

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        other = A if B is None else B
        common = self._common(A.parts[0], None if B is None else B.parts[0], Work(work.threads))
        union = A.parts[1][:, None] + other.parts[1][None, :] - common
        K = np.divide(common, union, out=np.ones_like(common), where=union > 0)
        if B is None:
            np.fill_diagonal(K, 1.0)
        return K.astype(work.dtype)

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return np.ones(len(A))


# ---------------------------------------------------------------------------------------------------- bags


def stacked_bags(X: Any) -> tuple[np.ndarray, Any]:
    """Return the offsets of the bags, and all elements in one collection: an array if all bags are arrays, else a list.

    Examples
    --------
    >>> from mercer.kernels.sets import stacked_bags
    >>> stacked_bags([["a", "b"], ["c"]])
    (array([0, 2, 3]), ['a', 'b', 'c'])
    """
    bags = list(X)
    for i, bag in enumerate(bags):
        if isinstance(bag, (str, bytes)) or not hasattr(bag, "__iter__"):
            raise ValueError(f"bag {i} must be a collection of elements, got {bag!r:.60}")
        if isinstance(bag, np.ndarray) and bag.ndim not in (1, 2):
            raise ValueError(f"bag {i} must be a list or an array of 2 dimensions, got an array of shape {bag.shape}")
    bags = [bag if hasattr(bag, "__len__") or sp.issparse(bag) else list(bag) for bag in bags]
    sizes = np.array([bag.shape[0] if hasattr(bag, "shape") else len(bag) for bag in bags], np.int64)
    if (sizes == 0).any():
        raise ValueError(f"bag {int(np.argmin(sizes))} is empty: it has no mean and spans nothing")
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if bags and all(sp.issparse(bag) for bag in bags):
        _same_width(bags)
        return offsets, sp.vstack(bags, format="csr")
    if bags and all(isinstance(bag, np.ndarray) and bag.ndim == 2 for bag in bags):
        _same_width(bags)
        return offsets, np.concatenate(bags)
    return offsets, [element for bag in bags for element in bag]


def _same_width(bags: list[Any]) -> None:
    for i, bag in enumerate(bags):
        if bag.shape[1] != bags[0].shape[1]:
            raise ValueError(f"bag {i} has vectors of {bag.shape[1]} numbers, bag 0 of {bags[0].shape[1]}")


def _tiles(offsets: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Stretches of at most TILE elements, with the bags that they touch: (element, end, bag, end)."""
    tiles = []
    for low in range(0, int(offsets[-1]), TILE):
        high = min(low + TILE, int(offsets[-1]))
        first = int(np.searchsorted(offsets, low, "right")) - 1
        tiles.append((low, high, first, int(np.searchsorted(offsets, high, "left"))))
    return tiles


def _bag_sums(offsets: np.ndarray, tile: tuple[int, int, int, int], G: np.ndarray) -> np.ndarray:
    """Sums of the rows of G, which stand for the elements of a tile, for each bag that the tile touches."""
    low, high, first, last = tile
    starts = np.clip(offsets[first:last], low, high) - low
    return np.add.reduceat(G, starts, axis=0)


class SetMean(Kernel):
    """The mean of a kernel over all pairs of elements: the inner product of means in feature space.

    A set is represented by the mean of its elements' features, ``(1 / |A|) Σ_{a ∈ A} Φ(a)``. With a characteristic
    kernel, such as the Gaussian, this distinguishes all distributions, and `mercer.kernels.distance` of two bags is the
    maximum mean discrepancy between them. Repeated elements count each time.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the elements. The mean is positive definite if this kernel is.

    Examples
    --------
    Bags of vectors, and bags of sets:

    >>> import numpy as np
    >>> from mercer.kernels import Intersection, Linear, SetMean
    >>> bags = [np.array([[1.0, 0.0], [3.0, 2.0]]), np.array([[0.0, 1.0]])]
    >>> SetMean(Linear())(bags)
    array([[5., 1.],
           [1., 1.]])
    >>> SetMean(Intersection()).pair([{"a"}, {"a", "b"}], [{"b"}])
    0.5
    """

    _block_entries = 1 << 18

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.kernel.has_features

    @property
    def definiteness(self) -> str:
        return self.kernel.definiteness

    def _check_params(self) -> None:
        check_kernel("kernel", self.kernel)._check_params()

    def _prepare(self, X: Any) -> _Bags:
        offsets, elements = stacked_bags(X)
        return _Bags(offsets, [self.kernel._prepare(elements) if offsets[-1] else elements])

    def _gram(self, A: _Bags, B: _Bags | None, work: Work) -> np.ndarray:
        other = A if B is None else B
        K = np.zeros((len(A), len(other)))
        for rows in _tiles(A.offsets):
            for columns in _tiles(other.offsets):
                if B is None and columns[0] > rows[0]:
                    break
                self._add_tile(K, A, B, rows, columns, work)
        K /= np.multiply.outer(np.diff(A.offsets), np.diff(other.offsets))
        return K.astype(work.dtype)

    def _add_tile(self, K: np.ndarray, A: _Bags, B: _Bags | None, rows: Any, columns: Any, work: Work) -> None:
        """Adds the sums over a tile of the matrix of elements; below the diagonal also those of its mirror image."""
        other = A if B is None else B
        own = B is None and rows == columns
        right = None if own else other.places[0][columns[0] : columns[1]]
        G = self.kernel._whole(A.places[0][rows[0] : rows[1]], right, Work(work.threads))
        sums = _bag_sums(A.offsets, rows, np.asarray(_bag_sums(other.offsets, columns, G.T).T, order="C"))
        if own:
            sums = mirrored(sums)
        if B is not None or own:
            K[rows[2] : rows[3], columns[2] : columns[3]] += sums
            return
        whole = np.zeros((rows[3] - columns[2], rows[3] - columns[2]))  # tiles may share a bag: add both images at once
        whole[rows[2] - columns[2] :, : columns[3] - columns[2]] = sums
        K[columns[2] : rows[3], columns[2] : rows[3]] += whole + whole.T

    def _features(self, parts: list[_Bags]) -> list[Any]:
        plain = self.kernel._features([bag.places[0] for bag in parts])
        return [_means(bag) @ F for bag, F in zip(parts, plain, strict=True)]


def _means(bag: _Bags) -> Any:
    return sp.csr_matrix(sp.diags(1.0 / np.diff(bag.offsets)) @ bag.membership())


# ---------------------------------------------------------------------------------------------------- subspaces


class _Spans:
    """A stretch of basis vectors for each bag, as combinations of elements.

    Vector r of bag i is Σ_e weights[e, r] Φ(element e); with explicit vectors ``elements`` are the basis vectors
    themselves and ``weights`` is None.
    """

    def __init__(self, offsets: np.ndarray, elements: Any, starts: np.ndarray, weights: Any) -> None:
        self.offsets = offsets
        self.elements = elements
        self.starts = starts
        self.weights = weights

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> _Spans:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        low, high = self.offsets[start], self.offsets[stop]
        first, last = self.starts[start], self.starts[stop]
        weights = None if self.weights is None else self.weights[first:last, low:high]
        return _Spans(
            self.offsets[start : stop + 1] - low,
            self.elements[first:last],
            self.starts[start : stop + 1] - first,
            weights,
        )


class Subspace(Kernel):
    """Similarities of the subspaces that sets of vectors span, by their principal angles.

    An object is a bag of vectors: an array with one row per vector, such as the frames of a film, or a list of objects
    of ``kernel``. Its subspace is spanned by the first ``dim`` principal directions (not centred); with U and
    V orthonormal bases of two of them, the singular values of UᵀV are the cosines of the principal angles.

    - ``"principal_angles"``: Π_i cos² θ_i = det(UᵀV)²; subspaces of different dimensions have the value 0;
    - ``"projection"``: Σ_i cos² θ_i = ‖UᵀV‖²_F, the inner product of the projections onto the two;
    - ``"binet_cauchy"``: the sum of det(A_S B_Tᵀ)² over all choices S and T of ``dim`` vectors of each bag. Lengths of
      vectors matter; it is the elementary symmetric polynomial of order ``dim`` in the squared singular values of A Bᵀ.

    All are positive definite and independent of the order of the vectors. The first two depend only on the spanned
    subspace.

    Parameters
    ----------
    kind : {"principal_angles", "projection", "binet_cauchy"}, default="principal_angles"
        The similarity.
    dim : int, optional
        Dimension of the subspaces; by default all that the vectors span. For ``"binet_cauchy"`` the order of the
        determinants, which must be given.
    kernel : Kernel, optional
        Kernel whose feature space defines spans and angles; by default the vectors themselves.
    tol : float, default=1e-8
        Directions whose singular value is at most ``tol`` times the largest are ignored.

    References
    ----------
    .. [Wolf2003] L. Wolf and A. Shashua. Learning over sets using kernel principal angles. Journal of Machine Learning
       Research 4, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Subspace
    >>> plane = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    >>> tilted = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])    # by 45 degrees
    >>> round(Subspace().pair(plane, tilted), 6), round(Subspace("projection").pair(plane, tilted), 6)
    (0.5, 1.5)
    """

    _block_entries = 1 << 12

    def __init__(
        self,
        kind: str = "principal_angles",
        dim: int | None = None,
        kernel: Kernel | None = None,
        tol: float = 1e-8,
    ) -> None:
        self.kind = kind
        self.dim = dim
        self.kernel = kernel
        self.tol = tol

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.kind == "projection" and self.kernel is None

    def _check_params(self) -> None:
        check_choice("kind", self.kind, ("principal_angles", "projection", "binet_cauchy"))
        if self.dim is not None:
            check_count("dim", self.dim)
        elif self.kind == "binet_cauchy":
            raise ValueError("dim must be given for kind='binet_cauchy': it is the order of the determinants")
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0 <= self.tol < 1:
            raise ValueError(f"tol must be a number of at least 0 and below 1, got {self.tol!r}")
        if self.kernel is not None:
            check_kernel("kernel", self.kernel)._check_params()
            require_positive_definite(self.kernel, "Subspace")

    # ------------------------------------------------------------------ spans

    def _prepare(self, X: Any) -> _Spans:
        offsets, elements = stacked_bags(X)
        if self.kernel is None:
            elements = _vectors(elements, len(offsets) - 1)
            bases = [self._basis(i, elements[low:high]) for i, (low, high) in enumerate(_stretches(offsets))]
            starts = _ends(len(basis) for basis in bases)
            flat = np.concatenate(bases) if bases else np.zeros((0, 0))
            return _Spans(starts, flat, starts, None)
        prepared = self.kernel._prepare(elements) if offsets[-1] else elements
        weights = [self._weights(i, prepared[low:high]) for i, (low, high) in enumerate(_stretches(offsets))]
        return _Spans(
            _ends(w.shape[1] for w in weights),
            prepared,
            offsets,
            sp.block_diag(weights, format="csc") if weights else None,
        )

    def _basis(self, i: int, vectors: np.ndarray) -> np.ndarray:
        """Orthonormal rows, or rows with the same inner products in all directions as the vectors."""
        _, values, directions = np.linalg.svd(vectors, full_matrices=False)
        kept = self._rank(i, values)
        return directions[:kept] * values[:kept, None] if self.kind == "binet_cauchy" else directions[:kept]

    def _weights(self, i: int, elements: Any) -> np.ndarray:
        """The same, as combinations of elements: eigenvectors of their Gram matrix."""
        assert self.kernel is not None
        values, vectors = np.linalg.eigh(self.kernel._whole(elements, None, Work()))
        values, vectors = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]
        kept = self._rank(i, values, squared=True)
        return vectors[:, :kept] if self.kind == "binet_cauchy" else vectors[:, :kept] / values[:kept]

    def _rank(self, i: int, values: np.ndarray, squared: bool = False) -> int:
        """Dimensions of a span. Roots of eigenvalues are known to 1e-8 only."""
        tol = max(self.tol, 1e-7) if squared else self.tol
        rank = int((values > tol * values.max(initial=0.0)).sum())
        if self.kind == "binet_cauchy":
            return rank
        if rank == 0:
            raise ValueError(f"bag {i} spans no subspace: all its vectors are 0")
        if self.dim is not None and rank < self.dim:
            raise ValueError(f"bag {i} spans {rank} dimensions, dim={self.dim} was requested")
        return rank if self.dim is None else self.dim

    # ------------------------------------------------------------------ matrices

    def _gram(self, A: _Spans, B: _Spans | None, work: Work) -> np.ndarray:
        other = A if B is None else B
        C = self._cross(A, B, work)
        if self.kind == "projection":
            sums = _group_sums(_group_sums(C**2, A.offsets).T, other.offsets).T
            K = np.array(sums)
        else:
            K = self._by_sizes(C, A.offsets, other.offsets)
        return np.asarray(mirrored(K) if B is None else K, work.dtype)

    def _cross(self, A: _Spans, B: _Spans | None, work: Work) -> np.ndarray:
        """UᵀV for all bases at once."""
        other = A if B is None else B
        if self.kernel is None:
            return A.elements @ other.elements.T
        G = self.kernel._whole(A.elements, None if B is None else B.elements, Work(work.threads))
        return np.asarray(A.weights.T @ (other.weights.T @ G.T).T)

    def _by_sizes(self, C: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The values of all blocks of C, those of one shape together."""
        K = np.zeros((len(rows) - 1, len(columns) - 1))
        heights, widths = np.diff(rows), np.diff(columns)
        value: Callable[[np.ndarray], np.ndarray]
        for height in np.unique(heights):
            for width in np.unique(widths):
                if self.kind == "principal_angles" and height != width:
                    continue
                i, j = np.flatnonzero(heights == height), np.flatnonzero(widths == width)
                at = (rows[i][:, None] + np.arange(height)).ravel()
                to = (columns[j][:, None] + np.arange(width)).ravel()
                blocks = C[np.ix_(at, to)].reshape(len(i), height, len(j), width).transpose(0, 2, 1, 3)
                value = _squared_determinant if self.kind == "principal_angles" else self._minors
                K[np.ix_(i, j)] = value(blocks)
        return K

    def _minors(self, blocks: np.ndarray) -> np.ndarray:
        """Σ of all squared minors of order dim: e_dim of the squared singular values."""
        order = int(self.dim or 1)
        if min(blocks.shape[2:]) < order:
            return np.zeros(blocks.shape[:2])
        squared = np.linalg.svd(blocks, compute_uv=False) ** 2
        e = np.zeros((order + 1, *squared.shape[:2]))
        e[0] = 1.0
        for s in range(squared.shape[2]):
            for k in range(order, 0, -1):
                e[k] += e[k - 1] * squared[..., s]
        return e[order]

    def _features(self, parts: list[_Spans]) -> list[Any]:
        """The entries of the projections U Uᵀ."""
        made = []
        for spans in parts:
            outer = np.einsum("ri,rj->rij", spans.elements, spans.elements).reshape(len(spans.elements), -1)
            made.append(_group_sums(outer, spans.offsets))
        return made


def _squared_determinant(blocks: np.ndarray) -> np.ndarray:
    return np.linalg.det(blocks) ** 2


def _group_sums(G: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return np.add.reduceat(G, offsets[:-1], axis=0)


def _vectors(elements: Any, n_bags: int) -> np.ndarray:
    if sp.issparse(elements):
        elements = elements.toarray()
    try:
        vectors = np.asarray(elements, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "bags must be arrays of vectors of the same length; for other objects give a kernel"
        ) from error
    if n_bags and vectors.ndim != 2:
        raise ValueError(
            f"bags must be arrays of 2 dimensions, one row a vector, got elements of {vectors.ndim - 1} dimensions; "
            "for other objects give a kernel"
        )
    if not np.isfinite(vectors).all():
        raise ValueError("the vectors of bags must not hold NaN or infinite values")
    return vectors


def _ends(sizes: Iterable[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(list(sizes), dtype=np.int64)]).astype(np.int64)


def _stretches(offsets: np.ndarray) -> Iterable[tuple[int, int]]:
    return zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
