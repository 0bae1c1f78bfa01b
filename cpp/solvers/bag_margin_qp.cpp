// Labellings of bags for the convex machine of proportions, and its quadratic programs without a bias.
//
//   labellings   max_y Σ_i a_i s_i y_i
//                over y_i = ±1 with least_k … most_k positives among the free instances of each bag
//   programs     max_a Σ_i a_i − ½ aᵀQa  over 0 ≤ a_i ≤ upper_i,
//                Q a mixture of labellings of K, or Q = UUᵀ by its rows
//
// A program stops when upper and lower bounds of its value meet: with g = 1 − Qa, the gap is Σ_i upper_i max(0, g_i) −
// a_i g_i, and smaller for the best multiple of a.
#include "base/arrays.hpp"
#include "base/dense.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "solvers/bag_loops.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
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

constexpr double kSame = 1e-7;  // of the largest value in a bag

// Room for one bag.
struct Scratch {
  std::vector<int64_t> members;  // free instances
  std::vector<double> values, sorted;
};

// The `count` members with the largest values become positive. Those that tie for the last places stay, with the number
// of these places. Values of equal rows differ by rounding, which must not choose.
int64_t take_largest(Scratch& s, int64_t count, int8_t* y) {
  s.sorted = s.values;
  const auto last = s.sorted.begin() + (count - 1);
  std::nth_element(s.sorted.begin(), last, s.sorted.end(), std::greater<double>());
  double size = 0;
  for (const double value : s.values) size = std::max(size, std::abs(value));
  const double least = *last, same = kSame * size;
  size_t kept = 0;
  for (size_t m = 0; m < s.members.size(); ++m) {
    if (s.values[m] > least + same) {
      y[s.members[m]] = 1;
      --count;
    } else if (s.values[m] >= least - same) {
      s.members[kept++] = s.members[m];
    }
  }
  s.members.resize(kept);
  return count;
}

// One labelling: the largest a_i s_i become positive, among equals the largest s_i, then the first. Instances with a_i
// = 0 do not count for the value: they follow their scores, as far as the bag has room.
void label(const Bagged& bags, const double* scores, Scratch& s, int8_t* y) {
  for (int64_t k = 0; k < bags.n_bags; ++k) {
    s.members.clear();
    s.values.clear();
    int64_t wanted = 0;
    for (int64_t i = bags.offsets[k]; i < bags.offsets[k + 1]; ++i) {
      y[i] = bags.known[i] ? bags.known[i] : int8_t(-1);
      if (bags.known[i]) continue;
      s.members.push_back(i);
      s.values.push_back(bags.weight[i] * scores[i]);
      wanted += scores[i] > 0;
    }
    int64_t positives = std::clamp(wanted, bags.least[k], bags.most[k]);
    if (positives == wanted) {
      for (const int64_t i : s.members) y[i] = scores[i] > 0 ? 1 : -1;
      continue;
    }
    if (positives == 0) continue;
    positives = take_largest(s, positives, y);
    if (positives < int64_t(s.members.size())) {
      s.values.clear();
      for (const int64_t i : s.members) s.values.push_back(scores[i]);
      positives = take_largest(s, positives, y);
    }
    for (size_t m = 0; m < size_t(positives) && m < s.members.size(); ++m) y[s.members[m]] = 1;
  }
}

Bagged checked_bags(const In1<double>& weight, const In1<int64_t>& offsets, const In1<int64_t>& least,
                    const In1<int64_t>& most, const In1<int8_t>& known, int64_t n) {
  const int64_t n_bags = require_offsets(offsets, n, "offsets", "instances");
  require(int64_t(weight.shape(0)) == n && int64_t(known.shape(0)) == n,
          "weight and known need a value for each instance");
  require(int64_t(least.shape(0)) == n_bags && int64_t(most.shape(0)) == n_bags,
          "least and most need a value for each bag");
  for (int64_t i = 0; i < n; ++i) {
    require(std::isfinite(weight.data()[i]) && weight.data()[i] >= 0, "weight must be finite and not negative");
    require(known.data()[i] >= -1 && known.data()[i] <= 1, "known must be -1, 0 or 1");
  }
  for (int64_t k = 0; k < n_bags; ++k) {
    int64_t free = 0;
    for (int64_t i = offsets.data()[k]; i < offsets.data()[k + 1]; ++i) free += known.data()[i] == 0;
    require(0 <= least.data()[k] && least.data()[k] <= most.data()[k] && most.data()[k] <= free,
            "least and most must be counts of free instances, least not above most");
  }
  return {weight.data(), offsets.data(), least.data(), most.data(), known.data(), n_bags, n};
}

