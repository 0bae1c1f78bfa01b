// The dual of the relative margin machine with kernels, solved two variables at a time.
//
// Primal:  min ½‖w‖² + Σ C_i ξ_i,   y_i f(x_i) ≥ 1 − ξ_i,  ξ_i ≥ 0,  −B ≤ f(x_i) ≤ B,   f(x) = ⟨w, φ(x)⟩ + b.
//
// With multipliers α of the margins and β, γ of the bounds y f ≤ B and −y f ≤ B, w = Σ s_i φ(x_i) where
// y_i s_i = δ_i = α_i − β_i + γ_i. For a given δ the best of the three is known in closed form, so the dual has one
// variable an example and a concave, piecewise linear reward:
//
//   max_s Σ_i h(y_i s_i) − ½ sᵀ K s,  Σ_i s_i = 0,      h(δ) = B δ          where δ ≤ 0        (y f = B)
//                                                              δ            where 0 ≤ δ ≤ C_i   (y f = 1)
//                                                              C − B (δ−C)  where δ ≥ C = C_i   (y f = −B)
//
// B ≥ 1 makes h concave; B = ∞ forbids the outer pieces and leaves the dual of the SVM. It is solved by the ascent of
// svm_smo.hpp.
#include "base/csr_rows.hpp"
#include "base/parallel.hpp"
#include "base/vector_loops.hpp"
#include "solvers/svm_smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

namespace mercer {
namespace {

using smo::kInfinity;
constexpr double kFlat = 1e-12;  // a curvature that stands for zero, relative to the diagonal of K

enum class KernelKind { linear, poly, rbf, sigmoid };

KernelKind kernel_kind(const std::string& name) {
  if (name == "linear") return KernelKind::linear;
  if (name == "poly") return KernelKind::poly;
  if (name == "rbf") return KernelKind::rbf;
  if (name == "sigmoid") return KernelKind::sigmoid;
  fail("kernel must be 'linear', 'poly', 'rbf' or 'sigmoid'");
}

// One kernel function over checked feature rows.
class KernelFunction {
 public:
  KernelFunction(const Rows<double>& x, KernelKind kind, int degree, double gamma, double coef0, int threads)
      : x_(x),
        kind_(kind),
        degree_(degree),
        gamma_(gamma),
        coef0_(coef0),
        threads_(threads),
        scattered_(x.indptr ? x.n_columns : 0) {
    squares_.resize(x.n_rows);
    for (int64_t i = 0; i < x.n_rows; ++i) squares_[i] = square(i);
  }
  double diagonal(int64_t i) const { return value(squares_[i], i, i); }
  void row(int64_t i, double* out) {
    scatter(i, true);
    const int64_t work = x_.indptr ? x_.indptr[x_.n_rows] : x_.n_rows * x_.n_columns;
    const int64_t parts = work > 100000 ? threads_ : 1;  // else waking the threads takes longer
    in_parallel(parts, threads_, [&](int64_t part) {
      const int64_t end = x_.n_rows * (part + 1) / parts;
      for (int64_t j = x_.n_rows * part / parts; j < end; ++j) out[j] = value(product(i, j), i, j);
    });
    scatter(i, false);
  }

 private:
  double square(int64_t i) const {
    if (!x_.indptr)
      return loops<VectorLoops>().dot_dd(x_.values + i * x_.n_columns, x_.values + i * x_.n_columns, x_.n_columns);
    double sum = 0;
    for (int64_t k = x_.indptr[i]; k < x_.indptr[i + 1]; ++k) sum += entry(k) * entry(k);
    return sum;
  }
  double entry(int64_t k) const { return x_.values ? x_.values[k] : 1.0; }
  // A sparse row is spread out once, then met by all others.
  void scatter(int64_t i, bool set) {
    if (!x_.indptr) return;
    for (int64_t k = x_.indptr[i]; k < x_.indptr[i + 1]; ++k) scattered_[x_.indices[k]] = set ? entry(k) : 0.0;
  }
  double product(int64_t i, int64_t j) const {
    if (!x_.indptr)
      return loops<VectorLoops>().dot_dd(x_.values + i * x_.n_columns, x_.values + j * x_.n_columns, x_.n_columns);
    double sum = 0;
    for (int64_t k = x_.indptr[j]; k < x_.indptr[j + 1]; ++k) sum += entry(k) * scattered_[x_.indices[k]];
    return sum;
  }
  double value(double dot, int64_t i, int64_t j) const {
    switch (kind_) {
      case KernelKind::linear: return dot;
      case KernelKind::sigmoid: return std::tanh(gamma_ * dot + coef0_);
      case KernelKind::rbf: return std::exp(-gamma_ * std::max(0.0, squares_[i] + squares_[j] - 2 * dot));
      case KernelKind::poly: break;
    }
    double power = 1, base = gamma_ * dot + coef0_;
    for (int left = degree_; left > 0; left /= 2, base *= base)
      if (left % 2) power *= base;
    return power;
  }

