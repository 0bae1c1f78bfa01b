"""Hashed online learning: time for a feature; speed and memory against the number of classes; files, beside vw.

    python benchmarks/online.py [--parts learn classes vw] [--repeats 3]

Times are those of the process (CPU seconds), the median of the repeats; beside vw also wall seconds.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _timing import SMOKE, missing, parse, record, sized

from mercer import _core

LENGTH, VOCABULARY = sized((200, 50_000), (20, 500))


def cpu_seconds(repeats: int, call: Callable[[], object]) -> float:
    """Median CPU seconds of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def zipf_examples(n: int, n_classes: int, length: int = LENGTH, seed: int = 0) -> _core.examples.Examples:
    """Documents of Zipf words, a fifth of them from ten words of the document's class, already hashed."""
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(1, VOCABULARY + 1)
    y = random.integers(0, n_classes, n)
    own = np.random.default_rng(1).integers(100, VOCABULARY, (n_classes, 10))
    words = random.choice(VOCABULARY, (n, length), p=chance / chance.sum())
    words = np.where(random.random((n, length)) < 0.2, own[y[:, None], random.integers(0, 10, (n, length))], words)
    hashes = np.random.default_rng(2).integers(0, 2**63, VOCABULARY, dtype=np.uint64)[words]
    names = [str(label) for label in range(n_classes)]
    return _core.examples.Examples(
        np.arange(n + 1) * length, hashes.ravel(), labels=y.astype(np.int32), label_names=names
    )


def new_model(n_classes: int, n_bits: int, **settings: object) -> _core.learner.HashedModel:
    model = _core.learner.HashedModel(task="multiclass" if n_classes > 2 else "binary", n_bits=n_bits, **settings)  # type: ignore[arg-type]
    model.set_labels([str(label) for label in range(n_classes)])
    return model


def learn(repeats: int) -> None:
    """Time of learning for a feature: documents of 200 words, two classes, 2^20 weights."""
    examples = zipf_examples(sized(10_000, 100), 2)
    print(f"learn: {len(examples):,} documents of {LENGTH} words, two classes, 2^20 weights, log loss")
    print(f"{'optimizer':<10}{'counts':<9}{'ns a word':>11}{'M words/s':>11}")
    for optimizer, rate, l2 in (("adagrad", 2.5, 0.0), ("ftrl", 0.1, 0.0), ("sgd", 0.5, 1e-5)):
        for damped in (True, False):
            settings = {"loss": "log", "optimizer": optimizer, "rate": rate, "l2": l2, "damped": damped}
            seconds = cpu_seconds(repeats, lambda settings=settings: new_model(2, 20, **settings).learn(examples))
            words = len(examples) * LENGTH
            name = "sqrt" if damped else "linear"
            print(f"{optimizer:<10}{name:<9}{1e9 * seconds / words:>11.1f}{words / seconds / 1e6:>11.1f}")
            record("learn", f"{optimizer}, {name}", ours=words / seconds / 1e6, unit="M words/s")


def classes(repeats: int) -> None:
    """Model bytes and examples a second against the number of classes: documents of 30 words, 2^22 weights."""
    print("classes: documents of 30 words, 2^22 weights, adagrad")
    print(
        f"{'classes':>8} {'hashing':<10}{'loss':<7}{'MiB':>7}{'learn/s':>10}{'predict/s':>11}{'progressive error':>19}"
    )
    for n_classes in sized((100, 1000, 10_000), (10,)):
        examples = zipf_examples(sized(4000 if n_classes < 10_000 else 2000, 100), n_classes, 30)
        for hashing in ("joint", "two-stage"):
            for loss in ("log", "hinge"):
                runs: list[_core.learner.HashedModel] = []
                figures: list[dict[str, float]] = []

                def run(
                    hashing: str = hashing, loss: str = loss, n: int = n_classes, runs: list = runs, out: list =
                    figures, examples: _core.examples.Examples = examples,
                ) -> None:  # fmt: skip
                    runs.append(new_model(n, 22, loss=loss, label_hashing=hashing, rate=2.5))
                    out.append(runs[-1].learn(examples))

                learning = cpu_seconds(repeats, run)
                predicting = cpu_seconds(repeats, lambda runs=runs, examples=examples: runs[-1].top_k(examples, 1))
                error = figures[-1]["errors"] / len(examples)
                rates = {"learnt a second": round(len(examples) / learning)}
                rates |= {"predicted a second": round(len(examples) / predicting)}
                mebibytes = round(runs[-1].table_bytes / 2**20)
                record("classes", f"{n_classes:,} classes, {hashing}, {loss}", values={"MiB": mebibytes, **rates})
                print(
                    f"{n_classes:>8,} {hashing:<10}{loss:<7}{runs[-1].table_bytes / 2**20:>7.0f}"
                    f"{len(examples) / learning:>10,.0f}{len(examples) / predicting:>11,.0f}{error:>19.3f}"
                )


# ------------------------------------------------------------------------------------------------ files, beside vw


def zipf_documents(megabytes: float, seed: int = 0) -> list[tuple[str, str]]:
    """(label, text): words with Zipf's frequencies, which in each of two classes differ by a random factor."""
    rng = np.random.default_rng(seed)
    n_words = VOCABULARY
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, size=n)) for n in rng.integers(3, 12, n_words)], dtype=object)
    shares = np.exp(0.3 * rng.normal(size=(2, n_words))) / np.arange(1, n_words + 1)
    totals = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    rows, size = [], 0
    while size < megabytes * 1e6:
        label = int(rng.integers(2))
        drawn = np.searchsorted(totals[label], rng.random(int(rng.integers(100, 300))))
        text = " ".join(words[np.minimum(drawn, n_words - 1)])
        rows.append((("-1", "1")[label], text))
        size += len(text)
    return rows


