"""Costs have their formula, fit the labels they are told, and refuse what is no cost."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mercer.structures.costs import (
    Cost,
    CostMatrix,
    Hamming,
    Taxonomy,
    ZeroOne,
    cost_from_json,
    resolve_cost,
)
from reference.margin import COSTS, of_two_labels

TRUTH, ANSWER = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 2, 1, 2, 0, 1])


@pytest.mark.parametrize("name", COSTS)
def test_the_table_and_single_costs_equal_the_formula(name):
    cost, pair = COSTS[name]
    pair = pair or (lambda y, z: float(y != z))  # 0/1 of one label
    wanted = np.array([[pair(int(y), z) for z in range(3)] for y in TRUTH])
    np.testing.assert_allclose(cost.table(TRUTH, 3), wanted)
    np.testing.assert_allclose(cost.between(TRUTH, ANSWER, 3), wanted[np.arange(6), ANSWER])


@pytest.mark.parametrize("name", COSTS)
def test_a_matrix_of_label_pairs_is_the_table_of_all_labels(name):
    cost, _ = COSTS[name]
    matrix = cost.matrix_of(3)
    if name in ("zero-one", "subclass"):  # no sum over positions; not known to depend on the pair alone
        assert matrix is None
    else:
        np.testing.assert_array_equal(matrix, cost.table(np.arange(3), 3))


@pytest.mark.parametrize("name", COSTS)
def test_costs_are_not_negative_and_zero_for_the_truth(name):
    table = COSTS[name][0].table(np.arange(3), 3)
    assert (table >= 0).all()
    assert not np.diagonal(table).any()


def test_tables_can_be_changed_without_changing_the_cost():
    for cost, _ in COSTS.values():
        table = cost.table(np.arange(3), 3)
        before = table.copy()
        table += 1.0
        np.testing.assert_array_equal(cost.table(np.arange(3), 3), before)


def test_only_zero_one_does_not_decompose():
    assert [name for name, (cost, _) in COSTS.items() if not cost.decomposes] == ["zero-one"]


# ------------------------------------------------------------------------------------------- taxonomies


def test_a_taxonomy_is_the_shortest_path():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(3, 9))
        edges = [(int(rng.integers(k)), k, float(rng.uniform(0.1, 3))) for k in range(1, n)]  # a tree
        edges += [(int(a), int(b), float(rng.uniform(0.1, 3))) for a, b in rng.integers(0, n, (n, 2)) if a != b]
        distance = np.full((n, n), np.inf)
        np.fill_diagonal(distance, 0.0)
        for a, b, length in edges:
            distance[a, b] = distance[b, a] = min(distance[a, b], length)
        for k in range(n):
            distance = np.minimum(distance, distance[:, [k]] + distance[[k], :])
        bound = Taxonomy(edges).bind(range(n))
        np.testing.assert_allclose(bound.matrix, distance)
        some = rng.permutation(n)[:3].tolist()
        np.testing.assert_allclose(Taxonomy(edges).bind(some).matrix, distance[np.ix_(some, some)])


def test_edges_are_undirected_and_of_length_one_unless_told():
    assert Taxonomy([("a", "b"), ("c", "b", 2)]).bind(["a", "c"]).matrix.tolist() == [[0, 3], [3, 0]]
    assert Taxonomy([("a", "b", 5), ("b", "a", 2)]).bind(["a", "b"]).matrix.tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize("length", [0, -1.0, np.nan, np.inf])
def test_an_edge_must_have_a_positive_length(length):
    with pytest.raises(ValueError, match=r"'a' - 'b' must have a positive length"):
        Taxonomy([("a", "b", length)])


def test_a_taxonomy_must_know_and_connect_all_labels():
    tree = Taxonomy([("a", "b"), ("c", "d")])
    with pytest.raises(ValueError, match="no node for the label 'e'"):
        tree.bind(["a", "e"])
    with pytest.raises(ValueError, match="does not connect 'a' and 'c'"):
        tree.bind(["a", "c"])
    with pytest.raises(ValueError, match="no node for the label 'a'"):
        Taxonomy([]).bind(["a"])
    with pytest.raises(ValueError, match="bound"):
        tree.table(TRUTH, 3)


# --------------------------------------------------------------------------------------- names to costs


def test_costs_are_found_by_what_they_are_given_as():
    assert isinstance(resolve_cost("hamming"), Hamming)
    assert isinstance(resolve_cost("zero-one"), ZeroOne)
    assert isinstance(resolve_cost({"a": 2.0}), Hamming)
    assert isinstance(resolve_cost([1.0, 2.0]), Hamming)
    assert isinstance(resolve_cost([[0.0, 2.0], [1.0, 0.0]]), CostMatrix)
    assert isinstance(resolve_cost(np.zeros((2, 2))), CostMatrix)
    own = Hamming({"a": 2.0})
    assert resolve_cost(own) is own
    np.testing.assert_array_equal(
        resolve_cost(of_two_labels).bind([2, 0]).matrix, [[0, of_two_labels(2, 0)], [of_two_labels(0, 2), 0]]
    )


@pytest.mark.parametrize(
    ("cost", "error", "words"),
    [
        ("hinge", ValueError, "unknown cost 'hinge'"),
        ("", ValueError, "unknown cost"),
        (3.0, TypeError, "got float"),
        (None, TypeError, "got NoneType"),
        (np.zeros((2, 3)), ValueError, r"square, got shape \(2, 3\)"),
        (np.zeros((2, 2, 2)), ValueError, "one number a label"),
        ([[0, 1], [-2, 0]], ValueError, "the cost of 0 where 1 is true is -2"),
        ([[0, 1], [1, 0.5]], ValueError, "diagonal entry of label 1 is 0.5"),
        ([[0, np.nan], [1, 0]], ValueError, "finite"),
        ([[0, np.inf], [1, 0]], ValueError, "finite"),
    ],
)
def test_what_is_no_cost_is_refused(cost, error, words):
    with pytest.raises(error, match=words):
        resolve_cost(cost).bind(["a", "b"])


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ({"c": 2.0}, "label 'c', which does not occur"),
        ({"a": -2.0}, "not negative"),
        ({"a": np.nan}, "finite"),
        ([1.0, 2.0, 3.0], r"one number a label \(2\), got shape \(3,\)"),
        ([], "one number a label"),
        (np.zeros((3, 3)), "for 3 labels, the data has 2"),
        (lambda y, z: -1.0, "negative"),
        (lambda y, z: 1.0, "diagonal"),
        (lambda y, z: np.nan, "finite"),
    ],
)
def test_a_cost_that_does_not_fit_the_labels_is_refused(cost, words):
    with pytest.raises(ValueError, match=words):
        resolve_cost(cost).bind(["a", "b"])


def test_weights_that_a_mapping_leaves_out_are_one():
    np.testing.assert_array_equal(Hamming({"b": 4.0}).bind(["a", "b", "c"]).weights, [1.0, 4.0, 1.0])


def test_a_matrix_is_for_its_own_number_of_labels():
    with pytest.raises(ValueError, match="for 3 labels, not 2"):
        COSTS["matrix"][0].table(np.array([0]), 2)


# ------------------------------------------------------------------------------------------- plain data


@pytest.mark.parametrize("name", ["hamming", "weighted", "matrix", "taxonomy", "zero-one", "callable"])
def test_costs_come_back_from_json(name):
    cost, _ = COSTS[name]
    again = cost_from_json(json.loads(json.dumps(cost.to_json(), allow_nan=False)))
    assert again.decomposes == cost.decomposes
    np.testing.assert_array_equal(again.table(TRUTH, 3), cost.table(TRUTH, 3))


def test_names_stay_names_and_nonsense_is_refused():
    assert cost_from_json("hamming") == "hamming"
    for bad in ({}, {"kind": "code"}, 3, None, []):
        with pytest.raises(ValueError, match="not a cost"):
            cost_from_json(bad)


def test_a_cost_of_ones_own_says_that_it_cannot_be_saved():
    class Mine(Cost):
        def table(self, truth, n_labels):
            return np.zeros((len(truth), n_labels))

    with pytest.raises(TypeError, match="Mine cost cannot be saved"):
        Mine().to_json()
