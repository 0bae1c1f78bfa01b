"""Evaluation on held-out data: confusion matrix, scores per class, calibration, and the worst errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.report.portrait import Block, Curves, Facts, Listing, Matrix

__all__ = ["examined", "examined_numbers", "examined_tags"]

_MOST_CLASSES = 40
_BINS = 10


def examined(
    truth: Any,
    predicted: Any,
    *,
    confidence: Any = None,
    of_truth: Any = None,
    shown: Callable[[int], str] | None = None,
    worst: int = 10,
    what: str = "examples",
    score: str = "p(true)",
    facts: bool = True,
) -> list[Block]:
    """Return blocks that compare predicted with true labels.

    Parameters
    ----------
    truth, predicted : sequence of n labels
    confidence : array of n probabilities, optional
        p(predicted label), for the calibration curve.
    of_truth : array of n probabilities, optional
        p(true label): the examples with the lowest values are the worst errors.
    shown : function, optional
        Function that returns the text shown for example i.
    worst : int, default=10
        Number of worst errors to list.
    what : str, default="examples"
        Name of the counted items.
    score : str, default="p(true)"
        Name of ``of_truth`` if it is not a probability.
    facts : bool, default=True
        Whether to start with the accuracy.

    Returns
    -------
    list of blocks
        See `mercer.report.portrait`; `mercer.report.model.blocks_html` draws them.

    Examples
    --------
    >>> from mercer.report.examined import examined
    >>> blocks = examined(["a", "b", "b"], ["a", "a", "b"], of_truth=[0.9, 0.2, 0.8])
    >>> [block.title for block in blocks]
    ['Held-out data', 'Classes', 'Confusion', 'Most wrong']
    """
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.ndim != 1 or not len(truth):
        raise ValueError(
            f"truth and predicted must have the same positive number of labels, got {truth.shape} and {predicted.shape}"
        )
    names = np.unique(np.concatenate([truth, predicted]))
    rows, columns = np.searchsorted(names, truth), np.searchsorted(names, predicted)
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (rows, columns), 1)
    right = truth == predicted
    usual = counts.sum(axis=1).max() / len(truth)
    figures = [(what, f"{len(truth):,}"), ("accuracy", f"{right.mean():.4f}"), ("most frequent class", f"{usual:.4f}")]
    blocks: list[Block] = [*([Facts(figures, "Held-out data")] if facts else []), _classes(counts, names)]
    if len(names) <= _MOST_CLASSES:
        shares = np.round(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), 2)
        labels = [str(name) for name in names]
        caption = "Share of the predicted labels among the examples of each true label."
        blocks.append(Matrix("Confusion", shares, labels, labels, caption, "", False, "true", "predicted"))
    if confidence is not None:
        blocks.append(calibration(np.asarray(confidence, float), right))
    if of_truth is not None:
        blocks += _worst(truth, predicted, np.asarray(of_truth, float), shown, worst, score)
    return blocks


def _classes(counts: np.ndarray, names: np.ndarray) -> Listing:
    correct, true, said = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    order = np.argsort(-true, kind="stable")[:_MOST_CLASSES]
    rows = []
    for k in order.tolist():
        precision, recall = correct[k] / max(1, said[k]), correct[k] / max(1, true[k])
        f1 = 2 * correct[k] / max(1, said[k] + true[k])
        rows.append([str(names[k]), *(f"{v:.4f}" for v in (precision, recall, f1)), f"{true[k]:,}", f"{said[k]:,}"])
    note = "" if len(names) <= _MOST_CLASSES else f"The {_MOST_CLASSES} most frequent of {len(names)} classes."
    return Listing("Classes", ["class", "precision", "recall", "F1", "true", "predicted"], rows, "lrrrrr", note)


def calibration(confidence: np.ndarray, right: np.ndarray, what: str = "share right") -> Curves:
    """Return accuracy against confidence, in bins with equal numbers of examples."""
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, min(_BINS, len(order))) if len(part)]
    x = [float(confidence[part].mean()) for part in parts]
    y = [float(right[part].mean()) for part in parts]
    error = sum(len(part) * abs(a - b) for part, a, b in zip(parts, x, y, strict=True)) / len(order)
    caption = (
        f"Calibration: accuracy against predicted probability, in {len(parts)} "
        f"bins of equal size. Mean distance {error:.4f}."
    )
    ends = [min(*x, *y), 1.0] if len(x) > 1 else [0.0, 1.0]
    return Curves("Calibration", {"right": (x, y)}, "probability", what, caption, line=(ends, ends))


def _worst(
    truth: np.ndarray,
    predicted: np.ndarray,
    of_truth: np.ndarray,
    shown: Callable[[int], str] | None,
    worst: int,
    score: str,
) -> list[Block]:
    wrong = np.flatnonzero(truth != predicted)
    if not len(wrong):
        return []
    order = wrong[np.argsort(of_truth[wrong], kind="stable")][:worst]
    rows = [
        [str(truth[i]), str(predicted[i]), f"{of_truth[i]:.4f}", f"{i + 1:,}" if shown is None else _short(shown(i))]
        for i in order.tolist()
    ]
    note = f"{len(rows)} of {len(wrong):,} errors, most confident first."
    header = ["true", "predicted", score, "number" if shown is None else "example"]
    return [Listing("Most wrong", header, rows, "llrr" if shown is None else "llrl", note)]


def examined_numbers(
    truth: Any, predicted: Any, shown: Callable[[int], str] | None = None, worst: int = 10, *, facts: bool = True
) -> list[Block]:
    """Return blocks that compare predicted with true numbers.

    Parameters
    ----------
    truth, predicted : array of n numbers
    shown : function, optional
        Function that returns the text shown for example i.
    worst : int, default=10
        Number of worst errors to list.
    facts : bool, default=True
        Whether to start with the errors.

    Returns
    -------
    list of blocks
    """
    truth, predicted = np.asarray(truth, float), np.asarray(predicted, float)
    if truth.shape != predicted.shape or not len(truth):
        raise ValueError(
            f"truth and predicted must have the same positive number of values, got {truth.shape} and {predicted.shape}"
        )
    error = predicted - truth
    spread = float(np.square(truth - truth.mean()).sum())
    figures = [
        ("examples", f"{len(truth):,}"),
        ("mean absolute error", f"{np.abs(error).mean():.4g}"),
        ("root mean squared error", f"{np.sqrt(np.square(error).mean()):.4g}"),
        *([("R²", f"{1 - float(error @ error) / spread:.4f}")] if spread > 0 else []),
    ]
    order = np.argsort(-np.abs(error), kind="stable")[:worst]
    rows = [
        [f"{truth[i]:.4g}", f"{predicted[i]:.4g}", f"{i + 1:,}" if shown is None else _short(shown(i))]
        for i in order.tolist()
    ]
    parts = [part for part in np.array_split(np.argsort(predicted, kind="stable"), min(_BINS, len(truth))) if len(part)]
    x, y = ([float(values[part].mean()) for part in parts] for values in (predicted, truth))
    ends = [min(*x, *y), max(*x, *y)] if len(x) > 1 else [0.0, 1.0]
    caption = f"Mean truth against mean prediction, in {len(parts)} bins of equal size."
    return [
        *([Facts(figures, "Held-out data")] if facts else []),
        Curves("Calibration", {"mean truth": (x, y)}, "prediction", "truth", caption, line=(ends, ends)),
        Listing("Most wrong", ["true", "predicted", "number" if shown is None else "example"], rows, "rrl"),
    ]


def _short(text: str, most: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def examined_tags(
    X: Any,
    y: Any,
    predicted: Any,
    marginals: Any = None,
    classes: Sequence[Any] = (),
    worst: int = 10,
    *,
    spans: bool = False,
    facts: bool = True,
) -> list[Block]:
    """Return blocks that compare predicted with true labels of sentences, token by token.

    Parameters
    ----------
    X : list of sentences
        Sentences of tokens: words, or tuples that begin with the word.
    y, predicted : list of label sequences
    marginals : list of arrays (tokens, classes), optional
        p(label) of every token.
    classes : sequence
        The labels of the columns of ``marginals``.
    worst : int, default=10
        Number of worst errors to list.
    spans : bool, default=False
        Whether ``classes`` are the names of spans (``NP``) and labels are tags (``B-NP``). In this case there is no
        calibration curve, because the marginals do not determine where spans begin.
    facts : bool, default=True
        Whether to start with the accuracy.

    Returns
    -------
    list of blocks
    """
    truth, answer = flattened(y), flattened(predicted)
    places = [(i, t) for i, labels in enumerate(y) for t in range(len(labels))]
    sure = of_truth = None
    if marginals is not None:
        p = np.concatenate(marginals)
        number = {label: k for k, label in enumerate(classes)}
        at = np.array([number.get(label[2:] if spans and label != "O" else label, -1) for label in truth])
        of_truth = np.where(at >= 0, p[np.arange(len(p)), at], 0.0)
        sure = None if spans else p[np.arange(len(p)), [number[label] for label in answer]]

    def context(k: int) -> str:
        i, t = places[k]
        words = [token if isinstance(token, str) else str(token[0]) for token in X[i]]
        return " ".join([*words[max(0, t - 4) : t], f"[{words[t]}]", *words[t + 1 : t + 5]])

    return examined(
        truth, answer, confidence=sure, of_truth=of_truth, shown=context, worst=worst, what="tokens", facts=facts
    )


def flattened(sequences: Sequence[Sequence[Any]]) -> list[Any]:
    """Return all items of all sequences."""
    return [item for sequence in sequences for item in sequence]
