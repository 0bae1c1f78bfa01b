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

// The lower Cholesky factor of the inner products of the support, by columns: solving, growing and shrinking it are sums
// of columns, which vectors do well.
class SupportFactor {
 public:
  int64_t size() const { return int64_t(inverse_.size()); }
  void clear() { inverse_.clear(); }
  // z = L⁻¹ z.
  void forward_solve(double* z, int64_t from = 0) const {
    for (int64_t m = from; m < size(); ++m) {
      z[m] *= inverse_[size_t(m)];
      add_row(column(m) + m + 1, -z[m], z + m + 1, size() - m - 1);
    }
  }
  // z = L⁻ᵀ z.
  void back_solve(double* z) const {
    for (int64_t m = size() - 1; m >= 0; --m)
      z[m] = (z[m] - inner_product(column(m) + m + 1, z + m + 1, size() - m - 1)) * inverse_[size_t(m)];
  }
  // A row below: y = L⁻¹ g and the diagonal.
  void append(const double* y, double diagonal) {
    const int64_t k = size();
    if (k == stride_) widen();
    for (int64_t m = 0; m < k; ++m) columns_[size_t(m * stride_ + k)] = y[m];
    columns_[size_t(k * stride_ + k)] = diagonal;
    inverse_.push_back(1 / diagonal);
  }
  // Without row i: the columns after it take up column i by rotations, and so do the entries of z = L⁻¹ s.
  void remove(int64_t i, std::vector<double>& z) {
    const int64_t k = size();
    std::vector<double>& l = scratch_;
    l.assign(column(i) + i + 1, column(i) + k);
    for (int64_t m = 0; m < i; ++m) {
      double* c = &columns_[size_t(m * stride_)];
      std::memmove(c + i, c + i + 1, size_t(k - i - 1) * sizeof(double));
    }
    double rest = z[size_t(i)];
    for (int64_t m = i + 1; m < k; ++m) {
      const double *from = column(m) + m, a = from[0], b = l[size_t(m - i - 1)], length = std::hypot(a, b);
      const double c = a / length, s = b / length;
      double* to = &columns_[size_t((m - 1) * stride_ + m - 1)];
      to[0] = length;
      loops<SparseCodeLoops>().rotate(from + 1, l.data() + (m - i), c, s, to + 1, k - m - 1);
      inverse_[size_t(m - 1)] = 1 / length;
      const double value = z[size_t(m)];
      z[size_t(m - 1)] = c * value + s * rest;
      rest = c * rest - s * value;
    }
    inverse_.pop_back();
    z.pop_back();
  }

 private:
  const double* column(int64_t m) const { return columns_.data() + m * stride_; }
  void widen() {
    const int64_t wide = std::max(int64_t(32), 2 * stride_), k = size();
    std::vector<double> columns(size_t(wide * wide));
    for (int64_t m = 0; m < k; ++m) std::copy(column(m) + m, column(m) + k, columns.begin() + m * wide + m);
    columns_ = std::move(columns);
    stride_ = wide;
  }

  int64_t stride_ = 0;
  std::vector<double> columns_, inverse_, scratch_;
};

// What changes along the path.
struct PathState {
  std::vector<int64_t> atoms, dependent;
  std::vector<double> signs, values;
  double lambda = 0, rss = 0, left_sign = 0;
  int64_t left = -1, steps = 0;
};

// A step needs the slopes of all correlations that may reach ±λ, which few atoms do: a stretch of the path is walked with
// those whose correlations are at least a share of λ, and all others are looked at when it ends. Where one of them went
// beyond λ, the stretch is walked again with it. A state in which all correlations are within ±λ is a solution, whatever
// was left out on the way.
constexpr int64_t kStretch = 24;       // steps; also ends where λ fell to a share of its value at the start
constexpr double kFallen = 0.7;        // that share
constexpr double kNearJoining = 0.55;  // of λ
constexpr int64_t kFewAtoms = 128;     // of which none are left out

