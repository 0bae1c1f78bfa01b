// Questions to the k-d tree of a cloud: nearest points, normals, local descriptors, how well poses fit.
//
// Descriptor of a point (fast point feature histograms, [Rusu2009]): with u the normal of the point, d the
// direction to a neighbour, v = u × d, w = u × v and n the neighbour's normal, histograms of ⟨v, n⟩, ⟨u, d⟩ and
// atan2(⟨w, n⟩, ⟨u, n⟩) over the neighbours (simplified); then those of the neighbours are added, weighted by 1 / distance.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "registration/cloud_tree.hpp"
#include "registration/small_matrices.hpp"

namespace mercer {

namespace {

void check_queries(const CloudTree& tree, const In2<double>& queries) {
  require(int(queries.shape(1)) == tree.dim(), "queries must have as many coordinates as the points of the tree");
  require(all_finite(queries.data(), int64_t(queries.shape(0) * queries.shape(1))), "queries must be finite");
}

nb::tuple tree_nearest(const CloudTree& tree, In2<double> queries, double limit, int threads) {
  check_queries(tree, queries);
  require(limit >= 0, "limit must be at least 0");
  threads = thread_count(threads);
  const int64_t n = int64_t(queries.shape(0));
  const int d = tree.dim();
  std::vector<double> distances(static_cast<size_t>(n));
  std::vector<int64_t> positions(static_cast<size_t>(n));
  {
    nb::gil_scoped_release release;
    tree.visit([&](const auto& t) {
      in_parallel(pieces(n), threads, [&](int64_t piece) {
        for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
          const int64_t place = t.nearest(queries.data() + i * d, limit, &distances[size_t(i)]);
          positions[size_t(i)] = place < 0 ? -1 : t.order()[size_t(place)];
          if (place < 0) distances[size_t(i)] = kFar;
        }
      });
      return 0;
    });
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(positions)));
}

nb::tuple tree_k_nearest(const CloudTree& tree, In2<double> queries, int k, int threads) {
  check_queries(tree, queries);
  require(k >= 1 && int64_t(k) <= tree.size(), "k must be between 1 and the number of points");
  threads = thread_count(threads);
  const int64_t n = int64_t(queries.shape(0));
  require(n <= (int64_t(1) << 32) / k, "there are too many neighbours to return");
  const int d = tree.dim();
  std::vector<double> distances(size_t(n) * size_t(k));
  std::vector<int64_t> positions(size_t(n) * size_t(k));
  {
    nb::gil_scoped_release release;
    tree.visit([&](const auto& t) {
      in_parallel(pieces(n), threads, [&](int64_t piece) {
        for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i)
          t.k_nearest(queries.data() + i * d, k, kFar, &distances[size_t(i * k)], &positions[size_t(i * k)]);
      });
      return 0;
    });
  }
  return nb::make_tuple(to_numpy_2d(std::move(distances), size_t(n), size_t(k)),
                        to_numpy_2d(std::move(positions), size_t(n), size_t(k)));
}

nb::object tree_count(const CloudTree& tree, In2<double> queries, double radius, int threads) {
  check_queries(tree, queries);
  require(radius >= 0, "radius must be at least 0");
  threads = thread_count(threads);
  const int64_t n = int64_t(queries.shape(0));
  const int d = tree.dim();
  std::vector<int64_t> counts(size_t(n), 0);
  {
    nb::gil_scoped_release release;
    tree.visit([&](const auto& t) {
      in_parallel(pieces(n), threads, [&](int64_t piece) {
        for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
          int64_t count = 0;
          t.ball(queries.data() + i * d, radius * radius, [&](int64_t, double) { ++count; });
          counts[size_t(i)] = count;
          poll_signals(count);
        }
      });
      return 0;
    });
  }
  return to_numpy(std::move(counts));
}

// The direction of least spread among the k points nearest to a place, on the side of their mean, and the share of the
// spread along it.
template <int D> class Normals {
 public:
  Normals(const KdTree<D>& tree, int k) : tree_(tree), k_(k), distances_(size_t(k)), places_(size_t(k)) {}
  double at(const double* p, double* normal) {
    NearestList list(distances_.data(), places_.data(), k_, kFar);
    tree_.near_places(p, list);
    double mean[D] = {}, cov[D][D] = {}, trace = 0;
    for (int j = 0; j < list.size(); ++j) {
      const double* q = tree_.sorted(places_[size_t(j)]);
      double x[D];
      for (int a = 0; a < D; ++a) mean[a] += x[a] = q[a] - p[a];
      for (int a = 0; a < D; ++a)
        for (int b = 0; b <= a; ++b) cov[a][b] += x[a] * x[b];
    }
    for (int a = 0; a < D; ++a) mean[a] /= list.size();
    for (int a = 0; a < D; ++a) {
      for (int b = 0; b <= a; ++b) cov[b][a] = cov[a][b] = cov[a][b] / list.size() - mean[a] * mean[b];
      trace += cov[a][a];
    }
    double values[D], vectors[D][D], side = 0;
    jacobi<D>(cov, values, vectors);
    for (int a = 0; a < D; ++a) side += mean[a] * vectors[0][a];
    for (int a = 0; a < D; ++a) normal[a] = side < 0 ? -vectors[0][a] : vectors[0][a];
    return trace > 0 ? std::max(0.0, values[0]) / trace : 0;
  }

 private:
  const KdTree<D>& tree_;
  int k_;
  std::vector<double> distances_;
  std::vector<int64_t> places_;
};

