"""Values as plain data: a JSON node, with large data in arrays that the node names.

    string, number, boolean, None      itself
    anything else                      {"kind": "strings" | "sequences" | "csr" | "model" | …, …}

Arrays are named after their place: ``support_objects_.offsets``. Types of other packages, such as kernels, graphs and
trees, come with a codec (`register`); the table `registry.CODECS` says which module has it. Reading never runs code
from a file. Objects that hold a function cannot be written.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._state.limits import VALUE_NESTING
from mercer._state.registry import CODECS, MODELS, class_of, kind_of
from mercer._validation import check_offsets, check_sparse

__all__ = [
    "Codec",
    "Reader",
    "Writer",
    "pack_strings",
    "register",
    "unpack_strings",
    "value_from_state",
    "value_to_state",
]

Node = Any  # of JSON
_SHORT = 8  # strings and numbers that stay in JSON
Arrays = dict[str, np.ndarray]


# ------------------------------------------------------------------------------------------------ codecs


@dataclass(frozen=True)
class Codec:
    """How one type is written and read.

    Parameters
    ----------
    kind : str
        The name in files; it stands in the table `registry.CODECS`.
    write : callable (value, Writer) → dict
    read : callable (dict, Reader) → value
    """

    kind: str
    write: Callable[[Any, Writer], dict[str, Node]]
    read: Callable[[dict[str, Node], Reader], Any]


_ONE: dict[type, Codec] = {}
_MANY: dict[type, Codec] = {}
_BY_KIND: dict[str, Codec] = {}


def register(cls: type, one: Codec, many: Codec | None = None) -> None:
    """Register how values of a type and its subclasses are written and read; ``many`` does so for lists of them."""
    for table, codec in ((_ONE, one), (_MANY, many)):
        if codec is not None:
            table[cls] = codec
            _BY_KIND[codec.kind] = codec


def _of_type(table: dict[type, Codec], cls: type) -> Codec | None:
    return next((table[base] for base in cls.__mro__ if base in table), None)


# ------------------------------------------------------------------------------------------------ writing


def value_to_state(value: Any) -> tuple[Node, Arrays]:
    """Return a value as JSON data and arrays.

    Parameters
    ----------
    value : any
        A plain value, an array, a CSR matrix, a data frame, a kernel, a model, graphs; or a list or dict of these.

    Returns
    -------
    node, arrays : JSON data, dict of ndarray

    Raises
    ------
    TypeError
        For a function, or a value of a type that cannot be written.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> value_from_state(*value_to_state([0.5 * Linear() ** 2, "the dog"]))
    [0.5 * (Linear() ** 2), 'the dog']
    """
    out = Writer()
    return out.node(value, "x"), out.arrays


class Writer:
    """The arrays of a file under construction, and the current path in it."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.path: list[str] = []
        self.written: dict[int, int] = {}
        """Identity of a nested object → its number, so that one that stands in two places is written once."""

    def at(self, name: str, write: Callable[[], Node]) -> Node:
        """Return the result of ``write``, with arrays named after this path below the current one."""
        if len(self.path) > VALUE_NESTING:
            raise TypeError("objects nested so deeply cannot be written to a model file")
        self.path.append(name)
        try:
            return write()
        finally:
            self.path.pop()

    def node(self, value: Any, name: str) -> Node:
        """Return the node of any value that can be written."""
        return self.at(name, lambda: _encoded(value, self))

    def here(self, value: Any) -> Node:
        """Return the node of any value that can be written, with arrays named after the current path."""
        return _encoded(value, self)

    def place(self, array: np.ndarray, part: str | None = None) -> str:
        """Store an array and return its name."""
        first = name = ".".join(self.path if part is None else [*self.path, part])
        for i in itertools.count(1):
            if name not in self.arrays:
                break
            name = f"{first}.{i}"
        self.arrays[name] = np.asarray(array, order="C")
        return name


