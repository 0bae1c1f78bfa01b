// Compiled once for each instruction set.
#include "structures/linear_loops.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "structures/linear.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mercer::MERCER_ARCH {

// The weights that a row's features own, dense rows of weights and sparse ones apart. Which of the two a feature has
// cannot be predicted, so they are sorted without a branch, and then walked in two loops that need none.
struct Split {
  static constexpr int kSize = 64;
  struct Item {
    int64_t begin, end;
    double value;
  };
  Item dense[kSize], sparse[kSize];
  int n_dense = 0, n_sparse = 0;

  template <class T> Split(const Row<T>& x, int64_t from, int64_t to, const Pattern& p) {
    if (!p.starts) {
      for (int64_t k = from; k < to; ++k) {
        const int64_t begin = x.feature(k) * p.width;
        dense[n_dense++] = {begin, begin + p.width, x.value(k)};
      }
      return;
    }
    for (int64_t k = from; k < to; ++k) {
      const int64_t f = x.feature(k);
      const Item item = {int64_t(p.starts[f]), int64_t(p.starts[f + 1]), x.value(k)};
      const bool full = item.end - item.begin == p.width;
      dense[n_dense] = item;
      sparse[n_sparse] = item;
      n_dense += full;
      n_sparse += !full;
    }
  }
};

// out += dense rows of weights, for one block of columns, in registers. A load may run over the end of its row into the
// next, never over the last weight.
template <int NV, class Begin, class Value>
inline void dense_block(int64_t count, Begin begin_of, Value value_of, const Pattern& p, const double* w,
                        int64_t column, double* out) {
  constexpr int L = kLanes<double>;
  Vec<double> acc[NV];
  for (int j = 0; j < NV; ++j) acc[j] = load(out + j * L);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t begin = begin_of(k) + column;
    const double value = value_of(k), *row = w + begin;
    if (begin + NV * L <= p.n_weights) {
      for (int j = 0; j < NV; ++j) acc[j] += value * load(row + j * L);
    } else {
      for (int j = 0; j < NV; ++j) {
        const int64_t left = p.width - column - j * L;
        if (left > 0) acc[j] += value * (left >= L ? load(row + j * L) : load_some(row + j * L, int(left), 0.0));
      }
    }
  }
  for (int j = 0; j < NV; ++j) store(out + j * L, acc[j]);
}

// The same for all columns: the k-th of `count` dense rows begins at begin_of(k) and counts value_of(k) times.
template <class Begin, class Value>
inline void add_dense_scores(int64_t count, Begin begin_of, Value value_of, const Pattern& p, const double* w,
                             double* out) {
  constexpr int L = kLanes<double>;
  for (int64_t c = 0; c < p.width; c += 4 * L) {
    switch (std::min<int64_t>((p.width - c + L - 1) / L, 4)) {
      case 4: dense_block<4>(count, begin_of, value_of, p, w, c, out + c); break;
      case 3: dense_block<3>(count, begin_of, value_of, p, w, c, out + c); break;
      case 2: dense_block<2>(count, begin_of, value_of, p, w, c, out + c); break;
      case 1: dense_block<1>(count, begin_of, value_of, p, w, c, out + c); break;
    }
  }
}

// out += sparse rows of weights. Neighbouring features often have a weight for the same column, and each sum would wait
// for the last: every other row goes to a second set of sums.
template <class Column>
inline void add_sparse_scores(const Split& items, const Pattern& p, const Column* columns, const double* w,
                              double* out) {
  constexpr int kSums = 64, L = kLanes<double>;
  auto add = [&](const Split::Item& item, double* sums) {
    for (int64_t i = item.begin; i < item.end; ++i) sums[columns[i]] += item.value * w[i];
  };
  if (items.n_sparse < 4 || p.width > kSums) {
    for (int k = 0; k < items.n_sparse; ++k) add(items.sparse[k], out);
    return;
  }
  alignas(64) double second[kSums];
  for (int64_t c = 0; c < p.width; c += L) store(second + c, Vec<double>{});
  int k = 0;
  for (; k + 2 <= items.n_sparse; k += 2) {
    add(items.sparse[k], out);
    add(items.sparse[k + 1], second);
  }
  if (k < items.n_sparse) add(items.sparse[k], out);
  for (int64_t c = 0; c < p.width; c += L) store(out + c, load(out + c) + load(second + c));
}

#if defined(__AVX512F__)
// A load that stays one: the expansion that reads memory itself takes twice as long.
inline __m512d loaded(const double* from) {
  __m512d x = _mm512_loadu_pd(from);
  asm("" : "+v"(x));
  return x;
}

