"""Kernels of a GPU on the CPU, letter for letter: threads of a block are coroutines, barriers and shuffles wait.

Blocks run one after another, so that shared memory is static memory; what depends on two blocks running together is
not tried here, nor is the order of atomic additions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from reference.compiled import library

__all__ = ["run_kernel"]

HEAD = r"""
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
using std::fabs; using std::fmax; using std::fmin;
struct Place { unsigned x = 0; };
static Place threadIdx, blockIdx, blockDim, gridDim;
static float __int_as_float(int u) { float f; std::memcpy(&f, &u, 4); return f; }
static int __float_as_int(float f) { int u; std::memcpy(&u, &f, 4); return u; }
static double __longlong_as_double(long long u) { double f; std::memcpy(&f, &u, 8); return f; }
static long long __double_as_longlong(double f) { long long u; std::memcpy(&u, &f, 8); return u; }
static int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int atomicOr(int* p, int x) { const int old = *p; *p |= x; return old; }
typedef unsigned long long u64;
static u64 atomicAdd(u64* p, u64 x) { const u64 old = *p; *p += x; return old; }

namespace fibers {
struct Barrier { int waiting = 0, alive = 0; long long round = 0; };
static ucontext_t home;
static std::vector<ucontext_t> threads;
static std::vector<std::vector<char>> stacks;
static std::vector<bool> done;
static Barrier whole, warps[32];
static unsigned char values[1024][8];
static int current = 0;
static void (*body)(const void*);
static const void* arguments;

static void pause() { swapcontext(&threads[current], &home); }
static void open(Barrier& b) { if (b.alive && b.waiting == b.alive) { b.waiting = 0; ++b.round; } }
static void wait(Barrier& b) {
  const long long round = b.round;
  ++b.waiting;
  open(b);
  while (b.round == round) pause();
}
static void enter() {
  body(arguments);
  done[current] = true;
  for (Barrier* b : {&whole, &warps[current / 32]}) { --b->alive; open(*b); }
  swapcontext(&threads[current], &home);
}
static void run(int blocks, int n) {
  threads.resize(n);
  stacks.resize(n);
  blockDim.x = n;
  gridDim.x = blocks;
  for (int block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    done.assign(n, false);
    whole = Barrier{0, n, 0};
    for (int w = 0; w < 32; ++w) warps[w] = Barrier{0, std::max(0, std::min(32, n - 32 * w)), 0};
    for (int k = 0; k < n; ++k) {
      stacks[k].resize(1 << 16);
      getcontext(&threads[k]);
      threads[k].uc_stack.ss_sp = stacks[k].data();
      threads[k].uc_stack.ss_size = stacks[k].size();
      threads[k].uc_link = &home;
      makecontext(&threads[k], enter, 0);
    }
    for (bool left = true; left;) {
      left = false;
      for (int k = 0; k < n; ++k) {
        if (done[k]) continue;
        left = true;
        current = k;
        threadIdx.x = k;
        swapcontext(&home, &threads[k]);
      }
    }
  }
}
}  // namespace fibers

static void __syncthreads() { fibers::wait(fibers::whole); }
static void __syncwarp() { fibers::wait(fibers::warps[threadIdx.x / 32]); }
template <class T> T from_lane(T x, int lane) {
  std::memcpy(fibers::values[threadIdx.x], &x, sizeof(T));
  __syncwarp();
  std::memcpy(&x, fibers::values[threadIdx.x / 32 * 32 + lane], sizeof(T));
  __syncwarp();
  return x;
}
template <class T> T __shfl_xor_sync(unsigned, T x, int k) { return from_lane(x, (threadIdx.x & 31) ^ k); }
template <class T> T __shfl_sync(unsigned, T x, int k) { return from_lane(x, k); }
template <class T> T __shfl_up_sync(unsigned, T x, int k) {
  const int lane = threadIdx.x & 31;
  return from_lane(x, lane >= k ? lane - k : lane);
}
template <class T> T __shfl_down_sync(unsigned, T x, int k) {
  const int lane = threadIdx.x & 31;
  return from_lane(x, lane + k < 32 ? lane + k : lane);
}
template <class T> unsigned same_lanes(T mine, T x) {  // the lanes that gave x
  std::memcpy(fibers::values[threadIdx.x], &mine, sizeof(T));
  __syncwarp();
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane)
    same |= unsigned(!std::memcmp(fibers::values[threadIdx.x / 32 * 32 + lane], &x, sizeof(T))) << lane;
  __syncwarp();
  return same;
}
static unsigned __ballot_sync(unsigned, bool x) { return same_lanes(x, true); }
static unsigned __match_any_sync(unsigned, int x) { return same_lanes(x, x); }
"""

_FOOT = r"""
extern "C" void start_{name}(const Arguments* g, int blocks, int threads) {{
  fibers::body = [](const void* p) {{ {name}(*(const Arguments*)p); }};
  fibers::arguments = g;
  fibers::run(blocks, threads);
}}
"""


def run_kernel(text: str, names: Sequence[str], name: str, blocks: int, threads: int, arguments: Any) -> None:
    """Run one of the kernels ``names`` of a text with a structure of arguments."""
    made = library(HEAD + text + "".join(_FOOT.format(name=each) for each in names))
    getattr(made, f"start_{name}")(ctypes.byref(arguments), blocks, threads)
