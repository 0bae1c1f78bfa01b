"""Outputs of any kind, defined by Python methods: the adapter of :class:`mercer.structured.CustomStructure`.

Part scores of a batch are the weights and the inputs themselves. Every method calls the user's methods, one example at
a time, and checks the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from mercer._validation import check_sparse
from mercer.exceptions import OracleError
from mercer.structures.base import Structure
from mercer.structures.costs import Cost
from mercer.structures.custom import CustomStructure

_DENSE = 16_384  # shorter rows are subtracted as vectors


class SparseRow(NamedTuple):
    """A feature vector by its nonzeros, in ascending order."""

    indices: np.ndarray
    values: np.ndarray

    def dot(self, w: np.ndarray) -> float:
        """⟨w, row⟩."""
        return float(self.values @ w[self.indices])

    def minus(self, other: SparseRow, size: int) -> SparseRow:
        """Return the difference of two rows of this length, without zeros."""
        if size <= _DENSE:
            dense = np.zeros(size)
            dense[self.indices] = self.values
            dense[other.indices] -= other.values
            indices = np.flatnonzero(dense)
            return SparseRow(indices, dense[indices])
        indices, places = np.unique(np.concatenate([self.indices, other.indices]), return_inverse=True)
        values = np.bincount(places, np.concatenate([self.values, -other.values]), len(indices))
        kept = values != 0
        return SparseRow(indices[kept], values[kept])


class Examples(Sequence[Any]):
    """A list whose slices keep the original item numbers."""

    def __init__(self, items: Sequence[Any], first: int = 0) -> None:
        self.items, self.first = items, first

    def __len__(self) -> int:
        return len(self.items)

    @property
    def lengths(self) -> np.ndarray:
        """Return 1 for each example, which is one part."""
        return np.ones(len(self.items), np.int64)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self.items))
            return Examples(self.items[start:stop], self.first + start)
        return self.items[key]


@dataclass
class JointScores:
    """Inputs, weights, and the outputs whose cost (times ``scale``) is added."""

    w: np.ndarray
    X: Examples
    cost_to: Sequence[Any] | None = None
    scale: float | np.ndarray = 1.0

    def __len__(self) -> int:
        return len(self.X)

    def scale_of(self, i: int) -> float:
        """Return the factor of the cost for one example."""
        return float(self.scale[i] if np.ndim(self.scale) else self.scale)  # type: ignore[index]


@dataclass
class FeatureSum:
    """Σ μ(y) Φ(x, y) over a batch: all that a gradient needs."""

    total: np.ndarray
    log_partition: np.ndarray
    X: Examples

    def subtract(self, other: FeatureSum) -> None:
        """``self -= other``."""
        self.total -= other.total

    def scale(self, factor: float) -> None:
        """``self *= factor``."""
        self.total *= factor


class Joint(Structure):
    """Adapt a user's structure to the interface of structures.

    Parameters
    ----------
    structure : object with ``features``, ``cost``, ``argmax`` and, where a loss needs them, ``argmin``, ``k_best``,
        ``log_partition``; see :class:`mercer.structured.CustomStructure`
    n_weights : int
        Length of its feature vectors.
    """

    def __init__(self, structure: Any, n_weights: int) -> None:
        self.structure, self.n_weights = structure, n_weights
        self._truth: dict[int, tuple[Any, SparseRow]] = {}
        self._found: dict[int, tuple[Any, SparseRow]] = {}

    # ------------------------------------------------------------------ the user's methods, checked

    def call(self, method: str, i: int, *args: Any, **options: Any) -> Any:
        """Call a method of the user's structure; its exceptions become an `OracleError` that names example i."""
        function = getattr(self.structure, method, None)
        if function is None:
            raise TypeError(f"{type(self.structure).__name__} has no {method}: this loss or solver needs it")
        try:
            return function(*args, **options)
        except (KeyboardInterrupt, OracleError, NotImplementedError):
            raise
        except Exception as error:
            raise OracleError(f"example {i}: {method} raised {type(error).__name__}: {error}") from error

    def features(self, x: Any, y: Any, i: int) -> SparseRow:
        """Return Φ(x, y), checked."""
        vector_of_x = self.call("features", i, x, y)
        if issparse(vector_of_x):
            try:
                matrix = check_sparse("features", vector_of_x).tocsr()
            except ValueError as error:
                raise OracleError(f"example {i}: {error}") from error
            if matrix.ndim == 2 and matrix.shape[0] != 1:
                raise OracleError(f"example {i}: features gave a matrix of {matrix.shape[0]} rows, expected one row")
            matrix.sum_duplicates()
            size, indices, values = matrix.shape[-1], matrix.indices, matrix.data.astype(float)
        else:
            vector = self._numbers("features", vector_of_x, i).ravel()
            size, indices = vector.size, np.flatnonzero(vector)
            values = vector[indices]
        if size != self.n_weights:
            raise OracleError(
                f"example {i}: features gave {size} numbers, the first example had {self.n_weights}: "
                "all feature vectors must have one length"
            )
        if not np.isfinite(values).all():
            raise OracleError(f"example {i}: features gave NaN or infinity")
        return SparseRow(indices, values)

    @staticmethod
    def _numbers(method: str, numbers: Any, i: int) -> np.ndarray:
        try:
            return np.asarray(numbers, dtype=float)
        except (TypeError, ValueError):
            raise OracleError(f"example {i}: {method} gave {type(numbers).__name__}, expected numbers") from None

    def cost(self, y: Any, z: Any, i: int) -> float:
        """Return Δ(y, z), checked."""
        value = float(self._numbers("cost", self.call("cost", i, y, z), i))
        if not np.isfinite(value) or value < 0:
            raise OracleError(f"example {i}: cost gave {value!r}: it must be a finite number of at least 0")
        return value

    def _row(self, x: Any, y: Any, i: int, keep: bool = False) -> SparseRow:
        """Φ(x, y); those of a true output and of the output found last are kept, as they are asked for again."""
        for held in (self._truth.get(i), self._found.get(i)):
            if held is not None and held[0] is y:
                return held[1]
        row = self.features(x, y, i)
        if keep:
            self._truth[i] = (y, row)
        return row

    def _rows(self, X: Examples, y: Sequence[Any], keep: bool = False) -> list[SparseRow]:
        return [self._row(x, one, X.first + i, keep) for i, (x, one) in enumerate(zip(X, y, strict=True))]

    # ------------------------------------------------------------------ between weights and part scores

    def scores(self, w: np.ndarray, X: Examples) -> JointScores:
        """Return the weights and the inputs: scores are computed lazily."""
        return JointScores(w, X)

    def backward(self, X: Examples, mu: FeatureSum, out: np.ndarray) -> None:
        """Add the summed features."""
        out += mu.total

    def batches(self, X: Examples, positions: int) -> Iterator[slice]:
        """Return small batches, so that an interrupt takes effect soon."""
        return super().batches(X, 256)

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: JointScores) -> tuple[list[Any], np.ndarray]:
        """Return the user's argmax, with costs if θ has them."""
        outputs, values = [], np.empty(len(theta))
        for i, x in enumerate(theta.X):
            number = theta.X.first + i
            if theta.cost_to is None:
                z = self.call("argmax", number, theta.w, x)
                values[i] = self.features(x, z, number).dot(theta.w)
            else:
                y, scale = theta.cost_to[i], theta.scale_of(i)
                # max scale Δ + ⟨w, Φ⟩ has the same argmax as max Δ + ⟨w / scale, Φ⟩.
                z = self.call("argmax", number, theta.w if scale == 1.0 else theta.w / scale, x, cost_to=y)
                self._found[number] = (z, self.features(x, z, number))
                values[i] = self._found[number][1].dot(theta.w) + scale * self.cost(y, z, number)
                truth = self._row(x, y, number, keep=True).dot(theta.w)
                if values[i] < truth - 1e-6 * max(1.0, abs(truth), abs(values[i])):
                    raise OracleError(
                        f"example {number}: argmax gave an output of score + cost {values[i]:.6g}, the true one has "
                        f"{truth:.6g}: argmax must find the highest score plus cost when cost_to is given "
                        "(the true output costs nothing)"
                    )
            outputs.append(z)
        return outputs, values

    def argmin(self, theta: JointScores) -> tuple[list[Any], np.ndarray]:
        """Return the user's argmin."""
        outputs = [self.call("argmin", theta.X.first + i, theta.w, x) for i, x in enumerate(theta.X)]
        return outputs, self.score(theta, outputs)

    def k_best(self, theta: JointScores, k: int) -> tuple[list[list[Any]], np.ndarray]:
        """Return the user's k_best: k lists of outputs (None if there are fewer) and scores (n, k)."""
        outputs: list[list[Any]] = [[] for _ in range(k)]
        scores = np.full((len(theta), k), -np.inf)
        for i, x in enumerate(theta.X):
            outputs_of_x = list(self.call("k_best", theta.X.first + i, theta.w, x, k))[:k]
            for rank in range(k):
                outputs[rank].append(outputs_of_x[rank][0] if rank < len(outputs_of_x) else None)
            scores[i, : len(outputs_of_x)] = [score for _, score in outputs_of_x]
        return outputs, scores

    def log_partition(self, theta: JointScores) -> np.ndarray:
        """Return the user's log Z."""
        return self.marginals(theta).log_partition

    def marginals(self, theta: JointScores) -> FeatureSum:
        """Return expected features and log Z, from the user's log_partition."""
        total, values = np.zeros(self.n_weights), np.empty(len(theta))
        for i, x in enumerate(theta.X):
            number = theta.X.first + i
            options = {} if theta.cost_to is None else {"cost_to": theta.cost_to[i]}
            answer = self.call("log_partition", number, theta.w, x, **options)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise OracleError(f"example {number}: log_partition must give (log Z, expected features)")
            values[i] = float(self._numbers("log_partition", answer[0], number))
            expected = answer[1].toarray().ravel() if issparse(answer[1]) else answer[1]
            expected = self._numbers("log_partition", expected, number)
            if expected.shape != (self.n_weights,) or not np.isfinite(expected).all():
                raise OracleError(
                    f"example {number}: log_partition must give (log Z, expected features of length {self.n_weights})"
                )
            total += expected
        return FeatureSum(total, values, theta.X)

    def log_cardinality(self, X: Examples) -> np.ndarray:
        """Return the user's log_cardinality, or log Z at weights of 0 if only log_partition is implemented."""
        written = getattr(type(self.structure), "log_cardinality", None)
        if written is None or written is CustomStructure.log_cardinality:
            try:
                return self.log_partition(JointScores(np.zeros(self.n_weights), X))
            except NotImplementedError:
                name = type(self.structure).__name__
                raise NotImplementedError(f"{name} has neither log_cardinality nor log_partition: add one") from None
        out = np.empty(len(X))
        for i, x in enumerate(X):
            value = self.call("log_cardinality", X.first + i, x)
            out[i] = float(self._numbers("log_cardinality", value, X.first + i))
            if np.isnan(out[i]) or out[i] == np.inf or -np.inf < out[i] < 0:
                raise OracleError(
                    f"example {X.first + i}: log_cardinality gave {value!r}: the logarithm of a number of outputs is "
                    "finite and at least 0, or -inf where there is none"
                )
        return out

    def sample(self, theta: JointScores, size: int, random_state: Any = None) -> Any:
        """Raise an error: user structures have no sampling."""
        raise TypeError("user-defined structures have no sample")

    def entropy(self, theta: JointScores) -> np.ndarray:
        """Raise an error: user structures have no entropy."""
        raise TypeError("user-defined structures have no entropy")

    def score(self, theta: JointScores, y: Sequence[Any]) -> np.ndarray:
        """Return ⟨w, Φ(x, y)⟩."""
        return np.array([row.dot(theta.w) for row in self._rows(theta.X, y)])

    # ------------------------------------------------------------------ truth, costs and margins

    def subtract_truth(self, mu: FeatureSum, y: Sequence[Any]) -> None:
        """Compute ``μ -= 1_y``."""
        self.add_output(mu, y, np.full(len(y), -1.0))

    def zeros(self, theta: JointScores) -> FeatureSum:
        """Return μ = 0."""
        return FeatureSum(np.zeros(self.n_weights), np.zeros(len(theta)), theta.X)

    def add_output(self, mu: FeatureSum, y: Sequence[Any], weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        for i, (x, one, weight) in enumerate(zip(mu.X, y, weights, strict=True)):
            if weight:
                row = self._row(x, one, mu.X.first + i)
                mu.total[row.indices] += weight * row.values

    def scaled(self, theta: JointScores, factor: float) -> JointScores:
        """Return factor · θ: the weights times the factor."""
        return replace(theta, w=factor * theta.w)

    def augment(
        self, theta: JointScores, y: Sequence[Any], cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> JointScores:
        """Return scores plus the structure's own cost."""
        if cost is not None and cost.decomposes:
            raise ValueError("a user-defined structure has its own cost: implement its method 'cost'")
        if np.ndim(scale) == 0 and float(scale) == 0.0:
            return theta  # the search itself, which a factor of 0 could not ask for
        return replace(theta, cost_to=y, scale=scale)

    def cost_between(self, y: Sequence[Any], z: Sequence[Any], cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z)."""
        first = getattr(y, "first", 0)
        return np.array([self.cost(a, b, first + i) for i, (a, b) in enumerate(zip(y, z, strict=True))])

    def equal(self, y: Sequence[Any], z: Sequence[Any]) -> np.ndarray:
        """Return the user's equal."""
        first = getattr(y, "first", 0)
        pairs = enumerate(zip(y, z, strict=True), first)
        return np.array([b is not None and bool(self.call("equal", i, a, b)) for i, (a, b) in pairs])

    def select(self, chosen: np.ndarray, y: Sequence[Any], z: Sequence[Any]) -> list[Any]:
        """Return y where chosen, else z."""
        return [a if pick else b for pick, a, b in zip(chosen, y, z, strict=True)]

    def difference(self, X: Examples, y: Sequence[Any], z: Sequence[Any]) -> csr_array:
        """Return Φ(x, y) − Φ(x, z)."""
        rows = [a.minus(b, self.n_weights) for a, b in zip(self._rows(X, y, keep=True), self._rows(X, z), strict=True)]
        indptr = np.concatenate([[0], np.cumsum([len(row.indices) for row in rows])])
        indices = np.concatenate([row.indices for row in rows])
        values = np.concatenate([row.values for row in rows])
        return csr_array((values, indices, indptr), shape=(len(rows), self.n_weights))
