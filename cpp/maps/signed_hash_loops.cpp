// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "maps/signed_hash_loops.hpp"

#include <cstring>
#include <type_traits>

namespace mercer::MERCER_ARCH {

namespace {

#if defined(__AVX512F__)
constexpr int64_t kWidth = 64;
#elif defined(__AVX2__)
constexpr int64_t kWidth = 32;
#else
constexpr int64_t kWidth = 16;
#endif

template <class T> struct Wide {
  typedef T Vector __attribute__((vector_size(kWidth)));
};

template <class T> void add_tile(const T* x, int64_t features, const uint32_t* places, int64_t n_hashes, char* sums) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  typedef T Line __attribute__((vector_size(kHashLine)));
  for (int64_t t = 0; t < features; ++t) {
    Line both[2];
    std::memcpy(&both[0], x + t * L, kHashLine);
    both[1] = -both[0];
    for (int64_t s = 0; s < n_hashes; ++s) {
      const uint32_t place = places[t * n_hashes + s];
      char* to = sums + (place & ~kHashMinus);
      Line sum;
      std::memcpy(&sum, to, kHashLine);
      sum += both[place & kHashMinus];
      std::memcpy(to, &sum, kHashLine);
    }
  }
}

template <class V> V load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}

// Number i of the four at a place: one load and shifts, where loads of lines keep the ports for loads busy.
constexpr uint64_t nth(uint64_t four, int64_t i) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  i = 3 - i;
#endif
  return (four >> (16 * i)) & 0xffff;
}

// One vector of the lines: eight sums in registers, each over its features in their order.
template <class T, bool Minus> void add_part(const char* x, const HashSlices& slices, RowsAhead ahead, char* sums) {
  using V = typename Wide<T>::Vector;
  const uint16_t* at = slices.features;
  const int64_t fetched = (ahead.n * ahead.bytes / kHashLine + slices.n - 1) / slices.n;  // of a slice
  int64_t column = 0;
  for (int64_t s = 0; s < slices.n; ++s) {
    for (int64_t i = 0; ahead.n > 0 && i < fetched; ++i) {
      __builtin_prefetch(ahead.rows + column, 0, 2);
      column += kHashLine;
      if (column >= ahead.bytes) column = 0, ahead.rows += ahead.stride, --ahead.n;
    }
    const uint32_t* bucket = slices.buckets + s * kHashSlice;
    V sum[kHashSlice];
#pragma GCC unroll 8
    for (int64_t l = 0; l < kHashSlice; ++l) sum[l] = load<V>(sums + size_t(bucket[l]) * kHashLine);
    const uint16_t* const end = at + int64_t(slices.lengths[s]) * kHashSlice;
    for (; at != end; at += kHashSlice) {
      const uint64_t four[2] = {load<uint64_t>(at), load<uint64_t>(at + 4)};
#pragma GCC unroll 8
      for (int64_t l = 0; l < kHashSlice; ++l) {
        const V line = load<V>(x + nth(four[l / 4], l % 4) * 8);  // 8 features, as an address scales
        sum[l] = Minus ? sum[l] - line : sum[l] + line;
      }
    }
#pragma GCC unroll 8
    for (int64_t l = 0; l < kHashSlice; ++l) std::memcpy(sums + size_t(bucket[l]) * kHashLine, &sum[l], sizeof(V));
  }
}

template <class T> void add_slices(const T* x, const HashSlices& slices, bool minus, const RowsAhead& ahead, T* sums) {
  for (int64_t part = 0; part < kHashLine; part += kWidth) {
    const char* from = reinterpret_cast<const char*>(x) + part;
    char* to = reinterpret_cast<char*>(sums) + part;
    const RowsAhead once = part == 0 ? ahead : RowsAhead{nullptr, 0, 0, 0};
    minus ? add_part<T, true>(from, slices, once, to) : add_part<T, false>(from, slices, once, to);
  }
}

