"""Ranking of labels for an example, learnt from preference graphs.

    minimise  ½‖W‖² + C Σ_i |A(y_i)|⁻¹ Σ_{G in A(y_i)} ξ_iG,   ⟨w_u − w_v, x_i⟩ ≥ 1 − ξ_iG for (u, v) in G, ξ ≥ 0

The decomposition A divides the graph y_i into parts that share a slack: single edges, or the star of edges from one
label. With the graph of :func:`mercer.ranking.preference_graph.from_label` and stars this is the multiclass support
vector machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer._state.saved import Fields, Floats, LabelValues
from mercer._validation import check_weights, thread_count
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.solvers import Solver
from mercer.ranking import preference_graph
from mercer.ranking._linear import LinearRanker
from mercer.ranking.preference_graph import Edge, Graph
from mercer.ranking.risks import LabelRankingRisk

Decomposition = Callable[[Graph], Sequence[Graph]]


class LabelRanker(LinearRanker):
    """Learn to rank the labels of an example.

    Parameters
    ----------
    decomposition : {"edges", "star"} or callable, default="edges"
        The parts of a preference graph. The loss of a part is that of its worst edge; all parts of an example have the
        same weight. ``"edges"``: each edge; ``"star"``: for each label the edges from it; or a function from a list of
        edges to a list of lists of edges that together contain every edge.
    loss : {"hinge", "squared-hinge"}, default="hinge"
        ξ or ξ² of a part.
    solver : {"auto", "bmrm", "lbfgs", "owlqn"} or Solver, default="auto"
        ``"bmrm"`` stops at a certified gap; ``"lbfgs"``, for the squared hinge of single edges, is faster but has no
        certificate. ``"auto"``: ``"lbfgs"`` where possible (``"owlqn"`` with an ℓ1 penalty), else ``"bmrm"``.
    C : float, default=1.0
        Weight of the summed loss against ½‖W‖².
    fit_intercept : bool, default=True
        Whether to add a constant feature 1 for each label; its weight is penalised like the others.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖W‖², ‖W‖₁, or ``l1_ratio · ‖W‖₁ + (1 − l1_ratio) · ½‖W‖²``. ℓ1 needs ``"owlqn"``, so a smooth loss.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; new labels are allowed, but the number of features must be the same.
    n_jobs : int or None
        Threads for products with a sparse X; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw at random.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    classes_ : array of labels, sorted
    coef_ : array of shape (n_labels, n_features)
    intercept_ : array of shape (n_labels,)
    history_ : dict of lists, one value per iteration
    solver_ : str, the solver that ran
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.ranking import LabelRanker
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]])
    >>> likes = [[("tea", "water"), ("water", "milk")], [("milk", "water"), ("milk", "tea")], [("tea", "milk")]]
    >>> ranker = LabelRanker(C=10.0).fit(X, likes)
    >>> ranker.predict([[1.0, 0.1]]).tolist()
    [['tea', 'water', 'milk']]
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray

    saved = LinearRanker.saved | Fields(
        classes_=LabelValues(2), coef_=Floats("classes_", "n_features_in_"), intercept_=Floats("classes_")
    )

    def __init__(
        self,
        decomposition: str | Decomposition = "edges",
        loss: str = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
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
        self.decomposition = decomposition
        self.loss = loss
        self.solver = solver
        self.C = C
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    _smooth_if = "loss='squared-hinge' and decomposition='edges'"

    @property
    def _smooth(self) -> bool:
        """Parts of several edges have kinks where two edges are equally bad."""
        return self.loss == "squared-hinge" and self.decomposition == "edges"

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Edge]],
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Sequence[Sequence[Edge]]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> LabelRanker:
        """Learn from preferences.

        Parameters
        ----------
        X : array or sparse matrix (n, n_features)
        y : list of n preference graphs
            Each a list of edges (u, v): for this example label u is preferred to label v. Labels are strings or
            numbers. An empty list has no preferences. :mod:`mercer.ranking.preference_graph` makes graphs from labels,
            label sets and rankings.
        sample_weight : array of n numbers, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def _check(self) -> None:
        super()._check()
        _resolve(self.decomposition)

    def _learn(self, X: Any, y: Any, loss: Any, last: Any) -> LabelRankingRisk:
        X = self._rows(X, fitting=True)
        graphs = self._graphs(X, y)
        classes, place = _index(graphs, [] if last is None else last.classes_.tolist())
        decompose = _resolve(self.decomposition)
        parts = [_parts(decompose, graph, i) for i, graph in enumerate(graphs)]
        numbered = [[[(place[u], place[v]) for u, v in part] for part in graph] for graph in parts]
        self.n_features_in_, self.classes_ = X.shape[1], classes
        self._has_intercept = bool(self.fit_intercept)
        return LabelRankingRisk(
            X,
            numbered,
            len(classes),
            squared=self.loss == "squared-hinge",
            intercept=self._has_intercept,
            threads=thread_count(self.n_jobs),
        )

    @staticmethod
    def _graphs(X: Any, y: Any) -> list[Graph]:
        graphs = preference_graph.check(y)
        if len(graphs) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y {len(graphs)} preference graphs")
        return graphs

    def _weigh(self, risk: LabelRankingRisk, sample_weight: Any) -> LabelRankingRisk:
        risk.weigh(check_weights(sample_weight, risk.n_examples))
        return risk

    def _read(self, X: Any, y: Any) -> tuple[Any, Any]:
        X = self._rows(X)
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        edges = []
        for i, graph in enumerate(self._graphs(X, y)):
            for u, v in graph:
                if u not in place or v not in place:
                    raise ValueError(
                        f"y[{i}] holds the label {v if u in place else u!r}, which the model does not know"
                    )
                edges.append((i, place[u], place[v]))
        if not edges:
            raise ValueError("y has no preferences to compare with")
        return X, tuple(np.array(edges).T)

    def _quality(self, w: np.ndarray, X: Any, y: Any) -> float:
        W = w.reshape(len(self.classes_), -1)
        scores = np.asarray(X @ W[:, : X.shape[1]].T) + (W[:, -1] if self._has_intercept else 0.0)
        example, better, worse = y
        lead = scores[example, better] - scores[example, worse]
        return float(np.where(lead > 0, 1.0, np.where(lead == 0, 0.5, 0.0)).mean())

    def _flat(self, model: Any) -> np.ndarray:
        if not model._has_intercept:
            return model.coef_.ravel()
        return np.hstack([model.coef_, model.intercept_[:, None]]).ravel()

    def _carry(self, w: np.ndarray, last: Any, risk: LabelRankingRisk) -> np.ndarray:
        W = w.reshape(len(last.classes_), -1)
        if W.shape[1] != risk.shape[1]:
            raise ValueError(
                f"the model to go on from has {W.shape[1]} weights a label, this data needs {risk.shape[1]}"
            )
        carried = np.zeros(risk.shape)
        carried[np.searchsorted(self.classes_, last.classes_)] = W
        return carried.ravel()

    def _keep(self, w: np.ndarray) -> None:
        W = w.reshape(len(self.classes_), -1)
        self.coef_ = W[:, : self.n_features_in_].copy()
        self.intercept_ = W[:, -1].copy() if self._has_intercept else np.zeros(len(W))

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores ⟨w_u, x⟩ + intercept of all labels, an array (n, n_labels)."""
        X = self._rows(X)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels from best to worst, an array (n, n_labels); ties in label order.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        order = np.argsort(-self.decision_function(X), axis=1, kind="stable")
        return self.classes_[order]

    def score(self, X: Any, y: Sequence[Sequence[Edge]]) -> float:
        """Return the share of preferences that the predicted rankings satisfy, over all edges; ties count half."""
        return self._quality(self._flat(self), *self._read(X, y))

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        if not isinstance(self.decomposition, str):
            raise TypeError(
                "a function cannot be saved: call set_params(decomposition='edges') first (predictions do not use it)"
            )
        return super()._saved_params()

    def _check_state(self) -> None:
        super()._check_state()
        if len(set(self.classes_.tolist())) < len(self.classes_):
            raise ValueError("classes_ must hold different labels")
        self._has_intercept = bool(self.fit_intercept)


