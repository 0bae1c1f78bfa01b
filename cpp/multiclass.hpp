// Dual ascent for the multiclass margin machine with costs
//
//   min_W  P(W) = ½‖W‖² + Σ_i U_i ξ_i        (hinge)   or   ½‖W‖² + Σ_i U_i ξ_i²   (squared hinge),
//   ξ_i = max_c [Δ(y_i, c) + ⟨w_c, x_i⟩ - ⟨w_{y_i}, x_i⟩]
//
// The dual has one block a example, α_i ≥ 0 over the labels. With W(α) = Σ_i x_i ⊗ (s_i e_{y_i} - α_i), s_i = Σ_c α_ic:
//
//   max_α  D(α) = Σ_ic α_ic Δ(y_i, c) - ½‖W(α)‖²            s_i = U_i                        (hinge)
//                                             - Σ_i s_i² / (4 U_i),  s_i free, α_{i,y_i} = 0   (squared hinge)
//
// One block at a time is solved exactly: a projection onto a simplex (hinge), or its like without the bound on the mass (squared
// hinge), whose threshold is found by Newton steps on a piecewise linear function. With g_c = Δ(y_i, c) + ⟨w_c, x_i⟩,
//
//   gap_i = U_i max_c g_c - ⟨α_i, g⟩ ≥ 0,   Σ_i gap_i = P(W(α)) - D(α):
//
// the gap is a sum over examples, so one pass over the data certifies it and shows the examples that still have work to do.
//
// Threads. An epoch's examples, in random order, are dealt to a number of shards that depends on the data alone. Each shard goes
// through a block of its examples on its own copy of W; then the changes of all are added, times the step in [0, 1] that is best for
// D (a quadratic along that line; 1 / shards already is an ascent, D being concave). So the result is the same for any number of threads.
//
// Extrapolation. Where U ‖x‖² is large, α needs many epochs to get where it goes, along nearly the same way. So every few epochs it
// is moved further along its change since, projected back to its domain, and again the best step towards that point is taken.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "linear.hpp"

