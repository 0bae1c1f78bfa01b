"""Records are hashed as documented, whatever form they come in; what cannot be read is named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mercer
from mercer import _core
from mercer.maps import RecordHasher
from reference import records as slow
from reference.forked import popen

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RECORDS = [
    {"city": "Oslo", "device": "phone", "age": 31, "member": True},
    {"city": "Rome", "device": None, "age": 0.5, "member": False},
    {"city": "", "device": "naïve—日本", "age": -3, "member": None},
    {"city": "Oslo", "device": "tablet", "age": None, "member": True},
]
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}


def same(a: sp.csr_matrix, b: sp.csr_matrix) -> bool:
    """Whether two matrices are the same, bit for bit."""
    return (
        a.shape == b.shape
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and a.data.dtype == b.data.dtype
        and a.data.tobytes() == b.data.tobytes()
    )


def expected_rows(records, hasher: RecordHasher) -> list[dict[int, float]]:
    crosses = hasher.interactions or ()
    return [
        slow.row(slow.features(record, hasher.seed, hasher.numeric, crosses), hasher.n_bits, hasher.signed)
        for record in records
    ]


def found_rows(matrix: sp.csr_matrix) -> list[dict[int, float]]:
    rows = [matrix[i] for i in range(matrix.shape[0])]
    return [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]


# ------------------------------------------------------------------------------------------------ hashes


@pytest.mark.parametrize(
    ("key", "seed", "value"),
    [
        ("", 0, 0x77EAAA3E47AB1CD5),
        ("cat", 0, 0xB1F08C685287DEAB),
        ("cat", 1, 0x1413FE054DC15CD6),
        (b"cat", 0, 0xB1F08C685287DEAB),
        ("a word of more than sixteen bytes", 0, 0xE0C380732B4D164C),
        ("naïve—日本", 2**64 - 1, 0x7151710268C0BCE0),
        (7, 0, 0xE500F99861C6B9A3),
        (-1, 0, 0x98A68D189A999CB7),
        (2**64 - 1, 0, 0x98A68D189A999CB7),
    ],
)
def test_hashes_of_keys_are_pinned(key, seed, value):
    assert int(_core.hashing.hash_keys([key], seed)[0]) == value


@given(st.binary(max_size=70), st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_hashes_equal_their_definition(text, seed):
    assert int(_core.hashing.hash_keys([text], seed)[0]) == slow.name_hash(text, seed)


@given(st.integers(-(2**63), 2**64 - 1), st.integers(0, 2**64 - 1))
@settings(max_examples=40, deadline=None)
def test_hashes_of_numbers_equal_their_definition(number, seed):
    assert int(_core.hashing.hash_keys([number], seed)[0]) == slow.number_hash(number % 2**64, seed)


def test_columns_of_features_are_pinned():
    matrix = RecordHasher(n_bits=20, interactions=[("city", "device")]).transform(RECORDS[:1])
    found = list(zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True))
    assert found == [(56976, 1.0), (392604, -1.0), (518854, -1.0), (672840, 31.0), (996960, 1.0)]


# ------------------------------------------------------------------------------------------------ rows


@pytest.mark.parametrize("n_bits", [1, 3, 20, 30])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("numeric", ["value", "category"])
@pytest.mark.parametrize(
    "interactions", [None, [("city", "device"), ("age", "city", "member"), ("age", "age")], "pairs"]
)
def test_rows_equal_the_definition(n_bits, signed, numeric, interactions):
    hasher = RecordHasher(n_bits, interactions, signed=signed, numeric=numeric, seed=5)
    for found, expected in zip(found_rows(hasher.transform(RECORDS)), expected_rows(RECORDS, hasher), strict=True):
        assert found == pytest.approx(expected, rel=1e-15)


TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
NUMBERS = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6))
TABLE = st.integers(0, 30).flatmap(
    lambda n: st.fixed_dictionaries(
        {"a": st.lists(TEXTS, min_size=n, max_size=n), "b": st.lists(TEXTS, min_size=n, max_size=n),
         "x": st.lists(NUMBERS, min_size=n, max_size=n), "y": st.lists(NUMBERS, min_size=n, max_size=n)}
    )
)  # fmt: skip


@given(TABLE, st.sampled_from([2, 10]), st.sampled_from([None, "pairs", [("x", "a"), ("b", "x", "y")]]),
       st.sampled_from(["value", "category"]), st.randoms())  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_dicts_in_any_order_and_columns_give_the_same_rows(table, n_bits, interactions, numeric, random):
    hasher = RecordHasher(n_bits, interactions, numeric=numeric)
    expected = hasher.transform(table)
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    assert same(hasher.transform(rows), expected)
    shuffled = []
    for row in rows:
        items = list(row.items())
        random.shuffle(items)
        shuffled.append(items)
    assert same(hasher.transform(shuffled), expected)
    assert same(hasher.transform([dict(items) for items in shuffled]), expected)


def forms() -> dict[str, object]:
    """The same records in every form."""
    table = pa.table(COLUMNS)
    dictionary = table.set_column(0, "city", table["city"].combine_chunks().dictionary_encode())
    frame = pd.DataFrame(COLUMNS)
    typed = frame.astype({"city": "category", "device": "string", "age": "Float64", "member": "boolean"})
    return {
        "pairs": [list(record.items()) for record in RECORDS],
        "lists of lists": [[list(item) for item in record.items()] for record in RECORDS],
        "array of dicts": np.array(RECORDS, dtype=object),
        "generator": (record for record in RECORDS),
        "columns": COLUMNS,
        "object arrays": {name: np.array(column, dtype=object) for name, column in COLUMNS.items()},
        "arrow": table,
        "arrow batch": table.to_batches()[0],
        "arrow chunks": pa.concat_tables([table[:1], table[1:]]),
        "arrow slice": pa.concat_tables([table, table])[4:],
        "arrow dictionary": dictionary,
        "arrow dictionary chunks": pa.concat_tables([dictionary[:2], dictionary[2:]]),
        "arrow large strings": table.set_column(1, "device", table["device"].cast(pa.large_string())),
        "arrow string views": table.set_column(1, "device", table["device"].cast(pa.string_view())),
        "pandas": frame.astype({"age": "Float64"}),
        "pandas objects": frame.astype({"age": "Float64", "city": object, "device": object}),
        "pandas types": typed,
        "pandas arrow types": pd.DataFrame(
            {name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in table.column_names}
        ),
        "polars": pl.DataFrame(COLUMNS, strict=False),
        "polars categorical": pl.DataFrame(COLUMNS, strict=False).with_columns(pl.col("city").cast(pl.Categorical)),
        "columns of pandas arrays": {
            **COLUMNS,
            "city": pd.Categorical(COLUMNS["city"]),
            "device": pd.Index(COLUMNS["device"]),
        },
        "masked arrays": {**COLUMNS, "age": np.ma.array([31, 0.5, -3, np.nan], mask=[False, False, False, True])},
        "columns of series": {**COLUMNS, "city": pl.Series(COLUMNS["city"]), "device": pd.Series(COLUMNS["device"])},
    }


@pytest.mark.parametrize("form", list(forms()))
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_form_gives_the_same_rows(form, n_jobs):
    hasher = RecordHasher(12, [("city", "age"), ("device", "city")], n_jobs=n_jobs)
    assert same(hasher.transform(forms()[form]), hasher.transform(RECORDS))


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33])
@pytest.mark.parametrize("letters", ["ab9", "aé", "a\0b", "日😀z"])
def test_strings_of_every_length_are_the_same_in_every_form(letters, width):
    random = np.random.default_rng(width)
    texts = ["".join(random.choice(list(letters), n)).rstrip("\0") for n in random.integers(0, width + 1, 300)]
    expected = RecordHasher(20).transform([{"a": text} for text in texts])
    assert found_rows(expected[:40]) == expected_rows([{"a": text} for text in texts[:40]], RecordHasher(20))
    data = [text.encode() for text in texts]
    for column in (np.array(texts, f"U{width}"), np.array(texts, f">U{width}"), np.array(data), data, texts,
                   tuple(texts), objects(texts), objects(texts[::-1])[::-1], pa.array(texts),
                   pa.array(["x", *texts])[1:], pa.array(texts, pa.large_string()),
                   pd.Series(texts, dtype=object)):  # fmt: skip
        assert same(RecordHasher(20).transform({"a": column}), expected)
    for end in (1, 2, 127, 128, 129):
        assert same(RecordHasher(20).transform({"a": np.array(texts[:end], f"U{width}")}), expected[:end])


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("n_bits", [1, 2, 4, 30])
@pytest.mark.parametrize("n_columns", [1, 2, 5, 14, 15, 16, 17, 40])
def test_any_number_of_columns_collide_and_lack_values_as_records_do(n_columns, n_bits, signed):
    random = np.random.default_rng(n_columns)
    names = [f"c{k}" for k in range(n_columns)]
    rows = [{name: random.choice(["x", "yy", "zzz", None]) for name in names} for _ in range(60)]
    crosses = [(names[0], names[-1]), (names[0], names[1], names[-1])] if n_columns > 2 else None
    hasher = RecordHasher(n_bits, crosses, signed=signed)
    expected = hasher.transform(rows)
    assert found_rows(expected) == expected_rows(rows, hasher)
    assert same(hasher.transform({name: [row[name] for row in rows] for name in names}), expected)
    one_number = [{**row, names[0]: 2.5 if i == 50 else row[names[0]]} for i, row in enumerate(rows)]
    columns = {name: [row[name] for row in one_number] for name in names}
    assert same(hasher.transform(columns), hasher.transform(one_number))


def test_vectors_of_every_width_give_the_same_rows():
    table = {f"c{k}": np.random.default_rng(k).integers(0, 50, 1000).astype(str) for k in range(9)}
    before, found = _core.instruction_set(), []
    for name in _core.instruction_sets():
        _core.use_instruction_set(name)
        found.append(RecordHasher(10).transform(table))
    _core.use_instruction_set(before)
    assert all(same(found[0], other) for other in found[1:])


def test_structured_arrays_and_fixed_strings_give_the_same_rows():
    rows = [{"name": "naïve", "code": b"\xff\x01", "x": 1.5, "k": 3}, {"name": "", "code": b"ab", "x": 0.0, "k": -4}]
    dtype = [("name", "U7"), ("code", "S2"), ("x", "f4"), ("k", ">i2")]
    array = np.array([tuple(row.values()) for row in rows], dtype=dtype)
    hasher = RecordHasher(16, "pairs")
    assert same(hasher.transform(array), hasher.transform(rows))
    swapped = {name: array[name].astype(array[name].dtype.newbyteorder(">")) for name in array.dtype.names}
    assert same(hasher.transform(swapped), hasher.transform(rows))
    categories = RecordHasher(16, numeric="category")
    assert same(categories.transform(array), categories.transform(rows))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float32, bool])
def test_numbers_that_are_categories_go_by_their_value(dtype):
    numbers = np.array([0, 1, 1, 0, 1]).astype(dtype)
    hasher = RecordHasher(20, numeric="category")
    as_text = hasher.transform([{"k": str(int(number))} for number in numbers])
    assert same(hasher.transform({"k": numbers}), as_text)
    assert same(hasher.transform([{"k": number} for number in numbers]), as_text)
    assert same(hasher.transform([{"k": number.item()} for number in numbers]), as_text)
    frame = pd.DataFrame({"k": pd.Categorical(numbers)})
    assert same(RecordHasher(20).transform(frame), as_text)


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([2**63, 2**64 - 1, 0], np.uint64),
        np.array([-(2**63), 2**63 - 1, 5], np.int64),
        np.array([1e18, -1e18, 123456789012345678.0]),
        np.array([0.1, -2.5e-7, 1e300, 1.5e17, 5e-324]),
    ],
)
def test_large_and_broken_numbers_are_categories_too(numbers):
    hasher = RecordHasher(30, numeric="category")
    found = found_rows(hasher.transform({"k": numbers}))
    assert found == found_rows(hasher.transform([{"k": number.item()} for number in numbers]))
    if numbers.dtype.kind == "u" or numbers.dtype.kind == "i":
        assert found == expected_rows([{"k": str(number)} for number in numbers.tolist()], hasher)
    assert len({tuple(row) for row in found}) == len(numbers)
    huge = [{"k": 10**30}, {"k": str(10**30)}]
    assert len({tuple(row) for row in found_rows(hasher.transform(huge))}) == 1


def test_lists_are_several_categories_and_cross_with_each():
    rows = [{"tag": ["a", "b"], "x": 2.0}, {"tag": [], "x": 1.0}, {"tag": ["c"], "x": 0.0}, {"tag": None, "x": 3.0}]
    hasher = RecordHasher(25, [("x", "tag")])
    assert found_rows(hasher.transform(rows)) == expected_rows(rows, hasher)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert same(hasher.transform(pa.table(columns)), hasher.transform(rows))
    assert same(hasher.transform(columns), hasher.transform(rows))
    assert same(hasher.transform(pa.table(columns)[1:]), hasher.transform(rows[1:]))
    repeated = [("tag", "a"), ("x", 2.0), ("tag", "b")]
    assert same(hasher.transform([repeated]), hasher.transform(rows[:1]))


def test_tokens_are_the_features_that_numbers_count():
    hasher = RecordHasher(18, signed=False)
    stream = [["cat", "dog", "cat"], ["cow"]]
    assert same(hasher.transform(stream), hasher.transform([{"cat": 2, "dog": 1}, {"cow": 1.0}]))


def test_another_process_makes_the_same_rows():
    code = """
