"""JSON input of models: a form per kind of input checks instances and converts them to arguments.

A form converts the list of instances of a request into the argument of ``predict``. Its errors name the position of the
instance (``instances[3]``). The model itself checks properties that only it knows, such as the width of a row or the
symbols of a kernel. Arguments of several requests are joined for one call, so they are lists, arrays of rows, or
`Views` of these.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from mercer.serve.errors import RequestError

__all__ = ["FORMS", "Form", "Limits", "Views", "form_of_objects", "join", "size_of"]


@dataclass(frozen=True)
class Limits:
    """Limits of a request."""

    body: int = 16 << 20
    instances: int = 4096
    length: int = 100_000
    """Maximal size of one instance: positions, characters, nodes or pixels."""
    seconds: float = 30.0


@dataclass(frozen=True)
class Views:
    """Several views of the same instances, the argument of canonical correlation analysis."""

    parts: tuple[Any, ...]


def size_of(X: Any) -> int:
    """Return the number of instances of an argument."""
    return size_of(X.parts[0]) if isinstance(X, Views) else int(X.shape[0]) if hasattr(X, "shape") else len(X)


def join(arguments: Sequence[Any]) -> Any:
    """Join arguments into one; raise a ValueError if their shapes do not match."""
    first = arguments[0]
    if len(arguments) == 1:
        return first
    if isinstance(first, Views):
        return Views(tuple(join([one.parts[k] for one in arguments]) for k in range(len(first.parts))))
    if isinstance(first, np.ndarray):
        if len({(one.dtype.kind, one.shape[1:]) for one in arguments}) > 1:
            raise ValueError("rows of different shapes")
        return np.concatenate(arguments)
    return [item for one in arguments for item in one]


@dataclass(frozen=True)
class Form:
    """A kind of input.

    Attributes
    ----------
    name : str
    says : str
        Description of one instance.
    schema : dict
        JSON schema of an instance.
    read : callable
        Function of (model, instances, limits) that returns the argument of the verbs.
    example : callable
        Function of a model that returns a list of valid instances.
    """

    name: str
    says: str
    schema: dict[str, Any]
    read: Callable[[Any, list[Any], Limits], Any]
    example: Callable[[Any], list[Any]]


def wrong(i: int, message: str) -> RequestError:
    """Return the error for an invalid instance."""
    return RequestError(422, f"instances[{i}] {message}")


def _found(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _check_length(i: int, size: int, limits: Limits, what: str) -> None:
    if size > limits.length:
        raise RequestError(413, f"instances[{i}] has {size:,} {what}, at most {limits.length:,} are allowed")


# ----------------------------------------------------------------------------------------------------- rows of numbers


def _width(model: Any) -> int | None:
    known = getattr(model, "n_features_in_", None)
    return int(known) if isinstance(known, (int, np.integer)) else None


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def numbers(instances: list[Any], limits: Limits, width: int | None = None) -> np.ndarray:
    """Convert rows of finite numbers of equal width."""
    for i, row in enumerate(instances):
        if not isinstance(row, list):
            raise wrong(i, f"must be an array of numbers, found {_found(row)}")
        _check_length(i, len(row), limits, "numbers")
        if width is not None and len(row) != width:
            raise wrong(i, f"has {len(row)} numbers, this model takes {width}")
    try:
        X = np.array(instances)  # of texts or null it is an array of another kind
    except (ValueError, TypeError, OverflowError):
        raise _bad_row(instances) from None
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise _bad_row(instances)
    X = X.astype(np.float64, copy=False)
    if not np.isfinite(X).all():
        raise wrong(int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0]), "contains a number that is not finite")
    return X


def _bad_row(instances: list[Any]) -> RequestError:
    for i, row in enumerate(instances):
        for j, value in enumerate(row):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return wrong(i, f"must be an array of numbers, but [{j}] is {_found(value)}")
        if len(row) != len(instances[0]):
            return wrong(i, f"has {len(row)} numbers, instances[0] has {len(instances[0])}")
    return RequestError(422, "instances must be arrays of numbers of one length")


def _named_rows(model: Any, instances: list[Any]) -> list[Any]:
    """Convert objects with feature names to arrays in the model's order."""
    names = _names(model)
    if names is None or not any(isinstance(row, dict) for row in instances):
        return instances
    rows = []
    for i, row in enumerate(instances):
        if not isinstance(row, dict):
            raise wrong(i, f"must be an object like the others, found {_found(row)}")
        missing = next((name for name in names if name not in row), None)
        if missing is not None:
            raise wrong(i, f"has no {missing!r}; this model was trained with {', '.join(names[:20])}")
        rows.append([row[name] for name in names])
    return rows


