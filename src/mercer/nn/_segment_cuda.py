"""The verbs of segmentations for CUDA tensors; kernels are compiled by NVRTC for each number of labels and lengths.

Entropy, ranked and drawn segmentations are computed by the core, from a copy in main memory.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from mercer.nn import _segment_core
from mercer.nn._segment_source import CHUNK, SegmentLayout, segment_source
from mercer.retrieval._cuda import Kernel, KernelError, available

__all__ = ["counts", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]

Shared = tuple[Tensor, Tensor, Tensor, Tensor]
MOST_LABELS = 2000
_NAMES = ("prefix", "sweep", "frames", "pairs", "best")
_SHARE = float(2**40)


class _Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (
            "emissions", "durations", "transitions", "start", "end", "lengths", "weights", "prefix", "q", "r", "ended",
            "open", "barriers", "log_z", "status", "frames", "ends", "partial", "tags", "best_length", "best_label",
        )),
        ("batch", ctypes.c_longlong), ("time", ctypes.c_longlong),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _kernels(layout: SegmentLayout, device: int) -> dict[str, Kernel]:
    text = segment_source(layout)
    return {name: Kernel(text, name, device) for name in _NAMES}


class _Batch:
    def __init__(self, emissions: Tensor, shared: Shared, lengths: Tensor) -> None:
        if not available():
            raise KernelError("NVRTC is not there")
        self.batch, self.time, self.C = emissions.shape
        if self.C > MOST_LABELS:
            raise KernelError(f"more than {MOST_LABELS} labels")
        self.kind, self.device, self.K = shared[0].dtype, emissions.device, shared[0].shape[0]
        self.layout = SegmentLayout(self.C, self.K, str(self.kind)[6:], str(emissions.dtype)[6:])
        self.kernels = _kernels(self.layout, self.device.index)
        self.kept: list[Tensor] = []
        self.g = _Arguments()
        self.g.batch, self.g.time = self.batch, self.time
        names = ("durations", "transitions", "start", "end")
        self.give(emissions=emissions.detach().contiguous(), lengths=lengths.contiguous())
        self.give(**{name: x.detach().contiguous() for name, x in zip(names, shared, strict=True)})
        self.log_z, self.status = self.room(self.batch), torch.zeros(self.batch, dtype=torch.int32, device=self.device)
        grid = self.batch, self.time + 1, self.C
        self.give(log_z=self.log_z, status=self.status, prefix=self.room(*grid), q=self.room(*grid))
        self.start("prefix", -(-self.batch * self.C // 4), 128)

    def room(self, *shape: int, kind: torch.dtype = torch.float64) -> Tensor:
        return torch.empty(shape, dtype=kind, device=self.device)

    def give(self, **tensors: Tensor) -> None:
        for name, tensor in tensors.items():
            self.kept.append(tensor)
            setattr(self.g, name, tensor.data_ptr())

    def start(self, name: str, blocks: int, threads: int) -> None:
        self.kernels[name].start((blocks, 1), threads, self.g)

    def sweep(self, both: bool) -> None:
        grid = self.batch, self.time + 1, self.C
        self.give(ended=self.room(*grid), barriers=self.room(*grid, kind=torch.int32))
        if both:
            self.give(r=self.room(*grid), open=self.room(*grid))
        self.start("sweep", (1 + both) * self.batch, self.layout.threads)

    def sound(self, values: Tensor) -> Tensor:
        """NaN where emissions were."""
        return torch.where((self.status & 1) > 0, torch.nan, values)


def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """log Z of each sequence, float64."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "log_partition", emissions, shared, lengths)
    x.sweep(both=False)
    return x.sound(x.log_z)


