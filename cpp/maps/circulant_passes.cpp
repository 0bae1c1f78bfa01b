// The loops of maps/circulant.hpp, compiled once for each instruction set.
#include "maps/circulant.hpp"

#include "base/aligned.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
// One copy, called from several places.
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

namespace mercer {
namespace MERCER_ARCH {
namespace {

constexpr int kZero = 0x7fff0;       // the exponent of a row of zeros: no other row has it
constexpr int kNotFinite = 0x7fff1;  // and of a row with NaN or infinity

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T> using Vector = typename VectorOf<T>::type;

// The vectors that the target has. What goes through many registers goes through them, part after part of a Vector:
// the results are the same, and there is a fraction of the code.
#if defined(__AVX512F__)
constexpr int kPartBytes = 64;
#elif defined(__AVX2__)
constexpr int kPartBytes = 32;
#else
constexpr int kPartBytes = 16;
#endif
template <class T> struct PartOf {
  typedef T type __attribute__((vector_size(kPartBytes)));
};
template <class T> using Part = typename PartOf<T>::type;
template <class T> constexpr int64_t kPartLanes = kPartBytes / int64_t(sizeof(T));

template <class V> struct Complex {
  V re, im;
};
template <class V> INLINE Complex<V> operator+(Complex<V> a, Complex<V> b) { return {a.re + b.re, a.im + b.im}; }
template <class V> INLINE Complex<V> operator-(Complex<V> a, Complex<V> b) { return {a.re - b.re, a.im - b.im}; }
template <class V, class W> INLINE Complex<V> times(Complex<V> a, W c, W s) {
  return {a.re * c - a.im * s, a.re * s + a.im * c};
}
// a · (-i) forwards, a · i backwards.
template <bool Back, class V> INLINE Complex<V> turned(Complex<V> a) {
  return Back ? Complex<V>{-a.im, a.re} : Complex<V>{a.im, -a.re};
}

// P values to their transform, unscaled. For odd P, roots holds cos and sin of 2π t / P, t = 0 .. P.
template <int P, bool Back, class T, class V> INLINE void butterfly(Complex<V>* a, const T* roots) {
  if constexpr (P == 2) {
    const Complex<V> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  } else if constexpr (P == 4) {
    const Complex<V> s02 = a[0] + a[2], d02 = a[0] - a[2], s13 = a[1] + a[3], d13 = turned<Back>(a[1] - a[3]);
    a[0] = s02 + s13;
    a[1] = d02 + d13;
    a[2] = s02 - s13;
    a[3] = d02 - d13;
  } else {
    constexpr int H = (P - 1) / 2;
    Complex<V> sums[H], differences[H];
    const Complex<V> first = a[0];
    for (int t = 1; t <= H; ++t) {
      sums[t - 1] = a[t] + a[P - t];
      differences[t - 1] = a[t] - a[P - t];
      a[0] = a[0] + sums[t - 1];
    }
    for (int s = 1; s <= H; ++s) {
      Complex<V> even = first, odd = {V{}, V{}};
      for (int t = 1; t <= H; ++t) {
        const T c = roots[s * t % P], o = roots[P + s * t % P];
        even.re += sums[t - 1].re * c, even.im += sums[t - 1].im * c;
        odd.re += differences[t - 1].re * o, odd.im += differences[t - 1].im * o;
      }
      const Complex<V> side = turned<Back>(odd);
      a[s] = even + side;
      a[P - s] = even - side;
    }
  }
}

template <class V, class T> INLINE V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T> INLINE void store(T* p, V v) { std::memcpy(p, &v, sizeof(V)); }

// Entries of the P sub-blocks, q apart, as are their twiddles, n vectors of them: butterfly and twiddles (forwards), or
// twiddles and butterfly (backwards).
template <int P, bool Back, class T>
APART void steps(const T* roots, int64_t q, int64_t n, const T* cosines, const T* sines, T* re, T* im) {
  using V = Part<T>;
  for (int64_t j = 0; j < n * kPartLanes<T>; j += kPartLanes<T>) {
    Complex<V> a[P];
    for (int t = 0; t < P; ++t) {
      a[t] = {load<V>(re + t * q + j), load<V>(im + t * q + j)};
      if (Back && t) a[t] = times(a[t], load<V>(cosines + (t - 1) * q + j), -load<V>(sines + (t - 1) * q + j));
    }
    butterfly<P, Back, T>(a, roots);
    for (int t = 0; t < P; ++t) {
      if (!Back && t) a[t] = times(a[t], load<V>(cosines + (t - 1) * q + j), load<V>(sines + (t - 1) * q + j));
      store(re + t * q + j, a[t].re);
      store(im + t * q + j, a[t].im);
    }
  }
}

template <class T> APART void copy_rows(int64_t rows, int64_t n, const T* from, int64_t stride, T* to, int64_t apart) {
  for (int64_t t = 0; t < rows; ++t) std::memcpy(to + t * apart, from + t * stride, size_t(n) * sizeof(T));
}

template <int P, bool Back, class T> APART void head_pass(const typename ConvolutionPlan<T>::Pass& pass, T* re, T* im) {
  constexpr int64_t L = kPartLanes<T>;
  const int64_t q = pass.size / P, whole = q / L, j = whole * L;
  const T *roots = pass.roots.data(), *cosines = pass.cosines.data(), *sines = pass.sines.data();
  steps<P, Back, T>(roots, q, whole, cosines, sines, re, im);
  if (j == q) return;
  T rest[4][P * L] = {};  // the last entries, fewer than a vector
  copy_rows<T>(P, q - j, re + j, q, rest[0], L);
  copy_rows<T>(P, q - j, im + j, q, rest[1], L);
  copy_rows<T>(P - 1, q - j, cosines + j, q, rest[2], L);
  copy_rows<T>(P - 1, q - j, sines + j, q, rest[3], L);
  steps<P, Back, T>(roots, L, 1, rest[2], rest[3], rest[0], rest[1]);
  copy_rows<T>(P, q - j, rest[0], L, re + j, q);
  copy_rows<T>(P, q - j, rest[1], L, im + j, q);
}

// A pass over blocks of vectors: every lane its own block.
template <int P, bool Back, class T>
APART void tail_pass(const typename ConvolutionPlan<T>::Pass& pass, int64_t m, Vector<T>* re, Vector<T>* im) {
  using V = Part<T>;
  constexpr int64_t parts = kVectorBytes / kPartBytes;
  const int64_t q = pass.size / P;
  const T *cosines = pass.cosines.data(), *sines = pass.sines.data();
  V *x = reinterpret_cast<V*>(re), *y = reinterpret_cast<V*>(im);
  for (int64_t block = 0; block < m; block += pass.size) {
    for (int64_t j = 0; j < q; ++j) {
      for (int64_t part = 0; part < parts; ++part) {
        const auto at = [&](int t) { return (block + t * q + j) * parts + part; };
        Complex<V> a[P];
        for (int t = 0; t < P; ++t) {
          a[t] = {x[at(t)], y[at(t)]};
          if (Back && t && q > 1) a[t] = times(a[t], cosines[(t - 1) * q + j], -sines[(t - 1) * q + j]);
        }
        butterfly<P, Back, T>(a, pass.roots.data());
        for (int t = 0; t < P; ++t) {
          if (!Back && t && q > 1) a[t] = times(a[t], cosines[(t - 1) * q + j], sines[(t - 1) * q + j]);
          x[at(t)] = a[t].re;
          y[at(t)] = a[t].im;
        }
      }
    }
  }
}

template <bool Back, class T> APART void head_pass_of(const typename ConvolutionPlan<T>::Pass& pass, T* re, T* im) {
  switch (pass.radix) {
    case 2: return head_pass<2, Back, T>(pass, re, im);
    case 3: return head_pass<3, Back, T>(pass, re, im);
    case 4: return head_pass<4, Back, T>(pass, re, im);
    case 5: return head_pass<5, Back, T>(pass, re, im);
    case 7: return head_pass<7, Back, T>(pass, re, im);
    case 11: return head_pass<11, Back, T>(pass, re, im);
    default: return head_pass<13, Back, T>(pass, re, im);
  }
}

template <bool Back, class T>
APART void tail_pass_of(const typename ConvolutionPlan<T>::Pass& pass, int64_t m, Vector<T>* re, Vector<T>* im) {
  switch (pass.radix) {
    case 2: return tail_pass<2, Back, T>(pass, m, re, im);
    case 3: return tail_pass<3, Back, T>(pass, m, re, im);
    case 4: return tail_pass<4, Back, T>(pass, m, re, im);
    case 5: return tail_pass<5, Back, T>(pass, m, re, im);
    case 7: return tail_pass<7, Back, T>(pass, m, re, im);
    case 11: return tail_pass<11, Back, T>(pass, m, re, im);
    default: return tail_pass<13, Back, T>(pass, m, re, im);
  }
}

// One complex vector through the passes: times the spectrum and back, or (Forward) into the spectrum.
template <class T, bool Forward> class Walk {
 public:
  using V = Vector<T>;
  using Plan = ConvolutionPlan<T>;
  using Spectrum = std::conditional_t<Forward, T*, const T*>;
  Walk(const Plan& plan, Spectrum spectrum, T scale)
      : plan_(plan), spectrum_(spectrum), scale_(scale), tile_(2 * plan.m * Plan::lanes) {}

  void vector(T* re, T* im) { block(0, 0, re, im); }

  // All tail: the vectors of the tile are already in place, one in each lane.
  APART void lanes() {
    V *re = tile(), *im = tile() + plan_.m;
    for (const auto& pass : plan_.tail) tail_pass_of<false, T>(pass, plan_.m, re, im);
    if constexpr (Forward) {
      for (int64_t i = 0; i < plan_.m; ++i)
        spectrum_[i] = re[i][0] * scale_, spectrum_[plan_.m + i] = im[i][0] * scale_;
    } else {
      for (int64_t i = 0; i < plan_.m; ++i) {
        const Complex<V> z = times(Complex<V>{re[i], im[i]}, spectrum_[i], spectrum_[plan_.m + i]);
        re[i] = z.re, im[i] = z.im;
      }
      for (auto pass = plan_.tail.rbegin(); pass != plan_.tail.rend(); ++pass)
        tail_pass_of<true, T>(*pass, plan_.m, re, im);
    }
  }
  V* tile() { return reinterpret_cast<V*>(tile_.data()); }

 private:
  APART void block(size_t level, int64_t offset, T* re, T* im) {
    if (level == plan_.cached) return cached_block(offset, re, im);
    const auto& pass = plan_.head[level];
    head_pass_of<false, T>(pass, re, im);
    const int64_t q = pass.size / pass.radix;
    for (int64_t s = 0; s < pass.radix; ++s) block(level + 1, offset + s * q, re + s * q, im + s * q);
    if (!Forward) head_pass_of<true, T>(pass, re, im);
  }

  void cached_block(int64_t offset, T* re, T* im) {
    for (size_t level = plan_.cached; level < plan_.head.size(); ++level)
      for (int64_t at = 0; at < plan_.cached_size; at += plan_.head[level].size)
        head_pass_of<false, T>(plan_.head[level], re + at, im + at);
    const int64_t blocks = plan_.cached_size / plan_.m, size = 2 * plan_.m * Plan::lanes;
    Spectrum spectrum = spectrum_ + offset / plan_.cached_size * plan_.groups() * size;
    for (int64_t first = 0; first < blocks; first += Plan::lanes, spectrum += size)
      group(std::min(Plan::lanes, blocks - first), re + first * plan_.m, im + first * plan_.m, spectrum);
    if (Forward) return;
    for (size_t level = plan_.head.size(); level-- > plan_.cached;)
      for (int64_t at = 0; at < plan_.cached_size; at += plan_.head[level].size)
        head_pass_of<true, T>(plan_.head[level], re + at, im + at);
  }

  // Up to a vector's lanes of blocks of the tail.
  APART void group(int64_t count, T* re, T* im, Spectrum spectrum) {
    const int64_t m = plan_.m;
    V *x = tile(), *y = tile() + m;
    if (count < Plan::lanes) std::memset(x, 0, size_t(2 * m) * sizeof(V));
    gather(re, count, x);
    gather(im, count, y);
    for (const auto& pass : plan_.tail) tail_pass_of<false, T>(pass, m, x, y);
    if constexpr (Forward) {
      for (int64_t i = 0; i < m; ++i)
        store(spectrum + i * Plan::lanes, x[i] * scale_), store(spectrum + (m + i) * Plan::lanes, y[i] * scale_);
    } else {
      for (int64_t i = 0; i < m; ++i) {
        const Complex<V> z = times(Complex<V>{x[i], y[i]}, load<V>(spectrum + i * Plan::lanes),
                                   load<V>(spectrum + (m + i) * Plan::lanes));
        x[i] = z.re, y[i] = z.im;
      }
      for (auto pass = plan_.tail.rbegin(); pass != plan_.tail.rend(); ++pass) tail_pass_of<true, T>(*pass, m, x, y);
      scatter(x, count, re);
      scatter(y, count, im);
    }
  }

  // L × L values, L the lanes of a part, change rows and columns: log2(L) rounds of swapping halves. The patterns are
  // constants, or the compiler would make them anew for each round.
  using P = Part<T>;
  static constexpr int64_t kLanes = kPartLanes<T>;
  template <int H, bool High, int... I> static INLINE P half(P a, P b, std::integer_sequence<int, I...>) {
    constexpr int L = int(kLanes);
#if defined(__clang__)
    return __builtin_shufflevector(a, b, (High ? (I & H ? L + I : I ^ H) : (I & H ? L + (I ^ H) : I))...);
#else
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Place;
    typedef Place Index __attribute__((vector_size(kPartBytes)));
    return __builtin_shuffle(a, b, Index{Place(High ? (I & H ? L + I : I ^ H) : (I & H ? L + (I ^ H) : I))...});
#endif
  }
  template <int H> static INLINE void swap_halves(P* rows) {
    constexpr int L = int(kLanes);
    constexpr auto places = std::make_integer_sequence<int, L>{};
#pragma GCC unroll 16
    for (int r = 0; r < L; ++r) {
      if (r & H) continue;
      const P a = rows[r], b = rows[r + H];
      rows[r] = half<H, false>(a, b, places);
      rows[r + H] = half<H, true>(a, b, places);
    }
    if constexpr (H > 1) swap_halves<H / 2>(rows);
  }
  static INLINE void transpose(P* rows) { swap_halves<int(kLanes) / 2>(rows); }
  APART void gather(const T* from, int64_t count, V* to) const {
    const int64_t m = plan_.m, whole = count == Plan::lanes ? m / kLanes * kLanes : 0;
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t first = 0; first < Plan::lanes; first += kLanes) {
        P rows[kLanes];
        for (int64_t l = 0; l < kLanes; ++l) rows[l] = load<P>(from + (first + l) * m + i);
        transpose(rows);
        for (int64_t l = 0; l < kLanes; ++l) store(out + (i + l) * Plan::lanes + first, rows[l]);
      }
    for (int64_t i = whole; i < m; ++i)
      for (int64_t l = 0; l < count; ++l) out[i * Plan::lanes + l] = from[l * m + i];
  }
  APART void scatter(const V* from, int64_t count, T* to) const {
    const int64_t m = plan_.m, whole = count == Plan::lanes ? m / kLanes * kLanes : 0;
    const T* in = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t first = 0; first < Plan::lanes; first += kLanes) {
        P rows[kLanes];
        for (int64_t l = 0; l < kLanes; ++l) rows[l] = load<P>(in + (i + l) * Plan::lanes + first);
        transpose(rows);
        for (int64_t l = 0; l < kLanes; ++l) store(to + (first + l) * m + i, rows[l]);
      }
    for (int64_t i = whole; i < m; ++i)
      for (int64_t l = 0; l < count; ++l) to[l * m + i] = in[i * Plan::lanes + l];
  }

