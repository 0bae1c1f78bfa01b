"""Fully visible Boltzmann machines on any graph: p(x) ∝ exp(Σ_(i,j) w_ij x_i x_j + Σ_i b_i x_i), x in ±1 or 0/1."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._state.saved import Choice, Fields, Floats, Ints
from mercer._validation import thread_count
from mercer.fields._base import FieldEstimator
from mercer.fields._pairs import PairField
from mercer.inference.graph import FactorGraph
from mercer.learning.learners import Learner, log_odds

__all__ = ["BoltzmannMachine"]


class BoltzmannMachine(FieldEstimator):
    """Learn a Boltzmann machine without hidden units: pairwise couplings of binary columns.

    Parameters
    ----------
    edges : None, array of shape (n_edges, 2) or FactorGraph, default=None
        Pairs of columns that interact. None: all pairs. For a factor graph, its pairs of variables.
    learner : {"pcd", "cd", "tempered", "parallel-tempering", "smc", "psmc", "mcmcml", "particle-filter", "exact", \
"pseudo-likelihood"} or Learner, default="psmc"
        How the gradient of the partition function is estimated; see :mod:`mercer.fields.learners`.
    n_particles : int, default=200
        Number of particles of this estimate.
    ess : float, default=0.9
        Effective sample size of a step of ``"smc"`` and ``"psmc"``, as a share.
    refresh : float, default=0.5
        Share of the particles that ``"psmc"`` replaces in each step.
    batch_size : int, default=200
        Batch size in rows.
    max_iter : int, optional
        Epochs. None: 20, or with little data the number of epochs for 3,000 steps.
    learning_rate : float or (rate, decay), default=(0.05, 0.01)
        Steps η_t = rate / (1 + decay · t) after t steps; a number is constant.
    weight_decay : float, default=0.0
        λ of the term −½ λ ‖w‖² added to the mean log-likelihood.
    momentum : float, default=0.0
        Momentum: share of the last step that is added to the next.
    likelihood_every : int, default=0
        Epochs between two likelihoods in ``history_`` by annealing. 0: at every epoch if an exact sum is fast,
        otherwise never.
    patience : int, default=10
        With ``fit(…, dev=…)``: epochs without a better held-out likelihood before training stops.
    n_jobs : int or None
        Threads; −1 for all cores. The result does not depend on it.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each epoch.

    Attributes
    ----------
    edges_ : array (n_edges, 2)
    weights_ : array (n_edges,)
    intercept_ : array (n_features,)
    values_ : (lo, hi)
        The two values of a column: (0, 1) or (−1, 1), whichever the rows hold.
    history_ : dict of lists, one value per epoch
        ``log_likelihood`` if known, and values of the learner: ``n_temperatures``, ``ess``, ``acceptance``.
    n_iter_ : int
    interrupted_ : bool

    References
    ----------
    .. [Ackley1985] D. Ackley, G. Hinton and T. Sejnowski. A learning algorithm for Boltzmann machines. Cognitive
       Science 9, 1985.
    .. [Xiong2014] H. Xiong, S. Szedmak and J. Piater. Towards maximum likelihood: learning undirected graphical models
       using persistent sequential Monte Carlo. ACML, 2014.

    Examples
    --------
    The second column copies the first, the third is independent:

    >>> import numpy as np
    >>> from mercer.fields import BoltzmannMachine
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 3)) * 2 - 1
    >>> X[:, 1] = X[:, 0]
    >>> model = BoltzmannMachine(max_iter=100, random_state=0).fit(X)
    >>> strong = model.couplings()[0]
    >>> bool(strong[1] > 5 * abs(strong[2]))
    True
    """

    saved = FieldEstimator.saved | Fields(
        edges_=Ints(None, 2, below="n_features_in_"),
        weights_=Floats("edges_"),
        intercept_=Floats("n_features_in_"),
        lowest_=Choice(-1, 0),
    )

    def __init__(
        self,
        edges: Any = None,
        learner: str | Learner = "psmc",
        *,
        n_particles: int = 200,
        ess: float = 0.9,
        refresh: float = 0.5,
        batch_size: int = 200,
        max_iter: int | None = None,
        learning_rate: Any = (0.05, 0.01),
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        likelihood_every: int = 0,
        patience: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.edges = edges
        self.learner = learner
        self.n_particles = n_particles
        self.ess = ess
        self.refresh = refresh
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.likelihood_every = likelihood_every
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def _states(self, X: Any, reset: bool) -> np.ndarray:
        X = validate_data(self, X, dtype=None, reset=reset)
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must contain the numbers 0 and 1, or −1 and 1, got {X.dtype}")
        if reset:
            self.lowest_ = -1 if (X == -1).any() else 0
        wrong = ~((self.lowest_ == X) | (X == 1))
        if wrong.any():
            row, column = (int(i[0]) for i in np.nonzero(wrong))
            values = "0 and 1, or −1 and 1" if reset else f"{self.lowest_} and 1, as in training"
            raise ValueError(f"X must contain {values}, found {X[row, column]} in row {row}, column {column}")
        return np.ascontiguousarray(X == 1, np.int8)

    @property
    def values_(self) -> tuple[int, int]:
        """The two values of a column."""
        check_is_fitted(self)
        return self.lowest_, 1

    def _pairs(self) -> np.ndarray:
        d = self.n_features_in_
        if self.edges is None:
            return np.stack(np.triu_indices(d, 1), axis=1).astype(np.int64)
        given = self.edges
        if isinstance(given, FactorGraph):
            given = [scope for scopes, _ in given.blocks for scope in scopes.tolist() if len(scope) == 2]
        pairs = np.asarray(given)
        if pairs.size == 0:
            return np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(f"edges must be pairs of column numbers, got an array of shape {pairs.shape}")
        if pairs.min() < 0 or pairs.max() >= d:
            raise ValueError(f"edges must contain columns from 0 to {d - 1}")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise ValueError("edges must join two different columns")
        return np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0)

    def _make_energy(self, like: Any) -> PairField:
        return PairField(self.n_features_in_, self.edges_, float(self.lowest_), 1.0, thread_count(self.n_jobs))

    def _first(self, data: np.ndarray, random: np.random.Generator, weights: np.ndarray | None = None) -> np.ndarray:
        self.edges_ = self._pairs()
        self.feature_means_ = np.average(data.astype(np.float64), axis=0, weights=weights)
        theta = np.zeros(len(self.edges_) + self.n_features_in_)
        theta[: len(self.edges_)] = 0.01 * random.standard_normal(len(self.edges_))
        n = float(len(data)) if weights is None else float(weights.sum())
        theta[len(self.edges_) :] = log_odds(self.feature_means_, 1.0 / (n + 2.0)) / (1 - self.lowest_)
        return theta

    def _base_data(self, like: Any) -> np.ndarray:
        return self.feature_means_[None, :]

    def _theta(self, like: Any) -> np.ndarray:
        return np.concatenate([self.weights_, self.intercept_])

    def _keep(self, theta: np.ndarray) -> None:
        self.weights_, self.intercept_ = theta[: len(self.edges_)].copy(), theta[len(self.edges_) :].copy()

    def _named_weights(self) -> dict[str, np.ndarray]:
        return {"weights_": self.weights_, "intercept_": self.intercept_}

    def _check_state(self) -> None:
        if len(self.edges_) and (self.edges_[:, 0] >= self.edges_[:, 1]).any():
            raise ValueError("edges_ must list the smaller column first")

    # ------------------------------------------------------------------ what a fitted model tells

    def couplings(self) -> np.ndarray:
        """Return the weights as a symmetric matrix with zeros where there is no edge.

        Returns
        -------
        array of shape (n_features, n_features)
        """
        check_is_fitted(self)
        matrix = np.zeros((self.n_features_in_, self.n_features_in_))
        matrix[self.edges_[:, 0], self.edges_[:, 1]] = self.weights_
        return matrix + matrix.T

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 200, random_state: Any = None) -> np.ndarray:
        """Draw rows: exactly up to 2^20 states, else by Gibbs sweeps from the training particles.

        Parameters
        ----------
        n_samples : int, default=1
        n_sweeps : int, default=200
        random_state : int or None
            None: the seed of the model.

        Returns
        -------
        array of int8 of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        states = self._sample(n_samples, n_sweeps, random_state)
        return (self.lowest_ + (1 - self.lowest_) * states).astype(np.int8)

    def to_factor_graph(self) -> FactorGraph:
        """Return the field as a factor graph, for :func:`mercer.inference.infer`.

        Returns
        -------
        FactorGraph
            State 1 of a variable is the higher value.
        """
        check_is_fitted(self)
        x = np.array([self.lowest_, 1.0])
        pairwise = self.weights_[:, None, None] * (x[:, None] * x)
        unary = self.intercept_[:, None] * x
        cards = np.full(self.n_features_in_, 2, np.int32)
        if not len(self.edges_):
            return FactorGraph(cards, unary=unary, log=True)
        return FactorGraph(cards, unary=unary, edges=self.edges_, pairwise=pairwise, log=True)

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        return params if self.edges is None else {**params, "edges": self.edges_}
