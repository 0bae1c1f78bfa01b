"""TextHasher against scikit-learn's vectorizers and the statements of the theory."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import _core
from mercer.data import TextBuffer
from mercer.maps import TextHasher
from reference import records as slow
from reference.forked import popen
from reference.text import features

pa = pytest.importorskip("pyarrow")


def zipf_documents(n=60, words=40, vocabulary=800, seed=0):
    rng = np.random.default_rng(seed)
    names = np.array([f"w{i:x}{'é' * (i % 3 == 0)}" for i in range(vocabulary)])
    p = 1.0 / np.arange(1, vocabulary + 1)
    return [" ".join(names[rng.choice(vocabulary, rng.integers(0, 2 * words), p=p / p.sum())]) for _ in range(n)]


DOCUMENTS = zipf_documents()
VARIANTS = [("word", (1, 1)), ("word", (1, 2)), ("char", (3, 3)), ("char", (1, 4)), ("char_wb", (3, 5))]


def assert_equal(a, b):
    assert a.shape == b.shape
    assert np.array_equal(a.indptr, b.indptr)
    assert np.array_equal(a.indices, b.indices)
    assert np.array_equal(a.data, b.data)


def gram(X):
    """X Xᵀ by way of the columns that are used: SciPy's transpose walks over all 2^n_bits of them."""
    used, columns = np.unique(X.indices, return_inverse=True)
    Z = csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], len(used)))
    return (Z @ Z.T).toarray()


def counted(hashes, counts, n_bits):
    """The row of features with these hashes: columns and signed sums, zeros left out."""
    columns, place = np.unique(hashes & np.uint64(2**n_bits - 1), return_inverse=True)
    sums = np.bincount(place, weights=np.where(hashes >> np.uint64(63), -1.0, 1.0) * counts, minlength=len(columns))
    return columns[sums != 0], sums[sums != 0]


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


# ------------------------------------------------------------------------------------------------ the hash kernel


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
@pytest.mark.parametrize("n", range(1, 20))
def test_hashes_of_character_ngrams_equal_their_definition(n, seed, instruction_set):
    text = "".join(np.random.default_rng(n).choice(list("abc xyz09.,\x01\x7f"), 200))
    document = " ".join(text.split())
    hashes = np.array([slow.name_hash(document[i : i + n], seed) for i in range(len(document) - n + 1)], np.uint64)
    columns, sums = counted(hashes, np.ones(len(hashes)), 30)
    row = TextHasher(n_bits=30, analyzer="char", ngrams=(n, n), seed=seed).transform([document])
    np.testing.assert_array_equal(row.indices, columns)
    np.testing.assert_array_equal(row.data, sums)


@pytest.mark.parametrize(
    ("size", "n_bits"),
    [
        *itertools.product([1, 24, 25, 60, 300, 3_000, 20_000], [1, 3, 10, 13, 17, 20, 24, 25, 29, 30]),
        *itertools.product([300_000], [10, 24, 30]),
    ],
)
def test_rows_of_every_size_are_sorted_and_added_up(size, n_bits):
    words = [f"w{i:x}" for i in np.random.default_rng(size).integers(0, size, size)]
    buffer = TextBuffer([" ".join(words)])
    hasher = TextHasher(n_bits=n_bits)
    _, hashes, counts = _core.text.text_names(buffer.data, buffer.offsets, **hasher._settings())
    columns, sums = counted(hashes, counts, n_bits)
    row = hasher.transform(buffer)
    np.testing.assert_array_equal(row.indices, columns)
    np.testing.assert_array_equal(row.data, sums)


