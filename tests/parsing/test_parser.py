"""Parser: learning by counting and by margin, every loss and solver, files, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.datasets import make_treebank
from mercer.learning.losses import Hinge, Log, RelativeMargin
from mercer.parsing import Grammar, ParseError, Parser, Tree, TreeStructure, read_trees
from mercer.structured import StructuredPredictor
from reference.histories import without_seconds
from reference.names import stable

TREES = read_trees("""
    (S (NP (Det the) (N dog)) (VP (V saw) (NP (Det a) (N cat))))
    (S (NP (N cats)) (VP (VP (V saw) (NP (Det the) (N dog))) (PP (P with) (NP (N eyes)))))
    (S (NP (Det a) (N cat)) (VP (V saw) (NP (NP (Det the) (N park)) (PP (P with) (NP (N dogs))))))
    (S (NP (Det the) (N cat)) (VP (VP (V slept)) (PP (P in) (NP (Det the) (N park)))))
""")


@pytest.fixture(scope="module")
def bank():
    return make_treebank(100, n_labels=6, n_tags=12, n_rules=50, max_length=7, random_state=2)


def test_trained_weights_recover_a_grammars_parses():
    """Trees are the best ones of a planted grammar; training finds weights that give them back."""
    sentences, trees = make_treebank(140, n_labels=6, n_tags=12, n_rules=50, max_length=7)
    planted = Grammar.from_trees(trees)
    planted = planted.with_weights(np.random.default_rng(0).normal(size=len(planted)))
    trees = [planted.parse(sentence) for sentence in sentences]
    train, test = slice(0, 100), slice(100, None)
    parser = Parser(C=10.0, grammar=planted, random_state=0, tol=0.05).fit(sentences[train], trees[train])
    assert parser.score(None, trees[train]) == 1.0
    assert parser.score(None, trees[test]) > 0.95


@pytest.mark.parametrize("cost", ["bracket", "zero-one", "f1"])
def test_the_hinge_bounds_the_cost_and_the_gap_closes(bank, cost):
    parser = Parser(cost=cost, C=0.3, tol=1e-3, random_state=0).fit(None, bank.trees)
    assert parser.converged_
    assert parser.history_["gap"][-1] <= 1e-3
    costs = [
        parser.structure_.cost(true, found)
        for true, found in zip(bank.trees, parser.predict(bank.sentences), strict=True)
    ]
    hinge = (parser.history_["primal"][-1] - 0.5 * parser.coef_ @ parser.coef_) / 0.3
    assert sum(costs) <= hinge + 1e-6


@pytest.mark.parametrize("solver", ["cutting-plane", "bmrm"])
@pytest.mark.parametrize("cost", ["bracket", "zero-one", "f1"])
def test_solvers_reach_one_optimum(bank, cost, solver):
    trees = bank.trees[:60]
    settings = {"cost": cost, "C": 0.1, "tol": 1e-4}
    values = [
        Parser(solver=name, **settings, random_state=0, max_iter=300).fit(None, trees).history_["objective"][-1]
        for name in ("bcfw", solver)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-3)


def test_batches_train_as_the_plain_structure_does(bank):
    """The Parser and StructuredPredictor with the same structure walk the same way."""
    trees = bank.trees[:40]
    for features in ("rules", "rules+boundaries"):
        parser = Parser(C=0.2, features=features, random_state=0, max_iter=6, tol=0.0)
        with pytest.warns(mercer.learning.ConvergenceWarning):
            parser.fit(None, trees)
        structure = TreeStructure(Grammar.from_trees(trees, cycles="once"), features=features)
        plain = StructuredPredictor(structure, C=0.2, random_state=0, max_iter=6, tol=0.0)
        with pytest.warns(mercer.learning.ConvergenceWarning):
            plain.fit([tree.leaves() for tree in trees], trees)
        np.testing.assert_allclose(parser.coef_, plain.coef_, atol=1e-9)
        assert parser.predict(bank.sentences[:5]) == plain.predict(bank.sentences[:5])


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("log", "lbfgs"),
        ("softmax-margin", "lbfgs"),
        ("squared-hinge", "bmrm"),
        ("hybrid", "bmrm"),
        ("slack", "bmrm"),
        (RelativeMargin(20.0), "cutting-plane"),
    ],
    ids=stable,
)
def test_other_losses_learn_too(bank, loss, solver):
    parser = Parser(loss, solver, C=0.2, tol=3e-2, max_iter=100).fit(None, bank.trees[:30])
    assert parser.score(None, bank.trees[:30]) > 0.75


def test_log_loss_gives_probabilities():
    parser = Parser("log", "lbfgs", C=1.0).fit(None, TREES)
    x = TREES[1].leaves()
    (many,) = parser.k_best([x], 50)
    assert len(many) == 2
    assert sum(np.exp(score) for _, score in many) == pytest.approx(1.0)
    assert parser.log_likelihood(None, [TREES[1]])[0] == pytest.approx(dict(many)[TREES[1]])


def test_a_loss_object_is_the_loss_of_its_name():
    named, given = (Parser(loss, "lbfgs").fit(None, TREES) for loss in ("log", Log()))
    x = [TREES[1].leaves()]
    np.testing.assert_array_equal(given.coef_, named.coef_)
    assert given.k_best(x, 2) == named.k_best(x, 2)
    np.testing.assert_array_equal(given.log_likelihood(None, TREES), named.log_likelihood(None, TREES))
    with pytest.raises(ValueError, match="has no probabilities"):
        Parser(Hinge()).fit(None, TREES).log_likelihood(None, TREES)


def test_pcfg_likelihoods():
    parser = Parser(method="pcfg").fit(None, TREES)
    x = TREES[1].leaves()
    (many,) = parser.k_best([x], 50)
    assert parser.log_likelihood([x])[0] == pytest.approx(np.logaddexp.reduce([score for _, score in many]))
    assert parser.log_likelihood(None, [TREES[1]])[0] == pytest.approx(dict(many)[TREES[1]])
    assert parser.log_likelihood([["zebra"]])[0] == -np.inf
    assert parser.history_ == {}


def test_n_jobs_does_not_change_anything(bank):
    fits = [Parser(C=0.2, n_jobs=jobs, random_state=0, tol=0.05).fit(None, bank.trees) for jobs in (None, 2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].predict(bank.sentences) == fits[1].predict(bank.sentences)


def test_rare_words_are_parsed():
    parser = Parser(method="pcfg", rare=1).fit(None, TREES)
    words = "the zebra saw a cat".split()  # noqa: SIM905
    (tree,) = parser.predict([words])
    assert tree.leaves() == words
    assert str(tree).startswith("(S (NP (Det the) (N zebra))")
    assert Parser(rare=1, random_state=0).fit(None, TREES).predict([words]) == [tree]


def test_failures_raise_or_give_none():
    parser = Parser(method="pcfg").fit(None, TREES)
    known = TREES[0].leaves()
    with pytest.raises(ParseError, match="sentence 1 cannot be parsed: the grammar does not know the word 'zebra'"):
        parser.predict([known, ["zebra"]])
    with pytest.raises(ParseError, match=r"sentence 1 cannot be parsed: .*derives no tree"):
        parser.predict([known, ["the"]])
    lenient = parser.set_params(on_failure="none")
    assert lenient.predict([known, ["zebra"], ["the"]]) == [TREES[0], None, None]
    assert lenient.k_best([["the"]], 2) == [[]]
    assert parser.score(None, [*TREES, Tree.parse("(S zebra)")]) < 1
    assert parser.predict([]) == []


@pytest.mark.parametrize(
    "parser",
    [
        Parser(method="pcfg", rare=1),
        Parser(C=0.5, features="rules+boundaries", random_state=0),
        Parser(method="pcfg", grammar=Grammar.from_trees([*TREES, Tree.parse("(S (NP (N zebras)))")])),
    ],
    ids=["pcfg", "ssvm", "forbidden rules"],
)
def test_saved_parsers_come_back(parser, tmp_path):
    parser = clone(parser).fit(None, TREES)
    mercer.save(parser, tmp_path / "parser.mercer")
    for same in (mercer.load(tmp_path / "parser.mercer"), pickle.loads(pickle.dumps(parser))):
        np.testing.assert_array_equal(same.coef_, parser.coef_)
        assert same.grammar_.rules == parser.grammar_.rules
        sentences = [tree.leaves() for tree in TREES]
        assert same.predict(sentences) == parser.predict(sentences)
        assert same.k_best(sentences, 3) == parser.k_best(sentences, 3)
        for name, values in without_seconds(parser.history_).items():  # NaN once saved, where infinite
            known = np.isfinite(values)
            np.testing.assert_array_equal(np.array(same.history_[name])[known], np.array(values)[known])


def test_damaged_states_are_refused():
    meta, arrays = Parser(method="pcfg").fit(None, TREES).to_state()
    for name, value in (
        ("coef_", arrays["coef_"][:-1]),
        ("coef_", arrays["coef_"] * np.nan),
        ("coef_", arrays["coef_"] + np.inf),
        ("grammar_.offsets", arrays["grammar_.offsets"][:-1]),
        ("grammar_.children", arrays["grammar_.children"] + 1000),
        ("grammar_.parents", arrays["grammar_.parents"] - 5),
    ):
        with pytest.raises(ValueError):
            Parser.from_state(meta, {**arrays, name: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "crf"}, "method must be one of"),
        ({"cost": "hamming"}, "cost must be one of"),
        ({"features": "words"}, "features must be one of"),
        ({"on_failure": "ignore"}, "on_failure must be one of"),
        ({"C": 0}, "C must be a positive"),
        ({"loss": "square"}, "unknown loss"),
        ({"solver": "simplex"}, "unknown solver"),
        ({"rare": -1}, "rare must be"),
        ({"rare": 1, "grammar": Grammar.from_trees(TREES)}, "rare adds an unknown word"),
        ({"method": "pcfg", "smoothing": -1}, "smoothing must be"),
        ({"loss": "softmax-margin", "solver": "lbfgs", "cost": "f1"}, "not a sum over brackets"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Parser(**settings).fit(None, TREES)


def test_wrong_data_are_refused():
    with pytest.raises(ValueError, match="y is empty"):
        Parser().fit(None, [])
    with pytest.raises(TypeError, match=r"y\[0\] must be a Tree"):
        Parser().fit(None, ["(S a)"])
    with pytest.raises(ValueError, match="4 sentences"):
        Parser().fit([["a"]], TREES)
    with pytest.raises(ValueError, match=r"sentence 0 is .*the leaves of its tree"):
        Parser().fit([["a"], *(tree.leaves() for tree in TREES[1:])], TREES)
    grammar = Grammar.from_trees(TREES[:2])
    with pytest.raises(ParseError, match="sentence 1 cannot be parsed: the grammar does not know the word 'park'"):
        Parser(grammar=grammar).fit(None, [TREES[0], TREES[2]])
    with pytest.raises(ParseError, match="sentence 0 cannot be parsed: the grammar does not derive its tree"):
        Parser(grammar=grammar).fit(None, [Tree.parse("(S (NP (N dog)) (NP (N cat)))")])
    with pytest.raises(TypeError, match="grammar must be a Grammar"):
        Parser(grammar="S -> a").fit(None, TREES)
    with pytest.raises(NotFittedError):
        Parser().predict([["a"]])
    parser = Parser(random_state=0).fit(None, TREES)
    with pytest.raises(ValueError, match="has no probabilities"):
        parser.log_likelihood(None, TREES)
    with pytest.raises(TypeError, match="list of lists of words"):
        parser.predict("the dog")
    with pytest.raises(TypeError, match="sentence 0 must be a list of words"):
        parser.predict(["the dog"])
    with pytest.raises(ValueError, match="sentence 0 is empty"):
        parser.predict([[]])


def test_a_failed_fit_leaves_the_model_as_it_was():
    parser = Parser(random_state=0).fit(None, TREES)
    before = parser.coef_
    with pytest.raises(ValueError):
        parser.fit(None, [])
    assert parser.coef_ is before


def test_a_fit_that_fails_on_the_way_keeps_the_history_until_then(monkeypatch):
    from mercer.learning.risk import Risk

    inner, calls = Risk.oracle, []

    def fails(self, *args):
        calls.append(1)
        if len(calls) == 2 * len(TREES):  # in the second pass of one example at a time
            raise RuntimeError("lost")
        return inner(self, *args)

    monkeypatch.setattr(Risk, "oracle", fails)
    parser = Parser(solver="bcfw", random_state=0)
    with pytest.raises(RuntimeError, match="lost"):
        parser.fit(None, TREES)
    assert len(parser.history_["objective"]) == 1
    assert not hasattr(parser, "coef_")


def test_the_default_solver_suits_every_loss():
    bank = make_treebank(12, random_state=0)
    solvers = {loss: Parser(loss=loss, max_iter=3).fit(bank.sentences, bank.trees).solver_ for loss in ("hinge", "log")}
    assert solvers == {"hinge": "bcfw", "log": "lbfgs"}