// At the points of the tree (queries == nullptr), in the order of the leaves: neighbours come one after another.
template <int D>
void normals_of(const KdTree<D>& tree, const double* queries, int64_t n, int k, double* normals, double* spreads,
                int threads) {
  in_parallel(pieces(n), threads, [&](int64_t piece) {
    Normals<D> make(tree, k);
    for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
      const int64_t at = queries ? i : tree.order()[size_t(i)];
      spreads[at] = make.at(queries ? queries + i * D : tree.sorted(i), normals + at * D);
    }
  });
}

nb::tuple tree_normals(const CloudTree& tree, int k, std::optional<In2<double>> queries, int threads) {
  require(tree.dim() == 2 || tree.dim() == 3, "normals need points in 2 or 3 dimensions");
  require(k >= tree.dim() && int64_t(k) <= tree.size(), "k must be between the dimension and the number of points");
  if (queries) check_queries(tree, *queries);
  threads = thread_count(threads);
  const int64_t n = queries ? int64_t(queries->shape(0)) : tree.size();
  const double* places = queries ? queries->data() : nullptr;
  std::vector<double> normals(size_t(n * tree.dim())), spreads(static_cast<size_t>(n));
  {
    nb::gil_scoped_release release;
    if (tree.three)
      normals_of<3>(*tree.three, places, n, k, normals.data(), spreads.data(), threads);
    else
      normals_of<2>(*tree.two, places, n, k, normals.data(), spreads.data(), threads);
  }
  return nb::make_tuple(to_numpy_2d(std::move(normals), size_t(n), size_t(tree.dim())), to_numpy(std::move(spreads)));
}

// ---------------------------------------------------------------------------------------------- descriptors

constexpr int kBins = 11, kWidth = 3 * kBins;

inline int bin(double value, double low, double high) {
  const int b = int((value - low) / (high - low) * kBins);
  return std::min(kBins - 1, std::max(0, b));
}

void add_pair(const double* p, const double* u, const double* q, const double* n, double distance, float* histogram) {
  double d[3], v[3], w[3];
  for (int a = 0; a < 3; ++a) d[a] = (q[a] - p[a]) / distance;
  v[0] = u[1] * d[2] - u[2] * d[1];
  v[1] = u[2] * d[0] - u[0] * d[2];
  v[2] = u[0] * d[1] - u[1] * d[0];
  const double length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  if (length < 1e-12) return;
  for (int a = 0; a < 3; ++a) v[a] /= length;
  w[0] = u[1] * v[2] - u[2] * v[1];
  w[1] = u[2] * v[0] - u[0] * v[2];
  w[2] = u[0] * v[1] - u[1] * v[0];
  double alpha = 0, phi = 0, wn = 0, un = 0;
  for (int a = 0; a < 3; ++a) {
    alpha += v[a] * n[a];
    phi += u[a] * d[a];
    wn += w[a] * n[a];
    un += u[a] * n[a];
  }
  histogram[bin(alpha, -1, 1)] += 1;
  histogram[kBins + bin(phi, -1, 1)] += 1;
  histogram[2 * kBins + bin(std::atan2(wn, un), -3.14159265358979, 3.14159265358979)] += 1;
}

void normalize(float* histogram) {
  for (int part = 0; part < 3; ++part) {
    float sum = 0;
    for (int b = 0; b < kBins; ++b) sum += histogram[part * kBins + b];
    if (sum > 0)
      for (int b = 0; b < kBins; ++b) histogram[part * kBins + b] /= sum;
  }
}

