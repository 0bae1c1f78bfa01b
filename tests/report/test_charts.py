"""Charts: always well-formed, never a coordinate that is not a number, and they show what they are given."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.report import Html, bars, grey_image, heat_map, line_chart, probability_strip, sparkline

EVIL = '<script>alert("1")</script>'
SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ET.Element:
    """Parse a chart; check what holds for all of them."""
    assert isinstance(svg, Html)
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label")
    width, height = float(root.get("width", "nan")), float(root.get("height", "nan"))
    assert 0 < width < 5000
    assert 0 < height < 5000
    for element in root.iter():
        assert element.tag != f"{SVG}script"
        for name, value in element.attrib.items():
            if name != "aria-label":
                assert not re.search(r"nan|inf", value), (name, value)
            if name in {"x", "y", "cx", "cy", "x1", "x2", "y1", "y2"}:
                assert -1 <= float(value) <= max(width, height) + 1, (name, value)
            if name in {"width", "height", "r"}:
                assert float(value) >= 0
            if name.endswith("opacity"):
                assert 0 <= float(value) <= 1
    return root


def hovers(svg: str) -> list[str]:
    return [element.text or "" for element in drawn(svg).iter(f"{SVG}title")]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in drawn(svg).iter(f"{SVG}text")]


any_floats = st.floats(width=64) | st.sampled_from([0.0, -np.inf, np.inf, np.nan, 1e308, -1e308, 5e-324, 1.0])
series = st.lists(any_floats, min_size=1, max_size=12)
label = st.text(st.characters(codec=None), max_size=30)


# ------------------------------------------------------------------------------- what holds for every chart


@settings(max_examples=60)
@given(values=series, name=label, log=st.booleans())
def test_no_numbers_or_names_break_a_chart(values: list[float], name: str, log: bool) -> None:
    names = [name] * len(values)
    drawn(sparkline(values, log=log))
    drawn(line_chart({name: (np.arange(len(values)), values), "x": (values, values)}, name, name, log_y=log))
    drawn(bars(names, values))
    drawn(probability_strip(values, names))
    for diverging in (True, False):
        drawn(heat_map([values], [name], names, diverging=diverging, caption=name or "c"))


@pytest.mark.parametrize(
    "svg",
    [
        heat_map([[1.0]], [EVIL], [EVIL], caption=EVIL, row_axis=EVIL, column_axis=EVIL),
        line_chart({EVIL: ([1], [2]), "b": ([1], [2])}, EVIL, EVIL),
        bars([EVIL], [1.0]),
        probability_strip([1.0], [EVIL]),
    ],
    ids=["heat_map", "line_chart", "bars", "probability_strip"],
)
def test_names_never_become_markup(svg: str) -> None:
    drawn(svg)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: heat_map(np.zeros((0, 0)), [], []), "at least one cell"),
        (lambda: heat_map([1.0, 2.0], ["a"], ["b", "c"]), "matrix"),
        (lambda: heat_map([[1.0, 2.0]], ["a"], ["b"]), "1 row and 1 column labels"),
        (lambda: sparkline([]), "at least one number"),
        (lambda: sparkline([[1.0]]), "shape"),
        (lambda: line_chart({}, "x", "y"), "at least one series"),
        (lambda: line_chart({"a": ([], [])}, "x", "y"), "series 'a'"),
        (lambda: line_chart({"a": ([1, 2], [1])}, "x", "y"), "2 x values and 1 y values"),
        (lambda: bars([], []), "at least one number"),
        (lambda: bars(["a"], [1.0, 2.0]), "1 names for 2 values"),
        (lambda: probability_strip([], []), "at least one number"),
        (lambda: probability_strip([1.0], []), "0 labels for 1 probabilities"),
        (lambda: grey_image(np.zeros((0, 3))), "at least one entry"),
        (lambda: grey_image([1, 2]), "matrix"),
        (lambda: grey_image([[1]], scale=0), "scale"),
    ],
)
def test_empty_or_ragged_input_is_refused(draw: Callable[[], Html], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


# -------------------------------------------------------------------------------------------------- heat map


@pytest.mark.parametrize("n", [1, 2, 10, 28, 60])
def test_a_heat_map_names_every_cell_row_and_column(n: int) -> None:
    names = [f"L{i}" for i in range(n)]
    svg = heat_map(np.arange(n * n).reshape(n, n) - n, names, names)
    assert set(names) <= set(texts(svg))
    cells = [hover for hover in hovers(svg) if "→" in hover]
    assert len(cells) == n * n
    assert cells[0] == f"L0 → L0: −{n}"


def test_forbidden_cells_are_hatched_and_explained() -> None:
    allowed, forbidden = np.zeros((2, 2)), np.array([[0.0, -np.inf], [1.0, 2.0]])
    names = ["B", "I"]
    assert not list(drawn(heat_map(allowed, names, names)).iter(f"{SVG}path"))
    svg = heat_map(forbidden, names, names)
    assert list(drawn(svg).iter(f"{SVG}path"))
    assert "B → I: forbidden" in hovers(svg)
    assert "forbidden" in texts(svg)


def test_a_heat_map_of_nothing_finite_is_drawn() -> None:
    svg = heat_map([[-np.inf, np.nan, np.inf]], ["r"], ["a", "b", "c"])
    assert hovers(svg)[1:4] == ["r → a: forbidden", "r → b: missing", "r → c: ∞"]


def test_colours_diverge_at_zero_and_deepen_with_size() -> None:
    root = drawn(heat_map([[-2.0, -1.0, 1.0, 2.0]], ["r"], list("abcd")))
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    colours = [cell.get("fill") for cell in cells]
    strengths = [float(cell.get("fill-opacity", "nan")) for cell in cells]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert strengths[0] == strengths[3] == 1 > strengths[1] == strengths[2]


def test_one_colour_from_zero_to_the_largest() -> None:
    root = drawn(heat_map([[0.0, 0.5, 1.0]], ["r"], list("abc"), diverging=False))
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert len({cell.get("fill") for cell in cells}) == 1
    strengths = [float(cell.get("fill-opacity", "nan")) for cell in cells]
    assert strengths == sorted(strengths)


def test_long_labels_are_cut_but_can_be_read_in_full() -> None:
    long = "a label that is longer than any margin"
    svg = heat_map([[1.0]], [long], [long])
    assert long in hovers(svg)
    assert not any(text == long for text in texts(svg))


# ------------------------------------------------------------------------------------------- lines and bars


@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0, 2.0], [1.0, np.nan, 2.0]])
def test_a_sparkline_ends_in_a_dot(values: list[float]) -> None:
    assert len(list(drawn(sparkline(values)).iter(f"{SVG}circle"))) == 1


def test_a_single_value_stands_in_the_middle() -> None:
    root = drawn(sparkline([3.0]))
    dot = next(root.iter(f"{SVG}circle"))
    assert float(dot.get("cx", "nan")) == float(root.get("width", "nan")) / 2
    assert float(dot.get("cy", "nan")) == float(root.get("height", "nan")) / 2


def test_nothing_to_draw_is_a_dashed_line() -> None:
    for svg in (sparkline([np.nan, np.inf]), sparkline([0.0, -1.0], log=True)):
        assert "none can be drawn" in svg
        assert not list(drawn(svg).iter(f"{SVG}circle"))


def test_gaps_break_the_line() -> None:
    path = next(drawn(line_chart({"a": ([1, 2, 3, 4, 5], [1, 2, np.nan, 4, 5])}, "x", "y")).iter(f"{SVG}path"))
    assert path.get("d", "").count("M") == 2


def test_several_series_are_named_and_one_needs_no_legend() -> None:
    one = line_chart({"only": ([1, 2], [3, 4])}, "pass", "F1")
    assert "only" not in texts(one)
    assert {"pass", "F1"} <= set(texts(one))
    many = line_chart({f"series {i}": ([1, 2], [i, i]) for i in range(14)}, "x", "y")
    assert {f"series {i}" for i in range(14)} <= set(texts(many))
    strokes = {(p.get("stroke"), p.get("stroke-dasharray")) for p in drawn(many).iter(f"{SVG}path")}
    assert len(strokes) == 14


@pytest.mark.parametrize(
    ("y", "log", "expected"),
    [
        ([0.0, 1.0], False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([-1.0, 1.0], False, ["−1.0", "−0.5", "0.0", "0.5", "1.0"]),
        ([0, 12000], False, ["0", "5,000", "10,000", "15,000"]),
        ([1e-6, 1e3], True, ["10⁻⁶", "10⁻⁴", "0.01", "1", "100"]),
        ([1.0, 10.0], True, ["1", "2", "5", "10"]),
        ([110.0, 170.0], True, ["100", "120", "140", "160", "180"]),
    ],
)
def test_ticks_are_round_numbers(y: list[float], log: bool, expected: list[str]) -> None:
    root = drawn(line_chart({"a": ([0, 1], y)}, "x", "y", log_y=log))
    ticks = [e.text for e in root.iter(f"{SVG}text") if e.get("text-anchor") == "end"]
    assert ticks == expected


def test_points_say_their_values() -> None:
    assert "a: 100 at 2" in hovers(line_chart({"a": ([1, 2], [1, 100])}, "x", "y", log_y=True))


def test_bars_go_right_above_zero_and_left_below() -> None:
    root = drawn(bars(["up", "down"], [2.0, -1.0]))
    up, down = root.iter(f"{SVG}rect")
    assert float(up.get("width", "nan")) == 2 * float(down.get("width", "nan"))
    zero = float(up.get("x", "nan"))
    assert float(down.get("x", "nan")) + float(down.get("width", "nan")) == pytest.approx(zero)
    assert up.get("fill") != down.get("fill")


def test_a_weight_of_minus_infinity_is_written_without_a_bar() -> None:
    svg = bars(["a", "b"], [1.0, -np.inf])
    assert len(list(drawn(svg).iter(f"{SVG}rect"))) == 1
    assert "−∞" in texts(svg)
    assert "b: forbidden" in hovers(svg)


def test_the_likeliest_label_is_named() -> None:
    assert "I-PER 0.70" in texts(probability_strip([0.2, 0.7, 0.1], ["B-PER", "I-PER", "O"]))
    assert {"a", "b", "b 0.80"} <= set(texts(probability_strip([np.nan, 0.8], ["a", "b"])))
    assert "–" in texts(probability_strip([np.nan], ["a"]))


# ---------------------------------------------------------------------------------------------------- images


def pixels(html: str) -> np.ndarray:
    """Decode the picture: a reader as small as the writer, which checks every chunk."""
    img = ET.fromstring(html)
    data = base64.b64decode(img.get("src", "").removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, position = {}, 8
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        assert struct.unpack_from(">I", data, position + 8 + length)[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        position += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    cols, rows, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, cols + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_bytes_are_grey_levels_as_they_are() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    np.testing.assert_array_equal(pixels(grey_image(image)), image)
    np.testing.assert_array_equal(pixels(grey_image(image.T)), image.T)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ([[0.0, 8.0, 16.0]], [[0, 128, 255]]),
        ([[-1, 1]], [[0, 255]]),
        ([[True, False]], [[255, 0]]),
        ([[np.nan, 0.0, 1.0, np.inf]], [[0, 0, 255, 0]]),
        ([[np.nan]], [[0]]),
        ([[0.0, 0.0]], [[0, 0]]),
        ([[3.0, 3.0]], [[255, 255]]),
        ([[-1e308, 1e308]], [[0, 255]]),
    ],
)
def test_other_values_are_stretched(image: list[list[float]], expected: list[list[int]]) -> None:
    assert pixels(grey_image(image)).tolist() == expected


def test_an_image_has_its_size_and_a_description() -> None:
    img = ET.fromstring(grey_image(np.zeros((16, 8)), scale=3))
    assert (img.get("width"), img.get("height")) == ("24", "48")
    assert img.get("alt") == "grey image of 16 by 8 pixels"
