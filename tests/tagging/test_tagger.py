"""The tagger: scikit-learn's contract, every form of input, every variant, and what it tells."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer.data import FeatureIndex, Sequences, Template
from mercer.learning import ConvergenceWarning
from mercer.tagging import Constraints, Tagger
from reference.chains import Enumeration
from reference.histories import without_seconds

pytestmark = pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")


def words(n=60, seed=0):
    """Sequences of words whose label depends on the word and on the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags, tokens = [], []
        for _ in range(rng.integers(1, 8)):
            before = tags[-1] if tags else "A"
            tag = rng.choice(
                ["A", "B", "C"], p={"A": [0.2, 0.7, 0.1], "B": [0.1, 0.2, 0.7], "C": [0.7, 0.1, 0.2]}[before]
            )
            tokens.append(f"{tag.lower()}{rng.integers(4)}" if rng.random() < 0.8 else f"x{rng.integers(3)}")
            tags.append(str(tag))
        X.append(tokens)
        y.append(tags)
    return X, y


def dicts(X):
    return [[{"w": token, "first": token[0], "bias": 1.0} for token in tokens] for tokens in X]


def numbers(n=30, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 6), 4)).astype(dtype) for _ in range(n)]
    return X, [(x @ [[1.0, 0, -1], [0, 2, 0], [0, 0, 1], [1, 1, 0]]).argmax(axis=1).tolist() for x in X]


# ---------------------------------------------------------------------------------------- scikit-learn


def test_the_constructor_only_stores():
    parameters = {"C": -5, "solver": object(), "penalty": "nonsense", "constraints": 3, "n_jobs": 0}
    tagger = Tagger(**parameters)
    assert {name: tagger.get_params()[name] for name in parameters} == parameters
    assert not [name for name in vars(tagger) if name.endswith("_")]


def test_cloning_keeps_parameters_and_nothing_else():
    tagger = Tagger(C=3.0, template=Template.load("words"), constraints=Constraints([("A", "B")])).set_params(tol=0.1)
    copy = clone(tagger)
    assert copy.get_params().keys() == tagger.get_params().keys()
    assert (copy.C, copy.tol, copy.template, copy.constraints) == (
        3.0,
        0.1,
        tagger.template,
        tagger.constraints,
    )
    fitted = Tagger().fit(*words())
    assert not hasattr(clone(fitted), "coef_")


@pytest.mark.parametrize("form", ["lists", "sequences"])
def test_grid_search_and_cross_validation_work(form):
    X, y = numbers()
    if form == "sequences":
        X = Sequences.from_matrices(X)
    search = GridSearchCV(Tagger(max_iter=30), {"C": [1e-4, 10.0]}, cv=3, n_jobs=1).fit(X, y)
    assert search.best_params_ == {"C": 10.0}
    assert len(search.predict(X)) == len(y)
    scores = cross_val_score(Tagger(C=10.0, max_iter=30), X, y, cv=3)
    assert scores.shape == (3,)
    assert (scores > 0.7).all()


def test_grid_search_works_on_named_features():
    X, y = words()
    search = GridSearchCV(Tagger(max_iter=20), {"C": [1.0], "features": ["vocabulary", "hashing"]}, cv=3)
    assert search.fit(dicts(X), y).best_score_ > 0.7


def test_pickled_taggers_predict_the_same():
    X, y = lawful()
    tagger = Tagger(constraints=RULES, C=0.5).fit(X, y)
    again = pickle.loads(pickle.dumps(tagger))
    assert again.predict(X) == tagger.predict(X)
    np.testing.assert_array_equal(again.coef_, tagger.coef_)


def test_fitting_twice_is_fitting_once():
    X, y = words()
    tagger = Tagger().fit(dicts(X), y)
    before = tagger.coef_.copy()
    tagger.fit(*numbers())
    tagger.fit(dicts(X), y)
    np.testing.assert_array_equal(tagger.coef_, before)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron", "passive-aggressive"])
