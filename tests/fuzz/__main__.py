"""``python -m fuzz --seconds 60``: replays the corpus, then fuzzes every target; new findings go to the corpus."""

from __future__ import annotations

import argparse
import os
import sys
import time

# Workers are forked, and a pool of threads does not survive that.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from fuzz.engine import Report, fuzz, replay
from fuzz.entries import entry_points
from fuzz.targets import TARGETS


def main() -> int:
    """Fuzz, print figures, and return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time of all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another seed draws other cases")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="one of the targets (default: all)")
    parser.add_argument("--only", help="one entry point of the core, one kind of model file, one reader")
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, default=True, help="add findings to the corpus")
    options = parser.parse_args()
    chosen = options.target or sorted(TARGETS)
    failed = 0
    print(f"seed {options.seed}")
    for name in chosen:
        target = TARGETS[name](options.only)
        if name == "core":
            missing = target.unreached()
            print(f"core: {len(entry_points()) - len(missing)} of {len(entry_points())} entry points have seeds")
        for finding in replay(target):
            failed += 1
            print(f"  corpus {finding.subject}: {finding.why}")
        report: Report = fuzz(target, options.seed, options.seconds / len(chosen), workers=options.workers)
        failed += len(report.findings)
        for finding in report.findings if options.keep else []:
            print(f"  kept as {finding.save().name}")
        print(report)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
