"""Plots of point clouds and registrations: projections before and after, and distances of the pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.data.clouds import check_points
from mercer.report.charts import _INK, _LINE, _MUTED, _NEG, _POS, _svg, _tag, _text
from mercer.report.html import Html, columns, figure, page, paragraph, section, table

__all__ = ["plot_clouds", "plot_distances", "registration_page"]

_SIDE = 250.0
_MOST = 1500
_PLANES = {2: ((0, 1),), 3: ((0, 1), (0, 2), (1, 2))}
_AXES = "xyz"


def plot_clouds(source: Any, target: Any) -> Html:
    """Draw two clouds over each other: one plot in two dimensions, three projections in three.

    Parameters
    ----------
    source, target : arrays of shape (n, d) and (m, d), or PointClouds
        Clouds of 2 or 3 dimensions. At most 1,500 points of each cloud are drawn.

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.datasets import make_mug
    >>> from mercer.report import plot_clouds
    >>> picture = plot_clouds(make_mug(50), make_mug(50, random_state=1))
    >>> picture.startswith("<svg")
    True
    """
    clouds = [check_points(name, cloud) for name, cloud in (("source", source), ("target", target))]
    d = clouds[0].shape[1]
    if d not in _PLANES or clouds[1].shape[1] != d:
        raise ValueError(f"clouds must both have 2 or 3 dimensions, got {d} and {clouds[1].shape[1]}")
    whole = np.vstack(clouds)
    low, high = whole.min(axis=0), whole.max(axis=0)
    unit = (_SIDE - 30) / max(float((high - low).max()), 1e-300)
    middle = (low + high) / 2
    rng = np.random.default_rng(0)
    parts: list[str] = []
    for k, (a, b) in enumerate(_PLANES[d]):
        left = k * (_SIDE + 16)
        parts.append(_tag("rect", x=left, y=0, width=_SIDE, height=_SIDE, fill="none", stroke=_LINE))
        for cloud, colour in ((clouds[1], _POS), (clouds[0], _NEG)):
            shown = cloud[np.sort(rng.permutation(len(cloud))[:_MOST])]
            x = left + _SIDE / 2 + unit * (shown[:, a] - middle[a])
            y = _SIDE / 2 - unit * (shown[:, b] - middle[b])
            # a point is a line of no length with round ends: one path for all of them
            path = "".join(f"M{u:.1f} {v:.1f}h0" for u, v in zip(x, y, strict=True))
            size = round(min(6.0, max(1.8, 50.0 / math.sqrt(len(shown)))), 1)  # few points are large
            parts.append(
                _tag("path", d=path, stroke=colour, stroke_width=size, stroke_linecap="round", stroke_opacity=0.6)
            )
        parts.append(_text(f"{_AXES[a]}{_AXES[b]}", left + 8, 16, 11, "start", _MUTED))
    y = _SIDE + 16
    for k, (name, colour) in enumerate((("source", _NEG), ("target", _POS))):
        parts.append(_tag("rect", x=k * 80.0, y=y - 9, width=10, height=10, fill=colour))
        parts.append(_text(name, k * 80.0 + 15, y, 11, "start", _INK))
    width = len(_PLANES[d]) * (_SIDE + 16) - 16
    return _svg(width, y + 6, f"{len(clouds[0])} source and {len(clouds[1])} target points", parts)


def plot_distances(distances: Any, limit: float, *, bins: int = 30) -> Html:
    """Draw a histogram of nearest-neighbour distances; all distances beyond twice the limit share a bar.

    Parameters
    ----------
    distances : array of shape (n,)
    limit : float
        The distance up to which points count as pairs, marked by a line.
    bins : int, default=30

    Returns
    -------
    Html
        An SVG element.

    Examples
    --------
    >>> from mercer.report import plot_distances
    >>> plot_distances([0.1, 0.2, 5.0], 1.0).startswith("<svg")
    True
    """
    values = np.asarray(distances, dtype=float)
    if values.ndim != 1 or not values.size or np.isnan(values).any() or not 0 < limit < math.inf:
        raise ValueError("distances must be a list of numbers, and limit a positive number")
    counts, edges = np.histogram(np.minimum(values, 2 * limit * (1 - 1e-12)), bins=bins, range=(0, 2 * limit))
    width, height, left = 520.0, 160.0, 44.0
    step = width / bins
    tallest = max(1, int(counts.max()))
    parts = []
    for k, count in enumerate(counts.tolist()):
        tall = height * count / tallest
        hover = f"{edges[k]:.3g} to {edges[k + 1]:.3g}" if k < bins - 1 else f"above {edges[k]:.3g}"
        bar = {"x": left + k * step + 0.5, "y": 8 + height - tall, "width": step - 1, "height": max(tall, 0.2)}
        parts.append(_tag("rect", _tag("title", f"{hover}: {count}"), **bar, fill=_POS))
    at = left + width / 2
    parts.append(_tag("line", x1=at, x2=at, y1=8, y2=8 + height, stroke=_NEG, stroke_dasharray="4 3"))
    parts.append(_tag("line", x1=left, x2=left + width, y1=8 + height, y2=8 + height, stroke=_MUTED))
    parts.append(_text(f"{tallest:,}", left - 6, 18, 11, "end", _MUTED))
    for share, text in ((0.0, "0"), (0.5, f"{limit:.3g}"), (1.0, f"≥ {2 * limit:.3g}")):
        parts.append(_text(text, left + share * width, height + 24, 11, "middle", _MUTED))
    return _svg(left + width + 30, height + 32, f"distances of {values.size} points", parts)


def registration_page(source: Any, target: Any, result: Any, *, title: str = "Registration") -> str:
    """Return a page about a registration: the clouds before and after, the transform, the evidence, the distances.

    Parameters
    ----------
    source, target : arrays or PointClouds
    result : RegistrationResult
    title : str, default="Registration"

    Returns
    -------
    str
        The document.

    Examples
    --------
    >>> from mercer.datasets import make_mug
    >>> from mercer.registration import register
    >>> from mercer.report import registration_page
    >>> source, target = make_mug(300), make_mug(300)[:, [1, 2, 0]]
    >>> "Before" in registration_page(source, target, register(source, target))
    True
    """
    from mercer.registration.prepared import Cloud

    x, y = check_points("source", source), check_points("target", target)
    moved = result.apply(x)
    distances = np.sqrt(Cloud(y).nearest(moved)[0])
    state = "certified" if result.certified else "not certified"
    facts = [
        ("pose", f"{state}: {result.reason}" if result.reason else state),
        ("method", result.method),
        ("fitness", f"{result.fitness:.1%} of {len(x):,} source points within {result.radius:.3g}"),
        ("root mean squared distance of the pairs", f"{result.rmse:.4g}"),
        ("iterations of the refinement", result.n_iter),
    ]
    if abs(result.scale - 1) > 1e-6:
        facts.append(("factor", f"{result.scale:.6g}"))
    facts += [(f"evidence: {name}", f"{value:.3g}") for name, value in result.evidence.items()]
    rows = [[f"{value:.6f}" for value in row] for row in result.transform]
    parts = [section("Result", table(facts, ["", ""], "ll"))]
    if x.shape[1] in _PLANES:
        before = figure(plot_clouds(x, y), "Before: the input clouds.")
        parts.append(section("Before and after", columns(before, figure(plot_clouds(moved, y), "After."))))
    caption = "Distances of the transformed source points to the target; pairs are left of the line."
    parts.append(section("Distances", figure(plot_distances(distances, result.radius), caption)))
    parts.append(section("Motion", table(rows, [""] * len(rows[0]), "r" * len(rows[0]))))
    if result.alternatives:
        text = f"{len(result.alternatives)} other poses fit nearly as well. Symmetric shapes have several such poses."
        parts.append(section("Other poses", paragraph(text)))
    return page(title, *parts)
