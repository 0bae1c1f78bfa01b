"""Training without labels finds the structure that is there, whatever the seed, the units and the order of the data."""

from __future__ import annotations

import functools
import itertools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import mercer
from mercer import _em
from mercer.learning import ConvergenceWarning
from mercer.markov import HiddenMarkovModel as HMM

pytestmark = pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")

TRANSITIONS = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
EMISSIONS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.05, 0.05, 0.2, 0.7]])


def paths(n=40, length=60, seed=0):
    random = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        states = [random.choice(3, p=[0.5, 0.3, 0.2])]
        while len(states) < length:
            states.append(random.choice(3, p=TRANSITIONS[states[-1]]))
        out.append(np.array(states))
    return out, random


def sticky_symbols(n=40, length=60, seed=0):
    drawn, random = paths(n, length, seed)
    return [[int(random.choice(4, p=EMISSIONS[s])) for s in states] for states in drawn], drawn


def sticky_vectors(n=20, length=50, seed=0):
    drawn, random = paths(n, length, seed)
    means, scales = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]), np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]])
    return [means[states] + scales[states] * random.normal(size=(length, 2)) for states in drawn], drawn


def supervised(X, y, **options):
    """The log-likelihood of the model that knows the states: a training without labels should reach about as much."""
    return HMM(**options).fit(X, [states.tolist() for states in y]).log_likelihood(X).sum()


def independent(X) -> float:
    """The log-likelihood of symbols drawn independently of each other."""
    _, count = np.unique(np.concatenate(X), return_counts=True)
    return float((count * np.log(count / count.sum())).sum())


@pytest.mark.parametrize("seed", range(3))
def test_symbols_without_labels_are_not_taken_as_independent(seed):
    X, y = sticky_symbols()
    model = HMM(3, random_state=seed).fit([[f"{s}" for s in x] for x in X])
    reached = model.log_likelihood([[f"{s}" for s in x] for x in X]).sum()
    assert reached > independent(X) + 200
    assert reached > supervised(X, y) - 5


@pytest.mark.parametrize("training", ["em", "viterbi"])
@pytest.mark.parametrize(("covariance", "seed"), [("diag", 0), ("full", 1), ("spherical", 2)])
def test_vectors_without_labels_reach_the_model_that_knows_the_states(covariance, training, seed):
    X, y = sticky_vectors(seed=seed)
    model = HMM(3, covariance=covariance, training=training, random_state=seed).fit(X)
    allowed = 5 if training == "em" else 40
    assert model.log_likelihood(X).sum() > supervised(X, y, covariance=covariance) - allowed


@pytest.mark.parametrize("seed", range(2))
def test_mixtures_without_labels_reach_the_model_that_knows_the_states(seed):
    drawn, random = paths(20, 50, seed)
    means = np.array([[[0, 0], [0, 6]], [[4, 0], [4, 6]], [[8, 0], [8, 6]]], float)
    X = [means[s, random.integers(0, 2, len(s))] + random.normal(size=(len(s), 2)) for s in drawn]
    known = supervised(X, drawn, emission="mixture", n_mixtures=2, random_state=0)
    model = HMM(3, emission="mixture", n_mixtures=2, random_state=seed).fit(X)
    assert model.log_likelihood(X).sum() > known - 10


@pytest.mark.parametrize(("sparse", "seed"), [(False, 0), (True, 1), (True, 2)])
def test_counts_without_labels_reach_the_model_that_knows_the_states(sparse, seed):
    drawn, random = paths(30, 30, seed)
    X = [np.stack([random.multinomial(4, EMISSIONS[s]) for s in states]).astype(float) for states in drawn]
    X = [csr_matrix(x) for x in X] if sparse else X
    model = HMM(3, emission="multinomial", random_state=seed).fit(X)
    assert model.log_likelihood(X).sum() > supervised(X, drawn, emission="multinomial") - 5


