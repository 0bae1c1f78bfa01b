// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include <algorithm>
#include <cmath>

#include "base/dense.hpp"

namespace mercer::MERCER_ARCH {

namespace {

void add_row(const double* x, double change, double* out, int64_t n) {
  for (int64_t j = 0; j < n; ++j) out[j] += change * x[j];
}

// Sixteen sums, so that the additions need not wait for each other and are the same for vectors of any width.
double inner_product(const double* a, const double* b, int64_t n) {
  constexpr int kSums = 16;
  double sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= n; j += kSums)
    for (int k = 0; k < kSums; ++k) sums[k] += a[j + k] * b[j + k];
  for (int k = 0; j < n; ++j, ++k) sums[k] += a[j] * b[j];
  for (int half = kSums / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

// Four rows of U at a time.
void factorise(double* H, int64_t m, double least) {
  for (int64_t first = 0; first < m; first += 4) {
    const int64_t end = std::min(first + 4, m);
    for (int64_t r = first; r < end; ++r) {
      double* row = H + r * m;
      for (int64_t k = first; k < r; ++k) {
        const double c = H[k * m + r];
        for (int64_t j = r; j < m; ++j) row[j] -= c * H[k * m + j];
      }
      const double pivot = std::sqrt(std::max(row[r], r == m - 1 ? least : 1e-300));
      row[r] = pivot;
      for (int64_t j = r + 1; j < m; ++j) row[j] /= pivot;
    }
    for (int64_t r = end; r < m; ++r) {
      const double* above = H + first * m + r;
      const double c[4] = {-above[0], -above[m], -above[2 * m], -above[3 * m]};
      add_four(above, m, c, H + r * m + r, m - r);
    }
  }
}

}  // namespace

template <> const DenseLoops& table<DenseLoops>() {
  static constexpr DenseLoops loops = {
      .add_row = add_row,
      .inner_product = inner_product,
      .factorise = factorise,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
