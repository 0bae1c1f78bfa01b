// Verbs over batches of chains, compiled once for each instruction set.
#include "structures/chain_loops.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "structures/chain.hpp"
#include "structures/chain_paths.hpp"
#include "structures/linear.hpp"

namespace mercer::MERCER_ARCH {

// Runs work(workspace, group begin, group end, group) over all groups; false if a workspace met NaN or +inf.
template <class T, class Work> bool for_groups(const Chains<T>& chains, int threads, Work work) {
  const std::vector<int64_t> starts = groups_of(chains.offsets, chains.n);
  const int64_t n_groups = int64_t(starts.size()) - 1;
  // A workspace for each run of groups; there are more runs than threads, so that none waits long for the last.
  const int64_t runs = threads <= 1 ? 1 : std::min<int64_t>(n_groups, int64_t(threads) * 4);
  std::atomic<bool> bad{false};
  in_parallel(runs, threads, [&](int64_t run) {
    ChainWorkspace<T> space(chains);
    for (int64_t g = n_groups * run / runs; g < n_groups * (run + 1) / runs && !space.bad(); ++g)
      work(space, starts[g], starts[g + 1], g);
    if (space.bad()) bad = true;
    ChainScratch<T>::mine().trim();
  });
  return !bad;
}

// Zeros for a sequence whose weight is 0.
template <class T> void pass_over(const Chains<T>& chains, const ChainMarginals<T>& out, int64_t i) {
  const int64_t begin = chains.offsets[i] - chains.offsets[0], end = chains.offsets[i + 1] - chains.offsets[0];
  const int64_t stride = out.stride ? out.stride : chains.C, square = int64_t(chains.C) * chains.C;
  if (out.nodes) std::fill(out.nodes + begin * stride, out.nodes + end * stride, T(0));
  if (out.edges) std::fill(out.edges + begin * square, out.edges + end * square, T(0));
  out.log_partition[i] = 0.0;
  if (out.entropy) out.entropy[i] = 0.0;
}

// Takes the marginals of a sequence times its weight.
template <class T>
void weigh(const Chains<T>& chains, const ChainMarginals<T>& out, int64_t i, double weight,
           const std::vector<double>& single, double* sums) {
  for (size_t k = 0; k < single.size(); ++k) sums[k] += weight * single[k];
  if (weight == 1.0) return;
  const int64_t begin = chains.offsets[i] - chains.offsets[0], end = chains.offsets[i + 1] - chains.offsets[0];
  const int64_t stride = out.stride ? out.stride : chains.C, square = int64_t(chains.C) * chains.C;
  if (out.nodes)
    for (int64_t k = begin * stride; k < end * stride; ++k) out.nodes[k] = T(weight * out.nodes[k]);
  if (out.edges)
    for (int64_t k = begin * square; k < end * square; ++k) out.edges[k] = T(weight * out.edges[k]);
}

template <class T> bool marginals(const Chains<T>& given, const ChainMarginals<T>& out, int threads) {
  Chains<T> chains = given;
  AlignedVector<T> rows, shifts;
  if (chains.codes) {
    ChainWorkspace<T> space(chains);
    space.prepare_rows(rows, shifts);
    if (space.bad()) return false;
    chains.row_exp = rows.data();
    chains.row_shifts = shifts.data();
  }
  const int64_t C = chains.C, size = out.transitions ? C * C + 2 * C : 0;
  const int64_t n_groups = int64_t(groups_of(chains.offsets, chains.n).size()) - 1;
  std::vector<double> sums(size_t(n_groups * size), 0.0);
  const bool sound = for_groups(chains, threads, [&](ChainWorkspace<T>& space, int64_t begin, int64_t end, int64_t g) {
    double* own = size ? sums.data() + g * size : nullptr;
    std::vector<double> single(out.weights ? size_t(size) : 0);
    double* into = out.weights && size ? single.data() : own;
    for (int64_t i = begin; i < end && !space.bad(); ++i) {
      const double weight = out.weights ? out.weights[i] : 1.0;
      if (weight == 0.0) {
        pass_over(chains, out, i);
        continue;
      }
      std::fill(single.begin(), single.end(), 0.0);
      space.marginals(i, out, into, into ? into + C * C : nullptr, into ? into + C * C + C : nullptr);
      if (out.weights) weigh(chains, out, i, weight, single, own);
    }
  });
  for (int64_t g = 0; size && g < n_groups; ++g) {
    const double* own = sums.data() + g * size;
    for (int64_t k = 0; k < C * C; ++k) out.transitions[k] += own[k];
    for (int64_t b = 0; b < C; ++b) {
      out.start[b] += own[C * C + b];
      out.end[b] += own[C * C + C + b];
    }
  }
  return sound;
}

// The log loss of known labellings and its gradient in the weights, in one walk over the data:
//   loss_i = log Z_i - score(y_i),   gradient += Σ_t x_t (μ_t - 1_{y_t}),
//   sums += the same for [transitions | start | end]
// chains.nodes is not used: node scores are made from x and w, for a group of sequences at a time, and used while they
// are at hand. The sequences are cut into two shards with gradients of their own, whatever the number of threads, so
// that the sums do not depend on it. Two threads then need not wait for each other; more of them share the groups of a
// batch, and the features on the way back. Where all features are 1, the shards share a gradient unless two threads
// write: μ - 1_y is rounded to a multiple of 2^(b - 52) for up to 2^b rows, the sums are then exact, and the same in
// any order.
template <class T> class LogLoss {
 public:
  LogLoss(const Rows<T>& x, const Pattern& p, const Chains<T>& all, const int32_t* labels, const double* w,
          double* loss)
      : x_(x), p_(p), c_(all), labels_(labels), w_(w), loss_(loss), C(all.C), S(padded(all.C)), size_(C * C + 2 * C) {
    if (!x.indptr || x.values) return;
    int b = 1;
    while (b < 48 && int64_t(1) << b < x.n_rows) ++b;
    rounding_ = std::ldexp(1.5, b);  // the sum with it has no bits below 2^(b - 52)
  }

  bool run(double* gradient, double* sums, int threads) {
    const int64_t half = c_.offsets[0] + (c_.offsets[c_.n] - c_.offsets[0]) / 2;
    const int64_t middle = std::lower_bound(c_.offsets, c_.offsets + c_.n, half) - c_.offsets;
    const bool small = c_.offsets[c_.n] - c_.offsets[0] <= 2 * kGroupPositions;
    const bool shared = rounding_ > 0 && threads != 2;
    AlignedVector<double> second(small || shared ? 0 : size_t(p_.n_weights), 0.0);
    std::vector<Shard> shards;
    shards.push_back({0, small ? c_.n : middle, gradient, std::vector<double>(size_t(size_), 0.0)});
    if (!small)
      shards.push_back({middle, c_.n, shared ? gradient : second.data(), std::vector<double>(size_t(size_), 0.0)});
    if (threads <= 2) {
      in_parallel(int64_t(shards.size()), threads, [&](int64_t k) { alone(shards[size_t(k)]); });
    } else {
      for (Shard& shard : shards) together(shard, threads);
    }
    for (size_t k = 0; k < second.size(); ++k) gradient[k] += second[k];
    for (const Shard& shard : shards)
      for (int64_t k = 0; k < size_; ++k) sums[k] += shard.sums[size_t(k)];
    return !bad_;
  }

 private:
  struct Shard {
    int64_t begin, end;  // sequences
    double* gradient;
    std::vector<double> sums;
  };
  struct Memory {
    AlignedVector<T> nodes, mu;
    std::vector<double> sums;
  };

  // Groups of sequences of about kGroupPositions.
  int64_t group_end(int64_t begin, int64_t end) const {
    int64_t i = begin + 1;
    while (i < end && c_.offsets[i] - c_.offsets[begin] < kGroupPositions) ++i;
    return i;
  }

  void alone(Shard& shard) {
    Memory m;
    ChainWorkspaceOf space(*this);
    for (int64_t begin = shard.begin, end; begin < shard.end && !bad_; begin = end) {
      end = group_end(begin, shard.end);
      const int64_t row = c_.offsets[begin], count = c_.offsets[end] - row;
      m.sums.assign(size_t(size_), 0.0);
      forward(space, begin, end, ChainScratch<T>::grown(m.nodes, count * C), ChainScratch<T>::grown(m.mu, count * S),
              m.sums.data());
      for (int64_t k = 0; k < size_; ++k) shard.sums[size_t(k)] += m.sums[size_t(k)];
      backward_rows(x_, row, count, p_, m.mu.data(), S, shard.gradient, {0, p_.n_features}, 1);
    }
    ChainScratch<T>::mine().trim();
  }

  // A batch holds a few groups for each thread.
  void together(Shard& shard, int threads) {
    Memory m;
    const int64_t first = c_.offsets[shard.begin], positions = c_.offsets[shard.end] - first;
    const std::vector<int64_t> ranges = feature_ranges(x_, first, positions, p_, threads);
    std::vector<int64_t> starts;
    for (int64_t begin = shard.begin; begin < shard.end && !bad_; begin = starts.back()) {
      starts.assign(1, begin);
      while (starts.back() < shard.end && int64_t(starts.size()) <= 4 * threads)
        starts.push_back(group_end(starts.back(), shard.end));
      const int64_t row = c_.offsets[begin], count = c_.offsets[starts.back()] - row,
                    n_groups = int64_t(starts.size()) - 1;
      ChainScratch<T>::grown(m.nodes, count * C);
      ChainScratch<T>::grown(m.mu, count * S);
      m.sums.assign(size_t(n_groups * size_), 0.0);
      in_parallel(n_groups, threads, [&](int64_t g) {
        ChainWorkspaceOf space(*this);
        const int64_t at = c_.offsets[starts[size_t(g)]] - row;
        forward(space, starts[size_t(g)], starts[size_t(g) + 1], m.nodes.data() + at * C, m.mu.data() + at * S,
                m.sums.data() + g * size_);
        ChainScratch<T>::mine().trim();
      });
      for (int64_t k = 0; k < n_groups * size_; ++k) shard.sums[size_t(k % size_)] += m.sums[size_t(k)];
      backward_rows(x_, row, count, p_, m.mu.data(), S, shard.gradient, ranges, threads);
    }
  }

  // A workspace whose chains change from group to group.
  struct ChainWorkspaceOf {
    Chains<T> chains;
    ChainWorkspace<T> space;
    explicit ChainWorkspaceOf(const LogLoss& owner) : chains(owner.c_), space(chains) {}
  };

  // The losses of sequences begin .. end, and their μ - 1_y.
  void forward(ChainWorkspaceOf& of, int64_t begin, int64_t end, T* nodes, T* mu, double* sums) {
    const int64_t row = c_.offsets[begin], count = c_.offsets[end] - row;
    of.chains.nodes = nodes;
    of.chains.offsets = c_.offsets + begin;
    of.chains.n = end - begin;
    scores(x_, row, count, p_, w_, nodes, 1);
    double *transitions = sums, *start = sums + C * C, *stop = start + C;
    const ChainMarginals<T> out{mu, nullptr, nullptr, nullptr, nullptr, loss_ + begin, nullptr, nullptr, S};
    for (int64_t i = 0; i < end - begin && !of.space.bad(); ++i) of.space.marginals(i, out, transitions, start, stop);
    const int32_t* y = labels_ + (row - c_.offsets[0]);
    std::vector<double> truth(size_t(end - begin));
    if (of.space.bad() || !chain_score(of.chains, y, truth.data())) {
      bad_ = true;
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      loss_[i] -= truth[size_t(i - begin)];
      const int64_t first = c_.offsets[i] - row, last = c_.offsets[i + 1] - row;
      if (first == last) continue;
      start[y[first]] -= 1.0;
      stop[y[last - 1]] -= 1.0;
      for (int64_t t = first; t < last; ++t) {
        mu[t * S + y[t]] -= T(1);
        if (t > first) transitions[y[t - 1] * C + y[t]] -= 1.0;
      }
    }
    if (rounding_ > 0)
      for (int64_t k = 0; k < count * S; ++k) mu[k] = T((double(mu[k]) + rounding_) - rounding_);
  }

  const Rows<T>& x_;
  const Pattern& p_;
  const Chains<T>& c_;
  const int32_t* labels_;
  const double* w_;
  double* loss_;
  const int64_t C, S, size_;
  double rounding_ = 0.0;
  std::atomic<bool> bad_{false};
};

template <class T>
bool log_loss(const Rows<T>& x, const Pattern& p, const Chains<T>& chains, const int32_t* labels, const double* w,
              double* loss, double* gradient, double* sums, int threads) {
  return LogLoss<T>(x, p, chains, labels, w, loss).run(gradient, sums, threads);
}

template <class T> bool viterbi(const Chains<T>& chains, int32_t* labels, double* score, int threads) {
  return for_groups(chains, threads, [&](ChainWorkspace<T>& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) score[i] = space.viterbi(i, labels + (chains.offsets[i] - chains.offsets[0]));
  });
}

