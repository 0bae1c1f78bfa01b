"""
Which loss finds the most probable label
========================================

Suppose that the labels of one input have the probabilities D. The best that a learner can do there is to minimise the
expected loss under D. The log loss then always puts the most probable label first. The hinge loss does so only where a
label has more than half of the probability; elsewhere all scores tie. The hybrid loss needs a share α of the log loss,
and how much it needs depends on D. The adaptive hybrid loss takes that share from an estimate of D.
"""

# %%
# Maps over the simplex
# ---------------------
# Each point of a triangle is a distribution over three labels; its corners are certain. Every minimum comes with a
# certified gap: no scores have a lower risk than the value less the gap.

import matplotlib.pyplot as plt
import numpy as np

from mercer.learning import Hybrid
from mercer.theory import consistency

maps = {
    "hinge": consistency.map("hinge"),
    "hybrid, α = 0.3": consistency.map(Hybrid(0.3)),
    "hybrid, α = 0.6": consistency.map(Hybrid(0.6)),
    "log and adaptive hybrid": consistency.map("adaptive-hybrid"),
}
fig, axes = plt.subplots(1, 4, figsize=(12.5, 3.6), layout="constrained")
for ax, (name, found) in zip(axes, maps.items(), strict=True):
    found.plot(ax)
    ax.set_title(f"{name}\n{found.share:.0%} of the simplex", pad=16)
axes[0].legend(loc="upper left", fontsize=8, markerscale=2, frameon=False)
plt.show()

# %%
# How large α must be
# -------------------
# A published condition asks for α above 1 − (D₁ − D₂)/(1 − 2 D₁). It compares the first label with the second alone.
# Where more labels are tied at the top, raising the first gains less, and the condition accepts too small an α: for
# D = (0.4, 0.15, 0.15, 0.15, 0.15) it accepts every α, and scores tie up to α = 0.5. The exact threshold counts
# all labels.

first = np.linspace(0.22, 0.5, 57)
fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for k, colour in ((3, "#1f4e79"), (5, "#d1741f"), (10, "#3a7d44")):
    usable = first[first > 1 / k + 0.01]
    shares = [[p, *np.full(k - 1, (1 - p) / (k - 1))] for p in usable]
    ax.plot(usable, [consistency.hybrid_threshold(D) for D in shares], color=colour, label=f"{k} labels, exact")
    printed = np.array([consistency.hybrid_threshold(D, "printed") for D in shares])
    ax.plot(
        usable, np.where(printed > -0.2, printed, np.nan), color=colour, linestyle=":", label=f"{k} labels, printed"
    )
ax.axhline(0.0, color="0.7", linewidth=0.8)
ax.set_ylim(-0.15, 1.0)
ax.set_xlabel("probability of the first label, the others equal")
ax.set_ylabel("the hybrid loss needs α above this")
ax.legend(fontsize=8)
plt.show()

# %%
# Losses as margins of probabilities
# ----------------------------------
# A probabilistic margin says how far a distribution is on the side of a label. Its sets are convex and shrink to the
# corner: wedges for the hinge loss, triangles for the log loss, disks for the circle loss.

from mercer.theory import margins  # noqa: E402

fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
for ax, (name, loss) in zip(axes, (("svm", "hinge"), ("lcrf", "log"), ("circle", "circle")), strict=True):
    margins.probabilistic(name).plot(ax=ax, resolution=120)
    ax.set_title(f"{name}: the {loss} loss", pad=16)
plt.show()

# %%
# Next: the guide :doc:`what can be promised </guide/promises>`.
