"""``mercer demo``: the benefit of structure, in a few seconds and without any data.

Handwritten keypad codes are read digit by digit by logistic regression, by a tagger on the same pixels, and by a tagger
with the keypad's rule as a constraint. Actions in sequences of frames are found frame by frame, by a tagger, and by a
segmenter of whole segments. Then follow shapes in noisy images (:mod:`mercer.cli.demo_images`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable
from mercer.cli.demo_faces import run_faces, show_faces
from mercer.cli.demo_images import run_images, show_images
from mercer.cli.demo_parts import run_parts, show_parts
from mercer.cli.demo_shares import run_shares, show_shares

if TYPE_CHECKING:
    import numpy as np

    from mercer.datasets import ActionTask, DigitCodes
    from mercer.report.demo import ActionResult, Cutter, DemoResult, Reader

_KEYPAD = ("123", "456", "789", " 0 ")
_GRID = (0.03, 0.1, 0.3, 1.0)
_FOLDS = 3
_ACTIONS = ("walk", "bend", "draw")
_DIFFICULTY = 5  # of 5: where single frames say little
_ACTION_GRID = (0.1, 1.0, 10.0)


def demo(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PATH", help="Write a page with pictures here.")
    ] = None,
) -> None:
    """Read handwritten codes, find actions, segment images: one by one, and as a whole. Needs no data, takes seconds.

    [bold]Example[/bold]
      mercer demo --output demo.html
    """
    if output is not None:
        check_writable(output)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # One thread for each: the problems are small, and training times can be compared.
    with threadpool_limits(1):
        result = run_demo(_shown)
    if output is None:
        terminal.say("for a page with the pictures: mercer demo --output demo.html")
        return
    from mercer.report import write_page
    from mercer.report.demo import demo_page

    write_page(output, demo_page(result))
    terminal.say("page written to ", output)


def _shown(name: str, run: Callable[[], Any]) -> Any:
    """Run a part of the demo, and print its table as soon as it is done."""
    doing, show = _PARTS[name]
    with terminal.working(doing):
        value = run()
    show(value)
    return value


def _show_codes(part: dict[str, Any]) -> None:
    terminal.heading(f"{len(part['truth'])} handwritten codes, each digit a neighbour of the one before on a keypad")
    print()
    terminal.table(
        ["", "digits correct", "whole codes correct", "impossible", "training"],
        [
            (
                r.name,
                f"{100 * r.digits:.1f} %",
                f"{100 * r.codes:.1f} %",
                f"{100 * r.impossible:.1f} %",
                f"{r.seconds:.2f} s",
            )
            for r in (part["alone"], part["chain"], part["ruled"])
        ],
        "lrrrr",
    )
    print()


def _show_actions(result: ActionResult) -> None:
    terminal.heading(f"{len(result.X)} sequences of actions seen through noise, each with its typical duration")
    print()
    terminal.table(
        ["", "frames correct", "F1 of boundaries", "training"],
        [(c.name, f"{100 * c.frames:.1f} %", f"{c.boundaries:.3f}", f"{c.seconds:.2f} s") for c in result.cutters],
        "lrrr",
    )
    print()


_PARTS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "codes": ("reading handwritten codes", _show_codes),
    "actions": ("finding actions in films", _show_actions),
    "segmentation": ("labelling the pixels of images", show_images),
    "shares": ("learning digits from the shares of bags", show_shares),
    "faces": ("recognising faces", show_faces),
    "parts": ("dividing shapes into parts", show_parts),
}
"""What is done in each part, and how its result is printed."""


def neighbours() -> list[tuple[str, str]]:
    """Return all pairs of adjacent keys on the keypad."""
    place = {key: (i, j) for i, row in enumerate(_KEYPAD) for j, key in enumerate(row) if key != " "}
    return [
        (a, b)
        for a, (i, j) in sorted(place.items())
        for b, (k, l) in sorted(place.items())
        if abs(i - k) + abs(j - l) == 1
    ]


def run_demo(
    part: Callable[[str, Callable[[], Any]], Any] = lambda name, run: run(),
    n_train: int = 400,
    n_test: int = 200,
    seed: int = 0,
    n_sequences: int = 16,
    n_images: int = 8,
) -> DemoResult:
    """Train models on codes, actions and images, and test them on new data.

    ``part`` runs each part by its name, so that a caller can show one part before the next begins.
    """
    from mercer.report.demo import DemoResult

    codes = part("codes", lambda: _run_codes(n_train, n_test, seed))
    return DemoResult(
        n_train=n_train,
        keypad=_KEYPAD,
        actions=part("actions", lambda: run_actions(n_sequences, seed=seed)),
        segmentation=part("segmentation", lambda: run_images(n_images, seed=seed)),
        shares=part("shares", lambda: run_shares(seed=seed)),
        faces=part("faces", lambda: run_faces(seed=seed)),
        parts=part("parts", lambda: run_parts(seed=seed)),
        **codes,
    )


def _run_codes(n_train: int, n_test: int, seed: int) -> dict[str, Any]:
    """What `DemoResult` holds of the readers of codes."""
    from mercer.datasets import make_digit_codes
    from mercer.tagging import Constraints, Tagger

    codes = make_digit_codes(n_train, n_test, seed)
    labels = sorted({key for pair in neighbours() for key in pair})
    rule = Constraints.allowing(labels, neighbours())

    def chain(C: float, X: Sequence[Any], y: Sequence[Any]) -> Any:
        return Tagger(C=C).fit(X, y)

    def ruled(C: float, X: Sequence[Any], y: Sequence[Any]) -> Any:
        return Tagger(C=C, constraints=rule).fit(X, y)

    _, alone_reader = _reader("logistic regression, digit by digit", _DigitByDigit.train, codes, rule)
    tagger, chain_reader = _reader("tagger", chain, codes, rule)
    _, ruled_reader = _reader("tagger that knows the keypad", ruled, codes, rule)
    return {
        "labels": labels,
        "images": codes.images("test"),
        "truth": codes.y_test,
        "alone": alone_reader,
        "chain": chain_reader,
        "ruled": ruled_reader,
        "marginals": tagger.predict_marginals(codes.X_test),
        "transitions": tagger.transitions_,
        "history": tagger.history_,
    }


class _DigitByDigit:
    """Logistic regression with the interface of a tagger."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @classmethod
    def train(cls, C: float, X: Sequence[np.ndarray], y: Sequence[Sequence[str]]) -> _DigitByDigit:
        import numpy as np
        from sklearn.linear_model import LogisticRegression

        return cls(LogisticRegression(C=C, max_iter=1000).fit(np.concatenate(X), np.concatenate(y)))

    def predict(self, X: Sequence[np.ndarray]) -> list[list[str]]:
        return [self.model.predict(x).tolist() for x in X]