  const Plan& plan_;
  Spectrum spectrum_;
  T scale_;
  AlignedVector<T> tile_;
};

template <class T> void spectrum_of(const ConvolutionPlan<T>& plan, const T* r, T* out) {
  Walk<T, true> walk(plan, out, T(1) / T(plan.n));
  if (plan.batched) {
    std::memset(walk.tile(), 0, size_t(2 * plan.n) * sizeof(Vector<T>));
    for (int64_t i = 0; i < plan.n; ++i) walk.tile()[i][0] = r[i];
    return walk.lanes();
  }
  AlignedVector<T> work(size_t(2 * plan.n));
  std::memcpy(work.data(), r, size_t(plan.n) * sizeof(T));
  std::memset(work.data() + plan.n, 0, size_t(plan.n) * sizeof(T));
  walk.vector(work.data(), work.data() + plan.n);
}

// The bits of each byte in the opposite order.
inline uint64_t mirrored(uint64_t bytes) {
  bytes = (bytes & 0x5555555555555555u) << 1 | (bytes >> 1 & 0x5555555555555555u);
  bytes = (bytes & 0x3333333333333333u) << 2 | (bytes >> 2 & 0x3333333333333333u);
  return (bytes & 0x0f0f0f0f0f0f0f0fu) << 4 | (bytes >> 4 & 0x0f0f0f0f0f0f0f0fu);
}

// Bit b of the answer: x[b] >= 0.
template <class T> INLINE uint64_t eight_signs(const T* x) {
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_setzero_ps(), _CMP_GE_OQ)));
  else
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x), _mm256_setzero_pd(), _CMP_GE_OQ))) |
           unsigned(_mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x + 4), _mm256_setzero_pd(), _CMP_GE_OQ))) << 4;
