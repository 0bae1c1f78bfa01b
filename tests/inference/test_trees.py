"""Trees of binary variables: marginals and Jeffrey's rule against enumeration, what is learnt, what is refused."""

import itertools

import numpy as np
import pytest

from mercer.inference import ChowLiuTree, LatentTree, infer
from mercer.inference.trees import _path_lengths, mutual_informations, neighbour_joining


def random_tree(seed, d=6, n_hidden=0, cls=ChowLiuTree):
    """A tree of any shape with any tables, of d columns and some hidden nodes."""
    rng = np.random.default_rng(seed)
    tree = cls()
    n = d + n_hidden
    tree.n_features_in_ = d
    tree._set_tree([(int(rng.integers(v)), v) for v in range(1, n)], n)
    tree.conditional_ = rng.uniform(0.05, 0.95, (n, 2))
    tree.conditional_[0] = tree.conditional_[0, 0]
    tree.mutual_information_ = np.zeros(n)
    return tree


def whole_table(tree):
    """All states and their probabilities."""
    states = np.array(list(itertools.product((0, 1), repeat=tree.n_nodes)))
    p = np.ones(len(states))
    for v, parent in enumerate(tree.parents_):
        on = tree.conditional_[v][states[:, parent]] if parent >= 0 else np.full(len(states), tree.conditional_[v, 0])
        p *= np.where(states[:, v] == 1, on, 1 - on)
    return states, p


@pytest.mark.parametrize("seed", range(4))
def test_marginals_equal_enumeration(seed):
    tree = random_tree(seed, n_hidden=2 * (seed % 2))
    states, p = whole_table(tree)
    assert p.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(seed)
    evidence = np.where(rng.random((20, 6)) < 0.4, rng.integers(0, 2, (20, 6)), np.nan)
    found = tree.marginals(evidence)
    logs = tree.score_samples(evidence)
    for row, given, log in zip(found, evidence, logs, strict=True):
        fits = np.all(np.isnan(given) | (states[:, :6] == given), axis=1)
        assert log == pytest.approx(np.log(p[fits].sum()))
        assert row == pytest.approx(p[fits] @ states[fits] / p[fits].sum())


def test_marginals_equal_those_of_the_network():
    tree = random_tree(7)
    answer = infer(tree.to_network(), evidence={2: 1, 4: 0})
    found = tree.marginals({2: 1, 4: 0})[0]
    for v in (0, 1, 3, 5):
        assert found[v] == pytest.approx(answer.probabilities(v)[1])


@pytest.mark.parametrize("seed", range(3))
def test_joint_distributions_equal_enumeration(seed):
    tree = random_tree(seed, n_hidden=1)
    states, p = whole_table(tree)
    found = tree.joint([4, 1, 6], {2: 1})[0]
    fits = states[:, 2] == 1
    for a, b, c in itertools.product((0, 1), repeat=3):
        here = fits & (states[:, 4] == a) & (states[:, 1] == b) & (states[:, 6] == c)
        assert found[a, b, c] == pytest.approx(p[here].sum() / p[fits].sum())


@pytest.mark.parametrize("seed", range(3))
def test_jeffreys_rule_equals_fitting_on_the_whole_table(seed):
    tree = random_tree(seed, d=7)
    rng = np.random.default_rng(seed)
    soft = {int(v): float(rng.uniform(0.1, 0.9)) for v in rng.permutation(7)[:4]}
    clamped = next(v for v in range(7) if v not in soft)
    states, p = whole_table(tree)
    p = p * (states[:, clamped] == 1)
    for _ in range(500):
        for v, target in soft.items():
            on = states[:, v] == 1
            p = p / p.sum()
            p = np.where(on, p * target / p[on].sum(), p * (1 - target) / p[~on].sum())
    found = tree.marginals({clamped: 1}, soft)[0]
    assert found == pytest.approx(p @ states, abs=1e-7)
    assert [found[v] for v in soft] == pytest.approx(list(soft.values()), abs=1e-8)
    pair = tree.joint([0, 6], {clamped: 1}, soft)[0]
    assert pair[1, 1] == pytest.approx(p @ (states[:, 0] * states[:, 6]), abs=1e-7)


def test_one_soft_variable_mixes_its_two_conditionals():
    tree = random_tree(3)
    mixed = 0.3 * tree.marginals({2: 1})[0] + 0.7 * tree.marginals({2: 0})[0]
    assert tree.marginals(soft={2: 0.3})[0] == pytest.approx(mixed)


