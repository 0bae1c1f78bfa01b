"""Kernels from models: scores by finite differences, known special cases, fitting, what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import mercer
from mercer.kernels import (
    Fisher,
    GaussianMixtureModel,
    GaussianModel,
    Gram,
    Intersection,
    MultinomialModel,
    ProbabilityProduct,
    is_positive_definite,
)
from mercer.markov import HiddenMarkovModel
from reference.models import hmm_probability, mixture_log_density, numeric_gradient

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(80, 3)) @ RANDOM.normal(size=(3, 3)) + np.array([5.0, -2.0, 0.0])
BAGS = [VECTORS[:2], VECTORS[2:3], VECTORS[3:9]]
STRINGS = ["abca", "cc", "b", "acacac", "bbab", "abcabc", "ccb"] * 2
PI, A, B = [0.6, 0.4], [[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
GIVEN = HiddenMarkovModel.from_parameters(PI, A, emission=B, names="abc")


MODELS: dict[str, tuple[Any, list[Any]]] = {
    "gaussian": (GaussianModel().fit(VECTORS), [*VECTORS[:3], BAGS[2]]),
    "gaussian diag": (GaussianModel("diag").fit(VECTORS), [*VECTORS[:3], BAGS[2]]),
    "gaussian mean": (GaussianModel(free="mean").fit(VECTORS), [*VECTORS[:3], BAGS[2]]),
    "multinomial": (MultinomialModel().fit(STRINGS), ["abca", "", "ccc"]),
    "multinomial counts": (MultinomialModel().fit(np.array([[1, 0, 2], [0, 3, 1]])), [np.array([4.0, 0.0, 1.0])]),
    "mixture": (GaussianMixtureModel(3, random_state=0).fit(VECTORS), [*VECTORS[:3], BAGS[2]]),
    "mixture diag": (GaussianMixtureModel(2, "diag", random_state=0).fit(BAGS), [VECTORS[0], BAGS[0]]),
}


def one(model: Any, x: Any) -> np.ndarray:
    """Arrays of counts are a row of a matrix; other objects a list of one."""
    return np.array([x]) if isinstance(model, MultinomialModel) and isinstance(x, np.ndarray) else [x]


class _Rows:
    """The model of one object, for the finite differences."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.parameters = model.parameters

    def at(self, theta: np.ndarray) -> _Rows:
        return _Rows(self.model.at(theta))

    def log_prob(self, X: list[Any]) -> np.ndarray:
        return self.model.log_prob(one(self.model, X[0]))