import sys
from mercer.maps import RecordHasher
matrix = RecordHasher(20, [("city", "device")]).transform([{"city": "Oslo", "device": "naïve", "age": 31.5}])
print(matrix.indices.tolist(), matrix.data.tolist())
"""
    out, _ = popen(code, text=True).communicate()
    here = RecordHasher(20, [("city", "device")]).transform([{"city": "Oslo", "device": "naïve", "age": 31.5}])
    assert out == f"{here.indices.tolist()} {here.data.tolist()}\n"


def test_rows_are_canonical_and_hold_no_zeros():
    random = np.random.default_rng(0)
    rows = [{f"f{k}": float(random.integers(-2, 3)) for k in range(40)} for _ in range(50)]
    for signed in (True, False):
        matrix = RecordHasher(4, signed=signed).transform(rows)
        assert matrix.has_canonical_format
        again = sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        assert again.has_canonical_format  # found by looking
        assert (matrix.data != 0).all()


def test_the_transform_is_linear():
    random = np.random.default_rng(1)
    a, b = ({f"f{k}": float(v) for k, v in enumerate(random.integers(-5, 6, 30))} for _ in range(2))
    both = {name: 2 * a[name] - 3 * b[name] for name in a}
    hasher = RecordHasher(3)
    A, B, C = hasher.transform([a, b, both]).toarray()
    np.testing.assert_array_equal(2 * A - 3 * B, C)


def test_with_many_buckets_the_hashed_kernel_is_the_exact_one():
    random = np.random.default_rng(2)
    rows = [{f"word{w}": float(random.integers(1, 5)) for w in random.integers(0, 10_000, 100)} for _ in range(30)]
    names = sorted({name for row in rows for name in row})
    dense = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    hashed = RecordHasher(30, signed=False).transform(rows)
    assert hashed.nnz == np.count_nonzero(dense)  # no two of the names met
    used, place = np.unique(hashed.indices, return_inverse=True)
    rows_of_used = sp.csr_matrix((hashed.data, place, hashed.indptr), shape=(len(rows), len(used))).toarray()
    np.testing.assert_array_equal(rows_of_used @ rows_of_used.T, dense @ dense.T)


@pytest.mark.parametrize("signed", [True, False])
def test_the_mean_kernel_over_seeds_is_the_expected_one(signed):
    from mercer.theory.hashing import expected_kernel

    random = np.random.default_rng(3)
    x, z = random.integers(0, 4, 20), random.integers(0, 4, 20)
    rows = [{f"f{k}": int(v) for k, v in enumerate(vector)} for vector in (x, z)]
    n_bits, kernels = 3, []
    for seed in range(5000):
        a, b = RecordHasher(n_bits, signed=signed, seed=seed).transform(rows).toarray()
        kernels.append(a @ b)
    expected = expected_kernel(float(x @ z), x.sum(), z.sum(), 2**n_bits, signed=signed)
    assert abs(np.mean(kernels) - expected) < 3 * np.std(kernels) / np.sqrt(len(kernels))


def test_float32_rows_are_the_rounded_ones():
    rows = [{"x": 0.1, "y": 1 / 3, "z": "c"}]
    wide, narrow = (RecordHasher(20, "pairs", dtype=dtype).transform(rows) for dtype in (np.float64, np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(wide.data.astype(np.float32), narrow.data)
    assert RecordHasher(20, dtype=np.float32).transform([{"x": 1e-60}]).nnz == 0


def test_threads_and_blocks_do_not_change_rows():
    random = np.random.default_rng(4)
    n = 70_000
    table = {
        "a": random.integers(0, 1000, n).astype(str),
        "b": random.integers(0, 10**9, n),
        "c": random.standard_normal(n),
        "d": pa.array(random.integers(0, 50, n).astype(str)).dictionary_encode(),
    }
    one = RecordHasher(8, [("a", "c")], n_jobs=1).transform(table)
    assert same(one, RecordHasher(8, [("a", "c")], n_jobs=2).transform(table))
    chosen = [0, 127, 128, 65_536, n - 1]
    rows = [{**{name: table[name][i] for name in "abc"}, "d": table["d"][i].as_py()} for i in chosen]
    assert same(one[chosen], RecordHasher(8, [("a", "c")]).transform(rows))


@pytest.mark.parametrize("X", [[], {}, {"a": []}, pd.DataFrame({"a": []}), pa.table({"a": pa.array([], pa.string())})])
def test_no_records_make_no_rows(X):
    assert RecordHasher(5).transform(X).shape == (0, 32)


def test_rows_without_columns_are_refused():
    with pytest.raises(ValueError, match="3 rows and no columns"):
        RecordHasher(5).transform(pd.DataFrame(index=range(3)))
    with pytest.raises(ValueError, match="at least one column"):
        _core.hashing.RecordColumns(3, 0, False).transform(5, False, [], False, 1)


def test_records_without_fields_make_empty_rows():
    matrix = RecordHasher(5, "pairs").transform([{}, {"a": None}, [], {"a": 0}])
    assert matrix.shape == (4, 32)
    assert matrix.nnz == 0


def test_as_many_features_collide_as_scikit_learn_has_it():
    rows = [{"word": f"token{k}"} for k in range(3000)]
    ours = RecordHasher(12).transform(rows)
    theirs = FeatureHasher(2**12).transform(rows)
    assert len(np.unique(ours.indices)) == pytest.approx(len(np.unique(theirs.indices)), rel=0.03)


# ------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize("form", ["dicts", "pandas", "arrow", "columns"])
def test_names_of_columns_are_found_again(form):
    X = {"dicts": RECORDS, "pandas": pd.DataFrame(COLUMNS), "arrow": pa.table(COLUMNS), "columns": COLUMNS}[form]
    if form == "pandas":
        X = X.astype({"age": "Float64"})
    hasher = RecordHasher(16, [("city", "device")], inverse_size=100).fit(X)
    row = hasher.transform(RECORDS[:1])
    names = {name for bucket in row.indices for name in hasher.inverse(bucket)}
    assert names == {"city=Oslo", "device=phone", "age", "member", "city=Oslo & device=phone"}
    for outside in (-1, hasher.n_features_out_):
        with pytest.raises(ValueError, match="bucket must lie in 0"):
            hasher.inverse(outside)
    report = hasher.collision_report()
    assert report.n_names == 11
    assert "city=Oslo & device=phone" in set(hasher.get_feature_names_out())


def test_wrong_records_are_named_in_fit_too():
    with pytest.raises(ValueError, match="row 10001, field 'x'"):
        RecordHasher(10, inverse_size=10).fit([{"x": 1.0}] * 10_001 + [{"x": np.nan}])


def test_no_names_are_kept_unasked():
    hasher = RecordHasher(10).fit(RECORDS)
    with pytest.raises(ValueError, match="inverse_size"):
        hasher.inverse(0)


# ------------------------------------------------------------------------------------------------ habits


def test_a_hasher_is_cloned_and_works_in_a_pipeline():
    hasher = RecordHasher(10, [("a", "b")], seed=3)
    assert clone(hasher).get_params() == hasher.get_params()
    rows = [{"a": "x", "b": 1.0}, {"a": "y", "b": 2.0}] * 10
    model = make_pipeline(hasher, LogisticRegression()).fit(rows, [0, 1] * 10)
    assert model.score(rows, [0, 1] * 10) == 1.0


def test_a_hasher_comes_back_from_a_file(tmp_path):
    hasher = RecordHasher(14, [("city", "age")], seed=9, dtype=np.float32, inverse_size=50).fit(RECORDS)
    mercer.save(hasher, tmp_path / "hasher.mercer")
    found = mercer.load(tmp_path / "hasher.mercer")
    assert same(found.transform(RECORDS), hasher.transform(RECORDS))
    assert found.get_params() == hasher.get_params()
    assert [found.inverse(b) for b in range(2**14)] == [hasher.inverse(b) for b in range(2**14)]


# ------------------------------------------------------------------------------------------------ bad input


class Odd:
    def __float__(self) -> float:
        raise RuntimeError("no number today")


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([{"a": 1.0}, {"x": float("nan")}], ValueError, r"row 1, field 'x': the number is not finite"),
        ([{"x": float("inf")}], ValueError, r"row 0, field 'x'.*not finite"),
        ({"a": ["b", "c"], "x": np.array([1.0, -np.inf])}, ValueError, r"row 1, field 'x'.*not finite"),
        ({"x": [1.0, float("nan")]}, ValueError, r"row 1, field 'x'.*not finite"),
        (pd.DataFrame({"x": [1.0, np.nan]}), ValueError, r"row 1, field 'x'.*not finite"),
        (pa.table({"x": [1.0, float("nan")]}), ValueError, r"row 1, field 'x'.*not finite"),
        ([{"x": 10**400}], ValueError, r"row 0, field 'x': int too large"),
        ([{"x": 1j}], TypeError, r"row 0, field 'x'"),
        ([{"x": {"deep": 1}}], TypeError, r"row 0, field 'x': expected a string, a number.*found dict"),
        ([{"x": ["a", 1]}], TypeError, r"row 0, field 'x': expected strings in a list of categories, found int"),
        ([{"x": "\ud800"}], ValueError, r"row 0, field 'x'.*surrogates"),
        ([{"\ud800": 1}], ValueError, r"row 0.*surrogates"),
        ({"x": np.array(["a", "\ud800"])}, ValueError, r"row 1, field 'x': the string is not valid Unicode"),
        ({"x": np.array(["a", "\ud800", "b"] + ["c"] * 20)}, ValueError, r"row 1, field 'x': the string is not valid"),
        ({"x": np.array([97, 2**32 - 1] + [98] * 30, np.uint32).view("U1")}, ValueError, "row 1, field 'x'.*not valid"),
        ({"x": np.array([97] * 31 + [0x110000], np.uint32).view("U2")}, ValueError, r"row 15, field 'x'.*not valid"),
        ({"x": ["a", "\ud800"]}, ValueError, r"row 1, field 'x'.*surrogates"),
        ({"x": np.array(["a", "\ud800"], object)}, ValueError, r"row 1, field 'x'.*surrogates"),
        ({"x": ["a", "b", {}]}, TypeError, r"row 2, field 'x': expected a string, a number.*found dict"),
        ({"x": np.array(["a", 1j], object)}, TypeError, r"row 1, field 'x'"),
        ([{1: 2}], TypeError, r"row 0: expected names of fields \(str\), found int"),
        ([{"a": 1}, "text"], TypeError, r"row 1: expected a dict"),
        ([{"a": 1}, 5], TypeError, r"row 1: expected a dict"),
        ([[("a", 1, 2)]], TypeError, r"row 0: expected \(name, value\) pairs"),
        ([{"x": Odd()}], RuntimeError, "no number today"),
        (5, TypeError, "list of records"),
        (np.zeros((2, 2)), TypeError, "expected records"),
        ({"a": "text"}, TypeError, r"field 'a': expected a column.*\[record\]"),
        ({"a": 5}, TypeError, r"field 'a': expected a column"),
        ({"a": [1], "b": [1, 2]}, ValueError, "field 'b' has 2 rows, field 'a' has 1"),
        ({3: [1]}, TypeError, "names of columns must be strings, found 3"),
        ({"a": np.zeros((2, 2))}, ValueError, "field 'a': expected a column of one dimension"),
        ({"a": np.array(["2020-01-01"], "datetime64[D]")}, TypeError, "field 'a': cannot read a column of dtype date"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "two columns are called 'a'"),
        (pd.Series([1]), TypeError, "expected a data frame, found Series"),
        (pa.table({"a": pa.array([[1]])}), TypeError, "field 'a': expected lists of strings"),
        (pa.table({"a": pa.array([["x", None]])}), ValueError, "field 'a': a list holds a null string"),
        (pa.array(["a"]), TypeError, "expected an Arrow table"),
        (pa.table({"a": pa.array([0], pa.timestamp("s"))}), TypeError, "field 'a': cannot read an Arrow column of"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(X, error, message):
    with pytest.raises(error, match=message):
        RecordHasher(8).transform(X)


def test_numbers_beyond_the_dtype_are_named():
    with pytest.raises(ValueError, match=r"row 1, field 'x': the number is too large for the dtype"):
        RecordHasher(8, dtype=np.float32).transform([{"x": 1.0}, {"x": 1e40}])
    with pytest.raises(ValueError, match=r"row 1, field 'x': the number is too large for the dtype"):
        RecordHasher(8, dtype=np.float32).transform({"x": np.array([1.0, 1e40])})
    with pytest.raises(ValueError, match=r"row 0, cross \('x', 'y'\): the product of the values is too large"):
        RecordHasher(8, [("x", "y")]).transform([{"x": 1e200, "y": 1e200}])
    with pytest.raises(ValueError, match=r"row 0, cross \('x', 'y'\)"):
        RecordHasher(8, [("x", "y")]).transform({"x": [1e200], "y": [1e200]})
    with pytest.raises(ValueError, match=r"row 0: a sum of features is too large"):
        RecordHasher(1, signed=False).transform([{f"f{k}": 1e308 for k in range(10)}])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 0}, "n_bits"),
        ({"n_bits": 31}, "n_bits must be at most 30"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed must be below"),
        ({"numeric": "text"}, "numeric must be one of"),
        ({"dtype": np.int32}, "dtype must be float64 or float32"),
        ({"dtype": "nothing"}, "dtype must be float64 or float32"),
        ({"interactions": "all"}, "interactions must be"),
        ({"interactions": [("a",)]}, "interactions must be"),
        ({"interactions": ["ab"]}, "interactions must be"),
        ({"interactions": [("a", 1)]}, "interactions must be"),
        ({"inverse_size": -1}, "inverse_size"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_raise(parameters, message):
    for call in (RecordHasher(**parameters).fit, RecordHasher(**parameters).transform):
        with pytest.raises(ValueError, match=message):
            call(RECORDS)


def test_a_cross_of_a_missing_column_is_named():
    with pytest.raises(ValueError, match=r"interactions name field 'c', which is not among the columns \['a', 'b'\]"):
        RecordHasher(8, [("a", "c")]).transform({"a": ["x"], "b": ["y"]})


def test_a_value_that_changes_its_record_does_no_harm():
    record: dict[str, object] = {}

    class Changer:
        def __float__(self) -> float:
            record.clear()
            return 1.0

    record.update({"name" * 10: Changer(), "other": 2.0})
    assert RecordHasher(20).transform([record]).nnz == 1


# ------------------------------------------------------------------------------------------------ the binding


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda c: c.add_text("a", np.zeros(3, np.uint8), np.array([0, 2, 1], np.int32), None), "must not decrease"),
        (lambda c: c.add_text("a", np.zeros(3, np.uint8), np.array([0, 2, 4], np.int64), None), "beyond the bytes"),
        (lambda c: c.add_text("a", np.zeros(3, np.uint8), np.array([-1, 2, 3], np.int64), None), "not be negative"),
        (lambda c: c.add_text("a", np.zeros(3, np.uint8), np.array([0, 3], np.int64), None), "2 rows, found 1"),
        (lambda c: c.add_codes("a", np.array([0, 1], np.int32), np.zeros(1, np.uint64)), "code is out of range"),
        (lambda c: c.add_codes("a", np.array([0, -2], np.int32), np.zeros(1, np.uint64)), "code is out of range"),
        (lambda c: c.add_lists("a", np.array([0, 2, 1]), np.zeros(1, np.uint64)), "must not decrease"),
        (lambda c: c.add_lists("a", np.array([0, 1, 3]), np.zeros(1, np.uint64)), "must end with"),
        (lambda c: c.add_numbers("a", np.zeros(2), np.ones(3, bool)), "one length"),
        (lambda c: c.transform(31, True, [], False, 1), "n_bits"),
        (lambda c: c.transform(8, True, [[0, 5]], False, 1), "a column that does not exist"),
        (lambda c: c.transform(8, True, [[0]], False, 1), "at least two fields"),
        (lambda c: c.transform(8, True, [], False, 0), "threads"),
    ],
)
def test_the_binding_checks_what_it_gets(add, message):
    core = _core.hashing.RecordColumns(2, 0, False)
    with pytest.raises(ValueError, match=message):
        add(core)
