"""Walks that are recorded on a GPU: the numbers of the other ways, and the fields they are meant to reach."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.learning import learners
from mercer.learning.learners import Chains, Keys, effective_size

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def made(n_visible: int, n_hidden: int, scale: float) -> tuple:
    drawn = scale * np.random.default_rng(0).normal(size=n_visible * n_hidden + n_hidden + n_visible)
    from mercer.fields._tensors import TensorUnits

    found = []
    for device in ("cpu", "cuda"):
        units = TensorUnits(n_visible, n_hidden)
        units.device = torch.device(device)
        found += [units, torch.tensor(drawn, dtype=torch.float32, device=device)]
    return tuple(found)


def test_sweeps_and_excursions_are_those_of_the_processor():
    here, theta, there, same = made(40, 30, 0.1)
    states = here.uniform(200, Keys(3))
    keys, others = Keys(7, 5), Keys(7, 5)
    a, b = here.sweeps(states, theta, keys, 4), there.sweeps(states.cuda(), same, others, 4)
    assert keys.used == others.used == 13
    assert (a == b.cpu()).float().mean() > 0.995
    ladder = np.linspace(1.0, 0.5, 6).tolist()
    a, ratio = here.excursion(states, theta, ladder, keys)
    b, other = there.excursion(states.cuda(), same, ladder, others)
    assert keys.used == others.used
    alike = (a == b.cpu()).all(1)
    assert alike.float().mean() > 0.95
    np.testing.assert_allclose(ratio[alike], other.cpu()[alike], atol=1e-4)


def test_temperatures_are_those_of_the_processor():
    here, theta, there, same = made(40, 30, 0.3)
    states = here.uniform(100, Keys(3))
    keys, others = Keys(7, 5), Keys(7, 5)
    _, betas = learners.anneal(here, states, None, theta, 0.9, 1, keys)
    moved, found = there.anneal(states.cuda(), same, 0.9, others)
    assert others.used == 5 + 3 * len(found)
    assert found[-1] == 1.0
    assert (np.diff(found) > 0).all()
    assert abs(len(found) - len(betas)) <= 0.1 * len(betas)
    assert abs(found[0] - betas[0]) < 0.02 * betas[0]
    assert moved.shape == states.shape
    first = here.path(states, None, theta)
    assert effective_size(first(found[0]) - first(0.0)) >= 0.9 - 1e-6
    assert effective_size(first(1.02 * found[0]) - first(0.0)) < 0.9


@pytest.mark.parametrize("learner", [learners.SMC(), learners.PSMC(), learners.TemperedTransitions(10, 0.3)])
def test_walks_reach_the_field(learner):
    _, _, units, theta = made(6, 4, 1.0)
    exact = units.exact(theta)[1]
    chains = Chains(units, Keys(1), 1000)
    learner.start(chains, theta)
    means = [learner.negative(chains, theta, None) for _ in range(30)]
    assert float((torch.stack(means[5:]).mean(0) - exact).abs().max()) < 0.03


def test_parameters_that_diverged_are_named():
    _, _, units, theta = made(6, 4, 1.0)
    with pytest.raises(FloatingPointError, match="diverged"):
        units.anneal(units.uniform(50, Keys(0)), theta * float("nan"), 0.9, Keys(0))
