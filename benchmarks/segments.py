"""Segmentations beside other semi-Markov tools, one thread each, in one run.

    python benchmarks/segments.py [--parts inference] [--repeats 5]

inference   log Z and its gradient in all part scores; how time and memory grow with the length of a sequence; threads.

Peers are flash-semicrf 0.2.0 and torch-struct 0.5 on torch's CPU side (``pip install torch flash-semicrf==0.2.0
torch-struct==0.5``). Those that are not installed are shown with the figures of an earlier run, and said to be. Seconds
are processor time, medians of runs in turn.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import logsumexp

from mercer.structures import Segments, SegmentScores

# CPU seconds of an earlier run on another machine, for peers that are not installed.
KNOWN = {"flash-semicrf 0.2.0": 3.8, "torch-struct 0.5": 0.145}


Clock = Callable[[], float]


def interleaved(repeats: int, *calls: Callable[[], object], clock: Clock = time.process_time) -> list[float]:
    """Median seconds of each call, run in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for kept, call in zip(times, calls, strict=True):
            start = clock()
            call()
            kept.append(clock() - start)
    return [statistics.median(kept) for kept in times]


def many(call: Callable[[], object], times: int) -> Callable[[], None]:
    """A call so often that a clock can see it."""

    def run() -> None:
        for _ in range(times):
            call()

    return run


def scores(T: int, K: int, C: int, batch: int, seed: int = 0) -> SegmentScores:
    rng = np.random.default_rng(seed)
    frames, offsets = rng.normal(size=(batch * T, C)), np.arange(batch + 1) * T
    tau = 0.1 * rng.normal(size=(C, C))
    # The peers sum over a label before the first segment, too.
    shared = 0.1 * rng.normal(size=(K, C)), tau, logsumexp(tau, axis=0), np.zeros(C)
    return SegmentScores(*shared, offsets, frames=frames)


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None and importlib.util.find_spec("torch") is not None


# ------------------------------------------------------------------------------------------- inference


def flash(theta: SegmentScores, T: int, K: int, C: int, batch: int) -> Callable[[], np.ndarray]:
    """log Z and gradients by flash-semicrf: frames, transitions and durations are leaves."""
    import torch
    from flash_semicrf.streaming import semi_crf_streaming_forward

    torch.set_num_threads(1)
    frames = torch.tensor(theta.frames).reshape(batch, T, C).requires_grad_()
    shared = [torch.tensor(x).requires_grad_() for x in (theta.transitions, theta.lengths)]
    lengths = torch.full((batch,), T)

    def run() -> np.ndarray:
        sums = torch.cat([torch.zeros(batch, 1, C, dtype=torch.float64), torch.cumsum(frames, dim=1)], dim=1)
        value = semi_crf_streaming_forward(sums, *shared, lengths, K, semiring="log", use_triton=False)
        value.sum().backward()
        return value.detach().numpy()

    return run


def torch_struct(theta: SegmentScores, T: int, K: int, C: int, batch: int) -> Callable[[], np.ndarray]:
    """log Z and gradients by torch-struct: the score of every segment after every label is a leaf."""
    import torch
    from torch_struct import SemiMarkovCRF

    torch.set_num_threads(1)
    edges = np.full((batch, T, K + 1, C, C), -1e9)
    frames = theta.frames.reshape(batch, T, C)
    for t in range(T):
        for k in range(1, min(K, T - t) + 1):
            segment = frames[:, t : t + k].sum(axis=1) + theta.lengths[k - 1]
            edges[:, t, k] = segment[:, :, None] + theta.transitions.T
    leaf = torch.tensor(edges)

    def run() -> np.ndarray:
        # The transition is part of the scores; of the labels before the first segment all count.
        potentials = leaf.clone().requires_grad_()
        value = SemiMarkovCRF(potentials, torch.full((batch,), T + 1)).partition
        value.sum().backward()
        return value.detach().numpy().ravel()

    return run


PEERS = {
    "flash-semicrf 0.2.0": ("flash_semicrf", flash, (200, 10, 10, 4)),
    "torch-struct 0.5": ("torch_struct", torch_struct, (25, 5, 8, 2)),
}