# ------------------------------------------------------------------------------------------------ scores


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_gradients_of_the_log_probability(name):
    model, objects = MODELS[name]
    for x in objects:
        expected = numeric_gradient(_Rows(model), x)
        np.testing.assert_allclose(model.scores(one(model, x))[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_scores_away_from_the_fit_are_gradients_too(name):
    model, objects = MODELS[name]
    theta = model.parameters
    moved = model.at(theta + 0.02 * np.abs(theta) * np.random.default_rng(1).normal(size=len(theta)))
    expected = numeric_gradient(_Rows(moved), objects[0])
    np.testing.assert_allclose(moved.scores(one(moved, objects[0]))[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_make_the_model(name):
    model, objects = MODELS[name]
    again = model.at(model.parameters)
    np.testing.assert_allclose(again.parameters, model.parameters, atol=1e-9)
    np.testing.assert_allclose(again.log_prob(one(model, objects[0])), model.log_prob(one(model, objects[0])))
    with pytest.raises(ValueError, match="parameters must be"):
        model.at(model.parameters[:-1])


@pytest.mark.parametrize("name", ["gaussian", "gaussian diag", "mixture", "mixture diag"])
def test_parameters_without_a_density_are_refused(name):
    model, _ = MODELS[name]
    theta = model.parameters
    theta[-1] = -theta[-1]
    with pytest.raises(ValueError, match="positive definite"):
        model.at(theta)


@pytest.mark.parametrize("name", ["gaussian", "gaussian diag", "mixture", "mixture diag"])
def test_states_without_a_density_are_refused(name):
    model, _ = MODELS[name]
    meta, arrays = model.to_state()
    key = next(key for key in arrays if key.startswith("covariance"))
    for wrong in (-arrays[key], 0.0 * arrays[key]):
        with pytest.raises(ValueError, match="covariances must be positive definite"):
            type(model).from_state(meta, {**arrays, key: wrong})


@pytest.mark.parametrize("model", [GaussianModel(reg_covar=0.0), GaussianModel("diag", reg_covar=0.0)], ids=repr)
def test_scores_of_the_sample_sum_to_zero_at_the_maximum(model):
    np.testing.assert_allclose(model.fit(VECTORS).scores(VECTORS).mean(axis=0), 0.0, atol=1e-9)


def test_scores_of_symbols_sum_to_zero_at_the_maximum():
    np.testing.assert_allclose(MultinomialModel(smoothing=0.0).fit(STRINGS).scores(STRINGS).sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "gaussian diag", "mixture"])
def test_a_bag_is_the_sum_of_its_vectors(name):
    model, _ = MODELS[name]
    for verb in (model.log_prob, model.scores):
        np.testing.assert_allclose(verb(BAGS), [verb(bag).sum(axis=0) for bag in BAGS])
    np.testing.assert_array_equal(model.scores([BAGS[0], np.zeros((0, 3))])[1], 0.0)


# ------------------------------------------------------------------------------------------------ Fisher


def test_normalised_kernel_of_a_mean_is_mahalanobis_inner_product():
    model = GaussianModel(free="mean", reg_covar=0.0).fit(VECTORS)
    Z = VECTORS[:6] - model.mean_
    expected = Z @ np.linalg.inv(np.cov(VECTORS.T, bias=True)) @ Z.T
    np.testing.assert_allclose(Fisher(model, ridge=0.0)(VECTORS[:6]), expected)


def test_plain_kernel_of_an_exponential_family_is_that_of_centred_statistics():
    """Equation 1.43: counts minus expected counts; and for single symbols the indicator minus p."""
    model = MultinomialModel().fit(STRINGS)
    counts = np.array([[x.count(s) for s in "abc"] for x in STRINGS], float)
    centred = counts - counts.sum(axis=1, keepdims=True) * model.probabilities_
    np.testing.assert_allclose(Fisher(model, information=None)(STRINGS), centred @ centred.T, atol=1e-12)
    p = model.probabilities_
    singles = np.eye(3) - p
    np.testing.assert_allclose(Fisher(model, information=None)(["a", "b", "c"]), singles @ singles.T, atol=1e-12)


def test_plain_kernel_of_a_gaussian_is_that_of_centred_first_and_second_moments():
    model = GaussianModel().fit(VECTORS)
    Z = VECTORS[:5] - model.mean_
    second = np.array([np.outer(z, z) - model.covariance_ for z in Z]).reshape(5, -1)
    np.testing.assert_allclose(Fisher(model, information=None)(VECTORS[:5]), Z @ Z.T + second @ second.T)


def test_normalised_kernel_does_not_depend_on_the_parametrisation():
    class Other:
        """The same model in other coordinates: scores times a constant invertible matrix."""

        def __init__(self) -> None:
            self.inner = GaussianModel().fit(VECTORS)
            self.J = np.random.default_rng(2).normal(size=(9, 9)) + 3 * np.eye(9)

        def scores(self, X):
            return self.inner.scores(X) @ self.J

    plain = Fisher(GaussianModel().fit(VECTORS), ridge=0.0)
    other = Fisher(Other(), ridge=0.0, sample=VECTORS)
    np.testing.assert_allclose(other(VECTORS[:7]), plain(VECTORS[:7]), rtol=1e-6, atol=1e-8)


def test_normalised_scores_of_the_sample_have_identity_covariance():
    F = Fisher(GaussianModel().fit(VECTORS), ridge=0.0).features(VECTORS)
    np.testing.assert_allclose(F.T @ F / len(F), np.eye(9), atol=1e-8)


def test_fisher_kernel_follows_its_model():
    model = GaussianModel(free="mean").fit(VECTORS)
    kernel = Fisher(model)
    before = kernel(VECTORS[:4])
    model.fit(VECTORS[:20] * 2.0)
    np.testing.assert_array_equal(kernel(VECTORS[:4]), Fisher(model)(VECTORS[:4]))
    assert not np.allclose(kernel(VECTORS[:4]), before)


def test_fisher_kernel_follows_a_model_of_another_kind():
    class Counts:
        mean = 3.0

        def scores(self, X):
            return np.asarray(X, float)[:, None] - self.mean

    model, sample = Counts(), [2.0, 3.0, 5.0]
    kernel = Fisher(model, sample=sample)
    assert kernel.pair(5.0, 4.0) == pytest.approx(2 * 1 / (5 / 3), rel=1e-5)
    model.mean = 2.0
    assert kernel.pair(5.0, 4.0) == pytest.approx(3 * 2 / (10 / 3), rel=1e-5)


def test_copies_share_the_fitted_model():
    kernel = Fisher(GIVEN, sample=STRINGS).normalized()
    assert clone(kernel).kernel.model is GIVEN
    np.testing.assert_allclose(np.diag(kernel(["ab", "c"])), 1.0)


def test_fisher_kernel_tells_the_sources_of_sequences_apart():
    random = np.random.default_rng(3)

    def draw(stay: float) -> str:
        s, symbols = 0, []
        for _ in range(40):
            s = s if random.random() < stay else 1 - s
            symbols.append("ab"[s] if random.random() < 0.9 else "ba"[s])
        return "".join(symbols)

    X = [draw(stay) for stay in (0.9, 0.3) for _ in range(30)]
    y = np.repeat([0, 1], 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HiddenMarkovModel(2, random_state=0, max_iter=30).fit(X)
    kernels = {"model": Fisher(model, sample=X).normalized(), "counts": Intersection("product").normalized()}
    accuracy = {}
    for name, kernel in kernels.items():
        objects = X if name == "model" else [list(x) for x in X]
        accuracy[name] = cross_val_score(make_pipeline(Gram(kernel), SVC(kernel="precomputed")), objects, y).mean()
    assert accuracy["model"] > 0.9
    assert accuracy["model"] > accuracy["counts"] + 0.1  # what tells them apart is order, not how often a symbol comes


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Fisher(object()), "model must have a method scores"),
        (Fisher(GIVEN, information="half"), "information must be one of"),
        (Fisher(GIVEN, ridge=-1.0), "ridge must be"),
        (Fisher(GIVEN), "give sample, or fit the model"),
        (Fisher(GIVEN, sample=[]), "give sample, or fit the model"),
        (Fisher(GIVEN, sample=["", ""]), "all scores of the sample are 0"),
        (Fisher(GIVEN, sample=["ab"], ridge=0.0), "the information matrix is singular"),
        (
            Fisher(
                MultinomialModel("abcd", smoothing=0.0).fit(["ab"]),
                sample=["ab", "aa"],
                information="diagonal",
                ridge=0.0,
            ),
            "the information of a parameter is 0",
        ),
    ],
)
def test_fisher_kernels_without_information_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(["ab"])


def test_scores_of_a_wrong_shape_are_refused():
    class Wrong:
        def scores(self, X):
            return np.zeros(3)

    with pytest.raises(ValueError, match="one row for each of the 2 objects"):
        Fisher(Wrong(), information=None)(["a", "b"])


# ------------------------------------------------------------------------------------------------ models


def test_log_probabilities_are_those_of_scipy():
    model = GaussianModel().fit(VECTORS)
    expected = multivariate_normal.logpdf(VECTORS, model.mean_, model.covariance_)
    np.testing.assert_allclose(model.log_prob(VECTORS), expected)
    mixture = MODELS["mixture"][0]
    expected = [mixture_log_density(x, mixture.weights_, mixture.means_, mixture.covariances_) for x in VECTORS[:5]]
    np.testing.assert_allclose(mixture.log_prob(VECTORS[:5]), expected)


def test_mixture_is_the_one_of_scikit_learn():
    theirs = GaussianMixture(2, random_state=0).fit(VECTORS)
    ours = GaussianMixtureModel.from_sklearn(theirs, VECTORS)
    np.testing.assert_allclose(ours.log_prob(VECTORS), theirs.score_samples(VECTORS))
    np.testing.assert_allclose(ours.responsibilities(VECTORS), theirs.predict_proba(VECTORS), atol=1e-9)
    np.testing.assert_allclose(ours.scores(VECTORS).mean(axis=0)[:2], 0.0, atol=1e-2)
    assert Fisher(ours)(VECTORS[:2]).shape == (2, 2)
    with pytest.raises(ValueError, match="covariance_type"):
        GaussianMixtureModel.from_sklearn(GaussianMixture(2, covariance_type="tied").fit(VECTORS))
    with pytest.raises(NotFittedError):
        GaussianMixtureModel.from_sklearn(GaussianMixture(2))


@pytest.mark.parametrize("x", ["", "a", "abc", "ccabab"])
def test_probability_of_a_sequence_is_the_sum_over_paths(x):
    codes = ["abc".index(s) for s in x]
    assert GIVEN.log_prob([x])[0] == pytest.approx(np.log(hmm_probability(PI, A, B, codes)), abs=1e-12)


def test_probabilities_of_all_sequences_of_a_length_sum_to_one():
    from itertools import product

    for length in (1, 3):
        every = ["".join(x) for x in product("abc", repeat=length)]
        assert np.exp(GIVEN.log_prob(every)).sum() == pytest.approx(1.0)
        shares = np.exp(GIVEN.log_prob(every))
        np.testing.assert_allclose(shares @ GIVEN.scores(every), 0.0, atol=1e-12)  # E[score] = 0


def test_sequences_of_all_lengths_are_worked_on_together():
    alone = [GIVEN.log_prob([x])[0] for x in STRINGS]
    np.testing.assert_allclose(GIVEN.log_prob(STRINGS), alone)
    np.testing.assert_allclose(GIVEN.scores(STRINGS), [GIVEN.scores([x])[0] for x in STRINGS])


def test_long_sequences_do_not_underflow():
    x = "abc" * 1000
    assert np.isfinite(GIVEN.log_prob([x])).all()
    assert np.isfinite(GIVEN.scores([x])).all()


def test_impossible_sequences_have_no_score():
    model = HiddenMarkovModel.from_parameters(
        [1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], emission=[[1.0, 0.0], [0.0, 1.0]], names="ab"
    )
    np.testing.assert_array_equal(model.log_prob(["ba", "ab"]), [-np.inf, np.log(0.5)])
    assert np.isfinite(model.scores(["ab"])).all()
    with pytest.raises(ValueError, match="sequence 1 has probability 0"):
        model.scores(["ab", "ba"])


def test_symbols_may_be_of_any_kind():
    X = [[("a", 1), 3, "x"], [3, 3], np.array([3, 3])]
    model = MultinomialModel(smoothing=0.0).fit(X)
    assert set(model.alphabet_) == {("a", 1), 3, "x"}
    assert model.log_prob([[3]])[0] == pytest.approx(np.log(5 / 7))


@pytest.mark.parametrize(
    "kernel", [Fisher(GIVEN, sample=STRINGS), ProbabilityProduct(), ProbabilityProduct("multinomial")]
)
def test_no_objects_give_an_empty_matrix(kernel):
    assert kernel([]).shape == (0, 0)


def test_counts_and_sequences_give_the_same_model():
    counts = np.array([[x.count(s) for s in "abc"] for x in STRINGS])
    by_symbols, by_counts = MultinomialModel().fit(STRINGS), MultinomialModel().fit(sp.csr_matrix(counts))
    np.testing.assert_allclose(by_counts.probabilities_, by_symbols.probabilities_)
    np.testing.assert_allclose(by_counts.scores(counts), by_symbols.scores(STRINGS))
    np.testing.assert_allclose(Fisher(by_counts)(sp.csr_matrix(counts)), Fisher(by_symbols)(STRINGS))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: GaussianModel("round").fit(VECTORS), "covariance must be one of"),
        (lambda: GaussianModel(free="variance").fit(VECTORS), "free must be one of"),
        (lambda: GaussianModel(reg_covar=0.0).fit(np.ones((3, 2))), "singular: raise reg_covar"),
        (lambda: GaussianModel("diag", reg_covar=0.0).fit(np.ones((3, 2))), "singular: raise reg_covar"),
        (lambda: GaussianModel().fit(np.zeros((0, 2))), "X holds no vectors"),
        (lambda: GaussianModel().fit([[1.0, np.nan]]), "vector 0 holds NaN"),
        (lambda: GaussianModel().fit([1.0, 2.0]), "one row each"),
        (lambda: GaussianModel().fit([[1.0], [1.0, 2.0]]), "of the same length"),
        (lambda: GaussianModel().fit(VECTORS).scores([[1.0, 2.0]]), "vectors of 3 numbers, X has 2"),
        (lambda: GaussianModel().fit([np.ones((2, 3)), np.ones((2, 2))]), "bag 1 must hold vectors of 3"),
        (lambda: GaussianMixtureModel(5).fit(VECTORS[:3]), "too few for n_components=5"),
        (lambda: MultinomialModel().fit(["", ""]), "alphabet is empty"),
        (lambda: MultinomialModel("ab", smoothing=0.0).fit(["", ""]), "X holds no symbols"),
        (lambda: MultinomialModel("aab").fit(["a"]), "a symbol twice"),
        (lambda: MultinomialModel(smoothing=-1.0).fit(["a"]), "smoothing must be"),
        (lambda: MultinomialModel().fit(["ab"]).scores(["a", "axb"]), "sequence 1, position 1.*'x'"),
        (lambda: MultinomialModel().fit(np.array([[1.0, -1.0]])), "counts: finite numbers"),
        (lambda: MultinomialModel().fit(np.eye(2)).scores(np.eye(3)), "must have 2 columns"),
        (lambda: MultinomialModel().fit([5]), "sequence 0 must be a string or a list"),
    ],
)
def test_bad_input_of_models_is_named(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


@pytest.mark.parametrize("model", [GaussianModel(), MultinomialModel(), GaussianMixtureModel()], ids=repr)
def test_models_must_be_fitted(model):
    with pytest.raises(NotFittedError, match="not fitted"):
        model.scores([[0.0, 1.0]])


# ------------------------------------------------------------------------------------------------ model files


@pytest.mark.parametrize("name", MODELS)
def test_models_are_saved_without_their_sample(name, tmp_path):
    model, objects = MODELS[name]
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert type(again) is type(model)
    for x in objects:
        np.testing.assert_array_equal(again.scores(one(model, x)), model.scores(one(model, x)))
    assert not hasattr(again, "sample_")


@pytest.mark.parametrize("name", MODELS)
def test_damaged_states_are_refused(name):
    model, _ = MODELS[name]
    meta, arrays = model.to_state()
    first = next(iter(arrays))
    for wrong in (arrays[first][:-1], arrays[first] * np.nan, arrays[first].astype(np.int64)):
        with pytest.raises(ValueError):
            type(model).from_state(meta, {**arrays, first: wrong})
    with pytest.raises(KeyError):
        type(model).from_state(meta, {key: array for key, array in arrays.items() if key != first})


def test_symbols_are_kept_as_they_are():
    model = MultinomialModel().fit([[("a", 1)], ["b"]])
    assert MultinomialModel.from_state(*model.to_state()).alphabet_ == model.alphabet_


@pytest.mark.parametrize("model", [GaussianModel(), MultinomialModel()], ids=repr)
def test_models_that_are_not_fitted_are_not_saved(model):
    with pytest.raises(NotFittedError):
        model.to_state()


# ------------------------------------------------------------------------------------------------ products


def density_product(p: Any, q: Any, rho: float) -> float:
    """∫ p^ρ q^ρ over the plane, on a grid."""
    axis = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    return float((p(grid) ** rho * q(grid) ** rho).sum() * (axis[1] - axis[0]) ** 2)


@pytest.mark.parametrize("rho", [0.5, 0.8, 1.0, 2.0])
@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_product_of_gaussians_is_the_integral(rho, covariance):
    random = np.random.default_rng(5)
    bags = [random.normal(size=(6, 2)), random.normal(size=(4, 2)) * 1.5 + 1.0]
    models = [GaussianModel(covariance, reg_covar=0.2).fit(bag) for bag in bags]
    shapes = [m.covariance_ if covariance == "full" else np.diag(m.covariance_) for m in models]
    p, q = (multivariate_normal(m.mean_, C).pdf for m, C in zip(models, shapes, strict=True))
    kernel = ProbabilityProduct(rho=rho, covariance=covariance, reg_covar=0.2)
    assert kernel.pair(*bags) == pytest.approx(density_product(p, q, rho), rel=1e-6)
    assert kernel.pair(*models) == pytest.approx(kernel.pair(*bags))


def test_product_of_mixtures_is_the_integral():
    random = np.random.default_rng(6)
    bags = [np.vstack([random.normal(size=(8, 2)) - 3, random.normal(size=(8, 2)) + 2]) for _ in range(4)]
    kernel = ProbabilityProduct("mixture", rho=1.0, reg_covar=0.3)
    models = [GaussianMixtureModel(2, reg_covar=0.3, random_state=0).fit(bag) for bag in bags]
    p, q = (lambda x, m=m: np.exp(m.log_prob(x.reshape(-1, 2))).reshape(x.shape[:2]) for m in models[:2])
    assert kernel.pair(*bags[:2]) == pytest.approx(density_product(p, q, 1.0), rel=1e-6)
    np.testing.assert_allclose(kernel(models), kernel(bags))
    assert is_positive_definite(kernel(bags))


def test_bhattacharyya_of_equal_densities_is_one():
    random = np.random.default_rng(7)
    bags = [random.normal(size=(n, 3)) for n in (1, 2, 9)]
    for covariance in ("full", "diag"):
        np.testing.assert_allclose(ProbabilityProduct(covariance=covariance).diag(bags), 1.0)
        assert (ProbabilityProduct(covariance=covariance)(bags) <= 1 + 1e-12).all()
    np.testing.assert_allclose(ProbabilityProduct("multinomial").diag([list("abb"), list("c")]), 1.0)


def test_equal_vectors_make_no_mixture():
    kernel = ProbabilityProduct("mixture", rho=1.0, n_components=3)
    assert np.isfinite(
        kernel([np.zeros((5, 2)), np.ones((2, 2)), np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])])
    ).all()


