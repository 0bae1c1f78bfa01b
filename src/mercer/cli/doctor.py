"""``mercer doctor``: show the installation and the compiled core, and check that they work."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from mercer.cli import terminal


def doctor() -> None:
    """Show installed packages, the instruction set, the number of threads, and the folders of data sets.

    Trains and applies a small model to check the installation. Exit status 1 means that a required part is missing or
    does not work. Paste the output into a bug report.

    [bold]Example[/bold]
      mercer doctor
    """
    from mercer._versions import extras, system_report
    from mercer.datasets.origins import cache_folder

    for heading, values in system_report().items():
        if heading != "extras":
            terminal.heading(heading)
            terminal.figures(values.items())
    terminal.heading("extras")
    for extra, packages in extras().items():
        lacking = [package for package, version in packages.items() if version is None]
        told = f'missing {", ".join(lacking)}: pip install "mercer[{extra}]"' if lacking else "installed"
        terminal.say(f"  {extra:12}", told)
    terminal.heading("data sets")
    given = os.environ.get("MERCER_DATA")
    unreadable = given is not None and not Path(given).is_dir()
    terminal.figures([("MERCER_DATA", given or "not set"), ("cache", cache_folder())])
    problems = [f"MERCER_DATA is not a folder: {given}"] if unreadable else []
    missing = [name for name, version in system_report()["packages"].items() if version == "missing"]
    problems += [f"{name} is not installed" for name in missing] or _check()
    for problem in problems:
        terminal.complain("error", problem)
    if problems:
        raise typer.Exit(1)
    terminal.say(("all checks passed", "bold"))


def _check() -> list[str]:
    """Train, save, load and apply a tagger; what fails is told."""
    import tempfile

    import mercer

    X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    y = [["DET", "NOUN", "VERB"]] * 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "check.mercer"
            mercer.save(mercer.Tagger(C=10.0).fit(X, y), path)
            right = mercer.load(path).predict(X) == y
    except Exception as error:
        return [f"a tagger could not be trained, saved and loaded: {type(error).__name__}: {error}"]
    return [] if right else ["a tagger does not reproduce its training data"]
