// Compiled once for each instruction set.
#include "solvers/chain_online_loops.hpp"

#include "solvers/chain_online.hpp"

namespace mercer::MERCER_ARCH {

template <> const ChainOnlineLoops<double>& table<ChainOnlineLoops<double>>() {
  static constexpr ChainOnlineLoops<double> loops = {
      .online = online<double>,
      .margin = margin<double>,
  };
  return loops;
}

template <> const ChainOnlineLoops<float>& table<ChainOnlineLoops<float>>() {
  static constexpr ChainOnlineLoops<float> loops = {
      .online = online<float>,
      .margin = margin<float>,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
