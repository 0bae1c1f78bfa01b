"""Conditional random sampling: unbiased, exact for short rows, comparable only where ranks agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.maps import RowSamples
from mercer.maps.samples import _ranks

X = sp.random(3, 300, 0.3, "csr", random_state=1)


def test_estimates_are_unbiased_and_variances_are_those_of_the_estimates():
    made = [RowSamples(X, 20, seed=s) for s in range(2000)]
    found = np.array([one.inner() for one in made])
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - (X @ X.T).toarray()) < 3.5 * error).all()
    np.testing.assert_allclose(np.mean([one.variance() for one in made], axis=0), found.var(axis=0), rtol=0.15)
    distances = np.mean([one.squared_distances() for one in made], axis=0)
    assert distances[0, 1] == pytest.approx(float((X[0] - X[1]).power(2).sum()), rel=0.05)


def test_samples_are_the_entries_of_lowest_rank():
    sample = RowSamples(X, 5, seed=3)
    for i in range(3):
        columns = X[i].indices
        order = columns[np.argsort(_ranks(columns, 3))]
        assert sorted(sample.rows[i].indices) == sorted(order[:5])
        assert sample.thresholds[i] == _ranks(order[5:6], 3)[0]
        np.testing.assert_array_equal(sample.rows[i].toarray()[0, order[:5]], X[i].toarray()[0, order[:5]])


def test_short_rows_are_exact_and_storage_does_not_matter():
    whole = RowSamples(X, 300)
    np.testing.assert_allclose(whole.inner(), (X @ X.T).toarray())
    assert (whole.variance() == 0).all()
    np.testing.assert_array_equal(RowSamples(X.toarray(), 9).inner(), RowSamples(X.tocoo(), 9).inner())
    np.testing.assert_array_equal(RowSamples(X, 9).inner(RowSamples(X[1:], 9)), RowSamples(X, 9).inner()[:, 1:])
    assert RowSamples(sp.csr_matrix((2, 4)), 3).inner().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert RowSamples(X, 9).nbytes < whole.nbytes


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: RowSamples(X, 0), ValueError, "n_samples"),
        (lambda: RowSamples([1.0, 2.0]), ValueError, "X must be a matrix"),
        (lambda: RowSamples([["a"]]), ValueError, "X must be a matrix"),
        (lambda: RowSamples([[np.nan]]), ValueError, "finite"),
        (lambda: RowSamples(X, 1).variance(), ValueError, "at least 2"),
        (lambda: RowSamples(X).inner(RowSamples(X, seed=1)), ValueError, "seed=0 of 300 columns cannot"),
        (lambda: RowSamples(X).inner(RowSamples(X[:, :9])), ValueError, "of 9 columns"),
        (lambda: RowSamples(X).inner(X), TypeError, "must be RowSamples"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