@pytest.mark.parametrize("seed", range(3))
def test_more_states_than_symbols_are_told_apart_by_what_follows(seed):
    """Period three over two symbols: 0, 0, 1, 0, 0, 1, … needs three states, two of which send out the same."""
    X = [[(t + shift) % 3 // 2 for t in range(40)] for shift in (0, 1, 2)] * 3
    model = HMM(3, random_state=seed, smoothing=1e-3).fit(X)
    assert model.log_likelihood(X).sum() > -0.1 * sum(map(len, X))


def test_states_that_differ_in_their_variance_alone_are_found():
    drawn, random = paths(10, 200, 1)
    X = [np.array([0.3, 3.0, 1.0])[states][:, None] * random.normal(size=(len(states), 1)) for states in drawn]
    model = HMM(3, random_state=0).fit(X)
    assert model.log_likelihood(X).sum() > supervised(X, drawn) - 5
    spreads = np.sqrt(np.sort(model.covariances_.ravel()))
    np.testing.assert_allclose(spreads, [0.3, 1.0, 3.0], rtol=0.25)


# ---------------------------------------------------------------------- units, order, repeats, constants


@functools.cache
def sticky_model(covariance, n=20, length=50):
    """Vectors, and a model of them that no test changes."""
    X, _ = sticky_vectors(n, length)
    return X, HMM(3, covariance=covariance, random_state=0).fit(X)


def names_of(one, other) -> tuple[np.ndarray, float]:
    """How the states of one prediction are called in another, and the share of positions at which this is so."""
    a, b = np.concatenate(one), np.concatenate(other)
    shares = {names: float((np.array(names)[a] == b).mean()) for names in itertools.permutations(range(3))}
    best = max(shares, key=shares.__getitem__)
    return np.array(best), shares[best]


@pytest.mark.parametrize("covariance", ["diag", "full", "spherical"])
@pytest.mark.parametrize(("scale", "offset"), [(1e6, 1e6), (1e-6, 0.0), (1.0, 1e6)])
def test_units_and_origin_do_not_matter(covariance, scale, offset):
    X, plain = sticky_model(covariance)
    changed = [scale * x + offset for x in X]
    other = HMM(3, covariance=covariance, random_state=0).fit(changed)
    names, share = names_of(plain.predict(X), other.predict(changed))
    assert share > 0.999
    np.testing.assert_allclose((other.emission_[names] - offset) / scale, plain.emission_, atol=2e-3)
    np.testing.assert_allclose(other.covariances_[names] / scale**2, plain.covariances_, atol=2e-3)
    np.testing.assert_allclose(other.transitions_[np.ix_(names, names)], plain.transitions_, atol=2e-3)
    shift = 2 * sum(len(x) for x in X) * np.log(scale)
    assert abs(other.log_likelihood(changed).sum() + shift - plain.log_likelihood(X).sum()) < 0.05


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_columns_in_different_units_do_not_matter(covariance):
    X, plain = sticky_model(covariance)
    changed = [x * [1e6, 1e-3] for x in X]
    other = HMM(3, covariance=covariance, random_state=0).fit(changed)
    assert names_of(plain.predict(X), other.predict(changed))[1] > 0.999


@pytest.mark.parametrize("kind", ["symbols", "vectors"])
def test_the_order_of_sequences_and_columns_does_not_matter(kind):
    X = sticky_symbols()[0] if kind == "symbols" else sticky_vectors()[0]
    plain = HMM(3, random_state=0).fit(X)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = HMM(3, random_state=0).fit([X[i] for i in order])
    assert abs(shuffled.log_likelihood(X).sum() - plain.log_likelihood(X).sum()) < 0.5
    assert names_of(shuffled.predict(X), plain.predict(X))[1] > 0.99
    if kind == "symbols":
        renamed = [[3 - s for s in x] for x in X]
        other = HMM(3, random_state=0).fit(renamed)
        assert abs(other.log_likelihood(renamed).sum() - plain.log_likelihood(X).sum()) < 0.5
    else:
        other = HMM(3, random_state=0).fit([x[:, ::-1] for x in X])
        assert names_of(other.predict([x[:, ::-1] for x in X]), plain.predict(X))[1] > 0.99


@pytest.mark.parametrize("kind", ["symbols", "vectors"])
def test_repeated_sequences_change_little_but_the_weight_of_the_prior(kind):
    X = sticky_symbols()[0] if kind == "symbols" else sticky_vectors()[0]
    plain, twice = HMM(3, random_state=0, smoothing=1e-6).fit(X), HMM(3, random_state=0, smoothing=1e-6).fit(X + X)
    assert abs(twice.log_likelihood(X).sum() - plain.log_likelihood(X).sum()) < 0.5


@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("value", [0.0, 7.0, 1e6])
def test_a_constant_column_changes_nothing(covariance, value):
    X, plain = sticky_model(covariance, 8, 30)
    wide = [np.insert(x, 1, value, axis=1) for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        other = HMM(3, covariance=covariance, random_state=0).fit(wide)
    names, share = names_of(plain.predict(X), other.predict(wide))
    assert share > 0.999
    np.testing.assert_allclose(other.transitions_[np.ix_(names, names)], plain.transitions_, atol=1e-2)
    np.testing.assert_allclose(other.emission_[names][:, [0, 2]], plain.emission_, atol=1e-2)
    np.testing.assert_allclose(other.emission_[:, 1], value)


@pytest.mark.parametrize("covariance", ["diag", "full", "spherical"])
@pytest.mark.parametrize("emission", ["gaussian", "mixture"])
def test_degenerate_vectors_give_finite_models(covariance, emission):
    for X in (
        [np.ones((5, 2)), np.ones((3, 2))],
        [np.tile([[1.0, 2.0]], (4, 1)), np.tile([[3.0, 2.0]], (4, 1))],
        [np.array([[0.0, 0.0]]), np.zeros((0, 2)), np.array([[1.0, 1.0]])],
        [np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 2, axis=1)],
    ):
        model = HMM(3, emission=emission, covariance=covariance, random_state=0).fit(X)
        assert np.isfinite(model.log_likelihood(X)).all()
        np.testing.assert_allclose(model.transitions_.sum(axis=1), 1.0)


def test_degenerate_symbols_give_finite_models():
    for X in ([["a"]], [["a"] * 5, []], [["a", "b"]], [[], ["a"], ["b"]], [[0, 0, 0]]):
        model = HMM(3, random_state=0).fit(X)
        assert np.isfinite(model.log_likelihood(X)).all()


# ---------------------------------------------------------------------- integers


FORMS = {
    "lists": lambda X: X,
    "arrays": lambda X: [np.array(x) for x in X],
    "columns": lambda X: [np.array(x)[:, None] for x in X],
    "lists of columns": lambda X: [[[s] for s in x] for x in X],
    "small integers": lambda X: [np.array(x, np.uint8) for x in X],
    "a matrix": np.array,
    "an array of columns": lambda X: np.array(X)[:, :, None],
    "numpy scalars": lambda X: [list(np.array(x)) for x in X],
}


@functools.cache
def named_symbols():
    """Integers that are symbols, their names, and a model of these."""
    X = [[10 * s - 5 for s in x] for x in sticky_symbols(20, 30)[0]]
    named = [[f"{s:+03d}" for s in x] for x in X]
    return X, named, HMM(3, random_state=0).fit(named)


@pytest.mark.parametrize("form", FORMS)
def test_integers_are_symbols(form, tmp_path):
    X, named, expected = named_symbols()
    integers = FORMS[form](X) if form != "small integers" else FORMS[form]([[s + 5 for s in x] for x in X])
    model = HMM(3, random_state=0).fit(integers)
    shift = 5 if form == "small integers" else 0
    assert (model.symbols_ - shift).tolist() == [-5, 5, 15, 25]
    np.testing.assert_allclose(model.log_likelihood(integers), expected.log_likelihood(named), atol=0.1)
    drawn, _ = model.sample([50, 3], random_state=0)
    assert all(isinstance(s, int) and s in model.symbols_ for s in drawn[0])
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.predict(integers) == model.predict(integers)
    assert again.sample(20, random_state=1) == model.sample(20, random_state=1)


def test_integer_symbols_that_are_new_and_empty_sequences_are_no_trouble():
    model = HMM(2, random_state=0).fit([[0, 1, 1], [], [1, 0]])
    assert [len(states) for states in model.predict([[0, 9, 1], [], [7]])] == [3, 0, 1]
    assert model.log_likelihood([[], [9]])[0] == 0.0
    assert np.isfinite(model.log_likelihood([[9, 9]])).all()
    assert model.predict([]) == []
    assert HMM(2).fit([[0, 1], [1, 0]], [["A", "B"], ["B", "A"]]).predict([[1, 0, 0]]) == [["B", "A", "A"]]


def test_integer_columns_are_counts_and_floats_are_vectors():
    random = np.random.default_rng(0)
    X = [random.poisson(2.0, size=(20, 3)) for _ in range(5)]
    counts = HMM(2, random_state=0).fit(X)
    expected = HMM(2, emission="multinomial", random_state=0).fit([x.astype(float) for x in X])
    np.testing.assert_allclose(counts.emission_, expected.emission_)
    assert counts.predict(X) == expected.predict([x.astype(float) for x in X])
    assert hasattr(HMM(2, random_state=0).fit([x.astype(float) for x in X]), "covariances_")
    column = [x[:, :1] for x in X]
    normal = HMM(2, emission="gaussian", random_state=0).fit(column)
    assert normal.predict(column) == normal.predict([x.astype(float) for x in column])
    whole = HMM(2, emission="categorical", random_state=0).fit([x.astype(float) for x in column])
    assert whole.symbols_.tolist() == sorted(set(np.concatenate(column).ravel().tolist()))


def test_strings_are_sequences_of_their_characters():
    model = HMM(2, random_state=0).fit(["abab", "", "ba"])
    assert model.predict(["abba"]) == model.predict([list("abba")])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 1], ["a"]], "sequence 1: expected integers"),
        ([[0, 1], [0.5]], "sequence 1: expected integers"),
        ([[0, 1], np.array([[1, 2]])], "same number of columns"),
        ([np.array([[1, -1]])], "emission='gaussian' takes integers as vectors"),
        ([[2**70]], "64 bits"),
    ],
)
def test_integers_among_other_things_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        HMM(2).fit(X)


