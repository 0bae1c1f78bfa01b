// Sparse codes of many signals over one dictionary: x ≈ Σ_j a_j φ_j with few a_j ≠ 0.
//
//   greedy     the atom with the largest |⟨φ_j, r⟩| / ‖φ_j‖ (omp), or the one whose choice decreases ‖r‖² most
//              (order-recursive), then least squares over the atoms chosen so far
//   homotopy   min ½‖x − Φa‖² + λ‖a‖₁ along all λ from ‖Φᵀx‖∞ down, to a given λ or to ‖x − Φa‖ = ε
//
// Both work on inner products: correlations Φᵀx of the signals come from outside, rows of the Gram matrix too, or are
// computed when an atom is chosen. Greedy steps keep q_m = Φᵀw_m for an orthonormal basis w_m of the chosen atoms,
//   q_k = (G_j − Σ_m q_m[j] q_m) / √h_j,   h_j = ‖φ_j‖² − Σ_m q_m[j]²,   α ← α − c_k q_k,   c_k = α_j / √h_j,
// where α = Φᵀr: q_m[j] are also the entries of the Cholesky factor of the chosen atoms. Inner products lose half of the
// digits of small residuals, so that these are computed from the atoms. Elementwise sums and fixed lanes: results do not
// depend on instruction set or threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "base/arrays.hpp"
#include "base/dense.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "solvers/sparse_code_loops.hpp"

namespace mercer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDependent = 1e-10;  // share of an atom's squared norm that is left by atoms it depends on
constexpr double kTiny = 1e-12;       // correlations below this share of the first are rounding errors
constexpr double kSmall = 1e-6;       // shares of ‖x‖² from which on residuals are computed from the atoms

struct Dictionary {
  const double *atoms, *gram;  // n x d; n x n or nullptr
  int64_t n, d;
  std::vector<double> squares;
};

struct Code {
  std::vector<int64_t> atoms;
  std::vector<double> values;
  double residual = 0, penalty = 0, gap = 0;
  int64_t steps = 0;
  int32_t status = 0;
};
constexpr int32_t kUnreached = 1, kStepLimit = 2;

void inner_products(const Dictionary& D, int64_t j, double* out) {
  for (int64_t i = 0; i < D.n; ++i) out[i] = inner_product(D.atoms + i * D.d, D.atoms + j * D.d, D.d);
}

// r = x − Σ a_j φ_j; returns ‖r‖².
double residual_of(const Dictionary& D, const double* x, const std::vector<int64_t>& atoms, const double* values,
                   std::vector<double>& r) {
  r.assign(x, x + D.d);
  for (size_t i = 0; i < atoms.size(); ++i) add_row(D.atoms + atoms[i] * D.d, -values[i], r.data(), D.d);
  return inner_product(r.data(), r.data(), D.d);
}

// ---------------------------------------------------------------------------------------------------- greedy pursuit

struct GreedySettings {
  bool order_recursive, positive;
  int64_t n_nonzero;
};

class Greedy {
 public:
  Greedy(const Dictionary& D, const GreedySettings& settings) : D_(D), settings_(settings) {
    most_ = std::min({settings.n_nonzero, D.n, D.d});
    for (auto* vector : {&alpha_, &left_, &least_, &weight_, &score_, &start_}) vector->resize(size_t(D.n));
    for (int64_t j = 0; j < D.n; ++j) {
      least_[size_t(j)] = kDependent * D.squares[size_t(j)];
      norm_weight_.push_back(D.squares[size_t(j)] > 0 ? 1.0 / std::sqrt(D.squares[size_t(j)]) : 0.0);
    }
  }

