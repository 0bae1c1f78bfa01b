"""Parameters that the layers share: losses by name, constraints as masks, costs as matrices, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer._validation import check_choice
from mercer.learning.losses import Hybrid, Loss, resolve_loss
from mercer.structures.constraints import Constraints
from mercer.structures.costs import Cost, Hamming, resolve_cost

__all__ = ["LOSSES", "REDUCTIONS", "cost_matrix", "forbidden_masks", "label_names", "layer_loss", "reduction_weights"]

LOSSES = ("log", "hinge", "squared-hinge", "softmax-margin", "hybrid")
REDUCTIONS = ("mean", "sum", "token_mean", "none")


def label_names(n_labels: Any) -> tuple[int, tuple[Any, ...] | None]:
    """Return the number of labels and their names, if given."""
    if isinstance(n_labels, Sequence) and not isinstance(n_labels, (str, bytes)):
        names = tuple(n_labels)
        if len(names) < 1 or len(set(names)) != len(names):
            raise ValueError("labels must be at least one name, without duplicates")
        return len(names), names
    if isinstance(n_labels, bool) or not isinstance(n_labels, (int, np.integer)) or n_labels < 1:
        raise ValueError(f"n_labels must be an integer of at least 1, or a list of labels, got {n_labels!r}")
    return int(n_labels), None


def layer_loss(loss: str | Loss) -> Loss:
    """Return a loss by name, or the given loss; raise an error if the layers do not support it."""
    resolved = resolve_loss(loss)
    if resolved.name not in LOSSES:
        known = ", ".join(map(repr, LOSSES))
        raise ValueError(f"loss must be one of {known} here, got {resolved.name!r}; StructuredLoss takes all of them")
    if isinstance(resolved, Hybrid) and resolved.margin != "unit":
        raise ValueError("the hybrid loss of a layer needs margin='unit'; StructuredLoss supports the other")
    return resolved


def forbidden_masks(
    constraints: Constraints | None, n_labels: int, names: tuple[Any, ...] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return masks of transitions, first and last labels, True if forbidden."""
    if constraints is None:
        return None
    if not isinstance(constraints, Constraints):
        raise TypeError(f"constraints must be a Constraints, got {type(constraints).__name__}")
    classes = names or constraints.labels or tuple(range(n_labels))
    if len(classes) != n_labels:
        raise ValueError(f"the constraints are for {len(classes)} labels, the layer has {n_labels}")
    used = {label for pair in constraints.forbidden for label in pair}
    unknown = (used | constraints.forbidden_start | constraints.forbidden_end) - set(classes)
    if unknown:
        label = min(unknown, key=str)
        raise ValueError(f"the constraints contain {label!r}, which is not a label: pass the label names in order")
    return constraints.masks(classes)


def cost_matrix(loss: Loss, cost: Any, n_labels: int, names: tuple[Any, ...] | None) -> np.ndarray | None:
    """Return Δ of (true label, predicted label) for losses with a cost; reject a cost of whole sequences."""
    if loss.name not in ("hinge", "squared-hinge", "softmax-margin"):
        return None
    given: Cost = getattr(loss, "cost", None) or (Hamming() if cost is None else resolve_cost(cost))
    resolved = (
        given.bind(names or range(n_labels)) if not isinstance(given, Hamming) or given.weights is not None else given
    )
    matrix = resolved.matrix_of(n_labels) if resolved.decomposes else None
    if matrix is None and resolved.decomposes:
        matrix = resolved.table(np.arange(n_labels), n_labels)
    if matrix is None:
        raise ValueError("the cost of a layer must be a sum over positions; StructuredLoss takes others")
    return np.asarray(matrix, dtype=np.float64)


def reduction_weights(reduction: str, lengths: Tensor) -> Tensor:
    """Return the weights of the sequences in the loss, float64."""
    check_choice("reduction", reduction, REDUCTIONS)
    ones = torch.ones_like(lengths, dtype=torch.float64)
    if reduction == "mean":
        return ones / lengths.shape[0]
    if reduction == "token_mean":
        return ones / lengths.sum().double()
    return ones
