// Online and margin learning over chains; see solvers/chain_online.hpp.
#pragma once

#include <utility>

#include "base/csr.hpp"
#include "base/dispatch.hpp"

namespace mercer {

// Losses and rules of the online learners.
enum class Rule : int { sgd_log = 0, perceptron = 1, passive_aggressive = 2 };

// What an online learner carries from sequence to sequence. Weights are scale * w (the L2 shrinkage touches one
// number).
struct OnlineState {
  double scale = 1.0;
  double step = 0.0;      // number of updates so far
  double l1_total = 0.0;  // cumulative L1 penalty that every weight could have had
};
struct OnlineOptions {
  Rule rule;
  double rate, decay;     // sgd: step size rate / (1 + rate * decay * step); decay = λ of λ/2 ‖w‖² + mean loss
  double l2, l1;          // penalties against the mean loss
  double aggressiveness;  // passive-aggressive: upper bound of the step
};
template <class T> struct OnlineData {
  Rows<T> rows, edge_rows;  // edge_rows.n_rows == 0: no observation-dependent transitions
  Pattern nodes, edges;
  const int64_t* offsets;
  const int32_t* labels;
  const uint8_t* shared_mask;  // C x C + 2 C: 1 = forbidden, 2 = kept at its value; may be nullptr
  const uint8_t* allowed;      // positions x C: the labels possible where the label is -1; nullptr = all of them
  int64_t n;
  int C;
};
// Offsets of the parts of the weight vector: [nodes | transitions C x C | start C | end C | edges].

// Takes the planes that a margin learner finds: slope as (weight, value) pairs, offset Δ, violation Δ - <w, slope>.
struct PlaneSink {
  virtual ~PlaneSink() = default;
  virtual void take(int64_t example, const std::pair<int64_t, double>* slope, int64_t size, double offset,
                    double violation) = 0;
};

template <class T> struct ChainOnlineLoops {
  static constexpr const char* concern = "chain_online";
  double (*online)(const OnlineData<T>&, const OnlineOptions&, const int64_t* order, int64_t count, double* w,
                   double* extra, OnlineState& state, int64_t* mistakes);
  double (*margin)(const OnlineData<T>&, const double* cost, const int64_t* order, int64_t count, double* w,
                   OnlineState& state, PlaneSink& sink);
};

MERCER_TABLE(ChainOnlineLoops<double>)
MERCER_TABLE(ChainOnlineLoops<float>)

}  // namespace mercer
