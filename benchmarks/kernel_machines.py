"""Support vector machines on a Gram matrix beside libsvm (through scikit-learn), at the same tolerance.

    python benchmarks/kernel_machines.py [--sizes 1500 3000 6000 13000] [--repeats 3] [--machines classes nu …]

Both get the same Gaussian Gram matrix, which is not timed, and stop at the same violation of the optimality conditions.
The data are drawn: two classes that overlap (``easy`` less, ``hard`` more), ten classes, a noisy function for
regression, clouds for one class. Objectives are primal and computed here, from coefficients and offsets alone: what is
printed is (ours − libsvm's) / libsvm's, so that below 0 is better.

    classes      ½‖w‖² + C Σ max(0, 1 − y_i f_i)
    nu           ½‖w‖² + Σ max(0, ρ − y_i f_i) − n ν ρ         the least over ρ, with w and b times ρ
    regression   ½‖w‖² + C Σ max(0, |y_i − f_i| − ε)
    one class    ½‖w‖² + Σ max(0, ρ − f_i) − n ν ρ             the least over ρ
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import measured, parse, record
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from mercer.kernel_methods import KernelNuSVC, KernelOneClass, KernelSVC, KernelSVR
from mercer.kernels import Gaussian

MACHINES = ("classes", "many classes", "nu", "regression", "one class")
TOL = 1e-3
NU, EPSILON, SLACK = 0.3, 0.1, 3.0


# ------------------------------------------------------------------------------------------------------------ data


def two_classes(n: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of three lumps each, whose centres are about so far apart."""
    rng = np.random.default_rng(n)
    centres = rng.normal(size=(2, 3, 10)) * distance
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 10)) + centres[y, rng.integers(0, 3, n)], y


def many_classes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten clouds."""
    rng = np.random.default_rng(n)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, 10)) + 1.5 * rng.normal(size=(10, 10))[y], y


def noisy_function(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of five numbers, with noise."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def gram(X: np.ndarray) -> np.ndarray:
    """Gaussian, with scikit-learn's default width."""
    return Gaussian(1.0 / (X.shape[1] * X.var()))(X)


# ------------------------------------------------------------------------------------------------------ objectives


def dense(model: Any, n: int) -> np.ndarray:
    """The coefficients of one machine, for all rows."""
    s = np.zeros(n)
    s[model.support_] = np.asarray(model.dual_coef_)[0]
    return s


def of_classes(K: np.ndarray, y: np.ndarray, s: np.ndarray, b: float, C: float) -> float:
    """The objective of the machine for two classes, -1 and 1."""
    f = K @ s
    return 0.5 * s @ f + C * np.maximum(0.0, 1.0 - y * (f + b)).sum()


def lowest_over_rho(half: float, margins: np.ndarray, nu: float) -> float:
    """The least of ``half`` + Σ max(0, ρ − m_i) − n ν ρ: at ρ the ν-quantile of the margins, or next to it."""
    n, ordered = len(margins), np.sort(margins)
    near = ordered[max(0, int(nu * n) - 1) : int(nu * n) + 2]
    return min(half + np.maximum(0.0, rho - margins).sum() - n * nu * rho for rho in near)


def of_nu(K: np.ndarray, y: np.ndarray, s: np.ndarray, b: float) -> float:
    """The objective of ν machines at the best multiple of a solution.

    ½ r² A + min_ρ Σ max(0, ρ − r m_i) − n ν ρ = ½ r² A + r L is least at r = −L / A, where it is −L² / (2 A).
    """
    f = K @ s
    return -(lowest_over_rho(0.0, y * (f + b), NU) ** 2) / (2 * s @ f)


def of_pairs(K: np.ndarray, y: np.ndarray, ours: KernelSVC) -> float:
    """The summed objectives of all pairs of classes."""
    total = 0.0
    for coef, b, (first, second) in zip(
        ours.dual_coef_, ours.intercept_, combinations(range(len(ours.classes_)), 2), strict=True
    ):
        members = np.flatnonzero((y == first) | (y == second))
        s = np.zeros(len(y))
        s[ours.support_] = coef
        total += of_classes(
            K[np.ix_(members, members)], np.where(y[members] == second, 1.0, -1.0), s[members], b, SLACK
        )
    return total


def of_libsvm_pairs(K: np.ndarray, y: np.ndarray, theirs: SVC) -> float:
    """The same of scikit-learn's layout: row j of a class holds its coefficients against the j-th other class."""
    ends = np.cumsum(theirs.n_support_)
    owned = [theirs.support_[end - size : end] for end, size in zip(ends, theirs.n_support_, strict=True)]
    places = [slice(end - size, end) for end, size in zip(ends, theirs.n_support_, strict=True)]
    total = 0.0
    for b, (i, j) in zip(theirs.intercept_, combinations(range(len(theirs.classes_)), 2), strict=True):
        s = np.zeros(len(y))
        s[owned[i]] = theirs.dual_coef_[j - 1, places[i]]
        s[owned[j]] = theirs.dual_coef_[i, places[j]]
        members = np.flatnonzero((y == i) | (y == j))
        # libsvm's outputs are positive for the first class of a pair.
        total += of_classes(K[np.ix_(members, members)], np.where(y[members] == i, 1.0, -1.0), s[members], b, SLACK)
    return total