namespace mercer::MERCER_ARCH {

constexpr int64_t kSmallWork = 1 << 17;  // weights: fewer, and walking them takes less time than waking a thread up

// SplitMix64: the next of a sequence of 64-bit numbers.
inline uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

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
// Reads whole vectors: up to a vector past the last weight (the memory has room), and what lies beyond the labels is noise.
template <class T> inline void label_scores(const Row<T>& x, const double* w, int64_t stride, int64_t width, double* z) {
  constexpr int L = kLanes<double>;
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
template <class T> class MarginShard {
 public:
  MarginShard(const MarginProblem<T>& problem, MarginState& state, double* w, bool merges)
      : p_(problem), s_(state), w_(w), width_(padded(problem.C)), merges_(merges),
        scores_(width_), gains_(width_, -std::numeric_limits<double>::infinity()), before_(width_, 0.0), after_(width_, 0.0) {
    if (merges_ && p_.rows.indptr) marks_.assign(p_.rows.n_columns, 0);
  }

  // gap_i at these weights.
  double gap(int64_t i) {
    const Row<T> x = row_of(p_.rows, i);
    label_scores(x, w_, s_.stride, width_, scores_.data());
    const double* cost = s_.costs.data() + p_.labels[i] * width_;
    Vec<double> top = splat(-std::numeric_limits<double>::infinity());
    for (int64_t c = 0; c < width_; c += kLanes<double>) {
      const Vec<double> g = load(cost + c) + load(scores_.data() + c);
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
  double visit(int64_t i) {
    const double before = gap(i), U = p_.upper[i];
    if (!(before > 0)) return 0.0;
    const int y = p_.labels[i];
    for (const auto& [c, a] : s_.alpha[i]) before_[c] = a;
    if (!p_.squared) before_[y] = U - mass_;
    const double q = s_.norms[i];
    const double mass = q > 0 ? (p_.squared ? solve_cone(y, U, q) : solve_simplex(U, q)) : solve_without_features(U);
    replace(i, y, mass);
    label_update(row_of(p_.rows, i), w_, s_.stride, width_, before_.data());
    std::fill(before_.begin(), before_.end(), 0.0);
    if (merges_) mark(i);
    return before;
  }

  // α_i goes on by `reach` times its change since the last extrapolation.
  void extrapolate(int64_t i, double reach) {
    const std::pair<int32_t, double>*old = s_.old.data() + s_.old_starts[i], *end = s_.old.data() + s_.old_starts[i + 1];
    const auto& block = s_.alpha[i];
    if (std::equal(block.begin(), block.end(), old, end)) return;
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
    label_update(row_of(p_.rows, i), w_, s_.stride, width_, before_.data());
    std::fill(before_.begin(), before_.end(), 0.0);
    mark(i);
  }

  // D's slope and curvature along this shard's changes of α, apart from -½‖W‖².
  double slope = 0, curvature = 0;

  bool marked(int32_t f) const { return marks_[f]; }
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
  // Squared hinge: α_c = max(0, v_c - κ s) / q with s = Σ α, κ = q + 1 / (2 U), v_c = g_c - g_y + q (before_c + s before).
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
  void mark(int64_t i) {
    if (!p_.rows.indptr) return;
    const Row<T> x = row_of(p_.rows, i);
    for (int64_t k = 0; k < x.size; ++k) marks_[x.indices[k]] = 1;
  }

  const MarginProblem<T>& p_;
  MarginState& s_;
  double* w_;
  const int64_t width_;
  const bool merges_;
  Buffer<double> scores_, gains_, before_, after_;
  double violation_ = 0, mass_ = 0;
  std::vector<uint8_t> marks_;
  std::vector<std::pair<int64_t, size_t>> changed_;
  MarginState::Block old_;
};

// W += step Σ_s (W_s - W) with the step that is best for D; all copies are equal again afterwards.
template <class T>
double merge_shards(const MarginProblem<T>& p, MarginState& s, std::vector<MarginShard<T>>& shards, int threads) {
  constexpr int64_t kParts = 16;
  const int64_t n_columns = p.rows.n_columns, width = s.stride;
  if (n_columns * width < kSmallWork) threads = 1;
  // Calls work(where, Σ_s (W_s - W) there) for the weights of the changed features of a part, a vector at a time. Rows shorter
  // than a vector are taken with what follows them: all features are walked then, or the vector reaches into unchanged ones.
  constexpr int L = kLanes<double>;
  const bool all = !p.rows.indptr || width % L != 0;
  const int64_t rows = all ? (n_columns * width + L - 1) / L : n_columns, row = all ? L : width;
  auto walk = [&](int64_t part, auto work) {
    for (int64_t f = rows * part / kParts; f < rows * (part + 1) / kParts; ++f) {
      bool changed = all;
      for (int a = 0; a < s.shards && !changed; ++a) changed = shards[a].marked(int32_t(f));
      if (!changed) continue;
      for (int64_t at = f * row; at < (f + 1) * row; at += L) {
        const Vec<double> w = load(s.w[0] + at);
        Vec<double> change{};
        for (int a = 1; a <= s.shards; ++a) change += load(s.w[a] + at) - w;
        work(at, w, change);
      }
    }
  };
  double along[kParts], squares[kParts];  // ⟨W, change⟩ and ‖change‖²
  in_parallel(kParts, threads, [&](int64_t part) {
    Vec<double> first{}, second{};
    walk(part, [&](int64_t, Vec<double> w, Vec<double> change) {
      first += w * change;
      second += change * change;
    });
    along[part] = sum<double>(first), squares[part] = sum<double>(second);
  });
  double slope = 0, curvature = 0;
  for (auto& shard : shards) slope += shard.slope, curvature += shard.curvature;
  for (int64_t part = 0; part < kParts; ++part) slope -= along[part], curvature += squares[part];
  const double step = curvature > 0 ? std::min(1.0, std::max(0.0, slope / curvature)) : 1.0;
  in_parallel(kParts, threads, [&](int64_t part) {
    walk(part, [&](int64_t at, Vec<double> w, Vec<double> change) {
      w += step * change;
      for (int a = 0; a <= s.shards; ++a) store(s.w[a] + at, w);
    });
  });
  for (auto& shard : shards) {
    if (step < 1) shard.shorten(step);
    shard.forget();
  }
  return step;
}

template <class T> void extrapolate(const MarginProblem<T>& p, MarginState& s, int threads) {
  constexpr int kEpochs = 8;
  const int64_t n = p.rows.n_rows;
  if (++s.since < kEpochs && !s.old_starts.empty()) return;
  if (!s.old_starts.empty()) {
    if (s.shards == 1) std::copy(s.w[0], s.w[0] + p.rows.n_columns * s.stride, s.w[1]);
    std::vector<MarginShard<T>> shards;
    for (int a = 0; a < s.shards; ++a) shards.emplace_back(p, s, s.w[a + 1], true);
    in_parallel(s.shards, threads, [&](int64_t a) {
      for (int64_t i = n * a / s.shards; i < n * (a + 1) / s.shards; ++i) shards[a].extrapolate(i, s.reach);
    });
    const double step = merge_shards(p, s, shards, threads);
    if (step >= 1) s.reach = std::min(2 * s.reach, 1024.0);
    else if (step < 0.5) s.reach = std::max(0.5 * s.reach, 1.0);
  }
  s.since = 0;
  s.old.clear();
  s.old_starts.assign(1, 0);
  for (const auto& block : s.alpha) {
    s.old.insert(s.old.end(), block.begin(), block.end());
    s.old_starts.push_back(int64_t(s.old.size()));
  }
}

// Room for the weights and the norms of the examples; α = the truth, W = 0.
template <class T> void multiclass_prepare(const MarginProblem<T>& p, const double* costs, MarginState& s) {
  const int64_t n = p.rows.n_rows, width = padded(p.C), C = p.C;
  // Rows of weights on whole cache lines, unless a row is shorter than half of one.
  s.stride = C <= 2 ? C : C <= 4 ? 4 : (C + 7) / 8 * 8;
  const int64_t size = (p.rows.n_columns * s.stride + width + 7) / 8 * 8, copies = s.shards + 1;
  s.memory.assign(size * (copies + 1) + 8, 0.0);
  double* first = s.memory.data();
  while (reinterpret_cast<uintptr_t>(first) % 64) ++first;
  for (int64_t a = 0; a < copies; ++a) s.w[a] = first + a * size;
  s.average = first + copies * size;
  s.costs.assign(C * width, -std::numeric_limits<double>::infinity());
  for (int64_t y = 0; y < C; ++y) std::copy(costs + y * C, costs + (y + 1) * C, s.costs.begin() + y * width);
  s.norms.assign(n, 0.0);
  s.alpha.assign(n, {});
  s.active.clear();
  for (int64_t i = 0; i < n; ++i) {
    const Row<T> x = row_of(p.rows, i);
    for (int64_t k = 0; k < x.size; ++k) s.norms[i] += x.value(k) * x.value(k);
    if (p.upper[i] > 0) s.active.push_back(i);
  }
}

// W after an epoch goes into the average, which is steadier than its last value.
template <class T> void average_weights(const MarginProblem<T>& p, MarginState& s, int threads) {
  constexpr int L = kLanes<double>;
  const double share = 2.0 / double(++s.averaged + 1);
  const int64_t size = (p.rows.n_columns * s.stride + L - 1) / L, parts = 16;
  in_parallel(parts, size * L < kSmallWork ? 1 : threads, [&](int64_t part) {
    for (int64_t k = size * part / parts * L; k < size * (part + 1) / parts * L; k += L) {
      const Vec<double> average = load(s.average + k);
      store(s.average + k, average + share * (load(s.w[0] + k) - average));
    }
  });
}

// One visit of every active example in random order; the sum of their gaps just before. Examples at rest leave the active ones.
template <class T> double multiclass_epoch(const MarginProblem<T>& p, MarginState& s, int threads) {
  const int64_t m = int64_t(s.active.size());
  extrapolate(p, s, threads);  // before the visits, which repair what it breaks
  for (int64_t i = m - 1; i > 0; --i) std::swap(s.active[i], s.active[next_random(s.seed) % uint64_t(i + 1)]);
  std::vector<MarginShard<T>> shards;
  for (int a = 0; a < s.shards; ++a) shards.emplace_back(p, s, s.w[s.shards > 1 ? a + 1 : 0], s.shards > 1);
  std::vector<uint8_t> rests(m, 0);
  std::vector<double> gaps(s.shards, 0.0);
  auto go = [&](int64_t a, int64_t begin, int64_t end) {
    const double* w = s.w[s.shards > 1 ? a + 1 : 0];
    for (int64_t k = begin; k < end; ++k) {
      if (k + 1 < end) fetch_row(p.rows, s.active[k + 1], w, s.stride);
      const double gap = shards[a].visit(s.active[k]);
      gaps[a] += gap;
      rests[k] = shards[a].at_rest(s.active[k], gap);
    }
  };
  if (s.shards == 1) go(0, 0, m);
  const int64_t step = s.block * s.shards;
  for (int64_t begin = 0; s.shards > 1 && begin < m; begin += step) {
    const int64_t size = std::min(step, m - begin);
    in_parallel(s.shards, threads, [&](int64_t a) { go(a, begin + size * a / s.shards, begin + size * (a + 1) / s.shards); });
    merge_shards(p, s, shards, threads);
  }
  int64_t kept = 0;
  for (int64_t k = 0; k < m; ++k)
    if (!rests[k]) s.active[kept++] = s.active[k];
  s.active.resize(kept);
  average_weights(p, s, threads);
  double total = 0;
  for (double gap : gaps) total += gap;
  return total;
}

// P and D at the current weights, over all examples; those with a share in the gap or several labels with α > 0 become active.
template <class T> void multiclass_check(const MarginProblem<T>& p, MarginState& s, double tol, int threads) {
  const int64_t n = p.rows.n_rows, C = p.C, parts = std::max<int64_t>(1, std::min<int64_t>(256, n / 64));
  std::vector<double> gaps(n, 0.0), losses(parts, 0.0), primal_squares(parts, 0.0), dual_squares(parts, 0.0);
  std::vector<uint8_t> rests(n, 1);
  in_parallel(parts, threads, [&](int64_t part) {
    MarginShard<T> shard(p, s, s.average, false);
    for (int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
      if (!(p.upper[i] > 0)) continue;
      if (i + 1 < n) fetch_row(p.rows, i + 1, s.average, s.stride);
      gaps[i] = shard.gap(i);
      rests[i] = shard.at_rest(i, gaps[i]);
      losses[part] += p.upper[i] * shard.violation() * (p.squared ? shard.violation() : 1.0);
    }
    for (int64_t f = p.rows.n_columns * part / parts; f < p.rows.n_columns * (part + 1) / parts; ++f)
      for (int64_t k = f * s.stride; k < f * s.stride + C; ++k) {
        primal_squares[part] += s.average[k] * s.average[k];
        dual_squares[part] += s.w[0][k] * s.w[0][k];
      }
  });
  s.primal = s.dual = 0;
  for (int64_t part = 0; part < parts; ++part) {
    s.primal += 0.5 * primal_squares[part] + losses[part];
    s.dual -= 0.5 * dual_squares[part];
  }
  for (int64_t i = 0; i < n; ++i) {
    double mass = 0;
    for (const auto& [c, a] : s.alpha[i]) {
      s.dual += a * s.costs[p.labels[i] * padded(C) + c];
      mass += a;
    }
    if (p.squared && mass > 0) s.dual -= mass * mass / (4 * p.upper[i]);
  }
  s.averaged = 0;
  s.active.clear();
  const double enough = 0.01 * tol * s.primal / double(std::max<int64_t>(1, n));
  for (int64_t i = 0; i < n; ++i)
    if (!rests[i] && (gaps[i] > enough || !s.alpha[i].empty())) s.active.push_back(i);
}

}  // namespace mercer::MERCER_ARCH
