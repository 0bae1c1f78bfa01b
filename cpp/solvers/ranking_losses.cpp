// Losses of rankings: their value and gradient in the scores s of the examples, group by group.
//
//   pairs              Σ over pairs of a group with y_i > y_j of max(0, 1 - (s_i - s_j)), or its square
//   average precision  max over rankings r of  Δ(r) - Σ over pairs that r swaps of (s_i - s_j) / (P N),  Δ = 1 - AP
//   F1                 max over labellings r of  Δ(r) - Σ over labels that r flips of ±s_i / (2 P),      Δ = 1 - F1
//
// Group k holds the examples offsets[k] .. offsets[k+1]; P of them are relevant, N are not. No pair is ever stored: a
// sort and a tree of running sums over the grades give the pairs' loss in O(n log n); the most violated ranking and
// labelling come from sorted scores, exactly.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/arrays.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

// ---------------------------------------------------------------------------------------------------- shared parts

// Sums over prefixes of the grades, changed one grade at a time (a Fenwick tree).
template <class T> class PrefixSums {
 public:
  void reset(int64_t size) {
    sums_.assign(size_t(size) + 1, T(0));
    total_ = T(0);
  }
  void add(int64_t grade, T value) {
    total_ += value;
    for (int64_t k = grade + 1; k < int64_t(sums_.size()); k += k & -k) sums_[size_t(k)] += value;
  }
  T below(int64_t grade) const {  // Σ over the grades < grade
    T sum = 0;
    for (int64_t k = grade; k > 0; k -= k & -k) sum += sums_[size_t(k)];
    return sum;
  }
  T above(int64_t grade) const { return total_ - below(grade + 1); }

 private:
  std::vector<T> sums_;
  T total_ = 0;
};

using Scored = std::pair<double, int64_t>;  // score, place in the group

