"""Source code of the CUDA kernels of chains, compiled by NVRTC.

    prepare    e_t = exp(θ_t − max θ_t) of every position, a warp each
    truth      score(y) and counts of label pairs, a block for each sequence (of `sweep`, where both are needed)
    sweep      a_t = 2^k (a_{t−1} E) ∘ e_t and b_t = 2^k E (e_{t+1} ∘ b_{t+1}), E = exp(M − max M), a block for each
               sequence and direction: a thread keeps a column (row) of E in registers, a_{t−1} lies in shared memory
    rows       μ_t = a_t ∘ b_t / ⟨a_t, b_t⟩ minus the truth, and U_t with  Σ_t ξ_t = E ∘ Σ_t a_{t−1} ⊗ U_t, a warp each
    again      the same in the log domain and double precision, for sequences where a product underflowed
    finish     gradients of the shared scores, after Σ a ⊗ U was made by one matrix product
    summed     the weighted sum of the losses, by one block (of `finish`, where there is a gradient)
    viterbi    the best labels: δ in shared memory, back-pointers in bytes, walked back through shared memory
    ranks      the k best: a thread has a label and the k best that end with it, sums in double precision
    samples    draws from the last position to the first, p(i | j) ∝ a_{t−1}[i] E[i, j], a warp for each draw

Scales are powers of 2 and therefore exact. One more thread of `sweep` sums a_{t−1}; the scale of a_{t+1} is half of the
logarithm of that sum. The full logarithm would oscillate because of the delay of two positions; half of it converges.
Underflow changes ⟨a_t, b_t⟩ by at most the smallest number times the largest a or b, which `rows` checks.

Atomic additions use integers, so results are deterministic. The source also compiles as C++ with emulated threads and
barriers, which allows tests without a GPU.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from mercer._gpu_random import RANDOM

__all__ = ["AHEAD", "HELPERS", "KINDS", "Layout", "ranks_source", "source"]

KINDS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3}
AHEAD = 8
_IN_REGISTERS = {"float32": 128, "float64": 56}


@dataclass(frozen=True)
class Layout:
    """The compile-time parameters of a kernel.

    Attributes
    ----------
    n_labels : int
    real : str
        float32 or float64, the type of sums.
    emissions : str
        Type of the emissions.
    """

    n_labels: int
    real: str
    emissions: str

    @functools.cached_property
    def in_registers(self) -> bool:
        """Return whether the registers of a thread can hold a column of the transition matrix."""
        return self.n_labels <= _IN_REGISTERS[self.real]

    @functools.cached_property
    def threads(self) -> int:
        """Return the threads of `sweep` and `viterbi`: one per label and one for the sum."""
        return min(1024, -(-(self.n_labels + 1) // 32) * 32) if self.in_registers else 1024

    @property
    def pointer(self) -> str:
        """Return the type of back-pointers."""
        return "unsigned char" if self.n_labels <= 256 else "unsigned short"


def source(layout: Layout) -> str:
    """Return the source of all kernels except `ranks`, for these labels and types."""
    return _head(layout) + RANDOM + _COMMON + HELPERS + _SOURCE


def ranks_source(layout: Layout, k: int) -> str:
    """Return the source of `ranks` for the k best."""
    return f"#define RANKS {k}\n" + _head(layout) + RANDOM + _COMMON + HELPERS + _RANKS


def _head(layout: Layout) -> str:
    real = "double" if layout.real == "float64" else "float"
    return f"""
#define NL {layout.n_labels}
#define PAD {-(-layout.n_labels // 4) * 4}
#define KIND {KINDS[layout.emissions]}
#define THREADS {layout.threads}
#define REGISTERS {int(layout.in_registers)}
#define AHEAD {AHEAD}
#define DOUBLE {int(layout.real == "float64")}
typedef {real} real;
typedef {layout.pointer} pointer;
"""


_COMMON = r"""
typedef long long i64;
typedef unsigned long long u64;
#define FULL 0xffffffffu
#define NONE (-__longlong_as_double(0x7ff0000000000000ll))

struct Arguments {
  const void* emissions;   // batch x time x NL
  const real *transitions, *start, *end;
  const i64 *lengths, *tags;
  const double* weights;   // of the sequences; null: all are `factor`
  double factor;
  real *e, *ab;            // batch x time x NL; batch x time x 2 x NL
  real* shifts;            // batch x time
  int* scales;             // batch x time
  int* status;             // batch: 1 not finite, 2 unknown tags, 4 tags out of range, 8 done again
  double *log_z, *score;   // batch
  void* gradient;          // batch x time x NL, like the emissions, or null
  real* ends;              // batch x 2 x NL: gradients of first and last positions
  u64* counts;             // NL x NL, in units of unit_of
  double* partial;         // groups x NL x NL
  int* used;               // groups: which of them hold something
  const real* product;     // NL x NL
  real *out, *out_start, *out_end;  // gradients of transitions, start and end
  real* total;             // Σ weight (log Z − score), or null
  i64 *labels; pointer* back;
  double* expected;        // batch: E[transitions] of sequences that are done again, or null
  double *ranked, *scores; // batch x 2 x NL x k where shared memory is too small; batch x k
  int* places;             // batch x time x NL x k
  i64 batch, time;
  i64 size; u64 seed;      // draws of a sequence
  int groups, as_real;     // as_real: the gradient is of type real, whatever the emissions are
};

