#include "structures/chain_paths.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "base/parallel.hpp"

namespace mercer {

std::vector<int64_t> groups_of(const int64_t* offsets, int64_t n) {
  std::vector<int64_t> starts{0};
  for (int64_t i = 0; i < n; ++i)
    if (offsets[i + 1] - offsets[starts.back()] >= kGroupPositions || i == n - 1) starts.push_back(i + 1);
  return starts;
}

namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

template <class T> bool below_infinity(const T* x, int64_t n) {
  bool sound = true;
  for (int64_t k = 0; k < n; ++k) sound &= x[k] < std::numeric_limits<T>::infinity();
  return sound;
}

double log_sum(const double* x, int n) {
  double top = kForbidden;
  for (int i = 0; i < n; ++i) top = std::max(top, x[i]);
  if (top == kForbidden) return top;
  double total = 0;
  for (int i = 0; i < n; ++i) total += std::exp(x[i] - top);
  return top + std::log(total);
}

// Sums of products stand for sums of exponentials where they are at least this: what is lost by underflow is then too
// small to matter, and the others are summed by their logarithms.
constexpr double kLeast = 1e-290;

// Transitions as factors of probabilities, exp(score − top): those into a label, and those out of it, end to end.
struct Factors {
  double top = kForbidden;
  std::vector<double> from, into;  // from[a C + b] = into[b C + a]

  template <class T> explicit Factors(const Chains<T>& chains) : from(size_t(chains.C) * chains.C), into(from.size()) {
    const int C = chains.C;
    for (size_t j = 0; j < from.size(); ++j) top = std::max(top, double(chains.transitions[j]));
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b)
        from[a * C + b] = into[b * C + a] =
            top > kForbidden ? std::exp(double(chains.transitions[a * C + b]) - top) : 0.0;
  }
};

// One sequence of a batch.
template <class T> class Path {
 public:
  Path(const Chains<T>& chains, int64_t i)
      : c_(chains),
        C(chains.C),
        i_(i),
        begin_(chains.offsets[i] - chains.offsets[0]),
        steps_(chains.offsets[i + 1] - chains.offsets[i]) {}

  bool k_best(int k, int32_t* labels, int64_t label_stride, double* scores) const;
  bool sample(const Factors* factors, int draws, uint64_t seed, int32_t* labels, int64_t label_stride) const;
  bool marginals(const ChainMarginals<T>& out, double* sum_trans, double* sum_start, double* sum_end) const;

 private:
  double edge_score(int64_t t, int a, int b) const {
    double score = double(c_.transitions[a * C + b]);
    if (c_.edges) score += double(c_.edges[((begin_ + t) * C + a) * C + b]);
    return score;
  }
  bool forward(std::vector<double>& alpha) const;
  bool forward(const Factors& factors, std::vector<double>& alpha, std::vector<double>& shares) const;

  const Chains<T>& c_;
  const int C;
  const int64_t i_, begin_, steps_;
};

