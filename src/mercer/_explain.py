"""Explanations of models and of single decisions, for every model whose score is a sum.

    score(x, y) − score(x, z) = constant + Σ_j w_j (φ_j(x, y) − φ_j(x, z))

Each summand is a term with a name. For linear models j runs over columns, for hashed ones over words and fields, for
kernel machines over support objects, for structured ones over the features of an output, transitions included. A model
defines its terms (`Explained`, or `ScoreModel` where a decision compares a few scores); this module does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from mercer._display import Displayed
from mercer._validation import check_count

__all__ = ["Explained", "Explanation", "ScoreModel", "ScoreRows", "Term", "Terms", "chosen_labels", "votes_of_pairs"]


class Term(NamedTuple):
    """A summand of a score."""

    name: str
    """The feature, or the support object."""
    value: float
    """φ: the value of the feature; for structured models, its value in the output minus that in the alternative."""
    contribution: float
    """Weight times value: what it adds to the score of the output against the alternative."""


@dataclass(frozen=True)
class Explanation(Displayed):
    """The largest contributions to a decision: the largest summands of a difference of scores.

    ``score`` is ``constant``, plus the contributions of the ``terms``, plus ``rest``.

    Attributes
    ----------
    output : object
        The decision; for a regressor, its prediction.
    against : object
        The alternative that it is compared with; None where there is a single score.
    score : float
        score(output) − score(against): positive where the model prefers the output.
    terms : list of (name, value, contribution)
        Largest contributions first, by absolute value.
    constant : float
        The part that does not depend on the input: intercepts.
    rest : float
        The sum of the contributions that are not listed.
    n_terms : int
        The number of all terms.
    """

    output: Any
    against: Any
    score: float
    terms: list[Term]
    constant: float
    rest: float
    n_terms: int

    def __str__(self) -> str:
        versus = "" if self.against is None else f" rather than {_short(self.against)}"
        lines = [f"{_short(self.output)}{versus}: {self.score:+.4g}"]
        rows = [(term.name, f"{term.contribution:+.4g}") for term in self.terms]
        if self.n_terms > len(self.terms):
            rows.append((f"({self.n_terms - len(self.terms):,} more)", f"{self.rest:+.4g}"))
        if self.constant:
            rows.append(("(constant)", f"{self.constant:+.4g}"))
        wide = max((len(name) for name, _ in rows), default=0)
        return "\n".join([*lines, *(f"  {name:<{wide}}  {value:>9}" for name, value in rows)])


@dataclass(frozen=True)
class Terms:
    """All summands of one difference of scores. `Explanation` shows the largest ones."""

    output: Any
    against: Any
    indices: np.ndarray
    values: np.ndarray
    contributions: np.ndarray
    name: Callable[[int], str]
    constant: float = 0.0

    def largest(self, n: int) -> Explanation:
        """The n largest by absolute value."""
        there = np.flatnonzero(self.contributions)
        order = there[np.argsort(-np.abs(self.contributions[there]), kind="stable")]
        shown = [
            Term(self.name(int(self.indices[j])), float(self.values[j]), float(self.contributions[j]))
            for j in order[:n]
        ]
        rest = float(self.contributions[order[n:]].sum())
        total = self.constant + float(self.contributions.sum())
        return Explanation(self.output, self.against, total, shown, self.constant, rest, len(order))


_MAKES = "it makes features, and decides nothing"
_ALIGNS = "it finds a motion, and decides nothing"
_DENSITY = "it is a density, and decides nothing"
UNEXPLAINED: dict[str, str] = {
    **dict.fromkeys(
        (
            "AdditiveMap", "BilinearEmbedding", "BinarizedAttributes", "CCA", "CirculantEmbedding",
            "CirculantProjection", "Codebook", "CompactNonlinearMap", "CorrelationSelector", "EmpiricalKernelMap",
            "FourierFeatures", "FourierMap", "Gram", "GraphletHasher", "HomogeneityAnalysis", "IncompleteCholesky",
            "IterativeQuantization", "KernelCCA", "KernelPCA", "MinMaxRescaler", "MultiSetCCA", "NystroemMap",
            "ParagraphFeatures", "PolynomialSketch", "ShiftInvariantHashing", "SpectralHashing",
            "PreImage", "RandomFeatures", "RandomProjection", "RecordHasher", "SegmentStatistics", "SignProjection",
            "SignedHashProjection", "SparseCoder", "StringHasher", "TableEncoder", "TextHasher",
        ),
        _MAKES,
    ),
    **dict.fromkeys(
        ("CoherentPointDrift", "FeatureMatching", "ICP", "KernelRegistration", "MixtureRegistration", "SoftAssign"),
        _ALIGNS,
    ),
    **dict.fromkeys(
        (
            "BoltzmannMachine", "ChowLiuTree", "GaussianMixtureModel", "GaussianModel", "LatentTree",
            "MultinomialModel", "NgramModel", "RBM", "ShapePartModel", "SpatialLDA",
        ),
        _DENSITY,
    ),
    "AttributeModeler": "it is many classifiers, one for each attribute: ask one of them",
    "AttributeRetriever": "it ranks rows by probabilities of attributes, which are no sum",
    "BagCV": "ask its best_estimator_",
    "BoundaryClassifier": "it wraps a classifier of yours: ask that one",
    "CategoryAttributes": "it compares a vector of attributes with those of classes",
    "CodeClassifier": "its features are sparse codes, which depend on all training rows at once",
    "CompressedLabels": "labels are decoded from the code by a greedy search, which is no sum",
    "DependencyModel": "it predicts by the nearest rows",
    "HMMClassifier": "it compares likelihoods of hidden Markov models, one for each class",
    "HashedLabelSets": "the probability of a label is a product along a path of a tree",
    "HiddenMarkovModel": "it is generative: its tables of probabilities say it, see inspect",
    "KMeansMajority": "it predicts by the nearest cluster",
    "KernelDependencyEstimation": "it predicts by the nearest output",
    "KernelizedModel": "it wraps a linear model over coordinates of a kernel: see dual_coef_",
    "MajorityBag": "it looks at no feature",
    "MaximumEntropyDiscrimination": "its score is a difference of log-likelihoods of two models",
    "NeighborLabels": "it predicts by the nearest rows",
    "SampledKNN": "it predicts by the nearest rows",
    "ShapeClassifier": "it compares densities of shapes",
    "SparseRepresentationClassifier": "it compares residuals, which are no sum over features",
    "VideoEventDetector": "it is a learner of proportions over clips: ask its model",
    "WeakAttributes": "it makes attributes, and decides nothing",
    "ZeroShotClassifier": "it compares a vector of attributes with those of classes",
}  # fmt: skip
"""Estimators without `explain`, and why: all whose decision is no sum of weighted features. A test walks them."""


def _explains(model: Any) -> bool:
    if not model._explains_decisions:
        name = type(model).__name__
        reason = UNEXPLAINED.get(name, "its decisions are not sums of weighted features")
        raise AttributeError(f"{name} has no explain: {reason}")
    return True


def _has_weights(model: Any) -> bool:
    if not model._weighs_features:
        raise AttributeError(f"{type(model).__name__} has no top_features: it has no weights of features")
    return True


class Explained:
    """The methods `top_features` and `explain`, for estimators that implement the hooks below."""

    # ------------------------------------------------------------------ what a model answers

    _weighs_features: ClassVar[bool] = False
    """Whether `_label_weights` answers."""
    _explains_decisions: ClassVar[bool] = False
    """Whether `_terms` answers."""

    def _weight_labels(self) -> list[Any] | None:
        """Return the labels that have weights of their own; None for a model of one score."""
        return None

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        """Return the weights that speak for a label, or for a high score, and the name of each."""
        raise NotImplementedError

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        """Return the summands of score(x, output) − score(x, against); None: the decision, and the runner-up."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what users ask

    @available_if(_has_weights)
    def top_features(self, n: int = 20, *, label: Any = None, against: bool = False) -> Any:
        """Return the features with the largest weights, or the support objects of a kernel machine.

        Parameters
        ----------
        n : int, default=20
            Maximum number for each label.
        label : object, optional
            Only this label.
        against : bool, default=False
            Return the features with the lowest weights, lowest first.

        Returns
        -------
        list of (name, weight), largest first; or a dict from each label to such a list
            A list where ``label`` is given, and for models without labels.
        """
        n = check_count("n", n)
        labels = self._weight_labels()
        if labels is None:
            if label is not None:
                raise ValueError(f"label must be None: {type(self).__name__} has no labels")
            return self._strongest(None, n, against)
        if label is None:
            return {each: self._strongest(each, n, against) for each in labels}
        if label not in labels:
            raise ValueError(f"unknown label {label!r}; known are {', '.join(map(repr, labels))}")
        return self._strongest(label, n, against)

    def _strongest(self, label: Any, n: int, against: bool) -> list[tuple[str, float]]:
        weights, name = self._label_weights(label)
        keys = weights if against else -weights
        if n < len(keys):  # ties in the order of the columns, as a full sort has them
            bound = np.partition(keys, n - 1)[n - 1]
            first = np.concatenate([np.flatnonzero(keys < bound), np.flatnonzero(keys == bound)])[:n]
        else:
            first = np.arange(len(keys))
        order = first[np.argsort(keys[first], kind="stable")]
        return [(name(int(j)), float(weights[j])) for j in order]

    @available_if(_explains)
    def explain(self, x: Any, n: int = 10, *, output: Any = None, against: Any = None) -> Explanation:
        """Return the largest contributions to the decision about one input.

        Parameters
        ----------
        x : object
            One input: a row, a document, a sentence, an object of the kernel.
        n : int, default=10
            Maximum number of terms to list.
        output : object, optional
            The output to explain; by default the prediction of the model.
        against : object, optional
            The alternative to compare it with; by default the best other output.

        Returns
        -------
        Explanation
            Print it, or let a notebook show it.
        """
        return self._terms(x, output, against).largest(check_count("n", n))


