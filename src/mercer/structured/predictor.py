"""Training and prediction for structures written in Python.

predict  ŷ(x) = argmax_y ⟨w, Φ(x, y)⟩
train    min ½‖w‖² + C Σ_i loss_i(w)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError

from mercer._estimator import Estimator
from mercer._validation import check_positive
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.losses import Loss, loss_from_json, resolve_loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.learning.training import history_from_json, history_to_json, train
from mercer.structured.structure import Structure
from mercer.structures.joint import Examples, Joint, OracleError

_PAIRS = 64  # of true outputs whose costs tell structures apart


class StructuredPredictor(Estimator):
    """Learns the weights of a structure of your own.

    Parameters
    ----------
    structure : Structure
        An object with ``features``, ``cost``, ``argmax``, …; see :class:`Structure`.
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"relative-margin"``, ``"log"``, ``"softmax-margin"``,
        ``"hybrid"``.
    solver : str or Solver, default="bcfw"
        ``"bcfw"``, ``"cutting-plane"`` and ``"subgradient"`` for hinge-like losses, ``"bmrm"`` for all, ``"lbfgs"`` for
        smooth ones, ``"auto"`` to choose by the loss.
    C : float, default=1.0
        Weight of the summed loss: ½‖w‖² + C · Σ loss.
    max_iter, tol : int and float or None
        None: the solver's own. Margin solvers stop at a relative duality gap of ``tol``.
    n_jobs : int or None
        Kept for the interface: the methods of a Python structure run one after the other.
    random_state : int, RandomState, Generator or None
        Order in which solvers visit the examples.
    verbose : int, default=0

    Attributes
    ----------
    coef_ : array, the weights
    history_ : dict of lists: primal, dual, gap, passes, seconds, one value an iteration
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended it
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import permutations
    >>> class Ranking(Structure):
    ...     "y is an order of the rows of x; the weights score a row, earlier places count more."
    ...     def features(self, x, y):
    ...         return np.linspace(1, -1, len(y)) @ x[list(y)]
    ...     def argmax(self, w, x, cost_to=None):
    ...         def value(y):
    ...             return w @ self.features(x, y) + (0 if cost_to is None else self.cost(cost_to, y))
    ...         return max(permutations(range(len(x))), key=value)
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(4, 2)) for _ in range(30)]
    >>> Y = [tuple(np.argsort(-x[:, 0]).tolist()) for x in X]
    >>> model = StructuredPredictor(Ranking(), C=10.0, random_state=0).fit(X, Y)
    >>> model.score(X, Y) > 0.9
    True
    """

    coef_: np.ndarray
    history_: dict[str, list[float]]

    def __init__(
        self,
        structure: Structure,
        loss: str | Loss = "hinge",
        solver: str | Solver = "bcfw",
        C: float = 1.0,
        *,
        max_iter: int | None = None,
        tol: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.loss = loss
        self.solver = solver
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Sequence[Any],
        Y: Sequence[Any],
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> StructuredPredictor:
        """Trains on inputs and their outputs.

        Parameters
        ----------
        X, Y : lists of inputs and outputs, as the structure takes them
        checkpoint : path or Checkpoint, optional
            Training is saved there every few seconds; a fit that was killed goes on from there when it is called again.
            Other data is known by other features of the true outputs; another structure by its class, its settings
            (attributes whose names do not begin with an underscore: numbers, strings, arrays, and lists, dicts or
            objects of them) and the costs between some of the true outputs. The code of its methods is not read. What
            they change, such as a cache, belongs into attributes that begin with an underscore.

        Notes
        -----
        An error in the structure's methods is an :class:`OracleError` that names the example; ``history_`` then holds
        what was recorded until it came.
        """
        C, loss = check_positive("C", self.C), resolve_loss(self.loss)
        X, Y = list(X), list(Y)
        if len(X) != len(Y):
            raise ValueError(f"{len(X)} inputs and {len(Y)} outputs")
        if not X:
            raise ValueError("nothing to learn from: X is empty")
        joint = self._joint(X[0], Y[0])
        rows = []
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            row = joint.features(x, y, i)
            if checkpoint is not None:
                rows.append(row)
            if (cost := joint.cost(y, y, i)) != 0.0:
                raise OracleError(f"example {i}: cost(y, y) is {cost:g}: the true output must cost nothing")
        risk = Risk(joint, loss, Examples(X), Examples(Y))
        solver = self.solver if isinstance(self.solver, str) else self.solver.name

        def said() -> Any:
            structure = _settings(self.structure), _costs(self.structure, Y)
            return structure, solver, loss.to_json(), C, [len(row.indices) for row in rows]

        result, history = train(
            risk,
            solver=self.solver,
            C=C,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint=lambda: fingerprint(said(), [array for row in rows for array in row]),
        )
        self.coef_, self.history_ = result.w, history
        self.converged_, self.interrupted_ = result.converged, result.interrupted
        self.n_iter_ = len(history.get("seconds", ()))
        return self

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The best output of each input."""
        w = self._weights()
        joint = Joint(self.structure, len(w))
        self.structure.argmax  # noqa: B018, a structure that no file can hold says so here
        return [joint.call("argmax", i, w, x) for i, x in enumerate(X)]

    def predict_scores(self, X: Sequence[Any], Y: Sequence[Any]) -> np.ndarray:
        """⟨w, Φ(x, y)⟩ of given pairs."""
        joint = Joint(self.structure, len(self._weights()))
        return joint.score(joint.scores(self._weights(), Examples(list(X))), list(Y))

    def score(self, X: Sequence[Any], Y: Sequence[Any]) -> float:
        """Share of inputs whose whole output is right."""
        if not len(X):
            raise ValueError("nothing to score: X is empty")
        right = [self.structure.equal(y, z) for y, z in zip(Y, self.predict(X), strict=True)]
        return float(np.mean(right))

    def mean_cost(self, X: Sequence[Any], Y: Sequence[Any]) -> float:
        """The mean cost of the predictions."""
        costs = [self.structure.cost(y, z) for y, z in zip(Y, self.predict(X), strict=True)]
        return float(np.mean(costs))

    def _joint(self, x: Any, y: Any) -> Joint:
        for method in ("features", "argmax", "cost"):
            if not callable(getattr(self.structure, method, None)):
                raise TypeError(f"structure must have a method {method!r}: see mercer.structured.Structure")
        joint = Joint(self.structure, 0)
        row = joint.call("features", 0, x, y)
        joint.n_weights = int(row.shape[-1]) if issparse(row) else int(np.size(row))
        if not joint.n_weights:
            raise OracleError("example 0: features gave an empty vector")
        return joint

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _weights(self) -> np.ndarray:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self.coef_

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The trained weights; the structure itself is code and stays with its author."""
        self._weights()
        meta = {
            "structure": type(self.structure).__name__,
            "C": float(self.C),
            "loss": self.loss if isinstance(self.loss, str) else self.loss.to_json(),
            "solver": self.solver if isinstance(self.solver, str) else self.solver.name,
            "history": history_to_json(self.history_),
            "converged": self.converged_,
        }
        return meta, {"w": self.coef_}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> StructuredPredictor:
        """The inverse of :meth:`to_state`; set ``structure`` before use."""
        structure: Any = _NotLoaded(str(meta["structure"]))
        model = cls(structure, loss_from_json(meta["loss"]), str(meta["solver"]), float(meta["C"]))
        model.coef_ = np.array(arrays["w"], dtype=float)
        if model.coef_.ndim != 1 or not np.isfinite(model.coef_).all():
            raise ValueError("the weights must be a vector of finite numbers")
        model.history_ = history_from_json(meta["history"])
        model.converged_, model.interrupted_ = bool(meta["converged"]), False
        model.n_iter_ = len(model.history_.get("seconds", ()))
        return model


def _settings(value: Any, within: tuple[int, ...] = ()) -> Any:
    """What a structure is set to, as data whose ``repr`` is the same in every process."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if isinstance(value, np.generic):
        return _settings(value.item(), within) if not value.dtype.hasobject else str(value)
    if id(value) in within:  # it holds itself
        return "..."
    within = (*within, id(value))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return str(value.dtype), value.shape, fingerprint(None, [value])
    if issparse(value):
        value = value.tocsr()
        return value.shape, fingerprint(None, [value.data, value.indices, value.indptr])
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_settings(item, within) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(repr(_settings(item, within)) for item in value)
    if isinstance(value, Mapping):
        return [(_settings(key, within), _settings(item, within)) for key, item in value.items()]
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    attributes: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        attributes.update((k, v) for k, v in vars(kind).items() if not callable(v) and not hasattr(v, "__get__"))
    attributes.update(getattr(value, "__dict__", {}))
    attributes.update((k, getattr(value, k)) for k in getattr(value, "__slots__", ()) if hasattr(value, k))
    return type(value).__qualname__, [
        (name, _settings(attributes[name], within)) for name in sorted(attributes) if not name.startswith("_")
    ]


def _costs(structure: Any, Y: Sequence[Any]) -> list[Any]:
    """cost(y, z) of some pairs of true outputs; such pairs need not have one."""
    found: list[Any] = []
    for i in range(0, len(Y) - 1, max(1, len(Y) // _PAIRS)):
        try:
            found.append(float(structure.cost(Y[i], Y[i + 1])))
        except Exception as error:
            found.append(type(error).__name__)
    return found


class _NotLoaded:
    """Stands for a structure that a file names but cannot hold."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise AttributeError(
            f"the model was saved with a structure {self.name!r}, which is code and not in the file: "
            "set model.structure to an object of that class"
        )
