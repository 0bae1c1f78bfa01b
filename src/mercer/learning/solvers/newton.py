"""Truncated Newton for the log loss of single labels: few passes over the data, each of them a matrix product.

    minimise  F(W) = ½ l2 ‖W‖² + C Σ_i weight_i (log Σ_c exp θ_ic − θ_iy),   θ = X W

    gradient   l2 W + C Xᵀ (P − Y),   P = softmax(θ)
    Hessian    V ↦ l2 V + C Xᵀ (P ∘ (S − (P ∘ S) 1 1ᵀ)),   S = X V

Each step solves H D = −gradient by conjugate gradients, as exactly as is worth it far from the optimum. Scores of the
step come with it, so that the search along the step reads no data. Conjugate gradients are preconditioned by

    M_c = l2 I + C Xᵀ diag(q) X,   q_i = p_ic (1 − p_ic),

the blocks of the Hessian, from a sample of the rows and in single precision. With more features all labels share one
block, with the mean of q; with very many, blocks are diagonal. With two labels only the difference v = w_1 − w_0 is
looked for, at half the penalty.

The last ``penalty.free`` weights (the constants of the labels) have no penalty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from mercer import _core
from mercer._linalg import conjugate_gradients
from mercer.learning.checkpoint import array_of, count_of, number_of
from mercer.learning.losses import Log
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.solvers.base import Result, Solver
from mercer.structures.labels import LabelMarginals, Labels

_FACTORED = 1024  # features up to which the preconditioner is a Cholesky factor
_FEWEST, _MOST = 6, 64  # rows that tell enough of Xᵀ diag(q) X, for each feature
_PASSES = 16  # passes over the data that may go into a block, by their multiplications
_MOST_ROUNDS = 200  # of conjugate gradients in a step


class Newton(Solver):
    """Truncated Newton steps with preconditioned conjugate gradients, for the log loss of single labels."""

    name = "newton"
    frees_constants = True
    reads_examples = True
    default_max_iter = 100
    default_tol = 1e-6

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Return the log loss of single labels, all of them known, and a penalty without ℓ1."""
        loss = getattr(risk, "loss", None)
        if type(loss) is not Log or not isinstance(risk.structure, Labels):
            raise ValueError(f"solver {self.name!r} needs the log loss of single labels: use 'auto' or 'lbfgs'")
        if risk.structure.is_partial(risk.y):
            raise ValueError(f"solver {self.name!r} needs to know all labels: use 'lbfgs'")
        if penalty.l1:
            raise ValueError(f"solver {self.name!r} needs a smooth penalty: use 'owlqn' or 'sgd' with l1 penalties")

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
        problem = _Logistic(risk, penalty, C)
        here: _Point | None = None
        iteration = 0

        def weights() -> np.ndarray:
            return problem.flat(problem.start(w0) if here is None else here.W)

        def chosen() -> np.ndarray:
            return weights() if monitor.best_w is None else monitor.best_w

        try:
            if resumed is None:
                zero = problem.start(None)
                here = problem.at(zero, np.zeros(problem.shape))
                g = problem.gradient(here)
                norm0 = _norm(g)
                if w0 is not None and w0.any():
                    W = problem.start(w0)
                    here = problem.at(W, problem.scores(W))
                    g = problem.gradient(here)
            else:  # the same numbers as if nothing had happened
                with monitor.restoring():
                    state_now, held = resumed
                    W = array_of(held, "w", problem.start(None).shape)
                    here = problem.at(W, array_of(held, "scores", problem.shape))
                    iteration, norm0 = count_of(state_now, "iterations"), number_of(state_now, "first_norm")
                    passes = count_of(state_now, "passes")
                    if norm0 <= 0.0:
                        raise ValueError(f"first_norm must be positive, found {norm0}")
                g = problem.gradient(here)
                problem.passes = passes
            norm = _norm(g)
            while norm > tol * norm0 and iteration < max_iter:
                enough = max(min(0.1, np.sqrt(norm / norm0)) * norm, 0.3 * tol * norm0)
                D, step_scores = _newton_step(problem, here.P, g, enough)
                there = problem.search(here.W, here.scores, D, step_scores, here.value, float(np.vdot(g, D)))
                if there is None:
                    message = "no step lowers the objective further: the limit of floating-point accuracy"
                    return Result(chosen(), norm <= 1e3 * tol * norm0, message)
                here, g = there, problem.gradient(there)
                norm = _norm(g)
                iteration += 1
                stop = monitor.record(weights, objective=here.value, gradient_norm=norm, passes=problem.passes)
                monitor.save({"iterations": iteration, "first_norm": norm0, "passes": problem.passes}, here.arrays)
                if stop:
                    return Result(chosen(), True, "stopped early: no better score on the held-out data")
        except KeyboardInterrupt:
            return Result(chosen(), False, "interrupted: these are the best weights so far", True)
        if norm <= tol * norm0:
            return Result(chosen(), True, "converged")
        return Result(
            chosen(),
            False,
            f"stopped after max_iter={max_iter} iterations with a gradient of {norm / max(norm0, 1e-300):.1e} of its "
            f"first norm (tol={tol:g}): raise max_iter or tol, or lower C",
        )


