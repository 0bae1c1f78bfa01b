"""Truncated Newton for the log loss of single labels: a few passes over the data, each a matrix product.

    minimise  F(W) = ½ l2 ‖W‖² + C Σ_i weight_i (log Σ_c exp θ_ic − θ_iy),   θ = X W

    gradient   l2 W + C Xᵀ (P − Y),   P = softmax(θ)
    Hessian    V ↦ l2 V + C Xᵀ (P ∘ (S − (P ∘ S) 1 1ᵀ)),   S = X V

Each step solves H D = −gradient by conjugate gradients, with an accuracy that increases towards the optimum. They also
give the scores of the step, so the line search reads no data. Conjugate gradients are preconditioned by

    M_c = l2 I + C Xᵀ diag(q) X,   q_i = p_ic (1 − p_ic),

the blocks of the Hessian, from a sample of the rows and in single precision. With more features all labels share one
block, with the mean of q; with very many, blocks are diagonal. With two labels only the difference v = w_1 − w_0 is
optimised, with half the penalty.

The last ``penalty.free`` weights (the constants of the labels) have no penalty.

With many more rows than features, the first steps use a share of the rows; steps on all rows continue from that
optimum. With more features than dense rows, the penalised weights are W = Xᵀ L⁻ᵀ B for X Xᵀ = L Lᵀ: then X W = L B and
‖W‖ = ‖B‖, so the equivalent problem has no more features than rows. The optimality of its solution is checked on X
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mercer import _core
from mercer._linalg import conjugate_gradients, pivoted_cholesky_of
from mercer.data.sequences import Rows, Sequences
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
_PIECE = 1 << 17  # numbers of a piece of rows
_BLOCK = 64  # multiplications of a block that cost as much as one of a pass, and a few passes
_MOST_ROUNDS = 200  # of conjugate gradients in a step
_SHARE = 8  # one row in so many is a row of the sample that the steps begin on
_ENOUGH = 20  # rows of the sample for each weight that is looked for
_NEAR = 0.02  # of the first gradient: where steps on the sample end
_MOST_STEPS = 8  # on the sample
_TURNED = 2048  # rows up to which features in excess of them are turned into as many as there are rows
_STRIPE = 4096  # of them that are multiplied at once
_DEPENDENT = 1e-14  # of the largest squared length: a row whose rest is shorter depends on others
_OLD = 8  # rounds of a step after which the preconditioner is made anew,
_SLOW = 0.3  # and the share of the gradient that a step leaves


class Newton(Solver):
    """Truncated Newton steps with preconditioned conjugate gradients, for the log loss of single labels."""

    name = "newton"
    frees_constants = True
    reads_examples = True
    default_max_iter = 100
    default_tol = 1e-6

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require the log loss of single labels, all known, and a penalty without ℓ1."""
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
        plain = _Logistic(risk, penalty, C)
        turned = _turned(plain, risk, penalty, C)
        problem = plain if turned is None else turned
        here: _Point | None = None
        iteration = 0

        def weights() -> np.ndarray:
            W = problem.start(w0) if here is None else here.W
            # What all labels have in common changes no loss and costs a penalty: the optimum has none of it.
            return problem.flat(W if problem.binary else W - W.mean(axis=1, keepdims=True))

        def chosen() -> np.ndarray:
            return weights() if monitor.best_w is None else monitor.best_w

        try:
            if resumed is None:
                here = problem.at(problem.start(None), np.zeros(problem.shape))
                g = problem.gradient(here)
                norm0 = _norm(g)
                begin = None
                if not norm0:
                    pass  # zero is the optimum, whatever a sample or the last fit says
                elif w0 is not None and w0.any():
                    begin = problem.start(w0)
                elif max_iter and turned is None and (begun := _on_a_sample(risk, penalty, C)) is not None:
                    begin = plain.take_over(*begun)
                if begin is not None:
                    here = problem.at(begin, problem.scores(begin))
                    g = problem.gradient(here)
            else:  # the same numbers as if nothing had happened
                with monitor.restoring():
                    state_now, held = resumed
                    if not state_now["turned"]:
                        problem = plain
                    W = array_of(held, "w", problem.start(None).shape)
                    here = problem.at(W, array_of(held, "scores", problem.shape))
                    iteration, norm0 = count_of(state_now, "iterations"), number_of(state_now, "first_norm")
                    passes = count_of(state_now, "passes")
                    if norm0 <= 0.0:
                        raise ValueError(f"first_norm must be positive, found {norm0}")
                    if "preconditioned_at" in held:
                        problem.preconditioned_at = array_of(held, "preconditioned_at", problem.shape)
                    elif not state_now["stale"] and (begun := _on_a_sample(risk, penalty, C)) is not None:
                        plain.take_over(*begun)
                    problem.stale = bool(state_now["stale"])
                g = problem.gradient(here)
                problem.passes = passes
            norm = _norm(g)
            while iteration < max_iter:
                there = None if norm <= tol * norm0 else _stepped(problem, here, g, tol * norm0, norm0)
                if there is None and problem is not plain:  # the same point, asked of the rows themselves
                    plain.passes += problem.passes
                    W = plain.start(weights())
                    problem, here = plain, plain.at(W, plain.scores(W))
                    g = plain.gradient(here)
                    norm = _norm(g)
                    continue
                if norm <= tol * norm0:
                    break
                if there is None:
                    message = "no step lowers the objective further: the limit of floating-point accuracy"
                    return Result(chosen(), norm <= 1e3 * tol * norm0, message)
                before, here, g = norm, there, problem.gradient(there)
                norm = _norm(g)
                problem.stale |= norm > _SLOW * before
                iteration += 1
                stop = monitor.record(weights, objective=here.value, gradient_norm=norm, passes=problem.passes)
                progress = {
                    "iterations": iteration, "first_norm": norm0, "passes": problem.passes, "stale": problem.stale,
                    "turned": problem is not plain,
                }  # fmt: skip
                monitor.save(progress, partial(_held, problem, here))
                if stop:
                    return Result(chosen(), True, "stopped early: no better score on the held-out data")
        except KeyboardInterrupt:
            return Result(chosen(), False, "interrupted: these are the best weights so far", True)
        return Result.by_gradient(chosen(), norm <= tol * norm0, norm / max(norm0, 1e-300), tol, max_iter)