def test_products_of_shares_take_words_counts_and_matrices():
    texts = [["a", "b", "a"], ["b"], ["c", "a"]]
    mappings = [{"a": 2, "b": 1}, {"b": 7}, {"c": 0.5, "a": 0.5}]
    counts = sp.csr_matrix([[2, 1, 0], [0, 1, 0], [1, 0, 1]])
    kernel = ProbabilityProduct("multinomial")
    np.testing.assert_allclose(kernel(texts), kernel(mappings))
    np.testing.assert_allclose(kernel(texts), kernel(counts))


@pytest.mark.parametrize(
    ("kernel", "objects", "message"),
    [
        (ProbabilityProduct("gamma"), [[[1.0]]], "family must be one of"),
        (ProbabilityProduct(rho=0.0), [[[1.0]]], "rho must be"),
        (ProbabilityProduct("mixture"), [[[1.0]]], "rho must be 1 for mixtures"),
        (ProbabilityProduct(reg_covar=0.0), [[[1.0]]], "reg_covar must be"),
        (ProbabilityProduct(), [[[1.0]], []], "bag 1 is empty"),
        (ProbabilityProduct(), [[[1.0]], [1.0]], "bag 1 must be an array of vectors"),
        (ProbabilityProduct(), [[[1.0]], [[1.0, 2.0]]], "bag 1 has vectors of 2 numbers"),
        (ProbabilityProduct(), [[[1.0]], [[np.inf]]], "bag 1: vector 0 holds NaN"),
        (ProbabilityProduct(covariance="diag"), [GaussianModel().fit(VECTORS)], "given model has full covariances"),
        (ProbabilityProduct("multinomial"), [["a"], []], "object 1 is empty"),
        (ProbabilityProduct("multinomial"), ["abc"], "set 0 is one string"),
        (ProbabilityProduct(rho=1.0, reg_covar=1e-30), [np.zeros((1, 40))], "overflows: raise reg_covar"),
    ],
)
def test_bad_input_of_probability_products_is_named(kernel, objects, message):
    with pytest.raises(ValueError, match=message):
        kernel(objects)


