"""``mercer train proportions``: a classifier of rows from a table of groups with known class shares; prediction,
evaluation and display."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import terminal
from mercer.cli.columns import check_writable, shown
from mercer.cli.errors import UsageError
from mercer.cli.promises import promised

if TYPE_CHECKING:
    from mercer.report.portrait import Block

_READING = "Reading"
_LEARNING = "Learning"
_RUNNING = "Running"
_TRIED_C = (0.1, 1.0, 10.0)
_FEW = 5000  # rows: up to here a search in one process is over before others have started


# Spelled out here, not taken from the estimators: the help must not import them.
class MethodName(StrEnum):
    """Methods of learning from shares."""

    alternating = "alternating"
    convex = "convex"
    inverse_calibration = "inverse-calibration"
    mean_map = "mean-map"
    gradient = "gradient"


class KernelName(StrEnum):
    """Kernels over the features."""

    linear = "linear"
    gaussian = "gaussian"


class InitName(StrEnum):
    """Initial labels of the alternating method."""

    auto = "auto"
    random = "random"
    inverse_calibration = "inverse-calibration"
    mean_map = "mean-map"
    convex = "convex"


_CLASSES = {
    "alternating": "AlternatingProportionSVM",
    "convex": "ConvexProportionSVM",
    "inverse-calibration": "InverseCalibration",
    "mean-map": "MeanMap",
    "gradient": "ProportionClassifier",
}

Table = dict[str, list[str]]


def train_proportions(
    file: Annotated[
        str, typer.Argument(metavar="DATA.csv", help="A row for each instance (also .gz); - for standard input.")
    ],
    bag: Annotated[str, typer.Option("--bag", metavar="COLUMN", help="The column with the group of each row.")],
    proportions: Annotated[
        str,
        typer.Option(
            metavar="TABLE.csv",
            help="A row for each group: its name in the column of --bag (or the first), and shares in the others. "
            "One other column is the share of the class of its name; several columns are the shares of all classes.",
        ),
    ],
    model: Annotated[str, typer.Option("--model", "-m", metavar="PATH", help="Where to write the model.")],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Labels that are known for some rows; empty elsewhere.", rich_help_panel=_READING
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to ignore; may be repeated.", rich_help_panel=_READING),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column whose numbers are names; may be repeated.", rich_help_panel=_READING
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="C",
            help="Column separator. Default: a comma (.tsv: a tab).",
            rich_help_panel=_READING,
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        MethodName, typer.Option(help="Learning method; see the guide.", rich_help_panel=_LEARNING)
    ] = MethodName.alternating,
    c: Annotated[
        float | None,
        typer.Option(
            "--C",
            metavar="X",
            help="Weight of the loss; smaller values regularise more. Default: chosen by the error on held-out groups.",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None,
    init: Annotated[
        InitName,
        typer.Option(
            help="Initial labels of the alternating method: random, or from another method. auto: chosen with C.",
            rich_help_panel=_LEARNING,
        ),
    ] = InitName.auto,
    kernel: Annotated[
        KernelName,
        typer.Option(help="gaussian: nonlinear boundaries, for up to a few thousand rows.", rich_help_panel=_LEARNING),
    ] = KernelName.linear,
    gamma: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="exp(−γ‖x − z‖²) of the gaussian kernel. Default: from the median distance.",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(metavar="N", min=2, help="Number of cross-validation folds of groups.", rich_help_panel=_LEARNING),
    ] = 5,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of random starts and folds.", rich_help_panel=_RUNNING)
    ] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.", rich_help_panel=_RUNNING)] = -1,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Write a page that compares known and predicted shares.", rich_help_panel=_RUNNING
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no summary.", rich_help_panel=_RUNNING)
    ] = False,
) -> None:
    """Train a classifier of rows from the shares of classes in groups of them.

    You do not need classes of single rows: votes by district, positives by lab batch or sales by region are enough.
    Numbers are standardised, and each category gets a column. C and the start of the alternating method are chosen by
    the error on the shares of held-out groups.

    [bold]Examples[/bold]
      mercer train proportions people.csv --bag district --proportions votes.csv --model votes.mercer
      mercer train proportions samples.csv --bag batch --proportions positives.csv --model lab.mercer --kernel gaussian
      mercer predict votes.mercer new.csv
      mercer evaluate votes.mercer survey.csv --label vote
    """
    check_writable(model)
    if html is not None:
        check_writable(html)
    if gamma is not None and kernel is KernelName.linear:
        raise UsageError("--gamma is for --kernel gaussian")
    if init is not InitName.auto and method is not MethodName.alternating:
        raise UsageError("--init is for --method alternating")
    if c is not None and not (0 < c < float("inf")):
        raise UsageError(f"--C must be a positive number, got {c:g}")
    rows, table = read_table(file, separator), read_table(proportions, separator)
    for name in ignore or []:
        if name not in rows:
            raise UsageError(f"{shown(file)}: no column {name!r} to ignore", f"its columns: {', '.join(rows)}")
    y = _labels(rows, label, file)
    bags = bags_of(rows, table, bag, file, proportions, y)
    left = [bag, *([label] if label else []), *(ignore or [])]
    estimator = _estimator(method, kernel, gamma, rows, left, categorical, seed, jobs)
    import time

    start = time.perf_counter()
    with terminal.working(f"learning from {shown(file)}"):
        candidates = _candidates(method, _TRIED_C if c is None else (c,), init)
        fitted, chosen, held_out = _fitted(estimator, candidates, min(folds, len(bags)), seed, jobs, rows, y, bags)
    seconds = time.perf_counter() - start
    import mercer

    mercer.save(fitted, model)
    shares = fitted.predict_proportions(rows, bags)
    if html is not None:
        _write_page(html, bags, shares, model)
    if not quiet:
        _summarise(fitted, bags, chosen, held_out, model, seconds)


def read_table(file: str, separator: str | None) -> Table:
    """Return the named columns of a table: csv with any separator, JSON lines, JSON, Parquet, Arrow."""
    from mercer.data.readers.table import read_columns

    if separator in ("\\t", "tab"):
        separator = "\t"
    if separator is not None and len(separator) != 1:
        raise UsageError(f"--separator must be one character, got {separator!r}")
    return read_columns(file, separator=separator)


def _both_classes(one: str, labels: Iterable[str | None]) -> list[str]:
    """The class of a column of shares, and the other one: from the labels, if there are two and it is one of them."""
    known = {label for label in labels if label}
    if len(known) == 2 and one in known:
        return [(known - {one}).pop(), one]
    return [f"not {one}", one]


_YES = frozenset(("1", "yes", "y", "true", "t", "+", "+1", "positive"))
_NO = frozenset(("0", "no", "n", "false", "f", "-", "-1", "negative"))


def _spelled_by(cells: list[str], classes: list[str]) -> dict[str, str]:
    """What a file calls the classes of a model that knows one class and "not" it, where it is clear what is meant."""
    known = {cell for cell in cells if cell}
    same = {name: name for name in classes}
    if len(classes) != 2 or classes[0] != f"not {classes[1]}" or known <= set(classes) or len(known) > 2:
        return same
    one = {cell for cell in known if cell.lower() == classes[1].lower()} or {c for c in known if c.lower() in _YES}
    other = known - one
    if len(one) != 1 or (one != {classes[1]} and not all(c.lower() in _NO for c in other) and len(known) == 1):
        return same
    return {classes[1]: next(iter(one)), classes[0]: next(iter(other), classes[0])}


def bags_of(rows: Table, table: Table, bag: str, file: str, shares_file: str, y: list[str | None] | None) -> Any:
    """Return the groups of a table, with the shares of another table."""
    if bag not in rows:
        raise UsageError(f"{shown(file)}: no column {bag!r}", f"its columns: {', '.join(rows)}")
    bags = _bags(rows, table, bag, shown(shares_file), y)
    for number, name in enumerate(rows[bag]):
        if not name and (y is None or y[number] is None):
            what = f"{shown(file)}: row {number + 1} after the header has no {bag!r}"
            raise UsageError(what, "leave it out, or give its class in the column of --label")
    return bags


def _bags(rows: Table, table: Table, bag: str, where: str, y: list[str | None] | None = None) -> Any:
    from mercer.proportions import Bags

    names = [name or None for name in rows[bag]]
    key = bag if bag in table else next(iter(table))
    shares = {column: cells for column, cells in table.items() if column != key}
    if not shares:
        raise UsageError(f"{where}: expected a column of shares beside {key!r}")
    by_name: dict[str, Any] = {}
    for i, name in enumerate(table[key]):
        if name in by_name:
            raise UsageError(f"{where}: two rows are about the group {name!r}")
        by_name[name] = [_share(cells[i], where, name) for cells in shares.values()]
    classes = list(shares)
    if len(classes) == 1:
        by_name = {name: values[0] for name, values in by_name.items()}
        classes = _both_classes(classes[0], (y or []))
    seen = {name for name in names if name}
    extra = [name for name in by_name if name not in seen]
    if extra:  # a table of the whole country is of use for one of its regions
        count = terminal.count(len(extra), "group")
        terminal.complain("warning", f"{where}: {count} without rows left out, such as {extra[0]!r}")
    try:
        return Bags(names, {name: value for name, value in by_name.items() if name in seen}, classes=classes)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def _share(cell: str, where: str, name: str) -> float:
    percent = cell.endswith("%")
    try:
        return float(cell.rstrip("% ")) / (100.0 if percent else 1.0)
    except ValueError as error:
        raise UsageError(f"{where}: the share {cell!r} of the group {name!r} is no number") from error


def _labels(rows: Table, label: str | None, file: str) -> list[str | None] | None:
    if label is None:
        return None
    if label not in rows:
        raise UsageError(f"{shown(file)}: no column {label!r}", f"its columns: {', '.join(rows)}")
    labels = [cell or None for cell in rows[label]]
    return labels if any(labels) else None


def _estimator(
    method: MethodName,
    kernel: KernelName,
    gamma: float | None,
    rows: Table,
    left: list[str],
    categorical: list[str] | None,
    seed: int,
    jobs: int,
) -> Any:
    import mercer.proportions as proportions
    from mercer.kernels import Gaussian, median_heuristic
    from mercer.maps import TableEncoder

    kind = getattr(proportions, _CLASSES[method.value])
    encoder = TableEncoder(categorical=categorical or None, ignore=[name for name in left if name in rows])
    estimator = kind(map=encoder, n_jobs=jobs)
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=seed)
    if kernel is KernelName.gaussian:
        width = gamma if gamma is not None else median_heuristic(encoder.fit_transform(rows), random_state=seed)
        estimator.set_params(kernel=Gaussian(width))
    return estimator


def _candidates(method: MethodName, tried: tuple[float, ...], init: InitName) -> list[dict[str, Any]]:
    """Parameters of the estimator for each C, and start."""
    if method is not MethodName.alternating:
        penalty = {MethodName.mean_map: 0.1, MethodName.gradient: 1e-3}.get(method)
        return [{"C": c} if penalty is None else {"alpha": penalty / c} for c in tried]
    # Labels of another method are kept by going on from them; annealing is for those that know nothing.
    starts = ["inverse-calibration", "mean-map", "random"] if init is InitName.auto else [init.value]
    return [
        {"C": 10 * c, "C_instance": c, "init": start, "annealing": start == "random"} for start in starts for c in tried
    ]


def usual_settings(method: MethodName) -> dict[str, Any]:
    """Return default settings: the last start, and the middle value of C."""
    return _candidates(method, _TRIED_C, InitName.auto)[-2]


def _fitted(
    estimator: Any, candidates: list[dict[str, Any]], folds: int, seed: int, jobs: int, rows: Table, y: Any, bags: Any
) -> tuple[Any, str, tuple[float, ...]]:
    """The trained estimator, how its parameters came about, and errors on held-out groups, if there were any.

    The errors are those of the estimator, of one share for all groups, and of the most frequent class for all rows.
    """
    from mercer.proportions import BagCV

    if len(candidates) == 1 or folds < 2:
        best = candidates[0] if len(candidates) == 1 else candidates[-2]  # as `usual_settings`
        how = "" if len(candidates) == 1 else " (too few groups to choose)"
        return estimator.set_params(**best).fit(rows, y, bags=bags), _told(best) + how, ()
    grid = [{name: [value] for name, value in candidate.items()} for candidate in candidates]
    at_once = None if bags.n_rows <= _FEW else jobs
    search = BagCV(estimator, grid, cv=folds, random_state=seed, n_jobs=at_once).fit(rows, y, bags=bags)
    errors = (-search.best_score_, -search.constant_score_, -search.majority_score_)
    return search.best_estimator_, f"{_told(search.best_params_)} (chosen on {folds} folds of groups)", errors


def _told(params: dict[str, Any]) -> str:
    """As they are in the model."""
    said = {name: f"{value:g}" if isinstance(value, float) else value for name, value in params.items()}
    return ", ".join(f"{name}={value}" for name, value in said.items() if name != "annealing")


def _beside_constants(error: float, constant: float, majority: float) -> str:
    """An error of shares beside those of answers that look at no row."""
    return f"{error:.4f} (one share for all groups: {constant:.4f}, most frequent class: {majority:.4f})"


def _summarise(fitted: Any, bags: Any, chosen: str, held_out: tuple[float, ...], model: str, seconds: float) -> None:
    of_training = _beside_constants(fitted.bag_error_, fitted.constant_bag_error_, fitted.majority_bag_error_)
    terminal.heading(type(fitted).__name__)
    terminal.figures(
        [
            ("rows", f"{bags.n_rows:,}"),
            ("groups", f"{len(bags):,} of {bags.sizes.min():,} to {bags.sizes.max():,} rows"),
            ("classes", ", ".join(map(str, fitted.classes_.tolist()))),
            ("features", f"{len(fitted.map_.get_feature_names_out()):,}"),
            ("settings", chosen),
            ("error of shares", of_training),
            *([("held-out groups", _beside_constants(*held_out))] if held_out else []),
            ("seconds", f"{seconds:.2f}"),
            ("model", f"{model} ({os.path.getsize(model) / 1e6:,.1f} MB)"),
        ]
    )


def _write_page(path: str, bags: Any, predicted: Any, model: str) -> None:
    from mercer.report import figure, page, plot_proportions, section, write_page

    picture = plot_proportions(bags.proportions, predicted, bags.names.tolist(), bags.sizes)
    caption = "Each circle is a group; larger ones have more rows. On the diagonal the shares agree."
    write_page(path, page(os.path.basename(model), section("Known and predicted shares", figure(picture, caption))))
    terminal.say("page written to ", path)


# ---------------------------------------------------------------------------------------------- predict, evaluate, show


def is_proportional(model: Any) -> bool:
    """Return whether a loaded model is one of these, with a table as input."""
    from mercer.maps import TableEncoder

    return isinstance(getattr(model, "map_", None), TableEncoder) and hasattr(model, "predict_proportions")


def predict(model: Any, file: str, output: str, separator: str | None) -> None:
    """Write a line with the class of every row, and a line for the header and for each blank line."""
    from mercer.data.readers.table import row_gaps
    from mercer.online.writer import LineWriter, with_gaps

    labels = model.predict(read_table(file, separator))
    gaps = row_gaps(file, "label", separator="\t" if separator in ("\\t", "tab") else separator)
    with LineWriter(output) as write:
        write(with_gaps(map(str, labels.tolist()), gaps))


def examine(model: Any, file: str, label: str | None, top: int) -> list[Block]:
    """Return blocks for a page: performance on the labelled rows of a file."""
    import numpy as np

    from mercer.report.examined import examined

    if label is None:
        raise UsageError("--data needs --label with a model of proportions: the column that holds classes")
    rows = read_table(file, None)
    if label not in rows:
        raise UsageError(f"{shown(file)}: no column {label!r}", f"its columns: {', '.join(rows)}")
    classes = [str(name) for name in model.classes_.tolist()]
    spelled = _spelled_by(rows[label], classes)
    classes = [spelled[name] for name in classes]
    cells = np.array(rows[label], dtype=object)
    known = np.flatnonzero(cells != "")
    if not len(known):
        raise UsageError(f"{shown(file)}: the column {label!r} is empty")
    predicted = np.array([spelled[str(value)] for value in model.predict(rows).tolist()], dtype=object)
    sure = of_truth = None
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(rows))
        place = {name: i for i, name in enumerate(classes)}
        at = np.array([place.get(cell, -1) for cell in cells])
        of_truth = np.where(at >= 0, p[np.arange(len(p)), at], 0.0)[known]
        sure = p.max(axis=1)[known]
    elif hasattr(model, "decision_function"):  # no probabilities: those that lie farthest on the wrong side come first
        scores = np.asarray(model.decision_function(rows), float)
        if scores.ndim == 1:
            of_truth = np.where(cells == classes[1], scores, -scores)[known]
    names = [name for name in rows if name != label]

    def row(k: int) -> str:
        return ", ".join(f"{name}={rows[name][known[k]]}" for name in names)

    truth, answers = cells[known].astype(str), predicted[known].astype(str)
    blocks = examined(
        truth, answers, confidence=sure, of_truth=of_truth, shown=row, worst=top,
        score="p(true)" if sure is not None else "margin",
    )  # fmt: skip
    return [*blocks, promised("labels", (truth != answers).tolist())]


def evaluate(model: Any, file: str, label: str | None, bag: str | None, separator: str | None, as_json: bool) -> None:
    """Print the accuracy if labels are known, and shares of groups if groups are known."""
    rows = read_table(file, separator)
    for name in (label, bag):
        if name is not None and name not in rows:
            raise UsageError(f"{shown(file)}: no column {name!r}", f"its columns: {', '.join(rows)}")
    if label is None and bag is None:
        raise UsageError("name the column of labels (--label) or groups (--bag)", "mercer predict needs neither")
    classes = [str(name) for name in model.classes_.tolist()]
    spelled = dict(zip(classes, classes, strict=True)) if label is None else _spelled_by(rows[label], classes)
    classes = [spelled[name] for name in classes]
    predicted = [spelled[str(value)] for value in model.predict(rows).tolist()]
    figures: dict[str, Any] = {"rows": len(predicted)}
    if label is not None:
        known = [(cell, guess) for cell, guess in zip(rows[label], predicted, strict=True) if cell]
        if not known:
            raise UsageError(f"{shown(file)}: the column {label!r} is empty")
        strange = {cell for cell, _ in known} - set(classes)
        if strange:
            raise UsageError(
                f"{shown(file)}: {sorted(strange)[0]!r} is none of the classes of this model",
                f"they are {', '.join(classes)}",
            )
        most_frequent, times = Counter(cell for cell, _ in known).most_common(1)[0]
        right = sum(cell == guess for cell, guess in known)
        figures |= {"labelled": len(known), "accuracy": right / len(known), "constant_accuracy": times / len(known)}
        if right <= times:
            terminal.complain("warning", f"the model is no better than the answer {most_frequent!r} for every row")
    if bag is not None:
        groups: dict[str, list[str]] = {}
        for name, guess in zip(rows[bag], predicted, strict=True):
            groups.setdefault(name, []).append(guess)
        if label is not None:
            labelled = [row for row in zip(rows[bag], rows[label], predicted, strict=True) if row[1]]
            figures |= _errors_of_shares(labelled, classes)
        figures["groups"] = {
            name: {c: members.count(c) / len(members) for c in classes} for name, members in sorted(groups.items())
        }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    terminal.figures(
        [(k, f"{v:.4f}" if isinstance(v, float) else f"{v:,}") for k, v in figures.items() if k != "groups"]
    )
    if bag is not None:
        print()
        lines = [[name, *(f"{share:.4f}" for share in shares.values())] for name, shares in figures["groups"].items()]
        terminal.table([bag, *next(iter(figures["groups"].values()))], lines, "l" + "r" * (len(lines[0]) - 1))


def _errors_of_shares(rows: list[tuple[str, str, str]], classes: list[str]) -> dict[str, float]:
    """Errors of the shares of labelled rows (group, class, predicted class), beside answers that look at no row."""
    import numpy as np

    from mercer.proportions import Bags, bag_proportions, proportion_risk
    from mercer.proportions.selection import constant_shares, majority_shares

    groups, known, predicted = (np.array(column) for column in zip(*rows, strict=True))
    bags = Bags(groups, bag_proportions(known, groups, classes), classes=classes)
    shares = bags.mean((predicted[bags.members][:, None] == np.array(classes)).astype(np.float64))
    one, majority = (np.tile(answer(bags), (len(bags), 1)) for answer in (constant_shares, majority_shares))
    errors = [proportion_risk(answer, bags) for answer in (shares, one, majority)]
    return dict(zip(("error_of_shares", "error_of_one_share", "error_of_most_frequent"), errors, strict=True))
