"""Error messages of the command line: ``error: …``, an optional ``hint: …``, and an exit status.

2   a mistake in the call or in a file: a wrong option, a malformed file, a missing path
1   any other failure: a full disk, too little memory, a bug in Mercer
130 Ctrl-C
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import Any

from mercer import _command
from mercer.cli import terminal

INTERRUPTED = _command.INTERRUPTED


class Stopped(Exception):
    """Ctrl-C ended the work; the results so far are saved and reported."""


class UsageError(ValueError):
    """An error that the user can correct, with an optional hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Settings:
    debug = False
    max_bytes: int | None = None
    options: frozenset[str] = frozenset()  # of the command that runs


settings = _Settings()


_SPELLED = {"header=False": "--no-header", "zero_based=True": "--zero-based", "lowercase=False": "--keep-case"}
_ROLE = re.compile(r"\broles=\{'([^']*)': '(\w+)'\}")
_PAIR = re.compile(r"\b([a-z][a-z_0-9]*)=('[^']*'|[\w.+-]+)?(?=[\s;,.:)]|$)")
_SUBJECT = re.compile(r"(^|: )([A-Za-z][a-z_0-9]*)(?= (?:must|means nothing|needs))")
_ADVICE = re.compile(r"\b(?:raise|lower|increase|decrease) \w+(?: or \w+)*")


def as_options(message: str) -> str:
    """Return a message with Python arguments replaced by the options of the running command."""
    options = settings.options
    for python, option in _SPELLED.items():
        if option in options:
            message = message.replace(python, option)

    def option_of(name: str) -> str | None:
        option = "--" + {"n_jobs": "jobs"}.get(name, name.replace("_", "-"))
        return option if option in options else None

    def pair(match: re.Match[str]) -> str:
        option, value = option_of(match.group(1)), match.group(2)
        return match.group() if option is None else option if not value else f"{option} {_unquoted(value)}"

    def subject(match: re.Match[str]) -> str:
        return match.group(1) + (option_of(match.group(2)) or match.group(2))

    def advice(match: re.Match[str]) -> str:
        return " ".join(option_of(word) or word for word in match.group().split(" "))

    message = _ADVICE.sub(advice, message)
    message = _ROLE.sub(lambda m: f"--roles {m.group(1)}={m.group(2)}" if "--roles" in options else m.group(), message)
    return _SUBJECT.sub(subject, _PAIR.sub(pair, message))


def _unquoted(value: str) -> str:
    inner = value.strip("'")
    return value if " " in inner else inner


def show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Print a warning as one line, without its location in the code."""
    terminal.complain("warning", as_options(" ".join(str(message).split())))


def report(error: BaseException) -> int:
    """Print an error; return the exit status."""
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        _forget_stdout()  # whoever read our output, such as head, had enough
        return 0
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, Stopped):
        return INTERRUPTED
    if _was_interrupted(error):
        terminal.complain("interrupted")
        return INTERRUPTED
    if settings.debug:
        traceback.print_exception(error)
    if hasattr(error, "format_message"):
        return _report_usage(error)
    message, hint, status = describe(error)
    terminal.complain("error", as_options(message))
    if hint:
        terminal.complain("hint", as_options(hint))
    return status


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: modules that are interrupted while they are imported raise others from it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
            return True
        error = error.__cause__ or error.__context__
    return False


def describe(error: BaseException) -> tuple[str, str, int]:
    """Return message, hint and exit status of an error."""
    hint = getattr(error, "hint", "")
    if isinstance(error, OSError):
        mistakes = (
            FileNotFoundError,
            PermissionError,
            IsADirectoryError,
            NotADirectoryError,
            FileExistsError,
        )
        return _describe_os_error(error), hint, 2 if isinstance(error, mistakes) else 1
    if isinstance(error, ValueError) and str(error):
        return str(error), hint, 2
    if isinstance(error, MemoryError):
        return "not enough memory", "a smaller model: --hashing with fewer --n-bits, or a smaller template", 1
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"unexpected {what}", "mercer --debug … shows where it comes from; please report it", 1


def _describe_os_error(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return _lower_first(error.strerror or str(error))
    return f"{os.fsdecode(error.filename)}: {_lower_first(error.strerror)}"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _report_usage(error: Any) -> int:
    """An option or argument that the command does not understand."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    message = error.format_message().strip().rstrip(".").replace(": Value error, ", ": ")
    terminal.complain("error", _lower_first(message))
    if context is not None:
        terminal.complain("hint", f"{context.command_path} --help lists what is possible")
    return int(error.exit_code)


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not stumble over it when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.__stdout__ or sys.stdout).fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