void label_bags(In2<double> scores, In1<double> weight, In1<int64_t> offsets, In1<int64_t> least, In1<int64_t> most,
                In1<int8_t> known, Out2<int8_t> out, int threads) {
  const int64_t count = int64_t(scores.shape(0)), n = int64_t(scores.shape(1));
  const Bagged bags = checked_bags(weight, offsets, least, most, known, n);
  require(int64_t(out.shape(0)) == count && int64_t(out.shape(1)) == n, "out must have the shape of scores");
  require(all_finite(scores.data(), count * n), "scores must be finite");
  const int used = thread_count(threads);
  const double* s = scores.data();
  int8_t* y = out.data();
  nb::gil_scoped_release release;
  in_parallel(count, used, [&](int64_t row) {
    Scratch scratch;
    label(bags, s + row * n, scratch, y + row * n);
  });
}

// ---------------------------------------------------------------------------------------------- programs

// Σ a − ½ aᵀQa, from the slopes: aᵀQa = Σ a (1 − g).
double value_of(const double* a, const double* g, int64_t n) {
  double value = 0;
  for (int64_t i = 0; i < n; ++i) value += a[i] * (1 + g[i]);
  return value / 2;
}

// The best a_i, all others fixed; g is the slope there, q the curvature.
inline double best_step(double a, double g, double q, double upper) {
  if (q > 0) return std::clamp(a + g / q, 0.0, upper) - a;
  return g > 0 ? upper - a : g < 0 ? -a : 0.0;
}

void check_program(int64_t n, const In1<double>& upper, const Out1<double>& alpha, const Out1<double>& slope,
                   double tol, int64_t limit) {
  require(int64_t(upper.shape(0)) == n && int64_t(alpha.shape(0)) == n && int64_t(slope.shape(0)) == n,
          "upper, alpha and slope need a value for each instance");
  require(tol >= 0 && limit >= 0, "tol and max_sweeps must not be negative");
  for (int64_t i = 0; i < n; ++i) {
    const double u = upper.data()[i], a = alpha.data()[i];
    require(std::isfinite(u) && u >= 0, "upper must be finite and not negative");
    require(a >= 0 && a <= u, "alpha must lie between 0 and upper");
  }
}

