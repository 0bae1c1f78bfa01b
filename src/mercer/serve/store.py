"""Models by name: loaded, checked and warmed up; replaced atomically when their files are replaced.

A new model file is loaded while the old model keeps running. It replaces the old model only if the file is complete,
its kind is served, and the model predicts an example. Running requests keep the model they started with. Otherwise the
error is reported, and the old model stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer._state.container import checksum_of
from mercer._state.registry import load
from mercer.exceptions import ModelFileError
from mercer.serve.errors import RequestError
from mercer.serve.forms import Limits
from mercer.serve.kinds import Answerer, answerer

__all__ = ["Entry", "Loaded", "Snapshots", "Store", "model_names"]

Report = Callable[..., None]


@dataclass(frozen=True, eq=False)
class Loaded:
    """One model, loaded from one version of a file."""

    name: str
    answers: Answerer
    version: str
    """Prefix of the file's checksum: equal models have equal versions."""
    stamp: str
    """The state of the file when it was loaded."""
    sample: Any = None
    """The model's output for the example input; None if it has no example."""


def model_names(given: list[str]) -> dict[str, str]:
    """Return names and paths of models: ``NAME=PATH``, or a path, whose stem is the name."""
    made: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or "/" in name or os.path.exists(word):
            name, path = Path(word).name.partition(".")[0], word
        check_name(name)
        if name in made:
            raise ValueError(f"two models are called {name!r}: rename one of them, as in {name}2={path}")
        made[name] = path
    if not made:
        raise ValueError("no model: give at least one model file")
    return made


def check_name(name: str) -> None:
    """Raise a ValueError for a name that is not allowed in a path."""
    if not name or len(name) > 100 or not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
        raise ValueError(f"{name!r} is not a valid model name: use up to 100 letters, digits, '-', '_' and '.'")


_ATTEMPTS = 20  # to load a file that others replace again and again


