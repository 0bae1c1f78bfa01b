"""Declarations of the state that a class keeps in model files: constructor parameters and fitted attributes.

    class Ridge(Saved, Estimator):
        saved = Fields(classes_=LabelValues(2), coef_=Floats("classes_", "n_features_in_"))

The state of a model is ``{"version": …, "params": {name: node}, "fitted": {name: node}}`` and the arrays that the nodes
name. Reading builds the model from its parameters, sets the attributes, checks them against their kinds, and calls
`Saved._check_state` for further checks. A size of an array is a number, None for any size, or the path of an attribute
(``"n_features_in_"``, ``"structure_.n_weights"``). If that attribute is a collection, its length is the size. Fields of
a base class are kept with ``saved = Base.saved | Fields(…)``.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from mercer._state.limits import reserve
from mercer._state.registry import RUN_SETTINGS
from mercer._state.values import Node, Reader, Writer, read_csr, read_strings, write_csr, write_strings
from mercer._validation import check_count

__all__ = [
    "AsJson",
    "ByName",
    "Choice",
    "Count",
    "Csr",
    "DictOf",
    "Fields",
    "Flag",
    "Flags",
    "Floats",
    "History",
    "Ints",
    "Json",
    "Kind",
    "LabelValues",
    "ListOf",
    "Nested",
    "Number",
    "Objects",
    "OnlyInside",
    "Optional",
    "PackedStrings",
    "Saved",
    "SparseInts",
    "Strings",
    "Text",
    "Transient",
    "check_shapes",
    "outputs",
]

_Self = TypeVar("_Self", bound="Saved")
Size = int | str | None | Callable[[Any], int]


# ------------------------------------------------------------------------------------------------ kinds


class Kind:
    """How an attribute is written, read and checked. This base class takes all types that `values` can write."""

    optional = False

    def write(self, value: Any, out: Writer) -> Node:
        """Return the node of a value, at the current path of the writer."""
        return out.here(value)

    def read(self, node: Node, source: Reader) -> Any:
        """Return the value of a node."""
        return source.value(node)

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ValueError if the value does not fit. All attributes are set before this call."""


class Objects(Kind):
    """Any object: kernels, other models, and so on. `_check_state` must validate it."""


class Fields(Mapping[str, Kind]):
    """Attributes by name and kind. Those of two classes are joined by ``|``, where the second wins.

    Examples
    --------
    >>> Fields(classes_=LabelValues(), coef_=Floats()) | Fields(coef_=Floats("classes_"))
    Fields(classes_=LabelValues, coef_=Floats)
    """

    def __init__(self, **kinds: Kind) -> None:
        self._kinds = kinds

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __or__(self, other: Mapping[str, Kind]) -> Fields:
        return Fields(**{**self._kinds, **other})

    def __repr__(self) -> str:
        return f"Fields({', '.join(f'{name}={type(kind).__name__}' for name, kind in self.items())})"


class _Plain(Kind):
    """A value that is a node itself."""

    def write(self, value: Any, out: Writer) -> Node:
        return value.item() if isinstance(value, np.generic) else value

    def read(self, node: Node, source: Reader) -> Any:
        return node


class Flag(_Plain):
    """True or False."""

    def write(self, value: Any, out: Writer) -> Node:
        return bool(value)

    def check(self, name: str, value: Any, model: Any) -> None:
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, got {value!r}")


class Count(_Plain):
    """An integer of at least ``least`` and at most ``most``."""

    def __init__(self, least: int = 0, most: Size = None) -> None:
        self.least, self.most = least, most

    def check(self, name: str, value: Any, model: Any) -> None:
        most = None if self.most is None else _size(self.most, model)
        if type(value) is not int or value < self.least or (most is not None and value > most):
            limits = f"of at least {self.least}" + ("" if most is None else f" and at most {most}")
            raise ValueError(f"{name} must be an integer {limits}, got {value!r}")