#else
  unsigned byte = 0;
  for (int b = 0; b < 8; ++b) byte |= unsigned(x[b] >= 0) << b;
  return byte;
#endif
}

// Bits of x >= 0, the first in the highest bit of a byte, as in numpy.packbits. Eight bytes are mirrored at a time.
template <class T> APART void pack(const T* x, int64_t n, uint8_t* out) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64, out += 8) {
    uint64_t bytes = 0;
#pragma GCC unroll 8
    for (int b = 0; b < 8; ++b) bytes |= eight_signs(x + i + 8 * b) << (8 * b);
    bytes = mirrored(bytes);
    for (int b = 0; b < 8; ++b) out[b] = uint8_t(bytes >> (8 * b));
  }
  for (; i + 8 <= n; i += 8) *out++ = uint8_t(mirrored(eight_signs(x + i)));
  if (i == n) return;
  T rest[8];
  for (int b = 0; b < 8; ++b) rest[b] = i + b < n ? x[i + b] : T(-1);
  *out = uint8_t(mirrored(eight_signs(rest)));
}

// Rows are scaled to a length between 1 and 2 by a power of two, which is exact: what the partner of a row leaves
// behind in rounding is then no more than the row's own rounding. A row of zeros stays one.
template <class T> APART int exponent(const T* x, int64_t n) {
  typedef T Eight __attribute__((vector_size(8 * sizeof(T))));
  typedef double Doubles __attribute__((vector_size(64)));
  Doubles sums = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Doubles values = __builtin_convertvector(load<Eight>(x + i), Doubles);
    sums += values * values;
  }
  for (; i < n; ++i) sums[0] += double(x[i]) * double(x[i]);
  const double total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  // Squares of doubles may leave the range of doubles: then the largest entry says enough.
  if (total > 1e-280 && total < 1e300) return std::ilogb(total) / 2;
  double largest = 0;
  for (i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return kNotFinite;
    largest = std::max(largest, std::abs(double(x[i])));
  }
  return largest > 0 ? std::ilogb(largest) : kZero;
}

