"""
Attributes of images from shares of categories
==============================================

Nobody has said which images show an attribute; all that is known is the share of images of each category that do.
Making the shares 0 or 1 and training on that is common practice, and loses what lies between.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import mercer.proportions
from mercer.datasets import make_attribute_categories
from mercer.proportions import AttributeModeler, BinarizedAttributes, ProportionClassifier, discretize_proportions

warnings.simplefilter("ignore")  # some of the starts end before they converge

# %%
# Thirty categories of 60 images, with four attributes. The nearer all shares are to one half, the less a threshold
# tells. Average precision is measured on held-out images, whose attributes are known here.

models = {
    "0 or 1, linear SVM": lambda: BinarizedAttributes(),
    "shares, by gradient": lambda: AttributeModeler(ProportionClassifier(random_state=0, n_init=1)),
}
if hasattr(mercer.proportions, "AlternatingProportionSVM"):
    machine = mercer.proportions.AlternatingProportionSVM(C_instance=1 / 40, n_init=2, random_state=0)
    models["shares, alternating machine"] = lambda: AttributeModeler(machine)

widths, seeds = np.array([0.1, 0.2, 0.3, 0.4, 0.5]), 3
found = {name: np.zeros((seeds, len(widths))) for name in models}
for seed in range(seeds):
    for k, width in enumerate(widths):
        task = make_attribute_categories(30, 60, low=0.5 - width, high=0.5 + width, random_state=seed)
        held = np.arange(len(task.X)) % 3 == 0
        for name, make in models.items():
            model = make().fit(task.X[~held], task.category[~held], task.proportions)
            found[name][seed, k] = model.score(task.X[held], task.attributes[held])

# %%
# People do not give shares as decimal numbers. Rounding them to 0, 1/3, 2/3 and 1 costs about two points of average
# precision here, rounding to 0 and 1 about twelve.

task = make_attribute_categories(30, 60, low=0.1, high=0.9)
held = np.arange(len(task.X)) % 3 == 0
levels, precision = [2, 3, 4, 6, 11], []
for n in levels:
    shares = discretize_proportions(task.proportions, n)
    model = list(models.values())[-1]().fit(task.X[~held], task.category[~held], shares)
    precision.append(model.score(task.X[held], task.attributes[held]))
    print(f"{n:2} levels: mean average precision {precision[-1]:.3f}")

# %%
# Left: mean average precision over attributes against the spread of shares, a line for each method and a dot for each
# draw. Right: shares rounded to a few levels, with the last of the methods.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for (name, values), colour in zip(found.items(), ("#999999", "#335588", "#cc6633"), strict=False):
    left.plot(widths, values.mean(axis=0), color=colour, label=name)
    left.plot(np.tile(widths, (seeds, 1)), values, "o", color=colour, ms=3)
left.set(xlabel="shares lie within 1/2 ± this", ylabel="mean average precision", ylim=(0.5, 1.02))
left.legend(fontsize=9, frameon=False, loc="lower right")
right.plot(levels, precision, "o-", color="#cc6633" if len(models) == 3 else "#335588")
right.set(xlabel="levels of shares", xticks=levels)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Next: the guide :doc:`bags and proportions </guide/proportions>`.