  // barred: an atom that must not be used, or -1.
  Code run(const double* x, const double* correlations, double tol, int64_t barred) {
    Code code;
    const double squared = inner_product(x, x, D_.d);
    double rss = squared;
    std::copy(correlations, correlations + D_.n, alpha_.begin());
    std::copy(D_.squares.begin(), D_.squares.end(), left_.begin());
    std::copy(norm_weight_.begin(), norm_weight_.end(), weight_.begin());
    factor_.clear();
    steps_.clear();
    zero_.assign(size_t(D_.n), 0.0);
    if (barred >= 0) exclude(barred);
    double best = update(zero_.data(), 0.0);
    const double nothing = threshold(squared);
    while (int64_t(code.atoms.size()) < most_ && rss > tol * tol && best > nothing) {
      const int64_t j = std::find(score_.begin(), score_.end(), best) - score_.begin(), k = int64_t(code.atoms.size());
      coefficients_.clear();
      rows_.clear();
      double pivot = D_.squares[size_t(j)];
      for (int64_t m = 0; m < k; ++m) {
        const double value = q_[size_t(m)][size_t(j)];
        coefficients_.push_back(value);
        rows_.push_back(q_[size_t(m)].data());
        pivot -= value * value;
      }
      if (pivot <= least_[size_t(j)]) {
        exclude(j);
        best = *std::max_element(score_.begin(), score_.end());
        continue;
      }
      const double diagonal = std::sqrt(pivot), step = alpha_[size_t(j)] / diagonal;
      if (int64_t(q_.size()) <= k) q_.emplace_back(size_t(D_.n));  // rows stay for the next signal
      double* q = q_[size_t(k)].data();
      loops<SparseCodeLoops>().combine_rows(gram_row(j), rows_.data(), coefficients_.data(), k, 1.0 / diagonal, q,
                                            D_.n);
      factor_.insert(factor_.end(), coefficients_.begin(), coefficients_.end());
      factor_.push_back(diagonal);
      steps_.push_back(step);
      code.atoms.push_back(j);
      exclude(j);
      best = update(q, step);
      rss -= step * step;
      if (rss <= kSmall * squared) {
        solve(code);
        rss = residual_of(D_, x, code.atoms, code.values.data(), residual_);
        if (rss <= kTiny * kTiny * squared) break;
      }
      poll_signals((k + 4) * D_.n);
    }
    solve(code);
    code.steps = int64_t(code.atoms.size());
    code.residual = std::sqrt(residual_of(D_, x, code.atoms, code.values.data(), residual_));
    if (code.residual > tol * (1 + 1e-9)) code.status = kUnreached;
    return code;
  }

