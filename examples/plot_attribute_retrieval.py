"""
Retrieval by several attributes
===============================

Which images are of an even number, have a loop, and are written boldly? Few images are labelled with these attributes,
but many weak attributes come for free: machines for other labels, random splits of these, distances to other images.
See :doc:`/guide/attributes`.
"""

# %%
# Handwritten digits with three attributes. The weak attributes know nothing of these: their labels are clusters.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from mercer.attributes import AttributeRetriever, WeakAttributes

digits = load_digits()
X, y = digits.data / 16, digits.target
ink = X.sum(axis=1)
attributes = {"even": y % 2 == 0, "loop": np.isin(y, [0, 6, 8, 9]), "bold": ink > np.quantile(ink, 0.7)}
Y = np.stack(list(attributes.values()), axis=1).astype(int)
named = [[name for name, on in zip(attributes, row, strict=True) if on] for row in Y]

order = np.random.default_rng(0).permutation(len(X))
labelled, rest = order[:150], order[150:]
clusters = KMeans(20, n_init=3, random_state=0).fit_predict(X)
weak = WeakAttributes(n_splits=40, n_references=60, random_state=0)
Z = weak.fit_transform(X, clusters)

# %%
# Weights of weak attributes, learnt from 150 labelled images. Scores of attributes add up to that of a query.

model = AttributeRetriever(n_weak=60, C=1.0).fit(Z[labelled], [named[i] for i in labelled])
print({size: round(area, 3) for size, area in model.auc(Z[rest], [named[i] for i in rest]).items()})

queries = [["loop"], ["even", "bold"], ["even", "loop", "bold"]]
figure, axes = plt.subplots(3, 12, figsize=(10, 3.4))
for query, row in zip(queries, axes, strict=True):
    for i, place in zip(rest[model.rank(Z[rest], query, k=12).rows], row, strict=True):
        right = set(query) <= set(named[i])
        place.imshow(X[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        place.set(xticks=[], yticks=[])
        for side in place.spines.values():
            side.set(color="tab:purple" if right else "tab:orange", linewidth=2)
    row[0].set_title(" and ".join(query), loc="left", fontsize=9)
figure.suptitle("The best twelve of 1,647 images; orange: wrong")
figure.tight_layout()

# %%
# Precision along the ranking: the share of right images among the best k, for structured margins and for the sum of one
# classifier for each attribute on the pixels.

plain = AttributeRetriever("sum", C=1.0).fit(X[labelled], [named[i] for i in labelled])
figure, axes = plt.subplots(figsize=(6, 3.2))
for name, one, rows in (("weak attributes", model, Z), ("sum of classifiers", plain, X)):
    ranked = rest[one.rank(rows[rest], ["even", "loop", "bold"]).rows]
    right = np.array([set(named[i]) >= {"even", "loop", "bold"} for i in ranked])
    k = np.arange(1, 301)
    axes.plot(k, np.cumsum(right)[:300] / k, label=name)
axes.axhline(right.mean(), color="grey", linewidth=0.8, linestyle=":", label="chance")
axes.set(xlabel="images retrieved", ylabel="precision", ylim=(0, 1.02), title="even, loop and bold")
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`attributes </guide/attributes>`.
