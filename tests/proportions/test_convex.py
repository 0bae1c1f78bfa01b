"""The convex machine of proportions: its search, its bounds, its decoding, and inputs that are odd."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.svm import SVC

import mercer
from mercer import _core
from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, ConvexProportionSVM, IllPosedWarning, make_bags
from mercer.proportions._base import Problem, Space
from mercer.proportions._shares import share_threshold
from mercer.proportions.convex import _GAP, _Choices, _Hull, _oriented, _rank_one, _Vectors
from reference.contract import contract
from reference.labellings import agreeing, integer_value, relaxed_value
from reference.votes import votes


def problem_of(sizes, shares, *, known=None, low=None, high=None, weight=None) -> Problem:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shares = np.array(shares, float)
    return Problem(
        offsets,
        shares,
        shares if low is None else np.array(low, float),
        shares if high is None else np.array(high, float),
        np.ones(len(sizes)) if weight is None else np.array(weight, float),
        np.ones(offsets[-1]),
        np.zeros(offsets[-1], np.int8) if known is None else np.array(known, np.int8),
    )


def toy(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two bags whose means lie on the wrong sides."""
    rng = np.random.default_rng(seed)
    parts = [((-0.26, -0.28), 0.1, 60), ((0.66, 0.68), 0.157, 40), ((-0.65, -0.64), 0.15, 40), ((0.26, 0.25), 0.1, 60)]
    X = np.vstack([rng.normal(centre, sd, (n, 2)) for centre, sd, n in parts])
    return X, np.repeat([1, 0, 1, 0], [60, 40, 40, 60]), np.repeat([0, 1], 100)


def two_classes(seed: int, n: int = 120, d: int = 3, apart: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += apart * (y - 0.5)
    return X, y


# ---------------------------------------------------------------------------------------------------- labellings


@pytest.mark.parametrize("seed", range(20))
def test_labels_along_a_direction_are_the_best_of_all_labellings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 3)
    n = int(sizes.sum())
    known = np.where(rng.random(n) < 0.2, rng.choice([-1, 1], n), 0).astype(np.int8)
    low = rng.random(3) * 0.7
    high = low + rng.random(3) * (1 - low)
    problem = problem_of(sizes, (low + high) / 2, known=known, low=low, high=high)
    choices = _Choices.of(problem, 0.1)
    alpha = np.where(rng.random(n) < 0.3, 0.0, rng.random(n))
    scores = rng.normal(size=(4, n))
    found = choices.best(scores, alpha)
    assert (found[:, known != 0] == known[known != 0]).all()
    if not choices.adjusted.any():
        every = agreeing(problem.offsets, low - 0.1, high + 0.1, known)
        best = (every[None] * (scores * alpha)[:, None]).sum(axis=2).max(axis=1)
        np.testing.assert_allclose((found * scores * alpha).sum(axis=1), best)


@pytest.mark.parametrize(
    ("size", "share", "epsilon", "least", "most", "adjusted"),
    [
        (10, 0.3, 0.0, 3, 3, False),  # 10 · 0.3 is not 3 in floating point
        (4, 0.4, 0.0, 2, 2, True),
        (4, 0.4, 0.1, 2, 2, False),
        (4, 0.4, 0.2, 1, 2, False),
        (1, 0.2, 0.0, 0, 0, True),
        (1, 0.5, 0.0, 0, 1, True),  # both are equally near
        (3, 0.0, 0.0, 0, 0, False),
        (3, 1.0, 0.5, 2, 3, False),
        (5, 0.5, 1.0, 0, 5, False),
    ],
)
def test_counts_that_a_share_allows(size, share, epsilon, least, most, adjusted) -> None:
    choices = _Choices.of(problem_of([size], [share]), epsilon)
    assert (choices.least[0], choices.most[0], choices.adjusted[0]) == (least, most, adjusted)


def test_known_labels_win_over_a_share_they_contradict() -> None:
    choices = _Choices.of(problem_of([4], [0.25], known=[1, 1, 1, 0]), 0.0)
    assert choices.adjusted.tolist() == [True]
    assert (choices.least[0], choices.most[0]) == (0, 0)  # of the one that is free


@pytest.mark.parametrize("seed", range(10))
def test_the_search_never_falls_below_the_best_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4))
    choices = _Choices.of(problem_of([8] * 5, rng.integers(0, 9, 5) / 8), 0.0)
    vectors = _Vectors(Space(features=X), "center")
    axes, alpha = vectors.directions(0.9), rng.random(40)
    by_axis = choices.best(np.concatenate([axes, -axes]), alpha)
    found, square = choices.searched(vectors, axes, alpha)
    assert square == pytest.approx(vectors.squares((found * alpha)[None])[0])
    assert square >= vectors.squares(by_axis * alpha).max() * (1 - 1e-12)


