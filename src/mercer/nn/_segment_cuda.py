"""Operations on segmentations for CUDA tensors; NVRTC compiles kernels for each number of labels and lengths.

If compilation is impossible, the core computes on a copy in main memory.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from mercer._nvrtc import Kernel, KernelError, available
from mercer.nn import _segment_core
from mercer.nn._operators import say_once
from mercer.nn._segment_source import (
    CHUNK,
    RANKS_IN_SHARED,
    SegmentLayout,
    segment_ranks_source,
    segment_source,
)
from mercer.nn._segment_torch import counts, score

__all__ = ["counts", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]

Shared = tuple[Tensor, Tensor, Tensor, Tensor]
MOST_LABELS = 2000
_NAMES = ("prefix", "sweep", "frames", "pairs", "best", "samples")


class _Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (
            "emissions", "durations", "transitions", "start", "end", "lengths", "weights", "prefix", "q", "r", "ended",
            "open", "barriers", "log_z", "status", "frames", "ends", "partial", "tags", "known", "ranked", "scores",
            "lasted", "followed", "best_length", "best_label",
        )),
        ("batch", ctypes.c_longlong), ("time", ctypes.c_longlong), ("size", ctypes.c_longlong),
        ("seed", ctypes.c_ulonglong),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _kernels(layout: SegmentLayout, device: int) -> dict[str, Kernel]:
    text = segment_source(layout)
    return {name: Kernel(text, name, device) for name in _NAMES}


@functools.lru_cache(maxsize=64)
def _ranks(layout: SegmentLayout, k: int, device: int) -> Kernel:
    return Kernel(segment_ranks_source(layout, k), "ranks", device)


class _Batch:
    """A batch on its device with the arguments of the kernels; with tags, only consistent segmentations."""

    def __init__(self, emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> None:
        if not available():
            raise KernelError("NVRTC is not available")
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
        if tags is not None:
            self.give(known=tags.contiguous())
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

    def expectations(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return expectations of frames (batch, time, C), durations and transitions by chunk, first and last labels."""
        self.sweep(both=True)
        B, T, C = self.batch, self.time, self.C
        chunks = -(-T // CHUNK)
        frames, ends = self.room(B, T, C, kind=self.kind), self.room(B, 2, C, kind=self.kind)
        partial = self.room(B * chunks, self.K + C, C, kind=self.kind)
        self.give(frames=frames, ends=ends, partial=partial, weights=weights)
        self.start("frames", -(-B * C // 4), 128)
        self.start("pairs", B * chunks, 256)
        return frames, partial, ends

    def sound(self, values: Tensor) -> Tensor:
        """Return NaN for sequences with NaN emissions."""
        return torch.where((self.status & 1) > 0, torch.nan, values)


def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
    """Return log Z of each sequence over segmentations consistent with the tags, float64."""
    try:
        x = _Batch(emissions, shared, lengths, tags)
    except KernelError as error:
        return _on_core(error, "log_partition", emissions, shared, lengths, tags)
    x.sweep(both=False)
    return x.sound(x.log_z)


def marginals(
    emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor, tags: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return log Z and Σ weights · μ: for frames by position, for durations, transitions and end labels summed."""
    try:
        x = _Batch(emissions, shared, lengths, tags)
    except KernelError as error:
        return _on_core(error, "marginals", emissions, shared, lengths, weights, tags)
    frames, partial, ends = x.expectations(weights.detach().double().contiguous())
    sums, border = partial.double().sum(0), ends.double().sum(0)
    return x.sound(x.log_z), frames, sums[: x.K].clone(), sums[x.K :].clone(), border[0].clone(), border[1].clone()


def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return log Z − E[score], float64."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "entropy", emissions, shared, lengths)
    frames, partial, ends = x.expectations(torch.ones(x.batch, dtype=torch.float64, device=x.device))
    sums = partial.view(x.batch, -1, *partial.shape[1:]).double().sum(1)
    weights = torch.cat([shared[0], shared[1]]), torch.stack([shared[2], shared[3]])
    expected = sum(
        torch.where(mu > 0, mu.double() * theta.double(), 0.0).flatten(1).sum(1)
        for mu, theta in ((frames, emissions), (sums, weights[0]), (ends, weights[1]))
    )
    value = torch.where(torch.isneginf(x.log_z), -torch.inf, (x.log_z - expected).clamp(min=0.0))
    return x.sound(value)


def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best segmentations and their scores."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "decode", emissions, shared, lengths)
    grid = x.batch, x.time + 1, x.C
    tags = x.room(x.batch, x.time, kind=torch.int64)
    x.give(tags=tags, best_length=x.room(*grid, kind=torch.int32), best_label=x.room(*grid, kind=torch.int32))
    x.start("best", x.batch, x.layout.threads)
    return tags, x.sound(x.log_z)


def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return segmentations (batch, k, time) and scores (batch, k)."""
    try:
        x = _Batch(emissions, shared, lengths)
        kernel = _ranks(x.layout, k, x.device.index)
    except KernelError as error:
        return _on_core(error, "k_best", emissions, shared, lengths, k)
    grid = x.batch, x.time + 1, x.C, k
    tags, scores = x.room(x.batch, k, x.time, kind=torch.int64), x.room(x.batch, k)
    x.give(tags=tags, scores=scores, lasted=x.room(*grid, kind=torch.int32), followed=x.room(*grid, kind=torch.int32))
    if x.K * x.C * k > RANKS_IN_SHARED:
        x.give(ranked=x.room(*grid))
    kernel.start((x.batch, 1), min(256, -(-x.C // 32) * 32), x.g)
    return tags, scores


def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Draw segmentations (batch, size, time) from p(y)."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _on_core(error, "sample", emissions, shared, lengths, size, seed)
    x.sweep(both=False)
    tags = x.room(x.batch, size, x.time, kind=torch.int64)
    x.give(tags=tags)
    x.g.size, x.g.seed = size, seed
    x.start("samples", -(-x.batch * size // 4), 128)
    return tags


def _on_core(error: KernelError, verb: str, *arguments: Any) -> Any:
    """Run the operation on the core, with a copy in main memory."""
    say_once(f"a kernel of mercer.nn cannot be used ({str(error)[:200]}): falling back to the CPU, with copies")
    device = arguments[0].device

    def moved(x: Any, to: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(moved(part, to) for part in x)
        return x.to(to) if isinstance(x, Tensor) else x

    return moved(getattr(_segment_core, verb)(*moved(arguments, "cpu")), device)