def _reader(name: str, train: Callable[..., Any], codes: DigitCodes, rule: Any) -> tuple[Any, Reader]:
    from mercer.metrics import sequence_accuracy, token_accuracy
    from mercer.report.demo import Reader

    C = _best_C(train, codes)
    begin = time.perf_counter()
    model = train(C, codes.X_train, codes.y_train)
    seconds = time.perf_counter() - begin
    readings = model.predict(codes.X_test)
    reader = Reader(
        name=name,
        C=C,
        readings=readings,
        digits=token_accuracy(codes.y_test, readings),
        codes=sequence_accuracy(codes.y_test, readings),
        impossible=sum(not rule.allows(reading) for reading in readings) / len(readings),
        seconds=seconds,
    )
    return model, reader


def _best_C(train: Callable[..., Any], codes: DigitCodes) -> float:
    """The C of the grid that reads most digits right, by cross-validation over the training codes."""
    from mercer.metrics import token_accuracy

    def score(C: float) -> float:
        total = 0.0
        for fold in range(_FOLDS):
            inside = [i for i in range(len(codes.y_train)) if i % _FOLDS != fold]
            outside = [i for i in range(len(codes.y_train)) if i % _FOLDS == fold]
            model = train(C, [codes.X_train[i] for i in inside], [codes.y_train[i] for i in inside])
            predicted = model.predict([codes.X_train[i] for i in outside])
            total += token_accuracy([codes.y_train[i] for i in outside], predicted)
        return total

    return max(_GRID, key=score)


