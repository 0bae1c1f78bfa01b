"""Segmentations beside other semi-Markov tools, one thread each, in one run.

    python benchmarks/segments.py [--parts inference] [--repeats 5] [--small] [--smoke]

inference   log Z and its gradient in all part scores; how time and memory grow with the length of a sequence.
threads     two threads over many sequences, and from both ends of a long one.
decode      the best segments of entities beside dlib's, on the same features.
actions     made actions at five levels of difficulty: segments, chain and single frames; videos: 6, 4 and 3 actions.
paragraphs  prose, made documents, pieces of movie reviews (``MERCER_DATA``): segments beside models of sentences.
entities    Spanish and Dutch names (``MERCER_DATA``): segments beside a chain.
margins     the same, hinge and log loss on 3,000 sentences: time beside a chain's.

Peers are flash-semicrf 0.2.0 and torch-struct 0.5 on torch's CPU side (``pip install torch flash-semicrf==0.2.0
torch-struct==0.5``). Those that are not installed are named, and have no ratio. Seconds are processor time, medians of
runs in turn.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import SMOKE, exponent, interleaved, missing, parse, record, sized, spread
from scipy.special import logsumexp

from mercer.classification import LinearClassifier
from mercer.data import Sequences, Template
from mercer.data.segments import segments_from_frames, segments_to_frames
from mercer.datasets import (
    ActionTask,
    ParagraphTask,
    load_conll2002,
    load_movie_reviews,
    load_topics_prose,
    make_actions,
    make_paragraphs,
)
from mercer.markov import HiddenMarkovModel, HMMClassifier
from mercer.metrics import boundary_score, segment_confusion, span_f1, spans, token_accuracy
from mercer.segmentation import BoundaryClassifier, ParagraphFeatures, Segmenter, SegmentStatistics
from mercer.structures import Segments, SegmentScores
from mercer.tagging import Tagger


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


def inference(repeats: int, small: bool) -> None:
    """log Z and gradient against the peers, and growth with T."""
    print("\nlog Z + gradient in all part scores, float64, 1 thread, CPU seconds")
    print(f"{'':22}{'T':>6}{'K':>4}{'C':>4}{'batch':>6}{'peer':>12}{'mercer':>12}{'ratio':>9}  log Z differs by")
    for name, (module, prepare, shape) in PEERS.items():
        T, K, C, batch = shape
        theta, segments = scores(T, K, C, batch), Segments(C, 0, max_length=K)
        inner = max(1, sized(200_000, 1) // (T * batch * K))
        ours = many(lambda segments=segments, theta=theta: segments.marginals(theta), inner)  # type: ignore[misc]
        size = f"{name:22}{T:6}{K:4}{C:4}{batch:6}"
        if missing("torch", module):
            (mine,) = interleaved(repeats, ours)
            print(f"{size}{'':12}{mine / inner:12.6f}")
            record("inference", f"log Z and gradient, T = {T}", ours=mine / inner)
            continue
        theirs = prepare(theta, T, K, C, batch)
        gap = float(np.abs(theirs() - segments.log_partition(theta)).max())
        seconds, mine = interleaved(repeats, theirs, ours)
        mine /= inner
        shape_of = f"K = {K}, C = {C}, {batch} sequences"
        record("inference", f"log Z and gradient, T = {T}", peer=name, theirs=seconds, ours=mine, sizes=shape_of)
        print(f"{size}{seconds:12.4f}{mine:12.6f}{seconds / mine:8.0f}x  {gap:.1e}")
    growth(repeats)


def growth(repeats: int) -> None:
    K, C = 20, 20
    print(f"\ngrowth with T, K = {K}, C = {C}, one sequence, 1 thread")
    print(f"{'T':>8}{'log Z':>10}{'gradient':>10}{'argmax':>10} s {'gradient':>10} positions/s {'memory':>9} MB")
    lengths = sized([1_000, 3_000, 10_000, 30_000, 100_000], [100, 300])
    segments = Segments(C, 0, max_length=K)
    verbs = [segments.log_partition, segments.marginals, segments.argmax]
    rows = []
    for T in lengths:
        theta = scores(T, K, C, 1)
        inner = max(1, sized(30_000, 1) // T)
        calls = [many(lambda verb=verb, theta=theta: verb(theta), inner) for verb in verbs]  # type: ignore[misc]
        found = [s / inner for s in interleaved(min(repeats, 3), *calls)]
        rows.append(found)
        times = "".join(f"{seconds:10.4f}" for seconds in found)
        verbs_of = ("log Z", "gradient", "argmax")
        record("growth", f"T = {T:,}", values=dict(zip(verbs_of, found, strict=True)), sizes=f"K = {K}, C = {C}")
        megabytes = peak(T, K, C) if T in sized(lengths, lengths[-1:]) else float("nan")
        print(f"{T:8}{times}   {T / found[1]:10.0f}             {megabytes:9.1f}")
    names = ("log Z", "gradient", "argmax")
    slopes = [exponent(lengths, times) for times in zip(*rows, strict=True)]
    print("exponents of T:  " + "  ".join(f"{n} {s:.2f}" for n, s in zip(names, slopes, strict=True)))
    print(f"a table of all segments at T = {lengths[-1]} would take {lengths[-1] * K * C * 8 / 2**20:.0f} MB")


PEAK = """
import importlib.util, pathlib, sys
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
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