// Best first; equal scores in the order of the examples.
void sort_descending(std::vector<Scored>& x) {
  std::sort(x.begin(), x.end(), [](const Scored& a, const Scored& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
}

// Calls work(first, last) for ranges of groups. Groups do not share results, so the split does not matter.
template <class Work> void over_groups(int64_t groups, int threads, Work work) {
  const int64_t parts = threads > 1 ? std::min<int64_t>(groups, int64_t(threads) * 8) : 1;
  in_parallel(parts, threads, [&](int64_t part) { work(groups * part / parts, groups * (part + 1) / parts); });
}

// ---------------------------------------------------------------------------------------------------- pairs

struct PairScratch {
  std::vector<Scored> order;
  PrefixSums<int64_t> count;
  PrefixSums<double> sum;
};

// A pair (i preferred to j) is active if s_j > s_i - 1. With c_i and d_j the numbers of active pairs that i wins and j
// loses, the hinge is Σ c_i (1 - s_i) + Σ d_j s_j with gradient d - c: counts are enough. The squared hinge needs the
// sums of the partners' scores as well; z below is a sum of hinges, and Σ hinge² = Σ hinge + ½ ⟨gradient, s⟩.
template <bool squared>
double pair_loss(const double* scores, const int32_t* grades, int64_t n, double* gradient, PairScratch& scratch) {
  auto& order = scratch.order;
  order.resize(size_t(n));
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += scores[i] / double(n);
  int32_t top = 0;
  for (int64_t i = 0; i < n; ++i) {
    order[size_t(i)] = {scores[i] - mean, i};  // only differences matter: smaller numbers, less rounding
    top = std::max(top, grades[i]);
    gradient[i] = 0;
  }
  if (top == 0) return 0;
  sort_descending(order);
  auto restart = [&] {
    scratch.count.reset(top + 1);
    if (squared) scratch.sum.reset(top + 1);
  };
  auto take = [&](const Scored& x) {
    scratch.count.add(grades[x.second], 1);
    if (squared) scratch.sum.add(grades[x.second], x.first);
  };
  double hinges = 0;
  restart();
  for (int64_t k = 0, next = 0; k < n; ++k) {  // i from the best to the worst: the active j are a growing prefix
    const auto [s, i] = order[size_t(k)];
    for (; next < n && order[size_t(next)].first > s - 1.0; ++next) take(order[size_t(next)]);
    const double c = double(scratch.count.below(grades[i]));
    const double z = squared ? c * (1.0 - s) + scratch.sum.below(grades[i]) : c;
    hinges += z;
    gradient[i] -= squared ? 2 * z : z;
  }
  restart();
  for (int64_t k = n - 1, next = n - 1; k >= 0;
       --k) {  // j from the worst to the best: the active i are a growing suffix
    const auto [s, j] = order[size_t(k)];
    for (; next >= 0 && order[size_t(next)].first - 1.0 < s; --next) take(order[size_t(next)]);
    const double d = double(scratch.count.above(grades[j]));
    gradient[j] += squared ? 2 * (d * (1.0 + s) - scratch.sum.above(grades[j])) : d;
  }
  double linear = 0;
  for (const auto& [s, i] : order) linear += gradient[i] * s;
  return hinges + (squared ? 0.5 : 1.0) * linear;
}

// 2 · (pairs in the wrong order) + (pairs of equal score), and the number of pairs of different grades: whole numbers,
// whatever the ties. The grades may be any numbers.
std::pair<int64_t, int64_t> swapped(const double* scores, const double* grades, int64_t n, PairScratch& scratch) {
  auto& order = scratch.order;
  std::vector<int32_t> ranks(static_cast<size_t>(n));
  order.resize(size_t(n));
  for (int64_t i = 0; i < n; ++i) order[size_t(i)] = {grades[i], i};
  sort_descending(order);
  int64_t pairs = 0, first = n;
  int32_t rank = 0;
  for (int64_t k = n - 1; k >= 0; --k) {  // the lowest grade has rank 0
    if (k + 1 < n && order[size_t(k)].first != order[size_t(k + 1)].first) ++rank, first = k + 1;
    ranks[size_t(order[size_t(k)].second)] = rank;
    pairs += n - first;  // all of lower grade
  }
  for (int64_t i = 0; i < n; ++i) order[size_t(i)] = {scores[i], i};
  sort_descending(order);
  scratch.count.reset(int64_t(rank) + 1);
  int64_t total = 0;
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && order[size_t(end)].first == order[size_t(begin)].first) ++end;
    for (int64_t k = begin; k < end; ++k) total += scratch.count.below(ranks[size_t(order[size_t(k)].second)]);
    for (int64_t k = begin; k < end; ++k) scratch.count.add(ranks[size_t(order[size_t(k)].second)], 1);
    for (int64_t k = begin; k < end; ++k) total += scratch.count.below(ranks[size_t(order[size_t(k)].second)]);
  }
  return {total, pairs};
}

// ---------------------------------------------------------------------------------------------------- measures

struct Split {
  std::vector<Scored> relevant, other;
  std::vector<double> table;
  void fill(const double* scores, const int32_t* grades, int64_t n) {
    relevant.clear();
    other.clear();
    for (int64_t i = 0; i < n; ++i) (grades[i] ? relevant : other).emplace_back(scores[i], i);
    sort_descending(relevant);
    sort_descending(other);
  }
};

// In the most violated ranking both classes are sorted by score. Say r_q relevant examples stand before the q-th other
// one. That it stands before the p-th relevant one costs p/(p+q-1) - p/(p+q) of the average precision's sum, so the
// objective is a sum over q of
//   F_q(r_q) = Σ_{p > r_q} [ p / (P (p+q-1) (p+q)) - (s_p - s_q) / (P N) ],
// whose terms fall with q. Each r_q can therefore be chosen alone, the largest maximiser, and never falls from one q to
// the next.
double average_precision_loss(const double* scores, const int32_t* grades, int64_t n, double* gradient, Split& split) {
  split.fill(scores, grades, n);
  std::fill(gradient, gradient + n, 0.0);
  const int64_t P = int64_t(split.relevant.size()), N = int64_t(split.other.size());
  if (P == 0 || N == 0) return 0;
  const double unit = 1.0 / (double(P) * double(N));
  auto& inverse = split.table;
  inverse.resize(size_t(n) + 1);
  for (int64_t k = 1; k <= n; ++k) inverse[size_t(k)] = 1.0 / double(k);
  std::vector<int64_t> entered(size_t(P) + 1, 0);  // how many q have r_q = r
  double value = 0;
  for (int64_t q = 1, floor = 0; q <= N && floor < P; ++q) {
    const auto [s, j] = split.other[size_t(q - 1)];
    double sum = 0, best = 0;
    int64_t r = P;
    for (int64_t p = P; p > floor; --p) {
      sum += double(p) * inverse[size_t(P)] * inverse[size_t(p + q - 1)] * inverse[size_t(p + q)] -
             unit * (split.relevant[size_t(p - 1)].first - s);
      if (sum > best) best = sum, r = p - 1;
    }
    value += best;
    gradient[j] = unit * double(P - r);
    ++entered[size_t(r)];
    floor = r;
  }
  int64_t before = 0;  // others before the p-th relevant example
  for (int64_t p = 1; p <= P; ++p) {
    before += entered[size_t(p - 1)];
    gradient[split.relevant[size_t(p - 1)].second] = -unit * double(before);
  }
  return value;
}

