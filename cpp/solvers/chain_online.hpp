// Online learners over chains, one sequence an update.
//
//   sgd_log             w -= η_t (λ w + ∇loss_i),
//                       η_t = η_0 / (1 + η_0 decay t); the shrinkage of all weights is one number (scale),
//                       the L1 penalty is owed and paid when a weight is next touched (cumulative penalty).
//   perceptron          w += Φ(y) - Φ(ŷ)
//   passive_aggressive  w += τ (Φ(y) - Φ(ŷ)),
//                       τ = min(aggressiveness, (score(ŷ) - score(y) + √errors) / ‖Φ(y) - Φ(ŷ)‖²)
//
// For the latter two `extra` holds Σ step · update, from which the averaged weights are w - extra / (steps + 1).
// Labels of -1 are unknown: the loss is then against all labellings that agree with the known ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "solvers/chain_online_loops.hpp"
#include "structures/chain.hpp"
#include "structures/chain_paths.hpp"
#include "structures/linear.hpp"

namespace mercer::MERCER_ARCH {

template <class T> class OnlineLearner {
 public:
  OnlineLearner(const OnlineData<T>& data, const OnlineOptions& options, double* w, double* extra, OnlineState& state)
      : d_(data), o_(options), w_(w), extra_(extra), state_(state), C(data.C), C2(data.C * data.C) {
    at_trans_ = d_.nodes.n_weights;
    at_edges_ = at_trans_ + C2 + 2 * C;
    shared_.assign(C2 + 2 * C, 0.0);
    scratch_.resize(padded(std::max<int64_t>(C, has_edges() ? C2 : 0)));
    chains_ = {nullptr, shared_.data(), shared_.data() + C2, shared_.data() + C2 + C, nullptr, offsets_, 1, C};
  }

  double update(int64_t i, int64_t* mistakes) {
    begin_ = d_.offsets[i];
    steps_ = d_.offsets[i + 1] - begin_;
    if (steps_ == 0) return 0.0;
    y_ = d_.labels + begin_;
    score_parts();
    return o_.rule == Rule::sgd_log ? step_log() : step_mistake(mistakes);
  }

  // Pays the L1 penalty that untouched weights still owe.
  void settle() {
    if (o_.l1 <= 0) return;
    const int64_t n = at_edges_ + d_.edges.n_weights;
    for (int64_t k = 0; k < n; ++k) pay(k);
  }

 protected:
  bool has_edges() const { return d_.edge_rows.n_rows > 0; }

  void score_parts() {
    const double s = state_.scale;
    for (int k = 0; k < C2 + 2 * C; ++k)
      shared_[k] = d_.shared_mask && d_.shared_mask[k] == 1 ? kNegInf<double> : s * w_[at_trans_ + k];
    nodes_.resize(steps_ * C);
    score_rows(d_.rows, begin_, steps_, d_.nodes, w_, scratch_.data(), [&](int64_t t, const double* theta) {
      for (int b = 0; b < C; ++b) nodes_[t * C + b] = s * theta[b];
    });
    if (has_edges()) {
      edges_.resize(steps_ * C2);
      score_rows(d_.edge_rows, begin_, steps_, d_.edges, w_ + at_edges_, scratch_.data(),
                 [&](int64_t t, const double* theta) {
                   for (int k = 0; k < C2; ++k) edges_[t * C2 + k] = s * theta[k];
                 });
      chains_.edges = edges_.data();
    }
    offsets_[1] = steps_;
    chains_.nodes = nodes_.data();
    if (space_.empty())
      space_.emplace_back(chains_);
    else
      space_[0].refresh();
    partial_ = false;
    for (int64_t t = 0; t < steps_; ++t) partial_ |= y_[t] < 0;
  }

  // Node scores with everything but the known labels forbidden.
  void restrict_nodes() {
    known_ = nodes_;
    for (int64_t t = 0; t < steps_; ++t)
      for (int b = 0; b < C; ++b) {
        const bool possible = y_[t] >= 0 ? b == y_[t] : !d_.allowed || d_.allowed[(begin_ + t) * C + b];
        if (!possible) known_[t * C + b] = kNegInf<double>;
      }
  }

  double expectations(std::vector<double>& nodes, std::vector<double>& shared, std::vector<double>& edges) {
    nodes.resize(steps_ * C);
    shared.assign(C2 + 2 * C, 0.0);
    if (has_edges()) edges.resize(steps_ * C2);
    double log_z = 0;
    const ChainMarginals<double> out{nodes.data(),
                                     shared.data(),
                                     shared.data() + C2,
                                     shared.data() + C2 + C,
                                     has_edges() ? edges.data() : nullptr,
                                     &log_z,
                                     nullptr,
                                     nullptr};
    space_[0].marginals(0, out, out.transitions, out.start, out.end);
    return space_[0].bad() ? std::numeric_limits<double>::quiet_NaN() : log_z;
  }

  double step_log() {
    double loss = expectations(mu_, mu_shared_, mu_edges_);
    if (partial_) {
      restrict_nodes();
      chains_.nodes = known_.data();
      loss -= expectations(nu_, nu_shared_, nu_edges_);
      for (size_t k = 0; k < mu_.size(); ++k) mu_[k] -= nu_[k];
      for (size_t k = 0; k < mu_shared_.size(); ++k) mu_shared_[k] -= nu_shared_[k];
      if (has_edges())
        for (size_t k = 0; k < mu_edges_.size(); ++k) mu_edges_[k] -= nu_edges_[k];
    } else {
      double truth = 0;
      chain_score<double>(chains_, y_, &truth);
      loss -= truth;
      for (int64_t t = 0; t < steps_; ++t) {
        mu_[t * C + y_[t]] -= 1.0;
        if (t == 0) continue;
        mu_shared_[y_[t - 1] * C + y_[t]] -= 1.0;
        if (has_edges()) mu_edges_[t * C2 + y_[t - 1] * C + y_[t]] -= 1.0;
      }
      mu_shared_[C2 + y_[0]] -= 1.0;
      mu_shared_[C2 + C + y_[steps_ - 1]] -= 1.0;
    }
    if (!(loss < std::numeric_limits<double>::infinity())) return loss;
    const double eta = o_.rate / (1.0 + o_.rate * o_.decay * state_.step);
    state_.scale *= std::max(1e-12, 1.0 - eta * o_.l2);
    state_.step += 1.0;
    state_.l1_total += eta * o_.l1;
    const double factor = -eta / state_.scale;
    for (int k = 0; k < C2 + 2 * C; ++k)
      if (!d_.shared_mask || !d_.shared_mask[k]) w_[at_trans_ + k] += factor * mu_shared_[k];
    spread(d_.rows, d_.nodes, w_, mu_, factor, C);
    if (has_edges()) spread(d_.edge_rows, d_.edges, w_ + at_edges_, mu_edges_, factor, C2);
    if (o_.l1 > 0) pay_touched();
    if (state_.scale < 1e-6) {
      const int64_t n = at_edges_ + d_.edges.n_weights;
      for (int64_t k = 0; k < n; ++k) w_[k] *= state_.scale;
      state_.scale = 1.0;
    }
    return loss;
  }

  void spread(const Rows<T>& rows, const Pattern& p, double* w, const std::vector<double>& mu, double factor,
              int width) {
    std::fill(scratch_.begin(), scratch_.end(), 0.0);
    add_rows(rows, begin_, steps_, p, 0, p.n_features, p.n_weights, w, [&](int64_t t) {
      for (int b = 0; b < width; ++b) scratch_[b] = factor * mu[t * width + b];
      return scratch_.data();
    });
  }

  void pay(int64_t k) {
    const double before = state_.scale * w_[k];
    double after = before;
    if (before > 0)
      after = std::max(0.0, before - (state_.l1_total + extra_[k]));
    else if (before < 0)
      after = std::min(0.0, before + (state_.l1_total - extra_[k]));
    extra_[k] += after - before;
    w_[k] = after / state_.scale;
  }
  void pay_rows(const Rows<T>& rows, const Pattern& p, int64_t base) {
    for (int64_t t = 0; t < steps_; ++t) {
      const Row<T> x = row_of(rows, begin_ + t);
      for (int64_t j = 0; j < x.size; ++j) {
        const int64_t f = x.feature(j), first = p.starts ? int64_t(p.starts[f]) : f * p.width;
        const int64_t last = p.starts ? int64_t(p.starts[f + 1]) : first + p.width;
        for (int64_t k = first; k < last; ++k) pay(base + k);
      }
    }
  }
  void pay_touched() {
    for (int k = 0; k < C2 + 2 * C; ++k) pay(at_trans_ + k);
    pay_rows(d_.rows, d_.nodes, 0);
    if (has_edges()) pay_rows(d_.edge_rows, d_.edges, at_edges_);
  }

  // ----- mistake-driven rules: a sparse Φ(y) - Φ(ŷ) as (weight, value) pairs, equal weights merged

  void change(int64_t k, double value) { delta_.emplace_back(k, value); }
  void change_shared(int64_t k, double value) {
    if (!d_.shared_mask || !d_.shared_mask[k]) change(at_trans_ + k, value);
  }
  void change_rows(const Rows<T>& rows, const Pattern& p, int64_t base, int64_t t, int right, int wrong) {
    const Row<T> x = row_of(rows, begin_ + t);
    for (int64_t j = 0; j < x.size; ++j) {
      const int64_t f = x.feature(j);
      const double v = x.value(j);
      const Span s = weights_of(p, f);
      if (s.dense) {
        if (right >= 0) change(base + s.begin + right, v);
        if (wrong >= 0) change(base + s.begin + wrong, -v);
        continue;
      }
      for (int64_t k = s.begin; k < p.starts[f + 1]; ++k) {
        if (p.column(k) == right) change(base + k, v);
        if (p.column(k) == wrong) change(base + k, -v);
      }
    }
  }

  // Fills delta_ with Φ(truth_) - Φ(guess_) and returns the number of labels that differ.
  int64_t differ() {
    delta_.clear();
    int64_t errors = 0;
    for (int64_t t = 0; t < steps_; ++t) {
      const int y = truth_[t], z = guess_[t];
      if (y != z) {
        ++errors;
        change_rows(d_.rows, d_.nodes, 0, t, y, z);
      }
      if (t == 0) continue;
      const int from_y = truth_[t - 1] * C + y, from_z = guess_[t - 1] * C + z;
      if (from_y == from_z) continue;
      change_shared(from_y, 1.0);
      change_shared(from_z, -1.0);
      if (has_edges()) change_rows(d_.edge_rows, d_.edges, at_edges_, t, from_y, from_z);
    }
    if (errors == 0) return 0;
    if (truth_[0] != guess_[0]) {
      change_shared(C2 + truth_[0], 1.0);
      change_shared(C2 + guess_[0], -1.0);
    }
    if (truth_[steps_ - 1] != guess_[steps_ - 1]) {
      change_shared(C2 + C + truth_[steps_ - 1], 1.0);
      change_shared(C2 + C + guess_[steps_ - 1], -1.0);
    }
    return errors;
  }

  // Sorts delta_ and adds up equal weights; returns ‖delta‖².
  double merge() {
    std::sort(delta_.begin(), delta_.end());
    size_t kept = 0;
    double norm = 0;
    for (size_t j = 0; j < delta_.size();) {
      std::pair<int64_t, double> merged = delta_[j];
      for (++j; j < delta_.size() && delta_[j].first == merged.first; ++j) merged.second += delta_[j].second;
      if (merged.second == 0.0) continue;
      norm += merged.second * merged.second;
      delta_[kept++] = merged;
    }
    delta_.resize(kept);
    return norm;
  }

  double step_mistake(int64_t* mistakes) {
    guess_.resize(steps_);
    truth_.assign(y_, y_ + steps_);
    const double best = space_[0].viterbi(0, guess_.data());
    if (space_[0].bad()) return std::numeric_limits<double>::quiet_NaN();
    if (!(best > kNegInf<double>)) return std::numeric_limits<double>::infinity();
    if (partial_) {
      restrict_nodes();
      chains_.nodes = known_.data();
      if (!(space_[0].viterbi(0, truth_.data()) > kNegInf<double>)) return std::numeric_limits<double>::infinity();
      chains_.nodes = nodes_.data();
    }
    state_.step += 1.0;
    const int64_t errors = differ();
    if (errors == 0) return 0.0;
    *mistakes += errors;
    double truth = 0;
    chain_score<double>(chains_, truth_.data(), &truth);
    if (!(truth > kNegInf<double>)) return std::numeric_limits<double>::infinity();
    double loss = best - truth, tau = 1.0;
    if (o_.rule == Rule::passive_aggressive) {
      const double norm = merge();
      loss += std::sqrt(double(errors));
      tau = norm > 0 ? std::min(o_.aggressiveness, loss / norm) : 0.0;
    }
    for (const auto& [k, v] : delta_) {
      w_[k] += tau * v;
      extra_[k] += state_.step * tau * v;
    }
    return loss;
  }

  const OnlineData<T>& d_;
  const OnlineOptions& o_;
  double *w_, *extra_;
  OnlineState& state_;
  const int C, C2;
  int64_t at_trans_, at_edges_, begin_ = 0, steps_ = 0;
  const int32_t* y_ = nullptr;
  bool partial_ = false;
  int64_t offsets_[2] = {0, 0};
  Chains<double> chains_;
  std::vector<ChainWorkspace<double>> space_;
  AlignedVector<double> scratch_;
  std::vector<double> shared_, nodes_, known_, edges_, mu_, mu_shared_, mu_edges_, nu_, nu_shared_, nu_edges_;
  std::vector<int32_t> guess_, truth_;
  std::vector<std::pair<int64_t, double>> delta_;
};

template <class T>
double online(const OnlineData<T>& data, const OnlineOptions& options, const int64_t* order, int64_t count, double* w,
              double* extra, OnlineState& state, int64_t* mistakes) {
  OnlineLearner<T> learner(data, options, w, extra, state);
  double total = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double loss = learner.update(order[k], mistakes);
    if (!(loss < std::numeric_limits<double>::infinity())) return loss;
    total += loss;
  }
  learner.settle();
  return total;
}

