"""``sample_weight`` of every estimator that takes it: whole weights are repeats, a weight of 0 is no row.

The exceptions are named with their reasons.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.cases import CASES, Case
from mercer.classification import CompactClassifier, RelativeMarginSVC
from mercer.fields import BoltzmannMachine
from mercer.kernel_methods import KernelNuSVC, KernelPCA, OnlineKernelClassifier
from mercer.kernels import Gaussian, GaussianMixtureModel
from mercer.learning.visits import visits
from mercer.multilabel import MultiLabelCRF
from mercer.ranking import Ranker
from mercer.retrieval import BilinearEmbedding, CirculantEmbedding

FIRST: dict[str, Case] = {}
for _case in CASES:
    if "sample_weight" in inspect.signature(_case.make().fit).parameters:
        FIRST.setdefault(_case.cls.__name__, _case)

VIEWS = ("MultiSetCCA", "KernelCCA", "KernelHomogeneityAnalysis")
REGISTRATION = (
    "CoherentPointDrift", "FeatureMatching", "ICP", "KernelRegistration", "MixtureRegistration", "SoftAssign",
)  # fmt: skip
"""Weights of the points that move, not of pairs: `tests/registration` has them."""
STEPS = ("HashedClassifier", "HashedRegressor")
"""A step of weight 2 goes as far as two infinitely fine ones, and a row of weight 0 takes its turn."""
DRAWN = ("CompactClassifier", "CompactNonlinearMap", "OnlineKernelClassifier", "WeakAttributes", "ZeroShotClassifier")
"""Batches, references or held-out rows are drawn by place; online steps are as long as the weight."""
LOOKED_UP = ("BoundaryClassifier", "CodeClassifier")
"""Rows are atoms of codes, too, and documents those of a feature pack."""


def n_examples(name: str, args: tuple[Any, ...]) -> int:
    first = args[0][0] if name in VIEWS else args[0] if args[0] is not None else args[1]
    return len(first)


def chosen(name: str, args: tuple[Any, ...], rows: np.ndarray) -> tuple[Any, ...]:
    """The arguments of ``fit`` for some examples, perhaps repeated."""

    def some(part: Any, is_views: bool) -> Any:
        if part is None:
            return None
        if is_views:
            return [some(view, False) for view in part]
        return part[rows] if isinstance(part, np.ndarray) else [part[int(i)] for i in rows]

    return tuple(some(part, name in VIEWS and i == 0) for i, part in enumerate(args))


def fit(name: str, args: tuple[Any, ...], **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FIRST[name].make().fit(*args, **kwargs)


def numbers(name: str, model: Any) -> np.ndarray:
    """What the model says about new inputs, as one vector of numbers."""
    case = FIRST[name]
    new = case.data(0).new
    if name in ("CCA", "MultiSetCCA"):
        return np.concatenate([W.ravel() for W in model.weights_])
    parts: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.use is not None:
            parts.append(case.use(model, new))
        else:
            # Label sets are calibrated on scores that leave rows out, and a repeat is another row.
            verbs = ("decision_function",) if hasattr(model, "label_form_") else (*case.verbs, "log_likelihood")
            for verb in verbs:
                if verb != "predict" and hasattr(model, verb):
                    try:
                        parts.append(getattr(model, verb)(new))
                    except (ValueError, TypeError):
                        continue
            if not parts:
                parts.append(model.predict(new))
    flat: list[np.ndarray] = []

    def add(value: Any) -> None:
        if hasattr(value, "toarray"):
            value = value.toarray()
        if isinstance(value, (list, tuple)) and not isinstance(value, str):
            for item in value:
                add(item)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            flat.append(value.astype(float).ravel())
        elif isinstance(value, (int, float, np.number)):
            flat.append(np.array([float(value)]))
        else:
            flat.append(np.array([hash(str(value)) % 1000], float))

    add(parts)
    return np.concatenate(flat)


def near(a: np.ndarray, b: np.ndarray) -> float:
    scale = max(float(np.abs(b[np.isfinite(b)]).max(initial=0.0)), 1e-6)
    return float(np.abs(np.where(np.isfinite(a) & np.isfinite(b), a - b, np.where(a == b, 0.0, scale))).max()) / scale


@pytest.mark.parametrize("name", sorted(FIRST))
def test_what_is_no_weight_raises(name: str) -> None:
    data = FIRST[name].data(0)
    n = n_examples(name, data.args)
    for wrong in (-np.ones(n), np.full(n, np.nan), np.ones(n + 1), np.zeros(n)):
        with pytest.raises(ValueError, match="weight"):
            fit(name, data.args, **data.kwargs, sample_weight=wrong)


def weighed(name: str, times: np.ndarray) -> tuple[Any, Any]:
    """A model with weights, and one of the rows so many times."""
    data = FIRST[name].data(0)
    args = views_of_noise(name) if name in ("CCA", "MultiSetCCA") else data.args
    if name == "Ranker":  # an example is a group of rows
        groups = data.kwargs["groups"]
        first = fit(name, args, groups=groups, sample_weight=np.array([1, 2, 0])[groups])
        rows = np.concatenate([np.flatnonzero(groups < 2), np.flatnonzero(groups == 1)])
        return first, fit(name, chosen(name, args, rows), groups=np.array([0] * 6 + [1] * 6 + [2] * 6))
    rows = np.repeat(np.arange(len(times)), times)
    return fit(name, args, sample_weight=times), fit(name, chosen(name, args, rows))


def views_of_noise(name: str) -> tuple[Any, ...]:
    """Two views without columns in common: their correlations differ, and so are the weights unique."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(18, 4)), rng.normal(size=(18, 5))
    Y[:, 0] += X[:, 0]
    return (X, Y) if name == "CCA" else ([X, Y],)


