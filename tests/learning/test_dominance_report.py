"""The probability of the best output equals enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer.classification import LinearClassifier
from mercer.learning import dominance_report
from mercer.tagging import Tagger

X = [[["a"], ["b"], ["b", "c"]], [["b"], ["a", "c"]], [["c"], ["c"], ["a"], ["b"]]]
Y = [["x", "y", "x"], ["y", "y"], ["x", "x", "y", "y"]]


def test_best_labellings_have_the_probability_of_enumeration():
    model = Tagger(C=3.0).fit(X, Y)
    report = dominance_report(model, X)
    for i, x in enumerate(X):
        every = [list(z) for z in itertools.product("xy", repeat=len(x))]
        best = max(model.log_likelihood([x] * len(every), every))
        assert report.probabilities[i] == pytest.approx(np.exp(best))
    assert report.n_dominated == (report.probabilities < 0.5).sum()
    assert report.share == report.n_dominated / 3
    weak = dominance_report(Tagger(C=1e-6).fit(X, Y), X)
    assert weak.share == 1.0
    assert "3 of 3" in str(weak)


def test_classifiers_and_empty_inputs():
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LinearClassifier("log", C=100.0).fit(rows, [0, 0, 1, 1])
    assert dominance_report(model, rows).share == 0.0
    assert np.isnan(dominance_report(Tagger().fit(X, Y), []).share)
    with pytest.raises(TypeError, match="k_best or predict_proba"):
        dominance_report(object(), rows)
