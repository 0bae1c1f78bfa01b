"""GPU kernels of Mercer, compiled by NVRTC on first use and cached.

NVRTC comes with torch. Where it is missing, `KernelError` tells the caller to compute without it.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from typing import Any

__all__ = ["Kernel", "KernelError", "available"]


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


def available() -> bool:
    """Return whether kernels can be compiled and started here."""
    return _libraries() is not None


_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT


class KernelError(RuntimeError):
    """The kernel could not be compiled or started; the caller computes without it."""


def _checked(code: int, what: str) -> None:
    if code:
        raise KernelError(f"{what} failed with code {code}")


class Kernel:
    """A compiled kernel on a device.

    Parameters
    ----------
    text, name : str
        Source, and the name of the kernel in it.
    device : int
    shared_bytes : int
        Shared memory of a block.
    """

    def __init__(self, text: str, name: str, device: int, shared_bytes: int = 0) -> None:
        import torch

        libraries = _libraries()
        if libraries is None:
            raise KernelError("NVRTC is not available")
        nvrtc, self._driver = libraries
        self._function, self._device, self._shared = ctypes.c_void_p(), device, shared_bytes
        image, module = _compiled(nvrtc, text, torch.cuda.get_device_capability(device)), ctypes.c_void_p()
        with torch.cuda.device(device):
            torch.cuda.current_stream()  # the driver must have its context
            _checked(self._driver.cuModuleLoadData(ctypes.byref(module), image), "loading the kernel")
            code = self._driver.cuModuleGetFunction(ctypes.byref(self._function), module, name.encode())
            _checked(code, "loading the kernel")
            asked = self._driver.cuFuncSetAttribute(self._function, 8, shared_bytes)
            _checked(asked, "asking for shared memory")
            self._context = ctypes.c_void_p()
            _checked(self._driver.cuCtxGetCurrent(ctypes.byref(self._context)), "asking for the context")

    def start(
        self, blocks: tuple[int, int], threads: int, arguments: ctypes.Structure, stream: ctypes.c_void_p | None = None
    ) -> None:
        """Start the kernel with one struct of arguments, on the current stream or a given one of the current device."""
        if stream is not None:
            self._launch(blocks, threads, arguments, stream)
            return
        import torch

        with torch.cuda.device(self._device):
            self._launch(blocks, threads, arguments, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

    def _launch(
        self, blocks: tuple[int, int], threads: int, arguments: ctypes.Structure, stream: ctypes.c_void_p
    ) -> None:
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        given = self._function, *blocks, 1, threads, 1, 1, self._shared, stream, pointers, None
        code = self._driver.cuLaunchKernel(*given)
        if code == _NO_CONTEXT:  # a thread, autograd's for one, that has not met the device yet
            _checked(self._driver.cuCtxSetCurrent(self._context), "setting the context")
            code = self._driver.cuLaunchKernel(*given)
        _checked(code, "starting the kernel")


@functools.lru_cache(maxsize=8)
def _compiled(nvrtc: Any, text: str, capability: tuple[int, int]) -> Any:
    """Machine code of a source, which may have several kernels."""
    program = ctypes.c_void_p()
    _checked(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"mercer.cu", 0, None, None), "NVRTC")
    options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode(), b"--std=c++17"]
    code, size = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * 2)(*options)), ctypes.c_size_t()
    if code:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise KernelError(f"NVRTC failed: {log.value.decode(errors='replace')[:2000]}")
    _checked(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "NVRTC")
    image = ctypes.create_string_buffer(size.value)
    _checked(nvrtc.nvrtcGetCUBIN(program, image), "NVRTC")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image
