"""Operations on chains in torch, for devices without custom kernels, computed in the log domain.

    α_0 = start + θ_0,   α_t[j] = θ_t[j] + log Σ_i exp(α_{t−1}[i] + M[i, j]),   log Z = log Σ_j exp(α_{T−1}[j] + end[j])

Positions past the end of a sequence keep their values. Forbidden parts are −inf throughout.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mercer.nn._inputs import length_mask, restricted

__all__ = ["counts", "decode", "entropy", "exact_sums", "k_best", "log_partition", "marginals", "sample", "score"]

Shared = tuple[Tensor, Tensor, Tensor]
_SHARE = float(2**40)  # the largest weight, where counts are summed as integers


def _forward(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return α of all positions, (time, batch, labels), float64; padding repeats the last value."""
    transitions, start, _ = (x.double() for x in shared)
    theta = emissions.double().transpose(0, 1)
    alpha = [start + theta[0]]
    for t in range(1, len(theta)):
        stepped = _log_sum(alpha[-1][:, :, None] + transitions, 1) + theta[t]
        alpha.append(torch.where((t < lengths)[:, None], stepped, alpha[-1]))
    return torch.stack(alpha)


def _log_sum(x: Tensor, dim: int) -> Tensor:
    """Return log Σ exp, −inf if all terms are −inf."""
    top = x.amax(dim, keepdim=True)
    shift = torch.where(torch.isneginf(top), torch.zeros_like(top), top)
    return (x - shift).exp().sum(dim).log() + shift.squeeze(dim)


def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
    """Return log Z of each sequence over labellings consistent with the tags, float64."""
    emissions = restricted(emissions, tags, lengths)
    return _log_sum(_forward(emissions, shared, lengths)[-1] + shared[2].double(), 1)


