"""``mercer train multilabel``: label sets from ARFF, svmlight and csv files; prediction and evaluation."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.errors import UsageError
from mercer.cli.promises import promised

if TYPE_CHECKING:
    from mercer.report.portrait import Block

_MOST_LABELS = 40  # of a list on a page
_MOST_TOGETHER = 24  # of a table of pairs
_UNITS = 30  # ratio of the spreads of two columns that deserves a warning
_EXACT = 4000  # rows up to which kernel matrices are decomposed


# Spelled out here, not taken from the estimators: the help must not import them.
class MethodName(StrEnum):
    """Methods of learning label sets."""

    auto = "auto"
    views = "views"
    joint = "joint"
    online = "online"
    separate = "separate"
    neighbors = "neighbors"
    hashed = "hashed"


class MeasureName(StrEnum):
    """Measures for which thresholds are chosen."""

    micro_f1 = "micro-f1"
    macro_f1 = "macro-f1"
    example_f1 = "example-f1"
    hamming = "hamming"
    subset = "subset"


_CLASSES = {
    "views": "KernelHomogeneityAnalysis",
    "joint": "JointSVM",
    "online": "OnlineJointSVM",
    "separate": "SeparateSVM",
    "neighbors": "NeighborLabels",
    "hashed": "HashedLabelSets",
}


def train_multilabel(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Rows with label sets: ARFF, csv, JSON lines or svmlight, detected by content; also compressed.",
        ),
    ],
    model: Annotated[str, typer.Option("--model", "-m", metavar="FILE", help="The model file to write.")],
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="For a table, the column of label sets; for ARFF, the XML file with the labels."
        ),
    ] = None,
    method: Annotated[
        MethodName, typer.Option(help="auto: views up to 4,000 rows, hashed beyond that.")
    ] = MethodName.auto,
    measure: Annotated[
        MeasureName, typer.Option(help="The measure for which thresholds are chosen; not for hashed.")
    ] = MeasureName.micro_f1,
) -> None:
    """Train a model of label sets: any number of labels for each row.

    A csv file has a header and a column of label sets (sea;sky), all other columns are numbers; an svmlight line begins
    with its labels (sea,sky 1:0.5 7:2); an ARFF file comes with Mulan's XML file, or gives the number of labels by -C
    (MEKA). Standardise columns of different units first.

    [bold]Examples[/bold]
      mercer train multilabel photos.csv --labels tags --model photos.mercer
      mercer train multilabel scene-train.arff --labels scene.xml --model scene.mercer
    """
    check_writable(model)
    import mercer
    from mercer import multilabel

    table = _read(file, labels, None)
    name = method.value
    if name == "auto":
        name = "views" if table.X.shape[0] <= _EXACT else "hashed"
    if name != "hashed":
        _warn_of_units(table)
    settings = {} if name == "hashed" else {"measure": measure.value}
    estimator = getattr(multilabel, _CLASSES[name])(**settings)
    estimator.fit(table.X, table.label_sets())
    mercer.save(estimator, model)
    sizes = table.Y.sum(axis=1)
    terminal.figures(
        [
            ("rows", f"{table.X.shape[0]:,}"),
            ("features", f"{table.X.shape[1]:,}"),
            ("labels", f"{len(estimator.classes_):,}, {float(sizes.mean()):.2f} a row"),
            ("model", f"{model} ({_CLASSES[name]})"),
        ]
    )


def _warn_of_units(table: Any) -> None:
    """Columns that spread far more than others alone decide which rows are near to each other."""
    import scipy.sparse as sp

    if sp.issparse(table.X):
        return
    spreads = table.X.std(axis=0)
    varied = spreads[spreads > 0]
    if len(varied) and varied.max() > _UNITS * varied.min():
        names = table.feature_names
        widest, least = (names[i] for i in (int(spreads.argmax()), int((spreads == varied.min()).argmax())))
        terminal.complain(
            "warning",
            f"the column {widest!r} spreads by {varied.max():.3g}, {least!r} by {varied.min():.3g}: distances of rows"
            " follow the wide columns; standardise all of them, here and where the model predicts",
        )


def is_multilabel(model: Any) -> bool:
    """Return whether a model predicts label sets."""
    return type(model).__module__.startswith("mercer.multilabel.") and hasattr(model, "label_form_")


def predict(model: Any, file: str, output: str, labels: str | None, top: int | None) -> None:
    """Write a line with the labels of every row, separated by commas; other lines of csv and svmlight are kept."""
    from mercer.data.readers.label_sets import gaps
    from mercer.online.writer import LineWriter, with_gaps

    if getattr(model, "input_", "") == "documents":
        with LineWriter(output) as write:
            write(",".join(sorted(map(str, row))) for row in model.predict_file(file, n_labels=top))
        return
    table = _read(file, labels, getattr(model, "n_features_in_", None))
    sets = model.predict(table.X, n_labels=top)
    with LineWriter(output) as write:
        write(with_gaps((",".join(map(str, row)) for row in sets), gaps(file, labels or "labels")))


def examine(model: Any, file: str, labels: str | None, top: int) -> list[Block]:
    """Return blocks for a page: performance on the label sets of a file."""
    import numpy as np

    from mercer.metrics import multilabel_scores
    from mercer.report.examined import calibration
    from mercer.report.portrait import Facts, Listing

    truth, given, p = _compared(model, file, labels)
    scores = multilabel_scores(truth, given, p).to_dict()
    truth, given = (np.asarray(Y.toarray() if hasattr(Y, "toarray") else Y) > 0 for Y in (truth, given))
    facts = [("rows", f"{len(truth):,}"), *((n.replace("_", " "), f"{v:.4f}") for n, v in scores.items())]
    names = [str(name) for name in model.classes_.tolist()]
    right, true, said = (truth & given).sum(axis=0), truth.sum(axis=0), given.sum(axis=0)
    order = np.argsort(-true, kind="stable")[:_MOST_LABELS]
    rows = [
        [
            names[k],
            *(f"{v:.4f}" for v in (right[k] / max(1, said[k]), right[k] / max(1, true[k]))),
            f"{2 * right[k] / max(1, said[k] + true[k]):.4f}", f"{true[k]:,}", f"{said[k]:,}",
        ]
        for k in order.tolist()
    ]  # fmt: skip
    note = "" if len(names) <= _MOST_LABELS else f"The {_MOST_LABELS} most frequent of {len(names)} labels."
    header = ["label", "precision", "recall", "F1", "true", "predicted"]
    blocks: list[Block] = [Facts(facts, "Held-out data"), Listing("Labels", header, rows, "lrrrrr", note)]
    blocks += _worst_labels(names, right, true, said, top)
    blocks += _together(names, truth, given)
    if p.min(initial=0.0) >= 0 and p.max(initial=0.0) <= 1:
        blocks.append(calibration(p.ravel(), truth.ravel(), "share of labels that are there"))
    wrong = np.flatnonzero((truth != given).any(axis=1))
    worst = wrong[np.argsort(-(truth != given)[wrong].sum(axis=1), kind="stable")][:top].tolist()
    listed = [
        [f"{i + 1:,}", *(", ".join(names[k] for k in np.flatnonzero(Y[i])) or "none" for Y in (truth, given))]
        for i in worst
    ]
    if listed:
        shown_note = f"{len(listed)} of {len(wrong):,} rows with a wrong label, those with most of them first."
        blocks.append(Listing("Most wrong", ["row", "true", "predicted"], listed, "rll", shown_note))
    return [*blocks, promised("label sets", (truth != given).any(axis=1).tolist())]


def _worst_labels(names: list[str], right: Any, true: Any, said: Any, top: int) -> list[Block]:
    """The labels of the file with the lowest F1."""
    import numpy as np

    from mercer.report.portrait import Listing

    f1 = 2 * right / np.maximum(1, said + true)
    there = np.flatnonzero(true > 0)
    worst = there[np.lexsort((-true[there], f1[there]))][:top].tolist()
    rows = [[names[k], f"{f1[k]:.4f}", f"{true[k] - right[k]:,}", f"{said[k] - right[k]:,}"] for k in worst]
    note = f"Of the {len(there):,} labels that the file has."
    return [Listing("Worst labels", ["label", "F1", "missed", "given wrongly"], rows, "lrrr", note)] if rows else []


def _together(names: list[str], truth: Any, given: Any) -> list[Block]:
    """Which labels are there together, in the file and in the predictions: P(column | row)."""
    import numpy as np

    from mercer.report.portrait import Matrix

    order = np.argsort(-truth.sum(axis=0), kind="stable")[:_MOST_TOGETHER]
    if len(order) < 2:
        return []
    chosen = [names[k] for k in order.tolist()]
    blocks: list[Block] = []
    for what, Y in (("in the file", truth), ("as predicted", given)):
        counts = Y[:, order].astype(float).T @ Y[:, order].astype(float)
        shares = counts / np.maximum(np.diag(counts), 1.0)[:, None]
        caption = f"Labels that go together, {what}: of the rows with one label, the share that has the other, too."
        blocks.append(Matrix(f"Labels together, {what}", shares, chosen, chosen, caption, "", False, "given", "share"))
    return blocks


def evaluate(model: Any, file: str, labels: str | None, as_json: bool) -> None:
    """Print scores of label sets, and the labels with the worst predictions."""
    from mercer.metrics import multilabel_scores

    truth, given, p = _compared(model, file, labels)
    scores = multilabel_scores(truth, given, p).to_dict()
    if as_json:
        print(json.dumps({"rows": truth.shape[0], **scores}))
        return
    terminal.figures([("rows", f"{truth.shape[0]:,}"), *((n.replace("_", " "), f"{v:.4f}") for n, v in scores.items())])


def _compared(model: Any, file: str, labels: str | None) -> tuple[Any, Any, Any]:
    """The true and predicted labels of a file as rows of 0 and 1, and probabilities."""
    import numpy as np
    import scipy.sparse as sp

    from mercer.multilabel.label_forms import indicator_rows

    if getattr(model, "input_", "") == "documents":
        truth, p, strange = model._labelled_file(file)
        _say_strange(strange)
        return truth, sp.csr_matrix((p >= model.threshold_).astype(float)), p
    table = _read(file, labels, getattr(model, "n_features_in_", None))
    place = {name: i for i, name in enumerate(model.classes_.tolist())}
    known = [[name for name in row if name in place] for row in table.label_sets()]
    strange = sorted({name for row in table.label_sets() for name in row} - set(place))
    _say_strange(strange)
    truth = indicator_rows(known, place, len(place), strict=True)
    given = indicator_rows(model.predict(table.X), place, len(place), strict=True)
    return truth, given, np.asarray(model.predict_proba(table.X), float)


def _say_strange(strange: list[Any]) -> None:
    if strange:
        terminal.complain("warning", f"{len(strange)} labels are unknown to the model, such as {strange[0]!r}")


def _read(file: str, labels: str | None, n_features: int | None) -> Any:
    from mercer.data import read_multilabel

    try:
        return read_multilabel(file, labels, n_features=n_features)
    except FileNotFoundError as error:
        raise UsageError(f"{shown(file)}: no such file") from error