def test_words_made_up_to_have_close_columns_are_sorted_too():
    """The highest ten of 30 bits are 0, so that they say nothing of the order; the words come in the reverse one."""
    words = np.array([f"w{i}" for i in range(100_000)])
    column = TextHasher(n_bits=30).transform(words).indices
    close = np.flatnonzero(column < 2**20)
    close = close[np.argsort(-column[close])][:60]
    assert len(close) == 60
    row = TextHasher(n_bits=30).transform([" ".join(words[close])])
    np.testing.assert_array_equal(row.indices, column[close][::-1])


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("analyzer", "ngrams"), VARIANTS)
def test_gram_matrix_equals_the_unhashed_one(analyzer, ngrams, signed):
    """At 2^28 columns a collision among these few thousand features is unlikely, and the seed is one without."""
    X = TextHasher(n_bits=28, analyzer=analyzer, ngrams=ngrams, signed=signed, seed=1).transform(DOCUMENTS)
    Z = CountVectorizer(analyzer=analyzer, ngram_range=ngrams).fit_transform(DOCUMENTS)
    assert X.nnz == Z.nnz
    assert np.array_equal(gram(X), gram(Z))


def test_rows_are_canonical():
    X = TextHasher(n_bits=6).transform(DOCUMENTS)
    assert (X.data != 0).all()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        assert (np.diff(X.indices[a:b]) > 0).all()
    X.check_format(full_check=True)


@pytest.mark.parametrize("signed", [True, False])
def test_expectation_over_seeds(signed):
    """E k̄ = (1 − 1/n) k + s s' / n without signs, k with them."""
    x, z, n_bits, seeds = "aa aa bb cc dd", "aa bb bb ee ff gg", 3, 500
    n, k, s = 2**n_bits, 2 * 1 + 1 * 2, 5 * 6
    values = np.empty(seeds)
    for seed in range(seeds):
        X = TextHasher(n_bits=n_bits, signed=signed, seed=seed).transform([x, z])
        values[seed] = (X[0] @ X[1].T).sum()
    expected = k if signed else (1 - 1 / n) * k + s / n
    assert abs(values.mean() - expected) < 3 * values.std() / np.sqrt(seeds)
    assert values.std() > 0.5


def test_collisions_are_those_of_the_table():
    """287,970 tokens into 2^24 … 2^14 buckets."""
    tokens = " ".join(f"token{i}" for i in range(287_970))
    printed = {24: 285_614, 22: 278_238, 20: 251_910, 18: 174_776, 16: 64_758, 14: 16_383}
    for n_bits, unique in printed.items():
        X = TextHasher(n_bits=n_bits, signed=False).transform([tokens])
        assert X.nnz == pytest.approx(unique, rel=0.003)
        assert X.sum() == 287_970


def test_sign_and_bucket_are_independent():
    X = TextHasher(n_bits=12, signed=True).transform([f"token{i}" for i in range(20_000)])
    for bit in range(12):
        inside = X.data[(X.indices >> bit & 1) == 1]
        assert abs(inside.mean()) < 4 / np.sqrt(len(inside))


def test_copies_are_further_columns():
    one, three = (TextHasher(n_bits=28, copies=c).transform(DOCUMENTS) for c in (1, 3))
    assert three.nnz == 3 * one.nnz
    assert set(one.indices) < set(three.indices)
    assert np.array_equal(gram(three), 3 * gram(one))


def test_a_feature_survives_if_one_of_its_copies_is_alone():
    """The sum of the copies of a feature tells documents apart that one crowded table confuses."""
    words = [f"t{i}" for i in range(60)]
    crowded = TextHasher(n_bits=9, signed=False).transform(words)
    copied = TextHasher(n_bits=9, signed=False, copies=3).transform(words)
    pairs = {tuple(row.indices) for row in crowded}, {tuple(row.indices) for row in copied}
    assert len(pairs[0]) < 60
    assert len(pairs[1]) == 60


