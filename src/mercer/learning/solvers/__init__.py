"""Solvers: ``minimize(risk, penalty, C, w0, …) → Result``. One file per method, found by name."""

from mercer.exceptions import ConvergenceWarning
from mercer.learning.losses import Loss, PlaneLoss, RelativeMargin
from mercer.learning.penalties import Penalty
from mercer.learning.solvers.averaged import AveragedPerceptron, PassiveAggressive
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.bundle import BMRM
from mercer.learning.solvers.cutting_plane import CuttingPlane
from mercer.learning.solvers.dual import Dual
from mercer.learning.solvers.frank_wolfe import BCFW
from mercer.learning.solvers.lbfgs import LBFGS, OWLQN
from mercer.learning.solvers.marginal_dual import MarginalDual
from mercer.learning.solvers.newton import Newton
from mercer.learning.solvers.sampled import SAMPLED, Sampled
from mercer.learning.solvers.sgd import SGD
from mercer.learning.solvers.subgradient import Subgradient

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        LBFGS,
        OWLQN,
        Newton,
        SGD,
        AveragedPerceptron,
        PassiveAggressive,
        BMRM,
        CuttingPlane,
        BCFW,
        Dual,
        Subgradient,
        MarginalDual,
    )
}


def best_solver(loss: Loss, penalty: Penalty | None = None) -> Solver:
    """Return the default solver: quasi-Newton for smooth losses, dual ascent for margins, bundles for the rest."""
    if loss.smooth:
        return OWLQN() if penalty is not None and penalty.l1 else LBFGS()
    if isinstance(loss, RelativeMargin):
        return CuttingPlane()
    return BCFW() if isinstance(loss, PlaneLoss) else BMRM()


def resolve_solver(solver: str | Solver, loss: Loss | None = None, penalty: Penalty | None = None) -> Solver:
    """Return a solver by its name, or the object itself; ``"auto"`` chooses by the loss."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto" and loss is not None:
        return best_solver(loss, penalty)
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if isinstance(solver, str) and solver in SAMPLED:
        return Sampled(solver)
    raise ValueError(
        f"unknown solver {solver!r}; known are 'auto', {', '.join(map(repr, sorted([*SOLVERS, *SAMPLED])))}"
    )


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
    "MarginalDual",
    "Newton",
    "PassiveAggressive",
    "Result",
    "Sampled",
    "Solver",
    "Subgradient",
    "resolve_solver",
]
