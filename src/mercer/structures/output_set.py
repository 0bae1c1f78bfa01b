"""Small enumerated sets of outputs: every method enumerates all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mercer.structures.custom import CustomStructure

__all__ = ["Choices", "OutputSet"]


class _WrittenOut(CustomStructure):
    """Base of structures that give all outputs of an input with their features."""

    def table(self, x: Any) -> tuple[Sequence[Any], np.ndarray]:
        """Return the outputs of x, and their features, one row for each."""
        raise NotImplementedError

    def features(self, x: Any, y: Any) -> np.ndarray:
        """Return Φ(x, y)."""
        outputs, rows = self.table(x)
        return np.asarray(rows[self._place(outputs, y)])

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> Any:
        """Return the output with the highest score, plus its cost."""
        outputs, scores, _ = self._scored(w, x, cost_to)
        return outputs[int(np.argmax(scores))]

    def argmin(self, w: np.ndarray, x: Any) -> Any:
        """Return the output with the lowest score."""
        outputs, scores, _ = self._scored(w, x)
        return outputs[int(np.argmin(scores))]

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[Any, float]]:
        """Return the k best outputs and their scores."""
        outputs, scores, _ = self._scored(w, x)
        best = np.argsort(-scores, kind="stable")[:k].tolist()
        return [(outputs[i], float(scores[i])) for i in best]

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, np.ndarray]:
        """Return the logarithm of the sum of exponentiated scores, and the mean features."""
        _, scores, rows = self._scored(w, x, cost_to)
        total = float(logsumexp(scores))
        return total, np.exp(scores - total) @ rows

    def log_cardinality(self, x: Any) -> float:
        """Return the logarithm of the number of outputs."""
        return float(np.log(len(self.table(x)[0])))

    def _scored(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[Sequence[Any], np.ndarray, np.ndarray]:
        outputs, rows = self.table(x)
        scores = rows @ w
        if cost_to is not None:
            scores = scores + np.array([self.cost(cost_to, y) for y in outputs], dtype=float)
        return outputs, scores, rows

    def _place(self, outputs: Sequence[Any], y: Any) -> int:
        for i, other in enumerate(outputs):
            if self.equal(y, other):
                return i
        raise ValueError(f"{y!r} is none of the {len(outputs)} outputs of its input")


class OutputSet(_WrittenOut):
    """A small set of outputs that can be enumerated.

    The best output, the k best outputs and the sums are found by enumeration, so every loss works.

    Parameters
    ----------
    outputs : sequence of objects, or callable x → sequence of objects
        All possible outputs (of an input).
    features : callable (x, y) → array, optional
        Φ(x, y), of the same length for all. Not needed for a :class:`~mercer.kernel_methods.KernelizedModel`, whose
        kernel compares pairs (x, y).
    cost : callable (y_true, y) → float, optional
        Δ(y_true, y), 0 for the true output. Default: 1 for every other output.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structured import StructuredPredictor
    >>> from mercer.structures import OutputSet
    >>> sizes = OutputSet(["S", "M", "L"], lambda x, y: x * np.eye(3)["SML".index(y)], cost=lambda y, z: float(y != z))
    >>> X, y = [np.array([1.0, 0.2, 0.1]), np.array([0.1, 1.0, 0.3]), np.array([0.2, 0.1, 1.0])], ["S", "M", "L"]
    >>> StructuredPredictor(sizes, C=10.0, random_state=0).fit(X, y).predict(X)
    ['S', 'M', 'L']
    """

    def __init__(
        self,
        outputs: Sequence[Any] | Callable[[Any], Sequence[Any]],
        features: Callable[[Any, Any], Any] | None = None,
        cost: Callable[[Any, Any], float] | None = None,
    ) -> None:
        if not callable(outputs) and (
            not isinstance(outputs, (Sequence, np.ndarray)) or isinstance(outputs, (str, bytes))
        ):
            raise TypeError(f"outputs must be a sequence or a function of an input, got {type(outputs).__name__}")
        if not callable(outputs) and not len(outputs):
            raise ValueError("outputs must hold at least one output")
        self.outputs, self.function, self.cost_function = outputs, features, cost

    def outputs_of(self, x: Any) -> Sequence[Any]:
        """Return all outputs of an input."""
        outputs = self.outputs(x) if callable(self.outputs) else self.outputs
        if not len(outputs):
            raise ValueError("outputs must hold at least one output for every input, and one has none")
        return outputs

    def table(self, x: Any) -> tuple[Sequence[Any], np.ndarray]:
        """Return the outputs of x, and their features."""
        if self.function is None:
            raise ValueError(
                "this OutputSet has no features: give them, or a kernel of pairs (x, y) by KernelizedModel"
            )
        outputs = self.outputs_of(x)
        return outputs, np.array([self.function(x, y) for y in outputs], dtype=float)

    def cost(self, y_true: Any, y: Any) -> float:
        """Return Δ(y_true, y)."""
        return super().cost(y_true, y) if self.cost_function is None else float(self.cost_function(y_true, y))


class Choices(_WrittenOut):
    """The outputs of another structure, with features from the inputs: x is (outputs, rows)."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def table(self, x: Any) -> tuple[Sequence[Any], np.ndarray]:
        """Return the outputs and the rows in x."""
        return x

    def cost(self, y_true: Any, y: Any) -> float:
        """Return the cost of the other structure."""
        return float(self.structure.cost(y_true, y))

    def equal(self, y: Any, z: Any) -> bool:
        """Return whether the other structure considers two outputs equal."""
        return bool(self.structure.equal(y, z))
