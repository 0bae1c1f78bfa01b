"""Floors: what a task takes at least on this machine, by the numbers that must be read or multiplied, beside ours.

    python benchmarks/floors.py [--parts floors threads] [--repeats 5]

floors   Seconds of the processor, one thread. The floor is measured in the same run:
         logistic   passes of the fit times X v and Xᵀ s by BLAS, which read every number once each
         hinge      the same for the visits of the fit: scores of all rows and their sum by BLAS
         Gram       half of n² d multiplications at the rate of BLAS's largest product, and as many exp
         strings    the hash of every feature string, by Python's own function in a loop compiled in Python
         import     NumPy, SciPy and scikit-learn alone; memory is that of the process
threads  Seconds by the clock with one and with two threads.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import chain

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import from_data, interleaved, parse, record, sized
from sklearn.datasets import make_classification

from mercer.classification import LinearClassifier
from mercer.data import FeatureIndex, Template
from mercer.datasets import load_conll2000
from mercer.kernels import Gaussian
from mercer.tagging import Tagger


def say(name: str, least: float, ours: float, unit: str = "s", note: str = "") -> None:
    values = {f"floor, {unit}": least, f"ours, {unit}": ours, "ours / floor": ours / least}
    print(f"{name:48}{least:10.4f} {unit} {ours:10.4f} {unit} {ours / least:7.2f}  {note}", flush=True)
    record("floors", name, values={key: float(f"{value:.3g}") for key, value in values.items()}, note=note)


def linear(repeats: int) -> None:
    n = sized(100_000, 500)
    X, y = make_classification(n, 20, random_state=0)
    v, s = np.ones(20), np.ones(n)
    fitted: dict[str, LinearClassifier] = {}

    def fit(loss: str, tol: float) -> None:
        fitted[loss] = LinearClassifier(loss, C=0.5, tol=tol, random_state=0).fit(X, y)

    def both() -> None:
        X @ v
        s @ X

    once, log, hinge = interleaved(repeats, both, partial(fit, "log", 1e-4), partial(fit, "hinge", 1e-3))
    passes = fitted["log"].history_["passes"][-1]
    say(f"logistic, {n:,} x 20", passes * once, log, note=f"{passes:.0f} passes")
    passes = fitted["hinge"].history_["passes"][-1]
    say(f"hinge, {n:,} x 20", passes * once, hinge, note=f"at most {passes:.0f} visits of each row")


def gram(repeats: int) -> None:
    n, size = sized(4000, 100), sized(1500, 50)
    A = np.random.default_rng(0).normal(size=(size, size))
    near, room = np.full((n, n // 2), -1.0), np.empty((n, n // 2))
    for d in (100, 784):
        X = np.random.default_rng(d).normal(size=(n, d))
        product, exp, ours = interleaved(
            repeats,
            lambda: A @ A,
            lambda: np.exp(near, out=room),
            lambda: Gaussian(0.5 / d)(X),  # noqa: B023
        )
        say(f"Gaussian Gram, {n:,} x {n:,}, d = {d}, float64", product * n * n * d / 2 / size**3 + exp, ours)


def read() -> tuple[list, list]:
    sentences = load_conll2000("train")[: sized(2000, 20)]
    template = Template.load("words+pos")
    return [template.expand(s)[0] for s in sentences], [[token[-1] for token in s] for s in sentences]


def strings(repeats: int) -> None:
    X, y = read()
    tagger = Tagger(C=0.5, max_iter=3).fit(X[: len(X) // 2], y[: len(X) // 2])
    encoded = tagger.index_.encode(X)
    tokens = list(chain.from_iterable(X))

    def hashes() -> None:
        for token in tokens:
            list(map(hash, token))

    least, ours, rest = interleaved(repeats, hashes, lambda: tagger.predict(X), lambda: tagger.predict(encoded))
    say(f"tagging {len(X):,} sentences of lists of strings", least, ours, note=f"decoding alone {rest:.3g} s")


def imports(repeats: int) -> None:
    after = """
import re, time
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(peak, time.process_time())"""

    def memory_and_seconds(code: str) -> tuple[float, float]:
        found = [
            subprocess.run([sys.executable, "-c", code + after], capture_output=True, text=True, check=True).stdout
            for _ in range(repeats)
        ]
        kilobytes, seconds = np.median([[float(x) for x in line.split()] for line in found], axis=0)
        return kilobytes / 1024, seconds

    peers = memory_and_seconds("import numpy, scipy.sparse, scipy.linalg, sklearn.base, sklearn.utils.validation")
    for code in ("import mercer.tagging", "import mercer.proportions", "from mercer.tagging import Tagger"):
        ours = memory_and_seconds(code)
        say(f"{code}, time", peers[1], ours[1])
        say(f"{code}, memory", peers[0], ours[0], "MB")


def floors(repeats: int) -> None:
    print(f"{'':48}{'floor':>12} {'ours':>12}")
    for part in (linear, gram, strings, imports):
        with from_data(part.__name__):
            part(repeats)


def threads(repeats: int) -> None:
    """One and two threads, by the clock."""
    n = sized(4000, 100)
    X = np.random.default_rng(0).normal(size=(n, 100))
    wide, labels = make_classification(sized(20_000, 200), 300, random_state=0)
    tasks: dict[str, Callable[[int], object]] = {
        "Gaussian Gram, d = 100": lambda jobs: Gaussian(0.005)(X, n_jobs=jobs),
        "hinge, 20,000 x 300": lambda jobs: LinearClassifier("hinge", C=0.01, tol=1e-2, n_jobs=jobs).fit(wide, labels),
    }
    with from_data("sentences"):
        tokens, y = read()
        index = FeatureIndex()
        encoded = index.learn(tokens)
        tagger = Tagger(C=0.5, max_iter=3).fit(encoded, y)

        def asked(method: str, jobs: int) -> object:
            return getattr(tagger.set_params(n_jobs=jobs), method)(encoded)

        tasks |= {
            "chain CRF, ten iterations": lambda jobs: Tagger(C=0.5, max_iter=10, tol=0.0, n_jobs=jobs).fit(encoded, y),
            "tagging, sequences that are encoded": partial(asked, "predict"),
            "marginals, sequences that are encoded": partial(asked, "predict_marginals"),
        }
    for name, task in tasks.items():
        one, two = interleaved(repeats, partial(task, 1), partial(task, 2), clock=time.perf_counter)
        print(f"{name:48}{one:10.4f} s {two:10.4f} s {one / two:7.2f}", flush=True)
        record("threads", name, theirs=one, ours=two, peer="mercer, 1 thread")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=["floors", "threads"], default=["floors", "threads"])
    parser.add_argument("--repeats", type=int, default=5)
    args = parse(parser, repeats=1)
    for part in args.parts:
        {"floors": floors, "threads": threads}[part](args.repeats)


if __name__ == "__main__":
    main()
