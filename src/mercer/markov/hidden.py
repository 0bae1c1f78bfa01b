"""Hidden Markov models: by counting, by Baum-Welch, or by Viterbi training.

Locally normalised, and trained by joint likelihood:

    p(x, y) = π[y_0] Π_t A[y_{t−1}, y_t] Π_t p(x_t | y_t)

The chain verbs do all the inference: nodes are log p(x_t | c), transitions log A, start log π.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer import _core
from mercer._em import Run, is_over, pair_counts, race
from mercer._estimator import Estimator, Outputs
from mercer._progress import say
from mercer._state.saved import Count, Fields, Floats, History, Ints, Nested, Optional, Saved
from mercer._validation import check_choice, check_count, check_positive, thread_count, used_examples
from mercer.data.features import FeatureIndex, as_sequences
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.learning.solvers import ConvergenceWarning
from mercer.markov.emissions import COVARIANCES, Mixture, Multinomial
from mercer.markov.symbols import IntegerSequences
from mercer.structures.chain import Chain, ChainScores

KINDS = ("categorical", "multinomial", "gaussian", "mixture")
EXCERPT = 20_000  # positions on which starts are compared; the best one goes on with all
PIECE = 500  # positions of a piece of an excerpt


class HiddenMarkovModel(Saved, Estimator):
    """A hidden Markov model: with labels, with some labels, or without.

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
        What a position is drawn from, given the state: one name ("categorical"), counts of names ("multinomial"), a
        normal vector, or a vector from a mixture of ``n_mixtures`` normal distributions. "auto" is "multinomial" for
        names, integers and sparse features (one symbol a position is the categorical case), "gaussian" for floats.
    covariance : {"diag", "full", "spherical"}, default="diag"
        Of the normal distributions.
    n_mixtures : int, default=2
        Components of each state, for "mixture".
    training : {"em", "viterbi"}, default="em"
        How states are found that are not given: by expectation maximisation (Baum-Welch), or by turns of the single
        best states and counting them (faster, rougher).
    smoothing : float, default=0.1
        Pseudo-count added to every transition, start and emission count; pulls variances towards those of all data.
    n_init : int, default=12
        Starts without labels. They are found in the data: clusters of positions, clusters of symbols by the symbols
        around them, random parameters, in turn. Each runs 20 iterations; half of them run until convergence, and
        the one with the highest objective is kept. Beyond 20,000 positions starts are compared on random pieces of the
        data, and only the best continues on all data.
    max_iter : int, default=300
        Iterations of a start. A run that reaches it warns.
    tol : float, default=1e-4
        Training stops when the objective is estimated to rise by less than ``tol`` times its rise so far. The estimate
        assumes that the gains keep falling geometrically; while gains grow, training goes on. A negative value
        never stops.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of the random starts.
    verbose : int, default=0
        1 prints the objective of every iteration.

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
        The integers that the columns of ``emission_`` stand for, where ``X`` held integer symbols.
    history_ : dict of lists, one value an iteration
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
    .. [Biernacki2003] C. Biernacki, G. Celeux and G. Govaert, "Choosing starting values for the EM algorithm for
       getting the highest likelihood in multivariate Gaussian mixture models", Computational Statistics & Data Analysis
       41, 2003.
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

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Sequence[Sequence[Any]] | None = None, sample_weight: Any = None) -> HiddenMarkovModel:
        """Fit by counting where all labels are given; otherwise the states are found by ``training``.

        Parameters
        ----------
        X : sequences
        y : list of lists of labels, optional
            Where it holds None (or sets of possible labels), the known labels are kept to, and give the start.
        sample_weight : array of a number for each sequence, optional
            At least 0: a sequence of weight 2 counts as two, one of weight 0 is left out.

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

    def _fit(self, X: Any, y: Sequence[Sequence[Any]] | None) -> HiddenMarkovModel:
        discrete = IntegerSequences.read(X, self.emission)
        self.symbols_: np.ndarray | None = None
        if discrete is not None and discrete.is_symbols:
            self.symbols_ = discrete.symbols()
        sequences = self._read(X, discrete, FeatureIndex())
        if not sequences.n_positions:
            raise ValueError("nothing to learn from: X has no positions")
        self.index_: FeatureIndex | None = sequences.index
        self.n_features_in_ = sequences.n_features
        self._emission = self._new_emission(sequences, counts=discrete is not None)
        matrix = self._matrix(sequences)
        if isinstance(self._emission, Mixture):
            self._emission.prepare(matrix, self._position_weights(sequences))
            self._emission.keep(matrix)
        self.history_: dict[str, list[float]] = {"objective": [], "log_likelihood": []}
        random = np.random.default_rng(self.random_state)
        if y is None:
            check_count("n_states", self.n_states)
            self._labels = LabelIndex(range(self.n_states))
            self._search(sequences, matrix, None, random)
        else:
            self._labels = LabelIndex.from_sequences(y)
            if not len(self._labels):
                raise ValueError("y holds no label: leave it out to learn without labels")
            tags = self._labels.encode(y, sequences.lengths)
            if tags.partial:
                self._search(sequences, matrix, tags, random)
            else:
                self._count(sequences, matrix, tags.labels, random)
        self.classes_ = self._labels.array
        if isinstance(self._emission, Mixture):
            self._emission.release()
        return self

    def _position_weights(self, X: Sequences) -> np.ndarray | None:
        """The weight of the sequence of each position, while a weighted fit runs."""
        weights = getattr(self, "_weights", None)
        return None if weights is None else np.repeat(weights, X.lengths)

    def _check_params(self) -> None:
        check_choice("emission", self.emission, ("auto", *KINDS))
        check_choice("covariance", self.covariance, COVARIANCES)
        check_choice("training", self.training, ("em", "viterbi"))
        check_positive("smoothing", self.smoothing)
        for name in ("n_mixtures", "n_init", "max_iter"):
            check_count(name, getattr(self, name))

    def _read(self, X: Any, discrete: IntegerSequences | None, learn: FeatureIndex | None = None) -> Sequences:
        """Any input as sequences of features; with ``learn``, names are new."""
        if discrete is not None:
            if discrete.is_symbols != (self.symbols_ is not None):
                expected = "integer symbols" if self.symbols_ is not None else "features or names, not integer symbols"
                raise ValueError(f"the model was trained on {expected}")
            return discrete.one_hot(self.symbols_) if self.symbols_ is not None else discrete.counts()
        if self.symbols_ is not None:
            raise ValueError("the model was trained on integer symbols: give lists of integers")
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
                raise ValueError(f"emission 'categorical' needs one name a position; see position {at} of the stack")
        return Multinomial(float(self.smoothing))

    def _matrix(self, X: Sequences) -> Any:
        matrix = X.matrix()
        if isinstance(self._emission, Mixture):
            return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, float)
        return matrix

    def _count(self, X: Sequences, matrix: Any, labels: np.ndarray, random: np.random.Generator | None = None) -> None:
        """Parameters from labels; −1 is not counted. ``random`` splits the states into components, for a first time."""
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
        """The parameters of highest posterior given expected counts (Dirichlet pseudo-counts)."""
        self._normalise(start, transitions)
        if random is not None and isinstance(self._emission, Mixture):
            self._emission.split(matrix, responsibilities, random)
        else:
            self._emission.maximize(matrix, responsibilities)

    def _normalise(self, start: np.ndarray, transitions: np.ndarray) -> None:
        extra = float(self.smoothing)
        self.start_ = (start + extra) / (start + extra).sum()
        self.transitions_ = (transitions + extra) / (transitions + extra).sum(axis=1, keepdims=True)

    def _search(self, X: Sequences, matrix: Any, tags: TagSequences | None, random: np.random.Generator) -> None:
        """The best of several starts, which are compared on an excerpt where data are many."""
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
            warnings.warn(
                f"training still rises after max_iter={self.max_iter} iterations: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _n_starts(self, tags: TagSequences | None) -> int:
        """Known labels of all states make one start; only components of mixtures are then drawn."""
        alone = isinstance(self._emission, Multinomial) or self._emission.n_components == 1
        return 1 if tags is not None and alone and not len(self._unlabelled(tags)) else int(self.n_init)

    def _unlabelled(self, tags: TagSequences) -> np.ndarray:
        """States that no position is known to have."""
        return np.setdiff1d(np.arange(len(self._labels)), tags.labels[tags.labels >= 0])

    def _excerpt(
        self, X: Sequences, matrix: Any, tags: TagSequences | None, random: np.random.Generator
    ) -> tuple[Sequences, Any, TagSequences | None]:
        """What the race is run on: all data, or random pieces of them where there are many."""
        if X.n_positions <= EXCERPT or tags is not None or hasattr(self, "_weights"):
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
        responsibilities = self._emission.start(matrix, offsets, n, turn, random)
        if responsibilities is None:
            self.start_, self.transitions_ = random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n), size=n)
            return
        self._maximize_pairs(X, matrix, responsibilities, random)

    def _maximize_pairs(
        self, X: Sequences, matrix: Any, responsibilities: np.ndarray, random: np.random.Generator
    ) -> None:
        """The same from the responsibilities of a start, as if positions were independent."""
        weights = self._position_weights(X)
        start, transitions = pair_counts(responsibilities, X.offsets - X.offsets[0], weights)
        if weights is not None:
            responsibilities = weights[:, None] * responsibilities
        self._maximize(start, transitions, responsibilities, matrix, random)

    def _begin_with_labels(
        self, X: Sequences, matrix: Any, tags: TagSequences, turn: int, random: np.random.Generator
    ) -> None:
        """Counts of the known labels; states without any share the positions without a label."""
        self._count(X, matrix, tags.labels, random)
        missing = self._unlabelled(tags)
        if not len(missing):
            return
        offsets = X.offsets - X.offsets[0]
        responsibilities = np.zeros((X.n_positions, len(self._labels)))
        known = tags.labels >= 0
        responsibilities[known, tags.labels[known]] = 1.0
        found = self._emission.start(matrix, offsets, len(missing), turn, random)
        if found is None:
            found = random.dirichlet(np.ones(len(missing)), size=X.n_positions)
        responsibilities[np.ix_(~known, missing)] = found[~known]
        self._maximize_pairs(X, matrix, responsibilities, random)

    def _parameters(self) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        return self.start_, self.transitions_, self._emission.arrays()

    def _restore(self, parameters: tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]) -> None:
        self.start_, self.transitions_, arrays = parameters
        self._emission.restore(arrays, len(self._labels), self.n_features_in_)

    def _climb(self, X: Sequences, matrix: Any, tags: TagSequences | None, run: Run, max_iter: int) -> Run:
        """Iterations until little is left to gain, or until there were ``max_iter``."""
        if run.converged or len(run.objective) >= max_iter:
            return run
        self._restore(run.parameters)
        if isinstance(self._emission, Mixture):
            self._emission.keep(matrix)
        expect = self._expectation(X, matrix, tags)
        while len(run.objective) < max_iter:
            likelihood, maximise = expect()
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
        """A call that gives the log-likelihood of the present parameters, and what makes better ones of them."""
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
            """Sums over sequences of one weight after the other: the chain adds up those of a batch."""
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
            """One name a position: its log-probabilities are a row of a table, and counts are added up by name."""
            assert isinstance(emission, Multinomial)
            assert symbols is not None
            table = np.ascontiguousarray(np.log(emission.probabilities).T)
            n = table.shape[1]
            counts, transitions, start = np.zeros_like(table), np.zeros((n, n)), np.zeros(n)
            logs = np.empty(len(X))
            _core.chain.hidden_marginals(
                table, symbols, np.log(self.transitions_), np.log(self.start_), X.offsets - X.offsets[0], nodes,
                counts, transitions, start, logs, thread_count(self.n_jobs),
            )  # fmt: skip

            def maximise() -> None:
                self._normalise(start, transitions)
                emission.from_counts(counts)

            return float(logs.sum()), maximise

        return of_symbols if symbols is not None and self.training == "em" else general

    def _log_prior(self) -> float:
        """Log-density of the pseudo-counts' prior, up to a constant: training raises likelihood times prior."""
        start = float(self.smoothing) * float(np.log(self.start_).sum() + np.log(self.transitions_).sum())
        return start + self._emission.log_prior()

    # ------------------------------------------------------------------ what was learnt

    @property
    def emission_(self) -> np.ndarray:
        """Probabilities of features, or means, one row a state."""
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
            raise AttributeError("only models of vectors have means and covariances")
        return emission

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable state sequence (Viterbi)."""
        sequences = self._fitted(X)
        labels, _ = self._chain().argmax(self._theta(sequences, self._matrix(sequences)))
        return self._labels.decode(labels, sequences.offsets)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """p(state at position | x)."""
        sequences = self._fitted(X)
        nodes = self._chain().marginals(self._theta(sequences, self._matrix(sequences))).nodes
        bounds = (sequences.offsets - sequences.offsets[0]).tolist()
        return [nodes[a:b].copy() for a, b in pairwise(bounds)]

    def log_likelihood(self, X: Any) -> np.ndarray:
        """log p(x) of each sequence (for counts: up to the multinomial coefficient)."""
        sequences = self._fitted(X)
        return self._chain().log_partition(self._theta(sequences, self._matrix(sequences)))

    def score(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> float:
        """Share of the positions with a known label that are right; without y the mean log-likelihood of a sequence."""
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
            Positions of each sequence to draw; a number is one sequence.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        X : list
            Arrays of vectors, or lists of names (one a position); numbers of columns where features have no names.
        states : list of lists
            What was drawn to send them out.
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
        """Log-probabilities as part scores."""
        nodes = self._emission.log_probabilities(matrix)
        offsets = X.offsets - X.offsets[0]
        return ChainScores(nodes, np.log(self.transitions_), np.log(self.start_), np.zeros(nodes.shape[1]), offsets)

    # ------------------------------------------------------------------ model files

    def _check_complete(self) -> None:
        self._check_fitted()

    def _check_state(self) -> None:
        self._check_params()
        self.classes_ = self._labels.array
        self._emission.restore(self._emission.arrays(), len(self._labels), self.n_features_in_)
        if self.symbols_ is not None and (self.symbols_[1:] <= self.symbols_[:-1]).any():
            raise ValueError("expected symbols in ascending order")


def _some_sequences(theta: ChainScores, a: int, b: int) -> ChainScores:
    """Part scores of the sequences a to b."""
    offsets = theta.offsets[a : b + 1]
    places = slice(offsets[0], offsets[-1])
    edges = None if theta.edges is None else theta.edges[places]
    return ChainScores(theta.nodes[places], theta.transitions, theta.start, theta.end, offsets - offsets[0], edges)