def test_products_take_given_models_of_their_family_alone():
    normal, mixture = GaussianModel().fit(VECTORS), GaussianMixtureModel(2, random_state=0).fit(VECTORS)
    of_normals, of_mixtures = ProbabilityProduct(rho=1.0), ProbabilityProduct("mixture", rho=1.0)
    assert of_normals([normal]).shape == of_mixtures([mixture]).shape == (1, 1)
    bag = VECTORS[:5]
    with pytest.raises(ValueError, match=r"bag 1 is a GaussianMixtureModel: with family='gaussian' .* a GaussianModel"):
        of_normals([bag, mixture, normal])
    with pytest.raises(ValueError, match=r"bag 1 is a GaussianModel: with family='mixture' .* a GaussianMixtureModel"):
        of_mixtures([bag, normal, mixture])
    for kernel, unfitted in ((of_normals, GaussianModel()), (of_mixtures, GaussianMixtureModel(2))):
        with pytest.raises(NotFittedError, match="not fitted"):
            kernel([bag, unfitted])


def test_an_empty_string_has_probability_one_among_others():
    model = HiddenMarkovModel.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emission=[[0.7, 0.3], [0.1, 0.9]], names="ab"
    )
    alone = model.log_prob(["ab", "b"])
    assert np.array_equal(model.log_prob(["ab", "", "b", ""]), [alone[0], 0.0, alone[1], 0.0])
    assert (alone < 0).all()
