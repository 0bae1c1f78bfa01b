"""Open Inference Protocol v2 over HTTP with binary tensors, as in KServe, Triton and MLServer.

Rows of numbers are one tensor of shape [n, d]. Strings are a BYTES tensor of shape [n]. Any other instance is a JSON
text in a BYTES tensor of shape [n]. Sentences can also be a flat BYTES tensor of tokens with an integer tensor
``lengths``, or a BYTES tensor of shape [n, m] if all have m tokens. An output with one value per instance is a tensor.
An output with an array per instance is a tensor if the input was a regular tensor, and otherwise JSON texts in BYTES.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.serve.errors import RequestError
from mercer.serve.kinds import Answerer, plain
from mercer.serve.schemas import loads

__all__ = ["DTYPES", "Inference", "metadata", "outputs_of", "read", "write"]

DTYPES: dict[str, Any] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_TOKENS = ("sequences", "segments", "tokens")  # forms whose instances can be rows of a tensor of words


class Inference:
    """A request: instances, options, requested outputs and their format, and whether the input was a regular tensor."""

    def __init__(self, instances: Any, options: dict[str, Any], request: dict[str, Any], regular: bool) -> None:
        self.instances, self.options, self.regular, self.id = instances, options, regular, request.get("id")
        outputs = request.get("outputs") or []
        if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
            raise RequestError(400, "outputs must be an array of objects")
        self.wanted = [str(one.get("name")) for one in outputs]
        parameters = _parameters(request)
        whole = parameters.get("binary_data_output") is True
        self.binary = {str(one.get("name")): _parameters(one).get("binary_data", whole) is True for one in outputs}
        self.all_binary = whole


def _parameters(node: dict[str, Any]) -> dict[str, Any]:
    parameters = node.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise RequestError(400, "parameters must be an object")
    return parameters


def read(answers: Answerer, body: bytes, header_length: str | None) -> Inference:
    """Parse a request: JSON, followed by binary tensors if a header gives the length of the JSON."""
    data = b""
    if header_length is not None:
        if not header_length.isdecimal() or int(header_length) > len(body):
            raise RequestError(400, "Inference-Header-Content-Length must be a number of bytes within the body")
        body, data = body[: int(header_length)], body[int(header_length) :]
    request = loads(body)
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), list) or not request["inputs"]:
        raise RequestError(400, 'the request must be an object with "inputs", an array of tensors')
    tensors: dict[str, Any] = {}
    at = 0
    for node in request["inputs"]:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise RequestError(400, "an input must be an object with a name, a shape, a datatype and data")
        size = _parameters(node).get("binary_data_size")
        if size is not None:
            if type(size) is not int or size < 0 or at + size > len(data):
                raise RequestError(400, f"input {node['name'][:50]!r}: binary_data_size lies outside of the body")
            chunk, at = data[at : at + size], at + size
            tensors[node["name"]] = _binary(node, chunk)
        else:
            tensors[node["name"]] = _from_json(node)
    if at != len(data):
        raise RequestError(400, f"{len(data) - at} bytes of the body belong to no input")
    options = {k: v for k, v in _parameters(request).items() if k in ("k_best", "explain", "probabilities", "scores")}
    for name in ("probabilities", "scores"):
        if any(isinstance(one, dict) and one.get("name") == name for one in request.get("outputs") or []):
            options[name] = True
    regular = len(tensors) == 1 and np.ndim(next(iter(tensors.values()))) > 1
    return Inference(_instances(answers, tensors), options, request, regular)


def _shape(node: dict[str, Any]) -> list[int]:
    shape = node.get("shape")
    if not isinstance(shape, list) or not 1 <= len(shape) <= 8 or not all(map(_is_size, shape)):
        raise RequestError(400, f"input {node['name'][:50]!r}: shape must be an array of sizes")
    return shape


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size < 2**31


def _binary(node: dict[str, Any], chunk: bytes) -> Any:
    shape, name = _shape(node), node["name"][:50]
    if node.get("datatype") == "BYTES":
        texts, at = [], 0
        while at < len(chunk):
            if at + 4 > len(chunk):
                raise RequestError(400, f"input {name!r}: the binary data is truncated")
            (size,) = struct.unpack_from("<I", chunk, at)
            if at + 4 + size > len(chunk):
                raise RequestError(400, f"input {name!r}: the binary data is truncated")
            texts.append(_text(chunk[at + 4 : at + 4 + size], name))
            at += 4 + size
        return _shaped(texts, shape, name)
    dtype = DTYPES.get(str(node.get("datatype")))
    if dtype is None:
        raise RequestError(400, f"input {name!r}: datatype must be BYTES or one of {', '.join(DTYPES)}")
    count = int(np.prod(shape, dtype=object))
    if count * dtype.itemsize != len(chunk):
        raise RequestError(400, f"input {name!r}: {len(chunk)} bytes do not hold {count} values of {node['datatype']}")
    if dtype.kind == "b":
        return (np.frombuffer(chunk, np.uint8) != 0).reshape(shape)
    return np.frombuffer(chunk, dtype).reshape(shape)


def _text(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise RequestError(400, f"input {name!r}: a text is not UTF-8") from None


def _shaped(texts: list[Any], shape: list[int], name: str) -> list[Any] | np.ndarray:
    """Return texts as a list, or as an array if the shape has several columns."""
    count = int(np.prod(shape, dtype=object))
    if len(texts) != count:
        raise RequestError(400, f"input {name!r}: {len(texts)} values do not fill the shape {shape}")
    if len(shape) > 2:
        raise RequestError(400, f"input {name!r}: BYTES must have the shape [n] or [n, m]")
    if len(shape) == 2 and shape[1] != 1:
        return np.array(texts, object).reshape(shape)
    return texts


def _flat(data: Any, out: list[Any]) -> list[Any]:
    if isinstance(data, list):
        for item in data:
            _flat(item, out)
    else:
        out.append(data)
    return out


def _from_json(node: dict[str, Any]) -> Any:
    shape, name = _shape(node), node["name"][:50]
    data = node.get("data")
    if not isinstance(data, list):
        raise RequestError(400, f"input {name!r}: data must be an array")
    flat = _flat(data, [])
    if node.get("datatype") == "BYTES":
        if not all(isinstance(value, str) for value in flat):
            raise RequestError(400, f"input {name!r}: BYTES are strings")
        return _shaped(flat, shape, name)
    dtype = DTYPES.get(str(node.get("datatype")))
    if dtype is None:
        raise RequestError(400, f"input {name!r}: datatype must be BYTES or one of {', '.join(DTYPES)}")
    if not all(type(value) in (int, float, bool) for value in flat):
        raise RequestError(400, f"input {name!r}: data must be numbers")
    if len(flat) != int(np.prod(shape, dtype=object)):
        raise RequestError(400, f"input {name!r}: {len(flat)} values do not fill the shape {shape}")
    try:
        return np.array(flat, dtype).reshape(shape)
    except (OverflowError, ValueError, TypeError):
        raise RequestError(400, f"input {name!r}: a value is not {node['datatype']}") from None


def _instances(answers: Answerer, tensors: dict[str, Any]) -> Any:
    """Return the instances in the form of the model."""
    if "lengths" in tensors and len(tensors) == 2:
        tokens = next(value for name, value in tensors.items() if name != "lengths")
        lengths = [int(n) for n in np.asarray(tensors["lengths"]).ravel()]
        if isinstance(tokens, np.ndarray):
            tokens = tokens.tolist()
        if min(lengths, default=0) < 0 or sum(lengths) != len(tokens):
            raise RequestError(400, f"lengths sum to {sum(lengths)}, there are {len(tokens)} tokens")
        ends = np.cumsum([0, *lengths]).tolist()
        return [tokens[a:b] for a, b in pairwise(ends)]
    if len(tensors) != 1:
        raise RequestError(400, f"this model takes one input, found {len(tensors)}")
    value = next(iter(tensors.values()))
    if isinstance(value, np.ndarray) and value.dtype == object:
        if answers.form.name not in _TOKENS:
            raise RequestError(400, f"this model takes {answers.form.says}: BYTES must have the shape [n]")
        return value.tolist()
    if isinstance(value, np.ndarray):
        return value
    if answers.form.name in ("strings", "trees", "names"):
        return value
    if answers.form.name == "examples" and not all(text[:1] in "{[" for text in value):
        return value
    made = []
    for i, text in enumerate(value):
        try:
            made.append(loads(text.encode()))
        except RequestError:
            raise RequestError(
                400, f"element {i} of the input is not JSON: this model takes {answers.form.says}"
            ) from None
    return made


# ------------------------------------------------------------------------------------------------------------- answers


def write(name: str, version: str, answer: dict[str, Any], asked: Inference) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON if tensors follow."""
    import orjson

    outputs, parts = [], []
    known = [field for field in answer if field != "classes"]
    strange = [field for field in asked.wanted if field not in answer]
    if strange:
        raise RequestError(400, f"unknown output {strange[0][:50]!r}; the outputs are {', '.join(known)}")
    for field in asked.wanted or known:
        datatype, shape, values = _tensor(answer[field], asked.regular)
        node: dict[str, Any] = {"name": field, "datatype": datatype, "shape": shape}
        if asked.binary.get(field, asked.all_binary):
            raw = _raw(datatype, values)
            node["parameters"] = {"binary_data_size": len(raw)}
            parts.append(raw)
        else:
            node["data"] = values.ravel().tolist() if isinstance(values, np.ndarray) else values
        outputs.append(node)
    made: dict[str, Any] = {"model_name": name, "model_version": version, "outputs": outputs}
    if asked.id is not None:
        made["id"] = str(asked.id)
    head = orjson.dumps(made, option=orjson.OPT_SERIALIZE_NUMPY)
    return (b"".join((head, *parts)), len(head)) if parts else (head, None)


