"""KernelSVC on rows of numbers beside scikit-learn's SVC: seconds, memory, objective; each fit in its own process.

    python benchmarks/kernel_rows.py [--sizes 13000] [--large 100000] [--repeats 3]

Both have the same Gaussian kernel, the same C and the same violation at which they stop; caches have their default
sizes (150 and 200 megabytes). Seconds are of the processor, one thread, medians of processes in turn. Memory is the
most that the process ever had, with the libraries and the data. The objective ½‖w‖² + C Σ max(0, 1 − y_i f_i) is
computed here from coefficients and offsets; excess is (ours − theirs) / theirs, so that below 0 is better.

``covtype``  10 standardised columns of Forest CoverType, classes 1 and 2 against the rest (needs MERCER_DATA)
``drawn``    two overlapping classes of three lumps each, 10 columns
``large``    the drawn classes with so many rows; ours alone, as the peer takes several minutes
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from _timing import SMOKE, from_data, parse, record, seconds
from kernel_machines import of_classes, two_classes

TOL, SLACK, NEW = 1e-3, 3.0, 2000


def covtype(n: int) -> tuple[np.ndarray, np.ndarray]:
    if not (name := os.environ.get("MERCER_DATA")):
        raise OSError("MERCER_DATA names no folder")
    path = Path(name) / "covtype-subset" / "covtype_kaggle_train15120.csv.gz"
    table = np.loadtxt(path, delimiter=",", skiprows=1, max_rows=n)
    X = table[:, 1:11]
    return (X - X.mean(axis=0)) / X.std(axis=0), (table[:, -1] <= 2).astype(int)


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    return two_classes(n, 0.5)


SETS = {"covtype": covtype, "drawn": drawn}


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fitted(side: str, name: str, n: int, checked: bool) -> dict[str, Any]:
    """Fit in this process, and return what was measured."""
    X, y = SETS[name](n)
    if side == "ours":
        from mercer.kernel_methods import KernelSVC as Machine
    else:
        from sklearn.svm import SVC as Machine
    taken, model = seconds(lambda: Machine(C=SLACK, tol=TOL).fit(X, y))
    memory = megabytes()
    predicting, _ = seconds(lambda: model.decision_function(X[:NEW]))
    objective = None
    if checked:  # by the whole matrix, to be independent of both
        from mercer.kernels import Gaussian

        s = np.zeros(n)
        s[model.support_] = model.dual_coef_[0]
        K = Gaussian(1.0 / (X.shape[1] * X.var()))(X)
        objective = of_classes(K, np.where(y == 1, 1.0, -1.0), s, float(model.intercept_[0]), SLACK)
    figures = {"fit": taken, "predict": predicting, "memory": memory, "objective": objective}
    return figures | {"support": len(model.support_)}


def apart(side: str, name: str, n: int, checked: bool) -> dict[str, Any]:
    """One fit in a process of its own; at the smallest size in this one, as imports take longest."""
    if SMOKE:
        return fitted(side, name, n, checked)
    command = [sys.executable, __file__, "--one", side, name, str(n), "checked" if checked else ""]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def median(found: list[dict[str, Any]], what: str) -> float:
    return statistics.median(entry[what] for entry in found)


def compare(name: str, n: int, repeats: int) -> None:
    """Both sides in turn."""
    ours, theirs = [], []
    for round_ in range(repeats):
        ours.append(apart("ours", name, n, round_ == 0))
        theirs.append(apart("theirs", name, n, round_ == 0))
    excess = (ours[0]["objective"] - theirs[0]["objective"]) / theirs[0]["objective"]
    for what, unit in (("fit", "s"), ("predict", "s"), ("memory", "MB")):
        a, b = median(ours, what), median(theirs, what)
        record(
            "rows on demand", f"{what}, {name}, {n:,} rows", ours=a, theirs=b, peer="scikit-learn SVC", unit=unit,
            note=f"excess of the objective {excess:+.1e}",
        )  # fmt: skip
        print(
            f"| {name} | {n:,} | {what} | {a:.3g} {unit} | {b:.3g} {unit} | {b / a:.2f}x | {excess:+.1e} |", flush=True
        )


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(fitted(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5] == "checked")))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[13_000])
    parser.add_argument("--large", type=int, default=100_000, help="rows of ours alone; 0 for none")
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, sizes=[300], repeats=1, large=0)
    print("| set | rows | measure | ours | scikit-learn SVC | ratio | excess |")
    print("|---|---|---|---|---|---|---|")
    for n in options.sizes:
        for name in SETS:
            with from_data(name):
                SETS[name](n)
                compare(name, n, options.repeats)
    if options.large:
        found = apart("ours", "drawn", options.large, False)
        for what, unit in (("fit", "s"), ("memory", "MB")):
            record("rows on demand", f"{what}, drawn, {options.large:,} rows", ours=found[what], unit=unit)
        print(f"| drawn | {options.large:,} | fit | {found['fit']:.3g} s | {found['memory']:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
