"""Puts results of `proportions.py --parts tables` into tables 8.3 and 8.4; says where they differ from the printed.

    python -m benchmarks proportions_page --json [FILE.jsonl ...] [--most 15]

Cells for which the files have whole runs (five folds) are recorded anew: mean and deviation over these runs. The others
stay as they are in the results. Then the cells are counted: within 1.5 points of the printed figures, above and below,
and the largest differences are listed. A later file counts where two have the same fold. The rows belong to
proportions.py; ``python -m benchmarks results`` writes the page.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _timing import parse, record
from proportions_printed import PRINTED, SIZES

MEASURED = Path(__file__).resolve().parent / "results" / "measured.jsonl"
TABLES = {"linear": "table 8.3", "rbf": "table 8.4"}
NEAR = 1.5
FOLDS = 5
Table = dict[tuple[str, str], dict[str, Any]]  # kernel and "set, method" → cells by size


def whole_runs(paths: list[Path]) -> dict[tuple[str, str, int], list[float]]:
    """Of kernel, "set, method" and size the means over the folds of each whole run."""
    folds: dict[tuple[str, str, int], dict[tuple[int, int], float]] = defaultdict(dict)
    for path in paths:
        for line in path.read_text().splitlines():
            r = json.loads(line)
            folds[r["kernel"], f"{r['set']}, {r['method']}", r["size"]][r["run"], r["fold"]] = r["accuracy"]
    found = {}
    for key, by_fold in folds.items():
        runs = sorted({run for run, _ in by_fold})
        values = [[by_fold[run, fold] for fold in range(FOLDS) if (run, fold) in by_fold] for run in runs]
        means = [float(np.mean(of_run)) for of_run in values if len(of_run) == FOLDS]
        if means:
            found[key] = means
    return found


def known() -> Table:
    """The cells that the results have."""
    found = {}
    for line in MEASURED.read_text().splitlines():
        row = json.loads(line)
        for kernel, name in TABLES.items():
            if (row["script"], row["table"]) == ("proportions", name):
                found[kernel, row["measure"]] = row["values"]
    return found


def updated(table: Table, results: dict[tuple[str, str, int], list[float]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows that results change, whole."""
    changed: Table = {}
    for (kernel, measure, size), means in results.items():
        row = changed.setdefault((kernel, measure), dict(table.get((kernel, measure), {})))
        cell: dict[str, float] = {"value": round(float(np.mean(means)), 1)}
        if len(means) > 1:
            cell["deviation"] = round(float(np.std(means)), 1)
        name, _, method = measure.partition(", ")
        if printed := PRINTED[kernel].get(name, {}).get(method):
            cell["printed"] = printed[SIZES.index(size)][0]
        row[str(size)] = cell
    return {key: {str(size): row[str(size)] for size in SIZES if str(size) in row} for key, row in changed.items()}


def differences(table: Table) -> dict[tuple[str, str, str, int], float]:
    """Ours less the printed, of all cells that have both."""
    found = {}
    for (kernel, measure), row in table.items():
        name, _, method = measure.partition(", ")
        for size, cell in row.items():
            if cell.get("printed") is not None:
                found[kernel, name, method, int(size)] = cell["value"] - cell["printed"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="results of proportions.py")
    parser.add_argument("--most", type=int, default=15, help="differences to list, of either sign")
    options = parse(parser, most=3)
    results = whole_runs(options.files)
    table = known()
    changed = updated(table, results)
    table |= changed
    for (kernel, measure), row in changed.items():
        record(TABLES[kernel], measure, values=row, script="proportions")
    if results:
        print(f"{len(results)} cells of {len(changed)} rows, {sum(len(m) < 5 for m in results.values())} of few runs")
    found = differences(table)
    for kernel in TABLES:
        of_kernel = [value for key, value in found.items() if key[0] == kernel]
        above, below = sum(v > NEAR for v in of_kernel), sum(v < -NEAR for v in of_kernel)
        within = len(of_kernel) - above - below
        print(f"{kernel}: {len(of_kernel)} cells, {within} within {NEAR}, {above} above, {below} below")
    for kernel, method in product(TABLES, sorted({key[2] for key in found})):
        values = np.array([value for key, value in found.items() if (key[0], key[2]) == (kernel, method)])
        above, below = (values > NEAR).sum(), (values < -NEAR).sum()
        columns = {"mean difference": round(float(values.mean()), 1), "above": int(above), "below": int(below)}
        record("differences", f"{kernel}, {method}", values=columns)
        print(f"  {kernel:6} {method:20} mean {values.mean():+.1f}, above {above}, below {below}")
    ordered = sorted(found.items(), key=lambda item: item[1])
    for label, part in (("below", ordered[: options.most]), ("above", ordered[: -options.most - 1 : -1])):
        print(f"furthest {label}:")
        for (kernel, name, method, size), value in part:
            print(f"  {value:+6.1f}  {kernel:6} {name:11} {method:20} {size}")


if __name__ == "__main__":
    main()
