"""Losses × solvers over one Risk contract."""

from mercer.learning.checkpoint import Checkpoint
from mercer.learning.losses import LOSSES, Log, Loss, resolve_loss
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers import SOLVERS, ConvergenceWarning, Result, Solver, resolve_solver

__all__ = [
    "LOSSES",
    "SOLVERS",
    "Checkpoint",
    "ConvergenceWarning",
    "Log",
    "Loss",
    "Penalty",
    "Result",
    "Risk",
    "Solver",
    "resolve_loss",
    "resolve_solver",
]
