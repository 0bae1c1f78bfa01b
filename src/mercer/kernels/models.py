"""Generative models p(x | θ) with their scores ∇_θ log p(x | θ), for kernels from models.

GaussianModel            ∇ = (x − μ, (x − m)(x − m)ᵀ − E …)    natural parameters, the fitted mean m as the origin
MultinomialModel         ∇_v = count_v − length · p_v          p = softmax θ
GaussianMixtureModel     ∇ = (γ_k − w_k, γ_k P_k (x − μ_k), ½ γ_k (Σ_k − (x − μ_k)(x − μ_k)ᵀ))      w = softmax θ; μ; P = Σ⁻¹

γ are responsibilities. `mercer.markov.HiddenMarkovModel` is a model of sequences. Every model has ``fit``, ``log_prob``, ``scores``, its ``parameters`` θ as one vector and ``at(θ)``,
the model with other parameters, so that tests can check ∂ log_prob / ∂θ. A symmetric matrix enters θ by its diagonal
and its upper triangle times √2: inner products of such vectors are those of the matrices.
"""  # noqa: E501

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Nested, Objects, OnlyInside, Saved
from mercer._validation import check_choice, check_count, check_positive, check_sparse, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernels.approximations import chosen_objects

__all__ = ["GaussianMixtureModel", "GaussianModel", "MultinomialModel"]


# ---------------------------------------------------------------------------------------------------- shared