class Homotopy {
 public:
  Homotopy(const Dictionary& D, bool positive, bool to_residual, int64_t max_steps)
      : D_(D), positive_(positive), to_residual_(to_residual), max_steps_(max_steps) {
    c_.resize(size_t(D.n));
    barred_.resize(size_t(D.n));
    zero_.assign(size_t(D.n), 0.0);
    place_.resize(size_t(D.n));
  }

  // target: λ, or ε if the path ends at a residual.
  Code run(const double* x, const double* correlations, double target, int64_t barred) {
    Code code;
    x_ = x, correlations_ = correlations, target_ = target;
    squared_ = inner_product(x, x, D_.d);
    std::copy(correlations, correlations + D_.n, c_.begin());
    std::fill(barred_.begin(), barred_.end(), 0.0);
    if (barred >= 0) barred_[size_t(barred)] = kInfinity;
    own_.clear();
    S_.atoms.clear(), S_.dependent.clear(), S_.signs.clear(), S_.values.clear(), forward_.clear();
    factor_.clear();
    S_.left = -1, S_.steps = 0, S_.rss = squared_;
    const int64_t first = largest_correlation();
    S_.lambda = start_ = first < 0 ? 0.0 : std::fabs(c_[size_t(first)]);
    bool reached = to_residual_ ? squared_ <= target * target : S_.lambda <= target;
    if (!reached && start_ > 0) {
      choose_all();
      join(first, c_[size_t(first)] < 0 ? -1.0 : 1.0);
    }
    while (!reached && !S_.atoms.empty() && S_.lambda > kTiny * start_) {
      if (S_.steps >= max_steps_) {
        code.status |= kStepLimit;
        break;
      }
      reached = D_.gram && D_.n > kFewAtoms ? stretch() : walk(max_steps_, 0.0);
    }
    code.steps = S_.steps;
    finish(code, reached, barred);
    return code;
  }

 private:
  int64_t size() const { return int64_t(S_.atoms.size()); }
  int64_t chosen() const { return int64_t(members_.size()); }

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

  // ---- the atoms that are looked at

  void choose_all() {
    members_.resize(size_t(D_.n));
    for (int64_t j = 0; j < D_.n; ++j) members_[size_t(j)] = j;
    look_at_members();
  }

  void choose(double least) {
    members_.clear();
    for (int64_t j = 0; j < D_.n; ++j)
      if ((positive_ ? c_[size_t(j)] : std::fabs(c_[size_t(j)])) >= least || barred_[size_t(j)] > 0 ||
          place_[size_t(j)] == -2)
        members_.push_back(j);
    look_at_members();
  }

  // Their correlations, and their parts of the rows of the Gram matrix.
  void look_at_members() {
    std::fill(place_.begin(), place_.end(), -1);
    for (int64_t i = 0; i < chosen(); ++i) place_[size_t(members_[size_t(i)])] = i;
    near_c_.resize(members_.size()), near_barred_.resize(members_.size()), direction_.resize(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
      near_c_[i] = c_[size_t(members_[i])];
      near_barred_[i] = barred_[size_t(members_[i])];
    }
    rows_.clear();
    if (!D_.gram) {
      for (const auto& row : own_) rows_.push_back(row.data());
      return;
    }
    own_used_ = 0;
    for (const int64_t j : S_.atoms) rows_.push_back(row_of(j));
  }

  const double* row_of(int64_t j) {
    if (!D_.gram) {
      own_.emplace_back(size_t(D_.n));
      inner_products(D_, j, own_.back().data());
      return own_.back().data();
    }
    const double* row = D_.gram + j * D_.n;
    if (chosen() == D_.n) return row;
    if (own_used_ == own_.size()) own_.emplace_back();
    std::vector<double>& part = own_[own_used_++];
    part.resize(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) part[i] = row[members_[i]];
    return part.data();
  }

  void bar(int64_t j, double value) {
    barred_[size_t(j)] = value;
    if (place_[size_t(j)] >= 0) near_barred_[size_t(place_[size_t(j)])] = value;
  }