#if DOUBLE
#define NEGINF (-__longlong_as_double(0x7ff0000000000000ll))
#define POSINF (__longlong_as_double(0x7ff0000000000000ll))
#define BOUND 1e280
__device__ __forceinline__ real expr(real x) { return exp(x); }
__device__ __forceinline__ real maxr(real a, real b) { return fmax(a, b); }
__device__ __forceinline__ real power(int k) { return __longlong_as_double((i64)(k + 1023) << 52); }
__device__ __forceinline__ int exponent(real x) { return (int)((__double_as_longlong(x) >> 52) & 2047) - 1023; }
#define LIMIT 500
#define SLACK 4e-312
#else
#define NEGINF (-__int_as_float(0x7f800000))
#define POSINF (__int_as_float(0x7f800000))
#define BOUND 1e33f
__device__ __forceinline__ real expr(real x) { return expf(x); }
__device__ __forceinline__ real maxr(real a, real b) { return fmaxf(a, b); }
__device__ __forceinline__ real power(int k) { return __int_as_float((k + 127) << 23); }
__device__ __forceinline__ int exponent(real x) { return ((__float_as_int(x) >> 23) & 255) - 127; }
#define LIMIT 60
#define SLACK 1.5e-36f
#endif

__device__ __forceinline__ float from_half(unsigned short h) {
#ifdef __CUDA_ARCH__
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
#else
  const int sign = (h & 0x8000) << 16, exp5 = (h >> 10) & 31, rest = h & 1023;
  if (exp5 == 31) return __int_as_float(sign | 0x7f800000 | (rest << 13));
  if (exp5 == 0) return (sign ? -1.0f : 1.0f) * (float)rest * 5.9604644775390625e-08f;
  return __int_as_float(sign | ((exp5 + 112) << 23) | (rest << 13));
#endif
}
__device__ __forceinline__ unsigned short to_half(float f) {
#ifdef __CUDA_ARCH__
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
#else
  const unsigned bits = (unsigned)__float_as_int(f), sign = (bits >> 16) & 0x8000u;
  const float size = fabsf(f);
  if (!(size < 65520.0f)) return (unsigned short)(sign | 0x7c00u);
  if (size < 6.103515625e-05f) return (unsigned short)(sign | (unsigned)rintf(size * 16777216.0f));
  const unsigned kept = (unsigned)__float_as_int(size) + 0xfffu + (((unsigned)__float_as_int(size) >> 13) & 1u);
  return (unsigned short)(sign | ((kept >> 13) - (112u << 10)));
#endif
}
__device__ __forceinline__ unsigned short to_bfloat(float f) {
  const unsigned bits = (unsigned)__float_as_int(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fc0;
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ __forceinline__ real emission(const Arguments& g, i64 at) {
#if KIND == 0
  return ((const float*)g.emissions)[at];
#elif KIND == 1
  return (real)((const double*)g.emissions)[at];
#elif KIND == 2
  return from_half(((const unsigned short*)g.emissions)[at]);
#else
  return __int_as_float((int)((unsigned)((const unsigned short*)g.emissions)[at] << 16));
#endif
}
__device__ __forceinline__ void write_gradient(const Arguments& g, i64 at, real x) {
  if (g.as_real) {
    ((real*)g.gradient)[at] = x;
    return;
  }
#if KIND == 0
  ((float*)g.gradient)[at] = (float)x;
#elif KIND == 1
  ((double*)g.gradient)[at] = (double)x;
#elif KIND == 2
  ((unsigned short*)g.gradient)[at] = to_half((float)x);
#else
  ((unsigned short*)g.gradient)[at] = to_bfloat((float)x);
#endif
}

__device__ __forceinline__ i64 length_of(const Arguments& g, i64 b) {
  const i64 n = g.lengths[b];
  return n < 1 ? 1 : n > g.time ? g.time : n;
}
// The known tag at a position, clipped; known tells whether it was one.
__device__ __forceinline__ int tag_of(const Arguments& g, i64 at) {
  const i64 y = g.tags[at];
  return y < 0 ? 0 : y >= NL ? NL - 1 : (int)y;
}

__device__ __forceinline__ real warp_max(real x) {
  for (int k = 16; k; k >>= 1) x = maxr(x, __shfl_xor_sync(FULL, x, k));
  return x;
}
__device__ __forceinline__ real warp_sum(real x) {
  for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(FULL, x, k);
  return x;
}
__device__ __forceinline__ double warp_sum_double(double x) {
  for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(FULL, x, k);
  return x;
}
// Over a block of at most 1024 threads, whole warps; in the same order each time.
__device__ double block_sum(double x, double* memory) {
  x = warp_sum_double(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) memory[threadIdx.x >> 5] = x;
  __syncthreads();
  double total = 0.0;
  for (unsigned k = 0; k < blockDim.x >> 5; ++k) total += memory[k];
  return total;
}
__device__ real block_max(real x, double* memory) {
  x = warp_max(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) memory[threadIdx.x >> 5] = (double)x;
  __syncthreads();
  double top = memory[0];
  for (unsigned k = 1; k < blockDim.x >> 5; ++k) top = fmax(top, memory[k]);
  return (real)top;
}

__device__ __forceinline__ double weight_of(const Arguments& g, i64 b) { return g.weights ? g.weights[b] : g.factor; }

// Weights are counted in units of 2^-40 of the largest: sums of integers do not depend on their order.
__device__ double unit_of(const Arguments& g, double* memory) {
  double top = fabs(g.factor);
  if (g.weights) {
    top = 0.0;
    for (i64 b = threadIdx.x; b < g.batch; b += blockDim.x) top = fmax(top, fabs(g.weights[b]));
  }
  for (int k = 16; k; k >>= 1) top = fmax(top, __shfl_xor_sync(FULL, top, k));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) memory[threadIdx.x >> 5] = top;
  __syncthreads();
  for (unsigned k = 0; k < blockDim.x >> 5; ++k) top = fmax(top, memory[k]);
  const i64 power_of_2 = (__double_as_longlong(top) >> 52) & 2047;
  return power_of_2 > 60 ? __longlong_as_double((power_of_2 - 40) << 52) : 1.0;
}

"""

HELPERS = r"""
// Numbers in [0, 1) of a draw and a place.
__device__ __forceinline__ double share_of(u64 of_draw, i64 at) {
  return (double)(mixed(of_draw + 0x9e3779b97f4a7c15ull * (u64)at) >> 11) * 1.1102230246251565e-16;
}

// One of n by logarithms of weights, for a number in [0, 1): by all lanes of a warp. Some weight must not be 0.
template <class Term> __device__ int pick(int n, int lane, double share, Term term) {
  double top = NONE, total = 0.0;
  for (int k = lane; k < n; k += 32) top = fmax(top, term(k));
  for (int k = 16; k; k >>= 1) top = fmax(top, __shfl_xor_sync(FULL, top, k));
  for (int k = lane; k < n; k += 32) total += exp(term(k) - top);
  for (int k = 16; k; k >>= 1) total += __shfl_xor_sync(FULL, total, k);
  const double level = share * total;
  double before = 0.0;
  int last = 0;  // where rounding leaves none over the level
  for (int k0 = 0; k0 < n; k0 += 32) {
    const double own = k0 + lane < n ? exp(term(k0 + lane) - top) : 0.0;
    double sum = own;
    for (int k = 1; k < 32; k <<= 1) {
      const double other = __shfl_up_sync(FULL, sum, k);
      if (lane >= k) sum += other;
    }
    const unsigned over = __ballot_sync(FULL, own > 0.0 && before + sum > level), some = __ballot_sync(FULL, own > 0.0);
    if (over) return k0 + __ffs(over) - 1;
    if (some) last = k0 + 31 - __clz(some);
    before += __shfl_sync(FULL, sum, 31);
  }
  return last;
}

// The best of what was seen, the first of equal ones first.
template <int K> struct Ranked {
  double value[K];
  int place[K];
  __device__ __forceinline__ Ranked() {
    for (int r = 0; r < K; ++r) value[r] = NONE, place[r] = 0;
  }
  __device__ __forceinline__ bool takes(double x) const { return x > value[K - 1]; }
  __device__ __forceinline__ void add(double x, int at) {
    bool moved = false;
#pragma unroll
    for (int r = 0; r < K; ++r)
      if (moved || x > value[r]) {
        const double old = value[r];
        const int before = place[r];
        value[r] = x, place[r] = at;
        x = old, at = before;
        moved = true;
      }
  }
};
"""

_SOURCE = r"""
extern "C" __global__ void prepare(const Arguments g) {
  const i64 row = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (row >= g.batch * g.time) return;
  const i64 b = row / g.time, t = row % g.time;
  if (t >= length_of(g, b)) {
    for (int j = lane; j < NL; j += 32) {
      g.ab[2 * row * NL + j] = (real)0;
      g.ab[2 * row * NL + NL + j] = (real)0;
    }
    return;
  }
  real top = NEGINF;
  int wrong = 0;
  for (int j = lane; j < NL; j += 32) {
    const real x = emission(g, row * NL + j);
    wrong |= !(x < POSINF);
    top = maxr(top, x);
  }
  top = warp_max(top);
  if (wrong) atomicOr(g.status + b, 1);
  const real shift = top > NEGINF ? top : (real)0;
  for (int j = lane; j < NL; j += 32) g.e[row * NL + j] = expr(emission(g, row * NL + j) - shift);
  if (lane == 0) g.shifts[row] = shift;
}

__device__ void truth_of(const Arguments& g, i64 b, double* memory) {
  const i64 n = length_of(g, b), first = b * g.time;
  const int lane = threadIdx.x & 31;
  const u64 weight = g.counts ? (u64)llrint(weight_of(g, b) / unit_of(g, memory)) : 0ull;
  double total = 0.0;
  int seen = 0;
  for (i64 t0 = 0; t0 < n; t0 += blockDim.x) {
    const i64 t = t0 + threadIdx.x;
    int key = -1;
    if (t < n) {
      const i64 given = g.tags[first + t];
      if (given == -100) seen |= 2;
      else if (given < 0 || given >= NL) seen |= 4;
      const int y = tag_of(g, first + t);
      total += (double)emission(g, (first + t) * NL + y);
      if (t == 0) total += (double)g.start[y];
      if (t == n - 1) total += (double)g.end[y];
      if (t > 0) {
        key = tag_of(g, first + t - 1) * NL + y;
        total += (double)g.transitions[key];
      }
    }
    if (g.counts) {  // equal pairs of a warp are added at once
      const unsigned same = __match_any_sync(FULL, key);
      if (key >= 0 && lane == __ffs(same) - 1) atomicAdd(g.counts + key, weight * (u64)__popc(same));
    }
  }
  total = block_sum(total, memory);
  if (seen) atomicOr(g.status + b, seen);
  if (threadIdx.x == 0) g.score[b] = total;
}

extern "C" __global__ void truth(const Arguments g) {
  __shared__ double memory[32];
  truth_of(g, blockIdx.x, memory);
}

__device__ real shift_of(const real* x, int n, double* memory) {
  real top = NEGINF;
  for (int k = threadIdx.x; k < n; k += blockDim.x) top = maxr(top, x[k]);
  top = block_max(top, memory);
  return top > NEGINF ? top : (real)0;
}

// Half of the binary logarithm of a sum, negative, for the position after the next.
__device__ __forceinline__ int scale_of(real sum) {
  const int k = sum > (real)0 ? -exponent(sum) / 2 : 0;
  return k > LIMIT ? LIMIT : k < -LIMIT ? -LIMIT : k;
}

#if REGISTERS
struct alignas(16) Four { real v[4]; };

__device__ __forceinline__ real dot(const real* x, const real* m) {
  real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma unroll
  for (int i = 0; i < PAD; i += 4) {
    const Four v = *(const Four*)(x + i);
    s0 += v.v[0] * m[i];
    s1 += v.v[1] * m[i + 1];
    s2 += v.v[2] * m[i + 2];
    s3 += v.v[3] * m[i + 3];
  }
  return (s0 + s1) + (s2 + s3);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) sweep(const Arguments g) {
  alignas(16) __shared__ real x[2][PAD];
  __shared__ int scale[2];
  __shared__ double memory[32];
  if (blockIdx.x >= 2 * g.batch) {
    truth_of(g, blockIdx.x - 2 * g.batch, memory);
    return;
  }
  const bool backward = blockIdx.x >= g.batch;
  const i64 b = backward ? blockIdx.x - g.batch : blockIdx.x, n = length_of(g, b), first = b * g.time;
  const int j = threadIdx.x;
  const real shift = shift_of(g.transitions, NL * NL, memory);
  const real* border = backward ? g.end : g.start;
  const real border_shift = shift_of(border, NL, memory);
  const i64 origin = backward ? n - 1 : 0, step = backward ? -1 : 1;
  const real* e = g.e + (first + origin) * NL;
  real* kept = g.ab + 2 * (first + origin) * NL + (backward ? NL : 0);
  int* scales = g.scales + first + origin;
  for (int k = j; k < PAD; k += THREADS) x[0][k] = x[1][k] = (real)0;
  if (j < 2) scale[j] = 0;
  __syncthreads();
  i64 exponents = 0;
#if REGISTERS
  real m[PAD];
#pragma unroll
  for (int i = 0; i < PAD; ++i) {
    m[i] = j == NL ? (real)(i < NL) : (real)0;
    if (i < NL && j < NL) m[i] = expr(g.transitions[backward ? j * NL + i : i * NL + j] - shift);
  }
  real ahead[AHEAD];
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) ahead[k] = j < NL && k < n ? e[k * step * NL + j] : (real)0;
  if (j < NL) {
    const real v = expr(border[j] - border_shift);
    kept[j] = backward ? v : v * ahead[0];
    x[0][j] = v * ahead[0];
  }
  if (j == NL && !backward) scales[0] = 0;
  __syncthreads();
  for (i64 t0 = 0; t0 < n; t0 += AHEAD) {
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      const i64 t = t0 + k;
      if (t >= n) break;
      const real weight = ahead[k];
      if (j < NL && t + AHEAD < n) ahead[k] = e[(t + AHEAD) * step * NL + j];
      if (t == 0) continue;
      const real s = dot(x[(t + 1) & 1], m);
      const int power_of_2 = scale[(t + 1) & 1];
      exponents += power_of_2;
      if (j < NL) {
        const real v = s * power(power_of_2);
        x[t & 1][j] = v * weight;
        kept[2 * t * step * NL + j] = backward ? v : v * weight;
      } else if (j == NL) {
        scale[t & 1] = scale_of(s);
        if (!backward) scales[t] = power_of_2;
      }
      __syncthreads();
    }
  }
