"""What holds for every kernel: symmetric, positive definite, Cauchy-Schwarz, equal to its definition and features."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kernels.cases import Case, all_cases
from mercer.kernels import Gram, NystroemMap

N = 8
CASES = all_cases()
WITH_REFERENCE = [case for case in CASES if case.reference is not None]
WITH_FEATURES = [case for case in CASES if case.kernel.has_features]
ON_LANDMARKS = [  # others have random maps of their own, with tests of their own
    case for case in CASES if case.kernel.definiteness == "pd" and isinstance(case.kernel.approximate(N), NystroemMap)
]
INVARIANCES = [(case, name) for case in CASES for name in case.invariances]


def drawn(case: Case, seed: int = 0, n: int = N) -> Any:
    return case.objects(np.random.default_rng(seed), n)


def part(X: Any, start: int, stop: int) -> Any:
    return X[start:stop]


def dense(F: Any) -> np.ndarray:
    return F.toarray() if sp.issparse(F) else np.asarray(F)


def close(case: Case, K: Any, expected: Any) -> None:
    scale = max(1e-300, np.abs(np.asarray(expected)).max(initial=0.0))
    np.testing.assert_allclose(K, expected, rtol=case.rtol, atol=case.rtol * scale)


def by_name(case: Any) -> str:
    return case.name if isinstance(case, Case) else str(case)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_matrix_is_symmetric_and_as_definite_as_the_kernel_says(case):
    for seed, n in ((1, 2), (2, 7), (3, 12)):
        K = case.kernel(drawn(case, seed, n))
        np.testing.assert_array_equal(K, K.T)
        assert np.isfinite(K).all()
        if case.kernel.definiteness == "pd":
            assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(np.trace(K), 1e-9)
            diagonal = np.sqrt(np.maximum(np.diag(K), 0))
            most = np.multiply.outer(diagonal, diagonal) * (1 + 1e-9) + 1e-12 * max(1.0, np.trace(K))
            assert (np.abs(K) <= most).all()
        elif case.kernel.definiteness == "cpd":
            H = np.eye(n) - 1.0 / n
            assert np.linalg.eigvalsh(H @ K @ H).min() >= -1e-9 * max(np.abs(K).sum(), 1e-9)


@pytest.mark.parametrize("case", WITH_REFERENCE, ids=by_name)
def test_matrix_equals_the_definition(case):
    X = drawn(case)
    expected = np.array([[case.reference(X[i], X[j]) if i <= j else 0.0 for j in range(N)] for i in range(N)])
    close(case, np.triu(case.kernel(X)), expected)  # symmetric: the test above


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_parts_of_the_matrix_agree(case):
    X = drawn(case)
    K = case.kernel(X)
    close(case, case.kernel(part(X, 0, 3), part(X, 2, N)), K[0:3, 2:N])
    close(case, case.kernel.diag(X), np.diag(K))
    close(case, case.kernel.pair(X[1], X[2]), K[1, 2])
    np.testing.assert_array_equal(case.kernel(X, n_jobs=2), K)
    K32 = case.kernel(X, dtype=np.float32)
    assert K32.dtype == np.float32
    np.testing.assert_allclose(K32, K, rtol=1e-3, atol=1e-4 * max(1e-300, np.abs(K).max()))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_blocks_give_the_same_matrix(case, monkeypatch):
    X = drawn(case)
    K = case.kernel(X)
    monkeypatch.setattr(type(case.kernel), "_block_entries", 3 * N)
    close(case, case.kernel(X), K)
    close(case, case.kernel(part(X, 0, 5), X), K[:5])


@pytest.mark.parametrize("case", WITH_FEATURES, ids=by_name)
def test_features_give_the_matrix(case):
    X = drawn(case)
    K = case.kernel(X)
    F = case.kernel.features(X)
    close(case, dense(F @ F.T), K)
    F, G = case.kernel.features(part(X, 0, 3), part(X, 3, N))
    close(case, dense(F @ G.T), K[:3, 3:])


@pytest.mark.parametrize(("case", "name"), INVARIANCES, ids=by_name)
def test_value_does_not_change_with(case, name):
    random = np.random.default_rng(1)
    X = list(drawn(case, 1))
    changed = [case.invariances[name](random, x) for x in X]
    close(case, case.kernel(changed, X), case.kernel(X))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_copies_give_the_same_matrix(case):
    X = drawn(case)
    K = case.kernel(X)
    np.testing.assert_array_equal(clone(case.kernel)(X), K)
    np.testing.assert_array_equal(clone(case.kernel).set_params(**case.kernel.get_params(deep=False))(X), K)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(case.kernel))(X), K)
    assert repr(clone(case.kernel)) == repr(case.kernel)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_gram_transformer_keeps_the_training_objects(case):
    X = drawn(case)
    gram = Gram(case.kernel)
    close(case, gram.fit_transform(X), case.kernel(X))
    close(case, gram.transform(part(X, 2, 4)), case.kernel(part(X, 2, 4), X))


@pytest.mark.parametrize("case", ON_LANDMARKS, ids=by_name)
def test_approximation_with_all_landmarks_is_exact(case):
    X = drawn(case)
    F = case.kernel.approximate(N, random_state=0).fit(X).transform(X)
    K = case.kernel(X)
    np.testing.assert_allclose(F @ F.T, K, rtol=1e-5, atol=1e-5 * max(1e-300, np.abs(K).max()))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_one_string_is_no_collection(case):
    with pytest.raises(ValueError, match="X must be a collection"):
        case.kernel("abc")