  // Walks a stretch; returns whether the end of the path was reached.
  bool stretch() {
    const PathState before = S_;
    const std::vector<double> c_before = c_, barred_before = barred_;
    double share = kNearJoining;
    std::vector<int64_t> missed;
    while (true) {
      for (const int64_t j : missed) place_[size_t(j)] = -2;
      choose(share * S_.lambda);
      const bool reached = walk(S_.steps + kStretch, kFallen * S_.lambda);
      residual_correlations();
      if (chosen() == D_.n) return reached;
      const double limit = S_.lambda * (1 + 1e-9) + kTiny * start_;
      missed.clear();
      bool beyond = false;
      for (int64_t j = 0; j < D_.n; ++j) {
        if (place_[size_t(j)] >= 0) continue;
        const double value = positive_ ? c_[size_t(j)] : std::fabs(c_[size_t(j)]);
        beyond |= value > limit;
        if (value > 0.9 * limit) missed.push_back(j);
      }
      if (!beyond) return reached;
      S_ = before, c_ = c_before, barred_ = barred_before;
      factorise_support();
      share *= 0.5;
      if (share < 0.2) share = 0.0;
    }
  }

  void factorise_support() {
    factor_.clear();
    forward_.clear();
    std::vector<double>& y = scratch_;
    for (int64_t k = 0; k < size(); ++k) {
      const double* row = D_.gram + S_.atoms[size_t(k)] * D_.n;
      y.resize(size_t(k) + 1);
      for (int64_t i = 0; i < k; ++i) y[size_t(i)] = row[S_.atoms[size_t(i)]];
      factor_.forward_solve(y.data());
      const double pivot = D_.squares[size_t(S_.atoms[size_t(k)])] - inner_product(y.data(), y.data(), k);
      factor_.append(y.data(), std::sqrt(std::max(pivot, 0.1 * kDependent * D_.squares[size_t(S_.atoms[size_t(k)])])));
    }
    forward_ = S_.signs;
    factor_.forward_solve(forward_.data());
  }

  // c = Φᵀ(x − Φa), exact for the support.
  void residual_correlations() {
    full_rows_.clear();
    for (const int64_t j : S_.atoms) full_rows_.push_back(D_.gram + j * D_.n);
    loops<SparseCodeLoops>().combine_rows(correlations_, full_rows_.data(), S_.values.data(), size(), 1.0, c_.data(),
                                          D_.n);
    for (int64_t i = 0; i < size(); ++i) c_[size_t(S_.atoms[size_t(i)])] = S_.signs[size_t(i)] * S_.lambda;
  }

  // ---- steps

  bool walk(int64_t last_step, double last_lambda) {
    while (!S_.atoms.empty() && S_.lambda > last_lambda && S_.steps < std::min(last_step, max_steps_)) {
      ++S_.steps;
      if (advance()) return true;
      if (S_.lambda <= kTiny * start_) break;
    }
    return false;
  }

  // Goes to the next place where an atom joins or leaves. Returns whether the end of the path was reached.
  bool advance() {
    const int64_t k = size();
    const double curvature = inner_product(forward_.data(), forward_.data(), k), lambda = S_.lambda;
    w_ = forward_;
    factor_.back_solve(w_.data());
    for (double& value : w_) value = -value;
    loops<SparseCodeLoops>().combine_rows(zero_.data(), rows_.data(), w_.data(), k, 1.0, direction_.data(), chosen());
    for (double& value : w_) value = -value;
    double step = lambda;
    bool ends = false;
    if (to_residual_) {
      const double inside = lambda * lambda - (S_.rss - target_ * target_) / curvature;
      if (inside >= 0 && lambda - std::sqrt(inside) <= step)
        step = std::max(0.0, lambda - std::sqrt(inside)), ends = true;
    } else {
      step = std::max(0.0, lambda - target_);
      ends = true;
    }
    int64_t leaves = -1, joins = -1;
    double sign = 1.0;
    for (int64_t i = 0; i < k; ++i) {
      const double slope = w_[size_t(i)], value = S_.values[size_t(i)];
      if (slope * S_.signs[size_t(i)] < 0 && -value / slope < step) step = std::max(0.0, -value / slope), leaves = i;
    }
    find_join(step, joins, sign);
    ends = ends && leaves < 0 && joins < 0;
    S_.rss += step * (step - 2 * lambda) * curvature;
    add_row(w_.data(), step, S_.values.data(), k);
    loops<SparseCodeLoops>().move_along(near_c_.data(), direction_.data(), step, chosen());
    S_.lambda -= step;
    for (int64_t i = 0; i < k; ++i)
      near_c_[size_t(place_[size_t(S_.atoms[size_t(i)])])] = S_.signs[size_t(i)] * S_.lambda;
    if (to_residual_ && S_.rss <= kSmall * squared_)
      S_.rss = residual_of(D_, x_, S_.atoms, S_.values.data(), residual_);
    S_.left = -1;
    if (ends) return true;
    if (S_.lambda <= kTiny * start_) return false;
    if (joins >= 0)
      join(joins, sign);
    else if (leaves >= 0)
      leave(leaves);
    poll_signals((k + 4) * chosen());
    return false;
  }

