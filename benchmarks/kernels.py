"""Speed of kernels beside other packages, in one table: Gram matrices of vectors, strings, trees and graphs, and tests.

    MERCER_DATA=... python benchmarks/kernels.py [--parts all] [--repeats 3] [--quick] [--smoke]

Each part is a script of its own, benchmarks/kernels_<part>.py, which measures more than this table shows (other kernels
and sizes, accuracy). Peers and our code take turns in one process on one thread (strkernel and strkernels run in a
process apart); seconds are of the processor, medians. Where a peer is not installed, the row says so and has no ratio.
--quick takes fewer objects and one round: about two minutes in all.
"""

from __future__ import annotations

import argparse
import os
import warnings
from importlib import import_module

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from _timing import missing, parse, table

PARTS = ("vectors", "strings", "trees", "graphs", "tests", "sets")
PEERS = ("strkernel", "strkernels", "grakel", "hyppo", "hmmlearn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "all"], default=["all"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer objects, one round")
    arguments = parse(parser, quick=True)
    warnings.simplefilter("ignore")  # the peers'
    parts = PARTS if "all" in arguments.parts else arguments.parts
    repeats = 1 if arguments.quick else arguments.repeats
    missing(*PEERS)
    families = [import_module(f"kernels_{part}") for part in parts]
    table(row for family in families for row in family.rows(arguments.quick, repeats))


if __name__ == "__main__":
    main()
