"""The energy model of restricted Boltzmann machines: θ·φ(v, h) = vᵀ W h + bᵀ h + cᵀ v, hidden units summed out.

    log p̃(v) = cᵀ v + Σ_j log(1 + exp(b_j + W_jᵀ v))

Parameters are [W (visible × hidden) | b | c], in single precision. With Gaussian visible units −½‖v‖² is added at every
temperature, so that a field at inverse temperature 0 is a standard normal one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from mercer import _core
from mercer.learning.learners import MOST_STATES, EnergyModel, Keys, Path, log_odds

__all__ = ["HiddenUnits"]

_BLOCK = 1 << 12
_MOST_FLIPS = 64  # visible units of a batch whose flips stand for those of all
_LOG_2PI = float(np.log(2.0 * np.pi))


class FieldPath(Path):
    """A path that keeps the fields of hidden units at both ends: those in between need no further product."""

    model: HiddenUnits

    def __init__(self, model: HiddenUnits, states: Any, start: Any, end: Any) -> None:
        super().__init__(model, states, start, end, self._density)
        self.squares = model.squares(states)
        self.last, self.linear = model.fields(states, end), model.linear(states, model.parts(end)[2])
        self.first: Any = None
        self.offset: Any = 0.0
        if start is not None:
            self.first, self.offset = model.fields(states, start), model.linear(states, model.parts(start)[2])

    def _density(self, beta: Any) -> Any:
        share = beta[:, 0] if getattr(beta, "ndim", 0) else beta  # one number, or one for each row
        bias = self.offset + share * (self.linear - self.offset)
        a, b = (self.last, None) if self.first is None else (self.first, self.last)
        return (bias + self.model.softplus_sums(a, b, beta) + self.squares)[:, None]

    def move(self, beta: float, keys: Keys, backward: bool = False) -> Any:
        """Return the states after a sweep under β end, which is its own reversal."""
        model, c = self.model, self.model.parts(self.end)[2]
        h = model.draw_scaled(self.last, beta, keys.next())
        return model.visible(h, model._transposed(self.end), beta * c, beta, keys.next())

    def advance(self, index: np.ndarray, beta: float, keys: Keys) -> Any:
        """Return the chosen states after a sweep at β."""
        model, scale = self.model, beta if self.start is None else 1.0
        fields = self.last if self.first is None else self.first + beta * (self.last - self.first)
        h = model.draw_scaled(model.take(fields, index), scale, keys.next())
        matrix, bias = model._transposed(self.end), model.parts(self.end)[2]
        if self.start is not None and beta != 1.0:
            matrix = model.between(model._transposed(self.start), matrix, beta)
            bias = model.between(model.parts(self.start)[2], bias, beta)
        return model.visible(h, matrix, bias if scale == 1.0 else scale * bias, scale, keys.next())


class HiddenUnits(EnergyModel):
    """Binary or Gaussian visible units and binary hidden ones, in NumPy arrays.

    Parameters
    ----------
    n_visible, n_hidden : int
    gaussian : bool
    threads : int
    """

    def __init__(self, n_visible: int, n_hidden: int, gaussian: bool = False, threads: int = 1) -> None:
        self.n_visible, self.n_hidden, self.gaussian, self.threads = n_visible, n_hidden, gaussian, threads
        self.n_couplings = n_visible * n_hidden
        self.n_weights = self.n_couplings + n_hidden + n_visible
        self._kept: list[tuple[Any, Any]] = []  # parameters and their transposed matrix

    path_class: Any = FieldPath
    hidden_dtype: Any = np.uint8
    """Of draws of hidden units."""

    # ------------------------------------------------------------------ parameters

    def parts(self, theta: Any) -> tuple[Any, Any, Any]:
        """Return W, b and c as views."""
        size = self.n_visible * self.n_hidden
        weights = theta[:size].reshape(self.n_visible, self.n_hidden)
        return weights, theta[size : size + self.n_hidden], theta[size + self.n_hidden :]

    def _transposed(self, theta: Any) -> Any:
        for kept, matrix in self._kept:
            if kept is theta:
                return matrix
        matrix = np.empty((self.n_hidden, self.n_visible), np.float32)
        _core.fields.transpose(self.parts(theta)[0], matrix)
        self._kept = [(theta, matrix), *self._kept[:1]]
        return matrix

    # ------------------------------------------------------------------ primitives

    def fields(self, v: Any, theta: Any) -> Any:
        """Return b + v W."""
        W, b, _ = self.parts(theta)
        if self.gaussian:
            return v @ W + b
        out = np.empty((len(v), self.n_hidden), np.float32)
        _core.fields.half_sweep(v, W, b, 1.0, 0, 0, out, None, None, self.threads)
        return out

    def hidden(self, v: Any, theta: Any, key: int | None = None, beta: float = 1.0) -> tuple[Any, Any]:
        """Return the probabilities of hidden units, and draws of them where there is a key."""
        W, b, _ = self.parts(theta)
        p = np.empty((len(v), self.n_hidden), np.float32)
        h = None if key is None else np.empty(p.shape, np.uint8)
        if self.gaussian:
            _core.fields.sample_fields(v @ W + b, beta, key or 0, 0, p, h, self.threads)
        else:
            bias = b if beta == 1.0 else np.float32(beta) * b
            _core.fields.half_sweep(v, W, bias, beta, key or 0, 0, None, p, h, self.threads)
        return p, h

    def draw_hidden(self, v: Any, W: Any, bias: Any, beta: float, key: int) -> Any:
        """Draw hidden units with the log odds β v W + bias."""
        h = np.empty((len(v), self.n_hidden), np.uint8)
        if self.gaussian:
            _core.fields.sample_fields(np.float32(beta) * (v @ W) + bias, 1.0, key, 0, None, h, self.threads)
        else:
            _core.fields.half_sweep(v, W, bias, beta, key, 0, None, None, h, self.threads)
        return h

    def draw_scaled(self, fields: Any, beta: float, key: int) -> Any:
        """Draw hidden units with the log odds β fields."""
        h = np.empty(fields.shape, np.uint8)
        _core.fields.sample_fields(fields, beta, key, 0, None, h, self.threads)
        return h

    def visible(self, h: Any, matrix: Any, bias: Any, beta: float, key: int | None) -> Any:
        """Draw visible units given hidden ones, whose matrix is transposed; their means where there is no key."""
        shape = (len(h), self.n_visible)
        if self.gaussian:
            mean = np.empty(shape, np.float32)
            _core.fields.half_sweep(h, matrix, bias, beta, 0, 0, mean, None, None, self.threads)
            if key is None:
                return mean
            return mean + np.random.Generator(np.random.Philox(key=key)).standard_normal(shape, np.float32)
        if key is None:
            p = np.empty(shape, np.float32)
            _core.fields.half_sweep(h, matrix, bias, beta, 0, 0, None, p, None, self.threads)
            return p
        v = np.empty(shape, np.uint8)
        _core.fields.half_sweep(h, matrix, bias, beta, key, 0, None, None, v, self.threads)
        return v

    def softplus_sums(self, a: Any, b: Any, beta: float) -> Any:
        """Return Σ_j log(1 + e^f) of f = β a, or of f between a and b."""
        out = np.empty(len(a))
        _core.fields.softplus_sums(a, b, beta, out, self.threads)
        return out

    def linear(self, v: Any, c: Any) -> Any:
        """Return cᵀ v of each row."""
        return v.astype(np.float32) @ c

    def squares(self, v: Any) -> Any:
        """Return −½‖v‖² for Gaussian units, and 0 for binary ones."""
        return -0.5 * np.einsum("si,si->s", v, v, dtype=np.float64) if self.gaussian else 0.0

    def add_outer(self, v: Any, p: Any, scale: float, out: Any) -> None:
        """Add scale · vᵀ p to a matrix."""
        if self.gaussian:
            out += np.float32(scale) * (v.T @ p)
        else:
            _core.fields.outer(v, p, scale, out, self.threads)

    def between(self, a: Any, b: Any, beta: float) -> Any:
        """Return (1 − β) a + β b."""
        out = b - a
        out *= out.dtype.type(beta)
        out += a
        return out

    def zeros(self) -> Any:
        """Return parameters of zeros."""
        return np.zeros(self.n_weights, np.float32)

    # ------------------------------------------------------------------ what learners ask for

    def uniform(self, n: int, keys: Keys) -> Any:
        """Draw n states at inverse temperature 0."""
        random = np.random.Generator(np.random.Philox(key=keys.next()))
        if self.gaussian:
            return random.standard_normal((n, self.n_visible), np.float32)
        return random.integers(0, 2, (n, self.n_visible), np.uint8)

    def sweep(self, states: Any, theta: Any, keys: Keys, beta: float = 1.0, backward: bool = False) -> Any:
        """Draw hidden units given the visible ones and these again; as a kernel on v it is its own reversal."""
        W, b, c = self.parts(theta)
        h = self.draw_hidden(states, W, b if beta == 1.0 else beta * b, beta, keys.next())
        return self.visible(h, self._transposed(theta), c if beta == 1.0 else beta * c, beta, keys.next())

    def path(self, states: Any, start: Any, end: Any) -> Path:
        """Return log densities of visible states along the straight line between two parameters."""
        return self.path_class(self, states, start, end)

    def statistics(self, states: Any, theta: Any, weights: Any = None) -> Any:
        """Return the means of v hᵀ, h and v, hidden units by their probabilities."""
        out = self.zeros()
        self._add_statistics(states, self.hidden(states, theta)[0], 1.0, out, weights)
        return out

    def _add_statistics(self, v: Any, p: Any, sign: float, out: Any, weights: Any = None) -> None:
        W, b, c = self.parts(out)
        n = len(v)
        if weights is None:
            self.add_outer(v, p, sign / n, W)
            b += sign * p.mean(0)
            c += sign * v.mean(0, dtype=out.dtype)
        else:
            share = self.beside(weights[:, 0], p)
            self.add_outer(v, p * share[:, None], sign, W)
            b += sign * (share @ p)
            c += sign * self.linear(v.T, share)

    def beside(self, values: np.ndarray, like: Any) -> Any:
        """Return an array of the kind of another."""
        return values.astype(np.float32)

    # ------------------------------------------------------------------ shortcuts of learners

    def contrast(self, data: Any, theta: Any, keys: Keys) -> Any:
        """Return the gradient of CD-1: the probabilities of hidden units given the data serve both terms."""
        p, h = self.hidden(data, theta, keys.next())
        v = self.visible(h, self._transposed(theta), self.parts(theta)[2], 1.0, keys.next())
        out = self.zeros()
        self._add_statistics(data, p, 1.0, out)
        self._add_statistics(v, self.hidden(v, theta)[0], -1.0, out)
        return out

    def persist(self, particles: list[Any], theta: Any, keys: Keys) -> tuple[list[Any], Any]:
        """Return particles [v, h] after a sweep h → v → h, and their mean statistics."""
        h = particles[1] if len(particles) > 1 else self.hidden(particles[0], theta, keys.next())[1]
        v = self.visible(h, self._transposed(theta), self.parts(theta)[2], 1.0, keys.next())
        p, h = self.hidden(v, theta, keys.next())
        out = self.zeros()
        self._add_statistics(v, p, 1.0, out)
        return [v, h], out

    # ------------------------------------------------------------------ sums over all states

    def _smaller_side(self) -> int:
        return self.n_hidden if self.gaussian else min(self.n_hidden, self.n_visible)

    def is_small(self, states: int = 1 << 14) -> bool:
        """Whether a sum over the smaller layer has at most so many states."""
        return self._smaller_side() <= np.log2(states)

    def check_exact(self) -> None:
        """Raise unless a sum over the smaller layer is possible."""
        if not self.is_small(MOST_STATES):
            raise ValueError(
                f"an exact sum over the smaller layer of {self.n_visible} visible and {self.n_hidden} hidden units has"
                f" 2^{self._smaller_side()} states, more than 2^{int(np.log2(MOST_STATES))}: use a learner or a method"
                " that samples"
            )

    def exact(self, theta: Any) -> tuple[float, Any]:
        """Return log Z and the expected statistics."""
        W, b, c = (np.asarray(part, np.float64) for part in self.parts(theta))
        totals, sums = [], []
        for states in self._blocks():
            scores, other = self._layer(states, W, b, c)
            total = logsumexp(scores)
            share = np.exp(scores - total)
            v, h = (other, states) if self._over_hidden() else (states, other)
            sums.append(np.concatenate([((v * share[:, None]).T @ h).ravel(), share @ h, share @ v]))
            totals.append(total)
        log_z = logsumexp(totals)
        return float(log_z), (np.exp(np.array(totals) - log_z) @ np.array(sums)).astype(np.float32)

    def _over_hidden(self) -> bool:
        return self.gaussian or self.n_hidden <= self.n_visible

    def _blocks(self) -> Any:
        self.check_exact()
        size, total = self._smaller_side(), 1 << self._smaller_side()
        for a in range(0, total, _BLOCK):
            numbers = np.arange(a, min(a + _BLOCK, total))
            yield ((numbers[:, None] >> np.arange(size)) & 1).astype(np.float64)

    def _layer(self, states: np.ndarray, W: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log densities of states of the smaller layer, and the means of the other one given them."""
        if not self._over_hidden():
            fields = states @ W + b
            return states @ c + np.logaddexp(0.0, fields).sum(axis=1), expit(fields)
        fields = states @ W.T + c
        if self.gaussian:
            return states @ b + 0.5 * (fields**2 + _LOG_2PI).sum(axis=1), fields
        return states @ b + np.logaddexp(0.0, fields).sum(axis=1), expit(fields)

    def pseudo_gradient(self, data: Any, theta: Any) -> tuple[float, Any]:
        """Return the mean of Σ_i log p(v_i | others) and its gradient; of many units, some that stand for all.

        With s = 1 − 2 v_i, flipping unit i changes the log density by Δ = s c_i + Σ_j [softplus(a_j + s W_ij) −
        softplus(a_j)], and log p(v_i | others) = −log(1 + e^Δ).
        """
        if self.gaussian:
            raise ValueError("the pseudo-likelihood is that of binary units; visible='gaussian' needs another learner")
        W, _, c = self.parts(theta)
        units = np.arange(self.n_visible)
        if self.n_visible > _MOST_FLIPS:
            units = np.random.Generator(np.random.Philox(key=int(data.sum()))).choice(units, _MOST_FLIPS, replace=False)
        a = self.fields(data, theta)
        before, p = self.softplus_sums(a, None, 1.0), expit(a)
        sign = 1.0 - 2.0 * data[:, units].astype(np.float32)
        scale = self.n_visible / len(units) / len(data)
        total, flipped, value = np.zeros(len(data)), np.zeros_like(a), 0.0
        out = self.zeros()
        W_out, b_out, c_out = self.parts(out)
        for k, i in enumerate(units):
            fields = a + sign[:, k, None] * W[i]
            change = sign[:, k] * c[i] + self.softplus_sums(fields, None, 1.0) - before
            q = expit(change).astype(np.float32)
            value -= np.logaddexp(0.0, change).sum()
            other = q[:, None] * expit(fields)
            total += q
            flipped += other
            W_out[i] -= scale * (sign[:, k] @ other)
            c_out[i] -= scale * float(sign[:, k] @ q)
        residual = total[:, None].astype(np.float32) * p - flipped
        self.add_outer(data, residual, scale, W_out)
        b_out += scale * residual.sum(axis=0)
        return float(value) * scale, out

    # ------------------------------------------------------------------ annealed importance sampling

    def base(self, data: Any, theta: Any) -> Any:
        """Return parameters without W: independent units, as frequent as in the data."""
        start = np.zeros(self.n_weights, np.float32)
        if data is not None and not self.gaussian:
            start[-self.n_visible :] = log_odds(data, 0.005)
        return start

    def base_log_z(self, start: Any) -> float:
        """Return log Z of independent units; hidden ones are fair."""
        c = np.asarray(self.parts(start)[2], np.float64)
        visible = 0.5 * (c**2 + _LOG_2PI) if self.gaussian else np.logaddexp(0.0, c)
        return float(visible.sum()) + self.n_hidden * float(np.log(2.0))

    def base_draws(self, n: int, start: Any, keys: Keys) -> Any:
        """Draw visible states of independent units."""
        empty = np.zeros((n, self.n_hidden), np.uint8)
        return self.visible(empty, self._transposed(start), self.parts(start)[2], 1.0, keys.next())

    def step(self, states: Any, start: Any, end: Any, before: float, after: float, keys: Keys) -> tuple[Any, Any]:
        """Return log p̃_after − log p̃_before of the states, and the states after a sweep at ``after``.

        ``start`` has no W and no b: fields of hidden units are in proportion to β.
        """
        c0, (_, _, c) = self.parts(start)[2], self.parts(end)
        fields = self.fields(states, end)
        ratio = (after - before) * self.linear(states, c - c0)
        ratio = ratio + self.softplus_sums(fields, None, after) - self.softplus_sums(fields, None, before)
        h = self.draw_scaled(fields, after, keys.next())
        return ratio, self.visible(h, self._transposed(end), c0 + after * (c - c0), after, keys.next())

    def exact_draws(self, n: int, theta: Any, keys: Keys) -> Any:
        """Draw visible states of the field itself, by a sum over the smaller layer."""
        states = self.exact_layer(n, theta, keys)
        if not self._over_hidden():
            return states
        return self.visible(states, self._transposed(theta), self.parts(theta)[2], 1.0, keys.next())

    def exact_layer(self, n: int, theta: Any, keys: Keys) -> np.ndarray:
        """Draw states of the smaller layer from their marginal distribution, by a sum over all of them."""
        W, b, c = (np.asarray(part, np.float64) for part in self.parts(theta))
        scores = np.concatenate([self._layer(states, W, b, c)[0] for states in self._blocks()])
        sums = np.cumsum(np.exp(scores - scores.max()))
        chosen = np.minimum(np.searchsorted(sums, keys.uniforms(n) * sums[-1]), len(sums) - 1)
        return ((chosen[:, None] >> np.arange(self._smaller_side())) & 1).astype(np.uint8)
