"""
Binary codes and the neighbours they keep
=========================================

A code of k bits is the signs of k projections. A dense projection takes d · k multiplications, a bilinear one about
d · √k, a circulant one a multiple of d · log d, whatever k is. Which codes find the true neighbours, with equal bits and
with equal work? See :doc:`/guide/retrieval`.
"""

# %%
# Handwritten digits, all products of two pixels: 2,080 numbers an image, centred and of length 1. The last 200 images
# are queries; their true neighbours are the ten with the smallest angles.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer.retrieval import BilinearEmbedding, CirculantEmbedding, HammingIndex, SignProjection, recall_at

images = load_digits().images
images = images[np.random.default_rng(0).permutation(len(images))]
pixels = images.reshape(-1, 64) / 16
left, right = np.triu_indices(64)
X = (pixels[:, left] * pixels[:, right]).astype(np.float32)
X -= X.mean(axis=0)
X /= np.linalg.norm(X, axis=1, keepdims=True)
base, queries = X[:-200], X[-200:]
truth = np.argsort(-(queries @ base.T), axis=1)[:, :10]
d = X.shape[1]

# %%
# Recall@R: the share of the ten that are among the first R found by Hamming distance. At equal bits, random circulant
# codes are as good as dense ones, and learned ones better. Bilinear ones need more bits.

shown = np.arange(1, 101)


def found(embedding, n=100):
    model = embedding.set_params(random_state=0).fit(base[:800])
    index = HammingIndex(model.transform(base), n_bits=model.n_bits)
    return index.search(model.transform(queries), k=n)[1]


def curve(embedding):
    return list(recall_at(found(embedding), truth, shown).values())


equal_bits = {
    "dense": curve(SignProjection(d)),
    "bilinear": curve(BilinearEmbedding(d)),
    "circulant": curve(CirculantEmbedding(d)),
    "circulant, learned": curve(CirculantEmbedding(d, "learned")),
}

# %%
# With equal work the others have fewer bits: three Fourier transforms are about 5 d log₂ d multiplications and
# additions for d bits; a dense projection makes 2.5 log₂ d bits of them.

work = 5 * d * np.log2(d)
dense_bits = int(work / (2 * d))
bilinear_bits = int((work / (4 * d)) ** 2)  # 2 d √k for each of the two products
equal_work = {
    f"dense, {dense_bits} bits": curve(SignProjection(dense_bits)),
    f"bilinear, {bilinear_bits} bits": curve(BilinearEmbedding(bilinear_bits)),
    f"circulant, {d:,} bits": equal_bits["circulant"],
    f"circulant, learned, {d:,} bits": equal_bits["circulant, learned"],
}

COLOURS = ["#888888", "#c1121f", "#4a90c2", "#1f4e79"]
fig, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained", sharey=True)
titles = (f"equal bits: {d:,}", "equal work")
for ax, curves, title in zip(axes, (equal_bits, equal_work), titles, strict=True):
    for (name, values), colour in zip(curves.items(), COLOURS, strict=True):
        ax.plot(shown, values, color=colour, label=name)
    ax.set(title=title, xlabel="images looked at, R", xlim=(1, 100), ylim=(0, 1.02))
    ax.legend(loc="lower right", fontsize=9)
axes[0].set_ylabel("recall@R")

# %%
# Fewer bits, and what learning does with them. The rule of the source asks outputs beyond the bits to be zero, so that
# the variance moves into the bits; where few directions hold most of it, as here, all bits end up looking at the
# same. By default the embedding tries that, tries to keep a rotation instead, and takes what keeps more neighbours.

sizes = [32, 128, 512]
kinds = {
    "dense": SignProjection(),
    "circulant": CirculantEmbedding(),
    "learned, outputs beyond the bits zero": CirculantEmbedding(method="learned", rest="zero"),
    "learned": CirculantEmbedding(method="learned"),
}
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, embedding), colour in zip(kinds.items(), COLOURS, strict=True):
    values = [recall_at(found(embedding.set_params(n_bits=k), 50), truth, [50])[50] for k in sizes]
    ax.plot(sizes, values, "o-", color=colour, label=name)
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, [str(k) for k in sizes])
ax.set(xlabel="bits", ylabel="recall@50", ylim=(0, 1.02))
ax.legend(loc="lower right", fontsize=9)

# %%
# Four queries (left) and the images whose codes of 256 bits are nearest to theirs.

near = found(CirculantEmbedding(256), 9)
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
