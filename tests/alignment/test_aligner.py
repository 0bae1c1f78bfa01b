"""The estimator: training recovers planted scores, predictions are exact, files hold all of it, bad input is named."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.alignment import Aligner, Alignment
from mercer.datasets import make_alignments
from reference.alignments import Enumeration
from reference.histories import without_seconds

PAIRS = [("ACGT", "AGT"), ("GATGACA", "GATACA"), ("TCAT", "CAT")]
ROWS = [("ACGT", "A-GT"), ("GATGACA", "GAT-ACA"), ("TCAT", "-CAT")]
SCORES = np.array([[2.0, -1.0, -1.5], [-1.0, 3.0, 0.5], [-1.5, 0.5, 1.0]])


def simple(mode="global", **options):
    return Aligner.from_scores(SCORES, -2.0, -0.5, "ABC", mode=mode, **options)


@pytest.fixture(scope="module")
def task():
    return make_alignments(360, length=(30, 50), n_letters=8, random_state=0)


@pytest.fixture(scope="module")
def planted(task):
    return Aligner.from_scores(task.substitution, task.gap_open, task.gap_extend, task.alphabet)


def recovered(model, planted):
    upper = np.triu_indices(len(planted.alphabet_))
    return spearmanr(model.normalized_scores()[0][upper], planted.normalized_scores()[0][upper])[0]


# ---------------------------------------------------------------------------------------------- given scores


@pytest.mark.parametrize("mode", ["global", "local"])
def test_predictions_are_the_best_of_all_alignments(mode):
    aligner = simple(mode)
    words = ["".join(w) for n in range(4) for w in itertools.product("ABC", repeat=n)][::3]
    pairs = list(itertools.product(words, words))[::5]
    for (s, t), found, score in zip(pairs, aligner.predict(pairs), aligner.score_pairs(pairs), strict=True):
        codes = ["ABC".index(a) for a in s], ["ABC".index(a) for a in t]
        reference = Enumeration(*codes, SCORES, -2.0, -0.5, mode == "local")
        assert found.score == score == pytest.approx(reference.scores.max())
        place = reference.alignments.index(tuple(map(tuple, found.pairs.tolist())))
        assert reference.scores[place] == pytest.approx(score)


def test_local_mode_may_align_nothing():
    (found,) = Aligner.from_scores([[1, -1], [-1, 1]], -2, -1, "AB", mode="local").predict([("AAA", "BBB")])
    assert (len(found), found.score, found.cigar) == (0, 0.0, "")


@pytest.mark.parametrize(("s", "t", "score"), [("", "", 0.0), ("ABC", "", -3.0), ("", "A", -2.0)])
def test_empty_sequences_have_nothing_but_gaps(s, t, score):
    (found,) = simple().predict([(s, t)])
    assert (len(found), found.score) == (0, score)
    (found,) = simple("local").predict([(s, t)])
    assert (len(found), found.score) == (0, 0.0)
    assert simple().match_probabilities([(s, t)])[0].shape == (len(s), len(t))


def test_no_pairs_have_no_alignments():
    aligner = simple()
    assert aligner.predict([]) == aligner.k_best([], 2) == aligner.match_probabilities([]) == []
    assert aligner.score_pairs([]).shape == aligner.log_partition([]).shape == (0,)
    assert aligner.score([], []) == 1.0


def test_k_best_begins_with_the_prediction_and_differs():
    pairs = [("ABCABC", "ABBC"), ("A", "B")]
    aligner = simple()
    best = aligner.k_best(pairs, 10)
    assert [found[0] for found in best] == aligner.predict(pairs)
    assert [len(found) for found in best] == [10, 2]
    assert all(a.score >= b.score for a, b in itertools.pairwise(best[0]))
    assert len(set(best[0])) == 10


def test_match_probabilities_and_log_partition_are_those_of_all_alignments():
    reference = Enumeration([0, 1, 2], [0, 2], SCORES, -2.0, -0.5, False)
    aligner = simple()
    assert np.allclose(aligner.match_probabilities([("ABC", "AC")])[0], reference.pair_probabilities())
    assert aligner.log_partition([("ABC", "AC")])[0] == pytest.approx(reference.log_partition)


def test_a_dict_of_scores_is_a_matrix():
    table = {(a, b): SCORES[i, j] for i, a in enumerate("ABC") for j, b in enumerate("ABC") if i <= j}
    aligner = Aligner.from_scores(table, -2.0, -0.5)
    assert aligner.alphabet_ == ["A", "B", "C"]
    assert np.array_equal(aligner.substitution_, SCORES)
    with pytest.raises(ValueError, match="no score for"):
        Aligner.from_scores({("A", "B"): 1.0}, -2.0, -0.5)


def test_asymmetric_scores_are_kept():
    aligner = Aligner.from_scores([[1.0, 0.5], [-1.0, 1.0]], -2.0, -0.5, "AB")
    assert aligner.substitution_.tolist() == [[1.0, 0.5], [-1.0, 1.0]]
    assert not aligner.symmetric


def test_tokens_of_any_hashable_kind_can_be_aligned():
    aligner = Aligner.from_scores(np.where(np.eye(3), 1.0, -1.0), -2.0, -1.0, ["the", 7, ("a", 1)])
    (found,) = aligner.predict([(["the", 7, ("a", 1)], ["the", ("a", 1)])])
    assert found.pairs.tolist() == [[0, 0], [2, 1]]


def test_results_do_not_depend_on_threads(task, planted):
    parallel = Aligner.from_scores(task.substitution, task.gap_open, task.gap_extend, task.alphabet, n_jobs=3)
    assert planted.predict(task.pairs) == parallel.predict(task.pairs)
    assert np.array_equal(planted.log_partition(task.pairs), parallel.log_partition(task.pairs))


# ---------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize(
    ("loss", "solver", "options"),
    [
        ("hinge", "bcfw", {"C": 1.0}),
        ("hinge", "cutting-plane", {"C": 1.0}),
        ("log", "lbfgs", {"C": 1.0}),
        ("softmax-margin", "lbfgs", {"C": 1.0}),
    ],
)
def test_training_recovers_planted_scores(task, planted, loss, solver, options):
    model = Aligner(loss=loss, solver=solver, alphabet=task.alphabet, tol=1e-2, random_state=0, **options)
    model.fit(task.pairs[:180], task.alignments[:180])
    assert recovered(model, planted) > 0.9
    best = planted.score(task.pairs[180:], task.alignments[180:])
    assert model.score(task.pairs[180:], task.alignments[180:]) > best - 0.03


def test_local_training_finds_the_related_part():
    task = make_alignments(240, length=(20, 30), n_letters=8, conservation=3.0, flank=15, random_state=1)
    planted = Aligner.from_scores(task.substitution, task.gap_open, task.gap_extend, task.alphabet, mode="local")
    model = Aligner("local", C=0.1, alphabet=task.alphabet, tol=1e-2, random_state=0)
    model.fit(task.pairs[:120], task.alignments[:120])
    best = planted.score(task.pairs[120:], task.alignments[120:])
    assert model.score(task.pairs[120:], task.alignments[120:]) > best - 0.03


def test_zero_one_cost_separates_through_two_best():
    model = Aligner(cost="zero-one", C=100.0, random_state=0).fit(PAIRS, ROWS)
    assert model.score(PAIRS, ROWS) == 1.0
    for (best, second), rows in zip(model.k_best(PAIRS, 2), ROWS, strict=True):
        assert best == Alignment.from_rows(*rows)
        assert best.score - second.score > 0.98


def test_all_forms_of_alignments_train_the_same_model():
    objects = [Alignment.from_rows(*rows) for rows in ROWS]
    indices = [y.pairs.tolist() for y in objects]
    models = [Aligner(C=10.0, random_state=0).fit(PAIRS, given) for given in (ROWS, objects, indices)]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
    assert models[0].score(PAIRS, ROWS) == 1.0


def test_attributes_are_views_of_the_weights():
    model = Aligner(C=10.0, random_state=0).fit(PAIRS, ROWS)
    assert model.alphabet_ == ["A", "C", "G", "T"]
    assert np.array_equal(model.substitution_, model.substitution_.T)
    assert model.coef_.shape == (12,)
    assert (model.gap_open_, model.gap_extend_) == tuple(model.coef_[-2:])
    assert model.converged_
    assert model.n_iter_ > 0
    assert model.history_["seconds"]


def test_normalized_scores_align_alike():
    model = Aligner(C=10.0, random_state=0).fit(PAIRS, ROWS)
    substitution, gap_open, gap_extend = model.normalized_scores()
    assert gap_extend == 0.0
    same = Aligner.from_scores(substitution, gap_open, gap_extend, model.alphabet_)
    shift = -model.gap_extend_ * np.array([len(s) + len(t) for s, t in PAIRS])
    assert np.allclose(same.score_pairs(PAIRS), model.score_pairs(PAIRS) + shift)
    local = simple("local")
    assert local.normalized_scores()[1:] == (-2.0, -0.5)


def test_asymmetric_substitutions_can_be_learned():
    pairs = [("AABA", "BABA"), ("ABAB", "BBAB")]
    truth = [[(i, i) for i in range(4)]] * 2
    model = Aligner(C=1.0, symmetric=False, random_state=0).fit(pairs, truth)
    assert model.coef_.shape == (6,)


def test_the_estimator_can_be_cloned():
    model = Aligner("local", C=3.0, alphabet="AB", cost="zero-one")
    assert clone(model).get_params() == model.get_params()


# ---------------------------------------------------------------------------------------------- model files


@pytest.mark.parametrize("make", [simple, lambda: Aligner(C=10.0, random_state=0).fit(PAIRS, ROWS)])
def test_a_saved_model_is_the_same(tmp_path, make):
    model = make()
    mercer.save(model, tmp_path / "aligner.mercer")
    same = mercer.load(tmp_path / "aligner.mercer")
    pairs = [("ABC", "AC")] if "B" in model.alphabet_ else PAIRS
    assert same.predict(pairs) == model.predict(pairs)
    assert np.array_equal(same.coef_, model.coef_)
    assert same.get_params().keys() == model.get_params().keys()
    assert same.alphabet == model.alphabet
    for name, values in without_seconds(model.history_).items():  # what is not finite yet comes back as NaN
        assert np.array_equal(same.history_[name], np.where(np.isfinite(values), values, np.nan), equal_nan=True)


def test_a_file_with_wrong_weights_is_refused():
    meta, arrays = simple().to_state()
    with pytest.raises(ValueError, match=r"coef_ must have the shape \(8,\)"):
        Aligner.from_state(meta, {"coef_": arrays["coef_"][1:]})
    with pytest.raises(ValueError, match="coef_ must hold finite"):
        Aligner.from_state(meta, {"coef_": np.full(8, np.nan)})


# ---------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("call", ["predict", "score_pairs", "match_probabilities", "normalized_scores", "to_state"])
def test_an_unfitted_aligner_says_so(call):
    arguments = () if call in ("normalized_scores", "to_state") else (PAIRS,)
    with pytest.raises(NotFittedError, match="from_scores"):
        getattr(Aligner(), call)(*arguments)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("ABC", "AXC")], r"X\[0\], second sequence: symbol 'X' at position 1 is not in the alphabet"),
        ([("AB", "A"), (["A", []], "A")], r"X\[1\], first sequence: symbol \[\] at position 1"),
        (["ABC"], r"X\[0\] must be two sequences"),
        ([("A", "B", "C")], r"X\[0\] must be two sequences"),
        ([("A", 5)], r"X\[0\]: t must be a string or a list of tokens, got int"),
        ("AB", "X must be a list"),
        ([(b"A", "A")], "got bytes"),
    ],
)
def test_bad_pairs_are_named(pairs, message):
    with pytest.raises(ValueError, match=message):
        simple().predict(pairs)


@pytest.mark.parametrize(
    ("alignments", "message"),
    [
        (ROWS[:2], "as many as X: 2 for 3"),
        ([*ROWS[:2], [(0, 0), (1, 3)]], r"y\[2\] must lie within sequences of 4 and 3 symbols, found"),
        ([*ROWS[:2], [(1, 1), (2, 0)]], r"y\[2\] must ascend in both sequences"),
        ([*ROWS[:2], ("TCAT", "CAT")], r"y\[2\]: gapped rows must have one length"),
        ([*ROWS[:2], ("TC-AT", "-C-AT")], r"y\[2\]: gapped rows"),
        ([*ROWS[:2], ("TCGT", "-CGT")], r"y\[2\] is of other sequences than X\[2\]"),
        ([*ROWS[:2], Alignment("AA", "AA", [])], "is of other sequences"),
        ([*ROWS[:2], [(0.5, 1.0)]], "integers"),
    ],
)
def test_bad_alignments_are_named(alignments, message):
    with pytest.raises(ValueError, match=message):
        Aligner().fit(PAIRS, alignments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "semi"}, "mode must be one of"),
        ({"cost": "hamming"}, "cost must be one of"),
        ({"C": -1.0}, "C must be"),
        ({"alphabet": "ACG"}, "symbol 'T' at position 3 is not in the alphabet"),
        ({"alphabet": "ACGTA"}, "alphabet must not hold a symbol twice, found 'A' again"),
        ({"alphabet": ""}, "alphabet must hold at least one symbol"),
        ({"loss": "nothing"}, "loss"),
        ({"solver": "nothing"}, "solver"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    model = Aligner(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(PAIRS, ROWS)
    assert not hasattr(model, "coef_")


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(ValueError, match="at least one pair"):
        Aligner().fit([], [])
    with pytest.raises(ValueError, match="at least one symbol"):
        Aligner().fit([("", "")], [[]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.full((3, 3), np.nan), -1, -1, "ABC"), "finite scores"),
        ((np.eye(2), -1, -1, "ABC"), r"shape \(3, 3\) of the alphabet, got \(2, 2\)"),
        ((np.eye(3), np.nan, -1, "ABC"), "gap_open must be a finite number"),
        ((np.eye(3), -1, "x", "ABC"), "gap_extend must be a finite number"),
        ((np.eye(3), -1, -1), "alphabet must name the rows"),
        ((np.eye(2), -1, -1, "AA"), "twice"),
        (({"A": 1.0}, -1, -1), "keys"),
    ],
)
def test_bad_scores_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Aligner.from_scores(*arguments)


def test_bad_k_is_named():
    for k in (0, 1.5, 20_000):
        with pytest.raises(ValueError, match="k must be"):
            simple().k_best([("A", "A")], k)


def test_a_saved_aligner_keeps_the_parameters_of_its_loss(tmp_path):
    from mercer.learning import Hybrid

    pairs = [("ab", "ab"), ("ba", "b")]
    model = Aligner(loss=Hybrid(alpha=0.25), solver="bmrm", C=0.1).fit(pairs, [[(0, 0), (1, 1)], [(0, 0)]])
    mercer.save(model, tmp_path / "a.mercer")
    assert mercer.load(tmp_path / "a.mercer").loss.alpha == 0.25
