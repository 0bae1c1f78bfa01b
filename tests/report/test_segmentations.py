"""Strips of segmentations: well-formed, and they show what they are given."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.metrics import segment_confusion
from mercer.report import Html, plot_segment_confusion, plot_segmentation

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ET.Element:
    assert isinstance(svg, Html)
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    width, height = float(root.get("width", "nan")), float(root.get("height", "nan"))
    for element in root.iter():
        for name, value in element.attrib.items():
            if name in {"x", "y", "cx", "cy", "x1", "x2", "y1", "y2"}:
                assert -1 <= float(value) <= max(width, height) + 1, (name, value)
            if name in {"width", "height"}:
                assert float(value) > 0
            if name == "d":
                assert not re.search("nan|inf", value)
    return root


def hovers(svg: str) -> list[str]:
    return [element.text or "" for element in drawn(svg).iter(f"{SVG}title")]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in drawn(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "truth",
    [list("aabbb"), [(0, 2, "a"), (2, 5, "b")], ["B-a", "I-a", "B-b", "I-b", "I-b"], np.array(list("aabbb"))],
    ids=["frames", "triples", "bio", "array"],
)
def test_all_forms_of_a_segmentation_draw_the_same_strip(truth: object) -> None:
    assert plot_segmentation(truth=truth) == plot_segmentation(truth=list("aabbb"))


def test_every_segment_is_a_box_with_its_label_and_positions() -> None:
    svg = plot_segmentation(truth=list("aabbbc"))
    for hover in ("a, positions 0 to 1 (2)", "b, positions 2 to 4 (3)", "c, position 5"):
        assert hovers(svg).count(hover) == 1


def test_wrong_positions_are_underlined_and_counted() -> None:
    svg = plot_segmentation(truth=list("aabbbb"), prediction={"one": list("aaabbb"), "two": list("aabbbb")})
    assert [hover for hover in hovers(svg) if hover.startswith("wrong")] == ["wrong: position 2"]
    assert {"one", "two", "83.3 % right", "100.0 % right", "wrong"} <= set(texts(svg))
    assert "wrong" not in texts(plot_segmentation(truth=list("ab"), prediction=list("ab")))


def test_without_labels_boundaries_are_scored() -> None:
    svg = plot_segmentation(truth=[0, 3, 6], prediction=[0, 3, 5], marginals=np.linspace(0, 1, 9))
    assert "F1 0.50" in texts(svg)
    assert not [hover for hover in hovers(svg) if hover.startswith("wrong")]
    assert "a true segment starts" in texts(svg)


def test_one_label_has_one_colour_and_neighbours_differ_by_hatching_at_most() -> None:
    y = [(k, k + 1, f"label {k:02}") for k in range(16)]
    svg = plot_segmentation(truth=y, prediction=y[::1])
    boxes = [e for e in drawn(svg).iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]
    assert len({box.get("fill") for box in boxes[:7]}) == 7  # seven colours before hatching begins
    assert [box.get("fill") for box in boxes[:16]] == [box.get("fill") for box in boxes[16:]]
    assert len(list(drawn(svg).iter(f"{SVG}path"))) == 3 * 9  # nine are hatched, thrice


def test_given_labels_fix_the_colours_and_must_hold_all() -> None:
    first = plot_segmentation(truth=list("bb"), labels=["a", "b"])
    second = plot_segmentation(truth=list("ab"), labels=["a", "b"])
    fill = next(e.get("fill") for e in drawn(first).iter(f"{SVG}rect"))
    assert fill == [e.get("fill") for e in drawn(second).iter(f"{SVG}rect")][1]
    with pytest.raises(ValueError, match="labels lacks 'b'"):
        plot_segmentation(truth=list("ab"), labels=["a"])


def test_names_are_shown_and_escaped() -> None:
    svg = plot_segmentation(truth=[0, 0, 1], names={0: "<walk>", 1: "bend"}, caption="a & b")
    assert "<walk>, positions 0 to 1 (2)" in hovers(svg)
    assert "<walk>" not in svg


def test_features_are_one_picture_whatever_their_number() -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 1), (30, 200), (6000, 3)):
        root = drawn(plot_segmentation(rng.normal(size=shape)))
        [image] = root.iter(f"{SVG}image")
        assert image.get("href", "").startswith("data:image/png;base64,")


@settings(max_examples=25, deadline=None)
@given(
    x=st.lists(st.lists(st.floats(width=64), min_size=2, max_size=2), min_size=1, max_size=8),
    p=st.lists(st.floats(0, 1), min_size=8, max_size=8),
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
def test_no_numbers_or_names_break_the_drawing(x: list[list[float]], p: list[float], name: str) -> None:
    n = len(x)
    drawn(plot_segmentation(x, [(0, n, name)], {name + "'": [(0, n, "b")]}, p[:n], caption=name or "c"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to draw"),
        ({"truth": []}, "truth is empty"),
        ({"truth": "aab"}, "truth must be a list"),
        ({"x": np.zeros((3, 2)), "truth": list("ab")}, "truth: 3 positions|truth: sequence 0 has 3 positions"),
        ({"x": np.zeros(3)}, "x must have shape"),
        ({"x": np.zeros((3, 2)), "marginals": [0.1, 0.2]}, "x has 3 positions, marginals has 2"),
        ({"marginals": [0.2, 1.5]}, "from 0 to 1"),
        ({"truth": [(0, 2, "a"), (3, 4, "b")]}, "truth: "),
        ({"truth": list("ab"), "prediction": {"truth": list("ab")}}, "cannot be named 'truth'"),
        ({"truth": list("ab"), "width": 10}, "width must be"),
    ],
)
def test_what_cannot_be_drawn_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_segmentation(**arguments)  # type: ignore[arg-type]


def test_confusion_counts_every_segment_once() -> None:
    truth = [[(0, 8, "a"), (8, 10, "a"), (10, 12, "b")]]
    labels, shares = segment_confusion(truth, [list("aaaaaaaabbbb")])
    assert labels == ["a", "b"]
    np.testing.assert_allclose(shares, [[0.5, 0.5], [0, 1]])
    svg = plot_segment_confusion(truth, [list("aaaaaaaabbbb")], names={"a": "walk"})
    assert "walk → b: 0.5" in hovers(svg)


def test_confusion_equals_counting_position_by_position() -> None:
    rng = np.random.default_rng(1)
    truth, found = (rng.integers(3, size=(4, 30)).tolist() for _ in range(2))
    labels, shares = segment_confusion(truth, found)
    for a in labels:
        rows = []
        for t, f in zip(truth, found, strict=True):
            cuts = [0, *(i for i in range(1, 30) if t[i] != t[i - 1]), 30]
            rows += [[np.mean(np.array(f[s:e]) == b) for b in labels] for s, e in pairwise(cuts) if t[s] == a]
        np.testing.assert_allclose(shares[a], np.mean(rows, axis=0))


def test_confusion_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="ends at another position"):
        segment_confusion([list("ab")], [list("abb")])
    with pytest.raises(ValueError, match="1 sequences, but y_pred has 2"):
        segment_confusion([list("ab")], [list("ab"), list("a")])
    with pytest.raises(ValueError, match="labels lacks 'b'"):
        segment_confusion([list("ab")], [list("ab")], ["a"])
    _, shares = segment_confusion([list("aa")], [list("ab")], ["a", "b"])
    assert np.isnan(shares[1]).all()