def test_models_of_integers_and_of_names_take_their_own():
    integers, names = HMM(2, random_state=0).fit([[0, 1, 1]]), HMM(2, random_state=0).fit([["a", "b"]])
    for verb in ("predict", "log_likelihood", "predict_marginals"):
        with pytest.raises(ValueError, match="trained on integer symbols"):
            getattr(integers, verb)([["a"]])
        with pytest.raises(ValueError, match="not integer symbols"):
            getattr(names, verb)([[0, 1]])


def test_a_failed_fit_leaves_the_model():
    model = HMM(2, random_state=0).fit([["a", "b", "a"]])
    before = model.predict([["a", "b"]]), model.transitions_
    for bad in ([], [[]], [[0, 1], ["a"]], [np.array([[np.nan]])]):
        with pytest.raises(ValueError):
            model.fit(bad)
    model.emission = "poisson"
    with pytest.raises(ValueError, match="emission"):
        model.fit([["a"]])
    assert model.predict([["a", "b"]]) == before[0]
    assert model.transitions_ is before[1]


# ---------------------------------------------------------------------- some labels


def test_states_that_only_occur_in_sets_of_possible_labels_are_told_apart():
    """Two labels that are never known for sure begin different, or they would stay equal for ever."""
    X, drawn = sticky_vectors(20, 40)
    names = [["A" if s == 0 else {"B", "C"} for s in states] for states in drawn]
    model = HMM(random_state=0).fit(X, names)
    assert list(model.classes_) == ["A", "B", "C"]
    b, c = model.emission_[1:]
    assert np.linalg.norm(b - c) > 2
    right = [["ABC"[s] for s in states] for states in drawn]
    swapped = [["ACB"[s] for s in states] for states in drawn]
    assert max(model.score(X, right), model.score(X, swapped)) > 0.95


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_few_labels_start_vectors_anywhere(offset, covariance):
    X, drawn = sticky_vectors(20, 40)
    X = [x + offset for x in X]
    random = np.random.default_rng(5)
    some = [[int(s) if random.random() < 0.03 else None for s in states] for states in drawn]
    model = HMM(covariance=covariance, random_state=0).fit(X, some)
    assert model.score(X, [states.tolist() for states in drawn]) > 0.95


