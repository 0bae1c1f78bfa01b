// Support vector machines of two classes over features or a kernel matrix, started where the last one ended.
//
//   primal   P = min over w, b   1/2 |w|^2 + sum_i u_i max(0, 1 - y_i f_i),    f_i = <w, x_i> + b
//   dual     D = max over beta   sum_i y_i beta_i - 1/2 beta' K beta,    0 <= y_i beta_i <= u_i,   sum_i beta_i = 0,
//            w = sum_i beta_i x_i
//
// Both machines keep beta between calls. When labels change an instance keeps its |beta_i|, and when bounds change its
// share of the bound. They stop when P - D <= tol 1/2 |w|^2: as P is strongly convex in w, the error of w is then at
// most sqrt(tol) |w|, however small the bounds (a gap relative to P says nothing about w while all u_i are tiny, as at
// the start of annealing). As w may be 0, a gap of max(1e-7 tol, 1e-12) sum_i u_i is small enough too.
//
// KernelMachine: ascent by pairs (svm_smo.hpp). `solve_box` and `solve_tube` go to a violation
// instead and keep nothing, for the estimators of mercer.kernel_methods.
// LinearMachine: augmented Lagrangian of the dual; its inner problem, smooth and piecewise quadratic in (w, b), is
// solved by Newton steps that cost O(non-zeros). The intercept is a free variable there, and sum_i beta_i = 0 holds
// when the inner problem is solved.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/csr_rows.hpp"
#include "base/dense.hpp"
#include "base/signals.hpp"
#include "solvers/svm_smo.hpp"

namespace mercer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Outcome {
  double intercept = 0, squared_norm = 0, loss = 0, gap = kInfinity;
  int64_t iterations = 0;
  bool converged = false;
};

double small_enough(double tol, double squared_norm, double total_upper) {
  return std::max(tol * 0.5 * squared_norm, std::max(1e-7 * tol, 1e-12) * total_upper);
}

void check_problem(int64_t n, const In1<int8_t>& labels, const In1<double>& upper, double tol, int64_t max_iter) {
  require(int64_t(labels.shape(0)) == n && int64_t(upper.shape(0)) == n,
          "labels and upper must have one entry for each instance");
  for (int64_t i = 0; i < n; ++i) require(labels.data()[i] == 1 || labels.data()[i] == -1, "labels must be -1 or 1");
  for (int64_t i = 0; i < n; ++i)
    require(upper.data()[i] >= 0 && std::isfinite(upper.data()[i]), "upper must be finite and at least 0");
  require(tol > 0 && std::isfinite(tol), "tol must be positive");
  require(max_iter >= 1, "max_iter must be at least 1");
}

nb::tuple shown(const Outcome& o) {
  return nb::make_tuple(o.intercept, o.squared_norm, o.loss, o.gap, o.iterations, o.converged);
}

// ---------------------------------------------------------------------------------------------- over a kernel matrix

using BoxDual = smo::PairAscent<smo::Box, smo::MatrixRows>;
using TubeDual = smo::PairAscent<smo::Tube, smo::MatrixRows>;

// The rows of a kernel matrix, looked through once.
smo::MatrixRows checked_rows(const In2<double>& K) {
  const int64_t n = int64_t(K.shape(0));
  require(K.shape(0) == K.shape(1) && n >= 1, "K must be a square matrix with at least one row");
  require(n <= std::numeric_limits<int32_t>::max(), "K has too many rows");
  bool small = true;
  for (int64_t i = 0; i < n && small; ++i) {
    const double* row = K.data() + i * n;
    int large = 0;
#pragma omp simd reduction(| : large)
    for (int64_t j = 0; j < n; ++j) large |= !(std::abs(row[j]) <= 1e150);
    small = !large;
  }
  require(small || all_finite(K.data(), n * n), "K must be finite");
  require(small, "K must not exceed 1e150: scale the features down");
  return {K.data(), n};
}

