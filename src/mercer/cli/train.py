"""``mercer train``: one sub-command per kind of model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import auto, classifier, field, multilabel, proportions, segmenter, terminal
from mercer.cli.columns import Labelled, check_writable, read_labelled, shown
from mercer.cli.errors import Stopped, UsageError
from mercer.cli.options import L1Ratio, Penalty, PenaltyName, TrainingOptions, grouped

if TYPE_CHECKING:
    from mercer.data.templates import Template
    from mercer.tagging import Constraints, Tagger

app = typer.Typer(help="Train a model from a file.", no_args_is_help=True, rich_markup_mode="rich")


# Spelled out here, not taken from the estimator: the help must not import it. A test compares the names.
class SolverName(StrEnum):
    """Names of solvers."""

    lbfgs = "lbfgs"
    owlqn = "owlqn"
    sgd = "sgd"
    averaged_perceptron = "averaged-perceptron"
    passive_aggressive = "passive-aggressive"
    bmrm = "bmrm"
    cutting_plane = "cutting-plane"
    bcfw = "bcfw"
    subgradient = "subgradient"
    marginal_dual = "marginal-dual"


class LossName(StrEnum):
    """Names of losses."""

    log = "log"
    hinge = "hinge"
    squared_hinge = "squared-hinge"
    slack = "slack"
    softmax_margin = "softmax-margin"
    hybrid = "hybrid"
    adaptive_hybrid = "adaptive-hybrid"
    relative_margin = "relative-margin"
    circle = "circle"
    tempered = "tempered"


class ConstraintsName(StrEnum):
    """Labelling schemes whose rules can be enforced."""

    none = "none"
    bio = "bio"
    bilou = "bilou"


class TransitionsName(StrEnum):
    """Kinds of transition weights."""

    dense = "dense"
    observed = "observed"
    features = "features"


_FEATURES = "Features"
_LEARNING = "Learning"
_RUNNING = "Running"


@grouped
def tagger(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Training sentences: a column file (also .gz), or - for standard input. Not needed with a --store "
            "that is there already.",
            show_default=False,
        ),
    ] = None,
    *,
    model: Annotated[str, typer.Option("--model", "-m", metavar="PATH", help="Where to write the model.")],
    training: TrainingOptions,
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Held-out sentences: training keeps the weights that label them best, and stops when that "
            "no longer improves.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Features: [bold]words[/bold], [bold]words+pos[/bold], either with [bold]+spelling[/bold], or a file "
            "of CRF++ templates. Default: words+spelling with 2 columns, words+pos+spelling with 3 or more.",
            rich_help_panel=_FEATURES,
        ),
    ] = None,
    hashing: Annotated[
        bool,
        typer.Option(
            "--hashing",
            help="Hash feature names instead of keeping them: bounded memory.",
            rich_help_panel=_FEATURES,
        ),
    ] = False,
    n_bits: Annotated[
        int, typer.Option("--n-bits", metavar="N", help="Hash into 2^N features.", rich_help_panel=_FEATURES)
    ] = 20,
    transitions: Annotated[
        TransitionsName | None,
        typer.Option(
            help="Weights for all pairs of neighbouring labels, for those seen in training, or for pairs "
            "together with features. Default: dense, or features if the template has bigram macros.",
            rich_help_panel=_FEATURES,
            show_default=False,
        ),
    ] = None,
    constraints: Annotated[
        ConstraintsName,
        typer.Option(help="Forbid labellings that break this scheme.", rich_help_panel=_FEATURES),
    ] = ConstraintsName.none,
    loss: Annotated[
        LossName,
        typer.Option(
            help="Training loss: log is a conditional random field, hinge a structured SVM.",
            rich_help_panel=_LEARNING,
        ),
    ] = LossName.log,
    penalty: Penalty = PenaltyName.l2,
    l1_ratio: L1Ratio = 0.5,
    solver: Annotated[
        SolverName | None,
        typer.Option(
            help="Default: chosen by the loss (lbfgs, owlqn with an ℓ1 penalty, bcfw for hinge).",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Train from a store, piece by piece in bounded memory: that of [bold]mercer convert[/bold], or made "
            "from FILE in this folder.",
            rich_help_panel=_RUNNING,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Train on the workers of this Dask scheduler, which see the --store under the same path.",
            rich_help_panel=_RUNNING,
        ),
    ] = None,
) -> None:
    """Train a tagger: a label for every token of a sentence.

    The file holds one token per line, with columns separated by spaces or tabs and the label last; a blank line ends a
    sentence. Ctrl-C stops training and keeps the best weights so far.

    [bold]Examples[/bold]
      mercer train tagger train.conll --dev dev.conll --model np.mercer
      mercer train tagger train.conll.gz --model np.mercer --constraints bio
      mercer train tagger train.conll --model np.mercer --template my.template
      mercer train tagger train.conll --model small.mercer --penalty l1 --C 2
      zcat huge.gz | mercer train tagger - --model m.mercer --hashing --solver sgd
    """
    check_writable(model)
    if dev == "-" == file:
        raise UsageError("FILE and --dev cannot both be standard input")
    from mercer.data.templates import Template, default_template

    if cluster is not None and store is None:
        raise UsageError("--cluster needs --store: a folder that all workers see")
    chosen = None if template is None else Template.load(template)
    if store is not None:
        source, X, y, chosen = _stored(file, store, template, n_bits if hashing else 0, training.quiet)
        held_out = None if dev is None else read_labelled(dev)
    elif file is None:
        raise UsageError("give a FILE to train from, or a --store")
    else:
        source = file
        with terminal.working(f"reading {shown(file)}"):
            X, y = read_labelled(file)
            n_columns = len(X[0][0])
            chosen = chosen or default_template(n_columns)
            _check_template(chosen, template, n_columns, file)
            held_out = None if dev is None else read_labelled(dev, n_columns)
    from mercer.tagging import Tagger

    estimator = Tagger(
        loss=loss.value,
        solver=solver.value if solver is not None else "auto",
        penalty=None if penalty is PenaltyName.none else penalty.value,
        l1_ratio=l1_ratio,
        features="hashing" if hashing else "vocabulary",
        n_bits=n_bits,
        template=chosen,
        transitions=_transitions(transitions, chosen),
        constraints=_constraints(constraints, y, source),
        **training.parameters(),
    )
    with terminal.warnings_at_the_end(), _on(cluster):
        if store is None:
            estimator.fit(X, y, dev=_known_only(held_out, y), checkpoint=training.checkpoint)
        else:
            given = X if cluster is None else X.distributed()
            estimator.fit(given, None, dev=_known_only(held_out, y), checkpoint=training.checkpoint)
    import mercer

    mercer.save(estimator, model)
    if estimator.interrupted_:
        terminal.complain("interrupted", f"the model trained so far is saved to {model}")
    if not training.quiet:
        _summarise(estimator, X, y, training.jobs, None if dev is None or held_out is None else (dev, *held_out), model)
    if estimator.interrupted_:
        raise Stopped


def _stored(
    file: str | None, folder: str, template: str | None, n_bits: int, quiet: bool
) -> tuple[str, Any, list[Any], Template]:
    """The name of a store in messages, the store, the labels of its sentences, and its template."""
    from mercer.cli.convert import write_store
    from mercer.data.store import Store

    store = Store(folder)
    if len(store):
        if file is not None:
            raise UsageError(f"{folder} is a store already", "leave FILE out to train from it, or name another folder")
    elif file is None:
        raise UsageError(f"{folder}: there is no store here", "give a FILE to make one of, or use mercer convert")
    else:
        store = write_store(file, folder, template=template, n_bits=n_bits, quiet=quiet)
    if store.template is None:
        raise UsageError(f"{folder}: this store does not hold sentences of a column file; it holds {store.kind}")
    labels = [labels for part in store for labels in part.y]
    return folder, store, labels, store.template


@contextlib.contextmanager
def _on(address: str | None) -> Iterator[None]:
    """Connect to a scheduler while the block lasts."""
    if address is None:
        yield
        return
    import mercer.learning._dask as _dask

    try:
        client = _dask.connect(address)
    except _dask.ClusterError as error:
        raise UsageError(str(error), "start one with: dask scheduler") from None
    with client:
        yield


def _check_template(template: Template, name: str | None, n_columns: int, file: str) -> None:
    if template.n_columns > n_columns:
        raise UsageError(
            f"the template {name!r} uses column {template.n_columns - 1}, but {shown(file)} has "
            f"{terminal.count(n_columns, 'column')} before the label (columns count from 0)"
        )


def _transitions(name: TransitionsName | None, template: Template) -> str:
    if template.edge_patterns:
        if name not in (None, TransitionsName.features):
            raise UsageError(
                "the template has bigram macros (lines B with %x), which need --transitions features",
                "leave --transitions out, or the macros out of the template's B lines",
            )
        return "features"
    return "dense" if name is None else name.value


def _constraints(name: ConstraintsName, y: list[list[str]], file: str) -> Constraints | None:
    if name is ConstraintsName.none:
        return None
    from mercer.tagging import Constraints

    make = Constraints.bio if name is ConstraintsName.bio else Constraints.bilou
    constraints = make(sorted({label for labels in y for label in labels}))
    for number, labels in enumerate(y, 1):
        if not constraints.allows(labels):
            raise UsageError(
                f"{shown(file)}: the labels of sentence {number} break the {name.value} scheme: "
                f"{_excerpt(labels, constraints)}",
                "leave --constraints out, or repair the labels",
            )
    return constraints


def _excerpt(labels: list[str], constraints: Constraints) -> str:
    """The place where a labelling breaks a rule."""
    if labels[0] in constraints.forbidden_start:
        return f"it begins with {labels[0]}"
    for a, b in pairwise(labels):
        if (a, b) in constraints.forbidden:
            return f"{b} after {a}"
    return f"it ends with {labels[-1]}"


def _known_only(held_out: Labelled | None, y: list[list[str]]) -> tuple[Any, Any] | None:
    """The held-out data with None for labels that training does not have: they cannot be learnt."""
    if held_out is None:
        return None
    known = {label for labels in y for label in labels}
    return held_out[0], [[label if label in known else None for label in labels] for labels in held_out[1]]


def _how_it_ended(estimator: Tagger) -> str:
    scores = estimator.history_.get("dev_score", [])
    best = max(range(len(scores)), key=scores.__getitem__, default=0)
    if scores and len(scores) - 1 - best >= estimator.patience:
        return f" (the best on the held-out sentences is {best + 1:,})"
    return " (converged)" if estimator.converged_ else ""


def _summarise(
    estimator: Tagger,
    X: Any,
    y: list[list[str]],
    jobs: int,
    held_out: tuple[str, Any, list[list[str]]] | None,
    model: str,
) -> None:
    terminal.heading("tagger")
    seconds = estimator.history_.get("seconds", [])
    state = _how_it_ended(estimator)
    rows: list[tuple[str, object]] = [
        ("sentences", f"{len(y):,}"),
        ("tokens", f"{sum(map(len, y)):,}"),
        ("labels", f"{len(estimator.classes_):,}"),
        ("features", f"{estimator.n_features_in_:,}"),
        ("weights", f"{len(estimator.coef_):,}"),
        ("iterations", f"{estimator.n_iter_:,}{state}"),
        ("seconds", f"{seconds[-1] if seconds else 0.0:.2f}"),
    ]
    if held_out is not None:
        from mercer.metrics import is_span_labelling, span_f1, token_accuracy

        name, X_dev, y_dev = held_out
        estimator.n_jobs = jobs
        predicted = estimator.predict(X_dev)
        rows.append((f"accuracy on {shown(name)}", f"{token_accuracy(y_dev, predicted):.4f}"))
        if is_span_labelling(y_dev) and is_span_labelling(estimator.classes_.tolist()):
            rows.append((f"span F1 on {shown(name)}", f"{span_f1(y_dev, predicted):.4f}"))
    rows.append(("model", f"{model} ({os.path.getsize(model) / 1e6:,.1f} MB)"))
    terminal.figures(rows)


app.command("auto", help=terminal.prose(auto.train_auto))(auto.train_auto)
app.command("tagger", help=terminal.prose(tagger))(tagger)
app.command("segmenter", help=terminal.prose(segmenter.train_segmenter))(segmenter.train_segmenter)
app.command("classifier", help=terminal.prose(classifier.train_classifier))(classifier.train_classifier)
app.command("field", help=terminal.prose(field.train_field))(field.train_field)
app.command("multilabel", help=terminal.prose(multilabel.train_multilabel))(multilabel.train_multilabel)
app.command("proportions", help=terminal.prose(proportions.train_proportions))(proportions.train_proportions)
app.command("regressor", help=terminal.prose(classifier.train_regressor))(classifier.train_regressor)
