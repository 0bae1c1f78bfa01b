// Compiled once for each instruction set: see solvers/label_machine_loops.hpp.
//
// A vector holds one number of each of eight machines, so that an entry of X is read once for all of them. The offset b
// is eliminated from the Newton system, whose matrix I + Xᵀ Q X − z zᵀ / ΣQ, z = Xᵀ Q 1, is that of centred features; it
// is solved by conjugate gradients over the rows that some machine has within its margin.
#include "solvers/label_machine_loops.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/aligned.hpp"

namespace mercer::MERCER_ARCH {
namespace {

typedef double V __attribute__((vector_size(8 * kMachines)));
typedef int64_t Mask __attribute__((vector_size(8 * kMachines)));

constexpr double kTiny = 1e-300;
constexpr int kMostConjugate = 200;
constexpr double kForcing = 0.1;  // of the squared residual of a Newton system

[[gnu::always_inline]] inline V get(const double* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline void put(double* p, V v) { std::memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline V positive(V v) { return v > 0.0 ? v : V{}; }
inline bool any(Mask m) {
  int64_t seen = 0;
  for (int j = 0; j < kMachines; ++j) seen |= m[j];
  return seen != 0;
}

// ⟨x_i, w⟩ of every machine.
[[gnu::always_inline]] inline V product(const Rows<double>& x, int64_t i, const double* w) {
  V even{}, odd{};
  int64_t k = x.indptr[i];
  const int64_t end = x.indptr[i + 1];
  for (; k + 1 < end; k += 2) {
    even += x.values[k] * get(w + kMachines * int64_t(x.indices[k]));
    odd += x.values[k + 1] * get(w + kMachines * int64_t(x.indices[k + 1]));
  }
  if (k < end) even += x.values[k] * get(w + kMachines * int64_t(x.indices[k]));
  return even + odd;
}

class Block {
 public:
  explicit Block(LabelMachines& t)
      : t_(t),
        n_(t.x.n_rows),
        size_(size_t(t.x.n_columns) * kMachines),
        scores_(size_t(n_) * kMachines),
        moves_(size_t(n_) * kMachines),
        weights_(size_),
        sums_(3 * size_),
        step_(size_),
        rest_(size_),
        along_(size_),
        bent_(size_) {
    for (int j = 0; j < kMachines; ++j) live_[j] = j < t.count ? -1 : 0;
    shift_ = V{};
    for (int j = 0; j < t.count; ++j) {
      shift_[j] = t.shifts[j];
      for (int64_t k = 0; k < t.x.n_columns; ++k)
        weights_[size_t(k * kMachines + j)] = t.weights[j * t.x.n_columns + k];
    }
  }

  void solve() {
    for (int64_t i = 0; i < n_; ++i) put(&scores_[size_t(i) * kMachines], product(t_.x, i, weights_.data()) + shift_);
    for (t_.steps = 0;; ++t_.steps) {
      t_.poll();
      sum_up();
      leave(t_.steps >= t_.max_iter);
      if (!any(live_)) break;
      direction();
      search();
    }
    for (int j = 0; j < t_.count; ++j)
      for (int64_t k = 0; k < t_.x.n_columns; ++k)
        t_.weights[j * t_.x.n_columns + k] = weights_[size_t(k * kMachines + j)];
  }

 private:
  // Signs and weights C |t| of a row's targets.
  [[gnu::always_inline]] inline void target(int64_t i, V& sign, V& weight) const {
    V v{};
    const double* at = t_.targets + i * t_.stride;
    if (t_.count == kMachines)
      v = get(at);
    else
      for (int j = 0; j < t_.count; ++j) v[j] = at[j];
    sign = v > 0.0 ? V{} + 1.0 : (v < 0.0 ? V{} - 1.0 : V{});
    weight = t_.C * sign * v;
  }

  // Losses, gradients, the diagonal of Xᵀ Q X and z, with the rows that count.
  void sum_up() {
    value_ = slope_ = total_ = curved_ = V{};
    for (size_t at = 0; at < size_; at += kMachines) {
      put(&sums_[3 * at], get(&weights_[at]));
      put(&sums_[3 * at + kMachines], V{} + 1.0);
      put(&sums_[3 * at + 2 * kMachines], V{});
    }
    rows_.clear();
    curvature_.clear();
    for (int64_t i = 0; i < n_; ++i) {
      V sign, weight;
      target(i, sign, weight);
      const V margin = positive(1.0 - sign * get(&scores_[size_t(i) * kMachines])), a = 2.0 * weight * margin;
      value_ += 0.5 * a * margin;
      const Mask counts = (a > 0.0) & live_;
      if (!any(counts)) continue;
      const V force = counts ? sign * a : V{}, q = counts ? 2.0 * weight : V{};
      slope_ -= force;
      total_ += a;
      curved_ += q;
      rows_.push_back(i);
      curvature_.push_back(q);
      for (int64_t k = t_.x.indptr[i]; k < t_.x.indptr[i + 1]; ++k) {
        double* to = &sums_[3 * kMachines * size_t(t_.x.indices[k])];
        const double x = t_.x.values[k];
        put(to, get(to) - x * force);
        put(to + kMachines, get(to + kMachines) + x * x * q);
        put(to + 2 * kMachines, get(to + 2 * kMachines) + x * q);
      }
    }
  }

  // Notes the machines that are done.
  void leave(bool ended) {
    V squares{}, gradients{};
    for (size_t at = 0; at < size_; at += kMachines) {
      const V w = get(&weights_[at]), g = get(&sums_[3 * at]);
      squares += w * w;
      gradients += g * g;
    }
    before_ = 0.5 * squares + value_;
    squares_ = squares;
    for (int j = 0; j < t_.count; ++j) {
      if (!live_[j]) continue;
      const double left = 0.5 * gradients[j], slope = t_.intercept ? std::abs(slope_[j]) : 0.0;
      const bool done = left <= t_.tol * std::max(before_[j], 1e-12) && slope <= 1e-3 * std::sqrt(t_.tol) * total_[j];
      if (!done && !ended) continue;
      t_.objective[j] = before_[j];
      t_.gap[j] = left / std::max(before_[j], kTiny);
      t_.converged[j] = done;
      t_.shifts[j] = shift_[j];
      live_[j] = 0;
    }
  }

  // The Newton step, from gradients and z in sums_.
  void direction() {
    const Mask has_offset = t_.intercept ? curved_ > 0.0 : Mask{};
    const V inverse = has_offset ? 1.0 / curved_ : V{};
    V rz{};
    for (size_t at = 0; at < size_; at += kMachines) {
      double* sums = &sums_[3 * at];
      const V z = get(sums + 2 * kMachines), rest = z * slope_ * inverse - get(sums);
      V below = get(sums + kMachines) - z * z * inverse;
      below = below > 1.0 ? below : V{} + 1.0;
      put(sums + kMachines, below);
      put(&step_[at], V{});
      put(&rest_[at], rest);
      put(&along_[at], rest / below);
      rz += rest * rest / below;
    }
    const V first = rz;
    for (int turn = 0; turn < kMostConjugate; ++turn) {
      std::memcpy(bent_.data(), along_.data(), size_ * sizeof(double));
      V pull{};
      for (size_t r = 0; r < rows_.size(); ++r) {
        const int64_t i = rows_[r];
        const V a = curvature_[r] * product(t_.x, i, along_.data());
        pull += a;
        for (int64_t k = t_.x.indptr[i]; k < t_.x.indptr[i + 1]; ++k) {
          double* to = &bent_[kMachines * size_t(t_.x.indices[k])];
          put(to, get(to) + t_.x.values[k] * a);
        }
      }
      const V back = pull * inverse;
      V bend{};
      for (size_t at = 0; at < size_; at += kMachines) {
        const V bent = get(&bent_[at]) - back * get(&sums_[3 * at + 2 * kMachines]);
        put(&bent_[at], bent);
        bend += get(&along_[at]) * bent;
      }
      const V length = (live_ & (bend > 0.0)) ? rz / (bend > kTiny ? bend : V{} + kTiny) : V{};
      V after{};
      for (size_t at = 0; at < size_; at += kMachines) {
        put(&step_[at], get(&step_[at]) + length * get(&along_[at]));
        const V rest = get(&rest_[at]) - length * get(&bent_[at]);
        put(&rest_[at], rest);
        after += rest * rest / get(&sums_[3 * at + kMachines]);
      }
      if (!any((after > kForcing * first) & live_ & (bend > 0.0))) break;
      const V ratio = after / (rz > kTiny ? rz : V{} + kTiny);
      for (size_t at = 0; at < size_; at += kMachines)
        put(&along_[at], get(&rest_[at]) / get(&sums_[3 * at + kMachines]) + ratio * get(&along_[at]));
      rz = after;
    }
    V crossed{};
    for (size_t at = 0; at < size_; at += kMachines) crossed += get(&sums_[3 * at + 2 * kMachines]) * get(&step_[at]);
    // Without a row within the margin only the slope says where to go.
    const V sign = slope_ > 0.0 ? V{} - 1.0 : (slope_ < 0.0 ? V{} + 1.0 : V{});
    offset_ = t_.intercept ? (has_offset ? -(slope_ + crossed) * inverse : sign) : V{};
  }

  // The step 1, halved for each machine until its objective has fallen.
  void search() {
    V crossed{}, squares{}, fall = slope_ * offset_;
    for (size_t at = 0; at < size_; at += kMachines) {
      const V d = get(&step_[at]);
      crossed += get(&weights_[at]) * d;
      squares += d * d;
      fall += get(&sums_[3 * at]) * d;
    }
    for (int64_t i = 0; i < n_; ++i) put(&moves_[size_t(i) * kMachines], product(t_.x, i, step_.data()) + offset_);
    V length = live_ ? V{} + 1.0 : V{};
    for (int halving = 0;; ++halving) {
      V value{};
      for (int64_t i = 0; i < n_; ++i) {
        V sign, weight;
        target(i, sign, weight);
        const size_t at = size_t(i) * kMachines;
        const V margin = positive(1.0 - sign * (get(&scores_[at]) + length * get(&moves_[at])));
        value += weight * margin * margin;
      }
      const V after = 0.5 * (squares_ + 2.0 * length * crossed + length * length * squares) + value;
      const Mask too_long = (after > before_ + 1e-4 * length * fall + 1e-11 * before_) & live_;
      if (!any(too_long)) break;
      length = too_long ? (halving < 30 ? 0.5 * length : V{}) : length;
    }
    for (size_t at = 0; at < size_; at += kMachines) put(&weights_[at], get(&weights_[at]) + length * get(&step_[at]));
    shift_ += length * offset_;
    for (size_t at = 0; at < scores_.size(); at += kMachines)
      put(&scores_[at], get(&scores_[at]) + length * get(&moves_[at]));
  }

  LabelMachines& t_;
  int64_t n_;
  size_t size_;
  AlignedVector<double> scores_, moves_;  // of rows: ⟨w, x⟩ + b, and what a step adds
  AlignedVector<double> weights_;
  AlignedVector<double> sums_;  // of features: gradient, diagonal, z
  AlignedVector<double> step_, rest_, along_, bent_;
  std::vector<int64_t> rows_;
  AlignedVector<V> curvature_;
  Mask live_{};
  V shift_, value_, slope_, total_, curved_, before_, squares_, offset_;
};

void solve(LabelMachines& machines) { Block(machines).solve(); }

}  // namespace

template <> const LabelMachineLoops& table<LabelMachineLoops>() {
  static constexpr LabelMachineLoops loops = {.solve = solve};
  return loops;
}

}  // namespace mercer::MERCER_ARCH