template <class T> struct Output {
  int64_t n_bits;
  T* real;
  uint8_t* packed;
  APART void put(int64_t row, int exponent, T* values) const {
    if (exponent == kZero) {
      std::memset(values, 0, size_t(n_bits) * sizeof(T));
      exponent = 0;
    }
    if (!real) return pack(values, n_bits, packed + row * ((n_bits + 7) / 8));
    // In two steps, since 2^exponent alone may be out of range.
    const T half = T(std::ldexp(1.0, exponent / 2)), rest = T(std::ldexp(1.0, exponent - exponent / 2));
    for (int64_t i = 0; i < n_bits; ++i) real[row * n_bits + i] = values[i] * half * rest;
  }
};

// Row x, with its signs, scaled, into every stride-th place.
template <class T> APART void fill(const T* x, const T* signs, int64_t n, int exponent, T* out, int64_t stride) {
  if (exponent == kZero) exponent = 0;
  const T half = T(std::ldexp(1.0, -exponent / 2)), rest = T(std::ldexp(1.0, -exponent - (-exponent / 2)));
  if (stride == 1 && signs)
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * half * rest * signs[i];
  else
    for (int64_t i = 0; i < n; ++i) out[i * stride] = x[i] * half * rest * (signs ? signs[i] : T(1));
}