// The same by the bits of a pattern's heads: the weights of a feature are read as vectors and spread over the columns
// that its bits name, so that nothing depends on how many there are. Every other feature goes to a second set of sums,
// which does not wait for the first. NV vectors hold the columns.
template <int NV>
inline __attribute__((always_inline)) void expand_by_bits(Pattern::Head head, double value, const Pattern& p,
                                                          const double* w, __m512d (&sums)[NV]) {
  const bool inside = int64_t(head.start) + 8 * NV <= p.n_weights;
  for (int j = 0; j < NV; ++j) {
    const __mmask8 bits = __mmask8(head.bits >> (8 * j));
    const double* from = w + head.start + __builtin_popcount(head.bits & ((uint32_t(1) << (8 * j)) - 1));
    const __m512d row = inside ? _mm512_maskz_expand_pd(bits, loaded(from)) : _mm512_maskz_expandloadu_pd(bits, from);
    sums[j] = _mm512_fmadd_pd(_mm512_set1_pd(value), row, sums[j]);
  }
}
template <int NV, class T> inline void score_by_bits(const Row<T>& x, const Pattern& p, const double* w, double* out) {
  __m512d even[NV], odd[NV];
  for (int j = 0; j < NV; ++j) even[j] = odd[j] = _mm512_setzero_pd();
  int64_t k = 0;
  for (; k + 2 <= x.size; k += 2) {
    expand_by_bits(p.heads[x.indices[k]], x.value(k), p, w, even);
    expand_by_bits(p.heads[x.indices[k + 1]], x.value(k + 1), p, w, odd);
  }
  if (k < x.size) expand_by_bits(p.heads[x.indices[k]], x.value(k), p, w, even);
  for (int j = 0; j < NV; ++j) _mm512_storeu_pd(out + 8 * j, _mm512_add_pd(even[j], odd[j]));
}
template <class T> inline void score_by_bits(const Row<T>& x, const Pattern& p, const double* w, double* out) {
  switch ((p.width + 7) / 8) {
    case 1: return score_by_bits<1>(x, p, w, out);
    case 2: return score_by_bits<2>(x, p, w, out);
    case 3: return score_by_bits<3>(x, p, w, out);
    default: return score_by_bits<4>(x, p, w, out);
  }
}
#endif

template <class T> void score_row(const Row<T>& x, const Pattern& p, const double* w, double* scratch) {
  constexpr int L = kLanes<double>;
#if defined(__AVX512F__)
  if (p.heads && x.indices) return score_by_bits(x, p, w, scratch);
#endif
  for (int64_t c = 0; c < p.width; c += L) store(scratch + c, Vec<double>{});
  if (!p.starts) {
    const int64_t width = p.width;
    if (x.indices && !x.values)
      return add_dense_scores(
          x.size, [&](int64_t k) { return x.indices[k] * width; }, [](int64_t) { return 1.0; }, p, w, scratch);
    return add_dense_scores(
        x.size, [&](int64_t k) { return x.feature(k) * width; }, [&](int64_t k) { return x.value(k); }, p, w, scratch);
  }
  for (int64_t from = 0; from < x.size; from += Split::kSize) {
    const Split items(x, from, std::min<int64_t>(from + Split::kSize, x.size), p);
    add_dense_scores(
        items.n_dense, [&](int64_t k) { return items.dense[k].begin; }, [&](int64_t k) { return items.dense[k].value; },
        p, w, scratch);
    if (items.n_sparse) with_columns(p, [&](const auto* columns) { add_sparse_scores(items, p, columns, w, scratch); });
  }
}

template <class T>
void scores(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const double* w, T* out, int threads) {
  auto run = [&](int64_t begin, int64_t end) {
    AlignedVector<double> scratch(padded(p.width));
    score_rows(x, row + begin, end - begin, p, w, scratch.data(), [&](int64_t t, const double* theta) {
      T* target = out + (begin + t) * p.width;
      for (int64_t c = 0; c < p.width; ++c) target[c] = T(theta[c]);
    });
  };
  in_parallel(threads, threads, [&](int64_t part) { run(count * part / threads, count * (part + 1) / threads); });
}

// g[f, ·] += v μ for a dense row; mu is padded with zeros, so that running over the row's end adds zero, within [..,
// limit).
inline void add_dense(double* g, int64_t begin, int64_t limit, int64_t width, double v, const double* mu) {
  constexpr int L = kLanes<double>;
  int64_t c = 0;
  for (; c < width; c += L) {
    double* target = g + begin + c;
    if (begin + c + L <= limit)
      store(target, load(target) + v * load(mu + c));
    else
      for (int64_t i = c; i < width; ++i) g[begin + i] += v * mu[i];
  }
}