def _read_rows(model: Any, instances: list[Any], limits: Limits) -> Any:
    if _takes_table(model):
        return _read_records(model, instances, limits)
    return numbers(_named_rows(model, instances), limits, _width(model))


def _example_rows(model: Any) -> list[Any]:
    if _takes_table(model):
        return [_example_record(model)]
    points = getattr(model, "points_", None)  # of pre-images: a weight for each training object
    width = _width(model) or (3 if points is None else len(points))
    return [[round(0.1 * (j % 7), 1) for j in range(width)]]


ROWS = Form(
    "rows",
    "an array of numbers, one for each feature (or an object with the names of the features)",
    {"oneOf": [{"type": "array", "items": {"type": "number"}}, {"type": "object"}]},
    _read_rows,
    _example_rows,
)


def _read_bits(model: Any, instances: list[Any], limits: Limits) -> Any:
    X = numbers(instances, limits, _width(model))
    whole = X.astype(np.int64)
    if (whole != X).any():
        raise wrong(int(np.flatnonzero((whole != X).any(axis=1))[0]), "must contain integers")
    return whole


INTEGERS = Form(
    "integers",
    "an array of integers, one for each variable",
    {"type": "array", "items": {"type": "integer"}},
    _read_bits,
    lambda model: [[0] * (_width(model) or len(getattr(model, "n_states_", ())) or 3)],
)


# ----------------------------------------------------------------------------------------------------- tables, records


def _takes_table(model: Any) -> bool:
    return type(getattr(model, "map_", None)).__name__ == "TableEncoder" or type(model).__name__ == "TableEncoder"


def _columns(model: Any) -> list[tuple[str, str, list[Any]]]:
    """Return (name, kind, categories) of the columns of a table encoder."""
    encoder = getattr(model, "map_", model)
    columns = getattr(encoder, "columns_", ())
    return [(str(c["name"]), str(c["kind"]), list(c.get("categories") or ())) for c in columns]