#else
  for (int c = j; c < NL; c += THREADS) {
    const real v = expr(border[c] - border_shift);
    kept[c] = backward ? v : v * e[c];
    x[0][c] = v * e[c];
  }
  if (j == 0 && !backward) scales[0] = 0;
  __syncthreads();
  for (i64 t = 1; t < n; ++t) {
    const real* before = x[(t + 1) & 1];
    const int power_of_2 = scale[(t + 1) & 1];
    exponents += power_of_2;
    for (int c = j; c < NL; c += THREADS) {
      real s0 = 0, s1 = 0;
      if (backward) {  // rows: the transposed matrix lies behind the other
        const real* m = g.transitions + NL * NL + c;
        for (int i = 0; i < NL; ++i) {
          const real term = before[i] * expr(m[(i64)i * NL] - shift);
          if (i & 1) s1 += term; else s0 += term;
        }
      } else {
        const real* m = g.transitions + c;
        for (int i = 0; i < NL; ++i) {
          const real term = before[i] * expr(m[(i64)i * NL] - shift);
          if (i & 1) s1 += term; else s0 += term;
        }
      }
      const real v = (s0 + s1) * power(power_of_2), weight = e[t * step * NL + c];
      x[t & 1][c] = v * weight;
      kept[2 * t * step * NL + c] = backward ? v : v * weight;
    }
    if (j < 32) {
      real s = 0;
      for (int c = j; c < NL; c += 32) s += before[c];
      s = warp_sum(s);
      if (j == 0) {
        scale[t & 1] = scale_of(s);
        if (!backward) scales[t] = power_of_2;
      }
    }
    __syncthreads();
  }
