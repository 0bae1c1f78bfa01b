"""Plots for learning from proportions: predicted against known shares, and decision regions in the plane."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.report.charts import _LINE, _MUTED, _SERIES, _SURFACE, _Frame, _range, _svg, _tag, _text, _ticks, _vector
from mercer.report.html import Html, number_text, text_of
from mercer.report.labellings import _colours, _png_rgb

__all__ = ["plot_decision", "plot_proportions"]

_CELLS = 96  # of the picture beneath a decision, each way
_MOST = 2000  # points that are drawn


def plot_proportions(truth: ArrayLike, predicted: ArrayLike, names: Any = None, sizes: Any = None) -> Html:
    """Plot predicted against known shares, one circle per bag; points on the diagonal agree.

    Parameters
    ----------
    truth, predicted : array of shape (n_bags,) or (n_bags, n_classes)
        Shares in [0, 1]; several classes have different colours.
    names : sequence of n_bags names, optional
        Names shown on hover.
    sizes : array of n_bags numbers, optional
        Number of rows per bag; larger bags get larger circles.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.report import plot_proportions
    >>> "north: 0.25 known, 0.3 predicted" in plot_proportions([0.25, 1.0], [0.3, 0.9], ["north", "south"])
    True
    """
    known, estimated = (np.asarray(values, np.float64) for values in (truth, predicted))
    if known.shape != estimated.shape or known.ndim not in (1, 2) or not known.size:
        raise ValueError(f"truth and predicted must have the same shape, got {known.shape} and {estimated.shape}")
    for name, values in (("truth", known), ("predicted", estimated)):
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
            raise ValueError(f"{name} must contain shares in [0, 1]")
    known, estimated = known.reshape(len(known), -1), estimated.reshape(len(estimated), -1)
    labels = [str(name) for name in (range(len(known)) if names is None else names)]
    if len(labels) != len(known):
        raise ValueError(f"names must contain a name for each of the {len(known)} bags, got {len(labels)}")
    radius = np.full(len(known), 4.5)
    if sizes is not None:
        counts = _vector(sizes, "plot_proportions", "sizes")
        if counts.shape != radius.shape or not (counts > 0).all():
            raise ValueError(f"sizes must be {len(known)} positive numbers")
        radius = 2.5 + 6.5 * np.sqrt(counts / counts.max())
    frame = _Frame(left=56, top=14, x=(0.0, 1.0), y=(0.0, 1.0))
    ticks = [(v, f"{v:g}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)]
    parts = [frame.grid(ticks, ticks, "known share", "predicted share")]
    ends = frame.at(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    parts.append(
        _tag("line", x1=ends[0][0], x2=ends[0][1], y1=ends[1][0], y2=ends[1][1], stroke=_MUTED, stroke_dasharray="4 4")
    )
    for c in range(known.shape[1]):
        px, py = frame.at(known[:, c], estimated[:, c])
        for k in np.argsort(-radius, kind="stable"):
            said = f"{labels[k]}: {number_text(known[k, c])} known, {number_text(estimated[k, c])} predicted"
            style = {"fill": _SERIES[c % 6], "fill_opacity": 0.55, "stroke": _SURFACE}
            parts.append(_tag("circle", _tag("title", text_of(said)), cx=px[k], cy=py[k], r=radius[k], **style))
    return _svg(frame.width, frame.height, "predicted against known shares of bags", parts)


def plot_decision(model: Any, X: ArrayLike, marks: Any = None) -> Html:
    """Draw the decision regions of a classifier in the plane, with the points.

    Parameters
    ----------
    model : classifier
        A classifier with ``predict`` and ``classes_``.
    X : array of shape (n, 2)
    marks : sequence of n values, optional
        Bags or labels; each value has its own shape and colour.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mercer.report import plot_decision
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> "<image" in plot_decision(LogisticRegression().fit(X, X[:, 0] > 0), X)
    True
    """
    points = np.asarray(X, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
        raise ValueError(f"X must contain finite points of the plane, got shape {points.shape}")
    values = np.zeros(len(points), int) if marks is None else np.asarray(marks)
    if values.shape != (len(points),):
        raise ValueError(f"marks must contain a value for each of the {len(points)} points, got shape {values.shape}")
    kinds, kind = np.unique(values, return_inverse=True)
    (x0, x1), (y0, y1) = (_wider(*_range(points[:, j])) for j in (0, 1))
    x_ticks, y_ticks = _ticks(x0, x1, 7), _ticks(y0, y1, 5)
    frame = _Frame(left=56, top=14 if len(kinds) == 1 else 34, x=(x0, x1), y=(y0, y1))
    middle = (np.arange(_CELLS) + 0.5) / _CELLS
    gx, gy = np.meshgrid(x0 + middle * (x1 - x0), y1 - middle * (y1 - y0))
    decided = np.asarray(model.predict(np.column_stack([gx.ravel(), gy.ravel()])))
    classes = list(model.classes_)
    codes = np.array([classes.index(c) for c in decided.tolist()]).reshape(gx.shape)
    pixels = (0.75 * 255 + 0.25 * _colours(len(classes))[codes]).astype(np.uint8)
    data = base64.b64encode(_png_rgb(pixels)).decode()
    place = {"x": frame.left, "y": frame.top, "width": frame.plot_width, "height": frame.plot_height}
    parts = [_tag("image", **place, href=f"data:image/png;base64,{data}", preserveAspectRatio="none")]
    parts.append(frame.grid(x_ticks, y_ticks, "first feature", "second feature"))
    if len(kinds) > 1:
        at = frame.left
        for k, name in enumerate(kinds.tolist()[:6]):
            parts += [_mark(k, at + 6, 14, str(name)), _text(str(name), at + 16, 18, 12, "start")]
            at += 34 + 8 * len(str(name))
    chosen = np.arange(len(points)) if len(points) <= _MOST else np.linspace(0, len(points) - 1, _MOST).astype(int)
    px, py = frame.at(points[:, 0], points[:, 1])
    parts += [_mark(int(kind[i]), px[i], py[i], str(kinds[kind[i]])) for i in chosen]
    parts.append(_tag("rect", **place, fill="none", stroke=_LINE))
    return _svg(frame.width, frame.height, "decisions of a classifier in the plane", parts)


def _wider(low: float, high: float) -> tuple[float, float]:
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _mark(kind: int, x: float, y: float, said: str) -> str:
    """Return circles, squares and triangles in turn."""
    title = _tag("title", text_of(said))
    style = {"fill": _SERIES[kind % 6], "stroke": _SURFACE, "stroke_width": 0.8}
    if kind % 3 == 0:
        return _tag("circle", title, cx=x, cy=y, r=3.5, **style)
    if kind % 3 == 1:
        return _tag("rect", title, x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, **style)
    path = f"M{x:.2f} {y - 4:.2f}L{x + 4:.2f} {y + 3:.2f}L{x - 4:.2f} {y + 3:.2f}Z"
    return _tag("path", title, d=path, **style)