# ---------------------------------------------------------------------- parts


def test_training_goes_on_while_gains_grow_and_stops_when_little_is_left():
    saddle = list(np.cumsum([0.0, 1e-6, 2e-6, 4e-6, 8e-6]))
    assert not any(_em.is_over(saddle[:k], 1e-4) for k in range(1, 6))
    falling = list(100 * (1 - 0.95 ** np.arange(400.0)))
    first = next(k for k in range(1, 400) if _em.is_over(falling[:k], 1e-4))
    first_falling = first
    assert 0.9e-2 < 100 - falling[first - 1] <= 1.01e-2
    sudden = [0.0, 100.0, 100.5, 100.9, 101.2]  # a first gain that outdoes all others says nothing about what is left
    assert not any(_em.is_over(sudden[:k], 1e-4) for k in range(1, 6))
    slow = list(100 * (1 - 0.99 ** np.arange(3000.0)))
    first = next(k for k in range(1, 3000) if _em.is_over(slow[:k], 1e-4))
    assert 100 - slow[first - 1] <= 0.0101  # and not where a single gain is small
    assert not _em.is_over(falling, -1.0)
    assert _em.is_over([5.0, 5.0], 0.0)
    shifted = [value - 1e6 for value in falling]  # other units of vectors shift the objective
    assert next(k for k in range(1, 400) if _em.is_over(shifted[:k], 1e-4)) == first_falling


