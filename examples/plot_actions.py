"""
Actions as segments
===================

Somebody walks, bends and draws, each action for its typical time, and noisy sensors watch. Three models see
the same frames: a classifier of single frames, a :class:`~mercer.tagging.Tagger` that also knows which label
follows which, and a :class:`~mercer.segmentation.Segmenter` that scores whole segments, with their durations
and the statistics of all their frames.
"""

# %%
# Five levels of difficulty: the means of the actions move towards each other. At every level eight
# sequences are for training and twelve for the test. The segmenter gets statistics of segments (sums, means
# and variances of the frames) and a curve over durations.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from mercer.classification import LinearClassifier
from mercer.datasets import make_actions
from mercer.metrics import boundary_score, token_accuracy
from mercer.report import page, plot_segmentation, section
from mercer.segmentation import Segmenter, SegmentStatistics
from mercer.tagging import Tagger

ACTIONS = ["walk", "bend"]
COLOURS = ["#0072b2", "#e69f00"]
NAMES = ["frame by frame", "tagger", "segmenter"]


def starts_of(labels):
    return [0, *(np.flatnonzero(np.diff(labels)) + 1)]


levels, shown = [], {}
for difficulty in range(1, 6):
    task = make_actions(10, n_actions=2, difficulty=difficulty, random_state=0)
    train, test = [*range(4), *range(10, 14)], [*range(4, 10), *range(14, 20)]
    X, y = [task.X[i] for i in train], [task.y[i] for i in train]
    X_test, y_test = [task.X[i] for i in test], [task.y[i] for i in test]

    frames = LinearClassifier(C=0.3, random_state=0).fit(np.concatenate(X), np.concatenate(y))
    tagger = Tagger(loss="hinge", C=0.3, tol=1e-2, random_state=0).fit(X, y)
    segmenter = Segmenter(
        max_length=45,
        C=0.3,
        features=SegmentStatistics(),
        statistics=("sum", "mean", "variance"),
        length_model="log-normal",
        boundaries=False,
        tol=1e-2,
        random_state=0,
    ).fit(X, y)

    found = [[frames.predict(x) for x in X_test], tagger.predict(X_test), segmenter.predict(X_test)]
    true_starts, lengths = [task.starts[i] for i in test], [len(x) for x in X_test]
    levels.append(
        [
            (
                token_accuracy(y_test, predicted),
                boundary_score(true_starts, [starts_of(p) for p in predicted], lengths).f1,
            )
            for predicted in found
        ]
    )
    shown[difficulty] = X_test[0], y_test[0], [p[0] for p in found], segmenter.boundary_marginals(X_test[:1])[0]

# %%
# Neighbours help a lot at every level; whole segments help on top where frames say little.

fig, axes = plt.subplots(1, 2, figsize=(9.4, 3.4), layout="constrained")
for k, (ax, what) in enumerate(zip(axes, ["frames right", "F1 of boundaries"], strict=True)):
    for name, style, scores in zip(NAMES, ["o:", "s--", "D-"], np.array(levels)[:, :, k].T, strict=True):
        ax.plot(range(1, 6), scores, style, label=name)
    ax.set_xticks(range(1, 6))
    ax.set_xlabel("difficulty")
    ax.set_title(what, fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
_ = axes[0].legend(frameon=False)

# %%
# One test sequence at three levels: the truth, what two of the models find, and the segmenter's probability
# that a segment starts. The tagger smooths over single frames, but knows nothing of durations; the segmenter,
# which does, finds segments that the tagger smooths away.

fig, axes = plt.subplots(12, 1, figsize=(9.4, 7.2), layout="constrained", height_ratios=[1, 1, 1, 1.6] * 3, sharex=True)
axes = axes.reshape(3, 4)
for (difficulty, (_, truth, found, marginals)), rows in zip(((d, shown[d]) for d in (1, 4, 5)), axes, strict=True):
    strips = [("truth", truth), (NAMES[1], found[1]), (NAMES[2], found[2])]
    for ax, (name, labels) in zip(rows, strips, strict=False):
        labels = np.asarray(labels)
        edges = [*starts_of(labels), len(labels)]
        for a, b in pairwise(edges):
            ax.axvspan(a, b, color=COLOURS[labels[a]], lw=0)
            if b - a >= 8:
                ax.text((a + b) / 2, 0.5, ACTIONS[labels[a]], ha="center", va="center", fontsize=7, color="white")
        right = np.mean(labels == truth)
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
        ax.text(len(labels) + 1, 0.5, "" if name == "truth" else f"{right:.0%}", va="center", fontsize=9)
        ax.set_yticks([])
    rows[0].set_title(f"difficulty {difficulty}", loc="left", fontsize=10)
    rows[3].plot(range(1, len(marginals)), marginals[1:], color="#444444", lw=1)
    rows[3].set_ylim(-0.05, 1.05)
    rows[3].set_yticks([0, 1])
    rows[3].set_ylabel("p(start)", rotation=0, ha="right", va="center", fontsize=9)
for ax in axes.ravel():
    ax.set_xlim(0, len(truth))
    ax.spines[["top", "right", "bottom", "left"]].set_visible(False)
_ = axes[-1, -1].set_xlabel("frame")

# %%
# :func:`mercer.report.plot_segmentation` draws the same as SVG for a page, with features, wrong frames
# underlined and every segment named when the pointer rests on it.

x, truth, found, marginals = shown[5]
strips = plot_segmentation(x, truth, dict(zip(NAMES, found, strict=True)), marginals, names=dict(enumerate(ACTIONS)))
html = page("Actions", section("A hard sequence", strips))
print(f"a page of {len(html) / 1000:.0f} kB")

# %%
# Next: the guide :doc:`segmentation </guide/segmentation>`.