class Snapshots:
    """Immutable copies of model files, for processes that map them into memory.

    A copy is named after the state of the file, so every process finds the same copy; the first process creates it. The
    copy is in memory (``/dev/shm``) if there is room.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    @classmethod
    def create(cls, paths: list[str]) -> Snapshots:
        """Create a new folder, in memory if all files fit there twice."""
        needed = 2 * sum(os.path.getsize(path) for path in paths if os.path.exists(path))
        shared = Path("/dev/shm")
        in_memory = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > needed
        return cls(tempfile.mkdtemp(prefix="mercer-serve-", dir=shared if in_memory else None))

    def of(self, name: str, path: str, stamp: str) -> Path:
        """Return the copy of this state of a file."""
        copy = self.folder / f"{name}@{stamp}"
        if not copy.exists():
            handle, made = tempfile.mkstemp(dir=self.folder)
            os.close(handle)
            try:
                shutil.copyfile(path, made)
                os.replace(made, copy)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(made)
                raise
        return copy

    def forget_others(self, name: str, stamp: str) -> None:
        """Remove copies of other states; processes keep the copies that they have mapped."""
        for old in self.folder.glob(f"{name}@*"):
            if old.name != f"{name}@{stamp}":
                with contextlib.suppress(OSError):
                    old.unlink()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def stamp_of(path: str) -> str:
    """Return values that change whenever a file is replaced or written: inode, time and size."""
    status = os.stat(path)
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


class Entry:
    """A model name with the current model and its file."""

    def __init__(self, name: str, path: str | None) -> None:
        self.name, self.path = name, path
        self.current: Loaded | None = None
        self.failed = ""
        """The state of the rejected file."""
        self.problem = ""
        """The reason for the rejection."""


class Store:
    """All models of a server.

    Parameters
    ----------
    models : mapping of names to paths or to fitted models
    report : callable
        Called with an event and details (``report("loaded", model=…)``) when a model is loaded or rejected.
    max_bytes : int, optional
        As in :func:`mercer.load`.
    snapshots : Snapshots, optional
        Memory-map copies of the files, which processes share.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        report: Report = lambda event, **facts: None,
        *,
        max_bytes: int | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.report, self.max_bytes, self.snapshots = report, max_bytes, snapshots
        self._stop = threading.Event()
        self._now = threading.Event()
        self._watcher: threading.Thread | None = None
        for name, model in models.items():
            check_name(name)
            if isinstance(model, (str, os.PathLike)):
                self.entries[name] = Entry(name, os.fspath(model))
            else:
                entry = self.entries[name] = Entry(name, None)
                answers = answerer(model)
                with contextlib.suppress(ModelFileError):  # it is served as it is
                    sample = _warm(answers, name)
                entry.current = Loaded(name, answers, "in-memory", "", sample)

    def load_all(self) -> None:
        """Load every file; raise an error for the first file that cannot be served."""
        for entry in self.entries.values():
            if entry.path is not None:
                new = entry.current = self._loaded_as_it_is(entry)
                self.report("loaded", model=entry.name, version=new.version, kind=new.answers.kind)

    @property
    def ready(self) -> bool:
        """Return whether every model is loaded."""
        return all(entry.current is not None for entry in self.entries.values())

    def get(self, name: str) -> Loaded:
        """Return the model with a name; raise a RequestError if it does not exist."""
        entry = self.entries.get(name)
        if entry is None:
            raise RequestError(404, f"there is no model {name[:100]!r}; the models are {', '.join(self.entries)}")
        if entry.current is None:
            raise RequestError(503, f"the model {name!r} is being loaded", headers=[(b"retry-after", b"1")])
        return entry.current

    def _loaded_as_it_is(self, entry: Entry) -> Loaded:
        """Load a model file that may be replaced during loading; a starting worker must not fail for this reason."""
        assert entry.path is not None
        for _ in range(_ATTEMPTS):
            stamp = stamp_of(entry.path)
            try:
                return self._loaded(entry, stamp)
            except (OSError, ModelFileError):
                if stamp_of(entry.path) == stamp:
                    raise
        raise ModelFileError(f"{entry.path} changed during each of {_ATTEMPTS} attempts to read it")

    def _loaded(self, entry: Entry, stamp: str) -> Loaded:
        assert entry.path is not None
        for attempt in range(_ATTEMPTS):
            path = entry.path if self.snapshots is None else str(self.snapshots.of(entry.name, entry.path, stamp))
            try:
                version = checksum_of(path)[:12]
                model = load(path, max_bytes=self.max_bytes, mapped=self.snapshots is not None)
                break
            except FileNotFoundError:  # a worker that still had an earlier state of the file removed the copy
                if self.snapshots is None or attempt + 1 == _ATTEMPTS:
                    raise
        if stamp_of(entry.path) != stamp:
            raise ModelFileError(f"{entry.path} changed while it was read")
        try:
            answers = answerer(model)
        except ValueError as error:
            raise ModelFileError(f"{entry.path}: {error}") from None
        sample = _warm(answers, entry.path)
        if self.snapshots is not None:
            self.snapshots.forget_others(entry.name, stamp)
        return Loaded(entry.name, answers, version, stamp, sample)

    # ------------------------------------------------------------------ replaced files

    def check(self, entry: Entry) -> bool:
        """Load the file of an entry if it changed; return whether it replaced the old model."""
        if entry.path is None:
            return False
        try:
            stamp = stamp_of(entry.path)
        except OSError:
            if entry.problem != "missing":
                entry.problem = "missing"
                self.report("refused", model=entry.name, reason="the file is missing; the loaded model stays in use")
            return False
        if entry.current is not None and stamp == entry.current.stamp:
            entry.problem = ""
            return False
        if stamp == entry.failed:
            return False
        try:
            new = self._loaded(entry, stamp)
        except Exception as error:  # whatever the file holds: the old model goes on
            entry.failed, entry.problem = stamp, str(error)
            self.report("refused", model=entry.name, reason=str(error))
            return False
        entry.current, entry.failed, entry.problem = new, "", ""
        self.report("replaced", model=entry.name, version=new.version, kind=new.answers.kind)
        return True

    def check_all(self) -> None:
        """Check every file once."""
        for entry in self.entries.values():
            self.check(entry)

    def watch(self, seconds: float) -> None:
        """Check the files at a fixed interval, on a separate thread."""

        def work() -> None:
            while not self._stop.is_set():
                self._now.wait(seconds)
                self._now.clear()
                if not self._stop.is_set():
                    self.check_all()

        self._watcher = threading.Thread(target=work, name="mercer-watch", daemon=True)
        self._watcher.start()

    def look_now(self) -> None:
        """Make the watcher check immediately."""
        self._now.set()

    def close(self) -> None:
        """Stop the watcher."""
        self._stop.set()
        self._now.set()


def _warm(answers: Answerer, path: str) -> Any:
    """Predict an example, so that the first request does not pay for imports and caches; reject a model that fails.

    Returns the output, or None if the example is not a valid input of this model.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            X = answers.form.read(answers.model, answers.example(), Limits())
            return answers.ask(answers.verbs[0], X)
        except (RequestError, ValueError, TypeError):
            return None  # the example is a guess, and the model says that it is none of its inputs
        except Exception as error:
            raise ModelFileError(f"the model in {path} fails on an example: {error}") from error
