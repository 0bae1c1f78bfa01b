"""Parts of shapes and classes of shapes, by four models: figures 5 to 7 of [Xiong2013c]_.

    python benchmarks/shape_parts.py [--parts drawn real classes] [--clouds 10] [--seeds 3] [--splits 5]

The five classes of the Princeton Shape Benchmark are drawn here (cars, bikes, dogs, motorcycles, aeroplanes, of
boxes, tubes, rings and ellipsoids whose sizes vary), so that the parts are known; chairs and monitors of ModelNet10
(MERCER_DATA/pointclouds/modelnet10-voxels) are real.

drawn    agreement of the parts found with those drawn, and how the parts lie: points whose nearest points of the same
         cloud have the same part, counterparts in the next cloud that have it, and the largest part's share of a cloud
real     how the parts of chairs and monitors lie
classes  accuracy and confusions of the classifier, 70 % of the clouds to learn from

LDA: co-occurrence; LDMRF: with smoothness; GM: positions alone; SLDMRF: all three terms. Nothing was tuned: settings
are the defaults of the models.
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import from_data, parse, record, sized, spread
from scipy.spatial import cKDTree
from sklearn.metrics import adjusted_rand_score

from mercer.datasets._home import data_home
from mercer.fields import ShapeClassifier, ShapePartModel
from mercer.fields._grid import Grid, as_clouds, stacked

TERMS: dict[str, dict[str, Any]] = {
    "LDA": {"smoothness": False, "position": None},
    "LDMRF": {"position": None},
    "GM": {"cooccurrence": False, "smoothness": False},
    "SLDMRF": {},
    "SLDMRF, position as printed": {"position": "posterior"},
}
POINTS = 300
FEW = 30  # points of a cloud to classify

# ------------------------------------------------------------------------------------------------------ drawn clouds


def box(random: np.random.Generator, n: int, size: Any, centre: Any) -> np.ndarray:
    """Points on the faces of a box, by area."""
    size = np.asarray(size, float)
    areas = np.repeat([size[1] * size[2], size[0] * size[2], size[0] * size[1]], 2)
    face = random.choice(6, n, p=areas / areas.sum())
    points = (random.random((n, 3)) - 0.5) * size
    points[np.arange(n), face // 2] = (face % 2 - 0.5) * size[face // 2]
    return points + centre


def tube(random: np.random.Generator, n: int, start: Any, end: Any, radius: float) -> np.ndarray:
    """Points on the side of a cylinder."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    axis = (end - start) / np.linalg.norm(end - start)
    first = np.cross(axis, [0.0, 0.0, 1.0] if abs(axis[2]) < 0.9 else [1.0, 0.0, 0.0])
    first /= np.linalg.norm(first)
    turn, along = 2 * np.pi * random.random((n, 1)), random.random((n, 1))
    return start + along * (end - start) + radius * (np.cos(turn) * first + np.sin(turn) * np.cross(axis, first))


def ring(random: np.random.Generator, n: int, centre: Any, radius: float, thickness: float) -> np.ndarray:
    """Points on a wheel that stands in the plane of x and z."""
    turn, around = 2 * np.pi * random.random((2, n))
    out = radius + thickness * np.cos(around)
    return np.stack([out * np.cos(turn), thickness * np.sin(around), out * np.sin(turn)], axis=1) + centre


def ellipsoid(random: np.random.Generator, n: int, size: Any, centre: Any) -> np.ndarray:
    points = random.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * size + centre


