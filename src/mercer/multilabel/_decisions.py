"""Map scores of labels to probabilities and label sets, calibrated on scores of held-out rows.

    calibration    P(label t | x) = 1 / (1 + exp(−(a_t g_t(x) + b_t))),  a_t ≥ 0   [Platt1999], with smoothed targets,
                   g = f / ‖f‖ where only the direction of a row of scores f was trained, else f
    thresholds     the label is predicted if P(label t | x) ≥ h, or ≥ h_t; h maximises the measure on held-out rows
    seen sets      the training label set y with the largest Σ_t log P(y_t | x) + τ (log P(y) − Σ_t log P(y_t)),
                   P(y), P(y_t) shares in training; τ from 0 (independent labels) to 1, by exact sets of held-out rows.
                   Of a machine with scores s_y(x) of the sets themselves also Σ_t log P(y_t | x) + v s_y(x), v likewise

The sign of a score would predict rare labels never or always, so thresholds come from probabilities of held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from mercer._state.saved import Csr, Fields, Flag, Floats, Number, Optional, Saved
from mercer._validation import check_choice, check_flag, check_positive
from mercer.learning.sigmoids import fit_sigmoids
from mercer.multilabel.label_forms import distinct

__all__ = ["MEASURES", "Decisions", "check_threshold"]

_BINS = 2000  # of probabilities, among which thresholds are chosen
_GRID = np.linspace(0.02, 0.98, 49)  # thresholds for measures of whole rows
_FEW = 64  # labels up to which dense products are the faster ones
_LEAST = 1e-4  # probabilities that count in products
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # τ
_OWN = (2.0, 5.0, 10.0, 20.0, 50.0)  # v


def _f1(tp: Any, given: Any, true: Any) -> Any:
    return 2 * tp / np.maximum(given + true, 1)


def _row_f1(Y: np.ndarray, P: np.ndarray, w: Any = None) -> float:
    both = Y.sum(axis=1) + P.sum(axis=1)
    return _mean(np.where(both == 0, 1.0, 2 * (Y & P).sum(axis=1) / np.maximum(both, 1)), w)


def _mean(rows: np.ndarray, w: Any) -> float:
    return float(np.average(rows, weights=w))


def _total(on: np.ndarray, w: Any) -> Any:
    """Rows with each label, or the sum of their weights."""
    return on.sum(axis=0) if w is None else w @ on


def _micro_f1(Y: np.ndarray, P: np.ndarray, w: Any = None) -> float:
    return float(_f1(_total(Y & P, w).sum(), _total(P, w).sum(), _total(Y, w).sum()))


MEASURES: dict[str, Callable[..., float]] = {
    "micro-f1": _micro_f1,
    "macro-f1": lambda Y, P, w=None: float(_f1(_total(Y & P, w), _total(P, w), _total(Y, w)).mean()),
    "example-f1": _row_f1,
    "hamming": lambda Y, P, w=None: _mean((Y == P).mean(axis=1), w),
    "subset": lambda Y, P, w=None: _mean((Y == P).all(axis=1), w),
}
"""(true label sets, given ones, weights of rows or None) → a number of which more is better."""


def check_threshold(threshold: Any, measure: Any) -> None:
    """Raise ValueError unless these are a threshold and a measure."""
    check_choice("measure", measure, tuple(MEASURES))
    if isinstance(threshold, str):
        check_choice("threshold", threshold, ("auto", "per-label"))
    elif threshold is not None and not 0 < check_positive("threshold", threshold) < 1:
        raise ValueError(f"threshold is a probability: it must lie between 0 and 1, got {threshold!r}")


class Decisions(Saved):
    """Probabilities and label sets from scores.

    Parameters
    ----------
    unit : bool, default=False
        Whether rows of scores are first scaled to unit length.

    Attributes
    ----------
    slopes_, offsets_ : array of shape (n_labels,)
        Slopes and offsets of the calibration.
    thresholds_ : array of shape (n_labels,)
        Probability thresholds of the labels.
    seen_ : sparse matrix of shape (n_sets, n_labels)
        The label sets of training.
    bonus_ : array of shape (n_sets,)
        Log-probability of a set minus that of the product of its labels, weighted by τ.
    by_sets_ : bool
        Whether seen sets decide, instead of thresholds.
    own_weight_ : float or None
        v, if scores of whole sets are used.
    """

    saved = Fields(
        slopes_=Floats(None, low=0.0),
        offsets_=Floats("slopes_"),
        thresholds_=Floats("slopes_", low=0.0, high=1.0),
        seen_=Csr(None, "slopes_"),
        bonus_=Floats("seen_"),
        by_sets_=Flag(),
        own_weight_=Optional(Number(0.0)),
    )

    own_weight_: float | None

    def __init__(self, unit: bool = False) -> None:
        self.unit = unit

    def fit(
        self,
        scores: np.ndarray,
        Y: sp.csr_matrix,
        threshold: Any = "auto",
        measure: str = "micro-f1",
        sets: bool | None = None,
        weights: np.ndarray | None = None,
        own: np.ndarray | None = None,
    ) -> Any:
        """Learn from scores of held-out rows, their labels and optional row weights.

        ``sets`` selects seen sets or thresholds; None: the better one by the measure on these rows. ``own`` holds
        scores of the distinct label sets of ``Y`` in the order of `distinct`.
        """
        on = Y.toarray() > 0
        self.slopes_, self.offsets_ = fit_sigmoids(self._scaled(scores), on, weights, rising=True)
        T = scores.shape[1]
        if threshold is None:
            self.thresholds_ = np.full(T, 0.5)
        elif isinstance(threshold, str):
            P = self.probabilities(scores)
            chosen = _by_label if threshold == "per-label" else _for_all
            self.thresholds_ = chosen(P, on, measure, weights)
        else:
            self.thresholds_ = np.full(T, float(threshold))
        self.seen_, kind = distinct(Y)
        self.bonus_ = np.zeros(self.seen_.shape[0])
        self.by_sets_, self.own_weight_ = bool(sets), None
        if sets is None and 2 * len(self.bonus_) > len(on):
            sets = False  # most sets occur once: they are no classes
        if sets is not False:
            P = self.probabilities(scores)
            self._weigh_sets(P, np.average(on, axis=0, weights=weights), kind, weights, own)
            if sets is None:
                by_sets, by_labels = self._most_likely(P, own).toarray() > 0, self.thresholds_ <= P
                self.by_sets_ = MEASURES[measure](on, by_sets, weights) > MEASURES[measure](on, by_labels, weights)
        return self

    def _weigh_sets(
        self,
        P: np.ndarray,
        shares: np.ndarray,
        kind: np.ndarray,
        weights: np.ndarray | None,
        own: np.ndarray | None,
    ) -> None:
        n, w = len(P), np.ones(len(P)) if weights is None else weights
        shares = np.clip(shares, 0.5 / n, 1 - 0.5 / n)
        alone = self.seen_ @ (np.log(shares) - np.log1p(-shares)) + np.log1p(-shares).sum()
        ahead = np.log(np.bincount(kind, w) / w.sum()) - alone
        steps = _WEIGHTS if own is None else (*_WEIGHTS, *_OWN)
        right = [0.0] * len(steps)
        for at in range(0, n, 1024):
            part = slice(at, at + 1024)
            likely = _set_scores(P[part], self.seen_)
            for i, step in enumerate(steps):
                added = step * ahead if i < len(_WEIGHTS) or own is None else step * own[part]
                right[i] += float(w[part] @ ((likely + added).argmax(axis=1) == kind[part]))
        best = int(np.argmax(right))
        if best < len(_WEIGHTS):
            self.bonus_ = steps[best] * ahead
        else:
            self.own_weight_ = steps[best]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of labels."""
        return expit(self._scaled(scores) * self.slopes_ + self.offsets_)

    def _scaled(self, scores: np.ndarray) -> np.ndarray:
        if not self.unit:
            return scores
        lengths = np.sqrt(np.einsum("ij,ij->i", scores, scores))[:, None]
        return np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)

    def label_sets(self, P: np.ndarray, own: np.ndarray | None = None) -> sp.csr_matrix:
        """Return the most likely label sets, or the labels whose probabilities reach the thresholds."""
        if self.by_sets_:
            return self._most_likely(P, own)
        return sp.csr_matrix((self.thresholds_ <= P).astype(np.float64))

    def _most_likely(self, P: np.ndarray, own: np.ndarray | None) -> sp.csr_matrix:
        chosen = []
        for at in range(0, len(P), 1024):
            likely = _set_scores(P[at : at + 1024], self.seen_) + self.bonus_
            if own is not None and self.own_weight_ is not None:
                likely += self.own_weight_ * own[at : at + 1024]
            chosen.append(likely.argmax(axis=1))
        return self.seen_[np.concatenate(chosen)] if chosen else self.seen_[:0]

    def _check_complete(self) -> None:
        if not hasattr(self, "slopes_"):
            raise ValueError("the decisions were not learnt yet")

    def _check_state(self) -> None:
        check_flag("unit", self.unit)
        if not np.isin(self.seen_.data, (0.0, 1.0)).all():
            raise ValueError("seen_ must hold 0 and 1")


