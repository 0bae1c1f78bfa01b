"""Regression with a tube for each point, by an interior point method.

    primal   P = min over w, b   ½‖w‖² + Σ_k u_k max(0, l_k − f_k, f_k − h_k),    f_k = ⟨w, m_k⟩ + b,   l_k ≤ h_k
    dual     D = max over β      Σ_k (l_k β_k⁺ − h_k β_k⁻) − ½ βᵀKβ,    |β_k| ≤ u_k,   Σ_k β_k = 0,   w = Σ_k β_k m_k

A step solves one linear system, (I + E^½ K E^½) with a diagonal E ≥ 0, or its equal of the size of the features where
these are fewer: its eigenvalues are at least 1 however singular K is, and the number of steps hardly depends on the
bounds. Everything stays feasible, so P − D is known at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["TubeFit", "fit_tubes"]

_BACK = 0.995  # of the way to the nearest bound
_NEAR = (1e-5, 1e-3, 1e-7)  # of a bound: coefficients this near to 0 or to it are tried there at the end
_STEPS = 200
_STALLED = 5  # steps without a smaller gap
_ROUNDING = 1e-13  # of the losses at w = 0: steps hardly make gaps smaller than that
_OVERFLOW = "inner products of the features are beyond the range of numbers: scale the features"


@dataclass(frozen=True)
class TubeFit:
    """β, b, P, P − D, the steps taken, whether P − D is at most tol · P, and whether rounding ended them before."""

    coefficients: np.ndarray
    intercept: float
    objective: float
    gap: float
    steps: int = 0
    converged: bool = True
    stalled: bool = False


def fit_tubes(
    points: Any, low: np.ndarray, high: np.ndarray, upper: np.ndarray, tol: float, max_iter: int | None, *, gram: bool
) -> TubeFit:
    """Minimise P to a gap of ``tol`` · P; ``points`` are the m_k as rows, or with ``gram`` their inner products."""
    used = upper > 0
    if low[used].max() <= high[used].min():  # one number is in all tubes: w = 0
        return TubeFit(np.zeros(len(low)), float(low[used].max() + high[used].min()) / 2, 0.0, 0.0)
    points = points[used]
    points = points[:, used] if gram else points
    found = _Path(_Products(points, gram), low[used], high[used], upper[used]).followed(tol, max_iter or _STEPS)
    coefficients = np.zeros(len(low))
    coefficients[used] = found.coefficients
    return replace(found, coefficients=coefficients)


class _Products:
    """Inner products of centred points: as Σ_k β_k = 0, only b knows the difference."""

    def __init__(self, points: Any, gram: bool) -> None:
        self.F: np.ndarray | None = None
        self.mean: np.ndarray | None = None
        narrow = not gram and points.shape[1] < points.shape[0]
        if narrow or not (gram or sp.issparse(points)):
            F = points.toarray() if sp.issparse(points) else points
            self.mean = F.mean(axis=0)
            self.centred = np.ascontiguousarray(F - self.mean)  # before any product: large means take its digits
        if narrow:
            self.F = self.centred
            return
        if self.mean is not None:
            points = self.centred @ self.centred.T
        elif not gram:
            points = (points @ points.T).toarray()
        self.middle = points.mean(axis=0)
        self.K = np.asarray(points - self.middle - self.middle[:, None] + self.middle.mean())

    def size(self) -> float:
        """The mean of ‖m_k‖²."""
        squares = np.diagonal(self.K) if self.F is None else np.square(self.F).sum(axis=1)
        return max(float(squares.mean()), 1e-300)

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """Kβ."""
        return np.asarray(self.K @ beta if self.F is None else self.F @ (beta @ self.F))

    def offset(self, beta: np.ndarray) -> float:
        """What the points have besides as they were given, less than here."""
        return -float(self.middle @ beta if self.mean is None else self.mean @ (beta @ self.centred))

    def factor(self, E: np.ndarray) -> None:
        """Prepare `solve` for a diagonal E."""
        self.E, self.root = E, np.sqrt(E)
        if self.F is None:
            H = self.root[:, None] * self.K * self.root
            H.flat[:: len(H) + 1] += 1.0
        else:
            d = self.F.shape[1]
            weighted = self.root[:, None] * np.column_stack([self.F, np.ones(len(E))])
            H = weighted.T @ weighted
            H.flat[: d * (d + 1) : d + 2] += 1.0
        ridge = 0.0
        while True:  # K may be indefinite by rounding, or because its kernel is
            try:
                self.H = cho_factor(H, lower=True, overwrite_a=False, check_finite=False)
                break
            except LinAlgError as error:
                if not np.isfinite(H).all():
                    raise ValueError(_OVERFLOW) from error
                ridge = 10 * ridge if ridge else 1e-14 * float(np.abs(H.diagonal()).max())
                H.flat[:: len(H) + 1] += ridge
        if self.F is None:
            self.unit = cho_solve(self.H, self.root, check_finite=False)

    def solve(self, rho: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        """Δβ = ρ − E (KΔβ + Δb) with Σ_k Δβ_k = total; and Δb."""
        if self.F is None:
            inner = cho_solve(self.H, rho / self.root, check_finite=False)
            shift = float(self.root @ inner - total) / float(self.root @ self.unit)
            change = self.root * (inner - shift * self.unit)
        else:
            moved = cho_solve(self.H, np.append(rho @ self.F, rho.sum() - total), check_finite=False)
            shift = float(moved[-1])
            change = rho - self.E * (self.F @ moved[:-1] + shift)
        return change + self.E * ((total - change.sum()) / self.E.sum()), shift  # large E lose digits of the sum


class _Path:
    """The central path of the dual.

    Where l < h there are two variables x, 0 ≤ x ≤ u, for β⁺ and β⁻; where l = h one, β + u, between 0 and 2u. Their
    slopes g = ±(f − t) are z − v with multipliers z, v ≥ 0 of the two bounds; on the path x z = (cap − x) v = μ.
    """

    def __init__(self, products: _Products, low: np.ndarray, high: np.ndarray, upper: np.ndarray) -> None:
        self.products, self.low, self.high, self.upper = products, low, high, upper
        wide = np.flatnonzero(high > low)
        self.n = len(low)
        self.at = np.concatenate([np.arange(self.n), wide])
        self.sign = np.concatenate([np.ones(self.n), -np.ones(len(wide))])
        self.target = np.concatenate([low, high[wide]])
        self.cap = upper[self.at] * np.where(np.isin(self.at, wide), 1.0, 2.0)
        self.base = np.where(high > low, 0.0, upper)
        self.x = self.cap / 2
        self.b = float(np.median((low + high) / 2))
        self.f = np.zeros(self.n)
        g = self._slopes()
        room = max(float(np.abs(g).mean()), 1e-12)
        self.z, self.v = np.maximum(g, 0.0) + room, np.maximum(-g, 0.0) + room

    @property
    def beta(self) -> np.ndarray:
        """Coefficients of the points."""
        return np.asarray(np.bincount(self.at, self.sign * self.x, minlength=self.n) - self.base)

    def _slopes(self) -> np.ndarray:
        return np.asarray(self.sign * (self.f[self.at] + self.b - self.target))

    def _evaluated(self, beta: np.ndarray, b: float) -> TubeFit:
        """P, and P − D."""
        f = self.products.scores(beta)
        norm = float(beta @ f)
        outside = np.maximum(np.maximum(self.low - f - b, f + b - self.high), 0.0)
        primal = norm / 2 + float(self.upper @ outside)
        dual = float(self.low @ np.maximum(beta, 0.0) + self.high @ np.minimum(beta, 0.0)) - norm / 2
        return TubeFit(beta, b, primal, primal - dual)

    def followed(self, tol: float, max_iter: int) -> TubeFit:
        """Steps until the gap is small."""
        best = self._evaluated(self.beta, self.b)
        nothing = _ROUNDING * float(self.upper @ (np.abs(self.low) + np.abs(self.high)))
        if not np.isfinite(best.objective + self.products.size()):
            raise ValueError(_OVERFLOW)
        steps = since = 0
        while best.gap > max(tol * best.objective, nothing) and steps < max_iter and since < _STALLED:
            self._step()
            steps += 1
            found = self._evaluated(self.beta, self.b)
            since = 0 if found.gap < best.gap else since + 1  # also where it is NaN
            best = found if found.gap < best.gap else best
        for near in _NEAR:
            polished = self._polished(best, near)
            if polished.gap <= max(best.gap, tol * polished.objective) and polished is not best:
                best = polished
                break
        converged = best.gap <= tol * best.objective
        return replace(
            best,
            intercept=best.intercept + self.products.offset(best.coefficients),
            gap=max(best.gap, 0.0),
            steps=steps,
            converged=converged,
            stalled=not converged and steps < max_iter,
        )

    def _step(self) -> None:
        """One step of predictor and corrector."""
        x, z, v, s = self.x, self.z, self.v, self.cap - self.x
        missing = self._slopes() - z + v
        total = -float(self.beta.sum())
        d = z / x + v / s
        E = np.bincount(self.at, 1.0 / d, minlength=self.n)
        self.products.factor(E)

        def direction(xz: np.ndarray, sv: np.ndarray) -> tuple[np.ndarray, ...]:
            r = xz / x - sv / s - missing
            rho = np.bincount(self.at, self.sign * r / d, minlength=self.n)
            beta, b = self.products.solve(rho, total)
            dx = (r - self.sign * ((rho - beta) / E)[self.at]) / d
            return dx, (xz - z * dx) / x, (sv + v * dx) / s, np.array(b)

        mean = float(x @ z + s @ v) / (2 * len(x))
        dx, dz, dv, _ = direction(-x * z, -s * v)
        t = self._reach(dx, dz, dv, 1.0)
        after = float((x + t * dx) @ (z + t * dz) + (s - t * dx) @ (v + t * dv)) / (2 * len(x))
        centre = mean * (after / mean) ** 3
        dx, dz, dv, db = direction(centre - x * z - dx * dz, centre - s * v + dx * dv)
        t = self._reach(dx, dz, dv, _BACK)
        self.x = np.clip(x + t * dx, 1e-15 * self.cap, (1 - 1e-15) * self.cap)
        self.z, self.v = z + t * dz, v + t * dv
        self.b += t * float(db)
        self.f = self.products.scores(self.beta)

    def _reach(self, dx: np.ndarray, dz: np.ndarray, dv: np.ndarray, part: float) -> float:
        """The longest step that keeps everything positive."""
        values = np.concatenate([self.x, self.cap - self.x, self.z, self.v])
        slopes = np.concatenate([dx, -dx, dz, dv])
        falling = slopes < 0
        return min(1.0, part * float((values[falling] / -slopes[falling]).min(initial=np.inf)))

    def _polished(self, fit: TubeFit, near: float) -> TubeFit:
        """The same with coefficients next to 0 or to a bound set there, all other points on the edge of their tubes.

        These equations are solved by Newton's steps of the augmented Lagrangian, which need no regular K.
        """
        beta, b = fit.coefficients, fit.intercept
        size = np.abs(beta) / self.upper
        zero = (size < near) & (self.high > self.low)
        free = ~zero & (size <= 1 - near)
        moved = np.where(zero, 0.0, np.where(free, beta, np.sign(beta) * self.upper))
        if not free.any():
            return fit
        edge = np.where(moved > 0, self.low, self.high)
        self.products.factor(np.where(free, 1e6 / self.products.size(), 1e-300))
        for _ in range(4):
            off = np.where(free, edge - self.products.scores(moved) - b, 0.0)
            change, shift = self.products.solve(self.products.E * off, -float(moved.sum()))
            moved, b = np.where(free, moved + change, moved), b + shift
        if (np.abs(moved) > self.upper).any():
            return fit
        return self._evaluated(moved, b)
