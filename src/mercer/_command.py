"""Ctrl-C while the ``mercer`` command is still importing: one line and status 130, not a traceback from somewhere.

Importing takes a large part of a second, and an exception there would reach nobody who can handle it. So the first
thing that the package does in a process of that command is to let SIGINT end it. `mercer.cli.main` takes over.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

INTERRUPTED = 130


def _end(*_: Any) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def guard() -> None:
    """Lets Ctrl-C end the process at once, if it is the command and Ctrl-C does what it does by default."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    ours = os.path.splitext(name)[0] == "mercer" and threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def take_over() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
