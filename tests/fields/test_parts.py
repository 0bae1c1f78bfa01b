"""Parts of shapes: topics are recovered, the terms do what they say, classes are told apart, bad clouds are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mercer import _core
from mercer.data import PointCloud
from mercer.fields import ShapeClassifier, ShapePartModel, SpatialLDA

SIZES = (60, 50, 40)


def object_of(random, n=SIZES):
    """A body, a head and a stick, of sizes that vary."""
    body = random.normal(size=(n[0], 3))
    body /= np.linalg.norm(body, axis=1, keepdims=True)
    head = random.normal(size=(n[1], 3))
    head = 0.5 * head / np.linalg.norm(head, axis=1, keepdims=True) + [0, 0, 1.6 + 0.1 * random.normal()]
    stick = np.stack([random.uniform(1.1, 2.4, n[2]), *0.08 * random.normal(size=(2, n[2]))], axis=1)
    return np.concatenate([body * (1 + 0.1 * random.normal()), head, stick])


@pytest.fixture(scope="module")
def objects():
    random = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), SIZES)
    return [object_of(random) for _ in range(6)], np.tile(truth, 6)


def agreement(model, objects):
    clouds, truth = objects
    return adjusted_rand_score(truth, np.concatenate(model.fit(clouds).labels_))


def test_disjoint_topics_are_recovered():
    random = np.random.default_rng(0)
    k, per, documents = 4, 25, 60
    words, offsets = [], [0]
    for _ in range(documents):
        topics = random.choice(k, 80, p=random.dirichlet(np.full(k, 0.3)))
        words.append(topics * per + random.integers(0, per, 80))
        offsets.append(offsets[-1] + 80)
    words = np.concatenate(words).astype(np.int32)
    found = random.integers(0, k, len(words)).astype(np.int32)
    _core.fields.topic_sweeps(np.array(offsets), words, found, k * per, np.full(k, 0.1, np.float32), 0.01, 1, 200)
    counts = np.zeros((k, k * per))
    np.add.at(counts, (found, words), 1.0)
    true = np.kron(np.eye(k), np.ones(per))
    cosine = (counts @ true.T) / np.linalg.norm(counts, axis=1)[:, None] / np.linalg.norm(true, axis=1)
    assert cosine.max(axis=0).min() > 0.95


def test_topic_sweeps_follow_the_collapsed_conditional():
    """Two documents of two words: all 16 assignments, against the probabilities of the collapsed joint."""
    from scipy.special import gammaln

    words, offsets = np.array([0, 1, 0, 0], np.int32), np.array([0, 2, 4])
    alpha, beta = 0.4, 0.7
    joint = []
    for code in range(16):
        z = (code >> np.arange(4)) & 1
        by_word, by_document = np.zeros((2, 2)), np.zeros((2, 2))
        np.add.at(by_word, (z, words), 1.0)
        np.add.at(by_document, ([0, 0, 1, 1], z), 1.0)
        joint.append(
            gammaln(by_word + beta).sum() - gammaln(by_word.sum(axis=1) + 2 * beta).sum()
            + gammaln(by_document + alpha).sum()
        )  # fmt: skip
    p = np.exp(joint) / np.exp(joint).sum()
    z, counts = np.zeros(4, np.int32), np.zeros(16)
    for i in range(8000):
        _core.fields.topic_sweeps(offsets, words, z, 2, np.full(2, alpha, np.float32), beta, i, 2)
        counts[z @ (1 << np.arange(4))] += 1
    assert np.abs(counts / counts.sum() - p).max() < 0.015


def test_all_three_terms_beat_topics_alone_and_topics_with_smoothness(objects):
    settings = {"n_parts": 3, "max_iter": 60}
    whole, topics, smooth = (
        np.mean([agreement(ShapePartModel(random_state=seed, **settings, **terms), objects) for seed in range(3)])
        for terms in ({}, {"smoothness": False, "position": None}, {"position": None})
    )
    assert whole > topics + 0.2
    assert whole > smooth + 0.1


def test_the_printed_position_term_is_a_nearest_centre(objects):
    clouds, _ = objects
    model = ShapePartModel(3, position="posterior", max_iter=60, random_state=0).fit(clouds)
    points = np.concatenate(clouds)
    nearest = ((points[:, None] - model.centres_) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.concatenate(model.labels_)).mean() > 0.9


def test_new_clouds_get_the_parts_of_training(objects):
    clouds, _ = objects
    model = ShapePartModel(3, max_iter=60, random_state=0).fit(clouds)
    again = np.concatenate(model.predict(clouds))
    assert adjusted_rand_score(again, np.concatenate(model.labels_)) > 0.5
    assert model.mixtures_.sum(axis=1) == pytest.approx(1.0)
    assert model.part_words_.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["parts", "mixture", "global"])
def test_classes_are_told_apart(method):
    random = np.random.default_rng(1)
    scales = {"rod": (2.0, 0.3, 0.3), "disc": (1.0, 1.0, 0.1), "ball": (0.8, 0.8, 0.8)}
    y = [name for name in scales for _ in range(20)]
    clouds = [random.normal(0.0, scales[name], (80, 3)) for name in y]
    order = random.permutation(60)
    train, test = order[:42], order[42:]
    model = ShapeClassifier(3, method=method, max_iter=20, grid=10, random_state=0)
    model.fit([clouds[i] for i in train], [y[i] for i in train])
    assert model.score([clouds[i] for i in test], [y[i] for i in test]) > 0.9
    shuffled = random.permutation([y[i] for i in train])
    model.fit([clouds[i] for i in train], shuffled)
    assert model.score([clouds[i] for i in test], [y[i] for i in test]) < 0.75


def test_bad_clouds_are_named():
    good = np.random.default_rng(0).normal(size=(20, 3))
    for clouds, word in (
        ([], "no cloud"),
        ([good, np.zeros((0, 3))], r"clouds\[1\]"),
        ([good, good[:, :2]], r"clouds\[1\] has 2"),
        ([good, np.full((3, 3), np.nan)], r"clouds\[1\].*NaN"),
        (good[0], "must"),
        (["no-such-file.ply"], "no-such-file"),
    ):
        with pytest.raises((ValueError, OSError), match=word):
            ShapePartModel(2, max_iter=1).fit(clouds)
    model = SpatialLDA(2, max_iter=2, random_state=0).fit([good])
    with pytest.raises(ValueError, match="outside the training grid"):
        model.predict([good + 100.0])
    assert np.isfinite(model.log_likelihood([good + 1e300])).all()
    for word, settings in (
        ("position", {"position": "both"}),
        ("spread", {"spread": 0.0}),
        ("n_parts", {"n_parts": 0}),
    ):
        with pytest.raises(ValueError, match=word):
            ShapePartModel(**{"max_iter": 1, **settings}).fit([good])
    with pytest.raises(ValueError, match="at least one of"):
        ShapePartModel(cooccurrence=False, smoothness=False, position=None).fit([good])
    with pytest.raises(ValueError, match="two classes"):
        ShapeClassifier().fit([good, good], ["a", "a"])


def test_flat_clouds_and_single_points_are_taken():
    flat = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1, 0]
    for cloud in (flat, np.ones((1, 3)), np.ones((5, 3)), flat[:, :2], flat * 1e6):
        model = ShapePartModel(2, max_iter=3, random_state=0).fit([cloud, cloud])
        assert len(model.labels_[0]) == len(cloud)


def test_meshes_are_read_from_files(tmp_path):
    from mercer.data import write_cloud

    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [[0, 1, 2], [1, 3, 2], [4, 5, 6], [5, 7, 6]]
    write_cloud(tmp_path / "box.ply", PointCloud(corners, faces=faces))
    model = SpatialLDA(2, max_iter=2, random_state=0).fit([tmp_path / "box.ply"])
    assert len(model.labels_[0]) > 100
