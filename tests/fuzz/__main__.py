"""``python -m fuzz --seconds 60``: replays the corpus, then fuzzes every target; new findings go to the corpus."""

from __future__ import annotations

import argparse
import os
import sys
import time

# Workers are forked, and a pool of threads does not survive that.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from fuzz.engine import Target, fuzz, replay  # noqa: E402
from fuzz.entries import entry_points  # noqa: E402
from fuzz.targets import SHARES, TARGETS  # noqa: E402


def main() -> int:
    """Fuzz, print figures, and return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time of all targets together")
    parser.add_argument("--cases", type=float, default=1e18, help="at most so many cases of all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another seed draws other cases")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="one of the targets (default: all)")
    parser.add_argument("--only", help="one entry point of the core, one kind of model file, one reader")
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, default=True, help="keep findings")
    options = parser.parse_args()
    chosen = options.target or sorted(TARGETS)
    total = sum(SHARES[name] for name in chosen)
    failed = 0
    print(f"seed {options.seed}")
    for name in chosen:
        target = TARGETS[name](options.only)
        target.load()
        failed += _unreached(target)
        for finding in replay(target):
            failed += 1
            print(f"  corpus {finding.subject}: {finding.why}")
        share = SHARES[name] / total
        report = fuzz(
            target,
            options.seed,
            share * options.seconds,
            workers=options.workers,
            most_cases=int(share * options.cases),
        )
        failed += len(report.findings)
        for finding in report.findings if options.keep else []:
            print(f"  kept as {finding.save().name}")
        print(report, flush=True)
    return 1 if failed else 0


def _unreached(target: Target) -> int:
    missing = target.unreached()
    if missing:
        print(f"  {target.name}: no seed for {', '.join(missing)}")
    if target.name == "core":
        print(f"core: {len(entry_points()) - len(missing)} of {len(entry_points())} entry points reached")
    return len(missing)


if __name__ == "__main__":
    sys.exit(main())
