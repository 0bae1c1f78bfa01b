"""Generated videos and categories have what was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_attribute_categories, make_videos


@pytest.mark.parametrize(("share", "run"), [(0.4, 4), (0.1, 5), (1.0, 3), (0.0, 2)])
def test_events_fill_their_share_of_positive_videos_in_runs(share, run):
    task = make_videos(30, (20, 40), 5, share=share, run=run)
    for x, label, frames in zip(task.videos, task.y, task.frames, strict=True):
        assert x.shape == (len(frames), 5)
        assert 20 <= len(frames) <= 40
        assert (frames > 0).sum() == (round(share * len(frames)) if label else 0)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], frames > 0, [0]])))
        assert len(edges) // 2 <= -(-(frames > 0).sum() // run)  # runs may meet, but not fall apart


def test_events_have_directions_of_their_own():
    task = make_videos(90, n_events=2, separation=4.0, distractors=0.0, scene=0.0)
    assert np.bincount(task.y).tolist() == [30, 30, 30]
    X, what = np.concatenate(task.videos), np.concatenate(task.frames)
    means = np.array([X[what == event].mean(axis=0) for event in range(3)])
    assert np.linalg.norm(means[1] - means[0]) == pytest.approx(4, rel=0.1)
    assert np.linalg.norm(means[1] - means[2]) > 2


def test_the_same_seed_gives_the_same_videos():
    a, b, c = make_videos(4, random_state=1), make_videos(4, random_state=1), make_videos(4, random_state=2)
    assert all(np.array_equal(x, z) for x, z in zip(a.videos, b.videos, strict=True))
    assert not np.array_equal(a.videos[0], c.videos[0])


def test_categories_have_the_shares_of_their_images():
    task = make_attribute_categories(7, 50, 3, 6, low=0.1, high=0.3)
    for k in range(7):
        np.testing.assert_allclose(task.attributes[task.category == k].mean(axis=0), task.proportions[k])
    assert ((task.probabilities >= 0.1) & (task.probabilities <= 0.3)).all()
    assert np.abs(task.proportions - task.probabilities).max() < 0.25


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_videos, {"n_videos": 0}, "n_videos must be"),
        (make_videos, {"n_frames": (9, 3)}, "n_frames must be"),
        (make_videos, {"share": 1.5}, "share must be a number from 0 to 1"),
        (make_videos, {"separation": -1.0}, "separation must be a number of at least 0"),
        (make_videos, {"run": 0}, "run must be"),
        (make_attribute_categories, {"n_attributes": 0}, "n_attributes must be"),
        (make_attribute_categories, {"low": 0.9, "high": 0.1}, "high must be"),
        (make_attribute_categories, {"scatter": float("inf")}, "scatter must be"),
    ],
)
def test_wrong_parameters_are_named(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
