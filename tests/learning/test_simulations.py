"""A simulation: without a dominant label the hinge loss ties, the log and the hybrid loss do not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import Sequences
from mercer.datasets import make_nondominant
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