def inference(repeats: int) -> None:
    """log Z and gradient against the peers, growth with T, and threads."""
    warnings.filterwarnings("ignore")
    print("\nlog Z + gradient in all part scores, float64, 1 thread, CPU seconds")
    print(f"{'':22}{'T':>6}{'K':>4}{'C':>4}{'batch':>6}{'peer':>12}{'mercer':>12}{'ratio':>9}  log Z differs by")
    for name, (module, prepare, shape) in PEERS.items():
        T, K, C, batch = shape
        theta, segments = scores(T, K, C, batch), Segments(C, 0, max_length=K)
        inner = max(1, 200_000 // (T * batch * K))
        ours = many(lambda segments=segments, theta=theta: segments.marginals(theta), inner)  # type: ignore[misc]
        if installed(module):
            theirs = prepare(theta, T, K, C, batch)
            gap = float(np.abs(theirs() - segments.log_partition(theta)).max())
            seconds, mine = interleaved(repeats, theirs, ours)
            note = f"{gap:.1e}"
        else:
            (mine,) = interleaved(repeats, ours)
            seconds, note = KNOWN[name], "not installed: figure of an earlier run on another machine"
        mine /= inner
        print(f"{name:22}{T:6}{K:4}{C:4}{batch:6}{seconds:12.4f}{mine:12.6f}{seconds / mine:8.0f}x  {note}")
    growth(repeats)
    threads(repeats)


def growth(repeats: int) -> None:
    K, C = 20, 20
    print(f"\ngrowth with T, K = {K}, C = {C}, one sequence, 1 thread")
    print(f"{'T':>8}{'log Z':>10}{'gradient':>10}{'argmax':>10} s {'gradient':>10} positions/s {'memory':>9} MB")
    lengths, segments = [1_000, 3_000, 10_000, 30_000, 100_000], Segments(C, 0, max_length=K)
    verbs = [segments.log_partition, segments.marginals, segments.argmax]
    rows = []
    for T in lengths:
        theta = scores(T, K, C, 1)
        inner = max(1, 30_000 // T)
        calls = [many(lambda verb=verb, theta=theta: verb(theta), inner) for verb in verbs]  # type: ignore[misc]
        found = [s / inner for s in interleaved(min(repeats, 3), *calls)]
        rows.append(found)
        times = "".join(f"{seconds:10.4f}" for seconds in found)
        print(f"{T:8}{times}   {T / found[1]:10.0f}             {peak(T, K, C):9.1f}")
    slopes = np.polyfit(np.log(lengths), np.log(np.array(rows)), 1)[0]
    names = ("log Z", "gradient", "argmax")
    print("exponents of T:  " + "  ".join(f"{n} {s:.2f}" for n, s in zip(names, slopes, strict=True)))
    print(f"a table of all segments at T = 100000 would take {100_000 * K * C * 8 / 2**20:.0f} MB")


PEAK = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("benchmark", sys.argv[1])
benchmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)
T, K, C = map(int, sys.argv[2:])
theta, segments = benchmark.scores(T, K, C, 1), benchmark.Segments(C, 0, max_length=K)
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
segments.marginals(theta)
print(peak() - before)
"""


def peak(T: int, K: int, C: int) -> float:
    """By how many MB the largest resident size grows during marginals, in a process of its own."""
    if not os.path.exists("/proc/self/status"):
        return float("nan")
    command = [sys.executable, "-c", PEAK, __file__, str(T), str(K), str(C)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024


def threads(repeats: int) -> None:
    T, K, C, batch = 200, 20, 20, 64
    theta = scores(T, K, C, batch)
    calls = [lambda n=n: Segments(C, 0, max_length=K, threads=n).marginals(theta) for n in (1, 2)]  # type: ignore[misc]
    one, two = interleaved(max(repeats, 7), *calls, clock=time.perf_counter)
    print(f"\n{batch} sequences of {T}, K = {K}, C = {C}, wall time of the gradient:")
    print(f"1 thread {one:.4f} s, 2 threads {two:.4f} s: {one / two:.2f}x")
    a, b = (call().frames for call in calls)
    assert (a == b).all(), "the number of threads changed the result"


PARTS: dict[str, Callable[[int], None]] = {"inference": inference}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
