"""
Learning when most labels are missing
=====================================

Labelling every position of every sequence is expensive. A :class:`~mercer.tagging.Tagger` takes
``None`` where a label is not known, and maximises the probability of all labellings that agree with the
labels that are known: its loss is log Z(all labellings) − log Z(labellings that agree). The chain then
carries what is known at one position to its neighbours.
"""

# %%
# The handwritten codes of the other example. We hide a growing share of the labels, chosen
# at random, and compare three ways to learn from what is left:
#
# - the tagger with ``None`` where a label is hidden;
# - the tagger on the pieces between hidden labels, each a short sequence of its own: the usual
#   work-around;
# - logistic regression on the digits whose label is known.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from mercer.datasets import make_digit_codes
from mercer.metrics import token_accuracy
from mercer.tagging import Tagger

codes = make_digit_codes(n_train=400, n_test=200, random_state=0)
SHARES = (0.0, 0.25, 0.5, 0.65, 0.8, 0.9, 0.95)
REPEATS = 3


def hide(y, share, random):
    """Label sequences with None in place of about the given share of the labels."""
    return [[None if random.random() < share else label for label in labels] for labels in y]


def pieces(X, y):
    """The runs of known labels as sequences of their own."""
    out_X, out_y = [], []
    for x, labels in zip(X, y, strict=True):
        start = 0
        for t, label in enumerate([*labels, None]):
            if label is None:
                if t > start:
                    out_X.append(x[start:t])
                    out_y.append(labels[start:t])
                start = t + 1
    return out_X, out_y


def accuracies(share, seed):
    """Share of test digits read right by the three learners."""
    y = hide(codes.y_train, share, np.random.default_rng(seed))
    with_none = Tagger(C=0.1).fit(codes.X_train, y).predict(codes.X_test)
    known_X, known_y = pieces(codes.X_train, y)
    from_pieces = Tagger(C=0.1).fit(known_X, known_y).predict(codes.X_test)
    model = LogisticRegression(C=0.1, max_iter=1000).fit(np.concatenate(known_X), np.concatenate(known_y))
    alone = [model.predict(x).tolist() for x in codes.X_test]
    return [token_accuracy(codes.y_test, labels) for labels in (with_none, from_pieces, alone)]


table = np.array([[accuracies(share, seed) for seed in range(REPEATS)] for share in SHARES])
print("hidden   None   pieces   alone")
for share, row in zip(SHARES, table.mean(axis=1), strict=True):
    print(f"{share:6.0%}  " + "  ".join(f"{value:.3f}" for value in row))

# %%
# With few labels hidden all chains agree. When most are hidden there are hardly two known labels
# side by side, so the pieces teach hardly anything about neighbours and the chain falls back to reading
# each digit alone. The tagger with ``None`` goes on learning transitions, from labels that are
# several positions apart.

fig, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
names = ("chain, None where hidden", "chain, pieces between hidden labels", "each digit alone")
for k, (name, colour) in enumerate(zip(names, ("#1f4e79", "#d1741f", "#7a7a7a"), strict=True)):
    mean, low, high = table[:, :, k].mean(1), table[:, :, k].min(1), table[:, :, k].max(1)
    x = 100 * np.array(SHARES)
    ax.fill_between(x, 100 * low, 100 * high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(x, 100 * mean, marker="o", markersize=4.5, color=colour, label=name)
ax.set_xlabel("labels hidden in training (%)")
ax.set_ylabel("test digits read right (%)")
ax.set_title(f"Mean and range over {REPEATS} choices of the hidden labels", fontsize=11)
ax.grid(color="#e6e6e6")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Next: the guide :doc:`tagging </guide/tagging>`.
