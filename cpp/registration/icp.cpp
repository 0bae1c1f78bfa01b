// Iterative closest points: nearest points, then a Gauss-Newton step in the motion, until it stops moving.
//
// With p = R x + b, q the nearest point of the target and e = p - q, the sum of w eᵀ M e over the matched pairs, where
//   point to point   M = I
//   point to plane   M = n nᵀ, n the normal of q
//   generalized      M = (C_q + R C_x Rᵀ)⁻¹, C = I - (1 - ε) n nᵀ: plane to plane   [Segal, Haehnel, Thrun 2009]
// is decreased by a motion (w, v): p -> exp(w) (p - c) + c + u v about the centre c of the target, with its root mean
// squared radius u as the unit of shifts.
// The last match of a point bounds the search for the next one, so that late iterations cost little.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "registration/cloud_tree.hpp"
#include "registration/small_matrices.hpp"

namespace mercer {

namespace {

enum Kind { kPoint = 0, kPlane = 1, kGeneralized = 2 };

struct Options {
  int kind;
  double limit;    // squared distance beyond which points have no match
  double keep;     // share of the matched pairs to use, nearest first
  double epsilon;  // of the generalized form
  int max_iter;
  double angle, shift;  // steps below both (the shift in units of the radius) end the search
  int threads;
};

struct Outcome {
  int iterations = 0;
  bool converged = false;
  double error = 0;      // mean squared distance of the pairs in use, before the last step
  int64_t used = 0;      // how many they are
  double objective = 0;  // what is minimised
};

template <int D> void inverse(const double (&a)[D][D], double (&out)[D][D]);
template <> void inverse<3>(const double (&a)[3][3], double (&out)[3][3]) {
  const double c00 = a[1][1] * a[2][2] - a[1][2] * a[2][1], c01 = a[1][2] * a[2][0] - a[1][0] * a[2][2],
               c02 = a[1][0] * a[2][1] - a[1][1] * a[2][0];
  const double scale = 1 / (a[0][0] * c00 + a[0][1] * c01 + a[0][2] * c02);
  out[0][0] = c00 * scale;
  out[1][0] = out[0][1] = c01 * scale;
  out[2][0] = out[0][2] = c02 * scale;
  out[1][1] = (a[0][0] * a[2][2] - a[0][2] * a[2][0]) * scale;
  out[2][1] = out[1][2] = (a[0][1] * a[2][0] - a[0][0] * a[2][1]) * scale;
  out[2][2] = (a[0][0] * a[1][1] - a[0][1] * a[1][0]) * scale;
}
template <> void inverse<2>(const double (&a)[2][2], double (&out)[2][2]) {
  const double scale = 1 / (a[0][0] * a[1][1] - a[0][1] * a[1][0]);
  out[0][0] = a[1][1] * scale;
  out[1][1] = a[0][0] * scale;
  out[0][1] = out[1][0] = -a[0][1] * scale;
}

// The columns of dp / d(w, v) at y = p - c, as rows of J (a row for each parameter).
inline void jacobian(const double* y, double u, double (&j)[6][3]) {
  const double rows[6][3] = {{0, -y[2], y[1]}, {y[2], 0, -y[0]}, {-y[1], y[0], 0}, {u, 0, 0}, {0, u, 0}, {0, 0, u}};
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 3; ++b) j[a][b] = rows[a][b];
}
inline void jacobian(const double* y, double u, double (&j)[3][2]) {
  const double rows[3][2] = {{-y[1], y[0]}, {u, 0}, {0, u}};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 2; ++b) j[a][b] = rows[a][b];
}

template <int D> struct Sums {
  static constexpr int P = D * (D + 1) / 2;
  double h[P][P] = {}, g[P] = {}, error = 0, objective = 0;
  int64_t used = 0;
};