def _tensor(values: Any, regular: bool) -> tuple[str, list[int], Any]:
    import orjson

    if regular:
        values = _stacked(values)
    if isinstance(values, np.ndarray) and values.dtype.newbyteorder("<") in _NAMES:
        return _NAMES[values.dtype.newbyteorder("<")], list(values.shape), values
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return "BYTES", list(values.shape), values.ravel().tolist()
    items = [plain(value) for value in values]
    if all(isinstance(item, str) for item in items):
        return "BYTES", [len(items)], items
    if all(type(item) in (int, float) for item in items):
        array = np.array(items)
        if array.dtype in _NAMES:
            return _NAMES[array.dtype], [len(items)], array
    texts = [orjson.dumps(item, option=orjson.OPT_SERIALIZE_NUMPY).decode() for item in items]
    return "BYTES", [len(texts)], texts


def _stacked(values: Any) -> Any:
    """Stack results of equal shape and type, such as label maps and labels of sentences of equal length."""
    if isinstance(values, np.ndarray) or not all(isinstance(value, (list, np.ndarray)) for value in values):
        return values
    try:
        array = np.array(values)
    except ValueError:
        return values
    same = array.ndim > 1 and (array.dtype.kind != "U" or all(type(item) is str for row in values for item in row))
    return array if same and array.dtype.kind in "biufU" else values


