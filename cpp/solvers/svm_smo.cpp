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
// KernelMachine: steps on the pair (i, j) that promises most by a second-order model, with shrinking.
// LinearMachine: augmented Lagrangian of the dual; its inner problem, smooth and piecewise quadratic in (w, b), is
// solved by Newton steps that cost O(non-zeros). The intercept is a free variable there, and sum_i beta_i = 0 holds
// when the inner problem is solved.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/arrays.hpp"
#include "base/clones.hpp"
#include "base/dense.hpp"
#include "base/signals.hpp"

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

// The upper half of H += sum over k of c[k] x_k x_k' for four rows x_k of length m.
MERCER_CLONES void add_squares(const double* x, const double* c, int64_t m, double* H) {
  for (int64_t r = 0; r < m; ++r) {
    const double here[4] = {c[0] * x[r], c[1] * x[m + r], c[2] * x[2 * m + r], c[3] * x[3 * m + r]};
    if (here[0] != 0 || here[1] != 0 || here[2] != 0 || here[3] != 0) add_four(x + r, m, here, H + r * m + r, m - r);
  }
}

// ---------------------------------------------------------------------------------------------- over a kernel matrix

constexpr int64_t kBlock = 64;  // entries among which the place of an extreme value is looked for

// What a machine looks through at every step, of the instances not set aside. v_s = y_s - g_s; grows_s is 0 where
// beta_s may grow and -infinity elsewhere, falls_s is 0 where it may fall and infinity elsewhere. Rows of K are read at
// `places`, or straight where that is null.
struct Watched {
  double* v;
  const double *grows, *falls, *diagonal;
  const int32_t* places;
  int64_t size;
};

struct Extremes {
  double up = -kInfinity, down = kInfinity;  // the largest v + grows, the smallest v + falls
  int64_t block = 0;                         // where the largest is
};

template <class Read>
[[gnu::always_inline]] inline Extremes moved(Watched w, const double* ki, const double* kj, double t, Read read) {
  Extremes found;
  double* __restrict values = w.v;
  const double* __restrict grows = w.grows, * __restrict falls = w.falls;
  for (int64_t first = 0; first < w.size; first += kBlock) {
    const int64_t end = std::min(first + kBlock, w.size);
    double up = -kInfinity, down = kInfinity;
#pragma omp simd reduction(max : up) reduction(min : down)
    for (int64_t s = first; s < end; ++s) {
      const double v = values[s] - t * (read(ki, s) - read(kj, s)), grown = v + grows[s], fallen = v + falls[s];
      values[s] = v;
      up = grown > up ? grown : up;
      down = fallen < down ? fallen : down;
    }
    if (up > found.up) {
      found.up = up;
      found.block = first;
    }
    found.down = std::min(found.down, down);
  }
  return found;
}

// v -= t (ki - kj) and what is extreme then.
MERCER_CLONES Extremes move(Watched w, const double* ki, const double* kj, double t) {
  if (w.places) return moved(w, ki, kj, t, [places = w.places](const double* k, int64_t s) { return k[places[s]]; });
  return moved(w, ki, kj, t, [](const double* k, int64_t s) { return k[s]; });
}

// What a pair with s promises: (up - v_s)^2 / curvature, 0 where s may not fall.
template <class Read>
[[gnu::always_inline]] inline double promise(Watched w, const double* ki, double up, double kii, int64_t s, Read read) {
  const double violation = up - (w.v[s] + w.falls[s]), curvature = kii + w.diagonal[s] - 2 * read(ki, s);
  const double positive = violation > 0 ? violation : 0.0;
  return positive * positive / (curvature > 1e-12 ? curvature : 1e-12);
}

template <class Read>
[[gnu::always_inline]] inline int64_t most_promising(Watched w, const double* ki, double up, double kii, Read read) {
  double most = 0;
  int64_t block = -1, at = -1;
  for (int64_t first = 0; first < w.size; first += kBlock) {
    const int64_t end = std::min(first + kBlock, w.size);
    double here = 0;
#pragma omp simd reduction(max : here)
    for (int64_t s = first; s < end; ++s) {
      const double of_s = promise(w, ki, up, kii, s, read);
      here = of_s > here ? of_s : here;
    }
    if (here > most) {
      most = here;
      block = first;
    }
  }
  if (block < 0) return -1;
  most = -1;
  for (int64_t s = block; s < std::min(block + kBlock, w.size); ++s)
    if (const double here = promise(w, ki, up, kii, s, read); here > most) {
      most = here;
      at = s;
    }
  return at;
}

// The best partner of an instance by a second-order model; -1 if none promises anything.
MERCER_CLONES int64_t partner(Watched w, const double* ki, double up, double kii) {
  if (w.places)
    return most_promising(w, ki, up, kii, [places = w.places](const double* k, int64_t s) { return k[places[s]]; });
  return most_promising(w, ki, up, kii, [](const double* k, int64_t s) { return k[s]; });
}