@pytest.mark.parametrize("jobs", [2, 3, -1])
def test_the_result_does_not_depend_on_the_number_of_threads(solver, jobs):
    X, y = words(300)
    one, many = (Tagger(solver=solver, max_iter=5, n_jobs=n, random_state=0).fit(dicts(X), y) for n in (1, jobs))
    np.testing.assert_array_equal(one.coef_, many.coef_)
    assert one.predict(dicts(X)) == many.predict(dicts(X))
    assert [m.tolist() for m in one.predict_marginals(dicts(X))] == [
        m.tolist() for m in many.predict_marginals(dicts(X))
    ]


# ---------------------------------------------------------------------------------------------- inputs


def test_all_forms_of_named_features_give_the_same_model():
    pa = pytest.importorskip("pyarrow")
    X, y = words()
    forms = {
        "dicts": [[{"": token} for token in tokens] for tokens in X],
        "lists": [[[f"={token}"] for token in tokens] for tokens in X],
        "tuples": [[(f"={token}",) for token in tokens] for tokens in X],
        "strings": [[f"={token}" for token in tokens] for tokens in X],
        "arrow": pa.array([[f"={token}" for token in tokens] for tokens in X]),
        "arrow lists": pa.array([[[f"={token}"] for token in tokens] for tokens in X]),
    }
    index = FeatureIndex()
    forms["sequences"] = index.learn(forms["lists"])
    models = {name: Tagger().fit(form, y) for name, form in forms.items()}
    for name, model in models.items():
        np.testing.assert_array_equal(model.coef_, models["dicts"].coef_, err_msg=name)
        for other, form in forms.items():
            assert model.predict(form) == models["dicts"].predict(forms["dicts"]), (name, other)


def test_all_forms_of_numbers_give_the_same_model():
    pa = pytest.importorskip("pyarrow")
    X, y = numbers()
    forms = {
        "arrays": X,
        "lists": [x.tolist() for x in X],
        "csr": [csr_matrix(x) for x in X],
        "sequences": Sequences.from_matrices(X),
        "sparse sequences": Sequences.from_matrices([csr_matrix(x) for x in X]),
        "arrow": pa.array([x.tolist() for x in X], pa.list_(pa.list_(pa.float64(), 4))),
        "arrow lists": pa.array([x.tolist() for x in X]),
        "view": (Sequences.from_matrices([X[0], *X, X[0]]))[1:-1],
    }
    reference = Tagger(weights="all").fit(X, y)
    for name, form in forms.items():
        model = Tagger(weights="all").fit(form, y)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4, err_msg=name)
        assert reference.predict(form) == reference.predict(X), name
        np.testing.assert_allclose(model.log_likelihood(form, y), reference.log_likelihood(X, y), atol=1e-3)


def test_single_precision_is_close_to_double():
    X, y = numbers()
    double = Tagger().fit(X, y)
    single = Tagger().fit([x.astype(np.float32) for x in X], y)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-2)
    assert single.predict([x.astype(np.float32) for x in X]) == double.predict(X)
    assert single.predict_marginals([x.astype(np.float32) for x in X])[0].shape == (len(X[0]), 3)


@pytest.mark.parametrize("labels", [["A", "B", "C"], [1, 2, 3], [0.5, 1.5, 2.5], [True, False, True]])
def test_labels_come_back_as_they_were_given(labels):
    X, y = words()
    y = [[labels["ABC".index(tag)] for tag in tags] for tags in y]
    predicted = Tagger().fit(dicts(X), y).predict(dicts(X))
    assert {type(tag) for tags in predicted for tag in tags} == {type(labels[0])}
    assert {tag for tags in predicted for tag in tags} <= set(labels)
    from_arrays = Tagger().fit(dicts(X), [np.array(tags) for tags in y])
    assert from_arrays.predict(dicts(X)) == predicted


def test_hashing_with_room_is_as_good_as_a_vocabulary():
    X, y = words()
    names, hashed = Tagger().fit(dicts(X), y), Tagger(features="hashing", n_bits=18).fit(dicts(X), y)
    assert hashed.n_features_in_ == 2**18
    assert hashed.predict(dicts(X)) == names.predict(dicts(X))
    np.testing.assert_allclose(hashed.log_likelihood(dicts(X), y), names.log_likelihood(dicts(X), y), atol=1e-3)
    assert hashed.top_features(1, label="A")[0][0].startswith("hash[")


