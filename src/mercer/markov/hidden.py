"""Hidden Markov models, trained by counting, by Baum-Welch, or by Viterbi training.

The model is locally normalised and trained by joint likelihood:

    p(x, y) = π[y_0] Π_t A[y_{t−1}, y_t] Π_t p(x_t | y_t)

Inference uses the chain structure with node scores log p(x_t | c), transitions log A and start log π.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

import mercer.metrics.scorers  # noqa: F401 (scoring="token_accuracy" and the others work wherever a model is)
from mercer import _core
from mercer._em import SOFTNESS, Run, is_over, pair_counts, race
from mercer._estimator import Estimator, Outputs
from mercer._progress import say
from mercer._state.saved import Count, Fields, Floats, History, Ints, Nested, Optional, Saved
from mercer._validation import check_choice, check_count, check_number, check_positive, thread_count, used_examples
from mercer._warnings import warn_caller
from mercer.data.features import FeatureIndex, as_sequences
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.exceptions import ConvergenceWarning
from mercer.markov.emissions import COVARIANCES, Mixture, Multinomial
from mercer.markov.symbols import IntegerSequences
from mercer.structures.chain import Chain, ChainScores

KINDS = ("categorical", "multinomial", "gaussian", "mixture")
EXCERPT = 20_000  # positions on which starts are compared; the best one goes on with all
PIECE = 500  # positions of a piece of an excerpt


class HiddenMarkovModel(Saved, Estimator):
    """A hidden Markov model: supervised, semi-supervised or unsupervised.

    Sequences may be of any lengths: lists of names, of dicts or of integers, strings, arrays of vectors, or sparse
    matrices.

    Integers are discrete. A list of integers, a 1-D integer array and an integer array with one column are sequences
    of symbols; an integer matrix as ``X`` holds one such sequence a row. An integer array with several columns holds
    counts, as a sparse matrix does. Arrays of floats are vectors, and get normal distributions.

    Parameters
    ----------
    n_states : int, default=2
        Number of hidden states when there are no labels; with labels each is a state.
    emission : {"auto", "categorical", "multinomial", "gaussian", "mixture"}, default="auto"
        Distribution of a position given its state: one name ("categorical"), counts of names ("multinomial"), a normal
        vector, or a vector from a mixture of ``n_mixtures`` normal distributions. "auto" is "multinomial" for names,
        integers and sparse features (one symbol per position is the categorical case), "gaussian" for floats.
    covariance : {"diag", "full", "spherical"}, default="diag"
        Covariance of the normal distributions.
    n_mixtures : int, default=2
        Components of each state, for "mixture".
    training : {"em", "viterbi"}, default="em"
        How unknown states are inferred: by expectation maximisation (Baum-Welch), or by alternating the single best
        states and counts (faster, less accurate).
    smoothing : float, default=0.1
        Pseudo-count added to every transition, start and emission count; pulls variances towards those of all data.
    n_init : int, default=12
        Number of starts without labels. In turn, they are clusters of positions, clusters of symbols by their
        neighbouring symbols, and random parameters. Each runs 20 iterations; half of them run until convergence, and
        the one with the highest objective is kept. Beyond 20,000 positions starts are compared on random pieces of the
        data, and only the best continues on all data.
    max_iter : int, default=300
        Maximum number of iterations of a start, with a warning if a run reaches it.
    tol : float, default=1e-4
        Training stops when the objective is estimated to rise by less than ``tol`` times its rise so far. The estimate
        assumes that the gains keep falling geometrically; while gains grow, training continues. A negative value
        never stops.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of the random starts.
    verbose : int, default=0
        1 prints the objective of every iteration.
    start : array of shape (n_states,), optional
        Initial probabilities of the first state. Zeros stay zero.
    transition : array of shape (n_states, n_states), optional
        Initial probabilities of the next state, a row for each state. Zeros stay zero, so they define the topology of
        the model, such as left to right. Its size is the number of states; with labels, states are in the order of
        ``classes_``.

    Attributes
    ----------
    classes_ : array of labels or state numbers
    start_, transitions_ : probabilities
    emission_ : array (n_states, n_features) of probabilities, or of means
    covariances_ : array of variances (n_states, n_features) or matrices (n_states, n_features, n_features)
        For "gaussian"; with a further axis of components in second place for "mixture", as for ``means_``.
    weights_, means_ : arrays (n_states, n_mixtures) and (n_states, n_mixtures, n_features)
        For "mixture".
    symbols_ : array of int, or None
        The integers of the columns of ``emission_``, if ``X`` held integer symbols.
    history_ : dict of lists, one value per iteration
        The log-likelihood (of the data, or of data and best states in Viterbi training), and the objective, which never
        falls: the log-likelihood plus the log-prior of the pseudo-counts.

    Examples
    --------
    >>> from mercer.markov import HiddenMarkovModel
    >>> X = [["sunny", "sunny", "rain"], ["rain", "rain"]]
    >>> y = [["high", "high", "low"], ["low", "low"]]
    >>> HiddenMarkovModel().fit(X, y).predict([["sunny", "rain"]])
    [['high', 'low']]
    >>> coins = HiddenMarkovModel(2, random_state=0).fit([[0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]] * 4)
    >>> coins.emission_.shape, coins.symbols_
    ((2, 2), array([0, 1]))

    References
    ----------
    .. [Biernacki2003] C. Biernacki, G. Celeux and G. Govaert. Choosing starting values for the EM algorithm for getting
       the highest likelihood in multivariate Gaussian mixture models. Computational Statistics & Data Analysis 41,
       2003.
    .. [Rabiner1989] L. Rabiner. A tutorial on hidden Markov models and selected applications in speech recognition.
       Proceedings of the IEEE 77, 1989.
    """

    _output_form = Outputs("labels", ("token_accuracy", "sequence_accuracy", "span_f1"))

    saved = Fields(
        n_features_in_=Count(),
        _labels=Nested(LabelIndex),
        index_=Optional(Nested(FeatureIndex)),
        symbols_=Optional(Ints("n_features_in_", low=None)),
        start_=Floats("_labels", low=0.0),
        transitions_=Floats("_labels", "_labels", low=0.0),
        _emission=Nested(Multinomial, Mixture),
        history_=History(seconds=False),
    )

    start_: np.ndarray
    transitions_: np.ndarray
    symbols_: np.ndarray | None
    index_: FeatureIndex | None
    history_: dict[str, list[float]]
    _emission: Multinomial | Mixture
    _given: _Given | None

    def __init__(
        self,
        n_states: int = 2,
        emission: str = "auto",
        covariance: str = "diag",
        n_mixtures: int = 2,
        training: str = "em",
        smoothing: float = 0.1,
        n_init: int = 12,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        *,
        start: Any = None,
        transition: Any = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.covariance = covariance
        self.n_mixtures = n_mixtures
        self.training = training
        self.smoothing = smoothing
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.start = start
        self.transition = transition

    @classmethod
    def from_parameters(
        cls,
        start: Any,
        transitions: Any,
        *,
        emission: Any = None,
        means: Any = None,
        covariances: Any = None,
        weights: Any = None,
        names: Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
    ) -> HiddenMarkovModel:
        """Return a fitted model with these probabilities.

        Parameters
        ----------
        start : array of shape (S,)
        transitions : array of shape (S, S)
        emission : array of shape (S, V), optional
            Probabilities of symbols; pass these, or ``means`` and ``covariances``.
        means : array of shape (S, d) or (S, M, d), optional
            Means of normal vectors, or of mixtures of M components, which need ``weights`` of shape (S, M).
        covariances : array, optional
            Variances in the shape of ``means``, or matrices with one more axis.
        weights : array of shape (S, M), optional
        names : sequence, optional
            Names of the columns of ``emission``: strings, or integers in ascending order. Default: columns of counts.
        classes : sequence of labels, optional
            Names of the states. Default: their numbers.

        Examples
        --------
        >>> from mercer.markov import HiddenMarkovModel
        >>> model = HiddenMarkovModel.from_parameters(
        ...     [1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], emission=[[0.9, 0.1], [0.0, 1.0]], names=["a", "b"]
        ... )
        >>> model.predict([["a", "b", "b"]])
        [[0, 1, 1]]
        >>> model.log_likelihood([["a", "a"]]).round(4)    # 0.9 · 0.5 · 0.9
        array([-0.9039])
        """
        first, following = _probabilities("start", start, 1), _probabilities("transitions", transitions, 2)
        S = len(first)
        if following.shape != (S, S):
            raise ValueError(f"transitions must be of shape {(S, S)}, as start has {S} states, got {following.shape}")
        model = cls(S, start=first, transition=following)
        model._labels = LabelIndex(range(S) if classes is None else classes)
        if len(model._labels) != S:
            raise ValueError(f"classes must name {S} different states, got {len(model._labels)}")
        model.start_, model.transitions_, model.symbols_, model.index_ = first, following, None, None
        model.history_ = {"objective": [], "log_likelihood": []}
        if (emission is None) == (means is None):
            raise ValueError("pass emission (probabilities of symbols), or means and covariances of vectors")
        if emission is not None:
            model._give_symbols(_probabilities("emission", emission, 2), names)
        else:
            if names is not None:
                raise ValueError("names are the names of symbols: omit them for vectors")
            model._give_vectors(means, covariances, weights)
        model.classes_ = model._labels.array
        return model

    def _give_symbols(self, probabilities: np.ndarray, names: Sequence[Any] | None) -> None:
        S, V = len(self.start_), probabilities.shape[1]
        if len(probabilities) != S:
            raise ValueError(f"emission must have a row for each of the {S} states, got {len(probabilities)}")
        if names is not None:
            listed = list(names)
            if len(set(listed)) != V or len(listed) != V:
                raise ValueError(f"names must be {V} different names, one for each column of emission")
            if all(isinstance(name, str) for name in listed):
                index = FeatureIndex()
                index.learn([[listed]])
                self.index_ = index
            elif all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in listed):
                self.symbols_ = np.array(listed, dtype=np.int64)
                if (np.diff(self.symbols_) <= 0).any():
                    raise ValueError("integer names must be in ascending order")
            else:
                raise ValueError("names must be strings, or integers")
        self.n_features_in_ = V
        symbols = Multinomial(float(self.smoothing))
        symbols.probabilities = probabilities
        self._emission = symbols

    def _give_vectors(self, means: Any, covariances: Any, weights: Any) -> None:
        S, m = len(self.start_), np.asarray(means, dtype=float)
        if m.ndim not in (2, 3) or len(m) != S or not m.size:
            raise ValueError(f"means must be of shape ({S}, d) or ({S}, M, d), got {m.shape}")
        c = None if covariances is None else np.asarray(covariances, dtype=float)
        if c is None or c.shape not in (m.shape, (*m.shape, m.shape[-1])):
            shape = None if c is None else c.shape
            raise ValueError(f"covariances must be of shape {m.shape} or {(*m.shape, m.shape[-1])}, got {shape}")
        if not np.isfinite(m).all() or not np.isfinite(c).all():
            raise ValueError("means and covariances must be finite")
        if m.ndim == 3 and weights is None:
            raise ValueError("mixtures need weights of the components of every state")
        full = c.ndim > m.ndim
        if full and (not np.allclose(c, np.swapaxes(c, -1, -2)) or not (np.linalg.eigvalsh(c) > 0).all()):
            raise ValueError("covariances must be symmetric and positive definite")
        if not full and not (c > 0).all():
            raise ValueError("covariances must be above 0")
        self.covariance = "full" if full else "diag"
        self.emission, M = ("gaussian", 1) if m.ndim == 2 else ("mixture", m.shape[1])
        self.n_mixtures, self.n_features_in_ = M if m.ndim == 3 else 2, m.shape[-1]
        self._emission = Mixture(float(self.smoothing), self.covariance, M)
        shares = np.ones((S, 1)) if m.ndim == 2 else _probabilities("weights", weights, 2)
        inner = c.shape[-2:] if full else c.shape[-1:]
        arrays = {"weights": shares, "means": m.reshape(S, M, -1), "covariances": c.reshape(S, M, *inner)}
        arrays["pooled"] = arrays["covariances"].mean(axis=(0, 1))
        self._emission.restore(arrays, S, self.n_features_in_)

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Sequence[Sequence[Any]] | None = None, sample_weight: Any = None) -> HiddenMarkovModel:
        """Fit by counting if all labels are given; otherwise infer the states by ``training``.

        Parameters
        ----------
        X : sequences
        y : list of lists of labels, optional
            If it holds None (or sets of possible labels), the known labels are fixed and provide the start.
        sample_weight : array of a number for each sequence, optional
            Non-negative weights: a sequence of weight 2 counts twice, and a sequence of weight 0 is ignored.

        Returns
        -------
        self : HiddenMarkovModel
        """
        self._check_params()
        if sample_weight is not None:
            X = X if hasattr(X, "__len__") else list(X)
            used, weights = used_examples(sample_weight, len(X))
            assert used is not None
            assert weights is not None
            if len(used) < len(X):
                X = X[used] if isinstance(X, np.ndarray) else [X[i] for i in used.tolist()]
                y = None if y is None else [y[i] for i in used.tolist()]
            self._weights: np.ndarray | None = weights
        try:
            return self._fit(X, y)
        finally:
            self.__dict__.pop("_weights", None)
            self.__dict__.pop("_given", None)

    def _fit(self, X: Any, y: Sequence[Sequence[Any]] | None) -> HiddenMarkovModel:
        discrete = IntegerSequences.read(X, self.emission)
        self.symbols_ = None
        if discrete is not None and discrete.is_symbols:
            self.symbols_ = discrete.symbols()
        sequences = self._read(X, discrete, FeatureIndex())
        if not sequences.n_positions:
            raise ValueError("X has no positions: there is nothing to learn from")
        self.index_ = sequences.index
        self.n_features_in_ = sequences.n_features
        self._emission = self._new_emission(sequences, counts=discrete is not None)
        self._given = _Given.of(self.start, self.transition)
        matrix = self._matrix(sequences)
        if isinstance(self._emission, Mixture):
            self._emission.prepare(matrix, self._position_weights(sequences))
            self._emission.keep(matrix)
        self.history_ = {"objective": [], "log_likelihood": []}
        random = np.random.default_rng(self.random_state)
        if y is None:
            n = len(self._given) if self._given is not None else check_count("n_states", self.n_states)
            self._labels = LabelIndex(range(n))
            self._search(sequences, matrix, None, random)
        else:
            self._labels = LabelIndex.from_sequences(y)
            if not len(self._labels):
                raise ValueError("y contains no label: omit y to learn without labels")
            if self._given is not None and len(self._given) != len(self._labels):
                raise ValueError(
                    f"start and transition have {len(self._given)} states, but y has {len(self._labels)} labels: "
                    f"{self._labels.classes}"
                )
            tags = self._labels.encode(y, sequences.lengths)
            if tags.partial:
                self._search(sequences, matrix, tags, random)
            else:
                self._count(sequences, matrix, tags.labels, random)
        self.classes_ = self._labels.array
        if isinstance(self._emission, Mixture):
            self._emission.release()
        return self

    def _shared_columns(self, X: Any) -> tuple[Sequences, tuple[FeatureIndex | None, np.ndarray | None]]:
        """Return the sequences of several models with one shared vocabulary of columns."""
        check_choice("emission", self.emission, ("auto", *KINDS))
        discrete = IntegerSequences.read(X, self.emission)
        reader = HiddenMarkovModel(emission=self.emission)
        reader.symbols_ = discrete.symbols() if discrete is not None and discrete.is_symbols else None
        sequences = reader._read(X, discrete, FeatureIndex())
        return Sequences(sequences.rows, sequences.offsets), (sequences.index, reader.symbols_)

    def _position_weights(self, X: Sequences) -> np.ndarray | None:
        """Return the sequence weight of each position during a weighted fit."""
        weights = getattr(self, "_weights", None)
        return None if weights is None else np.repeat(weights, X.lengths)

    def _check_params(self) -> None:
        check_choice("emission", self.emission, ("auto", *KINDS))
        check_choice("covariance", self.covariance, COVARIANCES)
        check_choice("training", self.training, ("em", "viterbi"))
        check_positive("smoothing", self.smoothing)
        check_number("tol", self.tol)
        for name in ("n_mixtures", "n_init", "max_iter"):
            check_count(name, getattr(self, name))

    def _read(self, X: Any, discrete: IntegerSequences | None, learn: FeatureIndex | None = None) -> Sequences:
        """Return any input as sequences of features; with ``learn``, build a new vocabulary."""
        if discrete is not None:
            if discrete.is_symbols != (self.symbols_ is not None):
                expected = "integer symbols" if self.symbols_ is not None else "features or names, not integer symbols"
                raise ValueError(f"the model was trained on {expected}")
            return discrete.one_hot(self.symbols_) if self.symbols_ is not None else discrete.counts()
        if self.symbols_ is not None:
            raise ValueError("the model was trained on integer symbols: pass lists of integers")
        if not isinstance(X, Sequences) and hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
            X = [list(x) if isinstance(x, str) else x for x in X] if any(isinstance(x, str) for x in X) else X
        return as_sequences(X, self.index_ if learn is None else learn, learn=learn is not None)

    def _new_emission(self, X: Sequences, counts: bool) -> Multinomial | Mixture:
        dense = X.rows.dense is not None
        kind = self.emission
        if kind == "auto":
            kind = "gaussian" if dense and not counts else "multinomial"
        if kind in ("gaussian", "mixture"):
            return Mixture(float(self.smoothing), self.covariance, self.n_mixtures if kind == "mixture" else 1)
        values = X.rows.dense if dense else X.rows.values
        if values is not None and (values < 0).any():
            hint = "; emission='gaussian' takes integers as vectors" if counts else ""
            raise ValueError(f"emission {kind!r} needs counts: a feature is negative{hint}")
        if kind == "categorical":
            matrix = X.matrix()
            totals = np.asarray(matrix.sum(axis=1)).ravel()
            if (totals != 1).any() or (matrix != 0).sum() != len(totals):
                at = int(np.flatnonzero(totals != 1)[0]) if (totals != 1).any() else 0
                raise ValueError(
                    f"emission 'categorical' needs one name per position; see position {at} of the stacked sequences"
                )
        return Multinomial(float(self.smoothing))

    def _matrix(self, X: Sequences) -> Any:
        matrix = X.matrix()
        if isinstance(self._emission, Mixture):
            return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, float)
        return matrix

    def _count(self, X: Sequences, matrix: Any, labels: np.ndarray, random: np.random.Generator | None = None) -> None:
        """Set parameters by counting labels; −1 is ignored. ``random`` initialises the components of the states."""
        n = len(self._labels)
        known = labels >= 0
        responsibilities = np.zeros((X.n_positions, n))
        given = self._position_weights(X)
        weights = np.ones(X.n_positions) if given is None else given
        responsibilities[known, labels[known]] = weights[known]
        start, transitions = np.zeros(n), np.zeros((n, n))
        first = (X.offsets[:-1] - X.offsets[0])[X.lengths > 0]
        np.add.at(start, labels[first][known[first]], weights[first][known[first]])
        inner = known.copy()
        inner[first] = False
        inner[1:] &= known[:-1]
        at = np.flatnonzero(inner)
        np.add.at(transitions, (labels[at - 1], labels[at]), weights[at])
        self._check_allowed(start, transitions)
        self._maximize(start, transitions, responsibilities, matrix, random)
        if random is not None and isinstance(self._emission, Mixture) and self._emission.n_components > 1:
            for _ in range(10):  # the components of a state are hidden even where the states are known
                self._emission.maximize(matrix, responsibilities)

    def _maximize(
        self,
        start: np.ndarray,
        transitions: np.ndarray,
        responsibilities: np.ndarray,
        matrix: Any,
        random: np.random.Generator | None = None,
    ) -> None:
        """Set the maximum a posteriori parameters given expected counts (Dirichlet pseudo-counts)."""
        self._normalise(start, transitions)
        if random is not None and isinstance(self._emission, Mixture):
            self._emission.split(matrix, responsibilities, random)
        else:
            self._emission.maximize(matrix, responsibilities)

    def _normalise(self, start: np.ndarray, transitions: np.ndarray) -> None:
        extra, given = float(self.smoothing), getattr(self, "_given", None)
        start, transitions = start + extra, transitions + extra
        if given is not None:
            start, transitions = start * (given.start > 0), transitions * (given.transitions > 0)
        self.start_ = start / start.sum()
        self.transitions_ = transitions / transitions.sum(axis=1, keepdims=True)

    def _check_allowed(self, start: np.ndarray, transitions: np.ndarray) -> None:
        """Raise a ValueError for labels that ``start`` or ``transition`` forbid."""
        given = getattr(self, "_given", None)
        if given is None:
            return
        names = self._labels.classes
        for c in np.flatnonzero((start > 0) & (given.start == 0)).tolist()[:1]:
            raise ValueError(f"y has a sequence that begins with {names[c]!r}, and start[{c}] is 0")
        for a, b in np.argwhere((transitions > 0) & (given.transitions == 0)).tolist()[:1]:
            raise ValueError(f"in y {names[b]!r} follows {names[a]!r}, and transition[{a}, {b}] is 0")

    def _search(self, X: Sequences, matrix: Any, tags: TagSequences | None, random: np.random.Generator) -> None:
        """Run several starts and keep the best; large data is compared on an excerpt."""
        small = self._excerpt(X, matrix, tags, random)

        def begin(turn: int) -> Run:
            self._begin(*small, turn, random)
            return Run(self._parameters())

        best = race(
            self._n_starts(tags), begin, lambda run, most: self._climb(*small, run, most), self.max_iter, self.tol
        )
        if small[0] is not X:  # the history is that of all data
            best = self._climb(X, matrix, tags, Run(best.parameters), self.max_iter)
        self._restore(best.parameters)
        self.history_ = {"objective": best.objective, "log_likelihood": best.log_likelihood}
        if not best.converged:
            warn_caller(
                f"the objective still rises after max_iter={self.max_iter} iterations: increase max_iter or tol",
                ConvergenceWarning,
            )

    def _n_starts(self, tags: TagSequences | None) -> int:
        """Return the number of starts: one if all states have known labels and no components are drawn."""
        alone = isinstance(self._emission, Multinomial) or self._emission.n_components == 1
        return 1 if tags is not None and alone and not len(self._unlabelled(tags)) else int(self.n_init)

    def _unlabelled(self, tags: TagSequences) -> np.ndarray:
        """Return the states without known positions."""
        return np.setdiff1d(np.arange(len(self._labels)), tags.labels[tags.labels >= 0])

    def _excerpt(
        self, X: Sequences, matrix: Any, tags: TagSequences | None, random: np.random.Generator
    ) -> tuple[Sequences, Any, TagSequences | None]:
        """Return the data for comparing starts: all data, or random pieces of large data."""
        if X.n_positions <= EXCERPT or self._given is not None or tags is not None or hasattr(self, "_weights"):
            return X, matrix, tags
        offsets = X.offsets - X.offsets[0]
        bounds = np.unique(np.concatenate([offsets, np.arange(0, X.n_positions, PIECE)]))
        lengths = np.diff(bounds)
        chosen = random.permutation(len(lengths))
        chosen = np.sort(chosen[: 1 + int(np.searchsorted(np.cumsum(lengths[chosen]), EXCERPT))])
        rows = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in chosen])
        some = matrix[rows]
        return Sequences(some, np.concatenate([[0], np.cumsum(lengths[chosen])])), some, None

    def _begin(
        self, X: Sequences, matrix: Any, tags: TagSequences | None, turn: int, random: np.random.Generator
    ) -> None:
        n = len(self._labels)
        if isinstance(self._emission, Mixture):
            self._emission.keep(matrix)
        if tags is not None:
            self._begin_with_labels(X, matrix, tags, turn, random)
            return
        offsets = X.offsets - X.offsets[0]
        if self._given is not None:
            self._begin_with_topology(X, matrix, turn, random)
            return
        responsibilities = self._emission.start(matrix, offsets, n, turn, random)
        if responsibilities is None:
            self.start_, self.transitions_ = random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n), size=n)
            return
        self._maximize_pairs(X, matrix, responsibilities, random)

    def _maximize_pairs(
        self, X: Sequences, matrix: Any, responsibilities: np.ndarray, random: np.random.Generator
    ) -> None:
        """Do the same from the responsibilities of a start, as if positions were independent."""
        weights = self._position_weights(X)
        start, transitions = pair_counts(responsibilities, X.offsets - X.offsets[0], weights)
        if weights is not None:
            responsibilities = weights[:, None] * responsibilities
        self._maximize(start, transitions, responsibilities, matrix, random)

    def _begin_with_topology(self, X: Sequences, matrix: Any, turn: int, random: np.random.Generator) -> None:
        """Initialise emissions by the expected positions of states in the given chain, then by random clusters."""
        assert self._given is not None
        n, offsets = len(self._labels), X.offsets - X.offsets[0]
        if turn == 0:
            theta = ChainScores(
                np.zeros((X.n_positions, n)),
                _log(self._given.transitions),
                _log(self._given.start),
                np.zeros(n),
                offsets,
            )
            nodes = self._chain().marginals(theta).nodes.copy()
            nodes = (1.0 - SOFTNESS) * nodes + SOFTNESS * random.dirichlet(np.ones(n), size=X.n_positions)
        else:
            clusters = self._emission.start(matrix, offsets, n, turn, random)
            if clusters is None:
                clusters = random.dirichlet(np.ones(n), size=X.n_positions)
            nodes = clusters[:, random.permutation(n)]
        self._maximize_pairs(X, matrix, nodes, random)
        self.start_, self.transitions_ = self._given.start.copy(), self._given.transitions.copy()

    def _begin_with_labels(
        self, X: Sequences, matrix: Any, tags: TagSequences, turn: int, random: np.random.Generator
    ) -> None:
        """Initialise by counts of the known labels; states without labels share the unlabelled positions."""
        self._count(X, matrix, tags.labels, random)
        missing = self._unlabelled(tags)
        if not len(missing):
            return
        offsets = X.offsets - X.offsets[0]
        responsibilities = np.zeros((X.n_positions, len(self._labels)))
        known = tags.labels >= 0
        responsibilities[known, tags.labels[known]] = 1.0
        drawn = self._emission.start(matrix, offsets, len(missing), turn, random)
        if drawn is None:
            drawn = random.dirichlet(np.ones(len(missing)), size=X.n_positions)
        responsibilities[np.ix_(~known, missing)] = drawn[~known]
        self._maximize_pairs(X, matrix, responsibilities, random)

    def _parameters(self) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        return self.start_, self.transitions_, self._emission.arrays()

    def _restore(self, parameters: tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]) -> None:
        self.start_, self.transitions_, arrays = parameters
        self._emission.restore(arrays, len(self._labels), self.n_features_in_)

    def _climb(self, X: Sequences, matrix: Any, tags: TagSequences | None, run: Run, max_iter: int) -> Run:
        """Iterate until convergence or ``max_iter``."""
        if run.converged or len(run.objective) >= max_iter:
            return run
        self._restore(run.parameters)
        if isinstance(self._emission, Mixture):
            self._emission.keep(matrix)
        expect = self._expectation(X, matrix, tags)
        while len(run.objective) < max_iter:
            likelihood, maximise = expect()
            if not np.isfinite(likelihood):
                raise ValueError("a sequence of X has probability 0 under start, transition and the labels")
            run.objective.append(likelihood + self._log_prior())
            run.log_likelihood.append(likelihood)
            if self.verbose:
                iteration, total = len(run.objective), run.objective[-1]
                say(f"iteration {iteration}: objective {total:.6g}, log-likelihood {likelihood:.6g}")
            run.converged = is_over(run.objective, self.tol)
            if run.converged:
                break
            maximise()
            run.parameters = self._parameters()
        return run

    def _expectation(self, X: Sequences, matrix: Any, tags: TagSequences | None) -> Callable[[], tuple[float, Any]]:
        """Return a function that computes the log-likelihood and the expected counts of the current parameters."""
        chain = self._chain()
        emission = self._emission
        weights = getattr(self, "_weights", None)
        by_name = isinstance(emission, Multinomial) and tags is None and weights is None
        symbols = Multinomial.symbols(matrix) if by_name else None
        nodes = np.empty((X.n_positions if symbols is not None else 0, len(self._labels)))

        def general() -> tuple[float, Any]:
            theta = self._theta(X, matrix)
            if tags is not None:
                theta = chain.restrict(theta, tags)
            if self.training == "em" and weights is not None:
                return weighted_marginals(theta)
            if self.training == "em":
                mu = chain.marginals(theta)
                return float(mu.log_partition.sum()), lambda: self._maximize(mu.start, mu.transitions, mu.nodes, matrix)
            labels, values = chain.argmax(theta)
            total = float(values.sum() if weights is None else weights @ values)
            return total, lambda: self._count(X, matrix, labels)

        def weighted_marginals(theta: Any) -> tuple[float, Any]:
            """Sum the marginals of batches of sequences with equal weight."""
            assert weights is not None
            start, transitions, parts = np.zeros(len(self._labels)), np.zeros((len(self._labels),) * 2), []
            total = 0.0
            bounds = [0, *(1 + np.flatnonzero(np.diff(weights) != 0)).tolist(), len(weights)]
            for a, b in pairwise(bounds):
                mu = chain.marginals(_some_sequences(theta, a, b))
                total += float(weights[a] * mu.log_partition.sum())
                start += weights[a] * mu.start
                transitions += weights[a] * mu.transitions
                parts.append(weights[a] * mu.nodes)
            return total, lambda: self._maximize(start, transitions, np.concatenate(parts), matrix)

        def of_symbols() -> tuple[float, Any]:
            """Compute expectations for one name per position, with a table of log-probabilities and counts by name."""
            assert isinstance(emission, Multinomial)
            assert symbols is not None
            table = np.ascontiguousarray(_log(emission.probabilities).T)
            n = table.shape[1]
            counts, transitions, start = np.zeros_like(table), np.zeros((n, n)), np.zeros(n)
            logs = np.empty(len(X))
            _core.chain.hidden_marginals(
                table, symbols, _log(self.transitions_), _log(self.start_), X.offsets - X.offsets[0], nodes,
                counts, transitions, start, logs, thread_count(self.n_jobs),
            )  # fmt: skip

            def maximise() -> None:
                self._normalise(start, transitions)
                emission.from_counts(counts)

            return float(logs.sum()), maximise

        return of_symbols if symbols is not None and self.training == "em" else general

    def _log_prior(self) -> float:
        """Return the log-density of the prior up to a constant; training increases likelihood times prior."""
        held = np.concatenate([self.start_, self.transitions_.ravel()])
        start = float(self.smoothing) * float(np.log(held[held > 0]).sum())
        return start + self._emission.log_prior()

    # ------------------------------------------------------------------ what was learnt

    @property
    def emission_(self) -> np.ndarray:
        """Probabilities of features, or means, one row per state."""
        if isinstance(self._learnt(), Multinomial):
            return self._emission.probabilities  # type: ignore[union-attr]
        return np.einsum("sm,smd->sd", self._emission.weights, self._emission.means)  # type: ignore[union-attr]

    @property
    def weights_(self) -> np.ndarray:
        """Weights of the components of every state."""
        return self._mixture().weights

    @property
    def means_(self) -> np.ndarray:
        """Means of the components of every state."""
        return self._mixture().means

    @property
    def covariances_(self) -> np.ndarray:
        """Variances or covariance matrices: of the states, or of their components in a mixture."""
        mixture = self._mixture()
        return mixture.covariances[:, 0] if mixture.n_components == 1 else mixture.covariances

    def _learnt(self) -> Multinomial | Mixture:
        if not hasattr(self, "transitions_"):
            raise AttributeError("this HiddenMarkovModel is not fitted yet: call fit first")
        return self._emission

    def _mixture(self) -> Mixture:
        emission = self._learnt()
        if not isinstance(emission, Mixture):
            raise AttributeError("only models with vector emissions have means and covariances")
        return emission

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[list[Any]]:
        """Return the most probable state sequence (Viterbi).

        Parameters
        ----------
        X : sequences
            As in :meth:`fit`.

        Returns
        -------
        list of lists of labels, or of numbers of states
        """
        sequences = self._fitted(X)
        labels, _ = self._chain().argmax(self._theta(sequences, self._matrix(sequences)))
        return self._labels.decode(labels, sequences.offsets)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """Return p(state at position | x)."""
        sequences = self._fitted(X)
        nodes = self._chain().marginals(self._theta(sequences, self._matrix(sequences))).nodes
        bounds = (sequences.offsets - sequences.offsets[0]).tolist()
        return [nodes[a:b].copy() for a, b in pairwise(bounds)]

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Return log p(x) of each sequence (for counts: up to the multinomial coefficient)."""
        sequences = self._fitted(X)
        return self._chain().log_partition(self._theta(sequences, self._matrix(sequences)))

    def scores(self, X: Any) -> np.ndarray:
        """Return the gradient of log p(x) with respect to the parameters, one row per sequence, for the Fisher kernel.

        Probabilities are parametrised by logits (each row is a softmax), in the order start, transitions, emissions.
        Normal emissions use the logits of weights, the means and the logarithms of variances (or the entries of
        covariance matrices).
        """
        sequences = self._fitted(X)
        matrix = self._matrix(sequences)
        theta, chain, offsets = self._theta(sequences, matrix), self._chain(), sequences.offsets - sequences.offsets[0]
        nodes, start, moves, log_p = chain.marginals_of_each(theta)
        if not np.isfinite(log_p).all():
            i = int(np.argmin(np.isfinite(log_p)))
            raise ValueError(f"sequence {i} has probability 0: log p has no gradient there")
        start -= start.sum(axis=1, keepdims=True) * self.start_
        moves -= moves.sum(axis=2, keepdims=True) * self.transitions_
        changes = self._emission.gradients(matrix, nodes, offsets)
        return np.hstack([start, moves.reshape(len(moves), -1), changes])

    def log_prob(self, X: Any) -> np.ndarray:
        """Return log p(x) of each sequence: an alias of `log_likelihood` for generative kernels.

        Parameters
        ----------
        X : sequences

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self.log_likelihood(X)

    @property
    def parameters(self) -> np.ndarray:
        """Return θ, the parameters of the gradient in `scores`, as one vector; a probability of 0 has the logit −∞."""
        self._check_fitted()
        return np.concatenate([_log(self.start_), _log(self.transitions_).ravel(), self._emission.parameters()])

    def score(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> float:
        """Return the accuracy over positions with a known label; without y, the mean log-likelihood of a sequence."""
        if y is None:
            return float(self.log_likelihood(X).mean())
        sequences = self._fitted(X)
        tags = self._labels.encode(y, sequences.lengths)
        known = tags.labels >= 0
        if not known.any():
            raise ValueError("no known label to compare with")
        predicted, _ = self._chain().argmax(self._theta(sequences, self._matrix(sequences)))
        return float((predicted[known] == tags.labels[known]).mean())

    def sample(self, lengths: int | Sequence[int], random_state: Any = None) -> tuple[list[Any], list[list[Any]]]:
        """Draw sequences from the model.

        Parameters
        ----------
        lengths : int or list of int
            Length of each sequence to draw; a single number draws one sequence.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        X : list
            Arrays of vectors, or lists of names (one per position); column numbers if features have no names.
        states : list of lists
            The sampled hidden states.
        """
        self._check_fitted()
        sizes = [check_count("lengths", n, 0) for n in np.atleast_1d(lengths).tolist()]
        random = np.random.default_rng(random_state)
        names: list[Any] | None = None
        if isinstance(self._emission, Multinomial):
            names = self.index_.names() if self.index_ is not None else None
            names = self.symbols_.tolist() if self.symbols_ is not None else names
        X: list[Any] = []
        states: list[list[Any]] = []
        for size in sizes:
            path = self._path(size, random)
            drawn = self._emission.draw(path, random)
            X.append(drawn if names is None else [names[i] for i in drawn.tolist()])
            states.append([self._labels.classes[s] for s in path.tolist()])
        return X, states

    def _path(self, size: int, random: np.random.Generator) -> np.ndarray:
        path = np.zeros(size, np.int64)
        cumulated, draws = np.cumsum(self.transitions_, axis=1), random.random(size)
        line = np.cumsum(self.start_)
        for t in range(size):
            path[t] = min(int(np.searchsorted(line, draws[t], side="right")), len(line) - 1)
            line = cumulated[path[t]]
        return path

    def _check_fitted(self) -> None:
        if not hasattr(self, "transitions_"):
            raise NotFittedError("this HiddenMarkovModel is not fitted yet: call fit first")

    def _fitted(self, X: Any) -> Sequences:
        self._check_fitted()
        if hasattr(X, "__len__") and not len(X):
            return Sequences(np.zeros((0, self.n_features_in_)), [0])
        kind = "gaussian" if isinstance(self._emission, Mixture) else "auto" if self.symbols_ is None else "categorical"
        sequences = self._read(X, IntegerSequences.read(X, kind))
        if sequences.n_features != self.n_features_in_ and len(sequences):
            raise ValueError(f"X has {sequences.n_features} features, the model has {self.n_features_in_}")
        return sequences

    def _chain(self) -> Chain:
        return Chain(len(self._labels), self.n_features_in_, threads=thread_count(self.n_jobs))

    def _theta(self, X: Sequences, matrix: Any) -> ChainScores:
        """Return log-probabilities as part scores."""
        nodes = self._emission.log_probabilities(matrix)
        offsets = X.offsets - X.offsets[0]
        return ChainScores(nodes, _log(self.transitions_), _log(self.start_), np.zeros(nodes.shape[1]), offsets)

    # ------------------------------------------------------------------ model files

    def _check_complete(self) -> None:
        self._check_fitted()

    def _check_state(self) -> None:
        self._check_params()
        _Given.of(self.start, self.transition)
        self.classes_ = self._labels.array
        self._emission.restore(self._emission.arrays(), len(self._labels), self.n_features_in_)
        if self.symbols_ is not None and (self.symbols_[1:] <= self.symbols_[:-1]).any():
            raise ValueError("expected symbols in ascending order")


class _Given:
    """Initial probabilities of states; zeros stay zero."""

    def __init__(self, start: np.ndarray, transitions: np.ndarray) -> None:
        self.start, self.transitions = start, transitions

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def of(cls, start: Any, transition: Any) -> _Given | None:
        """Return checked probabilities; None if neither is given; uniform for a missing argument."""
        if start is None and transition is None:
            return None
        first = None if start is None else _probabilities("start", start, 1)
        following = None if transition is None else _probabilities("transition", transition, 2)
        n = len(first) if first is not None else len(following)  # type: ignore[arg-type]
        first = np.full(n, 1.0 / n) if first is None else first
        following = np.full((n, n), 1.0 / n) if following is None else following
        if following.shape != (n, n):
            raise ValueError(f"transition must be of shape {(n, n)}, got {following.shape}")
        return cls(first, following)


def _probabilities(name: str, given: Any, ndim: int) -> np.ndarray:
    """Return an array whose last axis sums to 1."""
    array = np.array(given, dtype=float)
    if array.ndim != ndim or not array.size:
        raise ValueError(f"{name} must be an array of {ndim} dimension{'s' if ndim > 1 else ''}, got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must contain probabilities, but a number is negative or not finite")
    if not np.allclose(array.sum(axis=-1), 1.0, atol=1e-6):
        raise ValueError(f"{name} must sum to 1{' in each row' if ndim > 1 else ''}")
    return array / array.sum(axis=-1, keepdims=True)


def _log(probabilities: np.ndarray) -> np.ndarray:
    """Return logarithms, with −inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _some_sequences(theta: ChainScores, a: int, b: int) -> ChainScores:
    """Return the part scores of the sequences a to b."""
    offsets = theta.offsets[a : b + 1]
    places = slice(offsets[0], offsets[-1])
    edges = None if theta.edges is None else theta.edges[places]
    return ChainScores(theta.nodes[places], theta.transitions, theta.start, theta.end, offsets - offsets[0], edges)