// Eight sums by name, so that each stays a scalar in its register: gathered into a vector they take twice the time.
template <class T, bool Minus> void add_row_part(const T* x, const HashSlices& slices, T* sums) {
  static_assert(kHashSlice == 8);
  const auto with = [x](T sum, uint64_t place) {
    const T value = load<T>(reinterpret_cast<const char*>(x) + place);
    return Minus ? sum - value : sum + value;
  };
  const uint16_t* at = slices.features;
  for (int64_t s = 0; s < slices.n; ++s) {
    const uint32_t* b = slices.buckets + s * kHashSlice;
    T s0 = sums[b[0]], s1 = sums[b[1]], s2 = sums[b[2]], s3 = sums[b[3]];
    T s4 = sums[b[4]], s5 = sums[b[5]], s6 = sums[b[6]], s7 = sums[b[7]];
    const uint16_t* const end = at + int64_t(slices.lengths[s]) * kHashSlice;
    for (; at != end; at += kHashSlice) {
      const uint64_t low = load<uint64_t>(at), high = load<uint64_t>(at + 4);
      s0 = with(s0, nth(low, 0));
      s1 = with(s1, nth(low, 1));
      s2 = with(s2, nth(low, 2));
      s3 = with(s3, nth(low, 3));
      s4 = with(s4, nth(high, 0));
      s5 = with(s5, nth(high, 1));
      s6 = with(s6, nth(high, 2));
      s7 = with(s7, nth(high, 3));
    }
    sums[b[0]] = s0, sums[b[1]] = s1, sums[b[2]] = s2, sums[b[3]] = s3;
    sums[b[4]] = s4, sums[b[5]] = s5, sums[b[6]] = s6, sums[b[7]] = s7;
  }
}

template <class T> void add_slices_of_row(const T* x, const HashSlices& slices, bool minus, T* sums) {
  minus ? add_row_part<T, true>(x, slices, sums) : add_row_part<T, false>(x, slices, sums);
}

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define MERCER_TURNS_BLOCKS
// Square blocks are turned by rounds that interleave the first half of the vectors with the second.
template <class T> void turn_block(const T* x, int64_t stride, T* tile) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  typedef T Line __attribute__((vector_size(kHashLine)));
  using I = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef I Order __attribute__((vector_size(kHashLine)));
  Order low, high;
  for (int64_t i = 0; i < L; ++i) {
    low[i] = I(i / 2 + (i % 2) * L);
    high[i] = I(L / 2 + i / 2 + (i % 2) * L);
  }
  Line a[L], b[L];
#pragma GCC unroll 16
  for (int64_t i = 0; i < L; ++i) a[i] = load<Line>(x + i * stride);
  for (int64_t half = 1; half < L; half *= 2) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < L / 2; ++i) {
      b[2 * i] = __builtin_shuffle(a[i], a[i + L / 2], low);
      b[2 * i + 1] = __builtin_shuffle(a[i], a[i + L / 2], high);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < L; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < L; ++i) std::memcpy(tile + i * L, &a[i], kHashLine);
}
#endif

template <class T> void fill_tile(const T* x, int64_t stride, int64_t rows, int64_t features, T* tile) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  int64_t t = 0;
#ifdef MERCER_TURNS_BLOCKS
  if (rows == L)
    for (; t + L <= features; t += L) turn_block(x + t, stride, tile + t * L);
#endif
  for (int64_t first = t; first < features; first += 64)  // a few lines of each row at a time
    for (int64_t r = 0; r < L; ++r)
      for (int64_t i = first; i < features && i < first + 64; ++i)
        tile[i * L + r] = r < rows ? x[r * stride + i] : T(0);
}

template <class T> constexpr SignedHashLoops<T> all_loops() {
  return {
      .add_tile = add_tile<T>,
      .add_slices = add_slices<T>,
      .add_slices_of_row = add_slices_of_row<T>,
      .fill_tile = fill_tile<T>,
  };
}

}  // namespace

template <> const SignedHashLoops<float>& table<SignedHashLoops<float>>() {
  static constexpr SignedHashLoops<float> loops = all_loops<float>();
  return loops;
}
template <> const SignedHashLoops<double>& table<SignedHashLoops<double>>() {
  static constexpr SignedHashLoops<double> loops = all_loops<double>();
  return loops;
}

}  // namespace mercer::MERCER_ARCH
