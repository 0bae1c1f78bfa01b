"""The compiled analysis of text: words, lower case and white space of all of Unicode, on every instruction set."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.text import features

from mercer import _core

# Characters that Unicode 3.2 knew mean the same in every Python; those that came later may not.
OLD = st.characters(exclude_categories=["Cs"]).filter(
    lambda c: unicodedata.ucd_3_2_0.category(c) != "Cn" and c not in "Σ\u180e" and c.isalnum() == old_alnum(c)
)
ODD = "ab AB\t\n _1éÉßİıΔдДǅȺK\u00a0\u2028\u3000日本٣²½\U0001d400🎉-'\x00\x1c\x85"
TEXT = st.text(st.one_of(st.sampled_from(ODD), OLD))


def old_alnum(c):
    return unicodedata.ucd_3_2_0.category(c)[0] in "LN"


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


def names(document, analyzer="word", ngrams=(1, 1), lowercase=True, seed=0):
    """The compiled features of one document with their counts."""
    data, offsets, _ = _core.text.pack_documents([document])
    found, _, counts = _core.text.text_names(data, offsets, analyzer, *ngrams, lowercase, seed)
    return Counter(dict(zip(found, counts.tolist(), strict=True)))


ANALYZERS = [
    ("word", (1, 1)), ("word", (2, 2)), ("word", (1, 3)),
    ("char", (1, 1)), ("char", (3, 3)), ("char", (2, 5)),
    ("char_wb", (1, 1)), ("char_wb", (3, 3)), ("char_wb", (2, 6)),
]  # fmt: skip


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize(("analyzer", "ngrams"), ANALYZERS)
@given(TEXT)
@settings(max_examples=25, deadline=None)
def test_features_equal_those_of_scikit_learn(analyzer, ngrams, lowercase, document):
    assert names(document, analyzer, ngrams, lowercase) == features(document, analyzer, ngrams, lowercase)


@pytest.mark.parametrize(("analyzer", "ngrams"), ANALYZERS)
def test_features_equal_those_of_scikit_learn_over_long_text(analyzer, ngrams, instruction_set):
    rng = np.random.default_rng(1)
    pieces = ["the ", "Cat", "é", "ÉTÉ ", "  ", "\n", "x", "_", "9", ", ", "\u2003\u2003", "日本語 ", "İ", "word" * 10]
    for size in [0, 1, 5, 17, 64, 1000]:
        for some in (pieces[:3] + pieces[4:10], pieces):
            document = "".join(rng.choice(some, size))
            assert names(document, analyzer, ngrams) == features(document, analyzer, ngrams)
    for length in range(55, 75):  # words that end at, before and behind the border of a block of 64 bytes
        document = "a" * length + " " + "b" * length
        assert names(document, analyzer, ngrams) == features(document, analyzer, ngrams)


def test_every_character_is_judged_as_python_does():
    same_version = unicodedata.unidata_version == _core.text.UNICODE_VERSION
    codes = [*range(128, 0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 97)]
    characters = [chr(c) for c in codes if c not in map(ord, "İΣ")]
    if not same_version:
        known = [c for c in characters if unicodedata.ucd_3_2_0.category(c) != "Cn"]
        characters = [c for c in known if old_alnum(c) == c.isalnum() and c != "\u180e"]
    word = names(" ".join("x" + c for c in characters), "word")
    assert word == Counter("x" + c.lower() for c in characters if re.match(r"\w", c))
    spaced = names("".join("x" + c for c in characters), "char_wb", (2, 2), lowercase=False)
    assert all(spaced[f"x{c}"] == (0 if c.isspace() else 1) for c in characters)


def test_a_sigma_is_lower_case_by_itself():
    assert names("ΟΔΟΣ") == {"οδοσ": 1}


def test_hash_of_a_word_is_that_of_its_bytes_for_every_length():
    for n in range(2, 40):
        word = "abcdefghijklmnopqrstuvwxyz0123456789_abcd"[:n]
        data, offsets, _ = _core.text.pack_documents([f"-{word.upper()}-"])
        _, hashes, _ = _core.text.text_names(data, offsets, "word", 1, 1, True, 7)
        assert hashes.tolist() == [_core.hashing.feature_hash(word.encode(), 7)]


def test_hash_of_an_ngram_combines_its_words():
    data, offsets, _ = _core.text.pack_documents(["new york city"])
    found, hashes, _ = _core.text.text_names(data, offsets, "word", 3, 3, True, 0)
    new, york, city = (_core.hashing.feature_hash(word) for word in (b"new", b"york", b"city"))
    pair = _core.hashing.combine_hashes(np.array([new], np.uint64), york)
    assert found == ["new york city"]
    assert hashes[0] == _core.hashing.combine_hashes(pair, city)[0]


@pytest.mark.parametrize(
    ("name", "seed", "value"),
    [
        (b"", 0, 0x77EAAA3E47AB1CD5),
        (b"a", 0, 0x6243D06E45CD84D7),
        (b"the", 0, 0xDF73274D1BC06C0B),
        (b"the", 1, 0x42BC057B296DC036),
        (b"word", 0, 0xD085FEB631E6A306),
        (b"hashing", 0, 0x83724E4A0490A06C),
        (b"8 bytes!", 0, 0x249592A3EBD32E53),
        (b"sixteen bytes !!", 0, 0x0671192471341329),
        (b"seventeen bytes !", 18446744073709551615, 0x30801B597C27CD40),
        (b"na\xc3\xafve\xe2\x80\x94\xe6\x97\xa5\xe6\x9c\xac", 0, 0x93FB95872CD74112),
        (b"\x00\xff", 3, 0x326F34FA04937DE7),
    ],
)
def test_hashes_are_pinned(name, seed, value):
    assert _core.hashing.feature_hash(name, seed) == value


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"caf\xe9 latte", {"caf": 1, "latte": 1}),  # Latin-1
        (b"ab\xffcd", {"ab": 1, "cd": 1}),
        (b"ab\xc3", {"ab": 1}),  # cut short
        (b"ab\xe2\x82", {"ab": 1}),
        (b"ab\xc0\x80cd", {"ab": 1, "cd": 1}),  # overlong
        (b"ab\xed\xa0\x80cd", {"ab": 1, "cd": 1}),  # a surrogate
        (b"ab\xf4\x90\x80\x80cd", {"ab": 1, "cd": 1}),  # beyond Unicode
        (b"ab\x00cd", {"ab": 1, "cd": 1}),
        (b"\x80\x80\x80", {}),
        ("é à".encode(), {}),  # words of one character
        ("éa".encode(), {"éa": 1}),
        (b"", {}),
    ],
)
def test_bytes_that_are_not_utf8_separate_words(document, expected, instruction_set):
    assert names(document) == expected


def test_bytes_that_are_not_utf8_are_characters():
    assert names(b"a\xffb", "char", (2, 2)) == {"a\\xff": 1, "\\xffb": 1}
    assert names(b"\xe2\x82", "char_wb", (2, 2)) == {" \\xe2": 1, "\\xe2\\x82": 1, "\\x82 ": 1}


def test_rows_of_a_long_document_are_those_of_its_features():
    """Long rows are merged in pieces; the sums are the same."""
    rng = np.random.default_rng(0)
    document = " ".join(map(str, rng.integers(100, 60_000, 400_000)))
    data, offsets, _ = _core.text.pack_documents([document])
    _, hashes, counts = _core.text.text_names(data, offsets, "word", 1, 1, True, 0)
    for n_bits, signed in [(8, True), (20, False), (30, True)]:
        indptr, indices, values = _core.text.text_rows(
            data, offsets, "word", 1, 1, True, 0, n_bits, signed, 1, False, 1
        )
        buckets = hashes & np.uint64(2**n_bits - 1)
        signs = np.where(hashes >> np.uint64(63), -1, 1) if signed else 1
        expected: Counter = Counter()
        for bucket, value in zip(buckets.tolist(), (signs * counts).tolist(), strict=True):
            expected[bucket] += value
        kept = sorted((bucket, value) for bucket, value in expected.items() if value)
        assert indptr.tolist() == [0, len(kept)]
        assert list(zip(indices.tolist(), values.tolist(), strict=True)) == kept


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"offsets": np.array([0, 99])}, "beyond the buffer"),
        ({"offsets": np.array([2, 1])}, "must not decrease"),
        ({"offsets": np.array([-1, 1])}, "must not be negative"),
        ({"offsets": np.array([], np.int64)}, "at least one value"),
        ({"analyzer": "lines"}, "analyzer must be"),
        ({"min_n": 0}, "at least 1"),
        ({"n_bits": 31}, "n_bits must lie"),
        ({"n_bits": 0}, "n_bits must lie"),
        ({"copies": 0}, "copies must be"),
    ],
)
def test_wrong_arguments_of_the_core_are_refused(change, match):
    good = {
        "data": np.frombuffer(b"abc def", np.uint8), "offsets": np.array([0, 7]), "analyzer": "word", "min_n": 1,
        "max_n": 1, "lowercase": True, "seed": 0, "n_bits": 10, "with_signs": True, "copies": 1, "single": False,
        "threads": 1,
    }  # fmt: skip
    assert _core.text.text_rows(**good)[0].tolist() == [0, 2]
    with pytest.raises(ValueError, match=match):
        _core.text.text_rows(**{**good, **change})
