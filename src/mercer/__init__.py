"""Mercer: learning with structure.

Inputs that are strings, trees, graphs or point clouds; outputs that are tag sequences, segmentations or labelled
graphs. Everything is one choice for each of four words: a map, a structure, a loss and a solver.

Importing the package is cheap: estimators live in the modules of their tasks (``mercer.tagging``, …) and are imported
when used.
"""

from mercer import _command

_command.guard()

from mercer._persistence import ModelFileError, load, save  # noqa: E402

__version__ = "0.1.0"

__all__ = ["ModelFileError", "__version__", "load", "save"]