#endif
  if (backward) return;
  const real last_shift = shift_of(g.end, NL, memory);
  double mass = 0.0, shifts = 0.0;
  for (int c = j; c < NL; c += THREADS) mass += (double)(x[(n - 1) & 1][c] * expr(g.end[c] - last_shift));
  for (i64 t = j; t < n; t += THREADS) shifts += (double)g.shifts[first + t];
  mass = block_sum(mass, memory);
  shifts = block_sum(shifts, memory);
  if (j == 0)
    g.log_z[b] = log(mass) + shifts + (double)border_shift + (double)last_shift + (double)(n - 1) * (double)shift -
                 0.6931471805599453 * (double)exponents;
}

extern "C" __global__ void rows(const Arguments g) {
  const i64 row = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (row >= g.batch * g.time) return;
  const i64 b = row / g.time, t = row % g.time, n = length_of(g, b);
  if (t >= n) {
    if (g.gradient)
      for (int j = lane; j < NL; j += 32) write_gradient(g, row * NL + j, (real)0);
    return;
  }
  const real* a = g.ab + 2 * row * NL;
  real* beta = g.ab + (2 * row + 1) * NL;
  real top_a = 0, top_b = 0;
  for (int j = lane; j < NL; j += 32) {
    top_a = maxr(top_a, a[j]);
    top_b = maxr(top_b, beta[j]);
  }
  top_a = warp_max(top_a);
  top_b = warp_max(top_b);
  const real over_a = top_a > 0 ? power(-exponent(top_a)) : (real)0;
  const real over_b = top_b > 0 ? power(-exponent(top_b)) : (real)0;
  real product = 0;
  for (int j = lane; j < NL; j += 32) product += (a[j] * over_a) * (beta[j] * over_b);
  product = warp_sum(product);
  const real lower = top_a < top_b ? top_a : top_b;
  const int power_of_2 = g.scales[row];
  const real weight = (real)weight_of(g, b);
  const real factor = over_a * power(power_of_2) / product;
  const bool sound = product * lower > SLACK * NL && factor < BOUND;
  if (!sound && lane == 0) atomicOr(g.status + b, 8);
  if (!g.gradient) return;
  const int y = g.tags ? tag_of(g, row) : -1;
  for (int j = lane; j < NL; j += 32) {
    const real mu = (a[j] * over_a) * (beta[j] * over_b) / product;
    const real slope = weight * (mu - (real)(j == y));
    write_gradient(g, row * NL + j, slope);
    if (t == 0) g.ends[2 * b * NL + j] = slope;
    if (t == n - 1) g.ends[(2 * b + 1) * NL + j] = slope;
    beta[j] = t && sound ? g.e[row * NL + j] * (beta[j] * over_b) * (factor * weight) : (real)0;
  }
}

