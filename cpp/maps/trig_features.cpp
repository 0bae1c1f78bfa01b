// Compiled once for each instruction set: see maps/trig_features.hpp.
#include "maps/trig_features.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace mercer::MERCER_ARCH {
namespace {

// ---------------------------------------------------------------------------------------------- Hadamard blocks

// Lane i takes the value of lane i ^ S.
template <class T, int S> inline Vec<T> across(Vec<T> v) {
#if defined(__clang__)
  Vec<T> r;
  for (int i = 0; i < kLanes<T>; ++i) r[i] = v[i ^ S];
  return r;
#else
  IVec<T> from;
  for (int i = 0; i < kLanes<T>; ++i) from[i] = i ^ S;
  return __builtin_shuffle(v, from);
#endif
}
template <class T, int S> inline Vec<T> butterfly_inside(Vec<T> v) {
  Vec<T> sign;
  for (int i = 0; i < kLanes<T>; ++i) sign[i] = i & S ? T(-1) : T(1);
  return across<T, S>(v) + v * sign;
}
// The transform of the lanes of one vector.
template <class T> inline Vec<T> inside(Vec<T> v) {
  v = butterfly_inside<T, 1>(v);
  if constexpr (kLanes<T> > 2) v = butterfly_inside<T, 2>(v);
  if constexpr (kLanes<T> > 4) v = butterfly_inside<T, 4>(v);
  if constexpr (kLanes<T> > 8) v = butterfly_inside<T, 8>(v);
  return v;
}

// The transform across R vectors.
template <class T, int R> inline void butterflies(Vec<T>* v) {
  for (int s = 1; s < R; s *= 2)
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
      if (!(i & s)) {
        const Vec<T> a = v[i], b = v[i + s];
        v[i] = a + b;
        v[i + s] = a - b;
      }
}

// The first log(R · lanes) stages of the transform of signs ∘ x, from x to out (which may be x).
template <class T, int R> inline void first_stages(const T* x, const T* signs, int64_t size, T* out) {
  constexpr int L = kLanes<T>;
  for (int64_t base = 0; base < size; base += R * L) {
    Vec<T> v[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) v[i] = inside<T>(load(x + base + i * L) * load(signs + base + i * L));
    butterflies<T, R>(v);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) store(out + base + i * L, v[i]);
  }
}
// log R further stages, between entries `step` apart.
template <class T, int R> inline void stages(T* x, int64_t size, int64_t step) {
  constexpr int L = kLanes<T>;
  for (int64_t base = 0; base < size; base += R * step)
    for (int64_t j = base; j < base + step; j += L) {
      Vec<T> v[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) v[i] = load(x + j + i * step);
      butterflies<T, R>(v);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) store(x + j + i * step, v[i]);
    }
}
template <class T> void hadamard(const T* x, const T* signs, int64_t size, T* out) {
  constexpr int L = kLanes<T>;
  int64_t step = L * (size >= 8 * L ? 8 : 4);  // size is at least 64: four vectors of the longest kind
  if (step == 8 * L)
    first_stages<T, 8>(x, signs, size, out);
  else
    first_stages<T, 4>(x, signs, size, out);
  while (step < size) {
    const int64_t left = size / step;
    if (left >= 8)
      stages<T, 8>(out, size, step), step *= 8;
    else if (left == 4)
      stages<T, 4>(out, size, step), step *= 4;
    else
      stages<T, 2>(out, size, step), step *= 2;
  }
}

// ---------------------------------------------------------------------------------------------- cosines and sines

// a = q π/2 + r with |r| ≤ π/4, q π/2 in three parts so that the first product is exact, Taylor polynomials in r, and
// the quadrant from the last two bits of q. Holds up to kLargestAngle; beyond, the library's functions are called.
template <class T> constexpr T kLargestAngle = sizeof(T) == 4 ? T(8192) : T(1 << 20);