// The least of ½ c² aᵀQa + Σ_i upper_i max(0, 1 − c (Qa)_i) over c, nearly: each c > 0 gives a bound of the value from
// above, and a program that is solved but for its scale has a gap only without c. Tangents on both sides of the minimum
// enclose it; it is found when they meet. Rows of a solved program are at their margins, where the slope jumps: only
// the minimum itself does not depend on rounding.
double scaled_bound(const double* a, const double* g, const double* upper, int64_t n, double tol = 1e-12) {
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += a[i] * (1 - g[i]);
  square = std::max(square, 0.0);
  double c = 1, best = std::numeric_limits<double>::infinity();
  double low = 0, low_value = 0, low_slope = 0, high = 0, high_value = 0, high_slope = 0;  // where 0: none yet
  for (int step = 0; step < 60; ++step) {
    const auto [value, slope] = loops<BagLoops>().loss_at(c, square, g, upper, n);
    best = std::min(best, value);
    if (slope == 0) break;
    if (slope < 0) {
      low = c, low_value = value, low_slope = slope;
    } else {
      high = c, high_value = value, high_slope = slope;
    }
    if (low > 0 && high > 0) {
      const double meet = (low_value - high_value + high_slope * high - low_slope * low) / (high_slope - low_slope);
      const double floor = low_value + low_slope * (meet - low);
      if (best - floor <= tol * best || !(meet > low && meet < high)) break;
      const double newton = square > 0 ? c - slope / square : meet;  // exact where no row passes its margin on the way
      c = newton > low && newton < high && step % 2 ? newton : meet;
    } else {
      c = slope < 0 ? std::min(2 * c, 1.0e6) : std::max(c / 2, 1.0e-6);
      if (c >= 1.0e6 || c <= 1.0e-6) break;
    }
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

constexpr double kEqual = 1e-6;  // relative: gains of equal rows, which rounding must not tell apart

// Programs over one kernel matrix, one at a time: Q_ij = Σ_t mu_t y_ti y_tj K_ij. Rows of Q are made when they are
// needed.
class LabelledPrograms {
 public:
  explicit LabelledPrograms(In2<double> K)
      : K_(K), n_(int64_t(K.shape(0))), padded_((n_ + BagLoops::kLanes - 1) / BagLoops::kLanes * BagLoops::kLanes) {
    require(K.shape(0) == K.shape(1) && n_ >= 1, "K must be a square matrix with at least one row");
    require(all_finite(K.data(), n_ * n_), "K must be finite");
    for (int64_t i = 0; i < n_; ++i) diagonal_.push_back(K.data()[i * n_ + i]);
  }

  // Each step moves the coordinate that gains most; at most max_sweeps times n. Ends when bounds of the value are
  // within tol of each other, and returns that from above.
  double ascend(In2<int8_t> labelings, In1<double> mu, In1<double> upper, Out1<double> alpha, Out1<double> slope,
                double tol, int64_t max_sweeps) {
    check_mixture(labelings, mu);
    check_program(n_, upper, alpha, slope, tol, max_sweeps);
    nb::gil_scoped_release release;
    start(labelings.data(), mu.data(), int64_t(labelings.shape(0)));
    std::copy(upper.data(), upper.data() + n_, u_.begin());
    std::copy(alpha.data(), alpha.data() + n_, a_.begin());
    std::fill(g_.begin(), g_.begin() + n_, 1.0);
    for (int64_t i = 0; i < n_; ++i)
      if (a_[size_t(i)] != 0) add_row(row(i), -a_[size_t(i)], g_.data(), n_);
    const double bound = climb(tol, max_sweeps);
    std::copy(a_.begin(), a_.begin() + n_, alpha.data());
    std::copy(g_.begin(), g_.begin() + n_, slope.data());
    return bound;
  }

  // Q of some instances.
  void block(In2<int8_t> labelings, In1<double> mu, In1<int64_t> rows, Out2<double> out) {
    check_mixture(labelings, mu);
    const int64_t size = int64_t(rows.shape(0));
    require(int64_t(out.shape(0)) == size && int64_t(out.shape(1)) == size,
            "out needs a row and a column for each of the rows");
    for (int64_t r = 0; r < size; ++r)
      require(rows.data()[r] >= 0 && rows.data()[r] < n_, "rows must be numbers of instances");
    nb::gil_scoped_release release;
    const int64_t count = int64_t(labelings.shape(0));
    std::vector<double> signs(static_cast<size_t>(count * size)), kept(static_cast<size_t>(size)),
        mixed(static_cast<size_t>(size));
    for (int64_t t = 0; t < count; ++t)
      for (int64_t r = 0; r < size; ++r)
        signs[size_t(t * size + r)] = double(labelings.data()[t * n_ + rows.data()[r]]);
    for (int64_t r = 0; r < size; ++r) {
      const double* k = K_.data() + rows.data()[r] * n_;
      for (int64_t c = 0; c < size; ++c) kept[size_t(c)] = k[rows.data()[c]];
      loops<BagLoops>().mix_signs(mu.data(), signs.data(), count, size, r, mixed.data(), size);
      loops<BagLoops>().multiply(mixed.data(), kept.data(), out.data() + r * size, size);
    }
  }

  // From each labelling y to the best one along the scores K(a ∘ y), until it stays or after so many steps. Scores come
  // in for the first y and follow the labels that change. Out come the last labellings and their squares, (a ∘ y)ᵀK(a ∘
  // y).
  void raise_labellings(Out2<double> scores, Out2<int8_t> labelings, In1<double> weight, In1<int64_t> offsets,
                        In1<int64_t> least, In1<int64_t> most, In1<int8_t> known, Out1<double> squares,
                        int64_t max_steps, int threads) const {
    const int64_t count = int64_t(scores.shape(0)), n = n_;
    require(int64_t(scores.shape(1)) == n, "scores must have a value for each instance");
    const Bagged bags = checked_bags(weight, offsets, least, most, known, n);
    require(int64_t(labelings.shape(0)) == count && int64_t(labelings.shape(1)) == n,
            "labelings must have the shape of scores");
    require(int64_t(squares.shape(0)) == count, "squares need a value for each labelling");
    require(all_finite(scores.data(), count * n), "scores must be finite");
    for (int64_t i = 0; i < count * n; ++i)
      require(std::abs(int(labelings.data()[i])) == 1, "labelings must be -1 or 1");
    const int used = thread_count(threads);
    nb::gil_scoped_release release;
    in_parallel(count, used, [&](int64_t which) {
      double* s = scores.data() + which * n;
      int8_t* y = labelings.data() + which * n;
      std::vector<int8_t> next(static_cast<size_t>(n));
      Scratch scratch;
      for (int64_t step = 0; step < max_steps; ++step) {
        label(bags, s, scratch, next.data());
        bool changed = false;
        for (int64_t i = 0; i < n; ++i) {
          if (next[size_t(i)] == y[i]) continue;
          changed = true;
          y[i] = next[size_t(i)];
          if (bags.weight[i] > 0) add_row(K_.data() + i * n, 2 * bags.weight[i] * y[i], s, n);
        }
        if (!changed) break;
      }
      double square = 0;
      for (int64_t i = 0; i < n; ++i) square += bags.weight[i] * y[i] * s[i];
      squares.data()[which] = square;
    });
  }

 private:
  void check_mixture(const In2<int8_t>& labelings, const In1<double>& mu) const {
    const int64_t count = int64_t(labelings.shape(0));
    require(int64_t(labelings.shape(1)) == n_, "labelings must have a value for each instance");
    require(int64_t(mu.shape(0)) == count, "mu must have a value for each labelling");
    for (int64_t i = 0; i < count * n_; ++i)
      require(std::abs(int(labelings.data()[i])) == 1, "labelings must be -1 or 1");
    for (int64_t t = 0; t < count; ++t)
      require(std::isfinite(mu.data()[t]) && mu.data()[t] >= 0, "mu must be finite and not negative");
  }

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
    made_ = mixed_made_ = 0;
    mixed_of_.clear();
    for (std::vector<double>* values : {&a_, &u_, &g_, &q_, &inverse_, &gain_}) values->assign(size_t(padded_), 0.0);
  }

  const double* row(int64_t i) {
    int64_t& at = place_[size_t(i)];
    if (at < 0) {
      at = int64_t(made_++);
      if (made_ > rows_.size()) rows_.emplace_back(static_cast<size_t>(padded_));
      loops<BagLoops>().multiply(mixed(i), K_.data() + i * n_, rows_[size_t(at)].data(), n_);
    }
    return rows_[size_t(at)].data();
  }

  // Σ_t weights_t y_ti y_tj for all j: made once for all instances whose labels are the same in all labellings.
  const double* mixed(int64_t i) {
    const size_t count = weights_.size();
    uint64_t labels = 0;
    for (size_t t = 0; t < std::min<size_t>(count, 64); ++t)
      labels |= uint64_t(signs_[t * size_t(n_) + size_t(i)] > 0) << t;
    const auto [entry, is_new] = mixed_of_.try_emplace(labels, mixed_made_);
    if (is_new || count > 64) {
      if (is_new && ++mixed_made_ > mixed_.size()) mixed_.emplace_back(static_cast<size_t>(n_));
      loops<BagLoops>().mix_signs(weights_.data(), signs_.data(), int64_t(count), n_, i, mixed_[entry->second].data(),
                                  n_);
    }
    return mixed_[entry->second].data();
  }

  double climb(double tol, int64_t max_sweeps) {
    for (int64_t i = 0; i < n_; ++i) {
      q_[size_t(i)] = std::max(total_ * diagonal_[size_t(i)], 0.0);
      inverse_[size_t(i)] = 1 / std::max(q_[size_t(i)], 1e-200);
    }
    double *a = a_.data(), *g = g_.data(), *gain = gain_.data();
    const double *u = u_.data(), *q = q_.data(), *inverse = inverse_.data();
    double most = loops<BagLoops>().advance(0.0, row(0), a, u, q, inverse, g, gain, padded_);
    const int64_t period = std::max<int64_t>(n_ / 4, 16),
                  limit = std::min(max_sweeps, std::numeric_limits<int64_t>::max() / n_ - 1) * n_;
    int64_t newton = 2 * n_;  // the update before which there is a step of all free coordinates
    for (int64_t update = 0;; ++update) {
      const bool over = update == limit || !(most > 0);
      if (over || update % period == 0) {
        const double value = scaled_value(a, g, u, n_), bound = scaled_bound(a, g, u, n_);
        if (over || bound - value <= tol * value) return bound;
      }
      if (update % 65536 == 65535) check_signals();
      if (update == newton) {
        newton += std::max(n_, move_free(update >= kLong * n_));
        a = a_.data(), g = g_.data();
        most = loops<BagLoops>().advance(0.0, row(0), a, u, q, inverse, g, gain, padded_);
        if (!(most > 0)) continue;
      }
      const int64_t i = loops<BagLoops>().place_of(most * (1 - kEqual), gain, padded_);
      const double to = std::clamp(a[i] + g[i] * inverse[i], 0.0, u[i]), size = to - a[i];
      a[i] = to;
      most = loops<BagLoops>().advance(size, row(i), a, u, q, inverse, g, gain, padded_);
    }
  }

  // Newton's step of the coordinates between their bounds, each cut off at its bound, if the value rises; else, with
  // `lines`, along a line to the first bound, where that coordinate stays, and again with the others. Returns about how
  // many updates take as long.
  int64_t move_free(bool lines) {
    int64_t cost = 0;
    for (int64_t step = 0; step < (lines ? kMostLines : 1); ++step) {
      free_.clear();
      for (int64_t i = 0; i < n_; ++i)
        if (a_[size_t(i)] > 0 && a_[size_t(i)] < u_[size_t(i)]) free_.push_back(i);
      const int64_t m = int64_t(free_.size());
      if (m == 0 || m > kMostFree) return cost;
      check_signals();
      find_direction();
      cost += m * m / (32 * n_) * m + m;
      if (step == 0 && (move_cut_off(1.0) || move_cut_off(1.0 / 16))) return cost;
      if (!lines || !move_to_bound()) return cost;
    }
    return cost;
  }

  // Into change_. The free block of Q may be singular.
  void find_direction() {
    const int64_t m = int64_t(free_.size());
    H_.resize(size_t(m * m));
    change_.resize(size_t(m));
    double ridge = 0;
    for (const int64_t i : free_) ridge += q_[size_t(i)] / double(m);
    for (int64_t r = 0; r < m; ++r) {
      const double* from = row(free_[size_t(r)]);
      for (int64_t c = r; c < m; ++c) H_[size_t(r * m + c)] = from[free_[size_t(c)]];
      H_[size_t(r * m + r)] += 1e-6 * ridge + 1e-300;  // of singular blocks: less would make steps of rounding
      change_[size_t(r)] = g_[size_t(free_[size_t(r)])];
    }
    factorise(H_.data(), m, 1e-300);
    solve_factorised(H_.data(), m, change_.data());
  }

  bool move_cut_off(double part) {
    next_a_ = a_, next_g_ = g_;
    for (size_t r = 0; r < free_.size(); ++r) {
      const size_t i = size_t(free_[r]);
      next_a_[i] = std::clamp(a_[i] + part * change_[r], 0.0, u_[i]);
      add_row(row(free_[r]), a_[i] - next_a_[i], next_g_.data(), n_);
    }
    return keep_if_higher();
  }

  // Whether a bound was in the way, and the value rose.
  bool move_to_bound() {
    double part = 1;
    size_t first = free_.size();
    for (size_t r = 0; r < free_.size(); ++r) {
      const size_t i = size_t(free_[r]);
      const double room = change_[r] > 0 ? (u_[i] - a_[i]) / change_[r] : change_[r] < 0 ? -a_[i] / change_[r] : part;
      if (room < part) part = room, first = r;
    }
    next_a_ = a_, next_g_ = g_;
    for (size_t r = 0; r < free_.size(); ++r) {
      const size_t i = size_t(free_[r]);
      next_a_[i] = r == first ? (change_[r] > 0 ? u_[i] : 0.0) : std::clamp(a_[i] + part * change_[r], 0.0, u_[i]);
      add_row(row(free_[r]), a_[i] - next_a_[i], next_g_.data(), n_);
    }
    return keep_if_higher() && first < free_.size();
  }

  bool keep_if_higher() {
    if (!(value_of(next_a_.data(), next_g_.data(), n_) > value_of(a_.data(), g_.data(), n_))) return false;
    std::swap(a_, next_a_);
    std::swap(g_, next_g_);
    return true;
  }

  static constexpr int64_t kMostLines = 256, kLong = 16;  // sweeps after which lines are worth their time
  static constexpr int64_t kMostFree = 1000;

  In2<double> K_;
  int64_t n_, padded_;
  double total_ = 0;
  std::vector<double> diagonal_, signs_, weights_;
  std::vector<std::vector<double>> rows_;   // room for rows of Q, of which this program has made `made_`
  std::vector<std::vector<double>> mixed_;  // the same for mixtures
  std::unordered_map<uint64_t, size_t> mixed_of_;
  size_t made_ = 0, mixed_made_ = 0;
  std::vector<double> a_, u_, g_, q_, inverse_, gain_;  // filled up with zeros
  std::vector<int64_t> free_;
  std::vector<double> H_, change_, next_a_, next_g_;
  std::vector<int64_t> place_;
};

// Coordinate by coordinate with w = Uᵀa. Returns a bound of the value from above.
double ascend_rows(In2<double> U, In1<double> upper, Out1<double> alpha, Out1<double> slope, double tol,
                   int64_t max_sweeps) {
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
  for (int64_t sweep = 0;; ++sweep) {
    for (int64_t i = 0; i < n; ++i) g[i] = slope_of(i);
    const double value = scaled_value(a, g, u, n), bound = scaled_bound(a, g, u, n);
    if (sweep >= max_sweeps || bound - value <= tol * value) return bound;
    check_signals();
    for (int64_t i = 0; i < n; ++i) {
      const double step = best_step(a[i], slope_of(i), diagonal[size_t(i)], u[i]);
      if (step == 0) continue;
      a[i] = std::clamp(a[i] + step, 0.0, u[i]);
      move(i, step);
    }
  }
}

// The λ ≥ 0, Σ λ = 1, with the largest least value of Σ_s λ_s payoff_st over t: the game of a matrix, by the simplex
// method on max Σ x over (payoff + c) x ≤ 1, x ≥ 0, whose dual variables are λ divided by the value. Entries are
// brought to [1, 2] first.
void mix_rows(In2<double> payoff, Out1<double> mix) {
  const int64_t S = int64_t(payoff.shape(0)), T = int64_t(payoff.shape(1)), width = T + 1;
  require(S >= 1 && T >= 1, "payoff must have a row and a column");
  require(int64_t(mix.shape(0)) == S, "mix needs a value for each row");
  require(all_finite(payoff.data(), S * T), "payoff must be finite");
  nb::gil_scoped_release release;
  const auto [low, high] = std::minmax_element(payoff.data(), payoff.data() + S * T);
  const double range = *high > *low ? *high - *low : 1.0;
  std::vector<double> table(static_cast<size_t>((S + 1) * width),
                            1.0);  // the last column is what a row has left, the last row what a column promises
  for (int64_t s = 0; s < S; ++s)
    for (int64_t t = 0; t < T; ++t) table[size_t(s * width + t)] = 1.0 + (payoff.data()[s * T + t] - *low) / range;
  std::vector<int64_t> row_holds(static_cast<size_t>(S)),
      column_holds(static_cast<size_t>(T));  // x_t is t, the slack of row s is T + s
  for (int64_t s = 0; s < S; ++s) row_holds[size_t(s)] = T + s;
  for (int64_t t = 0; t < T; ++t) column_holds[size_t(t)] = t;
  double* promise = table.data() + S * width;
  const int64_t most = 50 * (S + T);
  for (int64_t pivot = 0; pivot < most; ++pivot) {
    int64_t in = -1;
    for (int64_t t = 0; t < T; ++t) {
      const bool by_number = pivot > most / 2;  // the first one, in the end: no cycles
      if (promise[t] > 1e-11 &&
          (in < 0 || (by_number ? column_holds[size_t(t)] < column_holds[size_t(in)] : promise[t] > promise[in])))
        in = t;
    }
    if (in < 0) break;
    int64_t out = -1;
    double least = 0;
    for (int64_t s = 0; s < S; ++s) {
      const double *row = table.data() + s * width, ratio = row[in] > 1e-11 ? std::max(row[T], 0.0) / row[in] : -1;
      if (ratio < 0) continue;
      if (out < 0 || ratio < least || (ratio == least && row_holds[size_t(s)] < row_holds[size_t(out)]))
        out = s, least = ratio;
    }
    if (out < 0) break;  // by rounding only: the values are bounded
    double* at = table.data() + out * width;
    const double turn = 1 / at[in];
    for (int64_t t = 0; t < width; ++t) at[t] *= turn;
    at[in] = turn;
    for (int64_t s = 0; s <= S; ++s) {
      double* row = table.data() + s * width;
      if (s == out || row[in] == 0) continue;
      const double c = row[in];
      row[in] = 0;
      for (int64_t t = 0; t < width; ++t) row[t] -= c * at[t];
    }
    std::swap(row_holds[size_t(out)], column_holds[size_t(in)]);
  }
  std::fill(mix.data(), mix.data() + S, 0.0);
  double total = 0;
  for (int64_t t = 0; t < T; ++t) {
    if (column_holds[size_t(t)] < T) continue;
    const double dual = std::max(-promise[t], 0.0);
    mix.data()[column_holds[size_t(t)] - T] = dual;
    total += dual;
  }
  for (int64_t s = 0; s < S; ++s) mix.data()[s] = total > 0 ? mix.data()[s] / total : 1.0 / double(S);
  // Where entries differ by many orders of magnitude, one row alone may be better than what rounding left of the
  // mixture.
  double of_mix = std::numeric_limits<double>::infinity(), of_row = -of_mix;
  for (int64_t t = 0; t < T; ++t) {
    double value = 0;
    for (int64_t s = 0; s < S; ++s) value += mix.data()[s] * payoff.data()[s * T + t];
    of_mix = std::min(of_mix, value);
  }
  int64_t best = 0;
  for (int64_t s = 0; s < S; ++s) {
    const double least = *std::min_element(payoff.data() + s * T, payoff.data() + (s + 1) * T);
    if (least > of_row) of_row = least, best = s;
  }
  if (of_mix >= of_row) return;
  std::fill(mix.data(), mix.data() + S, 0.0);
  mix.data()[best] = 1;
}

double bound_program(In1<double> alpha, In1<double> slope, In1<double> upper, double tol) {
  const int64_t n = int64_t(alpha.shape(0));
  require(int64_t(slope.shape(0)) == n && int64_t(upper.shape(0)) == n,
          "alpha, slope and upper need a value for each instance");
  for (const In1<double>& values : {alpha, slope, upper})
    require(all_finite(values.data(), n), "alpha, slope and upper must be finite");
  return scaled_bound(alpha.data(), slope.data(), upper.data(), n, tol);
}

}  // namespace