def car(r: np.random.Generator, s: Callable[[float], float], n: int) -> list[np.ndarray]:
    length, width, height = s(2.0), s(0.85), s(0.4)
    wheels = [
        ring(r, n // 16, [x * 0.32 * length, y * 0.5 * width, -0.5 * height], s(0.2), 0.05)
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    cabin = box(r, n // 4, [0.5 * length, 0.9 * width, s(0.35)], [-0.05 * length, 0, 0.5 * height + 0.17])
    return [box(r, n // 2, [length, width, height], [0, 0, 0]), cabin, np.concatenate(wheels)]


def two_wheels(r: np.random.Generator, s: Callable[[float], float], n: int, thick: float) -> list[np.ndarray]:
    base, radius = s(1.1), s(0.33)
    front, back = ([x * 0.5 * base, 0.0, 0.0] for x in (1, -1))
    seat, handle = [-0.15 * base, 0.0, s(0.5)], [0.4 * base, 0.0, s(0.55)]
    wheels = [ring(r, n // 4, centre, radius, thick) for centre in (front, back)]
    return [*wheels, *_frame(r, n // 2, back, front, seat, handle, thick)]


def _frame(r: Any, n: int, back: Any, front: Any, seat: Any, handle: Any, thick: float) -> list[np.ndarray]:
    if thick < 0.05:
        bars = [(back, seat), (seat, handle), (handle, front), (seat, [0.0, 0.0, 0.0]), ([0.0, 0.0, 0.0], back)]
        frame = np.concatenate([tube(r, n // 7, a, b, 0.02) for a, b in bars])
    else:
        frame = ellipsoid(r, 5 * (n // 7), [0.35, 0.13, 0.2], [0.0, 0.0, 0.2])
    grip = [tube(r, n // 7, [handle[0], -0.25, handle[2]], [handle[0], 0.25, handle[2]], 0.02)]
    saddle = [ellipsoid(r, n // 7, [0.15 + thick, 0.06 + thick, 0.04], seat)]
    return [frame, np.concatenate(grip + saddle)]


def bike(r: np.random.Generator, s: Callable[[float], float], n: int) -> list[np.ndarray]:
    return two_wheels(r, s, n, 0.02)


def motorcycle(r: np.random.Generator, s: Callable[[float], float], n: int) -> list[np.ndarray]:
    return two_wheels(r, s, n, 0.09)


def dog(r: np.random.Generator, s: Callable[[float], float], n: int) -> list[np.ndarray]:
    length, leg, wide = s(0.55), s(0.5), s(0.2)
    legs = [
        tube(r, n // 16, [x * 0.7 * length, y * 0.6 * wide, -leg], [x * 0.7 * length, y * 0.6 * wide, 0.0], 0.05)
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    head = ellipsoid(r, n // 5, [0.2, 0.14, 0.15], [length + s(0.15), 0.0, s(0.3)])
    tail = tube(r, n // 10, [-length, 0.0, 0.05], [-length - s(0.3), 0.0, s(0.3)], 0.03)
    return [ellipsoid(r, n // 2, [length, wide, wide], [0.0, 0.0, 0.0]), np.concatenate(legs), head, tail]


def aeroplane(r: np.random.Generator, s: Callable[[float], float], n: int) -> list[np.ndarray]:
    length, span = s(2.0), s(1.8)
    body = tube(r, n // 2, [-0.5 * length, 0, 0], [0.5 * length, 0, 0], s(0.12))
    wings = box(r, n // 3, [s(0.4), span, 0.03], [0.05 * length, 0, 0])
    tail = [
        box(r, n // 12, [0.2, 0.35 * span, 0.03], [-0.45 * length, 0, 0.05]),
        box(r, n // 12, [0.2, 0.03, s(0.35)], [-0.45 * length, 0, 0.25]),
    ]
    return [body, wings, np.concatenate(tail)]


CLASSES = {"car": car, "bike": bike, "dog": dog, "motorcycle": motorcycle, "aeroplane": aeroplane}


def drawn_cloud(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A cloud of a class with a radius of 1, sizes within 15 %, and the part of each point: part after part."""
    random = np.random.default_rng([seed, list(CLASSES).index(name)])
    parts = CLASSES[name](random, lambda size: size * random.uniform(0.85, 1.15), sized(POINTS, 120))
    points = np.concatenate(parts)
    points = points - points.mean(axis=0)
    points += 0.01 * random.normal(size=points.shape)
    return points / np.sqrt((points**2).sum(axis=1).mean()), np.repeat(np.arange(len(parts)), [len(p) for p in parts])


def voxel_clouds(name: str, n: int) -> list[np.ndarray]:
    """Points on the surface of some shapes of 32³ voxels, with a radius of 1."""
    with gzip.open(data_home() / "pointclouds" / "modelnet10-voxels" / f"{name}_packbits.npy.gz") as file:
        grids = np.unpackbits(np.load(file), axis=1).reshape(-1, 32, 32, 32)
    grids = grids[grids.sum(axis=(1, 2, 3)) > 100]  # one is empty
    random, clouds = np.random.default_rng(0), []
    for k in np.linspace(0, len(grids) - 1, n).astype(int):
        padded = np.pad(grids[k], 1)
        inside = sum(np.roll(padded, step, axis) for axis in range(3) for step in (1, -1))[1:-1, 1:-1, 1:-1] == 6
        points = np.argwhere((grids[k] > 0) & ~inside).astype(float)
        points = points[random.permutation(len(points))[: sized(POINTS, 120)]]
        points = points - points.mean(axis=0)
        clouds.append(points / np.sqrt((points**2).sum(axis=1).mean()))
    return clouds


# ------------------------------------------------------------------------------------------------------------- parts


def how_parts_lie(clouds: list[np.ndarray], labels: list[np.ndarray]) -> tuple[float, float, float]:
    """Shares of equal parts among near points and among counterparts, and of the largest part of a cloud."""
    trees = [cKDTree(cloud) for cloud in clouds]
    near, across, largest = [], [], []
    for i, (cloud, own) in enumerate(zip(clouds, labels, strict=True)):
        near.append((own[trees[i].query(cloud, k=7)[1][:, 1:]] == own[:, None]).mean())
        j = (i + 1) % len(clouds)
        across.append((labels[j][trees[j].query(cloud)[1]] == own).mean())
        largest.append(np.bincount(own).max() / len(own))
    return float(np.mean(near)), float(np.mean(across)), float(np.mean(largest))


def drawn(args: argparse.Namespace) -> None:
    print("drawn clouds: agreement with the parts drawn; near points, counterparts alike; largest part; seconds a fit")
    for title, terms in TERMS.items():
        by_class: dict[str, list[float]] = {name: [] for name in CLASSES}
        lie, seconds = [], []
        for name in CLASSES:
            clouds, truth = zip(*(drawn_cloud(name, i) for i in range(args.clouds)), strict=True)
            k = int(truth[0].max()) + 1
            for seed in range(args.seeds):
                start = time.process_time()
                model = ShapePartModel(k, random_state=seed, max_iter=sized(200, 3), **terms).fit(list(clouds))
                seconds.append(time.process_time() - start)
                by_class[name].append(adjusted_rand_score(np.concatenate(truth), np.concatenate(model.labels_)))
                lie.append(how_parts_lie(list(clouds), model.labels_))
        near, across, largest = np.mean(lie, axis=0)
        means = {name: float(np.mean(found)) for name, found in by_class.items()}
        mean = float(np.mean(list(means.values())))
        each = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
        print(f"{title:28} {mean:.3f} ({each}); {near:.2f}, {across:.2f}; {largest:.2f}; {np.median(seconds):.1f} s")
        columns = {"agreement": mean, **means, "near alike": near, "counterparts alike": across}
        record("drawn", title, values={**columns, "largest part": largest, "fit, s": float(np.median(seconds))})


def real(args: argparse.Namespace) -> None:
    print("chairs and monitors, four parts: near points alike, counterparts alike, largest part")
    for name in ("chair", "monitor"):
        clouds = voxel_clouds(name, args.clouds)
        for title, terms in TERMS.items():
            found = []
            for seed in range(args.seeds):
                model = ShapePartModel(4, random_state=seed, max_iter=sized(200, 3), **terms).fit(clouds)
                found.append(how_parts_lie(clouds, model.labels_))
            near, across, largest = np.mean(found, axis=0)
            print(f"{name:8} {title:28} {near:.2f} {across:.2f} {largest:.2f}")
            values = {"near alike": near, "counterparts alike": across, "largest part": largest}
            record("real", f"{name}s, {title}", values={key: float(value) for key, value in values.items()})


# ----------------------------------------------------------------------------------------------------------- classes


def fitted(title: str, clouds: list[np.ndarray], y: np.ndarray, seed: int) -> ShapeClassifier:
    """The classifier by one of the models; those of the source's comparison are its methods."""
    method = {"SLDMRF": "parts", "GM": "mixture", "no parts": "global"}.get(title, "global")
    model = ShapeClassifier(method=method, max_iter=sized(100, 3), random_state=seed).fit(clouds, y)
    if title in ("LDA", "LDMRF"):
        clouds = as_clouds("clouds", clouds)  # type: ignore[assignment]
        grid = Grid.around(stacked(clouds)[0], model.grid)  # type: ignore[arg-type]
        model.models_ = [
            ShapePartModel(max_iter=sized(100, 3), random_state=seed, **TERMS[title])._fit(
                [cloud for cloud, name in zip(clouds, y, strict=True) if name == kind], grid
            )
            for kind in model.classes_
        ]
    return model


def classes(args: argparse.Namespace) -> None:
    count = sized(30, 6)
    of_class = {name: [drawn_cloud(name, 1000 + i)[0] for i in range(count)] for name in CLASSES}
    few = {name: [seen_badly(cloud, i) for i, cloud in enumerate(clouds)] for name, clouds in of_class.items()}
    compare("drawn", few, args.splits)
    with from_data("modelnet10-voxels"):
        compare("real", {name: voxel_clouds(name, sized(60, 6)) for name in ("chair", "monitor")}, args.splits)


def seen_badly(points: np.ndarray, seed: int) -> np.ndarray:
    """A few points of a cloud, with noise, turned about the vertical by some 15°: whole clouds are never confused."""
    random = np.random.default_rng([seed, 1])
    few = points[random.permutation(len(points))[:FEW]]
    turn = np.deg2rad(15) * random.normal()
    turned = few @ [[np.cos(turn), np.sin(turn), 0], [-np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    return turned + 0.1 * random.normal(size=turned.shape)


def compare(kind: str, of_class: dict[str, list[np.ndarray]], splits: int) -> None:
    names = list(of_class)
    clouds, y = [c for name in names for c in of_class[name]], np.repeat(names, [len(of_class[n]) for n in names])
    for title in ("SLDMRF", "GM", "no parts", "LDA", "LDMRF"):
        rates, confusion = [], np.zeros((len(names), len(names)))
        for seed in range(splits):
            random = np.random.default_rng(seed)
            train = np.concatenate(
                [random.permutation(np.flatnonzero(y == name))[: int(0.7 * (y == name).sum())] for name in names]
            )
            test = np.setdiff1d(np.arange(len(y)), train)
            model = fitted(title, [clouds[i] for i in train], y[train], seed)
            guessed = model.predict([clouds[i] for i in test])
            rates.append(float((guessed == y[test]).mean()))
            np.add.at(confusion, ([names.index(n) for n in y[test]], [names.index(n) for n in guessed]), 1)
        print(f"classes, {kind}, {title:8}: {np.mean(rates):.3f} ± {np.std(rates):.3f}")
        record("classes", f"{kind}, {title}", values={"accuracy": spread(rates)})
        shares = 100 * confusion / confusion.sum(axis=1, keepdims=True)
        for name, row in zip(names, shares, strict=True):
            print(f"  {name:10} " + " ".join(f"{value:5.1f}" for value in row))
            if title in ("SLDMRF", "GM", "no parts"):
                values = dict(zip(names, map(float, row), strict=True))
                record(f"confusions, {kind}", f"{title}: {name}", values=values)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"drawn": drawn, "real": real, "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--clouds", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=5)
    args = parse(parser, clouds=3, seeds=1, splits=1)
    warnings.simplefilter("ignore")
    for part in args.parts:
        with from_data(part):
            PARTS[part](args)


if __name__ == "__main__":
    main()
