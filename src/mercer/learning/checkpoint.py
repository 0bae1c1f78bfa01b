"""Checkpoints: save a training run every few seconds, and resume it after the process was killed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mercer._state.container import read_file, write_file
from mercer._state.lock import FileLock
from mercer._validation import check_count, check_not_negative
from mercer._warnings import warn_caller
from mercer.exceptions import ModelFileError

KIND = "checkpoint"
_MOST = 10.0  # times as long as a write takes is the least time between two


def fingerprint(settings: Any, arrays: Iterable[np.ndarray | None]) -> str:
    """Return a hash of data and settings; only a run with the same hash may resume from a checkpoint.

    ``settings`` must have a complete ``repr``; None among the arrays is skipped.
    """
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def digest_of(values: Iterable[Any]) -> str:
    """Return a digest of strings, bytes and other plain values, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        if isinstance(value, str):
            kind, data = b"s", value.encode("utf-8", "surrogatepass")
        elif isinstance(value, bytes):
            kind, data = b"b", value
        else:
            kind, data = b"r", repr(value).encode("utf-8", "surrogatepass")
        digest.update(kind + len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def arrays_of(X: Any) -> list[np.ndarray]:
    """Return the arrays of a dense or sparse (CSR) matrix, for :func:`fingerprint`."""
    return [X.data, X.indices, X.indptr, np.array(X.shape)] if issparse(X) else [X, np.array(X.shape)]


def array_of(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of one array of a state: finite numbers of this shape."""
    array = np.array(arrays[name], dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, found shape {array.shape}")
    return array


def count_of(state: dict[str, Any], name: str) -> int:
    """Return one count of a state."""
    return check_count(name, state[name], 0)


def number_of(state: dict[str, Any], name: str) -> float:
    """Return one finite number of a state."""
    if not np.isfinite(number := float(state[name])):
        raise ValueError(f"{name} must be a finite number, found {number}")
    return number


def array_like(arrays: dict[str, np.ndarray], name: str, like: np.ndarray) -> np.ndarray:
    """Return a copy of one array of a state: finite numbers of the shape and type of another array."""
    array = np.array(arrays[name])
    if array.shape != like.shape or array.dtype != like.dtype or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, {like.dtype} and of shape {like.shape}")
    return array


def generator_to_state(random: np.random.Generator) -> list[Any]:
    """Return the state of a generator (PCG64) as plain data."""
    inner: Any = random.bit_generator.state
    return [str(inner["state"][name]) for name in ("state", "inc")] + [inner["has_uint32"], inner["uinteger"]]


def generator_from_state(random: np.random.Generator, state: list[Any]) -> None:
    """Return the generator of a state: the inverse of :func:`generator_to_state`."""
    inner: Any = dict(random.bit_generator.state)
    number, step, inner["has_uint32"], inner["uinteger"] = map(int, state)
    inner["state"] = {"state": number, "inc": step}
    random.bit_generator.state = inner


class Checkpoint:
    """A file with the state of a training run.

    A running fit holds the lock ``PATH.lock``; a second run on the same path raises an error. If a checkpoint cannot be
    written, for example on a full disk, a warning is raised. Training continues, and the last checkpoint stays.

    Parameters
    ----------
    path : str or path
        Written atomically; removed when training ends.
    every : float, default=5.0
        Seconds between two writes; longer if writes are slow, so that training takes most of the time. 0: after every
        iteration.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 5.0) -> None:
        self.path = Path(path)
        self.every = check_not_negative("every", every)
        self._fingerprint = ""
        self._written, self._pause = time.monotonic(), every
        self._lock = FileLock(
            self.path, "another training run{owner} is using this checkpoint; wait for its end or give another path"
        )
        self._warned = False

    def open(self, fingerprint: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the state of an unfinished run with the same data and settings, or None.

        A checkpoint of another run raises an error: it is neither used nor overwritten. So does a checkpoint that
        another run is writing. The caller must call :meth:`close` or :meth:`release` at the end.
        """
        self._fingerprint = fingerprint
        self._written = time.monotonic()
        self._warned = False
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"{self.path.parent}: no such folder for the checkpoint")
        self._lock.acquire()
        try:
            if not self.path.exists():
                return None
            file = read_file(self.path, KIND)
            if file.meta.get("fingerprint") != fingerprint:
                raise ModelFileError(
                    f"{self.path}: the checkpoint belongs to a training run with other data or settings "
                    "(held-out data, random_state and starting weights are among them); remove it or give another path"
                )
            if not isinstance(file.meta.get("state"), dict):
                raise ModelFileError(f"{self.path}: the checkpoint holds no state of a training run")
            return file.meta["state"], dict(file.arrays)
        except BaseException:
            self._lock.release()
            raise

    def due(self) -> bool:
        """Return whether it is time to write again."""
        return time.monotonic() - self._written >= self._pause

    def write(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write the state now; on failure, warn once and keep the last checkpoint."""
        begin = time.monotonic()
        try:
            write_file(self.path, KIND, {"fingerprint": self._fingerprint, "state": state}, arrays)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warn_caller(
                    f"training continues without a new checkpoint: {error.filename or self.path}: {error.strerror}",
                    RuntimeWarning,
                )
        self._written = time.monotonic()
        if self.every:
            self._pause = max(self.every, _MOST * (self._written - begin))

    def release(self) -> None:
        """Release the path for another run; the file stays."""
        self._lock.release()

    def close(self) -> None:
        """Remove the file at the end of the run."""
        self.path.unlink(missing_ok=True)
        self.release()
