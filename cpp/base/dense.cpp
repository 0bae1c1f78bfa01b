// Systems over factors of dense matrices.
#include "base/dense.hpp"

namespace mercer {

void solve_factorised(const double* U, int64_t m, double* x) {
  for (int64_t r = 0; r < m; ++r) {  // U' z = b, then U x = z
    x[r] /= U[r * m + r];
    add_row(U + r * m + r + 1, -x[r], x + r + 1, m - r - 1);
  }
  for (int64_t r = m; r-- > 0;) x[r] = (x[r] - inner_product(U + r * m + r + 1, x + r + 1, m - r - 1)) / U[r * m + r];
}

}  // namespace mercer
