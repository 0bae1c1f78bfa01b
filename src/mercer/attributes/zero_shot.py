"""Classification into classes without training rows, by their similarity to other classes or by a table of attributes.

    designed     f(x) predicts attributes A that were designed for the known classes; new ones have A' = S'A
    attributes   the same with a given table, whose rows for the new classes are A'; without one, A = 2I − 1
    eszsl        scores x V s_k,   V = (XᵀX + γI)⁻¹ Xᵀ Y S (SᵀS + λI)⁻¹,   rows s_k of a table S  [RomeraParedes2015]
    dap          Π_m p(a_m^k | x) / p(a_m^k),   calibrated classifiers for attributes of a binary table [Lampert2009]

S' holds the similarity of each new class (row) to each known class (column), averaged over annotators. Where known
classes may also occur (`generalised`), new classes get a bonus, because classifiers trained on the known classes prefer
those. The bonus is chosen on known classes that are held out as new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import nnls
from scipy.special import log_expit
from sklearn.base import ClassifierMixin

from mercer._state.saved import Count, Fields, Floats, LabelValues, Number, Optional
from mercer._validation import check_choice, check_count, check_flag, check_positive
from mercer._warnings import warn_caller
from mercer.attributes._checks import check_classes, check_similarity, check_table, used_rows
from mercer.attributes.category import DECODINGS, Encoder, decoded, signed, warn_of_idle
from mercer.attributes.design import _designed, visual_proximity
from mercer.learning.sigmoids import fit_sigmoids
from mercer.learning.weighted_machines import LOSSES, fit_machines

__all__ = ["ZeroShotClassifier", "attribute_similarity"]

METHODS = ("designed", "attributes", "eszsl", "dap")
_SIMILAR = 5  # known classes that a person names for a new one


def attribute_similarity(new: Any, known: Any, n_similar: int | None = None, *, alpha: float = 0.3) -> np.ndarray:
    """Return the similarity of new classes to known ones, from their attributes.

    Parameters
    ----------
    new : array of shape (n_new, n_attributes)
        Attributes of new classes.
    known : array of shape (n_known, n_attributes)
        Attributes of known classes.
    n_similar : int, optional
        None: the weights s ≥ 0 of a nonnegative ridge regression of the new class's attributes on those of the known
        classes. A number: the cosines of that many most similar known classes.
    alpha : float, default=0.3
        Penalty of s² in the regression, in units of the mean squared length of the attributes of a known class. Larger
        values spread the similarity over more classes.

    Returns
    -------
    ndarray of shape (n_new, n_known)
        Nonnegative similarities. Attributes are first standardised by mean and standard deviation over the known
        classes.

    References
    ----------
    .. [RomeraParedes2015] B. Romera-Paredes and P. H. S. Torr. An embarrassingly simple approach to zero-shot learning.
       ICML, 2015.

    Examples
    --------
    >>> from mercer.attributes import attribute_similarity
    >>> known = [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    >>> attribute_similarity([[1.0, 0.4]], known).round(2)
    array([[0.28, 0.34, 0.  ]])
    >>> attribute_similarity([[1.0, 0.9]], known, n_similar=1).round(2)
    array([[1., 0., 0.]])
    """
    if n_similar is not None:
        n_similar = check_count("n_similar", n_similar)
    check_positive("alpha", alpha)
    known = check_table("known", known, len(known))
    new = check_table("new", new, len(new))
    if known.shape[1] != new.shape[1]:
        raise ValueError(f"new has {new.shape[1]} attributes and known {known.shape[1]}: they must be the same")
    spread = known.std(axis=0)
    spread[spread == 0] = 1.0
    mean = known.mean(axis=0)
    a, b = ((table - mean) / spread for table in (new, known))
    lengths = np.maximum(np.linalg.norm(b, axis=1), 1e-300)
    cosines = (a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)) @ (b / lengths[:, None]).T
    if n_similar is None:
        similarity = _combinations(a, b, alpha * float((lengths**2).mean()))
    else:
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :n_similar]
        similarity = np.zeros_like(cosines)
        np.put_along_axis(similarity, order, np.maximum(np.take_along_axis(cosines, order, 1), 0.0), axis=1)
    nothing = ~similarity.any(axis=1)
    if nothing.any():
        first = int(np.flatnonzero(nothing)[0])
        message = f"the attributes of new class {first} resemble those of no known class: the nearest one stands for it"
        warn_caller(message, UserWarning)
        similarity[nothing, cosines[nothing].argmax(axis=1)] = 1.0
    return similarity


def _combinations(new: np.ndarray, known: np.ndarray, penalty: float) -> np.ndarray:
    """Weights s ≥ 0 with the least ‖a − s K‖² + penalty ‖s‖² for each row a."""
    rows = np.vstack([known.T, np.sqrt(penalty) * np.eye(len(known))])
    return np.array([nnls(rows, np.r_[a, np.zeros(len(known))])[0] for a in new])


@dataclass
class _Side:
    """What is known of the new classes: similarities, or attributes of both kinds of classes, or both."""

    similarity: np.ndarray | None
    known: np.ndarray | None
    new: np.ndarray | None
    n_similar: int | None

    def similarities(self) -> np.ndarray:
        if self.similarity is not None:
            return self.similarity
        assert self.new is not None
        assert self.known is not None
        return attribute_similarity(self.new, self.known, self.n_similar)

    def tables(self, n_known: int) -> tuple[np.ndarray, np.ndarray]:
        """Attributes of known and new classes; without a table, "is class k", and the similarities."""
        if self.known is not None and self.new is not None:
            return self.known, self.new
        similarity = self.similarities()
        return np.eye(n_known), similarity / similarity.sum(axis=1, keepdims=True)

    def held_out(self, kept: np.ndarray, out: np.ndarray, proximity: np.ndarray) -> _Side:
        """The same for known classes of which some play new ones."""
        if self.known is not None:
            return _Side(None, self.known[kept], self.known[out], self.n_similar)
        similarity = proximity[np.ix_(out, kept)]
        nearest = np.sort(similarity, axis=1)[:, -min(self.n_similar or _SIMILAR, len(kept)), None]
        similarity = np.where(similarity >= nearest, similarity, 0.0)
        similarity[~similarity.any(axis=1)] = 1.0
        return _Side(similarity, None, None, self.n_similar)


class ZeroShotClassifier(ClassifierMixin, Encoder):
    """Classify rows into classes that were not in training.

    Parameters
    ----------
    similarity : array of shape (n_new, n_known) or (n_people, n_new, n_known), optional
        How similar each new class is to each known one, not negative; several people are averaged. The rows and columns
        of a data frame name the classes.
    novel : sequence of labels, optional
        The new classes, in the order of the rows of ``similarity``. Needed unless a data frame names them.
    attributes : array of shape (n_known + n_new, n_table), optional
        A table of attributes, rows of known classes first; the index of a data frame names the classes, in any order.
    known : sequence of labels, optional
        Known classes in the order of the columns of ``similarity`` and rows of ``attributes``; by default sorted.
    method : {"designed", "attributes", "eszsl", "dap"}, default="designed"
        Attributes designed from the rows, the given table, or one of two common baselines. Without similarities,
        "designed" takes them from the table. Without a table, "eszsl" uses the similarities as one.
    n_attributes : int, default=200
        Number of attributes to design; fewer if that many different ones do not exist.
    adaptive : bool, default=False
        Design attributes that keep the new classes apart, instead of the known ones.
    generalised : bool, default=False
        Predict known and new classes.
    calibration : float, optional
        Bonus of new classes, where known ones may also occur. By default it maximises the harmonic mean of both
        accuracies on known classes that are held out as new ones.
    C : float, default=1.0
        Weight of the losses of classifiers; 1/γ of "eszsl". Smaller values regularise more.
    table_penalty : float, default=1.0
        λ of "eszsl".
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        Loss of the classifiers.
    decode : {"cosine", "euclidean", "hamming"}, default="cosine"
        How scores and descriptions are compared.
    n_similar : int, optional
        Number of known classes that are similar to a new one, if similarities come from a table. None: chosen by
        regression, see `attribute_similarity`.
    proximity_weight, redundancy_weight, sparsify : float
        See `design_attributes`.
    n_neighbors : int, default=10
        See `visual_proximity`.
    tol, max_iter
        Of the classifiers.
    random_state : int or None, default=0
        Seed of the choice of known classes that are held out as new ones.

    Attributes
    ----------
    classes_ : ndarray
        Classes that can be predicted: the new ones; with ``generalised``, the known ones first.
    known_classes_, novel_classes_ : ndarrays
        Known and new classes.
    similarity_ : ndarray of shape (n_new, n_known) or None
        Similarities used, averaged over people.
    known_attributes_, novel_attributes_ : ndarrays of shape (n_known, n_attributes) and (n_new, n_attributes)
        Descriptions of the classes.
    coef_, intercept_ : ndarrays
        The classifiers.
    calibration_ : float
        Bonus of new classes.

    References
    ----------
    .. [Yu2013b] F. X. Yu, L. Cao, R. S. Feris, J. R. Smith and S.-F. Chang. Designing category-level attributes for
       discriminative visual recognition. CVPR, 2013.
    .. [RomeraParedes2015] B. Romera-Paredes and P. H. S. Torr. An embarrassingly simple approach to zero-shot learning.
       ICML, 2015.
    .. [Lampert2009] C. H. Lampert, H. Nickisch and S. Harmeling. Learning to detect unseen object classes by
       between-class attribute transfer. CVPR, 2009.
    .. [Chao2016] W.-L. Chao, S. Changpinyo, B. Gong and F. Sha. An empirical study and analysis of generalized
       zero-shot learning for object recognition in the wild. ECCV, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.attributes import ZeroShotClassifier
    >>> rng = np.random.default_rng(0)
    >>> corners = np.array([[0, 0], [4, 0], [0, 4], [4, 4.0]])
    >>> X = np.repeat(corners, 20, axis=0) + rng.normal(size=(80, 2))
    >>> y = np.repeat(["cat", "dog", "cow", "horse"], 20)
    >>> similarity = [[0, 0, 1, 1], [1, 1, 0, 0]]  # columns: cat, cow, dog, horse
    >>> model = ZeroShotClassifier(similarity, novel=["mule", "goat"]).fit(X, y)
    >>> model.predict([[4.0, 2.0], [0.0, 2.0]])
    array(['mule', 'goat'], dtype='<U4')
    """

    version = 2  # lam and eta are weights
    saved = Fields(
        classes_=LabelValues(1),
        known_classes_=LabelValues(2),
        novel_classes_=LabelValues(1),
        similarity_=Optional(Floats("novel_classes_", "known_classes_", low=0.0)),
        known_attributes_=Floats("known_classes_", None),
        novel_attributes_=Floats("novel_classes_", None),
        coef_=Floats(None, "n_features_in_"),
        intercept_=Floats("coef_"),
        platt_=Optional(Floats("coef_", 2)),
        prior_=Optional(Floats("coef_", low=0.0, high=1.0)),
        calibration_=Number(),
        n_iter_=Count(0),
    )

    def __init__(
        self,
        similarity: Any = None,
        *,
        novel: Any = None,
        attributes: Any = None,
        known: Any = None,
        method: str = "designed",
        n_attributes: int = 200,
        adaptive: bool = False,
        generalised: bool = False,
        calibration: float | None = None,
        C: float = 1.0,
        table_penalty: float = 1.0,
        loss: str = "squared-hinge",
        decode: str = "cosine",
        n_similar: int | None = None,
        proximity_weight: float = 3.0,
        redundancy_weight: float = 15.0,
        sparsify: float = 0.1,
        n_neighbors: int = 10,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: int | None = 0,
    ) -> None:
        self.similarity = similarity
        self.novel = novel
        self.attributes = attributes
        self.known = known
        self.method = method
        self.n_attributes = n_attributes
        self.adaptive = adaptive
        self.generalised = generalised
        self.calibration = calibration
        self.C = C
        self.table_penalty = table_penalty
        self.loss = loss
        self.decode = decode
        self.n_similar = n_similar
        self.proximity_weight = proximity_weight
        self.redundancy_weight = redundancy_weight
        self.sparsify = sparsify
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ZeroShotClassifier:
        """Learn from rows of the known classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : array of shape (n_rows,)
            Their classes, none of them new.
        sample_weight : array of n_rows numbers of at least 0, optional
            A row of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        ZeroShotClassifier
            This model.
        """
        self._check_parameters()
        X = self._rows(X, reset=True)
        X, y, weights = used_rows(X, y, sample_weight)
        classes, labels = check_classes(y, X.shape[0])
        novel, side = self._side_information(classes)
        fitted = self._fitted(X, labels, len(classes), side, weights)
        self.coef_, self.intercept_, self.known_attributes_, self.novel_attributes_, self.platt_, self.prior_ = fitted
        self.known_classes_, self.novel_classes_ = classes, novel
        self.similarity_ = None if self.method in ("attributes", "dap") else side.similarities()
        self.classes_ = np.concatenate([classes, novel]) if self.generalised else novel
        self.calibration_ = float(self.calibration or 0.0)
        if self.generalised and self.calibration is None:
            self.calibration_ = self._calibrated(X, labels, len(classes), side, weights)
        return self

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("decode", self.decode, DECODINGS)
        check_choice("loss", self.loss, LOSSES)
        check_flag("adaptive", self.adaptive)
        check_flag("generalised", self.generalised)
        check_positive("table_penalty", self.table_penalty)
        check_positive("C", self.C)
        if self.calibration is not None and not np.isfinite(self.calibration):
            raise ValueError(f"calibration must be a finite number, got {self.calibration!r}")

    def _side_information(self, classes: np.ndarray) -> tuple[np.ndarray, _Side]:
        """The new classes, and similarities and tables in the order of the known ones."""
        similarity, table, known, novel = self.similarity, self.attributes, self.known, self.novel
        if similarity is None and table is None:
            raise ValueError("the new classes have no description: give similarity or attributes")
        if similarity is not None and hasattr(similarity, "columns"):
            novel = list(similarity.index) if novel is None else novel
            known = list(similarity.columns) if known is None else known
            similarity = similarity.to_numpy()
        named = None if table is None or not hasattr(table, "index") else list(table.index)
        if novel is None and named is not None:
            novel = [name for name in named if name not in set(classes.tolist())]
        if novel is None:
            raise ValueError("novel must name the new classes, one for each row of similarity")
        novel = np.asarray(novel)
        self._check_names(novel, classes)
        order = self._order(classes, known)
        if similarity is not None:
            similarity = check_similarity("similarity", similarity, len(classes), novel)[:, order]
        known_table = new_table = None
        if table is not None:
            if named is not None:
                place = {name: i for i, name in enumerate(named)}
                missing = [name for name in [*classes.tolist(), *novel.tolist()] if name not in place]
                if missing:
                    raise ValueError(f"attributes has no row for class {missing[0]!r}")
                values = check_table("attributes", table, len(named))
                known_table = values[[place[name] for name in classes.tolist()]]
                new_table = values[[place[name] for name in novel.tolist()]]
            else:
                values = check_table("attributes", table, len(classes) + len(novel))
                known_table, new_table = values[: len(classes)][order], values[len(classes) :]
        n_similar = None if self.n_similar is None else check_count("n_similar", self.n_similar)
        return novel, _Side(similarity, known_table, new_table, n_similar)

    @staticmethod
    def _check_names(novel: np.ndarray, classes: np.ndarray) -> None:
        if novel.ndim != 1 or not len(novel):
            raise ValueError("novel must be a sequence of one or more classes")
        if len(set(novel.tolist())) < len(novel):
            raise ValueError("novel names a class twice")
        both = set(novel.tolist()) & set(classes.tolist())
        if both:
            raise ValueError(f"class {sorted(map(str, both))[0]!r} is new, but has rows in y")

    @staticmethod
    def _order(classes: np.ndarray, known: Any) -> np.ndarray:
        """Where each class of y is among the known classes as a person listed them."""
        if known is None:
            return np.arange(len(classes))
        known = np.asarray(known).tolist()
        place = {name: i for i, name in enumerate(known)}
        missing = [name for name in classes.tolist() if name not in place]
        if missing:
            raise ValueError(f"class {missing[0]!r} of y is not among the known classes")
        if len(known) != len(classes):
            without = next((name for name in known if name not in set(classes.tolist())), known[0])
            raise ValueError(f"known class {without!r} has no row in y, or is listed twice")
        return np.array([place[name] for name in classes.tolist()])

    def _fitted(self, X: Any, labels: np.ndarray, n_known: int, side: _Side, weights: Any) -> tuple[Any, ...]:
        """Machines, descriptions of known and new classes, calibration of probabilities and priors of attributes."""
        if self.method == "eszsl":
            return (*self._fit_eszsl(X, labels, n_known, side, weights), None, None)
        if self.method == "designed":
            return (*self._fit_designed(X, labels, n_known, side, weights), None, None)
        known, new = side.tables(n_known)
        if self.method == "dap":
            return self._fit_dap(X, labels, *_binary(known, new), weights)
        if side.known is None:  # "is class k" and its opposite
            known, new = 2.0 * known - 1.0, 2.0 * new - 1.0
        both = signed(np.vstack([known, new]))
        known, new = both[:n_known], both[n_known:]
        warn_of_idle(known)
        coef, intercept = self._machines(X, known, labels, weights)
        return coef, intercept, known, new, None, None

    def _machines(self, X: Any, table: np.ndarray, labels: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        machines = fit_machines(
            X, table, labels, weights=weights, C=self.C, loss=self.loss, tol=self.tol, max_iter=self.max_iter
        )
        self.n_iter_ = int(machines.n_iter)
        return machines.coef, machines.intercept

    def _fit_designed(
        self, X: Any, labels: np.ndarray, n_known: int, side: _Side, weights: Any
    ) -> tuple[np.ndarray, ...]:
        similarity = side.similarities()
        S = visual_proximity(X, labels, n_neighbors=self.n_neighbors, sample_weight=weights)
        adaptive = None
        if self.adaptive:  # of the size of the matrix that it stands in for, so that weights mean the same
            k = len(similarity)
            if k < 2:
                raise ValueError("adaptive needs two new classes or more, to keep them apart")
            size = np.trace(similarity.T @ (k * np.eye(k) - 1.0) @ similarity)
            adaptive = similarity * np.sqrt(n_known * (n_known - 1) / max(size, 1e-300))
        factors = self.proximity_weight, self.redundancy_weight
        A = _designed(S, self.n_attributes, *factors, self.sparsify, adaptive, strict=False)
        coef, intercept = self._machines(X, A, labels, weights)
        return coef, intercept, A, (similarity / similarity.sum(axis=1, keepdims=True)) @ A

    def _fit_eszsl(self, X: Any, labels: np.ndarray, n_known: int, side: _Side, weights: Any) -> tuple[np.ndarray, ...]:
        known, new = side.tables(n_known)
        size = np.linalg.norm(known, axis=1).mean()
        known, new = known / max(size, 1e-300), new / max(size, 1e-300)
        Y = np.where(labels[:, None] == np.arange(n_known), 1.0, -1.0)
        if sp.issparse(X):
            X = X.toarray()
        mean = np.average(X, axis=0, weights=weights)
        roots = np.ones((len(X), 1)) if weights is None else np.sqrt(weights)[:, None]
        right, centred = (Y @ known) * roots, (X - mean) * roots
        n, d = centred.shape
        if d <= n:
            gram = centred.T @ centred
            gram[np.diag_indices(d)] += 1.0 / self.C
            V = scipy.linalg.solve(gram, centred.T @ right, assume_a="pos")
        else:
            gram = centred @ centred.T
            gram[np.diag_indices(n)] += 1.0 / self.C
            V = centred.T @ scipy.linalg.solve(gram, right, assume_a="pos")
        inner = known.T @ known
        inner[np.diag_indices(len(inner))] += self.table_penalty
        V = scipy.linalg.solve(inner, V.T, assume_a="pos")
        self.n_iter_ = 1
        return V, -V @ mean, known, new

    def _fit_dap(self, X: Any, labels: np.ndarray, known: np.ndarray, new: np.ndarray, weights: Any) -> tuple[Any, ...]:
        """Machines on all rows; sigmoids on scores of rows that a third of the machines did not see."""
        targets = 2.0 * known - 1.0
        warn_of_idle(targets)
        coef, intercept = self._machines(X, targets, labels, weights)
        scores = np.zeros((X.shape[0], known.shape[1]))
        turn = np.empty(X.shape[0], np.int64)  # every class in all three parts
        for k in range(len(known)):
            turn[labels == k] = np.arange((labels == k).sum()) % 3
        for part in range(3):
            out = turn == part
            if not out.any() or out.all():
                continue
            own = self._machines(X[~out], targets, labels[~out], None if weights is None else weights[~out])
            scores[out] = X[out] @ own[0].T + own[1]
        truth = known[labels] > 0
        platt = np.column_stack(fit_sigmoids(scores, truth))
        alone = truth.all(axis=0) | ~truth.any(axis=0)  # nothing is known of the other value: Platt's prior
        platt[alone, 1] = np.log((truth.sum(axis=0) + 1.0) / ((~truth).sum(axis=0) + 1.0))[alone]
        return coef, intercept, known, new, platt, np.clip(known.mean(axis=0), 0.02, 0.98)

    def _calibrated(self, X: Any, labels: np.ndarray, n_known: int, side: _Side, weights: Any) -> float:
        """The bonus with the largest harmonic mean of accuracies, over three draws of a fifth of the known classes."""
        random = np.random.default_rng(self.random_state)
        proximity = visual_proximity(X, labels, n_neighbors=n_known, sample_weight=weights)
        out_count = max(1, n_known // 5)
        if n_known - out_count < 2:
            return 0.0
        leads, are_new, known_right, new_right = [], [], [], []
        for _ in range(3):
            out = np.sort(random.permutation(n_known)[:out_count])
            kept = np.setdiff1d(np.arange(n_known), out)
            is_new = np.isin(labels, out)
            tested = is_new | (random.random(len(labels)) < 0.2)
            if not (~tested).any() or len(np.unique(labels[~tested])) < len(kept):
                continue
            inner = self._fitted(X[~tested], np.searchsorted(kept, labels[~tested]), len(kept),
                                 side.held_out(kept, out, proximity),
                                 None if weights is None else weights[~tested])  # fmt: skip
            scores = self._class_scores(np.asarray(X[tested] @ inner[0].T + inner[1]), *inner[2:])
            own, new = scores[:, : len(kept)], scores[:, len(kept) :]
            truth, truly_new = labels[tested], is_new[tested]
            leads.append(own.max(axis=1) - new.max(axis=1))
            are_new.append(truly_new)
            known_right.append(~truly_new & (kept[own.argmax(axis=1)] == truth))
            new_right.append(truly_new & (out[new.argmax(axis=1)] == truth))
        if not leads:
            return 0.0
        lead, is_new = np.concatenate(leads), np.concatenate(are_new)
        seen, unseen = np.concatenate(known_right), np.concatenate(new_right)
        best, bonus = -1.0, 0.0
        for candidate in np.unique(np.quantile(lead, np.linspace(0, 1, 101))):
            taken = lead < candidate
            a = (seen & ~taken).sum() / max(1, (~is_new).sum())
            b = (unseen & taken).sum() / max(1, is_new.sum())
            harmonic = 2 * a * b / (a + b) if a + b > 0 else 0.0
            if harmonic > best:
                best, bonus = harmonic, float(candidate)
        return bonus

    # ------------------------------------------------------------------ prediction

    def _class_scores(self, F: np.ndarray, known: np.ndarray, new: np.ndarray, platt: Any, prior: Any) -> np.ndarray:
        table = np.vstack([known, new])
        if self.method == "eszsl":
            return F @ table.T
        if self.method == "dap":
            z = platt[:, 0] * F + platt[:, 1]
            on, off = log_expit(z) - np.log(prior), log_expit(-z) - np.log1p(-prior)
            return on @ table.T + off @ (1.0 - table).T
        return decoded(F, table, self.decode)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the classes in ``classes_``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Scores, including the bonus of new classes with ``generalised``. For two classes, the score of the second
            minus that of the first, of shape (n_rows,).
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Any) -> np.ndarray:
        scores = self._class_scores(
            self._encoded(X), self.known_attributes_, self.novel_attributes_, self.platt_, self.prior_
        )
        new = scores[:, len(self.known_classes_) :]
        if not self.generalised:
            return new
        return np.hstack([scores[:, : len(self.known_classes_)], new + self.calibration_])

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the highest score.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    # ------------------------------------------------------------------ files

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        return {**params, "similarity": None, "attributes": None, "known": None, "novel": self.novel_classes_.tolist()}

    def _check_state(self) -> None:
        self._check_parameters()
        widths = {len(self.coef_), self.known_attributes_.shape[1], self.novel_attributes_.shape[1]}
        if len(widths) > 1:
            raise ValueError("the numbers of machines and of attributes of known and new classes differ")
        if (self.method == "dap") != (self.platt_ is not None and self.prior_ is not None):
            raise ValueError("probabilities of attributes are there for the method 'dap', and for no other")
        expected = [*self.known_classes_.tolist(), *self.novel_classes_.tolist()]
        if self.classes_.tolist() != (expected if self.generalised else expected[len(self.known_classes_) :]):
            raise ValueError("classes_ are not the known and new classes")


def _binary(known: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tables of 0 and 1: numbers are cut at the mean of both."""
    both = np.vstack([known, new])
    if not np.isin(both, (0.0, 1.0)).all():
        both = (both > both.mean()).astype(float)
    return both[: len(known)], both[len(known) :]
