"""Checks of offsets and sparse matrices, on every way in: wrong ones raise, and nothing is read outside the arrays."""

import importlib
import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from mercer._validation import check_offsets, check_sparse, decreases

LEAST, MOST = -(2**63), 2**63 - 1
WRONG_OFFSETS = {
    "wraps": [0, MOST, LEAST, 3],
    "wraps at the end": [0, 1, LEAST],
    "decreases": [0, 2, 1, 3],
    "negative": [-1, 3],
    "too far": [0, 4],
    "empty": [],
    "not whole": [0.0, 3.0],
    "two axes": [[0, 3]],
    "beyond int64": np.array([0, 2**64 - 1], np.uint64),
}


@pytest.mark.parametrize("case", WRONG_OFFSETS)
def test_wrong_offsets_raise(case):
    for part in (False, True):
        with pytest.raises(ValueError, match="places must"):
            check_offsets("places", WRONG_OFFSETS[case], 3, part=part)


def test_right_offsets_pass():
    assert check_offsets("places", np.array([0, 0, 3], np.uint8), 3).dtype == np.int64
    assert check_offsets("places", [1, 2], 3, part=True).tolist() == [1, 2]
    with pytest.raises(ValueError, match="begin with 0, end with 3"):
        check_offsets("places", [1, 2], 3)
    assert check_offsets("places", [0, 5]).tolist() == [0, 5]


def test_comparison_of_neighbours_does_not_wrap():
    assert decreases(np.array([MOST, LEAST]))
    assert not decreases(np.array([LEAST, MOST]))
    assert decreases(np.array([3, 3]), strictly=False)
    assert not decreases(np.array([3, 3]))


def _ways_in():
    from mercer._state.values import _cut
    from mercer.data import Graphs, Segmentations, Sequences, TextBuffer
    from mercer.structures.graph_inputs import GraphInputs

    indices = np.zeros(3, np.int32)
    return {
        "Graphs, offsets": lambda o: Graphs(o, np.zeros(4, np.int64), indices[:0]),
        "Graphs, indptr": lambda o: Graphs([0, max(0, len(o) - 1)], o, indices),
        "Sequences": lambda o: Sequences(np.ones((3, 2)), o),
        "Segmentations, firsts": lambda o: Segmentations([1, 1, 1], [0, 0, 0], o, np.arange(len(o))),
        "Segmentations, positions": lambda o: Segmentations([], [], np.zeros(len(o), np.int64), o),
        "TextBuffer": lambda o: TextBuffer.from_arrays(np.zeros(3, np.uint8), np.asarray(o)),
        "model files": lambda o: _cut([1, 2, 3], np.asarray(o)),
        "GraphInputs": lambda o: GraphInputs(np.ones((3, 1)), o, np.zeros((0, 2), int)),
    }


@pytest.mark.parametrize("case", ["wraps", "wraps at the end", "decreases"])
@pytest.mark.parametrize("way", list(_ways_in()))
def test_offsets_that_wrap_raise_on_every_way_in(way, case):
    with pytest.raises(ValueError, match="must"):
        _ways_in()[way](np.array(WRONG_OFFSETS[case]))


# ---------------------------------------------------------------------------------------------- sparse matrices


def _broken(kind, case):
    rng = np.random.default_rng(0)
    matrix = sp.random_array((12, 5), density=0.5, rng=rng, format=kind)
    if kind == "coo":
        matrix.coords[1][0] = {"far": 10**6, "negative": -1, "wraps": 2**31 - 1}[case]
    elif case == "far":
        matrix.indptr[2] = 10**6
    elif case == "negative":
        matrix.indices[0] = -(10**6)
    else:
        matrix.indptr[1:3] = [2**31 - 1, -(2**31)]
    return matrix


@pytest.mark.parametrize("case", ["far", "negative", "wraps"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_broken_sparse_matrices_raise(kind, case):
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        check_sparse("X", _broken(kind, case))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_with_fewer_values_than_indices_raise(kind):
    matrix = sp.random_array((12, 5), density=0.5, rng=np.random.default_rng(0), format=kind)
    matrix.data = matrix.data[:-1]
    with pytest.raises(ValueError, match="integers, one for each value"):
        check_sparse("X", matrix)


def test_sound_sparse_matrices_and_other_things_pass():
    for kind in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        for make in (sp.random(6, 4, 0.5, format=kind, random_state=0), sp.random_array((6, 4), format=kind)):
            assert check_sparse("X", make) is make
    assert check_sparse("X", sp.csr_array((0, 0))).shape == (0, 0)
    assert check_sparse("X", "a") == "a"


def _estimators_of_rows():
    found = []
    names = ("classification", "clustering", "kernel_methods", "maps", "online", "ranking", "proportions")
    for module in (importlib.import_module(f"mercer.{name}") for name in names):
        for name in module.__all__:
            cls = getattr(module, name)
            if inspect.isclass(cls) and hasattr(cls, "fit") and hasattr(cls, "get_params"):
                found.append(pytest.param(cls, id=name))
    return found


@pytest.mark.parametrize("cls", _estimators_of_rows())
def test_estimators_refuse_a_csr_with_broken_offsets(cls):
    """Whatever an estimator thinks of sparse rows, it says so with an exception: SciPy would crash the interpreter."""
    required = [
        p.name
        for p in inspect.signature(cls).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if required:
        pytest.skip(f"needs {required}")
    y = np.arange(12) % 2

    def use(X):
        model = cls().fit(X, y)
        model.transform(X)  # of a map that learns nothing

    with pytest.raises((ValueError, TypeError)) as raised:
        use(_broken("csr", "wraps"))
    assert str(raised.value)


# ---------------------------------------------------------------------------------------------- trees


def test_deep_trees_can_be_pickled():
    from mercer.parsing import Tree

    tree = Tree("leaf", ["word"])
    for depth in range(20_000):
        tree = Tree(f"n{depth % 7}", ["left", tree, "right"])
    assert pickle.loads(pickle.dumps(tree)) == tree


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_trees_come_back_from_pickle(protocol):
    from mercer.parsing import Tree

    tree = Tree.parse("(S (NP (Det the) (N dog)) (VP (V barks) (Adv (X loudly))) word)")
    assert pickle.loads(pickle.dumps(tree, protocol)) == tree
