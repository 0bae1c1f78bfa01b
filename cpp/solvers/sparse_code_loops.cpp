// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "solvers/sparse_code_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace mercer::MERCER_ARCH {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBlock = 512;

void combine_rows(const double* start, const double* const* rows, const double* c, int64_t k, double scale, double* out,
                  int64_t n) {
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t size = std::min(kBlock, n - first);
    double sum[kBlock];
    std::memcpy(sum, start + first, size_t(size) * sizeof(double));
    int64_t m = 0;
    for (; m + 8 <= k; m += 8) {
      const double c0 = c[m], c1 = c[m + 1], c2 = c[m + 2], c3 = c[m + 3];
      const double c4 = c[m + 4], c5 = c[m + 5], c6 = c[m + 6], c7 = c[m + 7];
      const double *x0 = rows[m] + first, *x1 = rows[m + 1] + first, *x2 = rows[m + 2] + first,
                   *x3 = rows[m + 3] + first, *x4 = rows[m + 4] + first, *x5 = rows[m + 5] + first,
                   *x6 = rows[m + 6] + first, *x7 = rows[m + 7] + first;
#pragma omp simd
      for (int64_t j = 0; j < size; ++j)
        sum[j] -= ((c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])) +
                  ((c4 * x4[j] + c5 * x5[j]) + (c6 * x6[j] + c7 * x7[j]));
    }
    for (; m + 4 <= k; m += 4) {
      const double c0 = c[m], c1 = c[m + 1], c2 = c[m + 2], c3 = c[m + 3];
      const double *x0 = rows[m] + first, *x1 = rows[m + 1] + first, *x2 = rows[m + 2] + first,
                   *x3 = rows[m + 3] + first;
#pragma omp simd
      for (int64_t j = 0; j < size; ++j) sum[j] -= (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j]);
    }
    for (; m < k; ++m) {
      const double c0 = c[m];
      const double* x0 = rows[m] + first;
#pragma omp simd
      for (int64_t j = 0; j < size; ++j) sum[j] -= c0 * x0[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < size; ++j) out[first + j] = sum[j] * scale;
  }
}

double update_correlations(double* alpha, const double* q, double c, const double* weight, double* score, int64_t n) {
  double best = 0.0;
#pragma omp simd reduction(max : best)
  for (int64_t j = 0; j < n; ++j) {
    const double a = alpha[j] - c * q[j], s = std::fabs(a) * weight[j];
    alpha[j] = a;
    score[j] = s;
    best = s > best ? s : best;
  }
  return best;
}

double update_decreases(double* alpha, const double* q, double c, double* left, const double* least, double* score,
                        int64_t n) {
  double best = 0.0;
#pragma omp simd reduction(max : best)
  for (int64_t j = 0; j < n; ++j) {
    const double a = alpha[j] - c * q[j], h = left[j] - q[j] * q[j];
    const double s = h > least[j] ? a * a / h : 0.0;
    alpha[j] = a;
    left[j] = h;
    score[j] = s;
    best = s > best ? s : best;
  }
  return best;
}

void move_along(double* c, const double* direction, double step, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) c[j] -= step * direction[j];
}

void rotate(const double* a, double* b, double c, double s, double* out, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const double x = a[j], y = b[j];
    out[j] = c * x + s * y;
    b[j] = c * y - s * x;
  }
}

double join_slack(const double* c, const double* direction, const double* barred, double lambda, double step,
                  double other, int64_t n) {
  double least = kInfinity;
#pragma omp simd reduction(min : least)
  for (int64_t j = 0; j < n; ++j) {
    const double up = lambda - c[j], down = lambda + c[j];
    const double a = (up > 0 ? up : 0.0) - step * (1.0 - direction[j]);
    const double b = (down > 0 ? down : 0.0) - step * (1.0 + direction[j]) + other;
    const double s = (a < b ? a : b) + barred[j];
    least = s < least ? s : least;
  }
  return least;
}

}  // namespace

template <> const SparseCodeLoops& table<SparseCodeLoops>() {
  static constexpr SparseCodeLoops loops = {
      .combine_rows = combine_rows,
      .update_correlations = update_correlations,
      .update_decreases = update_decreases,
      .move_along = move_along,
      .rotate = rotate,
      .join_slack = join_slack,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
