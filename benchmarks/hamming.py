"""Exact Hamming search: HammingIndex beside faiss, on one thread, interleaved in one run.

    python benchmarks/hamming.py [--parts batch single long multi] [--codes 1000000] [--repeats 7]

batch    top 10 of random 256-bit codes, 200 queries in a call
single   the same, one query in a call, twenty calls after another before the other side has its turn; "apart": they
         take turns after every call, so that each finds the cache full of the other's codes. Beside them a plain read
         of as many bytes
long     top 10 of 20,000 codes of 8,192 bits, 50 queries in a call
multi    64-bit codes, near duplicates as queries: multi-index hashing beside the scan and faiss's IndexBinaryMultiHash
         (which is not exact: its share of right distances is printed)

Figures are processor milliseconds a query, medians. Distances must equal those of faiss's IndexBinaryFlat. Without
faiss (pip install faiss-cpu) only our own are printed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from _timing import parse, peer, record, sized

from mercer.retrieval import HammingIndex

faiss = peer("faiss")
if faiss is not None:
    faiss.omp_set_num_threads(1)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the processor seconds it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def compare(name: str, codes: np.ndarray, queries: np.ndarray, repeats: int, calls: int, turns: int) -> None:
    """Our scan and faiss's: queries in so many calls; each side makes ``turns`` of them before the other does."""
    ours = HammingIndex(codes)
    memory = ours._blocks.copy().reshape(-1).view(np.int64)
    sides: dict[str, Callable[[np.ndarray], Any]] = {"mercer": lambda block: ours.search(block, k=10)[0]}
    if calls > 1:
        sides["read"] = lambda block: memory.max()
    if faiss is not None:
        theirs = faiss.IndexBinaryFlat(8 * codes.shape[1])
        theirs.add(codes)
        sides["faiss"] = lambda block: theirs.search(block, 10)[0]
    blocks = np.array_split(queries, calls)
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(repeats):
        for start in range(0, calls, turns):
            found = {}
            for side, search in sides.items():
                answers = [timed(lambda search=search, b=b: search(b)) for b in blocks[start : start + turns]]
                times[side] += [1e3 * seconds / len(blocks[0]) for _, seconds in answers]
                found[side] = [answer for answer, _ in answers]
            if faiss is not None and not np.array_equal(found["mercer"], found["faiss"]):
                raise SystemExit("distances differ from those of faiss")
    taken = {side: float(np.median(values)) for side, values in times.items()}
    mine, other = taken["mercer"], taken.get("faiss", np.nan)
    line = f"{name:8} {len(codes):9,} × {8 * codes.shape[1]:5} bits: mercer {mine:8.4f} ms/query"
    if faiss is not None:
        line += f", faiss {other:8.4f}: {other / mine:5.2f}× faster, same distances"
    print(line, flush=True)
    figures = {"ours": mine, "unit": "ms", "sizes": f"{len(codes):,} x {8 * codes.shape[1]} bits"}
    record("scan", name, peer="faiss", theirs=None if faiss is None else other, **figures)
    if calls > 1:
        read = taken["read"]
        rates = f"{memory.nbytes / read / 1e6:.1f} GB/s, the scan {memory.nbytes / mine / 1e6:.1f}"
        bound = f"; faiss takes {other / read:.2f} times as long" if faiss is not None else ""
        print(f"{name:8} a plain read of the codes takes {read:.4f} ms: {rates}{bound}", flush=True)


def multi(n: int, repeats: int, random: np.random.Generator) -> None:
    """Short codes, and queries that are 3 bits away from a code."""
    codes = random.integers(0, 256, (n, 8), dtype=np.uint8)
    queries = codes[:100].copy()
    for row in queries:
        for bit in random.choice(64, 3, replace=False):
            row[bit // 8] ^= np.uint8(1 << (bit % 8))
    scan, tables = HammingIndex(codes), HammingIndex(codes, method="multi-index")
    _, built = timed(lambda: tables.search(queries[:1], k=1))
    results = {"scan": lambda: scan.search(queries, k=1), "multi-index": lambda: tables.search(queries, k=1)}
    if faiss is not None:
        hashed = faiss.IndexBinaryMultiHash(64, 4, 16)
        hashed.nflip = 1
        hashed.add(codes)
        results["faiss MultiHash"] = lambda: hashed.search(queries, 1)
    times: dict[str, list[float]] = {name: [] for name in results}
    found = {}
    for _ in range(repeats):
        for name, call in results.items():
            found[name], seconds = timed(call)
            times[name].append(1e3 * seconds / len(queries))
    for name in results:
        right = float(np.mean(found[name][0] == found["scan"][0]))
        record("multi", f"{n:,} x 64 bits, {name}", ours=float(np.median(times[name])), unit="ms")
        print(f"multi    {n:9,} × 64 bits, k = 1: {name:16} {np.median(times[name]):8.4f} ms/query, right {right:.3f}")
    print(f"         tables built in {built:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["batch", "single", "long", "multi"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parse(parser, codes=2000, repeats=1)
    random = np.random.default_rng(0)
    if {"batch", "single"} & set(options.parts):
        codes = random.integers(0, 256, (options.codes, 32), dtype=np.uint8)
        queries = random.integers(0, 256, (200, 32), dtype=np.uint8)
        if "batch" in options.parts:
            compare("batch", codes, queries, options.repeats, calls=1, turns=1)
        if "single" in options.parts:
            compare("single", codes, queries[:20], options.repeats, calls=20, turns=20)
            compare("apart", codes, queries[:20], options.repeats, calls=20, turns=1)
    if "long" in options.parts:
        codes = random.integers(0, 256, (sized(20_000, 200), 1024), dtype=np.uint8)
        compare("long", codes, random.integers(0, 256, (50, 1024), dtype=np.uint8), options.repeats, calls=1, turns=1)
    if "multi" in options.parts:
        multi(options.codes, options.repeats, random)


if __name__ == "__main__":
    main()
