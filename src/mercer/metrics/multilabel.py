"""Scores of predicted label sets and of rankings of labels.

scikit-learn has the Hamming loss, micro and macro F1, the ranking loss and coverage; `multilabel_scores` combines them
with further scores:

    tag precision    P = mean over labels of (rows with the label predicted and true) / (rows with it predicted)
    tag recall       R = mean over labels of (rows with the label predicted and true) / (rows with it true)
    tag F1           2 P R / (P + R), of the two means: not the mean of the labels' F1
    one-error        share of the labelled rows whose top label is wrong
    precision at k   mean over rows of (correct labels among the top k) / k
    propensity-scored precision at k    the same with 1 / p_t for a correct label t, relative to the best possible;
                                        p_t = 1 / (1 + (log n − 1)(b + 1)^a (n_t + b)^−a)  [Jain2016]

Labels with equal scores are ranked by their number. Rows without labels count for sets, but not for rankings.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._validation import check_count, check_positive

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = [
    "MultilabelScores",
    "TagScore",
    "label_propensities",
    "multilabel_scores",
    "one_error",
    "precision_at_k",
    "propensity_scored_precision_at_k",
    "tag_score",
]


@dataclass(frozen=True)
class TagScore:
    """Precision and recall of single labels, averaged over labels, and the F1 of the two averages."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class MultilabelScores:
    """The result of `multilabel_scores`; ranking scores are NaN if no scores were given."""

    hamming_loss: float
    subset_accuracy: float
    micro_f1: float
    macro_f1: float
    example_f1: float
    tag_precision: float
    tag_recall: float
    tag_f1: float
    ranking_loss: float
    one_error: float
    coverage: float
    precision_at_1: float
    precision_at_3: float
    precision_at_5: float

    def to_dict(self) -> dict[str, float]:
        """Return the scores by name."""
        return asdict(self)


def tag_score(y_true: Any, y_pred: Any) -> TagScore:
    """Return precision and recall of each label, averaged over labels, and the F1 of the averages.

    Image annotation is usually scored this way. A label that is never predicted has precision 0; a label without true
    rows has recall 0.

    Parameters
    ----------
    y_true, y_pred : array or sparse matrix of shape (n_rows, n_labels)
        1 where a row has a label, else 0.

    Returns
    -------
    score : TagScore

    Examples
    --------
    >>> from mercer.metrics import tag_score
    >>> tag_score([[1, 0], [1, 1]], [[1, 1], [0, 1]])
    TagScore(precision=0.75, recall=0.75, f1=0.75)
    """
    Y, P = _pair(y_true, y_pred)
    right = _sum(Y.multiply(P), 0)
    precision = _ratio(right, _sum(P, 0)).mean()
    recall = _ratio(right, _sum(Y, 0)).mean()
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return TagScore(float(precision), float(recall), float(f1))


def one_error(y_true: Any, y_score: Any) -> float:
    """Return the share of rows whose label with the highest score is wrong.

    Parameters
    ----------
    y_true : array or sparse matrix of shape (n_rows, n_labels)
    y_score : array of shape (n_rows, n_labels)

    Returns
    -------
    error : float

    Examples
    --------
    >>> from mercer.metrics import one_error
    >>> one_error([[1, 0], [0, 1]], [[0.9, 0.2], [0.7, 0.3]])
    0.5
    """
    return 1.0 - precision_at_k(y_true, y_score, 1)


def precision_at_k(y_true: Any, y_score: Any, k: int = 5) -> float:
    """Return the share of correct labels among the k with the highest scores, over the rows that have labels.

    Parameters
    ----------
    y_true : array or sparse matrix of shape (n_rows, n_labels)
    y_score : array of shape (n_rows, n_labels)
    k : int, default=5

    Returns
    -------
    precision : float

    Examples
    --------
    >>> from mercer.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)
    0.5
    """
    Y, S = _ranked(y_true, y_score)
    best = _best(S, check_count("k", k))
    return float(_picked(Y, best).sum() / best.size)


