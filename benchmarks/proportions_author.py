"""Tables 8.3 and 8.4 where bags are few, in the protocol of the author's released split.

    MERCER_DATA=... python benchmarks/proportions_author.py [--sets heart] [--sizes 64] [--kernels linear] [--runs 20]

The released split of heart (github.com/felixyu/pSVM) cuts the whole set into random bags of 64 rows and a rest, takes
whole bags for the test, and whole bags of the others for the choice of parameters. `proportions.py` cuts bags inside of
the training folds. Here the folds are those of the author: 5 of whole bags (as many as bags, if these are fewer), and
up to 5 inner ones; grids, methods and starts are those of `proportions.py`. All test rows of a run are counted
together, since a bag may have few of them.

Three ways to choose parameters: by the shares of held-out bags, as the source says ("bags"); or with labels of test
rows, the point of the grid with the most of them right, one for each run or one for each fold. The last two look at
what nobody has, and say what the grid can give at most. Printed beside: mean and deviation over runs, and the middle
95 % of the means of five of them.

One line for each fold, with every point of the grid, goes to a JSON-lines file (--out); what is there is not run again.
The released split itself and the toy of figure 8.1 are run with --parts split toy, and the votes in bags that all have
the prior (section 8.7), the machines with their defaults, with --parts prior.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _timing import from_data, parse, record, spread
from proportions_printed import PRINTED, SIZES
from scipy.io import loadmat

from mercer.datasets import load_proportion_set
from mercer.datasets._home import data_file
from mercer.proportions import AlternatingProportionSVM, Bags, ConvexProportionSVM, make_bags
from proportions import GAMMAS, METHODS, SETS, Inputs, distinct, learner, loaded

KEYS = ("set", "size", "kernel", "method", "run", "fold")
INNER = 5  # folds


def held_out_error(
    method: str, point: dict[str, Any], kernel: str, inputs: Inputs, rows: np.ndarray, bags: Bags
) -> float:
    """Σ_k |p_k − ȳ_k| of bags left out; infinite where the method fails."""
    count, total = min(INNER, len(bags)), 0.0
    fold = np.random.RandomState(0).permutation(len(bags)) % count
    for k in range(count if count > 1 else 0):
        kept, inside = bags.select(np.flatnonzero(fold != k))
        held, outside = bags.select(np.flatnonzero(fold == k))
        try:
            start = inputs.start(point.get("init", ""), rows[inside], kept)
            model = learner(method, point, kernel, True, k, start).fit(inputs.train(rows[inside]), bags=kept)
        except (ValueError, np.linalg.LinAlgError):
            return float("inf")
        predicted = model.predict_proportions(inputs.test(rows[outside], rows[inside]), held)
        total += float(np.abs(predicted - held.proportions).sum())
    return total


def all_points(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, bags: Bags, kernel: str, method: str, seed: int
) -> list[dict[str, Any]]:
    """Error of held-out bags and number of test rows that are right, for every point of the grid."""
    results = []
    for gamma in GAMMAS if kernel == "rbf" else (0.0,):
        inputs = Inputs(X, kernel, gamma)
        for point in distinct(method, kernel, bags):
            error = held_out_error(method, point, kernel, inputs, train, bags)
            try:
                model = learner(method, point, kernel, False, seed).fit(inputs.train(train), bags=bags)
                right = int((model.predict(inputs.test(test, train)) == y[test]).sum())
            except (ValueError, np.linalg.LinAlgError):
                right = 0
            results.append({"point": {**point, "gamma": gamma}, "error": error, "right": right})
    return results


def folds_of_bags(y: np.ndarray, size: int, run: int) -> list[tuple[np.ndarray, np.ndarray, Bags]]:
    """Training rows, test rows and training bags of each fold of whole bags."""
    bags = make_bags(y, size, random_state=run)
    fold = np.random.RandomState(run).permutation(len(bags)) % min(5, len(bags))
    splits = []
    for k in range(fold.max() + 1):
        kept, train = bags.select(np.flatnonzero(fold != k))
        _, test = bags.select(np.flatnonzero(fold == k))
        splits.append((train, test, kept))
    return splits


def tables(options: argparse.Namespace) -> None:
    """Run what the file lacks, cell by cell, then print."""
    warnings.simplefilter("ignore")
    path = Path(options.out)
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(result[key] for key in KEYS) for result in results}
    with path.open("a") as out:
        for name, size, kernel in product(options.sets, options.sizes, options.kernels):
            X, y = loaded(name)
            for run, method in product(range(options.runs), options.methods):
                for fold, (train, test, bags) in enumerate(folds_of_bags(y, size, run)):
                    if (name, size, kernel, method, run, fold) in done:
                        continue
                    begin = time.process_time()
                    points = all_points(X, y, train, test, bags, kernel, method, run)
                    taken = time.process_time() - begin
                    line = dict(zip(KEYS, (name, size, kernel, method, run, fold), strict=True))
                    results.append({**line, "rows": len(test), "points": points, "seconds": taken})
                    out.write(json.dumps(results[-1]) + "\n")
                    out.flush()
    print("\n".join(table(results)))


def chosen_by(results: list[dict[str, Any]]) -> tuple[list[float], list[float], list[float]]:
    """Accuracy of each whole run of a cell in %, with parameters by bags, and with labels by run and by fold."""
    runs: dict[int, list[dict[str, Any]]] = {}
    for result in results:
        runs.setdefault(result["run"], []).append(result)
    most = max(len(of_run) for of_run in runs.values())
    by_bags: list[float] = []
    by_run: list[float] = []
    by_fold: list[float] = []
    for of_run in (of_run for of_run in runs.values() if len(of_run) == most):
        rows = sum(result["rows"] for result in of_run)
        best = [min(result["points"], key=lambda point: point["error"]) for result in of_run]
        by_bags.append(100 * sum(point["right"] for point in best) / rows)
        totals: dict[int, int] = {}
        for result in of_run:
            for at, point in enumerate(result["points"]):
                totals[at] = totals.get(at, 0) + point["right"]
        by_run.append(100 * max(totals.values()) / rows)
        by_fold.append(100 * sum(max(point["right"] for point in result["points"]) for result in of_run) / rows)
    return by_bags, by_run, by_fold


def table(results: list[dict[str, Any]]) -> list[str]:
    """A line for each cell: runs, ours by bags and by labels, the printed figure."""
    titles = ("runs", "chosen by bags", "means of 5 runs", "with labels, for a run", "for a fold", "printed")
    lines = [
        "| kernel | set | bags of | method | runs | chosen by bags | means of 5 runs | with labels, for a run "
        "| for a fold | printed |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    cells: dict[tuple[str, str, int, str], list[dict[str, Any]]] = {}
    for result in results:
        cells.setdefault((result["kernel"], result["set"], result["size"], result["method"]), []).append(result)
    order = {name: at for at, name in enumerate((*SETS, *METHODS))}
    for key in sorted(cells, key=lambda cell: (cell[0], order[cell[1]], cell[2], order[cell[3]])):
        kernel, name, size, method = key
        by_bags, by_run, by_fold = (np.array(values) for values in chosen_by(cells[key]))
        drawn = np.random.RandomState(0)
        fives = [drawn.choice(by_bags, 5, replace=False).mean() for _ in range(2000)] if len(by_bags) > 5 else [np.nan]
        low, high = np.quantile(fives, [0.025, 0.975])
        figure = PRINTED[kernel].get(name, {}).get(method)
        printed = f"{figure[SIZES.index(size)][0]:.1f} ± {figure[SIZES.index(size)][1]:.1f}" if figure else ""
        means = [f"{values.mean():.1f} ± {values.std():.1f}" for values in (by_bags, by_run, by_fold)]
        row = [str(len(by_bags)), means[0], f"{low:.1f} to {high:.1f}", *means[1:], printed]
        record("few bags", f"{kernel}, {name}, bags of {size}, {method}", values=dict(zip(titles, row, strict=True)))
        lines.append(f"| {kernel} | {name} | {size} | {method} | " + " | ".join(row) + " |")
    return lines


# ------------------------------------------------------------------------------------------------ released files


def released(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, training rows, test rows, and the bag of each training row."""
    content = loadmat(str(data_file("psvm", f"{name}.mat")))
    X, split = np.ascontiguousarray(content["data"], np.float64), content["split"][0, 0]
    part = {key: split[key].ravel().astype(np.int64) for key in ("train_bag_idx", "train_label", "test_label")}
    train = split["train_data_idx"].ravel() - 1 if "train_data_idx" in split.dtype.names else np.arange(len(X))
    test = split["test_data_idx"].ravel() - 1 if "test_data_idx" in split.dtype.names else np.arange(len(X))
    y = np.zeros(len(X), np.int64)
    y[train], y[test] = part["train_label"] > 0, part["test_label"] > 0
    return X, y, train.astype(np.int64), test.astype(np.int64), part["train_bag_idx"]


