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
from mercer.registration import (
    ICP,
    CoherentPointDrift,
    FeatureMatching,
    KernelRegistration,
    MixtureRegistration,
    SoftAssign,
    register,
)

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
# 5°) and shifts by i standard deviations along each axis. Methods that begin with the centroids on each other lose the
# pose. Kernel principal components and matched descriptors do not depend on the motion. Then outliers, at scale 1.

methods = {
    "kernel components": KernelRegistration(),
    "matching": FeatureMatching(),
    "closest points": ICP("point"),
    "mixture": MixtureRegistration(max_iter=30),
    "SoftAssign": SoftAssign(cooling=0.8),
    "drift": CoherentPointDrift(),
}
points = make_mug(200, random_state=3)


def error(model, scale: float, share: float) -> float:
    """Mean distance of known pairs after a motion, with outliers in the source."""
    yaw, pitch, roll = np.deg2rad(scale * np.array([30.0, 5.0, 5.0]))
    turn = SO(3).Exp([0, 0, yaw]) @ SO(3).Exp([0, pitch, 0]) @ SO(3).Exp([roll, 0, 0])
    moved = points @ turn.T + scale * points.std(axis=0)
    extra = rng.uniform(points.min(axis=0), points.max(axis=0), (int(share * len(points)), 3))
    model.fit(np.vstack([points, extra]), moved[rng.permutation(len(moved))])
    return float(np.linalg.norm(model.transform(points) - moved, axis=1).mean())


scales, shares = [1, 2, 3, 4, 6, 8, 10], [0, 0.2, 0.4, 0.6, 0.8]
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name, model in methods.items():
        axes[0].plot(scales, [error(model, scale, 0) for scale in scales], "o-", label=name)
        axes[1].semilogy(shares, [max(1e-6, error(model, 1, share)) for share in shares], "o-", label=name)
axes[0].set_xlabel("scale of the motion")
axes[1].set_xlabel("outliers, as a share of the points")
axes[0].set_ylabel("mean distance of pairs")
axes[0].legend(frameon=False, fontsize=8)
figure.tight_layout()
plt.show()

# %%
# Next: the guide :doc:`point cloud registration </guide/registration>`.
