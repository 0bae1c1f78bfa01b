"""
Recognising faces by sparse codes
=================================

A new image of a person is close to a combination of a few older ones. Its sparse code over a gallery of everybody says
which: the images in the code, the residual that each person leaves, and how far the code is concentrated on one person.
See :doc:`/guide/recognition`.
"""

# %%
# Twenty people, drawn, with light from all sides: twelve images of each for the gallery and four queries.

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_faces
from mercer.maps import SignedHashProjection
from mercer.recognition import SparseRepresentationClassifier

images, names = make_faces(20, 16, random_state=0)
train = np.arange(len(names)) % 16 < 12
gallery, owners = images[train], names[train]
queries, truth = images[~train], names[~train]

figure, axes = plt.subplots(3, 12, figsize=(10, 3.2))
for row, axis in zip(gallery.reshape(20, 12, 24, 20), axes, strict=False):
    for image, place in zip(row, axis, strict=True):
        place.imshow(image, cmap="gray", vmin=0, vmax=1)
        place.axis("off")
figure.suptitle("Three people of the gallery")
figure.tight_layout()

# %%
# Codes over hashed measurements: 480 pixels become 100 numbers, without a matrix. Each row below is a query: the image,
# its code as bars (of the right person in orange), the images it uses most, and the residual that each person leaves.

model = SparseRepresentationClassifier(SignedHashProjection(100, random_state=0)).fit(gallery, owners)
print(f"accuracy {model.score(queries, truth):.3f}")


def show(chosen, title):
    """Query, code, images used and residuals, a row for each chosen query."""
    figure = plt.figure(figsize=(10, 2 * len(chosen)))
    grid = figure.add_gridspec(len(chosen), 7, width_ratios=[1, 4, 0.8, 0.8, 0.8, 0.8, 3])
    codes, residuals = model.code(queries[chosen]).codes, model.residuals(queries[chosen])
    for row, i in enumerate(chosen):
        face = figure.add_subplot(grid[row, 0])
        face.imshow(queries[i], cmap="gray", vmin=0, vmax=1)
        face.set_title(truth[i], fontsize=8)
        face.axis("off")
        code = codes[row].toarray()[0]
        own = owners == truth[i]
        bars = figure.add_subplot(grid[row, 1])
        bars.vlines(np.flatnonzero(~own), 0, code[~own], color="tab:blue")
        bars.vlines(np.flatnonzero(own), 0, code[own], color="tab:orange")
        bars.axhline(0, color="black", linewidth=0.5)
        bars.set_title(f"code, concentration {model.concentration(queries[[i]])[0]:.2f}", fontsize=8)
        bars.tick_params(labelsize=6)
        for place, atom in enumerate(np.argsort(-np.abs(code))[:4]):
            used = figure.add_subplot(grid[row, 2 + place])
            used.imshow(gallery[atom], cmap="gray", vmin=0, vmax=1)
            used.set_title(f"{code[atom]:+.2f}", fontsize=8, color="tab:orange" if own[atom] else "tab:blue")
            used.axis("off")
        residual = figure.add_subplot(grid[row, 6])
        residual.bar(
            np.arange(20), residuals[row], color=np.where(model.classes_ == truth[i], "tab:orange", "tab:blue")
        )
        residual.set_ylim(residuals[row].min() - 0.05, 1)
        residual.set_title("residual of each person", fontsize=8)
        residual.tick_params(labelsize=6)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()


show([0, 21, 42], "Queries of people in the gallery")

# %%
# People whom the gallery does not know have codes that are spread over many others. With half of the people left out,
# the concentration tells strangers from friends.

known = np.isin(owners, model.classes_[::2])
model = SparseRepresentationClassifier(SignedHashProjection(100, random_state=0)).fit(gallery[known], owners[known])
friend = np.isin(truth, model.classes_)
concentration = model.concentration(queries)
limits = np.sort(np.unique(concentration))[::-1]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
left.hist([concentration[friend], concentration[~friend]], bins=15, label=["in the gallery", "strangers"])
left.set_xlabel("concentration of the code")
left.legend()
right.plot(
    [(concentration[~friend] >= limit).mean() for limit in limits],
    [(concentration[friend] >= limit).mean() for limit in limits],
)
right.plot([0, 1], [0, 1], color="grey", linewidth=0.5)
right.set_xlabel("strangers accepted")
right.set_ylabel("friends accepted")
figure.tight_layout()

# %%
# Damaged pixels spoil codes, unless single pixels may explain themselves: ``occlusion=True`` adds the identity to the
# dictionary, and takes away what it explains.

random = np.random.default_rng(0)
shares = [0.0, 0.1, 0.2, 0.3]
accuracy = {"pixels": [], "pixels and identity": []}
for share in shares:
    damaged = queries.copy()
    for image in damaged:
        image.flat[random.choice(480, int(480 * share), replace=False)] = random.uniform(size=int(480 * share))
    for name, occlusion in (("pixels", False), ("pixels and identity", True)):
        classifier = SparseRepresentationClassifier(alpha=0.003, occlusion=occlusion).fit(gallery, owners)
        accuracy[name].append(classifier.score(damaged, truth))

figure, axis = plt.subplots(figsize=(5, 3.2))
for name, values in accuracy.items():
    axis.plot(shares, values, marker="o", label=name)
axis.set_xlabel("share of damaged pixels")
axis.set_ylabel("accuracy")
axis.set_ylim(0, 1.02)
axis.legend()
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`sparse codes and recognition </guide/recognition>`.
