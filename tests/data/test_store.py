"""Stores: what is written comes back, all of it or nothing, and damage is named with its piece."""

from __future__ import annotations

import errno
import os
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mercer._state.container import read_file, write_file
from mercer.data import Graphs, Partitions, Sequences, Store, StoreError, Template
from mercer.data.bags import Bags
from mercer.data.features import FeatureIndex, as_sequences
from mercer.data.labels import LabelIndex
from mercer.data.store import _write_manifest
from mercer.data.trees import Tree

WORDS = [[{"w": "the"}, {"w": "dog", "n": 2.5}], [{"w": "a"}, {"w": "cat"}, {"w": "sat"}]]
TAGS = [["D", "N"], ["D", None, {"V", "N"}]]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "a.store")
    made.append(WORDS, TAGS)
    made.append([[{"w": "bat"}]], [["N"]])
    return made


def test_sequences_and_labels_come_back(store):
    again = Store(store.path)
    assert [list(part.y) for part in again] == [TAGS, [["N"]]]
    assert again[0].y[1] == TAGS[1]
    assert (again.kind, len(again), again.n_examples) == ("sequences", 2, 3)
    index = FeatureIndex()
    index.learn([*WORDS, [{"w": "bat"}]])
    for part, given in zip(again, (WORDS, [[{"w": "bat"}]]), strict=True):
        assert as_sequences(part.X, index) == index.encode(given)


def test_a_set_of_all_labels_of_a_piece_stays_a_set(tmp_path):
    given = [["D", {"D", "N"}, None], [{"D", "N"}]]
    store = Store(tmp_path / "s")
    store.append([[{"w": "a"}] * 3, [{"w": "b"}]], given)
    y = Store(store.path)[0].y
    assert list(y) == given
    assert [*y[1:]] == given[1:]
    assert y[-1] == given[-1]
    index = LabelIndex(["A", "D", "N"])
    np.testing.assert_array_equal(index.encode(y).allowed, index.encode(given).allowed)


def test_columns_of_another_index_are_left_out_and_sorted(store):
    index = FeatureIndex()
    index.learn([[{"w": "sat"}]])
    index.learn([[{"w": "a"}]])  # appended: its column is not in the order of the names
    assert as_sequences(store[0].X, index) == index.encode(WORDS)
    assert as_sequences(store[0].X[1:], index) == index.encode(WORDS[1:])
    assert as_sequences(store[0].X[[1]], index) == index.encode(WORDS[1:])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])),
        (csr_matrix(np.eye(3, dtype=np.float32)), ["a", "b", "a"]),
        (["hello world", "", "näive"], [1.5, 2.0, 3.0]),
        ([np.ones((2, 3)), np.zeros((1, 3))], [["A", "B"], ["A"]]),
        ([("a", "b"), ("c", "d")], [Tree.parse("(S a)"), Tree.parse("(S b)")]),
    ],
    ids=["rows", "sparse", "texts", "matrices", "items"],
)
def test_other_examples_come_back(tmp_path, X, y):
    store = Store(tmp_path / "s")
    store.append(X, y)
    found = Store(tmp_path / "s")[0]
    if hasattr(X, "tocsr"):
        assert (found.X != X).nnz == 0
        assert found.X.dtype == X.dtype
    elif isinstance(X, np.ndarray):
        np.testing.assert_array_equal(found.X, X)
    elif isinstance(found.X, Sequences):
        assert Sequences.from_matrices(X) == found.X
    else:
        assert list(found.X) == X
    assert list(found.y) == list(y)


def test_graphs_bags_and_weights_come_back(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]])
    store = Store(tmp_path / "g")
    store.append(graphs, [0, 1], [0.5, 2.0])
    assert graphs == store[0].X
    assert store[0].sample_weight.tolist() == [0.5, 2.0]
    bags = Bags(["n", "s", "n", "n"], {"n": 0.25, "s": 1.0})
    store = Store(tmp_path / "b")
    store.append(np.ones((4, 2)), bags)
    assert store.kind == "bags"
    assert store[0].y.proportions.tolist() == [0.25, 1.0]
    assert store[0].y.members.tolist() == bags.members.tolist()


