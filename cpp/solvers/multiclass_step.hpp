// One example of the multiclass margin machine (solvers/multiclass_dual.hpp): its scores, its share of the gap, the exact maximum of
// D over its dual variables α_i, and the change of W that follows.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "solvers/multiclass_loops.hpp"
#include "structures/linear.hpp"

namespace mercer::MERCER_ARCH {

// z = Σ_k value(k) w[feature(k)]: two running sums for each vector of labels hide the latency of the additions.
template <int NV, class T> inline void label_scores_block(const Row<T>& x, const double* w, int64_t stride, double* z) {
  constexpr int L = kLanes<double>;
  Vec<double> even[NV] = {}, odd[NV] = {};
  int64_t k = 0;
  for (; k + 1 < x.size; k += 2) {
    const double *a = w + x.feature(k) * stride, *b = w + x.feature(k + 1) * stride;
    const double u = x.value(k), v = x.value(k + 1);
    for (int j = 0; j < NV; ++j) even[j] += u * load(a + j * L);
    for (int j = 0; j < NV; ++j) odd[j] += v * load(b + j * L);
  }
  if (k < x.size) {
    const double *a = w + x.feature(k) * stride, u = x.value(k);
    for (int j = 0; j < NV; ++j) even[j] += u * load(a + j * L);
  }
  for (int j = 0; j < NV; ++j) store(z + j * L, even[j] + odd[j]);
}
// Σ_k value(k) u[feature(k)] and its adjoint: of two labels only the weights of the second are kept, the first has the
// opposite ones.
template <class T> inline double pair_score(const Row<T>& x, const double* u) {
  constexpr int kSums = 16;
  double sums[kSums] = {};
  int64_t k = 0;
  if (!x.indices) {
    for (; k + kSums <= x.size; k += kSums)
      for (int j = 0; j < kSums; ++j) sums[j] += double(x.values[k + j]) * u[k + j];
  } else {
    for (; k + 4 <= x.size; k += 4)
      for (int j = 0; j < 4; ++j) sums[j] += x.value(k + j) * u[x.indices[k + j]];
  }
  for (; k < x.size; ++k) sums[k % 4] += x.value(k) * u[x.feature(k)];
  for (int half = kSums / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}
template <class T> inline void pair_update(const Row<T>& x, double* u, double delta) {
  if (!x.indices)
    for (int64_t k = 0; k < x.size; ++k) u[k] += double(x.values[k]) * delta;
  else
    for (int64_t k = 0; k < x.size; ++k) u[x.indices[k]] += x.value(k) * delta;
}

// Reads whole vectors: up to a vector past the last weight (the memory has room), and what lies beyond the labels is
// noise.
template <class T>
inline void label_scores(const Row<T>& x, const double* w, int64_t stride, int64_t width, double* z) {
  constexpr int L = kLanes<double>;
  if (stride == 1) {
    z[1] = pair_score(x, w);
    z[0] = -z[1];
    return;
  }
  for (int64_t c = 0; c < width; c += 4 * L) {
    switch (std::min<int64_t>((width - c) / L, 4)) {
      case 4: label_scores_block<4>(x, w + c, stride, z + c); break;
      case 3: label_scores_block<3>(x, w + c, stride, z + c); break;
      case 2: label_scores_block<2>(x, w + c, stride, z + c); break;
      case 1: label_scores_block<1>(x, w + c, stride, z + c); break;
    }
  }
}

// w[feature(k)] += value(k) δ; δ is 0 beyond the labels, so whole vectors may be written.
template <class T>
inline void label_update(const Row<T>& x, double* w, int64_t stride, int64_t width, const double* delta) {
  constexpr int L = kLanes<double>;
  if (stride == 1) return pair_update(x, w, delta[1]);
  for (int64_t k = 0; k < x.size; ++k) {
    double* row = w + x.feature(k) * stride;
    const double v = x.value(k);
    for (int64_t c = 0; c < width; c += L) store(row + c, load(row + c) + v * load(delta + c));
  }
}

template <class T> inline void fetch_row(const Rows<T>& rows, int64_t i, const double* w, int64_t stride) {
  if (!rows.indptr) return;
  const Row<T> x = row_of(rows, i);
  for (int64_t k = 0; k < x.size; ++k)
    for (int64_t c = 0; c < stride; c += 8) fetch(w + x.indices[k] * stride + c);
}

// The work of one shard (or of one thread of a check): visits examples on its own weights.
class MarginShard {
 public:
  // A shard without weights of its own is given scores, and gives the change of W as a factor of x_i.
  template <class T>
  MarginShard(const MarginProblem<T>& problem, MarginState& state, double* w, bool merges)
      : MarginShard(static_cast<const MarginTerms&>(problem), state, w, merges,
                    merges && w && problem.rows.indptr ? problem.rows.n_columns : 0) {}
  MarginShard(const MarginTerms& terms, MarginState& state, double* w, bool merges, int64_t marks)
      : p_(terms),
        s_(state),
        w_(w),
        width_(padded(terms.C)),
        merges_(merges),
        scores_(width_),
        gains_(width_, -std::numeric_limits<double>::infinity()),
        before_(width_, 0.0),
        after_(width_, 0.0),
        marks_(size_t(marks), 0) {}

  // gap_i at these weights.
  template <class T> double gap(const Rows<T>& rows, int64_t i) {
    label_scores(row_of(rows, i), w_, s_.stride, width_, scores_.data());
    return gap(i, scores_.data());
  }
  // The same for scores that are known.
  double gap(int64_t i, const double* scores) {
    const double* cost = s_.costs.data() + p_.labels[i] * width_;
    Vec<double> top = splat(-std::numeric_limits<double>::infinity());
    for (int64_t c = 0; c < width_; c += kLanes<double>) {
      const Vec<double> g = load(cost + c) + load(scores + c);
      store(gains_.data() + c, g);
      top = vmax<double>(top, g);
    }
    // Sums of terms that are not negative, so that a gap close to 0 is as exact as the scores.
    const double U = p_.upper[i], best = largest<double>(top);
    violation_ = best - gains_[p_.labels[i]];
    double total = 0;
    mass_ = 0;
    for (const auto& [c, a] : s_.alpha[i]) {
      total += a * (best - gains_[c]);
      mass_ += a;
    }
    if (!p_.squared) return total + std::max(0.0, U - mass_) * violation_;
    const double rest = 2 * U * violation_ - mass_;
    return total + rest * rest / (4 * U);
  }
  // At a vertex of the simplex there is nothing to do but to stay, if the gap is 0.
  bool at_rest(int64_t i, double gap) const {
    const auto& a = s_.alpha[i];
    return gap <= 0 && (a.empty() || (a.size() == 1 && !p_.squared && a[0].second >= p_.upper[i]));
  }
  double violation() const { return violation_; }

  // Maximises D over α_i; the gap before.
  template <class T> double visit(const Rows<T>& rows, int64_t i) {
    if (s_.stride == 1) return visit_pair(row_of(rows, i), i);
    const double before = gap(rows, i);
    if (!(before > 0)) return 0.0;
    maximise(i);
    write(row_of(rows, i));
    return before;
  }
  // The same with W's change left as x_i ⊗ delta; delta is not touched where there is no change.
  double visit(int64_t i, const double* scores, double* delta) {
    const double before = gap(i, scores);
    if (!(before > 0)) return 0.0;
    maximise(i);
    hand_over(delta);
    return before;
  }

  // α_i goes on by `reach` times its change since the last extrapolation.
  template <class T> void extrapolate(const Rows<T>& rows, int64_t i, double reach) {
    if (move_on(i, reach)) write(row_of(rows, i));
  }
  bool extrapolate(int64_t i, double reach, double* delta) {
    if (!move_on(i, reach)) return false;
    hand_over(delta);
    return true;
  }

  // D's slope and curvature along this shard's changes of α, apart from -½‖W‖².
  double slope = 0, curvature = 0;

  bool marked(int32_t f) const { return marks_[f]; }
  template <class T> void mark(const Row<T>& x) {
    if (marks_.empty()) return;
    for (int64_t k = 0; k < x.size; ++k) marks_[x.indices[k]] = 1;
  }
  // α of the examples since the last merge at the given step between before (0) and now (1).
  void shorten(double step) {
    size_t at = 0;
    for (const auto& [i, count] : changed_) {
      for (const auto& [c, a] : s_.alpha[i]) after_[c] = step * a;
      for (size_t k = at; k < at + count; ++k) after_[old_[k].first] += (1 - step) * old_[k].second;
      at += count;
      auto& block = s_.alpha[i];
      block.clear();
      for (int c = 0; c < p_.C; ++c)
        if (after_[c] > 0) block.emplace_back(c, after_[c]);
      std::fill(after_.begin(), after_.end(), 0.0);
    }
  }
  void forget() {
    std::fill(marks_.begin(), marks_.end(), 0);
    changed_.clear();
    old_.clear();
    slope = curvature = 0;
  }

 private:
  // The same with two labels, in numbers instead of vectors: one dual variable, in [0, U] or (squared) in [0, ∞).
  template <class T> double visit_pair(const Row<T>& x, int64_t i) {
    const int y = p_.labels[i], other = 1 - y;
    const double z = pair_score(x, w_), sign = y ? 1.0 : -1.0, U = p_.upper[i], q = 2 * s_.norms[i];
    auto& block = s_.alpha[i];
    const double a = block.empty() ? 0.0 : block[0].second, cost = s_.costs[y * width_ + other];
    const double lead = cost - 2 * sign * z;  // of the other label
    violation_ = std::max(0.0, lead);
    double before = a * (violation_ - lead);
    if (p_.squared) {
      const double rest = 2 * U * violation_ - a;
      before += rest * rest / (4 * U);
    } else {
      before += std::max(0.0, U - a) * violation_;
    }
    if (!(before > 0)) return 0.0;
    double now = U;
    if (p_.squared) {
      now = std::max(0.0, a + (lead - 0.5 * a / U) / (q + 0.5 / U));
      slope -= a * (now - a) / (2 * U);
      curvature += (now - a) * (now - a) / (2 * U);
    } else if (q > 0) {
      now = std::min(std::max(0.0, a + lead / q), U);
      if (now >= (1 - 1e-12) * U) now = U;  // a vertex is one to the last bit
    } else {
      now = lead > 0 ? U : 0.0;
    }
    slope += cost * (now - a);
    if (merges_) {
      changed_.emplace_back(i, block.size());
      old_.insert(old_.end(), block.begin(), block.end());
    }
    if (now > 0)
      block.assign(1, {other, now});
    else
      block.clear();
    pair_update(x, w_, sign * (now - a));
    mark(x);
    return before;
  }
  void maximise(int64_t i) {
    const double U = p_.upper[i], q = s_.norms[i];
    const int y = p_.labels[i];
    for (const auto& [c, a] : s_.alpha[i]) before_[c] = a;
    if (!p_.squared) before_[y] = U - mass_;
    const double mass = q > 0 ? (p_.squared ? solve_cone(y, U, q) : solve_simplex(U, q)) : solve_without_features(U);
    replace(i, y, mass);
  }
  bool move_on(int64_t i, double reach) {
    const std::pair<int32_t, double>*old = s_.old.data() + s_.old_starts[i],
                             *end = s_.old.data() + s_.old_starts[i + 1];
    const auto& block = s_.alpha[i];
    if (std::equal(block.begin(), block.end(), old, end)) return false;
    const int y = p_.labels[i];
    const double U = p_.upper[i];
    double old_mass = 0;
    mass_ = 0;
    std::fill(gains_.begin(), gains_.begin() + p_.C, 0.0);
    for (const auto& [c, a] : block) {
      before_[c] = a;
      gains_[c] = (1 + reach) * a;
      mass_ += a;
    }
    for (; old < end; ++old) {
      gains_[old->first] -= reach * old->second;
      old_mass += old->second;
    }
    double mass = U;
    if (p_.squared) {
      mass = clip(0.0, 1.0);
    } else {
      before_[y] = U - mass_;
      gains_[y] = U - mass_ - reach * (mass_ - old_mass);
      mass = onto_simplex(U, 1.0);
    }
    replace(i, y, mass);
    return true;
  }
  // The change of W is in `before`.
  template <class T> void write(const Row<T>& x) {
    label_update(x, w_, s_.stride, width_, before_.data());
    std::fill(before_.begin(), before_.end(), 0.0);
    mark(x);
  }
  void hand_over(double* delta) {
    std::copy(before_.begin(), before_.end(), delta);
    std::fill(before_.begin(), before_.end(), 0.0);
  }
  // Σ_c max(0, v_c - τ) = mass + rho τ by Newton's method from below: τ rises and labels leave until none does.
  double threshold(double tau, double mass, double rho) const {
    constexpr int L = kLanes<double>;
    for (double last = std::numeric_limits<double>::infinity();;) {
      Vec<double> total{}, count{};
      for (int64_t c = 0; c < width_; c += L) {
        const Vec<double> v = load(gains_.data() + c);
        total += v > splat(tau) ? v : Vec<double>{};
        count += v > splat(tau) ? splat(1.0) : Vec<double>{};
      }
      const double k = sum<double>(count);
      if (k >= last || k + rho <= 0) return tau;
      last = k;
      tau = (sum<double>(total) - mass) / (k + rho);
    }
  }
  // after = max(0, v - τ) / q; its sum.
  double clip(double tau, double q) {
    constexpr int L = kLanes<double>;
    Vec<double> total{};
    for (int64_t c = 0; c < width_; c += L) {
      const Vec<double> v = load(gains_.data() + c) - splat(tau), zero{};
      const Vec<double> a = (v > zero ? v : zero) / splat(q);
      store(after_.data() + c, a);
      total += a;
    }
    return sum<double>(total);
  }
  // Hinge: α = the projection of before + g / q onto the simplex of mass U.
  double solve_simplex(double U, double q) {
    for (int c = 0; c < p_.C; ++c) gains_[c] += q * before_[c];
    return onto_simplex(U, q);
  }
  double onto_simplex(double U, double q) {
    const double top = *std::max_element(gains_.begin(), gains_.begin() + p_.C);
    clip(threshold(top - q * U, q * U, 0.0), q);
    for (int c = 0; c < p_.C; ++c)  // a vertex is one to the last bit
      if (after_[c] > 0 && after_[c] >= (1 - 1e-12) * U) after_[c] = U;
    return U;
  }
  // Squared hinge: α_c = max(0, v_c - κ s) / q with s = Σ α, κ = q + 1 / (2 U), v_c = g_c - g_y + q (before_c + s
  // before).
  double solve_cone(int y, double U, double q) {
    const double kappa = q + 0.5 / U, shift = q * mass_ - gains_[y];
    for (int c = 0; c < p_.C; ++c) gains_[c] += shift + q * before_[c];
    gains_[y] = -std::numeric_limits<double>::infinity();
    return clip(threshold(0.0, 0.0, q / kappa), q);
  }
  // x_i = 0: all mass to the label with the highest cost.
  double solve_without_features(double U) {
    const int best = int(std::max_element(gains_.begin(), gains_.begin() + p_.C) - gains_.begin());
    const double mass = p_.squared ? 2 * U * violation_ : U;
    after_[best] = mass;
    return mass;
  }

  // after becomes α_i, before becomes the change of W's row: W += x ⊗ (s e_y - α), both taken as now less before.
  void replace(int64_t i, int y, double mass) {
    const double* cost = s_.costs.data() + y * width_;
    auto& block = s_.alpha[i];
    if (merges_) {
      changed_.emplace_back(i, block.size());
      old_.insert(old_.end(), block.begin(), block.end());
    }
    block.clear();
    for (int c = 0; c < p_.C; ++c) {
      const double a = after_[c];
      slope += cost[c] * (a - before_[c]);
      if (a > 0 && c != y) block.emplace_back(c, a);
      before_[c] -= a;
    }
    std::fill(after_.begin(), after_.end(), 0.0);
    if (!p_.squared) return;
    const double change = mass - mass_;
    before_[y] += change;
    slope -= mass_ * change / (2 * p_.upper[i]);
    curvature += change * change / (2 * p_.upper[i]);
  }

  const MarginTerms p_;
  MarginState& s_;
  double* w_;
  const int64_t width_;
  const bool merges_;
  AlignedVector<double> scores_, gains_, before_, after_;
  double violation_ = 0, mass_ = 0;
  std::vector<uint8_t> marks_;
  std::vector<std::pair<int64_t, size_t>> changed_;
  MarginState::Block old_;
};

}  // namespace mercer::MERCER_ARCH