def threads(repeats: int, small: bool) -> None:
    """Two threads: over many sequences, and from both ends of a long one."""
    K, C = 20, 20
    for T, batch in sized(((200, 64), (100_000, 1)), ((50, 4), (500, 1))):
        theta = scores(T, K, C, batch)
        calls = [partial(Segments(C, 0, max_length=K, threads=n).marginals, theta) for n in (1, 2)]
        one, two = interleaved(max(repeats, sized(7, 1)), *calls, clock=time.perf_counter)
        print(f"\n{batch} sequence{'s' * (batch > 1)} of {T}, K = {K}, C = {C}, wall time of the gradient:")
        print(f"1 thread {one:.4f} s, 2 threads {two:.4f} s: {one / two:.2f}x")
        record("threads", f"{batch} x {T}", values={"1 thread": one, "2 threads": two})
        a, b = (call().frames for call in calls)
        assert (a == b).all(), "the number of threads changed the result"


# --------------------------------------------------------------------------------------------- actions

ACTION_LENGTH = 45


class FrameByFrame:
    """A classifier of single frames with the interface of a tagger."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> FrameByFrame:
        self.model.fit(np.concatenate(X), np.concatenate(y))
        return self

    def predict(self, X: Sequence[np.ndarray]) -> list[Any]:
        return [self.model.predict(x) for x in X]


def nearest(k: int) -> FrameByFrame:
    from sklearn.neighbors import KNeighborsClassifier

    return FrameByFrame(KNeighborsClassifier(k))


class WindowedHMM:
    """A hidden Markov model for each class, fitted to its segments; a frame has the class of the window around it."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.model = HMMClassifier(HiddenMarkovModel(2, "gaussian", n_init=1, max_iter=20), random_state=0)

    def fit(self, X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> WindowedHMM:
        parts = [(x[a:b], c) for x, labels in zip(X, y, strict=True) for a, b, c in segments_from_frames(labels)]
        self.model.fit([part for part, _ in parts], [label for _, label in parts])
        return self

    def predict(self, X: Sequence[np.ndarray]) -> list[Any]:
        half = self.window // 2
        windows = [x[max(0, t - half) : t + half + 1] for x in X for t in range(len(x))]
        return np.split(self.model.predict(windows), np.cumsum([len(x) for x in X])[:-1])


def frame_svm(C: float) -> FrameByFrame:
    return FrameByFrame(LinearClassifier(C=C, random_state=0))


def chain_svm(C: float) -> Tagger:
    return Tagger(loss="hinge", C=C, tol=1e-2, random_state=0)


def segment_svm(C: float, starts: bool, solver: str = "bmrm") -> Segmenter:
    return Segmenter(
        ACTION_LENGTH,
        features=SegmentStatistics(),
        statistics=("sum", "mean", "variance"),
        length_model="log-normal",
        boundaries=starts,
        C=C,
        solver=solver,
        tol=1e-2,
        random_state=0,
    )


ACTION_CS = sized((0.1, 1.0, 10.0), (1.0,))
ACTION_GRID = [{"C": C} for C in ACTION_CS]
WINDOW_GRID = [{"window": window} for window in sized((5, 11, 21), (5,))]
SEGMENT_GRID = [{"C": C, "starts": starts} for C in ACTION_CS for starts in sized((False, True), (False,))]


def chosen(make: Callable[..., Any], grid: list[dict[str, Any]], task: ActionTask, inside: list[int]) -> dict[str, Any]:
    """The settings with the most right frames, over two halves of the training sequences."""
    if len(grid) == 1:
        return grid[0]
    halves = inside[::2], inside[1::2]

    def score(settings: dict[str, Any]) -> float:
        both = halves, halves[::-1]
        return sum(accuracy(task, held, answers_of(make(**settings), task, kept, held)) for kept, held in both)

    return max(grid, key=score)


def answers_of(model: Any, task: ActionTask, inside: list[int], outside: list[int]) -> list[list[Any]]:
    """Segments of held-out sequences: a segmenter knows neighbours of one label, the others find runs of labels."""
    X, held = ([task.X[i] for i in part] for part in (inside, outside))
    if isinstance(model, Segmenter):
        return model.fit(X, [task.segments[i] for i in inside]).predict_segments(held)
    model.fit(X, [task.y[i] for i in inside])
    return [segments_from_frames(y) for y in model.predict(held)]


def accuracy(task: ActionTask, part: list[int], found: Sequence[Any]) -> float:
    labels = [segments_to_frames(y) for y in found]
    return float(np.mean(np.concatenate(labels) == np.concatenate([task.y[i] for i in part])))


def action_fold(task: ActionTask, inside: list[int], outside: list[int]) -> dict[str, tuple[float, float, list[Any]]]:
    """Share of right frames, F1 of boundaries and the labels of every method, on one fold."""
    segment = chosen(segment_svm, SEGMENT_GRID, task, inside)
    models = {
        **{f"{k}-NN": nearest(k) for k in (1, 3, 5)},
        "HMM a class, windows": WindowedHMM(**chosen(WindowedHMM, WINDOW_GRID, task, inside)),
        "frame SVM": frame_svm(**chosen(frame_svm, ACTION_GRID, task, inside)),
        "chain SVM": chain_svm(**chosen(chain_svm, ACTION_GRID, task, inside)),
        "segment SVM, cutting plane": segment_svm(**segment, solver="cutting-plane"),
        "segment SVM, bmrm": segment_svm(**segment),
    }
    found = {}
    lengths = [len(task.y[i]) for i in outside]
    for name, model in models.items():
        answers = answers_of(model, task, inside, outside)
        starts = [[start for start, _, _ in one] for one in answers]
        f1 = boundary_score([task.starts[i] for i in outside], starts, lengths).f1
        found[name] = accuracy(task, outside, answers), f1, answers
    return found


def folds_of(n: int, persons: int) -> list[tuple[list[int], list[int]]]:
    """Five folds, each with a fifth of the sequences of every person."""
    one = n // persons
    tests = [[p * one + i for p in range(persons) for i in range(k, one, 5)] for k in range(5)]
    return [([i for i in range(n) if i not in test], test) for test in tests]


def action_rows(tasks: list[ActionTask], folds: int) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = {}
    for task in tasks:
        for inside, outside in folds_of(len(task.X), int(task.persons.max()) + 1)[:folds]:
            for name, (right, f1, _) in action_fold(task, inside, outside).items():
                rows.setdefault(name, []).append((right, f1))
    return rows


def pair(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def actions(repeats: int, small: bool) -> None:
    """Tables by level of difficulty."""
    n_tasks, folds = sized((1, 2) if small else (2, 5), (1, 1))
    levels = sized((1, 2, 3, 4, 5), (1,))
    table: dict[str, list[list[tuple[float, float]]]] = {}
    for difficulty in levels:
        tasks = [make_actions(5, sized(150, 40), difficulty=difficulty, random_state=seed) for seed in range(n_tasks)]
        for name, found in action_rows(tasks, folds).items():
            table.setdefault(name, []).append(found)
    title = f"2 actions, 2 persons, 150 frames, 10 sequences: {n_tasks} tasks × {folds} folds, mean ± sd"
    for k, what in enumerate(("frames right", "F1 of boundaries")):
        print(f"\n{what}; {title}")
        print(f"{'difficulty':28}" + "".join(f"{d:>16}" for d in levels) + f"{'mean':>8}")
        for name, rows in table.items():
            figures = [[one[k] for one in level] for level in rows]
            columns = {str(level): spread(cell) for level, cell in zip(levels, figures, strict=True)}
            record(f"actions, {what}", name, values=columns)
            print(f"{name:28}" + "".join(f"{pair(level):>16}" for level in figures) + f"{np.mean(figures):8.3f}")


# What the source reports for its videos: accuracy, F1 of boundaries (None: not given).
VIDEOS = {
    "6 actions (for KTH, table 6.1)": (
        {"n_actions": 6},
        {"frame SVM": (0.851, None), "segment SVM, bmrm": (0.950, None)},
    ),
    "4 actions (for CMU MoBo, table 6.3)": (
        {"n_actions": 4, "stay": 0.3, "drift": 0.5},
        {
            "1-NN": (0.65, 0.16),
            "HMM a class, windows": (0.68, None),
            "frame SVM": (0.67, 0.15),
            "chain SVM": (0.75, 0.43),
            "segment SVM, cutting plane": (0.75, 0.59),
            "segment SVM, bmrm": (0.78, 0.59),
        },
    ),
    "3 actions (for WBD, table 6.4)": (
        {"n_actions": 3},
        {
            "1-NN": (0.82, None),
            "3-NN": (0.80, None),
            "5-NN": (0.77, None),
            "frame SVM": (0.84, None),
            "chain SVM": (0.87, None),
            "segment SVM, cutting plane": (0.91, None),
            "segment SVM, bmrm": (0.94, None),
        },
    ),
}


def videos(repeats: int, small: bool) -> None:
    """Tables of 6, 4 and 3 actions."""
    folds = 1 if small else sized(5, 1)
    for title, (options, printed) in list(VIDEOS.items())[sized(0, 2) :]:
        task = make_actions(5, sized(120, 40), emissions="histogram", difficulty=3, random_state=0, **options)
        print(f"\n{title}: made histograms of 50 words, difficulty 3, {folds} folds; the videos' figures beside")
        rows: dict[str, list[tuple[float, float]]] = {}
        truth, labels = [], []
        for inside, outside in folds_of(len(task.X), 2)[:folds]:
            for name, (right, f1, found) in action_fold(task, inside, outside).items():
                rows.setdefault(name, []).append((right, f1))
                if name == "segment SVM, bmrm":
                    labels += found
                    truth += [task.segments[i] for i in outside]
        print(f"{'':28}{'frames right':>16}{'F1 of starts':>16}{'videos':>14}")
        for name, found in rows.items():
            record("videos", f"{title}, {name}", values={
                "frames right": spread([a for a, _ in found]), "F1 of starts": spread([b for _, b in found])
            })  # fmt: skip
            theirs = " / ".join("–" if x is None else f"{x:.2f}" for x in printed.get(name, (None, None)))
            print(f"{name:28}{pair([a for a, _ in found]):>16}{pair([b for _, b in found]):>16}{theirs:>14}")
        names, confusion = segment_confusion(truth, labels)
        print("confusion by segment (bmrm): " + "; ".join(" ".join(f"{x:.2f}" for x in row) for row in confusion))
        for name, row in zip(names, confusion, strict=True):
            shares = {f"found as {other}": round(float(x), 2) for other, x in zip(names, row, strict=True)}
            record("confusions", f"{title}, action {name}", values=shares)


# ------------------------------------------------------------------------------------------ paragraphs


PARAGRAPH_MODELS: dict[str, Callable[[float], Any]] = {
    "segments": lambda C: Segmenter(C=C, form="boundaries", tol=1e-2, random_state=0),
    "sentences, SVM": lambda C: BoundaryClassifier(LinearClassifier(C=10 * C, random_state=0)),
    "sentences, boosted stumps": lambda C: BoundaryClassifier("stumps"),
    "majority": lambda C: BoundaryClassifier("majority"),
}
# With features of single words, and C: tried by the linear models. Stumps would take minutes with thousands of words.
LINEAR = [(words, C) for words in (False, True) for C in sized((0.1, 1.0), (1.0,))]
PARAGRAPH_GRID = {"segments": LINEAR, "sentences, SVM": LINEAR}


def paragraph_fold(task: ParagraphTask, train: list[int], dev: list[int], test: list[int]) -> dict[str, dict[str, Any]]:
    """Scores of every model on the test documents: settings and offset by the held-out ones."""
    parts = {"train": train, "dev": dev, "test": test}
    y = {name: [task.starts[i] for i in part] for name, part in parts.items()}
    features = {}
    for words in (False, True):
        pack = ParagraphFeatures(words=words)
        features[words] = {"train": pack.fit_transform([task.documents[i] for i in train])}
        features[words] |= {name: pack.transform([task.documents[i] for i in parts[name]]) for name in ("dev", "test")}
    lengths = task.lengths[test]
    found: dict[str, dict[str, Any]] = {}
    for name, make in PARAGRAPH_MODELS.items():
        best = (-1.0, None, False)
        for words, C in PARAGRAPH_GRID.get(name, [(False, 1.0)]):
            model = make(C).fit(features[words]["train"], y["train"])
            if name != "majority":
                model.tune_offset(features[words]["dev"], y["dev"])
            score = boundary_score(y["dev"], model.predict(features[words]["dev"]), task.lengths[dev]).f1
            best = max(best, (score, model, words), key=lambda one: one[0])
        _, model, words = best
        found[name] = {"f1": boundary_score(y["test"], model.predict(features[words]["test"]), lengths)}
        if name != "majority":
            model.tune_offset(features[words]["dev"], y["dev"], metric="accuracy")
            found[name]["accuracy"] = boundary_score(y["test"], model.predict(features[words]["test"]), lengths)
    return found


def review_pieces(n_documents: int = 60) -> ParagraphTask:
    """Documents of 6 to 10 pieces of 3 to 6 sentences, each from another movie review (which has no paragraphs)."""
    rng = np.random.default_rng(0)
    texts = load_movie_reviews().texts
    reviews = [[line.strip() for line in text.splitlines() if line.strip()] for text in texts]
    waiting = iter(rng.permutation([i for i, review in enumerate(reviews) if len(review) >= 6]))
    documents, starts = [], []
    for _ in range(n_documents):
        pieces = []
        for i in itertools.islice(waiting, int(rng.integers(6, 11))):
            length = int(rng.integers(3, 7))
            start = int(rng.integers(len(reviews[i]) - length + 1))
            pieces.append(reviews[i][start : start + length])
        documents.append([sentence for piece in pieces for sentence in piece])
        starts.append(np.cumsum([0, *map(len, pieces[:-1])]))
    return ParagraphTask(documents, starts, [f"reviews {i}" for i in range(n_documents)])


def paragraphs(repeats: int, small: bool) -> None:
    """Tables in the shape of 5.2 and 5.6 of the source, with the offset tuned for F1 and for accuracy (5.4, 5.5)."""
    n_folds = sized(2 if small else 10, 1)  # as in table 5.6
    n = sized(60, 6)
    tasks = {
        "Python's reference (pydoc_data.topics)": load_topics_prose(),
        "made, cues of paragraphs only": make_paragraphs(n, topic_share=0.35),
        "made, with words that open paragraphs": make_paragraphs(n, topic_share=0.35, cue_share=0.5),
    }
    if SMOKE:
        del tasks["Python's reference (pydoc_data.topics)"]
    elif os.environ.get("MERCER_DATA"):
        tasks["pieces of movie reviews"] = review_pieces()
    for title, task in tasks.items():
        n = len(task)
        order = np.random.default_rng(0).permutation(n)
        rows: dict[str, list[dict[str, Any]]] = {}
        for k in range(n_folds):
            held = order[k :: max(n_folds, 2)]
            rest = [i for i in order if i not in set(held)]
            dev = rest[::4]
            train = [i for i in rest if i not in set(dev)]
            for name, found in paragraph_fold(task, train, dev, list(held)).items():
                rows.setdefault(name, []).append(found)
        n_starts = sum(len(s) - 1 for s in task.starts)
        share = 1 - n_starts / (task.lengths.sum() - n)
        print(
            f"\n{title}: {n} documents, {task.lengths.sum()} sentences, {n_starts + n} paragraphs, "
            f"{100 * max(share, 1 - share):.1f} % in the larger class; {n_folds} folds, mean ± sd"
        )
        print(f"{'offset for F1':28}{'accuracy':>16}{'recall':>16}{'precision':>16}{'F1':>16}   for accuracy: acc, F1")
        for name, found in rows.items():
            fields = ("accuracy", "recall", "precision", "f1")
            figures = "".join(f"{pair([getattr(one['f1'], f) for one in found]):>16}" for f in fields)
            other = ""
            if "accuracy" in found[0]:
                other = "  ".join(pair([getattr(one["accuracy"], f) for one in found]) for f in ("accuracy", "f1"))
            print(f"{name:28}{figures}   {other}")
        record(
            "paragraphs", title, values={name: spread([one["f1"].f1 for one in found]) for name, found in rows.items()}
        )
    print(
        "\nthe source's books (table 5.6, F1 over 10 folds): segments .40/.55/.78/.71, SVM .35/.25/.43/.41, "
        "boosted stumps .29/.52/.81/.62 (English, German, one story, one author)"
    )


# -------------------------------------------------------------------------------------------- entities

ENTITIES = Template.parse(
    Template.load("words+pos").text
    + "".join(f"U3{i}:%x[{row},2]\n" for i, row in enumerate((-1, 0, 1)))
    + "".join(f"U4{i}:%x[{row},3]\n" for i, row in enumerate((-1, 0, 1)))
    + "U45:%x[-1,3]/%x[0,3]\nU46:%x[0,3]/%x[1,3]\n"
    + "".join(f"U5{column}:%x[0,{column}]\n" for column in (4, 5))
)


def spelled(token: tuple[str, ...]) -> tuple[str, ...]:
    """Word, part of speech, lower case, shape, prefix and suffix."""
    word = token[0]
    shape = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word)
    short = "".join(c for c, _ in itertools.groupby(shape))
    return word, token[1], word.lower(), short, word[:3], word[-3:]


corpus = functools.cache(load_conll2002)


def entity_data(language: str, part: str, limit: int | None) -> tuple[list[Any], list[list[str]]]:
    """Sentences as columns, and IOB2 tags."""
    sentences = corpus(language, part)[:limit]
    X = [[spelled(token) for token in sentence] for sentence in sentences]
    y = []
    for sentence in sentences:
        tags = ["O"] * len(sentence)
        for a, b, kind in spans([token[-1] for token in sentence]):
            tags[a:b] = [f"B-{kind}", *[f"I-{kind}"] * (b - a - 1)]
        y.append(tags)
    return X, y


def entities(repeats: int, small: bool) -> None:
    """Span F1 and speed of segments and chain on the same features."""
    if not os.environ.get("MERCER_DATA"):
        print("\nentities: left out, set MERCER_DATA to the folder of public data sets (conll2002)")
        return
    limit = sized(600 if small else None, 10)
    print(f"\nentities, {limit or 'all'} training sentences, the log loss; C by testa, one look at testb")
    print(f"{'':20}{'C':>6}{'testa F1':>10}{'testb F1':>10}{'weights':>10}{'train s':>9}{'decoded tokens/s':>18}")
    for language in sized(("esp", "ned"), ("esp",)):
        (X, y), (X_a, y_a), (X_b, y_b) = (entity_data(language, part, limit) for part in ("train", "testa", "testb"))
        makers: dict[str, Callable[[float], Any]] = {
            "chain": lambda C: Tagger(C=C, template=ENTITIES, tol=1e-3, random_state=0),
            "segments": lambda C: Segmenter(
                {"O": 1}, C=C, loss="log", template=ENTITIES, form="bio", tol=1e-3, random_state=0
            ),
        }
        kept, times = {}, {}
        for name, make in makers.items():
            best = (-1.0, 0.0, None)
            for C in (0.3,) if small else (0.3, 3.0):
                start = time.process_time()
                model = make(C).fit(X, y)
                seconds = time.process_time() - start
                score = span_f1(y_a, model.predict(X_a))
                if score > best[0]:
                    best, times[name] = (score, C, model), seconds
            kept[name] = best
        encoded = {name: kept[name][2].index_.encode(X_b, ENTITIES) for name in kept}
        seconds = interleaved(min(repeats, 3), *(partial(kept[name][2].predict, encoded[name]) for name in kept))
        n_tokens = sum(map(len, y_b))
        for (name, (score, C, model)), spent in zip(kept.items(), seconds, strict=True):
            final = span_f1(y_b, model.predict(encoded[name]))
            columns = {"testb F1": round(final, 3), "decoded tokens/s": round(n_tokens / spent)}
            record("entities", f"{language}, {name}", values=columns)
            print(
                f"{language:10}{name:10}{C:6}{score:10.4f}{final:10.4f}{len(model.coef_):10}{times[name]:9.1f}"
                f"{n_tokens / spent:18.0f}"
            )


def margins(repeats: int, small: bool) -> None:
    """Hinge and log loss on 3,000 Spanish sentences, segments beside a chain: time, and F1 of spans on testa."""
    if not os.environ.get("MERCER_DATA"):
        print("\nmargins: left out, set MERCER_DATA to the folder of public data sets (conll2002)")
        return
    n = sized(600 if small else 3000, 10)
    (X, y), (X_a, y_a) = (entity_data("esp", part, size) for part, size in (("train", n), ("testa", sized(None, 10))))
    print(f"\nmargins: {n} Spanish sentences, tol 1e-2 (hinge, C = 0.1) and 1e-3 (log, C = 0.3)")
    for loss, C, tol in (("hinge", 0.1, 1e-2), ("log", 0.3, 1e-3)):
        options = {"C": C, "template": ENTITIES, "tol": tol, "random_state": 0}
        models = (Tagger(loss, **options), Segmenter({"O": 1}, loss=loss, form="bio", **options))
        chain, segments = interleaved(1, *(partial(model.fit, X, y) for model in models))
        scores = [span_f1(y_a, model.predict(X_a)) for model in models]
        sizes = f"{n} sentences, F1 {100 * scores[1]:.2f}, chain {100 * scores[0]:.2f}"
        record("margins", f"{loss}, training", ours=segments, theirs=chain, peer="mercer Tagger", sizes=sizes)
        print(f"{loss:8}chain {chain:7.2f} s, segments {segments:7.2f} s = {segments / chain:.2f} times, {sizes}")


# ---------------------------------------------------------------------------------------------- decode


def span_data(small: bool) -> tuple[str, list[Any], list[list[str]], list[Any], list[list[str]]]:
    """Sentences with one kind of span, as dlib's segmenter takes them."""
    limit = sized(300 if small else 1500, 10)
    if os.environ.get("MERCER_DATA"):
        (X, y), (X_b, y_b) = (entity_data("esp", part, limit) for part in ("train", "testb"))
        title = f"Spanish entities without their kinds, {limit} sentences for training"
    else:
        rng = np.random.default_rng(0)
        X, y, X_b, y_b = [], [], [], []
        for k in range(2 * limit):
            words, tags = [], []
            while len(words) < 20:
                inside = rng.random() < 0.2
                size = int(rng.integers(1, 4)) if inside else 1
                words += [("N" if inside else "w") + str(rng.integers(400)) for _ in range(size)]
                tags += [f"{'BI'[j > 0]}-X" if inside else "O" for j in range(size)]
            (X if k < limit else X_b).append([spelled((word, "x")) for word in words])
            (y if k < limit else y_b).append(tags)
        title = "made sentences"
    both = [[[tag if tag == "O" else tag[:2] + "X" for tag in tags] for tags in part] for part in (y, y_b)]
    return title, X, both[0], X_b, both[1]


def decode(repeats: int, small: bool) -> None:
    """Tokens a second beside dlib, features given to both as numbers."""
    title, X, y, X_b, y_b = span_data(small)
    n_tokens = sum(map(len, y_b))
    # The second as dlib: outside positions are segments of length 1, and starts have no features of their own.
    settings = {"loss": "hinge", "template": ENTITIES, "form": "bio", "C": 0.1, "random_state": 0}
    models = {
        "mercer": Segmenter(tol=0.1, **settings).fit(X, y),
        "mercer, as dlib": Segmenter({"O": 1}, boundaries=False, tol=1e-2, **settings).fit(X, y),
    }
    index = models["mercer"].index_
    encoded = {"train": index.encode(X, ENTITIES), "test": index.encode(X_b, ENTITIES)}
    tests = {name: model.index_.encode(X_b, ENTITIES) for name, model in models.items()}
    calls: list[Callable[[], Any]] = [partial(model.predict_segments, tests[name]) for name, model in models.items()]
    names = list(models)
    found = {name: model.predict(tests[name]) for name, model in models.items()}
    print(f"\ndecode: {title}, {encoded['test'].n_features} features, {n_tokens} tokens, labels X and O, 1 thread")
    if not missing("dlib"):
        import dlib

        samples = {name: dlib_samples(part) for name, part in encoded.items()}
        ranges = dlib.rangess()
        for tags in y:
            one = dlib.ranges()
            one.extend(dlib.range(a, b) for a, b, _ in spans(tags))
            ranges.append(one)
        parameters = dlib.segmenter_params()
        parameters.window_size, parameters.num_threads, parameters.C = 1, 1, 10.0
        parameters.use_high_order_features = False
        theirs = dlib.train_sequence_segmenter(samples["train"], ranges, parameters)
        calls.append(lambda: [theirs(x) for x in samples["test"]])
        names.append("dlib, BIO")
        found["dlib, BIO"] = [dlib_tags(answer, len(tags)) for answer, tags in zip(calls[-1](), y_b, strict=True)]
    seconds = interleaved(sized(4 * max(repeats, 5), 1), *calls)
    print(f"{'':16}{'span F1':>9}{'tokens right':>14}{'CPU s':>9}{'tokens/s':>12}")
    for name, spent in zip(names, seconds, strict=True):
        f1, right = span_f1(y_b, found[name]), token_accuracy(y_b, found[name])
        record("decode", name, values={"span F1": round(f1, 4), "tokens/s": round(n_tokens / spent)})
        print(f"{name:16}{f1:9.4f}{right:14.4f}{spent:9.4f}{n_tokens / spent:12.0f}")
    if len(seconds) > len(models):
        first, second = (seconds[-1] / spent for spent in seconds[:2])
        print(f"mercer decodes {first:.2f} times as many tokens a second, {second:.2f} times with dlib's segments")


def dlib_samples(X: Sequences) -> Any:
    import dlib

    rows, samples = X.matrix().tocsr(), dlib.sparse_vectorss()
    for a, b in itertools.pairwise((X.offsets - X.offsets[0]).tolist()):
        sentence = dlib.sparse_vectors()
        for t in range(a, b):
            vector = dlib.sparse_vector()
            low, high = rows.indptr[t], rows.indptr[t + 1]
            columns = zip(rows.indices[low:high], rows.data[low:high], strict=True)
            vector.extend(dlib.pair(int(j), float(v)) for j, v in sorted(columns))
            sentence.append(vector)
        samples.append(sentence)
    return samples


def dlib_tags(ranges: Any, n: int) -> list[str]:
    tags = ["O"] * n
    for one in ranges:
        tags[one.begin : one.end] = ["B-X", *["I-X"] * (one.end - one.begin - 1)]
    return tags


# ------------------------------------------------------------------------------------------------ main

PARTS: dict[str, Callable[[int, bool], None]] = {
    "inference": inference,
    "actions": actions,
    "videos": videos,
    "paragraphs": paragraphs,
    "entities": entities,
    "margins": margins,
    "decode": decode,
    "threads": threads,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="fewer folds, tasks and sentences: to see that it runs")
    arguments = parse(parser, repeats=1, small=True)
    warnings.filterwarnings("ignore")
    for part in arguments.parts:
        begin = time.perf_counter()
        PARTS[part](arguments.repeats, arguments.small)
        print(f"({part}: {time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
