"""Walks of particles through temperatures on a GPU, each recorded once as a CUDA graph and started as a whole.

A sweep of a few hundred particles takes a GPU some microseconds, and Python a hundred times that to ask for it. Here
the kernels of many sweeps are recorded with their buffers; what changes from one start to the next (parameters, states,
how many keys were used) is copied into these buffers first. A walk whose temperatures the effective sample size chooses
finds them on the GPU too and is recorded in parts of `PART` temperatures: past the end a part does nothing.

Random numbers are those of the other ways (`mercer.learning.learners.Keys`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from mercer._gpu_random import RANDOM
from mercer._nvrtc import Kernel, KernelError
from mercer.learning.learners import Keys

__all__ = ["MOST_PARTICLES", "Walks", "walks_for"]

MOST_PARTICLES = 1024
"""Of a walk with resampling, which one block does."""
PART = 16
_ROUNDS, _TRIES = 3, 19
_MOST = 100_000  # temperatures
_THREADS = 128
_KERNELS = ("start_walk", "draw_rows", "densities", "gains", "narrow", "resample", "end_step")

_SOURCE = (
    RANDOM
    + """
struct Arguments {
  const float *fields, *linear; float* out; double *density, *walk, *ends; long long *counts, *index;
  const double* uniforms; double before, after, ess; long long n, m; int offset, first, tries, round, place;
};
// walk: 0 inverse temperature, 1 length of the last step, 2 low, 3 high, 4 where the step ends
// counts: 0 seed, 1 keys that were used, 2 temperatures, 3 whether there is a step to make

__device__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

// Lengths around a guess, and the whole rest.
__device__ void begin(const Arguments& a) {
  const double beta = a.walk[0], rest = 1.0 - beta;
  a.counts[3] = beta < 1.0;
  a.walk[2] = 0.0;
  a.walk[3] = rest;
  a.ends[0] = beta;
  a.ends[1] = 1.0;
  for (int k = 2; k < a.tries; ++k) a.ends[k] = beta + fmin(a.walk[1] * pow(3.0, (k - 10) / 8.0), rest);
}

extern "C" __global__ void start_walk(const Arguments a) {
  if (threadIdx.x == 0) begin(a);
}

extern "C" __global__ void draw_rows(const Arguments a) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= a.n * a.m || (a.walk && !a.counts[3])) return;
  const long long row = at / a.m, from = a.index ? a.index[row] * a.m + at % a.m : at;
  const u64 number = (u64)(a.counts[1] + a.offset);
  const u64 key = mixed((u64)a.counts[0] + 0x9e3779b97f4a7c15ull * number);
  const float scale = a.walk ? (float)a.walk[4] : (float)a.after;
  a.out[at] = drawn(uniform(key, row, at % a.m), scale * a.fields[from]);
}

__device__ double summed(double value) {
  __shared__ double parts[32];
  for (int shift = 16; shift; shift >>= 1) value += __shfl_down_sync(0xffffffffu, value, shift);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0;
  if (threadIdx.x < 32)
    for (int shift = 16; shift; shift >>= 1) value += __shfl_down_sync(0xffffffffu, value, shift);
  return value;
}

// Log densities of each row (blockIdx.x) at some of the ends (blockIdx.y).
extern "C" __global__ void densities(const Arguments a) {
  if (!a.counts[3]) return;
  const float* fields = a.fields + blockIdx.x * a.m;
  const int k = a.first + blockIdx.y;
  const float beta = (float)a.ends[k];
  double total = 0.0;
  for (long long j = threadIdx.x; j < a.m; j += blockDim.x) total += softplus(beta * fields[j]);
  total = summed(total);
  if (threadIdx.x == 0) a.density[k * a.n + blockIdx.x] = total + a.ends[k] * a.linear[blockIdx.x];
}

// What a row gains from one temperature to another, added up.
extern "C" __global__ void gains(const Arguments a) {
  const float* fields = a.fields + blockIdx.x * a.m;
  double total = 0.0;
  for (long long j = threadIdx.x; j < a.m; j += blockDim.x)
    total += softplus((float)a.after * fields[j]) - softplus((float)a.before * fields[j]);
  total = summed(total);
  if (threadIdx.x == 0) a.density[blockIdx.x] += total + (a.after - a.before) * a.linear[blockIdx.x];
}

