"""Graphs: many undirected simple graphs as one stacked adjacency in CSR form, with the offset of each graph.

Graph i holds the nodes ``offsets[i] .. offsets[i + 1]`` of the stack. The neighbours of node v of the stack are
``indices[indptr[v] : indptr[v + 1]]``: ascending, without v, and numbered within the graph (from 0), so that graphs can
be sliced and concatenated without renumbering. Every edge is stored in both directions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from mercer._state.values import Codec, Reader, Writer, register
from mercer._validation import check_offsets, check_sparse
from mercer._warnings import warn_caller
from mercer.data._indexing import chosen_items

__all__ = ["Graph", "Graphs", "as_graphs"]


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph of `Graphs`: views of its arrays.

    Examples
    --------
    >>> from mercer.data import Graphs
    >>> graph = Graphs.from_edges([[(0, 1), (1, 2)]])[0]
    >>> graph.n_nodes, graph.n_edges, graph.neighbours(1).tolist()
    (3, 2, [0, 2])
    >>> graph.edges.tolist()
    [[0, 1], [1, 2]]
    """

    indptr: np.ndarray
    """Offsets of the neighbours of each node."""
    indices: np.ndarray
    """Neighbours, node after node."""
    node_labels: np.ndarray | None = None
    """A label for each node."""
    node_attributes: np.ndarray | None = None
    """A row of numbers for each node."""
    edge_labels: np.ndarray | None = None
    """A label for each entry of ``indices``."""
    edge_weights: np.ndarray | None = None
    """A weight for each entry of ``indices``."""
    name: str | None = None
    """The name of the graph."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.indices) // 2

    @property
    def edges(self) -> np.ndarray:
        """The edges as rows (u, v) with u < v."""
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        upper = rows < self.indices
        return np.stack([rows[upper], self.indices[upper]], axis=1)

    def neighbours(self, node: int) -> np.ndarray:
        """Return the neighbours of a node, ascending."""
        v = range(self.n_nodes)[node]
        return self.indices[self.indptr[v] : self.indptr[v + 1]]

    def adjacency(self) -> Any:
        """Return the adjacency matrix in SciPy's CSR form: edge weights, or ones."""
        from scipy.sparse import csr_matrix

        values = np.ones(len(self.indices)) if self.edge_weights is None else self.edge_weights
        return csr_matrix((values, self.indices, self.indptr), shape=(self.n_nodes, self.n_nodes))