@dataclass(frozen=True)
class ScoreRows:
    """f_k(x) = constants[k] + Σ_j weights[k, j] φ_j(x): a few scores, and how they decide the class.

    Attributes
    ----------
    weights : array or sparse matrix of shape (k, m)
    constants : array of shape (k,)
    labels : list or None
        Classes. With two, there may be one row, whose score is positive for the second.
    pairs : bool
        Whether there is a row for each pair of classes, positive for the second of them.
    """

    weights: Any
    constants: np.ndarray
    labels: list[Any] | None = None
    pairs: bool = False

    def row(self, k: int) -> np.ndarray:
        """The weights of a score."""
        row = self.weights[k]
        return np.asarray(row.todense()).ravel() if sp.issparse(row) else np.asarray(row)

    def of_label(self, at: int) -> np.ndarray:
        """The weights in favour of a class; with pairs, the mean over the pairs that contain the class."""
        assert self.labels is not None
        if len(self.constants) == 1:
            return self.row(0) if at == 1 else -self.row(0)
        if not self.pairs:
            return self.row(at)
        places = list(enumerate(combinations(range(len(self.labels)), 2)))
        rows = [self.row(k) * (1 if pair[1] == at else -1) for k, pair in places if at in pair]
        return np.mean(rows, axis=0)

    def between(self, a: int, b: int) -> tuple[np.ndarray, float]:
        """The weights and the constant of the score that decides for class a against class b."""
        assert self.labels is not None
        if len(self.constants) == 1:
            sign = 1.0 if a == 1 else -1.0
            return sign * self.row(0), sign * float(self.constants[0])
        if not self.pairs:
            return self.row(a) - self.row(b), float(self.constants[a] - self.constants[b])
        pair = list(combinations(range(len(self.labels)), 2)).index((min(a, b), max(a, b)))
        sign = 1.0 if a > b else -1.0
        return sign * self.row(pair), sign * float(self.constants[pair])


