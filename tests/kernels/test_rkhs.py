"""Geometry in feature space: functions, distances, bases, low rank, alignment, definiteness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import KernelCenterer

from mercer.kernels import (
    Intersection,
    Jaccard,
    Kernel,
    Linear,
    RKHSFunction,
    SetMean,
    alignment,
    distance,
    gram_schmidt,
    is_conditionally_positive_definite,
    is_positive_definite,
    is_strictly_positive_definite,
    pivoted_cholesky,
)

pd = pytest.importorskip("pandas")

CUBIC = (Linear() + 1.0) ** 3


class MinusDistance(Kernel):
    """−‖x − z‖^q: conditionally positive definite for 0 < q ≤ 2."""

    def __init__(self, q: float = 2.0) -> None:
        self.q = q

    @property
    def definiteness(self):
        return "cpd"

    def _prepare(self, X):
        return np.asarray(X, float)

    def _gram(self, A, B, work):
        B = A if B is None else B
        return -(np.linalg.norm(A[:, None] - B[None], axis=2) ** self.q)


class Counted(Linear):
    """The linear kernel, which counts the entries of matrices that it computes."""

    entries = 0

    def _gram(self, A, B, work):
        Counted.entries += len(A) * len(A if B is None else B)
        return super()._gram(A, B, work)


def drawn(seed: int = 0, n: int = 6, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def expansions(kernel: Kernel, points: Any, seed: int = 0, n: int = 4) -> list[RKHSFunction]:
    random = np.random.default_rng(seed)
    return [RKHSFunction(kernel, points, random.normal(size=len(points))) for _ in range(n)]


# ------------------------------------------------------------------------------------------------ functions

OBJECTS = {
    "vectors": (CUBIC, drawn()),
    "sets": (Jaccard(), [{"a", "b"}, {"b"}, set(), {"c", "a"}, {"d"}]),
    "bags": (SetMean(CUBIC), [drawn(i, i + 1) for i in range(4)]),
}


@pytest.mark.parametrize("name", OBJECTS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_kernel_reproduces_the_values_of_functions(name, seed):
    kernel, points = OBJECTS[name]
    f = expansions(kernel, points, seed, 1)[0]
    values = f(points)
    for i in range(len(points)):
        at = RKHSFunction(kernel, points[i : i + 1], [1.0])
        assert at.inner(f) == pytest.approx(values[i], rel=1e-9, abs=1e-9)
        assert values[i] ** 2 <= kernel.diag(points[i : i + 1])[0] * f.inner(f) * (1 + 1e-9) + 1e-9  # eq. 1.19
    for i, j in ((0, 1), (2, 3)):
        one, other = (RKHSFunction(kernel, points[m : m + 1], [1.0]) for m in (i, j))
        assert one.inner(other) == pytest.approx(kernel.pair(points[i], points[j]))


@pytest.mark.parametrize("name", OBJECTS)
def test_norm_is_the_quadratic_form_of_the_gram_matrix(name):
    kernel, points = OBJECTS[name]
    for f in expansions(kernel, points):
        assert f.norm() == pytest.approx(np.sqrt(f.coef @ kernel(points) @ f.coef))


def test_functions_are_a_vector_space():
    X, Z, test = drawn(1), drawn(2, 4), drawn(3, 5)
    f, g = RKHSFunction(CUBIC, X, np.arange(6.0)), RKHSFunction(CUBIC, Z, np.ones(4))
    np.testing.assert_allclose((f + g)(test), f(test) + g(test))
    np.testing.assert_allclose((f - 2.0 * g)(test), f(test) - 2 * g(test))
    np.testing.assert_allclose((-f / 4)(test), -f(test) / 4)
    assert len(f + f) == len(f)  # the same points are not listed twice
    assert len(f + g) == len(f) + len(g)
    assert (f + g).inner(f) == pytest.approx(f.inner(f) + g.inner(f))
    assert (f - f).norm() == 0.0
    assert repr(g) == "RKHSFunction((Linear() + Constant()) ** 3, 4 points)"


def test_linear_functions_are_vectors():
    X, Z = drawn(1), drawn(2, 4)
    f, g = RKHSFunction(Linear(), X, np.arange(6.0)), RKHSFunction(Linear(), Z, np.ones(4))
    w, v = np.arange(6.0) @ X, np.ones(4) @ Z
    assert f.inner(g) == pytest.approx(w @ v)
    np.testing.assert_allclose(f.project(g)(np.eye(3)), (w @ v) / (v @ v) * v)
    np.testing.assert_allclose(f.deflate(g)(np.eye(3)), w - (w @ v) / (v @ v) * v)


@pytest.mark.parametrize("name", OBJECTS)
def test_projection_is_idempotent_and_the_rest_orthogonal(name):
    kernel, points = OBJECTS[name]
    f, g, h, _ = expansions(kernel, points)
    for onto in (g, [g, h], [g, h, g]):
        projected, rest = f.project(onto), f.deflate(onto)
        scale = f.norm()
        assert (projected.project(onto) - projected).norm() <= 1e-6 * scale
        for each in onto if isinstance(onto, list) else [onto]:
            assert abs(rest.inner(each)) <= 1e-8 * scale * each.norm()
        assert projected.norm() ** 2 + rest.norm() ** 2 == pytest.approx(f.norm() ** 2)


def test_projection_on_nothing_is_zero_and_on_zero_refused():
    f = RKHSFunction(Linear(), [[1.0]], [2.0])
    assert f.project([]).norm() == 0.0
    with pytest.raises(ValueError, match="projected onto is 0"):
        f.project(0.0 * f)


@pytest.mark.parametrize("name", OBJECTS)
def test_gram_schmidt_gives_an_orthonormal_basis_of_the_span(name):
    kernel, points = OBJECTS[name]
    functions = expansions(kernel, points)
    basis, dropped = gram_schmidt([*functions[:2], functions[0] - 3.0 * functions[1], *functions[2:]])
    assert dropped == [2]
    G = np.array([[e.inner(h) for h in basis] for e in basis])
    np.testing.assert_allclose(G, np.eye(4), atol=1e-9)
    for i, f in enumerate(functions):
        assert f.deflate(basis).norm() <= 1e-6 * f.norm()
        np.testing.assert_allclose([e.inner(f) for e in basis[i + 1 :]], 0.0, atol=1e-7 * f.norm())


def test_gram_schmidt_of_nearly_parallel_functions():
    X = np.eye(4)
    random = np.random.default_rng(0)
    first = random.normal(size=4)
    functions = [RKHSFunction(Linear(), X, first + 1e-5 * random.normal(size=4)) for _ in range(4)]
    basis, dropped = gram_schmidt(functions)
    assert dropped == []
    C = np.array([e.coef for e in basis])
    np.testing.assert_allclose(C @ C.T, np.eye(4), atol=1e-4)
    assert gram_schmidt([]) == ([], [])
    assert gram_schmidt([0.0 * functions[0]]) == ([], [0])


def test_functions_on_tables_sparse_rows_and_lists():
    frame = pd.DataFrame({"text": ["a b", "c"], "x": [1.0, 2.0]})
    kernel = Linear().on("x")
    f = RKHSFunction(kernel, frame, [1.0, -1.0]) + RKHSFunction(kernel, frame.iloc[:1], [0.5])
    np.testing.assert_allclose(f(frame), [-0.5, -1.0])
    columns = {"x": [1.0, 2.0]}
    g = RKHSFunction(kernel, columns, [1.0, -1.0]) + RKHSFunction(kernel, {"x": [3.0]}, [1.0])
    np.testing.assert_allclose(g(columns), [2.0, 4.0])
    generator = RKHSFunction(Intersection(), ({word} for word in "ab"), [1.0, 2.0])
    np.testing.assert_allclose(generator([{"b"}, {"a", "b"}]), [2.0, 3.0])


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: RKHSFunction("rbf", [[1.0]], [1.0]), "kernel must be a Kernel"),
        (lambda: RKHSFunction(MinusDistance(), [[1.0]], [1.0]), "only conditionally positive definite"),
        (lambda: RKHSFunction(Linear(), [[1.0]], [1.0, 2.0]), "one for each of the 1 points"),
        (lambda: RKHSFunction(Linear(), [[1.0]], [np.nan]), "finite numbers"),
        (lambda: RKHSFunction(Linear(), [[1.0]], ["a"]), "coef must be 1 numbers"),
        (lambda: RKHSFunction(Linear(), [[1.0]], [1.0]) * np.inf, "must be finite"),
        (
            lambda: RKHSFunction(Linear(), [[1.0]], [1.0]) + RKHSFunction(CUBIC, [[1.0]], [1.0]),
            "functions of different kernels",
        ),
        (
            lambda: RKHSFunction(Linear().centered([[1.0]]), [[1.0]], [1.0]).inner(
                RKHSFunction(Linear().centered([[2.0]]), [[1.0]], [1.0])
            ),
            "functions of different kernels",
        ),
        (lambda: RKHSFunction(Linear(), [[1.0]], [1.0]).inner(3), "expected an RKHSFunction"),
        (lambda: gram_schmidt([RKHSFunction(Linear(), [[1.0]], [1.0])], tol=-1), "tol must be"),
    ],
)
def test_functions_that_cannot_be_are_refused(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


def test_functions_of_equal_kernels_belong_together():
    f = RKHSFunction((Linear() + 1.0) ** 3, [[1.0]], [1.0])
    g = RKHSFunction((Linear() + 1.0) ** 3, [[2.0]], [1.0])
    assert f.inner(g) == pytest.approx(27.0)
    with pytest.raises(TypeError):
        f + 1.0


def test_functions_without_points_are_zero():
    nothing = RKHSFunction(Linear(), np.zeros((0, 2)), [])
    np.testing.assert_array_equal(nothing(np.ones((3, 2))), np.zeros(3))
    assert nothing.norm() == 0.0


# ------------------------------------------------------------------------------------ translation and centring (B1, B2)


def test_translation_moves_the_features():
    X, P, a = drawn(1), drawn(2, 3), np.array([0.5, -1.0, 2.0])
    shift = RKHSFunction(CUBIC, P, a)
    K = CUBIC.translated(P, a)(X)
    for i in range(3):
        for j in range(3):
            f, g = (RKHSFunction(CUBIC, X[m : m + 1], [1.0]) + shift for m in (i, j))
            assert K[i, j] == pytest.approx(f.inner(g))


def test_centred_rows_sum_to_zero_in_training_and_test():
    X, Z = drawn(1), drawn(2, 4)
    np.testing.assert_allclose(CUBIC.centered(X)(X).sum(axis=1), 0.0, atol=1e-9)
    centerer = KernelCenterer().fit(CUBIC(X))
    np.testing.assert_allclose(CUBIC.centered(X)(Z, X), centerer.transform(CUBIC(Z, X)))
    np.testing.assert_allclose(Linear().centered(X)(Z, X), (Z - X.mean(axis=0)) @ (X - X.mean(axis=0)).T)


# ------------------------------------------------------------------------------------------------ distances (B3)


def test_distance_of_the_linear_kernel_is_euclidean():
    X, Z = drawn(1), drawn(2, 4)
    np.testing.assert_allclose(distance(Linear(), X, Z), euclidean_distances(X, Z))
    D = distance(Linear(), X)
    np.testing.assert_allclose(D, euclidean_distances(X), atol=1e-7)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(np.diag(D), 0.0)


def test_distance_is_the_norm_of_the_difference():
    kernel, points = OBJECTS["sets"]
    D = distance(kernel, points)
    f, g = (RKHSFunction(kernel, points[i : i + 1], [1.0]) for i in (0, 3))
    assert D[0, 3] == pytest.approx((f - g).norm())


def test_distance_of_a_conditionally_positive_definite_kernel():
    X = drawn(1)
    np.testing.assert_allclose(distance(MinusDistance(2.0), X), np.sqrt(2) * euclidean_distances(X), atol=1e-7)


def test_rounding_gives_no_nan():
    X = np.full((3, 2), 1e8) + 1e-8 * drawn(1, 3, 2)
    assert np.isfinite(distance(Linear(), X, X.copy())).all()


def test_nearest_neighbours_of_structured_objects():
    words = {"animal": ["dog cat", "cat dog cow", "cow", "cat"], "plant": ["oak elm", "elm", "oak fir elm", "fir"]}
    X = [set(text.split()) for texts in words.values() for text in texts]
    y = [name for name, texts in words.items() for _ in texts]
    model = KNeighborsClassifier(1, metric="precomputed").fit(distance(Jaccard(), X), y)
    assert model.predict(distance(Jaccard(), [{"cow", "dog"}, {"fir"}], X)).tolist() == ["animal", "plant"]


def test_distances_of_indefinite_kernels_are_refused():
    class Odd(MinusDistance):
        @property
        def definiteness(self):
            return "indefinite"

    with pytest.raises(ValueError, match="distance needs a positive definite kernel"):
        distance(Odd(), [[1.0]])


# ------------------------------------------------------------------------------------------------ low rank


@pytest.mark.parametrize("name", OBJECTS)
def test_cholesky_of_full_rank_is_the_gram_matrix(name):
    kernel, points = OBJECTS[name]
    L, pivots = pivoted_cholesky(kernel, points, tol=0.0)
    K = kernel(points)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-9 * np.abs(K).max())
    np.testing.assert_allclose(np.triu(L[pivots], 1), 0.0)
    assert len(set(pivots.tolist())) == len(pivots)


def test_what_remains_is_positive_definite_and_its_trace_falls():
    X = drawn(4, 30, 5)
    K = CUBIC(X)
    traces = []
    for rank in (1, 3, 8, 20):
        L, pivots = pivoted_cholesky(CUBIC, X, rank)
        rest = K - L @ L.T
        assert L.shape == (30, rank)
        assert np.linalg.eigvalsh(rest).min() > -1e-9 * np.trace(K)
        np.testing.assert_allclose(rest[pivots], 0.0, atol=1e-9 * K.max())
        traces.append(np.trace(rest))
    assert (np.diff(traces) < 0).all()


def test_pivots_have_the_largest_remaining_diagonal():
    X = drawn(5, 20, 4)
    K = CUBIC(X)
    L, pivots = pivoted_cholesky(CUBIC, X, 6)
    for r, pivot in enumerate(pivots):
        left = np.diag(K) - (L[:, :r] ** 2).sum(axis=1)
        assert left[pivot] == pytest.approx(left.max())


def test_tolerance_stops_and_bounds_what_remains():
    X = drawn(6, 60, 2)
    K = CUBIC(X)
    for tol in (1e-1, 1e-3, 1e-6):
        L, _ = pivoted_cholesky(CUBIC, X, tol=tol)
        assert np.trace(K - L @ L.T) <= tol * np.trace(K) * (1 + 1e-6)
    L, _ = pivoted_cholesky(CUBIC, X)
    assert L.shape[1] == 10  # monomials of degree 0 to 3 in two variables


def test_cholesky_computes_few_columns():
    X = drawn(7, 500, 4)
    Counted.entries = 0
    L, _ = pivoted_cholesky(Counted(), X)
    assert L.shape == (500, 4)
    assert Counted.entries <= 6 * 500


def test_cholesky_is_gram_schmidt_on_the_pivots():
    X = drawn(8, 12, 3)
    L, pivots = pivoted_cholesky(CUBIC, X, 5)
    basis, _ = gram_schmidt([RKHSFunction(CUBIC, X[p : p + 1], [1.0]) for p in pivots])
    np.testing.assert_allclose(np.array([e(X) for e in basis]).T, L, atol=1e-8)


def test_many_columns_grow_the_factor():
    X = np.eye(150)
    L, pivots = pivoted_cholesky(Linear(), X)
    assert L.shape == (150, 150)
    np.testing.assert_array_equal(L @ L.T, np.eye(150))
    assert sorted(pivots.tolist()) == list(range(150))


def test_cholesky_of_zeros_and_of_nothing_has_no_columns():
    assert pivoted_cholesky(Linear(), np.zeros((4, 2)))[0].shape == (4, 0)
    assert pivoted_cholesky(Intersection(), [])[0].shape == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": MinusDistance()}, "only conditionally"),
        ({"rank": 0}, "rank must be an integer"),
        ({"tol": np.nan}, "tol must be"),
    ],
)
def test_bad_arguments_of_cholesky_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        pivoted_cholesky(**{"kernel": Linear(), "X": np.eye(2), **arguments})


# ------------------------------------------------------------------------------------------------ alignment (A4)


def test_quadratic_form_of_scaled_labels_is_the_squared_distance_of_class_means():
    X, y = drawn(1, 9), np.array([1, 1, -1, 1, -1, -1, 1, 1, 1])
    scaled = y / np.array([np.sum(y == label) for label in y])
    for kernel in (Linear(), CUBIC):
        means = [RKHSFunction(kernel, X, (y == label) / np.sum(y == label)) for label in (1, -1)]
        assert scaled @ kernel(X) @ scaled == pytest.approx((means[0] - means[1]).norm() ** 2)
    difference = X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)
    assert scaled @ Linear()(X) @ scaled == pytest.approx(difference @ difference)


def test_alignment_of_balanced_labels_is_the_distance_of_means_up_to_scale():
    X, y = drawn(2, 8), np.repeat([1, -1], 4)
    K = CUBIC(X)
    scaled = y / 4
    assert alignment(K, y) == pytest.approx(scaled @ K @ scaled * 16 / (8 * np.linalg.norm(K)))


def test_alignment_of_labels_with_themselves_is_one():
    y = np.array([1, -1, -1, 1, 1])
    assert alignment(np.outer(y, y), y) == 1.0
    assert alignment(np.outer(y, y), ["x" if label > 0 else "w" for label in y]) == 1.0
    assert alignment(3.0 * np.outer(y, y), np.outer(y, y)) == pytest.approx(1.0)
    classes = np.array([0, 1, 2, 2, 1])
    same = (classes[:, None] == classes).astype(float)
    assert alignment(same, classes) == pytest.approx(1.0)
    target = np.array([0.3, -1.2, 2.5, 0.1, 0.0])
    assert alignment(np.outer(target, target), target) == pytest.approx(1.0)


def test_alignment_is_the_cosine_of_matrices():
    K, L = CUBIC(drawn(1)), Linear()(drawn(2))
    expected = np.sum(K * L) / np.sqrt(np.sum(K**2) * np.sum(L**2))
    assert alignment(K, L) == pytest.approx(expected) == pytest.approx(alignment(L, K))


def test_centred_alignment_ignores_constants():
    K, y = CUBIC(drawn(1)), np.array([1, -1, 1, -1, 1, 1])
    assert alignment(K + 100.0, y, centered=True) == pytest.approx(alignment(K, y, centered=True))
    assert alignment(K + 100.0, y) != pytest.approx(alignment(K, y))
    H = np.eye(6) - 1 / 6
    assert alignment(K, y, centered=True) == pytest.approx(alignment(H @ K @ H, H @ np.outer(y, y) @ H))


@pytest.mark.parametrize(
    ("K", "target", "message"),
    [
        (np.eye(2), [1, -1, 1], "target must hold 2 labels"),
        (np.eye(2), np.eye(3), "target must be a matrix of 2 rows"),
        (np.eye(2), [1.0, np.nan], "target must not hold NaN"),
        (np.eye(2), np.array(["a", 1], object), "labels of one kind"),
        (np.zeros((2, 2)), [1, -1], "a matrix is 0"),
        (np.ones((2, 3)), [1, -1], "K must be a square matrix"),
    ],
)
def test_alignment_of_what_does_not_fit_is_refused(K, target, message):
    with pytest.raises(ValueError, match=message):
        alignment(K, target)


# ------------------------------------------------------------------------------------------------ definiteness (A5, A8)

X20 = drawn(9, 20, 2)
MATRICES = {
    # matrix, positive definite, strictly so, conditionally so
    "identity": (np.eye(4), True, True, True),
    "gram of full rank": (Linear()(drawn(1, 3, 5)), True, True, True),
    "gram of low rank": (Linear()(drawn(1, 9, 2)), True, False, True),
    "constant": (np.ones((3, 3)), True, False, True),
    "zero": (np.zeros((3, 3)), True, False, True),
    "minus squared distance": (MinusDistance(2.0)(X20), False, False, True),
    "minus distance": (MinusDistance(1.0)(X20), False, False, True),
    "minus cubed distance": (MinusDistance(3.0)(X20), False, False, False),
    "minus squared distance moved": (MinusDistance(2.0)(X20) - 50.0, False, False, True),
    "minus identity": (-np.eye(3), False, False, False),
    "swap": (np.array([[0.0, 1.0], [1.0, 0.0]]), False, False, False),
    "sigmoid": (np.tanh(1.0 - Linear()(X20)), False, False, False),
    "empty": (np.zeros((0, 0)), True, True, True),
    "tiny": (1e-200 * np.eye(3), True, True, True),
    "large indefinite": (1e200 * np.diag([1.0, -1e-3]), False, False, True),
}


@pytest.mark.parametrize("name", MATRICES)
def test_definiteness_of_known_matrices(name):
    K, pd_, strict, cpd = MATRICES[name]
    assert is_positive_definite(K) is pd_
    assert is_strictly_positive_definite(K) is strict
    assert is_conditionally_positive_definite(K) is cpd


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), rank=st.integers(1, 12))
def test_definiteness_follows_from_the_spectrum(seed, n, rank):
    random = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(random.normal(size=(n, n)))
    values = np.where(np.arange(n) < rank, random.uniform(0.5, 2.0, n), 0.0)
    K = (Q * values) @ Q.T
    K = (K + K.T) / 2
    assert is_positive_definite(K)
    assert is_strictly_positive_definite(K) is (rank >= n)
    values[0] = -0.1
    K = (Q * values) @ Q.T
    assert not is_positive_definite((K + K.T) / 2)


@pytest.mark.parametrize("kernel", [Linear(), CUBIC, Linear().normalized()], ids=repr)
def test_kernels_are_judged_on_objects(kernel):
    assert is_positive_definite(kernel, X20)
    assert is_conditionally_positive_definite(kernel, X20)
    assert not is_strictly_positive_definite(kernel, np.vstack([X20[:2], X20[:1]]))
    assert is_conditionally_positive_definite(MinusDistance(), X20)
    assert not is_positive_definite(MinusDistance(), X20)


TESTERS = [is_positive_definite, is_strictly_positive_definite, is_conditionally_positive_definite]


@pytest.mark.parametrize("tester", TESTERS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3)),), "square matrix, got shape"),
        ((np.ones(3),), "square matrix, got shape"),
        (([[1.0, 2.0], [3.0, 1.0]],), r"symmetric: entry \(0, 1\) is 2.0, entry \(1, 0\) is 3.0"),
        (([[1.0, np.nan], [np.nan, 1.0]],), r"finite, entry \(0, 1\) is nan"),
        (([["a"]],), "square matrix of numbers"),
        ((Linear(),), "X must be given with a kernel"),
        ((np.eye(2), [[1.0]]), "X is given with a kernel only"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(tester, arguments, message):
    with pytest.raises(ValueError, match=message):
        tester(*arguments)


def test_sparse_matrices_are_judged():
    assert is_positive_definite(sp.eye(3))