class Graphs:
    """A list of undirected simple graphs in one stacked adjacency.

    Make it with `from_networkx`, `from_scipy`, `from_edges` or `from_tu`. The constructor takes arrays in the stacked
    form and checks them.

    Parameters
    ----------
    offsets : array of int of shape (n_graphs + 1,)
        Graph i holds the nodes ``offsets[i] .. offsets[i + 1]``.
    indptr : array of int of shape (n_nodes + 1,)
        Offsets of the neighbours of each node of the stack in ``indices``.
    indices : array of int
        Neighbours, numbered from 0 within their graph: ascending for each node, without self-loops, every edge in both
        directions.
    node_labels : array of int or str of shape (n_nodes,), optional
        A label for each node.
    node_attributes : array of float of shape (n_nodes, n_attributes), optional
        Numbers for each node.
    edge_labels : array of int or str, optional
        A label for each entry of ``indices``, the same in both directions.
    edge_weights : array of float, optional
        A weight for each entry of ``indices``, the same in both directions.
    names : list of str, optional
        A name for each graph.

    Examples
    --------
    >>> from mercer.data import Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (2, 0)], [(0, 1)]], n_nodes=[3, 4])
    >>> graphs
    Graphs(2 graphs, 7 nodes, 4 edges)
    >>> len(graphs), graphs.sizes.tolist(), graphs[0].edges.tolist()
    (2, [3, 4], [[0, 1], [0, 2], [1, 2]])
    >>> graphs[1:] + graphs[:1] == graphs[[1, 0]]
    True
    """

    def __init__(
        self,
        offsets: Any,
        indptr: Any,
        indices: Any,
        *,
        node_labels: Any = None,
        node_attributes: Any = None,
        edge_labels: Any = None,
        edge_weights: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        given = np.asarray(indices)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError("indices must be a 1-D array of integers")
        self.indptr = check_offsets("indptr", indptr, len(given))
        n = len(self.indptr) - 1
        self.offsets = check_offsets("offsets", offsets, n)
        if self.sizes.max(initial=0) > np.iinfo(np.int32).max:
            raise ValueError("a graph may have at most 2^31 - 1 nodes")
        self._check_neighbours(given)
        self.indices = given.astype(np.int32)
        self.node_labels = None if node_labels is None else check_labels("node_labels", node_labels, n)
        self.node_attributes = None if node_attributes is None else _attributes(node_attributes, n)
        self.edge_labels = None if edge_labels is None else check_labels("edge_labels", edge_labels, len(given))
        self.edge_weights = None if edge_weights is None else _weights(edge_weights, len(given))
        self.names = None if names is None else [str(name) for name in names]
        if self.names is not None and len(self.names) != len(self):
            raise ValueError(f"names must hold one name for each of the {len(self)} graphs, got {len(self.names)}")
        self._check_symmetry()
        self._freeze()

    def _check_neighbours(self, indices: np.ndarray) -> None:
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        graph = self.graph_of_node[rows]
        local = rows - self.offsets[graph]
        wrong = (indices < 0) | (indices >= self.sizes[graph])
        if wrong.any():
            at = np.flatnonzero(wrong)[0]
            raise ValueError(f"graph {graph[at]}: node {local[at]} has the neighbour {indices[at]}, which is no node")
        if (indices == local).any():
            at = np.flatnonzero(indices == local)[0]
            raise ValueError(f"graph {graph[at]}: node {local[at]} is its own neighbour")
        falls = (rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])
        if falls.any():
            at = np.flatnonzero(falls)[0]
            raise ValueError(f"graph {graph[at]}: the neighbours of node {local[at]} must ascend, without repeats")

    def _check_symmetry(self) -> None:
        rows, columns = self._entries()
        back = np.lexsort((rows, columns))  # entries of the transposed matrix, in the order of this one
        if not (np.array_equal(rows[back], columns) and np.array_equal(columns[back], rows)):
            keys = rows * self.n_nodes + columns
            lonely = ~np.isin(columns * self.n_nodes + rows, keys)
            at = np.flatnonzero(lonely)[0]
            graph = self.graph_of_node[rows[at]]
            raise ValueError(
                f"graph {graph}: the edge {rows[at] - self.offsets[graph]}-{self.indices[at]} has only one direction"
            )
        for name, values in (("edge_labels", self.edge_labels), ("edge_weights", self.edge_weights)):
            if values is not None and (values[back] != values).any():
                at = np.flatnonzero(values[back] != values)[0]
                graph = self.graph_of_node[rows[at]]
                raise ValueError(
                    f"graph {graph}: the two directions of the edge {rows[at] - self.offsets[graph]}-"
                    f"{self.indices[at]} have different values in {name}"
                )

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of every stored entry, as nodes of the stack."""
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        return rows, self.indices + self.offsets[self.graph_of_node[rows]]

    def _freeze(self) -> None:
        for array in (self.offsets, self.indptr, self.indices, self.node_labels, self.node_attributes,
                      self.edge_labels, self.edge_weights):  # fmt: skip
            if array is not None:
                array.flags.writeable = False

    # ------------------------------------------------------------------ ways in

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Any],
        n_nodes: Iterable[int] | None = None,
        *,
        node_labels: Iterable[Any] | None = None,
        node_attributes: Iterable[Any] | None = None,
        edge_labels: Iterable[Any] | None = None,
        edge_weights: Iterable[Any] | None = None,
        names: Sequence[str] | None = None,
        simplify: bool = False,
    ) -> Graphs:
        """Build from lists of edges, one list a graph.

        Parameters
        ----------
        edges : iterable of lists of pairs, or of arrays of shape (n_edges, 2)
            Nodes are numbers from 0. Each edge of a graph is listed once, or each in both directions.
        n_nodes : iterable of int, optional
            Number of nodes of each graph; by default one more than the largest number in its edges.
        node_labels : iterable of lists of int or str, optional
            A label for each node, graph by graph.
        node_attributes : iterable of arrays of shape (n_nodes, n_attributes), optional
            A row of numbers for each node, graph by graph.
        edge_labels, edge_weights : iterable of lists, optional
            One value for each listed edge, graph by graph.
        names : list of str, optional
            A name for each graph.
        simplify : bool, default=False
            Drop self-loops and repeated edges (the first is kept) instead of raising an error.

        Examples
        --------
        >>> from mercer.data import Graphs
        >>> Graphs.from_edges([[(0, 1), (1, 2)], []], n_nodes=[3, 2], node_labels=[["C", "O", "C"], ["H", "H"]])
        Graphs(2 graphs, 5 nodes, 2 edges, node labels)
        """
        lists = [_edge_array(i, one) for i, one in enumerate(edges)]
        counts = np.array([len(one) for one in lists], np.int64)
        ends = np.concatenate([*lists, np.zeros((0, 2), np.int64)])
        largest = np.array([one.max(initial=-1) for one in lists], np.int64) + 1
        sizes = largest if n_nodes is None else np.array([_size(i, n) for i, n in enumerate(n_nodes)], np.int64)
        if len(sizes) != len(lists):
            raise ValueError(f"n_nodes must hold one number for each of the {len(lists)} graphs, got {len(sizes)}")
        for i in np.flatnonzero(largest > sizes)[:1]:
            raise ValueError(f"graph {i}: an edge names the node {largest[i] - 1}, the graph has {sizes[i]} nodes")
        offsets = cumulated(sizes)
        graph = np.repeat(np.arange(len(lists)), counts)
        values = {
            "edge_labels": _joined("edge_labels", edge_labels, counts, "edges"),
            "edge_weights": _joined("edge_weights", edge_weights, counts, "edges"),
        }
        return cls.from_entries(
            offsets,
            ends[:, 0] + offsets[graph],
            ends[:, 1] + offsets[graph],
            values,
            simplify,
            one_way=True,
            node_labels=_joined("node_labels", node_labels, sizes, "nodes"),
            node_attributes=_joined_rows(node_attributes, sizes),
            names=names,
        )

    @classmethod
    def from_scipy(
        cls,
        matrices: Iterable[Any],
        *,
        node_labels: Iterable[Any] | None = None,
        weighted: bool = False,
        names: Sequence[str] | None = None,
        simplify: bool = False,
    ) -> Graphs:
        """Build from adjacency matrices, sparse or dense: an entry other than 0 is an edge.

        Parameters
        ----------
        matrices : iterable of square sparse matrices or 2-D arrays
            Symmetric, with nothing on the diagonal.
        node_labels : iterable of lists of int or str, optional
            A label for each node, graph by graph.
        weighted : bool, default=False
            Keep the entries as ``edge_weights``.
        names : list of str, optional
            A name for each graph.
        simplify : bool, default=False
            Drop the diagonal, and add missing reverse entries, instead of raising an error.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.data import Graphs
        >>> Graphs.from_scipy([np.ones((3, 3)) - np.eye(3), np.zeros((2, 2))])
        Graphs(2 graphs, 5 nodes, 3 edges)
        """
        parts = [_matrix_entries(i, matrix) for i, matrix in enumerate(matrices)]
        offsets = cumulated(np.array([part[0] for part in parts], np.int64))
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(part[1] + start for part, start in zip(parts, offsets, strict=False))])
        columns = np.concatenate([none, *(part[2] + start for part, start in zip(parts, offsets, strict=False))])
        values = np.concatenate([np.zeros(0), *(part[3] for part in parts)]) if weighted else None
        labels = _joined("node_labels", node_labels, np.diff(offsets), "nodes")
        return cls.from_entries(
            offsets, rows, columns, {"edge_weights": values}, simplify, one_way=False, node_labels=labels, names=names
        )

    @classmethod
    def from_networkx(
        cls,
        graphs: Iterable[Any],
        *,
        node_label: str | None = "auto",
        edge_label: str | None = None,
        weight: str | None = None,
        simplify: bool = False,
    ) -> Graphs:
        """Build from networkx graphs. Nodes are numbered in the order of ``graph.nodes``.

        Parameters
        ----------
        graphs : iterable of networkx.Graph
            Undirected graphs; directed graphs and multigraphs only with ``simplify=True``.
        node_label : str or None, default="auto"
            The attribute that holds the label of a node (int or str). ``"auto"``: the only attribute that all nodes
            have, or the one named ``"label"``; other attributes are ignored with a warning. None: no labels.
        edge_label, weight : str, optional
            The attribute that holds the label of an edge, the weight of an edge.
        simplify : bool, default=False
            Drop directions, self-loops and repeated edges instead of raising an error.

        Examples
        --------
        >>> import networkx as nx
        >>> from mercer.data import Graphs
        >>> Graphs.from_networkx([nx.cycle_graph(5), nx.path_graph(4)])
        Graphs(2 graphs, 9 nodes, 8 edges)
        """
        items = list(graphs)
        if node_label == "auto":
            node_label = _only_attribute(items)
        edges: list[Any] = []
        labels: list[Any] = []
        edge_labels: list[Any] = []
        weights: list[Any] = []
        for i, graph in enumerate(items):
            if not simplify and (graph.is_directed() or graph.is_multigraph()):
                kind = "directed" if graph.is_directed() else "a multigraph"
                raise ValueError(f"graph {i} is {kind}: pass simplify=True to drop directions and repeated edges")
            number = {node: place for place, node in enumerate(graph.nodes)}
            edges.append([(number[u], number[v]) for u, v in graph.edges()])
            if node_label is not None:
                labels.append([_attribute(i, f"node {v!r}", data, node_label) for v, data in graph.nodes(data=True)])
            for name, kept in ((edge_label, edge_labels), (weight, weights)):
                if name is not None:
                    kept.append([_attribute(i, f"edge {u!r}-{v!r}", d, name) for u, v, d in graph.edges(data=True)])
        named = [graph.name for graph in items]
        return cls.from_edges(
            edges,
            [len(graph) for graph in items],
            node_labels=labels if node_label is not None else None,
            edge_labels=edge_labels if edge_label is not None else None,
            edge_weights=weights if weight is not None else None,
            names=named if any(named) else None,
            simplify=simplify,
        )

    @classmethod
    def from_tu(cls, path: str | os.PathLike[str], *, simplify: bool = False) -> Graphs:
        """Build from a data set in the TU Dortmund text format; `read_tu` also returns the labels of the graphs.

        Examples
        --------
        >>> from mercer.data import Graphs
        >>> Graphs.from_tu("MUTAG")  # doctest: +SKIP
        Graphs(188 graphs, 3371 nodes, 3721 edges, node labels, edge labels)
        """
        from mercer.data.readers.tu import read_tu

        return read_tu(path, simplify=simplify)[0]

    @classmethod
    def from_entries(
        cls,
        offsets: np.ndarray,
        rows: np.ndarray,
        columns: np.ndarray,
        values: dict[str, Any],
        simplify: bool,
        one_way: bool,
        **others: Any,
    ) -> Graphs:
        """Build from entries (row, column) of the stacked adjacency, in any order.

        Parameters
        ----------
        offsets : array of int of shape (n_graphs + 1,)
            Graph i holds the nodes ``offsets[i] .. offsets[i + 1]``.
        rows, columns : arrays of int
            The two ends of each entry, as nodes of the stack.
        values : dict
            ``edge_labels``, ``edge_weights``: one value for each entry, or None.
        simplify : bool
            Drop self-loops and repeated entries, and complete directions, instead of raising an error.
        one_way : bool
            Whether a graph may have each of its edges in one direction only.
        **others
            As in the constructor.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.data import Graphs
        >>> Graphs.from_entries(np.array([0, 2, 4]), np.array([1, 2]), np.array([0, 3]), {}, False, True)
        Graphs(2 graphs, 4 nodes, 2 edges)
        """
        n = int(offsets[-1])
        values = {name: np.asarray(v) for name, v in values.items() if v is not None}

        def fail(at: int, what: str, hint: str = "pass simplify=True to drop such edges") -> NoReturn:
            graph = int(np.searchsorted(offsets, rows[at], side="right")) - 1
            edge = f"{rows[at] - offsets[graph]}-{columns[at] - offsets[graph]}"
            raise ValueError(f"graph {graph}: {what.format(edge=edge)}; {hint}")

        def keep(chosen: np.ndarray) -> None:
            nonlocal rows, columns, values
            rows, columns = rows[chosen], columns[chosen]
            values = {name: v[chosen] for name, v in values.items()}

        loops = rows == columns
        if loops.any():
            if not simplify:
                fail(int(np.flatnonzero(loops)[0]), "the edge {edge} is a self-loop")
            keep(~loops)
        keep(np.argsort(rows * n + columns, kind="stable"))
        keys = rows * n + columns
        repeated = np.concatenate([np.zeros(min(1, len(keys)), bool), keys[1:] == keys[:-1]])
        if repeated.any():
            if not simplify:
                fail(int(np.flatnonzero(repeated)[0]), "the edge {edge} is given more than once")
            keep(~repeated)
            keys = keys[~repeated]
        back = columns * n + rows
        lonely = ~_contains(keys, back)
        if lonely.any():
            if not simplify:
                cls._check_directions(offsets, rows, lonely, one_way, fail)
            rows, columns = np.concatenate([rows, columns[lonely]]), np.concatenate([columns, rows[lonely]])
            values = {name: np.concatenate([v, v[lonely]]) for name, v in values.items()}
            keep(np.argsort(rows * n + columns, kind="stable"))
        if simplify and values:  # one value for both directions: that of the entry (u, v) with u < v
            place = np.searchsorted(rows * n + columns, np.minimum(rows, columns) * n + np.maximum(rows, columns))
            values = {name: v[place] for name, v in values.items()}
        indptr = cumulated(np.bincount(rows, minlength=n))
        starts = offsets[np.searchsorted(offsets, rows, side="right") - 1]
        return cls(offsets, indptr, columns - starts, **values, **others)

    @staticmethod
    def _check_directions(offsets: np.ndarray, rows: np.ndarray, lonely: np.ndarray, one_way: bool, fail: Any) -> None:
        hint = "pass simplify=True to take it for an edge"
        if not one_way:
            fail(
                int(np.flatnonzero(lonely)[0]), "the entry {edge} has no counterpart: the matrix is not symmetric", hint
            )
        graph = np.searchsorted(offsets, rows, side="right") - 1
        mixed = np.bincount(graph, weights=lonely, minlength=1) % np.maximum(np.bincount(graph, minlength=1), 1) != 0
        if mixed.any():
            at = np.flatnonzero(lonely & mixed[graph])[0]
            fail(int(at), "some edges are given in both directions, but {edge} in one only", hint)

    @classmethod
    def concatenate(cls, parts: Sequence[Graphs]) -> Graphs:
        """Concatenate graphs. All parts or none must have labels, attributes, weights and names.

        Examples
        --------
        >>> from mercer.data import Graphs
        >>> path = Graphs.from_edges([[(0, 1), (1, 2)]])
        >>> Graphs.concatenate([path, path, path])
        Graphs(3 graphs, 9 nodes, 6 edges)
        """
        if not parts:
            raise ValueError("nothing to concatenate")
        joined: dict[str, Any] = {}
        for name in ("node_labels", "node_attributes", "edge_labels", "edge_weights", "names"):
            values = [getattr(part, name) for part in parts]
            if all(value is None for value in values):
                continue
            if any(value is None for value in values):
                raise ValueError(f"some of the parts have {name} and some do not")
            if name == "names":
                joined[name] = list(chain.from_iterable(values))
                continue
            if len({value.dtype.kind for value in values}) > 1 or len({value.shape[1:] for value in values}) > 1:
                raise ValueError(f"the parts have different kinds of {name}")
            joined[name] = np.concatenate(values)
        return cls._trusted(
            cumulated(np.concatenate([part.sizes for part in parts])),
            cumulated(np.concatenate([np.diff(part.indptr) for part in parts])),
            np.concatenate([part.indices for part in parts]),
            joined,
        )

    @classmethod
    def _trusted(cls, offsets: np.ndarray, indptr: np.ndarray, indices: np.ndarray, others: dict[str, Any]) -> Graphs:
        """From parts of graphs that were checked before."""
        made = object.__new__(cls)
        made.offsets, made.indptr, made.indices = offsets, indptr, indices
        for name in ("node_labels", "node_attributes", "edge_labels", "edge_weights", "names"):
            setattr(made, name, others.get(name))
        made._freeze()
        return made

    # ------------------------------------------------------------------ what it is

    @property
    def sizes(self) -> np.ndarray:
        """Number of nodes of each graph."""
        return np.diff(self.offsets)

    @property
    def edge_counts(self) -> np.ndarray:
        """Number of edges of each graph."""
        return np.diff(self.indptr[self.offsets]) // 2

    @property
    def degrees(self) -> np.ndarray:
        """Number of neighbours of each node of the stack."""
        return np.diff(self.indptr)

    @property
    def n_nodes(self) -> int:
        """Number of nodes in all graphs together."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges in all graphs together."""
        return len(self.indices) // 2

    @property
    def graph_of_node(self) -> np.ndarray:
        """Return the graph number of each node of the stack."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def shape(self) -> tuple[int]:
        """Return (number of graphs,), for scikit-learn's splitters."""
        return (len(self),)

    @property
    def nbytes(self) -> int:
        """Bytes of the stacked arrays."""
        arrays = (self.offsets, self.indptr, self.indices, self.node_labels, self.node_attributes, self.edge_labels,
                  self.edge_weights)  # fmt: skip
        return sum(array.nbytes for array in arrays if array is not None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Graph]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        parts = [f"{len(self)} graphs", f"{self.n_nodes} nodes", f"{self.n_edges} edges"]
        for name in ("node_labels", "node_attributes", "edge_labels", "edge_weights", "names"):
            if getattr(self, name) is not None:
                parts.append(name.replace("_", " "))
        return f"Graphs({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graphs):
            return NotImplemented
        names = (
            "offsets",
            "indptr",
            "indices",
            "node_labels",
            "node_attributes",
            "edge_labels",
            "edge_weights",
            "names",
        )
        for name in names:
            a, b = getattr(self, name), getattr(other, name)
            if (a is None) != (b is None) or (a is not None and not np.array_equal(a, b)):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    # ------------------------------------------------------------------ parts of it, ways out

    def __getitem__(self, key: Any) -> Any:
        """Return a `Graph` for an int; Graphs for a slice, a list of ints or a boolean mask."""
        items = chosen_items(key, len(self), "graphs")
        if isinstance(items, int):
            return self._graph(items)
        if isinstance(items, slice):
            return self._run(items.start, items.stop)
        return self._gather(items)

    def _parts(self, nodes: Any, entries: Any) -> dict[str, Any]:
        pick = {"node_labels": nodes, "node_attributes": nodes, "edge_labels": entries, "edge_weights": entries}
        return {name: None if getattr(self, name) is None else getattr(self, name)[at] for name, at in pick.items()}

    def _bounds(self, start: int, stop: int) -> tuple[slice, slice]:
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return slice(first, last), slice(int(self.indptr[first]), int(self.indptr[last]))

    def _graph(self, i: int) -> Graph:
        nodes, entries = self._bounds(i, i + 1)
        indptr = self.indptr[nodes.start : nodes.stop + 1] - entries.start
        name = None if self.names is None else self.names[i]
        return Graph(indptr, self.indices[entries], name=name, **self._parts(nodes, entries))

    def _run(self, start: int, stop: int) -> Graphs:
        nodes, entries = self._bounds(start, stop)
        others = self._parts(nodes, entries) | {"names": None if self.names is None else self.names[start:stop]}
        offsets = self.offsets[start : stop + 1] - nodes.start
        indptr = self.indptr[nodes.start : nodes.stop + 1] - entries.start
        return Graphs._trusted(offsets, indptr, self.indices[entries], others)

    def _gather(self, chosen: np.ndarray) -> Graphs:
        nodes = _ranges(self.offsets[chosen], self.sizes[chosen])
        entries = _ranges(self.indptr[nodes], self.degrees[nodes])
        others = self._parts(nodes, entries)
        others["names"] = None if self.names is None else [self.names[i] for i in chosen]
        offsets, indptr = cumulated(self.sizes[chosen]), cumulated(self.degrees[nodes])
        return Graphs._trusted(offsets, indptr, self.indices[entries], others)

    def __add__(self, other: Graphs) -> Graphs:
        return Graphs.concatenate([self, other])

    def to_networkx(self) -> list[Any]:
        """Return networkx graphs with the attributes ``label``, ``attributes`` (nodes), ``label``, ``weight`` (edges).

        Examples
        --------
        >>> from mercer.data import Graphs
        >>> graph = Graphs.from_edges([[(0, 1)]], node_labels=[["C", "O"]]).to_networkx()[0]
        >>> graph.nodes[1]["label"], graph.number_of_edges()
        ('O', 1)
        """
        import networkx as nx

        made = []
        for graph in self:
            out = nx.Graph(name=graph.name) if graph.name is not None else nx.Graph()
            out.add_nodes_from(range(graph.n_nodes))
            rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
            upper = rows < graph.indices
            edges = list(zip(rows[upper].tolist(), graph.indices[upper].tolist(), strict=True))
            out.add_edges_from(edges)
            for name, values in (("label", graph.node_labels), ("attributes", graph.node_attributes)):
                if values is not None:
                    nx.set_node_attributes(out, dict(enumerate(values.tolist())), name)
            for name, values in (("label", graph.edge_labels), ("weight", graph.edge_weights)):
                if values is not None:
                    nx.set_edge_attributes(out, dict(zip(edges, values[upper].tolist(), strict=True)), name)
            made.append(out)
        return made


