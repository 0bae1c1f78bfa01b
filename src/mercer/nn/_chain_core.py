"""Operations on chains for CPU tensors; the compiled core works on views of them.

A padded batch is not copied. The padding after each sequence is treated as another sequence of weight 0, which the core
skips. Decoding has no weights, so it first extracts the valid positions of ragged batches.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer import _core
from mercer.nn._inputs import UNKNOWN, restricted

__all__ = ["counts", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]

Shared = tuple[Tensor, Tensor, Tensor]


class Stacked:
    """A padded batch in the form of the core."""

    def __init__(self, emissions: Tensor, shared: Shared, lengths: Tensor, packed: bool) -> None:
        self.batch, self.time, self.n_labels = emissions.shape
        self.lengths = lengths.numpy()
        self.ragged = bool((self.lengths < self.time).any())
        nodes = emissions.detach().contiguous().numpy().reshape(-1, self.n_labels)
        self.inside: np.ndarray | None = None
        if packed and self.ragged:
            self.inside = (np.arange(self.time) < self.lengths[:, None]).ravel()
            nodes = nodes[self.inside]
            self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        elif self.ragged:
            first = np.arange(self.batch + 1) * self.time
            self.offsets = np.stack([first[:-1], first[:-1] + self.lengths], axis=1).ravel()
            self.offsets = np.append(self.offsets, first[-1])
        else:
            self.offsets = np.arange(self.batch + 1) * self.time
        self.nodes = nodes
        self.shared = [x.detach().contiguous().numpy() for x in shared]
        self.threads = torch.get_num_threads()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return the common arguments of all operations."""
        return self.nodes, *self.shared, None, self.offsets

    def weights(self, given: np.ndarray) -> np.ndarray:
        """Return the weights of sequences, and 0 for the padding after each sequence."""
        if not self.ragged:
            return given
        both = np.zeros((self.batch, 2))
        both[:, 0] = given
        return both.ravel()

    def of_sequences(self, values: np.ndarray) -> np.ndarray:
        """Return the values of sequences without the padding."""
        return values[::2].copy() if self.ragged and self.inside is None else values

    def padded(self, values: np.ndarray, fill: Any) -> np.ndarray:
        """Return stacked values (…, positions) as (…, batch, time)."""
        shape = (*values.shape[:-1], self.batch, self.time)
        if self.inside is None:
            return values.reshape(shape)
        out = np.full((*values.shape[:-1], self.batch * self.time), fill, values.dtype)
        out[..., self.inside] = values
        return out.reshape(shape)

    def run(self, function: Any, *arguments: Any, **options: Any) -> None:
        """Call the core; errors about non-finite scores name the sequence."""
        try:
            function(*self.arguments, *arguments, **options)
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            for i, (a, b) in enumerate(pairwise(self.offsets.tolist())):
                if self.ragged and self.inside is None and i % 2:
                    continue
                if not (self.nodes[a:b] < np.inf).all():
                    i = i // 2 if self.ragged and self.inside is None else i
                    raise ValueError(f"the emissions of sequence {i} are NaN or +inf") from error
            raise ValueError("transitions, start or end contain NaN or +inf") from error


def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
    """Return log Z of each sequence over labellings consistent with the tags, float64."""
    emissions = restricted(emissions, tags, lengths)
    x = Stacked(emissions, shared, lengths, packed=False)
    out = np.empty(len(x.offsets) - 1)
    weights = x.weights(np.ones(x.batch))
    x.run(_core.chain.marginals, None, None, None, None, None, out, None, x.threads, weights=weights)
    return torch.from_numpy(x.of_sequences(out))


