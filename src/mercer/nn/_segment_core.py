"""Operations on segmentations for CPU tensors, by the compiled core, in double precision.

A segmentation is a row of numbers: the label at the first position of each segment and −1 elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.data.segments import Segmentations
from mercer.nn._inputs import BEGINS, UNKNOWN, WITHIN
from mercer.nn._segment_torch import counts, score
from mercer.structures.segment_parts import SegmentScores
from mercer.structures.segments import Segments

__all__ = ["counts", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]

Shared = tuple[Tensor, Tensor, Tensor, Tensor]


class Stacked:
    """A padded batch as θ of a `Segments`; with tags, only consistent segmentations."""

    def __init__(self, emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> None:
        self.batch, self.time, self.n_labels = emissions.shape
        self.lengths = lengths.cpu().numpy()
        self.inside = np.arange(self.time) < self.lengths[:, None]
        frames = emissions.detach().cpu().double().numpy()
        durations, transitions, start, end = (x.detach().cpu().double().numpy() for x in shared)
        for i in np.flatnonzero((self.inside[:, :, None] & ~(frames < np.inf)).any(axis=(1, 2)))[:1]:
            raise ValueError(f"the emissions of sequence {i} are NaN or +inf")
        if not all((part < np.inf).all() for part in (durations, transitions, start, end)):
            raise ValueError("durations, transitions, start or end contain NaN or +inf")
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.theta = SegmentScores(durations, transitions, start, end, self.offsets, frames=frames[self.inside])
        if tags is not None:
            known = tags.cpu().numpy()[self.inside]
            free = (known == UNKNOWN) | (known == BEGINS)
            allowed = free[:, None] | (known[:, None] == np.arange(self.n_labels))
            self.theta.starts = np.where(allowed, 0.0, -np.inf)
            self.theta.cuts = (known != UNKNOWN) & (known != WITHIN)
        self.structure = Segments(
            self.n_labels, 0, max_length=len(durations), threads=torch.get_num_threads()
        )  # only its verbs are used
        self.kind = emissions.dtype

    def one(self, i: int) -> SegmentScores:
        """Return θ of sequence i."""
        a, b = self.offsets[i : i + 2]
        whole = self.theta
        assert whole.frames is not None
        parts = whole.lengths, whole.transitions, whole.start, whole.end
        starts, cuts = (None if x is None else x[a:b] for x in (whole.starts, whole.cuts))
        return SegmentScores(*parts, np.array([0, b - a]), frames=whole.frames[a:b], starts=starts, cuts=cuts)

    def padded(self, values: np.ndarray, fill: Any) -> np.ndarray:
        """Return stacked values (positions, …) as (batch, time, …)."""
        out = np.full((self.batch, self.time, *values.shape[1:]), fill, values.dtype)
        out[self.inside] = values
        return out

    def rows(self, y: Segmentations) -> np.ndarray:
        """Return segmentations as rows of numbers."""
        length, label = y.marks()
        return self.padded(np.where(length > 0, label, -1).astype(np.int64), -1)


def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
    """Return log Z of each sequence over segmentations consistent with the tags, float64."""
    x = Stacked(emissions, shared, lengths, tags)
    return torch.from_numpy(x.structure.log_partition(x.theta))


def marginals(
    emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor, tags: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return log Z and Σ weights · μ: for frames by position, for durations, transitions and end labels summed."""
    x = Stacked(emissions, shared, lengths, tags)
    w = weights.detach().cpu().double().numpy()
    if (w == w[0]).all():
        mu = x.structure.marginals(x.theta)
        mu.scale(float(w[0]))
        frames, shared_sums = mu.frames, [mu.lengths, mu.transitions, mu.start, mu.end]
        log_z = mu.log_partition
    else:
        parts = [x.structure.marginals(x.one(i)) for i in range(x.batch)]
        for part, factor in zip(parts, w, strict=True):
            part.scale(float(factor))
        frames = np.concatenate([part.frames for part in parts])
        names = ("lengths", "transitions", "start", "end")
        shared_sums = [np.sum([getattr(part, name) for part in parts], axis=0) for name in names]
        log_z = np.concatenate([part.log_partition for part in parts])
    made = torch.from_numpy(x.padded(frames, 0.0)), *(torch.from_numpy(np.asarray(part)) for part in shared_sums)
    return torch.from_numpy(log_z), *made


def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return log Z − E[score], float64."""
    x = Stacked(emissions, shared, lengths)
    return torch.from_numpy(x.structure.entropy(x.theta))


def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best segmentations and their scores."""
    x = Stacked(emissions, shared, lengths)
    best, score = x.structure.argmax(x.theta)
    return torch.from_numpy(x.rows(best)), torch.from_numpy(score)


def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return segmentations (batch, k, time) and scores (batch, k)."""
    x = Stacked(emissions, shared, lengths)
    ranked, scores = x.structure.k_best(x.theta, k)
    return torch.from_numpy(np.stack([x.rows(y) for y in ranked], axis=1)), torch.from_numpy(scores)


def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Draw segmentations (batch, size, time) from p(y)."""
    x = Stacked(emissions, shared, lengths)
    drawn = x.structure.sample(x.theta, size, seed)
    return torch.from_numpy(np.stack([x.rows(y) for y in drawn], axis=1))
