"""The dual of the max-margin Markov network in its marginal form.

    max_μ  C Σ_i ⟨Δ_i, μ_i⟩ − ½ ‖w‖²,   w = C Σ_i [Φ(x_i, y_i) − Σ_part μ_i[part] Φ(x_i, part)]

μ_i are part marginals of a distribution over the outputs of example i. The exponentially many multipliers of outputs
enter Δ and w only through these sums. So only the marginals are stored: one number per part. Steps are Frank-Wolfe
steps towards the most violating output, with an exact line search. μ_i stays a mixture of outputs and is therefore
consistent.

With a standard normal prior the maximum entropy discrimination Markov network has the posterior N(w, I) around these
weights.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mercer.learning.checkpoint import array_of, count_of, generator_from_state, generator_to_state
from mercer.learning.losses import Hinge
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_planes, check_ridge
from mercer.structures.base import check_random_seed


class MarginalDual(Solver):
    """Frank-Wolfe on part marginals: little memory on large output spaces, but slower to high accuracy than ``"bcfw"``.

    References
    ----------
    .. [Taskar2003] B. Taskar, C. Guestrin and D. Koller. Max-margin Markov networks. NIPS, 2003.
    .. [LacosteJulien2013] S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher. Block-coordinate Frank-Wolfe
       optimization for structural SVMs. ICML, 2013.
    """

    name = "marginal-dual"
    reads_examples = True
    default_max_iter = 500
    default_tol = 1e-3

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require the hinge and ½‖w‖²."""
        check_ridge(penalty, self.name)
        check_planes(risk, self.name)
        if isinstance(risk, WeightedRisk):
            raise ValueError("solver 'marginal-dual' takes no weights of examples (sample_weight); use 'bcfw'")
        if type(risk.loss) is not Hinge:
            raise ValueError(f"solver 'marginal-dual' is for the hinge; the loss is {risk.loss.name!r}")

    def minimize(
        self,
        risk: Risk,
        penalty: Penalty,
        C: float,
        w0: np.ndarray | None,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """See :class:`mercer.learning.Solver`."""
        weight, best = C / penalty.l2, Best(risk.n_weights)
        random = np.random.default_rng(check_random_seed(random_state))
        blocks = [_Block(risk, i) for i in range(risk.n_examples)]
        w, done, before = np.zeros(risk.n_weights), False, 0
        if resumed is not None:
            with monitor.restoring():
                numbers, arrays = resumed
                best.resume(arrays, monitor.source)
                generator_from_state(random, numbers["random"])
                w, before = array_of(arrays, "w", w.shape), count_of(numbers, "passes")
                _resume(blocks, arrays, w / weight)
                best.match(weight * sum(b.cost for b in blocks) - 0.5 * float(w @ w))
        try:
            if resumed is not None:
                best.verify(risk, weight)
            for passes in range(before + 1, max_iter + 1):
                for i in random.permutation(risk.n_examples).tolist():
                    blocks[i].step(w, weight)
                best.dual = max(best.dual, weight * sum(b.cost for b in blocks) - 0.5 * float(w @ w))
                best.offer(0.5 * float(w @ w) + weight * risk.value(w), w)
                done = best.gap <= tol
                if monitor.record(lambda: best.w, **best.figures(penalty.l2, passes=2 * passes)):
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if done:
                    break
                monitor.save(
                    {"passes": passes, "random": generator_to_state(random)},
                    lambda: {"w": w, **best.arrays(), **_arrays(blocks)},
                )
        except KeyboardInterrupt:
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)


class _Block:
    """The marginals of one example, and their cost ⟨Δ, μ⟩."""

    def __init__(self, risk: Risk, i: int) -> None:
        self.risk, self.i = risk, i
        self.X, self.y = risk.X[i : i + 1], risk.y[i : i + 1]
        theta = risk.structure.scores(np.zeros(risk.n_weights), self.X)
        self.mu = copy.deepcopy(risk.structure.zeros(theta))
        risk.structure.add_output(self.mu, self.y, np.ones(1))
        self.cost = 0.0

    def step(self, w: np.ndarray, weight: float) -> None:
        """Towards the most violating output at w, as far as the dual rises."""
        structure = self.risk.structure
        theta = structure.scores(w, self.X)
        z, _, delta = structure.most_violating(theta, self.y, self.risk.loss.cost)  # type: ignore[attr-defined]
        towards = copy.deepcopy(self.mu)
        towards.scale(-1.0)
        structure.add_output(towards, z, np.ones(1))
        d = np.zeros(len(w))
        structure.backward(self.X, towards, d)
        rise = float(delta[0]) - self.cost + float(w @ d)
        curve = weight * float(d @ d)
        share = 1.0 if curve <= 0 else min(1.0, max(0.0, rise / curve))
        if rise <= 0:
            return
        self.mu.scale(1.0 - share)
        structure.add_output(self.mu, z, np.array([share]))
        self.cost += share * (float(delta[0]) - self.cost)
        w -= weight * share * d

    @property
    def parts(self) -> list[np.ndarray]:
        """The marginals as arrays, in a fixed order."""
        return [part for part in vars(self.mu).values() if isinstance(part, np.ndarray) and part.dtype == float]


def _arrays(blocks: list[_Block]) -> dict[str, np.ndarray]:
    """All marginals, one after the other, for a checkpoint."""
    parts = [part.ravel() for block in blocks for part in block.parts]
    return {"marginals": np.concatenate(parts), "costs": np.array([block.cost for block in blocks])}


def _features(blocks: list[_Block], size: int) -> np.ndarray:
    """Σ_i Σ_y μ_i(y) Φ(x_i, y)."""
    total = np.zeros(size)
    for block in blocks:
        block.risk.structure.backward(block.X, block.mu, total)
    return total


def _resume(blocks: list[_Block], arrays: dict[str, np.ndarray], v: np.ndarray) -> None:
    """The inverse of :func:`_arrays`; v is w / C, which the marginals must give."""
    start = _features(blocks, len(v))  # of the true outputs
    parts = [part for block in blocks for part in block.parts]
    stops = np.cumsum([part.size for part in parts])
    marginals, costs = array_of(arrays, "marginals", (int(stops[-1]),)), array_of(arrays, "costs", (len(blocks),))
    for part, values in zip(parts, np.split(marginals, stops[:-1]), strict=True):
        part[...] = values.reshape(part.shape)
    for block, cost in zip(blocks, costs.tolist(), strict=True):
        block.cost = cost
    change = start - _features(blocks, len(v))
    if not np.abs(change - v).max(initial=0.0) <= 1e-4 * max(1.0, np.abs(start).max(initial=0.0)):
        raise ValueError("its weights are not those of its marginals")