// With a relevant and b other examples labelled positive, F1 = 2a / (P + a + b), and the best such labelling takes
// those of highest score. For fixed a the objective is concave in b: each further b adds 2a / ((P+a+b) (P+a+b+1)) + s /
// 2P, which falls with b. So one binary search for each a is exact. Where nothing is relevant, F1 is 1 for no positive
// label and 0 otherwise.
double f1_loss(const double* scores, const int32_t* grades, int64_t n, double* gradient, Split& split) {
  split.fill(scores, grades, n);
  std::fill(gradient, gradient + n, 0.0);
  if (n == 0) return 0;
  const int64_t P = int64_t(split.relevant.size()), N = int64_t(split.other.size());
  const double unit =
      0.5 / double(std::max<int64_t>(P, 1));  // one wrong label costs about so much of F1: a margin of 1
  auto& prefix = split.table;                 // Σ of the b highest scores of the others, over 2 P
  prefix.assign(size_t(N) + 1, 0.0);
  for (int64_t b = 0; b < N; ++b) prefix[size_t(b + 1)] = prefix[size_t(b)] + unit * split.other[size_t(b)].first;
  double best = 0, flipped = 0;  // flipped: what the relevant examples a .. P take away
  int64_t best_a = P, best_b = 0;
  for (int64_t a = P; a >= 0; --a) {
    if (a < P) flipped -= unit * split.relevant[size_t(a)].first;
    int64_t low = P == 0 ? 1 : 0, high = N;
    while (low < high) {
      const int64_t b = (low + high) / 2;
      const double size = double(P + a + b);
      const double gain = 2.0 * double(a) / (size * (size + 1.0)) + unit * split.other[size_t(b)].first;
      if (gain > 0)
        low = b + 1;
      else
        high = b;
    }
    const double value = 1.0 - (a ? 2.0 * double(a) / double(P + a + low) : 0.0) + flipped + prefix[size_t(low)];
    if (value > best) best = value, best_a = a, best_b = low;
  }
  for (int64_t p = best_a; p < P; ++p) gradient[split.relevant[size_t(p)].second] = -unit;
  for (int64_t q = 0; q < best_b; ++q) gradient[split.other[size_t(q)].second] = unit;
  return best;
}

// ---------------------------------------------------------------------------------------------------- bindings

int64_t check_offsets(const In1<int64_t>& offsets, int64_t n) {
  return require_offsets(offsets, n, "offsets", "scores");
}

int64_t check_groups(const In1<double>& scores, const In1<int32_t>& grades, const In1<int64_t>& offsets, int32_t most) {
  const int64_t n = int64_t(scores.shape(0)), groups = check_offsets(offsets, n);
  require(int64_t(grades.shape(0)) == n, "scores and grades must have one length");
  for (int64_t k = 0; k < groups; ++k) {
    const int64_t first = offsets.data()[k], last = offsets.data()[k + 1];
    for (int64_t i = first; i < last; ++i) {
      const int32_t grade = grades.data()[i];
      require(grade >= 0 && grade <= most && grade < std::max<int64_t>(2, last - first), "a grade is out of range");
    }
  }
  require(all_finite(scores.data(), n), "scores must be finite");
  return groups;
}