// Loss-augmented decoding, one sequence a step: the plane of the labelling that violates its margin most goes to a
// sink, which may change the weights before the next step.
template <class T> class MarginLearner : public OnlineLearner<T> {
 public:
  using OnlineLearner<T>::OnlineLearner;

  // Returns the violation max_z Δ(y, z) + score(z) - score(y); NaN for scores out of range, +inf where no labelling is
  // allowed.
  double visit(int64_t i, const double* cost, PlaneSink& sink) {
    this->begin_ = this->d_.offsets[i];
    this->steps_ = this->d_.offsets[i + 1] - this->begin_;
    if (this->steps_ == 0) return 0.0;
    this->y_ = this->d_.labels + this->begin_;
    this->score_parts();
    const int C = this->C;
    this->truth_.assign(this->y_, this->y_ + this->steps_);
    double truth = 0;
    chain_score<double>(this->chains_, this->truth_.data(), &truth);
    for (int64_t t = 0; t < this->steps_; ++t)
      for (int b = 0; b < C; ++b) this->nodes_[t * C + b] += cost[this->y_[t] * C + b];
    this->guess_.resize(this->steps_);
    const double best = this->space_[0].viterbi(0, this->guess_.data());
    if (this->space_[0].bad()) return std::numeric_limits<double>::quiet_NaN();
    if (!(truth > kNegInf<double>)) return std::numeric_limits<double>::infinity();
    double delta = 0;
    for (int64_t t = 0; t < this->steps_; ++t) delta += cost[this->y_[t] * C + this->guess_[t]];
    this->differ();
    gather();
    const double violation = std::max(0.0, best - truth);
    sink.take(i, this->delta_.data(), int64_t(this->delta_.size()), delta, violation);
    return violation;
  }

 private:
  // Adds up equal weights of delta_ in place, in the order in which they came.
  void gather() {
    if (sums_.empty()) sums_.assign(this->at_edges_ + this->d_.edges.n_weights, 0.0);
    for (const auto& [k, v] : this->delta_) sums_[k] += v;
    size_t kept = 0;
    for (const auto& entry : this->delta_) {
      const int64_t k = entry.first;
      if (sums_[k] == 0.0) continue;
      this->delta_[kept++] = {k, sums_[k]};
      sums_[k] = 0.0;
    }
    this->delta_.resize(kept);
  }

  std::vector<double> sums_;
};

template <class T>
double margin(const OnlineData<T>& data, const double* cost, const int64_t* order, int64_t count, double* w,
              OnlineState& state, PlaneSink& sink) {
  const OnlineOptions options{Rule::perceptron, 0, 0, 0, 0, 0};
  MarginLearner<T> learner(data, options, w, nullptr, state);
  double total = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double violation = learner.visit(order[k], cost, sink);
    if (!(violation < std::numeric_limits<double>::infinity())) return violation;
    total += violation;
  }
  return total;
}

}  // namespace mercer::MERCER_ARCH