#if defined(__AVX512F__)
// x ⊗ μ for the features k .. stop of a row, by the bits of the heads: μ is packed to the columns that a feature has,
// as vectors. All sums of a feature are made before the first is stored, so that each store puts right what the one
// before wrote beyond its own columns, and the last writes back what it found there, within [.., limit).
template <int NV, class T>
inline void add_by_bits(const Row<T>& x, int64_t k, int64_t stop, const Pattern& p, int64_t limit, const double* mu,
                        double* g) {
  __m512d all[NV];
  for (int j = 0; j < NV; ++j) all[j] = _mm512_loadu_pd(mu + 8 * j);
  for (; k < stop; ++k) {
    const Pattern::Head head = p.heads[x.indices[k]];
    const double value = x.value(k);
    if (int64_t(head.start) + 8 * NV > limit) {
      double* to = g + head.start;  // rounded as below: where the limit is depends on the number of threads
      for (int c = 0; c < p.width; ++c)
        if (head.bits >> c & 1) *to = __builtin_fma(value, mu[c], *to), ++to;
      continue;
    }
    __m512d sums[NV];
    double* to[NV];
    for (int j = 0; j < NV; ++j) {
      to[j] = g + head.start + __builtin_popcount(head.bits & ((uint32_t(1) << (8 * j)) - 1));
      const __m512d packed = _mm512_maskz_compress_pd(__mmask8(head.bits >> (8 * j)), all[j]);
      sums[j] = _mm512_fmadd_pd(_mm512_set1_pd(value), packed, _mm512_loadu_pd(to[j]));
    }
    for (int j = 0; j < NV; ++j) _mm512_storeu_pd(to[j], sums[j]);
  }
}
template <class T>
inline void add_by_bits(const Row<T>& x, int64_t k, int64_t stop, const Pattern& p, int64_t limit, const double* mu,
                        double* g) {
  switch ((p.width + 7) / 8) {
    case 1: return add_by_bits<1>(x, k, stop, p, limit, mu, g);
    case 2: return add_by_bits<2>(x, k, stop, p, limit, mu, g);
    case 3: return add_by_bits<3>(x, k, stop, p, limit, mu, g);
    default: return add_by_bits<4>(x, k, stop, p, limit, mu, g);
  }
}
#endif

// How many of the row's features are below a bound: counted, since a search guesses wrong at every step.
template <class T> inline int64_t count_below(const Row<T>& x, int64_t bound) {
  if (x.size > 128) return std::lower_bound(x.indices, x.indices + x.size, bound) - x.indices;
  const int32_t limit = int32_t(bound);
  int32_t count = 0;
  for (int64_t k = 0; k < x.size; ++k) count += x.indices[k] < limit;
  return count;
}

template <class T>
void add_row(const Row<T>& x, const Pattern& p, int64_t first, int64_t last, int64_t limit, const double* mu,
             double* g) {
  int64_t k = first, stop = std::min(last, x.size);
  if (x.indices) {
    k = first > 0 ? count_below(x, first) : 0;
    stop = last < p.n_features ? count_below(x, last) : x.size;
#if defined(__AVX512F__)
    if (p.heads) return add_by_bits(x, k, stop, p, limit, mu, g);
#endif
  }
  for (int64_t from = k; from < stop; from += Split::kSize) {
    const Split items(x, from, std::min<int64_t>(from + Split::kSize, stop), p);
    for (int j = 0; j < items.n_dense; ++j)
      add_dense(g, items.dense[j].begin, limit, p.width, items.dense[j].value, mu);
    if (items.n_sparse == 0) continue;
    with_columns(p, [&](const auto* columns) {
      for (int j = 0; j < items.n_sparse; ++j) {
        const Split::Item& item = items.sparse[j];
        for (int64_t i = item.begin; i < item.end; ++i) g[i] += item.value * mu[columns[i]];
      }
    });
  }
}

template <class T>
std::vector<int64_t> feature_ranges(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, int threads) {
  std::vector<int64_t> bounds(threads + 1, 0);
  bounds[threads] = p.n_features;
  if (!x.indptr) {
    for (int i = 1; i < threads; ++i) bounds[i] = p.n_features * i / threads;
    return bounds;
  }
  std::vector<int32_t> sample;
  const int64_t begin = x.indptr[row], total = x.indptr[row + count] - begin,
                stride = std::max<int64_t>(1, total / 256);
  uint64_t jitter = 1;  // steps vary, so that rows of one length are not always sampled at the same place
  for (int64_t i = 0; threads > 1 && i < total; i += 1 + int64_t((jitter >> 33) % uint64_t(2 * stride))) {
    sample.push_back(x.indices[begin + i]);
    jitter = jitter * 6364136223846793005u + 1442695040888963407u;
  }
  std::sort(sample.begin(), sample.end());
  for (int i = 1; i < threads; ++i)
    bounds[i] = sample.empty() ? 0 : sample[sample.size() * size_t(i) / size_t(threads)];
  return bounds;
}

