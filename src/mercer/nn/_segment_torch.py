"""Scores and counts of known segmentations in torch, on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.nn._chain_torch import exact_sums

__all__ = ["counts", "score"]

Shared = tuple[Tensor, Tensor, Tensor, Tensor]


def score(emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor) -> Tensor:
    """Return the score of segmentations, float64."""
    durations, transitions, start, end = (x.double() for x in shared)
    inside, begins, labels, sizes, before = _walk(tags, lengths)
    nodes = torch.where(inside, emissions.gather(2, labels[:, :, None])[:, :, 0].double(), 0.0).sum(1)
    lasting = torch.where(begins, durations[(sizes - 1).clamp(0, len(durations) - 1), labels], 0.0)
    lasting = torch.where(begins & (sizes > len(durations)), -torch.inf, lasting).sum(1)
    inner = begins.clone()
    inner[:, 0] = False
    steps = torch.where(inner, transitions[before, labels], 0.0).sum(1)
    last = labels.gather(1, lengths[:, None] - 1)[:, 0]
    return nodes + lasting + steps + start[labels[:, 0]] + end[last]


def counts(tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, longest: int) -> tuple[Tensor, ...]:
    """Return Σ weights · 1_y in the form of marginals; integer sums make it deterministic."""
    C = like.shape[2]
    inside, begins, labels, sizes, before = _walk(tags, lengths)
    kind = torch.float64 if like.dtype == torch.float64 else torch.float32
    factors = torch.where(inside, weights.double()[:, None], 0.0)
    frames = torch.zeros(like.shape, dtype=kind, device=like.device)
    frames.scatter_(2, labels[:, :, None], factors[:, :, None].to(kind))
    units, summed = exact_sums(weights)
    each = torch.where(begins, units[:, None], 0)
    inner = each.clone()
    inner[:, 0] = 0
    durations = summed((sizes - 1).clamp(0, longest - 1) * C + labels, each, longest * C).view(longest, C)
    transitions = summed(before * C + labels, inner, C * C).view(C, C)
    last = labels.gather(1, lengths[:, None] - 1)[:, 0]
    return frames, durations, transitions, summed(labels[:, 0], units, C), summed(last, units, C)


def _walk(tags: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return for each position: inside, segment start, label and size of its segment, previous label."""
    batch, time = tags.shape
    at = torch.arange(time, device=tags.device).expand(batch, time)
    inside = at < lengths[:, None]
    begins = inside & (tags >= 0)
    first = torch.where(begins, at, 0).cummax(1).values
    labels = tags.gather(1, first).clamp(min=0)
    following = torch.where(begins, at, lengths[:, None].expand_as(at))
    following = torch.cat([following[:, 1:], lengths[:, None]], 1).flip(1).cummin(1).values.flip(1)
    following = torch.minimum(following, lengths[:, None])
    before = torch.cat([labels[:, :1], labels[:, :-1]], 1)
    return inside, begins, labels, torch.where(begins, following - at, 1), before
