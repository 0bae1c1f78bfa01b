// Labellings of bags for the convex machine of proportions (spec 004 II-16), and its quadratic programs without a bias.
//
//   labellings   max_y Σ_i a_i s_i y_i   over y_i = ±1 with least_k … most_k positives among the free instances of each bag
//   programs     max_a Σ_i a_i − ½ aᵀQa  over 0 ≤ a_i ≤ upper_i,   Q a mixture of labellings of K, or Q = UUᵀ by its rows
//
// A program stops when upper and lower bounds of its value meet: with g = 1 − Qa, the gap is Σ_i upper_i max(0, g_i) − a_i g_i, and smaller
// for the best multiple of a.
#include "bindings.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

struct Candidate {
  double product, score;  // a_i s_i, s_i
  int64_t i;
};

// One labelling. Instances with a_i = 0 do not count for the value: they follow their scores, as far as the bag has room.
void label(const Bagged& bags, const double* s, std::vector<Candidate>& order, int8_t* y) {
  for (int64_t k = 0; k < bags.n_bags; ++k) {
    order.clear();
    int64_t wanted = 0;
    for (int64_t i = bags.offsets[k]; i < bags.offsets[k + 1]; ++i) {
      y[i] = bags.known[i] ? bags.known[i] : int8_t(-1);
      if (bags.known[i]) continue;
      order.push_back({bags.weight[i] * s[i], s[i], i});
      wanted += s[i] > 0;
    }
    const int64_t positives = std::clamp(wanted, bags.least[k], bags.most[k]);
    if (positives <= 0) continue;
    if (positives < int64_t(order.size())) {
      std::nth_element(order.begin(), order.begin() + positives, order.end(), [](const Candidate& p, const Candidate& q) {
        if (p.product != q.product) return p.product > q.product;
        return p.score != q.score ? p.score > q.score : p.i < q.i;
      });
    }
    for (int64_t m = 0; m < positives; ++m) y[order[size_t(m)].i] = 1;
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
    std::vector<Candidate> order;
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

// The least of ½ c² aᵀQa + Σ_i upper_i max(0, 1 − c (Qa)_i) over c, nearly: each c > 0 gives a bound of the value from above, and a program
// that is solved but for its scale has a gap only without c.
double scaled_bound(const double* a, const double* g, const double* upper, int64_t n) {
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += a[i] * (1 - g[i]);
  square = std::max(square, 0.0);
  const auto loss_at = [&](double c, double* slope) {
    double loss = 0, turn = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double margin = 1 - g[i], short_of = 1 - c * margin;
      loss += short_of > 0 ? upper[i] * short_of : 0.0;
      turn -= short_of > 0 ? upper[i] * margin : 0.0;
    }
    *slope = turn + c * square;
    return loss + c * c * square / 2;
  };
  double slope = 0, best = loss_at(1.0, &slope), low = slope > 0 ? 0.5 : 1.0, high = slope > 0 ? 1.0 : 2.0;
  for (int cut = 0; cut < 12; ++cut) {
    const double c = (low + high) / 2;
    best = std::min(best, loss_at(c, &slope));
    (slope > 0 ? high : low) = c;
  }
  return best;
}

// The largest of s Σa − ½ s² aᵀQa over s with 0 ≤ s a ≤ upper.
double scaled_value(const double* a, const double* g, const double* upper, int64_t n) {
  double sum = 0, square = 0, room = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    sum += a[i];
    square += a[i] * (1 - g[i]);
    if (a[i] > 0) room = std::min(room, upper[i] / a[i]);
  }
  if (sum <= 0) return 0;
  const double s = std::min(room, square > 0 ? sum / square : room);
  return s * sum - s * s * square / 2;
}

// What a step along one coordinate changes: the slopes, and what each coordinate would gain next.
struct Step {
  double size;
  const double *row, *a, *upper, *q, *inverse;
  double *g, *gain;
  int64_t n;
};

inline __attribute__((always_inline)) void advance_body(const Step& s) {
  const double size = s.size;
  const double *__restrict row = s.row, *__restrict a = s.a, *__restrict upper = s.upper, *__restrict q = s.q, *__restrict inverse = s.inverse;
  double *__restrict g = s.g, *__restrict gain = s.gain;
  for (int64_t j = 0; j < s.n; ++j) {
    g[j] -= size * row[j];
    double to = a[j] + g[j] * inverse[j];
    to = to > 0.0 ? to : 0.0;
    to = to < upper[j] ? to : upper[j];
    const double step = to - a[j];
    gain[j] = step * (g[j] - step * q[j] / 2);
  }
}

void advance_portable(const Step& s) { advance_body(s); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) void advance_avx2(const Step& s) { advance_body(s); }
#endif

void (*chosen_advance())(const Step&) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return advance_avx2;  // the same operations, hence the same results
#endif
  return advance_portable;
}

// Programs over one kernel matrix: Q_ij = Σ_t mu_t y_ti y_tj K_ij. Rows of Q are made when they are needed.
class LabelledPrograms {
 public:
  explicit LabelledPrograms(In2<double> K) : K_(K), n_(int64_t(K.shape(0))) {
    require(K.shape(0) == K.shape(1) && n_ >= 1, "K must be a square matrix with at least one row");
    require(all_finite(K.data(), n_ * n_), "K must be finite");
    for (int64_t i = 0; i < n_; ++i) diagonal_.push_back(K.data()[i * n_ + i]);
  }

