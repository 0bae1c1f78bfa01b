"""Guards: the tasks of the README, here and with the package of another interpreter, call by call in turn.

    python benchmarks/guards.py --against ../before/.venv/bin/python [--tasks stream-csv sample] [--rounds 15] [--whole]

Whether a change made something slower cannot be read off two runs on a busy machine. So a process of each interpreter
prepares a task, and then the two of them take turns, a call each, in changing order: what disturbs one disturbs the
other. Both keep the memory that they free: whether glibc gives it back, and has every page of it faulted in again by
the next call, depends on what happens to lie behind it. Seconds are of the processor, with one thread; the ratio is the
median over the rounds of the other's seconds divided by ours, so that below 1 we have become slower, and the status is
1 where one is below ``--least`` (0.95) after as many rounds again. Tasks use nothing but names that both packages have.
With ``--whole`` sentences, documents and graphs are all of CoNLL-2000, 20 newsgroups and MUTAG, as in the README.
Without ``--against`` both sides are this interpreter, which shows how far from 1 a ratio gets by chance.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("MERCER_OFFLINE", "1")  # nothing is downloaded: MERCER_DATA has it, or it is generated

import numpy as np
from _timing import SMOKE, parse, record, sized

Call = Callable[[], object]
WHOLE = "--whole" in sys.argv


# ----------------------------------------------------------------------------------------------------------- tasks
#
# Each prepares its data and gives the call that is measured.


def sentences() -> tuple[list, list, list]:
    """Features and labels of sentences of CoNLL-2000 and features of others; of a generated task without the data."""
    from mercer.data import Template
    from mercer.datasets import load_conll2000, make_chain_task

    try:
        read = load_conll2000("train")[: None if WHOLE else sized(700, 20)]
    except OSError:
        X, y, held, _ = make_chain_task(n_train=sized(200, 10), n_test=sized(200, 10))
        return X, y, held
    template = Template.load("words+pos")
    X, y = [template.expand(s)[0] for s in read], [[token[-1] for token in s] for s in read]
    kept = 2 * len(X) // 3
    return X[:kept], y[:kept], X[kept:]


def chain_fit() -> Call:
    """Training a chain CRF to a gradient of a hundredth of its first norm, however many iterations that takes."""
    from mercer.data import FeatureIndex
    from mercer.tagging import Tagger

    X, y, _ = sentences()
    encoded = FeatureIndex().learn(X)
    return lambda: Tagger(C=0.5, tol=1e-2).fit(encoded, y)


def entities_fit() -> Call:
    """Training a tagger of named entities (CoNLL-2002, Dutch), thirty iterations."""
    from mercer.data import FeatureIndex, Template
    from mercer.datasets import load_conll2002
    from mercer.tagging import Tagger

    template, read = Template.load("words+pos"), load_conll2002("ned", "train")[: None if WHOLE else sized(1000, 20)]
    X, y = [template.expand(s)[0] for s in read], [[token[-1] for token in s] for s in read]
    encoded = FeatureIndex().learn(X)
    return lambda: Tagger(C=0.5, tol=1e-9, max_iter=30).fit(encoded, y)


def chain_predict() -> Call:
    """Tagging from lists of strings."""
    from mercer.tagging import Tagger

    X, y, held = sentences()
    tagger = Tagger(C=0.5, max_iter=3).fit(X, y)
    return lambda: tagger.predict(held)


def chain_marginals() -> Call:
    """All marginals of sequences that are encoded already."""
    from mercer.tagging import Tagger

    X, y, held = sentences()
    tagger = Tagger(C=0.5, max_iter=3).fit(X, y)
    encoded = tagger.index_.encode(held)
    return lambda: tagger.predict_marginals(encoded)


def chain_sample() -> Call:
    """Draws from chains of nine labels."""
    from mercer.structures import Chain, ChainScores

    rng = np.random.default_rng(0)
    n, length, labels = sized(200, 5), 25, 9
    drawn = (rng.normal(size=shape) for shape in ((n * length, labels), (labels, labels), labels, labels))
    theta = ChainScores(*drawn, np.arange(0, n * length + 1, length))
    return lambda: Chain(labels, 1).sample(theta, 3, 0)


def chain_bcfw() -> Call:
    """A structured SVM on chains to a relative gap of 1e-3."""
    from mercer.tagging import Tagger

    rng = np.random.default_rng(0)
    planted = rng.normal(size=(5, 20))
    X = [rng.normal(size=(10, 20)) for _ in range(sized(100, 8))]
    Y = [[str(k) for k in (x @ planted.T + 2 * rng.normal(size=(10, 5))).argmax(1)] for x in X]
    return lambda: Tagger(loss="hinge", solver="bcfw", C=0.1, tol=1e-3, random_state=0, max_iter=5000).fit(X, Y)


def words() -> list[str]:
    """Documents of 200 words whose frequencies fall with their rank."""
    rng = np.random.default_rng(0)
    vocabulary = [
        "".join(chr(97 + int(c)) for c in rng.integers(0, 26, n)) for n in rng.integers(2, 13, sized(20_000, 500))
    ]
    chance = 1.0 / np.arange(1, len(vocabulary) + 1)
    drawn = rng.choice(len(vocabulary), (sized(2000, 30), 200), p=chance / chance.sum())
    return [" ".join(vocabulary[i] for i in row) for row in drawn]


def newsgroups() -> list[str]:
    """The posts of 20 newsgroups."""
    from mercer.datasets import load_20newsgroups

    return list(load_20newsgroups().split()[0])


def text_rows() -> Call:
    """Words to sparse rows."""
    from mercer.maps import TextHasher

    documents, hasher = newsgroups() if WHOLE else words(), TextHasher()
    return lambda: hasher.transform(documents)


def hashed_classifier() -> Any:
    """One that makes a single pass, whatever the package calls that."""
    from mercer.online import HashedClassifier

    name = "max_iter" if "max_iter" in inspect.signature(HashedClassifier).parameters else "passes"
    return HashedClassifier(n_bits=18, n_jobs=1, **{name: 1})


def documents_fit() -> Call:
    """A pass of a hashed classifier over documents in memory."""
    documents = words()
    y = ["ab"[len(text) % 2] for text in documents]
    return lambda: hashed_classifier().fit(documents, y)


def stream(kind: str) -> Call:
    """From a file of 20 MB of a known format to a trained model, one pass.

    The cells of the csv are names: of a number there are three features now, which learn more and take longer.
    """
    documents = words()
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"rows.{kind}"
    labels = ["-1" if len(text) % 2 else "1" for text in documents]
    with path.open("w") as file:
        if kind == "csv":
            names = np.random.default_rng(0).integers(0, 50, (sized(20_000, 100), 13))
            lines = [",".join(["ab"[row[0] % 2], *(f"v{k}" for k in row[1:])]) + "\n" for row in names.tolist()]
            file.write("label," + ",".join(f"c{k}" for k in range(12)) + "\n")
            file.writelines(lines * sized(20, 1))
        else:
            between = {"vw": " | ", "txt": "\t"}[kind]
            lines = [f"{y}{between}{text}\n" for y, text in zip(labels, documents, strict=True)]
            file.writelines(lines * sized(7, 1))

    def call(kept: Any = folder) -> object:
        return hashed_classifier().fit_file(path, {"txt": "text"}.get(kind, kind))

    return call


def shortest_paths() -> Call:
    """Shortest-path kernel of labelled random graphs as large as those of MUTAG."""
    from mercer.data import Graphs
    from mercer.kernels import ShortestPath

    if WHOLE:
        from mercer.datasets import load_tu

        read = load_tu("MUTAG")[0]
        return lambda: ShortestPath()(read)
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 28, sized(188, 6))
    edges = [sorted({(int(n) - 1, 0), *((i, int(rng.integers(0, i))) for i in range(1, n))}) for n in sizes]
    graphs = Graphs.from_edges(edges, sizes, node_labels=[list(map(str, rng.integers(0, 5, n))) for n in sizes])
    return lambda: ShortestPath()(graphs)


def chain_network() -> Call:
    """All marginals of a Bayesian network that is a chain of 1,000, model built anew."""
    from mercer.inference import BayesianNetwork, infer

    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(sized(1000, 20))]
    tables = {v: rng.dirichlet(np.ones(5), size=(5,) if i else ()) for i, v in enumerate(names)}
    parents = {v: names[max(0, i - 1) : i] for i, v in enumerate(names)}
    return lambda: infer(BayesianNetwork(dict.fromkeys(names, 5), parents, tables)).marginals.flat


def multiclass_svm() -> Call:
    """A multiclass SVM of digits."""
    from sklearn.datasets import load_digits

    from mercer.classification import LinearClassifier

    X, y = load_digits(return_X_y=True)
    rows = sized(1000, 100)
    return lambda: LinearClassifier("hinge", tol=1e-2, random_state=0).fit(X[:rows] / 16, y[:rows])


def kernel_svm() -> Call:
    """A kernel machine of two classes."""
    from mercer.kernel_methods import KernelSVC
    from mercer.kernels import Gaussian

    rng = np.random.default_rng(0)
    X = rng.normal(size=(sized(800, 60), 10))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return lambda: KernelSVC(Gaussian(0.3), C=1.0).fit(X, y)


TASKS: dict[str, Callable[[], Call]] = {
    "chain-fit": chain_fit,
    "entities-fit": entities_fit,
    "chain-predict": chain_predict,
    "chain-marginals": chain_marginals,
    "chain-bcfw": chain_bcfw,
    "sample": chain_sample,
    "text-rows": text_rows,
    "documents-fit": documents_fit,
    "stream-vw": lambda: stream("vw"),
    "stream-text": lambda: stream("txt"),
    "stream-csv": lambda: stream("csv"),
    "shortest-path": shortest_paths,
    "chain-network": chain_network,
    "multiclass-svm": multiclass_svm,
    "kernel-svm": kernel_svm,
}


# ----------------------------------------------------------------------------------------------------------- sides


def serve() -> None:
    """One side: prepare the task whose name comes in a line, then a call for each empty line, its seconds in a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a task prints is no answer
    call: Call | None = None
    for line in sys.stdin:
        try:
            if line.strip():
                call = TASKS[line.strip()]()
                call()  # caches, imports
                gc.collect()
                gc.disable()
            assert call is not None
            begin = time.process_time()
            call()
            answer: Any = time.process_time() - begin
        except Exception as error:  # a task that one of the packages cannot do is named, and left out
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(answer), file=answers, flush=True)


