"""Sign-circulant codes by a GPU kernel of Mercer.

`mercer.retrieval.circulant_source` generates the source of the kernel. If NVRTC, or a plan for the length, is missing,
`KernelError` tells the caller to compute codes with torch's transforms.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from mercer._nvrtc import Kernel, KernelError
from mercer.retrieval.circulant_source import Plan, roots, sign_words, source, spectrum, takes_ballots

__all__ = ["CodeTables"]


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_void_p), ("stride", ctypes.c_longlong), ("rows", ctypes.c_longlong), ("signs", ctypes.c_void_p),
        ("spectrum", ctypes.c_void_p), ("roots", ctypes.c_void_p), ("mirrored", ctypes.c_void_p),
        ("out", ctypes.c_void_p), ("out_stride", ctypes.c_longlong), ("n_bits", ctypes.c_int),
        ("ahead", ctypes.c_int), ("broken", ctypes.c_void_p),
    )  # fmt: skip


@functools.lru_cache(maxsize=32)
def _codes_kernel(plan: Plan, ballots: bool, device: int) -> Kernel:
    return Kernel(source(plan, ballots), "circulant_codes", device, plan.shared_bytes)


class CodeTables:
    """The tables of one circulant on one device, and the kernels that read them.

    Parameters
    ----------
    plan : Plan
    r, signs : ndarray of shape (d,)
    device : torch.device
    """

    def __init__(self, plan: Plan, r: np.ndarray, signs: np.ndarray, device: Any) -> None:
        import torch

        def placed(values: np.ndarray) -> Any:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        values, mirrored = spectrum(plan, r)
        self.plan = plan
        self.signs = placed(sign_words(plan, signs).view(np.int32))
        self.spectrum = placed(values.astype(np.complex64).view(np.float32))
        self.mirrored = placed(mirrored)
        self.roots = placed(roots(plan).astype(np.complex64).view(np.float32))
        self.broken = torch.zeros(1, dtype=torch.int32, device=device)
        self.index = self.signs.device.index
        properties = torch.cuda.get_device_properties(self.index)
        self.ahead = properties.multi_processor_count * plan.blocks

    def write(self, x: Any, n_bits: int, out: Any) -> None:
        """Write the packed codes of the rows of a CUDA tensor to ``out``, which `finite` can then be asked about.

        Parameters
        ----------
        x : tensor of float32 of shape (n, d), neighbouring columns beside each other
        n_bits : int
            At most d.
        out : tensor of uint8 of shape (n, at least ⌈n_bits / 8⌉)

        Raises
        ------
        KernelError
            If the kernel cannot be compiled or started here.
        """
        plan = self.plan
        if not plan.pairs and (x.stride(0) % 2 or x.data_ptr() % 8):
            raise KernelError("rows taken alone are read two numbers at a time and must lie so")
        ballots = takes_ballots(plan, n_bits, out.stride(0)) and out.data_ptr() % 4 == 0
        arguments = _Arguments(
            x.data_ptr(), x.stride(0), len(x), self.signs.data_ptr(), self.spectrum.data_ptr(),
            self.roots.data_ptr(), self.mirrored.data_ptr(), out.data_ptr(), out.stride(0), n_bits, self.ahead,
            self.broken.data_ptr(),
        )  # fmt: skip
        blocks = -(-len(x) // 2) if plan.pairs else len(x)
        _codes_kernel(plan, ballots, self.index).start((blocks, 1), plan.threads, arguments)

    def finite(self) -> bool:
        """Return whether all rows of the last calls, and their sums, were finite; wait for the calls."""
        if not int(self.broken):
            return True
        self.broken.zero_()
        return False