def test_soft_evidence_that_is_certain_is_evidence():
    tree = random_tree(4)
    assert tree.marginals(soft={2: 1.0, 3: 0.0})[0] == pytest.approx(tree.marginals({2: 1, 3: 0})[0])


def test_rows_of_a_batch_are_independent():
    tree = random_tree(5)
    rng = np.random.default_rng(0)
    evidence = np.where(rng.random((6, 6)) < 0.3, 1.0, np.nan)
    soft = np.where(np.isnan(evidence) & (rng.random((6, 6)) < 0.5), rng.uniform(0.2, 0.8, (6, 6)), np.nan)
    together = tree.marginals(evidence, soft)
    for i in range(6):
        assert tree.marginals(evidence[i : i + 1], soft[i : i + 1])[0] == pytest.approx(together[i], abs=1e-7)


# ------------------------------------------------------------------------------------------------ learning


def test_mutual_information_equals_its_sum():
    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    X[:, 1] |= X[:, 0]
    found = mutual_informations(X.astype(float))
    for i, j in itertools.permutations(range(3), 2):
        expected = 0.0
        for a, b in itertools.product((0, 1), repeat=2):
            p = ((X[:, i] == a) & (X[:, j] == b)).mean()
            if p:
                expected += p * np.log(p / (X[:, i] == a).mean() / (X[:, j] == b).mean())
        assert found[i, j] == pytest.approx(expected)


def test_the_generating_tree_is_recovered():
    truth = random_tree(1, d=8)
    truth.conditional_ = np.where(np.arange(2) == 1, 0.85, 0.15) * np.ones((8, 2))
    truth.conditional_[0] = 0.5
    X = truth.sample(5000, random_state=0)
    found = ChowLiuTree().fit(X)
    assert {frozenset(edge) for edge in found.edges_} == {frozenset(edge) for edge in truth.edges_}
    assert np.abs(found.marginals() - truth.marginals()).max() < 0.03
    assert found.score(X) > truth.score(X) - 1e-3  # the maximum of the likelihood, but for the smoothing


def test_no_other_tree_has_a_higher_likelihood():
    X = np.random.default_rng(0).integers(0, 2, (40, 4))
    X[:, 2] |= X[:, 0]
    best = ChowLiuTree(smoothing=1e-6).fit(X).log_likelihood_
    for prufer in itertools.product(range(4), repeat=2):
        tree = ChowLiuTree()
        tree.n_features_in_ = 4
        tree._set_tree(_decoded(prufer), 4)
        tree._fit_tables(X.astype(float), 1e-6, np.ones(len(X)))
        tree._keep_scores(X.astype(float), np.ones(len(X)))
        assert tree.log_likelihood_ <= best + 1e-6


def _decoded(prufer):
    """The edges of a labelled tree from its Prüfer sequence."""
    degree = np.ones(len(prufer) + 2, int)
    for v in prufer:
        degree[v] += 1
    edges = []
    for v in prufer:
        leaf = int(np.flatnonzero(degree == 1)[0])
        edges.append((leaf, v))
        degree[[leaf, v]] -= 1
    return [*edges, tuple(int(v) for v in np.flatnonzero(degree == 1))]


def hidden_causes(n, seed=0, noise=0.15, d=4):
    """Three hidden causes in a chain, with d columns each."""
    rng = np.random.default_rng(seed)
    causes = rng.random((n, 3)) < 0.5
    causes[:, 1] = causes[:, 0] ^ (rng.random(n) < 0.2)
    causes[:, 2] = causes[:, 1] ^ (rng.random(n) < 0.2)
    return (np.repeat(causes, d, axis=1) ^ (rng.random((n, 3 * d)) < noise)).astype(int), causes


def test_hidden_causes_are_found_and_raise_the_likelihood():
    X = hidden_causes(3000)[0]
    latent, plain = LatentTree().fit(X), ChowLiuTree().fit(X)
    assert latent.n_hidden_ == 3
    assert latent.bic_ > plain.bic_
    new, truth = hidden_causes(1000, seed=1)
    assert latent.score(new) > plain.score(new)
    Z = latent.transform(new)
    assert Z.shape == (1000, latent.n_hidden_)
    assert np.abs(Z).max() <= 1.0
    for k in range(3):
        assert max(abs(np.corrcoef(Z[:, h], truth[:, k])[0, 1]) for h in range(Z.shape[1])) > 0.75


