"""RBM and BoltzmannMachine: likelihoods, samples, files, partial fits, tensors, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.exceptions import ConvergenceWarning, DivergedError
from mercer.fields import RBM, BoltzmannMachine, learners, log_partition


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    return (load_digits().data > 7).astype(np.uint8)


@pytest.fixture(scope="module")
def model(digits):
    return RBM(9, max_iter=50, batch_size=20, random_state=0, learning_rate=0.1).fit(digits[:1000])


def independent(train, test):
    share = (train.sum(axis=0) + 0.5) / (len(train) + 1.0)
    return float((test * np.log(share) + (1 - test) * np.log(1 - share)).sum(axis=1).mean())


def test_training_raises_the_exact_held_out_likelihood_above_independent_pixels(model, digits):
    assert model.score(digits[1000:]) > independent(digits[:1000], digits[1000:]) + 3.5
    assert model.history_["log_likelihood"][-1] > model.history_["log_likelihood"][0] + 3


def test_likelihoods_of_all_rows_sum_to_one():
    X = np.random.default_rng(0).integers(0, 2, (60, 8))
    rows = (np.arange(256)[:, None] >> np.arange(8)) & 1
    for other in (RBM(3, max_iter=10, random_state=0), BoltzmannMachine(max_iter=10, random_state=0)):
        assert np.exp(other.fit(X).score_samples(rows)).sum() == pytest.approx(1.0, abs=1e-4)


def test_samples_have_the_likelihoods_of_the_model(model):
    drawn = model.sample(20_000, random_state=1)
    means = model._field()[0].exact(model._theta(drawn))[1][-64:]
    assert np.abs(drawn.mean(axis=0) - means).max() < 0.02


def test_transform_gives_probabilities_of_hidden_units(model, digits):
    fields = digits[:5] @ model.components_.T + model.intercept_hidden_
    np.testing.assert_allclose(model.transform(digits[:5]), 1 / (1 + np.exp(-fields)), atol=1e-5)
    shown = model.reconstruct(digits[:50])
    assert np.abs(shown - digits[:50]).mean() < np.abs(digits[:50] - digits.mean(axis=0)).mean()


def test_sparse_rows_give_the_same_model(digits):
    dense = RBM(8, max_iter=2, random_state=0).fit(digits[:300])
    sparse = RBM(8, max_iter=2, random_state=0).fit(sp.csr_matrix(digits[:300]))
    np.testing.assert_array_equal(dense.components_, sparse.components_)
    np.testing.assert_array_equal(dense.transform(digits[:9]), sparse.transform(sp.csr_matrix(digits[:9])))


@pytest.mark.parametrize("learner", ["cd", "pcd", "psmc"])
def test_threads_do_not_change_the_result(learner, digits):
    one = RBM(70, learner, max_iter=1, random_state=0, n_particles=40).fit(digits[:200])
    two = RBM(70, learner, max_iter=1, random_state=0, n_particles=40, n_jobs=2).fit(digits[:200])
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("name", ["avx2", "baseline"])
def test_instruction_sets_agree(name, digits):
    from mercer import _core

    before = _core.instruction_set()
    expected = RBM(20, max_iter=1, random_state=0).fit(digits[:100]).components_
    try:
        _core.use_instruction_set(name)
    except ValueError:
        pytest.skip(f"no {name} here")
    try:
        found = RBM(20, max_iter=1, random_state=0).fit(digits[:100]).components_
    finally:
        _core.use_instruction_set(before)
    assert np.abs(found - expected).max() < 0.05


def test_gaussian_units_learn_correlations():
    random = np.random.default_rng(0)
    z = random.choice([-1.0, 1.0], size=(2000, 1))
    X = (z * [2.0, -2.0, 0.0] + random.normal(size=(2000, 3))).astype(np.float32)
    model = RBM(4, "cd", visible="gaussian", max_iter=40, learning_rate=0.02, random_state=0).fit(X)
    drawn = model.sample(4000, random_state=0)
    assert np.corrcoef(drawn.T)[0, 1] < -0.5
    assert model.score(X) > -3 * 0.5 * np.log(2 * np.pi * np.e * X.var(axis=0).mean()) - 0.3


def test_partial_fit_goes_on_with_its_particles(digits):
    model = RBM(8, batch_size=10, random_state=0, learning_rate=0.1)
    scores = [model.partial_fit(digits[:1000]).score(digits[:1000]) for _ in range(6)]
    assert scores[-1] > scores[0] + 1
    assert model.n_iter_ == 6 == len(model.history_["log_likelihood"])


def test_held_out_likelihood_stops_training(digits):
    model = RBM(14, learning_rate=0.3, max_iter=200, patience=2, random_state=0).fit(digits[:60], dev=digits[60:400])
    assert model.n_iter_ < 200
    assert max(model.history_["dev_score"]) == pytest.approx(model.score(digits[60:400]), abs=1e-3)


@pytest.mark.parametrize("learner", ["psmc", "pcd", "cd", "parallel-tempering", "smc", "exact"])
def test_killed_training_resumes_from_its_checkpoint(digits, tmp_path, monkeypatch, learner):
    from mercer.fields import _base
    from mercer.learning.checkpoint import Checkpoint

    path = tmp_path / "run.ckpt"
    settings = {"n_hidden": 10, "learner": learner, "max_iter": 5, "random_state": 0, "n_particles": 20}
    whole = RBM(**settings).fit(digits[:200])
    real = _base.FieldEstimator._likelihood
    calls = []

    def dies(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("killed")
        return real(self, *args)

    monkeypatch.setattr(_base.FieldEstimator, "_likelihood", dies)
    with pytest.raises(RuntimeError, match="killed"):
        RBM(**settings).fit(digits[:200], checkpoint=Checkpoint(path, every=0))
    monkeypatch.undo()
    assert path.exists()
    resumed = RBM(**settings).fit(digits[:200], checkpoint=path)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert not path.exists()


def test_interrupted_training_keeps_the_last_whole_epoch(digits, monkeypatch):
    from mercer.learning.learners import PCD

    real, calls = PCD.negative, []

    def pressed(self, *args):
        calls.append(1)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(PCD, "negative", pressed)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RBM(5, max_iter=10, random_state=0).fit(digits[:1000])
    assert model.interrupted_
    assert model.n_iter_ == 2


def test_models_come_back_from_files(model, digits, tmp_path):
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_allclose(
        mercer.load(tmp_path / "m.mercer").score_samples(digits[:5]), model.score_samples(digits[:5])
    )
    pairs = BoltzmannMachine([(0, 1), (1, 2)], learners.PCD(2), max_iter=3).fit(digits[:50, 20:24])
    mercer.save(pairs, tmp_path / "b.mercer")
    other = mercer.load(tmp_path / "b.mercer")
    assert other.learner == learners.PCD(2)
    np.testing.assert_array_equal(other.couplings(), pairs.couplings())


def test_boltzmann_machine_learns_a_given_graph_and_hands_it_to_inference():
    from mercer.inference import infer

    random = np.random.default_rng(0)
    X = random.integers(0, 2, (400, 4)) * 2 - 1
    X[:, 1] = np.where(random.random(400) < 0.9, X[:, 0], -X[:, 0])
    model = BoltzmannMachine([(1, 0), (1, 2), (2, 3)], "exact", max_iter=150, learning_rate=0.2).fit(X)
    assert model.edges_.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert np.tanh(model.weights_[0]) == pytest.approx((X[:, 0] * X[:, 1]).mean(), abs=0.02)
    graph = model.to_factor_graph()
    assert infer(graph).log_partition == pytest.approx(float(log_partition(model, "exact")), abs=1e-6)
    again = BoltzmannMachine(graph, "exact", max_iter=1).fit(X)
    assert again.edges_.tolist() == model.edges_.tolist()


def test_zeros_and_ones_equal_plus_and_minus_one_in_likelihood():
    X = np.random.default_rng(2).integers(0, 2, (200, 5))
    X[:150, 1] = X[:150, 0]
    settings = {"learner": "exact", "max_iter": 150, "learning_rate": 0.5, "batch_size": 200}
    bits, signs = BoltzmannMachine(**settings).fit(X), BoltzmannMachine(**settings).fit(2 * X - 1)
    assert bits.score(X) == pytest.approx(signs.score(2 * X - 1), abs=0.02)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("make", [lambda: RBM(3, max_iter=1), lambda: BoltzmannMachine(max_iter=1)])
def test_wrong_rows_are_named(make):
    X = np.zeros((4, 3))
    X[2, 1] = 0.5
    with pytest.raises(ValueError, match="row 2, column 1"):
        make().fit(X)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make().fit(X)
    with pytest.raises(ValueError, match="numbers 0 and 1"):
        make().fit(np.array([["a", "b"]]))
    for rows in (np.zeros((5, 3)), np.ones((1, 3)), np.eye(3)):
        assert np.isfinite(make().fit(rows).score(rows))


def test_arguments_are_checked(digits):
    for settings, word in (
        ({"n_hidden": 0}, "n_hidden"),
        ({"learner": "none"}, "learner"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": (1, 2, 3)}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"visible": "real"}, "visible"),
        ({"n_particles": 1}, "n_particles"),
        ({"ess": 2.0, "learner": "smc"}, "ess"),
    ):
        with pytest.raises(ValueError, match=word):
            RBM(**settings).fit(digits[:20])
    with pytest.raises(ValueError, match="2\\^30 states"):
        RBM(30, "exact").fit(digits[:20])
    with pytest.raises(ValueError, match="2\\^64 states"):
        BoltzmannMachine(learner="exact").fit(digits[:20])
    for edges, word in (([(0, 9)], "columns"), ([(1, 1)], "different"), ([1, 2], "pairs")):
        with pytest.raises(ValueError, match=word):
            BoltzmannMachine(edges).fit(digits[:20, :5])


def test_diverging_steps_raise_and_keep_the_last_good_weights():
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32) * 30
    with pytest.raises(DivergedError, match="lower learning_rate") as caught:
        RBM(5, "cd", visible="gaussian", learning_rate=50.0, max_iter=50, random_state=0).fit(X)
    assert np.isfinite(caught.value.weights["components_"]).all()


@pytest.mark.parametrize("make", [RBM, BoltzmannMachine])
def test_parameters_beyond_any_use_are_told(make, digits):
    rows = digits[:100, 16:32]
    with pytest.warns(ConvergenceWarning, match="probably diverged.*lower learning_rate"):
        make(learning_rate=1e6, max_iter=3, random_state=0).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(max_iter=3, random_state=0).fit(rows)
        RBM(3, visible="gaussian", max_iter=1, random_state=0).fit(1e5 * rows)


def test_momentum_and_decay_change_the_path(digits):
    plain = RBM(8, max_iter=2, random_state=0).fit(digits[:200])
    heavy = RBM(8, max_iter=2, random_state=0, momentum=0.9).fit(digits[:200])
    small = RBM(8, max_iter=2, random_state=0, weight_decay=5.0).fit(digits[:200])
    assert np.abs(heavy.components_).sum() > np.abs(plain.components_).sum() > np.abs(small.components_).sum()


# ------------------------------------------------------------------ tensors


def test_tensors_give_the_same_numbers_up_to_rounding(digits):
    torch = pytest.importorskip("torch")
    from mercer import _core
    from mercer.fields._tensors import uniforms

    states = np.empty((7, 33), np.uint8)
    fields = np.random.default_rng(0).normal(size=(7, 33)).astype(np.float32)
    _core.fields.sample_fields(fields, 1.0, 12345678901234567890, 0, None, states, 1)
    drawn = uniforms(7, 33, 12345678901234567890, "cpu").numpy()
    np.testing.assert_array_equal(states, drawn < 1 / (1 + np.exp(-fields)))

    rows = torch.tensor(digits[:300], dtype=torch.float32)
    for learner in ("cd", "pcd", "psmc"):
        settings = {"n_hidden": 16, "learner": learner, "max_iter": 1, "random_state": 0, "n_particles": 30}
        here, there = RBM(**settings).fit(digits[:300]), RBM(**settings).fit(rows)
        assert np.abs(here.components_ - there.components_).max() < 1e-3
    assert isinstance(there.transform(rows), torch.Tensor)
    np.testing.assert_allclose(there.transform(rows).numpy(), there.transform(digits[:300]), atol=1e-5)
    np.testing.assert_allclose(there.free_energy(rows).numpy(), there.free_energy(digits[:300]), atol=1e-3)
    with pytest.raises(ValueError, match="0 and 1"):
        RBM(2).fit(rows * 0.5)


def test_ladders_side_by_side_keep_the_field(digits):
    torch = pytest.importorskip("torch")
    from mercer.fields._tensors import TensorUnits
    from mercer.learning.learners import Chains, Keys

    field = TensorUnits(4, 3)
    theta = torch.tensor(1.5 * np.random.default_rng(0).normal(size=field.n_weights), dtype=torch.float32)
    chains = Chains(field, Keys(1), 4000)
    learner = learners.ParallelTempering(6)
    learner.start(chains, theta)
    for _ in range(30):
        mean = learner.negative(chains, theta, None)
    assert float((mean - field.exact(theta)[1]).abs().max()) < 0.03
    assert 0.1 < chains.figures["acceptance"] <= 1.0


@pytest.mark.parametrize("low", [0, -1])
def test_visible_machines_start_as_independent_columns(low):
    random = np.random.default_rng(0)
    X = (random.random((400, 4)) < [0.02, 0.3, 0.9, 1.0]).astype(int)
    weights = random.integers(0, 3, size=400)
    shares = np.clip(np.average(X, axis=0, weights=weights), 1 / (weights.sum() + 2), 1 - 1 / (weights.sum() + 2))
    expected = (X * np.log(shares) + (1 - X) * np.log(1 - shares)).sum(axis=1)
    values = np.where(X == 1, 1, low)
    model = BoltzmannMachine(edges=np.zeros((0, 2), int), max_iter=0).fit(values, sample_weight=weights)
    np.testing.assert_allclose(model.score_samples(values), expected, rtol=1e-6)