def marginals(emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
    """log Z, and Σ weights · μ: of frames by position, of durations, transitions, first and last labels summed."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "marginals", emissions, shared, lengths, weights)
    x.sweep(both=True)
    B, T, C, K = x.batch, x.time, x.C, x.K
    chunks = -(-T // CHUNK)
    frames, ends = x.room(B, T, C, kind=x.kind), x.room(B, 2, C, kind=x.kind)
    partial = x.room(B * chunks, K + C, C, kind=x.kind)
    x.give(frames=frames, ends=ends, partial=partial, weights=weights.detach().double().contiguous())
    x.start("frames", -(-B * C // 4), 128)
    x.start("pairs", B * chunks, 256)
    sums, border = partial.double().sum(0), ends.double().sum(0)
    return x.sound(x.log_z), frames, sums[:K].clone(), sums[K:].clone(), border[0].clone(), border[1].clone()


def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The best segmentations and their scores."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "decode", emissions, shared, lengths)
    grid = x.batch, x.time + 1, x.C
    tags = x.room(x.batch, x.time, kind=torch.int64)
    x.give(tags=tags, best_length=x.room(*grid, kind=torch.int32), best_label=x.room(*grid, kind=torch.int32))
    x.start("best", x.batch, x.layout.threads)
    return tags, x.sound(x.log_z)


def score(emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor) -> Tensor:
    """The score of segmentations, float64."""
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


def counts(tags: Tensor, lengths: Tensor, weights: Tensor, like: Tensor, max_length: int) -> tuple[Tensor, ...]:
    """Σ weights · 1_y in the form of `marginals`; sums are of integers, the same from run to run."""
    C = like.shape[2]
    inside, begins, labels, sizes, before = _walk(tags, lengths)
    kind = torch.float64 if like.dtype == torch.float64 else torch.float32
    factors = torch.where(inside, weights.double()[:, None], 0.0)
    frames = torch.zeros(like.shape, dtype=kind, device=like.device)
    frames.scatter_(2, labels[:, :, None], factors[:, :, None].to(kind))
    largest = weights.double().abs().max().clamp(min=1e-300)
    whole = (weights.double() / largest * _SHARE).round().to(torch.int64)

    def summed(place: Tensor, units: Tensor, size: int) -> Tensor:
        out = torch.zeros(size, dtype=torch.int64, device=like.device)
        return out.index_add_(0, place.flatten(), units.flatten()).double() * (largest / _SHARE)

    each = torch.where(begins, whole[:, None], 0)
    inner = each.clone()
    inner[:, 0] = 0
    durations = summed((sizes - 1).clamp(0, max_length - 1) * C + labels, each, max_length * C).view(max_length, C)
    transitions = summed(before * C + labels, inner, C * C).view(C, C)
    last = labels.gather(1, lengths[:, None] - 1)[:, 0]
    return frames, durations, transitions, summed(labels[:, 0], whole, C), summed(last, whole, C)


def _walk(tags: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Of each position: whether it is inside, whether a segment begins, label, size of that segment, label before."""
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


def _on_core(error: KernelError | None, verb: str, *arguments: Any) -> Any:
    """The same by the core, on a copy in main memory."""
    if error is not None:
        from mercer.nn._chain_ops import say_once

        say_once(f"a kernel of mercer.nn cannot be used ({str(error)[:200]}): the CPU is used, on copies")
    device = arguments[0].device

    def moved(x: Any, to: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(moved(part, to) for part in x)
        return x.to(to) if isinstance(x, Tensor) else x

    return moved(getattr(_segment_core, verb)(*moved(arguments, "cpu")), device)


def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """log Z − E[score], float64."""
    out: Tensor = _on_core(None, "entropy", emissions, shared, lengths)
    return out


def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Segmentations (batch, k, time) and scores (batch, k)."""
    found: tuple[Tensor, Tensor] = _on_core(None, "k_best", emissions, shared, lengths, k)
    return found


def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Segmentations (batch, size, time) drawn from p(y)."""
    out: Tensor = _on_core(None, "sample", emissions, shared, lengths, size, seed)
    return out
