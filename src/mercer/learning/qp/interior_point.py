"""An interior point method for support vector machines with an offset.

    primal   P = min over w, b   ½‖w‖² + Σ_k loss_k(f_k),          f_k = ⟨w, m_k⟩ + b
    dual     D = max over s      Σ_k h_k(s_k) − ½ sᵀKs,            Σ_k s_k = 0,   w = Σ_k s_k m_k

with h concave and piecewise linear: s_k is a sum of **pieces** ±x, 0 ≤ x ≤ cap (which may be infinite), each with its
own slope (`Pieces`). Two problems have this form:

    tubes             loss = u max(0, l − f, f − h): pieces +x of slope l and −x of slope h, both up to u
    relative margin   loss = C max(0, 1 − a), |a| ≤ B, a = y f: pieces of slope 1 up to C, and of −B without a bound

A step solves one linear system, (I + E^½ K E^½) with a diagonal E ≥ 0, or an equivalent one of the size of the features
if these are fewer. Its eigenvalues are at least 1 even if K is singular, and the number of steps hardly depends on the
bounds. The offset and Σ_k s_k = 0 are part of the system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["Pieces", "TubeFit", "fit_relative_margin", "fit_tubes"]

_BACK = 0.995  # of the way to the nearest bound
_NEAR = (1e-5, 1e-3, 1e-7)  # of a bound: coefficients this near to 0 or to it are tried there at the end
_STEPS = 200
_STALLED = 5  # steps without a smaller gap
_ROUNDING = 1e-13  # of the losses at w = 0: steps hardly make gaps smaller than that
_OVERFLOW = "inner products of the features are beyond the range of numbers: scale the features"


@dataclass(frozen=True)
class Pieces:
    """The variables x ≥ 0 of the coefficients: s = Σ sign · x − base, for each point.

    A piece has the slope ``sign · target`` in h, and lies between 0 and ``cap``.
    """

    at: np.ndarray
    sign: np.ndarray
    target: np.ndarray
    cap: np.ndarray
    base: np.ndarray

    @classmethod
    def of_tubes(cls, low: np.ndarray, high: np.ndarray, upper: np.ndarray) -> Pieces:
        """Return two pieces per point, or one from −u to u if both ends of its tube are equal."""
        wide = np.flatnonzero(high > low)
        at = np.concatenate([np.arange(len(low)), wide])
        sign = np.concatenate([np.ones(len(low)), -np.ones(len(wide))])
        cap = upper[at] * np.where(np.isin(at, wide), 1.0, 2.0)
        return cls(at, sign, np.concatenate([low, high[wide]]), cap, np.where(high > low, 0.0, upper))

    @classmethod
    def of_relative_margin(cls, y: np.ndarray, C: np.ndarray, B: float) -> Pieces:
        """Return multipliers of the hinge, and with a finite B those of a ≤ B and of a ≥ −B."""
        n = len(y)
        if not np.isfinite(B):
            return cls(np.arange(n), y, y, C.copy(), np.zeros(n))
        cap = np.concatenate([C, np.full(2 * n, np.inf)])
        return cls(
            np.tile(np.arange(n), 3), np.concatenate([y, -y, y]), np.concatenate([y, B * y, -B * y]), cap, np.zeros(n)
        )

    def sums(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients of the points."""
        return np.asarray(np.bincount(self.at, self.sign * x, minlength=len(self.base)) - self.base)


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
            self.wide = np.column_stack([self.F, np.ones(len(self.F))])
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
            weighted = self.root[:, None] * self.wide
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

    Slopes of the pieces, g = ±(f − target), are z − v with multipliers z, v ≥ 0 of the two bounds (v = 0 where there is
    no upper one); on the path x z = (cap − x) v = μ. Both move by their own steps: f − target computed anew would lose
    all digits near a bound.
    """

    def __init__(self, products: _Products, pieces: Pieces, b: float, x: np.ndarray) -> None:
        self.products, self.pieces, self.b, self.x = products, pieces, b, x
        self.n = len(pieces.base)
        self.bounded = np.isfinite(pieces.cap)
        self._arrive()
        g = self.slopes
        room = max(float(np.abs(g).mean()), 1e-12)
        self.z, self.v = np.maximum(g, 0.0) + room, np.where(self.bounded, np.maximum(-g, 0.0) + room, 0.0)

    def _arrive(self) -> None:
        """What follows from x and b: coefficients, scores without b, slopes g, and cap − x."""
        pieces = self.pieces
        self.beta = pieces.sums(self.x)
        self.f = self.products.scores(self.beta)
        self.slopes = pieces.sign * ((self.f + self.b)[pieces.at] - pieces.target)
        self.rest = np.where(self.bounded, pieces.cap - self.x, 1.0)

    def gap(self) -> float:
        """Σ x z + (cap − x) v, and what is missing to slopes that are z − v: at least P − D."""
        missing = np.abs(self.slopes - self.z + self.v)
        return float(self.x @ (self.z + missing) + self.rest @ self.v)

    def step(self) -> None:
        """One step of predictor and corrector."""
        x, z, v, s, bounded = self.x, self.z, self.v, self.rest, self.bounded
        missing = self.slopes - z + v
        total = -float(self.beta.sum())
        d = z / x + v / s
        E = np.bincount(self.pieces.at, 1.0 / d, minlength=self.n)
        self.products.factor(E)

        def direction(xz: np.ndarray, sv: np.ndarray) -> tuple[np.ndarray, ...]:
            sv = np.where(bounded, sv, 0.0)
            r = xz / x - sv / s - missing
            rho = np.bincount(self.pieces.at, self.pieces.sign * r / d, minlength=self.n)
            beta, b = self.products.solve(rho, total)
            dx = (r - self.pieces.sign * ((rho - beta) / E)[self.pieces.at]) / d
            return dx, (xz - z * dx) / x, np.where(bounded, (sv + v * dx) / s, 0.0), np.array(b)

        count = len(x) + int(bounded.sum())
        mean = float(x @ z + s @ v) / count
        dx, dz, dv, _ = direction(-x * z, -s * v)
        t = self._reach(dx, dz, dv, 1.0)
        # v and its change are 0 where there is no cap.
        after = float((x + t * dx) @ (z + t * dz) + (s - t * dx) @ (v + t * dv)) / count
        centre = mean * (after / mean) ** 3
        dx, dz, dv, db = direction(centre - x * z - dx * dz, centre - s * v + dx * dv)
        t = self._reach(dx, dz, dv, _BACK)
        most = np.where(bounded, (1 - 1e-15) * self.pieces.cap, np.inf)
        self.x = np.clip(x + t * dx, 1e-15 * np.where(bounded, self.pieces.cap, 0.0), most)
        self.z, self.v = z + t * dz, v + t * dv
        self.b += t * float(db)
        self._arrive()

    def _reach(self, dx: np.ndarray, dz: np.ndarray, dv: np.ndarray, part: float) -> float:
        """The longest step that keeps everything positive."""
        values = np.concatenate([self.x, self.rest[self.bounded], self.z, self.v[self.bounded]])
        slopes = np.concatenate([dx, -dx[self.bounded], dz, dv[self.bounded]])
        falling = slopes < 0
        return min(1.0, part * float((values[falling] / -slopes[falling]).min(initial=np.inf)))


# ---------------------------------------------------------------------------------------------------- tubes


@dataclass(frozen=True)
class TubeFit:
    """β, b, P, P − D, the number of steps, whether P − D is at most tol · P, and whether rounding ended them early."""

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
    """Minimise ½‖w‖² + Σ_k u_k max(0, l_k − f_k, f_k − h_k) to a gap of ``tol`` · P.

    ``points`` holds the m_k as rows, or with ``gram`` their inner products.
    """
    used = upper > 0
    if low[used].max() <= high[used].min():  # one number is in all tubes: w = 0
        return TubeFit(np.zeros(len(low)), float(low[used].max() + high[used].min()) / 2, 0.0, 0.0)
    points = points[used]
    points = points[:, used] if gram else points
    solved = _Tubes(_Products(points, gram), low[used], high[used], upper[used]).followed(tol, max_iter or _STEPS)
    coefficients = np.zeros(len(low))
    coefficients[used] = solved.coefficients
    return replace(solved, coefficients=coefficients)


class _Tubes:
    """Everything stays feasible here, so P − D is known at every step."""

    def __init__(self, products: _Products, low: np.ndarray, high: np.ndarray, upper: np.ndarray) -> None:
        self.products, self.low, self.high, self.upper = products, low, high, upper
        pieces = Pieces.of_tubes(low, high, upper)
        self.path = _Path(products, pieces, float(np.median((low + high) / 2)), pieces.cap / 2)

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
        path = self.path
        best = self._evaluated(path.beta, path.b)
        nothing = _ROUNDING * float(self.upper @ (np.abs(self.low) + np.abs(self.high)))
        if not np.isfinite(best.objective + self.products.size()):
            raise ValueError(_OVERFLOW)
        steps = since = 0
        while best.gap > max(tol * best.objective, nothing) and steps < max_iter and since < _STALLED:
            path.step()
            steps += 1
            point = self._evaluated(path.beta, path.b)
            since = 0 if point.gap < best.gap else since + 1  # also where it is NaN
            best = point if point.gap < best.gap else best
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


# ---------------------------------------------------------------------------------------------------- relative margin


def fit_relative_margin(V: np.ndarray, y: np.ndarray, C: np.ndarray, B: float, tol: float = 1e-10) -> np.ndarray:
    """Return the coefficients s of w = Vᵀ s with Σ s = 0; those near a bound are set to it.

    Steps over two variables (``cpp/solvers/relative_margin.cpp``) are slow if the kernel matrix has a low rank; this
    method is not. Its result is a start for them, so that the certificate comes from one place. It stops at the
    relative gap ``tol``, or returns the last point if rounding ends it earlier.
    """
    pieces = Pieces.of_relative_margin(y, C, B)
    bound = C[pieces.at]
    path = _Path(_Products(V, gram=False), pieces, 0.0, bound / 2)
    best, kept, since = np.inf, (path.x, path.z, path.v), 0
    for _ in range(_STEPS):
        value = 0.5 * float(path.beta @ path.f) + float(bound @ path.v)
        gap = path.gap() / max(value, 1e-300)
        since += 1
        if gap < best:
            best, kept, since = gap, (path.x, path.z, path.v), 0
        # Near the optimum a gap that grows is rounding, and grows fast; far from it the values still fall.
        if gap <= tol or since >= (2 if best < 1e-6 else 2 * _STALLED) or not np.isfinite(gap):
            break
        try:
            with np.errstate(all="ignore"):
                path.step()
        except ValueError:  # rounding has spoilt the system
            break
    x, z, v = kept
    # Of each complementary pair the smaller one is zero at the optimum.
    full = path.bounded & (pieces.cap - x < bound * v)
    x = np.where(full, pieces.cap, np.where(x < bound * z, 0.0, x))
    return _balanced(pieces.sums(x), y, C)


def _balanced(s: np.ndarray, y: np.ndarray, C: np.ndarray) -> np.ndarray:
    """s with Σ s = 0: what rounding left over goes to the coefficient that is farthest from its corners."""
    delta = y * s
    distance = np.minimum(np.abs(delta), np.abs(delta - C))
    s = s.copy()
    s[int(distance.argmax())] -= s.sum()
    return s
