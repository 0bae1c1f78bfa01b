"""Kernels from generative models: Fisher's, and inner products of fitted densities.

U(x)ᵀ I⁻¹ U(z),   U(x) = ∇_θ log p(x | θ),   I = E[U Uᵀ]
∫ p(x)^ρ q(x)^ρ dx                                                                               probability products

Some texts define the score with the opposite sign; the kernel values are the same. For exponential families U is the
centred sufficient statistic. For normal densities, with Δ the difference of the means and C = Σ_p + Σ_q,

log ∫ p^ρ q^ρ = ½ d (1 − 2ρ) log 2π − ½ d log ρ + ½ (1 − ρ) log |Σ_p| |Σ_q| − ½ log |C| − ½ ρ Δᵀ C⁻¹ Δ.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from mercer._validation import check_choice, check_count, check_positive
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import Kernel, Work, check_memory, mirrored
from mercer.kernels.models import GaussianMixtureModel, GaussianModel, _finite, _not_negative, fitted_gaussian
from mercer.kernels.rkhs import _length
from mercer.kernels.sets import _elements, _group_sums, keyed_sets

__all__ = ["Fisher", "ProbabilityProduct"]

FAMILIES = ("gaussian", "mixture", "multinomial")


# ---------------------------------------------------------------------------------------------------- Fisher


class Fisher(Kernel):
    """Fisher's kernel of a generative model: inner products of scores ∇_θ log p(x | θ).

    Two objects are similar if their gradients in the parameters of the model are similar. Normalised by the
    information matrix I = E[U Uᵀ], estimated by the mean over a sample, the kernel does not depend on how the model is
    parametrised. Without normalisation it depends on it (`mercer.kernels.models` gives θ for each model). The kernel
    does not fit the model. Copies of the kernel share the model.

    Parameters
    ----------
    model : object
        A fitted model with a method ``scores(X)``, the gradients of log p in its parameters, one row per object:
        `GaussianModel`, `MultinomialModel`, `GaussianMixtureModel`, `mercer.markov.HiddenMarkovModel` (with
        ``sample``) or one of your own.
    information : {"full", "diagonal", None}, default="full"
        Normalisation of the scores: by the information matrix, by its diagonal only (for models with very many
        parameters), or none.
    ridge : float, default=1e-6
        Added to the diagonal of the matrix, relative to the mean of the diagonal. Without it the matrix is singular if
        parameters are redundant, as in a softmax.
    sample : collection of objects, optional
        Objects over which the information is averaged; by default the training objects of the model
        (``model.sample_``).

    References
    ----------
    .. [Jaakkola1998] T. Jaakkola and D. Haussler. Exploiting generative models in discriminative classifiers. NIPS,
       1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Fisher, GaussianModel
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]])
    >>> k = Fisher(GaussianModel(free="mean").fit(X), ridge=0.0)
    >>> round(k.pair([3.0, 2.0], [2.0, 6.0]), 4)    # the variances are 1 and 4
    2.0
    """

    has_features = True
    _block_entries = None

    def __init__(
        self,
        model: Any,
        information: str | None = "full",
        ridge: float = 1e-6,
        sample: Any = None,
    ) -> None:
        self.model = model
        self.information = information
        self.ridge = ridge
        self.sample = sample

    def __sklearn_clone__(self) -> Fisher:
        return type(self)(self.model, self.information, self.ridge, self.sample)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def __repr__(self) -> str:
        return f"Fisher({type(self.model).__name__}, information={self.information!r})"

    def _check_params(self) -> None:
        if not callable(getattr(self.model, "scores", None)):
            raise ValueError(f"model must have a method scores(X), got {type(self.model).__name__}")
        check_choice("information", self.information, ("full", "diagonal", None))
        _not_negative("ridge", self.ridge)

    def _prepare(self, X: Any) -> np.ndarray:
        if _length(X) == 0:
            return np.zeros((0, 1))
        U = self._scores(X)
        if self.information is None:
            return U
        factor = self._factor()
        if self.information == "diagonal":
            return U / factor
        return np.ascontiguousarray(sla.solve_triangular(factor, U.T, lower=True).T)

    def _scores(self, X: Any) -> np.ndarray:
        U = np.asarray(self.model.scores(X), np.float64)
        if U.ndim != 2 or len(U) != _length(X):
            raise ValueError(
                f"model.scores must give one row for each of the {_length(X)} objects, gave shape {U.shape}"
            )
        if not np.isfinite(U).all():
            raise ValueError(f"the score of object {int(np.argmin(np.isfinite(U).all(axis=1)))} is not finite")
        return U

    def _factor(self) -> np.ndarray:
        """The Cholesky factor of the information, or the roots of its diagonal; kept while the model stays the same."""
        sample = self.sample if self.sample is not None else getattr(self.model, "sample_", None)
        if sample is None or _length(sample) == 0:
            raise ValueError(
                "a normalised Fisher kernel averages the information over objects: give sample, or fit the model"
            )
        theta = getattr(self.model, "parameters", None)
        if not isinstance(theta, np.ndarray):
            theta = self._scores(sample[:8])  # other parameters give other scores
        key = (self.information, float(self.ridge), theta.tobytes())
        kept = getattr(self, "_kept", None)
        if kept is None or kept[0] is not self.model or kept[1] is not sample or kept[2] != key:
            kept = self._kept = (self.model, sample, key, self._compute_factor(sample))
        return kept[3]

    def _compute_factor(self, sample: Any) -> np.ndarray:
        U = self._scores(sample)
        if self.information == "diagonal":
            diagonal = np.einsum("ij,ij->j", U, U) / len(U)
            diagonal = diagonal + self.ridge * self._mean(diagonal)
            if not (diagonal > 0).all():
                raise ValueError("the information of a parameter is 0: raise ridge")
            return np.sqrt(diagonal)
        check_memory(U.shape[1], U.shape[1], np.float64)
        information = U.T @ U / len(U)
        information[np.diag_indices_from(information)] += self.ridge * self._mean(np.diag(information))
        try:
            return sla.cholesky(information, lower=True)
        except np.linalg.LinAlgError as error:
            raise ValueError("the information matrix is singular: raise ridge") from error

    @staticmethod
    def _mean(diagonal: np.ndarray) -> float:
        mean = float(diagonal.mean())
        if not mean > 0:
            raise ValueError("all scores of the sample are 0: there is no information about the parameters")
        return mean

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Work) -> np.ndarray:
        return np.asarray(A @ (A if B is None else B).T, work.dtype)

    def _diag(self, A: np.ndarray, work: Work) -> np.ndarray:
        return np.einsum("ij,ij->i", A, A)

    def _features(self, parts: list[np.ndarray]) -> list[Any]:
        return list(parts)


# ---------------------------------------------------------------------------------------------------- products


class _Normals:
    """Normal densities, a stretch of them for each object, with weights."""

    def __init__(self, offsets: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> None:
        self.offsets = offsets
        self.weights = weights
        self.means = means
        self.covariances = covariances

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> _Normals:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        low, high = self.offsets[start], self.offsets[stop]
        return _Normals(
            self.offsets[start : stop + 1] - low,
            self.weights[low:high],
            self.means[low:high],
            self.covariances[low:high],
        )


class ProbabilityProduct(Kernel):
    """Probability product kernel: ∫ p(x)^ρ q(x)^ρ dx of densities fitted to each object.

    With ρ = 1/2 this is Bhattacharyya's affinity: at most 1, and 1 for equal densities. With ρ = 1 it is the expected
    likelihood of one density under the other, E_p[q(x)].

    - ``"gaussian"``: an object is a bag of vectors (an array, one row per vector), and p is its normal density;
    - ``"mixture"``: p is a mixture of ``n_components`` normal densities; there is a closed form for ρ = 1 only;
    - ``"multinomial"``: an object is a list of symbols or words, a mapping of these to counts, or a row of a sparse
      matrix of counts, and p holds its shares: Σ_v p_v^ρ q_v^ρ.

    An object may also be a fitted `GaussianModel` or `GaussianMixtureModel`.

    Parameters
    ----------
    family : {"gaussian", "mixture", "multinomial"}, default="gaussian"
        The densities.
    rho : float, default=0.5
        The exponent, above 0.
    covariance : {"full", "diag"}, default="full"
        Covariance of the normal densities.
    reg_covar : float, default=1e-3
        Added to the variances, in squared units of the data. Without it a bag with fewer vectors than dimensions has no
        density.
    n_components : int, default=2
        Number of densities in a mixture; at most the number of vectors in a bag.
    random_state : int, RandomState or None, default=0
        Seed of the start of the mixture fit. An integer gives an object the same density in every call.

    References
    ----------
    .. [Jebara2004] T. Jebara, R. Kondor and A. Howard. Probability product kernels. Journal of Machine Learning
       Research 5, 2004.

    Examples
    --------
    >>> from mercer.kernels import ProbabilityProduct
    >>> k = ProbabilityProduct("multinomial")
    >>> round(k.pair(list("aabb"), list("ab")), 6), k.pair(list("aab"), list("c"))
    (1.0, 0.0)
    >>> round(ProbabilityProduct().pair([[0.0], [2.0]], [[0.0], [2.0]]), 6)
    1.0
    """

    _block_entries = 1 << 13

    def __init__(
        self,
        family: str = "gaussian",
        rho: float = 0.5,
        covariance: str = "full",
        reg_covar: float = 1e-3,
        n_components: int = 2,
        random_state: Any = 0,
    ) -> None:
        self.family = family
        self.rho = rho
        self.covariance = covariance
        self.reg_covar = reg_covar
        self.n_components = n_components
        self.random_state = random_state

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.family == "multinomial"

    def _check_params(self) -> None:
        check_choice("family", self.family, FAMILIES)
        if not isinstance(self.rho, Real) or isinstance(self.rho, bool) or not 0 < self.rho < np.inf:
            raise ValueError(f"rho must be a positive finite number, got {self.rho!r}")
        if self.family == "mixture" and self.rho != 1:
            raise ValueError(f"rho must be 1 for mixtures, which have no closed form otherwise, got {self.rho!r}")
        check_choice("covariance", self.covariance, ("full", "diag"))
        check_positive("reg_covar", self.reg_covar)
        check_count("n_components", self.n_components)

    # ------------------------------------------------------------------ densities

    def _prepare(self, X: Any) -> Any:
        if self.family == "multinomial":
            return self._shares(X)
        each = [self._density(i, x) for i, x in enumerate(X)]
        offsets = np.concatenate([[0], np.cumsum([len(weights) for weights, _, _ in each])]).astype(np.int64)
        if not each:
            return _Normals(offsets, np.zeros(0), np.zeros((0, 1)), np.zeros((0, 1)))
        d = each[0][1].shape[1]
        for i, (_, means, _) in enumerate(each):
            if means.shape[1] != d:
                raise ValueError(f"bag {i} has vectors of {means.shape[1]} numbers, bag 0 of {d}")
        weights, means, covariances = (np.concatenate([parts[p] for parts in each]) for p in range(3))
        return _Normals(offsets, weights, means, covariances)

    def _shares(self, X: Any) -> KeyedRows:
        if not sp.issparse(X):
            X = [x if isinstance(x, dict) else list(_elements(i, x)[0]) for i, x in enumerate(X)]
        rows = keyed_sets(X, "product")
        sizes = np.diff(rows.offsets)
        if (sizes == 0).any():
            raise ValueError(f"object {int(np.argmin(sizes))} is empty: it has no shares")
        totals = np.add.reduceat(rows.values, rows.offsets[:-1]) if len(rows) else np.zeros(0)
        return KeyedRows(rows.offsets, rows.keys, (rows.values / np.repeat(totals, sizes)) ** float(self.rho))

    def _density(self, i: int, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means, covariances."""
        if isinstance(x, GaussianModel) and self.family == "gaussian":
            x._require("mean_")
            return np.ones(1), x.mean_[None], self._form(x.covariance_[None])
        if isinstance(x, GaussianMixtureModel) and self.family == "mixture":
            x._require("weights_")
            return x.weights_, x.means_, self._form(x.covariances_)
        if isinstance(x, (GaussianModel, GaussianMixtureModel)):
            wanted = "GaussianModel" if self.family == "gaussian" else "GaussianMixtureModel"
            raise ValueError(
                f"bag {i} is a {type(x).__name__}: with family={self.family!r} a given model must be a {wanted}"
            )
        rows = self._bag(i, x)
        if self.family == "gaussian" or len(rows) == 1 or self.n_components == 1:
            mean, covariance = fitted_gaussian(rows, self.covariance, self.reg_covar)
            return np.ones(1), mean[None], covariance[None]
        n = min(self.n_components, len(np.unique(rows, axis=0)))
        fitted = GaussianMixtureModel(n, self.covariance, self.reg_covar, random_state=self.random_state).fit(rows)
        return fitted.weights_, fitted.means_, fitted.covariances_

    def _bag(self, i: int, x: Any) -> np.ndarray:
        try:
            rows = np.asarray(x, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"bag {i} must be an array of vectors, one row each: {error}") from error
        if rows.size == 0:
            raise ValueError(f"bag {i} is empty: it has no density")
        if rows.ndim != 2:
            raise ValueError(f"bag {i} must be an array of vectors, one row each, got shape {rows.shape}")
        try:
            return _finite(rows)
        except ValueError as error:
            raise ValueError(f"bag {i}: {error}") from error

    def _form(self, covariances: np.ndarray) -> np.ndarray:
        """Covariances of a given model as matrices or variances, whichever the kernel uses."""
        if self.covariance == "diag":
            if covariances.ndim == 3:
                raise ValueError("covariance='diag', but a given model has full covariances")
            return covariances
        return np.array([np.diag(v) for v in covariances]) if covariances.ndim == 2 else covariances

    # ------------------------------------------------------------------ values

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        if self.family == "multinomial":
            return A.gram(B, work)
        other = A if B is None else B
        K = self._of_normals(A, other)
        if self.family == "mixture":
            weighted = K * np.multiply.outer(A.weights, other.weights)
            K = np.array(_group_sums(_group_sums(weighted, A.offsets).T, other.offsets).T)
        if not np.isfinite(K).all():
            raise ValueError("the integral of a product of densities overflows: raise reg_covar, or use rho=0.5")
        return np.asarray(mirrored(K) if B is None else K, work.dtype)

    def _of_normals(self, A: _Normals, B: _Normals) -> np.ndarray:
        """∫ p^ρ q^ρ of every density of A with every one of B, a few rows at a time."""
        d = A.means.shape[1]
        rho = float(self.rho)
        constant = 0.5 * d * ((1.0 - 2.0 * rho) * np.log(2.0 * np.pi) - np.log(rho))
        spread = 0.5 * (1.0 - rho) * (_log_volume(A.covariances)[:, None] + _log_volume(B.covariances)[None, :])
        K = np.empty((len(A.means), len(B.means)))
        step = max(1, (1 << 22) // max(1, len(B.means) * A.covariances[0].size)) if len(A.means) else 1
        for start in range(0, len(A.means), step):
            rows = slice(start, start + step)
            delta = A.means[rows, None, :] - B.means[None, :, :]
            C = A.covariances[rows, None] + B.covariances[None]
            if C.ndim == 3:
                volume, far = np.log(C).sum(axis=2), (delta**2 / C).sum(axis=2)
            else:
                L = np.linalg.cholesky(C)
                volume = 2.0 * np.log(np.einsum("abii->abi", L)).sum(axis=2)
                far = (np.linalg.solve(L, delta[..., None])[..., 0] ** 2).sum(axis=2)
            with np.errstate(over="ignore"):
                K[rows] = np.exp(constant + spread[rows] - 0.5 * volume - 0.5 * rho * far)
        return K

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return A.diag() if self.family == "multinomial" else super()._diag(A, work)

    def _features(self, parts: list[Any]) -> list[Any]:
        return matrices(parts)


def _log_volume(covariances: np.ndarray) -> np.ndarray:
    return np.log(covariances).sum(axis=1) if covariances.ndim == 2 else np.linalg.slogdet(covariances)[1]