__device__ double log_sum_of(const double* x, double top, int n) {
  double total = 0.0;
  for (int k = 0; k < n; ++k) total += exp(x[k] - top);
  return log(total) + top;
}

// Log domain, a block for every few of the sequences that need it. α takes the place of a and b.
extern "C" __global__ void again(const Arguments g) {
  __shared__ double alpha[NL], beta[NL], next[NL], memory[32];
  __shared__ double level;
  const double none = NONE;
  for (i64 b = blockIdx.x; b < g.batch; b += g.groups) {
    __syncthreads();
    if (!(g.status[b] & 8)) continue;
    const i64 n = length_of(g, b), first = b * g.time;
    double* kept = (double*)(g.ab + 2 * first * NL);
#if DOUBLE
    const i64 pitch = 2 * NL;
#else
    const i64 pitch = NL;
#endif
    for (i64 t = 0; t < n; ++t) {
      for (int j = threadIdx.x; j < NL; j += blockDim.x) {
        double value;
        if (t == 0) {
          value = (double)g.start[j];
        } else {
          double top = none, total = 0.0;
          for (int i = 0; i < NL; ++i) top = fmax(top, alpha[i] + (double)g.transitions[i * NL + j]);
          if (top > none) {
            for (int i = 0; i < NL; ++i) total += exp(alpha[i] + (double)g.transitions[i * NL + j] - top);
            top += log(total);
          }
          value = top;
        }
        next[j] = value + (double)emission(g, (first + t) * NL + j);
      }
      __syncthreads();
      for (int j = threadIdx.x; j < NL; j += blockDim.x) kept[t * pitch + j] = alpha[j] = next[j];
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      double top = none;
      for (int j = 0; j < NL; ++j) {
        next[j] = alpha[j] + (double)g.end[j];
        top = fmax(top, next[j]);
      }
      g.log_z[b] = level = top > none ? log_sum_of(next, top, NL) : top;
    }
    __syncthreads();
    if (!g.gradient) continue;
    const bool dead = !(level > none);
    const double weight = weight_of(g, b);
    double* sums = g.partial + (i64)blockIdx.x * NL * NL;
    double own = 0.0;
    if (!g.used[blockIdx.x]) {
      for (int k = threadIdx.x; k < NL * NL; k += blockDim.x) sums[k] = 0.0;
      __syncthreads();
      if (threadIdx.x == 0) g.used[blockIdx.x] = 1;
    }
    for (int j = threadIdx.x; j < NL; j += blockDim.x) beta[j] = (double)g.end[j];
    __syncthreads();
    for (i64 t = n - 1; t >= 0; --t) {
      if (threadIdx.x == 0) {
        double top = none;
        for (int j = 0; j < NL; ++j) {
          next[j] = kept[t * pitch + j] + beta[j];
          top = fmax(top, next[j]);
        }
        level = top > none ? log_sum_of(next, top, NL) : 0.0;  // log Z once more: the rounding of long sums cancels
      }
      __syncthreads();
      const int y = g.tags ? tag_of(g, first + t) : -1;
      for (int j = threadIdx.x; j < NL; j += blockDim.x) {
        const double mu = dead ? 0.0 : exp(next[j] - level), slope = weight * (mu - (double)(j == y));
        write_gradient(g, (first + t) * NL + j, (real)slope);
        if (t == 0) g.ends[2 * b * NL + j] = (real)slope;
        if (t == n - 1) g.ends[(2 * b + 1) * NL + j] = (real)slope;
      }
      if (t > 0 && !dead)
        for (int k = threadIdx.x; k < NL * NL; k += blockDim.x) {
          const int i = k / NL, j = k % NL;
          const double xi = kept[(t - 1) * pitch + i] + (double)g.transitions[k] +
                            (double)emission(g, (first + t) * NL + j) + beta[j] - level;
          if (!(xi > -745.0)) continue;
          sums[k] += weight * exp(xi);
          own += exp(xi) * (double)g.transitions[k];
        }
      __syncthreads();
      for (int i = threadIdx.x; i < NL && t > 0; i += blockDim.x) {
        double top = none, total = 0.0;
        for (int j = 0; j < NL; ++j)
          top = fmax(top, (double)g.transitions[i * NL + j] + (double)emission(g, (first + t) * NL + j) + beta[j]);
        if (top > none) {
          for (int j = 0; j < NL; ++j)
            total += exp((double)g.transitions[i * NL + j] + (double)emission(g, (first + t) * NL + j) + beta[j] - top);
          top += log(total);
        }
        next[i] = top;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < NL && t > 0; i += blockDim.x) beta[i] = next[i];
      __syncthreads();
    }
    for (i64 k = threadIdx.x; k < 2 * n * NL; k += blockDim.x) g.ab[2 * first * NL + k] = (real)0;
    own = block_sum(own, memory);
    if (g.expected && threadIdx.x == 0) g.expected[b] = own;
  }
}

