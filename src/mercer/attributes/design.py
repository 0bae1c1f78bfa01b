"""Class attributes designed from data: they separate classes, are alike for similar classes, and are not redundant.

    J(A) = Σ_ij ‖A_i − A_j‖² − λ Σ_ij S_ij ‖A_i − A_j‖² = 2 tr(AᵀQA),      Q = P − λL,
    P = M I − 11ᵀ,      L = diag(S1) − S                      A: classes × attributes, unit columns

Attributes are found one by one: a is the leading eigenvector of R, and R ← R − η aaᵀ keeps the next ones away from it
[Yu2013b]. Entries of a below a share of its largest one are set to 0; without that step every a is an eigenvector of Q,
and there are at most as many different attributes as classes. Repeated attributes are skipped. For new classes whose
similarities S' to the known ones are given (`adaptive`), their rows S'A are kept apart instead: Q = S'ᵀP'S' − λL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from mercer import _core
from mercer._validation import check_choice, check_count, check_not_negative, check_positive, check_weights
from mercer._warnings import warn_caller
from mercer.attributes._checks import check_classes, check_proximity, check_similarity, feature_rows

__all__ = ["design_attributes", "objective", "visual_proximity"]

_DIRECT = 160  # classes up to which all eigenvectors are computed each time
_KEPT = 24  # approximate eigenvectors that go from one attribute to the next


def design_attributes(
    S: Any,
    n_attributes: int,
    *,
    proximity_weight: float = 3.0,
    redundancy_weight: float = 15.0,
    sparsify: float = 0.1,
    adaptive: Any = None,
) -> np.ndarray:
    """Design attributes of classes from the proximity of the classes.

    Parameters
    ----------
    S : array of shape (n_classes, n_classes)
        Proximity of classes, symmetric and nonnegative, for example from `visual_proximity`. The diagonal is ignored.
    n_attributes : int
        Number of attributes; more than classes are possible with ``sparsify``.
    proximity_weight : float, default=3.0
        λ: weight of the similarity of near classes. Larger values make attributes easier to learn and bring classes
        closer together.
    redundancy_weight : float, default=15.0
        η: weight of the penalty on redundant attributes.
    sparsify : float, default=0.1
        Entries below this share of an attribute's largest entry become 0: the attribute ignores these classes.
    adaptive : array of shape (n_new_classes, n_classes), optional
        Similarities of new classes to the known ones. The attributes then separate the new classes.

    Returns
    -------
    ndarray of shape (n_classes, n_attributes)
        Columns of length 1; the largest entry of a column is positive.

    Raises
    ------
    ValueError
        If S is not a proximity, or fewer different attributes exist.

    References
    ----------
    .. [Yu2013b] F. X. Yu, L. Cao, R. S. Feris, J. R. Smith and S.-F. Chang. Designing category-level attributes for
       discriminative visual recognition. CVPR, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.attributes import design_attributes
    >>> S = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    >>> A = design_attributes(S, 2)
    >>> A[:, 0].round(2)  # tells the first two classes from the last two
    array([ 0.5,  0.5, -0.5, -0.5])
    """
    return _designed(S, n_attributes, proximity_weight, redundancy_weight, sparsify, adaptive, strict=True)


def _designed(
    S: Any, n_attributes: int, proximity: float, redundancy: float, sparsify: float, adaptive: Any, strict: bool
) -> np.ndarray:
    """The table; where it ends early, as no attribute is left that is different, an error if ``strict``."""
    S = check_proximity(S)
    n_attributes = check_count("n_attributes", n_attributes)
    check_not_negative("proximity_weight", proximity)
    check_not_negative("redundancy_weight", redundancy)
    if isinstance(sparsify, bool) or not isinstance(sparsify, (int, float)) or not 0 <= sparsify < 1:
        raise ValueError(f"sparsify must be a number from 0 to below 1, got {sparsify!r}")
    if len(S) < 2:
        raise ValueError("S must be of at least two classes")
    Q = _matrix(S, proximity, adaptive)
    # The same value for all classes tells none apart: no attribute has a part in that direction.
    leading = _Leading(Q - (len(S) + redundancy * n_attributes) / len(S))
    columns: list[np.ndarray] = []
    seen: set[bytes] = set()
    passed = 0
    while len(columns) < n_attributes and passed <= 3 * len(S):
        a = _fixed_sign(_sparse(leading.vector(), sparsify))
        leading.deflate(a, redundancy)
        key = np.round(a, 7).tobytes()
        if key in seen or not a.min() < 0 < a.max():  # passed over: the next one is further away from it
            passed += 1
            continue
        passed = 0
        seen.add(key)
        columns.append(a)
    if not columns or (strict and len(columns) < n_attributes):
        raise ValueError(
            f"n_attributes is {n_attributes}, but only {len(columns)} different attributes exist for these {len(S)} "
            f"classes with proximity_weight={proximity:g}, redundancy_weight={redundancy:g} and sparsify={sparsify:g}"
            + ("" if sparsify else "; with sparsify=0.1, the default, there are more")
        )
    return np.stack(columns, axis=1)


def objective(A: np.ndarray, S: np.ndarray, proximity_weight: float = 3.0, adaptive: Any = None) -> float:
    """Return J(A) / 2 = tr(AᵀQA): the separation of all classes, minus λ times that of near classes."""
    A = np.asarray(A, np.float64)
    return float(np.einsum("ij,ik,kj->", A, _matrix(check_proximity(S), proximity_weight, adaptive), A, optimize=True))


def _matrix(S: np.ndarray, proximity: float, adaptive: Any) -> np.ndarray:
    M = len(S)
    L = np.diag(S.sum(axis=1)) - S
    if adaptive is None:
        return M * np.eye(M) - 1.0 - proximity * L
    similarity = check_similarity("adaptive", adaptive, M)
    k = len(similarity)
    return similarity.T @ (k * np.eye(k) - 1.0) @ similarity - proximity * L


def _sparse(a: np.ndarray, share: float) -> np.ndarray:
    """a without its small entries, unless those are all that there is of one sign: then nothing could be learnt."""
    kept = np.where(np.abs(a) < share * np.abs(a).max(), 0.0, a)
    if kept.min() < 0 < kept.max():
        a = kept
    return a / np.linalg.norm(a)


def _fixed_sign(a: np.ndarray) -> np.ndarray:
    """The sign of an eigenvector is arbitrary: the first of the largest entries is positive."""
    size = np.abs(a)
    first = int(np.flatnonzero(size >= size.max() * (1 - 1e-9))[0])
    return a if a[first] > 0 else -a


class _Leading:
    """The leading eigenvector of a matrix that loses one multiple of aaᵀ after the other.

    A small matrix is factorised each time. For a large one some approximate eigenvectors are kept: after a loss the
    next leading one is nearly among them, and a few Lanczos vectors from its residual correct it.
    """

    def __init__(self, R: np.ndarray) -> None:
        self.R = R
        self.basis: np.ndarray | None = None
        if len(R) > _DIRECT:
            last = len(R) - 1
            self.basis = scipy.linalg.eigh(R, subset_by_index=(last - _KEPT + 1, last))[1][:, ::-1]
            self.image = R @ self.basis

    def deflate(self, a: np.ndarray, redundancy: float) -> None:
        self.R -= redundancy * np.outer(a, a)
        if self.basis is not None:
            self.image = self.image - redundancy * np.outer(a, a @ self.basis)

    def vector(self) -> np.ndarray:
        if self.basis is None:
            return np.asarray(scipy.linalg.eigh(self.R, check_finite=False)[1][:, -1])
        V, RV = self.basis, self.image
        for _ in range(60):
            values, turns = scipy.linalg.eigh(V.T @ RV, check_finite=False)
            turns = turns[:, ::-1][:, :_KEPT]
            top = V @ turns[:, 0]
            residual = RV @ turns[:, 0] - values[-1] * top
            if np.linalg.norm(residual) <= 1e-6 * max(abs(values[-1]), abs(values[0]), 1.0):
                break
            V, RV = self._grown(V @ turns, RV @ turns, residual)
        self.basis, self.image = V @ turns, RV @ turns
        return np.asarray(self.basis[:, 0])

    def _grown(self, V: np.ndarray, RV: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The basis and its image with eight Lanczos vectors more, from a residual."""
        grown, images = [V], [RV]
        new = residual
        for _ in range(8):
            for _ in range(2):
                for part in grown:
                    new = new - part @ (part.T @ new)
            length = np.linalg.norm(new)
            if length < 1e-12:
                break
            unit = (new / length)[:, None]
            image = self.R @ unit
            grown.append(unit)
            images.append(image)
            new = image[:, 0]
        return np.hstack(grown), np.hstack(images)


