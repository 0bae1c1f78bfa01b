"""
Where do paragraphs begin?
==========================

Every Python carries real prose: the reference texts of ``pydoc_data.topics``. Take away their blank lines, and find
them again, once by asking of every sentence alone whether it begins a paragraph, and once with a
:class:`~mercer.segmentation.Segmenter` that scores whole paragraphs: their lengths and how much their sentences
have in common.
"""

# %%
# Half of the documents are for training, a quarter to choose the offset (how readily a paragraph starts),
# and a quarter for the test. Both models see the same features of boundaries.

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import load_topics_prose
from mercer.metrics import boundary_score
from mercer.segmentation import BoundaryClassifier, ParagraphFeatures, Segmenter

prose = load_topics_prose()
order = np.random.default_rng(0).permutation(len(prose))
train, dev, test = (order[k] for k in (slice(0, None, 2), slice(1, None, 4), slice(3, None, 4)))


def part(chosen):
    return [prose.documents[i] for i in chosen], [prose.starts[i] for i in chosen]


models = {
    "sentence by sentence": BoundaryClassifier("svm", features=ParagraphFeatures()),
    "segmenter": Segmenter(features=ParagraphFeatures(), form="boundaries", tol=1e-2, random_state=0),
}
X_test, y_test = part(test)
lengths = [len(document) for document in X_test]
print(f"{len(prose)} documents, {prose.lengths.sum()} sentences, {sum(map(len, prose.starts))} paragraphs")
for name, model in models.items():
    model.fit(*part(train)).tune_offset(*part(dev))
    score = boundary_score(y_test, model.predict(X_test), lengths)
    print(f"{name:22} precision {score.precision:.2f}  recall {score.recall:.2f}  F1 {score.f1:.2f}")

# %%
# More offset gives more paragraphs. The curves are of the held-out documents; the dots are the offsets that
# were chosen.

fig, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
for (name, model), style in zip(models.items(), ["--", "-"], strict=True):
    curve = model.curve_
    by_recall = np.lexsort((curve.precision, curve.recall))
    (line,) = ax.plot(curve.recall[by_recall], curve.precision[by_recall], style, label=name)
    best = np.flatnonzero(curve.offsets == curve.best)[0]
    ax.plot(curve.recall[best], curve.precision[best], "o", color=line.get_color())
ax.set_xlabel("recall")
ax.set_ylabel("precision")
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)

# %%
# The beginning of a test document, with the segmenter's probability that a paragraph starts, and a bar where
# one does.

shown = max(range(len(X_test)), key=lambda i: lengths[i])
p = models["segmenter"].boundary_marginals(X_test[shown : shown + 1])[0]
n = 24
fig, ax = plt.subplots(figsize=(9.4, 5.6), layout="constrained")
ax.barh(range(n), p[:n], color="#56b4e9")
for t in range(n):
    true = t in y_test[shown]
    ax.text(1.03, t, textwrap.shorten(X_test[shown][t], 88), va="center", fontsize=8, weight="bold" if true else None)
    if true:
        ax.axhline(t - 0.5, color="#444444", lw=0.8)
ax.set_ylim(n - 0.5, -0.5)
ax.set_xlim(0, 3.2)
ax.set_xticks([0, 0.5, 1])
ax.set_yticks([])
ax.set_xlabel("p(a paragraph starts); bold: one does", loc="left")
_ = ax.spines[["top", "right", "left"]].set_visible(False)

# %%
# Next: the guide :doc:`paragraphs and segments </guide/paragraphs>`.