class ScoreModel(Explained):
    """Models whose decision compares a few scores, f_k(x) = b_k + ⟨w_k, φ(x)⟩.

    A subclass defines the rows of weights, φ(x) of one input, and the names of the columns of φ.
    """

    _weighs_features = True
    _explains_decisions = True

    def _score_rows(self) -> ScoreRows:
        """Return the weights; by default those of ``coef_`` and ``intercept_``."""
        model: Any = self
        weights = np.atleast_2d(model.coef_)
        constants = np.broadcast_to(np.asarray(getattr(model, "intercept_", 0.0), float).ravel(), (len(weights),))
        labels = getattr(model, "classes_", None)
        return ScoreRows(weights, constants, None if labels is None else list(np.asarray(labels).tolist()))

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return columns of φ and their values for one input; others are 0. By default x is a row of numbers."""
        X = x if sp.issparse(x) or hasattr(x, "iloc") else np.atleast_2d(np.asarray(x))
        row = self._one_row(X)
        if sp.issparse(row):
            row = sp.csr_matrix(row)
            return row.indices, row.data
        dense = np.asarray(row, float).ravel()
        return np.arange(len(dense)), dense

    def _one_row(self, X: Any) -> Any:
        """Return a checked matrix of one row."""
        return self._rows(X)  # type: ignore[attr-defined]

    def _feature_name(self, column: int) -> str:
        """Return the name of a column of φ."""
        names = getattr(self, "feature_names_in_", None)
        return f"x{column}" if names is None else str(names[column])

    def _decided(self, x: Any, rows: ScoreRows, columns: np.ndarray, values: np.ndarray) -> Sequence[int]:
        """Return the numbers of the classes, the best first."""
        if rows.pairs:
            outputs = np.array([rows.row(k)[columns] @ values for k in range(len(rows.constants))]) + rows.constants
            scores = votes_of_pairs(outputs[None], len(rows.labels or ()))[0]
        else:
            scores = np.array([rows.row(k)[columns] @ values for k in range(len(rows.constants))]) + rows.constants
            if len(scores) == 1:
                scores = np.array([0.0, scores[0]])
        return [int(k) for k in np.argsort(-scores, kind="stable")]

    def _weight_labels(self) -> list[Any] | None:
        return self._score_rows().labels

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        rows = self._score_rows()
        if rows.labels is None:
            return rows.row(0), self._feature_name
        return rows.of_label(rows.labels.index(label)), self._feature_name

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        rows = self._score_rows()
        columns, values = self._activations(x)
        if rows.labels is None:
            if against is not None:
                raise ValueError(f"against must be None: {type(self).__name__} has a single score")
            weights, constant, named = rows.row(0), float(rows.constants[0]), (output, None)
            if output is None:
                named = (float(weights[columns] @ values + constant), None)
        else:
            ranked = self._decided(x, rows, columns, values)
            a = ranked[0] if output is None else _label_place(rows.labels, "output", output)
            b = next(k for k in ranked if k != a) if against is None else _label_place(rows.labels, "against", against)
            if a == b:
                raise ValueError(f"output and against must differ, both are {rows.labels[a]!r}")
            weights, constant = rows.between(a, b)
            named = (rows.labels[a], rows.labels[b])
        return Terms(*named, columns, values, weights[columns] * values, self._feature_name, constant)


def votes_of_pairs(outputs: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of the classifiers of all pairs of classes; their summed outputs, squeezed into (−⅓, ⅓), break ties.

    Outputs (rows × pairs) are positive for the second class of a pair.
    """
    votes, sums = np.zeros((len(outputs), n_classes)), np.zeros((len(outputs), n_classes))
    for f, (first, second) in zip(outputs.T, combinations(range(n_classes), 2), strict=True):
        votes[:, first] += f <= 0
        votes[:, second] += f > 0
        sums[:, first] -= f
        sums[:, second] += f
    return votes + sums / (3 * (np.abs(sums) + 1))


def chosen_labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of each row of decision values: by their sign for two classes, else by the largest."""
    return classes[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]


def _label_place(labels: Sequence[Any], name: str, label: Any) -> int:
    if label not in labels:
        raise ValueError(f"{name}: unknown label {label!r}; known are {', '.join(map(repr, labels))}")
    return list(labels).index(label)


def _short(value: Any, most: int = 60) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