def rows_of_reference(documents, n_bits, signed, copies, ngrams):
    """One dict bucket → sum a document, from scikit-learn's n-grams and the hash of each."""
    rows = []
    for document in documents:
        row: dict[int, int] = {}
        for name, count in features(document, "char_wb", ngrams).items():
            hashes = [_core.hashing.feature_hash(name.encode(), 0)]
            hashes += [
                int(_core.hashing.combine_hashes(np.array(hashes[:1], np.uint64), c)[0]) for c in range(1, copies)
            ]
            for h in hashes:
                bucket = h & ((1 << n_bits) - 1)
                row[bucket] = row.get(bucket, 0) + (-count if signed and h >> 63 else count)
        rows.append({bucket: value for bucket, value in row.items() if value})
    return rows


@pytest.mark.parametrize(("n_bits", "signed", "copies"), [(3, True, 1), (20, True, 2), (29, False, 1), (30, True, 1)])
@pytest.mark.parametrize("ngrams", [(3, 5), (1, 2), (2, 9)])
def test_words_that_come_again_count_in_full(n_bits, signed, copies, ngrams):
    """Words are remembered across documents: repeats, many words, long ones, ones of other scripts, none."""
    rng = np.random.default_rng(0)
    words = [f"w{i:x}" for i in range(600)] + ["naïve", "日本語", "a", "x" * 15, "x" * 16, "x" * 17, "y" * 40]
    documents = ["again " * 5000, "", " a  a\ta ", "naïve " * 3 + "naive " * 4]
    documents += [" ".join(words[i] for i in rng.integers(0, len(words), 300)) for _ in range(6)] + ["again"] * 2
    X = TextHasher(n_bits, analyzer="char_wb", ngrams=ngrams, signed=signed, copies=copies).transform(documents)
    found = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]
    assert found == rows_of_reference(documents, n_bits, signed, copies, ngrams)


def test_chunks_and_batch_are_equal():
    hasher = TextHasher(n_bits=10, ngrams=(1, 2))
    batch = hasher.transform(DOCUMENTS)
    assert_equal(vstack([hasher.transform(DOCUMENTS[i : i + 7]) for i in range(0, 60, 7)], format="csr"), batch)
    # The counts of a stream of documents add up to those of one long document, in any order.
    whole = TextHasher(n_bits=10).transform([" ".join(DOCUMENTS)])
    parts = TextHasher(n_bits=10).transform(DOCUMENTS[::-1])
    assert np.array_equal(whole.toarray()[0], np.asarray(parts.sum(axis=0))[0])


@pytest.mark.parametrize(("analyzer", "ngrams"), VARIANTS)
def test_result_does_not_depend_on_threads(analyzer, ngrams):
    documents = zipf_documents(1000, seed=3) + [""] * 10
    hasher = TextHasher(n_bits=18, analyzer=analyzer, ngrams=ngrams, copies=2)
    assert_equal(hasher.set_params(n_jobs=4).transform(documents), hasher.set_params(n_jobs=1).transform(documents))


# ------------------------------------------------------------------------------------------------ stable hashes

PINNED = ["The quick brown fox, naïve 日本語", "jumps\nover  the LAZY dog"]
SETTINGS = [
    {"n_bits": 10},
    {"n_bits": 12, "ngrams": (1, 2), "seed": 7, "copies": 2},
    {"n_bits": 8, "analyzer": "char", "ngrams": (3, 3)},
    {"n_bits": 8, "analyzer": "char_wb", "ngrams": (2, 4), "lowercase": False},
]
CODE = """
from mercer.maps import TextHasher
for settings in {}:
    X = TextHasher(**settings).transform({})
    print(X.indices[:5].tolist(), X.data[:5].astype(int).tolist(), X.nnz, int(X.indices @ X.data))
"""
EXPECTED = """\
[11, 34, 399, 558, 699] [-1, 1, -1, -1, -1] 11 1610
[110, 313, 332, 400, 456] [-1, 1, -1, 1, -1] 40 -12894
[3, 9, 11, 31, 32] [-1, -1, -1, 1, 1] 45 -706
[1, 2, 3, 4, 6] [1, -1, -1, -1, -1] 107 1998
"""


