"""Losses × solvers over one Risk contract."""

from mercer.learning.checkpoint import Checkpoint
from mercer.learning.losses import (
    LOSSES,
    AdaptiveHybrid,
    Circle,
    Hinge,
    Hybrid,
    Log,
    Loss,
    RelativeMargin,
    Slack,
    SoftmaxMargin,
    SquaredHinge,
    resolve_loss,
)
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers import SOLVERS, ConvergenceWarning, Result, Solver, resolve_solver

__all__ = [
    "LOSSES",
    "SOLVERS",
    "AdaptiveHybrid",
    "Checkpoint",
    "Circle",
    "ConvergenceWarning",
    "Hinge",
    "Hybrid",
    "Log",
    "Loss",
    "Penalty",
    "RelativeMargin",
    "Result",
    "Risk",
    "Slack",
    "SoftmaxMargin",
    "Solver",
    "SquaredHinge",
    "resolve_loss",
    "resolve_solver",
]