def _pairs(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, μ of nodes (batch, time, labels), and pairs (batch, labels, labels) summed over positions."""
    transitions, _, end = (x.double() for x in shared)
    alpha, theta = _forward(emissions, shared, lengths), emissions.double().transpose(0, 1)
    log_z = _log_sum(alpha[-1] + end, 1)
    beta, nodes = end.expand_as(alpha[0]), torch.zeros_like(alpha)
    pairs = torch.zeros(*emissions.shape[:1], *transitions.shape, dtype=torch.float64, device=emissions.device)
    for t in range(len(theta) - 1, -1, -1):
        inside = (t < lengths)[:, None]
        nodes[t] = torch.where(inside, torch.softmax(alpha[t] + beta, 1), torch.zeros_like(beta))
        if t == 0:
            break
        scores = transitions + (theta[t] + beta)[:, None, :]
        local = torch.softmax((alpha[t - 1][:, :, None] + scores).flatten(1), 1).view_as(pairs)
        pairs += torch.where(inside[:, :, None], local, torch.zeros_like(local))
        beta = torch.where(inside, _log_sum(scores, 2), beta)
    dead = torch.isneginf(log_z)
    nodes = torch.where(dead[None, :, None], torch.zeros_like(nodes), nodes)
    return log_z, nodes.transpose(0, 1), torch.where(dead[:, None, None], torch.zeros_like(pairs), pairs)


def marginals(
    emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor, tags: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return log Z and Σ weights · μ: for nodes by position, for shared parts summed over sequences."""
    emissions = restricted(emissions, tags, lengths)
    log_z, nodes, pairs = _pairs(emissions, shared, lengths)
    nodes, factors = nodes * weights.double()[:, None, None], weights.double()
    last = nodes[torch.arange(len(nodes), device=nodes.device), lengths - 1]
    return log_z, nodes, torch.einsum("b,bij->ij", factors, pairs), nodes[:, 0].sum(0), last.sum(0)


def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return log Z − E[score], float64."""
    transitions, start, end = (x.double() for x in shared)
    log_z, nodes, pairs = _pairs(emissions, shared, lengths)
    last = nodes[torch.arange(len(nodes), device=nodes.device), lengths - 1]
    parts = (nodes, emissions.double()), (pairs, transitions), (nodes[:, 0], start), (last, end)
    expected = sum(torch.where(mu > 0, mu * theta, 0.0).flatten(1).sum(1) for mu, theta in parts)
    return (log_z - expected).clamp(min=0.0)


def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return labels (batch, k, time), −1 in the padding and for missing labellings, and scores (batch, k)."""
    transitions, start, end = (x.double() for x in shared)
    batch, time, C = emissions.shape
    theta = emissions.double().transpose(0, 1)
    best = torch.full((batch, C, k), -torch.inf, dtype=torch.float64, device=emissions.device)
    best[:, :, 0] = start + theta[0]
    back = []
    for t in range(1, time):  # candidates (label before, rank), for each label: the order of a tie is theirs
        candidates = (best[:, :, :, None] + transitions[:, None, :]).flatten(1, 2)
        top, place = _top(candidates, k, 1)
        stepped = (top + theta[t][:, None, :]).transpose(1, 2)
        inside = (t < lengths)[:, None, None]
        own = torch.arange(C * k, device=place.device).view(1, C, k)
        best = torch.where(inside, stepped, best)
        back.append(torch.where(inside, place.transpose(1, 2), own))
    scores, at = _top((best + end[None, :, None]).flatten(1), k, 1)
    cells = at[:, :, None] // k
    labels = [cells[:, :, 0]]
    for place in reversed(back):
        at = place.flatten(1).gather(1, at)
        labels.append(at // k)
    out = torch.stack(labels[::-1], dim=2)
    keep = length_mask(lengths, time)[:, None, :] & ~torch.isneginf(scores)[:, :, None]
    return torch.where(keep, out, -1), scores


def _top(x: Tensor, k: int, dim: int) -> tuple[Tensor, Tensor]:
    """Return the k largest; ties keep their order."""
    if x.shape[dim] < k:
        shape = list(x.shape)
        shape[dim] = k - x.shape[dim]
        x = torch.cat([x, x.new_full(shape, -torch.inf)], dim)
    value, place = x.sort(dim=dim, descending=True, stable=True)
    return value.narrow(dim, 0, k), place.narrow(dim, 0, k)


def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best labels, −1 in the padding, and their scores in float64."""
    labels, scores = k_best(emissions, shared, lengths, 1)
    return torch.where(length_mask(lengths, emissions.shape[1]), labels[:, 0].clamp(min=0), -1), scores[:, 0]


def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Draw labels (batch, size, time) from p(y), −1 in the padding."""
    transitions, _, end = (x.double() for x in shared)
    alpha, (batch, time, _) = _forward(emissions, shared, lengths), emissions.shape
    generator = torch.Generator(emissions.device).manual_seed(seed % 2**63)
    dead = torch.isneginf(_log_sum(alpha[-1] + end, 1))

    def drawn(scores: Tensor) -> Tensor:
        noise = torch.rand(scores.shape, generator=generator, dtype=torch.float64, device=scores.device)
        return (scores - (-noise.clamp(min=1e-300).log()).log()).argmax(-1)

    label = drawn((alpha[-1] + end)[:, None, :].expand(batch, size, -1))
    labels = [label]
    for t in range(time - 1, 0, -1):
        before = drawn(alpha[t - 1][:, None, :] + transitions.T[label])
        label = torch.where((t < lengths)[:, None], before, label)
        labels.append(label)
    keep = length_mask(lengths, time) & ~dead[:, None]
    return torch.where(keep[:, None, :], torch.stack(labels[::-1], dim=2), -1)


def score(emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor) -> Tensor:
    """Return the score of known labels, float64."""
    transitions, start, end = (x.double() for x in shared)
    inside = length_mask(lengths, tags.shape[1])
    y = torch.where(inside, tags, 0)
    nodes = emissions.gather(2, y[:, :, None])[:, :, 0].double()
    total = torch.where(inside, nodes, 0.0).sum(1)
    total = total + torch.where(inside[:, 1:], transitions[y[:, :-1], y[:, 1:]], 0.0).sum(1)
    return total + start[y[:, 0]] + end[y.gather(1, lengths[:, None] - 1)[:, 0]]


def counts(
    tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, longest: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ weights · 1_y in the form of `marginals`, deterministically."""
    batch, time, C = like.shape
    inside = length_mask(lengths, time)
    y = torch.where(inside, tags, 0)
    factors = torch.where(inside, weights.double()[:, None], 0.0)
    kind = torch.float64 if like.dtype == torch.float64 else torch.float32
    nodes = torch.zeros(batch, time, C, dtype=kind, device=like.device)
    nodes.scatter_(2, y[:, :, None], factors[:, :, None].to(kind))
    units, summed = exact_sums(weights)
    each = torch.where(inside, units[:, None], 0)
    transitions = summed(y[:, :-1] * C + y[:, 1:], each[:, 1:], C * C).view(C, C)
    last = y.gather(1, lengths[:, None] - 1)[:, 0]
    return nodes, transitions, summed(y[:, 0], units, C), summed(last, units, C)


def exact_sums(weights: Tensor) -> tuple[Tensor, Callable[[Tensor, Tensor, int], Tensor]]:
    """Sum weights as integers by position; float sums on a GPU depend on their order."""
    largest = weights.double().abs().max().clamp(min=1e-300)
    whole = (weights.double() / largest * _SHARE).round().to(torch.int64)

    def summed(place: Tensor, units: Tensor, size: int) -> Tensor:
        out = torch.zeros(size, dtype=torch.int64, device=weights.device)
        return out.index_add_(0, place.flatten(), units.flatten()).double() * (largest / _SHARE)

    return whole, summed
