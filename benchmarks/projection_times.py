"""Time of full, bilinear and circulant projections to packed codes, against d (table 3.2 of the source).

    python benchmarks/projection_times.py [--smallest 10] [--largest 16] [--repeats 3]

k = d bits of vectors of d float32 numbers, one thread, processor milliseconds a vector with packing, medians of runs in
turn. A full projection is measured on at most 1,024 of its d directions and scaled. Ends with an error if the order is
not full > bilinear > circulant from d = 2^12 on; and prints the exponent of d in the time of the circulant.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import exponent, parse, record

from mercer.retrieval import BilinearEmbedding, CirculantEmbedding, SignProjection

PRINTED = {15: (544.0, 2.85, 1.11)}  # ms a vector on one core of 2.9 GHz


def timed(call: Callable[[], Any]) -> float:
    """Processor milliseconds of a call."""
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def times(d: int, repeats: int) -> list[float]:
    """Milliseconds a vector: full, bilinear, circulant."""
    rows = max(8, min(512, (1 << 21) // d))
    X = np.random.default_rng(0).standard_normal((rows, d), dtype=np.float32)
    some = min(d, 1024)
    models = [SignProjection(some), BilinearEmbedding(d), CirculantEmbedding(d)]
    for model in models:
        model.set_params(random_state=0).fit(X[:1]).transform(X[:2])
    found = [[timed(lambda m=model: m.transform(X)) / rows for model in models] for _ in range(repeats)]
    full, bilinear, circulant = np.median(found, axis=0)
    return [full * d / some, bilinear, circulant]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", type=int, default=10)
    parser.add_argument("--largest", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, smallest=4, largest=7, repeats=1)
    logs = range(options.smallest, options.largest + 1)
    found = []
    for log in logs:
        full, bilinear, circulant = times(1 << log, options.repeats)
        found.append(circulant)
        beside = "; printed: full {:g}, bilinear {:g}, circulant {:g}".format(*PRINTED[log]) if log in PRINTED else ""
        for name, theirs in (("full", full), ("bilinear", bilinear)):
            record("times", f"d = 2^{log}, {name}", peer=name, theirs=theirs, ours=circulant, unit="ms")
        line = f"full {full:10.4f}, bilinear {bilinear:8.4f}, circulant {circulant:8.4f} ms/vector"
        ratios = f"{full / circulant:7.1f}× and {bilinear / circulant:5.2f}× the circulant"
        print(f"d = 2^{log}: {line}: {ratios}{beside}", flush=True)
        if log >= 12 and not full > bilinear > circulant:
            raise SystemExit(f"d = 2^{log}: the order is not full > bilinear > circulant")
    if len(found) > 1:
        print(f"time of the circulant ~ d^{exponent([2.0**log for log in logs], found):.3f}")


if __name__ == "__main__":
    main()
