"""Models with a kernel on their observations equal the duals of the kernel machines, solved over all outputs."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

import mercer
from mercer.classification import LinearClassifier
from mercer.data import Sequences
from mercer.kernel_methods import KernelizedModel
from mercer.kernels import Gaussian, NegativeDistance, NGram, TensorProduct
from mercer.labeling import GraphLabeler
from mercer.ranking import LabelRanker, Ranker
from mercer.structured import StructuredPredictor
from mercer.structures import OutputSet
from mercer.tagging import Tagger
from reference.kernel_methods import blobs

KERNEL = Gaussian(0.6)


def dual_value(Q, costs, groups, C, equal):
    """max Σ a Δ − ½ aᵀQa with a ≥ 0 and Σ a ≤ C (or = C) in each group."""
    rows = np.array([[float(g == k) for g in groups] for k in sorted(set(groups))])
    kind = "eq" if equal else "ineq"
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - costs @ a,
        np.full(len(costs), C / len(costs)),
        jac=lambda a: Q @ a - costs,
        bounds=[(0.0, C)] * len(costs),
        constraints=[{"type": kind, "fun": lambda a: C - rows @ a, "jac": lambda a: -rows}],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    return -float(found.fun)


def test_classes_are_the_machine_of_crammer_and_singer():
    X, y = blobs(0, 12, 1.0, classes=3)
    K, C, wrong = KERNEL(X), 2.0, [(i, z) for i in range(12) for z in range(3) if z != y[i]]
    # ⟨ΔΦ_i(z), ΔΦ_j(v)⟩ = k(x_i, x_j) ⟨e_y − e_z, e_y' − e_v⟩
    E = np.array([np.eye(3)[y[i]] - np.eye(3)[z] for i, z in wrong])
    at = np.array([i for i, _ in wrong])
    best = dual_value(K[np.ix_(at, at)] * (E @ E.T), np.ones(len(wrong)), at.tolist(), C, False)
    model = KernelizedModel(LinearClassifier("hinge", C=C, fit_intercept=False, tol=1e-8), KERNEL).fit(X, y)
    alpha = model.dual_coef_
    support = model.map_.support_objects_
    scores = KERNEL(X, support) @ alpha.T
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    lead = scores - scores[np.arange(12), y][:, None] + (np.arange(3) != y[:, None])
    primal = 0.5 * np.einsum("ri,ij,rj", alpha, KERNEL(support), alpha) + C * lead.max(axis=1).sum()
    assert primal == pytest.approx(best, rel=1e-5)


def test_chains_are_the_markov_network_in_its_kernel_form():
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(n, 2)) for n in (3, 2, 3)]
    Y = [list("aba"), list("bb"), list("aab")]
    C = 1.5
    outputs = [(i, z) for i, y in enumerate(Y) for z in product("ab", repeat=len(y)) if list(z) != y]

    def joint(i, y, j, z):
        """Kernels of positions with equal labels, equal transitions, starts and ends: ⟨Φ(x_i, y), Φ(x_j, z)⟩."""
        K = KERNEL(X[i], X[j])
        same = np.array([[p == q for q in z] for p in y])
        steps = [sum(pair == other for other in pairwise(z)) for pair in pairwise(y)]
        return float((K * same).sum()) + sum(steps) + (y[0] == z[0]) + (y[-1] == z[-1])

    def difference(i, z, j, v):
        return joint(i, Y[i], j, Y[j]) - joint(i, Y[i], j, v) - joint(i, z, j, Y[j]) + joint(i, z, j, v)

    Q = np.array([[difference(i, z, j, v) for j, v in outputs] for i, z in outputs])
    costs = np.array([sum(p != q for p, q in zip(Y[i], z, strict=True)) for i, z in outputs], float)
    best = dual_value(Q, costs, [i for i, _ in outputs], C, False)
    model = KernelizedModel(Tagger("hinge", solver="bcfw", C=C, tol=1e-7, random_state=0), KERNEL).fit(X, Y)
    assert model.history_["objective"][-1] == pytest.approx(best, rel=1e-5)
    assert model.predict(Sequences.from_matrices(X)) == model.predict(X) == model.predict([x.tolist() for x in X])


def test_rankings_are_the_machine_over_pairs():
    rng = np.random.default_rng(2)
    X, grades = rng.normal(size=(9, 2)), np.array([0, 1, 2, 0, 1, 1, 2, 0, 1])
    groups = np.repeat(["a", "b"], [5, 4])
    pairs = [
        (i, j) if grades[i] > grades[j] else (j, i)
        for i, j in combinations(range(9), 2)
        if groups[i] == groups[j] and grades[i] != grades[j]
    ]
    K, C = KERNEL(X), 0.5
    high, low = (np.array(side) for side in zip(*pairs, strict=True))
    Q = K[np.ix_(high, high)] - K[np.ix_(high, low)] - K[np.ix_(low, high)] + K[np.ix_(low, low)]
    best = dual_value(Q, np.ones(len(pairs)), list(range(len(pairs))), C, False)
    model = KernelizedModel(Ranker(C=C, tol=1e-7), KERNEL).fit(X, grades, groups=groups)
    alpha, support = model.dual_coef_, model.map_.support_objects_
    scores = KERNEL(X, support) @ alpha
    primal = 0.5 * alpha @ KERNEL(support) @ alpha + C * np.maximum(0, 1 - scores[high] + scores[low]).sum()
    assert primal == pytest.approx(best, rel=1e-4)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    assert model.score(X, grades, groups=groups) == pytest.approx(
        model.model_.score(model.coordinates(X), grades, groups)
    )


def test_pairs_are_the_structured_machine_with_a_joint_kernel(tmp_path):
    rng = np.random.default_rng(4)
    X, outputs = rng.normal(size=(9, 2)), [(0.0,), (1.0,), (3.0,)]
    Y = [outputs[i] for i in rng.integers(0, 3, 9)]
    C, kernel = 1.5, TensorProduct(KERNEL, Gaussian(0.4))
    others = [(i, z) for i, y in enumerate(Y) for z in outputs if z != y]
    K, R = KERNEL(X), lambda a, b: np.exp(-0.4 * (a[0] - b[0]) ** 2)
    Q = np.array(
        [[K[i, j] * (R(Y[i], Y[j]) - R(Y[i], v) - R(z, Y[j]) + R(z, v)) for j, v in others] for i, z in others]
    )
    costs = np.array([abs(Y[i][0] - z[0]) for i, z in others])
    best = dual_value(Q, costs, [i for i, _ in others], C, False)
    structure = OutputSet(outputs, cost=cost_of_distance)
    machine = StructuredPredictor(structure, solver="bcfw", C=C, tol=1e-7, max_iter=5000, random_state=0)
    model = KernelizedModel(machine, kernel).fit(X, Y)
    assert model.history_["objective"][-1] == pytest.approx(best, rel=1e-4)
    assert [y for (y, _), *_ in model.k_best(X, 2)] == model.predict(X)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    with pytest.raises(AttributeError, match="OutputSet"):
        again.predict(X)
    again.model.structure = structure
    assert again.predict(X) == model.predict(X)
    log = KernelizedModel(StructuredPredictor(structure, "log", C=C, random_state=0), kernel).fit(X, Y)
    assert log.score(X, Y) >= 5 / 9


def cost_of_distance(y, z):
    return abs(y[0] - z[0])


def test_precomputed_rank_dev_and_files(tmp_path):
    X, y = blobs(3, 60, 4.0, classes=3)
    model = KernelizedModel(LinearClassifier(C=1.0, random_state=0), KERNEL).fit(X[:40], y[:40], dev=(X[40:], y[40:]))
    same = KernelizedModel(LinearClassifier(C=1.0, random_state=0), "precomputed").fit(
        KERNEL(X[:40]), y[:40], dev=(KERNEL(X[40:], X[:40]), y[40:])
    )
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(KERNEL(X, X[:40])), atol=1e-8)
    low = KernelizedModel(LinearClassifier(C=1.0), KERNEL, rank=7).fit(X, y)
    assert low.map_.factor_.shape == (7, 7)
    assert low.score(X, y) > 0.7
    mercer.save(low, tmp_path / "low.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "low.mercer").decision_function(X), low.decision_function(X))


def test_verbs_are_those_of_the_model():
    words = [["aba", "cd"], ["cdd", "ab", "ba"], ["dc"]]
    tags = [["A", "C"], ["C", "A", "A"], ["C"]]
    tagger = KernelizedModel(Tagger(C=5.0), NGram(1)).fit(words, tags)
    assert tagger.predict([["abab", "ccc"], []]) == [["A", "C"], []]
    assert tagger.k_best([["ab"]], 1)[0][0][1] == pytest.approx(
        tagger.log_likelihood([["ab"]], tagger.predict([["ab"]]))[0]
    )
    assert tagger.score(words, tags) == 1.0
    assert not hasattr(tagger, "decision_function")
    with pytest.raises(AttributeError, match="dual_coef_ is for models of rows"):
        _ = tagger.dual_coef_
    assert not hasattr(KernelizedModel(Ranker()), "k_best")
    edges = [[("a", "b"), ("b", "c")], [("c", "b")], [("a", "c")]]
    ranker = KernelizedModel(LabelRanker(C=5.0), NGram(1)).fit(["xx", "yy", "xz"], edges)
    assert ranker.predict(["xx"])[0][0] == "a"


@pytest.mark.parametrize(
    ("model", "kernel", "X", "error", "message"),
    [
        (GraphLabeler(), None, [[0.0]], TypeError, "LinearClassifier, Ranker, LabelRanker, Tagger or Structured"),
        (StructuredPredictor(None), Gaussian(), [[0.0]], TypeError, "must be an OutputSet"),
        (StructuredPredictor(OutputSet([0, 1])), None, [[0.0]], ValueError, "a kernel of pairs"),
        (StructuredPredictor(OutputSet([0, 1])), "precomputed", [[0.0]], ValueError, "takes pairs: give"),
        (LinearClassifier("log", penalty="l1"), None, [[0.0]], ValueError, "penalty='l2'"),
        (Tagger(), "precomputed", [[[0.0]]], ValueError, "takes sequences: give"),
        (LinearClassifier(), NegativeDistance(), [[0.0]], ValueError, "positive definite"),
        (LinearClassifier(), "rbf", [[0.0]], ValueError, "kernel must be"),
        (Tagger(), None, ["ab"], ValueError, "split it into words or letters"),
        (Tagger(), None, [["ab"]], ValueError, "kernel must be given for objects of type str"),
        (Tagger(), None, [np.zeros((1, 2)), np.zeros((1, 3))], ValueError, "different numbers of columns"),
        (LinearClassifier(), None, np.zeros((0, 2)), ValueError, "X is empty"),
        (LinearClassifier(), None, np.zeros((20_000, 1)), ValueError, "give a rank"),
    ],
)
def test_bad_input_is_named(model, kernel, X, error, message):
    with pytest.raises(error, match=message):
        KernelizedModel(model, kernel).fit(X, [0] * len(X))


def test_no_inputs_are_named_by_pairs():
    model = KernelizedModel(StructuredPredictor(OutputSet([0, 1])), TensorProduct(Gaussian(), Gaussian()))
    with pytest.raises(ValueError, match="X is empty"):
        model.fit([], [])


def test_edges_and_unfitted_models_are_refused():
    edged = Sequences([[0.0], [1.0]], edges=[[0.0], [1.0]])
    with pytest.raises(ValueError, match="edge features"):
        KernelizedModel(Tagger()).fit(edged, [["a", "b"]])
    with pytest.raises(NotFittedError, match="call fit"):
        KernelizedModel(Tagger()).predict([[[0.0]]])