  // Each step moves the coordinate that gains most; at most max_sweeps times n. Ends when bounds of the value are within tol of each other.
  void ascend(In2<int8_t> labelings, In1<double> mu, In1<double> upper, Out1<double> alpha, Out1<double> slope, double tol, int64_t max_sweeps) {
    const int64_t count = int64_t(labelings.shape(0));
    require(int64_t(labelings.shape(1)) == n_, "labelings must have a value for each instance");
    require(int64_t(mu.shape(0)) == count, "mu must have a value for each labelling");
    for (int64_t i = 0; i < count * n_; ++i) require(std::abs(int(labelings.data()[i])) == 1, "labelings must be -1 or 1");
    for (int64_t t = 0; t < count; ++t) require(std::isfinite(mu.data()[t]) && mu.data()[t] >= 0, "mu must be finite and not negative");
    check_program(n_, upper, alpha, slope, tol, max_sweeps);
    nb::gil_scoped_release release;
    start(labelings.data(), mu.data(), count);
    const double* u = upper.data();
    double *a = alpha.data(), *g = slope.data();
    std::fill(g, g + n_, 1.0);
    for (int64_t i = 0; i < n_; ++i) {
      if (a[i] == 0) continue;
      const double *q = row(i), step = a[i];
      for (int64_t j = 0; j < n_; ++j) g[j] -= step * q[j];
    }
    climb(u, a, g, tol, max_sweeps);
  }

 private:
  void start(const int8_t* labelings, const double* mu, int64_t count) {
    signs_.clear();
    weights_.clear();
    total_ = 0;
    for (int64_t t = 0; t < count; ++t) {
      if (mu[t] == 0) continue;
      weights_.push_back(mu[t]);
      total_ += mu[t];
      for (int64_t i = 0; i < n_; ++i) signs_.push_back(double(labelings[t * n_ + i]));
    }
    place_.assign(size_t(n_), -1);
    rows_.clear();
    mixed_.resize(size_t(n_));
  }

  const double* row(int64_t i) {
    int64_t& at = place_[size_t(i)];
    if (at < 0) {
      at = int64_t(rows_.size()) / n_;
      std::fill(mixed_.begin(), mixed_.end(), 0.0);
      for (size_t t = 0; t < weights_.size(); ++t) {
        const double* y = signs_.data() + int64_t(t) * n_;
        const double c = weights_[t] * y[i];
        for (int64_t j = 0; j < n_; ++j) mixed_[size_t(j)] += c * y[j];
      }
      rows_.resize(rows_.size() + size_t(n_));
      double* out = rows_.data() + at * n_;
      const double* k = K_.data() + i * n_;
      for (int64_t j = 0; j < n_; ++j) out[j] = mixed_[size_t(j)] * k[j];
    }
    return rows_.data() + at * n_;
  }

  void climb(const double* u, double* a, double* g, double tol, int64_t max_sweeps) {
    std::vector<double> q(static_cast<size_t>(n_)), inverse(static_cast<size_t>(n_)), gain(static_cast<size_t>(n_));
    for (int64_t i = 0; i < n_; ++i) {
      q[size_t(i)] = std::max(total_ * diagonal_[size_t(i)], 0.0);
      inverse[size_t(i)] = 1 / std::max(q[size_t(i)], 1e-200);
    }
    Step s{0.0, row(0), a, u, q.data(), inverse.data(), g, gain.data(), n_};
    advance_(s);
    const int64_t period = std::max<int64_t>(n_ / 4, 16), limit = max_sweeps * n_;
    for (int64_t update = 0; update <= limit; ++update) {
      if (update % period == 0) {
        const double value = scaled_value(a, g, u, n_);
        if (scaled_bound(a, g, u, n_) - value <= tol * value) return;
      }
      const int64_t i = largest(gain.data());
      if (i < 0 || update == limit) return;
      const double to = std::clamp(a[i] + g[i] * inverse[size_t(i)], 0.0, u[i]);
      s.size = to - a[i];
      s.row = row(i);
      a[i] = to;
      advance_(s);
    }
  }

  // Where the largest value is, the first of equals; -1 if none is positive. Four runs, so that comparisons need not wait for each other.
  int64_t largest(const double* values) const {
    double most[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n_; i += 4)
      for (int64_t k = 0; k < 4; ++k) most[k] = values[i + k] > most[k] ? values[i + k] : most[k];
    for (; i < n_; ++i) most[0] = std::max(most[0], values[i]);
    const double top = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    if (!(top > 0)) return -1;
    for (i = 0; i < n_; ++i)
      if (values[i] == top) return i;
    return -1;
  }

  In2<double> K_;
  int64_t n_;
  double total_ = 0;
  void (*advance_)(const Step&) = chosen_advance();
  std::vector<double> diagonal_, signs_, weights_, rows_, mixed_;
  std::vector<int64_t> place_;
};

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
  nb::class_<LabelledPrograms>(m, "LabelledPrograms", "Programs over one kernel matrix, for mixtures of labellings.")
      .def(nb::init<In2<double>>(), "K"_a)
      .def("ascend", &LabelledPrograms::ascend, "labelings"_a, "mu"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a, "max_sweeps"_a);
  m.def("ascend_rows", &ascend_rows, "U"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a, "max_sweeps"_a);
}

}  // namespace mercer
