// Functions of all pairs of vectors: see kernels/pairwise.hpp. Compiled once for each instruction set MERCER_ARCH.
//
// As in a product of matrices: B is packed into panels of a few vectors of columns, A into tiles of a few rows, and a
// tile times a panel stays in registers while the coordinates go by. The finish is applied while the sums are still in
// the cache. Coordinates are added in stretches of kDepth, so that rounding grows with the length of a stretch, not
// with d; the order does not depend on the threads nor on how the rows are cut into blocks.
#include "kernels/pairwise.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace mercer::MERCER_ARCH {
namespace {

constexpr int kVectors = 3;  // of columns in a panel
#if defined(__AVX512F__)
constexpr int kTile = 8;  // rows in a tile: 24 of 32 registers hold sums
#else
constexpr int kTile = 4;  // 12 of 16
#endif
constexpr int kRows = 96;        // rows that one piece of work takes: whole tiles
constexpr int64_t kDepth = 128;  // coordinates: a tile and a panel of so many fit into the first cache
template <class T> constexpr int kPanel = kVectors * kLanes<T>;

// ---------------------------------------------------------------------------------------------- terms

template <class T> inline Vec<T> smaller(Vec<T> a, Vec<T> b) { return a < b ? a : b; }
template <class T> inline Vec<T> absolute(Vec<T> a) { return vmax<T>(a, -a); }

struct ProductTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) { return s + x * z; }
};
struct SquaredTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) {
    const Vec<T> e = x - z;
    return s + e * e;
  }
};
struct AbsoluteTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) { return s + absolute<T>(x - z); }
};
struct MinimumTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) { return s + smaller<T>(x, z); }
};
// The smallest normal number stands in for a sum of 0: the quotient is then 0.
struct ChiSquaredTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) {
    const Vec<T> e = x - z;
    return s + e * (e / vmax<T>(x + z, splat(std::numeric_limits<T>::min())));
  }
};
struct HarmonicTerm {
  template <class T> static Vec<T> add(Vec<T> s, Vec<T> x, Vec<T> z) {
    return s + (x + x) * (z / vmax<T>(x + z, splat(std::numeric_limits<T>::min())));
  }
};