# ---------------------------------------------------------------------------------------------------- proximity


def visual_proximity(
    X: Any,
    y: Any,
    *,
    metric: str = "centers",
    n_neighbors: int = 10,
    sigma_scale: float = 0.5,
    C: float = 10.0,
    sample_weight: Any = None,
) -> np.ndarray:
    """Return the proximity of the classes of labelled rows: S = exp(−D/σ) among mutual nearest neighbours, else 0.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Rows. Pass the output of a kernel map for a proximity in the space of the kernel.
    y : array of shape (n_rows,)
        Their classes. The rows and columns of the result follow the sorted classes.
    metric : {"centers", "svm-margin"}, default="centers"
        D: the distance between the means of two classes, or the margin of the support vector machine between them.
    n_neighbors : int, default=10
        Two classes are near if each is among the ``n_neighbors`` nearest classes of the other.
    sigma_scale : float, default=0.5
        σ as a share of the mean distance.
    C : float, default=10.0
        Weight of the losses of the classifiers of "svm-margin".
    sample_weight : array of shape (n_rows,), optional
        Weights of rows in the means of classes, and in the losses of classifiers.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Symmetric, from 0 to 1, with a diagonal of 0.

    Examples
    --------
    >>> from mercer.attributes import visual_proximity
    >>> visual_proximity([[0.0], [0.1], [1.0], [9.0]], ["a", "a", "b", "c"], n_neighbors=1).round(2)
    array([[0.  , 0.73, 0.  ],
           [0.73, 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    check_choice("metric", metric, ("centers", "svm-margin"))
    n_neighbors = check_count("n_neighbors", n_neighbors)
    check_positive("sigma_scale", sigma_scale)
    X = feature_rows(X)
    classes, labels = check_classes(y, X.shape[0])
    given = check_weights(sample_weight, X.shape[0])
    weights = np.ones(X.shape[0]) if given is None else given
    if metric == "centers":
        D = _center_distances(X, labels, len(classes), weights)
    else:
        D = _margins(X, labels, len(classes), C, weights)
    return proximity_of_distances(D, n_neighbors, sigma_scale)


def proximity_of_distances(D: np.ndarray, n_neighbors: int, sigma_scale: float) -> np.ndarray:
    """exp(−D/σ) among mutual nearest neighbours."""
    M = len(D)
    pairs = D[np.triu_indices(M, 1)]
    sigma = sigma_scale * float(pairs.mean())
    if sigma <= 0:
        warn_caller("all classes have the same mean: no class is near another", UserWarning)
        return np.zeros((M, M))
    others = D + np.diag(np.full(M, np.inf))
    order = np.argsort(others, axis=1, kind="stable")[:, : min(n_neighbors, M - 1)]
    near = np.zeros((M, M), bool)
    np.put_along_axis(near, order, True, axis=1)
    return np.where(near & near.T, np.exp(-D / sigma), 0.0)


def class_means(X: Any, labels: np.ndarray, n_classes: int, weights: np.ndarray) -> np.ndarray:
    """The mean row of each class."""
    counts = np.bincount(labels, weights, minlength=n_classes)
    member = np.zeros((n_classes, X.shape[0])) if X.shape[0] * n_classes <= 1 << 22 else None
    if member is not None:
        member[labels, np.arange(X.shape[0])] = weights
        return np.asarray(member @ X) / counts[:, None]
    own = [np.flatnonzero(labels == k) for k in range(n_classes)]
    return np.stack([np.asarray(weights[k] @ X[k]).ravel() for k in own]) / counts[:, None]


def _center_distances(X: Any, labels: np.ndarray, n_classes: int, weights: np.ndarray) -> np.ndarray:
    means = class_means(X, labels, n_classes, weights)
    means = means - means.mean(axis=0)
    squares = (means * means).sum(axis=1)
    D = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * means @ means.T, 0.0))
    np.fill_diagonal(D, 0.0)
    return (D + D.T) / 2.0


def _margins(X: Any, labels: np.ndarray, n_classes: int, C: float, weights: np.ndarray) -> np.ndarray:
    """2/‖w‖ of the machine between each pair of classes."""
    check_positive("C", C)
    D = np.zeros((n_classes, n_classes))
    rows = [np.flatnonzero(labels == k) for k in range(n_classes)]
    for i in range(n_classes):
        for j in range(i):
            both = np.r_[rows[i], rows[j]]
            part = X[both]
            part = np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part)
            machine = _core.machines.KernelMachine(np.ascontiguousarray(part @ part.T))
            sides = np.r_[np.ones(len(rows[i]), np.int8), -np.ones(len(rows[j]), np.int8)]
            squared = machine.solve(sides, float(C) * weights[both], 1e-3, 1_000_000)[1]
            D[i, j] = D[j, i] = 2.0 / np.sqrt(max(squared, 1e-12))
    return D