def run_actions(n_train: int = 16, n_test: int = 20, seed: int = 0) -> ActionResult:
    """Train three models of actions and test them on new sequences."""
    from mercer.datasets import make_actions
    from mercer.report.demo import ActionResult
    from mercer.segmentation import Segmenter, SegmentStatistics
    from mercer.tagging import Tagger

    task = make_actions((n_train + n_test) // 2, n_actions=len(_ACTIONS), difficulty=_DIFFICULTY, random_state=seed)

    def chain(C: float, X: Sequence[Any], y: Sequence[Any]) -> Any:
        return Tagger(loss="hinge", solver="bmrm", C=C, tol=1e-2, random_state=0).fit(X, y)

    def whole(C: float, X: Sequence[Any], y: Sequence[Any]) -> Any:
        return Segmenter(
            45,
            features=SegmentStatistics(),
            statistics=("sum", "mean", "variance"),
            length_model="log-normal",
            boundaries=False,
            C=C,
            tol=1e-2,
            random_state=0,
        ).fit(X, y)

    # Both persons in both parts.
    half = len(task.X) // 2
    order = [i for pair in zip(range(half), range(half, 2 * half), strict=True) for i in pair]
    train, test = order[:n_train], order[n_train:]
    _, alone_cutter = _cutter("support vector machine, frame by frame", _FrameByFrame.train, task, train, test)
    _, chain_cutter = _cutter("tagger", chain, task, train, test)
    segmenter, whole_cutter = _cutter("segmenter", whole, task, train, test)
    return ActionResult(
        n_train=n_train,
        actions=list(_ACTIONS),
        X=[task.X[i] for i in test],
        truth=[task.segments[i] for i in test],
        alone=alone_cutter,
        chain=chain_cutter,
        whole=whole_cutter,
        marginals=segmenter.boundary_marginals([task.X[i] for i in test]),
    )


class _FrameByFrame:
    """A linear support vector machine with the interface of a tagger."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @classmethod
    def train(cls, C: float, X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> _FrameByFrame:
        import numpy as np

        from mercer.classification import LinearClassifier

        return cls(LinearClassifier(C=C, random_state=0).fit(np.concatenate(X), np.concatenate(y)))

    def predict(self, X: Sequence[np.ndarray]) -> list[Any]:
        return [self.model.predict(x) for x in X]


def _cutter(
    name: str, train: Callable[..., Any], task: ActionTask, inside: list[int], outside: list[int]
) -> tuple[Any, Cutter]:
    from mercer.data.segments import segments_from_frames
    from mercer.metrics import boundary_score, token_accuracy
    from mercer.report.demo import Cutter

    def fitted(C: float, chosen: list[int]) -> Any:
        return train(C, [task.X[i] for i in chosen], [task.y[i] for i in chosen])

    def accuracy(C: float) -> float:
        halves = [(inside[k::4] + inside[k + 1 :: 4], inside[2 - k :: 4] + inside[3 - k :: 4]) for k in (0, 2)]
        return sum(right(held, fitted(C, kept).predict([task.X[i] for i in held])) for kept, held in halves)

    def right(chosen: list[int], predicted: Any) -> float:
        return token_accuracy([task.y[i].tolist() for i in chosen], predicted)

    C = max(_ACTION_GRID, key=accuracy)
    begin = time.perf_counter()
    model = fitted(C, inside)
    seconds = time.perf_counter() - begin
    predicted = model.predict([task.X[i] for i in outside])
    segments = [segments_from_frames(y) for y in predicted]
    score = boundary_score(
        [task.starts[i] for i in outside],
        [[start for start, _, _ in one] for one in segments],
        [len(task.y[i]) for i in outside],
    )
    return model, Cutter(name, C, segments, right(outside, predicted), score.f1, seconds)
