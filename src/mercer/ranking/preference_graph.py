"""Preferences between labels as directed graphs: a list of edges (u, v), u is preferred to v.

    a label      the star from it:       (y, v) for all v ≠ y
    label sets   bipartite:              (u, v) for all u in the set and v outside
    a ranking    the order's whole graph: (u, v) for all u before v

An edge from a label to itself, or a pair of labels preferred to each other, has no margin to learn and raises an error;
longer cycles are conflicting preferences, which a soft margin allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

__all__ = ["from_label", "from_multilabel", "from_ranking"]

Edge: TypeAlias = tuple[Any, Any]
Graph: TypeAlias = list[Edge]


def from_label(y: Sequence[Any], classes: Sequence[Any] | None = None) -> list[Graph]:
    """Convert each label to the star from it to all others: multiclass classification.

    Parameters
    ----------
    y : sequence of labels
    classes : sequence of labels, optional
        All labels; None: those in ``y``, sorted.

    Returns
    -------
    graphs : list of lists of edges

    Examples
    --------
    >>> from mercer.ranking import preference_graph
    >>> preference_graph.from_label(["a", "b"], classes=["a", "b", "c"])
    [[('a', 'b'), ('a', 'c')], [('b', 'a'), ('b', 'c')]]
    """
    labels = _plain(y)
    known = _classes(sorted(set(labels)) if classes is None else classes)
    for i, label in enumerate(labels):
        if label not in known:
            raise ValueError(f"y[{i}] is {label!r}, which is not in classes")
    return [[(label, other) for other in known if other != label] for label in labels]


def from_multilabel(Y: Any, classes: Sequence[Any] | None = None) -> list[Graph]:
    """Convert each set of labels to the bipartite graph from its labels to all others.

    Parameters
    ----------
    Y : array or sparse matrix of 0 and 1 (n_examples, n_labels), or a list of sets of labels
    classes : sequence of labels, optional
        All labels, one for each column of ``Y``; None: the column numbers, or the labels in the sets, sorted.

    Returns
    -------
    graphs : list of lists of edges
        Empty if an example has all labels or none.

    Examples
    --------
    >>> from mercer.ranking import preference_graph
    >>> preference_graph.from_multilabel([[1, 0, 1]])
    [[(0, 1), (2, 1)]]
    >>> preference_graph.from_multilabel([{"a"}, {"a", "b"}], classes=["a", "b", "c"])
    [[('a', 'b'), ('a', 'c')], [('a', 'c'), ('b', 'c')]]
    """
    if hasattr(Y, "toarray"):
        Y = Y.toarray()
    rows = list(Y)
    if all(isinstance(row, (set, frozenset)) for row in rows):
        known = _classes(sorted(set().union(*rows)) if classes is None else classes)
        sets = [set(_plain(row)) for row in rows]
        for i, labels in enumerate(sets):
            if labels - set(known):
                raise ValueError(f"Y[{i}] holds {min(labels - set(known))!r}, which is not in classes")
    else:
        matrix = np.asarray(Y)
        if matrix.ndim != 2 or not np.isin(matrix, (0, 1)).all():
            raise ValueError("Y must be a matrix of 0 and 1 with a column for each label, or a list of sets of labels")
        known = _classes(range(matrix.shape[1]) if classes is None else classes)
        if len(known) != matrix.shape[1]:
            raise ValueError(f"Y has {matrix.shape[1]} columns and classes {len(known)} labels")
        sets = [{known[k] for k in np.flatnonzero(row)} for row in matrix]
    return [[(u, v) for u in known if u in labels for v in known if v not in labels] for labels in sets]


def from_ranking(rankings: Iterable[Sequence[Any]]) -> list[Graph]:
    """Convert each ranking, best label first, to the graph of all its pairs; missing labels are not compared.

    Parameters
    ----------
    rankings : list of sequences of labels, or array (n_examples, n_labels)

    Returns
    -------
    graphs : list of lists of edges

    Examples
    --------
    >>> from mercer.ranking import preference_graph
    >>> preference_graph.from_ranking([["b", "a", "c"], ["c", "a"]])
    [[('b', 'a'), ('b', 'c'), ('a', 'c')], [('c', 'a')]]
    """
    graphs = []
    for i, ranking in enumerate(rankings):
        labels = _plain(ranking)
        if len(set(labels)) != len(labels):
            raise ValueError(f"rankings[{i}] names a label twice: {labels!r}")
        graphs.append(list(combinations(labels, 2)))
    return graphs


def check(graphs: Any) -> list[Graph]:
    """Return the graphs as lists of pairs of plain labels; raise ValueError for invalid graphs.

    Parameters
    ----------
    graphs : list of lists of edges

    Returns
    -------
    graphs : list of lists of edges

    Examples
    --------
    >>> from mercer.ranking import preference_graph
    >>> preference_graph.check([[(0, 1), (1, 0)]])
    Traceback (most recent call last):
    ...
    ValueError: y[0] prefers 0 to 1 and 1 to 0: no two labels may be preferred to each other
    """
    if isinstance(graphs, (str, bytes)) or not hasattr(graphs, "__iter__"):
        raise ValueError("y must be a list with a preference graph, a list of edges (u, v), for each example")
    return [_checked(graph, i) for i, graph in enumerate(graphs)]


def _checked(graph: Any, example: int) -> Graph:
    if isinstance(graph, (str, bytes)) or not hasattr(graph, "__iter__"):
        raise ValueError(f"y[{example}] must be a list of edges (u, v), got {graph!r}")
    edges: Graph = []
    seen: set[Edge] = set()
    for edge in graph:
        u, v = _ends(edge, example)
        if u == v:
            raise ValueError(f"y[{example}] prefers {u!r} to itself")
        if (v, u) in seen:
            raise ValueError(
                f"y[{example}] prefers {v!r} to {u!r} and {u!r} to {v!r}: no two labels may be preferred to each other"
            )
        if (u, v) in seen:
            raise ValueError(f"y[{example}] holds the edge {(u, v)!r} twice")
        seen.add((u, v))
        edges.append((u, v))
    return edges


def _ends(edge: Any, example: int) -> Edge:
    if not isinstance(edge, (str, bytes)):
        try:
            u, v = _plain(edge)
            hash((u, v))
            return u, v
        except (TypeError, ValueError):
            pass
    raise ValueError(f"y[{example}] must hold edges (u, v), got {edge!r}")


def _plain(values: Iterable[Any]) -> list[Any]:
    """A list of plain Python values: NumPy's scalars print and save badly."""
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _classes(classes: Iterable[Any]) -> list[Any]:
    known = _plain(classes)
    if len(set(known)) != len(known):
        raise ValueError("classes names a label twice")
    if len(known) < 2:
        raise ValueError(f"need at least two labels to prefer one to another, found {len(known)}")
    return known
