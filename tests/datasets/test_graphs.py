"""Sets of graphs: the loader finds them or says where it looked; planted motifs are there."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mercer.datasets import load_tu, make_motif_graphs
from mercer.maps import GraphletHasher

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


@needs_data
@pytest.mark.parametrize(
    ("name", "n_graphs", "n_nodes", "n_edges", "n_classes"),
    [
        ("MUTAG", 188, 3371, 3721, 2),
        ("PTC_MR", 344, 4915, 5054, 2),
        ("ENZYMES", 600, 19_580, 37_282, 6),
        ("PROTEINS", 1113, 43_471, 81_044, 2),
        ("Mutagenicity", 4337, 131_488, 133_447, 2),
    ],
)
def test_public_sets_are_complete(name, n_graphs, n_nodes, n_edges, n_classes):
    graphs, y = load_tu(name)
    assert (len(graphs), graphs.n_nodes, graphs.n_edges) == (n_graphs, n_nodes, n_edges)
    assert (len(y), len(np.unique(y))) == (n_graphs, n_classes)
    assert graphs.node_labels is not None


def test_a_set_is_read_from_a_folder(tmp_path):
    folder = tmp_path / "graphs" / "TOY"
    folder.mkdir(parents=True)
    (folder / "TOY_A.txt").write_text("1, 2\n2, 1\n")
    (folder / "TOY_graph_indicator.txt").write_text("1\n1\n")
    with pytest.raises(FileNotFoundError, match="TOY_graph_labels"):
        load_tu("TOY", data_home=tmp_path)
    (folder / "TOY_graph_labels.txt").write_text("7\n")
    graphs, y = load_tu("TOY", data_home=tmp_path)
    assert (graphs.n_edges, y.tolist()) == (1, [7])
    for wrong in ("NOPE", "../graphs/TOY", ""):
        with pytest.raises(FileNotFoundError, match="available are TOY"):
            load_tu(wrong, data_home=tmp_path)


def test_motifs_are_planted_and_sizes_are_alike():
    graphs, y = make_motif_graphs(400, random_state=0)
    hasher = GraphletHasher((3, 4), inverse_size=100, n_bits=20).fit(graphs)
    X = hasher.transform(graphs)
    columns = {name: j for j, name in ((j, hasher.inverse(j)[0]) for j in set(X.indices.tolist()))}
    mean = {name: [X[y == family][:, [j]].mean() for family in (0, 1)] for name, j in columns.items()}
    assert mean["triangle"][1] > mean["triangle"][0] + 4
    assert mean["cycle-4"][0] > mean["cycle-4"][1] + 4
    edges = graphs.edge_counts
    assert abs(edges[y == 0].mean() - edges[y == 1].mean()) < 2
    assert graphs.sizes.min() >= 20
    assert graphs.sizes.max() <= 40


def test_the_same_seed_gives_the_same_graphs():
    a, b, c = (make_motif_graphs(10, n_labels=3, random_state=seed)[0] for seed in (1, 1, 2))
    assert a == b
    assert a != c
    assert set(a.node_labels) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_graphs": -1}, "n_graphs"),
        ({"n_nodes": (3, 9)}, "n_nodes must be a pair"),
        ({"n_nodes": (9, 8)}, "n_nodes must be a pair"),
        ({"mean_degree": -1.0}, "mean_degree"),
        ({"mean_degree": 99.0}, "mean_degree"),
        ({"n_motifs": 1.5}, "n_motifs"),
        ({"motifs": ([(0, 1)],)}, "motifs"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_motif_graphs(**arguments)
