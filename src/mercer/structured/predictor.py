"""Training and prediction for structures written in Python.

predict  ŷ(x) = argmax_y ⟨w, Φ(x, y)⟩
train    min penalty(w) + C Σ_i loss_i(w)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from mercer._state.saved import Fields, Floats
from mercer._validation import check_count
from mercer.exceptions import OracleError
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.estimator import StructuredEstimator
from mercer.learning.losses import Loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.structures.custom import CustomStructure
from mercer.structures.joint import Examples, Joint

_PAIRS = 64  # of true outputs whose costs tell structures apart


class StructuredPredictor(StructuredEstimator):
    """Learn the weights of a user-defined structure.

    Parameters
    ----------
    structure : CustomStructure
        An object with ``features``, ``cost``, ``argmax``, …; see :class:`CustomStructure`.
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"relative-margin"``, ``"log"``, ``"softmax-margin"``,
        ``"hybrid"``, ``"adaptive-hybrid"``, ``"circle"``.
    solver : str or Solver, default="auto"
        ``"bcfw"``, ``"cutting-plane"`` and ``"subgradient"`` for hinge-like losses, ``"bmrm"`` for all, ``"lbfgs"`` for
        smooth ones (``"owlqn"`` with an ℓ1 penalty), ``"auto"`` chooses by the loss; ``"averaged-perceptron"``,
        ``"passive-aggressive"`` and, for the log loss, ``"sgd"`` take one example per step.
    C : float, default=1.0
        Weight of the summed loss: penalty(w) + C · Σ loss.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"`` or ``"sgd"``, and so the
        log loss or softmax-margin.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own. Margin solvers stop at a relative duality gap of ``tol``.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; feature vectors must have the same length.
    n_jobs : int or None
        Ignored: the methods of a Python structure run sequentially.
    random_state : int, RandomState, Generator or None
        Seed of the order in which solvers visit the examples.
    verbose : int, default=0

    Attributes
    ----------
    coef_ : array, the weights
    history_ : dict of lists: primal, dual, gap, passes, seconds, one value per iteration
    solver_ : str, the solver that ran
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended it
    n_iter_ : int

    References
    ----------
    .. [Tsochantaridis2005] I. Tsochantaridis, T. Joachims, T. Hofmann and Y. Altun. Large margin methods for structured
       and interdependent output variables. Journal of Machine Learning Research 6, 2005.
    .. [Taskar2003] B. Taskar, C. Guestrin and D. Koller. Max-margin Markov networks. NIPS, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import permutations
    >>> class Ranking(CustomStructure):
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
    _observations = "pairs"

    saved = StructuredEstimator.saved | Fields(coef_=Floats(None))
    lacks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("predict_marginals", "sample", "entropy"), "a structure of your own has no method that answers it"
    )

    def __init__(
        self,
        structure: CustomStructure,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.loss = loss
        self.solver = solver
        self.C = C
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> StructuredPredictor:
        """Train on inputs and their outputs.

        Parameters
        ----------
        X, y : lists of inputs and outputs, as the structure takes them
        sample_weight : array of a number for each example, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.
            The checkpoint identifies data by the features of the true outputs. It identifies a structure by its class,
            its settings (attributes without a leading underscore: numbers, strings, arrays, and lists, dicts or objects
            of them) and the costs between some of the true outputs, but not by the code of its methods. Store state
            that the methods change, such as a cache, in attributes with a leading underscore.

        Returns
        -------
        self

        Notes
        -----
        An error in the structure's methods is an :class:`OracleError` that names the example; ``history_`` then holds
        the values recorded before the error.
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Sequence[Any], y: Sequence[Any]) -> StructuredPredictor:
        """Make one pass of an online solver over more data, one example per step.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y)

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any) -> Risk:
        inputs, outputs = _examples(X, y)
        if not len(inputs):
            raise ValueError("nothing to learn from: X is empty")
        joint = self._joint(inputs[0], outputs[0])
        for i, (x, truth) in enumerate(zip(inputs, outputs, strict=True)):
            joint.features(x, truth, i)
            if (cost := joint.cost(truth, truth, i)) != 0.0:
                raise OracleError(f"example {i}: cost(y, y) is {cost:g}: the true output must cost nothing")
        return Risk(joint, loss, inputs, outputs)

    def _read(self, X: Any, y: Any) -> tuple[Examples, Examples]:
        inputs, outputs = _examples(X, y)
        if not len(inputs):
            raise ValueError("nothing to score: X is empty")
        return inputs, outputs

    def _quality(self, w: np.ndarray, X: Examples, y: Examples) -> float:
        outputs = self._argmax(w, X)
        return float(np.mean([self.structure.equal(truth, z) for truth, z in zip(y, outputs, strict=True)]))

    def _argmax(self, w: np.ndarray, X: Sequence[Any]) -> list[Any]:
        joint = Joint(self.structure, len(w))
        self.structure.argmax  # noqa: B018, a structure that no file can hold says so here
        return [joint.call("argmax", i, w, x) for i, x in enumerate(X)]

    def _settings(self, risk: Risk) -> Any:
        return _settings(self.structure), _costs(self.structure, risk.y.items)

    def _arrays(self, X: Examples, y: Examples) -> Iterable[np.ndarray | None]:
        """The features of the true outputs, and how many each has."""
        joint = self._joint(X[0], y[0])
        rows = [joint.features(x, truth, i) for i, (x, truth) in enumerate(zip(X, y, strict=True))]
        return [np.array([len(row.indices) for row in rows]), *(array for row in rows for array in row)]

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """Return the best output of each input.

        Parameters
        ----------
        X : sequence of inputs

        Returns
        -------
        list of outputs
        """
        return self._argmax(self._weights(), X)

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """Return the k best outputs of each input (or all) with their scores; the structure needs a k_best."""
        check_count("k", k)
        inputs = Examples(list(X))
        joint = Joint(self.structure, len(self._weights()))
        outputs, scores = joint.k_best(joint.scores(self._weights(), inputs), k)
        return [
            [(outputs[r][i], float(scores[i, r])) for r in range(k) if scores[i, r] > -np.inf]
            for i in range(len(inputs))
        ]

    def predict_scores(self, X: Sequence[Any], y: Sequence[Any]) -> np.ndarray:
        """Return ⟨w, Φ(x, y)⟩ of given pairs."""
        joint = Joint(self.structure, len(self._weights()))
        return joint.score(joint.scores(self._weights(), Examples(list(X))), list(y))

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the share of inputs whose whole output is correct."""
        return super().score(X, y)

    def mean_cost(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the mean cost of the predictions."""
        costs = [self.structure.cost(truth, z) for truth, z in zip(y, self.predict(X), strict=True)]
        return float(np.mean(costs))

    def _structure(self) -> Joint:
        return Joint(self.structure, len(self._weights()))

    def _joint(self, x: Any, y: Any) -> Joint:
        for method in ("features", "argmax", "cost"):
            if not callable(getattr(self.structure, method, None)):
                raise TypeError(f"structure must have a method {method!r}: see mercer.structured.CustomStructure")
        joint = Joint(self.structure, 0)
        row = joint.call("features", 0, x, y)
        joint.n_weights = int(row.shape[-1]) if issparse(row) else int(np.size(row))
        if not joint.n_weights:
            raise OracleError("example 0: features gave an empty vector")
        return joint

    def _weights(self) -> np.ndarray:
        self._check_is_fitted()
        return self.coef_

    def _saved_params(self) -> dict[str, Any]:
        """The structure is code and stays with its author: a file has its name."""
        known = self.structure.name if isinstance(self.structure, _NotLoaded) else type(self.structure).__name__
        return {**super()._saved_params(), "structure": known}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> StructuredPredictor:
        """A model without its structure: set ``structure`` before use."""
        return cls(**{**params, "structure": _NotLoaded(str(params["structure"]))})


def _examples(X: Any, y: Any) -> tuple[Examples, Examples]:
    inputs, outputs = Examples(list(X)), Examples(list(y))
    if len(inputs) != len(outputs):
        raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs")
    return inputs, outputs


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
    costs: list[Any] = []
    for i in range(0, len(Y) - 1, max(1, len(Y) // _PAIRS)):
        try:
            costs.append(float(structure.cost(Y[i], Y[i + 1])))
        except Exception as error:
            costs.append(type(error).__name__)
    return costs


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