def test_clusters_of_separate_points_are_found():
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(50, 2)) + centre for centre in ([0, 0], [20, 0], [0, 20])])
    for seed in range(5):
        member = _em.clusters(points, 3, np.random.default_rng(seed))
        assert sorted(np.bincount(member).tolist()) == [50, 50, 50]
        assert all(len(set(member[a : a + 50].tolist())) == 1 for a in (0, 50, 100))
    weights = np.r_[np.full(100, 1e-9), np.ones(50)]  # what hardly counts has no centre of its own
    member = _em.clusters(points, 2, np.random.default_rng(0), weights)
    assert len(set(member[100:].tolist())) == 2


def test_neighbours_end_with_their_sequence():
    features = np.arange(1.0, 7.0)[:, None]
    np.testing.assert_allclose(
        _em.around(features, np.array([0, 2, 2, 6]), 2),
        [[0, 1], [0.5, 0], [0, 4.5], [1.5, 5.5], [3.5, 3], [4.5, 0]],
    )


def test_much_data_is_learnt_from_pieces_first():
    X, y = sticky_symbols(42, 500, seed=2)
    model = HMM(3, random_state=0).fit(X)
    assert model.log_likelihood(X).sum() > supervised(X, y) - 5
    objective = np.array(model.history_["objective"])
    assert (np.diff(objective) >= -1e-8 * abs(objective[-1])).all()
    assert np.isclose(model.log_likelihood(X).sum(), model.history_["log_likelihood"][-1], rtol=1e-6)


def test_a_vocabulary_that_pieces_do_not_hold_is_learnt_from_all_data():
    """Two states with words of their own, most of them rare: pieces of the data show only some."""
    random = np.random.default_rng(0)
    frequencies = 1.0 / np.arange(1, 4001)
    words = random.choice(4000, p=frequencies / frequencies.sum(), size=(500, 60))
    X = [[f"{'ab'[(t // 6) % 2]}{w}" for t, w in enumerate(row)] for row in words]
    model = HMM(2, random_state=0, n_init=1).fit(X)
    known = HMM().fit(X, [[(t // 6) % 2 for t in range(60)] for _ in X])
    assert model.log_likelihood(X).sum() > known.log_likelihood(X).sum() - 100


def test_a_run_that_does_not_converge_warns_where_it_was_called():
    with pytest.warns(ConvergenceWarning, match="max_iter=3") as caught:
        HMM(3, random_state=0, max_iter=3).fit(sticky_symbols(10, 20)[0])
    assert caught[0].filename == __file__
