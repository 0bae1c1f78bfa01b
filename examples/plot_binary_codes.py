"""
Binary codes and the neighbours they keep
=========================================

A code of k bits is the signs of k projections. A dense projection takes d · k multiplications, a bilinear one about
d · √k, a circulant one a multiple of d · log d, whatever k is. Which codes find the true neighbours, with equal bits
and with equal work? See :doc:`/guide/retrieval`.
"""

# %%
# Handwritten digits, 64 pixels, centred and of length 1. The last 200 images are queries; their true neighbours are the
# ten with the smallest angles.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer.retrieval import BilinearEmbedding, CirculantEmbedding, HammingIndex, SignProjection, recall_at

images = load_digits().images
images = images[np.random.default_rng(0).permutation(len(images))]


def split(X):
    """Rows to search in, queries, and the ten true neighbours of these."""
    X = (X - X.mean(axis=0)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:-200], X[-200:], np.argsort(-(X[-200:] @ X[:-200].T), axis=1)[:, :10]


def found(embedding, data, seed=0, n=100):
    """The n nearest by Hamming distance."""
    base, queries, _ = data
    model = embedding.set_params(random_state=seed).fit(base)
    index = HammingIndex(model.transform(base), n_bits=model.n_bits)
    return index.search(model.transform(queries), k=n)[1]


pixels = images.reshape(-1, 64) / 16
data = split(pixels)

# %%
# Recall@R is the share of the ten that are among the first R found. At equal bits, random circulant codes are as good
# as dense ones, and learned ones better; random bilinear codes need more bits. Means over five seeds.

shown = np.arange(1, 101)


def curve(embedding, data, seeds=5):
    return np.mean([list(recall_at(found(embedding, data, s), data[2], shown).values()) for s in range(seeds)], axis=0)


equal_bits = {
    "dense": curve(SignProjection(64), data),
    "bilinear": curve(BilinearEmbedding(64), data),
    "circulant": curve(CirculantEmbedding(64), data),
    "circulant, learned": curve(CirculantEmbedding(64, "learned"), data),
}

# %%
# Work matters where vectors are long: here all products of two pixels, 2,080 numbers. Three Fourier transforms are
# about 5 d log₂ d operations for d bits; a dense projection makes 2.5 log₂ d bits of as many.

left, right = np.triu_indices(64)
products = split(pixels[:, left] * pixels[:, right])
d = products[0].shape[1]
dense_bits = int(2.5 * np.log2(d))
bilinear_bits = int((1.25 * np.log2(d)) ** 2)  # 2 d √k for each of two products
equal_work = {
    f"dense, {dense_bits} bits": curve(SignProjection(dense_bits), products, 3),
    f"bilinear, {bilinear_bits} bits": curve(BilinearEmbedding(bilinear_bits), products, 3),
    f"circulant, {d:,} bits": curve(CirculantEmbedding(d), products, 3),
}

COLOURS = ["#888888", "#c1121f", "#4a90c2", "#1f4e79"]
fig, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained", sharey=True)
titles = ("64 pixels, equal bits: 64", f"{d:,} products, equal work")
for ax, curves, title in zip(axes, (equal_bits, equal_work), titles, strict=True):
    for (name, values), colour in zip(curves.items(), COLOURS, strict=False):
        ax.plot(shown, values, color=colour, label=name)
    ax.set(title=title, xlabel="images looked at, R", xlim=(1, 100), ylim=(0, 1.02))
    ax.legend(loc="lower right", fontsize=9)
axes[0].set_ylabel("recall@R")

# %%
# Fewer and more bits.

sizes = [16, 32, 64, 128]
kinds = {
    "dense": SignProjection(),
    "bilinear": BilinearEmbedding(),
    "circulant": CirculantEmbedding(),
    "circulant, learned": CirculantEmbedding(method="learned"),
}
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, embedding), colour in zip(kinds.items(), COLOURS, strict=True):
    values = [curve(embedding.set_params(n_bits=k), data, 3)[49] for k in sizes]
    ax.plot(sizes, values, "o-", color=colour, label=name)
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, [str(k) for k in sizes])
ax.set(xlabel="bits", ylabel="recall@50", ylim=(0, 1.02))
ax.legend(loc="lower right", fontsize=9)

# %%
# Four queries (left) and the images whose learned codes of 64 bits are nearest to theirs.

near = found(CirculantEmbedding(64, "learned"), data, n=9)
fig, axes = plt.subplots(4, 10, figsize=(8, 3.4))
for i, row in enumerate(axes):
    for ax, image in zip(row, [images[-200 + i], *images[near[i]]], strict=True):
        ax.imshow(image, cmap="Greys")
        ax.set_xticks([])
        ax.set_yticks([])
    for spine in row[0].spines.values():
        spine.set(color="#c1121f", linewidth=2)
fig.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01, hspace=0.08, wspace=0.08)
plt.show()

# %%
# Next: the guide :doc:`binary codes and retrieval </guide/retrieval>`.
