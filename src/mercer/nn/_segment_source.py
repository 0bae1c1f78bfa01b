"""Source code of the CUDA kernels of segmentations, compiled by NVRTC.

    P_t = Σ_{s<t} θ_s,   D_l the score of length l,   M the transitions; all sums are logarithms in double precision
    Q_s[c] = log weight of everything before a segment of label c that starts at s, minus P_s[c]
    ended_e[c] = P_e[c] + log Σ_l exp(D_l[c] + Q_{e−l}[c]),   Q_e[c] = log Σ_a exp(ended_e[a] + M[a, c]) − P_e[c]
    R_e[c] = log weight of everything after a segment of label c that ends at e, plus P_e[c]
    open_s[c] = log Σ_l exp(D_l[c] + R_{s+l}[c]) − P_s[c],    R_s[c] = log Σ_a exp(M[c, a] + open_s[a]) + P_s[c]

    prefix     P, a warp for each sequence and label
    sweep      both recursions, a block for each sequence and direction: a warp has a label, its lanes the lengths. The
               last max_length rows of Q (R) lie in shared memory, so that memory is linear in time
    frames     μ_t = Σ_{s≤t} p(a segment starts at s) − Σ_{e≤t} p(one ends at e), by a scan over time
    pairs      sums over positions of p(segment of length l) and p(neighbours), for chunks of positions
    best       the best segmentation: the same recursion with maxima, and back-pointers
    ranks      the k best: a thread has a label and the k best that end (begin) with it
    samples    draws from the last segment to the first, a warp for each draw

The maximum is factored out of each sum, so nothing underflows. The recursions use double precision throughout; for
float32 scores the exponential is accurate to 11 digits. With 7 digits, errors would accumulate over long sequences.
Emissions of −inf count as 0 in P and set a barrier that no segment may contain. If a segment must begin at a position
(`known`), the barrier is before that position.
"""

from __future__ import annotations

from dataclasses import dataclass

from mercer._gpu_random import RANDOM
from mercer.nn._chain_source import HELPERS, KINDS

__all__ = ["CHUNK", "RANKS_IN_SHARED", "SegmentLayout", "segment_ranks_source", "segment_source"]

CHUNK = 64
"""Number of positions per partial sum of `pairs`."""
RANKS_IN_SHARED = 4500
"""How many numbers of `ranks` fit into shared memory."""


@dataclass(frozen=True)
class SegmentLayout:
    """The compile-time parameters of a kernel: labels, longest length, type of sums, type of emissions."""

    n_labels: int
    max_length: int
    real: str
    emissions: str

    @property
    def threads(self) -> int:
        """Return the threads of `sweep` and `best`: one warp per label, up to the block limit."""
        return 32 * min(32, self.n_labels)


def segment_source(layout: SegmentLayout) -> str:
    """Return the source of all kernels except `ranks`, for these sizes and types."""
    return _head(layout) + RANDOM + _COMMON + HELPERS + _SOURCE


def segment_ranks_source(layout: SegmentLayout, k: int) -> str:
    """Return the source of `ranks` for the k best."""
    return (
        f"#define RANKS {k}\n#define IN_SHARED {RANKS_IN_SHARED}\n"
        + _head(layout)
        + RANDOM
        + _COMMON
        + HELPERS
        + _RANKS
    )


def _head(layout: SegmentLayout) -> str:
    L, K = layout.n_labels, layout.max_length
    return f"""
#define NL {L}
#define NK {K}
#define KIND {KINDS[layout.emissions]}
#define THREADS {layout.threads}
#define WARPS {layout.threads // 32}
#define RING {int(K * L <= 4000)}
#define OWN {int(L <= 32 and K <= 256)}
#define TURNS {-(-K // 32)}
#define CHUNK {CHUNK}
#define DOUBLE {int(layout.real == "float64")}
typedef {"double" if layout.real == "float64" else "float"} real;
"""


