"""Label sets come back in the form in which they were given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.multilabel import JointSVM

X = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [1.0, 0.1]])
MATRIX = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple])
def test_sets_in_sets_out_lists_in_lists_out(kind):
    Y = [kind(["sea"]), kind(["sea"]), kind(["sky"]), kind(["sky"])]
    answer = JointSVM().fit(X, Y).predict(X)
    expected = set if kind in (set, frozenset) else list
    assert answer == [expected(row) for row in Y]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_matrix_in_a_matrix_out(kind):
    answer = JointSVM().fit(X, kind(MATRIX)).predict(X)
    assert sp.issparse(answer) == (kind is sp.csr_matrix)
    assert np.array_equal(answer.toarray() if sp.issparse(answer) else answer, MATRIX)
