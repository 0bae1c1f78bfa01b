"""HashedRegressor: every loss finds what it should, in any unit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.metrics import r2_score

import mercer
from mercer.online import FileFormat, HashedRegressor
from reference.contract import contract

LOSSES = ("squared", "quantile", "huber", "poisson")
SOLVERS = ("adagrad", "ftrl", "sgd")
ONLINE = "the order of examples matters to an online learner, and weights are steps of another length"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ONLINE,
    "check_sample_weight_equivalence_on_sparse_data": ONLINE,
}


@contract(
    [HashedRegressor(), HashedRegressor(solver="ftrl"), HashedRegressor("huber", solver="sgd")],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_every_check_of_scikit_learn_passes(checks):
    checks()


def problem(n=3000, noise=0.5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    return X, 2 + X @ [1.0, -2.0, 0.5, 0.0, 1.5] + noise * random.normal(size=n)


@pytest.mark.parametrize("optimizer", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_and_optimizer_learns(loss, optimizer):
    X, y = problem()
    if loss == "poisson":
        y = np.random.default_rng(1).poisson(np.exp(0.3 * y)).astype(float)
    rate = 0.02 if (loss, optimizer) == ("poisson", "sgd") else None  # exp(s) has no bounded curvature
    l2 = 1e-4 if optimizer == "sgd" else None
    model = HashedRegressor(loss, 8, optimizer, max_iter=3, alpha=l2, learning_rate=rate).fit(X, y)
    history = model.history_
    # half of the way from the first predictions to what noise allows, at the least
    assert history["loss_since_last"][-1] < history["loss_since_last"][2]
    if loss != "poisson":
        assert model.score(X, y) > 0.8


def test_squared_loss_comes_to_least_squares():
    X, y = problem()
    exact = LinearRegression().fit(X, y)
    model = HashedRegressor(n_bits=8, max_iter=20, learning_rate=0.3).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.05)
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=0.05)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_share_of_targets_below_a_quantile_is_the_quantile(quantile):
    X, y = problem(6000, noise=1.0)
    model = HashedRegressor("quantile", 8, max_iter=10, quantile=quantile, learning_rate=0.3).fit(X, y)
    assert (y < model.predict(X)).mean() == pytest.approx(quantile, abs=0.04)


def test_huber_is_not_moved_by_outliers():
    X, y = problem()
    y[::20] += 200
    robust, plain = (
        HashedRegressor(loss, 8, max_iter=10, learning_rate=0.1).fit(X, y) for loss in ("huber", "squared")
    )
    assert abs(robust.intercept_ - 2) < 0.3
    assert abs(plain.intercept_ - 2) > 3


def test_poisson_comes_to_the_maximum_likelihood():
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 3))
    y = random.poisson(np.exp(0.5 + X @ [0.4, -0.3, 0.0])).astype(float)
    exact = PoissonRegressor(alpha=0).fit(X, y)
    model = HashedRegressor("poisson", 8, max_iter=20).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.05)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.05)
    assert (model.predict(X) > 0).all()
    with pytest.raises(ValueError, match="at least 0"):
        model.fit(X, y - 10)


@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_the_units_of_features_and_targets_do_not_matter(loss):
    X, y = problem()
    X, y = X.astype(np.float32), y.astype(np.float32)
    plain = HashedRegressor(loss, 8).fit(X, y).predict(X)
    scaled = (
        HashedRegressor(loss, 8)
        .fit(X * 2.0 ** np.array([10, -3, 0, 5, -8]), y * 1024)
        .predict(X * 2.0 ** np.array([10, -3, 0, 5, -8]))
    )
    np.testing.assert_allclose(scaled, 1024 * plain, rtol=1e-3, atol=1)
    shifted = HashedRegressor(loss, 8).fit(X, y + 4096).predict(X)
    np.testing.assert_allclose(shifted, plain + 4096, atol=0.05)


def test_partial_fit_in_chunks_equals_fit():
    X, y = problem(500)
    whole = HashedRegressor(n_bits=8, shuffle=False, max_iter=1).fit(X, y)
    parts = HashedRegressor(n_bits=8)
    for begin in range(0, 500, 130):
        parts.partial_fit(X[begin : begin + 130], y[begin : begin + 130])
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


def test_documents_have_values():
    texts = ["good film", "bad film", "good good film", "bad bad bad film"] * 50
    stars = np.array([4.0, 2.0, 5.0, 1.0] * 50)
    model = HashedRegressor(n_bits=12, max_iter=10).fit(texts, stars)
    assert model.score(texts, stars) > 0.9


@pytest.mark.parametrize("optimizer", SOLVERS)
def test_a_saved_model_goes_on_learning_bit_for_bit(tmp_path, optimizer):
    X, y = problem(500)
    model = HashedRegressor("huber", 10, optimizer, epsilon=0.3).fit(X, y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "log"}, "loss must be one of"),
        ({"quantile": 1.0}, "quantile must lie"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"n_bits": 40}, "n_bits must be at most 32"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    X, y = problem(20)
    with pytest.raises(ValueError, match=message):
        HashedRegressor(**{"n_bits": 8} | change).fit(X, y)


def test_targets_must_be_finite():
    X, y = problem(20)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError):
            HashedRegressor(n_bits=8).fit(X, np.where(np.arange(20) == 3, wrong, y))
        with pytest.raises(ValueError):
            HashedRegressor(n_bits=8).fit(["a text"] * 20, np.where(np.arange(20) == 3, wrong, y))


def test_the_score_of_a_file_is_r2(tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(0, 10, 80)
    y = 3 * x + random.normal(size=80)
    path = tmp_path / "p.csv"
    path.write_text("x,y\n" + "".join(f"{a:.6f},{b:.6f}\n" for a, b in zip(x, y, strict=True)))
    model = HashedRegressor(max_iter=20).fit_file(path, FileFormat(label="y"))
    predicted = np.array(list(model.predict_file(path)), float)
    assert model.score_file(path) == pytest.approx(r2_score(y, predicted), rel=1e-4)
