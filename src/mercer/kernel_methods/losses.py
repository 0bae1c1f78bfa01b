"""Losses of scores, for methods whose functions are kernel expansions.

| loss | value | derivative in f |
|---|---|---|
| perceptron | max(0, −y f) | −y if y f ≤ 0 |
| hinge(ρ) | max(0, ρ − y f) | −y if y f < ρ |
| logistic | log(1 + exp(−y f)) | −y / (1 + exp(y f)) |
| exponential | exp(−y f) | −y exp(−y f) |
| novelty(ρ) | max(0, ρ − f) | −1 if f < ρ |
| multiclass perceptron, hinge(ρ) | max(0, ρ + max_{z≠y} f_z − f_y) | 1_z* − 1_y if violated |
| multiclass logistic | −f_y + log Σ_z exp f_z | softmax(f) − 1_y |
| taxonomy(G) | max(0, max_{z≠y} [Δ_G(z, y) + f_z] − f_y) | 1_z* − 1_y if violated |
| squared | (f − y)² | 2 (f − y) |
| huber(ε) | ½ e² if abs(e) ≤ ε, else ε abs(e) − ½ ε², e = f − y | e, cut at ±ε |
| pinball(q) | max(q (y − f), (q − 1) (y − f)) | −q if y > f, else 1 − q |

Since ∂f(x)/∂f = k(x, ·), the derivative in f is the coefficient of k(x, ·) (with classes: of k((x, z), ·)) in the
gradient in H.
Here an object with y f = 0 counts as a mistake; otherwise the perceptron would never leave w = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from mercer._state.values import Codec, Reader, Writer, register
from mercer._validation import check_positive
from mercer.structures import Taxonomy

__all__ = [
    "ExponentialLoss",
    "HingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "MulticlassHingeLoss",
    "MulticlassLogisticLoss",
    "MulticlassPerceptronLoss",
    "NoveltyLoss",
    "PerceptronLoss",
    "PinballLoss",
    "ScoreLoss",
    "SquaredLoss",
    "TaxonomyLoss",
]


@dataclass(frozen=True)
class ScoreLoss:
    """Base class of losses of scores; subclass it for your own loss.

    A subclass sets ``task`` and implements ``value`` and ``gradient``. With ``curvature``, the second derivative,
    Newton's method can be used. ``smoothed`` returns a smooth approximation of a loss with kinks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import HingeLoss
    >>> HingeLoss().value(np.array([2.0, 0.5, -1.0]), np.array([1.0, 1.0, 1.0]))
    array([0. , 0.5, 2. ])
    """

    task: ClassVar[str] = "binary"
    """``"binary"``: y = ±1; ``"multiclass"``: y numbers a class, f has rows; ``"real"``; ``"novelty"``: no y."""

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return the loss of every object."""
        raise NotImplementedError

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return the derivative in the scores f, in their shape."""
        raise NotImplementedError

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        """Return the second derivative in the score."""
        raise NotImplementedError(f"{self!r} has no second derivative")

    def smoothed(self, width: float) -> ScoreLoss:
        """Return the loss itself if it is smooth, else an approximation with kinks rounded over this width."""
        return self

    def coefficients(self, f: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradient in H as nonzero terms (object, class, coefficient).

        The gradient of the i-th loss is the sum of coefficient · k((x_i, class), ·); the class is 0 if there is only
        one function.
        """
        gradient = np.asarray(self.gradient(f, y), dtype=np.float64)
        columns = gradient.reshape(len(gradient), -1)
        rows, classes = np.nonzero(columns)
        return rows, classes, columns[rows, classes]

    def for_classes(self, classes: Sequence[Any]) -> ScoreLoss:
        """Return the loss for these labels, numbered in this order."""
        return self


