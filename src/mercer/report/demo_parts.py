"""The demo's section on shapes: point clouds of one class, coloured by predicted parts."""

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
    """A method that segments clouds into parts.

    Attributes
    ----------
    name : str
    agreement : float
        Adjusted Rand index with the true parts.
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
    """Results of the demo for parts of shapes.

    Attributes
    ----------
    clouds : list of arrays of shape (n_points, 3)
    dividers : list of Divider
    """

    clouds: list[np.ndarray]
    dividers: list[Divider]


def parts_part(r: PartResult) -> list[Html | str]:
    """Return the table and the plots."""
    rows = [(one.name, f"{one.agreement:.2f}", f"{one.seconds:.2f}") for one in r.dividers]
    return [
        paragraph(
            f"{len(r.clouds)} figures of a body, a head and a stick, as unlabelled points. Which points belong to "
            "the same part in all figures? ",
            Html("<code>ShapePartModel</code>"),
            " finds parts by three terms: co-occurrence of cells, smoothness over neighbours, and the position of a "
            "part.",
        ),
        table(rows, ["", "agreement with the true parts", "seconds"], "lrr"),
        columns(*(figure(_clouds(r.clouds[:2], one.labels), one.name) for one in r.dividers)),
    ]


def _clouds(clouds: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> Html:
    """Plot the first and third axis of a few clouds, one below the other."""
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
