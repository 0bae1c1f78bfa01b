"""Reading tokens: what counts as a feature, which column it gets, and where an error was."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data import FeatureIndex, Template
from reference.names import stable


def learned(tokens) -> dict[str, float]:
    """The features of one token by name."""
    index = FeatureIndex()
    row = index.learn([[tokens]])[0].toarray()[0]
    return {name: value for name, value in zip(index.names(), row, strict=True) if value}


@pytest.mark.parametrize(
    ("token", "features"),
    [
        ("w=dog", {"w=dog": 1.0}),
        (["w=dog", "cap"], {"w=dog": 1.0, "cap": 1.0}),
        (("w=dog", "cap"), {"w=dog": 1.0, "cap": 1.0}),
        ([], {}),
        ({}, {}),
        ("", {"": 1.0}),
        ({"w": "dog", "": "x", "z": ""}, {"w=dog": 1.0, "=x": 1.0, "z=": 1.0}),
        ({"n": 2, "x": -0.5}, {"n": 2.0, "x": -0.5}),
        ({"yes": True, "no": False, "none": None}, {"yes": 1.0}),
        ({"w": ["a", "b"], "t": ("c",), "e": []}, {"w=a": 1.0, "w=b": 1.0, "t=c": 1.0}),
        (
            {
                "a": np.float64(1.5),
                "b": np.float32(0.5),
                "c": np.int64(3),
                "d": np.bool_(True),
                "e": np.bool_(False),
            },
            {"a": 1.5, "b": 0.5, "c": 3.0, "d": 1.0},
        ),
        ({"d": Decimal("2.5"), "f": Fraction(1, 4)}, {"d": 2.5, "f": 0.25}),
        ({np.str_("k"): np.str_("v")}, {"k=v": 1.0}),
        (["a", "b", "a", "a"], {"a": 3.0, "b": 1.0}),
        ({"w": ["a", "a"], "w=a": 0.5}, {"w=a": 2.5}),
        ({"mot": "œuvre", "日": "本", "e": "😀"}, {"mot=œuvre": 1.0, "日=本": 1.0, "e=😀": 1.0}),
        ({"nul": "a\x00b"}, {"nul=a\x00b": 1.0}),
    ],
    ids=repr,
)
def test_a_token_becomes_its_features(token, features):
    assert learned(token) == features


def test_columns_are_sorted_by_name_whatever_the_order_of_reading():
    names = ["b", "a", "Z", "é", "z", "10", "9", "日", ""]
    columns = []
    for order in (names, names[::-1], sorted(names)):
        index = FeatureIndex()
        index.learn([[[name] for name in order]])
        columns.append(index.names())
    assert columns[0] == columns[1] == columns[2] == sorted(names, key=str.encode)


def test_rows_follow_their_columns_when_names_are_sorted():
    rng = np.random.default_rng(0)
    tokens = [
        {f"f{k}": float(v) for k, v in zip(rng.permutation(50)[:8], rng.normal(size=8), strict=True)} for _ in range(40)
    ]
    index = FeatureIndex()
    matrix = index.learn([tokens[:25], tokens[25:]]).matrix().toarray()
    for token, row in zip(tokens, matrix, strict=True):
        assert {index.name(f): row[f] for f in np.flatnonzero(row)} == token
    assert index.learn([tokens]).matrix().has_sorted_indices


def test_later_names_are_appended_and_the_old_columns_stay():
    index = FeatureIndex()
    index.learn([["m", "c"]])
    second = index.learn([["a", "m", "z"]])
    assert index.names() == ["c", "m", "a", "z"]
    np.testing.assert_array_equal(second.matrix().toarray(), [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


def test_names_not_seen_are_left_out():
    index = FeatureIndex()
    index.learn([[{"a": 1.0}, "b"]])
    X = index.encode([[{"a": 2.0, "new": 5.0}, "other", ["b", "b"]], []])
    np.testing.assert_array_equal(X.matrix().toarray(), [[2, 0], [0, 0], [0, 2]])
    assert X.lengths.tolist() == [3, 0]
    assert (index.find("a"), index.find("new"), len(index)) == (0, -1, 2)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, max_size=300))
def test_every_name_is_found_again(names):
    index = FeatureIndex()
    index.learn([[names]])
    assert sorted(index.names()) == sorted(names)
    assert [index.name(index.find(name)) for name in names] == names
    copy = pickle.loads(pickle.dumps(index))
    assert copy.names() == index.names()
    assert FeatureIndex.from_arrays(index.to_arrays()).names() == index.names()


def test_a_large_vocabulary_keeps_every_name():
    names = [f"feature={k}" for k in range(50_000)]
    index = FeatureIndex()
    index.learn([[names]])
    assert len(index) == 50_000
    assert all(index.name(index.find(name)) == name for name in names[::97])


# --------------------------------------------------------------------------------------------- hashing


def test_hashing_has_pinned_columns_and_keeps_nothing():
    index = FeatureIndex(n_bits=18)
    X = index.learn([[{"word": "the"}, "naïve—日本"]])
    assert X.n_features == len(index) == 2**18
    assert X.matrix().indices.tolist() == [116273, 199862]
    assert index.name(116273) == "hash[116273]"
    assert index.encode([[{"word": "the"}, "naïve—日本"]]) == X
    assert pickle.loads(pickle.dumps(index)).encode([["word=the"]]).matrix().indices.tolist() == [116273]


def test_names_in_one_bucket_are_added():
    X = FeatureIndex(n_bits=1).learn([[{f"f{k}": 1.0 for k in range(10)}]])
    assert X.matrix().sum() == 10.0
    assert X.n_features == 2


@pytest.mark.parametrize("bits", [-1, 31, 2.5, "8"])
def test_bad_numbers_of_bits_are_refused(bits):
    with pytest.raises(ValueError, match="n_bits"):
        FeatureIndex(bits)


# ------------------------------------------------------------------------------------ errors say where


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (3, TypeError, "expected a dict of features, a list of feature strings or one string, found int"),
        (None, TypeError, "found NoneType"),
        (b"bytes", TypeError, "found bytes"),
        (["ok", 3], TypeError, "feature strings in the list, found int"),
        ({3: "x"}, TypeError, "names .str. as keys, found int"),
        ({"x": b"bytes"}, TypeError, "found bytes"),
        ({"x": {"nested": 1}}, TypeError, "found dict"),
        ({"x": object()}, TypeError, "found object"),
        ({"x": [1]}, TypeError, "strings in a list of values, found int"),
        ({"weight": float("nan")}, ValueError, "feature 'weight' is not finite"),
        ({"weight": float("-inf")}, ValueError, "feature 'weight' is not finite"),
        ({"weight": np.float32("inf")}, ValueError, "feature 'weight' is not finite"),
        ({"weight": 10**400}, (ValueError, OverflowError), ""),
        ({"weight": 1j}, TypeError, ""),
        ("lone \ud800 surrogate", ValueError, ""),
        (["\udc80"], ValueError, ""),
        ({"k\ud800": 1.0}, ValueError, ""),
        ({"k": "\ud800"}, ValueError, ""),
    ],
    ids=stable,
)
def test_a_bad_token_is_refused_with_its_place(bad, error, message):
    index = FeatureIndex()
    with pytest.raises(error, match=r"(?s)sequence 1, token 2: .*" + message):
        index.learn([["a"], ["b", "c", bad]])


@pytest.mark.parametrize("bad", ["text", b"bytes", {"a": 1}, 7, None])
def test_a_sequence_that_is_no_list_is_refused(bad):
    with pytest.raises(TypeError, match="list of tokens"):
        FeatureIndex().learn([["a"], bad])


def test_an_exception_in_a_number_is_passed_on():
    class Odd:
        def __float__(self):
            raise RuntimeError("odd")

    with pytest.raises(RuntimeError, match="odd"):
        FeatureIndex().learn([[{"x": Odd()}]])


def test_a_number_that_changes_its_dict_does_no_harm():
    token: dict = {}

    class Grows:
        def __float__(self):
            for k in range(100):
                token[f"new{k}"] = 1.0
            return 1.0

    token["x"] = Grows()
    index = FeatureIndex()
    index.learn([[token]])
    assert index.find("x") >= 0


# ------------------------------------------------------------------------------------------- templates

TEMPLATE = Template.parse(
    "U00:%x[-2,0]\nU01:%x[0,0]\nU02:%x[1,1]/%x[-1,0]\nU03:%x[3,0]%x[-3,1]\nU\nB\nB01:%x[-1,1]/%x[0,1]\nB02:%x[1,0]"
)
cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(st.lists(st.lists(st.tuples(cells, cells), max_size=5), min_size=1, max_size=4))
def test_compiled_templates_equal_the_expansion_in_python(sentences):
    index, edge_index = FeatureIndex(), FeatureIndex()
    X = index.learn(sentences, TEMPLATE)
    edges = edge_index.edge_rows(sentences, TEMPLATE, grow=True)
    at = 0
    for i, sentence in enumerate(sentences):
        unigrams, bigrams = TEMPLATE.expand(sentence)
        assert X.lengths[i] == len(sentence)
        for t in range(len(sentence)):
            for names, rows, own in ((unigrams[t], X.rows, index), (bigrams[t], edges, edge_index)):
                row = rows.matrix(at, at + 1).toarray()[0]
                wanted = {name: float(names.count(name)) for name in names}
                assert {own.name(f): row[f] for f in np.flatnonzero(row)} == wanted
            at += 1


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        (
            [[("a", "b")], [("a", "b"), ("c",)]],
            ValueError,
            "sentence 1, token 1: expected 2 columns, found 1",
        ),
        (
            [[("a", "b")], [("a",)]],
            ValueError,
            "sentence 1: the template needs column 1, the data has 1 columns",
        ),
        ([[("a", "b")], "ab"], TypeError, "sentence 1: expected a list of tokens, found str"),
        ([["ab"]], TypeError, "sequence 0, token 0: expected a tuple of columns, found str"),
        ([[("a", 3)]], TypeError, "sequence 0, token 0: expected strings in the columns, found int"),
    ],
)
def test_sentences_that_do_not_fit_the_template_are_refused(sentences, error, message):
    with pytest.raises(error, match=message):
        FeatureIndex().learn(sentences, TEMPLATE)


def test_names_are_found_again_after_sorting_and_growing():
    """The table of a sorted vocabulary is made anew when it is next needed, and then grows as before."""
    words = [f"w{i}" for i in range(500)]
    index = FeatureIndex()
    assert index.find("w0") == -1
    index.learn([[words]])
    assert [index.find(word) for word in words] == [sorted(words).index(word) for word in words]
    assert index.find("w500") == -1
    fresh = FeatureIndex()
    fresh.learn([[words]])
    grown = fresh.learn([[[*words, *(f"v{i}" for i in range(500))]]])
    assert (len(fresh), grown[0].nnz) == (1000, 1000)
    assert fresh.names()[:500] == sorted(words)
    assert fresh.encode([[["w7", "v7", "nothing"]]])[0].indices.tolist() == [sorted(words).index("w7"), 507]
    assert len(FeatureIndex(4)) == 16
    assert FeatureIndex(4).encode([["a"]])[0].nnz == 1


# ---------------------------------------------------------------------------------------- many at a time


def features_of(token) -> dict[str, float]:
    """A token's features in plain Python."""
    out: dict[str, float] = {}
    for key, value in token.items():
        if isinstance(value, (int, float)):
            pairs = [(key, float(value))]
        else:
            pairs = [(f"{key}={v}", 1.0) for v in ([value] if isinstance(value, str) else value)]
        for name, number in pairs:
            out[name] = out.get(name, 0.0) + number
    return {name: value for name, value in out.items() if value}


