"""Hashing maps: text, strings and records to sparse rows, beside scikit-learn, one thread each, in one run.

    python benchmarks/hashing.py [--parts words chars bits records] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable


def interleaved(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, run in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for kept, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


# ------------------------------------------------------------------------------------------------ text


# ------------------------------------------------------------------------------------------------ records


def records(repeats: int) -> None:
    """A million rows of eight categories, from columns and from dicts, beside FeatureHasher on dicts.

    Both sides begin with their input in memory and end with a CSR matrix of 2^20 columns, sorted, without duplicates.
    Making the dicts, the arrays and the Arrow tables is not counted on either side; hashing the categories of a
    dictionary is.
    """
    import numpy as np
    import pyarrow as pa
    from sklearn.feature_extraction import FeatureHasher

    from mercer.maps import RecordHasher

    rows, sizes = 1_000_000, [5, 50, 500, 5000, 100, 1000, 20, 50_000]
    random = np.random.default_rng(0)
    codes = {f"field{k}": random.integers(0, size, rows, dtype=np.int32) for k, size in enumerate(sizes)}
    values = {name: [f"value{v}" for v in range(size)] for name, size in zip(codes, sizes, strict=True)}
    strings = {name: np.array(values[name])[code] for name, code in codes.items()}
    lists = {name: column.tolist() for name, column in strings.items()}
    plain = pa.table({name: pa.array(column) for name, column in lists.items()})
    dictionary = pa.table({name: pa.DictionaryArray.from_arrays(codes[name], values[name]) for name in codes})
    dicts = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    hasher, numbers = RecordHasher(), RecordHasher(numeric="category")
    crossed = RecordHasher(interactions=[("field1", "field3"), ("field2", "field6")])
    ours: dict[str, Callable[[], object]] = {
        "Arrow dictionaries": lambda: hasher.transform(dictionary),
        "Arrow strings": lambda: hasher.transform(plain),
        "NumPy strings": lambda: hasher.transform(strings),
        "NumPy integers, as categories": lambda: numbers.transform(codes),
        "lists of str": lambda: hasher.transform(lists),
        "dicts": lambda: hasher.transform(dicts),
        "Arrow dictionaries, with two crosses": lambda: crossed.transform(dictionary),
    }
    peer = FeatureHasher(2**20)
    times = interleaved(repeats, lambda: peer.transform(dicts), *ours.values())
    print(f"records: {rows:,} rows of {len(sizes)} categories → CSR, one thread, medians of {repeats}")
    print(f"  {'FeatureHasher on dicts':56} {times[0]:8.3f} s")
    for name, seconds in zip(ours, times[1:], strict=True):
        print(f"  {'RecordHasher from ' + name:56} {seconds:8.3f} s {times[0] / seconds:6.1f}x")
    flat = interleaved(repeats, *(lambda b=b: RecordHasher(b).transform(dictionary) for b in (10, 14, 18, 20, 24)))
    print("  by n_bits 10, 14, 18, 20, 24:  " + "  ".join(f"{seconds:.3f} s" for seconds in flat))


PARTS: dict[str, Callable[[int], None]] = {"records": records}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
