"""Conditional random fields learned by sampling, if sums over labellings are intractable.

    minimise  F(w) = penalty(w) + C Σ_i [log Z_i(w) − ⟨w, Φ(x_i, y_i)⟩],   ∂ log Z_i / ∂w = E_w[Φ(x_i, ·)]

The particles of a learner (`mercer.learning.learners`), several for each graph, estimate the expectation. Steps are
scaled by the root of the summed squared gradients of each weight [Duchi2011], because features differ in size. The
result is the mean of the weights over the second half of the steps, which averages out the noise of the particles
[Polyak1992].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_count, check_positive
from mercer.learning.checkpoint import array_of, count_of
from mercer.learning.learners import Chains, EnergyModel, Keys, Learner, Path, resolve_learner
from mercer.learning.losses import Log
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.structures.graph_inputs import GraphInputs
from mercer.structures.graph_labels import GraphLabels

__all__ = ["SAMPLED", "LabelField", "Sampled", "ascend"]

SAMPLED = ("cd", "pcd", "tempered", "parallel-tempering", "smc", "psmc", "mcmcml", "particle-filter")
"""Names of learners that are solvers of conditional fields."""


class LabelField(EnergyModel):
    """The labels of the nodes of graphs, given their inputs; every graph is a group.

    Parameters
    ----------
    structure : GraphLabels
    X : GraphInputs
    """

    def __init__(self, structure: GraphLabels, X: GraphInputs) -> None:
        self.structure, self.X, self.threads = structure, X, structure.threads
        self._kept: list[tuple[Any, Any]] = []
        self._shape = self._scores(np.zeros(structure.n_weights)).shape
        self.n_groups, self.n_values = len(self._shape), self._shape.n_labels
        self._sizes = np.diff(self._shape.offsets)
        self._edges = np.ascontiguousarray(self._shape.edges, np.int64)
        self._offsets = np.ascontiguousarray(self._shape.offsets, np.int64)
        self._edge_offsets = np.ascontiguousarray(self._shape.edge_offsets, np.int64)

    def _scores(self, w: np.ndarray) -> Any:
        for kept, scores in self._kept:
            if kept is w:
                return scores
        scores = self.structure.scores(w, self.X)
        self._kept = [(w, scores), *self._kept[:1]]
        return scores

    def _tables(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(w)
        return np.ascontiguousarray(scores.nodes, np.float64), np.ascontiguousarray(scores.edges, np.float64)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of graphs for all nodes."""
        return np.repeat(values, self._sizes, axis=1)

    def uniform(self, n: int, keys: Keys) -> np.ndarray:
        """Draw uniform labels."""
        size = (n, self._shape.n_nodes)
        random = np.random.Generator(np.random.Philox(key=keys.next()))
        return random.integers(0, self._shape.n_labels, size, np.uint8)

    def sweep(
        self, states: np.ndarray, theta: np.ndarray, keys: Keys, beta: float = 1.0, backward: bool = False
    ) -> np.ndarray:
        """Return the labels after a Gibbs sweep over all nodes, in forward or backward order."""
        moved = np.ascontiguousarray(states).copy()
        nodes, pairs = self._tables(theta)
        _core.fields.label_sweep(moved, nodes, self._edges, pairs, beta, backward, keys.next(), self.threads)
        return moved

    def path(self, states: np.ndarray, start: Any, end: Any) -> Path:
        """Return log densities along the straight line between two weight vectors."""
        states = np.ascontiguousarray(states)

        def scores(w: np.ndarray) -> np.ndarray:
            out = np.empty((len(states), self.n_groups))
            nodes, pairs = self._tables(w)
            _core.fields.label_scores(
                states, nodes, self._edges, pairs, self._offsets, self._edge_offsets, out, self.threads
            )
            return out

        last = scores(end)
        first = np.zeros_like(last) if start is None else scores(start)
        return Path(self, states, start, end, lambda beta: first + beta * (last - first))

    def statistics(self, states: np.ndarray, theta: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the mean over graphs of E[Φ]."""
        if weights is None:
            weights = np.full((len(states), self.n_groups), 1.0 / len(states))
        mu = self.structure.zeros(self._scores(theta))
        states, weights = np.ascontiguousarray(states), np.ascontiguousarray(weights)
        _core.fields.label_counts(states, weights, self._edges, self._offsets, self._edge_offsets, mu.nodes, mu.edges)
        out = np.zeros(self.structure.n_weights)
        self.structure.backward(self.X, mu, out)
        return out / self.n_groups


def ascend(
    model: EnergyModel,
    learner: Learner,
    data: Any,
    w: np.ndarray,
    shrink: Callable[[np.ndarray], np.ndarray],
    *,
    n_particles: int,
    rate: float,
    max_iter: int,
    keys: Keys,
    monitor: Monitor,
    resumed: Any = None,
) -> tuple[np.ndarray, bool]:
    """Maximise the penalised mean log-likelihood; return the mean weights, and whether Ctrl-C ended the run.

    Parameters
    ----------
    model : EnergyModel
    learner : Learner
    data : states of the truth
    w : array
        Initial weights.
    shrink : callable
        w → gradient of the penalty, per example.
    n_particles : int
    rate : float
        Size of the first steps.
    max_iter : int
    keys : Keys
    monitor : Monitor
    resumed : state and arrays of an unfinished run, optional
    """
    chains = Chains(model, keys, n_particles)
    squares, mean, averaged, first = np.zeros_like(w), w, 0, 0
    learner.start(chains, w)
    if resumed is not None:
        with monitor.restoring():
            state, arrays = resumed
            first, averaged = (count_of(state, name) for name in ("step", "averaged"))
            w, squares, mean = (array_of(arrays, name, w.shape) for name in ("w", "squares", "mean"))
            chains.restore(arrays, w)
    try:
        for step in range(first, max_iter):
            gradient = learner.gradient(chains, w, data) - shrink(w)
            squares = squares + gradient**2
            w = w + rate * gradient / np.sqrt(np.maximum(squares, 1e-24))
            if not np.isfinite(w).all():
                raise FloatingPointError(
                    f"training by sampling diverged at step {step + 1}: lower the rate (now {rate:g})"
                )
            if step >= max_iter // 2:
                averaged += 1
                mean = mean + (w - mean) / averaged if averaged > 1 else w
            else:
                mean = w
            figures = {"gradient": float(np.linalg.norm(gradient)), **chains.figures}
            stop = monitor.record(lambda: mean, **figures)  # noqa: B023
            monitor.save(
                {"step": step + 1, "averaged": averaged},
                lambda: {"w": w, "squares": squares, "mean": mean, **chains.arrays()},  # noqa: B023
            )
            if stop:
                break
    except KeyboardInterrupt:
        return mean if monitor.best_w is None else monitor.best_w, True
    return mean if monitor.best_w is None else monitor.best_w, False


class Sampled(Solver):
    """Train graph models by a learner that samples.

    Parameters
    ----------
    learner : str or Learner, default="pcd"
        See :mod:`mercer.learning.learners`.
    n_particles : int, default=20
        Number of particles for each graph.
    rate : float, default=1.0
        Size of the first steps; later steps are smaller.

    Examples
    --------
    >>> from mercer.datasets import make_regions
    >>> from mercer.labeling import GraphLabeler
    >>> from mercer.learning.solvers import Sampled
    >>> task = make_regions(20)
    >>> model = GraphLabeler(solver=Sampled("pcd", n_particles=10), max_iter=30, random_state=0)
    >>> model.fit(task.X, task.y).n_iter_
    30
    """

    name = "sampled"
    reads_examples = True
    default_max_iter = 400
    default_tol = 0.0

    def __init__(self, learner: str | Learner = "pcd", n_particles: int = 20, rate: float = 1.0) -> None:
        self.learner = resolve_learner(learner)
        if self.learner.exact:
            raise ValueError(f"learner must be one of {', '.join(map(repr, SAMPLED))}, got {self.learner.name!r}")
        self.name = self.learner.name
        self.settings = repr(self.learner)  # part of what a checkpoint must agree in
        self.n_particles, self.rate = check_count("n_particles", n_particles, 2), check_positive("rate", rate)

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require the log loss of labels on graphs, with an ℓ2 penalty or none."""
        if not isinstance(risk.structure, GraphLabels):
            raise ValueError(f"solver {self.name!r} learns labels of graphs, not {type(risk.structure).__name__}")
        if not isinstance(risk.loss, Log):
            raise ValueError(f"solver {self.name!r} minimises the log loss; the loss is {risk.loss.name!r}")
        if penalty.l1:
            raise ValueError(f"solver {self.name!r} takes no ℓ1 penalty: use solver='owlqn'")
        if (risk.y.labels < 0).any():
            raise ValueError(f"solver {self.name!r} needs all labels; for partly known ones use solver='lbfgs'")
        if hasattr(risk, "weights"):
            raise ValueError(f"solver {self.name!r} takes no sample_weight")
        if risk.structure.n_labels > 256:
            raise ValueError(f"solver {self.name!r} takes at most 256 labels")

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
        structure: Any = risk.structure
        model = LabelField(structure, risk.X)
        w = np.zeros(risk.n_weights) if w0 is None else np.array(w0, dtype=float)
        share = penalty.l2 / (C * max(1, risk.n_examples))
        seed = random_state if isinstance(random_state, (int, np.integer)) else np.random.default_rng(random_state)
        number = int(seed) if isinstance(seed, (int, np.integer)) else int(seed.integers(1 << 62))
        w, interrupted = ascend(
            model,
            self.learner,
            np.ascontiguousarray(risk.y.labels, np.uint8)[None, :],
            w,
            lambda w: share * w,
            n_particles=self.n_particles,
            rate=self.rate,
            max_iter=max_iter,
            keys=Keys(number),
            monitor=monitor,
            resumed=resumed,
        )
        if interrupted:
            return Result(w, False, "interrupted: these are the weights so far", True)
        return Result(structure.feasible(w), True, "finished")