def split(options: argparse.Namespace) -> None:
    """The one fold of heart that was released: accuracy on its 64 test rows."""
    warnings.simplefilter("ignore")
    X, y, train, test, number = released("heart")
    shares = {int(k): float(y[train][number == k].mean()) for k in np.unique(number)}
    print(f"\nreleased split of heart: {len(train)} rows in {len(shares)} bags, {len(test)} test rows")
    print("| kernel | method | chosen by bags | chosen with labels |\n|---|---|---:|---:|")
    bags = Bags(number, shares)
    for kernel, method in product(options.kernels, options.methods):
        points = all_points(X, y, train, test, bags, kernel, method, 0)
        by_bags = 100 * min(points, key=lambda point: point["error"])["right"] / len(test)
        by_labels = 100 * max(point["right"] for point in points) / len(test)
        print(f"| {kernel} | {method} | {by_bags:.1f} | {by_labels:.1f} |", flush=True)


def toy(options: argparse.Namespace) -> None:
    """Figure 8.1: accuracy on its 200 points; printed: 0 % for methods from means of bags, 100 % for both machines."""
    warnings.simplefilter("ignore")
    X, y, _, _, number = released("toy")
    print("\ntoy of figure 8.1, linear\n| method | accuracy |\n|---|---:|")
    names = {
        "mean-map": "mean map",
        "inverse-calibration": "inverse calibration",
        "alter": "alternating",
        "conv": "convex",
    }
    found = {}
    for method, point in (("mean-map", {}), ("inverse-calibration", {}), ("alter", {"C": 10.0}), ("conv", {})):
        model = learner(method, point, "linear", False, 0).fit(X, bags=number, proportions=[0.6, 0.4])
        found[names.get(method, "convex")] = round(100 * model.score(X, y), 1)
        print(f"| {method} | {100 * model.score(X, y):.1f} |")
    record("toy", "toy", values=found)


