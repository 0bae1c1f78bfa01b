"""Kernels of label sets: the similarity of two outputs.

A label set is a vector y of 0 and 1, and its code v is one of

    "centred"      y − m, m the shares of the labels in training: the presence of a rare label counts most
    "signs"        2 y − 1
    "indicator"    y

    linear         K(y, y') = v'Ω v                    Ω the identity unless given
    polynomial     K(y, y') = (v'v + c)^d − c^d
    log odds       K(y, y') = v'Q v,   Q_rs = log P(r, s) P(r̄, s̄) / (P(r, s̄) P(r̄, s))  [Xiong2015b]

each divided so that K(y, y) = 1, of v of unit length. [Xiong2015b] includes the constant c^d; it is left out here. All
sets share it, and a model without an offset would use it to fit the mean label set. For the same reason the centred
polynomial kernel is centred again in its own space, K(y, y') − E K(y, z) − E K(z, y') + E K(z, z') over label sets z of
training. Q needs nonzero counts and is not positive semi-definite. So ``smoothing`` is added to all counts, on the
diagonal too, and negative eigenvalues are clipped (or Q'Q is taken).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer._state.saved import Csr, Fields, Floats, Optional, Saved, Transient
from mercer._state.values import Codec, Reader, Writer, register
from mercer._validation import check_choice, check_count, check_not_negative, check_positive

__all__ = ["LabelSetKernel", "LinearOutput", "LogOddsOutput", "OutputKernel", "PolynomialOutput"]

_FEW = 64  # labels up to which dense products are the faster ones
_LARGEST = 1e6  # coef0
CODES = ("centred", "signs", "indicator")


class LabelSetKernel(Saved):
    """A kernel of label sets, with the statistics of the training labels.

    Parameters
    ----------
    code : {"centred", "signs", "indicator"}
    shares : array of shape (n_labels,)
        Shares of the labels in training.
    factor : array of shape (n_labels, rank), optional
        P with Ω = P P'.
    degree : int, default=1
    coef0 : float, default=0.0

    Attributes
    ----------
    sets_ : sparse matrix of shape (n_sets, n_labels)
        The distinct label sets of training, if the kernel is centred on them.
    set_shares_ : array of shape (n_sets,)
        Their shares in training.
    """

    saved = Fields(
        sets_=Optional(Csr(None, "shares")),
        set_shares_=Optional(Floats("sets_", low=0.0, high=1.0)),
        _reference=Transient(),
    )

    def __init__(
        self, code: str, shares: np.ndarray, factor: np.ndarray | None = None, degree: int = 1, coef0: float = 0.0
    ) -> None:
        self.code = code
        self.shares = shares
        self.factor = factor
        self.degree = degree
        self.coef0 = coef0
        self._reference: tuple[np.ndarray, np.ndarray, float] | None = None

    def centred_on(self, Y: sp.csr_matrix, weights: np.ndarray | None = None) -> LabelSetKernel:
        """Take the mean of these label sets as the origin in the space of the kernel."""
        packed = np.packbits(Y.toarray() > 0, axis=1)
        _, first, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        self.sets_ = sp.csr_matrix(Y)[first]
        counts = np.bincount(kind.ravel(), weights, minlength=len(first))
        self.set_shares_, self._reference = counts / counts.sum(), None
        return self

    @property
    def is_linear(self) -> bool:
        """Return whether a score is linear in the labels, so that each label has its own score."""
        return self.degree == 1

    def features(self, Y: Any) -> np.ndarray:
        """Return unit rows whose inner products are the linear part of the kernel; 0 where the code is 0."""
        V = self._codes(Y)
        if self.factor is not None:
            V = V @ self.factor
        return V * _reciprocal(np.sqrt(np.einsum("ij,ij->i", V, V)))[:, None]

    def _codes(self, Y: Any) -> np.ndarray:
        V = np.asarray(Y.toarray() if sp.issparse(Y) else Y, np.float64)
        return V - self.shares if self.code == "centred" else 2.0 * V - 1.0 if self.code == "signs" else V

    def of_features(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the kernel values of rows of `features`."""
        K = self._powered(U @ V.T)
        return K if getattr(self, "sets_", None) is None else self._centred(K, U, V)

    def _centred(self, K: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Kernel values of rows of `features`, from those that are not centred."""
        if self._reference is None:
            R = self.features(self.sets_)
            means = self._powered(R @ R.T) @ self.set_shares_
            self._reference = R, means, float(self.set_shares_ @ means)
        R, _, grand = self._reference
        rows = self._powered(U @ R.T) @ self.set_shares_
        columns = rows if V is U else self._powered(V @ R.T) @ self.set_shares_
        K -= rows[:, None].astype(K.dtype, copy=False)
        K -= (columns - grand).astype(K.dtype, copy=False)
        for W, means, axis in ((U, rows, 0), (V, columns, 1)):
            squares = self._powered(np.einsum("ij,ij->i", W, W)) - 2.0 * means + grand
            scale = _reciprocal(np.sqrt(np.maximum(squares, 0.0))).astype(K.dtype, copy=False)
            K *= scale[:, None] if axis == 0 else scale
        return K

    def _powered(self, K: np.ndarray) -> np.ndarray:
        if not self.is_linear:
            constant = self.coef0**self.degree
            K += self.coef0
            K **= self.degree
            K -= constant
            K /= (1.0 + self.coef0) ** self.degree - constant
        return K

    def gram(self, Y: sp.csr_matrix, dtype: Any = np.float64) -> np.ndarray:
        """Return the kernel values of all pairs of rows; codes that are sparse up to an offset use sparse products."""
        if self.factor is not None or Y.shape[1] <= _FEW:
            V = self.features(Y).astype(dtype, copy=False)
            return self.of_features(V, V)
        K = (Y @ Y.T).toarray().astype(np.float64, copy=False)
        if self.code == "centred":
            along = np.asarray(Y @ self.shares).ravel()
            K -= along[:, None]
            K -= along - self.shares @ self.shares
        elif self.code == "signs":
            sizes = np.asarray(Y.sum(axis=1)).ravel()
            K *= 4.0
            K -= 2.0 * sizes[:, None]
            K -= 2.0 * sizes - Y.shape[1]
        scale = _reciprocal(np.sqrt(np.maximum(np.diag(K), 0.0)))
        K *= scale[:, None]
        K *= scale
        K = self._powered(K.astype(dtype, copy=False))
        if getattr(self, "sets_", None) is None:
            return K
        V = self.features(Y)
        return self._centred(K, V, V)

    def expand(self, K: np.ndarray, alpha: np.ndarray, Y: sp.csr_matrix) -> np.ndarray:
        """Return K diag(alpha) V, with V the `features` of Y, by sparse products where these are cheaper."""
        if self.factor is not None or Y.shape[1] <= _FEW or Y.nnz * 4 > Y.shape[0] * Y.shape[1]:
            coef = (alpha[:, None] * self.features(Y)).astype(K.dtype, copy=False)
            return (K @ coef).astype(np.float64, copy=False)
        V = self._codes(Y)
        weights = alpha * _reciprocal(np.sqrt(np.einsum("ij,ij->i", V, V)))
        scaled = sp.csr_matrix(sp.diags(weights) @ Y)
        out = np.ascontiguousarray((scaled.T @ K.T).T)
        if self.code == "centred":
            out -= np.outer(K @ weights, self.shares)
        elif self.code == "signs":
            out *= 2.0
            out -= (K @ weights)[:, None]
        return out

    def __call__(self, Y: Any, Z: Any = None) -> np.ndarray:
        """Return the matrix of kernel values of label sets."""
        U = self.features(Y)
        return self.of_features(U, U if Z is None else self.features(Z))

    def label_scores(self, F: np.ndarray) -> np.ndarray:
        """Return scores of single labels from rows in feature space: the contribution of a label to ⟨F, P'y⟩."""
        return F if self.factor is None else F @ self.factor.T

    def _check_state(self) -> None:
        check_choice("code", self.code, CODES)
        check_count("degree", self.degree)
        _check_constant(self.coef0)
        sets, set_shares = getattr(self, "sets_", None), getattr(self, "set_shares_", None)
        if (sets is None) != (set_shares is None) or (sets is None) == (self.code == "centred" and self.degree > 1):
            raise ValueError("only centred polynomial kernels hold the label sets of training")
        if sets is not None and not np.isin(sets.data, (0.0, 1.0)).all():
            raise ValueError("sets_ must hold 0 and 1")
        shares, factor = self.shares, self.factor
        if not isinstance(shares, np.ndarray) or shares.ndim != 1 or shares.dtype != np.float64:
            raise ValueError("shares must be a vector of numbers")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("shares must lie between 0 and 1")
        if factor is None:
            return
        if not isinstance(factor, np.ndarray) or factor.ndim != 2 or factor.dtype != np.float64:
            raise ValueError("factor must be a matrix of numbers")
        if len(factor) != len(shares) or not factor.shape[1] or not np.isfinite(factor).all():
            raise ValueError(f"factor must have {len(shares)} rows of finite numbers")


def _check_constant(coef0: Any) -> None:
    if check_not_negative("coef0", coef0) > _LARGEST:
        raise ValueError(f"coef0 must be at most {_LARGEST:g}, got {coef0!r}: the power would be rounded off")


def _reciprocal(lengths: np.ndarray) -> np.ndarray:
    """1 / lengths, 0 for what is nothing beside the longest."""
    nothing = lengths <= 1e-7 * max(1.0, float(lengths.max(initial=0.0)))
    return np.where(nothing, 0.0, 1.0 / np.where(nothing, 1.0, lengths))


class OutputKernel(BaseEstimator):
    """Base class of kernels of label sets."""

    def for_labels(self, Y: sp.csr_matrix, weights: np.ndarray | None = None) -> LabelSetKernel:
        """Return the kernel with the statistics of the training labels; rows may have weights."""
        raise NotImplementedError


def _shares(Y: Any, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:
        return np.asarray(Y.mean(axis=0)).ravel().astype(np.float64)
    return np.asarray(weights @ Y, np.float64).ravel() / weights.sum()


class LinearOutput(OutputKernel):
    """Compare label sets by their common labels.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels), optional
        Ω, symmetric and positive semi-definite: the similarity of two labels. None: different labels have similarity 0.
    code : {"centred", "signs", "indicator"}, default="centred"
        Coding of a label set: y minus the shares of the labels, 2 y − 1, or y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import LinearOutput
    >>> LinearOutput(code="indicator").for_labels(np.array([[1, 1], [1, 0]]))(np.array([[1, 1], [1, 0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, matrix: Any = None, code: str = "centred") -> None:
        self.matrix = matrix
        self.code = code

    def for_labels(self, Y: sp.csr_matrix, weights: np.ndarray | None = None) -> LabelSetKernel:
        """Return the kernel with the statistics of the training labels; rows may have weights."""
        check_choice("code", self.code, CODES)
        factor = None
        if self.matrix is not None:
            omega = np.asarray(self.matrix, np.float64)
            if omega.shape != (Y.shape[1], Y.shape[1]) or not np.isfinite(omega).all():
                raise ValueError(
                    f"matrix must be a finite array of shape ({Y.shape[1]}, {Y.shape[1]}), got {omega.shape}"
                )
            if np.abs(omega - omega.T).max() > 1e-8 * max(np.abs(omega).max(), 1e-300):
                raise ValueError("matrix must be symmetric")
            values, vectors = np.linalg.eigh(omega)
            if values[0] < -1e-8 * max(values[-1], 0.0) or values[-1] <= 0:
                raise ValueError(
                    f"matrix is not positive semi-definite: its smallest eigenvalue is {values[0]:.3g}; clip its"
                    " eigenvalues, or use matrix.T @ matrix"
                )
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
        return LabelSetKernel(self.code, _shares(Y, weights), factor)


class PolynomialOutput(OutputKernel):
    """Compare label sets by their common groups of one to ``degree`` labels.

    Parameters
    ----------
    degree : int, default=2
    coef0 : float, default=1.0
        c, at least 0: larger values give small groups more weight. The constant c^d is left out.
    code : {"centred", "signs", "indicator"}, default="centred"

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import PolynomialOutput
    >>> Y = np.array([[1, 1], [1, 0]])
    >>> PolynomialOutput(degree=2, coef0=0.0, code="indicator").for_labels(Y)(Y).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, degree: int = 2, coef0: float = 1.0, code: str = "centred") -> None:
        self.degree = degree
        self.coef0 = coef0
        self.code = code

    def for_labels(self, Y: sp.csr_matrix, weights: np.ndarray | None = None) -> LabelSetKernel:
        """Return the kernel with the statistics of the training labels; rows may have weights."""
        check_choice("code", self.code, CODES)
        check_count("degree", self.degree)
        _check_constant(self.coef0)
        kernel = LabelSetKernel(self.code, _shares(Y, weights), None, int(self.degree), float(self.coef0))
        return kernel.centred_on(sp.csr_matrix(Y), weights) if self.code == "centred" and self.degree > 1 else kernel


class LogOddsOutput(OutputKernel):
    """Compare label sets by the log odds ratios of their labels in training.

    Parameters
    ----------
    smoothing : float, default=0.5
        Added to the four counts of every pair of labels, and of a label with itself, so that no ratio is infinite.
    repair : {"clip", "square"}, default="clip"
        How the matrix is made positive semi-definite: negative eigenvalues become 0, or it is multiplied by itself.
    code : {"centred", "signs", "indicator"}, default="centred"

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import LogOddsOutput
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
    >>> matrix, smallest = LogOddsOutput().matrix(Y)
    >>> matrix.round(1)[0]
    array([ 3. ,  1.6, -1.6])

    References
    ----------
    .. [Xiong2015b] H. Xiong, S. Szedmak and J. Piater. Scalable, accurate image annotation with joint SVMs and output
       kernels. Neurocomputing, 2015.
    """

    def __init__(self, smoothing: float = 0.5, repair: str = "clip", code: str = "centred") -> None:
        self.smoothing = smoothing
        self.repair = repair
        self.code = code

    def matrix(self, Y: Any, weights: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return Q before the repair, and its smallest eigenvalue.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_rows, n_labels)
        weights : array of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        Q : array of shape (n_labels, n_labels)
        smallest : float
        """
        check_positive("smoothing", self.smoothing)
        Y = sp.csr_matrix(Y, dtype=np.float64)
        n, s = Y.shape[0] if weights is None else float(weights.sum()), float(self.smoothing)
        both = (Y.T @ Y if weights is None else Y.T @ Y.multiply(weights[:, None]).tocsr()).toarray()
        ones = np.diag(both)
        only = ones[:, None] - both
        neither = n - ones[:, None] - ones[None, :] + both
        Q = np.log(both + s) + np.log(neither + s) - np.log(only + s) - np.log(only.T + s)
        return Q, float(np.linalg.eigvalsh(Q)[0])

    def for_labels(self, Y: sp.csr_matrix, weights: np.ndarray | None = None) -> LabelSetKernel:
        """Return the kernel with the statistics of the training labels; rows may have weights."""
        check_choice("code", self.code, CODES)
        check_choice("repair", self.repair, ("clip", "square"))
        Q, _ = self.matrix(Y, weights)
        values, vectors = np.linalg.eigh(Q)
        scales = np.abs(values) if self.repair == "square" else np.sqrt(np.maximum(values, 0.0))
        kept = scales > 1e-12 * scales.max()
        return LabelSetKernel(self.code, _shares(Y, weights), np.ascontiguousarray(vectors[:, kept] * scales[kept]))


# ---------------------------------------------------------------------------------------------------- model files

_KINDS = {cls.__name__: cls for cls in (LinearOutput, PolynomialOutput, LogOddsOutput)}


def _write(kernel: OutputKernel, out: Writer) -> dict[str, Any]:
    name = type(kernel).__name__
    if _KINDS.get(name) is not type(kernel):
        raise TypeError(f"{kernel!r} cannot be written to a model file")
    return {"name": name, "parameters": {k: out.node(v, k) for k, v in kernel.get_params(deep=False).items()}}


def _read(node: dict[str, Any], source: Reader) -> OutputKernel:
    cls = _KINDS.get(node["name"])
    if cls is None:
        raise ValueError(f"there is no kernel of label sets {node['name']!r}")
    values = {name: source.value(part) for name, part in node["parameters"].items()}
    unknown = set(values) - set(inspect.signature(cls).parameters)
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {sorted(unknown)[0]!r}")
    return cls(**values)


register(OutputKernel, Codec("output kernel", _write, _read))
