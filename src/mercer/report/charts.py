"""Dependency-free charts as inline SVG: heat map, lines, bars, and small charts for table cells.

A chart takes plain numbers and returns `Html` that parses as XML. Colours are CSS variables of the page, with a
fallback for standalone charts. A shade is an opacity over the page's background, so a drawing works in light and dark
mode. Non-finite numbers are shown as forbidden, missing or a gap and never become a coordinate.
"""

from __future__ import annotations

import base64
import math
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.report.html import Html, number_text, text_of

__all__ = ["bars", "grey_image", "heat_map", "line_chart", "probability_strip", "sparkline"]

_INK = "var(--ink,#1d2329)"
_MUTED = "var(--muted,#626b75)"
_LINE = "var(--line,#dde1e6)"
_SURFACE = "var(--surface,#ffffff)"
_POS = "var(--pos,#1f6fb2)"
_NEG = "var(--neg,#c2541d)"
_ON_STRONG = "var(--on-strong,#ffffff)"
_SERIES = (
    "var(--s1,#1f6fb2)",
    "var(--s2,#c2541d)",
    "var(--s3,#2a8560)",
    "var(--s4,#8250b8)",
    "var(--s5,#96700a)",
    "var(--s6,#b23a6e)",
)
_DASHES = ("", "6 3", "2 3")  # after six series the colours come again, dashed


# -------------------------------------------------------------------------------------------------- heat map


