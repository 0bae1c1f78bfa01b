"""Code shared by kernel methods: the kernel, targets, expansions in blocks, model files.

A fitted method is an expansion over stored objects, f(x) = Σ_j coef_j k(x, x_j) + b. This code does not depend on the
type of the objects.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from mercer._estimator import Estimator
from mercer._explain import ScoreModel, ScoreRows
from mercer._state.saved import Fields, Ints, Number, Objects, Optional, Saved
from mercer._validation import check_positive, check_sparse, thread_count
from mercer._warnings import warn_caller
from mercer.data.graphs import Graph, Graphs
from mercer.data.trees import Tree
from mercer.exceptions import DataScaleWarning
from mercer.kernel_methods._precomputed import check_symmetric, is_precomputed
from mercer.kernel_methods._rows import RowsOnDemand
from mercer.kernel_methods.collections import count, taken
from mercer.kernels import Gaussian, Kernel, Linear, OnColumn
from mercer.kernels.base import Work, check_kernel, require_positive_definite
from mercer.maps.spectra import scale_gamma

__all__ = ["KernelMethod", "class_codes", "real_targets", "weights_of"]

_VALUES = 1 << 22  # kernel values held at a time when predicting
_LOOKED_AT = 500  # objects among which a degenerate matrix is looked for


def warn_of_degenerate(K: np.ndarray, kernel: Any) -> None:
    """Warn of a Gram matrix without information: all objects are orthogonal, or all are the same."""
    part = K[:_LOOKED_AT, :_LOOKED_AT]
    n = len(part)
    if n < 3:
        return
    size = np.abs(part)
    norms = np.sqrt(np.diagonal(size))
    alike = (size - np.diag(norms**2)).max() <= 1e-6 * float(norms.min()) ** 2
    if float(np.ptp(part)) <= 1e-6 * float(size.max(initial=0.0)):
        problem = "all objects look the same to"
    elif alike:
        problem = "no two objects have anything in common for"
    else:
        return
    warn_caller(
        f"{problem} the kernel {kernel!r}: predictions will not depend on the data. Rescale X, or choose the kernel's"
        " width by the data",
        DataScaleWarning,
    )


class KernelMethod(Saved, ScoreModel, Estimator):
    """An estimator with a kernel and the objects that its expansion needs.

    A subclass stores the objects in ``support_objects_`` and their indices among the training objects in ``support_``.
    """

    _parts_reason = (
        "a kernel machine compares examples with each other; map them first (FourierFeatures, CirculantProjection), "
        "and fit LinearClassifier to the maps"
    )

    kernel: Any
    n_jobs: int | None
    gamma_: float
    cache_size: float  # of those that can do without the matrix
    _gaussian = False
    """Whether ``kernel=None`` is a Gaussian with a width from the training data; otherwise it is the linear kernel."""

    saved = Fields(support_=Ints(None), support_objects_=Optional(Objects()), gamma_=Optional(Number(0.0)))

    # ------------------------------------------------------------------ the kernel and its matrices

    @property
    def _precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def _takes_conditional(self) -> bool:
        """Whether a conditionally positive definite kernel will do: no shift of feature space changes the method."""
        return False

    def _takes_any(self) -> bool:
        """Whether any kernel will do, an indefinite one too."""
        return False

    def _checked_kernel(self) -> Kernel:
        """The kernel to use; raises ValueError for one that the method cannot take."""
        if self.kernel is None:
            return Gaussian(self.gamma_) if self._gaussian else Linear()
        if isinstance(self.kernel, str):
            raise ValueError(
                f"kernel must be a Kernel such as mercer.kernels.Gaussian(), 'precomputed' or None, got {self.kernel!r}"
            )
        kernel = check_kernel("kernel", self.kernel)
        kernel._check_params()
        if not self._takes_any():
            require_positive_definite(kernel, type(self).__name__, conditional=self._takes_conditional())
        return kernel

    def _training_kernel(self, X: Any, weights: np.ndarray | None) -> Kernel:
        """The kernel to learn with; where None is a Gaussian, of a width from collected objects and their weights."""
        if self.kernel is not None or not self._gaussian:
            return self._checked_kernel()
        if count(X) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        _check_rows(type(self).__name__, X)
        return Gaussian(scale_gamma(Gaussian()._prepared("X", X).matrix(), weights))

    def _collected(self, X: Any, reset: bool) -> Any:
        """X as a collection with a length; tables must have the columns that they had in training."""
        thread_count(self.n_jobs)
        if hasattr(X, "__array__") and not hasattr(X, "__len__"):
            X = np.asarray(X)
        if isinstance(X, (str, bytes)) or not (hasattr(X, "__len__") or hasattr(X, "__iter__")):
            raise ValueError(f"X must be a collection of objects, got {type(X).__name__}")
        if self._precomputed:
            return self._matrix(X, reset)
        X = check_sparse("X", X).tocsr() if sp.issparse(X) else X if hasattr(X, "__len__") else list(X)
        dimensions = len(getattr(X, "shape", ()))
        if dimensions == 2 and not _reads_columns(self.kernel):
            _check_columns(self, X, reset)
        elif dimensions == 1 and not reset and isinstance(X, np.ndarray) and hasattr(self, "n_features_in_"):
            raise ValueError(
                f"Expected 2D array as in fit, got 1D array of {len(X)} values instead. Reshape your data:"
                " X.reshape(1, -1) is one object, X.reshape(-1, 1) objects of one number each"
            )
        return X

    def _matrix(self, X: Any, reset: bool) -> np.ndarray:
        K = check_array(check_sparse("X", X), accept_sparse="csr", dtype=np.float64, estimator=self)
        K = K.toarray() if sp.issparse(K) else K
        if not reset:
            _check_columns(self, X, reset)
            return K
        check_symmetric("kernel", "X", K)
        _check_columns(self, X, reset)
        return K

    def _gram(self, X: Any, weights: np.ndarray | None = None, *, single: bool = False) -> np.ndarray:
        """The matrix of collected training objects, which may have weights.

        ``single``: in single precision if the kernel is one of distances, whose values are at most 1.
        """
        if self._precomputed:
            return X
        kernel = self._training_kernel(X, weights)
        dtype = np.float32 if single and getattr(kernel, "_diagonal", None) == 1.0 else np.float64
        K = kernel(X, dtype=dtype, n_jobs=self.n_jobs, verbose=getattr(self, "verbose", 0))
        if len(K) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        if not np.isfinite(K).all():
            raise ValueError(f"the kernel {self.kernel!r} gave a value that is NaN or infinite")
        warn_of_degenerate(K, self.kernel)
        return K

    def _fits(self, X: Any) -> bool:
        """Whether the matrix of the training objects is there already, or is no larger than `cache_size`."""
        return self._precomputed or 8.0 * count(X) ** 2 <= self.cache_size * 1e6

    def _rows_on_demand(self, X: Any, weights: np.ndarray) -> RowsOnDemand:
        """What solves programs over training objects whose matrix does not fit."""
        warn_of_degenerate(self._sampled_gram(X, weights, _LOOKED_AT)[0], self.kernel)
        kernel = self._training_kernel(X, weights)
        return RowsOnDemand(kernel, X, self.cache_size, self.n_jobs, getattr(self, "verbose", 0))

    def _sampled_gram(self, X: Any, weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """The matrix of at most so many training objects with a weight, at equal distances, and their weights."""
        there = np.flatnonzero(weights > 0)
        places = there[np.linspace(0, len(there) - 1, min(most, len(there))).astype(np.int64)]
        K = self._training_kernel(X, weights)(taken(X, places), n_jobs=self.n_jobs)
        if not np.isfinite(K).all():
            raise ValueError(f"the kernel {self.kernel!r} gave a value that is NaN or infinite")
        return K, weights[places]

    def _keep(self, X: Any, chosen: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Keep the objects with these places, and the width of a default kernel; of a matrix only the places."""
        if self._gaussian and self.kernel is None:
            self.gamma_ = self._training_kernel(X, weights).gamma
        else:
            self.__dict__.pop("gamma_", None)  # of an earlier fit
        self.support_ = np.asarray(chosen, np.int64)
        self.support_objects_ = None if self._precomputed else taken(X, self.support_)

    def _expanded(self, X: Any, coef: np.ndarray, check: Callable[[np.ndarray], None] | None = None) -> np.ndarray:
        """Σ_j k(x, x_j) coef_j over the objects kept, for every x; ``check`` sees the kernel values first."""
        self._check_fitted()
        X = self._collected(X, reset=False)
        if self._precomputed:
            values = X[:, self.support_]
            if check is not None:
                check(values)
            return values @ coef
        kernel = self._checked_kernel()
        A, S = kernel._prepared("X", X), kernel._prepared("support_objects_", self.support_objects_)
        work = Work(thread_count(self.n_jobs))
        step = max(1, _VALUES // max(1, len(S)))
        parts = []
        for at in range(0, len(A), step):
            values = kernel._whole(A[at : at + step], S, work)
            if check is not None:
                check(values)
            parts.append(values @ coef)
        return np.concatenate(parts) if parts else np.zeros((0, *coef.shape[1:]))

    def _nothing(self, X: Any, outputs: int) -> np.ndarray:
        """What `_expanded` gives where no object has a coefficient; X is checked all the same."""
        X = self._collected(X, reset=False)
        n = len(X) if self._precomputed else len(self._checked_kernel()._prepared("X", X))
        return np.zeros((n, outputs))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _as_function(self, coef: np.ndarray) -> Any:
        """Expansions over the objects kept as functions of the kernel's space, one for each column of ``coef``."""
        self._check_fitted()
        if self._precomputed:
            raise ValueError("a function needs a kernel and objects, but kernel='precomputed' has only their matrix")
        make = importlib.import_module("mercer.kernels.rkhs").RKHSFunction
        made = [make(self._checked_kernel(), self.support_objects_, column) for column in np.atleast_2d(coef.T)]
        return made[0] if len(made) == 1 else made

    # ------------------------------------------------------------------ looking inside

    def _score_rows(self) -> ScoreRows:
        """Coefficients of the support objects, one row for each function."""
        self._check_fitted()
        model: Any = self
        coef = np.atleast_2d(model.dual_coef_)
        constants = np.asarray(getattr(model, "intercept_", np.zeros(len(coef))), float)
        labels = model.classes_.tolist() if hasattr(model, "classes_") else None
        return ScoreRows(coef, constants, labels)

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """k(x, x_j) of the support objects."""
        n = len(self.support_)
        return np.arange(n), (self._expanded(one_object(x), np.eye(n))[0] if n else np.zeros(0))

    def _feature_name(self, column: int) -> str:
        """The place of a support object among the training objects, and what it is where that is short."""
        row = f"object {self.support_[column]}"
        objects = self.support_objects_
        if isinstance(objects, Graphs):
            return f"{row} ({objects[column].n_nodes} nodes)"
        if isinstance(objects, (list, tuple)) and isinstance(objects[column], (str, bytes)):
            text = repr(objects[column])
            return f"{row} {text if len(text) <= 40 else text[:39] + '…'}"
        return row

    # ------------------------------------------------------------------ scikit-learn's tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        """Raises ValueError for attributes from a file that do not fit together."""
        if self._gaussian and self.kernel is None:
            check_positive("gamma_", getattr(self, "gamma_", None))
        if not self._precomputed:
            self._checked_kernel()
        if not self._precomputed and count(self.support_objects_) != len(self.support_):
            raise ValueError(f"expected {len(self.support_)} objects, found {count(self.support_objects_)}")


def one_object(x: Any) -> Any:
    """Return a collection of one object; rows of numbers and rows of kernel values become a matrix of one row."""
    if sp.issparse(x) or hasattr(x, "iloc"):
        return x
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return np.atleast_2d(x)
    numeric = isinstance(x, (list, tuple)) and all(isinstance(value, numbers.Real) for value in x)
    return np.atleast_2d(np.asarray(x, float)) if numeric and len(x) else [x]


def _check_rows(name: str, X: Any) -> None:
    """Raises ValueError, with the kernels to use instead, unless the objects can be rows of numbers."""
    numeric = isinstance(X, np.ndarray) and X.dtype.kind not in "OUS"
    if numeric or sp.issparse(X) or hasattr(X, "iloc"):
        return
    first = X if isinstance(X, dict) else next(iter(X), None)
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    other = next(((kind, example) for types, kind, example in _OTHER_KERNELS if isinstance(first, types)), None)
    if other is None:
        if isinstance(first, (list, tuple, numbers.Number)) or sp.issparse(first) or hasattr(first, "__array__"):
            return
        other = f"objects of type {type(first).__name__}", "; mercer.kernels has some for strings, graphs and trees"
    kind, example = other
    raise ValueError(
        f"{name} needs a kernel for {kind}{example}: without one its kernel is a Gaussian, which takes rows of numbers"
    )


_OTHER_KERNELS: tuple[tuple[Any, str, str], ...] = (
    ((str, bytes), "strings", ", such as mercer.kernels.NGram() or Spectrum()"),
    ((Graph,), "graphs", ", such as mercer.kernels.WeisfeilerLehman() or ShortestPath()"),
    ((Tree,), "trees", ", such as mercer.kernels.SubsetTree() or PartialTree()"),
    ((dict,), "tables of columns", ", such as mercer.kernels.Linear().on([...])"),
    ((set, frozenset), "sets", ", such as mercer.kernels.Jaccard() or Intersection()"),
)


def _reads_columns(kernel: Any) -> bool:
    """Whether a kernel picks columns of tables itself, so that others may come and go."""
    if not isinstance(kernel, Kernel):
        return False
    return isinstance(kernel, OnColumn) or any(isinstance(v, OnColumn) for v in kernel.get_params().values())


def _check_columns(estimator: Any, X: Any, reset: bool) -> None:
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        estimator._check_feature_names(X, reset=reset)
        estimator._check_n_features(X, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)


# ---------------------------------------------------------------------------------------------------- targets


def check_lengths(X: Any, **others: Any) -> None:
    """Raise ValueError unless all other arguments have one entry per object."""
    n = count(X)
    for name, values in others.items():
        if len(values) != n:
            raise ValueError(f"X has {n} objects, but {name} has {len(values)} values")


def class_codes(estimator: Any, X: Any, y: Any, least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, and the class number of each object."""
    y = _targets(estimator, y)
    check_classification_targets(y)
    check_lengths(X, y=y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} classes, y has {len(classes)} class(es): {classes!r}"
        )
    return classes, codes


def real_targets(estimator: Any, X: Any, y: Any, columns: bool = False) -> np.ndarray:
    """Return finite targets, one number per object, or with ``columns`` also one row per object."""
    if columns and getattr(y, "ndim", 1) == 2:
        y = check_array(y, dtype=np.float64, input_name="y", estimator=estimator)
    else:
        y = _targets(estimator, y).astype(np.float64)
    check_lengths(X, y=y)
    return y


def _targets(estimator: Any, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fO":
        assert_all_finite(y, input_name="y")
    return y


def weights_of(
    X: Any, sample_weight: Any, classes: Any = None, codes: Any = None, class_weight: Any = None
) -> np.ndarray:
    """Return a nonnegative weight for each object: its own times that of its class."""
    n = count(X)
    if sample_weight is None:
        weights = np.ones(n)
    else:
        weights = np.array(sample_weight, dtype=np.float64)
        weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
        if weights.ndim != 1:
            raise ValueError(f"sample_weight must be 1D array or scalar, got {weights.ndim}D array")
        if weights.shape != (n,):
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}: one for each object")
        if not np.isfinite(weights).all() or weights.min(initial=0.0) < 0:
            raise ValueError("Negative values in data passed to `sample_weight`, or values that are not finite")
        if not weights.any():
            raise ValueError("sample_weight must not be zero for all objects: there is nothing to learn from")
    if class_weight is not None:
        weights = weights * compute_class_weight(class_weight, classes=classes, y=classes[codes])[codes]
    return weights


def check_rate(name: str, value: Any, high: float = 1.0) -> float:
    """Return a number in (0, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value <= high:
        raise ValueError(f"{name} must be a number in (0, {high:g}], got {value!r}")
    return float(value)


def check_limit(name: str, value: Any) -> float:
    """Return a number above 0, which may be infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or math.isnan(value) or value <= 0:
        raise ValueError(f"{name} must be a positive number or infinity, got {value!r}")
    return float(value)