def test_columns_are_pinned_in_every_process():
    out, _ = popen(CODE.format(SETTINGS, PINNED), text=True).communicate()
    assert out == EXPECTED


def test_other_seeds_give_other_columns():
    a, b = (set(TextHasher(seed=seed).transform(DOCUMENTS).indices) for seed in (0, 1))
    assert len(a & b) < 0.05 * len(a)


# ------------------------------------------------------------------------------------------------ weights


def test_log_weighting_keeps_the_sign():
    counts = TextHasher(n_bits=16).transform(DOCUMENTS)
    logs = TextHasher(n_bits=16, weighting="log").transform(DOCUMENTS)
    assert np.array_equal(counts.indices, logs.indices)
    assert np.allclose(logs.data, np.sign(counts.data) * np.log(1 + np.abs(counts.data)))


@pytest.mark.parametrize("norm", [None, "l1", "l2"])
def test_tfidf_equals_that_of_a_dictionary(norm):
    """Without collisions; scikit-learn's smooth idf is the same formula."""
    X = TextHasher(n_bits=26, signed=False, weighting="tfidf", norm=norm, seed=1).fit(DOCUMENTS).transform(DOCUMENTS)
    Z = TfidfVectorizer(norm=norm).fit_transform(DOCUMENTS)
    assert len(set(X.indices)) == Z.shape[1]
    assert np.allclose(gram(X), gram(Z))


def test_idf_of_a_sample_is_close_to_the_full_one():
    documents = zipf_documents(3000, seed=5)
    full = TextHasher(n_bits=16, weighting="tfidf").fit(documents)
    part = TextHasher(n_bits=16, weighting="tfidf", idf_sample=0.1).fit(documents)
    assert (full.n_documents_, part.n_documents_) == (3000, 300)
    frequent = full.document_frequency_ >= 90
    assert frequent.sum() > 100
    assert np.corrcoef(full.idf_[frequent], part.idf_[frequent])[0, 1] > 0.95


def test_idf_of_chunks_equals_that_of_the_batch():
    batch = TextHasher(n_bits=12, weighting="tfidf").fit(DOCUMENTS)
    chunks = TextHasher(n_bits=12, weighting="tfidf")
    for start in range(0, 60, 11):
        chunks.partial_fit(DOCUMENTS[start : start + 11])
    assert_equal(chunks.transform(DOCUMENTS), batch.transform(DOCUMENTS))
    counted = TextHasher(n_bits=12, weighting="tfidf", idf_sample=25)
    for start in range(0, 60, 11):
        counted.partial_fit(DOCUMENTS[start : start + 11])
    assert counted.n_documents_ == 25
    first = TextHasher(n_bits=12, weighting="tfidf").fit(DOCUMENTS[:25])
    assert np.array_equal(counted.document_frequency_, first.document_frequency_)
    assert counted.fit(DOCUMENTS[:3]).n_documents_ == 3


def test_tfidf_needs_fitting():
    hasher = TextHasher(weighting="tfidf")
    with pytest.raises(NotFittedError, match="call fit"):
        hasher.transform(DOCUMENTS)
    with pytest.raises(NotFittedError):
        check_is_fitted(hasher)
    check_is_fitted(hasher.fit(DOCUMENTS))
    check_is_fitted(TextHasher())
    with pytest.raises(NotFittedError, match="n_bits has changed"):
        hasher.set_params(n_bits=10).transform(DOCUMENTS)


@pytest.mark.parametrize("weighting", [None, "log", "tfidf"])
def test_float32_is_kept(weighting):
    hasher = TextHasher(n_bits=12, weighting=weighting, norm="l2", dtype=np.float32)
    X = hasher.fit(DOCUMENTS).transform(DOCUMENTS)
    assert X.dtype == np.float32
    assert X.indices.dtype == X.indptr.dtype == np.int32
    double = hasher.set_params(dtype=np.float64).transform(DOCUMENTS)
    assert double.dtype == np.float64
    assert np.allclose(X.toarray(), double.toarray(), atol=1e-6)


