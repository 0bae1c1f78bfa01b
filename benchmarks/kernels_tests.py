"""Kernel tests of independence and of two samples beside hyppo 0.5.2, and a million objects by features.

    python benchmarks/kernels_tests.py [--parts hsic mmd features] [--repeats 3]

hsic      n = 2,000, one and ten dimensions: the permutation test with the same number of permutations for both, ours
          with 1,000 too (hyppo needs minutes for them), and the approximation without permutations.
mmd       2,000 objects against 2,000, likewise.
features  10⁶ objects: HSIC with a gamma distribution and with permutations, MMD with 1,000 permutations.

Both sides have a Gaussian kernel with the same γ, in one run, repeats interleaved; seconds are of the processor, one
thread, medians, after one call of hyppo on small data that compiles it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
from _timing import Row, missing, parse, record, sized
from _timing import measured as in_turn

from mercer.kernel_methods import HSIC, MMD
from mercer.kernels import Gaussian


def warm_up() -> tuple[Any, Any] | None:
    """hyppo's two tests, compiled; None where it is not installed."""
    if missing("hyppo"):
        return None
    from hyppo.independence import Hsic
    from hyppo.ksample import MMD as Mmd

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50, 1))
    for test in (Hsic(), Mmd()):
        for auto in (False, True):
            test.test(x, y, reps=3, auto=auto)
    return Hsic, Mmd


def report(title: str, measured: dict[str, tuple[float, Any]], pairs: list[tuple[str, str, float]]) -> None:
    """Seconds, and ratios of peers to ours; a peer's seconds are multiplied by ``times`` where it did less."""
    print(title)
    for name, (spent, _) in measured.items():
        print(f"  {name:<46}{spent:9.3f} s")
        if "hyppo" not in name:
            record("own", f"{title}, {name}", ours=spent)
    for peer, ours, times in pairs:
        if peer not in measured:
            continue
        scale = f"{times:.0f} times " if times > 1 else ""
        if times == 1:
            record("tests", f"{title}, {ours}", peer=peer, theirs=measured[peer][0], ours=measured[ours][0])
        print(f"  {scale}{peer} / {ours}: {times * measured[peer][0] / measured[ours][0]:.1f}x")


def independence(repeats: int) -> None:
    """HSIC, n = 2,000."""
    hyppo, n, many = warm_up(), *sized((2000, 1000), (60, 20))
    for d in (1, 10):
        rng = np.random.default_rng(d)
        x, y = rng.normal(size=(2, n, d))
        gamma = 0.5 / d
        k = Gaussian(gamma)
        ours = HSIC(k, k, normalized=True)
        reps = 10
        calls = {
            f"HSIC, {reps} permutations": lambda: ours.test(x, y, reps, random_state=0),  # noqa: B023
            f"HSIC, {many} permutations": lambda: ours.test(x, y, many, random_state=0),  # noqa: B023
            "HSIC, gamma": lambda: ours.test(x, y, null="gamma"),  # noqa: B023
        }
        if hyppo is not None:
            Hsic = partial(hyppo[0], gamma=gamma)  # a new one for each test: they keep the way of the last
            calls |= {
                f"hyppo Hsic, {reps} permutations": lambda: Hsic().test(x, y, reps=reps, auto=False),  # noqa: B023
                "hyppo Hsic, approximation": lambda: Hsic().test(x, y),  # noqa: B023
            }
        measured = in_turn(repeats, calls)
        report(
            f"HSIC, n = {n}, {d} dimensions",
            measured,
            [
                (f"hyppo Hsic, {reps} permutations", f"HSIC, {reps} permutations", 1),
                (f"hyppo Hsic, {reps} permutations", f"HSIC, {many} permutations", many / reps),
                ("hyppo Hsic, approximation", "HSIC, gamma", 1),
            ],
        )
        if hyppo is None:
            continue
        theirs, own = measured["hyppo Hsic, approximation"][1], measured["HSIC, gamma"][1]
        print(f"  statistics {theirs[0]:.10f} and {own.statistic:.10f}, p {theirs[1]:.3f} and {own.p_value:.3f}")


