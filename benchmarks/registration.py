"""Registration of point clouds beside small_gicp, KISS-Matcher, Open3D and pycpd, one thread each.

    fine      30,000 points of the bunny from 10 degrees: generalized ICP, the same tolerances on both sides
    any       1,000 points from random rotations, no guess: success and seconds
    growth    any rotation, up to 100,000 points: seconds and their exponent
    hard      5,000 points, four objects: half a turn, outliers, parts cut off, noise, all of it, and more of it
    motion    every method of the package over motions of growing scale, as in [Xio2013]
    outliers  every method over growing shares of outliers at motion scale 1, as there
    overlap   every method over shrinking overlap from any rotation; those that need a start from 20 degrees
    noise     every method over growing noise at motion scale 1
    shuffled  how far the order of the points moves the pose of each method
    clouds    register on the other shared clouds: two real scans, shapes of pycpd
    voxels    register on chairs and monitors of 32 × 32 × 32 voxels, whole and damaged; no method was tuned on them but
              the thresholds of the certificate
    plane     parts of random outlines in two dimensions, from any rotation
    printed   seconds by size beside those printed there (Matlab, a laptop of 2013): other machine, other language

Clouds are sampled from meshes by area and scaled to a root mean squared radius of 1; source and target are independent
samples unless stated. A part is cut off by a plane: the source loses the points beyond a quantile along a random
direction, the target those beyond it on the other side, so that a cut of 25 % leaves two thirds of each cloud in
common and one of 40 % a third. Outliers are uniform in the object's bounding box, added to both clouds. Solved: less
than 5 degrees and less than 0.1 of the radius off. Objects are those under ``pointclouds`` in MERCER_DATA; without
them a generated mug.

[Xio2013] H. Xiong, S. Szedmak, J. Piater, Efficient, general point cloud registration with kernel feature maps, CRV,
2013.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from _timing import SMOKE, Row, exponent, interleaved, missing, parse, peer, record, seconds, sized, table

from mercer.data import PointCloud, read_cloud
from mercer.datasets import make_mug
from mercer.datasets._home import data_home
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

FILES = {
    "bunny": "bunny/stanford-bunny.obj.gz",
    "dragon": "dragon/dragon.ply.gz",
    "buddha": "buddha/buddha.obj.gz",
    "horse": "horse/horse.obj.gz",
}
OPTIONS = {"objects": 4}
Pose = tuple[np.ndarray, np.ndarray]
Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


# ------------------------------------------------------------------------------------------------ objects and cases


@cache
def meshes() -> dict[str, PointCloud]:
    """The meshes of the four objects; none where the data are not there, and at the smallest size."""
    if SMOKE:
        return {}
    try:
        folder = data_home() / "pointclouds"
        return {name: read_cloud(folder / file) for name, file in FILES.items()}
    except FileNotFoundError as error:
        print(f"the generated mug stands for all objects: {error}")
        return {}


def objects() -> list[str]:
    """Names of the objects."""
    names = list(meshes()) or ["mug"]
    return sized(names[: OPTIONS["objects"]], names[:1])


def surface(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points of an object, centred, with a root mean squared radius of 1."""
    points = meshes()[name].sample(n, rng).points if name in meshes() else make_mug(n, random_state=rng)
    points = points - points.mean(axis=0)
    return points / np.sqrt((points**2).sum(axis=1).mean())


def turn(degrees: float, rng: np.random.Generator) -> np.ndarray:
    """A rotation about a random axis."""
    axis = rng.standard_normal(3)
    return SO(3).Exp(np.deg2rad(degrees) * axis / np.linalg.norm(axis))


