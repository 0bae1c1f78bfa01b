"""Labelling images and region graphs: random field, margins and their blend against blocks or regions one by one.

    python benchmarks/labeling.py --parts horses,regions --size small --output pictures

horses: Weizmann horses (grey images, figure against ground; MERCER_DATA/weizmann-horses), split 108 / 129, the sizes
that Kumar and Hebert used in 2003 (``small``: 40 / 60); the test images are the last ones of a fixed random order. C is
chosen for each model on a fifth of the training images. Accuracy of pixels, intersection over union of the horse.
Pictures of the first test images are written to ``--output``. "by marginals" is the accuracy of each pixel's most
probable label, "weights" the summed size of the weights of blocks.

regions: generated region graphs with seven labels, 56 / 200; C is
chosen for each model by two-fold cross-validation on the training graphs. "hybrid" has a margin of 1 to the best other
labelling, "hybrid, cost" a margin of the cost (``Hybrid(margin="cost")``).

msrc: the same for 160 segmented pictures of MSRC_9 (MERCER_DATA/graphs), 60 / 100: the regions, their neighbours and
their classes are real; the features are drawn, a prototype of the class plus noise, as no features come with the set.

recovery: how far off the weights are that were learnt from labels drawn with known ones.

pixels: one image of 256 × 256 pixels and three channels, blocks of one pixel, 15 iterations: seconds, memory of the
whole process, the objective reached. No other library is known that learns such a field.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np
from _timing import from_data, parse, record, sized

from mercer.data.labels import TagSequences
from mercer.datasets import load_tu, make_regions
from mercer.inference import grid_edges
from mercer.labeling import GraphInputs, GraphLabeler, GridLabeler, Piecewise, PseudoLikelihood
from mercer.learning import Hybrid, Log, Risk
from mercer.learning.training import train
from mercer.metrics import mean_iou, token_accuracy
from mercer.report import labelling_picture, write_png
from mercer.structures import GraphLabels

SIZES = {"smallest": (10, 5), "small": (40, 60), "full": (108, 129)}
REGION_SIZES = {"smallest": (8, 8), "small": (56, 200), "full": (56, 200)}
DIFFICULTY = 0.7  # of drawn features: deviation of the noise, prototypes being 1.4 apart
REGION_GRID = (0.03, 0.1, 0.3, 1.0)
HORSES = {
    "blocks one by one": {"edge_weights": "none"},
    "grid, log": {"loss": "log", "max_iter": 25},
    "grid, pseudo-likelihood": {"loss": "log", "training": "pseudo-likelihood"},
    "grid, hinge": {"loss": "hinge", "max_iter": 100, "tol": 0.005},
    "grid, hybrid": {"loss": "hybrid", "max_iter": 200, "tol": 0.001},
    "grid, hybrid, cost": {"loss": Hybrid(margin="cost"), "max_iter": 200, "tol": 0.001},
}
REGIONS = {
    "regions one by one, log": {"edge_weights": "none"},
    "regions one by one, hinge": {"edge_weights": "none", "loss": "hinge"},
    "graph, log": {},
    "graph, pseudo-likelihood": {"training": "pseudo-likelihood"},
    "graph, piecewise": {"training": "piecewise"},
    "graph, hinge": {"loss": "hinge"},
    "graph, hybrid": {"loss": "hybrid", "max_iter": 100},
    "graph, hybrid, cost": {"loss": Hybrid(margin="cost"), "max_iter": 100},
}


def load_horses() -> tuple[list[np.ndarray], list[np.ndarray]]:
    from PIL import Image

    home = Path(os.environ["MERCER_DATA"]) / "weizmann-horses"
    found: dict[str, dict[str, np.ndarray]] = {}
    for kind in ("gray", "figure_ground"):
        with tarfile.open(home / f"{kind}.tar.gz") as archive:
            members = sorted((m for m in archive.getmembers() if m.name.endswith(".jpg")), key=lambda m: m.name)
            found[kind] = {
                Path(m.name).name: np.asarray(Image.open(io.BytesIO(archive.extractfile(m).read())).convert("L"))
                for m in members
            }
    names = sorted(set(found["gray"]) & set(found["figure_ground"]))
    names = [str(name) for name in np.random.default_rng(0).permutation(names)]
    return [found["gray"][k] for k in names], [(found["figure_ground"][k] >= 128).astype(int) for k in names]


def horses(args: argparse.Namespace) -> None:
    if "MERCER_DATA" not in os.environ:
        print("horses: set MERCER_DATA to the folder that holds weizmann-horses")
        return
    n_train, n_test = SIZES[args.size]
    X, y = load_horses()
    fitted = n_train - n_train // 5
    train, held, test = slice(fitted), slice(fitted, n_train), slice(len(X) - n_test, len(X))
    print(f"Weizmann horses, {n_train} / {n_test} images, blocks of {args.block} pixels")
    print(
        f"{'model':28}{'accuracy':>10}{'IoU':>8}{'by marginals':>14}{'weights':>9}{'choice of C':>13}"
        f"{'fit, s CPU':>12}  solver, inference"
    )
    answers = {}
    for name, options in HORSES.items():
        plain = {"block": args.block, "random_state": 0, **options}
        begin = time.process_time()
        chosen = max(args.C, key=lambda C: GridLabeler(C=C, **plain).fit(X[train], y[train]).score(X[held], y[held]))
        start = time.process_time()
        model = GridLabeler(C=chosen, **plain).fit(X[:n_train], y[:n_train])
        seconds, choosing = time.process_time() - start, start - begin
        answers[name] = model.predict(X[test])
        accuracy = model.score(X[test], y[test])
        iou = mean_iou(y[test], answers[name], label=1)
        likely = [model.classes_[p.argmax(axis=2)] for p in model.predict_marginals(X[test])]
        share = np.mean(np.concatenate([(a == b).ravel() for a, b in zip(likely, y[test], strict=True)]))
        size = np.abs(model.node_weights_).sum()
        columns = {"pixels right, %": round(100 * accuracy, 1), "IoU": round(iou, 3), "fit, s": round(seconds, 1)}
        record("horses", name, values=columns, sizes=f"{n_train} / {n_test} images, blocks of {args.block}")
        print(
            f"{name:28}{accuracy:10.4f}{iou:8.4f}{share:14.4f}{size:9.1f}{choosing:13.1f}{seconds:12.1f}  "
            f"C = {chosen:g}, {model.solver_}, {model.inference_}",
            flush=True,
        )
        if args.output is not None and name in ("blocks one by one", "grid, hinge"):
            args.output.mkdir(parents=True, exist_ok=True)
            first = len(X) - n_test
            chances = model.predict_marginals(X[first : first + args.pictures])
            for i, p in enumerate(chances):
                picture = labelling_picture(X[first + i], y[first + i], answers[name][i], p)
                write_png(args.output / f"horse-{i}-{'before' if 'one' in name else 'after'}.png", picture)


def regions(args: argparse.Namespace) -> None:
    n_train, n_test = REGION_SIZES[args.size]
    task = make_regions(n_train + n_test, random_state=0)
    compare_regions("regions", "region graphs, 7 labels", task.X, task.y, n_train, args.models)


def msrc(args: argparse.Namespace) -> None:
    with from_data("MSRC_9"):
        graphs = load_tu("MSRC_9")[0]
        random = np.random.default_rng(0)
        order = random.permutation(len(graphs))[: sized(160, 12)]
        labels = np.unique(graphs.node_labels)
        X, y = [], []
        for graph in (graphs[int(i)] for i in order):
            prototypes = np.eye(len(labels))[np.searchsorted(labels, graph.node_labels)]
            X.append((prototypes + DIFFICULTY * random.normal(size=prototypes.shape), graph.edges))
            y.append([int(label) for label in graph.node_labels])
        what = f"regions of MSRC_9, {len(labels)} labels, drawn features"
        compare_regions("msrc", what, X, y, sized(60, 6), args.models)


def compare_regions(part: str, what: str, X: list, y: list, n_train: int, models: list[str]) -> None:
    """Every model with its own C, chosen by two-fold cross-validation on the training graphs."""
    n_test = len(X) - n_train
    print(f"{what}, {n_train} / {n_test} graphs")
    print(f"{'model':28}{'accuracy':>10}{'default C':>11}{'C':>8}{'fit, s CPU':>12}  inference")
    for name in models:
        options = {"random_state": 0, **REGIONS[name]}
        chosen = max(REGION_GRID, key=lambda C: _cross_validated(C, X[:n_train], y[:n_train], options))
        default = GraphLabeler(**options).fit(X[:n_train], y[:n_train]).score(X[n_train:], y[n_train:])
        start = time.process_time()
        model = GraphLabeler(C=chosen, **options).fit(X[:n_train], y[:n_train])
        seconds = time.process_time() - start
        accuracy = model.score(X[n_train:], y[n_train:])
        columns = {"C chosen, %": round(100 * accuracy, 1), "default C, %": round(100 * default, 1)}
        record(part, name, values={**columns, "fit, s": round(seconds, 1)}, sizes=f"{n_train} / {n_test} graphs")
        print(f"{name:28}{accuracy:10.4f}{default:11.4f}{chosen:8g}{seconds:12.1f}  {model.inference_}", flush=True)


def _cross_validated(C: float, X: list, y: list, options: dict) -> float:
    """Mean accuracy of two fits, each on one half of the graphs and judged on the other."""
    halves = slice(0, None, 2), slice(1, None, 2)
    return float(np.mean([
        token_accuracy(y[b], GraphLabeler(C=C, tol=0.01, **options).fit(X[a], y[a]).predict(X[b]))  # labels may be new
        for a, b in (halves, halves[::-1])
    ]))  # fmt: skip


def recovery(args: argparse.Namespace) -> None:
    structure, edges, random = GraphLabels(2, 2, edge_weights="potts"), grid_edges((4, 4)), np.random.default_rng(0)
    truth = np.array([0.5, -0.5, -0.3, 0.3, 0.8])
    print("labels drawn from a field on grids of 4 x 4 nodes: largest error of a weight, training time")
    print(f"{'grids':>6}  {'log':>18}{'pseudo-likelihood':>20}{'piecewise':>18}")
    for n in sized((50, 500, 4000), (50,)):
        X = GraphInputs.from_list([(random.normal(size=(16, 2)), edges) for _ in range(n)])
        y = TagSequences(structure.sample(structure.scores(truth, X), 1, random)[0], X.offsets)
        cells = []
        for loss in (Log(), PseudoLikelihood(), Piecewise()):
            start = time.process_time()
            found, _ = train(Risk(structure, loss, X, y), solver="lbfgs", C=1e4, tol=1e-6)
            cells.append(f"{np.abs(found.w - truth).max():.3f} ({time.process_time() - start:.2f} s)")
        names = ("log", "pseudo-likelihood", "piecewise")
        record("recovery", f"{n} grids", values=dict(zip(names, cells, strict=True)))
        print(f"{n:6d}  {cells[0]:>18}{cells[1]:>20}{cells[2]:>18}", flush=True)


def pixels() -> None:
    """A field over single pixels."""
    n, random = sized(256, 24), np.random.default_rng(0)
    y, x = np.mgrid[:n, :n] / n
    truth = ((y - 0.39) ** 2 + (x - 0.5) ** 2 < 0.27**2).astype(int)
    image = truth[..., None] * np.array([1.0, 0.5, -1.0]) + random.normal(size=(n, n, 3))
    begun = time.process_time()
    model = GridLabeler(block=1, max_iter=15).fit([image], [truth])
    taken, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    objective = float(model.history_["objective"][-1])
    print(f"\n{n} x {n} pixels, 15 iterations: {taken:.2f} s, {memory:.0f} MB, objective {objective:.6g}", flush=True)
    note = f"objective {objective:.6g}, accuracy of blocks {model.grid_score_:.4f}"
    for what, value, unit in (("seconds", taken, "s"), ("memory of the process", memory, "MB")):
        record("pixels", f"{n} x {n} pixels, 15 iterations, {what}", ours=value, unit=unit, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="pixels,regions,msrc,recovery,horses")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--models", nargs="+", choices=list(REGIONS), default=list(REGIONS), help="of regions and msrc")
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--pictures", type=int, default=4)
    args = parse(parser, parts="pixels,recovery")
    warnings.simplefilter("ignore")
    for part in args.parts.split(","):
        {
            "horses": horses, "regions": regions, "msrc": msrc, "recovery": recovery, "pixels": lambda _: pixels()
        }[part](args)  # fmt: skip


if __name__ == "__main__":
    main()