  // The first atom outside whose correlation meets ±λ, if one does within the step.
  void find_join(double& step, int64_t& joins, double& sign) const {
    constexpr int64_t kScan = 64;
    const int64_t left = S_.left < 0 ? -1 : place_[size_t(S_.left)];
    const double lambda = S_.lambda;
    for (int64_t first = 0; first < chosen(); first += kScan) {
      const int64_t n = std::min(kScan, chosen() - first);
      if (loops<SparseCodeLoops>().join_slack(near_c_.data() + first, direction_.data() + first,
                                              near_barred_.data() + first, lambda, step, positive_ ? kInfinity : 0.0,
                                              n) >= 0)
        continue;
      for (int64_t j = first; j < first + n; ++j) {
        if (near_barred_[size_t(j)] > 0) continue;
        const double c = near_c_[size_t(j)], a = direction_[size_t(j)];
        const bool up = !(j == left && S_.left_sign > 0), down = !positive_ && !(j == left && S_.left_sign < 0);
        const double above = std::max(lambda - c, 0.0), below = std::max(lambda + c, 0.0);
        if (up && above < step * (1.0 - a)) step = above / (1.0 - a), joins = members_[size_t(j)], sign = 1.0;
        if (down && below < step * (1.0 + a)) step = below / (1.0 + a), joins = members_[size_t(j)], sign = -1.0;
      }
    }
  }

  void join(int64_t j, double sign) {
    const double* row = row_of(j);
    const int64_t k = size();
    std::vector<double>& y = scratch_;
    y.resize(size_t(k) + 1);
    for (int64_t i = 0; i < k; ++i) y[size_t(i)] = row[place_[size_t(S_.atoms[size_t(i)])]];
    factor_.forward_solve(y.data());
    const double pivot = D_.squares[size_t(j)] - inner_product(y.data(), y.data(), k);
    bar(j, kInfinity);
    if (pivot <= kDependent * D_.squares[size_t(j)]) {  // it moves with the others until one of them leaves
      S_.dependent.push_back(j);
      if (!D_.gram) own_.pop_back();
      return;
    }
    const double diagonal = std::sqrt(pivot);
    factor_.append(y.data(), diagonal);
    forward_.push_back((sign - inner_product(y.data(), forward_.data(), k)) / diagonal);
    S_.atoms.push_back(j);
    S_.signs.push_back(sign);
    S_.values.push_back(0.0);
    rows_.push_back(row);
  }

  void leave(int64_t i) {
    const int64_t j = S_.atoms[size_t(i)];
    S_.left = j;
    S_.left_sign = S_.signs[size_t(i)];
    bar(j, 0.0);
    for (const int64_t other : S_.dependent) bar(other, 0.0);
    S_.dependent.clear();
    factor_.remove(i, forward_);
    S_.atoms.erase(S_.atoms.begin() + i);
    S_.signs.erase(S_.signs.begin() + i);
    S_.values.erase(S_.values.begin() + i);
    rows_.erase(rows_.begin() + i);
    if (!D_.gram) own_.erase(own_.begin() + i);
  }

