"""Generative sequence models: hidden Markov models, by counting or by Baum-Welch.

Locally normalised, and trained by joint likelihood:

    p(x, y) = π[y_0] Π_t A[y_{t−1}, y_t] Π_t p(x_t | y_t)

The chain verbs do all the inference: nodes are log p(x_t | c), transitions log A, start log π.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer.data.features import FeatureIndex, as_sequences
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.learning.solvers import ConvergenceWarning
from mercer.structures.chain import Chain, ChainScores


class HMM(BaseEstimator):
    """A hidden Markov model, supervised or not.

    Parameters
    ----------
    n_states : int, default=2
        Number of hidden states when there are no labels; with labels each is a state.
    emission : {"auto", "multinomial", "gaussian"}, default="auto"
        A position's features are counts drawn from a distribution of the state (names and sparse features; one name a
        position is the categorical HMM), or a vector with independent normal components (dense features).
    smoothing : float, default=0.1
        Pseudo-count added to every transition, start and emission count.
    max_iter, tol : int and float
        Baum-Welch stops when the mean log-likelihood of a position rises by less than ``tol``.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of the random start of Baum-Welch.

    Attributes
    ----------
    classes_ : array of labels or state numbers
    start_, transitions_ : probabilities
    emission_ : array (n_states, n_features) of probabilities, or of means
    variances_ : array (n_states, n_features), for "gaussian"
    history_ : dict of lists, one value an iteration of Baum-Welch
        The log-likelihood, and the objective, which never falls: the log-likelihood plus the log-prior of the
        pseudo-counts.

    Examples
    --------
    >>> X = [[["sunny"], ["sunny"], ["rain"]], [["rain"], ["rain"]]]
    >>> y = [["high", "high", "low"], ["low", "low"]]
    >>> HMM().fit(X, y).predict([[["sunny"], ["rain"]]])
    [['high', 'low']]
    """

    def __init__(
        self,
        n_states: int = 2,
        emission: str = "auto",
        smoothing: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> HMM:
        """Counts where labels are given; Baum-Welch from a random start where they are not."""
        check_choice("emission", self.emission, ("auto", "multinomial", "gaussian"))
        check_positive("smoothing", self.smoothing)
        sequences = as_sequences(X, FeatureIndex(), learn=True)
        if not sequences.n_positions:
            raise ValueError("nothing to learn from: X has no positions")
        self.index_: FeatureIndex | None = sequences.index
        self.n_features_in_ = sequences.n_features
        self._kind = self.emission
        if self._kind == "auto":
            self._kind = "multinomial" if sequences.rows.dense is None else "gaussian"
        self._check_counts(sequences)
        matrix = sequences.matrix()
        if self._kind == "gaussian":
            matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
            self._pooled = matrix.var(axis=0) + 1e-9
        self.history_: dict[str, list[float]] = {"objective": [], "log_likelihood": []}
        if y is not None:
            self._labels = LabelIndex.from_sequences(y)
            tags = self._labels.encode(y, sequences.lengths)
            if tags.partial:
                raise ValueError("an HMM is counted from complete labels: None is not possible here")
            self._count(sequences, matrix, tags)
        else:
            check_count("n_states", self.n_states)
            check_count("max_iter", self.max_iter)
            self._labels = LabelIndex(range(self.n_states))
            self._baum_welch(sequences, matrix)
        self.classes_ = self._labels.array
        return self

    def _check_counts(self, X: Sequences) -> None:
        rows = X.rows
        values = rows.dense if rows.dense is not None else rows.values
        if self._kind == "multinomial" and values is not None and (values < 0).any():
            raise ValueError("emission 'multinomial' needs counts: a feature is negative")

    def _count(self, X: Sequences, matrix: Any, tags: TagSequences) -> None:
        n = len(self._labels)
        responsibilities = np.zeros((X.n_positions, n))
        responsibilities[np.arange(X.n_positions), tags.labels] = 1.0
        start, transitions = np.zeros(n), np.zeros((n, n))
        nonempty = X.lengths > 0
        first = (X.offsets[:-1] - X.offsets[0])[nonempty]
        np.add.at(start, tags.labels[first], 1.0)
        inner = np.ones(X.n_positions, bool)
        inner[first] = False
        at = np.flatnonzero(inner)
        np.add.at(transitions, (tags.labels[at - 1], tags.labels[at]), 1.0)
        self._maximize(start, transitions, responsibilities, matrix)

    def _maximize(self, start: np.ndarray, transitions: np.ndarray, responsibilities: np.ndarray, matrix: Any) -> None:
        """The parameters of highest posterior given expected counts (Dirichlet pseudo-counts)."""
        extra = float(self.smoothing)
        self.start_ = (start + extra) / (start + extra).sum()
        self.transitions_ = (transitions + extra) / (transitions + extra).sum(axis=1, keepdims=True)
        totals = np.asarray(matrix.T @ responsibilities).T
        if self._kind == "multinomial":
            self.emission_ = (totals + extra) / (totals + extra).sum(axis=1, keepdims=True)
            return
        weight = responsibilities.sum(axis=0)[:, None] + 1e-12
        self.emission_ = totals / weight
        second = np.asarray((matrix**2).T @ responsibilities).T / weight
        # The pseudo-counts pull each variance towards that of all data, so that none can collapse.
        spread = np.maximum(second - self.emission_**2, 0.0)
        self.variances_ = (weight * spread + extra * self._pooled) / (weight + extra)

    def _baum_welch(self, X: Sequences, matrix: Any) -> None:
        n = self.n_states
        random = np.random.default_rng(self.random_state)
        soft = random.dirichlet(np.ones(n), size=X.n_positions)
        if self._kind == "gaussian":  # means from random positions: one mean of everything is a saddle point
            chosen = random.choice(X.n_positions, size=n, replace=X.n_positions < n)
            soft = np.zeros((X.n_positions, n))
            distances = np.stack([((matrix - matrix[c]) ** 2).sum(axis=1) for c in chosen], axis=1)
            soft[np.arange(X.n_positions), distances.argmin(axis=1)] = 1.0
        self._maximize(random.random(n), 1.0 + random.random((n, n)), soft, matrix)
        chain = self._chain()
        previous = -np.inf
        for _ in range(self.max_iter):
            theta = self._theta(X)
            mu = chain.marginals(theta)
            likelihood = float(mu.log_partition.sum())
            total = likelihood + self._log_prior()
            self.history_["objective"].append(total)
            self.history_["log_likelihood"].append(likelihood)
            self._maximize(mu.start, mu.transitions, mu.nodes, matrix)
            if total - previous < self.tol * X.n_positions:
                return
            previous = total
        warnings.warn(
            f"Baum-Welch still rises after max_iter={self.max_iter} iterations: raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _log_prior(self) -> float:
        """Log-density of the pseudo-counts' prior, up to a constant: Baum-Welch raises likelihood times prior."""
        extra = float(self.smoothing)
        value = extra * float(np.log(self.start_).sum() + np.log(self.transitions_).sum())
        if self._kind == "multinomial":
            return value + extra * float(np.log(self.emission_).sum())
        return value - 0.5 * extra * float((np.log(self.variances_) + self._pooled / self.variances_).sum())

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable state sequence (Viterbi)."""
        sequences = self._fitted(X)
        labels, _ = self._chain().argmax(self._theta(sequences))
        return self._labels.decode(labels, sequences.offsets)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """p(state at position | x)."""
        sequences = self._fitted(X)
        nodes = self._chain().marginals(self._theta(sequences)).nodes
        bounds = (sequences.offsets - sequences.offsets[0]).tolist()
        return [nodes[a:b].copy() for a, b in pairwise(bounds)]

    def log_likelihood(self, X: Any) -> np.ndarray:
        """log p(x) of each sequence (for counts: up to the multinomial coefficient)."""
        sequences = self._fitted(X)
        return self._chain().log_partition(self._theta(sequences))

    def score(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> float:
        """Share of the positions with a known label that are right; without y the mean log-likelihood of a sequence."""
        if y is None:
            return float(self.log_likelihood(X).mean())
        sequences = self._fitted(X)
        tags = self._labels.encode(y, sequences.lengths)
        known = tags.labels >= 0
        if not known.any():
            raise ValueError("no known label to compare with")
        predicted, _ = self._chain().argmax(self._theta(sequences))
        return float((predicted[known] == tags.labels[known]).mean())

    def _fitted(self, X: Any) -> Sequences:
        if not hasattr(self, "transitions_"):
            raise NotFittedError("this HMM is not fitted yet: call fit first")
        sequences = as_sequences(X, self.index_)
        if sequences.n_features != self.n_features_in_ and len(sequences):
            raise ValueError(f"X has {sequences.n_features} features, the model has {self.n_features_in_}")
        return sequences

    def _chain(self) -> Chain:
        return Chain(len(self._labels), self.n_features_in_, threads=thread_count(self.n_jobs))

    def _theta(self, X: Sequences) -> ChainScores:
        """Log-probabilities as part scores."""
        matrix = X.matrix()
        if self._kind == "multinomial":
            nodes = np.asarray(matrix @ np.log(self.emission_).T, dtype=float)
        else:
            dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
            nodes = np.empty((X.n_positions, len(self._labels)))
            constant = -0.5 * np.log(2 * np.pi * self.variances_).sum(axis=1)
            for c in range(nodes.shape[1]):
                z = (dense - self.emission_[c]) ** 2 / self.variances_[c]
                nodes[:, c] = constant[c] - 0.5 * z.sum(axis=1)
        offsets = X.offsets - X.offsets[0]
        nodes = np.ascontiguousarray(nodes)
        return ChainScores(nodes, np.log(self.transitions_), np.log(self.start_), np.zeros(nodes.shape[1]), offsets)

    # ------------------------------------------------------------------ model files

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything a model file needs. See :func:`mercer.save`."""
        if not hasattr(self, "transitions_"):
            raise NotFittedError("this HMM is not fitted yet: call fit first")
        params = self.get_params(deep=False)
        if not isinstance(self.random_state, (int, type(None))):
            params["random_state"] = None
        meta = {
            "params": params,
            "classes": self._labels.classes,
            "kind": self._kind,
            "n_features": self.n_features_in_,
            "named": self.index_ is not None,
            "history": self.history_,
        }
        arrays = {"start": self.start_, "transitions": self.transitions_, "emission": self.emission_}
        if self._kind == "gaussian":
            arrays["variances"] = self.variances_
        if self.index_ is not None:
            arrays.update({f"index.{key}": array for key, array in self.index_.to_arrays().items()})
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> HMM:
        """The inverse of :meth:`to_state`."""
        model = cls(**meta["params"])
        model._labels = LabelIndex(meta["classes"])
        model.classes_ = model._labels.array
        model._kind = check_choice("kind", meta["kind"], ("multinomial", "gaussian"))
        model.n_features_in_ = int(meta["n_features"])
        model.history_ = meta["history"]
        n, d = len(model._labels), model.n_features_in_
        model.start_, model.transitions_, model.emission_ = arrays["start"], arrays["transitions"], arrays["emission"]
        shapes = [(model.start_, (n,)), (model.transitions_, (n, n)), (model.emission_, (n, d))]
        if model._kind == "gaussian":
            model.variances_ = arrays["variances"]
            shapes.append((model.variances_, (n, d)))
        for array, shape in shapes:
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"expected a finite array of shape {shape}, found {array.shape}")
        model.index_ = None
        if meta["named"]:
            model.index_ = FeatureIndex.from_arrays({k: arrays[f"index.{k}"] for k in ("bytes", "offsets")})
        return model
