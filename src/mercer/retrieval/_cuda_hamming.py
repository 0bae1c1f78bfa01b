"""Hamming distances on a GPU, counted in place with one read of the codes.

    key(q, i) = dist(q, i) · 2^shift + i        or the distance alone

A code is assigned to 1, 2, 4, … or 32 adjacent threads. A whole warp reads a long code, so that adjacent threads read
adjacent words. Queries are in shared memory, and every code is compared with all of them.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, NamedTuple

from mercer._nvrtc import Kernel, KernelError, available

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Layout", "distances", "layout_for", "serves", "source"]

_THREADS = 256
_SHARED = 32 * 1024  # bytes for queries
_HELD = 8  # units of a code that a thread keeps in registers
_UNITS = {16: "uint4", 4: "unsigned", 1: "unsigned char"}


class Layout(NamedTuple):
    """How codes of one width are read."""

    width: int  # bytes of a code
    unit: int  # bytes read at once
    lanes: int  # threads of a code

    @property
    def queries(self) -> int:
        """Queries in shared memory at a time; 0 where not even one fits."""
        return min(64, _SHARED // self.width)


def layout_for(width: int, aligned: int) -> Layout:
    """For codes of ``width`` bytes that begin at multiples of ``aligned`` bytes."""
    unit = next(size for size in _UNITS if width % size == 0 and aligned % size == 0)
    lanes = 1
    while lanes < 32 and width // unit > _HELD * lanes:
        lanes *= 2
    return Layout(width, unit, lanes)


_SOURCE = """\
#define WIDTH {width}
#define LANES {lanes}
#define T {threads}
typedef {kind} Unit;
#define UNITS (WIDTH / {unit})
#define EACH ((UNITS + LANES - 1) / LANES)
struct Arguments {{
  const unsigned char* codes; long long n; const unsigned char* queries; int n_queries; int shift; int places; int* out;
}};
__device__ __forceinline__ int differing(const {kind}& a, const {kind}& b) {{ return {count}; }}
// The bits in which the units of one lane differ; those of the code lie ``step`` apart.
__device__ __forceinline__ int part(const Unit* code, const int step, const Unit* query, const int lane) {{
  int total = 0;
#pragma unroll {unroll}
  for (int i = 0; i < EACH; ++i)
    if (UNITS % LANES == 0 || i * LANES + lane < UNITS) total += differing(code[i * step], query[i * LANES + lane]);
  return total;
}}
"""

_KERNEL = """\
extern "C" __global__ void __launch_bounds__(T) hamming(const Arguments g) {{
  __shared__ __align__(16) unsigned char near[{queries} * WIDTH];
  const int first = blockIdx.y * {queries}, count = min({queries}, g.n_queries - first);
  for (int i = threadIdx.x; i < count * WIDTH; i += T) near[i] = g.queries[(long long)first * WIDTH + i];
  __syncthreads();
  const int lane = threadIdx.x % LANES;
  const long long row = ((long long)blockIdx.x * T + threadIdx.x) / LANES, read = min(row, g.n - 1);
  const Unit* code = reinterpret_cast<const Unit*>(g.codes + read * WIDTH) + lane;
{held}  for (int q = 0; q < count; ++q) {{
    int total = part({code}, reinterpret_cast<const Unit*>(near + q * WIDTH), lane);
    for (int k = LANES / 2; k; k /= 2) total += __shfl_xor_sync(~0u, total, k);
    if (lane == 0 && row < g.n)
      g.out[(first + q) * g.n + row] = (total << g.shift) + (g.places ? (int)row : 0);
  }}
}}
"""


def source(layout: Layout) -> str:
    """The CUDA source of the kernel ``hamming``."""
    counts = {
        16: "__popc(a.x ^ b.x) + __popc(a.y ^ b.y) + __popc(a.z ^ b.z) + __popc(a.w ^ b.w)",
        4: "__popc(a ^ b)",
        1: "__popc((unsigned)(a ^ b))",
    }
    short = layout.width // layout.unit <= _HELD * layout.lanes
    text = _SOURCE.format(
        width=layout.width, lanes=layout.lanes, threads=_THREADS, kind=_UNITS[layout.unit], unit=layout.unit,
        count=counts[layout.unit], unroll=_HELD,
    )  # fmt: skip
    code = "own, 1" if short else "code, LANES"
    return text + _KERNEL.format(queries=layout.queries, held=_OWN if short else "", code=code)


_OWN = """\
  Unit own[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i)
    if (UNITS % LANES == 0 || i * LANES + lane < UNITS) own[i] = code[i * LANES];
"""


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("codes", ctypes.c_void_p), ("n", ctypes.c_longlong), ("queries", ctypes.c_void_p),
        ("n_queries", ctypes.c_int), ("shift", ctypes.c_int), ("places", ctypes.c_int), ("out", ctypes.c_void_p),
    )  # fmt: skip


_refused: set[tuple[Layout, int]] = set()  # that could not be compiled or started, on a device


def serves(codes: Tensor) -> bool:
    """Return whether the kernel supports these codes, as far as is known."""
    if not codes.is_cuda or not available():
        return False
    layout = layout_for(codes.shape[1], codes.data_ptr())
    return layout.queries > 0 and (layout, codes.device.index) not in _refused


@functools.lru_cache(maxsize=32)
def _kernel(layout: Layout, device: int) -> Kernel:
    return Kernel(source(layout), "hamming", device)


def distances(queries: Tensor, codes: Tensor, shift: int | None = None) -> Tensor:
    """Hamming distances of all pairs, or with ``shift`` keys of distance and place; int32.

    Parameters
    ----------
    queries, codes : CUDA tensors of uint8 of shape (q, width) and (n, width), contiguous
        Codes supported by the kernel (see `serves`).
    shift : int, optional

    Returns
    -------
    tensor of shape (q, n)

    Raises
    ------
    KernelError
        If the kernel cannot be compiled or started here.
    """
    import torch

    n, width = codes.shape
    out = torch.empty((len(queries), n), dtype=torch.int32, device=codes.device)
    if not out.numel():
        return out
    layout = layout_for(width, codes.data_ptr())
    per_block = _THREADS // layout.lanes
    arguments = _Arguments(
        codes.data_ptr(), n, queries.data_ptr(), len(queries), shift or 0, int(shift is not None), out.data_ptr()
    )
    blocks = (-(-n // per_block), -(-len(queries) // layout.queries))
    try:
        _kernel(layout, codes.device.index).start(blocks, _THREADS, arguments)
    except KernelError:
        _refused.add((layout, codes.device.index))
        raise
    return out
