"""Kernels of vectors and histograms, dense and sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernels.cases import Case
from mercer.kernels import (
    ANOVA,
    BSpline,
    ChiSquared,
    ExponentialDot,
    Gaussian,
    HistogramIntersection,
    Laplacian,
    Linear,
    LocalityImproved,
    Matern,
    NegativeDistance,
    Polynomial,
    Pyramid,
    position_weights,
)
from reference.vector_kernels import (
    absolute_distance,
    anova,
    b_spline,
    chi_squared,
    dot,
    intersection,
    locality,
    matern,
    pyramid,
    squared_distance,
)

WEIGHTS = position_weights(6, center=2, width=1.5)
WINDOW = np.array([0.5, 1.0, 0.25])


def vectors(random: np.random.Generator, n: int) -> np.ndarray:
    """With a zero, with equal ones, far from the origin."""
    X = random.normal(size=(n, 6))
    X[0] = 0.0
    X[-1] = X[n // 2]
    return X


def far(random: np.random.Generator, n: int) -> np.ndarray:
    return vectors(random, n) * 0.1 + 1000.0


def wide(random: np.random.Generator, n: int) -> np.ndarray:
    """More coordinates than one stretch of a compiled sum."""
    return random.normal(size=(n, 600)) * 0.05


def histograms(random: np.random.Generator, n: int) -> np.ndarray:
    X = random.gamma(0.5, size=(n, 6)) * (random.random((n, 6)) < 0.7)
    X[0] = 0.0
    X[-1] = X[n // 2]
    return X


def images(random: np.random.Generator, n: int) -> np.ndarray:
    return random.normal(size=(n, 20))


def plain(x: Any) -> np.ndarray:
    return np.asarray(x.todense()).ravel() if sp.issparse(x) else np.asarray(x)


def sparse(objects: Any) -> Any:
    def rows(random: np.random.Generator, n: int) -> Any:
        X = objects(random, n)
        return sp.csr_matrix(X * (random.random(X.shape) < 0.5)) if objects is not histograms else sp.csr_matrix(X)

    return rows


def of_distance(function: Any) -> Any:
    return lambda x, z: function(math.sqrt(squared_distance(x, z)))


def splines(p: int, width: float) -> Any:
    return lambda x, z: math.prod(b_spline(2 * p + 1, (a - b) / width) for a, b in zip(x, z, strict=True))


DENSE = [
    Case("linear", Linear(), vectors, dot),
    Case("linear, wide", Linear(), wide, dot),
    Case("polynomial, homogeneous", Polynomial(3), vectors, lambda x, z: dot(x, z) ** 3),
    Case("polynomial", Polynomial(2, gamma=0.5, coef0=1.5), vectors, lambda x, z: (0.5 * dot(x, z) + 1.5) ** 2),
    Case("polynomial of degree 1", Polynomial(1, gamma=2.0), vectors, lambda x, z: 2.0 * dot(x, z)),
    Case("exponential", ExponentialDot(0.3), vectors, lambda x, z: math.exp(0.3 * dot(x, z))),
    Case("gaussian", Gaussian(0.2), vectors, lambda x, z: math.exp(-0.2 * squared_distance(x, z))),
    Case("gaussian, wide", Gaussian(0.7), wide, lambda x, z: math.exp(-0.7 * squared_distance(x, z))),
    Case("gaussian, narrow", Gaussian(500.0), vectors, lambda x, z: math.exp(-500.0 * squared_distance(x, z))),
    Case("gaussian, far", Gaussian(0.5), far, lambda x, z: math.exp(-0.5 * squared_distance(x, z)), rtol=1e-7),
    Case("gaussian of width 2", Gaussian.from_width(2.0), vectors, lambda x, z: math.exp(-squared_distance(x, z) / 8)),
    Case("laplacian", Laplacian(0.4), vectors, lambda x, z: math.exp(-0.4 * absolute_distance(x, z))),
    Case("laplacian, wide", Laplacian(0.05), wide, lambda x, z: math.exp(-0.05 * absolute_distance(x, z))),
    *(
        Case(f"matern {nu}", Matern(1.5, nu=nu), vectors, lambda x, z, nu=nu: matern(x, z, 1.5, nu))
        for nu in (0.5, 1.5, 2.5, 0.8, 4.0)
    ),
    Case("matern inf", Matern(1.5, nu=np.inf), vectors, lambda x, z: math.exp(-squared_distance(x, z) / (2 * 1.5**2))),
    *(
        Case(f"negative distance {q}", NegativeDistance(q), vectors, of_distance(lambda r, q=q: -(r**q)))
        for q in (0.5, 1.0, 2.0)
    ),
    *(Case(f"spline {p}", BSpline(p, width=1.3), vectors, splines(p, 1.3)) for p in (0, 1, 2, 8)),
    Case("anova 1", ANOVA(1), vectors, dot),
    Case("anova 3", ANOVA(3), vectors, lambda x, z: anova(x, z, 3, None)),
    Case("anova 6", ANOVA(6), vectors, lambda x, z: anova(x, z, 6, None)),
    Case("anova of gaussians", ANOVA(2, gamma=0.7), vectors, lambda x, z: anova(x, z, 2, 0.7)),
    Case("intersection", HistogramIntersection(), histograms, intersection),
    Case("chi squared", ChiSquared(0.5), histograms, lambda x, z: chi_squared(x, z, 0.5)),
    Case("chi squared, additive", ChiSquared(None), histograms, lambda x, z: chi_squared(x, z, None)),
    Case(
        "weighted dot", LocalityImproved(WEIGHTS), vectors, lambda x, z: locality(x, z, WEIGHTS, [1.0], 1, 1, 1)
    ),
    Case(
        "locality", LocalityImproved(WEIGHTS, window=WINDOW, p1=2, p2=3), vectors,
        lambda x, z: locality(x, z, WEIGHTS, WINDOW, 2, 3, 1),
    ),
    Case(
        "locality, linear in windows", LocalityImproved(WEIGHTS, window=WINDOW, p2=2), vectors,
        lambda x, z: locality(x, z, WEIGHTS, WINDOW, 1, 2, 1),
    ),
    Case(
        "locality with channels", LocalityImproved(window=3, p1=3, channels=2), vectors,
        lambda x, z: locality(x, z, np.ones(3), np.ones(3), 3, 1, 2),
    ),
    Case("pyramid", Pyramid((4, 5), patch=3), images, lambda x, z: pyramid(x, z, (4, 5), (3, 3), 2, 1, 1)),
    Case(
        "pyramid of colours", Pyramid((2, 5, 2), patch=(1, 2), p1=3, p2=2, stride=2), images,
        lambda x, z: pyramid(x, z, (2, 5, 2), (1, 2), 3, 2, 2),
    ),
]  # fmt: skip

ON_SPARSE = {
    "linear", "polynomial", "exponential", "gaussian", "laplacian", "matern 0.5", "matern 1.5", "matern 2.5",
    "matern 4.0", "negative distance 1.0", "intersection", "chi squared", "chi squared, additive",
}  # fmt: skip

SPARSE = [
    Case(
        f"{case.name}, sparse",
        case.kernel,
        sparse(case.objects),
        lambda x, z, case=case: case.reference(plain(x), plain(z)),
        # the distance of sparse vectors comes from inner products, and √ takes half of the digits of a small one
        rtol=1e-6 if "matern" in case.name or "distance" in case.name else 1e-9,
    )
    for case in DENSE
    if case.name in ON_SPARSE
]

CASES = DENSE + SPARSE
