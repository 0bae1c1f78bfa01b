"""Mutual information of a weak attribute and a query: I(Q; z) = H(Q) − H(Q | z), Q over its 2^|Q| joint states.

It is estimated from counts in labelled rows, with ½ added to every count, or from two trees that share the weak
attributes. One tree is over query and weak attributes, from labelled rows; the other over weak attributes, from rows
without labels. For each z and state, the second tree gives the marginals of all weak attributes. Jeffrey's rule imposes
them on the first tree, which gives the probabilities of Q. The marginals are then equal in both trees, so one round is
enough.
"""

from __future__ import annotations

import numpy as np

from mercer.inference import ChowLiuTree, LatentTree

__all__ = ["TreeInformation", "empirical_information", "information", "joint_states"]


def joint_states(Y: np.ndarray, query: list[int]) -> np.ndarray:
    """The number of the joint state of a query in each row."""
    return Y[:, query].astype(np.int64) @ (1 << np.arange(len(query)))


def empirical_information(Y: np.ndarray, bits: np.ndarray, query: list[int]) -> np.ndarray:
    """I(Q; z) of each column of bits, in nats."""
    k = 1 << len(query)
    states = joint_states(Y, query)
    on = np.zeros((k, len(states)))
    on[states, np.arange(len(states))] = 1.0
    both = on @ bits + 0.5  # counts of (state, z = 1)
    total = np.bincount(states, minlength=k)[:, None] + 1.0
    table = np.stack([total - both, both], axis=2)  # (states, columns, z)
    return information(table / table.sum(axis=(0, 2), keepdims=True))


def information(table: np.ndarray) -> np.ndarray:
    """Mutual information of joint tables (states, columns, z) that sum to 1 for each column."""
    p, q = table.sum(axis=2, keepdims=True), table.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(table > 0, table * np.log(table / (p * q)), 0.0)
    return np.maximum(terms.sum(axis=(0, 2)), 0.0)


class TreeInformation:
    """I(Q; z) from a tree over (query attributes, weak attributes) and one over weak attributes."""

    def __init__(self, supervised: ChowLiuTree | LatentTree, unsupervised: ChowLiuTree | LatentTree) -> None:
        self.supervised = supervised
        m = unsupervised.n_features_in_
        n_attributes = supervised.n_features_in_ - m
        evidence = np.full((2 * m, m), np.nan)
        evidence[np.arange(m), np.arange(m)] = 0.0
        evidence[m + np.arange(m), np.arange(m)] = 1.0
        soft = np.full((2 * m, n_attributes + m), np.nan)
        soft[:, n_attributes:] = unsupervised.marginals(evidence)[:, :m]
        self.phi = supervised._with_soft(None, soft, 1e-4, 20)
        on = unsupervised.marginals()[0, :m]
        self.weights = np.stack([1.0 - on, on])

    def __call__(self, query: list[int]) -> np.ndarray:
        joint = self.supervised._joint_of(query, self.phi)  # (2m, states): z = 0 of all columns, then z = 1
        m = self.weights.shape[1]
        table = joint.T.reshape(-1, 2, m) * self.weights
        return information(table.transpose(0, 2, 1))
