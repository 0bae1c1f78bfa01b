"""Bounds on numbers of cutting planes: their formulas, their growth, and refusals."""

from __future__ import annotations

import math

import pytest

from mercer.theory.cuts import cutting_planes_bound, relative_margin_planes_bound


def test_the_formulas():
    for C, R, tol, cost in ((1.0, 1.5, 1e-3, 1.0), (50.0, 0.3, 0.1, 7.0), (1e-6, 0.1, 0.5, 1.0)):
        wanted = math.ceil(math.log2(cost / (4 * R * R * C))) + math.ceil(16 * R * R * C / tol)
        assert cutting_planes_bound(C, R, tol, cost) == max(1, wanted)
    assert relative_margin_planes_bound(2.0, 3.0, 10, 0.5, 0.1) == 3600  # 2 C R² / ε_B²
    assert relative_margin_planes_bound(2.0, 3.0, 10_000, 0.5, 1.0) == 40_000  # 2 n / ε
    assert relative_margin_planes_bound(2.0, 3.0, 10, 0.5, 1.0) == 576  # 8 C R² / ε²
    assert cutting_planes_bound(1e9, 10.0, 1e9) == 1600 - 38  # the first term may be negative


@pytest.mark.parametrize("name", ["C", "radius", "tol", "max_cost"])
def test_bad_numbers_are_named(name):
    given = {"C": 1.0, "radius": 1.0, "tol": 0.1, "max_cost": 1.0}
    with pytest.raises(ValueError, match=name):
        cutting_planes_bound(**(given | {name: 0.0}))


@pytest.mark.parametrize("name", ["C", "radius", "n", "tol", "tol_B"])
def test_bad_numbers_of_the_relative_margin_are_named(name):
    given = {"C": 1.0, "radius": 1.0, "n": 5, "tol": 0.1, "tol_B": 0.1}
    with pytest.raises(ValueError, match=name):
        relative_margin_planes_bound(**(given | {name: -1}))