  // Non-negative least squares over at most n_nonzero atoms at a time, entered by their correlation.
  Code run_positive(const double* x, const double* correlations, double tol, int64_t barred) {
    Code code;
    const double squared = inner_product(x, x, D_.d);
    double rss = squared;
    std::copy(norm_weight_.begin(), norm_weight_.end(), weight_.begin());
    if (barred >= 0) weight_[size_t(barred)] = 0.0;
    const double nothing = threshold(squared);
    std::vector<double> wanted;
    for (code.steps = 0; code.steps < 3 * most_ + 10; ++code.steps) {
      if (int64_t(code.atoms.size()) >= most_ || rss <= tol * tol || rss <= kTiny * kTiny * squared) break;
      residual_correlations(code, correlations);
      int64_t j = -1;
      double best = nothing;
      for (int64_t i = 0; i < D_.n; ++i)
        if (alpha_[size_t(i)] * weight_[size_t(i)] > best) best = alpha_[size_t(i)] * weight_[size_t(i)], j = i;
      if (j < 0) break;
      weight_[size_t(j)] = 0.0;  // until an atom leaves: where its pivot or its coefficient is 0, it stays out
      code.atoms.push_back(j);
      code.values.push_back(0.0);
      if (!least_squares(code.atoms, correlations, wanted)) {
        code.atoms.pop_back();
        code.values.pop_back();
        continue;
      }
      while (std::any_of(wanted.begin(), wanted.end(), [](double v) { return v <= 0; })) {
        double reach = 1.0;
        for (size_t i = 0; i < wanted.size(); ++i)
          if (wanted[i] <= 0) reach = std::min(reach, code.values[i] / (code.values[i] - wanted[i]));
        size_t kept = 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
          const double value = code.values[i] + reach * (wanted[i] - code.values[i]);
          const bool leaves = wanted[i] <= 0 && value <= 1e-14 * std::fabs(wanted[i] - code.values[i]);
          if (leaves) {
            weight_[size_t(code.atoms[i])] = code.atoms[i] == j ? 0.0 : norm_weight_[size_t(code.atoms[i])];
            continue;
          }
          code.atoms[kept] = code.atoms[i];
          code.values[kept++] = std::max(value, 0.0);
        }
        if (kept == wanted.size()) break;  // rounding: nothing is negative by more than an ulp
        code.atoms.resize(kept);
        code.values.resize(kept);
        if (!least_squares(code.atoms, correlations, wanted)) break;
      }
      if (wanted.size() == code.atoms.size())
        for (size_t i = 0; i < wanted.size(); ++i) code.values[i] = std::max(wanted[i], 0.0);
      rss = residual_of(D_, x, code.atoms, code.values.data(), residual_);
      poll_signals(int64_t(code.atoms.size() + 4) * D_.n);
    }
    code.residual = std::sqrt(residual_of(D_, x, code.atoms, code.values.data(), residual_));
    if (code.residual > tol * (1 + 1e-9)) code.status = kUnreached;
    return code;
  }

 private:
  double threshold(double squared) const {
    const double size = kTiny * std::sqrt(squared);
    return settings_.order_recursive ? size * size : size;
  }
  double update(const double* q, double c) {
    if (settings_.order_recursive)
      return loops<SparseCodeLoops>().update_decreases(alpha_.data(), q, c, left_.data(), least_.data(), score_.data(),
                                                       D_.n);
    return loops<SparseCodeLoops>().update_correlations(alpha_.data(), q, c, weight_.data(), score_.data(), D_.n);
  }
  const double* gram_row(int64_t j) {
    if (D_.gram) return D_.gram + j * D_.n;
    inner_products(D_, j, start_.data());
    return start_.data();
  }
  void exclude(int64_t j) {
    weight_[size_t(j)] = score_[size_t(j)] = 0.0;
    left_[size_t(j)] = -kInfinity;
  }
  // Lᵀ a = steps, for the rows of the factor.
  void solve(Code& code) const {
    code.values = steps_;
    int64_t row = int64_t(factor_.size());
    for (int64_t k = int64_t(steps_.size()) - 1; k >= 0; --k) {
      row -= k + 1;
      const double* L = factor_.data() + row;
      const double value = code.values[size_t(k)] /= L[k];
      add_row(L, -value, code.values.data(), k);
    }
  }
  void residual_correlations(const Code& code, const double* correlations) {
    if (D_.gram) {
      rows_.clear();
      for (const int64_t j : code.atoms) rows_.push_back(D_.gram + j * D_.n);
      loops<SparseCodeLoops>().combine_rows(correlations, rows_.data(), code.values.data(), int64_t(rows_.size()), 1.0,
                                            alpha_.data(), D_.n);
      return;
    }
    std::copy(correlations, correlations + D_.n, alpha_.begin());
    if (code.atoms.empty()) return;
    for (int64_t i = 0; i < D_.n; ++i) alpha_[size_t(i)] = inner_product(D_.atoms + i * D_.d, residual_.data(), D_.d);
  }
  bool least_squares(const std::vector<int64_t>& atoms, const double* correlations, std::vector<double>& out) {
    const size_t k = atoms.size();
    std::vector<double> L(k * k);
    out.resize(k);
    for (size_t i = 0; i < k; ++i) {
      for (size_t m = 0; m <= i; ++m) {
        const double inner = D_.gram ? D_.gram[atoms[i] * D_.n + atoms[m]]
                                     : inner_product(D_.atoms + atoms[i] * D_.d, D_.atoms + atoms[m] * D_.d, D_.d);
        const double value = inner - inner_product(L.data() + i * k, L.data() + m * k, int64_t(m));
        if (m < i)
          L[i * k + m] = value / L[m * k + m];
        else if (value <= least_[size_t(atoms[i])])
          return false;
        else
          L[i * k + i] = std::sqrt(value);
      }
      out[i] = (correlations[atoms[i]] - inner_product(L.data() + i * k, out.data(), int64_t(i))) / L[i * k + i];
    }
    for (size_t i = k; i-- > 0;) {
      out[i] /= L[i * k + i];
      add_row(L.data() + i * k, -out[i], out.data(), int64_t(i));
    }
    return true;
  }

  const Dictionary& D_;
  const GreedySettings settings_;
  int64_t most_;
  std::vector<double> alpha_, left_, least_, weight_, score_, start_, zero_, norm_weight_, residual_;
  std::vector<double> factor_, steps_, coefficients_;
  std::vector<std::vector<double>> q_;
  std::vector<const double*> rows_;
};