def test_templates_are_kept_with_their_features(tmp_path):
    template = Template.parse("U0:%x[0,0]\nB1:%x[0,0]")
    store = Store(tmp_path / "t")
    store.append([[("the",), ("dog",)]], [["D", "N"]], template=template)
    assert Store(tmp_path / "t").template == template
    assert store[0].X.n_edge_features == 2
    with pytest.raises(StoreError, match="template"):
        store.append([[("the",)]], [["D"]], template=Template.parse("U0:%x[0,0]"))


def test_extend_cuts_a_stream_into_pieces(tmp_path):
    store, told = Store(tmp_path / "s"), []
    store.extend(((x, y) for x, y in zip(WORDS * 3, TAGS * 3, strict=True)), size=4, done=told.append)
    assert [piece["examples"] for piece in store.pieces] == [4, 2]
    assert told == [4, 6]


def test_a_changed_byte_is_named_with_its_piece(store):
    path = store.path / store.pieces[1]["file"]
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match=rf"piece 1 \({path.name}\).*checksum"):
        Store(store.path).verify()
    Store(store.path)[0]
    with pytest.raises(StoreError, match="piece 1"):
        Store(store.path)[1]
    path.write_bytes(data[:-9])
    with pytest.raises(StoreError, match=r"piece 1.*cut short"):
        Store(store.path)[1]
    path.unlink()
    with pytest.raises(StoreError, match=r"piece 1.*missing"):
        Store(store.path)[1]


def test_a_piece_of_another_store_is_refused(store, tmp_path):
    other = Store(tmp_path / "o")
    other.append(WORDS, TAGS)
    one, two = store.path / store.pieces[0]["file"], other.path / other.pieces[0]["file"]
    data = two.read_bytes()
    if len(data) == one.stat().st_size and data != one.read_bytes():
        one.write_bytes(data)
        with pytest.raises(StoreError, match="piece 0"):
            Store(store.path)[0]


def test_a_damaged_manifest_is_refused(store):
    file = store.path / "manifest.json"
    text = file.read_text()
    for broken in (
        text.replace('"examples": 2', '"examples": 3'),
        text[:-20],
        "[]",
        text.replace('"format": 1', '"format": 9'),
        "null",
        "[" * 100_000,
        "\udcff\udcfe",
    ):
        file.write_bytes(broken.encode("utf-8", "surrogateescape"))
        with pytest.raises(StoreError, match=r"manifest|format"):
            Store(store.path)
    for change in (
        {"pieces": {}},
        {"pieces": ["abc"]},
        {"pieces": [{**store.pieces[0], "bytes": "x"}]},
        {"pieces": [{**store.pieces[0], "file": "../a"}]},
        {"pieces": [{"file": "a"}]},
        {"kind": "tables"},
        {"settings": None},
    ):
        _write_manifest(store.path, {**store._manifest, **change})
        with pytest.raises(StoreError, match="manifest"):
            Store(store.path)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"template": 3}},
        {"settings": {"template": "no pattern"}},
        {"settings": {"columns": "abc"}},
        *(
            {"pieces": [{"file": name, "bytes": 1, "checksum": "", "examples": 1}]}
            for name in ("..", "a\0b", "x" * 5000)
        ),
    ],
)
def test_a_manifest_that_nobody_wrote_is_refused_although_its_checksum_is_right(store, change):
    _write_manifest(store.path, {**store._manifest, **change})
    with pytest.raises(StoreError, match="manifest"):
        Store(store.path)


def rewritten(store, change):
    """The store with another first piece, under the right checksums."""
    entry = store.pieces[0]
    piece = read_file(store.path / entry["file"])
    meta, arrays = change(piece.meta, dict(piece.arrays))
    checksum = write_file(store.path / entry["file"], "store piece", meta, arrays)
    size = os.path.getsize(store.path / entry["file"])
    pieces = [{**entry, "checksum": checksum, "bytes": size}, *store.pieces[1:]]
    _write_manifest(store.path, {**store._manifest, "pieces": pieces})
    return Store(store.path)


