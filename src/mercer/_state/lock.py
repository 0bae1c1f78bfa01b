"""A lock file next to a file or folder, so that only one process writes at a time."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import IO

from mercer._state.container import fcntl
from mercer.exceptions import ModelFileError

__all__ = ["FileLock"]

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class FileLock:
    """``PATH.lock``, held by one process at a time. The operating system releases it when the process ends.

    Parameters
    ----------
    path : Path
        The file or folder that only one process may use.
    busy : str
        Error message if another process holds the lock; ``{owner}`` is its process ID.
    """

    def __init__(self, path: Path, busy: str) -> None:
        self.owned, self.busy, self.path = path, busy, path.with_name(f"{path.name}.lock")
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        ModelFileError
            If another process holds it.
        """
        if fcntl is None or self._file is not None:
            return
        while True:
            try:
                file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115
            except OSError as error:
                if error.errno not in _NO_SPACE:
                    raise
                return  # what cannot be written needs no lock
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Whoever let go of the lock has removed the file, perhaps after we opened it.
                if not self._is_current(file):
                    file.close()
                    continue
            except BlockingIOError:
                file.seek(0)
                owner = file.read(40).strip()
                file.close()
                owner = f" (process {owner})" if owner.isdecimal() else ""
                raise ModelFileError(f"{self.owned}: {self.busy.format(owner=owner)}") from None
            except OSError:  # a file system without locks
                file.close()
                return
            with contextlib.suppress(OSError):
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
            self._file = file
            return

    def _is_current(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the number of the process, on a full disk
                self._file.close()
            self._file = None