def _example_record(model: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, kind, categories in _columns(model):
        made[name] = 1.0 if kind == "number" else (str(categories[0]) if categories else "a")
    return made or {"name": "value", "number": 1.0}


def _read_records(model: Any, instances: list[Any], limits: Limits) -> Any:
    for i, record in enumerate(instances):
        if not isinstance(record, dict):
            raise wrong(i, f"must be an object of names and values, found {_found(record)}")
        _check_length(i, len(record), limits, "fields")
        for name, value in record.items():
            if isinstance(value, (dict, list)) and not _plain(value):
                raise wrong(i, f"has a value under {name!r} that is neither text nor a number")
    return instances


def _plain(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value)


RECORDS = Form(
    "records",
    "an object: names of fields and their values, texts or numbers",
    {"type": "object"},
    _read_records,
    lambda model: [_example_record(model)],
)


# --------------------------------------------------------------------------------------------------------------- texts


def _read_strings(model: Any, instances: list[Any], limits: Limits) -> list[str]:
    for i, text in enumerate(instances):
        if not isinstance(text, str):
            raise wrong(i, f"must be a string, found {_found(text)}")
        _check_length(i, len(text), limits, "characters")
    return instances


STRINGS = Form("strings", "a string", {"type": "string"}, _read_strings, lambda model: [_sample_text(model)])


def _sample_text(model: Any) -> str:
    objects = objects_of(model)
    if objects is not None and len(objects) and isinstance(objects[0], str):
        return objects[0]
    return "abab"


def _read_any(model: Any, instances: list[Any], limits: Limits) -> Any:
    kinds: dict[Any, Any] = {str: _read_strings, dict: _read_records, list: _read_rows}
    first = instances[0] if instances else ""
    if type(first) not in kinds:
        raise wrong(
            0, f"must be a string, an object of names and values, or an array of numbers, found {_found(first)}"
        )
    for i, value in enumerate(instances):
        if type(value) is not type(first):
            raise wrong(i, f"must be {_found(first)} like instances[0], found {_found(value)}")
    return kinds[type(first)](model, instances, limits)


EXAMPLES = Form(
    "examples",
    "a text, an object of names and values, or an array of numbers, as in training",
    {"oneOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {"type": "number"}}]},
    _read_any,
    lambda model: _example_rows(model) if _width(model) is not None else ["a short text"],
)


# ----------------------------------------------------------------------------------------------------------- sequences


def _read_sequences(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    made: list[Any] = []
    template = getattr(model, "template", None)
    columns = getattr(model, "n_columns_", None) if template is not None else None
    for i, sequence in enumerate(instances):
        if not isinstance(sequence, list):
            raise wrong(i, f"must be an array of positions (tokens), found {_found(sequence)}")
        if not sequence:
            raise wrong(i, "is empty")
        _check_length(i, len(sequence), limits, "positions")
        if template is not None:
            made.append(_column_tokens(i, sequence, columns))
        elif isinstance(sequence[0], list) and not any(isinstance(v, str) for v in sequence[0]):
            made.append(_matrix(i, sequence, limits))
        else:
            made.append(_symbols(i, sequence))
    return made


def _column_tokens(i: int, sequence: list[Any], columns: int | None) -> list[Any]:
    made = []
    for t, token in enumerate(sequence):
        if isinstance(token, str):
            token = [token]
        if not isinstance(token, list) or not all(isinstance(part, str) for part in token):
            raise wrong(i, f"must contain tokens, strings or arrays of strings, but [{t}] is {_found(token)}")
        if columns is not None and len(token) != columns:
            raise wrong(i, f"must contain tokens of {columns} column{'s' * (columns != 1)}, but [{t}] has {len(token)}")
        made.append(tuple(token))
    return made


def _symbols(i: int, sequence: list[Any]) -> list[Any]:
    kinds = {type(value) for value in sequence}
    if kinds == {str}:
        return sequence
    if kinds <= {int, float}:
        if any(value != value for value in sequence):
            raise wrong(i, "contains a number that is not finite")
        return sequence
    if kinds == {dict}:
        return sequence
    if kinds == {list}:
        bad = next((t for t, v in enumerate(sequence) if not all(isinstance(part, str) for part in v)), None)
        if bad is None:
            return sequence
        raise wrong(i, f"must hold arrays of strings, but [{bad}] contains something else")
    t = next((t for t, v in enumerate(sequence) if type(v) is not type(sequence[0])), 0)
    raise wrong(i, f"must contain positions of one kind, but [{t}] is {_found(sequence[t])}")


def _matrix(i: int, rows: list[Any], limits: Limits) -> np.ndarray:
    try:
        X = np.array(rows)
    except (ValueError, TypeError, OverflowError):
        X = np.zeros(0)
    if X.ndim != 2 or X.dtype.kind not in "fiu":
        raise wrong(i, "must be rows of numbers of one length")
    _check_length(i, X.size, limits, "numbers")
    X = X.astype(np.float64, copy=False)
    if not np.isfinite(X).all():
        raise wrong(i, "contains a number that is not finite")
    return X


def _example_sequences(model: Any) -> list[Any]:
    if getattr(model, "models_", None):  # one for each class
        model = model.models_[0]
    if getattr(model, "template", None) is not None:
        columns = int(getattr(model, "n_columns_", None) or 1)
        words = ["Ada", "wrote", "programs"]
        return [words if columns == 1 else [[word, *["_"] * (columns - 1)] for word in words]]
    index = getattr(model, "index_", None)
    if index is not None:
        first = next((name for name in _vocabulary(index) if "=" in name), None)
        if first is not None:
            key, _, value = first.partition("=")
            return [[{key: value}, {key: value}]]
        return [["Ada", "wrote", "programs"]]
    symbols = _hmm_symbols(model)
    if symbols:
        return [symbols[:3]]
    return [_example_rows(model) * 2]


def _vocabulary(index: Any) -> list[str]:
    """Return some names of a feature index; none for hashed features."""
    try:
        return [str(index.name(column)) for column in range(min(len(index), 50))]
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):
        return []


def _hmm_symbols(model: Any) -> list[Any]:
    if type(model).__name__ != "HiddenMarkovModel":
        return []
    symbols = getattr(getattr(model, "_symbols", None), "classes", None) or getattr(model, "symbols_", None)
    return [] if symbols is None else [s.item() if hasattr(s, "item") else s for s in list(symbols)[:3]]


SEQUENCES = Form(
    "sequences",
    "an array of positions: tokens (strings), arrays of columns, objects of features, or arrays of numbers, as in"
    " training",
    {
        "type": "array",
        "minItems": 1,
        "items": {"oneOf": [{"type": t} for t in ("string", "array", "object", "number")]},
    },
    _read_sequences,
    _example_sequences,
)


def _example_documents(model: Any) -> list[Any]:
    """Return example sentences for text features, otherwise the examples of sequences."""
    if getattr(model, "features_", None) is None:
        return _example_sequences(model)
    width = getattr(model.features_, "n_features_in_", None)
    if isinstance(width, int):
        return [[[round(0.1 * ((i + j) % 7), 1) for j in range(width)] for i in range(6)]]
    return [["It rained all day.", "Nobody went out.", "The next morning was bright."]]


SEGMENTS = Form(
    "segments",
    "an array of positions: sentences or tokens (strings), arrays of columns, or arrays of numbers, as in training",
    SEQUENCES.schema,
    _read_sequences,
    _example_documents,
)


def _read_tokens(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    for i, sentence in enumerate(instances):
        if not isinstance(sentence, list) or not all(isinstance(token, str) for token in sentence):
            raise wrong(i, "must be an array of tokens, which are strings")
        if not sentence:
            raise wrong(i, "is empty")
        _check_length(i, len(sentence), limits, "tokens")
    return instances


TOKENS = Form(
    "tokens",
    "a sentence: an array of tokens",
    {"type": "array", "minItems": 1, "items": {"type": "string"}},
    _read_tokens,
    lambda model: [_known_words(model)],
)


def _known_words(model: Any) -> list[str]:
    words = getattr(getattr(model, "grammar_", None), "words", None) or ()
    known = [*[str(word) for word in words if not str(word).startswith("<")][:12], "word"]
    for n in (2, 3):  # the first of few short sentences that the grammar derives
        for sentence in islice(product(known, repeat=n), 60):
            with suppress(ValueError):
                model.predict([list(sentence)])
                return list(sentence)
    return known[:3]


def _read_pairs(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    made = []
    for i, pair in enumerate(instances):
        if not isinstance(pair, list) or len(pair) != 2:
            raise wrong(i, "must be a pair: an array of two strings, or of two arrays of symbols")
        for part in pair:
            symbols = isinstance(part, list) and all(isinstance(symbol, str) for symbol in part)
            if not (isinstance(part, str) or symbols):
                raise wrong(i, "must be a pair of strings, or of arrays of symbols")
            _check_length(i, len(part), limits, "symbols")
        made.append(tuple(pair))
    return made


def _example_pairs(model: Any) -> list[Any]:
    symbols = [str(symbol) for symbol in list(getattr(model, "alphabet_", "AB"))[:2]] or ["A"]
    word = "".join(symbols)
    return [[word, word[:1]]]


PAIRS = Form(
    "pairs",
    "two strings to align: [first, second]",
    {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
    _read_pairs,
    _example_pairs,
)


# ---------------------------------------------------------------------------------------- sets, clouds, images, graphs


def _read_arrays(model: Any, instances: list[Any], limits: Limits) -> list[np.ndarray]:
    made = []
    for i, rows in enumerate(instances):
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
            raise wrong(i, "must be an array of rows of numbers")
        made.append(_matrix(i, rows, limits))
    return made


ARRAYS = Form(
    "arrays",
    "a set of rows: an array of arrays of numbers (points of a cloud, frames of a video, members of a set)",
    {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    _read_arrays,
    lambda model: [_example_points(model)],
)


def _example_points(model: Any) -> list[list[float]]:
    """Return points of the training data if the model stores them."""
    inner = model.models_[0] if getattr(model, "models_", None) else model
    low = getattr(inner, "grid_low_", None)
    if low is None:
        return [[round(0.3 * ((5 * i + 3 * j) % 7), 1) for j in range(_width(model) or 3)] for i in range(6)]
    step, shape = float(inner.grid_size_), np.asarray(inner.grid_shape_)
    middle = np.asarray(low) + step * shape / 2
    return [np.round(middle + step * 0.5 * ((i % 3) - 1), 3).tolist() for i in range(8)]


def _read_images(model: Any, instances: list[Any], limits: Limits) -> list[np.ndarray]:
    from mercer.serve.images import decode_png

    made = []
    for i, image in enumerate(instances):
        if isinstance(image, dict):
            if set(image) - {"png", "range"} or not isinstance(image.get("png"), str):
                raise wrong(i, 'must be rows of pixels, or {"png": base64 of a PNG file}')
            try:
                data = base64.b64decode(image["png"], validate=True)
                pixels = decode_png(data, max_pixels=limits.length)
            except (binascii.Error, ValueError) as error:
                raise wrong(i, f"is not an image: {error}") from None
            made.append(_as_trained(model, pixels, image.get("range"), i))
            continue
        try:
            pixels = np.array(image, dtype=np.float64) if isinstance(image, list) else np.zeros(0)
        except (ValueError, TypeError, OverflowError):
            pixels = np.zeros(0)
        if pixels.ndim not in (2, 3) or not pixels.size:
            raise wrong(i, 'must be rows of pixels (numbers, or arrays of channels), or {"png": base64 of a PNG file}')
        _check_length(i, pixels.shape[0] * pixels.shape[1], limits, "pixels")
        if not np.isfinite(pixels).all():
            raise wrong(i, "contains a number that is not finite")
        made.append(pixels)
    return made


def channels_of(model: Any) -> int | None:
    """Return the number of channels of the training images; None if the features do not determine it."""
    from mercer.labeling.features import block_features

    width = _width(model)
    for channels in (1, 3):
        probe = np.zeros((8, 8) if channels == 1 else (8, 8, channels))
        if block_features(probe, int(getattr(model, "block_", 1))).shape[2] == width:
            return channels
    return None


def _as_trained(model: Any, pixels: np.ndarray, span: Any, i: int) -> np.ndarray:
    """Convert pixels from 0 to 255 to grey levels or colours, scaled to the optional range of the request."""
    if span is not None:
        if not isinstance(span, list) or len(span) != 2 or not all(type(v) in (int, float) for v in span):
            raise wrong(i, "has a range that is not a pair of numbers, such as [0, 1]")
        pixels = span[0] + pixels / 255.0 * (span[1] - span[0])
    wanted = channels_of(model)
    if wanted == 1 and pixels.ndim == 3:
        return pixels @ np.array([0.299, 0.587, 0.114])
    if wanted == 3 and pixels.ndim == 2:
        return np.repeat(pixels[:, :, None], 3, axis=2)
    return pixels


def _example_images(model: Any) -> list[Any]:
    side = 2 * int(getattr(model, "block_", 4))
    grey = [[round(((i + j) % 5) / 5, 1) for j in range(side)] for i in range(side)]
    return [[[[v] * 3 for v in row] for row in grey] if channels_of(model) == 3 else grey]


IMAGES = Form(
    "images",
    'an image: rows of pixels, each a number or an array of channels; or {"png": base64 of a PNG file}',
    {
        "oneOf": [
            {"type": "array", "items": {"type": "array"}},
            {
                "type": "object",
                "required": ["png"],
                "properties": {
                    "png": {"type": "string", "format": "byte"},
                    "range": {"type": "array", "items": {"type": "number"}},
                },
            },
        ]
    },
    _read_images,
    _example_images,
)


def _edges(i: int, graph: dict[str, Any], n_nodes: int | None, limits: Limits) -> list[Any]:
    edges = graph.get("edges")
    if not isinstance(edges, list):
        raise wrong(i, 'must have "edges": an array of pairs of node numbers')
    _check_length(i, len(edges), limits, "edges")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) != 2 or not all(type(v) is int and 0 <= v < 2**31 for v in edge):
            raise wrong(i, "has an edge that is not a pair of node numbers from 0")
        if max(edge) >= (limits.length if n_nodes is None else n_nodes):
            raise wrong(i, f"has an edge to node {max(edge)}, but only {n_nodes or limits.length} nodes")
    return edges


def _read_node_graphs(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    made: list[Any] = []
    for i, graph in enumerate(instances):
        if not isinstance(graph, dict) or not isinstance(graph.get("features"), list) or not graph["features"]:
            raise wrong(i, 'must be an object with "features" (rows of numbers, one per node) and "edges"')
        rows = _matrix(i, graph["features"], limits)
        edges = np.array(_edges(i, graph, len(rows), limits), np.int64).reshape(-1, 2)
        if "edge_features" in graph:
            more = _matrix(i, graph["edge_features"], limits) if isinstance(graph["edge_features"], list) else rows[:0]
            if len(more) != len(edges):
                raise wrong(i, f"has {len(edges)} edges and edge_features for {len(more)}")
            made.append((rows, edges, more))
        else:
            made.append((rows, edges))
    return made


NODE_GRAPHS = Form(
    "node graphs",
    'a graph whose nodes get labels: {"features": rows of numbers, one per node, "edges": pairs of node numbers}',
    {
        "type": "object",
        "required": ["features", "edges"],
        "properties": {
            "features": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "edges": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "edge_features": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        },
    },
    _read_node_graphs,
    lambda model: [{"features": _example_rows(model) * 3, "edges": [[0, 1], [1, 2]], **_edge_example(model, 2)}],
)


def _edge_example(model: Any, edges: int) -> dict[str, Any]:
    more = int(getattr(model, "n_edge_features_", 0)) - 1  # the first is the constant
    return {"edge_features": [[0.1] * more] * edges} if more > 0 else {}


def _read_graphs(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    from mercer.data.graphs import Graphs

    made = []
    for i, graph in enumerate(instances):
        if not isinstance(graph, dict):
            raise wrong(i, f'must be an object with "edges", found {_found(graph)}')
        strange = set(graph) - {"edges", "n_nodes", "node_labels", "edge_labels", "edge_weights"}
        if strange:
            raise wrong(i, f"has an unknown field {sorted(strange)[0]!r}")
        n_nodes = graph.get("n_nodes")
        labels = graph.get("node_labels")
        if n_nodes is None and isinstance(labels, list):
            n_nodes = len(labels)
        if n_nodes is not None and (type(n_nodes) is not int or not 0 <= n_nodes <= limits.length):
            raise wrong(i, f"must have n_nodes from 0 to {limits.length}")
        edges = _edges(i, graph, n_nodes, limits)
        others: dict[str, Any] = {
            name: [graph[name]]
            for name in ("node_labels", "edge_labels", "edge_weights")
            if graph.get(name) is not None
        }
        if not all(isinstance(value[0], list) for value in others.values()):
            raise wrong(i, "must have arrays of labels and weights")
        try:
            made.append(Graphs.from_edges([edges], None if n_nodes is None else [n_nodes], **others)[0])
        except (ValueError, TypeError) as error:
            raise wrong(i, f"is not a graph: {error}") from None
    return made


GRAPHS = Form(
    "graphs",
    'a graph: {"edges": pairs of node numbers from 0, "n_nodes"?, "node_labels"?, "edge_labels"?, "edge_weights"?}',
    {
        "type": "object",
        "required": ["edges"],
        "properties": {
            "edges": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "n_nodes": {"type": "integer"},
            "node_labels": {"type": "array"},
            "edge_labels": {"type": "array"},
            "edge_weights": {"type": "array", "items": {"type": "number"}},
        },
    },
    _read_graphs,
    lambda model: [_example_graph(model)],
)


def _example_graph(model: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"edges": [[0, 1], [1, 2], [2, 3], [3, 0]]}
    objects = getattr(model, "support_objects_", None)
    first = objects[0] if objects is not None and hasattr(objects, "__getitem__") and len(objects) else None
    labels = getattr(first, "node_labels", None)
    if labels is not None and len(labels):
        made["node_labels"] = [labels[0].item() if hasattr(labels[0], "item") else labels[0]] * 4
    return made


def _read_trees(model: Any, instances: list[Any], limits: Limits) -> list[Any]:
    from mercer.data.trees import Tree

    made = []
    for i, text in enumerate(instances):
        if not isinstance(text, str):
            raise wrong(i, f"must be a tree in bracket notation, such as '(S (N dogs) (V bark))', found {_found(text)}")
        _check_length(i, len(text), limits, "characters")
        try:
            made.append(Tree.parse(text))
        except (ValueError, RecursionError) as error:
            raise wrong(i, f"is not a tree in bracket notation: {error}") from None
    return made


TREES = Form(
    "trees",
    "a tree in bracket notation: '(S (N dogs) (V bark))'",
    {"type": "string"},
    _read_trees,
    lambda model: ["(S (N dogs) (V bark))"],
)


def _read_names(model: Any, instances: list[Any], limits: Limits) -> Any:
    for i, name in enumerate(instances):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise wrong(i, f"must be a name: a string or an integer, found {_found(name)}")
    if len({type(name) for name in instances}) > 1:
        raise RequestError(422, "instances must be all strings or all integers")
    return np.array(instances) if instances and isinstance(instances[0], int) else instances


NAMES = Form(
    "names",
    "a name: a string or an integer, as in training",
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    _read_names,
    lambda model: [_known_name(model)],
)


def _known_name(model: Any) -> Any:
    names = getattr(model, "names_", None)
    first = names[0] if names is not None and len(names) else "a"
    return first.item() if hasattr(first, "item") else first


# ----------------------------------------------------------------------------------- objects of kernels, several views


def form_of_objects(objects: Any) -> Form:
    """Return the form of new objects, given the objects that a kernel machine stores."""
    kind = type(objects).__name__
    if kind == "Graphs":
        return GRAPHS
    if (isinstance(objects, np.ndarray) and objects.ndim == 2) or hasattr(objects, "tocsr"):
        return ROWS
    first = objects[0] if objects is not None and len(objects) else None
    if isinstance(first, str):
        return STRINGS
    named = {"Graph": GRAPHS, "Tree": TREES, "dict": RECORDS}
    if type(first).__name__ in named:
        return named[type(first).__name__]
    if isinstance(first, np.ndarray):
        return ARRAYS if first.ndim == 2 else ROWS
    if isinstance(first, (list, tuple)) and len(first) and isinstance(first[0], str):
        return TOKENS
    if isinstance(first, (int, np.integer)):
        return NAMES
    return ROWS


def objects_of(model: Any) -> Any:
    """Return the objects that a fitted kernel method, map or model stores."""
    for name in ("support_objects_", "landmarks_", "inputs_", "objects_", "coordinates_", "points", "centres_"):
        value = getattr(model, name, None)
        if value is not None:
            return objects_of(value) if type(value).__name__ == "Coordinates" else value
    return None


def _read_objects(model: Any, instances: list[Any], limits: Limits) -> Any:
    return form_of_objects(objects_of(model)).read(model, instances, limits)


OBJECTS = Form(
    "objects",
    "an object of the model's kernel, as in training",
    {},
    _read_objects,
    lambda model: form_of_objects(objects_of(model)).example(model),
)


def view_forms(model: Any) -> list[Form]:
    """Return the forms of the views of a canonical correlation analysis."""
    views = getattr(model, "coordinates_", None) or getattr(model, "views_", None)
    if isinstance(views, (list, tuple)):
        return [form_of_objects(objects_of(view)) for view in views]
    return [ROWS] * len(view_widths(model))


def view_widths(model: Any) -> list[int | None]:
    """Return the numbers of columns of the views that are arrays."""
    means = getattr(model, "means_", None)
    if isinstance(means, (list, tuple)):
        return [len(np.atleast_1d(part)) for part in means]
    views = getattr(model, "coordinates_", None) or getattr(model, "views_", None) or [None, None]
    kept = [None if view is None else objects_of(view) for view in views]
    return [int(one.shape[1]) if isinstance(one, np.ndarray) and one.ndim == 2 else None for one in kept]


def _read_views(model: Any, instances: list[Any], limits: Limits) -> Views:
    forms, widths = view_forms(model), view_widths(model)
    for i, views in enumerate(instances):
        if not isinstance(views, list) or len(views) != len(forms):
            raise wrong(i, f"must be an array of {len(forms)} views of one object")
    parts = []
    for k, form in enumerate(forms):
        column = [views[k] for views in instances]
        width = widths[k] if k < len(widths) else None
        parts.append(numbers(column, limits, width) if form is ROWS else form.read(model, column, limits))
    return Views(tuple(parts))


def _example_views(model: Any) -> list[Any]:
    made = []
    for k, form in enumerate(view_forms(model)):
        widths = view_widths(model)
        width = (widths[k] if k < len(widths) else None) or 3
        made.append([0.1] * width if form is ROWS else form.example(model)[0])
    return [made]


VIEWS = Form(
    "views",
    "an array with one object for each view, such as [[0.1, 0.2], [3.0]]",
    {"type": "array"},
    _read_views,
    _example_views,
)

FORMS = {
    form.name: form
    for form in (
        ROWS, INTEGERS, RECORDS, STRINGS, EXAMPLES, SEQUENCES, SEGMENTS, TOKENS, PAIRS, ARRAYS, IMAGES, NODE_GRAPHS,
        GRAPHS, TREES, NAMES, OBJECTS, VIEWS,
    )
}  # fmt: skip
