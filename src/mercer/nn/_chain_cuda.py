"""Operations on chains for CUDA tensors: custom kernels, compiled by NVRTC at the first use of a number of labels."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer._nvrtc import Kernel, KernelError, available
from mercer.nn import _chain_torch
from mercer.nn._chain_source import Layout, ranks_source, source
from mercer.nn._inputs import UNKNOWN, restricted
from mercer.nn._operators import log_loss_by_verbs, say_once

__all__ = [
    "counts",
    "decode",
    "entropy",
    "k_best",
    "log_loss",
    "log_partition",
    "marginals",
    "missing",
    "sample",
    "score",
]

Shared = tuple[Tensor, Tensor, Tensor]
MOST_LABELS = 1500  # three rows of doubles in shared memory
_NAMES = ("prepare", "truth", "sweep", "rows", "again", "finish", "summed", "viterbi", "samples")
_ROWS = 8  # warps of a block of `prepare` and `rows`
_NOT_FINITE, _UNKNOWN, _OUT_OF_RANGE, _LOOK = 1, 2, 4, 1 << 20


_POINTERS = (
    *("emissions", "transitions", "start", "end", "lengths", "tags", "weights"),
    *("e", "ab", "shifts", "scales", "status", "log_z", "score", "gradient", "ends", "counts", "partial", "used"),
    *("product", "out", "out_start", "out_end", "total", "labels", "back", "expected", "ranked", "scores", "places"),
)


class _Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS[:7]), ("factor", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in _POINTERS[7:]),
        ("batch", ctypes.c_longlong), ("time", ctypes.c_longlong), ("size", ctypes.c_longlong),
        ("seed", ctypes.c_ulonglong), ("groups", ctypes.c_int), ("as_real", ctypes.c_int),
    )  # fmt: skip


def missing(device: torch.device) -> str | None:
    """Return why this device has no kernels; None if it has."""
    return None if available() else "NVRTC is not available"


@functools.lru_cache(maxsize=64)
def _kernels(layout: Layout, device: int) -> dict[str, Kernel]:
    text = source(layout)
    return {name: Kernel(text, name, device) for name in _NAMES}


@functools.lru_cache(maxsize=64)
def _ranks(layout: Layout, k: int, device: int) -> Kernel:
    return Kernel(ranks_source(layout, k), "ranks", device)


@functools.lru_cache(maxsize=64)
def _layout(n_labels: int, kind: torch.dtype, emissions: torch.dtype) -> Layout:
    return Layout(n_labels, *(str(each).removeprefix("torch.") for each in (kind, emissions)))


class _Batch:
    """A batch on its device, with the arguments of the kernels."""

    def __init__(self, emissions: Tensor, shared: Shared, lengths: Tensor) -> None:
        self.emissions = emissions.detach().contiguous()
        self.kind, self.device = shared[0].dtype, emissions.device
        self.batch, self.time, self.C = emissions.shape
        if self.C > MOST_LABELS:
            raise KernelError(f"more than {MOST_LABELS} labels")
        self.unit = 8 if self.kind == torch.float64 else 4
        self.layout = _layout(self.C, self.kind, emissions.dtype)
        self.kernels = _kernels(self.layout, self.device.index)
        transitions = shared[0].detach().contiguous()
        if not self.layout.in_registers:  # rows are read as columns of the transposed matrix
            transitions = torch.cat([transitions.flatten(), transitions.T.flatten()])
        self.kept: list[Tensor] = []
        self.g = _Arguments()
        self.g.batch, self.g.time, self.g.factor = self.batch, self.time, 1.0
        self.give(emissions=self.emissions, transitions=transitions, lengths=lengths.contiguous())
        self.give(start=shared[1].detach().contiguous(), end=shared[2].detach().contiguous())
        # What begins with zeros: log Z and score of each sequence, which are read with the status behind them; which
        # groups have sums; counts of label pairs
        B, C = self.batch, self.C
        self.groups = self.g.groups = max(1, min(B, 32, (1 << 22) // C**2))
        ints = (B + self.groups + 1) // 2
        zeros = torch.zeros(2 * B + ints + C * C, dtype=torch.float64, device=self.device)
        self.zeros, self.read_size = zeros, 2 * B + ints
        place = zeros.data_ptr()
        self.g.log_z, self.g.score, self.g.status = place, place + 8 * B, place + 16 * B
        self.g.used, self.counts = place + 20 * B, place + 8 * (2 * B + ints)
        self.stream = None
        if self.device.type == "cuda":  # what torch.cuda.current_stream() asks, without an object around it
            self.stream = ctypes.c_void_p(torch._C._cuda_getCurrentRawStream(self.device.index))

    @property
    def log_z(self) -> Tensor:
        """Return log Z, or the best scores."""
        return self.zeros[: self.batch]

    @property
    def score(self) -> Tensor:
        """Return the scores of the tags."""
        return self.zeros[self.batch : 2 * self.batch]

    @property
    def status(self) -> Tensor:
        """Return the error status of each sequence."""
        return self.zeros[2 * self.batch : self.read_size].view(torch.int32)[: self.batch]

    def sound(self, values: Tensor) -> Tensor:
        """Return the values of the sequences, NaN if emissions are NaN or +inf."""
        return torch.where((self.status & _NOT_FINITE) > 0, torch.nan, values)

    def give(self, **tensors: Tensor | None) -> None:
        """Set arguments and keep references to their memory."""
        for name, tensor in tensors.items():
            if tensor is not None:
                self.kept.append(tensor)
                setattr(self.g, name, tensor.data_ptr())

    def room(self, *shape: int, kind: torch.dtype | None = None) -> Tensor:
        return torch.empty(shape, dtype=kind or self.kind, device=self.device)

    def start(self, name: str, blocks: int, threads: int) -> None:
        self.kernels[name].start((blocks, 1), threads, self.g, self.stream)

    def sweeps(self, gradient: Tensor | None, weights: Tensor | None, tags: Tensor | None, truth: bool = False) -> None:
        """Compute log Z; with memory for a gradient also weights · (μ − 1_y), and a and U for the sums over pairs."""
        if gradient is not None:
            self.give(gradient=gradient, weights=weights, tags=tags)
            self.g.as_real = int(gradient.dtype == self.kind)
        self.run_sweeps(truth)

    def run_sweeps(self, truth: bool) -> None:
        """Do the same after the arguments have been set."""
        B, T, C, unit, g = self.batch, self.time, self.C, self.unit, self.g
        n = B * T * C
        # one piece of memory, since every request costs microseconds: partial, ab, e, shifts, ends and scales
        self.first = 8 // unit * self.groups * C * C if g.gradient else 0
        self.memory = torch.empty(
            self.first + 3 * n + 2 * B * T + 2 * B * C, dtype=self.kind, device=self.device
        )  # scales are integers of 4 bytes: a number of `kind` for each is enough
        g.partial = place = self.memory.data_ptr()
        g.ab = place + unit * self.first
        g.e = g.ab + 2 * n * unit
        g.shifts = g.e + n * unit
        g.ends = g.shifts + B * T * unit
        g.scales = g.ends + 2 * B * C * unit
        blocks = -(-B * T // _ROWS)
        self.start("prepare", blocks, 32 * _ROWS)
        self.start("sweep", (2 + truth) * B, self.layout.threads)
        self.start("rows", blocks, 32 * _ROWS)
        self.start("again", self.groups, 256)

    @property
    def ab(self) -> Tensor:
        """Return a and b (after `sweeps` with a gradient: U) of each position, (batch, time, 2, labels)."""
        C, T = self.C, self.time
        return self.memory.as_strided((self.batch, T, 2, C), (2 * T * C, 2 * C, C, 1), self.first)

    def shared_gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of transitions, start and end, after `sweeps`."""
        made = self.room(self.C, self.C), self.room(self.C), self.room(self.C)
        self.give(out=made[0], out_start=made[1], out_end=made[2])
        self.finish()
        return made

    def finish(self) -> None:
        """Compute Σ_t a_{t−1} ⊗ U_t, and from it the gradients of the shared scores."""
        C, n = self.C, self.batch * self.time - 1
        a = self.memory.as_strided((C, n), (1, 2 * C), self.first)
        after = self.memory.as_strided((n, C), (2 * C, 1), self.first + 3 * C)
        self.give(product=_product(a, after))
        self.start("finish", min(132, -(-(C * C + 2 * C) // 256)), 256)

    def check(self, tags: bool) -> int:
        """Wait, raise errors for non-finite scores or tags out of range, and return the combined status."""
        self.read = read = self.zeros[: self.read_size].cpu().numpy()
        status = read[2 * self.batch :].view(np.int32)[: self.batch]
        if not status.any() and math.isfinite(read[: 2 * self.batch].sum()):
            return 0
        for bit, text in ((_NOT_FINITE, "the emissions of sequence {} are NaN or +inf"), (_OUT_OF_RANGE, "")):
            if (status & bit).any() and (text or tags):
                i = int(np.flatnonzero(status & bit)[0])
                raise ValueError(text.format(i) or f"a tag of sequence {i} must be 0 to {self.C - 1} or {UNKNOWN}")
        if np.isnan(read[: self.batch]).any() or np.isposinf(read[: self.batch]).any():
            raise ValueError("transitions, start or end contain NaN or +inf, or scores are too large")
        return int(np.bitwise_or.reduce(status)) | _LOOK


def _on_device(function: Any) -> Any:
    """Run on the device of the first argument."""

    @functools.wraps(function)
    def run(emissions: Tensor, *arguments: Any, **options: Any) -> Any:
        index = emissions.device.index
        if index is None or index == torch.cuda.current_device():
            return function(emissions, *arguments, **options)
        with torch.cuda.device(index):
            return function(emissions, *arguments, **options)

    return run


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return a b in full precision, regardless of the settings of torch."""
    if a.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
        return (a.double() @ b.double()).float().contiguous()
    return torch.mm(a, b)


@_on_device
def log_partition(emissions: Tensor, shared: Shared, lengths: Tensor, tags: Tensor | None = None) -> Tensor:
    """Return log Z of each sequence over labellings consistent with the tags, float64."""
    emissions = restricted(emissions, tags, lengths)
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).log_partition(emissions, shared, lengths)
    x.sweeps(None, None, None)
    return x.sound(x.log_z)


@_on_device
def marginals(
    emissions: Tensor, shared: Shared, lengths: Tensor, weights: Tensor, tags: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return log Z and Σ weights · μ: for nodes by position, for shared parts summed over sequences."""
    emissions = restricted(emissions, tags, lengths)
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).marginals(emissions, shared, lengths, weights)
    nodes = x.room(*emissions.shape)
    x.sweeps(nodes, weights.detach().double().contiguous(), None)
    return x.sound(x.log_z), nodes, *x.shared_gradients()


@_on_device
def log_loss(
    emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor, weights: Tensor | float, gradient: bool,
    partial: bool, check: bool,
) -> tuple[Tensor, list[Tensor], Tensor | None]:  # fmt: skip
    """Return Σ weights (log Z − score(y)) and its gradient, in one block of memory if the types allow it."""
    from mercer.nn._chain_ops import CHAIN

    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return log_loss_by_verbs(
            CHAIN, _instead(error), emissions, shared, tags, lengths, weights, gradient, partial, check
        )
    own = weights.detach().double().contiguous() if isinstance(weights, Tensor) else None
    if own is None:
        x.g.factor = float(weights)
    x.give(tags=tags.contiguous(), weights=own, total=(total := x.room()))
    x.g.counts = x.counts if gradient else None
    parts, flat = [], None
    if not gradient:
        x.run_sweeps(truth=True)
        x.start("summed", 1, 256)
    elif emissions.dtype == x.kind:
        n, C, unit = emissions.numel(), x.C, x.unit
        flat = x.room(n + C * C + 2 * C)
        x.g.gradient = place = flat.data_ptr()
        x.g.out = place + n * unit
        x.g.out_start, x.g.out_end = x.g.out + C * C * unit, x.g.out + (C * C + C) * unit
        x.g.as_real = 1
        x.run_sweeps(truth=True)
        x.finish()
    else:
        x.give(gradient=(slope := torch.empty_like(x.emissions)))
        x.run_sweeps(truth=True)
        parts = [slope, *x.shared_gradients()]
    if check:
        status = x.check(tags=True)
        if status & _UNKNOWN:
            if not partial:
                raise ValueError(CHAIN.words.unknown)
            here = sys.modules[__name__]
            return log_loss_by_verbs(CHAIN, here, emissions, shared, tags, lengths, weights, gradient, True, check)
        if status:
            dead = np.isneginf(x.read[: 2 * x.batch].reshape(2, x.batch))
            for rows, text in zip(dead, (CHAIN.words.impossible, CHAIN.words.forbidden), strict=True):
                if rows.any():
                    raise ValueError(text.format(int(np.flatnonzero(rows)[0])))
    return total, parts, flat


@_on_device
def score(emissions: Tensor, shared: Shared, tags: Tensor, lengths: Tensor) -> Tensor:
    """Return the score of known labels, float64."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).score(emissions, shared, tags, lengths)
    x.give(tags=tags.contiguous())
    x.start("truth", x.batch, 256)
    return x.score.clone()


@_on_device
def decode(emissions: Tensor, shared: Shared, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best labels, −1 in the padding, and their scores in float64."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).decode(emissions, shared, lengths)
    labels = x.room(x.batch, x.time, kind=torch.int64)
    back = x.room(x.batch, x.time, x.C, kind=torch.uint8 if x.C <= 256 else torch.int16)
    x.give(labels=labels, back=back)
    x.start("viterbi", x.batch, x.layout.threads)
    return labels, x.sound(x.log_z)


@_on_device
def entropy(emissions: Tensor, shared: Shared, lengths: Tensor) -> Tensor:
    """Return log Z − E[score], float64."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).entropy(emissions, shared, lengths)
    nodes, pairs = x.room(*emissions.shape), torch.zeros(x.batch, dtype=torch.float64, device=x.device)
    x.give(expected=pairs)
    x.sweeps(nodes, torch.ones_like(pairs), None)
    transitions, start, end = (part.double() for part in shared)
    level = transitions.max().clamp(min=torch.finfo(torch.float64).min)
    terms = torch.where(torch.isneginf(transitions), 0.0, (transitions - level).exp() * transitions)
    a, after = (x.ab[:, :, k].double() for k in (0, 1))  # ξ_t = E ∘ a_{t−1} ⊗ U_t
    pairs = pairs + ((a[:, :-1] @ terms) * after[:, 1:]).sum((1, 2))
    last = nodes[torch.arange(x.batch, device=x.device), lengths - 1]
    expected = [_mean(*part) for part in ((nodes, emissions), (nodes[:, 0], start), (last, end))]
    value = x.log_z - pairs - expected[0] - expected[1] - expected[2]
    return x.sound(torch.where(torch.isneginf(x.log_z), -torch.inf, value.clamp(min=0.0)))


def _mean(mu: Tensor, theta: Tensor) -> Tensor:
    """Return Σ μ θ of each sequence; impossible parts count as 0."""
    return torch.where(mu > 0, mu.double() * theta.double(), 0.0).flatten(1).sum(1)


@_on_device
def k_best(emissions: Tensor, shared: Shared, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return labels (batch, k, time), −1 in the padding and for missing labellings, and scores (batch, k)."""
    try:
        x = _Batch(emissions, shared, lengths)
        kernel = _ranks(x.layout, k, x.device.index)
    except KernelError as error:
        return _instead(error).k_best(emissions, shared, lengths, k)
    labels, scores = x.room(x.batch, k, x.time, kind=torch.int64), x.room(x.batch, k, kind=torch.float64)
    x.give(labels=labels, scores=scores, places=x.room(x.batch, x.time, x.C, k, kind=torch.int32))
    x.give(ranked=x.room(x.batch, 2, x.C, k, kind=torch.float64))
    kernel.start((x.batch, 1), min(256, -(-x.C // 32) * 32), x.g, x.stream)
    return labels, scores


@_on_device
def sample(emissions: Tensor, shared: Shared, lengths: Tensor, size: int, seed: int) -> Tensor:
    """Draw labels (batch, size, time) from p(y), −1 in the padding."""
    try:
        x = _Batch(emissions, shared, lengths)
    except KernelError as error:
        return _instead(error).sample(emissions, shared, lengths, size, seed)
    x.sweeps(None, None, None)
    labels = x.room(x.batch, size, x.time, kind=torch.int64)
    x.give(labels=labels)
    x.g.size, x.g.seed = size, seed
    x.start("samples", -(-x.batch * size // 4), 128)
    return labels


counts = _chain_torch.counts


def _instead(error: KernelError) -> Any:
    say_once(f"a kernel of mercer.nn cannot be used ({str(error)[:200]}): falling back to slow torch operations")
    return _chain_torch
