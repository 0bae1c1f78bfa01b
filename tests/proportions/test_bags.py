"""Bags: rows, names, proportions, bounds and weights, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.proportions import Bags, bag_proportions, make_bags


@pytest.mark.parametrize("size", [1, 3, 7, 40])
def test_bags_of_a_permutation_hold_every_row_once_and_their_exact_shares(size: int) -> None:
    y = np.random.default_rng(0).integers(0, 2, 40)
    bags = make_bags(y, size, random_state=1)
    assert np.array_equal(np.sort(bags.members), np.arange(40))
    counts = [y[bags.members[a:b]].sum() for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    assert np.allclose(bags.proportions * bags.sizes, counts)


def test_groups_become_bags_and_are_looked_up_by_name() -> None:
    bags = Bags(["b", "a", "b"], {"a": 1.0, "b": 0.5})
    assert bags.names.tolist() == ["a", "b"]
    assert bags.members.tolist() == [1, 0, 2]
    assert bags.proportions.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("scheme", ["iid", "hierarchical"])
def test_drawn_bags_count_repeated_rows_as_often_as_drawn(scheme: str) -> None:
    y = np.arange(12) % 3
    groups = np.arange(12) // 4 if scheme == "hierarchical" else None
    bags = make_bags(y, 30, scheme=scheme, groups=groups, n_bags=5, random_state=0)
    assert len(bags) == 5
    assert bags.overlapping
    for k in range(5):
        rows = bags.members[bags.offsets[k] : bags.offsets[k + 1]]
        assert np.allclose(bags.shares[k], np.bincount(y[rows], minlength=3) / 30)
        if groups is not None:
            assert len(np.unique(groups[rows])) == 1


def test_rows_in_two_bags_count_in_both() -> None:
    assert bag_proportions([0, 1, 1], np.array([[0, 0], [1, 0], [1, 1], [2, 1]])).tolist() == [0.5, 1.0]


def test_weights_of_rows_weigh_their_labels() -> None:
    bags = Bags(["a", "a", "b"], row_weight=[1.0, 3.0, 1.0])
    assert bag_proportions([0, 1, 1], bags).tolist() == [0.75, 1.0]


def test_bounds_of_one_class_bound_the_other() -> None:
    bags = Bags(["a", "b"], ([0.1, 0.2], [0.3, 0.2]))
    assert np.allclose(bags.lower, [[0.7, 0.1], [0.8, 0.2]])
    assert np.allclose(bags.upper, [[0.9, 0.3], [0.8, 0.2]])
    assert np.allclose(bags.shares.sum(axis=1), 1)


def test_selected_bags_keep_their_rows_and_shares() -> None:
    y = np.random.default_rng(0).integers(0, 3, 30)
    bags = make_bags(y, 4, random_state=0)
    part, rows = bags.select([1, 4])
    assert np.allclose(bag_proportions(y[rows], part, [0, 1, 2]), bags.shares[[1, 4]])


def test_frames_give_names_classes_and_weights() -> None:
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame({"region": ["a", "b", "a"], "share": [0.5, 1.0, 0.5], "w": [1, 1, 2]})
    table = pd.DataFrame({"region": ["b", "a"], "no": [0.0, 0.5], "yes": [1.0, 0.5]})
    bags = Bags.from_frame(people, "region", table, weight="w")
    assert bags.classes.tolist() == ["no", "yes"]
    assert bags.shares.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert bags.row_weight.tolist() == [1.0, 2.0, 1.0]
    assert Bags.from_frame(people, "region", "share").proportions.tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="no column 'district'"):
        Bags.from_frame(people, "district")
    with pytest.raises(ValueError, match="not constant within bag 'a'"):
        Bags.from_frame(people.assign(share=[0.5, 1.0, 0.6]), "region", "share")


@pytest.mark.parametrize(
    ("bags", "proportions", "message"),
    [
        ([0, 0, 1], [0.5], "one entry for each of the 2 bags"),
        ([0, 0, 2], [0.5, 0.1, 0.2], "bag 1 has no rows"),
        ([0, 0, 1], [0.5, 1.2], r"lie in \[0, 1\], but bag 1"),
        ([0, 0, 1], [0.5, np.nan], "bag 1 are NaN"),
        ([0, 0, 1], [[0.5, 0.2], [1, 0]], "sum to 1, but those of bag 0 sum to 0.7"),
        (["a", "b"], {"a": 0.1, "c": 0.2}, "names bag 'c', which has no rows"),
        (["a", "b"], {"a": 0.1}, "no entry for bag 'b'"),
        (["a", "b"], ([0.5, 0.1], [0.4, 0.2]), "no shares lie between the bounds of bag 'a'"),
        ([None, None], [0.5], "no row has a bag"),
        ([1, "a"], [0.5, 0.5], None),
        ([[0, 1, 2]], [0.5], "one value for each row"),
        ("abc", [0.5], "one value for each row"),
        (np.array([[0, 0], [1, 2]]), [0.5, 0.5], "bag 1 has no rows"),
        ([0, 1], ["x", "y"], "must be numbers"),
    ],
)
def test_wrong_bags_and_proportions_are_named(bags: object, proportions: object, message: str | None) -> None:
    if message is None:
        assert Bags(bags, proportions).names.tolist() == ["1", "a"]
        return
    with pytest.raises(ValueError, match=message):
        Bags(bags, proportions)


# ---------------------------------------------------------------------------------------------------- names


def test_new_shares_keep_the_classes_of_bags() -> None:
    made = Bags([0, 0, 1, 1], {0: 0.5, 1: 1.0}, classes=["no", "yes"])
    assert Bags(made, ([0.4, 0.9], [0.6, 1.0])).classes.tolist() == ["no", "yes"]
    assert Bags(made, [[0.5, 0.5], [0.2, 0.8]]).classes.tolist() == ["no", "yes"]
    assert Bags(made, np.full((2, 3), 1 / 3)).classes.tolist() == [0, 1, 2]  # other classes
    assert Bags(made, [0.5, 0.5], classes=[-1, 1]).classes.tolist() == [-1, 1]
    pd = pytest.importorskip("pandas")
    by_name = Bags(made, pd.DataFrame({"yes": [0.1, 0.2], "no": [0.9, 0.8]}))
    assert by_name.classes.tolist() == ["no", "yes"]
    assert by_name.proportions.tolist() == [0.1, 0.2]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_may_have_the_names_in_a_column(library) -> None:
    frame = pytest.importorskip(library).DataFrame
    numbers = frame({"bag": [1, 0], "share": [0.25, 0.75]})
    assert Bags([0, 0, 1], numbers).proportions.tolist() == [0.75, 0.25]
    text = frame({"share": [0.25, 0.75], "other": [0.75, 0.25], "place": ["b", "a"]})
    found = Bags(["a", "b", "a"], text)
    assert found.classes.tolist() == ["share", "other"]
    assert found.proportions.tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="names bag 'c', which has no rows"):
        Bags(["a", "b"], frame({"place": ["a", "b", "c"], "share": [0.1, 0.2, 0.3]}))
    with pytest.raises(ValueError, match="names a bag twice"):
        Bags(["a", "b"], frame({"place": ["a", "b", "a"], "share": [0.1, 0.2, 0.3]}))
    # Whole shares look like names, but two columns do, and neither is one.
    assert Bags([0, 0, 1, 1], frame({"no": [1, 0], "yes": [0, 1]})).proportions.tolist() == [0.0, 1.0]


def test_pairs_may_name_bags() -> None:
    made = Bags([(0, "a"), (1, "b"), (0, "b")], {"a": 1, "b": 0})
    assert made.names.tolist() == ["a", "b"]
    assert made.members.tolist() == [0, 1, 0]
    assert made.overlapping
    with pytest.raises(ValueError, match="integers for rows"):
        Bags([("x", "a"), ("y", "b")], {"a": 1, "b": 0})
    with pytest.raises(ValueError, match="integers or strings for bags"):
        Bags([(0, "a"), (1, None)], {"a": 1})
    assert Bags(np.array([(0, 0), (1, 1)], object), [0.0, 1.0]).names.tolist() == [0, 1]
    with pytest.raises(ValueError, match="rows in 0 … 1"):
        Bags([(0, "a"), (5, "b")], {"a": 1, "b": 0}, n_rows=2)


def test_a_tuple_of_two_shares_is_explained() -> None:
    with pytest.raises(ValueError, match="as a list"):
        Bags([0, 0, 1, 1], (0.6, 0.4))
