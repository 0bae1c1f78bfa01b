"""Sign-circulant codes on a GPU in one kernel, compiled by NVRTC when it is first needed, and kept.

The text of the kernel is made by `mercer.retrieval._cuda_source`. NVRTC comes with torch; where it, or a plan for the
length, is missing, `KernelError` tells the caller to compute codes from torch's own transforms.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from typing import Any

import numpy as np

from mercer.retrieval._cuda_source import Plan, roots, sign_words, source, spectrum, takes_ballots

__all__ = ["CodeTables", "KernelError"]


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_void_p), ("stride", ctypes.c_longlong), ("rows", ctypes.c_longlong), ("signs", ctypes.c_void_p),
        ("spectrum", ctypes.c_void_p), ("roots", ctypes.c_void_p), ("mirrored", ctypes.c_void_p),
        ("out", ctypes.c_void_p), ("out_stride", ctypes.c_longlong), ("n_bits", ctypes.c_int),
        ("ahead", ctypes.c_int), ("broken", ctypes.c_void_p),
    )  # fmt: skip


@functools.lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any] | None:
    """NVRTC and the driver; None where one of them is missing."""
    folders = [os.path.join(path, "nvidia", "*", "lib") for path in sys.path if path]
    folders += [os.path.join(os.environ.get(name, ""), "lib64") for name in ("CUDA_HOME", "CUDA_PATH")]
    names = [name for folder in [*folders, "/usr/local/cuda/lib64"] for name in glob.glob(f"{folder}/libnvrtc.so*")]
    for name in [*sorted(names), "libnvrtc.so"]:
        try:
            return ctypes.CDLL(name), ctypes.CDLL("libcuda.so.1")
        except OSError:
            continue
    return None


class KernelError(RuntimeError):
    """The kernel could not be compiled or started; what was asked for is computed in another way."""


def _checked(code: int, what: str) -> None:
    if code:
        raise KernelError(f"{what} failed with code {code}")


@functools.lru_cache(maxsize=32)
def _function(plan: Plan, ballots: bool, device: int, capability: tuple[int, int]) -> Any:
    """The compiled kernel on a device."""
    libraries = _libraries()
    if libraries is None:
        raise KernelError("NVRTC is not there")
    nvrtc, driver = libraries
    text, program = source(plan, ballots).encode(), ctypes.c_void_p()
    _checked(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"circulant_codes.cu", 0, None, None), "NVRTC")
    options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode(), b"--std=c++17"]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if code:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise KernelError(f"NVRTC failed: {log.value.decode(errors='replace')[:2000]}")
    size = ctypes.c_size_t()
    _checked(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "NVRTC")
    image = ctypes.create_string_buffer(size.value)
    _checked(nvrtc.nvrtcGetCUBIN(program, image), "NVRTC")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _checked(driver.cuModuleLoadData(ctypes.byref(module), image), "loading the kernel")
    _checked(driver.cuModuleGetFunction(ctypes.byref(function), module, b"circulant_codes"), "loading the kernel")
    _checked(driver.cuFuncSetAttribute(function, 8, plan.shared_bytes), "asking for shared memory")
    return function


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
        found = torch.cuda.get_device_properties(self.index)
        self.capability, self.ahead = (found.major, found.minor), found.multi_processor_count * plan.blocks

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
            Where the kernel cannot be compiled or started here.
        """
        import torch

        plan = self.plan
        if not plan.pairs and (x.stride(0) % 2 or x.data_ptr() % 8):
            raise KernelError("rows taken alone are read two numbers at a time and must lie so")
        with torch.cuda.device(self.index):
            ballots = takes_ballots(plan, n_bits, out.stride(0)) and out.data_ptr() % 4 == 0
            function = _function(plan, ballots, self.index, self.capability)
            arguments = _Arguments(
                x.data_ptr(), x.stride(0), len(x), self.signs.data_ptr(), self.spectrum.data_ptr(),
                self.roots.data_ptr(), self.mirrored.data_ptr(), out.data_ptr(), out.stride(0), n_bits, self.ahead,
                self.broken.data_ptr(),
            )  # fmt: skip
            pointers = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
            blocks = -(-len(x) // 2) if plan.pairs else len(x)
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            libraries = _libraries()
            assert libraries is not None
            code = libraries[1].cuLaunchKernel(
                function, blocks, 1, 1, plan.threads, 1, 1, plan.shared_bytes, stream, pointers, None
            )
            _checked(code, "starting the kernel")

    def finite(self) -> bool:
        """Whether all rows of the last calls, and sums of their numbers, were finite; waits for them."""
        if not int(self.broken):
            return True
        self.broken.zero_()
        return False