  Rows<double> x_;
  KernelKind kind_;
  int degree_;
  double gamma_, coef0_;
  int threads_;
  std::vector<double> squares_, scattered_;
};

// Rows of K: those of a given matrix, or computed ones of which the most recently used are kept.
class GramRows {
 public:
  GramRows(const double* matrix, int64_t n) : n_(n), matrix_(matrix) {}
  GramRows(std::unique_ptr<KernelFunction> function, int64_t n, int64_t capacity)
      : n_(n), function_(std::move(function)), capacity_(std::min(capacity, n)), slot_of_(n, -1) {}

  double diagonal(int64_t i) const { return matrix_ ? matrix_[i * n_ + i] : function_->diagonal(i); }
  // Valid until two other rows have been asked for.
  const double* row(int64_t i) {
    if (matrix_) return matrix_ + i * n_;
    int64_t slot = slot_of_[i];
    if (slot < 0) {
      slot = free_slot();
      function_->row(i, slots_[slot].get());
      slot_of_[i] = slot;
      row_of_[slot] = i;
    }
    used_[slot] = ++clock_;
    return slots_[slot].get();
  }

 private:
  int64_t free_slot() {
    if (int64_t(slots_.size()) < capacity_) {
      slots_.emplace_back(new double[n_]);
      row_of_.push_back(-1);
      used_.push_back(0);
      return int64_t(slots_.size()) - 1;
    }
    // Looking through the slots costs less than the row that is about to be computed.
    const int64_t slot = std::min_element(used_.begin(), used_.end()) - used_.begin();
    slot_of_[row_of_[slot]] = -1;
    return slot;
  }

  int64_t n_;
  const double* matrix_ = nullptr;
  std::unique_ptr<KernelFunction> function_;
  int64_t capacity_ = 0, clock_ = 0;
  std::vector<int64_t> slot_of_, row_of_, used_;
  std::vector<std::unique_ptr<double[]>> slots_;
};

// h of the dual, in s = y delta.
struct RelativeMargin {
  static constexpr bool kCorners = true;
  std::vector<double> y, C;
  double B = kInfinity;

  double h(size_t i, double delta) const {
    if (delta < 0) return B * delta;
    return delta <= C[i] ? delta : C[i] - B * (delta - C[i]);
  }
  // Derivatives of h to the right and to the left.
  double right(size_t i, double delta) const { return delta < 0 ? B : delta < C[i] ? 1.0 : -B; }
  double left(size_t i, double delta) const { return delta <= 0 ? B : delta <= C[i] ? 1.0 : -B; }
  double corner_above(size_t i, double delta) const { return delta < 0 ? 0.0 : delta < C[i] ? C[i] : kInfinity; }
  double corner_below(size_t i, double delta) const { return delta > C[i] ? C[i] : delta > 0 ? 0.0 : -kInfinity; }

