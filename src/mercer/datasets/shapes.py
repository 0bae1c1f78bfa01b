"""Images to segment: overlapping shapes with noise that makes single pixels ambiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import check_count

__all__ = ["ShapeTask", "make_shapes"]

GROUND = "ground"
# Colours (red, green, blue) from 0 to 1: about equally bright, so that the channels have to be told apart.
_KINDS = {
    GROUND: (0.45, 0.50, 0.45), "disc": (0.75, 0.40, 0.30), "box": (0.30, 0.45, 0.75), "wedge": (0.35, 0.75, 0.30)
}  # fmt: skip


@dataclass(frozen=True)
class ShapeTask:
    """Noisy images and the label maps they were painted from.

    Examples
    --------
    >>> from mercer.datasets import make_shapes
    >>> task = make_shapes(3, size=32, random_state=0)
    >>> len(task.images), task.images[0].shape, task.maps[0].shape
    (3, (32, 32, 3), (32, 32))
    """

    images: list[np.ndarray]
    """Arrays of shape (size, size, 3): noisy colours, mostly between 0 and 1."""
    maps: list[np.ndarray]
    """Arrays of shape (size, size): the label of every pixel."""
    labels: list[str]
    """The labels of pixels, sorted."""


def make_shapes(
    n_images: int = 20,
    size: int = 64,
    noise: float = 0.5,
    n_kinds: int = 2,
    n_shapes: tuple[int, int] = (2, 5),
    random_state: Any = 0,
) -> ShapeTask:
    """Generate images of overlapping shapes in noise, with a label for every pixel.

    Shapes are painted in turn at random positions, with random sizes and orientations; later shapes cover earlier ones.
    Every kind has a colour. The noise is independent for each pixel and channel.

    Parameters
    ----------
    n_images : int, default=20
    size : int, default=64
        Side length in pixels, at least 8.
    noise : float, default=0.5
        Standard deviation of the noise; the colours of two kinds differ by about 0.4.
    n_kinds : int, default=2
        Kinds of shapes besides the background: discs, boxes and, with 3, wedges.
    n_shapes : (low, high), default=(2, 5)
        Shapes per image, uniform from ``low`` to ``high``, both included.
    random_state : int, Generator or None, default=0

    Returns
    -------
    ShapeTask

    Examples
    --------
    >>> from mercer.datasets import make_shapes
    >>> task = make_shapes(2, size=16, noise=0.0, random_state=1)
    >>> task.labels
    ['box', 'disc', 'ground']
    >>> set(task.maps[0].ravel().tolist()) <= set(task.labels)
    True
    """
    check_count("n_images", n_images, 0)
    check_count("size", size, 8)
    low, high = (check_count("n_shapes", n, 0) for n in n_shapes)
    if low > high:
        raise ValueError(f"n_shapes must be (low, high) with low at most high, got {n_shapes!r}")
    most = len(_KINDS) - 1
    if check_count("n_kinds", n_kinds) > most:
        raise ValueError(f"n_kinds must be at most {most}, got {n_kinds}")
    if not np.isfinite(noise) or noise < 0:
        raise ValueError(f"noise must be a finite number of at least 0, got {noise!r}")
    random = np.random.default_rng(random_state)
    names = list(_KINDS)[: n_kinds + 1]
    colours = np.array([_KINDS[name] for name in names])
    images, maps = [], []
    for _ in range(n_images):
        painted = np.zeros((size, size), np.int64)
        for _ in range(int(random.integers(low, high + 1))):
            kind = int(random.integers(1, n_kinds + 1))
            painted[_covered(names[kind], size, random)] = kind
        images.append(colours[painted] + noise * random.normal(size=(size, size, 3)))
        maps.append(np.array(names)[painted])
    return ShapeTask(images, maps, sorted(names))


def _covered(kind: str, size: int, random: np.random.Generator) -> np.ndarray:
    """Return the pixels of a shape with random position, size and orientation."""
    place, radius, turn = random.random(2) * size, size * random.uniform(0.12, 0.28), random.random() * np.pi
    y, x = np.mgrid[:size, :size] + 0.5
    y, x = y - place[0], x - place[1]
    u, v = np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x
    if kind == "disc":
        return u * u + v * v <= radius * radius
    if kind == "box":
        return np.maximum(np.abs(u), np.abs(v) * random.uniform(1.0, 2.0)) <= radius
    return (v <= 0.5 * radius) & (2 * np.abs(u) <= radius + v)  # a wedge: a triangle that stands on its base