template <class T> bool Path<T>::k_best(int k, int32_t* labels, int64_t label_stride, double* scores) const {
  if (steps_ == 0) {
    for (int r = 0; r < k; ++r) scores[r] = r == 0 ? 0.0 : kForbidden;
    return true;
  }
  struct Entry {
    double score;
    int32_t label, rank;
  };
  std::vector<Entry> table(size_t(steps_) * C * k), heap;
  std::vector<double> edges(size_t(C) * C);  // scores of the edge into a position, rounded as T
  for (int64_t j = 0; j < int64_t(C) * C; ++j) edges[j] = double(c_.transitions[j]);
  auto better = [](const Entry& x, const Entry& y) {  // a max-heap; ties in favour of low labels and ranks
    if (x.score != y.score) return x.score < y.score;
    return x.label != y.label ? x.label > y.label : x.rank > y.rank;
  };
  bool sound = true;
  for (int64_t t = 0; t < steps_; ++t) {
    const T* nodes = c_.row(begin_ + t);
    sound &= below_infinity(nodes, C);
    if (t && c_.edges) {
      const T* extra = c_.edges + (begin_ + t) * C * C;
      sound &= below_infinity(extra, int64_t(C) * C);
      for (int64_t j = 0; j < int64_t(C) * C; ++j) edges[j] = double(T(c_.transitions[j] + extra[j]));
    }
    for (int b = 0; b < C; ++b) {
      Entry* cell = table.data() + (t * C + b) * k;
      for (int r = 0; r < k; ++r) cell[r] = {kForbidden, -1, 0};
      if (t == 0) {
        cell[0].score = double(c_.start[b]) + double(nodes[b]);
        continue;
      }
      const Entry* before = table.data() + (t - 1) * int64_t(C) * k;
      heap.clear();
      for (int a = 0; a < C; ++a) heap.push_back({before[int64_t(a) * k].score + edges[a * C + b], a, 0});
      std::make_heap(heap.begin(), heap.end(), better);
      for (int r = 0; r < k && !heap.empty(); ++r) {
        std::pop_heap(heap.begin(), heap.end(), better);
        const Entry top = heap.back();
        heap.pop_back();
        if (!(top.score > kForbidden)) break;
        cell[r] = {top.score + double(nodes[b]), top.label, top.rank};
        if (top.rank + 1 < k) {
          const int a = top.label;
          heap.push_back({before[int64_t(a) * k + top.rank + 1].score + edges[a * C + b], a, top.rank + 1});
          std::push_heap(heap.begin(), heap.end(), better);
        }
      }
    }
  }
  std::vector<Entry> finals;
  for (int b = 0; b < C; ++b)
    for (int r = 0; r < k; ++r) {
      const double score = table[((steps_ - 1) * C + b) * k + r].score + double(c_.end[b]);
      if (score > kForbidden) finals.push_back({score, b, r});
    }
  std::sort(finals.begin(), finals.end(), [&](const Entry& x, const Entry& y) { return better(y, x); });
  for (int r = 0; r < k; ++r) {
    int32_t* path = labels + r * label_stride;
    if (r >= int(finals.size())) {
      scores[r] = kForbidden;
      std::fill(path, path + steps_, -1);
      continue;
    }
    scores[r] = finals[r].score;
    int b = finals[r].label, rank = finals[r].rank;
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      path[t] = b;
      const Entry& e = table[(t * C + b) * k + rank];
      b = e.label;
      rank = e.rank;
    }
  }
  return sound;
}

// Without scores of single edges (factors are given) a step costs multiplications in the place of exponentials.
template <class T>
bool Path<T>::sample(const Factors* factors, int draws, uint64_t seed, int32_t* labels, int64_t label_stride) const {
  if (steps_ == 0) return true;
  std::vector<double> alpha, shares;
  if (!(factors ? forward(*factors, alpha, shares) : forward(alpha))) return false;
  std::seed_seq seq{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i_), uint32_t(uint64_t(i_) >> 32)};
  std::mt19937_64 random(seq);
  std::vector<double> weights(C);
  auto chosen_of = [&](double total) {
    const double u = double(random() >> 11) * 0x1p-53 * total;
    double running = 0;
    int chosen = -1;
    for (int b = 0; b < C; ++b) {
      if (weights[b] <= 0) continue;
      running += weights[b];
      chosen = b;
      if (u < running) break;
    }
    return chosen;
  };
  auto draw = [&]() {  // by logarithms
    double top = kForbidden, total = 0;
    for (double x : weights) top = std::max(top, x);
    for (double& x : weights) {
      x = top > kForbidden ? std::exp(x - top) : 0.0;
      total += x;
    }
    return chosen_of(total);
  };
  auto draw_before = [&](int64_t t, int next) {
    if (factors) {
      const double *before = shares.data() + (t - 1) * C, *into = factors->into.data() + int64_t(next) * C;
      double total = 0;
      for (int a = 0; a < C; ++a) total += weights[a] = before[a] * into[a];
      if (total >= kLeast) return chosen_of(total);
    }
    for (int a = 0; a < C; ++a) weights[a] = alpha[(t - 1) * C + a] + edge_score(t, a, next);
    return draw();
  };
  for (int d = 0; d < draws; ++d) {
    int32_t* path = labels + d * label_stride;
    for (int b = 0; b < C; ++b) weights[b] = alpha[(steps_ - 1) * C + b] + double(c_.end[b]);
    int next = draw();
    if (next < 0) {
      std::fill(path, path + steps_, -1);
      continue;
    }
    path[steps_ - 1] = next;
    for (int64_t t = steps_ - 1; t > 0; --t) path[t - 1] = next = draw_before(t, next);
  }
  return true;
}

