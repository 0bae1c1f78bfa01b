"""Ctrl-C while the ``mercer`` command is still importing: print one line and exit with status 130, no traceback.

Imports take a large part of a second, and no handler could catch an exception there. So in a process of this command,
the package first restores the default action of SIGINT, which ends the process. `mercer.cli.main` takes over later.
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
    """Let Ctrl-C end the process at once, if this is the command and the SIGINT handler is the default one."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    ours = os.path.splitext(name)[0] == "mercer" and threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def take_over() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