class KernelMachine {
 public:
  explicit KernelMachine(In2<double> K) : K_(K), n_(int64_t(K.shape(0))) {
    require(K.shape(0) == K.shape(1) && n_ >= 1, "K must be a square matrix with at least one row");
    require(n_ <= std::numeric_limits<int32_t>::max(), "K has too many rows");
    require(all_finite(K.data(), n_ * n_), "K must be finite");
    for (int64_t i = 0; i < n_ * n_; ++i)
      require(std::abs(K.data()[i]) <= 1e150, "K must not exceed 1e150: scale the features down");
    y_.assign(size_t(n_), 0.0);
    upper_.assign(size_t(n_), 0.0);
    beta_.assign(size_t(n_), 0.0);
    g_.assign(size_t(n_), 0.0);
  }

  nb::tuple solve(In1<int8_t> labels, In1<double> upper, double tol, int64_t max_iter) {
    check_problem(n_, labels, upper, tol, max_iter);
    nb::gil_scoped_release unlocked;
    start(labels.data(), upper.data());
    Outcome found;
    try {
      found = iterate(tol, max_iter);
    } catch (...) {
      recompute();
      throw;
    }
    intercept_ = found.intercept;
    nb::gil_scoped_acquire locked;
    return shown(found);
  }

  nb::object scores() const {
    std::vector<double> f(g_);
    for (double& value : f) value += intercept_;
    return to_numpy(std::move(f));
  }
  nb::object weights() const { return to_numpy(std::vector<double>(beta_)); }

