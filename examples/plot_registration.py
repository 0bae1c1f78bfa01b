"""
Registration from any rotation
==============================

Two samples of a mug, one of them turned and shifted, with its bottom missing and with stray points. Closest points
alone stop in a wrong pose. :func:`mercer.registration.register` finds the motion without a guess and says whether the
evidence is enough: here it is not, as a mug turned about its axis fits nearly as well.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import make_mug
from mercer.manifolds import SO
from mercer.registration import ICP, KernelRegistration, register

rng = np.random.default_rng(0)
both = make_mug(6000, random_state=0)
rotation, shift = SO(3).Exp([2.6, 0.9, -0.4]), np.array([2.0, 1.0, 0.5])

source = both[:3000]
target = both[3000:][both[3000:, 2] > -0.7]  # the bottom is missing
target = np.vstack([target, rng.uniform(-1.2, 1.2, (600, 3))]) @ rotation.T + shift

# %%
# The three poses. An ICP that starts from the centroids ends in the wrong one.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the first two are expected to be wrong or unsure
    poses = {
        "before": np.eye(4),
        "closest points": ICP().fit(source, target).transform_,
    }
    result = register(source, target)
poses["register"] = result.transform

print(f"certified: {result.certified}: {result.reason}")
print(f"method: {result.method}, fitness {result.fitness:.2f}")


def degrees(pose: np.ndarray) -> float:
    """The angle between a pose and the true one."""
    return float(np.degrees(np.linalg.norm(SO(3).Log(pose[:3, :3] @ rotation.T))))


figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), subplot_kw={"projection": "3d"})
for axis, (name, pose) in zip(axes, poses.items(), strict=True):
    moved = source @ pose[:3, :3].T + pose[:3, 3]
    for cloud, colour, label in ((target, "#1f6fb2", "target"), (moved, "#c2541d", "source")):
        axis.scatter(*cloud[::3].T, s=2, color=colour, label=label, alpha=0.6)
    axis.set_title(f"{name}: {degrees(pose):.1f}° off", fontsize=10)
    axis.set_axis_off()
    axis.set_box_aspect((1, 1, 1))
axes[0].legend(loc="lower left", fontsize=8, frameon=False, markerscale=4)
figure.tight_layout()

# %%
# Mean error of known pairs over motions of growing scale, after Xiong et al. (2013): scale i turns by i · (30°, 5°,
# 5°) and shifts by i standard deviations along each axis. Methods that follow nearest points lose the pose.
# Kernel principal components do not depend on the motion.

points = make_mug(500, random_state=3)
scales = np.arange(1, 11)
errors: dict[str, list[float]] = {"closest points": [], "kernel components": []}
for scale in scales:
    yaw, pitch, roll = np.deg2rad(scale * np.array([30.0, 5.0, 5.0]))
    turn = SO(3).Exp([0, 0, yaw]) @ SO(3).Exp([0, pitch, 0]) @ SO(3).Exp([roll, 0, 0])
    moved = points @ turn.T + scale * points.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in (("closest points", ICP("point")), ("kernel components", KernelRegistration())):
            aligned = model.fit_transform(points, moved[rng.permutation(len(moved))])
            errors[name].append(float(np.linalg.norm(aligned - moved, axis=1).mean()))

figure, axis = plt.subplots(figsize=(6, 3.2))
for (name, values), colour in zip(errors.items(), ("#c2541d", "#1f6fb2"), strict=True):
    axis.plot(scales, values, "o-", color=colour, label=name)
axis.set_xlabel("scale of the motion")
axis.set_ylabel("mean distance of pairs")
axis.legend(frameon=False)
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`point cloud registration </guide/registration>`.
