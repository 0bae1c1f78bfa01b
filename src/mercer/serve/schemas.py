"""Fields of requests and responses: their meaning, their validation, and the OpenAPI document.

The parser, the document and the page share one table of options.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.serve.errors import RequestError, require
from mercer.serve.forms import Limits, join, size_of
from mercer.serve.kinds import SPECIALS, Answerer, listed, plain

__all__ = ["OPTIONS", "Ask", "answer", "describe", "dumps", "instances_of", "loads", "openapi", "parse"]


# ------------------------------------------------------------------------------------------------------------- options


@dataclass(frozen=True)
class Ask:
    """The options of a request. Requests with equal options can be predicted together."""

    verbs: tuple[str, ...]
    """Pairs of response field and verb, as ``field:verb``."""
    k_best: int = 0
    explain: int = 0


@dataclass(frozen=True)
class Option:
    """A field of a request."""

    schema: dict[str, Any]
    says: str


OPTIONS: dict[str, Option] = {
    "probabilities": Option({"type": "boolean"}, "also return probabilities (predict_proba, predict_marginals)"),
    "scores": Option({"type": "boolean"}, "also return the values of the decision function"),
    "k_best": Option({"type": "integer", "minimum": 1, "maximum": 100}, "also return the k best outputs"),
    "explain": Option({"type": "integer", "minimum": 1, "maximum": 100}, "also return this many features that decided"),
    "outputs": Option(
        {"type": "array", "items": {"type": "string"}}, "also return the results of these methods of the model, by name"
    ),
}


def _flag(options: dict[str, Any], name: str) -> bool:
    value = options.get(name, False)
    if value in ("true", "1"):
        return True
    if value in ("false", "0", ""):
        return False
    if not isinstance(value, bool):
        raise RequestError(422, f'"{name}" must be true or false')
    return value


def _count(options: dict[str, Any], name: str) -> int:
    value = options.get(name)
    if value is None:
        return 0
    if isinstance(value, str) and value.isdecimal() and len(value) < 9:
        value = int(value)
    most = OPTIONS[name].schema["maximum"]
    if type(value) is not int or not 1 <= value <= most:
        raise RequestError(422, f'"{name}" must be an integer from 1 to {most}')
    return value


def parse(answers: Answerer, verb: str, options: dict[str, Any]) -> Ask:
    """Check the options of a request to a model."""
    primary = answers.verbs[0]
    if verb not in ("predict", *answers.verbs):
        known = ", ".join(dict.fromkeys(("predict", *answers.verbs, *answers.specials)))
        raise RequestError(404, f"this model does not support {verb[:50]!r}; it supports {known}")
    for name in options:
        if name not in OPTIONS and name != "instances":
            raise RequestError(422, f"unknown field {name[:50]!r}; known are instances, {', '.join(OPTIONS)}")
    field = "predictions" if verb == "predict" else verb
    verbs = {field: primary if verb == "predict" else verb}
    if _flag(options, "probabilities"):
        if answers.probabilities is None:
            raise RequestError(422, f'"probabilities": a {answers.kind} has no probabilities')
        verbs["probabilities"] = answers.probabilities
    if _flag(options, "scores"):
        if "decision_function" not in answers.verbs:
            raise RequestError(422, f'"scores": a {answers.kind} has no decision function')
        verbs["scores"] = "decision_function"
    outputs = options.get("outputs", [])
    if isinstance(outputs, str):
        outputs = outputs.split(",")
    if not isinstance(outputs, list) or len(outputs) > 20:
        raise RequestError(422, '"outputs" must be an array of names of methods')
    for name in outputs:
        if name not in answers.verbs:
            raise RequestError(422, f'"outputs": this model supports {", ".join(answers.verbs)}')
        verbs[name] = name
    k_best, explain = _count(options, "k_best"), _count(options, "explain")
    if k_best and not answers.k_best:
        raise RequestError(422, f'"k_best": a {answers.kind} does not list its best outputs')
    if explain and not answers.explain:
        raise RequestError(422, f'"explain": a {answers.kind} does not explain its decisions')
    return Ask(tuple(f"{field}:{verb}" for field, verb in verbs.items()), k_best, explain)


# ----------------------------------------------------------------------------------------------------------- instances


def loads(body: bytes | bytearray) -> Any:
    """Parse the JSON of a body; raise a RequestError that describes the error."""
    import orjson

    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not body:
            raise RequestError(400, 'the body is empty: send {"instances": […]}') from None
        raise RequestError(400, f"the body is not JSON: {str(error)[:200]}") from None


def dumps(value: Any) -> bytes:
    """Return a value as JSON, including arrays."""
    import orjson

    return orjson.dumps(value, default=plain, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def instances_of(
    answers: Answerer, verb: str, kind: str, body: bytes, query: dict[str, str], limits: Limits
) -> tuple[Ask, Any, int]:
    """Return the options, the argument and the number of instances of a request of any content type.

    Parameters
    ----------
    kind : str
        The content type, without parameters. JSON is also assumed for a missing type and for the form type that curl
        sends.
    """
    if kind in ("application/json", "", "application/x-www-form-urlencoded", "text/plain"):
        request = loads(body)
        if not isinstance(request, dict):
            raise RequestError(422, 'the body must be an object: {"instances": […]}')
        instances = request.get("instances")
        if not isinstance(instances, list):
            missing = "must be an array" if "instances" in request else "is missing"
            raise RequestError(422, f'"instances" {missing}')
        options = {**query, **request} if query else request
    else:
        options = dict(query)
        if kind == "text/csv":
            instances = _csv(body)
        elif kind in ("application/x-npy", "application/octet-stream"):
            instances = _npy(body)
        elif kind in ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file"):
            instances = _arrow(body)
        else:
            raise RequestError(
                415,
                f"content type {kind[:60]!r} is not supported; send application/json, text/csv, application/x-npy or"
                " application/vnd.apache.arrow.stream",
            )
    ask = parse(answers, verb, options)
    n = len(instances)
    if n == 0:
        raise RequestError(422, '"instances" is empty')
    if n > limits.instances:
        raise RequestError(413, f"too many instances: {n:,}, at most {limits.instances:,} are allowed in a request")
    if isinstance(instances, np.ndarray):
        if answers.form.name not in ("rows", "integers", "examples", "arrays", "images"):
            raise RequestError(415, f"this model takes {answers.form.name}, not arrays: send JSON")
        if answers.form.name in ("arrays", "images") or instances.ndim != 2:
            instances = instances.tolist()
        else:
            return ask, _checked(answers, instances), n
    try:
        X = answers.form.read(answers.model, instances, limits)
    except RecursionError:
        raise RequestError(422, "instances are nested too deeply") from None
    return ask, X, n


def _checked(answers: Answerer, X: np.ndarray) -> np.ndarray:
    width = getattr(answers.model, "n_features_in_", None)
    if isinstance(width, int) and X.shape[1] != width:
        raise RequestError(422, f"rows have {X.shape[1]} numbers, this model takes {width}")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise RequestError(422, "rows contain a number that is not finite")
    return X.astype(np.int64) if answers.form.name == "integers" else X.astype(np.float64)


def _csv(body: bytes) -> list[Any]:
    """Return rows of a table with a header as objects; numeric cells become numbers."""
    import csv

    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8") from None
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], delimiters=",;\t")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = list(csv.reader(io.StringIO(text), dialect))
    except csv.Error as error:
        raise RequestError(400, f"the body is not CSV: {error}") from None
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise RequestError(422, "the table needs a header line with column names, and at least one row")
    names = rows[0]
    for i, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise RequestError(422, f"row {i + 1} of the table has {len(row)} cells, its header {len(names)}")
    return [dict(zip(names, map(_cell, row), strict=True)) for row in rows[1:]]


def _cell(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if np.isfinite(value) else text


def _npy(body: bytes) -> np.ndarray:
    try:
        X = np.load(io.BytesIO(body), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError):
        raise RequestError(400, "the body is not an array: send the output of numpy.save") from None
    if not isinstance(X, np.ndarray) or X.ndim < 1 or X.dtype.kind not in "fiub":
        raise RequestError(422, "the body must be an array of numbers with a row for each instance")
    return X


def _arrow(body: bytes) -> Any:
    try:
        require("pyarrow")
        import pyarrow as pa
    except ImportError:
        raise RequestError(415, "this server does not read Arrow: send JSON") from None
    try:
        opened = pa.ipc.open_file(body) if body[:6] == b"ARROW1" else pa.ipc.open_stream(body)
        table = opened.read_all()
    except (pa.ArrowInvalid, OSError, ValueError):
        raise RequestError(400, "the body is not an Arrow stream") from None
    if table.num_columns == 1:
        return table.column(0).to_pylist()
    return table.to_pylist()


# ------------------------------------------------------------------------------------------------------------- answers


def npy(fields: dict[str, Any]) -> bytes:
    """Return the first field of a response in the format of ``numpy.save``."""
    values = next(iter(fields.values()))
    if not isinstance(values, np.ndarray):
        raise RequestError(406, "this response is not an array: accept application/json")
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def arrow(fields: dict[str, Any], n: int) -> bytes:
    """Return the fields with one value per instance as columns of an Arrow stream."""
    try:
        require("pyarrow")
        import pyarrow as pa
    except ImportError:
        raise RequestError(406, "this server does not write Arrow: accept application/json") from None
    columns = {field: listed(values) for field, values in fields.items() if hasattr(values, "__len__")}
    try:
        table = pa.table(
            {field: values for field, values in columns.items() if field != "classes" and len(values) == n}
        )
    except pa.ArrowInvalid:
        raise RequestError(406, "this response has values of several types: accept application/json") from None
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def answer(answers: Answerer, ask: Ask, arguments: list[Any]) -> list[dict[str, Any]]:
    """Return the responses of a model to several requests with equal options, with one call per verb."""
    sizes = [size_of(X) for X in arguments]
    X = join(arguments)
    fields: dict[str, Any] = {}
    for word in ask.verbs:
        field, _, verb = word.partition(":")
        fields[field] = answers.ask(verb, X)
    if ask.k_best:
        fields["k_best"] = [
            [{"output": plain(one), "score": plain(score)} for one, score in map(_scored, ranked)]
            for ranked in answers.best(X, ask.k_best)
        ]
    if ask.explain:
        fields["explanations"] = answers.explained(X, ask.explain)
    total = sum(sizes)
    for field, values in fields.items():
        n_answers = values.shape[0] if hasattr(values, "shape") else len(values)
        if n_answers != total:
            raise RuntimeError(f"{field}: {n_answers} answers for {total} instances")
    made, start = [], 0
    for size in sizes:
        part = {field: plain(values[start : start + size]) for field, values in fields.items()}
        if "probabilities" in part and answers.classes is not None:
            part["classes"] = answers.classes
        made.append(part)
        start += size
    return made


def _scored(item: Any) -> tuple[Any, Any]:
    """Return an output and its score: a pair, or an alignment that contains its score."""
    return item if isinstance(item, tuple) else (item, getattr(item, "score", None))


def describe(name: str, answers: Answerer, version: str, limits: Limits) -> dict[str, Any]:
    """Return the description of a model: its input, an example and its outputs."""
    return {
        "name": name,
        "kind": answers.kind,
        "version": version,
        "page": answers.page,
        "input": {"form": answers.form.name, "says": answers.form.says, "schema": answers.form.schema},
        "example": {"instances": answers.example()},
        "answers": list(dict.fromkeys(("predict", *answers.verbs, *answers.specials))),
        "options": [
            name
            for name, has in (
                ("probabilities", answers.probabilities is not None),
                ("scores", "decision_function" in answers.verbs),
                ("k_best", answers.k_best),
                ("explain", answers.explain),
                ("outputs", True),
            )
            if has
        ],
        "classes": None if answers.classes is None else listed(answers.classes),
        "columns": columns_of(answers),
        "limits": {"instances": limits.instances, "length": limits.length, "bytes": limits.body},
    }


def columns_of(answers: Answerer) -> list[str] | None:
    """Return the column names of a model of tables or named features."""
    encoder = getattr(answers.model, "map_", answers.model)
    columns = getattr(encoder, "columns_", None)
    if columns is not None and all(isinstance(column, dict) for column in columns):
        return [str(column["name"]) for column in columns]
    names = getattr(answers.model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


# ------------------------------------------------------------------------------------------------------------- OpenAPI

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"status": {"type": "integer"}, "message": {"type": "string"}, "example": {}},
        }
    },
}
_PROBLEMS = {
    "400": "the body is not JSON, or not UTF-8",
    "401": "the token is missing or wrong",
    "404": "the model does not exist",
    "413": "the body, an instance or the number of instances is too large",
    "415": "the content type is not supported",
    "422": "an instance or an option is invalid for this model",
    "503": "the queue is full; try again after Retry-After seconds",
    "504": "the request timed out",
}


def openapi(models: dict[str, Answerer], version: str, limits: Limits) -> dict[str, Any]:
    """Return the OpenAPI document of a server with these models."""
    paths: dict[str, Any] = {}
    for name, answers in models.items():
        properties = {
            "instances": {"type": "array", "minItems": 1, "maxItems": limits.instances, "items": answers.form.schema}
        }
        for option, field in OPTIONS.items():
            properties[option] = {**field.schema, "description": field.says}
        paths[f"/v1/models/{name}:predict"] = _post(
            f"Predict with {name} ({answers.kind}). An instance is {answers.form.says}.",
            {"type": "object", "required": ["instances"], "properties": properties, "additionalProperties": False},
            {"instances": answers.example()},
            {
                "type": "object",
                "properties": {
                    "model": {"type": "string"},
                    "version": {"type": "string"},
                    "predictions": {"type": "array"},
                    "probabilities": {"type": "array"},
                    "classes": {"type": "array"},
                    "scores": {"type": "array"},
                    "k_best": {"type": "array"},
                    "explanations": {"type": "array"},
                },
                "required": ["model", "version", "predictions"],
            },
        )
        for verb in answers.specials:
            says, properties = _SPECIAL[verb]
            required = [field for field in properties if field not in ("k", "groups")]
            request = {"type": "object", "required": required, "properties": properties}
            paths[f"/v1/models/{name}:{verb}"] = _post(says, request, {}, {"type": "object"})
        paths[f"/v1/models/{name}"] = _get(f"Input and output of {name}.")
        paths[f"/v2/models/{name}/infer"] = _post(
            f"Open Inference Protocol v2: infer with {name}. GET /v2/models/{name} lists its inputs and outputs.",
            {"type": "object", "required": ["inputs"], "properties": _INFERENCE},
            {},
            {"type": "object"},
        )
    paths["/v1/models"] = _get("All models.")
    for path, says in (
        ("/health", "Whether the process is alive."),
        ("/ready", "Whether every model is loaded and the server accepts requests."),
        ("/metrics", "Counters in the text format of Prometheus."),
        ("/v2", "Open Inference Protocol v2: the server."),
    ):
        paths[path] = _get(says)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Mercer models", "version": version},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


_ROWS: Any = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
_SPECIAL: dict[str, tuple[str, dict[str, Any]]] = {
    "register": (
        "The transform that aligns the points in source with those in target.",
        {
            "source": {**_ROWS, "description": "points that move"},
            "target": {**_ROWS, "description": "points that stay"},
        },
    ),
    "nearest": (
        "The rows in 'among' whose codes are nearest to those of the instances.",
        {
            "instances": {**_ROWS, "description": "query rows"},
            "among": {**_ROWS, "description": "rows to search"},
            "k": {"type": "integer", "minimum": 1, "description": "how many"},
        },
    ),
    "shares": (
        "Shares of the predicted classes, of all rows and of each group.",
        {
            "instances": {"type": "array", "description": "rows, as for predict"},
            "groups": {"type": "array", "description": "the group of each row"},
        },
    ),
}
_INFERENCE: dict[str, Any] = {
    "inputs": {"type": "array", "items": {"type": "object"}, "description": "tensors: name, shape, datatype, data"},
    "outputs": {"type": "array", "items": {"type": "object"}, "description": "the requested outputs, by name"},
    "parameters": {"type": "object", "description": "options, as in predict"},
    "id": {"type": "string", "description": "returned with the response"},
}
assert set(_SPECIAL) == set(SPECIALS)


def _get(says: str) -> dict[str, Any]:
    return {"get": {"summary": says, "responses": {"200": {"description": "OK"}}}}


def _post(says: str, request: Any, example: Any, response: Any) -> dict[str, Any]:
    problem: Callable[[str], dict[str, Any]] = lambda text: {  # noqa: E731
        "description": text,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {
        "post": {
            "summary": says,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": request, "example": example}},
            },
            "responses": {
                "200": {"description": "OK", "content": {"application/json": {"schema": response}}},
                **{status: problem(text) for status, text in _PROBLEMS.items()},
            },
        }
    }
