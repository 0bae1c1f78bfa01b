"""Examples of structured models without a file format of their own.

- ``examples.jsonl``: {"x": …, "y": …}, one example per line, as ``fit`` takes them; segments, pairs and edges are lists
- ``examples.npz``: the arrays X and y, rows of features and their labels
- any other file, for parsers: bracketed trees
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.cli.columns import shown
from mercer.cli.errors import UsageError

if TYPE_CHECKING:
    from mercer.report.portrait import Block

_FORMS = 'expected lines {"x": …, "y": …} (.jsonl), the arrays X and y (.npz) or, for a parser, bracketed trees'


def takes(model: Any, file: str) -> bool:
    """Return whether a file holds examples of a structured model in one of these forms."""
    from mercer.clustering import SupervisedClusterer
    from mercer.learning.estimator import StructuredEstimator
    from mercer.parsing import Parser

    structured = isinstance(model, StructuredEstimator | SupervisedClusterer) or hasattr(model, "as_function")
    return structured and (isinstance(model, Parser) or file.lower().endswith((".jsonl", ".npz")))


def examine(model: Any, file: str, top: int) -> list[Block]:
    """Return blocks for a page: performance of the model on a file, and bounds on its error."""
    import numpy as np
    from sklearn.base import is_classifier

    from mercer.cli.promises import promised
    from mercer.report.examined import examined
    from mercer.report.portrait import Facts

    X, y = _read(model, file)
    try:
        predicted = model.predict([tree.leaves() for tree in y] if X is None else X)
        wrong = [not _equal(a, b) for a, b in zip(y, predicted, strict=True)]
        score = float(model.score(X, y))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{shown(file)}: {error}", _FORMS) from error
    blocks: list[Block] = [Facts([("examples", f"{len(y):,}"), ("score", f"{score:.4f}")], "Held-out data")]
    if is_classifier(model):
        blocks += examined(np.asarray(y).astype(str), np.asarray(predicted).astype(str), worst=top, facts=False)
    return [*blocks, promised("outputs", wrong, model, X, y)]


def _equal(a: Any, b: Any) -> bool:
    pairs = getattr(b, "pairs", None)
    return _plain(a) == (_plain(b) if pairs is None else _plain(pairs))


def _plain(value: Any) -> Any:
    """Lists in the place of arrays and tuples, so that outputs can be compared."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _read(model: Any, file: str) -> tuple[Any, Any]:
    from mercer.parsing import Parser, read_trees

    if isinstance(model, Parser) and not file.lower().endswith(".jsonl"):
        from mercer.data.readers.lines import read_lines

        trees = read_trees("".join(read_lines(file)))
        if not trees:
            raise UsageError(f"{shown(file)}: no trees in this file")
        return None, trees
    X, y = _arrays(file) if file.lower().endswith(".npz") else _lines(file)
    return _inputs(model, file, X), _outputs(model, file, y)


def _arrays(file: str) -> tuple[Any, Any]:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"]
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UsageError(f"{shown(file)}: {error}", "expected the arrays X and y") from error


def _lines(file: str) -> tuple[list[Any], list[Any]]:
    from mercer.data import read_records

    X, y = [], []
    for number, record in enumerate(read_records(file), 1):
        if "x" not in record or "y" not in record:
            lacking = "x" if "x" not in record else "y"
            raise UsageError(f"{shown(file)}:{number}: no field {lacking!r}", 'a line is {"x": …, "y": …}')
        X.append(record["x"])
        y.append(record["y"])
    if not X:
        raise UsageError(f"{shown(file)}: no examples in this file", 'a line is {"x": …, "y": …}')
    return X, y


def _inputs(model: Any, file: str, X: Any) -> Any:
    import numpy as np
    from sklearn.base import is_classifier

    from mercer.alignment import Aligner
    from mercer.labeling import GraphLabeler, GridLabeler
    from mercer.parsing import Parser

    if not isinstance(X, list) or isinstance(model, Parser):
        return X
    if isinstance(model, Aligner):
        return [tuple(x) for x in X]
    try:
        if isinstance(model, GraphLabeler) and not isinstance(model, GridLabeler):
            return [tuple(np.asarray(part) for part in x) for x in X]
        if not isinstance(_first(X), int | float):
            return X
        return np.asarray(X, float) if is_classifier(model) else [np.asarray(x, float) for x in X]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{shown(file)}: x: {error}", _FORMS) from error


def _first(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _outputs(model: Any, file: str, y: Any) -> Any:
    import numpy as np
    from sklearn.base import is_classifier

    from mercer.alignment import Aligner
    from mercer.data.trees import Tree
    from mercer.parsing import Parser
    from mercer.segmentation import Segmenter

    if is_classifier(model):
        return np.asarray(y)
    try:
        if isinstance(model, Parser):
            return [Tree.parse(text) for text in y]
        if isinstance(model, Segmenter | Aligner):
            return [[tuple(part) if isinstance(part, list) else part for part in one] for one in y]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{shown(file)}: y: {error}", _FORMS) from error
    return y
