"""Conditional random fields over label sets: labels depend on the inputs and on each other.

    p(y | x) ∝ exp(Σ_{s<t} w_st y_s y_t + Σ_t y_t (V_t x + b_t)),   y in {−1, 1}^T

With few labels the sum over all label sets is exact, and quasi-Newton steps maximise the likelihood. Otherwise a
learner of :mod:`mercer.fields.learners` estimates its gradient from particles, several for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import _core
from mercer._estimator import Estimator
from mercer._explain import Terms
from mercer._state.saved import Choice, Fields, Flag, Floats, History, LabelValues, Saved
from mercer._validation import check_choice, check_count, check_positive, check_sparse, thread_count, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.learning.learners import EnergyModel, Keys, Learner, Path, resolve_learner
from mercer.learning.monitor import Monitor
from mercer.learning.solvers.sampled import ascend
from mercer.multilabel._decisions import MEASURES
from mercer.multilabel.joint import LabelSetClassifier
from mercer.multilabel.label_forms import FORMS, encode, fit_labels

__all__ = ["MultiLabelCRF"]

_EXACT = 16  # labels whose sets can be summed over
_QUICK = 10  # labels up to which that is the default
_CELLS = 1 << 22  # scores of label sets at a time
_SWEEPS = 100


class _LabelSpins(EnergyModel):
    """Labels of rows: ±1, one group of T for each row, with biases of its own."""

    def __init__(self, X: Any, n_labels: int, threads: int, weights: np.ndarray | None = None) -> None:
        self.X, self.T, self.threads = X, n_labels, threads
        self.n_groups = X.shape[0]
        self.row_weights = weights
        self.total = float(self.n_groups if weights is None else weights.sum())
        self.first, self.second = np.triu_indices(n_labels, 1)
        self.n_weights = len(self.first) + (X.shape[1] + 1) * n_labels
        ends = np.concatenate([np.stack([self.first, self.second], 1), np.stack([self.second, self.first], 1)])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        self._starts = np.arange(0, n_labels * (n_labels - 1) + 1, max(n_labels - 1, 1)).astype(np.int64)
        if n_labels == 1:
            self._starts = np.zeros(2, np.int64)
        self._neighbours = np.ascontiguousarray(ends[order, 1], np.int32)
        self._edge_of = order % max(len(self.first), 1)
        self._kept: list[tuple[Any, Any]] = []

    def parts(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pair weights, V (features × labels) and b."""
        e = len(self.first)
        return theta[:e], theta[e : -self.T].reshape(self.X.shape[1], self.T), theta[-self.T :]

    def fields(self, theta: np.ndarray) -> np.ndarray:
        """Return V x + b of all rows."""
        for kept, fields in self._kept:
            if kept is theta:
                return fields
        _, V, b = self.parts(theta)
        fields = np.asarray(self.X @ V) + b
        self._kept = [(theta, fields), *self._kept[:1]]
        return fields

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of rows for all labels."""
        return np.repeat(values, self.T, axis=1)

    def uniform(self, n: int, keys: Keys) -> np.ndarray:
        """Draw labels that are all equally probable."""
        random = np.random.Generator(np.random.Philox(key=keys.next()))
        return random.integers(0, 2, (n, self.n_groups * self.T), np.int8)

    def sweep(
        self, states: np.ndarray, theta: np.ndarray, keys: Keys, beta: float = 1.0, backward: bool = False
    ) -> np.ndarray:
        """Return the labels after all were drawn in their order, or in the opposite one."""
        pairs, _, _ = self.parts(theta)
        chains = np.ascontiguousarray(states).reshape(-1, self.T).copy()
        bias = np.tile(self.fields(theta).astype(np.float32), (len(states), 1))
        weights = pairs.astype(np.float32)[self._edge_of] if len(pairs) else pairs.astype(np.float32)
        _core.fields.spin_sweep(
            chains, self._starts, self._neighbours, np.ascontiguousarray(weights), bias, -1.0, 2.0, beta, backward,
            keys.next(), 0, self.threads,
        )  # fmt: skip
        return chains.reshape(states.shape)

    def _signs(self, states: np.ndarray) -> np.ndarray:
        return (2.0 * states - 1.0).reshape(len(states), self.n_groups, self.T)

    def path(self, states: np.ndarray, start: Any, end: Any) -> Path:
        """Return log densities along the straight line between two parameters."""
        y = self._signs(states)
        couplings = np.zeros((self.T, self.T))

        def scores(theta: np.ndarray) -> np.ndarray:
            couplings[self.first, self.second] = self.parts(theta)[0]
            return np.einsum("sgt,sgt->sg", y @ couplings + self.fields(theta), y)

        last = scores(end)
        first = np.zeros_like(last) if start is None else scores(start)
        return Path(self, states, start, end, lambda beta: first + beta * (last - first))

    def statistics(self, states: np.ndarray, theta: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the means over rows of E[y_s y_t], x E[y] and E[y]."""
        y = self._signs(states)
        share = y / len(y) if weights is None else y * weights[:, :, None]
        if self.row_weights is not None:
            share = share * self.row_weights[:, None]
        pairs = np.tensordot(share, y, axes=([0, 1], [0, 1]))
        means = share.sum(axis=0)
        return self.collected(pairs[self.first, self.second], means)

    def collected(self, pairs: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return summed pairs and the means of each row as a vector of statistics."""
        parts = [pairs, np.asarray(self.X.T @ means).ravel(), means.sum(axis=0)]
        return np.concatenate(parts) / self.total

    def sets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all label sets as ±1, and their products of pairs."""
        numbers = np.arange(1 << self.T)
        y = 2.0 * ((numbers[:, None] >> np.arange(self.T)) & 1) - 1.0
        return y, y[:, self.first] * y[:, self.second]

    def sums(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log Z and E[y] of each row, and the summed E[y_s y_t]."""
        if self.T > _EXACT:
            raise ValueError(
                f"an exact sum over {self.T} labels has 2^{self.T} label sets, more than 2^{_EXACT}: use a learner that"
                " samples, such as 'pcd'"
            )
        y, products = self.sets()
        offsets, fields = products @ self.parts(theta)[0], self.fields(theta)
        log_z, means = np.empty(self.n_groups), np.empty((self.n_groups, self.T))
        pairs = np.zeros(len(self.first))
        step = max(1, _CELLS // len(y))
        for a in range(0, self.n_groups, step):
            scores = fields[a : a + step] @ y.T + offsets
            top = scores.max(axis=1, keepdims=True)
            np.exp(scores - top, out=scores)
            total = scores.sum(axis=1, keepdims=True)
            scores /= total
            log_z[a : a + step] = np.log(total[:, 0]) + top[:, 0]
            means[a : a + step] = scores @ y
            own = None if self.row_weights is None else self.row_weights[a : a + step]
            pairs += (scores.sum(axis=0) if own is None else own @ scores) @ products
        return log_z, means, pairs

    def exact(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean log Z and the mean expected statistics."""
        log_z, means, pairs = self.sums(theta)
        if self.row_weights is not None:
            means = self.row_weights[:, None] * means
        return float(np.average(log_z, weights=self.row_weights)), self.collected(pairs, means)

    def pseudo_gradient(self, data: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean log pseudo-likelihood of the labels and its gradient."""
        y = self._signs(data)[0]
        couplings = np.zeros((self.T, self.T))
        couplings[self.first, self.second] = self.parts(theta)[0]
        fields = y @ (couplings + couplings.T) + self.fields(theta)
        residual = y * (2.0 * expit(-2.0 * y * fields))
        if self.row_weights is not None:
            residual *= self.row_weights[:, None]
        outer = residual.T @ y
        value = -float(np.average(np.logaddexp(0.0, -2.0 * y * fields).sum(axis=1), weights=self.row_weights))
        return value, self.collected((outer + outer.T)[self.first, self.second], residual)


class MultiLabelCRF(LabelSetClassifier, Saved, Estimator):
    """Predict label sets by a conditional random field in which every pair of labels interacts.

    Parameters
    ----------
    learner : "auto", str or Learner, default="auto"
        How the gradient is computed: ``"exact"`` sums over all label sets (up to 16 labels), ``"pseudo-likelihood"``
        needs no sum, others sample (see :mod:`mercer.fields.learners`). ``"auto"``: exact up to 10 labels, else the
        pseudo-likelihood.
    C : float, default=0.01
        Weight of the summed loss against ½‖w‖²; smaller values regularise more. The default suits a few hundred columns
        of unit variance and few rows; use larger values with many rows.
    n_particles : int, default=20
        Particles of each row, for learners that sample.
    max_iter : int, default=200
        Iterations.
    threshold : float, default=0.5
        Labels with a higher probability are predicted.
    measure : {"micro-f1", "macro-f1", "example-f1", "hamming", "subset"}, default="micro-f1"
        What :meth:`score` returns.
    n_jobs : int or None
        Threads. The result does not depend on it.
    random_state : int, Generator or None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of labels
    couplings_ : array (n_labels, n_labels)
        w, symmetric.
    coef_ : array (n_labels, n_features)
        V.
    intercept_ : array (n_labels,)
    learner_ : str
        The learner that was used.
    history_ : dict of lists
    interrupted_ : bool

    References
    ----------
    .. [Ghamrawi2005] N. Ghamrawi and A. McCallum. Collective multi-label classification. CIKM, 2005.
    .. [Xiong2014] H. Xiong, S. Szedmak and J. Piater. Towards maximum likelihood: learning undirected graphical models
       using persistent sequential Monte Carlo. ACML, 2014.

    Examples
    --------
    Two labels that exclude each other, but do not depend on the input:

    >>> import numpy as np
    >>> from mercer.multilabel import MultiLabelCRF
    >>> random = np.random.default_rng(0)
    >>> first = random.random(200) < 0.5
    >>> Y = np.stack([first, ~first], axis=1).astype(int)
    >>> model = MultiLabelCRF(C=1.0).fit(random.normal(size=(200, 1)), Y)
    >>> bool(model.couplings_[0, 1] < -0.5)
    True
    """

    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        couplings_=Floats("classes_", "classes_"),
        coef_=Floats("classes_", "n_features_in_"),
        intercept_=Floats("classes_"),
        learner_=Choice("exact", "pseudo-likelihood", "cd", "pcd", "tempered", "parallel-tempering", "smc", "psmc",
                        "mcmcml", "particle-filter"),
        history_=History(),
        interrupted_=Flag(),
    )  # fmt: skip

    def __init__(
        self,
        learner: str | Learner = "auto",
        C: float = 0.01,
        *,
        n_particles: int = 20,
        max_iter: int = 200,
        threshold: float = 0.5,
        measure: str = "micro-f1",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.C = C
        self.n_particles = n_particles
        self.max_iter = max_iter
        self.threshold = threshold
        self.measure = measure
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> MultiLabelCRF:
        """Learn from rows and their label sets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        Y : matrix of 0 and 1, or a list of label sets
        sample_weight : array of n_rows numbers of at least 0, optional
            Factors of C; a row of weight 0 is left out.

        Returns
        -------
        self
        """
        C, max_iter = check_positive("C", self.C), check_count("max_iter", self.max_iter, 0)
        n_particles = check_count("n_particles", self.n_particles, 2)
        self._check_threshold()
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64)
        used, weights = used_examples(sample_weight, X.shape[0])
        labels, self.classes_, self.label_form_ = fit_labels(Y, X.shape[0], used)
        X = X if used is None else X[used]
        T = len(self.classes_)
        name = ("exact" if T <= _QUICK else "pseudo-likelihood") if self.learner == "auto" else self.learner
        learner = resolve_learner(name)
        field = _LabelSpins(X, T, thread_count(self.n_jobs), weights)
        truth = np.ascontiguousarray(labels.toarray().astype(np.int8).reshape(1, -1))
        share = 1.0 / (C * field.total)
        monitor = Monitor(verbose=self.verbose, max_iter=max_iter)
        w = np.zeros(field.n_weights)
        with monitor:
            if learner.exact:
                w, interrupted = _climb(field, learner, truth, w, share, max_iter, monitor)
            else:
                random = self.random_state
                seed = (
                    random if isinstance(random, (int, np.integer)) else np.random.default_rng(random).integers(1 << 62)
                )
                w, interrupted = ascend(
                    field,
                    learner,
                    truth,
                    w,
                    lambda w: share * w,
                    n_particles=n_particles,
                    rate=0.03,
                    max_iter=max_iter,
                    keys=Keys(int(seed)),
                    monitor=monitor,
                )
        if interrupted:
            warn_caller("training was interrupted: these are the weights so far", ConvergenceWarning)
        pairs, V, b = field.parts(w)
        self.couplings_ = np.zeros((T, T))
        self.couplings_[field.first, field.second] = pairs
        self.couplings_ += self.couplings_.T
        self.coef_, self.intercept_ = np.ascontiguousarray(V.T), b.copy()
        self.learner_, self.history_, self.interrupted_ = learner.name, monitor.history, interrupted
        return self

    def _depends_on_units(self) -> bool:
        return True

    def _check_threshold(self) -> None:
        if (
            isinstance(self.threshold, bool)
            or not isinstance(self.threshold, (int, float))
            or not 0 < self.threshold < 1
        ):
            raise ValueError(f"threshold must be a number between 0 and 1, got {self.threshold!r}")
        check_choice("measure", self.measure, tuple(MEASURES))

    def label_dependence(self) -> np.ndarray:
        """Return the couplings of labels, divided by the largest; 1 on the diagonal.

        Returns
        -------
        dependence : array of shape (n_labels, n_labels)
        """
        check_is_fitted(self)
        values = self.couplings_ / max(float(np.abs(self.couplings_).max()), 1e-300)
        np.fill_diagonal(values, 1.0)
        return values

    def _field(self, X: Any) -> tuple[_LabelSpins, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, reset=False)
        field = _LabelSpins(X, len(self.classes_), thread_count(self.n_jobs))
        parts = [self.couplings_[field.first, field.second], self.coef_.T.ravel(), self.intercept_]
        return field, np.concatenate(parts)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the marginal probability of each label.

        Exact up to 16 labels, else by 100 sweeps of Gibbs sampling of 20 chains for each row.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of shape (n_rows, n_labels)
        """
        field, w = self._field(X)
        if field.T <= _EXACT:
            return 0.5 + 0.5 * field.sums(w)[1]
        random = self.random_state
        keys = Keys(int(random) if isinstance(random, (int, np.integer)) else 0)
        states, total = field.uniform(20, keys), np.zeros((field.n_groups, field.T))
        for sweep in range(_SWEEPS):
            states = field.sweep(states, w, keys)
            if sweep >= _SWEEPS // 4:
                total += states.reshape(20, field.n_groups, field.T).mean(axis=0)
        return total / (_SWEEPS - _SWEEPS // 4)

    _weighs_features = True
    _explains_decisions = True

    def _weight_labels(self) -> list[Any]:
        check_is_fitted(self)
        return list(self.classes_.tolist())

    def _column_name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{column}" if names is None else str(names[column])

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        return self.coef_[self._weight_labels().index(label)], self._column_name

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        """Of two label sets: what columns say for each label that differs, and pairs of labels."""
        names = self._weight_labels()
        X = validate_data(
            self, x if sp.issparse(x) or hasattr(x, "iloc") else np.atleast_2d(x), accept_sparse="csr",
            dtype=np.float64, reset=False,
        )  # fmt: skip
        row = np.asarray(X.todense()).ravel() if sp.issparse(X) else X[0]
        p = self.predict_proba(X)[0]
        first = (p > self.threshold) if output is None else encode(self, [output], "output").toarray()[0] > 0
        other = first.copy()
        if against is None:
            doubt = np.abs(p - self.threshold).argmin()  # the label that was decided most narrowly
            other[doubt] = not other[doubt]
        else:
            other = encode(self, [against], "against").toarray()[0] > 0
        s, z = (2.0 * labels - 1.0 for labels in (first, other))
        changed = np.flatnonzero(s != z)
        if not len(changed):
            raise ValueError("output and against are the same: name another one as against=")
        i, j = np.triu_indices(len(names), 1)
        pairs = s[i] * s[j] - z[i] * z[j]
        values = np.concatenate([np.outer((s - z)[changed], row).ravel(), pairs])
        weights = np.concatenate([self.coef_[changed].ravel(), self.couplings_[i, j]])

        def name(k: int) -> str:
            if k < len(changed) * len(row):
                return f"{self._column_name(k % len(row))}: {names[changed[k // len(row)]]}"
            k -= len(changed) * len(row)
            return f"{names[i[k]]} and {names[j[k]]}"

        told = [[names[t] for t in np.flatnonzero(labels)] for labels in (first, other)]
        constant = float((s - z) @ self.intercept_)
        return Terms(told[0], told[1], np.arange(len(values)), values, weights * values, name, constant)

    def _probabilities(self, X: Any) -> np.ndarray:
        return self.predict_proba(X)

    def _predicted(self, X: Any) -> sp.csr_matrix:
        self._check_threshold()
        return sp.csr_matrix(self.predict_proba(X) > self.threshold, dtype=np.float64)

    def log_prob(self, X: Any, Y: Any) -> np.ndarray:
        """Return the log-probability of whole label sets, up to 16 labels.

        Parameters
        ----------
        X : rows
        Y : label sets

        Returns
        -------
        array of shape (n_rows,)
        """
        field, w = self._field(X)
        labels = encode(self, Y).toarray().astype(np.int8)
        if len(labels) != field.n_groups:
            raise ValueError(f"X has {field.n_groups} rows and Y {len(labels)}: they must be of one length")
        log_z, _, _ = field.sums(w)
        return field.log_density(labels.reshape(1, -1), w)[0] - log_z


def _climb(
    field: _LabelSpins,
    learner: Learner,
    truth: np.ndarray,
    w: np.ndarray,
    share: float,
    max_iter: int,
    monitor: Monitor,
) -> tuple[np.ndarray, bool]:
    """Quasi-Newton steps on the exact likelihood or the pseudo-likelihood; whether Ctrl-C ended them."""
    best = [w]
    observed = field.statistics(truth, w)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        if learner.name == "exact":
            log_z, expected = field.exact(w)
            value, gradient = float(w @ observed) - log_z, observed - expected
        else:
            value, gradient = field.pseudo_gradient(truth, w)
        return 0.5 * share * float(w @ w) - value, share * w - gradient

    def record(w: np.ndarray) -> None:
        best[0] = w.copy()
        monitor.record(lambda: best[0], objective=objective(w)[0])

    try:
        solved = minimize(objective, w, jac=True, method="L-BFGS-B", callback=record, options={"maxiter": max_iter})
    except KeyboardInterrupt:
        return best[0], True
    return solved.x if max_iter else w, False
