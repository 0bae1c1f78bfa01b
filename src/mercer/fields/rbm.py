"""Restricted Boltzmann machines: binary or Gaussian visible units, binary hidden ones, any learner.

p(v, h) ∝ exp(vᵀ W h + bᵀ h + cᵀ v)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._arrays import is_tensor, to_numpy
from mercer._state.saved import Fields, Floats
from mercer._validation import check_choice, check_count, check_sparse, thread_count
from mercer.fields._base import FieldEstimator
from mercer.fields._units import HiddenUnits
from mercer.learning.learners import Learner, log_odds

__all__ = ["RBM"]

VISIBLE = ("binary", "gaussian")


class RBM(TransformerMixin, FieldEstimator):
    """Learn a restricted Boltzmann machine: a density of binary rows, and features for them.

    Parameters
    ----------
    n_hidden : int, default=256
        Hidden units.
    learner : {"pcd", "cd", "tempered", "parallel-tempering", "smc", "psmc", "mcmcml", "particle-filter", "exact", \
"pseudo-likelihood"} or Learner, default="pcd"
        How the gradient of the partition function is estimated; see :mod:`mercer.fields.learners`.
    n_particles : int, default=200
        Number of particles of this estimate.
    ess : float, default=0.9
        Effective sample size of a step of ``"smc"`` and ``"psmc"``, as a share.
    refresh : float, default=0.5
        Share of the particles that ``"psmc"`` replaces in each step.
    batch_size : int, default=100
        Batch size in rows.
    max_iter : int, optional
        Epochs. None: 20, or with little data the number of epochs for 3,000 steps.
    learning_rate : float or (rate, decay), default=(0.2, 0.001)
        Steps η_t = rate / (1 + decay · t) after t steps; a number is constant.
    weight_decay : float, default=0.0
        λ of the term −½ λ ‖W‖² added to the mean log-likelihood.
    momentum : float, default=0.0
        Momentum: share of the last step that is added to the next.
    visible : {"binary", "gaussian"}, default="binary"
        ``"gaussian"``: numbers with unit variance given the hidden units; scale columns first.
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
    components_ : array (n_hidden, n_features)
        W, transposed.
    intercept_hidden_, intercept_visible_ : arrays
        b and c.
    history_ : dict of lists, one value per epoch
        ``log_likelihood`` if known, and values of the learner: ``n_temperatures``, ``ess``, ``acceptance``.
    particles_ : array (n_particles, n_features)
        Final states of the particles; None for learners without particles.
    n_iter_ : int
    interrupted_ : bool

    See Also
    --------
    log_partition : The normalising constant, with a bracket.

    References
    ----------
    .. [Smolensky1986] P. Smolensky. Information processing in dynamical systems: foundations of harmony theory. In
       Parallel Distributed Processing, MIT Press, 1986.
    .. [Tieleman2008] T. Tieleman. Training restricted Boltzmann machines using approximations to the likelihood
       gradient. ICML, 2008.
    .. [Xiong2014] H. Xiong, S. Szedmak and J. Piater. Towards maximum likelihood: learning undirected graphical models
       using persistent sequential Monte Carlo. ACML, 2014.

    Examples
    --------
    Stripes of six bits, horizontal or none:

    >>> import numpy as np
    >>> from mercer.fields import RBM
    >>> X = np.repeat(np.random.default_rng(0).integers(0, 2, (200, 2)), 3, axis=1)
    >>> model = RBM(n_hidden=4, max_iter=300, random_state=0).fit(X)
    >>> model.transform(X).shape
    (200, 4)
    >>> bool(model.score_samples([[1, 1, 1, 0, 0, 0]])[0] > model.score_samples([[1, 0, 1, 0, 1, 0]])[0] + 2)
    True
    """

    saved = FieldEstimator.saved | Fields(
        components_=Floats(None, "n_features_in_", single=True),
        intercept_hidden_=Floats("components_", single=True),
        intercept_visible_=Floats("n_features_in_", single=True),
    )

    def __init__(
        self,
        n_hidden: int = 256,
        learner: str | Learner = "pcd",
        *,
        n_particles: int = 200,
        ess: float = 0.9,
        refresh: float = 0.5,
        batch_size: int = 100,
        max_iter: int | None = None,
        learning_rate: Any = (0.2, 0.001),
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        visible: str = "binary",
        likelihood_every: int = 0,
        patience: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.learner = learner
        self.n_particles = n_particles
        self.ess = ess
        self.refresh = refresh
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.visible = visible
        self.likelihood_every = likelihood_every
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def _check(self) -> Any:
        check_choice("visible", self.visible, VISIBLE)
        learner, schedule = super()._check()
        if learner.name == "pseudo-likelihood" and self.visible == "gaussian":
            raise ValueError("learner='pseudo-likelihood' needs binary units; visible='gaussian' needs another learner")
        return learner, schedule

    def _states(self, X: Any, reset: bool) -> Any:
        if is_tensor(X):
            return self._tensor_states(X, reset)
        X = check_sparse("X", X)
        if self.visible == "gaussian":
            return validate_data(self, X, dtype=np.float32, reset=reset)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=reset)
        values = X.data if sp.issparse(X) else X
        if values.dtype.kind not in "biuf":
            raise ValueError(f"X must contain the numbers 0 and 1, got {values.dtype}")
        wrong = ~((values == 0) | (values == 1))
        if wrong.any():
            at = np.flatnonzero(wrong.ravel())[0]
            where = "" if sp.issparse(X) else f" in row {at // X.shape[1]}, column {at % X.shape[1]}"
            raise ValueError(
                f"X must contain 0 and 1, found {values.ravel()[at]}{where}: binarise it"
                " (sklearn.preprocessing.Binarizer), or use visible='gaussian'"
            )
        return X.astype(np.uint8) if sp.issparse(X) else np.ascontiguousarray(X, np.uint8)

    def _tensor_states(self, X: Any, reset: bool) -> Any:
        from mercer._arrays import as_rows

        X = as_rows(self, X, reset, "use X.to_dense()")
        if self.visible == "binary" and not bool(((X == 0) | (X == 1)).all()):
            raise ValueError("X must contain 0 and 1: binarise it, or use visible='gaussian'")
        import torch

        return X.to(torch.float32)

    def _rows(self, data: Any, index: np.ndarray) -> Any:
        if sp.issparse(data):
            return np.ascontiguousarray(data[index].toarray())
        return super()._rows(data, index)

    def _make_energy(self, like: Any) -> HiddenUnits:
        if hasattr(self, "components_") and self.components_.shape[1] == self.n_features_in_:
            n_hidden = len(self.components_)
        else:
            n_hidden = check_count("n_hidden", self.n_hidden)
        kind: Any = HiddenUnits
        if is_tensor(like):
            from mercer.fields._tensors import TensorUnits as kind
        energy = kind(self.n_features_in_, n_hidden, self.visible == "gaussian", thread_count(self.n_jobs))
        if is_tensor(like):
            energy.device = like.device
        return energy

    def _theta(self, like: Any) -> Any:
        parts = [self.components_.T.ravel(), self.intercept_hidden_, self.intercept_visible_]
        return self._beside(np.concatenate(parts).astype(np.float32), like)

    def _keep(self, theta: np.ndarray) -> None:
        hidden = (len(theta) - self.n_features_in_) // (self.n_features_in_ + 1)
        size = self.n_features_in_ * hidden
        theta = np.asarray(theta, np.float32)
        self.components_ = np.ascontiguousarray(theta[:size].reshape(self.n_features_in_, hidden).T)
        self.intercept_hidden_ = theta[size : size + hidden].copy()
        self.intercept_visible_ = theta[size + hidden :].copy()

    def _named_weights(self) -> dict[str, np.ndarray]:
        names = ("components_", "intercept_hidden_", "intercept_visible_")
        return {name: getattr(self, name) for name in names}

    def _first(self, data: Any, random: np.random.Generator, weights: np.ndarray | None = None) -> np.ndarray:
        hidden, visible = check_count("n_hidden", self.n_hidden), self.n_features_in_
        self.__dict__.pop("components_", None)  # of an earlier fit with other sizes
        n = data.shape[0]
        if weights is not None:
            n = float(weights.sum())
            sums = np.zeros(visible)
            for first in range(0, data.shape[0], 4096):
                rows = to_numpy(self._rows(data, np.arange(first, min(data.shape[0], first + 4096))))
                sums += weights[first : first + 4096] @ np.asarray(rows, np.float64)
            means = sums / n
        elif sp.issparse(data):
            means = np.asarray(data.mean(axis=0), np.float64).ravel()
        else:
            means = np.asarray(to_numpy(data.mean(0)), np.float64).ravel()
        self.feature_means_ = means
        theta = np.zeros(visible * hidden + hidden + visible, np.float32)
        theta[: visible * hidden] = 0.01 * random.standard_normal(visible * hidden)
        if self.visible == "binary":
            means = log_odds(means, 1.0 / (n + 2))
        theta[visible * hidden + hidden :] = means
        return theta

    def _check_state(self) -> None:
        if self.visible == "binary" and ((self.feature_means_ < 0).any() or (self.feature_means_ > 1).any()):
            raise ValueError("feature_means_ of bits must lie between 0 and 1")

    # ------------------------------------------------------------------ what a fitted model tells

    def transform(self, X: Any) -> Any:
        """Return the activation probabilities of the hidden units for each row.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of float32 of shape (n_rows, n_hidden)
        """
        check_is_fitted(self)
        data = self._states(X, reset=False)
        energy, theta = self._make_energy(data), self._theta(data)
        parts = self._each_block(data, lambda rows: energy.hidden(rows, theta)[0])
        if is_tensor(data):
            import torch

            return torch.cat(parts)
        return np.concatenate(parts)

    def reconstruct(self, X: Any) -> Any:
        """Return the means of the visible units, given the activation probabilities of the hidden units for each row.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of float32 of shape (n_rows, n_features)
        """
        p = self.transform(X)
        if is_tensor(p):
            matrix, bias = self._beside(self.components_, p), self._beside(self.intercept_visible_, p)
            fields = p @ matrix + bias
            return fields if self.visible == "gaussian" else fields.sigmoid()
        fields = p @ self.components_ + self.intercept_visible_
        return fields if self.visible == "gaussian" else 1.0 / (1.0 + np.exp(-fields))

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 200, random_state: Any = None) -> np.ndarray:
        """Draw rows: exactly up to 2^20 states of the smaller layer, else by Gibbs sweeps from the training particles.

        Parameters
        ----------
        n_samples : int, default=1
        n_sweeps : int, default=200
        random_state : int or None
            None: the seed of the model.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return self._sample(n_samples, n_sweeps, random_state)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the hidden units.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        return np.array([f"rbm{i}" for i in range(len(self.components_))], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.visible == "binary"
        tags.target_tags.required = False
        return tags