class Side:
    """A process of an interpreter."""

    def __init__(self, python: str) -> None:
        command = [python, __file__, "--serve", *(word for word in ("--smoke", "--whole") if word in sys.argv)]
        environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline() or '"the process ended"')

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def side(python: str, task: str) -> Side:
    """A new process for each task; at the smallest size one for all tasks and both sides, as imports take longest."""
    return _kept(python) if SMOKE else Side(python)


_kept = cache(Side)


def ratio_of(ours: Side, other: Side, rounds: int, kept: list[tuple[float, float]]) -> float:
    """The median of (other's seconds / ours), after further rounds."""
    for number in range(rounds):
        if number % 2:
            theirs, own = other.ask(""), ours.ask("")
        else:
            own, theirs = ours.ask(""), other.ask("")
        kept.append((own, theirs))
    return statistics.median(theirs / own for own, theirs in kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default=sys.executable, metavar="PYTHON", help="the other interpreter")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--least", type=float, default=0.95, help="ratios below it are a failure")
    parser.add_argument("--whole", action="store_true", help="all of the public sets that the README's tasks use")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parse(parser, tasks=["sample", "stream-csv", "shortest-path"], rounds=2, least=0.0)
    if arguments.serve:
        serve()
        return 0
    print(f"{'task':16s} {'before, s':>10s} {'now, s':>10s} {'ratio':>7s} {'quartiles':>14s}")
    slower = []
    for task in arguments.tasks:
        ours, other = side(sys.executable, task), side(arguments.against, task)
        firsts = {"here": ours.ask(task), "there": other.ask(task)}
        if refused := {side: words for side, words in firsts.items() if isinstance(words, str)}:
            print(f"{task:16s} left out: {refused}", flush=True)
            continue
        kept: list[tuple[float, float]] = []
        ratio = ratio_of(ours, other, arguments.rounds, kept)
        if ratio < arguments.least:
            ratio = ratio_of(ours, other, arguments.rounds, kept)
        if not SMOKE:
            ours.end(), other.end()
        own, theirs = (statistics.median(side) for side in zip(*kept, strict=True))
        low, _, high = statistics.quantiles([b / a for a, b in kept], n=4)
        print(f"{task:16s} {theirs:10.5f} {own:10.5f} {ratio:7.3f} {low:6.2f} - {high:.2f}", flush=True)
        values = {"before, s": theirs, "now, s": own, "ratio": ratio, "rounds": len(kept)}
        table = "guards, whole" if WHOLE else "guards"
        record(table, task, values=values, note="median of the ratios of single rounds")
        if ratio < arguments.least:
            slower.append(task)
    if SMOKE:
        _kept(sys.executable).end()
    if slower:
        print(f"slower by more than {1 - arguments.least:.0%}: {', '.join(slower)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