def _set_scores(P: np.ndarray, sets: sp.csr_matrix) -> np.ndarray:
    """Σ_t log P(y_t) of each set, for each row of probabilities, less what all sets of a row share."""
    P = np.clip(P, _LEAST, 1 - _LEAST)
    odds = np.log(P) - np.log1p(-P)
    if sets.shape[1] <= _FEW:
        return odds @ sets.toarray().T
    return np.ascontiguousarray(np.asarray(sets @ odds.T).T)


def _histograms(P: np.ndarray, on: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """For each label and threshold k / bins: how many rows reach it, and how many of these have the label."""
    T = P.shape[1]
    cell = np.minimum((P * _BINS).astype(np.int64), _BINS - 1) + np.arange(T) * _BINS
    w = None if weights is None else np.repeat(weights, T)
    given = np.bincount(cell.ravel(), w, minlength=T * _BINS).reshape(T, _BINS)
    right = np.bincount(cell[on], None if w is None else w[on.ravel()], minlength=T * _BINS).reshape(T, _BINS)
    return np.cumsum(given[:, ::-1], axis=1)[:, ::-1], np.cumsum(right[:, ::-1], axis=1)[:, ::-1]


def _for_all(P: np.ndarray, on: np.ndarray, measure: str, weights: np.ndarray | None = None) -> np.ndarray:
    """One threshold for all labels; of equally good ones that nearest to the middle."""
    T = P.shape[1]
    if measure in ("example-f1", "subset"):
        values = np.array([MEASURES[measure](on, h <= P, weights) for h in _GRID])
        return np.full(T, _GRID[_middle_best(values)])
    given, right = _histograms(P, on, weights)
    count = _total(on, weights)
    if measure == "micro-f1":
        values = _f1(right.sum(axis=0), given.sum(axis=0), count.sum())
    elif measure == "macro-f1":
        values = _f1(right, given, count[:, None]).mean(axis=0)
    else:
        values = (2 * right - given).sum(axis=0)
    return np.full(T, max(_middle_best(values), 1) / _BINS)


def _by_label(P: np.ndarray, on: np.ndarray, measure: str, weights: np.ndarray | None = None) -> np.ndarray:
    """A threshold for each label: of its F1, or of its errors where the measure counts those."""
    given, right = _histograms(P, on, weights)
    known = _total(on, weights)[:, None]
    values = 2 * right - given if measure in ("hamming", "subset") else _f1(right, given, known)
    return np.array([max(_middle_best(row), 1) / _BINS for row in values])


def _middle_best(values: np.ndarray) -> int:
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return int(best[np.abs(best - len(values) / 2).argmin()])