__device__ double largest(double value) {
  for (int shift = 16; shift; shift >>= 1) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, shift));
  return value;
}

__device__ double added(double value) {
  for (int shift = 16; shift; shift >>= 1) value += __shfl_xor_sync(0xffffffffu, value, shift);
  return value;
}

// Effective sample sizes of the lengths that were tried (a warp each), and the lengths to try next.
extern "C" __global__ void narrow(const Arguments a) {
  if (!a.counts[3]) return;
  __shared__ double sizes[32];
  const int k = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (k > 0 && k < a.tries) {
    const double *here = a.density, *there = a.density + k * a.n;
    double most = -1e300, sum = 0.0, squares = 0.0;
    for (long long i = lane; i < a.n; i += 32) most = fmax(most, there[i] - here[i]);
    most = largest(most);
    for (long long i = lane; i < a.n; i += 32) {
      const double weight = exp(there[i] - here[i] - most);
      sum += weight;
      squares += weight * weight;
    }
    sum = added(sum);
    squares = added(squares);
    if (lane == 0) sizes[k] = sum * sum / (a.n * squares);
  }
  __syncthreads();
  if (threadIdx.x) return;
  const double beta = a.walk[0], rest = 1.0 - beta;
  double low = a.walk[2], high = a.walk[3], least = rest;
  if (a.round == 0 && sizes[1] >= a.ess) low = rest;
  for (int k = 1; k < a.tries && low < rest; ++k) {
    const double length = a.ends[k] - beta;
    least = fmin(least, length);
    if (sizes[k] >= a.ess) low = fmax(low, fmin(length, rest));
  }
  for (int k = 1; k < a.tries; ++k) {
    const double length = a.ends[k] - beta;
    if (sizes[k] < a.ess && length > low) high = fmin(high, length);
  }
  high = fmax(high, low);
  a.walk[2] = low;
  a.walk[3] = high;
  if (a.round + 1 == a.place) {
    if (low == 0.0) low = fmax(least, 1e-12);
    a.walk[4] = low >= rest ? 1.0 : fmin(1.0, beta + low);
    a.ends[1] = a.walk[4];
    return;
  }
  for (int k = 1; k < a.tries; ++k)
    a.ends[k] = beta + (low > 0.0 ? low * pow(high / low, k / (double)a.tries) : high * pow(0.5, k));
}

// Systematic resampling by the weights of a step; one block.
extern "C" __global__ void resample(const Arguments a) {
  if (!a.counts[3]) return;
  __shared__ double sums[1024];
  __shared__ double top[32];
  const int i = threadIdx.x;
  const double gain = i < a.n ? a.density[a.n + i] - a.density[i] : -1e300;
  double most = largest(gain);
  if (i % 32 == 0) top[i / 32] = most;
  __syncthreads();
  most = largest(top[i % 32]);
  sums[i] = i < a.n ? exp(gain - most) : 0.0;
  for (int shift = 1; shift < 1024; shift <<= 1) {
    __syncthreads();
    const double before = i >= shift ? sums[i - shift] : 0.0;
    __syncthreads();
    sums[i] += before;
  }
  __syncthreads();
  if (i < a.n) {
    const double place = (i + a.uniforms[a.place]) / a.n * sums[a.n - 1];
    long long low = 0, high = a.n - 1;  // the first whose sum is above the place
    while (low < high) {
      const long long middle = (low + high) / 2;
      if (sums[middle] > place) high = middle; else low = middle + 1;
    }
    a.index[i] = low;
  }
}