// --------------------------------------------------------------------------------------------------------- homotopy

class Homotopy {
 public:
  Homotopy(const Dictionary& D, bool positive, bool to_residual, int64_t max_steps)
      : D_(D), positive_(positive), to_residual_(to_residual), max_steps_(max_steps) {
    c_.resize(size_t(D.n));
    direction_.resize(size_t(D.n));
    barred_.resize(size_t(D.n));
    zero_.assign(size_t(D.n), 0.0);
  }

  // target: λ, or ε if the path ends at a residual.
  Code run(const double* x, const double* correlations, double target, int64_t barred) {
    Code code;
    correlations_ = correlations;
    squared_ = inner_product(x, x, D_.d);
    std::copy(correlations, correlations + D_.n, c_.begin());
    std::fill(barred_.begin(), barred_.end(), 0.0);
    if (barred >= 0) barred_[size_t(barred)] = kInfinity;
    std::fill(direction_.begin(), direction_.end(), 0.0);
    atoms_.clear(), signs_.clear(), values_.clear(), factor_.clear(), forward_.clear(), rows_.clear(), own_.clear();
    dependent_.clear();
    const int64_t first = largest_correlation();
    lambda_ = first < 0 ? 0.0 : std::fabs(c_[size_t(first)]);
    const double start = lambda_;
    double rss = squared_;
    const bool trivial = to_residual_ ? squared_ <= target * target : lambda_ <= target;
    left_ = -1;
    bool reached = trivial;
    if (!trivial && lambda_ > 0) join(first);
    while (!reached && !atoms_.empty()) {
      if (code.steps++ >= max_steps_) {
        code.status |= kStepLimit;
        break;
      }
      reached = advance(x, start, target, rss);
      if (lambda_ <= kTiny * start) break;
    }
    finish(code, x, target, reached, barred);
    return code;
  }

 private:
  int64_t size() const { return int64_t(atoms_.size()); }

  int64_t largest_correlation() const {
    int64_t best = -1;
    double most = 0.0;
    for (int64_t j = 0; j < D_.n; ++j) {
      if (barred_[size_t(j)] > 0) continue;
      const double value = positive_ ? c_[size_t(j)] : std::fabs(c_[size_t(j)]);
      if (value > most) most = value, best = j;
    }
    return best;
  }

  // Goes to the next place where an atom joins or leaves. Returns whether the end of the path was reached.
  bool advance(const double* x, double start, double target, double& rss) {
    w_ = forward_;
    back_solve(w_);
    const double curvature = inner_product(forward_.data(), forward_.data(), size());
    for (double& value : w_) value = -value;
    loops<SparseCodeLoops>().combine_rows(zero_.data(), rows_.data(), w_.data(), size(), 1.0, direction_.data(), D_.n);
    for (double& value : w_) value = -value;
    double step = lambda_;
    bool ends = false;
    if (to_residual_) {
      const double inside = lambda_ * lambda_ - (rss - target * target) / curvature;
      if (inside >= 0 && lambda_ - std::sqrt(inside) <= step)
        step = std::max(0.0, lambda_ - std::sqrt(inside)), ends = true;
    } else {
      step = std::max(0.0, lambda_ - target);
      ends = true;
    }
    int64_t leaves = -1, joins = -1;
    for (int64_t i = 0; i < size(); ++i) {
      const double slope = w_[size_t(i)], value = values_[size_t(i)];
      if (slope * signs_[size_t(i)] < 0 && -value / slope < step) step = std::max(0.0, -value / slope), leaves = i;
    }
    find_join(step, joins);
    ends = ends && leaves < 0 && joins < 0;
    rss += step * (step - 2 * lambda_) * curvature;
    for (int64_t i = 0; i < size(); ++i) values_[size_t(i)] += step * w_[size_t(i)];
    loops<SparseCodeLoops>().move_along(c_.data(), direction_.data(), step, D_.n);
    lambda_ -= step;
    for (int64_t i = 0; i < size(); ++i) c_[size_t(atoms_[size_t(i)])] = signs_[size_t(i)] * lambda_;
    if (to_residual_ && rss <= kSmall * squared_) rss = residual_of(D_, x, atoms_, values_.data(), residual_);
    left_ = -1;
    if (ends) return true;
    if (lambda_ <= kTiny * start) return false;
    if (joins >= 0)
      join(joins);
    else if (leaves >= 0)
      leave(leaves);
    poll_signals((size() + 4) * D_.n);
    return false;
  }

