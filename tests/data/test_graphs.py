"""Graphs keep what they are given, whatever it comes from, and refuse what is not an undirected simple graph."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from mercer.data import DataFileError, Graph, Graphs, read_tu
from mercer.data.graphs import as_graphs

nx = pytest.importorskip("networkx")


def sample(count: int = 6, seed: int = 0) -> list[nx.Graph]:
    made = []
    for i in range(count):
        graph = nx.gnp_random_graph(3 * i, 0.4, seed=seed + i)  # the first has no nodes
        nx.set_node_attributes(graph, {v: f"n{v % 2}" for v in graph}, "kind")
        nx.set_edge_attributes(graph, {(u, v): u + v for u, v in graph.edges}, "order")
        nx.set_edge_attributes(graph, {(u, v): 0.5 * u * v for u, v in graph.edges}, "weight")
        graph.name = f"graph {i}"
        made.append(graph)
    return made


def stacked(graphs: list[nx.Graph]) -> Graphs:
    return Graphs.from_networkx(graphs, node_label="kind", edge_label="order", weight="weight")


# ---------------------------------------------------------------------------------------------- ways in and out


def test_networkx_graphs_come_back():
    originals = sample()
    graphs = stacked(originals)
    assert (
        repr(graphs)
        == f"Graphs(6 graphs, 45 nodes, {graphs.n_edges} edges, node labels, edge labels, edge weights, names)"
    )
    for found, graph in zip(graphs.to_networkx(), originals, strict=True):
        assert set(found.nodes) == set(graph.nodes)
        assert {frozenset(e) for e in found.edges} == {frozenset(e) for e in graph.edges}
        assert found.name == graph.name
        for u, v in graph.edges:
            assert found.edges[u, v] == {"label": u + v, "weight": 0.5 * u * v}
        for v in graph:
            assert found.nodes[v]["label"] == graph.nodes[v]["kind"]


def test_all_ways_in_agree():
    originals = [g for g in sample() if len(g)]
    expected = Graphs.from_networkx(originals)
    expected = Graphs(expected.offsets, expected.indptr, expected.indices)
    sizes = [len(g) for g in originals]
    for found in (
        Graphs.from_scipy([nx.to_numpy_array(g, weight=None) for g in originals]),
        Graphs.from_scipy([nx.to_scipy_sparse_array(g, weight=None, format="coo") for g in originals]),
        Graphs.from_edges([list(g.edges) for g in originals], sizes),
        Graphs.from_edges([[(v, u) for u, v in g.edges] for g in originals], sizes),
        Graphs.from_edges([[*g.edges, *((v, u) for u, v in g.edges)] for g in originals], sizes),
        Graphs.from_edges([np.array(g.edges).reshape(-1, 2) for g in originals], sizes),
        as_graphs(list(expected)),
    ):
        assert found == expected


def test_nodes_of_any_kind_are_numbered_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from(["z", "a", ("m", 1)])
    graph.add_edge("a", "z")
    assert Graphs.from_networkx([graph])[0].edges.tolist() == [[0, 1]]


def test_weights_and_labels_of_edges_follow_them():
    graphs = Graphs.from_edges([[(2, 0), (1, 2)]], edge_labels=[["x", "y"]], edge_weights=[[1.5, 2.5]])
    graph = graphs[0]
    assert graph.indices.tolist() == [2, 2, 0, 1]
    assert graph.edge_labels.tolist() == ["x", "y", "x", "y"]
    assert graph.adjacency().toarray().tolist() == [[0, 0, 1.5], [0, 0, 2.5], [1.5, 2.5, 0]]
    weighted = Graphs.from_scipy([graph.adjacency()], weighted=True)
    assert weighted.edge_weights.tolist() == [1.5, 2.5, 1.5, 2.5]


def test_empty_things_are_fine():
    nothing = Graphs.from_edges([])
    assert (len(nothing), nothing.n_nodes, nothing.to_networkx()) == (0, 0, [])
    assert nothing == Graphs.from_networkx([]) == Graphs.from_scipy([]) == nothing[:] == as_graphs([])
    hollow = Graphs.from_edges([[], [], []], n_nodes=[0, 3, 0])
    assert (hollow.sizes.tolist(), hollow.edge_counts.tolist()) == ([0, 3, 0], [0, 0, 0])
    assert hollow[1].edges.shape == (0, 2)
    assert Graphs.from_scipy([np.zeros((0, 0)), sparse.csr_matrix((3, 3)), np.zeros((0, 0))]) == hollow


def test_stored_zeros_are_no_edges():
    matrix = sparse.csr_matrix(([0.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert Graphs.from_scipy([matrix]).n_edges == 0


# ---------------------------------------------------------------------------------------------- parts


@given(st.data())
def test_parts_are_those_of_a_list(data):
    graphs = stacked(sample())
    pieces = [graphs[i : i + 1] for i in range(len(graphs))]
    start, stop, step = (
        data.draw(st.integers(-8, 8)),
        data.draw(st.integers(-8, 8)),
        data.draw(st.sampled_from([None, 1, 2, -1])),
    )
    chosen = pieces[start:stop:step]
    expected = Graphs.concatenate(chosen) if chosen else graphs[:0]
    assert graphs[start:stop:step] == expected
    places = data.draw(st.lists(st.integers(-6, 5), max_size=8))
    expected = Graphs.concatenate([pieces[i] for i in places]) if places else graphs[:0]
    assert graphs[places] == expected


def test_one_graph_has_its_own_arrays():
    graph = stacked(sample())[2]
    assert isinstance(graph, Graph)
    assert (graph.n_nodes, graph.name) == (6, "graph 2")
    assert graph.edges.tolist() == [list(e) for e in sample()[2].edges]
    for v in range(6):
        assert graph.neighbours(v).tolist() == sorted(sample()[2][v])
    with pytest.raises(IndexError):
        graph.neighbours(6)


def test_masks_iteration_and_pickling():
    graphs = stacked(sample())
    assert graphs[graphs.sizes > 6] == graphs[3:]
    assert [g.n_nodes for g in graphs] == graphs.sizes.tolist()
    assert pickle.loads(pickle.dumps(graphs)) == graphs
    assert graphs[:3] + graphs[3:] == graphs
    assert graphs != graphs[:3]
    assert graphs != "graphs"
    assert (graphs.n_nodes, graphs.degrees.sum()) == (45, 2 * graphs.n_edges)
    assert graphs.nbytes > 0
    with pytest.raises(ValueError, match="read-only"):
        graphs.indices[0] = 3
    for wrong in ([99], np.zeros(3, bool), "a", [0.5]):
        with pytest.raises(IndexError):
            graphs[wrong]


def test_scikit_learn_splits_them():
    graphs = stacked(sample())
    for train, test in KFold(3).split(graphs):
        assert len(_safe_indexing(graphs, train)) + len(_safe_indexing(graphs, test)) == 6


def test_parts_that_do_not_fit_are_not_joined():
    plain, named = Graphs.from_edges([[(0, 1)]]), Graphs.from_edges([[(0, 1)]], node_labels=[["a", "b"]])
    with pytest.raises(ValueError, match="some of the parts have node_labels"):
        plain + named
    with pytest.raises(ValueError, match="different kinds of node_labels"):
        named + Graphs.from_edges([[(0, 1)]], node_labels=[[1, 2]])
    with pytest.raises(ValueError, match="nothing"):
        Graphs.concatenate([])


# ---------------------------------------------------------------------------------------------- what is refused

LOOP, TWICE, MIXED = [(0, 1), (1, 1)], [(0, 1), (0, 1)], [(0, 1), (1, 0), (1, 2)]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (LOOP, "graph 1: the edge 1-1 is a self-loop; pass simplify=True"),
        (TWICE, "graph 1: the edge 0-1 is given more than once"),
        (MIXED, "graph 1: some edges are given in both directions, but 1-2 in one only"),
        ([(0, -1)], "graph 1: an edge names the node -1"),
        ([(0, 2**31)], "at most"),
        ([(0.5, 1)], "pairs of node numbers"),
        ([(0, 1, 2)], "pairs of node numbers"),
        ([(0, 5)], "graph 1: an edge names the node 5, the graph has 3 nodes"),
    ],
)
def test_edges_that_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        Graphs.from_edges([[(0, 1)], edges], n_nodes=[2, 3])


@pytest.mark.parametrize(("edges", "left"), [(LOOP, [[0, 1]]), (TWICE, [[0, 1]]), (MIXED, [[0, 1], [1, 2]])])
def test_edges_that_are_simplified(edges, left):
    graphs = Graphs.from_edges([edges], edge_labels=[list(range(len(edges)))], simplify=True)
    assert graphs[0].edges.tolist() == left
    assert graphs.edge_labels[0] == 0


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], "graph 0: the entry 0-1 has no counterpart"),
        ([[1, 0], [0, 0]], "graph 0: the edge 0-0 is a self-loop"),
        ([[0, 1]], "graph 0: an adjacency matrix must be square"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        (np.zeros(3), "square"),
    ],
)
def test_matrices_that_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Graphs.from_scipy([np.asarray(matrix)])
    if np.ndim(matrix) == 2 and np.shape(matrix) == (2, 2) and np.isfinite(matrix).all():
        assert len(Graphs.from_scipy([np.asarray(matrix)], simplify=True)) == 1


def test_weights_that_differ_by_direction_are_refused_or_simplified():
    matrix = np.array([[0.0, 1.0], [2.0, 0.0]])
    with pytest.raises(
        ValueError, match="graph 0: the two directions of the edge 0-1 have different values in edge_weights"
    ):
        Graphs.from_scipy([matrix], weighted=True)
    assert Graphs.from_scipy([matrix], weighted=True, simplify=True).edge_weights.tolist() == [1.0, 1.0]
    assert Graphs.from_scipy([matrix]).n_edges == 1


@pytest.mark.parametrize("graph", [nx.DiGraph([(0, 1)]), nx.MultiGraph([(0, 1), (0, 1)])])
def test_directed_graphs_and_multigraphs_need_simplify(graph):
    with pytest.raises(ValueError, match="graph 1 is"):
        Graphs.from_networkx([nx.path_graph(2), graph])
    assert Graphs.from_networkx([graph], simplify=True).n_edges == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node_labels": [["a"]]}, "graph 0: node_labels must hold 2 values"),
        ({"node_labels": [["a", "b"], ["c"]]}, "one list for each of the 1 graphs"),
        ({"node_labels": [[0.5, 1.5]]}, "integers or all strings"),
        ({"edge_labels": [[1, 2]]}, "graph 0: edge_labels must hold 1 values"),
        ({"edge_weights": [[np.inf]]}, "finite"),
        ({"n_nodes": [-1]}, "n_nodes"),
        ({"n_nodes": [2, 2]}, "one number for each"),
        ({"names": ["a", "b"]}, "names"),
    ],
)
def test_values_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Graphs.from_edges([[(0, 1)]], **arguments)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([0, 3], [0, 1, 2], [1, 0]), "offsets must begin with 0, end with"),
        (([1, 2], [0, 1, 2], [1, 0]), "offsets must"),
        (([0, 2], [0, 2, 1], [1, 0]), "indptr must be"),
        (([0, 2], [0, 1, 2], [1]), "indptr must begin with 0, end"),
        (([0, 2], [0, 1, 2], [1, 2]), "graph 0: node 1 has the neighbour 2, which is no node"),
        (([0, 2], [0, 1, 2], [0, 0]), "graph 0: node 0 is its own neighbour"),
        (([0, 3], [0, 2, 3, 4], [2, 1, 0, 0]), "must ascend"),
        (([0, 3], [0, 1, 1, 2], [1, 1]), "graph 0: the edge 0-1 has only one direction"),
        (([0, 2], [0, 1, 2], [1.0, 0.0]), "integers"),
    ],
)
def test_stacked_arrays_are_checked(arrays, message):
    with pytest.raises(ValueError, match=message):
        Graphs(*arrays)


def test_missing_attributes_are_named():
    with pytest.raises(ValueError, match="graph 0: node 0 has no attribute 'label'"):
        Graphs.from_networkx([nx.path_graph(2)], node_label="label")


# ---------------------------------------------------------------------------------------------- TU Dortmund text format

TU = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 4\n4, 5\n",
    "graph_indicator": "1\n1\n1\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "6\n8\n6\n1\n1\n",
    "edge_labels": "0\n0\n1\n1\n2\n2\n",
    "node_attributes": "0.5, 1\n1,2\n2,3\n3,4\n4,5.25\n",
}


def write_tu(folder, changes=(), packed=()):
    for part, text in (TU | dict(changes)).items():
        if text is None:
            continue
        path = folder / f"TOY_{part}.txt"
        if part in packed:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_bytes(text.encode())
    return folder


@pytest.mark.parametrize("packed", [(), ("A", "node_attributes"), tuple(TU)])
def test_tu_files_are_read(tmp_path, packed):
    write_tu(tmp_path, packed=packed)
    graphs, y = read_tu(tmp_path)
    assert y.tolist() == [1, -1, 1]
    assert graphs.sizes.tolist() == [3, 0, 2]  # the second graph has no nodes
    assert graphs[0].edges.tolist() == [[0, 1], [1, 2]]
    assert graphs.node_labels.tolist() == [6, 8, 6, 1, 1]
    assert graphs[2].edge_labels.tolist() == [2, 2]
    assert graphs[0].node_attributes.tolist() == [[0.5, 1], [1, 2], [2, 3]]
    assert Graphs.from_tu(tmp_path / "TOY") == graphs


def test_tu_parts_may_be_missing(tmp_path):
    write_tu(tmp_path, {"graph_labels": None, "node_labels": None, "edge_labels": None, "node_attributes": None})
    graphs, y = read_tu(tmp_path)
    assert y is None
    assert repr(graphs) == "Graphs(3 graphs, 5 nodes, 3 edges)"


@pytest.mark.parametrize(
    ("changes", "file", "line", "message"),
    [
        ({"A": "1, 2\n2, x\n"}, "A", 2, "expected integers, found '2, x'"),
        ({"A": "1, 2\n2, 1, 3\n"}, "A", 2, "expected 2 values as in line 1, found 3"),
        ({"A": "1, 2\n\n2, 1\n"}, "A", 2, "empty"),
        ({"A": "1\n2\n"}, "A", 1, "expected two nodes, found 1"),
        ({"A": "1, 2\n2, 9\n", "edge_labels": None}, "A", 2, "nodes from 1 to 5, found 2, 9"),
        ({"A": "1, 2\n0, 1\n", "edge_labels": None}, "A", 2, "nodes from 1 to 5"),
        ({"A": "1, 2\n3, 4\n", "edge_labels": None}, "A", 2, "the nodes 3 and 4 lie in the graphs 1 and 3"),
        ({"A": "1, 2\n3, 3\n", "edge_labels": None}, "A", 2, "graph 0: the edge 2-2 is a self-loop"),
        ({"A": "1, 2\n2, 1\n1, 2\n", "edge_labels": None}, "A", 3, "graph 0: the edge 0-1 is given more than once"),
        ({"graph_indicator": "1\n2\n1\n3\n3\n"}, "graph_indicator", 3, "must not decrease"),
        ({"graph_indicator": "0\n1\n1\n3\n3\n"}, "graph_indicator", 1, "counted from 1"),
        ({"graph_indicator": "1, 1\n1, 1\n"}, "graph_indicator", 1, "one value a line"),
        ({"graph_labels": "1\n-1\n"}, "graph_labels", 3, "3 graphs need as many labels"),
        ({"graph_labels": "1\nnan\n1\n"}, "graph_labels", 2, "expected numbers"),
        ({"node_labels": "6\n8\n"}, "node_labels", 3, "expected 5 lines, one for each of the nodes, found 2"),
        ({"edge_labels": "0\n" * 7}, "edge_labels", 7, "expected 6 lines"),
        ({"node_attributes": "1,2\n1,2\n1,2\n1\n1,2\n"}, "node_attributes", 4, "expected 2 values"),
        ({"node_labels": "6\n8\né\n1\n1\n"}, "node_labels", 3, "not ASCII"),
    ],
)
def test_malformed_tu_files_are_named_with_their_line(tmp_path, changes, file, line, message):
    write_tu(tmp_path, changes)
    with pytest.raises(DataFileError, match=message) as caught:
        read_tu(tmp_path)
    assert f"TOY_{file}.txt:{line}: " in str(caught.value)


def test_damaged_and_missing_tu_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no file"):
        read_tu(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"NOPE_A\.txt"):
        read_tu(tmp_path / "NOPE")
    write_tu(tmp_path)
    (tmp_path / "TOY_node_labels.txt").unlink()
    (tmp_path / "TOY_node_labels.txt.gz").write_bytes(gzip.compress(b"1\n" * 5)[:15])
    with pytest.raises(DataFileError, match="cannot be unpacked"):
        read_tu(tmp_path)
    (tmp_path / "TOY_graph_indicator.txt").unlink()
    with pytest.raises(FileNotFoundError, match="graph_indicator"):
        read_tu(tmp_path)
    (tmp_path / "MORE_A.txt").write_text("1, 2\n")
    with pytest.raises(ValueError, match="several sets"):
        read_tu(tmp_path)


def test_tu_files_are_simplified_on_request(tmp_path):
    write_tu(tmp_path, {"A": "1, 2\n3, 3\n1, 2\n", "edge_labels": None})
    assert read_tu(tmp_path, simplify=True)[0].n_edges == 1


@pytest.mark.parametrize(
    ("part", "text", "line"),
    [
        ("graph_indicator", "1\n1\n-9223372036854775808\n", 3),
        ("graph_indicator", "-9223372036854775808\n1\n1\n", 1),
        ("graph_indicator", "1\n1\n12345678901234567890123\n", 3),
        ("graph_indicator", "2\n2\n1\n", 3),
        ("A", "1, 2\n2, -9223372036854775808\n", 2),
        ("A", "1, 2\n2, 12345678901234567890123\n", 2),
    ],
)
def test_tu_numbers_far_out_name_file_and_line(tmp_path, part, text, line):
    texts = {"A": "1, 2\n2, 3\n", "graph_indicator": "1\n1\n1\n", "graph_labels": "1\n-1\n", part: text}
    for name, content in texts.items():
        (tmp_path / f"X_{name}.txt").write_text(content)
    with pytest.raises(DataFileError, match=rf"X_{part}.txt:{line}: "):
        read_tu(tmp_path)


def test_tu_graphs_are_bounded_by_lines(tmp_path):
    (tmp_path / "X_A.txt").write_text("1, 2\n")
    (tmp_path / "X_graph_indicator.txt").write_text("1\n9223372036854775807\n")
    with pytest.raises(DataFileError, match=r"X_graph_indicator.txt:2: "):
        read_tu(tmp_path)


def test_labels_of_networkx_nodes_come_from_their_only_attribute():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "C", 1: "O", 2: "C"}, "atom")
    assert Graphs.from_networkx([graph])[0].node_labels.tolist() == ["C", "O", "C"]
    assert Graphs.from_networkx([graph], node_label=None).node_labels is None
    nx.set_node_attributes(graph, {0: 1, 1: 2, 2: 3}, "charge")
    with pytest.warns(UserWarning, match="attributes of nodes are left out: atom, charge; node_label="):
        assert Graphs.from_networkx([graph]).node_labels is None
