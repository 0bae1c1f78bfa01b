"""Kernels of strings: values of the books, several routes to one value, long strings, odd and bad input."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercer import _core
from mercer.kernels import (
    AllSubstrings,
    Convolution,
    EditDistance,
    Gappy,
    Gram,
    LinearStringModel,
    Mismatch,
    NGram,
    Spectrum,
    Subsequence,
    WeightedDegree,
    strings,
)
from mercer.maps import StringHasher
from reference import string_kernels as definition

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

EVERY = [
    NGram(2),
    NGram(2, method="suffix"),
    Spectrum(3, shortest=1),
    Mismatch(2, 1),
    Mismatch(2, 1, alphabet="ACGTN"),
    Gappy(2),
    WeightedDegree(3, shift=1),
    AllSubstrings(),
    Subsequence(2),
    EditDistance(),
    EditDistance(0.5, substitution=1.5),
]
LINEAR = [
    NGram(3),
    NGram(3, method="suffix"),
    Spectrum(4, shortest=1, weights=0.5),
    Spectrum(2, presence=True),
    Mismatch(3, 1, alphabet="ACGT", unknown="skip"),
    Mismatch(3, 1),
    Gappy(2, gap=2, decay=0.5),
    WeightedDegree(4, shift=1),
    AllSubstrings(),
    AllSubstrings(weights=0.5, shortest=2),
    2.0 * AllSubstrings(weights=lambda n: 1 / n),
    NGram(2).normalized(),
    3.0 * (2.0 * AllSubstrings()).normalized(),
]


def random_string(random: np.random.Generator, n: int, letters: str = "ACGT") -> str:
    return "".join(letters[c] for c in random.integers(0, len(letters), n))


def random_strings(seed: int, n: int = 12, longest: int = 40, letters: str = "ACGT") -> list[str]:
    random = np.random.default_rng(seed)
    return [random_string(random, int(random.integers(0, longest)), letters) for _ in range(n)]


# ---------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("method", ["hash", "suffix"])
def test_three_grams_of_the_book(method):
    assert NGram(3, method=method).pair("ABABA", "BABAB") == 4.0


def test_subsequences_of_the_paper():
    decay = 0.7  # Lodhi and others: K_2(cat, car) = λ⁴, K_2(cat, cat) = 2 λ⁴ + λ⁶
    assert Subsequence(2, decay).pair("cat", "car") == pytest.approx(decay**4)
    assert Subsequence(2, decay).pair("cat", "cat") == pytest.approx(2 * decay**4 + decay**6)
    assert Subsequence(2, decay).normalized().pair("cat", "car") == pytest.approx(1 / (2 + decay**2))


def test_mismatch_depends_on_the_size_of_the_alphabet():
    assert Mismatch(3, 1, alphabet="ACGT").pair("AAA", "AAA") == 1 + 3 * 3
    assert Mismatch(3, 1, alphabet="AC").pair("AAA", "AAA") == 1 + 3


def test_weighted_degree_of_equal_strings_is_the_sum_of_its_weights():
    n, D = 20, 4
    betas = [2 * (D - d + 1) / (D * (D + 1)) for d in range(1, D + 1)]
    expected = sum(beta * (n - d) for d, beta in enumerate(betas))
    assert WeightedDegree(D).pair("A" * n, "A" * n) == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------- several routes


@settings(max_examples=25, deadline=None, derandomize=True)
@given(x=st.text(alphabet="abé語", max_size=30), z=st.text(alphabet="abé語", max_size=30), n=st.integers(1, 8))
def test_hash_and_suffix_agree(x, z, n):
    value = NGram(n).pair(x, z)
    assert NGram(n, method="suffix").pair(x, z) == value
    assert AllSubstrings(shortest=n, longest=n).pair(x, z) == value
    assert value == definition.spectrum(x, z, [n], lambda _: 1.0)


@pytest.mark.parametrize("n", [1, 5, 7, 8, 29, 30, 31, 40])
@pytest.mark.parametrize("letters", ["ACGT", "ACGTN", "acgt", "aé", "a😀"])
def test_keys_of_all_lengths_and_letters_agree_with_suffixes(n, letters):
    random = np.random.default_rng(n)
    core = random_string(random, 45, letters)
    strings = [core, core[3:] + "A", "A" + core[:-2], core[::-1], random_string(random, 60, letters)]
    np.testing.assert_array_equal(NGram(n)(strings), NGram(n, method="suffix")(strings))
    np.testing.assert_array_equal(Spectrum(n, alphabet=sorted({*letters, "A"}))(strings), NGram(n)(strings))


@pytest.mark.parametrize("seed", range(3))
def test_mismatch_without_mismatches_is_ngram(seed):
    strings = random_strings(seed)
    for kernel in (Mismatch(3, 0), Mismatch(3, 0, alphabet="ACGT"), Gappy(3, gap=0)):
        np.testing.assert_array_equal(kernel(strings), NGram(3)(strings))


def test_mismatch_with_more_letters_than_codes_can_hold():
    letters = [chr(200 + i) for i in range(40)]  # 40^12 > 2^63
    random = np.random.default_rng(0)
    strings = [[letters[c] for c in random.integers(0, 3, 14)] for _ in range(4)]
    exact = [
        [sum(_ball(x[i : i + 12], z[j : j + 12], 40) for i in range(3) for j in range(3)) for z in strings]
        for x in strings
    ]
    np.testing.assert_allclose(Mismatch(12, 1, alphabet=letters)(strings), exact)
    text = ["".join(x) for x in strings]
    np.testing.assert_allclose(Mismatch(12, 1, alphabet="".join(letters))(text), exact)


def _ball(a: Any, b: Any, letters: int) -> int:
    """How many strings differ from both in at most one place."""
    distance = sum(p != q for p, q in zip(a, b, strict=True))
    return {0: 1 + len(a) * (letters - 1), 1: letters, 2: 2}.get(distance, 0)


def test_gappy_with_all_gaps_is_subsequence():
    strings = random_strings(1, longest=9)
    np.testing.assert_allclose(Gappy(3, gap=6, decay=0.5)(strings), Subsequence(3, 0.5)(strings))


@pytest.mark.parametrize("seed", range(3))
def test_automaton_and_suffix_array_agree(seed):
    strings = random_strings(seed, letters="ab" if seed else "".join(chr(300 + i) for i in range(90)), longest=300)
    for kernel in (AllSubstrings(), AllSubstrings(0.9)):
        K = kernel(strings)  # rows by automata, where there are columns enough
        for i in range(len(strings)):
            for j in range(i + 1):
                assert kernel.pair(strings[i], strings[j]) == pytest.approx(K[i, j], rel=1e-12)  # by suffix arrays


@pytest.mark.parametrize(("hasher", "kernel"), [
    (StringHasher(22, 3), Spectrum(3)),
    (StringHasher(22, 3, "bounded", weights=0.5), Spectrum(3, shortest=1, weights=0.25)),
    (StringHasher(22, 3, "mismatch", mismatches=1, alphabet="ACGT"), Mismatch(3, 1, alphabet="ACGT")),
    (StringHasher(22, 3, "gappy", gap=2, weights=0.5), Gappy(3, gap=2, decay=0.5)),
    (StringHasher(22, 3, "positional", shift=2), 3.0 * WeightedDegree(3, shift=2, weights=1.0)),
], ids=["spectrum", "bounded", "mismatch", "gappy", "positional"])  # fmt: skip
def test_hashed_features_have_the_same_inner_products(hasher, kernel):
    strings = random_strings(0, letters="ACGT")
    F = hasher.transform(strings)
    np.testing.assert_allclose((F @ F.T).toarray(), kernel(strings), rtol=1e-12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(x=st.lists(st.integers(0, 3), max_size=150), z=st.lists(st.integers(0, 3), max_size=150))
def test_distance_by_bits_equals_the_recursion(x, z):
    expected = _levenshtein(x, z)
    assert EditDistance().pair(x, z) == -expected
    assert EditDistance(indel=0.5, substitution=0.5).pair(x, z) == -0.5 * expected


def _levenshtein(x: Any, z: Any) -> int:
    row = list(range(len(z) + 1))
    for i, a in enumerate(x, 1):
        new = [i]
        for j, b in enumerate(z, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (a != b)))
        row = new
    return row[-1]


def test_subsequences_of_long_strings_agree_with_short_ones():
    """Powers of the decay beyond the range of doubles: another recursion, the same values."""
    random = np.random.default_rng(0)
    core = random_string(random, 60)
    far = core + "N" * 3000 + "M"
    expected = Subsequence(3, 0.5).pair(core, core)
    assert Subsequence(3, 0.5).pair(far, core) == pytest.approx(expected, rel=1e-12)
    assert Subsequence(3, 0.5).pair(far, "Q" * 2000 + core) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", [k for k in EVERY if getattr(k, "alphabet", None) is None], ids=repr)
def test_values_do_not_depend_on_how_symbols_are_written(kernel):
    strings = random_strings(2)
    K = kernel(strings)
    np.testing.assert_allclose(kernel([x.encode() for x in strings]), K)
    np.testing.assert_allclose(kernel([list(x) for x in strings]), K)
    np.testing.assert_allclose(kernel([np.array([ord(c) for c in x], int) for x in strings]), K)
    np.testing.assert_allclose(kernel(np.array(strings)), K)


def test_columns_of_other_libraries_are_strings():
    strings = random_strings(3)
    K = Spectrum(2)(strings)
    for column in (polars.Series(strings), pyarrow.array(strings), np.array(strings, object), tuple(strings)):
        np.testing.assert_array_equal(Spectrum(2)(column), K)
    numbers = np.array([[1, 2, 1], [2, 1, 2]])
    np.testing.assert_array_equal(NGram(2)(numbers), [[2, 2], [2, 2]])


def test_convolution_over_the_parts_of_a_string_is_ngram():
    strings = random_strings(4)
    parts = Convolution(lambda x: [x[i : i + 3] for i in range(len(x) - 2)], NGram(3))  # equal parts have 1, others 0
    np.testing.assert_array_equal(parts(strings), NGram(3)(strings))


def test_rows_counted_a_few_strings_at_a_time_are_the_same(monkeypatch):
    strings_here = random_strings(5)
    kernels = [Spectrum(3, shortest=1), Mismatch(3, 1, alphabet="ACGT"), Gappy(3, 2), NGram(2)]
    expected = [kernel(strings_here) for kernel in kernels]
    features = WeightedDegree(3).features(strings_here)
    monkeypatch.setattr(strings, "FEATURES_A_CALL", 100)
    monkeypatch.setattr(strings, "STEPS_A_CALL", 100)
    for kernel, K in zip(kernels, expected, strict=True):
        np.testing.assert_array_equal(kernel(strings_here), K)
    np.testing.assert_array_equal(WeightedDegree(3).features(strings_here).toarray(), features.toarray())


@pytest.mark.parametrize(
    "kernel", [AllSubstrings(), Subsequence(2), EditDistance(), WeightedDegree(3, shift=1)], ids=repr
)
def test_rows_filled_a_few_at_a_time_are_the_same(kernel, monkeypatch):
    here = random_strings(5)
    K, L, d = kernel(here), kernel(here, here[:5]), kernel.diag(here)
    monkeypatch.setattr(strings, "STEPS_A_CALL", 100)
    np.testing.assert_array_equal(kernel(here), K)
    np.testing.assert_array_equal(kernel(here, here[:5]), L)
    np.testing.assert_allclose(d, np.diag(K), rtol=1e-12)


def test_tokens_are_equal_where_python_says_so():
    kernel = NGram(1)
    assert kernel.pair([1, 2.0, True], [1.0, 2]) == 3.0
    assert kernel.pair([-1], [-2]) == 0.0  # their hashes are equal in Python
    assert kernel.pair([(1, -1)], [(1, -2)]) == 0.0
    assert kernel.pair(["a", b"a"], ["a"]) == 1.0
    assert kernel.pair([frozenset({1, 2})], [frozenset({2, 1})]) == 1.0


# ---------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "kernel", [AllSubstrings(), AllSubstrings(0.5), NGram(12), NGram(50, method="suffix")], ids=repr
)
@pytest.mark.parametrize("make", ["a" * 100_000, "ab" * 50_000], ids=["one letter", "two letters"])
def test_long_repetitive_strings(kernel, make):
    n, period = len(make), len(set(make))
    found = kernel.pair(make, make)
    expected = math.fsum(_self_value(kernel, n, period))
    assert found == pytest.approx(expected, rel=1e-9)


def _self_value(kernel: Any, n: int, period: int) -> Any:
    """Σ w(l) Σ_u #_u², a length at a time; substrings of a periodic string are its `period` rotations."""
    lengths = [kernel.n] if isinstance(kernel, NGram) else range(1, n + 1)
    decay = getattr(kernel, "weights", None) or 1.0
    for l in lengths:
        places = n - l + 1
        counts = [places // period + (r < places % period) for r in range(period)]
        yield decay**l * sum(float(c) ** 2 for c in counts)


def test_long_random_strings_agree_across_routes():
    random = np.random.default_rng(0)
    x, z = random_string(random, 100_000), random_string(random, 80_000)
    shared = NGram(9).pair(x, z)
    assert NGram(9, method="suffix").pair(x, z) == shared > 0
    model = LinearStringModel(AllSubstrings(shortest=9, longest=9), [x], [1.0])
    assert model.predict([z])[0] == pytest.approx(shared, rel=1e-9)


def test_edit_distance_of_long_strings():
    x = "ab" * 5000
    assert EditDistance().pair(x, x[1:] + "c") == -2.0


def test_features_have_a_column_for_each_substring():
    F = Spectrum(2).features(["abab", "ba"])
    assert F.shape == (2, 2)
    assert sorted(F.toarray().ravel().tolist()) == [0.0, 1.0, 1.0, 2.0]


# ---------------------------------------------------------------------------------------------------- linear models


@pytest.mark.parametrize("kernel", LINEAR, ids=lambda kernel: repr(kernel).split(" at 0x")[0])
@pytest.mark.parametrize("letters", ["ACGT", "abcé😀ACGT"])
def test_linear_model_equals_the_kernel_expansion(kernel, letters):
    support, strings = random_strings(0, letters=letters), random_strings(1, letters=letters + "xyz")
    coef = np.random.default_rng(0).normal(size=len(support))
    model = LinearStringModel(kernel, support, coef, intercept=0.5)
    np.testing.assert_allclose(model.predict(strings), kernel(strings, support) @ coef + 0.5, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", [NGram(2), AllSubstrings(0.5), Mismatch(2, 1)], ids=repr)
def test_linear_model_of_tokens(kernel):
    random = np.random.default_rng(0)
    support, strings = ([[int(t) for t in random.integers(0, 100, 30) ** 2] for _ in range(8)] for _ in range(2))
    coef = random.normal(size=8)
    found = LinearStringModel(kernel, support, coef).predict(strings)
    np.testing.assert_allclose(found, kernel(strings, support) @ coef, rtol=1e-9, atol=1e-9)


def test_linear_model_gives_the_decisions_of_a_support_vector_machine():
    random = np.random.default_rng(0)
    X = [
        "".join(random.choice(list("ACGT"), 30, p=p))
        for p in ([0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1])
        for _ in range(25)
    ]
    y = np.repeat([0, 1], 25)
    kernel = Spectrum(3, shortest=1).normalized()
    pipeline = make_pipeline(Gram(kernel), SVC(kernel="precomputed")).fit(X, y)
    svc = pipeline[-1]
    model = LinearStringModel(kernel, [X[i] for i in svc.support_], svc.dual_coef_[0], float(svc.intercept_[0]))
    np.testing.assert_allclose(model.predict(X), pipeline.decision_function(X), rtol=1e-9)


def test_linear_model_can_be_pickled():
    model = LinearStringModel(AllSubstrings(), ["abab", "bc"], [1.0, -2.0], 0.5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(["abc"]), model.predict(["abc"]))


def test_linear_model_without_support_is_its_intercept():
    np.testing.assert_array_equal(LinearStringModel(AllSubstrings(), [], [], 2.0).predict(["ab", ""]), [2.0, 2.0])
    np.testing.assert_array_equal(LinearStringModel(NGram(2), [], [], 2.0).predict(["ab", ""]), [2.0, 2.0])


@pytest.mark.parametrize(("arguments", "message"), [
    ((Subsequence(2), ["a"], [1.0]), "kernel must be NGram"),
    (("spectrum", ["a"], [1.0]), "kernel must be a Kernel"),
    ((NGram(0), ["a"], [1.0]), "n must be"),
    ((NGram(2), ["a", "b"], [1.0]), "one for each of the 2"),
    ((NGram(2), ["a"], [math.nan]), "coef must be finite"),
    ((NGram(2), ["a"], [1.0], math.inf), "intercept must be"),
])  # fmt: skip
def test_linear_model_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearStringModel(*arguments)


def test_linear_model_refuses_strings_of_another_kind():
    with pytest.raises(ValueError, match="one kind"):
        LinearStringModel(NGram(2), ["ab"], [1.0]).predict([b"ab"])


# ---------------------------------------------------------------------------------------------------- odd and bad input


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_empty_strings_and_collections(kernel):
    K = kernel(["", "ACGT", ""])
    if isinstance(kernel, EditDistance):
        assert K[0, 2] == kernel.pair("", "") == kernel.diag([""])[0]
    else:
        np.testing.assert_array_equal(K[[0, 2]], 0.0)
        np.testing.assert_array_equal(kernel.normalized()(["", "ACGT"])[0], 0.0)
    assert kernel([]).shape == (0, 0)
    assert kernel(["AC"], []).shape == (1, 0)
    assert kernel.diag([]).shape == (0,)


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_mixed_kinds_are_refused_with_their_index(kernel):
    with pytest.raises(ValueError, match="string 2 is a list, string 0 a str"):
        kernel(["AC", "CA", ["A", "C"]])
    with pytest.raises(ValueError, match="string 1 is a bytes"):
        kernel(["AC", b"CA"])
    with pytest.raises(ValueError, match="string 1 must be a str, bytes or a sequence of tokens, got int"):
        kernel(["AC", 3])
    with pytest.raises(ValueError, match=r"string 0 must be .* got NoneType"):
        kernel([None])
    with pytest.raises(ValueError, match=r"string 0 must be .* got dict"):
        kernel([{"a": 1}])
    with pytest.raises(ValueError, match="X holds str, Z bytes"):
        kernel(["AC"], [b"AC"])


def test_bad_tokens_are_refused():
    with pytest.raises(ValueError, match="tokens of string 1 must be hashable"):
        NGram(1)([["a"], [["b"]]])
    with pytest.raises(ValueError, match="NaN"):
        NGram(1)([[math.nan]])


@pytest.mark.parametrize(
    "kernel", [Mismatch(2, 1, alphabet="ACGT"), Spectrum(2, alphabet="ACGT"), Gappy(2, alphabet="ACGT")], ids=repr
)
def test_unknown_symbols_are_refused_with_their_place_or_left_out(kernel):
    with pytest.raises(ValueError, match="string 1 has 'N' at position 2"):
        kernel(["ACGT", "ACNGT"])
    skipping = kernel.set_params(unknown="skip")
    if not isinstance(kernel, Gappy):
        np.testing.assert_allclose(skipping(["ACNGT", "GTA"])[0, 1], kernel(["AC", "GT"], ["GTA"]).sum())
    assert skipping.pair("NNN", "NNN") == 0.0


def test_unknown_bytes_and_tokens_are_refused():
    with pytest.raises(ValueError, match="string 0 has byte 78 at position 1"):
        Spectrum(2, alphabet=b"ACGT")([b"ANA"])
    with pytest.raises(ValueError, match="string 0 has a token at position 1"):
        Spectrum(2, alphabet=["to", "be"])([["to", "bee"]])


@pytest.mark.parametrize(("kernel", "message"), [
    (NGram(0), "n must be an integer of at least 1"),
    (NGram(2.5), "n must be"),
    (NGram(10**9), "n must be at most"),
    (NGram(2, method="tree"), "method must be one of"),
    (NGram(2, unit="line"), "unit must be one of"),
    (Spectrum(2, shortest=3), "shortest must be at most k"),
    (Spectrum(2, weights=[1, 2, 3]), "weights are for the lengths 1 to 2"),
    (Spectrum(2, weights=-1.0), "weights must be a positive"),
    (Spectrum(2, weights=[1.0, -1.0]), "not negative"),
    (Spectrum(2, weights=lambda n: math.nan), "finite"),
    (Spectrum(2, weights="heavy"), "weights must be None"),
    (Spectrum(2, alphabet=""), "alphabet must have at least one letter"),
    (Spectrum(2, alphabet="ACA"), "must differ"),
    (Spectrum(2, alphabet=4), "alphabet must be"),
    (Spectrum(2, alphabet=["AC", "G"]), "single characters"),
    (Spectrum(2, alphabet=[["A"]]), "hashable"),
    (Spectrum(2, alphabet="ACGT", unknown="ignore"), "unknown must be one of"),
    (Mismatch(3, -1), "m must be an integer of at least 0"),
    (Mismatch(12, 8, alphabet="ACGT"), "features at each place"),
    (Gappy(3, gap=-1), "gap must be"),
    (Gappy(3, decay=0.0), "decay must be"),
    (Gappy(30, gap=30), "features at each place"),
    (Gappy(2000, gap=1), "at most 1000"),
    (Gappy(900, gap=1, decay=10.0), "too large"),
    (WeightedDegree(0), "degree must be"),
    (WeightedDegree(2, shift=-1), "shift must be"),
    (WeightedDegree(2, weights=[1, 1, 1]), "lengths 1 to 2"),
    (AllSubstrings(shortest=0), "shortest must be"),
    (AllSubstrings(shortest=3, longest=2), "longest must be at least"),
    (AllSubstrings(weights=-2.0), "weights must be a positive"),
    (Subsequence(0), "length must be"),
    (Subsequence(2, decay=1.5), "decay must be at most 1"),
    (Subsequence(2, shortest=3), "shortest must be at most length"),
    (EditDistance(gamma=0.0), "gamma must be"),
    (EditDistance(indel=-1.0), "indel must be"),
    (EditDistance(substitution=math.inf), "substitution must be"),
])  # fmt: skip
def test_bad_parameters_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(["AC"])


def test_weights_that_grow_too_large_for_the_strings_are_refused():
    with pytest.raises(ValueError, match=r"finite|too large"):
        AllSubstrings(weights=10.0)(["A" * 400])


def test_edit_distance_is_refused_where_definiteness_matters():
    with pytest.raises(ValueError, match="corrected"):
        EditDistance().normalized()(["a", "b"])
    words = ["kitten", "sitting", "mitten", "sit", "knitting", "bitten", "it"]
    K = EditDistance(0.9).corrected(words)(words)
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_compiled_functions_check_their_arrays():
    codes, offsets = np.array([0, 1, 5], np.uint32), np.array([0, 3], np.int64)
    K = np.zeros((1, 1))
    one = np.ones(10)
    with pytest.raises(ValueError, match="below sigma"):
        _core.kernels.all_substrings_gram(codes, offsets, None, None, 3, one, 0, 1, K, 1)
    with pytest.raises(ValueError, match="offsets must"):
        _core.kernels.all_substrings_gram(codes, np.array([0, 2], np.int64), None, None, 6, one, 0, 1, K, 1)
    with pytest.raises(ValueError, match="wrong shape"):
        _core.kernels.edit_distance_gram(codes, offsets, None, None, 6, 1.0, 1.0, 0, 1, np.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="reach the longest"):
        _core.kernels.all_substrings_gram(codes, offsets, None, None, 6, one[:2], 0, 1, K, 1)
    with pytest.raises(ValueError, match="within the matrix"):
        _core.kernels.subsequence_gram(codes, offsets, None, None, 6, 1, 2, 0.5, 0, 2, K, 1)
    with pytest.raises(ValueError, match="come together"):
        _core.kernels.weighted_degree_gram(codes, offsets, codes, None, 6, 0, one, 0, 1, K, 1)
    with pytest.raises(ValueError, match="out of range"):
        _core.kernels.kmer_rows(
            codes, offsets, np.ones(2, np.uint64), 0, "substrings", 1, 1, 0, one, codes[:0], False, 1
        )
    with pytest.raises(ValueError, match="for all lengths"):
        _core.kernels.kmer_rows(codes, offsets, None, 0, "gappy", 9, 9, 3, one, codes[:0], False, 1)


@pytest.mark.parametrize("kernel", [Subsequence(2), AllSubstrings(), WeightedDegree(3), NGram(2, method="suffix")])
def test_the_diagonal_is_made_in_several_calls_so_that_it_can_be_interrupted(kernel: Any, monkeypatch: Any) -> None:
    strings = ["abracadabra" * n for n in (3, 1, 7, 2, 5, 1, 4)]
    whole = kernel(strings).diagonal()
    calls = []
    for name in ("subsequence_gram", "all_substrings_gram", "edit_distance_gram", "weighted_degree_gram"):
        plain = getattr(_core.kernels, name)
        monkeypatch.setattr(_core.kernels, name, lambda *args, plain=plain: (calls.append(1), plain(*args))[1])
    monkeypatch.setattr("mercer.kernels.strings.STEPS_A_CALL", 1)
    np.testing.assert_allclose(kernel.diag(strings), whole)
    assert len(calls) == len(strings)