def case(
    name: str,
    seed: int,
    n: int,
    *,
    degrees: float | None = None,
    outliers: float = 0.0,
    cut: float = 0.0,
    noise: float = 0.0,
    copy: bool = False,
    shift: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, Pose]:
    """Source, target, and the pose that takes one to the other."""
    rng = np.random.default_rng([seed, n])
    both = surface(name, 2 * n, rng)
    source, target = both[:n], both[n:]
    if copy:
        target = source[rng.permutation(n)]
    if cut:
        u = rng.standard_normal(3)
        source = source[source @ u < np.quantile(source @ u, 1 - cut)]
        target = target[target @ u > np.quantile(target @ u, cut)]
    box = 1.1 * np.abs(both).max(axis=0)

    def dirty(points: np.ndarray) -> np.ndarray:
        points = points + noise * rng.standard_normal(points.shape)
        return np.vstack([points, rng.uniform(-box, box, (int(outliers * len(points)), 3))])

    source, target = dirty(source), dirty(target)
    rotation = SO(3).random(rng) if degrees is None else turn(degrees, rng)
    translation = shift * rng.standard_normal(3)
    moved = target @ rotation.T + translation
    return (
        np.ascontiguousarray(source),
        np.ascontiguousarray(moved[rng.permutation(len(moved))]),
        (rotation, translation),
    )


def errors(transform: np.ndarray, pose: Pose) -> tuple[float, float]:
    """Degrees and shift of the object's centre between two poses."""
    cosine = (np.trace(transform[:3, :3] @ pose[0].T) - 1) / 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))), float(np.linalg.norm(transform[:3, 3] - pose[1]))


def solved(transform: np.ndarray, pose: Pose) -> bool:
    """Less than 5 degrees and 0.1 of the radius off."""
    degrees, shift = errors(transform, pose)
    return degrees < 5 and shift < 0.1


# ------------------------------------------------------------------------------------------------ methods


def ours(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """`register`."""
    return register(source, target).transform


def small_gicp(
    source: np.ndarray, target: np.ndarray, start: np.ndarray | None = None, size: float = 0.02
) -> np.ndarray:
    """Generalized ICP of small_gicp."""
    import small_gicp

    begin = np.eye(4) if start is None else start
    if start is None:
        begin[:3, 3] = target.mean(axis=0) - source.mean(axis=0)
    result = small_gicp.align(
        target, source, begin, "GICP", downsampling_resolution=size, max_correspondence_distance=0.5, num_threads=1,
        max_iterations=50,
    )  # fmt: skip
    return np.asarray(result.T_target_source)


def kiss(source: np.ndarray, target: np.ndarray, size: float = 0.06) -> np.ndarray:
    """KISS-Matcher, then small_gicp."""
    import kiss_matcher

    matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(size))
    found = matcher.estimate(source.astype(np.float32), target.astype(np.float32))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = found.rotation, found.translation
    return small_gicp(source, target, pose) if np.isfinite(pose).all() else np.eye(4)


def open3d(source: np.ndarray, target: np.ndarray, size: float = 0.06) -> np.ndarray:
    """Open3D: FPFH, RANSAC, point-to-plane ICP, as in its tutorial."""
    import open3d as o3d

    o3d.utility.set_verbosity_level(o3d.utility.VerbosityLevel.Error)
    reg, kd = o3d.pipelines.registration, o3d.geometry.KDTreeSearchParamHybrid
    clouds, features = [], []
    for points in (source, target):
        cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points)).voxel_down_sample(size)
        cloud.estimate_normals(kd(2 * size, 30))
        clouds.append(cloud)
        features.append(reg.compute_fpfh_feature(cloud, kd(5 * size, 100)))
    coarse = reg.registration_ransac_based_on_feature_matching(
        *clouds, *features, True, 1.5 * size, reg.TransformationEstimationPointToPoint(False), 3,
        [reg.CorrespondenceCheckerBasedOnEdgeLength(0.9), reg.CorrespondenceCheckerBasedOnDistance(1.5 * size)],
        reg.RANSACConvergenceCriteria(100_000, 0.999),
    )  # fmt: skip
    fine = reg.registration_icp(*clouds, 0.4 * size, coarse.transformation, reg.TransformationEstimationPointToPlane())
    return np.asarray(fine.transformation)