  // The values of the support from its equations, and the duality gap.
  void finish(Code& code, bool reached, int64_t barred) {
    const int64_t k = size();
    double lambda = S_.lambda;
    std::vector<double> z;
    for (const int64_t j : S_.atoms) z.push_back(correlations_[j]);
    factor_.forward_solve(z.data());
    factor_.back_solve(z.data());
    w_ = forward_;
    factor_.back_solve(w_.data());
    const double curvature = inner_product(forward_.data(), forward_.data(), k);
    if (!reached) {
      lambda = std::max(lambda, 0.0);
    } else if (!to_residual_) {
      lambda = target_;
    } else if (k) {
      const double rest = residual_of(D_, x_, S_.atoms, z.data(), residual_);
      lambda = curvature > 0 ? std::sqrt(std::max(target_ * target_ - rest, 0.0) / curvature) : 0.0;
    }
    for (int64_t i = 0; i < k; ++i) {
      const double value = z[size_t(i)] - lambda * w_[size_t(i)];
      if (value * S_.signs[size_t(i)] <= 0) continue;
      code.atoms.push_back(S_.atoms[size_t(i)]);
      code.values.push_back(value);
    }
    const double rss = residual_of(D_, x_, code.atoms, code.values.data(), residual_);
    code.residual = std::sqrt(rss);
    code.penalty = lambda;
    if (to_residual_ && code.residual > target_ * (1 + 1e-7)) code.status |= kUnreached;
    certify(code, rss, barred);
  }

  // lasso: P(a) − D(θ) over ½‖x‖²; with a residual: ‖a‖₁ − (⟨x, y⟩ − ε‖y‖) over ‖a‖₁; θ and y multiples of r.
  void certify(Code& code, double rss, int64_t barred) {
    if (D_.gram) {
      full_rows_.clear();
      for (const int64_t j : code.atoms) full_rows_.push_back(D_.gram + j * D_.n);
      loops<SparseCodeLoops>().combine_rows(correlations_, full_rows_.data(), code.values.data(),
                                            int64_t(full_rows_.size()), 1.0, c_.data(), D_.n);
    } else {
      for (int64_t i = 0; i < D_.n; ++i) c_[size_t(i)] = inner_product(D_.atoms + i * D_.d, residual_.data(), D_.d);
    }
    if (barred >= 0) c_[size_t(barred)] = 0.0;
    double most = 0.0, norm = 0.0;
    for (int64_t j = 0; j < D_.n; ++j) most = std::max(most, positive_ ? c_[size_t(j)] : std::fabs(c_[size_t(j)]));
    for (const double value : code.values) norm += std::fabs(value);
    const double inner = inner_product(x_, residual_.data(), D_.d);
    if (!to_residual_) {
      const double scale = most > target_ ? target_ / most : 1.0;
      const double dual = scale * inner - 0.5 * scale * scale * rss, primal = 0.5 * rss + target_ * norm;
      code.gap = squared_ > 0 ? std::max(0.0, primal - dual) / (0.5 * squared_) : 0.0;
    } else {
      const double lower = most > 0 ? (inner - target_ * std::sqrt(rss)) / most : 0.0;
      code.gap = norm > 0 ? std::max(0.0, norm - lower) / norm : 0.0;
    }
  }

  const Dictionary& D_;
  const bool positive_, to_residual_;
  const int64_t max_steps_;
  PathState S_;
  SupportFactor factor_;
  std::vector<double> forward_;  // L⁻¹ of the signs
  double squared_ = 0, start_ = 0, target_ = 0;
  const double *x_ = nullptr, *correlations_ = nullptr;
  std::vector<int64_t> members_, place_;  // atoms that are looked at; where an atom is among them, or −1
  std::vector<double> near_c_, near_barred_, direction_;  // of these
  std::vector<double> c_, barred_, zero_;                 // of all atoms
  std::vector<double> w_, scratch_, residual_;
  std::vector<const double*> rows_, full_rows_;
  std::vector<std::vector<double>> own_;
  size_t own_used_ = 0;
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
