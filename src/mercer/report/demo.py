"""The page of ``mercer demo``: compare independent and structured models of digit codes, action segments and images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mercer.report.charts import grey_image, heat_map, line_chart, probability_strip
from mercer.report.demo_faces import FaceResult, faces_part
from mercer.report.demo_images import ImageResult, images_part
from mercer.report.demo_parts import PartResult, parts_part
from mercer.report.demo_shares import ShareResult, shares_part
from mercer.report.html import Html, columns, figure, page, paragraph, section, table, text_of
from mercer.report.segmentations import plot_segment_confusion, plot_segmentation

__all__ = ["ActionResult", "Cutter", "DemoResult", "Reader", "demo_page"]


@dataclass(frozen=True)
class Reader:
    """A method that reads codes, with its scores.

    Attributes
    ----------
    name : str
    C : float
        The regularisation constant chosen by cross-validation on the training codes.
    readings : list of lists of str
        The predictions for the test codes.
    digits, codes : float
        Accuracy on digits and on whole codes.
    impossible : float
        Share of predictions that are impossible on the keypad.
    seconds : float
        Time of the final fit with the chosen C.
    """

    name: str
    C: float
    readings: list[list[str]]
    digits: float
    codes: float
    impossible: float
    seconds: float


@dataclass(frozen=True)
class Cutter:
    """A method that finds actions in sequences of frames, with its scores.

    Attributes
    ----------
    name : str
    C : float
        The regularisation constant chosen by cross-validation on the training sequences.
    segments : list of lists of (start, end, action)
        The predictions for the test sequences.
    frames : float
        Accuracy on frames.
    boundaries : float
        F1 of the segment boundaries.
    seconds : float
        Time of the final fit with the chosen C.
    """

    name: str
    C: float
    segments: list[list[tuple[int, int, int]]]
    frames: float
    boundaries: float
    seconds: float


@dataclass(frozen=True)
class ActionResult:
    """Results of the demo for actions.

    Attributes
    ----------
    n_train : int
        Number of training sequences.
    actions : list of str
        Names of the actions.
    X : list of arrays of shape (frames, features)
        The test sequences.
    truth : list of lists of (start, end, action)
    alone, chain, whole : Cutter
        A classifier of single frames; a tagger; a segmenter.
    marginals : list of arrays of shape (frames,)
        The segmenter's probability that a segment starts.
    """

    n_train: int
    actions: list[str]
    X: list[np.ndarray]
    truth: list[list[tuple[int, int, int]]]
    alone: Cutter
    chain: Cutter
    whole: Cutter
    marginals: list[np.ndarray]

    @property
    def cutters(self) -> tuple[Cutter, Cutter, Cutter]:
        """Return all methods that find actions."""
        return self.alone, self.chain, self.whole


@dataclass(frozen=True)
class DemoResult:
    """Results of the demo, for its page.

    Attributes
    ----------
    n_train : int
        Number of training codes.
    labels : list of str
    images : list of arrays of shape (length, 8, 8)
        The test codes.
    truth : list of lists of str
    alone, chain, ruled : Reader
        A classifier of single digits; the tagger; the tagger with the keypad's rule.
    marginals : list of arrays of shape (length, 10)
        The tagger's probabilities at each position of the test codes.
    transitions : array of shape (10, 10)
        The tagger's transition weights.
    keypad : sequence of str
        The rows of the keypad.
    actions : ActionResult
        The same comparison for segments.
    segmentation : ImageResult
        The same comparison for images.
    shares : ShareResult
        Digits classified from the class proportions of bags.
    faces : FaceResult
        Face recognition by sparse codes.
    parts : PartResult
        Point clouds segmented into parts.
    history : dict of lists
        Training history of the tagger.
    """

    n_train: int
    labels: list[str]
    images: list[np.ndarray]
    truth: list[list[str]]
    alone: Reader
    chain: Reader
    ruled: Reader
    marginals: list[np.ndarray]
    transitions: np.ndarray
    keypad: Sequence[str]
    actions: ActionResult
    segmentation: ImageResult
    shares: ShareResult
    faces: FaceResult
    parts: PartResult
    history: dict[str, list[float]] = field(default_factory=dict)

    @property
    def readers(self) -> tuple[Reader, Reader, Reader]:
        """Return all methods that read codes."""
        return self.alone, self.chain, self.ruled


def demo_page(result: DemoResult) -> str:
    """Return the page of the demo.

    Parameters
    ----------
    result : DemoResult
        Results of the demo.

    Returns
    -------
    str
        The document.
    """
    r = result
    return page(
        "Reading codes, not digits",
        columns(
            paragraph(
                "Somebody typed codes on a telephone keypad, moving the finger to a neighbouring key each "
                "time, and wrote them down by hand; the pictures are so noisy that a digit alone is often "
                "unreadable. A classifier reads the digits one by one; Mercer’s ",
                Html("<code>Tagger</code>"),
                " sees exactly the same pixels, but scores the whole code, so that readable digits help "
                "their neighbours.",
            ),
            _keypad(r.keypad),
        ),
        _headline(r),
        section("Comparison", *_comparison(r)),
        section("Examples", *_examples(r)),
        section("What the tagger learnt", *_learnt(r)),
        section("Segments, not frames", *_actions(r.actions)),
        section("Images, not pixels", *images_part(r.segmentation)),
        section("Shares, not labels", *shares_part(r.shares)),
        section("Faces from few measurements", *faces_part(r.faces)),
        section("Parts of shapes", *parts_part(r.parts)),
        section("The same in Python", *_program(r)),
    )


def _keypad(rows: Sequence[str]) -> Html:
    size, gap = 30, 5
    keys = [(j * (size + gap), i * (size + gap), key) for i, row in enumerate(rows) for j, key in enumerate(row)]
    drawn = "".join(
        f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{size - 1}" height="{size - 1}" rx="6"'
        f' fill="var(--faint)" stroke="var(--line)"/>'
        f'<text x="{x + size / 2}" y="{y + size / 2 + 5}" font-size="15" text-anchor="middle"'
        f' fill="var(--ink)">{text_of(key)}</text>'
        for x, y, key in keys
        if key != " "
    )
    width, height = 3 * (size + gap) - gap, len(rows) * (size + gap) - gap
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img"'
        f' aria-label="the keypad">{drawn}</svg>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _headline(r: DemoResult) -> Html:
    tiles = [
        (_percent(r.alone.codes), "of the codes correct, digit by digit"),
        (_percent(r.chain.codes), "of the codes correct, as a chain"),
        (_percent(r.ruled.codes), "of the codes correct, with the keypad rule"),
    ]
    inner = "".join(f"<div><strong>{text_of(a)}</strong><span>{text_of(b)}</span></div>" for a, b in tiles)
    return Html(f'<div class="tiles">{inner}</div>')


def _comparison(r: DemoResult) -> list[Html | str]:
    rows = [
        (
            reader.name,
            _percent(reader.digits),
            _percent(reader.codes),
            _percent(reader.impossible),
            f"{reader.seconds:.2f}",
            f"{reader.C:g}",
        )
        for reader in r.readers
    ]
    header = ["", "digits correct", "whole codes correct", "impossible readings", "training, s", "C"]
    n_test, n_digits = len(r.truth), sum(map(len, r.truth))
    return [
        table(rows, header, "lrrrrr"),
        f"{r.n_train:,} training codes and {n_test:,} test codes ({n_digits:,} digits); no "
        "image is in both. C, the weight of the loss against the penalty, was chosen for each method "
        "by cross-validation on the training codes. Training times are of the final fit, on one thread. A "
        "prediction is impossible if two consecutive digits are not neighbours on the keypad.",
    ]


def chosen_examples(r: DemoResult) -> list[int]:
    """Return the indices of the test codes shown: three that only the chain reads correctly, and one error."""
    errors = [
        [
            sum(a != b for a, b in zip(read, true, strict=True))
            for read, true in zip(reader.readings, r.truth, strict=True)
        ]
        for reader in (r.alone, r.chain)
    ]
    gained = [i for i in range(len(r.truth)) if errors[1][i] == 0 and errors[0][i] > 0]
    gained.sort(key=lambda i: -errors[0][i])
    lost = [i for i in range(len(r.truth)) if errors[1][i] > 0]
    lost.sort(key=lambda i: errors[1][i])
    return gained[:3] + lost[:1]


def _examples(r: DemoResult) -> list[Html | str]:
    out: list[Html | str] = [
        "The three codes with the largest gain of the tagger, and one that it gets wrong. Wrong digits are "
        "marked. The last row is the tagger’s probability of each digit at that position."
    ]
    for i in chosen_examples(r):
        out.append(_example(r, i))
    if len(out) == 1:
        out.append("All methods agree on every test code.")
    return out


def _example(r: DemoResult, i: int) -> Html:
    # Ink is dark on the page, so pictures are turned over; bytes, so that each keeps its own contrast.
    pictures = [grey_image(np.uint8(255 * (1 - np.clip(image, 0, 1))), scale=8) for image in r.images[i]]
    rows = [
        ("", pictures),
        ("written", [Html(f"<b>{text_of(digit)}</b>") for digit in r.truth[i]]),
        ("digit by digit", _marked(r.alone.readings[i], r.truth[i])),
        ("as a chain", _marked(r.chain.readings[i], r.truth[i])),
        ("with the keypad rule", _marked(r.ruled.readings[i], r.truth[i])),
        ("probabilities", [probability_strip(p, r.labels) for p in r.marginals[i]]),
    ]
    body = ""
    for name, cells in rows:
        line = "".join(f"<td>{text_of(cell)}</td>" for cell in cells)
        body += f'<tr><th scope="row">{text_of(name)}</th>{line}</tr>'
    return Html(f'<div class="scroll"><table class="strip"><tbody>{body}</tbody></table></div>')


def _marked(reading: Sequence[str], truth: Sequence[str]) -> list[Html]:
    return [
        Html(text_of(a)) if a == b else Html(f'<mark title="wrong: {text_of(b)} was written">{text_of(a)}</mark>')
        for a, b in zip(reading, truth, strict=True)
    ]


def _learnt(r: DemoResult) -> list[Html | str]:
    pairs = heat_map(
        r.transitions,
        r.labels,
        r.labels,
        caption="transition weights",
        row_axis="digit",
        column_axis="next digit",
    )
    charts = [
        figure(
            pairs,
            "Transition weights of the tagger without the rule. Blue pairs are neighbours on the keypad: "
            "the tagger has learnt the keypad from the codes.",
        )
    ]
    objective = r.history.get("objective", [])
    if objective:
        steps = list(range(1, len(objective) + 1))
        curve = line_chart({"objective": (steps, objective)}, "iteration", "objective", log_y=True)
        charts.append(figure(curve, f"Training: {len(steps)} iterations of L-BFGS in {r.chain.seconds:.2f} seconds."))
    return [columns(*charts)]


def _actions(r: ActionResult) -> list[Html | str]:
    rows = [(c.name, _percent(c.frames), f"{c.boundaries:.3f}", f"{c.seconds:.2f}", f"{c.C:g}") for c in r.cutters]
    names = dict(enumerate(r.actions))
    i = shown_actions(r)
    strips = plot_segmentation(
        r.X[i],
        r.truth[i],
        {"frame by frame": r.alone.segments[i], "tagger": r.chain.segments[i], "segmenter": r.whole.segments[i]},
        r.marginals[i],
        labels=list(names),
        names=names,
        caption="actions of one sequence",
    )
    confusion = plot_segment_confusion(r.truth, r.whole.segments, list(names), names=names)
    return [
        paragraph(
            "Two persons walk, bend and draw; each action has a typical duration, and the sensor data is noisy. A "
            "classifier labels single frames, a ",
            Html("<code>Tagger</code>"),
            " also learns which label follows which, and a ",
            Html("<code>Segmenter</code>"),
            " scores whole segments, with their lengths and the statistics of all their frames.",
        ),
        table(rows, ["", "frames correct", "F1 of boundaries", "training, s", "C"], "lrrrr"),
        f"{r.n_train} training and {len(r.X)} test sequences; all methods use the same frames. C was "
        "chosen by cross-validation on the training sequences. The noise is at its highest level, where durations help "
        "most: with half of the noise, the tagger is as good as the segmenter.",
        figure(
            strips,
            "The test sequence with the median gain of the segmenter over the tagger. Wrong frames are underlined; the "
            "curve is the segmenter’s probability that a segment starts.",
        ),
        figure(
            confusion,
            "Predicted labels of the true segments: shares of their frames, with equal weight per segment.",
        ),
    ]


def shown_actions(r: ActionResult) -> int:
    """Return the test sequence with the median gain of the segmenter over the tagger."""
    gains = [
        float(np.mean(_frames(whole) == _frames(true)) - np.mean(_frames(chain) == _frames(true)))
        for true, chain, whole in zip(r.truth, r.chain.segments, r.whole.segments, strict=True)
    ]
    return int(np.argsort(gains, kind="stable")[len(gains) // 2])


def _frames(segments: Sequence[tuple[int, int, int]]) -> np.ndarray:
    return np.repeat([c for _, _, c in segments], [b - a for a, b, _ in segments])


def _program(r: DemoResult) -> list[Html | str]:
    code = f"""from mercer.datasets import make_digit_codes
