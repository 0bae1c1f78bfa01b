// First-order chains: every verb over stacked sequences of part scores (see base/dispatch.hpp for the score of a labelling).
//
// Sums run in the probability domain with a scale at every position:
//   e_t = exp(θ_t - max θ_t)
//   a_t = (a_{t-1} M) ∘ e_t / Σ a_{t-1},   u_t = e_t ∘ b_t / Σ u_{t+1},   b_{t-1} = M u_t
//   log Z = Σ log Σ a_t + shifts,   μ_t = a_t ∘ b_t / ⟨a_t, b_t⟩,   ξ_t = (a_{t-1} ⊗ u_t) ∘ M / ⟨a_{t-1}, b_{t-1}⟩
// A position is scaled by the sum of its neighbour, which is ready long before it is needed, and the two recursions run
// side by side from both ends: what bounds them is the latency of one step, and so two steps share it. Underflow loses
// at most the smallest normal number over ⟨a_t, b_t⟩ of the mass; where that product, or a sum, is small the sequence
// is done again in the log domain. Forbidden parts are exact zeros in both.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "structures/chain_loops.hpp"
#include "structures/linear.hpp"

namespace mercer::MERCER_ARCH {

template <class T> constexpr T kNegInf = -std::numeric_limits<T>::infinity();
template <class T> constexpr T kSmallestSum = sizeof(T) == 8 ? T(1e-100) : T(1e-12);
template <class T> constexpr T kSmallestProduct = sizeof(T) == 8 ? T(1e-200) : T(1e-26);

// exp(M - shift) with padded rows, and its transpose.
template <class T> struct Transitions {
  AlignedVector<T> exp, transposed;
  T shift = 0;
  bool finite = true;

  void prepare(const T* scores, int C, int64_t stride) {
    exp.assign(size_t(C) * stride, T(0));
    transposed.assign(size_t(C) * stride, T(0));
    T top = kNegInf<T>;
    for (int i = 0; i < C * C; ++i) {
      if (!(scores[i] < std::numeric_limits<T>::infinity())) finite = false;
      top = std::max(top, scores[i]);
    }
    shift = top > kNegInf<T> ? top : T(0);
    for (int a = 0; a < C; ++a) {
      T* row = exp.data() + a * stride;
      for (int b = 0; b < C; ++b) row[b] = scores[a * C + b] - shift;
      for (int b = C; b < stride; ++b) row[b] = kNegInf<T>;
      for (int64_t b = 0; b < stride; b += kLanes<T>) store(row + b, vexp(load(row + b)));
      for (int b = 0; b < C; ++b) transposed[b * stride + a] = row[b];
    }
  }
};

// Σ log c_t without a logarithm for each t.
struct LogProduct {
  double product = 1.0, logs = 0.0;
  void times(double c) {
    product *= c;
    if (product < 1e-200 || product > 1e200) {
      logs += std::log(product);
      product = 1.0;
    }
  }
  double value() const { return logs + std::log(product); }
};

// Memory of the recursions, kept by each thread from call to call: for short sequences fresh memory costs as much as
// the work.
template <class T> struct ChainScratch {
  AlignedVector<T> e, a, b, u, s, delta;

  static ChainScratch& mine() {
    static thread_local ChainScratch scratch;
    return scratch;
  }
  static T* grown(AlignedVector<T>& x, int64_t size) {
    if (int64_t(x.size()) < size) x.resize(size_t(size));
    return x.data();
  }
  // What one very long sequence needed is given back.
  void trim() {
    for (AlignedVector<T>* x : {&e, &a, &b, &u, &delta})
      if (x->size() > (size_t(1) << 21)) AlignedVector<T>().swap(*x);
  }
};

template <class T> class ChainWorkspace {
 public:
  ChainWorkspace(const Chains<T>& chains) : c_(chains), C(chains.C), S((C + kLanes<T> - 1) / kLanes<T> * kLanes<T>) {
    refresh();
  }

  // Takes in what the chains' shared scores (transitions, start, end) are now.
  void refresh() {
    max_.clear();
    trans_.finite = true;
    trans_.prepare(c_.transitions, C, S);
    start_.assign(S, T(0));
    end_.assign(S, T(0));
    bad_ = !trans_.finite;
    start_shift_ = prepare_vector(c_.start, start_.data());
    end_shift_ = prepare_vector(c_.end, end_.data());
  }

  bool bad() const { return bad_; }

  // The rows that positions share, as exp(θ - max θ) and max θ.
  void prepare_rows(AlignedVector<T>& rows, AlignedVector<T>& shifts) {
    nodes_end_ = c_.nodes + c_.n_rows * C;
    rows.resize(size_t(c_.n_rows * S));
    shifts.resize(size_t(c_.n_rows));
    for (int64_t r = 0; r < c_.n_rows && !bad_; ++r)
      shifts[size_t(r)] = shift_nodes(c_.nodes + r * C, rows.data() + r * S);
    for (int64_t k = 0; k < c_.n_rows * S && !bad_; k += kLanes<T>) store(rows.data() + k, vexp(load(rows.data() + k)));
  }

  // Marginals and log Z of sequence i; sums go to the given accumulators (C x C, C, C), which belong to the caller's
  // group.
  void marginals(int64_t i, const ChainMarginals<T>& out, double* sum_trans, double* sum_start, double* sum_end) {
    const int64_t begin = c_.offsets[i] - c_.offsets[0], steps = c_.offsets[i + 1] - c_.offsets[i];
    if (steps == 0) {  // the empty labelling: one of them, with score 0
      out.log_partition[i] = 0.0;
      if (out.entropy) out.entropy[i] = 0.0;
      return;
    }
    nodes_end_ = c_.nodes + (c_.codes ? c_.n_rows : c_.offsets[c_.n] - c_.offsets[0]) * C;
    if (!scaled(begin, steps, i, out, sum_trans, sum_start, sum_end)) {
      if (bad_) return;
      if (out.fallbacks) {
#pragma omp atomic
        ++*out.fallbacks;
      }
      log_domain(begin, steps, i, out, sum_trans, sum_start, sum_end);
    }
  }

  double viterbi(int64_t i, int32_t* labels) {
    const int64_t begin = c_.offsets[i] - c_.offsets[0], steps = c_.offsets[i + 1] - c_.offsets[i];
    if (steps == 0) return 0.0;
    prepare_max();
    ChainScratch<T>::grown(delta_, steps * S);
    for (int64_t t = 0; t < steps; ++t) {
      T* row = delta_.data() + t * S;
      const T* nodes = c_.row(begin + t);
      if (t == 0) {
        for (int b = 0; b < C; ++b) row[b] = c_.start[b];
      } else {
        maxplus(row - S, C, edge_max(begin + t), S, row);
      }
      Vec<T> worst{};
      int b = 0;
      for (; b + kLanes<T> <= C; b += kLanes<T>) {
        const Vec<T> x = load(nodes + b);
        worst += x < std::numeric_limits<T>::infinity() ? Vec<T>{} : splat(T(1));
        store(row + b, load(row + b) + x);
      }
      if (sum<T>(worst) > 0) bad_ = true;
      for (; b < C; ++b) {
        if (!(nodes[b] < std::numeric_limits<T>::infinity())) bad_ = true;
        row[b] += nodes[b];
      }
      for (b = C; b < S; ++b) row[b] = kNegInf<T>;
    }
    // Only the best path is followed back: the choice at t is found again from δ_{t-1} (ties: the lowest label).
    const T* last = delta_.data() + (steps - 1) * S;
    int best = 0;
    T score = kNegInf<T>;
    for (int b = 0; b < C; ++b) {
      const T value = last[b] + c_.end[b];
      if (value > score) {
        score = value;
        best = b;
      }
    }
    labels[steps - 1] = best;
    for (int64_t t = steps - 1; t > 0; --t) {
      const T* before = delta_.data() + (t - 1) * S;
      const T* M = edge_max(begin + t);
      int arg = 0;
      T top = kNegInf<T>;
      for (int a = 0; a < C; ++a) {
        const T value = before[a] + M[a * S + best];
        if (value > top) {
          top = value;
          arg = a;
        }
      }
      labels[t - 1] = best = arg;
    }
    return score;
  }

  // The k best labellings, best first; missing ones (fewer than k exist) have score -inf and labels -1.
  void k_best(int64_t i, int k, int32_t* labels, int64_t label_stride, double* scores) {
    const int64_t begin = c_.offsets[i] - c_.offsets[0], steps = c_.offsets[i + 1] - c_.offsets[i];
    if (steps == 0) {
      for (int r = 0; r < k; ++r) scores[r] = r == 0 ? 0.0 : kNegInf<double>;
      return;
    }
    prepare_max();
    struct Entry {
      double score;
      int32_t label, rank;
    };
    std::vector<Entry> table(size_t(steps) * C * k), heap;
    auto better = [](const Entry& x, const Entry& y) {  // a max-heap; ties in favour of low labels and ranks
      if (x.score != y.score) return x.score < y.score;
      return x.label != y.label ? x.label > y.label : x.rank > y.rank;
    };
    for (int64_t t = 0; t < steps; ++t) {
      const T* nodes = c_.row(begin + t);
      const T* M = t ? edge_max(begin + t) : nullptr;
      for (int b = 0; b < C; ++b) {
        Entry* cell = table.data() + (t * C + b) * k;
        if (!(nodes[b] < std::numeric_limits<T>::infinity())) bad_ = true;
        for (int r = 0; r < k; ++r) cell[r] = {kNegInf<double>, -1, 0};
        if (t == 0) {
          cell[0].score = double(c_.start[b]) + double(nodes[b]);
          continue;
        }
        const Entry* before = table.data() + (t - 1) * int64_t(C) * k;
        heap.clear();
        for (int a = 0; a < C; ++a) heap.push_back({before[int64_t(a) * k].score + double(M[a * S + b]), a, 0});
        std::make_heap(heap.begin(), heap.end(), better);
        for (int r = 0; r < k && !heap.empty(); ++r) {
          std::pop_heap(heap.begin(), heap.end(), better);
          Entry top = heap.back();
          heap.pop_back();
          if (!(top.score > kNegInf<double>)) break;
          cell[r] = {top.score + double(nodes[b]), top.label, top.rank};
          if (top.rank + 1 < k) {
            const int a = top.label;
            heap.push_back({before[int64_t(a) * k + top.rank + 1].score + double(M[a * S + b]), a, top.rank + 1});
            std::push_heap(heap.begin(), heap.end(), better);
          }
        }
      }
    }
    std::vector<Entry> finals;
    for (int b = 0; b < C; ++b)
      for (int r = 0; r < k; ++r) {
        const double score = table[((steps - 1) * C + b) * k + r].score + double(c_.end[b]);
        if (score > kNegInf<double>) finals.push_back({score, b, r});
      }
    std::sort(finals.begin(), finals.end(), [&](const Entry& x, const Entry& y) { return better(y, x); });
    for (int r = 0; r < k; ++r) {
      int32_t* path = labels + r * label_stride;
      if (r >= int(finals.size())) {
        scores[r] = kNegInf<double>;
        std::fill(path, path + steps, -1);
        continue;
      }
      scores[r] = finals[r].score;
      int b = finals[r].label, rank = finals[r].rank;
      for (int64_t t = steps - 1; t >= 0; --t) {
        path[t] = b;
        const Entry& e = table[(t * C + b) * k + rank];
        b = e.label;
        rank = e.rank;
      }
    }
  }

  // Draws labellings from exp(score) / Z: forward sums, then labels drawn from the last position to the first.
  void sample(int64_t i, int draws, uint64_t seed, int32_t* labels, int64_t label_stride) {
    const int64_t begin = c_.offsets[i] - c_.offsets[0], steps = c_.offsets[i + 1] - c_.offsets[i];
    if (steps == 0) return;
    std::vector<double> alpha;
    log_forward(begin, steps, alpha);
    if (bad_) return;
    std::seed_seq seq{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(uint64_t(i) >> 32)};
    std::mt19937_64 random(seq);
    std::vector<double> weights(C);
    auto draw = [&]() {
      double top = kNegInf<double>, total = 0;
      for (double x : weights) top = std::max(top, x);
      for (double& x : weights) {
        x = top > kNegInf<double> ? std::exp(x - top) : 0.0;
        total += x;
      }
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
    for (int d = 0; d < draws; ++d) {
      int32_t* path = labels + d * label_stride;
      for (int b = 0; b < C; ++b) weights[b] = alpha[(steps - 1) * C + b] + double(c_.end[b]);
      int next = draw();
      if (next < 0) {
        std::fill(path, path + steps, -1);
        continue;
      }
      path[steps - 1] = next;
      for (int64_t t = steps - 1; t > 0; --t) {
        for (int a = 0; a < C; ++a) weights[a] = alpha[(t - 1) * C + a] + edge_score(begin + t, a, next);
        path[t - 1] = next = draw();
      }
    }
  }

 private:
  // exp(x - max x) into a padded vector.
  T prepare_vector(const T* x, T* out) {
    T top = kNegInf<T>;
    for (int b = 0; b < C; ++b) {
      if (!(x[b] < std::numeric_limits<T>::infinity())) bad_ = true;
      top = std::max(top, x[b]);
    }
    const T shift = top > kNegInf<T> ? top : T(0);
    for (int b = 0; b < S; ++b) out[b] = b < C ? x[b] - shift : kNegInf<T>;
    for (int64_t b = 0; b < S; b += kLanes<T>) store(out + b, vexp(load(out + b)));
    return shift;
  }

  // θ_t - max θ_t into a padded row; returns the maximum, -inf where every label is forbidden.
  T shift_nodes(const T* nodes, T* out) {
    constexpr int L = kLanes<T>;
    const T inf = std::numeric_limits<T>::infinity();
    Vec<T> top = splat(kNegInf<T>), wrong{};
    for (int b = 0; b < C; b += L) {
      const Vec<T> x = b + L <= C ? load(nodes + b) : load_first(nodes + b, C - b, kNegInf<T>, nodes_end_);
      wrong += x < inf ? Vec<T>{} : splat(T(1));
      top = vmax<T>(top, x);
      store(out + b, x);
    }
    if (sum<T>(wrong) > 0) {
      bad_ = true;
      return T(0);
    }
    const T shift = largest<T>(top);
    if (shift > kNegInf<T>)
      for (int b = 0; b < S; b += L) store(out + b, load(out + b) - shift);
    return shift;
  }

  // e_t of all positions; false where a position has no label that is allowed.
  bool own_nodes(int64_t begin, int64_t steps, double& shifts) {
    for (int64_t t = 0; t < steps; ++t) {
      const T shift = shift_nodes(c_.row(begin + t), e_.data() + t * S);
      if (bad_ || shift == kNegInf<T>) return false;
      shifts += shift;
    }
    for (int64_t k = 0; k < steps * S; k += kLanes<T>) store(e_.data() + k, vexp(load(e_.data() + k)));
    return true;
  }
  // The same from rows that positions share: each was exponentiated once.
  bool shared_nodes(int64_t begin, int64_t steps, double& shifts) {
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t r = c_.codes[begin + t];
      if (c_.row_shifts[r] == kNegInf<T>) return false;
      shifts += c_.row_shifts[r];
      for (int64_t b = 0; b < S; b += kLanes<T>) store(e_.data() + t * S + b, load(c_.row_exp + r * S + b));
    }
    return true;
  }

  double edge_score(int64_t position, int a, int b) const {
    double score = double(c_.transitions[a * C + b]);
    if (c_.edges) score += double(c_.edges[(position * C + a) * C + b]);
    return score;
  }

  // Scores of the edge into a position, rows padded with -inf, for the max-plus recursions.
  void prepare_max() {
    if (!max_.empty()) return;
    max_.assign(size_t(C) * S, kNegInf<T>);
    for (int a = 0; a < C; ++a) std::copy(c_.transitions + a * C, c_.transitions + (a + 1) * C, max_.begin() + a * S);
    if (c_.edges) local_max_.assign(size_t(C) * S, kNegInf<T>);
  }
  const T* edge_max(int64_t position) {
    if (!c_.edges) return max_.data();
    const T* extra = c_.edges + position * C * C;
    for (int a = 0; a < C; ++a)
      for (int b = 0; b < C; ++b) {
        if (!(extra[a * C + b] < std::numeric_limits<T>::infinity())) bad_ = true;
        local_max_[a * S + b] = max_[a * S + b] + extra[a * C + b];
      }
    return local_max_.data();
  }

  bool scaled(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
              double* sum_start, double* sum_end) {
    constexpr int L = kLanes<T>;
    for (AlignedVector<T>* x : {&e_, &a_, &b_, &u_}) ChainScratch<T>::grown(*x, steps * S);
    double shifts = double(start_shift_) + double(end_shift_);
    if (!(c_.codes ? shared_nodes(begin, steps, shifts) : own_nodes(begin, steps, shifts))) return false;
    times(e_.data(), start_.data(), T(1), e_.data());
    times(e_.data() + (steps - 1) * S, end_.data(), T(1), e_.data() + (steps - 1) * S);
    if (c_.edges) {
      if (int64_t(local_.size()) < steps) local_.resize(steps);
      for (int64_t t = 1; t < steps; ++t) prepare_edges(begin + t, t);
      if (bad_) return false;
    }
    for (int64_t t = 1; t < steps; ++t) shifts += edge_exp(t).shift;

    T* last = b_.data() + (steps - 1) * S;
    for (int b = 0; b < S; ++b) last[b] = b < C ? T(1) : T(0);
    T mass = times(e_.data(), nullptr, T(1), a_.data());
    T back = times(e_.data() + (steps - 1) * S, last, T(1), u_.data() + (steps - 1) * S);
    LogProduct logs;
    for (int64_t t = 1; t < steps; ++t) {
      const int64_t r = steps - 1 - t;  // forwards to position t, backwards to position r
      if (!(mass >= kSmallestSum<T> && back >= kSmallestSum<T>)) return false;
      logs.times(double(mass));
      T *a = a_.data() + t * S, *b = b_.data() + r * S;
      matvec(a - S, C, edge_exp(t).exp.data(), S, a);
      matvec(u_.data() + (r + 1) * S, C, edge_exp(r + 1).transposed.data(), S, b);
      mass = times(e_.data() + t * S, a, T(1) / mass, a);
      back = times(e_.data() + r * S, b, T(1) / back, u_.data() + r * S);
    }
    if (!(mass >= kSmallestSum<T> && back >= kSmallestSum<T>)) return false;
    logs.times(double(mass));

    // e_t is no longer needed: its place takes μ_t; u_t takes the v_t with ξ_t = (a_{t-1} ⊗ v_t) ∘ M.
    for (int64_t t = 0; t < steps; ++t) {
      T *mu = e_.data() + t * S, *u = u_.data() + (t + 1) * S;
      const T product = times(a_.data() + t * S, b_.data() + t * S, T(1), mu);
      if (!(product >= kSmallestProduct<T>)) return false;
      const T inverse = T(1) / product;
      for (int b = 0; b < S; b += L) store(mu + b, load(mu + b) * inverse);
      if (t + 1 < steps)
        for (int b = 0; b < S; b += L) store(u + b, load(u + b) * inverse);
    }
    out.log_partition[i] = logs.value() + shifts;
    const int64_t stride = out.stride ? out.stride : C;
    if (out.nodes) {
      // Whole vectors, in order: what goes beyond a row is overwritten by the next ones, as long as it stays within the
      // sequence.
      T* to = out.nodes + begin * stride;
      int64_t t = 0;
      for (; t * stride + S <= steps * stride; ++t)
        for (int64_t b = 0; b < S; b += L) store(to + t * stride + b, load(e_.data() + t * S + b));
      for (; t < steps; ++t) std::copy(e_.data() + t * S, e_.data() + t * S + stride, to + t * stride);
    }
    if (out.edges || c_.edges) {
      own_edges(begin, steps, i, out, sum_trans);
    } else if (sum_trans || out.entropy) {
      s_.assign(size_t(C) * S, T(0));
      if (steps > 1) outer(a_.data(), u_.data() + S, steps - 1, C, S, s_.data());
      for (int a = 0; a < C; ++a)
        for (int b = 0; b < C; ++b) {
          s_[a * S + b] *= trans_.exp[a * S + b];
          if (sum_trans) sum_trans[a * C + b] += double(s_[a * S + b]);
        }
    }
    if (sum_start)
      for (int b = 0; b < C; ++b) {
        sum_start[b] += double(e_[b]);
        sum_end[b] += double(e_[(steps - 1) * S + b]);
      }
    if (out.entropy) entropy(begin, steps, i, out);
    return true;
  }

  // Edge marginals position by position (observation-dependent transitions, or when the caller wants them).
  void own_edges(int64_t begin, int64_t steps, int64_t, const ChainMarginals<T>& out, double* sum_trans) {
    s_.assign(size_t(C) * S, T(0));
    edge_expectation_ = 0.0;
    if (out.edges) std::fill(out.edges + begin * C * C, out.edges + (begin + 1) * C * C, T(0));
    for (int64_t t = 1; t < steps; ++t) {
      const Transitions<T>& M = edge_exp(t);
      for (int a = 0; a < C; ++a)
        for (int b = 0; b < C; ++b) {
          const T xi = a_[(t - 1) * S + a] * M.exp[a * S + b] * u_[t * S + b];
          if (out.edges) out.edges[((begin + t) * C + a) * C + b] = xi;
          s_[a * S + b] += xi;
          if (xi > 0 && c_.edges) edge_expectation_ += double(xi) * double(c_.edges[((begin + t) * C + a) * C + b]);
        }
    }
    if (sum_trans)
      for (int a = 0; a < C; ++a)
        for (int b = 0; b < C; ++b) sum_trans[a * C + b] += double(s_[a * S + b]);
  }

  // H = log Z - E[score]; 0 · (-inf) counts as 0.
  void entropy(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out) {
    double expected = c_.edges ? edge_expectation_ : 0.0;
    auto add = [&](double mu, double theta) {
      if (mu > 0) expected += mu * theta;
    };
    for (int64_t t = 0; t < steps; ++t)
      for (int b = 0; b < C; ++b) add(e_[t * S + b], c_.row(begin + t)[b]);
    for (int b = 0; b < C; ++b) {
      add(e_[b], c_.start[b]);
      add(e_[(steps - 1) * S + b], c_.end[b]);
      for (int a = 0; a < C; ++a) add(s_[a * S + b], c_.transitions[a * C + b]);
    }
    out.entropy[i] = std::max(0.0, out.log_partition[i] - expected);
  }

  // exp of the scores of the edge into a position, for observation-dependent transitions.
  void prepare_edges(int64_t position, int64_t t) {
    edge_scratch_.resize(C * C);
    for (int k = 0; k < C * C; ++k) edge_scratch_[k] = c_.transitions[k] + c_.edges[position * C * C + k];
    local_[t].finite = true;
    local_[t].prepare(edge_scratch_.data(), C, S);
    if (!local_[t].finite) bad_ = true;
  }
  const Transitions<T>& edge_exp(int64_t t) const { return c_.edges ? local_[t] : trans_; }

  // out = x ∘ y · factor (y == nullptr: x · factor), over a padded row; returns the sum.
  T times(const T* x, const T* y, T factor, T* out) const {
    constexpr int L = kLanes<T>;
    Vec<T> total{};
    for (int b = 0; b < S; b += L) {
      const Vec<T> z = y ? load(y + b) * (load(x + b) * factor) : load(x + b) * factor;
      total += z;
      store(out + b, z);
    }
    return sum<T>(total);
  }

  static double log_sum(const double* x, int n) {
    double top = kNegInf<double>;
    for (int i = 0; i < n; ++i) top = std::max(top, x[i]);
    if (top == kNegInf<double>) return top;
    double total = 0;
    for (int i = 0; i < n; ++i) total += std::exp(x[i] - top);
    return top + std::log(total);
  }

  void log_forward(int64_t begin, int64_t steps, std::vector<double>& alpha) {
    alpha.assign(size_t(steps) * C, kNegInf<double>);
    std::vector<double> terms(C);
    for (int64_t t = 0; t < steps; ++t)
      for (int b = 0; b < C; ++b) {
        const double node = double(c_.row(begin + t)[b]);
        if (!(node < std::numeric_limits<double>::infinity())) {
          bad_ = true;
          return;
        }
        if (t == 0) {
          alpha[b] = double(c_.start[b]) + node;
          continue;
        }
        for (int a = 0; a < C; ++a) {
          const double edge = edge_score(begin + t, a, b);
          if (!(edge < std::numeric_limits<double>::infinity())) {
            bad_ = true;
            return;
          }
          terms[a] = alpha[(t - 1) * C + a] + edge;
        }
        alpha[t * C + b] = log_sum(terms.data(), C) + node;
      }
  }

  void log_domain(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
                  double* sum_start, double* sum_end) {
    std::vector<double> alpha, beta(size_t(steps) * C), terms(C);
    log_forward(begin, steps, alpha);
    if (bad_) return;
    for (int b = 0; b < C; ++b) terms[b] = alpha[(steps - 1) * C + b] + double(c_.end[b]);
    const double log_z = log_sum(terms.data(), C);
    out.log_partition[i] = log_z;
    if (out.entropy) out.entropy[i] = 0.0;
    const int64_t stride = out.stride ? out.stride : C;
    if (out.nodes) std::fill(out.nodes + begin * stride, out.nodes + (begin + steps) * stride, T(0));
    if (out.edges) std::fill(out.edges + begin * C * C, out.edges + (begin + steps) * C * C, T(0));
    if (!(log_z > kNegInf<double>)) return;
    for (int b = 0; b < C; ++b) beta[(steps - 1) * C + b] = double(c_.end[b]);
    for (int64_t t = steps - 1; t > 0; --t)
      for (int a = 0; a < C; ++a) {
        for (int b = 0; b < C; ++b)
          terms[b] = edge_score(begin + t, a, b) + double(c_.row(begin + t)[b]) + beta[t * C + b];
        beta[(t - 1) * C + a] = log_sum(terms.data(), C);
      }
    double expected = 0.0;
    auto add = [&](double mu, double theta) {
      if (mu > 0) expected += mu * theta;
    };
    for (int64_t t = 0; t < steps; ++t) {
      // log Z once more at each position: the rounding of long sums then cancels, and the probabilities add up to 1.
      for (int b = 0; b < C; ++b) terms[b] = alpha[t * C + b] + beta[t * C + b];
      const double local = log_sum(terms.data(), C);
      for (int b = 0; b < C; ++b) {
        const double mu = std::exp(terms[b] - local);
        const double node = double(c_.row(begin + t)[b]);
        if (out.nodes) out.nodes[(begin + t) * stride + b] = T(mu);
        add(mu, node);
        if (t == 0) {
          add(mu, c_.start[b]);
          if (sum_start) sum_start[b] += mu;
        }
        if (t == steps - 1) {
          add(mu, c_.end[b]);
          if (sum_end) sum_end[b] += mu;
        }
        if (t == 0 || !(node > kNegInf<double>)) continue;
        for (int a = 0; a < C; ++a) {
          const double edge = edge_score(begin + t, a, b);
          const double xi = std::exp(alpha[(t - 1) * C + a] + edge + node + beta[t * C + b] - local);
          add(xi, edge);
          if (sum_trans) sum_trans[a * C + b] += xi;
          if (out.edges) out.edges[((begin + t) * C + a) * C + b] = T(xi);
        }
      }
    }
    if (out.entropy) out.entropy[i] = std::max(0.0, log_z - expected);
  }

  const Chains<T>& c_;
  const T* nodes_end_ = nullptr;
  const int C;
  const int64_t S;  // C rounded up to whole vectors
  Transitions<T> trans_;
  std::vector<Transitions<T>> local_;
  ChainScratch<T>& scratch_ = ChainScratch<T>::mine();
  AlignedVector<T>&e_ = scratch_.e, &a_ = scratch_.a, &b_ = scratch_.b, &u_ = scratch_.u, &s_ = scratch_.s,
  &delta_ = scratch_.delta;
  AlignedVector<T> start_, end_, max_, local_max_, edge_scratch_;
  T start_shift_ = 0, end_shift_ = 0;
  double edge_expectation_ = 0.0;
  bool bad_ = false;
};

// Sequences in groups of about this many positions; a group's sums are private, and groups are added in order, so that
// the result does not depend on the number of threads.
constexpr int64_t kGroupPositions = 512;
inline std::vector<int64_t> groups_of(const int64_t* offsets, int64_t n) {
  std::vector<int64_t> starts{0};
  for (int64_t i = 0; i < n; ++i)
    if (offsets[i + 1] - offsets[starts.back()] >= kGroupPositions || i == n - 1) starts.push_back(i + 1);
  return starts;
}

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

template <class T> bool score(const Chains<T>& chains, const int32_t* labels, double* out) {
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
    if (of.space.bad() || !score(of.chains, y, truth.data())) {
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

template <class T> bool k_best(const Chains<T>& chains, int k, int32_t* labels, double* score, int threads) {
  const int64_t total = chains.offsets[chains.n] - chains.offsets[0];
  return for_groups(chains, threads, [&](ChainWorkspace<T>& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i)
      space.k_best(i, k, labels + (chains.offsets[i] - chains.offsets[0]), total, score + i * k);
  });
}

template <class T> bool sample(const Chains<T>& chains, int draws, uint64_t seed, int32_t* labels, int threads) {
  const int64_t total = chains.offsets[chains.n] - chains.offsets[0];
  return for_groups(chains, threads, [&](ChainWorkspace<T>& space, int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end && !space.bad(); ++i)
      space.sample(i, draws, seed, labels + (chains.offsets[i] - chains.offsets[0]), total);
  });
}

}  // namespace mercer::MERCER_ARCH