def risen(K: np.ndarray, choices: _Choices, alpha: np.ndarray, start: np.ndarray) -> np.ndarray:
    """From one labelling to the best along its scores, until it stays."""
    while True:
        found = choices.best(((start * alpha) @ K)[None], alpha)[0]
        if (found == start).all():
            return start
        start = found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_scores_that_follow_labels_lead_where_scores_made_anew_do(seed: int, epsilon: float, threads: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 90, 6)
    n = int(sizes.sum())
    K = Gaussian(0.2)(rng.normal(size=(n, 3)))
    known = np.where(rng.random(n) < 0.1, rng.choice([-1, 1], n), 0)
    choices = _Choices.of(problem_of(sizes, rng.random(6), known=known), epsilon, threads)
    alpha = np.where(rng.random(n) < 0.4, 0.0, rng.random(n))
    Y = choices.best(rng.normal(size=(5, n)), alpha)
    expected = np.array([risen(K, choices, alpha, y) for y in Y])
    squares = np.empty(5)
    bags = choices.offsets, choices.least, choices.most, choices.known
    _core.bags.LabelledPrograms(K).raise_labellings((Y * alpha) @ K, Y, alpha, *bags, squares, 1000, threads)
    np.testing.assert_array_equal(Y, expected)
    np.testing.assert_allclose(squares, ((Y * alpha) @ K * (Y * alpha)).sum(axis=1), rtol=1e-10)


def test_ascent_stops_after_so_many_steps_and_refuses_what_does_not_fit() -> None:
    n = 6
    bags = np.array([0, n]), np.full(1, 3), np.full(1, 3), np.zeros(n, np.int8)
    first = np.array([[1, -1, 1, -1, 1, -1]], np.int8)
    programs = _core.bags.LabelledPrograms(np.eye(n))
    given = {"scores": np.arange(6.0)[None], "labelings": first.copy(), "weight": np.ones(n)}
    given |= dict(zip(("offsets", "least", "most", "known"), bags, strict=True))
    given |= {"squares": np.empty(1), "max_steps": 0}
    programs.raise_labellings(**given)
    np.testing.assert_array_equal(given["labelings"], first)
    assert given["squares"][0] == -3.0
    programs.raise_labellings(**given | {"max_steps": 1})
    np.testing.assert_array_equal(given["labelings"], [[-1, -1, -1, 1, 1, 1]])
    for change, message in (
        ({"scores": np.zeros((1, 5))}, "scores must have a value for each instance"),
        ({"labelings": np.zeros((1, n), np.int8)}, "labelings must be -1 or 1"),
        ({"labelings": np.ones((2, n), np.int8)}, "labelings must have the shape of scores"),
        ({"squares": np.empty(2)}, "squares need a value"),
        ({"scores": np.full((1, n), np.nan)}, "scores must be finite"),
        ({"most": np.full(1, 7)}, "least and most must be counts"),
    ):
        with pytest.raises(ValueError, match=message):
            programs.raise_labellings(**given | change)


def test_instances_without_weight_fill_the_places_that_are_left_by_their_scores() -> None:
    scores = np.array([[3.0, 5.0, -1.0, 4.0, -2.0, 4.0]])
    alpha = np.array([1.0, 0.0, 1.0, 0.0, 0.5, 0.0])
    # First the one with weight and a positive score, then those without weight: the highest, and the first of equals.
    for count, expected in ((1, [0]), (2, [0, 1]), (3, [0, 1, 3]), (4, [0, 1, 3, 5])):
        choices = _Choices.of(problem_of([6], [count / 6]), 0.0)
        assert np.flatnonzero(choices.best(scores, alpha)[0] > 0).tolist() == expected


# ---------------------------------------------------------------------------------------------------- the optimum


def enter(hull: _Hull, labeling: np.ndarray, *evaluations: int) -> None:
    hull.enter(labeling, square_of(hull, labeling), *evaluations)


def square_of(hull: _Hull, labeling: np.ndarray) -> float:
    return float(hull.vectors.squares((hull.alpha * labeling)[None])[0])


