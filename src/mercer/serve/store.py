"""Models by name: loaded, checked and warm; replaced as a whole when their files are.

A model file is loaded beside the running model. Only a file that is whole, of a kind that is served, and whose model
answers an example takes its place; requests that are running keep the model they began with. Anything else is
reported, and the old model stays.
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
    """One model as it was loaded from one version of a file."""

    name: str
    answers: Answerer
    version: str
    """The beginning of the file's checksum: equal models have equal versions."""
    stamp: str
    """Which state of the file it was."""
    sample: Any = None
    """What the model answers to the example of its input; None where it takes no example."""


def model_names(given: list[str]) -> dict[str, str]:
    """Names and paths of models: ``NAME=PATH``, or the path alone, whose stem is the name."""
    made: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or "/" in name or os.path.exists(word):
            name, path = Path(word).name.partition(".")[0], word
        check_name(name)
        if name in made:
            raise ValueError(f"two models are called {name!r}: name one of them, as in {name}2={path}")
        made[name] = path
    if not made:
        raise ValueError("no model: give at least one model file")
    return made


def check_name(name: str) -> None:
    """Raise ValueError for a name that cannot stand in a path."""
    if not name or len(name) > 100 or not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
        raise ValueError(f"{name!r} cannot be the name of a model: letters, digits, '-', '_' and '.' can, up to 100")


_ATTEMPTS = 20  # to load a file that others replace again and again


class Snapshots:
    """Copies of model files that nobody changes, for processes that map them.

    A copy has the name of the state of the file, so every process finds the same one; who comes first makes it. It
    lies in memory (``/dev/shm``) where there is room.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    @classmethod
    def create(cls, paths: list[str]) -> Snapshots:
        """A new folder, in memory if all files fit there twice."""
        needed = 2 * sum(os.path.getsize(path) for path in paths if os.path.exists(path))
        shared = Path("/dev/shm")
        in_memory = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > needed
        return cls(tempfile.mkdtemp(prefix="mercer-serve-", dir=shared if in_memory else None))

    def of(self, name: str, path: str, stamp: str) -> Path:
        """The copy of this state of a file."""
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
        """Remove copies of other states; processes that have them mapped keep them."""
        for old in self.folder.glob(f"{name}@*"):
            if old.name != f"{name}@{stamp}":
                with contextlib.suppress(OSError):
                    old.unlink()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def stamp_of(path: str) -> str:
    """What changes whenever a file is replaced or written: its number, time and size."""
    status = os.stat(path)
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


class Entry:
    """A name: the model that serves now, and the file it comes from."""

    def __init__(self, name: str, path: str | None) -> None:
        self.name, self.path = name, path
        self.current: Loaded | None = None
        self.failed = ""
        """The state of the file that was refused."""
        self.problem = ""
        """Why it was refused."""


class Store:
    """All models of a server.

    Parameters
    ----------
    models : mapping of names to paths or to fitted models
    report : callable
        Called with a word and facts (``report("loaded", model=…)``) when a model is loaded or refused.
    max_bytes : int, optional
        As of :func:`mercer.load`.
    snapshots : Snapshots, optional
        Map copies of the files, which processes share.
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
        """Load every file; raises for the first that cannot be served."""
        for entry in self.entries.values():
            if entry.path is not None:
                new = entry.current = self._loaded_as_it_is(entry)
                self.report("loaded", model=entry.name, version=new.version, kind=new.answers.kind)

    @property
    def ready(self) -> bool:
        """Whether every model is loaded."""
        return all(entry.current is not None for entry in self.entries.values())

    def get(self, name: str) -> Loaded:
        """The model that serves a name; raises RequestError for one that there is not."""
        entry = self.entries.get(name)
        if entry is None:
            raise RequestError(404, f"there is no model {name[:100]!r}; the models are {', '.join(self.entries)}")
        if entry.current is None:
            raise RequestError(503, f"the model {name!r} is being loaded", headers=[(b"retry-after", b"1")])
        return entry.current

    def _loaded_as_it_is(self, entry: Entry) -> Loaded:
        """The model of a file that may be replaced meanwhile: a worker that starts must not end for that."""
        assert entry.path is not None
        for _ in range(_ATTEMPTS):
            stamp = stamp_of(entry.path)
            try:
                return self._loaded(entry, stamp)
            except (OSError, ModelFileError):
                if stamp_of(entry.path) == stamp:
                    raise
        raise ModelFileError(f"{entry.path} changed each of {_ATTEMPTS} times while it was read")

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
        """Load the file of an entry if it changed; whether it took the place of the old model."""
        if entry.path is None:
            return False
        try:
            stamp = stamp_of(entry.path)
        except OSError:
            if entry.problem != "missing":
                entry.problem = "missing"
                self.report("refused", model=entry.name, reason="the file is missing; the loaded model goes on")
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
        """Look at every file once."""
        for entry in self.entries.values():
            self.check(entry)

    def watch(self, seconds: float) -> None:
        """Look at the files every so many seconds, on a thread of its own."""

        def work() -> None:
            while not self._stop.is_set():
                self._now.wait(seconds)
                self._now.clear()
                if not self._stop.is_set():
                    self.check_all()

        self._watcher = threading.Thread(target=work, name="mercer-watch", daemon=True)
        self._watcher.start()

    def look_now(self) -> None:
        """Let the watcher look at once."""
        self._now.set()

    def close(self) -> None:
        """End the watcher."""
        self._stop.set()
        self._now.set()


def _warm(answers: Answerer, path: str) -> Any:
    """Ask an example, so that the first caller does not pay for imports and caches; a model that fails is refused.

    Returns what the model answers, or None where the example is no input of this model.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            X = answers.form.read(answers.model, answers.example(), Limits())
            return answers.ask(answers.verbs[0], X)
        except (RequestError, ValueError, TypeError):
            return None  # the example is a guess, and the model says that it is none of its inputs
        except Exception as error:
            raise ModelFileError(f"{path} holds a model that fails on an example: {error}") from error