template <int D> class Aligner {
 public:
  static constexpr int P = D * (D + 1) / 2;
  Aligner(const KdTree<D>& tree, const double* target_normals, const double* source, const double* source_normals,
          const double* weights, int64_t n, const Options& options)
      : tree_(tree),
        target_normals_(target_normals),
        source_(source),
        source_normals_(source_normals),
        weights_(weights),
        n_(n),
        options_(options),
        places_(size_t(n), -1),
        distances_(size_t(n)),
        moved_(size_t(n * D)) {
    const double n_points = double(tree.size());
    for (int64_t i = 0; i < tree.size(); ++i)
      for (int a = 0; a < D; ++a) centre_[a] += tree.sorted(i)[a] / n_points;
    double spread = 0;
    for (int64_t i = 0; i < tree.size(); ++i) spread += tree.squared(tree.sorted(i), centre_) / n_points;
    if (spread > 0) unit_ = std::sqrt(spread);
  }

  Outcome run(Motion<D>& motion) {
    Outcome outcome;
    for (int it = 0; it < options_.max_iter; ++it) {
      match(motion);
      Sums<D> total = normal_equations(motion);
      outcome.iterations = it + 1;
      report(total, outcome);
      if (total.used < D + 1) return outcome;  // nothing to align with
      double step[P];
      if (!solve(total, step)) return outcome;
      move(step, motion);
      double angle = 0, shift = 0;
      for (int a = 0; a < P - D; ++a) angle += step[a] * step[a];
      for (int a = P - D; a < P; ++a) shift += step[a] * step[a];
      if (std::sqrt(angle) < options_.angle && std::sqrt(shift) < options_.shift) {
        outcome.converged = true;
        break;
      }
      check_signals();
    }
    return outcome;
  }

 private:
  void report(const Sums<D>& total, Outcome& outcome) const {
    outcome.used = total.used;
    outcome.error = total.used ? total.error / double(total.used) : 0;
    outcome.objective = total.objective;
  }

  void match(const Motion<D>& motion) {
    in_parallel(pieces(n_), options_.threads, [&](int64_t piece) {
      for (int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i) {
        double* y = &moved_[size_t(i * D)];
        motion.apply(source_ + i * D, y);
        double limit = options_.limit;
        const int64_t last = places_[size_t(i)];
        if (last >= 0) limit = std::min(limit, tree_.squared(y, tree_.sorted(last)));
        places_[size_t(i)] = tree_.nearest(y, limit, &distances_[size_t(i)]);
      }
    });
  }

  // The squared distance up to which pairs are used.
  double cut() const {
    if (options_.keep >= 1) return kFar;
    std::vector<double> matched;
    matched.reserve(size_t(n_));
    for (int64_t i = 0; i < n_; ++i) matched.push_back(places_[size_t(i)] < 0 ? kFar : distances_[size_t(i)]);
    const int64_t at = std::max<int64_t>(0, std::min(n_ - 1, int64_t(std::ceil(options_.keep * double(n_))) - 1));
    std::nth_element(matched.begin(), matched.begin() + at, matched.end());
    return matched[size_t(at)];
  }

  void weigh(int64_t i, const Motion<D>& motion, double (&m)[D][D]) const {
    const double* nq = target_normals_ ? target_normals_ + tree_.order()[size_t(places_[size_t(i)])] * D : nullptr;
    if (options_.kind == kPoint) {
      for (int a = 0; a < D; ++a)
        for (int b = 0; b < D; ++b) m[a][b] = a == b;
    } else if (options_.kind == kPlane) {
      for (int a = 0; a < D; ++a)
        for (int b = 0; b < D; ++b) m[a][b] = nq[a] * nq[b];
    } else {
      double nx[D], c[D][D];
      motion.turn(source_normals_ + i * D, nx);
      const double share = 1 - options_.epsilon;
      for (int a = 0; a < D; ++a)
        for (int b = 0; b < D; ++b) c[a][b] = 2 * (a == b) - share * (nq[a] * nq[b] + nx[a] * nx[b]);
      inverse<D>(c, m);
    }
  }

  Sums<D> normal_equations(const Motion<D>& motion) const {
    const double most = cut();
    std::vector<Sums<D>> parts(size_t(std::max<int64_t>(1, pieces(n_))));
    in_parallel(pieces(n_), options_.threads, [&](int64_t piece) {
      Sums<D>& sums = parts[size_t(piece)];
      for (int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i)
        if (places_[size_t(i)] >= 0 && distances_[size_t(i)] <= most) add(i, motion, sums);
    });
    for (size_t p = 1; p < parts.size(); ++p) {
      for (int a = 0; a < P; ++a) {
        parts[0].g[a] += parts[p].g[a];
        for (int b = 0; b <= a; ++b) parts[0].h[a][b] += parts[p].h[a][b];
      }
      parts[0].error += parts[p].error;
      parts[0].objective += parts[p].objective;
      parts[0].used += parts[p].used;
    }
    return parts[0];
  }

  void add(int64_t i, const Motion<D>& motion, Sums<D>& sums) const {
    const double *y = &moved_[size_t(i * D)], *q = tree_.sorted(places_[size_t(i)]);
    const double weight = weights_ ? weights_[i] : 1;
    double e[D], from[D], m[D][D], j[P][D], jm[P][D];
    for (int a = 0; a < D; ++a) {
      e[a] = y[a] - q[a];
      from[a] = y[a] - centre_[a];
    }
    weigh(i, motion, m);
    jacobian(from, unit_, j);
    for (int a = 0; a < P; ++a)
      for (int b = 0; b < D; ++b) {
        jm[a][b] = 0;
        for (int c = 0; c < D; ++c) jm[a][b] += weight * j[a][c] * m[c][b];
      }
    for (int a = 0; a < P; ++a) {
      for (int c = 0; c < D; ++c) sums.g[a] += jm[a][c] * e[c];
      for (int b = 0; b <= a; ++b)
        for (int c = 0; c < D; ++c) sums.h[a][b] += jm[a][c] * j[b][c];
    }
    for (int a = 0; a < D; ++a)
      for (int b = 0; b < D; ++b) sums.objective += weight * e[a] * m[a][b] * e[b];
    sums.error += distances_[size_t(i)];
    ++sums.used;
  }

  static bool solve(const Sums<D>& total, double (&step)[P]) {
    double h[P][P], trace = 0;
    for (int a = 0; a < P; ++a) trace += total.h[a][a];
    for (int a = 0; a < P; ++a) {
      step[a] = -total.g[a];
      for (int b = 0; b < P; ++b) h[a][b] = total.h[std::max(a, b)][std::min(a, b)];
      // keeps directions still that the pairs say nothing about (a plane slides, a sphere turns)
      h[a][a] += 1e-9 * (total.h[a][a] + trace / P) + 1e-300;
    }
    if (!solve_spd<P>(h, step)) return false;
    for (double s : step)
      if (!std::isfinite(s)) return false;
    return true;
  }

  void move(const double (&step)[P], Motion<D>& motion) const {
    double turn[D][D];
    rotation_of(step, turn);
    Motion<D> after;
    for (int a = 0; a < D; ++a) {
      for (int b = 0; b < D; ++b) {
        after.r[a][b] = 0;
        for (int c = 0; c < D; ++c) after.r[a][b] += turn[a][c] * motion.r[c][b];
      }
      after.b[a] = centre_[a] + unit_ * step[P - D + a];
      for (int c = 0; c < D; ++c) after.b[a] += turn[a][c] * (motion.b[c] - centre_[c]);
    }
    motion = after;
  }

  const KdTree<D>& tree_;
  const double *target_normals_, *source_, *source_normals_, *weights_;
  int64_t n_;
  const Options& options_;
  std::vector<int64_t> places_;
  std::vector<double> distances_, moved_;
  double centre_[D] = {}, unit_ = 1;
};