def _encoded(value: Any, out: Writer) -> Node:
    import scipy.sparse as sp

    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return _scalar(value)
    codec = _of_type(_ONE, type(value))
    if codec is not None:
        return {"kind": codec.kind, **codec.write(value, out)}
    if isinstance(value, np.ndarray):
        return _array(value, out)
    if sp.issparse(value):
        return write_csr(value, out)
    if isinstance(value, (set, frozenset)):
        items = out.node(sorted(value, key=repr), "items")
        return {"kind": "set", "frozen": isinstance(value, frozenset), "items": items}
    if isinstance(value, dict):
        return {
            "kind": "dict",
            "keys": out.node(list(value.keys()), "keys"),
            "values": out.node(list(value.values()), "values"),
        }
    if isinstance(value, (list, tuple)):
        return {**_list(list(value), out), **({"tuple": True} if isinstance(value, tuple) else {})}
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        columns = [out.node(value[name].to_numpy(), f"column{i}") for i, name in enumerate(value.columns)]
        return {"kind": "frame", "names": out.node(list(value.columns), "names"), "columns": columns}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"kind": "dtype", "name": np.dtype(value).name, "type": isinstance(value, type)}
    return _model(value, out)


def _scalar(value: Any) -> Node:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        return {"kind": "bytes", "hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"kind": "float", "text": repr(value)}
    return value


def _array(value: np.ndarray, out: Writer) -> Node:
    if value.dtype.names is not None:
        columns = {name: value[name] for name in value.dtype.names}
        return {"kind": "structured", "columns": out.node(columns, "columns")}
    if value.dtype.kind in "OUS":
        flat = out.node(value.ravel().tolist(), "items")
        return {"kind": "objects", "shape": list(value.shape), "dtype": value.dtype.kind, "items": flat}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8 or value.dtype == np.float16:
        raise TypeError(f"arrays of {value.dtype} cannot be written to a model file")
    return {"kind": "array", "array": out.place(value)}


def write_csr(value: Any, out: Writer) -> Node:
    """Return the node of a sparse matrix."""
    import scipy.sparse as sp

    matrix = value.tocsr()
    parts = {part: out.place(getattr(matrix, part), part) for part in ("data", "indices", "indptr")}
    return {"kind": "csr", "shape": [int(n) for n in matrix.shape], "new": isinstance(value, sp.sparray), **parts}


def _list(items: list[Any], out: Writer) -> dict[str, Node]:
    """A list: of equal things in one array where that is possible, since what is large does not belong in JSON."""
    if len(items) <= _SHORT and all(isinstance(item, (str, int, float, type(None), np.generic)) for item in items):
        return {"kind": "list", "items": [_scalar(item) for item in items]}
    for kind, belongs, write in _LISTS:
        if items and all(map(belongs, items)):
            node = write(items, out)
            if node is not None:
                return {"kind": kind, **node}
    many = _of_type(_MANY, type(items[0])) if items else None
    if many is not None and all(_of_type(_MANY, type(item)) is many for item in items):
        return {"kind": many.kind, **many.write(items, out)}
    if any(_is_function(item) for item in items):
        raise TypeError("functions cannot be written to a model file")
    return {"kind": "list", "items": [out.node(item, str(i)) for i, item in enumerate(items)]}


def write_strings(items: Sequence[str], out: Writer) -> dict[str, Node]:
    """Write strings in two arrays."""
    packed = pack_strings([str(item) for item in items])
    return {part: out.place(array, part) for part, array in packed.items()}


def _byte_strings(items: list[bytes], out: Writer) -> dict[str, Node]:
    data = np.frombuffer(b"".join(items), np.uint8)
    return {"bytes": out.place(data, "bytes"), "offsets": out.place(_offsets(items), "offsets")}


def _numbers(items: list[Any], out: Writer) -> dict[str, Node] | None:
    integers = all(isinstance(item, (int, np.integer)) for item in items)
    if not integers and not all(isinstance(item, (float, np.floating)) for item in items):
        return None  # numbers of both kinds would come back as one
    if integers and not all(-(2**63) <= int(item) < 2**63 for item in items):
        return None
    return {"array": out.place(np.array(items, np.int64 if integers else np.float64))}


def _stacked(items: list[np.ndarray], out: Writer) -> dict[str, Node] | None:
    first = items[0]
    if first.ndim == 0 or any(a.dtype != first.dtype or a.shape[1:] != first.shape[1:] for a in items):
        return None
    return {"array": out.node(np.concatenate(items), "values"), "offsets": out.place(_offsets(items), "offsets")}


def _nested(items: list[Any], out: Writer) -> dict[str, Node] | None:
    kind = type(items[0])
    if any(type(item) is not kind for item in items):
        return None
    parts = [sorted(item, key=repr) for item in items] if kind in (set, frozenset) else items
    if kind is tuple and len({len(item) for item in items}) == 1 and len(items[0]):
        columns = [out.node(list(column), f"column{i}") for i, column in enumerate(zip(*items, strict=True))]
        return {"of": "tuple", "columns": columns}
    flat = out.node([x for part in parts for x in part], "items")
    return {"of": kind.__name__, "items": flat, "offsets": out.place(_offsets(parts), "offsets")}


def _records(items: list[dict[Any, Any]], out: Writer) -> dict[str, Node] | None:
    names = list(items[0])
    if any(list(item) != names for item in items):
        return None
    columns = [out.node([item[name] for item in items], f"column{i}") for i, name in enumerate(names)]
    return {"names": out.node(names, "names"), "columns": columns}


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, kinds) and not isinstance(item, bool)


