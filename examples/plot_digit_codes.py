"""
Reading handwritten codes
=========================

A code is a finger's walk over a telephone keypad: every next digit lies beside the one before. The
digits are handwritten and noisy, so that one alone is often unreadable while its neighbours give it
away. A classifier that looks at each digit alone cannot use that; a chain can, without being told
the rule.
"""

# %%
# The codes come with the library: 8 x 8 images of scikit-learn's digits under noise, six to ten in
# a row. No image of a training code appears in a test code.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from mercer.datasets import make_digit_codes
from mercer.metrics import sequence_accuracy, token_accuracy
from mercer.tagging import Constraints, Tagger

codes = make_digit_codes(n_train=400, n_test=200, random_state=0)
print(len(codes.X_train), "codes to learn from; the first has shape", codes.X_train[0].shape)

# %%
# Three readers. The first labels each digit by itself. The second is a
# :class:`~mercer.tagging.Tagger` on the same pixels: it has one weight more for each pair of
# neighbouring digits. The third is told which pairs are possible.

alone = LogisticRegression(C=0.1, max_iter=1000)
alone.fit(np.concatenate(codes.X_train), np.concatenate(codes.y_train))
chain = Tagger(C=0.1).fit(codes.X_train, codes.y_train)

near = ["8", "24", "135", "26", "157", "2468", "359", "48", "0579", "68"]  # beside 0, 1, ..., 9
keypad = {str(digit): keys for digit, keys in enumerate(near)}
rule = Constraints.allowing(sorted(keypad), [(a, b) for a in keypad for b in keypad[a]])
ruled = Tagger(C=0.1, constraints=rule).fit(codes.X_train, codes.y_train)

readings = {
    "each digit alone": [alone.predict(x).tolist() for x in codes.X_test],
    "chain": chain.predict(codes.X_test),
    "chain with the rule": ruled.predict(codes.X_test),
}
print(f"{'':20s}  digits right  codes right")
for name, labels in readings.items():
    digits, whole = token_accuracy(codes.y_test, labels), sequence_accuracy(codes.y_test, labels)
    print(f"{name:20s}  {digits:12.1%}  {whole:11.1%}")

# %%
# Some codes, and what two of the readers make of them. A wrong digit is red.

GOOD, BAD = "#1f4e79", "#c1121f"
images = codes.images("test")
shown = [i for i, y in enumerate(codes.y_test) if len(y) == 8 and readings["chain"][i] == y][:5]
fig, axes = plt.subplots(len(shown), 8, figsize=(7.6, 1.42 * len(shown)))
fig.subplots_adjust(left=0.1, right=0.99, top=0.98, bottom=0.06, hspace=0.75, wspace=0.12)
for row, i in zip(axes, shown, strict=True):
    for t, ax in enumerate(row):
        ax.imshow(images[i][t], cmap="Greys", vmin=0, vmax=1)
        ax.set_xticks([])
        ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set_color("#cccccc")
        for y, name in ((-0.2, "each digit alone"), (-0.46, "chain")):
            read = readings[name][i][t]
            right = read == codes.y_test[i][t]
            style = {"color": GOOD if right else BAD, "weight": "normal" if right else "bold"}
            ax.text(0.5, y, read, transform=ax.transAxes, ha="center", va="center", fontsize=11, **style)
    for y, name in ((-0.2, "alone"), (-0.46, "chain")):
        style = {"ha": "right", "va": "center", "fontsize": 10, "color": "#555555"}
        row[0].text(-0.25, y, name, transform=row[0].transAxes, **style)

# %%
# What the chain has learnt about neighbours. Circles mark the pairs that lie side by side on the
# keypad: nobody told the model, and these are the pairs with high weights.

fig, ax = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
limit = np.abs(chain.transitions_).max()
picture = ax.imshow(chain.transitions_, cmap="RdBu", vmin=-limit, vmax=limit)
labels = chain.classes_.tolist()
pairs = [(labels.index(b), labels.index(a)) for a in keypad for b in keypad[a]]
ax.scatter(*zip(*pairs, strict=True), s=110, facecolors="none", edgecolors="#222222", linewidths=1.2)
ax.set_xticks(range(10), labels)
ax.set_yticks(range(10), labels)
ax.set_xlabel("next digit")
ax.set_ylabel("digit")
ax.set_title("Transition weights; circles: neighbours on the keypad", fontsize=11)
fig.colorbar(picture, ax=ax, shrink=0.85)
plt.show()

# %%
# Next: the guide :doc:`tagging </guide/tagging>`.
