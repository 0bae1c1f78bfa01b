"""``mercer datasets``: list and download public data sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli import terminal
from mercer.cli.errors import UsageError


def datasets(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Show only these.", show_default=False)
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download them, if they are missing.")] = False,
    folder: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder of downloaded sets. Default: MERCER_CACHE, or the user's cache."),
    ] = None,
) -> None:
    """List the public data sets of the loaders, with their licences; download them.

    Loaders of mercer.datasets look in the folder MERCER_DATA, then in the cache, and download missing files. Every file
    is checked by its SHA-256.

    [bold]Examples[/bold]
      mercer datasets
      mercer datasets sms-spam graphs/MUTAG
      mercer datasets conll2000 --fetch
    """
    from mercer.datasets.origins import ORIGINS, cache_folder
    from mercer.datasets.origins import fetch as download

    unknown = [name for name in names or () if name not in ORIGINS]
    if unknown:
        raise UsageError(f"no data set {unknown[0]!r}", f"there are: {', '.join(ORIGINS)}")
    if fetch and not names:
        raise UsageError("--fetch needs the names of data sets", "mercer datasets lists them")
    home = cache_folder() if folder is None else Path(folder)
    if fetch:
        for name in names or ():
            with terminal.working(f"downloading {name}"):
                place = download(name, folder=home)
            terminal.say(f"{name} is in ", str(place))
            terminal.say(("licence: ", "dim"), ORIGINS[name].licence)
            terminal.say(("cite: ", "dim"), ORIGINS[name].citation)
        return
    if names:
        for name in names:
            _tell(name, home)
        return
    rows = [
        [name, f"{_megabytes(name):.1f}", _place(name, home), ORIGINS[name].licence, ORIGINS[name].title]
        for name in ORIGINS
    ]
    terminal.table(["name", "MB", "here", "licence", "what it is"], rows, "lrlll")


def _tell(name: str, home: Path) -> None:
    from mercer.datasets.checksums import CHECKSUMS
    from mercer.datasets.origins import ORIGINS

    origin = ORIGINS[name]
    terminal.heading(name)
    rows = [("what it is", origin.title), ("licence", origin.licence), ("cite", origin.citation)]
    terminal.figures([*rows, ("here", _place(name, home))])
    for file, urls in origin.files.items():
        terminal.say(f"  {file}  ", (f"{CHECKSUMS[f'{name}/{file}'][1]:,} bytes, {urls[0]}", "dim"))


def _megabytes(name: str) -> float:
    from mercer.datasets.checksums import CHECKSUMS
    from mercer.datasets.origins import ORIGINS

    return sum(CHECKSUMS[f"{name}/{file}"][1] for file in ORIGINS[name].files) / 1e6


def _place(name: str, home: Path) -> str:
    from mercer.datasets.origins import ORIGINS

    given = os.environ.get("MERCER_DATA")
    for place, told in ((Path(given) if given else None, "MERCER_DATA"), (home, "cache")):
        if place is not None and all(_is_there(place / name / file) for file in ORIGINS[name].files):
            return told
    return "no"


def _is_there(path: Path) -> bool:
    return path.is_file() or path.with_name(f"{path.name}.gz").is_file()
