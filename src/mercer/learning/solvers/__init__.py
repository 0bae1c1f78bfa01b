"""Solvers: ``minimize(risk, penalty, C, w0, …) → Result``. One file a method, found by name."""

from mercer.learning.solvers.averaged import AveragedPerceptron, PassiveAggressive
from mercer.learning.solvers.base import ConvergenceWarning, Result, Solver
from mercer.learning.solvers.lbfgs import LBFGS, OWLQN
from mercer.learning.solvers.sgd import SGD

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (LBFGS, OWLQN, SGD, AveragedPerceptron, PassiveAggressive)
}


def resolve_solver(solver: str | Solver) -> Solver:
    """A solver by its name, or the object itself."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    raise ValueError(f"unknown solver {solver!r}; known are {', '.join(map(repr, sorted(SOLVERS)))}")


__all__ = [
    "LBFGS",
    "OWLQN",
    "SGD",
    "SOLVERS",
    "AveragedPerceptron",
    "ConvergenceWarning",
    "PassiveAggressive",
    "Result",
    "Solver",
    "resolve_solver",
]
