"""Generated region graphs are what they say: coupled labels, planar edges, repeatable, refused where wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_regions


def test_neighbours_are_those_that_couple():
    task = make_regions(60, coupling=2.0, random_state=0)
    labels = sorted({label for labels in task.y for label in labels})
    assert len(labels) == 7
    place = {label: i for i, label in enumerate(labels)}
    ready = [
        task.coupling[place[y[u]], place[y[v]]] > 0
        for (_, edges), y in zip(task.X, task.y, strict=True)
        for u, v in edges
    ]
    free = make_regions(60, coupling=0.0, random_state=0)
    chance = [
        task.coupling[place[y[u]], place[y[v]]] > 0 for (_, e), y in zip(free.X, free.y, strict=True) for u, v in e
    ]
    assert np.mean(ready) > np.mean(chance) + 0.3


def test_graphs_are_planar_and_of_the_sizes_asked_for():
    task = make_regions(30, n_regions=(4, 9), n_features=8, random_state=1)
    for (features, edges), labels, positions in zip(task.X, task.y, task.positions, strict=True):
        n = len(labels)
        assert 4 <= n <= 9
        assert features.shape == (n, 8)
        assert positions.shape == (n, 2)
        assert len(edges) <= 3 * n - 6
        assert (edges[:, 0] < edges[:, 1]).all()


def test_noise_grows_with_difficulty():
    easy, hard = (make_regions(20, difficulty=d, random_state=0) for d in (0.0, 2.0))
    assert set(np.concatenate([x for x, _ in easy.X]).ravel().tolist()) == {0.0, 1.0}
    assert np.concatenate([x for x, _ in hard.X]).std() > 1.5


def test_the_seed_decides():
    first, again, other = (make_regions(5, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.X[0][0], again.X[0][0])
    assert first.y != other.y


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_regions": (3, 5)}, "n_regions"),
        ({"n_regions": (6, 5)}, "low at most high"),
        ({"difficulty": -1.0}, "difficulty"),
        ({"coupling": np.nan}, "coupling"),
        ({"n_features": 3}, "n_features"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_regions(2, **options)
