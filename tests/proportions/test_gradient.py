"""Shares met by gradient: the objective is what it says, learners find classes that nobody labelled."""

from __future__ import annotations

import builtins
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

import mercer
import mercer.proportions
from mercer.exceptions import ConvergenceWarning
from mercer.kernels import Gaussian
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, IllPosedWarning, ProportionClassifier, bag_proportions, make_bags
from mercer.proportions._scorers import Linear, Network
from mercer.proportions.gradient import (
    LOSSES,
    Objective,
    Shares,
    Task,
    nearest_by_divergence,
    probabilities,
    share_loss,
)
from reference.contract import contract
from reference.forked import popen
from reference.proportion_risk import bag_risk, best_stump

try:
    import torch

    torch.set_num_threads(1)  # the batches are small
except ModuleNotFoundError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="needs PyTorch (pip install mercer[torch])")


def blobs(n=600, k=3, d=3, size=6, seed=0, apart=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    X = np.eye(k, d)[y] * apart + rng.normal(size=(n, d))
    return X, y, make_bags(y, size, random_state=seed)


def random_shares(k, seed, bounds=False):
    """Bags of 1 to 5 with weights, some labels inside, three labelled rows outside."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=7)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1] + 3
    low = high = rng.dirichlet(np.ones(k), size=7)
    low[0] = high[0] = np.eye(k)[0]
    if bounds:
        low, high = np.maximum(low - 0.1, 0), np.minimum(high + 0.15, 1)
    codes = np.where(rng.random(n) < 0.2, rng.integers(k, size=n), -1)
    codes[-3:] = rng.integers(k, size=3)
    return Shares(k, offsets, low, high, rng.uniform(0.2, 2, 7), rng.uniform(0.2, 2, n), codes)


# ---------------------------------------------------------------------------------------------------- the objective


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_is_the_sum_over_bags_and_labels(loss, k, bounds):
    shares = random_shares(k, seed=k, bounds=bounds)
    F = 2 * np.random.default_rng(1).normal(size=(len(shares.codes), shares.n_outputs))
    P = probabilities(F)
    inside = shares.offsets[-1]
    number = np.repeat(np.arange(7), np.diff(shares.offsets))
    bags = Bags(number, row_weight=shares.row_weight[:inside])
    expected = bag_risk(P, bags, shares.low, shares.high, loss, shares.bag_weight)
    for i in np.flatnonzero(shares.codes >= 0):
        expected -= shares.row_weight[i] * np.log(P[i, shares.codes[i]])
    expected /= shares.bag_weight.sum() + shares.row_weight[shares.codes >= 0].sum()
    close = 2e-3 if loss == "absolute" else 1e-6  # its corner is rounded off within 10⁻³
    assert Objective(shares, loss)(F)[0] == pytest.approx(expected, abs=close)


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("scorer", [Linear(), Network(4)], ids=["linear", "mlp"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_equals_finite_differences(loss, k, scorer, bounds):
    shares = random_shares(k, seed=3 + k, bounds=bounds)
    rng = np.random.RandomState(0)
    dense = rng.normal(size=(len(shares.codes), 3)) * (rng.random_sample((len(shares.codes), 3)) < 0.7)
    for X in (dense, sp.csr_matrix(dense)):
        task = Task(scorer, X, Objective(shares, loss), alpha=0.1)
        w, decay = scorer.start(3, shares.n_outputs, 1.0, rng), task.decay()
        w = w + 0.1 * rng.normal(size=len(w))
        found = approx_fprime(w, lambda w, f=task, decay=decay: f.value_and_gradient(w, decay)[0], 1e-6)
        np.testing.assert_allclose(task.value_and_gradient(w, decay)[1], found, atol=2e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_shares_within_their_bounds_cost_nothing(loss):
    q = np.array([[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]])
    low, high = np.array([[0.1, 0.2, 0.4]] * 2), np.array([[0.3, 0.4, 0.6]] * 2)
    values, slopes = share_loss(loss, q, low, high)
    np.testing.assert_allclose(values, 0, atol=1e-9)
    np.testing.assert_allclose(slopes - slopes[:, :1], 0, atol=1e-6)  # equal slopes: none along the simplex
    assert (share_loss(loss, q[:, ::-1], low, high)[0] > 1e-3).all()


def test_nearest_shares_keep_bounds_and_sum_to_one():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(4), size=200)
    q[0] = [1e-12, 1e-12, 0.5, 0.5]
    middle = rng.dirichlet(np.ones(4), size=200)
    low, high = middle * rng.random((200, 4)), middle + (1 - middle) * rng.random((200, 4))
    t = nearest_by_divergence(q, low, high)
    np.testing.assert_allclose(t.sum(axis=1), 1)
    assert (t >= low - 1e-9).all()
    assert (t <= high + 1e-9).all()


def test_two_classes_by_one_score_equal_two_scores():
    shares = random_shares(2, seed=9)
    f = np.random.default_rng(0).normal(size=len(shares.codes))
    value, slope = Objective(shares, "log")(f[:, None])
    both, slopes = Objective(shares, "log")(np.column_stack([0 * f, f]))
    assert value == pytest.approx(both)
    np.testing.assert_allclose(slope[:, 0], slopes[:, 1])


# ---------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("scorer", [None, "mlp"])
@pytest.mark.parametrize("loss", LOSSES)
def test_classes_are_found_from_shares_alone(loss, scorer):
    X, y, bags = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ProportionClassifier(loss, scorer, random_state=0).fit(X, bags=bags)
    supervised = LogisticRegression().fit(X, y).score(X, y)
    assert model.score(X, y) > supervised - 0.02
    assert len(model.history_) == 3
    assert model.objective_ == min(min(history) for history in model.history_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_threshold_is_found_as_by_trying_all_stumps():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=2000)
    y = (x > 0.2).astype(int)
    bags = np.arange(2000) // 10
    share = bag_proportions(y, bags)
    risk, t, direction = best_stump(x, bags, share)
    assert np.mean((direction * (x - t) > 0) != y) < 0.05
    assert risk == pytest.approx(0)
    for loss in LOSSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = ProportionClassifier(loss, alpha=1e-6, random_state=0).fit(x[:, None], bags=bags, proportions=share)
        assert np.mean(model.predict(x[:, None]) != y) < 0.05
        hard = np.abs(model.predict_proportions(x[:, None], bags) - share).sum()
        assert hard >= risk  # brute force is the least


def test_labels_alone_are_logistic_regression():
    X, y, _ = blobs(200, 3, 3, apart=1.0)
    model = ProportionClassifier(alpha=0.01, tol=1e-10, n_init=1, max_iter=1000).fit(X, y)
    other = LogisticRegression(C=1 / (0.01 * 200), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-5)


def test_bags_of_one_are_labels():
    X, y, _ = blobs(150, 2, 2, apart=1.0)
    options = {"alpha": 0.01, "tol": 1e-10, "random_state": 0}
    single = ProportionClassifier(**options).fit(X, bags=np.arange(150), proportions=y.astype(float))
    labelled = ProportionClassifier(**options).fit(X, y)
    np.testing.assert_allclose(single.coef_, labelled.coef_, atol=1e-6)


def test_some_labels_settle_what_shares_leave_open():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 200)
    X = np.column_stack([y * 3.0 + rng.normal(size=400), rng.normal(size=400)])
    bags = Bags(np.arange(400) // 4, np.full(100, 0.5))
    with pytest.warns(IllPosedWarning, match="same shares suit all bags"):
        ProportionClassifier(random_state=0).fit(X, bags=bags)
    some = [label if i < 8 else None for i, label in enumerate(y.tolist())]
    assert ProportionClassifier(random_state=0).fit(X, some, bags=bags).score(X, y) > 0.9


def test_weights_of_bags_are_repetitions():
    X, _, bags = blobs(60, 3, 3, size=4)
    weight = np.where(np.arange(len(bags)) % 2, 2.0, 1.0)
    options = {"alpha": 0.01, "tol": 1e-10, "random_state": 0, "n_init": 1, "max_iter": 2000}
    weighted = ProportionClassifier(**options).fit(X, bags=bags, bag_weight=weight)
    twice = [k for k in range(len(bags)) for _ in range(int(weight[k]))]
    pairs = [(i, new) for new, k in enumerate(twice) for i in bags.members[bags.offsets[k] : bags.offsets[k + 1]]]
    repeated = ProportionClassifier(**options).fit(X, bags=Bags(np.array(pairs), bags.shares[twice], n_rows=len(X)))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_bounds_are_kept_where_they_can_be():
    X, _, bags = blobs(300, 3, 3, size=10)
    shares = bags.shares
    low, high = np.maximum(shares - 0.1, 0), np.minimum(shares + 0.1, 1)
    model = ProportionClassifier(alpha=1e-6, random_state=0).fit(X, bags=Bags(bags, (low, high)))
    found = model.predict_proportions(X, bags, soft=True)
    assert (found > low - 0.01).all()
    assert (found < high + 0.01).all()


def test_kernel_matrix_and_linear_features_agree():
    X, _, bags = blobs(80, 3, 3, size=4)
    options = {"alpha": 0.01, "tol": 1e-10, "max_iter": 2000, "n_init": 1, "random_state": 0}
    linear = ProportionClassifier(**options).fit(X, bags=bags)
    kernel = ProportionClassifier(kernel="precomputed", **options).fit(X @ X.T, bags=bags)
    np.testing.assert_allclose(kernel.predict_proba(X @ X.T), linear.predict_proba(X), atol=1e-4)


def test_kernels_and_maps_bend_the_boundary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    bags = make_bags(y, 5, random_state=0)
    flat = ProportionClassifier(random_state=0).fit(X, bags=bags).score(X, y)
    curved = ProportionClassifier(kernel=Gaussian(), random_state=0).fit(X, bags=bags).score(X, y)
    mapped = FourierFeatures(n_components=200, random_state=0)
    random = ProportionClassifier(map=mapped, random_state=0).fit(X, bags=bags).score(X, y)
    assert flat < 0.7
    assert min(curved, random) > 0.93


def test_sparse_and_dense_features_agree():
    X, _, bags = blobs()
    X[np.abs(X) < 0.5] = 0
    dense = ProportionClassifier(random_state=0).fit(X, bags=bags)
    sparse = ProportionClassifier(random_state=0).fit(sp.csr_matrix(X), bags=bags)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-4, atol=1e-6)


def test_threads_change_nothing():
    X, _, bags = blobs()
    one, two = (ProportionClassifier(n_init=4, n_jobs=n, random_state=0).fit(X, bags=bags) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.history_ == two.history_


@pytest.mark.parametrize("start", ["inverse-calibration", "mean-map", "convex"])
def test_first_start_may_come_from_another_learner(start):
    X, y, bags = blobs(200, 3, 3, size=4)
    for kernel in (None, Gaussian()):
        model = ProportionClassifier(init=start, n_init=1, kernel=kernel).fit(X, bags=bags)
        assert model.score(X, y) > 0.85


def test_held_out_bags_end_the_training():
    X, _, bags = blobs(300, 2, 20, size=10, apart=1.0)
    options = {"alpha": 0.0, "n_init": 1, "random_state": 0, "max_iter": 500}
    model = ProportionClassifier(early_stopping=True, patience=5, validation_fraction=0.3, **options)
    model.fit(X, bags=bags)
    (held,) = model.held_out_history_
    assert len(held) <= int(np.argmin(held)) + 6 + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        full = ProportionClassifier(**options).fit(X, bags=bags)
    assert np.linalg.norm(model.coef_) < np.linalg.norm(full.coef_)
    with pytest.raises(ValueError, match="at least 2 bags"):
        ProportionClassifier(early_stopping=True).fit(X, bags=np.zeros(300, int), proportions=[0.5])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_the_best_weights_so_far(n_jobs, monkeypatch):
    X, y, bags = blobs()
    calls = []

    class Impatient(Linear):
        def scores(self, w, X, n_outputs):
            calls.append(1)
            if len(calls) == 12 and n_jobs == 1:
                raise KeyboardInterrupt
            return super().scores(w, X, n_outputs)

    if n_jobs == 2:  # it arrives in the main thread, which waits
        from concurrent.futures import Future

        result, asked = Future.result, []

        def interrupted(self, timeout=None):
            asked.append(1)
            if len(asked) == 1:
                raise KeyboardInterrupt
            return result(self, timeout)

        monkeypatch.setattr(Future, "result", interrupted)
    model = ProportionClassifier(scorer=Impatient(), n_init=5, n_jobs=n_jobs, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted: these are the best weights so far"):
        model.fit(X, bags=bags)
    assert len(model.history_) < 5
    assert model.score(X, y) > 0.5


def test_verbose_prints_starts_and_iterations(capsys):
    X, _, bags = blobs(60)
    ProportionClassifier(n_init=2, verbose=True, random_state=0).fit(X, bags=bags)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["start 1 of 2", "start 2 of 2"]
    ProportionClassifier(n_init=1, verbose=2, early_stopping=True, random_state=0).fit(X, bags=bags)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert "held out" in lines[0]


# ---------------------------------------------------------------------------------------------------- prediction


def test_shares_of_bags_are_hard_or_soft_means():
    X, _, bags = blobs(100, 2, 2, size=7)
    model = ProportionClassifier(random_state=0).fit(X, bags=bags)
    hard, soft = model.predict_proportions(X, bags), model.predict_proportions(X, bags, soft=True)
    for k in range(len(bags)):
        rows = bags.members[bags.offsets[k] : bags.offsets[k + 1]]
        assert hard[k] == pytest.approx(np.mean(model.predict(X[rows]) == 1))
        assert soft[k] == pytest.approx(model.predict_proba(X[rows])[:, 1].mean())
    with pytest.raises(ValueError, match="bags has"):
        model.predict_proportions(X[:50], bags, soft=True)


@pytest.mark.parametrize("verb", ["decision_function", "predict", "predict_proba", "predict_proportions"])
@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("options", [{}, {"scorer": "mlp"}, {"scorer": "mlp", "map": FunctionTransformer()}])
def test_rows_of_another_width_are_refused(options, width, verb):
    X, _, bags = blobs(60, 2, 4)
    model = ProportionClassifier(max_iter=5, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, bags=bags)
    other = np.ones((60, width))
    with pytest.raises(ValueError, match=f"{width} features"):
        model.predict_proportions(other, bags) if verb == "predict_proportions" else getattr(model, verb)(other)
    assert model.n_features_in_ == 4  # a refusal changes nothing


def test_a_map_must_give_a_row_of_features_for_each_row():
    X, _, bags = blobs(60, 2, 4)
    with pytest.raises(ValueError, match=r"the map gave an array of shape \(60,\)"):
        ProportionClassifier(map=FunctionTransformer(lambda Z: Z[:, 0])).fit(X, bags=bags)


@pytest.mark.parametrize("options", [{}, {"scorer": "mlp"}, {"kernel": Gaussian()}], ids=str)
def test_model_files(options, tmp_path):
    X, _, bags = blobs(90)
    model = ProportionClassifier(random_state=0, max_iter=500, **options).fit(X, bags=bags)
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.history_ == model.history_
    meta, arrays = model.to_state()
    name = "weights_" if "scorer" in options else "intercept_"
    where = meta["fitted"][name]
    with pytest.raises(ValueError, match=name):
        ProportionClassifier.from_state(meta, {**arrays, where: np.full_like(arrays[where], np.nan)})


def test_own_scorers_are_not_written():
    X, _, bags = blobs(90)
    model = ProportionClassifier(scorer=Linear(), random_state=0).fit(X, bags=bags)
    with pytest.raises(TypeError, match="Linear as scorer cannot be written"):
        model.to_state()


# ---------------------------------------------------------------------------------------------------- modules of torch


@needs_torch
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_modules_learn_from_shares(k, sparse):
    X, y, bags = blobs(200, k, 3, size=5)
    net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1 if k == 2 else k))
    data = sp.csr_matrix(X) if sparse else X
    model = ProportionClassifier(scorer=net, learning_rate=0.1, max_iter=8, n_init=2, batch=8, random_state=0)
    before = [p.detach().clone() for p in net.parameters()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data, bags=bags)
        again = clone(model).fit(data, bags=bags)
    assert model.score(data, y) > 0.9
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert model.objective_ == min(min(h) for h in model.history_)
    np.testing.assert_array_equal(model.predict_proba(data), again.predict_proba(data))
    with pytest.raises(TypeError, match="cannot be written"):
        model.to_state()


@needs_torch
def test_a_linear_module_comes_to_the_linear_scorer():
    torch.manual_seed(0)
    X, _, bags = blobs(200, 2, 3, size=4, apart=1.5)
    module = torch.nn.Linear(3, 1).double()
    options = {"alpha": 0.1, "n_init": 1, "random_state": 0}
    by_steps = ProportionClassifier(
        scorer=module, learning_rate=0.01, batch=100, max_iter=1500, tol=1e-9, **options
    ).fit(X, bags=bags)
    exact = ProportionClassifier(**options).fit(X, bags=bags)
    assert by_steps.objective_ == pytest.approx(exact.objective_, abs=1e-4)
    np.testing.assert_allclose(by_steps.predict_proba(X), exact.predict_proba(X), atol=0.02)


@needs_torch
def test_modules_stop_early_and_on_interrupts():
    X, y, bags = blobs(200, 2, 3, size=4)
    module = torch.nn.Linear(3, 2)
    model = ProportionClassifier(scorer=module, early_stopping=True, patience=2, max_iter=300, learning_rate=0.1,
                                 n_init=1, random_state=0).fit(X, bags=bags)  # fmt: skip
    assert model.n_iter_ < 300
    assert len(model.held_out_history_[0]) == model.n_iter_

    class Impatient(torch.nn.Linear):
        calls = 0

        def forward(self, x):
            Impatient.calls += 1
            if Impatient.calls == 40:
                raise KeyboardInterrupt
            return super().forward(x)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = ProportionClassifier(scorer=Impatient(3, 2), learning_rate=0.1, batch=10).fit(X, bags=bags)
    assert len(model.history_) == 1
    assert model.score(X, y) > 0.6


@needs_torch
def test_modules_of_the_wrong_width_are_named():
    X, _, bags = blobs(60)
    with pytest.raises(ValueError, match="scorer must give 3 outputs"):
        ProportionClassifier(scorer=torch.nn.Linear(3, 2)).fit(X, bags=bags)


def test_torch_is_asked_for_by_name_and_only_with_a_module(monkeypatch):
    code = "import sys, mercer.proportions; print('torch' in sys.modules)"
    assert popen(code, text=True).communicate()[0].strip() == "False"
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name, name="torch")
        return real(name, *args, **kwargs)

    module = type("Module", (), {"__module__": "torch.nn", "parameters": lambda self: []})()
    X, _, bags = blobs(60)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModuleNotFoundError, match=r"pip install mercer\[torch\]"):
        ProportionClassifier(scorer=module).fit(X, bags=bags)


# ---------------------------------------------------------------------------------------------------- contract


@contract([ProportionClassifier(random_state=0, n_init=1, max_iter=500)])
def test_scikit_learn_contract(checks):
    checks()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"scorer": "forest"}, "scorer must be None, 'linear'"),
        ({"scorer": LogisticRegression()}, "scorer must be None, 'linear'"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": float("nan")}, "alpha must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"batch": 0}, "batch must be"),
        ({"n_init": 0}, "n_init must be"),
        ({"patience": 0}, "patience must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"init": "concave"}, "init must be one of"),
        ({"init": "mean-map", "scorer": "mlp"}, "is for a linear scorer"),
        ({"init": np.zeros(4)}, "init must be one of .*, got an array"),
        ({"kernel": Gaussian(), "scorer": "mlp"}, "a kernel needs a linear scorer"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"early_stopping": "no"}, "early_stopping must be True or False, got 'no'"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    X, _, bags = blobs(60)
    with pytest.raises(ValueError, match=message):
        ProportionClassifier(**options).fit(X, bags=bags)
