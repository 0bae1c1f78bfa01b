"""Plots of labellings of images and graphs: input, truth, prediction, errors and probabilities."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer._validation import check_positive
from mercer.report.charts import _INK, _LINE, _MUTED, _num, _svg, _tag, _text, line_chart
from mercer.report.html import Html, text_of
from mercer.report.segmentations import _GREY, _LABELS

__all__ = ["labelling_picture", "plot_convergence", "plot_graph_labelling", "plot_labelling", "write_png"]

_MIX = 0.55  # share of the label's colour over the image


def _colours(n: int) -> np.ndarray:
    """Return the RGB colours of labels; from the eighth on, colours repeat in darker shades."""
    base = np.array([[int(c[0][i : i + 2], 16) for i in (1, 3, 5)] for c in _LABELS], float)
    k = np.arange(n)
    return base[k % len(base)] * 0.6 ** (k // len(base))[:, None]


def _backdrop(image: Any, shape: tuple[int, int]) -> np.ndarray:
    if image is None:
        return np.full((*shape, 3), 255.0)
    pixels: Any = np.asarray(image, dtype=float)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[:2] != shape:
        raise ValueError(f"image has shape {np.shape(image)}, the label maps {shape}")
    low, high = np.nanmin(pixels), np.nanmax(pixels)
    grey = (pixels - low) / (high - low) * 255.0 if high > low else np.full(pixels.shape, 128.0)
    return np.repeat(grey[:, :, :1], 3, axis=2) if grey.shape[2] < 3 else grey[:, :, :3]


def _overlay(back: np.ndarray, labels: np.ndarray, order: list[Any]) -> np.ndarray:
    place = {label: k for k, label in enumerate(order)}
    values, inverse = np.unique(labels, return_inverse=True)
    colours = _colours(len(order))[[place[v] for v in values.tolist()]]
    return (1 - _MIX) * back + _MIX * colours[inverse.reshape(labels.shape)]


def _panels(
    image: Any, truth: Any, prediction: Any, marginals: Any, label: Any
) -> tuple[list[tuple[str, np.ndarray]], list[Any]]:
    answers = prediction if isinstance(prediction, Mapping) else {} if prediction is None else {"answer": prediction}
    if "truth" in answers:
        raise ValueError("a prediction cannot be named 'truth': pass the true labels as truth")
    maps = {} if truth is None else {"truth": np.asarray(truth)}
    maps.update((str(name), np.asarray(m)) for name, m in answers.items())
    shapes = {m.shape for m in maps.values()}
    if marginals is not None:
        probabilities = np.asarray(marginals, dtype=float)
        if probabilities.ndim != 3:
            raise ValueError(f"marginals must have shape (H, W, labels), got {probabilities.shape}")
        shapes.add(probabilities.shape[:2])
    if image is not None:
        shapes.add(np.shape(image)[:2])
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ValueError(f"image, truth, prediction and marginals must have one size (H, W), got {sorted(shapes)}")
    shape = next(iter(shapes))
    order = sorted(set().union(*(np.unique(m).tolist() for m in maps.values()))) if maps else []
    back = _backdrop(image, shape)
    panels = [] if image is None else [("image", back)]
    several = isinstance(prediction, Mapping)
    for name, m in maps.items():
        wrong = f" ({(maps['truth'] != m).mean():.1%} wrong)" if several and "truth" in maps and name != "truth" else ""
        panels.append((name + wrong, _overlay(back, m, order)))
    if not several and "truth" in maps and "answer" in maps:
        missed = maps["truth"] != maps["answer"]
        marked = np.where(missed[:, :, None], np.array([213.0, 94.0, 0.0]), back * 0.5 + 120)
        panels.append((f"errors ({missed.mean():.1%})", marked))
    if marginals is not None:
        at = probabilities.shape[2] - 1 if label is None else int(label)
        level = np.clip(probabilities[:, :, at], 0.0, 1.0)[:, :, None]
        drawn = order[at] if at < len(order) else at
        panels.append((f"probability of {drawn}", 255.0 * (1 - level) + level * _colours(at + 1)[at]))
    return panels, order


def plot_labelling(
    image: Any = None,
    truth: Any = None,
    prediction: Any = None,
    marginals: Any = None,
    *,
    label: int | None = None,
    width: float = 260.0,
) -> Html:
    """Draw an image and its label maps side by side: truth, prediction, errors and probabilities.

    Parameters
    ----------
    image : array of shape (H, W) or (H, W, channels), optional
    truth : array of shape (H, W), optional
        Labels of pixels.
    prediction : array of shape (H, W), or mapping of names to such arrays, optional
        One prediction, with a separate panel of errors if the truth is given; or several, side by side with their error
        rates.
    marginals : array of shape (H, W, labels), optional
        Probabilities; drawn for one label.
    label : int, optional
        Column of ``marginals``; the last by default.
    width : float, default=260
        Width of a panel.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.report import plot_labelling
    >>> truth = np.array([[0, 0], [1, 1]])
    >>> svg = plot_labelling(truth * 0.5, truth, np.array([[0, 1], [1, 1]]))
    >>> "errors (25.0%)" in svg
    True
    >>> before_and_after = {"alone": np.array([[0, 1], [1, 1]]), "labelled": truth}
    >>> "alone (25.0% wrong)" in plot_labelling(truth=truth, prediction=before_and_after)
    True
    """
    check_positive("width", width)
    panels, order = _panels(image, truth, prediction, marginals, label)
    H, W = panels[0][1].shape[:2]
    height = width * H / W
    parts = []
    for k, (name, pixels) in enumerate(panels):
        x = k * (width + 12)
        data = base64.b64encode(_png_rgb(pixels)).decode()
        parts.append(_text(name, x, 14, 13, "start", _INK))
        parts.append(
            _tag(
                "image",
                x=_num(x),
                y="20",
                width=_num(width),
                height=_num(height),
                href=f"data:image/png;base64,{data}",
                preserveAspectRatio="none",
                style="image-rendering:pixelated",
            )
        )
        parts.append(_tag("rect", x=_num(x), y="20", width=_num(width), height=_num(height), fill="none", stroke=_LINE))
    parts += _legend(order, height + 40)
    return _svg(len(panels) * (width + 12), height + 52, "labelling of an image", parts)


def _legend(order: Sequence[Any], y: float) -> list[str]:
    parts, x = [], 0.0
    for label, colour in zip(order, _colours(len(order)), strict=True):
        parts.append(_tag("rect", x=_num(x), y=_num(y - 11), width="12", height="12", fill=_hex(colour)))
        parts.append(_text(str(label), x + 17, y, 12, "start", _MUTED))
        x += 34 + 7.5 * len(str(label))
    return parts


def _hex(colour: np.ndarray) -> str:
    return "#" + "".join(f"{int(c):02x}" for c in colour)


def labelling_picture(
    image: Any = None, truth: Any = None, prediction: Any = None, marginals: Any = None, *, label: int | None = None
) -> np.ndarray:
    """Return the panels of :func:`plot_labelling` as one pixel array (H, W′, 3).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.report import labelling_picture
    >>> labelling_picture(np.zeros((4, 5)), np.eye(4, 5)).shape
    (4, 14, 3)
    """
    panels, _ = _panels(image, truth, prediction, marginals, label)
    gap = np.full((panels[0][1].shape[0], 4, 3), 255.0)
    rows = [part for _, pixels in panels for part in (pixels, gap)][:-1]
    return np.clip(np.concatenate(rows, axis=1), 0, 255).astype(np.uint8)


def write_png(path: Any, pixels: ArrayLike) -> None:
    """Write an array of pixels (H, W, 3), 0 to 255, to a PNG file.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.report import write_png
    >>> write_png("picture.png", np.zeros((2, 2, 3)))  # doctest: +SKIP
    """
    with open(path, "wb") as file:
        file.write(_png_rgb(np.asarray(pixels)))


def _png_rgb(pixels: np.ndarray) -> bytes:
    values = np.clip(pixels, 0, 255).astype(np.uint8)
    if values.ndim != 3 or values.shape[2] != 3 or 0 in values.shape:
        raise ValueError(f"a picture must have shape (H, W, 3), got {values.shape}")
    height, width = values.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), values.reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


def plot_graph_labelling(
    edges: Any,
    prediction: Sequence[Any],
    truth: Sequence[Any] | None = None,
    *,
    positions: ArrayLike | None = None,
    marginals: ArrayLike | None = None,
    size: float = 420.0,
) -> Html:
    """Draw a graph with its node labels; wrong nodes have a ring, uncertain nodes are smaller.

    Parameters
    ----------
    edges : array of int of shape (m, 2)
    prediction : list of labels, one per node
    truth : list of labels, optional
    positions : array of shape (nodes, 2), optional
        Positions of the nodes; by default on a circle.
    marginals : array of shape (nodes, labels), optional
        The area of a node is proportional to its highest label probability.
    size : float, default=420
        Width and height.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.report import plot_graph_labelling
    >>> svg = plot_graph_labelling([(0, 1), (1, 2)], ["sky", "sky", "water"], ["sky", "snow", "water"])
    >>> "node 1: sky, true label snow" in svg
    True
    """
    labels = list(prediction)
    n = len(labels)
    if truth is not None and len(truth) != n:
        raise ValueError(f"{n} predicted labels and {len(truth)} true ones")
    pairs = np.asarray(edges).reshape(-1, 2).astype(int)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        raise ValueError(f"edges must contain nodes from 0 to {n - 1}")
    angle = 2 * np.pi * np.arange(n) / max(n, 1)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1) if positions is None else np.asarray(positions, float)
    if places.shape != (n, 2) or not np.isfinite(places).all():
        raise ValueError(f"positions must be finite numbers of shape ({n}, 2), got {places.shape}")
    sure = np.ones(n) if marginals is None else np.asarray(marginals, float).max(axis=1, initial=0.0)
    spread = np.ptp(places, axis=0) if n else np.ones(2)
    at = 24 + (places - (places.min(axis=0) if n else 0)) / np.where(spread > 0, spread, 1.0) * (size - 48)
    order = sorted({*labels, *(truth or [])}, key=str)
    colours = dict(zip(order, map(_hex, _colours(len(order))), strict=True))
    parts = [_line(at[u], at[v]) for u, v in pairs]
    for i, label in enumerate(labels):
        wrong = truth is not None and truth[i] != label
        said = f"node {i}: {label}" + (f", true label {truth[i]}" if wrong and truth is not None else "")
        ring = {"stroke": colours[truth[i]], "stroke-width": "4"} if wrong and truth is not None else {"stroke": _GREY}
        style: Mapping[str, Any] = {"fill": colours[label], **ring}
        radius = 5 + 7 * np.sqrt(sure[i])
        parts.append(_circle(at[i], radius, said, style))
    return _svg(size, size + 28, "labelling of a graph", [*parts, *_legend(order, size + 18)])


def _line(a: np.ndarray, b: np.ndarray) -> str:
    return _tag("line", x1=_num(a[0]), y1=_num(a[1]), x2=_num(b[0]), y2=_num(b[1]), stroke=_MUTED, stroke_opacity="0.6")


def _circle(at: np.ndarray, radius: float, said: str, style: Mapping[str, Any]) -> str:
    return _tag("circle", _tag("title", text_of(said)), cx=_num(at[0]), cy=_num(at[1]), r=_num(radius), **style)


def plot_convergence(results: Mapping[str, Any], *, key: str = "residual") -> Html:
    """Plot the convergence history of one or several inference results.

    Parameters
    ----------
    results : mapping of str to InferenceResult (or to a list of numbers)
    key : str, default="residual"
        Name of the history: "residual" for belief propagation (on a logarithmic axis), "bound" or "value" for others.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> from mercer.report import plot_convergence
    >>> ring = FactorGraph([2] * 3, unary=[[1, 2]] * 3, edges=[[0, 1], [1, 2], [0, 2]], pairwise=[[2, 1], [1, 2]])
    >>> "damped" in plot_convergence({"plain": infer(ring, "bp"), "damped": infer(ring, "bp", damping=0.5)})
    True
    """
    if not results:
        raise ValueError("results must contain at least one inference result")
    series = {}
    for name, result in results.items():
        history = getattr(result, "history", None)
        values = np.asarray(result if history is None else history.get(key, []), dtype=float)
        if values.ndim != 1 or not len(values):
            raise ValueError(f"{name!r} has no history of {key!r}")
        if key == "residual":
            values = np.maximum(values, 1e-16)
        series[name] = (np.arange(1, len(values) + 1), values)
    return line_chart(series, x_label="iteration", y_label=key, log_y=key == "residual")