class Number(Kind):
    """A number from ``low`` to ``high``; a finite one unless ``finite`` is False."""

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, finite: bool = True) -> None:
        self.low, self.high, self.finite = low, high, finite

    def write(self, value: Any, out: Writer) -> Node:
        return out.here(float(value))

    def check(self, name: str, value: Any, model: Any) -> None:
        if not isinstance(value, float) or (self.finite and not math.isfinite(value)):
            raise ValueError(f"{name} must be a {'finite ' if self.finite else ''}number, got {value!r}")
        if value < self.low or value > self.high:
            raise ValueError(f"{name} must be a number from {self.low} to {self.high}, got {value!r}")


class Choice(_Plain):
    """One of a few values."""

    def __init__(self, *options: Any) -> None:
        self.options = options

    def check(self, name: str, value: Any, model: Any) -> None:
        if not any(type(value) is type(option) and value == option for option in self.options):
            raise ValueError(f"{name} must be {' or '.join(map(repr, self.options))}, got {value!r}")


class Text(_Plain):
    """A short string."""

    def check(self, name: str, value: Any, model: Any) -> None:
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a string, got {value!r}")


class Strings(Kind):
    """A list of strings, in arrays."""

    def __init__(self, size: Size = None) -> None:
        self.size = size

    def write(self, value: Any, out: Writer) -> Node:
        return write_strings(value, out)

    def read(self, node: Node, source: Reader) -> list[str]:
        return read_strings(node, source)

    def check(self, name: str, value: Any, model: Any) -> None:
        _check_length(name, value, self.size, model)


class PackedStrings(Kind):
    """Strings as `pack_strings` lays them out: a dict of bytes and offsets."""

    def write(self, value: Any, out: Writer) -> Node:
        return {part: out.place(value[part], part) for part in ("bytes", "offsets")}

    def read(self, node: Node, source: Reader) -> dict[str, np.ndarray]:
        return {part: source.array(node[part]) for part in ("bytes", "offsets")}


class LabelValues(Kind):
    """An array of labels (numbers, strings, or both as objects) with a minimum length."""

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def check(self, name: str, value: Any, model: Any) -> None:
        if not isinstance(value, np.ndarray) or value.ndim != 1 or len(value) < self.least:
            raise ValueError(f"{name} must be an array of {self.least} labels or more")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{name} must hold finite numbers")


class _Array(Kind):
    dtypes: ClassVar[str]
    numbers: ClassVar[str]

    def __init__(self, *shape: Size) -> None:
        self.shape = shape

    def write(self, value: Any, out: Writer) -> Node:
        return out.place(np.asarray(value))

    def read(self, node: Node, source: Reader) -> np.ndarray:
        return source.array(node)

    def check(self, name: str, value: Any, model: Any) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.dtypes:
            given = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"{name} must be an array of {self.numbers}, found {given}")
        _check_shape(name, value.shape, self.shape, model)


class Floats(_Array):
    """An array of floating-point numbers, finite unless ``finite`` is False, each from ``low`` to ``high``.

    float32 values become float64 when read, unless ``single`` is set.
    """

    dtypes, numbers = "f", "floating-point numbers"

    def __init__(
        self, *shape: Size, low: float = -math.inf, high: float = math.inf, finite: bool = True, single: bool = False
    ) -> None:
        super().__init__(*shape)
        self.low, self.high, self.finite, self.single = low, high, finite, single

    def read(self, node: Node, source: Reader) -> np.ndarray:
        array = super().read(node, source)
        return array if self.single or array.dtype.kind != "f" else array.astype(np.float64, copy=False)

    def check(self, name: str, value: Any, model: Any) -> None:
        super().check(name, value, model)
        if self.finite and not np.isfinite(value).all():
            raise ValueError(f"{name} must hold finite numbers")
        if (value < self.low).any() or (value > self.high).any():
            raise ValueError(f"{name} must hold numbers from {self.low} to {self.high}")


class Ints(_Array):
    """An array of integers of at least ``low`` and less than ``below``."""

    dtypes, numbers = "iu", "integers"

    def __init__(self, *shape: Size, low: int | None = 0, below: Size = None) -> None:
        super().__init__(*shape)
        self.low, self.below = low, below

    def check(self, name: str, value: Any, model: Any) -> None:
        super().check(name, value, model)
        if self.low is not None and value.size and value.min() < self.low:
            raise ValueError(f"{name} must hold integers of at least {self.low}")
        if self.below is not None and value.size and value.max() >= _size(self.below, model):
            raise ValueError(f"{name} must hold integers below {_size(self.below, model)}")


