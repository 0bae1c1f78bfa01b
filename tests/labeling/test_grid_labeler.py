"""GridLabeler: block features, label maps, generated blob masks, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import mercer
from mercer.inference import grid_edges
from mercer.labeling import GridLabeler, block_contrasts, block_features, block_labels
from mercer.learning import ConvergenceWarning
from mercer.metrics import mean_iou

pytestmark = pytest.mark.filterwarnings("ignore")  # approximate sums, few iterations


def identity(image, block):
    return image


def make_blobs(n, shape=(16, 24), noise=1.5, seed=0):
    """Blob masks of blocks with noisy features, one block a pixel."""
    random = np.random.default_rng(seed)
    masks = [(gaussian_filter(random.normal(size=shape), 3) > 0).astype(int) for _ in range(n)]
    images = [mask[:, :, None] + noise * random.normal(size=(*shape, 3)) for mask in masks]
    return images, masks


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_grid_errs_at_most_sixty_percent_as_often_as_blocks_alone(loss):
    images, masks = make_blobs(30)
    options = {"block": 1, "features": identity, "C": 0.01, "max_iter": 25}
    together = GridLabeler(loss, **options).fit(images[:6], masks[:6])
    alone = GridLabeler(loss, edge_weights="none", **options).fit(images[:6], masks[:6])
    wrong = [1.0 - model.score(images[6:], masks[6:]) for model in (together, alone)]
    assert wrong[0] <= 0.6 * wrong[1]
    assert (together.pair_weights_[0, 0].diagonal() > 0).all()  # W_e > 0: neighbours agree
    assert "cuts" in together.inference_


def test_block_features_equal_loops():
    random = np.random.default_rng(0)
    image = random.random((10, 7, 2))
    features = block_features(image, 4)
    assert features.shape[:2] == (3, 2)
    for i in range(3):
        for j in range(2):
            pixels = image[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].reshape(-1, 2)
            np.testing.assert_allclose(features[i, j, :2], pixels.mean(axis=0))
            np.testing.assert_allclose(features[i, j, 2:4], pixels.std(axis=0), atol=1e-7)
    assert np.isfinite(features).all()
    np.testing.assert_allclose(block_features((image * 255).astype(np.uint8), 4)[..., :4], features[..., :4], atol=0.01)


def test_orientations_of_stripes_are_told_apart():
    stripes = np.tile(np.arange(16) % 8 / 8.0, (16, 1))
    down, across = block_features(stripes.T, 8), block_features(stripes, 8)
    assert across[0, 0, 3:11].argmax() == 0  # gradients along x
    assert down[0, 0, 3:11].argmax() == 4  # along y


def test_contrast_is_low_across_borders():
    image = np.zeros((8, 8))
    image[:, 4:] = 1.0
    edges = grid_edges((2, 2))
    found = block_contrasts(image, edges, 4)
    across = edges[:, 1] - edges[:, 0] == 1
    assert (found[across, 1] < found[~across, 1]).all()
    assert (found[:, 0] == 1).all()
    assert (block_contrasts(np.zeros((8, 8)), edges, 4) == 1).all()


def test_labels_of_blocks_are_those_of_most_pixels():
    labels = np.array([[0, 0, 2, 2], [0, 1, 2, -1], [-1, -1, 1, 0]])
    np.testing.assert_array_equal(block_labels(labels, 3, 2), [[0, 2], [-1, 0]])


@pytest.mark.parametrize("connectivity", [4, 8])
def test_images_of_any_size_get_maps_of_their_size(connectivity, tmp_path):
    random = np.random.default_rng(0)
    shapes = [(17, 20), (9, 31), (8, 8), (16, 5)]
    masks = [np.where(np.arange(w) < w // 2, "left", "right")[None].repeat(h, 0) for h, w in shapes]
    images = [(mask == "right") + 0.3 * random.normal(size=mask.shape) for mask in masks]
    model = GridLabeler(block=4, connectivity=connectivity, C=0.1).fit(images, masks)
    found, marginals = model.predict(images), model.predict_marginals(images)
    assert [m.shape for m in found] == shapes
    assert [m.shape for m in marginals] == [(*shape, 2) for shape in shapes]
    assert model.score(images, masks) > 0.8
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    for a, b in zip(found, again.predict(images), strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.predict([]) == []


@pytest.mark.parametrize("channels", [1, 3])
def test_one_image_is_a_batch_of_one(channels):
    images, masks = make_blobs(4)
    pixels = [image[:, :, :channels] if channels > 1 else image[:, :, 0] for image in images]
    model = GridLabeler(block=8, C=0.1).fit(pixels, masks)
    np.testing.assert_array_equal(model.predict(pixels[0]), model.predict(pixels[:1])[0])
    np.testing.assert_array_equal(model.predict_marginals(pixels[0]), model.predict_marginals(pixels[:1])[0])
    if channels == 1:  # three dimensions are a stack of such images
        assert len(model.predict(np.stack(pixels))) == len(pixels)


def test_pixels_that_are_not_known_do_not_count():
    images, masks = make_blobs(3, seed=2)
    hidden = [np.where(np.random.default_rng(i).random(m.shape) < 0.3, 255, m) for i, m in enumerate(masks)]
    model = GridLabeler(block=1, features=identity, C=0.01, unknown=255, max_iter=15).fit(images, hidden)
    assert model.classes_.tolist() == [0, 1]
    assert model.score(images, hidden) > 0.8


def test_three_labels_use_expansion_moves():
    random = np.random.default_rng(0)
    masks = [gaussian_filter(random.normal(size=(20, 20, 3)), (3, 3, 0)).argmax(axis=2) for _ in range(8)]
    images = [np.eye(3)[m] + random.normal(size=(20, 20, 3)) for m in masks]
    model = GridLabeler("hinge", block=1, features=identity, C=0.01, max_iter=30).fit(images[:4], masks[:4])
    alone = GridLabeler("hinge", block=1, features=identity, C=0.01, edge_weights="none").fit(images[:4], masks[:4])
    assert "expansion" in model.inference_
    assert model.score(images[4:], masks[4:]) > alone.score(images[4:], masks[4:]) + 0.05


def test_intersection_over_union():
    truth, found = [np.array([[1, 1, 0, 0]])], [np.array([[1, 0, 0, 0]])]
    assert mean_iou(truth, found, 1) == 0.5
    assert np.isclose(mean_iou(truth, found), (0.5 + 2 / 3) / 2)
    assert mean_iou(truth, truth) == 1.0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda X, y: GridLabeler(block=0).fit(X, y), "block must be"),
        (lambda X, y: GridLabeler(connectivity=6).fit(X, y), "connectivity must be"),
        (lambda X, y: GridLabeler(features="x").fit(X, y), "features must be"),
        (lambda X, y: GridLabeler().fit([np.zeros(3)], y[:1]), "image 0 must be"),
        (lambda X, y: GridLabeler().fit([np.full((4, 4), np.nan)], y[:1]), "NaN"),
        (lambda X, y: GridLabeler(block=1).fit(X, [m[:-1] for m in y]), "label map 0 has shape"),
        (lambda X, y: GridLabeler().fit(X, y[:1]), "4 images in X, 1 label maps"),
        (lambda X, y: GridLabeler().fit([X[0], X[1][:, :, :1]], y[:2]), "different numbers of channels"),
        (lambda X, y: GridLabeler().fit(X, [m * 0 for m in y]), "two different labels"),
        (lambda X, y: GridLabeler(features=lambda x, b: x[:1]).fit(X, y), "image 0: features returned shape"),
        (lambda X, y: mean_iou(y, y[:1]), "same shapes"),
    ],
)
def test_wrong_input_is_named(act, message):
    with pytest.raises(ValueError, match=message):
        act(*make_blobs(4))


def test_none_in_a_label_map_is_unknown():
    images, masks = make_blobs(3, seed=2)
    hidden = [np.where(np.random.default_rng(i).random(m.shape) < 0.3, None, m) for i, m in enumerate(masks)]
    coded = [np.where(m == None, 255, m).astype(int) for m in hidden]  # noqa: E711
    options = {"block": 1, "features": identity, "C": 0.01, "max_iter": 10}
    by_none = GridLabeler(**options).fit(images, hidden)
    by_code = GridLabeler(unknown=255, **options).fit(images, coded)
    np.testing.assert_array_equal(by_none.coef_, by_code.coef_)
    assert by_none.score(images, hidden) == by_code.score(images, coded)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda X, y: GridLabeler(block=8).fit(X, [m[:-1] for m in y]), "label map 0 has shape"),
        (lambda X, y: GridLabeler(block=8).fit(X, y, dev=(X, [m[:-1] for m in y])), "label map 0 has shape"),
        (lambda X, y: GridLabeler(block=8).fit(X, y).score(X, y[:1]), "4 images in X, 1 label maps"),
        (lambda X, y: GridLabeler(block=8).fit(X, y).log_likelihood(X, [m.T for m in y]), "label map 0 has shape"),
        (lambda X, y: GridLabeler(block=8).fit(X, [np.where(m == 1, np.nan, m) for m in y]), "contains NaN"),
    ],
)
def test_maps_that_do_not_fit_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act(*make_blobs(4))


def test_nan_among_objects_is_named_and_none_is_not_scored():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 8)) for _ in range(4)]
    truth = [(x > 0).astype(object) for x in X]
    model = GridLabeler(block=4, unknown=255, max_iter=5).fit(X, truth)
    known = [p.astype(object) for p in model.predict(X)]
    for labels in known:
        labels[:4] = None
    assert model.score(X, known) == 1.0
    truth[0][0, 0] = float("nan")
    with pytest.raises(ValueError, match="label map 0 contains NaN"):
        GridLabeler(block=4).fit(X, truth)


# ------------------------------------------------------------------------------------------- blocks by default


@pytest.mark.parametrize(
    ("shape", "block"), [((240, 320), 8), ((120, 160), 7), ((48, 64), 2), ((20, 20), 1), ((8, 8), 1), ((39, 41), 2)]
)
def test_small_images_have_small_blocks_by_default(shape, block):
    random = np.random.default_rng(0)
    truth = np.zeros(shape, int)
    truth[: shape[0] // 2] = 1
    images = [truth + random.normal(size=shape) for _ in range(2)]
    with pytest.warns(ConvergenceWarning):
        model = GridLabeler(max_iter=1, training="piecewise").fit(images, [truth] * 2)
    assert model.block_ == block
    assert model.predict(images[:1])[0].shape == shape


def test_the_grid_is_compared_with_single_blocks(tmp_path):
    images, masks = make_blobs(6, shape=(24, 24), noise=3.0)
    model = GridLabeler(block=2).fit(images, masks)
    alone = GridLabeler(block=2, edge_weights="none").fit(images, masks)
    assert model.grid_score_ > model.alone_score_
    blocks = np.concatenate([block_labels(mask, 2, 2).ravel() for mask in masks])
    for one, score in ((model, model.grid_score_), (alone, model.alone_score_)):
        found = np.concatenate([mask[::2, ::2].ravel() for mask in one.predict(images)])
        assert score == pytest.approx((found == blocks).mean(), abs=0.005)
    assert not hasattr(alone, "grid_score_")
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    assert (loaded.block_, loaded.grid_score_, loaded.alone_score_) == (2, model.grid_score_, model.alone_score_)


def test_a_grid_that_is_not_better_says_so():
    """Labels of the pixels are seen in the pixels: nothing is left for the neighbours to tell."""
    random = np.random.default_rng(0)
    masks = [random.integers(0, 2, (12, 12)) for _ in range(3)]
    images = [mask.astype(float) for mask in masks]
    with pytest.warns(UserWarning, match="neighbours do not help: the grid labels 100.0% of the training blocks right"):
        GridLabeler(block=1).fit(images, masks)
    with pytest.warns(UserWarning, match="of the held-out blocks right"):
        GridLabeler(block=1).fit(images[:2], masks[:2], dev=(images[2:], masks[2:]))


@pytest.mark.parametrize("block", [0, 2.5, "small", None])
def test_other_blocks_are_refused(block):
    with pytest.raises(ValueError, match="block must be 'auto' or an integer"):
        GridLabeler(block=block).fit([np.zeros((4, 4))], [np.eye(4, dtype=int)])
