"""Compact nonlinear maps: a few cosine features with learnt frequencies, for a classifier or for a kernel.

    Z(x) = √(2/k) cos(Θᵀx + b)

classification   min over W, Θ, b   (λ/2)‖W‖² + (1/N) Σ_i Σ_c max(0, 1 − y_ic (⟨w_c, Z(x_i)⟩ + w_c0))
                 rounds of T₁ steps in W (Pegasos: step 1/(λt), then ‖w_c‖ ≤ 1/√λ) and T₂ in Θ, b (Algorithms 1-3)
kernel           min over Θ, b      (1/N²) Σ_ij (K(x_i, x_j) − ⟨Z(x_i), Z(x_j)⟩)²

Gradients, with A = XΘ + b and G = ∂/∂Z:  ∂/∂A = −√(2/k) sin(A) ∘ G,  ∂/∂Θ = Xᵀ ∂/∂A,  ∂/∂b = sums of its columns. With
circulant blocks Θᵀ = circ(r) D, ∂/∂r = F⁻¹(Σ_i conj(F(D x_i)) ∘ F(∂/∂A_i)).

The published map has no phases and is not shift-invariant; with phases it is, in expectation. The published step 1/(λt)
is far too long for Θ if λ is small. Here steps in Θ are scaled by running means of squared gradients, and t increases
over all rounds.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer._arrays import (
    Copies,
    as_rows,
    as_tensor,
    by_rows,
    fft_of,
    is_foreign,
    is_numpy,
    on_device_of,
    on_processor,
    row_blocks,
    to_numpy,
)
from mercer._estimator import Estimator
from mercer._progress import say
from mercer._state.saved import (
    Count,
    Fields,
    Floats,
    LabelValues,
    ListOf,
    Number,
    Optional,
    Saved,
    check_shapes,
    outputs,
)
from mercer._validation import check_choice, check_count, check_positive, used_examples
from mercer.maps import spectra
from mercer.maps.circulant import CirculantProjection
from mercer.maps.fourier import padded_to

__all__ = ["CompactNonlinearMap"]

SPARSE_HINT = "use X.toarray(), or hash or project it to fewer columns first"


class CompactNonlinearMap(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Cosine features with learnt frequencies, which need far fewer components than random features.

    Parameters
    ----------
    n_components : int, default=32
        k, the number of features.
    task : {"classification", "kernel"}, default="classification"
        Objective of the frequencies: one-versus-rest linear classifiers of the labels y over shared features, or the
        Gaussian kernel.
    circulant : bool, default=False
        Use rows of circulant matrices as frequencies: O(k log d) per row, ⌈k/d⌉ d parameters.
    gamma : float or "neighbours", default="neighbours"
        γ of the Gaussian kernel of the initial map, which "kernel" approximates. "neighbours" uses 2 / σ², with σ the
        mean distance to the 50th nearest neighbour.
    alpha : float, default=1e-4
        λ, the weight of ‖W‖².
    learning_rate : float, default=0.02
        Size of the steps in Θ, relative to the initial frequencies. 0 keeps random frequencies.
    frequency_penalty : {None, "l2", "l1"}, default=None
        A penalty on the frequencies, α ‖Θ‖² / 2 or α Σ|Θ|; it rarely helps more than early stopping.
    frequency_alpha : float, default=1e-4
        α.
    max_iter : int, default=60
        Rounds.
    steps : int, default=50
        T₁ = T₂, number of steps of each kind in a round.
    batch_size : int, default=500
        Rows per step.
    early_stopping : bool, default=True
        Hold out a tenth of the rows, and keep the frequencies of the best round on them; stop after ``patience`` rounds
        without progress. Unbounded frequencies can overfit any labels.
    patience : int, default=10
        See ``early_stopping``.
    verbose : int, default=0
        Print a line for each round.
    random_state : int, RandomState or None, default=None
        Seed of the initial frequencies, batches and held-out rows.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, n_components)
        Θ; with ``circulant``, the matrix built from `vectors_`.
    vectors_ : ndarray of shape (n_blocks, n_features)
        r of the circulant blocks.
    signs_ : ndarray of shape (1, n_features)
        D of the circulant blocks.
    phases_ : ndarray of shape (n_components,)
        b.
    coef_, intercept_ : ndarray of shapes (n_outputs, n_components) and (n_outputs,)
        W, with "classification".
    classes_ : ndarray
        Labels, with "classification".
    gamma_ : float
        γ in use.
    history_ : list of float
        After each round: accuracy, or mean squared error of the kernel, on the held-out rows (or on a batch).
    n_iter_ : int
        Number of rounds.

    References
    ----------
    .. [Yu2015b] F. X. Yu, S. Kumar, H. Rowley and S.-F. Chang. Compact nonlinear maps and circulant extensions.
       arXiv:1503.03893, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import CompactNonlinearMap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(1000, 2))
    >>> y = (np.hypot(*X.T) < 2).astype(int)
    >>> map = CompactNonlinearMap(8, random_state=0).fit(X, y)
    >>> Z = map.transform(X)
    >>> Z.shape, bool(((Z @ map.coef_[0] + map.intercept_[0] > 0) == y).mean() > 0.9)
    ((1000, 8), True)
    """

    version = 2  # lambda_ is alpha, and what was alpha frequency_alpha
    saved = Fields(
        n_features_in_=Count(1),
        gamma_=Number(0.0),
        history_=ListOf(Number(finite=False)),
        frequencies_=Floats("n_features_in_", "n_components", single=True),
        phases_=Floats("n_components", single=True),
        vectors_=Optional(Floats(single=True)),
        signs_=Optional(Floats(single=True)),
        classes_=Optional(LabelValues(2)),
        coef_=Optional(Floats(single=True)),
        intercept_=Optional(Floats(single=True)),
    )

    def __init__(
        self,
        n_components: int = 32,
        task: str = "classification",
        *,
        circulant: bool = False,
        gamma: float | str = "neighbours",
        alpha: float = 1e-4,
        learning_rate: float = 0.02,
        frequency_penalty: str | None = None,
        frequency_alpha: float = 1e-4,
        max_iter: int = 60,
        steps: int = 50,
        batch_size: int = 500,
        early_stopping: bool = True,
        patience: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.task = task
        self.circulant = circulant
        self.gamma = gamma
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.frequency_penalty = frequency_penalty
        self.frequency_alpha = frequency_alpha
        self.max_iter = max_iter
        self.steps = steps
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.patience = patience
        self.verbose = verbose
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CompactNonlinearMap:
        """Learn the frequencies, with the labels y of "classification".

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,), optional
            Labels, with "classification".
        sample_weight : array of n_rows numbers of at least 0, optional
            Frequency of a row in batches, and its weight among the held-out rows; a row of weight 0 is left out.

        Returns
        -------
        CompactNonlinearMap
            This map.
        """
        self._check_params()
        X = as_rows(self, X, reset=True, sparse_hint=SPARSE_HINT)
        X = X.numpy() if on_processor(X) else X
        used, weights = used_examples(sample_weight, X.shape[0])
        if used is not None:
            if y is not None:
                y = column_or_1d(to_numpy(y) if is_foreign(y) else y)
                if len(y) != X.shape[0]:
                    raise ValueError(f"X and y have inconsistent lengths: {X.shape[0]} and {len(y)}")
                y = y[used]
            X = _rows(X, used)
        n = X.shape[0]
        Y = self._targets(y, n)
        random = check_random_state(self.random_state)
        self._forget_copies()
        self._learner: _Learner | None = None
        self._n_features_out = self.n_components
        self.gamma_ = self._gamma(X, random)
        waves = self._first_waves(X, random)
        order = random.permutation(n)
        aside = n // 10 if self.early_stopping and n >= 50 else 0
        train, held = order[aside:], order[:aside] if aside else order[: self.batch_size]
        learner = _Learner(self, waves, random, None if Y is None else Y.shape[1])
        learner.take(_rows(X, train), None if Y is None else Y[train], None if weights is None else weights[train])
        self._rounds(
            learner, _rows(X, held), None if Y is None else Y[held], None if weights is None else weights[held]
        )
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> CompactNonlinearMap:
        """Learn from one more batch: a round of steps on its rows, continuing from the last call or `fit`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows. γ and the initial frequencies come from the rows of the first call.
        y : array of shape (n_rows,), optional
            Labels, with "classification".
        classes : array, optional
            All possible labels; required in the first call with "classification".

        Returns
        -------
        CompactNonlinearMap
            This map. There is no held-out set and no early stopping: ``history_`` holds the score on each batch.
        """
        self._check_params()
        learner, fitted = getattr(self, "_learner", None), hasattr(self, "phases_")
        X = as_rows(self, X, reset=not fitted, sparse_hint=SPARSE_HINT)
        X = X.numpy() if on_processor(X) else X
        if learner is None and fitted:
            learner = self._resumed(X)
        elif learner is None:
            random = check_random_state(self.random_state)
            if self.task == "classification":
                if classes is None:
                    raise ValueError("classes must be given in the first call of partial_fit")
                self._targets(classes, len(classes))
            self._n_features_out, self.history_ = self.n_components, []
            self.gamma_ = self._gamma(X, random)
            outputs = None if self.task == "kernel" else 1 if len(self.classes_) == 2 else len(self.classes_)
            learner = _Learner(self, self._first_waves(X, random), random, outputs)
        Y = self._coded(y, X.shape[0]) if self.task == "classification" else None
        learner.take(X, Y)
        self._learner = learner
        learner.round()
        self.history_.append(learner.score(learner.X, Y))
        learner.let_go()
        self._keep(learner)
        self._forget_copies()
        self.n_iter_ = len(self.history_)
        return self

    def _resumed(self, X: Any) -> _Learner:
        """A learner that goes on from what `fit`, or a file, has left: steps in W as long as the last ones there."""
        kept = {name: _like(X, array) for name, array in self._numbers().items()}
        waves = _Waves(kept["theta"], kept["phases"], kept.get("signs"))
        outputs = self.coef_.shape[0] if self.task == "classification" else None
        learner = _Learner(self, waves, check_random_state(self.random_state), outputs)
        if outputs is not None:
            learner.W = _like(X, np.vstack([self.coef_.T, self.intercept_]))
        learner.rate = self.learning_rate * float(np.sqrt(2 * self.gamma_))
        learner.rounds, learner.t = 1, 2 * self.steps * len(self.history_)
        return learner

    def _rounds(self, learner: _Learner, X: Any, Y: np.ndarray | None, weights: np.ndarray | None = None) -> None:
        best, idle, self.history_ = None, 0, []
        for round_ in range(1, self.max_iter + 1):
            learner.round()
            score = learner.score(X, Y, weights)
            self.history_.append(score)
            if self.verbose:
                say(f"round {round_}: {'accuracy' if Y is not None else 'mean squared error'} {score:.5g}")
            gain = score if Y is not None else -score
            if best is None or gain > best or not self.early_stopping:
                best, idle = gain, 0
                self._keep(learner)
            else:
                idle += 1
            if self.early_stopping and idle >= self.patience:
                break
        self.n_iter_ = len(self.history_)

    def _keep(self, learner: _Learner) -> None:
        waves = learner.waves
        self.phases_ = np.array(to_numpy(waves.phases))
        if self.circulant:
            self.vectors_, self.signs_ = np.array(to_numpy(waves.theta)), np.array(to_numpy(waves.signs))[None, :]
            self.frequencies_ = self._projection().to_dense().T
        else:
            self.frequencies_ = np.array(to_numpy(waves.theta))
        if learner.W is not None:
            W = to_numpy(learner.W)
            self.coef_, self.intercept_ = W[:-1].T.copy(), W[-1].copy()

    def _first_waves(self, X: Any, random: np.random.RandomState) -> _Waves:
        d, k = X.shape[1], self.n_components
        signs = None
        if self.circulant:
            signs = _like(X, 2.0 * random.randint(0, 2, d) - 1.0)
            theta = spectra.gaussian(self.gamma_, -(-k // d), d, random)
        else:
            theta = spectra.gaussian(self.gamma_, d, k, random)
        return _Waves(_like(X, theta), _like(X, random.uniform(0, 2 * np.pi, k)), signs)

    def _targets(self, y: Any, n: int) -> np.ndarray | None:
        """±1 for each row and class, one column for two classes."""
        if self.task == "kernel":
            return None
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_.tolist()[0]!r}: there is nothing to tell apart")
        return self._coded(y, n)

    def _coded(self, y: Any, n: int) -> np.ndarray:
        """±1 of labels among the classes."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
        if len(y) != n:
            raise ValueError(f"X and y have inconsistent lengths: {n} and {len(y)}")
        if not np.isin(y, self.classes_).all():
            unknown = y[~np.isin(y, self.classes_)][0]
            raise ValueError(f"y holds the label {unknown!r}, which is none of the classes")
        codes = np.searchsorted(self.classes_, y)
        if len(self.classes_) == 2:
            return 2.0 * codes[:, None] - 1.0
        return 2.0 * (codes[:, None] == np.arange(len(self.classes_))) - 1.0

    # ------------------------------------------------------------------------------------------------ features

    def transform(self, X: Any) -> Any:
        """Return the features of the rows of X, as an array of the same library as X.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = as_rows(self, X, reset=False, sparse_hint=SPARSE_HINT)
        if on_processor(X):
            return as_tensor(self.transform(X.numpy()))
        if not is_numpy(X):
            return by_rows(self._features, X, 2 * X.shape[1] + 4 * self._n_features_out)
        out = np.empty((len(X), self._n_features_out), X.dtype)
        for block in row_blocks(len(X), self._n_features_out):
            out[block] = self._features(X[block])
        return out

    def _features(self, X: Any) -> Any:
        kept = self._like(X, self._numbers)
        waves = _Waves(kept["theta"], kept["phases"], kept.get("signs"))
        return waves.features(waves.angles(X))

    def _numbers(self) -> dict[str, np.ndarray]:
        if self.circulant:
            return {"theta": self.vectors_, "phases": self.phases_, "signs": self.signs_[0]}
        return {"theta": self.frequencies_, "phases": self.phases_}

    def _projection(self) -> CirculantProjection:
        """The circulant blocks as a projection."""
        made = CirculantProjection(self._n_features_out, vector=self.vectors_)
        made.vectors_, made.signs_ = self.vectors_, self.signs_
        made.n_features_in_, made._n_features_out = self.n_features_in_, self._n_features_out
        return made

    def gram(self, X: Any, Y: Any = None) -> Any:
        """Return the kernel of the map: ⟨Z(x), Z(y)⟩ of all rows of X and of Y, or of X with itself."""
        left = self.transform(X)
        return left @ (left if Y is None else self.transform(Y)).T

    # ------------------------------------------------------------------------------------------------ parameters

    def _check_params(self) -> None:
        for name in ("n_components", "max_iter", "steps", "batch_size", "patience"):
            check_count(name, getattr(self, name))
        check_choice("task", self.task, ("classification", "kernel"))
        check_choice("frequency_penalty", self.frequency_penalty, (None, "l2", "l1"))
        check_choice("circulant", self.circulant, (True, False))
        check_choice("early_stopping", self.early_stopping, (True, False))
        for name in ("alpha", "frequency_alpha"):
            check_positive(name, getattr(self, name))
        if self.learning_rate != 0:
            check_positive("learning_rate", self.learning_rate)
        if not isinstance(self.gamma, str) or self.gamma != "neighbours":
            check_positive("gamma", self.gamma)

    def _gamma(self, X: Any, random: np.random.RandomState) -> float:
        return spectra.neighbour_gamma(X, random) if isinstance(self.gamma, str) else float(self.gamma)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self.task == "classification"
        return tags

    # ------------------------------------------------------------------------------------------------ model files

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_learner", None)  # it holds modules; `partial_fit` goes on without it
        return state

    def _check_state(self) -> None:
        self._check_params()
        check_positive("gamma_", self.gamma_)
        d, k = self.n_features_in_, self.n_components
        if self.circulant:
            check_shapes(self, vectors_=(-(-k // d), d), signs_=(1, d))
        if self.task == "classification":
            check_shapes(self, coef_=(outputs(self), k), intercept_=(outputs(self),))
        self.n_iter_, self._n_features_out = len(self.history_), k


def _like(X: Any, array: np.ndarray) -> Any:
    """A NumPy array as one of the kind, type and device of X."""
    xp = array_api_compat.array_namespace(X)
    return xp.astype(on_device_of(X, array), X.dtype)


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return array_api_compat.array_namespace(X).take(X, on_device_of(X, chosen), axis=0)


class _Waves:
    """Θ (or r of circulant blocks) and b, with the map and its gradients: arrays of one kind, on one device."""

    def __init__(self, theta: Any, phases: Any, signs: Any = None) -> None:
        self.theta, self.phases, self.signs = theta, phases, signs
        self.scale = float(np.sqrt(2.0 / phases.shape[0]))
        self.xp = array_api_compat.array_namespace(theta)
        self.fft = fft_of(self.xp)

    def _spectrum(self, X: Any) -> Any:
        return self.fft.rfft(X * self.signs, n=X.shape[1])

    def angles(self, X: Any) -> Any:
        if self.signs is None:
            return X @ self.theta + self.phases
        d, spectrum = X.shape[1], self._spectrum(X)
        rows = [self.theta[b, :] for b in range(self.theta.shape[0])]
        parts = [self.fft.irfft(spectrum * self.fft.rfft(r, n=d), n=d) for r in rows]
        return self.xp.concat(parts, axis=1)[:, : self.phases.shape[0]] + self.phases

    def features(self, angles: Any) -> Any:
        return self.xp.cos(angles) * self.scale

    def gradients(self, X: Any, angles: Any, G: Any) -> tuple[Any, Any]:
        """∂/∂Θ (or ∂/∂r) and ∂/∂b from G = ∂/∂Z."""
        xp = self.xp
        dA = G * xp.sin(angles) * -self.scale
        if self.signs is None:
            return X.T @ dA, xp.sum(dA, axis=0)
        d, back, gradients = X.shape[1], xp.conj(self._spectrum(X)), []
        for b in range(self.theta.shape[0]):
            block = padded_to(xp, dA[:, b * d : (b + 1) * d], d)
            gradients.append(self.fft.irfft(xp.sum(back * self.fft.rfft(block, n=d), axis=0), n=d))
        return xp.stack(gradients), xp.sum(dA, axis=0)


def hinge_gradients(waves: _Waves, W: Any, X: Any, Y: Any, lambda_: float) -> tuple[Any, Any, Any, Any]:
    """(λ/2)‖W‖² + mean hinge loss of a batch, and its gradients in W, Θ (or r) and b; the last row of W is w_c0."""
    xp, n = waves.xp, X.shape[0]
    angles = waves.angles(X)
    Z = waves.features(angles)
    margins = 1 - Y * (Z @ W[:-1, :] + W[-1, :])
    active = -Y * xp.astype(margins > 0, Y.dtype) / n
    dW = xp.concat([Z.T @ active, xp.sum(active, axis=0)[None, :]], axis=0) + lambda_ * W
    d_theta, d_phases = waves.gradients(X, angles, active @ W[:-1, :].T)
    loss = 0.5 * lambda_ * xp.sum(W**2) + xp.sum(xp.where(margins > 0, margins, 0 * margins)) / n
    return loss, dW, d_theta, d_phases


def kernel_gradients(waves: _Waves, X: Any, K: Any) -> tuple[Any, Any, Any]:
    """Mean of (K − Z Zᵀ)² over a batch, and its gradients in Θ (or r) and b."""
    angles = waves.angles(X)
    Z = waves.features(angles)
    E = K - Z @ Z.T
    d_theta, d_phases = waves.gradients(X, angles, (-4.0 / X.shape[0] ** 2) * (E @ Z))
    return waves.xp.mean(E**2), d_theta, d_phases


class _Learner:
    """The state of learning: rounds of steps in W and of steps in Θ and b, on the device of the waves."""

    def __init__(self, options: CompactNonlinearMap, waves: _Waves, random: Any, outputs: int | None) -> None:
        self.options, self.waves, self.random, self.xp = options, waves, random, waves.xp
        zeros = self.xp.zeros_like
        self.W = None if outputs is None else _like(waves.theta, np.zeros((options.n_components + 1, outputs)))
        self.t = 0
        self.rounds = 0
        self.rate = options.learning_rate * float(self.xp.mean(waves.theta**2)) ** 0.5
        self.moments = [[zeros(p), zeros(p)] for p in (waves.theta, waves.phases)]
        self.theta_steps = 0

    def take(self, X: Any, Y: np.ndarray | None, weights: np.ndarray | None = None) -> None:
        """The rows to learn from, drawn into batches in proportion to their weights."""
        self.line = None if weights is None or (weights == weights[0]).all() else np.cumsum(weights)
        device = [array_api_compat.device(array) for array in (X, self.waves.theta)]
        if is_numpy(X) != is_numpy(self.waves.theta) or device[0] != device[1]:
            raise ValueError(f"learning began on {device[1]}, and X is on {device[0]}: move X")
        self.X, self.Y = self.xp.astype(X, self.waves.theta.dtype), None if Y is None else _like(self.waves.theta, Y)

    def let_go(self) -> None:
        """Forget the rows."""
        self.X = self.Y = None

    def round(self) -> None:
        if self.Y is not None:
            self._classifier_steps(self.options.steps * (1 if self.rounds else 4))
        if self.rate > 0:
            self._wave_steps(self.options.steps)
            if self.Y is not None:
                self._classifier_steps(self.options.steps)
        self.rounds += 1

    def batch(self) -> np.ndarray:
        n: int = self.X.shape[0]
        size = min(self.options.batch_size, n)
        if self.line is None:
            return self.random.randint(0, n, size)
        drawn = np.searchsorted(self.line, self.random.random_sample(size) * self.line[-1], side="right")
        return np.minimum(drawn, n - 1)

    def _classifier_steps(self, steps: int) -> None:
        """Algorithm 1, all classes at a time; what is kept is the mean over the second half of the steps."""
        assert self.Y is not None and self.W is not None  # noqa: PT018
        xp, lambda_ = self.xp, self.options.alpha
        Z = self.waves.features(self.waves.angles(self.X))
        Z = xp.concat([Z, xp.ones_like(Z[:, :1])], axis=1)
        mean, W = xp.zeros_like(self.W), self.W
        for step in range(steps):
            self.t += 1
            chosen = self.batch()
            z, y = _rows(Z, chosen), _rows(self.Y, chosen)
            active = y * xp.astype(y * (z @ W) < 1, y.dtype)
            eta = 1 / (lambda_ * (self.t + 100))  # the first steps of 1/(λt) only undo each other
            W = W * (1 - eta * lambda_) + (z.T @ active) * (eta / z.shape[0])
            shrink = 1 / (lambda_**0.5 * xp.sqrt(xp.sum(W**2, axis=0)) + 1e-30)
            W = W * xp.where(shrink < 1, shrink, xp.ones_like(shrink))
            if step >= steps // 2:
                mean = mean + W
        self.W = mean / (steps - steps // 2)

    def _wave_steps(self, steps: int) -> None:
        """Algorithm 2 for the labels, or the descent of the kernel's error."""
        for _ in range(steps):
            chosen = self.batch()
            X = _rows(self.X, chosen)
            if self.Y is not None and self.W is not None:
                y = _rows(self.Y, chosen)
                _, _, d_theta, d_phases = hinge_gradients(self.waves, self.W, X, y, self.options.alpha)
            else:
                _, d_theta, d_phases = kernel_gradients(self.waves, X, gaussian_gram(X, self.options.gamma_))
            if self.options.frequency_penalty == "l2":
                d_theta = d_theta + self.options.frequency_alpha * self.waves.theta
            elif self.options.frequency_penalty == "l1":
                d_theta = d_theta + self.options.frequency_alpha * self.xp.sign(self.waves.theta)
            self._move(d_theta, d_phases)

    def _move(self, d_theta: Any, d_phases: Any) -> None:
        """A step against running means of the gradients, over roots of running means of their squares."""
        self.theta_steps += 1
        n = self.theta_steps
        decay = 1.0 / (1.0 + n / (10.0 * self.options.steps)) ** 0.5
        parts = ((self.waves.theta, d_theta, self.rate), (self.waves.phases, d_phases, self.options.learning_rate))
        for (values, gradient, rate), moments in zip(parts, self.moments, strict=True):
            moments[0] += 0.1 * (gradient - moments[0])
            moments[1] += 0.001 * (gradient**2 - moments[1])
            first, second = moments[0] / (1 - 0.9**n), moments[1] / (1 - 0.999**n)
            values -= rate * decay * first / (self.xp.sqrt(second) + 1e-12)

    def score(self, X: Any, Y: np.ndarray | None, weights: np.ndarray | None = None) -> float:
        """Accuracy, or mean squared error of the kernel."""
        Z = self.waves.features(self.waves.angles(X))
        if Y is None or self.W is None:
            return float(self.xp.mean((gaussian_gram(X, self.options.gamma_) - Z @ Z.T) ** 2))
        F = to_numpy(Z @ self.W[:-1, :] + self.W[-1, :])
        right = (F > 0) == (Y > 0) if Y.shape[1] == 1 else F.argmax(axis=1) == Y.argmax(axis=1)
        return float(np.average(right.ravel() if right.ndim > 1 else right, weights=weights))


def gaussian_gram(X: Any, gamma: float) -> Any:
    """exp(−γ‖x − z‖²) of all pairs of rows."""
    xp = array_api_compat.array_namespace(X)
    norms = xp.sum(X**2, axis=1)
    squared = norms[:, None] + norms[None, :] - 2 * X @ X.T
    return xp.exp(-gamma * xp.where(squared > 0, squared, 0 * squared))
