"""
Losses and their margins
========================

The same tagger with five losses, on handwritten codes (see :ref:`sphx_glr_gallery_plot_digit_codes.py`). The log
loss is never content and pushes every code's lead on; the hinge stops at a margin; softmax-margin lies between, the
hybrid loss blends, and the relative margin bounds the lead from above as well. And since the hinge is a maximum of
planes, its solvers prove how far they are from the optimum.
"""

# %%
# Five losses
# -----------
# C is chosen for each loss on a third of the training codes, B of the relative margin as well.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_digit_codes
from mercer.learning import ConvergenceWarning, Hinge, Hybrid, Log, RelativeMargin, SoftmaxMargin
from mercer.metrics import sequence_accuracy, token_accuracy
from mercer.tagging import Tagger

codes = make_digit_codes(n_train=150, n_test=300, random_state=0)
X, y = codes.X_train, codes.y_train
cut = len(X) // 3

LOSSES = {
    "log": [Log()],
    "softmax-margin": [SoftmaxMargin()],
    "hinge": [Hinge()],
    "hybrid, α = 0.5": [Hybrid(0.5)],
    "relative margin": [RelativeMargin(B) for B in (25.0, 50.0)],
}
COLOURS = dict(zip(LOSSES, ("#1f4e79", "#7fa8d1", "#d1741f", "#3a7d44", "#8e4585"), strict=True))


def fit(loss, C, X, y, tol=1e-2):
    """A tagger; solvers are chosen by the loss."""
    return Tagger(loss=loss, C=C, tol=tol if loss.name != "log" else None, random_state=0).fit(X, y)


def chosen(losses):
    """The loss and C that are right most often on codes left out, fitted to all."""
    tries = [(loss, C) for loss in losses for C in (0.03, 0.3, 1.0)]
    scores = [fit(loss, C, X[cut:], y[cut:]).score(X[:cut], y[:cut]) for loss, C in tries]
    loss, C = tries[int(np.argmax(scores))]
    return fit(loss, C, X, y), C


def margins(tagger, X, y):
    """Score of the true labelling less that of the best other one; below zero where the tagger errs."""
    truth, best = tagger.log_likelihood(X, y), tagger.k_best(X, 2)
    rivals = [two[0][0] == list(labels) for two, labels in zip(best, y, strict=True)]  # the first is the truth itself
    return np.array([t - two[int(rival)][1] for t, two, rival in zip(truth, best, rivals, strict=True)])


warnings.simplefilter("ignore", ConvergenceWarning)
taggers = {name: chosen(losses) for name, losses in LOSSES.items()}
print(f"{'':17s} {'C':>5s}  digits right  codes right   margin: mean  deviation  mean / deviation")
leads = {}
for name, (tagger, C) in taggers.items():
    predicted = tagger.predict(codes.X_test)
    digits, whole = token_accuracy(codes.y_test, predicted), sequence_accuracy(codes.y_test, predicted)
    leads[name] = lead = margins(tagger, X, y)
    spread = f"{lead.mean():13.2f} {lead.std():10.2f} {lead.mean() / lead.std():17.2f}"
    print(f"{name:17s} {C:5g}  {digits:12.1%}  {whole:11.1%}  {spread}")

# %%
# The lead of the true labelling over the best other one, on the training codes. Each loss has its own scale, so leads
# are divided by their mean: what counts is the shape. A hinge piles codes up at its margin; a log loss has no such
# place. On these few codes it is the log loss and its kin that read new codes best.

fig, axes = plt.subplots(len(taggers), 1, figsize=(7.0, 6.4), sharex=True, layout="constrained")
bins = np.linspace(-1, 3.5, 55)
for ax, (name, lead) in zip(axes, leads.items(), strict=True):
    ax.hist(lead / lead.mean(), bins=bins, color=COLOURS[name])
    ax.axvline(0, color="#222222", linewidth=0.8)
    ax.set_yticks([])
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[-1].set_xlabel("lead of the true labelling / mean lead")
axes[0].set_title("Margins of the training codes", fontsize=11)

# %%
# Certified gaps
# --------------
# Each solver of the hinge reports the objective and a lower bound of it. Their relative distance is the largest error
# that the weights can still have, known without knowing the optimum. One thread each.

SOLVERS = {
    "bcfw": "#1f4e79",
    "cutting-plane": "#d1741f",
    "bmrm": "#3a7d44",
    "subgradient": "#8e4585",
}
fig, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
for solver, colour in SOLVERS.items():
    tagger = Tagger(loss="hinge", solver=solver, C=0.1, tol=1e-3, random_state=0).fit(X, y)
    history = tagger.history_
    ax.loglog(history["seconds"], history["gap"], color=colour, marker="o", markersize=3, label=solver)
    last = f"gap {history['gap'][-1]:.1e} after {history['seconds'][-1]:5.2f} s"
    print(f"{solver:14s} {last}, objective between {history['dual'][-1]:.3f} and {history['primal'][-1]:.3f}")
ax.axhline(1e-3, color="#999999", linestyle=":")
ax.set_ylim(5e-4, 2)
ax.set_xlabel("seconds of training")
ax.set_ylabel("(primal − dual) / primal")
ax.set_title("Certified relative gap, hinge loss, C = 0.1", fontsize=11)
ax.xaxis.set_major_formatter("{x:g}")
ax.grid(color="#e6e6e6")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Next: the guide :doc:`margins </guide/margins>`.
