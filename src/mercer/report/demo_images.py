"""The part of the demo's page about images: blocks one by one against blocks that know their neighbours."""

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
    """One way of labelling pixels, and how well it does.

    Attributes
    ----------
    name : str
    C : float
        The regularisation that held-out training images chose.
    maps : list of arrays of shape (H, W)
        The labels that it gives to the pixels of the test images.
    pixels : float
        Share of pixels that get the right label.
    overlap : float
        Mean over the labels of intersection over union.
    seconds : float
        Time of the last training, with the chosen C.
    """

    name: str
    C: float
    maps: list[np.ndarray]
    pixels: float
    overlap: float
    seconds: float


@dataclass(frozen=True)
class ImageResult:
    """What the demo found about images.

    Attributes
    ----------
    n_train : int
        Number of training images.
    labels : list of str
    images : list of arrays of shape (H, W, 3)
        The test images.
    truth : list of arrays of shape (H, W)
    alone, grid : Painter
        Blocks one by one; blocks with their neighbours.
    marginals : list of arrays of shape (H, W, labels)
        The grid's probabilities of labels in the images that are shown (see :func:`shown_images`).
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
        """Both ways of labelling."""
        return self.alone, self.grid


def shown_images(truth: Sequence[np.ndarray], alone: Painter, grid: Painter) -> list[int]:
    """The test images with the median gain of the grid and with the least one: none is chosen for its beauty."""
    gains = [
        float(np.mean(after == true) - np.mean(before == true))
        for true, before, after in zip(truth, alone.maps, grid.maps, strict=True)
    ]
    order = np.argsort(gains, kind="stable")
    return list(dict.fromkeys([int(order[len(order) // 2]), int(order[0])]))[:_EXAMPLES]


def images_part(r: ImageResult) -> list[Html | str]:
    """Table and pictures of the contest."""
    rows = [(p.name, f"{100 * p.pixels:.1f} %", f"{p.overlap:.3f}", f"{p.seconds:.2f}", f"{p.C:g}") for p in r.painters]
    chosen = shown_images(r.truth, r.alone, r.grid)
    captions = ("The test image where neighbours help as much as in the median image.", "Where they help least.")
    pictures = [
        figure(
            plot_labelling(
                r.images[i], r.truth[i], {"alone": r.alone.maps[i], "together": r.grid.maps[i]}, p, width=_PANEL
            ),
            caption + f" On the right the probability of {r.labels[-1]}.",
        )
        for i, caption, p in zip(chosen, captions, r.marginals, strict=False)
    ]
    return [
        paragraph(
            "Discs and boxes lie over each other, and noise hides them: what a pixel is cannot be told from its "
            "colour. A classifier labels blocks of 2 × 2 pixels one by one; a ",
            Html("<code>GridLabeler</code>"),
            " sees the same features, but labels all blocks of an image together: neighbours that look alike rather "
            "have one label.",
        ),
        table(rows, ["", "pixels right", "overlap", "training, s", "C"], "lrrrr"),
        f"{r.n_train} images for training, {len(r.images)} others for the test. Overlap is intersection over union, "
        "the mean over the labels. C was chosen on held-out training images.",
        *pictures,
    ]
