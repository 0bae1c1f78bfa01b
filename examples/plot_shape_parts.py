"""
Parts of shapes
===============

Point clouds of one class, aligned: which points belong to the same part, in all of them? `ShapePartModel` draws the
part of each point from three terms, and each can be turned off. Co-occurrence alone (latent Dirichlet allocation) knows
nothing of neighbours; with smoothness parts become regions, but a region may have two labels in two places; the
position of parts keeps them together.
"""

# %%
# Six objects with a body, a head and a stick, of sizes that vary.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from mercer.fields import ShapePartModel

random = np.random.default_rng(0)
sizes = (180, 120, 100)


def sphere(n, radius, centre):
    points = random.normal(size=(n, 3))
    return radius * points / np.linalg.norm(points, axis=1, keepdims=True) + centre


def figure():
    body = sphere(sizes[0], 1 + 0.1 * random.normal(), [0, 0, 0])
    head = sphere(sizes[1], 0.5, [0, 0, 1.6 + 0.1 * random.normal()])
    stick = np.stack([random.uniform(1.1, 2.4, sizes[2]), *0.08 * random.normal(size=(2, sizes[2]))], axis=1)
    return np.concatenate([body, head, stick])


clouds = [figure() for _ in range(6)]
truth = np.tile(np.repeat(np.arange(3), sizes), 6)

# %%
# The four settings, three parts each.
settings = {
    "co-occurrence": {"smoothness": False, "position": None},
    "… and smoothness": {"position": None},
    "position alone": {"cooccurrence": False, "smoothness": False},
    "all three": {},
}
models = {name: ShapePartModel(3, random_state=0, **terms).fit(clouds) for name, terms in settings.items()}
for name, model in models.items():
    print(f"{name:18} agreement with the true parts {adjusted_rand_score(truth, np.concatenate(model.labels_)):.2f}")

# %%
# The first three objects of each.
colours = np.array(["#4477aa", "#ee6677", "#ccbb44"])
picture = plt.figure(figsize=(9, 11))
for row, (name, model) in enumerate(models.items()):
    for column in range(3):
        axes = picture.add_subplot(4, 3, 3 * row + column + 1, projection="3d")
        axes.scatter(*clouds[column].T, c=colours[model.labels_[column]], s=5)
        axes.set_axis_off()
        axes.set_box_aspect((3.4, 2, 3.1))
        axes.view_init(15, -70)
        if column == 1:
            axes.set_title(name)
picture.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`random fields </guide/fields>`.
