"""The part of the demo's page about shares: single digits judged by what is known of bags of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.report.html import Html, columns, figure, paragraph, table
from mercer.report.proportions import plot_decision, plot_proportions

__all__ = ["Learner", "ShareResult", "shares_part"]


@dataclass(frozen=True)
class Learner:
    """One way of learning, and how well it does on digits it has not seen.

    Attributes
    ----------
    name : str
    model : classifier
    right : float
        Share of test digits that are judged right.
    seconds : float
        Time of training.
    """

    name: str
    model: Any
    right: float
    seconds: float


@dataclass(frozen=True)
class ShareResult:
    """What the demo found about shares.

    Attributes
    ----------
    n_train, n_bags, n_test : int
        Digits and bags for training, digits for the test.
    learners : list of Learner
    bags : Bags
        Bags of test digits, with their true shares.
    predicted : ndarray
        The shares that the second learner predicts for them.
    toy : list of (str, classifier, array of points, array of bags)
        Classifiers of the plane that were given two bags.
    """

    n_train: int
    n_bags: int
    n_test: int
    learners: list[Learner]
    bags: Any
    predicted: np.ndarray
    toy: list[tuple[str, Any, np.ndarray, np.ndarray]]


def shares_part(r: ShareResult) -> list[Html | str]:
    """Table and pictures."""
    rows = [(learner.name, f"{100 * learner.right:.1f} %", f"{learner.seconds:.2f}") for learner in r.learners]
    shares = plot_proportions(r.bags.proportions, r.predicted, r.bags.names.tolist(), r.bags.sizes)
    names = ["one bag", "the other"]
    toys = [figure(plot_decision(model, X, np.array(names)[bags]), f"{said}.") for said, model, X, bags in r.toy]
    return [
        paragraph(
            "Nobody says which digit is odd. Known is only the share of odd digits in bags of "
            f"{r.n_train // r.n_bags} of them, as of votes by district or of positives by lab batch. From that, "
            "learners in ",
            Html("<code>mercer.proportions</code>"),
            " make a classifier of single digits.",
        ),
        table(rows, ["", "digits right", "training, s"], "lrr"),
        f"{r.n_bags} bags with {r.n_train} digits for training, {r.n_test} others for the test; a guess is right half "
        "of the time. The weight of the loss was chosen by the shares of held-out bags. The last row is told the label "
        "of every training digit.",
        figure(shares, f"Shares of odd digits in bags of test digits: true, and found by the {r.learners[1].name}."),
        "What can go wrong: two bags, 60 % and 40 % of the first class, whose means lie on the wrong sides.",
        columns(*toys),
    ]
