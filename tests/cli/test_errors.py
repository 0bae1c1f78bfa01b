"""What a person sees when something is wrong, and where progress is shown."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from mercer.cli import errors, terminal


class Stream(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, watched: bool) -> None:
        super().__init__()
        self.watched = watched

    def isatty(self) -> bool:
        return self.watched


@pytest.mark.parametrize("out", [True, False])
@pytest.mark.parametrize("err", [True, False])
def test_progress_is_for_whoever_sees_standard_error(out: bool, err: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", Stream(out))
    monkeypatch.setattr(sys, "stderr", Stream(err))
    assert terminal.is_watched() is err
    with terminal.working("counting sheep"):
        pass
    assert sys.stdout.getvalue() == ""  # type: ignore[attr-defined]
    assert ("counting sheep" in sys.stderr.getvalue()) is err  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "message", "hinted", "status"),
    [
        (ValueError("C must be positive"), "C must be positive", False, 2),
        (ValueError(), "unexpected ValueError", True, 1),  # of no use to a person: a bug of ours
        (errors.UsageError("no such column", "--label"), "no such column", True, 2),
        (KeyError("x"), "unexpected KeyError: 'x'", True, 1),
        (MemoryError(), "not enough memory", True, 1),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.csv"), "a.csv: no such file", False, 2),
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), "a.csv: permission denied", False, 2),
        (OSError(errno.ENOSPC, "No space left on device", "m"), "m: no space left on device", False, 1),
        (OSError("odd"), "odd", False, 1),
    ],
)
def test_errors_are_described(error: BaseException, message: str, hinted: bool, status: int) -> None:
    said, hint, code = errors.describe(error)
    assert (said, bool(hint), code) == (message, hinted, status)


def test_an_import_that_ctrl_c_spoilt_is_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    error = ImportError("numpy.core.multiarray failed to import")
    error.__cause__ = SystemError("a module raised an exception")
    error.__cause__.__context__ = KeyboardInterrupt()
    assert errors.report(error) == 130
    assert capsys.readouterr().err == "interrupted\n"


COMMAND = os.path.join(os.path.dirname(sys.executable), "mercer")


@pytest.mark.skipif(not os.path.exists(COMMAND), reason="the command is not installed beside this interpreter")
@pytest.mark.parametrize("at", ["numpy", "rich", "typer", "sklearn", "scipy"])
def test_ctrl_c_while_importing_is_one_line_and_130(at: str, tmp_path) -> None:
    """The process sends itself SIGINT when a module is imported for the first time."""
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {at!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Strike())
""")
    (tmp_path / "a.txt").write_text("x\ta b\ny\tc d\n" * 5)
    started = time.monotonic()
    done = subprocess.run(
        [COMMAND, "train", "classifier", str(tmp_path / "a.txt"), "--model", str(tmp_path / "m")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n"), time.monotonic() - started
    assert not (tmp_path / "m").exists()


def test_a_program_that_imports_the_package_keeps_its_own_ctrl_c() -> None:
    code = "import signal, mercer; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.stdout == "True\n"
