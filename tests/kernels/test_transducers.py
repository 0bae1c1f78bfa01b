"""Transducers against lists of paths; composition, closure, and what is refused."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.kernels import Convolution, Delta, NGram, Rational, Transducer
from reference.transducers import (
    dot,
    levenshtein,
    mismatch_outputs,
    ngram_outputs,
    random_machine,
    strings,
    weight,
)

SEMIRINGS = ["real", "tropical"]
SHORT = strings("ab", 2)


def combined(T: Transducer, values) -> float:
    return sum(values) if T.semiring == "real" else min(values, default=math.inf)


def product_of(T: Transducer, v: float, w: float) -> float:
    return v * w if T.semiring == "real" else v + w


def same(T: Transducer, U: Transducer, pairs=None) -> None:
    for x, y in pairs or [(x, y) for x in SHORT for y in SHORT]:
        assert T.weight(x, y) == pytest.approx(U.weight(x, y), rel=1e-9, abs=1e-12), (x, y)


# ---------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("seed", range(12))
def test_weight_equals_the_sum_over_all_paths(semiring, seed):
    T = random_machine(np.random.default_rng(seed), semiring)
    for x in SHORT:
        for y in SHORT:
            assert T.weight(x, y) == pytest.approx(weight(T, x, y), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("seed", range(12))
def test_composition_sums_over_all_strings_between(semiring, seed):
    # T reads a symbol with every arc: what it writes is no longer than x, and all strings between can be listed.
    random = np.random.default_rng(seed)
    T = random_machine(random, semiring, inputs=("a", "b"))
    U = random_machine(random, semiring)
    C = T.compose(U)
    for x in SHORT:
        for y in SHORT:
            sums = (product_of(T, T.weight(x, z), U.weight(z, y)) for z in SHORT)
            assert C.weight(x, y) == pytest.approx(combined(T, sums), rel=1e-9, abs=1e-12)


def test_moves_that_write_and_read_nothing_are_not_interleaved():
    T = Transducer.ngram(3, "AB")
    assert T.compose(T.inverse()).weight("ABABA", "BABAB") == 4.0  # interleaved freely: 20


def test_three_grams_have_the_value_four_by_every_way():
    T = Transducer.ngram(3, "AB")
    x, z = "ABABA", "BABAB"
    for method in ("auto", "features", "pairs"):
        assert Rational(T, method=method).pair(x, z) == 4.0
    outputs = [Transducer.from_string(s).compose(T).project("output").remove_epsilon() for s in (x, z)]
    assert sum(outputs[0].weight(y, y) * outputs[1].weight(y, y) for y in strings("AB", 3)) == 4.0
    assert outputs[0].compose(outputs[1]).weight("ABA", "ABA") == 2.0
    blocks = Convolution(lambda s: [s[i : i + 3] for i in range(len(s) - 2)], Delta())
    assert blocks.pair(x, z) == 4.0


def test_epsilon_cycle_is_summed_to_its_limit():
    T = Transducer().add_arc(0, None, None, 0.5, 0).add_arc(0, "a", "b", 3.0, 1).set_initial(0).set_final(1)
    assert T.weight("a", "b") == pytest.approx(6.0)
    T.add_arc(1, None, None, 0.4, 2).add_arc(2, None, None, 0.5, 1).add_arc(2, None, None, 0.25, 2)
    # 1 → 2 → … → 1: rounds of 0.4 · 0.5 / (1 − 0.25)
    assert T.weight("a", "b") == pytest.approx(6.0 / (1 - 0.2 / 0.75))


@pytest.mark.parametrize("w", [1.0, 1.5, -1.0])
def test_epsilon_cycle_that_diverges_names_its_states(w):
    T = Transducer().add_arc("p", None, None, 1.0, "q").add_arc("q", None, None, w, "p")
    T.add_arc("p", "a", "a", 1.0, "p").set_initial("p").set_final("p")
    with pytest.raises(ValueError, match="epsilon cycle through states 'p', 'q' diverges: the spectral radius"):
        T.weight("a", "a")
    with pytest.raises(ValueError, match="diverges"):
        T.project("input").remove_epsilon()


def test_epsilon_cycle_that_no_path_visits_does_no_harm():
    T = Transducer.from_string("a").add_arc(7, None, None, 2.0, 7).add_arc(0, None, None, 1.0, 7)
    assert T.weight("a", "a") == 1.0


def test_outputs_that_diverge_only_in_the_composition_are_refused():
    T = Transducer().add_arc(0, None, "a", 1.0, 0).set_initial(0).set_final(0)
    assert T.weight("", "aaa") == 1.0
    with pytest.raises(ValueError, match=r"epsilon cycle .* diverges"):
        Rational(T)(["", ""])


def test_negative_tropical_cycle_is_refused_and_others_are_not():
    T = Transducer("tropical").add_arc(0, None, None, 2.0, 1).add_arc(1, None, None, -1.0, 0)
    T.add_arc(1, "a", "b", 3.0, 2).set_initial(0).set_final(2)
    assert T.weight("a", "b") == 5.0
    with pytest.raises(ValueError, match=r"epsilon cycle through states 0, 1 diverges: .* negative"):
        T.add_arc(1, None, None, -3.0, 0).weight("a", "b")


def test_edit_machine_is_levenshteins_distance():
    T = Transducer.edit(1.0, "abc")
    random = np.random.default_rng(0)
    for _ in range(40):
        x, y = ("".join(random.choice(list("abc"), size=random.integers(0, 6))) for _ in range(2))
        assert T.weight(x, y) == levenshtein(x, y)


def test_edits_have_costs_of_their_own():
    T = Transducer.edit({"insert": 2.0, "delete": 3.0, "substitute": 10.0, ("a", "b"): 0.5, ("c", "c"): 0.25}, "abc")
    assert T.weight("a", "b") == 0.5
    assert T.weight("b", "a") == 5.0
    assert T.weight("", "ab") == 4.0
    assert T.weight("ccc", "c") == 6.25


# ---------------------------------------------------------------------------------------------------- operations


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("seed", range(4))
def test_operations_equal_their_definitions(semiring, seed):
    random = np.random.default_rng(seed)
    T, U = random_machine(random, semiring), random_machine(random, semiring)
    same(T.inverse().inverse(), T)
    inverse, union, concat, copied = T.inverse(), T.union(U), T.concat(U), pickle.loads(pickle.dumps(T))
    for x in SHORT:
        for y in SHORT:
            assert inverse.weight(y, x) == pytest.approx(T.weight(x, y))
            assert copied.weight(x, y) == T.weight(x, y)
            assert union.weight(x, y) == pytest.approx(combined(T, [T.weight(x, y), U.weight(x, y)]))
            cuts = (
                product_of(T, T.weight(x[:i], y[:j]), U.weight(x[i:], y[j:]))
                for i in range(len(x) + 1)
                for j in range(len(y) + 1)
            )
            assert concat.weight(x, y) == pytest.approx(combined(T, cuts), rel=1e-9, abs=1e-12)
    same(T.trim(), T)


def test_closure_repeats():
    star = Transducer.from_string("ab").closure()
    assert [star.weight(x, x) for x in ("", "ab", "abab", "aba")] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("seed", range(4))
def test_projection_sums_over_the_other_side(semiring, side, seed):
    # The other side is written with arcs that read, or read with arcs that write: it is no longer than the kept one.
    labels = {"inputs": ("a", "b")} if side == "input" else {"outputs": ("a", "b")}
    T = random_machine(np.random.default_rng(seed), semiring, **labels)
    A = T.project(side)
    B = A.remove_epsilon()
    assert A.is_acceptor
    assert all(arc.input is not None for arc in B.arcs)
    for x in SHORT:
        others = (T.weight(x, y) if side == "input" else T.weight(y, x) for y in SHORT)
        expected = combined(T, others)
        assert A.weight(x, x) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert B.weight(x, x) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_symbols_and_states_are_any_hashable_things():
    T = Transducer.ngram(2, ["the", "dog", ("a", 1)])
    assert T.weight(["the", "dog", "the", "dog"], ["the", "dog"]) == 2.0
    assert T.states == [0, 1, 2]
    k = Rational(Transducer.ngram(1, [0, 1, 2]))
    assert k.pair(np.array([0, 1, 1]), [1, 2]) == 2.0


def test_machine_shows_what_it_is():
    T = Transducer("tropical", 'a"').set_initial(0, 0.5).set_final("end").add_arc(0, "a", None, 2.5, "end")
    assert repr(T) == "<Transducer: tropical, 2 states, 1 arcs, 2 symbols>"
    assert T.arcs == [(0, "a", None, 2.5, "end")]
    assert (T.initial, T.final, T.n_states) == ({0: 0.5}, {"end": 0.0}, 2)
    assert '0 -> 1 [label="a:ε/2.5"]' in T.to_dot()
    assert r"label=\"" not in T.add_arc(0, '"', '"', 0.0, 0).to_dot()
    assert r'label="\":\""' in T.to_dot()


# ---------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("seed", range(10))
def test_rational_kernel_of_random_machines_is_the_same_by_both_methods(seed):
    random = np.random.default_rng(seed)
    T = random_machine(random, "real", inputs=("a", "b"))
    X = ["".join(random.choice(["a", "b"], size=random.integers(0, 6))) for _ in range(8)]
    expected = [[sum(T.weight(x, y) * T.weight(z, y) for y in strings("ab", 5)) for z in X] for x in X[:2]]
    K = Rational(T, method="features")(X)
    np.testing.assert_allclose(K[:2], expected, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    np.testing.assert_allclose(Rational(T, method="pairs")(X), K, rtol=1e-9, atol=1e-9 * np.abs(K).max())


def test_arcs_that_read_nothing_may_still_give_finitely_many_outputs():
    T = Transducer().set_initial(0).set_final(3)
    T.add_arc(0, None, "x", 0.5, 1).add_arc(1, None, "y", 2.0, 2).add_arc(0, None, None, 0.25, 2)
    T.add_arc(2, "a", "a", 1.0, 2).add_arc(2, None, "z", 3.0, 3).add_arc(2, "a", None, 1.0, 3)
    X = ["", "a", "aa"]
    kernel = Rational(T, method="features")
    ends = strings("axyz", 5)
    expected = [[sum(T.weight(x, y) * T.weight(z, y) for y in ends) for z in X] for x in X]
    np.testing.assert_allclose(kernel(X), expected)
    np.testing.assert_allclose(Rational(T, method="pairs")(X), expected)


def test_too_many_outputs_fall_back_to_pairs(monkeypatch):
    X = ["abab", "abba", "b" * 12]
    T = Transducer.gappy(4, "ab", 0.5)
    K = Rational(T)(X)
    monkeypatch.setattr("mercer.kernels.rational.MOST_PREFIXES", 4)
    np.testing.assert_allclose(Rational(T)(X), K)
    np.testing.assert_allclose(Rational(T)(X, X[2:]), K[:, 2:])
    with pytest.raises(ValueError, match="more than 4 prefixes"):
        Rational(T, method="features")(X)
    with pytest.raises(ValueError, match="too many features"):
        Rational(T).features(X)


def test_pairs_in_small_steps_give_the_same_matrix(monkeypatch):
    X = ["abab", "", "abba", "b", "ba"]
    kernel = Rational(Transducer.ngram(2, "ab"), method="pairs")
    K = kernel(X)
    monkeypatch.setattr("mercer.kernels.rational.STEPS_AT_ONCE", 1)
    np.testing.assert_array_equal(kernel(X), K)
    np.testing.assert_array_equal(kernel(X[:2], X), K[:2])


def test_long_strings_and_larger_alphabets_agree_with_the_definitions():
    random = np.random.default_rng(5)
    X = ["".join(random.choice(list("ACGT"), size=60)) for _ in range(4)]
    for kernel, outputs in (
        (Rational(Transducer.ngram(3, "ACGT")), lambda x: ngram_outputs(x, 3)),
        (Rational(Transducer.mismatch(4, 1, "ACGT")), lambda x: mismatch_outputs(x, 4, 1, "ACGT")),
    ):
        np.testing.assert_allclose(kernel(X), [[dot(outputs(x), outputs(z)) for z in X] for x in X])


def test_definiteness_is_claimed_where_it_is_known():
    T = Transducer.ngram(2, "ab")
    assert Rational(T).definiteness == Rational(T, psi=np.exp).definiteness == "pd"
    assert Rational(T, psi=np.log1p).definiteness == Rational(T, make_pd=False).definiteness == "indefinite"


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Transducer("max"), "semiring must be one of"),
        (lambda: Transducer(alphabet=""), "alphabet must hold symbols that differ"),
        (lambda: Transducer(alphabet="aa"), "alphabet must hold symbols that differ"),
        (lambda: Transducer(alphabet=["a", None]), "stands for epsilon"),
        (lambda: Transducer(alphabet=3), "alphabet must be a collection"),
        (lambda: Transducer().add_arc(0, "a", "a", math.nan, 1), "weight must be a finite number"),
        (lambda: Transducer().add_arc(0, "a", "a", math.inf, 1), "weight must be a finite number"),
        (lambda: Transducer().add_arc(0, "a", "a", "1", 1), "weight must be a finite number"),
        (lambda: Transducer("tropical").add_arc(0, "a", "a", -math.inf, 1), "weight must be a number above"),
        (lambda: Transducer("tropical").set_final(0, math.nan), "weight must be a number above"),
        (lambda: Transducer(alphabet="ab").add_arc(0, "c", "a", 1.0, 1), "ilabel='c' is not in the alphabet"),
        (lambda: Transducer(alphabet="ab").add_arc(0, "a", "c", 1.0, 1), "olabel='c' is not in the alphabet"),
        (lambda: Transducer().add_arc(0, "", "a", 1.0, 1), "use None for epsilon"),
        (lambda: Transducer().add_arc([], "a", "a", 1.0, 1), "src must be hashable"),
        (lambda: Transducer().add_arc(0, "a", "a", 1.0, 1).set_final(1).weight("a", "a"), "no initial state"),
        (lambda: Transducer().add_arc(0, "a", "a", 1.0, 1).set_initial(1).weight("a", "a"), "no final state"),
        (lambda: Transducer.ngram(2, "ab").weight("abc", "ab"), "x has the symbol 'c' at place 2"),
        (lambda: Transducer.ngram(2, "ab").weight("ab", 5), "y must be a string or a sequence"),
        (lambda: Transducer.ngram(2, "ab").weight([["a"]], "a"), "symbol 0 of x must be hashable"),
        (lambda: Transducer.ngram(0, "ab"), "n must be an integer"),
        (lambda: Transducer.gappy(2, "ab", 0.0), "decay must be above 0"),
        (lambda: Transducer.mismatch(2, 3, "ab"), "m must be at most k=2"),
        (lambda: Transducer.edit(-1.0, "ab"), "costs must be numbers of at least 0"),
        (lambda: Transducer.edit({"swap": 1.0}, "ab"), "costs has the key 'swap'"),
        (lambda: Transducer.edit({("a", "z"): 1.0}, "ab"), "costs has the key"),
        (lambda: Transducer.ngram(2, "ab").compose("ab"), "compose needs another Transducer"),
        (lambda: Transducer.ngram(2, "ab").compose(Transducer.edit(1, "ab")), "needs one semiring"),
        (lambda: Transducer.ngram(2, "ab").project("left"), "side must be one of"),
        (lambda: Transducer.ngram(2, "ab").remove_epsilon(), "removed from acceptors"),
    ],
)
def test_wrong_machine_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def psi_of_another_shape(K):
    return K[:1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Rational("abc"), "transducer must be a Transducer"),
        (Rational(Transducer.edit(1.0, "ab")), "tropical transducer defines no positive definite kernel"),
        (Rational(Transducer.ngram(2, "ab"), psi="exp"), "psi must be a function"),
        (Rational(Transducer.ngram(2, "ab"), psi=psi_of_another_shape), "psi must keep the shape"),
        (Rational(Transducer.ngram(2, "ab"), method="hash"), "method must be one of"),
        (Rational(Transducer.ngram(2, "ab"), make_pd="yes"), "make_pd must be True or False"),
        (Rational(Transducer.ngram(2, "ab"), make_pd=False, method="features"), "method='features' cannot be used"),
        (Rational(Transducer.from_string("a", "tropical"), make_pd=False), "values of the kernel are not finite"),
        (Rational(Transducer.ngram(1, "ab"), make_pd=False), "not symmetric"),
        (Rational(Transducer.ngram(1, "xy")), "string 0 has the symbol 'a' at place 0"),
    ],
)
def test_wrong_kernel_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(["ab", "b"])


def test_strings_with_symbols_on_no_arc_have_no_weight():
    T = Transducer().add_arc(0, "a", "b", 1.0, 1).set_initial(0).set_final(1)
    assert (T.weight("a", "b"), T.weight("x", "b"), T.weight("a", "x")) == (1.0, 0.0, 0.0)
    assert copy.deepcopy(T).add_arc(0, "x", "b", 2.0, 1).weight("x", "b") == 2.0


def test_weight_beyond_floating_point_is_refused():
    T = Transducer().add_arc(0, "a", "a", 1e200, 0).set_initial(0).set_final(0)
    assert T.weight("a", "a") == 1e200
    with pytest.raises(OverflowError, match="scale the arcs"):
        T.weight("aa", "aa")
    with pytest.raises(OverflowError, match="scale the arcs"):
        Rational(T)(["aa"])
    with pytest.raises(OverflowError, match="scale the arcs"):
        Rational(T, method="pairs")(["aa"])


def test_empty_machine_has_no_path():
    T = Transducer.from_string("a").compose(Transducer.from_string("b"))
    assert (T.n_states, T.weight("a", "b")) == (0, 0.0)
    assert Rational(T)(["a", "b"]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


# ----------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("abc", max_size=12), min_size=1, max_size=5), st.integers(1, 4))
def test_n_grams_by_hash_by_suffixes_and_by_a_transducer_are_one_kernel(X, n):
    counted = np.array([[dot(ngram_outputs(x, n), ngram_outputs(z, n)) for z in X] for x in X])
    np.testing.assert_array_equal(NGram(n, method="hash")(X), counted)
    np.testing.assert_array_equal(NGram(n, method="suffix")(X), counted)
    np.testing.assert_allclose(Rational(Transducer.ngram(n, "abc"))(X), counted, rtol=1e-12)
    np.testing.assert_allclose(Rational(Transducer.ngram(n, "abc"), method="pairs")(X), counted, rtol=1e-12)
