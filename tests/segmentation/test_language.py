"""The n-gram model against its formula, and the entropies it gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from mercer.segmentation import NgramModel
from reference.prose import witten_bell

streams = st.lists(st.lists(st.sampled_from("abcd"), max_size=7), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(streams, streams, st.integers(0, 3))
def test_surprisals_equal_the_formula(train, test, order):
    model = NgramModel(order).fit_tokens(train)
    found = model.surprisals(test)
    symbols = sorted({w for stream in train for w in stream})
    expected = []
    for stream in test:
        padded = ["<s>"] * 3 + stream
        expected += [-math.log(witten_bell(train, order, symbols, w, padded[: i + 3])) for i, w in enumerate(stream)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("context", [[], ["the"], ["the", "cat"], ["new", "words"], ["cat", "the"]])
def test_probabilities_sum_to_one_over_known_symbols_and_the_unknown(order, context):
    model = NgramModel(order, min_count=2).fit(["the cat sat", "the cat ran", "a dog ran here", "the the"])
    ends = [*model.symbols_, "never seen"]
    p = [math.exp(-model.surprisals([[*context, word]])[-1]) for word in ends]
    assert len(ends) == model.n_symbols_
    assert sum(p) == pytest.approx(1.0)


def test_entropy_of_the_uniform_model_is_log_v():
    model = NgramModel(order=0).fit(["one two three four five six seven"])
    assert model.entropy("two two nine") == pytest.approx(math.log(8))
    assert model.entropy("...") == 0.0


def test_text_that_was_seen_surprises_less():
    model = NgramModel(3, unit="character").fit(["the cat sat on the mat"] * 3)
    assert model.entropy("the cat sat") < model.entropy("tac eht tas") < model.entropy("xyz XYZ qqq")


@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_a_model_comes_back_from_its_state(order):
    model = NgramModel(order, unit="character").fit(["abra cadabra", "abba"])
    again = NgramModel.from_state(*model.to_state())
    probe = [list("abracad"), list("xa")]
    np.testing.assert_array_equal(again.surprisals(probe), model.surprisals(probe))
    assert clone(model).get_params() == model.get_params() == again.get_params()


def test_damaged_states_are_refused():
    meta, arrays = NgramModel(2).fit(["a b a"]).to_state()
    with pytest.raises(ValueError, match="counts of 2-grams"):
        NgramModel.from_state(meta, arrays | {"_counts.1": arrays["_counts.1"][:-1]})
    with pytest.raises(ValueError, match="must be rising"):
        NgramModel.from_state(meta, arrays | {"_grams.0": arrays["_grams.0"][::-1]})


@pytest.mark.parametrize(
    ("model", "message"),
    [(NgramModel(-1), "order"), (NgramModel(unit="letter"), "unit must"), (NgramModel(min_count=0), "min_count")],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(["a"])
    with pytest.raises(ValueError, match="list of strings"):
        NgramModel().fit("a b c")
