"""Supervised clustering: learn a pairwise affinity from sets of items with known clusters.

    score(x, y) = Σ_{i<j in one cluster of y} A_ij,    A_ij = ⟨w, φ(x_i, x_j)⟩ + b

so Φ(x, y) sums the features of the pairs that y keeps together. Prediction is correlation clustering with A. The cost
Δ counts the pairs that are decided wrongly; it is a sum over pairs as well, and the loss-augmented search is
correlation clustering with A_ij − 1 for pairs that belong together and A_ij + 1 for the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mercer._estimator import Outputs
from mercer._explain import Terms
from mercer._state.saved import Fields, Floats, Number
from mercer._threads import each
from mercer._validation import check_choice
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import RiskEstimator, Run
from mercer.learning.losses import Hinge, Loss, resolve_loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.metrics import pairwise_score
from mercer.structures import correlation
from mercer.structures.correlation import Clustering
from mercer.structures.joint import Examples, Joint
from mercer.structures.partitions import Partitions


class Certificate(NamedTuple):
    """Bounds on the objective of training; see :meth:`SupervisedClusterer.certify`.

    Attributes
    ----------
    primal : float
        The objective of the learnt weights is at most this.
    dual : float
        The objective of no weights is less than this.
    gap : float
        ``(primal - dual) / primal``.
    """

    primal: float
    dual: float
    gap: float


class SupervisedClusterer(RiskEstimator):
    """Learn from clustered sets how to cluster new ones.

    Each example is a set of items with a partition, such as the noun phrases of a document grouped by what they refer
    to. The model learns an affinity between two items from features of the pair. It then partitions a new set to
    maximise the affinities within clusters (correlation clustering), so the number of clusters need not be known.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"`` or ``"relative-margin"``.
    solver : str or Solver, default="auto"
        ``"auto"`` (chosen by the loss), ``"bcfw"``, ``"cutting-plane"``, ``"bmrm"`` or ``"subgradient"``;
        ``"averaged-perceptron"`` and ``"passive-aggressive"`` take one set per step.
    C : float, default=1.0
        Weight of the summed loss: ``½‖w‖² + C · Σ loss``, one term per set.
    pair_features : {"difference", "product"} or callable, default="difference"
        Features of a pair of items that are rows of an array: ``|x_i − x_j|`` or ``x_i · x_j``, value by value. A
        callable takes two items and gives a vector, the same for (a, b) and (b, a). Not used where X holds arrays of
        shape (n, n, p), which are the features of the pairs themselves. A constant is always added.
    decode : {"greedy", "exact", "lp"}, default="greedy"
        Search for partitions in training and prediction; see :func:`correlation_clustering`. ``"greedy"`` is fast for
        hundreds of items but may miss the worst partition in training, so the gap it reports is no certificate;
        :meth:`certify` gives one. ``"lp"`` trains on relaxed partitions: its objective is never below the true one, and
        its gap is certified; it is some ten times slower. ``"exact"`` is for small sets.
    cost : {"pairs", "rand"}, default="pairs"
        Δ: the number of pairs that are decided wrongly, or their share in the set, which gives all sets one weight.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        The margin solvers need ``"l2"``, ½‖w‖²; the online ones use none.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own. Margin solvers stop at a relative gap of ``tol``.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; pairs must have the same number of features.
    n_jobs : int or None
        Processes that cluster sets in :meth:`predict` and :meth:`score`; -1 for all cores.
    random_state : int, RandomState, Generator or None
        Seed of the order in which solvers visit the sets.
    verbose : int, default=0

    Attributes
    ----------
    coef_ : array of shape (p,)
        Weights of the pair features.
    intercept_ : float
        Weight of the constant: the affinity of a pair without features.
    n_features_in_ : int
        p, the number of features of a pair.
    history_ : dict of lists: primal, dual, gap, seconds, …, one value per iteration
    certified_ : bool
        Whether the gap is a certificate: not with ``decode="greedy"``.
    solver_ : str, the solver that ran
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int

    References
    ----------
    .. [Finley2005] T. Finley and T. Joachims. Supervised clustering with support vector machines. ICML, 2005.

    Examples
    --------
    >>> from mercer.clustering import SupervisedClusterer
    >>> from mercer.datasets import coreference_features, make_coreference
    >>> task = make_coreference(n_train=30, n_test=20, n_mentions=(6, 12), random_state=0)
    >>> model = SupervisedClusterer(pair_features=coreference_features, C=0.1, tol=0.01, random_state=0)
    >>> model = model.fit(task.X_train, task.y_train)
    >>> model.score(task.X_test, task.y_test) > 0.6
    True
    """

    _output_form = Outputs("partitions")

    coef_: np.ndarray
    _weighs_features = True
    _explains_decisions = True
    intercept_: float

    saved = RiskEstimator.saved | Fields(coef_=Floats("n_features_in_"), intercept_=Number())
    lacks: ClassVar[dict[str, str]] = {
        "penalty": "its losses have kinks, and solvers of such losses need penalty='l2'",
        **dict.fromkeys(
            ("k_best", "predict_marginals", "sample", "log_likelihood", "entropy"),
            "the search for the best partition knows no distribution over partitions",
        ),
    }

    def __init__(
        self,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        pair_features: str | Callable[[Any, Any], Any] = "difference",
        decode: str = "greedy",
        cost: str = "pairs",
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
        self.loss = loss
        self.solver = solver
        self.C = C
        self.pair_features = pair_features
        self.decode = decode
        self.cost = cost
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

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> SupervisedClusterer:
        """Learn from sets and their clusters.

        Parameters
        ----------
        X : list of sets
            Each an array of shape (n_i, d) with one row per item, an array of shape (n_i, n_i, p) with the features of
            all pairs, or, with a callable ``pair_features``, a list of items of any kind.
        y : list of label sequences
            The cluster of each item; the names of clusters do not matter.
        sample_weight : array of a number for each set, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self : SupervisedClusterer
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Sequence[Any], y: Sequence[Any]) -> SupervisedClusterer:
        """Make one pass of an online solver over more sets.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self : SupervisedClusterer
        """
        return self._partial_fit(X, y)

    def _check(self) -> None:
        check_choice("decode", self.decode, correlation.DECODERS)
        check_choice("cost", self.cost, ("pairs", "rand"))
        if not callable(self.pair_features) and self.pair_features not in ("difference", "product"):
            raise ValueError(
                f"pair_features must be 'difference', 'product' or a function of two items, got {self.pair_features!r}"
            )

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any) -> Risk:
        X, y = list(X), list(y)
        if not X:
            raise ValueError("nothing to learn from: X is empty")
        pairs = self._all_pairs(X, None)
        truth = self._truth(y, [len(x) for x in X])
        if not any(len(p) for p in pairs):
            raise ValueError("nothing to learn from: every set in X has one item only")
        self.n_features_in_ = pairs[0].shape[1]
        joint = Joint(Partitions(self.decode, self.cost), self.n_features_in_ + 1)
        return Risk(joint, loss, Examples(pairs), Examples(truth))

    def _read(self, X: Any, y: Any) -> tuple[Examples, Examples]:
        X, y = list(X), list(y)
        if not X:
            raise ValueError("nothing to score: X is empty")
        truth = self._truth(y, [len(x) for x in X])
        return Examples(self._all_pairs(X, self.n_features_in_)), Examples(truth)

    def _quality(self, w: np.ndarray, X: Examples, y: Examples) -> float:
        affinities = [pairs @ w[:-1] + w[-1] for pairs in X]
        sizes = [correlation.n_items(len(pairs)) for pairs in X]
        clusterings = self._cut(affinities, sizes, self.decode)
        truth = [correlation.components(one > 0.5, n).tolist() for one, n in zip(y, sizes, strict=True)]
        return pairwise_score(truth, [one.labels.tolist() for one in clusterings]).f1

    def _arrays(self, X: Examples, y: Examples) -> Iterable[np.ndarray | None]:
        return [np.array([len(pairs) for pairs in X]), *X, *y]

    def _flat(self, model: Any) -> np.ndarray:
        return np.append(model.coef_, model.intercept_)

    def _keep(self, w: np.ndarray) -> None:
        self.coef_, self.intercept_ = w[:-1].copy(), float(w[-1])

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        self.certified_ = self.decode != "greedy"

    @staticmethod
    def _truth(y: Sequence[Any], sizes: list[int]) -> list[np.ndarray]:
        """Which pairs belong together, condensed."""
        if len(y) != len(sizes):
            raise ValueError(f"X has {len(sizes)} sets, but y has {len(y)}")
        truth = []
        for number, (labels, size) in enumerate(zip(y, sizes, strict=True)):
            if isinstance(labels, str) or not hasattr(labels, "__len__"):
                raise ValueError(f"set {number}: y must hold a list of cluster labels, got {labels!r}")
            if len(labels) != size:
                raise ValueError(f"set {number} has {size} items in X, but {len(labels)} labels in y")
            missing = [k for k, label in enumerate(labels) if label is None or label != label]
            if missing:
                raise ValueError(f"set {number}: item {missing[0]} has no cluster ({labels[missing[0]]!r})")
            truth.append(correlation.together(correlation.canonical(_plain(labels))))
        return truth

    # ------------------------------------------------------------------ looking inside

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        """Of two partitions: the features of the pairs that one has together and the other apart.

        By default every item apart is the alternative.
        """
        self._check_is_fitted()
        given = self.predict([x])[0] if output is None else output
        other = list(range(len(x))) if against is None else against
        inputs, truth = self._read([x, x], [given, other])
        change = np.asarray(truth[0], float) - np.asarray(truth[1], float)
        if not change.any():
            raise ValueError("output and against are the same: name another one as against=")
        values = change @ inputs[0]
        constant = float(change.sum() * self.intercept_)
        return Terms(
            given, other, np.arange(len(values)), values, self.coef_ * values, lambda k: f"pair feature {k}", constant
        )

    # ------------------------------------------------------------------ pair features

    def _all_pairs(self, X: Sequence[Any], width: int | None) -> list[np.ndarray]:
        """The features of the pairs of each set, condensed; sets of one item have none."""
        pairs_of = [self._pairs(x, number) for number, x in enumerate(X)]
        for number, pairs in enumerate(pairs_of):
            if pairs is None or (not pairs.size and len(pairs) == 0):
                continue
            if width is None:
                width = pairs.shape[1]
            if pairs.shape[1] != width:
                raise ValueError(f"set {number}: pairs have {pairs.shape[1]} features, expected {width}")
        return [np.zeros((0, width or 0)) if p is None or not len(p) else p for p in pairs_of]

    def _pairs(self, x: Any, number: int) -> np.ndarray | None:
        if isinstance(x, str) or not hasattr(x, "__len__"):
            raise ValueError(f"set {number}: expected an array or a list of items, got {type(x).__name__}")
        if len(x) == 0:
            raise ValueError(f"set {number} is empty")
        if getattr(x, "ndim", 0) == 3:
            pairs = _given_pairs(np.asarray(x, dtype=float), number)
        elif callable(self.pair_features):
            if len(x) == 1:
                return None
            pairs = self._called_pairs(x, number)
        else:
            items = self._rows(x, number)
            i, j = np.triu_indices(len(items), 1)
            pairs = np.abs(items[i] - items[j]) if self.pair_features == "difference" else items[i] * items[j]
        if not np.isfinite(pairs).all():
            raise ValueError(f"set {number}: a pair feature is NaN or infinite")
        return pairs

    def _rows(self, x: Any, number: int) -> np.ndarray:
        if not isinstance(self.pair_features, str):
            raise ValueError(
                "this model was saved with a function as pair_features, which is code and not in the file:"
                " set model.pair_features to it"
            )
        try:
            items = np.asarray(x, dtype=float)
        except (TypeError, ValueError) as err:
            raise ValueError(
                f"set {number}: items must be rows of numbers (or pair_features a function of two items): {err}"
            ) from err
        if items.ndim != 2:
            raise ValueError(
                f"set {number}: expected an array of shape (items, features) or (items, items, pair features),"
                f" got shape {items.shape}"
            )
        return items

    def _called_pairs(self, x: Any, number: int) -> np.ndarray:
        function: Any = self.pair_features
        try:
            pairs = np.array([np.asarray(function(a, b), dtype=float) for a, b in combinations(x, 2)])
        except Exception as err:
            raise ValueError(f"set {number}: pair_features raised {type(err).__name__}: {err}") from err
        if pairs.ndim != 2:
            raise ValueError(f"set {number}: pair_features must give vectors of one length")
        # One pair of each set is asked the other way round.
        if not np.allclose(np.asarray(function(x[1], x[0]), dtype=float), pairs[0], equal_nan=True):
            raise ValueError(f"set {number}: pair_features must be the same for (a, b) and (b, a)")
        return pairs

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Sequence[Any]) -> list[np.ndarray]:
        """Return the clusters of each set.

        Parameters
        ----------
        X : list of sets, as in :meth:`fit`

        Returns
        -------
        labels : list of arrays of int
            Clusters are numbered in the order of their first items.
        """
        return [clustering.labels for clustering in self._decoded(X, self.decode)]

    def bound(self, x: Any) -> Clustering:
        """Return the predicted clusters of one set, with a bound on the score of every other partition.

        Parameters
        ----------
        x : one set

        Returns
        -------
        clustering : Clustering
            ``labels`` as :meth:`predict` gives them, their summed affinity ``value``, the ``bound`` of the linear
            relaxation, and ``gap``, their difference: 0 proves that no partition scores higher.
        """
        (clustering,) = self._decoded([x], self.decode)
        a, n = self._affinities([x])[0], len(clustering.labels)
        bound = clustering.bound if np.isfinite(clustering.bound) else correlation.relaxed_partition(a, n)[1]
        return Clustering(clustering.labels, clustering.value, max(bound, clustering.value))

    def affinity(self, x: Any) -> np.ndarray:
        """Return the learnt affinities between the items of one set: positive attracts.

        Parameters
        ----------
        x : one set

        Returns
        -------
        A : array of shape (n, n), symmetric, with zeros on the diagonal
        """
        return correlation.square(self._affinities([x])[0], len(x))

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the F1 over pairs of items that are together: ``mercer.metrics.pairwise_score(y, predict(X)).f1``.

        Parameters
        ----------
        X : list of sets
        y : list of label sequences

        Returns
        -------
        f1 : float
        """
        self._check_is_fitted()
        return self._quality(self._flat(self), *self._read(X, y))

    def certify(self, X: Sequence[Any], y: Sequence[Any]) -> Certificate:
        """Return bounds on the training objective that hold for any ``decode``.

        The linear relaxation bounds every set's loss from above, and the dual value of training bounds the
        optimum from below (its cutting planes come from real partitions, even if these were not the most violated
        ones). With ``decode="lp"`` the dual value is that of the relaxed problem, which is at least the true one.

        Parameters
        ----------
        X, y : the data of :meth:`fit`

        Returns
        -------
        certificate : Certificate
        """
        self._check_is_fitted()
        if type(resolve_loss(self.loss)) is not Hinge or not self.history_.get("dual"):
            raise ValueError("a certificate needs loss='hinge' and a solver with a dual value, such as 'bcfw'")
        X, y = list(X), list(y)
        pairs, truths = self._all_pairs(X, self.n_features_in_), self._truth(y, [len(x) for x in X])
        structure, w = Partitions("lp", self.cost), np.append(self.coef_, self.intercept_)
        total = 0.0
        for x, truth in zip(pairs, truths, strict=True):
            z = structure.argmax(w, x, cost_to=truth)
            total += structure.cost(truth, z) + float(w @ (structure.features(x, z) - structure.features(x, truth)))
        primal, dual = 0.5 * float(w @ w) + float(self.C) * total, max(self.history_["dual"])
        return Certificate(primal, dual, (primal - dual) / max(abs(primal), 1e-300))

    def _affinities(self, X: Sequence[Any]) -> list[np.ndarray]:
        self._check_is_fitted()
        return [pairs @ self.coef_ + self.intercept_ for pairs in self._all_pairs(X, self.n_features_in_)]

    def _decoded(self, X: Sequence[Any], decode: str) -> list[Clustering]:
        X = list(X)
        return self._cut(self._affinities(X), [len(x) for x in X], decode)

    def _cut(self, affinities: list[np.ndarray], sizes: list[int], decode: str) -> list[Clustering]:
        """Cluster sets of these sizes, on several processes."""
        sets = [(a, n, decode) for a, n in zip(affinities, sizes, strict=True)]
        return each(_decoded, sets, self.n_jobs, processes=True)

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        self._check_is_fitted()
        return self.coef_, lambda column: f"x{column}"

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        """A function of two items is code and stays with its author: set ``pair_features`` before use."""
        params = super()._saved_params()
        return {**params, "pair_features": None if callable(self.pair_features) else self.pair_features}

    def _check_state(self) -> None:
        if self.pair_features is not None:
            super()._check_state()
        check_choice("decode", self.decode, correlation.DECODERS)
        self.certified_ = self.decode != "greedy"


def _given_pairs(x: np.ndarray, number: int) -> np.ndarray:
    """The upper triangle of an (n, n, p) array, which must equal the lower one."""
    if x.shape[0] != x.shape[1]:
        raise ValueError(f"set {number}: pair features must have the shape (n, n, p), got {x.shape}")
    i, j = np.triu_indices(len(x), 1)
    if not np.allclose(x[i, j], x[j, i], rtol=1e-9, atol=1e-12, equal_nan=True):
        raise ValueError(f"set {number}: pair features must be symmetric, x[i, j] = x[j, i]")
    return x[i, j]


def _decoded(given: tuple[np.ndarray, int, str]) -> Clustering:
    return correlation.decoded(*given)


def _plain(labels: Any) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
