"""Sequences: one stacked matrix, sliced without copies, indexed like a list, checked at the door."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse

from mercer.data import FeatureIndex, LabelIndex, Sequences
from mercer.data.features import as_sequences
from mercer.data.sequences import Rows

OFFSETS = [0, 2, 2, 5, 6]
FORMS = ["dense", "csr", "ones", "float32"]
forms = pytest.mark.parametrize("form", FORMS)


def make(form="dense", edges=False) -> Sequences:
    matrix = np.arange(18.0).reshape(6, 3)
    if form == "ones":
        matrix = (matrix % 2 == 0).astype(float)
    if form in ("csr", "ones"):
        matrix = sparse.csr_matrix(matrix)
    if form == "float32":
        matrix = matrix.astype(np.float32)
    return Sequences(matrix, OFFSETS, edges=np.arange(12.0).reshape(6, 2) if edges else None)


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def as_lists(X: Sequences) -> list:
    return [dense(m).tolist() for m in X]


@forms
def test_sequences_look_like_a_list_of_matrices(form):
    X = make(form)
    assert (len(X), X.n_positions, X.n_features, X.shape) == (4, 6, 3, (4,))
    assert X.lengths.tolist() == [2, 0, 3, 1]
    whole = dense(X.matrix())
    assert as_lists(X) == [whole[a:b].tolist() for a, b in itertools.pairwise(OFFSETS)]
    assert dense(X[-1]).tolist() == dense(X[3]).tolist()
    assert dense(X[np.int64(2)]).shape == (3, 3)
    assert X.dtype == (np.float32 if form == "float32" else np.float64)
    assert X.nbytes > 0
    assert "4 sequences, 6 positions, 3 features" in repr(X)


@forms
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        slice(None), slice(1, 3), slice(2, None), slice(-1, None), slice(0, 0), slice(3, 1),
        slice(None, None, 2),
        slice(None, None, -1), slice(3, 0, -2), [0], [3, 0, 0, 2], [-1, -4], [], np.array([1, 2]),
        np.array([True, False, True, False]), [False, False, False, False], (np.array([2, 3]), Ellipsis),
    ],
    ids=str,
)  # fmt: skip
def test_indexing_gives_what_it_gives_on_a_list(key, form, edges):
    X = make(form, edges)
    plain = key[0] if isinstance(key, tuple) else key
    numbers = np.arange(4)[plain if not isinstance(plain, list) or plain else np.array([], int)]
    part = X[key]
    whole = as_lists(X)
    assert as_lists(part) == [whole[i] for i in numbers]
    assert part.n_features == 3
    assert part.dtype == X.dtype
    if edges:
        bounds = part.offsets
        rows = [k for i in numbers for k in range(OFFSETS[i], OFFSETS[i + 1])]
        found = part.edges.matrix(int(bounds[0]), int(bounds[-1]))
        np.testing.assert_array_equal(found, np.arange(12.0).reshape(6, 2)[rows])


def test_contiguous_slices_share_memory():
    X = make()
    assert X[1:3].rows is X.rows
    assert np.shares_memory(X[1:3].matrix(), X.matrix())
    assert X[1:][1:].offsets.tolist() == [2, 5, 6]
    assert not np.shares_memory(X[[1, 2]].matrix(), X.matrix())


@forms
def test_arrays_are_read_only_and_the_callers_are_left_alone(form):
    given = np.arange(18.0).reshape(6, 3)
    if form in ("csr", "ones"):
        given = sparse.csr_matrix(given)
    offsets = np.array(OFFSETS)
    X = Sequences(given, offsets)
    for array in (X.rows.dense, X.rows.indptr, X.rows.indices, X.rows.values, X.offsets):
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    (given.data if hasattr(given, "tocsr") else given)[:] = -1
    offsets[:] = 0
    assert as_lists(X) == as_lists(make("dense"))


@pytest.mark.parametrize("key", [4, -5])
def test_an_index_out_of_range_is_refused(key):
    with pytest.raises(IndexError):
        make()[key]
    with pytest.raises(IndexError):
        make()[[0, key]]


@pytest.mark.parametrize("key", [[0.5], "a", [[0], [1]], [True, False], np.array([True] * 5), None])
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(IndexError):
        make()[key]


def test_masks_select():
    X = make()
    assert as_lists(X[X.lengths > 1]) == [as_lists(X)[0], as_lists(X)[2]]


# --------------------------------------------------------------------------------- equality and copies


@pytest.mark.parametrize("a", FORMS[:2] + FORMS[3:])
@pytest.mark.parametrize("b", FORMS[:2] + FORMS[3:])
def test_equality_is_of_the_numbers_not_of_the_storage(a, b):
    assert make(a) == make(b)


def test_different_sequences_are_not_equal():
    X = make()
    assert Sequences(np.arange(18.0).reshape(6, 3) + 1, OFFSETS) != X
    assert Sequences(np.arange(18.0).reshape(6, 3), [0, 1, 2, 5, 6]) != X
    assert Sequences(np.arange(24.0).reshape(6, 4), OFFSETS) != X
    assert make(edges=True) != X
    assert make(edges=True) == make(edges=True)
    assert X != 3
    assert X[1:] == X[1:]
    assert X[:1] != X[2:3]


@forms
@pytest.mark.parametrize("edges", [False, True])
def test_sequences_survive_pickle_and_deepcopy(form, edges):
    X = make(form, edges)
    for part in (X, X[2:]):
        for again in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
            assert again == part
            assert again.dtype == part.dtype


@forms
@pytest.mark.parametrize("edges", [False, True])
def test_concatenation_is_that_of_lists(form, edges):
    X = make(form, edges)
    both = X[2:] + X[:1]
    assert as_lists(both) == as_lists(X)[2:] + as_lists(X)[:1]
    assert both.dtype == X.dtype
    assert both.offsets[0] == 0
    assert (both.edges is not None) == edges
    assert Sequences.concatenate([X]) == X


def test_concatenation_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="numbers of features"):
        make() + Sequences(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="edge features"):
        make() + make(edges=True)
    with pytest.raises(ValueError, match="nothing"):
        Sequences.concatenate([])


def test_concatenation_keeps_the_wider_type():
    for parts in ([make("float32"), make("dense")], [make("dense"), make("float32")]):
        assert Sequences.concatenate(parts).dtype == np.float64
    single = Sequences(sparse.csr_matrix(np.eye(3, dtype=np.float32) / 3))
    double = Sequences(sparse.csr_matrix(np.eye(3) / 3))
    assert (single + double).dtype == np.float64
    assert (single + double)[1].toarray()[0, 0] == 1 / 3


# --------------------------------------------------------------------------------------------- ways in


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "csr_array", "bsr_matrix"]
)
def test_any_sparse_matrix_is_taken(kind):
    matrix = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    made = getattr(sparse, kind)(matrix)
    assert Sequences(made) == Sequences(matrix)
    assert Sequences.from_matrices([made, made]) == Sequences.from_matrices([matrix, matrix])


def test_duplicates_of_a_sparse_matrix_are_summed_and_sorted():
    messy = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    X = Sequences(messy)
    assert X[0].toarray().tolist() == [[2.0, 0.0, 4.0]]
    assert messy.nnz == 3


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, bool, np.float32, np.float64])
def test_numbers_of_any_kind_are_taken(dtype):
    X = Sequences(np.array([[0, 1], [1, 0]], dtype))
    assert X.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert X[0].tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3),), "2-D"),
        ((np.zeros((2, 2, 2)),), "2-D"),
        ((np.array([["a", "b"]]),), "numbers"),
        ((np.zeros((2, 2), complex),), "numbers"),
        ((sparse.csr_matrix(np.ones((2, 2), complex)),), "numbers"),
        ((np.array([[1.0, np.nan]]),), "finite"),
        ((np.array([[1.0, -np.inf]], np.float32),), "finite"),
        ((sparse.csr_matrix(np.array([[1.0, np.inf]])),), "finite"),
        ((np.zeros((3, 2)), [0, 4]), "offsets must lie in 0 .. 3"),
        ((np.zeros((3, 2)), [-1, 3]), "offsets"),
        ((np.zeros((3, 2)), [0, 2, 1]), "offsets"),
        ((np.zeros((3, 2)), []), "offsets"),
        ((np.zeros((3, 2)), [[0, 3]]), "offsets"),
        ((np.zeros((3, 2)), [0, 1.5, 3]), "offsets"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Sequences(*arguments)


def test_edges_need_a_row_for_each_position():
    with pytest.raises(ValueError, match="edges has 2 rows, the matrix 3"):
        Sequences(np.zeros((3, 2)), edges=np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([], "no sequences"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], "sequence 1 has 3 features, sequence 0 has 2"),
        ([np.zeros((1, 2)), np.zeros(2)], "sequence 1: expected a 2-D"),
        ([np.zeros((1, 2)), np.array([[0.0, np.nan]])], "sequence 1: features must be finite"),
        ([np.zeros((1, 2)), sparse.csr_matrix(np.zeros((1, 2)))], "all dense"),
        ([sparse.csr_matrix([[1.0]]), sparse.csr_matrix([[np.inf]])], "sequence 1: features must be finite"),
    ],
    ids=str,
)
def test_lists_of_matrices_that_do_not_fit_are_refused(matrices, message):
    with pytest.raises(ValueError, match=message):
        Sequences.from_matrices(matrices)


# ----------------------------------------------------------------------------------------------- Arrow

pa = pytest.importorskip("pyarrow")
STRINGS = [[["a", "b"], []], [], [["b"], ["c", "a", "c"]]]


@pytest.mark.parametrize("string", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("outer", [pa.list_, pa.large_list], ids=["list", "large_list"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_arrow_strings_equal_lists_of_strings(chunks, outer, string):
    column = pa.array(STRINGS, outer(outer(string)))
    if chunks == 2:
        column = pa.chunked_array([column[:1], column[1:]])
    index, arrow_index = FeatureIndex(), FeatureIndex()
    X, Z = index.learn(STRINGS), arrow_index.learn(column)
    assert X == Z
    assert index.names() == arrow_index.names()
    assert arrow_index.encode(column[1:]) == X[1:]
    assert index.encode(column.slice(2, 1)) == X[2:3]


def test_arrow_lists_of_strings_have_one_feature_a_token():
    tokens = [["the", "dog"], ["dog"]]
    a, b = FeatureIndex(), FeatureIndex()
    assert a.learn(pa.array(tokens)) == b.learn(tokens)
    assert a.encode(pa.array(tokens)[1:]) == b.encode(tokens[1:])


NUMBERS = [[[1.0, 2.0], [3.0, 4.0]], [], [[5.0, 6.0]]]


@pytest.mark.parametrize("number", [pa.float32(), pa.float64(), pa.int16()], ids=str)
@pytest.mark.parametrize("fixed", [True, False])
def test_arrow_numbers_equal_arrays(number, fixed):
    column = pa.array(NUMBERS, pa.list_(pa.list_(number, 2) if fixed else pa.list_(number)))
    wanted = Sequences(np.arange(1.0, 7.0).reshape(3, 2), [0, 2, 2, 3])
    X = as_sequences(column)
    assert wanted == X
    assert X.dtype == (np.float32 if number == pa.float32() else np.float64)
    assert as_sequences(column[2:]) == wanted[2:]
    assert as_sequences(pa.chunked_array([column[:2], column[2:]])) == wanted


@pytest.mark.parametrize("values", [[], [[]], [[], []]])
def test_arrow_sequences_without_positions_are_taken(values):
    X = as_sequences(pa.array(values, pa.list_(pa.list_(pa.float64(), 2))))
    assert X.lengths.tolist() == [0] * len(values)
    assert X.n_features == 2


@pytest.mark.parametrize(
    ("values", "kind", "error"),
    [
        ([["a", None]], pa.list_(pa.string()), ValueError),
        ([None, ["a"]], pa.list_(pa.string()), ValueError),
        ([[None, ["a"]]], pa.list_(pa.list_(pa.string())), ValueError),
        ([[["a", None]]], pa.list_(pa.list_(pa.string())), ValueError),
        ([[[1.0, None]]], pa.list_(pa.list_(pa.float64())), ValueError),
        ([[[1.0], None]], pa.list_(pa.list_(pa.float64())), ValueError),
        ([[[1.0], [1.0, 2.0, 3.0]]], pa.list_(pa.list_(pa.float64())), ValueError),
        ([[[1.0, float("nan")]]], pa.list_(pa.list_(pa.float64())), ValueError),
        (["a", "b"], pa.string(), TypeError),
        ([1.0], pa.float64(), TypeError),
        ([[1.0]], pa.list_(pa.float64()), TypeError),
    ],
    ids=str,
)
def test_arrow_columns_that_make_no_sense_are_refused(values, kind, error):
    with pytest.raises(error):
        as_sequences(pa.array(values, kind), FeatureIndex(), learn=True)


def test_nulls_outside_of_an_arrow_slice_do_not_matter():
    column = pa.array([["a"], ["b", None], None, ["c"]])
    assert len(FeatureIndex().learn(column[:1])) == 1
    assert len(FeatureIndex().learn(column[3:])) == 1


def test_tokens_that_learn_while_they_are_read_do_no_harm():
    index = FeatureIndex()

    def tokens():
        index.learn([[["c"]]])  # sorts the vocabulary, which the outer call goes on with
        yield ["d"]

    index.learn([tokens()])
    assert {"c", "d"} <= set(index.names())


def test_offsets_of_any_integers_cut_decoded_labels():
    assert LabelIndex(["a", "b"]).decode(np.array([0, 1]), np.array([0, 2], np.int32)) == [["a", "b"]]


def test_columns_that_all_change_places_are_renumbered():
    rows = Rows(indptr=np.array([0, 1, 3]), indices=np.array([0, 0, 1], np.int32), n_columns=2)
    moved = rows.renumbered(np.array([1, 0], np.int32), 2)
    assert [sorted(moved.indices[a:b].tolist()) for a, b in itertools.pairwise(moved.indptr)] == [[1], [0, 1]]


# -------------------------------------------------------------------------------------- sizes, parts, rows


@pytest.mark.parametrize("form", ["dense", "csr", "ones", "float32"])
@pytest.mark.parametrize("edges", [False, True])
def test_sizes_are_those_of_the_arrays(form, edges):
    X = make(form, edges)
    rows = X.rows
    arrays = [rows.dense] if rows.dense is not None else [rows.indptr, rows.indices, rows.values]
    stored = sum(array.nbytes for array in [*arrays, X.offsets] if array is not None)
    assert X.nbytes == stored + (6 * 2 * 8 if edges else 0)
    assert X.n_edge_features == (2 if edges else 0)
    kind, single = ("sparse", "64") if form in ("csr", "ones") else ("dense", "32" if form == "float32" else "64")
    middle = ", 2 edge features" if edges else ""
    assert repr(X) == f"Sequences(4 sequences, 6 positions, 3 features{middle}, {kind} float{single})"
    assert (X[2:].n_positions, X[1:3].n_positions, X[4:].n_positions) == (4, 3, 0)


def test_equality_looks_at_edges_of_the_same_positions():
    matrix, edges = np.zeros((4, 1)), np.array([[0.0], [1.0], [1.0], [0.0]])
    X = Sequences(matrix, [0, 2, 4], edges=edges)
    assert X[:1] != X[1:]
    assert X[1:] == Sequences(matrix[2:], [0, 2], edges=edges[2:])
    assert Sequences(matrix[2:], [0, 2], edges=edges[2:]) == X[1:]
    assert X[1:] != Sequences(matrix[2:], [0, 2])
    assert Sequences(matrix[2:], [0, 2]) != X[1:]


def test_matrices_of_a_list_follow_one_another():
    parts = [np.array([[1.0, 2.0, 3.0]]), np.zeros((0, 3)), np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])]
    X = Sequences.from_matrices(parts)
    assert X.offsets.tolist() == [0, 1, 1, 3]
    assert as_lists(X) == [part.tolist() for part in parts]
    assert X.dtype == np.float64
    assert Sequences.from_matrices(parts, dtype=np.float32).dtype == np.float32


def test_concatenation_keeps_the_names_of_columns_and_refuses_others():
    named, other = FeatureIndex(), FeatureIndex()
    a = named.learn([[["a", "b"]]])
    b = other.learn([[["c", "d"]]])
    assert (a + a).index is a.index
    for left, right in ((a, b), (b, a), (a, Sequences(np.ones((1, 2))))):
        with pytest.raises(ValueError, match="different feature indices"):
            left + right
    plain = Sequences(np.ones((1, 2)), edges=np.ones((1, 2)))
    told = Sequences(np.ones((1, 2)), edges=np.ones((1, 2)), edge_index=a.index)
    with pytest.raises(ValueError, match="different feature indices"):
        plain + told


def test_copies_are_read_only_too():
    for again in (pickle.loads(pickle.dumps(make())), copy.deepcopy(make())):
        with pytest.raises(ValueError, match="read-only"):
            again.offsets[0] = 1


@pytest.mark.parametrize("left_out", ["indptr", "indices", "n_columns"])
def test_rows_need_all_of_their_parts(left_out):
    parts = {"indptr": np.array([0, 1]), "indices": np.zeros(1, np.int32), "n_columns": 1}
    assert Rows(**parts).shape == (1, 1)
    with pytest.raises(ValueError, match="need indptr, indices and n_columns"):
        Rows(**parts | {left_out: None})


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_values_that_are_all_one_are_not_stored_and_others_are(value):
    rows = Rows.from_matrix(sparse.csr_matrix(np.diag([value, value])))
    assert (rows.values is None) == (value == 1.0)
    assert rows.matrix(0, 2).toarray().tolist() == [[value, 0.0], [0.0, value]]


def test_features_that_are_not_finite_are_refused_by_the_matrix():
    for matrix in (np.array([[np.nan]]), sparse.csr_matrix(np.array([[np.inf]]))):
        with pytest.raises(ValueError, match="features must be finite: the matrix holds NaN or infinity"):
            Rows.from_matrix(matrix)


def test_sparse_matrices_may_have_as_many_columns_as_32_bits_count():
    most = np.iinfo(np.int32).max
    assert Rows.from_matrix(sparse.csr_matrix((1, most))).shape == (1, most)
    with pytest.raises(ValueError, match="at most"):
        Rows.from_matrix(sparse.csr_matrix((1, most + 1)))


@pytest.mark.parametrize("values", [None, [1.0, 2.0, 3.0, 4.0, 5.0]])
@pytest.mark.parametrize(
    ("places", "n_columns"),
    [
        ([0, 1, 2], 3), ([0, 1, 2], 4), ([0, 1, 3], 4), ([2, 0, 1], 3), ([2, 0, 1], 4), ([-1, 0, 1], 3),
        ([1, -1, 0], 3), ([2, 1, 0], 3), ([-1, -1, 0], 3), ([-1, -1, -1], 3),
    ],
    ids=str,
)  # fmt: skip
def test_renumbered_columns_move_and_are_left_out(places, n_columns, values):
    indptr, indices = np.array([0, 2, 2, 5]), np.array([0, 2, 0, 1, 2], np.int32)
    given = None if values is None else np.array(values)
    rows = Rows(indptr=indptr, indices=indices, values=given, n_columns=3)
    old, new = rows.matrix(0, 3).toarray(), np.zeros((3, n_columns))
    for column, place in enumerate(places):
        if place >= 0:
            new[:, place] = old[:, column]
    moved = rows.renumbered(np.array(places, np.int32), n_columns)
    assert moved.matrix(0, 3).toarray().tolist() == new.tolist()
    assert moved.shape == (3, n_columns)
    assert (moved.values is None) == (values is None)
    for a, b in itertools.pairwise(moved.indptr):
        assert (np.diff(moved.indices[a:b]) > 0).all()


def test_no_rows_are_renumbered_to_any_number_of_columns():
    rows = Rows(indptr=np.array([0, 0]), indices=np.zeros(0, np.int32), n_columns=0)
    assert rows.renumbered(np.zeros(0, np.int32), 2).shape == (1, 2)