def as_graphs(X: Any, node_label: str | None = None) -> Graphs:
    """Convert to `Graphs` from `Graphs`, or a list of networkx graphs, adjacency matrices or edge lists.

    Parameters
    ----------
    X : Graphs or list
        A NumPy array or sparse matrix in a list is an adjacency matrix; a list of pairs is a list of edges.
    node_label : str, optional
        The attribute of networkx nodes that holds their label.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data.graphs import as_graphs
    >>> as_graphs([[(0, 1), (1, 2)], [(0, 1)]])
    Graphs(2 graphs, 5 nodes, 3 edges)
    """
    if isinstance(X, Graphs):
        return X
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise TypeError(f"expected Graphs or a list of graphs, got {type(X).__name__}")
    if hasattr(X, "tocsr") or hasattr(X, "is_directed"):
        raise TypeError("expected a list of graphs, got one: put it into a list")
    items = list(X)
    if not items:
        return Graphs.from_edges([])
    if all(isinstance(item, Graph) for item in items):
        return Graphs.concatenate([_alone(item) for item in items])
    if all(hasattr(item, "is_directed") and hasattr(item, "nodes") for item in items):
        return Graphs.from_networkx(items, node_label=node_label)
    if all(hasattr(item, "tocsr") or isinstance(item, np.ndarray) for item in items):
        return Graphs.from_scipy(items)
    if all(isinstance(item, (list, tuple, set, frozenset)) for item in items):
        return Graphs.from_edges(items)
    kinds = sorted({type(item).__name__ for item in items})
    raise TypeError(
        "expected Graphs, or a list of networkx graphs, of adjacency matrices or of edge lists, "
        f"got a list of {', '.join(kinds)}"
    )


