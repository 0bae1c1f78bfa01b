"""Every estimator that minimises a risk × everything that such estimators do: a full cell works, an empty one says so.

The page ``docs/guide/abilities.md`` shows the same table, and is held against it here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators.cases import CASES, public_estimators
from mercer.data.trees import Tree
from mercer.labeling import GridLabeler
from mercer.learning import estimator as base
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import RiskEstimator
from mercer.learning.solvers import SOLVERS
from mercer.parsing import Parser
from mercer.ranking import LabelRanker, Ranker
from mercer.structured import StructuredPredictor

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "abilities.md"
ESTIMATORS = sorted(
    (cls for cls in public_estimators() if issubclass(cls, RiskEstimator)), key=lambda cls: cls.__name__
)
MARGINALS = {"LinearClassifier": "predict_proba", "Aligner": "match_probabilities"}
"""What the marginals of an output are called where they are not ``predict_marginals``."""


def made(cls: type, **params: Any) -> tuple[Any, Any, Any]:
    """An estimator with its parameters, and small data for it."""
    case = next(case for case in CASES if case.cls is cls)
    model = case.make().set_params(max_iter=15, **params)
    X, y = case.data(0).args[:2]
    return model, [tree.leaves() for tree in y] if cls is Parser else X, y


def probabilistic(cls: type) -> dict[str, Any]:
    """Parameters with which scores are logarithms of probabilities."""
    if cls is StructuredPredictor:
        return {"loss": "log", "solver": "auto", "structure": Orders()}
    return {"loss": "log", "solver": "auto"}


class Orders(type(next(case for case in CASES if case.cls is StructuredPredictor).make().structure)):  # type: ignore[misc]
    """The structure of the case, with what the log loss and the k best ask for, by enumeration."""

    def _all(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[list[Any], np.ndarray]:
        outputs = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        cost = [0.0 if cost_to is None else self.cost(cost_to, y) for y in outputs]
        return outputs, np.array([w @ self.features(x, y) for y in outputs]) + cost

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[Any, float]]:
        outputs, scores = self._all(w, x)
        return [(outputs[i], float(scores[i])) for i in np.argsort(-scores)[:k]]

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, Any]:
        outputs, scores = self._all(w, x, cost_to)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        expected = sum(q * self.features(x, y) for q, y in zip(p, outputs, strict=True))
        return float(scores.max() + np.log(np.exp(scores - scores.max()).sum())), expected


# ------------------------------------------------------------------------------------------------------- abilities


def dev(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls)
    model.fit(X, y, dev=(X, y))
    assert len(model.history_["dev_score"]) == len(model.history_["seconds"]) > 0
    assert max(model.history_["dev_score"]) == pytest.approx(held_out_score(model, X, y))


def held_out_score(model: Any, X: Any, y: Any) -> float:
    return model._quality(model._flat(model), *model._read(X, y))


def patience(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, patience=1)
    monkeypatch.setattr(cls, "_quality", lambda *_: 0.5)
    monkeypatch.setattr(cls, "_finish", lambda self, run: setattr(self, "ran", run))
    model.fit(X, y, dev=(X, y))
    assert len(model.ran.history["dev_score"]) <= 2


def checkpoint(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls)
    expected = flat(model.fit(X, y))
    model, X, y = made(cls)
    held = Checkpoint(tmp_path / "run", every=0.0)
    write, count = Checkpoint.write, []

    def dies(self: Checkpoint, *args: Any) -> None:
        write(self, *args)
        count.append(1)
        if len(count) == 2:
            raise RuntimeError("the machine goes down")

    monkeypatch.setattr(Checkpoint, "write", dies)
    try:
        model.fit(X, y, checkpoint=held)
    except RuntimeError:
        monkeypatch.setattr(Checkpoint, "write", write)
        model, X, y = made(cls)
        model.fit(X, y, checkpoint=Checkpoint(tmp_path / "run", every=0.0))
    assert count, "nothing was written"
    np.testing.assert_array_equal(flat(model), expected)


def flat(model: Any) -> np.ndarray:
    return np.array(model._flat(model))


def warm_start(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, warm_start=True)
    first = flat(model.fit(X, y))
    begun = []
    train = base.train

    def seen(*args: Any, w0: Any = None, **kwargs: Any) -> Any:
        begun.append(w0)
        return train(*args, w0=w0, **kwargs)

    monkeypatch.setattr(base, "train", seen)
    model.fit(X, y)
    np.testing.assert_array_equal(begun[0], first)


def penalty(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smooth = {"loss": "squared-hinge", "solver": "auto"} if cls in (Ranker, LabelRanker) else probabilistic(cls)
    norms = []
    for C in (10.0, 1e-2):
        model, X, y = made(cls, penalty="l1", **smooth)
        if cls is Parser:  # sentences with more than one tree
            y = [Tree.parse(tree) for tree in 5 * ["(S (A a) (B a))"] + ["(S (B a) (A a))"]]
            X = [tree.leaves() for tree in y]
        norms.append(np.abs(flat(model.set_params(C=C).fit(X, y))))
    assert model.solver_ == "owlqn"
    assert norms[0].any()
    assert np.count_nonzero(norms[1]) < np.count_nonzero(norms[0])


def partial_fit(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, solver="averaged-perceptron")
    first = flat(model.partial_fit(X, y))
    assert model.n_iter_ == 1
    assert len(flat(model.partial_fit(X, y))) == len(first)
    assert model.history_


def rollback(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls)
    before = dict(vars(model.fit(X, y)))
    monkeypatch.setattr(base, "train", fails)
    with pytest.raises(RuntimeError, match="in the middle"):
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("in the middle")


def interrupted_(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls)
    assert model.fit(X, y).interrupted_ is False
    train = base.train

    def stopped(*args: Any, **kwargs: Any) -> Any:
        result, history = train(*args, **kwargs)
        result.interrupted = True
        return result, history

    monkeypatch.setattr(base, "train", stopped)
    assert model.fit(X, y).interrupted_ is True


def solver_(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls)
    assert model.fit(X, y).solver_ in SOLVERS


def sample_weight(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {} if cls is LabelRanker else {"loss": "hinge", "solver": "bmrm"}
    model, X, y = made(cls, C=0.1, tol=1e-6, **settings)
    model.set_params(max_iter=1000)
    X, y = list(X), list(y)

    def primal(C: float, X: list[Any], y: list[Any], weights: Any = None) -> float:
        return model.set_params(C=C).fit(X, y, sample_weight=weights).history_["primal"][-1]

    assert primal(0.05, X, y, np.full(len(y), 2.0)) == pytest.approx(primal(0.1, X, y), rel=1e-4)
    if cls not in (GridLabeler, Ranker):  # features are standardised over all images; all rows are one group
        last_twice = np.where(np.arange(len(y)) == len(y) - 1, 2.0, 1.0)
        assert primal(0.1, X, y, last_twice) == pytest.approx(primal(0.1, [*X, X[-1]], [*y, y[-1]]), rel=1e-4)


def k_best(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, **probabilistic(cls))
    model.fit(X, y)
    best, answers = model.k_best(X, 2), model.predict(X)
    assert len(best) == len(answers)
    for found, answer in zip(best, answers, strict=True):
        assert 1 <= len(found) <= 2
        if not isinstance(found[0], tuple):  # alignments have their score with them
            np.testing.assert_array_equal(found[0].pairs, answer.pairs)
            continue
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)


def predict_marginals(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, **probabilistic(cls))
    found = getattr(model.fit(X, y), MARGINALS.get(cls.__name__, "predict_marginals"))(X)
    for p in found:
        values = np.array([list(at.values()) for at in p]) if isinstance(p[0], dict) else np.asarray(p)
        assert (values >= -1e-9).all()
        assert (values <= 1 + 1e-9).all()


def sample(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, **probabilistic(cls))
    drawn = model.fit(X, y).sample(X, 3)
    assert [len(draws) for draws in drawn] == [3] * len(drawn)


def log_likelihood(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, **probabilistic(cls))
    found = model.fit(X, y).log_likelihood(X, y)
    assert found.shape == (len(y),)
    assert (found <= 1e-9).all()


def entropy(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = made(cls, **probabilistic(cls))
    found = model.fit(X, y).entropy(X)
    assert (np.asarray(found) >= -1e-9).all()


ABILITIES: dict[str, Callable[..., None]] = {
    ability.__name__: ability
    for ability in (
        dev, patience, checkpoint, warm_start, penalty, partial_fit, rollback, interrupted_, solver_, sample_weight,
        k_best, predict_marginals, sample, log_likelihood, entropy,
    )
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ability", ABILITIES)
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_full_cell_works_and_an_empty_one_has_its_reason(cls, ability, tmp_path, monkeypatch):
    if ability not in cls.lacks:
        ABILITIES[ability](cls, tmp_path, monkeypatch)
        return
    model = made(cls)[0]
    assert len(cls.lacks[ability]) > 20
    if ability in ("sample_weight", "dev", "checkpoint"):
        assert ability not in inspect.signature(cls.fit).parameters
    elif ability != "penalty":
        with pytest.raises(AttributeError, match=re.escape(cls.lacks[ability])):
            getattr(model, ability)


def test_nothing_is_lacking_that_is_no_ability():
    assert {name for cls in ESTIMATORS for name in cls.lacks} <= set(ABILITIES)


# ------------------------------------------------------------------------------------------------------- the page


def test_the_page_shows_the_same_table():
    text = PAGE.read_text().split("## Habits of scikit-learn")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    columns = [name.strip("`") for name in lines[0][1:]]
    assert columns == list(ABILITIES)
    shown = {name.strip("`"): cells for name, *cells in lines[1:]}
    reasons = dict(re.findall(r"^\[(\d+)\] (.+?)\.$", text, re.MULTILINE))
    assert sorted(shown) == sorted([*(cls.__name__ for cls in ESTIMATORS), "HiddenMarkovModel"])
    for cls in ESTIMATORS:
        for ability, cell in zip(columns, shown[cls.__name__], strict=True):
            expected = cls.lacks.get(ability)
            found = None if cell == "●" else reasons[cell.strip("[]")]
            assert found == expected, f"{cls.__name__} × {ability}: the page says {found!r}, the class {expected!r}"