def marginals(
    emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor, tags: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return log Z and Σ weights · μ: for nodes by position, for shared parts summed over sequences."""
    emissions = restricted(emissions, tags, lengths)
    x = Stacked(emissions, shared, lengths, packed=False)
    C = x.n_labels
    nodes, sums = np.empty_like(x.nodes), (np.zeros((C, C)), np.zeros(C), np.zeros(C))
    out, factors = np.empty(len(x.offsets) - 1), x.weights(weights.detach().double().numpy())
    x.run(_core.chain.marginals, nodes, *sums, None, out, None, x.threads, weights=np.ascontiguousarray(factors))
    log_z = torch.from_numpy(x.of_sequences(out))
    pairs, start, end = (torch.from_numpy(part) for part in sums)
    return log_z, torch.from_numpy(nodes).view(emissions.shape), pairs, start, end


def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return log Z − E[score], float64."""
    x = Stacked(emissions, shared, lengths, packed=False)
    out, log_z = np.empty(len(x.offsets) - 1), np.empty(len(x.offsets) - 1)
    weights = x.weights(np.ones(x.batch))
    x.run(_core.chain.marginals, None, None, None, None, None, log_z, out, x.threads, weights=weights)
    return torch.from_numpy(x.of_sequences(out))


def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best labels, −1 in the padding, and their scores in float64."""
    x = Stacked(emissions, shared, lengths, packed=True)
    labels, value = np.empty(len(x.nodes), np.int32), np.empty(x.batch)
    x.run(_core.chain.viterbi, labels, value, x.threads)
    return torch.from_numpy(x.padded(labels, -1).astype(np.int64)), torch.from_numpy(value)


def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return labels (batch, k, time), −1 in the padding and for missing labellings, and scores (batch, k)."""
    x = Stacked(emissions, shared, lengths, packed=True)
    labels, value = np.empty((k, len(x.nodes)), np.int32), np.empty((x.batch, k))
    x.run(_core.chain.k_best, labels, value, x.threads)
    ranked = x.padded(labels, -1).transpose(1, 0, 2).astype(np.int64)
    return torch.from_numpy(np.ascontiguousarray(ranked)), torch.from_numpy(value)


def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Draw labels (batch, size, time) from p(y), −1 in the padding."""
    x = Stacked(emissions, shared, lengths, packed=True)
    labels = np.empty((size, len(x.nodes)), np.int32)
    x.run(_core.chain.sample, seed, labels, x.threads)
    drawn = x.padded(labels, -1).transpose(1, 0, 2).astype(np.int64)
    return torch.from_numpy(np.ascontiguousarray(drawn))


def score(emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor) -> Tensor:
    """Return the score of known labels, float64."""
    transitions, start, end = (x.detach().double().numpy() for x in shared)
    inside = np.arange(tags.shape[1]) < lengths.numpy()[:, None]
    y = np.where(inside, tags.numpy(), 0)
    nodes = np.take_along_axis(emissions.detach().numpy(), y[..., None], axis=2)[..., 0].astype(np.float64)
    total = np.where(inside, nodes, 0.0).sum(axis=1)
    total += np.where(inside[:, 1:], transitions[y[:, :-1], y[:, 1:]], 0.0).sum(axis=1)
    total += start[y[:, 0]] + end[y[np.arange(len(y)), lengths.numpy() - 1]]
    return torch.from_numpy(total)


def counts(
    tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, longest: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ weights · 1_y in the form of `marginals`."""
    batch, time, C = like.shape
    inside = np.arange(time) < lengths.numpy()[:, None]
    y = tags.numpy()
    factors = np.where(inside, weights.detach().double().numpy()[:, None], 0.0)
    nodes = np.zeros((batch * time, C), like.detach().numpy().dtype)
    nodes[np.arange(batch * time), np.where(inside, y, 0).ravel()] = factors.ravel()
    first, rows = y[:, 0], np.arange(batch)
    last = y[rows, lengths.numpy() - 1]
    pairs = (np.where(inside, y, 0)[:, :-1] * C + np.where(inside, y, 0)[:, 1:]).ravel()
    transitions = np.bincount(pairs, weights=factors[:, 1:].ravel(), minlength=C * C).reshape(C, C)
    single = weights.detach().double().numpy()
    start = np.bincount(first, weights=single, minlength=C)
    end = np.bincount(last, weights=single, minlength=C)
    parts = nodes.reshape(batch, time, C), transitions, start, end
    returned: Any = tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in parts)
    return returned


def known(tags: Tensor, lengths: Tensor, n_labels: int) -> bool:
    """Return whether all tags are known; raise an error if a tag is out of range."""
    y, inside = tags.numpy(), np.arange(tags.shape[1]) < lengths.numpy()[:, None]
    wrong = inside & (((y < 0) & (y != UNKNOWN)) | (y >= n_labels))
    if wrong.any():
        i, t = np.argwhere(wrong)[0]
        raise ValueError(f"tag {y[i, t]} of sequence {i} at position {t} must be 0 to {n_labels - 1} or {UNKNOWN}")
    return not bool((inside & (y < 0)).any())
