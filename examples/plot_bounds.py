"""
What can be promised about a tagger
===================================

A tagger of handwritten codes is fitted to a few hundred examples. What can be said about its error on codes to come?
Examples that it has not seen say most. Bounds from the training examples alone need no further data, and hold for
every number of outputs, but on a sample of this size they say nothing. The pictures show when they would begin to.
"""

# %%
# A tagger and its bounds
# -----------------------
# An error is a code with at least one wrong sign.

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_digit_codes
from mercer.tagging import Tagger
from mercer.theory import margins, pac_bayes

codes = make_digit_codes(n_train=300, n_test=300, random_state=0)
X, y = codes.X_train, codes.y_train
tagger = Tagger(loss="hinge", C=0.3).fit(X, y)
bounds = pac_bayes.bound(tagger, X, y, B="data", n_draws=30)
print(bounds)

wrong = np.mean([list(a) != list(b) for a, b in zip(tagger.predict(codes.X_test), codes.y_test, strict=True)])
print(f"\nwrong codes among {len(codes.X_test)} that it has not seen: {wrong:.3f}")
print(f"so that with probability 0.95 at most {pac_bayes.held_out_bound(wrong, len(codes.X_test)):.3f} of all are")

# %%
# By the margin, and by the number of examples
# --------------------------------------------
# The margin bound weighs the share of examples that lead by at most γ against ‖w‖² B² ln(2 m ``|Y|``) / γ². With the
# margins of this tagger, and so many more examples with the same margins, it would fall below 1 on the right.

lead = margins.geometric(tagger, X, y) * bounds.w_norm
fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained")
gammas = np.quantile(lead[lead > 0], np.linspace(0.0, 1.0, 80))
known = dict(w_norm=bounds.w_norm, log_cardinality=bounds.log_cardinality, B=bounds.B)
for m, colour in ((10**8, "#9db8d2"), (10**9, "#4f81b3"), (10**10, "#1f4e79")):
    values = [pac_bayes.margin_bound(float(np.mean(lead <= g)), **known, m=m, gamma=float(g)) for g in gammas]
    axes[0].plot(gammas, values, color=colour, label=f"m = {m:,}")
axes[0].plot(gammas, [np.mean(lead <= g) for g in gammas], color="#d1741f", linestyle="--", label="share below γ")
axes[0].set_xlabel("margin γ")
axes[0].set_ylabel("bound on the share of wrong codes")
axes[0].legend(fontsize=8)

sizes = np.logspace(2, 11, 60)


def best(m, log_cardinality):
    """The least margin bound over γ."""
    shared = {**known, "log_cardinality": log_cardinality}
    return min(pac_bayes.margin_bound(float(np.mean(lead <= g)), **shared, m=int(m), gamma=float(g)) for g in gammas)


counted = [best(m, bounds.log_cardinality) for m in sizes]
axes[1].semilogx(sizes, counted, color="#1f4e79", label=f"ln |Y| = {bounds.log_cardinality:.0f}, counted")
soft = Tagger(loss="log", C=1.0).fit(X, y)
few = float(np.log(pac_bayes.effective_labels(soft, X).mean()))
axes[1].semilogx(
    sizes, [best(m, few) for m in sizes], color="#d1741f", linestyle=":",
    label=f"ln |Y| = {few:.1f}, effective (not proven)",
)  # fmt: skip
axes[1].axhline(wrong, color="#3a7d44", linewidth=1.0, label="error on other codes")
axes[1].set_xlabel("examples")
axes[1].set_ylabel("margin bound, best γ")
axes[1].legend(fontsize=8)
plt.show()

# %%
# Next: the guide :doc:`what can be promised </guide/promises>`.