def _alone(graph: Graph) -> Graphs:
    others = {
        "node_labels": graph.node_labels,
        "node_attributes": graph.node_attributes,
        "edge_labels": graph.edge_labels,
        "edge_weights": graph.edge_weights,
        "names": None if graph.name is None else [graph.name],
    }
    return Graphs._trusted(np.array([0, graph.n_nodes], np.int64), graph.indptr, graph.indices, others)


# ---------------------------------------------------------------------------------------------- checks of arrays


def cumulated(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, … (lengths[0] of them), starts[1], …"""
    ends = cumulated(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


def _contains(ascending: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if not len(ascending):
        return np.zeros(len(wanted), bool)
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return ascending[place] == wanted


def check_labels(name: str, values: Any, count: int) -> np.ndarray:
    """Return labels as an array of int64 or of strings, one for each of ``count`` items."""
    given = np.asarray(values)
    if given.dtype == object:
        if all(isinstance(value, str) for value in given.ravel()):
            given = given.astype(str)
        elif all(isinstance(value, (int, np.integer)) for value in given.ravel()):
            given = given.astype(np.int64)
    if given.size == 0 and given.dtype.kind == "f":
        given = given.astype(np.int64)
    if given.ndim != 1 or len(given) != count:
        raise ValueError(f"{name} must be a 1-D array of {count} labels, got an array of shape {given.shape}")
    if given.dtype.kind not in "iubU":
        raise ValueError(f"{name} must be all integers or all strings, got values of type {given.dtype}")
    if given.dtype.kind == "u" and given.size and given.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be below 2^63")
    return given.copy() if given.dtype.kind == "U" else given.astype(np.int64)


def _attributes(values: Any, count: int) -> np.ndarray:
    given = np.array(values, dtype=np.float64)
    if given.ndim != 2 or len(given) != count:
        raise ValueError(f"node_attributes must have shape ({count}, n_attributes), got {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError("node_attributes must be finite")
    return given


def _weights(values: Any, count: int) -> np.ndarray:
    given = np.array(values, dtype=np.float64)
    if given.ndim != 1 or len(given) != count:
        raise ValueError(f"edge_weights must hold one number for each of the {count} indices, got shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError("edge_weights must be finite")
    return given


def _edge_array(i: int, edges: Any) -> np.ndarray:
    given = np.asarray(edges if hasattr(edges, "__array__") else list(edges))
    if given.size == 0:
        return np.zeros((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            f"graph {i}: edges must be pairs of node numbers, got an array of shape {given.shape}, {given.dtype}"
        )
    if given.min() < 0:
        raise ValueError(f"graph {i}: an edge names the node {given.min()}; nodes are numbered from 0")
    if given.max() >= np.iinfo(np.int32).max:
        raise ValueError(f"graph {i}: an edge names the node {given.max()}; a graph may have at most 2^31 - 1 nodes")
    return given.astype(np.int64)


def _size(i: int, n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= np.iinfo(np.int32).max:
        raise ValueError(f"n_nodes must be integers of at least 0, got {n!r} for graph {i}")
    return int(n)


def _joined(name: str, lists: Iterable[Any] | None, counts: np.ndarray, of: str) -> np.ndarray | None:
    """Values given graph by graph, one after another."""
    if lists is None:
        return None
    items = [one if isinstance(one, np.ndarray) else np.asarray(list(one)) for one in lists]
    if len(items) != len(counts):
        raise ValueError(f"{name} must hold one list for each of the {len(counts)} graphs, got {len(items)}")
    for i, (one, count) in enumerate(zip(items, counts, strict=True)):
        if one.shape != (count,):
            raise ValueError(
                f"graph {i}: {name} must hold {count} values, one for each of its {of}, got shape {one.shape}"
            )
    items = [one for one in items if len(one)]
    if len({one.dtype.kind == "U" for one in items}) > 1:
        raise ValueError(f"{name} must be all strings or all numbers")
    return np.concatenate(items) if items else np.zeros(0, np.int64)


def _joined_rows(tables: Iterable[Any] | None, counts: np.ndarray) -> np.ndarray | None:
    """Rows of attributes given graph by graph, one below the other."""
    if tables is None:
        return None
    items = [np.asarray(table, float) for table in tables]
    if len(items) != len(counts):
        raise ValueError(f"node_attributes must hold a table for each of the {len(counts)} graphs, got {len(items)}")
    width = next((item.shape[1] for item in items if item.ndim == 2), 0)
    for i, (item, count) in enumerate(zip(items, counts, strict=True)):
        if item.shape != (count, width) and not (count == 0 and item.size == 0):
            raise ValueError(
                f"graph {i}: node_attributes must have a row for each of its {count} nodes and {width} columns, got "
                f"shape {item.shape}"
            )
    return np.concatenate([np.zeros((0, width)), *(item for item in items if len(item))])


def _matrix_entries(i: int, matrix: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Number of nodes, rows, columns and values of the entries other than 0."""
    if hasattr(matrix, "tocsr"):
        csr = check_sparse(f"graph {i}: the adjacency matrix", matrix).tocsr()
        shape, values, columns = csr.shape, csr.data, csr.indices
        rows = np.repeat(np.arange(shape[0]), np.diff(csr.indptr))
    else:
        dense = np.asarray(matrix)
        shape = dense.shape
        if dense.ndim == 2 and dense.dtype.kind in "fiub":
            rows, columns = np.nonzero(dense)
            values = dense[rows, columns]
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"graph {i}: an adjacency matrix must be square, got shape {shape}")
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(f"graph {i}: the entries of an adjacency matrix must be finite numbers")
    if (values == 0).any():  # stored zeros are no edges
        rows, columns, values = rows[values != 0], columns[values != 0], values[values != 0]
    return shape[0], rows.astype(np.int64), columns.astype(np.int64), values.astype(np.float64)