class KernelMachine {
 public:
  explicit KernelMachine(In2<double> K) : K_(K), n_(int64_t(K.shape(0))), dual_(checked_rows(K), n_) {
    for (auto* values : {&y_, &low_, &high_}) values->assign(size_t(n_), 0.0);
    upper_.assign(size_t(n_), 0.0);
  }
  KernelMachine(const KernelMachine&) = delete;
  KernelMachine& operator=(const KernelMachine&) = delete;

  nb::tuple solve(In1<int8_t> labels, In1<double> upper, double tol, int64_t max_iter) {
    check_problem(n_, labels, upper, tol, max_iter);
    nb::gil_scoped_release unlocked;
    start(labels.data(), upper.data());
    const double total = std::accumulate(upper_.begin(), upper_.end(), 0.0);
    smo::Outcome found;
    try {
      found = dual_.ascend({tol, small_enough(tol, 0.0, total), 0.0, max_iter});
    } catch (...) {
      dual_.recompute();
      throw;
    }
    intercept_ = found.intercepts[0];
    nb::gil_scoped_acquire locked;
    return nb::make_tuple(intercept_, found.squared_norm, found.loss, found.gap, found.iterations, found.converged);
  }

  // One problem over some of the rows, to a violation of tol, whatever `solve` has found.
  nb::tuple solve_box(In1<int64_t> members, In1<double> slope, In1<double> low, In1<double> high, In1<double> start,
                      int64_t split, double tol, int64_t max_iter) const {
    const int64_t m = int64_t(members.shape(0));
    require(split >= 0 && split <= m, "split must be a number of members");
    BoxDual dual(rows(), n_, checked_members(members), split);
    scatter(members, slope, "slope needs a finite value for each member", dual.reward.slope);
    scatter(members, low, "low needs a finite value for each member", dual.reward.low);
    scatter(members, high, "high needs a finite value for each member", dual.reward.high);
    scatter(members, start, "start needs a finite value for each member", dual.s);
    for (int64_t at = 0; at < m; ++at)
      require(low.data()[at] <= start.data()[at] && start.data()[at] <= high.data()[at],
              "start must lie between low and high");
    return ascended(dual, members, tol, max_iter);
  }

  nb::tuple solve_tube(In1<int64_t> members, In1<double> target, double width, In1<double> upper, double tol,
                       int64_t max_iter) const {
    TubeDual dual(rows(), n_, checked_members(members));
    require(width >= 0 && std::isfinite(width), "width must be finite and at least 0");
    dual.reward.width = width;
    scatter(members, target, "target needs a finite value for each member", dual.reward.target);
    scatter(members, upper, "upper needs a finite value for each member", dual.reward.upper);
    for (int64_t at = 0; at < int64_t(members.shape(0)); ++at)
      require(upper.data()[at] >= 0, "upper must be at least 0");
    return ascended(dual, members, tol, max_iter);
  }

  nb::object scores() const {
    std::vector<double> f(g_);
    for (double& value : f) value += intercept_;
    return to_numpy(std::move(f));
  }
  nb::object weights() const { return to_numpy(std::vector<double>(beta_)); }

 private:
  smo::MatrixRows rows() const { return {K_.data(), n_}; }

  std::vector<int32_t> checked_members(const In1<int64_t>& members) const {
    require(members.shape(0) >= 1, "members must be at least one");
    std::vector<int32_t> found;
    std::vector<uint8_t> seen(size_t(n_), 0);
    for (size_t at = 0; at < members.shape(0); ++at) {
      const int64_t i = members.data()[at];
      require(i >= 0 && i < n_ && !seen[size_t(i)], "members must be rows of K, each of them once");
      seen[size_t(i)] = 1;
      found.push_back(int32_t(i));
    }
    const bool all = int64_t(found.size()) == n_ && std::is_sorted(found.begin(), found.end());
    return all ? std::vector<int32_t>() : found;
  }

  void scatter(const In1<int64_t>& members, const In1<double>& values, const char* message,
               std::vector<double>& out) const {
    require(values.shape(0) == members.shape(0) && all_finite(values.data(), int64_t(values.shape(0))), message);
    out.assign(size_t(n_), 0.0);
    for (size_t at = 0; at < members.shape(0); ++at) out[size_t(members.data()[at])] = values.data()[at];
  }

