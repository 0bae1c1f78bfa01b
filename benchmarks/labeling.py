"""Labelling images and region graphs: random field, margins and their blend against blocks or regions one by one.

    python benchmarks/labeling.py --parts horses,regions --size small --output pictures

horses: Weizmann horses (grey images, figure against ground; MERCER_DATA/weizmann-horses), split 108 / 129 as in spec
001 B23 (``small``: 40 / 60); the test images are the last ones of a fixed random order. C is chosen for each model on a
fifth of the training images. Accuracy of pixels, intersection over union of the horse. Pictures of the first test
images are written to ``--output``. regions: generated region graphs with seven labels, 56 / 200 (spec 000 S63).
"""

from __future__ import annotations

import argparse
import io
import os
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np

from mercer.datasets import make_regions
from mercer.labeling import GraphLabeler, GridLabeler, mean_iou
from mercer.report import labelling_picture, write_png

SIZES = {"small": (40, 60), "full": (108, 129)}
HORSES = {
    "blocks one by one": {"edge_weights": "none"},
    "grid, log": {"loss": "log", "max_iter": 25},
    "grid, pseudo-likelihood": {"loss": "log", "training": "pseudo-likelihood"},
    "grid, hinge": {"loss": "hinge", "max_iter": 100, "tol": 0.005},
    "grid, hybrid": {"loss": "hybrid", "max_iter": 200, "tol": 0.001},
}
REGIONS = {
    "regions one by one, log": {"edge_weights": "none"},
    "regions one by one, hinge": {"edge_weights": "none", "loss": "hinge"},
    "graph, log": {},
    "graph, pseudo-likelihood": {"training": "pseudo-likelihood"},
    "graph, piecewise": {"training": "piecewise"},
    "graph, hinge": {"loss": "hinge"},
    "graph, hybrid": {"loss": "hybrid"},
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
    print(f"{'model':28}{'accuracy':>10}{'IoU':>8}{'choice of C':>13}{'fit, s CPU':>12}  solver, inference")
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
        print(
            f"{name:28}{accuracy:10.4f}{iou:8.4f}{choosing:13.1f}{seconds:12.1f}  C = {chosen:g}, {model.solver_}, "
            f"{model.inference_}",
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
    task = make_regions(256, random_state=0)
    X, y = task.X, task.y
    print("region graphs, 7 labels, 56 / 200 graphs")
    print(f"{'model':28}{'accuracy':>10}{'fit, s CPU':>12}  inference")
    for name, options in REGIONS.items():
        start = time.process_time()
        model = GraphLabeler(C=0.1, random_state=0, **options).fit(X[:56], y[:56])
        seconds = time.process_time() - start
        print(f"{name:28}{model.score(X[56:], y[56:]):10.4f}{seconds:12.1f}  {model.inference_}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="regions,horses")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--pictures", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in args.parts.split(","):
        {"horses": horses, "regions": regions}[part](args)


if __name__ == "__main__":
    main()