// The weighted sum of the losses, by one block.
__device__ void sum_losses(const Arguments& g, double* memory) {
  double total = 0.0;
  for (i64 b = threadIdx.x; b < g.batch; b += blockDim.x) total += weight_of(g, b) * (g.log_z[b] - g.score[b]);
  total = block_sum(total, memory);
  if (threadIdx.x == 0) *g.total = (real)total;
}

extern "C" __global__ void finish(const Arguments g) {
  __shared__ double memory[32];
  if (g.total && blockIdx.x == 0) sum_losses(g, memory);
  const real shift = shift_of(g.transitions, NL * NL, memory);
  const double unit = g.counts ? unit_of(g, memory) : 1.0;
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < NL * NL + 2 * NL; k += gridDim.x * blockDim.x) {
    double total = 0.0;
    if (k < NL * NL) {
      total = (double)(expr(g.transitions[k] - shift) * g.product[k]);
      for (int group = 0; group < g.groups; ++group)
        if (g.used[group]) total += g.partial[(i64)group * NL * NL + k];
      if (g.counts) total -= (double)(i64)g.counts[k] * unit;
    } else {
      const int side = k >= NL * NL + NL, j = k - NL * NL - side * NL;
      for (i64 b = 0; b < g.batch; ++b) total += (double)g.ends[(2 * b + side) * NL + j];
    }
    (k < NL * NL ? g.out[k] : k < NL * NL + NL ? g.out_start[k - NL * NL] : g.out_end[k - NL * NL - NL]) = (real)total;
  }
}

