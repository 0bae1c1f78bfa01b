"""Kernels and collections of objects as plain data, for model files.

A value becomes a node of JSON, and what is large goes to arrays that the node names:

    kernel                     {"kernel": public name, "parameters": [node, …]}
    collection of objects      {"kind": "strings" | "sequences" | "graphs" | …, …}

Reading runs nothing from a file: the name of a kernel is looked up among the public names of `mercer.kernels`, and
nowhere else. What holds a function cannot be written.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer._limits import VALUE_NESTING
from mercer._persistence import MODELS, _class_of, _kind_of, pack_strings, unpack_strings
from mercer._validation import check_count, check_offsets, check_sparse
from mercer.data.graphs import Graph, Graphs, as_graphs
from mercer.data.trees import Tree
from mercer.kernels.base import Kernel

__all__ = [
    "InFiles",
    "decoded",
    "encoded",
    "kernel_from_state",
    "kernel_to_state",
    "objects_from_state",
    "objects_to_state",
]

Arrays = dict[str, np.ndarray]
_Self = TypeVar("_Self", bound="InFiles")
_GRAPH_PARTS = ("offsets", "indptr", "indices", "node_labels", "node_attributes", "edge_labels", "edge_weights")


# ------------------------------------------------------------------------------------------------ the four functions


def kernel_to_state(kernel: Kernel) -> tuple[dict[str, Any], Arrays]:
    """A kernel as JSON data and arrays.

    Parameters
    ----------
    kernel : Kernel
        Of one of the public classes of `mercer.kernels`, without functions among its parameters.

    Returns
    -------
    meta, arrays : dict, dict of ndarray

    Raises
    ------
    TypeError
        For a kernel of another class, or one that holds a function.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.kernels._state import kernel_from_state, kernel_to_state
    >>> kernel_from_state(*kernel_to_state(0.5 * Linear() ** 2))
    0.5 * (Linear() ** 2)
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, got {type(kernel).__name__}")
    arrays: Arrays = {}
    return encoded(kernel, arrays), arrays


def kernel_from_state(meta: dict[str, Any], arrays: Arrays) -> Kernel:
    """The kernel that `kernel_to_state` wrote; its parameters are checked."""
    kernel = decoded(meta, arrays)
    if not isinstance(kernel, Kernel):
        raise ValueError("expected a kernel")
    kernel._check_params()
    return kernel


def objects_to_state(X: Any) -> tuple[dict[str, Any], Arrays]:
    """A collection of objects as JSON data and arrays.

    Parameters
    ----------
    X : collection
        An array, a CSR matrix, a data frame, a dict of columns, `Graphs`; or a list of strings, bytes, numbers, arrays,
        trees, graphs, records, or of lists, tuples and sets of these.

    Returns
    -------
    meta, arrays : dict, dict of ndarray

    Examples
    --------
    >>> from mercer.kernels._state import objects_from_state, objects_to_state
    >>> objects_from_state(*objects_to_state([["the", "dog"], [], ["barks"]]))
    [['the', 'dog'], [], ['barks']]
    """
    arrays: Arrays = {}
    return encoded(X, arrays), arrays


def objects_from_state(meta: dict[str, Any], arrays: Arrays) -> Any:
    """The collection that `objects_to_state` wrote."""
    return decoded(meta, arrays)


# ------------------------------------------------------------------------------------------------ estimators