def test_a_template_makes_the_features():
    X, y = words()
    columns = [[(token, token[0]) for token in tokens] for tokens in X]
    template = Template.parse("U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]/%x[1,0]\nB")
    tagger = Tagger(template=template).fit(columns, y)
    by_hand = Tagger().fit([template.expand(sentence)[0] for sentence in columns], y)
    np.testing.assert_array_equal(tagger.coef_, by_hand.coef_)
    assert tagger.predict(columns) == by_hand.predict([template.expand(s)[0] for s in columns])
    assert tagger.index_.names() == by_hand.index_.names()


# -------------------------------------------------------------------------------------- partial labels


def test_hidden_labels_are_recovered():
    X, y = words(200)
    rng = np.random.default_rng(0)
    hidden = [[None if rng.random() < 0.5 else tag for tag in tags] for tags in y]
    full, partial = Tagger().fit(dicts(X), y), Tagger().fit(dicts(X), hidden)
    test_X, test_y = words(100, seed=1)
    assert partial.score(dicts(test_X), test_y) > full.score(dicts(test_X), test_y) - 0.05
    assert partial.score(dicts(test_X), test_y) > 0.75


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron", "passive-aggressive"])
def test_every_solver_takes_sets_of_labels(solver):
    X, y = words(200)
    rng = np.random.default_rng(0)
    loose = [[tag if rng.random() < 0.5 else {tag, str(rng.choice(["A", "B", "C"]))} for tag in tags] for tags in y]
    tagger = Tagger(solver=solver, random_state=0).fit(dicts(X), loose)
    assert tagger.score(dicts(X), y) > 0.7


def test_the_score_leaves_hidden_labels_out():
    X, y = words()
    tagger = Tagger().fit(dicts(X), y)
    predicted = tagger.predict(dicts(X))
    right = [[t if t == p else None for t, p in zip(a, b, strict=True)] for a, b in zip(y, predicted, strict=True)]
    assert tagger.score(dicts(X), right) == 1.0


# ----------------------------------------------------------------------------------------- constraints


RULES = Constraints([("A", "A"), ("B", "C")], forbidden_start=["C"], forbidden_end=["A"])


def lawful(n=60, seed=0):
    X, y = words(n, seed)
    chosen = [i for i, tags in enumerate(y) if RULES.allows(tags)]
    assert len(chosen) > 5
    return dicts([X[i] for i in chosen]), [y[i] for i in chosen]


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron", "passive-aggressive"])
def test_predictions_never_break_the_rules(solver):
    tagger = Tagger(solver=solver, constraints=RULES, random_state=0, max_iter=10).fit(*lawful(200))
    X = dicts(words(100, seed=3)[0])
    free = Tagger(solver=solver, random_state=0, max_iter=10).fit(*map(list, (dicts(words()[0]), words()[1])))
    assert not all(map(RULES.allows, free.predict(X)))
    assert all(map(RULES.allows, tagger.predict(X)))
    assert all(RULES.allows(tags) for draws in tagger.sample(X, 3) for tags in draws)
    assert all(RULES.allows(tags) for best in tagger.k_best(X, 3) for tags, _ in best)


def test_forbidden_transitions_are_shown_as_such():
    tagger = Tagger(constraints=RULES).fit(*lawful())
    assert np.argwhere(np.isneginf(tagger.transitions_)).tolist() == [[0, 0], [1, 2]]
    assert np.isneginf(tagger.start_).tolist() == [False, False, True]
    assert np.isneginf(tagger.end_).tolist() == [True, False, False]


