"""Compact maps: gradients are exact, learning beats random frequencies of the same number, and stops in time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.maps import CompactNonlinearMap
from mercer.maps.compact import _Waves, gaussian_gram, hinge_gradients, kernel_gradients


def strokes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pen strokes: ten classes of eight points on a curve each, turned, stretched and shaken: 16 numbers."""
    shapes = np.random.default_rng(12345).normal(size=(10, 2, 3, 2))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n)
    variant = rng.integers(0, 2, n)
    t = np.linspace(0, np.pi, 8)[None, :, None] * rng.uniform(0.85, 1.15, (n, 1, 1))
    c = shapes[y, variant] + 0.12 * rng.normal(size=(n, 3, 2))
    points = c[:, None, 0] * np.cos(t) + c[:, None, 1] * np.sin(t) + c[:, None, 2] * np.cos(2 * t)
    return points.reshape(n, 16) + 0.1 * rng.normal(size=(n, 16)), y


def numeric(loss, values: np.ndarray, step: float = 1e-6) -> np.ndarray:
    found = np.zeros_like(values)
    for place in np.ndindex(values.shape):
        kept = values[place]
        values[place] = kept + step
        high = loss()
        values[place] = kept - step
        low = loss()
        values[place] = kept
        found[place] = (high - low) / (2 * step)
    return found