def _pair(f: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(f, dtype=np.float64), np.asarray(y, dtype=np.float64)


# ---------------------------------------------------------------------------------------------------- two classes


@dataclass(frozen=True)
class PerceptronLoss(ScoreLoss):
    """max(0, −y f): with a step of 1 its gradient is the perceptron.

    Examples
    --------
    >>> from mercer.kernel_methods import PerceptronLoss
    >>> PerceptronLoss().gradient([0.0, 2.0, -1.0], [1.0, 1.0, 1.0])
    array([-1.,  0., -1.])
    """

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return max(0, −y f)."""
        f, y = _pair(f, y)
        return np.maximum(0.0, -y * f)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return −y where y f ≤ 0."""
        f, y = _pair(f, y)
        return np.where(y * f <= 0, -y, 0.0)


@dataclass(frozen=True)
class HingeLoss(ScoreLoss):
    """max(0, ρ − y f).

    Parameters
    ----------
    rho : float, default=1.0
        The required margin.

    Examples
    --------
    >>> from mercer.kernel_methods import HingeLoss
    >>> HingeLoss(rho=2.0).value([1.0], [1.0])
    array([1.])
    """

    rho: float = 1.0

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return max(0, ρ − y f)."""
        f, y = _pair(f, y)
        return np.maximum(0.0, self.rho - y * f)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return −y where y f < ρ."""
        f, y = _pair(f, y)
        return np.where(y * f < self.rho, -y, 0.0)

    def smoothed(self, width: float) -> ScoreLoss:
        """Return a parabola over this width, then a line."""
        return _RoundedHinge(self.rho, width)


@dataclass(frozen=True)
class _RoundedHinge(ScoreLoss):
    rho: float
    width: float

    def value(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        z = np.maximum(0.0, self.rho - y * f)
        return np.where(z < self.width, z * z / (2 * self.width), z - self.width / 2)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        return -y * np.clip((self.rho - y * f) / self.width, 0.0, 1.0)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        z = self.rho - y * f
        return np.where((z > 0) & (z < self.width), 1.0 / self.width, 0.0)


@dataclass(frozen=True)
class LogisticLoss(ScoreLoss):
    """log(1 + exp(−y f)).

    Examples
    --------
    >>> from mercer.kernel_methods import LogisticLoss
    >>> LogisticLoss().value([0.0, 1000.0, -1000.0], [1.0, 1.0, 1.0]).round(4)
    array([6.931e-01, 0.000e+00, 1.000e+03])
    """

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return log(1 + exp(−y f)), without overflow."""
        f, y = _pair(f, y)
        return np.logaddexp(0.0, -y * f)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return −y / (1 + exp(y f))."""
        f, y = _pair(f, y)
        return -y * _sigmoid(-y * f)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        """Return p (1 − p)."""
        p = _sigmoid(np.asarray(f, dtype=np.float64))
        return p * (1.0 - p)


@dataclass(frozen=True)
class ExponentialLoss(ScoreLoss):
    """exp(−y f), the loss of boosting.

    Examples
    --------
    >>> from mercer.kernel_methods import ExponentialLoss
    >>> ExponentialLoss().gradient([0.0], [-1.0])
    array([1.])
    """

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return exp(−y f)."""
        f, y = _pair(f, y)
        with np.errstate(over="ignore"):
            return np.exp(-y * f)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return −y exp(−y f)."""
        return -np.asarray(y, dtype=np.float64) * self.value(f, y)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        """Return exp(−y f)."""
        return self.value(f, y)


@dataclass(frozen=True)
class NoveltyLoss(ScoreLoss):
    """max(0, ρ − f), for objects without labels.

    Parameters
    ----------
    rho : float, default=1.0
        Value that f should reach on typical objects.

    Examples
    --------
    >>> from mercer.kernel_methods import NoveltyLoss
    >>> NoveltyLoss().value([0.25, 3.0])
    array([0.75, 0.  ])
    """

    task: ClassVar[str] = "novelty"
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    def value(self, f: Any, y: Any = None) -> np.ndarray:
        """Return max(0, ρ − f)."""
        return np.maximum(0.0, self.rho - np.asarray(f, dtype=np.float64))

    def gradient(self, f: Any, y: Any = None) -> np.ndarray:
        """Return −1 where f < ρ."""
        return np.where(np.asarray(f, dtype=np.float64) < self.rho, -1.0, 0.0)


# ---------------------------------------------------------------------------------------------------- many classes


@dataclass(frozen=True)
class _Multiclass(ScoreLoss):
    """max(0, max_{z≠y} [Δ(y, z) + f_z] − f_y); ties go to the class that comes first."""

    task: ClassVar[str] = "multiclass"
    _at_zero: ClassVar[bool] = False  # whether a violation of exactly 0 counts

    def _margins(self, y: np.ndarray, k: int) -> np.ndarray:
        """Δ(y, z) for every object and class."""
        raise NotImplementedError

    def _violation(self, f: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        f, y = _scores(f, y)
        rows = np.arange(len(f))
        ahead = f + self._margins(y, f.shape[1])
        ahead[rows, y] = -np.inf
        worst = ahead.argmax(axis=1)
        return ahead[rows, worst] - f[rows, y], worst, y

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return max(0, max_{z≠y} [Δ(y, z) + f_z] − f_y)."""
        return np.maximum(0.0, self._violation(f, y)[0])

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return 1 at the worst class, −1 at the true one, where the margin is violated."""
        violation, worst, y = self._violation(f, y)
        gradient = np.zeros(np.shape(f))
        rows = np.flatnonzero(violation >= 0 if self._at_zero else violation > 0)
        gradient[rows, worst[rows]] = 1.0
        gradient[rows, y[rows]] = -1.0
        return gradient


@dataclass(frozen=True)
class MulticlassPerceptronLoss(_Multiclass):
    """max(0, max_{z≠y} f_z − f_y): with a step of 1 its gradient is the perceptron for classes.

    Examples
    --------
    >>> from mercer.kernel_methods import MulticlassPerceptronLoss
    >>> MulticlassPerceptronLoss().gradient([[0.0, 0.0, 0.0]], [1])
    array([[ 1., -1.,  0.]])
    """

    _at_zero: ClassVar[bool] = True

    def _margins(self, y: np.ndarray, k: int) -> np.ndarray:
        return np.zeros((len(y), k))


@dataclass(frozen=True)
class MulticlassHingeLoss(_Multiclass):
    """max(0, ρ + max_{z≠y} f_z − f_y).

    Parameters
    ----------
    rho : float, default=1.0
        The required margin.

    Examples
    --------
    >>> from mercer.kernel_methods import MulticlassHingeLoss
    >>> MulticlassHingeLoss().value([[2.0, 1.5, 0.0]], [0])
    array([0.5])
    """

    rho: float = 1.0

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    def _margins(self, y: np.ndarray, k: int) -> np.ndarray:
        return np.full((len(y), k), float(self.rho))


@dataclass(frozen=True)
class TaxonomyLoss(_Multiclass):
    """max(0, max_{z≠y} [Δ_G(z, y) + f_z] − f_y): the margin is the distance of labels in a graph.

    Parameters
    ----------
    edges : iterable of (node, node) or (node, node, length)
        A connected graph whose nodes are the labels and inner nodes. The default length is 1.
    labels : sequence of labels, optional
        Labels of the class numbers; estimators pass their ``classes_``.

    Examples
    --------
    >>> from mercer.kernel_methods import TaxonomyLoss
    >>> loss = TaxonomyLoss([("storage", "HDD"), ("storage", "CDROM"), ("hardware", "storage"), ("hardware", "cables")])
    >>> loss.delta("CDROM", "HDD"), loss.delta("CDROM", "cables")
    (2.0, 3.0)
    """

    edges: Any = ()
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(tuple(edge) for edge in Taxonomy(self.edges).edges))
        if not self.edges:
            raise ValueError("edges must hold at least one edge")
        distances = None
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
            distances = Taxonomy(self.edges).bind(list(self.labels)).matrix
        object.__setattr__(self, "_distances", distances)

    def delta(self, y: Any, z: Any) -> float:
        """Return the length of the shortest path between two labels."""
        return float(Taxonomy(self.edges).bind([y, z]).matrix[0, 1])

    def for_classes(self, classes: Sequence[Any]) -> TaxonomyLoss:
        """Return the loss with classes numbered in this order."""
        return replace(self, labels=tuple(c.item() if isinstance(c, np.generic) else c for c in classes))

    def _margins(self, y: np.ndarray, k: int) -> np.ndarray:
        distances: np.ndarray | None = getattr(self, "_distances")  # noqa: B009
        if distances is None or len(distances) != k:
            raise ValueError(f"the taxonomy needs the labels of the {k} classes: use for_classes(labels)")
        return distances[y]


@dataclass(frozen=True)
class MulticlassLogisticLoss(ScoreLoss):
    """−f_y + log Σ_z exp f_z.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import MulticlassLogisticLoss
    >>> np.exp(-MulticlassLogisticLoss().value([[0.0, 0.0, 0.0, 0.0]], [2]))
    array([0.25])
    """

    task: ClassVar[str] = "multiclass"

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return −f_y + log Σ_z exp f_z, without overflow."""
        f, y = _scores(f, y)
        top = f.max(axis=1, keepdims=True)
        return np.log(np.exp(f - top).sum(axis=1)) + top[:, 0] - f[np.arange(len(f)), y]

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return softmax(f) − 1_y."""
        f, y = _scores(f, y)
        p = np.exp(f - f.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(f)), y] -= 1.0
        return p


def _scores(f: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    f, y = np.array(f, dtype=np.float64), np.asarray(y, dtype=np.int64)
    if f.ndim != 2 or y.shape != (len(f),):
        raise ValueError(f"f must have a row for each object and y one number, got shapes {f.shape} and {y.shape}")
    if f.shape[1] < 2 or (len(y) and not 0 <= y.min() <= y.max() < f.shape[1]):
        raise ValueError("y must number one of at least two classes, the columns of f")
    return f, y


# ---------------------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True)
class SquaredLoss(ScoreLoss):
    """(f − y)².

    Examples
    --------
    >>> from mercer.kernel_methods import SquaredLoss
    >>> SquaredLoss().value([3.0], [1.0])
    array([4.])
    """

    task: ClassVar[str] = "real"

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return (f − y)²."""
        f, y = _pair(f, y)
        return (f - y) ** 2

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return 2 (f − y)."""
        f, y = _pair(f, y)
        return 2.0 * (f - y)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        """Return 2."""
        return np.full(np.shape(f), 2.0)


@dataclass(frozen=True)
class HuberLoss(ScoreLoss):
    """½ e² for small errors e = f − y, ``ε |e| − ½ ε²`` for large ones.

    Parameters
    ----------
    epsilon : float, default=1.0
        Error size at which the parabola becomes a line.

    Examples
    --------
    >>> from mercer.kernel_methods import HuberLoss
    >>> HuberLoss().value([0.5, 3.0], [0.0, 0.0])
    array([0.125, 2.5  ])
    """

    task: ClassVar[str] = "real"
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return ½ e², or ``ε |e| − ½ ε²``."""
        f, y = _pair(f, y)
        e = np.abs(f - y)
        return np.where(e <= self.epsilon, 0.5 * e * e, self.epsilon * e - 0.5 * self.epsilon**2)

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return e, cut at ±ε."""
        f, y = _pair(f, y)
        return np.clip(f - y, -self.epsilon, self.epsilon)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        """Return 1 for small errors, 0 for large ones."""
        f, y = _pair(f, y)
        return (np.abs(f - y) <= self.epsilon).astype(np.float64)


@dataclass(frozen=True)
class PinballLoss(ScoreLoss):
    """q (y − f) above, (1 − q) (f − y) below: its minimiser is the q-quantile of y given x.

    Parameters
    ----------
    quantile : float, default=0.5
        In (0, 1).

    Examples
    --------
    >>> from mercer.kernel_methods import PinballLoss
    >>> PinballLoss(0.9).value([0.0, 0.0], [1.0, -1.0]).round(6)
    array([0.9, 0.1])
    """

    task: ClassVar[str] = "real"
    quantile: float = 0.5

    def __post_init__(self) -> None:
        if check_positive("quantile", self.quantile) >= 1:
            raise ValueError(f"quantile must be a number in (0, 1), got {self.quantile!r}")

    def value(self, f: Any, y: Any) -> np.ndarray:
        """Return max(q (y − f), (q − 1) (y − f))."""
        f, y = _pair(f, y)
        return np.maximum(self.quantile * (y - f), (self.quantile - 1.0) * (y - f))

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        """Return −q where y > f, 1 − q where y < f."""
        f, y = _pair(f, y)
        return np.where(y > f, -self.quantile, np.where(y < f, 1.0 - self.quantile, 0.0))

    def smoothed(self, width: float) -> ScoreLoss:
        """Return a parabola around 0 that meets the two lines."""
        return _RoundedPinball(self.quantile, width)


@dataclass(frozen=True)
class _RoundedPinball(ScoreLoss):
    task: ClassVar[str] = "real"
    quantile: float = 0.5
    width: float = 1.0

    def value(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        s = np.clip((y - f) / self.width, self.quantile - 1.0, self.quantile)
        return s * (y - f) - 0.5 * self.width * s * s

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        return -np.clip((y - f) / self.width, self.quantile - 1.0, self.quantile)

    def curvature(self, f: Any, y: Any) -> np.ndarray:
        f, y = _pair(f, y)
        s = (y - f) / self.width
        return np.where((s > self.quantile - 1.0) & (s < self.quantile), 1.0 / self.width, 0.0)


# ---------------------------------------------------------------------------------------------------- names

LOSSES: dict[str, ScoreLoss] = {
    "exponential": ExponentialLoss(),
    "hinge": HingeLoss(),
    "huber": HuberLoss(),
    "logistic": LogisticLoss(),
    "novelty": NoveltyLoss(),
    "perceptron": PerceptronLoss(),
    "pinball": PinballLoss(),
    "squared": SquaredLoss(),
}
"""Names for losses with their defaults."""

WITH_CLASSES: dict[str, ScoreLoss] = {
    "hinge": MulticlassHingeLoss(),
    "logistic": MulticlassLogisticLoss(),
    "perceptron": MulticlassPerceptronLoss(),
}
"""What a name stands for where there are more than two classes."""


def _write(loss: ScoreLoss, out: Writer) -> dict[str, Any]:
    name = type(loss).__name__
    if name not in __all__ or type(loss).__module__ != __name__:
        raise TypeError(f"the loss {loss!r} cannot be written to a model file: it is not one of mercer.kernel_methods")
    return {
        "name": name,
        "params": {field.name: out.node(getattr(loss, field.name), field.name) for field in fields(loss)},
    }


def _read(node: dict[str, Any], source: Reader) -> ScoreLoss:
    if node["name"] not in __all__ or node["name"] == "ScoreLoss":
        raise ValueError(f"there is no loss {node['name']!r}")
    return globals()[node["name"]](**{name: source.value(part) for name, part in node["params"].items()})


register(ScoreLoss, Codec("score loss", _write, _read))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -z))