// The same as below where edges have no scores of their own, and exp(alpha) as shares of the largest of each position.
template <class T>
bool Path<T>::forward(const Factors& factors, std::vector<double>& alpha, std::vector<double>& shares) const {
  alpha.resize(size_t(steps_) * C);
  shares.resize(size_t(steps_) * C);
  std::vector<double> sums(C), terms(C);
  double top = kForbidden;  // of the position before
  for (int64_t t = 0; t < steps_; ++t) {
    double *now = alpha.data() + t * C, *share = shares.data() + t * C;
    const T* nodes = c_.row(begin_ + t);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int a = 0; t && a < C; ++a) {
      const double before = share[a - C], *from = factors.from.data() + int64_t(a) * C;
      for (int b = 0; b < C; ++b) sums[b] += before * from[b];
    }
    for (int b = 0; b < C; ++b) {
      if (!(double(nodes[b]) < std::numeric_limits<double>::infinity())) return false;
      if (t == 0) {
        now[b] = double(c_.start[b]);
      } else if (sums[b] >= kLeast) {
        now[b] = top + factors.top + std::log(sums[b]);
      } else {
        for (int a = 0; a < C; ++a) terms[a] = now[a - C] + double(c_.transitions[a * C + b]);
        now[b] = log_sum(terms.data(), C);
      }
      now[b] += double(nodes[b]);
    }
    top = *std::max_element(now, now + C);
    for (int b = 0; b < C; ++b) share[b] = top > kForbidden ? std::exp(now[b] - top) : 0.0;
  }
  return true;
}

// log Σ of everything up to a label at a position.
template <class T> bool Path<T>::forward(std::vector<double>& alpha) const {
  alpha.assign(size_t(steps_) * C, kForbidden);
  std::vector<double> terms(C);
  for (int64_t t = 0; t < steps_; ++t)
    for (int b = 0; b < C; ++b) {
      const double node = double(c_.row(begin_ + t)[b]);
      if (!(node < std::numeric_limits<double>::infinity())) return false;
      if (t == 0) {
        alpha[b] = double(c_.start[b]) + node;
        continue;
      }
      for (int a = 0; a < C; ++a) {
        const double edge = edge_score(t, a, b);
        if (!(edge < std::numeric_limits<double>::infinity())) return false;
        terms[a] = alpha[(t - 1) * C + a] + edge;
      }
      alpha[t * C + b] = log_sum(terms.data(), C) + node;
    }
  return true;
}

template <class T>
bool Path<T>::marginals(const ChainMarginals<T>& out, double* sum_trans, double* sum_start, double* sum_end) const {
  std::vector<double> alpha, beta(size_t(steps_) * C), terms(C);
  if (!forward(alpha)) return false;
  for (int b = 0; b < C; ++b) terms[b] = alpha[(steps_ - 1) * C + b] + double(c_.end[b]);
  const double log_z = log_sum(terms.data(), C);
  out.log_partition[i_] = log_z;
  if (out.entropy) out.entropy[i_] = 0.0;
  const int64_t stride = out.stride ? out.stride : C;
  if (out.nodes) std::fill(out.nodes + begin_ * stride, out.nodes + (begin_ + steps_) * stride, T(0));
  if (out.edges) std::fill(out.edges + begin_ * C * C, out.edges + (begin_ + steps_) * C * C, T(0));
  if (!(log_z > kForbidden)) return true;
  for (int b = 0; b < C; ++b) beta[(steps_ - 1) * C + b] = double(c_.end[b]);
  for (int64_t t = steps_ - 1; t > 0; --t)
    for (int a = 0; a < C; ++a) {
      for (int b = 0; b < C; ++b) terms[b] = edge_score(t, a, b) + double(c_.row(begin_ + t)[b]) + beta[t * C + b];
      beta[(t - 1) * C + a] = log_sum(terms.data(), C);
    }
  double expected = 0.0;
  auto add = [&](double mu, double theta) {
    if (mu > 0) expected += mu * theta;
  };
  for (int64_t t = 0; t < steps_; ++t) {
    // log Z once more at each position: the rounding of long sums then cancels, and the probabilities add up to 1.
    for (int b = 0; b < C; ++b) terms[b] = alpha[t * C + b] + beta[t * C + b];
    const double local = log_sum(terms.data(), C);
    for (int b = 0; b < C; ++b) {
      const double mu = std::exp(terms[b] - local);
      const double node = double(c_.row(begin_ + t)[b]);
      if (out.nodes) out.nodes[(begin_ + t) * stride + b] = T(mu);
      add(mu, node);
      if (t == 0) {
        add(mu, c_.start[b]);
        if (sum_start) sum_start[b] += mu;
      }
      if (t == steps_ - 1) {
        add(mu, c_.end[b]);
        if (sum_end) sum_end[b] += mu;
      }
      if (t == 0 || !(node > kForbidden)) continue;
      for (int a = 0; a < C; ++a) {
        const double edge = edge_score(t, a, b);
        const double xi = std::exp(alpha[(t - 1) * C + a] + edge + node + beta[t * C + b] - local);
        add(xi, edge);
        if (sum_trans) sum_trans[a * C + b] += xi;
        if (out.edges) out.edges[((begin_ + t) * C + a) * C + b] = T(xi);
      }
    }
  }
  if (out.entropy) out.entropy[i_] = std::max(0.0, log_z - expected);
  return true;
}

