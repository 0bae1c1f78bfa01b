"""Slow and obvious: costs of labellings by their formulas, and the best of all 2ⁿ."""

from __future__ import annotations

import itertools

import numpy as np


def instance_loss(loss, y, f):
    short = np.maximum(0.0, 1.0 - y * f)
    return short if loss == "hinge" else short**2


def bag_cost(y, f, low, high, weights, r, loss, proportion_loss):
    """Σ L'(y_i, f_i) + r L(p(y)) of one bag."""
    p = weights[y > 0].sum() / weights.sum()
    off = max(0.0, low - p, p - high)
    return instance_loss(loss, y, f).sum() + r * (off if proportion_loss == "absolute" else off**2)


def best_cost(f, low, high, weights, known, r, loss="hinge", proportion_loss="absolute"):
    """The least cost of one bag over all labellings that keep known labels."""
    choices = [(k,) if k else (-1, 1) for k in known]
    labellings = (np.array(y) for y in itertools.product(*choices))
    return min(bag_cost(y, f, low, high, weights, r, loss, proportion_loss) for y in labellings)


def two_bags(seed):
    """The toy of spec 004 II-18: each bag's mean lies on the side of the class that is rarer in it."""
    rng = np.random.default_rng(seed)
    parts = [  # bag, label, number, centre, standard deviation
        (0, 1, 60, (-0.26, -0.28), 0.1),
        (0, 0, 40, (0.66, 0.68), 0.157),
        (1, 1, 40, (-0.65, -0.64), 0.15),
        (1, 0, 60, (0.26, 0.25), 0.1),
    ]
    X = np.concatenate([rng.normal(centre, sd, (n, 2)) for _, _, n, centre, sd in parts])
    y = np.repeat([label for _, label, *_ in parts], [n for _, _, n, *_ in parts])
    bags = np.repeat([bag for bag, *_ in parts], [n for _, _, n, *_ in parts])
    return X, y, bags, np.array([0.6, 0.4])