  // The first atom outside whose correlation meets ±λ, if one does within the step.
  void find_join(double& step, int64_t& joins) {
    constexpr int64_t kScan = 64;
    for (int64_t first = 0; first < D_.n; first += kScan) {
      const int64_t n = std::min(kScan, D_.n - first);
      if (loops<SparseCodeLoops>().join_slack(c_.data() + first, direction_.data() + first, barred_.data() + first,
                                              lambda_, step, positive_ ? kInfinity : 0.0, n) >= 0)
        continue;
      for (int64_t j = first; j < first + n; ++j) {
        if (barred_[size_t(j)] > 0) continue;
        const double c = c_[size_t(j)], a = direction_[size_t(j)];
        const bool up = !(j == left_ && left_sign_ > 0), down = !positive_ && !(j == left_ && left_sign_ < 0);
        const double above = std::max(lambda_ - c, 0.0), below = std::max(lambda_ + c, 0.0);
        if (up && above < step * (1.0 - a)) step = above / (1.0 - a), joins = j, joining_sign_ = 1.0;
        if (down && below < step * (1.0 + a)) step = below / (1.0 + a), joins = j, joining_sign_ = -1.0;
      }
    }
  }

  void join(int64_t j) {
    const double sign = atoms_.empty() ? (c_[size_t(j)] < 0 ? -1.0 : 1.0) : joining_sign_;
    const double* row = row_of(j);
    const int64_t k = size();
    std::vector<double>& y = scratch_;
    y.resize(size_t(k) + 1);
    double pivot = D_.squares[size_t(j)];
    for (int64_t i = 0; i < k; ++i) {
      const double* L = factor_row(i);
      y[size_t(i)] = (row[atoms_[size_t(i)]] - inner_product(L, y.data(), i)) / L[i];
      pivot -= y[size_t(i)] * y[size_t(i)];
    }
    barred_[size_t(j)] = kInfinity;
    if (pivot <= kDependent * D_.squares[size_t(j)]) {  // it moves with the others until one of them leaves
      dependent_.push_back(j);
      if (!D_.gram) own_.pop_back();
      return;
    }
    y[size_t(k)] = std::sqrt(pivot);
    factor_.insert(factor_.end(), y.begin(), y.end());
    const double* L = factor_row(k);
    forward_.push_back((sign - inner_product(L, forward_.data(), k)) / L[k]);
    atoms_.push_back(j);
    signs_.push_back(sign);
    values_.push_back(0.0);
    rows_.push_back(row);
  }

  void leave(int64_t i) {
    const int64_t j = atoms_[size_t(i)], k = size();
    left_ = j;
    left_sign_ = signs_[size_t(i)];
    barred_[size_t(j)] = 0.0;
    for (const int64_t other : dependent_) barred_[size_t(other)] = 0.0;
    dependent_.clear();
    // Rows below lose a column: rotations bring them back to a triangle.
    std::vector<double> kept(factor_.begin(), factor_.begin() + i * (i + 1) / 2);
    for (int64_t r = i + 1; r < k; ++r) {
      double* L = factor_.data() + r * (r + 1) / 2;
      for (int64_t m = i + 1; m < r; ++m) {
        const double a = L[m - 1], b = L[m];
        L[m - 1] = rotations_[size_t(2 * m)] * a + rotations_[size_t(2 * m + 1)] * b;
        L[m] = rotations_[size_t(2 * m)] * b - rotations_[size_t(2 * m + 1)] * a;
      }
      const double a = L[r - 1], b = L[r], length = std::hypot(a, b);
      if (int64_t(rotations_.size()) < 2 * r + 2) rotations_.resize(size_t(2 * r + 2));
      rotations_[size_t(2 * r)] = a / length;
      rotations_[size_t(2 * r + 1)] = b / length;
      L[r - 1] = length;
      kept.insert(kept.end(), L, L + r);
    }
    factor_ = std::move(kept);
    atoms_.erase(atoms_.begin() + i);
    signs_.erase(signs_.begin() + i);
    values_.erase(values_.begin() + i);
    rows_.erase(rows_.begin() + i);
    forward_.resize(size_t(i));
    for (int64_t r = i; r < size(); ++r) {
      const double* L = factor_row(r);
      forward_.push_back((signs_[size_t(r)] - inner_product(L, forward_.data(), r)) / L[r]);
    }
  }