def test_the_probability_of_what_is_forbidden_is_zero():
    X, y = lawful()
    tagger = Tagger(constraints=RULES).fit(X, y)
    assert tagger.log_likelihood([X[0][:1] * 2], [["A", "A"]])[0] == -np.inf
    assert tagger.predict_marginals(X)[0][0, 2] == 0.0


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron", "passive-aggressive"])
def test_labels_that_break_the_rules_are_refused_by_number(solver):
    X, y = lawful()
    X, y = [*X[:3], X[0][:1] * 2], [*y[:3], ["A", "A"]]
    X, y = X[:2] + X[3:] + X[2:3], y[:2] + y[3:] + y[2:3]
    with pytest.raises(ValueError, match="example 2"):
        Tagger(solver=solver, constraints=RULES).fit(X, y)


# ------------------------------------------------------------------------------------- forced decoding


def test_forced_decoding_gives_the_best_labelling_that_is_allowed():
    X, y = words()
    X = dicts(X)
    tagger = Tagger().fit(X, y)
    i = next(i for i, tags in enumerate(y) if len(tags) == 4)
    allowed = [None, "C", {"A", "B"}, None]
    best = max(
        (z for z in itertools.product("ABC", repeat=4) if z[1] == "C" and z[2] in "AB"),
        key=lambda z: tagger.log_likelihood([X[i]], [list(z)])[0],
    )
    assert tagger.predict([X[i]], allowed=[allowed]) == [list(best)]
    marginals = tagger.predict_marginals([X[i]], allowed=[allowed])[0]
    assert marginals[1].tolist() == [0.0, 0.0, pytest.approx(1.0, abs=1e-12)]
    assert marginals[2, 2] == 0.0
    assert all(tags[1] == "C" for tags, _ in tagger.k_best([X[i]], 5, allowed=[allowed])[0])
    assert all(tags[1] == "C" for tags in tagger.sample([X[i]], 5, allowed=[allowed])[0])
    free = [None] * 4
    assert tagger.predict([X[i]], allowed=[free]) == tagger.predict([X[i]])


def test_forced_decoding_refuses_what_cannot_be():
    tagger = Tagger(constraints=RULES).fit(*lawful())
    x = [{"w": "a0"}, {"w": "a1"}]
    with pytest.raises(ValueError, match="no labelling"):
        tagger.predict([x], allowed=[["A", "A"]])
    with pytest.raises(ValueError, match="unknown label 'Z'"):
        tagger.predict([x], allowed=[["Z", None]])
    with pytest.raises(ValueError, match="sequence 0"):
        tagger.predict([x], allowed=[[None]])
    with pytest.raises(ValueError, match="empty"):
        tagger.predict([x], allowed=[[set(), None]])


# ----------------------------------------------------------------------------- transitions and weights


