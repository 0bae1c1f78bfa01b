"""Many linear classifiers over the same rows. Each row has a label and a weight for every classifier.

    min over (w, b)   ½‖w‖² + C Σ_i ``|t_i|`` ℓ(sign(t_i) (⟨w, x_i⟩ + b)),   ℓ(m) = max(0, 1 − m)² or max(0, 1 − m)

The targets t of classifier j are a column of a table; rows with t = 0 are ignored. All classifiers of a block take
their Newton steps together, so every pass over X is one matrix product for all of them. Conjugate gradients compute the
steps, in the principal axes of X if these are cheap, because the Hessians are nearly diagonal there. A classifier
leaves the block when it has converged. `mercer._core.joint.newton_machines` handles sparse rows with the squared hinge,
eight classifiers at a time.

The squared hinge is smooth, and ½‖gradient‖² bounds the remaining decrease. The hinge is the limit of an augmented
Lagrangian: with multipliers α in [0, u], u = C ``|t|``, the inner problem is smooth too (the same steps serve both),

    max over a in [0, u] of  a (1 − y f) − (a − α)² / 2σ,     at a = clip(α + σ (1 − y f), 0, u).

Used by `mercer.attributes` and `mercer.multilabel.SeparateSVM`. `mercer._core.machines.LinearMachine` trains a single
classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning

__all__ = ["LinearMachines", "fit_machines"]

LOSSES = ("squared-hinge", "hinge")
_CELLS = 1 << 21  # scores of rows in all machines of a block
_AXES = 1024  # features or rows up to which principal axes are looked for
_STEEP = 8.0  # growth of σ from round to round


@dataclass
class LinearMachines:
    """Weights of many linear classifiers, one per row.

    Attributes
    ----------
    coef : ndarray of shape (n_machines, n_features)
    intercept : ndarray of shape (n_machines,)
    objective : ndarray of shape (n_machines,)
        ½‖w‖² + C Σ loss.
    gap : ndarray of shape (n_machines,)
        A bound on the distance of the objective to its minimum, relative to it.
    n_iter : int
        Newton steps of the slowest classifier.
    converged : ndarray of bool of shape (n_machines,)
    """

    coef: np.ndarray
    intercept: np.ndarray
    objective: np.ndarray
    gap: np.ndarray
    n_iter: int
    converged: np.ndarray


def fit_machines(
    X: Any,
    targets: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    weights: np.ndarray | None = None,
    C: float = 1.0,
    loss: str = "squared-hinge",
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 100,
    warn: bool = True,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int = 1,
) -> LinearMachines:
    """Train a linear classifier for each column of a table of targets.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Finite rows.
    targets : ndarray of shape (n_rows or n_groups, n_machines)
        Signs are labels, sizes are weights.
    groups : ndarray of int of shape (n_rows,), optional
        The row of ``targets`` for each row of X; by default the same index.
    weights : ndarray of shape (n_rows,), optional
        Weights of the rows in all classifiers.
    C : float, default=1.0
        Weight of the losses; smaller values regularise more.
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        ℓ.
    fit_intercept : bool, default=True
        Learn b, which is not regularised.
    tol : float, default=1e-4
        Relative optimality gap at which a classifier has converged.
    max_iter : int, default=100
        Maximum number of Newton steps.
    warn : bool, default=True
        Whether to warn of classifiers that did not converge.
    start : pair of arrays of shapes (n_machines, n_features) and (n_machines,), optional
        Weights and intercepts to start from. By default 0, and the mean target as intercept.
    threads : int, default=1
        Threads, for sparse rows with the squared hinge.

    Returns
    -------
    LinearMachines
        Weights, intercepts, objectives and gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning.weighted_machines import fit_machines
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> machines = fit_machines(X, np.array([[-1.0], [-1.0], [1.0], [1.0]]), C=100.0)
    >>> bool(abs(-machines.intercept[0] / machines.coef[0, 0] - 1.5) < 1e-3)
    True
    """
    check_choice("loss", loss, LOSSES)
    check_positive("C", C)
    check_positive("tol", tol)
    check_count("max_iter", max_iter)
    targets = np.asarray(targets, np.float64)
    if targets.ndim != 2 or not np.isfinite(targets).all():
        raise ValueError(
            f"targets must be a finite matrix with a column for each classifier, got shape {targets.shape}"
        )
    groups = np.arange(len(targets)) if groups is None else np.asarray(groups, np.int64)
    n, d = X.shape
    if len(groups) != n:
        raise ValueError(f"X has {n} rows and the targets are for {len(groups)}")
    m = targets.shape[1]
    out = LinearMachines(np.zeros((m, d)), np.zeros(m), np.zeros(m), np.zeros(m), 0, np.zeros(m, bool))
    step = max(1, _CELLS // max(n, 1))
    compiled = sp.issparse(X) and loss == "squared-hinge"
    rows = X if compiled else _Rows(X, fit_intercept, m)
    for at in range(0, m, step):
        part = slice(at, min(at + step, m))
        own = targets[:, part][groups]
        if weights is not None:
            own = own * weights[:, None]
        first = None if start is None else (start[0][part], start[1][part])
        if compiled:
            _compiled(X, own, C, fit_intercept, tol, max_iter, first, threads, out, part)
            continue
        block = _Block(rows, own, C, loss, tol, max_iter)
        if first is not None:
            block.W, block.b = rows.rotated(*first)
        block.solve()
        out.coef[part], out.intercept[part] = rows.unrotated(block.W, block.b)
        out.objective[part], out.gap[part], out.converged[part] = block.objective, block.gap, block.converged
        out.n_iter = max(out.n_iter, block.n_iter)
    if warn and not out.converged.all():
        warn_caller(
            f"{int((~out.converged).sum())} of {m} machines stopped after {max_iter} Newton steps, with a relative gap "
            f"of up to {out.gap.max():.2g}; raise max_iter or scale X",
            ConvergenceWarning,
        )
    return out


def _compiled(
    X: Any, targets: np.ndarray, C: float, fit_intercept: bool, tol: float, max_iter: int, start: Any, threads: int,
    out: LinearMachines, part: slice,
) -> None:  # fmt: skip
    """Train the machines of a part over sparse rows. Those of similar size go together, as they take similar steps."""
    order = np.argsort(np.maximum(targets, 0.0).sum(axis=0), kind="stable")
    targets = np.ascontiguousarray(targets[:, order])
    m, d = len(order), X.shape[1]
    if start is None:
        coef, size = np.zeros((m, d)), np.abs(targets).sum(axis=0)
        intercept = targets.sum(axis=0) / np.maximum(size, 1e-300) if fit_intercept else np.zeros(m)
    else:
        coef, intercept = (np.ascontiguousarray(values[order], np.float64) for values in start)
    objective, gap, converged = np.zeros(m), np.zeros(m), np.zeros(m, np.uint8)
    steps = _core.joint.newton_machines(
        X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float64, copy=False), d, targets, C, fit_intercept, tol, max_iter,
        coef, intercept, objective, gap, converged, threads,
    )  # fmt: skip
    place = part.start + order
    out.coef[place], out.intercept[place] = coef, intercept
    out.objective[place], out.gap[place], out.converged[place] = objective, gap, converged > 0
    out.n_iter = max(out.n_iter, int(steps))


class _Rows:
    """X, centred and in its principal axes where that is cheap."""

    def __init__(self, X: Any, fit_intercept: bool, n_machines: int) -> None:
        self.fit_intercept = fit_intercept
        self.mean: np.ndarray | None = None
        self.back: np.ndarray | None = None  # from weights in the axes to those of features
        n, d = X.shape
        if sp.issparse(X):
            self.X: Any = sp.csr_matrix(X, dtype=np.float64)
            self.XT: Any = self.X.T.tocsr()
            self.squares: Any = self.XT.power(2)
            return
        X = np.asarray(X, np.float64)
        if fit_intercept:
            self.mean = X.mean(axis=0)
            X = X - self.mean
        if min(n, d) <= _AXES and n_machines >= 4:
            X = self._in_axes(X)
        self.X = np.ascontiguousarray(X)
        self.XT = self.X.T
        self.squares = (self.X**2).T

    def _in_axes(self, X: np.ndarray) -> np.ndarray:
        n, d = X.shape
        if d <= n:
            self.back = scipy.linalg.eigh(X.T @ X, check_finite=False)[1]
            return np.asarray(X @ self.back)
        values, vectors = scipy.linalg.eigh(X @ X.T, check_finite=False)
        kept = values > 1e-13 * max(values[-1], 1e-300)
        roots = np.sqrt(values[kept])
        self.back = X.T @ (vectors[:, kept] / roots)
        return np.asarray(vectors[:, kept] * roots)

    def rotated(self, coef: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.mean is not None:
            b = b + coef @ self.mean
        W = coef.T if self.back is None else self.back.T @ coef.T
        return np.array(W, np.float64), np.array(b, np.float64)

    def unrotated(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coef = (W if self.back is None else self.back @ W).T
        return coef, b if self.mean is None else b - coef @ self.mean


class _Block:
    """Machines that are trained together: columns of (n, m) arrays."""

    def __init__(self, rows: _Rows, targets: np.ndarray, C: float, loss: str, tol: float, max_iter: int) -> None:
        self.rows, self.tol, self.max_iter = rows, tol, max_iter
        self.is_hinge = loss == "hinge"
        n, m = targets.shape
        self.y, self.u = np.sign(targets), C * np.abs(targets)
        self.W, self.b = np.zeros((rows.X.shape[1], m)), np.zeros(m)
        self.alpha = np.zeros((n, m)) if self.is_hinge else None
        self.objective, self.gap = np.zeros(m), np.full(m, np.inf)
        self.converged, self.n_iter = np.zeros(m, bool), 0

    def solve(self) -> None:
        if not self.is_hinge:
            self._inner(np.arange(len(self.b)), 2.0 * self.u, self.tol)
            return
        steepness = np.ones(len(self.b))
        for _ in range(40):
            left = np.flatnonzero(~self.converged)
            if not len(left) or self.n_iter >= self.max_iter:
                break
            self._inner(left, self.u[:, left] * steepness[left], 0.1 * self.tol)
            self._certify(left)
            steepness[left] = np.minimum(steepness[left] * _STEEP, 1e6)

    # ------------------------------------------------------------------ Newton steps

    def _inner(self, every: np.ndarray, sigma: np.ndarray, tol: Any) -> None:
        """Newton steps for the machines ``every``, until ½‖gradient‖² is below tol times the objective."""
        rows = self.rows
        tol = np.full(len(every), tol)
        local: np.ndarray = np.arange(len(every))
        y, u = self.y[:, every], self.u[:, every]
        alpha = None if self.alpha is None else self.alpha[:, every]
        W, b = self.W[:, every], self.b[every]
        f = rows.X @ W + b
        steps = 0
        while True:
            a, value = self._multipliers(f, y, u, alpha, sigma)
            residual = y * a
            gradient = W - rows.XT @ residual
            slope = -residual.sum(axis=0) if rows.fit_intercept else np.zeros(len(b))
            objective = 0.5 * (W * W).sum(axis=0) + value
            left_to_gain = 0.5 * (gradient * gradient).sum(axis=0)
            total = a.sum(axis=0) + 1e-300
            done = (left_to_gain <= tol * np.maximum(objective, 1e-12)) & (np.abs(slope) <= 1e-3 * np.sqrt(tol) * total)
            ended = steps >= self.max_iter or self.n_iter + steps >= self.max_iter
            leaving = done | ended
            if leaving.any():
                place = every[local[leaving]]
                self.W[:, place], self.b[place] = W[:, leaving], b[leaving]
                if self.alpha is not None:
                    self.alpha[:, place] = a[:, leaving]
                else:
                    self.objective[place] = objective[leaving]
                    self.gap[place] = left_to_gain[leaving] / np.maximum(objective[leaving], 1e-300)
                    self.converged[place] = done[leaving]
            if leaving.all():
                break
            stay = ~leaving
            if leaving.any():
                W, b, f, a, y, u, sigma, gradient, slope, objective, tol, local = (
                    part[..., stay] for part in (W, b, f, a, y, u, sigma, gradient, slope, objective, tol, local)
                )
                alpha = None if alpha is None else alpha[:, stay]
            curvature = np.where((a > 0) & (a < u if alpha is not None else True), sigma, 0.0)
            D, shift = self._direction(gradient, slope, curvature)
            df = rows.X @ D + shift
            W, b, f = self._search(W, b, f, D, shift, df, y, u, alpha, sigma, gradient, slope, objective)
            steps += 1
        self.n_iter += steps

    @staticmethod
    def _multipliers(f: Any, y: Any, u: Any, alpha: Any, sigma: Any) -> tuple[np.ndarray, np.ndarray]:
        """a of each row and machine, and the sum of losses of each machine."""
        margin = 1.0 - y * f
        if alpha is None:
            np.maximum(margin, 0.0, out=margin)
            a = sigma * margin
            return a, 0.5 * np.einsum("ij,ij->j", a, margin)
        a = np.clip(alpha + sigma * margin, 0.0, u)
        change = a - alpha
        with np.errstate(invalid="ignore", divide="ignore"):
            quadratic = np.where(sigma > 0, change * change / (2.0 * sigma), 0.0)
        return a, np.einsum("ij,ij->j", a, margin) - quadratic.sum(axis=0)

    def _direction(self, gradient: Any, slope: Any, curvature: Any) -> tuple[np.ndarray, np.ndarray]:
        """−H⁻¹ gradient by conjugate gradients, with the diagonal of H before it; all machines at once."""
        rows = self.rows
        diagonal = 1.0 + rows.squares @ curvature
        weight = curvature.sum(axis=0)
        ridge = np.where(weight > 0, 1e-10 * weight, np.maximum(np.abs(slope), 1e-300))
        below = weight + ridge
        D, shift = np.zeros_like(gradient), np.zeros_like(slope)
        r, q = -gradient, -slope
        z, c = r / diagonal, q / below
        p, s = z.copy(), c.copy()
        rz = (r * z).sum(axis=0) + q * c
        first = rz.copy()
        for step in range(200):
            g = curvature * (rows.X @ p + s)
            Hp = p + rows.XT @ g
            Hs = g.sum(axis=0) + ridge * s if rows.fit_intercept else ridge * s
            bend = (p * Hp).sum(axis=0) + s * Hs
            t = np.where(bend > 0, rz / np.maximum(bend, 1e-300), 0.0)
            D += t * p
            shift += t * s
            r -= t * Hp
            q = q - t * Hs
            z, c = r / diagonal, q / below
            after = (r * z).sum(axis=0) + q * c
            if (after <= 0.01 * first).all() and step >= 1:
                break
            ratio = after / np.maximum(rz, 1e-300)
            p = z + ratio * p
            s = c + ratio * s
            rz = after
        return D, shift

    def _search(
        self, W: Any, b: Any, f: Any, D: Any, shift: Any, df: Any, y: Any, u: Any, alpha: Any, sigma: Any,
        gradient: Any, slope: Any, before: Any,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """The step 1, halved for each machine until its objective has fallen."""
        fall = (gradient * D).sum(axis=0) + slope * shift
        ww, wd, dd = (W * W).sum(axis=0), (W * D).sum(axis=0), (D * D).sum(axis=0)
        t = np.ones(len(b))
        for _ in range(30):
            value = self._multipliers(f + t * df, y, u, alpha, sigma)[1]
            after = 0.5 * (ww + 2.0 * t * wd + t * t * dd) + value
            short = after > before + 1e-4 * t * fall + 1e-11 * np.abs(before)
            if not short.any():
                break
            t[short] *= 0.5
        else:
            t[short] = 0.0
        return W + t * D, b + t * shift, f + t * df

    def _certify(self, left: np.ndarray) -> None:
        """Objective and duality gap of the hinge, for multipliers whose heavier side is scaled down."""
        rows = self.rows
        W, y, u, alpha = self.W[:, left], self.y[:, left], self.u[:, left], self.alpha[:, left]  # type: ignore[index]
        f = rows.X @ W + self.b[left]
        primal = 0.5 * (W * W).sum(axis=0) + (u * np.maximum(0.0, 1.0 - y * f)).sum(axis=0)
        if rows.fit_intercept:
            plus, minus = (alpha * (y > 0)).sum(axis=0), (alpha * (y < 0)).sum(axis=0)
            light = np.minimum(plus, minus)
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.nan_to_num(light / plus), np.nan_to_num(light / minus)
            alpha = alpha * np.where(y > 0, *shares)
        V = rows.XT @ (y * alpha)
        dual = alpha.sum(axis=0) - 0.5 * (V * V).sum(axis=0)
        self.objective[left] = primal
        # Labels of one side leave nothing to lose: then the objective itself is 0.
        self.gap[left] = (primal - dual) / np.maximum(primal, 1e-6 * u.sum(axis=0) + 1e-300)
        self.converged[left] = self.gap[left] <= self.tol
