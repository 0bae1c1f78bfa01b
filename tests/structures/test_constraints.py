"""Constraints say what the tagging schemes say, survive JSON and pickle, and turn into exact masks."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

from mercer.structures import Constraints

BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
BILOU = ["O", "B-X", "I-X", "L-X", "U-X", "B-Y", "I-Y", "L-Y", "U-Y"]
BIOES = [label.replace("L-", "E-").replace("U-", "S-") for label in BILOU]


def is_bio(labels) -> bool:
    """Every I-X directly follows B-X or I-X."""
    return all(
        label[0] != "I" or (t > 0 and labels[t - 1] in ("B" + label[1:], "I" + label[1:]))
        for t, label in enumerate(labels)
    )


def is_bilou(labels) -> bool:
    """Read from left to right: outside, or inside a span of one type that has to be closed."""
    inside = None
    for label in labels:
        kind = {"E": "L", "S": "U"}.get(label[0], label[0])
        if inside is None:
            if kind in "IL":
                return False
            inside = label[2:] if kind == "B" else None
        else:
            if kind not in "IL" or label[2:] != inside:
                return False
            inside = None if kind == "L" else inside
    return inside is None


@pytest.mark.parametrize(
    ("make", "labels", "rule"),
    [
        (Constraints.bio, BIO, is_bio),
        (Constraints.bio, ["O", "B", "I"], is_bio),
        (Constraints.bilou, BILOU, is_bilou),
        (Constraints.bilou, BIOES, is_bilou),
    ],
)
def test_a_scheme_allows_what_its_rule_allows(make, labels, rule):
    constraints = make(labels)
    outcomes = set()
    for length in range(5 if len(labels) < 6 else 4):
        for labelling in itertools.product(labels, repeat=length):
            outcomes.add(rule(labelling))
            assert constraints.allows(labelling) == rule(labelling), labelling
    assert outcomes == {True, False}


@pytest.mark.parametrize("make", [Constraints.bio, Constraints.bilou])
@pytest.mark.parametrize("label", ["X-PER", "", "BPER", 3, "NOUN"])
def test_a_label_outside_the_scheme_is_refused(make, label):
    with pytest.raises(ValueError, match="PREFIX-TYPE"):
        make(["O", label])


def test_allowing_forbids_all_the_rest():
    constraints = Constraints.allowing(["a", "b", "c"], [("a", "b"), ("b", "c")], start=["a"], end=["c", "b"])
    allowed = [y for n in range(1, 4) for y in itertools.product("abc", repeat=n) if constraints.allows(y)]
    assert allowed == [("a", "b"), ("a", "b", "c")]
    assert constraints.allows([])


def test_allowing_refuses_transitions_between_unknown_labels():
    with pytest.raises(ValueError, match="'z'"):
        Constraints.allowing(["a"], [("a", "z")])


def test_masks_are_true_exactly_where_something_is_forbidden():
    constraints = Constraints([("a", "b"), ("b", "zzz")], forbidden_start=["b"], forbidden_end=["a"])
    pairs, start, end = constraints.masks(["a", "b", "c"])
    assert np.argwhere(pairs).tolist() == [[0, 1]]
    assert start.tolist() == [False, True, False]
    assert end.tolist() == [True, False, False]


@pytest.mark.parametrize("side", ["forbidden_start", "forbidden_end"])
def test_forbidding_every_label_is_refused(side):
    with pytest.raises(ValueError, match="every label"):
        Constraints(**{side: ["a", "b"]}).masks(["a", "b"])


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(),
        Constraints.bio(BIO),
        Constraints.bilou(BILOU),
        Constraints([(1, 2), (2, 10)], forbidden_start=[10], forbidden_end=[1]),
    ],
    ids=["none", "bio", "bilou", "numbers"],
)
def test_constraints_survive_json_and_pickle(constraints):
    assert Constraints.from_json(json.loads(json.dumps(constraints.to_json()))) == constraints
    again = pickle.loads(pickle.dumps(constraints))
    assert again == constraints
    assert hash(again) == hash(constraints)


def test_equality_looks_at_every_rule():
    base = Constraints([("a", "b")], forbidden_start=["a"], forbidden_end=["b"])
    assert base == Constraints([("a", "b")], forbidden_start=["a"], forbidden_end=["b"])
    assert base != Constraints([("b", "a")], forbidden_start=["a"], forbidden_end=["b"])
    assert base != Constraints([("a", "b")], forbidden_start=["b"], forbidden_end=["b"])
    assert base != Constraints([("a", "b")], forbidden_start=["a"], forbidden_end=["a"])
    assert repr(base) == "Constraints(1 forbidden transitions, 1 forbidden starts, 1 forbidden ends)"
