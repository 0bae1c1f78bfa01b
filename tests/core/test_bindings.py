"""The compiled core never trusts its arguments: a wrong array is a TypeError or ValueError, never a crash."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mercer import _core
from reference.names import stable

I64, I32 = np.int64, np.int32
REFUSED = (TypeError, ValueError)


def ints(*values, dtype=I64):
    return np.array(values, dtype)


# ----------------------------------------------------------------------------------- rows and patterns


def rows(**changes):
    given = {
        "indptr": ints(0, 2, 2, 3),
        "indices": ints(0, 3, 1, dtype=I32),
        "values": np.array([1.0, 2.0, 3.0]),
        "n_columns": 4,
        "single": False,
        **changes,
    }
    return _core.linear.Rows(*given.values())


def test_good_rows_are_taken():
    r = rows()
    assert (r.n_rows, r.n_columns, r.single) == (3, 4, False)
    assert rows(values=None, single=True).single
    assert _core.linear.Rows(np.zeros((2, 5), np.float32)).n_columns == 5
    assert _core.linear.Rows(np.zeros((0, 5))).n_rows == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": ints()},
        {"indptr": ints(1, 2, 2, 3)},
        {"indptr": ints(0, 2, 1, 3)},
        {"indptr": ints(0, 2, 2, 4)},
        {"indptr": ints(0, 2, 2, 2)},
        {"indptr": ints(0, -5, 2, 3)},
        {"indptr": ints(0, 2, 2, 3, dtype=I32)},
        {"indptr": np.array([0.0, 2.0, 2.0, 3.0])},
        {"indptr": ints(0, 2, 2, 3).reshape(2, 2)},
        {"indptr": [0, 2, 2, 3]},
        {"indptr": None},
        {"indices": ints(0, 3, 1)},
        {"indices": ints(0, 4, 1, dtype=I32)},
        {"indices": ints(-1, 3, 1, dtype=I32)},
        {"indices": ints(3, 0, 1, dtype=I32)},
        {"indices": ints(3, 3, 1, dtype=I32)},
        {"indices": ints(0, 3, dtype=I32)},
        {"indices": ints(0, 9, 3, 9, 1, 9, dtype=I32)[::2]},
        {"n_columns": 3},
        {"n_columns": -1},
        {"n_columns": 2.5},
        {"values": np.array([1.0, 2.0])},
        {"values": np.array([1.0, np.nan, 3.0])},
        {"values": np.array([1.0, np.inf, 3.0])},
        {"values": np.array([1.0, 2.0, 3.0], np.float32)},
        {"values": np.array([1, 2, 3])},
        {"values": np.array([1.0, 2.0, 3.0]), "single": True},
        {"values": np.array([[1.0, 2.0, 3.0]])},
        {"values": np.arange(6.0)[::2]},
        {"values": "abc"},
    ],
    ids=str,
)
def test_bad_sparse_rows_are_refused(changes):
    with pytest.raises(REFUSED):
        rows(**changes)


@pytest.mark.parametrize(
    "dense",
    [
        np.full((2, 2), np.nan),
        np.full((2, 2), -np.inf),
        np.full((2, 2), np.inf, np.float32),
        np.zeros((3, 2), order="F"),
        np.zeros((4, 4))[::2],
        np.zeros((4, 4))[:, ::2],
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((2, 2), int),
        np.zeros((2, 2), np.float16),
        np.zeros((2, 2), complex),
        np.zeros((2, 2), ">f8"),
        [[0.0, 1.0]],
        None,
    ],
    ids=lambda x: f"{getattr(x, 'dtype', type(x).__name__)}{getattr(x, 'shape', '')}",
)
def test_bad_dense_rows_are_refused(dense):
    with pytest.raises(REFUSED):
        _core.linear.Rows(dense)


def test_good_patterns_are_taken():
    p = _core.linear.Pattern(3, 4)
    assert (p.n_features, p.width, p.n_weights) == (3, 4, 12)
    p = _core.linear.Pattern(ints(0, 2, 2), ints(0, 3, dtype=I32), 4)
    assert (p.n_features, p.width, p.n_weights) == (2, 4, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        (-1, 4),
        (3, 0),
        (3, -2),
        (2**40, 2**40),
        (2**62, 2**62),
        (ints(), ints(dtype=I32), 4),
        (ints(0, 2), ints(0, 3, dtype=I32), 0),
        (ints(0, 2), ints(0, 3, dtype=I32), 3),
        (ints(0, 2), ints(-1, 3, dtype=I32), 4),
        (ints(0, 2), ints(3, 0, dtype=I32), 4),
        (ints(0, 2), ints(1, 1, dtype=I32), 4),
        (ints(0, 1), ints(0, 3, dtype=I32), 4),
        (ints(1, 2), ints(0, 3, dtype=I32), 4),
        (ints(0, 3, 2), ints(0, 3, dtype=I32), 4),
        (ints(0, 9, 2), ints(0, 3, dtype=I32), 4),
        (ints(0, 2), ints(0, 3), 4),
        (ints(0, 2, dtype=I32), ints(0, 3, dtype=I32), 4),
    ],
    ids=str,
)
def test_bad_patterns_are_refused(arguments):
    with pytest.raises(REFUSED):
        _core.linear.Pattern(*arguments)


# -------------------------------------------------------------------------------------------- products


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("function", ["scores", "backward"])
@pytest.mark.parametrize(
    "changes",
    [
        {"row": -1},
        {"row": 1},
        {"row": 4, "count": 1},
        {"row": 2**63 - 1},
        {"row": 2**63 - 1, "count": 1, "table": np.zeros((1, 2))},
        {"count": -1},
        {"count": 2},
        {"count": 2**62},
        {"pattern": _core.linear.Pattern(3, 2)},
        {"pattern": _core.linear.Pattern(4, 3)},
        {"vector": np.zeros(7)},
        {"vector": np.zeros(9)},
        {"vector": np.zeros(8, np.float32)},
        {"vector": np.zeros(16)[::2]},
        {"vector": np.zeros((4, 2))},
        {"table": np.zeros((3, 3))},
        {"table": np.zeros((2, 2))},
        {"table": np.zeros((3, 2), np.float32)},
        {"table": np.zeros((3, 2), order="F")},
        {"table": np.zeros(6)},
        {"threads": 0},
        {"threads": -3},
        {"rows": None},
        {"pattern": None},
    ],
    ids=stable,
)
def test_bad_arguments_of_the_products_are_refused(function, changes):
    given = {
        "rows": rows(),
        "row": 0,
        "count": 3,
        "pattern": _core.linear.Pattern(4, 2),
        "vector": np.zeros(8),
        "table": np.zeros((3, 2)),
        "threads": 1,
    }
    order = (
        "rows",
        "row",
        "count",
        "pattern",
        *(("vector", "table") if function == "scores" else ("table", "vector")),
        "threads",
    )
    getattr(_core.linear, function)(*(given[name] for name in order))
    given.update(changes)
    with pytest.raises(REFUSED):
        getattr(_core.linear, function)(*(given[name] for name in order))


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": None},
        {"rows": _core.linear.Rows(np.zeros((3, 4), np.float32))},
        {"rows": _core.linear.Rows(np.zeros((3, 5)))},
        {"pattern": None},
        {"w": np.zeros(7)},
        {"w": np.zeros(8, np.float32)},
        {"transitions": np.zeros((3, 3))},
        {"start": np.zeros(3)},
        {"end": np.zeros(1)},
        {"offsets": ints()},
        {"offsets": ints(0, 4)},
        {"offsets": ints(-1, 2)},
        {"offsets": ints(2, 1, 3)},
        {"labels": np.zeros(2, I32)},
        {"labels": np.array([0, 1, 2], I32)},
        {"labels": np.array([0, -1, 1], I32)},
        {"loss": np.zeros(3)},
        {"out_nodes": np.zeros(9)},
        {"out_nodes": read_only(np.zeros(8))},
        {"out_shared": np.zeros(7)},
        {"threads": 0},
    ],
    ids=stable,
)
def test_bad_arguments_of_the_log_loss_are_refused(changes):
    given = {
        "rows": rows(),
        "pattern": _core.linear.Pattern(4, 2),
        "w": np.zeros(8),
        "transitions": np.zeros((2, 2)),
        "start": np.zeros(2),
        "end": np.zeros(2),
        "offsets": ints(0, 1, 3),
        "labels": np.array([0, 1, 1], I32),
        "loss": np.zeros(2),
        "out_nodes": np.zeros(8),
        "out_shared": np.zeros(8),
        "threads": 1,
    }
    _core.chain.log_loss(*given.values())
    given.update(changes)
    with pytest.raises(REFUSED):
        _core.chain.log_loss(*given.values())


def test_results_are_not_written_to_read_only_arrays():
    with pytest.raises(TypeError):
        _core.linear.scores(rows(), 0, 3, _core.linear.Pattern(4, 2), np.zeros(8), read_only(np.zeros((3, 2))))
    with pytest.raises(TypeError):
        _core.linear.backward(rows(), 0, 3, _core.linear.Pattern(4, 2), np.zeros((3, 2)), read_only(np.zeros(8)))


def test_rows_of_one_precision_are_not_scored_in_the_other():
    single = _core.linear.Rows(np.zeros((3, 4), np.float32))
    with pytest.raises(TypeError, match="floating-point type"):
        _core.linear.scores(single, 0, 3, _core.linear.Pattern(4, 2), np.zeros(8), np.zeros((3, 2)))


# ---------------------------------------------------------------------------------------------- chains

T, C, N = 5, 3, 2


def chain(**changes):
    given = {
        "nodes": np.zeros((T, C)),
        "transitions": np.zeros((C, C)),
        "start": np.zeros(C),
        "end": np.zeros(C),
        "edges": np.zeros((T, C, C)),
        "offsets": ints(0, 2, 5),
        **changes,
    }
    return tuple(given.values())


OUTPUTS = {
    "marginals": {
        "out_nodes": np.zeros((T, C)),
        "out_transitions": np.zeros((C, C)),
        "out_start": np.zeros(C),
        "out_end": np.zeros(C),
        "out_edges": np.zeros((T, C, C)),
        "log_partition": np.zeros(N),
        "entropy": np.zeros(N),
        "threads": 1,
    },
    "viterbi": {"labels": np.zeros(T, I32), "score": np.zeros(N), "threads": 1},
    "k_best": {"labels": np.zeros((2, T), I32), "score": np.zeros((N, 2)), "threads": 1},
    "sample": {"seed": 0, "labels": np.zeros((2, T), I32), "threads": 1},
    "score": {"labels": np.zeros(T, I32), "score": np.zeros(N)},
}
verbs = pytest.mark.parametrize("verb", OUTPUTS)


@verbs
def test_good_chains_are_taken(verb):
    getattr(_core.chain, verb)(*chain(), *OUTPUTS[verb].values())
    getattr(_core.chain, verb)(*chain(edges=None, offsets=ints(7, 9, 12)), *OUTPUTS[verb].values())


@verbs
@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": np.zeros((T, C + 1))},
        {"nodes": np.zeros((T + 1, C))},
        {"nodes": np.zeros((T, 0))},
        {"nodes": np.zeros((T, C), np.float32)},
        {"nodes": np.zeros((T, C), order="F")},
        {"nodes": np.zeros((T, C), int)},
        {"nodes": np.zeros(T * C)},
        {"transitions": np.zeros((C, C + 1))},
        {"transitions": np.zeros((C + 1, C))},
        {"transitions": np.zeros((C, C), np.float32)},
        {"transitions": np.zeros((2 * C, C))[::2]},
        {"start": np.zeros(C + 1)},
        {"end": np.zeros(C - 1)},
        {"start": np.zeros(C, np.float32)},
        {"edges": np.zeros((T, C, C + 1))},
        {"edges": np.zeros((T - 1, C, C))},
        {"edges": np.zeros((T, C * C))},
        {"edges": np.zeros((T, C, C), np.float32)},
        {"edges": np.zeros((T, C, C), order="F")},
        {"offsets": ints(0, 2, 4)},
        {"offsets": ints(0, 2, 6)},
        {"offsets": ints(0, 6, 5)},
        {"offsets": ints(0, -1, 5)},
        {"offsets": ints()},
        {"offsets": ints(0, 2, 5, dtype=I32)},
        {"offsets": np.array([0.0, 2.0, 5.0])},
        {"offsets": ints(0, 5)},
    ],
    ids=str,
)
def test_bad_chains_are_refused(verb, changes):
    if verb == "sample" and changes.get("offsets") is not None and len(changes["offsets"]) == 2:
        pytest.skip("samples have no array a sequence")
    with pytest.raises(REFUSED):
        getattr(_core.chain, verb)(*chain(**changes), *OUTPUTS[verb].values())


@verbs
@pytest.mark.parametrize("part", ["nodes", "transitions", "start", "end", "edges"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_of_chains_must_be_finite_or_forbidden(verb, part, value):
    arguments = dict(zip(("nodes", "transitions", "start", "end", "edges"), chain(), strict=False))
    array = arguments[part].copy()
    array[(1 if part in ("nodes", "edges") else 0,) + (0,) * (array.ndim - 1)] = value
    with pytest.raises(ValueError, match="finite or -inf"):
        getattr(_core.chain, verb)(*chain(**{part: array}), *OUTPUTS[verb].values())


@pytest.mark.parametrize(
    ("verb", "changes"),
    [
        ("marginals", {"out_nodes": np.zeros((T, C + 1))}),
        ("marginals", {"out_nodes": np.zeros((T, C), np.float32)}),
        ("marginals", {"out_nodes": np.zeros((T, C), order="F")}),
        ("marginals", {"out_nodes": read_only(np.zeros((T, C)))}),
        ("marginals", {"out_transitions": np.zeros((C + 1, C))}),
        ("marginals", {"out_transitions": None}),
        ("marginals", {"out_start": None}),
        ("marginals", {"out_start": np.zeros(C + 1)}),
        ("marginals", {"out_end": np.zeros(C - 1)}),
        ("marginals", {"out_edges": np.zeros((T, C, C - 1))}),
        ("marginals", {"log_partition": np.zeros(N + 1)}),
        ("marginals", {"log_partition": np.zeros(N, np.float32)}),
        ("marginals", {"log_partition": None}),
        ("marginals", {"entropy": np.zeros(N - 1)}),
        ("marginals", {"threads": 0}),
        ("viterbi", {"labels": np.zeros(T)}),
        ("viterbi", {"labels": np.zeros(T + 1, I32)}),
        ("viterbi", {"score": np.zeros(N + 1)}),
        ("viterbi", {"threads": -1}),
        ("k_best", {"labels": np.zeros((3, T), I32)}),
        ("k_best", {"labels": np.zeros((2, T + 1), I32)}),
        ("k_best", {"labels": np.zeros((0, T), I32), "score": np.zeros((N, 0))}),
        ("k_best", {"score": np.zeros((N + 1, 2))}),
        ("sample", {"labels": np.zeros((2, T - 1), I32)}),
        ("sample", {"labels": np.zeros((2, T), I64)}),
        ("sample", {"seed": -1}),
        ("sample", {"seed": 2**64}),
        ("score", {"labels": np.full(T, C, I32)}),
        ("score", {"labels": np.full(T, -1, I32)}),
        ("score", {"labels": np.zeros(T - 1, I32)}),
        ("score", {"score": np.zeros(N + 1)}),
    ],
    ids=str,
)
def test_bad_outputs_of_chains_are_refused(verb, changes):
    with pytest.raises(REFUSED):
        getattr(_core.chain, verb)(*chain(), *{**OUTPUTS[verb], **changes}.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": np.full(T, C, I32)},
        {"labels": np.full(T, -1, I32)},
        {"labels": np.zeros(T + 1, I32)},
        {"labels": np.zeros(T, I64)},
        {"offsets": ints(0, 2, 4)},
        {"offsets": ints()},
        {"offsets": ints(0, 6, 5)},
        {"weights": np.ones(3)},
        {"nodes": np.zeros((T, C + 1))},
        {"transitions": np.zeros((C, C), np.float32)},
        {"transitions": np.zeros((C + 1, C))},
        {"start": np.zeros(C + 1)},
        {"end": np.zeros(C + 1)},
        {"edges": np.zeros((T, C, C), np.float32)},
        {"edges": np.zeros((T + 1, C, C))},
    ],
    ids=str,
)
def test_bad_arguments_of_add_are_refused(changes):
    given = {
        "labels": np.zeros(T, I32),
        "offsets": ints(0, 2, 5),
        "weights": np.ones(2),
        "nodes": np.zeros((T, C)),
        "transitions": np.zeros((C, C)),
        "start": np.zeros(C),
        "end": np.zeros(C),
        "edges": np.zeros((T, C, C)),
    }
    _core.chain.add(*given.values())
    with pytest.raises(REFUSED):
        _core.chain.add(*{**given, **changes}.values())


# ---------------------------------------------------------------------------------------------- online


def online(**changes):
    size = 4 * 2 + 4 + 4 + 2 * 4
    given = {
        "rows": _core.linear.Rows(np.ones((5, 4))),
        "pattern": _core.linear.Pattern(4, 2),
        "edge_rows": _core.linear.Rows(np.ones((5, 2))),
        "edge_pattern": _core.linear.Pattern(2, 4),
        "offsets": ints(0, 2, 5),
        "labels": ints(0, 1, 0, -1, 1, dtype=I32),
        "shared_mask": np.zeros(8, np.uint8),
        "allowed": np.ones((5, 2), np.uint8),
        "rule": 0,
        "rate": 0.1,
        "decay": 0.1,
        "l2": 0.1,
        "l1": 0.0,
        "aggressiveness": 1.0,
        "order": ints(1, 0),
        "w": np.zeros(size),
        "extra": np.zeros(size),
        "state": _core.chain.OnlineState(),
        **changes,
    }
    return _core.chain.online(*given.values())


@pytest.mark.parametrize("rule", [0, 1, 2])
def test_good_arguments_of_the_online_rules_are_taken(rule):
    loss, wrong = online(rule=rule)
    assert np.isfinite(loss)
    assert wrong >= 0
    assert np.isfinite(online(rule=rule, shared_mask=None, allowed=None)[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern": _core.linear.Pattern(3, 2)},
        {"pattern": _core.linear.Pattern(4, 3)},
        {"edge_rows": None},
        {"edge_pattern": None},
        {"edge_rows": _core.linear.Rows(np.ones((4, 2)))},
        {"edge_rows": _core.linear.Rows(np.ones((5, 2), np.float32))},
        {"edge_rows": _core.linear.Rows(np.ones((5, 3)))},
        {"edge_pattern": _core.linear.Pattern(2, 3)},
        {"offsets": ints()},
        {"offsets": ints(0, 2, 6)},
        {"offsets": ints(-1, 2, 5)},
        {"offsets": ints(0, 4, 3)},
        {"labels": ints(0, 1, 0, 2, 1, dtype=I32)},
        {"labels": ints(0, 1, 0, -2, 1, dtype=I32)},
        {"labels": ints(0, 1, 0, dtype=I32)},
        {"labels": ints(0, 1, 0, 0, 1)},
        {"shared_mask": np.zeros(7, np.uint8)},
        {"shared_mask": np.zeros(8)},
        {"allowed": np.ones((5, 3), np.uint8)},
        {"allowed": np.ones((4, 2), np.uint8)},
        {"allowed": np.ones((5, 2), np.uint8, order="F")},
        {"rule": 3},
        {"rule": -1},
        {"rate": -0.1},
        {"rate": np.nan},
        {"decay": np.inf},
        {"l2": -1.0},
        {"l1": np.nan},
        {"aggressiveness": -1.0},
        {"order": ints(2)},
        {"order": ints(-1)},
        {"order": ints(0, dtype=I32)},
        {"w": np.zeros(23)},
        {"w": np.full(24, np.nan)},
        {"w": read_only(np.zeros(24))},
        {"extra": np.zeros(25)},
        {"state": None},
    ],
    ids=stable,
)
def test_bad_arguments_of_the_online_rules_are_refused(changes):
    with pytest.raises(REFUSED):
        online(**changes)


# ----------------------------------------------------------------------------------- vectors and pairs

SHORT = np.uint16  # bfloat16
PRECISIONS = [(SHORT, SHORT), (SHORT, np.float32), (SHORT, np.float64), (np.float64, np.float64)]


def rounded(x, dtype):
    """Numbers of a precision, as the core takes them and as doubles."""
    if dtype is not SHORT:
        return x.astype(dtype), x.astype(dtype).astype(float)
    out = np.empty(len(x), SHORT)
    _core.vectors.to_bfloat16(x.astype(np.float32), out)
    return out, (out.astype(np.uint32) << 16).view(np.float32).astype(float)


@pytest.mark.parametrize("size", [0, 1, 7, 64, 1001, 100_000])
@pytest.mark.parametrize(("left", "right"), PRECISIONS)
@pytest.mark.parametrize("name", _core.instruction_sets())
def test_vector_arithmetic_is_that_of_numpy_in_double(name, left, right, size):
    before = _core.instruction_set()
    _core.use_instruction_set(name)
    try:
        rng = np.random.default_rng(size)
        (x, x_), (y, y_) = rounded(rng.normal(size=size), left), rounded(rng.normal(size=size), right)
        exact = float(np.dot(x_.astype(np.longdouble), y_.astype(np.longdouble)))
        assert np.isclose(_core.vectors.dot(x, y), exact, rtol=1e-12, atol=1e-11)
        if right is not SHORT:
            out = y.copy()
            _core.vectors.axpy(0.3, x, out)
            np.testing.assert_allclose(out, y_ + 0.3 * x_, rtol=2e-7 if right is np.float32 else 1e-14, atol=1e-7)
    finally:
        _core.use_instruction_set(before)


@pytest.mark.parametrize("name", _core.instruction_sets())
def test_short_numbers_are_the_nearest_ones(name):
    before = _core.instruction_set()
    _core.use_instruction_set(name)
    try:
        x = (np.random.default_rng(0).normal(size=1001) * 10.0 ** np.linspace(-30, 30, 1001)).astype(np.float32)
        assert np.all(np.abs(rounded(x, SHORT)[1] - x) <= 2.0**-8 * np.abs(x))
        halfway = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 0.0, 3.0], np.float32)  # to the even neighbour
        assert rounded(halfway, SHORT)[1].tolist() == [1.0, 1 + 2**-6, -1.0, 0.0, 3.0]
    finally:
        _core.use_instruction_set(before)


@pytest.mark.parametrize(
    "vectors",
    [
        (np.zeros(3), np.zeros(4)),
        (np.zeros(3), np.zeros(3, np.float32)),
        (np.zeros(3, int), np.zeros(3)),
        (np.zeros(6)[::2], np.zeros(3)),
        (np.zeros((3, 1)), np.zeros((3, 1))),
        (None, np.zeros(3)),
    ],
    ids=str,
)
def test_bad_vectors_are_refused(vectors):
    for call in (_core.vectors.dot, partial(_core.vectors.axpy, 1.0), _core.vectors.to_bfloat16):
        with pytest.raises(REFUSED):
            call(*vectors)


def test_sums_are_not_written_to_read_only_vectors():
    with pytest.raises(TypeError):
        _core.vectors.axpy(1.0, np.zeros(3), read_only(np.zeros(3)))


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": ints()},
        {"indptr": ints(1, 2, 3)},
        {"indptr": ints(0, 4, 3)},
        {"indptr": ints(0, 2, 4)},
        {"indptr": ints(0, 3)},
        {"indices": ints(0, 1, 2, dtype=I32)},
        {"indices": ints(0, -1, 1, dtype=I32)},
        {"indices": ints(0, 1, 1)},
        {"columns": ints(0, 3, dtype=I32)},
        {"columns": ints(0, -3, dtype=I32)},
        {"columns": ints(0, dtype=I32)},
        {"columns": ints(0, 1)},
        {"n_features": -1},
        {"n_columns": 0},
        {"n_features": 2**40, "n_columns": 2**40},
    ],
    ids=str,
)
def test_bad_arguments_of_the_observed_pairs_are_refused(changes):
    given = {
        "indptr": ints(0, 2, 3),
        "indices": ints(0, 1, 1, dtype=I32),
        "columns": ints(0, 2, dtype=I32),
        "n_features": 2,
        "n_columns": 3,
        "fill": 0.5,
    }
    starts, columns = _core.linear.observed_pattern(*given.values())
    assert (starts.tolist(), columns.tolist()) == ([0, 1, 4], [0, 0, 1, 2])
    with pytest.raises(REFUSED):
        _core.linear.observed_pattern(*{**given, **changes}.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern": _core.linear.Pattern(3, 2)},
        {"pattern": _core.linear.Pattern(4, 3)},
        {"w": np.zeros(9)},
        {"transitions": np.zeros((2, 3))},
        {"transitions": np.zeros((2, 2), np.float32)},
        {"start": np.zeros(3)},
        {"end": np.zeros(1)},
        {"offsets": ints()},
        {"offsets": ints(-1, 1, 2)},
        {"offsets": ints(0, 3, 2)},
        {"offsets": ints(1, 2, 4)},
        {"labels": np.zeros(2, I32)},
        {"labels": read_only(np.zeros(3, I32))},
        {"score": np.zeros(3)},
        {"threads": 0},
    ],
    ids=stable,
)
def test_bad_arguments_of_decoding_are_refused(changes):
    given = {
        "rows": rows(),
        "pattern": _core.linear.Pattern(4, 2),
        "w": np.zeros(8),
        "transitions": np.zeros((2, 2)),
        "start": np.zeros(2),
        "end": np.zeros(2),
        "offsets": ints(0, 1, 3),
        "labels": np.zeros(3, I32),
        "score": np.zeros(2),
        "threads": 1,
    }
    _core.chain.decode(*given.values())
    given.update(changes)
    with pytest.raises(REFUSED):
        _core.chain.decode(*given.values())


def test_labels_become_lists_of_their_own_objects():
    classes = ["a", "long label", 3.5]
    found = _core.chain.label_lists(classes, ints(2, 0, -1, 1, dtype=I32), ints(5, 7, 7, 9))
    assert found == [[3.5, "a"], [], [None, "long label"]]
    assert found[2][1] is classes[1]
    for labels, offsets in (((3,), (0, 1)), ((-2,), (0, 1)), ((0,), (0, 2)), ((0,), ()), ((0, 1), (0, 3, 2))):
        with pytest.raises(ValueError):
            _core.chain.label_lists(classes, ints(*labels, dtype=I32), ints(*offsets))


# -------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("name", ["", "sse9", "AVX2"])
def test_an_unknown_instruction_set_is_refused(name):
    before = _core.instruction_set()
    with pytest.raises(ValueError, match="instruction set"):
        _core.use_instruction_set(name)
    assert _core.instruction_set() == before


@pytest.mark.parametrize("bits", [-1, 31])
def test_the_number_of_hash_bits_is_bounded(bits):
    with pytest.raises(ValueError, match="n_bits"):
        _core.vocabulary.Vocabulary(bits)


def test_vocabularies_check_what_they_are_given():
    v = _core.vocabulary.Vocabulary()
    v.add_names(np.frombuffer(b"abc", np.uint8), ints(0, 1, 3))
    assert (len(v), v.name(1)) == (2, "bc")
    for column in (-1, 2):
        with pytest.raises(ValueError, match="no such feature"):
            v.name(column)
    text = np.frombuffer(b"xyz", np.uint8)
    for bounds in (ints(), ints(1, 3), ints(0, 4), ints(0, 2), ints(0, 3, 2, 3), ints(0, 1, 1, 1, 3)):
        with pytest.raises(ValueError):
            _core.vocabulary.Vocabulary().add_names(text, bounds)
    with pytest.raises(ValueError, match="hashing"):
        _core.vocabulary.Vocabulary(4).add_names(text, ints(0, 3))
    for strings, tokens in (
        (ints(0, 4), ints(0, 1)),
        (ints(-1, 3), ints(0, 1)),
        (ints(2, 1), ints(0, 1)),
        (ints(0, 3), ints(0, 2)),
        (ints(0, 3), ints(1, 0)),
        (ints(0, 3), ints()),
    ):
        with pytest.raises(ValueError):
            v.encode_utf8(text, strings, tokens, True)
    for indptr, indices, values in (
        (ints(0, 1), ints(2, dtype=I32), None),
        (ints(0, 1), ints(-1, dtype=I32), None),
        (ints(0, 2), ints(1, dtype=I32), None),
        (ints(1, 1), ints(1, dtype=I32), None),
        (ints(), ints(dtype=I32), None),
        (ints(0, 1), ints(1, dtype=I32), np.zeros(2)),
    ):
        with pytest.raises(ValueError):
            v.sort(indptr, indices, values)


# ----------------------------------------------------------------------------------- offsets that lead far outside


FAR = ints(0, 10**9, 1)
EMPTY = ints(dtype=I32)
GRAPHLETS = ([3], "exact", True, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.kernels.shortest_path_rows(FAR, ints(0, 0), EMPTY, None, None, 1),
        lambda: _core.kernels.weisfeiler_lehman_rows(FAR, ints(0, 0), EMPTY, None, None, 1, "subtree", 1),
        lambda: _core.graphs.graphlet_rows(
            FAR, ints(0, 0), EMPTY, None, None, *GRAPHLETS, 0, 1, [], False, 0, 4, False, 1
        ),
        lambda: _core.graphs.graphlet_keys(FAR, ints(0, 0), EMPTY, None, None, *GRAPHLETS, False, 0, 1),
        lambda: _core.graphs.graphlet_forms(FAR, ints(0, 0), EMPTY, None, None, *GRAPHLETS, 0, 1, [], 0, 4),
        lambda: _core.kernels.kmer_rows(
            np.arange(9, dtype=np.uint32), ints(0, 9), None, 0, "substrings", 1, 2**63 - 1, 0, np.ones(3),
            np.zeros(0, np.uint32), False, 1,
        ),
    ],
)  # fmt: skip
def test_offsets_are_checked_before_they_are_used(call):
    with pytest.raises(ValueError, match=r"offsets must not decrease|at most 2\^40"):
        call()


@pytest.mark.parametrize("alphabet", [["a"], [b"a", 1], [None]])
def test_characters_of_an_alphabet_are_bytes(alphabet):
    arguments = (ints(97, dtype=np.uint8), ints(0, 1), "spectrum", 1, 0, 0, 0, False, 0, alphabet)
    with pytest.raises(TypeError, match="characters must be bytes"):
        _core.text.string_names(*arguments)
    with pytest.raises(TypeError, match="characters must be bytes"):
        _core.text.string_rows(*arguments, np.ones(2), 4, False, False, 1)


@pytest.mark.parametrize("tree", [(["a", "b"], [-1, "x"], [False, True]), (["a", "b"], [-1, 0], [False, "word"])])
def test_flat_trees_of_other_types_are_refused(tree):
    with pytest.raises(TypeError, match="parents of a flat tree must be integers"):
        _core.kernels.Forest([tree], True, True)


def test_sketches_need_a_column():
    keys = np.array([12821902518812925611], np.uint64)
    with pytest.raises(ValueError, match="at least one column"):
        _core.hashing.query_sketch(np.zeros((5, 0)), 0, keys)
    with pytest.raises(ValueError, match="at least one column"):
        _core.hashing.update_sketch(np.zeros((5, 0)), 0, keys, None, False)


def test_sizes_that_no_memory_holds_are_refused():
    with pytest.raises(ValueError, match="2\\^40"):
        _core.hashing.RecordColumns(2**62, 0, False)
    with pytest.raises(ValueError, match="2\\^31"):
        _core.linear.observed_pattern(ints(0, 1), ints(0, dtype=I32), ints(0, dtype=I32), 2, 2**32, 0.5)


def test_firsts_of_segments_are_checked_before_they_are_used():
    zeros = np.zeros(2)
    parts = _core.segments.SegmentParts(
        np.zeros((3, 2)), np.zeros((2, 2)), zeros, zeros, ints(0, 4, 9), np.zeros((9, 2))
    )
    with pytest.raises(ValueError, match="firsts must not decrease"):
        parts.score(ints(3, 1, 5), ints(0, 1, 1, dtype=I32), ints(0, 2**31, 3), np.zeros(2), 1)