inline void sincos(Vec<double> a, Vec<double>& sine, Vec<double>& cosine) {
  constexpr double magic = 0x1.8p52;
  const Vec<double> t = a * 0x1.45f306dc9c883p-1 + magic, q = t - magic;
  Vec<double> r = a - q * 0x1.921fb544p0;  // π/2 to 33 bits
  r = r - q * 0x1.0b4611a6p-34;            // the next 33
  r = r - q * 0x1.3198a2e037073p-69;
  const Vec<double> z = r * r;
  Vec<double> s = splat(1.0 / 355687428096000.0), c = splat(1.0 / 20922789888000.0);
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = s * z * r + r;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = c * z + 1.0;
  IVec<double> n, bits;
  std::memcpy(&n, &t, sizeof n);
  const IVec<double> odd = (n & 1) != 0;
  sine = odd ? c : s;
  cosine = odd ? s : c;
  std::memcpy(&bits, &sine, sizeof bits);
  bits ^= (n & 2) << 62;
  std::memcpy(&sine, &bits, sizeof bits);
  std::memcpy(&bits, &cosine, sizeof bits);
  bits ^= ((n + 1) & 2) << 62;
  std::memcpy(&cosine, &bits, sizeof bits);
}
inline void sincos(Vec<float> a, Vec<float>& sine, Vec<float>& cosine) {
  constexpr float magic = 0x1.8p23f;
  const Vec<float> t = a * 0x1.45f306p-1f + magic, q = t - magic;
  Vec<float> r = a - q * 0x1.92p0f;  // π/2 to 8 bits
  r = r - q * 0x1.fb4p-12f;          // the next 11
  r = r - q * 0x1.4442d2p-24f;
  const Vec<float> z = r * r;
  Vec<float> s = splat(1.0f / 362880.0f), c = splat(-1.0f / 3628800.0f);
  s = s * z - 1.0f / 5040.0f;
  s = s * z + 1.0f / 120.0f;
  s = s * z - 1.0f / 6.0f;
  s = s * z * r + r;
  c = c * z + 1.0f / 40320.0f;
  c = c * z - 1.0f / 720.0f;
  c = c * z + 1.0f / 24.0f;
  c = c * z - 0.5f;
  c = c * z + 1.0f;
  IVec<float> n, bits;
  std::memcpy(&n, &t, sizeof n);
  const IVec<float> odd = (n & 1) != 0;
  sine = odd ? c : s;
  cosine = odd ? s : c;
  std::memcpy(&bits, &sine, sizeof bits);
  bits ^= (n & 2) << 30;
  std::memcpy(&sine, &bits, sizeof bits);
  std::memcpy(&bits, &cosine, sizeof bits);
  bits ^= ((n + 1) & 2) << 30;
  std::memcpy(&cosine, &bits, sizeof bits);
}

// amplitude · cos(a + b) and, if wanted, amplitude · sin(a + b) of `count` angles; b may be nullptr.
template <class T, bool WithSines>
void write_waves(const T* a, const T* b, int64_t count, T amplitude, T* cosines, T* sines) {
  constexpr int L = kLanes<T>, kChunk = 8;
  T angles[kChunk * L], c[kChunk * L], s[kChunk * L];
  for (int64_t i = 0; i < count; i += kChunk * L) {
    const int here = int(std::min<int64_t>(kChunk * L, count - i));
    for (int k = 0; k < here; ++k) angles[k] = b ? a[i + k] + b[i + k] : a[i + k];
    for (int k = here; k < kChunk * L; ++k) angles[k] = 0;
    Vec<T> high = {};
    for (int k = 0; k < kChunk; ++k) {
      const Vec<T> v = load(angles + k * L);
      high = vmax<T>(high, vmax<T>(v, -v));
    }
    if (largest<T>(high) <= kLargestAngle<T>) {
#pragma GCC unroll 2
      for (int k = 0; k < kChunk; ++k) {
        Vec<T> sine, cosine;
        sincos(load(angles + k * L), sine, cosine);
        store(c + k * L, amplitude * cosine);
        if (WithSines) store(s + k * L, amplitude * sine);
      }
    } else {
      for (int k = 0; k < here; ++k) {
        c[k] = amplitude * std::cos(angles[k]);
        if (WithSines) s[k] = amplitude * std::sin(angles[k]);
      }
    }
    std::memcpy(cosines + i, c, size_t(here) * sizeof(T));
    if (WithSines) std::memcpy(sines + i, s, size_t(here) * sizeof(T));
  }
}

template <class T> void structured_angles(const WaveTask<T>& t, const T* x, T* padded, T* work, T* angles) {
  std::copy(x, x + t.d, padded);
  for (int64_t block = 0; block < t.blocks; ++block) {
    const T* signs = t.signs + block * 3 * t.size;
    hadamard(padded, signs, t.size, work);
    hadamard(work, signs + t.size, t.size, work);
    hadamard(work, signs + 2 * t.size, t.size, work);
    const int64_t first = block * t.size, count = std::min(t.size, t.m - first);
    for (int64_t i = 0; i < count; ++i) angles[first + i] = work[i] * t.scales[first + i];
  }
}

template <class T> void waves(const WaveTask<T>& t, int threads) {
  constexpr int64_t kRows = 32;
  in_parallel((t.n + kRows - 1) / kRows, threads, [&](int64_t part) {
    AlignedVector<T> padded(t.angles ? 0 : size_t(t.size)), work(padded.size()), own(t.angles ? 0 : size_t(t.m));
    for (int64_t i = part * kRows; i < std::min(t.n, (part + 1) * kRows); ++i) {
      const T* angles = t.angles ? t.angles + i * t.m : own.data();
      if (!t.angles) structured_angles(t, t.x + i * t.d, padded.data(), work.data(), own.data());
      T* out = t.out + i * (t.m + t.paired);
      write_waves<T, true>(angles, nullptr, t.paired, t.amplitude, out, out + t.paired);
      write_waves<T, false>(angles + t.paired, t.phases, t.m - t.paired, t.amplitude, out + 2 * t.paired, nullptr);
    }
  });
}

}  // namespace

template <> const WaveLoops<float>& table<WaveLoops<float>>() {
  static constexpr WaveLoops<float> loops = {.waves = waves<float>};
  return loops;
}
template <> const WaveLoops<double>& table<WaveLoops<double>>() {
  static constexpr WaveLoops<double> loops = {.waves = waves<double>};
  return loops;
}

}  // namespace mercer::MERCER_ARCH