void bind_labellings(nb::module_& m) {
  m.def("label_bags", &label_bags, "scores"_a, "weight"_a, "offsets"_a, "least"_a, "most"_a, "known"_a, "out"_a,
        "threads"_a = 1);
  nb::class_<LabelledPrograms>(m, "LabelledPrograms", "Programs over one kernel matrix, for mixtures of labellings.")
      .def(nb::init<In2<double>>(), "K"_a)
      .def("ascend", &LabelledPrograms::ascend, "labelings"_a, "mu"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a,
           "max_sweeps"_a)
      .def("raise_labellings", &LabelledPrograms::raise_labellings, "scores"_a, "labelings"_a, "weight"_a, "offsets"_a,
           "least"_a, "most"_a, "known"_a, "squares"_a, "max_steps"_a, "threads"_a = 1)
      .def("block", &LabelledPrograms::block, "labelings"_a, "mu"_a, "rows"_a, "out"_a);
  m.def("mix_rows", &mix_rows, "payoff"_a, "mix"_a);
  m.def("bound_program", &bound_program, "alpha"_a, "slope"_a, "upper"_a, "tol"_a = 1e-6,
        "What no value of a program is above, for tests.");
  m.def("ascend_rows", &ascend_rows, "U"_a, "upper"_a, "alpha"_a, "slope"_a, "tol"_a, "max_sweeps"_a);
}

}  // namespace mercer
