"""One hidden Markov model per class; sequences are classified by Bayes' rule.

    p(class | x) ∝ prior(class) · p(x | class),   p(x | class) by the forward recursion of the class's own model

All models have the same columns of features, so that their likelihoods can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, LabelValues, ListOf, Nested, Saved
from mercer._validation import check_weights
from mercer.markov.hidden import HiddenMarkovModel
from mercer.structures.base import check_random_seed


class HMMClassifier(ClassifierMixin, Saved, Estimator):
    """Classify whole sequences with a hidden Markov model for each class.

    Parameters
    ----------
    model : HiddenMarkovModel, optional
        Copied for each class. Default: ``HiddenMarkovModel()``, two states.
    priors : {"frequency", "equal"} or array of shape (n_classes,), default="frequency"
        Probabilities of the classes, in the order of ``classes_``; "frequency": their shares of the training sequences.
    random_state : int, Generator or None
        Seeds the models without a ``random_state``.

    Attributes
    ----------
    classes_ : array of labels
    models_ : list of HiddenMarkovModel, one a class
    priors_ : array of shape (n_classes,)

    Examples
    --------
    >>> from mercer.markov import HMMClassifier
    >>> X = ["aabbaabb", "aabbaab", "abababab", "babababa"]
    >>> y = ["pairs", "pairs", "turns", "turns"]
    >>> model = HMMClassifier(random_state=0).fit(X, y)
    >>> model.predict(["aabbaabbaa", "ababab"])
    array(['pairs', 'turns'], dtype='<U5')
    """

    saved = Fields(
        classes_=LabelValues(1),
        models_=ListOf(Nested(HiddenMarkovModel), "classes_"),
        priors_=Floats("classes_", low=0.0, high=1.0),
    )

    classes_: np.ndarray
    models_: list[HiddenMarkovModel]
    priors_: np.ndarray

    def __init__(
        self, model: HiddenMarkovModel | None = None, *, priors: Any = "frequency", random_state: Any = None
    ) -> None:
        self.model = model
        self.priors = priors
        self.random_state = random_state

    def fit(self, X: Any, y: Sequence[Any], sample_weight: Any = None) -> HMMClassifier:
        """Fit the model of each class to its sequences.

        Parameters
        ----------
        X : sequences
            As :class:`HiddenMarkovModel` takes them.
        y : sequence of labels, one a sequence
        sample_weight : array of a number for each sequence, optional
            At least 0: a sequence of weight 2 counts as two, one of weight 0 is left out.

        Returns
        -------
        self : HMMClassifier
        """
        if self.model is not None and not isinstance(self.model, HiddenMarkovModel):
            raise TypeError(f"model must be a HiddenMarkovModel, got {type(self.model).__name__}")
        X = X if hasattr(X, "__len__") else list(X)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(X):
            raise ValueError(f"y must hold one label for each of the {len(X)} sequences, got shape {labels.shape}")
        missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
        if missing:
            raise ValueError(f"y must hold a label for each sequence, but that of sequence {missing[0]} is missing")
        weights = check_weights(sample_weight, len(X))
        counted = np.ones(len(X)) if weights is None else weights
        self.classes_ = np.unique(labels[counted > 0])
        if not len(self.classes_):
            raise ValueError("nothing to learn from: there is no sequence")
        totals = np.array([counted[labels == c].sum() for c in self.classes_])
        self.priors_ = self._prior(totals / totals.sum())
        base = HiddenMarkovModel() if self.model is None else self.model
        sequences, shared = base._shared_columns(X)
        seeds = np.random.default_rng(check_random_seed(self.random_state)).integers(2**31, size=len(self.classes_))
        self.models_ = []
        for label, seed in zip(self.classes_, seeds.tolist(), strict=True):
            chosen = np.flatnonzero((labels == label) & (counted > 0))
            one = clone(base)
            if one.random_state is None:
                one.set_params(random_state=seed)
            part = sequences[chosen]
            if not part.n_positions:
                raise ValueError(f"the sequences of class {label.item()!r} have no positions to learn from")
            one.fit(part, sample_weight=None if weights is None else counted[chosen])
            one.index_, one.symbols_ = shared
            self.models_.append(one)
        return self

    def _prior(self, shares: np.ndarray) -> np.ndarray:
        if isinstance(self.priors, str):
            if self.priors not in ("frequency", "equal"):
                raise ValueError(f"priors must be 'frequency', 'equal' or an array, got {self.priors!r}")
            return shares if self.priors == "frequency" else np.full(len(shares), 1.0 / len(shares))
        given = np.asarray(self.priors, dtype=float)
        if given.shape != shares.shape or not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
            raise ValueError(f"priors must hold {len(shares)} probabilities, one a class, that sum to 1")
        return given

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Return log p(x | class), of shape (n_sequences, n_classes)."""
        check_is_fitted(self, "models_")
        return np.stack([model.log_likelihood(X) for model in self.models_], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return log p(class | x), or the log priors if no model allows a sequence."""
        with np.errstate(divide="ignore"):
            joint = self.log_likelihood(X) + np.log(self.priors_)
            lost = np.isneginf(joint).all(axis=1)
            joint[lost] = np.log(self.priors_)
        top = joint.max(axis=1, keepdims=True)
        return joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p(class | x)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each sequence.

        Parameters
        ----------
        X : sequences
            As in :meth:`fit`.

        Returns
        -------
        array of labels, one for each sequence
        """
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=check_weights(sample_weight, len(right))))

    def _check_state(self) -> None:
        if not np.isclose(self.priors_.sum(), 1.0):
            raise ValueError("priors_ must sum to 1")
        if len({model.n_features_in_ for model in self.models_}) > 1:
            raise ValueError("the models of the classes must have the same features")