@pytest.mark.parametrize("n_bits", [0, 24])
def test_rows_of_any_length_and_names_of_any_size_are_read(n_bits):
    rng = np.random.default_rng(1)
    sizes = [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 34, 48, 49, 64, 40_000]
    texts = ["".join(rng.choice(list("abé—😀"), size)) for size in sizes] + ["x" * size for size in sizes]
    tokens: list[dict] = []
    for n in (0, 1, 2, 383, 384, 385, 1000, 3):
        chosen = rng.permutation(len(texts))[: min(n, len(texts))]
        token: dict = {texts[k]: texts[(k + 1) % len(texts)][:500] for k in chosen}
        token |= {f"n{j}": float(j % 3) for j in range(max(0, n - len(texts)))}
        token["many"] = [str(j) for j in range(n)]
        tokens.append(token)
    index = FeatureIndex(n_bits)
    index.learn([tokens[:3], tokens[3:]])
    X = index.encode([tokens[:1], [], tokens[1:]])
    assert X.lengths.tolist() == [1, 0, len(tokens) - 1]
    for i, token in enumerate(tokens):
        row = X.rows.matrix(i, i + 1)
        wanted: dict[int, float] = {}
        for name, value in features_of(token).items():
            column = FeatureIndex(n_bits).learn([[name]]).matrix().indices[0] if n_bits else index.find(name)
            wanted[column] = wanted.get(column, 0.0) + value
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == wanted


