"""
Few learnt features instead of many random ones
===============================================

Random Fourier features are cosines with frequencies drawn at random: they know the kernel but not the task. Learnt
together with the classifier, a handful of cosines does the work of hundreds of random ones. See
:doc:`/guide/fast-maps`.
"""

# %%
# Two classes on a plane, and sixteen features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from mercer.classification import CompactClassifier
from mercer.maps import CompactNonlinearMap, FourierFeatures

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(3000, 2))
y = (np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1]) > 0).astype(int)
grid = np.stack(np.meshgrid(np.linspace(-3, 3, 200), np.linspace(-3, 3, 200)), axis=-1)

fig, axes = plt.subplots(1, 3, figsize=(9.2, 3.3), layout="constrained")
models = {
    "16 random features": CompactClassifier(16, gamma=2.0, learning_rate=0, random_state=0),
    "16 learnt features": CompactClassifier(16, gamma=2.0, random_state=0),
}
truth = np.sin(2 * grid[..., 0]) + np.cos(2 * grid[..., 1])
axes[0].contourf(*np.moveaxis(grid, -1, 0), truth, levels=[-9, 0, 9], colors=["#f3d9b1", "#bcd4e6"])
axes[0].plot(*X[:400].T, ".", color="#444444", markersize=2)
axes[0].set_title("the classes")
for ax, (name, model) in zip(axes[1:], models.items(), strict=True):
    model.fit(X[:2000], y[:2000])
    values = model.decision_function(grid.reshape(-1, 2)).reshape(200, 200)
    ax.contourf(*np.moveaxis(grid, -1, 0), values, levels=[-99, 0, 99], colors=["#f3d9b1", "#bcd4e6"])
    ax.contour(*np.moveaxis(grid, -1, 0), truth, levels=[0], colors="#444444", linewidths=0.7)
    ax.set_title(f"{name}: {100 * model.score(X[2000:], y[2000:]):.0f}% right")
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal")

# %%
# Handwritten digits: accuracy on 600 test images by the number of features. Circulant frequencies are shifts of a
# vector, 64 numbers for 64 features instead of 4,096.

digits = load_digits()
pixels, labels = digits.data / 16, digits.target
order = np.random.default_rng(1).permutation(len(labels))
train, test = order[:1200], order[1200:]
sizes = [4, 8, 16, 32, 64, 128]


def random_accuracy(k, seed):
    map_ = FourierFeatures(k, gamma="neighbours", pairs=False, variant="iid", random_state=seed).fit(pixels[train])
    model = LogisticRegression(C=100, max_iter=300).fit(map_.transform(pixels[train]), labels[train])
    return model.score(map_.transform(pixels[test]), labels[test])


def learnt_accuracy(k, seed, circulant=False):
    model = CompactClassifier(k, circulant=circulant, steps=30, batch_size=200, max_iter=40, random_state=seed)
    return model.fit(pixels[train], labels[train]).score(pixels[test], labels[test])


curves = {
    "random": [np.mean([random_accuracy(k, s) for s in range(3)]) for k in sizes],
    "learnt": [learnt_accuracy(k, 0) for k in sizes],
    "learnt, circulant": [learnt_accuracy(k, 0, circulant=True) for k in sizes],
}
map_ = CompactNonlinearMap(1, "kernel", max_iter=1, random_state=0).fit(pixels[train])
whole = SVC(C=10, gamma=map_.gamma_).fit(pixels[train], labels[train]).score(pixels[test], labels[test])
for name, values in curves.items():
    print(f"{name:18}" + "".join(f"{100 * value:7.1f}" for value in values))

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, values), colour in zip(curves.items(), ("#888888", "#1f4e79", "#c1121f"), strict=True):
    ax.plot(sizes, values, "o-", color=colour, label=name)
ax.axhline(whole, color="black", linestyle=":", label="kernel machine, all rows")
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, [str(k) for k in sizes])
ax.set(xlabel="features", ylabel="accuracy", ylim=(0.2, 1.01))
ax.legend(loc="lower right")
plt.show()

# %%
# Next: the guide :doc:`fast maps </guide/fast-maps>`.
