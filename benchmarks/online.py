"""Hashed online learning: time for a feature, and speed and memory against the number of classes; one thread.

    python benchmarks/online.py [--parts learn classes] [--repeats 3]

Times are those of the process (CPU seconds), the median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from mercer import _core

LENGTH, VOCABULARY = 200, 50_000


def cpu_seconds(repeats: int, call: Callable[[], object]) -> float:
    """Median CPU seconds of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def zipf_examples(n: int, n_classes: int, length: int = LENGTH, seed: int = 0) -> _core.Examples:
    """Documents of Zipf words, a fifth of them from ten words of the document's class, already hashed."""
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(1, VOCABULARY + 1)
    y = random.integers(0, n_classes, n)
    own = np.random.default_rng(1).integers(100, VOCABULARY, (n_classes, 10))
    words = random.choice(VOCABULARY, (n, length), p=chance / chance.sum())
    words = np.where(random.random((n, length)) < 0.2, own[y[:, None], random.integers(0, 10, (n, length))], words)
    hashes = np.random.default_rng(2).integers(0, 2**63, VOCABULARY, dtype=np.uint64)[words]
    names = [str(label) for label in range(n_classes)]
    return _core.Examples(np.arange(n + 1) * length, hashes.ravel(), labels=y.astype(np.int32), label_names=names)


def new_model(n_classes: int, n_bits: int, **settings: object) -> _core.HashedModel:
    model = _core.HashedModel(task="multiclass" if n_classes > 2 else "binary", n_bits=n_bits, **settings)  # type: ignore[arg-type]
    model.set_labels([str(label) for label in range(n_classes)])
    return model


def learn(repeats: int) -> None:
    """Time of learning for a feature: documents of 200 words, two classes, 2^20 weights."""
    examples = zipf_examples(10_000, 2)
    print(f"learn: {len(examples):,} documents of {LENGTH} words, two classes, 2^20 weights, log loss")
    print(f"{'optimizer':<10}{'counts':<9}{'ns a word':>11}{'M words/s':>11}")
    for optimizer, rate, l2 in (("adagrad", 2.5, 0.0), ("ftrl", 0.1, 0.0), ("sgd", 0.5, 1e-5)):
        for damped in (True, False):
            settings = {"loss": "log", "optimizer": optimizer, "rate": rate, "l2": l2, "damped": damped}
            seconds = cpu_seconds(repeats, lambda settings=settings: new_model(2, 20, **settings).learn(examples))
            words = len(examples) * LENGTH
            name = "sqrt" if damped else "linear"
            print(f"{optimizer:<10}{name:<9}{1e9 * seconds / words:>11.1f}{words / seconds / 1e6:>11.1f}")


def classes(repeats: int) -> None:
    """Model bytes and examples a second against the number of classes: documents of 30 words, 2^22 weights."""
    print("classes: documents of 30 words, 2^22 weights, adagrad")
    print(
        f"{'classes':>8} {'hashing':<10}{'loss':<7}{'MiB':>7}{'learn/s':>10}{'predict/s':>11}{'progressive error':>19}"
    )
    for n_classes in (100, 1000, 10_000):
        examples = zipf_examples(4000 if n_classes < 10_000 else 2000, n_classes, 30)
        for hashing in ("joint", "two-stage"):
            for loss in ("log", "hinge"):
                runs: list[_core.HashedModel] = []
                figures: list[dict[str, float]] = []

                def run(
                    hashing: str = hashing, loss: str = loss, n: int = n_classes, runs: list = runs, out: list =
                    figures, examples: _core.Examples = examples,
                ) -> None:  # fmt: skip
                    runs.append(new_model(n, 22, loss=loss, label_hashing=hashing, rate=2.5))
                    out.append(runs[-1].learn(examples))

                learning = cpu_seconds(repeats, run)
                predicting = cpu_seconds(repeats, lambda runs=runs, examples=examples: runs[-1].top_k(examples, 1))
                error = figures[-1]["errors"] / len(examples)
                print(
                    f"{n_classes:>8,} {hashing:<10}{loss:<7}{runs[-1].table_bytes / 2**20:>7.0f}"
                    f"{len(examples) / learning:>10,.0f}{len(examples) / predicting:>11,.0f}{error:>19.3f}"
                )


PARTS: dict[str, Callable[[int], None]] = {"learn": learn, "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
