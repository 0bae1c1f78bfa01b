"""Losses of whole outputs; scores of trees by their brackets, and of clusterings by pairs, links and items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mercer.metrics.sequences import Labels, SpanScore, paired_sequences


def hamming_loss(y_true: Sequence[Labels], y_pred: Sequence[Labels], *, normalize: bool = True) -> float:
    """Return the share of wrong labels over sequences of any lengths, or their mean number per sequence.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
    normalize : bool, default=True
        True: wrong labels divided by all labels, 1 − :func:`token_accuracy`. False: the Hamming cost Δ of the margin
        losses, averaged over sequences.

    Returns
    -------
    loss : float

    Examples
    --------
    >>> from mercer.metrics import hamming_loss
    >>> hamming_loss([["a", "b"], ["a", "a", "c"]], [["a", "c"], ["b", "a", "c"]])
    0.4
    >>> hamming_loss([["a", "b"], ["a", "a", "c"]], [["a", "c"], ["b", "a", "c"]], normalize=False)
    1.0
    """
    pairs = paired_sequences(y_true, y_pred)
    wrong = sum(a != b for pair in pairs for a, b in zip(*pair, strict=True))
    total = sum(len(true) for true, _ in pairs) if normalize else len(pairs)
    if not total:
        raise ValueError(f"y_true holds no {'labels' if normalize else 'sequences'}, so there is no loss to compute")
    return wrong / total


def zero_one_loss(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Return the share of outputs with any error.

    Parameters
    ----------
    y_true, y_pred : list of outputs
        Label sequences, arrays, trees, alignments, or any objects that can be compared with ``==``. Sequences of
        different lengths are different.

    Returns
    -------
    loss : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import zero_one_loss
    >>> zero_one_loss([["a", "b"], np.array([1, 2])], [["a", "b"], np.array([1, 3])])
    0.5
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} outputs, but y_pred has {len(y_pred)}")
    if not len(y_true):
        raise ValueError("y_true holds no outputs, so there is no loss to compute")
    return sum(not _same(a, b) for a, b in zip(y_true, y_pred, strict=True)) / len(y_true)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    if hasattr(a, "__len__") and hasattr(b, "__len__") and hasattr(a, "__iter__") and not isinstance(a, dict | set):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def bracket_f1(y_true: Sequence[Any], y_pred: Sequence[Any], *, preterminals: bool = True) -> SpanScore:
    """Return precision, recall and F1 of the labelled brackets of trees, over all sentences together.

    Parameters
    ----------
    y_true, y_pred : list of trees
        Objects with a method ``spans(preterminals=…)`` that gives (label, start, end), such as
        :class:`mercer.parsing.Tree`. None in ``y_pred`` is a sentence without a parse, and has no brackets.
    preterminals : bool, default=True
        Whether a node directly above a single word is a bracket. With words as leaves these are parts of speech, which
        PARSEVAL excludes.

    Returns
    -------
    score : SpanScore
        ``precision``, ``recall``, ``f1`` and the counts. A bracket that occurs twice in a tree counts twice.

    Examples
    --------
    >>> from mercer.metrics import bracket_f1
    >>> from mercer.parsing import Tree
    >>> true = Tree.parse("(S (NP dogs) (VP chase (NP cats)))")
    >>> found = Tree.parse("(S (NP dogs) (VP chase) (NP cats))")
    >>> score = bracket_f1([true], [found])
    >>> score.precision, score.recall, score.f1
    (0.75, 0.75, 0.75)
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} trees and y_pred {len(y_pred)}; they must be as many")
    correct = predicted = true = 0
    for one, other in zip(y_true, y_pred, strict=True):
        wanted = Counter(one.spans(preterminals=preterminals))
        brackets = Counter(() if other is None else other.spans(preterminals=preterminals))
        correct += (wanted & brackets).total()
        predicted += brackets.total()
        true += wanted.total()
    return SpanScore.from_counts(support=true, predicted=predicted, correct=correct)


@dataclass(frozen=True)
class ClusterScore:
    """Precision, recall and F1 of a clustering.

    Attributes
    ----------
    precision, recall, f1 : float
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def from_shares(cls, precision: float, recall: float) -> ClusterScore:
        """Return the score with F1 the harmonic mean of the two.

        Examples
        --------
        >>> from mercer.metrics import ClusterScore
        >>> ClusterScore.from_shares(1.0, 0.5).f1
        0.6666666666666666
        """
        total = precision + recall
        return cls(precision, recall, 2 * precision * recall / total if total else 0.0)


def pairwise_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """Return precision, recall and F1 of the pairs of items in one cluster, over the pairs of each set.

    precision = pairs together in both / pairs together in the prediction, recall = the same / pairs together in truth;
    a share of zero pairs is 1, because there is no error.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence per set, with the cluster of each item. The names of the clusters do not matter.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import pairwise_score
    >>> pairwise_score([[0, 0, 0, 1]], [["x", "x", "y", "y"]])
    ClusterScore(precision=0.5, recall=0.3333333333333333, f1=0.4)
    """
    both = predicted = true = 0
    for a, b in paired_sequences(y_true, y_pred):
        both += _n_pairs(Counter(zip(a, b, strict=True)))
        true += _n_pairs(Counter(a))
        predicted += _n_pairs(Counter(b))
    return ClusterScore.from_shares(both / predicted if predicted else 1.0, both / true if true else 1.0)


def muc_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """Return the MUC score: the share of links of one clustering that the other clustering shares.

    A cluster S of n(S) items needs n(S) − 1 links; the other clustering, which divides it into p(S) parts, has n(S) −
    p(S) of them: recall is Σ_S (n(S) − p(S)) / Σ_S (n(S) − 1) over the true clusters S, and precision likewise over the
    predicted ones. Clusters of one item have no links, so the score ignores them; a share of zero links is 1.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence per set of items (a document), with the cluster of each item.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import muc_score
    >>> muc_score([[0, 0, 0, 0]], [[0, 0, 1, 1]])
    ClusterScore(precision=1.0, recall=0.6666666666666666, f1=0.8)
    """
    kept = true = predicted = 0
    for a, b in paired_sequences(y_true, y_pred):
        kept += len(a) - len(set(zip(a, b, strict=True)))  # the parts are the same, whichever clustering cuts the other
        true += len(a) - len(set(a))
        predicted += len(a) - len(set(b))
    return ClusterScore.from_shares(kept / predicted if predicted else 1.0, kept / true if true else 1.0)


def b_cubed_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """Return the B³ score: for each item the share of its cluster that is correct, averaged over all items.

    With the true cluster S and the predicted cluster T of an item, its precision is the share of T that is in S, its
    recall the share of S that is in T.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence per set of items (a document), with the cluster of each item.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import b_cubed_score
    >>> b_cubed_score([[0, 0, 0, 0]], [[0, 0, 1, 1]])
    ClusterScore(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """
    precision = recall = 0.0
    n = 0
    for a, b in paired_sequences(y_true, y_pred):
        true, predicted = Counter(a), Counter(b)
        for (s, t), count in Counter(zip(a, b, strict=True)).items():
            precision += count * count / predicted[t]
            recall += count * count / true[s]
        n += len(a)
    if not n:
        raise ValueError("y_true holds no items, so there is no score to compute")
    return ClusterScore.from_shares(precision / n, recall / n)


def _n_pairs(sizes: Counter[Any]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())
