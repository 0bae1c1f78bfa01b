"""The default weight C of the summed loss against ½‖w‖².

    C = 2 cost / mean ‖x‖²   for the hinge and the relative margin
    C = 2 / mean ‖x‖²        for the squared hinge
    C = 2 / (cost mean ‖x‖²) for slack rescaling
    C = 1                    for losses with a likelihood: log, softmax-margin, hybrid

with x the features of one position (a token, a node) and ``cost`` the mean cost of a wrong label there, 1 for Hamming.

A margin requires scores that differ by the cost, so a solution scales with cost / ‖x‖, and ½‖w‖² with its square. With
this rule, multiplying all features or all costs by a constant changes no prediction. (The mean ignores transition
weights, whose feature is the constant 1.) It is the scale of SVMlight's default, 1 / mean ‖x‖² [Joachims1999]_; the
factor 2 was chosen among 0.5, 1, 2 and 4 on four tagging tasks.

References
----------
.. [Joachims1999] T. Joachims. Making large-scale SVM learning practical. In Advances in Kernel Methods, MIT Press,
   1999.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from mercer._validation import check_positive
from mercer.data.labels import TagSequences
from mercer.data.sequences import Rows
from mercer.learning.losses import Loss, PlaneLoss, Slack, SquaredHinge

__all__ = ["check_strength", "mean_square", "resolve_strength", "strength_from_state"]

MARGIN_FACTOR = 2.0


def check_strength(C: Any) -> None:
    """Raise ValueError unless C is ``"auto"`` or a positive number."""
    if isinstance(C, str) and C == "auto":
        return
    try:
        check_positive("C", C)
    except ValueError:
        raise ValueError(f"C must be a positive finite number or 'auto', got {C!r}") from None


def resolve_strength(C: Any, loss: Loss, rows: Any, y: Any = None, n_labels: int = 0) -> float:
    """Return C as a number; ``"auto"`` by the rule of this module.

    Parameters
    ----------
    C : float or "auto"
    loss : Loss
        The loss, with its cost for the labels of the data.
    rows : Rows, array or sparse matrix
        Features of all positions.
    y : TagSequences, optional
        The true labels, for the mean cost of a wrong one.
    n_labels : int

    Returns
    -------
    float
    """
    if not isinstance(C, str):
        return float(C)
    if not isinstance(loss, PlaneLoss):
        return 1.0
    square = mean_square(rows)
    strength = MARGIN_FACTOR / square if square > 0 else 1.0
    cost = _mean_cost(loss, y, n_labels)
    if isinstance(loss, SquaredHinge):
        return strength
    return strength / cost if isinstance(loss, Slack) else strength * cost


def mean_square(rows: Any) -> float:
    """Return the mean of ‖x‖² over rows, or 0 without rows."""
    if hasattr(rows, "mean_square"):  # of parts, which know their sums
        return rows.mean_square()
    if not rows.shape[0]:
        return 0.0
    if isinstance(rows, Rows):
        if rows.dense is not None:
            values = rows.dense
        elif rows.values is None:  # all of them are 1
            assert rows.indices is not None
            return len(rows.indices) / rows.shape[0]
        else:
            values = rows.values
    else:
        values = rows.data if issparse(rows) else np.asarray(rows)
    flat = np.asarray(values, dtype=np.float64).ravel()
    return float(flat @ flat) / rows.shape[0]


def strength_from_state(meta: dict[str, Any], params: dict[str, Any]) -> float:
    """Return the C of a model file; older files have only the parameter."""
    return check_positive("C", meta.get("C", params["C"]))


def _mean_cost(loss: PlaneLoss, y: Any, n_labels: int) -> float:
    """Return the mean cost of a wrong label; 1 where the cost is not a sum over positions."""
    by_label = isinstance(y, TagSequences) or hasattr(y, "label_counts")
    if loss.cost is None or not loss.cost.decomposes or not by_label or n_labels < 2:
        return 1.0
    if isinstance(y, TagSequences):
        present, counts = np.unique(y.labels[y.labels >= 0], return_counts=True)
    else:
        counts = y.label_counts()
        present = np.flatnonzero(counts)
        counts = counts[present]
    table = np.asarray(loss.cost.table(present.astype(np.int32), n_labels), dtype=float)
    total = float(counts @ table.sum(axis=1))
    return total / (counts.sum() * (n_labels - 1)) if total > 0 else 1.0
