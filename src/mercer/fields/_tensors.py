"""Restricted Boltzmann machines on tensors of torch, on any device: the same numbers up to rounding.

States are 0 and 1 in float32, as products of matrices want them. Random numbers are the functions of (key, row, column)
that the compiled loops use; on a GPU one kernel of our own draws them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

from mercer.fields._cuda import draw
from mercer.fields._units import FieldPath, HiddenUnits
from mercer.fields._walks import MOST_PARTICLES, Walks, walks_for
from mercer.learning.learners import Keys

__all__ = ["TensorUnits", "uniforms"]

_LOW = 0xFFFFFFFF


def _mixed(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(n: int, m: int, key: int, device: Any) -> torch.Tensor:
    """Return numbers in (0, 1) of a key, for n rows and m columns."""
    rows = _mixed(np.uint64(key) ^ _mixed(np.arange(n, dtype=np.uint64)))
    low = torch.as_tensor((rows & np.uint64(_LOW)).astype(np.int64), device=device)[:, None]
    high = torch.as_tensor((rows >> np.uint64(32)).astype(np.int64), device=device)[:, None]
    x = torch.arange(m, device=device) ^ low
    x = x ^ (x >> 16)
    x = (x * 0x21F0AAAD) & _LOW
    x = x ^ (x >> 15)
    x = (x * 0xD35A2D97) & _LOW
    x = ((x ^ (x >> 15)) + high) & _LOW
    x = x ^ (x >> 16)
    x = (x * 0x85EBCA6B) & _LOW
    x = x ^ (x >> 13)
    x = (x * 0xC2B2AE35) & _LOW
    x = x ^ (x >> 16)
    return (x >> 9).to(torch.float32) * 2.0**-23 + 2.0**-24


class TensorPath(FieldPath):
    """A path whose effective sample sizes are found for many lengths of a step at once."""

    def sizes(self, beta: float, steps: list[float]) -> list[float]:
        """Return the effective sample sizes of steps from β, as shares."""
        ends = torch.tensor([beta, *(beta + step for step in steps)], device=self.last.device)[:, None, None]
        fields = ends * self.last if self.first is None else torch.lerp(self.first, self.last, ends)
        bias = self.offset + ends[:, :, 0] * (self.linear - self.offset)
        density = softplus(fields).sum(2, dtype=torch.float64) + bias
        return _sizes(density[1:] - density[0]).tolist()


def _sizes(log_weights: torch.Tensor) -> torch.Tensor:
    weights = (log_weights - log_weights.amax(1, keepdim=True)).exp()
    return weights.sum(1) ** 2 / (log_weights.shape[1] * (weights * weights).sum(1))


class TensorUnits(HiddenUnits):
    """Visible and hidden units in tensors.

    Parameters
    ----------
    n_visible, n_hidden : int
    gaussian : bool
    threads : int
        Not used: torch has its own.
    """

    path_class = TensorPath
    tempers_rows = True
    hidden_dtype = np.float32

    def sweep(self, states: Any, theta: Any, keys: Keys, beta: Any = 1.0, backward: bool = False) -> Any:
        """Draw hidden units given the visible ones and these again; β may be a column, one for each row."""
        if not isinstance(beta, torch.Tensor):
            return super().sweep(states, theta, keys, beta, backward)
        W, _, c = self.parts(theta)
        h = self._draw(beta * self.fields(states, theta), keys.next())
        means = beta * torch.addmm(c, h, W.T)
        if self.gaussian:
            random = torch.Generator(device=means.device).manual_seed(keys.next() & (2**63 - 1))
            return means + torch.randn(means.shape, generator=random, device=means.device)
        return self._draw(means, keys.next())

    def __init__(self, n_visible: int, n_hidden: int, gaussian: bool = False, threads: int = 1) -> None:
        super().__init__(n_visible, n_hidden, gaussian, threads)
        self.device: Any = torch.device("cpu")

    def _transposed(self, theta: Any) -> Any:
        return self.parts(theta)[0].T

    def between(self, a: Any, b: Any, beta: float) -> Any:
        """Return (1 − β) a + β b."""
        return torch.lerp(a, b, beta)

    def _draw(self, fields: Any, key: int) -> Any:
        if fields.is_cuda and fields.is_contiguous():
            drawn = draw(fields, key)
            if drawn is not None:
                return drawn
        return (uniforms(fields.shape[0], fields.shape[1], key, fields.device) < torch.sigmoid(fields)).to(
            torch.float32
        )

    # ------------------------------------------------------------------ primitives

    def fields(self, v: Any, theta: Any) -> Any:
        """Return b + v W."""
        W, b, _ = self.parts(theta)
        return torch.addmm(b, v, W)

    def hidden(self, v: Any, theta: Any, key: int | None = None, beta: float = 1.0) -> tuple[Any, Any]:
        """Return the probabilities of hidden units, and draws of them where there is a key."""
        fields = self.fields(v, theta)
        if beta != 1.0:
            fields = beta * fields
        return torch.sigmoid(fields), None if key is None else self._draw(fields, key)

    def draw_hidden(self, v: Any, W: Any, bias: Any, beta: float, key: int) -> Any:
        """Draw hidden units with the log odds β v W + bias."""
        return self._draw(torch.addmm(bias, v, W, alpha=beta), key)

    def draw_scaled(self, fields: Any, beta: float, key: int) -> Any:
        """Draw hidden units with the log odds β fields."""
        return self._draw(beta * fields, key)

    def visible(self, h: Any, matrix: Any, bias: Any, beta: float, key: int | None) -> Any:
        """Draw visible units given hidden ones; their means where there is no key."""
        fields = torch.addmm(bias, h, matrix, alpha=beta)
        if self.gaussian:
            if key is None:
                return fields
            random = torch.Generator(device=fields.device).manual_seed(key & (2**63 - 1))
            return fields + torch.randn(fields.shape, generator=random, device=fields.device)
        return torch.sigmoid(fields) if key is None else self._draw(fields, key)

    def softplus_sums(self, a: Any, b: Any, beta: float) -> Any:
        """Return Σ_j log(1 + e^f) of f = β a, or of f between a and b."""
        f = beta * a if b is None else torch.lerp(a, b, beta)
        return softplus(f).sum(1, dtype=torch.float64)

    def linear(self, v: Any, c: Any) -> Any:
        """Return cᵀ v of each row."""
        return v @ c

    def squares(self, v: Any) -> Any:
        """Return −½‖v‖² for Gaussian units, and 0 for binary ones."""
        return -0.5 * (v * v).sum(1, dtype=torch.float64) if self.gaussian else 0.0

    def add_outer(self, v: Any, p: Any, scale: float, out: Any) -> None:
        """Add scale · vᵀ p to a matrix."""
        out.addmm_(v.T, p, alpha=scale)

    def zeros(self) -> Any:
        """Return parameters of zeros."""
        return torch.zeros(self.n_weights, device=self.device)

    def beside(self, values: np.ndarray, like: Any) -> Any:
        """Return an array of the kind of another."""
        return torch.as_tensor(np.asarray(values, np.float32), device=like.device)

    def uniform(self, n: int, keys: Keys) -> Any:
        """Draw n states at inverse temperature 0: the draws of the compiled loops."""
        return torch.as_tensor(super().uniform(n, keys).astype(np.float32), device=self.device)

    # ------------------------------------------------------------------ many sweeps at once

    def _walks(self, states: Any) -> Walks | None:
        return None if self.gaussian else walks_for(states, self.n_hidden)

    def sweeps(self, states: Any, theta: Any, keys: Keys, count: int, beta: float = 1.0) -> Any:
        """Return the states after a number of sweeps."""
        walks = self._walks(states) if count > 1 and beta == 1.0 else None
        if walks is None:
            return super().sweeps(states, theta, keys, count, beta)
        return walks.sweeps(states, self.parts(theta), keys, count)

    def excursion(self, states: Any, theta: Any, betas: list[float], keys: Keys) -> tuple[Any, Any]:
        """Return the states after a way along inverse temperatures and back, and the logarithm of what accepts them."""
        walks = self._walks(states)
        if walks is None:
            return super().excursion(states, theta, betas, keys)
        return walks.excursion(states, self.parts(theta), betas, keys)

    def anneal(self, states: Any, theta: Any, ess: float, keys: Keys) -> tuple[Any, list[float]] | None:
        """Return uniform states after a walk to θ, and its inverse temperatures; None where no GPU helps."""
        walks = self._walks(states) if len(states) <= MOST_PARTICLES else None
        return None if walks is None else walks.anneal(states, self.parts(theta), ess, keys)

    # ------------------------------------------------------------------ what is left to the processor

    def exact(self, theta: Any) -> tuple[float, Any]:
        """Return log Z and the expected statistics."""
        total, mean = super().exact(theta.cpu().numpy())
        return total, torch.as_tensor(mean, device=theta.device)

    def pseudo_gradient(self, data: Any, theta: Any) -> tuple[float, Any]:
        """Return the mean log pseudo-likelihood and its gradient."""
        other = HiddenUnits(self.n_visible, self.n_hidden, self.gaussian, self.threads)
        value, gradient = other.pseudo_gradient(data.cpu().numpy().astype(np.uint8), theta.cpu().numpy())
        return value, torch.as_tensor(gradient, device=theta.device)

    def base(self, data: Any, theta: Any) -> Any:
        """Return parameters without W, as frequent as in the data."""
        return torch.as_tensor(super().base(data, None), device=theta.device)

    def base_log_z(self, start: Any) -> float:
        """Return log Z of independent units."""
        return super().base_log_z(start.cpu())

    def base_draws(self, n: int, start: Any, keys: Keys) -> Any:
        """Draw visible states of independent units."""
        empty = torch.zeros((n, self.n_hidden), device=start.device)
        return self.visible(empty, self._transposed(start), self.parts(start)[2], 1.0, keys.next())

    def exact_draws(self, n: int, theta: Any, keys: Keys) -> Any:
        """Draw visible states of the field itself."""
        other = HiddenUnits(self.n_visible, self.n_hidden, self.gaussian, self.threads)
        layer = other.exact_layer(n, theta.cpu().numpy(), keys)
        states = torch.as_tensor(layer.astype(np.float32), device=theta.device)
        if not other._over_hidden():
            return states
        return self.visible(states, self._transposed(theta), self.parts(theta)[2], 1.0, keys.next())