  template <class Dual>
  static nb::tuple ascended(Dual& dual, const In1<int64_t>& members, double tol, int64_t max_iter) {
    require(tol > 0 && std::isfinite(tol), "tol must be positive");
    require(max_iter >= 1, "max_iter must be at least 1");
    smo::Outcome found;
    std::vector<double> s, g;
    {
      nb::gil_scoped_release unlocked;
      dual.scale_flat();
      dual.ties = smo::kTies;
      dual.recompute();
      found = dual.ascend({0.0, 0.0, tol, max_iter});
      for (size_t at = 0; at < members.shape(0); ++at) {
        s.push_back(dual.s[size_t(members.data()[at])]);
        g.push_back(dual.g[size_t(members.data()[at])]);
      }
    }
    const auto [first, second] = found.intercepts;
    return nb::make_tuple(to_numpy(std::move(s)), to_numpy(std::move(g)), first, second, found.squared_norm, found.loss,
                          found.gap, found.iterations, found.converged);
  }

  // A feasible beta for new labels and bounds, near the old one, and g = K beta.
  void start(const int8_t* labels, const double* upper) {
    std::vector<double> old(beta_);
    std::vector<uint8_t> relabelled(size_t(n_), 0);
    double old_total = 0, total = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const size_t s = size_t(i);
      const double share = upper_[s] > 0 ? std::min(1.0, std::abs(beta_[s]) / upper_[s]) : 0.0;
      relabelled[s] = y_[s] != double(labels[i]);
      old_total += upper_[s];
      total += upper[i];
      y_[s] = double(labels[i]);
      upper_[s] = upper[i];
      low_[s] = y_[s] > 0 ? 0.0 : -upper[i];
      high_[s] = y_[s] > 0 ? upper[i] : 0.0;
      beta_[s] = y_[s] * share * upper[i];
    }
    balance(relabelled);
    // Where all bounds grew alike g grows with them; the rest is added instance by instance.
    const double ratio = old_total > 0 ? total / old_total : 0.0;
    for (double& value : g_) value *= ratio;
    int64_t changed = 0;
    for (int64_t i = 0; i < n_; ++i)
      changed += std::abs(beta_[size_t(i)] - ratio * old[size_t(i)]) > 1e-14 * upper_[size_t(i)];
    if (++solves_ % 32 == 0 || changed > n_ / 2) {
      dual_.recompute();
      return;
    }
    for (int64_t i = 0; i < n_; ++i) {
      const double change = beta_[size_t(i)] - ratio * old[size_t(i)];
      if (change != 0.0) dual_.add(i, change);
    }
  }

  // sum beta = 0 by lowering |beta| on the heavier side: relabelled instances first, then those furthest from the
  // margin.
  void balance(const std::vector<uint8_t>& relabelled) {
    double surplus = 0, size = 0;
    for (int64_t i = 0; i < n_; ++i) {
      surplus += beta_[size_t(i)];
      size += std::abs(beta_[size_t(i)]);
    }
    if (surplus == 0) return;
    const double side = surplus > 0 ? 1.0 : -1.0;
    std::vector<int64_t> heavy;
    for (int64_t i = 0; i < n_; ++i)
      if (beta_[size_t(i)] * side > 0) heavy.push_back(i);
    if (std::abs(surplus) > 1e-12 * size)
      std::sort(heavy.begin(), heavy.end(), [&](int64_t a, int64_t b) {
        if (relabelled[size_t(a)] != relabelled[size_t(b)]) return relabelled[size_t(a)] > relabelled[size_t(b)];
        const double p = side * g_[size_t(a)], q = side * g_[size_t(b)];
        return p > q || (p == q && a < b);
      });
    double left = std::abs(surplus);
    for (int64_t i : heavy) {
      const double taken = std::min(left, std::abs(beta_[size_t(i)]));
      beta_[size_t(i)] = side * (std::abs(beta_[size_t(i)]) - taken);
      left -= taken;
      if (left <= 0) break;
    }
  }

  In2<double> K_;
  int64_t n_, solves_ = 0;
  BoxDual dual_;
  std::vector<double>&y_ = dual_.reward.slope, &low_ = dual_.reward.low, &high_ = dual_.reward.high;
  std::vector<double>&beta_ = dual_.s, &g_ = dual_.g;
  std::vector<double> upper_;
  double intercept_ = 0;
};