template <class Scratch, class Loss>
void run(Loss loss, In1<double> scores, In1<int32_t> grades, In1<int64_t> offsets, Out1<double> gradient,
         Out1<double> values, int threads, int32_t most) {
  const int64_t groups = check_groups(scores, grades, offsets, most);
  require(gradient.shape(0) == scores.shape(0), "gradient and scores must have one length");
  require(int64_t(values.shape(0)) == groups, "values must have one entry for each group");
  threads = thread_count(threads);
  const double* s = scores.data();
  const int32_t* y = grades.data();
  const int64_t* o = offsets.data();
  double *g = gradient.data(), *v = values.data();
  nb::gil_scoped_release release;
  over_groups(groups, threads, [=](int64_t first, int64_t last) {
    Scratch scratch;
    for (int64_t k = first; k < last; ++k) v[k] = loss(s + o[k], y + o[k], o[k + 1] - o[k], g + o[k], scratch);
  });
}

constexpr int32_t kAnyGrade = INT32_MAX;

void pair_losses(In1<double> scores, In1<int32_t> grades, In1<int64_t> offsets, bool squared, Out1<double> gradient,
                 Out1<double> values, int threads) {
  run<PairScratch>(squared ? pair_loss<true> : pair_loss<false>, scores, grades, offsets, gradient, values, threads,
                   kAnyGrade);
}

void average_precision_losses(In1<double> scores, In1<int32_t> grades, In1<int64_t> offsets, Out1<double> gradient,
                              Out1<double> values, int threads) {
  run<Split>(average_precision_loss, scores, grades, offsets, gradient, values, threads, 1);
}

void f1_losses(In1<double> scores, In1<int32_t> grades, In1<int64_t> offsets, Out1<double> gradient,
               Out1<double> values, int threads) {
  run<Split>(f1_loss, scores, grades, offsets, gradient, values, threads, 1);
}

void swapped_pairs(In1<double> scores, In1<double> grades, In1<int64_t> offsets, Out1<int64_t> counts,
                   Out1<int64_t> pairs) {
  const int64_t n = int64_t(scores.shape(0)), groups = check_offsets(offsets, n);
  require(int64_t(grades.shape(0)) == n, "scores and grades must have one length");
  require(n < INT32_MAX, "too many scores");
  require(all_finite(scores.data(), n) && all_finite(grades.data(), n), "scores and grades must be finite");
  require(int64_t(counts.shape(0)) == groups && int64_t(pairs.shape(0)) == groups,
          "counts and pairs must have one entry for each group");
  const double *s = scores.data(), *y = grades.data();
  const int64_t* o = offsets.data();
  int64_t *out = counts.data(), *possible = pairs.data();
  nb::gil_scoped_release release;
  PairScratch scratch;
  for (int64_t k = 0; k < groups; ++k)
    std::tie(out[k], possible[k]) = swapped(s + o[k], y + o[k], o[k + 1] - o[k], scratch);
}

}  // namespace

#define MERCER_GROUPS "scores"_a.noconvert(), "grades"_a.noconvert(), "offsets"_a.noconvert()

void bind_ranking(nb::module_& m) {
  m.def("pair_losses", &pair_losses, MERCER_GROUPS, "squared"_a, "gradient"_a.noconvert(), "values"_a.noconvert(),
        "threads"_a = 1, "Σ over pairs of each group of the (squared) hinge, and its gradient in the scores.");
  m.def("average_precision_losses", &average_precision_losses, MERCER_GROUPS, "gradient"_a.noconvert(),
        "values"_a.noconvert(), "threads"_a = 1, "max (1 - AP + score) of each group, and its gradient in the scores.");
  m.def("f1_losses", &f1_losses, MERCER_GROUPS, "gradient"_a.noconvert(), "values"_a.noconvert(), "threads"_a = 1,
        "max (1 - F1 + score) of each group, and its gradient in the scores.");
  m.def("swapped_pairs", &swapped_pairs, MERCER_GROUPS, "counts"_a.noconvert(), "pairs"_a.noconvert(),
        "2 · (pairs in the wrong order) + (pairs of equal score), and the pairs of different grades, of each group.");
}

}  // namespace mercer
