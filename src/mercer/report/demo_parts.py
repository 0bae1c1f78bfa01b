"""The part of the demo's page about shapes: point clouds of one class, coloured by the parts that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.report.charts import _svg, _tag
from mercer.report.html import Html, columns, figure, paragraph, table

__all__ = ["Divider", "PartResult", "parts_part"]

_COLOURS = ("#4477aa", "#cc6677", "#ddaa33")
_SIDE = 150.0


@dataclass(frozen=True)
class Divider:
    """One way of dividing clouds into parts.

    Attributes
    ----------
    name : str
    agreement : float
        Adjusted Rand index with the parts that were drawn.
    seconds : float
    labels : list of integer arrays
        The part of each point of each cloud.
    """

    name: str
    agreement: float
    seconds: float
    labels: list[np.ndarray]


@dataclass(frozen=True)
class PartResult:
    """What the demo found about parts of shapes.

    Attributes
    ----------
    clouds : list of arrays of shape (n_points, 3)
    dividers : list of Divider
    """

    clouds: list[np.ndarray]
    dividers: list[Divider]


def parts_part(r: PartResult) -> list[Html | str]:
    """Table and pictures."""
    rows = [(one.name, f"{one.agreement:.2f}", f"{one.seconds:.2f}") for one in r.dividers]
    return [
        paragraph(
            f"{len(r.clouds)} figures of a body, a head and a stick, as points without labels. Which points belong to "
            "the same part, in all of them? ",
            Html("<code>ShapePartModel</code>"),
            " draws parts from three terms: which places occur together, neighbouring points, and the position of a "
            "part.",
        ),
        table(rows, ["", "agreement with the parts drawn", "seconds"], "lrr"),
        columns(*(figure(_clouds(r.clouds[:2], one.labels), one.name) for one in r.dividers)),
    ]


def _clouds(clouds: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> Html:
    """The first and the third axis of a few clouds, below each other."""
    whole = np.concatenate(clouds)
    low, high = whole.min(axis=0), whole.max(axis=0)
    unit = (_SIDE - 10) / max(float((high - low)[[0, 2]].max()), 1e-300)
    parts = []
    for k, (cloud, label) in enumerate(zip(clouds, labels, strict=False)):
        x = 5 + unit * (cloud[:, 0] - low[0])
        y = (k + 1) * _SIDE - 5 - unit * (cloud[:, 2] - low[2])
        for part, colour in enumerate(_COLOURS):
            path = "".join(f"M{u:.1f} {v:.1f}h0" for u, v in zip(x[label == part], y[label == part], strict=True))
            if path:
                parts.append(_tag("path", d=path, stroke=colour, stroke_width=2.4, stroke_linecap="round"))
    return _svg(_SIDE, len(clouds) * _SIDE, "points coloured by their parts", parts)
