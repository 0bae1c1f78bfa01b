"""scikit-learn's habits: scorers by name, frames in and out, metadata routing, weights, calibrated probabilities."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.cases import CASES, Case
from estimators.outputs import fitted
from mercer.classification import CompactClassifier, LinearClassifier, RelativeMarginSVC
from mercer.kernel_methods import (
    KernelFisher,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelSVC,
    LinearProgramSVC,
    OnlineKernelClassifier,
)
from mercer.kernels import Gaussian
from mercer.labeling import GraphLabeler
from mercer.metrics import SCORERS, make_span_scorer, register_scorers, span_f1
from mercer.online import HashedClassifier
from mercer.parsing import Tree
from mercer.proportions import MeanMap
from mercer.ranking import Ranker
from mercer.segmentation import Segmenter
from mercer.tagging import Tagger

X_TAGS = [["the", "dog", "barks"], ["a", "cat"], ["it", "sleeps"]] * 4
Y_TAGS = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP"], ["B-VP", "O"]] * 4


# ------------------------------------------------------------------------------------------------------------ scorers


def test_span_scorers_are_those_of_the_report() -> None:
    tagger = Tagger(max_iter=1, tol=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger.fit(X_TAGS, Y_TAGS)
    assert make_span_scorer()(tagger, X_TAGS, Y_TAGS) == span_f1(Y_TAGS, tagger.predict(X_TAGS))
    assert make_span_scorer("recall", label="NP")(tagger, X_TAGS, Y_TAGS) <= 1.0
    copied = pickle.loads(pickle.dumps(make_span_scorer("recall", label="NP")))
    assert copied(tagger, X_TAGS, Y_TAGS) == make_span_scorer("recall", label="NP")(tagger, X_TAGS, Y_TAGS)
    with pytest.raises(ValueError, match="measure must be one of"):
        make_span_scorer("f2")
    with pytest.raises(ValueError, match="no span of type 'PP'"):
        make_span_scorer(label="PP")(tagger, X_TAGS, Y_TAGS)


def test_searches_take_our_scorers() -> None:
    search = GridSearchCV(Tagger(), {"C": [0.1, 1.0]}, cv=2, scoring=make_span_scorer()).fit(X_TAGS, Y_TAGS)
    assert 0.0 <= search.best_score_ <= 1.0
    found = cross_validate(
        Tagger(), X_TAGS, Y_TAGS, cv=2, scoring={"f1": SCORERS["span_f1"], "p": make_span_scorer("precision")}
    )
    assert {"test_f1", "test_p"} <= set(found)


def test_every_scorer_gives_a_number_between_0_and_1() -> None:
    class Right:
        def __init__(self, answers: Any) -> None:
            self.answers = answers

        def predict(self, X: Any) -> Any:
            return self.answers

    segments = [[(0, 2, "A"), (2, 3, "B")]]
    trees = [Tree.parse("(S (NP we) (VP (V saw) (NP cats)))")]
    outputs = {"segment_f1": segments, "bracket_f1": trees, "boundary_f1": [[0, 2]]}
    for name, scorer in SCORERS.items():
        y = outputs.get(name, Y_TAGS)
        assert scorer(Right(y), None, y) == 1.0, name


def test_names_are_found_by_scikit_learn() -> None:
    assert set(register_scorers()) == set(SCORERS)
    assert "span_f1" in get_scorer_names()
    assert get_scorer("accuracy") is not SCORERS["span_f1"]
    expected = cross_val_score(Tagger(), X_TAGS, Y_TAGS, cv=2, scoring=make_span_scorer()).tolist()
    assert cross_val_score(Tagger(), X_TAGS, Y_TAGS, cv=2, scoring="span_f1").tolist() == expected
    search = GridSearchCV(Tagger(), {"C": [0.1, 1.0]}, cv=2, scoring="token_accuracy").fit(X_TAGS, Y_TAGS)
    assert 0.0 <= search.best_score_ <= 1.0
    found = cross_validate(Tagger(), X_TAGS, Y_TAGS, cv=2, scoring=["span_f1", "sequence_accuracy"])
    assert found["test_span_f1"].tolist() == expected
    with pytest.raises(ValueError, match="scoring"):
        cross_val_score(Tagger(), X_TAGS, Y_TAGS, cv=2, scoring="span_f3")


@pytest.mark.parametrize("first", ["from sklearn.model_selection import cross_val_score", "import mercer.metrics", ""])
def test_names_are_there_whatever_is_imported_first(first: str) -> None:
    code = f"""{first}
import sys
from mercer.tagging import Tagger
from sklearn.model_selection import cross_val_score
print(cross_val_score(Tagger(), [["a", "b"]] * 6, [["B-X", "O"]] * 6, cv=2, scoring="span_f1"))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[1. 1.]\n"), done.stderr


def test_metrics_do_not_load_scikit_learn() -> None:
    code = "import sys, mercer.metrics; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_scikit_learn_without_that_table_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = importlib.import_module("sklearn.metrics._scorer")
    monkeypatch.delattr(table, "_SCORERS")
    assert set(register_scorers()) == set(SCORERS)  # and nothing happens


# -------------------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("model", [Tagger(), Segmenter(), GraphLabeler()], ids=lambda model: type(model).__name__)
def test_models_of_structures_say_where_their_probabilities_are(model: Any) -> None:
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"has no predict_proba.*predict_marginals"):
        getattr(model, "predict_proba")  # noqa: B009