def _raw(datatype: str, values: Any) -> bytes:
    if datatype == "BYTES":
        texts = [text.encode() for text in values]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return np.ascontiguousarray(values).astype(DTYPES[datatype]).tobytes()


def metadata(name: str, version: str, answers: Answerer, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a model."""
    numeric = answers.form.name in ("rows", "integers")
    width = getattr(answers.model, "n_features_in_", None)
    shape = [-1, int(width) if isinstance(width, int) else -1] if numeric else [-1]
    inputs = [{"name": "instances", "datatype": "FP64" if numeric else "BYTES", "shape": shape}]
    return {"name": name, "versions": [version], "platform": "mercer", "inputs": inputs, "outputs": outputs}


def outputs_of(answers: Answerer, predictions: Any) -> list[dict[str, Any]]:
    """Return the metadata of the outputs of a model, from its output for an example (None without one)."""
    datatype, shape = "BYTES", [-1]
    if predictions is not None:
        datatype, sizes, _ = _tensor(plain(predictions), False)
        shape = [-1, *sizes[1:]]
    outputs = [{"name": "predictions", "datatype": datatype, "shape": shape}]
    if answers.probabilities is not None:
        ragged = answers.form.name in (*_TOKENS, "images", "node graphs")
        datatype, shape = ("BYTES", [-1]) if ragged else ("FP64", [-1, -1])
        outputs.append({"name": "probabilities", "datatype": datatype, "shape": shape})
    return outputs