_COMMON = r"""
typedef long long i64;
#define FULL 0xffffffffu
#define NONE (-__longlong_as_double(0x7ff0000000000000ll))

struct Arguments {
  const void* emissions;                                 // batch x time x NL
  const real *durations, *transitions, *start, *end;     // NK x NL, NL x NL, NL, NL
  const i64* lengths;
  const double* weights;                                 // batch, or null: 1
  double *prefix, *q, *r, *ended, *open;                 // batch x (time + 1) x NL each
  int* barriers;                                         // batch x (time + 1) x NL: one past the last forbidden frame
  double* log_z;                                         // batch
  int* status;                                           // batch: 1 not finite, 2 forbidden frames
  real *frames, *ends, *partial;                         // batch x time x NL; batch x 2 x NL; chunks x (NK + NL) NL
  i64* tags;                                             // batch x time
  const i64* known;                                      // batch x time: what segments must agree with, or null
  double *ranked, *scores;                               // batch x (time + 1) x NL x k, batch x k
  int *lasted, *followed;                                // the same: places of lengths and labels among their k
  int *best_length, *best_label;                         // batch x (time + 1) x NL
  i64 batch, time;
  i64 size; u64 seed;                                    // draws of a sequence
};

#if DOUBLE
__device__ __forceinline__ double exponential(double x) { return exp(x); }
#else
__device__ __forceinline__ double exponential(double x) {
  if (!(x > -700.0)) return 0.0;
  const double k = rint(x * 1.4426950408889634), r = fma(k, -0.6931471805599453, x), r2 = r * r, r4 = r2 * r2;
  const double low = (1.0 + r) + r2 * (0.5 + r * 0.16666666666666666);
  const double mid = (0.041666666666666664 + r * 0.008333333333333333) +
                     r2 * (0.001388888888888889 + r * 0.0001984126984126984);
  const double high = 2.48015873015873e-05 + r * 2.7557319223985893e-06;
  return (low + r4 * (mid + r4 * high)) * __longlong_as_double(((i64)k + 1023) << 52);
}
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
__device__ __forceinline__ double emission(const Arguments& g, i64 at) {
#if KIND == 0
  return (double)((const float*)g.emissions)[at];
#elif KIND == 1
  return ((const double*)g.emissions)[at];
#elif KIND == 2
  return (double)from_half(((const unsigned short*)g.emissions)[at]);
#else
  return (double)__int_as_float((int)((unsigned)((const unsigned short*)g.emissions)[at] << 16));
#endif
}
__device__ __forceinline__ i64 length_of(const Arguments& g, i64 b) {
  const i64 n = g.lengths[b];
  return n < 1 ? 1 : n > g.time ? g.time : n;
}

__device__ __forceinline__ float warp_max(float x) {
  for (int k = 16; k; k >>= 1) x = fmaxf(x, __shfl_xor_sync(FULL, x, k));
  return x;
}
__device__ __forceinline__ double warp_sum(double x) {
  for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(FULL, x, k);
  return x;
}
__device__ __forceinline__ double warp_scan(double x, int lane) {
  for (int k = 1; k < 32; k <<= 1) {
    const double y = __shfl_up_sync(FULL, x, k);
    if (lane >= k) x += y;
  }
  return x;
}

// What is known of a position: whether a segment of a label may begin there, and whether one must.
__device__ __forceinline__ bool may_begin(const Arguments& g, i64 at, int c) {
  const i64 y = g.known[at];
  return y == c || y == -2 || y == -100;
}
__device__ __forceinline__ bool must_begin(const Arguments& g, i64 at) {
  return g.known[at] != -1 && g.known[at] != -100;
}
"""

