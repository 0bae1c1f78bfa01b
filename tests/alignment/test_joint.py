"""Batches of alignments answer as the structure does one example at a time, and train to the same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.alignment import AlignmentStructure
from mercer.learning import Risk
from mercer.learning.losses import resolve_loss
from mercer.learning.training import train
from mercer.structures import alignment_joint as joint_module
from mercer.structures.alignment_batch import Coded
from mercer.structures.alignment_joint import AlignmentJoint
from mercer.structures.joint import Examples, Joint

N = 4


def random_alignment(rng, n, m):
    k = int(rng.integers(0, min(n, m) + 1))
    pairs = [np.sort(rng.choice(size, k, replace=False)) for size in (n, m)]
    return np.stack(pairs, axis=1).astype(np.int32)


class Setting:
    def __init__(self, mode, cost, seed=0, n=25):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(0, 9, size=(n, 2))
        self.X = Examples([Coded(*(rng.integers(0, N, k).astype(np.int32) for k in size)) for size in sizes])
        self.y = [random_alignment(rng, *size) for size in sizes]
        self.z = [random_alignment(rng, *size) for size in sizes]
        structure = AlignmentStructure(N, mode, cost=cost)
        self.w = rng.normal(size=structure.n_weights)
        self.batched, self.single = AlignmentJoint(structure, threads=2), Joint(structure, structure.n_weights)

    def both(self, ask):
        return [ask(joint, joint.scores(self.w, self.X)) for joint in (self.batched, self.single)]


@pytest.fixture(params=[(mode, cost) for mode in ("global", "local") for cost in ("pairs", "zero-one")], ids="-".join)
def setting(request):
    return Setting(*request.param)


def same_outputs(found, expected):
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("verb", ["argmax", "argmin"])
def test_best_and_worst(setting, verb):
    (y, values), (z, expected) = setting.both(lambda joint, theta: getattr(joint, verb)(theta))
    assert same_outputs(y, z)
    assert np.allclose(values, expected)


@pytest.mark.parametrize("scale", [1.0, 0.4, np.linspace(0.5, 2.0, 25)], ids=["one", "less", "each"])
def test_most_violating(setting, scale):
    def ask(joint, theta):
        return joint.argmax(joint.augment(theta, setting.y, None, scale))

    (_, values), (_, expected) = setting.both(ask)
    assert np.allclose(values, expected)


def test_k_best(setting):
    (y, values), (z, expected) = setting.both(lambda joint, theta: joint.k_best(theta, 3))
    assert np.allclose(values, expected)
    for found, right in zip(y, z, strict=True):
        for a, b in zip(found, right, strict=True):
            assert (a is None and b is None) or np.array_equal(a, b)


@pytest.mark.parametrize("augmented", [False, True])
def test_marginals(setting, augmented, monkeypatch):
    monkeypatch.setattr(joint_module, "_COUNTS", 7 * N**2)  # several pieces

    def ask(joint, theta):
        return joint.marginals(joint.augment(theta, setting.y) if augmented else theta)

    found, expected = setting.both(ask)
    assert np.allclose(found.total, expected.total)
    assert np.allclose(found.log_partition, expected.log_partition)


def test_scores_features_costs_and_equality(setting):
    y, z = setting.y, [*setting.z[:20], *setting.y[20:]]
    for ask in (
        lambda joint, theta: joint.score(theta, y),
        lambda joint, theta: joint.difference(setting.X, y, z).toarray(),
        lambda joint, theta: joint.cost_between(y, z),
        lambda joint, theta: joint.equal(y, z),
    ):
        found, expected = setting.both(ask)
        assert np.allclose(found, expected)

    def added(joint, theta):
        mu = joint.zeros(theta)
        joint.add_output(mu, y, np.linspace(-1, 1, 25))
        return mu.total

    assert np.allclose(*setting.both(added))


def test_batches_cover_all_pairs_within_bounds(monkeypatch):
    joint = AlignmentJoint(AlignmentStructure(2))
    X = Examples([Coded(np.zeros(k % 7, np.int32), np.zeros(10, np.int32)) for k in range(600)])
    assert [len(range(*b.indices(600))) for b in joint.batches(X, 0)] == [256, 256, 88]
    monkeypatch.setattr(joint_module, "_CELLS", 100)
    batches = list(joint.batches(X, 0))
    assert [i for b in batches for i in range(b.start, b.stop)] == list(range(600))
    assert all(sum(10 * len(x.s) for x in X[b]) <= 100 for b in batches)
    assert list(joint.batches(Examples([]), 0)) == []


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("hinge", "bcfw"),
        ("hinge", "cutting-plane"),
        ("hinge", "bmrm"),
        ("squared-hinge", "bcfw"),
        ("slack", "bmrm"),
        ("relative-margin", "bcfw"),
        ("softmax-margin", "lbfgs"),
        ("hybrid", "bmrm"),
        ("log", "lbfgs"),
    ],
)
def test_every_loss_trains_to_the_optimum_of_the_structure_in_plain_python(loss, solver):
    setting = Setting("global", "pairs", seed=3, n=8)
    objectives = []
    for joint in (setting.batched, setting.single):
        risk = Risk(joint, resolve_loss(loss), setting.X, Examples(setting.y))
        result, history = train(risk, solver=solver, C=0.1, tol=1e-4, random_state=0)
        assert result.converged
        objectives.append(min(history["objective"]))
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-3)