@pytest.mark.parametrize(
    "changed",
    [
        {"y.labels": np.array([7], np.int32)},
        {"y.labels": np.zeros((5, 1), np.int32)},
        {"y.offsets": np.array([0, 2**62])},
        {"y.allowed": np.ones(5, np.uint8)},
        {"y.unsaid": np.ones(2, bool)},
        {"X.indptr": None},
    ],
    ids=str,
)
def test_pieces_that_no_writer_wrote_are_refused_although_their_checksum_is_right(store, changed):
    def change(meta, arrays):
        both = {**arrays, **changed}
        return meta, {name: array for name, array in both.items() if array is not None}

    with pytest.raises(StoreError, match=r"piece 0 .* does not hold what its manifest says"):
        rewritten(store, change)[0]


@pytest.mark.parametrize("part", ["n_rows", "names", "members", "alone", "offsets", "bag_weight", "row_weight"])
@pytest.mark.parametrize("value", [3, -1, "x", None])
def test_bags_that_nobody_made_are_refused(tmp_path, part, value):
    store = Store(tmp_path / "bags")
    store.append(np.eye(4), Bags([0, 0, 1, 1], [0.5, 1.0]))
    with pytest.raises(StoreError, match=r"piece 0 .* does not hold what its manifest says"):
        rewritten(store, lambda meta, arrays: ({**meta, "y": {**meta["y"], part: value}}, arrays))[0]


def test_a_piece_with_another_number_of_examples_is_refused(store):
    pieces = [{**store.pieces[0], "examples": 7}, *store.pieces[1:]]
    _write_manifest(store.path, {**store._manifest, "pieces": pieces})
    with pytest.raises(StoreError, match="X has 2 examples, not 7"):
        Store(store.path)[0]


def test_a_manifest_that_is_no_file_is_refused_and_not_waited_for(store):
    file = store.path / "manifest.json"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(StoreError, match="is no file"):
        Store(store.path)


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path / "notes.txt")


def test_two_writers_are_refused(store):
    from mercer._state.lock import FileLock

    lock = FileLock(store.path, "{owner}")
    lock.acquire()
    try:
        with pytest.raises(StoreError, match=r"another process \(process \d+\) is writing"):
            store.append([[{"w": "x"}]], [["N"]])
    finally:
        lock.release()
    store.append([[{"w": "x"}]], [["N"]])


def test_a_second_writer_sees_what_the_first_wrote(store):
    Store(store.path).append([[{"w": "x"}]], [["N"]])
    store.append([[{"w": "y"}]], [["N"]])
    assert [list(part.y) for part in Store(store.path)][2:] == [[["N"]], [["N"]]]


@pytest.mark.parametrize("place", ["write_file", "_write_manifest"])
def test_a_full_disk_leaves_the_store_as_it_was(store, monkeypatch, place):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted(p.name for p in store.path.iterdir())
    monkeypatch.setattr(f"mercer.data.store.{place}", full)
    with pytest.raises(OSError, match="No space"):
        store.append([[{"w": "x"}]], [["N"]])
    assert sorted(p.name for p in store.path.iterdir()) == before
    monkeypatch.undo()
    assert Store(store.path).n_examples == 3


def test_what_a_killed_writer_left_is_removed(store):
    stray = store.path / "00002-aaaaaaaa.piece"
    stray.write_bytes(b"half")
    assert Store(store.path).n_examples == 3
    store.append([[{"w": "x"}]], [["N"]])
    assert not stray.exists()


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.ones((2, 3)), [0, 1], "n_features of the store: 2; of these: 3"),
        (np.ones((2, 2), np.float32), [0, 1], "dtype"),
        (csr_matrix(np.ones((2, 2))), [0, 1], "sparse"),
        (["a text"], [0], "holds rows"),
        (np.ones((2, 2)), None, "y of the store"),
    ],
)
def test_pieces_of_another_form_are_refused(tmp_path, X, y, match):
    store = Store(tmp_path / "r")
    store.append(np.ones((2, 2)), [0, 1])
    with pytest.raises(StoreError, match=match):
        store.append(X, y)
    assert len(Store(tmp_path / "r")) == 1