def drift(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """pycpd, rigid."""
    from pycpd import RigidRegistration

    _, (s, rotation, translation) = RigidRegistration(X=target, Y=source, scale=False).register()
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = s * rotation.T, translation
    return pose


PEERS: dict[str, tuple[str, Method]] = {
    "KISS-Matcher + small_gicp": ("kiss_matcher", kiss),
    "small_gicp": ("small_gicp", small_gicp),
    "Open3D": ("open3d", open3d),
    "pycpd": ("pycpd", drift),
}


def installed(*names: str) -> dict[str, Method]:
    """Those of these peers that are there."""
    return {name: PEERS[name][1] for name in names if not missing(PEERS[name][0])}


def model_method(make: Callable[[], Any]) -> Method:
    """An estimator as a function."""
    return lambda source, target: make().fit(source, target).transform_


# ------------------------------------------------------------------------------------------------ tables


def fine(options: argparse.Namespace) -> None:
    """Seconds and error of generalized ICP from ten degrees: seconds on one pair of clouds, errors on twelve."""
    n = sized(30_000, 600)
    # The same work on both sides: no thinning (cells far below the spacing), ten neighbours, the same tolerances.
    settings = {"max_distance": 0.5, "n_neighbors": 10, "start": "identity", "tol": 1e-4, "max_iter": 50}
    calls: dict[str, Method] = {"ours": lambda source, target: ICP(**settings).fit(source, target).transform_}
    gicp = peer("small_gicp")
    if gicp:
        calls["small_gicp"] = lambda source, target: np.asarray(
            gicp.align(
                target, source, np.eye(4), "GICP", downsampling_resolution=1e-4, max_correspondence_distance=0.5,
                num_threads=1, max_iterations=50, rotation_epsilon=1e-4, translation_epsilon=1e-4,
            ).T_target_source
        )  # fmt: skip
    cases = [case(cloud, seed, n, degrees=10, shift=0.05) for cloud in objects() for seed in sized(range(3), [0])]
    degrees = {
        name: float(np.mean([errors(call(source, target), pose)[0] for source, target, pose in cases]))
        for name, call in calls.items()
    }
    once = [partial(call, *cases[0][:2]) for call in calls.values()]
    times = dict(zip(calls, interleaved(options.repeats, *once), strict=True))
    print(f"fine: {n:,} points; mean errors of {len(cases)} pairs in degrees: "
          + ", ".join(f"{name} {value:.5f}" for name, value in degrees.items()))  # fmt: skip
    note = f"mean error of {len(cases)} pairs {degrees['ours']:.5f}°"
    note += f" against {degrees['small_gicp']:.5f}°" if gicp else ""
    row = Row(f"generalized ICP, {n:,} points, 10°", "small_gicp", times.get("small_gicp", np.nan), times["ours"],
              "≤ 1.2× its time", 1 / 1.2, note=note)  # fmt: skip
    table([row], "fine")


def anywhere(options: argparse.Namespace) -> None:
    """Random rotations, no guess: success and seconds."""
    n = sized(1_000, 100)
    methods: dict[str, tuple[Method, int]] = {
        "KernelRegistration": (model_method(KernelRegistration), options.poses),
        "register": (ours, options.poses),
    }
    # cells of the peers: the best of 0.06, 0.1 and 0.134 on these poses, since 0.06 is for denser clouds
    sizes = {"KISS-Matcher + small_gicp": {"size": 0.1}, "Open3D": {"size": 0.134}}
    for name, call in installed(*PEERS).items():
        methods[name] = partial(call, **sizes.get(name, {})), min(options.poses, 20)
    print(f"\nany: {n:,} points, random rotations, independent samples\n")
    print("| method | solved | of | median s | slowest s |\n|---|---|---|---|---|")
    for name, (method, poses) in methods.items():
        if options.methods and name not in options.methods:
            continue
        hits, times = 0, []
        for seed in range(poses):
            source, target, pose = case(objects()[seed % len(objects())], 10_000 + seed, n)
            taken, transform = seconds(lambda s=source, t=target, m=method: m(s, t))
            hits += solved(transform, pose)
            times.append(taken)
        print(f"| {name} | {hits} | {poses} | {statistics.median(times):.3f} | {max(times):.3f} |", flush=True)
        values = {"solved": hits, "of": poses, "median s": statistics.median(times), "slowest s": max(times)}
        record("any rotation", name, values=values, sizes=f"{n} points")


def growth(options: argparse.Namespace) -> None:
    """Seconds by size from any rotation."""
    sizes = sized([3_000, 10_000, 30_000, 100_000], [200, 400])
    times, hits = [], 0
    for n in sizes:
        source, target, pose = case(objects()[0], 1, n)
        taken = [seconds(lambda s=source, t=target: ours(s, t)) for _ in range(sized(3, 1))]
        hits += solved(taken[0][1], pose)
        times.append(statistics.median(t for t, _ in taken))
    power = exponent(sizes, times)
    by_size = ", ".join(f"{n:,}: {t:.3f} s" for n, t in zip(sizes, times, strict=True))
    print(f"\ngrowth: {by_size}; exponent {power:.2f}; solved {hits} of {len(sizes)}")
    record("growth", f"{sizes[-1]:,} points, any rotation", ours=times[-1], note=f"exponent {power:.2f}")


HARD: dict[str, dict[str, float]] = {
    "180°": {"degrees": 180},
    "60°, 50 % outliers": {"degrees": 60, "outliers": 0.5},
    "60°, a quarter cut": {"degrees": 60, "cut": 0.25},
    "180°, outliers, cut, noise": {"degrees": 180, "outliers": 0.5, "cut": 0.25, "noise": 0.01},
    "180°, 200 % outliers, 40 % cut, noise .02": {"degrees": 180, "outliers": 2.0, "cut": 0.4, "noise": 0.02},
}


def hard(options: argparse.Namespace) -> None:
    """Damaged clouds: solved, certified, wrongly certified, seconds."""
    n = sized(5_000, 300)
    peers = installed("KISS-Matcher + small_gicp", "small_gicp", "Open3D")
    if options.methods:
        peers = {name: method for name, method in peers.items() if name in options.methods}
    print(f"\nhard: {n:,} points, {len(objects())} objects × {options.seeds} seeds\n")
    print("| case | method | solved | of | median s | certified | wrongly |\n|---|---|---|---|---|---|---|")
    for name, damage in sized(HARD, dict(list(HARD.items())[:2])).items():
        if options.cases and name not in options.cases:
            continue
        cases = [case(o, s, n, **damage) for o in objects() for s in range(options.seeds)]
        results: dict[str, list[tuple[float, bool]]] = {"register": [], **{name: [] for name in peers}}
        certified = wrongly = 0
        for source, target, pose in cases:  # in turn, so that all see the same machine
            taken, found = seconds(lambda s=source, t=target: register(s, t))
            right = solved(found.transform, pose)
            results["register"].append((taken, right))
            certified += found.certified
            wrongly += found.certified and not right
            for peer_name, method in peers.items():
                taken, transform = seconds(lambda s=source, t=target, m=method: m(s, t))
                results[peer_name].append((taken, solved(transform, pose)))
        for method_name, rows in results.items():
            right, middle = sum(r for _, r in rows), statistics.median(t for t, _ in rows)
            extra = f"{certified} | {wrongly}" if method_name == "register" else " | "
            print(f"| {name} | {method_name} | {right} | {len(rows)} | {middle:.3f} | {extra} |", flush=True)
            values: dict[str, Any] = {"solved": right, "of": len(rows), "median s": middle}
            if method_name == "register":
                values |= {"certified": certified, "wrongly certified": wrongly}
            record("hard cases", f"{name}: {method_name}", values=values, sizes=f"{n} points")


METHODS: dict[str, Method] = {
    "kernel": model_method(KernelRegistration),
    "kernel, no polish": model_method(lambda: KernelRegistration(polish=False, n_points=300, max_iter=100)),
    "matching": model_method(FeatureMatching),
    "ICP, points": model_method(lambda: ICP("point")),
    "ICP, trimmed": model_method(lambda: ICP("point", overlap=0.7)),
    "ICP, generalized": model_method(ICP),
    "mixture": model_method(MixtureRegistration),
    "SoftAssign": model_method(SoftAssign),
    "drift": model_method(CoherentPointDrift),
}


def pair_error(transform: np.ndarray, points: np.ndarray, moved: np.ndarray) -> float:
    """Mean distance of known pairs, in units of the radius (which is 1)."""
    return float(np.linalg.norm(points @ transform[:3, :3].T + transform[:3, 3] - moved, axis=1).mean())


def scaled_motion(scale: float, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Yaw, pitch, roll of scale · (30°, 5°, 5°); a shift of scale standard deviations along each axis."""
    yaw, pitch, roll = np.deg2rad(scale * np.array([30.0, 5.0, 5.0]))
    group = SO(3)
    rotation = group.Exp([0, 0, yaw]) @ group.Exp([0, pitch, 0]) @ group.Exp([roll, 0, 0])
    return rotation, scale * points.std(axis=0)


def _curves(
    title: str, steps: list[float], n: int, clouds: Callable[[str, float], tuple[np.ndarray, np.ndarray, Any]]
) -> None:
    print(f"\n{title}\n\n| method | " + " | ".join(f"{step:g}" for step in steps) + " |\n|---|" + "---|" * len(steps))
    for name, method in METHODS.items():
        means = []
        for step in steps:
            errors_here = []
            for thing in objects():
                source, target, (points, moved) = clouds(thing, step)
                errors_here.append(pair_error(method(source, target), points, moved))
            means.append(float(np.mean(errors_here)))
        print(f"| {name} | " + " | ".join(f"{m:.3f}" for m in means) + " |", flush=True)
        values = {f"{step:g}": m for step, m in zip(steps, means, strict=True)}
        record(title.split(":")[0], name, values=values, sizes=f"{n} points")


def motion(options: argparse.Namespace) -> None:
    """Mean error of known pairs by the scale of the motion, the printed protocol: exact copies, 1,000 points there."""
    n = sized(options.points, 60)

    def clouds(name: str, scale: float) -> tuple[np.ndarray, np.ndarray, Any]:
        points = surface(name, n, np.random.default_rng(0))
        rotation, shift = scaled_motion(scale, points)
        moved = points @ rotation.T + shift
        return points, moved[np.random.default_rng(1).permutation(n)], (points, moved)

    _curves("motion: mean error by the scale of the motion, in radii", sized([1, 2, 3, 4, 5, 6, 8, 10], [5]), n, clouds)


def outliers(options: argparse.Namespace) -> None:
    """Mean error of known pairs by the share of outliers, added to the source, at motion scale 1."""
    n = sized(options.points, 60)

    def clouds(name: str, share: float) -> tuple[np.ndarray, np.ndarray, Any]:
        rng = np.random.default_rng(0)
        points = surface(name, n, rng)
        rotation, shift = scaled_motion(1, points)
        extra = rng.uniform(points.min(axis=0), points.max(axis=0), (int(share * n), 3))
        moved = points @ rotation.T + shift
        return np.vstack([points, extra]), moved[rng.permutation(n)], (points, moved)

    _curves("outliers: mean error by the share of outliers, in radii", sized([0, 0.2, 0.4, 0.6, 0.8], [0.4]), n, clouds)


def overlap(options: argparse.Namespace) -> None:
    """Solved cases by overlap, for every method."""
    n = sized(2_000, 100)
    methods = {**METHODS, "register": ours}
    from_anywhere = ("kernel", "kernel, no polish", "matching", "register")
    shares = sized([1.0, 0.9, 0.8, 0.7, 0.6, 0.5], [1.0, 0.7])
    print(f"\noverlap: solved of {len(objects()) * options.seeds}, {n:,} points\n")
    print("| method | " + " | ".join(f"{share:.0%}" for share in shares) + " |\n|---|" + "---|" * len(shares))
    for name, method in methods.items():
        hits = []
        for share in shares:
            # a cut c of each cloud leaves (1 - 2 c) / (1 - c) of it in common
            cut = (1 - share) / (2 - share)
            motion_of: dict[str, Any] = {} if name in from_anywhere else {"degrees": 20, "shift": 0.1}
            cases = [case(o, s, n, cut=cut, **motion_of) for o in objects() for s in range(options.seeds)]
            hits.append(sum(solved(method(source, target), pose) for source, target, pose in cases))
        title = name if name in from_anywhere else f"{name} (from 20°)"
        print(f"| {title} | " + " | ".join(map(str, hits)) + " |", flush=True)
        values = {f"{share:.0%}": hit for share, hit in zip(shares, hits, strict=True)}
        record("overlap", title, values=values, sizes=f"{n} points, {len(objects()) * options.seeds} cases")


def noise(options: argparse.Namespace) -> None:
    """Mean error of known pairs by noise on both clouds, at motion scale 1."""
    n = sized(options.points, 60)

    def clouds(name: str, level: float) -> tuple[np.ndarray, np.ndarray, Any]:
        rng = np.random.default_rng(0)
        points = surface(name, n, rng)
        rotation, shift = scaled_motion(1, points)
        moved = points @ rotation.T + shift
        noisy = [p + level * rng.standard_normal(p.shape) for p in (points, moved)]
        return noisy[0], noisy[1][rng.permutation(n)], (points, moved)

    _curves("noise: mean error by the noise, in radii", sized([0, 0.01, 0.02, 0.05, 0.1], [0.05]), n, clouds)


def shuffled(options: argparse.Namespace) -> None:
    """The largest change of a motion's entries when the points of the target come in another order."""
    n = sized(500, 60)
    source, target, _ = case(objects()[0], 0, n, degrees=20, shift=0.1)
    order = np.random.default_rng(1).permutation(len(target))
    print("\nshuffled: largest change of an entry of the motion\n\n| method | change |\n|---|---|")
    for name, method in METHODS.items():
        change = float(np.abs(method(source, target) - method(source, target[order])).max())
        print(f"| {name} | {change:.2g} |", flush=True)
        record("shuffled", name, values={"change": change}, sizes=f"{n} points")


VOXEL_DAMAGE: dict[str, dict[str, float]] = {
    "whole": {},
    "50 % outliers": {"outliers": 0.5},
    "a quarter cut": {"cut": 0.25},
    "outliers, cut, noise": {"outliers": 0.5, "cut": 0.25, "noise": 0.01},
}


def voxels(options: argparse.Namespace) -> None:
    """Chairs and monitors from any rotation: solved, and solved up to poses that fit as well as the true one."""
    from scipy.spatial import cKDTree

    try:
        shapes = voxel_shapes(sized(20, 1), options.first)
    except FileNotFoundError as error:
        print(f"voxels: left out: {error}")
        return
    print(f"\nvoxels: {len(shapes)} shapes, random rotations\n")
    print("| damage | solved | or fits as well | certified | wrongly | median s |\n|---|---|---|---|---|---|")
    for name, damage in sized(VOXEL_DAMAGE, {"whole": {}}).items():
        if options.damages and name not in options.damages:
            continue
        right = close = certified = wrongly = 0
        times = []
        for k, points in enumerate(shapes):
            rng = np.random.default_rng(k + 1000 * (options.first - 3))
            source, target, pose = damaged(points[:: sized(1, 4)], rng, **damage)
            taken, found = seconds(lambda s=source, t=target: register(s, t))
            good = solved(found.transform, pose)
            tree = cKDTree(points @ pose[0].T + pose[1])
            same = good or bool(tree.query(found.apply(points))[0].mean() < 0.02)
            right, close, certified = right + good, close + same, certified + found.certified
            wrongly += found.certified and not same
            times.append(taken)
        middle = statistics.median(times)
        print(f"| {name} | {right} | {close} | {certified} | {wrongly} | {middle:.3f} |", flush=True)
        values = {"solved": right, "fits as well": close, "of": len(shapes), "certified": certified,
                  "wrongly certified": wrongly, "median s": middle}  # fmt: skip
        record("voxels", name, values=values)


def voxel_shapes(each: int, first: int) -> list[np.ndarray]:
    """Voxels on the surface of some chairs and monitors, moved within their cells, with a radius of 1."""
    import gzip

    folder = data_home() / "pointclouds" / "modelnet10-voxels"
    out = []
    for name in ("chair", "monitor"):
        with gzip.open(folder / f"{name}_packbits.npy.gz") as file:
            grids = np.unpackbits(np.load(file), axis=1).reshape(-1, 32, 32, 32)
        for k in np.linspace(first, len(grids) - 1 - abs(first - 3), each).astype(int):
            padded = np.pad(grids[k], 1)
            inside = sum(np.roll(padded, step, axis) for axis in range(3) for step in (1, -1))[1:-1, 1:-1, 1:-1] == 6
            points = np.argwhere((grids[k] > 0) & ~inside).astype(float)
            points = points - points.mean(axis=0)
            out.append(points / np.sqrt((points**2).sum(axis=1).mean()))
    return out


def damaged(
    points: np.ndarray, rng: np.random.Generator, outliers: float = 0.0, cut: float = 0.0, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray, Pose]:
    """Two copies with the voxels moved within their cells, damaged as in ``case``."""
    cell = 0.5 * float(np.median(np.abs(np.diff(np.unique(points[:, 0].round(9))))))
    clouds = [points + rng.uniform(-cell, cell, points.shape) for _ in range(2)]
    if cut:
        u = rng.standard_normal(points.shape[1])
        clouds[0] = clouds[0][clouds[0] @ u < np.quantile(clouds[0] @ u, 1 - cut)]
        clouds[1] = clouds[1][clouds[1] @ u > np.quantile(clouds[1] @ u, cut)]
    box = 1.1 * np.abs(points).max(axis=0)
    for k, cloud in enumerate(clouds):
        noisy = cloud + noise * rng.standard_normal(cloud.shape)
        clouds[k] = np.vstack([noisy, rng.uniform(-box, box, (int(outliers * len(cloud)), len(box)))])
    rotation, shift = SO(3).random(rng), rng.standard_normal(3)
    return clouds[0], clouds[1] @ rotation.T + shift, (rotation, shift)


def plane(options: argparse.Namespace) -> None:
    """Parts of random outlines in the plane: two thirds of each in common."""
    n, cases = sized(900, 100), sized(40, 1)
    methods = {"kernel": METHODS["kernel"], "matching": METHODS["matching"]}
    hits = dict.fromkeys([*methods, "register"], 0)
    certified = wrongly = 0
    for seed in range(cases):
        rng = np.random.default_rng(1000 + seed)
        waves = np.arange(1, 7)
        heights, phases = rng.uniform(0.05, 0.3, 6) / (1 + 0.2 * waves), rng.uniform(0, 2 * np.pi, 6)
        parts = []
        for _ in range(2):
            t = rng.random(n) * 2 * np.pi
            r = 1 + (heights * np.cos(waves * t[:, None] + phases)).sum(axis=1)
            parts.append(np.stack([r * np.cos(t), r * np.sin(t)], axis=1))
        u = rng.standard_normal(2)
        source = parts[0][parts[0] @ u < np.quantile(parts[0] @ u, 0.75)]
        target = parts[1][parts[1] @ u > np.quantile(parts[1] @ u, 0.25)]
        angle, shift = rng.uniform(-np.pi, np.pi), rng.standard_normal(2)
        turned = SO(2).Exp([angle])
        target = target @ turned.T + shift
        found = register(source, target)
        poses = {name: method(source, target) for name, method in methods.items()} | {"register": found.transform}
        good = {}
        for name, pose in poses.items():
            off = np.degrees(np.abs(SO(2).Log(pose[:2, :2] @ turned.T)).max())
            good[name] = bool(off < 5 and np.linalg.norm(pose[:2, 2] - shift) < 0.1)
            hits[name] += good[name]
        certified += found.certified
        wrongly += found.certified and not good["register"]
    shown = ", ".join(f"{name} {hit}" for name, hit in hits.items())
    print(f"\nplane: solved of {cases}: {shown}; certified {certified}, wrongly {wrongly}")
    record("plane", "outlines, two thirds in common", values={**hits, "of": cases, "certified": certified,
           "wrongly certified": wrongly}, sizes=f"{n} points")  # fmt: skip


def clouds(options: argparse.Namespace) -> None:
    """The other shared clouds."""
    try:
        folder = data_home() / "pointclouds"
        pairs = {}
        if not SMOKE:
            scans = [read_cloud(folder / "bunny-scans" / f"bun{k}.ply.gz").points for k in ("000", "045")]
            pairs = {"bunny scans, 0° and 45°": scans}
        for name in sized(("fish", "bunny"), ("fish",)):
            files = [folder / "cpd" / f"{name}_{side}.txt" for side in ("source", "target")]
            pairs[f"{name} of pycpd"] = [read_cloud(file).points for file in files]
    except FileNotFoundError as error:
        print(f"clouds: left out: {error}")
        return
    for name, (source, target) in pairs.items():
        taken, result = seconds(lambda s=source, t=target: register(s, t))
        degrees = np.degrees(np.linalg.norm(SO(result.dimension).Log(result.rotation)))
        fit = f"fitness {result.fitness:.3f}, rmse {result.rmse:.2g}, turned {degrees:.1f}°"
        print(f"clouds: {name}: {fit}, certified {result.certified}, {taken:.2f} s: {result.reason}")
        values = {"fitness": result.fitness, "degrees": degrees, "certified": str(result.certified), "s": taken}
        record("shared clouds", name, values=values)


PRINTED = {
    "kernel": [1.172, 1.489, 2.162, 5.126, 21.165],
    "ICP, points": [0.012, 0.023, 0.051, 0.154, 0.469],
    "mixture": [1.859, 3.998, 15.245, 43.570, 172.4],
    "SoftAssign": [2.059, 4.801, 83.925, 592.1, 3812.0],
}


def printed(options: argparse.Namespace) -> None:
    """Seconds by size beside the printed ones: a random motion and a random share of outliers."""
    sizes = sized([100, 200, 500, 1_000, 2_000], [100])
    print(
        "\nprinted: seconds by size, printed (Matlab, 2013) → here\n\n| method | " + " | ".join(map(str, sizes)) + " |"
    )
    print("|---|" + "---|" * len(sizes))
    for name, there in PRINTED.items():
        here = []
        for n in sizes:
            taken = []
            for seed, thing in enumerate(objects()):
                rng = np.random.default_rng(seed)
                source, target, _ = case(thing, seed, n, outliers=float(rng.uniform(0, 0.8)), copy=True)
                taken.append(seconds(lambda s=source, t=target, m=METHODS[name]: m(s, t))[0])
            here.append(statistics.mean(taken))
        print(
            f"| {name} | " + " | ".join(f"{a:g} → {b:.3f}" for a, b in zip(there, here, strict=False)) + " |",
            flush=True,
        )
        values = {str(n): {"value": b, "printed": a} for n, a, b in zip(sizes, there, here, strict=False)}
        record("printed seconds", name, values=values)


TABLES = {
    "fine": fine, "any": anywhere, "growth": growth, "hard": hard, "motion": motion, "outliers": outliers,
    "overlap": overlap, "noise": noise, "shuffled": shuffled, "clouds": clouds, "voxels": voxels, "plane": plane,
    "printed": printed,
}  # fmt: skip


def main() -> None:
    """Run the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--poses", type=int, default=500, help="random poses of the table any")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the tables hard and overlap")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000, help="of the tables motion, outliers and noise")
    parser.add_argument("--methods", nargs="+", help="of the table any, and peers of hard; all by default")
    parser.add_argument("--cases", nargs="+", choices=HARD, help="of the table hard; all by default")
    parser.add_argument("--damages", nargs="+", choices=VOXEL_DAMAGE, help="of the table voxels; all by default")
    parser.add_argument("--first", type=int, default=3, help="of the shapes of the table voxels: others than with 3")
    parser.add_argument("--objects", type=int, default=4, help="how many of the four objects to use")
    options = parse(parser, poses=1, seeds=1, repeats=1)
    OPTIONS["objects"] = options.objects
    started = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uncertain poses, stops before convergence: the tables count them
        for name in options.tables:
            TABLES[name](options)
    print(f"\n{time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