def _resolve(decomposition: Any) -> Decomposition:
    if decomposition == "edges":
        return lambda graph: [[edge] for edge in graph]
    if decomposition == "star":
        return _stars
    if callable(decomposition):
        return decomposition
    raise ValueError(f"decomposition must be 'edges', 'star' or a function, got {decomposition!r}")


def _stars(graph: Graph) -> list[Graph]:
    """For each label the edges from it."""
    stars: dict[Any, Graph] = {}
    for edge in graph:
        stars.setdefault(edge[0], []).append(edge)
    return list(stars.values())


def _parts(decompose: Decomposition, graph: Graph, example: int) -> list[Graph]:
    """The decomposition of a graph, checked: parts of its edges that together hold all of them."""
    if not graph:
        return []
    parts = [[(u, v) for u, v in part] for part in decompose(list(graph))]
    edges = set(graph)
    if not all(parts):
        raise ValueError(f"the decomposition of y[{example}] has an empty part")
    covered = {edge for part in parts for edge in part}
    if covered - edges:
        raise ValueError(
            f"the decomposition of y[{example}] holds {min(covered - edges)!r}, which is no edge of the graph"
        )
    if edges - covered:
        raise ValueError(f"the decomposition of y[{example}] leaves out the edge {min(edges - covered)!r}")
    return parts


def _index(graphs: list[Graph], known: list[Any]) -> tuple[np.ndarray, dict[Any, int]]:
    """All labels, those of the last fit among them, sorted, and their numbers."""
    labels = {label for graph in graphs for edge in graph for label in edge}
    if not labels:
        raise ValueError("y has no preferences to learn from: all graphs are empty")
    labels.update(known)
    for label in labels:
        if not isinstance(label, (str, int, float)) or label != label:
            raise ValueError(f"labels must be strings or numbers, NaN excluded; found {label!r}")
    try:
        classes = sorted(labels)
    except TypeError as error:
        raise ValueError("labels must all be strings or all be numbers") from error
    return np.array(classes), {label: k for k, label in enumerate(classes)}