def small(seed: int) -> tuple[np.ndarray, Problem, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = [[3, 3, 2], [4, 4], [2, 2, 2, 2], [5, 3]][seed % 4]
    problem = problem_of(sizes, [rng.integers(0, s + 1) / s for s in sizes])
    X = rng.normal(size=(sum(sizes), 2))
    return X, problem, agreeing(problem.offsets, problem.low, problem.high, problem.known)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("seed", range(8))
def test_weights_of_all_labellings_reach_the_relaxed_optimum(seed: int, kernel) -> None:
    X, _, every = small(seed)
    space = Space(features=X) if kernel is None else Space(gram=kernel(X))
    vectors = _Vectors(space, "center")
    hull = _Hull(vectors, np.ones(len(X)), every[0], 1e-7)
    for labeling in every[1:]:
        enter(hull, labeling)
    # Labellings that lost their weight come back where they are of use.
    for labeling in every:
        if hull.promise(square_of(hull, labeling)) > 1e-6 * hull.value:
            enter(hull, labeling)
    relaxed = relaxed_value(vectors.K, every, 1.0)
    assert 0 <= hull.gap <= 1e-6 * hull.value
    assert hull.value == pytest.approx(relaxed, rel=2e-5)
    assert relaxed <= integer_value(vectors.K, every, 1.0) * (1 + 1e-8)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("seed", range(8))
def test_cutting_planes_end_between_the_relaxed_and_the_integer_optimum(seed: int, kernel) -> None:
    X, problem, every = small(seed)
    space = Space(features=X) if kernel is None else Space(gram=kernel(X))
    vectors = _Vectors(space, "center")
    model = ConvexProportionSVM(tol=1e-6, variance=1.0, max_iter=100)
    hull = model._hull(vectors, _Choices.of(problem, 0.0), np.ones(len(X)))
    assert relaxed_value(vectors.K, every, 1.0) * (1 - _GAP) <= hull.value
    assert hull.value <= integer_value(vectors.K, every, 1.0) * (1 + _GAP)
    assert 0 <= hull.gap <= _GAP * hull.value
    assert (np.diff(hull.history) <= 0).all()


@pytest.mark.parametrize("intercept", ["center", "constant"])
def test_with_all_labels_it_is_the_machine_without_a_bias(intercept: str) -> None:
    X, y = two_classes(0, 60, apart=1.0)
    vectors = _Vectors(Space(features=X), intercept)
    labels = 2 * y - 1
    hull = _Hull(vectors, np.full(60, 0.5), labels.astype(np.int8), 1e-8)
    w = (hull.alpha * labels) @ vectors.F
    primal = w @ w / 2 + 0.5 * np.maximum(0, 1 - labels * (vectors.F @ w)).sum()
    assert hull.value == pytest.approx(primal, rel=1e-5)
    # The constant feature is the bias of a machine whose bias is in the norm.
    if intercept == "center":
        peer = SVC(C=0.5, kernel="precomputed", tol=1e-6).fit(vectors.K, labels)
        assert hull.value >= peer.dual_coef_[0] @ labels[peer.support_] - 1e-6 - (
            peer.dual_coef_[0] @ vectors.K[np.ix_(peer.support_, peer.support_)] @ peer.dual_coef_[0] / 2
        )


def mixture(seed: int, n: int = 40, d: int = 4, count: int = 3):
    """Instances, labellings and weights; two columns of X are equal rows, so that K is singular."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[1] = X[0]
    Y = rng.choice([-1, 1], (count, n)).astype(np.int8)
    return X, Y, rng.dirichlet(np.ones(count)), rng.uniform(0.1, 3.0, n)


def test_programs_of_more_labellings_than_a_word_has_bits() -> None:
    X, Y, mu, upper = mixture(0, count=70)
    Y[:64] = Y[0]  # instances differ in the last labellings only
    K = Gaussian(0.3)(X)
    alpha, slope = upper / 2, np.empty(40)
    _core.bags.LabelledPrograms(K).ascend(Y, mu, upper, alpha, slope, 1e-9, 20000)
    np.testing.assert_allclose(slope, 1 - (((Y.T * mu) @ Y) * K) @ alpha, atol=1e-8)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3)], ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_programs_of_mixed_labellings_reach_their_optimum(seed: int, kernel) -> None:
    X, Y, mu, upper = mixture(seed)
    K = kernel(X)
    Q = ((Y.T * mu) @ Y) * K
    best = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1),
        np.zeros(40),
        jac=True,
        bounds=[(0, u) for u in upper],
        options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 5000, "maxfun": 50000},
    )
    for start in (np.zeros(40), upper / 3, upper):
        alpha, slope = start.copy(), np.empty(40)
        _core.bags.LabelledPrograms(K).ascend(Y, mu, upper, alpha, slope, 1e-9, 20000)
        np.testing.assert_allclose(slope, 1 - Q @ alpha, atol=1e-8)
        assert ((alpha >= 0) & (alpha <= upper)).all()
        assert alpha.sum() - alpha @ Q @ alpha / 2 == pytest.approx(-best.fun, rel=1e-6)
        assert _core.bags.bound_program(alpha, slope, upper) >= -best.fun * (1 - 1e-9)
        assert _core.bags.bound_program(alpha, slope, upper) == pytest.approx(-best.fun, rel=1e-6)


@pytest.mark.parametrize(("d", "C"), [(12, 100.0), (5, 1e5), (3, 1e4)])
def test_programs_that_take_many_steps_reach_their_optimum(d: int, C: float) -> None:
    # Few dimensions and large bounds: coordinates alone go on for long, and steps of all free ones end it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0, 1, -1)
    K, upper = X @ X.T, np.full(300, C)
    alpha, slope = np.zeros(300), np.empty(300)
    bound = _core.bags.LabelledPrograms(K).ascend(y[None].astype(np.int8), np.ones(1), upper, alpha, slope, 1e-6, 20000)
    np.testing.assert_allclose(slope, 1 - y * (K @ (alpha * y)), atol=1e-9 * C)
    w = (alpha * y) @ X
    primal = w @ w / 2 + C * np.maximum(0, 1 - y * (X @ w)).sum()
    value = alpha.sum() - w @ w / 2
    assert value * (1 - 1e-9) <= bound <= primal * (1 + 1e-9)
    assert bound - value <= 1e-6 * value


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1), (3, 4), (40, 10), (25, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_mixtures_of_rows_are_the_optimum_of_their_linear_program(seed: int, shape, scale: float) -> None:
    rng = np.random.default_rng(seed)
    payoff = scale * (rng.normal(size=shape) if seed % 2 else rng.integers(-2, 3, shape).astype(float))  # many ties
    mix = np.empty(shape[0])
    _core.bags.mix_rows(payoff, mix)
    S, T = shape
    best = linprog(
        np.append(np.zeros(S), -1.0),
        A_ub=np.column_stack([-payoff.T / scale, np.ones(T)]),
        b_ub=np.zeros(T),
        A_eq=np.append(np.ones(S), 0.0)[None],
        b_eq=np.ones(1),
        bounds=[(0, None)] * S + [(None, None)],
    )
    assert (mix >= 0).all()
    assert mix.sum() == pytest.approx(1.0)
    assert (mix @ payoff).min() / scale == pytest.approx(-best.fun, abs=1e-8)


def test_mixtures_are_never_worse_than_one_row() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        payoff = rng.normal(size=(30, 4)) - np.exp(rng.uniform(-5, 30, (30, 4))) * (rng.random((30, 4)) < 0.3)
        mix = np.empty(30)
        _core.bags.mix_rows(payoff, mix)
        assert (mix @ payoff).min() >= payoff.min(axis=1).max() - 1e-9


def test_blocks_are_parts_of_the_matrix_of_a_program() -> None:
    X, Y, mu, _ = mixture(0)
    K, rows = Gaussian(0.3)(X), np.array([5, 0, 17, 39])
    programs, out = _core.bags.LabelledPrograms(K), np.empty((4, 4))
    programs.block(Y, mu, rows, out)
    np.testing.assert_allclose(out, (((Y.T * mu) @ Y) * K)[np.ix_(rows, rows)], rtol=1e-12)
    for change, message in (
        ({"rows": np.array([0, 1, 2, 40])}, "rows must be numbers of instances"),
        ({"rows": np.array([0, -1, 2, 3])}, "rows must be numbers of instances"),
        ({"out": np.empty((4, 3))}, "a row and a column"),
        ({"mu": np.ones(2)}, "mu must have a value"),
    ):
        with pytest.raises(ValueError, match=message):
            programs.block(**{"labelings": Y, "mu": mu, "rows": rows, "out": out} | change)


@pytest.mark.parametrize("seed", range(5))
def test_any_coefficients_bound_a_program_from_above(seed: int) -> None:
    X, Y, mu, upper = mixture(seed)
    Q = ((Y.T * mu) @ Y) * Gaussian(0.3)(X)
    best, slope = np.zeros(40), np.empty(40)
    _core.bags.LabelledPrograms(Gaussian(0.3)(X)).ascend(Y, mu, upper, best, slope, 1e-10, 20000)
    value = best.sum() - best @ Q @ best / 2
    rng = np.random.default_rng(seed)
    for scale in (0.01, 0.3, 1.0):
        alpha = scale * upper * rng.random(40)
        assert _core.bags.bound_program(alpha, 1 - Q @ alpha, upper) >= value * (1 - 1e-9)


def test_coefficients_that_are_best_but_for_their_scale_are_seen_to_be_so() -> None:
    X, Y, mu, _ = mixture(0)
    X, Y, upper = X[2:], np.ascontiguousarray(Y[:, 2:]), np.full(38, 1e4)
    Q, best = ((Y.T * mu) @ Y) * Gaussian(1.0)(X), np.zeros(38)
    _core.bags.LabelledPrograms(Gaussian(1.0)(X)).ascend(Y, mu, upper, best, np.empty(38), 1e-10, 20000)
    value = best.sum() - best @ Q @ best / 2
    for scale in (0.5, 0.8, 1.5):
        assert _core.bags.bound_program(scale * best, 1 - Q @ (scale * best), upper) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_newton_steps_and_levels_find_the_same_weights(seed: int, kernel, C: float, monkeypatch) -> None:
    X, Y, _, _ = mixture(seed, count=6)
    vectors = _Vectors(Space(features=X) if kernel is None else Space(gram=kernel(X)), "constant")
    values = []
    for levels_only in (False, True):
        if levels_only:
            monkeypatch.setattr(_Hull, "_by_newton", lambda self, evaluations: None)
        hull = _Hull(vectors, np.full(40, C), Y[0], 1e-5)
        for labeling in Y[1:]:
            enter(hull, labeling)
            assert hull.bound <= hull.value * (1 + 1e-12)
            assert hull.solved
        # A bound that holds: no α is better for all labellings than the one that is kept.
        squares = vectors.squares(hull.alpha * hull.labelings)
        assert hull.bound == pytest.approx(hull.alpha.sum() - squares.max() / 2, rel=1e-9)
        values.append(hull.value)
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_rounds_with_few_evaluations_are_bounds_all_the_same() -> None:
    X, Y, _, _ = mixture(0, count=8)
    vectors, upper = _Vectors(Space(gram=Gaussian(0.5)(X)), "constant"), np.full(40, 10.0)
    rough, exact = (_Hull(vectors, upper, Y[0], 1e-6) for _ in range(2))
    for labeling in Y[1:]:
        enter(rough, labeling, 2)
        enter(exact, labeling)
        assert rough.bound <= exact.value * (1 + 1e-6)
    assert (np.diff(rough.history) <= 0).all()
    rough.improve()
    assert rough.solved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labelings": np.zeros((2, 4), np.int8)}, "labelings must be -1 or 1"),
        ({"labelings": np.ones((2, 3), np.int8)}, "labelings must have a value for each instance"),
        ({"mu": np.ones(3)}, "mu must have a value for each labelling"),
        ({"mu": np.array([0.5, np.nan])}, "mu must be finite"),
        ({"upper": np.array([1.0, 1.0, 1.0, -1.0])}, "upper must be finite and not negative"),
        ({"alpha": np.full(4, 2.0)}, "alpha must lie between 0 and upper"),
        ({"slope": np.zeros(3)}, "a value for each instance"),
    ],
)
def test_programs_refuse_what_does_not_fit(change, message: str) -> None:
    given = {"labelings": np.ones((2, 4), np.int8), "mu": np.full(2, 0.5), "upper": np.ones(4)}
    given |= {"alpha": np.zeros(4), "slope": np.zeros(4), "tol": 1e-3, "max_sweeps": 10}
    with pytest.raises(ValueError, match=message):
        _core.bags.LabelledPrograms(np.eye(4)).ascend(**(given | change))
    with pytest.raises(ValueError, match="K must be"):
        _core.bags.LabelledPrograms(np.full((2, 2), np.nan))


# ---------------------------------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("intercept", ["center", "constant"])
@pytest.mark.parametrize("seed", range(10))
def test_toy_with_means_on_the_wrong_sides_is_solved(seed: int, intercept: str) -> None:
    X, y, bags = toy(seed)
    model = ConvexProportionSVM(intercept=intercept).fit(X, bags=bags, proportions=[0.6, 0.4])
    assert model.score(X, y) == 1.0
    assert (np.diff(model.objective_history_) <= 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_threshold_has_the_least_error_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 5)
    low = rng.random(5) * 0.5
    problem = problem_of(sizes, low, low=low, high=low + 0.2 * rng.random(5), weight=rng.random(5))
    if seed % 2:
        problem = replace(problem, row_weight=0.1 + rng.random(sizes.sum()))
    scores = rng.integers(-4, 5, sizes.sum()).astype(float)  # many are equal

    def error(b: float) -> float:
        share = problem.shares(scores + b > 0)
        away = np.maximum(np.maximum(problem.low - share, share - problem.high), 0)
        return float(problem.bag_weight @ away)

    least, b = share_threshold(scores, problem)
    assert error(b) == pytest.approx(least)
    assert least == pytest.approx(min(error(b) for b in np.arange(-6, 6.5, 0.5)))
    if error(0.0) <= least + 1e-9 and scores.all():  # rounding would decide where a score is 0
        assert b == 0.0


def test_rank_one_labels_are_the_nearest() -> None:
    rng = np.random.default_rng(0)
    Y, mu = rng.choice([-1, 1], (3, 6)).astype(np.int8), np.array([0.5, 0.3, 0.2])
    M = (Y.T * mu) @ Y
    y = _rank_one(Y, mu)
    values = np.linalg.eigvalsh(M)
    assert np.square(M - np.outer(y, y)).sum() == pytest.approx(np.square(values[:-1]).sum())


def test_orientation_that_proportions_do_not_tell_is_reported() -> None:
    with pytest.warns(IllPosedWarning, match="both orientations"):
        _oriented(np.array([-2.0, -1.0, 1.0, 2.0]), problem_of([4], [0.5]))
    sign, _ = _oriented(np.array([-3.0, -2.0, -1.0, 2.0]), problem_of([4], [0.75]))
    assert sign == -1.0


def test_labels_inside_bags_tell_the_orientation() -> None:
    scores = np.array([-2.0, -1.0, 1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", IllPosedWarning)
        assert _oriented(scores, problem_of([4], [0.5], known=[0, -1, 0, 0])) == (1.0, 0.0)
        assert _oriented(scores, problem_of([4], [0.5], known=[0, 1, 0, 0])) == (-1.0, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_labels_inside_bags_of_equal_shares_are_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + 2 * y[:, None]
    labels = np.where(np.arange(60) < 20, y, np.nan)
    for truth, given in ((y, labels), (1 - y, 1 - labels)):
        model = ConvexProportionSVM().fit(X, given, bags=Bags(np.arange(60) // 6, np.full(10, 0.5)))
        assert model.score(X, truth) > 0.85


# ---------------------------------------------------------------------------------------------------- data


def test_accuracy_on_generated_bags() -> None:
    for seed in range(3):
        X, y = two_classes(seed, 120)
        model = ConvexProportionSVM().fit(X, bags=make_bags(y, 8, random_state=seed))
        assert model.score(*two_classes(seed + 50, 500)) > 0.93


@pytest.mark.parametrize("size", [8, 32])
def test_equal_proportions_do_no_harm(size: int) -> None:
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(size) < size * 3 // 8, 256 // size).astype(int)
    X = rng.normal(size=(256, 3))
    X[:, 0] += 5.0 * y
    model = ConvexProportionSVM().fit(X, bags=np.arange(256) // size, proportions=np.full(256 // size, 0.375))
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("size", [8, 32])
def test_votes_with_all_bags_at_the_prior(size: int) -> None:
    X, y = votes()
    rng = np.random.default_rng(0)
    positive, negative = rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(y == 0))
    each = round(0.386 * size)
    k = min(len(positive) // each, len(negative) // (size - each))
    other = size - each
    parts = [(positive[i * each : (i + 1) * each], negative[i * other : (i + 1) * other]) for i in range(k)]
    rows = np.concatenate([np.concatenate(part) for part in parts])
    bags = np.repeat(np.arange(k), size)
    model = ConvexProportionSVM().fit(X[rows], bags=bags, proportions=np.full(k, each / size))
    assert model.score(X, y) > 0.8


def overlapping(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, those of new data, and the bag of each; columns of real numbers, or of few values with equal rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 12)) + 0.5 * y[:, None]
    if kind == "few values":
        X = np.eye(3)[np.digitize(X[:, :5], [-0.5, 0.8])].reshape(300, -1)
    return X[:200], X[200:], make_bags(y[:200], 20, random_state=seed)


@pytest.mark.parametrize("kind", ["real", "few values"])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.1)], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_rows_nor_rounding_changes_predictions(seed: int, kernel, kind: str) -> None:
    X, new, bags = overlapping(seed, kind)
    number = np.empty(200, np.int64)
    number[bags.members] = bags.number
    rng = np.random.default_rng(seed)
    order = rng.permutation(200)
    noisy = X * (1 + 1e-12 * rng.normal(size=X.shape))

    def predicted(rows: np.ndarray, numbers: np.ndarray, **options) -> np.ndarray:
        fitted = ConvexProportionSVM(kernel=kernel, **options).fit(rows, bags=numbers, proportions=bags.proportions)
        return fitted.decision_function(new)

    expected = predicted(X, number)
    for found in (predicted(X[order], number[order]), predicted(noisy, number), predicted(X, number, n_jobs=2)):
        apart = np.abs(expected) > 1e-6 * np.abs(expected).max()  # not on the boundary
        np.testing.assert_array_equal((found > 0)[apart], (expected > 0)[apart])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


def test_labellings_are_in_the_order_of_the_rows() -> None:
    X, y = two_classes(3)
    bags = make_bags(y, 12, random_state=0)
    fitted = ConvexProportionSVM().fit(X, bags=bags)
    assert (bags.mean((fitted.active_labelings_[0] > 0)[:, None].astype(float))[:, 0] == bags.proportions).all()
    found = _rank_one(fitted.active_labelings_, fitted.mu_) > 0
    assert max((found == y[bags.members]).mean(), (found != y[bags.members]).mean()) > 0.95


def test_kernel_matrix_and_features_give_the_same_function() -> None:
    X, y = two_classes(1, 60)
    bags = make_bags(y, 6, random_state=0)
    for intercept in ("center", "constant"):
        models = [
            ConvexProportionSVM(kernel=kernel, intercept=intercept, variance=1.0, tol=0.3).fit(Z, bags=bags)
            for kernel, Z in [(None, X), (None, sp.csr_matrix(X)), (Linear(), X), ("precomputed", X @ X.T)]
        ]
        dense, sparse, linear, matrix = models
        np.testing.assert_allclose(dense.coef_, sparse.coef_)
        np.testing.assert_allclose(linear.decision_function(X), matrix.decision_function(X @ X.T), atol=1e-8)
        assert np.mean(dense.predict(X) == linear.predict(X)) > 0.95


@pytest.mark.parametrize("intercept", ["center", "constant"])
def test_more_columns_than_rows(intercept: str) -> None:
    X, y = two_classes(2, 40, d=60, apart=12.0)
    bags = make_bags(y, 4, random_state=0)
    dense = ConvexProportionSVM(intercept=intercept).fit(X, bags=bags)
    sparse = ConvexProportionSVM(intercept=intercept).fit(sp.csr_matrix(X), bags=bags)
    assert dense.score(X, y) > 0.9
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-8)


def test_large_means_of_many_columns_cost_no_digits() -> None:
    X, y = two_classes(4, 80, d=120, apart=12.0)
    X = np.round(256 * X) / 256  # exact with the offset, too
    bags = make_bags(y, 4, random_state=0)
    near, far = ConvexProportionSVM().fit(X, bags=bags), ConvexProportionSVM().fit(X + 2.0**27, bags=bags)
    np.testing.assert_allclose(far.objective_history_, near.objective_history_, rtol=1e-6)
    np.testing.assert_allclose(far.decision_function(X + 2.0**27), near.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(("scale", "C"), [(1.0, 1.0), (1e-8, 1.0), (1.0, 1e-14)])
def test_outputs_of_any_size_are_compared(scale: float, C: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = scale * (rng.normal(size=(150, 3)) + 6 * np.eye(3)[y])
    model = ConvexProportionSVM(C=C, intercept="center").fit(X, bags=make_bags(y, 5, random_state=0))
    assert model.score(X, y) > 0.9


def test_a_class_that_is_nowhere_does_not_blur_the_others() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 2)) + 6 * np.eye(2)[y]
    made = make_bags(y, 4, random_state=0)
    shares = np.column_stack([1 - made.proportions, made.proportions, np.zeros(20)])
    assert ConvexProportionSVM().fit(X, bags=Bags(made, shares)).score(X, y) > 0.9


def test_maps_and_kernels_learn_what_lines_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X = X / np.linalg.norm(X, axis=1, keepdims=True) * np.where(np.arange(200) < 80, 0.3, 2.0)[:, None]
    y = (np.arange(200) < 80).astype(int)
    bags = make_bags(y, 4, random_state=0)
    assert ConvexProportionSVM(kernel=Gaussian(1.0)).fit(X, bags=bags).score(X, y) > 0.95
    mapped = ConvexProportionSVM(map=FourierFeatures(n_components=100, random_state=0)).fit(X, bags=bags)
    assert mapped.score(X, y) > 0.9


def test_three_classes_and_strings() -> None:
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 150)]
    X = rng.normal(size=(150, 2)) + 6 * np.array([[0, 0], [1, 0], [0, 1]])[np.unique(y, return_inverse=True)[1]]
    model = ConvexProportionSVM().fit(X, bags=make_bags(y, 5, random_state=0))
    assert model.score(X, y) > 0.9
    assert len(model.mu_) == len(model.gap_) == 3


def test_intervals_known_labels_and_bag_weights() -> None:
    X, y = two_classes(3, 100)
    bags = make_bags(y, 10, random_state=0)
    shares = bags.proportions
    loose = Bags(bags, (np.maximum(shares - 0.1, 0), np.minimum(shares + 0.1, 1)))
    labels = np.full(100, np.nan)
    labels[:20] = y[:20]
    model = ConvexProportionSVM().fit(X, labels, bags=loose, bag_weight=np.r_[np.zeros(2), np.ones(8)])
    assert model.score(X, y) > 0.9
    rows = loose.members
    known = ~np.isnan(labels[rows])
    assert (model.active_labelings_[:, known] == 2 * labels[rows][known] - 1).all()
    found = np.add.reduceat(model.active_labelings_ > 0, loose.offsets[:-1], axis=1) / loose.sizes
    assert (found >= loose.lower[:, 1] - 1e-9).all()
    assert (found <= loose.upper[:, 1] + 1e-9).all()


def test_shares_that_no_count_meets_are_adjusted_and_reported() -> None:
    X, y = two_classes(4, 60)
    bags = make_bags(y, 6, random_state=0)
    shares = bags.proportions.copy()
    shares[[1, 4]] = np.clip(shares[[1, 4]], 0.1, 0.9) + 0.02
    with pytest.warns(UserWarning, match="2 of 10 bags have proportions that no count"):
        model = ConvexProportionSVM().fit(X, bags=bags, proportions=shares)
    assert model.adjusted_bags_.tolist() == [1, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert ConvexProportionSVM(0.1, 0.1).fit(X, bags=bags, proportions=shares).adjusted_bags_.size == 0


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
def test_bags_of_one_row_are_labels(kernel) -> None:
    X, y = two_classes(5, 60)
    model = ConvexProportionSVM(kernel=kernel).fit(X, bags=np.arange(60), proportions=y.astype(float))
    plain = ConvexProportionSVM(kernel=kernel).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))
    assert model.mu_.tolist() == [1.0]
    assert model.score(X, y) > 0.9


def test_one_bag_and_one_class() -> None:
    X, y = two_classes(6, 50, apart=8.0)
    one = ConvexProportionSVM().fit(X, bags=np.zeros(50, int), proportions=[y.mean()])
    assert one.predict(X).mean() == pytest.approx(y.mean())
    for label in (0, 1):
        with pytest.warns(IllPosedWarning, match="the classifier is constant"):
            model = ConvexProportionSVM().fit(X, bags=np.arange(50) // 10, proportions=np.full(5, float(label)))
        assert (model.predict(X) == label).all()


@pytest.mark.parametrize("intercept", ["center", "constant"])
@pytest.mark.parametrize("kind", ["constant", "distances", "negative", "tiny", "huge"])
def test_kernel_matrices_of_any_kind_are_taken(kind: str, intercept: str) -> None:
    X, y = two_classes(0, 60)
    between = np.square(X[:, None] - X).sum(axis=2)
    K = {
        "constant": np.full((60, 60), 0.7),  # centred: nothing but rounding
        "distances": np.sqrt(between),
        "negative": -10 * X @ X.T,
        "tiny": 1e-300 * np.exp(-between),
        "huge": 1e300 * np.exp(-between),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IllPosedWarning)
        model = ConvexProportionSVM(kernel="precomputed", intercept=intercept)
        model.fit(K, bags=make_bags(y, 6, random_state=0))
    assert np.isfinite(model.decision_function(K)).all()


@pytest.mark.parametrize("C", [1.0, 1e4, 1e5])
def test_no_labelling_enters_twice(C: float) -> None:
    X, y = two_classes(0, 200, apart=1.0)
    for size in (1, 4):
        model = ConvexProportionSVM(C=C, kernel=Linear()).fit(X, bags=make_bags(y, size, random_state=0))
        assert len(np.unique(model.active_labelings_, axis=0)) == len(model.active_labelings_)
        assert model.gap_ <= 2 * _GAP * model.objective_history_[-1]
        assert size > 1 or len(model.mu_) == 1


def test_axes_that_are_rounding_alone_are_none() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert len(_Vectors(Space(gram=X @ X.T), "center").directions(1.0)) == 3


def test_equal_rows_do_not_crash() -> None:
    model = ConvexProportionSVM().fit(np.ones((8, 2)), bags=np.arange(8) // 4, proportions=[0.25, 0.25])
    assert model.predict(np.ones((1, 2))).shape == (1,)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("classes", [2, 3])
def test_models_come_back_from_files(tmp_path, kernel, classes: int) -> None:
    X, y = two_classes(7, 60)
    y = y if classes == 2 else np.arange(60) % 3
    model = ConvexProportionSVM(kernel=kernel).fit(X, bags=make_bags(y, 5, random_state=0))
    mercer.save(model, tmp_path / "model")
    back = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    for name in ("mu_", "active_labelings_", "objective_history_", "gap_", "converged_", "adjusted_bags_"):
        pairs = zip(listed(getattr(back, name), classes), listed(getattr(model, name), classes), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def listed(value, classes: int) -> list:
    """One value for each problem of two classes."""
    return [value] if classes == 2 else value


def test_threads_do_not_change_the_result() -> None:
    X, y = two_classes(8, 100)
    bags = make_bags(y, 10, random_state=0)
    one, two = (ConvexProportionSVM(n_jobs=jobs).fit(X, bags=bags) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_rounds_are_shown_and_their_limit_is_kept(capsys) -> None:
    X, y = two_classes(9, 60, apart=1.0)
    model = ConvexProportionSVM(max_iter=2, verbose=True).fit(X, bags=make_bags(y, 10, random_state=0))
    assert len(model.objective_history_) == 2
    assert not model.converged_
    assert capsys.readouterr().err.count("objective") == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"epsilon": -0.1}, "epsilon must be"),
        ({"epsilon": 1.5}, "epsilon must be"),
        ({"epsilon": "a"}, "epsilon must be"),
        ({"intercept": "none"}, "intercept must be one of"),
        ({"variance": 0.0}, "variance must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConvexProportionSVM(**parameters).fit(np.eye(4), bags=[0, 0, 1, 1], proportions=[0.5, 1.0])


def test_rows_of_different_weight_are_refused() -> None:
    bags = Bags([0, 0, 1, 1], [0.5, 1.0], row_weight=[1.0, 2.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="equal row_weight"):
        ConvexProportionSVM().fit(np.eye(4), bags=bags)


@contract([ConvexProportionSVM(), ConvexProportionSVM(kernel="precomputed")])
def test_scikit_learn_contract(checks) -> None:
    checks()


def test_bags_that_do_not_ascend_are_refused_before_they_are_read():
    counts, known = np.zeros(2, np.int64), np.zeros(5, np.int8)
    offsets = np.array([0, 10**10, 5])
    with pytest.raises(ValueError, match="offsets"):
        _core.bags.label_bags(
            np.zeros((1, 5)), np.ones(5), offsets, counts, counts, known, np.zeros((1, 5), np.int8), 1
        )