class InFiles:
    """An estimator of scikit-learn's kind in model files: its parameters, and the attributes named in ``_fitted``.

    Values that `encoded` does not know are for a subclass to write and read (`_node`, `_value`).
    """

    _fitted: tuple[str, ...] = ()
    """The attributes that a model file keeps, besides those of tables."""

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Everything a model file needs. See :func:`mercer.save`."""
        check_is_fitted(self)
        arrays: Arrays = {}
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        if not isinstance(params.get("random_state"), (int, type(None))):
            params["random_state"] = None
        names = [*self._fitted, "n_features_in_", "feature_names_in_"]
        meta = {
            "params": {name: self._node(name, value, arrays) for name, value in params.items()},
            "fitted": {name: self._node(name, getattr(self, name), arrays) for name in names if hasattr(self, name)},
        }
        return meta, arrays

    @classmethod
    def from_state(cls: type[_Self], meta: dict[str, Any], arrays: Arrays) -> _Self:
        """The inverse of :meth:`to_state`."""
        if not isinstance(meta["params"], dict) or not isinstance(meta["fitted"], dict):
            raise ValueError("parameters and attributes must be objects with names")
        model = cls(**{name: cls._value(name, node, arrays) for name, node in meta["params"].items()})
        allowed = {*cls._fitted, "n_features_in_", "feature_names_in_"}
        for name, node in meta["fitted"].items():
            if name not in allowed:
                raise ValueError(f"a {cls.__name__} has no attribute {name!r}")
            setattr(model, name, cls._value(name, node, arrays))
        if hasattr(model, "n_features_in_"):
            check_count("n_features_in_", model.n_features_in_, 0)
        model._check_state()
        return model

    def _node(self, name: str, value: Any, arrays: Arrays) -> dict[str, Any]:
        """A parameter or an attribute as a node."""
        return encoded(value, arrays)

    @classmethod
    def _value(cls, name: str, node: dict[str, Any], arrays: Arrays) -> Any:
        """The inverse of `_node`."""
        return decoded(node, arrays)

    def _check_state(self) -> None:
        """Raises ValueError for attributes from a file that do not fit together."""
        raise NotImplementedError

    def _check_shapes(self, **shapes: tuple[int, ...]) -> None:
        """Raises ValueError unless the attributes ``name_`` are finite arrays of these shapes."""
        for name, shape in shapes.items():
            check_array_of(f"{name}_", getattr(self, f"{name}_"), shape)


def check_array_of(name: str, value: Any, shape: tuple[int, ...]) -> None:
    """Raises ValueError unless it is an array of finite numbers of this shape."""
    fits = isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind in "fiu"
    if not fits or not np.isfinite(value).all():
        raise ValueError(f"{name} must be a finite array of shape {shape}")


# ------------------------------------------------------------------------------------------------ writing


def encoded(value: Any, arrays: Arrays, depth: int = 0) -> dict[str, Any]:
    """The node of any value that can be written; its arrays are added to ``arrays``."""
    if depth > VALUE_NESTING:
        raise TypeError("objects nested so deeply cannot be written to a model file")
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return _scalar(value)
    if isinstance(value, Kernel):
        return _kernel(value, arrays, depth)
    if isinstance(value, np.ndarray):
        return _array(value, arrays, depth)
    if sp.issparse(value):
        return _sparse(value, arrays)
    if isinstance(value, Graphs):
        return _graphs(value, arrays, depth)
    if isinstance(value, Graph):
        return {"kind": "graph", "of": _graphs(as_graphs([value]), arrays, depth)}
    if isinstance(value, Tree):
        return {"kind": "tree", "text": _brackets(value)}
    if isinstance(value, (set, frozenset)):
        items = encoded(sorted(value, key=repr), arrays, depth + 1)
        return {"kind": "set", "frozen": isinstance(value, frozenset), "items": items}
    if isinstance(value, dict):
        pair = [encoded(list(part), arrays, depth + 1) for part in (value.keys(), value.values())]
        return {"kind": "dict", "keys": pair[0], "values": pair[1]}
    if isinstance(value, (list, tuple)):
        return {**_list(list(value), arrays, depth), **({"tuple": True} if isinstance(value, tuple) else {})}
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        columns = [encoded(value[name].to_numpy(), arrays, depth + 1) for name in value.columns]
        return {"kind": "frame", "names": encoded(list(value.columns), arrays, depth + 1), "columns": columns}
    return _model(value, arrays, depth)


def _scalar(value: Any) -> dict[str, Any]:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        return {"kind": "bytes", "hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"kind": "float", "text": repr(value)}
    return {"value": value}


def _kernel(kernel: Kernel, arrays: Arrays, depth: int) -> dict[str, Any]:
    name = type(kernel).__name__
    if _public(name) is not type(kernel):
        raise TypeError(f"{kernel!r} cannot be written to a model file: {name} is no kernel of mercer.kernels")
    nodes = []
    for parameter in _parameters(type(kernel)):
        value = getattr(kernel, parameter.name)
        if _is_function(value):
            raise TypeError(f"{kernel!r} cannot be written to a model file: its {parameter.name} is a function")
        nodes.append(encoded(value, arrays, depth + 1))
    return {"kernel": name, "parameters": nodes}


def _array(value: np.ndarray, arrays: Arrays, depth: int) -> dict[str, Any]:
    if value.dtype.names is not None:
        columns = {name: value[name] for name in value.dtype.names}
        return {"kind": "structured", "columns": encoded(columns, arrays, depth + 1)}
    if value.dtype.kind in "OUS":
        flat = encoded(value.ravel().tolist(), arrays, depth + 1)
        return {"kind": "objects", "shape": list(value.shape), "dtype": value.dtype.kind, "items": flat}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8 or value.dtype == np.float16:
        raise TypeError(f"arrays of {value.dtype} cannot be written to a model file")
    return {"kind": "array", "array": _placed(value, arrays)}


def _sparse(value: Any, arrays: Arrays) -> dict[str, Any]:
    matrix = value.tocsr()
    parts = {part: _placed(getattr(matrix, part), arrays) for part in ("data", "indices", "indptr")}
    return {"kind": "csr", "shape": [int(n) for n in matrix.shape], "new": isinstance(value, sp.sparray), **parts}


def _graphs(value: Graphs, arrays: Arrays, depth: int) -> dict[str, Any]:
    parts = {part: encoded(getattr(value, part), arrays, depth + 1) for part in _GRAPH_PARTS}
    return {"kind": "graphs", "parts": parts, "names": encoded(value.names, arrays, depth + 1)}


def _list(items: list[Any], arrays: Arrays, depth: int) -> dict[str, Any]:
    """A list: of equal things in one array where that is possible, since what is large does not belong in JSON."""
    for kind, belongs, write in _LISTS:
        if items and all(map(belongs, items)):
            node = write(items, arrays, depth)
            if node is not None:
                return {"kind": kind, **node}
    if any(map(_is_function, items)):
        raise TypeError("functions cannot be written to a model file")
    return {"kind": "list", "items": [encoded(item, arrays, depth + 1) for item in items]}


def _strings(items: list[str], arrays: Arrays, depth: int) -> dict[str, Any]:
    packed = pack_strings([str(item) for item in items])
    return {part: _placed(array, arrays) for part, array in packed.items()}


def _byte_strings(items: list[bytes], arrays: Arrays, depth: int) -> dict[str, Any]:
    data = np.frombuffer(b"".join(items), np.uint8)
    return {"bytes": _placed(data, arrays), "offsets": _placed(_offsets(items), arrays)}


def _numbers(items: list[Any], arrays: Arrays, depth: int) -> dict[str, Any] | None:
    integers = all(isinstance(item, (int, np.integer)) for item in items)
    if not integers and not all(isinstance(item, (float, np.floating)) for item in items):
        return None  # numbers of both kinds would come back as one
    if integers and not all(-(2**63) <= int(item) < 2**63 for item in items):
        return None
    return {"array": _placed(np.array(items, np.int64 if integers else np.float64), arrays)}


def _stacked(items: list[np.ndarray], arrays: Arrays, depth: int) -> dict[str, Any] | None:
    first = items[0]
    if first.ndim == 0 or any(a.dtype != first.dtype or a.shape[1:] != first.shape[1:] for a in items):
        return None
    whole = np.concatenate(items)
    return {"array": encoded(whole, arrays, depth + 1), "offsets": _placed(_offsets(items), arrays)}


def _nested(items: list[Any], arrays: Arrays, depth: int) -> dict[str, Any] | None:
    kind = type(items[0])
    if any(type(item) is not kind for item in items):
        return None
    parts = [sorted(item, key=repr) for item in items] if kind in (set, frozenset) else items
    if kind is tuple and len({len(item) for item in items}) == 1 and len(items[0]):
        columns = [encoded(list(column), arrays, depth + 1) for column in zip(*items, strict=True)]
        return {"of": "tuple", "columns": columns}
    flat = encoded([x for part in parts for x in part], arrays, depth + 1)
    return {"of": kind.__name__, "items": flat, "offsets": _placed(_offsets(parts), arrays)}


def _records(items: list[dict[Any, Any]], arrays: Arrays, depth: int) -> dict[str, Any] | None:
    names = list(items[0])
    if any(list(item) != names for item in items):
        return None
    columns = [encoded([item[name] for item in items], arrays, depth + 1) for name in names]
    return {"names": encoded(names, arrays, depth + 1), "columns": columns}


def _trees(items: list[Tree], arrays: Arrays, depth: int) -> dict[str, Any]:
    return {"text": encoded([_brackets(tree) for tree in items], arrays, depth + 1)}


def _graph_list(items: list[Graph], arrays: Arrays, depth: int) -> dict[str, Any]:
    return {"of": _graphs(as_graphs(items), arrays, depth)}


def _brackets(tree: Tree) -> str:
    text = str(tree)
    if Tree.parse(text) != tree:
        raise TypeError(f"the tree {text!r} cannot be written to a model file: a name in it holds spaces or brackets")
    return text


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, kinds) and not isinstance(item, bool)


_LISTS: list[tuple[str, Callable[[Any], bool], Callable[..., dict[str, Any] | None]]] = [
    ("strings", _of(str), _strings),
    ("byte strings", _of(bytes), _byte_strings),
    ("numbers", _of(int, float, np.integer, np.floating), _numbers),
    ("arrays", _of(np.ndarray), _stacked),
    ("sequences", _of(list, tuple, set, frozenset), _nested),
    ("records", _of(dict), _records),
    ("trees", _of(Tree), _trees),
    ("graph list", _of(Graph), _graph_list),
]


def _model(value: Any, arrays: Arrays, depth: int) -> dict[str, Any]:
    """What has a state of its own: models of the table of model files, helpers among the public names of kernels."""
    name = type(value).__name__
    if callable(getattr(value, "to_state", None)):
        try:
            owner = "kernels" if _public(name) is type(value) else _kind_of(value)
        except TypeError:
            owner = None
        if owner is not None:
            meta, inner = value.to_state()
            node = {
                "kind": "model",
                "owner": owner,
                "name": name,
                "meta": meta,
                "arrays": {key: _placed(array, arrays) for key, array in inner.items()},
            }
            # What a model was fitted to is not in its own file, but a kernel may average over it.
            if owner == "kernels" and getattr(value, "sample_", None) is not None:
                node["sample"] = encoded(value.sample_, arrays, depth + 1)
            return node
    if _is_function(value):
        raise TypeError(f"the function {getattr(value, '__name__', value)!r} cannot be written to a model file")
    raise TypeError(f"a {name} cannot be written to a model file")


def _placed(array: np.ndarray, arrays: Arrays) -> str:
    name = f"x{len(arrays)}"
    arrays[name] = np.ascontiguousarray(array)
    return name


def _offsets(items: list[Any]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(item) for item in items], dtype=np.int64)]).astype(np.int64)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, Kernel)


# ------------------------------------------------------------------------------------------------ reading


def decoded(node: Any, arrays: Arrays, depth: int = 0) -> Any:
    """The value of a node that `encoded` made."""
    if not isinstance(node, dict) or depth > 2 * VALUE_NESTING:
        raise ValueError("expected the description of a value")
    if "value" in node:
        if not isinstance(node["value"], (str, int, float, type(None))):
            raise ValueError("a plain value must be a string, a number, a boolean or null")
        return node["value"]
    if "kernel" in node:
        return _read_kernel(node, arrays, depth)
    kind = node["kind"]
    if kind not in _READERS:
        raise ValueError(f"there is no kind of value {kind!r}")
    value = _READERS[kind](node, arrays, depth + 1)
    return tuple(value) if node.get("tuple") else value


def _read_kernel(node: dict[str, Any], arrays: Arrays, depth: int) -> Kernel:
    cls = _public(node["kernel"])
    if cls is None or not issubclass(cls, Kernel) or cls is Kernel:
        raise ValueError(f"there is no kernel {node['kernel']!r} in mercer.kernels")
    parameters = _parameters(cls)
    values = [decoded(part, arrays, depth + 1) for part in node["parameters"]]
    if len(values) != len(parameters):
        raise ValueError(f"{cls.__name__} has {len(parameters)} parameters, found {len(values)}")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            positional.append(value)
    return cls(*positional, **named)


def _cut(values: Any, offsets: np.ndarray) -> list[Any]:
    bounds = check_offsets("offsets", offsets, len(values)).tolist()
    return [values[start:stop] for start, stop in itertools.pairwise(bounds)]


def _read_objects(node: dict[str, Any], arrays: Arrays, depth: int) -> np.ndarray:
    items, shape = decoded(node["items"], arrays, depth), tuple(node["shape"])
    if node["dtype"] != "O":
        return np.array(items, dtype=node["dtype"]).reshape(shape)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made.reshape(shape)


def _read_csr(node: dict[str, Any], arrays: Arrays, depth: int) -> Any:
    parts = tuple(arrays[node[part]] for part in ("data", "indices", "indptr"))
    make = sp.csr_array if node["new"] else sp.csr_matrix
    matrix = make(parts, shape=tuple(node["shape"]))
    return check_sparse("the matrix", matrix)


def _read_graphs(node: dict[str, Any], arrays: Arrays, depth: int) -> Graphs:
    parts = {part: decoded(node["parts"][part], arrays, depth) for part in _GRAPH_PARTS}
    stacked = [parts.pop(part) for part in ("offsets", "indptr", "indices")]
    return Graphs(*stacked, **parts, names=decoded(node["names"], arrays, depth))


def _read_sequences(node: dict[str, Any], arrays: Arrays, depth: int) -> list[Any]:
    kinds: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    make = kinds[node["of"]]
    if "columns" in node:
        columns = [decoded(column, arrays, depth) for column in node["columns"]]
        return [tuple(row) for row in zip(*columns, strict=True)]
    return [make(part) for part in _cut(decoded(node["items"], arrays, depth), arrays[node["offsets"]])]


def _read_records(node: dict[str, Any], arrays: Arrays, depth: int) -> list[dict[Any, Any]]:
    names = decoded(node["names"], arrays, depth)
    columns = [decoded(column, arrays, depth) for column in node["columns"]]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _read_frame(node: dict[str, Any], arrays: Arrays, depth: int) -> Any:
    import pandas as pd

    names = decoded(node["names"], arrays, depth)
    columns = [decoded(column, arrays, depth) for column in node["columns"]]
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index(names)
    return frame


def _read_structured(node: dict[str, Any], arrays: Arrays, depth: int) -> np.ndarray:
    columns = decoded(node["columns"], arrays, depth)
    first = next(iter(columns.values()))
    made = np.empty(len(first), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        made[name] = column
    return made


def _read_set(node: dict[str, Any], arrays: Arrays, depth: int) -> Any:
    return (frozenset if node["frozen"] else set)(decoded(node["items"], arrays, depth))


def _read_float(node: dict[str, Any], arrays: Arrays, depth: int) -> float:
    if node["text"] not in ("inf", "-inf", "nan"):
        raise ValueError(f"{node['text']!r} is not inf, -inf or nan")
    return float(node["text"])


def _read_dict(node: dict[str, Any], arrays: Arrays, depth: int) -> dict[Any, Any]:
    keys, values = decoded(node["keys"], arrays, depth), decoded(node["values"], arrays, depth)
    return dict(zip(keys, values, strict=True))


def _read_model(node: dict[str, Any], arrays: Arrays, depth: int) -> Any:
    inner = {key: arrays[place] for key, place in node["arrays"].items()}
    if node["owner"] == "kernels":
        cls = _public(node["name"])
    elif node["owner"] in MODELS:
        cls = _class_of(node["owner"])
    else:
        cls = None
    if cls is None or not callable(getattr(cls, "from_state", None)):
        raise ValueError(f"there is no model {node['name']!r} that could be read")
    model = cls.from_state(node["meta"], inner)
    if "sample" in node:
        model.sample_ = decoded(node["sample"], arrays, depth)
    return model


def _packed(node: dict[str, Any], arrays: Arrays) -> dict[str, np.ndarray]:
    return {part: arrays[node[part]] for part in ("bytes", "offsets")}


_READERS: dict[str, Callable[[dict[str, Any], Arrays, int], Any]] = {
    "array": lambda node, arrays, depth: arrays[node["array"]],
    "arrays": lambda node, arrays, depth: _cut(decoded(node["array"], arrays, depth), arrays[node["offsets"]]),
    "byte strings": lambda node, arrays, depth: _cut(arrays[node["bytes"]].tobytes(), arrays[node["offsets"]]),
    "bytes": lambda node, arrays, depth: bytes.fromhex(node["hex"]),
    "csr": _read_csr,
    "dict": _read_dict,
    "float": _read_float,
    "frame": _read_frame,
    "graph": lambda node, arrays, depth: decoded(node["of"], arrays, depth)[0],
    "graph list": lambda node, arrays, depth: list(decoded(node["of"], arrays, depth)),
    "graphs": _read_graphs,
    "list": lambda node, arrays, depth: [decoded(item, arrays, depth) for item in node["items"]],
    "model": _read_model,
    "numbers": lambda node, arrays, depth: arrays[node["array"]].tolist(),
    "objects": _read_objects,
    "records": _read_records,
    "sequences": _read_sequences,
    "set": _read_set,
    "strings": lambda node, arrays, depth: unpack_strings(_packed(node, arrays)),
    "structured": _read_structured,
    "tree": lambda node, arrays, depth: Tree.parse(node["text"]),
    "trees": lambda node, arrays, depth: [Tree.parse(text) for text in decoded(node["text"], arrays, depth)],
}


# ------------------------------------------------------------------------------------------------ names


def _public(name: Any) -> Any:
    """A public name of mercer.kernels that is a class, else None."""
    from mercer import kernels

    found = getattr(kernels, name) if isinstance(name, str) and name in kernels.__all__ else None
    return found if isinstance(found, type) else None


def _parameters(cls: type) -> list[inspect.Parameter]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return []
    listed = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return [parameter for parameter in listed if parameter.kind is not parameter.VAR_KEYWORD]
