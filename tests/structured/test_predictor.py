"""Structures in plain Python: every loss and solver learns them, and wrong oracles are found out and explained."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.learning import ConvergenceWarning, Hinge, Hybrid, RelativeMargin, Slack
from mercer.learning.solvers import BCFW, CuttingPlane
from mercer.structured import CustomStructure, OracleError, StructuredPredictor
from reference.chains import log_sum_exp
from reference.histories import without_seconds
from reference.margin import Ordering, joint


class Matching(CustomStructure):
    """Pairs of two sets of equal size: x[i, j] are the features of pairing i with j, y[i] is the partner of i."""

    def features(self, x, y):
        return x[np.arange(len(x)), list(y)].sum(axis=0)

    def cost(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def argmax(self, w, x, cost_to=None):
        gain = x @ w
        if cost_to is not None:
            gain = gain + (np.arange(len(x)) != np.array(cost_to)[:, None])
        return tuple(linear_sum_assignment(gain, maximize=True)[1].tolist())

    def argmin(self, w, x):
        return tuple(linear_sum_assignment(x @ w)[1].tolist())


class WrittenOut(Matching):
    """The same with the verbs of the other losses, for small sets."""

    def _all(self, w, x, cost_to=None):
        outputs = list(itertools.permutations(range(len(x))))
        extra = [0.0 if cost_to is None else self.cost(cost_to, y) for y in outputs]
        return outputs, np.array([w @ self.features(x, y) + e for y, e in zip(outputs, extra, strict=True)])

    def k_best(self, w, x, k):
        outputs, scores = self._all(w, x)
        return [(outputs[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")[:k]]

    def log_partition(self, w, x, cost_to=None):
        outputs, scores = self._all(w, x, cost_to)
        log_z = log_sum_exp(scores)
        return log_z, np.exp(scores - log_z) @ np.array([self.features(x, y) for y in outputs])


class Sparse(Matching):
    """The same with sparse feature rows."""

    def features(self, x, y):
        return csr_array(super().features(x, y)[None, :])


PLANTED = np.array([1.0, -2.0, 0.5, 0.0])


def data(n=20, size=4, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(size, size, 4)) for _ in range(n)]
    return X, [Matching().argmax(PLANTED, x) for x in X]


def quiet(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, Y)


# ------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("structure", [Matching, Sparse])
def test_matching_learns_planted_weights(structure):
    X, Y = data(40)
    model = StructuredPredictor(structure(), C=10.0, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.95
    cosine = model.coef_ @ PLANTED / np.linalg.norm(model.coef_) / np.linalg.norm(PLANTED)
    assert cosine > 0.98
    new, wanted = data(40, seed=1)
    assert model.score(new, wanted) > 0.85
    assert model.mean_cost(new, wanted) < 0.5
    assert model.converged_
    assert not model.interrupted_
    assert model.n_iter_ == len(model.history_["gap"])
    assert model.history_["gap"][-1] <= 1e-3
    np.testing.assert_allclose(
        model.predict_scores(X, Y), [model.coef_ @ Matching().features(x, y) for x, y in zip(X, Y, strict=True)]
    )


COMBINATIONS = [
    *itertools.product(["hinge", Hinge()], ["bcfw", "cutting-plane", "bmrm", "subgradient"]),
    *itertools.product(["squared-hinge"], ["bcfw", "cutting-plane", "bmrm"]),
    *itertools.product(["slack", Slack(search=5)], ["bcfw", "cutting-plane", "bmrm", "subgradient"]),
    *itertools.product([RelativeMargin(50.0)], ["bcfw", "cutting-plane", CuttingPlane("n"), BCFW("uniform")]),
    *itertools.product(["log", "softmax-margin"], ["bmrm", "lbfgs"]),
    *itertools.product(["hybrid", Hybrid(0.2, margin="cost")], ["bmrm"]),
]


@pytest.mark.parametrize(("loss", "solver"), COMBINATIONS)
def test_every_loss_and_solver_learns_matching(loss, solver):
    X, Y = data(12, size=3)
    model = StructuredPredictor(WrittenOut(), loss, solver, 3.0, max_iter=60, tol=1e-2, random_state=0)
    quiet(model, X, Y)
    assert model.score(X, Y) >= 0.9
    assert len(model.history_["objective"]) == model.n_iter_ > 0
    if solver != "lbfgs":
        gaps = np.array(model.history_["primal"]) - np.array(model.history_["dual"])
        assert (gaps >= -1e-9).all()


def test_solvers_agree_on_a_structure_with_several_sizes_of_outputs():
    problem = joint(9)
    X, Y = list(problem.X), list(problem.y)
    values = [
        problem.objective(
            StructuredPredictor(Ordering(), "hinge", solver, 0.5, max_iter=3000, tol=1e-3, random_state=0)
            .fit(X, Y)
            .coef_,
            0.5,
        )
        for solver in ("bcfw", "cutting-plane", "bmrm")
    ]
    np.testing.assert_allclose(values, problem.optimum(0.5)[1], rtol=1.1e-3)


def test_a_seed_repeats_the_fit():
    X, Y = data()
    weights = [StructuredPredictor(Matching(), max_iter=3, tol=1.0, random_state=s).fit(X, Y).coef_ for s in (0, 0)]
    np.testing.assert_array_equal(*weights)


def test_outputs_may_be_arrays():
    class Arrays(Matching):
        def argmax(self, w, x, cost_to=None):
            return np.array(super().argmax(w, x, cost_to))

    X, Y = data()
    model = StructuredPredictor(Arrays(), C=3.0, random_state=0).fit(X, [np.array(y) for y in Y])
    assert model.score(X, [np.array(y) for y in Y]) > 0.9


def test_the_default_cost_is_one_for_any_other_output():
    class Plain(CustomStructure):
        def features(self, x, y):
            return np.array([x[y]])

        def argmax(self, w, x, cost_to=None):
            return max((0, 1), key=lambda y: w[0] * x[y] + (cost_to is not None and y != cost_to))

    X, Y = [(0.0, 1.0), (2.0, 1.0), (-1.0, 3.0)], [1, 0, 1]
    model = StructuredPredictor(Plain(), C=10.0, random_state=0).fit(X, Y)
    assert model.predict(X) == Y
    assert Plain().cost(0, 1) == 1.0
    assert Plain().cost(1, 1) == 0.0
    assert Plain().cost(np.array([1, 2]), np.array([1, 2])) == 0.0


# ---------------------------------------------------------------------------------------- wrong oracles


def broken(**methods):
    """A matching structure with some methods replaced."""
    return type("Broken", (WrittenOut,), methods)()


def is_third(x):
    """The example whose number is 3 is marked by a very small entry."""
    return x[0, 0, 3] == 1e-9


def marked(n=8):
    X, Y = data(n, size=3)
    X[3][0, 0, 3] = 1e-9
    return X, Y


def fit_broken(structure, loss="hinge", solver="bcfw", X=None, Y=None):
    model = StructuredPredictor(structure, loss, solver, 1.0, max_iter=20, tol=1e-9, random_state=0)
    with pytest.raises(OracleError) as caught:
        quiet(model, *(marked() if X is None else (X, Y)))
    return str(caught.value), model


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "bmrm", "subgradient"])
def test_an_argmax_below_the_truth_is_found_out(solver):
    def reversed_sign(self, w, x, cost_to=None):
        return WrittenOut.argmax(self, -w, x, cost_to)

    message, _ = fit_broken(broken(argmax=reversed_sign), solver=solver)
    assert "argmax must find the highest score plus cost" in message
    assert message.startswith("example ")


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"features": lambda self, x, y: np.ones(5 if is_third(x) else 4)}, "example 3: features gave 5 numbers"),
        ({"features": lambda self, x, y: np.full(4, np.nan if is_third(x) else 1.0)}, "example 3: features gave NaN"),
        ({"features": lambda self, x, y: np.full(4, np.inf if is_third(x) else 1.0)}, "example 3: features gave NaN"),
        ({"features": lambda self, x, y: None if is_third(x) else np.ones(4)}, "example 3: features gave"),
        ({"cost": lambda self, y, z: 0.5}, r"example 0: cost(y, y) is 0.5"),
        ({"cost": lambda self, y, z: -1.0 if y != z else 0.0}, "cost gave -1.0: it must be a finite number"),
        ({"cost": lambda self, y, z: np.nan}, "example 0: cost gave nan"),
        ({"features": lambda self, x, y: np.zeros(0)}, "empty vector"),
    ],
)
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "bmrm"])
def test_impossible_answers_are_explained(methods, words, solver):
    assert words in fit_broken(broken(**methods), solver=solver)[0]


def test_features_of_a_searched_output_are_checked_too():
    """The true outputs are well, another one is not."""
    X, Y = marked()
    true = {id(x): y for x, y in zip(X, Y, strict=True)}

    def features(self, x, y):
        row = WrittenOut.features(self, x, y)
        return row if y == true[id(x)] or not is_third(x) else np.append(row, 1.0)

    message, _ = fit_broken(broken(features=features), X=X, Y=Y)
    assert "example 3: features gave 5 numbers, the first example had 4" in message


def raising(name):
    def method(self, *args, **options):
        if any(isinstance(a, np.ndarray) and a.ndim == 3 and is_third(a) for a in args):
            raise KeyError("lost")
        return getattr(WrittenOut, name)(self, *args, **options)

    return method


@pytest.mark.parametrize(
    ("name", "loss", "solver"),
    [
        ("argmax", "hinge", "bcfw"),
        ("argmax", "hinge", "cutting-plane"),
        ("argmax", "squared-hinge", "bmrm"),
        ("argmax", "slack", "subgradient"),
        ("argmin", "relative-margin", "cutting-plane"),
        ("argmin", "relative-margin", "bcfw"),
        ("k_best", "hybrid", "bmrm"),
        ("log_partition", "log", "lbfgs"),
        ("log_partition", "softmax-margin", "bmrm"),
        ("features", "hinge", "bcfw"),
    ],
)
def test_an_oracle_that_raises_is_named_with_its_example(name, loss, solver):
    message, _ = fit_broken(broken(**{name: raising(name)}), loss, solver)
    assert f"example 3: {name} raised KeyError: 'lost'" in message


def test_an_oracle_that_raises_keeps_its_cause_and_the_history_so_far():
    calls = []

    def tires(self, w, x, cost_to=None):
        calls.append(1)
        if len(calls) > 8 * 5:
            raise RuntimeError("tired")
        return WrittenOut.argmax(self, w, x, cost_to)

    X, Y = marked()
    model = StructuredPredictor(broken(argmax=tires), solver="bmrm", tol=0.0)
    with pytest.raises(OracleError, match="argmax raised RuntimeError: tired") as caught:
        model.fit(X, Y)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert len(model.history_["primal"]) >= 3
    assert np.isfinite(model.history_["primal"][-1])


@pytest.mark.parametrize("number", [0, 255, 256, 290])
def test_examples_are_counted_over_all_batches(number):
    X, Y = data(300, size=2)
    X[number][0, 0, 3] = 1e-9
    for name in ("argmax", "log_partition"):
        loss, solver = ("hinge", "cutting-plane") if name == "argmax" else ("log", "bmrm")
        message, _ = fit_broken(broken(**{name: raising(name)}), loss, solver, X, Y)
        assert f"example {number}: {name} raised" in message


def test_sparse_features_are_one_row():
    def features(self, x, y):
        row = WrittenOut.features(self, x, y)
        return csr_array(np.vstack([row, row]) if is_third(x) else row[None, :])

    assert "example 3: features" in fit_broken(broken(features=features))[0]


def test_features_that_raise_at_the_first_example_are_named():
    X, Y = data(4, size=3)
    X[0][0, 0, 3] = 1e-9
    message, _ = fit_broken(broken(features=raising("features")), X=X, Y=Y)
    assert "example 0: features raised KeyError: 'lost'" in message


@pytest.mark.parametrize(
    "methods",
    [
        {"features": lambda self, x, y: ["a", "b", "c", "d"] if is_third(x) else np.ones(4)},
        {"log_partition": lambda self, w, x, cost_to=None: None if is_third(x) else WrittenOut().log_partition(w, x)},
    ],
)
def test_answers_that_are_no_numbers_are_named(methods):
    loss, solver = ("log", "lbfgs") if "log_partition" in methods else ("hinge", "bcfw")
    message, _ = fit_broken(broken(**methods), loss, solver)
    assert "example 3" in message


def test_an_equal_that_raises_is_named():
    def equal(self, y, z):
        raise KeyError("lost")

    message, _ = fit_broken(broken(equal=equal), "hybrid", "bmrm")
    assert "equal raised KeyError" in message


def test_an_interrupt_in_an_oracle_gives_the_best_so_far():
    calls = []

    def interrupted(self, w, x, cost_to=None):
        calls.append(1)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return WrittenOut.argmax(self, w, x, cost_to)

    X, Y = marked()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredPredictor(broken(argmax=interrupted), tol=1e-12, random_state=0).fit(X, Y)
    assert model.interrupted_
    assert not model.converged_
    assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize(
    ("loss", "solver", "method"),
    [
        ("relative-margin", "cutting-plane", "argmin"),
        ("relative-margin", "bcfw", "argmin"),
        ("hybrid", "bmrm", "k_best"),
        ("log", "lbfgs", "log_partition"),
        ("softmax-margin", "bmrm", "log_partition"),
    ],
)
def test_a_loss_says_which_method_it_needs(loss, solver, method):
    class Bare(CustomStructure):
        def features(self, x, y):
            return Matching().features(x, y)

        def argmax(self, w, x, cost_to=None):
            return Matching().argmax(w, x, cost_to)

        def cost(self, y_true, y):
            return Matching().cost(y_true, y)

    with pytest.raises(NotImplementedError, match=f"Bare has no {method}"):
        StructuredPredictor(Bare(), loss, solver).fit(*data(3))


def test_a_structure_needs_its_two_methods():
    class Half:
        def features(self, x, y):
            return np.ones(1)

    with pytest.raises(TypeError, match="must have a method 'argmax'"):
        StructuredPredictor(Half()).fit([1], [1])
    with pytest.raises(TypeError):
        CustomStructure()


# ----------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "one", None])
def test_C_must_be_positive(C):
    with pytest.raises((ValueError, TypeError), match="C must"):
        StructuredPredictor(Matching(), C=C).fit(*data(3))


def test_empty_and_unequal_data_are_refused():
    X, Y = data(3)
    with pytest.raises(ValueError, match="X is empty"):
        StructuredPredictor(Matching()).fit([], [])
    with pytest.raises(ValueError, match="3 inputs and 2 outputs"):
        StructuredPredictor(Matching()).fit(X, Y[:2])
    model = quiet(StructuredPredictor(Matching(), max_iter=1), X, Y)
    assert model.predict([]) == []
    with pytest.raises(ValueError, match="nothing to score"):
        model.score([], [])
    with pytest.raises(ValueError, match="3 inputs and 2 outputs"):
        model.score(X, Y[:2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "margin"}, "unknown loss 'margin'"),
        ({"solver": "simplex"}, "unknown solver 'simplex'"),
        ({"loss": "log", "solver": "bcfw"}, "use 'bmrm'"),
        ({"loss": "relative-margin", "solver": "bmrm"}, "takes no bound"),
        ({"loss": "hinge", "solver": "sgd"}, "sgd"),
        ({"tol": -1}, "tol"),
        ({"max_iter": -1}, "max_iter"),
        ({"loss": Hinge("hamming")}, "has its own cost"),
    ],
)
def test_bad_settings_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        StructuredPredictor(Matching(), **options).fit(*data(3))


def test_the_solver_may_be_chosen_by_the_loss():
    X, Y = data(6, size=3)
    assert StructuredPredictor(WrittenOut(), "log", "auto").fit(X, Y).score(X, Y) > 0


@pytest.mark.parametrize("loss", ["hinge", "slack", "hybrid"])
def test_lbfgs_refuses_a_loss_with_corners(loss):
    model = StructuredPredictor(WrittenOut(), loss, "lbfgs", max_iter=3)
    with pytest.raises(ValueError, match="bmrm"):
        quiet(model, *data(3))


# -------------------------------------------------------------------------------- scikit-learn and files


def test_it_has_scikit_learns_parameters():
    structure = Matching()
    model = StructuredPredictor(structure, "slack", "bmrm", 2.0, max_iter=5, tol=0.1, random_state=3)
    params = model.get_params(deep=False)
    assert params["structure"] is structure
    assert {"loss": "slack", "solver": "bmrm", "C": 2.0, "max_iter": 5, "tol": 0.1}.items() <= params.items()
    again = clone(model)
    assert isinstance(again.structure, Matching)
    assert again.get_params(deep=False).items() >= {"loss": "slack", "C": 2.0}.items()
    assert model.set_params(C=3.0).C == 3.0
    with pytest.raises(NotFittedError, match="not fitted"):
        model.predict([])


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw", "subgradient"])
def test_a_model_comes_back_from_its_file(solver, tmp_path):
    X, Y = data(10)
    model = quiet(StructuredPredictor(Matching(), solver=solver, C=2.0, max_iter=30, random_state=0), X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert (again.C, again.converged_, again.n_iter_) == (2.0, model.converged_, model.n_iter_)
    for name, values in without_seconds(model.history_).items():  # an infinite primal comes back as NaN
        np.testing.assert_array_equal(again.history_[name], np.where(np.isfinite(values), values, np.nan))
    for call in (lambda: again.predict(X), lambda: again.score(X, Y)):
        with pytest.raises(AttributeError, match="structure 'Matching', which is code and not in the file"):
            call()
    again.structure = Matching()
    assert again.predict(X) == model.predict(X)


def test_a_file_keeps_loss_and_solver(tmp_path):
    X, Y = data(5)
    model = quiet(StructuredPredictor(Matching(), RelativeMargin(7.0), "cutting-plane", 2.0), X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.solver == "cutting-plane"
    assert again.loss.B == 7.0


def test_a_loaded_model_without_structure_says_so_when_fitted_again(tmp_path):
    X, Y = data(5)
    mercer.save(quiet(StructuredPredictor(Matching(), solver="bmrm"), X, Y), tmp_path / "m.mercer")
    with pytest.raises((AttributeError, TypeError), match=r"Matching|structure"):
        mercer.load(tmp_path / "m.mercer").fit(X, Y)


def test_a_model_that_is_not_fitted_has_nothing_to_save(tmp_path):
    with pytest.raises(NotFittedError):
        mercer.save(StructuredPredictor(Matching()), tmp_path / "m.mercer")