def test_lengths_must_agree(tmp_path):
    with pytest.raises(ValueError, match="X has 2 examples and y 3"):
        Store(tmp_path / "r").append(np.ones((2, 2)), [0, 1, 1])
    with pytest.raises(ValueError, match="sequence 1 has 1 positions and 2 labels"):
        Store(tmp_path / "r").append([[{"w": "a"}], [{"w": "a"}]], [["X"], ["X", "Y"]])
    with pytest.raises(ValueError, match="sample_weight must hold finite numbers"):
        Store(tmp_path / "r").append(np.ones((2, 2)), [0, 1], [1.0, np.nan])
    with pytest.raises(TypeError, match="X must be examples, got NoneType"):
        Store(tmp_path / "r").append(None)
    with pytest.raises(TypeError, match="template must be a Template, got str"):
        Store(tmp_path / "r").append([[["a"]]], [["X"]], template="words")
    with pytest.raises(ValueError, match="kind must be"):
        Store(tmp_path / "r").append(np.ones((2, 2)), [0, 1], kind="tables")


def test_the_matrix_of_the_caller_is_not_changed(tmp_path):
    given = csr_matrix((np.ones(3), [2, 0, 0], [0, 3]), shape=(1, 3))
    store = Store(tmp_path / "r")
    store.append(given, [1])
    assert given.indices.tolist() == [2, 0, 0]
    assert store[0].X.toarray().tolist() == [[2.0, 0.0, 1.0]]


def test_pieces_are_named_by_integers(store):
    for wrong in ("a", slice(0, 1), 0.5):
        with pytest.raises(TypeError, match="number of a piece must be an integer"):
            store[wrong]
    with pytest.raises(IndexError, match="piece 5 of 2"):
        store[5]


def test_pages_are_given_back(tmp_path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    store = Store(tmp_path / "r")
    for _ in range(4):
        store.append(np.ones((1000, 1000)), np.zeros(1000))
    before, most = resident(), 0
    for part in store:
        assert part.X.sum() == 1_000_000
        most = max(most, resident() - before)
    assert most < 20e6  # two pieces at most, of 8 MB each
    assert resident() - before < 8e6


@pytest.mark.parametrize("rows", [10, 100_000])  # read, and mapped
def test_no_file_stays_open_after_use(tmp_path, rows):
    store = Store(tmp_path / "r")
    for i in range(4):
        store.append(np.full((rows, 2), float(i)), np.zeros(rows))
    before = set(os.listdir("/proc/self/fd"))
    assert [float(part.X.mean()) for part in store] == [0.0, 1.0, 2.0, 3.0]
    assert float(store[-1].X.mean()) == 3.0
    store.drop(-1)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_store_in_the_place_of_another_is_read_anew(tmp_path):
    store = Store(tmp_path / "r")
    store.append(np.zeros((2, 1)), [0, 1])
    assert store[0].X[0, 0] == 0.0
    shutil.rmtree(tmp_path / "r")
    Store(tmp_path / "r").append(np.ones((2, 1)), [0, 1])
    store.reload()
    assert store[0].X[0, 0] == 1.0


def test_the_folder_where_we_are(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Store(".").append(np.zeros((2, 1)), [0, 1])
    assert Store("").n_examples == 2
    with pytest.raises(ValueError, match="size"):
        Store(".").extend([([0.0], 1)], size=0)


def test_partitions_are_cut_evenly():
    parts = Partitions.split(np.arange(10), np.arange(10), n=3)
    assert [len(part.X) for part in parts] == [3, 3, 4]
    with pytest.raises(ValueError, match="n must be"):
        Partitions.split([1], [1], n=0)
    with pytest.raises(ValueError, match="X has 3 examples and y 5"):
        Partitions.split(np.arange(3), np.arange(5), n=2)
    with pytest.raises(TypeError, match="partition 0"):
        Partitions([[1, 2]])


def test_an_index_that_learned_a_piece_is_let_go(tmp_path):
    import weakref

    from mercer.data.features import FeatureIndex, as_sequences

    store = Store(tmp_path / "s")
    store.append([[{"w": "a"}, {"w": "b"}]], [["A", "B"]])
    index = FeatureIndex(0)
    as_sequences(store[0].X, index, learn=True)
    gone = weakref.ref(index)
    del index
    assert gone() is None


def test_bags_of_other_rows_are_refused_before_they_are_written(tmp_path):
    bags = Bags([(0, "a"), (1, "a"), (3, "b")], {"a": 0.5, "b": 0.5})
    store = Store(tmp_path / "s")
    with pytest.raises(ValueError, match=r"X has 6 examples, and the bags in y are of 4 rows: give Bags n_rows=6"):
        store.append(np.zeros((6, 2)), bags)
    assert len(Store(tmp_path / "s").pieces) == 0
