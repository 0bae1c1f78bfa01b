// The dual of the joint machine: max over 0 <= a_i <= C_i of sum_i a_i - 1/2 a'Ga.
//
// The sum of a is free, so single coordinates move: that with the largest slope^2 / G_ii goes to its best value. A step
// costs one row of G, in double or single precision; slopes are summed up in double. A coordinate with G_ii = 0 gains by every step up and goes to C_i.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/arrays.hpp"
#include "base/signals.hpp"
#include "solvers/joint_loops.hpp"

namespace mercer {
namespace {

// Slopes are summed up anew after so many steps.
constexpr int64_t kAnew = 1 << 16;

Steepest moved(const JointLoops& step, BoxAscent at, const double* row, double change) {
  return step.move(at, row, change);
}
Steepest moved(const JointLoops& step, BoxAscent at, const float* row, double change) {
  return step.move_single(at, row, change);
}

// As all_finite, row by row, so that sums need not wait for each other.
template <class Number> bool finite_rows(const Number* G, int64_t n) {
  std::vector<Number> sums(size_t(n), Number(0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) sums[size_t(j)] += G[i * n + j] - G[i * n + j];
  return all_finite(sums.data(), n);
}

template <class Number>
nb::tuple joint_dual(In2<Number> G, In1<double> C, Out1<double> alpha, double tol, int64_t max_iter) {
  const int64_t n = int64_t(G.shape(0));
  require(int64_t(G.shape(1)) == n && int64_t(alpha.shape(0)) == n && int64_t(C.shape(0)) == n && n >= 1,
          "G must be square, with a coefficient and a bound for each row");
  const double* most = C.data();
  for (int64_t i = 0; i < n; ++i) require(most[i] > 0 && std::isfinite(most[i]), "C must be positive");
  require(tol > 0 && std::isfinite(tol), "tol must be positive");
  require(max_iter >= 1, "max_iter must be at least 1");
  double* a = alpha.data();
  for (int64_t i = 0; i < n; ++i) require(a[i] >= 0 && a[i] <= most[i], "alpha must lie between 0 and C");
  require(finite_rows(G.data(), n), "the product of the kernel matrices is not finite");
  const size_t size = size_t(n);
  std::vector<double> r(size), grows(size), falls(size), inverse(size), diagonal(size);
  double largest = 0;
  int64_t steps = 0;
  bool converged = false;
  {
    nb::gil_scoped_release unlocked;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, diagonal[size_t(i)] = double(G.data()[i * n + i]));
    const double flat = largest > 0 ? 1e-12 * largest : 1.0;
    for (int64_t i = 0; i < n; ++i) inverse[size_t(i)] = 1.0 / std::max(diagonal[size_t(i)], flat);
    const auto where = [&](int64_t i) {
      grows[size_t(i)] = a[i] < most[i];
      falls[size_t(i)] = a[i] > 0;
    };
    for (int64_t i = 0; i < n; ++i) where(i);
    const JointLoops& step = loops<JointLoops>();
    const BoxAscent at{r.data(), grows.data(), falls.data(), inverse.data(), n};
    const auto anew = [&] {
      std::fill(r.begin(), r.end(), 1.0);
      for (int64_t i = 0; i < n; ++i)
        if (a[i] > 0) moved(step, at, G.data() + i * n, a[i]);
      return moved(step, at, G.data(), 0.0);
    };
    Steepest found = anew();
    for (bool summed = true;;) {
      if (found.violation <= tol) {
        if (summed) {
          converged = true;
          break;
        }
        found = anew();  // what rounding has left does not decide
        summed = true;
        continue;
      }
      if (steps >= max_iter) break;
      const int64_t i = step.best(at, found.block);
      const double before = a[i];
      a[i] = std::clamp(before + r[size_t(i)] * inverse[size_t(i)], 0.0, most[i]);
      where(i);
      found = moved(step, at, G.data() + i * n, a[i] - before);
      summed = false;
      if (++steps % 1024 == 0) check_signals();
      if (steps % kAnew == 0) found = anew();
    }
  }
  return nb::make_tuple(to_numpy(std::move(r)), steps, converged);
}

}  // namespace

void bind_joint_dual(nb::module_& m) {
  const char* about =
      "max sum(a) - 1/2 a'Ga over 0 <= a_i <= C_i from a start, to slopes of tol: (slopes, steps, converged).";
  m.def("joint_dual", &joint_dual<double>, "G"_a, "C"_a, "alpha"_a, "tol"_a, "max_iter"_a, about);
  m.def("joint_dual", &joint_dual<float>, "G"_a, "C"_a, "alpha"_a, "tol"_a, "max_iter"_a, about);
}

}  // namespace mercer
