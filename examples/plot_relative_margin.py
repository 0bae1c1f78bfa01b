"""
Relative margin and the scale of an axis
========================================

A support vector machine measures its margin in the units of the features: stretch one axis, and the answer changes,
although the classes are as far apart as before. The relative margin machine also bounds its outputs by B, so the
margin counts against the spread of the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.classification import RelativeMarginSVC

random = np.random.default_rng(0)


def draw(n):
    """Two long, slanted clouds side by side; about 2 percent of the points lie on the wrong side of the best line."""
    y = np.arange(n) % 2
    along = 10 * random.normal(size=n)
    across = 0.5 * random.normal(size=n) + 2 * y
    return np.stack([along, across + 0.7 * along], axis=1), y


scales, runs = np.logspace(-1.5, 1.5, 9), 40
errors = {"SVM": np.zeros((runs, len(scales))), "relative margin, B = 2": np.zeros((runs, len(scales)))}
for run in range(runs):
    X, y = draw(20)
    X_test, y_test = draw(2000)
    for k, scale in enumerate(scales):
        stretch = np.array([1.0, scale])
        for name, B in zip(errors, (np.inf, 2.0), strict=True):
            model = RelativeMarginSVC("linear", C=1000.0, B=B).fit(X * stretch, y)
            errors[name][run, k] = 100 * (1 - model.score(X_test * stretch, y_test))

# %%
# Mean test errors over 40 draws of 20 training points, with the standard error as a band. C and B are the same
# everywhere, chosen to show the effect; with more points, more of them on the wrong side, or C and B chosen by
# cross-validation, the two machines come close to each other.

figure, axes = plt.subplots(figsize=(6, 3.6))
for name, values in errors.items():
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(runs)
    axes.plot(scales, mean, marker="o", label=name)
    axes.fill_between(scales, mean - spread, mean + spread, alpha=0.2)
    print(f"{name:24}", "  ".join(f"{m:4.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True)))
axes.set(xscale="log", xlabel="scale of the second axis", ylabel="test error (%)", ylim=(0, None))
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`relative margin </guide/relative-margin>`.
