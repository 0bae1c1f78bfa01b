"""Locate the files of public data sets: ``data_home``, the environment variable MERCER_DATA, or the cache.

A missing file is downloaded into the cache if its data set has a public origin (`mercer.datasets.origins`), unless
MERCER_OFFLINE is set. If ``data_home`` is given, only that folder is read.
"""

from __future__ import annotations

import os
from pathlib import Path

from mercer._progress import say
from mercer.datasets.origins import ORIGINS, cache_folder, fetch_file

__all__ = ["data_file", "data_folder", "data_home"]


def data_home(home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that contains the data sets, one folder each."""
    chosen = home if home is not None else os.environ.get("MERCER_DATA") or None
    if chosen is None:
        raise FileNotFoundError(
            "the folder of data sets is not set: pass data_home=..., or set the environment variable "
            "MERCER_DATA to a folder with one subfolder per data set (conll2000, conll2002, ...)"
        )
    path = Path(chosen).expanduser()
    if not path.is_dir():
        origin = "data_home" if home is not None else "MERCER_DATA"
        raise FileNotFoundError(f"{origin} is the folder {str(path)!r}, which does not exist")
    return path


def data_file(dataset: str, name: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of one file of a data set, compressed (``name.gz``) or not; download it if it is missing."""
    can_fetch = home is None and name in getattr(ORIGINS.get(dataset), "files", ())
    if can_fetch and not os.environ.get("MERCER_DATA"):
        return _from_cache(dataset, name)
    folder = data_home(home) / dataset
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    if can_fetch:
        return _from_cache(dataset, name)
    raise FileNotFoundError(f"the data set {dataset!r} needs the file {name} or {name}.gz in the folder {folder}")


def data_folder(dataset: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of a data set; download the data set if it is missing."""
    known = home is not None or bool(os.environ.get("MERCER_DATA"))
    if home is None and dataset in ORIGINS and not (known and (data_home() / dataset).is_dir()):
        for name in ORIGINS[dataset].files:
            _from_cache(dataset, name)
        return cache_folder() / dataset
    return data_home(home) / dataset


def _from_cache(dataset: str, name: str) -> Path:
    path = cache_folder() / dataset / name
    if path.is_file():
        return path
    if os.environ.get("MERCER_OFFLINE"):
        data_home()  # says what to do where there is no folder at all
        raise FileNotFoundError(
            f"the data set {dataset!r} needs the file {name} or {name}.gz, which is neither in MERCER_DATA nor in the "
            f"cache {path.parent}, and MERCER_OFFLINE forbids the download"
        )
    say(f"downloading {dataset}/{name} to {path.parent}")
    return fetch_file(dataset, name, cache_folder())
