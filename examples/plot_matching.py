"""
A structure of your own: learning to match
==========================================

Two views of the same points: which point of one is which point of the other? The second view is turned, stretched and
noisy, and nobody says how. An output is a matching, a permutation of all points, so there are 15! ≈ 10¹² of them; the
best one is found by SciPy's assignment solver, and :class:`~mercer.structured.StructuredPredictor` needs no more than
that to learn the weights.
"""

# %%
# The structure
# -------------
# The score of matching point a with point b is a W b, a bilinear form with four weights, and Φ(x, y) the sum of the
# outer products of matched points. If the second view is the first one times a matrix V, then W = V is a good choice:
# a V b is −½ ‖aV − b‖² up to terms whose sum is the same for every matching. The cost of a matching is its number of
# wrong pairs, which is a sum over pairs too: adding it to the table of scores makes the loss-augmented search as easy
# as prediction.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from mercer.learning.solvers import BCFW
from mercer.structured import CustomStructure, StructuredPredictor


class Matching(CustomStructure):
    """x: two arrays of n points each; y[i]: the point of the second view that point i of the first one is."""

    def features(self, x, y):
        first, second = x
        return (first.T @ second[y]).ravel()

    def cost(self, y_true, y):
        return float((y_true != y).sum())

    def argmax(self, w, x, cost_to=None):
        first, second = x
        scores = first @ w.reshape(2, 2) @ second.T
        if cost_to is not None:
            scores += np.arange(len(second)) != cost_to[:, None]
        return linear_sum_assignment(scores, maximize=True)[1]


# %%
# The data
# --------
# Fifteen points a picture. The second view turns them by 65 degrees, squeezes one axis, adds noise and shuffles.

ANGLE, SQUEEZE, NOISE = np.deg2rad(65), 0.6, 0.07
VIEW = np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-SQUEEZE * np.sin(ANGLE), SQUEEZE * np.cos(ANGLE)]])
rng = np.random.default_rng(0)


def draw():
    """A pair of views and their matching."""
    first = rng.normal(size=(15, 2))
    y = rng.permutation(15)
    second = np.empty((15, 2))
    second[y] = first @ VIEW + NOISE * rng.normal(size=(15, 2))
    return (first, second), y


X, Y = zip(*[draw() for _ in range(60)], strict=True)
X_test, Y_test = zip(*[draw() for _ in range(200)], strict=True)

# %%
# Learning
# --------
# Block-coordinate Frank-Wolfe keeps a dual value beside the objective, and stops when the two are within 0.01 %: the
# result is certified, whatever the structure.

solver = BCFW(check_every=1)  # by default the gap is measured every fourth pass
model = StructuredPredictor(Matching(), loss="hinge", solver=solver, C=0.1, tol=1e-4, random_state=0).fit(X, Y)
by_distance, by_map = StructuredPredictor(Matching()), StructuredPredictor(Matching())
by_distance.coef_ = np.eye(2).ravel()  # W = I: match what is near
by_map.coef_ = VIEW.ravel()  # what nobody told the learner

for name, matcher in (("nearest as they lie", by_distance), ("learnt", model), ("by the true map", by_map)):
    right = 1 - matcher.mean_cost(X_test, Y_test) / 15
    print(f"{name:20s} {right:6.1%} of the pairs right, {matcher.score(X_test, Y_test):6.1%} of the pictures")
print("learnt W, length 1  ", np.round(model.coef_ / np.linalg.norm(model.coef_), 3))
print("the map of the views", np.round(VIEW.ravel() / np.linalg.norm(VIEW), 3))
print(f"relative gap {model.history_['gap'][-1]:.1e} after {model.n_iter_} passes")

# %%
# One new picture, and the two bounds
# -----------------------------------
# Lines join matched points; wrong ones are red. On the right the objective falls to its minimum from above and the dual
# rises to it from below: at any time the truth lies between the curves.

GOOD, BAD, DUAL = "#1f4e79", "#c1121f", "#d1741f"
fig, (before, after, curves) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
(first, second), truth = X_test[0], Y_test[0]
away = np.array([5.5, 0.0])
for ax, matcher, title in ((before, by_distance, "Nearest as they lie"), (after, model, "Learnt")):
    matching = matcher.predict([X_test[0]])[0]
    for i, j in enumerate(matching):
        ends = np.stack([first[i], second[j] + away])
        ax.plot(*ends.T, color=GOOD if j == truth[i] else BAD, linewidth=1, alpha=0.7)
    for points in (first, second + away):
        ax.scatter(*points.T, s=22, color="#222222", zorder=3)
    ax.set_title(f"{title}: {(matching == truth).sum()} of {len(truth)} right", fontsize=11)
    ax.set_aspect("equal")
    ax.axis("off")

history = model.history_
passes = np.arange(1, len(history["primal"]) + 1)
curves.plot(passes, history["primal"], color=GOOD, marker="o", markersize=4, label="objective (primal)")
curves.plot(passes, history["dual"], color=DUAL, marker="o", markersize=4, label="lower bound (dual)")
curves.fill_between(passes, history["dual"], history["primal"], color="#eeeeee")
curves.set_xlabel("pass over the pictures")
curves.set_title("The minimum lies between", fontsize=11)
curves.grid(color="#e6e6e6")
curves.spines[["top", "right"]].set_visible(False)
curves.legend(frameon=False)
plt.show()

# %%
# Next: the guide :doc:`your own structures </guide/own-structures>`.