# ------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("analyzer", "ngrams", "copies"), [("word", (1, 2), 1), ("char_wb", (3, 3), 1), ("word", (1, 1), 3)]
)
def test_inverse_names_every_column(analyzer, ngrams, copies):
    hasher = TextHasher(n_bits=20, analyzer=analyzer, ngrams=ngrams, copies=copies, inverse_size=10**6).fit(DOCUMENTS)
    analyze = CountVectorizer(analyzer=analyzer, ngram_range=ngrams).build_analyzer()
    for document in DOCUMENTS[:5]:
        row = TextHasher(n_bits=20, analyzer=analyzer, ngrams=ngrams, copies=copies).transform([document])
        known = {name for j in row.indices for name in hasher.inverse(j)}
        assert known >= set(analyze(document))
    report = hasher.collision_report()
    assert report.n_names == len({name for document in DOCUMENTS for name in analyze(document)})
    assert report.rate == pytest.approx(report.expected_rate, abs=0.005)
    assert report.dropped == 0


def test_names_of_columns():
    hasher = TextHasher(n_bits=8, inverse_size=10)
    assert hasher.get_feature_names_out()[3] == "hash3"
    hasher.partial_fit(["cat cat"]).partial_fit(["dog"])
    names = hasher.get_feature_names_out()
    assert len(names) == 256
    assert {"cat", "dog"} <= set(names)
    assert set(names[TextHasher(n_bits=8).transform(["dog"]).indices]) == {"dog"}


def test_names_need_to_be_kept():
    with pytest.raises(ValueError, match="inverse_size"):
        TextHasher().fit(DOCUMENTS).inverse(3)


# ------------------------------------------------------------------------------------------------ scikit-learn, files


def test_in_a_pipeline():
    documents = ["good fine nice", "bad awful poor", "nice good", "poor bad"] * 3
    model = make_pipeline(TextHasher(n_bits=12, weighting="tfidf", norm="l2"), LogisticRegression())
    assert model.fit(documents, [1, 0, 1, 0] * 3).predict(["fine good", "awful"]).tolist() == [1, 0]
    assert pickle.loads(pickle.dumps(model)).predict(["fine good"]).tolist() == [1]


def test_clone_and_parameters():
    hasher = TextHasher(n_bits=9, ngrams=(1, 3), analyzer="char", dtype=np.float32, weighting="tfidf")
    copy = clone(hasher.fit(DOCUMENTS))
    assert copy.get_params() == hasher.get_params()
    assert not hasattr(copy, "document_frequency_")
    assert TextHasher.from_json(hasher.to_json()).get_params() == hasher.get_params()


def test_set_output_of_frames_is_refused_and_the_default_works():
    with pytest.raises(ValueError, match="sparse"):
        TextHasher(n_bits=4).set_output(transform="pandas").fit_transform(DOCUMENTS)
    assert TextHasher(n_bits=4).set_output(transform="default").fit_transform(DOCUMENTS).shape == (60, 16)


@pytest.mark.parametrize("settings", [{}, {"weighting": "tfidf", "norm": "l2"}, {"inverse_size": 50, "copies": 2}])
def test_files_bring_back_the_same_map(settings, tmp_path):
    hasher = TextHasher(n_bits=14, ngrams=(1, 2), seed=3, **settings).fit(DOCUMENTS)
    mercer.save(hasher, tmp_path / "map")
    loaded = mercer.load(tmp_path / "map")
    assert loaded.get_params() == hasher.get_params()
    assert_equal(loaded.transform(DOCUMENTS), hasher.transform(DOCUMENTS))
    if hasher.inverse_size:
        assert loaded.collision_report() == hasher.collision_report()
        assert loaded.partial_fit(["new"]).collision_report().n_names >= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("places", np.array([2**14])),
        ("places", np.array([-1])),
        ("values", np.array([61])),
        ("values", np.array([-1])),
        ("values", np.array([1, 2])),
    ],
)
def test_damaged_states_are_refused(name, value):
    hasher = TextHasher(n_bits=14, weighting="tfidf").fit(DOCUMENTS)
    meta, _ = hasher.to_state()
    where = "document_frequency_"
    arrays = {f"{where}.places": np.array([5]), f"{where}.values": np.array([1])}
    TextHasher.from_state(meta, arrays)
    with pytest.raises(ValueError, match=r"place|document frequenc"):
        TextHasher.from_state(meta, {**arrays, f"{where}.{name}": value})