  const double* factor_row(int64_t i) const { return factor_.data() + i * (i + 1) / 2; }
  // Lᵀ v = z for z in v.
  void back_solve(std::vector<double>& v) const {
    for (int64_t i = size() - 1; i >= 0; --i) {
      const double* L = factor_row(i);
      v[size_t(i)] /= L[i];
      add_row(L, -v[size_t(i)], v.data(), i);
    }
  }
  const double* row_of(int64_t j) {
    if (D_.gram) return D_.gram + j * D_.n;
    own_.emplace_back(size_t(D_.n));
    inner_products(D_, j, own_.back().data());
    return own_.back().data();
  }

  // The values of the support from its equations, and the duality gap.
  void finish(Code& code, const double* x, double target, bool reached, int64_t barred) {
    const int64_t k = size();
    std::vector<double> z(size_t(k), 0.0);
    for (int64_t i = 0; i < k; ++i)
      z[size_t(i)] = (correlations_[atoms_[size_t(i)]] - inner_product(factor_row(i), z.data(), i)) / factor_row(i)[i];
    back_solve(z);
    w_ = forward_;
    back_solve(w_);
    const double curvature = inner_product(forward_.data(), forward_.data(), k);
    if (!reached) {
      lambda_ = std::max(lambda_, 0.0);
    } else if (!to_residual_) {
      lambda_ = target;
    } else if (k) {
      const double rest = residual_of(D_, x, atoms_, z.data(), residual_);
      lambda_ = curvature > 0 ? std::sqrt(std::max(target * target - rest, 0.0) / curvature) : 0.0;
    }
    for (int64_t i = 0; i < k; ++i) {
      const double value = z[size_t(i)] - lambda_ * w_[size_t(i)];
      if (value * signs_[size_t(i)] <= 0) continue;
      code.atoms.push_back(atoms_[size_t(i)]);
      code.values.push_back(value);
    }
    const double rss = residual_of(D_, x, code.atoms, code.values.data(), residual_);
    code.residual = std::sqrt(rss);
    code.penalty = lambda_;
    if (to_residual_ && code.residual > target * (1 + 1e-7)) code.status |= kUnreached;
    certify(code, x, rss, target, barred);
  }

  // lasso: P(a) − D(θ) over ½‖x‖²; with a residual: ‖a‖₁ − (⟨x, y⟩ − ε‖y‖) over ‖a‖₁; θ and y multiples of r.
  void certify(Code& code, const double* x, double rss, double target, int64_t barred) {
    if (D_.gram) {
      rows_.clear();
      for (const int64_t j : code.atoms) rows_.push_back(D_.gram + j * D_.n);
      loops<SparseCodeLoops>().combine_rows(correlations_, rows_.data(), code.values.data(), int64_t(rows_.size()), 1.0,
                                            c_.data(), D_.n);
    } else {
      for (int64_t i = 0; i < D_.n; ++i) c_[size_t(i)] = inner_product(D_.atoms + i * D_.d, residual_.data(), D_.d);
    }
    if (barred >= 0) c_[size_t(barred)] = 0.0;
    double most = 0.0, norm = 0.0;
    for (int64_t j = 0; j < D_.n; ++j) most = std::max(most, positive_ ? c_[size_t(j)] : std::fabs(c_[size_t(j)]));
    for (const double value : code.values) norm += std::fabs(value);
    const double inner = inner_product(x, residual_.data(), D_.d);
    if (!to_residual_) {
      const double scale = most > target ? target / most : 1.0;
      const double dual = scale * inner - 0.5 * scale * scale * rss, primal = 0.5 * rss + target * norm;
      code.gap = squared_ > 0 ? std::max(0.0, primal - dual) / (0.5 * squared_) : 0.0;
    } else {
      const double lower = most > 0 ? (inner - target * std::sqrt(rss)) / most : 0.0;
      code.gap = norm > 0 ? std::max(0.0, norm - lower) / norm : 0.0;
    }
  }

