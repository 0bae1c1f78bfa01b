"""Codebooks: words by k-means, histograms by counting, descriptors of images by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

import mercer
from mercer.maps import Codebook, gradient_descriptors

RNG = np.random.default_rng(0)
ITEMS = [RNG.normal(size=(n, 3)) for n in (5, 9, 0, 14)]


def test_histograms_count_the_nearest_words():
    book = Codebook(4, random_state=0, normalize=False).fit(ITEMS)
    rows = book.transform(ITEMS)
    for points, row in zip(ITEMS, rows, strict=True):
        nearest = [np.argmin([np.sum((d - c) ** 2) for c in book.words_]) for d in points]
        np.testing.assert_array_equal(row, np.bincount(np.array(nearest, int), minlength=4))
    shares = Codebook(4, random_state=0).fit_transform(ITEMS)
    np.testing.assert_allclose(shares.sum(axis=1), [1, 1, 0, 1])
    expected = KMeans(4, n_init=1, random_state=np.random.RandomState(0)).fit(np.concatenate(ITEMS))
    np.testing.assert_allclose(book.words_, expected.cluster_centers_)


def test_sequences_functions_and_files(tmp_path):
    plain = Codebook(4, random_state=0).fit(ITEMS)
    videos = [ITEMS[:2], ITEMS[2:]]
    nested = Codebook(4, nested=True, random_state=0).fit_transform(videos)
    np.testing.assert_array_equal(np.concatenate(nested), plain.transform(ITEMS))
    assert [len(frames) for frames in nested] == [2, 2]
    called = Codebook(4, lambda item: item["points"], random_state=0)
    np.testing.assert_array_equal(called.fit_transform([{"points": x} for x in ITEMS]), plain.transform(ITEMS))
    with pytest.raises(ValueError, match="descriptors is a function"):
        mercer.save(called, tmp_path / "book")
    mercer.save(plain, tmp_path / "book")
    np.testing.assert_array_equal(mercer.load(tmp_path / "book").transform(ITEMS), plain.transform(ITEMS))
    assert Codebook(4, max_descriptors=10, random_state=0).fit(ITEMS).words_.shape == (4, 3)


def test_gradient_descriptors_are_histograms_of_directions():
    image = RNG.random((24, 20))
    found = gradient_descriptors(image, 16, 4, cells=2, bins=4)
    assert found.shape == (6, 16)
    dy, dx = np.gradient(image)
    turn, length = np.arctan2(dy, dx) / (2 * np.pi) * 4, np.hypot(dx, dy)
    wanted = np.zeros((2, 2, 4))
    for i in range(16):
        for j in range(16):
            t = turn[4 + i, j]  # the patch with its corner at row 4, column 0
            for k in range(4):
                wanted[i // 8, j // 8, k] += length[4 + i, j] * max(0, 1 - min((t - k) % 4, (k - t) % 4))
    wanted = wanted.ravel() / np.linalg.norm(wanted)
    wanted = np.minimum(wanted, 0.2)
    np.testing.assert_allclose(found[2], wanted / np.linalg.norm(wanted))
    ramp = np.tile(np.arange(16.0), (16, 1))  # all gradients to the right: one direction of eight
    assert (gradient_descriptors(ramp).reshape(16, 8)[:, 1:] == 0).all()


@pytest.mark.parametrize(
    ("make", "X", "message"),
    [
        (lambda: Codebook(40), ITEMS, "needs as many descriptors, X has 28"),
        (lambda: Codebook(2), [np.ones((5, 2))], "X has 1 different descriptors"),
        (lambda: Codebook(2), [np.ones((5, 2)), np.ones((5, 3))], "item 1 has descriptors of 3 features, expected 2"),
        (lambda: Codebook(2), [np.full((5, 2), np.nan)], "item 0: descriptors must be finite"),
        (lambda: Codebook(2), [np.ones((2, 2, 2))], "nested=True sequences"),
        (lambda: Codebook(2, "sift"), ITEMS, "descriptors must be"),
        (lambda: Codebook(2, "gradients"), [np.ones((8, 8))], "at least 16 x 16"),
        (lambda: Codebook(2), "text", "list of items"),
        (lambda: Codebook(0), ITEMS, "n_words"),
        (lambda: Codebook(2, nested="yes"), ITEMS, "nested"),
    ],
)
def test_bad_input_is_named(make, X, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X)


def test_other_descriptors_are_refused_later():
    book = Codebook(2, random_state=0).fit(ITEMS)
    with pytest.raises(ValueError, match="2 features, expected 3"):
        book.transform([np.ones((4, 2))])
    with pytest.raises(ValueError, match="size must be a multiple"):
        gradient_descriptors(np.ones((20, 20)), 15)