// ---------------------------------------------------------------------------------------------- over features

class LinearMachine {
 public:
  explicit LinearMachine(const FeatureRows& rows) : X_(rows.view<double>()), n_(rows.n_rows()), d_(rows.n_columns()) {
    require(n_ >= 1, "the rows must be at least one");
    require(d_ <= std::numeric_limits<int32_t>::max(), "the rows have too many columns");
    y_.assign(size_t(n_), 0.0);
    upper_.assign(size_t(n_), 0.0);
    alpha_.assign(size_t(n_), 0.0);
    f_.assign(size_t(n_), 0.0);
    w_.assign(size_t(d_), 0.0);
  }

  nb::tuple solve(In1<int8_t> labels, In1<double> upper, double tol, int64_t max_iter) {
    check_problem(n_, labels, upper, tol, max_iter);
    nb::gil_scoped_release unlocked;
    start(labels.data(), upper.data());
    const Outcome found = iterate(tol, max_iter);
    nb::gil_scoped_acquire locked;
    return shown(found);
  }

  nb::object scores() const { return to_numpy(std::vector<double>(f_)); }
  nb::object weights() const { return to_numpy(std::vector<double>(w_)); }

 private:
  static constexpr int64_t kExplicit = 512;  // features up to which the Newton matrix is formed
  static constexpr double kRounds = 150;     // what conjugate gradients take, both products of a round counted
  static constexpr double kFar = 1e12;       // an intercept from which no start leads back