def label_propensities(y_true: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Return the propensity of each label, the probability that a true label was recorded, from its frequency.

    Parameters
    ----------
    y_true : array or sparse matrix of shape (n_rows, n_labels)
        Training labels.
    a, b : float
        Constants of the model.

    Returns
    -------
    propensities : array of shape (n_labels,)

    Examples
    --------
    >>> from mercer.metrics import label_propensities
    >>> label_propensities([[1, 0]] * 50 + [[1, 1]] * 50).round(3)
    array([0.68 , 0.594])

    References
    ----------
    .. [Jain2016] H. Jain, Y. Prabhu and M. Varma. Extreme multi-label loss functions for recommendation, tagging,
       ranking and other missing label applications. KDD, 2016.
    """
    Y = _indicator("y_true", y_true)
    check_positive("a", a)
    check_positive("b", b)
    c = (max(np.log(Y.shape[0]), 1.0) - 1.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + c * (_sum(Y, 0) + b) ** -a)


def propensity_scored_precision_at_k(y_true: Any, y_score: Any, propensities: Any, k: int = 5) -> float:
    """Return the precision at k with higher weights for rare labels, relative to the best possible value.

    Parameters
    ----------
    y_true : array or sparse matrix of shape (n_rows, n_labels)
    y_score : array of shape (n_rows, n_labels)
    propensities : array of shape (n_labels,)
        Above 0 and at most 1; `label_propensities` gives them from training labels.
    k : int, default=5

    Returns
    -------
    precision : float

    Examples
    --------
    >>> from mercer.metrics import propensity_scored_precision_at_k
    >>> propensity_scored_precision_at_k([[1, 1, 0]], [[3.0, 1.0, 2.0]], [0.5, 0.25, 1.0], k=1)
    0.5
    """
    import scipy.sparse as sp

    Y, S = _ranked(y_true, y_score)
    p = np.asarray(propensities, np.float64)
    if p.shape != (S.shape[1],) or not ((p > 0) & (p <= 1)).all():
        raise ValueError(f"propensities must hold a number above 0 and at most 1 for each of the {S.shape[1]} labels")
    weighted = sp.csr_matrix(Y.multiply(1.0 / p))
    k = check_count("k", k)
    gained = _picked(weighted, _best(S, k)).sum()
    ideal = _picked(weighted, _best(weighted.toarray(), k)).sum()
    return float(gained / ideal)


def multilabel_scores(y_true: Any, y_pred: Any, y_score: Any = None) -> MultilabelScores:
    """Score predicted label sets, and rankings of labels if scores are given.

    Parameters
    ----------
    y_true, y_pred : array or sparse matrix of shape (n_rows, n_labels)
    y_score : array of shape (n_rows, n_labels), optional

    Returns
    -------
    scores : MultilabelScores

    Examples
    --------
    >>> from mercer.metrics import multilabel_scores
    >>> scores = multilabel_scores([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    >>> scores.subset_accuracy, scores.hamming_loss
    (0.5, 0.25)
    """
    Y, P = _pair(y_true, y_pred)
    right, true, given = Y.multiply(P), _sum(Y, 1), _sum(P, 1)
    hits = _sum(right, 1)
    by_label = _ratio(2 * _sum(right, 0), _sum(Y, 0) + _sum(P, 0))
    both = true.sum() + given.sum()
    tags = tag_score(Y, P)
    nan = float("nan")
    loss, error, coverage, at = nan, nan, nan, [nan, nan, nan]
    if y_score is not None:
        known, S = _ranked(y_true, y_score)
        from sklearn.metrics import coverage_error, label_ranking_loss

        dense = known.toarray().astype(int)
        loss, coverage = float(label_ranking_loss(dense, S)), float(coverage_error(dense, S)) - 1.0
        error = one_error(known, S)
        at = [precision_at_k(known, S, min(k, S.shape[1])) for k in (1, 3, 5)]
    empty = true + given == 0
    example = np.where(empty, 1.0, 2 * hits / np.maximum(true + given, 1))
    return MultilabelScores(
        hamming_loss=float((true + given - 2 * hits).sum() / (Y.shape[0] * Y.shape[1])),
        subset_accuracy=float(((true == hits) & (given == hits)).mean()),
        micro_f1=float(2 * hits.sum() / both) if both else 0.0,
        macro_f1=float(by_label.mean()),
        example_f1=float(example.mean()),
        tag_precision=tags.precision,
        tag_recall=tags.recall,
        tag_f1=tags.f1,
        ranking_loss=loss,
        one_error=error,
        coverage=coverage,
        precision_at_1=at[0],
        precision_at_3=at[1],
        precision_at_5=at[2],
    )


# ---------------------------------------------------------------------------------------------------- parts


def _indicator(name: str, values: Any) -> sp.csr_matrix:
    import scipy.sparse as sp

    if sp.issparse(values):
        matrix = sp.csr_matrix(values).astype(np.float64)
        matrix.sum_duplicates()
    else:
        array = np.asarray(values)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise ValueError(f"{name} must be a matrix of 0 and 1, a column for each label")
        matrix = sp.csr_matrix(array, dtype=np.float64)
    if not np.isin(matrix.data, (0.0, 1.0)).all():
        raise ValueError(f"{name} must hold 0 and 1 only")
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: its shape is {matrix.shape}")
    matrix.eliminate_zeros()
    return matrix


def _pair(y_true: Any, y_pred: Any) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    Y, P = _indicator("y_true", y_true), _indicator("y_pred", y_pred)
    if Y.shape != P.shape:
        raise ValueError(f"y_true has the shape {Y.shape} and y_pred {P.shape}")
    return Y, P


def _ranked(y_true: Any, y_score: Any) -> tuple[sp.csr_matrix, np.ndarray]:
    """The rows that have labels, and their scores."""
    import scipy.sparse as sp

    Y = _indicator("y_true", y_true)
    S = np.asarray(y_score.toarray() if sp.issparse(y_score) else y_score, np.float64)
    if S.shape != Y.shape:
        raise ValueError(f"y_true has the shape {Y.shape} and y_score {S.shape}")
    if not np.isfinite(S).all():
        raise ValueError("y_score must not hold NaN or infinite values")
    rows = np.flatnonzero(_sum(Y, 1) > 0)
    if not len(rows):
        raise ValueError("y_true has no row with a label, so there is no ranking to score")
    return (Y, S) if len(rows) == Y.shape[0] else (Y[rows], S[rows])


def _best(S: np.ndarray, k: int) -> np.ndarray:
    if k > S.shape[1]:
        raise ValueError(f"k is {k}, but there are {S.shape[1]} labels")
    return np.argsort(-S, axis=1, kind="stable")[:, :k]


def _picked(Y: sp.csr_matrix, columns: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    return np.asarray(Y[rows, columns.ravel()]).ravel()


def _sum(matrix: Any, axis: int) -> np.ndarray:
    return np.asarray(matrix.sum(axis=axis)).ravel()


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)
