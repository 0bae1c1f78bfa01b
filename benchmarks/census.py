"""The census study: single incomes from the shares of groups, on Adult with real groups as bags.

    python benchmarks/census.py --parts groups,iid,hierarchical --runs 1 --n_jobs 2

Every run divides the 32,561 people 80/20, makes bags of the training part with their exact shares of incomes above
$50,000, and chooses parameters by `BagCV` on the error of held-out bags. Instance error is that of the other 20 %;
proportion error is the mean error of the shares of bags made of them in the same way. The printed table is of five
runs: ``--runs 5``.

groups: one bag for each value of a column, beside the printed errors and the majority of each bag. iid: bags drawn with
replacement from all training rows. hierarchical: a group for each bag, all equally likely, then rows of it.

The loss of a bag is weighed by C = ratio · C' · (mean number of rows in a bag), where C' is the weight of the hinge
loss of one row. The printed ranges (C' of 0.1 to 10, C of 0.01 to 1) cannot be of this form: with C for a whole bag
below C' for one row, calling every row negative costs less than any margin.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from typing import Any

import numpy as np
from _timing import from_data, parse, record, sized, spread
from sklearn.exceptions import ConvergenceWarning as SolverWarning
from sklearn.model_selection import train_test_split

from mercer.datasets import AdultData, load_adult
from mercer.exceptions import ConvergenceWarning
from mercer.proportions import (
    BagCV,
    Bags,
    IllPosedWarning,
    InverseCalibration,
    MajorityBag,
    MeanMap,
    bag_proportions,
    bag_score,
    make_bags,
)

PRINTED = {  # ∝SVM, baseline: mean and deviation
    "occupation": ((18.19, 0.16), (24.28, 0.28)),
    "race": ((24.02, 0.15), (24.28, 0.40)),
    "education": ((19.61, 0.10), (22.29, 0.55)),
    "relationship": ((18.59, 0.82), (24.19, 0.72)),
    "native-country": ((18.75, 0.25), (24.02, 0.56)),
}
INSTANCE = sized((26.0, 260.0), (26.0,))  # C' times the number of rows
RATIOS = sized((0.1, 1.0, 10.0), (0.1, 1.0))
ROWS, SIZES = sized(((500, 2321, 10_772, 50_000), (10, 100)), ((60,), (10,)))  # of drawn bags


def methods(bags: Bags) -> dict[str, tuple[object, object]]:
    """Learners and what to search; the alternating one where it is installed."""
    found: dict[str, tuple[object, object]] = {
        "mean map": (MeanMap(), {"alpha": [0.01, 0.1, 1.0]}),
        "inverse calibration": (InverseCalibration(), {"C": [0.1, 1.0, 10.0], "epsilon": [0.0, 0.1]}),
    }
    alternating = getattr(importlib.import_module("mercer.proportions"), "AlternatingProportionSVM", None)
    if alternating is not None:
        learner = alternating(
            loss="absolute", init=["inverse-calibration", "mean-map"], max_iter=sized(30, 3), max_swaps=0
        )
        total, size = float(bags.sizes.sum()), float(bags.sizes.mean())
        weights, ratios = (INSTANCE, RATIOS) if len(bags) < 50 else ((*INSTANCE, 2600.0), RATIOS[1:])
        grid = [{"C_instance": [c / total], "C": [ratio * c / total * size for ratio in ratios]} for c in weights]
        found["alternating"] = (learner, grid)
    return found


def searched(learner: object, grid: object, X: object, bags: Bags, seed: int, jobs: int) -> BagCV:
    """The best of the grid, by the error of held-out bags."""
    search = BagCV(
        learner, grid, cv=min(sized(5, 2), len(bags)) if len(bags) < 50 else 3, random_state=seed, n_jobs=jobs
    )
    with warnings.catch_warnings():
        for category in (IllPosedWarning, ConvergenceWarning, SolverWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", message="bags overlap")
        return search.fit(X, bags=bags)


def instance_error(model: object, X: object, y: np.ndarray) -> float:
    return 100.0 * float(np.mean(model.predict(X) != y))  # type: ignore[attr-defined]


def shown(values: list[float]) -> str:
    return f"{np.mean(values):6.2f} ± {np.std(values):4.2f}" if len(values) > 1 else f"{values[0]:6.2f}"


def split(data: AdultData, seed: int) -> tuple[np.ndarray, np.ndarray]:
    train, test = train_test_split(np.arange(sized(len(data), 300)), test_size=0.2, random_state=seed)
    return np.sort(train), np.sort(test)


def groups_part(data: AdultData, runs: int, jobs: int) -> None:
    print("Real groups as bags: instance error %, proportion error of the test part's groups %")
    print(f"{'groups':16} {'bags':>4}  {'method':20} {'instances':>14} {'shares':>14}  {'printed':>14}")
    for name, (alter, base) in list(PRINTED.items())[: sized(None, 1)]:
        errors: dict[str, list[float]] = {}
        shares: dict[str, list[float]] = {}
        for seed in range(runs):
            train, test = split(data, seed)
            group, y = data.groups[name], data.y
            bags = Bags(group[train], bag_proportions(y[train], group[train]))
            held = Bags(group[test], bag_proportions(y[test], group[test]))
            majority = MajorityBag().fit(bags)
            errors.setdefault("majority of the bag", []).append(instance_error(majority, group[test], y[test]))
            guess = bag_proportions(majority.predict(group[test]), held, [0, 1])
            shares.setdefault("majority of the bag", []).append(100 * float(np.abs(guess - held.proportions).mean()))
            for method, (learner, grid) in methods(bags).items():
                model = searched(learner, grid, data.X[train], bags, seed, jobs)
                errors.setdefault(method, []).append(instance_error(model, data.X[test], y[test]))
                shares.setdefault(method, []).append(-100 * bag_score(model, data.X[test], held))
        printed = {"majority of the bag": base, "alternating": alter}
        people: dict[str, Any] = {"bags": len(bags)}
        for method, values in errors.items():
            known = "{:6.2f} ± {:4.2f}".format(*printed[method]) if method in printed else ""
            place = f"{name:16} {len(bags):4}" if method == "majority of the bag" else " " * 21
            people[method] = spread(values, 2) | ({"printed": printed[method][0]} if method in printed else {})
            print(f"{place}  {method:20} {shown(values):>14} {shown(shares[method]):>14}  {known:>14}", flush=True)
        record("errors of people, %", name, values=people)
        record("errors of shares, points", name, values={m: spread(values, 2) for m, values in shares.items()})


def drawn_part(data: AdultData, scheme: str, runs: int, jobs: int) -> None:
    groups = data.groups["occupation"] if scheme == "hierarchical" else None
    title = "Bags of one occupation each, drawn" if scheme == "hierarchical" else "Bags drawn from everybody"
    print(f"{title}: instance error %, proportion error of 200 drawn test bags %")
    print(f"{'rows':>6} {'in a bag':>8}  {'method':20} {'instances':>14} {'shares':>14}")
    for total in ROWS:
        for size in SIZES:
            if total // size < 5:
                continue
            errors: dict[str, list[float]] = {}
            shares: dict[str, list[float]] = {}
            for seed in range(runs):
                train, test = split(data, seed)
                bags = drawn(data, train, scheme, groups, size, total // size, seed)
                held = drawn(data, test, scheme, groups, size, 200, 1000 + seed)
                for method, (learner, grid) in methods(bags).items():
                    part, rows = bags.select(np.arange(len(bags)))
                    model = searched(learner, grid, data.X[train][rows], part, seed, jobs)
                    errors.setdefault(method, []).append(instance_error(model, data.X[test], data.y[test]))
                    shares.setdefault(method, []).append(-100 * bag_score(model, data.X[test], held))
            for method, values in errors.items():
                columns = {"instance error, %": spread(values, 2), "share error, %": spread(shares[method], 2)}
                record(scheme, f"{total:,} rows in bags of {size}, {method}", values=columns)
                print(f"{total:6} {size:8}  {method:20} {shown(values):>14} {shown(shares[method]):>14}", flush=True)


def drawn(
    data: AdultData, rows: np.ndarray, scheme: str, groups: np.ndarray | None, size: int, n_bags: int, seed: int
) -> Bags:
    inside = None if groups is None else groups[rows]
    return make_bags(data.y[rows], size, scheme=scheme, groups=inside, n_bags=n_bags, random_state=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="groups", help="of groups, iid, hierarchical, divided by commas")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--n_jobs", type=int, default=None)
    chosen = parse(parser, parts="groups,iid,hierarchical")
    with from_data("census"):
        run(parser, chosen, load_adult())


def run(parser: argparse.ArgumentParser, chosen: argparse.Namespace, data: AdultData) -> None:
    for part in chosen.parts.split(","):
        begin = time.process_time()
        if part == "groups":
            groups_part(data, chosen.runs, chosen.n_jobs)
        elif part in ("iid", "hierarchical"):
            drawn_part(data, part, chosen.runs, chosen.n_jobs)
        else:
            parser.error(f"--parts: {part!r} is not one of groups, iid, hierarchical")
        print(f"({part}: {time.process_time() - begin:.0f} s of the processor)\n")


if __name__ == "__main__":
    main()
