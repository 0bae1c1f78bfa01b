"""The joint support vector machine of label sets, learned online.

    b_i = ⟨v_i, W x_i⟩;  where b_i < margin:   W ← W + step v_i x_i'           x_i, v_i of unit length

With kernels W = Σ_j a_j ψ(y_j) φ(x_j)' and b_i = Σ_j a_j K_out(y_i, y_j) K_in(x_i, x_j); an update adds to a_i
(``"perceptron"``) or moves all coefficients along the gradient, kept from becoming negative (``"gradient"``).

If some W* of norm 1 has ⟨v_i, W* x_i⟩ ≥ Γ > 0 for all rows, there are at most (1 + 2 margin / step) / Γ² updates,
because ‖W‖² grows by at most 2 step margin + step² and ⟨W, W*⟩ by at least step Γ. (The sharper bounds of [Xiong2015b]
for a W that is normalised after every update do not hold.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from mercer import _core
from mercer._explain import ScoreRows
from mercer._state.saved import Choice, Count, Csr, Fields, Floats, LabelValues, Nested, Number, Optional
from mercer._validation import (
    check_choice,
    check_count,
    check_flag,
    check_not_negative,
    check_positive,
    check_sparse,
    used_examples,
)
from mercer.kernel_methods.base import KernelMethod
from mercer.kernel_methods.collections import count
from mercer.kernels.outputs import LabelSetKernel, LinearOutput
from mercer.learning.visits import visits
from mercer.multilabel._decisions import Decisions, check_threshold
from mercer.multilabel.joint import LabelSetClassifier, label_rows
from mercer.multilabel.label_forms import FORMS, encode, fit_labels

__all__ = ["OnlineJointSVM"]

_CONSTANT = 0.3  # the constant feature of a row of unit length
_RECENT = 4096  # rows of a stream that calibrate


class OnlineJointSVM(LabelSetClassifier, KernelMethod):
    """Learn label sets online, all labels jointly.

    Without a kernel, weights of dense or sparse features are learned, and `partial_fit` takes a stream. With a kernel,
    coefficients of the training rows are learned.

    Parameters
    ----------
    step : float, default=1.0
        Step size of an update.
    margin : float, default=5.0
        A row is learnt if the score of its true label set is below the margin. Rows have unit length: with a margin of
        1, steps of 1 reach it within a few passes, and most rows then cause no update.
    max_iter : int, default=10
        Maximum number of passes over the rows; training stops after a pass without updates.
    kernel : Kernel, "precomputed" or None
        None: weights of features.
    update : {"perceptron", "gradient"}, default="perceptron"
        Update rule of kernel coefficients.
    average : bool, default=True
        Predict with the mean of the weights over all visited rows, which has lower variance. Only without a kernel.
    fit_intercept : bool, default=True
        Whether a constant is added to the features.
    code : {"centred", "signs", "indicator"}, default="centred"
        Codes of label sets, as in `LinearOutput`.
    decode : {"auto", "direct", "seen"}, default="auto"
    threshold, measure
        As in `JointSVM`, on scores without the row's own updates; in a stream, on rows before they are learned.
    shuffle : bool, default=True
    random_state : int, RandomState or None
    n_jobs : int or None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array of shape (n_features, n_labels)
        Weights for prediction, with the constant in the last row; None with a kernel.
    n_updates_ : int
    squared_norm_ : float
        ‖W‖², kept up to date by the updates.
    margin_ : float
        The smallest ⟨v_i, W x_i⟩ / ‖W‖ of the training rows, after `fit`.
    update_bound_ : float
        Upper bound on the number of updates by this margin; infinite if the margin is not positive.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import OnlineJointSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = OnlineJointSVM(random_state=0).fit(X, (X > 0).astype(int))
    >>> bool(model.score(X, (X > 0).astype(int)) > 0.9)
    True

    References
    ----------
    .. [Xiong2015b] H. Xiong, S. Szedmak and J. Piater. Scalable, accurate image annotation with joint SVMs and output
       kernels. Neurocomputing, 2015.
    """

    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        coef_=Optional(Floats(None, "classes_")),
        weights_=Optional(Floats(None, "classes_")),
        sums_=Optional(Floats(None, "classes_")),
        dual_coef_=Optional(Floats("support_", low=0.0)),
        labels_=Optional(Csr("support_", "classes_")),
        output_=Nested(LabelSetKernel),
        decisions_=Nested(Decisions),
        n_updates_=Count(0),
        n_seen_=Count(0),
        squared_norm_=Number(0.0),
        margin_=Optional(Number()),
        update_bound_=Optional(Number(0.0, finite=False)),
        n_iter_=Count(0),
    )

    coef_: Any
    weights_: Any
    sums_: Any
    dual_coef_: Any
    labels_: Any
    margin_: Any
    update_bound_: Any

    def __init__(
        self,
        step: float = 1.0,
        margin: float = 5.0,
        max_iter: int = 10,
        kernel: Any = None,
        *,
        update: str = "perceptron",
        average: bool = True,
        fit_intercept: bool = True,
        code: str = "centred",
        decode: str = "auto",
        threshold: Any = "auto",
        measure: str = "micro-f1",
        shuffle: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.step = step
        self.margin = margin
        self.max_iter = max_iter
        self.kernel = kernel
        self.update = update
        self.average = average
        self.fit_intercept = fit_intercept
        self.code = code
        self.decode = decode
        self.threshold = threshold
        self.measure = measure
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> OnlineJointSVM:
        """Learn from rows and their label sets, in several passes.

        Parameters
        ----------
        X : array or sparse matrix of n rows; with a kernel a collection of n objects, or their kernel matrix
        Y : array or sparse matrix of 0 and 1 with n rows, or list of n label sets
        sample_weight : array of n numbers of at least 0, optional
            How often a pass visits a row: integer weights are repeats, others averages.

        Returns
        -------
        self : OnlineJointSVM
        """
        self._check_parameters()
        for name in ("support_", "n_seen_", "_recent"):
            self.__dict__.pop(name, None)
        random = check_random_state(self.random_state)
        if self.kernel is not None:
            return self._fit_kernel(X, Y, random, sample_weight)
        rows = self._rows(X, reset=True)
        used, weights = used_examples(sample_weight, rows.shape[0])
        labels, self.classes_, self.label_form_ = fit_labels(Y, rows.shape[0], used)
        rows = rows if used is None else rows[used]
        self.output_ = LinearOutput(code=self.code).for_labels(labels, weights)
        V = self.output_.features(labels)
        self._start(rows.shape[1], V.shape[1])
        own = self._passes(rows, V, random, weights)
        self._decide(np.asarray(rows @ self.coef_) - own[:, None] * V, labels, weights)
        values = np.einsum("ij,ij->i", np.asarray(rows @ self.weights_), V)
        self._judge(values[np.abs(V).sum(axis=1) > 0])
        self.support_, self.support_objects_ = np.zeros(0, np.int64), None
        self.dual_coef_ = self.labels_ = None
        return self

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> OnlineJointSVM:
        """Learn from more rows, in one pass; the first call fixes the labels.

        Parameters
        ----------
        X : array or sparse matrix
        Y : array or sparse matrix of 0 and 1, or list of label sets
        classes : list, optional
            All labels, if Y is a list of sets and the first rows do not contain all labels.

        Returns
        -------
        self : OnlineJointSVM
        """
        self._check_parameters()
        if self.kernel is not None:
            raise ValueError("partial_fit learns weights of features: leave kernel at None, or use fit")
        first = not hasattr(self, "n_seen_")
        rows = self._rows(X, reset=first)
        if first:
            labels = self._first_labels(Y, classes)
            self.output_ = LinearOutput(code=self.code).for_labels(labels)
            self._start(rows.shape[1], labels.shape[1])
            self.support_, self.support_objects_, self.dual_coef_, self.labels_ = (
                np.zeros(0, np.int64),
                None,
                None,
                None,
            )
        else:
            labels = encode(self, Y)
            self.weights_, self.sums_ = self.weights_.copy(), self.sums_.copy()
        if labels.shape[0] != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows and Y {labels.shape[0]}: they must be of one length")
        before = np.asarray(rows @ self.coef_)
        V = self.output_.features(labels)
        order = np.arange(rows.shape[0])
        if self.shuffle:
            check_random_state(self.random_state).shuffle(order)
        self._one_pass(_core_rows(rows), V, order, np.zeros((rows.shape[0], 2)))
        self._average()
        self.n_iter_ = 1
        if first:
            self._decide(np.asarray(rows @ self.coef_), labels)
        else:
            scores, known = getattr(self, "_recent", (before[:0], labels[:0]))
            scores = np.vstack([scores, before])[-_RECENT:]
            known = sp.vstack([known, labels], format="csr")[-_RECENT:]
            self._recent = scores, known
            if len(scores) >= 50:
                self._decide(scores, known)
        return self

    def _first_labels(self, Y: Any, classes: Any) -> sp.csr_matrix:
        if classes is None:
            labels, self.classes_, self.label_form_ = fit_labels(Y)
            return labels
        self.classes_ = np.array(sorted(set(classes)))
        if not len(self.classes_):
            raise ValueError("classes must name at least one label")
        self.label_form_ = "lists"
        return encode(self, Y)

    def _check_parameters(self) -> None:
        check_positive("step", self.step)
        check_not_negative("margin", self.margin)
        check_count("max_iter", self.max_iter)
        check_choice("update", self.update, ("perceptron", "gradient"))
        check_flag("average", self.average)
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("shuffle", self.shuffle)
        check_choice("decode", self.decode, ("auto", "direct", "seen"))
        check_threshold(self.threshold, self.measure)

    def _rows(self, X: Any, reset: bool) -> Any:
        """Rows of unit length with a constant; of zeros where there is nothing."""
        X = validate_data(self, check_sparse("X", X), reset=reset, accept_sparse="csr", dtype=np.float64)
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else (X**2).sum(axis=1))
        scale = 1.0 / np.where(lengths > 0, lengths, 1.0) * (math.sqrt(1 - _CONSTANT**2) if self.fit_intercept else 1.0)
        constant = np.full((X.shape[0], int(self.fit_intercept)), _CONSTANT)
        if sp.issparse(X):
            scaled = sp.diags(scale) @ X
            rows = sp.csr_matrix(sp.hstack([scaled, constant]) if self.fit_intercept else scaled)
            rows.sort_indices()
            return rows
        return np.hstack([X * scale[:, None], constant])

    def _start(self, d: int, T: int) -> None:
        self.weights_, self.sums_ = np.zeros((d, T)), np.zeros((d, T))
        self.coef_ = self.weights_
        self.n_updates_, self.n_seen_, self.squared_norm_ = 0, 0, 0.0
        self.margin_ = self.update_bound_ = None

    def _passes(
        self, rows: Any, V: np.ndarray, random: np.random.RandomState, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Learn, and return what each row added to its own score, in units of its code."""
        core = _core_rows(rows)
        own = np.zeros((rows.shape[0], 2))
        self.n_iter_ = 0
        order = None
        for _ in range(self.max_iter):
            order = visits(weights, rows.shape[0], random, order)
            if self.shuffle:
                random.shuffle(order)
            self.n_iter_ += 1
            if not self._one_pass(core, V, order, own):
                break
        self._average()
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if sp.issparse(rows) else (rows**2).sum(axis=1)
        return squares * (own[:, 0] - own[:, 1] / max(self.n_seen_, 1) if self.average else own[:, 0])

    def _one_pass(self, core: Any, V: np.ndarray, order: np.ndarray, own: np.ndarray) -> int:
        updates, self.squared_norm_, self.n_seen_ = _core.joint.joint_pass(
            core, V, self.weights_, self.sums_, order, own, self.step, self.margin, self.squared_norm_, self.n_seen_
        )
        self.squared_norm_ = max(self.squared_norm_, 0.0)
        self.n_updates_ += updates
        return int(updates)

    def _average(self) -> None:
        self.coef_ = self.weights_ - self.sums_ / max(self.n_seen_, 1) if self.average else self.weights_.copy()

    def _judge(self, values: np.ndarray) -> None:
        """The margin on the training rows, and the bound on updates that it gives."""
        norm = math.sqrt(self.squared_norm_)
        self.margin_ = float(values.min() / norm) if norm > 0 and len(values) else 0.0
        rate = 1 + 2 * self.margin / self.step
        self.update_bound_ = rate / self.margin_**2 if self.margin_ > 0 else math.inf

    def _decide(self, scores: np.ndarray, labels: sp.csr_matrix, weights: np.ndarray | None = None) -> None:
        sets = None if self.decode == "auto" else self.decode == "seen"
        unit = len(self.classes_) > 2
        self.decisions_ = Decisions(unit).fit(scores, labels, self.threshold, self.measure, sets, weights)

    def _fit_kernel(self, X: Any, Y: Any, random: np.random.RandomState, sample_weight: Any) -> OnlineJointSVM:
        X = self._collected(X, reset=True)
        used, weights = used_examples(sample_weight, count(X))
        labels, classes, form = fit_labels(Y, count(X), used)
        K = self._gram(X)
        if used is not None:
            K = K[np.ix_(used, used)]
        output = LinearOutput(code=self.code).for_labels(labels, weights)
        V = output.features(labels)
        G = np.ascontiguousarray(K * output.of_features(V, V))
        alpha, order = np.zeros(len(K)), None
        self.n_updates_ = self.n_iter_ = self.n_seen_ = 0
        for _ in range(self.max_iter):
            order = visits(weights, len(K), random, order)
            if self.shuffle:
                random.shuffle(order)
            updates = _core.joint.joint_kernel_pass(G, alpha, order, self.step, self.margin, self.update == "gradient")
            self.n_updates_ += int(updates)
            self.n_iter_ += 1
            self.n_seen_ += len(order)
            if not updates:
                break
        self.classes_, self.label_form_, self.output_ = classes, form, output
        self.coef_ = self.weights_ = self.sums_ = None
        values = G @ alpha
        self.squared_norm_ = max(float(alpha @ values), 0.0)
        self._judge(values[np.diag(G) > 0])
        places = np.flatnonzero(alpha > 0)
        self._keep(X, places if used is None else used[places])
        self.dual_coef_ = np.ascontiguousarray(alpha[places])
        self.labels_ = labels[places]
        self._prepare()
        own = (np.diag(K) * alpha)[:, None] * V
        self._decide(output.label_scores(K[:, places] @ self._coef - own), labels, weights)
        return self

    def _prepare(self) -> None:
        self._coef = self.dual_coef_[:, None] * self.output_.features(self.labels_)

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each label.

        Parameters
        ----------
        X : array or sparse matrix; with a kernel a collection of objects

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
        """
        self._check_fitted()
        if self.kernel is None:
            return np.asarray(self._rows(X, reset=False) @ self.coef_)
        return self.output_.label_scores(self._expanded(X, self._coef))

    def _score_rows(self) -> ScoreRows:
        self._check_fitted()
        if self.kernel is None:
            return label_rows(self.coef_.T, self.classes_)
        return label_rows(self.output_.label_scores(self._coef).T, self.classes_)

    def _label_products(self) -> np.ndarray:
        self._check_fitted()
        if self.kernel is None:
            return np.asarray(self.coef_.T @ self.coef_)
        if self._precomputed:
            raise ValueError("labels are compared by kernel values, and kernel='precomputed' has no kernel")
        coef = self.output_.label_scores(self._coef)
        return np.asarray(coef.T @ self._expanded(self.support_objects_, coef))

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.kernel is not None:
            return super()._activations(x)
        row = self._rows(x if sp.issparse(x) or hasattr(x, "iloc") else np.atleast_2d(np.asarray(x)), reset=False)
        dense = row.toarray().ravel() if sp.issparse(row) else row.ravel()
        return np.arange(len(dense)), dense

    def _feature_name(self, column: int) -> str:
        if self.kernel is not None:
            return super()._feature_name(column)
        if column == self.n_features_in_:
            return "constant"
        names = getattr(self, "feature_names_in_", None)
        return f"x{column}" if names is None else str(names[column])

    def _depends_on_units(self) -> bool:
        return self.kernel is None

    def _check_state(self) -> None:
        self._check_parameters()
        T = len(self.classes_)
        if len(self.output_.shares) != T or len(self.decisions_.slopes_) != T:
            raise ValueError(f"the output kernel and the decisions must be of {T} labels")
        if self.kernel is not None:
            super()._check_state()
            if getattr(self, "dual_coef_", None) is None or getattr(self, "labels_", None) is None:
                raise ValueError("a model with a kernel needs coefficients and label sets")
            self._prepare()
            return
        rows = self.n_features_in_ + int(self.fit_intercept)
        for name in ("coef_", "weights_", "sums_"):
            if getattr(self, name, None) is None or getattr(self, name).shape != (rows, T):
                raise ValueError(f"{name} must have the shape ({rows}, {T})")


def _core_rows(rows: Any) -> Any:
    if sp.issparse(rows):
        return _core.linear.Rows(
            rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1], False
        )
    return _core.linear.Rows(np.ascontiguousarray(check_array(rows)))