  const Dictionary& D_;
  const bool positive_, to_residual_;
  const int64_t max_steps_;
  int64_t left_ = -1;
  double squared_ = 0, lambda_ = 0, left_sign_ = 0, joining_sign_ = 1;
  const double* correlations_ = nullptr;
  std::vector<int64_t> atoms_, dependent_;
  std::vector<double> signs_, values_, factor_, forward_, w_, scratch_, rotations_, residual_;
  std::vector<double> c_, direction_, barred_, zero_;
  std::vector<const double*> rows_;
  std::vector<std::vector<double>> own_;
};

// --------------------------------------------------------------------------------------------------------- bindings

// Checked once; keeps the arrays alive.
class CodeDictionary {
 public:
  CodeDictionary(In2<double> atoms, std::optional<In2<double>> gram) : atoms_(atoms), gram_(gram) {
    const int64_t n = int64_t(atoms.shape(0)), d = int64_t(atoms.shape(1));
    D_ = {atoms.data(), gram ? gram->data() : nullptr, n, d, {}};
    require(n >= 1 && d >= 1, "the dictionary must have at least one atom and one dimension");
    require(all_finite(D_.atoms, n * d), "the dictionary must be finite");
    if (gram) {
      require(int64_t(gram->shape(0)) == n && int64_t(gram->shape(1)) == n, "the Gram matrix must be atoms x atoms");
      require(all_finite(D_.gram, n * n), "the Gram matrix must be finite");
    }
    for (int64_t j = 0; j < n; ++j) D_.squares.push_back(inner_product(D_.atoms + j * d, D_.atoms + j * d, d));
  }
  const Dictionary& view() const { return D_; }

 private:
  In2<double> atoms_;
  std::optional<In2<double>> gram_;
  Dictionary D_;
};

int64_t check_signals_of(const Dictionary& D, const In2<double>& signals, const In2<double>& correlations,
                         const In1<double>& targets, const std::optional<In1<int64_t>>& barred) {
  const int64_t n = int64_t(signals.shape(0));
  require(int64_t(signals.shape(1)) == D.d, "signals and atoms must have one length");
  require(int64_t(correlations.shape(0)) == n && int64_t(correlations.shape(1)) == D.n,
          "correlations must be signals x atoms");
  require(int64_t(targets.shape(0)) == n, "there must be a target for each signal");
  require(all_finite(signals.data(), n * D.d), "signals must be finite");
  require(all_finite(correlations.data(), n * D.n), "correlations must be finite");
  for (int64_t i = 0; i < n; ++i)
    require(std::isfinite(targets.data()[i]) && targets.data()[i] >= 0, "targets must be finite and not negative");
  if (barred) {
    require(int64_t(barred->shape(0)) == n, "there must be a barred atom, or -1, for each signal");
    for (int64_t i = 0; i < n; ++i)
      require(barred->data()[i] >= -1 && barred->data()[i] < D.n, "a barred atom is out of range");
  }
  return n;
}

// indptr, atoms, values; residual norms, penalties, gaps, steps, status of each signal.
using Result =
    std::tuple<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object>;

Result as_csr(std::vector<Code>&& codes) {
  std::vector<int64_t> indptr{0}, atoms, steps;
  std::vector<double> values, residuals, penalties, gaps;
  std::vector<int32_t> status;
  std::vector<std::pair<int64_t, double>> row;
  for (Code& code : codes) {
    row.clear();
    for (size_t i = 0; i < code.atoms.size(); ++i) row.emplace_back(code.atoms[i], code.values[i]);
    std::sort(row.begin(), row.end());
    for (const auto& [atom, value] : row) {
      if (value == 0) continue;
      atoms.push_back(atom);
      values.push_back(value);
    }
    indptr.push_back(int64_t(atoms.size()));
    residuals.push_back(code.residual);
    penalties.push_back(code.penalty);
    gaps.push_back(code.gap);
    steps.push_back(code.steps);
    status.push_back(code.status);
    code = {};
  }
  return {to_numpy(std::move(indptr)),    to_numpy(std::move(atoms)),     to_numpy(std::move(values)),
          to_numpy(std::move(residuals)), to_numpy(std::move(penalties)), to_numpy(std::move(gaps)),
          to_numpy(std::move(steps)),     to_numpy(std::move(status))};
}

