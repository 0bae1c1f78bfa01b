// Part scores and their adjoint for weights laid out by a Pattern:
//   scores    out[t][c]      = Σ_f x[t][f] w[f, c]
//   backward  out[f, c]     += Σ_t x[t][f] μ[t][c]
// Scores are split over rows; the adjoint over features, so that each weight is summed by one thread in the order of
// the rows and the result is the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mercer::MERCER_ARCH {

// One row of features: k-th feature and value.
template <class T> struct Row {
  const int32_t* indices;
  const T* values;
  int64_t size;
  int64_t feature(int64_t k) const { return indices ? indices[k] : k; }
  double value(int64_t k) const { return values ? double(values[k]) : 1.0; }
};
template <class T> inline Row<T> row_of(const Rows<T>& x, int64_t t) {
  if (!x.indptr) return {nullptr, x.values + t * x.n_columns, x.n_columns};
  const int64_t begin = x.indptr[t];
  return {x.indices + begin, x.values ? x.values + begin : nullptr, x.indptr[t + 1] - begin};
}

// Whether rows of weights are spread by the bits of a pattern's heads (see score_by_bits).
#if defined(__AVX512F__)
constexpr bool kByBits = true;
#else
constexpr bool kByBits = false;
#endif

struct Span {
  int64_t begin;
  bool dense;
};
inline Span weights_of(const Pattern& p, int64_t f) {
  if (!p.starts) return {f * p.width, true};
  return {int64_t(p.starts[f]), int64_t(p.starts[f + 1] - p.starts[f]) == p.width};
}

// scratch holds width rounded up to whole vectors.
template <class T> void score_row(const Row<T>& x, const Pattern& p, const double* w, double* scratch);

inline int64_t padded(int64_t width) {
  constexpr int L = kLanes<double>;
  return (width + L - 1) / L * L;
}

// With many features the weights of a row lie far apart and none of them is in a cache: the addresses needed two rows
// on are fetched ahead, then the weights of the next row. Always inline: a function that only fetches has no effect for
// the compiler, and a call of it is left out.
#define MERCER_FETCHING inline __attribute__((always_inline))
MERCER_FETCHING void fetch(const void* address) { __builtin_prefetch(address, 0); }
template <class T> MERCER_FETCHING void fetch_starts(const Rows<T>& x, int64_t t, const Pattern& p) {
  if (!p.starts || !x.indptr) return;
  const Row<T> row = row_of(x, t);
  if (kByBits && p.heads)
    for (int64_t k = 0; k < row.size; ++k) fetch(p.heads + row.indices[k]);
  else
    for (int64_t k = 0; k < row.size; ++k) fetch(p.starts + row.indices[k]);
}
// By the bits of the heads, without a branch: as many lines as the longest row may lie on, the last ones often the
// same.
template <class T> MERCER_FETCHING void fetch_by_bits(const Row<T>& row, const Pattern& p, const double* w) {
  for (int64_t k = 0; k < row.size; ++k) {
    const Pattern::Head head = p.heads[row.indices[k]];
    const int64_t last = std::max(__builtin_popcount(head.bits) - 1, 0);
    const double* begin = w + head.start;
    fetch(begin);
    fetch(begin + last);
    if (p.width > 8) fetch(begin + std::min<int64_t>(8, last));
    if (p.width > 16) fetch(begin + std::min<int64_t>(16, last));
  }
}
template <class T> MERCER_FETCHING void fetch_weights(const Rows<T>& x, int64_t t, const Pattern& p, const double* w) {
  if (!x.indptr) return;
  const Row<T> row = row_of(x, t);
  if (kByBits && p.heads) return fetch_by_bits(row, p, w);
  for (int64_t k = 0; k < row.size; ++k) {
    const int64_t f = row.indices[k], begin = p.starts ? int64_t(p.starts[f]) : f * p.width;
    fetch(w + begin);
    if (p.starts) {
      const void* columns = p.columns ? static_cast<const void*>(p.columns + begin) : p.wide_columns + begin;
      // A full row is read without its columns. Which rows are full cannot be predicted: no branch.
      fetch(p.starts[f + 1] - begin == p.width ? static_cast<const void*>(w + begin) : columns);
      if (p.starts[f + 1] - begin < 8) continue;
    }
    fetch(w + begin + 8);
    if (p.width > 16) fetch(w + begin + 16);
  }
}

#undef MERCER_FETCHING

// Calls take(t, scores of row + t) for t = 0 .. count.
template <class T, class Take>
inline void score_rows(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const double* w, double* scratch,
                       Take take) {
  if (count > 1) fetch_starts(x, row + 1, p);
  for (int64_t t = 0; t < count; ++t) {
    if (t + 2 < count) fetch_starts(x, row + t + 2, p);
    if (t + 1 < count) fetch_weights(x, row + t + 1, p, w);
    score_row(row_of(x, row + t), p, w, scratch);
    take(t, scratch);
  }
}

// Adds x ⊗ μ to the weights of the features in [first, last).
template <class T>
void add_row(const Row<T>& x, const Pattern& p, int64_t first, int64_t last, int64_t limit, const double* mu,
             double* g);

// The same for a range of rows; mu_of(t) is the μ of row + t, padded with zeros to whole vectors.
template <class T, class MuOf>
inline void add_rows(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, int64_t first, int64_t last,
                     int64_t limit, double* g, MuOf mu_of) {
  const bool all =
      first == 0 && last == p.n_features;  // a thread with a share of the features would fetch those of others
  if (all && count > 1) fetch_starts(x, row + 1, p);
  for (int64_t t = 0; t < count; ++t) {
    if (all && t + 2 < count) fetch_starts(x, row + t + 2, p);
    if (all && t + 1 < count) fetch_weights(x, row + t + 1, p, g);
    add_row(row_of(x, row + t), p, first, last, limit, mu_of(t), g);
  }
}

template <class T>
void scores(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const double* w, T* out, int threads);

// Bounds of feature ranges of about equal work, one range a thread, by a histogram of the features of a sample of the
// rows.
template <class T>
std::vector<int64_t> feature_ranges(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, int threads);

// stride: from one row of μ to the next. Where it is the padded width, and what lies beyond the width is zero, μ is
// read in place.
template <class T>
void backward_rows(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const T* mu, int64_t stride,
                   double* out, const std::vector<int64_t>& bounds, int threads);

}  // namespace mercer::MERCER_ARCH
