"""Dependencies of outcomes on categories, for the prediction of effects and the choice of objects and actions.

Homogeneity analysis places features and outcomes in one space. For an outcome β with categories + and −, and a category
c of a feature,

    λ_c = max(d₊ / d₋, d₋ / d₊),   d± = ‖Y_β± − Y_c‖                c is kept where λ_c / Σ λ ≥ threshold
    π_c = λ_c / Σ_kept λ            x_β = Σ_c∈x π_c Y_c / Σ_c∈x π_c       over the kept categories that an object has

λ is bounded, because an outcome that coincides with a category has d = 0 (without a bound, as in [Xiong2013b], all
weights would be NaN). Effects are predicted by the nearest training objects in the layer x_β; objects are chosen by
d(x_β, centre of the effect) / d(x_β, centre of the other).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Ints, ListOf, Nested, Saved
from mercer._validation import check_choice, check_count, check_not_negative, check_weights
from mercer.multilabel._categories import columns_of_table, encode_column, place_of_column
from mercer.multilabel.homogeneity import HomogeneityAnalysis

__all__ = ["Dependency", "DependencyModel"]

_BOUND = 100.0  # of the ratio of distances
_BLOCK = 512  # objects whose neighbours are looked for at a time


class Dependency(NamedTuple):
    """A category that an outcome depends on."""

    column: str
    category: Any
    weight: float
    """π, a share of the weights of all kept categories."""
    effect: Any
    """The nearer category of the outcome."""


class DependencyModel(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Learn the categories on which outcomes depend, and predict outcomes of new objects.

    Parameters
    ----------
    outcomes : list of str or int
        Outcome columns, with two categories each; the other columns are features of objects.
    n_components : int, default=3
    threshold : float, optional
        Minimum share of the ratios for a category to be kept; by default 1 / (number of categories).
    n_neighbors : int, default=10
        Training objects that vote on an effect.

    Attributes
    ----------
    analysis_ : HomogeneityAnalysis
        The analysis of all columns.
    dependencies_ : dict of list of Dependency
        The kept categories of each outcome, the most important first.

    Examples
    --------
    >>> from mercer.multilabel import DependencyModel
    >>> table = {"kind": ["food", "tool", "food", "tool"] * 5, "cut": ["yes", "no", "yes", "no"] * 5}
    >>> model = DependencyModel(["cut"], n_components=1, n_neighbors=3).fit(table)
    >>> model.predict({"kind": ["tool", "food"]}).tolist()
    [['no'], ['yes']]
    >>> model.select_objects({"kind": ["tool", "food"]}, "cut", "yes").tolist()
    [1, 0]

    References
    ----------
    .. [Xiong2013b] H. Xiong, S. Szedmak and J. Piater. Homogeneity analysis for object-action relation reasoning in
       kitchen scenarios. 2nd Workshop on Machine Learning for Interactive Systems, 2013.
    """

    saved = Fields(
        analysis_=Nested(HomogeneityAnalysis),
        outcome_places_=Ints(None, below="n_features_in_"),
        weights_=ListOf(Floats(None, low=0.0), "outcome_places_"),
        layers_=ListOf(Floats(None, None), "outcome_places_"),
        effects_=ListOf(Ints(None, low=-1, below=2), "outcome_places_"),
        _object_weights=Floats(None, low=0.0),
    )

    def __init__(
        self, outcomes: Any, n_components: int = 3, *, threshold: float | None = None, n_neighbors: int = 10
    ) -> None:
        self.outcomes = outcomes
        self.n_components = n_components
        self.threshold = threshold
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DependencyModel:
        """Learn from objects with their features and outcomes; missing values are left out.

        Parameters
        ----------
        X : table
            A data frame, a dict of columns or an array.
        y : ignored
        sample_weight : array of a number for each object, optional
            At least 0: an object of weight 2 counts as two, also among neighbours.

        Returns
        -------
        self : DependencyModel
        """
        check_count("n_neighbors", self.n_neighbors)
        if self.threshold is not None and check_not_negative("threshold", self.threshold) > 1:
            raise ValueError(f"threshold is a share: it must be at most 1, got {self.threshold!r}")
        if isinstance(self.outcomes, str) or not len(self.outcomes):
            raise ValueError("outcomes must be a list of at least one column")
        analysis = HomogeneityAnalysis(self.n_components, handle_unknown="missing").fit(X, None, sample_weight)
        self.n_features_in_ = analysis.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(analysis, "feature_names_in_"):
            self.feature_names_in_ = analysis.feature_names_in_
        self.outcome_places_ = np.array(
            [place_of_column(column, analysis.columns_, "outcomes") for column in self.outcomes], np.int64
        )
        if len(set(self.outcome_places_.tolist())) < len(self.outcome_places_):
            raise ValueError("outcomes names a column twice")
        if len(self.outcome_places_) == analysis.n_features_in_:
            raise ValueError("all columns are outcomes: there is no feature to depend on")
        for j in self.outcome_places_:
            if len(analysis.categories_[j]) != 2:
                n_categories = len(analysis.categories_[j])
                raise ValueError(f"the outcome {analysis.columns_[j]!r} must have two categories, found {n_categories}")
        self.analysis_ = analysis
        codes = analysis._encoded(X)
        self.weights_ = [self._weights_of(int(j)) for j in self.outcome_places_]
        self._prepare()
        self.layers_ = [self._layer(codes, b) for b in range(len(self.weights_))]
        self.effects_ = [codes[j].astype(np.int64) for j in self.outcome_places_]
        given = check_weights(sample_weight, len(codes[0]))
        self._object_weights = np.ones(len(codes[0])) if given is None else given
        return self

    # ------------------------------------------------------------------ dependencies

    def _features(self) -> list[int]:
        return [j for j in range(self.analysis_.n_features_in_) if j not in set(self.outcome_places_.tolist())]

    def _ratios(self, outcome: int) -> tuple[np.ndarray, np.ndarray]:
        """λ of all categories of features, and which of the two outcomes is nearer."""
        effects = self.analysis_.quantifications_[outcome]
        Y = np.vstack([self.analysis_.quantifications_[j] for j in self._features()])
        d = np.linalg.norm(Y[:, None, :] - effects, axis=2)
        most, least = d.max(axis=1), d.min(axis=1)
        ratio = np.where(most <= 0, 1.0, np.minimum(most / np.maximum(least, most / _BOUND), _BOUND))
        return ratio, d.argmin(axis=1)

    def _weights_of(self, outcome: int) -> np.ndarray:
        ratio, _ = self._ratios(outcome)
        limit = 1.0 / len(ratio) if self.threshold is None else self.threshold
        kept = ratio / ratio.sum() >= limit - 1e-12
        if not kept.any():
            raise ValueError(
                f"threshold={self.threshold!r} leaves no category to {self.analysis_.columns_[outcome]!r}: the largest"
                f" share is {ratio.max() / ratio.sum():.3g}"
            )
        return np.where(kept, ratio, 0.0) / ratio[kept].sum()

    def _prepare(self) -> None:
        analysis = self.analysis_
        named = [(analysis.columns_[j], c) for j in self._features() for c in analysis.categories_[j].tolist()]
        self.dependencies_ = {}
        for j, weights in zip(self.outcome_places_.tolist(), self.weights_, strict=True):
            _, nearer = self._ratios(j)
            effects = analysis.categories_[j].tolist()
            order = [i for i in np.argsort(-weights, kind="stable") if weights[i] > 0]
            self.dependencies_[analysis.columns_[j]] = [
                Dependency(named[i][0], named[i][1], float(weights[i]), effects[nearer[i]]) for i in order
            ]

    # ------------------------------------------------------------------ objects

    def _coded(self, X: Any) -> list[np.ndarray]:
        """Codes of all columns of a table that may lack the outcomes."""
        check_is_fitted(self, "layers_")
        analysis = self.analysis_
        names, columns = columns_of_table(X)
        features = self._features()
        n = len(columns[0])
        codes = [np.full(n, -1, np.int32) for _ in analysis.columns_]
        if names is not None and hasattr(self, "feature_names_in_"):
            places = {name: i for i, name in enumerate(names)}
            missing = [analysis.columns_[j] for j in features if analysis.columns_[j] not in places]
            if missing:
                raise ValueError(f"the table has no column {missing[0]!r}, which training had")
            given = {j: columns[places[analysis.columns_[j]]] for j in features}
        elif len(columns) == len(features):
            given = dict(zip(features, columns, strict=True))
        elif len(columns) == len(analysis.columns_):
            given = {j: columns[j] for j in features}
        else:
            raise ValueError(
                f"the table has {len(columns)} columns, expected {len(features)} features, or all"
                f" {len(analysis.columns_)} columns"
            )
        for j, column in given.items():
            codes[j] = encode_column(column, analysis.categories_[j], analysis.columns_[j], "missing")
        return codes

    def _layer(self, codes: list[np.ndarray], b: int) -> np.ndarray:
        """Weighted means of the kept categories that objects have; of all their categories where they have none."""
        n, p = len(codes[0]), len(self.analysis_.eigenvalues_)
        total, weight = np.zeros((n, p)), np.zeros(n)
        plain, count = np.zeros((n, p)), np.zeros(n)
        at = 0
        for j in self._features():
            Y = self.analysis_.quantifications_[j]
            pi = self.weights_[b][at : at + len(Y)]
            at += len(Y)
            there = codes[j] >= 0
            own = codes[j][there]
            total[there] += pi[own, None] * Y[own]
            weight[there] += pi[own]
            plain[there] += Y[own]
            count[there] += 1
        mean = plain / np.maximum(count, 1)[:, None]
        return np.where(weight[:, None] > 0, total / np.where(weight > 0, weight, 1.0)[:, None], mean)

    def _number(self, outcome: Any) -> int:
        check_is_fitted(self, "layers_")
        j = place_of_column(outcome, self.analysis_.columns_, "outcome")
        if j not in self.outcome_places_:
            raise ValueError(f"{outcome!r} is a feature, not an outcome of this model")
        return self.outcome_places_.tolist().index(j)

    @property
    def _n_features_out(self) -> int:
        return int(self.layers_[0].shape[1])

    def transform(self, X: Any, outcome: Any = None) -> np.ndarray:
        """Return the coordinates of objects in the layer of an outcome.

        Parameters
        ----------
        X : table with the features; outcomes may be missing
        outcome : str or int, optional
            By default the first one.

        Returns
        -------
        places : array of shape (n_rows, n_components)
        """
        check_is_fitted(self, "layers_")
        return self._layer(self._coded(X), 0 if outcome is None else self._number(outcome))

    def _shares(self, codes: list[np.ndarray], b: int) -> np.ndarray:
        """Share of the second category among the nearest training objects, whatever their distance."""
        known = (self.effects_[b] >= 0) & (self._object_weights > 0)
        layer, effects, weights = self.layers_[b][known], self.effects_[b][known], self._object_weights[known]
        if not len(effects):
            return np.full(len(codes[0]), 0.5)
        X = self._layer(codes, b)
        k = min(float(self.n_neighbors), float(weights.sum()))
        plain = bool((weights == 1).all())
        shares = np.empty(len(X))
        for at in range(0, len(X), _BLOCK):
            d = ((X[at : at + _BLOCK, None, :] - layer) ** 2).sum(axis=2)
            # Objects at the distance of the k-th are all counted, since rows of categories are often equal.
            if plain:
                limit = np.partition(d, int(k) - 1, axis=1)[:, [int(k) - 1]]
            else:
                order = np.argsort(d, axis=1, kind="stable")
                last = (np.cumsum(weights[order], axis=1) < k * (1 - 1e-12)).sum(axis=1)
                last = np.minimum(last, len(weights) - 1)[:, None]
                limit = np.take_along_axis(d, np.take_along_axis(order, last, axis=1), axis=1)
            votes = (d <= limit * (1 + 1e-9) + 1e-15) * weights
            shares[at : at + _BLOCK] = votes @ effects / votes.sum(axis=1)
        return shares

    def predict_effect(self, X: Any, outcome: Any) -> np.ndarray:
        """Return the category of one outcome for each object.

        Parameters
        ----------
        X : table with the features
        outcome : str or int

        Returns
        -------
        effects : array of shape (n_rows,)
        """
        b = self._number(outcome)
        return self._named(b, self._shares(self._coded(X), b))

    def _named(self, b: int, shares: np.ndarray) -> np.ndarray:
        return self.analysis_.categories_[self.outcome_places_[b]][(shares > 0.5).astype(int)]

    def predict(self, X: Any) -> np.ndarray:
        """Return the categories of all outcomes.

        Parameters
        ----------
        X : table with the features

        Returns
        -------
        effects : array of shape (n_rows, n_outcomes)
        """
        codes = self._coded(X)
        columns = [self._named(b, self._shares(codes, b)) for b in range(len(self.weights_))]
        return np.array([column.tolist() for column in columns], dtype=object).T

    def select_objects(self, X: Any, outcome: Any, effect: Any) -> np.ndarray:
        """Return the indices of objects, sorted by the promise of an effect.

        Parameters
        ----------
        X : table with the features
        outcome : str or int
        effect : a category of the outcome

        Returns
        -------
        order : array of int
        """
        b = self._number(outcome)
        return np.argsort(self._distance_ratios(self._coded(X), b, effect), kind="stable")

    def _distance_ratios(self, codes: list[np.ndarray], b: int, effect: Any) -> np.ndarray:
        categories = self.analysis_.categories_[self.outcome_places_[b]].tolist()
        wanted = categories.index(check_choice("effect", effect, tuple(categories)))
        own = [self._object_weights * (self.effects_[b] == c) for c in (0, 1)]
        centres = [weights @ self.layers_[b] / weights.sum() for weights in own]
        X = self._layer(codes, b)
        to, away = (np.linalg.norm(X - centres[c], axis=1) for c in (wanted, 1 - wanted))
        return to / np.maximum(away, 1e-12)

    def select_action(self, X: Any, effects: dict[Any, Any]) -> list[Any]:
        """Return for each object the outcome that is most likely to have the desired effect.

        Parameters
        ----------
        X : table with the features
        effects : dict
            Candidate outcomes, each with its desired effect.

        Returns
        -------
        outcomes : list
        """
        if not isinstance(effects, dict) or not effects:
            raise ValueError("effects must be a dict with an effect for each candidate outcome")
        codes = self._coded(X)
        ratios = [self._distance_ratios(codes, self._number(name), effect) for name, effect in effects.items()]
        names = list(effects)
        return [names[i] for i in np.argmin(ratios, axis=0)]

    def _check_state(self) -> None:
        J, p = self.analysis_.n_features_in_, len(self.analysis_.eigenvalues_)
        if self.n_features_in_ != J or len(set(self.outcome_places_.tolist())) != len(self.outcome_places_):
            raise ValueError("the outcomes do not fit the analysis")
        sizes = sum(len(self.analysis_.categories_[j]) for j in self._features())
        for j, weights, layer, effects in zip(
            self.outcome_places_.tolist(), self.weights_, self.layers_, self.effects_, strict=True
        ):
            fits = len(self.analysis_.categories_[j]) == 2 and len(weights) == sizes and layer.shape[1:] == (p,)
            if not fits or len(layer) != len(effects) or len(layer) != len(self._object_weights):
                raise ValueError("the layers of the outcomes do not fit the analysis")
        check_count("n_neighbors", self.n_neighbors)
        self._prepare()
