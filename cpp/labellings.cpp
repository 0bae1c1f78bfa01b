// Labellings of bags for the convex machine of proportions (spec 004 II-16), and its quadratic programs without a bias.
//
//   labellings   max_y Σ_i a_i s_i y_i   over y_i = ±1 with least_k … most_k positives among the free instances of each bag
//   programs     max_a Σ_i a_i − ½ aᵀQa  over 0 ≤ a_i ≤ upper_i,   Q given, or Q = UUᵀ by its rows
//
// A program stops when upper and lower bounds of its value meet: with g = 1 − Qa, the gap is Σ_i upper_i max(0, g_i) − a_i g_i.
#include "bindings.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mercer {
namespace {

// ---------------------------------------------------------------------------------------------- labellings

struct Bagged {
  const double* weight;    // a
  const int64_t* offsets;  // of bags
  const int64_t *least, *most;
  const int8_t* known;  // +1, -1, or 0 where free
  int64_t n_bags, n;
};

// One labelling. Instances with a_i = 0 do not count for the value: they follow their scores, as far as the bag has room.
void label(const Bagged& bags, const double* s, std::vector<int64_t>& order, int8_t* y) {
  for (int64_t k = 0; k < bags.n_bags; ++k) {
    order.clear();
    int64_t wanted = 0;
    for (int64_t i = bags.offsets[k]; i < bags.offsets[k + 1]; ++i) {
      y[i] = bags.known[i] ? bags.known[i] : int8_t(-1);
      if (bags.known[i]) continue;
      order.push_back(i);
      wanted += s[i] > 0;
    }
    const int64_t positives = std::clamp(wanted, bags.least[k], bags.most[k]);
    if (positives <= 0) continue;
    if (positives < int64_t(order.size())) {
      const double* a = bags.weight;
      std::nth_element(order.begin(), order.begin() + positives, order.end(), [a, s](int64_t i, int64_t j) {
        const double p = a[i] * s[i], q = a[j] * s[j];
        if (p != q) return p > q;
        return s[i] != s[j] ? s[i] > s[j] : i < j;
      });
    }
    for (int64_t m = 0; m < positives; ++m) y[order[size_t(m)]] = 1;
  }
}

void label_bags(In2<double> scores, In1<double> weight, In1<int64_t> offsets, In1<int64_t> least, In1<int64_t> most,
                In1<int8_t> known, Out2<int8_t> out, int threads) {
  const int64_t count = int64_t(scores.shape(0)), n = int64_t(scores.shape(1)), n_bags = int64_t(offsets.shape(0)) - 1;
  require(int64_t(weight.shape(0)) == n && int64_t(known.shape(0)) == n, "weight and known need a value for each instance");
  require(n_bags >= 0 && offsets.data()[0] == 0 && offsets.data()[n_bags] == n, "offsets must run from 0 to the number of instances");
  require(int64_t(least.shape(0)) == n_bags && int64_t(most.shape(0)) == n_bags, "least and most need a value for each bag");
  require(int64_t(out.shape(0)) == count && int64_t(out.shape(1)) == n, "out must have the shape of scores");
  require(all_finite(scores.data(), count * n), "scores must be finite");
  for (int64_t i = 0; i < n; ++i) {
    require(std::isfinite(weight.data()[i]) && weight.data()[i] >= 0, "weight must be finite and not negative");
    require(known.data()[i] >= -1 && known.data()[i] <= 1, "known must be -1, 0 or 1");
  }
  for (int64_t k = 0; k < n_bags; ++k) require(offsets.data()[k] <= offsets.data()[k + 1], "offsets must not decrease");
  for (int64_t k = 0; k < n_bags; ++k) {
    int64_t free = 0;
    for (int64_t i = offsets.data()[k]; i < offsets.data()[k + 1]; ++i) free += known.data()[i] == 0;
    require(0 <= least.data()[k] && least.data()[k] <= most.data()[k] && most.data()[k] <= free,
            "least and most must be counts of free instances, least not above most");
  }
  const int used = thread_count(threads);
  const Bagged bags{weight.data(), offsets.data(), least.data(), most.data(), known.data(), n_bags, n};
  const double* s = scores.data();
  int8_t* y = out.data();
  nb::gil_scoped_release release;
  in_parallel(count, used, [&](int64_t row) {
    std::vector<int64_t> order;
    label(bags, s + row * n, order, y + row * n);
  });
}

// ---------------------------------------------------------------------------------------------- programs

// The best a_i, all others fixed; g is the slope there, q the curvature.
inline double best_step(double a, double g, double q, double upper) {
  if (q > 0) return std::clamp(a + g / q, 0.0, upper) - a;
  return g > 0 ? upper - a : g < 0 ? -a : 0.0;
}

double gap_of(const double* a, const double* g, const double* upper, int64_t n) {
  double gap = 0;
  for (int64_t i = 0; i < n; ++i) gap += (g[i] > 0 ? upper[i] * g[i] : 0.0) - a[i] * g[i];
  return gap;
}

// Σ a − ½ aᵀQa, from the slopes: aᵀQa = Σ a (1 − g).
double value_of(const double* a, const double* g, int64_t n) {
  double value = 0;
  for (int64_t i = 0; i < n; ++i) value += a[i] * (1 + g[i]);
  return value / 2;
}

void check_program(int64_t n, const In1<double>& upper, const Out1<double>& alpha, const Out1<double>& slope, double tol, int64_t limit) {
  require(int64_t(upper.shape(0)) == n && int64_t(alpha.shape(0)) == n && int64_t(slope.shape(0)) == n,
          "upper, alpha and slope need a value for each instance");
  require(tol >= 0 && limit >= 0, "tol and max_sweeps must not be negative");
  for (int64_t i = 0; i < n; ++i) {
    const double u = upper.data()[i], a = alpha.data()[i];
    require(std::isfinite(u) && u >= 0, "upper must be finite and not negative");
    require(a >= 0 && a <= u, "alpha must lie between 0 and upper");
  }
}

// The coordinate that gains most, n times a sweep. Returns the gap.
double ascend_matrix(In2<double> Q, In1<double> upper, Out1<double> alpha, Out1<double> slope, double tol, int64_t max_sweeps) {
  const int64_t n = int64_t(Q.shape(0));
  require(int64_t(Q.shape(1)) == n, "Q must be a square matrix");
  require(all_finite(Q.data(), n * n), "Q must be finite");
  check_program(n, upper, alpha, slope, tol, max_sweeps);
  const double *q = Q.data(), *u = upper.data();
  double *a = alpha.data(), *g = slope.data();
  nb::gil_scoped_release release;
  std::fill(g, g + n, 1.0);
  const auto move = [&](int64_t i, double step) {
    for (int64_t j = 0; j < n; ++j) g[j] -= step * q[i * n + j];
  };
  for (int64_t i = 0; i < n; ++i)
    if (a[i] != 0) move(i, a[i]);
  std::vector<double> diagonal(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) diagonal[size_t(i)] = q[i * n + i];
  double gap = gap_of(a, g, u, n);
  for (int64_t sweep = 0; sweep < max_sweeps && gap > tol * value_of(a, g, n); ++sweep) {
    bool moved = true;
    for (int64_t update = 0; update < n && moved; ++update) {
      int64_t chosen = 0;
      double most = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double step = best_step(a[i], g[i], diagonal[size_t(i)], u[i]);
        const double gain = step * (g[i] - step * diagonal[size_t(i)] / 2);
        if (gain > most) most = gain, chosen = i;
      }
      moved = most > 0;
      if (!moved) break;
      const double step = best_step(a[chosen], g[chosen], diagonal[size_t(chosen)], u[chosen]);
      a[chosen] = std::clamp(a[chosen] + step, 0.0, u[chosen]);
      move(chosen, step);
    }
    gap = gap_of(a, g, u, n);
    if (!moved) break;
  }
  return gap;
}

