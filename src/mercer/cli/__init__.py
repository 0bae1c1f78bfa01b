"""The command line: ``mercer demo | train | predict | evaluate | inspect``."""

from mercer.cli.app import main

__all__ = ["main"]
