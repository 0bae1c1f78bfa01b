// The recursions of structures/chain.hpp, compiled once for each instruction set.
#include "structures/chain.hpp"

#include <algorithm>
#include <cmath>

#include "structures/chain_paths.hpp"

namespace mercer::MERCER_ARCH {

template <class T> constexpr T kSmallestSum = sizeof(T) == 8 ? T(1e-100) : T(1e-12);
template <class T> constexpr T kSmallestProduct = sizeof(T) == 8 ? T(1e-200) : T(1e-26);

template <class T> void Transitions<T>::prepare(const T* scores, int C, int64_t stride) {
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

template <class T>
ChainWorkspace<T>::ChainWorkspace(const Chains<T>& chains)
    : c_(chains), C(chains.C), S((C + kLanes<T> - 1) / kLanes<T> * kLanes<T>) {
  refresh();
}

template <class T> void ChainWorkspace<T>::refresh() {
  max_.clear();
  trans_.finite = true;
  trans_.prepare(c_.transitions, C, S);
  start_.assign(S, T(0));
  end_.assign(S, T(0));
  bad_ = !trans_.finite;
  start_shift_ = prepare_vector(c_.start, start_.data());
  end_shift_ = prepare_vector(c_.end, end_.data());
}

template <class T> void ChainWorkspace<T>::prepare_rows(AlignedVector<T>& rows, AlignedVector<T>& shifts) {
  nodes_end_ = c_.nodes + c_.n_rows * C;
  rows.resize(size_t(c_.n_rows * S));
  shifts.resize(size_t(c_.n_rows));
  for (int64_t r = 0; r < c_.n_rows && !bad_; ++r)
    shifts[size_t(r)] = shift_nodes(c_.nodes + r * C, rows.data() + r * S);
  for (int64_t k = 0; k < c_.n_rows * S && !bad_; k += kLanes<T>) store(rows.data() + k, vexp(load(rows.data() + k)));
}

template <class T>
void ChainWorkspace<T>::marginals(int64_t i, const ChainMarginals<T>& out, double* sum_trans, double* sum_start,
                                  double* sum_end) {
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
    bad_ = !chain_log_marginals(c_, i, out, sum_trans, sum_start, sum_end);
  }
}

template <class T> double ChainWorkspace<T>::viterbi(int64_t i, int32_t* labels) {
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

template <class T> T ChainWorkspace<T>::prepare_vector(const T* x, T* out) {
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

template <class T> T ChainWorkspace<T>::shift_nodes(const T* nodes, T* out) {
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

template <class T> bool ChainWorkspace<T>::own_nodes(int64_t begin, int64_t steps, double& shifts) {
  for (int64_t t = 0; t < steps; ++t) {
    const T shift = shift_nodes(c_.row(begin + t), e_.data() + t * S);
    if (bad_ || shift == kNegInf<T>) return false;
    shifts += shift;
  }
  for (int64_t k = 0; k < steps * S; k += kLanes<T>) store(e_.data() + k, vexp(load(e_.data() + k)));
  return true;
}

template <class T> bool ChainWorkspace<T>::shared_nodes(int64_t begin, int64_t steps, double& shifts) {
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t r = c_.codes[begin + t];
    if (c_.row_shifts[r] == kNegInf<T>) return false;
    shifts += c_.row_shifts[r];
    for (int64_t b = 0; b < S; b += kLanes<T>) store(e_.data() + t * S + b, load(c_.row_exp + r * S + b));
  }
  return true;
}

template <class T> void ChainWorkspace<T>::prepare_max() {
  if (!max_.empty()) return;
  max_.assign(size_t(C) * S, kNegInf<T>);
  for (int a = 0; a < C; ++a) std::copy(c_.transitions + a * C, c_.transitions + (a + 1) * C, max_.begin() + a * S);
  if (c_.edges) local_max_.assign(size_t(C) * S, kNegInf<T>);
}

template <class T> const T* ChainWorkspace<T>::edge_max(int64_t position) {
  if (!c_.edges) return max_.data();
  const T* extra = c_.edges + position * C * C;
  for (int a = 0; a < C; ++a)
    for (int b = 0; b < C; ++b) {
      if (!(extra[a * C + b] < std::numeric_limits<T>::infinity())) bad_ = true;
      local_max_[a * S + b] = max_[a * S + b] + extra[a * C + b];
    }
  return local_max_.data();
}

template <class T>
bool ChainWorkspace<T>::scaled(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out, double* sum_trans,
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

template <class T>
void ChainWorkspace<T>::own_edges(int64_t begin, int64_t steps, int64_t, const ChainMarginals<T>& out,
                                  double* sum_trans) {
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

template <class T>
void ChainWorkspace<T>::entropy(int64_t begin, int64_t steps, int64_t i, const ChainMarginals<T>& out) {
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

template <class T> void ChainWorkspace<T>::prepare_edges(int64_t position, int64_t t) {
  edge_scratch_.resize(C * C);
  for (int k = 0; k < C * C; ++k) edge_scratch_[k] = c_.transitions[k] + c_.edges[position * C * C + k];
  local_[t].finite = true;
  local_[t].prepare(edge_scratch_.data(), C, S);
  if (!local_[t].finite) bad_ = true;
}

template <class T> T ChainWorkspace<T>::times(const T* x, const T* y, T factor, T* out) const {
  constexpr int L = kLanes<T>;
  Vec<T> total{};
  for (int b = 0; b < S; b += L) {
    const Vec<T> z = y ? load(y + b) * (load(x + b) * factor) : load(x + b) * factor;
    total += z;
    store(out + b, z);
  }
  return sum<T>(total);
}

template struct Transitions<double>;
template struct Transitions<float>;
template class ChainWorkspace<double>;
template class ChainWorkspace<float>;

}  // namespace mercer::MERCER_ARCH
