// Poses from matches of which most are wrong.
//
// Matches i and j agree where the lengths |a_i - a_j| and |b_i - b_j| do: a rigid motion keeps them. Two matches with many
// common partners in this graph are likely both right (second-order compatibility, [Chen2022]), where wrong
// ones agree by chance only. Matches are ranked by Σ over partners of the number of common partners; from each of the best
// grows a set whose members agree with most of it, which gives a pose by least squares, refined on the matches that it
// brings within the tolerance.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "registration/cloud_tree.hpp"
#include "registration/small_matrices.hpp"

namespace mercer {

namespace {

constexpr int64_t kMostMatches = 20000;

struct Matches {
  const double *a, *b;    // points, 3 coordinates each
  const double *na, *nb;  // normals, or nullptr
  int64_t n;
  double tolerance, shortest, bend;  // of lengths; lengths to look at; of the cosine between normals
  bool flat = false;                 // points of a plane, with a third coordinate of 0: turned within it
  int64_t words() const { return (n + 63) / 64; }
};

double distance(const double* a, const double* b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}
double cosine(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

bool agree(const Matches& m, int64_t i, int64_t j) {
  const double la = distance(m.a + 3 * i, m.a + 3 * j), lb = distance(m.b + 3 * i, m.b + 3 * j);
  if (std::fabs(la - lb) > m.tolerance || la < m.shortest || lb < m.shortest) return false;
  // the sign of a normal is uncertain
  return !m.na || std::fabs(std::fabs(cosine(m.na + 3 * i, m.na + 3 * j)) -
                            std::fabs(cosine(m.nb + 3 * i, m.nb + 3 * j))) <= m.bend;
}

std::vector<uint64_t> graph_of(const Matches& m, int threads) {
  const int64_t words = m.words();
  std::vector<uint64_t> bits(size_t(m.n * words), 0);
  in_parallel(m.n, threads, [&](int64_t i) {
    uint64_t* row = &bits[size_t(i * words)];
    for (int64_t j = 0; j < m.n; ++j)
      if (j != i && agree(m, i, j)) row[j / 64] |= uint64_t(1) << (j % 64);
    poll_signals(20 * m.n);
  });
  return bits;
}

int64_t common(const uint64_t* a, const uint64_t* b, int64_t words) {
  int64_t count = 0;
  for (int64_t w = 0; w < words; ++w) count += __builtin_popcountll(a[w] & b[w]);
  return count;
}

template <class Work> void each_partner(const uint64_t* row, int64_t words, Work work) {
  for (int64_t w = 0; w < words; ++w)
    for (uint64_t left = row[w]; left; left &= left - 1) work(w * 64 + __builtin_ctzll(left));
}

// Least squares over the chosen matches.
void solve_pose(const Matches& m, const std::vector<int64_t>& chosen, Motion<3>& pose) {
  double ma[3] = {}, mb[3] = {}, cross[3][3] = {};
  for (int64_t i : chosen)
    for (int k = 0; k < 3; ++k) {
      ma[k] += m.a[3 * i + k] / double(chosen.size());
      mb[k] += m.b[3 * i + k] / double(chosen.size());
    }
  for (int64_t i : chosen)
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < 3; ++l) cross[k][l] += (m.b[3 * i + k] - mb[k]) * (m.a[3 * i + l] - ma[l]);
  if (m.flat) {
    const double angle = std::atan2(cross[1][0] - cross[0][1], cross[0][0] + cross[1][1]);
    const double about[3] = {0, 0, angle};
    rotation_of(about, pose.r);
  } else {
    best_rotation(cross, pose.r);
  }
  for (int k = 0; k < 3; ++k) {
    pose.b[k] = mb[k];
    for (int l = 0; l < 3; ++l) pose.b[k] -= pose.r[k][l] * ma[l];
  }
}

std::vector<int64_t> within(const Matches& m, const Motion<3>& pose, double tolerance) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < m.n; ++i) {
    double y[3];
    pose.apply(m.a + 3 * i, y);
    if (distance(y, m.b + 3 * i) <= tolerance) kept.push_back(i);
  }
  return kept;
}

struct Hypothesis {
  Motion<3> pose;
  int64_t support = 0, seed = 0;
};

// A set that grows from a seed: partners by the number of common ones, taken where they agree with most of the set.
Hypothesis grow(const Matches& m, const std::vector<uint64_t>& bits, int64_t seed, int64_t most) {
  const int64_t words = m.words();
  const uint64_t* row = &bits[size_t(seed * words)];
  std::vector<std::pair<int64_t, int64_t>> partners;
  each_partner(row, words, [&](int64_t j) { partners.push_back({-common(row, &bits[size_t(j * words)], words), j}); });
  std::sort(partners.begin(), partners.end());
  std::vector<int64_t> set{seed};
  for (const auto& [count, j] : partners) {
    if (int64_t(set.size()) >= most) break;
    int64_t agreeing = 0;
    for (int64_t i : set) agreeing += bits[size_t(j * words + i / 64)] >> (i % 64) & 1;
    if (10 * agreeing >= 9 * int64_t(set.size())) set.push_back(j);
  }
  Hypothesis h;
  h.seed = seed;
  if (set.size() < 3) return h;
  solve_pose(m, set, h.pose);
  for (int round = 0; round < 3; ++round) {
    std::vector<int64_t> kept = within(m, h.pose, (round ? 1.0 : 1.5) * m.tolerance);
    if (kept.size() < 3) return h;
    h.support = int64_t(kept.size());
    solve_pose(m, kept, h.pose);
  }
  return h;
}