def two_samples(repeats: int) -> None:
    """MMD, 2,000 against 2,000."""
    hyppo, n, many = warm_up(), *sized((2000, 1000), (60, 20))
    for d in (1, 10):
        rng = np.random.default_rng(d)
        x, y = rng.normal(size=(2, n, d))
        gamma = 0.5 / d
        ours = MMD(Gaussian(gamma))
        reps = 3
        calls = {
            f"MMD, {reps} permutations": lambda: ours.test(x, y, reps, random_state=0),  # noqa: B023
            f"MMD, {many} permutations": lambda: ours.test(x, y, many, random_state=0),  # noqa: B023
            "MMD, gamma": lambda: ours.test(x, y, null="gamma"),  # noqa: B023
        }
        if hyppo is not None:
            Mmd = partial(hyppo[1], gamma=gamma)
            calls |= {
                f"hyppo MMD, {reps} permutations": lambda: Mmd().test(x, y, reps=reps, auto=False),  # noqa: B023
                "hyppo MMD, approximation": lambda: Mmd().test(x, y),  # noqa: B023
            }
        measured = in_turn(repeats, calls)
        report(
            f"MMD, {n} and {n} objects, {d} dimensions",
            measured,
            [
                (f"hyppo MMD, {reps} permutations", f"MMD, {reps} permutations", 1),
                ("hyppo MMD, approximation", "MMD, gamma", 1),
            ],
        )
        if hyppo is None:
            continue
        theirs, own = measured["hyppo MMD, approximation"][1], measured["MMD, gamma"][1]
        print(f"  p {theirs[1]:.3f} and {own.p_value:.3f}")


def million(repeats: int) -> None:
    """10⁶ objects by features."""
    rng = np.random.default_rng(0)
    n, many = sized((10**6, 1000), (1000, 20))
    x = rng.normal(size=(n, 2)).astype(np.float32)
    weak = (0.01 * x**2 + rng.normal(size=(n, 2))).astype(np.float32)
    other = rng.normal(size=(n, 2)).astype(np.float32)
    k = Gaussian(0.25)
    hsic = HSIC(k, k, method="features", n_components=100)
    mmd = MMD(k, method="features", n_components=100)
    few = HSIC(k, k, method="features", n_components=20)
    measured = in_turn(
        repeats,
        {
            "HSIC gamma, independent": lambda: hsic.test(x, other, null="gamma", random_state=0),
            "HSIC gamma, y = 0.01 x² + noise": lambda: hsic.test(x, weak, null="gamma", random_state=0),
            "HSIC 20 features, 50 permutations": lambda: few.test(x, weak, 50, random_state=0),
            f"MMD {many} permutations, equal": lambda: mmd.test(x, other, many, random_state=0),
            f"MMD {many} permutations, y = 0.01 x² + noise": lambda: mmd.test(x, weak, many, random_state=0),
        },
    )
    report(f"{n:,} objects of 2 dimensions (each side), 100 features", measured, [])
    for name, (_, result) in measured.items():
        print(f"  {name:<46}p {result.p_value:.4f}")


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py."""
    hyppo = warm_up() or (None, None)
    d, reps = 10, 3 if quick else 10
    n, permutations = sized((2000, 1000), (60, 20))
    x, y = np.random.default_rng(d).normal(size=(2, n, d))
    k = Gaussian(0.5 / d)
    pairs = {"HSIC": (hyppo[0], HSIC(k, k, normalized=True)), "MMD": (hyppo[1], MMD(k))}
    for name, (theirs, test) in pairs.items():
        calls = {
            "equal": lambda test=test: test.test(x, y, reps, random_state=0),
            "many": lambda test=test: test.test(x, y, permutations, random_state=0),
        }
        if theirs is not None:
            calls["hyppo"] = lambda theirs=theirs: theirs(gamma=0.5 / d).test(x, y, reps=reps, auto=False)
        took = in_turn(1 if quick else repeats, calls)
        slow, fast, many = (took[key][0] if key in took else np.nan for key in ("hyppo", "equal", "many"))
        yield Row(f"{name}, n = {n}, {reps} permutations", "hyppo", slow, fast, "≥ 3x", 3.0)
        scaled = slow * (permutations + 1) / (reps + 1)  # the statistic itself costs as much as one permutation
        yield Row(f"{name}, n = {n}, {permutations} permutations", "hyppo, scaled up", scaled, many, "≥ 3x", 3.0)
    n = sized(10**6, 1000)
    x = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)
    k = Gaussian(0.25)
    hsic, mmd = HSIC(k, k, method="features", n_components=100), MMD(k, method="features", n_components=100)
    calls = {
        f"HSIC, n = {n:.0e}, 100 features": lambda: hsic.test(x, y, null="gamma", random_state=0),
        f"MMD, n = {n:.0e}, 100 features, 1000 permutations": lambda: mmd.test(x, y, 1000, random_state=0),
    }
    for name, (took, _) in in_turn(1, calls).items():
        yield Row(name, "", np.nan, took, "seconds", reached=took < 60)


PARTS = {"hsic": independence, "mmd": two_samples, "features": million}


def main() -> None:
    """Print the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parse(parser, repeats=1)
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # hyppo's, about few permutations
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
