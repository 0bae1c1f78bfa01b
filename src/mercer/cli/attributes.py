"""Evaluation of attribute models on the command line: rows of numbers, with a column of classes."""

from __future__ import annotations

import json
from typing import Any

from mercer.cli import terminal
from mercer.cli.columns import shown
from mercer.cli.errors import UsageError
from mercer.cli.proportions import read_table

__all__ = ["evaluate", "is_attributes"]


def is_attributes(model: Any) -> bool:
    """Return whether a loaded model classifies rows by attributes."""
    return type(model).__module__.startswith("mercer.attributes.") and hasattr(model, "predict")


def evaluate(model: Any, file: str, label: str | None, separator: str | None, as_json: bool) -> None:
    """Print the accuracy, overall and per class."""
    rows = read_table(file, separator)
    if label is None:
        raise UsageError("name the column of classes (--label)", f"the columns: {', '.join(rows)}")
    if label not in rows:
        raise UsageError(f"{shown(file)}: no column {label!r}", f"its columns: {', '.join(rows)}")
    X = _numbers(model, rows, label, file)
    truth = [str(cell) for cell in rows[label]]
    classes = [str(name) for name in model.classes_.tolist()]
    strange = sorted(set(truth) - set(classes))
    if strange:
        raise UsageError(
            f"{shown(file)}: {strange[0]!r} is none of the classes that this model predicts",
            f"they are {', '.join(classes)}",
        )
    predicted = [str(value) for value in model.predict(X).tolist()]
    right = [a == b for a, b in zip(truth, predicted, strict=True)]
    figures = {
        "rows": len(right),
        "accuracy": sum(right) / len(right),
        "classes": {
            name: sum(hit for a, hit in zip(truth, right, strict=True) if a == name) / truth.count(name)
            for name in classes
            if name in truth
        },
    }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    terminal.figures([("rows", f"{figures['rows']:,}"), ("accuracy", f"{figures['accuracy']:.4f}")])
    print()
    lines = [[name, f"{truth.count(name):,}", f"{share:.4f}"] for name, share in figures["classes"].items()]  # type: ignore[attr-defined]
    terminal.table(["class", "rows", "right"], lines, "lrr")


def _numbers(model: Any, rows: dict[str, Any], label: str, file: str) -> Any:
    """The columns of the model as an array: by name where it knows names, else all but the label."""
    import numpy as np

    names = [str(name) for name in getattr(model, "feature_names_in_", [name for name in rows if name != label])]
    missing = [name for name in names if name not in rows]
    if missing:
        raise UsageError(f"{shown(file)}: no column {missing[0]!r}, which the model was trained with")
    if len(names) != model.n_features_in_:
        raise UsageError(
            f"{shown(file)} has {len(names)} columns beside {label!r}, and the model was trained with "
            f"{model.n_features_in_} features"
        )
    columns = []
    for name in names:
        try:
            columns.append(np.array([float(cell) for cell in rows[name]]))
        except (TypeError, ValueError):
            raise UsageError(f"{shown(file)}: the column {name!r} holds something that is no number") from None
    return np.stack(columns, axis=1)
