"""Kernels and collections of objects as plain data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer._state.values import value_from_state, value_to_state
from mercer.data import Graphs
from mercer.data.trees import Tree
from mercer.kernel_methods import KernelRidge
from mercer.kernels import (
    Centered,
    Convolution,
    DirectSum,
    Fisher,
    FunctionKernel,
    GaussianModel,
    Kernel,
    Linear,
    TensorProduct,
)

X = np.random.default_rng(0).normal(size=(6, 3))
KERNELS: list[Any] = [
    Linear(),
    0.5 * (Linear() + 1.0) ** 3,
    (Linear() * (Linear() + 2.0)).normalized(),
    Linear().centered(X),
    Linear().translated(X[:2], [0.5, -1.0]),
    Linear().corrected(X, "flip"),
]
PAIRS = [([1.0, 2.0], [0.5]), ([0.0, 1.0], [2.0])]


def through(state: Any) -> Any:
    """JSON there and back: what a file does."""
    meta, arrays = state
    return json.loads(json.dumps(meta)), arrays


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_comes_back_with_the_same_matrix(kernel):
    again = value_from_state(*through(value_to_state(kernel)))
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(again(X), kernel(X))


@pytest.mark.parametrize("kernel", [TensorProduct(Linear(), Linear()), DirectSum(Linear(), 2.0 * Linear())], ids=repr)
def test_kernel_of_several_kernels_comes_back(kernel):
    np.testing.assert_array_equal(value_from_state(*through(value_to_state(kernel)))(PAIRS), kernel(PAIRS))


def test_kernel_of_columns_comes_back():
    kernel = Linear().on("a") + Linear().on(["a", "b"])
    rows = [{"a": 1.0, "b": 2.0}, {"a": 0.0, "b": 3.0}]
    np.testing.assert_array_equal(value_from_state(*through(value_to_state(kernel)))(rows), kernel(rows))


def test_kernels_with_functions_are_refused():
    for kernel in (FunctionKernel(len), 2.0 * FunctionKernel(len) + 1.0, Convolution(str.split, FunctionKernel(len))):
        with pytest.raises(TypeError, match=r"cannot be written to a model file: its \w+ is a function"):
            value_to_state(kernel)


def test_kernels_that_are_not_public_are_refused():
    class Linear(Kernel):  # the name of a public one is not enough
        pass

    with pytest.raises(TypeError, match="is no kernel of"):
        value_to_state(Linear())


@pytest.mark.parametrize(
    "meta",
    [
        {"kind": "kernel", "name": "Kernel", "parameters": []},
        {"kind": "kernel", "name": "Gram", "parameters": []},
        {"kind": "kernel", "name": "_count", "parameters": []},
        {"kind": "kernel", "name": "Scaled", "parameters": []},
        {
            "kind": "kernel",
            "name": "Scaled",
            "parameters": [{"kind": "kernel", "name": "Linear", "parameters": []}, -1.0],
        },
        {"kind": "module", "name": "os"},
        {"kind": "model", "name": "Linear", "state": {}},
        {"kind": "model", "name": "system", "state": {}},
        [],
    ],
)
def test_states_that_are_no_kernels_are_refused(meta):
    with pytest.raises(ValueError):
        value_from_state(meta, {})


def test_models_in_kernels_keep_what_they_were_fitted_to():
    model = GaussianModel().fit(X)
    (again,) = value_from_state(*through(value_to_state([Fisher(model)])))
    np.testing.assert_array_equal(again.model.sample_, X)
    assert not any("sample" in name for name in model.to_state()[1])


def test_objects_of_other_classes_are_refused():
    with pytest.raises(TypeError, match="a Spread cannot be written"):
        value_to_state([type("Spread", (), {})()])


def test_models_that_are_parameters_need_not_be_fitted():
    again = value_from_state(*through(value_to_state(KernelRidge(Linear(), alpha=2.0))))
    assert repr(again) == repr(KernelRidge(Linear(), alpha=2.0))


GRAPHS = Graphs.from_edges(
    [[(0, 1), (1, 2)], [], [(0, 3)]], n_nodes=[3, 2, 4], node_labels=[[1, 2, 3], [4, 5], [6, 7, 8, 9]]
)
COLLECTIONS: list[Any] = [
    X,
    X.astype(np.float32),
    np.arange(5),
    np.array(["ab", "c"]),
    np.array([["x", None]], dtype=object),
    [],
    ["one", "", "zwölf", "\ud800"],
    [b"one", b"", b"\x00\xff"],
    [1, 2, 3],
    [1.5, float("nan"), float("-inf")],
    [True, None, "mixed", 3, 2**70, b"x", 0.5],
    [["the", "dog"], [], ["barks"]],
    [[1, 2], [3]],
    [("a", 1), ("b", 2)],
    [("a", [1.0, 2.0]), ("b", [])],
    ([1.0], "tuple"),
    [{"a", "b"}, set()],
    [frozenset({1, 2})],
    [np.arange(3.0), np.arange(2.0)],
    [np.eye(2), np.zeros((0, 2))],
    [np.eye(2), np.arange(3)],
    [Tree.parse("(S (NP (N dogs)) (VP (V bark)))"), Tree.parse("(S (V go))")],
    [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    [{"a": 1}, {"b": 2}],
    {"title": ["x", "y"], "price": np.array([1.0, 2.0])},
    [[["deep"], []], [["er"]]],
]


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    else:
        assert a == b or (a != a and b != b)


@pytest.mark.parametrize("objects", COLLECTIONS, ids=lambda x: repr(x)[:40])
def test_collection_comes_back(objects):
    same(value_from_state(*through(value_to_state(objects))), objects)


def test_graphs_come_back():
    for objects in (GRAPHS, list(GRAPHS)):
        again = value_from_state(*through(value_to_state(objects)))
        assert type(again) is type(objects)
        whole = again if isinstance(again, Graphs) else value_from_state(*value_to_state(again))
        assert [g.edges.tolist() for g in whole] == [g.edges.tolist() for g in GRAPHS]
        assert [g.node_labels.tolist() for g in whole] == [g.node_labels.tolist() for g in GRAPHS]


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back(make):
    again = value_from_state(*through(value_to_state(make(np.eye(3)))))
    assert type(again) is make
    np.testing.assert_array_equal(again.toarray(), np.eye(3))


def test_data_frames_come_back():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"word": ["a", "b"], "n": [1, 2], "x": [0.5, 1.5]})
    pd.testing.assert_frame_equal(value_from_state(*through(value_to_state(table))), table, check_dtype=False)


def test_many_strings_need_no_room_in_the_description():
    meta, arrays = value_to_state([f"object number {i}" for i in range(10_000)])
    assert len(json.dumps(meta)) < 200
    assert len(arrays) == 2


@pytest.mark.parametrize(
    "objects",
    [[lambda: 0], [object()], np.array([1 + 2j]), [Tree("a label", ["x"])], Centered],
    ids=["function", "object", "complex", "tree", "class"],
)
def test_what_cannot_be_written_is_refused(objects):
    with pytest.raises(TypeError, match=r"cannot be written to a model file"):
        value_to_state(objects)


@pytest.mark.parametrize(
    "change", [{"offsets": np.array([0, 9])}, {"offsets": np.array([1, 2])}, {"offsets": np.array([0.0])}]
)
def test_offsets_from_a_file_are_checked(change):
    meta, arrays = value_to_state([[1, 2], [3]])
    arrays[meta["offsets"]] = change["offsets"]
    with pytest.raises(ValueError):
        value_from_state(meta, arrays)