_LISTS: list[tuple[str, Callable[[Any], bool], Callable[[list[Any], Writer], dict[str, Node] | None]]] = [
    ("strings", _of(str), write_strings),
    ("byte strings", _of(bytes), _byte_strings),
    ("numbers", _of(int, float, np.integer, np.floating), _numbers),
    ("arrays", _of(np.ndarray), _stacked),
    ("sequences", _of(list, tuple, set, frozenset), _nested),
    ("records", _of(dict), _records),
]


def _model(value: Any, out: Writer) -> Node:
    """A model of one of the kinds that have files of their own."""
    from sklearn.exceptions import NotFittedError

    if _is_function(value):
        raise TypeError(f"the function {getattr(value, '__name__', value)!r} cannot be written to a model file")
    try:
        kind = kind_of(value)
    except TypeError:
        raise TypeError(f"a {type(value).__name__} cannot be written to a model file") from None
    if hasattr(value, "_write_state"):
        try:
            return {"kind": "model", "name": kind, "state": value._write_state(out)}
        except NotFittedError:  # a parameter of another model: its own parameters are all there is
            return {"kind": "model", "name": kind, "state": value._write_settings(out)}
    meta, inner = value.to_state()
    return {"kind": "model", "name": kind, "meta": meta, "arrays": {k: out.place(v, k) for k, v in inner.items()}}


def _offsets(items: Sequence[Any]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(item) for item in items], dtype=np.int64)]).astype(np.int64)


def _is_function(value: Any) -> bool:
    return callable(value) and _of_type(_ONE, type(value)) is None


# ------------------------------------------------------------------------------------------------ reading


def value_from_state(node: Node, arrays: Arrays) -> Any:
    """Return the value that `value_to_state` wrote."""
    return Reader(arrays).value(node)