def prior(options: argparse.Namespace) -> None:
    """Votes in bags of one composition, 38.6 % of each: nothing in the shares tells bags apart."""
    warnings.simplefilter("ignore")
    X, y = load_proportion_set("vote")
    machines = {
        "alternating": lambda seed: AlternatingProportionSVM(random_state=seed),
        "alternating, C = 10": lambda seed: AlternatingProportionSVM(C=10.0, random_state=seed),
        "convex": lambda seed: ConvexProportionSVM(),
    }
    for size in (8, 32):
        found: dict[str, list[float]] = {name: [] for name in machines}
        for seed in range(options.runs):
            rng = np.random.default_rng(seed)
            ones, zeros = rng.permutation(np.flatnonzero(y == 1)), rng.permutation(np.flatnonzero(y == 0))
            n_ones = round(0.386 * size)
            n_zeros, count = size - n_ones, min(len(ones) // n_ones, len(zeros) // (size - n_ones))
            groups = (ones, n_ones), (zeros, n_zeros)
            rows = np.hstack([part[: count * n].reshape(count, n) for part, n in groups]).ravel()
            bags = np.repeat(np.arange(count), size)
            for name, make in machines.items():
                model = make(seed).fit(X[rows], bags=bags, proportions=np.full(count, n_ones / size))
                found[name].append(100 * model.score(X, y))
        values = {name: spread(scores, 1) for name, scores in found.items()}
        shown = ", ".join(f"{name} {v['value']} ± {v.get('deviation', 0.0)}" for name, v in values.items())
        print(f"votes, all bags of {size} at the prior: {shown}")
        record("prior", f"bags of {size}", values=values, sizes=f"{options.runs} runs")


PARTS = {"tables": tables, "split": split, "toy": toy, "prior": prior}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["tables"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["heart"])
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=[64])
    parser.add_argument("--kernels", nargs="+", choices=["linear", "rbf"], default=["linear"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[m for m in METHODS if m != "best start"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", default="proportions_author.jsonl", help="results, one line for each fold")
    options = parse(parser, parts=["tables", "split", "toy", "prior"], methods=["mean-map"], runs=1, out=os.devnull)
    for part in options.parts:
        with from_data(part):
            PARTS[part](options)


if __name__ == "__main__":
    main()
