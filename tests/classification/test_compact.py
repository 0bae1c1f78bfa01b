"""The compact classifier: few features, the labels of its data, files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.classification import CompactClassifier


def rings(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three rings around each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = y + 1 + 0.15 * rng.normal(size=n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), np.array(["in", "mid", "out"])[y]


@pytest.mark.parametrize("circulant", [False, True])
def test_a_few_cosines_separate_rings_that_no_line_does(circulant):
    X, y = rings(2000)
    held, truth = rings(500, seed=1)
    linear = LogisticRegression().fit(X, y).score(held, truth)
    compact = CompactClassifier(16, circulant=circulant, random_state=0).fit(X, y).score(held, truth)
    assert linear < 0.6
    assert compact > 0.93


def test_scores_and_labels_belong_together():
    X, y = rings(600)
    model = CompactClassifier(12, max_iter=5, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (600, 3)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    two = CompactClassifier(12, max_iter=5, random_state=0).fit(X, y == "mid")
    assert two.decision_function(X).shape == (600,)
    assert np.array_equal(two.predict(X), two.decision_function(X) > 0)


def test_it_stands_at_the_end_of_a_pipeline():
    X, y = rings(1000)
    assert make_pipeline(StandardScaler(), CompactClassifier(16, random_state=0)).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("circulant", [False, True])
def test_a_file_keeps_the_model(circulant, tmp_path):
    X, y = rings(300)
    model = CompactClassifier(8, circulant=circulant, max_iter=3, random_state=0).fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    found = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(found.decision_function(X), model.decision_function(X))
    assert list(found.predict(X)) == list(model.predict(X))


def test_a_file_of_another_task_is_refused():
    X, y = rings(100)
    meta, arrays = CompactClassifier(4, max_iter=1, random_state=0).fit(X, y).to_state()
    meta["fitted"]["map_"]["params"]["task"] = "kernel"
    with pytest.raises(ValueError, match="classification"):
        CompactClassifier.from_state(meta, arrays)


def test_bad_input_is_refused():
    X, y = rings(60)
    with pytest.raises(ValueError, match="one class"):
        CompactClassifier().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="NaN"):
        CompactClassifier().fit(X * np.nan, y)
    with pytest.raises(ValueError, match="n_components"):
        CompactClassifier(0).fit(X, y)


def test_scikit_learn_finds_nothing_to_object_to():
    drawn = {"check_sample_weight_equivalence_on_dense_data": "batches are drawn by place"}
    check_estimator(CompactClassifier(8, max_iter=4, steps=15, random_state=0), expected_failed_checks=drawn)


def test_batches_teach_rings():
    X = np.random.default_rng(0).uniform(-2, 2, (1500, 2))
    y = np.where(np.hypot(*X.T) < 1.2, "in", "out")
    model = CompactClassifier(16, random_state=0)
    for _ in range(4):
        for start in range(0, 1500, 300):
            model.partial_fit(X[start : start + 300], y[start : start + 300], classes=["in", "out"])
    assert model.score(X, y) > 0.93
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.ones((2, 3)), ["in", "out"])