def of_regression(K: np.ndarray, y: np.ndarray, s: np.ndarray, b: float) -> float:
    """The objective of ε-regression."""
    f = K @ s
    return 0.5 * s @ f + SLACK * np.maximum(0.0, np.abs(y - f - b) - EPSILON).sum()


def of_one_class(K: np.ndarray, s: np.ndarray) -> float:
    """The objective of one class, at the best ρ."""
    f = K @ s
    return lowest_over_rho(0.5 * s @ f, f, NU)


# --------------------------------------------------------------------------------------------------------- machines

Task = tuple[str, Callable[[], Any], Callable[[], Any], Callable[[Any], float], Callable[[Any], float]]


def tasks(machine: str, n: int) -> list[Task]:
    """(name, our fit, libsvm's fit, the objective of ours, that of libsvm's)."""
    if machine == "classes":
        return [classes_task(n, name, distance, C) for name, distance, C in (("easy", 0.8, 3.0), ("hard", 0.5, 30.0))]
    if machine == "many classes":
        X, y = many_classes(n)
        K = gram(X)
        return [
            (
                "ten classes",
                lambda: KernelSVC("precomputed", C=SLACK, tol=TOL).fit(K, y),
                lambda: SVC(kernel="precomputed", C=SLACK, tol=TOL, cache_size=1000).fit(K, y),
                lambda model: of_pairs(K, y, model),
                lambda model: of_libsvm_pairs(K, y, model),
            )
        ]
    if machine == "nu":
        X, y = two_classes(n, 0.5)
        K, signs = gram(X), np.where(y == 1, 1.0, -1.0)
        value = lambda model: of_nu(K, signs, dense(model, n), float(model.intercept_[0]))  # noqa: E731
        return [
            (
                f"ν = {NU}",
                lambda: KernelNuSVC("precomputed", NU, tol=TOL).fit(K, y),
                lambda: NuSVC(kernel="precomputed", nu=NU, tol=TOL, cache_size=1000).fit(K, y),
                value,
                value,
            )
        ]
    if machine == "regression":
        X, y = noisy_function(n)
        K = gram(X)
        value = lambda model: of_regression(K, y, dense(model, n), float(model.intercept_[0]))  # noqa: E731
        return [
            (
                f"ε = {EPSILON}",
                lambda: KernelSVR("precomputed", SLACK, EPSILON, tol=TOL).fit(K, y),
                lambda: SVR(kernel="precomputed", C=SLACK, epsilon=EPSILON, tol=TOL, cache_size=1000).fit(K, y),
                value,
                value,
            )
        ]
    X, _ = two_classes(n, 0.5)
    K = gram(X)
    value = lambda model: of_one_class(K, dense(model, n))  # noqa: E731
    return [
        (
            f"ν = {NU}",
            lambda: KernelOneClass("precomputed", NU, tol=TOL).fit(K),
            lambda: OneClassSVM(kernel="precomputed", nu=NU, tol=TOL, cache_size=1000).fit(K),
            value,
            value,
        )
    ]


def classes_task(n: int, name: str, distance: float, C: float) -> Task:
    """Two classes."""
    X, y = two_classes(n, distance)
    K, signs = gram(X), np.where(y == 1, 1.0, -1.0)

    def value(model: Any) -> float:
        return of_classes(K, signs, dense(model, n), float(model.intercept_[0]), C)

    return (
        f"{name}, C = {C:g}",
        lambda: KernelSVC("precomputed", C=C, tol=TOL).fit(K, y),
        lambda: SVC(kernel="precomputed", C=C, tol=TOL, cache_size=1000).fit(K, y),
        value,
        value,
    )


def main() -> None:
    """Print a line for each machine and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1500, 3000, 6000, 13000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    options = parse(parser, sizes=[120], repeats=1)
    warnings.simplefilter("ignore")
    print("| machine | task | rows | libsvm s | ours s | ratio | excess | support, libsvm | support |")
    print("|---|---|---|---|---|---|---|---|---|")
    for machine in options.machines:
        for n in options.sizes:
            for name, ours, theirs, value, their_value in tasks(machine, n):
                found = measured(1 if n > 10000 else options.repeats, {"libsvm": theirs, "ours": ours})
                (their_seconds, their_model), (seconds, model) = found["libsvm"], found["ours"]
                theirs_reached = their_value(their_model)
                excess = (value(model) - theirs_reached) / abs(theirs_reached)
                sides = {
                    "peer": "scikit-learn (libsvm)",
                    "theirs": their_seconds,
                    "ours": seconds,
                    "note": f"excess {excess:+.1e}",
                }
                record("speed", f"{machine}, {name}, {n:,} rows", **sides)
                times = f"{their_seconds:.3g} | {seconds:.3g} | {their_seconds / seconds:.2f}x"
                support = f"{len(their_model.support_)} | {len(model.support_)}"
                print(f"| {machine} | {name} | {n:,} | {times} | {excess:+.1e} | {support} |", flush=True)


if __name__ == "__main__":
    main()