const double* checked_rows(const std::optional<In2<double>>& rows, int64_t n, int d, const char* what) {
  if (!rows) return nullptr;
  require(int64_t(rows->shape(0)) == n && int(rows->shape(1)) == d, what);
  require(all_finite(rows->data(), n * d), "normals must be finite");
  return rows->data();
}

template <int D>
nb::tuple aligned(const KdTree<D>& tree, const double* target_normals, const double* source,
                  const double* source_normals, const double* weights, int64_t n, const double* start,
                  const Options& options) {
  Motion<D> motion = Motion<D>::from(start);
  Outcome outcome;
  {
    nb::gil_scoped_release release;
    outcome = Aligner<D>(tree, target_normals, source, source_normals, weights, n, options).run(motion);
  }
  std::vector<double> pose(size_t((D + 1) * (D + 1)));
  motion.to(pose.data());
  return nb::make_tuple(to_numpy_2d(std::move(pose), D + 1, D + 1), outcome.iterations, outcome.converged,
                        outcome.error, outcome.used, outcome.objective);
}

nb::tuple icp(const CloudTree& tree, std::optional<In2<double>> target_normals, In2<double> source,
              std::optional<In2<double>> source_normals, std::optional<In1<double>> weights, In2<double> start,
              int kind, double max_distance, double keep, double epsilon, int max_iter, double angle, double shift,
              int threads) {
  const int d = tree.dim();
  const int64_t n = int64_t(source.shape(0));
  require(d == 2 || d == 3, "the clouds must have 2 or 3 dimensions");
  require(tree.size() >= 1, "the target must have points");
  require(int(source.shape(1)) == d, "source must have as many coordinates as the target");
  require(all_finite(source.data(), n * d), "source must be finite");
  require(int(start.shape(0)) == d + 1 && int(start.shape(1)) == d + 1, "start must be a matrix of the dimension + 1");
  require(all_finite(start.data(), (d + 1) * (d + 1)), "start must be finite");
  require(kind >= kPoint && kind <= kGeneralized, "kind must be 0, 1 or 2");
  require(max_distance > 0 && keep > 0 && keep <= 1 && epsilon > 0 && epsilon <= 1 && max_iter >= 0,
          "max_distance, keep, epsilon and max_iter must be positive, keep and epsilon at most 1");
  const double* tn = checked_rows(target_normals, tree.size(), d, "there must be a normal for each target point");
  const double* sn = checked_rows(source_normals, n, d, "there must be a normal for each source point");
  require(kind == kPoint || tn, "this kind needs normals of the target");
  require(kind != kGeneralized || sn, "this kind needs normals of the source");
  if (weights) {
    require(int64_t(weights->shape(0)) == n, "there must be a weight for each source point");
    require(all_finite(weights->data(), n), "weights must be finite");
    for (int64_t i = 0; i < n; ++i) require(weights->data()[i] >= 0, "weights must not be negative");
  }
  const Options options{kind,  max_distance * max_distance, keep, epsilon, max_iter, angle,
                        shift, thread_count(threads)};
  const double* w = weights ? weights->data() : nullptr;
  if (d == 3) return aligned<3>(*tree.three, tn, source.data(), sn, w, n, start.data(), options);
  return aligned<2>(*tree.two, tn, source.data(), sn, w, n, start.data(), options);
}

}  // namespace

void bind_icp(nb::module_& m) {
  m.def("icp", &icp, "target"_a, "target_normals"_a.noconvert().none(), "source"_a.noconvert(),
        "source_normals"_a.noconvert().none(), "weights"_a.noconvert().none(), "start"_a.noconvert(), "kind"_a,
        "max_distance"_a, "keep"_a, "epsilon"_a, "max_iter"_a, "angle"_a, "shift"_a, "threads"_a,
        "(pose, iterations, converged, mean squared distance, pairs, objective).");
}

}  // namespace mercer
