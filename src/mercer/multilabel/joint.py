"""The joint support vector machine: one model for all labels, with a kernel on inputs and a kernel on label sets.

    primal    min ½‖W‖² + C Σ_i ξ_i        ⟨ψ(y_i), W φ(x_i)⟩ ≥ 1 − ξ_i,   ξ ≥ 0
    dual      max Σ_i α_i − ½ Σ_ij α_i α_j K_out(y_i, y_j) K_in(x_i, x_j)       0 ≤ α_i ≤ C
    score     ⟨ψ(y), W φ(x)⟩ = Σ_i α_i K_out(y_i, y) K_in(x_i, x)

There is one slack for each row and no offset, so the dual is that of a one-class support vector machine over the
product of the two matrices: its size does not depend on the number of labels. The sum of α is free, so steps of single
coordinates solve it (`mercer._core.joint.joint_dual`).

Scores of held-out rows come from the solution: f₋ᵢ(x_i) = f(x_i) − α_i K_in(x_i, x_i) ψ(y_i) leaves out the row's term.
The constraints determine the direction of W φ(x), but not its length, so probabilities depend on its direction only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from mercer import _core
from mercer._explain import ScoreRows
from mercer._state.saved import Choice, Count, Csr, Fields, Floats, LabelValues, Nested, Number
from mercer._validation import check_choice, check_count, check_flag, check_positive, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernel_methods.base import KernelMethod, weights_of
from mercer.kernel_methods.collections import count
from mercer.kernels.outputs import LabelSetKernel, LinearOutput, OutputKernel
from mercer.multilabel._decisions import MEASURES, Decisions, check_threshold
from mercer.multilabel.label_forms import FORMS, distinct, encode, fit_labels, give, top_labels

__all__ = ["JointSVM"]

_SINGLE = 1e-4, 1000  # tolerance and rows from which kernel values are in single precision: what it saves is felt there
_ENUMERATED = 16  # labels whose sets are looked at one by one
DECODINGS = ("auto", "direct", "neighbours", "enumerate", "seen")


def label_rows(weights: np.ndarray, classes: np.ndarray) -> ScoreRows:
    """Return scores of labels with these weights, for explanations; a single label has one score."""
    labels = classes.tolist() if len(classes) > 1 else None
    return ScoreRows(np.ascontiguousarray(weights), np.zeros(len(weights)), labels)


def dependence_order(values: np.ndarray, most: int) -> list[int]:
    """Return the most dependent labels, ordered so that similar labels are adjacent."""
    strength = (np.abs(values) - np.eye(len(values))).sum(axis=1)
    left = np.argsort(-strength, kind="stable")[:most].tolist()
    order = [left.pop(0)] if left else []
    while left:
        order.append(left.pop(int(np.argmax(values[order[-1], left]))))
    return order


class LabelSetClassifier(ClassifierMixin):
    """Base class of all estimators of label sets: label formats, thresholds, top labels, scores."""

    classes_: np.ndarray
    label_form_: str
    decisions_: Any
    decision_function: Any
    measure: str

    def _probabilities(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)  # first: it says so where nothing is fitted
        probabilities: np.ndarray = self.decisions_.probabilities(scores)
        return probabilities

    def _predicted(self, X: Any) -> sp.csr_matrix:
        probabilities = self._probabilities(X)
        return self.decisions_.label_sets(probabilities)

    def predict(self, X: Any, n_labels: int | None = None) -> Any:
        """Return the label sets of rows, in the format of the training labels.

        Parameters
        ----------
        X : collection of objects
        n_labels : int, optional
            Predict this number of labels per row, those with the highest probabilities, ignoring thresholds.

        Returns
        -------
        Y : array or sparse matrix of shape (n_rows, n_labels), or list of lists of labels
        """
        if n_labels is None:
            return give(self._predicted(X), self.classes_, self.label_form_)
        return give(top_labels(self._probabilities(X), n_labels), self.classes_, self.label_form_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label, calibrated on held-out scores.

        Parameters
        ----------
        X : collection of objects

        Returns
        -------
        probabilities : array of shape (n_rows, n_labels)
        """
        return self._probabilities(X)

    def score(self, X: Any, Y: Any) -> float:
        """Return the measure named by ``measure`` on these rows; higher is better.

        Parameters
        ----------
        X : collection of objects
        Y : label sets, as in `fit`; unknown labels raise ValueError

        Returns
        -------
        score : float
        """
        predicted = self._predicted(X)
        known = encode(self, Y)
        if known.shape[0] != predicted.shape[0]:
            raise ValueError(f"X has {predicted.shape[0]} rows and Y {known.shape[0]}: they must be of one length")
        return MEASURES[self.measure](known.toarray() > 0, predicted.toarray() > 0)

    def label_dependence(self) -> np.ndarray:
        """Return the similarity of labels according to the model, from −1 to 1.

        Entries are cosines between the weights, functions or latent coordinates of the labels. Labels predicted for the
        same reasons have 1, opposed labels have values below 0. For `MultiLabelCRF` they are the couplings, divided by
        the largest; for `NeighborLabels`, which learns no weights, the correlations of the labels in training.

        Returns
        -------
        dependence : array of shape (n_labels, n_labels)
        """
        products = self._label_products()
        lengths = np.sqrt(np.maximum(np.diag(products), 0.0))
        nothing = lengths <= 1e-12 * max(float(lengths.max(initial=0.0)), 1e-300)
        scale = np.where(nothing, 0.0, 1.0 / np.where(nothing, 1.0, lengths))
        cosines = np.clip(products * scale[:, None] * scale, -1.0, 1.0)
        np.fill_diagonal(cosines, 1.0)
        return cosines

    def _label_products(self) -> np.ndarray:
        """Inner products of what the labels' scores are made of; raises ValueError where labels have nothing."""
        raise ValueError(f"{type(self).__name__} keeps nothing that two labels could be compared by")

    def plot_dependence(self, n_labels: int = 30, *, ax: Any = None) -> Any:
        """Draw `label_dependence` as a heat map, with similar labels next to each other.

        Parameters
        ----------
        n_labels : int, default=30
            Maximum number of labels to draw, the most dependent ones.
        ax : matplotlib axes, optional

        Returns
        -------
        ax : matplotlib axes
        """
        values = self.label_dependence()
        order = dependence_order(values, check_count("n_labels", n_labels))
        names = [str(self.classes_[t]) for t in order]
        if ax is None:
            import matplotlib.pyplot as plt

            size = 2.5 + 0.25 * len(order)
            _, ax = plt.subplots(figsize=(size + 1, size))
        image = ax.imshow(values[np.ix_(order, order)], cmap="PuOr", vmin=-1, vmax=1)
        ax.set_xticks(range(len(order)), names, rotation=90, fontsize=8)
        ax.set_yticks(range(len(order)), names, fontsize=8)
        ax.figure.colorbar(image, ax=ax, fraction=0.046, label="dependence")
        return ax

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class JointSVM(LabelSetClassifier, KernelMethod):
    """Classify into label sets with one support vector machine for all labels.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors; smaller values regularise more.
    kernel : Kernel, "precomputed" or None
        Kernel of inputs. None: a Gaussian with γ = 1 / (n_features × variance of X).
    output_kernel : LinearOutput, PolynomialOutput, LogOddsOutput or None
        Kernel of label sets. None: `LinearOutput`.
    decode : {"auto", "direct", "neighbours", "enumerate", "seen"}, default="auto"
        Decoding of label sets. ``"direct"``: each label by its own score; needs a linear output kernel.
        ``"neighbours"``: the mean of the ``n_neighbors`` label sets of training with the highest positive scores.
        ``"enumerate"``: the best of all label sets, for up to 16 labels. ``"seen"``: the training label set that is
        most likely by the probabilities of its labels and by its frequency. ``"auto"``: direct scores with a linear
        output kernel, else neighbours; then thresholds or seen sets, whichever is better by ``measure`` on scores
        without the row's own term.
    threshold : "auto", "per-label", float or None
        Probability threshold of labels. ``"auto"``: a common threshold, ``"per-label"``: a threshold for each label,
        chosen to maximise ``measure`` on scores without the row's own term. None: 0.5.
    measure : {"micro-f1", "macro-f1", "example-f1", "hamming", "subset"}, default="micro-f1"
        Measure for which thresholds are chosen, and which `score` returns.
    n_neighbors : int, default=10
    tol : float, default=0.001
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Maximum number of steps.
    warm_start : bool, default=False
        Start from the last solution, such as that for another C on the same rows.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    support_ : array of int
        Indices of the rows with α > 0.
    dual_coef_ : array of shape (n_support,)
        α of these rows.
    duality_gap_ : float
    n_iter_ : int

    Examples
    --------
    >>> from mercer.multilabel import JointSVM
    >>> X = [[0.0, 0.1], [0.1, 0.0], [1.0, 0.1], [0.9, 0.0], [1.0, 1.0], [0.9, 1.1]]
    >>> Y = [["sky"], ["sky"], ["sea", "sky"], ["sea", "sky"], ["sea"], ["sea"]]
    >>> model = JointSVM(C=10.0).fit(X, Y)
    >>> model.predict([[0.0, 0.0], [1.0, 0.0]])
    [['sky'], ['sea', 'sky']]

    References
    ----------
    .. [Xiong2015b] H. Xiong, S. Szedmak and J. Piater. Scalable, accurate image annotation with joint SVMs and output
       kernels. Neurocomputing, 2015.
    .. [Szedmak2005] S. Szedmak, J. Shawe-Taylor and E. Parado-Hernandez. Learning via linear operators: maximum margin
       regression. Technical report, University of Southampton, 2005.
    """

    _gaussian = True
    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        dual_coef_=Floats("support_", low=0.0),
        labels_=Csr("support_", "classes_"),
        output_=Nested(LabelSetKernel),
        decisions_=Nested(Decisions),
        duality_gap_=Number(),
        n_iter_=Count(0),
    )

    _sets_of: Any

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = None,
        output_kernel: OutputKernel | None = None,
        *,
        decode: str = "auto",
        threshold: Any = "auto",
        measure: str = "micro-f1",
        n_neighbors: int = 10,
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.decode = decode
        self.threshold = threshold
        self.measure = measure
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> JointSVM:
        """Learn from rows and their label sets.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        Y : array or sparse matrix of 0 and 1 with n rows, or list of n label sets
        sample_weight : array of n numbers of at least 0, optional
            Factors of C; a row of weight 0 is left out.

        Returns
        -------
        self : JointSVM
        """
        self._check_parameters()
        X = self._collected(X, reset=True)
        used, weights = used_examples(sample_weight, count(X))
        known, classes, form = fit_labels(Y, count(X), used)
        output = (LinearOutput() if self.output_kernel is None else self.output_kernel).for_labels(known, weights)
        self._decoding(output, known.shape[1])
        single = self.tol >= _SINGLE[0] and count(X) >= _SINGLE[1]
        given = None if weights is None else weights_of(X, sample_weight)
        K = self._gram(X, given, single=single)
        if used is not None and len(used) < len(K):
            K = np.ascontiguousarray(K[np.ix_(used, used)])
        alpha, gap, steps, converged = self._solve(K, output, known, used, weights)
        if not converged:
            warn_caller(
                f"the joint machine stopped after {steps} steps at a duality gap of {gap:.3g}; raise max_iter",
                ConvergenceWarning,
            )
        self.classes_, self.label_form_, self.output_ = classes, form, output
        places = np.flatnonzero(alpha > 0)
        self._keep(X, places if used is None else used[places], given)
        self.dual_coef_ = np.ascontiguousarray(alpha[places])
        self.labels_ = known[places]
        self._seen = distinct(known)[0]
        self.duality_gap_, self.n_iter_, self._last_C = gap, steps, float(self.C)
        self._prepare()
        scores = self._left_out_scores(K, alpha, known, places)
        unit = self._sets_of is None and len(classes) > 2
        sets = None if self.decode == "auto" else self.decode == "seen"
        self.decisions_ = Decisions(unit).fit(scores, known, self.threshold, self.measure, sets, weights)
        return self

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_choice("decode", self.decode, DECODINGS)
        check_threshold(self.threshold, self.measure)
        check_count("n_neighbors", self.n_neighbors)
        check_positive("tol", self.tol)
        check_flag("warm_start", self.warm_start)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if self.output_kernel is not None and not isinstance(self.output_kernel, OutputKernel):
            raise ValueError(
                "output_kernel must be a LinearOutput, a PolynomialOutput, a LogOddsOutput or None, got"
                f" {self.output_kernel!r}"
            )

    def _decoding(self, output: LabelSetKernel, T: int) -> str:
        """How label sets are found; raises ValueError where that is not possible."""
        decode = ("direct" if output.is_linear else "neighbours") if self.decode == "auto" else self.decode
        if decode == "direct" and not output.is_linear:
            raise ValueError(
                "decode='direct' needs an output kernel that is linear in the labels; use 'neighbours' or 'seen'"
            )
        if decode == "enumerate" and T > _ENUMERATED:
            raise ValueError(f"decode='enumerate' looks at 2^{T} label sets; it is for up to {_ENUMERATED} labels")
        return decode

    def _solve(
        self,
        K: np.ndarray,
        output: LabelSetKernel,
        labels: sp.csr_matrix,
        used: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> tuple[np.ndarray, float, int, bool]:
        """α, the duality gap, steps, whether it converged."""
        n, C = len(K), float(self.C)
        bounds = np.full(n, C) if weights is None else C * weights
        G = output.gram(labels, K.dtype)
        G *= K
        alpha = np.zeros(n)
        plain = used is None and self.support_.max(initial=-1) < n if hasattr(self, "_last_C") else False
        if self.warm_start and plain:
            bound = self.dual_coef_ >= (1 - 1e-12) * self._last_C
            alpha[self.support_] = np.where(bound, C, np.minimum(self.dual_coef_, C))
        limit = self.max_iter or max(10_000_000, 100 * n)
        slopes, steps, converged = _core.joint.joint_dual(G, bounds, alpha, self.tol, limit)
        gap = float(bounds @ np.maximum(0.0, slopes) - alpha @ slopes)
        return alpha, max(gap, 0.0), int(steps), bool(converged)

    def _prepare(self) -> None:
        """Coefficients of kernel values for what decoding needs: label scores, or scores of label sets."""
        V = self.output_.features(self.labels_)
        decode = self._decoding(self.output_, len(self.classes_))
        linear = self.output_.is_linear and decode in ("direct", "seen")
        self._coef = self.dual_coef_[:, None] * (V if linear else self._against_sets(V, decode))
        self._sets_of = None if linear else self._candidates(decode)

    def _candidates(self, decode: str) -> sp.csr_matrix:
        if decode != "enumerate":
            return self._seen
        T = len(self.classes_)
        every = (np.arange(2**T)[:, None] >> np.arange(T)) & 1
        return sp.csr_matrix(every.astype(np.float64))

    def _against_sets(self, V: np.ndarray, decode: str) -> np.ndarray:
        return self.output_.of_features(V, self.output_.features(self._candidates(decode)))

    # ------------------------------------------------------------------ scores

    def _left_out_scores(
        self, K: np.ndarray, alpha: np.ndarray, labels: sp.csr_matrix, places: np.ndarray | None = None
    ) -> np.ndarray:
        """Scores of labels of the training rows, without their own terms."""
        own = (np.diag(K).astype(np.float64) * alpha)[:, None]
        V = self.output_.features(labels)
        if self._sets_of is None:
            raw = self.output_.expand(K, alpha, labels)
            return self._label_scores(raw - own * V)
        decode = self._decoding(self.output_, len(self.classes_))
        places = self.support_ if places is None else places
        return self._label_scores(K[:, places] @ self._coef - own * self._against_sets(V, decode))

    def _label_scores(self, raw: np.ndarray) -> np.ndarray:
        """Scores of labels from what the expansion gives."""
        if self._sets_of is None:
            return self.output_.label_scores(raw)
        decode = self._decoding(self.output_, len(self.classes_))
        k = 1 if decode == "enumerate" else min(self.n_neighbors, raw.shape[1])
        best = np.argpartition(-raw, k - 1, axis=1)[:, :k]
        weights = np.maximum(np.take_along_axis(raw, best, axis=1), 0.0 if decode != "enumerate" else 1e-300)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        n, m = raw.shape
        mix = sp.csr_matrix((weights.ravel(), best.ravel(), np.arange(0, n * k + 1, k)), shape=(n, m))
        return 2.0 * np.asarray((mix @ self._sets_of).toarray()) - (total > 0)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each label.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
            With a linear output kernel ⟨e_t, W φ(x)⟩, unbounded; with neighbours, weighted shares from −1 to 1.
        """
        self._check_fitted()
        return self._label_scores(self._expanded(X, self._coef))

    def _score_rows(self) -> ScoreRows:
        """Coefficients of the support objects, one row for each label."""
        self._check_fitted()
        if self._sets_of is not None:
            raise ValueError("labels have no coefficients of their own with this output kernel or decode='neighbours'")
        return label_rows(self.output_.label_scores(self._coef).T, self.classes_)

    def _label_products(self) -> np.ndarray:
        coef = self._score_rows().weights
        return coef @ self._expanded_support(coef.T)

    def _expanded_support(self, coef: np.ndarray) -> np.ndarray:
        """K coef over the support objects."""
        if self._precomputed:
            raise ValueError("labels are compared by kernel values, and kernel='precomputed' has no kernel")
        return self._expanded(self.support_objects_, coef)

    def _predicted(self, X: Any) -> sp.csr_matrix:
        self._check_fitted()
        decode = self._decoding(self.output_, len(self.classes_))
        if decode == "enumerate":
            raw = self._expanded(X, self._coef)
            return self._sets_of[raw.argmax(axis=1)]
        return super()._predicted(X)

    def _check_state(self) -> None:
        super()._check_state()
        T = len(self.classes_)
        if len(self.output_.shares) != T or len(self.decisions_.slopes_) != T:
            raise ValueError(f"the output kernel and the decisions must be of {T} labels")
        if not np.isin(self.labels_.data, (0.0, 1.0)).all():
            raise ValueError("labels_ must hold 0 and 1")
        self._check_parameters()
        self._seen = self.decisions_.seen_
        self._prepare()