class Flags(_Array):
    """An array of booleans."""

    dtypes, numbers = "b", "booleans"


class Csr(Kind):
    """A sparse matrix of finite numbers."""

    def __init__(self, *shape: Size) -> None:
        self.shape = shape

    def write(self, value: Any, out: Writer) -> Node:
        return write_csr(value, out)

    def read(self, node: Node, source: Reader) -> Any:
        return read_csr(node, source)

    def check(self, name: str, value: Any, model: Any) -> None:
        _check_shape(name, value.shape, self.shape, model)
        if value.dtype.kind not in "fiu" or not np.isfinite(value.data).all():
            raise ValueError(f"{name} must hold finite numbers")


class SparseInts(Kind):
    """A vector of nonnegative integers, mostly 0; a file holds the nonzero ones."""

    def __init__(self, size: Size) -> None:
        self.size = size

    def write(self, value: Any, out: Writer) -> Node:
        used = np.flatnonzero(value)
        return {"size": len(value), "places": out.place(used, "places"), "values": out.place(value[used], "values")}

    def read(self, node: Node, source: Reader) -> np.ndarray:
        places, values = source.array(node["places"]), source.array(node["values"])
        if places.ndim != 1 or places.shape != values.shape or {places.dtype, values.dtype} != {np.dtype("i8")}:
            raise ValueError("numbers and their places must be equally many integers")
        size = check_count("size", node["size"], 0)
        reserve(8 * size, f"a vector of {size} numbers")
        if len(places) and (places.min() < 0 or places.max() >= size or values.min() < 0):
            raise ValueError(f"a place lies outside of 0 .. {size - 1}, or a number is negative")
        vector = np.zeros(size, np.int64)
        vector[places] = values
        return vector

    def check(self, name: str, value: Any, model: Any) -> None:
        _check_length(name, value, self.size, model)


class Json(_Plain):
    """Short JSON data: dicts with string keys, lists, strings, finite numbers. `_check_state` must validate it."""

    def write(self, value: Any, out: Writer) -> Node:
        return value


class AsJson(_Plain):
    """An object of a class with ``to_json`` and ``from_json``, for short data."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def write(self, value: Any, out: Writer) -> Node:
        return value.to_json()

    def read(self, node: Node, source: Reader) -> Any:
        return self.cls.from_json(node)


class Optional(Kind):
    """An attribute that may be None or missing."""

    optional = True

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def write(self, value: Any, out: Writer) -> Node:
        return None if value is None else self.kind.write(value, out)

    def read(self, node: Node, source: Reader) -> Any:
        return None if node is None else self.kind.read(node, source)

    def check(self, name: str, value: Any, model: Any) -> None:
        if value is not None:
            self.kind.check(name, value, model)


class OnlyInside(Optional):
    """An attribute that is written only if the model is part of another one, not in a file of its own."""


class ListOf(Kind):
    """A list of values of one kind."""

    def __init__(self, kind: Kind, size: Size = None) -> None:
        self.kind, self.size = kind, size

    def write(self, value: Any, out: Writer) -> Node:
        return [out.at(str(i), partial(self.kind.write, item, out)) for i, item in enumerate(value)]

    def read(self, node: Node, source: Reader) -> list[Any]:
        if not isinstance(node, list):
            raise ValueError("expected a list")
        return [self.kind.read(item, source) for item in node]

    def check(self, name: str, value: Any, model: Any) -> None:
        _check_length(name, value, self.size, model)
        for i, item in enumerate(value):
            self.kind.check(f"{name}[{i}]", item, model)


class DictOf(Kind):
    """A dict of short names to values of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def write(self, value: Any, out: Writer) -> Node:
        return {name: out.at(name, partial(self.kind.write, item, out)) for name, item in value.items()}

    def read(self, node: Node, source: Reader) -> dict[str, Any]:
        if not isinstance(node, dict):
            raise ValueError("expected values by name")
        return {name: self.kind.read(item, source) for name, item in node.items()}

    def check(self, name: str, value: Any, model: Any) -> None:
        for key, item in value.items():
            self.kind.check(f"{name}[{key!r}]", item, model)


