"""Puts results of `proportions.py --parts tables` into the page of the docs; says where they differ from the printed.

    python benchmarks/proportions_page.py [FILE.jsonl ...] [--page docs/proportions_results.md] [--most 15]

Cells for which the files have whole runs (five folds) are written anew: mean and deviation over these runs. The others
stay as they are. Then the cells of the page are counted: within 1.5 points of the printed figures, above and below,
and the largest differences are listed. A later file counts where two have the same fold.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from _timing import parse, record
from proportions_printed import PRINTED, SIZES

HEADINGS = {"linear": "## Linear (table 8.3)", "rbf": "## Gaussian kernel (table 8.4)"}
NEAR = 1.5
FOLDS = 5
Key = tuple[str, str, str]  # kernel, set and method


def whole_runs(paths: list[Path]) -> dict[tuple[str, str, str, int], list[float]]:
    """Of kernel, set, method and size the means over the folds of each whole run."""
    folds: dict[tuple[str, str, str, int], dict[tuple[int, int], float]] = defaultdict(dict)
    for path in paths:
        for line in path.read_text().splitlines():
            r = json.loads(line)
            folds[r["kernel"], r["set"], r["method"], r["size"]][r["run"], r["fold"]] = r["accuracy"]
    found = {}
    for key, by_fold in folds.items():
        runs = sorted({run for run, _ in by_fold})
        values = [[by_fold[run, fold] for fold in range(FOLDS) if (run, fold) in by_fold] for run in runs]
        means = [float(np.mean(of_run)) for of_run in values if len(of_run) == FOLDS]
        if means:
            found[key] = means
    return found


def rows_of(lines: list[str]) -> Iterator[tuple[int, Key, list[str]]]:
    """Number of the line, whose row it is, and its cells, of all rows of the two tables."""
    kernel = None
    for number, line in enumerate(lines):
        if line.startswith("## "):
            kernel = next((name for name, heading in HEADINGS.items() if line.startswith(heading)), None)
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if kernel and line.startswith("| ") and cells[0] != "set":
            yield number, (kernel, cells[0], cells[1]), cells[2:]


def rewritten(lines: list[str], results: dict[tuple[str, str, str, int], list[float]]) -> list[str]:
    """The lines of the page, with new cells where there are results."""
    lines = list(lines)
    for number, key, cells in list(rows_of(lines)):
        for place, size in enumerate(SIZES):
            means = results.get((*key, size))
            if means:
                cells[place] = f"{np.mean(means):.1f} ± {np.std(means):.1f}" if len(means) > 1 else f"{means[0]:.1f}"
        lines[number] = "| " + " | ".join([*key[1:], *cells]) + " |"
    return lines


def differences(lines: list[str]) -> dict[tuple[str, str, str, int], float]:
    """Ours less the printed, of all cells that have both (and five folds: no star)."""
    found = {}
    for _, (kernel, name, method), cells in rows_of(lines):
        printed = PRINTED[kernel].get(name, {}).get(method)
        for place, size in enumerate(SIZES if printed else ()):
            if cells[place] and "*" not in cells[place]:
                found[kernel, name, method, size] = float(cells[place].split()[0]) - printed[place][0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="results of proportions.py")
    default = Path(__file__).resolve().parent.parent / "docs" / "proportions_results.md"
    parser.add_argument("--page", type=Path, default=default)
    parser.add_argument("--most", type=int, default=15, help="differences to list, of either sign")
    options = parse(parser, most=3)
    results = whole_runs(options.files)
    lines = options.page.read_text().splitlines()
    if results:
        lines = rewritten(lines, results)
        options.page.write_text("\n".join(lines) + "\n")
        print(f"{len(results)} cells written, {sum(len(means) < 5 for means in results.values())} of fewer than 5 runs")
    found = differences(lines)
    for kernel in HEADINGS:
        of_kernel = [value for key, value in found.items() if key[0] == kernel]
        above, below = sum(v > NEAR for v in of_kernel), sum(v < -NEAR for v in of_kernel)
        within = len(of_kernel) - above - below
        print(f"{kernel}: {len(of_kernel)} cells, {within} within {NEAR}, {above} above, {below} below")
    for kernel, method in product(HEADINGS, sorted({key[2] for key in found})):
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