def accuracy(map_: CompactNonlinearMap, X: np.ndarray, y: np.ndarray) -> float:
    F = map_.transform(X) @ map_.coef_.T + map_.intercept_
    chosen = (F[:, 0] > 0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
    return float((map_.classes_[chosen] == y).mean())


# ------------------------------------------------------------------------------------------------ gradients


def waves(d: int, k: int, circulant: bool) -> _Waves:
    rng = np.random.default_rng(k)
    theta = rng.normal(size=(-(-k // d), d) if circulant else (d, k))
    return _Waves(theta, rng.uniform(0, 6, k), np.sign(rng.normal(size=d)) if circulant else None)


@pytest.mark.parametrize("circulant", [False, True])
@pytest.mark.parametrize(("d", "k", "classes"), [(1, 1, 1), (5, 3, 4), (6, 6, 1), (4, 10, 3)])
def test_gradients_of_the_hinge_loss(d, k, classes, circulant):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, d)), np.sign(rng.normal(size=(20, classes)))
    W, made = rng.normal(size=(k + 1, classes)), waves(d, k, circulant)

    def loss():
        return hinge_gradients(made, W, X, Y, 0.1)[0]

    _, *gradients = hinge_gradients(made, W, X, Y, 0.1)
    for values, gradient in zip((W, made.theta, made.phases), gradients, strict=True):
        assert np.abs(numeric(loss, values) - gradient).max() < 1e-6


@pytest.mark.parametrize("circulant", [False, True])
@pytest.mark.parametrize(("d", "k"), [(1, 2), (5, 3), (4, 10)])
def test_gradients_of_the_error_of_the_kernel(d, k, circulant):
    X = np.random.default_rng(0).normal(size=(12, d))
    K, made = gaussian_gram(X, 0.4), waves(d, k, circulant)
    _, *gradients = kernel_gradients(made, X, K)
    for values, gradient in zip((made.theta, made.phases), gradients, strict=True):
        assert np.abs(numeric(lambda: kernel_gradients(made, X, K)[0], values) - gradient).max() < 1e-6


def test_the_gradient_of_the_kernel_is_that_of_the_catalogue():
    """(8/k) Σ (K − (2/k) cosᵀcos) sin(θᵀx) cos(θᵀx') x, over the number of pairs."""
    made = waves(3, 4, False)
    X = np.random.default_rng(0).normal(size=(7, 3))
    K, A = gaussian_gram(X, 0.4), X @ made.theta + made.phases
    E = K - (2 / 4) * np.cos(A) @ np.cos(A).T
    expected = sum(
        (8 / 4) * E[i, j] * X[i][:, None] * (np.sin(A[i]) * np.cos(A[j]))[None, :] for i in range(7) for j in range(7)
    )
    assert np.allclose(kernel_gradients(made, X, K)[1], expected / 49)


# ------------------------------------------------------------------------------------------------ what learning gains


@pytest.mark.parametrize(("k", "gain"), [(8, 0.25), (16, 0.15)])
def test_a_few_learnt_features_beat_as_many_random_ones(k, gain):
    X, y = strokes(1500)
    held, truth = strokes(600, seed=1)
    learnt = accuracy(CompactNonlinearMap(k, max_iter=30, random_state=0).fit(X, y), held, truth)
    random = accuracy(CompactNonlinearMap(k, learning_rate=0, max_iter=30, random_state=0).fit(X, y), held, truth)
    assert learnt > random + gain
    assert learnt > 0.93


def test_learnt_circulant_features_beat_random_ones():
    """The part of learning: eight circulant features, learnt, are at least 5 points above random ones."""
    X, y = strokes(1000)
    held, truth = strokes(500, seed=1)
    learnt, random = (
        accuracy(CompactNonlinearMap(8, circulant=True, learning_rate=rate, random_state=0).fit(X, y), held, truth)
        for rate in (0.02, 0.0)
    )
    assert learnt > random + 0.05


@pytest.mark.parametrize("circulant", [False, True])
def test_learning_lowers_the_error_of_the_kernel(circulant):
    """20% lower on training rows, not higher on others."""
    X, held = strokes(600)[0], strokes(400, seed=1)[0]

    def errors(rate):
        map_ = CompactNonlinearMap(32, "kernel", circulant=circulant, learning_rate=rate, max_iter=10, batch_size=200,
                                   random_state=0)  # fmt: skip
        map_.fit(X)
        return [np.mean((map_.gram(rows) - gaussian_gram(rows, map_.gamma_)) ** 2) for rows in (X, held)]

    before, after = errors(0.0), errors(0.02)
    assert after[0] < 0.8 * before[0]
    assert after[1] < before[1]


def test_without_early_stopping_random_labels_are_learnt_by_heart():
    """Frequencies grow without bound; rows kept aside put an end to it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 5)), rng.integers(0, 2, 100)
    options = {"gamma": 0.1, "steps": 50, "max_iter": 30, "learning_rate": 0.1, "random_state": 0}
    free = CompactNonlinearMap(64, early_stopping=False, **options).fit(X, y)
    assert accuracy(free, X, y) > 0.97
    assert np.linalg.norm(free.frequencies_) > 1.5 * np.sqrt(2 * 0.1 * 5 * 64)
    stopped = CompactNonlinearMap(64, patience=3, **options).fit(X, y)
    assert stopped.n_iter_ < 20


@pytest.mark.parametrize("frequency_penalty", ["l2", "l1"])
def test_a_penalty_keeps_frequencies_smaller(frequency_penalty):
    X, y = strokes(500)
    options = {"max_iter": 4, "early_stopping": False, "random_state": 0}
    free = CompactNonlinearMap(16, **options).fit(X, y)
    held = CompactNonlinearMap(16, frequency_penalty=frequency_penalty, frequency_alpha=0.1, **options).fit(X, y)
    assert np.abs(held.frequencies_).sum() < np.abs(free.frequencies_).sum()


# ------------------------------------------------------------------------------------------------ the map


@pytest.mark.parametrize("circulant", [False, True])
@pytest.mark.parametrize("k", [3, 16, 40])
def test_the_map_is_the_cosine_of_its_frequencies(k, circulant):
    X, y = strokes(200)
    map_ = CompactNonlinearMap(k, circulant=circulant, max_iter=2, random_state=0).fit(X, y)
    expected = np.sqrt(2 / k) * np.cos(X @ map_.frequencies_ + map_.phases_)
    assert np.allclose(map_.transform(X), expected)
    assert np.allclose(map_.gram(X, X[:5]), expected @ expected[:5].T)
    if circulant:
        assert map_.vectors_.size == -(-k // 16) * 16


@pytest.mark.parametrize("circulant", [False, True])
def test_types_and_tensors_are_kept(circulant):
    X, y = strokes(200)
    X = X.astype(np.float32)
    map_ = CompactNonlinearMap(20, circulant=circulant, max_iter=2, random_state=0).fit(X, y)
    assert map_.frequencies_.dtype == np.float32 or circulant
    assert map_.transform(X).dtype == np.float32
    torch = pytest.importorskip("torch")
    found = map_.transform(torch.from_numpy(X))
    assert found.dtype == torch.float32
    assert np.allclose(found.numpy(), map_.transform(X), atol=1e-5)


def test_the_seed_decides():
    X, y = strokes(300)
    one, two, other = (CompactNonlinearMap(4, max_iter=2, random_state=s).fit(X, y).frequencies_ for s in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_progress_is_printed_on_request(capsys):
    X, y = strokes(100)
    map_ = CompactNonlinearMap(4, max_iter=2, verbose=True, random_state=0).fit(X, y)
    assert capsys.readouterr().err.count("accuracy") == map_.n_iter_ == len(map_.history_) == 2


def test_odd_inputs():
    y = np.arange(12) % 2
    map_ = CompactNonlinearMap(5, max_iter=2, random_state=0)
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(12, 1)), np.zeros((12, 3)), np.ones((12, 3)), rng.normal(size=(24, 6))[::2, ::2],
              np.arange(36).reshape(12, 3)):  # fmt: skip
        assert np.isfinite(map_.fit(X, y).transform(X)).all()
        CompactNonlinearMap(5, circulant=True, max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        map_.fit(np.full((12, 2), np.nan), y)
    with pytest.raises(TypeError, match="use X"):
        map_.fit(sp.eye(12, format="csr"), y)
    with pytest.raises(ValueError, match="one class only"):
        map_.fit(np.ones((12, 2)), np.zeros(12))
    with pytest.raises(ValueError, match="inconsistent lengths"):
        map_.fit(np.ones((12, 2)), y[:-1])
    with pytest.raises(ValueError, match="requires y"):
        map_.fit(np.ones((12, 2)))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"task": "regression"}, "task"),
        ({"gamma": "scale"}, "gamma"),
        ({"alpha": 0.0}, "alpha"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"frequency_penalty": "fro"}, "frequency_penalty"),
        ({"max_iter": 0}, "max_iter"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_parameters_are_named(options, name):
    with pytest.raises(ValueError, match=name):
        CompactNonlinearMap(**options).fit(*strokes(50))


@pytest.mark.parametrize("circulant", [False, True])
def test_scikit_learn_finds_nothing_to_object_to(circulant):
    model = CompactNonlinearMap(6, "kernel", circulant=circulant, max_iter=2, steps=3, random_state=0)
    drawn = {"check_sample_weight_equivalence_on_dense_data": "batches are drawn by place"}
    check_estimator(model, expected_failed_checks=drawn)


@pytest.mark.parametrize("circulant", [False, True])
@pytest.mark.parametrize("labels", [np.array(["a", "b"]), np.arange(10), None])
def test_a_file_keeps_the_map(labels, circulant, tmp_path):
    X, y = strokes(200)
    task = "kernel" if labels is None else "classification"
    y = None if labels is None else labels[y % len(labels)]
    map_ = CompactNonlinearMap(7, task, circulant=circulant, max_iter=2, random_state=0).fit(X, y)
    mercer.save(map_, tmp_path / "map.mercer")
    found = mercer.load(tmp_path / "map.mercer")
    assert np.array_equal(found.transform(X), map_.transform(X))
    if labels is not None:
        assert np.array_equal(found.classes_, map_.classes_)
        assert accuracy(found, X, y) == accuracy(map_, X, y)


# ------------------------------------------------------------------------------------------------ batches


@pytest.mark.parametrize("circulant", [False, True])
def test_batches_teach_labels(circulant):
    X, y = strokes(1000)
    held, truth = strokes(500, seed=1)
    map_ = CompactNonlinearMap(16, circulant=circulant, random_state=0)
    for _ in range(6):
        for start in range(0, 1000, 500):
            map_.partial_fit(X[start : start + 500], y[start : start + 500], classes=np.arange(10))
    assert map_.n_iter_ == len(map_.history_) == 12
    random = CompactNonlinearMap(16, circulant=circulant, learning_rate=0.0, random_state=0).fit(X, y)
    assert accuracy(map_, held, truth) > accuracy(random, held, truth) + 0.05


def test_batches_lower_the_error_of_the_kernel_and_fit_begins_anew(tmp_path):
    X, held = strokes(2000)[0], strokes(300, seed=1)[0]
    map_ = CompactNonlinearMap(32, "kernel", gamma=0.2, batch_size=200, random_state=0)

    def error():
        return np.mean((map_.gram(held) - gaussian_gram(held, 0.2)) ** 2)

    error_of_random = np.mean([
        (CompactNonlinearMap(32, "kernel", gamma=0.2, learning_rate=0.0, max_iter=1, random_state=s).fit(X).gram(held)
         - gaussian_gram(held, 0.2)) ** 2 for s in range(3)
    ])  # fmt: skip
    for start in range(0, 2000, 200):
        map_.partial_fit(X[start : start + 200])
    assert error() < 0.9 * error_of_random
    mercer.save(map_, tmp_path / "map.mercer")
    assert np.array_equal(mercer.load(tmp_path / "map.mercer").transform(held), map_.transform(held))
    fitted = CompactNonlinearMap(32, "kernel", gamma=0.2, batch_size=200, max_iter=2, random_state=0).fit(X)
    map_.set_params(max_iter=2).fit(X)
    assert np.array_equal(map_.frequencies_, fitted.frequencies_)


@pytest.mark.parametrize("circulant", [False, True])
def test_batches_go_on_from_a_fit_and_from_a_file(circulant, tmp_path):
    X, y = strokes(500)
    held, truth = strokes(300, seed=1)
    map_ = CompactNonlinearMap(16, circulant=circulant, max_iter=8, random_state=0).fit(X, y)
    before, frequencies = accuracy(map_, held, truth), map_.frequencies_
    mercer.save(map_, tmp_path / "map.mercer")
    for model in (map_, mercer.load(tmp_path / "map.mercer")):
        model.partial_fit(X, y)
        assert accuracy(model, held, truth) > before - 0.03
        moved = np.abs(model.frequencies_ - frequencies).mean() / np.abs(frequencies).mean()
        assert 0 < moved < 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y), "classes must be given in the first call"),
        (lambda m, X, y: m.partial_fit(X, y, classes=[0]), "one class only"),
        (lambda m, X, y: m.partial_fit(X, y, classes=range(3)), "none of the classes"),
        (lambda m, X, y: m.partial_fit(X, y[:-1], classes=range(10)), "inconsistent lengths"),
        (lambda m, X, y: m.partial_fit(X, classes=range(10)), "requires y"),
        (lambda m, X, y: m.partial_fit(X, y, classes=range(10)).partial_fit(X[:, 1:], y), "15 features"),
    ],
)
def test_bad_batches_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(CompactNonlinearMap(4, random_state=0), *strokes(50))


def test_maps_learnt_by_batches_can_be_copied_and_a_refused_batch_leaves_nothing_behind():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] > 0).astype(int)
    model = CompactNonlinearMap(4, steps=3, random_state=0)
    with pytest.raises(ValueError, match="none of the classes"):
        model.partial_fit(X, np.full(60, 7), classes=[0, 1])
    model.partial_fit(X, y + 5, classes=[5, 6])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    copy.partial_fit(X, y + 5)
