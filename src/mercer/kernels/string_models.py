"""Linear models on strings: evaluate a trained kernel machine in time linear in the string.

f(x) = b + Σ_i α_i k(x_i, x)
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.saved import Saved
from mercer.kernels._keyed import KeyedRows
from mercer.kernels._symbols import UNKNOWN, Symbols, same_kind
from mercer.kernels.algebra import Normalized, Scaled
from mercer.kernels.base import Kernel, Work
from mercer.kernels.strings import AllSubstrings, WeightedDegree, _Counted, _Counts, _cumulative, _longest

__all__ = ["LinearStringModel"]


class LinearStringModel(Saved):
    """Evaluate f(x) = intercept + Σ_i coef_i k(support_i, x) in time linear in the length of x.

    The support strings are merged once: into one table of weights by substring for kernels that count substrings, into
    one annotated suffix automaton for `AllSubstrings`. It converts a support vector machine trained on
    a precomputed matrix to a model that needs no matrix.

    Parameters
    ----------
    kernel : Kernel
        `NGram`, `Spectrum`, `Mismatch`, `Gappy`, `WeightedDegree` or `AllSubstrings`; also scaled or ``.normalized()``.
    support : collection of strings
        What the kernel takes.
    coef : array of float
        One for each support string.
    intercept : float, default=0.0
        Added to all values.

    Examples
    --------
    >>> from mercer.kernels import LinearStringModel, NGram
    >>> model = LinearStringModel(NGram(2), ["abab", "bcbc"], [1.0, -0.5])
    >>> model.predict(["ab", "bc", "abc"])
    array([ 2., -1.,  1.])
    """

    intercept: float
    _base: Any
    _normalized: bool
    _kind: Any
    _letters: np.ndarray | None
    _scorer: Any

    def __init__(self, kernel: Kernel, support: Any, coef: Any, intercept: float = 0.0) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel of strings, got {kernel!r}")
        kernel._check_params()
        self.kernel = kernel
        support = list(support) if not hasattr(support, "__len__") else support
        self.support = support
        self.coef = np.asarray(coef, np.float64)
        if self.coef.shape != (len(support),) or not np.isfinite(self.coef).all():
            raise ValueError(f"coef must be finite numbers, one for each of the {len(support)} support strings")
        if isinstance(intercept, bool) or not isinstance(intercept, Real) or not np.isfinite(intercept):
            raise ValueError(f"intercept must be a finite number, got {intercept!r}")
        self.intercept = float(intercept)
        self._base, scale, self._normalized = _unwrapped(kernel)
        prepared = self._base._prepared("support", support)
        weights = scale * self.coef
        if self._normalized:
            weights = weights * _inverse_norms(self._base, prepared)
        self._build(prepared, weights)
        self._kind = prepared[0:0]

    def __repr__(self) -> str:
        return f"LinearStringModel({self.kernel!r}, {len(self.coef)} support strings)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.support, self.coef, self.intercept)

    def predict(self, X: Any) -> np.ndarray:
        """Return f of strings.

        Parameters
        ----------
        X : collection of strings
            What the kernel takes.

        Returns
        -------
        ndarray of shape (len(X),)
        """
        prepared = self._base._prepared("X", X)
        same_kind(self._kind, prepared)
        if self._letters is None:
            rows = _rows(self._base, prepared)
            scores = self._scorer.scores(rows.offsets, rows.keys, rows.values)
        else:
            scores = self._scorer.scores(_numbers_among(self._letters, prepared), prepared.offsets, 1)
        if self._normalized:
            scores = scores * _inverse_norms(self._base, prepared)
        return scores + self.intercept

    def _build(self, prepared: Any, weights: np.ndarray) -> None:
        self._letters = None
        if isinstance(prepared, _Counted) or isinstance(self._base, WeightedDegree):
            rows = _rows(self._base, prepared)
            self._scorer = _core.kernels.KeyTable(rows.keys, rows.values * np.repeat(weights, np.diff(rows.offsets)))
            return
        self._letters = np.unique(prepared.codes if prepared.hashes is None else prepared.hashes)
        codes = _numbers_among(self._letters, prepared)
        W = _cumulative(self._base, _longest(prepared, None))
        self._scorer = _core.kernels.SubstringModel(codes, prepared.offsets, len(self._letters), weights, W)


def _unwrapped(kernel: Kernel) -> tuple[Kernel, float, bool]:
    """The kernel of strings inside, a scale, and whether it is normalised."""
    scale, normalized = 1.0, False
    while isinstance(kernel, (Scaled, Normalized)):
        if isinstance(kernel, Normalized):
            normalized = True
        elif not normalized:  # a scale within normalized() cancels out
            scale *= float(kernel.scale)
        kernel = kernel.kernel
    if not isinstance(kernel, (_Counts, AllSubstrings, WeightedDegree)):
        raise ValueError(
            "kernel must be NGram, Spectrum, Mismatch, Gappy, WeightedDegree or AllSubstrings, scaled or normalised, "
            f"got {kernel!r}"
        )
    return kernel, scale, normalized


def _inverse_norms(kernel: Kernel, prepared: Any) -> np.ndarray:
    norms = np.sqrt(kernel._diag(prepared, Work()))
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def _rows(kernel: Any, prepared: Any) -> KeyedRows:
    return prepared.rows if isinstance(prepared, _Counted) else kernel._counted(prepared).rows


def _numbers_among(letters: np.ndarray, symbols: Symbols) -> np.ndarray:
    """Numbers of the symbols among sorted letters (characters or hashes); UNKNOWN for others."""
    if len(letters) == 0 or len(symbols.codes) == 0:
        return np.full(len(symbols.codes), UNKNOWN, np.uint32)
    own = np.arange(1 + int(symbols.codes.max()), dtype=letters.dtype) if symbols.hashes is None else symbols.hashes
    at = np.minimum(np.searchsorted(letters, own), len(letters) - 1)
    return np.where(letters[at] == own, at, UNKNOWN).astype(np.uint32)[symbols.codes]
