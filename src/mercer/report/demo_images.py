"""The demo's section on images: independent blocks compared with blocks that depend on their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.report.html import Html, figure, paragraph, table
from mercer.report.labellings import plot_labelling

__all__ = ["ImageResult", "Painter", "images_part", "shown_images"]

_EXAMPLES = 2
_PANEL = 196  # pixels: five of them side by side


@dataclass(frozen=True)
class Painter:
    """A method that labels pixels, with its scores.

    Attributes
    ----------
    name : str
    C : float
        The regularisation constant chosen on held-out training images.
    maps : list of arrays of shape (H, W)
        The predicted labels of the pixels of the test images.
    pixels : float
        Accuracy on pixels.
    overlap : float
        Mean intersection over union of the labels.
    seconds : float
        Time of the final fit with the chosen C.
    """

    name: str
    C: float
    maps: list[np.ndarray]
    pixels: float
    overlap: float
    seconds: float


@dataclass(frozen=True)
class ImageResult:
    """Results of the demo for images.

    Attributes
    ----------
    n_train : int
        Number of training images.
    labels : list of str
    images : list of arrays of shape (H, W, 3)
        The test images.
    truth : list of arrays of shape (H, W)
    alone, grid : Painter
        Independent blocks; blocks with dependent neighbours.
    marginals : list of arrays of shape (H, W, labels)
        The grid's label probabilities for the images shown (see :func:`shown_images`).
    """

    n_train: int
    labels: list[str]
    images: list[np.ndarray]
    truth: list[np.ndarray]
    alone: Painter
    grid: Painter
    marginals: list[np.ndarray]

    @property
    def painters(self) -> tuple[Painter, Painter]:
        """Return both methods."""
        return self.alone, self.grid


def shown_images(truth: Sequence[np.ndarray], alone: Painter, grid: Painter) -> list[int]:
    """Return the test images with the median gain and with the smallest gain of the grid."""
    gains = [
        float(np.mean(after == true) - np.mean(before == true))
        for true, before, after in zip(truth, alone.maps, grid.maps, strict=True)
    ]
    order = np.argsort(gains, kind="stable")
    return list(dict.fromkeys([int(order[len(order) // 2]), int(order[0])]))[:_EXAMPLES]


def images_part(r: ImageResult) -> list[Html | str]:
    """Return the table and the images of the comparison."""
    rows = [(p.name, f"{100 * p.pixels:.1f} %", f"{p.overlap:.3f}", f"{p.seconds:.2f}", f"{p.C:g}") for p in r.painters]
    chosen = shown_images(r.truth, r.alone, r.grid)
    captions = ("The test image with the median gain from neighbours.", "The test image with the smallest gain.")
    pictures = [
        figure(
            plot_labelling(
                r.images[i], r.truth[i], {"alone": r.alone.maps[i], "together": r.grid.maps[i]}, p, width=_PANEL
            ),
            caption + f" Right: the probability of {r.labels[-1]}.",
        )
        for i, caption, p in zip(chosen, captions, r.marginals, strict=False)
    ]
    return [
        paragraph(
            "Discs and boxes overlap under noise: the label of a pixel cannot be predicted from its "
            "colour alone. A classifier labels blocks of 2 × 2 pixels independently; a ",
            Html("<code>GridLabeler</code>"),
            " uses the same features, but labels all blocks of an image jointly: similar neighbours tend to "
            "have the same label.",
        ),
        table(rows, ["", "pixels correct", "overlap", "training, s", "C"], "lrrrr"),
        f"{r.n_train} training and {len(r.images)} test images. Overlap is the intersection over union, "
        "averaged over the labels. C was chosen on held-out training images.",
        *pictures,
    ]