@pytest.mark.parametrize(
    "seen", [{"cat": [1]}, {"cat": [1, 2**20]}, {"cat": [1, -1]}, {"cat": [1.5, 2]}, {3: [1, 2]}, ["cat"], {"cat": 3}]
)
def test_damaged_names_are_refused(seen):
    hasher = TextHasher(n_bits=14, inverse_size=10).fit(["cat"])
    TextHasher.from_state(*hasher.to_state())
    hasher.inverse_._seen = seen
    with pytest.raises(ValueError, match="damaged"):
        TextHasher.from_state(*hasher.to_state())


# ------------------------------------------------------------------------------------------------ inputs


def test_inputs_of_all_kinds_give_the_same_rows(tmp_path):
    (tmp_path / "file").write_text("\n".join(DOCUMENTS) + "\n")
    expected = TextHasher().transform(DOCUMENTS)
    for X in (tuple(DOCUMENTS), np.array(DOCUMENTS), pa.array(DOCUMENTS), TextBuffer(DOCUMENTS), tmp_path / "file",
              [d.encode() for d in DOCUMENTS], iter(DOCUMENTS)):  # fmt: skip
        assert_equal(TextHasher().transform(X), expected)


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_odd_documents(analyzer):
    documents = [b"", b" \n", b"\xff\xfe\xfd", b"\x00", b"ab\x00\xffcd" * 50, "é".encode() * 200]
    X = TextHasher(analyzer=analyzer, ngrams=(1, 3)).transform(documents)
    assert X.shape == (6, 2**20)
    assert X[0].nnz == 0
    assert TextHasher(analyzer=analyzer).transform([]).shape == (0, 2**20)


def test_one_line_of_100_megabytes():
    document = b"some words and a number 12 " * 4_000_000
    X = TextHasher().transform([document])
    assert np.abs(X.data).tolist() == [4_000_000.0] * 5


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_bits": 0}, "n_bits"),
        ({"n_bits": 31}, "n_bits must be at most 30"),
        ({"n_bits": 2.0}, "n_bits"),
        ({"ngrams": (2, 1)}, "ngrams"),
        ({"ngrams": (0, 1)}, "ngrams"),
        ({"ngrams": 3}, "ngrams must be a pair"),
        ({"analyzer": "line"}, "analyzer"),
        ({"copies": 0}, "copies"),
        ({"n_bits": 2, "copies": 5}, "copies must be at most"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"weighting": "idf"}, "weighting"),
        ({"norm": "max"}, "norm"),
        ({"dtype": np.int32}, "dtype"),
        ({"dtype": "no type"}, "dtype"),
        ({"idf_sample": 0.0}, "idf_sample"),
        ({"idf_sample": 1.5}, "idf_sample"),
        ({"idf_sample": True}, "idf_sample"),
        ({"inverse_size": -1}, "inverse_size"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_refused(settings, match):
    for call in (lambda h: h.fit(["a"]), lambda h: h.transform(["a"])):
        with pytest.raises(ValueError, match=match):
            call(TextHasher(**settings))


def test_a_single_string_is_refused():
    with pytest.raises(TypeError, match="single str"):
        TextHasher().transform("a document")
