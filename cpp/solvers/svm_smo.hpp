// Ascent by pairs on the dual of kernel machines (sequential minimal optimisation with second-order choice of pairs
// [Fan2005]), for
//
//   D = max over s   sum_i h_i(s_i) - 1/2 s'Ks,   the sum of s over each of one or two groups fixed,
//   P = min over b   1/2 s'Ks + sum_i h*_i(f_i) - sum_g b_g (sum of s over g),   f = Ks + b,   h*(f) = max_s h(s) - s f
//
// with h_i concave and piecewise linear. Its users: support vector machines of two classes, one class, shares of the data
// (nu) and regression (svm_smo.cpp; svm_blocks.cpp where K is too large), relative margins (relative_margin.cpp). They differ in h, a template argument, so that each
// compiles to loops of its own; in the groups, contiguous ranges, between which no pair moves; and in where rows of K come
// from.
//
// A pair moves as far as the concave function along its line rises, over the corners of h. Instances that no pair would
// move are set aside until the end, when everything is looked at again.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/arrays.hpp"
#include "base/dense.hpp"
#include "base/signals.hpp"
#include "solvers/smo_loops.hpp"

namespace mercer {
namespace smo {

// After a step both of its instances have the same v, up to rounding, which must not choose between them: else what
// changes rounding alone, such as the unit of the data, leads to another solution within the tolerance.
constexpr double kTies = 1e-12;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// ---------------------------------------------------------------------------------------------- rewards

// A reward h has linear(i), its slope without corners; after(i, s) and before(i, s), how much the slopes right and left of s
// differ from it; next_up(i, s) and next_down(i, s), the corners to both sides of s; and loss(i, d) and gap(i, s, d), which
// are h*(f) and h*(f) - h(s) + s f at d = linear - f.

// h(s) = slope s on [low, high].
struct Box {
  static constexpr bool kCorners = false;  // within its range
  std::vector<double> slope, low, high;

  double linear(size_t i) const { return slope[i]; }
  double after(size_t i, double s) const { return s < high[i] ? 0.0 : -kInfinity; }
  double before(size_t i, double s) const { return s > low[i] ? 0.0 : kInfinity; }
  double next_up(size_t i, double) const { return high[i]; }
  double next_down(size_t i, double) const { return low[i]; }
  double loss(size_t i, double d) const { return d > 0 ? high[i] * d : low[i] * d; }
  double gap(size_t i, double s, double d) const { return d > 0 ? (high[i] - s) * d : (low[i] - s) * d; }
  // Of some instances, with their slopes lowered.
  Box part(const std::vector<int32_t>& places, const std::vector<double>& lowered) const {
    Box some;
    for (size_t at = 0; at < places.size(); ++at) {
      const size_t i = size_t(places[at]);
      some.slope.push_back(slope[i] - lowered[at]);
      some.low.push_back(low[i]);
      some.high.push_back(high[i]);
    }
    return some;
  }
};

// h(s) = target s - width |s| on [-upper, upper].
struct Tube {
  static constexpr bool kCorners = true;
  std::vector<double> target, upper;
  double width;

