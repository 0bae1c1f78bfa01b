"""The quality of a table of attributes: separation of classes, redundancy, encoding error, and an error bound.

    ε = (1/N) Σ_i ‖A_{y_i} − f(x_i)‖,    ρ = min_{j≠k} ‖A_j − A_k‖,    r = (1/l) ‖AᵀA − I‖²

A wrongly decoded row has ‖A_y − f‖ ≥ ρ/2. So the error rate of decoding by distance is at most 2ε/ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._display import Displayed
from mercer._validation import check_choice
from mercer.attributes._checks import check_table
from mercer.attributes.category import CategoryAttributes, decoded

__all__ = ["AttributeReport", "attribute_report"]


@dataclass(frozen=True, repr=False)
class AttributeReport(Displayed):
    """The result of `attribute_report`.

    Attributes
    ----------
    n_classes, n_attributes : int
        Size of the table.
    separation : float
        ρ, the smallest distance between the descriptions of two classes.
    average_separation : float
        The mean distance.
    redundancy : float
        r.
    encoding_error : float or None
        ε, where rows were given.
    error_bound : float or None
        2ε/ρ, at most 1.
    error : float or None
        Error rate of decoding by distance.
    table : ndarray of shape (n_classes, n_attributes)
        The table, normalised as requested.
    classes : ndarray or None
        Names of the classes.
    """

    n_classes: int
    n_attributes: int
    separation: float
    average_separation: float
    redundancy: float
    encoding_error: float | None
    error_bound: float | None
    error: float | None
    table: np.ndarray
    classes: np.ndarray | None

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values, as text."""
        rows = [
            ("classes", f"{self.n_classes}"),
            ("attributes", f"{self.n_attributes}"),
            ("smallest separation ρ", f"{self.separation:.3f}"),
            ("average separation", f"{self.average_separation:.3f}"),
            ("redundancy r", f"{self.redundancy:.3f}"),
        ]
        if self.encoding_error is not None and self.error_bound is not None and self.error is not None:
            rows += [
                ("encoding error ε", f"{self.encoding_error:.3f}"),
                ("bound 2ε/ρ on the error", f"{self.error_bound:.3f}"),
                ("error of decoding by distance", f"{self.error:.3f}"),
            ]
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{name:<32}{value:>8}" for name, value in self.rows())


def attribute_report(A: Any, X: Any = None, y: Any = None, *, normalize: str | None = None) -> AttributeReport:
    """Return separation, redundancy and encoding error of a table of attributes.

    Parameters
    ----------
    A : CategoryAttributes or array of shape (n_classes, n_attributes)
        A fitted model, or a table.
    X : array, optional
        With a model, its inputs; with a table, the predicted attributes f(x) of rows.
    y : array of shape (n_rows,), optional
        Classes of these rows; with a table, their row numbers in it.
    normalize : {"rows", "columns"} or None, default=None
        Scale rows or columns of the table, and the predicted attributes with them, to length 1.

    Returns
    -------
    AttributeReport
        The named values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.attributes import attribute_report
    >>> report = attribute_report(np.eye(3), [[1, 0, 0], [0, 0.9, 0]], [0, 1])
    >>> round(report.separation, 3), report.redundancy, report.error
    (1.414, 0.0, 0.0)
    """
    check_choice("normalize", normalize, (None, "rows", "columns"))
    classes, F, labels = None, None, None
    if isinstance(A, CategoryAttributes):
        model, A = A, A.attributes_
        classes = model.classes_
        F = None if X is None else model.transform(X)
    elif X is not None:
        F = check_table("X", X, len(X))
    A = check_table("A", A, len(A))
    if len(A) < 2:
        raise ValueError("A must have two classes or more")
    if (F is None) != (y is None):
        raise ValueError("X and y must be given together, or neither of them")
    if F is not None:
        labels = _places(y, classes, len(A), len(F))
        if F.shape[1] != A.shape[1]:
            raise ValueError(f"X has {F.shape[1]} attributes and A {A.shape[1]}: they must be the same")
    A, F = _normalized(A, F, normalize)
    distances = -decoded(A, A, "euclidean")[np.triu_indices(len(A), 1)]
    rho = float(distances.min())
    gram = A.T @ A
    redundancy = float(((gram - np.eye(len(gram))) ** 2).sum() / A.shape[1])
    epsilon = bound = error = None
    if F is not None and labels is not None:
        epsilon = float(np.linalg.norm(A[labels] - F, axis=1).mean())
        bound = min(1.0, 2.0 * epsilon / rho) if rho > 0 else 1.0
        error = float((decoded(F, A, "euclidean").argmax(axis=1) != labels).mean())
    return AttributeReport(
        len(A), A.shape[1], rho, float(distances.mean()), redundancy, epsilon, bound, error, A, classes
    )  # fmt: skip


def _places(y: Any, classes: np.ndarray | None, n_classes: int, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have an entry for each of the {n} rows of X, got shape {y.shape}")
    if classes is not None:
        place = {label: k for k, label in enumerate(classes.tolist())}
        unknown = [label for label in y.tolist() if label not in place]
        if unknown:
            raise ValueError(f"y has the class {unknown[0]!r}, which the model does not know")
        return np.array([place[label] for label in y.tolist()], np.int64)
    if y.dtype.kind not in "iu" or (len(y) and (y.min() < 0 or y.max() >= n_classes)):
        raise ValueError(f"y must hold places 0 to {n_classes - 1} in the table")
    return y.astype(np.int64)


def _normalized(A: np.ndarray, F: np.ndarray | None, how: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    if how is None:
        return A, F
    axis = 1 if how == "rows" else 0
    length = np.linalg.norm(A, axis=axis, keepdims=True)
    if (length == 0).any():
        raise ValueError(f"A has {'a row' if how == 'rows' else 'a column'} of zeros, which cannot be normalised")
    if F is None:
        return A / length, None
    own = np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-300) if how == "rows" else length
    return A / length, F / own