_SOURCE = r"""
extern "C" __global__ void prefix(const Arguments g) {
  const i64 which = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (which >= g.batch * NL) return;
  const i64 b = which / NL, c = which % NL, n = length_of(g, b);
  double* out = g.prefix + b * (g.time + 1) * NL + c;
  if (lane == 0) out[0] = 0.0;
  double carry = 0.0;
  int wrong = 0;
  for (i64 t0 = 0; t0 < n; t0 += 32) {
    const i64 t = t0 + lane;
    double x = t < n ? emission(g, (b * g.time + t) * NL + c) : 0.0;
    if (!(x < -NONE)) wrong |= 1;
    if (!(x > NONE)) {
      wrong |= 2;
      x = 0.0;
    }
    x = carry + warp_scan(x, lane);
    if (t < n) out[(t + 1) * NL] = x;
    carry = __shfl_sync(FULL, x, 31);
  }
  if (g.known) wrong |= 2;
  if (wrong) atomicOr(g.status + b, wrong);
}

// log Σ exp over the lanes, where every lane has several terms: term(k) for k = lane, lane + 32, … < n.
template <class Term> __device__ __forceinline__ double log_sum(int n, int lane, Term term) {
  float top = (float)NONE;
  for (int k = lane; k < n; k += 32) top = fmaxf(top, (float)term(k));
  top = warp_max(top);
  if (!(top > (float)NONE)) return NONE;
  double total = 0.0;
  for (int k = lane; k < n; k += 32) total += exponential(term(k) - (double)top);
  return (double)top + log(warp_sum(total));
}

// The largest term, and the first place that has it.
template <class Term> __device__ __forceinline__ double largest(int n, int lane, Term term, int* place) {
  double top = NONE;
  int at = n;
  for (int k = lane; k < n; k += 32) {
    const double value = term(k);
    if (value > top) {
      top = value;
      at = k;
    }
  }
  for (int k = 16; k; k >>= 1) {
    const double other = __shfl_xor_sync(FULL, top, k);
    const int there = __shfl_xor_sync(FULL, at, k);
    if (other > top || (other == top && there < at)) {
      top = other;
      at = there;
    }
  }
  *place = at;
  return top;
}

#if OWN
// The scores of lengths that a lane has, for the label of its warp; −inf past the longest.
__device__ __forceinline__ void own_lengths(const real* D, int c, int lane, double* d) {
#pragma unroll
  for (int r = 0; r < TURNS; ++r) d[r] = lane + 32 * r < NK ? (double)D[(lane + 32 * r) * NL + c] : NONE;
}
template <int N> __device__ __forceinline__ double log_sum_of(const double* v) {
  float top = (float)v[0];
#pragma unroll
  for (int r = 1; r < N; ++r) top = fmaxf(top, (float)v[r]);
  top = warp_max(top);
  if (!(top > (float)NONE)) return NONE;
  double total = 0.0;
#pragma unroll
  for (int r = 0; r < N; ++r) total += exponential(v[r] - (double)top);
  return (double)top + log(warp_sum(total));
}
#endif

#if RING
#define KEPT(s, c) ring[(int)((s) % NK) * NL + (c)]
#define KEEP(s, c, x) ring[(int)((s) % NK) * NL + (c)] = (x)
#else
#define KEPT(s, c) kept[(i64)(s) * NL + (c)]
#define KEEP(s, c, x)
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) sweep(const Arguments g) {
#if RING
  __shared__ double ring[NK * NL];
#endif
  __shared__ double row[NL];
  __shared__ int wall[NL];
  const bool backward = blockIdx.x >= g.batch;
  const i64 b = backward ? blockIdx.x - g.batch : blockIdx.x, base = b * (g.time + 1) * NL;
  const int n = (int)length_of(g, b), lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool walls = g.status[b] & 2;
  const double* P = g.prefix + base;
  double *kept = (backward ? g.r : g.q) + base, *other = (backward ? g.open : g.ended) + base;
  const real *D = g.durations, *M = g.transitions;
  // Positions are counted from where the sweep begins: step k is at e = k forwards, at s = n - k backwards.
  const int sign = backward ? -1 : 1, origin = backward ? n : 0;
  for (int c = threadIdx.x; c < NL; c += THREADS) {
    double value = backward ? (double)g.end[c] + P[(i64)n * NL + c] : (double)g.start[c];
    if (g.known && !backward && !may_begin(g, b * g.time, c)) value = NONE;
    kept[(i64)origin * NL + c] = value;
    KEEP(origin, c, value);
    wall[c] = origin;
  }
  __syncthreads();
#if OWN
  double d[TURNS];
  own_lengths(D, warp, lane, d);
  const double m = lane < NL ? (double)M[backward ? warp * NL + lane : lane * NL + warp] : NONE;
  double ahead[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) ahead[k] = k < n ? P[(i64)(origin + sign * (k + 1)) * NL + warp] : 0.0;
#endif
  for (int k = 1; k <= n; ++k) {
    const int at = origin + sign * k, most = k < NK ? k : NK, frame = backward ? at : at - 1;
    for (int c = warp; c < NL; c += WARPS) {
      int last = most;
      if (walls) {  // segments must not reach over a forbidden frame, nor over where one must begin
        if (lane == 0) {
          const int start = backward ? at + 1 : at - 1;  // of the segment before or after
          if (g.known && k > 1 && must_begin(g, b * g.time + start)) wall[c] = start;
          if (!(emission(g, (b * g.time + frame) * NL + c) > NONE)) wall[c] = at;
        }
        __syncwarp();
        last = sign * (at - wall[c]) < most ? sign * (at - wall[c]) : most;
      }
#if OWN
      const double p = ahead[0];
      double v[TURNS];
#pragma unroll
      for (int r = 0; r < TURNS; ++r) {
        const int l = lane + 32 * r;
        v[r] = l < last ? d[r] + KEPT(at - sign * (l + 1), c) : NONE;
      }
      double value = log_sum_of<TURNS>(v);
#else
      const double p = P[(i64)at * NL + c];
      double value = log_sum(last, lane, [&](int l) {
        return (double)D[l * NL + c] + KEPT(at - sign * (l + 1), c);
      });
#endif
      if (g.known && backward && !may_begin(g, b * g.time + at, c)) value = NONE;
      if (lane == 0) {
        row[c] = other[(i64)at * NL + c] = value + sign * p;
        if (walls && !backward) g.barriers[base + (i64)at * NL + c] = wall[c];
      }
    }
    __syncthreads();
    if (k < n)
      for (int c = warp; c < NL; c += WARPS) {
#if OWN
        const double p = ahead[0], v[1] = {lane < NL ? row[lane] + m : NONE};
        const double value = log_sum_of<1>(v);
#else
        const double p = P[(i64)at * NL + c];
        const double value =
            log_sum(NL, lane, [&](int a) { return row[a] + (double)M[backward ? c * NL + a : a * NL + c]; });
#endif
        if (lane == 0) {
          double x = value - sign * p;
          if (g.known && !backward && !may_begin(g, b * g.time + at, c)) x = NONE;
          kept[(i64)at * NL + c] = x;
          KEEP(at, c, x);
        }
      }
#if OWN
    ahead[0] = ahead[1];
    ahead[1] = ahead[2];
    ahead[2] = ahead[3];
    if (k + 4 <= n) ahead[3] = P[(i64)(origin + sign * (k + 4)) * NL + warp];
#endif
    __syncthreads();
  }
  if (!backward && warp == 0) {
    const double value = log_sum(NL, lane, [&](int a) { return row[a] + (double)g.end[a]; });
    if (lane == 0) g.log_z[b] = value;
  }
}

// exp of a logarithm of a probability; 0 for what is impossible.
__device__ __forceinline__ double probability(double x) { return exponential(x < 0.0 ? x : 0.0); }

extern "C" __global__ void frames(const Arguments g) {
  const i64 which = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (which >= g.batch * NL) return;
  const i64 b = which / NL, c = which % NL, n = length_of(g, b), base = b * (g.time + 1) * NL + c;
  const double log_z = g.log_z[b], weight = g.weights ? g.weights[b] : 1.0;
  const bool dead = !(log_z > NONE), walls = g.status[b] & 2;
  double carry = 0.0;
  for (i64 t0 = 0; t0 < g.time; t0 += 32) {
    const i64 t = t0 + lane, at = base + t * NL;
    double x = 0.0;
    if (t < n && !dead) {
      x = probability(g.q[at] + g.prefix[at] + g.open[at] - log_z);
      if (t == 0) g.ends[2 * b * NL + c] = (real)(weight * x);
      if (t > 0) x -= probability(g.ended[at] + g.r[at] - g.prefix[at] - log_z);
      if (t == n - 1) {
        const double last = probability(g.ended[at + NL] + g.r[at + NL] - g.prefix[at + NL] - log_z);
        g.ends[(2 * b + 1) * NL + c] = (real)(weight * last);
      }
    }
    if (dead && t < 2) g.ends[(2 * b + t) * NL + c] = (real)0;
    x = carry + warp_scan(x, lane);
    carry = __shfl_sync(FULL, x, 31);
    if (t >= g.time) continue;
    const i64 place = (b * g.time + t) * NL + c;
    const bool possible = t < n && !(walls && !(emission(g, place) > NONE));
    g.frames[place] = possible ? (real)(weight * fmin(fmax(x, 0.0), 1.0)) : (real)0;
  }
}

extern "C" __global__ void pairs(const Arguments g) {
  const i64 chunks = (g.time + CHUNK - 1) / CHUNK, b = blockIdx.x / chunks, n = length_of(g, b);
  const i64 begin = (blockIdx.x % chunks) * CHUNK, stop = begin + CHUNK < n ? begin + CHUNK : n;
  const i64 base = b * (g.time + 1) * NL;
  const double log_z = g.log_z[b], weight = g.weights ? g.weights[b] : 1.0;
  real* out = g.partial + (i64)blockIdx.x * (NK + NL) * NL;
  const bool walls = g.status[b] & 2;
  const bool dead = !(log_z > NONE);
  for (int p = threadIdx.x; p < (NK + NL) * NL; p += blockDim.x) {
    double total = 0.0;
    const int c = p % NL;
    if (p < NK * NL) {
      const int l = p / NL + 1;
      const double d = (double)g.durations[p] - log_z;
      for (i64 s = begin; s < stop && s + l <= n && !dead; ++s) {
        const i64 e = base + (s + l) * NL + c;
        if (!walls || g.barriers[e] <= s) total += probability(g.q[base + s * NL + c] + d + g.r[e]);
      }
    } else {
      const int a = p / NL - NK;
      const double m = (double)g.transitions[a * NL + c] - log_z;
      for (i64 t = begin > 1 ? begin : 1; t < stop && !dead; ++t)
        total += probability(g.ended[base + t * NL + a] + m + g.open[base + t * NL + c]);
    }
    out[p] = (real)(weight * total);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) best(const Arguments g) {
#if RING
  __shared__ double ring[NK * NL];
#endif
  __shared__ double row[NL];
  __shared__ int wall[NL];
  const i64 b = blockIdx.x, base = b * (g.time + 1) * NL;
  const int n = (int)length_of(g, b), lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool walls = g.status[b] & 2;
  const double* P = g.prefix + base;
  double* kept = g.q + base;
  for (int c = threadIdx.x; c < NL; c += THREADS) {
    const double value = (double)g.start[c];
    kept[c] = value;
    KEEP(0, c, value);
    wall[c] = 0;
  }
  for (i64 t = threadIdx.x; t < g.time; t += THREADS) g.tags[b * g.time + t] = -1;
  __syncthreads();
#if OWN
  double d[TURNS], ahead[4];
  own_lengths(g.durations, warp, lane, d);
  const double m = lane < NL ? (double)g.transitions[lane * NL + warp] : NONE;
#pragma unroll
  for (int k = 0; k < 4; ++k) ahead[k] = k < n ? P[(i64)(k + 1) * NL + warp] : 0.0;
#endif
  for (int e = 1; e <= n; ++e) {
    const int most = e < NK ? e : NK;
    for (int c = warp; c < NL; c += WARPS) {
      int last = most, at;
      if (walls) {
        if (lane == 0 && !(emission(g, (b * g.time + e - 1) * NL + c) > NONE)) wall[c] = e;
        __syncwarp();
        last = e - wall[c] < most ? e - wall[c] : most;
      }
#if OWN
      const double p = ahead[0];
      const auto term = [&](int k) { return d[k >> 5] + KEPT(e - k - 1, c); };
#else
      const double p = P[(i64)e * NL + c];
      const auto term = [&](int k) { return (double)g.durations[k * NL + c] + KEPT(e - k - 1, c); };
#endif
      const double value = largest(last, lane, term, &at);
      if (lane == 0) {
        row[c] = value + p;
        g.best_length[base + (i64)e * NL + c] = at + 1;
      }
    }
    __syncthreads();
    if (e < n)
      for (int c = warp; c < NL; c += WARPS) {
        int at;
#if OWN
        const double p = ahead[0];
        const double value = largest(NL, lane, [&](int a) { return row[a] + m; }, &at);
#else
        const double p = P[(i64)e * NL + c];
        const double value = largest(NL, lane, [&](int a) { return row[a] + (double)g.transitions[a * NL + c]; }, &at);
#endif
        if (lane == 0) {
          const double q = value - p;
          kept[(i64)e * NL + c] = q;
          KEEP(e, c, q);
          g.best_label[base + (i64)e * NL + c] = at;
        }
      }
#if OWN
    ahead[0] = ahead[1];
    ahead[1] = ahead[2];
    ahead[2] = ahead[3];
    if (e + 4 <= n) ahead[3] = P[(i64)(e + 4) * NL + warp];
#endif
    __syncthreads();
  }
  if (warp == 0) {
    int c;
    const double value = largest(NL, lane, [&](int a) { return row[a] + (double)g.end[a]; }, &c);
    if (lane == 0) {
      g.log_z[b] = value;
      for (int e = n; e > 0 && value > NONE;) {
        const int s = e - g.best_length[base + (i64)e * NL + c];
        g.tags[b * g.time + s] = c;
        if (s > 0) c = g.best_label[base + (i64)s * NL + c];
        e = s;
      }
    }
  }
}

// Segmentations drawn from p(y), after the sweep forwards.
extern "C" __global__ void samples(const Arguments g) {
  const i64 which = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  if (which >= g.batch * g.size) return;
  const i64 b = which / g.size, n = length_of(g, b), base = b * (g.time + 1) * NL;
  const u64 of_draw = mixed(g.seed ^ mixed((u64)which));
  i64* out = g.tags + which * g.time;
  for (i64 t = lane; t < g.time; t += 32) out[t] = -1;
  __syncwarp();
  if (!(g.log_z[b] > NONE)) return;
  const bool walls = g.status[b] & 2;
  int c = 0;
  for (i64 e = n; e > 0;) {  // a segment ends at e; its label, then its length
    const double* ended = g.ended + base + e * NL;
    const real* into = e == n ? g.end : g.transitions + c;
    const int step = e == n ? 1 : NL;
    c = pick(NL, lane, share_of(of_draw, 2 * e), [&](int a) { return ended[a] + (double)into[a * step]; });
    i64 most = e < NK ? e : NK;
    if (walls && e - g.barriers[base + e * NL + c] < most) most = e - g.barriers[base + e * NL + c];
    const int place = c;
    e -= 1 + pick((int)most, lane, share_of(of_draw, 2 * e + 1), [&](int l) {
      return (double)g.durations[l * NL + place] + g.q[base + (e - l - 1) * NL + place];
    });
    if (lane == 0) out[e] = c;
  }
}
"""