@pytest.mark.parametrize(("d", "noise", "seed"), [(3, 0.1, 1), (4, 0.15, 1), (3, 0.2, 0)])
def test_the_generating_latent_tree_is_recovered(d, noise, seed):
    tree = LatentTree().fit(hidden_causes(3000, seed, noise, d)[0])
    near = {frozenset(pair) for pair in tree.edges_}
    hidden = range(3 * d, tree.n_nodes)
    parents = [{h for h in hidden for v in range(k * d, k * d + d) if {h, v} in near} for k in range(3)]
    assert [len(group) for group in parents] == [1, 1, 1]
    a, b, c = (group.pop() for group in parents)
    assert len({a, b, c}) == 3
    assert {frozenset((a, b)), frozenset((b, c))} <= near
    assert len(near) == 3 * d + 2


def test_neighbour_joining_is_exact_for_distances_that_add_up():
    rng = np.random.default_rng(0)
    for n in (3, 4, 7):
        branches = [(v, n, 0.0) for v in range(3)]
        for v in range(3, n):  # split a branch by a joint, and hang the next leaf on it
            a, b, _ = branches.pop(int(rng.integers(len(branches))))
            branches += [(a, n + v - 2, 0.0), (b, n + v - 2, 0.0), (v, n + v - 2, 0.0)]
        lengths = _path_lengths([(a, b, float(rng.uniform(0.1, 1.0))) for a, b, _ in branches])
        D = np.array([[lengths[i, j] for j in range(n)] for i in range(n)])
        found = _path_lengths(neighbour_joining(D))
        assert np.array([[found[i, j] for j in range(n)] for i in range(n)]) == pytest.approx(D)


def test_expectation_maximisation_never_lowers_the_likelihood():
    X, _ = hidden_causes(400)
    values = [LatentTree(max_iter=k, smoothing=1e-9, tol=1e-12).fit(X).log_likelihood_ for k in (0, 1, 2, 5, 20)]
    assert (np.diff(values) >= -1e-6).all()


def test_without_hidden_causes_there_are_none():
    truth = random_tree(2, d=8)
    truth.conditional_ = np.where(np.arange(2) == 1, 0.8, 0.2) * np.ones((8, 2))
    X = truth.sample(3000, random_state=0)
    latent, plain = LatentTree().fit(X), ChowLiuTree().fit(X)
    assert latent.n_hidden_ == 0
    assert latent.log_likelihood_ == pytest.approx(plain.log_likelihood_)


@pytest.mark.parametrize("cls", [ChowLiuTree, LatentTree])
def test_columns_that_are_constant_or_copies_are_taken(cls):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 5))
    X[:, 1], X[:, 2], X[:, 3] = 0, 1, X[:, 0]
    tree = cls().fit(X)
    p = tree.marginals({0: 1})[0]
    assert np.isfinite(p).all()
    assert p[1] < 0.05
    assert p[2] > 0.95
    assert p[3] > 0.95


@pytest.mark.parametrize("cls", [ChowLiuTree, LatentTree])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 2], [1, 0]], "0 and 1 only, found 2"),
        ([[0, np.nan], [1, 0]], "NaN"),
        (np.zeros((0, 3)), "minimum of 1"),
        ([0, 1], "2D"),
    ],
)
def test_what_is_not_binary_is_refused(cls, X, message):
    with pytest.raises(ValueError, match=message):
        cls().fit(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree: tree.marginals({9: 1}), "9 is not a variable"),
        (lambda tree: tree.marginals({0: 0.5}), "evidence must be 0 or 1"),
        (lambda tree: tree.marginals(np.zeros((2, 4))), "column for each of the 6 variables"),
        (lambda tree: tree.marginals(soft={0: 1.5}), "probabilities from 0 to 1"),
        (lambda tree: tree.marginals(np.full((2, 6), np.nan), np.full((3, 6), 0.5)), "of one length"),
        (lambda tree: tree.joint([0, 0]), "different"),
        (lambda tree: tree.joint([]), "1 to 12"),
        (lambda tree: tree.sample(0), "size"),
        (lambda tree: tree.marginals({0: 1}, tol=0.0), "tol"),
    ],
)
def test_wrong_questions_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(random_tree(0))


def test_impossible_evidence_is_refused():
    tree = random_tree(0)
    tree.conditional_[1] = 0.0
    with pytest.raises(ValueError, match="probability 0"):
        tree.marginals({1: 1})


def test_a_file_whose_parents_are_no_tree_is_refused():
    tree = random_tree(0)
    tree.parents_ = np.array([-1, 2, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="not those of a tree"):
        tree._check_state()
