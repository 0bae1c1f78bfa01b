"""A risk over partitioned examples: in memory, in a store, or on the workers of a cluster.

    value(w) = Σ_p value_p(w),   gradient(w) = Σ_p gradient_p(w)

Each partition has its own risk in the layout of the whole model. Sums follow a binary tree over the partition numbers,
(0 + 1) + (2 + 3), …, for any worker and any order of arrival. So the weights depend only on the partitioning of the
examples, to the last bit, for any number of workers and after any failure. Solvers that need values, gradients and
planes work unchanged. Solvers that visit single examples run on each partition, and their weights are averaged
(:class:`Rounds`).
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import importlib.metadata
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import scipy
from scipy.sparse import csr_array, vstack
from sklearn.exceptions import NotFittedError

from mercer import _core
from mercer._progress import say
from mercer._validation import is_dask, is_partitioned
from mercer.data.labels import TagSequences
from mercer.data.partitions import Partition, Partitions
from mercer.data.sequences import Rows, Sequences
from mercer.data.store import Store, StoreOnWorkers
from mercer.exceptions import InfeasibleError, PartError, StoreError
from mercer.learning.checkpoint import array_of, count_of, fingerprint
from mercer.learning.losses import AdaptiveHybrid, Loss
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers import BCFW, BMRM, LBFGS, OWLQN, Dual, Newton, Result, Solver
from mercer.learning.solvers.averaged import _MistakeDriven
from mercer.learning.solvers.sgd import SGD, warm_up
from mercer.learning.strength import mean_square

__all__ = [
    "PartitionedRisk",
    "Place",
    "Rounds",
    "RowsInParts",
    "TreeSum",
    "computed_on_workers",
    "gram_matrix",
    "n_examples",
    "out_of_memory",
    "place_of",
]

_T = TypeVar("_T")

KEPT_BYTES = 64 * 2**20
"""Bytes of a store whose encoded pieces stay in memory; the others are read again in every pass."""


# ------------------------------------------------------------------------------------------------ sums


Node = tuple[int, int, Any]  # level, number: the sum over parts number · 2**level … (number + 1) · 2**level − 1


class TreeSum:
    """Sum partitions in any order of arrival, with a unique result.

    Parameters
    ----------
    n : int
        Number of parts.
    add : callable (left, right) → sum
        May change its first argument.

    Examples
    --------
    >>> total = TreeSum(3, lambda a, b: a + b)
    >>> for part in (2, 0, 1):
    ...     total.put(0, part, 10.0 ** -part)
    >>> total.result()
    1.11
    """

    def __init__(self, n: int, add: Callable[[Any, Any], Any]) -> None:
        self.n, self.add = n, add
        self.nodes: dict[tuple[int, int], Any] = {}

    def put(self, level: int, number: int, value: Any) -> None:
        """Add the sum of a block, and merge blocks that are now complete."""
        while 1 << level < self.n:
            sibling = number ^ 1
            if sibling << level < self.n:
                if (level, sibling) not in self.nodes:
                    break
                other = self.nodes.pop((level, sibling))
                value = self.add(value, other) if sibling > number else self.add(other, value)
            level, number = level + 1, number // 2
        self.nodes[level, number] = value

    def pending(self) -> list[Node]:
        """Return the sums over the complete blocks, for another tree to continue."""
        return [(level, number, value) for (level, number), value in sorted(self.nodes.items(), key=_first)]

    def result(self) -> Any:
        """Return the sum over all partitions."""
        ((_, value),) = self.nodes.items()
        return value


def _first(item: tuple[tuple[int, int], Any]) -> int:
    (level, number), _ = item
    return number << level


def add_arrays(left: Any, right: Any) -> Any:
    """Return the sum of numbers, of arrays (in place), or of tuples of these."""
    if isinstance(left, tuple):
        return tuple(add_arrays(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray):
        left += right
        return left
    return left + right


# ------------------------------------------------------------------------------------------------ what parts answer


def _value_and_gradient(risk: Any, w: np.ndarray) -> tuple[float, np.ndarray]:
    return risk.value_and_gradient(w)


def _value(risk: Any, w: np.ndarray) -> tuple[float]:
    return (risk.value(w),)


def _curvature(risk: Any, w: np.ndarray) -> tuple[int, np.ndarray]:
    """1 if there is no estimate for this part, and the estimate."""
    out = np.zeros(len(w))
    known = not risk.n_examples or risk.curvature(w, out)
    return int(not known), out


def _strength(risk: Any, n_labels: int) -> tuple[float, float, np.ndarray]:
    """Σ‖x‖², the number of rows, and how often each label occurs."""
    rows = risk.X.rows if hasattr(risk.X, "rows") else risk.X.nodes
    counts = np.zeros(n_labels)
    if isinstance(risk.y, TagSequences):
        counts += np.bincount(risk.y.labels[risk.y.labels >= 0], minlength=n_labels)
    return mean_square(rows) * rows.shape[0], float(rows.shape[0]), counts


def _facts(risk: Any) -> tuple[int, int, bool]:
    """Examples, weights, and whether an output is only partly known."""
    structure = getattr(risk, "structure", None)
    return risk.n_examples, risk.n_weights, structure is not None and bool(structure.is_partial(risk.y))


def _warm_up(risk: Any, w: np.ndarray, penalty: Penalty, C: float, n: int, seed: int, number: int) -> tuple[np.ndarray]:
    """The weights after an epoch, times the share of the examples."""
    share = risk.n_examples / n
    return (share * warm_up(risk, penalty, C / share, 1, seed + number, w),) if share else (np.zeros_like(w),)


def _round(
    risk: Any, w: np.ndarray, solver: Solver, penalty: Penalty, C: float, epochs: int, n: int, seed: int, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """A solver's pass over a part: its last weights and its answer, times the share of the examples."""
    if not risk.n_examples:
        return np.zeros_like(w), np.zeros_like(w)
    share = risk.n_examples / n
    start = None if isinstance(solver, (BCFW, Dual)) else w
    result = solver.minimize(
        risk, penalty, C / share, start, max_iter=epochs, tol=0.0, monitor=Monitor(), random_state=seed + number
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return share * np.asarray(result.state.get("w", result.w)), share * result.w


def _planes(risk: Any, w: np.ndarray, examples: slice | None) -> tuple[np.ndarray, csr_array, np.ndarray]:
    return risk.oracle(w, examples)


def _lowest(risk: Any, w: np.ndarray, examples: slice | None) -> tuple[np.ndarray, csr_array]:
    return risk.lowest(w, examples)


def _digest(risk: Any) -> str:
    if not risk.n_examples:
        return ""
    return fingerprint(None, [*risk.shell._arrays(risk.X, risk.y), getattr(risk, "weights", None)])


SUMS = {"value_and_gradient": _value_and_gradient, "value": _value, "curvature": _curvature, "strength": _strength,
        "warm_up": _warm_up, "round": _round}  # fmt: skip
LISTS = {"facts": _facts, "planes": _planes, "lowest": _lowest, "digest": _digest}
NUMBERED = frozenset({"warm_up", "round"})


def ask(risk: Any, number: int, verb: str, arguments: tuple[Any, ...]) -> Any:
    """Return the result of a call on one partition; errors name the partition."""
    more = {"number": number} if verb in NUMBERED else {}
    try:
        return (SUMS.get(verb) or LISTS[verb])(risk, *arguments, **more)  # type: ignore[operator]
    except InfeasibleError as error:
        raise PartError(number, f"{error}", "infeasible") from error
    except MemoryError as error:
        raise out_of_memory(number) from error


def out_of_memory(number: int) -> MemoryError:
    """Return an error that names the partition and suggests remedies."""
    return MemoryError(
        f"partition {number} does not fit into memory: cut the data into more partitions, or write them to a store "
        "(mercer.data.Store), which is read piece by piece"
    )


# ------------------------------------------------------------------------------------------------ shells


def surveyed(model: Any, part: Partition, number: int) -> Any:
    """Return labels, features and columns of one partition; None if it has no examples."""
    if n_examples(part.X) == 0:
        return None
    try:
        return model._survey(own_rows(part.X), part.y, part.sample_weight)
    except PartError:
        raise
    except (TypeError, ValueError) as error:
        raise PartError(number, str(error)) from error
    except MemoryError as error:
        raise out_of_memory(number) from error


def joined(model: Any, left: Any, right: Any) -> Any:
    """Merge two surveys."""
    if left is None or right is None:
        return right if left is None else left
    return model._join(left, right)


def grown(model: Any, part: Partition, number: int, loss: Any, last: Any) -> Any:
    """Return a model after one more partition, with its new labels and features added."""
    if n_examples(part.X) == 0:
        return model
    model = copy.copy(model)
    try:
        model._learn(own_rows(part.X), part.y, loss, last)
    except (TypeError, ValueError) as error:
        raise PartError(number, str(error)) from error
    except MemoryError as error:
        raise out_of_memory(number) from error
    return model


def local_risk(shell: Any, part: Partition, number: int, loss: Any) -> Any:
    """Return the risk of one partition in the layout of the whole model."""
    if n_examples(part.X) == 0:
        return EmptyRisk(shell)
    try:
        risk = shell._local(own_rows(part.X), part.y, loss)
        risk = shell._weigh(risk, part.sample_weight)
        risk.shell = shell
        return risk
    except (TypeError, ValueError) as error:
        raise PartError(number, str(error)) from error
    except MemoryError as error:
        raise out_of_memory(number) from error


class EmptyRisk:
    """The risk of a partition without examples."""

    n_examples = 0

    def __init__(self, shell: Any) -> None:
        self.n_weights = -1
        self.X = SimpleNamespace(rows=Rows(dense=np.zeros((0, 0))))
        self.y = None

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return 0 and 0."""
        return 0.0, np.zeros(len(w))

    def value(self, w: np.ndarray) -> float:
        """0."""
        return 0.0

    def oracle(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array, np.ndarray]:
        """No planes."""
        return np.zeros(0), csr_array((0, len(w))), np.zeros(0)

    def lowest(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array]:
        """No leads."""
        return np.zeros(0), csr_array((0, len(w)))


def own_rows(X: Any) -> Any:
    """Return X with only its own rows if its sequences are part of a longer matrix, so that row sums are right."""
    if isinstance(X, Sequences) and (X.offsets[0] != 0 or X.offsets[-1] != X.rows.shape[0]):
        return X[np.arange(len(X))]
    return X


def n_examples(X: Any) -> int:
    """Return the number of inputs of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


# ------------------------------------------------------------------------------------------------ places


class Place(ABC):
    """The location of the partitions, and the computations there."""

    n_parts: int
    bytes_moved: int = 0
    """Bytes that weights and sums took on their way, so far."""

    @abstractmethod
    def survey(self, model: Any) -> Any:
        """Return the merged surveys of all partitions."""

    @abstractmethod
    def grow(self, model: Any, loss: Any) -> Any:
        """Return the model after all partitions in turn."""

    @abstractmethod
    def part(self, i: int) -> Partition:
        """Return the examples of a partition, in this process."""

    @abstractmethod
    def each(self, function: Callable[..., _T], *arguments: Any) -> list[_T]:
        """Return a function of the partition and its number for every partition, computed where the partition is."""

    @abstractmethod
    def settle(self, shell: Any, loss: Any) -> None:
        """Make the risks of the partitions for a model with its layout."""

    @abstractmethod
    def sums(self, verb: str, w: np.ndarray | None, *arguments: Any) -> Any:
        """Return the sum of the results of the partitions."""

    @abstractmethod
    def lists(self, verb: str, w: np.ndarray | None, *arguments: Any, only: int | None = None) -> list[Any]:
        """Return the results of the partitions in order, or of the one partition ``only``."""

    def close(self) -> None:  # noqa: B027
        """Release the resources of the training."""

    def describe(self) -> str:
        """Return a description for progress lines."""
        return f"{self.n_parts} partitions"


class Here(Place):
    """Partitions in this process, in memory or in a store, processed in turn."""

    def __init__(self, parts: Sequence[Partition] | Store) -> None:
        self.parts, self.n_parts = parts, len(parts)
        self.store = parts if isinstance(parts, Store) else None
        self._kept: dict[int, Any] = {}
        self._shell: Any = None

    def survey(self, model: Any) -> Any:
        """See :class:`Place`."""
        tree = TreeSum(self.n_parts, lambda a, b: joined(model, a, b))
        for i in range(self.n_parts):
            tree.put(0, i, self._with(i, partial(surveyed, model)))
            self._trim()
        return tree.result()

    def grow(self, model: Any, loss: Any) -> Any:
        """See :class:`Place`."""
        last = None
        for i in range(self.n_parts):
            model = self._with(i, partial(grown, model, loss=loss, last=last))
            last = SimpleNamespace(**vars(model)) if hasattr(model, "n_features_in_") or i else None
            self._trim()
        return model

    def part(self, i: int) -> Partition:
        """See :class:`Place`."""
        return self.parts[i]

    def each(self, function: Callable[..., _T], *arguments: Any) -> list[_T]:
        """See :class:`Place`."""
        return [self._with(i, lambda part, number: function(part, number, *arguments)) for i in range(self.n_parts)]

    def settle(self, shell: Any, loss: Any) -> None:
        """See :class:`Place`."""
        self._shell, self._loss = shell, loss
        self._kept, room = {}, KEPT_BYTES
        for i in range(self.n_parts):
            if self.store is not None:
                room -= self.store.pieces[i]["bytes"]
                if room < 0:
                    break
            self._kept[i] = local_risk(shell, self.parts[i], i, loss)
        self._trim()

    def sums(self, verb: str, w: np.ndarray | None, *arguments: Any) -> Any:
        """See :class:`Place`."""
        tree = TreeSum(self.n_parts, add_arrays)
        for i in range(self.n_parts):
            tree.put(0, i, self._ask(i, verb, w, arguments))
        return tree.result()

    def lists(self, verb: str, w: np.ndarray | None, *arguments: Any, only: int | None = None) -> list[Any]:
        """See :class:`Place`."""
        return [self._ask(i, verb, w, arguments) for i in (range(self.n_parts) if only is None else [only])]

    def _ask(self, i: int, verb: str, w: np.ndarray | None, arguments: tuple[Any, ...]) -> Any:
        given = arguments if w is None else (w, *arguments)
        if i in self._kept:
            return ask(self._kept[i], i, verb, given)
        return self._with(
            i, lambda part, number: ask(local_risk(self._shell, part, number, self._loss), number, verb, given)
        )

    def use(self, i: int, function: Callable[[Partition, int], _T]) -> _T:
        """Return a function of a partition and its number, then release its memory."""
        return self._with(i, function)

    def _with(self, i: int, use: Callable[[Partition, int], _T]) -> _T:
        """Use a part, and give its memory back where it is that of a file."""
        try:
            return use(self.parts[i], i)
        finally:
            if self.store is not None and i not in self._kept:
                self.store.drop(i)

    def _trim(self) -> None:
        """Give back what the names of a piece took: they are small and many, and glibc keeps what lies between them."""
        if self.store is not None:
            with contextlib.suppress(OSError, AttributeError):  # another C library
                ctypes.CDLL(None).malloc_trim(0)

    def describe(self) -> str:
        """See :class:`Place`."""
        if self.store is None:
            return super().describe()
        return f"{self.n_parts} partitions, {self.store.nbytes / 1e6:,.0f} MB on disk"


def place_of(X: Any, y: Any, sample_weight: Any) -> Place:
    """Return the place of partitioned examples of any kind."""
    check_alone(X, y, sample_weight)
    if isinstance(X, (Store, Partitions)):
        if not len(X):
            where = f"{X.path}: there is no store here, or it is still empty" if isinstance(X, Store) else ""
            raise StoreError(where) if isinstance(X, Store) else ValueError("nothing to learn from: no partitions")
        return Here(X)
    if isinstance(X, StoreOnWorkers) or is_dask(X):
        import mercer.learning._dask as _dask

        return _dask.OnWorkers(X, y, sample_weight)
    raise TypeError(f"expected a Store, Partitions or a Dask collection, found {type(X).__name__}")


# ------------------------------------------------------------------------------------------------ the risk


class PartitionedRisk(Risk):
    """The sum of the risks of partitions, with the interface of `Risk`.

    Parameters
    ----------
    place : Place
        The location of the partitions, after ``settle``.
    shell : RiskEstimator
        The model with its layout and without weights.
    loss : Loss
    """

    at_hand = False

    def __init__(self, place: Place, shell: Any, loss: Any) -> None:
        self.place, self.shell = place, shell
        if isinstance(loss, Loss):  # rankers have none
            self.loss = loss
        facts = place.lists("facts", None)
        self.sizes = [count for count, _, _ in facts]
        layouts = {width for count, width, _ in facts if count}
        if len(layouts) > 1:
            raise ValueError(f"partitions have different layouts of weights: {sorted(layouts)}")
        if not layouts:
            raise ValueError("nothing to learn from: all partitions are empty")
        (self._n_weights,) = layouts
        self.partial = any(partial for _, _, partial in facts)
        self.structure: Any = getattr(shell, "structure_", None)
        if self.structure is None and hasattr(shell, "_structure"):
            with contextlib.suppress(NotFittedError):  # one of the user's own, whose width is that of the weights
                self.structure = shell._structure()
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.X = SimpleNamespace(rows=self, nodes=self)
        self.y = self
        self._label_counts: np.ndarray | None = None

    @property
    def n_examples(self) -> int:
        """Return the number of examples in all partitions."""
        return int(self._starts[-1])

    @property
    def n_weights(self) -> int:
        """Return the length of the weight vector."""
        return self._n_weights

    def check_known(self) -> None:
        """Raise ValueError if an output is only partly known."""
        if self.partial:
            super().check_known()

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """Return the summed loss and its gradient."""
        value, gradient = self.place.sums("value_and_gradient", w)
        if out is None:
            return value, gradient
        out[:] = gradient
        return value, out

    def curvature(self, w: np.ndarray, out: np.ndarray) -> bool:
        """Return the estimate of the diagonal of the Hessian."""
        unknown, sums = self.place.sums("curvature", w)
        out[:] = sums
        return not unknown

    def value(self, w: np.ndarray) -> float:
        """The summed loss."""
        return self.place.sums("value", w)[0]

    def oracle(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array, np.ndarray]:
        """Return the highest plane of each example at w, one partition after the other."""
        parts = self._of("planes", w, examples)
        values, slopes, offsets = zip(*parts, strict=True)
        return np.concatenate(values), csr_array(vstack(slopes, format="csr")), np.concatenate(offsets)

    def lowest(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array]:
        """Return the largest margin of each true output, one partition after the other."""
        leads, slopes = zip(*self._of("lowest", w, examples), strict=True)
        return np.concatenate(leads), csr_array(vstack(slopes, format="csr"))

    def _of(self, verb: str, w: np.ndarray, examples: slice | None) -> list[Any]:
        if examples is None:
            return self.place.lists(verb, w, None)
        start, stop, _ = examples.indices(self.n_examples)
        parts = []
        for p in range(int(np.searchsorted(self._starts, start, side="right")) - 1, self.place.n_parts):
            first = int(self._starts[p])
            if first >= stop:
                break
            if self.sizes[p]:
                here = slice(max(start - first, 0), min(stop - first, self.sizes[p]))
                parts += self.place.lists(verb, w, here, only=p)
        return parts

    def warm_up(self, penalty: Penalty, C: float, epochs: int, random_state: Any) -> np.ndarray:
        """Return the weights after a few epochs on each partition, averaged after each epoch."""
        w = np.zeros(self.n_weights)
        if not getattr(self.structure, "quick_online", False):
            return w
        seeds = np.random.default_rng(0 if random_state is None else _seed(random_state))
        for _ in range(epochs):
            (w,) = self.place.sums("warm_up", w, penalty, C, self.n_examples, int(seeds.integers(2**31)))
        return w

    # What the rule for C asks of inputs and outputs; see mercer.learning.strength.

    def mean_square(self) -> float:
        """Return the mean of ‖x‖² over all rows."""
        square, rows, _ = self._strength_sums()
        return square / rows if rows else 0.0

    def label_counts(self) -> np.ndarray:
        """Return the count of each label."""
        return self._strength_sums()[2]

    def _strength_sums(self) -> tuple[float, float, np.ndarray]:
        if self._label_counts is None:
            self._sums = self.place.sums("strength", None, getattr(self.structure, "n_labels", 0))
            self._label_counts = self._sums[2]
        return self._sums

    def digest(self) -> list[str]:
        """Return a digest that identifies these examples."""
        return self.place.lists("digest", None)


def _seed(random_state: Any) -> int:
    from mercer.structures.base import check_random_seed

    return int(check_random_seed(random_state))


# ------------------------------------------------------------------------------------------------ solvers


class Rounds(Solver):
    """Run an online solver on every partition, averaging between rounds, then a batch solver.

    With ``then``, the result is that of the second solver, which minimises the objective over all examples; the rounds
    only provide its start. Rules without an objective (the perceptron, passive-aggressive) have no second solver. For
    separable data the averaged perceptron still ends without mistakes [McDonald2010]. Otherwise there is no guarantee,
    and the weights depend on the partitions.
    """

    default_tol = 1e-4

    def __init__(self, local: Solver, then: Solver | None, rounds: int) -> None:
        self.local, self.then, self.rounds = local, then, rounds
        self.name = local.name
        last = local if then is None else then
        self.default_max_iter, self.default_tol = last.default_max_iter, last.default_tol
        self.frees_constants = last.frees_constants

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Apply the check of the second solver, if there is one."""
        if self.then is not None:
            self.then.check(risk, penalty)
        if getattr(risk, "weighted", False) and self.then is None:
            raise ValueError(f"solver {self.name!r} takes no weights of examples (sample_weight); use 'auto'")

    def minimize(
        self,
        risk: Any,
        penalty: Penalty,
        C: float,
        w0: np.ndarray | None,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """See :class:`Solver`."""
        more: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "monitor": monitor, "random_state": random_state}
        if resumed is not None and self.then is not None:
            return self.then.minimize(risk, penalty, C, w0, resumed=resumed, **more)
        w = np.zeros(risk.n_weights) if w0 is None else np.array(w0, dtype=float)
        mean, done = np.zeros(risk.n_weights), 0
        seeds = np.random.default_rng(0 if random_state is None else _seed(random_state))
        if resumed is not None:
            with monitor.restoring():
                w, mean = (array_of(resumed[1], name, w.shape) for name in ("w", "mean"))
                done = count_of(resumed[0], "rounds")
            seeds.integers(2**31, size=done)
        rounds = min(self.rounds, max_iter) if self.then is not None else max_iter
        try:
            while done < rounds:
                done += 1
                seed = int(seeds.integers(2**31))
                epochs = 1 if self.local.online else 5
                w, answer = risk.place.sums("round", w, self.local, penalty, C, epochs, risk.n_examples, seed)
                mean += (answer - mean) / done
                if self.then is None:
                    stop = monitor.record(partial(np.asarray, mean), loss=risk.value(mean), passes=2 * done)
                    monitor.save({"rounds": done}, partial(dict, w=w, mean=mean))
                    if stop:
                        break
        except KeyboardInterrupt:
            return Result(mean, False, "interrupted: these are the averaged weights so far", True)
        if self.then is not None:
            start = w if self.local.online else mean
            return self.then.minimize(risk, penalty, C, start, **more)
        best = mean if monitor.best_w is None else monitor.best_w
        return Result(best, True, f"all {rounds} rounds done")


def solver_for_parts(solver: Solver, loss: Any, penalty: Penalty) -> Solver:
    """Return the solver that does on partitions what this one does on examples in memory.

    Raises
    ------
    ValueError
        If there is none, with the reason.
    """
    if isinstance(solver, _MistakeDriven):
        return Rounds(solver, None, 0)
    smooth = OWLQN() if penalty.l1 else LBFGS()
    if isinstance(solver, SGD):
        return Rounds(solver, smooth, 3)
    if isinstance(solver, Newton):
        return LBFGS(warm_up=0)
    if isinstance(solver, (BCFW, Dual)):
        return Rounds(solver, BMRM(), 1)
    if solver.reads_examples:
        raise ValueError(
            f"solver {solver.name!r} visits examples in memory: on partitions use 'auto', 'lbfgs', 'owlqn', 'bmrm', "
            "'cutting-plane' or 'subgradient'"
        )
    return solver


# ------------------------------------------------------------------------------------------------ fitting and asking


def fitted(model: Any, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fit a model to partitioned examples; the wrapper of every ``fit`` calls this."""
    names = ("X", "y", "sample_weight")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    name = type(model).__name__
    reason = model._reason_against_parts()
    if reason is not None:
        raise TypeError(f"{name} cannot learn from partitions: {reason}")
    if method.__name__ != "fit":
        raise TypeError(f"{method.__name__} takes examples in memory; give partitions to fit")
    if model._parts_how == "sums":
        return method(model, **{"y": None, **given})
    X = given.pop("X")
    if model._parts_how == "first":
        part = first_part(X, given.pop("y", None))
        return method(model, part.X, **({} if part.y is None else {"y": part.y}), **given)
    place = place_of(X, given.pop("y", None), given.pop("sample_weight", None))
    try:
        return model._fit_parts(place, **given)
    finally:
        place.close()


def first_part(X: Any, y: Any) -> Partition:
    """Return the first nonempty partition, in memory."""
    place = place_of(X, y, None)
    try:
        for i in range(place.n_parts):
            part = place.part(i)
            if n_examples(part.X):
                return part
    finally:
        place.close()
    raise ValueError("nothing to learn from: all partitions are empty")


@contextlib.contextmanager
def prepare(model: Any, X: Any, y: Any, sample_weight: Any, loss: Any, last: Any) -> Iterator[PartitionedRisk]:
    """Learn labels, features and structure from all partitions; yield the risk over them."""
    check_loss(loss)
    reason = model._reason_against_parts()
    if reason is not None:
        raise TypeError(f"{type(model).__name__} cannot learn from partitions: {reason}")
    place = place_of(X, y, sample_weight)
    try:
        if model.verbose:
            say(f"reading {place.describe()}")
        asker = copy.copy(model)
        if model._surveys:
            survey = place.survey(asker)
            if survey is None:
                raise ValueError("nothing to learn from: all partitions are empty")
            model._settle(survey, last)
        elif last is not None:
            raise ValueError(f"{type(model).__name__} cannot continue from an earlier fit (warm_start) on partitions")
        else:
            model.__dict__.update(vars(place.grow(asker, loss)))
        shell = copy.copy(model)
        loss = shell._loss_for_parts(loss)
        place.settle(shell, loss)
        yield PartitionedRisk(place, shell, loss)
    finally:
        place.close()


def asked(model: Any, method: str, X: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a fitted model on partitioned examples, lazily on a cluster."""
    if method == "score":
        return _score(model, X, *args, **kwargs)
    takes_y = method == "log_likelihood" and "y" in inspect.signature(getattr(model, method)).parameters
    if takes_y:
        check_alone(X, *args, **kwargs)
    if isinstance(X, StoreOnWorkers) or is_dask(X):
        import mercer.learning._dask as _dask

        return _dask.lazily(model, method, X, args, kwargs, takes_y)
    return _concatenated([answers(model, method, part, args, kwargs, takes_y) for part in X if n_examples(part.X)])


def answers(
    model: Any, method: str, part: Partition, args: tuple[Any, ...], kwargs: dict[str, Any], takes_y: bool = False
) -> Any:
    """Return the result of a fitted model on the examples of one partition."""
    given = (part.y, *args) if takes_y else args
    return getattr(model, method)(part.X, *given, **kwargs)


def check_alone(X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Raise an error for outputs passed with examples that contain theirs."""
    if isinstance(X, (Store, StoreOnWorkers, Partitions)) and (y is not None or sample_weight is not None):
        raise TypeError(f"a {type(X).__name__} holds y and sample_weight itself: pass it alone")


# ------------------------------------------------------------------------------------------------ matrices of parts


class RowsInParts:
    """A matrix with partitioned rows, for algorithms that only multiply by it.

    ``X @ w`` stacks the products of the partitions. ``X.T @ v`` sums them, and so does ``A @ X`` with a sparse matrix
    A, in the order of :class:`TreeSum`.

    Parameters
    ----------
    place : Place
    rows : callable (part, number) → matrix
        Computes the rows of a partition where the partition is; pickled for a cluster.
    sizes : list of int
        Number of rows of each partition.
    width : int
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import Partitions
    >>> from mercer.learning.partitioned import RowsInParts, place_of
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> rows = RowsInParts(place_of(Partitions([(X[:1],), (X[1:],)]), None, None), lambda part, i: part.X, [1, 2], 2)
    >>> rows @ np.ones(2), rows.T @ np.ones(3)
    (array([1., 5., 9.]), array([6., 9.]))
    """

    ndim = 2

    def __init__(self, place: Place, rows: Callable[..., Any], sizes: Sequence[int], width: int) -> None:
        self.place, self.rows = place, rows
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shape = (int(self.starts[-1]), width)

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        return np.concatenate(self.place.each(_times, self.rows, np.asarray(w)))

    def __rmatmul__(self, A: Any) -> np.ndarray:
        return self._summed(csr_array(A).tocsc())

    @property
    def T(self) -> _Transposed:
        """Return the transposed matrix, which multiplies a vector with one number per row."""
        return _Transposed(self)

    def _summed(self, left: Any) -> np.ndarray:
        """Σ_p left[:, rows of p] @ X_p."""
        tree = TreeSum(self.place.n_parts, add_arrays)
        for i, part in enumerate(self.place.each(_from_left, self.rows, left, self.starts)):
            tree.put(0, i, part)
        return np.asarray(tree.result())


class _Transposed:
    def __init__(self, rows: RowsInParts) -> None:
        self.rows = rows

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self.rows._summed(np.asarray(v))


def _times(part: Partition, number: int, rows: Callable[..., Any], w: np.ndarray) -> np.ndarray:
    return np.asarray(rows(part, number) @ w)


def _from_left(part: Partition, number: int, rows: Callable[..., Any], left: Any, starts: np.ndarray) -> np.ndarray:
    own = slice(int(starts[number]), int(starts[number + 1]))
    X = rows(part, number)
    product = left[:, own] @ X if left.ndim == 2 else X.T @ left[own]
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


def gram_matrix(kernel: Any, X: Any, Z: Any, dtype: Any, n_jobs: int | None = None) -> Any:
    """Return the Gram matrix over partitioned objects, computed in blocks; a Dask array for Dask collections.

    Parameters
    ----------
    kernel : Kernel
    X, Z : Store, Partitions or Dask collection of objects
        Without Z, the matrix of X with itself; blocks below the diagonal are copied from above.
    dtype : np.float64 or np.float32
    n_jobs : int or None
        Threads per block; workers use one, because each computes its own blocks.
    """
    for name, given in (("X", X), ("Z", Z)):
        if given is not None and not is_partitioned(given):
            raise TypeError(f"{name} must be in partitions as the other objects are, got {type(given).__name__}")
    if any(is_dask(one) or isinstance(one, StoreOnWorkers) for one in (X, Z)):
        import mercer.learning._dask as _dask

        return _dask.gram_matrix(kernel, X, Z, dtype)
    rows, columns = list(X), None if Z is None else list(Z)
    blocks = [
        [gram_block(kernel, a, b, dtype, n_jobs) for b in (rows[i:] if columns is None else columns)]
        for i, a in enumerate(rows)
    ]
    if columns is None:
        blocks = [[blocks[j][i - j].T for j in range(i)] + blocks[i] for i in range(len(rows))]
    return np.block(blocks)


def computed_on_workers(function: Callable[..., _T], items: Iterable[Any], *arguments: Any) -> list[_T]:
    """Return ``function(item, *arguments)`` for every item, on the workers; items may be delayed or futures."""
    import mercer.learning._dask as _dask

    return _dask.computed(function, items, *arguments)


def gram_block(kernel: Any, a: Partition, b: Partition, dtype: Any, n_jobs: int | None = None) -> np.ndarray:
    """Return the kernel matrix of the objects of one partition with those of another."""
    n, m = n_examples(a.X), n_examples(b.X)
    if not n or not m:
        return np.zeros((n, m), dtype)
    return np.asarray(kernel(a.X, None if a is b else b.X, dtype=dtype, n_jobs=n_jobs))


def _concatenated(parts: list[Any]) -> Any:
    """Answers of all parts in the form of one."""
    if not parts:
        raise ValueError("nothing to predict: all partitions are empty")
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(_concatenated(list(column)) for column in zip(*parts, strict=True))
    if hasattr(first, "tocsr"):
        return vstack(parts, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return [item for part in parts for item in part]


def part_score(model: Any, part: Partition) -> tuple[float, float]:
    """Return the number of correct predictions in a partition, and of all predictions."""
    if not n_examples(part.X):
        return 0.0, 0.0
    units = float(model._score_units(part.y))
    if not units:
        return 0.0, 0.0
    return round(model.score(part.X, part.y) * units), units


def _score(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """Shares of what is right as sums of counts over parts."""
    if not hasattr(model, "_score_units"):
        raise TypeError(
            f"the score of {type(model).__name__} is not a share of examples, so it is no sum over partitions: "
            f"predict, and use a function of mercer.metrics"
        )
    if sample_weight is not None:
        raise TypeError("score on partitions counts all examples equally: leave sample_weight out")
    check_alone(X, y)
    if isinstance(X, StoreOnWorkers) or is_dask(X):
        import mercer.learning._dask as _dask

        counts = _dask.scores(model, X, y)
    else:
        counts = [part_score(model, part) for part in X]
    right, units = (sum(column) for column in zip(*counts, strict=True))
    if not units:
        raise ValueError("nothing to score: all partitions are empty")
    return right / units


def check_loss(loss: Any) -> None:
    """Raise an error for losses whose risk is not a sum over partitions."""
    if isinstance(loss, AdaptiveHybrid):
        raise ValueError("the adaptive hybrid loss looks at single examples to weigh them: it needs them in memory")


def environment() -> dict[str, str]:
    """Return the settings that must agree on all workers for sums that are equal to the last bit."""
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "mercer": importlib.metadata.version("mercer"),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "instruction set": _core.instruction_set(),
    }


def different(mine: dict[str, str], theirs: dict[str, str]) -> Iterable[str]:
    """Return the settings that differ between two environments, with both values."""
    return [f"{name} {theirs.get(name)} (here {value})" for name, value in mine.items() if theirs.get(name) != value]
