"""Losses, penalties, risks and solvers."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.exceptions import ConvergenceWarning
    from mercer.learning.checkpoint import Checkpoint
    from mercer.learning.dominance import DominanceReport, dominance_report
    from mercer.learning.entropy import EntropyPath, entropy_path
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
        Tempered,
        resolve_loss,
    )
    from mercer.learning.penalties import Penalty
    from mercer.learning.risk import Risk
    from mercer.learning.solvers import SOLVERS, Result, Solver, resolve_solver

__all__ = [
    "LOSSES",
    "SOLVERS",
    "AdaptiveHybrid",
    "Checkpoint",
    "Circle",
    "ConvergenceWarning",
    "DominanceReport",
    "EntropyPath",
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
    "Tempered",
    "dominance_report",
    "entropy_path",
    "resolve_loss",
    "resolve_solver",
]
__getattr__, __dir__ = on_demand(__name__)
