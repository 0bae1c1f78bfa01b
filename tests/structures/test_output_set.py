"""Outputs that are written out."""

from itertools import product

import numpy as np
import pytest

from mercer.structured import StructuredPredictor
from mercer.structures import OutputSet


def pairs(x):
    return list(product(range(x.shape[0]), repeat=2))


def features(x, y):
    return np.concatenate([x[y[0]], x[y[1]], [float(y[0] == y[1])]])


STRUCTURE = OutputSet(pairs, features, cost=lambda y, z: float(sum(a != b for a, b in zip(y, z, strict=True))))


def test_every_verb_looks_at_all_outputs():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 2)), rng.normal(size=5)
    scores = {y: float(w @ features(x, y)) for y in pairs(x)}
    assert STRUCTURE.argmax(w, x) == max(scores, key=scores.get)
    assert STRUCTURE.argmin(w, x) == min(scores, key=scores.get)
    costly = {y: s + STRUCTURE.cost((0, 1), y) for y, s in scores.items()}
    assert STRUCTURE.argmax(w, x, (0, 1)) == max(costly, key=costly.get)
    best = STRUCTURE.k_best(w, x, 4)
    assert [y for y, _ in best] == sorted(scores, key=scores.get, reverse=True)[:4]
    total, mean = STRUCTURE.log_partition(w, x)
    p = np.exp(np.array(list(scores.values())) - total)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(mean, sum(q * features(x, y) for q, y in zip(p, scores, strict=True)))
    assert STRUCTURE.log_cardinality(x) == pytest.approx(np.log(9))
    np.testing.assert_array_equal(STRUCTURE.features(x, (2, 0)), features(x, (2, 0)))


@pytest.mark.parametrize("loss", ["hinge", "log", "hybrid", "relative-margin", "softmax-margin"])
def test_every_loss_learns_with_it(loss):
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(3, 2)) for _ in range(20)]
    Y = [(int(x[:, 0].argmax()), int(x[:, 1].argmax())) for x in X]
    model = StructuredPredictor(STRUCTURE, loss, C=10.0, random_state=0).fit(X, Y)
    assert model.score(X, Y) >= 0.9


def test_bad_outputs_are_named():
    with pytest.raises(ValueError, match="outputs must hold at least one output"):
        OutputSet([])
    for outputs in ({1, 2}, iter([1, 2]), "ab", {1: 2}):
        with pytest.raises(TypeError, match="outputs must be a sequence or a function"):
            OutputSet(outputs)
    with pytest.raises(ValueError, match="at least one output for every input"):
        OutputSet(lambda x: []).outputs_of(1.0)
    with pytest.raises(ValueError, match="has no features: give them, or a kernel"):
        OutputSet([1, 2]).table(0.0)
    with pytest.raises(ValueError, match="is none of the 2 outputs"):
        OutputSet([1, 2], lambda x, y: np.ones(2)).features(0.0, 3)
