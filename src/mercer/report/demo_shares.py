"""The demo's section on proportions: classify single digits from the class proportions of bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.report.html import Html, columns, figure, paragraph, table
from mercer.report.proportions import plot_decision, plot_proportions

__all__ = ["Learner", "ShareResult", "shares_part"]


@dataclass(frozen=True)
class Learner:
    """A learner and its accuracy on test digits.

    Attributes
    ----------
    name : str
    model : classifier
    right : float
        Accuracy on test digits.
    seconds : float
        Time of training.
    """

    name: str
    model: Any
    right: float
    seconds: float


@dataclass(frozen=True)
class ShareResult:
    """Results of the demo for proportions.

    Attributes
    ----------
    n_train, n_bags, n_test : int
        Digits and bags for training, digits for the test.
    learners : list of Learner
    bags : Bags
        Bags of test digits, with their true shares.
    predicted : ndarray
        The shares predicted by the second learner.
    toy : list of (str, classifier, array of points, array of bags)
        Classifiers in the plane, trained on two bags.
    """

    n_train: int
    n_bags: int
    n_test: int
    learners: list[Learner]
    bags: Any
    predicted: np.ndarray
    toy: list[tuple[str, Any, np.ndarray, np.ndarray]]


def shares_part(r: ShareResult) -> list[Html | str]:
    """Return the table and the plots."""
    rows = [(learner.name, f"{100 * learner.right:.1f} %", f"{learner.seconds:.2f}") for learner in r.learners]
    shares = plot_proportions(r.bags.proportions, r.predicted, r.bags.names.tolist(), r.bags.sizes)
    names = ["one bag", "the other"]
    toys = [figure(plot_decision(model, X, np.array(names)[bags]), f"{said}.") for said, model, X, bags in r.toy]
    return [
        paragraph(
            "The labels of single digits are unknown. Only the share of odd digits is known for bags of "
            f"{r.n_train // r.n_bags} digits, as for votes by district or positives by lab batch. From these shares, "
            "learners in ",
            Html("<code>mercer.proportions</code>"),
            " train a classifier of single digits.",
        ),
        table(rows, ["", "digits correct", "training, s"], "lrr"),
        f"{r.n_bags} bags with {r.n_train} training digits, {r.n_test} test digits; chance is one half. "
        "C was chosen by the shares of held-out bags. The last row was trained with the label "
        "of every training digit.",
        figure(
            shares, f"Shares of odd digits in bags of test digits: true, and predicted by the {r.learners[1].name}."
        ),
        "A hard case: two bags with 60 % and 40 % of the first class, whose means lie on the wrong sides.",
        columns(*toys),
    ]