class Nested(Kind):
    """Another object with declared state, of one of these classes. Shared references stay shared after reading."""

    def __init__(self, *classes: type[Saved]) -> None:
        self.classes = {cls.__name__: cls for cls in classes}

    def write(self, value: Any, out: Writer) -> Node:
        name = type(value).__name__
        if self.classes.get(name) is not type(value):
            raise TypeError(f"a {name} cannot be written to a model file")
        if id(value) in out.written:
            return {"same": out.written[id(value)]}
        state = value._write_state(out)
        out.written[id(value)] = len(out.written)
        return state if len(self.classes) == 1 else {"is": name, **state}

    def read(self, node: Node, source: Reader) -> Any:
        if not isinstance(node, dict):
            raise ValueError("expected the state of an object")
        if "same" in node:
            value = source.objects[check_count("same", node["same"], 0)]
            if self.classes.get(type(value).__name__) is not type(value):
                raise ValueError(f"expected a {' or a '.join(self.classes)}, found a {type(value).__name__}")
            return value
        name = next(iter(self.classes)) if len(self.classes) == 1 else node["is"]
        if name not in self.classes:
            raise ValueError(f"expected the state of a {' or a '.join(self.classes)}, found {name!r}")
        value = self.classes[name]._read_state(node, source)
        source.objects.append(value)
        return value


