"""Pairwise alignment: cells a second beside Biopython and parasail in one run, and the recovery of planted scores.

Throughput is of one thread, with the same whole-numbered scores for all, after a check that all find the same scores.
The peers differ in kind: Biopython's PairwiseAligner works in doubles, as we do; parasail in vectors of 8 to 16-bit
integers, which cannot hold learned real-valued scores. The ratio is peer time / mercer time: above 1 we are faster.

Recovery: models trained on pairs from a planted model, the rank correlation of their substitution scores with the
planted ones, and the F1 of their alignments on other pairs beside that of the planted scores.

    pip install biopython parasail
    python benchmarks/alignment.py [--repeats 3] [--skip-recovery] [--smoke]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import missing, parse, record, sized
from scipy.stats import spearmanr

from mercer.alignment import Aligner
from mercer.datasets import make_alignments

OPEN, EXTEND = -11, -1


def biopython_side(mode: str, matrix: np.ndarray, alphabet: str) -> dict[str, Callable]:
    from Bio.Align import PairwiseAligner, substitution_matrices

    table = substitution_matrices.Array(alphabet, dims=2)
    table[:, :] = matrix
    aligner = PairwiseAligner(mode=mode, substitution_matrix=table, open_gap_score=OPEN, extend_gap_score=EXTEND)

    def traced(pairs: list) -> list[float]:
        out = []
        for s, t in pairs:
            best = aligner.align(s, t)
            # A local alignment of nothing has no coordinates to ask for.
            out.append(float(best.score))
            if best.score > 0 or mode == "global":
                _ = best[0].coordinates
        return out

    return {"score": lambda pairs: [aligner.score(s, t) for s, t in pairs], "alignment": traced}


def parasail_side(mode: str, matrix: np.ndarray, alphabet: str) -> dict[str, Callable]:
    import parasail

    table = parasail.matrix_create(alphabet, 1, -1)
    for i in range(len(alphabet)):
        for j in range(len(alphabet)):
            table[i, j] = int(matrix[i, j])
    score = parasail.nw_striped_sat if mode == "global" else parasail.sw_striped_sat
    trace = parasail.nw_trace_striped_sat if mode == "global" else parasail.sw_trace_striped_sat

    def traced(pairs: list) -> list[float]:
        out = []
        for s, t in pairs:
            result = trace(s, t, -OPEN, -EXTEND, table)
            _ = result.cigar.seq
            out.append(float(result.score))
        return out

    return {"score": lambda pairs: [score(s, t, -OPEN, -EXTEND, table).score for s, t in pairs], "alignment": traced}


def mercer_side(mode: str, matrix: np.ndarray, alphabet: str) -> dict[str, Callable]:
    aligner = Aligner.from_scores(matrix, OPEN, EXTEND, alphabet, mode=mode, n_jobs=1)
    return {
        "score": lambda pairs: aligner.score_pairs(pairs),
        "alignment": lambda pairs: [found.score for found in aligner.predict(pairs)],
        "log Z": lambda pairs: aligner.log_partition(pairs),
        "match probabilities": lambda pairs: [p.sum() for p in aligner.match_probabilities(pairs)],
        "10 best": lambda pairs: [found[0].score for found in aligner.k_best(pairs, 10)],
    }


def throughput(repeats: int) -> None:
    sides = {"mercer": mercer_side}
    peers = (("Biopython", "biopython", "Bio", biopython_side), ("parasail", "parasail", "parasail", parasail_side))
    for name, package, module, side in peers:
        if not missing(module):
            print(f"{name} {version(package)}")
            sides[name] = side
    shapes = (("500 pairs of about 150", 500, (120, 180)), ("4 pairs of about 2,000", 4, (1900, 2100)))
    for label, n, length in sized(shapes, (("3 pairs of about 20", 3, (15, 25)),)):
        task = make_alignments(n, length=length, random_state=0)
        cells = sum(len(s) * len(t) for s, t in task.pairs)
        matrix = np.round(2 * task.substitution)
        for mode in ("global", "local"):
            print(f"\n{label}, {mode}: {cells / 1e6:.1f} million cells")
            made = {name: side(mode, matrix, task.alphabet) for name, side in sides.items()}
            for what in made["mercer"]:
                asked = {name: verbs[what] for name, verbs in made.items() if what in verbs}
                results = {name: np.asarray(ask(task.pairs), dtype=float) for name, ask in asked.items()}
                for name, found in results.items():
                    if what in ("score", "alignment") and not np.array_equal(found, results["mercer"]):
                        raise SystemExit(f"{name} and mercer disagree about the {what} of a pair")
                seconds: dict[str, list[float]] = {name: [] for name in asked}
                for _ in range(repeats):
                    for name, ask in asked.items():
                        start = time.perf_counter()
                        ask(task.pairs)
                        seconds[name].append(time.perf_counter() - start)
                report(
                    f"{label}, {mode}", what, cells, {name: statistics.median(times) for name, times in seconds.items()}
                )


def report(task: str, what: str, cells: int, seconds: dict[str, float]) -> None:
    parts = [f"{name} {cells / s / 1e6:8.1f} Mcells/s" for name, s in seconds.items()]
    ratios = [f"{name} / mercer {s / seconds['mercer']:.2f}×" for name, s in seconds.items() if name != "mercer"]
    rate = cells / seconds["mercer"] / 1e6
    for name, s in seconds.items():
        if name != "mercer" or len(seconds) == 1:
            theirs = None if name == "mercer" else cells / s / 1e6
            record("speed", f"{task}, {what}", peer=name, theirs=theirs, ours=rate, unit="Mcells/s")
    print(f"  {what:20s} {'   '.join(parts)}   {'   '.join(ratios)}")


def recovery() -> None:
    n_test, sizes = sized((200, (50, 200, 1000)), (10, (10,)))
    print(f"\nRecovery of planted scores: 20 letters, pairs of 40-60, {n_test} test pairs")
    print("training pairs            loss  solver      C  seconds rank corr.      F1  planted")
    task = make_alignments(sizes[-1] + n_test, length=(40, 60), random_state=0)
    test = slice(sizes[-1], sizes[-1] + n_test)
    planted = Aligner.from_scores(task.substitution, task.gap_open, task.gap_extend, task.alphabet)
    best = planted.score(task.pairs[test], task.alignments[test])
    upper = np.triu_indices(20)
    target = planted.normalized_scores()[0][upper]
    for n in sizes:
        for loss, solver, C in (("hinge", "bcfw", 0.3), ("log", "lbfgs", 1.0)):
            start = time.perf_counter()
            model = Aligner(loss=loss, solver=solver, C=C, alphabet=task.alphabet, tol=1e-2, random_state=0)
            model.fit(task.pairs[:n], task.alignments[:n])
            seconds = time.perf_counter() - start
            rho = spearmanr(model.normalized_scores()[0][upper], target)[0]
            f1 = model.score(task.pairs[test], task.alignments[test])
            columns = {"rank correlation": round(float(rho), 3), "F1": round(f1, 4), "planted": round(best, 4)}
            record("recovery", f"{n} pairs, {loss}, {solver}", values=columns)
            print(f"{n:14d} {loss:>15s} {solver:>7s} {C:6.2f} {seconds:8.1f} {rho:10.3f} {f1:7.4f} {best:8.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-recovery", action="store_true")
    options = parse(parser, repeats=1)
    warnings.simplefilter("ignore")
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, 1 thread")
    throughput(options.repeats)
    if not options.skip_recovery:
        recovery()


if __name__ == "__main__":
    main()