// Calls code(worker, i) for all signals; a worker serves a few signals, one after the other.
template <class Make, class Work> std::vector<Code> code_all(int64_t n, int threads, Make make, Work work) {
  constexpr int64_t kSignals = 16;
  std::vector<Code> codes{size_t(n)};
  in_parallel((n + kSignals - 1) / kSignals, threads, [&](int64_t part) {
    auto worker = make();
    for (int64_t i = part * kSignals; i < std::min(n, (part + 1) * kSignals); ++i) codes[size_t(i)] = work(worker, i);
  });
  return codes;
}

Result greedy_codes(const CodeDictionary& dictionary, In2<double> signals, In2<double> correlations,
                    In1<double> tolerances, std::optional<In1<int64_t>> barred, int64_t n_nonzero, bool order_recursive,
                    bool positive, int threads) {
  const Dictionary& D = dictionary.view();
  const int64_t n = check_signals_of(D, signals, correlations, tolerances, barred);
  require(n_nonzero >= 1, "n_nonzero must be at least 1");
  require(!(order_recursive && positive), "order-recursive pursuit has no non-negative form");
  const int n_threads = thread_count(threads);
  std::vector<Code> codes;
  {
    nb::gil_scoped_release release;
    const GreedySettings settings{order_recursive, positive, n_nonzero};
    codes = code_all(
        n, n_threads, [&] { return Greedy(D, settings); },
        [&](Greedy& worker, int64_t i) {
          const double *x = signals.data() + i * D.d, *c = correlations.data() + i * D.n, tol = tolerances.data()[i];
          const int64_t without = barred ? barred->data()[i] : -1;
          return positive ? worker.run_positive(x, c, tol, without) : worker.run(x, c, tol, without);
        });
  }
  return as_csr(std::move(codes));
}

Result l1_codes(const CodeDictionary& dictionary, In2<double> signals, In2<double> correlations, In1<double> targets,
                std::optional<In1<int64_t>> barred, bool to_residual, bool positive, int64_t max_steps, int threads) {
  const Dictionary& D = dictionary.view();
  const int64_t n = check_signals_of(D, signals, correlations, targets, barred);
  require(max_steps >= 1, "max_steps must be at least 1");
  const int n_threads = thread_count(threads);
  std::vector<Code> codes;
  {
    nb::gil_scoped_release release;
    codes = code_all(
        n, n_threads, [&] { return Homotopy(D, positive, to_residual, max_steps); },
        [&](Homotopy& worker, int64_t i) {
          return worker.run(signals.data() + i * D.d, correlations.data() + i * D.n, targets.data()[i],
                            barred ? barred->data()[i] : -1);
        });
  }
  return as_csr(std::move(codes));
}

}  // namespace

void bind_sparse_codes(nb::module_& m) {
  nb::class_<CodeDictionary>(m, "CodeDictionary", "Checked atoms and, where they were computed, their inner products.")
      .def(nb::init<In2<double>, std::optional<In2<double>>>(), "atoms"_a.noconvert(), "gram"_a.noconvert().none());
  m.def("greedy_codes", &greedy_codes, "dictionary"_a, "signals"_a.noconvert(), "correlations"_a.noconvert(),
        "tolerances"_a.noconvert(), "barred"_a.noconvert().none(), "n_nonzero"_a, "order_recursive"_a, "positive"_a,
        "threads"_a);
  m.def("l1_codes", &l1_codes, "dictionary"_a, "signals"_a.noconvert(), "correlations"_a.noconvert(),
        "targets"_a.noconvert(), "barred"_a.noconvert().none(), "to_residual"_a, "positive"_a, "max_steps"_a,
        "threads"_a);
}

}  // namespace mercer