// Coordinate by coordinate with w = Uᵀa. Returns the gap.
double ascend_rows(In2<double> U, In1<double> upper, Out1<double> alpha, Out1<double> slope, double tol, int64_t max_sweeps) {
  const int64_t n = int64_t(U.shape(0)), d = int64_t(U.shape(1));
  require(all_finite(U.data(), n * d), "U must be finite");
  check_program(n, upper, alpha, slope, tol, max_sweeps);
  const double *rows = U.data(), *u = upper.data();
  double *a = alpha.data(), *g = slope.data();
  nb::gil_scoped_release release;
  std::vector<double> w(static_cast<size_t>(d)), diagonal(static_cast<size_t>(n));
  const auto slope_of = [&](int64_t i) {
    double product = 0;
    for (int64_t j = 0; j < d; ++j) product += rows[i * d + j] * w[size_t(j)];
    return 1 - product;
  };
  const auto move = [&](int64_t i, double step) {
    for (int64_t j = 0; j < d; ++j) w[size_t(j)] += step * rows[i * d + j];
  };
  for (int64_t i = 0; i < n; ++i) {
    double square = 0;
    for (int64_t j = 0; j < d; ++j) square += rows[i * d + j] * rows[i * d + j];
    diagonal[size_t(i)] = square;
    if (a[i] != 0) move(i, a[i]);
  }
  double gap = 0;
  for (int64_t sweep = 0;; ++sweep) {
    for (int64_t i = 0; i < n; ++i) g[i] = slope_of(i);
    gap = gap_of(a, g, u, n);
    if (sweep >= max_sweeps || gap <= tol * value_of(a, g, n)) break;
    for (int64_t i = 0; i < n; ++i) {
      const double step = best_step(a[i], slope_of(i), diagonal[size_t(i)], u[i]);
      if (step == 0) continue;
      a[i] = std::clamp(a[i] + step, 0.0, u[i]);
      move(i, step);
    }
  }
  return gap;
}

}  // namespace

void bind_labellings(nb::module_& m) {
  m.def("label_bags", &label_bags, "scores"_a, "weight"_a, "offsets"_a, "least"_a, "most"_a, "known"_a, "out"_a, "threads"_a = 1);
  m.def("ascend_matrix", &ascend_matrix, "Q"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a, "max_sweeps"_a);
  m.def("ascend_rows", &ascend_rows, "U"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a, "max_sweeps"_a);
}

}  // namespace mercer