_RANKS = r"""
#define ROOM (NK * NL * RANKS <= IN_SHARED)
extern "C" __global__ void ranks(const Arguments g) {
  __shared__ double row[NL * RANKS];
  __shared__ int wall[NL], chosen[RANKS];
#if ROOM
  __shared__ double ring[NK * NL * RANKS];
#define KEPT(s, c, r) ring[((int)((s) % NK) * NL + (c)) * RANKS + (r)]
#else
#define KEPT(s, c, r) kept[((s) * NL + (c)) * RANKS + (r)]
#endif
  const i64 b = blockIdx.x, base = b * (g.time + 1) * NL, n = length_of(g, b);
  const bool walls = g.status[b] & 2;
  const double* P = g.prefix + base;
#if !ROOM
  double* kept = g.ranked + base * RANKS;
#endif
  int *lasted = g.lasted + base * RANKS, *followed = g.followed + base * RANKS;
  for (int k = threadIdx.x; k < NL * RANKS; k += blockDim.x) {
    KEPT(0, k / RANKS, k % RANKS) = k % RANKS ? NONE : (double)g.start[k / RANKS];
    if (k % RANKS == 0) wall[k / RANKS] = 0;
  }
  __syncthreads();
  for (i64 e = 1; e <= n; ++e) {
    for (int c = threadIdx.x; c < NL; c += blockDim.x) {
      int most = (int)(e < NK ? e : NK);
      if (walls && !(emission(g, (b * g.time + e - 1) * NL + c) > NONE)) wall[c] = (int)e;
      if (walls && e - wall[c] < most) most = (int)e - wall[c];
      Ranked<RANKS> best;
      for (int l = 0; l < most; ++l) {
        const double d = (double)g.durations[l * NL + c];
        for (int r = 0; r < RANKS; ++r) {
          const double value = d + KEPT(e - l - 1, c, r);
          if (!best.takes(value)) break;
          best.add(value, l * RANKS + r);
        }
      }
      for (int r = 0; r < RANKS; ++r) {
        row[c * RANKS + r] = best.value[r] + P[e * NL + c];
        lasted[(e * NL + c) * RANKS + r] = best.place[r];
      }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < NL && e < n; c += blockDim.x) {
      Ranked<RANKS> best;
      for (int a = 0; a < NL; ++a) {
        const double m = (double)g.transitions[a * NL + c];
        for (int r = 0; r < RANKS; ++r) {
          const double value = row[a * RANKS + r] + m;
          if (!best.takes(value)) break;
          best.add(value, a * RANKS + r);
        }
      }
      for (int r = 0; r < RANKS; ++r) {
        KEPT(e, c, r) = best.value[r] - P[e * NL + c];
        followed[(e * NL + c) * RANKS + r] = best.place[r];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    Ranked<RANKS> best;
    for (int k = 0; k < NL * RANKS; ++k) {
      const double value = row[k] + (double)g.end[k / RANKS];
      if (best.takes(value)) best.add(value, k);
    }
    for (int r = 0; r < RANKS; ++r) {
      g.scores[b * RANKS + r] = best.value[r];
      chosen[r] = best.value[r] > NONE ? best.place[r] : -1;
    }
  }
  __syncthreads();
  for (int r = threadIdx.x; r < RANKS; r += blockDim.x) {  // a thread walks back along a segmentation
    i64* out = g.tags + (b * RANKS + r) * g.time;
    for (i64 t = 0; t < g.time; ++t) out[t] = -1;
    int place = chosen[r];
    for (i64 e = n; e > 0 && place >= 0;) {
      const int back = lasted[e * NL * RANKS + place], c = place / RANKS;
      e -= 1 + back / RANKS;
      out[e] = c;
      if (e > 0) place = followed[(e * NL + c) * RANKS + back % RANKS];
    }
  }
}
"""
