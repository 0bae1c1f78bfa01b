"""Scores and their adjoint equal dense products for all kinds of rows, patterns, widths and threads."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from mercer import _core
from mercer.data.sequences import Rows
from mercer.structures import Chain, patterns

KINDS = ["csr", "ones", "dense"]
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
kinds = pytest.mark.parametrize("kind", KINDS)
sparsities = pytest.mark.parametrize("sparse", [False, True, "wide"], ids=["all", "pattern", "wide pattern"])


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


@functools.cache  # the same for all patterns and instruction sets
def make_rows(kind, n, n_features, dtype, seed=0):
    """Rows and the same as a dense float64 matrix."""
    rng = np.random.default_rng(seed)
    matrix = random_array((n, n_features), density=0.3, rng=rng, data_sampler=rng.normal).toarray().astype(dtype)
    if kind == "ones":
        matrix = (matrix != 0).astype(dtype)
    rows = Rows.from_matrix(matrix if kind == "dense" else csr_matrix(matrix))
    assert (rows.values is None) == (kind != "csr")
    return rows, matrix.astype(float)


def make_pattern(n_features, width, sparse, seed=0):
    """A core pattern and its keys; a sparse one has empty, partial and full rows."""
    if not sparse:
        return _core.linear.Pattern(n_features, width), np.arange(n_features * width)
    rng = np.random.default_rng(seed)
    mask = rng.random((n_features, width)) < 0.4
    mask[::4] = True
    mask[1::4] = False
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64 if seed % 2 else np.uint32)
    columns = np.nonzero(mask)[1].astype(np.int32 if sparse == "wide" else np.uint16)
    return _core.linear.Pattern(starts, columns, width), patterns.keys((starts, columns), n_features, width)


def dense_weights(w, keys, n_features, width):
    out = np.zeros(n_features * width)
    out[keys] = w
    return out.reshape(n_features, width)


def check(kind, sparse, width, dtype, threads=1, n=9, n_features=13, row=0, count=None):
    count = n - row if count is None else count
    rows, matrix = make_rows(kind, n, n_features, dtype, seed=width)
    pattern, keys = make_pattern(n_features, width, sparse, seed=width)
    rng = np.random.default_rng(width)
    w = rng.normal(size=len(keys))
    theta = np.full((count, width), np.nan, dtype)
    _core.linear.scores(rows.core, row, count, pattern, w, theta, threads)
    part, close = matrix[row : row + count], {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    np.testing.assert_allclose(theta, part @ dense_weights(w, keys, n_features, width), **close)

    mu = rng.normal(size=(count, width)).astype(dtype)
    before = rng.normal(size=len(keys))
    out = before.copy()
    _core.linear.backward(rows.core, row, count, pattern, mu, out, threads)
    np.testing.assert_allclose(out - before, (part.T @ mu.astype(float)).ravel()[keys], **close)


@sparsities
@kinds
@dtypes
def test_products_equal_dense_ones_for_every_width(kind, sparse, dtype, instruction_set):
    for width in (*range(1, 36), 47, 48, 49, 63, 64, 65, 70):
        check(kind, sparse, width, dtype)


@pytest.mark.parametrize("threads", [1, 2, 5])
@sparsities
@kinds
@pytest.mark.parametrize(("row", "count"), [(0, 0), (0, 1), (3, 4), (8, 1), (9, 0), (0, 9)])
def test_products_equal_dense_ones_for_ranges_of_rows(row, count, kind, sparse, threads):
    check(kind, sparse, 5, np.float64, threads, row=row, count=count)


@sparsities
@kinds
def test_fewer_columns_than_the_pattern_has_features_is_fine(kind, sparse):
    """Rows read before the vocabulary grew."""
    rows, matrix = make_rows(kind, 6, 4, np.float64)
    pattern, keys = make_pattern(9, 3, sparse)
    w = np.random.default_rng(0).normal(size=len(keys))
    theta = np.empty((6, 3))
    _core.linear.scores(rows.core, 0, 6, pattern, w, theta)
    np.testing.assert_allclose(theta, matrix @ dense_weights(w, keys, 9, 3)[:4], atol=1e-12)
    for threads in (1, 3):
        out = np.zeros(len(keys))
        _core.linear.backward(rows.core, 0, 6, pattern, theta, out, threads)
        wanted = np.zeros((9, 3))
        wanted[:4] = matrix.T @ theta
        np.testing.assert_allclose(out, wanted.ravel()[keys], atol=1e-12)


@dtypes
@sparsities
@kinds
def test_products_are_the_same_to_the_last_bit_for_any_number_of_threads(kind, sparse, dtype, instruction_set):
    n, n_features, width = 700, 90, 11
    rows, _ = make_rows(kind, n, n_features, dtype)
    pattern, keys = make_pattern(n_features, width, sparse)
    rng = np.random.default_rng(0)
    w, mu = rng.normal(size=len(keys)), rng.normal(size=(n, width)).astype(dtype)
    results = []
    for threads in (1, 2, 5, 64):
        theta, out = np.empty((n, width), dtype), np.zeros(len(keys))
        _core.linear.scores(rows.core, 0, n, pattern, w, theta, threads)
        _core.linear.backward(rows.core, 0, n, pattern, mu, out, threads)
        results.append((theta, out))
    for theta, out in results[1:]:
        np.testing.assert_array_equal(theta, results[0][0])
        np.testing.assert_array_equal(out, results[0][1])


@dtypes
@sparsities
@kinds
def test_decoding_in_one_call_is_decoding_the_scores(kind, sparse, dtype, instruction_set):
    """To the last bit of the best score, for any number of threads and a view that does not begin at 0."""
    from mercer.data import Sequences

    for width in (2, 7, 22, 40):
        rows, _ = make_rows(kind, 1500, 30, dtype, seed=width)
        offsets = np.r_[0, 0, 700, np.arange(703, 1500, 3), 1500]
        X = Sequences(rows, offsets)[1:]
        pattern = None
        if sparse and kind != "dense":
            mask = np.random.default_rng(width).random((30, width)) < 0.4
            counts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
            pattern = counts, np.nonzero(mask)[1].astype(np.int32 if sparse == "wide" else np.uint16)
        chain = Chain(width, 30, pattern=pattern)
        w = np.random.default_rng(width).normal(size=chain.n_weights)
        wanted = chain.argmax(chain.scores(w, X))
        for threads in (1, 2, 5):
            chain.threads = threads
            for found, expected in zip(chain.decode(w, X), wanted, strict=True):
                np.testing.assert_array_equal(found, expected)


def test_decoding_with_features_of_transitions_uses_them():
    from mercer.data import Sequences

    rng = np.random.default_rng(0)
    X = Sequences(rng.normal(size=(20, 4)), [0, 9, 20], edges=rng.normal(size=(20, 3)))
    chain = Chain(3, 4, n_edge_features=3)
    w = rng.normal(size=chain.n_weights)
    labels, score = chain.decode(w, X)
    wanted = chain.argmax(chain.scores(w, X))
    np.testing.assert_array_equal(labels, wanted[0])
    np.testing.assert_array_equal(score, wanted[1])
    w[chain.slices["edges"]] = 0.0
    assert (chain.decode(w, X)[1] != score).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_decoding_refuses_weights_that_are_not_finite(bad):
    from mercer.data import Sequences

    chain = Chain(3, 4)
    w = np.zeros(chain.n_weights)
    w[0] = bad
    with pytest.raises(ValueError, match="finite"):
        chain.decode(w, Sequences(np.ones((5, 4))))


@pytest.mark.parametrize("edge_width", [None, 2, 6])
def test_backward_is_the_adjoint_of_scores(edge_width):
    """⟨scores(w), μ⟩ = ⟨w, backward(μ)⟩, through the structure, on a view in the middle."""
    from mercer.data import Sequences
    from mercer.structures import ChainMarginals

    rng = np.random.default_rng(0)
    edges = None if edge_width is None else rng.normal(size=(20, edge_width))
    X = Sequences(rng.normal(size=(20, 4)), [0, 3, 3, 9, 14, 20], edges=edges)[2:4]
    chain = Chain(3, 4, n_edge_features=edge_width or 0)
    w = rng.normal(size=chain.n_weights)
    theta = chain.scores(w, X)
    own = None if edges is None else rng.normal(size=(11, 3, 3))
    mu = ChainMarginals(
        rng.normal(size=(11, 3)),
        rng.normal(size=(3, 3)),
        rng.normal(size=3),
        rng.normal(size=3),
        np.zeros(2),
        own,
    )
    left = sum(
        float((a * b).sum())
        for a, b in (
            (theta.nodes, mu.nodes),
            (theta.transitions, mu.transitions),
            (theta.start, mu.start),
            (theta.end, mu.end),
        )
    )
    if edges is not None:
        left += float((theta.edges * own).sum())
    out = np.zeros(chain.n_weights)
    chain.backward(X, mu, out)
    assert np.isclose(left, out @ w)
