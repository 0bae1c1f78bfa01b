"""StringHasher equals the string kernels by their definitions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.reference import strings

import mercer
from mercer.maps import StringHasher, TextHasher

WEIGHTS = {
    "constant": (None, lambda n: 1.0),
    "decay": (0.5, lambda n: 0.5**n),
    "callable": (lambda n: 1.0 / n, lambda n: 1.0 / n),
}


def random_strings(n=8, size=30, letters="abcé", seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), rng.integers(0, size + 1))) for _ in range(n)]


def gram(features):
    return np.array([[strings.inner(a, b) for b in features] for a in features])


def hashed_gram(X, **settings):
    Z = StringHasher(n_bits=28, **settings).fit(X).transform(X)
    used, columns = np.unique(Z.indices, return_inverse=True)
    Z = csr_matrix((Z.data, columns, Z.indptr), shape=(len(X), len(used)))
    return (Z @ Z.T).toarray()


def test_bounded_equals_the_exact_kernel_of_long_strings():
    """50 strings of length 200, substrings of length up to 5."""
    rng = np.random.default_rng(4)
    X = ["".join(rng.choice(list("acgt"), 200)) for _ in range(50)]
    Z = StringHasher(n_bits=22, max_length=5, kernel="bounded", weights=0.7).transform(X)
    expected = gram([strings.bounded(x, 5, lambda n: 0.7**n) for x in X])
    assert np.allclose((Z @ Z.T).toarray(), expected, rtol=1e-12)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("k", [1, 3, 18])
@pytest.mark.parametrize("kernel", ["spectrum", "bounded"])
def test_substrings_equal_the_definition(kernel, k, weights, signed):
    X = random_strings()
    given, weight = WEIGHTS[weights]
    expected = gram([getattr(strings, kernel)(x, k, weight) for x in X])
    assert np.allclose(hashed_gram(X, kernel=kernel, max_length=k, weights=given, signed=signed), expected)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("k", "m"), [(1, 0), (1, 1), (3, 0), (3, 1), (4, 2), (2, 5)])
def test_mismatch_equals_the_definition(k, m, weights):
    X = random_strings(6)
    given, weight = WEIGHTS[weights]
    expected = gram([strings.mismatch(x, k, m, "abcé", weight) for x in X])
    settings = {"kernel": "mismatch", "max_length": k, "mismatches": m, "weights": given}
    assert np.allclose(hashed_gram(X, **settings), expected)
    assert np.allclose(hashed_gram(X, **settings, alphabet="éacb"), expected)


def test_a_larger_alphabet_has_more_neighbours():
    X = ["abab", "bbb"]
    expected = gram([strings.mismatch(x, 3, 1, "abcdef", lambda n: 1.0) for x in X])
    assert np.allclose(hashed_gram(X, kernel="mismatch", max_length=3, alphabet="abcdef"), expected)


def test_strange_characters_stay_or_are_replaced():
    hasher = StringHasher(kernel="mismatch", max_length=2, alphabet="ab", inverse_size=99).fit(["aX"])
    names = {name for j in hasher.transform(["aX"]).indices for name in hasher.inverse(j)}
    assert names == {"aX", "bX", "aa", "ab"}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("k", "gap"), [(1, 0), (1, 3), (2, 1), (3, 0), (3, 2), (4, 30)])
def test_gappy_equals_the_definition(k, gap, weights):
    X = random_strings(6, 12)
    given, weight = WEIGHTS[weights]
    expected = gram([strings.gappy(x, k, gap, weight) for x in X])
    assert np.allclose(hashed_gram(X, kernel="gappy", max_length=k, gap=gap, weights=given), expected)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("k", "shift"), [(1, 0), (3, 0), (3, 2)])
def test_positional_equals_the_definition(k, shift, weights):
    X = random_strings(6)
    given, weight = WEIGHTS[weights]
    found = hashed_gram(X, kernel="positional", max_length=k, shift=shift, weights=given)
    assert np.allclose(found, gram([strings.positional(x, k, shift, weight) for x in X]))
    closed = [[strings.positional_kernel(x, z, k, shift, weight) for z in X] for x in X]
    assert np.allclose(found, closed)


@pytest.mark.parametrize("settings", [{"kernel": "mismatch", "mismatches": 0}, {"kernel": "gappy", "gap": 0}])
def test_spectrum_is_a_special_case(settings):
    X = random_strings()
    a = StringHasher(max_length=3, **settings).fit(X).transform(X)
    b = StringHasher(max_length=3).transform(X)
    assert (a != b).nnz == 0


def test_spectrum_is_a_character_ngram_of_text():
    X = random_strings(letters="ab\té")
    a = StringHasher(max_length=4, signed=True).transform([x.replace("\t\t", "") for x in X])
    b = TextHasher(analyzer="char", ngrams=(4, 4), lowercase=False).transform([x.replace("\t\t", "") for x in X])
    assert (a != b).nnz == 0


def test_characters_of_bytes_are_bytes():
    assert StringHasher(max_length=2).transform(["é"]).nnz == 0
    assert StringHasher(max_length=2).transform(["é".encode()]).nnz == 1
    X = [bytes(np.random.default_rng(i).integers(0, 256, 40).astype(np.uint8)) for i in range(5)]
    expected = gram([strings.bounded(x, 3, lambda n: 1.0) for x in X])
    assert np.allclose(hashed_gram(X, kernel="bounded", max_length=3), expected)
    hasher = StringHasher(kernel="mismatch", max_length=1).fit(["é".encode()])
    assert hasher.alphabet_ == [b"\xa9", b"\xc3"]


def test_weights_of_a_sequence_are_by_length_or_span():
    X = random_strings()
    a = StringHasher(kernel="bounded", max_length=3, weights=[1.0, 0.0, 0.25]).transform(X)
    b = StringHasher(kernel="bounded", max_length=3, weights=lambda n: {1: 1.0, 2: 0.0, 3: 0.25}[n]).transform(X)
    assert (a != b).nnz == 0
    # Skipped characters only: the weight of the spans without a gap is 0.
    c = StringHasher(kernel="gappy", max_length=2, gap=1, weights=[0, 0, 1], inverse_size=9).fit(["abc"])
    assert [c.inverse(j) for j in c.transform(["abc"]).indices] == [["ac"]]


def test_expectation_without_signs():
    """E k̄ = (1 − 1/n) k + s s' / n, over seeds."""
    x, z = "abcab", "bcbca"
    features = [strings.bounded(u, 2, lambda n: 0.5**n) for u in (x, z)]
    k, s = strings.inner(*features), features[0].total() * features[1].total()
    values = []
    for seed in range(800):
        X = StringHasher(n_bits=4, kernel="bounded", max_length=2, weights=0.5, seed=seed).transform([x, z])
        values.append((X[0] @ X[1].T).sum())
    assert abs(np.mean(values) - ((1 - 1 / 16) * k + s / 16)) < 3 * np.std(values) / np.sqrt(800)


