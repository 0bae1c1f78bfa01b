"""
Strings, trees and graphs by their kernels
==========================================

One interface for objects of any kind: a kernel gives a matrix, and the matrix is all that a support vector machine or
kernel principal components need. Three tasks with two classes each: strings of two Markov chains with equal letter
frequencies, parse trees of two grammars, and graphs of equally many edges, between any points or between near ones.

Above, the normalised Gram matrices, objects sorted by class; below, two kernel principal components and the accuracy
of a support vector machine in cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from mercer.data import Graphs
from mercer.datasets import make_treebank
from mercer.kernel_methods import KernelPCA, KernelSVC
from mercer.kernels import Graphlet, Spectrum, SubsetTree

rng = np.random.default_rng(0)
n = 60  # of each class
y = np.repeat([0, 1], n)


# %%
# Strings: in the first class a letter follows itself more often than in the second.
def chain(stay, length=60):
    moves = np.where(rng.random(length) < stay, 0, rng.integers(1, 4, length))
    return "".join(np.array(list("ACGT"))[np.cumsum(moves) % 4])


strings = [chain(0.42) for _ in range(n)] + [chain(0.2) for _ in range(n)]

# %%
# Trees: sentences of two random grammars with the same labels.
trees = [
    tree
    for seed in (1, 3)
    for tree in make_treebank(n, n_labels=4, n_tags=4, n_rules=16, n_words=50, max_length=15, random_state=seed).trees
]


# %%
# Graphs: points of a square, joined at random, or the nearest ones.
def graph(near):
    size = int(rng.integers(20, 30))
    points = rng.random((size, 2))
    pairs = np.column_stack(np.triu_indices(size, 1))
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    order = np.argsort(lengths + 0.4 * rng.random(len(pairs))) if near else rng.permutation(len(pairs))
    return pairs[order[: 2 * size]], size


made = [graph(near) for near in y]
graphs = Graphs.from_edges([edges for edges, _ in made], [size for _, size in made])

# %%
# The same three lines for each.
tasks = [
    ("strings: Spectrum(3)", Spectrum(3).normalized(), strings),
    ("trees: SubsetTree()", SubsetTree().normalized(), trees),
    ("graphs: Graphlet((3, 4))", Graphlet((3, 4)).normalized(), graphs),
]
fig, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for (title, kernel, objects), (above, below) in zip(tasks, axes.T, strict=True):
    K = kernel(objects)
    points = KernelPCA(kernel, n_components=2).fit_transform(objects)
    accuracy = cross_val_score(KernelSVC(kernel, C=10.0), objects, y, cv=5).mean()
    np.fill_diagonal(K, np.nan)  # it is 1, and would take most of the colours
    image = above.imshow(K, cmap="viridis")
    above.set(title=title, xticks=[], yticks=[])
    fig.colorbar(image, ax=above, shrink=0.8)
    for label, marker in ((0, "o"), (1, "^")):
        below.plot(*points[y == label].T, marker, markersize=4, alpha=0.7, label=f"class {label}")
    below.set(title=f"accuracy {accuracy:.2f}", xlabel="component 1", ylabel="component 2")
axes[1, 0].legend()
plt.show()

# %%
# Next: the guide :doc:`kernels </guide/kernels>`.
