"""The vector exponential, seen through chains of length one: p(c) = exp(θ_c) / Σ exp θ."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core
from mercer.structures import Chain, ChainScores


@pytest.fixture(params=_core.instruction_sets(), autouse=True)
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


def two_labels(x: np.ndarray):
    """Marginals of label 1 against label 0 with scores 0 and x ≤ 0: exp(x) / (1 + exp(x))."""
    zero = np.zeros(2, x.dtype)
    nodes = np.stack([np.zeros_like(x), x], axis=1)
    theta = ChainScores(np.ascontiguousarray(nodes), np.zeros((2, 2), x.dtype), zero, zero, np.arange(len(x) + 1))
    return Chain(2, 1).marginals(theta)


@pytest.mark.parametrize(("dtype", "lowest", "tolerance"), [(np.float64, -700.0, 2e-15), (np.float32, -86.0, 5e-7)])
def test_exp_is_accurate_to_a_few_units_in_the_last_place(dtype, lowest, tolerance):
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(lowest, 0, 4001), -rng.exponential(1.0, 2000), [-1e-30, -1e-8, 0.0]]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    found = two_labels(x).nodes[:, 1].astype(np.longdouble)
    np.testing.assert_allclose((found / (exact / (1 + exact))).astype(float), 1.0, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_of_what_is_forbidden_is_exactly_zero(dtype):
    found = two_labels(np.array([-np.inf] * 5, dtype))
    assert (found.nodes[:, 1] == 0).all()
    assert (found.nodes[:, 0] == 1).all()
    assert (found.log_partition == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_beyond_the_range_goes_to_zero_and_never_wraps(dtype):
    x = -np.logspace(1, 37, 500).astype(dtype)
    found = two_labels(x).nodes[:, 1]
    assert (found >= 0).all()
    assert (np.diff(found) <= 0).all()
    assert found[-1] == 0


def test_log_partition_of_many_equal_scores_is_exact():
    for C in (1, 3, 8, 31):
        theta = ChainScores(np.zeros((1, C)), np.zeros((C, C)), np.zeros(C), np.zeros(C), np.array([0, 1]))
        assert np.isclose(Chain(C, 1).log_partition(theta)[0], np.log(C), rtol=1e-15)