from mercer.tagging import Tagger

codes = make_digit_codes(n_train={r.n_train}, n_test={len(r.truth)})
tagger = Tagger(C={r.chain.C:g}).fit(codes.X_train, codes.y_train)
tagger.predict(codes.X_test)              # the best reading of each code
tagger.predict_marginals(codes.X_test)    # how sure it is of each digit
tagger.k_best(codes.X_test, 3)            # the three best readings

from mercer.datasets import make_actions
from mercer.segmentation import Segmenter, SegmentStatistics

task = make_actions(n_actions=3, difficulty=5)
statistics = ("sum", "mean", "variance")
segmenter = Segmenter(45, C={r.actions.whole.C:g}, features=SegmentStatistics(), statistics=statistics)
segmenter.fit(task.X[::2], task.y[::2])
segmenter.predict_segments(task.X[1::2])      # (start, end, action) of every segment
segmenter.boundary_marginals(task.X[1::2])    # how sure it is that a segment starts

from mercer.datasets import make_shapes
from mercer.labeling import GridLabeler

task = make_shapes({r.segmentation.n_train + len(r.segmentation.images)})
labeler = GridLabeler("hinge", C={r.segmentation.grid.C:g}, block=2, max_iter=30, tol=0.02)
labeler.fit(task.images[:{r.segmentation.n_train}], task.maps[:{r.segmentation.n_train}])
labeler.predict(task.images[{r.segmentation.n_train}:])            # a label map of each image
labeler.predict_marginals(task.images[{r.segmentation.n_train}:])  # how sure it is of each pixel"""
    return [Html(f"<pre><code>{text_of(code)}</code></pre>")]