  double dot(int64_t i, const double* v) const {
    if (!X_.indptr) return dense_.inner_product(X_.values + i * d_, v, d_);
    double total = 0;
    for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k)
      total += v[X_.indices[k]] * (X_.values ? X_.values[k] : 1.0);
    return total;
  }
  void add(int64_t i, double c, double* out) const {
    if (!X_.indptr) return dense_.add_row(X_.values + i * d_, c, out, d_);
    for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k)
      out[X_.indices[k]] += c * (X_.values ? X_.values[k] : 1.0);
  }
  void clear(int64_t i, double* out) const {
    if (!X_.indptr) return void(std::fill(out, out + d_, 0.0));
    for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k) out[X_.indices[k]] = 0.0;
  }
  static double product(const std::vector<double>& a, const std::vector<double>& b) {
    double total = 0;
    for (size_t j = 0; j < a.size(); ++j) total += a[j] * b[j];
    return total;
  }

  void start(const int8_t* labels, const double* upper) {
    const bool cold = !started_ || !(std::abs(intercept_) <= kFar);
    double side[2] = {0, 0};
    for (int64_t i = 0; i < n_; ++i) side[labels[i] > 0] += upper[i];
    for (int64_t i = 0; i < n_; ++i) {
      const size_t s = size_t(i);
      const double here = side[labels[i] > 0], there = side[labels[i] < 0];
      // At first: bounds on the lighter side, as for small bounds.
      const double share = cold            ? std::min(1.0, here > 0 ? there / here : 0.0)
                           : upper_[s] > 0 ? std::min(1.0, alpha_[s] / upper_[s])
                                           : 0.0;
      y_[s] = double(labels[i]);
      upper_[s] = upper[i];
      alpha_[s] = share * upper[i];
    }
    total_upper_ = side[0] + side[1];
    counted_at_ = 0;  // bounds may have changed
    if (!cold) return;
    std::fill(w_.begin(), w_.end(), 0.0);
    intercept_ = 0;
    started_ = true;
    for (int64_t i = 0; i < n_; ++i) add(i, y_[size_t(i)] * alpha_[size_t(i)], w_.data());
    rescore();
    const double spread = width_of_scores();
    if (spread > 2) {
      for (double& value : w_) value *= 2 / spread;
      rescore();
    }
  }

  void rescore() {
    for (int64_t i = 0; i < n_; ++i) f_[size_t(i)] = dot(i, w_.data()) + intercept_;
  }
  double width_of_scores() const {
    return *std::max_element(f_.begin(), f_.end()) - *std::min_element(f_.begin(), f_.end());
  }

  Outcome iterate(double tol, int64_t max_iter) {
    // A bound u is reached within this distance of the margin; steepness_ = 1 / distance.
    steepness_ = 10.0 / std::clamp(width_of_scores(), 1e-7, 1.0);
    Outcome found;
    next_.resize(size_t(n_));
    df_.resize(size_t(n_));
    trial_.resize(size_t(n_));
    double before = kInfinity;
    for (int round = 0; round < 200; ++round) {
      const bool solved = inner(tol, max_iter, found);
      std::copy(next_.begin(), next_.end(), alpha_.begin());
      evaluate(found);
      const double aim = small_enough(tol, found.squared_norm, total_upper_);
      if (found.gap <= aim || round % 10 == 9) {  // multipliers made feasible may have a smaller gap
        certify(found);
        found.converged = std::isfinite(found.gap) && found.gap <= aim;
      }
      if (found.converged || found.iterations >= max_iter) break;
      // Any steepness converges; a large one in few rounds, but of problems that rounding makes hard.
      if (!solved)
        steepness_ *= 0.1;
      else if (found.gap > 0.1 * before)
        steepness_ *= 5;
      before = found.gap;
    }
    if (!found.converged) {
      certify(found);
      found.converged = std::isfinite(found.gap) && found.gap <= small_enough(tol, found.squared_norm, total_upper_);
    }
    found.intercept = intercept_;
    return found;
  }

  // New multipliers at the scores f + t df, and the slope along df there, less that of w.
  double multipliers(double t, std::vector<double>& f) {
    double slope = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const size_t s = size_t(i);
      f[s] = f_[s] + t * df_[s];
      const double a = alpha_[s] + upper_[s] * steepness_ * (1.0 - y_[s] * f[s]);
      next_[s] = std::min(upper_[s], std::max(0.0, a));
      slope -= y_[s] * next_[s] * df_[s];
    }
    return slope;
  }

  // min over (w, b) of 1/2 |w|^2 + sum_i max over a in [0, u_i] of a (1 - y_i f_i) - (a - alpha_i)^2 / (2 sigma_i);
  // whether it was solved.
  bool inner(double tol, int64_t max_iter, Outcome& found) {
    std::fill(df_.begin(), df_.end(), 0.0);
    multipliers(0.0, trial_);
    std::vector<double> sum(size_t(d_), 0.0), gradient(size_t(d_) + 1), direction(size_t(d_) + 1),
        used(size_t(n_), 0.0), moved(static_cast<size_t>(d_));
    for (int step = 0; step < 50 && found.iterations < max_iter; ++step) {
      double balance = 0;
      active_.clear();
      for (int64_t i = 0; i < n_; ++i) {
        const size_t s = size_t(i);
        if (next_[s] != used[s]) {  // most multipliers stay at their bounds
          add(i, y_[s] * (next_[s] - used[s]), sum.data());
          used[s] = next_[s];
        }
        balance += y_[s] * next_[s];
        if (next_[s] > 0 && next_[s] < upper_[s]) active_.push_back(i);
      }
      double norm = 0;
      for (int64_t j = 0; j < d_; ++j) {
        gradient[size_t(j)] = w_[size_t(j)] - sum[size_t(j)];
        norm += gradient[size_t(j)] * gradient[size_t(j)];
      }
      gradient[size_t(d_)] = -balance;
      const double fine = 0.01 * small_enough(tol, product(w_, w_), total_upper_);
      if (norm <= fine && std::abs(balance) * (1 + std::abs(intercept_)) <= fine) return true;
      newton(gradient, direction);
      for (int64_t j = 0; j < d_; ++j) moved[size_t(j)] = direction[size_t(j)];
      for (int64_t i = 0; i < n_; ++i) df_[size_t(i)] = dot(i, moved.data()) + direction[size_t(d_)];
      const double slope = product(gradient, direction);
      if (!search(moved, direction[size_t(d_)], slope)) return false;
      ++found.iterations;
      if (found.iterations % 8 == 0) check_signals();
    }
    return false;
  }

  // A step along the direction at which the slope has not yet turned: the value is convex, so it has fallen. False
  // where rounding leaves nothing to gain. Values are not compared: near the end they differ by less than their
  // rounding.
  bool search(const std::vector<double>& moved, double shift, double slope) {
    if (!(slope < 0) || !std::isfinite(slope)) return false;
    const double wd = product(w_, moved), dd = product(moved, moved);
    double t = 1, least = 0, most = 1, at_least = slope, at_most = 0;
    for (int cut = 0; cut < 60; ++cut) {
      const double here = multipliers(t, trial_) + wd + t * dd;
      if (!std::isfinite(here)) break;
      if (here <= -1e-9 * slope && (t == 1 || here >= 0.9 * slope)) {
        for (int64_t j = 0; j < d_; ++j) w_[size_t(j)] += t * moved[size_t(j)];
        intercept_ += t * shift;
        f_.swap(trial_);
        return true;
      }
      (here > 0 ? most : least) = t;
      (here > 0 ? at_most : at_least) = here;
      const double crossing = at_least / (at_least - at_most);  // of 0, by a line through both slopes
      t = least + (most - least) * (cut % 4 == 3 ? 0.5 : std::clamp(0.99 * crossing, 0.001, 0.999));
    }
    multipliers(0.0, trial_);
    return false;
  }

  // direction = -H^-1 gradient, H = [I 0; 0 0] + sum over active i of sigma_i [x_i; 1] [x_i; 1]'.
  void newton(const std::vector<double>& gradient, std::vector<double>& direction) {
    double weight = 0;
    for (int64_t i : active_) weight += upper_[size_t(i)] * steepness_;
    // Where no multiplier is free the intercept has no curvature: then it moves by about 1.
    ridge_ = weight > 0 ? 1e-12 * weight : std::max(std::abs(gradient[size_t(d_)]), 1e-300);
    // Multiplications of a factored matrix of the active instances, and of some rounds of conjugate gradients.
    const double few = double(active_.size()), entries = X_.indptr ? double(X_.indptr[n_]) / double(n_) : double(d_);
    const double factored = few * few * (0.5 * entries + few / 12), iterated = kRounds * few * entries;
    if (few <= kExplicit && few < 0.5 * double(d_) && factored <= iterated)
      by_active(gradient, direction);
    else if (d_ <= kExplicit && !(X_.indptr && few < 4 * double(d_)))
      by_factor(gradient, direction);
    else
      by_conjugate_gradients(gradient, direction);
  }

  // Through a matrix as large as the active instances are many: with X their rows and M = 1/sigma + X X',
  // (I + X' sigma X)^-1 = I - X' M^-1 X, and what is left of the intercept's curvature is ridge + 1' M^-1 1.
  void by_active(const std::vector<double>& gradient, std::vector<double>& direction) {
    const int64_t m = int64_t(active_.size());
    H_.resize(size_t(m * m));
    std::vector<double> row(size_t(d_), 0.0), ones(size_t(m), 1.0), along(static_cast<size_t>(m));
    for (int64_t r = 0; r < m; ++r) {
      const int64_t i = active_[size_t(r)];
      add(i, 1.0, row.data());
      for (int64_t s = r; s < m; ++s) H_[size_t(r * m + s)] = dot(active_[size_t(s)], row.data());
      H_[size_t(r * m + r)] += 1.0 / (upper_[size_t(i)] * steepness_);
      clear(i, row.data());
      along[size_t(r)] = -dot(i, gradient.data());
    }
    double shift = -gradient[size_t(d_)], curvature = ridge_;
    if (m) {
      factorise(H_.data(), m, 1e-300);
      solve_factorised(H_.data(), m, ones.data());
      solve_factorised(H_.data(), m, along.data());
    }
    for (int64_t r = 0; r < m; ++r) {
      shift -= along[size_t(r)];
      curvature += ones[size_t(r)];
    }
    shift /= curvature;
    for (int64_t j = 0; j < d_; ++j) direction[size_t(j)] = -gradient[size_t(j)];
    for (int64_t r = 0; r < m; ++r)
      add(active_[size_t(r)], -along[size_t(r)] - shift * ones[size_t(r)], direction.data());
    direction[size_t(d_)] = shift;
  }

  // The sum in H over the active instances goes on from that of the last step, as few of them change.
  void by_factor(const std::vector<double>& gradient, std::vector<double>& direction) {
    const int64_t m = d_ + 1;
    // What is added and taken away again leaves rounding errors behind, which count where no instance is active.
    const bool anew = counted_at_ != steepness_ || active_.empty() || ++updates_ % 64 == 0;
    if (anew) {
      S_.assign(size_t(m * m), 0.0);
      counted_.assign(size_t(n_), 0);
      counted_at_ = steepness_;
    }
    std::vector<double> rows(size_t(4 * m)), c(4);
    int filled = 0;
    const auto count = [&](int64_t i, double sign) {
      double* x = rows.data() + filled * m;
      std::fill(x, x + m, 0.0);
      add(i, 1.0, x);
      x[d_] = 1.0;
      c[size_t(filled)] = sign * upper_[size_t(i)] * steepness_;
      counted_[size_t(i)] = sign > 0;
      if (++filled == 4) {
        loops<SmoLoops>().add_squares(rows.data(), c.data(), m, S_.data());
        filled = 0;
      }
    };
    for (int64_t i = 0; i < n_; ++i) {
      const bool active = next_[size_t(i)] > 0 && next_[size_t(i)] < upper_[size_t(i)];
      if (active != bool(counted_[size_t(i)])) count(i, active ? 1.0 : -1.0);
    }
    if (filled) {
      std::fill(rows.begin() + filled * m, rows.end(), 0.0);
      std::fill(c.begin() + filled, c.end(), 0.0);
      loops<SmoLoops>().add_squares(rows.data(), c.data(), m, S_.data());
    }
    H_ = S_;
    for (int64_t r = 0; r < d_; ++r) H_[size_t(r * m + r)] += 1.0;
    H_[size_t(d_ * m + d_)] += ridge_;
    factorise(H_.data(), m, ridge_);
    for (int64_t r = 0; r < m; ++r) direction[size_t(r)] = -gradient[size_t(r)];
    solve_factorised(H_.data(), m, direction.data());
  }

  void apply(const std::vector<double>& v, std::vector<double>& out) const {
    for (int64_t j = 0; j < d_; ++j) out[size_t(j)] = v[size_t(j)];
    double last = ridge_ * v[size_t(d_)];
    for (int64_t i : active_) {
      const double c = upper_[size_t(i)] * steepness_ * (dot(i, v.data()) + v[size_t(d_)]);
      add(i, c, out.data());
      last += c;
    }
    out[size_t(d_)] = last;
  }

  void by_conjugate_gradients(const std::vector<double>& gradient, std::vector<double>& direction) {
    const size_t m = size_t(d_) + 1;
    std::vector<double> diagonal(m, 1.0), r(m), z(m), p(m), Hp(m);
    diagonal[m - 1] = ridge_;
    for (int64_t i : active_) {
      const double sigma = upper_[size_t(i)] * steepness_;
      if (X_.indptr)
        for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k) {
          const double x = X_.values ? X_.values[k] : 1.0;
          diagonal[size_t(X_.indices[k])] += sigma * x * x;
        }
      else
        for (int64_t j = 0; j < d_; ++j) diagonal[size_t(j)] += sigma * X_.values[i * d_ + j] * X_.values[i * d_ + j];
      diagonal[m - 1] += sigma;
    }
    std::fill(direction.begin(), direction.end(), 0.0);
    double rz = 0;
    for (size_t j = 0; j < m; ++j) {
      r[j] = -gradient[j];
      p[j] = z[j] = r[j] / diagonal[j];
      rz += r[j] * z[j];
    }
    const double first = rz;
    for (int step = 0; step < 500 && rz > 1e-5 * first; ++step) {
      apply(p, Hp);
      const double curvature = product(p, Hp);
      if (!(curvature > 0)) break;
      const double t = rz / curvature;
      double next = 0;
      for (size_t j = 0; j < m; ++j) {
        direction[j] += t * p[j];
        r[j] -= t * Hp[j];
        z[j] = r[j] / diagonal[j];
        next += r[j] * z[j];
      }
      for (size_t j = 0; j < m; ++j) p[j] = z[j] + next / rz * p[j];
      rz = next;
    }
  }

  // P, and P - D as if the multipliers were feasible and w = sum_i y_i alpha_i x_i.
  void evaluate(Outcome& found) const {
    double dual = 0;
    found.squared_norm = product(w_, w_);
    found.loss = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const size_t s = size_t(i);
      found.loss += upper_[s] * std::max(0.0, 1.0 - y_[s] * f_[s]);
      dual += alpha_[s];
    }
    found.gap = found.squared_norm + found.loss - dual;
  }

  // P - D for multipliers made feasible: the heavier side is scaled down.
  void certify(Outcome& found) const {
    double side[2] = {0, 0};
    for (int64_t i = 0; i < n_; ++i) side[y_[size_t(i)] > 0] += alpha_[size_t(i)];
    const double light = std::min(side[0], side[1]);
    std::vector<double> w(size_t(d_), 0.0);
    for (int64_t i = 0; i < n_; ++i) {
      const size_t s = size_t(i);
      const double heavy = side[y_[s] > 0];
      if (alpha_[s] > 0) add(i, y_[s] * alpha_[s] * (light / heavy), w.data());
    }
    found.gap = 0.5 * found.squared_norm + found.loss - (2 * light - 0.5 * product(w, w));
  }

  const DenseLoops& dense_ = loops<DenseLoops>();
  Rows<double> X_;
  int64_t n_, d_;
  std::vector<double> y_, upper_, alpha_, f_, w_, next_, df_, trial_, H_;
  std::vector<int64_t> active_;
  std::vector<double> S_;  // sum over the instances counted of sigma_i [x_i; 1] [x_i; 1]'
  std::vector<uint8_t> counted_;
  double counted_at_ = 0;  // the steepness for which they are
  int64_t updates_ = 0;
  double intercept_ = 0, steepness_ = 1, ridge_ = 0, total_upper_ = 0;
  bool started_ = false;
};

}  // namespace

