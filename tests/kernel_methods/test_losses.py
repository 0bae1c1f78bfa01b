"""Losses of scores: values by hand, derivatives by differences, coefficients from derivatives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer._state.values import value_from_state, value_to_state
from mercer.kernel_methods import (
    ExponentialLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    MulticlassLogisticLoss,
    MulticlassPerceptronLoss,
    NoveltyLoss,
    PerceptronLoss,
    PinballLoss,
    SquaredLoss,
    TaxonomyLoss,
)

COMPUTERS = [
    ("computers", "hardware"), ("computers", "software"), ("hardware", "storage"), ("hardware", "cables"),
    ("storage", "HDD"), ("storage", "CDROM"), ("software", "freeware"), ("software", "shareware"),
    ("software", "opensource"),
]  # fmt: skip
LABELS = ("CDROM", "HDD", "cables", "freeware")
SINGLE = [
    PerceptronLoss(), HingeLoss(), HingeLoss(0.5), LogisticLoss(), ExponentialLoss(), NoveltyLoss(0.3), SquaredLoss(),
    HuberLoss(0.7), PinballLoss(0.2),
]  # fmt: skip
SMOOTH = [LogisticLoss(), ExponentialLoss(), SquaredLoss(), HuberLoss(0.7)]
ROUNDED = [HingeLoss().smoothed(0.3), PinballLoss(0.2).smoothed(0.3)]
MANY = [MulticlassPerceptronLoss(), MulticlassHingeLoss(0.8), MulticlassLogisticLoss(), TaxonomyLoss(COMPUTERS, LABELS)]


@pytest.mark.parametrize(
    ("loss", "f", "y", "value"),
    [
        (PerceptronLoss(), 2.0, 1.0, 0.0),
        (PerceptronLoss(), 2.0, -1.0, 2.0),
        (HingeLoss(), 0.25, 1.0, 0.75),
        (HingeLoss(2.0), 0.25, -1.0, 2.25),
        (LogisticLoss(), 0.0, 1.0, np.log(2)),
        (LogisticLoss(), -800.0, 1.0, 800.0),
        (ExponentialLoss(), -1.0, 1.0, np.e),
        (NoveltyLoss(0.5), 0.2, 0.0, 0.3),
        (SquaredLoss(), 1.0, 3.0, 4.0),
        (HuberLoss(1.0), 3.0, 0.0, 2.5),
        (PinballLoss(0.9), 0.0, 2.0, 1.8),
        (PinballLoss(0.9), 2.0, 0.0, 0.2),
    ],
)
def test_value_by_hand(loss, f, y, value):
    np.testing.assert_allclose(loss.value(np.array([f]), np.array([y])), [value], rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "y", "value"),
    [
        (MulticlassPerceptronLoss(), 0, 1.0),  # the best other is class 1
        (MulticlassHingeLoss(0.5), 1, 0.0),
        (MulticlassHingeLoss(0.5), 0, 1.5),
        (MulticlassLogisticLoss(), 1, np.log(np.exp(-1.0) + 1 + np.exp(-3.0) + np.exp(-4.0))),
        (TaxonomyLoss(COMPUTERS, LABELS), 0, 3.0),  # 2 steps to HDD, 5 to freeware: max(2 + 3, 3 + 0, 5 − 1) − 2
        (TaxonomyLoss(COMPUTERS, LABELS), 1, 1.0),  # max(2 + 2, 3 + 0, 5 − 1) − 3
    ],
)
def test_value_by_hand_with_classes(loss, y, value):
    np.testing.assert_allclose(loss.value([[2.0, 3.0, 0.0, -1.0]], [y]), [value], rtol=1e-12)


def differences(value, f, step=1e-6):
    return (value(f + step) - value(f - step)) / (2 * step)


@pytest.mark.parametrize("loss", SINGLE + ROUNDED, ids=repr)
def test_derivative_equals_differences(loss):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=50), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    np.testing.assert_allclose(loss.gradient(f, y), differences(lambda g: loss.value(g, y), f), atol=1e-6)


@pytest.mark.parametrize("loss", SMOOTH + ROUNDED, ids=repr)
def test_curvature_equals_differences_of_the_derivative(loss):
    rng = np.random.default_rng(1)
    f, y = rng.normal(size=50), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    np.testing.assert_allclose(loss.curvature(f, y), differences(lambda g: loss.gradient(g, y), f), atol=1e-5)


@pytest.mark.parametrize("loss", MANY, ids=lambda loss: type(loss).__name__)
def test_derivative_with_classes_equals_differences(loss):
    rng = np.random.default_rng(2)
    f, y = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    for z in range(4):
        step = np.eye(4)[z] * 1e-6
        found = (loss.value(f + step, y) - loss.value(f - step, y)) / 2e-6
        np.testing.assert_allclose(loss.gradient(f, y)[:, z], found, atol=1e-6)


@pytest.mark.parametrize("loss", [*SINGLE, *MANY], ids=repr)
def test_coefficients_are_the_terms_of_the_gradient(loss):
    rng = np.random.default_rng(3)
    many = loss.task == "multiclass"
    f = rng.normal(size=(20, 4) if many else 20)
    y = rng.integers(0, 4, 20) if many else np.where(rng.random(20) < 0.5, 1.0, -1.0)
    rows, classes, values = loss.coefficients(f, y)
    terms = np.zeros((20, 4 if many else 1))
    np.add.at(terms, (rows, classes), values)
    np.testing.assert_array_equal(terms.reshape(np.shape(f)), loss.gradient(f, y))
    assert np.all(values != 0)


@pytest.mark.parametrize("loss", [HingeLoss(), PinballLoss(0.3)], ids=repr)
def test_rounded_loss_is_near_the_loss(loss):
    f, y = np.linspace(-3, 3, 601), np.ones(601)
    apart = loss.value(f, y) - loss.smoothed(0.1).value(f, y)
    assert apart.min() >= 0
    assert apart.max() <= 0.05 + 1e-12


def test_perceptron_counts_a_score_of_zero_as_a_mistake():
    assert PerceptronLoss().gradient([0.0], [1.0])[0] == -1.0
    np.testing.assert_array_equal(MulticlassPerceptronLoss().gradient([[0.0, 0.0]], [0]), [[-1.0, 1.0]])


def test_taxonomy_that_is_a_star_is_the_multiclass_hinge():
    rng = np.random.default_rng(4)
    star = TaxonomyLoss([("centre", c, 0.4) for c in "abc"], "abc")
    f, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    np.testing.assert_allclose(star.value(f, y), MulticlassHingeLoss(0.8).value(f, y), atol=1e-12)
    np.testing.assert_array_equal(star.gradient(f, y), MulticlassHingeLoss(0.8).gradient(f, y))


def test_confusing_neighbours_in_a_taxonomy_costs_less():
    loss = TaxonomyLoss(COMPUTERS)
    assert loss.delta("CDROM", "HDD") == 2.0
    assert loss.delta("CDROM", "cables") == 3.0
    assert loss.delta("CDROM", "freeware") == 5.0
    assert loss.delta("HDD", "HDD") == 0.0
    f = np.zeros((1, 4))
    bound = loss.for_classes(LABELS)
    costs = [bound.value(f + 10.0 * np.eye(4)[z], [0])[0] - 10.0 for z in (1, 2, 3)]
    assert costs == [2.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HingeLoss(0.0), "rho must be"),
        (lambda: PinballLoss(1.0), "quantile must be"),
        (lambda: HuberLoss(-1.0), "epsilon must be"),
        (lambda: TaxonomyLoss([]), "edges"),
        (lambda: TaxonomyLoss([("a", "b", -1.0)]), "positive length"),
        (lambda: TaxonomyLoss([("a", "b"), ("c", "d")], ("a", "c")), "does not connect"),
        (lambda: TaxonomyLoss([("a", "b")]).value([[0.0, 0.0]], [0]), "for_classes"),
        (lambda: MulticlassHingeLoss().value([[0.0, 0.0]], [2]), "y must number"),
        (lambda: MulticlassHingeLoss().value([0.0, 0.0], [0, 1]), "row for each object"),
    ],
)
def test_wrong_losses_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("loss", [*SINGLE, *MANY], ids=repr)
def test_loss_comes_back_from_data(loss):
    assert value_from_state(*value_to_state(loss)) == loss
    assert dataclasses.replace(loss) == loss
