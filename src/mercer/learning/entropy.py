"""The entropy of p̄(y | x) along a path of C: the confidence of a model as its penalty gets weaker.

With the softmax-margin loss p̄(z) ∝ exp(score(z) + Δ(y, z)); with the log loss Δ = 0. Where ½‖w‖² + C Σ loss is least,
w = C Σ_i (Φ(x_i, y_i) − E_p̄ Φ(x_i, ·)), and with H the entropy of p̄

    Σ_i [log p̄(y_i) + H(p̄_i) + E_p̄ Δ(y_i, ·)] = ‖w‖² / C.

A strong penalty makes the left side small: in this sense regularisation maximises entropy. (Publications omit E_p̄ Δ,
which is correct only for the log loss.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._validation import check_positive
from mercer.learning.losses import Log, SoftmaxMargin, Tempered

__all__ = ["EntropyPath", "entropy_path"]


@dataclass(frozen=True)
class EntropyPath:
    """The result of :func:`entropy_path`: one value for each C.

    Attributes
    ----------
    C : array of shape (n,)
    entropy : array of shape (n,)
        Mean entropy of p̄(y | x) over the examples, in nats.
    log_likelihood : array of shape (n,)
        Mean log p̄ of the true outputs.
    expected_cost : array of shape (n,)
        Mean of E_p̄ Δ(y, ·); 0 for the log loss.
    norm : array of shape (n,)
        ‖w‖².
    largest : array of shape (n,)
        log of the number of outputs, averaged over the examples: the entropy at C → 0 of the log loss; NaN if the
        structure does not count its outputs.
    n_examples : int
    """

    C: np.ndarray
    entropy: np.ndarray
    log_likelihood: np.ndarray
    expected_cost: np.ndarray
    norm: np.ndarray
    largest: np.ndarray
    n_examples: int

    @property
    def residual(self) -> np.ndarray:
        """Return Σ_i [log p̄(y_i) + H(p̄_i) + E_p̄ Δ] − ‖w‖² / C, divided by n_examples; 0 at the optimum."""
        return self.log_likelihood + self.entropy + self.expected_cost - self.norm / (self.C * self.n_examples)


def entropy_path(model: Any, X: Any, y: Any, Cs: Sequence[float] = (0.01, 0.1, 1.0, 10.0)) -> EntropyPath:
    """Fit a model for each C and return the entropy of its distributions on the training data.

    Parameters
    ----------
    model : StructuredEstimator
        With the log loss or softmax-margin and ``penalty="l2"``: a ``Tagger``, ``Segmenter``, ``GraphLabeler``, … It is
        copied, not changed.
    X, y : training data
    Cs : sequence of float, default=(0.01, 0.1, 1.0, 10.0)
        Weights of the loss, each above 0; smaller values regularise more.

    Returns
    -------
    path : EntropyPath

    Examples
    --------
    >>> from mercer import Tagger
    >>> from mercer.learning import entropy_path
    >>> X = [[["warm"], ["wet"], ["wet"]], [["wet"], ["warm"], ["warm"]]]
    >>> y = [["sun", "rain", "sun"], ["rain", "sun", "sun"]]
    >>> path = entropy_path(Tagger(tol=1e-10), X, y, Cs=(0.01, 1.0, 100.0))
    >>> path.entropy.round(2)
    array([2.08, 1.6 , 0.13])
    """
    strengths = np.array([check_positive("Cs", C) for C in Cs])
    if not len(strengths):
        raise ValueError("Cs must hold a number: the weights of the loss")
    if getattr(model, "penalty", None) != "l2":
        raise ValueError(f"model must have penalty='l2', got {getattr(model, 'penalty', None)!r}")
    rows = []
    last = None
    for C in strengths:
        fitted = clone(model).set_params(C=float(C))
        loss = fitted._loss()
        if not isinstance(loss, (Log, SoftmaxMargin)):
            hint = "; a tempered loss with β = 1 is softmax-margin" if isinstance(loss, Tempered) else ""
            raise ValueError(f"model must have the loss 'log' or 'softmax-margin', got {loss.name!r}{hint}")
        fitted.fit(X, y)
        rows.append(_figures(fitted, X, y, loss))
        last = fitted
    assert last is not None
    inputs, _ = last._read(X, y)
    try:
        largest = float(np.mean(last._structure().log_cardinality(inputs)))
    except NotImplementedError:
        largest = float("nan")
    entropy, likelihood, cost, norm = (np.array(column) for column in zip(*rows, strict=True))
    return EntropyPath(strengths, entropy, likelihood, cost, norm, np.full(len(strengths), largest), len(inputs))


def _figures(model: Any, X: Any, y: Any, loss: Any) -> tuple[float, float, float, float]:
    """Means of entropy, log p̄(y) and expected cost, and ‖w‖²."""
    inputs, truth = model._read(X, y)
    structure, w = model._structure(), model._flat(model)
    entropy = likelihood = cost = 0.0
    for batch, theta in model._scores(inputs):
        known, plain = truth[batch], theta
        if structure.is_partial(known):
            raise ValueError("entropy_path needs fully known outputs")
        if isinstance(loss, SoftmaxMargin):
            bound: Any = loss.for_labels(_labels(model))
            theta = structure.augment(theta, known, bound.cost)
        log_z = structure.log_partition(theta)
        entropy += float(structure.entropy(theta).sum())
        likelihood += float((structure.score(plain, known) - log_z).sum())
        if theta is not plain:  # log Z − H(p̄) is E_p̄ [score + Δ], and E_p̄ score is ⟨w, E_p̄ Φ⟩
            features = np.zeros(len(w))
            structure.backward(inputs[batch], structure.marginals(theta), features)
            cost += float((log_z - structure.entropy(theta)).sum() - w @ features)
    n = max(1, len(inputs))
    return entropy / n, likelihood / n, cost / n, float(w @ w)


def _labels(model: Any) -> list[Any]:
    return model.classes_.tolist() if hasattr(model, "classes_") else []
