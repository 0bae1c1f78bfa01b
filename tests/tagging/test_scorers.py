"""Scorers of label sequences are scikit-learn's metrics over all positions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Perceptron
from sklearn.metrics import balanced_accuracy_score, f1_score, get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer.datasets import make_chain_task
from mercer.labeling import GridLabeler
from mercer.markov import HiddenMarkovModel
from mercer.metrics import span_f1, token_accuracy
from mercer.multilabel import NeighborLabels
from mercer.online import HashedClassifier
from mercer.segmentation import Segmenter
from mercer.tagging import Tagger, sequence_scorer


@pytest.fixture(scope="module")
def task():
    return make_chain_task(24, 12, length=(3, 6), n_labels=3, n_features=30, active=2, random_state=0)


@pytest.fixture(scope="module")
def tagger(task):
    return Tagger(tol=0.01).fit(task.X_train, task.y_train)


def flat(sequences):
    return [label for one in sequences for label in one]


def test_scores_are_those_of_the_flat_labels(task, tagger):
    true, found = flat(task.y_test), flat(tagger.predict(task.X_test))
    chances = np.concatenate(tagger.predict_marginals(task.X_test))
    expected = {
        "f1_macro": f1_score(true, found, average="macro"),
        "balanced_accuracy": balanced_accuracy_score(true, found),
        "neg_log_loss": -log_loss(true, chances, labels=tagger.classes_),
        "token_accuracy": token_accuracy(task.y_test, tagger.predict(task.X_test)),
        "accuracy": tagger.score(task.X_test, task.y_test),
    }
    assert 0.1 < expected["f1_macro"] < 0.9
    for name, value in expected.items():
        assert sequence_scorer(name)(tagger, task.X_test, task.y_test) == pytest.approx(value)


def test_cross_validation_and_searches_take_them(task):
    scores = cross_val_score(
        Tagger(tol=0.1), task.X_train, task.y_train, cv=3, scoring=sequence_scorer("f1_macro"), error_score="raise"
    )
    assert np.isfinite(scores).all()
    search = GridSearchCV(Tagger(tol=0.1), {"C": [0.01, 1.0]}, cv=2, scoring=sequence_scorer("f1_macro"))
    search.fit(task.X_train, task.y_train)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert pickle.loads(pickle.dumps(sequence_scorer("f1_macro"))).scoring == "f1_macro"
    assert repr(clone(search).scoring) == "sequence_scorer('f1_macro')"


NAMES = ["f1_macro", "f1_weighted", "precision_micro", "recall_macro", "accuracy", "balanced_accuracy"]
NAMES += ["matthews_corrcoef", "neg_log_loss", "roc_auc_ovr", "adjusted_rand_score"]


@pytest.mark.parametrize("name", NAMES)
def test_bare_names_of_scikit_learn_count_positions(task, tagger, name):
    expected = sequence_scorer(name)(tagger, task.X_test, task.y_test)
    assert np.isfinite(expected)
    assert get_scorer(name)(tagger, task.X_test, task.y_test) == expected


def test_cross_validation_and_searches_take_bare_names(task):
    X, y = task.X_train, task.y_train
    expected = cross_val_score(Tagger(tol=0.1), X, y, cv=2, scoring=sequence_scorer("f1_macro")).tolist()
    assert cross_val_score(Tagger(tol=0.1), X, y, cv=2, scoring="f1_macro").tolist() == expected
    search = GridSearchCV(Tagger(tol=0.1), {"C": [0.01, 1.0]}, cv=2, scoring="f1_macro", n_jobs=2).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))
    assert search.score(X, y) == sequence_scorer("f1_macro")(search.best_estimator_, X, y)
    several = cross_validate(Tagger(tol=0.1), X, y, cv=2, scoring=["f1_macro", "accuracy", "sequence_accuracy"])
    assert several["test_f1_macro"].tolist() == expected
    assert several["test_accuracy"].tolist() == cross_val_score(Tagger(tol=0.1), X, y, cv=2).tolist()
    pipeline = make_pipeline(FunctionTransformer(), Tagger(tol=0.1))
    assert cross_val_score(pipeline, X, y, cv=2, scoring="f1_macro").tolist() == expected


def test_several_scores_at_once_may_want_probabilities(task):
    """scikit-learn asks a model for predict_proba before it computes several scores; a tagger has marginals instead."""
    X, y, names = task.X_train, task.y_train, ["f1_macro", "neg_log_loss", "roc_auc_ovr", "token_accuracy"]
    for model in (Tagger(tol=0.1, loss="log"), make_pipeline(FunctionTransformer(), Tagger(tol=0.1, loss="log"))):
        found = cross_validate(model, X, y, cv=2, scoring=names, error_score="raise")
        for name in names:
            expected = cross_val_score(Tagger(tol=0.1, loss="log"), X, y, cv=2, scoring=sequence_scorer(name))
            assert found[f"test_{name}"].tolist() == expected.tolist(), name
    search = GridSearchCV(model, {"tagger__C": [0.01, 1.0]}, cv=2, scoring=names, refit="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_roc_auc_ovr"]).all()
    assert search.score(X, y) == sequence_scorer("neg_log_loss")(search.best_estimator_[-1], X, y)
    X, y = np.arange(12.0)[:, None], [0, 1] * 6
    with pytest.warns(UserWarning, match="Perceptron has none of the following attributes: predict_proba"):
        cross_validate(Perceptron(), X, y, cv=2, scoring=["accuracy", "neg_log_loss"])


def test_bare_names_for_other_models_of_positions():
    X, y = [["A", "b", "b"], ["b", "A", "A"]] * 4, [["x", "o", "o"], ["o", "x", "x"]] * 4
    for model in (Segmenter(), HiddenMarkovModel()):
        assert cross_val_score(model, X, y, cv=2, scoring="f1_macro", error_score="raise").tolist() == [1, 1]
    images = [np.array([[0.0, 1.0], [1.0, 0.0]])[..., None], np.array([[1.0, 1.0], [0.0, 0.0]])[..., None]] * 3
    y_images = [image[..., 0].astype(int) for image in images]
    fitted = GridLabeler(block=1, edge_weights="none").fit(images, y_images)
    assert get_scorer("f1_macro")(fitted, images, y_images) == 1.0


def test_names_that_do_not_suit_say_which_do(task, tagger):
    with pytest.raises(
        ValueError, match=r"r2_score does not apply to the labels that Tagger predicts.*'token_accuracy'"
    ):
        get_scorer("r2")(tagger, task.X_test, task.y_test)
    X, y = [["a", "b", "b"]] * 4, [[(0, 1, "x"), (1, 3, "y")]] * 4
    with pytest.warns(UserWarning, match="segments that Segmenter predicts; scoring can be 'segment_f1'"):
        cross_val_score(Segmenter(), X, y, cv=2, scoring="f1_macro")
    assert cross_val_score(Segmenter(), X, y, cv=2, scoring="segment_f1").tolist() == [1, 1]


def test_estimators_with_one_label_a_sample_are_scored_as_ever():
    texts, kinds = ["a good day", "bad", "good", "a bad day"] * 3, ["+", "-", "+", "-"] * 3
    assert cross_val_score(
        HashedClassifier(), texts, kinds, cv=2, scoring="f1_macro", error_score="raise"
    ).tolist() == [1, 1]
    sets = NeighborLabels(1).fit(np.arange(6.0)[:, None], np.eye(6, dtype=int))
    assert get_scorer("f1_macro")(sets, np.arange(6.0)[:, None], np.eye(6, dtype=int)) >= 0.0
    X, y = np.arange(12.0)[:, None], [[i % 2, i > 5] for i in range(12)]
    model = KNeighborsClassifier(1).fit(X, y)  # lists of labels there are label sets
    assert get_scorer("f1_macro")(model, X, y[::-1]) == f1_score(y[::-1], model.predict(X), average="macro") == 0.0
    assert "f1_score" in repr(get_scorer("f1_macro"))
    assert pickle.loads(pickle.dumps(get_scorer("accuracy")))(model, X, y) == 1.0


def test_positions_without_a_label_are_left_out(task, tagger):
    hidden = [[None, {"L00", "L01"}, *labels[2:]] for labels in task.y_test]
    true, found = flat(y[2:] for y in task.y_test), flat(y[2:] for y in tagger.predict(task.X_test))
    assert sequence_scorer("f1_macro")(tagger, task.X_test, hidden) == pytest.approx(
        f1_score(true, found, average="macro")
    )
    with pytest.raises(ValueError, match="no known label"):
        sequence_scorer("accuracy")(tagger, task.X_test[:1], [[None] * len(task.y_test[0])])


def test_labels_never_seen_in_training_count_as_wrong(task, tagger):
    new = [["new", *labels[1:]] for labels in task.y_test]
    found = tagger.predict(task.X_test)
    assert sequence_scorer("accuracy")(tagger, task.X_test, new) == pytest.approx(token_accuracy(new, found))


def test_spans_and_other_estimators_of_sequences():
    X, y = [["A", "b", "b"], ["b", "A", "A"]] * 4, [["B-x", "O", "O"], ["O", "B-x", "I-x"]] * 4
    for model in (Tagger(), Segmenter()):
        fitted = model.fit(X, y)
        assert sequence_scorer("span_f1")(fitted, X, y) == pytest.approx(span_f1(y, fitted.predict(X)))
        assert 0 <= sequence_scorer("f1_macro")(fitted, X, y) <= 1


@pytest.mark.parametrize("scoring", ["f1-macro", None, 3, f1_score])
def test_unknown_names_are_refused_with_those_known(scoring):
    with pytest.raises(ValueError, match=r"unknown scoring .* 'span_f1'"):
        sequence_scorer(scoring)


def test_labels_must_fit_the_positions(task, tagger):
    with pytest.raises(ValueError, match="other lengths"):
        sequence_scorer("accuracy")(tagger, task.X_test, [labels[:-1] for labels in task.y_test])
