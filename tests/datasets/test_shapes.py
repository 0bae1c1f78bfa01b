"""make_shapes: maps and images belong together, noise hides, bad input is named."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_shapes


def test_without_noise_every_label_has_its_colour():
    task = make_shapes(6, size=24, noise=0.0, n_kinds=3, random_state=0)
    colours = {label: set() for label in task.labels}
    for image, labels in zip(task.images, task.maps, strict=True):
        for label in task.labels:
            colours[label].update(map(tuple, image[labels == label]))
    assert all(len(seen) == 1 for seen in colours.values())
    assert len(set().union(*colours.values())) == 4


def test_noise_has_the_given_deviation():
    clean, noisy = (make_shapes(4, size=40, noise=s, n_shapes=(0, 0), random_state=1) for s in (0.0, 0.7))
    rest = np.concatenate([a - b for a, b in zip(noisy.images, clean.images, strict=True)])
    assert abs(rest.std() - 0.7) < 0.02
    assert abs(rest.mean()) < 0.02


def test_shapes_are_connected_regions_of_the_ground():
    from scipy.ndimage import label

    task = make_shapes(30, size=32, n_shapes=(1, 1), random_state=2)
    parts = [label(m != "ground")[1] for m in task.maps]
    assert max(parts) == 1
    assert any(parts)


def test_seeds_repeat():
    first, again, other = (make_shapes(2, size=16, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.images[1], again.images[1])
    assert not np.array_equal(first.images[1], other.images[1])
    assert make_shapes(0).images == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_images": -1}, "n_images"),
        ({"size": 7}, "size"),
        ({"noise": -0.1}, "noise must be"),
        ({"noise": np.nan}, "noise must be"),
        ({"n_kinds": 4}, "n_kinds must be at most 3"),
        ({"n_kinds": 0}, "n_kinds"),
        ({"n_shapes": (3, 2)}, "low at most high"),
    ],
)
def test_wrong_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_shapes(**options)