PATTERN = np.tile([1, 2, 1, 0, 1, 1, 3], 12)


@pytest.mark.parametrize("name", sorted(set(FIRST) - {*REGISTRATION, *STEPS, *DRAWN, *LOOKED_UP}))
def test_whole_weights_are_repeats(name: str) -> None:
    n = n_examples(name, FIRST[name].data(0).args)
    first, second = weighed(name, PATTERN[:n])
    # C="auto" and the scale of columns look at all examples alike.
    limit = 0.05 if name in ("GridLabeler", "Segmenter") else 0.02
    assert near(numbers(name, first), numbers(name, second)) < limit


@pytest.mark.parametrize("name", [*DRAWN, *LOOKED_UP])
def test_a_weight_of_zero_is_no_row(name: str) -> None:
    n = n_examples(name, FIRST[name].data(0).args)
    first, second = weighed(name, np.minimum(PATTERN[:n], 1))
    assert near(numbers(name, first), numbers(name, second)) < 1e-6


def test_scaling_all_weights_scales_c() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 2))
    doubled = MultiLabelCRF(C=0.1).fit(X, Y, sample_weight=np.full(30, 2.5))
    assert np.allclose(doubled.coef_, MultiLabelCRF(C=0.25).fit(X, Y).coef_, atol=1e-3)
    y = Y[:, 0]
    scores = [
        RelativeMarginSVC(C=C, tol=1e-6).fit(X, y, weights).decision_function(X)
        for C, weights in ((1.0, np.full(30, 2.5)), (2.5, None))
    ]
    assert np.allclose(*scores, atol=1e-3)
    # What is a mean over rows does not change at all.
    kernel = Gaussian(0.5)
    pair = [KernelPCA(kernel, 2).fit(X, None, w).transform(X) for w in (None, np.full(30, 2.5))]
    assert np.allclose(*pair)
    perceptrons = [
        OnlineKernelClassifier(kernel, random_state=0).fit(X, y, w).predict(X) for w in (None, np.full(30, 2.5))
    ]
    assert (perceptrons[0] == perceptrons[1]).all()


def test_mixtures_with_equal_weights_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), 4 + rng.normal(size=(40, 2))])
    for covariance in ("full", "diag"):
        model = GaussianMixtureModel(2, covariance, random_state=0)
        plain = model.fit(X).parameters
        assert np.allclose(model.fit(X, sample_weight=np.ones(80)).parameters, plain, atol=1e-6)


def test_weights_that_are_not_whole_say_how_often_rows_are_visited() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.25, 1.5, 0.5, 1.75])
    counts = sum(np.bincount(visits(weights, 4, rng), minlength=4) for _ in range(2000))
    assert np.allclose(counts / 2000, weights, atol=0.05)
    assert (visits(np.full(4, 0.5), 4, rng) == np.arange(4)).all()
    # A field whose bits agree in half of the rows by weight, and in three quarters of them by number.
    X = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    w = np.tile([0.35, 0.35, 0.35, 1.05], 50)
    plain, weighted = (
        BoltzmannMachine(learner="exact", random_state=0, max_iter=200).fit(X, None, each) for each in (None, w)
    )
    assert plain.couplings()[0, 1] > weighted.couplings()[0, 1] + 0.15


@pytest.mark.parametrize("cls", [CirculantEmbedding, BilinearEmbedding])
def test_learnt_codes_weigh_vectors(cls: type) -> None:
    X = np.random.default_rng(0).normal(size=(40, 16))
    times = PATTERN[:40]
    first = cls(16, "learned", random_state=0).fit(X, sample_weight=times)
    second = cls(16, "learned", random_state=0).fit(np.repeat(X, times, axis=0))
    assert (first.transform(X) == second.transform(X)).all()
    assert np.allclose(first.history_, second.history_)


def test_groups_have_one_weight() -> None:
    X, y, groups = np.eye(6), [1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="same for all rows of a group"):
        Ranker().fit(X, y, groups, sample_weight=[1, 2, 1, 1, 1, 1])


@pytest.mark.parametrize(
    "model",
    [
        RelativeMarginSVC(), OnlineKernelClassifier(Gaussian(0.5), random_state=0), KernelNuSVC(Gaussian(0.5), nu=0.05),
        CompactClassifier(8, max_iter=5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_balanced_classes_lift_the_rare_one(model: Any) -> None:
    rng = np.random.default_rng(2)
    y = (np.arange(200) % 10 == 0).astype(int)
    X = rng.normal(size=(200, 2)) + 1.2 * y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recalls = [
            (model.set_params(class_weight=weight).fit(X, y).predict(X[y == 1]) == 1).mean()
            for weight in (None, "balanced")
        ]
    assert recalls[1] > recalls[0]


@pytest.mark.parametrize("name", ["RelativeMarginSVC", "KMeansMajority", "CategoryAttributes"])
def test_weights_are_routed(name: str) -> None:
    X, y = FIRST[name].data(0).args
    weights = PATTERN[: len(X)] + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        learner = FIRST[name].make().set_fit_request(sample_weight=True)
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), learner)
        routed.fit(X, y, sample_weight=weights)
    alone = FIRST[name].make().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    assert (routed.predict(X) == alone.predict(StandardScaler().fit_transform(X))).all()


def test_every_estimator_with_weights_can_ask_for_them() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        for name, case in FIRST.items():
            assert case.make().set_fit_request(sample_weight=True) is not None, name