  double linear(size_t i) const { return y[i]; }
  double after(size_t i, double s) const { return y[i] > 0 ? right(i, s) - 1 : 1 - left(i, -s); }
  double before(size_t i, double s) const { return y[i] > 0 ? left(i, s) - 1 : 1 - right(i, -s); }
  double next_up(size_t i, double s) const { return y[i] > 0 ? corner_above(i, s) : -corner_below(i, -s); }
  double next_down(size_t i, double s) const { return y[i] > 0 ? corner_below(i, s) : -corner_above(i, -s); }
  // Outputs beyond B have no finite loss: bounds come from `RelativeMarginDual::figures`.
  double loss(size_t i, double d) const { return C[i] * std::max(0.0, y[i] * d); }
  double gap(size_t i, double s, double d) const { return loss(i, d) - h(i, y[i] * s) + s * (y[i] - d); }
};

struct Figures {
  double primal, dual, violation, scale, intercept;
};

class RelativeMarginDual {
 public:
  RelativeMarginDual(GramRows rows, In1<double> y, In1<double> C, double B)
      : n_(int64_t(y.shape(0))), ascent_(std::move(rows), n_) {
    require(int64_t(C.shape(0)) == n_, "C must have one value an example");
    for (int64_t i = 0; i < n_; ++i)
      require(std::isfinite(C.data()[i]) && C.data()[i] > 0, "C must be positive and finite");
    require(B >= 1, "B must be at least 1");
    reward_.y.assign(y.data(), y.data() + n_);
    reward_.C.assign(C.data(), C.data() + n_);
    largest_ = *std::max_element(reward_.C.begin(), reward_.C.end());
    reward_.B = B;
    bool positive = false, negative = false;
    for (double label : reward_.y) {
      require(label == 1 || label == -1, "y must hold -1 and 1");
      (label > 0 ? positive : negative) = true;
    }
    require(positive && negative, "y must hold both -1 and 1");
    const std::vector<double>& diagonal = ascent_.diagonal();
    require(all_finite(diagonal.data(), n_), "the kernel is not finite");
    double size = 0;
    for (double value : diagonal) size += std::abs(value) / double(n_);
    ascent_.ties = smo::kTies;
    ascent_.flat = kFlat * std::max(size, 1e-280);
  }
  RelativeMarginDual(const RelativeMarginDual&) = delete;
  RelativeMarginDual& operator=(const RelativeMarginDual&) = delete;

  // Goes on from s, with g = K s, if that is feasible and better than the point at hand; says whether it was.
  bool start(In1<double> s, In1<double> g) {
    require(int64_t(s.shape(0)) == n_ && int64_t(g.shape(0)) == n_, "s and g must have one value an example");
    require(all_finite(s.data(), n_) && all_finite(g.data(), n_), "s and g must be finite");
    double sum = 0, size = 0, value = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const double delta = reward_.y[size_t(i)] * s.data()[i];
      sum += s.data()[i];
      size += std::abs(delta);
      value += reward_.h(size_t(i), delta) - 0.5 * s.data()[i] * g.data()[i];  // -inf outside the box of an SVM
    }
    if (std::abs(sum) > 1e-9 * (size + largest_) || !(value > figures().dual)) return false;
    ascent_.s.assign(s.data(), s.data() + n_);
    ascent_.g.assign(g.data(), g.data() + n_);
    return true;
  }

  // At most max_steps steps; fewer if the violation falls to tol. Returns the number of steps made.
  int64_t run(int64_t max_steps, double tol) {
    require(max_steps >= 0, "max_steps must not be negative");
    require(tol > 0, "tol must be positive");
    return ascent_.ascend({0.0, 0.0, tol, max_steps, true}).iterations;
  }

  // The dual value and that of a feasible primal point: f shrunk by ``scale`` into [-B, B].
  Figures figures() const {
    double highest = -kInfinity, lowest = kInfinity, most = -kInfinity, least = kInfinity;
    double square = 0, value = 0;
    const double B = reward_.B;
    for (size_t i = 0; i < size_t(n_); ++i) {
      const double s = ascent_.s[i], g = ascent_.g[i], y = reward_.y[i];
      highest = std::max(highest, y + reward_.after(i, s) - g);
      lowest = std::min(lowest, y + reward_.before(i, s) - g);
      most = std::max(most, g);
      least = std::min(least, g);
      square += s * g;
      value += reward_.h(i, y * s);
    }
    double b = (highest + lowest) / 2, scale = 1;
    if (std::isfinite(B)) {
      // b as near to the optimal one as the bounds allow; where no b is enough, w shrinks with it.
      const double low = -B - least, high = B - most;
      b = low <= high ? std::min(std::max(b, low), high) : (low + high) / 2;
      const double size = std::max(std::abs(most + b), std::abs(least + b));
      if (size > B) scale = B / size;
    }
    double slack = 0;
    for (size_t i = 0; i < size_t(n_); ++i)
      slack += reward_.C[i] * std::max(0.0, 1 - scale * reward_.y[i] * (ascent_.g[i] + b));
    return {0.5 * scale * scale * square + slack, value - 0.5 * square, highest - lowest, scale, scale * b};
  }
  void coefficients(Out1<double> out) const {
    require(int64_t(out.shape(0)) == n_, "out must have one value an example");
    std::copy(ascent_.s.begin(), ascent_.s.end(), out.data());
  }
  std::mutex& mutex() { return mutex_; }