// Calls work(path, sequence) for all sequences, groups of them on each thread; false where scores, or work, are not
// sound.
template <class T, class Work> bool for_paths(const Chains<T>& chains, int threads, Work work) {
  const int64_t C = chains.C;
  if (!below_infinity(chains.transitions, C * C) || !below_infinity(chains.start, C) || !below_infinity(chains.end, C))
    return false;
  const std::vector<int64_t> starts = groups_of(chains.offsets, chains.n);
  std::atomic<bool> sound{true};
  in_parallel(int64_t(starts.size()) - 1, threads, [&](int64_t g) {
    for (int64_t i = starts[g]; i < starts[g + 1] && sound; ++i)
      if (!work(Path<T>(chains, i), i)) sound = false;
  });
  return sound;
}

}  // namespace

template <class T> bool chain_k_best(const Chains<T>& chains, int k, int32_t* labels, double* score, int threads) {
  const int64_t first = chains.offsets[0], total = chains.offsets[chains.n] - first;
  return for_paths(chains, threads, [&](const Path<T>& path, int64_t i) {
    return path.k_best(k, labels + (chains.offsets[i] - first), total, score + i * k);
  });
}

template <class T> bool chain_sample(const Chains<T>& chains, int draws, uint64_t seed, int32_t* labels, int threads) {
  const int64_t first = chains.offsets[0], total = chains.offsets[chains.n] - first;
  const std::unique_ptr<const Factors> factors(chains.edges ? nullptr : new Factors(chains));
  return for_paths(chains, threads, [&](const Path<T>& path, int64_t i) {
    return path.sample(factors.get(), draws, seed, labels + (chains.offsets[i] - first), total);
  });
}

template <class T> bool chain_score(const Chains<T>& chains, const int32_t* labels, double* out) {
  const int C = chains.C;
  for (int64_t i = 0; i < chains.n; ++i) {
    const int64_t begin = chains.offsets[i] - chains.offsets[0], end = chains.offsets[i + 1] - chains.offsets[0];
    if (begin == end) {
      out[i] = 0.0;
      continue;
    }
    double total = double(chains.start[labels[begin]]) + double(chains.end[labels[end - 1]]);
    for (int64_t t = begin; t < end; ++t) {
      const int b = labels[t];
      total += double(chains.nodes[t * C + b]);
      if (t == begin) continue;
      const int a = labels[t - 1];
      total += double(chains.transitions[a * C + b]);
      if (chains.edges) total += double(chains.edges[(t * C + a) * C + b]);
    }
    out[i] = total;
    if (!(total < std::numeric_limits<double>::infinity())) return false;
  }
  return true;
}

template <class T>
bool chain_log_marginals(const Chains<T>& chains, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
                         double* sum_start, double* sum_end) {
  return Path<T>(chains, i).marginals(out, sum_trans, sum_start, sum_end);
}

#define MERCER_INSTANCES(T)                                                      \
  template bool chain_k_best<T>(const Chains<T>&, int, int32_t*, double*, int);  \
  template bool chain_sample<T>(const Chains<T>&, int, uint64_t, int32_t*, int); \
  template bool chain_score<T>(const Chains<T>&, const int32_t*, double*);       \
  template bool chain_log_marginals<T>(const Chains<T>&, int64_t, const ChainMarginals<T>&, double*, double*, double*);
MERCER_INSTANCES(double)
MERCER_INSTANCES(float)
#undef MERCER_INSTANCES

}  // namespace mercer
