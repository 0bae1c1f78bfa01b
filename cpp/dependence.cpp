// Kernel tests: sums over permutations of Gram matrices.
//
//   T(π) = Σ_ij K_ij L_π(i)π(j) = Σ_i K_ii L_π(i)π(i) + 2 Σ_{j<i} K_ij L_π(i)π(j)      K, L symmetric
//
// n²/2 products a permutation. A row of L is 8n bytes and stays in the first-level cache while it is gathered from; what costs is
// to fetch the rows, in an order that no prefetcher can guess, so the next row is asked for while this one is summed.
#include "bindings.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <vector>

namespace mercer {
namespace {

// K_i0 .. K_i(m-1) against the entries of a row of L that the permutation names; `next` is fetched meanwhile. Four sums, always added
// in the same order.
double gathered(const double* k, const double* l, const int32_t* p, int64_t m, const double* next, int64_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const int64_t blocks = m / 4;
  const int64_t lines = (n + 7) / 8, each = blocks ? (lines + blocks - 1) / blocks : 0;
  int64_t line = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t j = 4 * b;
    for (int64_t a = 0; a < each && line < lines; ++a, ++line) __builtin_prefetch(next + 8 * line);
    s0 += k[j] * l[p[j]];
    s1 += k[j + 1] * l[p[j + 1]];
    s2 += k[j + 2] * l[p[j + 2]];
    s3 += k[j + 3] * l[p[j + 3]];
  }
  for (int64_t j = 4 * blocks; j < m; ++j) s0 += k[j] * l[p[j]];
  return (s0 + s1) + (s2 + s3);
}

double permuted_product(const double* K, const double* L, const int32_t* p, int64_t n) {
  double diagonal = 0, below = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double* row = L + int64_t(p[i]) * n;
    diagonal += K[i * n + i] * row[p[i]];
    below += gathered(K + i * n, row, p, i, L + int64_t(p[i + 1 < n ? i + 1 : i]) * n, n);
  }
  return diagonal + 2 * below;
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
  in_parallel(count, used, [&](int64_t b) { result[b] = permuted_product(k, l, p + b * n, n); });
}

}  // namespace

void bind_dependence(nb::module_& m) {
  m.def("permuted_products", &permuted_products, "K"_a, "L"_a, "permutations"_a, "out"_a, "threads"_a = 1);
}

}  // namespace mercer
