"""
Segmenting images
=================

Discs and boxes lie over each other in images so noisy that a pixel alone says little. A classifier labels
blocks of pixels one by one; a :class:`~mercer.labeling.GridLabeler` sees the same features and labels all
blocks of an image together, as neighbours that look alike rather have one label.
"""

# %%
# Six images to learn from, ten others to try. Both models are trained with the hinge; the grid finds its
# labellings by expansion moves.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_shapes
from mercer.inference import FactorGraph, grid_edges, infer
from mercer.labeling import GridLabeler, block_contrasts, block_features
from mercer.metrics import mean_iou
from mercer.report import page, plot_convergence, plot_labelling, section

warnings.simplefilter("ignore")  # approximate inference, said again below; few passes

BLOCK = 2
COLOURS = {"box": "#0072b2", "disc": "#e69f00", "ground": "#d9d9d9"}

task = make_shapes(16, size=48, random_state=3)
X, y, X_test, y_test = task.images[:6], task.maps[:6], task.images[6:], task.maps[6:]
alone = GridLabeler("hinge", block=BLOCK, C=0.01, edge_weights="none").fit(X, y)
grid = GridLabeler("hinge", block=BLOCK, C=0.01, max_iter=30, tol=0.02, random_state=0).fit(X, y)
before, after = alone.predict(X_test), grid.predict(X_test)
for name, model, found in [("alone", alone, before), ("together", grid, after)]:
    print(f"{name:10}{model.score(X_test, y_test):8.1%} of pixels right, overlap {mean_iou(y_test, found):.3f}")
print(grid.inference_)

# %%
# Before and after, for three test images.


def painted(labels):
    """A label map as colours."""
    rgb = {label: [int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for label, c in COLOURS.items()}
    return np.array([[rgb[label] for label in row] for row in labels.tolist()])


fig, axes = plt.subplots(3, 4, figsize=(9.4, 7.2), layout="constrained")
for i, row in enumerate(axes):
    pictures = [np.clip(X_test[i], 0, 1), painted(y_test[i]), painted(before[i]), painted(after[i])]
    for ax, picture in zip(row, pictures, strict=True):
        ax.imshow(picture)
        ax.set_axis_off()
    for ax, found in zip(row[2:], (before[i], after[i]), strict=True):
        ax.set_title(f"{np.mean(found != y_test[i]):.1%} wrong", fontsize=9)
for ax, name in zip(axes[0], ["image", "truth", "alone", "together"], strict=True):
    ax.set_title(name if name in ("image", "truth") else f"{name}: {ax.get_title()}", fontsize=10)

# %%
# How sure is it? Marginal probabilities of a conditional random field (the log loss), whose scores are meant
# to be probabilities. It is unsure at the borders of shapes, and of shapes at the edge of the image.

field = GridLabeler(block=BLOCK, C=0.1, max_iter=15).fit(X, y)
chances = field.predict_marginals(X_test[:1])[0]
fig, axes = plt.subplots(1, 4, figsize=(9.4, 2.7), layout="constrained")
axes[0].imshow(painted(y_test[0]))
axes[0].set_title("truth", fontsize=10)
for ax, label, p in zip(axes[1:], field.classes_, chances.transpose(2, 0, 1), strict=True):
    shown = ax.imshow(p, cmap="magma", vmin=0, vmax=1)
    ax.set_title(f"p({label})", fontsize=10)
for ax in axes:
    ax.set_axis_off()
_ = fig.colorbar(shown, ax=axes, shrink=0.8)

# %%
# Those probabilities come from messages between neighbouring blocks. The factor graph of an image can be
# written down with the weights that were learnt, and given to any method of :func:`mercer.inference.infer`. Loopy
# messages settle in some tens of sweeps, and soonest if the message that would change most is always the next; damping
# takes longer, but guards against oscillation; reweighted messages, which training uses as they make the loss convex,
# need most, and bound log Z from above.

image = X_test[0]
features = block_features(image, BLOCK)
shape = features.shape[:2]
rows = (features.reshape(-1, features.shape[2]) - field.mean_) / field.scale_
unary = np.hstack([rows, np.ones((len(rows), 1))]) @ field.node_weights_
edges = grid_edges(shape)
pairwise = np.einsum("ed,dkl->ekl", block_contrasts(image, edges, BLOCK), field.pair_weights_[0])
graph = FactorGraph([3] * len(rows), unary=unary, edges=edges, pairwise=pairwise, log=True)

runs = {
    "loopy": infer(graph, "bp", tol=1e-8),
    "loopy, damping 0.5": infer(graph, "bp", damping=0.5, tol=1e-8),
    "loopy, largest change first": infer(graph, "bp", schedule="residual", tol=1e-8),
    "reweighted": infer(graph, "trw", tol=1e-8, random_state=0),
}
fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
for name, run in runs.items():
    ax.semilogy(np.maximum(run.history["residual"], 1e-9), label=f"{name}: log Z {run.log_partition:.1f}")
ax.set_xlabel("sweep")
ax.set_ylabel("largest change of a message")
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)

# %%
# :func:`mercer.report.plot_labelling` and :func:`mercer.report.plot_convergence` draw such pictures as SVG for a
# page without any script.

html = page(
    "Shapes",
    section("Before and after", plot_labelling(image, y_test[0], {"alone": before[0], "together": after[0]}, chances)),
    section("Messages", plot_convergence(runs)),
)
print(f"a page of {len(html) / 1000:.0f} kB")

# %%
# Next: the guide :doc:`labelling graphs and images </guide/labeling>`.
