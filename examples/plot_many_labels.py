"""
Labels that go together
=======================

Photographs of a beach show the sea, and often people and the sky. A machine for all labels learns that too: which
labels it gives for the same reasons, and which speak against each other. Tables of categories have a picture of their
own, in which rows and categories share one plane. See :doc:`/guide/many-labels`.
"""

# %%
# A thousand drawn scenes of four kinds. Each kind has labels that mostly go with it, and the features tell the kind and
# a few of the labels.

import matplotlib.pyplot as plt
import numpy as np

from mercer.metrics import multilabel_scores
from mercer.multilabel import HomogeneityAnalysis, JointSVM, KernelHomogeneityAnalysis

names = ["sea", "beach", "people", "sky", "tree", "hill", "snow", "street", "car", "night"]
shares = np.array(
    [
        [0.9, 0.8, 0.6, 0.8, 0.1, 0.1, 0.0, 0.0, 0.0, 0.05],  # by the sea
        [0.1, 0.0, 0.2, 0.8, 0.7, 0.9, 0.5, 0.0, 0.0, 0.05],  # in the mountains
        [0.0, 0.0, 0.6, 0.2, 0.2, 0.0, 0.0, 0.9, 0.8, 0.10],  # in town by day
        [0.0, 0.0, 0.3, 0.1, 0.0, 0.0, 0.0, 0.8, 0.7, 0.95],  # in town at night
    ]
)
rng = np.random.default_rng(0)
kind = rng.integers(0, 4, 1000)
Y = (rng.random((1000, 10)) < shares[kind]).astype(int)
X = Y @ rng.normal(size=(10, 12)) * 0.6 + np.eye(4)[kind] @ rng.normal(size=(4, 12)) + rng.normal(size=(1000, 12))
label_sets = [[name for name, on in zip(names, row, strict=True) if on] for row in Y]

model = JointSVM().fit(X[:700], label_sets[:700])
views = KernelHomogeneityAnalysis(4).fit(X[:700], label_sets[:700])
order = [names.index(str(label)) for label in model.classes_]
for one in (model, views):
    given = np.array([[str(label) in row for label in model.classes_] for row in one.predict(X[700:])])
    score = multilabel_scores(Y[700:][:, order], given.astype(int))
    print(f"{type(one).__name__}: micro-F1 {score.micro_f1:.3f}, exact sets {score.subset_accuracy:.3f}")

# %%
# The dependence that each of them has learned. Purple labels are given for the same reasons, orange ones speak against
# each other: the sea goes with the beach, streets with cars, and there is rarely the sea in a street. Four latent
# coordinates for ten labels make more of them alike than one machine for all, where each label keeps a function of its
# own.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6))
for axis, one in zip(axes, (model, views), strict=True):
    one.plot_dependence(ax=axis)
    axis.set_title(type(one).__name__)
figure.tight_layout()

# %%
# The same scenes as a table of categories: homogeneity analysis gives every scene and every category a place, so that a
# scene lies in the middle of its categories.

table = {name: np.where(Y[:, t] > 0, "yes", "no") for t, name in enumerate(names)}
analysis = HomogeneityAnalysis(2).fit(table)
axis = analysis.plot()
axis.set_title("Scenes and their labels in one plane")
plt.show()

# %%
# Next: the guide :doc:`many labels </guide/many-labels>`.