def test_a_name_that_was_unknown_is_found_once_it_is_learned():
    names = [f"name{k}" for k in range(2_000)]
    index = FeatureIndex()
    index.learn([[names[:1_000]]])
    assert index.encode([[names]])[0].nnz == 1_000
    assert index.encode([[names]])[0].nnz == 1_000
    index.learn([[names]])
    assert index.encode([[names]])[0].indices.tolist() == [index.find(name) for name in sorted(names, key=index.find)]
    assert index.encode([[names]])[0].nnz == 2_000


def test_what_a_number_takes_away_was_read_or_is_not_read():
    """Strings are looked up after they were read: code of the user's in between must find none of them waiting."""
    before = [["first" + str(k)] for k in range(3)]
    token: dict = {}
    tokens = [token, ["last"]]

    class Clears:
        def __float__(self):
            for one in before:
                one.clear()
            tokens.clear()
            [str(k) * 5 for k in range(1000)]  # takes the memory
            return 2.0

    token |= {"a" * 30: True, "b": "c", "x": Clears(), "d" * 40: True, "e": "f"}
    index = FeatureIndex()
    index.learn([before, tokens])
    assert index.names() == sorted(["first0", "first1", "first2", "a" * 30, "b=c", "x", "d" * 40, "e=f"])


def test_tokens_of_a_generator_are_read_before_they_go_away():
    def tokens(i):
        yield from ([f"name{i}.{t}", f"other{t}"] for t in range(50))

    index = FeatureIndex()
    X = index.learn([tokens(i) for i in range(20)])
    assert len(index) == 20 * 50 + 50
    assert X.lengths.tolist() == [50] * 20
    assert X.matrix().sum() == 2 * 20 * 50
