"""Retrieval of rows for a query of several attributes, by weak attributes.

    s_Q(x) = Σ_{q in Q} ( Σ_{j in Z_Q} w_qj z_j(x) + b_q ),        rank by s_Q, retrieve where s_Q > 0

Weights minimise ½‖w‖² + C Σ_Q ξ_Q, ξ_Q = max over sets y of rows of Δ(y_Q, y) + score(Q, y) − score(Q, y_Q): a
structured margin over sets of rows (`mercer.structures.row_sets`), for queries of one attribute, or of up to
``max_size`` attributes that training rows match. Z_Q are the weak attributes that are most informative about the query
(`mercer.attributes._information`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Choice, Count, Fields, Floats, Ints, LabelValues, Nested, Optional, Saved, Transient
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.attributes._information import TreeInformation, empirical_information
from mercer.inference import ChowLiuTree, LatentTree
from mercer.learning.losses import Hinge
from mercer.learning.risk import Risk
from mercer.learning.training import train
from mercer.learning.weighted_machines import fit_machines
from mercer.multilabel.label_forms import FORMS, encode, fit_labels
from mercer.structures.row_sets import COSTS, Queries, RowSets

__all__ = ["AttributeRetriever", "Ranking"]

METHODS = ("structured", "marr", "sum")
INFORMATION = ("empirical", "semi-supervised", "latent")
_BLOCK = 1 << 16  # rows whose scores are summed at a time


class Ranking(NamedTuple):
    """Rows, the best first, and their scores.

    Attributes
    ----------
    rows : ndarray of int
        Indices of the rows.
    scores : ndarray
        s_Q of these rows.
    """

    rows: np.ndarray
    scores: np.ndarray


class AttributeRetriever(Saved, Estimator):
    """Rank and retrieve rows for queries of several attributes.

    Parameters
    ----------
    method : {"structured", "marr", "sum"}, default="structured"
        Weights of weak attributes by structured margins; the same over the scores of one classifier for each query
        attribute (multi-attribute retrieval and ranking), so that only dependencies among these count; or the plain sum
        of these scores.
    loss : {"balanced", "hamming", "f-beta", "precision"}, default="balanced"
        Cost of a set of rows: the mean of the miss rate and the false-positive rate; the number of wrong rows; 1 − F_β;
        or the share of wrong rows in a set of the right size. If few rows match a query, "hamming" may return no rows
        and ranks poorly.
    n_weak : int, optional
        ϑ: number of weak attributes used for a query, the most informative ones. By default all.
    information : {"empirical", "semi-supervised", "latent"}, default="empirical"
        How informativeness is measured: by counts in labelled rows; by two trees, one of which also learns from
        ``unlabelled`` rows; or by such trees with hidden variables. For "structured" with ``n_weak``.
    C : float, default=0.1
        Weight of the mean loss over rows, for each attribute; smaller values regularise more.
    beta : float, default=1.0
        β of "f-beta".
    max_size : int, default=1
        Largest number of attributes in a training query; queries in prediction may be larger. On two real sets training
        on pairs and triples ranked held-out training rows worse.
    max_queries : int, default=300
        Maximum number of training queries: all single attributes, and a random sample of larger queries.
    min_rows : int, default=5
        Minimum number of rows that match a training query with two attributes or more.
    folds : int, default=5
        Number of folds for "marr": the scores of a fold come from classifiers trained on the other folds.
    solver : str, default="auto"
        Solver of the structured margin; see `mercer.learning.solvers`.
    tol : float, default=0.0001
        Relative optimality gap at which training stops.
    max_iter : int, optional
        Maximum number of iterations.
    random_state : int or None, default=0
        Seed of queries and folds.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    classes_ : ndarray
        The query attributes.
    weights_ : ndarray of shape (n_attributes, n_weak + 1)
        w and b, for weak attributes that are centred and of unit spread.
    mean_, scale_ : ndarrays of shape (n_weak,)
        Mean and scale of the weak attributes in training.
    queries_ : ndarray of int of shape (n_queries, max_size)
        Training queries, padded with −1.
    gap_ : float
        Relative optimality gap of training; 0 for "sum".

    References
    ----------
    .. [Yu2012] F. X. Yu, R. Ji, M.-H. Tsai, G. Ye and S.-F. Chang. Weak attributes for large-scale image retrieval.
       CVPR, 2012.
    .. [Siddiquie2011] B. Siddiquie, R. S. Feris and L. S. Davis. Image ranking and retrieval based on multi-attribute
       queries. CVPR, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.attributes import AttributeRetriever
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random((300, 3)) < 0.5
    >>> Z = hidden @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(300, 20))
    >>> Y = [{name for name, on in zip(["round", "red", "old"], row) if on} for row in hidden]
    >>> model = AttributeRetriever().fit(Z[:200], Y[:200])
    >>> best = model.rank(Z[200:], ["round", "red"], k=3).rows
    >>> [sorted(Y[200:][i] & {"round", "red"}) for i in best]
    [['red', 'round'], ['red', 'round'], ['red', 'round']]
    """

    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        weights_=Floats("classes_", None),
        mean_=Floats("n_features_in_"),
        scale_=Floats("n_features_in_", low=0.0),
        medians_=Floats("n_features_in_"),
        counts_=Ints("classes_"),
        queries_=Ints(None, None, low=-1, below="classes_"),
        n_rows_=Count(1),
        bits_=Optional(Ints(None, "n_features_in_", below=256)),
        labels_=Optional(Ints(None, "classes_", below=256)),
        supervised_=Optional(Nested(ChowLiuTree, LatentTree)),
        unsupervised_=Optional(Nested(ChowLiuTree, LatentTree)),
        gap_=Floats(),
        n_iter_=Count(0),
        _chosen=Transient(),
    )

    def __init__(
        self,
        method: str = "structured",
        loss: str = "balanced",
        n_weak: int | None = None,
        *,
        information: str = "empirical",
        C: float = 0.1,
        beta: float = 1.0,
        max_size: int = 1,
        max_queries: int = 300,
        min_rows: int = 5,
        folds: int = 5,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.loss = loss
        self.n_weak = n_weak
        self.information = information
        self.C = C
        self.beta = beta
        self.max_size = max_size
        self.max_queries = max_queries
        self.min_rows = min_rows
        self.folds = folds
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, Z: Any, Y: Any, unlabelled: Any = None) -> AttributeRetriever:
        """Learn from rows whose attributes are known.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak)
            Weak attributes of the rows, for example from `WeakAttributes`, or any features.
        Y : array or sparse matrix of 0 and 1 of shape (n_rows, n_attributes), or list of sets of attributes
            The query attributes of the rows.
        unlabelled : array of shape (n_more_rows, n_weak), optional
            Weak attributes of rows without labels, for ``information="semi-supervised"`` and ``"latent"``.

        Returns
        -------
        AttributeRetriever
            This model.
        """
        self._check_parameters(unlabelled)
        Z = validate_data(self, Z, dtype=np.float64)
        matrix, classes, form = fit_labels(Y, len(Z))
        labels = matrix.toarray()
        self.classes_, self.label_form_, self.n_rows_ = classes, form, len(Z)
        self.counts_ = labels.sum(axis=0).astype(np.int64)
        self._warn_of_idle()
        self.mean_, spread = Z.mean(axis=0), Z.std(axis=0)
        self.scale_ = np.where(spread > 1e-12 * np.maximum(np.abs(self.mean_), 1e-300), spread, 1.0)
        self.medians_ = np.median(Z, axis=0)
        units = (Z - self.mean_) / self.scale_
        queries = self._training_queries(labels)
        self.queries_ = np.array([[*query, *[-1] * (self.max_size - len(query))] for query in queries])
        self._learn_selection(Z, labels, unlabelled)
        self.gap_, self.n_iter_ = np.zeros(()), 0
        if self.method == "structured":
            masks = [mask for mask in map(self._mask, queries) if mask is not None]
            mask = np.stack(masks) if masks else None
            self.weights_ = self._structured(units, labels, queries, mask)
        else:
            self.weights_ = self._by_classifiers(units, labels, queries)
        return self

    def _check_parameters(self, unlabelled: Any = None) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("loss", self.loss, COSTS)
        check_choice("information", self.information, INFORMATION)
        check_positive("C", self.C)
        check_positive("beta", self.beta)
        for name in ("max_size", "max_queries", "min_rows", "folds"):
            check_count(name, getattr(self, name))
        if self.n_weak is not None:
            check_count("n_weak", self.n_weak)
            if self.method != "structured":
                raise ValueError(f"n_weak chooses weak attributes for method='structured', not for {self.method!r}")
        if unlabelled is not None and (self.information == "empirical" or self.n_weak is None):
            raise ValueError("unlabelled rows are for information='semi-supervised' or 'latent' with n_weak")

    def _warn_of_idle(self) -> None:
        for on, word in ((self.counts_ == 0, "never"), (self.counts_ == self.n_rows_, "always")):
            if on.any():
                names = [repr(name) for name in self.classes_[on][:3].tolist()]
                more = f" and {int(on.sum()) - 3} more" if on.sum() > 3 else ""
                message = f"{', '.join(names)}{more} {'is' if on.sum() == 1 else 'are'} {word} on in training"
                warn_caller(f"{message}: nothing can be learnt of it", UserWarning)

    def _training_queries(self, labels: np.ndarray) -> list[list[int]]:
        """All single attributes, and as many larger queries as wanted that enough rows answer."""
        usable = np.flatnonzero((self.counts_ > 0) & (self.counts_ < self.n_rows_))
        if not len(usable):
            raise ValueError("no attribute in Y is on in some rows and off in others: there is nothing to learn")
        singles = [[int(q)] for q in usable]
        random = np.random.default_rng(self.random_state)
        together = labels.T @ labels
        pairs = [(a, b) for a, b in itertools.combinations(usable.tolist(), 2) if together[a, b] >= self.min_rows]
        larger: list[list[int]] = []
        room = max(0, self.max_queries - len(singles))
        if self.max_size >= 2:
            larger += [list(pair) for pair in pairs]
        if self.max_size >= 3 and pairs:
            near = {q: {b if a == q else a for a, b in pairs if q in (a, b)} for q in usable.tolist()}
            triples = [(a, b, c) for a, b in pairs for c in sorted(near[a] & near[b]) if c > b]
            order = random.permutation(len(triples))[: 4 * room]
            answered = [triples[i] for i in order if labels[:, triples[i]].all(axis=1).sum() >= self.min_rows]
            doubles = [larger[i] for i in random.permutation(len(larger))]
            half = min(len(doubles), max(room // 2, room - len(answered)))
            larger = [*doubles[:half], *[list(triple) for triple in answered[: room - half]]]
        else:
            larger = [larger[i] for i in random.permutation(len(larger))[:room]]
        return [*singles, *larger]

    def _structured(
        self, units: np.ndarray, labels: np.ndarray, queries: list[list[int]], mask: np.ndarray | None
    ) -> np.ndarray:
        """Weights (attributes, columns + 1) of the structured margin."""
        A = labels.shape[1]
        constant = np.ones((len(units), 1))
        structure = RowSets(np.hstack([units, constant]), A, self.loss, self.beta)
        members = np.zeros((len(queries), A))
        for k, query in enumerate(queries):
            members[k, query] = 1.0
        truth = np.stack([labels[:, query].all(axis=1) for query in queries]).astype(np.int8)
        risk = Risk(structure, Hinge(), Queries(members, mask), truth)
        result, history = train(
            risk,
            solver=self.solver,
            C=self.C / len(units) * A / members.sum(),  # each attribute is in so many queries
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        self.gap_ = np.asarray(float(history.get("gap", [0.0])[-1] if history.get("gap") else 0.0))
        self.n_iter_ = len(history.get("objective", []))
        return result.w.reshape(A, -1)

    def _by_classifiers(self, units: np.ndarray, labels: np.ndarray, queries: list[list[int]]) -> np.ndarray:
        """Weights from a classifier for each attribute: their sum, or structured margins over their scores."""
        targets = np.where(labels > 0, 1.0, -1.0)
        machines = fit_machines(units, targets, C=self.C / len(units))
        if self.method == "sum":
            return np.hstack([machines.coef, machines.intercept[:, None]])
        scores = np.empty(targets.shape)
        turn = np.random.default_rng(self.random_state).permutation(len(units)) % min(self.folds, len(units))
        for part in np.unique(turn):
            out = turn == part
            inner = machines if out.all() else fit_machines(units[~out], targets[~out], C=self.C / len(units))
            scores[out] = units[out] @ inner.coef.T + inner.intercept
        mean, spread = scores.mean(axis=0), scores.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        w = self._structured((scores - mean) / spread, labels, queries, None)
        own = w[:, :-1] / spread
        return np.hstack([own @ machines.coef, (w[:, -1] + own @ (machines.intercept - mean))[:, None]])

    # ------------------------------------------------------------------ selection

    def _learn_selection(self, Z: np.ndarray, labels: np.ndarray, unlabelled: Any) -> None:
        """What is needed to say which weak attributes count for a query."""
        self.bits_ = self.labels_ = self.supervised_ = self.unsupervised_ = None
        self._chosen: dict[Any, Any] = {}
        if self.n_weak is None or self.method != "structured" or self.n_weak >= Z.shape[1]:
            return
        bits = (self.medians_ < Z).astype(float)
        if self.information == "empirical":
            self.bits_ = np.packbits(bits.astype(np.uint8), axis=0)
            self.labels_ = np.packbits(labels.astype(np.uint8), axis=0)
            return
        more = bits
        if unlabelled is not None:
            extra = validate_data(self, unlabelled, dtype=np.float64, reset=False)
            more = np.vstack([bits, extra > self.medians_])
        kind: Any = LatentTree if self.information == "latent" else ChowLiuTree
        self.supervised_ = kind().fit(np.hstack([labels, bits]))
        self.unsupervised_ = kind().fit(more)

    def information_of(self, query: Any) -> np.ndarray:
        """Return the information of each weak attribute about a query, in nats.

        Parameters
        ----------
        query : attribute or sequence of attributes
            The query.

        Returns
        -------
        ndarray of shape (n_weak,)
            Mutual information of the joint state of the query and the weak attribute, cut at its median.
        """
        check_is_fitted(self)
        return self._information(self._places(query))

    def _information(self, query: list[int]) -> np.ndarray:
        if self.bits_ is not None and self.labels_ is not None:
            bits = np.unpackbits(self.bits_.astype(np.uint8), axis=0, count=self.n_rows_)
            labels = np.unpackbits(self.labels_.astype(np.uint8), axis=0, count=self.n_rows_)
            return empirical_information(labels, bits.astype(float), query)
        if self.supervised_ is None or self.unsupervised_ is None:
            raise ValueError("information_of needs a model that was fitted with n_weak below the number of columns")
        if self._chosen is None:
            self._chosen = {}
        if "trees" not in self._chosen:
            self._chosen["trees"] = TreeInformation(self.supervised_, self.unsupervised_)
        return self._chosen["trees"](query)

    def _mask(self, query: list[int]) -> np.ndarray | None:
        """1 for weak attributes that count for a query, and for the constant; None for all."""
        if self.bits_ is None and self.supervised_ is None:
            return None
        if self._chosen is None:  # after a file was read
            self._chosen = {}
        key = tuple(sorted(query))
        if key not in self._chosen:
            assert self.n_weak is not None
            order = np.argsort(-self._information(list(key)), kind="stable")[: self.n_weak]
            mask = np.zeros(len(self.mean_) + 1)
            mask[order] = mask[-1] = 1.0
            self._chosen[key] = mask
        return self._chosen[key]

    def selected(self, query: Any) -> np.ndarray:
        """Return the weak attributes used for a query.

        Parameters
        ----------
        query : attribute or sequence of attributes
            The query.

        Returns
        -------
        ndarray of int
            Their columns.
        """
        check_is_fitted(self)
        mask = self._mask(self._places(query))
        return np.arange(len(self.mean_)) if mask is None else np.flatnonzero(mask[:-1])

    # ------------------------------------------------------------------ answers

    def _places(self, query: Any) -> list[int]:
        names = [query] if isinstance(query, (str, int, np.integer)) else list(query)
        if not names:
            raise ValueError("the query is empty: name one attribute or more")
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        places = []
        for name in names:
            name = name.item() if isinstance(name, np.generic) else name
            if name not in known:
                some = ", ".join(map(repr, self.classes_[:5].tolist()))
                more = ", …" if len(known) > 5 else ""
                raise ValueError(f"the query names {name!r}, which is no attribute of training ({some}{more})")
            places.append(known[name])
        never = [names[k] for k, q in enumerate(places) if not self.counts_[q]]
        if never:
            raise ValueError(f"the query names {never[0]!r}, which was never on in training: nothing is known of it")
        return sorted(set(places))

    def weights_of(self, query: Any) -> tuple[np.ndarray, float]:
        """Return weights and offset such that s_Q is ``Z @ weights + offset``.

        Parameters
        ----------
        query : attribute or sequence of attributes
            The query.

        Returns
        -------
        weights : ndarray of shape (n_weak,)
            Weights of the weak attributes on their given scale; 0 for unused ones.
        offset : float
            The constant.
        """
        check_is_fitted(self)
        return self._weights(self._places(query))

    def _weights(self, places: list[int]) -> tuple[np.ndarray, float]:
        w = self.weights_[places].sum(axis=0)
        mask = self._mask(places)
        if mask is not None:
            w = w * mask
        own = w[:-1] / self.scale_
        return own, float(w[-1] - own @ self.mean_)

    def query_scores(self, Z: Any, query: Any) -> np.ndarray:
        """Return s_Q of rows.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak), memory-mapped if it is large
            Weak attributes. Of arrays in column order (``order="F"``), only columns with a nonzero weight are read.
        query : attribute or sequence of attributes
            The query.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores; above 0 for rows that match the query.
        """
        weights, offset = self.weights_of(query)
        return linear_scores(self._weak_rows(Z), weights) + offset

    def _weak_rows(self, Z: Any) -> np.ndarray:
        if isinstance(Z, np.ndarray) and Z.ndim == 2 and Z.dtype.kind == "f" and len(Z) > _BLOCK:
            if Z.shape[1] != self.n_features_in_:
                raise ValueError(f"Z has {Z.shape[1]} weak attributes, but training had {self.n_features_in_}")
            return Z  # not looked through first: scores tell where it is not finite
        return np.asarray(validate_data(self, Z, dtype=[np.float64, np.float32], reset=False))

    def rank(self, Z: Any, query: Any, k: int | None = None) -> Ranking:
        """Return the rows that match a query best.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak), memory-mapped if it is large
            Weak attributes.
        query : attribute or sequence of attributes
            The query.
        k : int, optional
            Number of rows; by default all.

        Returns
        -------
        Ranking
            Rows and scores, best first; ties in row order.
        """
        scores = self.query_scores(Z, query)
        if k is None or k >= len(scores):
            order = np.argsort(-scores, kind="stable")
        else:
            least = np.partition(scores, len(scores) - check_count("k", k))[-k]
            best = np.flatnonzero(scores >= least)
            order = best[np.argsort(-scores[best], kind="stable")][:k]
        return Ranking(order, scores[order])

    def retrieve(self, Z: Any, query: Any) -> np.ndarray:
        """Return the set of rows that match a query: the rows with a score above 0.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak)
            Weak attributes.
        query : attribute or sequence of attributes
            The query.

        Returns
        -------
        ndarray of int
            Row numbers, ascending.
        """
        return np.flatnonzero(self.query_scores(Z, query) > 0)

    def decision_function(self, Z: Any) -> np.ndarray:
        """Return the scores of rows for each single attribute.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak)
            Weak attributes.

        Returns
        -------
        ndarray of shape (n_rows, n_attributes)
            Scores; −inf for attributes that were never on in training.
        """
        check_is_fitted(self)
        rows = self._weak_rows(Z)
        out = np.full((len(rows), len(self.classes_)), -np.inf)
        for q in np.flatnonzero(self.counts_):
            weights, offset = self._weights([int(q)])
            out[:, q] = linear_scores(rows, weights) + offset
        return out

    def auc(self, Z: Any, Y: Any, sizes: Iterable[int] = (1, 2, 3), max_queries: int = 500) -> dict[int, float]:
        """Return the mean area under the ROC curve of queries, by query size; ½ is chance.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak)
            Weak attributes.
        Y : labels, see `fit`
            Query attributes of the rows.
        sizes : iterable of int, default=(1, 2, 3)
            Numbers of attributes in a query.
        max_queries : int, default=500
            Maximum number of queries of each size; if there are more, a sample is drawn with a fixed seed.

        Returns
        -------
        dict
            From size to the mean over queries that match some rows but not all; NaN if there is none.
        """
        check_is_fitted(self)
        rows = self._weak_rows(Z)
        labels = encode(self, Y).toarray()
        if len(labels) != len(rows):
            raise ValueError(f"Z has {len(rows)} rows and Y {len(labels)}: they must be of one length")
        usable = np.flatnonzero((self.counts_ > 0) & (labels.sum(axis=0) > 0)).tolist()
        areas_by_size = {}
        for size in sizes:
            queries = [q for q in itertools.combinations(usable, size) if labels[:, q].all(axis=1).any()]
            order = np.random.default_rng(0).permutation(len(queries))[:max_queries]
            areas = [self._auc(rows, labels[:, queries[i]].all(axis=1), list(queries[i])) for i in order]
            areas_by_size[int(size)] = float(np.nanmean(areas)) if len(areas) else float("nan")
        return areas_by_size

    def _auc(self, rows: np.ndarray, truth: np.ndarray, query: list[int]) -> float:
        scores = linear_scores(rows, self._weights(query)[0])
        return area_under_curve(scores, truth)

    def score(self, Z: Any, Y: Any) -> float:
        """Return the mean of `auc` over single, double and triple queries.

        Parameters
        ----------
        Z : array of shape (n_rows, n_weak)
            Weak attributes.
        Y : labels, see `fit`
            Query attributes of the rows.

        Returns
        -------
        float
            The mean; ½ is chance.
        """
        return float(np.nanmean(list(self.auc(Z, Y).values())))

    def _check_state(self) -> None:
        self._check_parameters()
        m = self.n_features_in_
        if self.weights_.shape[1] != m + 1 or (self.scale_ <= 0).any():
            raise ValueError(f"expected weights of {m} weak attributes and a constant, and scales above 0")
        packed = (self.n_rows_ + 7) // 8
        for part in (self.bits_, self.labels_):
            if part is not None and len(part) != packed:
                raise ValueError(f"{self.n_rows_} rows are packed into {packed} bytes, found {len(part)}")
        if (self.bits_ is None) != (self.labels_ is None):
            raise ValueError("bits of weak attributes and of labels must be given together")
        trees = (self.supervised_, self.unsupervised_)
        if (trees[0] is None) != (trees[1] is None):
            raise ValueError("both trees are there, or none")
        sizes = [tree.n_features_in_ for tree in trees if tree is not None]
        if sizes and sizes != [m + len(self.classes_), m]:
            raise ValueError("the trees do not fit the attributes")
        if (self.bits_ is not None or trees[0] is not None) and self.n_weak is None:
            raise ValueError("a selection of weak attributes needs n_weak")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.required = True
        return tags


def linear_scores(Z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute Z @ weights in blocks of rows; of arrays in column order, only columns with a nonzero weight are read."""
    n = len(Z)
    out = np.empty(n)
    used = np.flatnonzero(weights)
    by_columns = Z.flags.f_contiguous and not Z.flags.c_contiguous
    kind: Any = np.float64 if Z.dtype == np.float64 else np.float32
    own = weights.astype(kind)
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        if by_columns:
            total: Any = np.zeros(part.stop - part.start, kind)
            term = np.empty_like(total)
            for j in used:
                np.multiply(Z[part, j], own[j], out=term, casting="same_kind")
                total += term
            out[part] = total
        else:
            block: Any = Z[part]
            out[part] = (block if block.dtype == kind else block.astype(kind)) @ own
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"row {row} of Z contains NaN or infinity")
    return out


def area_under_curve(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the probability that a matching row scores above another row; equal scores count half."""
    positive = int(truth.sum())
    negative = len(truth) - positive
    if not positive or not negative:
        return float("nan")
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[places]
    return float((ranks[truth].sum() - positive * (positive + 1) / 2.0) / (positive * negative))