// sums[kTile][panel] += Σ over `depth` coordinates; a is packed by coordinate, kTile rows side by side.
template <class T, class Term> inline void tile_sums(const T* a, const T* b, int64_t depth, T* sums) {
  constexpr int L = kLanes<T>;
  Vec<T> s[kTile][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vec<T> z[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) z[j] = load(b + k * kPanel<T> + j * L);
#pragma GCC unroll 8
    for (int i = 0; i < kTile; ++i) {
      const Vec<T> x = splat(a[k * kTile + i]);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) s[i][j] = Term::template add<T>(s[i][j], x, z[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTile; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      T* at = sums + i * kPanel<T> + j * L;
      store(at, load(at) + s[i][j]);
    }
}

// ---------------------------------------------------------------------------------------------- finishes

template <class T> inline Vec<T> roots(Vec<T> v) {
  for (int i = 0; i < kLanes<T>; ++i) v[i] = std::sqrt(v[i]);
  return v;
}
template <class T> inline Vec<T> powers(Vec<T> base, int64_t exponent) {
  Vec<T> result = splat(T(1));
  for (; exponent; exponent >>= 1, base = base * base)
    if (exponent & 1) result = result * base;
  return result;
}

// One row of sums of a panel, in place.
template <class T> inline void finish_row(const PairRule& rule, T* s, T a_norm, const T* b_norms) {
  constexpr int L = kLanes<T>;
  const T gamma = T(rule.gamma), coef = T(rule.coef);
  for (int j = 0; j < kPanel<T>; j += L) {
    Vec<T> v = load(s + j);
    switch (rule.finish) {
      case PairFinish::none: return;
      case PairFinish::gaussian: v = vexp(-gamma * vmax<T>((a_norm + load(b_norms + j)) - (v + v), Vec<T>{})); break;
      case PairFinish::decay: v = vexp(-gamma * v); break;
      case PairFinish::matern_1: v = vexp(-gamma * roots<T>(v)); break;
      case PairFinish::matern_3: {
        const Vec<T> r = gamma * roots<T>(v);
        v = (T(1) + r) * vexp(-r);
        break;
      }
      case PairFinish::matern_5: {
        const Vec<T> r = gamma * roots<T>(v);
        v = (T(1) + r + r * r * T(1.0 / 3.0)) * vexp(-r);
        break;
      }
      case PairFinish::power: v = powers<T>(gamma * v + coef, rule.degree); break;
    }
    store(s + j, v);
  }
}

// ---------------------------------------------------------------------------------------------- functions of two rows

// e_degree of the values v_k: e_q += e_{q-1} v_k, coordinate by coordinate.
template <class T>
void subset_sums(const PairRule& rule, const T* x, const T* b, int64_t d, T* out, AlignedVector<T>& memory) {
  constexpr int L = kLanes<T>;
  memory.resize(size_t(rule.degree + 1) * L);
  const T gamma = T(rule.inner_gamma);
  for (int j = 0; j < kPanel<T>; j += L) {
    std::fill(memory.begin(), memory.end(), T(0));
    store(memory.data(), splat(T(1)));
    for (int64_t k = 0; k < d; ++k) {
      const Vec<T> z = load(b + k * kPanel<T> + j), e = x[k] - z;
      const Vec<T> v = rule.inner ? vexp(-gamma * e * e) : x[k] * z;
      for (int64_t q = std::min(k + 1, rule.degree); q >= 1; --q) {
        T* at = memory.data() + q * L;
        store(at, load(at) + v * load(at - L));
      }
    }
    store(out + j, load(memory.data() + rule.degree * L));
  }
}

template <class T>
void group_powers(const PairRule& rule, const T* x, const T* b, int64_t d, T* out, AlignedVector<T>& memory) {
  constexpr int L = kLanes<T>;
  memory.resize(size_t(d) * L);
  for (int j = 0; j < kPanel<T>; j += L) {
    for (int64_t k = 0; k < d; ++k) store(memory.data() + k * L, x[k] * load(b + k * kPanel<T> + j));
    Vec<T> total{};
    for (int64_t g = 0; g < rule.n_groups; ++g) {
      Vec<T> inside{};
      for (int64_t t = rule.offsets[g]; t < rule.offsets[g + 1]; ++t)
        inside += T(rule.values[t]) * load(memory.data() + rule.indices[t] * L);
      total += T(rule.weights[g]) * powers<T>(inside, rule.inner);
    }
    store(out + j, total);
  }
}

template <class T> void spline_products(const PairRule& rule, const T* x, const T* b, int64_t d, T* out) {
  const T scale = T(rule.inner_gamma), end = T(rule.n_pieces);
  for (int j = 0; j < kPanel<T>; ++j) {
    T product = 1;
    for (int64_t k = 0; k < d && product != 0; ++k) {
      const T t = std::abs(x[k] - b[k * kPanel<T> + j]) * scale;
      if (!(t < end)) {
        product = 0;
        break;
      }
      const int64_t piece = std::min(int64_t(t), rule.n_pieces - 1);
      const double* c = rule.pieces + piece * (rule.order + 1);
      const T v = T(piece + 1) - t;
      T value = T(c[0]);
      for (int64_t q = 1; q <= rule.order; ++q) value = value * v + T(c[q]);
      product *= value;
    }
    out[j] = product;
  }
}

// ---------------------------------------------------------------------------------------------- driving

// Panels of B: column j of panel p at [p][k][j]; columns beyond the last are 0.
template <class T> void pack_panel(const PairTask<T>& t, int64_t panel, T* out) {
  for (int64_t j = 0; j < kPanel<T>; ++j) {
    const int64_t row = panel * kPanel<T> + j;
    if (row < t.m)
      for (int64_t k = 0; k < t.d; ++k) out[k * kPanel<T> + j] = t.B[row * t.d + k];
    else
      for (int64_t k = 0; k < t.d; ++k) out[k * kPanel<T> + j] = 0;
  }
}

// Tiles of rows first .. first + rows of A: [tile][k][row], rows beyond the last are 0.
template <class T> void pack_rows(const PairTask<T>& t, int64_t first, int64_t rows, T* out) {
  const int64_t tiles = (rows + kTile - 1) / kTile;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t i = 0; i < kTile; ++i) {
      const int64_t row = tile * kTile + i;
      T* at = out + tile * kTile * t.d + i;
      if (row < rows)
        for (int64_t k = 0; k < t.d; ++k) at[k * kTile] = t.A[(first + row) * t.d + k];
      else
        for (int64_t k = 0; k < t.d; ++k) at[k * kTile] = 0;
    }
}

template <class T, class Term>
void block_sums(const PairTask<T>& t, const T* packed, const T* panel, int64_t rows, T* sums) {
  const int64_t tiles = (rows + kTile - 1) / kTile;
  std::fill(sums, sums + tiles * kTile * kPanel<T>, T(0));
  for (int64_t k = 0; k < t.d; k += kDepth) {
    const int64_t depth = std::min(kDepth, t.d - k);
    for (int64_t tile = 0; tile < tiles; ++tile)
      tile_sums<T, Term>(packed + (tile * t.d + k) * kTile, panel + k * kPanel<T>, depth,
                         sums + tile * kTile * kPanel<T>);
  }
}

// The rows of a block with one panel, before the finish.
template <class T>
void block_values(const PairTask<T>& t, const PairRule& rule, int64_t first, int64_t rows, const T* packed,
                  const T* panel, T* sums, AlignedVector<T>& memory) {
  switch (rule.term) {
    case PairTerm::product: return block_sums<T, ProductTerm>(t, packed, panel, rows, sums);
    case PairTerm::squared: return block_sums<T, SquaredTerm>(t, packed, panel, rows, sums);
    case PairTerm::absolute: return block_sums<T, AbsoluteTerm>(t, packed, panel, rows, sums);
    case PairTerm::minimum: return block_sums<T, MinimumTerm>(t, packed, panel, rows, sums);
    case PairTerm::chi_squared: return block_sums<T, ChiSquaredTerm>(t, packed, panel, rows, sums);
    case PairTerm::harmonic: return block_sums<T, HarmonicTerm>(t, packed, panel, rows, sums);
    default: break;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T* x = t.A + (first + i) * t.d;
    T* out = sums + i * kPanel<T>;
    if (rule.term == PairTerm::subsets)
      subset_sums(rule, x, panel, t.d, out, memory);
    else if (rule.term == PairTerm::groups)
      group_powers(rule, x, panel, t.d, out, memory);
    else
      spline_products(rule, x, panel, t.d, out);
  }
}

template <class T> void write_block(const PairTask<T>& t, int64_t first, int64_t rows, int64_t column, const T* sums) {
  const int64_t width = std::min<int64_t>(kPanel<T>, t.m - column);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = t.row0 + first + i;
    const int64_t count = t.mirror ? std::min(width, at + 1 - column) : width;
    if (count > 0) std::copy(sums + i * kPanel<T>, sums + i * kPanel<T> + count, t.out + at * t.stride + column);
  }
  if (!t.mirror) return;
  for (int64_t j = 0; j < width; ++j) {
    T* row = t.out + (column + j) * t.stride + t.row0 + first;
    for (int64_t i = std::max<int64_t>(0, column + j - t.row0 - first); i < rows; ++i) row[i] = sums[i * kPanel<T> + j];
  }
}

