// Vectors of the widest kind the target has, through the compiler's vector types, and exp on them.
//
// Included once for each instruction set, inside that set's namespace, so that nothing here is shared between them.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "base/aligned.hpp"

// What is called from several places, and is better compiled once than once for each of them.
#define MERCER_APART __attribute__((noinline))

namespace mercer::MERCER_ARCH {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T> struct Simd;
template <> struct Simd<double> {
  typedef double V __attribute__((vector_size(kVectorBytes)));
  typedef int64_t I __attribute__((vector_size(kVectorBytes)));
};
template <> struct Simd<float> {
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef int32_t I __attribute__((vector_size(kVectorBytes)));
};
template <class T> using Vec = typename Simd<T>::V;
template <class T> using IVec = typename Simd<T>::I;
template <class T> constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <class T> inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> inline void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }
template <class T> inline Vec<T> vmax(Vec<T> a, Vec<T> b) { return a > b ? a : b; }

// Lane i holds i < n ? all ones : 0.
template <class T> inline IVec<T> first_lanes(int n) {
  IVec<T> lane;
  for (int i = 0; i < kLanes<T>; ++i) lane[i] = i;
  return lane < decltype(lane[0] + 0)(n) - IVec<T>{};
}
// The first n (< lanes) values of p, the rest filled.
template <class T> inline Vec<T> load_some(const T* p, int n, T fill) {
  T lanes[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) lanes[i] = fill;
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
// The same where the memory up to `limit` may be read: one load and a blend unless p is close to it.
template <class T> inline Vec<T> load_first(const T* p, int n, T fill, const T* limit) {
  if (p + kLanes<T> > limit) return load_some(p, n, fill);
  return first_lanes<T>(n) ? load(p) : splat(fill);
}
// Lanes are added in one fixed order.
template <class T> inline T sum(Vec<T> v) {
  T lanes[kLanes<T>];
  store(lanes, v);
  for (int half = kLanes<T> / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
template <class T> inline T largest(Vec<T> v) {
  T lanes[kLanes<T>];
  store(lanes, v);
  T best = lanes[0];
  for (int i = 1; i < kLanes<T>; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

// exp(x) for x <= 0 (or moderate x): x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial in r, and 2^n put into
// the exponent bits. Anything below the range, -inf included, gives an exact zero.
inline Vec<double> vexp(Vec<double> x) {
  constexpr double lowest = -708.0, magic = 0x1.8p52;
  const Vec<double> lo = splat(lowest);
  const Vec<double> in = x;
  x = x > lo ? x : lo;
  Vec<double> t = x * 0x1.71547652b82fep0 + magic;
  const Vec<double> n = t - magic;
  Vec<double> r = x - n * 0x1.62e42fefa0000p-1;
  r = r - n * 0x1.cf79abc9e3b3ap-40;
  Vec<double> p = splat(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  IVec<double> bits, shift;
  std::memcpy(&bits, &p, sizeof p);
  std::memcpy(&shift, &t, sizeof t);
  bits += shift << 52;
  std::memcpy(&p, &bits, sizeof p);
  return in >= lo ? p : Vec<double>{};
}
inline Vec<float> vexp(Vec<float> x) {
  constexpr float lowest = -87.0f, magic = 0x1.8p23f;
  const Vec<float> lo = splat(lowest);
  const Vec<float> in = x;
  x = x > lo ? x : lo;
  Vec<float> t = x * 0x1.715476p0f + magic;
  const Vec<float> n = t - magic;
  Vec<float> r = x - n * 0x1.63p-1f;
  r = r - n * -0x1.bd0106p-13f;
  Vec<float> p = splat(1.0f / 5040.0f);
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  IVec<float> bits, shift;
  std::memcpy(&bits, &p, sizeof p);
  std::memcpy(&shift, &t, sizeof t);
  bits += shift << 23;
  std::memcpy(&p, &bits, sizeof p);
  return in >= lo ? p : Vec<float>{};
}

// log(x) for normal x > 0: x = 2^n m with √½ ≤ m < √2, and log m = 2 artanh f with f = (m - 1) / (m + 1), by its
// series.
inline Vec<double> vlog(Vec<double> x) {
  IVec<double> bits;
  std::memcpy(&bits, &x, sizeof x);
  constexpr int64_t root = 0x3fe6a09e667f3bcd;  // the bits of √½: counted from there, exponents change at √½ 2^n
  const IVec<double> shifted = bits - root, n = shifted >> 52;
  bits = (shifted & ((int64_t(1) << 52) - 1)) + root;
  Vec<double> m, e;
  std::memcpy(&m, &bits, sizeof m);
  for (int i = 0; i < kLanes<double>; ++i) e[i] = double(n[i]);
  const Vec<double> f = (m - 1.0) / (m + 1.0), s = f * f;
  Vec<double> p = splat(1.0 / 21.0);
  p = p * s + 1.0 / 19.0;
  p = p * s + 1.0 / 17.0;
  p = p * s + 1.0 / 15.0;
  p = p * s + 1.0 / 13.0;
  p = p * s + 1.0 / 11.0;
  p = p * s + 1.0 / 9.0;
  p = p * s + 1.0 / 7.0;
  p = p * s + 1.0 / 5.0;
  p = p * s + 1.0 / 3.0;
  const Vec<double> small = 2.0 * f + (2.0 * f) * (s * p);
  return e * 0x1.62e42fefa39efp-1 + (small + e * 0x1.abc9e3b39803fp-56);
}

// out = Σ_a x[a] M[a][·] for a block of NV vectors of columns; two running sums hide the latency of the additions.
template <class T, int NV> inline void matvec_block(const T* x, int n, const T* M, int64_t stride, T* out) {
  constexpr int L = kLanes<T>;
  Vec<T> even[NV] = {}, odd[NV] = {};
  int a = 0;
  for (; a + 1 < n; a += 2) {
    const T *row = M + a * stride, *next = row + stride;
    for (int j = 0; j < NV; ++j) even[j] += x[a] * load(row + j * L);
    for (int j = 0; j < NV; ++j) odd[j] += x[a + 1] * load(next + j * L);
  }
  if (a < n)
    for (int j = 0; j < NV; ++j) even[j] += x[a] * load(M + a * stride + j * L);
  for (int j = 0; j < NV; ++j) store(out + j * L, even[j] + odd[j]);
}
template <class T> inline void matvec(const T* x, int n, const T* M, int64_t stride, T* out) {
  constexpr int L = kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * L <= stride; j += 4 * L) matvec_block<T, 4>(x, n, M + j, stride, out + j);
  switch ((stride - j) / L) {
    case 3: matvec_block<T, 3>(x, n, M + j, stride, out + j); break;
    case 2: matvec_block<T, 2>(x, n, M + j, stride, out + j); break;
    case 1: matvec_block<T, 1>(x, n, M + j, stride, out + j); break;
  }
}

// out = max_a (x[a] + M[a][·]): matvec in the max-plus semiring.
template <class T, int NV> inline void maxplus_block(const T* x, int n, const T* M, int64_t stride, T* out) {
  constexpr int L = kLanes<T>;
  Vec<T> best[NV];
  for (int j = 0; j < NV; ++j) best[j] = splat(-std::numeric_limits<T>::infinity());
  for (int a = 0; a < n; ++a) {
    const T* row = M + a * stride;
    for (int j = 0; j < NV; ++j) best[j] = vmax<T>(best[j], x[a] + load(row + j * L));
  }
  for (int j = 0; j < NV; ++j) store(out + j * L, best[j]);
}
template <class T> inline void maxplus(const T* x, int n, const T* M, int64_t stride, T* out) {
  constexpr int L = kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * L <= stride; j += 4 * L) maxplus_block<T, 4>(x, n, M + j, stride, out + j);
  switch ((stride - j) / L) {
    case 3: maxplus_block<T, 3>(x, n, M + j, stride, out + j); break;
    case 2: maxplus_block<T, 2>(x, n, M + j, stride, out + j); break;
    case 1: maxplus_block<T, 1>(x, n, M + j, stride, out + j); break;
  }
}

// S[a][·] += Σ_t A[t][a] B[t][·]: four rows of S at a time stay in registers over all t.
template <class T, int NV> inline void outer_block(const T* A, const T* B, int64_t steps, int n, int64_t stride, T* S) {
  constexpr int L = kLanes<T>;
  int a = 0;
  for (; a + 4 <= n; a += 4) {
    Vec<T> acc[4][NV];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < NV; ++j) acc[i][j] = load(S + (a + i) * stride + j * L);
    for (int64_t t = 0; t < steps; ++t) {
      const T* x = A + t * stride + a;
      for (int j = 0; j < NV; ++j) {
        const Vec<T> b = load(B + t * stride + j * L);
        for (int i = 0; i < 4; ++i) acc[i][j] += x[i] * b;
      }
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < NV; ++j) store(S + (a + i) * stride + j * L, acc[i][j]);
  }
  for (; a < n; ++a)
    for (int j = 0; j < NV; ++j) {
      Vec<T> acc = load(S + a * stride + j * L);
      for (int64_t t = 0; t < steps; ++t) acc += A[t * stride + a] * load(B + t * stride + j * L);
      store(S + a * stride + j * L, acc);
    }
}
template <class T> inline void outer(const T* A, const T* B, int64_t steps, int n, int64_t stride, T* S) {
  constexpr int L = kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * L <= stride; j += 4 * L) outer_block<T, 4>(A, B + j, steps, n, stride, S + j);
  switch ((stride - j) / L) {
    case 3: outer_block<T, 3>(A, B + j, steps, n, stride, S + j); break;
    case 2: outer_block<T, 2>(A, B + j, steps, n, stride, S + j); break;
    case 1: outer_block<T, 1>(A, B + j, steps, n, stride, S + j); break;
  }
}

}  // namespace mercer::MERCER_ARCH
