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
// One block at a time is solved exactly: a projection onto a simplex (hinge), or its like without the bound on the mass
// (squared hinge), whose threshold is found by Newton steps on a piecewise linear function. With g_c = Δ(y_i, c) +
// ⟨w_c, x_i⟩,
//
//   gap_i = U_i max_c g_c - ⟨α_i, g⟩ ≥ 0,   Σ_i gap_i = P(W(α)) - D(α):
//
// the gap is a sum over examples, so one pass over the data certifies it and shows the examples that still have work to
// do.
//
// Threads. An epoch's examples, in random order, are dealt to a number of shards that depends on the data alone. Each
// shard goes through a block of its examples on its own copy of W; then the changes of all are added, times the step in
// [0, 1] that is best for D (a quadratic along that line; 1 / shards already is an ascent, D being concave). So the
// result is the same for any number of threads.
//
// Wide sparse data, where a merge would cost about as much as the visits before it, is cut by features instead: see
// solvers/feature_partition.hpp.
//
// Extrapolation. Where U ‖x‖² is large, α needs many epochs to get where it goes, along nearly the same way. So every
// few epochs it is moved further along its change since, projected back to its domain, and again the best step towards
// that point is taken.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "solvers/feature_partition.hpp"

namespace mercer::MERCER_ARCH {

constexpr int64_t kSmallWork = 1 << 17;  // weights: fewer, and walking them takes less time than waking a thread up

// SplitMix64: the next of a sequence of 64-bit numbers.
inline uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A random number turned into one of 0 .. n - 1, without the division of a remainder.
inline int64_t below(uint64_t random, int64_t n) { return int64_t(((random >> 32) * uint64_t(n)) >> 32); }

// W += step Σ_s (W_s - W) with the step that is best for D; all copies are equal again afterwards.
MERCER_APART inline double merge_shards(bool sparse, int64_t n_columns, MarginState& s,
                                        std::vector<MarginShard>& shards, int threads) {
  constexpr int64_t kParts = 16;
  const int64_t width = s.stride;
  if (n_columns * width < kSmallWork) threads = 1;
  // Calls work(where, Σ_s (W_s - W) there) for the weights of the changed features of a part, a vector at a time. Rows
  // shorter than a vector are taken with what follows them: all features are walked then, or the vector reaches into
  // unchanged ones.
  constexpr int L = kLanes<double>;
  const bool all = !sparse || width % L != 0;
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
  for (int64_t part = 0; part < kParts; ++part)
    slope -= s.mirrors() * along[part], curvature += s.mirrors() * squares[part];
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

// α as of now is what the next extrapolation starts from.
MERCER_APART inline void remember(MarginState& s) {
  s.since = 0;
  s.old.clear();
  s.old_starts.assign(1, 0);
  for (const auto& block : s.alpha) {
    s.old.insert(s.old.end(), block.begin(), block.end());
    s.old_starts.push_back(int64_t(s.old.size()));
  }
}

template <class T> void extrapolate(const MarginProblem<T>& p, MarginState& s, int threads) {
  constexpr int kEpochs = 8;
  const int64_t n = p.rows.n_rows;
  if (++s.since < kEpochs && !s.old_starts.empty()) return;
  if (!s.old_starts.empty()) {
    const int64_t size = p.rows.n_columns * s.stride;
    const int parts = s.shards > 1 ? 0 : size < kSmallWork ? 1 : 16;
    in_parallel(parts, threads, [&](int64_t a) {
      std::copy(s.w[0] + size * a / parts, s.w[0] + size * (a + 1) / parts, s.w[1] + size * a / parts);
    });
    std::vector<MarginShard> shards;
    for (int a = 0; a < s.shards; ++a) shards.emplace_back(p, s, s.w[a + 1], true);
    if (s.strips.count() > 1) {
      extrapolate_by_strips(p, s, shards, threads);
    } else {
      in_parallel(s.shards, threads, [&](int64_t a) {
        for (int64_t i = n * a / s.shards; i < n * (a + 1) / s.shards; ++i) shards[a].extrapolate(p.rows, i, s.reach);
      });
    }
    const double step = merge_shards(p.rows.indptr, p.rows.n_columns, s, shards, threads);
    if (step >= 1)
      s.reach = std::min(2 * s.reach, 1024.0);
    else if (step < 0.5)
      s.reach = std::max(0.5 * s.reach, 1.0);
  }
  remember(s);
}

// Room for the weights and the norms of the examples; α = the truth, W = 0.
template <class T> void multiclass_prepare(const MarginProblem<T>& p, const double* costs, MarginState& s) {
  const int64_t n = p.rows.n_rows, width = padded(p.C), C = p.C;
  // Rows of weights on whole cache lines, unless a row is shorter than half of one.
  s.stride = C == 2 && s.strips.wanted <= 1 ? 1 : C <= 2 ? 2 : C <= 4 ? 4 : (C + 7) / 8 * 8;
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
  if (s.strips.wanted) cut_strips(p, s);
}

// W after an epoch goes into the average, which is steadier than its last value.
inline void average_weights(int64_t n_columns, MarginState& s, int threads) {
  constexpr int L = kLanes<double>;
  const double share = 2.0 / double(++s.averaged + 1);
  const int64_t size = (n_columns * s.stride + L - 1) / L, parts = 16;
  in_parallel(parts, size * L < kSmallWork ? 1 : threads, [&](int64_t part) {
    for (int64_t k = size * part / parts * L; k < size * (part + 1) / parts * L; k += L) {
      const Vec<double> average = load(s.average + k);
      store(s.average + k, average + share * (load(s.w[0] + k) - average));
    }
  });
}

// Visits of the active examples by shards; the sum of their gaps just before.
template <class T>
double visit_by_shards(const MarginProblem<T>& p, MarginState& s, std::vector<uint8_t>& rests, int threads) {
  const int64_t m = int64_t(s.active.size());
  std::vector<MarginShard> shards;
  for (int a = 0; a < s.shards; ++a) shards.emplace_back(p, s, s.w[s.shards > 1 ? a + 1 : 0], s.shards > 1);
  std::vector<double> gaps(s.shards, 0.0);
  auto go = [&](int64_t a, int64_t begin, int64_t end) {
    const double* w = s.w[s.shards > 1 ? a + 1 : 0];
    for (int64_t k = begin; k < end; ++k) {
      if (k + 1 < end) fetch_row(p.rows, s.active[k + 1], w, s.stride);
      const double gap = shards[a].visit(p.rows, s.active[k]);
      gaps[a] += gap;
      rests[k] = shards[a].at_rest(s.active[k], gap);
    }
  };
  if (s.shards == 1) go(0, 0, m);
  const int64_t step = s.block * s.shards;
  for (int64_t begin = 0; s.shards > 1 && begin < m; begin += step) {
    const int64_t size = std::min(step, m - begin);
    in_parallel(s.shards, threads,
                [&](int64_t a) { go(a, begin + size * a / s.shards, begin + size * (a + 1) / s.shards); });
    merge_shards(p.rows.indptr, p.rows.n_columns, s, shards, threads);
  }
  double total = 0;
  for (double gap : gaps) total += gap;
  return total;
}

// One visit of every active example in random order; the sum of their gaps just before. Examples at rest leave the
// active ones.
template <class T> double multiclass_epoch(const MarginProblem<T>& p, MarginState& s, int threads) {
  const int64_t m = int64_t(s.active.size());
  extrapolate(p, s, threads);  // before the visits, which repair what it breaks
  for (int64_t i = m - 1; i > 0; --i) std::swap(s.active[i], s.active[below(next_random(s.seed), i + 1)]);
  std::vector<uint8_t> rests(m, 0);
  const double total =
      s.strips.count() > 1 ? visit_by_strips(p, s, rests, threads) : visit_by_shards(p, s, rests, threads);
  int64_t kept = 0;
  for (int64_t k = 0; k < m; ++k)
    if (!rests[k]) s.active[kept++] = s.active[k];
  s.active.resize(kept);
  average_weights(p.rows.n_columns, s, threads);
  return total;
}

// P and D at the current weights, over all examples; those with a share in the gap or several labels with α > 0 become
// active.
template <class T> void multiclass_check(const MarginProblem<T>& p, MarginState& s, double tol, int threads) {
  const int64_t n = p.rows.n_rows, C = p.C, parts = std::max<int64_t>(1, std::min<int64_t>(256, n / 64));
  std::vector<double> gaps(n, 0.0), losses(parts, 0.0), primal_squares(parts, 0.0), dual_squares(parts, 0.0);
  std::vector<uint8_t> rests(n, 1);
  in_parallel(parts, threads, [&](int64_t part) {
    MarginShard shard(p, s, s.average, false);
    for (int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
      if (!(p.upper[i] > 0)) continue;
      if (i + 1 < n) fetch_row(p.rows, i + 1, s.average, s.stride);
      gaps[i] = shard.gap(p.rows, i);
      rests[i] = shard.at_rest(i, gaps[i]);
      losses[part] += p.upper[i] * shard.violation() * (p.squared ? shard.violation() : 1.0);
    }
    for (int64_t f = p.rows.n_columns * part / parts; f < p.rows.n_columns * (part + 1) / parts; ++f)
      for (int64_t k = f * s.stride; k < f * s.stride + std::min(C, s.stride); ++k) {
        primal_squares[part] += s.average[k] * s.average[k];
        dual_squares[part] += s.w[0][k] * s.w[0][k];
      }
  });
  s.primal = s.dual = 0;
  for (int64_t part = 0; part < parts; ++part) {
    s.primal += 0.5 * s.mirrors() * primal_squares[part] + losses[part];
    s.dual -= 0.5 * s.mirrors() * dual_squares[part];
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