bool alike(const Motion<3>& p, const Motion<3>& q, double angle_cosine, double shift, const double* centre) {
  double trace = 0, y[3], z[3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) trace += p.r[i][j] * q.r[i][j];
  if ((trace - 1) / 2 < angle_cosine) return false;
  p.apply(centre, y);
  q.apply(centre, z);
  return distance(y, z) < shift;
}

std::vector<Hypothesis> best_poses(const Matches& m, int64_t seeds, int64_t most, int64_t wanted, int threads) {
  const int64_t words = m.words();
  const std::vector<uint64_t> bits = graph_of(m, threads);
  std::vector<std::pair<double, int64_t>> rank(static_cast<size_t>(m.n));
  in_parallel(m.n, threads, [&](int64_t i) {
    const uint64_t* row = &bits[size_t(i * words)];
    int64_t score = 0, partners = 0;
    each_partner(row, words, [&](int64_t j) { score += common(row, &bits[size_t(j * words)], words), ++partners; });
    rank[size_t(i)] = {-double(score), i};
    poll_signals(partners * words);
  });
  std::sort(rank.begin(), rank.end());
  seeds = std::min(seeds, m.n);
  std::vector<Hypothesis> all(static_cast<size_t>(seeds));
  in_parallel(seeds, threads, [&](int64_t s) {
    all[size_t(s)] = grow(m, bits, rank[size_t(s)].second, most);
    poll_signals(20 * m.n);
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const Hypothesis& x, const Hypothesis& y) { return x.support > y.support; });
  double centre[3] = {};
  for (int64_t i = 0; i < m.n; ++i)
    for (int k = 0; k < 3; ++k) centre[k] += m.a[3 * i + k] / double(m.n);
  std::vector<Hypothesis> kept;
  for (const Hypothesis& h : all) {
    if (h.support < 3 || int64_t(kept.size()) >= wanted) break;
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Hypothesis& k) {
      return alike(h.pose, k.pose, 0.985, 3 * m.tolerance, centre);
    });
    if (!known) kept.push_back(h);
  }
  return kept;
}

// Rows of 2 coordinates with a third of 0; others as they are.
std::vector<double> with_third(const In2<double>& rows) {
  const int64_t n = int64_t(rows.shape(0)), d = int64_t(rows.shape(1));
  std::vector<double> out(size_t(3 * n), 0.0);
  for (int64_t i = 0; i < n; ++i) std::copy(rows.data() + i * d, rows.data() + (i + 1) * d, out.begin() + 3 * i);
  return out;
}

nb::tuple consistent_poses(In2<double> a, In2<double> b, std::optional<In2<double>> na, std::optional<In2<double>> nb_,
                           double tolerance, double shortest, double bend, int64_t seeds, int64_t most, int64_t wanted,
                           int threads) {
  const int64_t n = int64_t(a.shape(0)), d = int64_t(a.shape(1));
  require((d == 2 || d == 3) && int64_t(b.shape(1)) == d && int64_t(b.shape(0)) == n,
          "matches must be pairs of points in 2 or 3 dimensions");
  require(n <= kMostMatches, "there are too many matches");
  require(all_finite(a.data(), d * n) && all_finite(b.data(), d * n), "points must be finite");
  require(na.has_value() == nb_.has_value(), "normals must be given on both sides or on none");
  if (na) {
    require(int64_t(na->shape(1)) == d && int64_t(nb_->shape(1)) == d && int64_t(na->shape(0)) == n &&
                int64_t(nb_->shape(0)) == n,
            "there must be a normal for each point");
    require(all_finite(na->data(), d * n) && all_finite(nb_->data(), d * n), "normals must be finite");
  }
  require(tolerance > 0 && shortest >= 0 && bend >= 0, "tolerances must be positive");
  require(seeds >= 0 && most >= 3 && wanted >= 1, "seeds, most and wanted must be at least 0, 3 and 1");
  threads = thread_count(threads);
  const std::vector<double> pa = with_third(a), pb = with_third(b);
  const std::vector<double> va = na ? with_third(*na) : pa, vb = nb_ ? with_third(*nb_) : pb;
  const Matches m{pa.data(), pb.data(), na ? va.data() : nullptr, nb_ ? vb.data() : nullptr, n, tolerance, shortest,
                  bend,      d == 2};
  std::vector<Hypothesis> best;
  {
    nb::gil_scoped_release release;
    if (n >= 3) best = best_poses(m, seeds, most, wanted, threads);
  }
  const size_t count = best.size(), width = size_t(d) + 1;
  std::vector<double> poses(count * width * width);
  std::vector<int64_t> support(count);
  for (size_t k = 0; k < count; ++k) {
    double* pose = &poses[width * width * k];
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j < d; ++j) pose[i * (d + 1) + j] = best[k].pose.r[i][j];
      pose[i * (d + 1) + d] = best[k].pose.b[i];
    }
    pose[width * width - 1] = 1;
    support[k] = best[k].support;
  }
  return nb::make_tuple(to_numpy_3d(std::move(poses), count, width, width), to_numpy(std::move(support)));
}

}  // namespace

void bind_matching(nb::module_& m) {
  m.def("consistent_poses", &consistent_poses, "a"_a.noconvert(), "b"_a.noconvert(), "normals_a"_a.noconvert().none(),
        "normals_b"_a.noconvert().none(), "tolerance"_a, "shortest"_a, "bend"_a, "seeds"_a, "most"_a, "wanted"_a,
        "threads"_a, "(poses, numbers of matches that agree with them), best first and different from each other.");
}

}  // namespace mercer
