"""Circulant projections: R D x in O(d log d) with O(d) numbers, in place of a dense matrix.

    R = circ(r),  R[i, j] = r[(i − j) mod d],     R x = F⁻¹(F(r) ∘ F(x)),     D = diag(±1)

r is the first column. Fewer outputs are the first of them; more come from several vectors r, or
from padding x with zeros.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

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
from mercer._linalg import conjugate_gradients
from mercer._state.saved import Count, Fields, Floats, Saved, check_shapes
from mercer._validation import check_choice, check_count
from mercer.maps.fourier import padded_to

__all__ = ["CirculantProjection"]


class CirculantProjection(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Project onto the rows of a circulant matrix by Fourier transforms.

    Parameters
    ----------
    n_components : int, optional
        Number of outputs; by default the number of inputs.
    vector : {"random", "fitted"} or array, default="random"
        r: normal random numbers; or the least-squares fit of R D x to the targets Y of ``fit(X, Y)``; or a given array
        of shape (n_blocks, length) or (length,).
    expand : {"concat", "pad"}, default="concat"
        How to get more outputs than inputs: ⌈k / d⌉ vectors r, or x padded with zeros to k entries.
    sign_flip : {True, False, "blocks"}, default=True
        D: random signs of the inputs, the same for all vectors r, so that the transform of D x is used for all;
        "blocks" draws new signs for each. Without signs, the outputs of smooth inputs are correlated.
    normalize : bool, default=True
        Divide outputs of random vectors by √k, so that E‖R D x‖² = ‖x‖².
    random_state : int, RandomState or None, default=None
        Seed of r and D.

    Attributes
    ----------
    vectors_ : ndarray of shape (n_blocks, length)
        r.
    signs_ : ndarray of shape (n_blocks or 1, n_features)
        D.

    References
    ----------
    .. [Yu2014] F. X. Yu, S. Kumar, Y. Gong and S.-F. Chang. Circulant binary embedding. ICML, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import CirculantProjection
    >>> X = np.random.default_rng(0).normal(size=(4, 1000))
    >>> map = CirculantProjection(500, random_state=0).fit(X)
    >>> Z = map.transform(X)
    >>> Z.shape, bool(np.allclose(Z, X @ map.to_dense().T))
    ((4, 500), True)
    >>> bool(np.abs((Z**2).sum(axis=1) / (X**2).sum(axis=1) - 1).max() < 0.2)
    True
    """

    saved = Fields(n_features_in_=Count(1), vectors_=Floats(single=True), signs_=Floats(single=True))

    def __init__(
        self,
        n_components: int | None = None,
        *,
        vector: Any = "random",
        expand: str = "concat",
        sign_flip: bool | str = True,
        normalize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.vector = vector
        self.expand = expand
        self.sign_flip = sign_flip
        self.normalize = normalize
        self.random_state = random_state

    _parts_how = "first"  # of the examples only the number of columns matters

    def _reason_against_parts(self) -> str | None:
        return "vector='fitted' solves one problem over all rows" if self.vector == "fitted" else None

    def fit(self, X: Any, y: Any = None) -> CirculantProjection:
        """Draw or fit the vectors.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows.
        y : array of shape (n_rows, n_components), optional
            With ``vector="fitted"``, the targets of R D x.

        Returns
        -------
        CirculantProjection
            This map.
        """
        self._check_params()
        X = as_rows(self, X, reset=True, sparse_hint="use X.toarray(), or RandomProjection, which takes sparse rows")
        self._forget_copies()
        self._n_features_out = self.n_components or self.n_features_in_
        blocks, length = self._shape()
        random = check_random_state(self.random_state)
        n_signs = blocks if self.sign_flip == "blocks" else 1
        self.signs_ = np.ones((n_signs, self.n_features_in_))
        if self.sign_flip:
            self.signs_ = 2.0 * random.randint(0, 2, self.signs_.shape) - 1.0
        if isinstance(self.vector, str):
            if self.vector == "random":
                self.vectors_ = random.standard_normal((blocks, length))
            else:
                self.vectors_ = self._fitted(X, y)
        else:
            self.vectors_ = self._given(blocks, length)
        return self

    def _given(self, blocks: int, length: int) -> np.ndarray:
        rows = np.atleast_2d(np.asarray(self.vector, np.float64))
        if rows.shape != (blocks, length) or not np.isfinite(rows).all():
            raise ValueError(f"vector must hold finite numbers of shape {(blocks, length)}, got shape {rows.shape}")
        return rows.copy()

    def _fitted(self, X: Any, y: Any) -> np.ndarray:
        """Least squares: each frequency by itself, r̃ = Σ conj(F x) F y / Σ |F x|²; iterations where outputs are cut."""
        if y is None:
            raise ValueError("vector='fitted' needs targets: fit(X, Y) with a column of Y for each component")
        xp = array_api_compat.array_namespace(X)
        X, Y = xp.astype(X, xp.float64), self._target(X, y)
        blocks, length = self._shape()
        signs, vectors = on_device_of(X, self.signs_), []
        for b in range(blocks):
            target = Y[:, b * length : (b + 1) * length]
            rows = padded_to(xp, X * signs[min(b, len(self.signs_) - 1), :], length)
            vectors.append(to_numpy(_least_squares(fft_of(xp).rfft(rows, n=length), target, length)))
        return np.array(vectors)

    def _target(self, X: Any, y: Any) -> Any:
        """Y as float64, of the kind of X and beside it."""
        expected = (X.shape[0], self._n_features_out)
        if is_foreign(y) and is_foreign(X) and array_api_compat.device(y) != array_api_compat.device(X):
            where = f"{array_api_compat.device(X)} and {array_api_compat.device(y)}"
            raise ValueError(f"X and Y must lie on the same device, got {where}: move one of them")
        if not is_foreign(y) or not is_foreign(X):
            y = on_device_of(X, np.asarray(to_numpy(y) if is_foreign(y) else y, np.float64))
        xp = array_api_compat.array_namespace(X)
        Y = xp.astype(y, xp.float64)
        if tuple(Y.shape) != expected or not bool(xp.all(xp.isfinite(Y))):
            raise ValueError(f"Y must hold finite numbers of shape {expected}, got {tuple(Y.shape)}")
        return Y

    def transform(self, X: Any) -> Any:
        """Return R D x for the rows of X, as an array of the same library as X.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = as_rows(self, X, reset=False, sparse_hint="use X.toarray(), or RandomProjection, which takes sparse rows")
        if on_processor(X):
            return as_tensor(self.transform(X.numpy()))
        if not is_numpy(X):
            return by_rows(self._project, X, 3 * X.shape[1] + 4 * self.vectors_.size)
        out = np.empty((len(X), self._n_features_out), X.dtype)
        for block in row_blocks(len(X), 2 * self.vectors_.shape[1]):
            out[block] = self._project(X[block])
        return out

    def _project(self, X: Any) -> Any:
        kept = self._like(X, self._numbers)
        xp = array_api_compat.array_namespace(X)
        fft, length = fft_of(xp), self.vectors_.shape[1]
        spectrum, parts = None, []
        for b in range(self.vectors_.shape[0]):
            if spectrum is None or len(self.signs_) > 1:
                spectrum = fft.rfft(padded_to(xp, X * kept["signs"][min(b, len(self.signs_) - 1), :], length), n=length)
            parts.append(fft.irfft(spectrum * fft.rfft(kept["vectors"][b, :], n=length), n=length))
        return (parts[0] if len(parts) == 1 else xp.concat(parts, axis=1))[:, : self._n_features_out]

    def _numbers(self) -> dict[str, np.ndarray]:
        return {"vectors": self.vectors_ * self._scale(), "signs": self.signs_}

    def to_dense(self) -> np.ndarray:
        """Return the matrix of `transform`, of shape (n_components, n_features)."""
        check_is_fitted(self)
        d, length = self.n_features_in_, self.vectors_.shape[1]
        shift = (np.arange(length)[:, None] - np.arange(d)) % length
        signs = np.broadcast_to(self.signs_, (len(self.vectors_), d))
        rows = [r[shift] * s for r, s in zip(self.vectors_, signs, strict=True)]
        return np.vstack(rows)[: self._n_features_out] * self._scale()

    def _scale(self) -> float:
        random = isinstance(self.vector, str) and self.vector == "random"
        return float(self._n_features_out) ** -0.5 if random and self.normalize else 1.0

    def _shape(self) -> tuple[int, int]:
        """Vectors, and how long they are."""
        d, k = self.n_features_in_, self._n_features_out
        return (-(-k // d), d) if self.expand == "concat" else (1, max(d, k))

    def _check_params(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        if isinstance(self.vector, str):
            check_choice("vector", self.vector, ("random", "fitted"))
        check_choice("expand", self.expand, ("concat", "pad"))
        check_choice("sign_flip", self.sign_flip, (True, False, "blocks"))
        check_choice("normalize", self.normalize, (True, False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = isinstance(self.vector, str) and self.vector == "fitted"
        return tags

    def _saved_params(self) -> dict[str, Any]:
        return {**super()._saved_params(), "vector": self.vector if isinstance(self.vector, str) else self.vectors_}

    def _check_state(self) -> None:
        self._check_params()
        self._n_features_out = self.n_components or self.n_features_in_
        blocks, length = self._shape()
        signs = blocks if self.sign_flip == "blocks" else 1
        check_shapes(self, vectors_=(blocks, length), signs_=(signs, self.n_features_in_))


def _least_squares(spectrum: Any, target: Any, length: int) -> Any:
    """r that minimises Σ_i ‖first outputs of r ⊛ x_i − target_i‖², given F x; the shortest where there are many."""
    xp = array_api_compat.array_namespace(target)
    fft, kept = fft_of(xp), target.shape[1]

    def outputs(r: Any) -> Any:
        return fft.irfft(spectrum * fft.rfft(r, n=length), n=length)[:, :kept]

    def adjoint(errors: Any) -> Any:
        back = fft.rfft(padded_to(xp, errors, length), n=length)
        return fft.irfft(xp.sum(xp.conj(spectrum) * back, axis=0), n=length)

    if kept == length:
        power = xp.sum(xp.abs(spectrum) ** 2, axis=0)
        seen = power > 1e-12 * max(float(xp.max(power)), 1e-300)
        cross = fft.rfft(adjoint(target), n=length)
        ones = xp.ones_like(power)
        return fft.irfft(xp.where(seen, cross, 0 * cross) / xp.where(seen, power, ones), n=length)
    return conjugate_gradients(lambda r: adjoint(outputs(r)), adjoint(target), 1e-12, 10 * length)