nb::object tree_descriptors(const CloudTree& tree, In2<double> normals, double radius, int threads) {
  require(tree.three != nullptr, "descriptors need points in 3 dimensions");
  const KdTree<3>& t = *tree.three;
  const int64_t n = t.size();
  require(int64_t(normals.shape(0)) == n && normals.shape(1) == 3, "there must be a normal for each point of the tree");
  require(all_finite(normals.data(), 3 * n), "normals must be finite");
  require(radius > 0, "radius must be above 0");
  threads = thread_count(threads);
  std::vector<float> simple(size_t(n * kWidth), 0.0f), out(size_t(n * kWidth), 0.0f);
  {
    nb::gil_scoped_release release;
    // All arrays of this function are in the order of the leaves but the last.
    in_parallel(pieces(n), threads, [&](int64_t piece) {
      for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
        int64_t count = 0;
        t.ball(t.sorted(i), radius * radius, [&](int64_t j, double squared) {
          ++count;
          if (squared > 0)
            add_pair(t.sorted(i), normals.data() + 3 * t.order()[size_t(i)], t.sorted(j),
                     normals.data() + 3 * t.order()[size_t(j)], std::sqrt(squared), &simple[size_t(i * kWidth)]);
        });
        normalize(&simple[size_t(i * kWidth)]);
        poll_signals(30 * count);
      }
    });
    in_parallel(pieces(n), threads, [&](int64_t piece) {
      for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
        double sum[kWidth] = {}, weights = 0;
        t.ball(t.sorted(i), radius * radius, [&](int64_t j, double squared) {
          if (squared <= 0) return;
          const double weight = 1 / std::sqrt(squared);
          weights += weight;
          for (int b = 0; b < kWidth; ++b) sum[b] += weight * double(simple[size_t(j * kWidth + b)]);
        });
        float* row = &out[size_t(t.order()[size_t(i)] * kWidth)];
        for (int b = 0; b < kWidth; ++b)
          row[b] = simple[size_t(i * kWidth + b)] + (weights > 0 ? float(sum[b] / weights) : 0.0f);
        normalize(row);
      }
    });
  }
  return to_numpy_2d(std::move(out), size_t(n), size_t(kWidth));
}

// ---------------------------------------------------------------------------------------------- how well poses fit

// For each pose: Σ max(0, 1 - d²/r²) over the points, d the distance of the moved point to its nearest one in the tree,
// and how many are within r.
template <int D>
void fit_of(const KdTree<D>& tree, const double* points, int64_t n, const double* poses, int64_t m, double radius,
            double* scores, int64_t* counts, int threads) {
  in_parallel(m, threads, [&](int64_t k) {
    const Motion<D> motion = Motion<D>::from(poses + k * (D + 1) * (D + 1));
    double score = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      double y[D], distance;
      motion.apply(points + i * D, y);
      if (tree.nearest(y, radius * radius, &distance) < 0) continue;
      ++count;
      score += 1 - distance / (radius * radius);
    }
    poll_signals(100 * n);
    scores[k] = score;
    counts[k] = count;
  });
}

nb::tuple tree_fit(const CloudTree& tree, In2<double> points, In3<double> poses, double radius, int threads) {
  check_queries(tree, points);
  const size_t d = size_t(tree.dim());
  require(d == 2 || d == 3, "poses are scored in 2 or 3 dimensions");
  require(poses.shape(1) == d + 1 && poses.shape(2) == d + 1, "poses must be matrices of the dimension + 1");
  const int64_t m = int64_t(poses.shape(0)), n = int64_t(points.shape(0));
  require(all_finite(poses.data(), m * int64_t((d + 1) * (d + 1))), "poses must be finite");
  require(radius > 0 && radius < kFar, "radius must be positive and finite");
  threads = thread_count(threads);
  std::vector<double> scores(static_cast<size_t>(m));
  std::vector<int64_t> counts(static_cast<size_t>(m));
  {
    nb::gil_scoped_release release;
    if (d == 3)
      fit_of<3>(*tree.three, points.data(), n, poses.data(), m, radius, scores.data(), counts.data(), threads);
    else
      fit_of<2>(*tree.two, points.data(), n, poses.data(), m, radius, scores.data(), counts.data(), threads);
  }
  return nb::make_tuple(to_numpy(std::move(scores)), to_numpy(std::move(counts)));
}

}  // namespace

void bind_neighbours(nb::module_& m) {
  nb::class_<CloudTree>(m, "CloudTree", "A k-d tree of points.")
      .def(nb::init<In2<double>>(), "points"_a.noconvert())
      .def_prop_ro("dim", &CloudTree::dim)
      .def_prop_ro("size", &CloudTree::size)
      .def("nearest", &tree_nearest, "queries"_a.noconvert(), "limit"_a, "threads"_a,
           "(squared distances, positions) of the nearest points; inf and -1 where none is within the squared limit.")
      .def("k_nearest", &tree_k_nearest, "queries"_a.noconvert(), "k"_a, "threads"_a,
           "(squared distances, positions) of the k nearest points, nearest first.")
      .def("count", &tree_count, "queries"_a.noconvert(), "radius"_a, "threads"_a,
           "How many points lie within the radius of each query.")
      .def("normals", &tree_normals, "k"_a, "queries"_a.noconvert().none(), "threads"_a,
           "(normals, shares of the spread along them) at the queries, or at the points of the tree, by the k nearest.")
      .def("descriptors", &tree_descriptors, "normals"_a.noconvert(), "radius"_a, "threads"_a,
           "Fast point feature histograms of the points of the tree.")
      .def("fit", &tree_fit, "points"_a.noconvert(), "poses"_a.noconvert(), "radius"_a, "threads"_a,
           "(scores, counts within the radius) of points moved by each of the poses.");
}

}  // namespace mercer
