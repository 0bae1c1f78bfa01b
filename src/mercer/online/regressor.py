"""Regression over hashed features, in fixed memory and one pass.

    s(x) = b + Σ_k w[f_k & mask] x_k,   predict s (poisson: exp s)

Each example is scored, then learnt, then discarded. The losses are in ``cpp/solvers/pointwise_losses.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from mercer._validation import check_choice, check_positive
from mercer.online._progress import Progress
from mercer.online.inputs import Inputs, Rows
from mercer.online.learner import HashedLearner

__all__ = ["HashedRegressor"]

LOSSES = ("squared", "quantile", "huber", "poisson")


class HashedRegressor(RegressorMixin, HashedLearner):
    """A linear regression over hashed features, learnt example by example in fixed memory.

    Parameters
    ----------
    loss : {"squared", "quantile", "huber", "poisson"}, default="squared"
        With e = prediction − y: ``"squared"`` e²; ``"quantile"`` the pinball loss, whose prediction is the
        given ``quantile`` of y; ``"huber"`` e²/2 up to ``epsilon`` and a straight line beyond; ``"poisson"`` exp(s) −
        y s for counts y ≥ 0, with the prediction exp(s).
    n_bits : int, default=22
        The table has 2^n_bits weights; from 1 to 32. A weight takes 8 bytes with adagrad (12 if features have values
        other than 1), 16 with ftrl, 4 with sgd.
    solver : {"adagrad", "ftrl", "sgd"}, default="adagrad"
        See :class:`HashedClassifier`. adagrad and ftrl scale their steps by the spread of the targets seen so far
        (except for poisson), so the unit of y does not matter; scores are relative to the first target.
    penalty, alpha, l1_ratio
        As in :class:`HashedClassifier`.
    max_iter : int or "auto", default="auto"
        Passes of `fit` over the data. ``"auto"``: enough passes to visit 100,000 rows of an array or 6,000 documents,
        but at most 16; many rows take one pass. The number is stored in ``n_iter_``. `partial_fit` takes one pass, and
        `fit_file` takes one unless a number is given.
    n_jobs : int or None
        Threads of prediction; -1 for all cores. No result depends on it.
    random_state : int, RandomState or None, default=0
        Seed of the order of examples in `fit`.
    quantile : float, default=0.5
        For ``loss="quantile"``, between 0 and 1.
    epsilon : float, default=1.0
        For ``loss="huber"``, in the unit of y.
    hasher : mercer.maps.TextHasher, mercer.maps.StringHasher or None
        Features of documents: the ``analyzer``, ``ngrams``, ``lowercase``, ``copies`` and ``seed`` of a `TextHasher`,
        or the substrings of a `StringHasher`. The learner takes counts from it and has its own table, so ``n_bits`` and
        ``signed`` of the hasher are ignored; one with ``weighting``, ``norm`` or ``weights`` raises an error, and so
        does ``kernel="mismatch"`` without an alphabet. With ``copies`` every feature has that many weights, including
        columns of tables. None: words in lower case.
    counts : {"sqrt", "linear"}, default="sqrt"
        The value of a word that occurs c times in a document: √c, which is better on long texts, or c. Arrays, records
        and the features of vw and svmlight files keep their values.
    learning_rate : float or None
        None: 2.5 for adagrad, 0.1 for ftrl, 0.5 for sgd.
    shuffle : bool, default=True
        Whether `fit` takes the examples in a random order, a new one in each pass. `partial_fit` never does.
    fit_intercept : bool, default=True
        Whether there is a constant term.
    verbose : int, default=0
        1 prints the progressive loss whenever the number of examples has doubled.
    inverse_size : int, default=10_000
        With documents and files: the maximum number of feature names to keep, for :meth:`top_features`; those with the
        largest weights among the names of a sample of 1 MB. They take about 1 MB (``names_bytes_``). 0 keeps none.

    Attributes
    ----------
    n_features_in_ : int, number of columns of arrays
    model_bytes_ : int, bytes of the table
    progressive_loss_ : float, average loss over the stream, each example predicted before it was learnt
    history_ : dict of lists: examples, loss, loss_since_last, error, seconds; see the guide
    coef_, intercept_ : weights of columns, for arrays
    n_iter_ : int, passes of the last `fit` over arrays or documents
    interrupted_ : bool, whether Ctrl-C ended `fit` or `fit_file`
    file_format_ : how the last file was read; later files are read in the same way
    skipped_ : examples and lines of the last file, and the number of skipped malformed lines (``n_skipped``)

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.
    .. [Duchi2011] J. Duchi, E. Hazan and Y. Singer. Adaptive subgradient methods for online learning and stochastic
       optimization. Journal of Machine Learning Research 12, 2011.
    .. [McMahan2013] H. B. McMahan and others. Ad click prediction: a view from the trenches. KDD, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.online import HashedRegressor
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = 5 + X @ [1.0, -2.0, 0.5]
    >>> model = HashedRegressor(n_bits=10, max_iter=5).fit(X, y)
    >>> np.round(model.coef_, 1), round(model.intercept_, 1)
    (array([ 1. , -2. ,  0.5]), 5.0)
    """

    def __init__(
        self,
        loss: str = "squared",
        n_bits: int = 22,
        solver: str = "adagrad",
        penalty: str | None = "l2",
        alpha: float | None = None,
        max_iter: int | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        *,
        l1_ratio: float = 0.5,
        quantile: float = 0.5,
        epsilon: float = 1.0,
        hasher: Any = None,
        counts: str = "sqrt",
        learning_rate: float | None = None,
        shuffle: bool = True,
        fit_intercept: bool = True,
        verbose: int = 0,
        inverse_size: int = 10_000,
    ) -> None:
        self.loss = loss
        self.n_bits = n_bits
        self.solver = solver
        self.penalty = penalty
        self.alpha = alpha
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.l1_ratio = l1_ratio
        self.quantile = quantile
        self.epsilon = epsilon
        self.hasher = hasher
        self.counts = counts
        self.learning_rate = learning_rate
        self.shuffle = shuffle
        self.fit_intercept = fit_intercept
        self.verbose = verbose
        self.inverse_size = inverse_size

    _numeric_targets = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None) -> HashedRegressor:
        """Learn from examples and their targets, from scratch.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or documents
            Documents: a list of str or bytes, a string array, a series of pandas or Polars, an Arrow column.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Not negative.
        checkpoint : path or mercer.learning.Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again, with
            the same final model.

        Returns
        -------
        self
        """
        settings = self._check_parameters()
        inputs, y = self._inputs(X, reset=True, y=y)
        weights = self._check_weights(sample_weight, inputs)
        self._start(settings, inputs)
        self.n_iter_ = self._passes(inputs)
        self._save_to(checkpoint, inputs, y, weights)
        self._learn(inputs, self._outputs(y, weights), self.n_iter_, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> HashedRegressor:
        """Learn from more examples, in their order, in one pass.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        self
        """
        settings = self._check_parameters()
        first = not hasattr(self, "model_")
        inputs, y = self._inputs(X, reset=first, y=y)
        weights = self._check_weights(sample_weight, inputs)
        if first:
            self._start(settings, inputs)
        self._learn(inputs, self._outputs(y, weights), 1, False)
        return self

    def _start(self, settings: dict[str, Any], inputs: Inputs) -> None:
        """A model that has learnt nothing."""
        settings |= {
            "task": "regression",
            "quantile": float(self.quantile),
            "epsilon": float(self.epsilon),
            "scaled": isinstance(inputs, Rows),
        }
        self.model_ = self._new_model(settings)
        self.progress_ = Progress()
        self._forget_names()
        self.input_ = "array" if isinstance(inputs, Rows) else "hashed"

    def _check_parameters(self) -> dict[str, Any]:
        check_choice("loss", self.loss, LOSSES)
        if check_positive("quantile", self.quantile) >= 1:
            raise ValueError(f"quantile must lie between 0 and 1, got {self.quantile!r}")
        check_positive("epsilon", self.epsilon)
        return super()._check_parameters()

    def _check_y(self, y: Any) -> np.ndarray:
        y = np.ascontiguousarray(y, dtype=np.float64)
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension, got an array of shape {y.shape}")
        if not np.isfinite(y).all():
            raise ValueError("y must not hold NaN or infinite values")
        if self.loss == "poisson" and (y < 0).any():
            raise ValueError("loss='poisson' needs targets of at least 0")
        return y

    def _outputs(self, y: np.ndarray, weights: np.ndarray | None) -> Any:
        def of(part: np.ndarray) -> dict[str, Any]:
            return {"targets": y[part], "weights": None if weights is None else weights[part]}

        return of

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted values.

        Parameters
        ----------
        X : array, sparse matrix or documents, as in `fit`

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self._scores(X).ravel()
        return np.exp(scores) if self.loss == "poisson" else scores

    @property
    def coef_(self) -> np.ndarray:
        """Return the weights of the columns of arrays, (n_features,)."""
        return self._column_weights()[0].ravel()

    @property
    def intercept_(self) -> float:
        """Return the constant term, for arrays."""
        return float(self._column_weights()[1][0])