template <class T>
void backward_rows(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const T* mu, int64_t stride,
                   double* out, const std::vector<int64_t>& bounds, int threads) {
  in_parallel(int64_t(bounds.size()) - 1, threads, [&](int64_t part) {
    const int64_t first = bounds[part], last = bounds[part + 1],
                  limit = p.starts ? int64_t(p.starts[last]) : last * p.width;
    if constexpr (sizeof(T) == sizeof(double)) {
      if (stride == padded(p.width))
        return add_rows(x, row, count, p, first, last, limit, out, [&](int64_t t) { return mu + t * stride; });
    }
    AlignedVector<double> wide(padded(p.width), 0.0);
    add_rows(x, row, count, p, first, last, limit, out, [&](int64_t t) {
      for (int64_t c = 0; c < p.width; ++c) wide[c] = double(mu[t * stride + c]);
      return wide.data();
    });
  });
}

template <class T>
void backward(const Rows<T>& x, int64_t row, int64_t count, const Pattern& p, const T* mu, double* out, int threads) {
  backward_rows(x, row, count, p, mu, p.width, out, feature_ranges(x, row, count, p, threads), threads);
}

#define MERCER_INSTANCES(T)                                                                                    \
  template void score_row<T>(const Row<T>&, const Pattern&, const double*, double*);                           \
  template void add_row<T>(const Row<T>&, const Pattern&, int64_t, int64_t, int64_t, const double*, double*);  \
  template void scores<T>(const Rows<T>&, int64_t, int64_t, const Pattern&, const double*, T*, int);           \
  template std::vector<int64_t> feature_ranges<T>(const Rows<T>&, int64_t, int64_t, const Pattern&, int);      \
  template void backward_rows<T>(const Rows<T>&, int64_t, int64_t, const Pattern&, const T*, int64_t, double*, \
                                 const std::vector<int64_t>&, int);
MERCER_INSTANCES(double)
MERCER_INSTANCES(float)
#undef MERCER_INSTANCES

// 1 - p is p of the other label, which is exact where p is close to 1; log(1 + e) has back what 1 + e rounds away.
double logistic_slopes(const double* scores, const int32_t* labels, const double* weights, double weight, int64_t n,
                       double* probabilities, double* slopes) {
  constexpr int L = kLanes<double>;
  Vec<double> total{};
  const Vec<double> zero{}, one = splat(1.0);
  for (int64_t i = 0; i < n; i += L) {
    const int count = int(std::min<int64_t>(L, n - i));
    Vec<double> second, w = splat(weight);
    for (int k = 0; k < L; ++k) second[k] = k < count ? double(labels[i + k]) : 0.0;
    const Vec<double> s = count == L ? load(scores + i) : load_some(scores + i, count, 0.0);
    if (weights) w = count == L ? load(weights + i) : load_some(weights + i, count, 0.0);
    if (count < L) w = first_lanes<double>(count) ? w : zero;
    const Vec<double> e = vexp(s > zero ? -s : s), both = one + e, inverse = one / both, rest = e * inverse;
    const Vec<double> p = s > zero ? inverse : rest, q = s > zero ? rest : inverse;
    const Vec<double> against = second > zero ? -s : s;
    total += w * (vlog(both) + (e - (both - one)) * inverse + vmax<double>(against, zero));
    const Vec<double> slope = w * (second > zero ? -q : p);
    if (count == L) {
      store(probabilities + i, p);
      store(slopes + i, slope);
    } else {
      for (int k = 0; k < count; ++k) probabilities[i + k] = p[k], slopes[i + k] = slope[k];
    }
  }
  return sum<double>(total);
}

template <> const LogisticLoops& table<LogisticLoops>() {
  static constexpr LogisticLoops loops = {.slopes = logistic_slopes};
  return loops;
}

template <> const LinearLoops<double>& table<LinearLoops<double>>() {
  static constexpr LinearLoops<double> loops = {
      .scores = scores<double>,
      .backward = backward<double>,
  };
  return loops;
}

template <> const LinearLoops<float>& table<LinearLoops<float>>() {
  static constexpr LinearLoops<float> loops = {
      .scores = scores<float>,
      .backward = backward<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