def _only_attribute(graphs: list[Any]) -> str | None:
    """The attribute of networkx nodes that can only be their label; warns where others are left out."""
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    shared = set.intersection(*map(set, nodes)) if nodes else set()
    plain = sorted(
        name for name in shared if isinstance(name, str) and all(isinstance(data[name], (str, int)) for data in nodes)
    )
    chosen = plain[0] if len(plain) == 1 else "label" if "label" in plain else None
    left = sorted({str(name) for data in nodes for name in data} - {chosen})
    if left and chosen is None:
        warn_caller(
            f"attributes of nodes are left out: {', '.join(left)}; node_label= names the one that holds labels (of all "
            "nodes, int or str), node_label=None says that there is none",
            UserWarning,
        )
    return chosen


def _attribute(i: int, what: str, data: dict[str, Any], name: str) -> Any:
    if name not in data:
        raise ValueError(f"graph {i}: {what} has no attribute {name!r}")
    return data[name]


# ---------------------------------------------------------------------------------------------------- model files

_PARTS = ("offsets", "indptr", "indices", "node_labels", "node_attributes", "edge_labels", "edge_weights")


def _write(graphs: Graphs, out: Writer) -> dict[str, Any]:
    parts = {part: out.node(getattr(graphs, part), part) for part in _PARTS}
    return {"parts": parts, "names": out.node(graphs.names, "names")}


def _read(node: dict[str, Any], source: Reader) -> Graphs:
    parts = {part: source.value(node["parts"][part]) for part in _PARTS}
    stacked = [parts.pop(part) for part in ("offsets", "indptr", "indices")]
    return Graphs(*stacked, **parts, names=source.value(node["names"]))


register(Graphs, Codec("graphs", _write, _read))
register(
    Graph,
    Codec("graph", lambda graph, out: _write(as_graphs([graph]), out), lambda node, source: _read(node, source)[0]),
    Codec("graph list", lambda graphs, out: _write(as_graphs(graphs), out), lambda *node: list(_read(*node))),
)