 private:
  const double* row(int64_t i) const { return K_.data() + i * n_; }
  double low(int64_t i) const { return y_[size_t(i)] > 0 ? 0.0 : -upper_[size_t(i)]; }
  double high(int64_t i) const { return y_[size_t(i)] > 0 ? upper_[size_t(i)] : 0.0; }

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
      recompute();
      return;
    }
    for (int64_t i = 0; i < n_; ++i) {
      const double change = beta_[size_t(i)] - ratio * old[size_t(i)];
      if (change != 0.0) add(i, change);
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

  void add(int64_t i, double change) { add_row(row(i), change, g_.data(), n_); }

  void recompute() {
    std::fill(g_.begin(), g_.end(), 0.0);
    for (int64_t i = 0; i < n_; ++i)
      if (beta_[size_t(i)] != 0.0) add(i, beta_[size_t(i)]);
  }

  // Between two looks at the gap, steps are cheap enough not to count how far they lead past the aim.
  Outcome iterate(double tol, int64_t max_iter) {
    watch_all();
    Outcome found;
    Extremes now = look_around();
    double width = now.up - now.down;
    const double total = std::accumulate(upper_.begin(), upper_.end(), 0.0);
    const int64_t period = std::max<int64_t>(n_, 256);
    int64_t look = 0, until = period, fresh = 0;  // fresh: the step at which g was last summed up
    while (true) {
      const bool settled =
          !(now.up - now.down > 1e-13 * std::max(1.0, width));  // differences below rounding are no violations
      const bool last = settled || found.iterations >= max_iter;
      if (last || found.iterations >= look) {
        evaluate(found, now);
        found.converged = found.gap <= small_enough(tol, found.squared_norm, total);
        if (found.converged || last) {
          restore();
          if (places_.empty() && found.iterations - fresh < period) return found;
          recompute();  // what was set aside may violate by now, and rounding errors have come together
          watch_all();
          now = look_around();
          width = now.up - now.down;
          fresh = look = found.iterations;
          until = found.iterations + period;
          continue;
        }
        look = found.iterations + std::max<int64_t>(32, int64_t(v_.size()) / 16);
      }
      if (found.iterations >= until) {
        until += period;
        set_aside(now);
        now = look_around();
        check_signals();
      }
      now = step(now);
      ++found.iterations;
    }
  }

  Watched watched() {
    return {
        v_.data(),         grows_.data(), falls_.data(), diagonal_.data(), places_.empty() ? nullptr : places_.data(),
        int64_t(v_.size())};
  }
  int64_t place(int64_t s) const { return places_.empty() ? s : int64_t(places_[size_t(s)]); }

  void mark(int64_t s) {
    const int64_t i = place(s);
    grows_[size_t(s)] = beta_[size_t(i)] < high(i) ? 0.0 : -kInfinity;
    falls_[size_t(s)] = beta_[size_t(i)] > low(i) ? 0.0 : kInfinity;
  }

  Extremes look_around() { return move(watched(), row(0), row(0), 0.0); }

  void watch_all() {
    places_.clear();
    square_ = 0;
    for (auto* values : {&v_, &grows_, &falls_, &diagonal_}) values->resize(size_t(n_));
    for (int64_t i = 0; i < n_; ++i) {
      v_[size_t(i)] = y_[size_t(i)] - g_[size_t(i)];
      diagonal_[size_t(i)] = row(i)[i];
      square_ += beta_[size_t(i)] * g_[size_t(i)];
      mark(i);
    }
  }

  // g of the instances watched.
  void restore() {
    for (size_t s = 0; s < v_.size(); ++s) {
      const size_t i = size_t(place(int64_t(s)));
      g_[i] = y_[i] - v_[s];
    }
  }

  Extremes step(const Extremes& now) {
    const Watched w = watched();
    int64_t a = now.block;
    while (w.v[a] + w.grows[a] != now.up) ++a;
    const int64_t i = place(a);
    const double* ki = row(i);
    const int64_t b = partner(w, ki, now.up, w.diagonal[a]);
    if (b < 0) fail("K is not finite any more: it must not be changed while the machine is in use");
    const int64_t j = place(b);
    const double curvature = w.diagonal[a] + w.diagonal[b] - 2 * ki[j], violation = now.up - w.v[b];
    const double room_i = high(i) - beta_[size_t(i)], room_j = beta_[size_t(j)] - low(j);
    const double t = std::min({violation / std::max(curvature, 1e-12), room_i, room_j});
    beta_[size_t(i)] = t == room_i ? high(i) : beta_[size_t(i)] + t;
    beta_[size_t(j)] = t == room_j ? low(j) : beta_[size_t(j)] - t;
    // |w + t (x_i - x_j)|^2, g_i - g_j being that of v and y.
    square_ += t * (2 * (y_[size_t(i)] - y_[size_t(j)] - violation) + t * curvature);
    mark(a);
    mark(b);
    return move(w, ki, row(j), t);
  }

  // Sets aside those at a bound that no pair would move.
  void set_aside(const Extremes& now) {
    std::vector<int32_t> kept;
    size_t count = 0;
    for (size_t s = 0; s < v_.size(); ++s) {
      const bool top = grows_[s] != 0, bottom = falls_[s] != 0;
      if ((top && v_[s] > now.up) || (bottom && v_[s] < now.down) || (top && bottom)) {
        const size_t i = size_t(place(int64_t(s)));
        g_[i] = y_[i] - v_[s];
        continue;
      }
      kept.push_back(int32_t(place(int64_t(s))));
      for (auto* values : {&v_, &grows_, &falls_, &diagonal_}) (*values)[count] = (*values)[s];
      ++count;
    }
    if (count == v_.size() || count == 0) return;
    for (auto* values : {&v_, &grows_, &falls_, &diagonal_}) values->resize(count);
    places_ = std::move(kept);
  }

  // P - D = sum_i of (u_i - |beta_i|) e_i or -|beta_i| e_i, whichever is positive, e_i = 1 - y_i f_i. Instances set
  // aside have none as long as they are where they belong.
  void evaluate(Outcome& found, const Extremes& now) const {
    double free = 0, sum = 0;
    for (size_t s = 0; s < v_.size(); ++s)
      if (grows_[s] == 0 && falls_[s] == 0) {
        free += 1;
        sum += v_[s];
      }
    found.intercept = free > 0                ? sum / free
                      : now.up == -kInfinity  ? (now.down == kInfinity ? 0.0 : now.down)
                      : now.down == kInfinity ? now.up
                                              : 0.5 * (now.up + now.down);
    found.squared_norm = std::max(square_, 0.0);
    found.loss = found.gap = 0;
    for (size_t s = 0; s < v_.size(); ++s) {
      const size_t i = size_t(place(int64_t(s)));
      const double e = y_[i] * (v_[s] - found.intercept), beta = std::abs(beta_[i]);
      found.loss += upper_[i] * std::max(0.0, e);
      found.gap += e > 0 ? (upper_[i] - beta) * e : -beta * e;
    }
  }

  In2<double> K_;
  int64_t n_, solves_ = 0;
  std::vector<double> y_, upper_, beta_, g_;          // of all instances
  std::vector<double> v_, grows_, falls_, diagonal_;  // of those watched
  std::vector<int32_t> places_;                       // which these are; empty: all
  double intercept_ = 0, square_ = 0;
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
  static constexpr double kFar = 1e12;       // an intercept from which no start leads back

  double dot(int64_t i, const double* v) const {
    if (!X_.indptr) return inner_product(X_.values + i * d_, v, d_);
    double total = 0;
    for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k)
      total += v[X_.indices[k]] * (X_.values ? X_.values[k] : 1.0);
    return total;
  }
  void add(int64_t i, double c, double* out) const {
    if (!X_.indptr) return add_row(X_.values + i * d_, c, out, d_);
    for (int64_t k = X_.indptr[i]; k < X_.indptr[i + 1]; ++k)
      out[X_.indices[k]] += c * (X_.values ? X_.values[k] : 1.0);
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
    if (d_ <= kExplicit)
      by_factor(gradient, direction);
    else
      by_conjugate_gradients(gradient, direction);
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
        add_squares(rows.data(), c.data(), m, S_.data());
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
      add_squares(rows.data(), c.data(), m, S_.data());
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
    for (int step = 0; step < 500 && rz > 1e-10 * first; ++step) {
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