void bind_machines(nb::module_& m) {
  nb::class_<KernelMachine>(m, "KernelMachine",
                            "A support vector machine over a kernel matrix that starts where it ended.")
      .def(nb::init<In2<double>>(), "K"_a)
      .def("solve", &KernelMachine::solve, "labels"_a, "upper"_a, "tol"_a, "max_iter"_a,
           "(intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).")
      .def("solve_box", &KernelMachine::solve_box, "members"_a, "slope"_a, "low"_a, "high"_a, "start"_a, "split"_a,
           "tol"_a, "max_iter"_a,
           "max slope's - 1/2 s'Ks over low <= s <= high with the sums of start before and from the split-th member, "
           "to a "
           "violation of tol: (s, Ks, intercept, intercept of the second group, s'Ks, loss, gap, steps, converged).")
      .def("solve_tube", &KernelMachine::solve_tube, "members"_a, "target"_a, "width"_a, "upper"_a, "tol"_a,
           "max_iter"_a,
           "max target's - width |s| - 1/2 s'Ks over |s| <= upper with the sum 0; gives what solve_box does.")
      .def("scores", &KernelMachine::scores, "f of every instance.")
      .def("weights", &KernelMachine::weights, "beta: f(x) = sum_i beta_i k(x_i, x) + b.");
  nb::class_<LinearMachine>(m, "LinearMachine", "A linear support vector machine that starts where it ended.")
      .def(nb::init<const FeatureRows&>(), "rows"_a, nb::keep_alive<1, 2>())
      .def("solve", &LinearMachine::solve, "labels"_a, "upper"_a, "tol"_a, "max_iter"_a,
           "(intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).")
      .def("scores", &LinearMachine::scores, "f of every instance.")
      .def("weights", &LinearMachine::weights, "w.");
}

}  // namespace mercer