  double linear(size_t i) const { return target[i]; }
  double after(size_t i, double s) const { return s < 0 ? width : s < upper[i] ? -width : -kInfinity; }
  double before(size_t i, double s) const { return s > 0 ? -width : s > -upper[i] ? width : kInfinity; }
  double next_up(size_t i, double s) const { return s < 0 ? 0.0 : upper[i]; }
  double next_down(size_t i, double s) const { return s > 0 ? 0.0 : -upper[i]; }
  double loss(size_t i, double d) const { return upper[i] * std::max(0.0, std::abs(d) - width); }
  double gap(size_t i, double s, double d) const { return loss(i, d) - (s * d - width * std::abs(s)); }
  Tube part(const std::vector<int32_t>& places, const std::vector<double>& lowered) const {
    Tube some;
    some.width = width;
    for (size_t at = 0; at < places.size(); ++at) {
      some.target.push_back(target[size_t(places[at])] - lowered[at]);
      some.upper.push_back(upper[size_t(places[at])]);
    }
    return some;
  }
};

// ---------------------------------------------------------------------------------------------- rows

struct MatrixRows {
  const double* matrix;
  int64_t n;
  double diagonal(int64_t i) const { return matrix[i * n + i]; }
  const double* row(int64_t i) const { return matrix + i * n; }
};

// ---------------------------------------------------------------------------------------------- the ascent

// It ends at a gap P - D of `gap` times 1/2 |w|^2, at a violation of the optimality conditions (the most that a pair
// promises by its slope), or after so many steps; the first two are left out where they are 0. As P is strongly convex in w,
// the error of w is at most sqrt(gap) |w|, however small the bounds: a gap relative to P says nothing about w while they
// are tiny, as at the start of annealing. As w may be 0, `least_gap` is small enough too.
struct Aim {
  double gap = 0, least_gap = 0, violation = 0;
  int64_t steps = 0;
  bool in_parts = false;  // one of many short runs: nothing is set aside or summed up anew
};

struct Outcome {
  double squared_norm = 0, loss = 0, gap = kInfinity, violation = kInfinity;
  std::array<double, 2> intercepts{};
  int64_t iterations = 0;
  bool converged = false;
};

// The mean over instances between two corners, or the middle of what the conditions allow.
inline double intercept(const Extremes& now, const double* v, const double* grows, const double* falls, int64_t n) {
  double free = 0, sum = 0;
  for (int64_t at = 0; at < n; ++at)
    if (grows[at] == falls[at]) {
      free += 1;
      sum += v[at] + grows[at];
    }
  if (free > 0) return sum / free;
  if (now.up == -kInfinity) return now.down == kInfinity ? 0.0 : now.down;
  return now.down == kInfinity ? now.up : 0.5 * (now.up + now.down);
}

template <class Reward, class Rows> class PairAscent {
 public:
  // Over all rows, or over some of them in a given order. Everything is found at the places of rows; the second group
  // begins at the `split`-th of the members, at their end if there is one group.
  PairAscent(Rows rows, int64_t n, std::vector<int32_t> members = {}, int64_t split = 0)
      : s(size_t(n), 0.0),
        g(size_t(n), 0.0),
        rows_(std::move(rows)),
        n_(n),
        members_(std::move(members)),
        count_(members_.empty() ? n : int64_t(members_.size())),
        starts_{0, split ? split : count_, count_},
        groups_(split && split < count_ ? 2 : 1) {
    for (int64_t at = 0; at < count_; ++at) diagonal_of_.push_back(rows_.diagonal(member(at)));
  }

  Reward reward;
  std::vector<double> s, g;  // g = Ks
  double flat = 1e-12;       // a curvature that stands for less
  double ties = 0;           // relative to the first violation: differences in v that do not decide

  const std::vector<double>& diagonal() const { return diagonal_of_; }  // of the members

  void add(int64_t i, double change) {
    const double* row = rows_.row(i);
    if (members_.empty()) return add_row(row, change, g.data(), n_);
    for (const int32_t j : members_) g[size_t(j)] += change * row[j];
  }

  void recompute() {
    std::fill(g.begin(), g.end(), 0.0);
    for (int64_t at = 0; at < count_; ++at)
      if (const int64_t i = member(at); s[size_t(i)] != 0.0) add(i, s[size_t(i)]);
  }

  // Makes flat curvatures a matter of the size of K, whatever its origin: relative to distances from one member.
  void scale_flat() {
    const int64_t i = member(0);
    const double* row = rows_.row(i);
    double sum = 0;
    for (int64_t at = 0; at < count_; ++at) sum += diagonal_of_[size_t(at)] + diagonal_of_[0] - 2 * row[member(at)];
    const double mean = sum / double(count_);
    flat = 1e-12 * (mean > 0 && mean < kInfinity ? mean : 1.0);
  }

  // From a feasible s with its g. Between two looks at the gap, steps are cheap enough not to count how far they lead past
  // the aim.
  Outcome ascend(const Aim& aim) {
    watch_all();
    Outcome found;
    tie_ = 0;
    double width = look_around();
    tie_ = width > 0 && width < kInfinity ? ties * width : 0.0;
    const int64_t period = aim.in_parts ? kNever : std::max<int64_t>(count_, 256);
    int64_t look = 0, until = period, fresh = 0;  // fresh: the step at which g was last summed up
    double now = width;
    while (true) {
      // Differences below rounding are no violations.
      const bool settled = !(now > std::max(aim.violation, 1e-13 * std::max(1.0, width)));
      const bool last = settled || found.iterations >= aim.steps;
      if (last || (aim.gap > 0 && found.iterations >= look)) {
        evaluate(found, now);
        found.converged = (aim.violation > 0 && now <= aim.violation) ||
                          found.gap <= std::max(aim.gap * 0.5 * found.squared_norm, aim.least_gap);
        if (found.converged || last) {
          restore();
          if (int64_t(v_.size()) == count_ && found.iterations - fresh < period) return found;
          recompute();  // what was set aside may violate by now, and rounding errors have come together
          watch_all();
          now = width = look_around();
          fresh = look = found.iterations;
          until = aim.in_parts ? kNever : found.iterations + period;
          continue;
        }
        look = found.iterations + std::max<int64_t>(32, int64_t(v_.size()) / 16);
      }
      if (found.iterations >= until) {
        until += period;
        set_aside();
        look_around();
        check_signals();
      }
      now = step();
      ++found.iterations;
    }
  }

 private:
  Watched watched(int group) {
    const int64_t first = starts_now_[size_t(group)];
    return {v_.data() + first,
            grows_.data() + first,
            falls_.data() + first,
            diagonal_.data() + first,
            places_.empty() ? nullptr : places_.data() + first,
            starts_now_[size_t(group) + 1] - first,
            flat,
            tie_};
  }
  int64_t member(int64_t at) const { return members_.empty() ? at : int64_t(members_[size_t(at)]); }
  int64_t place(int64_t at) const { return places_.empty() ? at : int64_t(places_[size_t(at)]); }
  // A row, or any array with a value for each instance, as `Watched` of a group reads it.
  const double* seen(const double* row, int group) const {
    return places_.empty() ? row + starts_now_[size_t(group)] : row;
  }

  void mark(int64_t at) {
    const size_t i = size_t(place(at));
    grows_[size_t(at)] = reward.after(i, s[i]);
    falls_[size_t(at)] = reward.before(i, s[i]);
  }

  double move_all(const double* ki, const double* kj, double t) {
    double width = -kInfinity;
    for (int group = 0; group < groups_; ++group) {
      extremes_[size_t(group)] = loops_.move(watched(group), seen(ki, group), seen(kj, group), t);
      width = std::max(width, extremes_[size_t(group)].width());
    }
    return width;
  }
  double look_around() { return move_all(g.data(), g.data(), 0.0); }

  void watch_all() {
    places_ = members_;
    starts_now_ = starts_;
    square_ = 0;
    for (auto* values : {&v_, &grows_, &falls_}) values->resize(size_t(count_));
    diagonal_ = diagonal_of_;
    for (int64_t at = 0; at < count_; ++at) {
      const size_t i = size_t(member(at));
      v_[size_t(at)] = reward.linear(i) - g[i];
      square_ += s[i] * g[i];
      mark(at);
    }
  }

  // g of the instances watched.
  void restore() {
    for (size_t at = 0; at < v_.size(); ++at) {
      const size_t i = size_t(place(int64_t(at)));
      g[i] = reward.linear(i) - v_[at];
    }
  }

  double step() {
    const int group = groups_ == 2 && extremes_[1].width() > extremes_[0].width() ? 1 : 0;
    const Extremes& now = extremes_[size_t(group)];
    const Watched w = watched(group);
    int64_t a = now.block;
    while (!(w.v[a] + w.grows[a] >= now.up - tie_)) ++a;
    const int64_t first = starts_now_[size_t(group)], i = place(first + a);
    const double* ki = rows_.row(i);
    const int64_t b = loops_.partner(w, seen(ki, group), w.v[a] + w.grows[a], w.diagonal[a]);
    if (b < 0) fail("K is not finite any more: it must not be changed while the machine is in use");
    const int64_t j = place(first + b);
    const double curvature = w.diagonal[a] + w.diagonal[b] - 2 * ki[j];
    const double t = climb(first + a, first + b, i, j, std::max(curvature, flat));
    // |w + t (x_i - x_j)|^2, g_i - g_j being that of v and h.
    square_ += t * (2 * (reward.linear(size_t(i)) - reward.linear(size_t(j)) - (w.v[a] - w.v[b])) + t * curvature);
    return move_all(ki, rows_.row(j), t);
  }

  // Raises s_i and lowers s_j to the maximum along the line; returns by how much.
  double climb(int64_t a, int64_t b, int64_t i, int64_t j, double curvature) {
    double &si = s[size_t(i)], &sj = s[size_t(j)], total = 0;
    for (int passed = 0; passed < 8; ++passed) {
      const double slope =
          (v_[size_t(a)] + grows_[size_t(a)]) - (v_[size_t(b)] + falls_[size_t(b)]) - total * curvature;
      if (passed && !(slope > 0)) break;
      const double up = reward.next_up(size_t(i), si), down = reward.next_down(size_t(j), sj);
      const double room_i = up - si, room_j = sj - down;
      const double t = std::min({slope / curvature, room_i, room_j});
      si = t == room_i ? up : si + t;
      sj = t == room_j ? down : sj - t;
      mark(a);
      mark(b);
      total += t;
      if (!Reward::kCorners || (t < room_i && t < room_j)) break;
    }
    return total;
  }

  // Sets aside those that no pair would move.
  void set_aside() {
    std::vector<int32_t> kept;
    size_t count = 0;
    std::array<int64_t, 3> starts{};
    for (int group = 0; group < groups_; ++group) {
      const Extremes& now = extremes_[size_t(group)];
      for (size_t at = size_t(starts_now_[size_t(group)]); at < size_t(starts_now_[size_t(group) + 1]); ++at) {
        if (v_[at] + grows_[at] < now.down && v_[at] + falls_[at] > now.up) {
          const size_t i = size_t(place(int64_t(at)));
          g[i] = reward.linear(i) - v_[at];
          continue;
        }
        kept.push_back(int32_t(place(int64_t(at))));
        for (auto* values : {&v_, &grows_, &falls_, &diagonal_}) (*values)[count] = (*values)[at];
        ++count;
      }
      starts[size_t(group) + 1] = int64_t(count);
    }
    if (count == v_.size() || count == 0) return;
    for (auto* values : {&v_, &grows_, &falls_, &diagonal_}) values->resize(count);
    places_ = std::move(kept);
    starts_now_ = starts;
  }

  // Instances set aside add nothing to the gap as long as they are where they belong.
  void evaluate(Outcome& found, double violation) const {
    found.squared_norm = std::max(square_, 0.0);
    found.loss = found.gap = 0;
    found.violation = violation;
    for (int group = 0; group < groups_; ++group) {
      const size_t first = size_t(starts_now_[size_t(group)]), end = size_t(starts_now_[size_t(group) + 1]);
      const double b = found.intercepts[size_t(group)] =
          intercept(extremes_[size_t(group)], v_.data() + first, grows_.data() + first, falls_.data() + first,
                    int64_t(end - first));
      for (size_t at = first; at < end; ++at) {
        const size_t i = size_t(place(int64_t(at)));
        found.loss += reward.loss(i, v_[at] - b);
        found.gap += reward.gap(i, s[i], v_[at] - b);
      }
    }
  }

  Rows rows_;
  int64_t n_;
  std::vector<int32_t> members_;  // empty: all rows
  int64_t count_;
  std::array<int64_t, 3> starts_, starts_now_{};  // of the groups: of all instances, of those watched
  int groups_;
  const SmoLoops& loops_ = loops<SmoLoops>();
  std::array<Extremes, 2> extremes_;
  std::vector<double> v_, grows_, falls_, diagonal_, diagonal_of_;
  std::vector<int32_t> places_;
  double square_ = 0, tie_ = 0;
};

}  // namespace smo
}  // namespace mercer
