"""
Classes without a training row
==============================

A classifier is asked for digits that it has never seen, and knows of them only which other digits they resemble. Its
attributes are designed from the known digits: far apart, shared by digits that look alike, different from each other.
See :doc:`/guide/attributes`.
"""

# %%
# Seven digits are known. The table of their attributes, designed from the proximity of their means: rows are digits,
# columns attributes; a digit with an entry near 0 takes no part in that attribute.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer.attributes import CategoryAttributes, ZeroShotClassifier, attribute_report

X, y = load_digits(return_X_y=True)
X = X / 16
new_digits = [3, 8, 9]
new = np.isin(y, new_digits)

model = CategoryAttributes(n_attributes=20).fit(X[~new], y[~new])
print(attribute_report(model, X[~new], y[~new]))

figure, axes = plt.subplots(figsize=(8, 3))
picture = axes.imshow(model.attributes_, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
axes.set(yticks=range(7), yticklabels=model.classes_, xlabel="attribute", ylabel="digit", title="Designed attributes")
axes.set_xticks(range(0, 20, 2))
figure.colorbar(picture)
figure.tight_layout()

# %%
# What an attribute looks like: the weights of its machine as an image. Orange pixels speak against it, purple ones for.

figure, axes = plt.subplots(2, 6, figsize=(9, 3.6))
for j, place in enumerate(axes.ravel()):
    weights = model.coef_[j].reshape(8, 8)
    place.imshow(weights, cmap="PuOr", vmin=-np.abs(weights).max(), vmax=np.abs(weights).max())
    having = model.classes_[model.attributes_[:, j] > 0.2]
    place.set_title(" ".join(map(str, having)), fontsize=8)
    place.axis("off")
figure.suptitle("Machines of twelve attributes, and the digits that have them")
figure.tight_layout()

# %%
# A person says what the new digits resemble. That gives each of them a description: the mean of the attributes of
# similar digits. No image of a new digit is used.

similarity = {3: [2, 5, 7], 8: [0, 6, 1], 9: [4, 7, 5]}
table = np.array([[float(known in similarity[digit]) for known in model.classes_] for digit in new_digits])
zero_shot = ZeroShotClassifier(table, novel=new_digits, n_attributes=20, C=0.1).fit(X[~new], y[~new])
predicted = zero_shot.predict(X[new])
print(f"accuracy {zero_shot.score(X[new], y[new]):.3f}, chance {1 / 3:.3f}")

confusion = np.array([[np.mean(predicted[y[new] == a] == b) for b in new_digits] for a in new_digits])
figure, axes = plt.subplots(figsize=(3.6, 3.2))
axes.imshow(confusion, cmap="Purples", vmin=0, vmax=1)
for i, row in enumerate(confusion):
    for j, share in enumerate(row):
        axes.text(j, i, f"{share:.2f}", ha="center", va="center", color="white" if share > 0.5 else "black")
axes.set(xticks=range(3), yticks=range(3), xticklabels=new_digits, yticklabels=new_digits)
axes.set(xlabel="predicted", ylabel="true", title="New digits")
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`attributes </guide/attributes>`.
