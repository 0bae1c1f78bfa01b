"""Learners with substrings of strings, and with copies of features."""

from collections import Counter

import numpy as np
import pytest

import mercer
from mercer.maps import StringHasher, TextHasher
from mercer.online import HashedClassifier, HashedRegressor
from mercer.online.inputs import Documents
from mercer.report.portrait import portrait

KERNELS = [
    StringHasher(max_length=3),
    StringHasher(max_length=3, kernel="bounded", seed=5),
    StringHasher(max_length=3, kernel="mismatch", alphabet="acgt"),
    StringHasher(max_length=2, kernel="gappy", gap=2),
    StringHasher(max_length=2, kernel="positional", shift=1),
]


def genes(n, seed=0):
    """Those of class 1 hold "gattaca" somewhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    texts = ["".join(rng.choice(list("acgt"), 30)) for _ in range(n)]
    places = rng.integers(0, 23, n)
    return [t[:p] + "gattaca" + t[p + 7 :] if c else t for t, p, c in zip(texts, places, y, strict=True)], y


def counts_of(row):
    return {int(j): v for j, v in zip(row.indices, row.data, strict=True)}


@pytest.mark.parametrize("hasher", [*KERNELS, TextHasher(copies=3), TextHasher(analyzer="char", copies=2)])
def test_features_are_those_of_the_map(hasher):
    texts = ["gattaca cat", "", "äöäö ac", "acgtacgt acg"]
    mapped = hasher.set_params(n_bits=30).transform(texts) if isinstance(hasher, StringHasher) else None
    mapped = hasher.set_params(n_bits=30, signed=False).transform(texts) if mapped is None else mapped
    block = Documents.of(texts, hasher).examples(np.array([2, 0, 1, 3]))
    assert block.documents
    for place, text in enumerate((2, 0, 1, 3)):
        hashes = block.hashes[block.indptr[place] : block.indptr[place + 1]]
        found = Counter((hashes & np.uint64(2**30 - 1)).tolist())
        assert found == counts_of(mapped[text])


@pytest.mark.parametrize("binary", [False, True])
def test_characters_of_bytes_are_bytes(binary):
    texts = ["äb", "bä"]
    texts = [t.encode() if binary else t for t in texts]
    block = Documents.of(texts, StringHasher(max_length=1)).examples(np.arange(2))
    assert np.diff(block.indptr).tolist() == ([3, 3] if binary else [2, 2])


@pytest.mark.parametrize("hasher", [KERNELS[0], KERNELS[2], TextHasher(analyzer="char", ngrams=(3, 3), copies=2)])
def test_lists_buffers_and_files_give_one_model(hasher, tmp_path):
    texts, y = genes(200)
    labels = ["motif" if c else "noise" for c in y]
    options = {"n_bits": 14, "hasher": hasher, "shuffle": False, "max_iter": 1}
    model = HashedClassifier(**options).fit(texts, labels)
    arrays = HashedClassifier(**options).fit(np.array(texts), labels)
    (tmp_path / "genes.txt").write_text("".join(f"{c}\t{t}\n" for t, c in zip(texts, labels, strict=True)))
    (tmp_path / "genes.csv").write_text(
        "kind,gene\n" + "".join(f"{c},{t}\n" for t, c in zip(texts, labels, strict=True))
    )
    filed = HashedClassifier(**options).fit_file(tmp_path / "genes.txt")
    new, _ = genes(50, 1)
    scores = model.decision_function(new)
    np.testing.assert_array_equal(arrays.decision_function(new), scores)
    np.testing.assert_array_equal(filed.decision_function(new), scores)
    path = tmp_path / "model.mercer"
    mercer.save(filed, path)
    again = mercer.load(path)
    np.testing.assert_array_equal(again.decision_function(new), scores)
    blocks = [Documents.of(new, one).examples(np.arange(50)).hashes for one in (again.hasher, hasher)]
    np.testing.assert_array_equal(*blocks)
    assert "text" in str(portrait(again))


def test_strings_are_learned_where_words_are_not():
    texts, y = genes(1500)
    held, truth = genes(500, 1)
    model = HashedClassifier(n_bits=16, hasher=StringHasher(max_length=5)).fit(texts, y)
    assert model.score(held, truth) > 0.95 > 0.7 > HashedClassifier(n_bits=16).fit(texts, y).score(held, truth)
    names = [name for name, _ in model.top_features(3, label=1)]
    assert all(name in "gattaca" for name in names)


def test_copies_save_what_collides():
    """Of 2^8 weights for 400 words many collide: with three copies fewer words have no weight of their own."""
    words = [f"word{i}" for i in range(400)]
    used = {}
    for copies in (1, 3):
        block = Documents.of(words, TextHasher(copies=copies)).examples(np.arange(400))
        buckets = (block.hashes & np.uint64(2**12 - 1)).reshape(400, copies)
        times = Counter(buckets.ravel().tolist())
        used[copies] = sum(min(times[b] for b in row) > 1 for row in buckets.tolist())
    assert used[3] < used[1]


@pytest.mark.parametrize("copies", [1, 3])
def test_explanations_add_up_whatever_the_copies(copies, tmp_path):
    texts = ["cheap pills now", "meeting at noon", "cheap watches", "notes of the meeting"] * 5
    labels = ["spam", "ham", "spam", "ham"] * 5
    model = HashedClassifier(n_bits=16, hasher=TextHasher(copies=copies)).fit(texts, labels)
    told = model.explain("cheap meeting pills")
    assert abs(told.score) == pytest.approx(abs(model.decision_function(["cheap meeting pills"])[0]), rel=1e-5)
    named = [name for name, _ in model.top_features(20, label="spam")]
    assert len(named) == len(set(named)) > 3
    rows = "".join(f"{c},{t},{i % 3}\n" for i, (t, c) in enumerate(zip(texts, labels, strict=True)))
    (tmp_path / "a.csv").write_text("label,text,count\n" + rows)
    table = HashedClassifier(n_bits=16, hasher=TextHasher(copies=copies)).fit_file(tmp_path / "a.csv")
    record = {"text": "cheap meeting", "count": 2}
    score = table.decision_function([record])[0]
    assert abs(table.explain(record).score) == pytest.approx(abs(score), rel=1e-5)


def test_numbers_from_strings():
    texts, y = genes(600)
    model = HashedRegressor(n_bits=14, hasher=StringHasher(max_length=4)).fit(texts, 2.0 * y + 1.0)
    assert model.score(*genes(200, 1)[:1], 2.0 * genes(200, 1)[1] + 1.0) > 0.5


@pytest.mark.parametrize(
    ("hasher", "error", "message"),
    [
        (StringHasher(weights=0.5), ValueError, "this one has weights=0.5.*StringHasher before the learner"),
        (StringHasher(kernel="mismatch"), ValueError, "does not know the alphabet"),
        (StringHasher(max_length=0), ValueError, "max_length"),
        (TextHasher(copies=0), ValueError, "copies"),
        (StringHasher, TypeError, "hasher must be a TextHasher, a StringHasher or None"),
    ],
)
def test_hashers_that_do_not_suit_are_refused(hasher, error, message):
    with pytest.raises(error, match=message):
        HashedClassifier(hasher=hasher).fit(["ab", "ba"], [0, 1])


def test_texts_of_both_kinds_are_named_when_a_model_is_saved(tmp_path):
    model = HashedClassifier(n_bits=12)
    model.partial_fit(["good day", "bad day"] * 4, ["g", "b"] * 4)
    model.partial_fit([b"good night", b"bad night"] * 4, ["g", "b"] * 4)
    mercer.save(model, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert {"day", "night"} <= {name for name, _ in loaded.top_features(20)["g"]} | {
        name for name, _ in loaded.top_features(20).get("b", [])
    }