def margins() -> list[Any]:
    return [
        KernelSVC(Gaussian(0.5)), KernelNuSVC(Gaussian(0.5), nu=0.3), LinearProgramSVC(), LinearClassifier("hinge"),
        RelativeMarginSVC(), HashedClassifier("hinge", n_bits=10, random_state=0), KernelMeanClassifier(Gaussian(0.5)),
        OnlineKernelClassifier(Gaussian(0.5) + 1.0, random_state=0), CompactClassifier(8, max_iter=5, random_state=0),
    ]  # fmt: skip


@pytest.mark.parametrize("model", margins(), ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_become_probabilities_with_scikit_learns_own_tool(model: Any, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(180) % n_classes
    X = rng.normal(size=(180, 3)) + 2.0 * np.eye(3)[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrated = CalibratedClassifierCV(clone(model), cv=3).fit(X[:120], y[:120])
        p = calibrated.predict_proba(X[120:])
    assert np.allclose(p.sum(axis=1), 1.0)
    chosen = p[np.arange(60), y[120:]]
    assert -np.log(np.maximum(chosen, 1e-12)).mean() < np.log(n_classes)  # better than knowing nothing
    assert (p.argmax(axis=1) == y[120:]).mean() > 1 / n_classes + 0.15


# ------------------------------------------------------------------------------------------------- metadata routing


def test_groups_and_bags_are_routed() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y, groups = (X[:, 0] > 0).astype(int), np.repeat(np.arange(6), 10)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = Ranker().set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(ranker, X, y, cv=2, params={"groups": groups})
        assert (found["test_score"] > 0.8).all()
        bags = np.arange(60) % 6
        shares = np.array([y[bags == b].mean() for b in range(6)])
        learner = MeanMap().set_fit_request(bags=True, proportions=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_pipeline(StandardScaler(), learner).fit(X, None, bags=bags, proportions=shares)
            alone = MeanMap().fit(StandardScaler().fit_transform(X), bags=bags, proportions=shares)
        assert (model.predict(X) == alone.predict(StandardScaler().fit_transform(X))).all()


# --------------------------------------------------------------------------------------------------------------- frames

TRANSFORMERS = [
    case for case in CASES
    if (case.arrays or case.cls.__name__ in ("HomogeneityAnalysis", "KernelHomogeneityAnalysis", "DependencyModel"))
    and hasattr(case.make(), "set_output")
    and case.cls.__name__ not in ("TableEncoder", "SparseCoder")  # another form, sparse codes
]  # fmt: skip


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("case", TRANSFORMERS, ids=lambda case: case.cls.__name__)
def test_transformers_give_frames_when_asked(case: Case, library: str) -> None:
    pytest.importorskip(library)
    data = case.data(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make().set_output(transform=library).fit(*data.args, **data.kwargs)
        frame = model.transform(data.new)
    assert type(frame).__module__.startswith(library)
    plain = fitted(case)[0]
    assert np.allclose(np.asarray(frame), np.asarray(plain.transform(data.new)))
    assert [str(name) for name in frame.columns] == [str(name) for name in plain.get_feature_names_out()]


def takes_tables(case: Case) -> bool:
    X = case.data(0).args[0]
    return isinstance(X, np.ndarray) and X.ndim == 2


NAMED = list({case.cls: case for case in reversed(CASES) if takes_tables(case)}.values())


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.cls.__name__)
def test_names_of_columns_are_remembered(case: Case) -> None:
    polars = pytest.importorskip("polars")
    data = case.data(0)
    columns = [f"c{j}" for j in range(data.args[0].shape[1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make().fit(polars.DataFrame(data.args[0], schema=columns), *data.args[1:], **data.kwargs)
    assert list(model.feature_names_in_) == columns


def test_names_of_columns_are_those_of_the_last_fit() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    model = KernelFisher(Gaussian(0.1)).fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert not hasattr(model.fit(pandas.DataFrame(X), y), "feature_names_in_")  # numbers are no names


# -------------------------------------------------------------------------------------------------------------- weights


def test_a_weight_of_two_is_the_object_twice() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + y[:, None]
    weights = rng.integers(1, 3, size=40)
    again = np.repeat(np.arange(40), weights)
    for model in (KernelFisher(Gaussian(0.5)), LinearClassifier(tol=1e-10), KernelSVC(Gaussian(0.5), C=1.0, tol=1e-8)):
        weighed = clone(model).fit(X, y, sample_weight=weights).decision_function(X)
        repeated = clone(model).fit(X[again], y[again]).decision_function(X)
        assert np.allclose(weighed, repeated, rtol=0.01, atol=0.02), type(model).__name__
    with pytest.raises(ValueError, match="positive weight"):
        KernelFisher(Gaussian(0.5)).fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize(
    "model",
    [LinearClassifier(), KernelSVC(Gaussian(0.5)), LinearProgramSVC(), HashedClassifier(n_bits=10, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_balanced_classes_lift_the_rare_one(model: Any) -> None:
    rng = np.random.default_rng(2)
    y = (np.arange(300) % 10 == 0).astype(int)
    X = rng.normal(size=(300, 2)) + 1.5 * y[:, None]
    plain, balanced = clone(model), clone(model).set_params(class_weight="balanced")
    recalls = [(m.fit(X, y).predict(X[y == 1]) == 1).mean() for m in (plain, balanced)]
    assert recalls[1] > recalls[0]


def test_cross_validation_takes_taggers_as_they_are() -> None:
    assert cross_val_score(Tagger(), X_TAGS, Y_TAGS, cv=2).shape == (2,)