// Short vectors: 2 × lanes of them at once.
template <class T>
bool convolve_lanes(const ConvolutionPlan<T>& plan, const T* spectrum, const T* X, const T* signs, int64_t first,
                    int64_t last, const Output<T>& out) {
  constexpr int64_t lanes = ConvolutionPlan<T>::lanes;
  const int64_t n = plan.n;
  Walk<T, false> walk(plan, spectrum, T(1));
  AlignedVector<T> row(static_cast<size_t>(n));
  auto* tile = reinterpret_cast<T*>(walk.tile());
  const auto place = [&](int64_t l) { return tile + l / lanes * n * lanes + l % lanes; };
  for (int64_t at = first; at < last; at += 2 * lanes) {
    const int64_t count = std::min(2 * lanes, last - at);
    int exponents[2 * lanes];
    if (count < 2 * lanes) std::memset(tile, 0, size_t(2 * n * lanes) * sizeof(T));
    for (int64_t l = 0; l < count; ++l) {
      exponents[l] = exponent(X + (at + l) * n, n);
      if (exponents[l] == kNotFinite) return false;
      fill(X + (at + l) * n, signs, n, exponents[l], place(l), lanes);
    }
    walk.lanes();
    for (int64_t l = 0; l < count; ++l) {
      const T* from = place(l);
      for (int64_t i = 0; i < out.n_bits; ++i) row[i] = from[i * lanes];
      out.put(at + l, exponents[l], row.data());
    }
  }
  return true;
}