@pytest.mark.parametrize(
    "verb", ["predict", "predict_marginals", "k_best", "sample", "log_likelihood", "entropy", "score"]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_sequence_without_a_labelling_among_others_is_refused_by_every_verb(verb, at):
    """A begins none and B ends none: two positions have one labelling, a single position has none."""
    rules = Constraints(forbidden_start=["A"], forbidden_end=["B"])
    X, Y = [["a", "b", "a"], ["b", "a"]] * 3, [["B", "B", "A"], ["B", "A"]] * 3
    tagger = Tagger(constraints=rules, max_iter=5, tol=1.0).fit(X, Y)
    mixed, labels = X[:2], Y[:2]
    mixed.insert(at, ["a"])
    labels.insert(at, ["A"])
    more = {"k_best": (2,), "log_likelihood": (labels,), "score": (labels,)}.get(verb, ())
    with pytest.raises(ValueError, match="leave no labelling"):
        getattr(tagger, verb)(mixed, *more)
    if verb not in ("log_likelihood", "entropy", "score"):
        allowed = [[None, None, None], ["A", None], [None, None]]
        with pytest.raises(ValueError, match="leave no labelling"):
            getattr(tagger, verb)([X[0], X[1], X[1]], *more, allowed=allowed)


def switches(n=150, seed=0):
    """The label stays when the feature is "keep" and flips when it is "flip"."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tokens = [str(t) for t in rng.choice(["keep", "flip"], size=8)]
        tags = [0]
        for token in tokens[1:]:
            tags.append(tags[-1] if token == "keep" else 1 - tags[-1])
        X.append(tokens)
        y.append(tags)
    return X, y


def test_transitions_that_depend_on_the_observation_solve_what_others_cannot():
    X, y = switches()
    test = switches(seed=1)
    assert Tagger().fit(X, y).score(*test) < 0.7
    tagger = Tagger(transitions="features").fit(X, y)
    assert tagger.score(*test) == 1.0
    template = Template.parse("U:x\nB:%x[0,0]")
    columns = [[(token,) for token in tokens] for tokens in X]
    own = Tagger(transitions="features", template=template).fit(columns, y)
    assert own.score([[(token,) for token in tokens] for tokens in test[0]], test[1]) == 1.0
    index = FeatureIndex()
    edges = index.learn(X).rows
    given = Sequences(np.ones((edges.shape[0], 1)), np.arange(0, 1201, 8), edges=edges)
    assert Tagger(transitions="features").fit(given, y).score(given, y) == 1.0
    assert Tagger(transitions="dense").fit(given, y).structure_.n_edge_features == 0


def test_transitions_that_were_not_seen_stay_at_zero():
    X = [["a", "b", "c"], ["a", "b"], ["b", "c"]] * 5
    y = [["A", "B", "C"], ["A", "B"], ["B", "C"]] * 5
    for solver in ("lbfgs", "owlqn", "sgd", "averaged-perceptron", "passive-aggressive"):
        tagger = Tagger(solver=solver, transitions="observed", random_state=0).fit(X, y)
        seen = np.zeros((3, 3), bool)
        seen[0, 1] = seen[1, 2] = True
        assert not tagger.transitions_[~seen].any(), solver
    dense = Tagger().fit(X, y)
    assert dense.transitions_[~seen].all()


def test_observed_weights_exist_only_for_pairs_that_occur():
    X = [[f"w{k}" for k in range(6)]] * 3
    y = [list("ABCDEF")] * 3
    observed, every = Tagger().fit(X, y), Tagger(weights="all").fit(X, y)
    assert observed.structure_.slices["nodes"].stop == 6
    assert every.structure_.slices["nodes"].stop == 36
    for k, label in enumerate("ABCDEF"):
        weights = observed.feature_weights(label)
        assert np.flatnonzero(weights).tolist() == [k]
        assert np.count_nonzero(every.feature_weights(label)) == 6
        assert observed.top_features(1, label=label) == [(f"w{k}", weights[k])]
    assert observed.predict(X) == every.predict(X) == y


def test_an_l1_model_keeps_only_the_weights_that_are_not_zero():
    X, y = words(150)
    full = Tagger(solver="owlqn", penalty="l2").fit(dicts(X), y)
    sparse = Tagger(solver="owlqn", penalty="l1", C=0.3).fit(dicts(X), y)
    assert sparse.structure_.n_weights < full.structure_.n_weights
    assert sparse.score(dicts(X), y) > 0.7
    objective = 0.3 * -sparse.log_likelihood(dicts(X), y).sum() + np.abs(sparse.coef_).sum()
    assert np.isclose(objective, sparse.history_["objective"][-1], rtol=1e-9)


# ---------------------------------------------------------------------------------------- what it says


@pytest.fixture(scope="module")
def fitted():
    X, y = words()
    return Tagger(C=0.5).fit(dicts(X), y)


def oracle(tagger, x) -> Enumeration:
    theta = tagger.structure_.scores(tagger.coef_, tagger._inputs([x]))
    return Enumeration(theta.nodes.copy(), theta.transitions, theta.start, theta.end)


X4 = dicts([["a0", "x1", "b2", "c3"]])[0]


def test_log_likelihoods_of_all_labellings_are_those_of_a_distribution(fitted):
    every = [list(z) for z in itertools.product(fitted.classes_.tolist(), repeat=4)]
    found = fitted.log_likelihood([X4] * len(every), every)
    assert np.isclose(np.exp(found).sum(), 1.0)
    enumerated = oracle(fitted, X4)
    np.testing.assert_allclose(found, enumerated.scores - enumerated.log_partition)
    hidden = fitted.log_likelihood([X4], [[None, "B", {"A", "C"}, None]])[0]
    agree = [p for z, p in zip(every, found, strict=True) if z[1] == "B" and z[2] in "AC"]
    assert np.isclose(hidden, np.log(np.exp(agree).sum()))


def test_k_best_are_the_most_probable_labellings_with_their_log_probabilities(fitted):
    enumerated = oracle(fitted, X4)
    best = fitted.k_best([X4, []], 100)
    assert best[1] == [([], 0.0)]
    assert len(best[0]) == 81
    order = np.argsort(-enumerated.scores)
    np.testing.assert_allclose([p for _, p in best[0]], (enumerated.scores - enumerated.log_partition)[order])
    assert best[0][0][0] == fitted.predict([X4])[0] == fitted.classes_[enumerated.labellings[order[0]]].tolist()
    assert len({tuple(tags) for tags, _ in best[0]}) == 81


def test_marginals_and_entropy_equal_brute_force(fitted):
    enumerated = oracle(fitted, X4)
    np.testing.assert_allclose(fitted.predict_marginals([X4])[0], enumerated.node_marginals(), atol=1e-12)
    assert np.isclose(fitted.entropy([X4, []])[0], enumerated.entropy())
    assert fitted.entropy([X4, []])[1] == 0


def test_samples_follow_the_marginals():
    X, y = words()
    tagger = Tagger(C=0.5, random_state=0).fit(dicts(X), y)
    n = 4000
    draws = np.array(tagger.sample([X4], n)[0])
    for t, p in enumerate(tagger.predict_marginals([X4])[0]):
        counts = [(draws[:, t] == c).sum() for c in tagger.classes_]
        assert chisquare(counts, p / p.sum() * n).pvalue > 1e-3


@pytest.mark.parametrize("seed", [3, np.int64(3), "state"])
def test_samples_repeat_with_a_seed(seed):
    X, y = words()
    tagger = Tagger(max_iter=5).fit(dicts(X), y)

    def draw():
        return tagger.set_params(random_state=np.random.RandomState(3) if seed == "state" else seed).sample(dicts(X), 2)

    assert draw() == draw()


def test_the_history_tells_of_the_fit(fitted):
    X, y = words()
    objective = 0.5 * -fitted.log_likelihood(dicts(X), y).sum() + 0.5 * fitted.coef_ @ fitted.coef_
    assert np.isclose(fitted.history_["objective"][-1], objective, rtol=1e-9)
    assert fitted.n_iter_ == len(fitted.history_["objective"]) == len(fitted.history_["seconds"])
    assert fitted.converged_


def test_weights_are_shown_by_name(fitted):
    assert fitted.transitions_.shape == (3, 3)
    assert fitted.classes_.tolist() == ["A", "B", "C"]
    assert fitted.transitions_[0].argmax() == 1  # A is mostly followed by B
    top = fitted.top_features(3, label="B")
    assert top[0][0] == "first=b"
    assert [w for _, w in top] == sorted((w for _, w in top), reverse=True)
    with pytest.raises(ValueError, match="unknown label 'Z'"):
        fitted.top_features(label="Z")


# -------------------------------------------------------------------------------------------- going on


def test_early_stopping_keeps_the_best_weights():
    X, y = words(30)
    rng = np.random.default_rng(0)
    noisy = [[str(rng.choice(["A", "B", "C"])) if rng.random() < 0.4 else tag for tag in tags] for tags in y]
    dev = dicts(words(30, seed=9)[0]), words(30, seed=9)[1]
    rare = [[{**token, "id": f"{i}-{t}"} for t, token in enumerate(x)] for i, x in enumerate(dicts(X))]
    tagger = Tagger(solver="averaged-perceptron", max_iter=60, patience=4, random_state=0).fit(rare, noisy, dev=dev)
    scores = tagger.history_["dev_score"]
    assert np.isclose(tagger.score(*dev), max(scores))
    best = int(np.argmax(scores))
    assert len(scores) == best + 1 + 4 < 60
    short = Tagger(solver="averaged-perceptron", max_iter=best + 1, random_state=0).fit(rare, noisy)
    np.testing.assert_allclose(tagger.coef_, short.coef_)


def test_a_warm_start_goes_on_with_new_features_and_labels():
    X, y = words(100)
    tagger = Tagger(warm_start=True, C=1.0, tol=1e-8, max_iter=2000).fit(dicts(X[:50]), y[:50])
    extra_X = [*dicts(X), [{"w": "new", "odd": True}, {"w": "a0"}]]
    extra_y = [*y, ["0new", "A"]]
    tagger.fit(extra_X, extra_y)
    cold = Tagger(C=1.0, tol=1e-8, max_iter=2000).fit(extra_X, extra_y)
    assert tagger.classes_.tolist() == ["0new", "A", "B", "C"]
    np.testing.assert_allclose(
        tagger.log_likelihood(extra_X, extra_y), cold.log_likelihood(extra_X, extra_y), atol=0.02
    )
    again = Tagger(warm_start=True, C=1.0, tol=1e-5, max_iter=2000).fit(extra_X, extra_y)
    first = again.n_iter_
    again.fit(extra_X, extra_y)
    assert again.n_iter_ < first / 2


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "passive-aggressive"])
def test_partial_fit_learns_as_data_comes_with_new_features_and_labels(solver):
    X, y = words(240)
    tagger = Tagger(solver=solver, random_state=0, C=1.0)
    tagger.partial_fit([["a0", "b0"]] * 5, [["A", "B"]] * 5)
    assert tagger.classes_.tolist() == ["A", "B"]
    for k in range(0, 240, 40):
        tagger.partial_fit(dicts(X[k : k + 40]), y[k : k + 40])
    assert tagger.classes_.tolist() == ["A", "B", "C"]
    test = words(60, seed=5)
    assert tagger.score(dicts(test[0]), test[1]) > 0.7
    assert tagger.n_iter_ == 7
    known = Tagger(solver=solver, random_state=0).partial_fit([["a0"]], [["A"]], classes=["A", "B", "C"])
    assert known.classes_.tolist() == ["A", "B", "C"]


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "passive-aggressive"])
def test_a_partial_fit_that_fails_leaves_the_model_as_it_was(solver):
    X, y = words()
    tagger = Tagger(solver=solver, random_state=0).partial_fit(dicts(X), y)
    before = tagger.predict(dicts(X)), tagger.predict_marginals(dicts(X))[0]
    with pytest.raises(ValueError):
        tagger.partial_fit([[{"brand": "new"}, {"w": "a0"}]], [["A"]])
    with pytest.raises(ValueError):
        tagger.partial_fit([[{"brand": "new"}]], [["Z"]], classes=["A", "B", "C"])
    assert tagger.predict(dicts(X)) == before[0]
    np.testing.assert_array_equal(tagger.predict_marginals(dicts(X))[0], before[1])


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "passive-aggressive"])
def test_ctrl_c_stops_a_loop_of_partial_fits(solver, monkeypatch):
    from mercer.learning.solvers.online import Epochs

    X, y = words()
    tagger = Tagger(solver=solver, random_state=0).partial_fit(X, y)
    before = tagger.predict(X)

    def strikes(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Epochs, "run", strikes)
    with pytest.raises(KeyboardInterrupt):
        tagger.partial_fit([["new"]], [["D"]])
    monkeypatch.undo()
    assert tagger.predict(X) == before
    assert tagger.partial_fit(X, y).n_iter_ == 2


@pytest.mark.parametrize("warm", [False, True])
def test_a_fit_that_fails_leaves_the_model_as_it_was(warm):
    X, y = words()
    tagger = Tagger(warm_start=warm).fit(dicts(X), y)
    before = tagger.predict(dicts(X))
    with pytest.raises(ValueError):
        tagger.set_params(constraints=Constraints([("A", "B"), ("Q", "R")])).fit(
            [["n1", "n2"]] * 2, [["A", "B"], ["Q", "R"]]
        )
    with pytest.raises(ValueError):
        tagger.set_params(constraints=None).fit([["n1", "n2"]], [["A"]])
    assert tagger.predict(dicts(X)) == before


# ----------------------------------------------------------------------------------------- model files

VARIANTS = {
    "dicts": (Tagger(), lambda: (dicts(words()[0]), words()[1])),
    "numbers": (Tagger(), numbers),
    "float32": (Tagger(), lambda: numbers(dtype=np.float32)),
    "csr": (Tagger(), lambda: ([csr_matrix(x) for x in numbers()[0]], numbers()[1])),
    "hashing": (Tagger(features="hashing", n_bits=10), words),
    "all weights": (Tagger(weights="all"), words),
    "observed transitions": (Tagger(transitions="observed"), words),
    "edges from features": (Tagger(transitions="features"), words),
    "hashed edges": (Tagger(transitions="features", features="hashing", n_bits=8), words),
    "l1": (Tagger(solver="owlqn", penalty="l1"), words),
    "l1 edges": (Tagger(solver="owlqn", penalty="l1", transitions="features"), words),
    "elasticnet sgd": (Tagger(solver="sgd", penalty="elasticnet", l1_ratio=0.2, random_state=3), words),
    "perceptron": (Tagger(solver="averaged-perceptron", random_state=0), words),
    "constraints": (Tagger(constraints=RULES), lawful),
    "template": (
        Tagger(template=Template.parse("U0:%x[0,0]\nU1:%x[-1,0]\nB")),
        lambda: ([[(t,) for t in x] for x in words()[0]], words()[1]),
    ),
    "template with edges": (
        Tagger(template=Template.parse("U0:%x[0,0]\nB1:%x[0,0]"), transitions="features"),
        lambda: ([[(t,) for t in x] for x in words()[0]], words()[1]),
    ),
    "template with plain transitions": (
        Tagger(template=Template.parse("U0:%x[0,0]\nB")),
        lambda: ([[(t,) for t in x] for x in words()[0]], words()[1]),
    ),
    "number labels": (
        Tagger(),
        lambda: (words()[0], [["ABC".index(t) for t in tags] for tags in words()[1]]),
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_model_comes_back_the_same(variant, tmp_path):
    tagger, data = VARIANTS[variant]
    X, y = data()
    tagger = clone(tagger).set_params(max_iter=8).fit(X, y)
    mercer.save(tagger, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert isinstance(again, Tagger)
    assert again.predict(X) == tagger.predict(X)
    for a, b in zip(again.predict_marginals(X), tagger.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.classes_.tolist() == tagger.classes_.tolist()
    assert without_seconds(again.history_) == without_seconds(tagger.history_)
    assert again.get_params().keys() == tagger.get_params().keys()
    for name, value in tagger.get_params().items():
        assert again.get_params()[name] == value, name
    label = tagger.classes_[0].item()
    assert again.top_features(3, label=label) == tagger.top_features(3, label=label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.set_params(warm_start=True).fit(X, y)
    mercer.save(again, tmp_path / "model")


def test_a_loaded_online_model_can_learn_on(tmp_path):
    X, y = words()
    tagger = Tagger(solver="sgd", random_state=0).partial_fit(X, y)
    mercer.save(tagger, tmp_path / "model")
    again = mercer.load(tmp_path / "model").partial_fit([["brand new"]], [["D"]])
    assert again.classes_.tolist() == ["A", "B", "C", "D"]


def test_a_forked_process_goes_on_on_one_thread():
    X, y = words()
    tagger = Tagger(n_jobs=2, max_iter=3, tol=1.0).fit(X * 200, y * 200)
    expected, weights = tagger.predict(X * 200), tagger.coef_.copy()

    def repeats() -> bool:
        same = tagger.predict(X * 200) == expected
        return same and np.array_equal(tagger.fit(X * 200, y * 200).coef_, weights)

    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(repeats()))
    child.start()
    child.join(60)
    hung = child.is_alive()
    child.kill()
    assert not hung
    assert queue.get() is True