def _norm(g: np.ndarray) -> float:
    return float(np.linalg.norm(g))


class _Point(NamedTuple):
    """Weights, their scores, F, probabilities, and the slope of C times the loss in the scores."""

    W: np.ndarray
    scores: np.ndarray
    value: float
    P: np.ndarray
    slopes: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint needs."""
        return {"w": self.W, "scores": self.scores}


class _Logistic:
    """F over the columns that are looked for: one with two labels, else one a label."""

    def __init__(self, risk: Risk, penalty: Penalty, C: float) -> None:
        structure, X = risk.structure, risk.X
        assert isinstance(structure, Labels)
        self.X = X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1]))
        self.sparse = sp.issparse(self.X)
        self.Xt = self.X.T
        self.inputs, self.structure = X, structure
        self.labels = np.asarray(risk.y)
        self.binary = structure.n_labels == 2
        self.n_labels = structure.n_labels
        self.n_columns = 1 if self.binary else structure.n_labels
        self.shape = (len(self.labels), self.n_columns)
        weights = risk.weights if isinstance(risk, WeightedRisk) else None
        self.C = C if weights is None else (C * weights)[:, None]
        l2 = penalty.l2 / 2 if self.binary else penalty.l2
        self.l2 = np.full((structure.n_features, 1), l2)
        if penalty.free:
            self.l2[-(penalty.free // structure.n_labels) :] = 0.0
        self.passes = 0
        if self.binary:
            self.is_second = (self.labels == 1).astype(float)[:, None]
            self.signs = 2.0 * self.is_second - 1.0
        self._squares: Any = None
        self._sample: np.ndarray | None = None

    def start(self, w0: np.ndarray | None) -> np.ndarray:
        """The first weights, as columns."""
        if w0 is None:
            return np.zeros((self.X.shape[1], self.n_columns))
        W = w0.reshape(self.X.shape[1], self.n_labels)
        return W[:, 1:] - W[:, :1] if self.binary else W.copy()

    def flat(self, W: np.ndarray) -> np.ndarray:
        """Columns as the weights of the structure."""
        return (np.hstack([-W / 2, W / 2]) if self.binary else W).ravel()

    def scores(self, V: np.ndarray) -> np.ndarray:
        """X V."""
        self.passes += 1
        if self.sparse and not self.binary:
            return self.structure.scores(V.ravel(), self.inputs).astype(float, copy=False)
        return np.asarray(self.X @ V.astype(self.X.dtype, copy=False), dtype=float)

    def adjoint(self, T: np.ndarray) -> np.ndarray:
        """Xᵀ T."""
        self.passes += 1
        if self.sparse and not self.binary:
            out = np.zeros(self.structure.n_weights)
            self.structure.backward(self.inputs, LabelMarginals(T, T), out)
            return out.reshape(-1, self.n_columns)
        return np.asarray(self.Xt @ T.astype(self.X.dtype, copy=False), dtype=float)

    def hessian(self, P: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """V ↦ H V and X V."""
        if not self.binary:

            def product(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                S = self.scores(V)
                PS = P * S
                return self.adjoint(self.C * (PS - P * PS.sum(axis=1, keepdims=True))) + self.l2 * V, S

            return product
        curvature = (self.C * (P * (1.0 - P))).ravel()

        def at_once(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.passes += 1
            S, image = np.empty(self.shape), np.empty(V.shape)
            _core.linear.normal_product(
                self.inputs.rows.core, curvature, V.ravel(), S.reshape(-1), image.reshape(-1), self.structure.threads
            )
            return image + self.l2 * V, S

        return at_once

    def slopes(self, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """C times the summed loss, probabilities (of label 1 with two labels), and the slope in the scores."""
        if self.binary:
            small = np.exp(-np.abs(scores))
            P = np.where(scores >= 0, 1.0, small) / (1.0 + small)
            losses = np.log1p(small) - np.minimum(self.signs * scores, 0.0)
            R = P - self.is_second
        else:
            top = scores.max(axis=1, keepdims=True)
            P = np.exp(scores - top)
            total = P.sum(axis=1, keepdims=True)
            P /= total
            rows = np.arange(len(scores))
            losses = np.log(total) + top
            losses[:, 0] -= scores[rows, self.labels]
            R = P.copy()
            R[rows, self.labels] -= 1.0
        return float((self.C * losses).sum()), P, self.C * R

    def at(self, W: np.ndarray, scores: np.ndarray) -> _Point:
        """What is known of weights whose scores are known."""
        value, P, R = self.slopes(scores)
        return _Point(W, scores, value + 0.5 * float((self.l2 * W * W).sum()), P, R)

    def gradient(self, at: _Point) -> np.ndarray:
        """∂F/∂W."""
        return self.adjoint(at.slopes) + self.l2 * at.W

    def preconditioner(self, P: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ M⁻¹ V."""
        n, d = self.X.shape
        q = self.C * (P * (1.0 - P))
        if d > _FACTORED or d > 2 * n:
            if self._squares is None:
                self._squares = (self.X.multiply(self.X) if self.sparse else self.X * self.X).T
            diagonal = self.l2 + np.asarray(self._squares @ q)
            diagonal += 1e-12 * diagonal.max()
            return lambda V: V / diagonal
        enough = min(max(_FEWEST * d, _PASSES * n // d), _MOST * d)
        step = max(1, n // enough)
        if self._sample is None:
            rows = self.X[::step]
            self._sample = (rows.toarray() if self.sparse else rows).astype(np.float32)
        rows = self._sample
        q = q[::step] * (n / len(rows))
        if len(rows) * d > _PASSES * n:
            q = q.mean(axis=1, keepdims=True)
        factors = [self._block(rows, np.sqrt(column).astype(np.float32)) for column in q.T]
        if len(factors) == 1:
            return lambda V: cho_solve(factors[0], V.astype(np.float32), check_finite=False).astype(float)
        return lambda V: np.stack(
            [cho_solve(block, V[:, c].astype(np.float32), check_finite=False) for c, block in enumerate(factors)],
            axis=1,
        ).astype(float)

    def _block(self, rows: np.ndarray, roots: np.ndarray) -> Any:
        """The Cholesky factor of l2 I + Xᵀ diag(roots²) X."""
        scaled = rows * roots[:, None]
        M = scaled.T @ scaled
        diagonal = M.diagonal() + self.l2[:, 0].astype(np.float32)
        M[np.diag_indices(len(M))] = diagonal + np.float32(1e-6) * diagonal.max()
        return cho_factor(M, overwrite_a=True, check_finite=False)

    def search(
        self, W: np.ndarray, scores: np.ndarray, D: np.ndarray, step_scores: np.ndarray, value: float, slope: float
    ) -> _Point | None:
        """The point where F has fallen enough, along D by halves; None where there is none."""
        length, noise = 1.0, 1e-13 * max(1.0, abs(value))
        for _ in range(40):
            there = self.at(W + length * D, scores + length * step_scores)
            if there.value <= value + 1e-4 * length * slope + noise:
                return there
            length /= 2
        return None


def _newton_step(problem: _Logistic, P: np.ndarray, g: np.ndarray, enough: float) -> tuple[np.ndarray, np.ndarray]:
    """D with ‖H D + g‖ ≤ enough, and X D."""
    hessian, scores = problem.hessian(P), np.zeros(problem.shape)
    of_direction = scores

    def product(direction: np.ndarray) -> np.ndarray:
        nonlocal of_direction
        image, of_direction = hessian(direction)
        return image

    def stepped(length: float) -> None:
        nonlocal scores
        scores += length * of_direction

    within = enough / max(_norm(g), 1e-300)
    D = conjugate_gradients(product, -g, within, _MOST_ROUNDS, precondition=problem.preconditioner(P), stepped=stepped)
    return D, scores