class Timed:
    """Wall and processor seconds of repeated runs, and the loss of the last one."""

    def __init__(self, name: str, run: Callable[[], float]) -> None:
        self.name, self.run = name, run
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.loss = float("nan")

    def once(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.loss = self.run()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)


def threads_of(code: str) -> int:
    """The largest number of threads that a Python process has while it runs the code, less those it starts with."""
    before = "import vowpalwabbit, sys; print(len(__import__('os').listdir('/proc/self/task')), flush=True); "
    process = subprocess.Popen([sys.executable, "-c", before + code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = most = int(process.stdout.readline())
    while process.poll() is None:
        try:
            most = max(most, len(os.listdir(f"/proc/{process.pid}/task")))
        except FileNotFoundError:
            break
        time.sleep(0.002)
    return 1 + most - first


def against_vw(title: str, vw_file: Path, text_file: Path | None, repeats: int) -> None:
    """One pass over a file, 2^20 weights, logistic loss; both judge every example before they learn it."""
    from mercer.online import HashedClassifier

    alone = bool(missing("vowpalwabbit"))

    def vw(options: str = "") -> Callable[[], float]:
        def run() -> float:
            import vowpalwabbit

            driver = vowpalwabbit.Workspace(f"-d {vw_file} -b 20 --loss_function logistic --quiet {options}")
            loss = driver.get_sum_loss() / driver.get_weighted_examples()
            driver.finish()
            return float(loss)

        return run

    def mercer(path: Path, n_jobs: int) -> Callable[[], float]:
        # A word that occurs twice counts twice, as in vw.
        return lambda: HashedClassifier(n_bits=20, n_jobs=n_jobs, counts="linear").fit_file(path).progressive_loss_

    size = vw_file.stat().st_size / 1e6
    runs = [] if alone else [Timed("vw", vw()), Timed("vw --sgd", vw("--sgd"))]
    runs += [Timed("mercer, vw format", mercer(vw_file, 2)), Timed("mercer, vw format, n_jobs=1", mercer(vw_file, 1))]
    if text_file is not None:
        runs.append(Timed("mercer, text format", mercer(text_file, 2)))
    for _ in range(repeats):
        for each in runs:
            each.once()
    code = f"vowpalwabbit.Workspace('-d {vw_file} -b 20 --loss_function logistic --quiet --passes 5 -c -k')"
    note = "" if alone else f"; vw runs {threads_of(code)} threads"
    print(f"\n{title}: {size:.1f} MB, 2^20 weights, one pass{note}")
    beside = "" if alone else f" {'wall ×':>7} {'CPU ×':>7}"
    print(f"  {'':30} {'wall s':>8} {'CPU s':>8} {'MB/CPU s':>9}{beside} {'progressive loss':>17}")
    base = runs[0]
    for each in runs:
        wall, cpu = statistics.median(each.wall), statistics.median(each.cpu)
        ratios = (statistics.median(base.wall) / wall, statistics.median(base.cpu) / cpu)
        beside = "" if alone else f" {ratios[0]:7.2f} {ratios[1]:7.2f}"
        print(f"  {each.name:30} {wall:8.3f} {cpu:8.3f} {size / cpu:9.0f}{beside} {each.loss:17.6f}")
        if each.name.startswith("mercer"):
            theirs = None if alone else statistics.median(base.wall)
            losses = f"progressive loss {each.loss:.4f}" + ("" if alone else f", vw {base.loss:.4f}")
            measure = f"{title}, {each.name.removeprefix('mercer, ')}"
            record("vw", measure, peer="vw", theirs=theirs, ours=wall, sizes=f"{size:.1f} MB", note=losses)


def vw_part(repeats: int) -> None:
    """File to trained model, against the C++ driver of vw."""
    with tempfile.TemporaryDirectory() as folder:
        rows = zipf_documents(sized(20, 0.02))
        vw_file, text_file = Path(folder) / "zipf.vw", Path(folder) / "zipf.txt"
        vw_file.write_text("".join(f"{y} | {x}\n" for y, x in rows))
        text_file.write_text("".join(f"{y}\t{x}\n" for y, x in rows))
        against_vw("Zipf text, two classes", vw_file, text_file, repeats)
        home = os.environ.get("MERCER_DATA")
        small = Path(home or "") / "rcv1-vw" / "rcv1_small.dat.gz"
        if home is None or not small.exists():
            print("\nrcv1: MERCER_DATA has no rcv1-vw, left out")
            return
        if SMOKE:
            return
        # The thousand documents twenty times over, for times that can be measured; they are known from the second on.
        once, often = Path(folder) / "rcv1.vw", Path(folder) / "rcv1x20.vw"
        once.write_bytes(gzip.decompress(small.read_bytes()))
        often.write_bytes(20 * once.read_bytes())
        against_vw("RCV1, a thousand documents", once, None, repeats)
        against_vw("RCV1, the same twenty times over", often, None, repeats)


PARTS: dict[str, Callable[[int], None]] = {"learn": learn, "classes": classes, "vw": vw_part}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parse(parser, repeats=1)
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
