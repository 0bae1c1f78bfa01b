"""The adaptive hybrid and the circle loss equal their formulas on every structure, and estimators fit them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer.alignment import AlignmentStructure
from mercer.classification import LinearClassifier
from mercer.data import Sequences
from mercer.data.labels import TagSequences
from mercer.datasets import make_mixed_dominance, make_nondominant
from mercer.learning import AdaptiveHybrid, Circle, Hybrid, Log, Penalty, Risk
from mercer.learning.adaptive import adapted, dominance_of, fold_numbers
from mercer.learning.losses import loss_from_json
from mercer.learning.risk import AdaptiveRisk, WeightedRisk
from mercer.learning.training import train
from mercer.parsing import Grammar, TreeStructure
from mercer.structures import Constraints, GraphInputs, GraphLabels, Labels, LabelSets
from mercer.structures.alignment_batch import Coded
from mercer.structures.alignment_joint import AlignmentJoint
from mercer.structures.joint import Examples
from mercer.structures.trees import TreeBatches
from reference import margin

WRITTEN = {
    "labels": margin.labels,
    "chain": margin.chain,
    "chain with constraints": lambda **options: margin.chain(constraints=Constraints([(0, 1)]), **options),
    "chain with edges": lambda **options: margin.chain(edge_features=2, **options),
    "enumerated": margin.enumerated,
    "own structure": margin.joint,
    "segments": margin.segments,
}


def finite_differences(f, w, step=1e-6):
    out = np.empty_like(w)
    for k in range(len(w)):
        e = np.zeros_like(w)
        e[k] = step
        out[k] = (f(w + e) - f(w - e)) / (2 * step)
    return out


def label_sets():
    rng = np.random.default_rng(0)
    X = Sequences(rng.normal(size=(5, 2)), np.arange(6))
    return LabelSets(3, 2), X, rng.integers(0, 2, (5, 3)).astype(np.int8)


def graphs():
    rng = np.random.default_rng(1)
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    X = GraphInputs.from_list([(rng.normal(size=(4, 2)), square), (rng.normal(size=(2, 2)), [(0, 1)])])
    return GraphLabels(3, 2), X, TagSequences(rng.integers(0, 3, 6).astype(np.int32), np.array([0, 4, 6]))


def trees():
    grammar = Grammar.from_text("S -> S S | A S | a\nA -> a a | b")
    structure = TreeStructure(grammar)
    words = [grammar.encode(s.split()) for s in ("a a a", "b a", "a a a a")]
    y = [structure.k_best(np.ones(structure.n_weights), x, 1)[0][0] for x in words]
    return TreeBatches(structure), Examples(words), Examples(y)


def alignments():
    rng = np.random.default_rng(2)
    structure = AlignmentStructure(2)
    X = [Coded(*(rng.integers(0, 2, n).astype(np.int32) for n in sizes)) for sizes in [(2, 3), (3, 3)]]
    y = [structure.k_best(np.zeros(structure.n_weights), x, 3)[2][0] for x in X]
    return AlignmentJoint(structure), Examples(X), Examples(y)


OTHERS = {"label sets": label_sets, "graphs": graphs, "trees": trees, "alignments": alignments}


# ---------------------------------------------------------------------------------- values and gradients


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_circle_loss_is_a_distance_of_distributions(kind):
    problem = WRITTEN[kind]()
    risk = problem.risk(Circle())
    for seed in range(2):
        w = np.random.default_rng(seed).normal(size=problem.n_weights)
        value, gradient = risk.value_and_gradient(w)
        assert value == pytest.approx(problem.losses(w, "circle").sum(), rel=1e-9)
        assert risk.value(w) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient, finite_differences(risk.value, w), atol=2e-7)


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("loss", ["circle", "adaptive-hybrid"])
def test_gradients_equal_finite_differences_on_all_structures(kind, loss):
    structure, X, y = OTHERS[kind]()
    w = np.random.default_rng(3).normal(size=structure.n_weights)
    if loss == "circle":
        risk = Risk(structure, Circle(), X, y)
    else:
        risk = AdaptiveRisk(structure, AdaptiveHybrid(), X, y, np.linspace(0.2, 0.9, len(X)))
    value, gradient = risk.value_and_gradient(w)
    assert value == pytest.approx(risk.value(w), rel=1e-12)
    np.testing.assert_allclose(gradient, finite_differences(risk.value, w), atol=3e-6)


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("of", ["unit", "cost"])
def test_each_example_has_the_hybrid_loss_of_its_share(kind, of):
    problem = WRITTEN[kind]()
    rng = np.random.default_rng(4)
    alphas, weights = rng.choice([0.0, 0.3, 1.0], len(problem)), rng.choice([0.0, 1.0, 2.5], len(problem))
    risk = AdaptiveRisk(problem.structure, AdaptiveHybrid(margin=of), problem.X, problem.y, alphas, weights)
    w = rng.normal(size=problem.n_weights)
    each = [problem.losses(w, "hybrid", alpha=alpha, margin=of)[i] for i, alpha in enumerate(alphas)]
    value, gradient = risk.value_and_gradient(w)
    assert value == pytest.approx(weights @ each, rel=1e-9)
    np.testing.assert_allclose(gradient, finite_differences(risk.value, w), atol=1e-6)


def test_without_an_estimate_the_adaptive_loss_is_the_log_loss():
    problem = margin.chain()
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    for mine, log in zip(
        problem.risk(AdaptiveHybrid()).value_and_gradient(w), problem.risk(Log()).value_and_gradient(w), strict=True
    ):
        np.testing.assert_allclose(mine, log, atol=1e-10)


def test_a_certain_answer_has_a_small_distance_and_a_small_slope():
    theta = np.array([[400.0, 0.0], [30.0, 0.0], [0.0, 400.0]])
    value, mu = Circle().value_and_gradient(Labels(2, 0), theta, np.array([0, 0, 0]))
    assert value[0] == pytest.approx(np.sqrt(2) * np.exp(-400.0), rel=1e-6)
    assert value[1] == pytest.approx(np.sqrt(2) * np.exp(-30.0), rel=1e-6)
    assert value[2] == pytest.approx(np.sqrt(2))
    assert np.isfinite(mu.probabilities).all()


# ---------------------------------------------------------------------------------- shares


def test_shares_follow_the_threshold():
    first, second = np.array([0.9, 0.5, 0.4, 0.34]), np.array([0.1, 0.5, 0.15, 0.33])
    alphas = AdaptiveHybrid(floor=0.0, slack=0.0).alphas(first, second)
    assert alphas[:2].tolist() == [0.0, 0.0]
    assert alphas[2] == pytest.approx(0.5)
    assert 0.9 < alphas[3] < 1.0
    assert AdaptiveHybrid().alphas(first, second)[0] == 0.5
    assert AdaptiveHybrid(lambda a, b: 1.0 - a).alphas(first, second) == pytest.approx(1.0 - first)
    free = AdaptiveHybrid().alphas(first, second)
    assert free.max() > 0.5
    np.testing.assert_array_equal(AdaptiveHybrid(ceiling=0.5).alphas(first, second), np.minimum(free, 0.5))
    np.testing.assert_array_equal(AdaptiveHybrid(floor=0.3, ceiling=0.3).alphas(first, second), 0.3)
    with pytest.raises(ValueError, match="floor must not be above ceiling"):
        AdaptiveHybrid(floor=0.6, ceiling=0.5)


def test_folds_are_interleaved_blocks():
    fold = fold_numbers(100, 2)
    assert np.bincount(fold).tolist() == [50, 50]
    assert fold[:5].tolist() == [0] * 5
    assert fold[5] == 1
    assert fold_numbers(3, 3).tolist() == [0, 1, 2]


def test_dominance_is_estimated_by_models_that_have_not_seen_the_example():
    X, y = make_mixed_dominance(0.5, 400, n_features=20, random_state=0)
    alone = (np.abs(X) == 1.0).all(axis=1)
    rows = Sequences(np.hstack([X, np.ones((400, 1))]), np.arange(401))
    risk = Risk(Labels(5, 21), Log(), rows, y.astype(np.int32))
    found = dominance_of(risk, Penalty(), 10.0, 2)
    assert np.median(found.first[alone]) == pytest.approx(0.4, abs=0.08)
    assert np.median(found.first[~alone]) > 0.6
    assert (found.second <= found.first).all()


def test_the_adaptive_loss_finds_the_first_label_where_the_hinge_ties():
    X, y = make_nondominant(k=5, n=100)
    rows = Sequences(X, np.arange(101))
    labels = Labels(5, 1)
    risk = adapted(Risk(labels, AdaptiveHybrid(), rows, y.astype(np.int32)), Penalty(), 0.1)
    assert (risk.alphas > 0.2).all()
    result, _ = train(risk, solver="bmrm", C=0.1, tol=1e-6)
    scores = np.sort(labels.scores(result.w, rows[:1])[0])
    assert scores[-1] - scores[-2] > 0.05


@pytest.mark.parametrize("rho", [0.5, 0.9])
@pytest.mark.parametrize("m", [30, 100])
def test_where_few_examples_are_dominated_the_hinge_loss_loses(rho, m):
    """A part of the grid of the source, over five draws; features and the constant are of one size."""
    lost = []
    for seed in range(5):
        sizes = enumerate((m, 300))
        (X, y), (held, truth) = (make_mixed_dominance(rho, n, random_state=10 * seed + k) for k, n in sizes)
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        errors = {}
        for loss in ("hinge", "log", Hybrid(0.5)):
            model = LinearClassifier(loss=loss, C=0.1, max_iter=300, tol=1e-2, random_state=0)
            model.fit((X - mean) / deviation, y)
            errors[loss if isinstance(loss, str) else "hybrid"] = 1 - model.score((held - mean) / deviation, truth)
        lost.append(errors["hinge"] - min(errors["log"], errors["hybrid"]))
    assert np.mean(lost) > 0
    assert sum(value > 0 for value in lost) >= 4


def test_the_held_out_rule_takes_shares_from_its_choices():
    X, y = make_mixed_dominance(0.5, 120, n_features=5, random_state=1)
    rows = Sequences(np.hstack([X, np.ones((120, 1))]), np.arange(121))
    risk = adapted(Risk(Labels(5, 6), AdaptiveHybrid("held-out"), rows, y.astype(np.int32)), Penalty(), 0.1)
    assert set(risk.alphas) <= {0.0, 0.5, 1.0}


def test_sequences_of_one_share_are_batches_of_their_own():
    problem = margin.chain(lengths=(3, 2, 4, 1, 2, 3, 2, 2))
    weighted = WeightedRisk(problem.structure, AdaptiveHybrid(), problem.X, problem.y, np.arange(1.0, 9.0))
    risk = adapted(weighted, Penalty(), 0.2)
    assert ((16 * risk.alphas) % 1 == 0).all()
    assert risk.weights.tolist() == list(range(1, 9))


# ---------------------------------------------------------------------------------- estimators


def fitted(estimator, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data)


TOKENS = [["the", "dog", "ran"], ["a", "cat", "sat", "there"], ["the", "cat", "ran"], ["dogs", "sat"]]
TAGS = [["D", "N", "V"], ["D", "N", "V", "A"], ["D", "N", "V"], ["N", "V"]]


@pytest.mark.parametrize("loss", ["adaptive-hybrid", "circle", AdaptiveHybrid("held-out"), AdaptiveHybrid(floor=0.1)])
def test_estimators_take_the_losses_and_files_keep_them(loss, tmp_path):
    tagger = fitted(mercer.Tagger(loss=loss, C=10.0, max_iter=60), TOKENS, TAGS)
    assert tagger.score(TOKENS, TAGS) > 0.8
    X, y = np.repeat(np.eye(3), 10, axis=0), np.repeat(["a", "b", "c"], 10)
    classifier = fitted(mercer.LinearClassifier(loss=loss, max_iter=60), X, y)
    assert classifier.score(X, y) == 1.0
    for model, data in ((tagger, TOKENS), (classifier, X)):
        mercer.save(model, tmp_path / "model.mercer")
        again = mercer.load(tmp_path / "model.mercer")
        assert [list(a) for a in map(np.atleast_1d, again.predict(data))] == [
            list(a) for a in map(np.atleast_1d, model.predict(data))
        ]


def test_a_rule_of_ones_own_is_named_in_files():
    loss = AdaptiveHybrid(lambda a, b: np.full(len(a), 0.5))
    again = loss_from_json(loss.to_json())
    assert again.rule == "function"
    with pytest.raises(ValueError, match="give it again"):
        again.alphas(np.array([0.4]), np.array([0.3]))
    assert loss_from_json(AdaptiveHybrid(floor=0.25).to_json()).floor == 0.25
    assert isinstance(loss_from_json(Circle().to_json()), Circle)


def test_shares_of_one_half_everywhere_are_the_hybrid_loss():
    X, y = make_mixed_dominance(0.3, 80, n_features=4)
    half = AdaptiveHybrid(lambda a, b: np.full(len(a), 0.5))
    mine = fitted(mercer.LinearClassifier(loss=half, solver="bmrm", tol=1e-6), X, y)
    plain = fitted(mercer.LinearClassifier(loss=Hybrid(0.5), solver="bmrm", tol=1e-6), X, y)
    np.testing.assert_allclose(mine.coef_, plain.coef_, atol=2e-2)


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "rule"),
        ({"floor": 1.5}, "floor must be a number from 0 to 1"),
        ({"slack": -0.1}, "slack"),
        ({"slack": np.nan}, "slack"),
        ({"folds": 1}, "folds"),
        ({"margin": "wide"}, "margin"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveHybrid(**options)


def test_a_rule_must_give_shares():
    for wrong in (lambda a, b: 2.0 * np.ones(len(a)), lambda a, b: 0.5, lambda a, b: np.full(len(a), np.nan)):
        with pytest.raises(ValueError, match="rule must give a number from 0 to 1"):
            AdaptiveHybrid(wrong).alphas(np.array([0.4, 0.4]), np.array([0.3, 0.3]))


def test_too_few_examples_and_unknown_labels_are_refused():
    X, y = np.ones((1, 2)), [0]
    risk = Risk(Labels(2, 2), AdaptiveHybrid(), Sequences(X, np.arange(2)), np.array(y, np.int32))
    with pytest.raises(ValueError, match="at least 2 examples"):
        adapted(risk, Penalty(), 1.0)
    with pytest.raises(ValueError, match="needs fully known outputs"):
        mercer.Tagger(loss="adaptive-hybrid").fit(TOKENS, [["D", None, "V"], *TAGS[1:]])
    with pytest.raises(ValueError, match="needs fully known outputs"):
        mercer.Tagger(loss="circle").fit(TOKENS, [["D", None, "V"], *TAGS[1:]])


def test_solvers_that_need_convexity_or_planes_refuse():
    with pytest.raises(ValueError, match="needs a convex loss"):
        mercer.Tagger(loss="circle", solver="bmrm").fit(TOKENS, TAGS)
    for loss in ("circle", "adaptive-hybrid"):
        with pytest.raises(ValueError, match="hinge-like losses"):
            mercer.Tagger(loss=loss, solver="bcfw").fit(TOKENS, TAGS)
        with pytest.raises(ValueError, match="log loss"):
            mercer.Tagger(loss=loss, solver="sgd").fit(TOKENS, TAGS)
