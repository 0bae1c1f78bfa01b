"""Baselines that decide on each position alone, and the tuning of their offset."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import LinearSVC

from mercer.data import Sequences
from mercer.datasets import make_actions, make_paragraphs
from mercer.metrics import boundary_score
from mercer.segmentation import BoundaryClassifier, ParagraphFeatures, SegmentStatistics, tune_offset

TASK = make_paragraphs(n_documents=24, n_paragraphs=(4, 6), topic_share=0.7, random_state=1)
PACK = ParagraphFeatures(words=False).fit(TASK.documents[:10])
FEATURES = PACK.transform(TASK.documents)
TRAIN, DEV, TEST = slice(0, 10), slice(10, 17), slice(17, 24)


def scores(model, part):
    return boundary_score(TASK.starts[part], model.predict(FEATURES[part]), FEATURES[part].lengths)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_majority_is_right_as_often_as_the_larger_class(share):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in (30, 1, 50)]
    y = [np.flatnonzero(np.append(True, rng.random(len(x) - 1) < share)) for x in X]
    model = BoundaryClassifier("majority").fit(X, y)
    inner = np.concatenate([np.isin(np.arange(1, len(x)), starts) for x, starts in zip(X, y, strict=True)])
    found = boundary_score(y, model.predict(X), [len(x) for x in X])
    assert found.accuracy == pytest.approx(max(inner.mean(), 1 - inner.mean()))
    assert found.predicted in (0, len(inner))


def test_boosting_never_raises_the_training_loss_and_lowers_the_error():
    model = BoundaryClassifier("stumps").fit(FEATURES[TRAIN], TASK.starts[TRAIN])
    loss = model.estimator_.train_score_
    assert (np.diff(loss) <= 1e-12).all()
    rows = np.concatenate([FEATURES[TRAIN].boundaries[i][1:] for i in range(10)])
    truth = np.concatenate(
        [np.isin(np.arange(1, len(d)), s) for d, s in zip(TASK.documents[TRAIN], TASK.starts[TRAIN], strict=True)]
    )
    errors = [(stage != truth).mean() for stage in model.estimator_.staged_predict(rows)]
    assert errors[-1] < errors[0]
    assert errors[-1] <= min(errors[:10])


@pytest.mark.parametrize(
    "estimator", ["svm", "stumps", LogisticRegression(C=10.0), LinearSVC(), RandomForestClassifier(20, random_state=0)]
)
def test_any_classifier_beats_the_majority_where_sentences_tell(estimator):
    base = BoundaryClassifier("majority").fit(FEATURES[TRAIN], TASK.starts[TRAIN])
    model = BoundaryClassifier(estimator).fit(FEATURES[TRAIN], TASK.starts[TRAIN])
    assert scores(model, TEST).f1 > 0.6
    assert scores(model, TEST).accuracy > scores(base, TEST).accuracy


@pytest.mark.parametrize("estimator", ["svm", "stumps", RandomForestClassifier(5, random_state=0)])
@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_recall_does_not_fall_with_the_offset_and_tuning_never_hurts_on_its_own_data(estimator, metric):
    model = BoundaryClassifier(estimator).fit(FEATURES[TRAIN], TASK.starts[TRAIN])
    before = getattr(scores(model, DEV), metric)
    model.tune_offset(FEATURES[DEV], TASK.starts[DEV], metric=metric)
    curve = model.curve_
    assert (np.diff(curve.offsets) > 0).all()
    assert (np.diff(curve.recall) >= 0).all()
    assert curve.recall[0] == 0
    assert curve.recall[-1] == 1
    assert getattr(scores(model, DEV), metric) == getattr(curve, metric).max() >= before


@pytest.mark.parametrize(("metric", "bounded"), [("precision", "recall"), ("recall", "precision")])
def test_the_best_within_bounds_is_taken(metric, bounded):
    model = BoundaryClassifier("svm").fit(FEATURES[TRAIN], TASK.starts[TRAIN])
    model.tune_offset(FEATURES[DEV], TASK.starts[DEV], metric=metric, **{f"min_{bounded}": 0.75})
    found = scores(model, DEV)
    within = getattr(model.curve_, bounded) >= 0.75
    assert not within.all()
    assert getattr(found, bounded) >= 0.75
    assert getattr(found, metric) == getattr(model.curve_, metric)[within].max() < 1
    with pytest.raises(ValueError, match="no offset reaches"):
        model.tune_offset(FEATURES[DEV], TASK.starts[DEV], min_recall=0.99, min_precision=0.99)


def test_of_equal_offsets_the_one_nearest_to_0_is_taken():
    curve = tune_offset(lambda offset: [[0]], [[0]], [4], [-3.0, -1.0, 2.0], metric="accuracy")
    assert curve.best == 0
    with pytest.raises(ValueError, match="NaN"):
        tune_offset(lambda offset: [[0]], [[0]], [4], [np.nan])
    with pytest.raises(ValueError, match="metric"):
        tune_offset(lambda offset: [[0]], [[0]], [4], [1.0], metric="loss")


def test_raw_documents_go_through_a_feature_pack_of_the_fold():
    model = BoundaryClassifier("svm", features=ParagraphFeatures(words=False))
    X, y = np.empty(24, object), np.empty(24, object)
    X[:], y[:] = TASK.documents, TASK.starts
    found = cross_val_score(model, X, y, cv=KFold(3))
    assert len(found) == 3
    assert found.min() > 0.5
    assert clone(model).get_params()["features__words"] is False


def test_features_work_in_model_selection():
    y = np.empty(24, object)
    y[:] = TASK.starts
    found = cross_val_score(BoundaryClassifier(LogisticRegression()), FEATURES, y, cv=KFold(3))
    assert found.min() > 0.5


def test_frames_are_cut_into_actions():
    task = make_actions(difficulty=1)
    model = BoundaryClassifier("stumps", features=SegmentStatistics()).fit(task.X[::2], task.starts[::2])
    assert model.score(task.X[1::2], task.starts[1::2]) > 0.5


def test_every_sequence_begins_with_a_start_and_empty_ones_have_none():
    X = Sequences(np.random.default_rng(0).normal(size=(9, 2)), [0, 4, 4, 9])
    model = BoundaryClassifier("svm").fit(X, [[0, 2], [], [0]])
    predicted = model.predict(X)
    assert [p[:1].tolist() for p in predicted] == [[0], [], [0]]
    assert model.predict(X[1:2])[0].tolist() == []


def test_sequences_from_the_middle_of_a_matrix_are_learnt_as_a_copy_of_them():
    """Their offsets do not begin with 0."""
    rows = np.random.default_rng(0).normal(size=(14, 2))
    part, copy = Sequences(rows, [5, 9, 14]), Sequences(rows[5:], [0, 4, 9])
    fitted = [BoundaryClassifier("svm").fit(X, [[0, 2], [0, 1, 4]]) for X in (part, copy)]
    for ours, theirs in zip(*(model.decision_function(copy) for model in fitted), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("starts", [[[0]], [[0, 1, 2, 3]]])
def test_one_class_alone_is_predicted_everywhere(starts):
    X = [np.arange(8.0).reshape(4, 2)]
    model = BoundaryClassifier("svm").fit(X, starts)
    assert model.predict(X)[0].tolist() == starts[0]
    model.tune_offset(X, [[0, 2]], metric="recall")
    assert model.predict(X)[0].tolist() == [0, 1, 2, 3]


def test_bad_input_is_named():
    X = [np.ones((4, 2)), np.ones((3, 2))]
    for y, message in [
        ([[0]], "starts of 1 sequences"),
        ([[0], [1]], r"y\[1\] must begin with 0"),
        ([[0], [0, 7]], r"y\[1\] has a segment that starts at 7"),
    ]:
        with pytest.raises(ValueError, match=message):
            BoundaryClassifier().fit(X, y)
    with pytest.raises(ValueError, match="estimator must be one of"):
        BoundaryClassifier("tree").fit(X, [[0, 1], [0]])
    with pytest.raises(ValueError, match="decision_function or predict_proba"):
        BoundaryClassifier(object()).fit(X, [[0, 1], [0]])
    with pytest.raises(ValueError, match="offset"):
        BoundaryClassifier(offset=np.nan).fit(X, [[0, 1], [0]])
    with pytest.raises(ValueError, match="second position"):
        BoundaryClassifier().fit([np.ones((1, 2))], [[0]])
    model = BoundaryClassifier(LogisticRegression()).fit([np.eye(3)], [[0, 2]])
    with pytest.raises(ValueError, match="fitted to 3"):
        model.predict([np.ones((2, 4))])
