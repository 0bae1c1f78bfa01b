// Compiled once for each instruction set.
#include "structures/chain_loops.hpp"

#include "structures/chain.hpp"

namespace mercer::MERCER_ARCH {

template <> const ChainLoops<double>& table<ChainLoops<double>>() {
  static constexpr ChainLoops<double> loops = {
      .marginals = marginals<double>,
      .log_loss = log_loss<double>,
      .viterbi = viterbi<double>,
      .decode = decode<double>,
      .k_best = k_best<double>,
      .sample = sample<double>,
      .score = score<double>,
  };
  return loops;
}

template <> const ChainLoops<float>& table<ChainLoops<float>>() {
  static constexpr ChainLoops<float> loops = {
      .marginals = marginals<float>,
      .log_loss = log_loss<float>,
      .viterbi = viterbi<float>,
      .decode = decode<float>,
      .k_best = k_best<float>,
      .sample = sample<float>,
      .score = score<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