class ByName(_Plain):
    """An object with a ``name`` from a table of such objects; the table may be a function that returns it."""

    def __init__(self, table: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> None:
        self.table = table

    def write(self, value: Any, out: Writer) -> Node:
        return value.name

    def read(self, node: Node, source: Reader) -> Any:
        table = self.table() if callable(self.table) else self.table
        if not isinstance(node, str) or node not in table:
            raise ValueError(f"{node!r} is none of {', '.join(sorted(table))}")
        return table[node]


class History(Kind):
    """Values of every iteration by name. Elapsed seconds are not written; they are NaN when read."""

    def __init__(self, seconds: bool = True) -> None:
        self.seconds = seconds

    def write(self, value: Any, out: Writer) -> Node:
        return {
            name: [float(x) if np.isfinite(x) else None for x in figures]
            for name, figures in value.items()
            if name != "seconds"
        }

    def read(self, node: Node, source: Reader) -> dict[str, list[float]]:
        if not isinstance(node, dict):
            raise ValueError("the history must be an object of lists")
        history = {str(name): [np.nan if x is None else float(x) for x in values] for name, values in node.items()}
        if history and self.seconds:
            history["seconds"] = [np.nan] * max(len(values) for values in history.values())
        return history


class Transient(Kind):
    """An attribute that is never written; a loaded model gets this value (or the result, if it is a function)."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


def outputs(model: Any) -> int:
    """Number of rows of a classifier's coefficients: one for two classes, else one per class. A size for arrays."""
    return 1 if len(model.classes_) == 2 else len(model.classes_)


def check_shapes(model: Any, **shapes: tuple[int, ...]) -> None:
    """Raise ValueError unless attributes have these shapes."""
    for name, shape in shapes.items():
        _check_shape(name, np.shape(getattr(model, name)), shape, model)


def _size(size: Size, model: Any) -> int:
    import scipy.sparse as sp

    value: Any = size(model) if callable(size) else operator.attrgetter(size)(model) if isinstance(size, str) else size
    if sp.issparse(value):
        return int(value.shape[0])
    return len(value) if hasattr(value, "__len__") else operator.index(value)


def _check_shape(name: str, given: tuple[int, ...], shape: tuple[Size, ...], model: Any) -> None:
    if not shape:
        return
    expected = tuple(None if size is None else _size(size, model) for size in shape)
    if len(given) != len(expected) or any(n is not None and n != m for n, m in zip(expected, given, strict=True)):
        shown = ", ".join("any" if n is None else str(n) for n in expected) + ("," if len(expected) == 1 else "")
        raise ValueError(f"{name} must have the shape ({shown}), found {given}")


def _check_length(name: str, value: Any, size: Size, model: Any) -> None:
    if size is not None and len(value) != _size(size, model):
        raise ValueError(f"{name} must have {_size(size, model)} items, found {len(value)}")


# ------------------------------------------------------------------------------------------------ the mixin

_COLUMNS = Fields(n_features_in_=Optional(Count()), feature_names_in_=Optional(LabelValues(0)))
"""Of every estimator of tables."""


class Saved:
    """A class whose objects can be written to model files: constructor parameters and the attributes in ``saved``."""

    saved: ClassVar[Fields] = Fields()
    version: ClassVar[int] = 1
    """Of what is written; raised when files of the last one cannot be read any more."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the state for a model file: JSON and arrays. See :func:`mercer.save`."""
        out = Writer()
        return self._write_state(out), out.arrays

    @classmethod
    def from_state(cls: type[_Self], meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> _Self:
        """Return the inverse of :meth:`to_state`."""
        return cls._read_state(meta, Reader(arrays))

    def encoded_params(self) -> dict[str, Node]:
        """Return the parameters as a model file writes them, without the arrays."""
        return self._write_params(Writer())

    # ------------------------------------------------------------------ for subclasses

    def _check_complete(self) -> None:
        """Raise NotFittedError where there is nothing to write yet."""
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import check_is_fitted

        if isinstance(self, BaseEstimator):
            check_is_fitted(self)

    def _saved_params(self) -> dict[str, Any]:
        """The parameters as a file keeps them; a generator of random numbers is not kept."""
        from sklearn.base import BaseEstimator

        if isinstance(self, BaseEstimator):
            params = self.get_params(deep=False)
        else:
            params = {name: getattr(self, name) for name in _parameter_names(type(self))}
        if "random_state" in params and not isinstance(params["random_state"], (int, np.integer)):
            params["random_state"] = None
        return {name: value for name, value in params.items() if name not in RUN_SETTINGS}

    @classmethod
    def _make(cls: type[_Self], params: dict[str, Any]) -> _Self:
        """An object with these parameters, from a file; sizes that they ask for are to be reserved first."""
        return cls(**params)

    def _check_state(self) -> None:
        """Raise ValueError for what the kinds of the attributes do not say; set what follows from the others."""

    # ------------------------------------------------------------------ writing and reading

    @classmethod
    def _fields(cls) -> Fields:
        from sklearn.base import BaseEstimator

        return _COLUMNS | cls.saved if issubclass(cls, BaseEstimator) else cls.saved

    def _write_params(self, out: Writer) -> dict[str, Node]:
        return {name: out.node(value, name) for name, value in self._saved_params().items()}

    def _write_state(self, out: Writer) -> dict[str, Node]:
        self._check_complete()
        fitted = {}
        for name, kind in self._fields().items():
            if isinstance(kind, Transient) or (isinstance(kind, OnlyInside) and not out.path):
                continue
            if hasattr(self, name) or not kind.optional:
                fitted[name] = out.at(name, partial(kind.write, getattr(self, name), out))
        return {**self._write_settings(out), "fitted": fitted}

    def _write_settings(self, out: Writer) -> dict[str, Node]:
        return {"version": self.version, "params": self._write_params(out)}

    @classmethod
    def _read_state(cls: type[_Self], node: dict[str, Node], source: Reader) -> _Self:
        params, fitted = node["params"], node.get("fitted", {})
        if not isinstance(params, dict) or not isinstance(fitted, dict):
            raise ValueError("parameters and attributes must be objects with names")
        if node["version"] != cls.version:
            raise ValueError(f"this version reads {cls.__name__} of version {cls.version}, found {node['version']!r}")
        model = cls._make({name: source.value(part) for name, part in params.items() if name not in RUN_SETTINGS})
        if "fitted" not in node and source.depth:
            return model
        fields = cls._fields()
        unknown = next((name for name in fitted if isinstance(fields.get(name, Transient()), Transient)), None)
        if unknown is not None:
            raise ValueError(f"a {cls.__name__} has no attribute {unknown!r}")
        for name, kind in fields.items():
            if isinstance(kind, Transient):
                setattr(model, name, kind.value() if callable(kind.value) else kind.value)
            elif name in fitted or not kind.optional:
                setattr(model, name, kind.read(fitted[name], source))
        for name in fitted:
            fields[name].check(name, getattr(model, name), model)
        model._check_state()
        return model


def _parameter_names(cls: type) -> list[str]:
    listed = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return [parameter.name for parameter in listed]
