"""Sets of graphs in the text format of TU Dortmund: one file for the edges, one for each kind of label."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mercer.data.graphs import Graphs, cumulated
from mercer.exceptions import DataFileError

__all__ = ["read_tu"]


def read_tu(path: str | os.PathLike[str], *, simplify: bool = False) -> tuple[Graphs, np.ndarray | None]:
    """Read a data set in the TU Dortmund text format: graphs and their labels.

    The files are ``NAME_A.txt`` (one edge per line: two nodes, counted from 1; all edges in both directions, or all in
    one), ``NAME_graph_indicator.txt`` (the graph of each node, counted from 1) and, optionally,
    ``NAME_graph_labels.txt``, ``NAME_node_labels.txt``, ``NAME_edge_labels.txt`` and ``NAME_node_attributes.txt``; each
    plain or compressed (``.gz``).

    Parameters
    ----------
    path : path
        The folder of the set, with files of one NAME; or folder and NAME (``graphs/MUTAG/MUTAG``).
    simplify : bool, default=False
        Drop self-loops and repeated edges, and complete missing directions, instead of raising an error.

    Returns
    -------
    graphs : Graphs
    labels : array of int, of float, or None
        A label for each graph, if the set has them.

    Raises
    ------
    DataFileError
        If a file is malformed: names the file and the line.

    Examples
    --------
    >>> from mercer.data import read_tu
    >>> graphs, y = read_tu("MUTAG")  # doctest: +SKIP
    """
    prefix = _tu_prefix(Path(path).expanduser())
    graph_of, graph_file = _tu_column(prefix, "graph_indicator", int)
    _check_tu_graphs(graph_of, graph_file)
    n_graphs = int(graph_of[-1]) if len(graph_of) else 0
    labels = None
    if _tu_file(prefix, "graph_labels") is None:
        if n_graphs > len(graph_of):
            raise DataFileError(
                graph_file, len(graph_of), f"{len(graph_of)} nodes and no labels of graphs, found the graph {n_graphs}"
            )
    else:
        labels, labels_file = _tu_column(prefix, "graph_labels", float)
        if len(labels) < n_graphs:
            raise DataFileError(
                labels_file, len(labels) + 1, f"{n_graphs} graphs need as many labels, found {len(labels)}"
            )
        n_graphs = len(labels)
        if (labels == np.round(labels)).all() and (np.abs(labels) < 2.0**63).all():
            labels = labels.astype(np.int64)
    offsets = cumulated(np.bincount(graph_of - 1, minlength=n_graphs))
    edges, edges_file = _tu_table(prefix, "A", int)
    if len(edges) and edges.shape[1] != 2:
        raise DataFileError(edges_file, 1, f"expected two nodes, found {edges.shape[1]} values")
    edges = edges.reshape(-1, 2)
    _check_tu_edges(edges, edges_file, graph_of)
    edges = edges - 1
    values = {}
    if _tu_file(prefix, "edge_labels") is not None:
        values["edge_labels"], _ = _tu_column(prefix, "edge_labels", int, len(edges), "edges")
    others: dict[str, Any] = {}
    if _tu_file(prefix, "node_labels") is not None:
        others["node_labels"], _ = _tu_column(prefix, "node_labels", int, len(graph_of), "nodes")
    if _tu_file(prefix, "node_attributes") is not None:
        attributes, file = _tu_table(prefix, "node_attributes", float)
        _check_tu_length(file, len(attributes), len(graph_of), "nodes")
        others["node_attributes"] = attributes
    try:
        graphs = Graphs.from_entries(offsets, edges[:, 0], edges[:, 1], values, simplify, one_way=True, **others)
    except ValueError as error:
        raise DataFileError(edges_file, _tu_line_of(edges), str(error)) from error
    return graphs, labels


def _check_tu_graphs(graph_of: np.ndarray, file: str) -> None:
    """Check the graph of each node: counted from 1, and not decreasing."""
    for line in np.flatnonzero(graph_of < 1)[:1]:
        raise DataFileError(file, int(line) + 1, f"graphs are counted from 1, found {graph_of[line]}")
    for line in np.flatnonzero(graph_of[1:] < graph_of[:-1])[:1]:
        raise DataFileError(file, int(line) + 2, "the graphs of the nodes must not decrease")


def _check_tu_edges(edges: np.ndarray, file: str, graph_of: np.ndarray) -> None:
    wrong = ((edges < 1) | (edges > len(graph_of))).any(axis=1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataFileError(
            file, at + 1, f"expected nodes from 1 to {len(graph_of)}, found {edges[at, 0]}, {edges[at, 1]}"
        )
    across = graph_of[edges[:, 0] - 1] != graph_of[edges[:, 1] - 1]
    if across.any():
        at = int(np.flatnonzero(across)[0])
        u, v = edges[at]
        raise DataFileError(
            file, at + 1, f"the nodes {u} and {v} lie in the graphs {graph_of[u - 1]} and {graph_of[v - 1]}"
        )


def _tu_line_of(edges: np.ndarray) -> int:
    """The line of the first self-loop or repeated edge; 1 if there is none."""
    loops = edges[:, 0] == edges[:, 1]
    if loops.any():
        return int(np.flatnonzero(loops)[0]) + 1
    _, first, counts = np.unique(edges, axis=0, return_index=True, return_counts=True)
    if (counts == 1).all():
        return 1
    repeated = np.ones(len(edges), bool)
    repeated[first] = False
    return int(np.flatnonzero(repeated)[0]) + 1


def _tu_prefix(path: Path) -> Path:
    if not path.is_dir():
        if _tu_file(path, "A") is None:
            raise FileNotFoundError(f"found neither the folder {path} nor the file {path}_A.txt (or .gz)")
        return path
    prefixes = sorted({file.name.removesuffix(".gz").removesuffix("_A.txt") for file in path.glob("*_A.txt*")})
    if not prefixes:
        raise FileNotFoundError(f"the folder {path} holds no file NAME_A.txt or NAME_A.txt.gz")
    if len(prefixes) > 1:
        raise ValueError(f"the folder {path} holds several sets ({', '.join(prefixes)}): give the folder and the name")
    return path / prefixes[0]


def _tu_file(prefix: Path, part: str) -> Path | None:
    for ending in (".txt", ".txt.gz"):
        candidate = prefix.with_name(f"{prefix.name}_{part}{ending}")
        if candidate.is_file():
            return candidate
    return None


def _tu_table(prefix: Path, part: str, kind: type) -> tuple[np.ndarray, str]:
    """All numbers of a file, a row a line, and the name of the file."""
    file = _tu_file(prefix, part)
    if file is None:
        raise FileNotFoundError(
            f"the data set {prefix.name} needs the file {prefix}_{part}.txt or {prefix}_{part}.txt.gz"
        )
    try:
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("ascii")
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise DataFileError(str(file), 1, f"cannot be unpacked: {error}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataFileError(str(file), line, "expected numbers, found bytes that are not ASCII") from error
    lines = text.rstrip().splitlines()
    if not lines:
        return np.zeros((0, 0), kind), str(file)
    try:
        table = np.loadtxt(lines, dtype=np.int64 if kind is int else np.float64, delimiter=",", ndmin=2, comments=None)
        if len(table) == len(lines) and np.isfinite(table).all():
            return table, str(file)
    except (ValueError, OverflowError):
        pass
    _blame_line(str(file), lines, kind)


def _blame_line(file: str, lines: list[str], kind: type) -> NoReturn:
    """Raise for the first malformed line."""
    width = len(lines[0].split(","))
    for number, line in enumerate(lines, 1):
        fields = line.split(",")
        if not line.strip():
            raise DataFileError(file, number, "the line is empty")
        if not all(_is_number(field, kind) for field in fields):
            raise DataFileError(
                file, number, f"expected {'integers' if kind is int else 'numbers'}, found {line.strip()!r}"
            )
        if len(fields) != width:
            raise DataFileError(file, number, f"expected {width} values as in line 1, found {len(fields)}")
    raise DataFileError(file, 1, "cannot be read as a table of numbers")


def _is_number(field: str, kind: type) -> bool:
    """Whether the text is an integer of 64 bits, or a finite number."""
    try:
        value = kind(field)
    except ValueError:
        return False
    return -(2**63) <= value < 2**63 if kind is int else math.isfinite(value)


def _tu_column(prefix: Path, part: str, kind: type, count: int | None = None, of: str = "") -> tuple[np.ndarray, str]:
    table, file = _tu_table(prefix, part, kind)
    if len(table) and table.shape[1] != 1:
        raise DataFileError(file, 1, f"expected one value a line, found {table.shape[1]}")
    if count is not None:
        _check_tu_length(file, len(table), count, of)
    return table.reshape(-1), file


def _check_tu_length(file: str, length: int, count: int, of: str) -> None:
    if length != count:
        raise DataFileError(
            file, min(length, count) + 1, f"expected {count} lines, one for each of the {of}, found {length}"
        )