// The best labellings from rows and weights: chains.nodes is not used, node scores are made for a group of sequences at
// a time and used while they are at hand.
template <class T>
bool decode(const Rows<T>& x, const Pattern& p, const Chains<T>& all, const double* w, int32_t* labels, double* score,
            int threads) {
  const std::vector<int64_t> starts = groups_of(all.offsets, all.n);
  const int64_t n_groups = int64_t(starts.size()) - 1;
  const int64_t runs = threads <= 1 ? 1 : std::min<int64_t>(n_groups, int64_t(threads) * 4);
  std::atomic<bool> bad{false};
  in_parallel(runs, threads, [&](int64_t run) {
    AlignedVector<T> nodes;
    Chains<T> chains = all;
    ChainWorkspace<T> space(chains);
    for (int64_t g = n_groups * run / runs; g < n_groups * (run + 1) / runs && !space.bad(); ++g) {
      const int64_t begin = starts[g], row = all.offsets[begin], count = all.offsets[starts[g + 1]] - row;
      chains.nodes = ChainScratch<T>::grown(nodes, count * all.C);
      chains.offsets = all.offsets + begin;
      scores(x, row, count, p, w, nodes.data(), 1);
      for (int64_t i = begin; i < starts[g + 1]; ++i)
        score[i] = space.viterbi(i - begin, labels + (all.offsets[i] - all.offsets[0]));
    }
    if (space.bad()) bad = true;
    ChainScratch<T>::mine().trim();
  });
  return !bad;
}

template <> const ChainLoops<double>& table<ChainLoops<double>>() {
  static constexpr ChainLoops<double> loops = {
      .marginals = marginals<double>,
      .log_loss = log_loss<double>,
      .viterbi = viterbi<double>,
      .decode = decode<double>,
  };
  return loops;
}

template <> const ChainLoops<float>& table<ChainLoops<float>>() {
  static constexpr ChainLoops<float> loops = {
      .marginals = marginals<float>,
      .log_loss = log_loss<float>,
      .viterbi = viterbi<float>,
      .decode = decode<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
