"""Kernels of sets: keys of elements, counts, bags, subspaces; what is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from mercer.kernels import (
    Convolution,
    Intersection,
    Jaccard,
    Linear,
    SetMean,
    Subspace,
    distance,
)
from mercer.kernels import sets as module
from mercer.kernels.base import Kernel, Work
from mercer.kernels.sets import element_key, element_keys
from reference.forked import popen
from reference.sets import cosines, intersection

TEXTS = ["the cat and the dog", "a dog a dog", "the the the", "", "cat cat dog"]
KINDS = ("principal_angles", "projection", "binet_cauchy")


# ------------------------------------------------------------------------------------------------ elements

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.binary(max_size=4),
)
elements = st.recursive(leaves, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(elements, max_size=8), st.lists(elements, max_size=8))
def test_keys_are_equal_where_python_says_that_elements_are(first, second):
    assert Intersection().pair(first, second) == len(set(first) & set(second))


def test_numpy_numbers_and_strings_are_those_of_python():
    x = [np.int32(3), np.float64(0.25), np.str_("a"), np.bool_(True), np.uint64(2**64 - 1)]
    assert Intersection().pair(x, [3, 0.25, "a", 1, 2**64 - 1]) == 5
    assert Intersection().pair(np.array([1, 2, 3]), [2, 3, 4]) == 2
    assert Intersection().pair(np.array(["a", "b"]), ["b"]) == 1


def test_keys_of_many_elements_are_those_of_each():
    for some in (["a", "", "ü", "a"], [1, -5, 2**63 - 1, -(2**63)], [2**63, 1], ["a", 1, None], ["\ud800", "a"], []):
        assert element_keys(some).tolist() == [element_key(element) for element in some]


def test_keys_do_not_depend_on_the_seed_of_pythons_hash():
    code = "from mercer.kernels.sets import element_key; print(element_key(('ab', frozenset('xyz'), 1.5, None)))"
    out, _ = popen(code, text=True).communicate()
    assert int(out) == element_key(("ab", frozenset("xyz"), 1.5, None))


def test_keys_never_change():
    pinned = {
        "": 14883291583744800952,
        "word": 7650304179332913144,
        7: 1247057940280983000,
        0.5: 6707227725102682934,
        (1, "a"): 11011288113335313071,
    }
    assert {element: element_key(element) for element in pinned} == pinned


# ------------------------------------------------------------------------------------------------ counts


def test_products_of_counts_are_the_inner_products_of_bags_of_words():
    words = [text.split() for text in TEXTS]
    counts = CountVectorizer(token_pattern=r"\S+").fit_transform(TEXTS)
    np.testing.assert_array_equal(Intersection("product")(words), (counts @ counts.T).toarray())
    binary = (counts > 0).astype(float)
    np.testing.assert_array_equal(Intersection()(words), (binary @ binary.T).toarray())
    for name in module.COUNTS:
        np.testing.assert_allclose(Intersection(name)(counts), Intersection(name)(words))
        np.testing.assert_allclose(Jaccard(name)(counts), Jaccard(name)(words))


def test_a_convolution_of_equal_elements_gives_products_of_counts():
    class Same(Kernel):
        def _prepare(self, X):
            return np.array(X)

        def _gram(self, A, B, work):
            return (A[:, None] == (A if B is None else B)[None, :]).astype(float)

    words = [text.split() for text in TEXTS]
    np.testing.assert_array_equal(Convolution(list, Same())(words), Intersection("product")(words))


def test_repeats_of_a_list_and_counts_of_a_mapping_are_the_same():
    words = [text.split() for text in TEXTS]
    for counts in module.COUNTS:
        for kernel in (Intersection(counts), Jaccard(counts)):
            np.testing.assert_array_equal(kernel(words), kernel([Counter(text) for text in words]))


def test_an_element_with_count_zero_is_not_in_the_set():
    assert Intersection().pair({"a": 0, "b": 2}, {"a": 1, "b": 1}) == 1
    assert Jaccard().pair({"a": 0}, set()) == 1


@pytest.mark.parametrize("counts", module.COUNTS)
def test_empty_sets_are_like_each_other_and_nothing_else(counts):
    K = Jaccard(counts)([[], ["a"], [], ["a", "b"]])
    np.testing.assert_array_equal(K[0], [1, 0, 1, 0])
    np.testing.assert_array_equal(Intersection(counts)([[], ["a"]])[0], [0, 0])
    np.testing.assert_array_equal(Intersection(counts)([[], []]), np.zeros((2, 2)))
    assert Intersection(counts)([]).shape == (0, 0)


def test_distance_of_sets_counts_the_elements_of_one_only():
    A, B = {1, 2, 3}, {3, 4}
    assert distance(Intersection(), [A], [B])[0, 0] ** 2 == pytest.approx(len(A ^ B))


def test_jaccard_of_weights_is_scale_free():
    x, z = {"a": 0.3, "b": 1.7}, {"a": 0.9, "c": 0.2}
    for counts in ("product", "min"):
        scaled = Jaccard(counts).pair({e: 1e6 * w for e, w in x.items()}, {e: 1e6 * w for e, w in z.items()})
        assert scaled == pytest.approx(Jaccard(counts).pair(x, z))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["abc"], "set 0 is one string"),
        ([{"a"}, 5], "set 1 must be a set"),
        ([["a"], [["b"]]], "set 1: .*unhashable"),
        ([{"a"}, {object}], "set 1: an element must be"),
        ([{"a"}, [float("nan")]], "set 1: an element must be"),
        ([{"a": 1}, {"a": -1}], "set 1: counts must be"),
        ([{"a": float("inf")}], "set 0: counts must be"),
        ([{"a": "many"}], "set 0: the values of a mapping"),
        ([np.ones((2, 2))], "set 0 must be a list of elements"),
    ],
)
def test_what_is_no_set_is_named(sets, message):
    with pytest.raises(ValueError, match=message):
        Intersection()(sets)


def test_unknown_ways_to_count_are_refused():
    with pytest.raises(ValueError, match="counts must be one of"):
        Jaccard("max")([["a"]])


# ------------------------------------------------------------------------------------------------ bags


def test_mean_of_a_linear_kernel_is_the_inner_product_of_means():
    random = np.random.default_rng(0)
    bags = [random.normal(size=(n, 3)) for n in (1, 4, 7)]
    means = np.array([bag.mean(axis=0) for bag in bags])
    np.testing.assert_allclose(SetMean(Linear())(bags), means @ means.T)
    np.testing.assert_allclose(SetMean(Linear())([bag.tolist() for bag in bags]), means @ means.T)
    np.testing.assert_allclose(SetMean(Linear()).features(bags), means)


@pytest.mark.parametrize("tile", [1, 2, 3, 5])
def test_bags_larger_than_a_tile_give_the_same_matrix(tile, monkeypatch):
    random = np.random.default_rng(1)
    bags = [random.normal(size=(n, 2)) for n in (1, 7, 2, 5, 1, 1)]
    kernel = SetMean(Linear() ** 2 + 1.0)
    K, L = kernel(bags), kernel(bags[:2], bags)
    monkeypatch.setattr(module, "TILE", tile)
    np.testing.assert_allclose(kernel(bags), K)
    np.testing.assert_array_equal(kernel(bags), kernel(bags).T)
    np.testing.assert_allclose(kernel(bags[:2], bags), L)


def test_means_in_a_mean():
    """A kernel of sets is a kernel of objects: bags of sets, and bags of bags."""
    nested = [[[{"a"}, {"b"}], [{"a", "b"}]], [[{"b"}]]]
    inner = [[SetMean(Intersection()).pair(x, z) for z in nested[1]] for x in nested[0]]
    assert SetMean(SetMean(Intersection())).pair(*nested) == pytest.approx(np.mean(inner))


def test_mean_is_as_definite_as_its_kernel():
    class MinusSquares(Kernel):
        @property
        def definiteness(self):
            return "cpd"

        def _prepare(self, X):
            return np.asarray(X, float).ravel()

        def _gram(self, A, B, work):
            return -(np.subtract.outer(A, A if B is None else B) ** 2)

    kernel = SetMean(MinusSquares())
    assert kernel.definiteness == "cpd"
    K = kernel([[[1.0], [2.0]], [[0.0]], [[5.0], [1.0], [1.0]], [[3.0]]])
    H = np.eye(4) - 0.25
    assert np.linalg.eigvalsh(H @ K @ H).min() > -1e-9


@pytest.mark.parametrize("kernel", [SetMean(Linear()), Subspace()], ids=repr)
@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ([np.ones((2, 3)), np.ones((0, 3))], "bag 1 is empty"),
        ([[[1.0]], []], "bag 1 is empty"),
        ([np.ones((2, 3)), np.ones((2, 2))], "bag 1 has vectors of 2 numbers"),
        ([np.ones((2, 3)), "ab"], "bag 1 must be a collection"),
        ([np.ones((2, 3)), 5], "bag 1 must be a collection"),
        ([np.ones((2, 3, 1))], "bag 0 must be"),
        ([[[np.nan]]], "NaN"),
    ],
)
def test_what_is_no_bag_is_named(kernel, bags, message):
    with pytest.raises(ValueError, match=message):
        kernel(bags)


def test_mean_of_something_else_than_a_kernel_is_refused():
    with pytest.raises(ValueError, match="kernel must be a Kernel"):
        SetMean("rbf")([[[1.0]]])


def test_sparse_bags():
    bags = [sp.csr_matrix([[1.0, 0.0], [0.0, 2.0]]), sp.csr_matrix([[3.0, 0.0]])]
    np.testing.assert_allclose(Subspace()(bags), Subspace()([bag.toarray() for bag in bags]))


# ------------------------------------------------------------------------------------------------ subspaces


@pytest.mark.parametrize("degrees", [0.0, 20.0, 65.0, 90.0])
def test_lines_at_an_angle(degrees):
    angle = np.deg2rad(degrees)
    x, z = np.array([[3.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle)]])
    for kind in KINDS[:2]:
        assert Subspace(kind).pair(x, z) == pytest.approx(np.cos(angle) ** 2, abs=1e-12)
    assert Subspace("binet_cauchy", dim=1).pair(x, z) == pytest.approx(9 * np.cos(angle) ** 2, abs=1e-12)


def test_values_are_those_of_the_principal_angles():
    random = np.random.default_rng(2)
    x, z = random.normal(size=(2, 5)), random.normal(size=(2, 5))
    found = cosines(x, z)
    assert Subspace().pair(x, z) == pytest.approx(np.prod(found**2))
    assert Subspace("projection").pair(x, z) == pytest.approx(np.sum(found**2))


def test_subspaces_are_their_own_best_match():
    random = np.random.default_rng(3)
    bags = [random.normal(size=(n, 4)) for n in (1, 2, 3, 6)]
    np.testing.assert_allclose(Subspace().diag(bags), 1.0)
    np.testing.assert_allclose(Subspace("projection").diag(bags), [1, 2, 3, 4])


def test_binet_cauchy_of_orthonormal_bases_is_the_product_of_cosines():
    random = np.random.default_rng(4)
    bases = [np.linalg.qr(random.normal(size=(4, 2)))[0].T for _ in range(5)]
    np.testing.assert_allclose(Subspace("binet_cauchy", dim=2)(bases), Subspace(dim=2)(bases), atol=1e-12)


def test_binet_cauchy_needs_enough_vectors():
    assert Subspace("binet_cauchy", dim=2).pair([[1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]) == 0.0
    assert Subspace("binet_cauchy", dim=1).pair([[0.0, 0.0]], [[1.0, 0.0]]) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_feature_space_of_a_kernel_is_that_of_its_features(kind):
    random = np.random.default_rng(5)
    bags = [random.normal(size=(3, 2)) for _ in range(4)]
    square = Linear() ** 2
    lifted = [square.features(bag) for bag in bags]
    np.testing.assert_allclose(
        Subspace(kind, dim=2, kernel=square)(bags), Subspace(kind, dim=2)(lifted), rtol=1e-6, atol=1e-9
    )


def test_subspaces_of_objects_that_are_no_vectors():
    bags = [[{"a"}, {"a", "b"}], [{"a"}, {"b"}], [{"c"}]]
    K = Subspace("projection", kernel=Intersection())(bags)
    np.testing.assert_allclose(K, [[2, 2, 0], [2, 2, 0], [0, 0, 1]], atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "bags", "message"),
    [
        (Subspace("angles"), [[[1.0]]], "kind must be one of"),
        (Subspace("binet_cauchy"), [[[1.0]]], "dim must be given"),
        (Subspace(dim=0), [[[1.0]]], "dim must be an integer"),
        (Subspace(tol=-1.0), [[[1.0]]], "tol must be"),
        (Subspace(dim=2), [[[1.0, 0.0], [2.0, 0.0]]], "bag 0 spans 1 dimensions, dim=2"),
        (Subspace(), [[[1.0, 0.0]], [[0.0, 0.0]]], "bag 1 spans no subspace"),
        (Subspace(), [["a", "b"]], "give a kernel"),
        (Subspace(), [[1.0, 2.0]], "give a kernel"),
    ],
)
def test_subspaces_that_are_not_there_are_refused(kernel, bags, message):
    with pytest.raises(ValueError, match=message):
        kernel(bags)


def test_prepared_sets_are_cut_like_the_collection():
    sets = [text.split() for text in TEXTS]
    for kernel in (Intersection("min"), Jaccard()):
        cut = kernel._gram(kernel._prepare(sets)[1:3], None, Work())
        np.testing.assert_array_equal(cut, kernel(sets[1:3]))


def test_elements_with_many_different_counts():
    random = np.random.default_rng(7)
    sets = [{e: w for e, w in enumerate(random.gamma(1.0, size=4)) if random.random() < 0.8} for _ in range(25)]
    sets = [{**x, "word": int(random.integers(1, 4))} for x in sets]  # and one with few
    expected = [[intersection(x, z, "min") for z in sets] for x in sets]
    np.testing.assert_allclose(Intersection("min")(sets), expected)
    np.testing.assert_allclose(Intersection("min")(sets[:3], sets), expected[:3])
    F = Intersection("min").features(sets)
    np.testing.assert_allclose((F @ F.T).toarray(), expected)


def test_features_that_are_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_LEVELS", 3)
    with pytest.raises(ValueError, match="use the Gram matrix"):
        Intersection("min").features([{"a": 1.5, "b": 2.5}, {"a": 0.5, "b": 3.5}])


def test_larger_collections_equal_the_definition():
    random = np.random.default_rng(6)
    sets = [random.integers(0, 50, random.integers(0, 30)).tolist() for _ in range(40)]
    for counts in module.COUNTS:
        expected = [[intersection(x, z, counts) for z in sets] for x in sets]
        np.testing.assert_array_equal(Intersection(counts)(sets), expected)