template <class T>
bool convolve_rows(const ConvolutionPlan<T>& plan, const T* spectrum, const T* X, const T* signs, int64_t first,
                   int64_t last, int64_t n_bits, T* real_out, uint8_t* packed_out) {
  const int64_t n = plan.n;
  const Output<T> out{n_bits, real_out, packed_out};
  if (plan.batched) return convolve_lanes(plan, spectrum, X, signs, first, last, out);
  Walk<T, false> walk(plan, spectrum, T(1));
  AlignedVector<T> work(size_t(2 * n));
  for (int64_t row = first; row < last; row += 2) {
    const int64_t count = std::min<int64_t>(2, last - row);
    int exponents[2];
    if (count == 1) std::memset(work.data() + n, 0, size_t(n) * sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      exponents[i] = exponent(X + (row + i) * n, n);
      if (exponents[i] == kNotFinite) return false;
      fill(X + (row + i) * n, signs, n, exponents[i], work.data() + i * n, 1);
    }
    walk.vector(work.data(), work.data() + n);
    for (int64_t i = 0; i < count; ++i) out.put(row + i, exponents[i], work.data() + i * n);
  }
  return true;
}

}  // namespace

template <> const ConvolutionLoops<float>& table<ConvolutionLoops<float>>() {
  static constexpr ConvolutionLoops<float> loops = {.spectrum = spectrum_of<float>, .rows = convolve_rows<float>};
  return loops;
}
template <> const ConvolutionLoops<double>& table<ConvolutionLoops<double>>() {
  static constexpr ConvolutionLoops<double> loops = {.spectrum = spectrum_of<double>, .rows = convolve_rows<double>};
  return loops;
}

}  // namespace MERCER_ARCH
}  // namespace mercer
