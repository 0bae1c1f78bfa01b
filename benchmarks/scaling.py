"""Beyond memory and beyond one machine: stores, workers, and what an iteration costs.

store      CoNLL-2000 in copies: passes over a store against passes over memory, and the peak of memory in each
iteration  overhead of one evaluation on two workers: shared memory against Dask as it comes
workers    passes with two single-thread workers against two threads of one process
failures   weights from a store, from 1, 2 and 3 workers, and after workers were killed at random points, against those
           of memory, to the last bit
hashed     a hashed learner from pieces of generated text: MB a second of the processor, and memory as it goes
growth     processor time of client and workers for 1 to 8 workers, and a simulation to 1,000 from these constants

python benchmarks/scaling.py --tasks store iteration
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _timing import SMOKE, from_data, missing, parse, record, sized

TASKS = ("store", "iteration", "workers", "failures", "hashed", "growth")


def sentences(copies: int) -> tuple[list[Any], list[Any]]:
    """CoNLL-2000 in copies, or generated sentences at the smallest size."""
    if sized(False, True):
        random = np.random.default_rng(0)
        X = [[(f"w{j}", f"p{j % 5}") for j in random.integers(40, size=6)] for _ in range(40)]
        return X * copies, [["AB"[int(token[0][1:]) % 2] for token in x] for x in X] * copies
    from mercer.datasets import load_conll2000

    found = load_conll2000("train")
    X = [[token[:-1] for token in one] for one in found]
    return X * copies, [[token[-1] for token in one] for one in found] * copies


def peak() -> float:
    """The peak of resident memory of this process so far, in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM"))


# ---------------------------------------------------------------------------------------------------------- on disk


def fit_once(place: str, folder: str, copies: int, passes: int) -> None:
    """In a process of its own: build the risk in memory or from a store, make passes, print seconds and memory."""
    import copy

    from mercer.data import Partitions, Store, Template
    from mercer.learning.partitioned import prepare
    from mercer.tagging import Tagger

    before = peak()
    model = Tagger(template=Template.load("words+pos"))
    given: Any = Store(folder)
    if place == "memory":
        given = Partitions([given[i] for i in range(copies)])
    with prepare(copy.copy(model), given, None, None, model._loss(), None) as risk:
        del given
        w = np.zeros(risk.n_weights)
        risk.value_and_gradient(w)
        begin = time.process_time()
        for _ in range(passes):
            value, gradient = risk.value_and_gradient(w)
            w -= 1e-4 * gradient
        taken = (time.process_time() - begin) / passes
        print(f"{taken:.4f} {peak() - before:.1f} {risk.n_weights} {value!r}")


def store_task(copies: int, passes: int) -> None:
    from mercer.data import Store, Template

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.store"
        store = Store(path)
        X, y = sentences(1)
        for _ in range(copies):
            store.append(X, y, template=Template.load("words+pos"))
        found = {}
        for place in ("memory", "store"):
            if SMOKE:  # imports would take longest
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    fit_once(place, str(path), copies, passes)
                out = said.getvalue().split()
            else:
                command = [sys.executable, __file__, "--once", place, str(path), str(copies), str(passes)]
                out = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=environment()
                ).stdout.split()
            found[place] = (float(out[0]), float(out[1]), int(out[2]), out[3])
        (fast, more, n, value), (slow, less, _, other) = found["memory"], found["store"]
        size = store.nbytes / 1e6
        print(f"store: {copies} copies, {size:,.0f} MB on disk, {n:,} weights, equal values: {value == other}")
        print(f"  a pass: memory {fast:.3f} s, store {slow:.3f} s, ratio {slow / fast:.2f}")
        print(f"  peak above the interpreter: memory {more:,.0f} MB, store {less:,.0f} MB (weights {8 * n / 1e6:,.0f})")
        state = 8 * n / 1e6
        values = {"memory": fast, "store": slow, "ratio": slow / fast}
        record("store", f"a pass over {copies} copies, s of the processor", values=values)
        values = {"memory": more, "store": less}
        if more > 0:  # in one process, at the smallest size, the peak need not rise
            values["ratio"] = less / more
        record("store", f"peak of memory, MB; the weights are {state:,.0f}", values=values)


