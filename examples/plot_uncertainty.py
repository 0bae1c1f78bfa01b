"""
How sure is the model?
======================

A chain model gives a probability to every labelling of a sequence, and all the questions about them
have exact answers: the probability of each label at each position, the k most probable labellings,
draws, and the entropy of the whole.
"""

# %%
# A reader of handwritten keypad codes. Good probabilities may ask for another C than good labels:
# with C = 1 the log-likelihood of new codes is higher than with C = 0.1 (-1.4 against -2.4 a code),
# although slightly fewer codes are read without a mistake.

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_digit_codes
from mercer.tagging import Tagger

codes = make_digit_codes(n_train=400, n_test=600, random_state=0)
tagger = Tagger(C=1.0, random_state=0).fit(codes.X_train, codes.y_train)

entropy = tagger.entropy(codes.X_test)
right = np.array([a == b for a, b in zip(tagger.predict(codes.X_test), codes.y_test, strict=True)])
print(f"{right.mean():.1%} of the codes are read without a mistake")

# %%
# One code that the model is unsure of: the images, the marginals p(digit at position | image), and
# the five best readings with their probabilities. The true reading is blue. The most probable digit
# at a position need not belong to the best reading of the whole code: marginals answer "which digit
# here?", the best labelling answers "which code?".

doubtful = [i for i, y in enumerate(codes.y_test) if len(y) == 8]
best_five = tagger.k_best([codes.X_test[i] for i in doubtful], 5)
i, readings = next(
    (i, found)
    for i, found in zip(doubtful, best_five, strict=True)
    if 2.0 < entropy[i] < 3.0 and codes.y_test[i] in [labels for labels, _ in found[1:]]
)
x, truth = codes.X_test[i], codes.y_test[i]
marginals = tagger.predict_marginals([x])[0]

BLUE, GREY = "#1f4e79", "#b8b8b8"
fig = plt.figure(figsize=(9.4, 4.9), layout="constrained")
grid = fig.add_gridspec(2, 2, width_ratios=[1.45, 1], height_ratios=[1, 5.2])
strip = fig.add_subplot(grid[0, 0])
strip.imshow(np.concatenate(codes.images("test")[i], axis=1), cmap="Greys", aspect="auto")
strip.set_xticks([])
strip.set_yticks([])
strip.set_title(f"A code ({''.join(truth)}), entropy {entropy[i]:.2f} nats", fontsize=11)
ax = fig.add_subplot(grid[1, 0])
ax.imshow(marginals.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for t, probabilities in enumerate(marginals):
    for c, p in enumerate(probabilities):
        if p >= 0.05:
            colour = "white" if p > 0.55 else "#222222"
            ax.text(t, c, f"{p:.2f}", ha="center", va="center", fontsize=8.5, color=colour)
ax.set_xticks(range(len(truth)), truth)
ax.set_yticks(range(10), tagger.classes_)
ax.set_xlabel("true digit at each position")
ax.set_ylabel("digit")
ax.set_title("Marginals (those of at least 0.05)", fontsize=11)
ax = fig.add_subplot(grid[:, 1])
names = ["".join(labels) for labels, _ in readings]
probabilities = np.exp([score for _, score in readings])
bars = ax.barh(names, probabilities, color=[BLUE if name == "".join(truth) else GREY for name in names])
ax.bar_label(bars, [f"{p:.2f}" for p in probabilities], padding=3)
ax.invert_yaxis()
ax.tick_params(axis="y", length=0, labelfontfamily="monospace")
ax.set_xlim(0, 1.15 * probabilities.max())
ax.set_xlabel("probability")
ax.set_title("The five best readings (blue: true)", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Draws from p(y | x) are other readings that the model holds possible, each as often as it believes
# in it.

for labels in tagger.sample([x], 5)[0]:
    print("".join(labels))

# %%
# Which readings to trust? Sort the codes by the entropy, or by the probability of the best reading,
# and leave the most doubtful to a person: of the codes that remain, more and more are right.

confidence = np.array([found[0][1] for found in tagger.k_best(codes.X_test, 1)])
kept = np.arange(1, len(right) + 1)
share = 100 * kept / len(right)
fig, ax = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
for name, doubt, colour in (
    ("highest probability of the best reading first", -confidence, BLUE),
    ("lowest entropy first", entropy, "#d1741f"),
):
    ax.plot(share, 100 * np.cumsum(right[np.argsort(doubt)]) / kept, color=colour, label=name)
ax.axhline(100 * right.mean(), color=GREY, linestyle="--", label="all codes")
ax.set_xlim(5, 100)
ax.set_xlabel("codes read by the model (%)")
ax.set_ylabel("of these read without a mistake (%)")
ax.set_title("Leaving doubtful codes to a person", fontsize=11)
ax.grid(color="#e6e6e6")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Next: the guide :doc:`tagging </guide/tagging>`.
