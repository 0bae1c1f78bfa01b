"""The command line: ``mercer demo | train | predict | evaluate | inspect | serve``."""

from __future__ import annotations

from collections.abc import Sequence

from mercer import _command

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit status: 0 done, 1 a failure, 2 a mistake in the call or in a file, 130 stopped by Ctrl-C.
    """
    from mercer.cli import app  # while Ctrl-C still ends the process at once

    _command.take_over()
    return app.main(args)