def environment() -> dict[str, str]:
    folder = str(Path(__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}


# --------------------------------------------------------------------------------------------------------- on workers


def cluster(n: int) -> Any:
    import distributed

    local = distributed.LocalCluster(
        n_workers=n, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
    )
    return local, distributed.Client(local)


class Idle:
    """A risk that takes no time: what is left is the way there and back."""

    n_examples = 1

    def __init__(self, n_weights: int) -> None:
        self.n_weights = n_weights
        self.gradient = np.ones(n_weights)

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(w[0]), self.gradient.copy()


def idle(part: Any, number: int, n: int) -> Idle:
    return Idle(n)


def iteration_task(n: int, repeats: int) -> None:
    import dask

    from mercer.learning._dask import OnWorkers

    local, client = cluster(2)
    taken: dict[str, list[float]] = {}
    try:
        w = np.random.default_rng(0).normal(size=n)
        ways = {"shared memory": {}, "shared memory, float32": {"mercer.traffic": "float32"}}
        ways |= {"network": {"mercer.shared-memory": False}}
        places = {}
        for name, settings in ways.items():
            with dask.config.set(settings):
                place = OnWorkers([dask.delayed(([0], [0])) for _ in range(2)], None, None)
            known = sorted(place._known)
            place._futures = [client.submit(idle, None, i, n, pure=False, workers=[a]) for i, a in enumerate(known)]
            place._group()
            places[name] = place
            place.sums("value_and_gradient", w)
        for _ in range(repeats):
            for name, place in places.items():
                begin = time.perf_counter()
                place.sums("value_and_gradient", w)
                taken.setdefault(name, []).append(time.perf_counter() - begin)
            begin = time.perf_counter()
            sent = client.scatter(w, broadcast=True, hash=False)
            parts = [client.submit(_plain, sent, i, pure=False) for i in range(2)]
            _ = sum(client.gather(parts))
            taken.setdefault("Dask as it comes", []).append(time.perf_counter() - begin)
            begin = time.perf_counter()
            client.gather([client.submit(_nothing, i, pure=False) for i in range(2)])
            taken.setdefault("two empty tasks", []).append(time.perf_counter() - begin)
        for place in places.values():
            place.close()
    finally:
        client.close()
        local.close()
    found = {name: 1e3 * float(np.median(values)) for name, values in taken.items()}
    for name, ms in found.items():
        print(f"iteration: {n:,} weights, 2 workers, {name}: {ms:.1f} ms")
        record("iteration", name, ours=ms, unit="ms")


def _plain(w: np.ndarray, i: int) -> np.ndarray:
    return np.ones_like(w)


def _nothing(i: int) -> int:
    return i


def bags_of(parts: Any) -> tuple[Any, Any]:
    import dask

    return [dask.delayed(part.X) for part in parts], [dask.delayed(part.y) for part in parts]


def workers_task(copies: int, passes: int) -> None:
    import copy

    from mercer.data import Partitions, Template
    from mercer.learning.partitioned import prepare
    from mercer.tagging import Tagger

    X, y = sentences(copies)
    parts = Partitions.split(X, y, n=4)
    local, client = cluster(2)
    try:
        taken = {}
        for name, given, jobs in (("two threads", (parts, None), 2), ("two workers", bags_of(parts), 1)):
            model = Tagger(template=Template.load("words+pos"), n_jobs=jobs)
            with prepare(copy.copy(model), given[0], given[1], None, model._loss(), None) as risk:
                w = np.zeros(risk.n_weights)
                risk.value_and_gradient(w)
                begin = time.perf_counter()
                for _ in range(passes):
                    risk.value_and_gradient(w)
                taken[name] = (time.perf_counter() - begin) / passes
        ratio = taken["two threads"] / taken["two workers"]
        threads, on_workers = taken["two threads"], taken["two workers"]
        print(f"workers: {copies} copies: a pass with two threads {threads:.3f} s, two workers {on_workers:.3f} s")
        print(f"workers: speed of workers against threads {ratio:.2f}")
        values = {"two threads, s": taken["two threads"], "two workers, s": taken["two workers"], "speed": ratio}
        record("workers", f"a pass over CoNLL-2000{f', {copies} copies' if copies > 1 else ''}", values=values)
    finally:
        client.close()
        local.close()


def failures_task(kills: int) -> None:
    """Fits on 1, 2 and 3 workers, from a store, and with workers killed, against the fit in memory."""
    from mercer.data import Partitions, Store, Template
    from mercer.learning import _dask
    from mercer.tagging import Tagger

    X, y = sentences(1)
    X, y = X[: sized(400, 20)], y[: sized(400, 20)]
    parts = Partitions.split(X, y, n=5)
    template = Template.load("words+pos")

    def fitted(*given: Any) -> np.ndarray:
        return Tagger(template=template, max_iter=30).fit(*given).coef_

    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        reference = fitted(parts)
        store = Store(Path(folder) / "train.store")
        for part in parts:
            store.append(part.X, part.y, template=template)
        same = {"a store": np.array_equal(fitted(store), reference)}
        local, client = cluster(1)
        random = np.random.default_rng(int(time.time()))
        ask_all, equal, points = _dask.OnWorkers._ask_all, 0, []
        try:
            for n in (1, 2, 3):
                local.scale(n)
                client.wait_for_workers(n, timeout=120)
                same[f"{n} worker{'s' if n > 1 else ''}"] = np.array_equal(fitted(*bags_of(parts)), reference)
            same["3 workers, a store"] = np.array_equal(fitted(store.distributed()), reference)
            for _ in range(kills):
                point, asked = int(random.integers(1, 30)), [0]
                victim = int(random.choice(sorted(client.run(os.getpid).values())))

                def dying(
                    self: Any, *args: Any, point: int = point, asked: list[int] = asked, victim: int = victim
                ) -> Any:
                    asked[0] += 1
                    if asked[0] == point:
                        os.kill(victim, signal.SIGKILL)
                    return ask_all(self, *args)

                _dask.OnWorkers._ask_all = dying  # type: ignore[method-assign]
                equal += np.array_equal(fitted(*bags_of(parts)), reference)
                points.append(point)
                client.wait_for_workers(3, timeout=120)
        finally:
            _dask.OnWorkers._ask_all = ask_all  # type: ignore[method-assign]
            client.close()
            local.close()
    print(f"failures: equal weights from {same}")
    print(f"failures: {equal} of {kills} fits with a worker killed (at evaluations {points}) have equal weights")
    for name, is_same in same.items():
        record("failures", name, values={"with the same bits": int(is_same), "of": 1})
    record("failures", "a worker killed at a random evaluation", values={"with the same bits": int(equal), "of": kills})


# -------------------------------------------------------------------------------------------------------------- text


def resident() -> float:
    """Resident memory of this process, in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmRSS"))


IN_MEMORY = 250e6  # bytes of text that are learnt from in memory, too


def hashed_task(megabytes: int, distinct: int, piece: int) -> None:
    """Generated text: words by Zipf's law, classes by most of the first words, in a store of ``distinct`` MB that is
    read as often as it takes.

    The loss after the first 250 MB is compared with one pass over the same texts in memory.
    """
    from mercer.data import Store
    from mercer.online import HashedClassifier

    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(sized(50_000, 1000))])
    share = 1.0 / np.arange(1, len(words) + 1)
    share /= share.sum()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "text.store")
        while store.nbytes < min(megabytes, distinct) * 1e6:
            numbers = random.choice(len(words), (piece, 100), p=share)
            texts = [" ".join(row) for row in words[numbers]]
            store.append(texts, ((numbers[:, :20] % 2).sum(axis=1) > 10).astype(int))
        model, seen, marks, loss, n_kept = HashedClassifier(n_bits=20), 0, [], 0.0, 0
        while seen < megabytes * 1e6:
            for i, part in enumerate(store):
                begin = time.process_time()
                model.partial_fit(part.X, part.y, classes=[0, 1])
                taken = time.process_time() - begin
                seen += store.pieces[i]["bytes"]
                marks.append((store.pieces[i]["bytes"] / 1e6 / taken, resident()))
                if not n_kept and (seen >= IN_MEMORY or i == len(store) - 1):
                    loss, n_kept = model.progressive_loss_, i + 1
        parts = [store[i] for i in range(n_kept)]
        texts, labels = [text for part in parts for text in part.X], np.concatenate([part.y for part in parts])
        whole = HashedClassifier(n_bits=20).partial_fit(texts, labels, classes=[0, 1]).progressive_loss_
        n = max(1, len(marks) // 10)
        first, last = (np.median([rate for rate, _ in some]) for some in (marks[:n], marks[-n:]))
        low, high = marks[min(n, len(marks) - 1)][1], max(memory for _, memory in marks[n:] or marks)
        print(f"hashed: {seen / 1e6:,.0f} MB of text, {store.nbytes / 1e6:,.0f} MB in {len(store)} pieces on disk")
        print(f"hashed: {first:.0f} MB/s in the first tenth, {last:.0f} in the last; memory {low:.0f} to {high:.0f} MB")
        print(f"hashed: progressive loss of the first {n_kept} pieces {loss:.9f}, of one pass in memory {whole:.9f}")
        values = {"MB/s, first tenth": float(first), "MB/s, last tenth": float(last)}
        values |= {"memory after a tenth, MB": low, "most after that, MB": high}
        values |= {"progressive loss, first reading": loss, "one pass in memory": float(whole)}
        record("hashed", f"{seen / 1e6:,.0f} MB of text, {store.nbytes / 1e6:,.0f} MB on disk", values=values)


# ------------------------------------------------------------------------------------------------------------ growth


def traffic_of(workers: int, n: int, repeats: int) -> tuple[float, float]:
    """Processor seconds of an evaluation through the network: of the client with its scheduler, of one worker."""
    import dask

    from mercer.learning._dask import OnWorkers

    local, client = cluster(workers)
    try:
        with dask.config.set({"mercer.shared-memory": False}):
            place = OnWorkers([dask.delayed(([0], [0])) for _ in range(workers)], None, None)
        known = sorted(place._known)
        place._futures = [client.submit(idle, None, i, n, pure=False, workers=[a]) for i, a in enumerate(known)]
        place._group()
        w = np.random.default_rng(0).normal(size=n)
        place.sums("value_and_gradient", w)
        here, there = time.process_time(), sum(client.run(time.process_time).values())
        for _ in range(repeats):
            place.sums("value_and_gradient", w)
        here, there = time.process_time() - here, sum(client.run(time.process_time).values()) - there
        place.close()
    finally:
        client.close()
        local.close()
    return here / repeats, there / repeats / workers


def spread_of_tasks(n_parts: int, repeats: int) -> tuple[float, float]:
    """Processor seconds of the tasks of a pass over CoNLL-2000, and their spread relative to the mean."""
    import copy

    from mercer.data import Partitions, Template
    from mercer.learning.partitioned import prepare
    from mercer.tagging import Tagger

    X, y = sentences(1)
    model, seconds = Tagger(template=Template.load("words+pos")), []
    with prepare(copy.copy(model), Partitions.split(X, y, n=n_parts), None, None, model._loss(), None) as risk:
        w = np.zeros(risk.n_weights)
        risk.value_and_gradient(w)
        for _ in range(repeats):
            for part in risk.place._kept.values():
                begin = time.process_time()
                part.value_and_gradient(w)
                seconds.append(time.process_time() - begin)
    return float(np.sum(seconds) / repeats), float(np.std(seconds) / np.mean(seconds))


def growth_task(n: int, repeats: int, pass_seconds: float, gigabits: float = 10.0) -> None:
    """Simulated seconds of an iteration on p workers, each with one core, one part and its own link.

        T(p) = max of p tasks of pass_seconds / p + α + β p + sending w as a tree + receiving p gradients

    Measured: α and β, the processor time of client and scheduler for 1 to 8 workers (a straight line); what a worker
    spends besides its task; the spread of tasks. Assumed: links of ``gigabits``. The second column has the next step:
    gradients added up between workers in a tree, so that one of them reaches the client.
    """
    counts = [p for p in (1, 2, 4, 8) if p <= sized(8, 2)]
    measured = [traffic_of(p, n, repeats) for p in counts]
    slope, offset = np.polyfit(counts, [here for here, _ in measured], 1) if len(counts) > 1 else (0.0, 0.0)
    beside = float(np.median([there for _, there in measured]))
    whole, spread = spread_of_tasks(8, repeats)
    for p, (here, there) in zip(counts, measured, strict=True):
        print(f"growth: {p} workers: client {1e3 * here:.1f} ms, a worker {1e3 * there:.1f} ms beside its task")
        values = {"client and scheduler, ms": 1e3 * here, "a worker beside its task, ms": 1e3 * there}
        record("traffic", f"{p} worker{'s' if p > 1 else ''}", values=values)
    print(
        f"growth: client {1e3 * offset:.1f} + {1e3 * slope:.2f} p ms; a pass {whole:.2f} s, tasks spread {spread:.1%}"
    )
    record("constants", "client and scheduler, α", ours=1e3 * offset, unit="ms")
    record("constants", "client and scheduler, β for each worker", ours=1e3 * slope, unit="ms")
    record("constants", "a worker beside its task", ours=1e3 * beside, unit="ms")
    record("constants", "spread of tasks around their mean", ours=100 * spread, unit="%")
    random = np.random.default_rng(0)
    wire = 8 * 8 * n / (gigabits * 1e9)
    print(f"growth: workers, seconds of an iteration, speed-up; a pass on one worker takes {pass_seconds:.0f} s")
    best, best_tree = (np.inf, 1), (np.inf, 1)
    for p in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000):
        tasks = pass_seconds / p * np.maximum(0.1, 1.0 + spread * random.normal(size=(200, p)))
        slowest = float(tasks.max(axis=1).mean())
        depth = float(np.ceil(np.log2(p + 1)))
        star = slowest + beside + max(0.0, offset) + slope * p + wire * (depth + p)
        tree = slowest + beside * (1 + depth) + max(0.0, offset) + slope + wire * 2 * depth
        best, best_tree = min(best, (star, p)), min(best_tree, (tree, p))
        print(f"growth: {p:5d} {star:9.3f} {pass_seconds / star:8.1f}   {tree:9.3f} {pass_seconds / tree:8.1f}")
        values = {"s, sums at the client": star, "speed-up": pass_seconds / star}
        values |= {"s, sums in a tree": tree, "speed-up in a tree": pass_seconds / tree}
        record("growth", f"{p:,} worker{'s' if p > 1 else ''}", values=values)
    print(f"growth: it stops paying at about {best[1]} workers, with sums in a tree at {best_tree[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--weights", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=10_000)
    parser.add_argument("--distinct", type=int, default=250, help="megabytes of text that are generated; then again")
    parser.add_argument("--pass-seconds", type=float, default=100.0, help="of the simulated work of one pass")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    small = {"tasks": ["store", "hashed"], "copies": 2, "passes": 1, "megabytes": 1}
    options = parse(parser, **small)
    if options.once:
        place, folder, copies, passes = options.once
        return fit_once(place, folder, int(copies), int(passes))
    on_workers = not missing("distributed")
    if "store" in options.tasks:
        with from_data("store"):
            store_task(options.copies, options.passes)
    if on_workers and "iteration" in options.tasks:
        iteration_task(options.weights, options.repeats)
    if on_workers and "workers" in options.tasks:
        with from_data("workers"):
            for copies in (1, 10):  # a short pass shows what an iteration costs, a longer one what is left of it
                workers_task(copies, options.passes)
    if on_workers and "failures" in options.tasks:
        with from_data("failures"):
            failures_task(options.kills)
    if "hashed" in options.tasks:
        hashed_task(options.megabytes, options.distinct, sized(20_000, 200))
    if on_workers and "growth" in options.tasks:
        with from_data("growth"):
            growth_task(options.weights, sized(10, 1), options.pass_seconds)


if __name__ == "__main__":
    main()
