"""Optimal labels of the rows of bags, given their scores and the shares of the bags.

    min over y ∈ {−1, +1}ⁿ   Σ_i L'(y_i, f_i) + ratio Σ_k c_k L(p_k(y), [low_k, high_k])

L' is the hinge or its square, p_k the share of positive rows of bag k, c_k the weight of the bag, and L the distance of
p_k to its interval or its square. Bags are independent. In each bag the best labelling with m positives labels the m
largest scores positive, so sorting finds the best of 2ⁿ labellings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, thread_count
from mercer.data.bags import Bags
from mercer.proportions._base import Problem

__all__ = ["assign_labels"]

LOSSES = ("hinge", "squared-hinge")
PROPORTION_LOSSES = ("absolute", "squared")
_NEAREST = 8  # rows of either label in a bag, of which pairs are exchanged


def assign_labels(
    scores: Any,
    bags: Any,
    proportions: Any = None,
    *,
    ratio: float = 1.0,
    loss: str = "hinge",
    proportion_loss: str = "absolute",
    known: Any = None,
    bag_weight: Any = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, float]:
    """Return the labels of least cost for given scores.

    Parameters
    ----------
    scores : array of shape (n,)
        The output f of each row.
    bags : array of n values, or Bags
        The bag of each row. A row is in at most one bag, and there are two classes. Rows without a bag need an entry in
        ``known``.
    proportions : array of shape (n_bags,), dict, Series, or a pair (low, high)
        The share of positive rows, see `Bags`. Not needed if ``bags`` has them.
    ratio : float, default=1.0
        Weight of the loss of proportions relative to that of rows, C / C'.
    loss : {"hinge", "squared-hinge"}, default="hinge"
        Loss of rows.
    proportion_loss : {"absolute", "squared"}, default="absolute"
        Loss of bags: the distance of the share to its interval, or the square of it.
    known : array of shape (n,), optional
        −1 or 1 if the label is known and fixed, else 0.
    bag_weight : array of shape (n_bags,), optional
    n_jobs : int, optional
        Threads. Labels do not depend on it.

    Returns
    -------
    labels : ndarray of int8, shape (n,)
        −1 or 1.
    cost : float
        The minimum.

    Notes
    -----
    The minimum is exact if the rows of a bag have equal weights, as they do without ``row_weight``. With unequal
    weights the problem is a knapsack: rows are taken in the order of their gain per unit of weight, and then single
    labels are flipped until no flip helps.

    Examples
    --------
    >>> from mercer.proportions import assign_labels
    >>> labels, cost = assign_labels([0.9, 0.2, -0.3, -0.1], ["a", "a", "b", "b"], [0.5, 0.5], ratio=100.0)
    >>> labels.tolist(), round(cost, 6)
    ([1, -1, -1, 1], 3.1)
    """
    f = np.asarray(scores, np.float64)
    if f.ndim != 1 or not np.isfinite(f).all():
        raise ValueError("scores must be a finite number for each row")
    made = Bags(bags, proportions, bag_weight=bag_weight, n_rows=None if isinstance(bags, Bags) else len(f))
    if made.n_rows != len(f):
        raise ValueError(f"bags has {made.n_rows} rows, but scores has {len(f)}")
    if made.lower is None or made.upper is None:
        raise ValueError("proportions must be given: one share for each bag")
    if made.lower.shape[1] != 2:
        raise ValueError(f"labels are assigned for two classes, but proportions has {made.lower.shape[1]}")
    if made.overlapping:
        raise ValueError("a row is in several bags: assign_labels needs bags that do not overlap")
    check_choice("loss", loss, LOSSES)
    check_choice("proportion_loss", proportion_loss, PROPORTION_LOSSES)
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not 0 <= ratio < math.inf:
        raise ValueError(f"ratio must be a finite number of at least 0, got {ratio!r}")
    rows = np.concatenate([made.members, made.alone])
    given = np.zeros(len(f), np.int8) if known is None else _known(known, len(f))
    if not given[made.alone].all():
        raise ValueError(f"row {made.alone[given[made.alone] == 0][0]} has no bag and no known label")
    problem = Problem(
        made.offsets, made.proportions, made.lower[:, 1], made.upper[:, 1], made.bag_weight,
        np.concatenate([made.row_weight, np.ones(len(made.alone))]), given[rows],
    )  # fmt: skip
    assigned_labels, cost, _ = assigned(
        f[rows], problem, float(ratio), proportion_loss, loss=loss, threads=thread_count(n_jobs)
    )
    labels = np.zeros(len(f), np.int8)
    labels[rows] = assigned_labels
    return labels, cost


def assigned(
    scores: np.ndarray,
    problem: Problem,
    ratio: float,
    proportion_loss: str,
    current: np.ndarray | None = None,
    loss: str = "hinge",
    threads: int = 1,
) -> tuple[np.ndarray, float, float]:
    """Return labels of instances, their cost, and its loss of rows."""
    labels, instances, shares = _core.bags.assign_labels(
        scores, problem.offsets, problem.low, problem.high, problem.bag_weight, problem.row_weight, problem.known,
        current, ratio, loss, proportion_loss, threads,
    )  # fmt: skip
    of_rows = float(instances.sum())
    return labels, of_rows + ratio * float(problem.bag_weight @ shares), of_rows


def neighbours(
    scores: np.ndarray, labels: np.ndarray, problem: Problem, ratio: float, proportion_loss: str, most: int
) -> Iterator[np.ndarray]:
    """Return labellings with one label changed, or two labels of a bag exchanged, lowest cost first.

    At most ``most`` are returned, and in each bag only exchanges among the ``_NEAREST`` cheapest rows of either label.
    """
    inside = problem.n_inside
    sign = labels[:inside].astype(np.float64)
    margin = sign * scores[:inside]
    rise = np.maximum(0.0, 1.0 + margin) - np.maximum(0.0, 1.0 - margin)  # of the hinge loss, with the other label
    rise[problem.known[:inside] != 0] = np.inf
    bag = np.repeat(np.arange(problem.n_bags), problem.sizes)
    weight = problem.row_weight[:inside]
    part = weight / np.bincount(bag, weight, problem.n_bags)[bag]
    share = np.bincount(bag, part * (sign > 0), problem.n_bags)

    def cost(bags: np.ndarray, shares: np.ndarray) -> np.ndarray:
        off = np.maximum(np.maximum(problem.low[bags] - shares, shares - problem.high[bags]), 0.0)
        return np.asarray(ratio * problem.bag_weight[bags] * (off if proportion_loss == "absolute" else off**2))

    change = rise + cost(bag, share[bag] - sign * part) - cost(bag, share[bag])
    first, second, costs = [np.arange(inside)], [np.full(inside, -1)], [change]
    nearest = {of: _cheapest(rise, bag, sign == of, problem.n_bags) for of in (1.0, -1.0)}
    for i, j in product(nearest[1.0], nearest[-1.0]):
        both = np.flatnonzero((i >= 0) & (j >= 0))
        i, j = i[both], j[both]
        moved = share[both] + part[j] - part[i]
        first, second = [*first, i], [*second, j]
        costs.append(rise[i] + rise[j] + cost(both, moved) - cost(both, share[both]))
    one, other, total = np.concatenate(first), np.concatenate(second), np.concatenate(costs)
    order = np.argsort(total, kind="stable")[:most]
    for at in order[np.isfinite(total[order])]:
        changed = labels.copy()
        changed[one[at]] *= -1
        if other[at] >= 0:
            changed[other[at]] *= -1
        yield changed


def _cheapest(rise: np.ndarray, bag: np.ndarray, taken: np.ndarray, n_bags: int) -> list[np.ndarray]:
    """For each of the first few ranks the instance of every bag that has it among those taken; −1 where none has."""
    rows = np.flatnonzero(taken & np.isfinite(rise))
    rows = rows[np.lexsort((rise[rows], bag[rows]))]
    counts = np.bincount(bag[rows], minlength=n_bags)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    ranks = []
    for r in range(min(_NEAREST, int(counts.max(initial=0)))):
        at = np.full(n_bags, -1)
        at[bag[rows[rank == r]]] = rows[rank == r]
        ranks.append(at)
    return ranks


def _known(given: Any, n: int) -> np.ndarray:
    labels = np.asarray(given)
    if labels.shape != (n,) or labels.dtype.kind not in "iuf" or not np.isin(labels, (-1, 0, 1)).all():
        raise ValueError(f"known must hold −1, 0 or 1 for each of the {n} rows")
    return labels.astype(np.int8)