extern "C" __global__ void summed(const Arguments g) {
  __shared__ double memory[32];
  sum_losses(g, memory);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) viterbi(const Arguments g) {
  alignas(16) __shared__ real delta[2][PAD];
  __shared__ double memory[32];
  __shared__ int best;
  __shared__ pointer walked[8192];
  const i64 b = blockIdx.x, n = length_of(g, b), first = b * g.time;
  const int j = threadIdx.x;
  pointer* back = g.back + first * NL;
  double offset = 0.0;
  int wrong = 0;
  for (int k = j; k < PAD; k += THREADS) delta[0][k] = delta[1][k] = NEGINF;
  __syncthreads();
#if REGISTERS
  real m[PAD], ahead[AHEAD];
#pragma unroll
  for (int i = 0; i < PAD; ++i) m[i] = i < NL && j < NL ? g.transitions[i * NL + j] : NEGINF;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) ahead[k] = j < NL && k < n ? emission(g, (first + k) * NL + j) : NEGINF;
  for (i64 t0 = 0; t0 < n; t0 += AHEAD) {
    real level = (real)0;
    if (t0) {  // δ relative to its largest: long sums lose no digits
      level = NEGINF;
#pragma unroll
      for (int i = 0; i < PAD; ++i) level = maxr(level, delta[(t0 + 1) & 1][i]);
      if (!(level > NEGINF)) level = (real)0;
      offset += (double)level;
    }
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      const i64 t = t0 + k;
      if (t >= n) break;
      const real x = ahead[k];
      wrong |= !(x < POSINF);
      if (j < NL && t + AHEAD < n) ahead[k] = emission(g, (first + t + AHEAD) * NL + j);
      real top = NEGINF;
      int from = 0;
      if (t == 0) {
        if (j < NL) top = g.start[j];
      } else {
        const real* before = delta[(t + 1) & 1];
#pragma unroll
        for (int i = 0; i < PAD; i += 4) {
          const Four v = *(const Four*)(before + i);
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const real value = v.v[r] + m[i + r];
            if (value > top) {
              top = value;
              from = i + r;
            }
          }
        }
        if (k == 0) top -= level;
      }
      if (j < NL) {
        delta[t & 1][j] = top + x;
        if (t) back[t * NL + j] = (pointer)from;
      }
      __syncthreads();
    }
  }
#else
  for (i64 t = 0; t < n; ++t) {
    real level = (real)0;
    const real* before = delta[(t + 1) & 1];
    if (t && t % AHEAD == 0) {
      level = NEGINF;
      for (int i = j; i < NL; i += THREADS) level = maxr(level, before[i]);
      level = block_max(level, memory);
      if (!(level > NEGINF)) level = (real)0;
      offset += (double)level;
    }
    for (int c = j; c < NL; c += THREADS) {
      real top = NEGINF;
      int from = 0;
      if (t == 0) {
        top = g.start[c];
      } else {
        for (int i = 0; i < NL; ++i) {
          const real value = before[i] + g.transitions[(i64)i * NL + c];
          if (value > top) {
            top = value;
            from = i;
          }
        }
        top -= level;
        back[t * NL + c] = (pointer)from;
      }
      const real x = emission(g, (first + t) * NL + c);
      wrong |= !(x < POSINF);
      delta[t & 1][c] = top + x;
    }
    __syncthreads();
  }
