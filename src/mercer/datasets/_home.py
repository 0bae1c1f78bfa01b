"""Where the public data sets lie: the argument ``data_home``, else the environment variable MERCER_DATA."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_file", "data_home"]


def data_home(home: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds the data sets, one folder each."""
    chosen = home if home is not None else os.environ.get("MERCER_DATA") or None
    if chosen is None:
        raise FileNotFoundError(
            "no folder of data sets is known: pass data_home=..., or set the environment variable "
            "MERCER_DATA to a folder that holds one folder a data set (conll2000, conll2002, ...)"
        )
    path = Path(chosen).expanduser()
    if not path.is_dir():
        origin = "data_home" if home is not None else "MERCER_DATA"
        raise FileNotFoundError(f"{origin} names the folder {str(path)!r}, which does not exist")
    return path


def data_file(dataset: str, name: str, home: str | os.PathLike[str] | None = None) -> Path:
    """The path of one file of a data set, packed (``name.gz``) or not."""
    folder = data_home(home) / dataset
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"the data set {dataset!r} needs the file {name} or {name}.gz in the folder {folder}")
