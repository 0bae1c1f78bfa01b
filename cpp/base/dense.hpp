// Dense rows and symmetric matrices. All sums are the same for vectors of any width.
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

struct DenseLoops {
  static constexpr const char* concern = "dense";
  // out += change x.
  void (*add_row)(const double* x, double change, double* out, int64_t n);
  double (*inner_product)(const double* a, const double* b, int64_t n);
  // H = U'U in its upper half; the last pivot is at least `least`.
  void (*factorise)(double* H, int64_t m, double least);
};
MERCER_TABLE(DenseLoops)

inline void add_row(const double* x, double change, double* out, int64_t n) {
  loops<DenseLoops>().add_row(x, change, out, n);
}
inline double inner_product(const double* a, const double* b, int64_t n) {
  return loops<DenseLoops>().inner_product(a, b, n);
}
inline void factorise(double* H, int64_t m, double least) { loops<DenseLoops>().factorise(H, m, least); }

// out += sum over k of c[k] x_k for four rows x_k with a stride, in the instructions of the caller.
[[gnu::always_inline]] inline void add_four(const double* x, int64_t stride, const double* c, double* out, int64_t n) {
  const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
  const double *x0 = x, *x1 = x + stride, *x2 = x + 2 * stride, *x3 = x + 3 * stride;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) out[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j]);
}

// U'U x = b, for b in x.
void solve_factorised(const double* U, int64_t m, double* x);

}  // namespace mercer
