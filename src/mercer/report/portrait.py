"""Describe a fitted model as a list of blocks, which the command line prints and pages draw.

Blocks are plain data. The blocks of a model depend on its attributes (feature weights, transitions, support objects,
training history), not on its class. So new kinds of models need no extra code.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = ["Block", "Curves", "Facts", "Listing", "Matrix", "Pictures", "Weights", "portrait"]

_MOST_CLASSES = 24
_MOST_OBJECTS = 20
_MOST_LISTS = 60


@dataclass(frozen=True)
class Facts:
    """Named values."""

    rows: list[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Listing:
    """A table of strings."""

    title: str
    header: list[str]
    rows: list[list[str]]
    align: str
    note: str = ""


@dataclass(frozen=True)
class Weights:
    """Named values, grouped by the label that they support."""

    title: str
    lists: dict[str, list[tuple[str, float]]]
    note: str = ""


@dataclass(frozen=True)
class Matrix:
    """A table of numbers, drawn as colours on a page."""

    title: str
    values: np.ndarray
    rows: list[str]
    columns: list[str]
    caption: str
    note: str = ""
    diverging: bool = True
    row_axis: str = ""
    column_axis: str = ""


@dataclass(frozen=True)
class Curves:
    """Series over a common axis."""

    title: str
    series: dict[str, tuple[Sequence[float], Sequence[float]]]
    x: str
    y: str
    caption: str
    log: bool = False
    line: tuple[Sequence[float], Sequence[float]] | None = field(default=None)
    """A reference line, such as the diagonal of a calibration curve."""


@dataclass(frozen=True)
class Pictures:
    """Small grey images side by side."""

    title: str
    values: np.ndarray
    """(images × rows × columns), each scaled to its own range, or to −1 … 1 if it has both signs."""
    caption: str


Block = Facts | Listing | Weights | Matrix | Curves | Pictures


def portrait(model: Any, top: int = 10, label: Any = None) -> list[Block]:
    """Return a description of a fitted model.

    Parameters
    ----------
    model : object
        A fitted model of any kind.
    top : int, default=10
        Number of features per label, support objects and similar items.
    label : object, optional
        Show the features of this label only.

    Returns
    -------
    list of blocks
        `Facts` first.

    Examples
    --------
    >>> from mercer.kernel_methods import KernelSVC
    >>> from mercer.report.portrait import portrait
    >>> blocks = portrait(KernelSVC().fit([[0.0], [1.0], [2.0]], [0, 0, 1]))
    >>> [block.title for block in blocks]
    ['', 'Support objects', 'Fitted arrays']
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    blocks: list[Block] = [Facts(_facts(model))]
    for show in (
        _lengths,
        _transitions,
        _emissions,
        _pairs,
        _substitutions,
        _dependence,
        _support,
        _spectrum,
        _hidden_units,
        _attributes,
    ):
        blocks += show(model, top)
    blocks += _features(model, top, label)
    blocks += _training(model)
    if len(blocks) == 1 or hasattr(model, "support_"):
        blocks += _arrays(model)
    return blocks


# ---------------------------------------------------------------------------------------------------------- facts


def _facts(model: Any) -> list[tuple[str, str]]:
    from mercer.online.learner import HashedLearner
    from mercer.segmentation import Segmenter
    from mercer.tagging import Tagger

    if isinstance(model, Tagger | Segmenter):
        from mercer.report.model import segmenter_figures, tagger_figures

        return tagger_figures(model) if isinstance(model, Tagger) else segmenter_figures(model)
    rows = [("settings", _settings(model))] if hasattr(model, "get_params") else []
    if hasattr(model, "classes_"):
        names = [str(name) for name in np.asarray(model.classes_).tolist()]
        rows.append(("classes", f"{len(names):,}: {', '.join(names[:_MOST_CLASSES])}{_more(names, _MOST_CLASSES)}"))
    if isinstance(model, HashedLearner):
        return [*rows, *_hashed_facts(model)]
    if hasattr(model, "n_features_in_"):
        rows.append(("features", f"{model.n_features_in_:,}"))
    if hasattr(model, "n_features_out_"):
        rows.append(("columns out", f"{model.n_features_out_:,}"))
    if getattr(model, "support_", None) is not None:
        rows.append(("support objects", f"{len(model.support_):,}"))
    if hasattr(model, "gamma_"):
        rows.append(("gamma", f"{model.gamma_:.4g}"))
    for name in ("C_", "loss_", "inference_", "block_", "bag_error_", "constant_bag_error_", "progressive_error_"):
        value = getattr(model, name, None)
        if value is not None:
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            rows.append((name.rstrip("_").replace("_", " "), text))
    return [*rows, *_training_facts(model), *_size(model)]


