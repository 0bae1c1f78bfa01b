"""Maximum entropy discrimination: the definition, solved by brute force over all outputs, for both priors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

import mercer
from mercer.learning.solvers.maximum_entropy import LaplaceDiscrimination
from mercer.structured import MaximumEntropyDiscrimination
from mercer.tagging import Tagger

X = [[["a"], ["b"], ["b", "c"]], [["b"], ["a", "c"]], [["c"], ["b"]]]
Y = [["x", "y", "x"], ["y", "x"], ["x", "y"]]


def differences(model):
    """ΔΦ and Δ of all outputs of each example, written out."""
    structure = model.structure_
    out = []
    for x, y in zip(X, Y, strict=True):
        others = [list(z) for z in itertools.product("xy", repeat=len(y))]
        inputs, outputs = model._read([x] * len(others), others)
        _, truth = model._read([x] * len(others), [y] * len(others))
        cost = [sum(a != b for a, b in zip(z, y, strict=True)) for z in others]
        out.append((structure.difference(inputs, truth, outputs).toarray(), np.array(cost, float)))
    return out


def objective(mean, rows, C, divergence):
    return divergence(mean) + C * sum((cost - phi @ mean).max() for phi, cost in rows)


def solved(rows, C, divergence, n):
    """The same by a general solver: slacks are variables, every output is a constraint."""
    k = len(rows)
    constraints = [
        {"type": "ineq", "fun": lambda v, i=i, phi=phi, cost=cost: phi @ v[:n] - cost + v[n + i]}
        for i, (phi, cost) in enumerate(rows)
    ]
    found = minimize(
        lambda v: divergence(v[:n]) + C * v[n:].sum(), np.concatenate([np.zeros(n), np.full(k, 5.0)]),
        constraints=constraints, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    return found.x[:n]


@pytest.mark.parametrize(
    ("prior", "scale", "C"),
    [("gaussian", 1.0, 1.0), ("gaussian", 0.5, 2.0), ("laplace", 1.0, 0.7), ("laplace", 2.0, 0.3)],
)
def test_the_posterior_mean_solves_the_definition(prior, scale, C):
    model = MaximumEntropyDiscrimination(Tagger("hinge", tol=1e-7), prior, scale=scale, C=C, random_state=0).fit(X, Y)
    rows = differences(model.model_)
    mean = model.posterior_mean_
    if prior == "gaussian":

        def divergence(w):
            return 0.5 * float(w @ w) / scale**2
    else:
        divergence = LaplaceDiscrimination(scale).divergence
    wanted = solved(rows, C, divergence, len(mean))
    value, best = objective(mean, rows, C, divergence), objective(wanted, rows, C, divergence)
    assert value == pytest.approx(best, rel=1e-4)
    np.testing.assert_allclose(mean, wanted, atol=2e-2)
    assert model.divergence_ == pytest.approx(divergence(mean))


def test_a_gaussian_prior_gives_the_max_margin_markov_network():
    med = MaximumEntropyDiscrimination(Tagger("hinge", solver="bcfw", tol=1e-6), C=0.5, scale=2.0, random_state=0).fit(
        X, Y
    )
    margin = Tagger("hinge", solver="bcfw", C=2.0, tol=1e-6, random_state=0).fit(X, Y)
    np.testing.assert_allclose(med.posterior_mean_, margin.coef_, atol=1e-12)
    assert med.predict(X) == margin.predict(X)
    assert med.score(X, Y) == margin.score(X, Y)
    assert (med.posterior_variance_ == 4.0).all()


@pytest.mark.parametrize("mean", [0.0, 0.3, -2.0, 40.0])
def test_the_divergence_of_a_laplace_posterior_is_the_integral(mean):
    solver = LaplaceDiscrimination(0.8)
    s, (eta,) = solver.rate, solver.natural(np.array([mean]))

    def log_q(w):
        return np.log((s * s - eta * eta) / (2 * s)) + eta * w - s * abs(w)

    def log_p(w):
        return np.log(s / 2) - s * abs(w)

    limit = 60 / (s - abs(eta))
    parts = [(-min(limit, 60), 0.0), (0.0, limit)] if eta >= 0 else [(-limit, 0.0), (0.0, min(limit, 60))]
    integrate = lambda f: sum(quad(f, *p, limit=400)[0] for p in parts)  # noqa: E731
    assert integrate(lambda w: np.exp(log_q(w))) == pytest.approx(1.0, abs=1e-6)
    assert integrate(lambda w: w * np.exp(log_q(w))) == pytest.approx(mean, abs=1e-5)
    kl = integrate(lambda w: np.exp(log_q(w)) * (log_q(w) - log_p(w)))
    assert solver.divergence(np.array([mean])) == pytest.approx(kl, abs=1e-5)


@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
def test_samples_have_the_moments_of_the_posterior(prior):
    model = MaximumEntropyDiscrimination(Tagger("hinge"), prior, C=2.0, random_state=0).fit(X, Y)
    draws = model.sample(40_000, random_state=1)
    error = np.sqrt(model.posterior_variance_ / len(draws))
    assert (np.abs(draws.mean(axis=0) - model.posterior_mean_) < 5 * error).all()
    np.testing.assert_allclose(draws.var(axis=0), model.posterior_variance_, rtol=0.05)
    np.testing.assert_array_equal(model.sample(2), model.sample(2))


def test_a_laplace_prior_shrinks_small_weights_more():
    """Many useless features: their weights, relative to the useful ones, are smaller than with a Gaussian prior."""
    rng = np.random.default_rng(0)
    y = [rng.choice(["x", "y"], size=5).tolist() for _ in range(8)]
    noise = [f"n{k}" for k in range(20)]
    X = [[[tag.upper(), *rng.choice(noise, 4)] for tag in tags] for tags in y]
    shares = {}
    for prior in ("gaussian", "laplace"):
        model = MaximumEntropyDiscrimination(Tagger("hinge", tol=1e-2), prior, C=1.0, random_state=0).fit(X, y)
        tagger = model.model_
        w = np.abs(tagger.coef_[: len(tagger.index_) * 2].reshape(-1, 2)).sum(axis=1)
        useful = np.array([name in ("X", "Y") for name in tagger.index_.names()])
        shares[prior] = w[~useful].sum() / w[useful].sum()
    assert shares["laplace"] < shares["gaussian"]


def test_a_model_comes_back_from_its_file(tmp_path):
    model = MaximumEntropyDiscrimination(Tagger("hinge"), "laplace", random_state=0).fit(X, Y)
    mercer.save(model, tmp_path / "med.mercer")
    again = mercer.load(tmp_path / "med.mercer")
    np.testing.assert_array_equal(again.posterior_variance_, model.posterior_variance_)
    assert again.predict(X) == model.predict(X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "tagger"}, TypeError, "structured estimator"),
        ({"model": Tagger("log")}, ValueError, "margin loss"),
        ({"model": Tagger("hinge", penalty="l1")}, ValueError, "penalty='l2'"),
        ({"model": Tagger("hinge"), "prior": "cauchy"}, ValueError, "prior must be one of"),
        ({"model": Tagger("hinge"), "scale": 0.0}, ValueError, "scale"),
        ({"model": Tagger("hinge"), "C": -1.0}, ValueError, "C must be"),
        ({"model": Tagger("relative-margin"), "prior": "laplace"}, ValueError, "no bound on margins"),
    ],
)
def test_wrong_settings_are_named(options, error, message):
    with pytest.raises(error, match=message):
        MaximumEntropyDiscrimination(**options).fit(X, Y)
