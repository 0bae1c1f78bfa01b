"""Solvers: ``minimize(risk, penalty, C, w0, …) → Result``. One file a method, found by name."""

from mercer.learning.solvers.averaged import AveragedPerceptron, PassiveAggressive
from mercer.learning.solvers.base import ConvergenceWarning, Result, Solver
from mercer.learning.solvers.bundle import BMRM
from mercer.learning.solvers.cutting_plane import CuttingPlane
from mercer.learning.solvers.dual import Dual
from mercer.learning.solvers.frank_wolfe import BCFW
from mercer.learning.solvers.lbfgs import LBFGS, OWLQN
from mercer.learning.solvers.sgd import SGD
from mercer.learning.solvers.subgradient import Subgradient

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        LBFGS,
        OWLQN,
        SGD,
        AveragedPerceptron,
        PassiveAggressive,
        BMRM,
        CuttingPlane,
        BCFW,
        Dual,
        Subgradient,
    )
}


def resolve_solver(solver: str | Solver) -> Solver:
    """A solver by its name, or the object itself."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    raise ValueError(f"unknown solver {solver!r}; known are {', '.join(map(repr, sorted(SOLVERS)))}")


__all__ = [
    "BCFW",
    "BMRM",
    "LBFGS",
    "OWLQN",
    "SGD",
    "SOLVERS",
    "AveragedPerceptron",
    "ConvergenceWarning",
    "CuttingPlane",
    "Dual",
    "PassiveAggressive",
    "Result",
    "Solver",
    "Subgradient",
    "resolve_solver",
]