class Reader:
    """The arrays of a file, and the current nesting depth."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.depth = 0
        self.objects: list[Any] = []
        """Nested objects read so far, in the order in which they were written."""

    def value(self, node: Node) -> Any:
        """Return the value of a node made by `Writer.node`."""
        if isinstance(node, (str, int, float, type(None))):
            return node
        if not isinstance(node, dict) or self.depth > 2 * VALUE_NESTING:
            raise ValueError("expected the description of a value")
        kind = node["kind"]
        if not isinstance(kind, str) or (kind not in _READERS and kind not in CODECS):
            raise ValueError(f"there is no kind of value {kind!r}")
        if kind not in _READERS and kind not in _BY_KIND:
            importlib.import_module(CODECS[kind])
        read = _READERS[kind] if kind in _READERS else _BY_KIND[kind].read
        self.depth += 1
        try:
            value = read(node, self)
        finally:
            self.depth -= 1
        return tuple(value) if node.get("tuple") else value

    def array(self, name: Node) -> np.ndarray:
        """An array by the name that a node gives."""
        if not isinstance(name, str):
            raise ValueError("expected the name of an array")
        return self.arrays[name]


def _cut(values: Any, offsets: np.ndarray) -> list[Any]:
    bounds = check_offsets("offsets", offsets, len(values)).tolist()
    return [values[start:stop] for start, stop in itertools.pairwise(bounds)]


def _read_objects(node: dict[str, Node], source: Reader) -> np.ndarray:
    items, shape = source.value(node["items"]), tuple(node["shape"])
    if node["dtype"] != "O":
        return np.array(items, dtype=node["dtype"]).reshape(shape)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made.reshape(shape)


def read_csr(node: dict[str, Node], source: Reader) -> Any:
    """Return the sparse matrix of a node, after checks."""
    import scipy.sparse as sp

    parts = tuple(source.array(node[part]) for part in ("data", "indices", "indptr"))
    make = sp.csr_array if node["new"] else sp.csr_matrix
    matrix = make(parts, shape=tuple(node["shape"]))
    return check_sparse("the matrix", matrix)


def read_strings(node: dict[str, Node], source: Reader) -> list[str]:
    """Return the strings of two arrays."""
    return unpack_strings({part: source.array(node[part]) for part in ("bytes", "offsets")})


def _read_sequences(node: dict[str, Node], source: Reader) -> list[Any]:
    kinds: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    make = kinds[node["of"]]
    if "columns" in node:
        columns = [source.value(column) for column in node["columns"]]
        return [tuple(row) for row in zip(*columns, strict=True)]
    return [make(part) for part in _cut(source.value(node["items"]), source.array(node["offsets"]))]


def _read_records(node: dict[str, Node], source: Reader) -> list[dict[Any, Any]]:
    names = source.value(node["names"])
    columns = [source.value(column) for column in node["columns"]]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _read_frame(node: dict[str, Node], source: Reader) -> Any:
    import pandas as pd

    names = source.value(node["names"])
    columns = [source.value(column) for column in node["columns"]]
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index(names)
    return frame


def _read_structured(node: dict[str, Node], source: Reader) -> np.ndarray:
    columns = source.value(node["columns"])
    first = next(iter(columns.values()))
    made = np.empty(len(first), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        made[name] = column
    return made


def _read_set(node: dict[str, Node], source: Reader) -> Any:
    return (frozenset if node["frozen"] else set)(source.value(node["items"]))


def _read_float(node: dict[str, Node], source: Reader) -> float:
    if node["text"] not in ("inf", "-inf", "nan"):
        raise ValueError(f"{node['text']!r} is not inf, -inf or nan")
    return float(node["text"])


def _read_dict(node: dict[str, Node], source: Reader) -> dict[Any, Any]:
    keys, values = source.value(node["keys"]), source.value(node["values"])
    return dict(zip(keys, values, strict=True))


def _read_dtype(node: dict[str, Node], source: Reader) -> Any:
    if node["name"] not in _DTYPES:
        raise ValueError(f"there is no type of numbers {node['name']!r}")
    dtype = np.dtype(node["name"])
    return dtype.type if node["type"] else dtype


_DTYPES = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float32", "float64")


def _read_model(node: dict[str, Node], source: Reader) -> Any:
    if node["name"] not in MODELS:
        raise ValueError(f"there is no model {node['name']!r} that could be read")
    cls = class_of(node["name"])
    if "state" in node:
        return cls._read_state(node["state"], source)
    return cls.from_state(node["meta"], {key: source.array(place) for key, place in node["arrays"].items()})


_READERS: dict[str, Callable[[dict[str, Node], Reader], Any]] = {
    "array": lambda node, source: source.array(node["array"]),
    "arrays": lambda node, source: _cut(source.value(node["array"]), source.array(node["offsets"])),
    "byte strings": lambda node, source: _cut(source.array(node["bytes"]).tobytes(), source.array(node["offsets"])),
    "bytes": lambda node, source: bytes.fromhex(node["hex"]),
    "csr": read_csr,
    "dict": _read_dict,
    "dtype": _read_dtype,
    "float": _read_float,
    "frame": _read_frame,
    "list": lambda node, source: [source.value(item) for item in node["items"]],
    "model": _read_model,
    "numbers": lambda node, source: source.array(node["array"]).tolist(),
    "objects": _read_objects,
    "records": _read_records,
    "sequences": _read_sequences,
    "set": _read_set,
    "strings": read_strings,
    "structured": _read_structured,
}


# ------------------------------------------------------------------------------------------------ strings


def pack_strings(strings: Sequence[str]) -> dict[str, np.ndarray]:
    """Pack a list of strings into one UTF-8 buffer and its offsets (Arrow's layout).

    Parameters
    ----------
    strings : sequence of str
        Any strings, including the empty string and lone surrogates.

    Returns
    -------
    dict
        ``"bytes"``: uint8 array; ``"offsets"``: int64 array of ``len(strings) + 1`` positions in it.

    Examples
    --------
    >>> packed = pack_strings(["né", "", "B-PER"])
    >>> packed["offsets"]
    array([0, 3, 3, 8])
    >>> unpack_strings(packed)
    ['né', '', 'B-PER']
    """
    if isinstance(strings, str):
        raise TypeError("pack_strings takes a list of strings, not one string")
    for i, string in enumerate(strings):
        if not isinstance(string, str):
            raise TypeError(f"pack_strings takes strings, but item {i} is a {type(string).__name__}")
    # surrogatepass: text read with errors="surrogateescape" must come back as it was.
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(item) for item in encoded], out=offsets[1:])
    return {"bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), "offsets": offsets}


def unpack_strings(packed: Mapping[str, np.ndarray]) -> list[str]:
    """Return the list of strings that `pack_strings` packed.

    Parameters
    ----------
    packed : mapping
        The arrays ``"bytes"`` and ``"offsets"``.

    Returns
    -------
    list of str
        The strings.

    Raises
    ------
    ValueError
        If `pack_strings` cannot have made the arrays.

    Examples
    --------
    >>> unpack_strings({"bytes": np.array([104, 105], np.uint8), "offsets": np.array([0, 3])})
    Traceback (most recent call last):
    ...
    ValueError: packed strings: offsets must rise from 0 to the number of bytes (2)
    """
    for part in ("bytes", "offsets"):
        if part not in packed:
            raise ValueError(f"packed strings: the array {part!r} is missing")
    data, offsets = packed["bytes"], packed["offsets"]
    if data.dtype != np.uint8 or data.ndim != 1:
        raise ValueError("packed strings: bytes must be a one-dimensional uint8 array")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError("packed strings: offsets must be a one-dimensional int64 array, not empty")
    if offsets[0] != 0 or offsets[-1] != data.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"packed strings: offsets must rise from 0 to the number of bytes ({data.size})")
    buffer, bounds = data.tobytes(), offsets.tolist()
    try:
        return [buffer[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(bounds)]
    except UnicodeDecodeError as err:
        raise ValueError(f"packed strings: not UTF-8 ({err.reason})") from err
