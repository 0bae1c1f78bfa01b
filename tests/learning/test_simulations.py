"""A simulation: without a dominant label the hinge loss ties, the log and the hybrid loss do not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import Sequences
from mercer.datasets import make_mixed_dominance, make_nondominant
from mercer.learning import Hinge, Hybrid, Log, Loss, Risk
from mercer.learning.training import train
from mercer.structures import Labels

COUNTS = range(3, 11)


def scores_of(loss: Loss, k: int, solver: str, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the k labels on the single input there is, after training, and the true labels."""
    X, y = make_nondominant(k)
    labels, rows = Labels(k, 1), Sequences(X, np.arange(len(X) + 1))
    result, _ = train(Risk(labels, loss, rows, y.astype(np.int32)), solver=solver, C=0.01, tol=tol, random_state=0)
    assert result.converged
    return labels.scores(result.w, rows)[0], y


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize(("loss", "solver"), [(Log(), "lbfgs"), (Log(), "bmrm"), (Hybrid(0.5), "bmrm")])
def test_log_and_hybrid_are_wrong_as_rarely_as_can_be(loss: Loss, solver: str, k: int) -> None:
    scores, y = scores_of(loss, k, solver, 1e-6)
    assert np.mean(scores.argmax() != y) == 0.54


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "bmrm"])
def test_hinge_scores_tie(solver: str, k: int) -> None:
    scores, _ = scores_of(Hinge(), k, solver, 1e-7)
    assert np.ptp(scores) < 1e-3


@pytest.mark.parametrize("k", COUNTS)
def test_random_answers_to_ties_are_wrong_1_minus_1_over_k_of_the_time(k: int) -> None:
    scores, y = scores_of(Hinge(), k, "bcfw", 1e-7)
    tied = np.flatnonzero(scores > scores.max() - 1e-3)
    answers = np.random.default_rng(0).choice(tied, size=(400, len(y)))
    error = np.mean(answers != y)
    assert abs(error - (1 - 1 / k)) < 4 * np.sqrt((1 / k) * (1 - 1 / k) / answers.size)


def test_the_hybrid_loss_parts_from_the_hinge_by_alpha() -> None:
    # The threshold of alpha at three labels is 0.387.
    def lead(alpha: float) -> float:
        scores, _ = scores_of(Hybrid(alpha), 3, "bmrm", 1e-7)
        second, first = np.sort(scores)[-2:]
        return float(first - second)

    assert lead(0.0) < 1e-3
    assert lead(0.3) < 1e-3
    assert 0.01 < lead(0.5) < lead(1.0)


@pytest.mark.parametrize("rho", [0.4, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("m", [60, 300])
def test_the_hinge_is_worse_where_many_examples_have_no_dominant_label(rho: float, m: int) -> None:
    (X, y), (new, truth) = (make_mixed_dominance(rho, n, random_state=n) for n in (m, 1000))
    mean, spread = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    tables = [np.column_stack([(table - mean) / spread, np.full(len(table), 10.0)]) for table in (X, new)]
    rows = [Sequences(table, np.arange(len(table) + 1)) for table in tables]
    structure = Labels(5, rows[0].n_features)

    def error(loss: Loss, solver: str) -> float:
        risk = Risk(structure, loss, rows[0], y.astype(np.int32))
        w = train(risk, solver=solver, C=0.1, tol=1e-3, max_iter=500, random_state=0, warn=False)[0].w
        scores = structure.scores(w, rows[1])
        tied = scores > scores.max(axis=1, keepdims=True) - 1e-3
        lots = np.random.default_rng(0).random(scores.shape)
        return float(np.mean(np.where(tied, lots, -1.0).argmax(axis=1) != truth))

    hinge, log, hybrid = error(Hinge(), "dual"), error(Log(), "lbfgs"), error(Hybrid(0.5), "bmrm")
    assert 0.6 * rho - 0.05 < min(log, hybrid)  # nobody can do better
    assert log < hinge - 0.03
    assert hybrid < hinge - 0.03
