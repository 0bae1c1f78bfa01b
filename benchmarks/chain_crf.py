"""Chain CRFs: mercer against python-crfsuite on the same data, in one run.

Prints, for each task, medians over interleaved repeats and their ratio (peer / mercer; above 1 we are faster or
smaller): training to the objective that CRFsuite has after 30 iterations, training with ℓ1, epochs of SGD and of the
averaged perceptron, tagging from lists of strings and from converted data, all marginals, and peak memory in training.

Tasks: ``equal`` (synthetic, 2,000 sequences of 25), ``ragged`` (lengths 5-45), ``conll2000`` (needs MERCER_DATA).
Part ``entities``: 14,000 sentences of CoNLL-2002 (needs MERCER_DATA), to the objective that CRFsuite has after 100
iterations. Tagging and entities are timed in processor seconds.

    python benchmarks/chain_crf.py [--tasks equal ragged conll2000] [--parts training tagging memory entities]
        [--repeats 3] [--smoke]

Without python-crfsuite, seconds of our own training and tagging, and no ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import SMOKE, from_data, parse, peer, record, sized

from mercer import _core
from mercer.data import FeatureIndex, LabelIndex, Template
from mercer.datasets import load_conll2000, load_conll2002, make_chain_task
from mercer.learning import ConvergenceWarning, Log, Risk
from mercer.metrics import span_f1, token_accuracy
from mercer.structures import Chain
from mercer.tagging import Tagger

warnings.simplefilter("ignore", ConvergenceWarning)
pycrfsuite = peer("pycrfsuite")


def load(name: str) -> tuple[list, list, list, list]:
    fewer = {"n_train": 20, "n_test": 10, "n_labels": 4, "n_features": 50} if SMOKE else {}
    if name == "equal":
        return tuple(make_chain_task(**fewer))
    if name == "ragged":
        return tuple(make_chain_task(length=(5, 45), random_state=1, **fewer))
    template = Template.load("words+pos")
    out: list[list] = []
    for subset in ("train", "test"):
        sentences = load_conll2000(subset)
        out.append([template.expand(s)[0] for s in sentences])
        out.append([[token[-1] for token in s] for s in sentences])
    return tuple(out)


# ---------------------------------------------------------------------------------------------- the two sides


def crfsuite_trainer(X: list, y: list, algorithm: str, **params: Any) -> Any:
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    for xs, ys in zip(X, y, strict=True):
        trainer.append(xs, ys)
    trainer.set_params(params)
    return trainer


def crfsuite_fit(X: list, y: list, algorithm: str, **params: Any) -> tuple[float, dict, str]:
    """Seconds of training (data appended before), the last log record, the model file."""
    trainer = crfsuite_trainer(X, y, algorithm, **params)
    path = tempfile.mktemp(suffix=".crfsuite")
    begin = time.perf_counter()
    trainer.train(path)
    return time.perf_counter() - begin, trainer.logparser.last_iteration, path


def mercer_fit(X: Any, y: list, **params: Any) -> tuple[float, Tagger]:
    begin = time.perf_counter()
    tagger = Tagger(**params).fit(X, y)
    return time.perf_counter() - begin, tagger


def seconds_to(tagger: Tagger, objective: float, scale: float) -> float:
    """Seconds until the history first falls to the objective (given in the peer's scale)."""
    values = scale * np.array(tagger.history_["objective"])
    hit = np.flatnonzero(values <= objective)
    return tagger.history_["seconds"][hit[0]] if len(hit) else float("inf")


# ---------------------------------------------------------------------------------------------- reporting


class Report:
    """Rows of (measure, peer, ours, ratio), printed as they come and kept for the summary."""

    def __init__(self) -> None:
        self.rows: list[dict] = []

    def add(self, task: str, measure: str, peer: float, ours: float, unit: str, aim: float, note: str = "") -> None:
        ratio = ours / peer if unit.endswith("/s") else peer / ours
        self.rows.append({"task": task, "measure": measure, "peer": peer, "ours": ours, "ratio": ratio, "aim": aim})
        record(
            task,
            measure,
            peer="mercer, 1 thread" if "ours:" in measure else "python-crfsuite",
            theirs=100 * peer if unit == "score/s" else peer,
            ours=100 * ours if unit == "score/s" else ours,
            unit="%" if unit == "score/s" else unit,
            note=note,
        )
        mark = "" if ratio >= aim else "  (below the aim)"
        print(
            f"{task:10s} {measure:48s} {peer:12.4g} {ours:12.4g} {unit:9s} {ratio:7.2f}x  aim {aim:g}x{mark}  {note}",
            flush=True,
        )


def interleaved(repeats: int, *calls: Callable[[], float]) -> list[float]:
    """Medians of each call's figure, the calls taking turns."""
    figures = [[call() for call in calls] for _ in range(repeats)]
    return [float(np.median(column)) for column in zip(*figures, strict=True)]


# ---------------------------------------------------------------------------------------------- measures


def training(report: Report, task: str, data: tuple, repeats: int) -> str:
    X, y, X_test, y_test = data
    index = FeatureIndex()
    sequences = index.learn(X)
    test = index.encode(X_test)
    model = ""

    def quality(predicted: list) -> float:
        return span_f1(y_test, predicted) if task == "conll2000" else token_accuracy(y_test, predicted)

    def peer_quality(path: str) -> float:
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        return quality([tagger.tag(x) for x in X_test])

    # To the objective after 30 iterations, ℓ2: NLL + c2 ‖w‖² with c2 = 1 is twice our objective at C = 0.5.
    goal = 0.0
    kept: dict[str, Any] = {}

    def peer_l2() -> float:
        nonlocal goal, model
        seconds, last, model = crfsuite_fit(X, y, "lbfgs", c1=0.0, c2=1.0, max_iterations=30)
        goal = last["loss"]
        return seconds

    def ours_l2(**options: Any) -> float:
        _, kept["l2"] = mercer_fit(sequences, y, C=0.5, max_iter=60, **options)
        return seconds_to(kept["l2"], goal, 2.0)

    peer, ours, two = interleaved(repeats, peer_l2, ours_l2, lambda: ours_l2(n_jobs=2))
    agreement(task, data, model, goal)
    report.add(task, "training (ℓ2) to CRFsuite's objective after 30", peer, ours, "s", 5.0, f"objective {goal:.1f}")
    report.add(task, "the same, Mercer with 2 threads", peer, two, "s", 5.0)
    reached = next(i + 1 for i, value in enumerate(kept["l2"].history_["objective"]) if 2 * value <= goal)
    _, tagger = mercer_fit(sequences, y, C=0.5, max_iter=reached)
    report.add(task, "quality at that point", peer_quality(model), quality(tagger.predict(test)), "score/s", 0.998)

    def whole(jobs: int) -> float:
        return mercer_fit(sequences, y, C=0.5, max_iter=30, tol=0.0, n_jobs=jobs)[0]

    one, two = interleaved(repeats, lambda: whole(1), lambda: whole(2))
    report.add(task, "30 iterations, ours: 1 thread, 2 threads", one, two, "s", 1.7)
    tags = kept["l2"]._labels.encode(y, sequences.lengths)
    risk = Risk(kept["l2"].structure_, Log(), sequences, tags)

    def gradient(threads: int) -> float:
        risk.structure.threads = threads
        begin = time.perf_counter()
        risk.value_and_gradient(kept["l2"].coef_)
        return time.perf_counter() - begin

    one, two = interleaved(10 * repeats, lambda: gradient(1), lambda: gradient(2))
    report.add(task, "one gradient, ours: 1 thread, 2 threads", one, two, "s", 1.7)

    def peer_l1() -> float:
        nonlocal goal
        seconds, last, kept["l1 path"] = crfsuite_fit(X, y, "lbfgs", c1=1.0, c2=0.0, max_iterations=30)
        goal = last["loss"]
        return seconds

    def ours_l1() -> float:
        _, kept["l1"] = mercer_fit(sequences, y, solver="owlqn", penalty="l1", C=1.0, max_iter=60)
        return seconds_to(kept["l1"], goal, 1.0)

    peer, ours = interleaved(repeats, peer_l1, ours_l1)
    report.add(task, "training (ℓ1) to CRFsuite's objective after 30", peer, ours, "s", 3.0, f"objective {goal:.1f}")
    report.add(
        task,
        "quality after training (ℓ1)",
        peer_quality(kept["l1 path"]),
        quality(kept["l1"].predict(test)),
        "score/s",
        0.998,
    )

    for name, algorithm, solver, params, options in (
        ("SGD, 10 epochs", "l2sgd", "sgd", {"c2": 1.0, "max_iterations": 10}, {"C": 0.5}),
        ("averaged perceptron, 10 epochs", "ap", "averaged-perceptron", {"max_iterations": 10}, {}),
        ("passive-aggressive, 10 epochs", "pa", "passive-aggressive", {"max_iterations": 10}, {"C": 1.0}),
    ):

        def peer_online(algorithm: str = algorithm, params: dict = params) -> float:
            seconds, _, kept["online path"] = crfsuite_fit(X, y, algorithm, **params)
            return seconds

        def ours_online(seed: int = 0, solver: str = solver, options: dict = options) -> float:
            seconds, kept["online"] = mercer_fit(
                sequences, y, solver=solver, max_iter=10, tol=0.0, random_state=seed, **options
            )
            return seconds

        peer, ours = interleaved(repeats, peer_online, ours_online)
        report.add(task, name, peer, ours, "s", 3.0)
        # One order of the examples is worth 0.2 points more or less than another; CRFsuite has only the one.
        scores = []
        for seed in range(5):
            ours_online(seed)
            scores.append(quality(kept["online"].predict(test)))
        note = f"mean of 5 orders, {min(scores):.4f} to {max(scores):.4f}"
        ours = float(np.mean(scores))
        report.add(task, f"quality after {name}", peer_quality(kept["online path"]), ours, "score/s", 1.0, note)
    return model


def agreement(task: str, data: tuple, model: str, loss: float) -> None:
    """Our objective at the weights CRFsuite has written: the same function, so the same value."""
    X, y, _, _ = data
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    info = tagger.info()
    index = FeatureIndex()
    sequences = index.learn(X)
    labels = LabelIndex.from_sequences(y)
    number = {label: i for i, label in enumerate(labels.classes)}
    chain = Chain(len(labels), len(index))
    w = np.zeros(chain.n_weights)
    nodes = w[chain.slices["nodes"]].reshape(len(index), len(labels))
    transitions = w[chain.slices["transitions"]].reshape(len(labels), len(labels))
    for (name, label), weight in info.state_features.items():
        nodes[index.find(name), number[label]] = weight
    for (before, after), weight in info.transitions.items():
        transitions[number[before], number[after]] = weight
    risk = Risk(chain, Log(), sequences, labels.encode(y, sequences.lengths))
    ours = risk.value(w) + float(w @ w)
    relative = f"{ours / loss - 1:+.1e}"
    print(f"{task:10s} objective at CRFsuite's weights: CRFsuite {loss:.4f}, mercer {ours:.4f} ({relative})")


def entities(report: Report, repeats: int) -> None:
    """To the objective that CRFsuite has after 100 iterations, and how well both tag then."""
    template = Template.load("words+pos")
    sentences = load_conll2002("ned", "train")[: sized(14_000, 30)]
    X, y = [template.expand(s)[0] for s in sentences], [[token[-1] for token in s] for s in sentences]
    held_out = load_conll2002("ned", "testa")[: sized(None, 30)]
    X_test, y_test = [template.expand(s)[0] for s in held_out], [[token[-1] for token in s] for s in held_out]
    index = FeatureIndex()
    sequences, kept = index.learn(X), {}

    def peer_l2() -> float:
        trainer = crfsuite_trainer(X, y, "lbfgs", c1=0.0, c2=1.0, max_iterations=sized(100, 5))
        kept["model"] = tempfile.mktemp(suffix=".crfsuite")
        begin = time.process_time()
        trainer.train(kept["model"])
        kept["goal"] = trainer.logparser.last_iteration["loss"]
        return time.process_time() - begin

    def ours_l2() -> float:
        # Cut at the iteration that reaches the objective: a run finds it, and that many iterations are timed.
        if "reached" not in kept:
            values = Tagger(C=0.5, max_iter=60).fit(sequences, y).history_["objective"]
            kept["reached"] = next(i + 1 for i, value in enumerate(values) if 2 * value <= kept["goal"])
        begin = time.process_time()
        kept["tagger"] = Tagger(C=0.5, max_iter=kept["reached"], tol=0.0).fit(sequences, y)
        return time.process_time() - begin

    peer, ours = interleaved(repeats, peer_l2, ours_l2)
    value = 2 * kept["tagger"].history_["objective"][-1]
    note = f"objective {kept['goal']:.0f}, ours {value:.0f}, {kept['reached']} iterations"
    report.add("entities", "training (ℓ2) to CRFsuite's objective after 100", peer, ours, "s", 15.0, note)
    tagger = pycrfsuite.Tagger()
    tagger.open(kept["model"])
    scores = [span_f1(y_test, found) for found in ([tagger.tag(x) for x in X_test], kept["tagger"].predict(X_test))]
    report.add("entities", "F1 of spans at that point", *scores, "score/s", 0.99)


def as_dicts(X: list) -> list:
    """The same features as dicts, by what stands before the colon of a template's name."""
    out = []
    for sequence in X:
        out.append([dict(_pair(name) for name in token) for token in sequence])
    return out


def _pair(name: str) -> tuple[str, Any]:
    key, colon, value = name.partition(":")
    return (key, value) if colon else (name, True)


def tagging(report: Report, task: str, data: tuple, model: str, repeats: int) -> None:
    X, y, X_test, _ = data
    _, ours = mercer_fit(X, y, C=0.5, max_iter=10, tol=0.0)
    _, of_dicts = mercer_fit(as_dicts(X), y, C=0.5, max_iter=10, tol=0.0)
    dicts = as_dicts(X_test)
    peer = pycrfsuite.Tagger()
    peer.open(model)
    sequences = ours.index_.encode(X_test)
    items = [pycrfsuite.ItemSequence(x) for x in X_test]
    tokens = sequences.n_positions
    labels = peer.labels()

    def rate(call: Callable[[], Any]) -> Callable[[], float]:
        def timed() -> float:
            begin = time.process_time()
            call()
            return tokens / (time.process_time() - begin)

        return timed

    def peer_marginals() -> None:
        for item in items:
            peer.set(item)
            for t in range(len(item)):
                for label in labels:
                    peer.marginal(label, t)

    n = max(5, repeats)
    a, b = interleaved(n, rate(lambda: [peer.tag(x) for x in X_test]), rate(lambda: ours.predict(X_test)))
    report.add(task, "tagging, from lists of strings", a, b, "tokens/s", 8.0)
    a, b = interleaved(n, rate(lambda: [peer.tag(x) for x in dicts]), rate(lambda: of_dicts.predict(dicts)))
    report.add(task, "tagging, from dicts", a, b, "tokens/s", 8.0)
    a, b = interleaved(n, rate(lambda: [peer.tag(x) for x in items]), rate(lambda: ours.predict(sequences)))
    report.add(task, "tagging, from ItemSequence / Sequences", a, b, "tokens/s", 8.0)
    a, b = interleaved(n, rate(peer_marginals), rate(lambda: ours.predict_marginals(sequences)))
    report.add(task, "all marginals, from ItemSequence / Sequences", a, b, "tokens/s", 10.0)


def memory(report: Report, task: str) -> None:
    """Peak resident memory above that with the raw data loaded, in processes of their own."""
    figures = {}
    for side in ("crfsuite", "mercer"):
        command = [sys.executable, __file__, "--memory-of", side, "--tasks", task, *(["--smoke"] if SMOKE else [])]
        figures[side] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    peer, ours = figures["crfsuite"], figures["mercer"]
    bound = (ours["data"] + 6 * 8 * ours["weights"]) / 2**20
    named = bound + ours["names"] / 2**20
    report.add(
        task,
        "peak memory in training",
        peer["peak"] / 2**20,
        ours["peak"] / 2**20,
        "MiB",
        1.0,
        f"data + 6 x weights = {bound:.1f} MiB, with names of features {named:.1f} ({ours['weights']} weights; "
        "CRFsuite's memory holds its data too)",
    )


def memory_of(side: str, task: str) -> None:
    X, y, _, _ = load(task)

    def status(field: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        raise RuntimeError(field)

    import gc

    gc.collect()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    out: dict[str, float] = {}
    if side == "crfsuite":
        crfsuite_fit(X, y, "lbfgs", c1=0.0, c2=1.0, max_iterations=10)
    else:
        index = FeatureIndex()
        sequences = index.learn(X)
        _, tagger = mercer_fit(sequences, y, C=0.5, max_iter=10)
        out = {"data": sequences.nbytes, "weights": len(tagger.coef_)}
    peak = status("VmHWM") - before
    if side == "mercer":
        out["names"] = sum(len(name.encode()) + 4 for name in index.names())
    print(json.dumps({**out, "peak": peak}))


def alone(task: str, data: tuple) -> None:
    """Seconds of ours, where there is no peer to compare with."""
    X, y, X_test, y_test = data
    sequences = FeatureIndex().learn(X)
    for solver, options in (("lbfgs", {"C": 0.5}), ("sgd", {"C": 0.5}), ("averaged-perceptron", {})):
        seconds, tagger = mercer_fit(sequences, y, solver=solver, max_iter=10, tol=0.0, random_state=0, **options)
        begin = time.perf_counter()
        right = token_accuracy(y_test, tagger.predict(X_test))
        tagging = time.perf_counter() - begin
        line = f"10 iterations {seconds:8.3f} s, tagging {tagging:8.4f} s, {100 * right:.1f} % of tokens right"
        record(task, f"10 iterations, {solver}", ours=seconds)
        print(f"{task:10s} mercer, {solver:20s} {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=["equal", "ragged", "conll2000"])
    parser.add_argument("--parts", nargs="+", default=["training", "tagging", "memory", "entities"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-of", choices=["crfsuite", "mercer"])
    options = parse(parser, tasks=["equal", "ragged"], parts=["training", "tagging", "memory"], repeats=1)
    if options.memory_of:
        return memory_of(options.memory_of, options.tasks[0])
    against = f"python-crfsuite {version('python-crfsuite')} against mercer" if pycrfsuite else "mercer alone"
    machine = f"{_core.instruction_set()}, {platform.machine()}, {os.cpu_count()} cores"
    print(f"{against}, {machine}, load {os.getloadavg()[0]:.1f}")
    if pycrfsuite:
        print(f"{'task':10s} {'measure':48s} {'peer':>12s} {'mercer':>12s} {'unit':9s} {'ratio':>8s}")
    report = Report()
    for task in options.tasks:
        try:
            data = load(task)
        except FileNotFoundError as error:
            print(f"{task}: left out: {error}")
            continue
        if pycrfsuite is None:
            alone(task, data)
            continue
        model = ""
        if "training" in options.parts:
            model = training(report, task, data, options.repeats)
        if "tagging" in options.parts:
            model = model or crfsuite_fit(*data[:2], "lbfgs", c1=0.0, c2=1.0, max_iterations=10)[2]
            tagging(report, task, data, model, options.repeats)
        if "memory" in options.parts:
            memory(report, task)
    if pycrfsuite and "entities" in options.parts:
        with from_data("entities"):
            entities(report, options.repeats)
    below = [row for row in report.rows if row["ratio"] < row["aim"]]
    if pycrfsuite:
        print(f"{len(report.rows) - len(below)} of {len(report.rows)} measures reach their aim")


if __name__ == "__main__":
    main()