def _settings(model: Any) -> str:
    """Return the parameters that differ from their defaults."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(model).__init__).parameters.items()
    }
    changed = [
        f"{name}={_short(value)}"
        for name, value in model.get_params(deep=False).items()
        if name not in ("n_jobs", "verbose") and not _same(value, defaults.get(name))
    ]
    return ", ".join(changed) or "defaults"


def _text_features(hasher: Any) -> str:
    if hasattr(hasher, "kernel"):
        return f"substrings, {hasher.kernel}, length {hasher.max_length}"
    copies = f", {hasher.copies} copies" if hasher.copies > 1 else ""
    return f"{hasher.analyzer}, n-grams {hasher.ngrams[0]}-{hasher.ngrams[1]}{copies}"


def _hashed_facts(model: Any) -> list[tuple[str, str]]:
    state = model.progress_
    rows = [("examples", f"{state.examples:,}{' (interrupted)' if model.interrupted_ else ''}")]
    rows.append(("progressive loss", f"{model.progressive_loss_:.6f}"))
    if hasattr(model, "classes_"):
        rows.append(("progressive error", f"{state.average_error:.4f}"))
    if hasattr(model, "file_format_"):
        rows.append(("trained on", _reading(model.file_format_)))
    if model.hasher is not None:
        rows.append(("text", _text_features(model.hasher)))
    rows.append(("table", f"{model.model_bytes_ / 1e6:,.1f} MB"))
    if hasattr(model, "names_"):
        rows.append(("names kept", f"{len(model.names_.names):,}, {model.names_bytes_ / 1e6:,.1f} MB"))
    weights = model._table_weights().astype(np.float64)
    used = np.abs(weights[weights != 0])
    rows.append(
        ("non-zero weights", f"{len(used):,} of {len(weights):,} ({100 * len(used) / max(1, len(weights)):.1f} %)")
    )
    if len(used):
        rows.append(("largest weight", f"{used.max():.4f} (in absolute value; the median {np.median(used):.4f})"))
        rows.append(("norms of weights", f"sum of sizes {used.sum():,.4f}, length {np.sqrt(used @ used):,.4f}"))
    return rows


def _training_facts(model: Any) -> list[tuple[str, str]]:
    said = []
    solver, steps = getattr(model, "solver_", None), getattr(model, "n_iter_", None)
    if isinstance(solver, str):
        said.append(solver)
    if steps is not None and np.size(steps):
        said.append(f"{int(np.max(steps)):,} iterations")
    if isinstance(getattr(model, "converged_", None), bool | np.bool_):
        said.append("converged" if model.converged_ else "not converged")
    return [("training", ", ".join(said))] if said else []


def _size(model: Any) -> list[tuple[str, str]]:
    if not callable(getattr(model, "to_state", None)):
        return []
    try:
        _, arrays = model.to_state()
    except Exception:  # what cannot be saved can be looked at all the same
        return []
    return [("numbers kept", f"{sum(array.size for array in arrays.values()):,}")]


# -------------------------------------------------------------------------------------------------------- what it has


def _features(model: Any, top: int, label: Any) -> list[Block]:
    """Return the features with the largest positive weights for each label, and a few with negative weights."""
    if not hasattr(model, "top_features") or _has_support(model):
        return []
    try:
        best, worst = model.top_features(top), model.top_features(max(1, top // 3), against=True)
    except ValueError as error:  # no names were kept
        return [Weights("Features", {}, str(error))]
    if not isinstance(best, dict):
        best, worst = {"": best}, {"": worst}

    def named(each: Any) -> str:
        return str(each) if len(best) > 1 or each == "" else "every segment"  # one label: boundaries only

    wanted = [each for each in best if label is None or str(each) == str(label)]
    note = "" if len(wanted) <= _MOST_LISTS else f"The first {_MOST_LISTS} of {len(wanted)} labels."
    return [
        Weights(
            "Features",
            {
                named(each): [
                    *(pair for pair in best[each] if pair[1] > 0),
                    *(pair for pair in worst[each][::-1] if pair[1] < 0),
                ]
                for each in wanted[:_MOST_LISTS]
            },
            note,
        )
    ]


def _lengths(model: Any, top: int) -> list[Block]:
    from mercer.segmentation import Segmenter

    if not isinstance(model, Segmenter) or model.max_length_ <= 1:
        return []
    labels, scores = [str(label) for label in model.classes_.tolist()], model.lengths_
    sizes = list(range(1, len(scores) + 1))
    caption = "Score of a segment by its length; forbidden lengths are left out."
    if len(labels) <= 8:
        series: dict[str, Any] = {
            label: (sizes, column.tolist()) for label, column in zip(labels, scores.T, strict=True)
        }
        return [Curves("Lengths", series, "length", "score", caption)]
    rows = np.unique(np.geomspace(1, len(sizes), min(len(sizes), 60)).astype(int)) - 1
    names = [str(sizes[k]) for k in rows]
    return [Matrix("Lengths", scores[rows], names, labels, caption, row_axis="length")]


def _transitions(model: Any, top: int) -> list[Block]:
    names = ("transitions_", "start_", "classes_")
    if not all(isinstance(getattr(model, name, None), np.ndarray) for name in names) or len(model.classes_) < 2:
        return []
    labels = [str(label) for label in model.classes_.tolist()]
    probabilities = not hasattr(model, "coef_")
    what = "Probabilities" if probabilities else "Weights"
    note = (
        "p(next state | state)."
        if probabilities
        else "Score of each pair of neighbouring labels: blue pairs are encouraged, orange ones discouraged."
    )
    ends = [("first", model.start_)]
    if isinstance(getattr(model, "end_", None), np.ndarray):
        ends.append(("last", model.end_))
    table = Matrix(
        "Transitions", model.transitions_, labels, labels,
        f"{what} of transitions, from the label of a row to that of a column.", note, not probabilities, "from", "to",
    )  # fmt: skip
    edges = Matrix(
        "Transitions", np.array([values for _, values in ends]), [name for name, _ in ends], labels,
        f"{what} of the labels at the ends of a sequence.", "", not probabilities,
    )  # fmt: skip
    return [table, edges]


def _emissions(model: Any, top: int) -> list[Block]:
    """Return the emissions of the states of a hidden Markov model."""
    emission = getattr(model, "emission_", None)
    if not isinstance(emission, np.ndarray) or emission.ndim != 2 or not hasattr(model, "classes_"):
        return []
    states = [str(label) for label in model.classes_.tolist()]
    index, symbols = getattr(model, "index_", None), getattr(model, "symbols_", None)

    def name(column: int) -> str:
        if index is not None:
            return str(index.name(column))
        return f"symbol {column}" if symbols is None else str(symbols[column])

    if hasattr(model, "covariances_"):
        columns = [f"x{j}" for j in range(emission.shape[1])]
        return [Matrix("Emissions", emission, states, columns, "Means of the states.", row_axis="state")]
    lists = {
        state: [(name(int(k)), float(row[k])) for k in np.argsort(-row, kind="stable")[:top] if row[k] > 0]
        for state, row in zip(states, emission, strict=True)
    }
    return [Weights("Emissions", lists, "The most likely symbols of each state, with their probabilities.")]


def _pairs(model: Any, top: int) -> list[Block]:
    """Return the weights of neighbouring labels of graphs and images."""
    from mercer.labeling import GraphLabeler

    if not isinstance(model, GraphLabeler):
        return []
    labels = [str(label) for label in model.classes_.tolist()]
    blocks: list[Block] = []
    for kind, table in enumerate(model.pair_weights_):
        for feature, values in enumerate(table):
            named = model._edge_name(feature)
            title = f"Pairs of labels: {named}" if len(model.pair_weights_) == 1 else f"Type {kind}, {named}"
            caption = f"Weights of pairs of neighbouring labels, times the edge feature {named}."
            blocks.append(Matrix(title, values, labels, labels, caption))
    return blocks


def _dependence(model: Any, top: int) -> list[Block]:
    """Return the label dependence in a model of label sets."""
    if not hasattr(model, "label_dependence") or len(model.classes_) < 2:
        return []
    from mercer.multilabel.joint import dependence_order

    try:
        values = model.label_dependence()
    except ValueError:  # nothing that labels could be compared by
        return []
    order = dependence_order(values, _MOST_CLASSES)
    names = [str(model.classes_[t]) for t in order]
    note = "Blue: the same features support both labels; orange: one label excludes the other." + (
        "" if len(order) == len(values) else f" {len(order)} of {len(values)} labels with the strongest dependence."
    )
    caption = "Similarity of two labels in the model, from −1 to 1."
    return [Matrix("Dependence of labels", values[np.ix_(order, order)], names, names, caption, note)]


def _substitutions(model: Any, top: int) -> list[Block]:
    table = getattr(model, "substitution_", None)
    symbols = getattr(model, "alphabet_", None)
    if not isinstance(table, np.ndarray) or symbols is None or table.shape != (len(symbols), len(symbols)):
        return []
    names = [str(symbol) for symbol in symbols]
    gaps = f"Opening a gap: {model.gap_open_:.4g}; each further position: {model.gap_extend_:.4g}."
    return [Matrix("Substitutions", table, names, names, "Scores of aligned pairs of symbols.", gaps)]


def _has_support(model: Any) -> bool:
    return getattr(model, "support_", None) is not None and hasattr(model, "dual_coef_") and not hasattr(model, "coef_")


def _support(model: Any, top: int) -> list[Block]:
    """Return the support objects with the largest coefficients."""
    if not _has_support(model):
        return []
    coef = np.atleast_2d(model.dual_coef_)
    coef = coef if coef.shape[1] == len(model.support_) else coef.T
    strength = np.abs(coef).max(axis=0, initial=0.0)
    order = np.argsort(-strength, kind="stable")[: max(top, _MOST_OBJECTS)]
    objects = getattr(model, "support_objects_", getattr(model, "support_vectors_", None))
    shown = coef[:6]
    header = ["object", *(f"coefficient {k}" if len(coef) > 1 else "coefficient" for k in range(len(shown))), "value"]
    rows = [
        [str(model.support_[j]), *(f"{c:+.4g}" for c in shown[:, j]), _object(objects, int(j))] for j in order.tolist()
    ]
    note = f"{len(rows)} of {len(model.support_):,}, largest coefficients first; indices as in training."
    return [Listing("Support objects", header, rows, "r" + "r" * len(shown) + "l", note)]


def _object(objects: Any, at: int) -> str:
    if objects is None:
        return "(precomputed kernel)"
    try:
        value = objects[at]
    except (TypeError, IndexError, KeyError):
        return type(objects).__name__
    if issparse(value):
        value = value.toarray().ravel()
    if isinstance(value, np.ndarray):
        few = np.array2string(value.ravel()[:6], precision=3, separator=", ", suppress_small=True)
        return few if value.size <= 6 else f"{few[:-1]}, …] ({value.size} numbers)"
    return _short(value)


def _spectrum(model: Any, top: int) -> list[Block]:
    for name in ("eigenvalues_", "correlations_", "explained_variance_ratio_"):
        values = getattr(model, name, None)
        if isinstance(values, np.ndarray) and values.ndim == 1 and len(values):
            steps = list(range(1, len(values) + 1))
            title = name.rstrip("_").replace("_", " ")
            return [Curves(title.capitalize(), {title: (steps, values.tolist())}, "direction", title, f"{title}.")]
    return []


_CURVES = (
    ("objective", "objective", False, "The objective: penalty plus C times the loss."),
    ("log_likelihood", "log-likelihood", False, "The log-likelihood of the training data, if measured."),
    ("n_temperatures", "temperatures", False, "Number of temperatures per step."),
    ("acceptance", "acceptance", False, "Acceptance rate of exchanges or excursions."),
    ("gap", "gap", True, "The relative duality gap, a bound on the distance of the objective from its optimum."),
    ("gradient_norm", "gradient norm", True, "The gradient norm, which is 0 at the optimum."),
    ("mistakes", "mistakes", False, "Positions labelled wrong during each pass over the training data."),
    ("dev_score", "score", False, "The score of the model on held-out data."),
    (
        "loss",
        "progressive loss",
        False,
        "Learning curve: progressive loss (the mean loss of each example before training on it).",
    ),
    (
        "error",
        "progressive error",
        False,
        "Learning curve: progressive error rate (each example is predicted before training on it).",
    ),
)


def _attributes(model: Any, top: int) -> list[Block]:
    """Return tables of attributes: descriptions of known and new classes."""
    blocks: list[Block] = []
    for title, table, classes in (
        ("Attributes of classes", "attributes_", "classes_"),
        ("Attributes of known classes", "known_attributes_", "known_classes_"),
        ("Attributes of new classes", "novel_attributes_", "novel_classes_"),
    ):
        values = getattr(model, table, None)
        if not isinstance(values, np.ndarray) or values.ndim != 2 or not hasattr(model, classes):
            continue
        shown = values[:60, :40]
        rows = [str(name) for name in getattr(model, classes)[: len(shown)].tolist()]
        part = "" if shown.shape == values.shape else f" The first {shown.shape[0]} × {shown.shape[1]} of them."
        caption = f"Attributes of each class, one per column.{part}"
        blocks.append(Matrix(title, shown, rows, [str(j) for j in range(shown.shape[1])], caption))
    return blocks


def _hidden_units(model: Any, top: int) -> list[Block]:
    """Return filters and samples of random fields as images if columns may be pixels, else the strongest pairs."""
    from mercer.fields import RBM, BoltzmannMachine

    if isinstance(model, BoltzmannMachine):
        names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
        caption = "Interaction of two columns: attractive (blue) or repulsive (orange)."
        return [Matrix("Couplings", model.couplings(), names, names, caption)]
    if not isinstance(model, RBM):
        return []
    side = math.isqrt(model.n_features_in_)
    if side * side != model.n_features_in_ or side < 3:
        names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
        order = np.argsort(-np.abs(model.components_).sum(axis=1), kind="stable")[:top]
        lists = {
            f"unit {unit}": [
                (names[k], float(model.components_[unit, k]))
                for k in np.argsort(-np.abs(model.components_[unit]), kind="stable")[:top]
            ]
            for unit in order
        }
        return [Weights("Hidden units", lists, "The columns with the largest weights of the strongest units.")]
    order = np.argsort(-np.linalg.norm(model.components_, axis=1), kind="stable")[:40]
    filters = model.components_[order].reshape(-1, side, side)
    samples = np.asarray(model.sample(20, random_state=0), float).reshape(-1, side, side)
    return [
        Pictures("Hidden units", filters, f"Weights of the {len(filters)} strongest hidden units, as images."),
        Pictures("Samples", samples, "Rows drawn from the model."),
    ]


def _training(model: Any) -> list[Block]:
    history = getattr(model, "history_", None)
    if not isinstance(history, Mapping):
        return []
    blocks: list[Block] = []
    examples = history.get("examples")
    for name, title, log, caption in _CURVES:
        values = history.get(name)
        if not isinstance(values, list) or not all(isinstance(v, Real) for v in values):
            continue
        if not any(math.isfinite(v) for v in values):
            continue
        learning = isinstance(examples, list) and len(examples) == len(values)
        steps = list(examples or ()) if learning else list(range(1, len(values) + 1))
        known = [
            at for at, value in enumerate(values) if math.isfinite(value)
        ]  # some are measured every few iterations
        steps, values = [steps[at] for at in known], [values[at] for at in known]
        blocks.append(
            Curves("Training", {title: (steps, values)}, "examples" if learning else "iteration", title, caption, log)
        )
    return blocks


def _arrays(model: Any) -> list[Block]:
    """Return sizes and ranges of the arrays of a model, for feature maps."""
    rows = []
    for name, value in sorted(vars(model).items()):
        if issparse(value):
            value = value.data
        if name.startswith("_") or not isinstance(value, np.ndarray):
            continue
        shape = " × ".join(map(str, value.shape)) or "1"
        if value.dtype.kind in "biuf" and value.size:
            numbers = value.astype(float)
            rows.append([name, shape, *(f"{f(numbers):.4g}" for f in (np.min, np.mean, np.max))])
        else:
            rows.append([name, shape, "", "", ""])
    if not rows:
        return []
    return [Listing("Fitted arrays", ["array", "shape", "least", "mean", "largest"], rows, "lrrrr")]


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or (type(value) is type(default) and value == default))
    except (TypeError, ValueError):
        return False


def _reading(form: Any, most: int = 8) -> str:
    """Return a description of how the training file was read."""

    def listed(kind: str, names: Any) -> list[str]:
        names = [str(name) for name in names or ()]
        return [f"{kind} {', '.join(names[:most])}{_more(names, most)}"] if names else []

    parts = [{"folder": "a folder for each class"}.get(form.layout or "", form.layout or form.format)]
    if form.label not in (None, True, False):
        parts.append(f"label {form.label}")
    numbers = [name for name, *_ in form.numbers]
    parts += listed("text", form.text) + listed("numbers", numbers) + listed("categories", form.categorical)
    parts += listed("dates", [name for name, _ in form.dates]) + listed("ignored", form.ignored)
    if form.encoding not in (None, "utf-8", "ascii"):
        parts.append(f"in {form.encoding}")
    return "; ".join(parts)


def _short(value: Any, most: int = 60) -> str:
    text = " ".join(str(value).split()) if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _more(names: Sequence[str], most: int) -> str:
    return ", …" if len(names) > most else ""