KERNELS = [
    {"kernel": "spectrum"}, {"kernel": "bounded", "weights": 0.3}, {"kernel": "mismatch", "max_length": 3},
    {"kernel": "gappy", "gap": 2, "weights": 0.3}, {"kernel": "positional", "shift": 1},
]  # fmt: skip


@pytest.mark.parametrize("settings", KERNELS, ids=lambda s: s["kernel"])
def test_result_does_not_depend_on_threads(settings):
    X = random_strings(3000, 60)
    one, four = (StringHasher(n_bits=12, n_jobs=n, **settings).fit(X).transform(X) for n in (1, 4))
    assert np.array_equal(one.indptr, four.indptr)
    assert np.array_equal(one.indices, four.indices)
    assert np.array_equal(one.data, four.data)


@pytest.mark.parametrize("settings", KERNELS, ids=lambda s: s["kernel"])
def test_files_bring_back_the_same_map(settings, tmp_path):
    X = random_strings()
    hasher = StringHasher(n_bits=14, inverse_size=1000, **settings).fit(X)
    mercer.save(hasher, tmp_path / "map")
    loaded = mercer.load(tmp_path / "map")
    assert loaded.get_params() == hasher.get_params()
    assert (loaded.transform(X) != hasher.transform(X)).nnz == 0
    assert loaded.collision_report() == hasher.collision_report()