 private:
  int64_t n_;
  double largest_ = 1;  // of C
  smo::PairAscent<RelativeMargin, GramRows> ascent_;
  RelativeMargin& reward_ = ascent_.reward;
  std::mutex mutex_;
};

GramRows given_rows(In2<double> K, In1<double> y) {
  require(K.shape(0) == K.shape(1) && K.shape(0) == y.shape(0), "K must be square, with one row an example");
  require(all_finite(K.data(), int64_t(K.shape(0) * K.shape(1))), "the kernel is not finite");
  return GramRows(K.data(), int64_t(y.shape(0)));
}

GramRows computed_rows(const FeatureRows& x, const std::string& kernel, int degree, double gamma, double coef0,
                       In1<double> y, int64_t cache_rows, int threads) {
  require(x.n_rows() == int64_t(y.shape(0)), "y must have one value a row");
  require(degree >= 0, "degree must not be negative");
  require(std::isfinite(gamma) && gamma >= 0, "gamma must be finite and not negative");
  require(std::isfinite(coef0), "coef0 must be finite");
  require(cache_rows >= 2, "cache_rows must be at least 2");
  auto function = std::make_unique<KernelFunction>(x.view<double>(), kernel_kind(kernel), degree, gamma, coef0,
                                                   thread_count(threads));
  return GramRows(std::move(function), x.n_rows(), cache_rows);
}

}  // namespace

void bind_relative(nb::module_& m) {
  nb::class_<RelativeMarginDual>(m, "RelativeMarginDual", "The dual of a binary relative margin machine.")
      .def(
          "__init__",
          [](RelativeMarginDual* self, In2<double> K, In1<double> y, In1<double> C, double B) {
            new (self) RelativeMarginDual(given_rows(K, y), y, C, B);
          },
          "K"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "B"_a, nb::keep_alive<1, 2>())
      .def(
          "__init__",
          [](RelativeMarginDual* self, const FeatureRows& rows, const std::string& kernel, int degree, double gamma,
             double coef0, In1<double> y, In1<double> C, double B, int64_t cache_rows, int threads) {
            new (self)
                RelativeMarginDual(computed_rows(rows, kernel, degree, gamma, coef0, y, cache_rows, threads), y, C, B);
          },
          "rows"_a, "kernel"_a, "degree"_a, "gamma"_a, "coef0"_a, "y"_a.noconvert(), "C"_a.noconvert(), "B"_a,
          "cache_rows"_a, "threads"_a = 1, nb::keep_alive<1, 2>())
      .def(
          "start",
          [](RelativeMarginDual& self, In1<double> s, In1<double> g) {
            std::lock_guard<std::mutex> lock(self.mutex());
            return self.start(s, g);
          },
          "s"_a.noconvert(), "g"_a.noconvert(),
          "Goes on from s, with g = K s, if it is feasible and better; says whether it was.")
      .def(
          "run",
          [](RelativeMarginDual& self, int64_t max_steps, double tol) {
            nb::gil_scoped_release release;
            std::lock_guard<std::mutex> lock(self.mutex());
            return self.run(max_steps, tol);
          },
          "max_steps"_a, "tol"_a, "Makes up to max_steps steps, fewer if the violation falls to tol; returns how many.")
      .def(
          "figures",
          [](RelativeMarginDual& self) {
            nb::gil_scoped_release release;
            std::lock_guard<std::mutex> lock(self.mutex());
            const Figures f = self.figures();
            return std::make_tuple(f.primal, f.dual, f.violation, f.scale, f.intercept);
          },
          "(primal, dual, violation, scale, intercept): the primal point is f shrunk by scale into [-B, B].")
      .def(
          "coefficients",
          [](RelativeMarginDual& self, Out1<double> out) {
            std::lock_guard<std::mutex> lock(self.mutex());
            self.coefficients(out);
          },
          "out"_a.noconvert(), "The s of f = K s + b, before scaling.");
}

}  // namespace mercer