def _norm(g: np.ndarray) -> float:
    return float(np.linalg.norm(g))


class _Point(NamedTuple):
    """Weights, their scores, F, probabilities, and the slope of C times the loss in the scores."""

    W: np.ndarray
    scores: np.ndarray
    value: float
    P: np.ndarray
    slopes: np.ndarray


class _Logistic:
    """F over the columns that are looked for: one with two labels, else one a label."""

    def __init__(self, risk: Risk, penalty: Penalty, C: float) -> None:
        structure, X = risk.structure, risk.X
        assert isinstance(structure, Labels)
        self.X = X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1]))
        self.sparse = sp.issparse(self.X)
        self.Xt = self.X.T
        self.inputs, self.structure = X, structure
        self.labels = np.ascontiguousarray(risk.y, np.int32)
        self.binary = structure.n_labels == 2
        self.n_labels = structure.n_labels
        self.n_columns = 1 if self.binary else structure.n_labels
        self.shape = (len(self.labels), self.n_columns)
        weights = risk.weights if isinstance(risk, WeightedRisk) else None
        self.C = C if weights is None else (C * weights)[:, None]
        l2 = penalty.l2 / 2 if self.binary else penalty.l2
        self.l2 = np.full((structure.n_features, 1), l2)
        self.n_penalised = structure.n_features - penalty.free // structure.n_labels
        self.l2[self.n_penalised :] = 0.0
        self.passes = 0
        self.weights = np.empty(0) if weights is None else np.ascontiguousarray(C * weights, float)
        self.strength = C
        self.rough = False  # whether a diagonal is to be enough of a preconditioner
        self.stale = True  # whether the preconditioner is to be made anew
        self.preconditioned_at: np.ndarray | None = None  # the probabilities
        self._solve: Callable[[np.ndarray], np.ndarray] | None = None
        self._squares: Any = None
        self._sample: np.ndarray | None = None

    def start(self, w0: np.ndarray | None) -> np.ndarray:
        """The first weights, as columns."""
        if w0 is None:
            return np.zeros((self.X.shape[1], self.n_columns))
        return self._columns(w0, self.X.shape[1])

    def _columns(self, w: np.ndarray, n_features: int) -> np.ndarray:
        W = w.reshape(n_features, self.n_labels)
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
        if not self.sparse:
            return partial(self._piecewise, curvature)

        def at_once(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.passes += 1
            S, image = np.empty(self.shape), np.empty(V.shape)
            _core.linear.normal_product(
                self.inputs.rows.core, curvature, V.ravel(), S.reshape(-1), image.reshape(-1), self.structure.threads
            )
            return image + self.l2 * V, S

        return at_once

    def _piecewise(self, curvature: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H V and X V of dense rows, piece by piece: a piece is in the cache when it is needed again."""
        self.passes += 1
        S, image = np.empty(len(curvature)), self.l2 * V
        v = V[:, 0].astype(self.X.dtype, copy=False)
        n_rows = max(1, _PIECE // len(v))
        for start in range(0, len(S), n_rows):
            piece = slice(start, start + n_rows)
            rows = self.X[piece]
            S[piece] = rows @ v
            image[:, 0] += (curvature[piece] * S[piece]).astype(rows.dtype, copy=False) @ rows
        return image, S[:, None]

    def slopes(self, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """C times the summed loss, probabilities (of label 1 with two labels), and the slope in the scores."""
        if self.binary:
            P, R = np.empty(self.shape), np.empty(self.shape)
            value = _core.linear.logistic_slopes(
                scores.ravel(), self.labels, self.weights, self.strength, P.ravel(), R.ravel(), self.structure.threads
            )
            return value, P, R
        top = scores.max(axis=1, keepdims=True)
        P = np.exp(scores - top)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        rows = np.arange(len(scores))
        losses = np.log(total) + top
        losses[:, 0] -= scores[rows, self.labels]
        R = P.copy()
        R[rows, self.labels] -= 1.0
        R *= self.C
        return float((self.C * losses).sum()), P, R

    def at(self, W: np.ndarray, scores: np.ndarray) -> _Point:
        """What is known of weights whose scores are known."""
        value, P, R = self.slopes(scores)
        return _Point(W, scores, value + 0.5 * float((self.l2 * W * W).sum()), P, R)

    def gradient(self, at: _Point) -> np.ndarray:
        """∂F/∂W."""
        return self.adjoint(at.slopes) + self.l2 * at.W

    def preconditioner(self, P: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ M⁻¹ V, of earlier probabilities while few rounds are enough with it."""
        if self.stale:
            self.preconditioned_at, self._solve = P, None
        if self._solve is None:
            assert self.preconditioned_at is not None
            self._solve = self._preconditioner(self.preconditioned_at)
        return self._solve

    def take_over(self, W: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Take the columns and the preconditioner of a sample."""
        self._solve, self.stale = solve, False
        return W

    def sampled_rows(self) -> int:
        """Rows that tell enough for a block of the preconditioner."""
        n, d = self.X.shape
        return min(max(_FEWEST * d, _PASSES * n // d), _MOST * d)

    def _preconditioner(self, P: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        n, d = self.X.shape
        q = self.C * (P * (1.0 - P))
        if self.rough or d > _FACTORED or d > 2 * n:
            if self._squares is None:
                self._squares = (self.X.multiply(self.X) if self.sparse else self.X * self.X).T
            diagonal = self.l2 + np.asarray(self._squares @ q)
            diagonal += 1e-12 * diagonal.max()
            return lambda V: V / diagonal
        step = max(1, n // self.sampled_rows())
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


class _Turned(_Logistic):
    """The problem in as many features as there are independent rows, and the way back."""

    def __init__(self, plain: _Logistic, risk: Risk, penalty: Penalty, C: float, L: np.ndarray, rows: np.ndarray):
        n_free = plain.X.shape[1] - plain.n_penalised
        turned = np.hstack([L, plain.X[:, plain.n_penalised :]]) if n_free else L
        structure = Labels(plain.n_labels, turned.shape[1], threads=plain.structure.threads)
        X = Sequences(Rows(dense=np.ascontiguousarray(turned, float)), np.arange(len(turned) + 1))
        weights = getattr(risk, "weights", None)
        made = Risk(structure, risk.loss, X, risk.y)
        if weights is not None:
            made = WeightedRisk(structure, risk.loss, X, risk.y, weights)
        super().__init__(made, penalty, C)
        self.triangle, self.rows, self.n_before = L[rows], plain.X[rows, : plain.n_penalised], plain.X.shape[1]

    def start(self, w0: np.ndarray | None) -> np.ndarray:
        """Weights of the features turned; what stands upright on all rows is left out, which costs a penalty only."""
        if w0 is None:
            return np.zeros((self.X.shape[1], self.n_columns))
        W = self._columns(w0, self.n_before)
        n = self.rows.shape[1]
        return np.vstack([solve_triangular(self.triangle, self.rows @ W[:n], lower=True), W[n:]])

    def flat(self, W: np.ndarray) -> np.ndarray:
        """Weights of the features themselves."""
        r = len(self.triangle)
        before = self.rows.T @ solve_triangular(self.triangle, W[:r], lower=True, trans="T")
        return super().flat(np.vstack([before, W[r:]]))


def _turned(plain: _Logistic, risk: Risk, penalty: Penalty, C: float) -> _Turned | None:
    """The problem in as many features as rows, where that is less."""
    n, d = len(plain.labels), plain.n_penalised
    if plain.sparse or n > _TURNED or d < 1.5 * n or not penalty.l2:
        return None
    K = np.zeros((n, n))
    for a in range(0, d, _STRIPE):
        stripe = plain.X[:, a : min(d, a + _STRIPE)].astype(float, copy=False)
        K += stripe @ stripe.T
    largest = float(K.diagonal().max(initial=0.0))
    if not (0.0 < largest < np.inf):
        return None
    L, rows = pivoted_cholesky_of(K, _DEPENDENT * largest)
    return _Turned(plain, risk, penalty, C, L, rows)


def _on_a_sample(
    risk: Risk, penalty: Penalty, C: float
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None:
    """Columns close to the optimum on a share of the rows, and their preconditioner; None where they say too little."""
    structure, y = risk.structure, np.asarray(risk.y)
    assert isinstance(structure, Labels)
    n, columns = len(y), 1 if structure.n_labels == 2 else structure.n_labels
    if n // _SHARE < _ENOUGH * structure.n_features * columns:
        return None
    chosen = np.arange(0, n, _SHARE)
    weights = risk.weights[chosen] if isinstance(risk, WeightedRisk) else np.ones(len(chosen))
    if np.bincount(y[chosen], weights, minlength=structure.n_labels).min() <= 0:
        return None
    X = Sequences(risk.X.rows.take(int(risk.X.offsets[0]) + chosen), np.arange(len(chosen) + 1))
    sample = _Logistic(WeightedRisk(structure, risk.loss, X, y[chosen], weights), penalty, C * n / len(chosen))
    n_entries = X.rows.core.n_rows * structure.n_features if not sample.sparse else sample.X.nnz
    sample.rough = sample.sampled_rows() * structure.n_features**2 > _BLOCK * n_entries
    here = sample.at(sample.start(None), np.zeros(sample.shape))
    g = sample.gradient(here)
    norm0 = norm = _norm(g)
    for _ in range(_MOST_STEPS):
        if norm <= _NEAR * norm0 or (there := _stepped(sample, here, g, _NEAR * norm0, norm0)) is None:
            break
        here, g = there, sample.gradient(there)
        norm = _norm(g)
        sample.rough &= not sample.stale  # which many rounds made it
    sample.stale = True
    return here.W, sample.preconditioner(here.P)


def _held(problem: _Logistic, here: _Point) -> dict[str, np.ndarray]:
    """What a checkpoint needs; a preconditioner that is the sample's is made again from there."""
    held = {"w": here.W, "scores": here.scores}
    return held if problem.preconditioned_at is None else {**held, "preconditioned_at": problem.preconditioned_at}


def _stepped(problem: _Logistic, here: _Point, g: np.ndarray, aim: float, norm0: float) -> _Point | None:
    """The point a step further, to a gradient of ``aim`` and no more exact than is worth it; None at the end."""
    norm = _norm(g)
    enough = max(min(0.1, np.sqrt(norm / norm0)) * norm, 0.3 * aim)
    D, step_scores = _newton_step(problem, here.P, g, enough)
    return problem.search(here.W, here.scores, D, step_scores, here.value, float(np.vdot(g, D)))


def _newton_step(problem: _Logistic, P: np.ndarray, g: np.ndarray, enough: float) -> tuple[np.ndarray, np.ndarray]:
    """D with ‖H D + g‖ ≤ enough, and X D."""
    hessian, scores = problem.hessian(P), np.zeros(problem.shape)
    of_direction = scores

    precondition = problem.preconditioner(P)
    rounds = 0

    def product(direction: np.ndarray) -> np.ndarray:
        nonlocal of_direction, rounds
        image, of_direction = hessian(direction)
        rounds += 1
        return image

    def stepped(length: float) -> None:
        nonlocal scores
        scores += length * of_direction

    within = enough / max(_norm(g), 1e-300)
    D = conjugate_gradients(product, -g, within, _MOST_ROUNDS, precondition=precondition, stepped=stepped)
    problem.stale = rounds > _OLD
    return D, scores
