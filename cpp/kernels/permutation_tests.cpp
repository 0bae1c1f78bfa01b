// Kernel tests: sums over permutations of Gram matrices.
//
//   T(π) = Σ_ij K_ij L_π(i)π(j) = Σ_i K_ii L_π(i)π(i) + 2 Σ_{j<i} K_ij L_π(i)π(j)      K, L symmetric
//
// n²/2 products a permutation, and what costs is to fetch the rows. So a block of rows of L that fits the second-level
// cache serves many permutations, one after the other, before the next block: entries are gathered from the cache, and
// only rows of K, up to their diagonals, stream from memory.
#include "base/arrays.hpp"
#include "base/parallel.hpp"

#include <algorithm>
#include <vector>

namespace mercer {
namespace {

constexpr int64_t TOGETHER = 64;          // permutations that share a block of rows
constexpr int64_t BLOCK_BYTES = 1 << 19;  // of rows of L: half of a usual second-level cache

// K_i0 .. K_i(m-1) against the entries of a row of L that the permutation names. Four sums, always added in the same
// order.
double gathered(const double* k, const double* l, const int32_t* p, int64_t m) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  int64_t j = 0;
  for (; j + 4 <= m; j += 4) {
    s0 += k[j] * l[p[j]];
    s1 += k[j + 1] * l[p[j + 1]];
    s2 += k[j + 2] * l[p[j + 2]];
    s3 += k[j + 3] * l[p[j + 3]];
  }
  for (; j < m; ++j) s0 += k[j] * l[p[j]];
  return (s0 + s1) + (s2 + s3);
}

// T of some permutations. The sum of each runs over the rows of L in order, whatever the others are.
void products_together(const double* K, const double* L, const int32_t* p, int64_t count, int64_t n, double* out) {
  std::vector<int32_t> inverse(static_cast<size_t>(count * n));
  for (int64_t b = 0; b < count; ++b)
    for (int64_t i = 0; i < n; ++i) inverse[size_t(b * n + p[b * n + i])] = int32_t(i);
  std::fill(out, out + count, 0.0);
  const int64_t rows = std::max<int64_t>(1, BLOCK_BYTES / (8 * std::max<int64_t>(1, n)));
  for (int64_t start = 0; start < n; start += rows) {
    const int64_t stop = std::min(n, start + rows);
    for (int64_t b = 0; b < count; ++b) {
      const int32_t *order = p + b * n, *back = inverse.data() + b * n;
      double total = 0;
      for (int64_t a = start; a < stop; ++a) {
        const int64_t i = back[a];
        const double *k = K + i * n, *l = L + a * n;
        if (a + 1 < stop) __builtin_prefetch(K + int64_t(back[a + 1]) * n);
        total += k[i] * l[a] + 2 * gathered(k, l, order, i);
      }
      out[b] += total;
    }
  }
}

void permuted_products(In2<double> K, In2<double> L, In2<int32_t> permutations, Out1<double> out, int threads) {
  const int64_t n = int64_t(K.shape(0)), count = int64_t(permutations.shape(0));
  require(int64_t(K.shape(1)) == n, "K must be a square matrix");
  require(int64_t(L.shape(0)) == n && int64_t(L.shape(1)) == n, "K and L must have one shape");
  require(int64_t(permutations.shape(1)) == n, "permutations must have a column for each row of K");
  require(int64_t(out.shape(0)) == count, "out must have a place for each permutation");
  require(all_finite(K.data(), n * n) && all_finite(L.data(), n * n), "K and L must be finite");
  const int used = thread_count(threads);
  const double *k = K.data(), *l = L.data();
  const int32_t* p = permutations.data();
  std::vector<uint8_t> seen(static_cast<size_t>(n));
  for (int64_t b = 0; b < count; ++b) {
    std::fill(seen.begin(), seen.end(), uint8_t(0));
    for (int64_t i = 0; i < n; ++i) {
      const int32_t at = p[b * n + i];
      require(at >= 0 && at < n && !seen[size_t(at)], "every row of permutations must hold 0 .. n - 1 once each");
      seen[size_t(at)] = 1;
    }
  }
  nb::gil_scoped_release release;
  double* result = out.data();
  in_parallel((count + TOGETHER - 1) / TOGETHER, used, [&](int64_t part) {
    const int64_t first = part * TOGETHER;
    products_together(k, l, p + first * n, std::min(TOGETHER, count - first), n, result + first);
  });
}

}  // namespace

void bind_dependence(nb::module_& m) {
  m.def("permuted_products", &permuted_products, "K"_a, "L"_a, "permutations"_a, "out"_a, "threads"_a = 1);
}

}  // namespace mercer