def test_a_callable_is_saved_as_its_numbers(tmp_path):
    hasher = StringHasher(max_length=3, kernel="bounded", weights=lambda n: 1.0 / n)
    mercer.save(hasher, tmp_path / "map")
    assert mercer.load(tmp_path / "map").weights == [1.0, 0.5, 1 / 3]
    mercer.save(StringHasher(kernel="mismatch", alphabet="aé", max_length=2), tmp_path / "other")
    assert mercer.load(tmp_path / "other").alphabet == [b"a", "é".encode()]


def test_names_of_columns_are_substrings():
    hasher = StringHasher(kernel="positional", max_length=2, inverse_size=99).fit(["aba"])
    row = hasher.transform(["aba"])
    assert {name for j in row.indices for name in hasher.inverse(j)} == {"a@0", "b@1", "a@2", "ab@0", "ba@1"}


def test_alphabet_grows_with_partial_fit():
    hasher = StringHasher(kernel="mismatch", max_length=2).partial_fit(["ab"]).partial_fit(["c"])
    assert hasher.alphabet_ == [b"a", b"b", b"c"]
    assert hasher.fit(["x"]).alphabet_ == [b"x"]


def test_mismatch_needs_an_alphabet():
    with pytest.raises(NotFittedError, match="alphabet"):
        StringHasher(kernel="mismatch").transform(["ab"])
    assert StringHasher(kernel="mismatch", max_length=2, alphabet="ab").transform(["ab"]).nnz == 3


def test_in_a_pipeline():
    X = ["gattaca", "gattact", "cccggg", "ccgggg"] * 3
    model = make_pipeline(StringHasher(max_length=3, kernel="mismatch"), LogisticRegression(C=10))
    model.fit(X, [1, 1, 0, 0] * 3)
    assert model.predict(["gattata", "cccccg"]).tolist() == [1, 0]
    assert pickle.loads(pickle.dumps(model)).predict(["gattata"]).tolist() == [1]
    assert clone(model[0]).get_params() == model[0].get_params()


def test_short_and_empty_strings_have_no_features():
    for settings in KERNELS:
        X = StringHasher(**settings).fit(["", "abcdefg"]).transform(["", "a"])
        assert X[0].nnz == 0
        assert (X[1].nnz > 0) == (settings["kernel"] in ("bounded", "positional"))


def test_float32_is_kept():
    X = StringHasher(kernel="bounded", weights=0.3, dtype=np.float32).transform(["banana"])
    assert X.dtype == np.float32


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_bits": 31}, "n_bits"),
        ({"max_length": 0}, "max_length"),
        ({"kernel": "edit"}, "kernel"),
        ({"weights": [1.0, 2.0]}, "weights must be 5 numbers"),
        ({"weights": "decay"}, "weights must be None, a number, a list of numbers or a function, got 'decay'"),
        ({"weights": -1.0}, "not negative"),
        ({"weights": lambda n: np.nan}, "finite"),
        ({"kernel": "gappy", "weights": [1.0] * 5}, "weights must be 6 numbers"),
        ({"mismatches": -1}, "mismatches"),
        ({"gap": -1}, "gap"),
        ({"shift": 1.5}, "shift"),
        ({"shift": 2**31 - 1}, "shift must be at most 1000000, got 2147483647"),
        ({"gap": 2**31 - 1}, "gap must be at most"),
        ({"mismatches": 2**31 - 1}, "mismatches must be at most"),
        ({"max_length": 2**31 - 1}, "max_length must be at most"),
        ({"kernel": "positional", "max_length": 5, "shift": 10**6}, "5,000,005 features at each place"),
        ({"alphabet": ["ab"]}, "single characters"),
        ({"alphabet": [1]}, "single characters"),
        ({"kernel": "gappy", "max_length": 20, "gap": 20}, "features at each place"),
        ({"kernel": "mismatch", "max_length": 20, "mismatches": 9, "alphabet": "abcdefgh"}, "features at each place"),
        ({"seed": -3}, "seed"),
        ({"dtype": int}, "dtype"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_refused(settings, match):
    for call in (lambda h: h.fit(["a"]), lambda h: h.transform(["a"])):
        with pytest.raises(ValueError, match=match):
            call(StringHasher(**settings))


def test_an_alphabet_found_may_be_too_large():
    with pytest.raises(ValueError, match="features at each place"):
        StringHasher(kernel="mismatch", max_length=5, mismatches=5).fit([" ".join(map(chr, range(40, 120)))])
