"""The ``mercer`` command: its sub-commands, its common options, and its exit status.

This module imports no large package. A command imports numpy, scikit-learn and the estimators when it runs, so that
``mercer --help`` and shell completion respond immediately.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mercer.cli import (
    convert,
    datasets,
    demo,
    doctor,
    errors,
    evaluate,
    inspect,
    predict,
    registration,
    serve,
    terminal,
    train,
    tune,
)


class _InOrder(TyperGroup):
    """Lists commands in the order in which a person meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [
            "demo", "train", "tune", "predict", "evaluate", "inspect", "serve", "register", "convert", "datasets",
            "doctor",
        ]  # fmt: skip


app = typer.Typer(
    name="mercer",
    cls=_InOrder,
    help="""Learning with structure: train, apply and look into models of sequences, texts and records.

    [bold]A first look[/bold]
      mercer demo --output demo.html

    [bold]Any file[/bold] (looks at it, trains, holds rows out, writes model and page)
      mercer train auto adult.data.gz

    [bold]From a column file to labels[/bold] (a token a line, its label last)
      mercer train tagger train.conll --dev dev.conll --model np.mercer
      mercer evaluate np.mercer test.conll
      mercer inspect np.mercer --html np.html
      cat text.conll | mercer predict np.mercer - > labelled.conll

    [bold]From texts to paragraphs[/bold] (blank lines between them)
      mercer train segmenter chapter*.txt --model paragraphs.mercer
      mercer predict paragraphs.mercer wall-of-text.txt

    [bold]From a file of examples to classes[/bold] (text, csv, json lines, svmlight, vw; of any size)
      mercer train classifier mail.txt --model spam.mercer
      mercer evaluate spam.mercer held-out.txt
      mercer predict spam.mercer new.txt --proba

    [bold]From the shares of classes in groups to the class of a row[/bold] (csv)
      mercer train proportions people.csv --bag district --proportions votes.csv --model votes.mercer
      mercer predict votes.mercer people.csv

    [bold]Models over HTTP[/bold] (with a page to try them)
      mercer serve np.mercer spam.mercer --port 8000

    [bold]From two point clouds to the motion between them[/bold] (ply, off, obj, pcd, xyz, csv, npy)
      mercer register scan1.ply scan2.ply --output aligned.ply --html report.html
    """,
    epilog="Exit status: 0 done, 1 a failure, 2 a mistake in the call or in a file, 130 stopped by Ctrl-C.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", help=terminal.prose(demo.demo))(demo.demo)
app.add_typer(train.app, name="train")
app.command("tune", help=terminal.prose(tune.tune))(tune.tune)
app.command("predict", help=terminal.prose(predict.predict))(predict.predict)
app.command("evaluate", help=terminal.prose(evaluate.evaluate))(evaluate.evaluate)
app.command("inspect", help=terminal.prose(inspect.inspect))(inspect.inspect)
app.command("serve", help=terminal.prose(serve.serve))(serve.serve)
app.command("register", help=terminal.prose(registration.register))(registration.register)
app.command("convert", help=terminal.prose(convert.convert))(convert.convert)
app.command("datasets", help=terminal.prose(datasets.datasets))(datasets.datasets)
app.command("doctor", help=terminal.prose(doctor.doctor))(doctor.doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        from mercer import __version__

        print(f"mercer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            metavar="N",
            min=1,
            help="Maximum memory of a loaded model. Default: 256 MiB, or 16 times the file if that is more.",
            show_default=False,
        ),
    ] = None,
) -> None:
    errors.settings.debug, errors.settings.max_bytes = debug, max_bytes


@functools.cache
def _command() -> Any:
    """The tree of commands, built once. Flags take no value, and their help names no type of one."""

    def tidy(command: Any) -> None:
        for param in command.params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        for below in getattr(command, "commands", {}).values():
            tidy(below)

    command = typer.main.get_command(app)
    tidy(command)
    return command


def _options_of(command: Any, args: Sequence[str]) -> frozenset[str]:
    """The options of the command that the arguments call, so that messages can name them."""
    options: set[str] = set()
    for word in ("", *args):
        command = command.commands[word] if word in getattr(command, "commands", ()) else command
        options |= {name for p in command.params for name in p.opts if name.startswith("--")}
    return frozenset(options)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit status: 0 done, 1 a failure, 2 a mistake in the call or in a file, 130 stopped by Ctrl-C.
    """
    errors.settings.debug, errors.settings.max_bytes = False, None
    command = _command()
    errors.settings.options = _options_of(command, sys.argv[1:] if args is None else args)
    terminal.make_streams_robust()
    with warnings.catch_warnings():
        warnings.showwarning = errors.show_warning
        try:
            status = command(args=None if args is None else list(args), prog_name="mercer", standalone_mode=False)
            sys.stdout.flush()
        except BaseException as error:
            return errors.report(error)
    if status == errors.INTERRUPTED:
        terminal.complain("interrupted")
    return status if isinstance(status, int) else 0
