"""Cost-augmented search and differences of features equal enumeration, for every cost and structure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer.structures import Chain, Constraints, Labels
from mercer.structures.base import Structure
from reference.margin import CHAINS, COSTS, PROBLEMS, TRAINED, chain, labels

OVER_LABELS = [name for name in PROBLEMS if name.startswith(("labels", "chain", "segments"))]
CASES = [
    *itertools.product(OVER_LABELS, [None, *COSTS]),
    ("unlabelled segments", None),
    ("unlabelled segments", "zero-one"),
    ("enumerated", None),
    ("enumerated", "zero-one"),
    ("enumerated, 0/1", None),
    ("joint", None),
    ("joint", "zero-one"),
]


def scales(n):
    return [1.0, 0.3, np.linspace(0.1, 4.0, n)]


def named(problem, name):
    """The cost to hand to the structure, with the table of the problem set to it."""
    if name is None:
        return None
    cost, pair = COSTS[name]
    problem.with_cost(pair)
    return cost


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_most_violating_output_equals_brute_force(kind, name):
    problem = PROBLEMS[kind]()
    cost = named(problem, name)
    for seed in range(3):
        w = np.random.default_rng(seed).normal(scale=0.5 + seed, size=problem.n_weights)
        for scale in scales(len(problem)):
            theta = problem.structure.scores(w, problem.X)
            z, value, delta = problem.structure.most_violating(theta, problem.y, cost, scale)
            factor = np.broadcast_to(scale, len(problem))
            totals = [f * d + s for f, d, s in zip(factor, problem.costs, problem.scores(w), strict=True)]
            np.testing.assert_allclose(value, [t.max() for t in totals], atol=1e-10)
            best = [t.argmax() for t in totals]
            np.testing.assert_allclose(delta, [d[k] for d, k in zip(problem.costs, best, strict=True)], atol=1e-10)
            # Two segments of one label may change places: then several outputs are the best, up to rounding.
            tied = [np.flatnonzero(t >= t.max() - 1e-10) for t in totals]
            found = np.zeros(len(problem), bool)
            for rank in range(max(map(len, tied))):
                chosen = [o[k[min(rank, len(k) - 1)]] for o, k in zip(problem.outputs, tied, strict=True)]
                found |= problem.structure.equal(z, problem.pack(chosen))
            assert found.all()
            np.testing.assert_allclose(problem.structure.score(theta, z) + factor * delta, value, atol=1e-10)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_runner_up_is_the_best_other_output(kind):
    problem = PROBLEMS[kind]()
    for seed in range(4):
        w = np.random.default_rng(seed).normal(size=problem.n_weights)
        theta = problem.structure.scores(w, problem.X)
        y = problem.y if seed % 2 else problem.structure.argmax(theta)[0]
        if seed % 2 == 0 and kind.startswith("chain"):
            y = type(problem.y)(y, problem.y.offsets, partial=False)
        truth = problem.truth if seed % 2 else [int(s.argmax()) for s in problem.scores(w)]
        z, score = problem.structure.runner_up(theta, y)
        for i, (s, t) in enumerate(zip(problem.scores(w), truth, strict=True)):
            wanted = np.delete(s, t).max(initial=-np.inf)
            assert np.isclose(score[i], wanted) or (np.isneginf(score[i]) and np.isneginf(wanted))
        alone = np.isneginf(score)
        np.testing.assert_array_equal(problem.structure.equal(y, z), alone)
        np.testing.assert_allclose(problem.structure.score(theta, z)[~alone], score[~alone])


@pytest.mark.parametrize("kind", OVER_LABELS)
@pytest.mark.parametrize("name", COSTS)
def test_costs_between_outputs_equal_the_formula(kind, name):
    problem = PROBLEMS[kind]()
    cost = named(problem, name)
    problem.structure.scores(np.zeros(problem.n_weights), problem.X)
    rng = np.random.default_rng(0)
    for _ in range(5):
        chosen, z = problem.choose(rng)
        wanted = [d[k] for d, k in zip(problem.costs, chosen, strict=True)]
        np.testing.assert_allclose(problem.structure.cost_between(problem.y, z, cost), wanted)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_select_takes_example_by_example(kind):
    problem, rng = PROBLEMS[kind](), np.random.default_rng(0)
    n = len(problem)
    (a, y), (b, z) = problem.choose(rng), problem.choose(rng)
    pick = rng.random(n) < 0.5
    mixed = problem.structure.select(pick, y, z)
    chosen = [o[i if p else j] for o, i, j, p in zip(problem.outputs, a, b, pick, strict=True)]
    assert problem.structure.equal(mixed, problem.pack(chosen)).all()
    assert problem.structure.equal(y, z).tolist() == [i == j for i, j in zip(a, b, strict=True)]


# ------------------------------------------------------------------------------- differences of features


def indicator(structure, X, y):
    """Φ(x, y) of each example, as the adjoint of the scores of an indicator."""
    rows = np.zeros((len(X), structure.n_weights))
    for i in range(len(X)):
        theta = structure.scores(np.zeros(structure.n_weights), X[i : i + 1])
        mu = structure.zeros(theta)
        structure.add_output(mu, y[i : i + 1], np.ones(1))
        structure.backward(X[i : i + 1], mu, rows[i])
    return rows


def check_difference(structure, X, y, z):
    found = structure.difference(X, y, z)
    assert found.shape == (len(X), structure.n_weights)
    for a, b in itertools.pairwise(found.indptr):
        assert (np.diff(found.indices[a:b]) > 0).all()  # ascending, nothing twice
    np.testing.assert_allclose(found.toarray(), indicator(structure, X, y) - indicator(structure, X, z), atol=1e-12)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_differences_equal_those_of_the_features_written_out(kind):
    problem, rng = PROBLEMS[kind](), np.random.default_rng(1)
    for _ in range(3):
        (a, y), (b, z) = problem.choose(rng), problem.choose(rng)
        problem.structure.scores(np.zeros(problem.n_weights), problem.X)
        found = problem.structure.difference(problem.X, y, z).toarray()
        wanted = [phi[i] - phi[j] for phi, i, j in zip(problem.features, a, b, strict=True)]
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert not problem.structure.difference(problem.X, y, y).nnz


LONG = (3, 1, 2, 0, 3, 2, 4, 1, 0, 2, 3, 2)
OPTIONS = {
    **CHAINS,
    "chain, trained": {"trained": TRAINED},
    "chain, everything": {
        "trained": TRAINED,
        "constraints": Constraints([(2, 2)], forbidden_start=[1], forbidden_end=[0]),
        "pattern": True,
        "edge_features": 2,
        "edge_pattern": True,
    },
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("part", [slice(None), slice(3, 9), slice(5, 6), slice(4, 4)])
@pytest.mark.parametrize("options", OPTIONS)
def test_differences_equal_the_adjoint_of_indicators_also_on_views(options, part, dtype):
    problem, rng = chain(LONG, dtype=dtype, **OPTIONS[options]), np.random.default_rng(0)
    X, y = problem.X[part], problem.y[part]
    z = problem.choose(rng)[1][part]
    if len(X):
        check_difference(problem.structure, X, y, z)
    else:
        assert problem.structure.difference(X, y, z).shape == (0, problem.n_weights)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("part", [slice(None), slice(3, 7), slice(2, 3)])
def test_differences_of_labels_equal_the_adjoint_of_indicators(sparse, part):
    problem, rng = labels(sparse=sparse), np.random.default_rng(0)
    check_difference(problem.structure, problem.X[part], problem.y[part], problem.choose(rng)[1][part])


@pytest.mark.parametrize("options", OPTIONS)
def test_views_have_the_most_violating_outputs_of_their_sequences(options):
    problem = chain(LONG, **OPTIONS[options])
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    for cost, scale in ((COSTS["matrix"][0], 1.0), (COSTS["zero-one"][0], 0.5)):
        z, value, delta = problem.structure.most_violating(
            problem.structure.scores(w, problem.X), problem.y, cost, scale
        )
        X, y = problem.X[3:9], problem.y[3:9]
        part = problem.structure.most_violating(problem.structure.scores(w, X), y, cost, np.full(6, scale))
        np.testing.assert_array_equal(part[0].labels, z[3:9].labels)
        np.testing.assert_allclose(part[1], value[3:9])
        np.testing.assert_allclose(part[2], delta[3:9])


@pytest.mark.parametrize("kind", PROBLEMS)
def test_added_outputs_go_back_to_weighted_features(kind):
    problem, rng = PROBLEMS[kind](), np.random.default_rng(2)
    theta = problem.structure.scores(np.zeros(problem.n_weights), problem.X)
    mu, wanted = problem.structure.zeros(theta), np.zeros(problem.n_weights)
    for _ in range(3):
        chosen, y = problem.choose(rng)
        weights = rng.normal(size=len(problem))
        problem.structure.add_output(mu, y, weights)
        wanted += sum(c * phi[k] for c, phi, k in zip(weights, problem.features, chosen, strict=True))
    mu.scale(0.5)
    out = np.zeros(problem.n_weights)
    problem.structure.backward(problem.X, mu, out)
    np.testing.assert_allclose(out, 0.5 * wanted, atol=1e-12)


# ---------------------------------------------------------------------------------------------- refusals


def test_a_structure_without_margins_says_which_verb_it_lacks():
    class Plain(Labels):
        difference = Structure.difference
        augment = Structure.augment

    plain = Plain(2, 2)
    with pytest.raises(TypeError, match="Plain has no difference"):
        plain.difference(None, None, None)
    with pytest.raises(TypeError, match="Plain has no augment"):
        plain.most_violating(np.zeros((1, 2)), np.array([0]))


def test_a_cost_of_label_pairs_is_not_for_a_structure_of_ones_own():
    problem = PROBLEMS["joint"]()
    with pytest.raises(ValueError, match="has its own cost"):
        problem.structure.most_violating(
            problem.structure.scores(np.zeros(4), problem.X), problem.y, COSTS["hamming"][0]
        )


def test_features_of_another_size_are_refused():
    problem = chain()
    wide = Chain(3, 7)
    with pytest.raises(ValueError, match="X has 4 features, the model has 7"):
        wide.difference(problem.X, problem.y, problem.y)