def heat_map(
    matrix: ArrayLike,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    *,
    diverging: bool = True,
    caption: str = "heat map",
    row_axis: str = "",
    column_axis: str = "",
) -> Html:
    """Draw a matrix as coloured cells; each cell shows its value on hover.

    A cell of −inf is forbidden and hatched. A NaN cell is empty.

    Parameters
    ----------
    matrix : array of shape (rows, columns)
        The values.
    row_labels, column_labels : sequence of str
        One name per row, one per column.
    diverging : bool, default=True
        Blue above zero and orange below, centred at zero. Otherwise one colour, from zero (or the smallest value if
        some are negative) to the largest value.
    caption : str
        Description of the chart for screen readers.
    row_axis, column_axis : str, optional
        Titles of the row and column axes.

    Returns
    -------
    Html
        An SVG element.

    Raises
    ------
    ValueError
        If the matrix is empty or does not fit the labels.

    Examples
    --------
    >>> svg = heat_map([[1.0, -float("inf")], [-0.5, 0.2]], ["B", "I"], ["B", "I"], caption="transitions")
    >>> "B → I: forbidden" in svg
    True
    """
    values = np.asarray(matrix, dtype=float)
    rows, cols = [str(label) for label in row_labels], [str(label) for label in column_labels]
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"heat_map needs a matrix with at least one cell, found shape {values.shape}")
    if values.shape != (len(rows), len(cols)):
        raise ValueError(
            f"heat_map: a matrix of shape {values.shape} for {len(rows)} row and {len(cols)} column labels"
        )
    low, high = _colour_range(values, diverging)
    cell = min(48, max(13, 720 // max(len(cols), len(rows))))
    font = 12 if cell >= 16 else 10
    row_width = max(_width(_short(label), font) for label in rows)
    col_width = max(_width(_short(label), font) for label in cols)
    flat = col_width <= cell - 4
    slanted = not flat and cell >= 20
    head = font + 2 if flat else col_width * (0.71 if slanted else 1) + (font if slanted else 0)
    left = row_width + 10 + (22 if row_axis else 2)
    top = head + 8 + (22 if column_axis else 2)
    right = left + cell * len(cols)
    bottom = top + cell * len(rows)
    legend = _Legend(low, high, diverging, bool(np.any(np.isneginf(values))), bool(np.any(np.isnan(values))))
    overhang = col_width * 0.71 if slanted else 2
    width = max(right + overhang, left + legend.width) + 8
    parts = []
    if row_axis:
        parts.append(_text(row_axis, 11, top + (bottom - top) / 2, 12, "middle", _MUTED, turn=-90))
    if column_axis:
        parts.append(_text(column_axis, left + (right - left) / 2, 13, 12, "middle", _MUTED))
    for i, label in enumerate(rows):
        y = top + cell * (i + 0.5) + font * 0.35
        parts.append(_text(_short(label), left - 7, y, font, "end", hover=label))
    for j, label in enumerate(cols):
        x = left + cell * (j + 0.5)
        if flat:
            parts.append(_text(label, x, top - 6, font, "middle", hover=label))
        else:
            turn, nudge = (-45, font * 0.2) if slanted else (-90, font * 0.35)
            parts.append(_text(_short(label), x + nudge, top - 6, font, "start", turn=turn, hover=label))
    forbidden = []
    for i, row in enumerate(rows):
        for j, col in enumerate(cols):
            x, y, value = left + cell * j, top + cell * i, float(values[i, j])
            hover = f"{row} → {col}: {_cell_text(value)}"
            parts.append(_cell(x, y, cell, value, low, high, diverging, hover))
            if value == -math.inf:
                forbidden.append(_hatch(x, y, cell - 1))
            elif cell >= 36 and not math.isnan(value) and _width(_compact(value), 11) <= cell:
                strong = _shade(value, low, high, diverging)[1] > 0.75
                shown = _text(_compact(value), x + cell / 2 - 0.5, y + cell / 2 + 4, 11, "middle")
                parts.append(shown.replace(_INK, _ON_STRONG) if strong else shown)
    parts.append(_hatching("".join(forbidden)))
    parts.append(legend.draw(left, bottom + 18))
    return _svg(width, bottom + 18 + legend.height, caption, parts)


def _colour_range(values: np.ndarray, diverging: bool) -> tuple[float, float]:
    """Return the values of the ends of the colour scale."""
    finite = _clipped(values[np.isfinite(values)])
    if diverging:
        reach = float(np.abs(finite).max(initial=0.0)) or 1.0
        return -reach, reach
    low = float(finite.min(initial=0.0))
    high = float(finite.max()) if finite.size else 1.0
    return low, high if high > low else low + max(1.0, abs(low))


def _shade(value: float, low: float, high: float, diverging: bool) -> tuple[str, float]:
    """Return the colour of a value and its strength from 0 to 1."""
    value = min(max(value, low), high)
    if diverging:
        return (_POS if value > 0 else _NEG), abs(value) / high
    return _POS, (value - low) / (high - low)


def _cell(x: float, y: float, size: float, value: float, low: float, high: float, diverging: bool, hover: str) -> str:
    place: dict[str, Any] = {"x": x, "y": y, "width": size - 1, "height": size - 1}
    title = _tag("title", text_of(hover))
    if math.isnan(value) or value == -math.inf:
        inside = {"fill": _LINE, "fill_opacity": 0.35} if value < 0 else {"fill": _SURFACE, "stroke": _LINE}
        return _tag("rect", title, **place, **inside)
    colour, strength = _shade(value, low, high, diverging)
    # Never quite empty, so that a zero is seen to be a cell.
    return _tag("rect", title, **place, fill=colour, fill_opacity=0.04 + 0.96 * strength)


def _hatch(x: float, y: float, size: float) -> str:
    """Return path data of diagonal strokes inside one cell."""
    count = 4 if size > 30 else 3 if size > 16 else 2
    gap = size / count
    data = []
    for k in range(1, 2 * count):
        d = k * gap
        start, end = max(0.0, d - size), min(d, size)
        data.append(f"M{_num(x + start)} {_num(y + d - start)}L{_num(x + end)} {_num(y + d - end)}")
    return "".join(data)


def _hatching(data: str) -> str:
    # pointer_events: the cell below answers the pointer.
    if not data:
        return ""
    return _tag("path", d=data, stroke=_MUTED, stroke_width=0.8, stroke_opacity=0.55, pointer_events="none")


class _Legend:
    """The colour scale below a heat map."""

    height = 34.0

    def __init__(self, low: float, high: float, diverging: bool, forbidden: bool, missing: bool) -> None:
        self.low, self.high, self.diverging = low, high, diverging
        self.notes = [note for note, shown in (("forbidden", forbidden), ("missing", missing)) if shown]
        self.bar = 160.0
        self.width = self.bar + 16 + sum(30 + _width(note, 11) for note in self.notes)

    def draw(self, x: float, y: float) -> str:
        steps = 32
        step = self.bar / steps
        parts = []
        for k in range(steps):
            share = (k + 0.5) / steps
            value = self.low * (1 - share) + self.high * share
            colour, strength = _shade(value, self.low, self.high, self.diverging)
            # No gap between steps, no overlap: at half strength both would show as stripes.
            parts.append(
                _tag(
                    "rect",
                    x=x + k * step,
                    y=y,
                    width=step,
                    height=9,
                    fill=colour,
                    fill_opacity=0.04 + 0.96 * strength,
                    shape_rendering="crispEdges",
                )
            )
        parts.append(_text(_axis_text(self.low), x, y + 23, 11, "start", _MUTED))
        if self.diverging:
            parts.append(_text("0", x + self.bar / 2, y + 23, 11, "middle", _MUTED))
        parts.append(_text(_axis_text(self.high), x + self.bar, y + 23, 11, "end", _MUTED))
        x += self.bar + 16
        for note in self.notes:
            parts.append(_tag("rect", x=x, y=y - 1, width=11, height=11, fill="none", stroke=_LINE))
            if note == "forbidden":
                parts.append(_hatching(_hatch(x, y - 1, 11)))
            parts.append(_text(note, x + 17, y + 8.5, 11, "start", _MUTED))
            x += 30 + _width(note, 11)
        return "".join(parts)


# ----------------------------------------------------------------------------------------------------- lines


def sparkline(values: ArrayLike, *, log: bool = False) -> Html:
    """Draw a series as a line of the size of a word.

    Parameters
    ----------
    values : array of shape (n,)
        The series. Non-finite values (and with `log` non-positive values) are gaps.
    log : bool, default=False
        Whether the vertical axis is logarithmic.

    Returns
    -------
    Html
        An SVG element.

    Raises
    ------
    ValueError
        If the series is empty.

    Examples
    --------
    >>> sparkline([3.0, 2.0, 1.5]).startswith("<svg")
    True
    """
    series = _vector(values, "sparkline", "values")
    width, height, pad = 120.0, 26.0, 3.0
    y = _clipped(_log10(series) if log else series)
    shown = np.isfinite(y)
    last = f", the last one {number_text(float(series[-1]))}"
    title = f"{series.size} value{'s' if series.size > 1 else ''}{last}"
    if not shown.any():
        middle = {"y1": height / 2, "y2": height / 2}
        nothing = _tag("line", x1=pad, x2=width - pad, **middle, stroke=_LINE, stroke_dasharray="2 3")
        return _svg(width, height, f"{title}; none can be drawn", [nothing])
    low, high = _padded(float(y[shown].min()), float(y[shown].max()))
    flat = y[shown].min() == y[shown].max()
    x_of = np.linspace(pad, width - pad, series.size) if series.size > 1 else np.array([width / 2])
    y_of = np.full(series.size, np.nan)
    y_of[shown] = height / 2 if flat else height - pad - _share(y[shown], low, high) * (height - 2 * pad)
    end = int(np.flatnonzero(shown)[-1])
    parts = [
        _path(x_of, y_of, stroke=_SERIES[0], stroke_width=1.5),
        _tag("circle", cx=x_of[end], cy=y_of[end], r=2.4, fill=_SERIES[0]),
    ]
    return _svg(width, height, title, parts)


def line_chart(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    x_label: str,
    y_label: str,
    log_y: bool = False,
) -> Html:
    """Draw one or more series against common axes.

    Parameters
    ----------
    series : mapping of str to (x, y)
        The series by name. Non-finite points (and with `log_y` non-positive points) are gaps.
    x_label, y_label : str
        Titles of the axes.
    log_y : bool, default=False
        Whether the vertical axis is logarithmic.

    Returns
    -------
    Html
        An SVG element.

    Raises
    ------
    ValueError
        If there is no series, or a series is empty or has different numbers of x and y values.

    Examples
    --------
    >>> chart = line_chart({"log loss": ([1, 2, 3], [10.0, 1.0, 0.1])}, "pass", "objective", log_y=True)
    >>> "objective against pass" in chart
    True
    """
    if not series:
        raise ValueError("line_chart needs at least one series")
    points = {str(name): _points(str(name), xy, log_y) for name, xy in series.items()}
    every_x = np.concatenate([x for x, _ in points.values()])
    every_y = np.concatenate([y for _, y in points.values()])
    x_low, x_high = _range(every_x)
    y_low, y_high = _range(every_y)
    x_ticks = _ticks(x_low, x_high, 7)
    y_ticks = _log_ticks(y_low, y_high) if log_y else _ticks(y_low, y_high, 5, around=True)
    names = _name_places(list(points)) if len(points) > 1 else []
    frame = _Frame(
        left=30 + max(_width(text, 11) for _, text in y_ticks),
        top=14 + (20 * (names[-1][1] + 1) if names else 0),
        x=(x_low, x_high),
        y=(min(y_low, y_ticks[0][0]), max(y_high, y_ticks[-1][0])),
    )
    parts = [frame.grid(x_ticks, y_ticks, x_label, y_label)]
    for k, (offset, row) in enumerate(names):
        name, start, height = list(points)[k], frame.left + offset, 12.0 + 20 * row
        stroke = {"stroke": _SERIES[k % 6], "stroke_width": 2.5, "stroke_dasharray": _dash(k)}
        parts.append(_tag("line", x1=start, x2=start + 18, y1=height, y2=height, **stroke))
        parts.append(_text(_short(name, 40), start + 24, height + 4, 12, "start", hover=name))
    for k, (name, (x, y)) in enumerate(points.items()):
        parts.append(_draw_series(name, x, y, k, frame, log_y))
    title = f"{y_label} against {x_label}: {', '.join(points)}"
    return _svg(frame.width, frame.height, title, parts)


def _points(name: str, xy: tuple[ArrayLike, ArrayLike], log_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y (its logarithm, with `log_y`) with NaN for points that cannot be drawn."""
    x, y = (_vector(values, "line_chart", f"series {name!r}") for values in xy)
    if x.size != y.size:
        raise ValueError(f"line_chart: series {name!r} has {x.size} x values and {y.size} y values")
    x, y = _clipped(x), _clipped(_log10(y) if log_y else y)
    gap = ~(np.isfinite(x) & np.isfinite(y))
    return np.where(gap, np.nan, x), np.where(gap, np.nan, y)


def _name_places(names: Sequence[str]) -> list[tuple[float, int]]:
    """Return an offset and a row for each name, filling rows of the width of the plot."""
    places, x, row = [], 0.0, 0
    for name in names:
        wide = 24 + _width(_short(name, 40), 12) + 24
        if x and x + wide > _Frame.plot_width:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += wide
    return places


def _draw_series(name: str, x: np.ndarray, y: np.ndarray, k: int, frame: _Frame, log_y: bool) -> str:
    px, py = frame.at(x, y)
    parts = [_path(px, py, stroke=_SERIES[k % 6], stroke_width=2, stroke_dasharray=_dash(k))]
    shown = np.flatnonzero(np.isfinite(y))
    # Many dots would hide the line, so they are there for the pointer only; very many would be a heavy page.
    marked = shown if len(shown) <= 400 else shown[-1:]
    for i in marked:
        value = 10.0 ** min(float(y[i]), 308.25) if log_y else float(y[i])
        title = _tag("title", text_of(f"{name}: {number_text(value)} at {number_text(float(x[i]))}"))
        opacity = 1 if len(shown) <= 30 or i == shown[-1] else 0
        place = {"cx": px[i], "cy": py[i], "r": 3}
        parts.append(_tag("circle", title, **place, fill=_SERIES[k % 6], stroke=_SURFACE, opacity=opacity))
    return "".join(parts)


class _Frame:
    """The axes of a line chart: map data points to positions on the drawing."""

    plot_width, plot_height = 430.0, 240.0

    def __init__(self, left: float, top: float, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.left, self.top, self.x, self.y = left, top, x, y
        self.width = left + self.plot_width + 24
        self.height = top + self.plot_height + 48

    def at(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (
            self.left + _share(x, *self.x) * self.plot_width,
            self.top + (1 - _share(y, *self.y)) * self.plot_height,
        )

    def grid(
        self,
        x_ticks: list[tuple[float, str]],
        y_ticks: list[tuple[float, str]],
        x_label: str,
        y_label: str,
    ) -> str:
        right, bottom = self.left + self.plot_width, self.top + self.plot_height
        px, _ = self.at(np.array([value for value, _ in x_ticks]), np.array([self.y[0]]))
        _, py = self.at(np.array([self.x[0]]), np.array([value for value, _ in y_ticks]))
        parts = []
        for (_, text), y in zip(y_ticks, py, strict=True):
            parts.append(_tag("line", x1=self.left, x2=right, y1=y, y2=y, stroke=_LINE))
            parts.append(_text(text, self.left - 8, y + 4, 11, "end", _MUTED))
        for (_, text), x in zip(x_ticks, px, strict=True):
            parts.append(_tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, stroke=_MUTED))
            parts.append(_text(text, x, bottom + 19, 11, "middle", _MUTED))
        parts.append(_tag("line", x1=self.left, x2=right, y1=bottom, y2=bottom, stroke=_MUTED))
        parts.append(_text(x_label, self.left + self.plot_width / 2, bottom + 40, 12, "middle"))
        parts.append(_text(y_label, 12, self.top + self.plot_height / 2, 12, "middle", turn=-90))
        return "".join(parts)


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    return _padded(float(finite.min()), float(finite.max()))


def _padded(low: float, high: float) -> tuple[float, float]:
    """Return a range of positive width; a single value gets a margin on both sides."""
    size = max(abs(low), abs(high))
    if high - low > 1e-9 * size and high - low > 1e-290:
        return low, high
    room = 0.1 * size if size > 1e-280 else 1.0
    return low - room, high + room


def _share(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return (values - low) / (high - low)


def _ticks(low: float, high: float, count: int, around: bool = False) -> list[tuple[float, str]]:
    """Return round values (steps of 1, 2 or 5) within the range, or `around` it, with their texts."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    if around:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    else:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    largest = max(abs(low), abs(high))
    if largest < 1e7 and digits <= 5:
        return [(value, _minus(f"{value:,.{digits}f}")) for value in values]
    places = max(0, math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9))
    return [(value, _minus(f"{value:.{places}e}") if value else "0") for value in values]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks for a range of logarithms: powers of ten, or finer steps if these are too few."""
    if high - low < 0.8 and -300 < low < 300:
        linear = _ticks(10.0**low, 10.0**high, 4, around=True)
        return [(math.log10(value), text) for value, text in linear if value > 0]
    first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
    if high - low < 1.6:
        fine = [e + math.log10(m) for e in range(first, last + 1) for m in (1, 2, 5)]
        # From the tick below the range to the one above it.
        start = max(k for k, value in enumerate(fine) if value <= low + 1e-9)
        stop = min(k for k, value in enumerate(fine) if value >= high - 1e-9)
        values = fine[start : stop + 1]
    else:
        stride = math.ceil((last - first) / 6)
        values = [float(e) for e in range(math.ceil(low - 0.15), last + 1, stride) if e < high + 0.15]
    return [(value, _power_text(value)) for value in values]


def _power_text(exponent: float) -> str:
    if -4 < exponent < 5:
        return f"{10.0**exponent:,.6g}"
    whole = math.floor(exponent + 1e-9)
    factor = round(10.0 ** (exponent - whole))
    power = "10" + "".join("⁻" if c == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] for c in str(whole))
    return power if factor == 1 else f"{factor}·{power}"


def _log10(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.nan)


def _dash(k: int) -> str:
    return _DASHES[k // 6 % 3]


def _path(x: np.ndarray, y: np.ndarray, **style: Any) -> str:
    """Draw a line through the finite points; an isolated point between gaps becomes a dot."""
    data, pen_down = [], False
    shown = np.isfinite(x) & np.isfinite(y)
    for i in range(len(x)):
        if shown[i]:
            alone = not pen_down and (i + 1 == len(x) or not shown[i + 1])
            data.append(f"{'L' if pen_down else 'M'}{_num(x[i])} {_num(y[i])}{'h0' if alone else ''}")
        pen_down = bool(shown[i])
    if not data:
        return ""
    return _tag("path", d="".join(data), fill="none", stroke_linejoin="round", stroke_linecap="round", **style)


# ------------------------------------------------------------------------------------------------------ bars


def bars(names: Sequence[str], values: ArrayLike, *, length: float = 240.0, characters: int = 40) -> Html:
    """Draw named values as horizontal bars, to the right above zero and to the left below.

    Parameters
    ----------
    names : sequence of str
        Names of the values, from top to bottom.
    values : array of shape (n,)
        The values. Non-finite values are written as text, without a bar.
    length : float, default=240
        Length in pixels of the longest bar; with both signs, of the longest positive and negative bar together.
    characters : int, default=40
        Longer names are truncated; hovering over the bar shows the full name.

    Returns
    -------
    Html
        An SVG element.

    Raises
    ------
    ValueError
        If there is no value, or the numbers of names and values differ.

    Examples
    --------
    >>> "suffix=ing: 1.5" in bars(["suffix=ing", "word=the"], [1.5, -2.0])
    True
    """
    numbers = _vector(values, "bars", "values")
    labels = [str(name) for name in names]
    if len(labels) != numbers.size:
        raise ValueError(f"bars: {len(labels)} names for {numbers.size} values")
    lengths = np.where(np.isfinite(numbers), _clipped(numbers), 0.0)
    # Bars of both signs share the width that one sign alone would have.
    reach = (float(np.maximum(lengths, 0).max()) + float(np.maximum(-lengths, 0).max())) or 1.0
    texts = [_axis_text(float(value)) for value in numbers]
    room = max(_width(text, 11) for text in texts) + 8
    # Each side is as long as its longest bar, and the texts stand outside the bars.
    below, above = max(0.0, -float(lengths.min())) / reach, max(0.0, float(lengths.max())) / reach
    left = max(_width(_short(label, characters), 12) for label in labels) + 12
    zero = left + (room if np.any(numbers < 0) else 0) + below * length
    width = zero + above * length + room
    step = 22.0
    parts = []
    for i, (label, value, text) in enumerate(zip(labels, numbers, texts, strict=True)):
        y, size = 4 + i * step, abs(float(lengths[i])) / reach * length
        negative = value < 0
        x = zero - size if negative else zero
        title = _tag("title", text_of(f"{label}: {_cell_text(float(value))}"))
        drawn = _tag("rect", x=x, y=y, width=max(size, 0.5), height=step - 6, rx=1.5, fill=_NEG if negative else _POS)
        beside = x - 5 if negative else x + size + 5
        parts.append(
            _tag(
                "g",
                title,
                drawn if math.isfinite(value) else "",
                _text(_short(label, characters), left - 10, y + 12.5, 12, "end"),
                _text(text, beside, y + 12, 11, "end" if negative else "start", _MUTED),
            )
        )
    height = 4 + len(labels) * step
    parts.append(_tag("line", x1=zero, x2=zero, y1=0, y2=height, stroke=_MUTED))
    return _svg(width, height, f"{len(labels)} values as bars", parts)


def probability_strip(probs: ArrayLike, labels: Sequence[str]) -> Html:
    """Draw a distribution over labels as a row of small vertical bars, with the name of the most likely label.

    Parameters
    ----------
    probs : array of shape (n,)
        The probabilities. Non-finite values leave a gap.
    labels : sequence of str
        One label per probability. If all labels are short, each is written below its bar.

    Returns
    -------
    Html
        An SVG element.

    Raises
    ------
    ValueError
        If there is no probability, or the numbers of labels and probabilities differ.

    Examples
    --------
    >>> "I: 0.7" in probability_strip([0.2, 0.7, 0.1], ["B", "I", "O"])
    True
    """
    p = _vector(probs, "probability_strip", "probs")
    names = [str(label) for label in labels]
    if len(names) != p.size:
        raise ValueError(f"probability_strip: {len(names)} labels for {p.size} probabilities")
    shown = np.isfinite(p)
    best = int(np.argmax(np.where(shown, p, -np.inf))) if shown.any() else -1
    tall, under_each = 36.0, max(len(name) for name in names) <= 2
    step = max(8.0, max(_width(name, 9) for name in names) + 2) if under_each else 8.0
    caption = f"{_short(names[best])} {p[best]:.2f}" if best >= 0 else "–"
    foot = tall + (11 if under_each else 0) + 14
    width = max(step * p.size, _width(caption, 11) + 4)
    start = (width - step * p.size) / 2
    parts = []
    for i, name in enumerate(names):
        x, height = start + i * step, min(max(float(p[i]), 0.0), 1.0) * tall if shown[i] else 0.0
        bar = min(step - 2, 12.0)
        colour = {"fill": _POS, "fill_opacity": 1 if i == best else 0.45}
        parts.append(
            _tag(
                "g",
                _tag("title", text_of(f"{name}: {_cell_text(float(p[i]))}")),
                _tag("rect", x=x, y=0, width=step, height=tall, fill_opacity=0),  # somewhere to point at
                _tag("rect", x=x + (step - bar) / 2, y=tall - height, width=bar, height=height, **colour),
                _text(name, x + step / 2, tall + 10, 9, "middle", _INK if i == best else _MUTED) if under_each else "",
            )
        )
    parts.append(_tag("line", x1=start, x2=start + step * p.size, y1=tall, y2=tall, stroke=_LINE))
    parts.append(_text(caption, width / 2, foot - 3, 11, "middle"))
    return _svg(width, foot, f"probabilities of {len(names)} labels, most likely: {caption}", parts)


# ---------------------------------------------------------------------------------------------------- images


def grey_image(array: ArrayLike, *, scale: int = 6) -> Html:
    """Show a matrix as a grey image with a square of `scale` pixels for each entry.

    Parameters
    ----------
    array : array of shape (rows, columns)
        Bytes (uint8) are grey levels. Other values are scaled: the smallest is black, the largest white. Non-finite
        entries are black.
    scale : int, default=6
        Side length of an entry in pixels.

    Returns
    -------
    Html
        An img element with embedded image data.

    Raises
    ------
    ValueError
        If the array is not a matrix or is empty.

    Examples
    --------
    >>> grey_image([[0, 8], [16, 4]]).startswith('<img src="data:image/png;base64,')
    True
    """
    image = np.asarray(array)
    if image.ndim != 2 or image.size == 0:
        raise ValueError(f"grey_image needs a matrix with at least one entry, found shape {image.shape}")
    if scale < 1:
        raise ValueError(f"scale must be at least 1, not {scale}")
    rows, cols = image.shape
    data = base64.b64encode(_png(_grey_levels(image))).decode()
    return Html(
        f'<img src="data:image/png;base64,{data}" width="{cols * scale}" height="{rows * scale}"'
        f' alt="grey image of {rows} by {cols} pixels" style="image-rendering:pixelated"/>'
    )


def _grey_levels(image: np.ndarray) -> np.ndarray:
    if image.dtype == np.uint8:
        return image
    values = image.astype(float)
    finite = np.isfinite(values)
    values = np.where(finite, _clipped(values), 0.0)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 0.0)
    if high > low:
        levels = 255 * (values - low) / (high - low)
    else:
        levels = np.where(values > 0, 255.0, 0.0)
    return np.where(finite, np.rint(levels), 0).astype(np.uint8)


def _png(grey: np.ndarray) -> bytes:
    """Return a grey image (with opacity if it has a third axis) as a PNG file: signature, header, data, end."""
    rows, cols = grey.shape[:2]
    colours = 0 if grey.ndim == 2 else 4

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    scanlines = b"".join(b"\0" + line.tobytes() for line in grey)  # each line opens with its filter: none
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", cols, rows, 8, colours, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(scanlines, 9))
        + chunk(b"IEND", b"")
    )


# ------------------------------------------------------------------------------------------ numbers and text


def _vector(values: ArrayLike, chart: str, argument: str) -> np.ndarray:
    vector = np.asarray(values, dtype=float)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{chart}: {argument} must be a list of at least one number, found shape {vector.shape}")
    return vector


def _clipped(values: np.ndarray) -> np.ndarray:
    """Return finite values clipped to a range in which differences stay finite; the others unchanged."""
    return np.where(np.isfinite(values), np.clip(values, -1e300, 1e300), values)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _axis_text(value: float) -> str:
    if not math.isfinite(value):
        return _minus(number_text(value))
    return _minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}")


def _compact(value: float) -> str:
    """Return a number as text that fits into a cell."""
    if value == 0 or value == math.inf:
        return "0" if value == 0 else "∞"
    size = abs(value)
    if not 0.005 <= size < 9999:
        return _minus(f"{value:.0e}")
    return _minus(f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}")


def _cell_text(value: float) -> str:
    if value == -math.inf:
        return "forbidden"
    return "missing" if math.isnan(value) else _minus(number_text(value))


def _short(label: str, limit: int = 18) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"


def _width(text: str, font: float) -> float:
    """Return an estimate of the width of a text in pixels."""
    return font * sum(_CHARACTER_WIDTHS.get(c) or _natural_width(c) for c in text)


_CHARACTER_WIDTHS = dict.fromkeys(" .,:;'|!()[]ijl", 0.38) | dict.fromkeys("mwMW%@=<>+−…→", 0.9)


def _natural_width(c: str) -> float:
    if unicodedata.east_asian_width(c) in "WF":
        return 1.05
    return 0.7 if c.isupper() else 0.62


# ------------------------------------------------------------------------------------------------------- SVG


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> Html:
    width, height = math.ceil(width), math.ceil(height)
    label = text_of(title)
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{label}"'
        f' font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )


def _tag(name: str, *content: str, **attributes: Any) -> str:
    """Return an element; _ in attribute names becomes -, and empty attributes are omitted."""
    given = "".join(
        f' {key.replace("_", "-")}="{value if isinstance(value, str) else _num(value)}"'
        for key, value in attributes.items()
        if value != ""
    )
    inner = "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def _text(
    text: str,
    x: float,
    y: float,
    size: float,
    anchor: str,
    colour: str = _INK,
    *,
    turn: float = 0,
    hover: str = "",
) -> str:
    turned = f"rotate({_num(turn)} {_num(x)} {_num(y)})" if turn else ""
    title = _tag("title", text_of(hover)) if hover and hover != text else ""
    place = {"x": x, "y": y, "font_size": size, "text_anchor": anchor}
    return _tag("text", title, text_of(text), **place, fill=colour, transform=turned)


def _num(value: float) -> str:
    """Return a coordinate as text; raise an error for a non-finite coordinate, which is a bug."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate of a chart is {value}")
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
