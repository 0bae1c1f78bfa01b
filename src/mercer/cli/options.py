"""Groups of options shared by several commands: one class per group, which also evaluates them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from mercer.cli import terminal
from mercer.cli.errors import UsageError

if TYPE_CHECKING:
    from mercer.online.formats import FileFormat

__all__ = [
    "FileOptions",
    "FormatName",
    "L1Ratio",
    "Limit",
    "OnError",
    "OnErrorName",
    "Penalty",
    "PenaltyName",
    "Quiet",
    "TableOptions",
    "TrainingOptions",
    "grouped",
]

_ROLES = ("number", "category", "text", "date", "id", "label", "ignore")
_READING = "Reading"
_LEARNING = "Learning"
_RUNNING = "Running"


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Allow a command to take groups of options.

    A parameter whose type is a dataclass stands for the fields of that class. Each field is an option of the command
    line, and the command is called with one object of the class.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if hasattr(hint, "__dataclass_fields__")}
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            flat.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            flat.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]
                )
            )

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    del call.__wrapped__
    return call


# ------------------------------------------------------------------------------------------------ reading a file


# Spelled out here, not taken from the estimator: the help must not import it. A test compares the names.
class FormatName(StrEnum):
    """Formats of files of examples."""

    text = "text"
    vw = "vw"
    svmlight = "svmlight"
    csv = "csv"
    jsonl = "jsonl"
    json = "json"
    parquet = "parquet"
    arrow = "arrow"
    folder = "folder"


class OnErrorName(StrEnum):
    """Treatment of malformed lines."""

    stop = "raise"
    skip = "skip"


Format = Annotated[
    FormatName | None,
    typer.Option(
        "--format",
        help="What a line is: [bold]text[/bold] a label, a tab and a text; [bold]vw[/bold] Vowpal Wabbit's; "
        "[bold]svmlight[/bold]; [bold]csv[/bold]; [bold]jsonl[/bold] an object; or what the file is. Default: what it "
        "looks like.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="Named columns: the field with the label, a.b inside a. Default: label, target, class or y, or the first "
        "or last column if only one of them has few different values. text: first or last.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--roles",
        metavar="FIELD=ROLE",
        help="What a column is: number, category, text, date, label, id or ignore; may be repeated, also a=text,b=id. "
        "Default: what it looks like.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Character encoding, such as latin-1. Default: UTF-8, or the byte order mark of the file.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]


class PenaltyName(StrEnum):
    """Names of penalties."""

    l2 = "l2"
    l1 = "l1"
    elasticnet = "elasticnet"
    none = "none"


Penalty = Annotated[
    PenaltyName, typer.Option(help="Penalty on the weights; l1 makes many exactly 0.", rich_help_panel=_LEARNING)
]
L1Ratio = Annotated[
    float,
    typer.Option("--l1-ratio", metavar="X", help="Share of ℓ1 in elasticnet, 0 to 1.", rich_help_panel=_LEARNING),
]


@dataclass
class TableOptions:
    """Format of a file of examples; everything else is detected."""

    format: Format = None
    label: Label = None
    roles: Roles = None
    encoding: Encoding = None

    def file_format(self) -> FileFormat:
        """Return the options for `fit_file` and similar methods."""
        from mercer.online.formats import FileFormat

        return FileFormat(
            None if self.format is None else self.format.value,
            label=self.label,
            roles=_given_roles(self.roles),
            encoding=self.encoding,
        )


Text = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        help="Named columns: a field with text; may be repeated. Default: text, and columns of several words whose "
        "values mostly differ.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="FIELD",
        help="Named columns: a field that is a feature itself (a number, a date or a category); may be repeated; rest "
        "for all others. Default: all others that do not look like ids.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        help="A column whose numbers are names, such as postcodes; may be repeated.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="C",
        help="csv: separator of columns. text: separator of label and text. Default: the one that splits all lines "
        "consistently.",
        rich_help_panel=_READING,
        show_default=False,
    ),
]
Header = Annotated[
    bool,
    typer.Option(
        "--no-header", help="csv: the first line is not a header; columns are 0, 1, …", rich_help_panel=_READING
    ),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="svmlight: columns are counted from 0.", rich_help_panel=_READING)
]
OnError = Annotated[
    OnErrorName,
    typer.Option(
        "--on-error",
        help="Malformed lines: stop at the first one (raise), or skip and count them.",
        rich_help_panel=_READING,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Maximum number of examples to read.", rich_help_panel=_READING, show_default=False
    ),
]


@dataclass
class FileOptions(TableOptions):
    """Format of a file of examples."""

    text: Text = None
    columns: Columns = None
    categorical: Categorical = None
    separator: Separator = None
    no_header: Header = False
    zero_based: ZeroBased = False

    def file_format(self) -> FileFormat:
        """Return the options for `fit_file` and similar methods."""
        from dataclasses import replace

        return replace(
            super().file_format(),
            text=self.text or None,
            columns=("rest" if self.columns == ["rest"] else self.columns) or None,
            categorical=self.categorical or None,
            separator="\t" if self.separator in ("\\t", "tab") else self.separator,
            header=False if self.no_header else None,
            zero_based=True if self.zero_based else None,
        )

    @property
    def given(self) -> bool:
        """Return whether any option was given."""
        return self != type(self)()


def _given_roles(roles: list[str] | None) -> dict[str, str] | None:
    """``a=text`` and ``b=id,c=date`` as a dict."""
    roles_of = {}
    for pair in (pair for given in roles or () for pair in given.split(",")):
        name, equals, role = pair.rpartition("=")
        if not equals or not name or role not in _ROLES:
            raise UsageError(f"--roles must be FIELD=ROLE, got {pair!r}", f"the roles are {', '.join(_ROLES)}")
        roles_of[name] = role
    return roles_of or None


# ------------------------------------------------------------------------------------------------ training

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.", rich_help_panel=_RUNNING)]


@dataclass
class TrainingOptions:
    """Training options of all structured estimators."""

    c: Annotated[
        float | None,
        typer.Option(
            "--C",
            metavar="X",
            help="Weight of the loss against the penalty: smaller values regularise more. Default: 1 for likelihoods, "
            "by the norm of the features for margins.",
            rich_help_panel=_LEARNING,
            show_default=False,
        ),
    ] = None
    max_iter: Annotated[
        int | None,
        typer.Option(
            "--max-iter",
            metavar="N",
            help="Maximum number of iterations. Default: that of the solver.",
            rich_help_panel=_LEARNING,
        ),
    ] = None
    tol: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Tolerance at which to stop. Default: that of the solver.", rich_help_panel=_LEARNING
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of solvers that draw at random.", rich_help_panel=_LEARNING)
    ] = 0
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Save the state of training here every few seconds; after a crash the same command resumes from it.",
            rich_help_panel=_RUNNING,
        ),
    ] = None
    jobs: Annotated[
        int,
        typer.Option(metavar="N", help="Threads; -1 for all cores. The result is the same.", rich_help_panel=_RUNNING),
    ] = -1
    quiet: Quiet = False

    def parameters(self) -> dict[str, Any]:
        """Return the given parameters of an estimator."""
        return {
            "C": "auto" if self.c is None else self.c, "max_iter": self.max_iter, "tol": self.tol,
            "n_jobs": self.jobs, "random_state": self.seed, "verbose": int(terminal.is_watched() and not self.quiet),
        }  # fmt: skip