#endif
  if (wrong) atomicOr(g.status + b, 1);
  if (j == 0) {
    double score = NONE;
    int found = 0;
    for (int c = 0; c < NL; ++c) {
      const double value = (double)delta[(n - 1) & 1][c] + (double)g.end[c];
      if (value > score) {
        score = value;
        found = c;
      }
    }
    best = found;
    g.log_z[b] = score + offset;
    g.labels[first + n - 1] = found;
  }
  for (i64 t = n + j; t < g.time; t += THREADS) g.labels[first + t] = -1;
  __syncthreads();
  const i64 chunk = 8192 / NL;
  for (i64 stop = n; stop > 1; stop -= chunk) {  // back-pointers of begin .. stop - 1, by way of shared memory
    const i64 begin = stop - chunk > 1 ? stop - chunk : 1;
    for (i64 k = j; k < (stop - begin) * NL; k += THREADS) walked[k] = back[begin * NL + k];
    __syncthreads();
    if (j == 0) {
      int label = best;
      for (i64 t = stop - 1; t >= begin; --t) {
        label = (int)walked[(t - begin) * NL + label];
        g.labels[first + t - 1] = label;
      }
      best = label;
    }
    __syncthreads();
    if (begin == 1) break;
  }
}

// Labellings drawn from p(y); logarithms of weights, so that all sequences are alike.
extern "C" __global__ void samples(const Arguments g) {
  const i64 which = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (which >= g.batch * g.size) return;
  const i64 b = which / g.size, n = length_of(g, b), first = b * g.time;
  const u64 of_draw = mixed(g.seed ^ mixed((u64)which));
  i64* out = g.labels + which * g.time;
  const bool dead = !(g.log_z[b] > NONE);
  for (i64 t = (dead ? 0 : n) + lane; t < g.time; t += 32) out[t] = -1;
  if (dead) return;
  const bool again = g.status[b] & 8;  // α in double precision stands where a was
#if DOUBLE
  const i64 pitch = 2 * NL;
#else
  const i64 pitch = NL;
#endif
  const double* alpha = (const double*)(g.ab + 2 * first * NL);
  int label = 0;
  for (i64 t = n - 1; t >= 0; --t) {
    const real* a = g.ab + 2 * (first + t) * NL;
    const real* into = t == n - 1 ? g.end : g.transitions + label;
    const i64 step = t == n - 1 ? 1 : NL;
    label = pick(NL, lane, share_of(of_draw, t), [&](int i) {
      return (again ? alpha[t * pitch + i] : log((double)a[i])) + (double)into[i * step];
    });
    if (lane == 0) out[t] = label;
  }
}
"""

_RANKS = r"""
#define ROOM (NL * RANKS <= 2560)
extern "C" __global__ void ranks(const Arguments g) {
#if ROOM
  __shared__ double kept[2 * NL * RANKS];
#else
  double* kept = g.ranked + (i64)blockIdx.x * 2 * NL * RANKS;
#endif
  __shared__ int chosen[RANKS];
  const i64 b = blockIdx.x, n = length_of(g, b), first = b * g.time;
  int* places = g.places + first * NL * RANKS;
  for (int k = threadIdx.x; k < NL * RANKS; k += blockDim.x)
    kept[k] = k % RANKS ? NONE : (double)g.start[k / RANKS] + (double)emission(g, first * NL + k / RANKS);
  __syncthreads();
  for (i64 t = 1; t < n; ++t) {
    const double* before = kept + (t + 1) % 2 * NL * RANKS;
    double* now = kept + t % 2 * NL * RANKS;
    for (int c = threadIdx.x; c < NL; c += blockDim.x) {
      const double x = (double)emission(g, (first + t) * NL + c);
      Ranked<RANKS> best;
      for (int i = 0; i < NL; ++i) {
        const double m = (double)g.transitions[i * NL + c];
        for (int r = 0; r < RANKS; ++r) {
          const double value = before[i * RANKS + r] + m;
          if (!best.takes(value)) break;
          best.add(value, i * RANKS + r);
        }
      }
      for (int r = 0; r < RANKS; ++r) {
        now[c * RANKS + r] = best.value[r] + x;
        places[(t * NL + c) * RANKS + r] = best.place[r];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    Ranked<RANKS> best;
    for (int k = 0; k < NL * RANKS; ++k) {
      const double value = kept[(n + 1) % 2 * NL * RANKS + k] + (double)g.end[k / RANKS];
      if (best.takes(value)) best.add(value, k);
    }
    for (int r = 0; r < RANKS; ++r) {
      g.scores[b * RANKS + r] = best.value[r];
      chosen[r] = best.value[r] > NONE ? best.place[r] : -1;
    }
  }
  __syncthreads();
  for (int r = threadIdx.x; r < RANKS; r += blockDim.x) {  // a thread walks back along a labelling
    i64* out = g.labels + (b * RANKS + r) * g.time;
    int place = chosen[r];
    for (i64 t = place < 0 ? 0 : n; t < g.time; ++t) out[t] = -1;
    for (i64 t = n - 1; t >= 0 && place >= 0; --t) {
      out[t] = place / RANKS;
      if (t) place = places[t * NL * RANKS + place];
    }
  }
}
"""
