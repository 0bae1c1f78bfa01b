"""Videos with events in some frames, and images of categories with attributes: tasks with shares as labels.

**Videos**. A frame is x = s_v + o_t + ε: the scene s_v of its video, the event o_t, and noise. An event shifts frames
along its own direction, in runs of frames that fill a share of a positive video. Distractors shift frames along other
directions, in all videos.

**Categories with attributes**. An image of category k has attribute a with probability p_ka, and is
x = s_k + Σ_a z_a δ_a + ε, with a mean s_k of the category and a direction δ_a of the attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer._validation import check_count

__all__ = ["AttributeTask", "VideoTask", "make_attribute_categories", "make_videos"]


@dataclass(frozen=True)
class VideoTask:
    """Videos as frames, their events, and the event of each frame; see :func:`make_videos`.

    Attributes
    ----------
    videos : list of arrays of shape (n_frames, n_features)
    y : int array
        The event of each video; 0 for none.
    frames : list of int arrays of length n_frames
        The event of each frame; 0 for none.
    """

    videos: list[np.ndarray]
    y: np.ndarray
    frames: list[np.ndarray]


def make_videos(
    n_videos: int = 60,
    n_frames: int | tuple[int, int] = 30,
    n_features: int = 20,
    *,
    n_events: int = 1,
    share: float = 0.4,
    run: int = 4,
    distractors: float = 0.4,
    separation: float = 2.5,
    scene: float = 0.3,
    random_state: int | np.random.Generator | None = 0,
) -> VideoTask:
    """Draw videos, some of which show an event in some of their frames.

    Parameters
    ----------
    n_videos : int, default=60
        Number of videos. With one event, half of them show none; with more events, all cases are equally frequent.
    n_frames : int or (low, high), default=30
        Frames per video; for a pair uniform, both ends included.
    n_features : int, default=20
    n_events : int, default=1
        Number of kinds of events.
    share : float, default=0.4
        Share of the frames of a positive video that show the event.
    run : int, default=4
        Length of a run of an event in frames; the last run may be shorter to match the share.
    distractors : float, default=0.4
        Share of the other frames, in all videos, that show one of five distractors, also in runs.
    separation : float, default=2.5
        Shift of a frame by events and distractors, in standard deviations of the noise.
    scene : float, default=0.3
        Standard deviation of the scene features.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same videos.

    Returns
    -------
    task : VideoTask

    Examples
    --------
    >>> from mercer.datasets import make_videos
    >>> task = make_videos()
    >>> len(task.videos), task.videos[0].shape, task.y[:6]
    (60, (30, 20), array([0, 1, 0, 1, 0, 1]))
    >>> int(task.frames[1].sum())
    12
    """
    check_count("n_videos", n_videos)
    low, high = n_frames if isinstance(n_frames, tuple) else (n_frames, n_frames)
    if check_count("n_frames", high) < check_count("n_frames", low):
        raise ValueError(f"n_frames must be a number or a pair low <= high, got {n_frames!r}")
    check_count("n_features", n_features)
    check_count("n_events", n_events)
    check_count("run", run)
    for name, value in (("share", share), ("distractors", distractors)):
        _check_range(name, value, 0.0, 1.0)
    for name, value in (("separation", separation), ("scene", scene)):
        _check_range(name, value, 0.0, np.inf)
    rng = np.random.default_rng(random_state)
    events, others = _directions(n_events, n_features, rng), _directions(_OTHERS, n_features, rng)
    y = np.arange(n_videos) % (n_events + 1)
    videos, frames = [], []
    for label in y:
        n = int(rng.integers(low, high + 1))
        shown = _runs(n, round(share * n), run, rng) if label else np.zeros(n, bool)
        other = _runs(n, round(distractors * n), run, rng) & ~shown
        what = others[np.repeat(rng.integers(_OTHERS, size=n // run + 1), run)[:n]]
        x = scene * rng.normal(size=n_features) + rng.normal(size=(n, n_features))
        x += separation * np.where(other[:, None], what, 0.0)
        if label:
            x += separation * shown[:, None] * events[label - 1]
        videos.append(x)
        frames.append(np.where(shown, label, 0).astype(np.int64))
    return VideoTask(videos, y.astype(np.int64), frames)


_OTHERS = 5


def _check_range(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high or value == np.inf:
        limit = f"from {low:g} to {high:g}" if high < np.inf else f"of at least {low:g}"
        raise ValueError(f"{name} must be a number {limit}, got {value!r}")


def _directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.normal(size=(n, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _runs(n: int, wanted: int, run: int, rng: np.random.Generator) -> np.ndarray:
    """Draw runs at random positions that cover ``wanted`` of n frames."""
    lengths = [run] * (wanted // run) + ([wanted % run] if wanted % run else [])
    rng.shuffle(lengths)
    # The frames between runs are dealt to the gaps before, between and after them.
    gaps = np.bincount(rng.integers(len(lengths) + 1, size=n - wanted), minlength=len(lengths) + 1)
    marks = np.zeros(n, bool)
    at = int(gaps[0])
    for length, gap in zip(lengths, gaps[1:], strict=True):
        marks[at : at + length] = True
        at += length + int(gap)
    return marks


# -------------------------------------------------------------------------------------------------------- attributes


@dataclass(frozen=True)
class AttributeTask:
    """Images of categories and their attributes; see :func:`make_attribute_categories`.

    Attributes
    ----------
    X : array of shape (n, n_features)
    category : int array of length n
    proportions : array of shape (n_categories, n_attributes)
        The observed share of images with the attribute in each category.
    attributes : int array of shape (n, n_attributes)
        The attributes of each image.
    probabilities : array of shape (n_categories, n_attributes)
        The probabilities from which the shares were drawn.
    """

    X: np.ndarray
    category: np.ndarray
    proportions: np.ndarray
    attributes: np.ndarray
    probabilities: np.ndarray


def make_attribute_categories(
    n_categories: int = 20,
    n_per_category: int = 40,
    n_attributes: int = 4,
    n_features: int = 20,
    *,
    low: float = 0.2,
    high: float = 0.8,
    separation: float = 2.5,
    scatter: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> AttributeTask:
    """Draw images of categories with individual probabilities of attributes.

    Parameters
    ----------
    n_categories, n_per_category, n_attributes, n_features : int
    low, high : float, default=0.2 and 0.8
        Limits of the uniform distribution of attribute probabilities.
    separation : float, default=2.5
        Shift of an image by an attribute, in standard deviations of the noise.
    scatter : float, default=0.5
        Standard deviation of the features of category means.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same images.

    Returns
    -------
    task : AttributeTask

    Examples
    --------
    >>> from mercer.datasets import make_attribute_categories
    >>> task = make_attribute_categories()
    >>> task.X.shape, task.proportions.shape, bool((task.proportions > 0).all())
    ((800, 20), (20, 4), True)
    """
    for name, count in (
        ("n_categories", n_categories),
        ("n_per_category", n_per_category),
        ("n_attributes", n_attributes),
        ("n_features", n_features),
    ):
        check_count(name, count)
    _check_range("low", low, 0.0, 1.0)
    _check_range("high", high, float(low), 1.0)
    _check_range("separation", separation, 0.0, np.inf)
    _check_range("scatter", scatter, 0.0, np.inf)
    rng = np.random.default_rng(random_state)
    probabilities = rng.uniform(low, high, size=(n_categories, n_attributes))
    category = np.repeat(np.arange(n_categories), n_per_category)
    attributes = (rng.random((len(category), n_attributes)) < probabilities[category]).astype(np.int64)
    means = scatter * rng.normal(size=(n_categories, n_features))
    X = means[category] + rng.normal(size=(len(category), n_features))
    X += separation * attributes @ _directions(n_attributes, n_features, rng)
    proportions = attributes.reshape(n_categories, n_per_category, n_attributes).mean(axis=1)
    return AttributeTask(X, category, proportions, attributes, probabilities)