extern "C" __global__ void end_step(const Arguments a) {
  if (threadIdx.x || !a.counts[3]) return;
  a.walk[1] = a.walk[4] - a.walk[0];
  a.walk[0] = a.walk[4];
  a.walk[8 + a.place] = a.walk[4];
  a.counts[1] += 3;
  a.counts[2] += 1;
  begin(a);
}
"""
)


class _Arguments(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("fields", "linear", "out", "density", "walk", "ends")),
        *((name, ctypes.c_void_p) for name in ("counts", "index", "uniforms")),
        *((name, ctypes.c_double) for name in ("before", "after", "ess")),
        *((name, ctypes.c_longlong) for name in ("n", "m")),
        *((name, ctypes.c_int) for name in ("offset", "first", "tries", "round", "place")),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _kernel(name: str, device: int) -> Kernel:
    return Kernel(_SOURCE, name, device)


class Walks:
    """Buffers of a number of particles, and the graphs that were recorded on them.

    Parameters
    ----------
    n : int
        Particles.
    n_visible, n_hidden : int
    device : torch.device

    Raises
    ------
    KernelError
        Where kernels cannot be compiled here.
    """

    def __init__(self, n: int, n_visible: int, n_hidden: int, device: torch.device) -> None:
        def empty(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.n, self.device = n, device
        self.W, self.b, self.c = empty(n_visible, n_hidden), empty(n_hidden), empty(n_visible)
        self.v, self.h = empty(n, n_visible), empty(n, n_hidden)
        self.hidden_fields, self.visible_fields, self.linear = empty(n, n_hidden), empty(n, n_visible), empty(n)
        double, whole = torch.float64, torch.int64
        self.walk, self.ends = empty(8 + PART, dtype=double), empty(_TRIES, dtype=double)
        self.density, self.uniforms = empty(_TRIES, n, dtype=double), empty(PART, dtype=double)
        self.counts, self.index = empty(4, dtype=whole), empty(n, dtype=whole)
        self._graphs: dict[Any, torch.cuda.CUDAGraph] = {}
        for name in _KERNELS:  # before any recording, which must not load code
            _kernel(name, self._at)

    @property
    def _at(self) -> int:
        return self.device.index or 0

    # ------------------------------------------------------------------ kernels

    def _start(self, name: str, blocks: tuple[int, int], threads: int, **values: Any) -> None:
        tensors = {
            "density": self.density, "walk": self.walk, "ends": self.ends, "counts": self.counts, "index": self.index,
            "uniforms": self.uniforms, "linear": self.linear, "fields": self.hidden_fields,
        } | values  # fmt: skip
        fixed = {"n": self.n, "m": self.hidden_fields.shape[1], "tries": _TRIES} | tensors
        arguments = _Arguments(
            **{key: each.data_ptr() if isinstance(each, torch.Tensor) else each for key, each in fixed.items()}
        )
        _kernel(name, self._at).start(blocks, threads, arguments)

    def _draw(self, fields: torch.Tensor, out: torch.Tensor, offset: int, **values: Any) -> None:
        blocks = (-(-fields.numel() // 256), 1)
        chosen = {"index": None, "walk": None} | values
        self._start("draw_rows", blocks, 256, fields=fields, out=out, m=fields.shape[1], offset=offset, **chosen)

    def _hidden(self) -> None:
        torch.addmm(self.b, self.v, self.W, out=self.hidden_fields)

    def _visible(self) -> None:
        torch.addmm(self.c, self.h, self.W.T, out=self.visible_fields)

    def _sweep(self, offset: int, beta: float = 1.0) -> None:
        """The hidden fields are there."""
        self._draw(self.hidden_fields, self.h, offset, after=beta)
        self._visible()
        self._draw(self.visible_fields, self.v, offset + 1, after=beta)

    def _gain(self, before: float, after: float) -> None:
        torch.mv(self.v, self.c, out=self.linear)
        self._start("gains", (self.n, 1), _THREADS, before=before, after=after)

    # ------------------------------------------------------------------ records

    def _record_sweeps(self, count: int) -> None:
        for step in range(count):
            self._hidden()
            self._sweep(1 + 2 * step)

    def _record_excursion(self, betas: tuple[float, ...]) -> None:
        self.density[0].zero_()
        self._hidden()
        place = 1
        for before, after in pairwise(betas):
            self._gain(before, after)
            self._sweep(place, after)
            self._hidden()
            place += 2
        for after, before in pairwise(reversed(betas)):
            self._sweep(place, after)
            self._hidden()
            self._gain(after, before)
            place += 2

    def _record_part(self, ess: float) -> None:
        for step in range(PART):
            self._hidden()
            torch.mv(self.v, self.c, out=self.linear)
            for turn in range(_ROUNDS):
                first = 0 if turn == 0 else 1
                self._start("densities", (self.n, _TRIES - first), _THREADS, first=first)
                self._start("narrow", (1, 1), 32 * _TRIES, ess=ess, round=turn, place=_ROUNDS)
            self._start("densities", (self.n, 1), _THREADS, first=1)
            self._start("resample", (1, 1), 1024, place=step)
            self._draw(self.hidden_fields, self.h, 2, index=self.index, walk=self.walk)
            self._visible()
            self._draw(self.visible_fields, self.v, 3, walk=self.walk)
            self._start("end_step", (1, 1), 32, place=step)

    def _replay(self, key: Any, record: Callable[[], None]) -> None:
        graph = self._graphs.get(key)
        if graph is None:
            aside = torch.cuda.Stream(self.device)  # the libraries make their workspaces before the recording
            aside.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(aside):
                self._hidden()
                self._visible()
                torch.mv(self.v, self.c, out=self.linear)
            torch.cuda.current_stream(self.device).wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                record()
            self._graphs[key] = graph
        graph.replay()

    def _prepare(self, states: torch.Tensor, parts: Sequence[torch.Tensor], keys: Keys) -> None:
        for own, given in zip((self.W, self.b, self.c, self.v), (*parts, states), strict=True):
            own.copy_(given)
        seed = int(np.uint64(keys.seed).astype(np.int64))
        self.counts.copy_(torch.tensor([seed, keys.used, 0, 1], dtype=torch.int64))

    # ------------------------------------------------------------------ walks

    def sweeps(self, states: torch.Tensor, parts: Sequence[torch.Tensor], keys: Keys, count: int) -> torch.Tensor:
        """Return states after a number of sweeps."""
        self._prepare(states, parts, keys)
        self._replay(count, lambda: self._record_sweeps(count))
        keys.used += 2 * count
        return self.v.clone()

    def excursion(
        self, states: torch.Tensor, parts: Sequence[torch.Tensor], betas: Sequence[float], keys: Keys
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return states after a way along inverse temperatures and back, and the logarithm of what accepts them."""
        ladder = tuple(betas)
        self._prepare(states, parts, keys)
        self._replay(ladder, lambda: self._record_excursion(ladder))
        keys.used += 4 * (len(ladder) - 1)
        return self.v.clone(), self.density[0][:, None].clone()

    def anneal(
        self, states: torch.Tensor, parts: Sequence[torch.Tensor], ess: float, keys: Keys
    ) -> tuple[torch.Tensor, list[float]]:
        """Return uniform states after a walk to the field, and its inverse temperatures."""
        self._prepare(states, parts, keys)
        self.walk.copy_(torch.tensor([0.0, 0.1] + [0.0] * (6 + PART), dtype=torch.float64))
        self._start("start_walk", (1, 1), 32)
        betas: list[float] = []
        while len(betas) < _MOST:
            drawn = [_uniform(keys.key(keys.used + 1 + 3 * step)) for step in range(PART)]
            self.uniforms.copy_(torch.tensor(drawn, dtype=torch.float64))
            self._replay(ess, lambda: self._record_part(ess))
            record = torch.cat([self.walk, self.counts.double()]).tolist()
            taken = int(record[8 + PART + 2]) - len(betas)
            betas += record[8 : 8 + taken]
            keys.used += 3 * taken
            if record[0] >= 1.0:
                return self.v.clone(), betas
            if not np.isfinite(record[0]):
                break
        raise FloatingPointError(f"{len(betas)} temperatures were not enough: the parameters have diverged")


def _uniform(key: int) -> float:
    return float(np.random.Generator(np.random.Philox(key=key)).random())


@functools.lru_cache(maxsize=8)
def _walks(n: int, n_visible: int, n_hidden: int, device: torch.device) -> Walks | None:
    try:
        return Walks(n, n_visible, n_hidden, device)
    except KernelError:
        return None


def walks_for(states: torch.Tensor, n_hidden: int) -> Walks | None:
    """Return buffers for states on a GPU; None on other devices and where kernels cannot be compiled."""
    if not states.is_cuda:
        return None
    return _walks(len(states), states.shape[1], n_hidden, states.device)