class _Model(Saved, Estimator):
    """What the models have in common."""

    sample_: Any
    saved = Fields(sample_=OnlyInside(Objects()))  # what a kernel may average over, is no part of the model itself

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Estimate the parameters; the objects are kept in ``sample_``, for the information matrix."""
        raise NotImplementedError

    def log_prob(self, X: Any) -> np.ndarray:
        """Return log p(x) of every object."""
        raise NotImplementedError

    def scores(self, X: Any) -> np.ndarray:
        """Return ∇_θ log p(x) of every object, one row per object."""
        raise NotImplementedError

    @property
    def parameters(self) -> np.ndarray:
        """θ as one vector."""
        raise NotImplementedError

    def at(self, parameters: Any) -> Any:
        """Return the model with other parameters θ."""
        theta = np.asarray(parameters, np.float64)
        size = self.parameters.shape
        if theta.shape != size or np.isnan(theta).any():
            raise ValueError(f"parameters must be {size[0]} numbers, got shape {theta.shape}")
        made = copy.copy(self)
        try:
            made._set(theta)
        except np.linalg.LinAlgError as error:
            raise ValueError("parameters must give covariances that are positive definite") from error
        return made

    def _set(self, theta: np.ndarray) -> None:
        raise NotImplementedError

    def _check_complete(self) -> None:
        self._ready()

    def _ready(self) -> None:
        self._require(list(self.saved)[1])

    def _require(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit(X) first")


def vectors_and_bags(X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return all vectors in one array, and the offsets of the bags; None if the objects are single vectors.

    Examples
    --------
    >>> from mercer.kernels.models import vectors_and_bags
    >>> vectors_and_bags([[[1.0], [2.0]], [[3.0]]])
    (array([[1.],
           [2.],
           [3.]]), array([0, 2, 3]))
    """
    if sp.issparse(X):
        X = X.toarray()
    elif hasattr(X, "columns") and hasattr(X, "to_numpy"):  # a data frame
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and np.iscomplexobj(X):
        raise ValueError("X must hold real numbers, got complex ones")
    if not (isinstance(X, np.ndarray) and X.ndim == 2) and _are_bags(X):
        bags = [np.asarray(bag, np.float64) for bag in X]
        full = [bag for bag in bags if bag.size]
        width = full[0].shape[-1] if full else 0
        for i, bag in enumerate(bags):
            if bag.size and (bag.ndim != 2 or bag.shape[1] != width):
                raise ValueError(f"bag {i} must hold vectors of {width} numbers, got an array of shape {bag.shape}")
        offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64)
        return _finite(np.concatenate(full) if full else np.zeros((0, width))), offsets
    try:
        rows = np.asarray(X if isinstance(X, np.ndarray) else list(X), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be vectors, or bags of vectors, of the same length: {error}") from error
    if rows.ndim != 2:
        raise ValueError(
            f"X must be an array of vectors, one row each, or a list of such arrays, got shape {rows.shape}"
        )
    return _finite(rows), None


def _weighted_objects(X: Any, sample_weight: Any) -> tuple[Any, np.ndarray | None]:
    """The objects with a weight above 0, and these weights."""
    X = X if hasattr(X, "__len__") or sp.issparse(X) else list(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    used, weights = used_examples(sample_weight, n)
    return (X if used is None or len(used) == n else chosen_objects(X, used)), weights


def _of_vectors(weights: np.ndarray | None, offsets: np.ndarray | None) -> Any:
    """The weights of vectors, from those of the bags that hold them."""
    return weights if weights is None or offsets is None else np.repeat(weights, np.diff(offsets))


def _are_bags(X: Any) -> bool:
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.ndim == 3
    return any(np.ndim(x) == 2 for x in X if np.size(x))


def _finite(rows: np.ndarray) -> np.ndarray:
    if not np.isfinite(rows).all():
        raise ValueError(f"vector {int(np.argmax(~np.isfinite(rows).all(axis=1)))} holds NaN or infinite values")
    return rows


def _per_object(values: np.ndarray, offsets: np.ndarray | None) -> np.ndarray:
    """Sums over the vectors of each bag."""
    if offsets is None:
        return values
    n = len(values)
    member = sp.csr_matrix((np.ones(n), np.arange(n), offsets), shape=(len(offsets) - 1, n))
    return np.asarray(member @ values)


def svec(M: np.ndarray) -> np.ndarray:
    """Return symmetric matrices (…, d, d) as vectors with the same inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.models import svec
    >>> float(svec(np.ones((2, 2))) @ svec(np.ones((2, 2))))
    4.0
    """
    i, j = np.triu_indices(M.shape[-1])
    return M[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def smat(v: np.ndarray, d: int) -> np.ndarray:
    """Return symmetric matrices from vectors: the inverse of `svec`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.models import smat, svec
    >>> smat(svec(np.eye(2)), 2)
    array([[1., 0.],
           [0., 1.]])
    """
    i, j = np.triu_indices(d)
    M = np.zeros((*v.shape[:-1], d, d))
    M[..., i, j] = v / np.where(i == j, 1.0, np.sqrt(2.0))
    M[..., j, i] = M[..., i, j]
    return M


def _log_normal(X: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """log N(x; mean, covariance), the covariance a matrix or a vector of variances."""
    d = X.shape[1]
    if covariance.ndim == 1:
        return -0.5 * (((X - mean) ** 2 / covariance).sum(axis=1) + np.log(2 * np.pi * covariance).sum())
    L = sla.cholesky(covariance, lower=True)
    white = sla.solve_triangular(L, (X - mean).T, lower=True)
    return -0.5 * (white**2).sum(axis=0) - np.log(np.diag(L)).sum() - 0.5 * d * np.log(2 * np.pi)


def _inverse(M: np.ndarray) -> np.ndarray:
    inverse = sla.cho_solve(sla.cho_factor(M, lower=True), np.eye(len(M)))
    return (inverse + inverse.T) / 2.0


def _reciprocal(precisions: np.ndarray) -> np.ndarray:
    if not (precisions > 0).all():
        raise np.linalg.LinAlgError("a variance is not positive")
    return 1.0 / precisions


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def _log(p: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _not_negative(name: str, value: Any) -> float:
    if value == 0 and not isinstance(value, bool):
        return 0.0
    return check_positive(name, value)


# ---------------------------------------------------------------------------------------------------- Gaussian


class GaussianModel(_Model):
    """A normal distribution of vectors; the vectors of a bag are independent.

    θ are the natural parameters with the fitted mean m as the origin, log p = ⟨x − m, θ₁⟩ + ⟨(x − m)(x − m)ᵀ, θ₂⟩ −
    g(θ), so that the score is the centred sufficient statistic: x − μ, and (x − m)(x − m)ᵀ without its mean.

    Parameters
    ----------
    covariance : {"full", "diag"}, default="full"
        Covariance of the distribution.
    free : {"all", "mean"}, default="all"
        Free parameters in the score: mean and covariance, or only the mean with the covariance fixed. With the mean
        alone the normalised Fisher kernel is Mahalanobis's inner product (x − μ)ᵀ Σ⁻¹ (z − μ).
    reg_covar : float, default=1e-6
        Added to the variances.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
    covariance_ : ndarray of shape (d, d), or (d,) for "diag"
    sample_ : what the model was fitted to

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import GaussianModel
    >>> model = GaussianModel(free="mean").fit(np.array([[0.0], [2.0], [4.0]]))
    >>> model.mean_, model.scores([[5.0]])
    (array([2.]), array([[3.]]))
    """

    saved = _Model.saved | Fields(mean_=Floats(None), covariance_=Floats(), origin_=Floats("mean_"))

    def __init__(self, covariance: str = "full", free: str = "all", reg_covar: float = 1e-6) -> None:
        self.covariance = covariance
        self.free = free
        self.reg_covar = reg_covar

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianModel:
        """Estimate the mean and covariance of the vectors.

        Parameters
        ----------
        X : collection of n objects
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : GaussianModel
        """
        check_choice("covariance", self.covariance, ("full", "diag"))
        check_choice("free", self.free, ("all", "mean"))
        X, weights = _weighted_objects(X, sample_weight)
        rows, offsets = vectors_and_bags(X)
        if not len(rows):
            raise ValueError("X holds no vectors")
        self.mean_, self.covariance_ = fitted_gaussian(
            rows, self.covariance, _not_negative("reg_covar", self.reg_covar), _of_vectors(weights, offsets)
        )
        sizes = self.covariance_ if self.covariance == "diag" else np.linalg.eigvalsh(self.covariance_)
        if not sizes.min() > 1e-14 * sizes.max():
            raise ValueError("the covariance of the vectors is singular: raise reg_covar")
        self.origin_ = self.mean_
        self.sample_ = X
        return self

    def log_prob(self, X: Any) -> np.ndarray:
        """Return log p(x) of every vector, or the sum over every bag."""
        rows, offsets = self._rows(X)
        return _per_object(_log_normal(rows, self.mean_, self.covariance_), offsets)

    def scores(self, X: Any) -> np.ndarray:
        """Return ∇_θ log p(x), one row per object."""
        rows, offsets = self._rows(X)
        first = rows - self.mean_
        if self.free == "mean":
            return _per_object(first, offsets)
        moved, shift = rows - self.origin_, self.mean_ - self.origin_
        if self.covariance == "diag":
            second = moved**2 - (self.covariance_ + shift**2)
        else:
            second = svec(moved[:, :, None] * moved[:, None, :]) - svec(self.covariance_ + np.outer(shift, shift))
        return _per_object(np.hstack([first, second]), offsets)

    @property
    def parameters(self) -> np.ndarray:
        """θ: Σ⁻¹ (μ − m), then −½ Σ⁻¹ unless only the mean is free."""
        self._require("mean_")
        shift = self.mean_ - self.origin_
        if self.covariance == "diag":
            first, second = shift / self.covariance_, -0.5 / self.covariance_
        else:
            P = _inverse(self.covariance_)
            first, second = P @ shift, svec(-0.5 * P)
        return first if self.free == "mean" else np.concatenate([first, second])

    def _set(self, theta: np.ndarray) -> None:
        d = len(self.mean_)
        if self.free == "all":
            if self.covariance == "diag":
                self.covariance_ = _reciprocal(-2.0 * theta[d:])
            else:
                self.covariance_ = _inverse(-2.0 * smat(theta[d:], d))
        covariance = np.diag(self.covariance_) if self.covariance == "diag" else self.covariance_
        self.mean_ = self.origin_ + covariance @ theta[:d]

    def _check_state(self) -> None:
        check_choice("free", self.free, ("all", "mean"))
        _check_covariances(self.covariance, self.mean_[None], self.covariance_[None])

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        self._require("mean_")
        return _of_width(X, len(self.mean_))


def _of_width(X: Any, d: int) -> tuple[np.ndarray, np.ndarray | None]:
    rows, offsets = vectors_and_bags(X)
    if rows.shape[1] != d and len(rows):
        raise ValueError(f"the model is of vectors of {d} numbers, X has {rows.shape[1]}")
    return rows.reshape(len(rows), d), offsets


def _check_covariances(kind: str, means: np.ndarray, covariances: np.ndarray) -> None:
    check_choice("covariance", kind, ("full", "diag"))
    n, d = means.shape
    if covariances.shape != ((n, d) if kind == "diag" else (n, d, d)):
        raise ValueError(f"covariances of shape {covariances.shape} do not fit means of shape {means.shape}")
    lowest = covariances.min() if kind == "diag" else np.linalg.eigvalsh(covariances).min()
    if not lowest > 0:
        raise ValueError("covariances must be positive definite")


def _check_probabilities(*arrays: np.ndarray) -> None:
    for p in arrays:
        if p.size == 0 or (p < 0).any() or not np.allclose(p.sum(axis=-1), 1.0, atol=1e-6):
            raise ValueError("probabilities must be at least 0, with the sum 1")


def fitted_gaussian(
    rows: np.ndarray, covariance: str, reg_covar: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the covariance (divided by n), or the variances, with ``reg_covar`` added to the variances.

    ``weights`` are row weights; their sum replaces n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.models import fitted_gaussian
    >>> fitted_gaussian(np.array([[0.0], [2.0]]), "diag", 0.5)
    (array([1.]), array([1.5]))
    """
    mean = np.average(rows, axis=0, weights=weights)
    centred = rows - mean
    if covariance == "diag":
        return mean, np.average(centred**2, axis=0, weights=weights) + reg_covar
    if weights is None:
        return mean, centred.T @ centred / len(rows) + reg_covar * np.eye(rows.shape[1])
    scaled = centred * (weights / weights.sum())[:, None]
    return mean, scaled.T @ centred + reg_covar * np.eye(rows.shape[1])


# ---------------------------------------------------------------------------------------------------- symbols


class Alphabet(Saved):
    """Symbols and their numbers.

    Examples
    --------
    >>> from mercer.kernels.models import Alphabet
    >>> Alphabet("ab").encode(["abba", "b"])
    (array([0, 4, 5]), array([0, 1, 1, 0, 1]))
    """

    def __init__(self, symbols: Iterable[Any]) -> None:
        self.symbols = list(symbols)
        self.number = {symbol: i for i, symbol in enumerate(self.symbols)}
        if len(self.number) != len(self.symbols):
            raise ValueError("alphabet must not hold a symbol twice")
        if not self.symbols:
            raise ValueError("alphabet is empty: there are no symbols")

    @classmethod
    def of(cls, X: Sequence[Any]) -> Alphabet:
        """Build the alphabet of all symbols of sequences, in order."""
        symbols = {symbol for x in X for symbol in x}
        return cls(sorted(symbols, key=lambda symbol: (isinstance(symbol, str), type(symbol).__name__, symbol)))

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, X: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of the sequences, and the numbers of all symbols."""
        offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])]).astype(np.int64)
        number = self.number
        try:
            return offsets, np.array([number[symbol] for x in X for symbol in x], np.int64)
        except (KeyError, TypeError):
            pass
        for i, x in enumerate(X):
            for t, symbol in enumerate(x):
                if symbol.__hash__ is None or symbol not in number:
                    raise ValueError(
                        f"sequence {i}, position {t}: the model does not know the symbol {symbol!r}; give the model an "
                        "alphabet with all symbols"
                    )
        raise AssertionError


def _sequences(X: Any) -> list[Any]:
    sequences = []
    for i, x in enumerate(X):
        if isinstance(x, np.ndarray):
            if x.ndim != 1:
                raise ValueError(f"sequence {i} must have one dimension, got shape {x.shape}")
            x = x.tolist()
        if not hasattr(x, "__len__") or isinstance(x, (dict, set, frozenset)):
            raise ValueError(f"sequence {i} must be a string or a list of symbols, got {type(x).__name__}")
        sequences.append(x)
    return sequences


class MultinomialModel(_Model):
    """Independent symbols or words: log p(x) = Σ_v count_v log p_v.

    An object is a string, a list of symbols, or a row of a matrix of counts (dense or sparse). The length of an
    object is not modelled. θ are the logarithms of p, p = softmax θ, and the score is the centred sufficient
    statistic, count_v − length · p_v.

    Parameters
    ----------
    alphabet : sequence of symbols, optional
        By default the symbols of the training objects. An unknown symbol raises an error.
    smoothing : float, default=1.0
        Pseudo-count of every symbol.

    Attributes
    ----------
    alphabet_ : list of symbols; column numbers for matrices of counts
    probabilities_ : ndarray of shape (n_symbols,)
    sample_ : what the model was fitted to

    Examples
    --------
    >>> from mercer.kernels import MultinomialModel
    >>> model = MultinomialModel(smoothing=0.0).fit(["aab", "b"])
    >>> model.alphabet_, model.probabilities_, model.scores(["aaa"])
    (['a', 'b'], array([0.5, 0.5]), array([[ 1.5, -1.5]]))
    """

    saved = _Model.saved | Fields(probabilities_=Floats("_symbols"), _symbols=Nested(Alphabet))

    def __init__(self, alphabet: Sequence[Any] | None = None, smoothing: float = 1.0) -> None:
        self.alphabet = alphabet
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultinomialModel:
        """Estimate the shares of the symbols.

        Parameters
        ----------
        X : collection of n objects
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : MultinomialModel
        """
        smoothing = _not_negative("smoothing", self.smoothing)
        X, weights = _weighted_objects(X, sample_weight)
        if _is_matrix(X):
            if self.alphabet is not None and len(self.alphabet) != X.shape[1]:
                raise ValueError(f"alphabet has {len(self.alphabet)} symbols, X has {X.shape[1]} columns")
            self._symbols = Alphabet(range(X.shape[1]) if self.alphabet is None else self.alphabet)
        else:
            X = _sequences(X)
            self._symbols = Alphabet.of(X) if self.alphabet is None else Alphabet(self.alphabet)
        self.alphabet_ = self._symbols.symbols
        counts = self._counts(X)
        total = np.asarray(counts.sum(axis=0) if weights is None else weights @ counts).ravel() + smoothing
        if not total.sum() > 0:
            raise ValueError("X holds no symbols")
        self.probabilities_ = total / total.sum()
        self.sample_ = X
        return self

    def log_prob(self, X: Any) -> np.ndarray:
        """Return log p(x) of every object; −∞ where it has a symbol of probability 0."""
        self._require("probabilities_")
        counts = self._counts(X).tocoo()
        terms = counts.data * _log(self.probabilities_)[counts.col]
        return np.bincount(counts.row, terms, minlength=counts.shape[0])

    def scores(self, X: Any) -> np.ndarray:
        """Return count_v − length · p_v, one row per object."""
        self._require("probabilities_")
        counts = self._counts(X)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        return counts.toarray() - np.outer(lengths, self.probabilities_)

    @property
    def parameters(self) -> np.ndarray:
        """θ = log p."""
        self._require("probabilities_")
        return _log(self.probabilities_)

    def _set(self, theta: np.ndarray) -> None:
        self.probabilities_ = _softmax(theta)

    def _check_state(self) -> None:
        _check_probabilities(self.probabilities_)
        self.alphabet_ = self._symbols.symbols

    def _counts(self, X: Any) -> Any:
        if _is_matrix(X):
            counts = sp.csr_matrix(check_sparse("X", X), dtype=np.float64)
            if counts.shape[1] != len(self._symbols):
                raise ValueError(f"X must have {len(self._symbols)} columns, got {counts.shape[1]}")
            if not np.isfinite(counts.data).all() or (counts.data < 0).any():
                raise ValueError("X must hold counts: finite numbers of at least 0")
            counts.eliminate_zeros()
            return counts
        offsets, codes = self._symbols.encode(_sequences(X))
        counts = sp.csr_matrix((np.ones(len(codes)), codes, offsets), shape=(len(offsets) - 1, len(self._symbols)))
        counts.sum_duplicates()
        return counts


def _is_matrix(X: Any) -> bool:
    return sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


# ---------------------------------------------------------------------------------------------------- mixtures


class GaussianMixtureModel(_Model):
    """A mixture of normal distributions of vectors, or of the vectors of a bag, fitted by scikit-learn.

    θ are the logarithms of the weights w = softmax θ, the means, and the precisions P_k = Σ_k⁻¹. Scores of bags, such
    as the local descriptors of images, are the Fisher vectors of these.

    Parameters
    ----------
    n_components : int, default=2
        Number of normal distributions in the mixture.
    covariance : {"full", "diag"}, default="full"
        Covariance of each distribution.
    reg_covar : float, default=1e-6
        Added to the variances.
    max_iter, n_init : int, default=100 and 1
        Maximum iterations of expectation maximisation, and number of starts.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, d)
    covariances_ : ndarray of shape (n_components, d, d), or (n_components, d) for "diag"
    sample_ : what the model was fitted to

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import GaussianMixtureModel
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = GaussianMixtureModel(2, random_state=0).fit(X)
    >>> model.scores(X).shape      # 2 weights, 2 means, 2 precisions
    (4, 6)
    """

    saved = _Model.saved | Fields(weights_=Floats(None), means_=Floats("weights_", None), covariances_=Floats())

    def __init__(
        self,
        n_components: int = 2,
        covariance: str = "full",
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixtureModel:
        """Fit by expectation maximisation over the vectors.

        Parameters
        ----------
        X : collection of n objects
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : GaussianMixtureModel
        """
        from sklearn.mixture import GaussianMixture

        check_choice("covariance", self.covariance, ("full", "diag"))
        X, weights = _weighted_objects(X, sample_weight)
        rows, offsets = vectors_and_bags(X)
        n = check_count("n_components", self.n_components)
        if len(rows) < max(n, 2):
            raise ValueError(f"X holds {len(rows)} vectors: too few for n_components={n}")
        reg_covar, max_iter = _not_negative("reg_covar", self.reg_covar), check_count("max_iter", self.max_iter)
        n_init = check_count("n_init", self.n_init)
        if weights is not None:
            of_rows = _of_vectors(weights, offsets)
            random = check_random_state(self.random_state)
            runs = [self._weighted_run(rows, of_rows, reg_covar, max_iter, random) for _ in range(n_init)]
            self.weights_, self.means_, self.covariances_ = max(runs, key=lambda run: run[0])[1]
        else:
            mixture = GaussianMixture(
                n,
                covariance_type=self.covariance,
                reg_covar=reg_covar,
                max_iter=max_iter,
                n_init=n_init,
                random_state=self.random_state,
            ).fit(rows)
            self._take(mixture)
        self.sample_ = X
        return self

    def _weighted_run(
        self, rows: np.ndarray, weights: np.ndarray, reg_covar: float, max_iter: int, random: Any
    ) -> tuple[float, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The mean log-likelihood and the parameters of a run, begun and stopped as scikit-learn does."""
        from sklearn.cluster import KMeans

        clustering = KMeans(self.n_components, n_init=1, random_state=random).fit(rows, sample_weight=weights)
        value = -np.inf

        def maximise(gamma: np.ndarray) -> None:
            counts = weights @ gamma + 10 * np.finfo(float).eps
            fitted = [
                fitted_gaussian(rows, self.covariance, reg_covar, weights * gamma[:, k] + 1e-300)
                for k in range(self.n_components)
            ]
            self.weights_ = counts / counts.sum()
            self.means_ = np.array([mean for mean, _ in fitted])
            self.covariances_ = np.array([covariance for _, covariance in fitted])

        maximise(np.eye(self.n_components)[clustering.labels_])
        for _ in range(max_iter):
            joint = self._joint(rows)
            before, value = value, float(np.average(np.logaddexp.reduce(joint, axis=1), weights=weights))
            maximise(_softmax(joint))
            if abs(value - before) < 1e-3:
                return value, (self.weights_, self.means_, self.covariances_)
        message = f"GaussianMixtureModel did not converge in {max_iter} iterations: raise max_iter"
        warn_caller(message, ConvergenceWarning)
        return value, (self.weights_, self.means_, self.covariances_)

    @classmethod
    def from_sklearn(cls, mixture: Any, sample: Any = None) -> GaussianMixtureModel:
        """Return the model of a fitted ``sklearn.mixture.GaussianMixture``; ``sample`` is its training data."""
        kind = getattr(mixture, "covariance_type", None)
        if kind not in ("full", "diag"):
            raise ValueError(f"covariance_type of the mixture must be 'full' or 'diag', got {kind!r}")
        if not hasattr(mixture, "weights_"):
            raise NotFittedError("the mixture is not fitted")
        made = cls(len(mixture.weights_), kind)
        made._take(mixture)
        if sample is not None:
            made.sample_ = sample
        return made

    def _take(self, mixture: Any) -> None:
        self.weights_ = np.array(mixture.weights_, np.float64)
        self.means_ = np.array(mixture.means_, np.float64)
        self.covariances_ = np.array(mixture.covariances_, np.float64)

    def log_prob(self, X: Any) -> np.ndarray:
        """Return log p(x) of every vector, or the sum over every bag."""
        rows, offsets = self._rows(X)
        return _per_object(np.logaddexp.reduce(self._joint(rows), axis=1), offsets)

    def responsibilities(self, X: Any) -> np.ndarray:
        """Return γ: the probabilities of the components given a vector, one row per vector."""
        return _softmax(self._joint(self._rows(X)[0]))

    def scores(self, X: Any) -> np.ndarray:
        """Return ∇_θ log p(x), one row per object."""
        rows, offsets = self._rows(X)
        gamma = _softmax(self._joint(rows)) if len(rows) else np.zeros((0, len(self.weights_)))
        parts = [gamma - self.weights_]
        seconds = []
        for k, (mean, covariance) in enumerate(zip(self.means_, self.covariances_, strict=True)):
            off = rows - mean
            if self.covariance == "diag":
                parts.append(gamma[:, k : k + 1] * off / covariance)
                seconds.append(0.5 * gamma[:, k : k + 1] * (covariance - off**2))
            else:
                parts.append(gamma[:, k : k + 1] * (off @ _inverse(covariance)))
                outer = svec(off[:, :, None] * off[:, None, :])
                seconds.append(0.5 * gamma[:, k : k + 1] * (svec(covariance) - outer))
        return _per_object(np.hstack([*parts, *seconds]), offsets)

    @property
    def parameters(self) -> np.ndarray:
        """θ: log weights, means, precisions."""
        self._require("weights_")
        if self.covariance == "diag":
            precisions = 1.0 / self.covariances_
        else:
            precisions = np.array([svec(_inverse(covariance)) for covariance in self.covariances_])
        return np.concatenate([_log(self.weights_), self.means_.ravel(), precisions.ravel()])

    def _set(self, theta: np.ndarray) -> None:
        n, d = self.means_.shape
        self.weights_ = _softmax(theta[:n])
        self.means_ = theta[n : n + n * d].reshape(n, d)
        precisions = theta[n + n * d :].reshape(n, -1)
        if self.covariance == "diag":
            self.covariances_ = _reciprocal(precisions)
        else:
            self.covariances_ = np.array([_inverse(smat(row, d)) for row in precisions])

    def _check_state(self) -> None:
        _check_probabilities(self.weights_)
        _check_covariances(self.covariance, self.means_, self.covariances_)

    def _joint(self, rows: np.ndarray) -> np.ndarray:
        pairs = zip(self.means_, self.covariances_, strict=True)
        return np.column_stack([_log_normal(rows, mean, covariance) for mean, covariance in pairs]) + _log(
            self.weights_
        )

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        self._require("weights_")
        return _of_width(X, self.means_.shape[1])
