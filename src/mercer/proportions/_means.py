"""Bags as points: the mean of each bag, with every known label as a bag of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.proportions._base import Problem, Space

__all__ = ["BagMeans", "bag_means"]


@dataclass(frozen=True)
class BagMeans:
    """Means over bags, m = A Φ, with their shares and weights.

    Attributes
    ----------
    average : CSR matrix of shape (n_means, n)
        A: each row holds the weights of the instances of a bag, which sum to 1.
    target, low, high, bag_weight : shape (n_means,)
        As in `Problem`.
    size : shape (n_means,)
        The summed weights of the instances of each bag.
    inside : int
        Number of means that are bags or labelled rows without a bag; the others repeat labelled instances of these
        bags.
    labelled : int
        Number of means that are labelled rows.
    """

    average: sp.csr_matrix
    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bag_weight: np.ndarray
    size: np.ndarray
    inside: int
    labelled: int

    def features(self, space: Space) -> Any:
        """Return the means as rows, dense or sparse like the features."""
        return self.average @ space.features

    def gram(self, space: Space) -> np.ndarray:
        """Return inner products of the means: the average of the kernel over the pairs of two bags."""
        return np.asarray(self.average @ (self.average @ space.gram).T)


def bag_means(problem: Problem) -> BagMeans:
    """Return the means of bags; labelled rows, inside or outside bags, follow as bags of one."""
    single = problem.single_bags()
    inside = np.flatnonzero(problem.known[: problem.n_inside])
    label = (problem.known[inside] > 0).astype(np.float64)
    member = np.concatenate([np.repeat(np.arange(single.n_bags), single.sizes), single.n_bags + np.arange(len(inside))])
    column = np.concatenate([np.arange(problem.n), inside])
    weight = np.concatenate([problem.row_weight, np.ones(len(inside))])
    total = np.bincount(member, weight, minlength=single.n_bags + len(inside))
    average = sp.csr_matrix((weight / total[member], (member, column)), shape=(len(total), problem.n))
    return BagMeans(
        average,
        np.concatenate([single.target, label]),
        np.concatenate([single.low, label]),
        np.concatenate([single.high, label]),
        np.concatenate([single.bag_weight, np.ones(len(inside))]),
        total,
        single.n_bags,
        len(total) - problem.n_bags,
    )