template <class T> void pairs(const PairTask<T>& t, const PairRule& rule, int threads) {
  if (t.n == 0 || t.m == 0) return;
  const int64_t panels = (t.m + kPanel<T> - 1) / kPanel<T>, panel_size = t.d * kPanel<T>;
  AlignedVector<T> B(size_t(panels * panel_size)), b_norms;
  in_parallel(panels, threads, [&](int64_t p) { pack_panel(t, p, B.data() + p * panel_size); });
  if (t.b_norms) {
    b_norms.assign(size_t(panels) * kPanel<T>, T(0));
    std::copy(t.b_norms, t.b_norms + t.m, b_norms.data());
  }
  in_parallel((t.n + kRows - 1) / kRows, threads, [&](int64_t part) {
    const int64_t first = part * kRows, rows = std::min<int64_t>(kRows, t.n - first);
    AlignedVector<T> packed(size_t(kRows) * t.d), sums(size_t(kRows) * kPanel<T>), memory;
    if (int(rule.term) < int(PairTerm::subsets)) pack_rows(t, first, rows, packed.data());
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t column = p * kPanel<T>;
      if (t.mirror && column > t.row0 + first + rows - 1) break;
      block_values(t, rule, first, rows, packed.data(), B.data() + p * panel_size, sums.data(), memory);
      for (int64_t i = 0; i < rows; ++i)
        finish_row(rule, sums.data() + i * kPanel<T>, t.a_norms ? t.a_norms[first + i] : T(0),
                   t.b_norms ? b_norms.data() + column : nullptr);
      write_block(t, first, rows, column, sums.data());
    }
  });
}

}  // namespace

template <> const PairLoops<float>& table<PairLoops<float>>() {
  static constexpr PairLoops<float> loops = {.pairs = pairs<float>};
  return loops;
}
template <> const PairLoops<double>& table<PairLoops<double>>() {
  static constexpr PairLoops<double> loops = {.pairs = pairs<double>};
  return loops;
}

}  // namespace mercer::MERCER_ARCH
