"""Custom GPU kernels of circulant layers, compiled by NVRTC at the first use of a width."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer._nvrtc import Kernel, KernelError, available
from mercer.nn._circulant_source import layer_source
from mercer.nn._operators import say_once
from mercer.retrieval.circulant_source import Plan, plan_for, roots, stored_frequencies

__all__ = ["FusedCirculant", "fused", "plan_of"]

_GROUPS = 2  # blocks of a processor that sum gradients


class _Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (
            "x", "signs", "bias", "spectrum", "roots", "kept", "partial", "out",
        )),
        ("rows", ctypes.c_longlong),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _plan(n: int) -> Plan | None:
    plan = plan_for(n)
    return plan if plan is not None and plan.pairs and available() else None


def plan_of(x: Tensor, weight: Tensor) -> Plan | None:
    """Return the plan for the rows of x; None if there is no kernel."""
    if x.device.type != "cuda" or weight.dtype != torch.float32 or torch.compiler.is_compiling():
        return None
    if type(x) is not Tensor or torch._C._len_torch_dispatch_stack():
        return None
    return _plan(weight.shape[0])


class _Tables:
    """Roots of unity and index orders of a length on a device, and the kernels."""

    def __init__(self, plan: Plan, width: int, out: int, device: torch.device) -> None:
        order = stored_frequencies(plan).reshape(-1, plan.radices[-1]).T.ravel()
        self.plan, self.device = plan, device
        self.roots = torch.from_numpy(roots(plan).astype(np.complex64)).to(device)
        self.order = torch.from_numpy(np.ascontiguousarray(order)).to(device)
        self.back = torch.argsort(self.order)
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count
        index, shared = device.index, plan.shared_bytes
        self.forward = Kernel(layer_source(plan, width, out, "forward"), "forward", index, shared)
        self.backward = Kernel(layer_source(plan, out, width, "backward"), "backward", index, shared)


@functools.lru_cache(maxsize=64)
def _tables(plan: Plan, width: int, out: int, device: torch.device) -> _Tables:
    return _Tables(plan, width, out, device)


def _place(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


class FusedCirculant(torch.autograd.Function):
    """Compute R D x + b for the rows of x, and first derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, r: Tensor, bias: Tensor | None, signs: Tensor | None, out: int) -> Tensor:
        plan = plan_of(x, r)
        assert plan is not None
        x = x.contiguous()
        tables = _tables(plan, x.shape[1], out, x.device)
        spectrum = torch.fft.fft(r)[tables.order] * (1.0 / plan.n)
        y = torch.empty(len(x), out, dtype=torch.float32, device=x.device)
        pairs = -(-len(x) // 2)
        kept = None
        if ctx.needs_input_grad[1]:
            kept = torch.empty(pairs, plan.n, dtype=torch.complex64, device=x.device)
        arguments = _Arguments(
            x.data_ptr(), _place(signs), _place(bias), spectrum.data_ptr(), tables.roots.data_ptr(), _place(kept), None,
            y.data_ptr(), len(x),
        )  # fmt: skip
        tables.forward.start((min(pairs, tables.processors * plan.blocks), 1), plan.threads, arguments)
        ctx.tables, ctx.width, ctx.has_bias = tables, x.shape[1], bias is not None
        ctx.save_for_backward(spectrum, signs, kept)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, delta: Tensor) -> Any:
        spectrum, signs, kept = ctx.saved_tensors
        tables, plan = ctx.tables, ctx.tables.plan
        delta = delta.contiguous()
        rows, pairs = len(delta), -(-len(delta) // 2)
        of_x = torch.empty(rows, ctx.width, dtype=torch.float32, device=delta.device)
        groups, partial = min(pairs, tables.processors * min(plan.blocks, _GROUPS)), None
        if kept is not None:
            partial = torch.empty(groups, plan.n, dtype=torch.complex64, device=delta.device)
        arguments = _Arguments(
            delta.data_ptr(), _place(signs), None, spectrum.data_ptr(), tables.roots.data_ptr(), _place(kept),
            _place(partial), of_x.data_ptr(), rows,
        )  # fmt: skip
        tables.backward.start((groups, 1), plan.threads, arguments)
        of_r = None if partial is None else torch.fft.ifft(partial.sum(0)[tables.back]).real
        of_bias = delta.sum(0) if ctx.has_bias and ctx.needs_input_grad[2] else None
        return of_x if ctx.needs_input_grad[0] else None, of_r, of_bias, None, None


def fused(x: Tensor, r: Tensor, bias: Tensor | None, signs: Tensor | None, out: int) -> Tensor | None:
    """Return the output for x of shape (…, width); None if there is no kernel."""
    if plan_of(x, r) is None:
        return None
    try:
        outputs: Tensor = FusedCirculant.apply(x.reshape(-1, x.shape[-1]), r, bias, signs, out)
    except KernelError as error:
        say_once(f"a kernel of mercer.nn cannot be used ({str(error)[:200]}): falling back to the FFT of torch")
        return None
    return outputs.view(*x.shape[:-1], out)
